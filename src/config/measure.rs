//! Measures: the values that the limits of an envelope can be about. Capabilities bring them.
//!
//! An action gives the values of a proposal in `countersign_graph::action::Scope::measures`; an envelope gives limits
//! under the keys of a [`Measure`]; here the two are compared, checked and put into words.

use std::collections::BTreeMap;

use jiff::{Timestamp, civil, tz::TimeZone};
use serde_json::Value;

/// Limits by key, as an envelope gives them.
pub type Limits = BTreeMap<String, Value>;

/// A value by which a change can be measured.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Its name among the measures of a proposal, such as `weight`.
    pub name: &'static str,
    /// The kind of its limits.
    pub kind: Kind,
}

/// The kinds of limits, each with its keys.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Only certain words: a list.
    Among {
        /// The key of the list.
        key: &'static str,
        /// All words of the measure.
        known: &'static [&'static str],
    },
    /// A number within bounds.
    Between {
        /// The key of the smallest number, if it can be limited.
        least: Option<&'static str>,
        /// The key of the largest number.
        most: &'static str,
        /// The numbers that can be a limit at all.
        range: (f64, f64),
        /// The difference between a value and a limit that is ignored.
        tolerance: f64,
        /// The text before and after a value: `a weight of … %`.
        value: (&'static str, &'static str),
        /// The text after a limit: ` %`.
        unit: &'static str,
        /// The name of the values in a list of limits: `weights`.
        plural: &'static str,
    },
    /// A moment within bounds: a date or moment such as `2027-01-15` or `2027-01-15T09:00:00Z`.
    When {
        /// The key of the earliest moment.
        earliest: &'static str,
        /// The key of the latest moment.
        latest: &'static str,
        /// The verb for a value: `starts`.
        verb: &'static str,
    },
}

impl Measure {
    /// Returns the keys under which it is limited.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> {
        let keys = match self.kind {
            Kind::Among { key, .. } => [Some(key), None],
            Kind::Between { least, most, .. } => [least, Some(most)],
            Kind::When { earliest, latest, .. } => [Some(earliest), Some(latest)],
        };
        keys.into_iter().flatten()
    }

    /// Returns every problem with its limits: the key, and what would be right.
    pub(super) fn problems(&self, limits: &Limits) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        match self.kind {
            Kind::Among { key, known } => match limits.get(key) {
                None => {}
                Some(Value::Array(words)) => {
                    let unknown = words.iter().filter(|word| !word.as_str().is_some_and(|word| known.contains(&word)));
                    found.extend(unknown.map(|unknown| {
                        (key, format!("found `{}`; right would be {}", plain(unknown), known.join(", ")))
                    }));
                }
                Some(other) => {
                    found.push((key, format!("found `{other}`; right would be a list of {}", known.join(", "))));
                }
            },
            Kind::Between { least, most, range: (from, to), .. } => {
                let number = |key: &str| limits.get(key).and_then(Value::as_f64);
                for key in least.into_iter().chain([most]) {
                    let fits = number(key).is_some_and(|number| (from..=to).contains(&number));
                    if let Some(given) = limits.get(key).filter(|_| !fits) {
                        found.push((key, format!("found {}; right would be {from} to {to}", plain(given))));
                    }
                }
                if let Some((key, least)) = least.and_then(|key| Some((key, number(key)?)))
                    && let Some(most) = number(most).filter(|most| least > *most)
                {
                    found.push((key, format!("found {least}; right would be {most} or less")));
                }
            }
            Kind::When { earliest, latest, .. } => {
                let at = |key: &str| limits.get(key).and_then(Value::as_str).and_then(moment);
                for key in [earliest, latest] {
                    if let Some(given) = limits.get(key).filter(|_| at(key).is_none()) {
                        let right = "right would be a date such as 2027-01-15";
                        found.push((key, format!("found `{}`; {right}", plain(given))));
                    }
                }
                if let (Some(first), Some(last)) = (at(earliest), at(latest))
                    && first > last
                {
                    found.push((earliest, format!("found {first}; right would be {last} or before")));
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
                    let said = format!("{before}{}{after}", plain(value));
                    let given = value.as_f64();
                    if let Some(least) = least.and_then(number)
                        && given.is_none_or(|given| least - given > tolerance)
                    {
                        found.push(format!("{said}, at least {least}{unit}"));
                    }
                    if let Some(most) = number(most)
                        && given.is_none_or(|given| given - most > tolerance)
                    {
                        found.push(format!("{said}, at most {most}{unit}"));
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

    /// Its limits in words: `weights from 10 % to 90 %`. `None` if there are none.
    pub fn describe(&self, limits: &Limits) -> Option<String> {
        match self.kind {
            Kind::Among { key, .. } => {
                limits.get(key).and_then(Value::as_array).map(|allowed| match allowed.as_slice() {
                    [] => format!("no change of {}", self.name),
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

/// Reads a date (its midnight, UTC) or a moment.
fn moment(given: &str) -> Option<Timestamp> {
    let given = given.trim();
    let midnight = |date: civil::Date| date.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
    given.parse().ok().or_else(|| given.parse().ok().and_then(midnight))
}

fn minutes(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

/// `weights from 10 % to 90 %`.
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
