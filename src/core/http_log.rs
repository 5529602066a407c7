//! The log of the requests that work in progress sends to outside systems, for the record.
//!
//! A client deep inside a service knows the request, and the engine keeps the record. The list between them belongs to
//! the task, as the [`crate::status_line`] does. It holds methods, paths and statuses: no hosts, no queries, no bodies,
//! no headers, so no tokens and nothing about people but what stands in a path.

use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

/// The number of different requests that are distinguished; a long action repeats few.
const MAX_EXCHANGES: usize = 40;

/// Requests of one kind, with their number and how they were answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// The HTTP method, such as `POST`.
    pub method: String,
    /// The path alone, without host and query.
    pub path: String,
    /// The HTTP status; `None` if no answer came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The number of these requests.
    pub count: u64,
}

type Noted = Arc<Mutex<Vec<Exchange>>>;

tokio::task_local! {
    static NOTED: Noted;
}

/// The requests noted so far, kept even if the work is dropped on the way.
#[derive(Clone, Debug, Default)]
pub struct HttpLog(Noted);

impl HttpLog {
    /// Runs `work`, noting what it sends and receives.
    pub fn during<F: Future>(&self, work: F) -> impl Future<Output = F::Output> {
        NOTED.scope(self.0.clone(), work)
    }

    /// Takes the requests out, in the order of the first of each kind.
    pub fn take(&self) -> Vec<Exchange> {
        self.0.lock().map_or_else(|_| Vec::new(), |mut noted| std::mem::take(&mut *noted))
    }
}

/// Notes one exchange of the current work. Kinds after the first [`MAX_EXCHANGES`] are counted as one.
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
    async fn what_is_sent_deep_inside_is_noted_outside() {
        note("GET", "/nobody/listens", Some(200));
        let log = HttpLog::default();
        log.during(async {
            note("POST", "/state", Some(200));
            note("POST", "/state", Some(200));
            note("GET", "/single", None);
        })
        .await;
        let told: Vec<_> = log.take().into_iter().map(|e| (e.path, e.status, e.count)).collect();
        assert_eq!(told, [("/state".to_owned(), Some(200), 2), ("/single".to_owned(), None, 1)]);
        assert!(log.take().is_empty());
    }

    #[tokio::test]
    async fn a_thousand_different_ones_are_few_lines() {
        let log = HttpLog::default();
        log.during(async { (0..1000).for_each(|n| note("GET", &format!("/{n}"), Some(200))) }).await;
        let told = log.take();
        assert_eq!((told.len(), told.last().unwrap().count), (MAX_EXCHANGES + 1, 960));
    }
}
