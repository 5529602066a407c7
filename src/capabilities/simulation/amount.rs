//! A new value as people write it: a number with a unit, a percentage, “twice”, “half of the liver clearance”.
//!
//! Every form is converted to an absolute number, based on the present value, before the card is made: the bridge's own
//! relative mode has a different meaning in each version.

use countersign_core::units;

/// A new value.
#[derive(Clone, Debug, PartialEq)]
pub enum Amount {
    /// A number, with its unit if one was given.
    Absolute {
        /// The number.
        value: f64,
        /// The unit as the person wrote it.
        unit: Option<String>,
    },
    /// The present value plus a number.
    Plus {
        /// The number; negative for a decrease.
        value: f64,
        /// The unit as the person wrote it.
        unit: Option<String>,
    },
    /// A multiple of the present value, or of another parameter.
    Times {
        /// The factor.
        factor: f64,
        /// The other parameter in the person's words; `None` for the same parameter.
        of: Option<String>,
    },
    /// The value that the parameter had when the model was loaded.
    Default,
}

/// Words for factors.
const FACTORS: &[(&str, f64)] = &[
    ("twice", 2.0),
    ("double", 2.0),
    ("doubled", 2.0),
    ("two times", 2.0),
    ("thrice", 3.0),
    ("triple", 3.0),
    ("tripled", 3.0),
    ("three times", 3.0),
    ("four times", 4.0),
    ("five times", 5.0),
    ("ten times", 10.0),
    ("half", 0.5),
    ("halve", 0.5),
    ("halved", 0.5),
    ("one half", 0.5),
    ("a half", 0.5),
    ("a third", 1.0 / 3.0),
    ("one third", 1.0 / 3.0),
    ("a quarter", 0.25),
    ("one quarter", 0.25),
    ("a tenth", 0.1),
];

/// Words for the value that a model had when it was loaded.
const DEFAULTS: &[&str] = &[
    "default",
    "the default",
    "its default",
    "back to default",
    "back to the default",
    "its default value",
    "the default value",
    "original",
    "the original",
    "the original value",
    "its original value",
    "what it was",
    "normal",
];

impl Amount {
    /// Parses a value; `None` if the text is not a value.
    pub fn read(said: &str) -> Option<Self> {
        let said = said.trim().trim_start_matches(['=', '≈']).trim();
        let lower = said.to_lowercase();
        let lower = ["to ", "at "].iter().find_map(|word| lower.strip_prefix(word)).unwrap_or(&lower).trim();
        if DEFAULTS.contains(&lower) {
            return Some(Self::Default);
        }
        if let Some(times) = factor(lower) {
            return Some(times);
        }
        let (by, rest) = match lower.strip_prefix("by ") {
            Some(_) => (true, said[said.len() - (lower.len() - 3)..].trim()),
            None => (false, &said[said.len() - lower.len()..]),
        };
        let (value, unit) = split(rest)?;
        let signed = rest.starts_with('+');
        match unit {
            Some("%") if by || signed || value < 0.0 => Some(Self::Times { factor: 1.0 + value / 100.0, of: None }),
            Some("x" | "×") => Some(Self::Times { factor: value, of: None }),
            Some(unit) if unit.starts_with('%') && unit != "%" => percent(value, unit),
            unit if by || signed => Some(Self::Plus { value, unit: unit.map(str::to_owned) }),
            unit => Some(Self::Absolute { value, unit: unit.map(str::to_owned) }),
        }
    }
}

/// Parses “twice”, “half of the liver clearance”, “2x”, “3 times”.
fn factor(lower: &str) -> Option<Amount> {
    let lower = lower.trim_start_matches("by ");
    for (word, factor) in FACTORS {
        let Some(rest) = lower.strip_prefix(word) else { continue };
        if !rest.is_empty() && !rest.starts_with(' ') {
            continue;
        }
        return Some(Amount::Times { factor: *factor, of: of(rest) });
    }
    let (number, rest) = lower.split_once(' ').unwrap_or((lower, ""));
    let multiple = number.strip_prefix(['x', '×']).or_else(|| number.strip_suffix(['x', '×']));
    let counted = rest.starts_with("times").then(|| rest.trim_start_matches("times"));
    let (number, rest) = match (multiple, counted) {
        (Some(number), _) => (number, rest),
        (None, Some(rest)) => (number, rest),
        (None, None) => return None,
    };
    Some(Amount::Times { factor: number.parse().ok().filter(|factor: &f64| factor.is_finite())?, of: of(rest) })
}

/// Parses “% of the present value”, “% higher”, “% less”.
fn percent(value: f64, unit: &str) -> Option<Amount> {
    let rest = unit.trim_start_matches('%').trim();
    let more = ["more", "higher", "up", "larger", "heavier", "bigger", "increase", "above"];
    let less = ["less", "lower", "down", "smaller", "lighter", "decrease", "below", "reduction"];
    let first = rest.split(' ').next().unwrap_or_default();
    Some(match first {
        word if more.contains(&word) => Amount::Times { factor: 1.0 + value / 100.0, of: None },
        word if less.contains(&word) => Amount::Times { factor: 1.0 - value / 100.0, of: None },
        "of" => Amount::Times { factor: value / 100.0, of: of(rest) },
        _ => return None,
    })
}

/// Words for a degree: “twice as high”, “3 times larger”.
const DEGREES: &[&str] = &[
    "high", "higher", "large", "larger", "big", "bigger", "much", "more", "heavy", "heavier", "great", "greater",
    "long", "longer", "fast", "faster", "strong", "stronger", "many",
];

/// Returns the words after “as high as”, “higher than” and the like; the text itself if there are none.
fn after_degree(rest: &str) -> &str {
    let compared = rest.strip_prefix("as ").unwrap_or(rest);
    let (degree, rest_of_it) = compared.split_once(' ').unwrap_or((compared, ""));
    match DEGREES.contains(&degree) {
        true => ["as ", "than "].iter().find_map(|word| rest_of_it.strip_prefix(word)).unwrap_or(rest_of_it),
        false => rest,
    }
}

/// Returns the other parameter in “of the liver clearance”; `None` for “of it” and the like.
fn of(rest: &str) -> Option<String> {
    let rest = after_degree(rest.trim());
    let rest = rest.strip_prefix("of ").or_else(|| rest.strip_prefix("the ")).unwrap_or(rest);
    let rest = rest.strip_prefix("the ").unwrap_or(rest).trim();
    let same = [
        "",
        "it",
        "that",
        "its value",
        "present value",
        "current value",
        "what it is",
        "what it is now",
        "it is",
        "it is now",
        "it was",
        "now",
        "before",
        "value",
        "present",
        "current",
        "its current value",
        "its present value",
        "the current value",
    ];
    (!same.contains(&rest)).then(|| rest.to_owned())
}

/// Splits a number from the unit after it: `500mg`, `-5 mg`, `2.5`, `1,200 mL`.
fn split(said: &str) -> Option<(f64, Option<&str>)> {
    let said = said.trim();
    let end = said
        .char_indices()
        .find(|(at, c)| {
            let exponent = matches!(c, 'e' | 'E')
                && said[at + 1..].starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+')
                && *at > 0;
            !(c.is_ascii_digit()
                || matches!(c, '.' | ',')
                || exponent
                || (matches!(c, '+' | '-' | '−') && (*at == 0 || said[..*at].ends_with(['e', 'E']))))
        })
        .map_or(said.len(), |(at, _)| at);
    let number = said[..end].replace('−', "-");
    let number = number.strip_prefix('+').unwrap_or(&number).replace(',', "");
    let value: f64 = number.parse().ok().filter(|value: &f64| value.is_finite())?;
    let unit = said[end..].trim();
    match unit {
        "" => Some((value, None)),
        "percent" => Some((value, Some("%"))),
        unit if unit.starts_with(['%', 'x', '×']) || units::is_unit(unit) => Some((value, Some(unit))),
        // A word that is not a unit: it is kept for the reply that names the right unit.
        unit if !unit.contains(' ') && unit.chars().count() <= 24 => Some((value, Some(unit))),
        _ => None,
    }
}

/// Returns the values in “1.5, 2 and 3 L”, each with its unit.
pub fn listed(values: &str) -> Vec<String> {
    let values = values.replace(" and ", ",").replace(" or ", ",").replace(" versus ", ",").replace(" vs ", ",");
    let parts: Vec<&str> = values.split([',', ';', '/']).map(str::trim).filter(|part| !part.is_empty()).collect();
    // `mg/L` is not a list.
    let is_number = |part: &str| part.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '−'));
    let mut joined: Vec<String> = Vec::new();
    for part in parts {
        match joined.last_mut() {
            Some(last) if !is_number(part) && units::is_unit(part) => *last = format!("{last}/{part}"),
            _ => joined.push(part.to_owned()),
        }
    }
    let unit = |value: &str| value.trim_start_matches(|c: char| c.is_ascii_digit() || ".-−+ ".contains(c)).to_owned();
    let last = joined.iter().rev().map(|value| unit(value)).find(|unit| !unit.is_empty()).unwrap_or_default();
    joined
        .iter()
        .map(|value| if unit(value).is_empty() { format!("{value} {last}").trim().to_owned() } else { value.clone() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn absolute(value: f64, unit: &str) -> Option<Amount> {
        Some(Amount::Absolute { value, unit: (!unit.is_empty()).then(|| unit.to_owned()) })
    }

    #[test]
    fn numbers_with_units_are_read() {
        for (said, expected) in [
            ("2.5 kg", absolute(2.5, "kg")),
            ("500mg", absolute(500.0, "mg")),
            ("-5 mg", absolute(-5.0, "mg")),
            ("1,200 mL", absolute(1200.0, "mL")),
            ("to 70 kg", absolute(70.0, "kg")),
            ("= 2.5", absolute(2.5, "")),
            ("1e-3 L/h", absolute(0.001, "L/h")),
            ("7 bananas", absolute(7.0, "bananas")),
            ("0.05", absolute(0.05, "")),
            ("80 %", Some(Amount::Absolute { value: 80.0, unit: Some("%".to_owned()) })),
        ] {
            assert_eq!(Amount::read(said), expected, "{said}");
        }
        for nonsense in ["heavier", "", "kg", "a lot", "nan", "inf", "1.2.3"] {
            assert_eq!(Amount::read(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn changes_of_the_present_value_are_read() {
        let times = |factor: f64, of: Option<&str>| Some(Amount::Times { factor, of: of.map(str::to_owned) });
        for (said, expected) in [
            ("by 10 %", times(1.1, None)),
            ("by 10%", times(1.1, None)),
            ("+10%", times(1.1, None)),
            ("-25 %", times(0.75, None)),
            ("10% more", times(1.1, None)),
            ("20 % lower", times(0.8, None)),
            ("80% of the present value", times(0.8, None)),
            ("twice", times(2.0, None)),
            ("half of the liver clearance", times(0.5, Some("liver clearance"))),
            ("half of it", times(0.5, None)),
            ("3 times", times(3.0, None)),
            ("x2", times(2.0, None)),
            ("1.5x", times(1.5, None)),
            ("by half", times(0.5, None)),
            ("twice as high", times(2.0, None)),
            ("half as much as before", times(0.5, None)),
            ("3 times larger", times(3.0, None)),
            ("10 times as high as it is now", times(10.0, None)),
            ("twice as high as the liver clearance", times(2.0, Some("liver clearance"))),
        ] {
            match (Amount::read(said), expected) {
                (Some(Amount::Times { factor: a, of: x }), Some(Amount::Times { factor: b, of: y })) => {
                    assert!((a - b).abs() < 1e-9 && x == y, "{said}: {a} {x:?}");
                }
                other => panic!("{said}: {other:?}"),
            }
        }
        assert_eq!(Amount::read("by 5 kg"), Some(Amount::Plus { value: 5.0, unit: Some("kg".to_owned()) }));
        assert_eq!(Amount::read("back to the default"), Some(Amount::Default));
    }

    #[test]
    fn values_are_listed_with_the_unit_of_the_last() {
        for (said, values) in [
            ("1.5, 2 and 3 L", vec!["1.5 L", "2 L", "3 L"]),
            ("100 mg, 0.2 g", vec!["100 mg", "0.2 g"]),
            ("5 and 10 L/h", vec!["5 L/h", "10 L/h"]),
            ("1/2/3 L", vec!["1 L", "2 L", "3 L"]),
            ("half and twice", vec!["half", "twice"]),
        ] {
            assert_eq!(listed(said), values, "{said}");
        }
    }
}
