//! What a mail brings with it besides its text: people, events, signs of danger, and other mails.

use std::{sync::Arc, time::Duration};

use countersign_core::{ids::ThreadId, reply::Span};
use countersign_graph::action::{ActionKind as _, ActionRecord, Input, PrepareError, Refusal, Status, Verdict};
use countersign_mail::{MailThreadId, RawMail};
use serde_json::json;

use super::{support::*, syncing::syncing};
use crate::{
    register::MailStatus,
    rules::{AutomaticSettings, Class},
    send::SendAnswer,
    sync::Round,
};

/// Returns a mail with more headers.
fn with(id: &str, headers: &str, text: &str) -> RawMail {
    let mail = raw(id, "Prices", text);
    let bytes = String::from_utf8(mail.bytes.clone()).unwrap();
    let bytes = bytes.replacen("Message-ID", &format!("{headers}\r\nMessage-ID"), 1).into_bytes();
    RawMail { size: bytes.len() as u64, bytes, ..mail }
}

fn warnings(record: &ActionRecord) -> String {
    record.card.warnings.iter().map(|warning| warning.words()).collect::<Vec<_>>().join("\n")
}

fn line(record: &ActionRecord, label: &str) -> Vec<String> {
    record.card.facts.iter().filter(|fact| fact.label == label).map(|fact| fact.after.words()).collect()
}

#[tokio::test]
async fn the_card_names_the_recipients_and_the_event() {
    let world = World::without_model(Default::default());
    let event = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:Kickoff\r\nDTSTART;TZID=Europe/Berlin:20250701T140000\r\n\
                 LOCATION:Room 5\r\nORGANIZER;CN=Dana:mailto:dana@example.org\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
    let mail = with("m1", "Cc: Kim <kim@example.org>", event);
    let bytes = String::from_utf8(mail.bytes.clone()).unwrap().replace("text/plain", "text/calendar").into_bytes();
    let thread = world.arrives(RawMail { bytes, ..mail }).await;
    let record = world.card(&thread).await;
    assert_eq!(line(&record, "To"), ["Support <us@example.com>"]);
    assert_eq!(line(&record, "Cc"), ["Kim <kim@example.org>"]);
    let invitation = &line(&record, "Invitation")[0];
    assert!(
        invitation
            .starts_with("Kickoff, Tue, Jul 1, 2025, 2:00 PM (Europe/Berlin), Room 5, from Dana <dana@example.org>"),
        "{invitation}"
    );
    let fact = record.card.facts.iter().find(|fact| fact.label == "Invitation").unwrap();
    assert!(fact.after.0.iter().any(|span| matches!(span, Span::Moment(_))), "in the zone of the reader");
    assert_eq!(line(&record, "Email"), ["(no text)"]);
}

#[tokio::test]
async fn a_mail_without_text_is_not_called_long() {
    let world = World::without_model(Default::default());
    let thread = world.arrives(raw("m1", "Prices", "")).await;
    assert_eq!(line(&world.card(&thread).await, "Email"), ["(no text)"]);
    let posted = world.posted(&thread).await.join("\n");
    assert!(!posted.contains("is long"), "{posted}");
}

#[tokio::test]
async fn the_threshold_for_spam_is_that_of_the_settings() {
    let settings = AutomaticSettings { thresholds: [(Class::Spam, 0.95)].into(), ..AutomaticSettings::default() };
    let answers = Some(vec![classifies("spam", 0.94), drafts("Hello."), classifies("spam", 0.95)]);
    let world = World::made(Making { settings, answers, ..Making::default() });
    let unsure = world.arrives(raw("m1", "Lucky", "You have won.")).await;
    let record = world.card(&unsure).await;
    assert_eq!((record.status, record.scope.is_risky), (Status::Pending, true));
    let sure = world.arrives(raw("m2", "Lucky", "You have won.")).await;
    assert!(world.cards(&sure).await.is_empty());
}

#[tokio::test]
async fn a_mail_that_may_deceive_has_a_risky_card_and_a_warning_in_the_channel() {
    let world = World::without_model(Default::default());
    let received = "Received: from x by mx.example.com\r\n\
                    Authentication-Results: mx.example.com; spf=fail; dkim=none; dmarc=fail";
    let thread = world.arrives(with("m1", received, "Please pay this.")).await;
    let record = world.card(&thread).await;
    assert!(record.scope.is_risky, "{:?}", record.scope);
    assert!(warnings(&record).starts_with("The sender couldn't be verified"), "{}", warnings(&record));
    let entry = world.entry("m1").await;
    let heading = crate::heading::heading(&world.book, &entry, &|_| None).await.unwrap().words();
    assert_eq!(heading.lines().nth(1), Some("⚠️ Careful: the sender may be forged."), "{heading}");
    let usual = world.arrives(raw("m2", "Prices", "How much is it?")).await;
    assert!(!world.card(&usual).await.scope.is_risky);
}

#[tokio::test]
async fn a_mail_for_which_nobody_waits_is_one_quiet_line() {
    let world = World::with(vec![drafts("Thank you.")]);
    let thread = world.arrives(with("m1", "List-Id: <news.shop.example>", "Buy lamps.")).await;
    assert!(world.cards(&thread).await.is_empty() && world.asked().is_empty(), "no model was asked");
    let entry = world.entry("m1").await;
    assert_eq!((entry.status, entry.outcome()), (MailStatus::Rejected, "no reply needed"));
    let heading = crate::heading::heading(&world.book, &entry, &|_| None).await.unwrap().words();
    assert_eq!(heading, "Dana Fields: Prices · mailing list message, no reply needed");
    let posted = world.posted(&thread).await.join("\n");
    assert!(posted.contains("This email is a mailing list message, so no reply was drafted."), "{posted}");
    assert!(posted.contains("Buy lamps."), "it can be read: {posted}");
    assert!(!posted.contains("mail-labels"), "it stays as it is in the mailbox: {posted}");
    world.says(&thread, "draft a reply").await;
    assert_eq!(world.card(&thread).await.status, Status::Pending, "a person wants one");
}

#[tokio::test]
async fn the_own_address_is_no_stranger() {
    let world = World::without_model(Default::default());
    let mail = raw("m1", "Note", "For us.");
    let bytes =
        String::from_utf8(mail.bytes.clone()).unwrap().replace("Dana Fields <dana@example.org>", "Us <us@example.com>");
    let thread = world.arrives(RawMail { bytes: bytes.into_bytes(), ..mail }).await;
    assert!(world.cards(&thread).await.is_empty());
    let posted = world.posted(&thread).await.join("\n");
    assert!(posted.contains("This email is from your own address, so no reply was drafted."), "{posted}");
    world.says(&thread, "who is this?").await;
    assert_eq!(world.posted(&thread).await, ["Us (us@example.com) is your own address."]);
    assert!(!world.lookup.asked.lock().unwrap().iter().any(|asked| asked.starts_with("seen")), "it becomes no contact");
}

fn kind(world: &World) -> SendAnswer {
    let clock = Arc::new(world.store.clock.clone());
    SendAnswer { account: world.account.clone(), book: world.book.clone(), clock, in_flight: Duration::from_secs(60) }
}

#[tokio::test]
async fn a_person_can_choose_the_address_for_replies() {
    let world = World::without_model(Default::default());
    let thread = world.arrives(with("m1", "Reply-To: Orders <orders@example.org>", "How much is it?")).await;
    let record = world.card(&thread).await;
    assert_eq!(record.parameters["to"]["address"], "dana@example.org", "the sender, unless someone chooses");
    let kind = kind(&world);
    let form = kind.form(&record.parameters).await.unwrap();
    let field = form.fields.iter().find(|field| field.place == "/to/address").expect("there is a choice");
    let Input::One { picks, value } = &field.input else { panic!("{field:?}") };
    let picks: Vec<_> = picks.iter().map(|pick| pick.value.as_str()).collect();
    assert_eq!(
        (picks.as_slice(), value.as_deref()),
        (&["dana@example.org", "orders@example.org"][..], Some("dana@example.org"))
    );
    let text = record.parameters["text"].as_str().unwrap().to_owned();
    let entered =
        [("/text".to_owned(), vec![text]), ("/to/address".to_owned(), vec!["orders@example.org".to_owned()])].into();
    let edited = form.fill(&record.parameters, &entered).unwrap();
    let proposal = kind.prepare(&edited, None).await.unwrap();
    assert_eq!(proposal.parameters["to"], json!({ "name": "Orders", "address": "orders@example.org" }));
    let warned: Vec<_> = proposal.card.warnings.iter().map(|warning| warning.words()).collect();
    assert!(warned[0].contains("and not to its sender, Dana Fields <dana@example.org>"), "{warned:?}");
    let mallory = json!({ "mail": "m1", "text": "Hi", "to": { "address": "mallory@evil.example" } });
    let other = kind.prepare(&mallory, None).await;
    let Err(PrepareError::Refusal(Refusal::Refused { reply, .. })) = other else { panic!("{other:?}") };
    assert!(reply.words().ends_with("dana@example.org or orders@example.org."), "{}", reply.words());
}

/// Returns a mail that arrives now, in the conversation of the others.
fn in_conversation(world: &World, id: &str, text: &str) -> RawMail {
    let subject = if id == "m1" { "Prices" } else { "Re: Prices" };
    RawMail { thread: Some(MailThreadId::new("t")), received_at: world.now(), ..raw(id, subject, text) }
}

async fn brings(world: &World, syncing: &super::syncing::Syncing, mail: RawMail) -> Vec<ThreadId> {
    world.account.inbox.lock().unwrap().push(mail);
    assert_eq!(syncing.sync.round().await, Round::Complete(false));
    let mut woken = std::mem::take(&mut *syncing.woken.lock().unwrap());
    woken.dedup();
    for thread in &woken {
        world.work(thread).await;
    }
    woken
}

#[tokio::test]
async fn a_newer_mail_of_the_conversation_marks_the_older_card() {
    let world = World::without_model(Default::default());
    let syncing = syncing(&world, "p1", Arc::default());
    let first = brings(&world, &syncing, in_conversation(&world, "m1", "I order one.")).await.remove(0);
    let older = world.card(&first).await;
    assert!(!older.scope.is_risky);
    world.store.clock.advance(Duration::from_secs(5));
    let woken = brings(&world, &syncing, in_conversation(&world, "m2", "Please cancel.")).await;
    assert_eq!(woken.len(), 2, "the new mail's thread and the older one's");
    let newer = world.card(&first).await;
    assert_ne!(newer.id, older.id, "its buttons do nothing any more");
    assert_eq!((newer.status, newer.scope.is_risky), (Status::Pending, true), "sending asks once more");
    assert!(warnings(&newer).starts_with("A newer email came in this conversation: “Prices” from Dana Fields, "));
    let posted = world.posted(&first).await.join("\n");
    assert!(posted.contains("The draft on the card below answers the earlier email."), "{posted}");
    let heading = crate::heading::heading(&world.book, &world.entry("m1").await, &|_| None).await.unwrap().words();
    assert!(heading.contains("A newer email came: “Prices”"), "{heading}");
    world.decide(&first, Verdict::Approved).await;
    assert_eq!(world.sent().len(), 1, "a person decides");
    let woken = brings(&world, &syncing, in_conversation(&world, "m3", "Thanks.")).await;
    assert!(!woken.contains(&first), "it is answered");
}

#[tokio::test]
async fn a_newer_mail_that_the_card_does_not_show_stops_it() {
    let world = World::without_model(Default::default());
    let syncing = syncing(&world, "p1", Arc::default());
    let first = brings(&world, &syncing, in_conversation(&world, "m1", "I order one.")).await.remove(0);
    let newer = in_conversation(&world, "m2", "Please cancel.");
    world.account.inbox.lock().unwrap().push(newer);
    syncing.sync.round().await; // and the thread has not heard of it
    world.account.sends.lock().unwrap().clear();
    let record = world.card(&first).await;
    assert!(!record.scope.is_risky);
    world.decide(&first, Verdict::Approved).await;
    assert!(world.sent().is_empty());
}

#[tokio::test]
async fn one_message_id_is_one_thread() {
    let world = World::without_model(Default::default());
    let syncing = syncing(&world, "p1", Arc::default());
    let copy = |id: &str, text: &str| {
        let mail = raw("m1", "Prices", text);
        RawMail { id: countersign_mail::MailId::new(id), received_at: world.now(), ..mail }
    };
    world.account.inbox.lock().unwrap().push(copy("m1", "How much is it?"));
    let woken = brings(&world, &syncing, copy("m1b", "How much is it?")).await; // in the same round
    assert_eq!((woken.len(), syncing.roots.posted.lock().unwrap().len()), (1, 1));
    world.posted(&woken[0]).await;
    let again = brings(&world, &syncing, copy("m1c", "How much is it?\r\n-- \r\nThe list's footer")).await;
    assert_eq!(again, woken);
    let posted = world.posted(&woken[0]).await.join("\n");
    assert!(posted.contains("This email arrived once more, with a different text:"), "{posted}");
    assert!(posted.contains("The list's footer"), "nothing is lost: {posted}");
    assert_eq!(syncing.roots.posted.lock().unwrap().len(), 1);
}
