//! Faults on purpose, set from a test or over HTTP.
//!
//! A fault of [`Faults::once`] hits one request and is gone; `down`, `slow_ms` and `ends_connections` last until they
//! are taken back. Faults that come after the effect wait for a request that has one, so that a read before the write
//! does not use them up.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Everything that is switched on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Faults {
    /// Faults that each hit the first request they fit, and are gone.
    pub once: Vec<Fault>,
    /// The way in which the server is down, until this is taken back.
    pub down: Option<Down>,
    /// The delay of every answer, in milliseconds.
    pub slow_ms: u64,
    /// True to close the connection after each error although the answer says that it is kept, as version 6.2.6 does:
    /// the next request on it gets no answer and has no effect.
    pub ends_connections: bool,
}

/// The way in which a server is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Down {
    /// Connections are accepted and closed.
    Closed,
    /// Something in front of it answers 503 with a page.
    Unavailable,
}

/// The moment of a fault: before or after the request takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// The request has had no effect, and will have none.
    BeforeEffect,
    /// The change is made; only the answer suffers.
    AfterEffect,
}

/// A fault of one request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The kind of fault.
    pub kind: Kind,
    /// The moment: before or after the effect of the request.
    pub when: When,
    /// A text that `METHOD /path` must contain; `None`: every request.
    #[serde(default)]
    pub only: Option<String>,
}

/// The kinds of faults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The connection closes without an answer.
    Lose,
    /// The request is answered with this status and a page.
    Fail(u16),
    /// The request is answered with this status and JSON.
    Answer {
        /// The HTTP status.
        status: u16,
        /// The body of the answer.
        body: Value,
    },
    /// No answer comes while the server lives.
    Hang,
    /// The answer does not end.
    Flood {
        /// The HTTP status.
        status: u16,
        /// The wait before each 64 kB, in milliseconds.
        pause_ms: u64,
    },
    /// No answer comes while the server lives, and the request takes effect this long after it came. Only before the
    /// effect.
    Late {
        /// The delay, in milliseconds of the server's clock.
        after_ms: u64,
    },
}

impl Faults {
    /// Takes the first fault that fits a request at that moment.
    pub(crate) fn take(&mut self, when: When, method: &str, path: &str) -> Option<Kind> {
        let request = format!("{method} {path}");
        let fits = |fault: &Fault| fault.when == when && fault.only.as_ref().is_none_or(|only| request.contains(only));
        let at = self.once.iter().position(fits)?;
        Some(self.once.remove(at).kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_hits_the_first_request_it_fits_and_is_gone() {
        let only = Some("DELETE /api/experiments".to_owned());
        let mut faults = Faults::default();
        faults.once.push(Fault { kind: Kind::Lose, when: When::AfterEffect, only });
        assert_eq!(faults.take(When::AfterEffect, "POST", "/api/experiments"), None, "another verb");
        assert_eq!(faults.take(When::BeforeEffect, "DELETE", "/api/experiments/1"), None, "too early");
        assert_eq!(faults.take(When::AfterEffect, "DELETE", "/api/experiments/1"), Some(Kind::Lose));
        assert_eq!(faults.take(When::AfterEffect, "DELETE", "/api/experiments/1"), None, "used up");
    }
}
