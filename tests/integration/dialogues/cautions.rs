//! What the platform lets pass is said on the card.

use insta::assert_snapshot;

use crate::support::bot::TestBot;

#[tokio::test(flavor = "multi_thread")]
async fn namesakes_and_shared_points_are_named_before_a_creation() {
    let bot = TestBot::start().await;
    assert_snapshot!(bot.user("ana").answer("create experiment “math hints” in mathstream at lesson-stream/lesson-video with conditions control, question-hint-tutorbot").await, @"
    *Create “math hints”?*
    *Name*  *math hints*
    *Context*  `mathstream`
    *Conditions*  control 50%, question-hint-tutorbot 50%
    *Decision points*  lesson-stream / lesson-video
    ‹each person by themselves, for good›
    *Of 1,000 new users*  about 256 control, 248 question-hint-tutorbot; 496 come to other experiments at the same point
    ⚠️ There is an experiment of this name already (inactive in assign-prog); then there will be two.
    ⚠️ “*Lesson Video Hints*”, enrolling (running), has lesson-stream / lesson-video too: each person takes part in only one experiment at a point.
    Simulated with the platform's own draw. Chance moves each number: 19 times in 20 by at most 23.
    ‹the rest by default, inactive at first, for anyone to decide›
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_experiment_nobody_can_take_part_in_says_so_when_it_is_started() {
    let bot = TestBot::start().await;
    bot.upgrade.has("Rival", "enrolling");
    let mut thread = bot.user("ana").says("update Math Hints with filter mode excludeAll").await;
    assert_snapshot!(thread.in_short(), @"
    *Change the filter mode of “Math Hints”?*
    *People on no list*  take part → *do not take part*
    *Enrolled*  nobody
    *Same points*  “*Rival*”, enrolling (running), at SelectSection / absolute_value_plot_equality
    ⚠️ Nobody will be enrolled: only people on its inclusion list take part, and that list is empty.
    ‹an update of an inactive experiment, for anyone to decide›
    ");
    thread.clicked("ana", "Update experiment").await;
    assert_snapshot!(thread.answer("ana", "start Math Hints").await, @"
    *Start “Math Hints”?* ⋯
    *Same points*  “*Rival*”, enrolling (running), at SelectSection / absolute_value_plot_equality
    ⚠️ “*Rival*”, enrolling (running), has SelectSection / absolute_value_plot_equality too: each person takes part in only one experiment at a point.
    ⚠️ Nobody will be enrolled: only people on its inclusion list take part, and that list is empty.
    ⋯
    ");
}
