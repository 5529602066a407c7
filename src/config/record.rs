//! `[record]`: what is kept of finished threads, and what leaves with an export.

use std::time::Duration;

use serde::Deserialize;

/// `[record]`: what is kept of finished threads, and what leaves with an export.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// After how long without any change the messages and steps of a finished thread are dropped. Left out: never.
    #[serde(default, with = "humantime_serde")]
    pub keep: Option<Duration>,
    /// What becomes of its record then.
    pub kept: Kept,
    /// Names of fields whose values are hidden in exports.
    pub redact: Vec<String>,
    /// Words that are hidden in exports, with everything that stands beside them; `*` stands for anything.
    pub redact_matching: Vec<String>,
    /// Whether people appear in exports as `Person 1` instead of by name.
    pub pseudonyms: bool,
}

/// What becomes of a record when the messages of its thread are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    /// It stays as it is, with what was said in it.
    Whole,
    /// It stays, but what was said and answered is hidden behind hashes.
    Hashes,
    /// It goes too.
    Nothing,
}
