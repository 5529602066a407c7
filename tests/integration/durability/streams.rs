//! The audit stream of a process that is killed again and again.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

use countersign::{
    clock::SystemClock,
    graph::store::{Store as _, ThreadFilter},
    store::sqlite::SqliteStore,
};

use super::{
    process::{Process, serve},
    processes::{By, Given, given},
};
use crate::support::stream::arrived;

/// The number of entries of each thread in the store.
async fn stored(store: &Path) -> BTreeMap<String, u64> {
    let store = SqliteStore::open_to_read(store, Arc::new(SystemClock)).unwrap();
    let mut all = BTreeMap::new();
    for summary in store.threads(ThreadFilter::All, 1_000).await.unwrap() {
        all.insert(summary.thread.to_string(), store.audit(&summary.thread).await.unwrap().len() as u64);
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bot_that_is_killed_again_and_again_sends_all_of_the_record() {
    let Given { folder, sandbox: _sandbox, mut settings, page, bot: _ } = given(By::Socket, None).await;
    let [file, moved, log] = ["audit.jsonl", "audit.jsonl.1", "bot.log"].map(|name| folder.path().join(name));
    settings.insert("COUNTERSIGN__RECORD__STREAM".to_owned(), format!("file:{}", file.display()));
    let read = || [&moved, &file].map(|path| fs::read_to_string(path).unwrap_or_default()).concat();
    for life in 0..4 {
        let bot = Process::start(serve(&settings), &log);
        page.until("it is up", async || bot.is_up()).await;
        let root = page.says("ana", "@countersign start the Math Hints experiment").await;
        page.message_with(&root, "approve").await;
        if life == 2 {
            page.until("some of it", async || !read().is_empty()).await;
            fs::rename(&file, &moved).unwrap();
        }
        bot.kill();
    }
    let bot = Process::start(serve(&settings), &log);
    let store = Path::new(&settings["COUNTERSIGN__STORE__PATH"]);
    page.until("all of the record", async || {
        let all = stored(store).await;
        all.len() == 4 && arrived(&read(), false).unwrap() == all
    })
    .await;
    assert!(file.exists(), "a file that was moved away is made anew");
    assert!(bot.stop().await.success(), "{}", bot.log());
}
