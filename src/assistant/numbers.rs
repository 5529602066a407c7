//! Numbers where an action takes one: `3`, `ten`, `at most 3`, `up to 5 starts and stops`.

use serde_json::Value;

/// The words that may stand around a number.
const AROUND: &[&str] = &[
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
const WORDS: &[(&str, i64)] = &[
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

/// Returns true if a parameter with this schema is a whole number and nothing else.
pub(super) fn is_count(schema: &Value) -> bool {
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    kinds.contains(&"integer") && kinds.iter().all(|kind| ["integer", "null"].contains(kind))
}

/// Returns the one whole number in the text, if there is nothing else in it.
pub(super) fn count(said: &str) -> Option<i64> {
    let said = said.to_lowercase();
    let words = said.split(|c: char| c.is_whitespace() || c == ',' && !said.contains(|c: char| c.is_ascii_digit()));
    let mut found = None;
    for word in
        words.map(|word| word.trim_matches(['.', ',', '!', '“', '”', '"', '\'', '*'])).filter(|word| !word.is_empty())
    {
        let number = word
            .replace([',', '_'], "")
            .parse()
            .ok()
            .or_else(|| WORDS.iter().find(|(name, _)| *name == word).map(|(_, number)| *number));
        match number {
            Some(number) if found.is_none() => found = Some(number),
            None if AROUND.contains(&word) => {}
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
        for (said, number) in [
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
            assert_eq!(count(said), number, "{said}");
        }
    }
}
