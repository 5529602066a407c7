//! Several at once, and what is away for a while: one of them wins, and everybody is told the truth.

use std::{collections::BTreeSet, time::Duration};

use countersign_sandbox::slack::faults::Fault;
use futures_util::future::join_all;
use serde_json::json;

use super::{DIGEST, Programs, request};
use crate::support::bot::eventually;

#[tokio::test(flavor = "multi_thread")]
async fn twenty_submissions_at_once_make_one_card() {
    let programs = Programs::start().await;
    let body = request();
    let asked = join_all((0..20).map(|_| programs.asks("k1", &body))).await;
    let ids: BTreeSet<_> = asked.iter().map(super::Answered::id).collect();
    assert_eq!(ids.len(), 1, "{ids:?}");
    let created = asked.iter().filter(|answered| answered.status == 201).count();
    let replayed = asked.iter().filter(|answered| answered.headers.contains_key("idempotency-replayed")).count();
    assert_eq!((created, replayed), (1, 19));
    programs.bot.settled().await;
    let thread = programs.thread(&programs.looks(&asked[0].id()).await.body);
    let cards = thread.messages().into_iter().filter(|message| message.button("Approve").is_some()).count();
    assert_eq!(cards, 1);
    let roots = programs.bot.slack.look(|world| world.roots(&super::CHANNEL.0.into()).count());
    assert_eq!(roots, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_ten_claims_at_once_one_wins() {
    let programs = Programs::start().await;
    let (id, thread) = programs.asked("k1", &request()).await;
    thread.clicks("bo", "Approve").await;
    let wrong = programs.claims(&id, "sha-256:AAAA").await;
    assert_eq!((wrong.status, wrong.problem()), (409, "digest-mismatch"), "it does not use up the approval");
    let claimed = join_all((0..10).map(|_| programs.claims(&id, DIGEST))).await;
    let won: Vec<_> = claimed.iter().filter(|answered| answered.status == 200).collect();
    assert_eq!(won.len(), 1, "{claimed:?}");
    assert!(claimed.iter().all(|answered| answered.status == 200 || answered.problem() == "already-claimed"));
    let cancelled = programs.cancels(&id).await;
    assert_eq!((cancelled.status, cancelled.problem(), cancelled.state()), (409, "already-decided", "intent"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_can_be_repeated_under_its_own_key_only() {
    let programs = Programs::start().await;
    let (id, thread) = programs.asked("k1", &request()).await;
    thread.clicks("bo", "Approve").await;
    let path = format!("/v1/approvals/{id}/claim");
    let body = json!({ "payload_digest": DIGEST });
    let claim = |key: &'static str| {
        let (programs, path, body) = (&programs, &path, &body);
        async move { programs.call(Some("ci"), "POST", path, &[("idempotency-key", key)], Some(body)).await }
    };
    let (first, repeat, other) = (claim("c1").await, claim("c1").await, claim("c2").await);
    assert_eq!((first.status, repeat.status, other.problem()), (200, 200, "already-claimed"));
    assert_eq!(first.body["token"], repeat.body["token"], "the same token, which lives no longer");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_press_and_a_withdrawal_one_wins() {
    let programs = Programs::start().await;
    for nth in 0..4 {
        let mut asked = request();
        asked["change"]["target"] = json!(format!("web/{nth}"));
        let (id, thread) = programs.asked(&format!("k{nth}"), &asked).await;
        let (cancelled, ()) = tokio::join!(programs.cancels(&id), async { thread.press("bo", "Approve").await });
        programs.bot.settled().await;
        let seen = programs.looks(&id).await;
        match cancelled.status {
            200 => assert_eq!(seen.state(), "cancelled"),
            _ => assert_eq!((cancelled.problem(), seen.state()), ("already-decided", "approved"), "{cancelled:?}"),
        }
        let claimed = programs.claims(&id, DIGEST).await;
        assert_eq!(claimed.status == 200, seen.state() == "approved", "{claimed:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_claim_and_a_stop_one_wins() {
    let programs = Programs::start().await;
    for nth in 0..4 {
        let mut asked = request();
        asked["change"]["target"] = json!(format!("web/{nth}"));
        let (id, thread) = programs.asked(&format!("k{nth}"), &asked).await;
        thread.clicks("bo", "Approve").await;
        let (claimed, ()) = tokio::join!(programs.claims(&id, DIGEST), async { thread.press("ana", "Stop").await });
        eventually("an end", || {
            let store = programs.bot.store();
            let seen = crate::support::bot::wait_for(async move {
                store.actions(&countersign::graph::store::ActionFilter::all(&[], 100)).await.unwrap()
            });
            seen.iter().all(|record| record.status.has_outcome())
        })
        .await;
        programs.bot.settled().await;
        let seen = programs.looks(&id).await;
        match claimed.status {
            200 => assert_eq!(seen.state(), "unknown", "it was taken, and then stopped"),
            _ => assert_eq!((claimed.problem(), seen.state()), ("not-approved", "failed"), "{claimed:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_outlives_a_restart_while_its_program_waits() {
    let mut programs = Programs::start().await;
    let (id, _) = programs.asked("k1", &request()).await;
    let port = programs.bot.api().port();
    programs.bot.config.sections.get_mut::<countersign::api::settings::Api>().listen =
        Some(std::net::SocketAddr::from(([127, 0, 0, 1], port)));
    let (http, url) = (programs.http.clone(), format!("http://{}/v1/approvals/{id}?wait=60", programs.bot.api()));
    let secret = programs.secret("ci").to_owned();
    let waiting =
        tokio::spawn(async move { http.get(url).bearer_auth(secret).send().await?.json::<serde_json::Value>().await });
    tokio::time::timeout(Duration::from_secs(20), programs.bot.restart()).await.expect("nobody holds it up");
    // Who waits may be answered before the end, or lose the connection, which is no answer.
    if let Ok(seen) = waiting.await.unwrap() {
        assert_eq!(seen["state"], "pending");
    }
    let again = programs.asks("k1", &request()).await;
    assert_eq!((again.status, again.id()), (200, id.clone()), "asking again attaches");
    let thread = programs.thread(&again.body);
    let (waited, ()) = tokio::join!(programs.waits(&id, ""), async { thread.clicks("bo", "Approve").await });
    assert_eq!(waited.state(), "approved");
}

#[tokio::test(flavor = "multi_thread")]
async fn while_slack_is_away_requests_are_stored() {
    let programs = Programs::start().await;
    programs.bot.expects_complaints();
    let about = |target: &str| {
        let fails = Fault::Fail { method: "chat.postMessage".to_owned(), error: "fatal_error".to_owned(), calls: 3 };
        programs.bot.slack.inject(Fault::Only { containing: target.to_owned(), then: Box::new(fails) });
        let mut asked = request();
        asked["change"]["target"] = json!(target);
        asked
    };
    let asked = programs.asks("k1", &about("web/one")).await;
    assert_eq!((asked.status, asked.state(), &asked.body["revision"]), (201, "proposed", &json!(0)), "{asked:?}");
    let withdrawn = programs.asks("k2", &about("web/two")).await;
    assert_eq!(withdrawn.state(), "proposed", "{withdrawn:?}");
    let cancelled = programs.cancels(&withdrawn.id()).await;
    assert_eq!((cancelled.status, cancelled.state()), (200, "cancelled"), "{cancelled:?}");
    programs.bot.clock.advance(Duration::from_secs(120));
    let waited = programs.waits(&asked.id(), "&after=0").await;
    assert_eq!((waited.state(), &waited.body["revision"]), ("pending", &json!(1)), "{waited:?}");
    let roots = programs.bot.slack.look(|world| world.roots(&super::CHANNEL.0.into()).count());
    assert_eq!(roots, 1, "the one that was withdrawn has no card");
    programs.bot.sends_everything().await;
}
