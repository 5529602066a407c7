//! The commitments of version 3. The salts of leaves and the commitments to them are the same in version 4.

use countersign_core::hash::sha256;
use serde_json::Value;

use super::{Leaf, Salt, Sealed};
use crate::digest;

/// The length of a leaf's salt.
const SALT: usize = 16;

/// Returns the salt of the leaf with this number. `None` if the entry has no salt of 16 bytes.
pub(super) fn own_salt(salt: &Salt, number: usize) -> Option<Salt> {
    let pair = pair_of_salts(&salt.bytes()?, u32::try_from(number / 2).ok()?);
    Some(Salt::of(&pair[number % 2]))
}

/// Returns the commitment to a leaf. `None` if its own salt is not 16 bytes.
pub(super) fn commit(own: &Salt, leaf: &Value) -> Option<String> {
    Some(hex::encode(commitment(&own.bytes()?, leaf, &mut Vec::new())))
}

/// Returns the hash of all leaves. `None` unless there is a salt or a commitment for each leaf, and never both.
pub(crate) fn root(mut leaves: Vec<Leaf<'_>>, salt: &Salt, sealed: Option<&Sealed>) -> Option<[u8; 32]> {
    leaves.sort_unstable_by(|a, b| a.place.cmp(&b.place));
    let mut listed = Vec::with_capacity(64 * leaves.len());
    let mut space = Vec::with_capacity(256);
    match sealed {
        None => {
            let salt = salt.bytes()?;
            for (number, two) in (0..).zip(leaves.chunks(2)) {
                let salts = pair_of_salts(&salt, number);
                for (leaf, own) in two.iter().zip(&salts) {
                    list(leaf, &commitment(own, leaf.value, &mut space), &mut listed)?;
                }
            }
        }
        Some(sealed) => {
            if !salt.is_none() || sealed.hidden.len() + sealed.salts.len() != leaves.len() {
                return None;
            }
            for leaf in &leaves {
                let commitment = match sealed.hidden.get(&leaf.place) {
                    Some(stored) => digest::from_hex(stored)?,
                    None => commitment(&sealed.salts.get(&leaf.place)?.bytes()?, leaf.value, &mut space),
                };
                list(leaf, &commitment, &mut listed)?;
            }
        }
    }
    Some(sha256(&listed))
}

/// Returns the salts of the leaves `2 * number` and `2 * number + 1`.
pub(super) fn pair_of_salts(salt: &[u8; SALT], number: u32) -> [[u8; SALT]; 2] {
    let mut hashed = [0; SALT + 4];
    hashed[..SALT].copy_from_slice(salt);
    hashed[SALT..].copy_from_slice(&number.to_be_bytes());
    let pair = sha256(&hashed);
    let (halves, _) = pair.as_chunks();
    [halves[0], halves[1]]
}

/// Returns the commitment to a leaf. `space` is reused for each: an entry has dozens of leaves.
pub(super) fn commitment(own: &[u8; SALT], leaf: &Value, space: &mut Vec<u8>) -> [u8; 32] {
    space.clear();
    space.extend_from_slice(own);
    digest::encode_leaf(leaf, space);
    sha256(space)
}

/// Adds a leaf to the list whose hash is the root. `None` if it lies too deep to be read again.
fn list(Leaf { place, lists, .. }: &Leaf<'_>, commitment: &[u8; 32], listed: &mut Vec<u8>) -> Option<()> {
    let steps = u32::try_from(place.bytes().filter(|byte| *byte == b'/').count()).ok()?;
    if steps > u128::BITS {
        return None;
    }
    listed.extend_from_slice(&u32::try_from(place.len()).ok()?.to_be_bytes());
    listed.extend_from_slice(place.as_bytes());
    listed.extend((0..steps).map(|step| if lists >> step & 1 == 1 { b'a' } else { b'o' }));
    listed.extend_from_slice(commitment);
    Some(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::leaves, *};

    fn salt(text: &str) -> Salt {
        Salt(text.to_owned())
    }

    /// The vectors were computed without this program, from the description of the version.
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
            hex::encode(root(leaves(&json!({ "a": [1], "ä": "" })), &salt, None).unwrap()),
            "37186eab4d2978a4bfdc8ea377c59c54c7790428938bc85e733ed7abf360a0b6"
        );
    }

    #[test]
    fn a_salt_or_a_commitment_in_a_wrong_form_is_refused() {
        let value = json!({ "a": 1, "b": 2 });
        for wrong in ["", "5a17", "zz0102030405060708090a0b0c0d0e0f", "000102030405060708090A0B0C0D0E0F", "ä"] {
            assert_eq!(root(leaves(&value), &salt(wrong), None), None, "{wrong}");
            assert!(own_salt(&salt(wrong), 0).is_none() && commit(&salt(wrong), &json!(1)).is_none(), "{wrong}");
        }
        let right = Sealed {
            hidden: [("/a".to_owned(), "ab".repeat(32))].into(),
            salts: [("/b".to_owned(), salt(&"ab".repeat(16)))].into(),
        };
        let none = Salt::default();
        assert!(root(leaves(&value), &none, Some(&right)).is_some());
        assert_eq!(
            root(leaves(&value), &salt(&"ab".repeat(16)), Some(&right)),
            None,
            "a salt that opens what is hidden"
        );
        for wrong in ["", "ab", &"AB".repeat(32), &"ab".repeat(33)] {
            let mut sealed = right.clone();
            sealed.hidden.insert("/a".to_owned(), wrong.to_owned());
            assert_eq!(root(leaves(&value), &none, Some(&sealed)), None, "{wrong}");
            let mut sealed = right.clone();
            sealed.salts.insert("/b".to_owned(), salt(wrong));
            assert_eq!(root(leaves(&value), &none, Some(&sealed)), None, "{wrong}");
        }
        let mut both = right.clone();
        both.salts.insert("/a".to_owned(), salt(&"ab".repeat(16)));
        assert_eq!(root(leaves(&value), &none, Some(&both)), None, "both for one leaf");
    }
}
