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
    ‹individual, for good›
    *Of 1,000 new users*  about 256 control, 248 question-hint-tutorbot; 496 go to other experiments at this decision point
    ⚠️ An experiment with this name already exists (inactive in assign-prog), so there will be two.
    ⚠️ “*Lesson Video Hints*”, running, has lesson-stream / lesson-video too. Each user takes part in only one experiment at a decision point.
    Simulated with UpGrade's own assignment. 95% of the time, each count lands within ±23.
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
    *Users on no list*  included → *excluded*
    *Enrolled*  0
    *Overlapping experiments*  “*Rival*”, running, at SelectSection / absolute_value_plot_equality
    ⚠️ Nobody will be enrolled: only users on its inclusion list are included, and that list is empty.
    ‹an update of an inactive experiment, for anyone to decide›
    ");
    thread.clicked("ana", "Update experiment").await;
    assert_snapshot!(thread.answer("ana", "start Math Hints").await, @"
    *Start “Math Hints”?* ⋯
    *Overlapping experiments*  “*Rival*”, running, at SelectSection / absolute_value_plot_equality
    ⚠️ “*Rival*”, running, has SelectSection / absolute_value_plot_equality too. Each user takes part in only one experiment at a decision point.
    ⚠️ Nobody will be enrolled: only users on its inclusion list are included, and that list is empty.
    ⋯
    ");
}
