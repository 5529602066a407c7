//! An experiment as the server tells it, and as it is sent back.
//!
//! There is no partial update: an experiment is read, edited and put back whole. So [`Experiment`] keeps the raw object
//! beside the typed view, and whatever this version of the bot does not know survives the round trip.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use uuid::Uuid;

use super::{
    lists::{MemberList, Side, lists},
    status::Status,
};

/// Names an experiment. Always a UUID: a malformed one never leaves the bot.
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
pub struct Named {
    /// Its id.
    pub id: ExperimentId,
    /// Its name; not unique.
    pub name: String,
}

/// An experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Everything the server said.
    pub raw: Value,
    /// What we read of it.
    pub view: View,
}

impl Experiment {
    /// Reads what the server said.
    ///
    /// # Errors
    ///
    /// If what every experiment has is missing or of another type.
    pub fn from_value(raw: Value) -> Result<Self, serde_json::Error> {
        let view = View::deserialize(&raw)?.in_order();
        Ok(Self { raw, view })
    }
}

/// What the bot reads of an experiment.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct View {
    /// Its id.
    pub id: ExperimentId,
    /// Its name; not unique.
    pub name: String,
    /// What it is about.
    #[serde(default, deserialize_with = "or_default")]
    pub description: String,
    /// The applications it belongs to; only the first counts.
    #[serde(default, deserialize_with = "or_default")]
    pub context: Vec<String>,
    /// Where it stands.
    pub state: Status,
    /// Who draws a lot: `individual`, `group` or `within-subjects`.
    #[serde(default, deserialize_with = "or_default")]
    pub assignment_unit: String,
    /// The type of group, with unit `group`.
    #[serde(default)]
    pub group: Option<String>,
    /// Whose past decides: `individual`, `group`, `experiment`; none within subjects.
    #[serde(default)]
    pub consistency_rule: Option<String>,
    /// How the lot is drawn.
    #[serde(default)]
    pub assignment_algorithm: Option<String>,
    /// What holds once enrolment is complete: `continue` or `assign`.
    #[serde(default, deserialize_with = "or_default")]
    pub post_experiment_rule: String,
    /// The condition that `assign` names, by id.
    #[serde(default)]
    pub revert_to: Option<String>,
    /// Whether people on no list are in: `includeAll` or `excludeAll`.
    #[serde(default, deserialize_with = "or_default")]
    pub filter_mode: String,
    /// `Simple` or `Factorial`.
    #[serde(default, rename = "type", deserialize_with = "or_default")]
    pub kind: String,
    /// Labels for finding it.
    #[serde(default, deserialize_with = "or_default")]
    pub tags: Vec<String>,
    /// Its versions, in order.
    #[serde(default, deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
    /// What a factorial design varies, in order.
    #[serde(default, deserialize_with = "each_readable")]
    pub factors: Vec<Factor>,
    /// Where it takes place, in order.
    #[serde(default, rename = "partitions", deserialize_with = "or_default")]
    pub decision_points: Vec<DecisionPoint>,
    /// In which order people meet the conditions; within subjects only.
    #[serde(default)]
    pub condition_order: Option<String>,
    /// How many participants end the enrolment by themselves.
    #[serde(default, rename = "enrollmentCompleteCondition", deserialize_with = "readable")]
    pub ending: Ending,
    /// When it starts by itself, in ISO 8601.
    #[serde(default)]
    pub start_on: Option<String>,
    /// When it is to end, in ISO 8601.
    #[serde(default)]
    pub end_on: Option<String>,
    /// What the application is told with a condition at a point, where that was set.
    #[serde(default, rename = "conditionPayloads", deserialize_with = "each_readable")]
    pub payloads: Vec<Payload>,
    /// Who takes part, by name.
    #[serde(default, rename = "experimentSegmentInclusion", deserialize_with = "lists")]
    pub inclusion: Vec<MemberList>,
    /// Who stays out, by name.
    #[serde(default, rename = "experimentSegmentExclusion", deserialize_with = "lists")]
    pub exclusion: Vec<MemberList>,
    /// What a stratified draw goes by.
    #[serde(default, deserialize_with = "readable")]
    pub stratification_factor: Option<StratificationFactor>,
    /// Every change of status, in no order.
    #[serde(default, deserialize_with = "each_readable")]
    pub state_time_logs: Vec<StatusChange>,
    /// When it was created.
    #[serde(default)]
    pub created_at: Option<String>,
    /// When the row was last written; enrolments do not touch it.
    #[serde(default)]
    pub updated_at: Option<String>,
    /// Counts the writes of the row.
    #[serde(default)]
    pub version_number: Option<u64>,
}

impl View {
    /// With conditions, points and factors in their order: the server sends them in any.
    pub fn in_order(mut self) -> Self {
        self.conditions.sort_by_key(|condition| condition.order);
        self.decision_points.sort_by_key(|point| point.order);
        self.factors.sort_by_key(|factor| factor.order);
        self.factors.iter_mut().for_each(|factor| factor.levels.sort_by_key(|level| level.order));
        self
    }

    /// The context that counts.
    pub fn context(&self) -> &str {
        self.context.first().map_or("", String::as_str)
    }

    /// Whether its conditions are combinations of the levels of factors.
    pub fn is_factorial(&self) -> bool {
        self.kind == "Factorial"
    }

    /// Its lists of one kind.
    pub fn lists(&self, side: Side) -> &[MemberList] {
        match side {
            Side::Inclusion => &self.inclusion,
            Side::Exclusion => &self.exclusion,
        }
    }

    /// The condition of that id.
    pub fn condition(&self, id: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.id == id)
    }
}

/// One version under comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Its identity.
    pub id: String,
    /// The word the application acts on.
    pub condition_code: String,
    /// Its share in percent; stored in single precision.
    pub assignment_weight: f64,
    /// Its place in the draw.
    #[serde(default)]
    pub order: i64,
}

/// A dimension that a factorial design varies.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Factor {
    /// Its name.
    pub name: String,
    /// Its place in the list.
    #[serde(default)]
    pub order: i64,
    /// Its values, in order.
    #[serde(default, deserialize_with = "each_readable")]
    pub levels: Vec<Level>,
}

/// A value of a factor.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Level {
    /// Its name.
    pub name: String,
    /// Its place in the list.
    #[serde(default)]
    pub order: i64,
    /// What the application is told with it.
    #[serde(default, deserialize_with = "readable")]
    pub payload: Option<PayloadContent>,
}

/// A place in the application where it asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DecisionPoint {
    /// Its identity.
    pub id: String,
    /// The broader place.
    pub site: String,
    /// The thing within it; may be missing in a design.
    #[serde(default)]
    pub target: Option<String>,
    /// Its place in the list.
    #[serde(default)]
    pub order: i64,
    /// Whether people who were here before the start stay out.
    #[serde(default)]
    pub exclude_if_reached: bool,
}

impl DecisionPoint {
    /// `site / target`.
    pub fn words(&self) -> String {
        match &self.target {
            Some(target) if !target.is_empty() => format!("{} / {target}", self.site),
            _ => self.site.clone(),
        }
    }
}

/// How many participants end the enrolment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ending {
    /// So many users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_count: Option<u64>,
    /// So many groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_count: Option<u64>,
}

/// What the application is told with a condition at a point.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Payload {
    /// The condition, by id.
    pub parent_condition: String,
    /// The decision point, by id.
    pub decision_point: String,
    /// What it is told.
    pub payload: PayloadContent,
}

/// A payload's form and words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayloadContent {
    /// `string`, `json` or `csv`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The words.
    pub value: String,
}

/// Names an uploaded factor.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StratificationFactor {
    /// Its name.
    pub stratification_factor_name: String,
}

/// One change of status.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusChange {
    /// What it became.
    pub to_state: Status,
    /// When, in ISO 8601.
    pub time_log: String,
}

/// `null` counts as absent.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// What cannot be read counts as absent: the experiment matters more than this part of it.
fn readable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + DeserializeOwned,
{
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).unwrap_or_default())
}

/// The entries of a list that can be read.
fn each_readable<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: DeserializeOwned,
{
    let Value::Array(entries) = Value::deserialize(deserializer)? else { return Ok(Vec::new()) };
    Ok(entries.into_iter().filter_map(|entry| serde_json::from_value(entry).ok()).collect())
}
