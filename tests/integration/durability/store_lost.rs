//! The store goes away, fills up, or holds what cannot be read, while a bot runs: what would be lost is not acknowledged,
//! and what is red says why.

use std::{fs, process::Command, sync::Arc, time::Duration};

use countersign::{
    clock::SystemClock,
    conversation::record::notebook::{Notebook, Redaction, verify},
    graph::store::ThreadFilter,
    store::packed,
};
use countersign_sandbox::slack::Error;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use rusqlite::Connection;

use super::{
    process::{COUNTERSIGN, Process, serve},
    processes::{By, Given, given},
};
use crate::support::{
    bot::{TestBot, eventually},
    thread::Thread,
};

const START: &str = "@countersign start the Math Hints experiment";

/// What `/readyz` says, and whether it is green.
async fn readiness(bot: &TestBot) -> (bool, String) {
    let answer = reqwest::get(format!("http://{}/readyz", bot.address())).await.unwrap();
    (answer.status().is_success(), answer.text().await.unwrap())
}

async fn until_ready(bot: &TestBot, wanted: bool) -> String {
    let deadline = tokio::time::Instant::now() + crate::support::bot::BOUND;
    loop {
        let (ready, said) = readiness(bot).await;
        if ready == wanted {
            return said;
        }
        assert!(tokio::time::Instant::now() < deadline, "{said}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bot_whose_file_is_gone_acknowledges_nothing_and_says_so() {
    let bot = TestBot::start().await;
    let root = bot.slack.says("ana", "experiments", START, None).unwrap();
    let thread = Thread::new(&bot, "experiments", root);
    eventually("the card", || !thread.messages().is_empty()).await;
    bot.settled().await;
    until_ready(&bot, true).await;

    let (path, away) = (bot.config.store.path.clone(), bot.config.store.path.with_extension("away"));
    fs::rename(&path, &away).unwrap();
    let said = until_ready(&bot, false).await;
    assert!(said.contains("deleted or moved") && said.contains("threads.sqlite"), "{said}");
    assert!(said.contains("put it back, since a new start would make an empty store"), "{said}");
    let card = thread.with_button("Start experiment");
    let pressed = bot.slack.clicks("bo", "experiments", &card, "Start experiment").await;
    assert!(matches!(pressed, Err(Error::Unanswered)), "a click that would be lost is not acknowledged: {pressed:?}");
    assert_eq!(bot.upgrade.effects().len(), 0);

    fs::rename(&away, &path).unwrap();
    until_ready(&bot, true).await;
    thread.press("bo", "Start experiment").await;
    bot.settled().await;
    assert_eq!(bot.upgrade.effects().len(), 1);
    bot.finish().await;
}

/// The system refuses to let a file of the bot grow, as a full disk does.
#[tokio::test(flavor = "multi_thread")]
async fn a_bot_on_a_full_disk_is_not_ready_and_loses_nothing() {
    let Given { folder, sandbox: _sandbox, settings, page, bot: here } = given(By::Socket, None).await;
    let mut command = Command::new("sh");
    // In blocks of 512 bytes: 1 MiB.
    command.args(["-c", "trap '' XFSZ; ulimit -f 2048; exec \"$0\" serve", COUNTERSIGN]).env_clear().envs(&settings);
    let bot = Process::start(command, &folder.path().join("bot.log"));
    page.until_ready(&bot, &here).await;
    let root = page.says("ana", START).await;
    page.message_with(&root, "approve").await;

    let readyz = format!("{here}/readyz");
    let (mut talk, mut chance) = (0, StdRng::seed_from_u64(1));
    let said = loop {
        match page.get(&readyz).await {
            Some((true, _)) => {}
            Some((false, why)) => break why,
            None => {}
        }
        assert!(talk < 200, "1 MiB is never full");
        assert!(bot.ended().is_none(), "it ended:\n{}", bot.log());
        page.says("ana", &format!("@countersign what is a decision point? {}", incompressible(&mut chance))).await;
        talk += 1;
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert!(said.contains("\"ok\":false"), "{said}");
    bot.kill();

    let bot = Process::start(serve(&settings), &folder.path().join("again.log"));
    page.until_ready(&bot, &here).await;
    let card = page.message_with(&root, "approve").await;
    page.until("the press to be answered", async || page.tries_to_press("bo", &card, "approve").await).await;
    page.until("the change", async || page.effects().await == 1).await;
    assert!(bot.stop().await.success(), "{}", bot.log());
}

/// A long text that takes no less space when it is packed.
fn incompressible(chance: &mut StdRng) -> String {
    (0..2000).map(|_| char::from(chance.random_range(b'a'..=b'z'))).collect()
}

#[tokio::test]
async fn a_thread_that_a_newer_program_saved_waits_for_it() {
    let bot = TestBot::start().await;
    let thread = bot.user("ana").says("start the Math Hints experiment").await;
    let before = thread.messages().len();
    let file = Connection::open(&bot.config.store.path).unwrap();
    let snapshot = || -> serde_json::Value {
        let snapshot: Vec<u8> = file.query_row("SELECT snapshot FROM snapshots", [], |row| row.get(0)).unwrap();
        serde_json::from_slice(&packed::unpack(&snapshot).unwrap()).unwrap()
    };
    let format = |format: u32| {
        let mut changed = snapshot();
        changed["format"] = format.into();
        assert_eq!(file.execute("UPDATE snapshots SET snapshot = ?1", [packed::packed(&changed)]).unwrap(), 1);
    };
    let number = |sql: &str| file.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    format(99);
    bot.slack.says("ana", "experiments", "@countersign what is a decision point?", Some(&thread.root)).unwrap();
    eventually("it to be left alone", || number("SELECT count(*) FROM threads WHERE ready_at > updated_at") == 1).await;
    assert_eq!(number("SELECT count(*) FROM mailbox"), 1, "the message waits");
    assert_eq!(snapshot()["format"], 99, "nothing was written over it");
    assert_eq!(thread.messages().len(), before, "and nothing was said");

    format(1);
    // Time goes on: a worker that had read the newer checkpoint meanwhile leaves the thread alone from a later moment on.
    eventually("the answer", || {
        bot.clock.advance(Duration::from_secs(1));
        thread.messages().len() > before
    })
    .await;
    bot.settled().await;
    thread.clicks("bo", "Start experiment").await;
    assert_eq!(bot.upgrade.effects().len(), 1, "the card of before still counts");
    bot.finish().await;
}

#[tokio::test]
async fn a_notebook_tells_which_line_of_it_cannot_be_read() {
    let bot = TestBot::start().await;
    let thread = bot.user("ana").says("start the Math Hints experiment").await;
    let file = Connection::open(&bot.config.store.path).unwrap();
    let spoilt = file
        .execute("UPDATE audit SET event = CAST('nonsense' AS BLOB) WHERE id = (SELECT min(id) + 1 FROM audit)", []);
    assert_eq!(spoilt.unwrap(), 1);
    let id = bot.store().threads(ThreadFilter::All, 1).await.unwrap().remove(0).thread;
    let exported =
        Notebook::new(bot.store(), Arc::new(SystemClock), None, Redaction::default()).export(&id).await.unwrap();
    let page = String::from_utf8(exported.markdown.bytes).unwrap();
    assert!(page.contains("One entry of this record can't be read"), "{page}");
    assert!(page.contains("start the Math Hints experiment"), "the others are there: {page}");
    let verified = verify::verify(&exported.jsonl.bytes).unwrap();
    assert_eq!((verified.entries, verified.withheld), (exported.entries, 1));
    drop(thread);
    bot.finish().await;
}
