//! An experiment as it is received from the server and sent back.
//!
//! There is no partial update: an experiment is read, edited and sent back as a whole. [`Experiment`]
//! therefore keeps the text of the whole object along with the typed view, so that fields unknown to this version
//! of the bot survive the round trip.

use std::{fmt, str::FromStr};

use serde::{
    Deserialize, Serialize,
    de::{DeserializeOwned, Error as _},
};
use serde_json::{Value, value::RawValue};
use uuid::Uuid;

use super::{
    answer::{FromAnswer, fault},
    error::Error,
    lists::{MemberList, Side, lists},
    status::Status,
};

/// The id of an experiment. Always a UUID, so that a malformed id is never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExperimentId(pub Uuid);

impl fmt::Display for ExperimentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ExperimentId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::parse_str(text.trim()).map(Self)
    }
}

/// The name of an experiment and its id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExperimentName {
    /// The id.
    pub id: ExperimentId,
    /// The name; not unique.
    pub name: String,
}

/// An experiment.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The whole object as the server sent it. Most callers only need the view, so it is kept as text.
    text: Box<str>,
    /// The typed part of it.
    pub view: View,
}

impl Experiment {
    /// Reads an experiment from a parsed answer.
    ///
    /// # Errors
    ///
    /// If a field that every experiment has is missing or of another type.
    pub fn from_value(raw: &Value) -> Result<Self, serde_json::Error> {
        let view = View::deserialize(raw)?.in_order();
        Ok(Self { text: raw.to_string().into(), view })
    }

    /// Returns the whole object as the server sent it.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`] if a field that the view does not have cannot be kept as it is, such as a number that is too large.
    pub fn raw(&self) -> Result<Value, Error> {
        serde_json::from_str(&self.text).map_err(|error| Error::Decode { reason: fault(&error) })
    }
}

/// Reads an experiment. Fails if a field that every experiment has is missing or of another type.
impl FromAnswer for Experiment {
    fn from_answer(body: &[u8]) -> Result<Self, serde_json::Error> {
        let text = str::from_utf8(body).map_err(|_| serde_json::Error::custom("not UTF-8"))?;
        let view = serde_json::from_str::<View>(text)?.in_order();
        Ok(Self { text: text.into(), view })
    }
}

/// The fields of an experiment that the bot reads.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct View {
    /// The id.
    pub id: ExperimentId,
    /// The name; not unique.
    pub name: String,
    /// The description.
    #[serde(default, deserialize_with = "or_default")]
    pub description: String,
    /// The contexts. Only the first one is used.
    #[serde(default, deserialize_with = "or_default")]
    pub context: Vec<String>,
    /// The status.
    pub state: Status,
    /// The unit of assignment: `individual`, `group` or `within-subjects`.
    #[serde(default, deserialize_with = "or_default")]
    pub assignment_unit: String,
    /// The type of group, with unit `group`.
    #[serde(default)]
    pub group: Option<String>,
    /// The consistency rule, which decides whose past assignment is kept: `individual`, `group` or
    /// `experiment`; none within subjects.
    #[serde(default)]
    pub consistency_rule: Option<String>,
    /// The algorithm that draws conditions.
    #[serde(default)]
    pub assignment_algorithm: Option<String>,
    /// The rule after enrolment is complete: `continue` or `assign`.
    #[serde(default, deserialize_with = "or_default")]
    pub post_experiment_rule: String,
    /// The condition that `assign` names, by id.
    #[serde(default)]
    pub revert_to: Option<String>,
    /// The rule for people on no list: `includeAll` or `excludeAll`.
    #[serde(default, deserialize_with = "or_default")]
    pub filter_mode: String,
    /// The design: `Simple` or `Factorial`.
    #[serde(default, rename = "type", deserialize_with = "or_default")]
    pub kind: String,
    /// The tags.
    #[serde(default, deserialize_with = "or_default")]
    pub tags: Vec<String>,
    /// The conditions, in order.
    #[serde(default, deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
    /// The factors of a factorial design, in order.
    #[serde(default, deserialize_with = "each_readable")]
    pub factors: Vec<Factor>,
    /// The decision points, in order.
    #[serde(default, rename = "partitions", deserialize_with = "or_default")]
    pub decision_points: Vec<DecisionPoint>,
    /// The order in which people get the conditions; within subjects only.
    #[serde(default)]
    pub condition_order: Option<String>,
    /// The numbers of participants that end enrolment automatically.
    #[serde(default, rename = "enrollmentCompleteCondition", deserialize_with = "readable")]
    pub ending: Ending,
    /// The scheduled start, in ISO 8601.
    #[serde(default)]
    pub start_on: Option<String>,
    /// The scheduled end, in ISO 8601.
    #[serde(default)]
    pub end_on: Option<String>,
    /// The payloads that were set for a condition at a point.
    #[serde(default, rename = "conditionPayloads", deserialize_with = "each_readable")]
    pub payloads: Vec<Payload>,
    /// The inclusion lists.
    #[serde(default, rename = "experimentSegmentInclusion", deserialize_with = "lists")]
    pub inclusion: Vec<MemberList>,
    /// The exclusion lists.
    #[serde(default, rename = "experimentSegmentExclusion", deserialize_with = "lists")]
    pub exclusion: Vec<MemberList>,
    /// The queries on metrics, in order.
    #[serde(default, deserialize_with = "each_readable")]
    pub queries: Vec<Query>,
    /// The factor of a stratified draw.
    #[serde(default, deserialize_with = "readable")]
    pub stratification_factor: Option<StratificationFactor>,
    /// All changes of status, in no particular order.
    #[serde(default, deserialize_with = "each_readable")]
    pub state_time_logs: Vec<StatusChange>,
    /// The time of creation.
    #[serde(default)]
    pub created_at: Option<String>,
    /// The time of the last write of the row; enrolments do not change it.
    #[serde(default)]
    pub updated_at: Option<String>,
    /// The number of writes of the row.
    #[serde(default)]
    pub version_number: Option<u64>,
}

impl View {
    /// Sorts conditions, points, factors and queries, which the server sends in no particular order.
    pub fn in_order(mut self) -> Self {
        self.conditions.sort_by_key(|condition| condition.order);
        self.decision_points.sort_by_key(|point| point.order);
        self.factors.sort_by_key(|factor| factor.order);
        self.queries.sort_by_key(|query| query.order);
        self.factors.iter_mut().for_each(|factor| factor.levels.sort_by_key(|level| level.order));
        self
    }

    /// Returns the context that is used, which is the first.
    pub fn context(&self) -> &str {
        self.context.first().map_or("", String::as_str)
    }

    /// Returns the codes of the conditions.
    pub fn codes(&self) -> Vec<String> {
        self.conditions.iter().map(|condition| condition.condition_code.clone()).collect()
    }

    /// Returns the decision points in words.
    pub fn places(&self) -> Vec<String> {
        self.decision_points.iter().map(DecisionPoint::words).collect()
    }

    /// Returns true if the conditions are combinations of factor levels.
    pub fn is_factorial(&self) -> bool {
        self.kind == "Factorial"
    }

    /// Returns the lists of one side.
    pub fn lists(&self, side: Side) -> &[MemberList] {
        match side {
            Side::Inclusion => &self.inclusion,
            Side::Exclusion => &self.exclusion,
        }
    }

    /// Returns the condition with that id.
    pub fn condition(&self, id: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.id == id)
    }
}

/// A condition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// The id.
    pub id: String,
    /// The code that the application receives.
    pub condition_code: String,
    /// The share in percent. The server stores it in single precision.
    pub assignment_weight: f64,
    /// The position in the draw.
    #[serde(default)]
    pub order: i64,
    /// The name for people; empty if it has none.
    #[serde(default, deserialize_with = "or_default", skip_serializing)]
    pub name: String,
    /// The description; empty if it has none.
    #[serde(default, deserialize_with = "or_default", skip_serializing)]
    pub description: String,
}

/// A query on a metric: what is computed for each condition from what the application reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Query {
    /// The name.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// What is computed.
    #[serde(default, deserialize_with = "or_default")]
    pub query: Operation,
    /// The metric; `None` if it was deleted.
    #[serde(default, deserialize_with = "readable")]
    pub metric: Option<Metric>,
    /// Which of several values of a user counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeated_measure: Option<String>,
    /// The position in the list.
    #[serde(default, skip_serializing)]
    pub order: i64,
}

/// What a query computes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// The operation, such as `avg` or `percentage`.
    #[serde(default, deserialize_with = "or_default")]
    pub operation_type: String,
    /// The comparison with a value: `=` or `<>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compare_fn: Option<String>,
    /// The value that is compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compare_value: Option<Value>,
}

/// A metric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metric {
    /// The key.
    pub key: String,
}

/// A factor of a factorial design.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Factor {
    /// The name.
    pub name: String,
    /// The position in the list.
    #[serde(default)]
    pub order: i64,
    /// The levels, in order.
    #[serde(default, deserialize_with = "each_readable")]
    pub levels: Vec<Level>,
    /// The description; empty if it has none.
    #[serde(default, deserialize_with = "or_default")]
    pub description: String,
}

/// A level of a factor.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Level {
    /// The name.
    pub name: String,
    /// The position in the list.
    #[serde(default)]
    pub order: i64,
    /// The content that the application receives with it.
    #[serde(default, deserialize_with = "readable")]
    pub payload: Option<PayloadContent>,
    /// The description; empty if it has none.
    #[serde(default, deserialize_with = "or_default")]
    pub description: String,
}

/// A decision point: a place in the application that asks for a condition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DecisionPoint {
    /// The id.
    pub id: String,
    /// The broader place.
    pub site: String,
    /// The thing within the site; may be missing in a design.
    #[serde(default)]
    pub target: Option<String>,
    /// The position in the list.
    #[serde(default)]
    pub order: i64,
    /// True to exclude people who reached the point before the start.
    #[serde(default)]
    pub exclude_if_reached: bool,
    /// The description; empty if it has none.
    #[serde(default, deserialize_with = "or_default", skip_serializing)]
    pub description: String,
}

impl DecisionPoint {
    /// Returns `site / target`.
    pub fn words(&self) -> String {
        point_words(&self.site, self.target.as_deref())
    }
}

/// Returns `site / target`.
pub(super) fn point_words(site: &str, target: Option<&str>) -> String {
    match target {
        Some(target) if !target.is_empty() => format!("{site} / {target}"),
        _ => site.to_owned(),
    }
}

/// The numbers of participants that end enrolment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ending {
    /// The number of users; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_count: Option<u64>,
    /// The number of groups; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_count: Option<u64>,
}

/// The content that the application receives with a condition at a point.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Payload {
    /// The condition, by id.
    pub parent_condition: String,
    /// The decision point, by id.
    pub decision_point: String,
    /// The content.
    pub payload: PayloadContent,
}

/// A payload's type and text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayloadContent {
    /// The type: `string`, `json` or `csv`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The text.
    pub value: String,
}

/// A stratification factor that was uploaded.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StratificationFactor {
    /// The name.
    pub stratification_factor_name: String,
}

/// One change of status.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusChange {
    /// The new status.
    pub to_state: Status,
    /// The time, in ISO 8601.
    pub time_log: String,
}

/// Reads `null` as the default.
pub(super) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads a value that cannot be parsed as the default, so that the rest of the experiment can still
/// be read.
fn readable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + DeserializeOwned,
{
    Ok(serde_json::from_str(Box::<RawValue>::deserialize(deserializer)?.get()).unwrap_or_default())
}

/// Reads the entries of a list that can be parsed, and leaves the others out.
fn each_readable<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: DeserializeOwned,
{
    let list = Box::<RawValue>::deserialize(deserializer)?;
    let entries: Vec<&RawValue> = serde_json::from_str(list.get()).unwrap_or_default();
    Ok(entries.into_iter().filter_map(|entry| serde_json::from_str(entry.get()).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(more: &str) -> Result<Experiment, Error> {
        let text = format!(r#"{{"id":"a0092b36-7dc8-4a28-b576-87ea191cf88b","name":"A","state":"inactive"{more}}}"#);
        Experiment::from_answer(text.as_bytes()).map_err(|error| Error::Decode { reason: fault(&error) })
    }

    #[test]
    fn what_the_bot_does_not_know_is_kept() {
        let experiment = read(r#","later":{"b":[1.50,null]},"a":"ä""#).unwrap();
        assert_eq!(experiment.raw().unwrap()["later"], serde_json::json!({ "b": [1.5, null] }));
    }

    #[test]
    fn what_cannot_be_sent_back_as_it_is_is_an_error() {
        let deep = format!(r#","x":{}{}"#, "[".repeat(200), "]".repeat(200));
        for more in [r#","x":1e999"#, r#","x":"\ud83d""#, &deep] {
            let experiment = read(more).unwrap();
            assert!(matches!(experiment.raw(), Err(Error::Decode { .. })), "{more}");
        }
    }

    #[test]
    fn an_error_names_what_is_wrong_and_no_place() {
        let Err(Error::Decode { reason }) = read(r#","tags":7"#) else { panic!("7 is no list") };
        assert_eq!(reason, "invalid type: integer `7`, expected a sequence");
    }
}
