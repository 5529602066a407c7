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
//! # Version 4
//!
//! This version is used for all new entries. The commitments are to the leaves of a JSON object with the event's `detail`
//! and, if it has them, its `by` and `action`. Its members and those of the objects in it are sorted by the bytes of their
//! names, and the leaves are numbered in the resulting order from 0.
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
//! The hash of [`super::store::AuditEntry`] covers the root, the time and the kind.
//!
//! In an entry that is hidden in part, salts and commitments are in hexadecimal, in lower case.
//!
//! # Earlier versions
//!
//! They are only verified and hidden.
//!
//! Version 3 has salts and commitments like those of version 4, but the time and the kind are leaves as well, and the leaves
//! are sorted by the bytes of their places and numbered in this order. The root is SHA-256 over all leaves: for each, the
//! length of its place in bytes (4 bytes, big-endian), its place, a letter for each step of the place, and its commitment.
//! The letter is `a` for a step into a list and `o` for a step into an object, which JSON Pointers do not tell apart. Since
//! it repeats the names of outer objects for each leaf, this list is about twice as long as in version 4.
//!
//! Version 2 takes about twice as many blocks of SHA-256 as version 3, since everything is hashed in
//! hexadecimal and with its length: a leaf's salt is SHA-256 over the entry's salt and the leaf's place, each
//! commitment is SHA-256 over the leaf's salt and the leaf, and there is no root: the entry's hash covers all places and
//! commitments. All of these are written as in [`super::digest`]. Version 1 has no commitments. Its hash covers the values
//! themselves, so an entry can only be hidden as a whole.
//!
//! # Rejected designs
//!
//! Two other designs were rejected: hashing the redacted text, since then nothing could be redacted later, and hashing
//! the bare value, since a status or a name is easily guessed.

use std::{collections::BTreeMap, fmt::Write as _};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{digest, pointer};

pub(crate) mod fourth;
pub(crate) mod second;
pub(crate) mod third;

/// A salt, which prevents guessing the value of a commitment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Salt(String);

impl Salt {
    /// Creates a salt of 16 random bytes.
    pub fn fresh() -> Self {
        Self::of(&rand::random())
    }

    /// Returns true if there is no salt, as in entries of the first version and in sealed ones.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    fn of(bytes: &[u8; 16]) -> Self {
        Self(hex::encode(bytes))
    }

    /// Returns the bytes. `None` unless there are 16, as everywhere since version 3.
    fn bytes(&self) -> Option<[u8; 16]> {
        digest::from_hex(&self.0)
    }
}

/// The version of an entry's hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    First,
    Second,
    Third,
    Fourth,
}

impl Version {
    /// Returns the salt of a leaf, if it can be derived from the entry's salt.
    fn own_salt(self, salt: &Salt, number: usize, place: &str) -> Option<Salt> {
        match self {
            Self::First => None,
            Self::Second => Some(second::own_salt(salt, place)),
            Self::Third | Self::Fourth => third::own_salt(salt, number),
        }
    }

    /// Returns the commitment to a leaf, if its own salt has the right form.
    fn commit(self, own: &Salt, leaf: &Value) -> Option<String> {
        match self {
            Self::First => None,
            Self::Second => Some(second::commit(own, leaf)),
            Self::Third | Self::Fourth => third::commit(own, leaf),
        }
    }

    /// Returns the leaves of a value, in the order of their numbers.
    fn numbered(self, value: &Value) -> Vec<Leaf<'_>> {
        let mut leaves = leaves(value);
        match self {
            Self::First | Self::Second | Self::Third => leaves.sort_unstable_by(|a, b| a.place.cmp(&b.place)),
            Self::Fourth => {}
        }
        leaves
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
    /// The steps of the place that lead into lists: bit *n* stands for step *n*, counted from 0.
    lists: u128,
}

impl<'v> Leaf<'v> {
    /// Returns a leaf that is a member of the outermost object.
    pub(crate) fn member(place: &str, value: &'v Value) -> Self {
        Self { place: place.to_owned(), value, lists: 0 }
    }
}

/// Returns the leaves of a value, those of an object sorted by the bytes of its members' names.
pub fn leaves(value: &Value) -> Vec<Leaf<'_>> {
    leaves_at("", value)
}

/// Returns the leaves of a value that is part of another one, at this place.
///
/// All steps of the place lead into objects.
pub(crate) fn leaves_at<'v>(place: &str, value: &'v Value) -> Vec<Leaf<'v>> {
    let mut found = Vec::new();
    collect(value, &mut place.to_owned(), (place.matches('/').count(), 0), &mut found);
    found
}

/// Adds the leaves of a value at this place, of which the number of steps and [`Leaf::lists`] are given.
fn collect<'a>(value: &'a Value, place: &mut String, (steps, lists): (usize, u128), found: &mut Vec<Leaf<'a>>) {
    let length = place.len();
    match value {
        Value::Object(parts) if !parts.is_empty() => {
            for (name, part) in fourth::sorted(parts) {
                pointer::push(place, name);
                collect(part, place, (steps + 1, lists), found);
                place.truncate(length);
            }
        }
        Value::Array(parts) if !parts.is_empty() => {
            for (n, part) in parts.iter().enumerate() {
                write!(place, "/{n}").expect("a string takes everything");
                let lists = lists | u32::try_from(steps).ok().and_then(|steps| 1_u128.checked_shl(steps)).unwrap_or(0);
                collect(part, place, (steps + 1, lists), found);
                place.truncate(length);
            }
        }
        value => found.push(Leaf { place: place.clone(), value, lists }),
    }
}

/// An entry that cannot be hidden in part, since a leaf has neither a commitment nor a salt.
#[derive(Debug)]
pub(crate) struct NotInPart;

/// Hides the leaves for which `instead` returns a replacement; it is called with the place, the leaf and its commitment.
/// `earlier` holds the leaves that are already hidden. Returns `None` if nothing more is hidden.
pub(crate) fn hide(
    value: &mut Value,
    version: Version,
    salt: &Salt,
    earlier: Option<&Sealed>,
    instead: impl Fn(&str, &Value, &str) -> Option<String>,
) -> Result<Option<Sealed>, NotInPart> {
    let mut replaced = Vec::new();
    let mut sealed = Sealed::default();
    for (number, Leaf { place, value: leaf, .. }) in version.numbered(value).into_iter().enumerate() {
        if let Some(commitment) = earlier.and_then(|earlier| earlier.hidden.get(&place)) {
            sealed.hidden.insert(place, commitment.clone());
            continue;
        }
        let earlier_salt = earlier.and_then(|earlier| earlier.salts.get(&place).cloned());
        let own = earlier_salt.or_else(|| version.own_salt(salt, number, &place)).ok_or(NotInPart)?;
        let commitment = version.commit(&own, leaf).ok_or(NotInPart)?;
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

    const VERSIONS: [Version; 3] = [Version::Second, Version::Third, Version::Fourth];

    /// Returns what the entry's hash covers.
    fn covered(version: Version, value: &Value, salt: &Salt, sealed: Option<&Sealed>) -> Option<Vec<u8>> {
        match version {
            Version::First => None,
            Version::Second => second::encode_commitments(leaves(value), salt, sealed),
            Version::Third => third::root(leaves(value), salt, sealed).map(|root| root.to_vec()),
            Version::Fourth => {
                let members: Vec<_> = fourth::sorted(value.as_object().expect("an event is an object")).collect();
                fourth::root(&members, salt, sealed).map(|root| root.to_vec())
            }
        }
    }

    /// Hides these places. Panics if that hides nothing.
    fn hidden(version: Version, value: &mut Value, salt: &Salt, earlier: Option<&Sealed>, places: &[&str]) -> Sealed {
        let instead = |place: &str, _: &Value, _: &str| places.contains(&place).then(|| "…".to_owned());
        hide(value, version, salt, earlier, instead).unwrap().unwrap()
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
    fn commitments_of_version_2_are_written_like_the_object_that_they_are() {
        let value = json!({ "a": { "b": 1 }, "a-b": [null], "": {} });
        let salt = Salt::fresh();
        let all = hide(&mut value.clone(), Version::Second, &salt, None, |_, _, _| Some(String::new()));
        let object: Value = all
            .unwrap()
            .unwrap()
            .hidden
            .into_iter()
            .map(|(place, commitment)| (place, Value::from(commitment)))
            .collect();
        let mut expected = Vec::new();
        digest::encode(&object, &mut expected);
        assert_eq!(covered(Version::Second, &value, &salt, None), Some(expected));
    }

    #[test]
    fn hiding_changes_nothing_that_the_hash_covers() {
        for version in VERSIONS {
            let salt = Salt::fresh();
            let whole = covered(version, &event(), &salt, None);
            let mut shown = event();
            let sealed = hidden(version, &mut shown, &salt, None, &["/detail/text"]);
            assert_eq!(shown["detail"]["text"], "…");
            assert_eq!(covered(version, &shown, &Salt::default(), Some(&sealed)), whole);

            let more = hidden(version, &mut shown, &Salt::default(), Some(&sealed), &["/kind", "/detail/a~1b/0"]);
            assert_eq!((more.hidden.len(), more.salts.len()), (3, 3));
            assert_eq!(covered(version, &shown, &Salt::default(), Some(&more)), whole, "also in two rounds");
        }
    }

    #[test]
    fn what_is_shown_cannot_be_changed() {
        for version in VERSIONS {
            let salt = Salt::fresh();
            let whole = covered(version, &event(), &salt, None);
            let mut forged = event();
            let sealed = hidden(version, &mut forged, &salt, None, &["/detail/text"]);
            forged["detail"]["again"] = json!("stop it");
            assert_ne!(covered(version, &forged, &Salt::default(), Some(&sealed)), whole);
            forged["detail"]["more"] = json!("and this");
            assert_eq!(covered(version, &forged, &Salt::default(), Some(&sealed)), None, "a leaf without a salt");
        }
    }

    #[test]
    fn the_same_value_is_hidden_differently_each_time() {
        for version in VERSIONS {
            let hide = |salt| hidden(version, &mut event(), salt, None, &["/detail/text", "/detail/again"]).hidden;
            let salt = Salt::fresh();
            let once = hide(&salt);
            assert_ne!(once["/detail/text"], once["/detail/again"]);
            assert_eq!(once, hide(&salt));
            assert_ne!(once["/detail/text"], hide(&Salt::fresh())["/detail/text"]);
        }
    }

    #[test]
    fn a_list_and_an_object_with_numbers_for_names_have_different_roots() {
        let salt = Salt::fresh();
        for version in [Version::Third, Version::Fourth] {
            let root = |event: &Value| covered(version, event, &salt, None).unwrap();
            let list = json!({ "card": { "facts": [{ "label": "Users", "after": "10" }] } });
            let object = json!({ "card": { "facts": { "0": { "label": "Users", "after": "10" } } } });
            assert_ne!(root(&list), root(&object));
            assert_ne!(root(&json!({ "": [[1]] })), root(&json!({ "": { "0": [1] } })));
            assert_ne!(root(&json!({ "": [[1]] })), root(&json!({ "": [{ "0": 1 }] })));
        }
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
            assert_eq!(covered(Version::Fourth, &nested(steps), &Salt::fresh(), None).is_some(), has_root, "{steps}");
        }
    }

    proptest! {
        #[test]
        fn any_leaves_can_be_hidden_in_any_order(event in any_event(), chosen in any::<[u8; 64]>()) {
            let places: Vec<_> = leaves(&event).into_iter().map(|leaf| leaf.place).collect();
            let round = |round| places.iter().zip(chosen).filter(move |(_, n)| n % 4 == round).map(|(place, _)| &**place);
            for version in VERSIONS {
                let mut salt = Salt::fresh();
                let whole = covered(version, &event, &salt, None);
                let (mut shown, mut sealed) = (event.clone(), None);
                for n in 0..3 {
                    let places: Vec<_> = round(n).collect();
                    if !places.is_empty() {
                        sealed = Some(hidden(version, &mut shown, &salt, sealed.as_ref(), &places));
                        salt = Salt::default();
                    }
                    prop_assert_eq!(&covered(version, &shown, &salt, sealed.as_ref()), &whole);
                }
            }
        }

        #[test]
        fn different_events_have_different_roots(a in any_event(), b in any_event()) {
            let salt = Salt::fresh();
            for version in [Version::Third, Version::Fourth] {
                let root = |event: &Value| covered(version, event, &salt, None).unwrap();
                prop_assert_eq!(a == b, root(&a) == root(&b));
            }
        }
    }
}
