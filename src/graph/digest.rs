//! The digest of a change, which ensures that the change made is the change shown.
//!
//! It is SHA-256 or, for changes, HMAC-SHA-256 with a key that is not in the store
//! ([`super::keyring`]), over the values in one of two forms. In both forms, two different changes
//! are never written the same way, and the same change is always written the same way, regardless
//! of the order of its keys:
//!
//! - [`Form::Canonical`]: the values as a JSON array in the canonical form of RFC 8785, which other
//!   programs can produce as well. It is used for changes and seals since version 3. In this form,
//!   `1` and `1.0` are the same number, and integers beyond 2⁵³ are not allowed: values with such
//!   integers use the other form;
//! - [`Form::Tagged`]: the values one after another, each with its kind and length. It is used for
//!   changes and seals of version 2, and for all data without a key.

use std::fmt;

use ring::{digest::SHA256, hmac};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The form in which values are written before they are hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Each value with its kind and its length.
    Tagged,
    /// The values as a JSON array in the canonical form of RFC 8785.
    Canonical,
}

impl Form {
    /// Returns true if the form distinguishes these values from all others.
    pub fn holds(self, values: &[&Value]) -> bool {
        self == Self::Tagged || values.iter().all(|value| is_interoperable(value))
    }
}

/// A SHA-256 or HMAC-SHA-256 digest, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    /// Computes the digest of the values, in this order.
    pub fn of(values: &[&Value]) -> Self {
        Self::of_bytes(&tagged(values))
    }

    fn of_bytes(bytes: &[u8]) -> Self {
        Self(in_hex(ring::digest::digest(&SHA256, bytes).as_ref()))
    }

    /// Computes [`Self::of`] these texts, without making values of them.
    pub(crate) fn of_texts(texts: &[&str]) -> Self {
        let mut bytes = Vec::with_capacity(256);
        texts.iter().for_each(|text| encode_text(text, &mut bytes));
        Self::of_bytes(&bytes)
    }

    /// Computes [`Self::of`] a text and a value.
    pub(crate) fn of_text_and(text: &str, value: &Value) -> Self {
        let mut bytes = Vec::with_capacity(256);
        encode_text(text, &mut bytes);
        encode(value, &mut bytes);
        Self::of_bytes(&bytes)
    }

    /// Computes a digest that only a holder of the key can compute.
    pub(crate) fn keyed(key: &hmac::Key, form: Form, values: &[&Value]) -> Self {
        let bytes = match form {
            Form::Tagged => tagged(values),
            Form::Canonical => canonical(values),
        };
        Self(in_hex(hmac::sign(key, &bytes).as_ref()))
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
        self.0
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

/// The largest integer that all programs read in the same way: RFC 8785 treats numbers as doubles.
const MAX_INTEGER: u64 = (1 << 53) - 1;

/// Returns bytes in hexadecimal.
fn in_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|half| DIGITS[usize::from(half)]);
    String::from_utf8(digits.collect()).expect("hexadecimal digits are ASCII")
}

/// Returns the canonical form of a list of values. Every record is sealed in this form, so everything but rare numbers is
/// written here: the library makes a text of each part, to sort them.
fn canonical(values: &[&Value]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(512);
    write_canonical_list(values.iter().copied(), &mut bytes);
    bytes
}

fn write_canonical_list<'v>(values: impl Iterator<Item = &'v Value>, out: &mut Vec<u8>) {
    out.push(b'[');
    for (place, value) in values.enumerate() {
        if place > 0 {
            out.push(b',');
        }
        write_canonical(value, out);
    }
    out.push(b']');
}

fn write_canonical(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => match number.as_i64().filter(|integer| integer.unsigned_abs() <= MAX_INTEGER) {
            Some(integer) => out.extend_from_slice(integer.to_string().as_bytes()),
            None => out.extend(serde_json_canonicalizer::to_vec(number).expect("a JSON value has finite numbers")),
        },
        Value::String(text) => write_canonical_text(text, out),
        Value::Array(items) => write_canonical_list(items.iter(), out),
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
            out.push(b'{');
            for (place, (key, member)) in members.into_iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                write_canonical_text(key, out);
                out.push(b':');
                write_canonical(member, out);
            }
            out.push(b'}');
        }
    }
}

/// Writes a text in quotes. The library for JSON escapes the same characters in the same way as RFC 8785.
fn write_canonical_text(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, text).expect("a text can be written to memory");
}

/// Returns true if all programs read every integer in the same way.
fn is_interoperable(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (None, None) => true,
            (positive, negative) => {
                positive.or(negative.map(i64::unsigned_abs)).is_some_and(|size| size <= MAX_INTEGER)
            }
        },
        Value::Array(items) => items.iter().all(is_interoperable),
        Value::Object(members) => members.values().all(is_interoperable),
    }
}

fn tagged(values: &[&Value]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(512);
    for value in values {
        encode(value, &mut bytes);
    }
    bytes
}

/// Writes the kind, the length and the content of a value. Containers write the number of their
/// members.
fn encode(value: &Value, out: &mut Vec<u8>) {
    let mut tagged = |tag: u8, bytes: &[u8]| write_tagged(tag, bytes, out);
    match value {
        Value::Null => tagged(b'n', b""),
        Value::Bool(b) => tagged(b'b', &[u8::from(*b)]),
        Value::Number(n) => tagged(b'd', n.to_string().as_bytes()),
        Value::String(text) => encode_text(text, out),
        Value::Array(items) => {
            tagged(b'a', &(items.len() as u64).to_be_bytes());
            for item in items {
                encode(item, out);
            }
        }
        Value::Object(map) => {
            tagged(b'o', &(map.len() as u64).to_be_bytes());
            let mut members: Vec<_> = map.iter().collect();
            members.sort_unstable_by_key(|(key, _)| *key);
            for (key, member) in members {
                encode_text(key, out);
                encode(member, out);
            }
        }
    }
}

fn encode_text(text: &str, out: &mut Vec<u8>) {
    write_tagged(b's', text.as_bytes(), out);
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
            if Form::Canonical.holds(&[&a, &b]) {
                prop_assert_eq!(a == b, canonical(&[&a]) == canonical(&[&b]));
            }
        }

        #[test]
        fn the_canonical_form_is_that_of_the_library(value in any_value(), number in any::<f64>(), count in any::<i32>(), text: String) {
            let numbers = json!({ "n": [number, count], "": value });
            let texts = json!([text, format!("{text}\n\u{7f}\"\\\u{1}/é"), "\u{1f}", " "]);
            let values = [&value, &numbers, &texts];
            prop_assert_eq!(canonical(&values), serde_json_canonicalizer::to_vec(&values).unwrap());
        }

        #[test]
        fn parts_of_a_digest_need_not_be_values(text in ".{0,6}", value in any_value()) {
            let as_value = json!(text);
            prop_assert_eq!(Digest::of_texts(&[&text, "b"]), Digest::of(&[&as_value, &json!("b")]));
            prop_assert_eq!(Digest::of_text_and(&text, &value), Digest::of(&[&as_value, &value]));
        }

        #[test]
        fn a_digest_survives_storage(a in any_value()) {
            let stored: Value = serde_json::from_str(&a.to_string()).unwrap();
            prop_assert_eq!(Digest::of(&[&a]), Digest::of(&[&stored]));
        }
    }

    fn written(json: &str) -> String {
        let value: Value = serde_json::from_str(json).unwrap();
        let array = String::from_utf8(canonical(&[&value])).unwrap();
        array.strip_prefix('[').and_then(|array| array.strip_suffix(']')).expect("an array of one").to_owned()
    }

    #[test]
    fn the_canonical_form_matches_the_examples_of_the_rfc() {
        // RFC 8785, 3.2.2 and 3.2.3.
        let serialized = r#"{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}"#;
        let canonical = r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#;
        assert_eq!(written(serialized), canonical);
        let sorted = r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}"#;
        let names = ["Carriage Return", "One", "Control", "Latin", "Euro Sign", "Emoji", "Hebrew"];
        let written = written(sorted);
        let places: Vec<_> = names.iter().map(|name| written.find(name).unwrap()).collect();
        assert!(places.is_sorted(), "keys are in order of their UTF-16 code units: {written}");
    }

    #[test]
    fn numbers_are_written_as_in_the_rfc() {
        // RFC 8785, appendix B.
        for (bits, text) in [
            (0x0000_0000_0000_0000_u64, "0"),
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x8000_0000_0000_0001, "-5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992"),
            (0xc340_0000_0000_0000, "-9007199254740992"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
            (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
            (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x41b3_de43_5555_5553, "333333333.3333332"),
            (0x41b3_de43_5555_5554, "333333333.33333325"),
            (0x41b3_de43_5555_5555, "333333333.3333333"),
            (0x41b3_de43_5555_5556, "333333333.3333334"),
            (0x41b3_de43_5555_5557, "333333333.33333343"),
            (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
            (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
        ] {
            let written = canonical(&[&json!(f64::from_bits(bits))]);
            assert_eq!(String::from_utf8(written).unwrap(), format!("[{text}]"));
        }
    }

    #[test]
    fn the_canonical_form_refuses_integers_that_doubles_cannot_hold() {
        let (most, over) = (json!({ "n": [(1_u64 << 53) - 1] }), json!({ "n": [1_u64 << 53] }));
        assert!(Form::Canonical.holds(&[&most, &json!(-3), &json!(1e300)]));
        assert!(!Form::Canonical.holds(&[&most, &over]) && Form::Tagged.holds(&[&over]));
        assert!(!Form::Canonical.holds(&[&json!(i64::MIN)]) && !Form::Canonical.holds(&[&json!(u64::MAX)]));
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
