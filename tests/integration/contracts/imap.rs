//! The account with IMAP and SMTP against a real Dovecot, and against the stand-in for SMTP.

use std::{sync::Arc, time::Duration};

use countersign::{
    clock::{ManualClock, SystemClock, Timestamp},
    mail::{
        Address, Authorities, Found, Handled, ImapAccount, ImapSettings, Incoming, Mail, MailAccount as _, MailError,
        MailId, Outgoing, Prepared, Security, SendError, Server,
    },
    send_permit::SendPermit,
};
use countersign_sandbox::smtp::{self, Fault, SandboxSmtp};

use crate::support::dovecot::{self, Dovecot};

const MAILBOX: &str = "INBOX";
const SENT: &str = "Sent Mail";

/// An account on real servers.
struct Office {
    imap: Dovecot,
    smtp: SandboxSmtp,
    account: ImapAccount,
}

fn settings(imap: u16, smtp: u16) -> ImapSettings {
    let server = |port| Server {
        host: "127.0.0.1".to_owned(),
        port,
        security: Security::None,
        authorities: Authorities::default(),
    };
    ImapSettings {
        address: Address::parse("Help <ana@us.example>").unwrap(),
        aliases: vec!["help@us.example".to_owned()],
        imap: server(imap),
        smtp: server(smtp),
        user: smtp::USER.to_owned(),
        password: dovecot::PASSWORD.into(),
        mailbox: MAILBOX.to_owned(),
        sent: None,
        timeout: Duration::from_secs(20),
    }
}

impl Office {
    async fn open() -> Self {
        rustls::crypto::ring::default_provider().install_default().ok();
        let (imap, smtp) = (Dovecot::start().await, SandboxSmtp::start().await.unwrap());
        let account = ImapAccount::new(settings(imap.port(), smtp.port())).unwrap();
        Self { imap, smtp, account }
    }

    async fn arrives(&self, subject: &str) {
        let message = format!(
            "From: Cy <cy@example.com>\r\nSubject: {subject}\r\nMessage-ID: <{subject}@example.com>\r\n\r\nHello?\r\n"
        );
        self.imap.deliver(smtp::USER, MAILBOX, message.as_bytes()).await;
    }

    async fn subjects(&self, ids: &[MailId]) -> Vec<String> {
        let mut subjects = Vec::new();
        for id in ids {
            let raw = self.account.read(id).await.unwrap().expect("it is there");
            subjects.push(Mail::read(&raw).subject);
        }
        subjects
    }

    /// The answer to the first mail.
    async fn answer(&self) -> Outgoing {
        self.arrives("hours").await;
        let batch = self.account.sync(None).await.unwrap();
        let mail = Mail::read(&self.account.read(&batch.arrived[0]).await.unwrap().unwrap());
        let from = self.account.address().clone();
        Outgoing::reply(&mail, from, "We open at 9.\n.\n".to_owned(), "key-1".to_owned(), Timestamp(0), false).unwrap()
    }

    async fn send(&self, out: &Outgoing) -> Result<(), SendError> {
        let prepared = self.account.prepare(out).await.unwrap();
        assert_eq!(prepared, Prepared::default());
        permit().during(self.account.send(out, &prepared)).await.map(drop)
    }

    fn finish(self) {
        assert_eq!(self.smtp.violations(), Vec::<String>::new());
    }
}

fn permit() -> SendPermit {
    SendPermit::new(Arc::new(SystemClock), Duration::from_secs(60))
}

#[tokio::test]
async fn new_mails_are_found_once() {
    let office = Office::open().await;
    office.arrives("one").await;
    office.arrives("two").await;
    let first = office.account.sync(None).await.unwrap();
    assert_eq!((first.is_full, first.has_more), (true, false));
    assert_eq!(office.subjects(&first.arrived).await, ["one", "two"]);

    let nothing = office.account.sync(Some(&first.next)).await.unwrap();
    assert_eq!((nothing.arrived.as_slice(), nothing.is_full), ([].as_slice(), false));
    assert_eq!(nothing.next, first.next);

    office.arrives("three").await;
    let second = office.account.sync(Some(&nothing.next)).await.unwrap();
    assert_eq!(office.subjects(&second.arrived).await, ["three"]);
    office.finish();
}

#[tokio::test]
async fn everything_is_read_again_when_the_server_has_new_ids() {
    let office = Office::open().await;
    office.arrives("one").await;
    let before = office.account.sync(None).await.unwrap();
    office.imap.renew_ids(smtp::USER);
    let account = ImapAccount::new(settings(office.imap.port(), office.smtp.port())).unwrap();
    let after = account.sync(Some(&before.next)).await.unwrap();
    assert!(after.is_full, "{:?} after {:?}", after.next, before.next);
    assert_eq!(after.arrived.len(), 1);
    assert_ne!(after.arrived, before.arrived);
    assert_eq!(account.read(&before.arrived[0]).await.unwrap(), None, "its id means another mail now");
    office.finish();
}

#[tokio::test]
async fn a_mail_is_read_with_its_bytes_and_stays_unread() {
    let office = Office::open().await;
    let message =
        b"From: cy@example.com\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nGr\xc3\xbc\xc3\x9fe {5}\r\n)\r\n";
    office.imap.deliver(smtp::USER, MAILBOX, message).await;
    let batch = office.account.sync(None).await.unwrap();
    let raw = office.account.read(&batch.arrived[0]).await.unwrap().unwrap();
    assert_eq!(raw.bytes, message);
    assert_eq!((raw.size, raw.is_cut), (message.len() as u64, false));
    assert!(raw.received_at > Timestamp(1_600_000_000_000), "{}", raw.received_at);
    assert!(!raw.labels.contains(&"\\Seen".to_owned()), "{:?}", raw.labels);
    assert_eq!(office.account.read(&MailId::new("1:99999")).await.unwrap(), None);
    office.finish();
}

#[tokio::test]
async fn a_large_mail_is_read_whole() {
    let office = Office::open().await;
    let mut message = b"From: cy@example.com\r\n\r\n".to_vec();
    message.extend(b"0123456789abcdef\r\n".repeat(1_000_000));
    office.imap.deliver(smtp::USER, MAILBOX, &message).await;
    let batch = office.account.sync(None).await.unwrap();
    let raw = office.account.read(&batch.arrived[0]).await.unwrap().unwrap();
    assert_eq!((raw.bytes.len(), raw.is_cut), (message.len(), false));
    office.finish();
}

#[tokio::test]
async fn marks_replace_each_other() {
    let office = Office::open().await;
    office.arrives("one").await;
    let id = office.account.sync(None).await.unwrap().arrived[0].clone();
    let marks = async || {
        let labels = office.account.read(&id).await.unwrap().unwrap().labels;
        labels.into_iter().filter(|label| label.starts_with('$') || label == "\\Answered").collect::<Vec<_>>()
    };
    office.account.mark(&id, Handled::Rejected).await.unwrap();
    office.account.mark(&id, Handled::Rejected).await.unwrap();
    assert_eq!(marks().await, ["$CountersignRejected"]);
    office.account.mark(&id, Handled::Answered).await.unwrap();
    let mut answered = marks().await;
    answered.sort();
    assert_eq!(answered, ["$CountersignAnswered", "\\Answered"]);
    office.finish();
}

#[tokio::test]
async fn an_answer_is_sent_and_a_copy_is_kept() {
    let office = Office::open().await;
    let out = office.answer().await;
    assert!(matches!(office.account.find(&out).await.unwrap(), Found::Unknown { .. }));
    office.send(&out).await.unwrap();

    let [accepted] = office.smtp.accepted().try_into().unwrap();
    assert_eq!(
        (accepted.from.as_str(), accepted.to.as_slice()),
        ("ana@us.example", ["cy@example.com".to_owned()].as_slice())
    );
    assert_eq!(accepted.message, out.to_mime(), "byte for byte");
    assert!(matches!(office.account.find(&out).await.unwrap(), Found::Sent(_)));
    let copies = office.imap.ask(smtp::USER, SENT, "FETCH 1:* (FLAGS)").await;
    assert_eq!(copies.len(), 1);
    assert!(copies[0].contains("\\Seen"), "{copies:?}");
    office.finish();
}

#[tokio::test]
async fn a_copy_by_the_server_is_enough() {
    let office = Office::open().await;
    let out = office.answer().await;
    office.imap.deliver(smtp::USER, SENT, &out.to_mime()).await;
    office.send(&out).await.unwrap();
    assert_eq!(office.imap.ask(smtp::USER, SENT, "FETCH 1:* (FLAGS)").await.len(), 1);
    office.finish();
}

#[tokio::test]
async fn an_answer_of_a_person_is_told_from_one_of_the_bot() {
    let office = Office::open().await;
    let out = office.answer().await;
    let batch = office.account.sync(None).await.unwrap();
    let mail = Mail::read(&office.account.read(&batch.arrived[0]).await.unwrap().unwrap());
    let incoming = Incoming::of(&mail).unwrap();
    office.send(&out).await.unwrap();
    assert_eq!(office.account.answered_by_hand(&incoming).await.unwrap(), None, "the bot sent it");
    let by_hand = "From: Bo <ana@us.example>\r\nTo: cy@example.com\r\nSubject: Re: hours\r\n\
                   In-Reply-To: <hours@example.com>\r\n\r\nAt 9.\r\n";
    office.imap.deliver(smtp::USER, SENT, by_hand.as_bytes()).await;
    let answer = office.account.answered_by_hand(&incoming).await.unwrap().expect("Bo answered");
    assert_eq!(answer.by.unwrap().name.as_deref(), Some("Bo"));
    office.finish();
}

#[tokio::test]
async fn a_named_mailbox_for_copies_is_made() {
    let office = Office::open().await;
    let out = office.answer().await;
    let named = ImapSettings { sent: Some("Answers".to_owned()), ..settings(office.imap.port(), office.smtp.port()) };
    let account = ImapAccount::new(named).unwrap();
    permit().during(account.send(&out, &Prepared::default())).await.unwrap();
    assert!(matches!(account.find(&out).await.unwrap(), Found::Sent(_)));
    assert_eq!(office.imap.ask(smtp::USER, "Answers", "FETCH 1:* (FLAGS)").await.len(), 1);
    office.finish();
}

#[tokio::test]
async fn a_failure_before_the_message_is_known_to_have_no_effect() {
    let office = Office::open().await;
    let out = office.answer().await;
    for (fault, expected) in [
        (Fault::NoGreeting, "not sent"),
        (Fault::WrongPassword, "not sent, sign in"),
        (Fault::UnknownRecipient, "refused 550"),
        (Fault::Busy, "not sent"),
        (Fault::RefusedMessage, "refused 554"),
    ] {
        office.smtp.fail_next(fault);
        let failed = match office.send(&out).await.unwrap_err() {
            SendError::NotSent(MailError::SignIn { .. }) => "not sent, sign in".to_owned(),
            SendError::NotSent(MailError::Unavailable { .. } | MailError::Decode { .. }) => "not sent".to_owned(),
            SendError::Refused(MailError::Refused { status: Some(status), .. }) => format!("refused {status}"),
            other => format!("{other:?}"),
        };
        assert_eq!(failed, expected, "{fault:?}");
    }
    assert_eq!(office.smtp.accepted(), []);
    office.finish();
}

#[tokio::test]
async fn a_lost_response_leaves_open_whether_it_was_sent() {
    let office = Office::open().await;
    let out = office.answer().await;
    for fault in [Fault::LostResponse, Fault::ClosedInMessage] {
        office.smtp.fail_next(fault);
        let failed = office.send(&out).await.unwrap_err();
        assert!(matches!(failed, SendError::Unknown { .. }), "{fault:?}: {failed:?}");
        assert!(matches!(office.account.find(&out).await.unwrap(), Found::Unknown { .. }));
    }
    assert_eq!(office.smtp.accepted().len(), 1);
    office.finish();
}

#[tokio::test]
async fn a_server_that_stays_silent_is_given_up() {
    let office = Office::open().await;
    let out = office.answer().await;
    for (fault, is_open) in [(Fault::SilentBeforeMessage, false), (Fault::SilentAfterMessage, true)] {
        office.smtp.fail_next(fault);
        let give_up = async {
            office.smtp.is_silent().await;
            // From now on nothing happens but that the time passes.
            tokio::time::pause();
        };
        let (failed, ()) = tokio::join!(office.send(&out), give_up);
        tokio::time::resume();
        let failed = failed.unwrap_err();
        assert_eq!(matches!(failed, SendError::Unknown { .. }), is_open, "{failed:?}");
        assert_eq!(matches!(failed, SendError::NotSent(MailError::Unavailable { .. })), !is_open, "{failed:?}");
    }
    office.finish();
}

#[tokio::test]
async fn nothing_is_sent_without_a_permit() {
    let office = Office::open().await;
    let out = office.answer().await;
    let failed = office.account.send(&out, &Prepared::default()).await.unwrap_err();
    assert_eq!(failed, SendError::NotSent(MailError::RunOut));
    let clock = ManualClock::default();
    let expired = SendPermit::new(Arc::new(clock.clone()), Duration::from_secs(5));
    clock.advance(Duration::from_secs(5));
    let failed = expired.during(office.account.send(&out, &Prepared::default())).await.unwrap_err();
    assert_eq!(failed, SendError::NotSent(MailError::RunOut));
    assert_eq!((office.smtp.sessions(), office.smtp.accepted().len()), (0, 0));
    office.finish();
}

#[tokio::test]
async fn the_server_reports_new_mails() {
    let office = Office::open().await;
    let batch = office.account.sync(None).await.unwrap();
    let news = office.account.wait_for_news(Duration::from_secs(600));
    let (_, ()) = tokio::join!(office.arrives("one"), news);
    let batch = office.account.sync(Some(&batch.next)).await.unwrap();
    assert_eq!(office.subjects(&batch.arrived).await, ["one"]);
    // What arrives between two waits is reported at once.
    office.arrives("two").await;
    office.account.wait_for_news(Duration::from_secs(600)).await;
    office.finish();
}

#[tokio::test]
async fn the_check_names_both_servers() {
    let office = Office::open().await;
    office.arrives("one").await;
    let line = office.account.check().await.unwrap();
    assert_eq!(line, "ana@us.example: 1 email in INBOX on 127.0.0.1, sends through 127.0.0.1");
    assert!(office.account.is_us("Help@us.example") && !office.account.is_us("cy@example.com"));

    office.smtp.fail_next(Fault::WrongPassword);
    assert!(matches!(office.account.check().await.unwrap_err(), MailError::SignIn { .. }));
    let wrong = ImapSettings { password: "wrong".into(), ..settings(office.imap.port(), office.smtp.port()) };
    let refused = ImapAccount::new(wrong).unwrap().sync(None).await.unwrap_err();
    assert!(matches!(refused, MailError::SignIn { .. }), "{refused:?}");
    let nobody = settings(1, office.smtp.port());
    let unavailable = ImapAccount::new(nobody).unwrap().sync(None).await.unwrap_err();
    assert!(matches!(unavailable, MailError::Unavailable { .. }), "{unavailable:?}");
    office.finish();
}

#[tokio::test]
async fn an_encrypted_server_is_trusted_by_the_authority_of_the_settings() {
    rustls::crypto::ring::default_provider().install_default().ok();
    let (imap, smtp) = (Dovecot::encrypted().await, SandboxSmtp::start().await.unwrap());
    let authorities = Authorities::from_pem(imap.authority()).unwrap();
    for (port, security) in [(imap.encrypted_port(), Security::Tls), (imap.port(), Security::StartTls)] {
        let mut trusting = settings(port, smtp.port());
        trusting.imap = Server { host: "localhost".to_owned(), port, security, authorities: authorities.clone() };
        let account = ImapAccount::new(trusting.clone()).unwrap();
        assert_eq!(account.sync(None).await.unwrap().arrived, [], "{security:?}");

        let strangers = Server { authorities: Authorities::default(), ..trusting.imap.clone() };
        let refused = ImapAccount::new(ImapSettings { imap: strangers, ..trusting.clone() }).unwrap();
        let error = refused.sync(None).await.unwrap_err().to_string();
        assert!(error.contains("no encrypted connection to localhost"), "{security:?}: {error}");

        let elsewhere = Server { host: "127.0.0.1".to_owned(), ..trusting.imap.clone() };
        let refused = ImapAccount::new(ImapSettings { imap: elsewhere, ..trusting }).unwrap();
        assert!(refused.sync(None).await.is_err(), "the certificate is for another name");
    }
}

#[tokio::test]
async fn nothing_is_said_to_a_server_that_refuses_encryption() {
    let office = Office::open().await;
    let mut demanding = settings(office.imap.port(), office.smtp.port());
    demanding.imap.security = Security::StartTls;
    let refused = ImapAccount::new(demanding).unwrap().sync(None).await.unwrap_err();
    assert!(matches!(refused, MailError::Refused { .. } | MailError::Unavailable { .. }), "{refused:?}");
    let out = office.answer().await;
    let mut demanding = settings(office.imap.port(), office.smtp.port());
    demanding.smtp.security = Security::StartTls;
    let account = ImapAccount::new(demanding).unwrap();
    let refused = permit().during(account.send(&out, &Prepared::default())).await.unwrap_err();
    assert!(matches!(refused, SendError::NotSent(_)), "{refused:?}");
    assert_eq!(office.smtp.accepted(), []);
    office.finish();
}
