//! The notes of a person: one register of the store, changed by compare-and-set. It is sealed, so that
//! write access to the store without the key is not enough to forge a note.

use std::{fmt, sync::Arc};

use countersign_core::{
    clock::{Clock, Timestamp},
    ids::UserId,
};
use countersign_graph::store::{Error, Store, TypedRegister};
use serde::{Deserialize, Serialize};

/// The prefix of the keys of the registers with notes; the person's id follows.
pub const KEYS: &str = "memory:";
/// The maximum number of notes of a person.
pub const MAX_NOTES: usize = 20;
/// The maximum length of a note, in characters.
pub const MAX_LENGTH: usize = 300;

/// One note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The note in the person's words.
    pub text: String,
    /// The time of writing.
    pub at: Timestamp,
}

/// The notes of all people, in the store.
pub struct Notes {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notes")
    }
}

/// The reason why notes could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum NotesError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] Error),
    /// There is no room for another note.
    #[error("there are {MAX_NOTES} notes")]
    Full,
}

impl Notes {
    /// Opens the notes in this store.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// Returns the notes of a person, oldest first.
    ///
    /// # Errors
    ///
    /// Fails if the store isn't answering, or its content cannot be read.
    pub async fn of(&self, person: &UserId) -> Result<Vec<Note>, Error> {
        Ok(self.register(person).load().await?.1)
    }

    /// Adds a note, also in place of an earlier one. Adding the same one again changes nothing.
    ///
    /// # Errors
    ///
    /// Fails if there are [`MAX_NOTES`] notes, if the store fails, or if others change the notes at every attempt.
    pub async fn add(&self, person: &UserId, text: &str, instead_of: Option<&str>) -> Result<(), NotesError> {
        let at = self.clock.now();
        let register = self.register(person);
        let added = register.change(|notes| {
            notes.retain(|note| Some(note.text.as_str()) != instead_of || note.text == text);
            if notes.iter().any(|note| note.text == text) {
                return Ok(());
            }
            if notes.len() >= MAX_NOTES {
                return Err(NotesError::Full);
            }
            notes.push(Note { text: text.to_owned(), at });
            Ok(())
        });
        added.await?
    }

    /// Deletes these notes. Those that no longer exist are ignored.
    ///
    /// # Errors
    ///
    /// Fails if the store fails, or if others change the notes at every attempt.
    pub async fn remove(&self, person: &UserId, texts: &[String]) -> Result<(), NotesError> {
        Ok(self.register(person).change(|notes| notes.retain(|note| !texts.contains(&note.text))).await?)
    }

    /// Returns the register with the notes of a person.
    fn register(&self, person: &UserId) -> TypedRegister<Vec<Note>> {
        TypedRegister::new(self.store.clone(), key(person))
    }
}

/// Returns the key of a person's register.
fn key(person: &UserId) -> String {
    format!("{KEYS}{}", person.as_str())
}
