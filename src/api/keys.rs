//! The keys of programs: how a secret looks, and how it is recognized by its hash.
//!
//! A key is `csk_<name>_<secret>`. The name finds the entry in the settings, and the secret, 256 random bits, is compared by
//! its hash. It needs no slow hash: nobody can guess it.
//!
//! The file of the settings is looked at with each sign-in, so a key that is added or revoked there works or ends at once.

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::SystemTime,
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use countersign_core::hash::sha256;
use jiff::civil::Date;

use super::settings::Key;

/// The beginning of a key, by which scanners find it in texts.
const PREFIX: &str = "csk_";

/// The beginning of a hash in the settings.
const HASH: &str = "sha256:";

/// Creates a key of this name. Returns the key, and its hash for the settings.
pub fn create(name: &str) -> (String, String) {
    let key = format!("{PREFIX}{name}_{}", BASE64_URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>()));
    let hash = hash_of(&key);
    (key, format!("{HASH}{}", hex::encode(hash)))
}

/// Returns the hash that a text in the settings stands for.
pub fn parse_hash(text: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    hex::decode_to_slice(text.strip_prefix(HASH)?, &mut hash).ok()?;
    Some(hash)
}

fn hash_of(key: &str) -> [u8; 32] {
    sha256(key.as_bytes())
}

/// The keys by their names.
pub type Keys = BTreeMap<String, Key>;

/// Reads the keys in the settings again. The error says what is wrong with them.
pub type ReadKeys = Box<dyn Fn() -> Result<Keys, String> + Send + Sync>;

/// The time at which a file was changed, and its length.
type Stamp = Option<(SystemTime, u64)>;

/// The keys as they are in the settings now.
pub struct CurrentKeys {
    file: Option<PathBuf>,
    read: ReadKeys,
    known: Mutex<(Stamp, Arc<Keys>)>,
}

impl fmt::Debug for CurrentKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CurrentKeys").field("file", &self.file).finish_non_exhaustive()
    }
}

impl CurrentKeys {
    /// Returns the keys that were read from this file at the start, and are read again when it has changed.
    pub fn new(keys: Keys, file: Option<PathBuf>, read: ReadKeys) -> Self {
        let known = Mutex::new((stamp(file.as_ref()), Arc::new(keys)));
        Self { file, read, known }
    }

    /// Returns the keys. Those that were known stay if the file cannot be used.
    pub fn now(&self) -> Arc<Keys> {
        let now = stamp(self.file.as_ref());
        let mut known = self.known.lock().expect("no holder panics");
        if now.is_some() && now != known.0 {
            known.0 = now;
            match (self.read)() {
                Ok(keys) => {
                    tracing::info!(keys = keys.len(), "The keys of programs were read again");
                    known.1 = Arc::new(keys);
                }
                Err(why) => tracing::error!(
                    why,
                    "The settings changed and are wrong, so the keys of programs stay as they were"
                ),
            }
        }
        known.1.clone()
    }
}

fn stamp(file: Option<&PathBuf>) -> Stamp {
    let about = fs::metadata(file?).ok()?;
    Some((about.modified().ok()?, about.len()))
}

/// Returns the name and the settings of the key that was given, if it is valid on this day.
pub fn find<'a>(keys: &'a Keys, given: &str, today: Date) -> Option<(&'a str, &'a Key)> {
    let (name, _) = given.strip_prefix(PREFIX)?.split_once('_')?;
    let (name, key) = keys.get_key_value(name)?;
    let found = hash_of(given);
    // All hashes are compared, and each to its end.
    let known = key.hashes.iter().filter_map(|hash| parse_hash(hash));
    let is_known = known.fold(false, |is_known, hash| is_same(&hash, &found) | is_known);
    let is_over = key.last_day().is_some_and(|last| last < today);
    (is_known && !is_over).then_some((name, key))
}

/// Compares in constant time.
fn is_same(one: &[u8; 32], other: &[u8; 32]) -> bool {
    one.iter().zip(other).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_is_found_by_its_name_and_recognized_by_its_hash() {
        let (old, old_hash) = create("ci-web");
        let (new, new_hash) = create("ci-web");
        let (other, _) = create("ci-web");
        assert!(old.starts_with("csk_ci-web_") && old.len() == "csk_ci-web_".len() + 43, "{old}");
        let keys: Keys = serde_json::from_value(json!({
            "ci-web": { "hashes": [new_hash, old_hash], "expires": "2027-06-30" }, "gone": { "hashes": [] },
        }))
        .unwrap();
        let found = |key: &str, day| find(&keys, key, day).map(|(name, _)| name.to_owned());
        let today = date(2027, 6, 30);
        assert_eq!(found(&old, today).as_deref(), Some("ci-web"));
        assert_eq!(found(&new, today).as_deref(), Some("ci-web"));
        assert_eq!(found(&new, date(2027, 7, 1)), None, "it is over");
        for wrong in [&*other, &old[..old.len() - 1], "csk_gone_x", "csk_none_x", "csk_", "", "ci-web"] {
            assert_eq!(found(wrong, today), None, "{wrong}");
        }
    }
}
