//! Hides parts of an audit entry without breaking the hash chain.
//!
//! An entry's hash does not cover its values directly, but *commitments* to them. A value without
//! parts (a string, a number, an empty list) is a *leaf*, and its commitment is SHA-256 over a salt
//! and the value. Each entry has a random salt of 16 bytes; a leaf's own salt is SHA-256 over the
//! entry's salt and the leaf's place. Consequently,
//!
//! - the holder of a complete entry has its salt, and can compute every commitment and, from them,
//!   the hash;
//! - a reader who may not see a leaf gets its commitment in the leaf's place, and the individual
//!   salts of all other leaves instead of the entry's salt. The hash can still be computed, the
//!   other leaves are still proven, and the hidden one cannot be guessed by trying likely values,
//!   since its salt is missing;
//! - the holder of a copy of a hidden value and its salt can later prove that this was the value.
//!
//! The place of a leaf (its JSON Pointer) and the number of leaves are not hidden. The time and the
//! kind of an event are never hidden.
//!
//! Two other designs were rejected: hashing the redacted text, since then nothing could be redacted
//! later, and hashing the bare value, since a status or a name is easily guessed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    digest::{self, Hex},
    pointer,
};

/// A salt, which prevents guessing the value of a commitment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Salt(String);

impl Salt {
    /// Creates a salt of 16 random bytes.
    pub fn fresh() -> Self {
        Self(hex::encode(rand::random::<[u8; 16]>()))
    }

    /// Returns true if there is no salt, as in entries of earlier versions and in sealed ones.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the salt of one leaf.
    fn of_leaf(&self, place: &str) -> Self {
        Self(leaf_salt(&self.0, place, &mut Vec::new()).as_str().to_owned())
    }

    /// Returns the commitment to a value.
    fn commit(&self, value: &Value) -> String {
        commitment(&self.0, value, &mut Vec::new()).as_str().to_owned()
    }
}

/// Returns the salt of one leaf. `space` is reused for each: an entry has dozens of leaves.
fn leaf_salt(salt: &str, place: &str, space: &mut Vec<u8>) -> Hex {
    space.clear();
    digest::encode_text(salt, space);
    digest::encode_text(place, space);
    Hex::digest(space)
}

/// Returns the commitment to a leaf, with its own salt.
fn commitment(own_salt: &str, leaf: &Value, space: &mut Vec<u8>) -> Hex {
    space.clear();
    digest::encode_text(own_salt, space);
    digest::encode(leaf, space);
    Hex::digest(space)
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

/// A value without parts, with its place.
pub type Leaf<'v> = (String, &'v Value);

/// Returns the leaves of a value.
pub fn leaves(value: &Value) -> Vec<Leaf<'_>> {
    leaves_at("", value)
}

/// Returns the leaves of a value that is part of another one, at this place.
pub(crate) fn leaves_at<'v>(place: &str, value: &'v Value) -> Vec<Leaf<'v>> {
    let mut found = Vec::new();
    collect(value, &mut place.to_owned(), &mut found);
    found
}

fn collect<'a>(value: &'a Value, place: &mut String, found: &mut Vec<Leaf<'a>>) {
    let length = place.len();
    let mut visit = |step: &str, part: &'a Value, place: &mut String| {
        pointer::push(place, step);
        collect(part, place, found);
        place.truncate(length);
    };
    match value {
        Value::Object(parts) if !parts.is_empty() => parts.iter().for_each(|(name, part)| visit(name, part, place)),
        Value::Array(parts) if !parts.is_empty() => {
            parts.iter().enumerate().for_each(|(n, part)| visit(&n.to_string(), part, place));
        }
        leaf => found.push((place.clone(), leaf)),
    }
}

/// The commitments to all the leaves of a value, each with its place, in the order of the places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Commitments(Vec<(String, Commitment)>);

/// A commitment, computed or as it is stored.
#[derive(Clone, Debug)]
enum Commitment {
    Computed(Hex),
    Stored(String),
}

impl Commitment {
    fn as_str(&self) -> &str {
        match self {
            Self::Computed(hex) => hex.as_str(),
            Self::Stored(text) => text,
        }
    }
}

impl PartialEq for Commitment {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Commitment {}

impl Commitments {
    /// Computes the commitments with the entry's salt or, if `sealed` is given, takes or computes them from it. `None` if a
    /// leaf has neither a commitment nor a salt, or both.
    pub(crate) fn to(leaves: Vec<Leaf<'_>>, salt: &Salt, sealed: Option<&Sealed>) -> Option<Self> {
        if sealed.is_some_and(|sealed| sealed.hidden.len() + sealed.salts.len() != leaves.len()) {
            return None;
        }
        let mut space = Vec::with_capacity(256);
        let mut commit = |place: &str, leaf: &Value| match sealed {
            None => {
                let own = leaf_salt(&salt.0, place, &mut space);
                Some(Commitment::Computed(commitment(own.as_str(), leaf, &mut space)))
            }
            Some(sealed) => match sealed.hidden.get(place) {
                Some(stored) => Some(Commitment::Stored(stored.clone())),
                None => Some(Commitment::Computed(commitment(&sealed.salts.get(place)?.0, leaf, &mut space))),
            },
        };
        let all = leaves.into_iter().map(|(place, leaf)| {
            let commitment = commit(&place, leaf)?;
            Some((place, commitment))
        });
        let mut all = all.collect::<Option<Vec<_>>>()?;
        all.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        Some(Self(all))
    }

    /// Writes them as one object, with their places as names, in the form that is hashed.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        digest::begin_object(self.0.len(), out);
        for (place, commitment) in &self.0 {
            digest::encode_text(place, out);
            digest::encode_text(commitment.as_str(), out);
        }
    }
}

/// Hides the leaves for which `instead` returns a replacement; it is called with the place, the
/// leaf and its commitment. `earlier` holds the leaves that are already hidden. Returns `None` if
/// nothing is hidden.
pub fn hide(
    value: &mut Value,
    salt: &Salt,
    earlier: Option<Sealed>,
    instead: impl Fn(&str, &Value, &str) -> Option<String>,
) -> Option<Sealed> {
    let mut replaced = Vec::new();
    let mut sealed = Sealed::default();
    for (place, leaf) in leaves(value) {
        if let Some(commitment) = earlier.as_ref().and_then(|earlier| earlier.hidden.get(&place)) {
            sealed.hidden.insert(place, commitment.clone());
            continue;
        }
        let earlier_salt = earlier.as_ref().and_then(|earlier| earlier.salts.get(&place).cloned());
        let own = earlier_salt.unwrap_or_else(|| salt.of_leaf(&place));
        let commitment = own.commit(leaf);
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
        return earlier;
    }
    for (place, replacement) in replaced {
        if let Some(leaf) = value.pointer_mut(&place) {
            *leaf = replacement.into();
        }
    }
    Some(sealed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn commitments(value: &Value, salt: &Salt, sealed: Option<&Sealed>) -> Option<Commitments> {
        Commitments::to(leaves(value), salt, sealed)
    }

    fn event() -> Value {
        json!({ "kind": "said", "detail": { "text": "start it", "a/b": [1, [], {}], "again": "start it" } })
    }

    #[test]
    fn every_leaf_has_its_place() {
        let event = event();
        let places: Vec<_> = leaves(&event).into_iter().map(|(place, _)| place).collect();
        assert_eq!(
            places,
            ["/detail/a~1b/0", "/detail/a~1b/1", "/detail/a~1b/2", "/detail/again", "/detail/text", "/kind"]
        );
    }

    #[test]
    fn commitments_are_written_like_the_object_that_they_are() {
        let all = commitments(&json!({ "a": { "b": 1 }, "a-b": [null], "": {} }), &Salt::fresh(), None).unwrap();
        let object: Value =
            all.0.iter().map(|(place, commitment)| (place.clone(), Value::from(commitment.as_str()))).collect();
        let (mut written, mut expected) = (Vec::new(), Vec::new());
        all.encode(&mut written);
        digest::encode(&object, &mut expected);
        assert_eq!(written, expected);
    }

    #[test]
    fn hiding_changes_no_commitment() {
        let salt = Salt::fresh();
        let whole = commitments(&event(), &salt, None).unwrap();
        let mut hidden = event();
        let sealed = hide(&mut hidden, &salt, None, |place, _, _| (place == "/detail/text").then(|| "…".to_owned()));
        assert_eq!(hidden["detail"]["text"], "…");
        assert_eq!(commitments(&hidden, &Salt::default(), sealed.as_ref()), Some(whole.clone()));

        let more =
            hide(&mut hidden, &Salt::default(), sealed, |place, _, _| (place == "/kind").then(|| "…".to_owned()));
        assert_eq!(more.as_ref().unwrap().hidden.len(), 2);
        assert_eq!(commitments(&hidden, &Salt::default(), more.as_ref()), Some(whole), "also with two hidden values");
    }

    #[test]
    fn what_is_shown_cannot_be_changed() {
        let salt = Salt::fresh();
        let whole = commitments(&event(), &salt, None);
        let mut forged = event();
        let sealed = hide(&mut forged, &salt, None, |place, _, _| (place == "/detail/text").then(|| "…".to_owned()));
        forged["detail"]["again"] = json!("stop it");
        assert_ne!(commitments(&forged, &Salt::default(), sealed.as_ref()), whole);
        forged["detail"]["more"] = json!("and this");
        assert_eq!(commitments(&forged, &Salt::default(), sealed.as_ref()), None, "a leaf without a salt");
    }

    #[test]
    fn the_same_value_is_hidden_differently_each_time() {
        let salt = Salt::fresh();
        let all = commitments(&event(), &salt, None).unwrap();
        let at = |place: &str| all.0.iter().find(|(at, _)| at == place).map(|(_, commitment)| commitment);
        assert!(at("/detail/text").is_some() && at("/detail/text") != at("/detail/again"));
        assert_ne!(all, commitments(&event(), &Salt::fresh(), None).unwrap());
    }
}
