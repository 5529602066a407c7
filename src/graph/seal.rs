//! Hides parts of an audit entry without breaking the hash chain.
//!
//! An entry's hash does not cover its values directly, but *commitments* to them. A value without parts (a string, a
//! number, an empty list) is a *leaf*. Each leaf has a salt of its own, and its commitment is SHA-256 over this salt and
//! the leaf. The salts of all leaves are derived from the entry's salt, which is 16 random bytes. Consequently,
//!
//! - the holder of a complete entry has its salt, and can compute every commitment and, from them, the hash;
//! - a reader who may not see a leaf gets its commitment in the leaf's place, and the individual salts of all other
//!   leaves instead of the entry's salt. The hash can still be computed, the other leaves are still proven, and the
//!   hidden one cannot be guessed by trying likely values, since its salt is missing;
//! - the holder of a copy of a hidden value and its salt can later prove that this was the value.
//!
//! The place of a leaf (its JSON Pointer) and the number of leaves are not hidden. The time and the kind of an event are
//! never hidden.
//!
//! # Form
//!
//! The commitments are to the leaves of a JSON object with the event's `detail` and, if it has them, its `by` and `action`.
//! Its members and those of the objects in it are sorted by the bytes of their names, and the leaves are numbered in the
//! resulting order from 0.
//!
//! - The salts of the leaves 2k and 2k + 1 are the first and the second half of SHA-256 over the entry's salt (16 bytes)
//!   and k (4 bytes, big-endian).
//! - The commitment to a leaf is SHA-256 over its salt (16 bytes), a letter for its kind, and its content: `n` is null,
//!   `b` a boolean (a byte, 0 or 1), `d` a number (in decimal digits, as in JSON), `s` a text (in UTF-8), `a` an empty
//!   list and `o` an empty object. The length is not included, since the salt has a fixed length and nothing follows.
//! - The *root* is SHA-256 over the structure of the object and the commitments in their order (32 bytes each). The
//!   structure of a leaf is `l`. That of a list is `a`, the number of its elements (4 bytes, big-endian), and the
//!   structure of each. That of an object is `o`, the number of its members and, for each, the length of its name in bytes
//!   (both 4 bytes, big-endian), its name, and the structure of its value.
//!
//! The hash of [`super::store::AuditEntry`] covers the version of this form, the root, the time and the kind.
//!
//! In an entry that is hidden in part, salts and commitments are in hexadecimal, in lower case.
//!
//! # Rejected designs
//!
//! Two other designs were rejected: hashing the redacted text, since then nothing could be redacted later, and hashing
//! the bare value, since a status or a name is easily guessed.

use std::{collections::BTreeMap, fmt::Write as _};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{digest, pointer};

mod commitments;

pub(crate) use commitments::root;

/// A salt, which prevents guessing the value of a commitment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Salt(String);

impl Salt {
    /// Creates a salt of 16 random bytes.
    pub fn fresh() -> Self {
        Self::of(&rand::random())
    }

    /// Returns true if there is no salt, as in an entry that is hidden in part.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    fn of(bytes: &[u8; 16]) -> Self {
        Self(hex::encode(bytes))
    }

    /// Returns the bytes. `None` unless there are 16.
    fn bytes(&self) -> Option<[u8; 16]> {
        digest::from_hex(&self.0)
    }
}

/// The hidden parts of an entry, and the proof of the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    /// The commitments to the hidden leaves, by place. The text shown in such a place is only a
    /// placeholder.
    pub hidden: BTreeMap<String, String>,
    /// The individual salts of all other leaves, by place.
    pub salts: BTreeMap<String, Salt>,
}

/// A value without parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf<'v> {
    /// The place of the value, as a JSON Pointer.
    pub place: String,
    /// The value.
    pub value: &'v Value,
}

/// Returns the leaves of a value in the order of their numbers: those of an object are sorted by the bytes of its members'
/// names.
pub fn leaves(value: &Value) -> Vec<Leaf<'_>> {
    leaves_at("", value)
}

/// Returns the leaves of a value that is part of another one, at this place.
fn leaves_at<'v>(place: &str, value: &'v Value) -> Vec<Leaf<'v>> {
    let mut found = Vec::new();
    collect(value, &mut place.to_owned(), &mut found);
    found
}

/// Adds the leaves of a value at this place.
fn collect<'a>(value: &'a Value, place: &mut String, found: &mut Vec<Leaf<'a>>) {
    let length = place.len();
    match value {
        Value::Object(parts) if !parts.is_empty() => {
            for (name, part) in commitments::sorted(parts) {
                pointer::push(place, name);
                collect(part, place, found);
                place.truncate(length);
            }
        }
        Value::Array(parts) if !parts.is_empty() => {
            for (n, part) in parts.iter().enumerate() {
                write!(place, "/{n}").expect("a string takes everything");
                collect(part, place, found);
                place.truncate(length);
            }
        }
        value => found.push(Leaf { place: place.clone(), value }),
    }
}

/// An entry that cannot be hidden in part, since a leaf has neither a commitment nor a salt.
#[derive(Debug)]
pub(crate) struct NotInPart;

/// Hides the leaves for which `instead` returns a replacement; it is called with the place, the leaf and its commitment.
/// `earlier` holds the leaves that are already hidden. Returns `None` if nothing more is hidden.
pub(crate) fn hide(
    value: &mut Value,
    salt: &Salt,
    earlier: Option<&Sealed>,
    instead: impl Fn(&str, &Value, &str) -> Option<String>,
) -> Result<Option<Sealed>, NotInPart> {
    let mut replaced = Vec::new();
    let mut sealed = Sealed::default();
    for (number, Leaf { place, value: leaf }) in leaves(value).into_iter().enumerate() {
        if let Some(commitment) = earlier.and_then(|earlier| earlier.hidden.get(&place)) {
            sealed.hidden.insert(place, commitment.clone());
            continue;
        }
        let earlier_salt = earlier.and_then(|earlier| earlier.salts.get(&place).cloned());
        let own = earlier_salt.or_else(|| commitments::own_salt(salt, number)).ok_or(NotInPart)?;
        let commitment = commitments::commit(&own, leaf).ok_or(NotInPart)?;
        match instead(&place, leaf, &commitment) {
            Some(replacement) => {
                replaced.push((place.clone(), replacement));
                sealed.hidden.insert(place, commitment);
            }
            None => {
                sealed.salts.insert(place, own);
            }
        }
    }
    if replaced.is_empty() {
        return Ok(None);
    }
    for (place, replacement) in replaced {
        if let Some(leaf) = value.pointer_mut(&place) {
            *leaf = replacement.into();
        }
    }
    Ok(Some(sealed))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Returns the root of an object.
    fn covered(value: &Value, salt: &Salt, sealed: Option<&Sealed>) -> Option<[u8; 32]> {
        let members: Vec<_> = commitments::sorted(value.as_object().expect("an event is an object")).collect();
        root(&members, salt, sealed)
    }

    /// Hides these places. Panics if that hides nothing.
    fn hidden(value: &mut Value, salt: &Salt, earlier: Option<&Sealed>, places: &[&str]) -> Sealed {
        let instead = |place: &str, _: &Value, _: &str| places.contains(&place).then(|| "…".to_owned());
        hide(value, salt, earlier, instead).unwrap().unwrap()
    }

    fn event() -> Value {
        json!({ "kind": "said", "detail": { "text": "start it", "a/b": [1, [], {}], "again": "start it" } })
    }

    #[test]
    fn every_leaf_has_its_place() {
        let event = event();
        let places: Vec<_> = leaves(&event).into_iter().map(|leaf| leaf.place).collect();
        assert_eq!(
            places,
            ["/detail/a~1b/0", "/detail/a~1b/1", "/detail/a~1b/2", "/detail/again", "/detail/text", "/kind"]
        );
    }

    #[test]
    fn hiding_changes_nothing_that_the_hash_covers() {
        let salt = Salt::fresh();
        let whole = covered(&event(), &salt, None);
        let mut shown = event();
        let sealed = hidden(&mut shown, &salt, None, &["/detail/text"]);
        assert_eq!(shown["detail"]["text"], "…");
        assert_eq!(covered(&shown, &Salt::default(), Some(&sealed)), whole);

        let more = hidden(&mut shown, &Salt::default(), Some(&sealed), &["/kind", "/detail/a~1b/0"]);
        assert_eq!((more.hidden.len(), more.salts.len()), (3, 3));
        assert_eq!(covered(&shown, &Salt::default(), Some(&more)), whole, "also in two rounds");
    }

    #[test]
    fn what_is_shown_cannot_be_changed() {
        let salt = Salt::fresh();
        let whole = covered(&event(), &salt, None);
        let mut forged = event();
        let sealed = hidden(&mut forged, &salt, None, &["/detail/text"]);
        forged["detail"]["again"] = json!("stop it");
        assert_ne!(covered(&forged, &Salt::default(), Some(&sealed)), whole);
        forged["detail"]["more"] = json!("and this");
        assert_eq!(covered(&forged, &Salt::default(), Some(&sealed)), None, "a leaf without a salt");
    }

    #[test]
    fn the_same_value_is_hidden_differently_each_time() {
        let hide = |salt| hidden(&mut event(), salt, None, &["/detail/text", "/detail/again"]).hidden;
        let salt = Salt::fresh();
        let once = hide(&salt);
        assert_ne!(once["/detail/text"], once["/detail/again"]);
        assert_eq!(once, hide(&salt));
        assert_ne!(once["/detail/text"], hide(&Salt::fresh())["/detail/text"]);
    }

    #[test]
    fn a_list_and_an_object_with_numbers_for_names_have_different_roots() {
        let salt = Salt::fresh();
        let root = |event: &Value| covered(event, &salt, None).unwrap();
        let list = json!({ "card": { "facts": [{ "label": "Users", "after": "10" }] } });
        let object = json!({ "card": { "facts": { "0": { "label": "Users", "after": "10" } } } });
        assert_ne!(root(&list), root(&object));
        assert_ne!(root(&json!({ "": [[1]] })), root(&json!({ "": { "0": [1] } })));
        assert_ne!(root(&json!({ "": [[1]] })), root(&json!({ "": [{ "0": 1 }] })));
    }

    /// Returns leaves that are alike in some way.
    fn any_leaf() -> impl Strategy<Value = Value> {
        const WORDS: [&str; 8] = ["", "n", "1", "-1", "true", "\u{1}", "ä", "[]"];
        prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-1_i64..2).prop_map(Value::from),
            Just(json!(-0.5)),
            Just(json!([])),
            Just(json!({})),
            prop::sample::select(&WORDS[..]).prop_map(Value::from),
        ]
    }

    fn any_event() -> impl Strategy<Value = Value> {
        any_leaf()
            .prop_recursive(3, 16, 4, |inner| {
                prop_oneof![
                    prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                    prop::collection::btree_map("[a/~ä0-]{0,3}", inner, 0..4)
                        .prop_map(|parts| Value::Object(parts.into_iter().collect())),
                ]
            })
            .prop_map(|value| json!({ "": value }))
    }

    #[test]
    fn a_value_that_lies_too_deep_to_be_read_again_has_no_root() {
        let nested = |steps: usize| (0..steps).fold(json!(1), |value, _| json!({ "in": value }));
        for (steps, has_root) in [(120, true), (130, false)] {
            assert_eq!(covered(&nested(steps), &Salt::fresh(), None).is_some(), has_root, "{steps}");
        }
    }

    proptest! {
        #[test]
        fn any_leaves_can_be_hidden_in_any_order(event in any_event(), chosen in any::<[u8; 64]>()) {
            let places: Vec<_> = leaves(&event).into_iter().map(|leaf| leaf.place).collect();
            let round = |round| places.iter().zip(chosen).filter(move |(_, n)| n % 4 == round).map(|(place, _)| &**place);
            let mut salt = Salt::fresh();
            let whole = covered(&event, &salt, None);
            let (mut shown, mut sealed) = (event.clone(), None);
            for n in 0..3 {
                let places: Vec<_> = round(n).collect();
                if !places.is_empty() {
                    sealed = Some(hidden(&mut shown, &salt, sealed.as_ref(), &places));
                    salt = Salt::default();
                }
                prop_assert_eq!(&covered(&shown, &salt, sealed.as_ref()), &whole);
            }
        }

        #[test]
        fn different_events_have_different_roots(a in any_event(), b in any_event()) {
            let salt = Salt::fresh();
            let root = |event: &Value| covered(event, &salt, None).unwrap();
            prop_assert_eq!(a == b, root(&a) == root(&b));
        }
    }
}
