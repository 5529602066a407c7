//! The lab notebook of a thread in which everything happened: how it reads, and what a check of it finds.

use std::sync::Arc;

use countersign::{
    clock::{Clock, Timestamp},
    config::Config,
    conversation::record::notebook::{
        Exported, Notebook, Redaction,
        verify::{Fault, check_files, verify},
    },
    graph::store::{AuditDraft, AuditKind, Changes, Keep, Store},
    ids::{CommitId, ThreadId},
    store::sqlite::SqliteStore,
};
use insta::assert_snapshot;
use serde_json::json;

/// Always the same moment.
#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp(1_767_268_800_000) // 2026-01-01 12:00 UTC
    }
}

fn thread() -> ThreadId {
    ThreadId { team: "T1".into(), channel: "C1".into(), root: "1767268000.000100".into() }
}

/// One event of each kind, in an order in which they may happen. A new kind is missed by [`every_kind`].
fn events(chart: &str) -> Vec<AuditDraft> {
    let policy =
        json!({ "approvers": ["channel", { "user": "U3" }], "own_request": false, "needed": 2, "typed": false });
    let card = json!({
        "title": "Start “Math Hints”?", "approve": "Start experiment", "reject": "Cancel request", "irreversible": false,
        "facts": [{ "label": "Context", "after": "assign-prog" },
                  { "label": "Status", "before": "inactive", "after": "enrolling | running" },
                  { "label": "Weights", "before": null, "after": "50% / 50%" }],
        "warnings": ["Users are enrolled from now on."], "notes": [],
    });
    let shown = json!({
        "action": "update_experiment_status", "edition": 1, "digest": "0123456789abcdef", "card": card, "policy": policy,
        "parameters": { "experiment": "e1", "status": "enrolling" }, "preconditions": { "status": "inactive" },
        "expires_at": 1_767_355_200_000_i64, "undo": null,
    });
    let other = json!({ "approvers": [{ "user": "U2" }, { "user": "U3" }], "own_request": false, "needed": 2 });
    let changed = json!({ "policy": other, "digest": "fedcba98", "before": "0123456789abcdef" });
    let typed = json!({ "verdict": "approved", "status": "approved", "how": { "typed": { "text": "yes" } } });
    let usage = json!({
        "model": "claude-sonnet-4-5", "calls": 2, "input_tokens": 900, "cached_tokens": 4100, "output_tokens": 120,
        "run": "r1", "node": "gather",
    });
    let exchanges = json!([
        { "method": "POST", "path": "/api/experiments/state", "status": 200, "count": 1 },
        { "method": "GET", "path": "/api/experiments/single/e1", "count": 2 },
    ]);
    let file = json!({ "name": "balance.png", "title": "Balance of Math Hints", "hash": chart, "bytes": 8 });
    let progress = json!({
        "text": "Begins: show Math Hints", "source": "experiments", "phase": "Execution", "step": 2, "total_steps": 3,
        "done": 1, "run": "r1",
    });
    let about = |mut event: AuditDraft| {
        event.action = Some("a1".into());
        event
    };
    let all = [
        (AuditKind::Said, Some("U1"), AuditDraft::text_detail("start Math Hints,\n# please ask @U2 <b>too</b>"), false),
        (AuditKind::Ran, None, usage, false),
        (AuditKind::Asked, Some("U1"), json!({ "action": "update_experiment_status", "title": "Start it?" }), true),
        (AuditKind::Shown, None, shown, true),
        (AuditKind::ClickRefused, Some("U1"), json!({ "why": "own request" }), true),
        (AuditKind::PolicyChanged, None, changed, true),
        (AuditKind::Edited, Some("U2"), json!({ "from": "A1", "edited": [{ "label": "Weights" }] }), true),
        (AuditKind::Reminded, None, json!({}), true),
        (AuditKind::Decided, Some("U2"), json!({ "verdict": "approved", "status": "pending" }), true),
        (AuditKind::Decided, Some("U3"), typed, true),
        (AuditKind::Reasoned, Some("U3"), json!({ "reason": "the pilot went well" }), true),
        (AuditKind::Executed, None, json!({ "digest": "0123456789abcdef" }), true),
        (AuditKind::Sent, None, json!({ "exchanges": exchanges }), true),
        (AuditKind::Stopped, Some("U1"), json!({}), true),
        (AuditKind::Outcome, None, json!({ "status": "unknown", "summary": "No answer came." }), true),
        (AuditKind::Settled, Some("U2"), json!({ "status": "done", "how": "read back" }), true),
        (AuditKind::Attached, None, file, false),
        (AuditKind::Answered, None, json!({ "text": "“Math Hints” is running.", "run": "r1" }), false),
        (AuditKind::Rated, Some("U1"), json!({ "run": "r1", "helped": true }), false),
        (AuditKind::Exported, Some("U1"), json!({ "entries": 18, "last": "feed", "files": [] }), false),
        (AuditKind::Forgotten, None, json!({ "steps": 9, "before": 1_767_268_000_000_i64 }), false),
        (AuditKind::Waits, None, json!({ "done": 1, "total": 2, "source": "cluster", "key": "job-1 ended" }), true),
        (AuditKind::Arrived, None, json!({ "source": "cluster", "key": "job-1 ended", "digest": "feed" }), true),
        (AuditKind::Posted, None, json!({ "channel": "post", "digest": "feed" }), false),
        (AuditKind::Progress, None, progress, false),
        (AuditKind::Lapsed, Some("U2"), json!({ "why": "deactivated account" }), true),
    ];
    all.into_iter()
        .enumerate()
        .map(|(n, (kind, by, detail, of_action))| {
            let at = Timestamp(1_767_268_000_000 + 7_000 * n as i64);
            let salt = serde_json::from_value(json!(format!("5a17{n:028}"))).unwrap();
            let event = AuditDraft { salt, ..AuditDraft::new(kind, at, by.map(Into::into), detail) };
            if of_action { about(event) } else { event }
        })
        .collect()
}

/// The kind after `kind`; a new one does not compile here without a place.
fn after(kind: AuditKind) -> Option<AuditKind> {
    use AuditKind::*;
    Some(match kind {
        Asked => Shown,
        Shown => ClickRefused,
        ClickRefused => Decided,
        Decided => Executed,
        Executed => Stopped,
        Stopped => Outcome,
        Outcome => Said,
        Said => Answered,
        Answered => Ran,
        Ran => Sent,
        Sent => Attached,
        Attached => PolicyChanged,
        PolicyChanged => Lapsed,
        Lapsed => Edited,
        Edited => Reasoned,
        Reasoned => Reminded,
        Reminded => Settled,
        Settled => Rated,
        Rated => Exported,
        Exported => Forgotten,
        Forgotten => Waits,
        Waits => Arrived,
        Arrived => Posted,
        Posted => Progress,
        Progress | Unreadable => return None, // the latter is never recorded
    })
}

fn every_kind() -> Vec<AuditKind> {
    std::iter::successors(Some(AuditKind::Asked), |kind| after(*kind)).collect()
}

/// The export of a thread with these events.
async fn exported(events: Vec<AuditDraft>, redaction: Redaction) -> Exported {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("threads.sqlite"), Arc::new(Still)).unwrap();
    store.put_blob(b"\x89PNG\r\n\x1a\n", Keep::Permanently).await.unwrap();
    store.apply(&Changes { audit: events, ..Changes::new(CommitId::fresh(), thread()) }).await.unwrap();
    Notebook::new(Arc::new(store), Arc::new(Still), None, redaction).export(&thread()).await.unwrap()
}

async fn of_everything(redaction: Redaction) -> Exported {
    let chart = "4c4b6a3be1314ab86138bef4314dde022e600960d8689a2c8f8631802d20dab6";
    exported(events(chart), redaction).await
}

fn redaction(change: impl FnOnce(&mut countersign::config::Record)) -> Redaction {
    let mut record = Config::load(None, &Default::default(), &countersign::app::installed::SETTINGS).unwrap().record;
    change(&mut record);
    Redaction::from(&record)
}

#[tokio::test]
async fn a_thread_in_which_everything_happened_reads_well() {
    let told: Vec<_> = events("").into_iter().map(|event| event.kind).collect();
    let missing: Vec<_> = every_kind().into_iter().filter(|kind| !told.contains(kind)).collect();
    assert!(missing.is_empty(), "{missing:?}");

    let exported = of_everything(Redaction::default()).await;
    assert_eq!(exported.figures.len(), 1, "the chart goes with it");
    assert_snapshot!(String::from_utf8(exported.markdown.bytes).unwrap());
}

#[tokio::test]
async fn what_was_exported_verifies() {
    let exported = of_everything(Redaction::default()).await;
    let verified = verify(&exported.jsonl.bytes).unwrap();
    assert_eq!((verified.thread, verified.entries, verified.last), (thread(), 26, exported.last));
    assert_eq!((verified.hidden, verified.withheld), (0, 0));

    let folder = tempfile::tempdir().unwrap();
    let markdown = folder.path().join(&exported.markdown.name);
    std::fs::write(&markdown, &exported.markdown.bytes).unwrap();
    let (right, absent) = check_files(&verified.files, folder.path()).unwrap();
    assert_eq!((right, absent.len()), (vec!["notebook.md".to_owned()], 1));
    std::fs::write(&markdown, "# Another story\n").unwrap();
    assert!(check_files(&verified.files, folder.path()).unwrap_err().wrong.contains("notebook.md is next to it"));
}

#[tokio::test]
async fn files_are_known_under_the_names_that_a_download_gave_them() {
    let exported = of_everything(Redaction::default()).await;
    let verified = verify(&exported.jsonl.bytes).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    write("notebook-6f71545e.md", &exported.markdown.bytes);
    write("balance-1.png", &exported.figures[0].bytes);
    write("other.png", &vec![0; exported.figures[0].bytes.len()]);
    let chart = &exported.figures[0].name;
    let (mut right, absent) = check_files(&verified.files, folder.path()).unwrap();
    right.sort();
    assert_eq!(right, [format!("{chart} (as balance-1.png)"), "notebook.md (as notebook-6f71545e.md)".to_owned()]);
    assert!(absent.is_empty(), "{absent:?}");
    write("notebook-6f71545e.md", &exported.markdown.bytes[1..]);
    write("balance-1.png", &vec![0; exported.figures[0].bytes.len()]);
    let (right, absent) = check_files(&verified.files, folder.path()).unwrap();
    assert_eq!((right.len(), absent.len()), (0, 2), "what is in them is another thing");
}

/// What the page says in short about one card, by what was recorded of it.
async fn in_short(recorded: Vec<(AuditKind, Option<&str>, serde_json::Value)>) -> String {
    let asked = (AuditKind::Asked, Some("U1"), json!({ "title": "Start it?" }));
    let shown = (AuditKind::Shown, None, json!({ "card": { "title": "Start it?" }, "policy": { "needed": 2 } }));
    let all = [asked, shown].into_iter().chain(recorded).map(|(kind, by, detail)| {
        let event = AuditDraft::new(kind, Timestamp(1_767_268_000_000), by.map(Into::into), detail);
        AuditDraft { action: Some("a1".into()), ..event }
    });
    let page = String::from_utf8(exported(all.collect(), Redaction::default()).await.markdown.bytes).unwrap();
    let line = page.lines().find(|line| line.starts_with("1. ")).expect("there is one card");
    let told = page.lines().rfind(|line| line.contains(" · ")).expect("something happened");
    format!("{line}\n{told}")
}

#[tokio::test]
async fn how_a_card_ended_is_told_as_it_was() {
    use AuditKind::*;
    let approved = || (Decided, Some("U2"), json!({ "verdict": "approved", "status": "approved" }));
    let unknown = || (Outcome, None, json!({ "status": "unknown", "summary": "No answer came." }));
    let stopped = json!({ "status": "done", "summary": "Stopped.", "stopped": { "done": 32, "total": 400 } });
    let cases = [
        vec![approved(), unknown(), (Settled, Some("U1"), json!({ "status": "done" }))],
        vec![approved(), unknown(), (Settled, Some("U1"), json!({ "status": "failed" }))],
        vec![approved(), unknown(), (Settled, None, json!({ "status": "done" }))],
        vec![approved(), (Outcome, None, stopped)],
        vec![
            (Decided, Some("U2"), json!({ "verdict": "approved", "status": "pending" })),
            (Decided, None, json!({ "verdict": "expired", "status": "expired" })),
        ],
        vec![(Decided, None, json!({ "verdict": "expired", "status": "expired" }))],
        vec![(Decided, Some("U3"), json!({ "verdict": "cancelled", "status": "cancelled" }))],
        vec![(Decided, Some("U1"), json!({ "verdict": "cancelled", "status": "cancelled" }))],
        vec![approved(), (Stopped, Some("U3"), json!({ "done": 32, "total": 400 }))],
    ];
    let mut told = Vec::new();
    for case in cases {
        told.push(in_short(case).await);
    }
    assert_snapshot!(told.join("\n"), @"
    1. **Start it?**, asked for by @U1: approved by @U2; outcome not known; marked as done by @U1.
    11:46:40 · **@U1** settled the outcome of card 1.
    1. **Start it?**, asked for by @U1: approved by @U2; outcome not known; abandoned by @U1.
    11:46:40 · **@U1** settled the outcome of card 1.
    1. **Start it?**, asked for by @U1: approved by @U2; done.
    11:46:40 · A later check settled the outcome of card 1.
    1. **Start it?**, asked for by @U1: approved by @U2; stopped after 32 of 400.
    11:46:40 · Card 1 was **stopped after 32 of 400**:
    1. **Start it?**, asked for by @U1: expired; 1 of 2 had approved (@U2) when time ran out.
    11:46:40 · Card 1 expired: 1 of 2 had approved (@U2) when time ran out.
    1. **Start it?**, asked for by @U1: expired: no one decided in time.
    11:46:40 · Card 1 expired: no one decided in time.
    1. **Start it?**, asked for by @U1: closed by @U3.
    11:46:40 · **@U3** closed card 1.
    1. **Start it?**, asked for by @U1: withdrawn by @U1.
    11:46:40 · **@U1** withdrew card 1.
    1. **Start it?**, asked for by @U1: approved by @U2.
    11:46:40 · **@U3** stopped card 1 after 32 of 400.
    ");
}

#[tokio::test]
async fn who_asked_and_who_edited_withdraw_and_others_close() {
    use AuditKind::*;
    let about = |action: &str, kind, by: &str, detail| {
        let mut event = AuditDraft::new(kind, Timestamp(1_767_268_000_000), Some(by.into()), detail);
        event.action = Some(action.into());
        event
    };
    let mut told = Vec::new();
    for by in ["U1", "U2", "U3"] {
        let record = vec![
            about("a1", Asked, "U1", json!({ "title": "Start it?" })),
            about("a2", Edited, "U2", json!({ "title": "Schedule it?", "from": "a1", "edited": [] })),
            about("a1", Decided, "U2", json!({ "verdict": "superseded", "status": "superseded", "replaced_by": "a2" })),
            about("a2", Decided, by, json!({ "verdict": "cancelled", "status": "cancelled" })),
        ];
        let page = String::from_utf8(exported(record, Redaction::default()).await.markdown.bytes).unwrap();
        told.extend(page.lines().find(|line| line.starts_with("2. ")).map(str::to_owned));
        told.extend(page.lines().rfind(|line| line.contains(" · ")).map(str::to_owned));
    }
    assert_snapshot!(told.join("\n"), @"
    2. **Schedule it?**, asked for by @U1: withdrawn by @U1.
    11:46:40 · **@U1** withdrew card 2.
    2. **Schedule it?**, asked for by @U1: withdrawn by @U2.
    11:46:40 · **@U2** withdrew card 2.
    2. **Schedule it?**, asked for by @U1: closed by @U3.
    11:46:40 · **@U3** closed card 2.
    ");
}

/// Every byte, and more than one way to change it.
#[tokio::test(flavor = "multi_thread")]
async fn any_changed_byte_is_found() {
    let whole = of_everything(redaction(|record| record.redact = vec!["reason".to_owned()])).await.jsonl.bytes;
    verify(&whole).unwrap();
    let share = whole.len().div_ceil(4);
    std::thread::scope(|scope| {
        for part in 0..4 {
            let whole = &whole;
            scope.spawn(move || {
                let mut bytes = whole.clone();
                for at in (part * share)..((part + 1) * share).min(whole.len()) {
                    let flip = 1 << (at % 7);
                    bytes[at] ^= flip;
                    let line = whole[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
                    let broken = verify(&bytes).expect_err("a changed byte");
                    assert_eq!(broken.line, line, "byte {at}: {broken}");
                    bytes[at] = whole[at];
                }
            });
        }
    });
}

/// The notebook with `from` replaced by `to`, and with every hash of a line, and the head's, made right again.
fn forged(whole: &[u8], from: &str, to: &str) -> Vec<u8> {
    use sha2::{Digest as _, Sha256};
    let hash = |text: &str| hex::encode(Sha256::digest(text.as_bytes()));
    let text = String::from_utf8_lossy(whole);
    let bare = |line: &str| line.rsplit_once(",\"line\":").unwrap().0.to_owned() + "}";
    let line = |text: &str| format!("{},\"line\":\"{}\"}}\n", &text[..text.len() - 1], hash(text));
    let (head, body) = text.split_once('\n').unwrap();
    let seal = hash(body);
    let body: String = body.lines().map(|old| line(&bare(old).replace(from, to))).collect();
    let head = line(&bare(head).replace(from, to).replace(&seal, &hash(&body)));
    (head + &body).into_bytes()
}

fn told(bytes: &[u8]) -> String {
    let Fault { line, seq, wrong, right: _ } = verify(bytes).expect_err("it is not whole");
    let wrong = wrong.split_whitespace().map(|word| if word.len() == 64 { "‹hash›" } else { word });
    format!("{line} {seq:?} {}", wrong.collect::<Vec<_>>().join(" "))
}

#[tokio::test]
async fn the_first_thing_that_is_wrong_is_named() {
    let whole = of_everything(Redaction::default()).await.jsonl.bytes;
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let of = |order: &[usize]| order.iter().flat_map(|n| lines[*n].to_vec()).collect::<Vec<u8>>();
    let all: Vec<usize> = (0..lines.len()).collect();
    let without = |gone: usize| all.iter().copied().filter(|n| *n != gone).collect::<Vec<_>>();
    let mut swapped = all.clone();
    swapped.swap(3, 4);
    let mut doubled = all.clone();
    doubled.insert(5, 5);

    assert_snapshot!(told(b""), @"1 None the file is empty");
    assert_snapshot!(told(b"{\"countersign_notebook\":7}\n"), @"1 None the format is 7, which this program does not know");
    assert_snapshot!(told(b"{\"seq\":1}\n"), @"1 None it isn't the head of a notebook");
    assert_snapshot!(told(&of(&without(3))), @"4 Some(3) entry 4 is here: entry 3 is missing or out of place");
    assert_snapshot!(told(&of(&swapped)), @"4 Some(3) entry 4 is here: entry 3 is missing or out of place");
    assert_snapshot!(told(&of(&doubled)), @"7 Some(6) entry 5 is here again, or too late");
    assert_snapshot!(told(&of(&all[..10])), @"11 None the file is cut off after entry 9");
    assert_snapshot!(told(&whole[..whole.len() - 1]), @"27 None the line is cut off");
    assert_snapshot!(told(&of(&[&all[..], &[20]].concat())), @"28 Some(27) there is an extra line");
}

/// Whoever makes the lines' own hashes right still has the chain against them.
#[tokio::test]
async fn a_forger_who_writes_whole_lines_is_found_by_the_chain() {
    let whole = of_everything(Redaction::default()).await.jsonl.bytes;
    verify(&forged(&whole, "nothing", "nothing")).expect("made right again, it is whole");
    let broken = told(&forged(&whole, "“Math Hints” is running.", "“Math Hints” is broken!"));
    assert_snapshot!(broken, @"19 Some(18) it says that its hash is ‹hash›");
    let broken = told(&forged(&whole, "“Math Hints” is running.\"}", "“Math Hints” is running.\",\"why\":1}"));
    assert_snapshot!(broken, @"19 Some(18) it says that its hash is ‹hash›");
    let broken = told(&forged(&whole, "{\"seq\":17,", "{\"seq\":17,\"note\":\"mine\","));
    assert_snapshot!(broken, @"18 Some(17) there is something in it that does not belong there");
}

#[tokio::test]
async fn an_entry_of_another_version_is_told_as_such() {
    let whole = of_everything(Redaction::default()).await.jsonl.bytes;
    assert!(whole.starts_with(b"{\"countersign_notebook\":1,"));
    let salt = |n| format!("\"format\":1,\"salt\":\"5a17{n:028}\"");
    let broken = told(&forged(&whole, &salt(4), &salt(4).replace("\"format\":1", "\"format\":2")));
    assert_snapshot!(broken, @"6 Some(5) its hash is of version 2, which this program does not know");
    let broken = told(&forged(&whole, &salt(4), &salt(4).replace("5a17", "5a1")));
    assert_snapshot!(broken, @"6 Some(5) its salt is missing or damaged");
    let broken = told(&forged(&whole, &salt(4), &salt(4).replace("\"format\":1,", "")));
    assert_snapshot!(broken, @"6 Some(5) it cannot be read (missing field `format` at line 1 column 235)");

    let hides = redaction(|record| record.redact = vec!["why".to_owned()]);
    let whole = String::from_utf8(of_everything(hides).await.jsonl.bytes).unwrap();
    let (_, salts) = whole.split_once("\"salts\":{\"/action\":\"").unwrap();
    let broken = told(&forged(whole.as_bytes(), &salts[..32], &salts[..31]));
    assert_snapshot!(broken, @"6 Some(5) what is hidden of it and what is shown do not fit together");
}

#[tokio::test]
async fn what_is_hidden_is_not_there_and_the_rest_is_proven() {
    let hides = redaction(|record| {
        record.redact = vec!["parameters".to_owned()];
        record.redact_matching = vec!["*pilot*".to_owned()];
        record.pseudonyms = true;
    });
    let exported = of_everything(hides).await;
    let verified = verify(&exported.jsonl.bytes).unwrap();
    assert!(verified.hidden > 10, "{}", verified.hidden);
    assert_eq!(verified.last, of_everything(Redaction::default()).await.last, "the chain is the same");
    let both = String::from_utf8([exported.jsonl.bytes, exported.markdown.bytes].concat()).unwrap();
    for secret in ["U1", "U2", "U3", "pilot"] {
        assert!(!both.contains(secret), "{secret}");
    }
    assert!(both.contains("**Person 1** said:") && both.contains("ask @Person 2"), "{both}");
}

#[tokio::test]
async fn typed_consent_is_hidden_with_the_words_of_messages() {
    let how = json!({ "typed": AuditDraft::text_detail("go ahead") });
    let detail = json!({ "verdict": "approved", "status": "approved", "how": how });
    let decided = || vec![AuditDraft::new(AuditKind::Decided, Timestamp(7), Some("U2".into()), detail.clone())];
    let shown = exported(decided(), Redaction::default()).await;
    assert!(String::from_utf8(shown.markdown.bytes).unwrap().contains("by typing “go ahead”"));
    let hidden = exported(decided(), redaction(|record| record.redact = vec!["text".to_owned()])).await;
    assert_eq!(verify(&hidden.jsonl.bytes).unwrap().hidden, 1);
    for bytes in [hidden.jsonl.bytes, hidden.markdown.bytes] {
        assert!(!String::from_utf8(bytes).unwrap().contains("go ahead"));
    }
}
