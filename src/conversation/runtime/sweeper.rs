//! Regularly looks for work of which no hint arrived: due timers, status lines, and work that a
//! crash left behind.
//!
//! Work that is found here is handled in the same way as work with a hint, so a lost hint only
//! causes a delay.
//!
//! The checks are independent: if one panics, this is logged and counted, the others continue, and
//! the check is repeated in the next round. Ending the process would not help, since the cause of
//! the panic would remain after a restart. [`Rounds`] reports it.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex},
    time::Duration,
};

use countersign_core::{
    cause,
    clock::{Clock, Timestamp},
};
use countersign_graph::{
    action::Status,
    store::{ActionFilter, Backlog, Store, Waiting},
};
use futures_util::FutureExt as _;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::{inbox::Inbox, outbox::Sender, workers::Workers};
use crate::{record::retention::Retention, surfaces::home::Home};

/// The number of rounds between two deletions of expired data.
const HOUSEKEEPING_ROUNDS: u32 = 240;

/// The number of rounds between two counts of undelivered messages and unhandled entries.
const COUNTING_ROUNDS: u32 = 60;

/// The maximum number of dead letters that are counted.
const MAX_COUNTED: usize = 1000;

/// The time without a finished round after which the sweeper counts as faulty.
const MAX_ROUND_TIME: Duration = Duration::from_secs(30);

/// The health of the rounds, for readiness.
#[derive(Clone, Debug)]
pub struct Rounds(Arc<Mutex<Round>>);

#[derive(Debug)]
struct Round {
    ended: Instant,
    broken: Vec<&'static str>,
}

impl Default for Rounds {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Round { ended: Instant::now(), broken: Vec::new() })))
    }
}

impl Rounds {
    /// Returns the fault of the rounds, if there is one.
    pub fn fault(&self) -> Option<String> {
        let round = self.0.lock().expect("no holder panics");
        let silent = round.ended.elapsed();
        match (silent > MAX_ROUND_TIME, round.broken.as_slice()) {
            (true, _) => Some(format!("the sweeper hasn't finished a pass for {} s", silent.as_secs())),
            (false, []) => None,
            (false, broken) => Some(format!("the sweeper panics while it looks at {}", broken.join(", "))),
        }
    }

    fn record(&self, broken: Vec<&'static str>) {
        *self.0.lock().expect("no holder panics") = Round { ended: Instant::now(), broken };
    }
}

/// The sweeper, with its dependencies.
pub struct Sweeper {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The workers that advance threads.
    pub workers: Workers,
    /// The inbox that handles entries.
    pub inbox: Inbox,
    /// The Home tabs that are kept up to date.
    pub home: Home,
    /// The sender of messages.
    pub sender: Sender,
    /// The service that deletes the content of finished threads.
    pub retention: Retention,
    /// The interval between rounds.
    pub every: Duration,
    /// The health of the rounds, which the sweeper reports.
    pub rounds: Rounds,
}

impl Sweeper {
    /// Sweeps until the signal to stop.
    pub async fn run(self, stop: CancellationToken) {
        let mut ticks = interval(self.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut round = 0u32;
        let mut busy_since = None;
        while stop.run_until_cancelled(ticks.tick()).await.is_some() {
            let mut broken = self.sweep_all().await;
            if round.is_multiple_of(HOUSEKEEPING_ROUNDS) {
                let dropped = guarded("expired data", self.drop_outdated()).await;
                broken.extend(dropped.err());
            }
            if round.is_multiple_of(COUNTING_ROUNDS) {
                broken.extend(guarded("dead letters", self.count_dead_letters()).await.err());
                broken.extend(guarded("late messages", self.count_late_messages()).await.err());
                broken.extend(guarded("open cards", self.count_open_cards()).await.err());
                broken.extend(guarded("the inbox", self.measure_inbox(&mut busy_since)).await.err());
            }
            self.rounds.record(broken);
            round = round.wrapping_add(1);
        }
    }

    async fn drop_outdated(&self) {
        if let Err(error) = self.store.sweep(self.clock.now()).await {
            tracing::warn!(error = cause::chain(&error), "Cannot delete expired data");
        }
        if let Err(error) = self.retention.sweep().await {
            tracing::warn!(error = cause::chain(&error), "Cannot delete the content of finished threads");
        }
    }

    async fn count_dead_letters(&self) {
        match self.store.dead_letters(MAX_COUNTED).await {
            Ok(letters) => {
                let entries = letters.iter().filter(|letter| letter.thread.is_none()).count();
                let messages = letters.len() - entries;
                metrics::gauge!("countersign_dead_letters", "kind" => "message").set(messages as f64);
                metrics::gauge!("countersign_dead_letters", "kind" => "desk_entry").set(entries as f64);
            }
            Err(error) => {
                tracing::warn!(error = cause::chain(&error), "Cannot count undelivered messages")
            }
        }
    }

    async fn count_late_messages(&self) {
        let now = self.clock.now();
        match self.store.waiting(now, MAX_COUNTED).await {
            Ok(waiting) => {
                let late = waiting.iter().filter(|message| message.since < Waiting::late_before(now)).count();
                metrics::gauge!("countersign_messages_late").set(late as f64);
                let oldest = waiting.iter().map(|message| now.since(message.since)).max().unwrap_or_default();
                metrics::gauge!("countersign_outbox_oldest_seconds").set(oldest.as_secs_f64());
            }
            Err(error) => {
                tracing::warn!(error = cause::chain(&error), "Cannot count late messages")
            }
        }
    }

    async fn count_open_cards(&self) {
        let open = ActionFilter::all(&[Status::Pending], MAX_COUNTED);
        match self.store.actions(&open).await {
            Ok(open) => metrics::gauge!("countersign_cards_open").set(open.len() as f64),
            Err(error) => tracing::warn!(error = cause::chain(&error), "Cannot count open cards"),
        }
    }

    /// Measures the inbox. Its entries have no time, so the time since it was last seen empty stands for their age.
    async fn measure_inbox(&self, busy_since: &mut Option<Timestamp>) {
        match self.store.backlog().await {
            Ok(Backlog { inbox, .. }) => {
                let now = self.clock.now();
                let since = (inbox > 0).then(|| *busy_since.get_or_insert(now));
                *busy_since = since;
                metrics::gauge!("countersign_inbox_entries").set(inbox as f64);
                let busy = since.map(|since| now.since(since)).unwrap_or_default();
                metrics::gauge!("countersign_inbox_busy_seconds").set(busy.as_secs_f64());
            }
            Err(error) => tracing::warn!(error = cause::chain(&error), "Cannot measure the inbox"),
        }
    }

    /// Runs all checks once, except those for which nothing is due. Returns the names of those that
    /// panicked.
    async fn sweep_all(&self) -> Vec<&'static str> {
        let mut results = vec![guarded("Home tabs", async { self.home.refresh() }).await];
        // If the store isn't answering, the checks say so.
        if self.store.is_anything_due(self.clock.now()).await.unwrap_or(true) {
            results.extend([
                guarded("due timers", self.fire_timers()).await,
                guarded("the inbox", self.sweep_the_inbox()).await,
                guarded("ready threads", self.workers.sweep()).await,
                guarded("outgoing messages", self.sender.sweep()).await,
            ]);
        }
        results.into_iter().filter_map(Result::err).collect()
    }

    async fn fire_timers(&self) {
        if let Err(error) = self.store.fire_timers(self.clock.now()).await {
            tracing::warn!(error = cause::chain(&error), "Cannot look for due timers");
        }
    }

    async fn sweep_the_inbox(&self) {
        if let Err(error) = self.inbox.sweep().await {
            tracing::warn!(error = cause::chain(&error), "Cannot sweep the inbox");
        }
    }
}

/// Runs one check. Returns its name as the error if it panics.
async fn guarded(what: &'static str, check: impl Future<Output = ()>) -> Result<(), &'static str> {
    AssertUnwindSafe(check).catch_unwind().await.map_err(|_| {
        tracing::error!(what, "A check of the sweeper panicked; the panic was logged where it happened");
        what
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_look_that_panics_is_told_and_the_others_go_on() {
        assert_eq!(guarded("the inbox", async {}).await, Ok(()));
        let broken = guarded("due timers", async { panic!("out of time") }).await;
        assert_eq!(broken, Err("due timers"));

        let rounds = Rounds::default();
        assert_eq!(rounds.fault(), None);
        rounds.record(vec!["due timers"]);
        assert_eq!(rounds.fault().unwrap(), "the sweeper panics while it looks at due timers");
        rounds.record(Vec::new());
        assert_eq!(rounds.fault(), None);
        tokio::time::advance(MAX_ROUND_TIME + Duration::from_secs(1)).await;
        assert_eq!(rounds.fault().unwrap(), "the sweeper hasn't finished a pass for 31 s");
    }
}
