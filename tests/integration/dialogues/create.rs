//! Making an experiment, answer by answer.

use insta::assert_snapshot;

use crate::support::bot::TestBot;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_asked_for_one_by_one() {
    let (bot, mut thread) = TestBot::hears("ana", "Create experiment Foo").await;
    assert_snapshot!(thread.in_short(), @"
    Which context (application) is it for?
    So far: “Foo”. Still needed: context, decision points.
    [assign-prog] [livehint-ai] [mathstream] [Fill in a form]
    ");
    assert_snapshot!(thread.answer("ana", "assign-prog").await, @"
    Where does it run? I need a decision point: site / target.
    Possible: SelectSection / absolute_value_plot_equality, SelectSection / area_model, SelectSection / fraction_intro, SelectProblem / absolute_value_plot_equality, SelectProblem / area_model, SelectProblem / fraction_intro
    So far: “Foo” in assign-prog. Still needed: decision points.
    [SelectSection / absolute_value_plot_equality] [SelectSection / area_model] [SelectSection / fraction_intro] [SelectProblem / absolute_value_plot_equality] [SelectProblem / area_model] [Fill in a form]
    ");
    assert_snapshot!(thread.outcome("ana", "SelectSection / area_model").await, @"
    @ana chose *SelectSection / area_model*.
    ---
    *Create “Foo”?* ⋯
    *Conditions*  control 50%, variant 50%
    ⋯
    *Of 1,000 new users*  about 256 control, 248 variant; 496 go to other experiments at this decision point
    ⋯
    Simulated with UpGrade's own assignment. 95% of the time, each count lands within ±23.
    Defaults used: Conditions (the first of assign-prog), Assignment, Consistency, After enrollment ends, Users on no list.
    ‹not: Simulated with UpGrade's own assignment. 95% of the time, each count lands within ±21.›
    ⋯
    ");
    assert!(!bot.upgrade.contains("Foo"), "nothing is made before a click");
    assert_snapshot!(thread.outcome("bo", "Create experiment").await, @"
    ✅ *Created “Foo”. It stays inactive until someone starts it.*
    Approved by @bo · ‹time›
    Asked by @ana · digest `‹id›`
    [Undo: delete experiment] [Show all]
    ---
    @ana Created “Foo”. It stays inactive until someone starts it. Approved by bo. What next?
    [Start experiment] [Show details]
    ");
    let made = bot.upgrade.experiment("Foo").unwrap();
    assert_eq!((&made["context"][0], &made["state"]), (&"assign-prog".into(), &"inactive".into()));

    assert_snapshot!(thread.outcome("ana", "Start experiment").await, @"
    @ana chose *Start experiment*.
    ---
    *Start “Foo”?* ⋯
    *Conditions*  control 50%, variant 50%
    ⋯
    ‹not: Step 2 of 2.›
    ⋯
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_in_one_breath_goes_straight_to_the_card() {
    let bot = TestBot::start().await;
    let mut thread = bot
        .user("ana")
        .says(
            "create an experiment Hint Timing in assign-prog with conditions control, variant weights 70/30 \
             at SelectSection / area_model assigned by classId",
        )
        .await;
    assert_snapshot!(thread.in_short(), @"
    *Create “Hint Timing”?*
    *Name*  *Hint Timing*
    *Context*  `assign-prog`
    *Conditions*  control 70%, variant 30%
    *Decision points*  SelectSection / area_model
    *Assignment*  by group (classId)
    *Consistency*  group
    *After enrollment ends*  enrolled users keep their condition
    *Users on no list*  included
    *Of 100 new groups (classId)*  about 36 control, 15 variant; 49 go to other experiments at this decision point
    ⚠️ “*Running Test*”, paused, has SelectSection / area_model too. Each user takes part in only one experiment at a decision point.
    Simulated with UpGrade's own assignment. 95% of the time, each count lands within ±7. Everyone in a group gets the same condition, so the split of users depends on the group sizes.
    Defaults used: Consistency, After enrollment ends, Users on no list.
    It stays inactive until someone starts it.
    ‹ana asks, anyone may decide› [Create experiment] [Reject…] [Withdraw] [Edit…] [Show all]
    ");
    thread.clicks("ana", "Create experiment").await;
    let made = bot.upgrade.experiment("Hint Timing").unwrap();
    let weights: Vec<_> = made["conditions"].as_array().unwrap().iter().map(|c| &c["assignmentWeight"]).collect();
    assert_eq!(weights, [70, 30]);
    assert_eq!((&made["assignmentUnit"], &made["group"]), (&"group".into(), &"classId".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_context_is_refused_with_the_valid_ones() {
    let (_bot, mut thread) = TestBot::hears("ana", "create experiment Foo in asign").await;
    assert_snapshot!(thread.in_short(), @"
    No context is called “*asign*”. Available contexts: assign-prog, livehint-ai, mathstream.
    [assign-prog] [livehint-ai] [mathstream]
    ");
    thread.clicks("ana", "assign-prog").await;
    assert!(thread.heard().contains("I need a decision point"), "the name is not asked for again");
    thread.says("ana", "SelectSection / area_model").await;
    assert!(thread.heard().starts_with("*Create “Foo”?*"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_that_the_context_does_not_know_is_asked_about() {
    let (_bot, mut thread) = TestBot::hears(
        "ana",
        "create experiment Foo in assign-prog with conditions control, hints weights 60/40 at SelectSection/area_model",
    )
    .await;
    assert_snapshot!(thread.heard(), @"
    assign-prog has no condition “hints”. It has: control, variant, concrete, abstract. Which should I compare?
    So far: “Foo” in assign-prog, conditions control, hints, at SelectSection / area_model, 60/40.
    [use it anyway] [Fill in a form]
    ");
    thread.says("ana", "control and Abstract").await;
    assert!(thread.heard().contains("*Conditions*  control 60%, abstract 40%\n"), "{}", thread.last());
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_and_points_of_ones_own_are_asked_about_and_used() {
    let (_bot, mut thread) =
        TestBot::hears("ana", "create experiment Badges in assign-prog with conditions blue, green at Lobby/badge")
            .await;
    assert_snapshot!(thread.heard(), @"
    assign-prog has no conditions “blue”, “green”. It has: control, variant, concrete, abstract. Which should I compare?
    So far: “Badges” in assign-prog, conditions blue, green, at Lobby / badge.
    [use them anyway] [Fill in a form]
    ");
    thread.clicks("ana", "use them anyway").await;
    assert_snapshot!(thread.heard(), @"
    @ana chose *use them anyway*.
    ---
    *Create “Badges”?*
    *Name*  *Badges*
    *Context*  `assign-prog`
    *Conditions*  blue 50%, green 50%
    *Decision points*  Lobby / badge
    *Assignment*  individual
    *Consistency*  individual
    *After enrollment ends*  enrolled users keep their condition
    *Users on no list*  included
    *Of 1,000 new users*  about 496 blue, 504 green
    *Overlapping experiments*  none
    ⚠️ assign-prog doesn't list “blue”, “green”, “Lobby”, “badge”; its app has to know them.
    Simulated with UpGrade's own assignment. 95% of the time, each count lands within ±31.
    Defaults used: Assignment, Consistency, After enrollment ends, Users on no list.
    It stays inactive until someone starts it.
    Asked by @ana · anyone in this channel can approve · expires ‹time› · digest `‹id›`
    [Create experiment] [Reject…] [Withdraw] [Edit…] [Show all]
    ");
    thread.clicks("bo", "Create experiment").await;
    assert!(thread.heard().contains("Created"), "{}", thread.last());
}

#[tokio::test(flavor = "multi_thread")]
async fn never_mind_drops_it() {
    let (bot, mut thread) = TestBot::asked("ana", "create experiment Foo").await;
    assert_snapshot!(thread.answer("ana", "never mind").await, @"OK, dropped. Nothing was changed.");
    assert_snapshot!(thread.answer("ana", "@countersign assign-prog").await, @"‹not understood›");
    assert!(bot.upgrade.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn weights_that_do_not_add_up_are_explained() {
    let (_bot, mut thread) = TestBot::hears("ana", "create experiment Foo in assign-prog with conditions control, variant weights 70/40 at SelectSection/area_model").await;
    assert_snapshot!(thread.in_short(), @"
    The weights add up to 110. They must total 100, each from 0 to 100.
    In the same ratio, that is 64/36.
    [64/36]
    ");
    assert_snapshot!(thread.answer("ana", "weights 60/40").await, @"
    *Create “Foo”?* ⋯
    *Conditions*  control 60%, variant 40%
    ⋯
    *Of 1,000 new users*  about 306 control, 198 variant; 496 go to other experiments at this decision point
    ⋯
    Simulated with UpGrade's own assignment. 95% of the time, each count lands within ±22.
    ‹not: Simulated with UpGrade's own assignment. 95% of the time, each count lands within ±21.›
    ⋯
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_in_between_does_not_lose_what_was_given() {
    let (_bot, mut thread) = TestBot::hears("ana", "create an experiment").await;
    assert_snapshot!(thread.in_short(), @"
    What should the experiment be called?
    Needed: name, context, decision points. You can give several at once, or say never mind.
    [Fill in a form]
    ");
    assert_snapshot!(thread.answer("ana", "Foo").await, @"
    Which context (application) is it for?
    So far: “Foo”. Still needed: context, decision points.
    [assign-prog] [livehint-ai] [mathstream] [Fill in a form]
    ");
    thread.says("ana", "is UpGrade running?").await;
    assert!(thread.heard().contains("6.5.0"));
    assert_snapshot!(thread.answer("ana", "mathstream").await, @"
    Where does it run? I need a decision point: site / target.
    So far: “Foo” in mathstream. Still needed: decision points.
    [lesson-stream / question-hint] [lesson-stream / lesson-video] [lesson-quiz / question-hint] [lesson-quiz / lesson-video] [Fill in a form]
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_of_another_experiment_are_copied_into_the_draft() {
    let (_bot, mut thread) = TestBot::hears("ana", "create Foo with the same conditions as Lesson Video Hints").await;
    let heard = thread.heard();
    assert!(
        heard.contains("So far: “Foo”, the conditions of “Lesson Video Hints”. Still needed: decision points."),
        "{heard}"
    );
    thread.says("ana", "the same as Lesson Video Hints").await;
    let heard = thread.heard();
    for part in [
        "*Create “Foo”?*",
        "control 34%, question-hint-default 33%, question-hint-tutorbot 33%",
        "lesson-stream / lesson-video",
        "`mathstream`",
    ] {
        assert!(heard.contains(part), "{part}: {heard}");
    }
}
