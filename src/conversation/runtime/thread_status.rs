//! Shows work in progress with Slack's own means: the thread status, and for agent apps also the
//! status of the session.
//!
//! Both are optional. In a workspace without the thread status, an edited message shows the same
//! ([`super::outbox`]). Slack clears the thread status when a message is posted, and after two
//! minutes, before which the engine sets it again. No call here is retried, since the status would
//! be out of date.

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use countersign_core::{cause, ids::ThreadId, reply::CardState};
use countersign_graph::store::Outbound;
use countersign_slack::{agent::SessionStatus, client::SlackClient, client_error::Error};

/// The display of work in progress, as far as Slack supports it.
#[derive(Clone)]
pub struct ThreadStatus(Arc<Inner>);

struct Inner {
    slack: SlackClient,
    /// True if the thread status is used. It is set to false for good when Slack answers that there
    /// is none.
    native: AtomicBool,
    /// True if sessions, with Slack's Stop button, are used. It is set to false for good when Slack
    /// answers that there are none.
    agent: AtomicBool,
    /// The threads with a status that is not known to be cleared.
    shown: Mutex<HashMap<ThreadId, ShownStatus>>,
}

/// The status of a thread.
struct ShownStatus {
    /// The session's status once the thread status is gone.
    after: SessionStatus,
    /// True while the call that sets the status is running.
    is_being_set: bool,
    /// True if the work has ended. The status is then cleared as soon as that call returns.
    ended: bool,
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
    /// Creates the display for a workspace, with the thread status if `native` is true, and with
    /// sessions if the app is an `agent`.
    pub fn new(slack: SlackClient, native: bool, agent: bool) -> Self {
        let (native, agent) = (AtomicBool::new(native), AtomicBool::new(agent));
        Self(Arc::new(Inner { slack, native, agent, shown: Mutex::default() }))
    }

    /// Returns true if Slack shows its own Stop button in a thread with work in progress.
    pub fn has_stop(&self) -> bool {
        self.0.agent.load(Ordering::Relaxed)
    }

    /// Shows the status. Returns false if there is none, so that a message has to show it.
    pub async fn show(&self, thread: &ThreadId, text: &str) -> bool {
        self.set_session(thread, SessionStatus::Processing).await;
        if !self.0.native.load(Ordering::Relaxed) {
            return false;
        }
        let new = || ShownStatus { after: SessionStatus::Active, is_being_set: true, ended: false };
        self.shown().entry(thread.clone()).and_modify(|shown| shown.is_being_set = true).or_insert_with(new);
        let answer = self.0.slack.set_thread_status(&thread.channel, &thread.root, &as_predicate(text)).await;
        // The work may have ended while Slack was being asked. The status would then stay for two minutes.
        let ended = self.shown().get_mut(thread).is_some_and(|shown| {
            shown.is_being_set = false;
            shown.ended
        });
        if ended {
            self.on_work_ended(thread).await;
        }
        match answer {
            Ok(()) => true,
            // No retry: by then there would be another status to show.
            Err(error) if error.is_temporary() => true,
            Err(error) => {
                self.shown().remove(thread);
                if !matches!(error, Error::Gone { .. }) {
                    tracing::info!(
                        error = cause::chain(&error),
                        "This workspace has no thread status; a message shows it instead"
                    );
                    self.0.native.store(false, Ordering::Relaxed);
                }
                false
            }
        }
    }

    /// Updates the status after a stream was started, which shows the work from then on: Slack has cleared the thread
    /// status.
    pub async fn on_stream(&self, thread: &ThreadId) {
        self.shown().remove(thread);
        self.set_session(thread, SessionStatus::Processing).await;
    }

    /// Updates the status after a message was sent: Slack has cleared the thread status, and the
    /// session gets another one.
    pub async fn on_sent(&self, thread: &ThreadId, body: &Outbound) {
        let status = match body {
            // These are not messages in the thread; a redrawn card is sent as a card.
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

    /// Clears the status after the work has ended, unless a message did.
    pub async fn on_work_ended(&self, thread: &ThreadId) {
        let status = match self.shown().entry(thread.clone()) {
            Entry::Vacant(_) => return,
            Entry::Occupied(mut shown) if shown.get().is_being_set => {
                shown.get_mut().ended = true;
                return;
            }
            Entry::Occupied(shown) => shown.remove().after,
        };
        if let Err(error) = self.0.slack.set_thread_status(&thread.channel, &thread.root, "").await {
            tracing::debug!(error = cause::chain(&error), "A thread status was not cleared; it expires");
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
                    error = cause::chain(&error),
                    "This workspace has no agent sessions; cards have a Stop button instead"
                );
                self.0.agent.store(false, Ordering::Relaxed);
            }
            Err(error) => {
                tracing::warn!(error = cause::chain(&error), "The status of an agent session was not set")
            }
        }
    }

    fn shown(&self) -> std::sync::MutexGuard<'_, HashMap<ThreadId, ShownStatus>> {
        self.0.shown.lock().expect("no holder panics")
    }
}

/// Turns a text into a predicate, since Slack puts the app's name before it: “Looking…” becomes “is
/// looking…”.
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
    fn a_status_is_a_predicate() {
        assert_eq!(as_predicate("Looking up experiments…"), "is looking up experiments…");
        assert_eq!(as_predicate("Working…"), "is working…");
        assert_eq!(as_predicate("No answer yet."), "is working: No answer yet.");
        assert_eq!(as_predicate(""), "is working…");
    }
}
