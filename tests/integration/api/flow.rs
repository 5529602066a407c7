//! A request from the question to the report, as the program and the people in the thread see it.

use std::time::Duration;

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{DIGEST, Programs, request};

/// The parts of a token, without checking it.
fn claims_of(token: &str) -> Value {
    use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
    let part = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_approves_and_the_program_claims_and_reports() {
    let programs = Programs::start().await;
    let (id, mut thread) = programs.asked("k1", &request()).await;
    assert_snapshot!("card", thread.heard());
    let (waited, ()) = tokio::join!(programs.waits(&id, ""), async {
        thread.clicks("bo", "Approve").await;
    });
    assert_eq!((waited.status, waited.state()), (200, "approved"), "{waited:?}");
    assert_eq!(waited.body["final"], false);
    assert_eq!(waited.body["decisions"][0]["verdict"], "approved");
    assert_snapshot!("approved", thread.heard());

    let claimed = programs.claims(&id, DIGEST).await;
    assert_eq!(claimed.status, 200, "{claimed:?}");
    let token = claimed.body["token"].as_str().unwrap();
    let claims = claims_of(token);
    assert_eq!(
        (&claims["iss"], &claims["aud"], &claims["sub"], &claims["verdict"], &claims["payload_digest"]),
        (&json!("https://countersign.example"), &json!("ci-web"), &json!(id), &json!("approved"), &json!(DIGEST))
    );
    assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 300);
    let asked = json!({ "token": token });
    let introspect = || programs.post("/v1/tokens/introspect", &asked);
    let introspected = introspect().await;
    assert_eq!((introspected.status, &introspected.body["active"]), (200, &json!(true)), "{introspected:?}");
    assert_eq!(programs.looks(&id).await.state(), "intent");
    programs.bot.settled_but_for(0).await;
    assert_snapshot!("claimed", thread.heard());

    let body = json!({ "result": "succeeded", "summary": "Deployed <!here>", "url": "https://ci.example/1" });
    let path = format!("/v1/approvals/{id}/outcome");
    let reported = programs.post(&path, &body).await;
    assert_eq!((reported.status, reported.state()), (200, "done"), "{reported:?}");
    assert_eq!(reported.body["outcome"]["result"], "succeeded");
    let again = programs.post(&path, &body).await;
    assert_eq!(
        (again.status, &again.body["revision"]),
        (200, &reported.body["revision"]),
        "repeating it changes nothing"
    );
    let other = programs.reports(&id, "failed").await;
    assert_eq!((other.status, other.problem()), (409, "already-decided"), "{other:?}");
    assert_eq!(introspect().await.body, json!({ "active": false }), "it was reported");
    programs.bot.settled().await;
    assert_snapshot!("reported", thread.heard());
    let listed = programs.get("/v1/approvals?state=done&limit=10").await;
    assert_eq!(listed.body["data"].as_array().unwrap().len(), 1, "{listed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_no_rejects_and_the_same_is_not_asked_again_at_once() {
    let programs = Programs::start().await;
    let (id, mut thread) = programs.asked("k1", &request()).await;
    thread.skip();
    thread.clicks("bo", "Reject…").await;
    let waited = programs.waits(&id, "").await;
    assert_eq!((waited.state(), &waited.body["final"]), ("rejected", &json!(true)), "{waited:?}");
    assert_snapshot!("rejected", thread.heard());
    let claimed = programs.claims(&id, DIGEST).await;
    assert_eq!((claimed.status, claimed.problem(), claimed.state()), (409, "not-approved", "rejected"));
    let again = programs.asks("k2", &request()).await;
    assert_eq!((again.status, again.problem()), (429, "recently-rejected"), "{again:?}");
    assert!(again.headers.contains_key("retry-after"));
    let mut changed = request();
    changed["change"]["payload"]["version"] = json!("1.4.3");
    let (_, mut newer) = programs.asked("k3", &changed).await;
    let card = newer.heard();
    assert!(card.contains("A similar request was rejected") && card.contains("1.4.3"), "{card}");
    programs.bot.clock.advance(Duration::from_secs(601));
    assert_eq!(programs.asks("k4", &request()).await.status, 201, "it is forgotten after a while");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_people_approve_and_the_program_follows_each() {
    let programs = Programs::start().await;
    let mut asked = request();
    asked["policy"] = json!("two-people");
    let (id, mut thread) = programs.asked("k1", &asked).await;
    thread.skip();
    thread.clicks("ana", "Approve").await;
    let first = programs.waits(&id, "&after=1").await;
    assert_eq!(
        (first.state(), &first.body["policy"]),
        ("pending", &json!({ "name": "two-people", "needed": 2, "approvals": 1 }))
    );
    assert_snapshot!("one_of_two", thread.heard());
    let (second, ()) = tokio::join!(programs.waits(&id, ""), async {
        thread.clicks("bo", "Approve").await;
    });
    assert_eq!(second.state(), "approved", "{second:?}");
    assert!(second.body["revision"].as_u64() > first.body["revision"].as_u64());
    assert_eq!(programs.claims(&id, DIGEST).await.status, 200);
    assert_eq!(programs.reports(&id, "failed").await.state(), "failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_decides_or_nobody_claims_or_nobody_reports() {
    let programs = Programs::start().await;
    let mut asked = request();
    asked["expires_in"] = json!(600);
    let (expired, _) = programs.asked("k1", &asked).await;
    programs.passes(Duration::from_secs(601), &expired).await;
    assert_eq!(programs.looks(&expired).await.state(), "expired");

    let (unclaimed, mut thread) = programs.asked("k2", &request()).await;
    thread.clicks("bo", "Approve").await;
    thread.skip();
    programs.passes(Duration::from_secs(901), &unclaimed).await;
    let late = programs.looks(&unclaimed).await;
    assert_eq!((late.state(), &late.body["final"]), ("failed", &json!(true)), "{late:?}");
    assert_snapshot!("unclaimed", thread.heard());
    assert_eq!(programs.claims(&unclaimed, DIGEST).await.problem(), "not-approved");

    let (unreported, mut thread) = programs.asked("k3", &request()).await;
    thread.clicks("bo", "Approve").await;
    assert_eq!(programs.claims(&unreported, DIGEST).await.status, 200);
    thread.skip();
    programs.passes(Duration::from_secs(3601), &unreported).await;
    assert_eq!(programs.looks(&unreported).await.state(), "unknown");
    assert_snapshot!("unreported", thread.heard());
    let reported = programs.reports(&unreported, "succeeded").await;
    assert_eq!((reported.status, reported.state()), (200, "done"), "a late report counts: {reported:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_an_approval_that_nobody_has_claimed() {
    let programs = Programs::start().await;
    let (id, mut thread) = programs.asked("k1", &request()).await;
    thread.clicks("bo", "Approve").await;
    thread.skip();
    thread.clicks("ana", "Stop").await;
    assert_eq!(programs.looks(&id).await.state(), "failed");
    assert_snapshot!("stopped", thread.heard());
    assert_eq!(programs.claims(&id, DIGEST).await.problem(), "not-approved");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_request_takes_the_place_of_an_open_one() {
    let programs = Programs::start().await;
    let (older, mut thread) = programs.asked("k1", &request()).await;
    thread.skip();
    let mut asked = request();
    asked["supersede"] = json!(true);
    let (newer, _) = programs.asked("k2", &asked).await;
    let seen = programs.looks(&older).await;
    assert_eq!((seen.state(), &seen.body["replaced_by"]), ("superseded", &json!(newer)), "{seen:?}");
    assert_snapshot!("superseded", thread.heard());
    let listed = programs.get("/v1/approvals?limit=1").await;
    assert_eq!(
        (&listed.body["data"][0]["id"], listed.body["next_cursor"].is_string()),
        (&json!(older), true),
        "{listed:?}"
    );
    let next = programs.get(&format!("/v1/approvals?cursor={}", listed.body["next_cursor"].as_str().unwrap())).await;
    assert_eq!((&next.body["data"][0]["id"], &next.body["next_cursor"]), (&json!(newer), &Value::Null), "{next:?}");
}
