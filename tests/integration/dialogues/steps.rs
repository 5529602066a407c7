//! Several requests in one message, done in order.

use countersign_sandbox::faults::When;
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

    assert_snapshot!(thread.outcome("bo", "Create experiment").await, @"
    ✅ *Created “Foo”. It stays inactive until someone starts it.*
    Approved by @bo · ‹time›
    Asked by @ana · digest `‹id›`
    [Undo: delete experiment] [Show all]
    ---
    @ana Created “Foo”. It stays inactive until someone starts it. Approved by bo. Next: start it.
    ---
    ‹Start “Foo”, open as the second step›
    ");
    assert_eq!(bot.upgrade.effects().len(), 1, "the second card waits");

    assert_snapshot!(thread.outcome("bo", "Start experiment").await, @"
    ✅ *Started “Foo”: it is running now.*
    Approved by @bo · ‹time›
    *Status*  inactive → *running*
    Asked by @ana · digest `‹id›`
    [Undo: stop experiment] [Show all]
    ---
    @ana Started “Foo”: it is running now. Approved by bo. What next?
    [Show details]
    ");
    assert_eq!(bot.upgrade.experiment("Foo").unwrap()["state"], "running");
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_are_answered_one_after_the_other() {
    let bot = TestBot::start().await;
    assert_snapshot!(bot.user("ana").answer("list the running experiments; then show details of Math Hints").await, @"
    Step 1 of 2
    ‹running experiments›
    ---
    Step 2 of 2
    Math Hints
    Worked hints when the graph of an absolute value is compared.
    *Status*
    inactive
    *Context*
    `assign-prog`
    *Conditions*
    control 50% (0 enrolled), variant 50% (0 enrolled)
    *Decision points*
    SelectSection / absolute_value_plot_equality
    *Assignment*
    individual
    *After enrollment ends*
    enrolled users keep their condition
    *Users on no list*
    included
    *Consistency*
    individual
    *Enrolled*
    0
    *Tags*
    hints, algebra
    ID `‹id›`
    [Start] [In detail]
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_step_is_the_end_of_it() {
    let (_bot, mut thread) = TestBot::asked("ana", "1. start Math Hints\n2. show it\n3. stop it").await;
    assert_snapshot!(thread.outcome("bo", "Reject…").await, @"
    *Start “Math Hints”*
    Rejected by @bo · ‹time›
    *Status*  inactive → *running*
    Asked by @ana · digest `‹id›`
    [Change and ask again…] [Show all]
    ---
    @ana, @bo rejected this, so nothing was changed.
    To ask for something else, press *Change and ask again…* on the card, or tell me here.
    Not done: show it; stop it.
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_fails_is_the_end_of_it() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints and then show it").await;
    bot.upgrade.fails_next(400, When::BeforeEffect, Some("/experiments/state"));
    assert_snapshot!(thread.outcome("bo", "Start experiment").await, @"
    *Start “Math Hints”*
    ❌ UpGrade refused this: a web page with status 400, not an answer; check the address. I checked: nothing was changed. Correct that and ask again.
    Approved by @bo · ‹time›
    *Status*  inactive → *running*
    Asked by @ana · digest `‹id›`
    [Try again] [Show all]
    ---
    @ana, @bo *Start “Math Hints”* didn't work. UpGrade refused this: a web page with status 400, not an answer; check the address. I checked: nothing was changed. Correct that and ask again.
    Not done: show it.
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_in_between_is_answered_and_the_rest_follows() {
    let (_bot, mut thread) = TestBot::hears("ana", "Create experiment Foo in assign-prog and start it").await;
    assert_snapshot!(thread.in_short(), @"
    Where does it run? I need a decision point: site / target.
    Possible: SelectSection / absolute_value_plot_equality, SelectSection / area_model, SelectSection / fraction_intro, SelectProblem / absolute_value_plot_equality, SelectProblem / area_model, SelectProblem / fraction_intro
    So far: “Foo” in assign-prog. Still needed: decision points.
    After that: start it.
    [SelectSection / absolute_value_plot_equality] [SelectSection / area_model] [SelectSection / fraction_intro] [SelectProblem / absolute_value_plot_equality] [SelectProblem / area_model] [Fill in a form]
    ");
    assert_snapshot!(thread.answer("ana", "SelectSection/area_model").await, @"
    *Create “Foo”?* ⋯
    *Conditions*  control 50%, variant 50%
    ⋯
    *Of 1,000 new users*  about 256 control, 248 variant; 496 go to other experiments at this decision point
    ⋯
    Simulated with UpGrade's own assignment. 95% of the time, each count lands within ±23.
    Defaults used: Conditions (the first of assign-prog), Assignment, Consistency, After enrollment ends, Users on no list.
    ‹not: Simulated with UpGrade's own assignment. 95% of the time, each count lands within ±21.›
    ⋯
    Step 1 of 2. When it is done: start it.
    ⋯
    ");
    assert_snapshot!(thread.outcome("bo", "Create experiment").await, @"
    ✅ *Created “Foo”. It stays inactive until someone starts it.*
    Approved by @bo · ‹time›
    Asked by @ana · digest `‹id›`
    [Undo: delete experiment] [Show all]
    ---
    @ana Created “Foo”. It stays inactive until someone starts it. Approved by bo. Next: start it.
    ---
    *Start “Foo”?* ⋯
    *Conditions*  control 50%, variant 50%
    ⋯
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn never_mind_ends_the_rest() {
    let (bot, mut thread) = TestBot::asked("ana", "Create experiment Foo in assign-prog and start it").await;
    assert_snapshot!(thread.answer("ana", "never mind").await, @"
    OK, dropped. Nothing was changed.
    I didn't run these steps of your earlier request: start it.
    ");

    let mut thread = bot.user("ana").asks("start Math Hints and then show it").await;
    assert_snapshot!(thread.answer("ana", "never mind").await, @"
    *Start “Math Hints”*
    Withdrawn by @ana · ‹time›
    *Status*  inactive → *running*
    Asked by @ana · digest `‹id›`
    [Change and ask again…] [Show all]
    ---
    @ana *Start “Math Hints”* was withdrawn, so nothing was changed.
    Not done: show it.
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_meanwhile_neither_loses_nor_mixes_the_steps() {
    let mut bot = TestBot::start().await;
    let root = {
        let mut thread = bot.user("ana").asks("start Math Hints and then show it in short").await;
        thread.says("bo", "@countersign show Running Test in short").await;
        assert_snapshot!(thread.answer("bo", "@countersign list the paused experiments, then pause Lesson Video Hints and show it in short").await, @"
        *Running Test* is paused in `assign-prog`, comparing control 50%, variant 50%. 24 users are enrolled.
        [Resume] [In detail]
        ---
        Step 1 of 3
        1 experiment (paused):
        Name | Status | Context | Conditions
        Running Test | paused | assign-prog | control 50%, variant 50%
        ---
        *Stop “Lesson Video Hints”?* ⋯
        Step 2 of 3. When it is done: show it in short.
        Asked by @bo · anyone in this channel can approve · expires ‹time› · digest `‹id›`
        ⋯
        ");
        thread.root.clone()
    };
    bot.restart().await;
    let mut thread = Thread::new(&bot, "experiments", root);
    thread.skip();
    assert_snapshot!(thread.outcome("bo", "Start experiment").await, @"
    ✅ *Started “Math Hints”: it is running now.*
    Approved by @bo · ‹time›
    *Status*  inactive → *running*
    Asked by @ana · digest `‹id›`
    [Undo: stop experiment] [Show all]
    ---
    @ana Started “Math Hints”: it is running now. Approved by bo. Next: show it in short.
    ---
    Step 2 of 2
    *Math Hints* is running in `assign-prog`, comparing control 50%, variant 50%. Nobody is enrolled.
    [Stop] [In detail]
    ");
    assert_snapshot!(thread.outcome("bo", "Stop experiment").await, @"
    ✅ *Stopped “Lesson Video Hints”: no new users are enrolled.*
    Approved by @bo · ‹time›
    *Status*  running → *paused*
    Asked by @bo · digest `‹id›`
    [Undo: resume experiment] [Show all]
    ---
    @bo Stopped “Lesson Video Hints”: no new users are enrolled. Next: show it in short.
    ---
    Step 3 of 3
    *Lesson Video Hints* is paused in `mathstream`, comparing control 34%, question-hint-default 33%, question-hint-tutorbot 33%. 24 users are enrolled.
    [Resume] [In detail]
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_of_the_card_keeps_what_follows() {
    let bot = TestBot::start().await;
    let said = "Create experiment Foo in assign-prog at SelectSection/area_model weights 70/30 and start it";
    let mut thread = bot.user("ana").asks(said).await;
    assert_snapshot!(thread.answer("ana", "no, at 60/40").await, @"
    *Create “Foo”*
    Replaced by a newer request · ‹time› · ‹the newer card›
    [Show all]
    ---
    *Create “Foo”?* ⋯
    *Conditions*  control 60%, variant 40%
    ⋯
    *Of 1,000 new users*  about 306 control, 198 variant; 496 go to other experiments at this decision point
    ⋯
    Simulated with UpGrade's own assignment. 95% of the time, each count lands within ±22.
    Defaults used: Conditions (the first of assign-prog), Assignment, Consistency, After enrollment ends, Users on no list.
    ‹not: Simulated with UpGrade's own assignment. 95% of the time, each count lands within ±21.›
    ⋯
    Step 1 of 2. When it is done: start it.
    Replaces the open card: Create “Foo”.
    ⋯
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_to_do_something_else_ends_the_rest() {
    let (_bot, mut thread) = TestBot::asked("ana", "Create experiment Foo in assign-prog and start it").await;
    assert_snapshot!(thread.answer("ana", "start Math Hints").await, @"
    I didn't run these steps of your earlier request: start it.
    ---
    ‹Start “Math Hints”, open›
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_eight_are_too_many() {
    let bot = TestBot::start().await;
    let names = ["Math Hints", "Running Test", "Chat Tone", "Class Hint Rollout", "Lesson Video Hints"];
    let all: Vec<_> = names.iter().chain(&names).map(|name| format!("- show {name} in short")).collect();
    let thread = bot.user("ana").says(&all.join("\n")).await;
    assert_eq!(thread.messages().len(), 8);
    assert_snapshot!(thread.last_in_short(), @"
    Step 8 of 8
    *Chat Tone* is cancelled in `livehint-ai`, comparing tutor-a 50%, tutor-b 50%. 24 users are enrolled.
    Fetched less than a minute ago.
    I handle up to 8 requests per message, so I left out the last 2.
    [Archive] [In detail] [Refresh]
    ");
}
