//! Who can write into the store and has no key can change the record of a thread, but not without being found out.

use std::{path::Path, sync::Arc};

use countersign::{
    app::{check, notebook},
    clock::SystemClock,
    graph::{
        action::ActionRecord,
        store::{AuditEntry, AuditKind, Store as _},
    },
    ids::{ThreadId, UserId},
    store::{packed, sqlite::SqliteStore},
};
use rusqlite::Connection;
use serde_json::{Value, json};

use super::{sealed::newest, stored::Kept};
use crate::support::bot::TestBot;

/// A bot that is away, the thread in which it started an experiment for ana and bo, and what was stored before bo pressed.
struct Away {
    bot: TestBot,
    thread: ThreadId,
    before: Before,
}

/// What was stored when the card was open.
struct Before {
    entries: i64,
    seal: Option<String>,
    record: ActionRecord,
    stored: String,
}

impl Away {
    async fn after_a_decision() -> Self {
        let mut bot = Kept::InSqlite.bot().await;
        let thread = bot.user("ana").says("start Math Hints").await;
        let record = newest(&bot).await;
        let (entries, seal) = (count(&file(&bot)), seal(&file(&bot)));
        let stored = Kept::InSqlite.read(&bot, &record).await;
        thread.clicks("bo", "Start experiment").await;
        bot.settled().await;
        bot.stop().await;
        let before = Before { entries, seal, stored, record };
        Self { thread: before.record.thread.clone(), bot, before }
    }

    /// What the export and the check say of the record.
    async fn found(&self) -> (Result<Vec<String>, String>, String) {
        let folder = tempfile::tempdir().unwrap();
        let exported = notebook::export(&self.bot.config, &self.thread, folder.path()).await;
        let lines = check::run(&self.bot.config).await;
        let store = lines.into_iter().find(|line| line.what == "store").expect("there is a line about the store");
        (exported.map_err(|error| format!("{error:#}")), store.result.unwrap_or_else(|wrong| wrong))
    }

    /// Asserts that both find this fault.
    async fn finds(&self, fault: &str) {
        let (exported, check) = self.found().await;
        let refused = exported.expect_err(fault);
        assert!(refused.contains(fault) && check.contains(fault), "{fault}: {refused} | {check}");
    }
}

fn file(bot: &TestBot) -> Connection {
    Connection::open(&bot.config.store.path).unwrap()
}

fn count(file: &Connection) -> i64 {
    file.query_row("SELECT count(*) FROM audit", [], |row| row.get(0)).unwrap()
}

fn seal(file: &Connection) -> Option<String> {
    file.query_row("SELECT audit_seal FROM threads WHERE known", [], |row| row.get(0)).unwrap()
}

/// Removes all entries but the first ones.
fn cut(file: &Connection, keep: i64) {
    let sql = "DELETE FROM audit WHERE id NOT IN (SELECT id FROM audit ORDER BY id LIMIT ?1)";
    assert!(file.execute(sql, [keep]).unwrap() > 0);
}

fn set_seal(file: &Connection, seal: Option<&str>) {
    assert_eq!(file.execute("UPDATE threads SET audit_seal = ?1 WHERE known", [seal]).unwrap(), 1);
}

/// Rewrites who decided, and all hashes, as anybody with this program could.
fn rewrite(file: &Connection, thread: &ThreadId, entries: Vec<AuditEntry>, by: &str) -> Vec<AuditEntry> {
    let mut previous = String::new();
    let rewrite = |entry: AuditEntry| {
        let mut event = entry.event;
        if event.kind == AuditKind::Decided {
            event.by = Some(UserId::from(by));
        }
        let entry = AuditEntry::chain(thread, entry.seq, &previous, event);
        previous = entry.hash.clone();
        entry
    };
    let rewritten: Vec<_> = entries.into_iter().map(rewrite).collect();
    for entry in &rewritten {
        let sql = "UPDATE audit SET hash = ?1, event = ?2 WHERE id & 4294967295 = ?3";
        let changed = file.execute(sql, (&entry.hash, packed::packed(&entry.event), entry.seq as i64)).unwrap();
        assert_eq!(changed, 1);
    }
    rewritten
}

#[tokio::test(flavor = "multi_thread")]
async fn the_record_of_the_bot_is_exported_with_its_seal() {
    let away = Away::after_a_decision().await;
    let folder = tempfile::tempdir().unwrap();
    notebook::export(&away.bot.config, &away.thread, folder.path()).await.unwrap();
    let (jsonl, key) =
        (folder.path().join("notebook.jsonl"), away.bot.config.store.path.with_file_name("countersign.key"));
    let verify = |file: &Path, key: Option<&Path>| match notebook::verify(file, None, key) {
        Ok(lines) => lines.join("\n"),
        Err(error) => format!("{error:#}"),
    };
    assert!(verify(&jsonl, Some(&key)).contains("the seal fits"), "{}", verify(&jsonl, Some(&key)));
    assert!(verify(&jsonl, None).contains("not checked: whether the bot wrote it"));
    let other = folder.path().join("other.key");
    std::fs::write(&other, "ab".repeat(32)).unwrap();
    assert!(verify(&jsonl, Some(&other)).contains("which isn't in the file"));
    let (_, check) = away.found().await;
    assert!(check.contains("writes are durable"), "{check}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_record_cannot_be_cut_off() {
    let away = Away::after_a_decision().await;
    cut(&file(&away.bot), away.before.entries);
    away.finds("the seal doesn't fit").await;
    // Nor does it help to remove the seal, ...
    set_seal(&file(&away.bot), None);
    away.finds("a decision of the stored request").await;
    // ... or to put back the one of that time.
    set_seal(&file(&away.bot), away.before.seal.as_deref());
    away.finds("a decision of the stored request").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_cannot_be_ascribed_to_another_person() {
    let away = Away::after_a_decision().await;
    let entries = SqliteStore::open_to_read(&away.bot.config.store.path, Arc::new(SystemClock))
        .unwrap()
        .audit(&away.thread)
        .await
        .unwrap()
        .entries;
    rewrite(&file(&away.bot), &away.thread, entries, "U3");
    away.finds("the seal doesn't fit").await;
    set_seal(&file(&away.bot), None);
    let (exported, check) = away.found().await;
    assert!(exported.unwrap_err().contains("has another decision"));
    assert!(check.contains("has another decision"), "{check}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_request_in_the_place_of_the_newer_one_does_not_fit_the_record() {
    let away = Away::after_a_decision().await;
    Kept::InSqlite.write(&away.bot, &away.before.record, &away.before.stored).await;
    away.finds("doesn't have this decision").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_bot_adds_to_a_forged_record_does_not_make_it_right() {
    let mut away = Away::after_a_decision().await;
    cut(&file(&away.bot), away.before.entries);
    away.bot.run().await;
    away.bot.user("ana").says("list experiments").await;
    let mut thread = crate::support::thread::Thread::new(&away.bot, "experiments", away.thread.root.clone());
    thread.says("ana", "show Math Hints").await;
    assert!(!thread.heard().is_empty());
    away.bot.stop().await;
    away.finds("the seal doesn't fit").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_a_seal_that_is_known_does_not_fit_a_sealed_record() {
    let away = Away::after_a_decision().await;
    let record = &away.before.record;
    let stored: Value = serde_json::from_str(&Kept::InSqlite.read(&away.bot, record).await).unwrap();
    let (mut newer, mut bare) = (stored.clone(), stored);
    newer["seal"]["version"] = json!(2);
    bare["seal"] = Value::Null;
    for (forged, fault) in [(newer, "is of version 2, which this program doesn't know"), (bare, "has no seal")] {
        Kept::InSqlite.write(&away.bot, record, &forged.to_string()).await;
        away.finds(fault).await;
    }
}
