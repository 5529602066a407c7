//! The shapes of what programs send: one table describes, checks and documents each.

use countersign_graph::digest::Digest;
use serde::{
    Deserialize, Serialize,
    de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value, json};

/// The largest integer that all programs read in the same way.
const MAX_INTEGER: u64 = (1 << 53) - 1;

/// The largest payload in its canonical form, in bytes.
const MAX_PAYLOAD: usize = 32 << 10;

/// The deepest payload.
const MAX_DEPTH: usize = 16;

/// A member of an object.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// The name.
    pub name: &'static str,
    /// True if it must be there.
    pub required: bool,
    /// The values that it may have.
    pub kind: Kind,
    /// The meaning, for the documentation.
    pub what: &'static str,
}

/// The kinds of values.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A text of at least and at most so many characters.
    Text(usize, usize),
    /// The same, on one line.
    Line(usize, usize),
    /// A text of lowercase letters, digits, `_`, `.` and `-`.
    Word(usize),
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// An integer.
    Integer,
    /// True or false.
    Flag,
    /// An address that begins with `https://`.
    Https,
    /// What is to be approved: an object that all programs read in the same way.
    Payload,
    /// An object.
    Object(&'static [Member]),
    /// At most so many objects.
    List(usize, &'static [Member]),
    /// Pairs of texts: at most so many, with names and values of at most so many characters.
    Pairs(usize, usize, usize),
}

/// Returns a member of an object.
pub(crate) const fn member(name: &'static str, required: bool, kind: Kind, what: &'static str) -> Member {
    Member { name, required, kind, what }
}

/// A fault of a value: its place as a JSON pointer, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The place.
    pub pointer: String,
    /// What is wrong, as a sentence.
    pub detail: String,
}

/// Checks the members of an object, and adds the faults. Members that the table does not have are faults.
pub fn check(value: &Value, members: &[Member], at: &str, faults: &mut Vec<Fault>) {
    let mut wrong = |pointer: String, detail: String| faults.push(Fault { pointer, detail });
    let Some(object) = value.as_object() else {
        return wrong(at.to_owned(), "Expected an object.".to_owned());
    };
    for name in object.keys().filter(|name| !members.iter().any(|member| member.name == **name)) {
        let known: Vec<_> = members.iter().map(|member| member.name).collect();
        wrong(place(at, name), format!("There is no such member. Known are {}.", known.join(", ")));
    }
    for Member { name, required, kind, .. } in members {
        match object.get(*name).filter(|value| !value.is_null()) {
            Some(value) => kind.check(value, &place(at, name), faults),
            None if *required => {
                faults.push(Fault { pointer: place(at, name), detail: "This is required.".to_owned() });
            }
            None => {}
        }
    }
}

fn place(at: &str, name: &str) -> String {
    format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"))
}

impl Kind {
    fn check(&self, value: &Value, at: &str, faults: &mut Vec<Fault>) {
        let wrong = match self {
            Self::Text(least, most) => value.as_str().is_none_or(|text| !is_long(text, *least, *most)),
            Self::Line(least, most) => {
                let is_line = |text: &str| is_long(text, *least, *most) && !text.contains(is_line_break);
                value.as_str().is_none_or(|text| !is_line(text) || (*least > 0 && text.trim().is_empty()))
            }
            Self::Word(most) => {
                let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_.-".contains(&b);
                value.as_str().is_none_or(|text| !is_long(text, 1, *most) || !text.bytes().all(is_plain))
            }
            Self::OneOf(words) => value.as_str().is_none_or(|text| !words.contains(&text)),
            Self::Integer => value.as_u64().is_none_or(|number| number > MAX_INTEGER),
            Self::Flag => !value.is_boolean(),
            Self::Https => value.as_str().is_none_or(|text| {
                let is_web = |url: &url::Url| url.scheme() == "https" && url.has_host() && url.username().is_empty();
                text.len() > 2000 || !url::Url::parse(text).is_ok_and(|url| is_web(&url))
            }),
            Self::Payload => {
                if let Some(detail) = wrong_payload(value) {
                    faults.push(Fault { pointer: at.to_owned(), detail });
                }
                false
            }
            Self::Object(members) => {
                check(value, members, at, faults);
                false
            }
            Self::List(most, members) => match value.as_array() {
                Some(items) if items.len() <= *most => {
                    for (nth, item) in items.iter().enumerate() {
                        check(item, members, &format!("{at}/{nth}"), faults);
                    }
                    false
                }
                _ => true,
            },
            Self::Pairs(most, name, text) => value.as_object().is_none_or(|pairs| {
                let fits = |(key, value): (&String, &Value)| {
                    is_long(key, 1, *name) && value.as_str().is_some_and(|value| is_long(value, 0, *text))
                };
                pairs.len() > *most || !pairs.iter().all(fits)
            }),
        };
        if wrong {
            faults.push(Fault { pointer: at.to_owned(), detail: format!("Expected {}.", self.in_words()) });
        }
    }

    fn in_words(&self) -> String {
        match self {
            Self::Text(0, most) => format!("a text of at most {most} characters"),
            Self::Text(least, most) => format!("a text of {least} to {most} characters"),
            Self::Line(least, most) => format!("one line of {least} to {most} characters"),
            Self::Word(most) => format!("1 to {most} lowercase letters, digits, _, . and -"),
            Self::OneOf(words) => words.join(" or "),
            Self::Integer => "a whole number".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Https => "an address that begins with https://".to_owned(),
            Self::Payload | Self::Object(_) => "an object".to_owned(),
            Self::List(most, _) => format!("a list of at most {most} objects"),
            Self::Pairs(most, name, text) => {
                format!("at most {most} pairs of texts, with names up to {name} and values up to {text} characters")
            }
        }
    }

    /// Returns the JSON schema.
    pub fn schema(&self) -> Value {
        match self {
            Self::Text(least, most) => json!({ "type": "string", "minLength": least, "maxLength": most }),
            Self::Line(least, most) => {
                json!({ "type": "string", "minLength": least, "maxLength": most, "pattern": "^[^\\r\\n]*$" })
            }
            Self::Word(most) => json!({ "type": "string", "pattern": format!("^[a-z0-9_.-]{{1,{most}}}$") }),
            Self::OneOf(words) => json!({ "type": "string", "enum": words }),
            Self::Integer => json!({ "type": "integer", "minimum": 0, "maximum": MAX_INTEGER }),
            Self::Flag => json!({ "type": "boolean" }),
            Self::Https => json!({ "type": "string", "format": "uri", "pattern": "^https://" }),
            Self::Payload => json!({ "type": "object" }),
            Self::Object(members) => schema(members),
            Self::List(most, members) => json!({ "type": "array", "maxItems": most, "items": schema(members) }),
            Self::Pairs(most, _, text) => json!({ "type": "object", "maxProperties": most,
                "additionalProperties": { "type": "string", "maxLength": text } }),
        }
    }
}

/// Returns the JSON schema of an object.
pub fn schema(members: &[Member]) -> Value {
    let one = |member: &Member| {
        let mut schema = member.kind.schema();
        schema["description"] = json!(member.what);
        (member.name.to_owned(), schema)
    };
    let required: Vec<_> = members.iter().filter(|member| member.required).map(|member| member.name).collect();
    let properties: Map<String, Value> = members.iter().map(one).collect();
    json!({ "type": "object", "additionalProperties": false, "required": required, "properties": properties })
}

fn is_long(text: &str, least: usize, most: usize) -> bool {
    (least..=most).contains(&text.chars().count())
}

fn is_line_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Describes what is wrong with a payload.
pub fn wrong_payload(payload: &Value) -> Option<String> {
    if !payload.is_object() {
        return Some("Expected an object.".to_owned());
    }
    if !are_safe(payload) {
        let right = "Numbers must be whole and within ±9007199254740991. Write decimals and larger numbers as texts.";
        return Some(right.to_owned());
    }
    if depth(payload) > MAX_DEPTH {
        return Some(format!("It is nested too deeply: at most {MAX_DEPTH} levels."));
    }
    let bytes = Digest::canonical_text(payload).map_or(usize::MAX, |text| text.len());
    (bytes > MAX_PAYLOAD).then(|| format!("It is too large: at most {MAX_PAYLOAD} bytes in canonical form."))
}

fn are_safe(value: &Value) -> bool {
    match value {
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => number <= MAX_INTEGER,
            (None, Some(number)) => number.unsigned_abs() <= MAX_INTEGER,
            (None, None) => false,
        },
        Value::Array(items) => items.iter().all(are_safe),
        Value::Object(members) => members.values().all(are_safe),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

/// Parses JSON in which each name occurs once in its object.
///
/// # Errors
///
/// If it is something else. The error says where.
pub fn parse(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice::<Unique>(bytes).map(|unique| unique.0)
}

struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor).map(Self)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Unique(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let Unique(value) = members.next_value()?;
            if object.contains_key(&name) {
                return Err(A::Error::custom(format!("the name `{name}` occurs twice in one object")));
            }
            object.insert(name, value);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_that_programs_may_read_differently_is_refused() {
        let right = parse(br#"{"a":[1,-2,true,null,"\u00e9"],"b":{"a":1}}"#).unwrap();
        assert_eq!(right, json!({ "a": [1, -2, true, null, "é"], "b": { "a": 1 } }));
        for wrong in [r#"{"a":1,"a":2}"#, r#"{"a":{"b":1,"b":1}}"#, r#"{"a":"\ud800"}"#, "{", "{} {}", ""] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
        let wrong = ["1.0", "1e2", "-0", "9007199254740992", "-9007199254740992", "1e400"];
        for number in wrong {
            let payload = parse(format!(r#"{{"x":{number}}}"#).as_bytes());
            assert!(payload.is_err() || wrong_payload(&payload.unwrap()).is_some(), "{number}");
        }
        assert_eq!(wrong_payload(&json!({ "x": 9_007_199_254_740_991_i64 })), None);
        assert!(wrong_payload(&json!({ "x": "y".repeat(MAX_PAYLOAD) })).is_some());
        let nested = (0..16).fold(json!(1), |inner, _| json!({ "a": inner }));
        assert_eq!(wrong_payload(&nested), None);
        assert!(wrong_payload(&json!({ "a": nested })).is_some());
    }
}
