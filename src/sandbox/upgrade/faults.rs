//! Injected faults, set by a test or over HTTP.
//!
//! A fault in [`Faults::once`] applies to one request and is then removed; `down`, `slow_ms` and
//! `ends_connections` stay until they are reset. A fault after the effect applies to the next
//! request with an effect, so that a read before the write does not use it up.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// All active faults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Faults {
    /// Faults that each apply to the first matching request, and are then removed.
    pub once: Vec<Fault>,
    /// The way in which the server is down; `None` if it is up.
    pub down: Option<Down>,
    /// The delay of every answer, in milliseconds.
    pub slow_ms: u64,
    /// True to close the connection after each error although the answer says that it is kept open,
    /// as version 6.2.6 does. The next request on it gets no answer and has no effect.
    pub ends_connections: bool,
}

/// The way in which a server is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Down {
    /// Connections are accepted and closed.
    Closed,
    /// A proxy in front of the server answers with status 503 and an HTML page.
    Unavailable,
}

/// The moment of a fault: before or after the request takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// The fault replaces the effect.
    BeforeEffect,
    /// The request takes effect, and only its answer is affected.
    AfterEffect,
}

/// A fault in the handling of one request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The kind of fault.
    pub kind: Kind,
    /// The moment: before or after the effect of the request.
    pub when: When,
    /// A text that `METHOD /path ` must contain, where a blank at the end ends the path; `None` matches every request.
    #[serde(default)]
    pub only: Option<String>,
}

/// The kinds of faults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The connection closes without an answer.
    Lose,
    /// The request is answered with this status and an HTML page.
    Fail(u16),
    /// The request is answered with this status and JSON.
    Answer {
        /// The HTTP status.
        status: u16,
        /// The body of the answer.
        body: Value,
    },
    /// There is no answer before the server stops.
    Hang,
    /// The body of the answer does not end.
    Flood {
        /// The HTTP status.
        status: u16,
        /// The pause before each 64 KiB, in milliseconds.
        pause_ms: u64,
    },
    /// There is no answer before the server stops, and the request takes effect after this delay.
    /// Only valid with [`When::BeforeEffect`].
    Late {
        /// The delay, in milliseconds of the server's clock.
        after_ms: u64,
    },
}

impl Faults {
    /// Removes and returns the first fault that applies to a request at that moment.
    pub(crate) fn take(&mut self, when: When, method: &str, path: &str) -> Option<Kind> {
        let request = format!("{method} {path} ");
        let applies =
            |fault: &Fault| fault.when == when && fault.only.as_ref().is_none_or(|only| request.contains(only));
        let at = self.once.iter().position(applies)?;
        Some(self.once.remove(at).kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_applies_once_to_the_first_request_it_fits() {
        let only = Some("DELETE /api/experiments".to_owned());
        let mut faults = Faults::default();
        faults.once.push(Fault { kind: Kind::Lose, when: When::AfterEffect, only });
        assert_eq!(faults.take(When::AfterEffect, "POST", "/api/experiments"), None, "another verb");
        assert_eq!(faults.take(When::BeforeEffect, "DELETE", "/api/experiments/1"), None, "too early");
        assert_eq!(faults.take(When::AfterEffect, "DELETE", "/api/experiments/1"), Some(Kind::Lose));
        assert_eq!(faults.take(When::AfterEffect, "DELETE", "/api/experiments/1"), None, "used up");
    }
}
