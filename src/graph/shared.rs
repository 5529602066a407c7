//! Data that its copies share, and that is written as JSON only once.
//!
//! An action record is stored, sealed and shown several times while hardly any of it changes. Its large parts are therefore
//! [`Shared`]: a copy of one is a pointer, and the text of each form, once written, is kept.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    sync::{Arc, OnceLock},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};
use serde_json::value::{RawValue, to_raw_value};

use super::canonical;

/// Data that its copies share. It can be edited: a copy then becomes one of its own. As JSON it is always written compactly,
/// also by a serializer that indents.
pub struct Shared<T>(Arc<Written<T>>);

/// Data, with its texts as far as it was written.
struct Written<T> {
    data: T,
    json: OnceLock<Box<RawValue>>,
    canonical: OnceLock<Box<RawValue>>,
}

impl<T> Written<T> {
    fn new(data: T) -> Self {
        Self { data, json: OnceLock::new(), canonical: OnceLock::new() }
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
        (written.json, written.canonical) = (OnceLock::new(), OnceLock::new());
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
        let Written { data, json, canonical } = &*self.0;
        let (known, write): (_, fn(&T) -> _) = match canonical::is_written_here() {
            true => (canonical, canonical::text),
            false => (json, to_raw_value),
        };
        match known.get() {
            Some(text) => text.serialize(serializer),
            None => {
                let text = write(data).map_err(ser::Error::custom)?;
                known.get_or_init(|| text).serialize(serializer)
            }
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
