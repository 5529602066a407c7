//! Parses the answer to a question for a whole number: `3`, `ten`, `at most 3`, `up to 5 starts and
//! stops`.

use serde_json::Value;

/// Words that may surround the number without changing it.
const FILLERS: &[&str] = &[
    "at",
    "most",
    "up",
    "to",
    "no",
    "not",
    "more",
    "than",
    "a",
    "the",
    "maximum",
    "max",
    "of",
    "say",
    "only",
    "just",
    "exactly",
    "maybe",
    "about",
    "make",
    "it",
    "in",
    "all",
    "total",
    "please",
    "users",
    "user",
    "simulated",
    "people",
    "students",
    "starts",
    "stops",
    "start",
    "stop",
    "and",
    "or",
    "times",
    "time",
    "groups",
    "altogether",
    "i",
    "think",
    "would",
    "be",
];

/// The numbers that are recognised as words.
const NUMBER_WORDS: &[(&str, i64)] = &[
    ("zero", 0),
    ("none", 0),
    ("one", 1),
    ("once", 1),
    ("two", 2),
    ("twice", 2),
    ("three", 3),
    ("four", 4),
    ("five", 5),
    ("six", 6),
    ("seven", 7),
    ("eight", 8),
    ("nine", 9),
    ("ten", 10),
    ("eleven", 11),
    ("twelve", 12),
    ("dozen", 12),
    ("fifteen", 15),
    ("twenty", 20),
    ("thirty", 30),
    ("forty", 40),
    ("fifty", 50),
    ("hundred", 100),
    ("thousand", 1000),
];

/// Returns true if the schema of a parameter allows nothing but a whole number or null.
pub(super) fn is_count(schema: &Value) -> bool {
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    kinds.contains(&"integer") && kinds.iter().all(|kind| ["integer", "null"].contains(kind))
}

/// Returns the whole number in the text if there is one, with nothing but fillers around it.
pub(super) fn count(text: &str) -> Option<i64> {
    let text = text.to_lowercase();
    let words = text.split(|c: char| c.is_whitespace() || c == ',' && !text.contains(|c: char| c.is_ascii_digit()));
    let mut found = None;
    for word in
        words.map(|word| word.trim_matches(['.', ',', '!', '“', '”', '"', '\'', '*'])).filter(|word| !word.is_empty())
    {
        let number = word
            .replace([',', '_'], "")
            .parse()
            .ok()
            .or_else(|| NUMBER_WORDS.iter().find(|(name, _)| *name == word).map(|(_, number)| *number));
        match number {
            Some(number) if found.is_none() => found = Some(number),
            None if FILLERS.contains(&word) => {}
            _ => return None,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_is_read_and_nothing_is_guessed() {
        for (text, number) in [
            ("3", Some(3)),
            ("ten", Some(10)),
            ("at most 3", Some(3)),
            ("up to 5", Some(5)),
            ("up to 5 starts and stops, please", Some(5)),
            ("a maximum of 200 simulated users", Some(200)),
            ("1,000", Some(1000)),
            ("-5", Some(-5)),
            ("twice", Some(2)),
            ("as many as needed", None),
            ("5 or 6", None),
            ("3 days", None),
            ("2.5", None),
            ("", None),
        ] {
            assert_eq!(count(text), number, "{text}");
        }
    }
}
