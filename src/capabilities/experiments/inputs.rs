//! The parameters as people and models give them, in any accepted form.
//!
//! A decision point may be an object or `site / target`, weights a list or `70/30`. All forms are
//! converted to one, which the card shows and the record stores. The stored form is itself accepted
//! as input, so a record can be edited and prepared again.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A decision point: `site / target`, or its two parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PointInput {
    /// Such as `SelectSection / area_model`.
    Words(String),
    /// Its parts.
    Parts {
        /// The site: the broader place.
        site: String,
        /// The target: the place within the site.
        target: String,
        /// True to exclude people who reached it before the start.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exclude_if_reached: Option<bool>,
    },
}

impl PointInput {
    /// Returns true if the point excludes people who reached it before the start; `None` if not given.
    pub fn excludes(&self) -> Option<bool> {
        match self {
            Self::Words(_) => None,
            Self::Parts { exclude_if_reached, .. } => *exclude_if_reached,
        }
    }

    /// Returns site and target, if both are given.
    pub fn parts(&self) -> Option<(String, String)> {
        let (site, target) = match self {
            Self::Words(words) => words.split_once(" / ").or_else(|| words.split_once([',', '/']))?,
            Self::Parts { site, target, .. } => (site.as_str(), target.as_str()),
        };
        let (site, target) = (site.trim(), target.trim());
        (!site.is_empty() && !target.is_empty()).then(|| (site.to_owned(), target.to_owned()))
    }
}

/// One value, or a list of values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum OneOrMany<T> {
    /// Several.
    Many(Vec<T>),
    /// One.
    One(T),
}

impl<T: Clone> OneOrMany<T> {
    /// Returns all values.
    pub fn all(&self) -> Vec<T> {
        match self {
            Self::Many(many) => many.clone(),
            Self::One(one) => vec![one.clone()],
        }
    }
}

/// A condition: its code, or its code and weight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ConditionInput {
    /// Such as `control`, `control: 50` or `control 50%`.
    Words(String),
    /// Another code for a present condition.
    Renamed {
        /// The present code.
        was: String,
        /// The new code.
        code: String,
    },
    /// Its parts.
    Parts {
        /// The code that the application receives.
        code: String,
        /// The weight in percent.
        #[serde(default)]
        weight: Option<f64>,
    },
}

impl ConditionInput {
    /// Returns the code, and the weight if there is one.
    pub fn parts(&self) -> (String, Option<f64>) {
        match self {
            Self::Words(words) => match words.rsplit_once([':', '=']) {
                Some((code, weight)) if percent(weight).is_some() => (code.trim().to_owned(), percent(weight)),
                _ => match words.trim().rsplit_once(' ') {
                    Some((code, weight)) if weight.ends_with('%') && percent(weight).is_some() => {
                        (code.trim().to_owned(), percent(weight))
                    }
                    _ => (words.trim().to_owned(), None),
                },
            },
            Self::Renamed { code, .. } => (code.trim().to_owned(), None),
            Self::Parts { code, weight } => (code.trim().to_owned(), *weight),
        }
    }
}

/// Weights: a list in the order of the conditions, by condition, or `70/30`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum WeightsInput {
    /// In the order of the conditions.
    List(Vec<f64>),
    /// By condition.
    ByCode(BTreeMap<String, f64>),
    /// Such as `70/30`, or `equal`.
    Words(String),
}

impl WeightsInput {
    /// Returns the weights for the conditions with these codes, in this order; `None` if they do not
    /// match the codes.
    pub fn fit(&self, codes: &[String]) -> Option<Vec<f64>> {
        match self {
            Self::List(list) => (list.len() == codes.len()).then(|| list.clone()),
            Self::ByCode(by_code) => {
                let given = |code: &String| {
                    let is_same = |(known, _): &(&String, &f64)| known.eq_ignore_ascii_case(code);
                    by_code.get(code).or_else(|| by_code.iter().find(is_same).map(|(_, weight)| weight)).copied()
                };
                let mut found: Vec<Option<f64>> = codes.iter().map(given).collect();
                let known: Vec<f64> = found.iter().flatten().copied().collect();
                let rest = 100.0 - known.iter().sum::<f64>();
                // The only condition without a weight gets what is left.
                let lacks_one = known.len() == by_code.len() && found.len() - known.len() == 1;
                if let Some(last) = found.iter_mut().find(|weight| weight.is_none()).filter(|_| lacks_one && rest > 0.0)
                {
                    *last = Some((rest * 100.0).round() / 100.0);
                }
                let found: Option<Vec<f64>> = found.into_iter().collect();
                found.filter(|_| known.len() == by_code.len())
            }
            Self::Words(words) if is_equal(words) => Some(equal_shares(codes.len())),
            Self::Words(words) => match self.list() {
                Some(list) => (list.len() == codes.len()).then_some(list),
                None => Self::ByCode(by_code(words)?).fit(codes),
            },
        }
    }

    /// Returns the weights as a list without checking them against conditions; `None` if they cannot
    /// be parsed.
    pub fn list(&self) -> Option<Vec<f64>> {
        match self {
            Self::List(list) => Some(list.clone()),
            Self::ByCode(by_code) => Some(by_code.values().copied().collect()),
            Self::Words(words) => words.split(['/', ',', ':', '-']).map(percent).collect(),
        }
    }
}

/// The payloads sent to the application with conditions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PayloadInput {
    /// The condition's code.
    pub condition: String,
    /// The decision point, `site / target`. Default: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_point: Option<String>,
    /// `string`, `json` or `csv`. Default: `json` for an object or a list, else `string`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The content.
    pub value: String,
}

/// Payloads: by condition, or one by one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PayloadsInput {
    /// One by one.
    List(Vec<PayloadInput>),
    /// By condition: the same at each decision point.
    ByCode(BTreeMap<String, String>),
}

impl PayloadsInput {
    /// Returns all payloads as a list.
    pub fn all(&self) -> Vec<PayloadInput> {
        match self {
            Self::List(list) => list.clone(),
            Self::ByCode(by_code) => {
                let payload = |(code, value): (&String, &String)| PayloadInput {
                    condition: code.clone(),
                    decision_point: None,
                    kind: None,
                    value: value.clone(),
                };
                by_code.iter().map(payload).collect()
            }
        }
    }
}

/// A factor of a factorial design.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FactorInput {
    /// The name, such as `hints`.
    pub name: String,
    /// The levels.
    pub levels: Vec<LevelInput>,
}

/// A level of a factor: `none`, `none=payload`, or its parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum LevelInput {
    /// `none`, or `none=payload`.
    Words(String),
    /// The parts.
    Parts {
        /// The name.
        name: String,
        /// The payload sent to the application. Default: the name.
        #[serde(default)]
        payload: Option<String>,
        /// `string`, `json` or `csv`.
        #[serde(default, rename = "type")]
        kind: Option<String>,
    },
}

impl LevelInput {
    /// Returns the name, and the payload and its type if they are given.
    pub fn parts(&self) -> (String, Option<String>, Option<String>) {
        match self {
            Self::Words(words) => match words.split_once('=') {
                Some((name, payload)) => (name.trim().to_owned(), Some(payload.trim().to_owned()), None),
                None => (words.trim().to_owned(), None, None),
            },
            Self::Parts { name, payload, kind } => (name.trim().to_owned(), payload.clone(), kind.clone()),
        }
    }
}

/// Members of an inclusion or exclusion list: user ids and groups such as `classId:5B`, or by kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum MembersInput {
    /// User ids, and groups such as `classId:5B`.
    Words(OneOrMany<String>),
    /// By kind: `Individual` for users, or a type of group.
    ByKind(BTreeMap<String, OneOrMany<String>>),
}

/// Group memberships: one id or several for each type.
pub type GroupsInput = BTreeMap<String, OneOrMany<String>>;

/// Returns `n` equal shares in percent, with at most two decimals, adding up to 100.
pub fn equal_shares(n: usize) -> Vec<f64> {
    let share = (10_000 / n.max(1)) as f64 / 100.0;
    let mut shares = vec![share; n];
    if let Some(last) = shares.last_mut() {
        *last = ((100.0 - share * (n - 1) as f64) * 100.0).round() / 100.0;
    }
    shares
}

/// Returns true for the word that stands for equal weights.
fn is_equal(words: &str) -> bool {
    ["equal", "even"].iter().any(|word| words.trim().eq_ignore_ascii_case(word))
}

/// Parses weights as a card shows them: `control 10%, variant 90%`, also with `=` or `:`, or one on each line.
fn by_code(words: &str) -> Option<BTreeMap<String, f64>> {
    let share = |item: &str| {
        let (code, weight) = item.trim().rsplit_once([' ', '=', ':'])?;
        let code = code.trim().trim_end_matches(['=', ':']).trim_end();
        (!code.is_empty()).then_some((code.to_owned(), percent(weight)?))
    };
    words.split([',', ';', '\n']).filter(|item| !item.trim().is_empty()).map(share).collect()
}

fn percent(words: &str) -> Option<f64> {
    words.trim().trim_end_matches('%').trim_end().parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn weights(given: Value) -> WeightsInput {
        serde_json::from_value(given).unwrap()
    }

    #[test]
    fn weights_come_in_three_forms() {
        let codes = ["control".to_owned(), "variant".to_owned()];
        for given in [json!("70/30"), json!("70% / 30%"), json!([70, 30]), json!({ "variant": 30, "control": 70 })] {
            assert_eq!(weights(given.clone()).fit(&codes), Some(vec![70.0, 30.0]), "{given}");
        }
        for given in [
            json!("control 70%, variant 30%"),
            json!("variant=30, control=70"),
            json!("control: 70\nvariant: 30"),
            json!({ "Variant": 30 }),
            json!("variant 30%"),
        ] {
            assert_eq!(weights(given.clone()).fit(&codes), Some(vec![70.0, 30.0]), "{given}");
        }
        assert_eq!(weights(json!("equal")).fit(&codes), Some(vec![50.0, 50.0]));
        for given in [json!("70"), json!([70, 20, 10]), json!({ "control": 100 }), json!("most of it")] {
            assert_eq!(weights(given.clone()).fit(&codes), None, "{given}");
        }
    }

    #[test]
    fn points_and_conditions_come_in_two_forms() {
        let point = |given: Value| serde_json::from_value::<PointInput>(given).unwrap().parts();
        let both = Some(("SelectSection".to_owned(), "area_model".to_owned()));
        assert_eq!(point(json!("SelectSection / area_model")), both);
        assert_eq!(point(json!({ "site": "SelectSection", "target": "area_model" })), both);
        assert_eq!(point(json!("SelectSection")), None);

        let condition = |given: Value| serde_json::from_value::<ConditionInput>(given).unwrap().parts();
        assert_eq!(condition(json!("control")), ("control".to_owned(), None));
        for written in ["control: 60%", "control 60%", "control=60", "control: 60"] {
            assert_eq!(condition(json!(written)), ("control".to_owned(), Some(60.0)), "{written}");
        }
        assert_eq!(condition(json!("hint level 2")), ("hint level 2".to_owned(), None), "a code may end with a number");
        assert_eq!(condition(json!({ "code": "control", "weight": 60 })), ("control".to_owned(), Some(60.0)));
        assert_eq!(condition(json!("Color=Blue")), ("Color=Blue".to_owned(), None), "a code may contain `=`");
    }

    proptest! {
        #[test]
        fn equal_shares_add_up_and_are_nearly_equal(n in 1usize..60) {
            let shares = equal_shares(n);
            prop_assert!((shares.iter().sum::<f64>() - 100.0).abs() < 1e-6);
            prop_assert!(shares.iter().all(|share| (share - shares[0]).abs() < 0.6));
        }
    }
}
