//! Each answer is sent exactly once, in its thread, whatever request or response is lost.

use std::{sync::Arc, time::Duration};

use countersign::{
    clock::{Clock as _, SystemClock},
    mail::{Found, Incoming, Mail, MailAccount as _, MailError, MailId, Outgoing, Prepared, SendError, Sent},
    send_permit::SendPermit,
};
use countersign_sandbox::{
    faults::Fault,
    gmail::{Letter, Options},
};

use super::{World, permitted};

/// The path of a request that sends a draft.
const SEND: &str = "POST /gmail/v1/users/me/drafts/send";
/// The path of a request that makes a draft.
const DRAFT: &str = "POST /gmail/v1/users/me/drafts";

impl World {
    /// Receives a letter. Returns the mail and the answer to it.
    async fn answer(&self) -> (MailId, Outgoing) {
        let mail = self.receives("Order 7");
        let out = self.answer_to(&mail, "key-1").await;
        (mail, out)
    }

    /// The same with the draft of the answer.
    async fn draft(&self) -> (MailId, Outgoing, Prepared) {
        let (mail, out) = self.answer().await;
        let prepared = self.prepare(&out).await.unwrap();
        (mail, out, prepared)
    }

    async fn prepare(&self, out: &Outgoing) -> Result<Prepared, MailError> {
        permitted(self.account.prepare(out)).await
    }

    async fn send(&self, out: &Outgoing, prepared: &Prepared) -> Result<Sent, SendError> {
        permitted(self.account.send(out, prepared)).await
    }

    /// Checks that the answer was sent once, in the thread of the mail, and that no draft is left.
    fn sent_once(&self, mail: &MailId, out: &Outgoing) {
        let times = self.gmail.times_sent();
        let thread = self.gmail.mail(mail.as_str()).unwrap().thread;
        assert_eq!(times.into_iter().collect::<Vec<_>>(), [((thread, Some(out.key.clone())), 1)]);
        assert_eq!(self.gmail.drafts(), []);
    }
}

#[tokio::test]
async fn an_answer_is_sent_in_its_thread_exactly_as_it_was_written() {
    let world = World::start().await;
    let mail = world.receives("Wo bleibt die Bestellung für Müller?");
    let out = world.answer_to(&mail, "key-1").await;
    let prepared = world.prepare(&out).await.unwrap();
    assert_eq!(world.gmail.sent(), [], "a draft is not sent");
    let sent = world.send(&out, &prepared).await.unwrap();
    world.sent_once(&mail, &out);
    let copy = &world.gmail.sent()[0];
    assert_eq!(sent.id.as_ref().map(MailId::as_str), Some(copy.id.as_str()));
    assert_eq!(copy.subject, "Re: Wo bleibt die Bestellung für Müller?");
    assert_eq!(copy.text.trim_end(), "It is on its way.");
    assert_eq!(copy.to, ["ana@customer.example"]);
    let answered = world.gmail.mail(mail.as_str()).unwrap().message_id;
    assert_eq!((&copy.in_reply_to, &copy.references), (&vec![answered.clone()], &vec![answered]));

    // The customer answers, and that answer is in the same thread.
    let next = MailId::new(world.gmail.receives(&Letter::answer_to(copy, "Thank you.")));
    assert_eq!(world.gmail.mail(next.as_str()).unwrap().thread, copy.thread);
    let second = world.answer_to(&next, "key-2").await;
    assert_eq!((second.subject.as_str(), second.references.len()), ("Re: Wo bleibt die Bestellung für Müller?", 3));
    let prepared = world.prepare(&second).await.unwrap();
    world.send(&second, &prepared).await.unwrap();
    assert_eq!(world.gmail.sent()[1].thread, copy.thread);
}

#[tokio::test]
async fn an_answer_of_a_person_is_told_from_one_of_the_bot() {
    let world = World::start().await;
    let (first, second) = (world.receives("Order 7"), world.receives("Order 8"));
    let incoming = async |id: &MailId| {
        let mail = Mail::read(&world.account.read(id).await.unwrap().unwrap());
        Incoming::of(&mail).expect("it has a sender")
    };
    let (of_first, of_second) = (incoming(&first).await, incoming(&second).await);
    assert_eq!(world.account.answered_by_hand(&of_first).await.unwrap(), None);
    world.gmail.answers_by_hand(first.as_str(), "Bo <support@sandbox.example>", "It left today.").unwrap();
    let answer = world.account.answered_by_hand(&of_first).await.unwrap().expect("Bo answered");
    let is_now = world.clock.now().since(answer.at) < Duration::from_secs(60);
    assert!(answer.by.unwrap().name.as_deref() == Some("Bo") && is_now);

    let out = world.answer_to(&second, "key-1").await;
    let prepared = world.prepare(&out).await.unwrap();
    assert_eq!(world.account.answered_by_hand(&of_second).await.unwrap(), None, "a draft is no answer");
    world.send(&out, &prepared).await.unwrap();
    assert_eq!(world.account.answered_by_hand(&of_second).await.unwrap(), None, "the bot sent it");
}

#[tokio::test]
async fn a_draft_is_found_again_after_a_lost_answer() {
    for fault in [Fault::LostAnswer, Fault::Status(500).after(), Fault::Status(503).after()] {
        let world = World::with(Options { replaces_message_ids: true, ..Options::default() }).await;
        let (mail, out) = world.answer().await;
        world.gmail.faults().next_on(DRAFT, fault.clone());
        let prepared = world.prepare(&out).await.unwrap();
        assert_eq!(world.requests(DRAFT), 1, "{fault:?}: the draft is not made again");
        let Found::Draft(found) = world.account.find(&out).await.unwrap() else { panic!("there is a draft") };
        assert_eq!((&found, world.gmail.drafts().len()), (&prepared, 1), "{fault:?}");
        world.send(&out, &prepared).await.unwrap();
        world.sent_once(&mail, &out);
    }
}

#[tokio::test]
async fn a_request_for_a_draft_that_was_lost_leaves_nothing() {
    let world = World::start().await;
    let (mail, out) = world.answer().await;
    (0..3).for_each(|_| world.gmail.faults().next_on(DRAFT, Fault::LostRequest));
    assert!(matches!(world.prepare(&out).await, Err(MailError::Unavailable { .. })), "after three attempts");
    assert_eq!(world.account.find(&out).await.unwrap(), Found::Nothing);
    let prepared = world.prepare(&out).await.unwrap();
    world.send(&out, &prepared).await.unwrap();
    world.sent_once(&mail, &out);
}

#[tokio::test]
async fn a_draft_is_made_after_a_limit_and_after_a_refused_token() {
    for fault in [Fault::TooMany(0), Fault::Status(403), Fault::Status(500), Fault::Status(401)] {
        let world = World::start().await;
        let (mail, out) = world.answer().await;
        world.gmail.faults().next_on(DRAFT, fault.clone());
        let prepared = world.prepare(&out).await.unwrap();
        assert_eq!(world.gmail.drafts().len(), 1, "{fault:?}");
        world.send(&out, &prepared).await.unwrap();
        world.sent_once(&mail, &out);
    }
}

#[tokio::test]
async fn an_answer_whose_response_was_lost_is_found_among_the_sent_ones() {
    for replaces_message_ids in [false, true] {
        for fault in [Fault::LostAnswer, Fault::Status(500).after(), Fault::Status(504).after()] {
            let world = World::with(Options { replaces_message_ids, ..Options::default() }).await;
            let (mail, out, prepared) = world.draft().await;
            world.gmail.faults().next_on(SEND, fault.clone());
            let error = world.send(&out, &prepared).await.unwrap_err();
            assert!(matches!(error, SendError::Unknown { .. }), "{fault:?}: {error:?}");
            let Found::Sent(sent) = world.account.find(&out).await.unwrap() else { panic!("it was sent") };
            let copy = &world.gmail.sent()[0];
            assert_eq!(sent.message_id.as_deref(), Some(copy.message_id.as_str()));
            assert_eq!(copy.message_id == out.message_id, !replaces_message_ids);
            world.sent_once(&mail, &out);
        }
    }
}

#[tokio::test]
async fn an_answer_that_was_not_sent_is_still_a_draft_and_can_be_sent() {
    for fault in [Fault::LostRequest, Fault::Status(500), Fault::Proxy(502)] {
        let world = World::start().await;
        let (mail, out, prepared) = world.draft().await;
        world.gmail.faults().next_on(SEND, fault.clone());
        assert!(matches!(world.send(&out, &prepared).await, Err(SendError::Unknown { .. })), "{fault:?}");
        assert_eq!(world.account.find(&out).await.unwrap(), Found::Draft(prepared.clone()), "{fault:?}");
        world.send(&out, &prepared).await.unwrap();
        world.sent_once(&mail, &out);
    }
}

#[tokio::test]
async fn a_request_that_is_still_on_its_way_does_not_send_twice() {
    let world = World::start().await;
    let (mail, out, prepared) = world.draft().await;
    world.gmail.faults().next_on(SEND, Fault::Late { after_ms: 5_000, is_closed: true });
    assert!(matches!(world.send(&out, &prepared).await, Err(SendError::Unknown { .. })));
    assert_eq!(world.account.find(&out).await.unwrap(), Found::Draft(prepared.clone()));
    // The second request is faster than the first one, which then finds no draft.
    world.send(&out, &prepared).await.unwrap();
    world.clock.advance(Duration::from_secs(6));
    assert!(matches!(world.account.find(&out).await.unwrap(), Found::Sent(_)));
    world.sent_once(&mail, &out);
}

#[tokio::test]
async fn a_draft_is_sent_once_only() {
    let world = World::start().await;
    let (mail, out, prepared) = world.draft().await;
    world.send(&out, &prepared).await.unwrap();
    let again = world.send(&out, &prepared).await.unwrap_err();
    assert!(matches!(again, SendError::Unknown { .. }), "{again:?}");
    let error = world.prepare(&out).await.unwrap_err();
    assert!(matches!(error, MailError::Refused { status: None, .. }), "{error:?}");
    world.sent_once(&mail, &out);
}

#[tokio::test]
async fn a_refusal_and_a_limit_say_that_nothing_was_sent() {
    let world = World::start().await;
    let (mail, out, prepared) = world.draft().await;
    world.gmail.faults().next_on(SEND, Fault::Status(400));
    assert!(matches!(world.send(&out, &prepared).await, Err(SendError::Refused(_))));
    // A limit that lasts longer than the regular waits is left to a person.
    for (fault, attempts) in [(Fault::TooMany(7), 1), (Fault::Status(429), 3), (Fault::Status(403), 3)] {
        let before = world.requests(SEND);
        (0..attempts).for_each(|_| world.gmail.faults().next_on(SEND, fault.clone()));
        let error = world.send(&out, &prepared).await.unwrap_err();
        assert!(matches!(error, SendError::NotSent(MailError::Unavailable { .. })), "{fault:?}: {error:?}");
        assert_eq!(world.requests(SEND) - before, attempts, "{fault:?}");
    }
    world.google.tokens().revoke(); // it is replaced, and the draft is sent with the new one
    world.send(&out, &prepared).await.unwrap();
    world.sent_once(&mail, &out);
}

#[tokio::test]
async fn the_draft_of_an_answer_that_is_given_up_is_deleted() {
    let world = World::start().await;
    let mail = world.receives("Order 7");
    let [given_up, other] = [world.answer_to(&mail, "key-1").await, world.answer_to(&mail, "key-2").await];
    world.prepare(&given_up).await.unwrap();
    let prepared = world.prepare(&other).await.unwrap();
    for _ in 0..2 {
        world.account.discard(&given_up).await.unwrap();
        assert_eq!(world.gmail.drafts().len(), 1, "only its own draft, and it can be repeated");
    }
    assert_eq!(world.account.find(&given_up).await.unwrap(), Found::Nothing);
    world.send(&other, &prepared).await.unwrap();
    world.account.discard(&other).await.unwrap();
    world.sent_once(&mail, &other);
}

#[tokio::test]
async fn nothing_is_sent_without_a_valid_permit() {
    let world = World::start().await;
    let (_mail, out) = world.answer().await;
    assert_eq!(world.account.prepare(&out).await, Err(MailError::RunOut));
    let prepared = world.prepare(&out).await.unwrap();
    let run_out = SendPermit::new(Arc::new(SystemClock), Duration::ZERO);
    let error = run_out.during(world.account.send(&out, &prepared)).await.unwrap_err();
    assert_eq!(error, SendError::NotSent(MailError::RunOut));
    assert_eq!(world.requests(SEND), 0);
    assert_eq!(world.account.find(&out).await.unwrap(), Found::Draft(prepared));
}

#[tokio::test]
async fn a_draft_that_a_person_edited_is_put_back_before_it_is_sent() {
    let world = World::start().await;
    let (mail, out, prepared) = world.draft().await;
    let message = String::from_utf8(out.to_mime()).unwrap();
    let (head, _) = message.split_once("\r\n\r\n").unwrap();
    world.gmail.edits_draft(prepared.draft.as_deref().unwrap(), format!("{head}\r\n\r\nIt is lost.\r\n"));
    let again = world.prepare(&out).await.unwrap();
    assert_eq!(again, prepared);
    world.send(&out, &again).await.unwrap();
    assert_eq!(world.gmail.sent()[0].text.trim_end(), "It is on its way.");
    world.sent_once(&mail, &out);
}

#[tokio::test]
async fn a_draft_that_a_person_deleted_is_made_again() {
    let world = World::start().await;
    let (mail, out, prepared) = world.draft().await;
    world.gmail.deletes_draft(prepared.draft.as_deref().unwrap());
    assert!(matches!(world.send(&out, &prepared).await, Err(SendError::Unknown { .. })));
    assert_eq!(world.account.find(&out).await.unwrap(), Found::Nothing);
    let prepared = world.prepare(&out).await.unwrap();
    world.send(&out, &prepared).await.unwrap();
    world.sent_once(&mail, &out);
}

#[tokio::test]
async fn a_draft_that_a_person_rewrote_and_sent_is_not_sent_again() {
    let world = World::start().await;
    let (_mail, out, prepared) = world.draft().await;
    // A mail program may leave out headers that it does not know.
    let message = String::from_utf8(out.to_mime()).unwrap();
    let lines: Vec<_> = message.lines().filter(|line| !line.starts_with("X-Countersign-Key")).collect();
    world.gmail.edits_draft(prepared.draft.as_deref().unwrap(), lines.join("\r\n"));
    world.send(&out, &prepared).await.unwrap();
    let found = world.account.find(&out).await.unwrap();
    assert!(matches!(found, Found::Unknown { .. }), "{found:?}");
}

#[tokio::test]
async fn an_answer_in_another_thread_is_found() {
    let world = World::start().await;
    let mail = world.receives("Order 7");
    // Gmail starts another thread for another subject.
    let out = Outgoing { subject: "Your parcel".to_owned(), ..world.answer_to(&mail, "key-1").await };
    let prepared = world.prepare(&out).await.unwrap();
    assert_eq!(world.account.find(&out).await.unwrap(), Found::Draft(prepared.clone()));
    world.gmail.faults().next_on(SEND, Fault::LostAnswer);
    assert!(world.send(&out, &prepared).await.is_err());
    let Found::Sent(sent) = world.account.find(&out).await.unwrap() else { panic!("it was sent") };
    assert_ne!(sent.thread, out.thread);
}

#[tokio::test]
async fn an_answer_to_a_deleted_mail_is_not_lost_and_not_sent_twice() {
    let world = World::start().await;
    let (mail, out) = world.answer().await;
    world.gmail.deletes(mail.as_str());
    world.gmail.faults().next_on("POST /gmail/v1/users/me/drafts", Fault::LostAnswer);
    // The draft whose answer was lost is found by its key when the call is repeated.
    let prepared = world.prepare(&out).await.unwrap();
    assert_eq!(world.gmail.drafts().len(), 1);
    world.gmail.faults().next_on(SEND, Fault::LostAnswer);
    assert!(world.send(&out, &prepared).await.is_err());
    assert!(matches!(world.account.find(&out).await.unwrap(), Found::Sent(_)));
    assert_eq!(world.gmail.sent().len(), 1);
}

#[tokio::test]
async fn answers_of_others_are_told_apart_by_their_keys() {
    let world = World::start().await;
    let mail = world.receives("Order 7");
    let [first, second] = [world.answer_to(&mail, "key-1").await, world.answer_to(&mail, "key-2").await];
    let prepared = [world.prepare(&first).await.unwrap(), world.prepare(&second).await.unwrap()];
    assert_ne!(prepared[0], prepared[1]);
    world.send(&first, &prepared[0]).await.unwrap();
    assert_eq!(world.account.find(&second).await.unwrap(), Found::Draft(prepared[1].clone()));
    assert!(matches!(world.account.find(&first).await.unwrap(), Found::Sent(_)));
    let never = Outgoing { key: "key-3".to_owned(), at: world.clock.now(), ..second };
    assert_eq!(world.account.find(&never).await.unwrap(), Found::Nothing);
}
