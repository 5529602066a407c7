//! What is said after a no: the reason, and what is to be done instead.

use insta::assert_snapshot;
use serde_json::json;

use super::windows::{opens, sends};
use crate::support::{bot::TestBot, thread::Thread};

const CREATE: &str = "create an experiment called Foo in assign-prog at SelectSection / area_model";

/// Ana asks, Bo says no and why.
async fn turned_down<'a>(bot: &'a TestBot, asks: &str, reason: &str) -> Thread<'a> {
    let mut thread = bot.user("ana").says(asks).await;
    opens(bot, &thread, "bo", "reject").await;
    assert!(sends(bot, "bo", json!({ "Reason": reason })).await.is_empty());
    thread.skip();
    thread
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reason_that_says_what_would_be_right_is_one_press_away() {
    let bot = TestBot::start().await;
    let thread = turned_down(&bot, CREATE, "use weights 60/40").await;
    assert_snapshot!(thread.last_in_short(), @"
    @ana, @bo explains why this was rejected: *Create “Foo”*
    _use weights 60/40_
    [Ask for that instead]
    ");
    thread.clicks("ana", "Ask for that instead").await;
    assert_snapshot!(thread.last_in_short(), @"
    *Create “Foo”?* ⋯
    *Conditions*  control 60%, variant 40%
    ⋯
    *Of 1,000 new users*  about 306 control, 198 variant; 496 go to other experiments at this decision point
    ⋯
    Simulated with UpGrade's own assignment. 95% of the time, each count lands within ±22.
    ‹not: Simulated with UpGrade's own assignment. 95% of the time, each count lands within ±21.›
    ‹not: Defaults used: Assignment, Consistency, After enrollment ends, Users on no list.›
    ⋯
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_should_be_different_can_be_said() {
    let bot = TestBot::start().await;
    let thread = turned_down(&bot, CREATE, "Not like this").await;
    assert_snapshot!(thread.last_in_short(), @"
    @ana, @bo explains why this was rejected: *Create “Foo”*
    _Not like this_
    ");
    thread.says("ana", "what is a weight?").await;
    thread.says("ana", "set the weights to 70/30").await;
    assert_snapshot!(thread.last_in_short(), @"
    *Create “Foo”?* ⋯
    ‹not: Defaults used: Assignment, Consistency, After enrollment ends, Users on no list.›
    ⋯
    ");
    thread.clicks("bo", "approve").await;
    assert_eq!(bot.upgrade.experiment("Foo").unwrap()["conditions"][0]["assignmentWeight"], 70);
    thread.says("ana", "set the weights to 80/20").await;
    assert_snapshot!(thread.last_in_short(), @"
    *Change the weights of “Foo”?*
    *Conditions*  control 70%, variant 30% → *control 80%, variant 20%*
    *Of 1,000 new users*  about 354 control, 150 variant; 496 go to other experiments at this decision point → *about 404 control, 99 variant; 497 go to other experiments at this decision point*
    *Enrolled*  0
    *Overlapping experiments*  “*Running Test*”, paused, at SelectSection / area_model
    It is inactive in assign-prog.
    Simulated with UpGrade's own assignment. 95% of the time, each count lands within ±18.
    ‹ana asks, anyone may decide› [Update experiment] [Reject…] [Withdraw] [Edit…] [Show all]
    ");
}
