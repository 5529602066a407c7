//! Introducing, asking for and marking participants.

use countersign_sandbox::upgrade::Version;
use insta::assert_snapshot;
use serde_json::json;

use super::{Bench, card, failure};

#[tokio::test]
async fn introducing_with_groups_says_what_it_replaces() {
    let bench = Bench::start(Version::V6_5).await;
    let asked = json!({
        "user": "student-1", "group": { "classId": ["c1", "c2"], "planet": "mars" }, "working_group": { "classId": "c3" },
        "context": "assign-prog",
    });
    assert_snapshot!(card(&bench.proposes("init_experiment_user", asked.clone()).await.card), @"
    Initialize user “student-1”?
    User: student-1
    Groups: classId: c1, c2; planet: mars
    Working group: classId: c3
    ⚠️ These groups replace the ones the platform has for this user.
    ⚠️ The working group c3 isn't one of the user's groups, so group experiments will ignore this user.
    ⚠️ assign-prog has no group type planet, so it has no effect there. Known group types: schoolId, classId, instructorId.
    UpGrade stores users once for all contexts; assign-prog only determines the available group types.
    [Initialize user] [Reject…]
    ✅ UpGrade knows the user student-1 now.
    ");
    let plain = json!({ "user": "student-1", "group": { "class": "5B" }, "context": "Assign-Prog" });
    assert_snapshot!(card(&bench.proposes("init_experiment_user", plain).await.card), @"
    Initialize user “student-1”?
    User: student-1
    Groups: classId: 5B
    ⚠️ These groups replace the ones the platform has for this user.
    UpGrade stores users once for all contexts; assign-prog only determines the available group types.
    [Initialize user] [Reject…]
    ✅ UpGrade knows the user student-1 now.
    ");
    let bare = json!({ "user": "student-1", "context": "assign-prog" });
    assert_snapshot!(card(&bench.proposes("init_experiment_user", bare).await.card), @"
    Initialize user “student-1”?
    User: student-1
    UpGrade stores users once for all contexts, so this applies in assign-prog and every other context.
    No groups were given, so the user's current groups don't change.
    [Initialize user] [Reject…]
    ✅ UpGrade knows the user student-1 now.
    ");
    assert_eq!(bench.does("init_experiment_user", asked).await, "UpGrade knows the user student-1 now.");
    assert_snapshot!(bench.refuses("init_experiment_user", json!({})).await, @"user: Which user? I need the user ID. []");
    assert_snapshot!(
        bench.refuses("init_experiment_user", json!({ "user": "a\nb" })).await,
        @"A user ID must have 1 to 250 characters and no leading or trailing spaces."
    );
}

#[tokio::test]
async fn asking_tells_what_a_known_user_gets_and_enrols_nobody() {
    for version in [Version::V6_5, Version::V6_2] {
        let bench = Bench::start(version).await;
        let asked = json!({ "user": "student-1", "context": "assign-prog" });
        let record = bench.approved("get_decision_point_assignments", asked.clone()).await;
        assert_eq!(
            failure(bench.performs(&record).await),
            "UpGrade doesn't know the user student-1 yet. Initialize the user first."
        );
        bench.does("init_experiment_user", json!({ "user": "student-1" })).await;
        assert_eq!(
            bench.does("get_decision_point_assignments", asked.clone()).await,
            "student-1 gets nothing in assign-prog: the application shows its default everywhere."
        );
        bench.upgrade.has("Math Hints", "enrolling");
        let before = bench.changes();
        let said = bench.does("get_decision_point_assignments", asked).await;
        assert!(said.ends_with(" at SelectSection / absolute_value_plot_equality (“Math Hints”)."), "{said}");
        assert_eq!(bench.changes(), before);
    }
}

#[tokio::test]
async fn asking_needs_a_user_and_a_context() {
    let bench = Bench::start(Version::V6_5).await;
    assert_snapshot!(bench.refuses("get_decision_point_assignments", json!({})).await, @r#"
    user: Which user? I need the user ID. []
    context: In which context? ["assign-prog", "livehint-ai", "mathstream"]
    "#);
}

#[tokio::test]
async fn marking_finds_the_experiment_and_enrols_once() {
    for version in [Version::V6_5, Version::V6_2] {
        let bench = Bench::start(version).await;
        bench.upgrade.has("Math Hints", "enrolling");
        let asked = json!({
            "user": "student-1", "site": "selectsection", "target": "absolute_value_plot_equality", "condition": "Variant",
        });
        let record = bench.approved("mark_decision_point", asked).await;
        reads!(card(&record.card), @"
        Mark SelectSection / absolute_value_plot_equality for “student-1”?
        User: student-1
        Experiment: Math Hints (running, assign-prog)
        Decision point: SelectSection / absolute_value_plot_equality
        Condition: variant
        Status: condition applied
        Enrolled: 0
        Overlapping experiments: none
        UpGrade enrolls users by its own assignment; the condition given here is only recorded.
        [Mark visit] [Reject…]
        ✅ Marked SelectSection / absolute_value_plot_equality for “student-1”.
        ");
        assert!(failure(bench.performs(&record).await).starts_with("UpGrade doesn't know the user student-1 yet"));

        bench.does("init_experiment_user", json!({ "user": "student-1" })).await;
        let once = bench.performs(&record).await;
        let again = bench.performs(&record).await;
        assert_eq!(once, again, "the same mark once more is the same record");
        let details = &bench.registry.tools["get_experiment_details"];
        let details = details.call(&json!({ "experiment_id": "Math Hints" }), None).await.unwrap();
        assert_eq!(details["enrolled_users"], 1);
    }
}

#[tokio::test]
async fn marking_refuses_what_the_experiment_does_not_have() {
    let bench = Bench::start(Version::V6_5).await;
    bench.upgrade.has("Math Hints", "enrolling");
    let at = ("SelectSection", "absolute_value_plot_equality");
    let mut said = Vec::new();
    for asked in [
        json!({ "user": "student-1", "site": at.0 }),
        json!({ "user": "student-1", "site": at.0, "target": at.1, "condition": "purple" }),
        json!({ "user": "student-1", "site": at.0, "target": at.1, "status": "done" }),
        json!({ "user": "student-1", "site": "chat", "target": "chat-tone", "experiment": "Math Hints" }),
    ] {
        said.push(bench.refuses("mark_decision_point", asked).await);
    }
    assert_snapshot!(said.join("\n"), @"
    target: At which target? []
    “Math Hints” has no condition “purple”. It has: control, variant.
    The status can't be “done”. Allowed: condition applied, condition not applied, no condition assigned.
    “Math Hints” has no decision point chat / chat-tone. It has: SelectSection / absolute_value_plot_equality.
    ");
    bench.upgrade.has("Math Hints v2", "enrolling");
    assert_snapshot!(
        bench.refuses("mark_decision_point", json!({ "user": "student-1", "site": at.0, "target": at.1 })).await,
        @r#"experiment: Several experiments share SelectSection / absolute_value_plot_equality. Which one do you mean? ["Math Hints", "Math Hints v2"]"#
    );
}

#[tokio::test]
async fn a_mark_may_name_the_context() {
    let bench = Bench::start(Version::V6_5).await;
    bench.upgrade.has("Math Hints", "enrolling");
    let asked = |context: &str| {
        json!({
            "user": "student-1", "site": "SelectSection", "target": "absolute_value_plot_equality", "context": context,
        })
    };
    let found = bench.proposes("mark_decision_point", asked("assign-prog")).await.card;
    assert_eq!(found.facts[1].after.words(), "Math Hints (running, assign-prog)");
    let by_experiment = bench.proposes("mark_decision_point", asked("math hints")).await.card;
    assert_eq!(by_experiment.facts, found.facts, "people say “in” of both");
    assert_snapshot!(bench.refuses("mark_decision_point", asked("mathstream")).await, @"
    No experiment in mathstream uses the decision point SelectSection / absolute_value_plot_equality; “Math Hints” in assign-prog has it.
    [Mark it in Math Hints → mark SelectSection / absolute_value_plot_equality for user student-1 in Math Hints]
    ");
    let mut both = asked("mathstream");
    both["experiment"] = "Math Hints".into();
    assert_snapshot!(bench.refuses("mark_decision_point", both).await, @"“Math Hints” is in assign-prog, not in mathstream.");
}
