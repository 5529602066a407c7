//! The routes of the playground.

use std::sync::Arc;

use axum::{Router, middleware, routing::get};

use super::{CustomerMail, Suggestion, TraceSource, assets, guard, inbox, trace};

/// Returns a router that serves the page at `/`, its files below `/assets/`, the records at
/// `/trace`, the mails at `/inbox`, and the workspace.
///
/// `slack_workspace` provides the `/workspace/…` routes; `suggestions` are shown in empty
/// conversations. Without `mail`, the page has no inbox.
pub fn router(
    slack_workspace: Router,
    trace: Arc<dyn TraceSource>,
    suggestions: &[Suggestion],
    mail: Option<Arc<dyn CustomerMail>>,
) -> Router {
    let suggestions = serde_json::json!(suggestions);
    Router::new()
        .route("/", get(assets::index))
        .route("/assets/{*path}", get(assets::asset))
        .route("/suggestions", get(|| async { axum::Json(suggestions) }))
        .route("/trace", get(trace::thread))
        .route("/trace/threads", get(trace::threads))
        .with_state(trace)
        .merge(inbox::router(mail))
        .merge(slack_workspace)
        .layer(middleware::from_fn(guard::guard))
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use axum::http::header;
    use serde_json::{Value, json};

    use super::*;
    use crate::page::{Customer, ShownMail, SlackThread, WrittenMail};

    /// A source with one thread, which fails for the channel `broken`.
    struct OneThread;

    #[async_trait]
    impl TraceSource for OneThread {
        async fn threads(&self) -> Result<Value, String> {
            Ok(json!([{ "channel": "C1", "ts": "1.2" }]))
        }

        async fn trace(&self, channel: &str, ts: &str) -> Result<Option<Value>, String> {
            match (channel, ts) {
                ("C1", "1.2") => Ok(Some(json!({ "thread": "C1/1.2" }))),
                ("broken", _) => Err("the store isn't answering".into()),
                _ => Ok(None),
            }
        }
    }

    /// An inbox with one mail, which accepts no others.
    struct OneMail;

    #[async_trait]
    impl CustomerMail for OneMail {
        fn customers(&self) -> Vec<Customer> {
            vec![Customer { name: "Ada".to_owned(), address: "ada@customer.example".to_owned(), example: None }]
        }

        async fn mails(&self) -> Result<Vec<ShownMail>, String> {
            let text = |text: &str| text.to_owned();
            Ok(vec![ShownMail {
                id: text("m1"),
                conversation: text("t1"),
                is_from_team: false,
                name: text("Ada"),
                customer: text("ada@customer.example"),
                subject: text("Prices"),
                text: text("What do 20 seats cost?"),
                at: 1_800_000_000_000,
                thread: Some(SlackThread { channel: text("C5"), ts: text("1.2") }),
            }])
        }

        async fn write(&self, mail: &WrittenMail) -> Result<String, String> {
            Err(format!("the mail server refused “{}”", mail.subject))
        }
    }

    /// Starts a playground on a free port of this machine. It ends with the runtime of the test.
    async fn playground() -> String {
        let workspace = Router::new().route("/workspace/state", get(|| async { "the workspace" }));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = router(workspace, Arc::new(OneThread), &[], Some(Arc::new(OneMail)));
        tokio::spawn(async move { axum::serve(listener, app).await });
        format!("http://{address}")
    }

    fn browser() -> reqwest::Client {
        // It fails if another test of this process has installed one before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        reqwest::Client::builder().no_proxy().build().unwrap()
    }

    async fn fetch(url: String) -> reqwest::Response {
        browser().get(url).send().await.unwrap()
    }

    #[tokio::test]
    async fn files_have_their_types_and_are_not_cached() {
        let base = playground().await;
        for (path, content_type) in [
            ("/", "text/html; charset=utf-8"),
            ("/assets/styles/base.css", "text/css; charset=utf-8"),
            ("/assets/scripts/main.js", "text/javascript; charset=utf-8"),
            ("/assets/mark.svg", "image/svg+xml"),
            ("/assets/fonts/inter.woff2", "font/woff2"),
        ] {
            let response = fetch(format!("{base}{path}")).await;
            assert_eq!(response.status(), 200, "{path}");
            assert_eq!(response.headers()[header::CONTENT_TYPE], content_type, "{path}");
            assert_eq!(response.headers()[header::CACHE_CONTROL], "no-cache", "{path}");
        }
        assert_eq!(fetch(format!("{base}/assets/scripts/../mod.rs")).await.status(), 404);
    }

    #[tokio::test]
    async fn every_answer_forbids_foreign_content() {
        let base = playground().await;
        for path in ["/", "/trace/threads", "/workspace/state"] {
            let response = fetch(format!("{base}{path}")).await;
            let policy = response.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
            assert!(policy.starts_with("default-src 'self'") && !policy.contains("unsafe"), "{path}: {policy}");
        }
    }

    #[tokio::test]
    async fn other_pages_cannot_use_the_workspace() {
        let base = playground().await;
        let client = browser();
        let foreign = client.get(format!("{base}/workspace/state")).header(header::ORIGIN, "http://evil.example");
        assert_eq!(foreign.send().await.unwrap().status(), 403);
        let renamed = client.get(format!("{base}/workspace/state")).header(header::HOST, "evil.example");
        assert_eq!(renamed.send().await.unwrap().status(), 403);
        let own = client.get(format!("{base}/workspace/state")).header(header::ORIGIN, &base);
        assert_eq!(own.send().await.unwrap().text().await.unwrap(), "the workspace");
    }

    #[tokio::test]
    async fn a_trace_is_found_missing_or_failed() {
        let base = playground().await;
        let body = async |path: &str| {
            let response = fetch(format!("{base}{path}")).await;
            (response.status().as_u16(), response.json::<Value>().await.unwrap())
        };
        assert_eq!(body("/trace?channel=C1&ts=1.2").await, (200, json!({ "thread": "C1/1.2" })));
        assert_eq!(body("/trace/threads").await, (200, json!([{ "channel": "C1", "ts": "1.2" }])));
        let (status, missing) = body("/trace?channel=C1&ts=9").await;
        assert_eq!((status, &missing["error"]), (404, &json!("the bot hasn't been in this thread")));
        let (status, failed) = body("/trace?channel=broken&ts=9").await;
        assert_eq!((status, &failed["error"]), (502, &json!("the store isn't answering")));
    }

    #[tokio::test]
    async fn a_customers_mail_is_read_checked_and_sent() {
        let base = playground().await;
        let mails: Value = fetch(format!("{base}/inbox")).await.json().await.unwrap();
        assert_eq!(mails["customers"][0]["name"], "Ada");
        assert_eq!(mails["mails"][0]["thread"], json!({ "channel": "C5", "ts": "1.2" }));
        let write = async |address: &str| {
            let mail = json!({ "name": "Ada", "address": address, "subject": "Hello", "text": "Hello" });
            let response = browser().post(format!("{base}/inbox")).json(&mail).send().await.unwrap();
            (response.status().as_u16(), response.json::<Value>().await.unwrap())
        };
        let (status, refused) = write("nobody").await;
        assert_eq!((status, refused["ok"].as_bool()), (200, Some(false)));
        assert!(
            refused["errors"]["address"].as_str().unwrap().contains("“nobody” isn't an email address"),
            "{refused}"
        );
        let (status, failed) = write("ada@customer.example").await;
        assert_eq!((status, &failed["error"]), (502, &json!("the mail server refused “Hello”")));
    }

    #[tokio::test]
    async fn a_playground_without_mail_has_no_inbox() {
        let router = inbox::router(None);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        let answer: Value = fetch(format!("http://{address}/inbox")).await.json().await.unwrap();
        assert_eq!(answer, json!({ "available": false }));
    }
}
