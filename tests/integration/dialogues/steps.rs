//! Several requests in one message, done in order.

use countersign::sandbox::upgrade::faults::When;
use insta::assert_snapshot;

use crate::support::{bot::TestBot, thread::Thread};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_created_is_started_next_each_with_its_card() {
    let bot = TestBot::start().await;
    let said = "Create experiment Foo in assign-prog with conditions control, variant at SelectSection/area_model weights 70/30 and start it";
    let mut thread = bot.user("ana").says(said).await;
    assert_snapshot!(thread.in_short(), @"
    *Create “Foo”?* ⋯
    Step 1 of 2. When it is done: start it.
    ⋯
    ");

    thread.clicks("bo", "Create experiment").await;
    assert_snapshot!(thread.in_short(), @"
    *Create “Foo”?* ⋯
    Approved by @bo · ‹time›
    ✅ Created “Foo”. It is inactive until somebody starts it.
    [Undo: delete it again]
    ---
    @ana “*Foo*”: done, approved by bo. Next: start it.
    ---
    *Start “Foo”?*
    *Status*  inactive → *enrolling (running)*
    *Context*  `assign-prog`
    *Conditions*  control 70%, variant 30%
    *Decision points*  SelectSection / area_model
    *Enrolled*  nobody
    *Same points*  “*Running Test*”, enrollmentComplete (paused), at SelectSection / area_model
    ⚠️ “*Running Test*”, enrollmentComplete (paused), has SelectSection / area_model too: each person takes part in only one experiment at a point.
    Step 2 of 2.
    Asked by @ana · anyone in this channel may decide · until ‹time› · digest `‹id›`
    [Start experiment] [Don't start] [Edit…] [Show all]
    ");
    assert_eq!(bot.upgrade.effects().len(), 1, "the second card waits");

    thread.clicks("bo", "Start experiment").await;
    assert_snapshot!(thread.in_short(), @"
    *Start “Foo”?* ⋯
    Approved by @bo · ‹time›
    ✅ Started “Foo”: it is enrolling now.
    [Undo: stop it again]
    ---
    @ana “*Foo*”: done, approved by bo. What next?
    [Show details]
    ");
    assert_eq!(bot.upgrade.experiment("Foo").unwrap()["state"], "running");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_are_answered_one_after_the_other() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").says("list the running experiments; then show details of Math Hints").await;
    assert_snapshot!(thread.in_short(), @"
    Step 1 of 2
    ‹running experiments›
    ---
    Step 2 of 2
    ‹Math Hints in full›
    ");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_step_is_the_end_of_it() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks("1. start Math Hints\n2. show it\n3. stop it").await;
    thread.clicks("bo", "Don't start").await;
    assert_snapshot!(thread.in_short(), @"
    *Start “Math Hints”?* ⋯
    Step 1 of 3. When it is done: show it; stop it.
    Rejected by @bo · ‹time›
    [Change and ask again…]
    ---
    @ana, @bo turned this down, so nothing was changed.
    To ask for something else, press *Change and ask again…* on the card, or tell me here.
    I did not go on to: show it; stop it.
    ");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_fails_is_the_end_of_it() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks("start Math Hints and then show it").await;
    bot.upgrade.fails_next(400, When::BeforeEffect, Some("POST"));
    thread.clicks("bo", "Start experiment").await;
    assert_snapshot!(thread.in_short(), @"
    *Start “Math Hints”?* ⋯
    Step 1 of 2. When it is done: show it.
    Approved by @bo · ‹time›
    ❌ UpGrade refused this: a web page with status 400, not an answer; check the address. I checked: nothing was changed. Ask again with that corrected.
    [Try again]
    ---
    @ana, @bo *Start “Math Hints”* did not work. UpGrade refused this: a web page with status 400, not an answer; check the address. I checked: nothing was changed. Ask again with that corrected.
    I did not go on to: show it.
    ");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_in_between_is_answered_and_the_rest_follows() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").says("Create experiment Foo in assign-prog and start it").await;
    assert_snapshot!(thread.in_short(), @"
    Where does it take place? I need a decision point: site / target.
    Possible: SelectSection / absolute_value_plot_equality, SelectSection / area_model, SelectSection / fraction_intro, SelectProblem / absolute_value_plot_equality, SelectProblem / area_model, SelectProblem / fraction_intro
    After that: start it.
    [SelectSection / absolute_value_plot_equality] [SelectSection / area_model] [SelectSection / fraction_intro] [SelectProblem / absolute_value_plot_equality] [SelectProblem / area_model]
    ");
    thread.says("ana", "SelectSection/area_model").await;
    assert_snapshot!(thread.in_short(), @"
    *Create “Foo”?* ⋯
    *Conditions*  control 50%, variant 50%
    ⋯
    *Of 1,000 new users*  about 256 control, 248 variant; 496 come to other experiments at the same point
    ⋯
    Simulated with the platform's own draw. Chance moves each number: 19 times in 20 by at most 23.
    Filled in by default: Conditions (the first of assign-prog), Assigned, Consistency, Afterwards, People on no list.
    ⋯
    Step 1 of 2. When it is done: start it.
    ⋯
    ");
    thread.clicks("bo", "Create experiment").await;
    assert_snapshot!(thread.in_short(), @"
    *Create “Foo”?* ⋯
    Approved by @bo · ‹time›
    ✅ Created “Foo”. It is inactive until somebody starts it.
    [Undo: delete it again]
    ---
    @ana “*Foo*”: done, approved by bo. Next: start it.
    ---
    *Start “Foo”?*
    *Status*  inactive → *enrolling (running)*
    *Context*  `assign-prog`
    *Conditions*  control 50%, variant 50%
    *Decision points*  SelectSection / area_model
    *Enrolled*  nobody
    *Same points*  “*Running Test*”, enrollmentComplete (paused), at SelectSection / area_model
    ⚠️ “*Running Test*”, enrollmentComplete (paused), has SelectSection / area_model too: each person takes part in only one experiment at a point.
    Step 2 of 2.
    Asked by @ana · anyone in this channel may decide · until ‹time› · digest `‹id›`
    [Start experiment] [Don't start] [Edit…] [Show all]
    ");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn never_mind_ends_the_rest() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks("Create experiment Foo in assign-prog and start it").await;
    thread.says("ana", "never mind").await;
    assert_snapshot!(thread.in_short(), @"
    All right, I let that go. Nothing was changed.
    What was to follow your earlier request is not done: start it.
    ");

    let mut thread = bot.user("ana").asks("start Math Hints and then show it").await;
    thread.says("ana", "never mind").await;
    assert_snapshot!(thread.in_short(), @"
    *Start “Math Hints”?* ⋯
    Step 1 of 2. When it is done: show it.
    Withdrawn by @ana · ‹time›
    [Change and ask again…]
    ---
    @ana *Start “Math Hints”* was withdrawn, so nothing was changed.
    I did not go on to: show it.
    ");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_meanwhile_neither_loses_nor_mixes_the_steps() {
    let mut bot = TestBot::start().await;
    let root = {
        let mut thread = bot.user("ana").asks("start Math Hints and then show it in short").await;
        thread.says("bo", "@countersign show Running Test in short").await;
        thread
            .says("bo", "@countersign list the paused experiments, then pause Lesson Video Hints and show it in short")
            .await;
        assert_snapshot!(thread.in_short(), @"
        *Running Test* is enrollmentComplete (paused) in `assign-prog`, comparing control 50%, variant 50%. 24 people are enrolled.
        [Resume] [In detail]
        ---
        Step 1 of 3
        1 experiment (paused):
        Name | Status | Context | Conditions
        Running Test | enrollmentComplete (paused) | assign-prog | control 50%, variant 50%
        ---
        *Stop “Lesson Video Hints”?* ⋯
        Step 2 of 3. When it is done: show it in short.
        Asked by @bo · anyone in this channel may decide · until ‹time› · digest `‹id›`
        ⋯
        ");
        thread.root.clone()
    };
    bot.restart().await;
    let mut thread = Thread::new(&bot, "experiments", root);
    thread.skip();
    thread.clicks("bo", "Start experiment").await;
    assert_snapshot!(thread.in_short(), @"
    *Start “Math Hints”?* ⋯
    Step 1 of 2. When it is done: show it in short.
    Approved by @bo · ‹time›
    ✅ Started “Math Hints”: it is enrolling now.
    [Undo: stop it again]
    ---
    @ana “*Math Hints*”: done, approved by bo. Next: show it in short.
    ---
    Step 2 of 2
    *Math Hints* is enrolling (running) in `assign-prog`, comparing control 50%, variant 50%. Nobody is enrolled.
    [Stop] [In detail]
    ");
    thread.clicks("bo", "Stop experiment").await;
    assert_snapshot!(thread.in_short(), @"
    *Stop “Lesson Video Hints”?* ⋯
    Step 2 of 3. When it is done: show it in short.
    Approved by @bo · ‹time›
    ✅ Stopped “Lesson Video Hints”: it takes nobody new.
    Asked by @bo · digest `‹id›`
    [Undo: resume it]
    ---
    @bo “*Lesson Video Hints*”: done. Next: show it in short.
    ---
    Step 3 of 3
    *Lesson Video Hints* is enrollmentComplete (paused) in `mathstream`, comparing control 34%, question-hint-default 33%, question-hint-tutorbot 33%. 24 people are enrolled.
    [Resume] [In detail]
    ");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_of_the_card_keeps_what_follows() {
    let bot = TestBot::start().await;
    let said = "Create experiment Foo in assign-prog at SelectSection/area_model weights 70/30 and start it";
    let mut thread = bot.user("ana").asks(said).await;
    thread.says("ana", "no, at 60/40").await;
    assert_snapshot!(thread.in_short(), @"
    *Create “Foo”?*
    Replaced by a newer request · ‹time› · ‹the newer card›
    [Show all]
    ---
    *Create “Foo”?* ⋯
    *Conditions*  control 60%, variant 40%
    ⋯
    *Of 1,000 new users*  about 306 control, 198 variant; 496 come to other experiments at the same point
    ⋯
    Simulated with the platform's own draw. Chance moves each number: 19 times in 20 by at most 22.
    Filled in by default: Conditions (the first of assign-prog), Assigned, Consistency, Afterwards, People on no list.
    ⋯
    Step 1 of 2. When it is done: start it.
    Takes the place of the open card: Create “Foo”.
    ⋯
    ");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_to_do_something_else_ends_the_rest() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks("Create experiment Foo in assign-prog and start it").await;
    thread.says("ana", "start Math Hints").await;
    assert_snapshot!(thread.in_short(), @"
    What was to follow your earlier request is not done: start it.
    ---
    ‹Start “Math Hints”, open›
    ");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_eight_are_too_many() {
    let bot = TestBot::start().await;
    let names = ["Math Hints", "Running Test", "Chat Tone", "Class Hint Rollout", "Lesson Video Hints"];
    let all: Vec<_> = names.iter().chain(&names).map(|name| format!("- show {name} in short")).collect();
    let thread = bot.user("ana").says(&all.join("\n")).await;
    assert_eq!(thread.messages().len(), 8);
    assert_snapshot!(thread.last(), @"
    Step 8 of 8
    *Chat Tone* is cancelled (completed) in `livehint-ai`, comparing tutor-a 50%, tutor-b 50%. 24 people are enrolled.
    I read this less than a minute ago.
    I do up to 8 requests of a message, so I left out the last 2.
    [Archive] [In detail] [Look again]
    ");
    bot.finish().await;
}
