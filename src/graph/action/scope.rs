//! The scope of a change, for policies, for limits, and for deciding whether a newer request
//! replaces an older one.

use std::collections::BTreeMap;

use countersign_core::clock::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The measure that marks a change which only the person who asks for it decides.
const PERSONAL: &str = "personal";

/// The target of a change that only begins a plan.
const PLAN: &str = "plan";

/// The things that a change concerns. They are determined together with the change, from its
/// parameters and the live system. They are therefore not part of the digest; the policy that
/// follows from them is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Scope {
    /// The things that change, such as `<kind>:<id>`. A newer request for one of them replaces an
    /// older one in the same thread. If empty, the request conflicts with no other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,
    /// The contexts that these things belong to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contexts: Vec<String>,
    /// The things that the change concerns, by the names that people know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subjects: Vec<String>,
    /// The values that limits are compared with, by measure: statuses, weights, users, dates.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub measures: BTreeMap<String, Vec<Value>>,
    /// True if the request came from outside, as an email does: then the no of a person rejects it, even if this person
    /// asked for the present version of the change.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_from_outside: bool,
    /// True if something speaks against the change, such as a forged sender: the safe button then stands out, and an
    /// approval needs the other button and is asked about once more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_risky: bool,
    /// The end of the card, if the request itself sets one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends: Option<Timestamp>,
}

impl Scope {
    /// Creates the scope of one thing.
    pub fn of(target: impl Into<String>) -> Self {
        Self { targets: vec![target.into()], ..Self::default() }
    }

    /// Notes that the request came from outside.
    pub fn from_outside(mut self) -> Self {
        self.is_from_outside = true;
        self
    }

    /// Notes whether something speaks against the change.
    pub fn risky(mut self, is_risky: bool) -> Self {
        self.is_risky = is_risky;
        self
    }

    /// Sets the end of the card, in place of the usual one.
    pub fn ends_at(mut self, end: Timestamp) -> Self {
        self.ends = Some(end);
        self
    }

    /// Adds a context.
    pub fn in_context(mut self, context: impl Into<String>) -> Self {
        self.contexts.push(context.into());
        self
    }

    /// Adds a thing by its name.
    pub fn of_subject(mut self, name: impl Into<String>) -> Self {
        self.subjects.push(name.into());
        self
    }

    /// Adds a value of a measure.
    pub fn measure(mut self, measure: &str, value: impl Into<Value>) -> Self {
        self.measures.entry(measure.to_owned()).or_default().push(value.into());
        self
    }

    /// Marks the change as personal: only the person who asks for it decides.
    pub fn personal(self) -> Self {
        self.measure(PERSONAL, true)
    }

    /// Returns true if only the person who asked decides.
    pub fn is_personal(&self) -> bool {
        self.measures.contains_key(PERSONAL)
    }

    /// Creates the scope of a change that only begins a plan, for the person who asks for it.
    pub fn of_plan() -> Self {
        Self::of(PLAN).personal()
    }

    /// Returns true if the change only begins a plan, whose steps are approved one by one.
    pub fn is_of_plan(&self) -> bool {
        self.is_personal() && self.targets.iter().any(|target| target == PLAN)
    }

    /// Returns true if the scope is empty.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns true if both scopes have a target in common.
    pub fn shares_target_with(&self, other: &Self) -> bool {
        self.targets.iter().any(|target| other.targets.contains(target))
    }
}
