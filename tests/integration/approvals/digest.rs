//! What runs is what was shown: a record that was changed behind the bot's back is refused, and so is a forged button.

use std::sync::Arc;

use countersign::{
    conversation::approvals::{clicks::Click, inbox::InboxAnswer},
    graph::{
        action::{ActionRecord, Policy, Status},
        keyring::Keyring,
        store::{ActionFilter, ActionKey},
    },
    ids::MessageTs,
};
use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{
    racer,
    stored::{CannotRead, Kept},
};
use crate::support::{bot::TestBot, thread::Thread};

/// The parts of a record that its digest binds.
const BOUND_PARTS: [&str; 3] = ["/parameters", "/preconditions", "/policy"];

/// The newest record.
async fn newest(bot: &TestBot) -> ActionRecord {
    let filter = ActionFilter::all(&[], 1);
    bot.store().actions(&filter).await.unwrap().remove(0)
}

/// The keys of a bot.
fn keys(bot: &TestBot) -> Arc<Keyring> {
    countersign::app::keys::open(&bot.config).unwrap().ring
}

/// A part with one byte changed in each way that is still JSON, and says something else.
fn changed(part: &Value) -> Vec<Value> {
    let bytes = serde_json::to_vec(part).unwrap();
    let mut all = Vec::new();
    for at in 0..bytes.len() {
        for other in [bytes[at] ^ 1, bytes[at] ^ 2, bytes[at] ^ 0x20, b'0', b'9', b' '] {
            let mut spoilt = bytes.clone();
            spoilt[at] = other;
            match serde_json::from_slice::<Value>(&spoilt) {
                Ok(value) if value != *part => all.push(value),
                _ => {}
            }
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn every_byte_of_what_is_approved_is_bound() {
    let bot = TestBot::start().await;
    let keys = keys(&bot);
    for asks in ["start Math Hints", "create an experiment called Foo in assign-prog at SelectSection / area_model"] {
        let thread = bot.user("ana").says(asks).await;
        let record = newest(&bot).await;
        assert!(keys.digest_proof(&record).holds());
        let mut tried = 0;
        for parameters in changed(&record.parameters) {
            let spoilt = ActionRecord { parameters: parameters.into(), ..record.clone() };
            assert!(!keys.digest_proof(&spoilt).holds(), "{:?}", spoilt.parameters);
            tried += 1;
        }
        for preconditions in changed(&record.preconditions) {
            let spoilt = ActionRecord { preconditions: preconditions.into(), ..record.clone() };
            assert!(!keys.digest_proof(&spoilt).holds(), "{:?}", spoilt.preconditions);
            tried += 1;
        }
        for policy in changed(&serde_json::to_value(&record.policy).unwrap()) {
            // What is no policy cannot be read at all.
            let Ok(policy) = serde_json::from_value::<Policy>(policy) else { continue };
            let spoilt = ActionRecord { policy: policy.into(), ..record.clone() };
            if spoilt.policy != record.policy {
                assert!(!keys.digest_proof(&spoilt).holds(), "{:?}", spoilt.policy);
                tried += 1;
            }
        }
        println!("{asks}: {tried} changes of a byte");
        assert!(tried > 500, "only {tried}");
        thread.clicks("ana", "reject").await;
    }
}

/// The first and the last leaf of a part, changed as little as possible.
fn spoilt(record: &Value, part: &str) -> Vec<Value> {
    let part_of = record.pointer(part).unwrap();
    let all = changed(part_of);
    let readable = |value: &&Value| {
        part != "/policy"
            || serde_json::from_value::<Policy>((*value).clone()).is_ok_and(|policy| json!(policy) != *part_of)
    };
    let mut fit: Vec<&Value> = all.iter().filter(readable).collect();
    fit.dedup();
    let with = |value: &Value| {
        let mut spoilt = record.clone();
        *spoilt.pointer_mut(part).unwrap() = value.clone();
        spoilt
    };
    [fit[0], fit[fit.len() / 2], fit[fit.len() - 1]].map(with).to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_changed_between_card_and_press_is_refused() {
    changed_behind_the_back(Kept::InSqlite, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_changed_between_press_and_execution_is_refused() {
    changed_behind_the_back(Kept::InSqlite, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_changed_in_redis_between_card_and_press_is_refused() {
    changed_behind_the_back(Kept::in_redis().await, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_changed_in_redis_between_press_and_execution_is_refused() {
    changed_behind_the_back(Kept::in_redis().await, true).await;
}

/// Cards are shown, the bot ends, records are changed, the bot comes back.
async fn changed_behind_the_back(kept: Kept, approved_before: bool) {
    let mut bot = kept.bot().await;
    let mut shown = Vec::new();
    for part in BOUND_PARTS {
        for nth in 0..3 {
            let thread = bot.user("ana").says("start Math Hints").await;
            shown.push((thread.root.clone(), part, nth, newest(&bot).await));
        }
    }
    bot.stop().await;
    if approved_before {
        approve_without_a_bot(&kept, &bot, shown.iter().map(|(.., record)| record)).await;
    }
    for (_, part, nth, record) in &shown {
        let stored = serde_json::from_str(&kept.read(&bot, record).await).unwrap();
        kept.write(&bot, record, &spoilt(&stored, part)[*nth].to_string()).await;
    }
    bot.run().await;
    for (root, part, nth, record) in &shown {
        let mut thread = Thread::new(&bot, "experiments", root.clone());
        thread.told("bo");
        if !approved_before {
            thread.clicks("bo", "Start experiment").await;
        }
        bot.settled().await;
        let now = bot.store().action(ActionKey::ByApproval(&record.approval)).await.unwrap().unwrap();
        let (status, approvals, said) = match approved_before {
            true => (Status::Failed, 1, thread.heard()),
            false => (Status::Pending, 0, thread.told("bo")),
        };
        assert_eq!((now.status, now.decisions.len(), now.sends), (status, approvals, 0), "{part} {nth}");
        assert!(said.contains("The stored request differs from what"), "{part} {nth}: {said}");
    }
    assert!(bot.upgrade.effects().is_empty(), "nothing was sent");
}

/// Approves as bo, with nobody there to carry it out.
async fn approve_without_a_bot(kept: &Kept, bot: &TestBot, records: impl Iterator<Item = &ActionRecord>) {
    let (store, clock) = (kept.open(bot).await, Arc::new(bot.clock.clone()));
    for record in records {
        let inbox =
            racer::approvals_under(store.clone(), clock.clone(), record.policy.clone().into_inner(), keys(bot)).await;
        let click = Click { by: "U2".into(), ..racer::click(record) };
        assert!(matches!(inbox.on_click(&click, 0).await.unwrap(), InboxAnswer::Counted(_)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_press_on_a_card_that_cannot_be_read_says_so() {
    let mut told = Vec::new();
    for kept in [Kept::InSqlite, Kept::in_redis().await] {
        let mut bot = kept.bot().await;
        let mut thread = bot.user("ana").says("start Math Hints").await;
        let (root, record) = (thread.root.clone(), newest(&bot).await);
        thread.skip();
        bot.stop().await;
        let as_it_was = kept.read(&bot, &record).await;
        for unreadable in [CannotRead::NoJson, CannotRead::NoRecord] {
            kept.write(&bot, &record, &unreadable.replacement_for(&as_it_was)).await;
            bot.run().await;
            let mut thread = Thread::new(&bot, "experiments", root.clone());
            thread.told("bo");
            for button in ["Start experiment", "Reject…", "Edit…", "Show all"] {
                thread.clicks("bo", button).await;
                told.push(thread.told("bo"));
            }
            bot.stop().await;
        }
        assert!(bot.upgrade.effects().is_empty(), "nothing was sent");
        kept.write(&bot, &record, &as_it_was).await;
        bot.run().await;
        Thread::new(&bot, "experiments", root).clicks("bo", "Start experiment").await;
        assert_eq!(bot.upgrade.effects().len(), 1, "it is the same card again");
        bot.finish().await;
    }
    assert_eq!(told.len(), 16, "each button, spoilt in each way, in each store");
    told.dedup();
    assert_snapshot!(told.join("\n---\n"), @"
    The record of this card can't be read. Nothing was changed.
    Ask again in the thread for a new card, and tell the app's operator.
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_button_that_was_edited_does_nothing_and_says_so() {
    let (bot, mut thread) = TestBot::hears("ana", "start Math Hints").await;
    let (card, record) = (thread.with_button("Start experiment"), newest(&bot).await);
    bot.user("cy").says("stop Lesson Video Hints").await;
    let other = newest(&bot).await;
    let key = record.approval.as_str();
    let edited = (0..key.len()).map(|at| {
        let mut bytes = key.as_bytes().to_vec();
        bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
        String::from_utf8(bytes).unwrap()
    });
    let with_more = [
        format!("{key} "),
        format!("{key}0"),
        format!(" {key}"),
        key.to_uppercase(),
        key[1..].to_owned(),
        "approve".to_owned(),
    ];
    let unknown = "This card is no longer on record, so its buttons do nothing.";
    thread.skip();
    for value in edited.chain(with_more).filter(|value| value != key) {
        press_edited(&bot, &card, &value).await;
        assert!(thread.told("bo").starts_with(unknown), "{value}");
    }
    press_edited(&bot, &card, other.approval.as_str()).await;
    assert!(thread.told("bo").starts_with("This is a copy of a card"), "the key of another card");
    assert_eq!(thread.heard(), "", "the thread is spared");
    for key in [&record.approval, &other.approval] {
        let now = bot.store().action(ActionKey::ByApproval(key)).await.unwrap().unwrap();
        assert_eq!((now.status, now.decisions.len()), (Status::Pending, 0));
    }
    assert!(bot.upgrade.effects().is_empty());
    press_edited(&bot, &card, key).await;
    assert_eq!(bot.upgrade.effects().len(), 1, "the button as it was made works");
}

/// Bo presses the button of a card with another value in it.
async fn press_edited(bot: &TestBot, card: &MessageTs, value: &str) {
    bot.slack.arrange(|world| {
        let channel = world.channel("experiments").unwrap().id.clone();
        let message = world.messages.get_mut(&channel).unwrap().get_mut(card).unwrap();
        let actions = message.blocks.iter_mut().find(|block| block["type"] == "actions").unwrap();
        actions["elements"][0]["value"] = value.into();
    });
    bot.slack.clicks("bo", "experiments", card, "approve").await.unwrap();
    bot.settled().await;
}
