//! Looks regularly for what nobody announced: due timers, status lines, and what a crash left behind.
//!
//! Everything found here goes the same way as everything announced, so a lost announcement costs time and nothing else.

use std::{sync::Arc, time::Duration};

use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::{desk::Desk, home::Home, notebook::retention::Retention, outbox::Sender, workers::Workers};
use crate::{clock::Clock, graph::store::Store};

/// How often what is kept for a time only is dropped, in rounds.
const HOUSEKEEPING_ROUNDS: u32 = 240;

/// How often undelivered messages and unhandled entries are counted, in rounds.
const COUNTING_ROUNDS: u32 = 20;

/// The most dead letters that are counted.
const COUNTED: usize = 1000;

/// What is swept.
pub struct Sweeper {
    /// Where everything is.
    pub store: Arc<dyn Store>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Goes on with threads.
    pub workers: Workers,
    /// Handles entries.
    pub desk: Desk,
    /// Keeps Home tabs up to date.
    pub home: Home,
    /// Sends messages.
    pub sender: Sender,
    /// Drops what was said in finished threads.
    pub retention: Retention,
    /// How often.
    pub every: Duration,
}

impl Sweeper {
    /// Sweeps until the stop.
    pub async fn run(self, stop: CancellationToken) {
        let mut ticks = interval(self.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut round = 0u32;
        while stop.run_until_cancelled(ticks.tick()).await.is_some() {
            self.once().await;
            if round.is_multiple_of(HOUSEKEEPING_ROUNDS) {
                self.drop_what_is_out_of_date().await;
            }
            if round.is_multiple_of(COUNTING_ROUNDS) {
                self.count_dead_letters().await;
            }
            round = round.wrapping_add(1);
        }
    }

    async fn drop_what_is_out_of_date(&self) {
        if let Err(error) = self.store.sweep(self.clock.now()).await {
            tracing::warn!(error = %error, "Cannot drop what is out of date");
        }
        if let Err(error) = self.retention.sweep().await {
            tracing::warn!(error = %error, "Cannot forget finished threads");
        }
    }

    async fn count_dead_letters(&self) {
        match self.store.dead_letters(COUNTED).await {
            Ok(letters) => {
                let entries = letters.iter().filter(|letter| letter.thread.is_none()).count();
                let messages = letters.len() - entries;
                metrics::gauge!("countersign_dead_letters", "kind" => "message").set(messages as f64);
                metrics::gauge!("countersign_dead_letters", "kind" => "desk_entry").set(entries as f64);
            }
            Err(error) => tracing::warn!(error = %error, "Cannot count what could not be delivered"),
        }
    }

    /// One look at everything.
    pub async fn once(&self) {
        if let Err(error) = self.store.fire_timers(self.clock.now()).await {
            tracing::warn!(error = %error, "Cannot look for due timers");
        }
        if let Err(error) = self.desk.sweep().await {
            tracing::warn!(error = %error, "Cannot look at the desk");
        }
        self.workers.sweep().await;
        self.sender.sweep().await;
        self.home.look();
    }
}
