//! Tests that send changes to local sockets, and check the bytes that were sent and the reported results.

use std::sync::atomic::{AtomicI64, Ordering};

use countersign_core::clock::{Clock, SystemClock, Timestamp};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use super::*;

const TIMEOUT: Duration = Duration::from_secs(20);
const OK: &str = "HTTP/1.1 200 OK\r\nx-request-id: r-1\r\ncontent-length: 4\r\n\r\ntrue";

/// A clock that jumps an hour ahead after a number of calls, as if the process had been paused at that point.
#[derive(Debug)]
struct PausingClock(AtomicI64);

impl PausingClock {
    fn after(times: i64) -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(times)))
    }
}

impl Clock for PausingClock {
    fn now(&self) -> Timestamp {
        let now = SystemClock.now();
        if self.0.fetch_sub(1, Ordering::SeqCst) > 0 { now } else { now + Duration::from_secs(3600) }
    }
}

fn permit() -> SendPermit {
    SendPermit::new(Arc::new(SystemClock), TIMEOUT)
}

fn post(to: &Url) -> RequestBuilder {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
    client.post(format!("{to}experiments?a=b")).bearer_auth("secret").json(&json!({ "state": "enrolling" }))
}

/// Starts a server that reads one request, sends `answer` and closes the connection. Returns its address and the
/// received texts.
async fn server(answer: &'static str) -> (Url, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    let serve = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let received = read_request(&mut socket).await;
        socket.write_all(answer.as_bytes()).await.ok();
        vec![received]
    });
    (url, serve)
}

/// Reads until a request is complete or the connection ends.
async fn read_request(socket: &mut TcpStream) -> String {
    let mut received = String::new();
    let mut buffer = [0; 4096];
    loop {
        let read = socket.read(&mut buffer).await.unwrap();
        received.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
        if read == 0 || received.ends_with('}') || received.starts_with("CONNECT") && received.ends_with("\r\n\r\n") {
            return received;
        }
    }
}

fn changes(to: &Url) -> Changes {
    Changes::to("it", to, TIMEOUT, 1000).unwrap()
}

#[tokio::test]
async fn a_change_arrives_whole_and_its_answer_is_read() {
    let (url, served) = server(OK).await;
    let answer = changes(&url).send(post(&url), &permit()).await.unwrap();
    assert_eq!((answer.status.as_u16(), answer.body.as_slice()), (200, b"true".as_slice()));
    assert_eq!(answer.request_id.as_deref(), Some("r-1"));
    let received = served.await.unwrap().remove(0).to_lowercase();
    assert!(received.starts_with("post /experiments?a=b http/1.1\r\n"), "{received}");
    let host = url.authority();
    for line in [&format!("host: {host}"), "authorization: bearer secret", "connection: close", "content-length: 21"] {
        assert!(received.contains(&format!("\r\n{line}\r\n")), "{line} is missing: {received}");
    }
    assert!(received.ends_with(r#"{"state":"enrolling"}"#), "{received}");
}

#[tokio::test]
async fn a_process_that_stood_still_after_its_check_sends_no_byte() {
    let (url, served) = server(OK).await;
    // The clock is read when the permit is created and when the call begins. Then it jumps, before the first write.
    let permit = SendPermit::new(PausingClock::after(2), TIMEOUT);
    assert_eq!(changes(&url).send(post(&url), &permit).await.unwrap_err(), Lost::RunOut);
    assert_eq!(served.await.unwrap(), [""], "a connection was made, and nothing was sent on it");
}

#[tokio::test]
async fn a_permit_that_ran_out_before_makes_no_connection() {
    let nobody: Url = "http://127.0.0.1:1/".parse().unwrap();
    let permit = SendPermit::new(PausingClock::after(1), TIMEOUT);
    assert_eq!(changes(&nobody).send(post(&nobody), &permit).await.unwrap_err(), Lost::RunOut);
}

#[tokio::test]
async fn a_process_that_stands_still_in_the_middle_sends_no_more() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url: Url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    let served = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut all = Vec::new();
        socket.read_to_end(&mut all).await.ok();
        all.len()
    });
    // More than a socket accepts at once, so that there are several writes. The third is not permitted.
    let large = 64 * 1024 * 1024;
    let request = post(&url).body(vec![b'x'; large]);
    let permit = SendPermit::new(PausingClock::after(4), TIMEOUT);
    let lost = changes(&url).send(request, &permit).await.unwrap_err();
    assert!(matches!(&lost, Lost::NoAnswer { timed_out: false, .. }), "a part was sent: {lost:?}");
    assert!(served.await.unwrap() < large);
}

#[tokio::test]
async fn a_refused_connection_means_certainly_not_sent() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let url: Url = format!("http://{closed}/").parse().unwrap();
    let lost = changes(&url).send(post(&url), &permit()).await.unwrap_err();
    assert!(matches!(&lost, Lost::NotSent { reason } if reason.contains("refused")), "{lost:?}");
}

#[tokio::test]
async fn a_connection_lost_after_sending_has_no_answer() {
    let (url, _served) = server("").await;
    let lost = changes(&url).send(post(&url), &permit()).await.unwrap_err();
    let reason = "the connection was closed".to_owned();
    assert_eq!(lost, Lost::NoAnswer { reason, timed_out: false });
}

#[tokio::test]
async fn silence_has_no_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url: Url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    let hasty = Changes::to("it", &url, Duration::from_millis(300), 1000).unwrap();
    let lost = hasty.send(post(&url), &permit()).await.unwrap_err();
    assert_eq!(lost, Lost::NoAnswer { reason: "no answer in time".into(), timed_out: true });
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_not_read() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 600000000\r\n\r\n",
        "HTTP/1.1 500 Oh\r\ntransfer-encoding: chunked\r\n\r\n3e9\r\n",
    ] {
        let answer = format!("{answer}{}", "x".repeat(2000)).leak();
        let (url, _served) = server(answer).await;
        let lost = changes(&url).send(post(&url), &permit()).await.unwrap_err();
        assert_eq!(lost, Lost::TooLong { reason: "its answer is longer than the limit of 1000 bytes".into() });
    }
}

#[tokio::test]
async fn a_proxy_is_asked_for_the_whole_address() {
    let (proxy, served) = server(OK).await;
    let proxies = Matcher::builder().http(proxy.as_str().replace("http://", "http://me:pw@")).build();
    let far: Url = "http://upgrade.example/api/".parse().unwrap();
    let through = Changes::through(Some(proxies), &far, TIMEOUT, 1000).unwrap();
    through.send(post(&far), &permit()).await.unwrap();
    let received = served.await.unwrap().remove(0);
    assert!(received.starts_with("POST http://upgrade.example/api/experiments?a=b HTTP/1.1\r\n"), "{received}");
    assert!(
        received.contains("host: upgrade.example\r\n") && received.contains("proxy-authorization: Basic bWU6cHc="),
        "{received}"
    );
}

#[tokio::test]
async fn a_proxy_is_asked_for_a_tunnel_to_a_service_with_tls() {
    let (proxy, served) = server("HTTP/1.1 502 Bad Gateway\r\n\r\n").await;
    let proxies = Matcher::builder().https(proxy.as_str()).build();
    let far: Url = "https://upgrade.example/api/".parse().unwrap();
    let through = Changes::through(Some(proxies), &far, TIMEOUT, 1000).unwrap();
    let lost = through.send(post(&far), &permit()).await.unwrap_err();
    assert!(matches!(&lost, Lost::NotSent { .. }), "{lost:?}");
    let received = served.await.unwrap().remove(0);
    assert!(received.starts_with("CONNECT upgrade.example:443 HTTP/1.1\r\n"), "{received}");
}

#[tokio::test]
async fn requests_say_where_in_a_trace_they_belong() {
    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    thread_local! {
        static IS_HERE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    }
    let parent = |_: &tracing::Span| IS_HERE.get().then(|| PARENT.to_owned());
    spans::export_with(spans::Exporter { parent, link: |_, _| () });
    for is_traced in [false, true] {
        IS_HERE.set(is_traced);
        let (url, served) = server(OK).await;
        changes(&url).send(post(&url), &permit()).await.unwrap();
        let mut received = served.await.unwrap();
        let (url, served) = server(OK).await;
        changes(&url).open(post(&url), &permit()).await.unwrap();
        received.extend(served.await.unwrap());
        let (url, served) = server(OK).await;
        crate::http::send("it", post(&url), 1000).await.unwrap();
        received.extend(served.await.unwrap());
        let line = format!("traceparent: {PARENT}\r\n");
        assert!(received.iter().all(|request| request.contains(&line) == is_traced), "{received:#?}");
    }
}
