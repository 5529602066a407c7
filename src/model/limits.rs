//! Limits of what models may cost.

use countersign_core::{clock::Timestamp, ids::UserId};
use serde::{Deserialize, Serialize};

/// Who causes a call, for the limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payer {
    /// The person who is answered.
    pub person: Option<UserId>,
    /// What the thread has cost so far, in billionths of a US dollar.
    pub thread_cost: u64,
}

/// A limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// That of one thread.
    Thread,
    /// That of one person on one day.
    Person,
    /// That of everyone on one day.
    Day,
}

impl Limit {
    /// Returns the name of its setting.
    pub fn key(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Person => "person_a_day",
            Self::Day => "day",
        }
    }
}

/// A limit that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// The limit.
    pub limit: Limit,
    /// The time from which on models may be used again; `None` if a limit does not end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}
