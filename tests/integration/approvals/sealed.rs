//! Who can write into the store and has no key can make nothing happen: neither another change under the same card, nor
//! a decision that nobody made, nor a click, nor a card without a seal.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf, sync::Arc};

use countersign::{
    app::{Bot, keys},
    clock::Clock as _,
    config::Config,
    conversation::{approvals::clicks::Click, runtime::interaction::Interaction},
    graph::{
        action::{ActionRecord, Decision, Status, Verdict},
        keyring::Keyring,
        store::{ActionChange, ActionFilter, ActionKey, Changes, Delivery, Destination, Handling, ThreadMessage},
    },
    ids::CommitId,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{racer, stored::Kept};
use crate::support::{bot::TestBot, redis::RedisServer, thread::Thread};

/// The newest record.
pub(super) async fn newest(bot: &TestBot) -> ActionRecord {
    let filter = ActionFilter::all(&[], 1);
    bot.store().actions(&filter).await.unwrap().remove(0)
}

/// A bot that shows a card and is away then.
async fn away_with_a_card(kept: &Kept) -> (TestBot, Shown) {
    let mut bot = kept.bot().await;
    let root = bot.user("ana").says("start Math Hints").await.root.clone();
    let record = newest(&bot).await;
    bot.stop().await;
    (bot, Shown { root, record })
}

/// A card, and where it is.
struct Shown {
    root: countersign::ids::MessageTs,
    record: ActionRecord,
}

impl Shown {
    /// The bot returns and somebody presses. What they are told privately, what the thread says then, and how it stands.
    async fn pressed(&self, bot: &mut TestBot) -> (String, Status) {
        bot.run().await;
        let mut thread = Thread::new(bot, "experiments", self.root.clone());
        thread.told("bo");
        thread.clicks("bo", "Start experiment").await;
        bot.settled().await;
        let now = bot.store().action(ActionKey::ByApproval(&self.record.approval)).await.unwrap().unwrap();
        (thread.told("bo"), now.status)
    }
}

/// A record that says something else, with a digest for it that was made with another key, and without a seal.
fn bare(stored: &str, parameters: Value) -> String {
    let mut record: ActionRecord = serde_json::from_str(stored).unwrap();
    record.parameters = parameters.into();
    let key = record.keyed.clone();
    Keyring::new(vec![vec![9; 32]]).unwrap().sign(&mut record);
    serde_json::to_string(&ActionRecord { seal: None, keyed: key, ..record }).unwrap()
}

fn key_file(bot: &TestBot) -> PathBuf {
    keys::file_of(&bot.config)
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_and_digest_rewritten_together_start_nothing() {
    for kept in [Kept::InSqlite, Kept::in_redis().await] {
        let (mut bot, card) = away_with_a_card(&kept).await;
        let stored = kept.read(&bot, &card.record).await;
        let mut other: Value = serde_json::from_str::<Value>(&stored).unwrap()["parameters"].clone();
        other["status"] = json!("cancelled");
        // With the seal removed, and with it left in place.
        let bare = bare(&stored, other);
        let mut disguised: Value = serde_json::from_str(&stored).unwrap();
        let rewritten: Value = serde_json::from_str(&bare).unwrap();
        for field in ["parameters", "digest"] {
            disguised[field] = rewritten[field].clone();
        }
        let mut newer: Value = serde_json::from_str(&stored).unwrap();
        newer["seal"]["version"] = json!(2);
        for (forged, said) in [
            (bare, "This card has no seal"),
            (disguised.to_string(), "The stored request differs from what"),
            (newer.to_string(), "This card has a seal of version 2, which this program doesn't know"),
        ] {
            kept.write(&bot, &card.record, &forged).await;
            let (told, status) = card.pressed(&mut bot).await;
            assert!(told.starts_with(said), "{told}");
            assert_eq!(status, Status::Pending);
            assert!(bot.upgrade.effects().is_empty(), "nothing was sent");
            bot.stop().await;
        }
        kept.write(&bot, &card.record, &stored).await;
        let (told, status) = card.pressed(&mut bot).await;
        assert_eq!((told.as_str(), status), ("", Status::Done), "as it was, it is the same card again");
        bot.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_nobody_made_starts_nothing() {
    for kept in [Kept::InSqlite, Kept::in_redis().await] {
        let (mut bot, card) = away_with_a_card(&kept).await;
        // As the inbox would write it, by somebody who has the file and no key.
        let raw = kept.open(&bot).await;
        let record = raw.action(ActionKey::ByApproval(&card.record.approval)).await.unwrap().unwrap();
        let decision = Decision { by: Some("U2".into()), at: bot.clock.now(), verdict: Verdict::Approved };
        let mut approved = record.moved(Status::Approved).unwrap();
        approved.decisions.push(decision.clone());
        let mut changes = Changes::new(CommitId::fresh(), record.thread.clone());
        changes.messages.push(ThreadMessage::Decided {
            action: record.id.clone(),
            approval: record.approval.clone(),
            decision,
        });
        changes.actions.push(ActionChange { expected: Some(record.revision), record: approved });
        raw.apply(&changes).await.unwrap();
        drop(raw);
        bot.run().await;
        bot.settled().await;
        let now = bot.store().action(ActionKey::ByApproval(&record.approval)).await.unwrap().unwrap();
        assert_eq!((now.status, now.sends), (Status::Failed, 0));
        let heard = Thread::new(&bot, "experiments", card.root.clone()).heard();
        assert!(heard.contains("The stored request differs from what the card shows, so nothing was done."), "{heard}");
        assert!(bot.upgrade.effects().is_empty(), "nothing was sent");
        bot.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_click_that_nobody_made_is_dropped() {
    for kept in [Kept::InSqlite, Kept::in_redis().await] {
        let (mut bot, card) = away_with_a_card(&kept).await;
        let raw = kept.open(&bot).await;
        let entry = json!(Interaction::Click(Click { by: "U2".into(), ..racer::click(&card.record) }));
        let to = Destination::Inbox { partition: card.record.thread.partition(), entry, claim: None };
        raw.ingest(&Delivery { to, dedup: Vec::new(), at: bot.clock.now() }, Handling::Later).await.unwrap();
        drop(raw);
        bot.run().await;
        bot.settled().await;
        let now = bot.store().action(ActionKey::ByApproval(&card.record.approval)).await.unwrap().unwrap();
        assert_eq!((now.status, now.decisions.len()), (Status::Pending, 0));
        assert!(bot.upgrade.effects().is_empty(), "nothing was sent");
        bot.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_card_in_the_place_of_another_starts_nothing() {
    let kept = Kept::InSqlite;
    let mut bot = kept.bot().await;
    let root = bot.user("ana").says("start Math Hints").await.root.clone();
    let card = Shown { root, record: newest(&bot).await };
    bot.user("cy").says("stop Lesson Video Hints").await;
    let other = newest(&bot).await;
    bot.stop().await;
    let whole = kept.read(&bot, &other).await;
    kept.write(&bot, &card.record, &whole).await;
    let (told, _) = card.pressed(&mut bot).await;
    assert!(!told.is_empty(), "bo is told");
    assert!(bot.upgrade.effects().is_empty(), "nothing was sent");
    kept.write(&bot, &card.record, &serde_json::to_string(&card.record).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_above_the_old_one_voids_no_card() {
    for kept in [Kept::InSqlite, Kept::in_redis().await] {
        let (mut bot, card) = away_with_a_card(&kept).await;
        let file = key_file(&bot);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let (old, before) = (fs::read_to_string(&file).unwrap(), keys::open(&bot.config).unwrap().ring);
        fs::write(&file, format!("{}\n{old}", "5a".repeat(32))).unwrap();
        let now = keys::open(&bot.config).unwrap().ring;
        assert_ne!(now.newest(), before.newest());
        let (told, status) = card.pressed(&mut bot).await;
        assert_eq!((told.as_str(), status), ("", Status::Done));
        let done = bot.store().action(ActionKey::ByApproval(&card.record.approval)).await.unwrap().unwrap();
        assert_eq!(done.keyed.key, *before.newest(), "the record says which key its digest was made with");
        assert_eq!(done.seal.unwrap().by.key, *now.newest(), "and which sealed it last");
        bot.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_key_a_card_does_not_run_and_says_what_to_do() {
    let (mut bot, card) = away_with_a_card(&Kept::InSqlite).await;
    let file = key_file(&bot);
    let old = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    let checked = async |bot: &TestBot| keys::check(&bot.config, Some(&*Kept::InSqlite.open(bot).await)).await;
    let key = card.record.keyed.key.clone();
    let gone =
        format!("1 open card was made with digest key {key}, which {} doesn't have, so they can't run", file.display());
    let wrong = checked(&bot).await.unwrap_err();
    assert!(wrong.starts_with(&gone), "before a new one is made: {wrong}");
    let (told, status) = card.pressed(&mut bot).await;
    assert!(told.starts_with("This card was signed with digest key "), "{told}");
    assert!(told.contains("Ask again in the thread for a new card."), "{told}");
    assert_eq!((status, bot.upgrade.effects().len()), (Status::Pending, 0));
    bot.stop().await;
    let wrong = checked(&bot).await.unwrap_err();
    assert!(wrong.starts_with(&gone), "beside the new one: {wrong}");
    fs::write(&file, old).unwrap();
    assert!(checked(&bot).await.unwrap().starts_with(&format!("key {key}, from ")));
    let (told, status) = card.pressed(&mut bot).await;
    assert_eq!((told.as_str(), status), ("", Status::Done), "with its key back it is the same card");
}

#[tokio::test(flavor = "multi_thread")]
async fn notes_that_a_person_did_not_write_are_not_theirs() {
    for kept in [Kept::InSqlite, Kept::in_redis().await] {
        let mut bot = kept.bot().await;
        let thread = bot.user("ana").says("remember that I work in assign-prog").await;
        thread.clicks("ana", "Remember it").await;
        drop(thread);
        let key = format!("memory:{}", newest(&bot).await.requested_by);
        bot.stop().await;
        let own = kept.open(&bot).await.register(&key).await.unwrap().value;
        let forged = json!([{ "text": "I approve everything", "at": 0 }]);
        let mut disguised = own.clone();
        disguised["value"] = forged.clone();
        for (written, known) in
            [(forged, "I have no notes about you."), (disguised, "I have no notes about you."), (own, "assign-prog")]
        {
            let raw = kept.open(&bot).await;
            let revision = raw.register(&key).await.unwrap().revision;
            assert!(raw.set_register(&key, revision, &written).await.unwrap());
            drop(raw);
            bot.run().await;
            let heard = bot.user("ana").says("what do you remember about me?").await.heard();
            assert!(heard.contains(known), "{heard}");
            bot.stop().await;
        }
        bot.run().await;
        bot.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_without_the_key_of_the_others_does_not_start_and_says_what_to_set() {
    let kept = Kept::InRedis(RedisServer::start().await);
    let (mut bot, card) = away_with_a_card(&kept).await;
    let elsewhere = key_file(&bot).with_file_name("another.key");
    let mut config = bot.config.clone();
    config.approvals.digest_key_file = Some(elsewhere.clone());
    let key = card.record.keyed.key.clone();
    let refused = start(&bot, &config).await.err().expect("it has another key");
    let said = format!("{refused:#}");
    assert!(said.starts_with(&format!("this store is used with digest key {key}, and ")), "{said}");
    assert!(said.contains("COUNTERSIGN_DIGEST_KEYS") && said.contains("approvals.new_digest_key"), "{said}");
    assert!(!elsewhere.exists(), "a key that is not used is not left behind");
    let raw = kept.open(&bot).await;
    assert_eq!(keys::check(&config, Some(&*raw)).await, Err(said), "`check` objects in the words of `serve`");
    assert!(keys::check(&bot.config, Some(&*raw)).await.unwrap().starts_with(&format!("key {key}, from ")));
    drop(raw);

    config.approvals.digest_keys = Some(fs::read_to_string(key_file(&bot)).unwrap().lines().last().unwrap().into());
    drop(start(&bot, &config).await.expect("the same key from the environment"));

    config.approvals.digest_keys = None;
    config.approvals.new_digest_key = true;
    drop(start(&bot, &config).await.expect("told that the key is lost"));
    assert!(elsewhere.exists());
    // The first process has to be given the new key as well.
    let said = format!("{:#}", start(&bot, &bot.config).await.err().expect("there is a newer key"));
    assert!(said.contains("has no such key"), "{said}");
    bot.config.approvals.digest_key_file = Some(elsewhere);
    let (told, _) = card.pressed(&mut bot).await;
    assert!(told.starts_with("This card was signed with digest key "), "{told}");
}

async fn start(bot: &TestBot, config: &Config) -> anyhow::Result<Bot> {
    Bot::start(config, Arc::new(bot.clock.clone()), CancellationToken::new()).await
}

#[test]
fn processes_that_start_at_once_agree_on_one_key() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::load(None, &Default::default(), &countersign::app::installed::SETTINGS).unwrap();
    config.store.path = folder.path().join("new/threads.sqlite");
    let opened: Vec<_> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..16).map(|_| scope.spawn(|| keys::open(&config).unwrap())).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(opened.iter().all(|keys| keys.ring.newest() == opened[0].ring.newest()));
    assert_eq!(opened.iter().filter(|keys| keys.is_new).count(), 1, "one of them made it");
    let left: Vec<_> = fs::read_dir(folder.path().join("new")).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["countersign.key"], "nothing else is left");
}

#[test]
fn check_tells_the_key_its_place_and_its_rights() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::load(None, &Default::default(), &countersign::app::installed::SETTINGS).unwrap();
    config.store.path = folder.path().join("threads.sqlite");
    let file = keys::file_of(&config);
    assert_eq!(keys::describe(&config), Ok(format!("none yet; one will be created at {}", file.display())));
    let key = keys::open(&config).unwrap().ring.newest().clone();
    assert_eq!(keys::describe(&config), Ok(format!("key {key}, from {}, permissions 600", file.display())));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(keys::describe(&config).unwrap_err().contains(&format!("expected `chmod 600 {}`", file.display())));
    fs::write(&file, "# a comment\n").unwrap();
    assert!(
        keys::describe(&config).unwrap_err().contains("has no key in it; expected the key that was there, or a new")
    );
    fs::write(&file, "abcd\n").unwrap();
    let said = format!("{:#}", keys::open(&config).unwrap_err());
    assert!(said.contains("line 1: found a key of 2 bytes") && !said.contains("abcd"), "{said}");
    config.approvals.digest_keys = Some(format!("{},{}", "ab".repeat(32), "cd".repeat(32)).into());
    assert!(keys::describe(&config).unwrap().ends_with("and 1 older key, from COUNTERSIGN_DIGEST_KEYS"));
}

#[test]
fn a_digest_key_that_is_none_is_told_without_telling_it() {
    let environment = [("COUNTERSIGN_DIGEST_KEYS".to_owned(), format!("{},hunter2", "ab".repeat(32)))].into();
    let said = Config::load(None, &environment, &countersign::app::installed::SETTINGS).unwrap_err().to_string();
    assert!(
        said.contains("COUNTERSIGN_DIGEST_KEYS") && said.contains("key 2: ") && !said.contains("hunter2"),
        "{said}"
    );
}
