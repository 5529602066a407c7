//! Formatting shared by several parts of the notebook.

use countersign_core::clock::Timestamp;
use countersign_core::hash;
use serde_json::Value;

/// Returns the SHA-256 hash in hexadecimal.
pub(super) fn sha256(bytes: &[u8]) -> String {
    hex::encode(hash::sha256(bytes))
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

/// Returns a value as text. Strings have no quotation marks.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the sentence with a capitalized first letter.
pub(super) fn capitalized(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
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
