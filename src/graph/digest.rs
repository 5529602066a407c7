//! The fingerprint of a change: what runs is what was shown.
//!
//! SHA-256, for changes HMAC-SHA-256 with a key that is not in the store ([`super::keyring`]), over an injective encoding: every value is written with its kind and its length, object keys in order, so
//! two different changes cannot be written alike, and the same change is written alike whatever the order of its keys.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// SHA-256 of a change, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    /// The digest of the values, in this order.
    pub fn of(values: &[&Value]) -> Self {
        Self(hex::encode(Sha256::digest(encoded(values))))
    }

    /// The digest that only who has the key can make.
    pub fn keyed(key: &[u8], values: &[&Value]) -> Self {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length will do");
        mac.update(&encoded(values));
        Self(hex::encode(mac.finalize().into_bytes()))
    }

    /// Whether it is the same, in a time that does not tell where it differs.
    pub fn is(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.0.as_bytes(), other.0.as_bytes());
        ours.len() == theirs.len() && ours.iter().zip(theirs).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
    }

    /// All 64 characters.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first 8 characters: enough for people to compare.
    pub fn short(&self) -> &str {
        self.0.get(..8).unwrap_or(&self.0)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn encoded(values: &[&Value]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(512);
    for value in values {
        encode(value, &mut bytes);
    }
    bytes
}

/// Kind, length, content; containers count their members.
fn encode(value: &Value, out: &mut Vec<u8>) {
    let mut tagged = |tag: u8, bytes: &[u8]| {
        out.push(tag);
        out.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
        out.extend_from_slice(bytes);
    };
    match value {
        Value::Null => tagged(b'n', b""),
        Value::Bool(b) => tagged(b'b', &[u8::from(*b)]),
        Value::Number(n) => tagged(b'd', n.to_string().as_bytes()),
        Value::String(s) => tagged(b's', s.as_bytes()),
        Value::Array(items) => {
            tagged(b'a', &(items.len() as u64).to_be_bytes());
            for item in items {
                encode(item, out);
            }
        }
        Value::Object(map) => {
            tagged(b'o', &(map.len() as u64).to_be_bytes());
            let mut keys: Vec<_> = map.keys().collect();
            keys.sort_unstable();
            for key in keys {
                encode(&Value::String(key.clone()), out);
                encode(&map[key], out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".{0,3}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn different_values_have_different_digests(a in any_value(), b in any_value()) {
            prop_assert_eq!(a == b, Digest::of(&[&a]) == Digest::of(&[&b]));
        }

        #[test]
        fn a_digest_survives_storage(a in any_value()) {
            let stored: Value = serde_json::from_str(&a.to_string()).unwrap();
            prop_assert_eq!(Digest::of(&[&a]), Digest::of(&[&stored]));
        }
    }

    #[test]
    fn where_one_value_ends_matters() {
        assert_ne!(Digest::of(&[&json!("ab"), &json!("c")]), Digest::of(&[&json!("a"), &json!("bc")]));
        assert_ne!(Digest::of(&[&json!(["a"]), &json!("b")]), Digest::of(&[&json!(["a", "b"])]));
        assert_ne!(Digest::of(&[&json!(1)]), Digest::of(&[&json!("1")]));
    }

    #[test]
    fn the_order_of_keys_does_not_matter() {
        let one: Value = serde_json::from_str(r#"{"a":1,"b":2}"#).unwrap();
        let two: Value = serde_json::from_str(r#"{"b":2,"a":1}"#).unwrap();
        assert_eq!(Digest::of(&[&one]), Digest::of(&[&two]));
    }
}
