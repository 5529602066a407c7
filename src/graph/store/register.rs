//! Small values that belong to no thread.

use std::{
    fmt,
    future::{Future, ready},
    marker::PhantomData,
    sync::Arc,
};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{Error, Store};

/// The maximum number of attempts at a change while others change the same register.
const MAX_TRIES: u32 = 20;

/// The value of a register, and the number of times that it was set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Register {
    /// The number of times that the register was set; 0 if never. A caller that sets it must pass
    /// this number.
    pub revision: u64,
    /// The current value; null if it was never set.
    pub value: Value,
}

/// A register whose value is a `T`, and the default of `T` as long as it was never set.
pub struct TypedRegister<T> {
    store: Arc<dyn Store>,
    key: String,
    value: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for TypedRegister<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TypedRegister").field(&self.key).finish()
    }
}

impl<T: Serialize + DeserializeOwned + Default + Send> TypedRegister<T> {
    /// Returns the register with this key.
    pub fn new(store: Arc<dyn Store>, key: impl Into<String>) -> Self {
        Self { store, key: key.into(), value: PhantomData }
    }

    /// Returns the revision and the value.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if the store did not answer; [`Error::Corrupt`] if the value is not a `T`.
    pub async fn load(&self) -> Result<(u64, T), Error> {
        self.read(self.store.register(&self.key).await?)
    }

    /// Returns the revision and the value of this register, as the store returned it.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if the value is not a `T`.
    pub fn read(&self, Register { revision, value }: Register) -> Result<(u64, T), Error> {
        if value.is_null() {
            return Ok((revision, T::default()));
        }
        let value = serde_json::from_value(value).map_err(|error| self.corrupt(&error))?;
        Ok((revision, value))
    }

    /// Sets the value unless another process has set it since this revision. Returns false if one has.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if the store did not answer: the value may have been set.
    pub async fn set(&self, revision: u64, value: &T) -> Result<bool, Error> {
        self.store.set_register(&self.key, revision, &self.stored(value)?).await
    }

    /// Changes the value. If another process sets it in the meantime, `change` is called again with the new value. Nothing
    /// is written if the value stays the same.
    ///
    /// # Errors
    ///
    /// As [`Self::load`], and [`Error::Unavailable`] if others set the value at every attempt. The call can be repeated.
    pub async fn change<A: Send>(&self, mut change: impl FnMut(&mut T) -> A + Send) -> Result<A, Error> {
        let changed = self.change_with(|mut value| {
            let answer = change(&mut value);
            ready(Ok((value, answer)))
        });
        changed.await
    }

    /// Like [`Self::change`], for a change that takes time, such as one that reads something else: `change` returns the new
    /// value and an answer. If it fails, nothing is written.
    ///
    /// # Errors
    ///
    /// As [`Self::change`], and the errors of `change`.
    pub async fn change_with<A: Send, F>(&self, mut change: impl FnMut(T) -> F + Send) -> Result<A, Error>
    where
        F: Future<Output = Result<(T, A), Error>> + Send,
    {
        for _ in 0..MAX_TRIES {
            let (revision, value) = self.load().await?;
            let before = self.stored(&value)?;
            let (value, answer) = change(value).await?;
            let after = self.stored(&value)?;
            if after == before || self.store.set_register(&self.key, revision, &after).await? {
                return Ok(answer);
            }
        }
        Err(Error::Unavailable(format!("other processes keep changing the register `{}`", self.key).into()))
    }

    fn stored(&self, value: &T) -> Result<Value, Error> {
        serde_json::to_value(value).map_err(|error| self.corrupt(&error))
    }

    fn corrupt(&self, error: &serde_json::Error) -> Error {
        Error::Corrupt { what: format!("the register `{}`: {error}", self.key) }
    }
}
