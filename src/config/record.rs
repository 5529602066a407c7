//! `[record]`: the records that are kept of finished threads, and the content of an export.

use std::time::Duration;

use serde::Deserialize;

/// `[record]`: the records that are kept of finished threads, and the content of an export.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The time without any change after which the messages and steps of a finished thread are dropped. Left out:
    /// never.
    #[serde(default, with = "humantime_serde")]
    pub keep: Option<Duration>,
    /// The fate of its record then.
    pub kept: Kept,
    /// Names of fields whose values are hidden in exports.
    pub redact: Vec<String>,
    /// Words that are hidden in exports, with everything that stands beside them; `*` stands for anything.
    pub redact_matching: Vec<String>,
    /// True if people appear in exports as `Person 1` instead of by name.
    pub pseudonyms: bool,
}

/// The fate of a record when the messages of its thread are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    /// The record stays as it is, with what was said in it.
    Whole,
    /// The record stays, but what was said and answered is hidden behind hashes.
    Hashes,
    /// The record is dropped too.
    Nothing,
}
