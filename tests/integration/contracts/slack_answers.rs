//! Answers of Slack that do not end, and addresses that are not Slack's.

use std::time::Duration;

use countersign::{
    conversation::presentation::render,
    ids::ChannelId,
    reply::Reply,
    slack::{
        blocks::Message,
        client::{Error, Respond, SlackClient},
    },
};
use countersign_sandbox::slack::{Options, SandboxSlack, faults::Fault};
use secrecy::SecretString;
use tokio::net::TcpListener;

/// A workspace, its channel `general`, and a client that reads a megabyte.
async fn workspace(timeout: Duration) -> (SandboxSlack, ChannelId, SlackClient) {
    let slack = SandboxSlack::start(Options::default()).await.unwrap();
    let general = slack.look(|world| world.channel("general").unwrap().id.clone());
    let token = SecretString::from(slack.bot_token());
    let client = SlackClient::with_answer_limit(1 << 20, &slack.api_url(), &token, timeout).unwrap();
    (slack, general, client)
}

fn words() -> Message {
    render::reply(&Reply::text("hello"))
}

fn flood(method: &str, status: u16, pause_ms: u64) -> Fault {
    Fault::Flood { method: method.to_owned(), status, pause_ms, calls: 1 }
}

#[tokio::test]
async fn an_answer_without_an_end_is_not_read() {
    let (slack, general, client) = workspace(Duration::from_secs(20)).await;
    let too_long = || Error::NoAnswer("the answer is too long");
    for status in [200, 404, 429, 500] {
        slack.inject(flood("users.info", status, 1));
        assert_eq!(client.user_info(&slack.user("ana")).await, Err(too_long()), "{status}");
        slack.inject(flood("chat.postMessage", status, 1));
        let nonce = format!("n{status}").as_str().into();
        assert_eq!(client.post_message(&general, None, &words(), &nonce).await, Err(too_long()), "{status}");
    }
    slack.inject(flood("response_url", 200, 1));
    let answered = client.respond(&format!("{}/response/x", slack.url()), Respond::Privately, &words()).await;
    assert_eq!(answered, Err(too_long()));
    // The connection that broke is not used again.
    client.user_info(&slack.user("ana")).await.unwrap();
    slack.stop().await;
}

#[tokio::test]
async fn an_answer_that_drips_ends_with_the_time() {
    let (slack, general, client) = workspace(Duration::from_millis(500)).await;
    slack.inject(flood("chat.postMessage", 200, 50));
    let posted = client.post_message(&general, None, &words(), &"n".into()).await;
    assert_eq!(posted, Err(Error::NoAnswer("timeout")));
    slack.stop().await;
}

#[tokio::test]
async fn nothing_is_sent_to_addresses_that_are_not_slacks() {
    let (slack, general, client) = workspace(Duration::from_secs(20)).await;
    let foreign = TcpListener::bind("127.0.0.2:0").await.unwrap(); // another address of this machine
    let address = format!("http://{}/x", foreign.local_addr().unwrap());
    let refused = || Err(Error::Refused { code: "foreign_url".into() });
    assert_eq!(client.respond(&address, Respond::Privately, &words()).await, refused());

    let root = client.post_message(&general, None, &words(), &"n".into()).await.unwrap();
    slack.inject(Fault::UploadsTo { url: address });
    assert_eq!(client.upload_file(&general, &root, "a.txt", ("A", ""), b"words").await, refused());
    let nobody = tokio::time::timeout(Duration::ZERO, foreign.accept()).await;
    assert!(nobody.is_err(), "no connection was made");
    assert!(slack.ledger().calls("files.completeUploadExternal").is_empty());
    slack.stop().await;
}
