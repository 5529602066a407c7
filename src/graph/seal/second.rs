//! The commitments of version 2.

use serde_json::Value;

use super::{Leaf, Salt, Sealed};
use crate::digest::{self, Hex};

/// Returns the salt of one leaf.
pub(super) fn own_salt(salt: &Salt, place: &str) -> Salt {
    Salt(leaf_salt(&salt.0, place, &mut Vec::new()).as_str().to_owned())
}

/// Returns the commitment to a leaf, with its own salt.
pub(super) fn commit(own: &Salt, leaf: &Value) -> String {
    commitment(&own.0, leaf, &mut Vec::new()).as_str().to_owned()
}

/// Returns the salt of one leaf. `space` is reused for each: an entry has dozens of leaves.
fn leaf_salt(salt: &str, place: &str, space: &mut Vec<u8>) -> Hex {
    space.clear();
    digest::encode_text(salt, space);
    digest::encode_text(place, space);
    Hex::digest(space)
}

fn commitment(own_salt: &str, leaf: &Value, space: &mut Vec<u8>) -> Hex {
    space.clear();
    digest::encode_text(own_salt, space);
    digest::encode(leaf, space);
    Hex::digest(space)
}

/// Returns the commitments to all leaves as one object, with their places as names, in the form that is hashed. They are
/// computed with the entry's salt or, if `sealed` is given, taken or computed from it. `None` if a leaf has neither a
/// commitment nor a salt, or both.
pub(crate) fn encode_commitments(mut leaves: Vec<Leaf<'_>>, salt: &Salt, sealed: Option<&Sealed>) -> Option<Vec<u8>> {
    if sealed.is_some_and(|sealed| sealed.hidden.len() + sealed.salts.len() != leaves.len()) {
        return None;
    }
    leaves.sort_unstable_by(|a, b| a.place.cmp(&b.place));
    let mut space = Vec::with_capacity(256);
    let mut out = Vec::with_capacity(4096);
    digest::begin_object(leaves.len(), &mut out);
    for Leaf { place, value: leaf, .. } in leaves {
        digest::encode_text(&place, &mut out);
        let Some(sealed) = sealed else {
            let own = leaf_salt(&salt.0, &place, &mut space);
            digest::encode_text(commitment(own.as_str(), leaf, &mut space).as_str(), &mut out);
            continue;
        };
        match sealed.hidden.get(&place) {
            Some(stored) => digest::encode_text(stored, &mut out),
            None => {
                let own = sealed.salts.get(&place)?;
                digest::encode_text(commitment(&own.0, leaf, &mut space).as_str(), &mut out);
            }
        }
    }
    Some(out)
}
