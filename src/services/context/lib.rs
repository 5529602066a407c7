//! The context of a mail: similar mails, the sender's contact, and the calendar.
//!
//! [`gather::Context`] asks all sources at once, and each of them fails alone. Start reading there.
//!
//! - [`store`] keeps texts and contacts, and finds similar texts: [`sqlite`] in a file, [`postgres`] in a database.
//!   With an embedding the search compares vectors; without one it compares words, and the result says which.
//! - [`contacts`] knows people: in the store, or in [`hubspot`].
//! - [`calendar`] knows free times and events; [`calendar::free`] is the pure part.
//! - [`embed`] is the trait of whatever turns a text into a vector. This crate contains none.
//!
//! Texts, names and addresses are never logged. This crate does not know what a mail is; it receives texts, addresses
//! and ids.

pub mod calendar;
mod calls;
pub mod contact;
pub mod contacts;
pub mod embed;
pub mod error;
pub mod gather;
pub mod hubspot;
pub mod item;
pub mod postgres;
pub mod sqlite;
pub mod store;
mod words;

pub use self::{
    contact::Contact,
    contacts::Contacts,
    embed::{Embedded, Embedder, EmbeddingUsage},
    error::ContextError,
    gather::Context,
    item::{Embedding, Item, Kind},
    store::ContextStore,
};
