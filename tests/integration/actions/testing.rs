//! Tests with simulated participants, batch by batch, against the recorded behaviour of the platform.

use countersign::{
    experiments::testing::{
        balance::{Share, Tally},
        fit,
    },
    graph::action::{ActionRecord, Batch, Outcome},
    reply::{Part, Reply},
};
use countersign_sandbox::upgrade::Version;
use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{Bench, card, read, record};

impl Bench {
    /// Makes batches until it is over. `between` happens after each, and learns how many there were.
    async fn makes_batches(&self, record: &mut ActionRecord, mut between: impl AsyncFnMut(usize)) -> Outcome {
        let mut made = 0;
        let batches = self.action(&record.name).batches().expect("it is made in batches");
        loop {
            match batches.next(record, false).await {
                Batch::Made(progress) => {
                    made += 1;
                    between(made).await;
                    record.progress = Some(progress);
                }
                Batch::Ended(outcome) => return outcome,
                Batch::Waits(..) | Batch::Asks(..) | Batch::NotNow | Batch::Elsewhere(_) => {
                    panic!("the platform answers")
                }
            }
        }
    }

    /// The same, with every batch made twice: the first time nobody saved what came of it.
    async fn makes_batches_twice(&self, record: &mut ActionRecord) -> Outcome {
        let batches = self.action(&record.name).batches().expect("it is made in batches");
        loop {
            batches.next(record, false).await;
            match batches.next(record, true).await {
                Batch::Made(progress) => record.progress = Some(progress),
                Batch::Ended(outcome) => return outcome,
                Batch::Waits(..) | Batch::Asks(..) | Batch::NotNow | Batch::Elsewhere(_) => {
                    panic!("the platform answers")
                }
            }
        }
    }

    /// What people read when it is over.
    fn reports(&self, record: &mut ActionRecord, outcome: Outcome) -> Reply {
        let reply = Reply::text(outcome.summary().clone());
        record.outcome = Some(outcome);
        self.action(&record.name).report(record, reply)
    }

    /// A new experiment with these choices, of three conditions.
    async fn has(&self, name: &str, choices: &Value) {
        let mut asked = json!({
            "name": name, "context": "assign-prog", "site": "SelectSection", "target": "area_model",
            "conditions": "control, variant, concrete", "weights": [33.33, 33.33, 33.34],
        });
        asked.as_object_mut().unwrap().extend(choices.as_object().unwrap().clone());
        self.does("create_experiment", asked).await;
    }
}

/// The cells of the only table of a reply, row by row.
fn rows(reply: &Reply) -> Vec<Vec<String>> {
    let table = reply.parts.iter().find_map(|part| match part {
        Part::Table { rows, .. } => Some(rows),
        _ => None,
    });
    let rows = table.expect("there is a table").iter();
    rows.map(|row| row.iter().map(|cell| cell.words()).collect()).collect()
}

/// Every run has names of its own.
fn without_run(words: &str, run: &str) -> String {
    words.replace(run, "test-‹run›")
}

/// Unit, rule, *exclude if reached* and post rule of all thirty recorded tables.
fn recorded_choices() -> Vec<Value> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/upgrade/behaviour");
    let file = folder.join("03-consistency-exclude-if-reached-post-rule.json");
    let recorded: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let choices = |run: &Value| {
        let post_rule = match (run["postExperimentRule"].as_str(), run["revertTo"].as_str()) {
            (Some("assign"), Some("concrete")) => "assign concrete",
            (Some("assign"), _) => "assign default",
            _ => "continue",
        };
        json!({
            "unit": run["assignmentUnit"], "consistency": run["consistencyRule"], "post_rule": post_rule,
            "exclude_if_reached": run["excludeIfReached"],
            "group": if run["assignmentUnit"] == "group" { json!("classId") } else { Value::Null },
        })
    };
    recorded["runs"].as_array().unwrap().iter().map(choices).collect()
}

#[tokio::test]
async fn every_rule_is_kept_as_recorded_even_if_every_batch_is_made_twice() {
    let bench = Bench::start(Version::V6_5).await;
    let all = recorded_choices();
    assert_eq!(all.len(), 30);
    for (nth, choices) in all.iter().enumerate() {
        let name = format!("Trial {nth}");
        bench.has(&name, choices).await;
        let mut test = bench.approved("test_consistency_rules", json!({ "experiment": name })).await;
        let outcome = match nth % 2 {
            0 => bench.makes_batches(&mut test, async |_| {}).await,
            _ => bench.makes_batches_twice(&mut test).await,
        };
        let report = bench.reports(&mut test, outcome);
        let rows = rows(&report);
        assert_eq!(rows.len(), if choices["unit"] == "group" { 10 } else { 6 }, "{choices}");
        assert!(rows.iter().all(|row| row[4] == "✓ fits"), "{choices}: {}", report.words());
        let said = report.words();
        assert!(said.contains(&format!("all {} observations match the rules.", rows.len())), "{said}");
        let experiment = bench.upgrade.experiment(&name).unwrap();
        assert_eq!(experiment["state"], "paused");
        assert_eq!(experiment["stateTimeLogs"].as_array().unwrap().len(), 2, "started once, paused once: {choices}");
        bench.does("delete_experiment", json!({ "experiment": name })).await; // it would share the users of the next one
    }
}

#[tokio::test]
async fn a_card_lists_every_step_and_the_report_every_observation() {
    let bench = Bench::start(Version::V6_2).await;
    let choices = json!({
        "unit": "group", "group": "classId", "consistency": "group", "exclude_if_reached": true,
        "post_rule": "assign concrete", "weights": [50, 50, 0],
    });
    bench.has("Class Pictures", &choices).await;
    let proposal = bench.proposes("test_consistency_rules", json!({ "experiment": "class pictures" })).await;
    let run = proposal.parameters["run"].as_str().unwrap().to_owned();
    assert_snapshot!(without_run(&card(&proposal.card), &run), @"
    Test the consistency rules of “Class Pictures”?
    Rules: by group (classId); consistency group; early visitors are excluded; after enrollment ends, enrolled users get concrete
    Decision point: SelectSection / area_model
    1. Before the start: visit by test-‹run›-0001 (early visitor, group A)
    2. Start experiment: inactive → running
    3. While it runs: visits by the same users, and by test-‹run›-0002 (later visitor, group A), test-‹run›-0003 (later visitor, group B)
    4. Pause experiment: running → paused
    5. While it is paused: visits by the same users, and by test-‹run›-0004 (newcomer, group A), test-‹run›-0005 (newcomer, group B), test-‹run›-0006 (newcomer, group C)
    Limits: 6 test users, this experiment only, at most 10 minutes
    ⚠️ While it runs, real users at SelectSection / area_model are enrolled too.
    ⚠️ It is paused at the end: new groups get no condition, and enrolled users get concrete.
    ⚠️ UpGrade removes enrolled users only together with the experiment.
    You can stop it midway; the experiment then keeps its status at that moment. I'll offer to undo that.
    [Run the test] [Reject…]
    ✅ Tested the consistency rules of “Class Pictures”.
    ");
    let mut test = record(bench.action("test_consistency_rules"), proposal);
    let outcome = bench.makes_batches(&mut test, async |_| {}).await;
    let said = read(&bench.reports(&mut test, outcome));
    // The lots of the groups fall differently each time.
    let said = ["control", "variant"].iter().fold(said, |said, code| said.replace(code, "‹any›"));
    assert_snapshot!(said, @"
    Tested the consistency rules of “Class Pictures”: all 10 observations match the rules. It is paused now.
    Phase | Visitor | Expected | Observed | Result
    Before start | Early visitor, group A | nothing | nothing | ✓ fits
    Running | Early visitor, group A | nothing | nothing | ✓ fits
    Running | Later visitor, group A | nothing | nothing | ✓ fits
    Running | Later visitor, group B | any condition | ‹any› | ✓ fits
    Paused | Early visitor, group A | nothing | nothing | ✓ fits
    Paused | Later visitor, group A | nothing | nothing | ✓ fits
    Paused | Later visitor, group B | concrete | concrete | ✓ fits
    Paused | Newcomer, group A | nothing | nothing | ✓ fits
    Paused | Newcomer, group B | concrete | concrete | ✓ fits
    Paused | Newcomer, group C | nothing | nothing | ✓ fits
    “Nothing” means that the application shows its default.
    [Set to inactive → set “Class Pictures” back to inactive]
    [Resume experiment → resume “Class Pictures”]
    ");
}

#[tokio::test]
async fn what_is_not_as_the_rules_say_is_marked() {
    let bench = Bench::start(Version::V6_5).await;
    bench.has("Trial", &json!({ "weights": [100, 0, 0], "exclude_if_reached": true })).await;
    let mut test = bench.approved("test_consistency_rules", json!({ "experiment": "Trial" })).await;
    let steps_until_paused = 6;
    let outcome = bench
        .makes_batches(&mut test, async |done| {
            if done == steps_until_paused {
                // Somebody changes what holds afterwards, behind the test's back.
                bench.does("update_experiment", json!({ "experiment": "Trial", "post_rule": "assign variant" })).await;
            }
        })
        .await;
    assert_snapshot!(read(&bench.reports(&mut test, outcome)), @"
    Tested the consistency rules of “Trial”: 1 of 6 observations differs from the rules: while it is paused, the later visitor got variant instead of control again. It is paused now.
    Phase | Visitor | Expected | Observed | Result
    Before start | Early visitor | nothing | nothing | ✓ fits
    Running | Early visitor | nothing | nothing | ✓ fits
    Running | Later visitor | any condition | control | ✓ fits
    Paused | Early visitor | nothing | nothing | ✓ fits
    Paused | Later visitor | control again | variant | ✗ differs
    Paused | Newcomer | nothing | nothing | ✓ fits
    “Nothing” means that the application shows its default.
    [Set to inactive → set “Trial” back to inactive]
    [Resume experiment → resume “Trial”]
    ");
}

#[tokio::test]
async fn a_running_or_paused_experiment_is_tested_from_there() {
    let bench = Bench::start(Version::V6_5).await;
    bench.has("Trial", &json!({})).await;
    bench.does("update_experiment_status", json!({ "experiment": "Trial", "status": "start" })).await;
    let asked = json!({ "experiment": "Trial" });
    let proposal = bench.proposes("test_consistency_rules", asked.clone()).await;
    let run = proposal.parameters["run"].as_str().unwrap().to_owned();
    assert_snapshot!(without_run(&card(&proposal.card), &run), @"
    Test the consistency rules of “Trial”?
    Rules: individual; consistency individual; early visitors are included; after enrollment ends, enrolled users keep their condition
    Decision point: SelectSection / area_model
    1. While it runs: visit by test-‹run›-0001 (later visitor)
    2. Pause experiment: running → paused
    3. While it is paused: visits by the same users, and by test-‹run›-0002 (newcomer)
    Left out: visits before the start, since it is already running
    Limits: 2 test users, this experiment only, at most 10 minutes
    ⚠️ It is paused at the end: newcomers get no condition, and enrolled users keep their condition.
    ⚠️ UpGrade removes enrolled users only together with the experiment.
    You can stop it midway; the experiment then keeps its status at that moment. I'll offer to undo that.
    [Run the test] [Reject…]
    ✅ Tested the consistency rules of “Trial”.
    ");
    let mut test = record(bench.action("test_consistency_rules"), proposal);
    let outcome = bench.makes_batches(&mut test, async |_| {}).await;
    let report = bench.reports(&mut test, outcome);
    assert_eq!(rows(&report).len(), 3);
    assert!(read(&report).contains("[Resume experiment → resume “Trial”]"), "{}", read(&report));

    let proposal = bench.proposes("test_consistency_rules", asked).await;
    let run = proposal.parameters["run"].as_str().unwrap().to_owned();
    assert_snapshot!(without_run(&card(&proposal.card), &run), @"
    Test the consistency rules of “Trial”?
    Rules: individual; consistency individual; early visitors are included; after enrollment ends, enrolled users keep their condition
    Decision point: SelectSection / area_model
    1. While it is paused: visit by test-‹run›-0001 (newcomer)
    Left out: visits before the start and while it runs, since it is already paused
    Limits: 1 test user, this experiment only, at most 10 minutes
    ⚠️ UpGrade removes enrolled users only together with the experiment.
    ⚠️ 1 user is already enrolled, so the data will be mixed.
    You can stop it midway; the experiment then keeps its status at that moment.
    [Run the test] [Reject…]
    ✅ Tested the consistency rules of “Trial”.
    ");
    let mut test = record(bench.action("test_consistency_rules"), proposal);
    let outcome = bench.makes_batches(&mut test, async |_| {}).await;
    assert_snapshot!(read(&bench.reports(&mut test, outcome)), @"
    Tested the consistency rules of “Trial”: the 1 observation matches the rules. It is paused now.
    Phase | Visitor | Expected | Observed | Result
    Paused | Newcomer | nothing | nothing | ✓ fits
    “Nothing” means that the application shows its default.
    ");
}

#[tokio::test]
async fn where_rules_cannot_be_told_apart_nothing_is_tested() {
    let bench = Bench::start(Version::V6_5).await;
    bench.upgrade.has("Other", "enrolling");
    let mut said = Vec::new();
    for (name, choices) in [
        ("Within", json!({ "unit": "within-subjects" })),
        ("Listed", json!({ "filter_mode": "excludeAll" })),
        ("Short", json!({ "ends_after_users": 2 })),
    ] {
        bench.has(name, &choices).await;
        said.push(bench.refuses("test_consistency_rules", json!({ "experiment": name })).await);
    }
    bench.has("Sharing", &json!({ "target": "absolute_value_plot_equality" })).await;
    said.push(bench.refuses("test_consistency_rules", json!({ "experiment": "Sharing" })).await);
    bench.does("update_experiment_status", json!({ "experiment": "Other", "status": "cancel" })).await;
    said.push(bench.refuses("test_consistency_rules", json!({ "experiment": "Other" })).await);
    let later = json!({ "experiment": "Sharing", "status": "scheduled", "start_on": "2099-01-01 09:00" });
    bench.does("update_experiment_status", later).await;
    said.push(bench.refuses("test_consistency_rules", json!({ "experiment": "Sharing" })).await);
    said.push(bench.refuses("test_consistency_rules", json!({})).await);
    assert_snapshot!(said.join("\n"), @r#"
    In “Within” each user gets every condition in turn (within subjects), so there is no consistency rule to test.
    Only users on the inclusion list are included in “Listed”. Test users aren't on it, so they would get no condition under any rule.
    “Short” ends enrollment automatically at 2 users. The test users would reach that limit and pause it before the test is over.
    “Other”, running, shares a decision point with “Sharing”. Each user takes part in only one of the two there, so the test couldn't show whether the rules hold.
    [Show that experiment → show “Other”]
    “Other” is cancelled. The test needs an experiment that can be started and paused, which isn't possible from this status.
    [List experiments → list experiments]
    “Sharing” is scheduled to start. Unschedule it before testing it.
    [Unschedule experiment → unschedule “Sharing”]
    experiment: Which experiment? ["Listed", "Short", "Within"]
    "#);
}

#[tokio::test]
async fn somebody_who_interferes_ends_the_test() {
    let bench = Bench::start(Version::V6_5).await;
    bench.has("Trial", &json!({})).await;
    let mut test = bench.approved("test_consistency_rules", json!({ "experiment": "Trial" })).await;
    let outcome = bench
        .makes_batches(&mut test, async |done| {
            if done == 4 {
                bench.does("update_experiment_status", json!({ "experiment": "Trial", "status": "cancel" })).await;
            }
        })
        .await;
    assert!(matches!(outcome, Outcome::Failed { .. }), "{outcome:?}");
    let said = read(&bench.reports(&mut test, outcome));
    let said = ["control", "variant", "concrete"].iter().fold(said, |said, code| said.replace(code, "‹any›"));
    assert_snapshot!(said, @"
    Ended early after 3 of 5 steps. Someone changed its status in the meantime. “Trial” is cancelled now.
    Phase | Visitor | Expected | Observed | Result
    Before start | Early visitor | nothing | nothing | ✓ fits
    Running | Early visitor | any condition | ‹any› | ✓ fits
    Running | Later visitor | any condition | ‹any› | ✓ fits
    “Nothing” means that the application shows its default.
    ");
}

/// Run 01 of the behaviour: 200 users by weight; and what a group unit makes of it.
#[tokio::test]
async fn shares_of_two_hundred_users_fit_the_weights() {
    let bench = Bench::start(Version::V6_5).await;
    let thirds = json!({ "conditions": "control, variant, concrete", "weights": [33.33, 33.33, 33.34] });
    let by_class = json!({ "unit": "group", "group": "classId" });
    for (nth, (weights, more, drawn)) in [
        (json!({ "conditions": "control, variant", "weights": [50, 50] }), json!({}), 200),
        (json!({ "conditions": "control, variant", "weights": [70, 30] }), json!({}), 200),
        (thirds.clone(), json!({}), 200),
        (thirds, by_class, 40),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("Trial {nth}");
        bench.has(&name, &weights).await;
        if let Some(more) = more.as_object().filter(|more| !more.is_empty()) {
            let mut change = more.clone();
            change.insert("experiment".to_owned(), json!(name));
            bench.does("update_experiment", Value::Object(change)).await;
        }
        bench.does("update_experiment_status", json!({ "experiment": name, "status": "start" })).await;
        let asked = json!({ "experiment": name, "users": 200 });
        let mut test = bench.approved("test_condition_balance", asked).await;
        let outcome = bench.makes_batches(&mut test, async |_| {}).await;
        let Outcome::Done { result, .. } = &outcome else { panic!("{outcome:?}") };
        let tally: Tally = serde_json::from_value(result["tally"].clone()).unwrap();
        assert_eq!((tally.enrolled, tally.nothing_given), (200, 0));
        assert_eq!(tally.draws.iter().map(|(_, count)| count).sum::<u64>(), drawn, "who draws: {more}");
        let shares: Vec<Share> = serde_json::from_value(test.parameters["conditions"].clone()).unwrap();
        let count = |code: &str| tally.draws.iter().find(|(known, _)| known == code).map_or(0, |(_, count)| *count);
        let counts: Vec<_> = shares.iter().map(|share| (share.weight, count(&share.code))).collect();
        // The ids, and so the lots, are new in each run: one in a million fails by chance.
        let fit = fit::test(&counts).unwrap();
        assert!(fit.p > 1e-6 && fit.reliable, "{weights}: {counts:?} {fit:?}");

        let marks = bench.upgrade.effects().into_iter().filter(|entry| entry.path.ends_with("/mark"));
        let marks = marks.filter(|entry| entry.user_id.as_ref().is_some_and(|user| user.starts_with(&test_run(&test))));
        let mut by_group = std::collections::BTreeMap::<u32, Vec<String>>::new();
        for mark in marks {
            let number: u32 = mark.user_id.unwrap().rsplit('-').next().unwrap().parse().unwrap();
            let code = mark.body["data"]["assignedCondition"]["conditionCode"].as_str().unwrap().to_owned();
            by_group.entry((number - 1) / 5).or_default().push(code);
        }
        let alike = by_group.values().all(|codes| codes.iter().all(|code| *code == codes[0]));
        assert_eq!(alike, drawn == 40, "five of a class share a condition: {by_group:?}");
        bench.does("delete_experiment", json!({ "experiment": name })).await;
    }
}

fn test_run(test: &ActionRecord) -> String {
    test.parameters["run"].as_str().unwrap().to_owned()
}
