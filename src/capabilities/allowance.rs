//! Allowances: the kinds of changes that standing approvals can allow in advance, declared by the capabilities.

use countersign_core::reply::{Fact, Text};
use countersign_graph::action::ActionRecord;
use serde_json::Value;

/// Changes of one kind that can be allowed in advance, up to a number of times or an amount.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// The stored name.
    pub name: &'static str,
    /// Other names, in lower case with `_` between words.
    pub synonyms: &'static [&'static str],
    /// The words for the changes in replies, such as “starts and stops”.
    pub offered: &'static str,
    /// The question for the place, such as “In which document?”
    pub which_place: &'static str,
    /// The question for the amount.
    pub how_much: &'static str,
    /// The unit of the amount, singular and plural.
    pub unit: (&'static str, &'static str),
    /// The highest amount that one grant can allow.
    pub most: u64,
    /// The names of the actions that are covered.
    pub actions: &'static [&'static str],
    /// The rule by which a change is counted.
    pub counts: Counts,
    /// The measures that envelopes check, each with its value; `None` means the granted amount.
    pub measures: &'static [(&'static str, Option<&'static str>)],
    /// Finds the id of the one thing that a change is about in its parameters.
    pub thing: fn(&Value) -> Option<&str>,
    /// The words before and after the place in the title of the card.
    pub title: (&'static str, &'static str),
    /// The card's line about the changes that are allowed.
    pub allows: &'static str,
    /// The card's warning that these changes will not be approved one by one.
    pub warning: &'static str,
    /// The card's warning about data that remains and cannot be removed; `None` if nothing remains.
    pub stays: Option<&'static str>,
    /// The consequence of ending the approval, for the card that ends it.
    pub after: &'static str,
}

/// The rule by which a change is counted.
#[derive(Clone, Copy, Debug)]
pub enum Counts {
    /// The value of this measure.
    Measure(&'static str),
    /// Each change that can be undone and is about one thing counts 1.
    Each {
        /// The measure that must be present.
        measure: &'static str,
        /// The values that it may have.
        among: &'static [&'static str],
        /// The measure that must be absent.
        without: &'static str,
    },
}

impl Allowance {
    /// Returns a number with its unit: `200 simulated users`, `1 start or stop`.
    pub fn amount(&self, number: u64) -> String {
        let (one, several) = self.unit;
        format!("{number} {}", if number == 1 { one } else { several })
    }

    /// Returns the amount that a change counts; `None` if it is not covered at all.
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

/// All allowances of the capabilities.
#[derive(Clone, Debug, Default)]
pub struct Allowances(Vec<&'static Allowance>);

impl Allowances {
    /// Collects these allowances.
    pub fn new(all: impl IntoIterator<Item = &'static Allowance>) -> Self {
        Self(all.into_iter().collect())
    }

    /// Returns all allowances.
    pub fn all(&self) -> &[&'static Allowance] {
        &self.0
    }

    /// Returns the allowance with this stored name.
    pub fn get(&self, name: &str) -> Option<&'static Allowance> {
        self.0.iter().find(|one| one.name == name).copied()
    }

    /// Returns the allowance that these words name: its name, a synonym or an action.
    pub fn parse(&self, words: &str) -> Option<&'static Allowance> {
        let words = words.trim().to_lowercase().replace([' ', '-'], "_");
        let is = |one: &&&Allowance| {
            one.name == words || one.synonyms.contains(&words.as_str()) || one.actions.contains(&words.as_str())
        };
        self.0.iter().find(is).copied()
    }

    /// Returns a number with its unit, such as `200 simulated users`. For an unknown allowance, its stored name is
    /// used.
    pub fn amount(&self, name: &str, number: u64) -> String {
        self.get(name).map_or_else(|| format!("{number} × {name}"), |known| known.amount(number))
    }
}

/// A place in which something can be allowed: a thing, or a context.
#[derive(Clone, Debug, PartialEq)]
pub struct AllowancePlace {
    /// The id of the thing; `None` for a context.
    pub id: Option<String>,
    /// The name of the thing or context.
    pub name: String,
    /// The context itself, or the context of the thing, if known.
    pub context: Option<String>,
    /// The place in words, for the card.
    pub words: Text,
    /// Further facts for the card.
    pub facts: Vec<Fact>,
    /// True if there are or may be real users in it, so that the remaining data mixes with theirs.
    pub in_use: bool,
}
