//! Slack's own signs of work in a thread: the thread status, and for agent apps the status of the session.
//!
//! Both are extras. Where the workspace has no thread status, an edited message says the same ([`super::outbox`]);
//! where it does, Slack clears it when a message is posted, and after two minutes, before which the engine sets it
//! again. Nothing here is worth a retry: a status that fails now is out of date later.

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use countersign_core::{ids::ThreadId, reply::CardState};
use countersign_graph::store::Outbound;
use countersign_slack::{agent::SessionStatus, client::SlackClient, client_error::Error};

/// The display of work in progress, where Slack has a place for it.
#[derive(Clone)]
pub struct ThreadStatus(Arc<Inner>);

struct Inner {
    slack: SlackClient,
    /// True if the thread status is used; off for good once Slack has said that there is none.
    native: AtomicBool,
    /// True if there are sessions, and with them Slack's Stop button; off for good once Slack has said that there are
    /// none.
    agent: AtomicBool,
    /// Threads with a status that was not seen to vanish.
    shown: Mutex<HashMap<ThreadId, ShownStatus>>,
}

/// The status of a thread.
struct ShownStatus {
    /// The session's status once the thread status is gone.
    after: SessionStatus,
    /// True while the call that sets it is running.
    on_its_way: bool,
    /// True if the work has ended: the status is cleared as soon as that call returns.
    over: bool,
}

impl fmt::Debug for ThreadStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadStatus")
            .field("native", &self.0.native)
            .field("agent", &self.0.agent)
            .finish_non_exhaustive()
    }
}

impl ThreadStatus {
    /// Creates the display in this workspace: with the thread status if `native`, with sessions if the app is an
    /// `agent`.
    pub fn new(slack: SlackClient, native: bool, agent: bool) -> Self {
        let (native, agent) = (AtomicBool::new(native), AtomicBool::new(agent));
        Self(Arc::new(Inner { slack, native, agent, shown: Mutex::default() }))
    }

    /// Returns true if Slack shows a Stop button of its own in a thread with work in progress.
    pub fn has_stop(&self) -> bool {
        self.0.agent.load(Ordering::Relaxed)
    }

    /// Shows the status. `false`: there is none, and a message has to say it.
    pub async fn show(&self, thread: &ThreadId, text: &str) -> bool {
        self.set_session(thread, SessionStatus::Processing).await;
        if !self.0.native.load(Ordering::Relaxed) {
            return false;
        }
        let new = || ShownStatus { after: SessionStatus::Active, on_its_way: true, over: false };
        self.shown().entry(thread.clone()).and_modify(|shown| shown.on_its_way = true).or_insert_with(new);
        let answer = self.0.slack.set_thread_status(&thread.channel, &thread.root, &as_predicate(text)).await;
        let over = self.shown().get_mut(thread).is_some_and(|shown| {
            shown.on_its_way = false;
            shown.over
        });
        if over {
            self.on_work_ended(thread).await;
        }
        match answer {
            Ok(()) => true,
            // Only the next try may help, and by then there is something else to show.
            Err(error) if error.is_temporary() => true,
            Err(error) => {
                self.shown().remove(thread);
                if !matches!(error, Error::Gone { .. }) {
                    tracing::info!(
                        error = countersign_core::cause::chain(&error),
                        "This workspace has no status under threads; a message says it instead"
                    );
                    self.0.native.store(false, Ordering::Relaxed);
                }
                false
            }
        }
    }

    /// Notes that a message was sent: the status is gone, and the session has another one.
    pub async fn on_sent(&self, thread: &ThreadId, body: &Outbound) {
        let status = match body {
            // Nothing was, or not in the thread; a card that is drawn again is sent as a card.
            Outbound::Status { .. }
            | Outbound::Direct { .. }
            | Outbound::Redraw { .. }
            | Outbound::Elsewhere { .. } => return,
            Outbound::Card { state: CardState::Open { .. }, .. } => SessionStatus::Suspended,
            Outbound::Card { state: CardState::Running { .. }, .. } => SessionStatus::Processing,
            Outbound::Card { .. } | Outbound::Reply { .. } | Outbound::File { .. } | Outbound::Remove => {
                SessionStatus::Active
            }
        };
        if matches!(body, Outbound::Reply { .. } | Outbound::File { .. }) {
            self.shown().remove(thread);
        }
        if let Some(shown) = self.shown().get_mut(thread) {
            shown.after = if status == SessionStatus::Suspended { status } else { SessionStatus::Active };
        }
        self.set_session(thread, status).await;
    }

    /// Notes that the work has ended, and clears the status if no message did.
    pub async fn on_work_ended(&self, thread: &ThreadId) {
        let status = match self.shown().entry(thread.clone()) {
            Entry::Vacant(_) => return,
            Entry::Occupied(mut shown) if shown.get().on_its_way => {
                shown.get_mut().over = true;
                return;
            }
            Entry::Occupied(shown) => shown.remove().after,
        };
        if let Err(error) = self.0.slack.set_thread_status(&thread.channel, &thread.root, "").await {
            tracing::debug!(
                error = countersign_core::cause::chain(&error),
                "A status under a thread was not taken away; it vanishes by itself"
            );
        }
        self.set_session(thread, status).await;
    }

    async fn set_session(&self, thread: &ThreadId, status: SessionStatus) {
        if !self.has_stop() {
            return;
        }
        match self.0.slack.set_session_status(&thread.channel, &thread.root, status).await {
            Ok(()) => {}
            Err(error @ (Error::MissingScope { .. } | Error::Refused { .. })) => {
                tracing::warn!(
                    error = countersign_core::cause::chain(&error),
                    "This workspace has no agent sessions; cards have a Stop button instead"
                );
                self.0.agent.store(false, Ordering::Relaxed);
            }
            Err(error) => {
                tracing::warn!(
                    error = countersign_core::cause::chain(&error),
                    "The status of an agent session was not set"
                )
            }
        }
    }

    fn shown(&self) -> std::sync::MutexGuard<'_, HashMap<ThreadId, ShownStatus>> {
        self.0.shown.lock().expect("no holder panics")
    }
}

/// Turns a text into a predicate, since Slack puts the app's name in front: “Looking…” becomes “is looking…”.
fn as_predicate(text: &str) -> String {
    let first = text.split_whitespace().next().unwrap_or_default();
    let mut letters = text.chars();
    match letters.next() {
        None => "is working…".to_owned(),
        Some(initial) if first.trim_end_matches('…').ends_with("ing") => {
            format!("is {}{}", initial.to_lowercase(), letters.as_str())
        }
        Some(_) => format!("is working: {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_goes_on_after_the_name() {
        assert_eq!(as_predicate("Looking up experiments…"), "is looking up experiments…");
        assert_eq!(as_predicate("Working…"), "is working…");
        assert_eq!(as_predicate("No answer yet."), "is working: No answer yet.");
        assert_eq!(as_predicate(""), "is working…");
    }
}
