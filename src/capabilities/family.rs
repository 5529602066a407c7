//! Families: groups of tools and actions of a capability that are offered to a language model together.
//!
//! Each request to a model carries the schemas of the tools and actions it may call, and most requests need only one
//! kind. So a capability divides its tools and actions into families, with a name and a purpose by which a model
//! chooses, and only the families that a request needs are sent.

use std::collections::BTreeSet;

/// A group of tools and actions of a capability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// The name by which a model asks for it.
    pub name: &'static str,
    /// The wider name that several families share if people see them as one thing; otherwise its own name.
    pub within: &'static str,
    /// The purpose, in a few words.
    pub purpose: &'static str,
    /// The names of the reading tools. A tool may be in several families.
    pub tools: Vec<&'static str>,
    /// The names of the actions.
    pub actions: Vec<&'static str>,
    /// True if it is offered before anything is known about a request.
    pub often: bool,
}

impl Family {
    /// Creates an empty family with this name.
    pub fn new(name: &'static str, purpose: &'static str) -> Self {
        Self { name, within: name, purpose, tools: Vec::new(), actions: Vec::new(), often: false }
    }

    /// Sets the wider name.
    #[must_use]
    pub fn within(self, wider: &'static str) -> Self {
        Self { within: wider, ..self }
    }

    /// Sets the reading tools.
    #[must_use]
    pub fn tools(self, tools: impl IntoIterator<Item = &'static str>) -> Self {
        Self { tools: tools.into_iter().collect(), ..self }
    }

    /// Sets the actions.
    #[must_use]
    pub fn actions(self, actions: impl IntoIterator<Item = &'static str>) -> Self {
        Self { actions: actions.into_iter().collect(), ..self }
    }

    /// Offers the family before anything is known about a request.
    #[must_use]
    pub fn often(self) -> Self {
        Self { often: true, ..self }
    }

    /// Returns the names of all its tools and actions.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.tools.iter().chain(&self.actions).copied()
    }
}

/// Returns a name that a family lists although it does not exist, or that exists but is in no family, so that no
/// model could call it.
pub(super) fn misnamed(families: &[Family], existing: &BTreeSet<&'static str>) -> Option<&'static str> {
    let named: BTreeSet<&'static str> = families.iter().flat_map(Family::names).collect();
    named.symmetric_difference(existing).next().copied()
}
