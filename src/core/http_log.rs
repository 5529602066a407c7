//! The log of the requests that an action or node sends to outside systems, for the record.
//!
//! The requests are known only to a client deep inside a service, but it is the engine that writes the record. So the
//! log is task-local, like the [`crate::status_line`]. It contains methods, paths and statuses, but no hosts, queries,
//! bodies or headers: no tokens, and no personal data except in paths.

use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

/// The maximum number of different requests in a log. A long action repeats only few.
const MAX_EXCHANGES: usize = 40;

/// Requests with the same method, path and status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// The HTTP method, such as `POST`.
    pub method: String,
    /// The path, without host and query.
    pub path: String,
    /// The HTTP status; `None` if there was no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The number of these requests.
    pub count: u64,
}

type Noted = Arc<Mutex<Vec<Exchange>>>;

tokio::task_local! {
    static NOTED: Noted;
}

/// The requests recorded so far. They are kept even if the work is dropped before it ends.
#[derive(Clone, Debug, Default)]
pub struct HttpLog(Noted);

impl HttpLog {
    /// Runs `work` and records its requests.
    pub fn during<F: Future>(&self, work: F) -> impl Future<Output = F::Output> {
        NOTED.scope(self.0.clone(), work)
    }

    /// Removes and returns the requests, in the order in which each kind first occurred.
    pub fn take(&self) -> Vec<Exchange> {
        self.0.lock().map_or_else(|_| Vec::new(), |mut noted| std::mem::take(&mut *noted))
    }
}

/// Records one request of the current work. All kinds after the first [`MAX_EXCHANGES`] are counted as one.
pub fn note(method: &str, path: &str, status: Option<u16>) {
    let _ = NOTED.try_with(|noted| {
        let Ok(mut noted) = noted.lock() else { return };
        let same = |known: &&mut Exchange| known.method == method && known.path == path && known.status == status;
        if let Some(known) = noted.iter_mut().find(same) {
            known.count += 1;
        } else if noted.len() < MAX_EXCHANGES {
            noted.push(Exchange { method: method.to_owned(), path: path.to_owned(), status, count: 1 });
        } else {
            match noted.iter_mut().find(|known| known.path == "…") {
                Some(others) => others.count += 1,
                None => noted.push(Exchange { method: "…".into(), path: "…".into(), status: None, count: 1 }),
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn requests_of_the_work_are_recorded() {
        note("GET", "/nobody/listens", Some(200));
        let log = HttpLog::default();
        log.during(async {
            note("POST", "/state", Some(200));
            note("POST", "/state", Some(200));
            note("GET", "/single", None);
        })
        .await;
        let recorded: Vec<_> = log.take().into_iter().map(|e| (e.path, e.status, e.count)).collect();
        assert_eq!(recorded, [("/state".to_owned(), Some(200), 2), ("/single".to_owned(), None, 1)]);
        assert!(log.take().is_empty());
    }

    #[tokio::test]
    async fn a_thousand_different_requests_are_few_entries() {
        let log = HttpLog::default();
        log.during(async { (0..1000).for_each(|n| note("GET", &format!("/{n}"), Some(200))) }).await;
        let recorded = log.take();
        assert_eq!((recorded.len(), recorded.last().unwrap().count), (MAX_EXCHANGES + 1, 960));
    }
}
