//! The action that sends: what is shown is what is sent, once, to the sender.

use countersign_graph::action::{ActionKind as _, Form, Input, PrepareError, Refusal, Status, Verdict};
use serde_json::json;

use super::support::*;
use crate::{book::MailStatus, send::SendAnswer};

const DRAFT: &str = "Hello Dana,\n\nThe small plan costs 5 a month.\n\nSupport";

async fn waiting() -> (World, countersign_core::ids::ThreadId) {
    let world = World::with(vec![classifies("inquiry", 0.9), drafts(DRAFT)]);
    let thread = world.arrives(raw("m1", "Prices", "How much is it?")).await;
    (world, thread)
}

fn kind(world: &World) -> SendAnswer {
    let clock = std::sync::Arc::new(world.store.clock.clone());
    SendAnswer { account: world.account.clone(), store: world.store.store.clone(), clock }
}

#[tokio::test]
async fn the_card_shows_the_mail_and_the_answer_exactly() {
    let (world, thread) = waiting().await;
    let card = world.card(&thread).await.card;
    let facts = card.facts.iter().map(|fact| format!("{}: {}", fact.label, fact.after.words()));
    let notes = card.notes.iter().map(|note| format!("note: {}", note.words()));
    let all: Vec<_> = std::iter::once(card.title.clone()).chain(facts).chain(notes).collect();
    insta::assert_snapshot!(all.join("\n"), @r"
    Send reply to Dana Fields about “Prices”?
    From: Dana Fields <dana@example.org>
    Received: 2025-03-04T09:00:00.000Z
    Subject: Prices
    Mail: How much is it?
    Class: inquiry · 0.90 (medium)
    Waiting because: Automatic answers are off.
    Reply subject: Re: Prices
    Reply: Hello Dana,

    The small plan costs 5 a month.

    Support
    note: Goes only to dana@example.org. A sent reply can't be taken back.
    note: Open the mail
    ");
}

#[tokio::test]
async fn an_answer_stays_in_its_conversation() {
    let (world, thread) = waiting().await;
    world.decide(&thread, Verdict::Approved).await;
    let sent = world.account.sent.lock().unwrap()[0].clone();
    assert_eq!(sent.thread.unwrap().as_str(), "t-m1");
    assert_eq!(sent.in_reply_to.as_deref(), Some("m1@example.org"));
    assert_eq!(sent.references, ["m1@example.org"]);
    assert_eq!((sent.subject.as_str(), sent.to.address.as_str()), ("Re: Prices", "dana@example.org"));
    let record = world.card(&thread).await;
    assert_eq!((sent.key, sent.message_id), (record.id.to_string(), format!("{}@example.com", record.id)));
    assert_eq!(sent.text, record.parameters["text"], "byte for byte what the card showed");
}

#[tokio::test]
async fn the_draft_is_made_when_it_is_sent() {
    let (world, thread) = waiting().await;
    assert!(world.account.drafts.lock().unwrap().is_empty());
    world.decide(&thread, Verdict::Approved).await;
    assert!(world.account.drafts.lock().unwrap().is_empty(), "sending used it up");
}

#[tokio::test]
async fn a_lost_answer_after_sending_is_found() {
    let (world, thread) = waiting().await;
    world.account.sends.lock().unwrap().push_back(FakeSend::SentWithoutAnswer);
    world.decide(&thread, Verdict::Approved).await;
    assert_eq!(world.card(&thread).await.status, Status::Done);
    assert_eq!(world.sent().len(), 1, "sent once");
    assert_eq!(world.entry("m1").await.status, MailStatus::Sent);
}

#[tokio::test]
async fn a_draft_that_is_still_there_is_sent_again() {
    let (world, thread) = waiting().await;
    world.account.sends.lock().unwrap().push_back(FakeSend::LostBefore);
    world.decide(&thread, Verdict::Approved).await;
    let record = world.card(&thread).await;
    assert_eq!((record.status, record.sends), (Status::Done, 2));
    assert_eq!(world.sent().len(), 1);
}

#[tokio::test]
async fn a_refused_answer_waits_and_can_be_sent_again() {
    let (world, thread) = waiting().await;
    world.account.sends.lock().unwrap().push_back(FakeSend::Refused);
    world.decide(&thread, Verdict::Approved).await;
    let failed = world.card(&thread).await;
    assert_eq!(failed.status, Status::Failed);
    assert_eq!(
        failed.outcome.as_ref().unwrap().summary().words(),
        "The mail server refused this (400). Nothing was sent."
    );
    assert_eq!(world.entry("m1").await.status, MailStatus::NeedsReview);
    world.requests(&thread, &failed).await;
    world.decide(&thread, Verdict::Approved).await;
    assert_eq!(world.sent(), [DRAFT]);
}

#[tokio::test]
async fn a_failed_automatic_answer_is_shown_to_a_person() {
    let world = World::automatic(vec![classifies("inquiry", 0.9), drafts(DRAFT)]);
    world.account.sends.lock().unwrap().push_back(FakeSend::Refused);
    let thread = world.arrives(raw("m1", "Prices", "How much is it?")).await;
    assert!(world.sent().is_empty());
    assert_eq!(world.card(&thread).await.status, Status::Pending);
    assert_eq!(world.entry("m1").await.status, MailStatus::NeedsReview);
    world.decide(&thread, Verdict::Approved).await;
    assert_eq!(world.sent(), [DRAFT]);
}

#[tokio::test]
async fn nobody_but_the_sender_can_be_a_recipient() {
    let (world, _) = waiting().await;
    let kind = kind(&world);
    let to = json!({ "address": "mallory@evil.example" });
    let other = kind.prepare(&json!({ "mail": "m1", "text": "Hi", "to": to })).await;
    let Err(PrepareError::Refusal(Refusal::Refused { reply, .. })) = other else { panic!("{other:?}") };
    assert_eq!(reply.words(), "A reply goes to the sender of the mail only: dana@example.org.");
    let ignored = json!({ "mail": "m1", "text": "Hi", "cc": "mallory@evil.example", "subject": "Other" });
    let proposal = kind.prepare(&ignored).await.unwrap();
    assert_eq!(proposal.parameters["to"]["address"], "dana@example.org");
    assert_eq!(proposal.parameters["subject"], "Re: Prices");
    assert!(proposal.parameters.get("cc").is_none());
}

#[tokio::test]
async fn a_mail_is_answered_once() {
    let (world, thread) = waiting().await;
    world.decide(&thread, Verdict::Approved).await;
    let again = kind(&world).prepare(&json!({ "mail": "m1", "text": "Hi again" })).await;
    let Err(PrepareError::Refusal(Refusal::Refused { reply, .. })) = again else { panic!("{again:?}") };
    assert_eq!(reply.words(), "This mail was answered already. Nothing more was sent.");
}

#[tokio::test]
async fn the_form_edits_the_whole_draft() {
    let (world, thread) = waiting().await;
    let record = world.card(&thread).await;
    let kind = kind(&world);
    let form: Form = kind.form(&record.parameters).await.unwrap();
    assert_eq!(form.fields[0].input, Input::Prose(DRAFT.to_owned()));
    let entered = [("/text".to_owned(), vec!["Hello,\n\nit costs 6.".to_owned()])].into();
    let edited = form.fill(&record.parameters, &entered).unwrap();
    let proposal = kind.prepare(&edited).await.unwrap();
    assert_eq!(proposal.parameters["text"], "Hello,\n\nit costs 6.");
    assert_eq!(proposal.parameters["about"], record.parameters["about"], "the facts on the card stay");
}

#[tokio::test]
async fn an_older_version_is_not_sent() {
    let world = World::with(vec![classifies("inquiry", 0.9), drafts(DRAFT), drafts("Shorter.")]);
    let thread = world.arrives(raw("m1", "Prices", "How much is it?")).await;
    let older = world.card(&thread).await;
    world.says(&thread, "shorter").await;
    let cards = world.cards(&thread).await;
    let older = cards.iter().find(|card| card.id == older.id).unwrap();
    assert_eq!(older.status, Status::Superseded, "its buttons do nothing any more");
    let newer = world.card(&thread).await;
    assert_ne!(newer.digest, older.digest);
    world.decide(&thread, Verdict::Approved).await;
    assert_eq!(world.sent(), ["Shorter."]);
}

#[tokio::test]
async fn a_mail_that_is_gone_is_not_answered() {
    let (world, _) = waiting().await;
    world.account.inbox.lock().unwrap().clear();
    let gone = kind(&world).prepare(&json!({ "mail": "m1", "text": "Hi" })).await;
    assert!(matches!(gone, Err(PrepareError::Refusal(Refusal::Refused { .. }))), "{gone:?}");
}
