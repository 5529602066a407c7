//! Formatting shared by several parts of the notebook.

use countersign_core::clock::Timestamp;
use countersign_core::hash;
use countersign_graph::store::{AuditDraft, AuditEntry, ChainFault};

/// Returns the SHA-256 hash in hexadecimal.
pub(super) fn sha256(bytes: &[u8]) -> String {
    hex::encode(hash::sha256(bytes))
}

/// Returns the fault of an entry, and the correct content.
pub(super) fn broken(entry: &AuditEntry, wrong: &ChainFault) -> (String, String) {
    match wrong {
        ChainFault::Link { expected } => (
            format!("it says that it follows the entry with hash {}", shown(&entry.previous)),
            format!("the entry before it has hash {}", shown(expected)),
        ),
        ChainFault::Hash { expected: Some(expected) } => {
            (format!("it says that its hash is {}", shown(&entry.hash)), format!("its content has hash {expected}"))
        }
        ChainFault::Hash { expected: None } if entry.sealed.is_none() => {
            ("its salt is missing or damaged".to_owned(), "16 bytes in hexadecimal, in lower case".to_owned())
        }
        ChainFault::Hash { expected: None } => (
            "what is hidden of it and what is shown do not fit together".to_owned(),
            "every value has either a salt or a commitment, in hexadecimal".to_owned(),
        ),
        ChainFault::Format { found } => (
            format!("its hash is of version {found}, which this program does not know"),
            format!("version {}, or a program that knows {found}", AuditDraft::FORMAT),
        ),
    }
}

fn shown(hash: &str) -> &str {
    if hash.is_empty() { "(none: it is the first)" } else { hash }
}

/// Formats the date as `2026-11-21`, in UTC.
pub(super) fn day(at: Timestamp) -> String {
    in_utc(at, "%Y-%m-%d")
}

/// Formats the time as `17:02:09`, in UTC.
pub(super) fn time(at: Timestamp) -> String {
    in_utc(at, "%H:%M:%S")
}

fn in_utc(at: Timestamp, format: &str) -> String {
    match jiff::Timestamp::from_millisecond(at.millis()) {
        Ok(moment) => moment.strftime(format).to_string(),
        Err(_) => at.to_string(),
    }
}

/// Escapes text for one line of Markdown, so that nothing in it is markup.
pub(super) fn inline(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (n, word) in text.split_whitespace().enumerate() {
        if n > 0 {
            out.push(' ');
        }
        for c in word.chars() {
            if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' | '!' | '&') {
                out.push('\\');
            }
            out.push(c);
        }
    }
    out
}

/// Returns text as a quotation, line by line.
pub(super) fn quote(text: &str) -> String {
    let lines = text.trim().lines().map(|line| format!("> {}", inline(line)).trim_end().to_owned() + "  ");
    let mut quoted = lines.collect::<Vec<_>>().join("\n");
    quoted.truncate(quoted.trim_end().len());
    if quoted.is_empty() { "> (nothing)".to_owned() } else { quoted }
}

/// Joins names as in a sentence, such as `Ann, Bo and Cy`.
pub(super) fn listed(names: &[String]) -> String {
    match names {
        [] => "nobody".to_owned(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        assert_eq!(inline("# a <b>\n| [c](d) `e` *f*"), r"\# a \<b\> \| \[c\](d) \`e\` \*f\*");
        assert_eq!(quote("one\n\n# two"), "> one  \n>  \n> \\# two");
        assert_eq!(quote(" "), "> (nothing)");
    }

    #[test]
    fn times_are_in_utc() {
        let at = Timestamp(1_767_225_661_500);
        assert_eq!((day(at), time(at)), ("2026-01-01".to_owned(), "00:01:01".to_owned()));
    }
}
