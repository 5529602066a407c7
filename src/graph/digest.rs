//! The digest of a change, which ensures that the change made is the change shown.
//!
//! It is SHA-256 or, for changes, HMAC-SHA-256 with a key that is not in the store
//! ([`super::keyring`]), over the values in one of three forms. In each form, two different values of
//! one type are never written the same way, and the same value is always written the same way:
//!
//! - *canonical*: the values as a JSON array in the canonical form of RFC 8785, which other programs can
//!   produce as well. It is used for changes. In this form, `1` and `1.0` are the same number, and
//!   integers beyond 2⁵³ are not allowed: a change with such an integer is written in the last form;
//! - *with hashes*: the values as a compact JSON array, in which a record is written as it is stored,
//!   and has hashes in place of its large parts: the parameters, preconditions, policy, card and undo,
//!   which rarely change. So a record that is sealed at each of its statuses has them hashed once, and
//!   nothing is sorted. It is used for seals. A value of another type could look like a record with
//!   hashes in it, so each purpose of a seal is for one type;
//! - *tagged*: the values one after another, each with its kind and length. It is used for data without
//!   a key. It begins with a letter, and the other two begin with a bracket. Only audit entries write
//!   their values in yet another form ([`super::seal`]).

use std::{fmt, io::Write as _};

use countersign_core::{SmolStr, hash::sha256};
use ring::hmac;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{canonical, shared};

/// A SHA-256 or HMAC-SHA-256 digest, in hexadecimal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(SmolStr);

impl Digest {
    /// Computes the digest of the values, in this order.
    pub fn of(values: &[&Value]) -> Self {
        let mut bytes = Vec::with_capacity(512);
        values.iter().for_each(|value| encode(value, &mut bytes));
        Self::of_encoded(&bytes)
    }

    /// Computes the digest of values that were written with [`encode`] and its neighbors.
    pub(crate) fn of_encoded(bytes: &[u8]) -> Self {
        Self(Hex::digest(bytes).as_str().into())
    }

    /// Computes [`Self::of`] these texts, without making values of them.
    pub(crate) fn of_texts(texts: &[&str]) -> Self {
        let mut bytes = Vec::with_capacity(256);
        texts.iter().for_each(|text| encode_text(text, &mut bytes));
        Self::of_encoded(&bytes)
    }

    /// Computes the digest of a change that only a holder of the key can compute.
    pub(crate) fn of_change<L: Serialize>(key: &hmac::Key, values: &L) -> Self {
        let mut bytes = Vec::with_capacity(4096);
        if canonical::write(values, &mut bytes).is_err() {
            bytes.clear();
            let values = serde_json::to_value(values).expect("a change is plain data");
            encode(&values, &mut bytes);
        }
        Self::keyed(key, &bytes)
    }

    /// Computes the digest of sealed values that only a holder of the key can compute.
    pub(crate) fn of_sealed<L: Serialize>(key: &hmac::Key, values: &L) -> Self {
        let mut bytes = Vec::with_capacity(4096);
        shared::write_with_hashes(values, &mut bytes).expect("sealed values are plain data");
        Self::keyed(key, &bytes)
    }

    fn keyed(key: &hmac::Key, bytes: &[u8]) -> Self {
        Self(Hex::of(hmac::sign(key, bytes).as_ref()).as_str().into())
    }

    /// Returns the canonical form of RFC 8785 of a value; `None` if it has a number that not all programs read in the
    /// same way.
    pub fn canonical_text(value: &Value) -> Option<String> {
        canonical::text(value).ok().map(|text| text.get().to_owned())
    }

    /// Compares two digests in constant time.
    pub fn is(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.0.as_bytes(), other.0.as_bytes());
        ours.len() == theirs.len() && ours.iter().zip(theirs).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
    }

    /// Returns all 64 characters.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns all 64 characters, as a text of its own.
    pub(crate) fn into_string(self) -> String {
        self.0.into()
    }

    /// Returns the first 8 characters, which are enough for people to compare.
    pub fn short(&self) -> &str {
        self.0.get(..8).unwrap_or(&self.0)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// 32 bytes in hexadecimal, such as those of SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hex([u8; 64]);

impl Hex {
    /// Computes a SHA-256.
    pub(crate) fn digest(bytes: &[u8]) -> Self {
        Self::of(&sha256(bytes))
    }

    fn of(bytes: &[u8]) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [b'0'; 64];
        for (digits, byte) in text.chunks_exact_mut(2).zip(bytes) {
            digits.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        Self(text)
    }

    /// Returns the 64 characters.
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("hexadecimal digits are ASCII")
    }
}

/// Reads exactly `N` bytes from hexadecimal. `None` for all other texts, and for capital letters: nothing may be written in
/// two ways.
pub(crate) fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    hex::decode_to_slice(text, &mut bytes).ok()?;
    (!text.bytes().any(|digit| digit.is_ascii_uppercase())).then_some(bytes)
}

/// Writes the kind, the length and the content of a value.
pub(crate) fn encode(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => write_tagged(b'n', b"", out),
        Value::Bool(b) => write_tagged(b'b', &[u8::from(*b)], out),
        Value::Number(n) => write_tagged(b'd', n.to_string().as_bytes(), out),
        Value::String(text) => encode_text(text, out),
        Value::Array(items) => {
            write_tagged(b'a', &(items.len() as u64).to_be_bytes(), out);
            for item in items {
                encode(item, out);
            }
        }
        Value::Object(map) => {
            write_tagged(b'o', &(map.len() as u64).to_be_bytes(), out);
            let mut members: Vec<_> = map.iter().collect();
            members.sort_unstable_by_key(|(key, _)| *key);
            for (key, member) in members {
                encode_text(key, out);
                encode(member, out);
            }
        }
    }
}

/// Writes a text like [`encode`].
pub(crate) fn encode_text(text: &str, out: &mut Vec<u8>) {
    write_tagged(b's', text.as_bytes(), out);
}

/// Writes the kind and the content of a value without parts, but no length. Nothing may follow.
pub(crate) fn encode_leaf(leaf: &Value, out: &mut Vec<u8>) {
    match leaf {
        Value::Null => out.push(b'n'),
        Value::Bool(b) => out.extend_from_slice(&[b'b', u8::from(*b)]),
        Value::Number(n) => write!(out, "d{n}").expect("a vector takes everything"),
        Value::String(text) => {
            out.push(b's');
            out.extend_from_slice(text.as_bytes());
        }
        Value::Array(_) => out.push(b'a'),
        Value::Object(_) => out.push(b'o'),
    }
}

/// Writes an integer like [`encode`].
pub(crate) fn encode_integer(integer: u64, out: &mut Vec<u8>) {
    write_tagged(b'd', integer.to_string().as_bytes(), out);
}

fn write_tagged(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    out.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
    out.extend_from_slice(bytes);
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
            let key = hmac::Key::new(hmac::HMAC_SHA256, b"a key");
            let (of_change, of_sealed) =
                (|value: &Value| Digest::of_change(&key, &(value,)), |value: &Value| Digest::of_sealed(&key, &(value,)));
            prop_assert_eq!(a == b, of_change(&a) == of_change(&b));
            prop_assert_eq!(a == b, of_sealed(&a) == of_sealed(&b));
        }

        #[test]
        fn parts_of_a_digest_need_not_be_values(text in ".{0,6}", value in any_value()) {
            let as_value = json!(text);
            prop_assert_eq!(Digest::of_texts(&[&text, "b"]), Digest::of(&[&as_value, &json!("b")]));
            let mut bytes = Vec::new();
            encode_text(&text, &mut bytes);
            encode(&value, &mut bytes);
            encode_integer(7, &mut bytes);
            prop_assert_eq!(Digest::of_encoded(&bytes), Digest::of(&[&as_value, &value, &json!(7)]));
        }

        #[test]
        fn a_digest_survives_storage(a in any_value()) {
            let stored: Value = serde_json::from_str(&a.to_string()).unwrap();
            prop_assert_eq!(Digest::of(&[&a]), Digest::of(&[&stored]));
        }
    }

    #[test]
    fn the_boundaries_between_values_matter() {
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
