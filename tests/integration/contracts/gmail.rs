//! The account on Gmail against the stand-in: what is read, and that each answer is sent exactly once.

mod once;
mod push;
mod stand_in;
mod sync;

use std::{sync::Arc, time::Duration};

use countersign::{
    clock::{Clock, ManualClock, SystemClock},
    mail::{
        Address, GmailAccount, GmailSettings, Mail, MailAccount as _, MailError, MailId, Outgoing, PushSettings, Retry,
    },
    send_permit::SendPermit,
    services::google::{RefreshToken, TokenSource},
};
use countersign_sandbox::{
    gmail::{Letter, Options, SandboxGmail},
    google::{CLIENT_ID, CLIENT_SECRET, PERSON, REFRESH_TOKEN, SandboxGoogle},
};

const TIMEOUT: Duration = Duration::from_secs(20);
/// Repeats reads as in production, but without waiting.
const RETRY: Retry =
    Retry { attempts: 3, first_wait: Duration::ZERO, longest_wait: Duration::ZERO, longest_asked: Duration::ZERO };

/// A mailbox, the issuer of its tokens, and an account that uses both.
struct World {
    google: SandboxGoogle,
    gmail: SandboxGmail,
    account: GmailAccount,
    clock: ManualClock,
}

impl World {
    async fn start() -> Self {
        Self::with(Options::default()).await
    }

    async fn with(options: Options) -> Self {
        let clock = ManualClock::default();
        let google = SandboxGoogle::start_at(0, Arc::new(clock.clone())).await.unwrap();
        let options = Options { tokens: Some(google.tokens()), clock: Arc::new(clock.clone()), ..options };
        let gmail = SandboxGmail::start(options).await.unwrap();
        let settings = settings(&gmail, by_refresh_token(&google, &clock), &clock);
        let account = GmailAccount::new(settings, Address::parse(PERSON).unwrap()).unwrap();
        Self { google, gmail, account, clock }
    }

    /// Receives a letter from Ana. Returns the id of the mail.
    fn receives(&self, subject: &str) -> MailId {
        let letter = Letter::new("Ana <ana@customer.example>", subject, "Where is my order?");
        MailId::new(self.gmail.receives(&letter))
    }

    /// Reads a mail and writes an answer with this key.
    async fn answer_to(&self, id: &MailId, key: &str) -> Outgoing {
        let mail = Mail::read(&self.account.read(id).await.unwrap().unwrap());
        let from = self.account.address().clone();
        Outgoing::reply(&mail, from, "It is on its way.\n".to_owned(), key.to_owned(), self.clock.now(), false).unwrap()
    }

    /// Returns the number of requests whose `METHOD /path` ends like this.
    fn requests(&self, end: &str) -> usize {
        let ledger = self.gmail.ledger();
        ledger.iter().filter(|request| format!("{} {}", request.method, request.path).ends_with(end)).count()
    }
}

fn by_refresh_token(google: &SandboxGoogle, clock: &ManualClock) -> TokenSource {
    let refresh = RefreshToken {
        endpoint: google.endpoint().parse().unwrap(),
        client_id: CLIENT_ID.to_owned(),
        client_secret: CLIENT_SECRET.into(),
        token: REFRESH_TOKEN.into(),
    };
    TokenSource::refresh_token(refresh, TIMEOUT, Arc::new(clock.clone())).unwrap()
}

fn settings(gmail: &SandboxGmail, tokens: TokenSource, clock: &ManualClock) -> GmailSettings {
    GmailSettings {
        api: gmail.url().parse().unwrap(),
        web: "https://mail.google.com/mail/".parse().unwrap(),
        tokens: Arc::new(tokens),
        aliases: vec!["Help@Sandbox.example".to_owned()],
        push: None,
        timeout: TIMEOUT,
        retry: RETRY,
        clock: Arc::new(clock.clone()),
    }
}

fn with_push(gmail: &SandboxGmail, settings: GmailSettings) -> GmailSettings {
    let (topic, subscription) = (gmail.topic(), gmail.subscription());
    let push = PushSettings { api: gmail.url().parse().unwrap(), topic, subscription };
    GmailSettings { push: Some(push), ..settings }
}

/// Runs work under a permit that is valid for a while.
async fn permitted<F: Future>(work: F) -> F::Output {
    SendPermit::new(Arc::new(SystemClock), TIMEOUT).during(work).await
}

#[tokio::test]
async fn the_check_is_one_line_and_names_the_mailbox() {
    let world = World::start().await;
    world.receives("Order 7");
    assert_eq!(
        world.account.check().await.unwrap(),
        "Gmail as support@sandbox.example, 1 message, without notifications"
    );
    let other = settings(&world.gmail, by_refresh_token(&world.google, &world.clock), &world.clock);
    let other = GmailAccount::new(other, Address::parse("sales@sandbox.example").unwrap()).unwrap();
    let error = other.check().await.unwrap_err().to_string();
    assert!(error.contains("for support@sandbox.example, not for sales@sandbox.example"), "{error}");
}

#[tokio::test]
async fn the_own_addresses_are_known_in_every_form() {
    let world = World::start().await;
    for own in
        ["support@sandbox.example", "Support@Sandbox.Example ", "support+a@sandbox.example", "help@sandbox.example"]
    {
        assert!(world.account.is_us(own), "{own}");
    }
    assert!(!world.account.is_us("ana@customer.example"));
    let link = world.account.link(&MailId::new("19a0")).unwrap();
    assert_eq!(link.as_str(), "https://mail.google.com/mail/?authuser=support%40sandbox.example#all/19a0");
}

#[tokio::test]
async fn a_service_account_acts_for_the_person() {
    let world = World::start().await;
    world.receives("Order 7");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key.json");
    std::fs::write(&path, world.google.key_file().to_string()).unwrap();
    let key = || TokenSource::service_account(&path, None, TIMEOUT, Arc::new(world.clock.clone())).unwrap();
    let account = |tokens| {
        let settings = settings(&world.gmail, tokens, &world.clock);
        GmailAccount::new(settings, Address::parse(PERSON).unwrap()).unwrap()
    };
    let delegated = account(key().acting_for(PERSON, &countersign::mail::GMAIL_SCOPES));
    assert_eq!(delegated.sync(None).await.unwrap().arrived.len(), 1);
    let error = account(key()).sync(None).await.unwrap_err();
    assert!(matches!(error, MailError::Refused { status: Some(403), .. }), "{error:?}");
    let stranger = account(key().acting_for("ana@customer.example", &countersign::mail::GMAIL_SCOPES));
    assert!(matches!(stranger.sync(None).await, Err(MailError::SignIn { .. })));
}

#[tokio::test]
async fn a_withdrawn_consent_is_named() {
    let world = World::start().await;
    world.google.withdraws_consent();
    let error = world.account.sync(None).await.unwrap_err().to_string();
    let said = "the sign-in to the mail server was refused: Token has been expired or revoked (invalid_grant); did the \
                refresh token expire, or was its access removed?";
    assert_eq!(error, said);
}
