//! Tests of the search in the records of past changes.

use std::{sync::Mutex, time::Duration};

use async_trait::async_trait;
use countersign_core::{
    ids::{ApprovalId, ThreadId},
    reply::Card,
};
use countersign_graph::{
    action::{Decision, NewRecord, Policy, Scope, Verdict},
    keyring::Keyring,
};

use super::*;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// 2026-11-20 10:00 UTC, a Friday.
const NOW: Timestamp = Timestamp(1_795_168_800_000);

fn thread(root: &str) -> ThreadId {
    ThreadId { team: "T1".into(), channel: "C1".into(), root: root.into() }
}

/// Returns the record of a change to this thing, with its status, so many days ago.
fn record(root: &str, title: &str, subject: &str, status: Status, days_ago: u32) -> ActionRecord {
    let at = NOW.minus(DAY * days_ago);
    let verdict = match status {
        Status::Rejected => Verdict::Rejected { reason: None },
        _ => Verdict::Approved,
    };
    let new = NewRecord {
        id: format!("A{root}").as_str().into(),
        approval: ApprovalId::new(&thread(root), 1),
        thread: thread(root),
        run: "r1".into(),
        name: "change_something".to_owned(),
        action_version: 1,
        parameters: json!({}),
        preconditions: json!({}),
        policy: Policy::default(),
        card: Card::new(format!("{title} “{subject}”?"), "Do it", format!("{title}: done for “{subject}”.")),
        slot: "card:A1".into(),
        requested_by: "U1".into(),
        requested_at: at,
        expires_at: at,
        undo: None,
        scope: Scope::default().of_subject(subject),
        evidence: Default::default(),
    };
    let mut record = new.signed(&Keyring::new(vec![vec![7; 32]]).unwrap());
    record.status = status;
    record.decisions.push(Decision { by: Some("U2".into()), at, verdict });
    record
}

/// Records in memory; none if the store does not answer.
#[derive(Default)]
struct Records {
    all: Option<Vec<ActionRecord>>,
    asked: Mutex<Vec<Label>>,
}

#[async_trait]
impl History for Records {
    async fn of(&self, _: &str, _: usize) -> Vec<ActionRecord> {
        unreachable!("questions are about a conversation")
    }

    async fn under(&self, labels: &[Label], limit: usize) -> Option<Vec<ActionRecord>> {
        self.asked.lock().unwrap().extend_from_slice(labels);
        let all = self.all.clone()?.into_iter().filter(|record| record.is_under(labels));
        Some(all.take(limit).collect())
    }

    async fn address(&self, record: &ActionRecord) -> Option<String> {
        Some(format!("https://lab.slack.com/archives/{}", record.thread.root))
    }
}

fn records() -> Vec<ActionRecord> {
    vec![
        record("1", "Start", "Math Hints", Status::Done, 3),
        record("2", "Stop", "Math Hints", Status::Done, 0),
        record("3", "Start", "Math Hints 2", Status::Done, 1),
        record("4", "Stop", "Lesson Video Hints", Status::Rejected, 1),
        record("5", "Delete", "Chat Tone", Status::Pending, 0),
    ]
}

/// Returns a registry of nothing with these records.
fn registry(history: Arc<Records>) -> Registry {
    let mut registry = Registry::default();
    registry.history = Some(history);
    registry
}

/// Returns what a question finds in the thread `9` of a conversation, and its answer.
async fn found(history: &Arc<Records>, channel: &str, arguments: Value) -> (Found, String) {
    let registry = registry(history.clone());
    let log = Log::default();
    let search = Search::of(&arguments, &log, &registry, NOW, None).unwrap().unwrap();
    let here = ThreadId { channel: channel.into(), ..thread("9") };
    let value = search.run(&Reader::in_thread(Some("U1".into()), &here)).await;
    let said = reply(&registry, &log, &arguments, &value).words();
    (serde_json::from_value(value).unwrap(), said)
}

/// Returns the lines of a question's answer without their times and links.
async fn lines(arguments: Value) -> Vec<String> {
    let history = Arc::new(Records { all: Some(records()), ..Records::default() });
    let what = |line: Line| line.words.split(" · ").next().unwrap_or_default().to_owned();
    found(&history, "C1", arguments).await.0.elsewhere.into_iter().map(what).collect()
}

#[tokio::test]
async fn a_question_finds_the_changes_that_it_is_about() {
    let done = |title: &str, subject: &str| format!("✅ {title}: done for “{subject}”.");
    let both = [done("Stop", "Math Hints"), done("Start", "Math Hints")];
    let rejected = "🚫 Stop “Lesson Video Hints”: rejected".to_owned();
    for (arguments, expected) in [
        (
            json!({ "subject": "“Math Hints”", "when": "this week" }),
            vec![both[0].clone(), done("Start", "Math Hints 2"), both[1].clone()],
        ),
        (json!({ "subject": "the stop of Math Hints" }), vec![both[0].clone()]),
        (json!({ "when": "yesterday" }), vec![done("Start", "Math Hints 2")]),
        (json!({ "when": "today" }), vec![both[0].clone()]),
        (json!({ "outcome": "rejected", "when": "this week" }), vec![rejected.clone()]),
        (json!({ "subject": "Lesson Video Hints" }), vec![rejected]),
        (json!({ "outcome": "waiting" }), vec!["⏳ Delete “Chat Tone”: waiting for a decision".to_owned()]),
        (json!({ "subject": "Letters" }), vec![]),
    ] {
        assert_eq!(lines(arguments.clone()).await, expected, "{arguments}");
    }
}

#[tokio::test]
async fn a_channel_is_asked_for_its_requests_and_a_direct_message_for_those_of_the_person() {
    let history = Arc::new(Records { all: Some(records()), ..Records::default() });
    found(&history, "C1", json!({})).await;
    let (_, said) = found(&history, "D1", json!({})).await;
    let labels = [Label::Within("T1".into(), "C1".into()), Label::AskedBy("U1".into())];
    assert_eq!(*history.asked.lock().unwrap(), labels);
    assert!(said.contains("In your requests in other threads:"), "{said}");
    let (nothing, _) = found(&history, "C2", json!({})).await;
    assert!(nothing.elsewhere.is_empty(), "those of another channel are not told");
}

#[tokio::test]
async fn the_answer_says_where_it_looked_and_what_is_missing() {
    let many = (100..100 + MAX_READ).map(|root| record(&root.to_string(), "Start", "Math Hints", Status::Done, 0));
    let history = Arc::new(Records { all: Some(many.collect()), ..Records::default() });
    let (found_many, said) = found(&history, "C1", json!({ "when": "lately" })).await;
    assert_eq!(found_many.elsewhere.len(), MAX_LISTED);
    let looked = "I looked in this thread and the other threads of this channel, 2026-11-13 to 2026-11-20. Threads that \
                  were removed from the store aren't included. Only the 200 newest requests were read. 190 older ones \
                  aren't shown.";
    assert!(said.ends_with(looked), "{said}");

    let (_, said) = found(&Arc::new(Records::default()), "C1", json!({ "when": "today" })).await;
    assert!(said.contains("I couldn't read the other threads of this channel in time"), "{said}");
}

#[test]
fn what_the_log_of_the_thread_answers_is_not_looked_up() {
    let mut log = Log::default();
    let registry = registry(Arc::new(Records::default()));
    let looks =
        |log: &Log, arguments: Value| Search::of(&arguments, log, &registry, NOW, None).map(|search| search.is_some());
    assert_eq!(looks(&log, json!({})), Ok(true));
    log.add(&record("9", "Start", "Math Hints", Status::Done, 0), "Started it.".into(), NOW);
    assert_eq!(looks(&log, json!({})), Ok(false));
    for other in [json!({ "when": "today" }), json!({ "subject": "Chat Tone" }), json!({ "where": "channel" })] {
        assert_eq!(looks(&log, other), Ok(true));
    }
    assert_eq!(looks(&log, json!({ "when": "soon" })), Err("“soon” is no period of time".to_owned()));
}
