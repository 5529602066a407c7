//! Stored data that cannot be read by this program, or by any.

use countersign_core::clock::Timestamp;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::error::Category;

use super::{Error, StepRecord};
use crate::action::ActionRecord;

/// A stored entry that could not be read. The entry itself is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The place of the entry: the thread or the partition, and its position or name.
    pub place: String,
    /// The reason, without any of the contents.
    pub why: String,
    /// The time at which the entry was found to be unreadable.
    pub since: Timestamp,
}

/// Describes a parse error without any of the contents, which may be words of people.
pub fn why_unreadable(error: &serde_json::Error) -> String {
    let at = format!("at line {}, column {}", error.line(), error.column());
    match error.classify() {
        Category::Data => format!("it has a shape that this version does not know, {at}"),
        Category::Syntax => format!("it is not JSON, {at}"),
        Category::Eof => format!("it ends too early, {at}"),
        Category::Io => "it cannot be read".to_owned(),
    }
}

/// A stored record that contains the version of its format.
pub trait Versioned: DeserializeOwned {
    /// Returns the version.
    fn format(&self) -> u32;
}

impl Versioned for ActionRecord {
    fn format(&self) -> u32 {
        self.format
    }
}

impl Versioned for StepRecord {
    fn format(&self) -> u32 {
        self.format
    }
}

/// Reads a stored record that contains the version of its format; `known` is the newest version
/// that can be read.
///
/// # Errors
///
/// [`Error::Newer`] if the record is of a later version, [`Error::Corrupt`] if it cannot be read.
pub fn read_versioned<T: Versioned>(what: &str, stored: &[u8], known: u32) -> Result<T, Error> {
    #[derive(Deserialize)]
    struct OnlyVersion {
        format: u32,
    }
    let read = serde_json::from_slice::<T>(stored);
    // A record of a later version may have any shape, but always its version.
    let found = match &read {
        Ok(record) => Some(record.format()),
        Err(_) => serde_json::from_slice::<OnlyVersion>(stored).ok().map(|version| version.format),
    };
    match found.filter(|found| *found > known) {
        Some(found) => Err(Error::Newer { what: what.to_owned(), found, known }),
        None => read.map_err(|error| Error::Corrupt { what: format!("{what}: {}", why_unreadable(&error)) }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::store::ThreadMessage;

    #[test]
    fn the_reason_contains_nothing_of_the_contents() {
        for text in [r#"{"kind":"said","by":["secret"]}"#, r#"{"kind":"secret"}"#, "secret", r#"{"kind":"secret"#] {
            let error = serde_json::from_str::<ThreadMessage>(text).unwrap_err();
            assert!(!why_unreadable(&error).contains("secret"), "{text}: {}", why_unreadable(&error));
        }
    }

    #[test]
    fn a_newer_format_is_refused_even_if_it_could_be_read() {
        let known = json!({ "run": "r", "node": "n", "delta": [], "next": "end", "at": 1, "duration_ms": 1 });
        let step = |format: u32| {
            let mut step = known.clone();
            step["format"] = json!(format);
            step
        };
        let read = |stored: Value| read_versioned::<StepRecord>("a step", stored.to_string().as_bytes(), 1);
        for newer in [step(7), json!({ "format": 7, "run": ["another shape"] })] {
            let newer = read(newer).unwrap_err();
            assert!(matches!(newer, Error::Newer { found: 7, known: 1, .. }), "{newer}");
        }
        assert!(read(step(1)).is_ok());
        assert!(matches!(read(json!({ "format": 1 })), Err(Error::Corrupt { .. })));
    }
}
