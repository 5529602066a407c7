//! “Or” between two values of a change, such as `class 5B or 6A`: the person is asked which of them is meant.

use serde_json::{Map, Value};

use crate::{
    situation::Situation,
    user_request::{Interpretation, UserRequest},
    words::{Word, words_with},
};

/// The parameters whose values may be joined by “or” although all of them are meant: each user gets one or the other.
const ALTERNATIVES: &[&str] = &["conditions", "factors"];

/// Returns the interpretation, unless it is a change with two values of a list between which the message says “or”.
pub(crate) fn asked(found: Interpretation, situation: &Situation) -> Interpretation {
    let (UserRequest::Change { params, .. } | UserRequest::Update(params)) = &found.user_request else { return found };
    let words = words_with(&situation.said, &situation.names);
    let values = (1..words.len()).find_map(|at| {
        let (before, after) = (&words[..at], &words[at..]);
        after[0].is("or").then(|| between(params, before, &after[1..])).flatten()
    });
    let Some((first, second)) = values else { return found };
    Interpretation::unclear("Do you mean both, or only one of them?", requests(&situation.said, &first, &second))
}

/// Returns the words of the two values between which “or” stands, as typed: the end of the first and the beginning of the
/// second, if both are in the same list.
fn between(params: &Map<String, Value>, before: &[Word], after: &[Word]) -> Option<(String, String)> {
    let first = &before.last()?.text;
    let lists = params.iter().filter(|(key, _)| !ALTERNATIVES.contains(&key.as_str()));
    lists.flat_map(|(_, value)| arrays(value)).find_map(|list| {
        let items: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
        let ends_with = |item: &&&str, word: &str| {
            let rest = item.strip_suffix(word);
            rest.is_some_and(|rest| !rest.ends_with(char::is_alphanumeric))
        };
        let one = items.iter().find(|item| ends_with(item, first))?;
        // `5B or 6A`, `class 5B or class 6A`
        (1..=after.len().min(2)).find_map(|length| {
            let last = &after[length - 1].text;
            let other = items.iter().any(|item| item != one && ends_with(&item, last));
            let second: Vec<&str> = after[..length].iter().map(|word| word.text.as_str()).collect();
            other.then(|| (first.clone(), second.join(" ")))
        })
    })
}

/// Returns the lists in a value, also those of its members.
fn arrays(value: &Value) -> Vec<&Vec<Value>> {
    match value {
        Value::Array(list) => vec![list],
        Value::Object(members) => members.values().flat_map(arrays).collect(),
        _ => Vec::new(),
    }
}

/// Returns the message with both values, and with each of them alone. There are none if it is written in another way.
fn requests(said: &str, first: &str, second: &str) -> Vec<String> {
    let joined = format!("{first} or {second}");
    let Some(at) = said.find(&joined) else { return Vec::new() };
    let (before, after) = (&said[..at], &said[at + joined.len()..]);
    // `class 5B or class 6A`: the second value has a word for its kind of its own.
    let kind = second.split_once(' ').map_or("", |(kind, _)| kind);
    let before_second = before.trim_end().strip_suffix(kind).filter(|_| !kind.is_empty()).unwrap_or(before);
    vec![
        format!("{before}{first} and {second}{after}"),
        format!("{before}{first}{after}"),
        format!("{before_second}{second}{after}"),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn options(said: &str, params: Value) -> Vec<String> {
        let Value::Object(params) = params else { panic!("an object") };
        let situation = Situation { said: said.to_owned(), ..Situation::default() };
        match asked(UserRequest::change("update", params).into(), &situation).user_request {
            UserRequest::Unclear { options, .. } => options,
            _ => Vec::new(),
        }
    }

    #[test]
    fn or_between_two_values_is_asked_about() {
        assert_eq!(
            options("include class 5B or 6A in “A”", json!({ "add": ["class 5B", "class 6A"] })),
            ["include class 5B and 6A in “A”", "include class 5B in “A”", "include class 6A in “A”"]
        );
        assert_eq!(
            options("leave out class 5B or class 6A", json!({ "leave": ["class 5B", "class 6A"] })),
            ["leave out class 5B and class 6A", "leave out class 5B", "leave out class 6A"]
        );
        assert_eq!(options("exclude u1 or u2, please", json!({ "add": ["u1", "u2"] })).len(), 3);
        assert_eq!(
            options("enroll kim with class 5B or 6A", json!({ "groups": { "classId": ["5B", "6A"] } })).len(),
            3
        );
        assert!(options("exclude u1 and u2", json!({ "add": ["u1", "u2"] })).is_empty());
        assert!(options("with conditions a or b", json!({ "conditions": ["a", "b"] })).is_empty());
        assert!(options("describe it as one or two", json!({ "description": "one or two" })).is_empty());
        assert!(options("end it after 10 users or 2 groups", json!({ "users": 10, "groups": 2 })).is_empty());
        assert!(options("or", json!({ "add": ["u1", "u2"] })).is_empty());
    }
}
