//! Tests of what is special about the file. The suite for every store is in `tests/integration/contracts/context.rs`.

use serde_json::json;

use super::*;
use crate::item::Embedding;

fn item(id: &str, text: &str, direction: usize) -> Item {
    let mut vector = vec![0.0; DIMENSIONS];
    vector[direction] = 1.0;
    Item {
        account: "a".into(),
        kind: Kind::Email,
        source_id: id.into(),
        text: text.into(),
        embedding: Some(Embedding::new("m", vector).unwrap()),
        metadata: json!({}),
        at: Timestamp(1),
    }
}

async fn found(store: &SqliteContext, like: &Item) -> Vec<String> {
    let found = store.similar("a", &Query::new("", like.embedding.clone())).await.unwrap();
    found.into_iter().map(|found| found.source_id).collect()
}

#[tokio::test]
async fn a_write_of_another_process_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("context.sqlite");
    let (one, other) = (SqliteContext::open(&path).unwrap(), SqliteContext::open(&path).unwrap());
    one.remember(&item("1", "x", 0)).await.unwrap();
    assert_eq!(found(&one, &item("1", "x", 0)).await, ["1"]);
    other.remember(&item("2", "x", 0)).await.unwrap();
    assert_eq!(found(&one, &item("1", "x", 0)).await, ["1", "2"]);
    other.forget("a", Kind::Email, "1").await.unwrap();
    assert_eq!(found(&one, &item("1", "x", 0)).await, ["2"]);
}

#[tokio::test]
async fn the_vectors_in_memory_follow_every_write() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteContext::open(&folder.path().join("context.sqlite")).unwrap();
    store.remember(&item("1", "x", 0)).await.unwrap();
    assert_eq!(found(&store, &item("1", "x", 0)).await, ["1"], "they are in memory now");
    store.remember(&item("1", "x", 5)).await.unwrap();
    store.remember(&item("2", "x", 0)).await.unwrap();
    assert_eq!(found(&store, &item("1", "x", 0)).await, ["2"]);
    store.remember(&Item { embedding: None, ..item("2", "x", 0) }).await.unwrap();
    assert!(found(&store, &item("1", "x", 0)).await.is_empty());
    assert_eq!(found(&store, &item("1", "x", 5)).await, ["1"]);
    assert_eq!(store.forget_before(Timestamp(2)).await.unwrap(), 2);
    assert!(found(&store, &item("1", "x", 5)).await.is_empty());
}

#[tokio::test]
async fn a_forgotten_text_leaves_no_trace_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("context.sqlite");
    let store = SqliteContext::open(&path).unwrap();
    store.remember(&item("1", "confidential words", 0)).await.unwrap();
    store.forget("a", Kind::Email, "1").await.unwrap();
    drop(store);
    let connection = Connection::open(&path).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    assert!(!bytes.windows(12).any(|part| part == b"confidential"));
}

#[test]
fn only_its_owner_can_access_the_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("context.sqlite");
    let _store = SqliteContext::open(&path).unwrap();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        assert_eq!(entry.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn a_file_of_a_newer_version_is_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("context.sqlite");
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let refused = SqliteContext::open(&path).unwrap_err();
    assert!(matches!(refused, ContextError::Refused { .. }), "{refused}");
    std::fs::write(&path, "not a database, but long enough to be looked at by one".repeat(40)).unwrap();
    assert!(matches!(SqliteContext::open(&path), Err(ContextError::Unavailable { .. })));
}

#[tokio::test]
async fn a_text_with_the_same_rare_words_is_found_among_many_that_share_common_ones() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteContext::open(&folder.path().join("context.sqlite")).unwrap();
    let text = |nth: usize| format!("delivery of case{nth} part{}", nth / 2);
    for nth in 0..MAX_MATCHES as usize + 100 {
        store.remember(&Item { embedding: None, ..item(&nth.to_string(), &text(nth), 0) }).await.unwrap();
    }
    let matches = store.similar("a", &Query::new(text(400), None)).await.unwrap();
    let found: Vec<_> = matches.iter().map(|found| found.source_id.as_str()).collect();
    assert_eq!(found, ["400", "401"], "those with a rare word, and not all that are about a delivery");
    assert!(
        !store.similar("a", &Query::new("delivery", None)).await.unwrap().is_empty(),
        "a single word is looked for"
    );
}
