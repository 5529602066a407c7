//! The state of mail for operators: in `/readyz` and `/metrics`.

use std::{sync::Arc, time::Duration};

use countersign_core::clock::{Clock, Timestamp};
use countersign_team_inbox::mail_list::{MailList, Overview};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::report::MailMetrics;

/// The time limit for reading the state.
const LIMIT: Duration = Duration::from_secs(2);

/// The state of mail. Like that of the platforms, it never makes the bot unready.
#[derive(Clone)]
pub(crate) struct MailProbe {
    book: Arc<dyn MailList>,
    metrics: MailMetrics,
    clock: Arc<dyn Clock>,
    sync_every: Duration,
}

impl MailProbe {
    /// Creates a probe of the mails in this book, which are fetched every `sync_every`.
    pub(crate) fn new(
        book: Arc<dyn MailList>,
        metrics: MailMetrics,
        clock: Arc<dyn Clock>,
        sync_every: Duration,
    ) -> Self {
        Self { book, metrics, clock, sync_every }
    }

    /// Returns the state for `/readyz`: `ok`, which is false if mail was not fetched in time; `what`; and the number of
    /// waiting mails.
    pub(crate) async fn report(&self) -> Value {
        match timeout(LIMIT, self.book.overview()).await {
            Ok(Ok(overview)) => shown(&overview, self.clock.now(), self.sync_every),
            Ok(Err(error)) => json!({ "ok": false, "what": error.to_string() }),
            Err(_) => json!({ "ok": false, "what": "the store didn't answer in time" }),
        }
    }

    /// Sets the metrics of mail.
    pub(crate) async fn refresh_metrics(&self) {
        self.metrics.refresh().await;
        let Ok(Ok(overview)) = timeout(LIMIT, self.book.overview()).await else { return };
        metrics::gauge!("countersign_mails_waiting").set(overview.waiting as f64);
        if let Some(synced) = overview.last_sync {
            metrics::gauge!("countersign_mail_sync_age_seconds").set(self.clock.now().since(synced).as_secs_f64());
        }
    }
}

fn shown(overview: &Overview, now: Timestamp, sync_every: Duration) -> Value {
    let age = overview.last_sync.map(|synced| now.since(synced));
    // One late check is no fault: it may take long, or the process may have just started.
    let is_late = age.is_none_or(|age| age > 3 * sync_every + Duration::from_secs(60));
    let synced = match age {
        Some(age) => format!("fetched {} s ago", age.as_secs()),
        None => "not fetched yet".to_owned(),
    };
    let (is_ok, what) = match (&overview.paused, &overview.fault) {
        (Some(_), _) => (true, format!("paused, {synced}")),
        (None, Some(fault)) => (false, format!("{fault}; {synced}")),
        (None, None) => (!is_late, synced),
    };
    json!({ "ok": is_ok, "what": what, "waiting": overview.waiting, "in_progress": overview.in_progress })
}

#[cfg(test)]
mod tests {
    use countersign_core::ids::UserId;
    use countersign_team_inbox::mail_list::Pause;

    use super::*;

    fn overview(last_sync: Option<Timestamp>, fault: Option<&str>) -> Overview {
        Overview {
            account: "support@example.com".to_owned(),
            last_sync,
            fault: fault.map(str::to_owned),
            paused: None,
            waiting: 2,
            oldest_waiting: None,
            in_progress: 1,
            is_automatic: false,
            automatic_today: 0,
            automatic_a_day: 50,
        }
    }

    #[test]
    fn a_late_or_failed_check_is_a_fault_and_a_pause_is_not() {
        let (now, minute) = (Timestamp(1_000_000_000), Duration::from_secs(60));
        let seen = |overview: &Overview| {
            let shown = shown(overview, now, minute);
            (shown["ok"] == true, shown["what"].as_str().unwrap().to_owned())
        };
        let at = |seconds: i64| Some(Timestamp(now.millis() - seconds * 1000));
        assert_eq!(seen(&overview(at(60), None)), (true, "fetched 60 s ago".to_owned()));
        assert_eq!(seen(&overview(at(600), None)), (false, "fetched 600 s ago".to_owned()));
        assert_eq!(seen(&overview(None, None)), (false, "not fetched yet".to_owned()));
        let refused = overview(at(600), Some("the sign-in was refused"));
        assert_eq!(seen(&refused), (false, "the sign-in was refused; fetched 600 s ago".to_owned()));
        let paused = Overview { paused: Some(Pause { by: UserId::from("U1"), at: None }), ..overview(at(600), None) };
        assert_eq!(seen(&paused), (true, "paused, fetched 600 s ago".to_owned()));
    }
}
