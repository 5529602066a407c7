//! The way out, against a workspace that refuses what Slack refuses and loses answers.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::time::Duration;

use countersign::{
    clock::{Clock, SystemClock, Timestamp},
    conversation::presentation::render,
    ids::{ApprovalId, ChannelId, ThreadId},
    reply::{Card, CardState, Fact, Part, Reply, Text},
    slack::{
        blocks::Message,
        client::{Error, Respond, SlackClient},
    },
};
use countersign_sandbox::slack::{
    Options, SandboxSlack,
    faults::{Fault, Loss},
};
use secrecy::SecretString;

use crate::support::ports::free_port;

/// The production client, talking to this workspace.
pub(super) fn client(slack: &SandboxSlack) -> SlackClient {
    impatient(slack, SlackClient::TIMEOUT)
}

fn impatient(slack: &SandboxSlack, timeout: Duration) -> SlackClient {
    SlackClient::new(&slack.api_url(), &SecretString::from(slack.bot_token()), timeout).unwrap()
}

async fn workspace() -> (SandboxSlack, ChannelId) {
    let slack = SandboxSlack::start(Options::default()).await.unwrap();
    let general = general(&slack);
    (slack, general)
}

fn general(slack: &SandboxSlack) -> ChannelId {
    slack.look(|world| world.channel("general").unwrap().id.clone())
}

fn now() -> Timestamp {
    SystemClock.now()
}

fn words(text: &str) -> Message {
    render::reply(&Reply::text(text))
}

/// A card that waits, for the channel `general`.
pub(super) fn a_card(slack: &SandboxSlack) -> (ChannelId, Message) {
    let channel = general(slack);
    let thread = ThreadId { team: "T1".into(), channel: channel.clone(), root: "1.0".into() };
    let card = Card {
        title: "Start “Math Hints”?".into(),
        facts: vec![Fact { label: "Status".into(), before: Some("inactive".into()), after: "enrolling".into() }],
        warnings: vec!["Students see it at once.".into()],
        notes: vec!["Context assign-prog.".into()],
        approve: "Start experiment".into(),
        reject: "Cancel request".into(),
        done: "Started.".into(),
        irreversible: true,
        editable: false,
    };
    let state = CardState::Open {
        approval: ApprovalId::new(&thread, 7),
        asked_by: slack.user("ana"),
        deciders: "anyone in this channel".into(),
        expires_at: now() + Duration::from_secs(3600),
        digest: "1a2b3c4d".into(),
        approved_by: vec![],
        needed: 2,
        edited_by: vec![],
        because: None,
        is_risky: false,
        ended_by: Default::default(),
        origin: None,
    };
    (channel, render::card(&card, &state))
}

fn everything() -> Reply {
    let row = |name: &str| vec![Text::from(name), Text::new().code("inactive").person("U1".into()), Text::new()];
    Reply::default()
        .and(Part::Heading("Experiments".into()))
        .and(Part::Text(Text::new().bold("Two").plain(" of them, <b> & <c>").moment(now())))
        .and(Part::Table { columns: vec!["Name".into(), "Status".into(), "".into()], rows: vec![row("a"), row("b")] })
        .and(Part::List(vec!["one".into(), "two".into()]))
        .and(Part::Facts((0..23).map(|n| (format!("fact {n}"), "x".into())).collect()))
        .and(Part::Code("let a = 1;".into()))
        .and(Part::Markdown("**fine**".into()))
        .hint("Ask me.")
        .choice("Start", "start Math Hints")
}

#[tokio::test]
async fn slack_takes_everything_that_is_drawn() {
    let (slack, general) = workspace().await;
    let client = client(&slack);
    let account = client.auth_test().await.unwrap();
    assert_eq!(account.identity.user, slack.look(|world| world.app.user.clone()));

    let root = client.post_message(&general, None, &a_card(&slack).1, &"n0".into()).await.unwrap();
    let ts = client.post_message(&general, Some(&root), &render::reply(&everything()), &"n1".into()).await.unwrap();
    client.update_message(&general, &ts, &render::status("Looking…")).await.unwrap();
    client.post_ephemeral(&general, Some(&root), &slack.user("ana"), &words("only you")).await.unwrap();
    client.set_thread_status(&general, &root, "is thinking…").await.unwrap();
    assert!(client.permalink(&general, &ts).await.unwrap().starts_with("http"));
    assert_eq!(client.find_by_nonce(&general, Some(&root), &"n1".into(), now()).await.unwrap(), Some(ts.clone()));
    assert_eq!(client.find_by_nonce(&general, None, &"n0".into(), now()).await.unwrap(), Some(root.clone()));
    client.delete_message(&general, &ts).await.unwrap();
    assert_eq!(slack.thread("general", &root).len(), 1);

    let posted = &slack.ledger().calls("chat.postMessage")[0].body;
    assert_eq!((&posted["unfurl_links"], &posted["unfurl_media"]), (&false.into(), &false.into()));
    slack.stop().await;
}

#[tokio::test]
async fn people_are_looked_up() {
    let (slack, _) = workspace().await;
    let client = client(&slack);
    let ana = slack.user("ana");
    let person = client.user_info(&ana).await.unwrap();
    assert!(!person.name.is_empty() && !person.is_bot && !person.deleted);
    assert_eq!(client.user_info(&"U0NOBODY".into()).await, Err(Error::Gone { code: "user_not_found".into() }));
    slack.stop().await;
}

#[tokio::test]
async fn a_lost_answer_is_found_again_and_a_lost_request_is_not() {
    let (slack, general) = workspace().await;
    let client = impatient(&slack, Duration::from_millis(300));
    let root = client.post_message(&general, None, &words("root"), &"n0".into()).await.unwrap();
    for (nth, how) in [Loss::Closed, Loss::TimedOut].into_iter().enumerate() {
        let method = || "chat.postMessage".to_owned();
        for (fault, happened) in [
            (Fault::LoseAnswer { method: method(), calls: 1, how }, true),
            (Fault::LoseRequest { method: method(), calls: 1, how }, false),
        ] {
            slack.inject(fault);
            let nonce = format!("n{nth}{happened}").as_str().into();
            let lost = client.post_message(&general, Some(&root), &words("once"), &nonce).await;
            assert!(matches!(lost, Err(Error::NoAnswer(_))), "{lost:?}");
            let found = client.find_by_nonce(&general, Some(&root), &nonce, now()).await.unwrap();
            assert_eq!(found.is_some(), happened, "{how:?}");
        }
    }
    assert_eq!(slack.thread("general", &root).len(), 3);
    slack.stop().await;
}

#[tokio::test]
async fn refusals_are_told_apart() {
    let (slack, general) = workspace().await;
    let client = client(&slack);
    slack.inject(Fault::RateLimit { method: "chat.postMessage".into(), calls: 1, retry_after: 7 });
    let limited = client.post_message(&general, None, &words("hi"), &"n".into()).await;
    assert_eq!(limited, Err(Error::RateLimited { retry_after: Duration::from_secs(7) }));

    let refused = |error: &str| Fault::Fail { method: "chat.update".into(), error: error.into(), calls: 1 };
    for (code, expected) in [
        ("message_not_found", Error::Gone { code: "message_not_found".into() }),
        ("invalid_blocks", Error::Refused { code: "invalid_blocks".into() }),
        ("account_inactive", Error::Auth { code: "account_inactive".into() }),
        ("fatal_error", Error::NoAnswer("internal error")),
    ] {
        slack.inject(refused(code));
        assert_eq!(client.update_message(&general, &"1.0".into(), &words("hi")).await, Err(expected));
    }
    let gone = client.post_message(&"C0NOWHERE".into(), None, &words("hi"), &"n".into()).await;
    assert_eq!(gone, Err(Error::Gone { code: "channel_not_found".into() }));
    let wrong = SlackClient::new(&slack.api_url(), &SecretString::from("xoxb-wrong"), SlackClient::TIMEOUT).unwrap();
    assert!(matches!(wrong.auth_test().await, Err(Error::Auth { .. })));
    slack.stop().await;
}

#[tokio::test]
async fn nothing_is_sent_where_nobody_listens() {
    let nobody = format!("http://127.0.0.1:{}/api", free_port());
    let client = SlackClient::new(&nobody, &SecretString::from("xoxb"), SlackClient::TIMEOUT).unwrap();
    assert_eq!(client.auth_test().await, Err(Error::NotSent));
    let nowhere = client.respond("not an address", Respond::Privately, &words("hi")).await;
    assert_eq!(nowhere, Err(Error::Refused { code: "invalid_url".into() }));
}

#[tokio::test]
async fn calls_share_connections() {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::{Json, Router, routing::post, serve::ListenerExt};

    static CONNECTIONS: AtomicUsize = AtomicUsize::new(0);
    let answer = || async { Json(serde_json::json!({ "ok": true, "user_id": "U1", "team_id": "T1" })) };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/api", listener.local_addr().unwrap());
    let counted = listener.tap_io(|_| {
        CONNECTIONS.fetch_add(1, Ordering::SeqCst);
    });
    let router = Router::new().route("/api/auth.test", post(answer));
    let serving = tokio::spawn(async move { axum::serve(counted, router).await });
    let client = SlackClient::new(&url, &SecretString::from("xoxb"), SlackClient::TIMEOUT).unwrap();
    for _ in 0..20 {
        client.auth_test().await.unwrap();
    }
    assert_eq!(CONNECTIONS.load(Ordering::SeqCst), 1);
    serving.abort();
}
