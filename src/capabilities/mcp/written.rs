//! Arguments as people write them: `text="two words" color=blue`, a JSON object, or a value alone as the answer to a
//! question.

use countersign_understanding::words::closing;
use serde_json::{Map, Value};

/// The fence of a block of code.
const FENCE: &str = "```";

/// Reads the arguments in a message that calls a tool; the error is the part that cannot be read.
pub(crate) fn arguments(said: &str) -> Result<Map<String, Value>, String> {
    match object_in(said) {
        Some(object) => object,
        None => pairs(arguments_of(said)),
    }
}

/// Reads the JSON object that a message has as its arguments, behind `with`; `None` if it has none.
fn object_in(said: &str) -> Option<Result<Map<String, Value>, String>> {
    let (before, _) = said.split_once('{').filter(|(before, _)| !before.contains('='))?;
    let before_fence = before.trim_end().trim_end_matches("json").trim_end_matches('`').trim_end();
    before_fence.split_whitespace().next_back().filter(|last| ["with", "using"].contains(&&*last.to_lowercase()))?;
    let object = &said[before.len()..];
    let unreadable = || object.chars().take(40).collect::<String>();
    let read = || {
        let (json, after) = whole_json(object)?;
        let is_over = is_over(after.trim_start_matches(|c: char| c == '`' || c.is_whitespace()));
        serde_json::from_str::<Map<String, Value>>(json).ok().filter(|_| is_over)
    };
    Some(read().ok_or_else(unreadable))
}

/// Returns the part of a message with the arguments, which starts at the word before the first `=`.
fn arguments_of(said: &str) -> &str {
    let Some(first) = said.find('=') else {
        return said.rsplit_once(" with ").map_or(said, |(_, rest)| rest).trim();
    };
    let before = said[..first].trim_end();
    let start = before.char_indices().rev().find(|(_, c)| c.is_whitespace()).map_or(0, |(at, c)| at + c.len_utf8());
    &said[start..]
}

/// Returns true if nothing more follows the arguments.
fn is_over(rest: &str) -> bool {
    ["", "please", "please.", "thanks", ".", "!"].contains(&rest.trim())
}

/// Reads `a=1 b="two words", c=3`; the error is the part that cannot be read. `a=null` gives no value.
pub(crate) fn pairs(text: &str) -> Result<Map<String, Value>, String> {
    let mut given = Map::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        rest = rest.strip_prefix("and ").unwrap_or(rest).trim_start_matches([',', ' ']);
        if is_over(rest.trim_matches('`')) {
            break;
        }
        let unreadable = || rest.split_whitespace().next().unwrap_or_default().to_owned();
        let (name, value) = rest.split_once('=').ok_or_else(unreadable)?;
        let name = name.trim().trim_matches('`');
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(unreadable());
        }
        let value = value.trim_start();
        let first = value.chars().next().ok_or_else(unreadable)?;
        let (value, after) = match quotation(value) {
            Some((inside, after)) => (Value::from(inside), after),
            None if matches!(first, '{' | '[') => {
                let (json, after) = whole_json(value).ok_or_else(unreadable)?;
                (Value::from(json), after)
            }
            None => {
                let end = value.find(char::is_whitespace).unwrap_or(value.len());
                let word = value[..end].trim_end_matches(',');
                let word = Some(word.trim_matches('`')).filter(|bare| !bare.is_empty()).unwrap_or(word);
                (if word == "null" { Value::Null } else { Value::from(word) }, &value[end..])
            }
        };
        given.insert(name.to_owned(), value);
        rest = after.trim_start();
    }
    Ok(given)
}

/// Returns the JSON value that a text begins with, and the rest.
fn whole_json(text: &str) -> Option<(&str, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    values.next()?.ok()?;
    Some(text.split_at(values.byte_offset()))
}

/// Returns the text in the quotes at the beginning, which may be empty, and the rest. A backslash before a quote makes it
/// a part of the text, unless there is no end otherwise: `"C:\"` is a path.
fn quotation(text: &str) -> Option<(String, &str)> {
    let first = text.chars().next()?;
    let closing = closing(first)?;
    let inside = &text[first.len_utf8()..];
    let mut escaped = None;
    for (at, quote) in inside.char_indices().filter(|(_, c)| closing.contains(c)) {
        let (said, after) = (&inside[..at], &inside[at + quote.len_utf8()..]);
        // After a closing quote there is no letter or digit.
        let ends_word = after.chars().next().is_none_or(|c| !c.is_alphanumeric());
        let is_escaped = said.ends_with('\\');
        match ends_word {
            true if is_escaped => escaped = escaped.or(Some((said.to_owned(), after))),
            true => return Some((without_escapes(said, first, closing), after)),
            false if is_escaped || matches!(first, '\'' | '‘') => {} // an apostrophe is not a quote
            false => return None,
        }
    }
    escaped
}

/// Returns the text between quotes with the quotes in it as they are meant.
fn without_escapes(said: &str, first: char, closing: &[char]) -> String {
    let quotes = [&[first], closing].concat();
    quotes.into_iter().fold(said.to_owned(), |said, quote| said.replace(&format!("\\{quote}"), &quote.to_string()))
}

/// Returns an answer without the quotes, the backticks or the fence around the whole of it.
pub(crate) fn unwrapped(said: &str) -> String {
    let said = said.trim();
    let fenced = said.strip_prefix(FENCE).and_then(|rest| rest.strip_suffix(FENCE));
    if let Some(code) = fenced.filter(|code| !code.contains(FENCE)) {
        // The first line may name the language.
        let is_language = |line: &str| line.chars().all(|c| c.is_alphanumeric() || "+-#_".contains(c));
        let code = code.split_once('\n').filter(|(first, _)| is_language(first.trim())).map_or(code, |(_, rest)| rest);
        return code.trim_matches(['\n', '\r']).to_owned();
    }
    match quotation(said) {
        Some((inside, after)) if after.trim().is_empty() => inside,
        _ => said.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<Value, String> {
        pairs(text).map(Value::Object)
    }

    #[test]
    fn arguments_are_pairs() {
        assert_eq!(read("a=1 b=\"two words\", c=x"), Ok(json!({ "a": "1", "b": "two words", "c": "x" })));
        assert_eq!(read("text=“smart quotes” and color=blue"), Ok(json!({ "text": "smart quotes", "color": "blue" })));
        assert_eq!(read("where={\"x\": [1, 2]} b=2"), Ok(json!({ "where": "{\"x\": [1, 2]}", "b": "2" })));
        assert_eq!(read("a=null b=\"null\""), Ok(json!({ "a": null, "b": "null" })));
        assert_eq!(read("a=1 or so"), Err("or".to_owned()));
        assert_eq!(read("a="), Err("a=".to_owned()));
        assert_eq!(arguments_of("call add on notes with text = \"x y\" b=1"), "text = \"x y\" b=1");
    }

    #[test]
    fn a_text_in_quotes_may_be_empty_or_contain_quotes() {
        assert_eq!(read(r#"content="" path=a.txt"#), Ok(json!({ "content": "", "path": "a.txt" })));
        assert_eq!(read("content=“” path=''"), Ok(json!({ "content": "", "path": "" })));
        assert_eq!(read(r#"content="say \"hi\" now" b=1"#), Ok(json!({ "content": r#"say "hi" now"#, "b": "1" })));
        assert_eq!(read(r#"path="C:\new\" b=1"#), Ok(json!({ "path": r"C:\new\", "b": "1" })));
        assert_eq!(read("text='don't stop' b=1"), Ok(json!({ "text": "don't stop", "b": "1" })));
        assert_eq!(read("a=\"open"), Ok(json!({ "a": "\"open" })));
    }

    #[test]
    fn backticks_around_names_and_values_are_no_part_of_them() {
        assert_eq!(read("`path`=`a b` `head`=3"), Ok(json!({ "path": "a b", "head": "3" })));
        assert_eq!(read("`path=/tmp/x head=3`"), Ok(json!({ "path": "/tmp/x", "head": "3" })));
    }

    #[test]
    fn all_arguments_may_be_one_json_object() {
        let all = |said: &str| arguments(said).map(Value::Object);
        let wanted = Ok(json!({ "path": "a=b", "edits": [{ "old": "{" }] }));
        let object = r#"{"path": "a=b", "edits": [{"old": "{"}]}"#;
        assert_eq!(all(&format!("call edit on files with {object}")), wanted);
        assert_eq!(all(&format!("call edit on files with\n```json\n{object}\n```")), wanted);
        assert_eq!(all(&format!("call edit on files with `{object}` please")), wanted);
        assert_eq!(all("call edit on files with {\"path\": }"), Err("{\"path\": }".to_owned()));
        assert_eq!(all("call edit on files with {\"a\": 1} or so"), Err("{\"a\": 1} or so".to_owned()));
        let pair = Ok(json!({ "where": "{\"x\": 1}" }));
        assert_eq!(all("call edit on files with where={\"x\": 1}"), pair);
    }

    #[test]
    fn an_answer_loses_one_pair_of_marks_around_it() {
        let same = ["note: buy milk", "{\"a\": 1}", "\"a\" and \"b\"", "feature/x-1", "one\ntwo"];
        for said in same {
            assert_eq!(unwrapped(said), said);
        }
        assert_eq!(unwrapped(" \"note: “x”\" "), "note: “x”");
        assert_eq!(unwrapped("`feature/x-1`"), "feature/x-1");
        assert_eq!(unwrapped("\"\""), "");
        assert_eq!(unwrapped("```json\n{\"a\":\n1}\n```"), "{\"a\":\n1}");
        assert_eq!(unwrapped("```\n  one\ntwo\n```"), "  one\ntwo");
        assert_eq!(unwrapped("```echo hi```"), "echo hi");
    }
}
