//! Creating, starting, changing and deleting experiments where all goes well, and what is refused.

use countersign_sandbox::upgrade::Version;
use insta::assert_snapshot;
use serde_json::json;

use super::{Bench, card};

const BOTH: [Version; 2] = [Version::V6_5, Version::V6_2];

#[tokio::test]
async fn creating_fills_in_defaults_and_says_so() {
    for version in BOTH {
        let bench = Bench::start(version).await;
        let asked = json!({ "name": "Fraction Pictures", "context": "Assign-Prog", "site": "SelectSection", "target": "area_model" });
        let proposal = bench.proposes("create_experiment", asked.clone()).await;
        reads!(card(&proposal.card), @"
        Create “Fraction Pictures”?
        Name: Fraction Pictures
        Context: assign-prog
        Conditions: control 50%, variant 50%
        Decision points: SelectSection / area_model
        Assignment: individual
        Consistency: individual
        After enrollment ends: enrolled users keep their condition
        Users on no list: included
        Of 1,000 new users: about 496 control, 504 variant
        Overlapping experiments: none
        Simulated with UpGrade's own assignment. 95% of the time, each count lands within ±31.
        Defaults used: Conditions (the first of assign-prog), Assignment, Consistency, After enrollment ends, Users on no list.
        It stays inactive until someone starts it.
        [Create experiment] [Reject…]
        ✅ Created “Fraction Pictures”. It stays inactive until someone starts it.
        ");
        assert_eq!(bench.changes(), 0, "a card changes nothing");

        bench.does("create_experiment", asked).await;
        let made = bench.upgrade.experiment("Fraction Pictures").unwrap();
        assert_eq!(made["state"], "inactive");
        assert_eq!(made["conditions"].as_array().unwrap().len(), 2);
        assert_eq!(made["partitions"][0]["target"], "area_model");
        assert_eq!(bench.changes(), 1);
    }
}

#[tokio::test]
async fn creating_takes_what_people_say() {
    let bench = Bench::start(Version::V6_5).await;
    let asked = json!({
        "name": "Class Pictures", "description": "By class.", "context": "assign-prog",
        "decision_points": ["SelectSection / area_model", { "site": "SelectProblem", "target": "fraction_intro" }],
        "conditions": "concrete, abstract, control", "weights": "50/30/20",
        "unit": "group", "group": "classid", "tags": ["algebra"],
    });
    assert_snapshot!(card(&bench.proposes("create_experiment", asked.clone()).await.card), @"
    Create “Class Pictures”?
    Name: Class Pictures
    Description: By class.
    Context: assign-prog
    Conditions: concrete 50%, abstract 30%, control 20%
    Decision points: SelectSection / area_model, SelectProblem / fraction_intro
    Assignment: by group (classId)
    Consistency: group
    After enrollment ends: enrolled users keep their condition
    Users on no list: included
    Tags: algebra
    Of 100 new groups (classId): about 52 concrete, 28 abstract, 20 control
    Overlapping experiments: none
    Simulated with UpGrade's own assignment. 95% of the time, each count lands within ±10. Everyone in a group gets the same condition, so the split of users depends on the group sizes.
    Defaults used: Consistency, After enrollment ends, Users on no list.
    It stays inactive until someone starts it.
    [Create experiment] [Reject…]
    ✅ Created “Class Pictures”. It stays inactive until someone starts it.
    ");
    bench.does("create_experiment", asked).await;
    assert_eq!(bench.upgrade.experiment("Class Pictures").unwrap()["group"], "classId");
}

#[tokio::test]
async fn creating_asks_for_what_is_missing_in_order() {
    let bench = Bench::start(Version::V6_5).await;
    assert_snapshot!(bench.refuses("create_experiment", json!({})).await, @r#"
    name: What should the experiment be called? []
    context: Which context (application) is it for? ["assign-prog", "livehint-ai", "mathstream"]
    decision_points: Where does it run? I need a decision point: site / target. []
    "#);
    let rest = bench.refuses("create_experiment", json!({ "name": "X", "context": "livehint-ai" })).await;
    assert_snapshot!(rest, @r#"decision_points: Where does it run? I need a decision point: site / target. ["chat / chat-tone"]"#);
    // What the button says is understood.
    let answered = json!({ "name": "X", "context": "livehint-ai", "decision_points": "chat / chat-tone" });
    bench.does("create_experiment", answered).await;
}

#[tokio::test]
async fn creating_refuses_what_the_platform_would_take() {
    let bench = Bench::start(Version::V6_5).await;
    let mut said = Vec::new();
    for change in [
        json!({ "context": "asign" }),
        json!({ "site": "Lobby" }),
        json!({ "target": "lift" }),
        json!({ "conditions": ["control", "hints", "Examples"] }),
        json!({ "conditions": ["control", "default"] }),
        json!({ "conditions": ["control", "Control"] }),
        json!({ "weights": [60, 60] }),
        json!({ "weights": [150, -50] }),
        json!({ "weights": "70/20/10", "conditions": ["control", "variant"] }),
        json!({ "unit": "team" }),
        json!({ "consistency": "group" }),
        json!({ "weights": {} , "conditions": 7 }),
    ] {
        let mut asked =
            json!({ "name": "X", "context": "assign-prog", "site": "SelectSection", "target": "area_model" });
        asked.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        said.push(bench.refuses("create_experiment", asked).await);
    }
    assert_snapshot!(said.join("\n"), @r#"
    No context is called “asign”. Available contexts: assign-prog, livehint-ai, mathstream.
    [assign-prog → create X in assign-prog]
    [livehint-ai → create X in livehint-ai]
    [mathstream → create X in mathstream]
    decision_points: assign-prog has no site “Lobby”. It has: SelectSection, SelectProblem. Where should it run? ["use it anyway"]
    decision_points: assign-prog has no target “lift”. It has: absolute_value_plot_equality, area_model, fraction_intro. Where should it run? ["use it anyway"]
    conditions: assign-prog has no conditions “hints”, “Examples”. It has: control, variant, concrete, abstract. Which should I compare? ["use them anyway"]
    The condition code “default” can't be used: it is reserved for the application's own default.
    The condition code “control” can't be used: it appears twice.
    The weights add up to 120. They must total 100, each from 0 to 100.
    In the same ratio, that is 50/50.
    [50/50 → 50/50]
    The weights add up to 100. They must total 100, each from 0 to 100.
    Give the weights again, for example 50/50.
    Each condition needs a weight: control, variant.
    Write them in that order, such as 70/30, or by name.
    The assignment unit can't be “team”. Allowed: individual, group, within-subjects.
    The consistency rule can be “group” only with assignment by group. This experiment assigns users individually.
    Give a group type, such as assigned by classId, or choose the rule individual or experiment.
    A value has the wrong type, so I couldn't use it.
    Give the value again, for example as it appears on the platform.
    "#);
    assert_eq!(bench.changes(), 0);
}

#[tokio::test]
async fn a_second_experiment_of_a_name_is_pointed_out() {
    let bench = Bench::start(Version::V6_5).await;
    bench.upgrade.has("Math Hints", "inactive");
    let asked =
        json!({ "name": "Math Hints", "context": "assign-prog", "decision_points": "SelectSection/area_model" });
    let proposal = bench.proposes("create_experiment", asked).await;
    assert_snapshot!(proposal.card.warnings[0].words(), @"An experiment with this name already exists (inactive in assign-prog), so there will be two.");
}

#[tokio::test]
async fn a_life_of_starting_stopping_resuming_cancelling() {
    for version in BOTH {
        let bench = Bench::start(version).await;
        bench.upgrade.has("Math Hints", "inactive");
        let start = json!({ "experiment": "math hints", "status": "start" });
        reads!(card(&bench.proposes("update_experiment_status", start.clone()).await.card), @"
        Start “Math Hints”?
        Status: inactive → running
        Context: assign-prog
        Conditions: control 50%, variant 50%
        Decision points: SelectSection / absolute_value_plot_equality
        Enrolled: 0
        Overlapping experiments: none
        [Start experiment] [Reject…]
        ✅ Started “Math Hints”: it is running now.
        ");
        assert_eq!(
            bench.does("update_experiment_status", start.clone()).await,
            "Started “Math Hints”: it is running now."
        );
        reads!(
            bench.refuses("update_experiment_status", start).await,
            @"“Math Hints” is already running, so there's nothing to change."
        );

        let stop = json!({ "experiment": "Math Hints", "status": "paused" });
        reads!(card(&bench.proposes("update_experiment_status", stop.clone()).await.card), @"
        Stop “Math Hints”?
        Status: running → paused
        Context: assign-prog
        After enrollment ends: enrolled users keep their condition
        Enrolled: 0
        Overlapping experiments: none
        Stopping only pauses it, so it can be resumed. To end it permanently, ask me to cancel it.
        [Stop experiment] [Reject…]
        ✅ Stopped “Math Hints”: no new users are enrolled.
        ");
        bench.does("update_experiment_status", stop).await;
        let resume = json!({ "experiment": "Math Hints", "status": "resume" });
        assert_eq!(bench.does("update_experiment_status", resume).await, "Resumed “Math Hints”: it is running again.");
        let cancel = json!({ "experiment": "Math Hints", "status": "cancelled" });
        reads!(card(&bench.proposes("update_experiment_status", cancel.clone()).await.card), @"
        Cancel “Math Hints”?
        Status: running → cancelled
        Context: assign-prog
        Enrolled: 0
        Overlapping experiments: none
        ⚠️ A cancelled experiment can't be started again here.
        [Cancel experiment] (red) [Reject…]
        ✅ Cancelled “Math Hints”: nobody gets its conditions anymore.
        ");
        bench.does("update_experiment_status", cancel).await;
        reads!(
            bench.refuses("update_experiment_status", json!({ "experiment": "Math Hints", "status": "start" })).await,
            @"
        “Math Hints” is cancelled, so I won't make it running. UpGrade would accept that, but it isn't good practice. I can make it: archived.
        [archive Math Hints → archive Math Hints]
        "
        );
        assert_eq!(bench.changes(), 4);
    }
}

#[tokio::test]
async fn a_status_that_is_not_said_is_asked_for_with_what_is_possible() {
    let bench = Bench::start(Version::V6_5).await;
    bench.upgrade.has("Math Hints", "inactive");
    assert_snapshot!(
        bench.refuses("update_experiment_status", json!({ "experiment": "Math Hints" })).await,
        @r#"status: “Math Hints” is inactive. What should its new status be? ["schedule", "start", "cancel"]"#
    );
    assert_snapshot!(
        bench.refuses("update_experiment_status", json!({ "experiment": "Math Hints", "status": "finish" })).await,
        @"The status can't be “finish”. Allowed: running, paused, scheduled, inactive, cancelled, archived."
    );
    assert_snapshot!(bench.refuses("update_experiment_status", json!({ "status": "stop" })).await, @"
    No experiment can become paused now.
    [List experiments → list experiments]
    ");
}

#[tokio::test]
async fn a_name_that_is_not_quite_right_is_never_guessed() {
    let bench = Bench::start(Version::V6_5).await;
    bench.upgrade.has("Math Hints", "inactive");
    assert_snapshot!(bench.refuses("update_experiment_status", json!({ "experiment": "Mth Hints", "status": "start" })).await, @r"
    No experiment is called “Mth Hints”. Did you mean “Math Hints”?
    [Math Hints → start Math Hints]
    ");
    assert_snapshot!(bench.refuses("delete_experiment", json!({ "experiment": "zebra" })).await, @"
    No experiment is called “zebra”.
    [List experiments → list experiments]
    ");

    let twin = bench.upgrade.has("Math Hints", "enrolling");
    let said = bench.refuses("delete_experiment", json!({ "experiment": "Math Hints" })).await;
    assert!(said.starts_with("Several experiments are called “Math Hints”. Which one do you mean?"), "{said}");
    assert!(said.contains(&format!("delete {twin}]")), "{said}");
    bench.does("delete_experiment", json!({ "experiment": twin })).await;
    assert_eq!(bench.upgrade.experiment("Math Hints").unwrap()["state"], "inactive", "the other one is still there");
}

#[tokio::test]
async fn deleting_shouts_and_counts() {
    for version in BOTH {
        let bench = Bench::start(version).await;
        bench.upgrade.has("Math Hints", "enrolling");
        for user in ["student-1", "student-2"] {
            bench.does("init_experiment_user", json!({ "user": user })).await;
            let mark = json!({ "user": user, "site": "SelectSection", "target": "absolute_value_plot_equality" });
            bench.does("mark_decision_point", mark).await;
        }
        let asked = json!({ "experiment": "Math Hints" });
        let proposal = bench.proposes("delete_experiment", asked.clone()).await;
        let words = card(&proposal.card);
        assert!(words.starts_with("Permanently delete “Math Hints”?\nStatus: running"), "{words}");
        assert!(words.contains("⚠️ This can't be undone. The enrollments of 2 users are deleted too.\n"), "{words}");
        assert!(words.contains("⚠️ It is running, so users are getting its conditions now.\n"), "{words}");
        assert!(words.contains("[Delete permanently] (red) [Reject…]"), "{words}");
        assert_eq!(bench.does("delete_experiment", asked).await, "“Math Hints” was permanently deleted.");
        assert!(!bench.upgrade.contains("Math Hints"));
    }
}

#[tokio::test]
async fn updating_shows_before_and_after_and_touches_nothing_else() {
    for version in BOTH {
        let bench = Bench::start(version).await;
        bench.upgrade.has("Math Hints", "enrolling");
        let before = bench.upgrade.experiment("Math Hints").unwrap();
        let asked = json!({ "experiment": "Math Hints", "weights": "70/30", "description": "Do hints help?", "post_rule": "continue" });
        let proposal = bench.proposes("update_experiment", asked.clone()).await;
        reads!(card(&proposal.card), @"
        Update “Math Hints”: description, weights?
        Description: none → Do hints help?
        Conditions: control 50%, variant 50% → control 70%, variant 30%
        Of 1,000 new users: about 496 control, 504 variant → about 689 control, 311 variant
        Enrolled: 0
        Overlapping experiments: none
        ⚠️ It is running: nobody is enrolled yet, so everyone is assigned under the new design.
        It is running in assign-prog.
        Simulated with UpGrade's own assignment. 95% of the time, each count lands within ±29.
        [Update experiment] [Reject…]
        ✅ Updated “Math Hints”: description, weights.
        ");
        bench.does("update_experiment", asked.clone()).await;
        let after = bench.upgrade.experiment("Math Hints").unwrap();
        assert_eq!(after["conditions"][0]["assignmentWeight"], 70);
        assert_eq!(after["conditions"][0]["id"], before["conditions"][0]["id"], "it is the same condition");
        for untouched in ["id", "name", "context", "state", "tags", "filterMode", "assignmentUnit", "startOn"] {
            assert_eq!(after[untouched], before[untouched], "{untouched}");
        }
        reads!(
            bench.refuses("update_experiment", asked).await,
            @"“Math Hints” is already like that, so there's nothing to change."
        );

        let undo = proposal.undo.unwrap();
        bench.does(&undo.name, undo.parameters).await;
        let undone = bench.upgrade.experiment("Math Hints").unwrap();
        assert_eq!(undone["conditions"][0]["assignmentWeight"], 50);
        assert_eq!(undone["description"], "");
    }
}

#[tokio::test]
async fn updating_every_field_reads_back() {
    for version in BOTH {
        let bench = Bench::start(version).await;
        bench.upgrade.has("Math Hints", "inactive");
        let asked = json!({
            "experiment": "Math Hints", "new_name": "Math Hints v2", "tags": ["algebra"],
            "conditions": [{ "code": "control", "weight": 40 }, { "code": "variant", "weight": 30 }, { "code": "concrete", "weight": 30 }],
            "decision_points": ["SelectSection / absolute_value_plot_equality", "SelectProblem / area_model"],
            "group": "classId", "consistency": "group", "post_rule": "assign concrete", "filter_mode": "excludeAll",
        });
        let record = bench.approved("update_experiment", asked).await;
        reads!(card(&record.card), @"
        Update “Math Hints”: 8 fields?
        Name: Math Hints → Math Hints v2
        Tags: none → algebra
        Conditions: control 50%, variant 50% → control 40%, variant 30%, concrete 30%
        Decision points: SelectSection / absolute_value_plot_equality → SelectSection / absolute_value_plot_equality, SelectProblem / area_model
        Assignment: individual → by group (classId)
        Consistency: individual → group
        After enrollment ends: enrolled users keep their condition → enrolled users get concrete
        Users on no list: included → excluded
        Enrolled: 0
        Overlapping experiments: none
        ⚠️ Nobody will be enrolled: only users on its inclusion list are included, and that list is empty.
        It is inactive in assign-prog.
        [Update experiment] [Reject…]
        ✅ Updated “Math Hints v2”: 8 fields.
        ");
        let action = bench.action("update_experiment");
        assert_eq!(action.probe(&record).await, countersign::graph::action::Probed::DidNotHappen);
        let performed = bench.performs(&record).await;
        let countersign::graph::action::Performed::Ended(outcome) = performed else { panic!("{performed:?}") };
        assert_eq!(outcome.summary().words(), "Updated “Math Hints v2”: 8 fields.");
        assert_eq!(action.probe(&record).await, countersign::graph::action::Probed::Happened(outcome));
    }
}

#[tokio::test]
async fn updating_refuses_what_makes_no_sense() {
    let bench = Bench::start(Version::V6_5).await;
    bench.upgrade.has("Math Hints", "inactive");
    let mut said = Vec::new();
    for change in [
        json!({}),
        json!({ "weights": "70/20" }),
        json!({ "post_rule": "assign purple" }),
        json!({ "unit": "group" }),
        json!({ "color": "purple" }),
    ] {
        let mut asked = json!({ "experiment": "Math Hints" });
        asked.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        said.push(bench.refuses("update_experiment", asked).await.lines().next().unwrap().to_owned());
    }
    assert_snapshot!(said.join("\n"), @"
    What should I change about “Math Hints”?
    The weights add up to 90. They must total 100, each from 0 to 100.
    “Math Hints” has no condition “purple”. It has: control, variant.
    group: Which group type is assigned together? []
    “color” can't be set here.
    ");
}

#[tokio::test]
async fn stored_parameters_can_be_prepared_again() {
    let bench = Bench::start(Version::V6_5).await;
    bench.upgrade.has("Math Hints", "inactive");
    for (name, asked) in [
        ("create_experiment", json!({ "name": "X", "context": "livehint-ai", "site": "chat", "target": "chat-tone" })),
        ("update_experiment", json!({ "experiment": "Math Hints", "weights": "70/30", "group": "classId" })),
        ("update_experiment_status", json!({ "experiment": "Math Hints", "status": "start" })),
        ("delete_experiment", json!({ "experiment": "Math Hints" })),
        ("init_experiment_user", json!({ "user": "student-1", "group": { "classId": "c1" } })),
        ("get_decision_point_assignments", json!({ "user": "student-1", "context": "assign-prog" })),
        ("mark_decision_point", json!({ "user": "student-1", "site": "chat", "target": "chat-tone" })),
    ] {
        let first = bench.proposes(name, asked).await;
        let again = bench.proposes(name, first.parameters.clone()).await;
        assert_eq!(first.card.title, again.card.title);
        assert_eq!(first.card.facts, again.card.facts, "{name}");
    }
}
