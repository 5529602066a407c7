//! Measures: the properties of a change that an envelope can limit. Capabilities define them.
//!
//! An action states the values of a proposal in `countersign_graph::action::Scope::measures`, and an envelope contains
//! limits under the keys of a [`Measure`]. This module checks the limits, compares values with them and describes them
//! in words.

use std::collections::BTreeMap;

use jiff::{Timestamp, civil, tz::TimeZone};
use serde_json::Value;

/// The limits in an envelope, by key.
pub type Limits = BTreeMap<String, Value>;

/// A property of a change that can be limited.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// The name of the measure in a proposal, such as `weight`.
    pub name: &'static str,
    /// The kind of its limits.
    pub kind: Kind,
}

/// The kinds of limits, each with its keys.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A list of allowed words.
    Among {
        /// The key of the list.
        key: &'static str,
        /// All words that are valid in the list.
        known: &'static [&'static str],
    },
    /// A number within bounds.
    Between {
        /// The key of the lower bound, if there can be one.
        least: Option<&'static str>,
        /// The key of the upper bound.
        most: &'static str,
        /// The valid range of both bounds.
        range: (f64, f64),
        /// The amount by which a value may exceed a limit without violating it.
        tolerance: f64,
        /// The text before and after a value: `a weight of … %`.
        value: (&'static str, &'static str),
        /// The text after a limit: ` %`.
        unit: &'static str,
        /// The name of the values in a list of limits: `weights`.
        plural: &'static str,
    },
    /// A time within bounds. The bounds are dates or times such as `2027-01-15` or `2027-01-15T09:00:00Z`.
    When {
        /// The key of the earliest time.
        earliest: &'static str,
        /// The key of the latest time.
        latest: &'static str,
        /// The verb for a value: `starts`.
        verb: &'static str,
    },
}

impl Measure {
    /// Returns the keys of the limits of this measure.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> {
        let keys = match self.kind {
            Kind::Among { key, .. } => [Some(key), None],
            Kind::Between { least, most, .. } => [least, Some(most)],
            Kind::When { earliest, latest, .. } => [Some(earliest), Some(latest)],
        };
        keys.into_iter().flatten()
    }

    /// Returns every problem with the limits of this measure: the key, and a description with what would be right.
    pub(super) fn problems(&self, limits: &Limits) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        match self.kind {
            Kind::Among { key, known } => match limits.get(key) {
                None => {}
                Some(Value::Array(words)) => {
                    let unknown = words.iter().filter(|word| !word.as_str().is_some_and(|word| known.contains(&word)));
                    found
                        .extend(unknown.map(|unknown| {
                            (key, format!("found `{}`; expected {}", plain(unknown), known.join(", ")))
                        }));
                }
                Some(other) => {
                    found.push((key, format!("found `{other}`; expected a list of {}", known.join(", "))));
                }
            },
            Kind::Between { least, most, range: (from, to), .. } => {
                let number = |key: &str| limits.get(key).and_then(Value::as_f64);
                for key in least.into_iter().chain([most]) {
                    let fits = number(key).is_some_and(|number| (from..=to).contains(&number));
                    if let Some(given) = limits.get(key).filter(|_| !fits) {
                        found.push((key, format!("found {}; expected {from} to {to}", plain(given))));
                    }
                }
                if let Some((key, least)) = least.and_then(|key| Some((key, number(key)?)))
                    && let Some(most) = number(most).filter(|most| least > *most)
                {
                    found.push((key, format!("found {least}; expected {most} or less")));
                }
            }
            Kind::When { earliest, latest, .. } => {
                let at = |key: &str| limits.get(key).and_then(Value::as_str).and_then(moment);
                for key in [earliest, latest] {
                    if let Some(given) = limits.get(key).filter(|_| at(key).is_none()) {
                        let right = "expected a date such as 2027-01-15";
                        found.push((key, format!("found `{}`; {right}", plain(given))));
                    }
                }
                if let (Some(first), Some(last)) = (at(earliest), at(latest))
                    && first > last
                {
                    found.push((earliest, format!("found {first}; expected {last} or before")));
                }
            }
        }
        found
    }

    /// Describes how the values of a proposal exceed the limits: `a weight of 95 %, at most 90 %`.
    pub fn violations(&self, limits: &Limits, values: &[Value]) -> Vec<String> {
        let mut found = Vec::new();
        match self.kind {
            Kind::Among { key, .. } => {
                let Some(allowed) = limits.get(key).and_then(Value::as_array) else { return found };
                for value in values.iter().filter(|value| !allowed.contains(value)) {
                    let allowed = if allowed.is_empty() { "none".to_owned() } else { listed(allowed) };
                    found.push(format!("{} {}, allowed: {allowed}", self.name, plain(value)));
                }
            }
            Kind::Between { least, most, tolerance, value: (before, after), unit, .. } => {
                let number = |key: &str| limits.get(key).and_then(Value::as_f64);
                for value in values {
                    let words = format!("{before}{}{after}", plain(value));
                    let given = value.as_f64();
                    if let Some(least) = least.and_then(number)
                        && given.is_none_or(|given| least - given > tolerance)
                    {
                        found.push(format!("{words}, at least {least}{unit}"));
                    }
                    if let Some(most) = number(most)
                        && given.is_none_or(|given| given - most > tolerance)
                    {
                        found.push(format!("{words}, at most {most}{unit}"));
                    }
                }
            }
            Kind::When { earliest, latest, verb } => {
                let limit = |key: &str| limits.get(key).and_then(Value::as_str).and_then(moment);
                for value in values {
                    let at: Option<Timestamp> = value.as_str().and_then(|at| at.parse().ok());
                    let day = at.map_or_else(|| plain(value), minutes);
                    if let Some(earliest) = limit(earliest).filter(|earliest| at.is_none_or(|at| at < *earliest)) {
                        found.push(format!("{verb} {day}, not before {}", minutes(earliest)));
                    }
                    if let Some(latest) = limit(latest).filter(|latest| at.is_none_or(|at| at > *latest)) {
                        found.push(format!("{verb} {day}, not after {}", minutes(latest)));
                    }
                }
            }
        }
        found
    }

    /// Describes the limits of this measure: `weights from 10 % to 90 %`. `None` if there are none.
    pub fn describe(&self, limits: &Limits) -> Option<String> {
        match self.kind {
            Kind::Among { key, .. } => {
                limits.get(key).and_then(Value::as_array).map(|allowed| match allowed.as_slice() {
                    [] => format!("no change to {}", self.name),
                    allowed => format!("{} {}", self.name, listed(allowed)),
                })
            }
            Kind::Between { least: None, most, value: (before, after), .. } => {
                limits.get(most).map(|most| format!("at most {before}{}{after}", plain(most)))
            }
            Kind::Between { least: Some(least), most, unit, plural, .. } => {
                let given = |key: &str| limits.get(key).map(|limit| format!("{}{unit}", plain(limit)));
                range(plural, given(least), given(most))
            }
            Kind::When { earliest, latest, .. } => {
                let given = |key: &str| limits.get(key).map(plain);
                range(self.name, given(earliest), given(latest))
            }
        }
    }
}

/// Parses a time, or a date, which means midnight UTC.
fn moment(given: &str) -> Option<Timestamp> {
    let given = given.trim();
    let midnight = |date: civil::Date| date.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
    given.parse().ok().or_else(|| given.parse().ok().and_then(midnight))
}

fn minutes(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

/// Describes a range, such as `weights from 10 % to 90 %`. `None` if it has no bounds.
fn range(what: &str, from: Option<String>, to: Option<String>) -> Option<String> {
    match (from, to) {
        (None, None) => None,
        (Some(from), None) => Some(format!("{what} from {from}")),
        (None, Some(to)) => Some(format!("{what} up to {to}")),
        (Some(from), Some(to)) => Some(format!("{what} from {from} to {to}")),
    }
}

/// Returns a value as people write it: `70`, not `70.0`.
fn plain(value: &Value) -> String {
    match (value.as_str(), value.as_f64()) {
        (Some(words), _) => words.to_owned(),
        (None, Some(number)) => number.to_string(),
        (None, None) => value.to_string(),
    }
}

fn listed(values: &[Value]) -> String {
    values.iter().map(plain).collect::<Vec<_>>().join(", ")
}
