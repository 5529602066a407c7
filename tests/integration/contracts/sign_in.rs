//! Signing in to the platform with a service account, against a stand-in that checks as Google does.

use std::{sync::Arc, time::Duration};

use countersign::{
    clock::ManualClock,
    experiments::upgrade::{UpgradeConfig, client::UpgradeClient, error::Error, sign_in::SignIn, status::Status},
    services::google::{self, TokenSource},
};
use countersign_sandbox::{
    faults::{Fault, When},
    google::SandboxGoogle,
    upgrade::{Options, SandboxUpgrade, Version},
};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

/// A platform that wants tokens, what mints them, and a client with the key.
struct World {
    google: SandboxGoogle,
    upgrade: SandboxUpgrade,
    client: Arc<UpgradeClient>,
    clock: ManualClock,
}

impl World {
    async fn start() -> Self {
        let google = SandboxGoogle::start().await.unwrap();
        let key = google.key_file();
        Self::with_key(google, key, Duration::from_secs(5)).await
    }

    async fn with_key(google: SandboxGoogle, key: Value, timeout: Duration) -> Self {
        let options = Options { version: Version::V6_5, minted: Some(google.tokens()), ..Options::default() };
        let upgrade = SandboxUpgrade::start(options).await.unwrap();
        let clock = ManualClock::default();
        let account = read(&key.to_string(), timeout, &clock).unwrap();
        let sign_in = SignIn::ServiceAccount(Arc::new(account));
        let config = UpgradeConfig { base_url: upgrade.url().parse().unwrap(), sign_in, timeout };
        Self { google, upgrade, client: Arc::new(UpgradeClient::new(config).unwrap()), clock }
    }

    fn minted(&self) -> usize {
        self.google.tokens().count()
    }
}

fn read(key: &str, timeout: Duration, clock: &ManualClock) -> Result<TokenSource, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key.json");
    std::fs::write(&path, key).unwrap();
    let account = TokenSource::service_account(&path, None, timeout, Arc::new(clock.clone()));
    account.map_err(|error| error.to_string().replace(&path.display().to_string(), "key.json"))
}

#[tokio::test]
async fn one_token_serves_all_calls_until_shortly_before_its_end() {
    let world = World::start().await;
    world.client.names().await.unwrap();
    world.clock.advance(Duration::from_secs(54 * 60));
    world.client.names().await.unwrap();
    assert_eq!(world.minted(), 1);
    world.clock.advance(Duration::from_secs(2 * 60));
    world.client.names().await.unwrap();
    assert_eq!(world.minted(), 2, "renewed five minutes before the end");
    assert!(world.upgrade.ledger().iter().all(|entry| entry.status == Some(200)), "no token was refused");
}

#[tokio::test]
async fn twenty_calls_at_once_sign_in_once() {
    let world = World::start().await;
    let calls = (0..20).map(|_| world.client.signed_in());
    for answer in futures_util::future::join_all(calls).await {
        answer.unwrap();
    }
    assert_eq!(world.minted(), 1);
}

#[tokio::test]
async fn a_token_refused_before_its_time_is_replaced_once_and_the_change_is_not_sent_again() {
    let world = World::start().await;
    let id = world.upgrade.has("Math Hints", "inactive").parse().unwrap();
    world.client.names().await.unwrap();
    world.google.tokens().revoke();
    assert_eq!(world.client.set_state(id, Status::Enrolling, None).await, Err(Error::Auth), "it is looked up first");
    assert_eq!((world.minted(), world.upgrade.effects().len()), (2, 0));
    world.client.set_state(id, Status::Enrolling, None).await.unwrap();
    assert_eq!((world.minted(), world.upgrade.effects().len()), (2, 1));

    // A refusal that is not true: the change was made.
    let no = serde_json::json!({ "message": "Authorization is required" });
    world.upgrade.answers_next(401, no, When::AfterEffect, "DELETE");
    assert_eq!(world.client.delete(id).await, Err(Error::Auth));
    assert_eq!(world.upgrade.ledger().iter().filter(|entry| entry.method == "DELETE").count(), 1);

    // Whom the platform does not know does not ask Google for ever.
    world.google.tokens_live(Duration::ZERO);
    world.google.tokens().revoke();
    for _ in 0..3 {
        assert_eq!(world.client.names().await.unwrap_err(), Error::Auth);
    }
}

#[tokio::test]
async fn a_refused_token_is_replaced_at_once_but_only_a_few_times_a_minute() {
    let google = SandboxGoogle::start().await.unwrap();
    let clock = ManualClock::default();
    let source = read(&google.key_file().to_string(), Duration::from_secs(5), &clock).unwrap();
    let mut token = source.token().await.unwrap();
    for _ in 0..4 {
        clock.advance(Duration::from_secs(1));
        let replaced = source.replacement_for(&token).await.unwrap().expect("a token for the refused one");
        assert_ne!(replaced.expose_secret(), token.expose_secret());
        token = replaced;
    }
    assert!(source.replacement_for(&token).await.unwrap().is_none(), "the service refuses every token");
    assert_eq!(google.tokens().count(), 5);
    source.note_accepted();
    token = source.replacement_for(&token).await.unwrap().expect("a token, since the service accepts some");
    for _ in 0..3 {
        token = source.replacement_for(&token).await.unwrap().expect("a token for the refused one");
    }
    assert!(source.replacement_for(&token).await.unwrap().is_none(), "it accepted none of these");
    clock.advance(Duration::from_secs(60));
    assert!(source.replacement_for(&token).await.unwrap().is_some(), "a minute after the first replacement");
}

#[tokio::test]
async fn an_answer_without_an_end_is_not_read() {
    let world = World::start().await;
    world.google.is(Some(Fault::Flood { status: 200, pause_ms: 1 }));
    let Err(Error::SignIn(google::Error::Unreachable { reason, .. })) = world.client.names().await else {
        panic!("there is no token")
    };
    assert_eq!(reason, "its answer is too long");
    assert!(world.upgrade.ledger().is_empty());
}

#[tokio::test]
async fn while_a_token_is_good_a_failed_renewal_hurts_nobody() {
    let world = World::start().await;
    world.client.names().await.unwrap();
    world.google.is(Some(Fault::Proxy(502)));
    world.clock.advance(Duration::from_secs(57 * 60));
    world.client.names().await.unwrap();
    world.clock.advance(Duration::from_secs(5 * 60));
    let error = world.client.names().await.unwrap_err();
    let said = "cannot sign in to UpGrade: no token from 127.0.0.1: that address isn't a token endpoint";
    assert_eq!(error.to_string(), said);
    world.google.is(None);
    world.client.names().await.unwrap();
}

#[tokio::test]
async fn a_refusal_says_what_to_look_at() {
    let world = World::start().await;
    let refused = async |error, words| {
        let refusal = json!({ "error": error, "error_description": words });
        world.google.is(Some(Fault::Answer(400, refusal)));
        world.client.names().await.unwrap_err().to_string()
    };
    assert_eq!(
        refused("invalid_grant", "Invalid JWT: Check your iat and exp values in the JWT claim.").await,
        "cannot sign in to UpGrade: the sign-in was refused: Invalid JWT: Check your iat and exp values in the JWT claim \
         (invalid_grant); is this machine's clock right?"
    );
    assert_eq!(
        refused("invalid_grant", "Invalid grant: account not found").await,
        "cannot sign in to UpGrade: the sign-in was refused: Invalid grant: account not found (invalid_grant); was the \
         key or the account deleted?"
    );
    assert!(world.upgrade.ledger().is_empty(), "the platform was not asked");
}

#[tokio::test]
async fn an_endpoint_that_fails_refuses_nobody() {
    let world = World::start().await;
    world.google.is(Some(Fault::Status(503)));
    let error = world.client.names().await.unwrap_err().to_string();
    assert_eq!(error, "cannot sign in to UpGrade: no token from 127.0.0.1: Try again (internal_failure)");
}

#[tokio::test]
async fn silence_ends_in_time_and_once_for_all_who_wait() {
    let google = SandboxGoogle::start().await.unwrap();
    let key = google.key_file();
    let world = World::with_key(google, key, Duration::from_millis(300)).await;
    world.google.is(Some(Fault::Hang));
    let began = tokio::time::Instant::now();
    let answers = futures_util::future::join_all((0..20).map(|_| world.client.names())).await;
    for answer in answers {
        let Err(Error::SignIn(error)) = answer else { panic!("{answer:?}") };
        assert_eq!(error.to_string(), "no token from 127.0.0.1: no answer in time");
    }
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

#[tokio::test]
async fn an_endpoint_that_is_not_there_is_named() {
    let google = SandboxGoogle::start().await.unwrap();
    let mut key = google.key_file();
    key["token_uri"] = json!("http://127.0.0.1:9/token");
    let world = World::with_key(google, key, Duration::from_secs(2)).await;
    let Err(Error::SignIn(google::Error::Unreachable { reason, .. })) = world.client.names().await else {
        panic!("nobody is there")
    };
    assert!(reason.contains("refused"), "{reason}");
}

#[tokio::test]
async fn the_stand_in_believes_no_assertion_for_somebody_else() {
    let google = SandboxGoogle::start().await.unwrap();
    let other = SandboxGoogle::start().await.unwrap();
    for (field, value, words) in [
        ("client_email", json!("somebody@else.example"), "account not found"),
        ("token_uri", json!(format!("{}?", google.endpoint())), "Failed audience check"),
    ] {
        let mut key = google.key_file();
        key[field] = value;
        let account = read(&key.to_string(), Duration::from_secs(5), &ManualClock::default()).unwrap();
        let error = account.token().await.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(google.tokens().count() + other.tokens().count(), 0);
}

#[test]
fn a_bad_key_file_is_told_from_a_good_one_without_a_word_of_it() {
    let good = json!({
        "type": "service_account", "client_email": "a@b.example", "private_key": "s3cret",
        "token_uri": "https://oauth2.example/token",
    });
    let with = |field: &str, value: Value| {
        let mut key = good.clone();
        key[field] = value;
        key.to_string()
    };
    for (key, wrong) in [
        (String::new(), "it is not JSON"),
        ("-----BEGIN PRIVATE KEY-----".to_owned(), "it is not JSON"),
        (with("type", json!("authorized_user")), "it holds a person's sign-in"),
        (with("type", Value::Null), "its `type` is not `service_account`"),
        (with("client_email", json!(" ")), "it has no `client_email`"),
        (with("private_key", Value::Null), "it has no `private_key`"),
        (with("private_key", json!(17)), "it has no `private_key`"),
        (with("token_uri", json!("oauth2")), "its `token_uri` isn't a valid URL"),
        (with("token_uri", json!("file:///etc/passwd")), "its `token_uri` isn't a valid URL"),
        (
            with("token_uri", json!("http://oauth2.example/token")),
            "its `token_uri` begins with http://; tokens are fetched over https:// only",
        ),
        (good.to_string(), "its `private_key` is damaged"),
    ] {
        let said = read(&key, Duration::from_secs(1), &ManualClock::default()).unwrap_err();
        assert_eq!(said, format!("key.json isn't a key file of a Google service account: {wrong}"));
        assert!(!said.contains("s3cret"));
    }
}

#[tokio::test]
async fn neither_key_nor_token_is_printed() {
    let world = World::start().await;
    world.client.names().await.unwrap();
    let printed = format!("{:?}", world.client);
    assert!(printed.contains("countersign@sandbox.iam.gserviceaccount.com"), "{printed}");
    assert!(!printed.contains("PRIVATE") && !printed.contains("ya29"), "{printed}");
}
