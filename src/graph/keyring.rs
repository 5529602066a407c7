//! The keys for digests and seals, which are stored outside the store.
//!
//! A person with write access to the store but without a key can forge neither a digest for other
//! parameters nor a record of a false decision: both are HMAC-SHA-256 over the values in one of the
//! forms of [`super::digest`]. The first key of a [`Keyring`] signs, and all of
//! them verify. To rotate keys, a new key is put first; cards made with the previous key stay valid
//! as long as it stays in the list.
//!
//! Three kinds of data are protected:
//!
//! - a change, by its *digest*, which is shown on the card: its action, thread, requester,
//!   parameters, preconditions and policy;
//! - a record, by its *seal*: every field, including its status, its decisions and the card. The
//!   seal is recomputed with each write (`countersign_store::sealed`);
//! - other data that can lead to a change, also by a seal: clicks that wait to be handled, and
//!   standing approvals.
//!
//! Such a person can still delete records, and restore an earlier state of the entire store.

use std::fmt;

use countersign_core::SmolStr;
use ring::{
    digest::{Context, SHA256},
    hmac,
};
use serde::{Deserialize, Serialize};

use super::{
    action::ActionRecord,
    digest::{Digest, Form},
};

/// The versions of digests, the preferred one first. They differ only in the form of the values.
const DIGESTS: [(u32, Form); 2] = [(3, Form::Canonical), (2, Form::Tagged)];

/// The versions of seals, the preferred one first. They differ only in the form of the values.
const SEALS: [(u32, Form); 3] = [(4, Form::HashedParts), (3, Form::Canonical), (2, Form::Tagged)];

/// The minimum length of a key, in bytes: the length of a digest.
pub const MIN_KEY_BYTES: usize = 32;

/// The name of a key: the first 8 hexadecimal digits of its hash. It is not secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyId(SmolStr);

impl KeyId {
    /// Returns the name as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The key and the version that a digest or a seal was made with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keyed {
    /// The version, which determines the form of the values.
    pub version: u32,
    /// The key.
    pub key: KeyId,
}

/// A seal, which proves that its value was not changed by anyone without the key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowSeal {
    /// The key and the version.
    #[serde(flatten)]
    pub by: Keyed,
    /// HMAC-SHA-256, in hexadecimal.
    pub mac: Digest,
}

/// The result of checking a record's origin. It is not part of the record: it is never stored, and
/// it is ignored in comparisons of records.
#[derive(Clone, Debug, Default, Eq)]
pub enum Proof {
    /// Made by this process, or read with a valid seal and a valid digest.
    Ours,
    /// Sealed, and changed afterwards.
    Altered,
    /// Sealed with a key that this process does not have.
    KeyMissing(KeyId),
    /// Not sealed: written by an earlier version, or by another program.
    #[default]
    Unsealed,
}

impl PartialEq for Proof {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Proof {
    /// Returns true if the record may be carried out.
    pub fn holds(&self) -> bool {
        matches!(self, Self::Ours)
    }

    /// Describes the fault and its consequence for people, in two sentences; `None` if there is no
    /// fault.
    pub fn objection(&self) -> Option<String> {
        match self {
            Self::Ours => None,
            Self::Altered => Some("The stored request differs from what the card shows, so nothing was done.".to_owned()),
            Self::KeyMissing(key) => Some(format!(
                "This card was signed with digest key {key}, which is no longer configured, so nothing was done. Ask again for a new card, or have the key restored.",
            )),
            Self::Unsealed => Some(
                "This card has no seal, so nothing was done. It was made by an earlier version or by another program. Ask again for a new card."
                    .to_owned(),
            ),
        }
    }
}

/// One key.
#[derive(Clone)]
struct Key {
    id: KeyId,
    secret: hmac::Key,
}

/// A list of keys. The first one signs, and all of them verify.
#[derive(Clone)]
pub struct Keyring(Vec<Key>);

impl PartialEq for Keyring {
    fn eq(&self, other: &Self) -> bool {
        self.0.iter().map(|key| &key.id).eq(other.0.iter().map(|key| &key.id))
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|key| key.id.as_str())).finish()
    }
}

/// The reason why a keyring cannot be created.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum KeyringError {
    /// There is no key.
    #[error("there is no digest key")]
    Empty,
    /// A key is too short.
    #[error("digest key {nth} has {bytes} bytes; expected at least {MIN_KEY_BYTES}")]
    Short {
        /// The position of the key in the list, starting at 1.
        nth: usize,
        /// The length in bytes.
        bytes: usize,
    },
}

impl Keyring {
    /// Creates a keyring from secrets; the first one signs.
    ///
    /// # Errors
    ///
    /// If there are no secrets, or one is shorter than [`MIN_KEY_BYTES`].
    pub fn new(secrets: Vec<Vec<u8>>) -> Result<Self, KeyringError> {
        if secrets.is_empty() {
            return Err(KeyringError::Empty);
        }
        let keys = secrets.into_iter().enumerate().map(|(n, secret)| {
            if secret.len() < MIN_KEY_BYTES {
                return Err(KeyringError::Short { nth: n + 1, bytes: secret.len() });
            }
            let mut hash = Context::new(&SHA256);
            hash.update(b"countersign digest key");
            hash.update(&secret);
            let id = KeyId(hex::encode(&hash.finish().as_ref()[..4]).into());
            Ok(Key { id, secret: hmac::Key::new(hmac::HMAC_SHA256, &secret) })
        });
        keys.collect::<Result<_, _>>().map(Self)
    }

    /// Returns the key that signs.
    pub fn newest(&self) -> &KeyId {
        &self.signing().id
    }

    /// Returns the other keys, which only verify.
    pub fn older(&self) -> impl Iterator<Item = &KeyId> {
        self.0.iter().skip(1).map(|key| &key.id)
    }

    /// Returns true if the keyring has this key.
    pub fn has(&self, id: &KeyId) -> bool {
        self.find(id).is_some()
    }

    fn signing(&self) -> &Key {
        self.0.first().expect("a keyring has a key")
    }

    fn find(&self, id: &KeyId) -> Option<&Key> {
        self.0.iter().find(|key| key.id == *id)
    }

    /// Computes the digest of a change and stores it in the record.
    pub fn sign(&self, record: &mut ActionRecord) {
        let key = self.signing();
        let (version, digest) = preferred(&DIGESTS, |version| digest(key, version, record));
        record.digest = digest;
        record.keyed = Some(Keyed { version, key: key.id.clone() });
    }

    /// Returns true if the digest of a record matches its contents. Records of the first version
    /// have a digest without a key.
    pub fn digest_holds(&self, record: &ActionRecord) -> bool {
        match &record.keyed {
            None => record.computed_digest() == record.digest,
            Some(Keyed { version, key }) => {
                let expected = self.find(key).and_then(|key| digest(key, *version, record));
                expected.is_some_and(|expected| expected.is(&record.digest))
            }
        }
    }

    /// Seals a value for a purpose; the seal is invalid for any other purpose. All values for a purpose must be of one type.
    pub fn seal<T: Serialize + ?Sized>(&self, purpose: &str, value: &T) -> RowSeal {
        let key = self.signing();
        let (version, mac) = preferred(&SEALS, |version| mac(key, version, purpose, value));
        RowSeal { by: Keyed { version, key: key.id.clone() }, mac }
    }

    /// Checks a seal.
    pub fn proof<T: Serialize + ?Sized>(&self, purpose: &str, value: &T, seal: Option<&RowSeal>) -> Proof {
        let Some(RowSeal { by, mac: sealed }) = seal else { return Proof::Unsealed };
        match self.find(&by.key) {
            None => Proof::KeyMissing(by.key.clone()),
            Some(key) if mac(key, by.version, purpose, value).is_some_and(|mac| mac.is(sealed)) => Proof::Ours,
            Some(_) => Proof::Altered,
        }
    }
}

/// Computes a digest in the first version that can represent the values. Returns the version and
/// the digest.
fn preferred(versions: &[(u32, Form)], make: impl Fn(u32) -> Option<Digest>) -> (u32, Digest) {
    let first = versions.iter().find_map(|(version, _)| Some((*version, make(*version)?)));
    first.expect("the last form can represent all values")
}

/// Computes a digest of a list in one of these versions; `None` if there is no such version, or its form cannot
/// represent the list.
fn in_version<L: Serialize>(versions: &[(u32, Form)], key: &Key, version: u32, list: &L) -> Option<Digest> {
    let (_, form) = versions.iter().find(|(known, _)| *known == version)?;
    Digest::keyed(&key.secret, *form, list)
}

fn digest(key: &Key, version: u32, record: &ActionRecord) -> Option<Digest> {
    let ActionRecord { id, thread, name, action_version, parameters, preconditions, policy, requested_by, .. } = record;
    let (purpose, thread) = (("digest", version), thread.to_string());
    let list = (purpose, id, thread, requested_by, name, action_version, parameters, preconditions, policy);
    in_version(&DIGESTS, key, version, &list)
}

fn mac<T: Serialize + ?Sized>(key: &Key, version: u32, purpose: &str, value: &T) -> Option<Digest> {
    in_version(&SEALS, key, version, &(("seal", version, purpose), value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ring(keys: &[u8]) -> Keyring {
        Keyring::new(keys.iter().map(|byte| vec![*byte; 32]).collect()).unwrap()
    }

    #[test]
    fn a_seal_is_valid_only_for_its_own_purpose_and_value() {
        let keys = ring(&[1]);
        let (value, other) = (json!({ "a": 1 }), json!({ "a": 2 }));
        let seal = keys.seal("action", &value);
        let proof = |keys: &Keyring, purpose, value, seal| keys.proof(purpose, value, seal);
        assert!(proof(&keys, "action", &value, Some(&seal)).holds());
        assert!(matches!(proof(&keys, "action", &other, Some(&seal)), Proof::Altered));
        assert!(matches!(proof(&keys, "desk", &value, Some(&seal)), Proof::Altered));
        assert!(matches!(proof(&keys, "action", &value, None), Proof::Unsealed));
        assert!(
            matches!(proof(&ring(&[2]), "action", &value, Some(&seal)), Proof::KeyMissing(key) if key == seal.by.key)
        );
        assert!(proof(&ring(&[2, 1]), "action", &value, Some(&seal)).holds(), "a new key was put first");
    }

    #[test]
    fn a_seal_is_bound_to_its_version() {
        let keys = ring(&[1]);
        for value in [&json!({ "a": 1 }), &json!({ "a": (1_u64 << 53) + 1 })] {
            let seal = keys.seal("action", value);
            assert_eq!(seal.by.version, 4);
            assert!(keys.proof("action", value, Some(&seal)).holds());
            for other in [0, 1, 2, 3, 4, 5] {
                let by = Keyed { version: other, ..seal.by.clone() };
                let proof = keys.proof("action", value, Some(&RowSeal { by, mac: seal.mac.clone() }));
                assert_eq!(proof.holds(), other == 4, "version {other} of {value}");
            }
        }
        let seal = keys.seal("action", &json!({ "a": (1_u64 << 53) as f64 }));
        let neighbor = json!({ "a": (1_u64 << 53) + 1 });
        assert!(
            !keys.proof("action", &neighbor, Some(&seal)).holds(),
            "a different number that is the same as a double"
        );
    }

    #[test]
    fn the_debug_output_of_a_keyring_shows_only_the_names_of_keys() {
        let keys = ring(&[1, 2]);
        assert_eq!(keys.older().count(), 1);
        let shown = format!("{keys:?}");
        assert!(shown.contains(keys.newest().as_str()) && !shown.contains("0101"), "{shown}");
        assert_eq!(Keyring::new(Vec::new()).unwrap_err(), KeyringError::Empty);
        assert_eq!(Keyring::new(vec![vec![0; 31]]).unwrap_err(), KeyringError::Short { nth: 1, bytes: 31 });
    }
}
