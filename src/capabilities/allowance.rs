//! What standing approvals can allow beforehand: capabilities bring it.

use countersign_core::reply::{Fact, Text};
use countersign_graph::action::ActionRecord;
use serde_json::Value;

/// Changes of one kind that can be allowed beforehand, so many times or so much of it.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// Its name, as it is stored.
    pub name: &'static str,
    /// Other names of it, in lower case with `_` between words.
    pub synonyms: &'static [&'static str],
    /// What people are offered, such as “starts and stops”.
    pub offered: &'static str,
    /// How to ask for the place, such as “In which document?”
    pub which_place: &'static str,
    /// How to ask for the amount.
    pub how_much: &'static str,
    /// One of what is counted, and several.
    pub unit: (&'static str, &'static str),
    /// The most that one can allow.
    pub most: u64,
    /// The changes that it covers.
    pub actions: &'static [&'static str],
    /// How much a change is.
    pub counts: Counts,
    /// The measures of what it covers, for envelopes; without a value it is the amount.
    pub measures: &'static [(&'static str, Option<&'static str>)],
    /// Finds the id of the one thing that a change is about in its parameters.
    pub thing: fn(&Value) -> Option<&str>,
    /// What stands before and after the place in the title of its card.
    pub title: (&'static str, &'static str),
    /// What it allows, for the card.
    pub allows: &'static str,
    /// That nobody is asked again, for the card.
    pub warning: &'static str,
    /// What stays behind and cannot be undone, where somebody is there already.
    pub stays: Option<&'static str>,
    /// What its end means, for the card that ends it.
    pub after: &'static str,
}

/// How much a change is.
#[derive(Clone, Copy, Debug)]
pub enum Counts {
    /// As much as this measure says.
    Measure(&'static str),
    /// One each, if it can be undone and is about one thing.
    Each {
        /// The measure that has to be there.
        measure: &'static str,
        /// The values that it may have.
        among: &'static [&'static str],
        /// The measure that must not be there.
        without: &'static str,
    },
}

impl Allowance {
    /// `200 simulated users`, `1 start or stop`.
    pub fn amount(&self, number: u64) -> String {
        let (one, several) = self.unit;
        format!("{number} {}", if number == 1 { one } else { several })
    }

    /// How much a change is; nothing if it is not covered at all.
    pub fn amount_of(&self, record: &ActionRecord) -> Option<u64> {
        if !self.actions.contains(&record.name.as_str()) {
            return None;
        }
        let values = |measure: &str| record.scope.measures.get(measure).map(Vec::as_slice).unwrap_or_default();
        match self.counts {
            Counts::Measure(measure) => match values(measure) {
                [amount] => amount.as_u64().filter(|amount| *amount > 0),
                _ => None,
            },
            Counts::Each { measure, among, without } => {
                let fits = |value: &Value| value.as_str().is_some_and(|value| among.contains(&value));
                let fits =
                    !values(measure).is_empty() && values(measure).iter().all(fits) && values(without).is_empty();
                let undoable = !record.card.irreversible && record.undo.is_some();
                (fits && undoable && record.scope.subjects.len() == 1).then_some(1)
            }
        }
    }
}

/// Everything that can be allowed.
#[derive(Clone, Debug, Default)]
pub struct Allowances(Vec<&'static Allowance>);

impl Allowances {
    /// All of these.
    pub fn new(all: impl IntoIterator<Item = &'static Allowance>) -> Self {
        Self(all.into_iter().collect())
    }

    /// All of them.
    pub fn all(&self) -> &[&'static Allowance] {
        &self.0
    }

    /// The one of this name, as it is stored.
    pub fn get(&self, name: &str) -> Option<&'static Allowance> {
        self.0.iter().find(|one| one.name == name).copied()
    }

    /// The one that is meant by these words.
    pub fn meant(&self, words: &str) -> Option<&'static Allowance> {
        let words = words.trim().to_lowercase().replace([' ', '-'], "_");
        let is = |one: &&&Allowance| {
            one.name == words || one.synonyms.contains(&words.as_str()) || one.actions.contains(&words.as_str())
        };
        self.0.iter().find(is).copied()
    }

    /// `200 simulated users`; what is not known any more is named as it is stored.
    pub fn amount(&self, name: &str, number: u64) -> String {
        self.get(name).map_or_else(|| format!("{number} × {name}"), |known| known.amount(number))
    }
}

/// Where something can be allowed: a thing, or a context.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Its id; a context has none.
    pub id: Option<String>,
    /// Its name.
    pub name: String,
    /// The context that it is, or belongs to, if that is known.
    pub context: Option<String>,
    /// What it is, for the card.
    pub words: Text,
    /// What else the card says of it.
    pub facts: Vec<Fact>,
    /// Whether somebody is known to be there or may be: what stays behind mixes with theirs.
    pub in_use: bool,
}
