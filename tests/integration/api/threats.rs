//! What others may try: keys that are wrong, requests of others, texts that want to look like something else, and too much.

use std::time::Duration;

use countersign::graph::store::ActionFilter;
use serde_json::{Value, json};

use super::{DIGEST, Programs, request};

#[tokio::test(flavor = "multi_thread")]
async fn an_address_with_wrong_keys_is_locked_out_for_a_minute() {
    let programs = Programs::start().await;
    let url = format!("http://{}/v1/policies", programs.bot.api());
    let with = |key: &str| programs.http.get(&url).bearer_auth(key).send();
    let right = programs.secret("ci").to_owned();
    let nearly = format!("{}x", &right[..right.len() - 1]);
    for _ in 0..10 {
        let refused = with(&nearly).await.unwrap();
        assert_eq!((refused.status().as_u16(), refused.headers().contains_key("www-authenticate")), (401, true));
    }
    assert_eq!(with(&nearly).await.unwrap().status().as_u16(), 429);
    assert_eq!(with(&right).await.unwrap().status().as_u16(), 429, "from this address");
    programs.bot.clock.advance(Duration::from_secs(61));
    assert_eq!(with(&right).await.unwrap().status().as_u16(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_sees_and_does_only_what_is_its_own() {
    let programs = Programs::start().await;
    let (id, thread) = programs.asked("k1", &request()).await;
    thread.clicks("bo", "Approve").await;
    let body = json!({ "payload_digest": DIGEST });
    for (as_, method, path, body, status) in [
        ("other", "GET", format!("/v1/approvals/{id}"), None, 404),
        ("other", "POST", format!("/v1/approvals/{id}/claim"), Some(&body), 404),
        ("other", "POST", format!("/v1/approvals/{id}/cancel"), Some(&json!({})), 404),
        ("other", "POST", format!("/v1/approvals/{id}/outcome"), Some(&json!({ "result": "failed" })), 404),
        ("reader", "GET", format!("/v1/approvals/{id}"), None, 404),
        ("reader", "POST", format!("/v1/approvals/{id}/claim"), Some(&body), 403),
        ("ci", "GET", "/v1/approvals/apr_00000000000000000000000000000000".to_owned(), None, 404),
        ("ci", "GET", "/v1/approvals/..%2Fkey%2Fci-web".to_owned(), None, 404),
        ("ci", "DELETE", format!("/v1/approvals/{id}"), None, 404),
        ("ci", "POST", format!("/v1/approvals/{id}/approve"), Some(&json!({})), 404),
    ] {
        let answered = programs.call(Some(as_), method, &path, &[], body).await;
        assert_eq!(answered.status, status, "{as_} {method} {path}: {answered:?}");
    }
    let of_other = programs.call(Some("other"), "GET", "/v1/approvals", &[], None).await;
    assert_eq!(of_other.body["data"], json!([]));
    let claimed = programs.claims(&id, DIGEST).await;
    let token = json!({ "token": claimed.body["token"] });
    let introspected = programs.call(Some("other"), "POST", "/v1/tokens/introspect", &[], Some(&token)).await;
    assert_eq!(introspected.body, json!({ "active": false }), "it is for another program");
    let set = programs.call(None, "GET", "/.well-known/jwks.json", &[], None).await;
    assert_eq!(
        (set.status, &set.body["keys"][0]["alg"], &set.body["keys"][0]["d"]),
        (200, &json!("EdDSA"), &Value::Null)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_program_writes_is_only_text() {
    let programs = Programs::start().await;
    let mut asked = request();
    asked["title"] = json!("*Approved by* <@UANA> :white_check_mark: <!date^1^{date}|x> <https://evil.example|GitHub>");
    asked["reason"] = json!("line one\n*Decision*  approved\u{200b}");
    asked["change"]["target"] = json!("web”? Approved by ana");
    asked["change"]["fields"][0]["label"] = json!("Approved by");
    asked["change"]["payload"]["version"] = json!("<!channel> `x`");
    asked["links"] = json!([{ "label": "<!here>", "url": "https://github.com/a|b" }]);
    let (_, thread) = programs.asked("k1", &asked).await;
    for message in thread.messages() {
        let drawn = serde_json::to_string(&message.blocks).unwrap();
        for token in ["<!channel", "<!here", "<@UANA", "<!date^1^", "<https://evil", ":white_check_mark:", "\u{200b}"] {
            assert!(!drawn.contains(token), "{token} in {drawn}");
        }
    }
    let card = thread.messages().pop().unwrap().words();
    assert!(card.contains("Approved by (/version)"), "a label of the program has its place with it: {card}");
    let wrong = json!([{ "label": "x", "url": "https://evil.example/" }]);
    asked["links"] = wrong;
    let refused = programs.asks("k2", &asked).await;
    assert_eq!((refused.status, &refused.body["errors"][0]["pointer"]), (400, &json!("/links/0/url")), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn too_much_is_refused() {
    let programs = Programs::with(|api| {
        api.keys.get_mut("ci-web").unwrap().max_open = 2;
    })
    .await;
    let (first, _) = programs.asked("k1", &request()).await;
    programs.asked("k2", &request()).await;
    let third = programs.asks("k3", &request()).await;
    assert_eq!((third.status, third.problem()), (429, "too-many-open"), "{third:?}");
    assert_eq!(programs.cancels(&first).await.state(), "cancelled");
    assert_eq!(programs.asks("k3", &request()).await.status, 201, "there is room again, also for the same key");
    let mut large = request();
    large["metadata"] = json!({ "x": "y".repeat(70_000) });
    assert_eq!(programs.asks("k4", &large).await.problem(), "too-large");
    let path = format!("http://{}/v1/approvals", programs.bot.api());
    let plain = programs.http.post(path).bearer_auth(programs.secret("ci")).header("idempotency-key", "k5");
    assert_eq!(plain.body("{}").send().await.unwrap().status().as_u16(), 415);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_asks_too_often_is_slowed_down() {
    let programs = Programs::with(|api| api.requests_a_minute = 6).await;
    let (first, second) = (programs.get("/v1/policies").await, programs.get("/v1/policies").await);
    assert_eq!((first.status, second.status), (200, 200));
    let third = programs.get("/v1/policies").await;
    assert_eq!((third.status, third.problem()), (429, "rate-limited"));
    assert_eq!(third.headers["retry-after"], "10");
    programs.bot.clock.advance(Duration::from_secs(10));
    assert_eq!(programs.get("/v1/policies").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_record_tells_who_asked_took_and_reported() {
    let programs = Programs::start().await;
    let (id, thread) = programs.asked("k1", &request()).await;
    thread.clicks("bo", "Approve").await;
    programs.claims(&id, "sha-256:AAAA").await;
    programs.claims(&id, DIGEST).await;
    programs.reports(&id, "succeeded").await;
    programs.bot.settled().await;
    let store = programs.bot.store();
    let record = store.actions(&ActionFilter::all(&[], 1)).await.unwrap().pop().unwrap();
    let audit = store.audit(&record.thread).await.unwrap();
    assert!(audit.proof.holds() && record.proof.holds());
    let told: Vec<_> = audit
        .iter()
        .filter_map(|entry| {
            Some((serde_json::to_value(entry.event.kind).unwrap(), entry.event.by.clone()?.to_string()))
        })
        .collect();
    let kinds: Vec<_> = told.iter().map(|(kind, by)| (kind.as_str().unwrap(), by.as_str())).collect();
    let by = |kind: &str| kinds.iter().find(|(known, _)| *known == kind).map(|(_, by)| *by);
    assert_eq!(by("asked"), Some("key:ci-web"), "{kinds:?}");
    assert_eq!(by("click_refused"), Some("key:ci-web"), "{kinds:?}");
    assert_eq!(by("executed"), Some("key:ci-web"), "{kinds:?}");
    assert_eq!(by("outcome"), Some("key:ci-web"), "{kinds:?}");
    let secret = programs.secret("ci");
    let all = serde_json::to_string(&audit.entries).unwrap();
    assert!(!all.contains(secret) && all.contains(DIGEST), "hashes and digests, never secrets");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_is_described() {
    let programs = Programs::start().await;
    let document = programs.call(None, "GET", "/v1/openapi.json", &[], None).await;
    assert_eq!((document.status, &document.body["openapi"]), (200, &json!("3.1.0")));
    let asks = &document.body["paths"]["/v1/approvals"]["post"]["requestBody"]["content"]["application/json"]["schema"];
    let schema = jsonschema::validator_for(asks).unwrap();
    assert!(schema.is_valid(&request()));
    let mut wrong = request();
    wrong["approver"] = json!("UANA");
    assert!(!schema.is_valid(&wrong));
    for route in countersign::api::server::ROUTES {
        let described = &document.body["paths"][route.path][route.method.to_lowercase()];
        assert!(described["summary"].is_string(), "{} {}", route.method, route.path);
    }
}
