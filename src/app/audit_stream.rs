//! Where the entries of the record go, and the task that sends them ([`countersign_conversation::record::stream`]).

use std::{
    fs::{self, File},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use async_trait::async_trait;
use countersign_config::{Record, Stream as To};
use countersign_conversation::record::{
    notebook::Redaction,
    stream::{Sink, Stream},
};
use countersign_core::{cause, clock::Clock, ids::WorkerId, private_file};
use countersign_graph::store::Store;
use countersign_services::http;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use url::Url;

/// The time between two rounds.
const EVERY: Duration = Duration::from_secs(2);

/// The maximum time between two attempts.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Returns the stream of the settings, if there is one.
///
/// # Errors
///
/// If the address is no valid one, or no certificates can be read.
pub(super) fn of(
    settings: &Record,
    store: &Arc<dyn Store>,
    clock: &Arc<dyn Clock>,
    name: &WorkerId,
) -> anyhow::Result<Option<Stream<Destination>>> {
    let Some(to) = &settings.stream else { return Ok(None) };
    let timeout = settings.stream_timeout;
    let to = match to {
        To::Stdout => Output::Stdout,
        To::File(path) => Output::File { path: path.clone(), open: None },
        To::Address(address) => {
            let url: Url = address.parse().context("record.stream isn't a valid address")?;
            let client = http::client(&url, timeout).context("cannot set up the client for record.stream")?;
            Output::Address { client, url, token: settings.stream_token.clone() }
        }
    };
    let destination = Destination { to, timeout };
    Ok(Some(Stream::new(store.clone(), clock.clone(), Redaction::from(settings), destination, name.to_string())))
}

/// Sends what is new every other second, until `stop`. After a failure, it waits longer and longer.
pub(super) async fn run(mut stream: Stream<impl Sink>, stop: CancellationToken) {
    let mut wait = EVERY;
    while !stop.is_cancelled() {
        let round = tokio::select! {
            round = stream.round() => round,
            () = stop.cancelled() => break,
        };
        wait = match round {
            Ok(_) => EVERY,
            Err(error) => {
                let error = cause::chain(&error);
                tracing::warn!(error, retry = ?wait, "The audit stream stands still; nothing is lost");
                (wait * 2).min(MAX_WAIT)
            }
        };
        tokio::select! {
            () = sleep(wait) => {}
            () = stop.cancelled() => {}
        }
    }
    stream.give_up().await;
}

/// Where lines go, and the time that it may take.
#[derive(Debug)]
pub(super) struct Destination {
    to: Output,
    timeout: Duration,
}

#[derive(Debug)]
enum Output {
    Stdout,
    File { path: PathBuf, open: Option<File> },
    Address { client: reqwest::Client, url: Url, token: Option<SecretString> },
}

#[async_trait]
impl Sink for Destination {
    async fn send(&mut self, lines: Vec<u8>) -> Result<(), String> {
        match &mut self.to {
            Output::Stdout => blocking(move || {
                let mut stdout = io::stdout().lock();
                stdout.write_all(&lines).and_then(|()| stdout.flush())
            })
            .await
            .map_err(|error| format!("cannot write to standard output: {error}")),
            Output::File { path, open } => {
                let (path, last) = (path.clone(), open.take());
                let name = path.display().to_string();
                let written = blocking(move || append(&path, last, &lines)).await;
                *open = Some(written.map_err(|error| format!("cannot write to {name}: {error}"))?);
                Ok(())
            }
            Output::Address { client, url, token } => {
                let request = client.post(url.clone()).header("content-type", "application/x-ndjson").body(lines);
                let request = match token {
                    Some(token) => request.bearer_auth(token.expose_secret()),
                    None => request,
                };
                match http::send("audit_stream", request, http::MAX_ANSWER_BYTES).await {
                    Ok(answer) if answer.status.is_success() => Ok(()),
                    Ok(answer) => Err(format!("record.stream answers {}", answer.status)),
                    Err(lost) => Err(format!("record.stream: {}", lost.reason())),
                }
            }
        }
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

/// Appends lines to a file and syncs it. A file that was moved away since the `last` time is made anew.
fn append(path: &Path, last: Option<File>, lines: &[u8]) -> io::Result<File> {
    let identity = |file: fs::Metadata| (file.dev(), file.ino());
    let named = fs::metadata(path).ok().map(identity);
    let last = last.filter(|last| named.is_some() && last.metadata().ok().map(identity) == named);
    let mut file = match last {
        Some(file) => file,
        None => open(path)?,
    };
    file.write_all(lines)?;
    file.sync_data()?;
    Ok(file)
}

/// Opens a file for appending. If it ends in the middle of a line, which was not noted as sent, that line is ended.
fn open(path: &Path) -> io::Result<File> {
    let mut file = File::options().create(true).read(true).append(true).mode(0o600).open(path)?;
    if file.metadata()?.len() > 0 {
        let mut end = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut end)?;
        if end != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    private_file::sync_folder(path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use axum::{Router, body::Bytes, extract::State, http::HeaderMap, http::StatusCode, routing::post};
    use countersign_config::Config;
    use countersign_core::clock::SystemClock;
    use countersign_store::sqlite::SqliteStore;

    use super::*;

    /// What an address was sent, and what it answers; `None` for never.
    #[derive(Clone, Default)]
    struct Address(Arc<Mutex<(Vec<String>, Option<StatusCode>)>>);

    impl Address {
        async fn listen(&self) -> String {
            let take = async |State(Address(address)): State<Address>, headers: HeaderMap, lines: Bytes| {
                let (mut header, text) = (Vec::new(), String::from_utf8(lines.into()).unwrap());
                for name in ["authorization", "content-type"] {
                    header.push(headers.get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default());
                }
                let answer = {
                    let mut address = address.lock().unwrap();
                    address.0.push(format!("{}|{text}", header.join("|")));
                    address.1
                };
                match answer {
                    Some(status) => status,
                    None => std::future::pending().await,
                }
            };
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}/lines", listener.local_addr().unwrap());
            let router = Router::new().route("/lines", post(take)).with_state(self.clone());
            tokio::spawn(async move { axum::serve(listener, router).await });
            url
        }
    }

    fn destination(to: Output) -> Destination {
        Destination { to, timeout: Duration::from_millis(300) }
    }

    fn address(url: &str) -> Destination {
        let url: Url = url.parse().unwrap();
        let client = http::client(&url, Duration::from_millis(300)).unwrap();
        destination(Output::Address { client, url, token: Some("secret".to_owned().into()) })
    }

    #[tokio::test]
    async fn lines_have_arrived_only_if_the_address_says_so() {
        let there = Address::default();
        let mut sink = address(&there.listen().await);
        let mut says = async |status: Option<StatusCode>| {
            there.0.lock().unwrap().1 = status;
            sink.send(b"{}\n".to_vec()).await
        };
        assert_eq!(says(Some(StatusCode::NO_CONTENT)).await, Ok(()));
        assert_eq!(
            says(Some(StatusCode::INTERNAL_SERVER_ERROR)).await.unwrap_err(),
            "record.stream answers 500 Internal Server Error"
        );
        assert_eq!(says(Some(StatusCode::FOUND)).await.unwrap_err(), "record.stream answers 302 Found");
        assert_eq!(says(None).await.unwrap_err(), "record.stream: no answer in time");
        assert_eq!(there.0.lock().unwrap().0, vec!["Bearer secret|application/x-ndjson|{}\n"; 4]);
        let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let refused = address(&format!("http://{nobody}/")).send(b"{}\n".to_vec()).await.unwrap_err();
        assert!(refused.starts_with("record.stream: Connection refused"), "{refused}");
    }

    #[tokio::test]
    async fn a_file_that_is_moved_away_is_made_anew_and_a_line_that_was_cut_off_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let [path, moved] = ["audit.jsonl", "audit.jsonl.1"].map(|name| folder.path().join(name));
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        fs::write(&path, "{\"thread\":").unwrap();
        let mut sink = destination(Output::File { path: path.clone(), open: None });
        sink.send(b"1\n".to_vec()).await.unwrap();
        fs::rename(&path, &moved).unwrap();
        sink.send(b"2\n".to_vec()).await.unwrap();
        sink.send(b"3\n".to_vec()).await.unwrap();
        assert_eq!((read(&moved).as_str(), read(&path).as_str()), ("{\"thread\":\n1\n", "2\n3\n"));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        let error = sink.send(b"4\n".to_vec()).await.unwrap_err();
        assert!(error.starts_with(&format!("cannot write to {}: ", path.display())), "{error}");
    }

    #[tokio::test]
    async fn the_settings_say_where_and_only_valid_places_are_taken() {
        let of = |to: &str| {
            let to = [("COUNTERSIGN__RECORD__STREAM".to_owned(), to.to_owned())].into();
            Config::load(None, &to, &crate::app::installed::SETTINGS).map_err(|wrong| wrong.to_string())
        };
        let folder = tempfile::tempdir().unwrap();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.path().join("store"), clock.clone()).unwrap());
        for to in ["stdout", "file:/var/log/a.jsonl", "https://siem.example.com/in", "http://127.0.0.1:9/"] {
            let config = of(to).unwrap();
            assert!(super::of(&config.record, &store, &clock, &WorkerId::new("w1")).unwrap().is_some(), "{to}");
        }
        for to in ["file:a.jsonl", "http://siem.example.com/in", "syslog", "https://ana@siem.example.com/"] {
            let wrong = of(to).unwrap_err();
            assert!(wrong.starts_with("record.stream: found ") && wrong.contains("; expected "), "{to}: {wrong}");
            assert!(!wrong.contains("ana@"), "{wrong}");
        }
    }
}
