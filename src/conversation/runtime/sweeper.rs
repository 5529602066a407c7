//! Looks regularly for what nobody announced: due timers, status lines, and what a crash left behind.
//!
//! Everything found here goes the same way as everything announced, so a lost announcement costs time and nothing else.
//!
//! Each look is for itself: one that panics is logged, counted and tried again in the next round, and the others go on.
//! Ending the process would not help, since what one look cannot bear is still there after a restart. [`Rounds`] tells.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex},
    time::Duration,
};

use countersign_core::clock::Clock;
use countersign_graph::store::{Store, Waiting};
use futures_util::FutureExt as _;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::{inbox::Inbox, outbox::Sender, workers::Workers};
use crate::{record::retention::Retention, surfaces::home::Home};

/// How often what is kept for a time only is dropped, in rounds.
const HOUSEKEEPING_ROUNDS: u32 = 240;

/// How often undelivered messages and unhandled entries are counted, in rounds.
const COUNTING_ROUNDS: u32 = 20;

/// The most dead letters that are counted.
const COUNTED: usize = 1000;

/// How long no round may end before something is wrong.
const LONGEST_ROUND: Duration = Duration::from_secs(30);

/// How the rounds go, for readiness.
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
    /// What is wrong with them, if something is.
    pub fn wrong(&self) -> Option<String> {
        let round = self.0.lock().expect("no holder panics");
        let silent = round.ended.elapsed();
        match (silent > LONGEST_ROUND, round.broken.as_slice()) {
            (true, _) => Some(format!("no round of the sweeper has ended for {} s", silent.as_secs())),
            (false, []) => None,
            (false, broken) => Some(format!("the sweeper panics while it looks at {}", broken.join(", "))),
        }
    }

    fn ended(&self, broken: Vec<&'static str>) {
        *self.0.lock().expect("no holder panics") = Round { ended: Instant::now(), broken };
    }
}

/// What is swept.
pub struct Sweeper {
    /// Where everything is.
    pub store: Arc<dyn Store>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Goes on with threads.
    pub workers: Workers,
    /// Handles entries.
    pub inbox: Inbox,
    /// Keeps Home tabs up to date.
    pub home: Home,
    /// Sends messages.
    pub sender: Sender,
    /// Drops what was said in finished threads.
    pub retention: Retention,
    /// How often.
    pub every: Duration,
    /// Where it tells how its rounds go.
    pub rounds: Rounds,
}

impl Sweeper {
    /// Sweeps until the stop.
    pub async fn run(self, stop: CancellationToken) {
        let mut ticks = interval(self.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut round = 0u32;
        while stop.run_until_cancelled(ticks.tick()).await.is_some() {
            let mut broken = self.once().await;
            if round.is_multiple_of(HOUSEKEEPING_ROUNDS) {
                let dropped = look("what is out of date", self.drop_what_is_out_of_date()).await;
                broken.extend(dropped.err());
            }
            if round.is_multiple_of(COUNTING_ROUNDS) {
                broken.extend(look("dead letters", self.count_dead_letters()).await.err());
                broken.extend(look("messages that wait", self.count_what_waits()).await.err());
            }
            self.rounds.ended(broken);
            round = round.wrapping_add(1);
        }
    }

    async fn drop_what_is_out_of_date(&self) {
        if let Err(error) = self.store.sweep(self.clock.now()).await {
            tracing::warn!(error = countersign_core::cause::chain(&error), "Cannot drop what is out of date");
        }
        if let Err(error) = self.retention.sweep().await {
            tracing::warn!(error = countersign_core::cause::chain(&error), "Cannot forget finished threads");
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
            Err(error) => {
                tracing::warn!(
                    error = countersign_core::cause::chain(&error),
                    "Cannot count what could not be delivered"
                )
            }
        }
    }

    async fn count_what_waits(&self) {
        match self.store.waiting(Waiting::late_before(self.clock.now()), COUNTED).await {
            Ok(waiting) => metrics::gauge!("countersign_messages_late").set(waiting.len() as f64),
            Err(error) => {
                tracing::warn!(error = countersign_core::cause::chain(&error), "Cannot count what waits to be sent")
            }
        }
    }

    /// One look at everything; what could not be looked at.
    async fn once(&self) -> Vec<&'static str> {
        let looks = [
            look("due timers", self.fire_timers()).await,
            look("the inbox", self.sweep_the_inbox()).await,
            look("ready threads", self.workers.sweep()).await,
            look("outgoing messages", self.sender.sweep()).await,
            look("Home tabs", async { self.home.look() }).await,
        ];
        looks.into_iter().filter_map(Result::err).collect()
    }

    async fn fire_timers(&self) {
        if let Err(error) = self.store.fire_timers(self.clock.now()).await {
            tracing::warn!(error = countersign_core::cause::chain(&error), "Cannot look for due timers");
        }
    }

    async fn sweep_the_inbox(&self) {
        if let Err(error) = self.inbox.sweep().await {
            tracing::warn!(error = countersign_core::cause::chain(&error), "Cannot look at the inbox");
        }
    }
}

/// Looks at something; its name, if that panics.
async fn look(what: &'static str, at: impl Future<Output = ()>) -> Result<(), &'static str> {
    AssertUnwindSafe(at).catch_unwind().await.map_err(|_| {
        tracing::error!(what, "The sweeper cannot look at this; the panic was logged where it happened");
        what
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_look_that_panics_is_told_and_the_others_go_on() {
        assert_eq!(look("the inbox", async {}).await, Ok(()));
        let broken = look("due timers", async { panic!("out of time") }).await;
        assert_eq!(broken, Err("due timers"));

        let rounds = Rounds::default();
        assert_eq!(rounds.wrong(), None);
        rounds.ended(vec!["due timers"]);
        assert_eq!(rounds.wrong().unwrap(), "the sweeper panics while it looks at due timers");
        rounds.ended(Vec::new());
        assert_eq!(rounds.wrong(), None);
        tokio::time::advance(LONGEST_ROUND + Duration::from_secs(1)).await;
        assert_eq!(rounds.wrong().unwrap(), "no round of the sweeper has ended for 31 s");
    }
}
