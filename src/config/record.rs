//! `[record]`: the retention of records of finished threads, and the content of an export.

use std::time::Duration;

use serde::Deserialize;

/// `[record]`: the retention of records of finished threads, and the content of an export.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The time without any change after which the messages and steps of a finished thread are dropped. Left out:
    /// never.
    #[serde(default, with = "humantime_serde")]
    pub keep: Option<Duration>,
    /// The treatment of its record at that time.
    pub kept: Kept,
    /// The names of fields whose values are hidden in exports.
    pub redact: Vec<String>,
    /// Patterns of words, in which `*` matches any text. A value that contains a matching word is hidden in exports.
    pub redact_matching: Vec<String>,
    /// True if people appear in exports as `Person 1` instead of by name.
    pub pseudonyms: bool,
}

/// The treatment of a record when the messages of its thread are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    /// The record is kept unchanged, including the text of messages.
    Whole,
    /// The record is kept, but the text of messages and answers is replaced by hashes.
    Hashes,
    /// The record is dropped, too.
    Nothing,
}
