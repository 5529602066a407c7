//! The action that sends: what is shown is what is sent, once, to the sender.

use std::{sync::atomic::Ordering, time::Duration};

use countersign_core::clock::Timestamp;
use countersign_graph::action::{ActionKind as _, Form, Input, PrepareError, Refusal, Status, Verdict};
use countersign_mail::{Address, AnswerByHand};
use serde_json::json;

use super::support::*;
use crate::{drafts, labels::Delivered, register::MailStatus, send::SendAnswer, state::Arrival};

const DRAFT: &str = "Hello Dana,\n\nThe small plan costs 5 a month.\n\nSupport";

async fn waiting() -> (World, countersign_core::ids::ThreadId) {
    let world = World::with(vec![classifies("inquiry", 0.9), drafts(DRAFT)]);
    let thread = world.arrives(raw("m1", "Prices", "How much is it?")).await;
    (world, thread)
}

fn kind(world: &World) -> SendAnswer {
    let clock = std::sync::Arc::new(world.store.clock.clone());
    let in_flight = Duration::from_secs(60);
    SendAnswer { account: world.account.clone(), book: world.book.clone(), clock, in_flight }
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
    To: Support <us@example.com>
    Received: 2025-03-04T09:00:00.000Z
    Email: How much is it?
    Class: inquiry · 0.90 (medium)
    Waiting because: Automatic replies are off.
    Reply subject: Re: Prices
    Reply: Hello Dana,

    The small plan costs 5 a month.

    Support
    note: Goes only to dana@example.org. A sent reply can't be taken back.
    note: Open in the mailbox
    ");
}

#[tokio::test]
async fn the_title_has_the_subject_without_the_marks_of_replies() {
    for (subject, title, reply) in [
        ("Re: Re: Prices", "Send reply to Dana Fields about “Prices”?", "Re: Prices"),
        ("", "Send reply to Dana Fields (no subject)?", "Re:"),
    ] {
        let world = World::without_model(Default::default());
        let thread = world.arrives(raw("m1", subject, "How much is it?")).await;
        let record = world.card(&thread).await;
        assert_eq!((record.card.title.as_str(), &record.parameters["subject"]), (title, &json!(reply)));
        world.says(&thread, "spam").await;
        let title = world.card(&thread).await.card.title.clone();
        assert!(
            ["Mark “Prices” as spam?", "Mark this email (no subject) as spam?"].contains(&title.as_str()),
            "{title}"
        );
    }
}

#[tokio::test]
async fn an_edited_template_is_no_template_any_more() {
    let world = World::without_model(Default::default());
    let thread = world.arrives(raw("m1", "Prices", "How much is it?")).await;
    let record = world.card(&thread).await;
    let notes = |card: &countersign_core::reply::Card| card.notes.iter().map(|note| note.words()).collect::<String>();
    assert!(notes(&record.card).contains("comes from a template"), "{}", notes(&record.card));
    let mut parameters = record.parameters.clone();
    parameters["text"] = "It costs 5.".into();
    let proposal = kind(&world).prepare(&parameters, None).await.unwrap();
    assert!(!notes(&proposal.card).contains("template"), "{}", notes(&proposal.card));
    let same = kind(&world).prepare(&record.parameters, None).await.unwrap();
    assert!(notes(&same.card).contains("comes from a template"), "nothing was edited");
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
async fn an_answer_of_which_there_is_no_trace_is_made_again() {
    let (world, thread) = waiting().await;
    world.account.sends.lock().unwrap().push_back(FakeSend::NeverMade);
    world.decide(&thread, Verdict::Approved).await;
    let record = world.card(&thread).await;
    assert_eq!((record.status, record.sends), (Status::Done, 2));
    assert_eq!(world.sent(), [DRAFT]);
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
    assert_eq!(world.account.drafts.lock().unwrap().len(), 1, "its draft is left");
    let posted = world.posted(&thread).await;
    let order = posted.iter().find_map(|message| message.strip_prefix("mail-drafts: ")).unwrap();
    let order = serde_json::from_str(order).unwrap();
    let discarded = drafts::deliver(&*world.account, &*world.store.store, &thread, &order).await;
    assert_eq!((discarded, world.account.drafts.lock().unwrap().len()), (Delivered::Done, 0));
    world.requests(&thread, &failed).await;
    world.decide(&thread, Verdict::Approved).await;
    assert_eq!(world.sent(), [DRAFT]);
    let done = serde_json::json!({ "action": world.card(&thread).await.id });
    let discarded = drafts::deliver(&*world.account, &*world.store.store, &thread, &done).await;
    assert_eq!(discarded, Delivered::Done, "an order for a reply that was sent does nothing");
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
    let other = kind.prepare(&json!({ "mail": "m1", "text": "Hi", "to": to }), None).await;
    let Err(PrepareError::Refusal(Refusal::Refused { reply, .. })) = other else { panic!("{other:?}") };
    assert_eq!(reply.words(), "A reply can only go to the sender of the email: dana@example.org.");
    let ignored = json!({ "mail": "m1", "text": "Hi", "cc": "mallory@evil.example", "subject": "Other" });
    let proposal = kind.prepare(&ignored, None).await.unwrap();
    assert_eq!(proposal.parameters["to"]["address"], "dana@example.org");
    assert_eq!(proposal.parameters["subject"], "Re: Prices");
    assert!(proposal.parameters.get("cc").is_none());
}

#[tokio::test]
async fn a_mail_is_answered_once() {
    let (world, thread) = waiting().await;
    world.decide(&thread, Verdict::Approved).await;
    let again = kind(&world).prepare(&json!({ "mail": "m1", "text": "Hi again" }), None).await;
    let Err(PrepareError::Refusal(Refusal::Refused { reply, .. })) = again else { panic!("{again:?}") };
    assert_eq!(reply.words(), "This email was already answered. Nothing more was sent.");
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
    let proposal = kind.prepare(&edited, None).await.unwrap();
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
    let gone = kind(&world).prepare(&json!({ "mail": "m1", "text": "Hi" }), None).await;
    assert!(matches!(gone, Err(PrepareError::Refusal(Refusal::Refused { .. }))), "{gone:?}");
}

/// Has a person answer a mail with a mail program.
fn answers_by_hand(world: &World, message_id: &str) {
    let answer = AnswerByHand { by: Address::parse("Bo Field <us@example.com>"), at: Timestamp(1_741_080_000_000) };
    world.account.by_hand.lock().unwrap().push((message_id.to_owned(), answer));
}

#[tokio::test]
async fn nothing_is_sent_after_a_person_answered_in_the_mailbox() {
    let (world, thread) = waiting().await;
    answers_by_hand(&world, "m1@example.org");
    world.decide(&thread, Verdict::Approved).await;
    assert!(world.sent().is_empty() && world.account.drafts.lock().unwrap().is_empty());
    let failed = world.card(&thread).await;
    assert_eq!(failed.status, Status::Failed);
    let said = failed.outcome.as_ref().unwrap().summary().words();
    assert!(
        said.starts_with("Answered in the mailbox by Bo Field, ") && said.ends_with(" Nothing was sent."),
        "{said}"
    );
    let again = kind(&world).prepare(&json!({ "mail": "m1", "text": "Hi" }), None).await;
    let Err(PrepareError::Refusal(Refusal::Refused { reply, .. })) = again else { panic!("{again:?}") };
    assert!(reply.words().starts_with("Answered in the mailbox by Bo Field, "), "{}", reply.words());
}

#[tokio::test]
async fn the_card_closes_when_a_person_answered_in_the_mailbox() {
    let (world, thread) = waiting().await;
    let answer = AnswerByHand { by: Address::parse("Bo Field <us@example.com>"), at: Timestamp(1_741_080_000_000) };
    world.posted(&thread).await;
    let arrival = Arrival { answered: Some(answer), ..Arrival::new(&mail(), None, false) };
    world.event(&thread, "m1#answered", &arrival).await;
    let closed = world.card(&thread).await;
    assert_eq!(closed.status, Status::Cancelled);
    assert!(closed.decision_line().words().starts_with("Answered in the mailbox by Bo Field, "));
    assert_eq!(world.entry("m1").await.status, MailStatus::Sent);
    let posted = world.posted(&thread).await;
    assert!(posted.iter().any(|message| message.starts_with("[closed] Send reply to Dana Fields")), "{posted:?}");
    assert!(posted.iter().any(|message| message.starts_with("Answered in the mailbox by Bo Field, ")), "{posted:?}");
    assert!(world.sent().is_empty());
}

#[tokio::test]
async fn an_answer_that_is_found_by_checking_again_is_labelled() {
    let (world, thread) = waiting().await;
    world.account.sends.lock().unwrap().push_back(FakeSend::SentWithoutAnswer);
    world.account.cannot_tell.store(true, Ordering::Relaxed);
    world.decide(&thread, Verdict::Approved).await;
    let unknown = world.card(&thread).await;
    assert_eq!(unknown.status, Status::Unknown);
    assert_eq!(world.entry("m1").await.status, MailStatus::NeedsReview);
    world.posted(&thread).await;
    world.account.cannot_tell.store(false, Ordering::Relaxed);
    world.checks_again(&thread, &unknown).await;
    assert_eq!(world.card(&thread).await.status, Status::Done);
    assert_eq!(world.entry("m1").await.status, MailStatus::Sent);
    let posted = world.posted(&thread).await;
    let labels: Vec<_> = posted.iter().filter_map(|message| message.strip_prefix("mail-labels: ")).collect();
    assert_eq!(labels, [r#"{"handled":"answered","mail":"m1"}"#]);
    assert_eq!(world.sent().len(), 1);
}
