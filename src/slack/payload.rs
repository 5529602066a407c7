//! The payload of an interaction.

use std::fmt;

use serde::{
    Deserializer,
    de::{self, DeserializeSeed, MapAccess, Visitor},
};
use serde_json::{Map, Value, value::RawValue};

/// The payload of an interaction. The blocks of its message, which are most of it and rarely looked at, stay text.
#[derive(Clone, Debug)]
pub struct Payload {
    /// The payload without the blocks of its message.
    pub(super) rest: Value,
    /// The blocks of the message, as a JSON array, if there is a message with blocks.
    pub(super) blocks: Option<Box<str>>,
}

impl Payload {
    /// Parses a payload.
    ///
    /// # Errors
    ///
    /// If the text is not a JSON object, or its message is neither one nor null.
    pub(super) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let mut blocks = None;
        let mut parser = serde_json::Deserializer::from_str(text);
        let rest = Without { path: &["message", "blocks"], taken: &mut blocks }.deserialize(&mut parser)?;
        parser.end()?;
        if !rest.is_object() {
            return Err(de::Error::custom("it is not an object"));
        }
        let is_list = |blocks: &RawValue| blocks.get().starts_with('[');
        Ok(Self { rest, blocks: blocks.filter(|blocks| is_list(blocks)).map(Into::into) })
    }
}

/// Reads an object without the member at this path, of which it takes the text. An object on the way may be missing or null.
struct Without<'p> {
    path: &'p [&'p str],
    taken: &'p mut Option<Box<RawValue>>,
}

impl<'de> DeserializeSeed<'de> for Without<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Without<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = object.next_key::<String>()? {
            let value = match self.path {
                [last] if name == *last => {
                    *self.taken = Some(object.next_value()?);
                    continue;
                }
                [first, path @ ..] if name == *first => {
                    *self.taken = None; // of an earlier member with this name
                    object.next_value_seed(Without { path, taken: &mut *self.taken })?
                }
                _ => object.next_value()?,
            };
            members.insert(name, value);
        }
        Ok(Value::Object(members))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

impl From<Value> for Payload {
    fn from(mut whole: Value) -> Self {
        let message = whole.get_mut("message").and_then(Value::as_object_mut);
        let blocks = message.and_then(|message| message.remove("blocks")).filter(Value::is_array);
        Self { blocks: blocks.map(|blocks| blocks.to_string().into()), rest: whole }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_and_a_value_are_the_same_payload() {
        let message = json!({ "ts": "1.2", "blocks": [{ "type": "divider", "n": 1.0 }], "text": "Start?" });
        for message in [message, json!({ "ts": "1.2" }), json!({ "blocks": null }), json!(null)] {
            let whole = json!({ "type": "block_actions", "message": message, "actions": [{ "value": "\"ä\"" }] });
            let (read, given) = (Payload::parse(&whole.to_string()).unwrap(), Payload::from(whole));
            assert_eq!(read.blocks, given.blocks);
            assert_eq!(read.rest, given.rest);
        }
        let twice = Payload::parse(r#"{"message":{"blocks":[1]},"message":null}"#).unwrap();
        assert_eq!((twice.blocks, twice.rest), (None, json!({ "message": null })));
        for wrong in ["[]", "null", "{", "{} {}", "{\"message\":1}"] {
            assert!(Payload::parse(wrong).is_err(), "{wrong}");
        }
    }
}
