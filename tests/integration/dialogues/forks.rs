//! Copies of a thread, for those who operate the bot: what it would have said, with nothing outside of it asked.

use countersign::{app::fork, ids::ThreadId};
use countersign_sandbox::model::SandboxModel;
use serde_json::{Value, json};

use crate::support::bot::TestBot;

/// A bot that was shown an experiment, has an open card and has stopped since; and the thread.
async fn stopped_beside_a_card() -> (TestBot, ThreadId) {
    let mut bot = TestBot::start().await;
    let root = {
        let mut thread = bot.user("ana").says("show Math Hints").await;
        thread.says("ana", "start it").await;
        thread.skip();
        thread.root.clone()
    };
    let (team, channel) =
        bot.slack.look(|world| (world.team.clone(), world.channel("experiments").unwrap().id.clone()));
    bot.stop().await;
    (bot, ThreadId { team, channel, root })
}

/// The answers of the copy to its message of this number, and what it asked for in vain.
fn turn(report: &Value, number: usize) -> (String, &Value, &Value) {
    let turn = &report["turns"][number];
    let answers = turn["answers"].as_array().unwrap_or_else(|| panic!("no turn {number} in {report:#}"));
    let answers: Vec<_> = answers.iter().map(|answer| answer.as_str().unwrap()).collect();
    (answers.join("\n"), &turn["not_on_record"], &turn["refused"])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_answers_from_the_record_and_changes_nothing() {
    let (mut bot, thread) = stopped_beside_a_card().await;
    let model = SandboxModel::start(0).await.unwrap();
    bot.config.model.base_url = Some(model.url());
    bot.config.model.api_key = Some(model.api_key().into());
    let reached = |bot: &TestBot| {
        let slack = bot.slack.ledger().read();
        (bot.upgrade.ledger().len(), slack.calls.len(), slack.deliveries.len(), model.requests().len())
    };
    let before = reached(&bot);
    assert!(before.0 > 0 && before.1 > 0, "the thread itself reached both: {before:?}");

    let say = ["show Math Hints", "is UpGrade running?", "archive Math Hints", "thanks"].map(str::to_owned);
    let report = fork::run(&bot.config, &thread, None, &say).await.unwrap();
    assert_eq!(reached(&bot), before, "the copy reaches nothing");
    assert_eq!(report["closed"][0]["title"], "Start “Math Hints”?");
    assert_eq!(report["checkpoint"].get("suspended"), None, "nothing in the copy can be approved");
    let nothing = json!([]);
    let (answer, not_on_record, refused) = turn(&report, 0);
    assert!(answer.contains("Math Hints"), "what was read in the thread is read again: {answer}");
    assert_eq!((not_on_record, refused), (&nothing, &nothing));
    let (answer, not_on_record, _) = turn(&report, 1);
    assert!(answer.contains("This thread is a copy, and that isn't on its record"), "{answer}");
    assert_eq!(not_on_record[0]["tool"], "check_upgrade_health");
    let (answer, _, refused) = turn(&report, 2);
    assert!(answer.contains("This thread is a copy: nothing is changed from here."), "{answer}");
    assert_eq!(refused[0]["parameters"]["experiment"], "Math Hints");
    let (answer, not_on_record, refused) = turn(&report, 3);
    assert!(!answer.is_empty() && !answer.contains("copy"), "{answer}");
    assert_eq!((not_on_record, refused), (&nothing, &nothing));

    bot.run().await;
    let pending = bot.user("ana").types("/countersign pending").await;
    assert!(pending.contains("Math Hints"), "the card of the thread is still open: {pending}");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_replayed_from_one_of_its_steps() {
    let (bot, thread) = stopped_beside_a_card().await;
    let before = bot.upgrade.ledger().len();
    let first = fork::run(&bot.config, &thread, Some(1), &[]).await.unwrap();
    assert_eq!((&first["step"], &first["closed"]), (&json!(1), &json!([])));
    assert_eq!(first["turns"][0]["said"], "show Math Hints");
    let (answer, not_on_record, _) = turn(&first, 0);
    assert!(answer.contains("Math Hints"), "{answer}");
    assert_eq!(not_on_record, &json!([]), "what was read after the step answers it");
    let last = fork::run(&bot.config, &thread, None, &[]).await.unwrap();
    assert_eq!(last["turns"], json!([]), "its last turn is at its end");
    assert_eq!(bot.upgrade.ledger().len(), before, "the copies reach nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_or_step_that_is_not_there_is_named() {
    let (bot, thread) = stopped_beside_a_card().await;
    let refused = async |thread: &ThreadId, step| {
        let error = fork::run(&bot.config, thread, Some(step), &[]).await.unwrap_err().to_string();
        error.replace(&thread.to_string(), "‹thread›")
    };
    for step in [0, 99] {
        let told = refused(&thread, step).await;
        assert!(told.starts_with(&format!("thread ‹thread› has no step {step}; it has ")), "{told}");
        assert!(told.ends_with(", each with its `version` in `countersign trace ‹thread›`"), "{told}");
    }
    let other = ThreadId { root: "1.1".into(), ..thread };
    let told = "there is no thread ‹thread› in this store; `countersign trace` lists the threads";
    assert_eq!(refused(&other, 1).await, told);
}
