//! Memory: notes about people, kept at their own request.
//!
//! A note is written by [`remember`] and deleted by [`forget`]. Both show a card, which only the person whose notes
//! they are can decide. [`recall`] shows people only their own notes. [`notes`] stores them, one register
//! of the store for each person.
//!
//! A note is used if a request leaves something out ([`countersign_capabilities::Capability::notes`]), and the card
//! then says so. Notes are never taken from another person's words, nor from words that the person did not ask to be
//! remembered.
//!
//! This crate knows no platforms and no threads. Start reading at [`notes`].

pub mod forget;
pub mod notes;
mod phrases;
pub mod recall;
pub mod remember;
mod replies;

use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use countersign_capabilities::{Capability, CapabilityInfo, Family, Tool};
use countersign_core::{
    ids::{ChannelId, UserId},
    reply::Reply,
};
use countersign_graph::action::ActionKind;

use self::notes::Notes;

/// The names of the actions, for settings.
pub const ACTIONS: [&str; 2] = [remember::NAME, forget::NAME];

/// The capability of memory.
pub struct Memory(pub Arc<Notes>);

#[async_trait]
impl Capability for Memory {
    fn info(&self) -> CapabilityInfo {
        CapabilityInfo {
            phrases: Some(&phrases::OfMemory),
            ..CapabilityInfo::new("memory", "Notes about a person, kept because the person asked for it.")
        }
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![Arc::new(recall::tool(self.0.clone()))]
    }

    fn actions(&self) -> Vec<Arc<dyn ActionKind>> {
        vec![Arc::new(remember::action(self.0.clone())), Arc::new(forget::action(self.0.clone()))]
    }

    fn families(&self) -> Vec<Family> {
        let family = Family::new("memory", "notes that a person asked to be remembered: write, list, delete them");
        vec![family.tools([recall::NAME]).actions(ACTIONS)]
    }

    async fn notes(&self, person: &UserId) -> Vec<String> {
        let notes = self.0.of(person).await.unwrap_or_else(|error| {
            tracing::warn!(error = countersign_core::cause::chain(&error), "The notes about a person cannot be read");
            Vec::new()
        });
        notes.into_iter().map(|note| note.text).collect()
    }

    async fn home_of(&self, person: &UserId, _: &BTreeSet<ChannelId>) -> Option<Reply> {
        let notes = self.0.of(person).await.ok()?;
        (!notes.is_empty()).then(|| replies::in_home(&notes))
    }
}
