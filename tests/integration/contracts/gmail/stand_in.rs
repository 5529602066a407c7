//! The stand-in itself: it refuses what Gmail refuses, in Gmail's format.

use countersign_sandbox::gmail::{Letter, Options, SandboxGmail};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::super::upgrade::replay::http;

async fn call(gmail: &SandboxGmail, method: Method, path: &str, body: Option<Value>) -> (StatusCode, Value) {
    let request = http().request(method, format!("{}/gmail/v1/users/me{path}", gmail.url())).bearer_auth("any");
    let request = match body {
        Some(body) => request.json(&body),
        None => request,
    };
    let response = request.send().await.unwrap();
    (response.status(), response.json().await.unwrap_or_default())
}

#[tokio::test]
async fn wrong_requests_are_refused_in_the_format_of_google() {
    let gmail = SandboxGmail::start(Options::default()).await.unwrap();
    let id = gmail.receives(&Letter::new("ana@customer.example", "Order 7", "Hello"));
    let message = |raw: &str| json!({ "message": { "raw": raw } });
    for (method, path, body, status) in [
        (Method::GET, "/messages?labels=INBOX".to_owned(), None, 400),
        (Method::GET, "/messages?labelIds=Label_99".to_owned(), None, 400),
        (Method::GET, "/messages?pageToken=nonsense".to_owned(), None, 400),
        (Method::GET, "/messages?q=invoice".to_owned(), None, 400),
        (Method::GET, format!("/messages/{id}?format=everything"), None, 400),
        (Method::GET, "/messages/0000000000000000?format=minimal".to_owned(), None, 404),
        (Method::GET, "/history?startHistoryId=1".to_owned(), None, 404),
        (Method::GET, "/history".to_owned(), None, 400),
        (Method::POST, "/drafts".to_owned(), Some(message("not+base64url")), 400),
        (Method::POST, "/drafts".to_owned(), Some(json!({ "message": { "raw": "SGk", "to": "x" } })), 400),
        (Method::POST, "/drafts".to_owned(), Some(json!({ "message": { "raw": "SGk", "threadId": "99" } })), 404),
        (Method::POST, "/drafts/send".to_owned(), Some(json!({ "id": "r1" })), 404),
        (Method::POST, format!("/messages/{id}/modify"), Some(json!({ "addLabelIds": ["Label_99"] })), 400),
        (Method::POST, "/labels".to_owned(), Some(json!({ "name": "inbox" })), 409),
        (Method::POST, "/watch".to_owned(), Some(json!({ "topicName": "projects/x/topics/y" })), 400),
        (Method::GET, "/settings/sendAs".to_owned(), None, 404),
    ] {
        let (found, answer) = call(&gmail, method.clone(), &path, body).await;
        assert_eq!(found.as_u16(), status, "{method} {path}: {answer}");
        let error = &answer["error"];
        assert_eq!(error["code"], status, "{method} {path}");
        assert!(
            error["message"].is_string() && error["status"].is_string() && error["errors"][0]["reason"].is_string()
        );
    }
    assert!(gmail.ledger().iter().all(|request| !request.effect), "no refused request had an effect");
}

#[tokio::test]
async fn a_request_without_a_token_is_refused() {
    let gmail = SandboxGmail::start(Options::default()).await.unwrap();
    let response = http().get(format!("{}/gmail/v1/users/me/profile", gmail.url())).send().await.unwrap();
    assert_eq!(response.status(), 401);
    let answer: Value = response.json().await.unwrap();
    assert_eq!(answer["error"]["status"], "UNAUTHENTICATED");
}
