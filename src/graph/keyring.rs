//! The keys for digests and seals, which are stored outside the store.
//!
//! A person with write access to the store but without a key can forge neither a digest for other
//! parameters nor a record of a false decision: both are HMAC-SHA-256 over the values in one of the
//! forms of [`super::digest`]. Both name the version of their form, which is 1, and cover it; one of
//! another version is refused. A field added to a record is absent from the JSON, and so from the seal,
//! until it has a value; anything else that changes what is hashed takes the next version. The first key of a [`Keyring`] signs, and all of
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

use super::{action::ActionRecord, digest::Digest};

/// The version of the form of digests and seals.
const VERSION: u32 = 1;

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
    /// The version of the form of the values.
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
    /// Sealed in a version of the form that this program does not know.
    UnknownVersion(u32),
    /// Not sealed: the seal was removed, or another program wrote it.
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
            Self::UnknownVersion(version) => Some(format!(
                "This card has a seal of version {version}, which this program does not know, so nothing was done. Ask again for a new card.",
            )),
            Self::Unsealed => Some(
                "This card has no seal, so nothing was done: the seal was removed, or another program made the card. Ask again for a new card."
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

    /// Returns the key and version of what is signed now.
    pub(crate) fn signs(&self) -> Keyed {
        Keyed { version: VERSION, key: self.newest().clone() }
    }

    fn signing(&self) -> &Key {
        self.0.first().expect("a keyring has a key")
    }

    fn find(&self, id: &KeyId) -> Option<&Key> {
        self.0.iter().find(|key| key.id == *id)
    }

    /// Computes the digest of a change and stores it in the record.
    pub fn sign(&self, record: &mut ActionRecord) {
        record.keyed = self.signs();
        record.digest = digest(self.signing(), record);
    }

    /// Checks the digest of a record.
    pub fn digest_proof(&self, record: &ActionRecord) -> Proof {
        self.compared(&record.keyed, &record.digest, |key| digest(key, record))
    }

    /// Seals a value for a purpose; the seal is invalid for any other purpose. All values for a purpose must be of one type.
    pub fn seal<T: Serialize + ?Sized>(&self, purpose: &str, value: &T) -> RowSeal {
        RowSeal { by: self.signs(), mac: mac(self.signing(), purpose, value) }
    }

    /// Returns a secret for another purpose from each key, with the name of the key; the first one is that of the key
    /// that signs. It tells nothing about the key itself.
    pub fn derived(&self, purpose: &str) -> Vec<(&KeyId, [u8; 32])> {
        let of = |key: &Key| {
            let tag = hmac::sign(&key.secret, format!("derived\0{purpose}").as_bytes());
            tag.as_ref().try_into().expect("a tag has 32 bytes")
        };
        self.0.iter().map(|key| (&key.id, of(key))).collect()
    }

    /// Checks a seal.
    pub fn proof<T: Serialize + ?Sized>(&self, purpose: &str, value: &T, seal: Option<&RowSeal>) -> Proof {
        let Some(seal) = seal else { return Proof::Unsealed };
        self.compared(&seal.by, &seal.mac, |key| mac(key, purpose, value))
    }

    /// Compares a digest with the right one for its key.
    fn compared(&self, by: &Keyed, found: &Digest, right: impl Fn(&Key) -> Digest) -> Proof {
        match self.find(&by.key) {
            None => Proof::KeyMissing(by.key.clone()),
            Some(_) if by.version != VERSION => Proof::UnknownVersion(by.version),
            Some(key) if right(key).is(found) => Proof::Ours,
            Some(_) => Proof::Altered,
        }
    }
}

fn digest(Key { secret, .. }: &Key, record: &ActionRecord) -> Digest {
    let ActionRecord { id, thread, name, action_version, parameters, preconditions, policy, requested_by, .. } = record;
    let (purpose, thread) = (("digest", VERSION), thread.to_string());
    Digest::of_change(
        secret,
        &(purpose, id, thread, requested_by, name, action_version, parameters, preconditions, policy),
    )
}

fn mac<T: Serialize + ?Sized>(Key { secret, .. }: &Key, purpose: &str, value: &T) -> Digest {
    Digest::of_sealed(secret, &(("seal", VERSION, purpose), value))
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
    fn a_seal_of_another_version_is_refused() {
        let keys = ring(&[1]);
        for value in [&json!({ "a": 1 }), &json!({ "a": (1_u64 << 53) + 1 })] {
            let seal = keys.seal("action", value);
            assert_eq!(seal.by.version, 1);
            assert!(keys.proof("action", value, Some(&seal)).holds());
            for other in [0, 2] {
                let by = Keyed { version: other, ..seal.by.clone() };
                let proof = keys.proof("action", value, Some(&RowSeal { by, mac: seal.mac.clone() }));
                assert!(matches!(proof, Proof::UnknownVersion(found) if found == other), "{proof:?}");
                assert_eq!(
                    proof.objection().unwrap(),
                    format!(
                        "This card has a seal of version {other}, which this program does not know, so nothing was done. Ask again for a new card."
                    )
                );
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
