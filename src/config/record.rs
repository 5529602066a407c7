//! `[record]`: the retention of records of finished threads, and the content of an export.

use std::{path::PathBuf, time::Duration};

use secrecy::SecretString;
use serde::Deserialize;
use url::Url;

use super::wrong_address;

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
    /// Where each entry of the record is sent: `stdout`, `file:` and a path, or an address. Left out: nowhere.
    pub stream: Option<Stream>,
    /// The time that sending to an address may take.
    #[serde(with = "humantime_serde")]
    pub stream_timeout: Duration,
    /// `RECORD_STREAM_TOKEN`: the token for the address.
    #[serde(skip)]
    pub stream_token: Option<SecretString>,
}

/// Where each entry of the record is sent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// The end of a file.
    File(PathBuf),
    /// An address that takes JSON Lines by POST.
    Address(String),
}

impl From<String> for Stream {
    fn from(value: String) -> Self {
        match value.strip_prefix("file:") {
            Some(path) => Self::File(PathBuf::from(path)),
            None if value == "stdout" => Self::Stdout,
            None => Self::Address(value),
        }
    }
}

impl Stream {
    /// Describes what is wrong with it, if anything is.
    pub(super) fn problem(&self) -> Option<String> {
        let expected = "expected stdout, file:/a/path, or an address that begins with https://";
        match self {
            Self::Stdout => None,
            Self::File(path) => (!path.is_absolute()).then(|| format!("found `file:{}`; {expected}", path.display())),
            // In plain text only to this machine, such as to an agent that sends it on.
            Self::Address(address) => match Url::parse(address) {
                Ok(url) if url.scheme() == "https" || url.scheme() == "http" && is_local(&url) => {
                    wrong_address(address)
                }
                _ if address.contains('@') => Some(format!("found something else; {expected}")),
                _ => Some(format!("found `{address}`; {expected}")),
            },
        }
    }
}

fn is_local(url: &Url) -> bool {
    matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
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
