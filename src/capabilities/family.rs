//! Families: which tools and actions of a capability are offered to a language model together.
//!
//! Each request of a model carries the schemas of what it may call, and most requests need one kind of thing. So a
//! capability divides what it brings, names each part in the words a model chooses by, and only the parts that a request
//! needs are sent.

use std::collections::BTreeSet;

/// A part of what a capability brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// Its name, by which a model asks for it.
    pub name: &'static str,
    /// The wider name that several families share, where they are one thing for people; else its own.
    pub within: &'static str,
    /// What it serves, in a few words.
    pub purpose: &'static str,
    /// Its reading tools. A tool may be in several families.
    pub tools: Vec<&'static str>,
    /// Its actions.
    pub actions: Vec<&'static str>,
    /// Whether it is offered when nothing is known of a request yet.
    pub often: bool,
}

impl Family {
    /// A family of this name, empty so far.
    pub fn new(name: &'static str, purpose: &'static str) -> Self {
        Self { name, within: name, purpose, tools: Vec::new(), actions: Vec::new(), often: false }
    }

    /// As a part of something wider.
    #[must_use]
    pub fn within(self, wider: &'static str) -> Self {
        Self { within: wider, ..self }
    }

    /// With these reading tools.
    #[must_use]
    pub fn tools(self, tools: impl IntoIterator<Item = &'static str>) -> Self {
        Self { tools: tools.into_iter().collect(), ..self }
    }

    /// With these actions.
    #[must_use]
    pub fn actions(self, actions: impl IntoIterator<Item = &'static str>) -> Self {
        Self { actions: actions.into_iter().collect(), ..self }
    }

    /// Offered whenever nothing is known of a request.
    #[must_use]
    pub fn often(self) -> Self {
        Self { often: true, ..self }
    }

    /// Everything in it.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.tools.iter().chain(&self.actions).copied()
    }
}

/// What families name that is not there, or is there and in no family: nobody could call it.
pub(super) fn misnamed(families: &[Family], there: &BTreeSet<&'static str>) -> Option<&'static str> {
    let named: BTreeSet<&'static str> = families.iter().flat_map(Family::names).collect();
    named.symmetric_difference(there).next().copied()
}
