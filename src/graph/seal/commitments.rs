//! The salts of leaves, the commitments to them, and the root of an event.

use std::iter;

use countersign_core::hash::sha256;
use serde_json::{Map, Value};

use super::{Salt, Sealed, leaves_at};
use crate::digest;

/// The length of a leaf's salt.
const SALT: usize = 16;

/// The maximum number of steps to a leaf. A value that lies deeper could not be read again.
const MAX_STEPS: usize = 124;

/// Returns the salt of the leaf with this number. `None` if the entry has no salt of 16 bytes.
pub(super) fn own_salt(salt: &Salt, number: usize) -> Option<Salt> {
    let pair = pair_of_salts(&salt.bytes()?, u32::try_from(number / 2).ok()?);
    Some(Salt::of(&pair[number % 2]))
}

/// Returns the commitment to a leaf. `None` if its own salt is not 16 bytes.
pub(super) fn commit(own: &Salt, leaf: &Value) -> Option<String> {
    Some(hex::encode(commitment(&own.bytes()?, leaf, &mut Vec::new())))
}

/// Returns the root of an event whose members are given, sorted by name. `None` unless there is a salt or a commitment for
/// each leaf, and never both.
pub(crate) fn root(members: &[(&str, &Value)], salt: &Salt, sealed: Option<&Sealed>) -> Option<[u8; 32]> {
    let (mut hashed, mut leaves) = (Vec::with_capacity(2048), Vec::with_capacity(32));
    object(members.iter().copied(), MAX_STEPS, &mut hashed, &mut leaves)?;
    let mut space = Vec::with_capacity(256);
    match sealed {
        None => {
            let salt = salt.bytes()?;
            for (number, two) in (0..).zip(leaves.chunks(2)) {
                for (leaf, own) in iter::zip(two, pair_of_salts(&salt, number)) {
                    hashed.extend_from_slice(&commitment(&own, leaf, &mut space));
                }
            }
        }
        Some(sealed) => {
            if !salt.is_none() || sealed.hidden.len() + sealed.salts.len() != leaves.len() {
                return None;
            }
            for leaf in members.iter().flat_map(|(name, value)| leaves_at(&format!("/{name}"), value)) {
                let commitment = match sealed.hidden.get(&leaf.place) {
                    Some(stored) => digest::from_hex(stored)?,
                    None => commitment(&sealed.salts.get(&leaf.place)?.bytes()?, leaf.value, &mut space),
                };
                hashed.extend_from_slice(&commitment);
            }
        }
    }
    Some(sha256(&hashed))
}

/// Returns the members of an object, sorted by the bytes of their names.
pub(super) fn sorted(members: &Map<String, Value>) -> impl ExactSizeIterator<Item = (&str, &Value)> {
    let mut members: Vec<_> = members.iter().map(|(name, value)| (name.as_str(), value)).collect();
    members.sort_unstable_by_key(|(name, _)| *name);
    members.into_iter()
}

/// Returns the salts of the leaves `2 * number` and `2 * number + 1`.
fn pair_of_salts(salt: &[u8; SALT], number: u32) -> [[u8; SALT]; 2] {
    let mut hashed = [0; SALT + 4];
    hashed[..SALT].copy_from_slice(salt);
    hashed[SALT..].copy_from_slice(&number.to_be_bytes());
    let pair = sha256(&hashed);
    let (halves, _) = pair.as_chunks();
    [halves[0], halves[1]]
}

/// Returns the commitment to a leaf. `space` is reused for each: an entry has dozens of leaves.
fn commitment(own: &[u8; SALT], leaf: &Value, space: &mut Vec<u8>) -> [u8; 32] {
    space.clear();
    space.extend_from_slice(own);
    digest::encode_leaf(leaf, space);
    sha256(space)
}

/// Writes the structure of a value, and collects its leaves. `None` if it has too many parts to be described, or one of them
/// is more than `steps` steps away.
fn structure<'v>(value: &'v Value, steps: usize, out: &mut Vec<u8>, leaves: &mut Vec<&'v Value>) -> Option<()> {
    match value {
        Value::Object(members) if !members.is_empty() => object(sorted(members), steps, out, leaves),
        Value::Array(elements) if !elements.is_empty() => {
            out.push(b'a');
            length(elements.len(), out)?;
            let steps = steps.checked_sub(1)?;
            elements.iter().try_for_each(|element| structure(element, steps, out, leaves))
        }
        leaf => {
            out.push(b'l');
            leaves.push(leaf);
            Some(())
        }
    }
}

fn object<'v>(
    members: impl ExactSizeIterator<Item = (&'v str, &'v Value)>,
    steps: usize,
    out: &mut Vec<u8>,
    leaves: &mut Vec<&'v Value>,
) -> Option<()> {
    let steps = steps.checked_sub(1)?;
    out.push(b'o');
    length(members.len(), out)?;
    for (name, value) in members {
        length(name.len(), out)?;
        out.extend_from_slice(name.as_bytes());
        structure(value, steps, out, leaves)?;
    }
    Some(())
}

fn length(length: usize, out: &mut Vec<u8>) -> Option<()> {
    out.extend_from_slice(&u32::try_from(length).ok()?.to_be_bytes());
    Some(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn salt(text: &str) -> Salt {
        Salt(text.to_owned())
    }

    /// Returns the root of an object.
    fn root_of(value: &Value, salt: &Salt, sealed: Option<&Sealed>) -> Option<[u8; 32]> {
        root(&sorted(value.as_object().unwrap()).collect::<Vec<_>>(), salt, sealed)
    }

    /// The vectors were computed without this program, from the description of the form.
    #[test]
    fn vectors_of_the_parts_hold() {
        let salt = salt("000102030405060708090a0b0c0d0e0f");
        let own = |number| own_salt(&salt, number).unwrap().0;
        assert_eq!(own(0), "855d3b82555ea5b90c7f50936e97413a");
        assert_eq!(own(1), "af21d250473a02e769bca0ef283669a2");
        assert_eq!(own(515), "d3592fc84ce1d2e082543bc37c99a4c4");
        for (leaf, expected) in [
            (json!(null), "898e70651ca9d8699b57be6d4674d873ff586fc3124fc54daa57922661a3306b"),
            (json!(true), "4a39db7737434f981a9d3b44842da32321d040c57fb6fbabe87419ed71ffcb1c"),
            (json!(-2.5), "15e0f9c350dda690a9ef6935be83ccb3fba2569bd3a4e1eaf4941ea955a3220e"),
            (json!("ä"), "0c44fd67892c0956091ec115997fc222b2784eb2ab428ad1aff6c81af6d1b8f4"),
            (json!([]), "b46008fd2fb1aab114d3536f7d66b0a16c3c2af4d6baef97684ad92718b1b449"),
            (json!({}), "c05e4bf734522f06181be1b61b65501620161d62615f89c6726df1bd2c2a2e5c"),
        ] {
            assert_eq!(commit(&salt, &leaf).unwrap(), expected, "{leaf}");
        }
        assert_eq!(
            hex::encode(root_of(&json!({ "a": [1], "ä": "" }), &salt, None).unwrap()),
            "f179ffdd0d4929259ed7144c5f2fff2f6e4a8e6530885f6e55c5623f7015c3f1"
        );
    }

    #[test]
    fn a_salt_or_a_commitment_in_a_wrong_form_is_refused() {
        let value = json!({ "a": 1, "b": 2 });
        for wrong in ["", "5a17", "zz0102030405060708090a0b0c0d0e0f", "000102030405060708090A0B0C0D0E0F", "ä"] {
            assert_eq!(root_of(&value, &salt(wrong), None), None, "{wrong}");
            assert!(own_salt(&salt(wrong), 0).is_none() && commit(&salt(wrong), &json!(1)).is_none(), "{wrong}");
        }
        let right = Sealed {
            hidden: [("/a".to_owned(), "ab".repeat(32))].into(),
            salts: [("/b".to_owned(), salt(&"ab".repeat(16)))].into(),
        };
        let none = Salt::default();
        assert!(root_of(&value, &none, Some(&right)).is_some());
        assert_eq!(root_of(&value, &salt(&"ab".repeat(16)), Some(&right)), None, "a salt that opens what is hidden");
        for wrong in ["", "ab", &"AB".repeat(32), &"ab".repeat(33)] {
            let mut sealed = right.clone();
            sealed.hidden.insert("/a".to_owned(), wrong.to_owned());
            assert_eq!(root_of(&value, &none, Some(&sealed)), None, "{wrong}");
            let mut sealed = right.clone();
            sealed.salts.insert("/b".to_owned(), salt(wrong));
            assert_eq!(root_of(&value, &none, Some(&sealed)), None, "{wrong}");
        }
        let mut both = right.clone();
        both.salts.insert("/a".to_owned(), salt(&"ab".repeat(16)));
        assert_eq!(root_of(&value, &none, Some(&both)), None, "both for one leaf");
    }
}
