//! The commitments of version 4.

use std::iter;

use countersign_core::hash::sha256;
use serde_json::{Map, Value};

use super::{Salt, Sealed, leaves_at, third};
use crate::digest;

/// The maximum number of steps to a leaf. A value that lies deeper could not be read again.
const MAX_STEPS: usize = 124;

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
                for (leaf, own) in iter::zip(two, third::pair_of_salts(&salt, number)) {
                    hashed.extend_from_slice(&third::commitment(&own, leaf, &mut space));
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
                    None => third::commitment(&sealed.salts.get(&leaf.place)?.bytes()?, leaf.value, &mut space),
                };
                hashed.extend_from_slice(&commitment);
            }
        }
    }
    Some(sha256(&hashed))
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

/// Returns the members of an object, sorted by the bytes of their names.
pub(super) fn sorted(members: &Map<String, Value>) -> impl ExactSizeIterator<Item = (&str, &Value)> {
    let mut members: Vec<_> = members.iter().map(|(name, value)| (name.as_str(), value)).collect();
    members.sort_unstable_by_key(|(name, _)| *name);
    members.into_iter()
}

fn length(length: usize, out: &mut Vec<u8>) -> Option<()> {
    out.extend_from_slice(&u32::try_from(length).ok()?.to_be_bytes());
    Some(())
}
