//! Injected faults of Slack and the network.
//!
//! A fault is queued until the next matching call or delivery.

use std::time::Duration;

use serde::Serialize;

/// A fault.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum Fault {
    /// From now on everything is delivered twice, or once again.
    DeliverTwice {
        /// True to switch this on.
        on: bool,
    },
    /// The next events are held back and delivered in reverse order.
    Reorder {
        /// The number of events.
        events: usize,
    },
    /// From now on interactions have no team, as in some organisations, or have one again.
    TeamNull {
        /// True to switch this on.
        on: bool,
    },
    /// From now on deliveries have the id of another app or workspace, or the right ones again.
    Foreign {
        /// The id of the app, in `api_app_id`.
        app: Option<String>,
        /// The id of the workspace, in `team_id`, `team.id` and related fields.
        team: Option<String>,
    },
    /// The next `apps.connections.open` is never answered.
    HangOpen,
    /// The next socket opens, but nothing is sent on it.
    HangHello,
    /// Sockets are asked to disconnect.
    Disconnect {
        /// `warning`, `refresh_requested`, `link_disabled` or `too_many_websockets`.
        reason: String,
        /// The number of envelopes to send after the frame on the same socket. With 0, the frame is
        /// sent at once; otherwise just before the first of these envelopes.
        queued: usize,
    },
    /// All sockets break without a close frame.
    DropSockets,
    /// The next calls are answered with status 429.
    RateLimit {
        /// The method; `*` means any method.
        method: String,
        /// The number of calls.
        calls: u32,
        /// The `Retry-After` header, in seconds.
        retry_after: u64,
    },
    /// The next calls take effect, but their answers are lost.
    LoseAnswer {
        /// The method.
        method: String,
        /// The number of calls.
        calls: u32,
        /// The kind of loss.
        how: Loss,
    },
    /// The next calls have no effect and no answer.
    LoseRequest {
        /// The method.
        method: String,
        /// The number of calls.
        calls: u32,
        /// The kind of loss.
        how: Loss,
    },
    /// The next calls are refused.
    Fail {
        /// The method.
        method: String,
        /// The error, such as `fatal_error`.
        error: String,
        /// The number of calls.
        calls: u32,
    },
    /// The next calls with blocks are refused. The same text without blocks is accepted.
    RefuseBlocks {
        /// The method.
        method: String,
        /// The number of calls.
        calls: u32,
    },
    /// The next calls do not reach Slack: a proxy answers with an HTML page or a redirect.
    Page {
        /// The method.
        method: String,
        /// The status, such as 403 or 302.
        status: u16,
        /// The number of calls.
        calls: u32,
    },
    /// The next calls get no answer, and take effect after the app has timed out.
    ArriveLate {
        /// The method.
        method: String,
        /// The delay, in milliseconds.
        delay_ms: u64,
        /// The number of calls.
        calls: u32,
    },
    /// The next calls are delayed.
    Slow {
        /// The method.
        method: String,
        /// The delay, in milliseconds.
        delay_ms: u64,
        /// The number of calls.
        calls: u32,
    },
    /// The next calls take effect, and the bodies of their answers do not end.
    Flood {
        /// The method, `response_url` for answers to such an address, or `url_private` for the content of a file.
        method: String,
        /// The HTTP status.
        status: u16,
        /// The pause before each 64 KiB, in milliseconds.
        pause_ms: u64,
        /// The number of calls.
        calls: u32,
    },
    /// A fault applies only to the next calls that contain a text.
    Only {
        /// The text, anywhere in the call.
        containing: String,
        /// The fault.
        then: Box<Fault>,
    },
    /// From now on uploads are sent to another address.
    UploadsTo {
        /// The address.
        url: String,
    },
    /// From now on the bot token is refused, or accepted again.
    RefuseToken {
        /// The error, such as `token_revoked`; `None` to accept the token.
        error: Option<String>,
    },
    /// Removes all faults.
    Clear,
}

/// The way in which an answer is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// The connection is closed.
    #[default]
    Closed,
    /// No answer ever comes.
    TimedOut,
}

/// The faults of one call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CallFaults {
    pub(super) delay: Duration,
    pub(super) retry_after: Option<u64>,
    pub(super) error: Option<String>,
    pub(super) request_lost: Option<Loss>,
    pub(super) answer_lost: Option<Loss>,
    /// The status, and the pause before each chunk.
    pub(super) flood: Option<(u16, Duration)>,
    pub(super) blocks_refused: bool,
    pub(super) page: Option<u16>,
    pub(super) late: Option<Duration>,
}

/// The queued faults.
#[derive(Debug, Default)]
pub(super) struct Faults {
    pub(super) deliver_twice: bool,
    pub(super) team_null: bool,
    pub(super) foreign_app: Option<String>,
    pub(super) foreign_team: Option<String>,
    pub(super) reorder: usize,
    pub(super) hang_open: u32,
    pub(super) hang_hello: u32,
    pub(super) uploads_to: Option<String>,
    pub(super) token_refused: Option<String>,
    calls: Vec<Fault>,
}

impl Faults {
    /// Adds a fault. Those for open sockets are ignored, since `socket` handles them.
    pub(super) fn add(&mut self, fault: Fault) {
        match fault {
            Fault::DeliverTwice { on } => self.deliver_twice = on,
            Fault::Reorder { events } => self.reorder = events,
            Fault::TeamNull { on } => self.team_null = on,
            Fault::UploadsTo { url } => self.uploads_to = Some(url),
            Fault::RefuseToken { error } => self.token_refused = error,
            Fault::Foreign { app, team } => (self.foreign_app, self.foreign_team) = (app, team),
            Fault::HangOpen => self.hang_open += 1,
            Fault::HangHello => self.hang_hello += 1,
            Fault::Clear => *self = Self::default(),
            Fault::Disconnect { .. } | Fault::DropSockets => {}
            Fault::Only { .. }
            | Fault::RateLimit { .. }
            | Fault::LoseAnswer { .. }
            | Fault::LoseRequest { .. }
            | Fault::Fail { .. }
            | Fault::Flood { .. }
            | Fault::RefuseBlocks { .. }
            | Fault::Page { .. }
            | Fault::ArriveLate { .. }
            | Fault::Slow { .. } => self.calls.push(fault),
        }
    }

    /// Returns the faults for a call of `method` with this body, and counts them as used.
    pub(super) fn take(&mut self, method: &str, body: &str) -> CallFaults {
        let mut trouble = CallFaults::default();
        self.calls.retain_mut(|fault| {
            let fault = match fault {
                Fault::Only { containing, .. } if !body.contains(containing.as_str()) => return true,
                Fault::Only { then, .. } => &mut **then,
                fault => fault,
            };
            let (of, left) = match fault {
                Fault::RateLimit { method, calls, .. }
                | Fault::LoseAnswer { method, calls, .. }
                | Fault::LoseRequest { method, calls, .. }
                | Fault::Fail { method, calls, .. }
                | Fault::Flood { method, calls, .. }
                | Fault::RefuseBlocks { method, calls }
                | Fault::Page { method, calls, .. }
                | Fault::ArriveLate { method, calls, .. }
                | Fault::Slow { method, calls, .. } => (method.clone(), calls),
                _ => return false,
            };
            if of != method && of != "*" {
                return true;
            }
            *left = left.saturating_sub(1);
            let more = *left > 0;
            match fault {
                Fault::RateLimit { retry_after, .. } => trouble.retry_after = Some(*retry_after),
                Fault::LoseAnswer { how, .. } => trouble.answer_lost = Some(*how),
                Fault::LoseRequest { how, .. } => trouble.request_lost = Some(*how),
                Fault::Flood { status, pause_ms, .. } => {
                    trouble.flood = Some((*status, Duration::from_millis(*pause_ms)));
                }
                Fault::Fail { error, .. } => trouble.error = Some(error.clone()),
                Fault::RefuseBlocks { .. } => trouble.blocks_refused = true,
                Fault::Page { status, .. } => trouble.page = Some(*status),
                Fault::ArriveLate { delay_ms, .. } => trouble.late = Some(Duration::from_millis(*delay_ms)),
                Fault::Slow { delay_ms, .. } => trouble.delay = Duration::from_millis(*delay_ms),
                _ => {}
            }
            more
        });
        trouble
    }

    /// Returns and uses up an endless answer for calls to `of`, which is an address other than a
    /// method.
    pub(super) fn take_flood(&mut self, of: &str) -> Option<(u16, Duration)> {
        let is_flood = |fault: &Fault| matches!(fault, Fault::Flood { method, .. } if method == of);
        self.calls.iter().any(is_flood).then(|| self.take(of, "").flood).flatten()
    }

    /// Decrements the number of queued faults. Returns true if there was one.
    pub(super) fn take_one(count: &mut u32) -> bool {
        let is_queued = *count > 0;
        *count = count.saturating_sub(1);
        is_queued
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_waits_for_its_method_and_is_used_up() {
        let mut faults = Faults::default();
        faults.add(Fault::RateLimit { method: "chat.update".to_owned(), calls: 2, retry_after: 7 });
        faults.add(Fault::LoseAnswer { method: "chat.postMessage".to_owned(), calls: 1, how: Loss::Closed });
        assert_eq!(faults.take("auth.test", ""), CallFaults::default());
        assert_eq!(faults.take("chat.update", "").retry_after, Some(7));
        assert_eq!(faults.take("chat.update", "").retry_after, Some(7));
        assert_eq!(faults.take("chat.update", ""), CallFaults::default());
        assert_eq!(faults.take("chat.postMessage", "").answer_lost, Some(Loss::Closed));
        assert_eq!(faults.take("chat.postMessage", ""), CallFaults::default());
    }

    #[test]
    fn a_fault_can_be_limited_to_calls_with_a_text() {
        let mut faults = Faults::default();
        let page = Fault::Page { method: "chat.postMessage".to_owned(), status: 403, calls: 1 };
        faults.add(Fault::Only { containing: "Start".to_owned(), then: Box::new(page) });
        assert_eq!(faults.take("chat.postMessage", "Stop"), CallFaults::default());
        assert_eq!(faults.take("chat.postMessage", "Start it").page, Some(403));
        assert_eq!(faults.take("chat.postMessage", "Start it"), CallFaults::default());
    }
}
