//! Data that its copies share, and that is written as JSON only once.
//!
//! An action record is stored, sealed and shown several times while hardly any of it changes. Its large parts are therefore
//! [`Shared`]: a copy of one is a pointer, and the text of each form, once written, is kept. So is its hash, which stands
//! for it in seals ([`super::keyring`]).

use std::{
    cell::Cell,
    fmt::{self, Display},
    ops::{Deref, DerefMut},
    sync::{Arc, OnceLock},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};
use serde_json::value::{RawValue, to_raw_value};

use super::{canonical, digest::Hex};

/// Data that its copies share. It can be edited: a copy then becomes one of its own. As JSON it is always written compactly,
/// also by a serializer that indents.
pub struct Shared<T>(Arc<Written<T>>);

/// Data, with its texts as far as it was written.
struct Written<T> {
    data: T,
    json: OnceLock<Box<RawValue>>,
    canonical: OnceLock<Box<RawValue>>,
    /// The SHA-256 of the JSON.
    hash: OnceLock<Hex>,
}

impl<T> Written<T> {
    fn new(data: T) -> Self {
        Self { data, json: OnceLock::new(), canonical: OnceLock::new(), hash: OnceLock::new() }
    }
}

/// A clone is made in order to edit it, so the texts stay behind.
impl<T: Clone> Clone for Written<T> {
    fn clone(&self) -> Self {
        Self::new(self.data.clone())
    }
}

impl<T> Shared<T> {
    /// Returns true if both are copies of the same data, so that they need not be compared.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: Clone> Shared<T> {
    /// Returns the data, which is cloned if it has other copies.
    pub fn into_inner(self) -> T {
        Arc::unwrap_or_clone(self.0).data
    }
}

impl<T> From<T> for Shared<T> {
    fn from(data: T) -> Self {
        Self(Arc::new(Written::new(data)))
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Default> Default for Shared<T> {
    fn default() -> Self {
        T::default().into()
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.data
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        let written = Arc::make_mut(&mut self.0);
        (written.json, written.canonical, written.hash) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        &mut written.data
    }
}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || **self == **other
    }
}

impl<T: Eq> Eq for Shared<T> {}

impl<T: Serialize> Serialize for Shared<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Written { data, json, canonical, hash } = &*self.0;
        if canonical::is_written_here() {
            return known(canonical, || canonical::text(data))?.serialize(serializer);
        }
        let json = || known(json, || whole(|| to_raw_value(data)));
        if ARE_HASHED.get() {
            let hash = known(hash, || json().map(|text| Hex::digest(text.get().as_bytes())));
            return serializer.serialize_str(hash?.as_str());
        }
        json()?.serialize(serializer)
    }
}

thread_local! {
    // True while this thread writes hashes instead of shared parts. A serializer does not say what it writes.
    static ARE_HASHED: Cell<bool> = const { Cell::new(false) };
}

/// Appends `data` to `out` as compact JSON. Instead of each shared part, the SHA-256 of its text is written, as a string of
/// hexadecimal digits.
///
/// # Errors
///
/// If the data cannot be written as JSON.
pub(crate) fn write_with_hashes<T: Serialize + ?Sized>(data: &T, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    let _hashed = Parts::are_hashed(true);
    serde_json::to_writer(out, data)
}

/// Writes a part with the parts in it.
fn whole<R>(write: impl FnOnce() -> R) -> R {
    let _whole = Parts::are_hashed(false);
    write()
}

/// Sets whether this thread writes hashes, until it is dropped: also if a panic ends the writing.
struct Parts {
    were_hashed: bool,
}

impl Parts {
    fn are_hashed(now: bool) -> Self {
        Self { were_hashed: ARE_HASHED.replace(now) }
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        ARE_HASHED.set(self.were_hashed);
    }
}

/// Returns what is kept, and makes it before that if it is not there.
fn known<K, E: ser::Error, M: Display>(kept: &OnceLock<K>, make: impl FnOnce() -> Result<K, M>) -> Result<&K, E> {
    match kept.get() {
        Some(known) => Ok(known),
        None => {
            let made = make().map_err(E::custom)?;
            Ok(kept.get_or_init(|| made))
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Shared<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[derive(Serialize)]
    struct Holder<V> {
        z: V,
        a: u8,
    }

    fn both_texts<V: Serialize>(z: V) -> [String; 2] {
        let holder = Holder { z, a: 1 };
        let mut canonical = Vec::new();
        canonical::write(&holder, &mut canonical).unwrap();
        [serde_json::to_string(&holder).unwrap(), String::from_utf8(canonical).unwrap()]
    }

    fn with_hashes<V: Serialize>(data: V) -> String {
        let mut text = Vec::new();
        write_with_hashes(&data, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn its_hash_is_that_of_the_data_as_it_is_now() {
        let hash = |text: &str| format!("\"{}\"", Hex::digest(text.as_bytes()).as_str());
        let holder = |z: &Shared<Value>| with_hashes(Holder { z, a: 1 });
        let mut shared = Shared::from(json!({ "b": 1.0, "a": "ä" }));
        for _ in 0..2 {
            assert_eq!(holder(&shared), format!("{{\"z\":{},\"a\":1}}", hash(r#"{"a":"ä","b":1.0}"#)));
            let _ = both_texts(&shared);
        }
        shared["b"] = json!(2);
        assert_eq!(with_hashes(&shared), hash(r#"{"a":"ä","b":2}"#));
        assert_eq!(with_hashes(Shared::from([Shared::from(1)])), hash("[1]"), "a part has its own parts in it");
        assert_eq!(both_texts(&shared)[0], r#"{"z":{"a":"ä","b":2},"a":1}"#);
    }

    #[test]
    fn it_is_written_like_its_data_in_each_form_each_time() {
        let data = json!({ "b": [1.0, { "z": null, "y": "ä\n" }], "a": {} });
        let shared = Shared::from(data.clone());
        for _ in 0..2 {
            assert_eq!(both_texts(&shared), both_texts(&data));
            assert_eq!(serde_json::to_value(&shared).unwrap(), data);
        }
        assert_eq!(serde_json::from_value::<Shared<Value>>(data.clone()).unwrap(), shared);
    }

    #[test]
    fn an_edit_changes_one_copy_and_is_written() {
        let first = Shared::from(json!({ "a": 1 }));
        let mut second = first.clone();
        assert!(second.is_same(&first));
        let before = both_texts(&first);
        second["a"] = json!(2);
        assert_eq!((both_texts(&first), both_texts(&second)), (before, both_texts(json!({ "a": 2 }))));
        let mut alone = Shared::from(json!([]));
        let _ = both_texts(&alone);
        alone.as_array_mut().unwrap().push(json!(1));
        assert_eq!(both_texts(&alone), both_texts(json!([1])));
    }

    #[test]
    fn data_without_a_canonical_form_has_none_when_it_is_shared() {
        let large = Shared::from(json!((1_u64 << 53) + 1));
        for _ in 0..2 {
            assert!(canonical::write(&large, &mut Vec::new()).is_err());
            assert_eq!(serde_json::to_string(&large).unwrap(), "9007199254740993");
        }
    }
}
