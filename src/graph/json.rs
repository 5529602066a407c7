//! JSON that is kept as text: it is written and stored as it is, and no tree of values is made of it.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

/// A JSON text. Copies share it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Arc<RawValue>);

impl Json {
    /// Writes data as JSON.
    ///
    /// # Panics
    ///
    /// If the data cannot be written as JSON, such as a map whose keys are not texts. No stored data is of that kind.
    pub fn of<T: Serialize + ?Sized>(data: &T) -> Self {
        Self(serde_json::value::to_raw_value(data).expect("stored data is plain data with text keys").into())
    }

    /// Returns JSON `null`.
    pub fn null() -> Self {
        Self::of(&())
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// Reads the data.
    ///
    /// # Errors
    ///
    /// If the text is of another kind of data.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.text())
    }

    /// Returns the tree of values that the text stands for.
    pub fn value(&self) -> Value {
        self.read().expect("a JSON text can be read as values")
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// Two texts are equal if their values are, whatever the order of the members.
impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text() || self.value() == other.value()
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self::of(&value)
    }
}

/// Returns the members of an object, each with its name in quotes and its value. The text must be that of an object,
/// without spaces, as the library writes it.
pub(crate) fn members(object: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = contents(object);
    std::iter::from_fn(move || {
        let name = take_value(&mut rest)?;
        rest = rest.strip_prefix(':').expect("a colon follows a name");
        let value = take_value(&mut rest).expect("a value follows a colon");
        rest = rest.strip_prefix(',').unwrap_or(rest);
        Some((name, value))
    })
}

/// Returns the elements of a list. The text must be that of a list, without spaces, as the library writes it.
pub(crate) fn elements(list: &str) -> impl Iterator<Item = &str> {
    let mut rest = contents(list);
    std::iter::from_fn(move || {
        let element = take_value(&mut rest)?;
        rest = rest.strip_prefix(',').unwrap_or(rest);
        Some(element)
    })
}

/// Returns the text between the brackets.
fn contents(text: &str) -> &str {
    &text[1..text.len() - 1]
}

/// Takes the first value of a text.
fn take_value<'t>(text: &mut &'t str) -> Option<&'t str> {
    if text.is_empty() {
        return None;
    }
    let (value, rest) = text.split_at(end_of_value(text.as_bytes()));
    *text = rest;
    Some(value)
}

/// Returns the position after the first value of a text.
fn end_of_value(text: &[u8]) -> usize {
    match text[0] {
        b'"' => end_of_string(text, 0),
        b'{' | b'[' => {
            let (mut depth, mut at) = (0, 0);
            loop {
                match text[at] {
                    b'"' => {
                        at = end_of_string(text, at);
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => depth -= 1,
                    _ => {}
                }
                at += 1;
                if depth == 0 {
                    return at;
                }
            }
        }
        _ => text.iter().position(|byte| matches!(byte, b',' | b':' | b'}' | b']')).unwrap_or(text.len()),
    }
}

/// Returns the position after the string that begins at `at`.
fn end_of_string(text: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    loop {
        match text[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_is_taken_apart_into_its_parts() {
        let value = json!({
            "a": "quoted \" and \\", "b\"": [1, "]", { "c": null }], "": {}, "d": true, "e": -1.5e300, "f": [],
        });
        let text = value.to_string();
        let found: serde_json::Map<_, _> = members(&text)
            .map(|(name, value)| (serde_json::from_str(name).unwrap(), serde_json::from_str(value).unwrap()))
            .collect();
        assert_eq!(Value::Object(found), value);
        assert_eq!(elements(r#"[1,"]",{"c":null},[]]"#).collect::<Vec<_>>(), ["1", r#""]""#, r#"{"c":null}"#, "[]"]);
        assert_eq!((elements("[]").count(), members("{}").count()), (0, 0));
    }

    #[test]
    fn the_order_of_members_makes_no_difference() {
        let [one, two, other] = [r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, r#"{"a":2,"b":1}"#]
            .map(|text| serde_json::from_str::<Json>(text).unwrap());
        assert_eq!(one, two);
        assert_ne!(one, other);
    }

    #[test]
    fn a_text_within_data_is_written_as_it_is_and_read_from_values() {
        let json = Json::of(&json!({ "b": 1, "a": [2.5] }));
        assert_eq!(serde_json::to_string(&[&json]).unwrap(), format!("[{}]", json.text()));
        let read: Vec<Json> = serde_json::from_value(json!([{ "b": 1, "a": [2.5] }])).unwrap();
        assert_eq!(read, [json]);
    }
}
