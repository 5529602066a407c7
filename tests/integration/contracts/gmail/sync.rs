//! Finding and reading new mails, with each fault of reads.

use std::time::Duration;

use countersign::mail::{Batch, Handled, Mail, MailAccount as _, MailError, MailId, SyncPoint, Warning};
use countersign_sandbox::{faults::Fault, gmail::Options};

use super::World;

impl World {
    /// Reads all batches since a point. Returns the mails, and the point after them.
    async fn sync_all(&self, since: Option<SyncPoint>) -> (Vec<MailId>, SyncPoint, bool) {
        let (mut mails, mut since, mut full) = (Vec::new(), since, false);
        loop {
            let Batch { arrived, next, is_full, has_more } = self.account.sync(since.as_ref()).await.unwrap();
            mails.extend(arrived);
            full |= is_full;
            if !has_more {
                return (mails, next, full);
            }
            since = Some(next);
        }
    }
}

#[tokio::test]
async fn the_inbox_is_listed_once_and_then_followed() {
    let world = World::start().await;
    let first = [world.receives("Order 1"), world.receives("Order 2")];
    let (mails, point, full) = world.sync_all(None).await;
    assert_eq!((mails.as_slice(), full), (first.as_slice(), true), "oldest first");
    let (mails, point, full) = world.sync_all(Some(point)).await;
    assert_eq!((mails.len(), full), (0, false));
    let third = world.receives("Order 3");
    world.account.mark(&third, Handled::Answered).await.unwrap();
    let (mails, point, _) = world.sync_all(Some(point)).await;
    assert_eq!(mails, [third], "our own label brings nothing back");
    assert_eq!(world.sync_all(Some(point)).await.0, []);
}

#[tokio::test]
async fn all_pages_are_read() {
    let world = World::with(Options { page_size: 2, ..Options::default() }).await;
    let old: Vec<_> = (0..25).map(|n| world.receives(&format!("Order {n}"))).collect();
    let (mut mails, point, full) = world.sync_all(None).await;
    mails.sort();
    assert_eq!((mails, full), (old, true));
    let new: Vec<_> = (0..25).map(|n| world.receives(&format!("Return {n}"))).collect();
    assert_eq!(world.sync_all(Some(point)).await.0, new);
}

#[tokio::test]
async fn mails_that_arrive_during_a_long_list_are_not_lost() {
    let world = World::with(Options { page_size: 1, ..Options::default() }).await;
    (0..12).for_each(|n| drop(world.receives(&format!("Order {n}"))));
    let first = world.account.sync(None).await.unwrap();
    assert!(first.has_more);
    let late = world.receives("Order 12");
    let (rest, point, _) = world.sync_all(Some(first.next)).await;
    let (after, ..) = world.sync_all(Some(point)).await;
    assert!(rest.contains(&late) || after.contains(&late));
}

#[tokio::test]
async fn an_old_history_id_or_an_unknown_point_leads_to_the_whole_inbox() {
    let world = World::start().await;
    let mail = world.receives("Order 1");
    let (_, point, _) = world.sync_all(None).await;
    world.gmail.expires_history();
    let (mails, point, full) = world.sync_all(Some(point)).await;
    assert_eq!((mails, full), (vec![mail.clone()], true));
    assert!(!world.sync_all(Some(point)).await.2, "the new point is followed");
    let (mails, _, full) = world.sync_all(Some(SyncPoint::new("uid:7:9"))).await;
    assert_eq!((mails, full), (vec![mail.clone()], true));
    let (mails, _, full) = world.sync_all(Some(SyncPoint::new("list:1000:no-such-page"))).await;
    assert_eq!((mails, full), (vec![mail], true));
}

#[tokio::test]
async fn a_mail_is_read_byte_for_byte() {
    let world = World::start().await;
    let bytes = b"From: Ana <ana@customer.example>\r\nSubject: \xff\xfe\r\n\r\n\x00raw\xff\r\n".to_vec();
    let id = MailId::new(world.gmail.receives_mime(bytes.clone()));
    let raw = world.account.read(&id).await.unwrap().unwrap();
    assert_eq!((&raw.bytes, raw.size, raw.is_cut), (&bytes, bytes.len() as u64, false));
    assert!(raw.labels.contains(&"INBOX".to_owned()));
    world.gmail.deletes(id.as_str());
    assert_eq!(world.account.read(&id).await.unwrap(), None);
}

#[tokio::test]
async fn a_mail_that_is_too_large_is_cut_and_says_so() {
    let world = World::start().await;
    let id = world.receives("Order 7");
    world
        .gmail
        .faults()
        .next_on(&format!("GET /gmail/v1/users/me/messages/{id}"), Fault::Flood { status: 200, pause_ms: 0 });
    let raw = world.account.read(&id).await.unwrap().unwrap();
    assert!(raw.is_cut);
    let mail = Mail::read(&raw);
    assert_eq!(mail.subject, "Order 7");
    assert_eq!(mail.sender().map(|sender| sender.address.as_str()), Some("ana@customer.example"));
    assert!(mail.text.contains("Where is my order?"), "{}", mail.text);
    assert!(mail.warnings.iter().any(|warning| matches!(warning, Warning::Truncated { .. })), "{:?}", mail.warnings);
}

#[tokio::test]
async fn a_read_is_repeated_after_failures_that_may_pass() {
    let world = World::start().await;
    let id = world.receives("Order 7");
    let faults = [
        Fault::Status(500),
        Fault::Status(503),
        Fault::Status(429),
        Fault::Status(403), // Google's other form of 429
        Fault::TooMany(3600),
        Fault::Proxy(502),
        Fault::LostRequest,
        Fault::LostAnswer,
    ];
    for fault in faults {
        world.gmail.faults().next(fault.clone());
        world.gmail.faults().next(fault.clone());
        let before = world.gmail.ledger().len();
        assert!(world.account.read(&id).await.unwrap().is_some(), "{fault:?}");
        assert_eq!(world.gmail.ledger().len() - before, 3, "{fault:?}");
    }
}

#[tokio::test]
async fn a_read_is_given_up_after_three_attempts_and_not_repeated_after_a_refusal() {
    let world = World::start().await;
    let id = world.receives("Order 7");
    for (fault, attempts) in [(Fault::TooMany(7), 3), (Fault::Status(500), 3), (Fault::Status(400), 1)] {
        (0..attempts).for_each(|_| world.gmail.faults().next(fault.clone()));
        let before = world.gmail.ledger().len();
        let error = world.account.read(&id).await.unwrap_err();
        assert_eq!(world.gmail.ledger().len() - before, attempts, "{fault:?}");
        match (fault, error) {
            (Fault::TooMany(_), MailError::Unavailable { retry_after, .. }) => {
                assert_eq!(retry_after, Some(Duration::from_secs(7)));
            }
            (Fault::Status(500), MailError::Unavailable { .. }) => {}
            (Fault::Status(400), MailError::Refused { status: Some(400), .. }) => {}
            (fault, error) => panic!("{fault:?}: {error:?}"),
        }
    }
}

#[tokio::test]
async fn a_token_that_is_refused_early_is_replaced_once() {
    let world = World::start().await;
    let id = world.receives("Order 7");
    world.account.sync(None).await.unwrap();
    world.google.tokens().revoke();
    assert!(world.account.read(&id).await.unwrap().is_some());
    assert_eq!(world.google.tokens().count(), 2);
    world.clock.advance(Duration::from_secs(3600));
    assert!(world.account.read(&id).await.unwrap().is_some());
    assert_eq!(world.google.tokens().count(), 3, "renewed after its time");
    world.gmail.faults().every(1, "", Fault::Status(401));
    assert!(matches!(world.account.read(&id).await, Err(MailError::SignIn { .. })));
    assert_eq!(world.google.tokens().count(), 4);
}

#[tokio::test]
async fn a_handled_mail_has_one_of_our_labels() {
    let world = World::start().await;
    let id = world.receives("Order 7");
    let ours = || {
        let labels = world.gmail.mail(id.as_str()).unwrap().labels;
        labels.into_iter().filter(|label| label.starts_with("Countersign/")).collect::<Vec<_>>()
    };
    for (handled, label) in [
        (Handled::Answered, "Countersign/answered"),
        (Handled::Answered, "Countersign/answered"),
        (Handled::Rejected, "Countersign/rejected"),
        (Handled::Spam, "Countersign/spam"),
    ] {
        world.account.mark(&id, handled).await.unwrap();
        assert_eq!(ours(), [label]);
    }
    assert_eq!(world.requests("POST /gmail/v1/users/me/labels"), 3, "each label was created once");
    world.gmail.deletes_label("Countersign/rejected");
    world.account.mark(&id, Handled::Rejected).await.unwrap();
    assert_eq!(ours(), ["Countersign/rejected"], "a deleted label is created again");
    world.gmail.deletes(id.as_str());
    world.account.mark(&id, Handled::Answered).await.unwrap();
}
