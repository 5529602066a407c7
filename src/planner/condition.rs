//! The condition of a step, evaluated on the result of an earlier step.
//!
//! Code evaluates it: `cmax is above 10` looks for the number called `cmax` in the result. If no number has that name,
//! or more than one, the verdict is [`Verdict::CannotTell`], and a person is asked. A language model may write down a
//! condition, but never decides whether it holds.

use countersign_core::units::{self, Fit, quantity, significant};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A condition of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// The key of the result that the condition is about.
    pub on: String,
    /// The condition as the person put it, such as `it is even` or `cmax is above 10 mg/L`.
    pub words: String,
}

/// The result of evaluating a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The condition holds, with the figure that shows it.
    Holds(String),
    /// The condition does not hold, with the figure that shows it.
    Fails(String),
    /// Code cannot evaluate the condition, with the reason.
    CannotTell(String),
}

/// A comparison of a number in the result.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The name of the number, in lower-case words.
    pub field: Vec<String>,
    /// The operator.
    pub operator: Operator,
    /// The number it is compared with.
    pub number: f64,
    /// The unit that was written after the number, if one was.
    pub unit: Option<String>,
}

/// The operator of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `>`
    Above,
    /// `≥`
    AtLeast,
    /// `<`
    Below,
    /// `≤`
    AtMost,
    /// `=`
    Equal,
    /// `≠`
    NotEqual,
}

/// The words of each operator, longer ones first.
const OPERATORS: &[(&[&str], Operator)] = &[
    (&["greater", "than", "or", "equal", "to"], Operator::AtLeast),
    (&["less", "than", "or", "equal", "to"], Operator::AtMost),
    (&["more", "than"], Operator::Above),
    (&["greater", "than"], Operator::Above),
    (&["higher", "than"], Operator::Above),
    (&["less", "than"], Operator::Below),
    (&["fewer", "than"], Operator::Below),
    (&["lower", "than"], Operator::Below),
    (&["at", "least"], Operator::AtLeast),
    (&["at", "most"], Operator::AtMost),
    (&["not", "equal", "to"], Operator::NotEqual),
    (&["equal", "to"], Operator::Equal),
    (&["above"], Operator::Above),
    (&["exceeds"], Operator::Above),
    (&["exceed"], Operator::Above),
    (&["over"], Operator::Above),
    (&["below"], Operator::Below),
    (&["under"], Operator::Below),
    (&["exactly"], Operator::Equal),
    (&["not"], Operator::NotEqual),
    (&[">="], Operator::AtLeast),
    (&["≥"], Operator::AtLeast),
    (&["<="], Operator::AtMost),
    (&["≤"], Operator::AtMost),
    (&[">"], Operator::Above),
    (&["<"], Operator::Below),
    (&["="], Operator::Equal),
];

/// Words before a name or an operator that carry no meaning.
const FILLERS: &[&str] =
    &["the", "its", "is", "are", "was", "were", "stays", "be", "a", "an", "there", "if", "has", "it"];

/// Parses a comparison; `None` if the text isn't.
pub fn read(words: &str) -> Option<Comparison> {
    // Units are case-sensitive.
    let written: Vec<String> = words.split_whitespace().map(trimmed).filter(|word| !word.is_empty()).collect();
    let words: Vec<String> = written.iter().map(|word| word.to_lowercase()).collect();
    let at = |start: usize, operator: &[&str]| {
        words.get(start..start + operator.len()).is_some_and(|found| found.iter().zip(operator).all(|(a, b)| a == b))
    };
    let (start, (length, operator)) = (0..words.len()).find_map(|start| {
        let found = OPERATORS.iter().find(|(operator, _)| at(start, operator))?;
        Some((start, (found.0.len(), found.1)))
    })?;
    let (number, inline_unit) = number(written.get(start + length)?)?;
    let after = &words[start + length + 1..];
    let meaningful = |words: &[String]| -> Vec<String> {
        words.iter().filter(|word| !FILLERS.contains(&word.as_str())).cloned().collect()
    };
    let mut field = meaningful(&words[..start]);
    let mut unit = inline_unit;
    match after {
        [] => {}
        // “fewer than 100 users”: the name stands after the number.
        counted if field.is_empty() => field = counted.to_vec(),
        [_] if unit.is_none() => unit = written.last().cloned(),
        _ => return None,
    }
    (!field.is_empty()).then_some(Comparison { field, operator, number, unit })
}

/// Returns a word without the punctuation around it.
fn trimmed(word: &str) -> String {
    word.trim_matches(|c: char| matches!(c, ',' | ';' | ':' | '.' | '!' | '?' | '"' | '“' | '”')).to_owned()
}

/// Parses a number, with the unit directly after it, if there is one: `10`, `2.5`, `5%`, `10mg/l`.
fn number(word: &str) -> Option<(f64, Option<String>)> {
    let end = word.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+'))).unwrap_or(word.len());
    let number: f64 = word[..end].parse().ok()?;
    let unit = &word[end..];
    number.is_finite().then(|| (number, (!unit.is_empty()).then(|| unit.to_owned())))
}

impl Comparison {
    /// Evaluates the comparison on a result.
    pub fn on(&self, result: &Value) -> Verdict {
        let mut found = Vec::new();
        collect(result, &mut Vec::new(), &mut found);
        let named = |path: &[String]| {
            let words: Vec<String> = path.iter().flat_map(|part| parts_of(part)).collect();
            self.field.iter().all(|word| words.iter().any(|other| same(word, other)))
        };
        found.retain(|(path, _, _)| named(path));
        // The shortest path is the best match: `metrics.cmax` rather than `metrics.cmax.n`.
        let closest = found.iter().map(|(path, _, _)| path.len()).min();
        found.retain(|(path, _, _)| Some(path.len()) == closest);
        let name = self.field.join(" ");
        match found.as_slice() {
            [] => Verdict::CannotTell(format!("the result has no figure called “{name}”")),
            [(_, value, unit)] => self.compare(&name, *value, unit.as_deref()),
            several => Verdict::CannotTell(format!("the result has {} figures called “{name}”", several.len())),
        }
    }

    fn compare(&self, name: &str, value: f64, unit: Option<&str>) -> Verdict {
        let (limit, converted) = match (&self.unit, unit) {
            (Some(asked), Some(has)) if !asked.eq_ignore_ascii_case(has) => {
                match units::fit(self.number, Some(asked), Some(has)) {
                    Fit::Same => (self.number, None),
                    Fit::Converted(limit) => (limit, Some((asked, has))),
                    Fit::Other | Fit::Unknown => {
                        let because = format!("“{name}” is in {has}, but the condition is in {asked}");
                        return Verdict::CannotTell(because);
                    }
                }
            }
            _ => (self.number, None),
        };
        // Conversions are not exact in the last digits.
        let tolerance = if converted.is_some() { 1e-9 } else { f64::EPSILON };
        let is_equal = (value - limit).abs() <= tolerance * limit.abs().max(1.0);
        let holds = match self.operator {
            Operator::Above => value > limit && !is_equal,
            Operator::AtLeast => value >= limit || is_equal,
            Operator::Below => value < limit && !is_equal,
            Operator::AtMost => value <= limit || is_equal,
            Operator::Equal => is_equal,
            Operator::NotEqual => !is_equal,
        };
        let because = match unit {
            Some(unit) => format!("{name} is {} {unit}", significant(value)),
            None => format!("{name} is {}", significant(value)),
        };
        let because = match converted {
            Some((asked, has)) => {
                let limits = [quantity(self.number, Some(asked)), quantity(limit, Some(has))];
                format!("{because} ({} = {})", limits[0], limits[1])
            }
            None => because,
        };
        if holds { Verdict::Holds(because) } else { Verdict::Fails(because) }
    }
}

/// Collects the numbers of a result with their paths and units: the unit of `tmax` is `tmax_unit` in the same object,
/// otherwise `unit`.
fn collect(value: &Value, path: &mut Vec<String>, found: &mut Vec<(Vec<String>, f64, Option<String>)>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let unit = members.get(&format!("{name}_unit")).or_else(|| members.get("unit")).and_then(Value::as_str);
                path.push(name.clone());
                match member.as_f64() {
                    Some(number) => found.push((path.clone(), number, unit.map(str::to_owned))),
                    None => collect(member, path, found),
                }
                path.pop();
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, path, found)),
        _ => {}
    }
}

/// Returns the words of a name such as `pValue`, `p_value` or `Liver|Volume`, in lower case.
fn parts_of(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut before_was_lower = false;
    for character in name.chars() {
        if !character.is_alphanumeric() || (character.is_uppercase() && before_was_lower) {
            parts.push(String::new());
        }
        before_was_lower = character.is_lowercase();
        if character.is_alphanumeric()
            && let Some(part) = parts.last_mut()
        {
            part.extend(character.to_lowercase());
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Returns true if two words are equal, apart from a plural `s`.
fn same(one: &str, other: &str) -> bool {
    one.trim_end_matches('s') == other.trim_end_matches('s')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn verdict(words: &str, result: &Value) -> Verdict {
        read(words).expect("a comparison").on(result)
    }

    #[test]
    fn a_figure_is_compared() {
        let result =
            json!({ "metrics": [{ "unit": "mg/L", "cmax": 12.5, "tmax": 1.0, "tmax_unit": "h", "auc": 1.505_109 }] });
        assert_eq!(verdict("cmax is above 10", &result), Verdict::Holds("cmax is 12.5 mg/L".into()));
        assert_eq!(verdict("its cmax is below 10 mg/L", &result), Verdict::Fails("cmax is 12.5 mg/L".into()));
        assert_eq!(verdict("if tmax is at most 1", &result), Verdict::Holds("tmax is 1 h".into()));
        assert_eq!(verdict("auc exceeds 1.5", &result), Verdict::Holds("auc is 1.505 mg/L".into()));
    }

    #[test]
    fn a_name_may_be_written_in_words() {
        let result = json!({ "pValue": 0.04, "users": 200 });
        assert_eq!(verdict("the p value is under 0.05", &result), Verdict::Holds("p value is 0.04".into()));
        assert_eq!(verdict("there are fewer than 100 users", &result), Verdict::Fails("users is 200".into()));
        assert_eq!(verdict("users >= 200", &result), Verdict::Holds("users is 200".into()));
    }

    #[test]
    fn code_does_not_guess() {
        let two = json!([{ "cmax": 1 }, { "cmax": 3 }]);
        assert_eq!(
            verdict("cmax is above 2", &two),
            Verdict::CannotTell("the result has 2 figures called “cmax”".into())
        );
        assert_eq!(
            verdict("auc is above 2", &two),
            Verdict::CannotTell("the result has no figure called “auc”".into())
        );
        let unit = json!({ "cmax": 2, "unit": "mg/L" });
        assert_eq!(
            verdict("cmax is above 2 hours", &unit),
            Verdict::CannotTell("“cmax” is in mg/L, but the condition is in hours".into())
        );
    }

    #[test]
    fn a_condition_in_another_unit_is_converted() {
        let result = json!({ "cmax": 2, "unit": "mg/L", "tmax": 1.5, "tmax_unit": "h" });
        let because = "tmax is 1.5 h (90 minutes = 1.5 h)".to_owned();
        assert_eq!(verdict("tmax is at most 90 minutes", &result), Verdict::Holds(because.clone()));
        assert_eq!(verdict("tmax is below 90 minutes", &result), Verdict::Fails(because));
        let because = "tmax is 1.5 h (45 min = 0.75 h)".to_owned();
        assert_eq!(verdict("tmax is above 45 min", &result), Verdict::Holds(because));
        let because = "cmax is 2 mg/L (2500 ng/mL = 2.5 mg/L)".to_owned();
        assert_eq!(verdict("cmax is above 2500 ng/mL", &result), Verdict::Fails(because));
    }

    #[test]
    fn other_words_are_no_comparison() {
        for words in ["it is even", "it works", "above", "cmax is above", "cmax is above ten", "above 10"] {
            assert_eq!(read(words), None, "{words}");
        }
    }
}
