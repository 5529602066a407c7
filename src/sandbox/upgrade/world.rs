//! The state of the stand-in: experiments, users, visits, enrolments and exclusions.
//!
//! Names follow the platform's tables, and a status has its *stored* name. Its format in answers is
//! in [`super::wire`], its effect on assignments in [`super::assign`]. Nothing here depends on
//! HTTP. Start at [`World`].

use std::collections::{BTreeMap, BTreeSet};

use countersign_core::clock::Timestamp;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Number, Value, json};

use super::Version;

/// The state of the stand-in. If the sandbox has a file, the state is saved there as a whole.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct World {
    /// The version of the simulated server. It is not saved, so that a file can be opened as
    /// another version.
    #[serde(skip)]
    pub(crate) version: Version,
    /// The time of the current request.
    #[serde(skip)]
    pub(crate) now: Timestamp,
    /// True if the server requires a token. The audit log then names a user.
    #[serde(skip)]
    pub(crate) authenticated: bool,
    /// The number of changes, which shows if a request took effect.
    pub(crate) revision: u64,
    pub(crate) experiments: Vec<Experiment>,
    /// Public and global segments. Private ones are stored in their experiment.
    pub(crate) segments: Vec<Segment>,
    pub(crate) users: BTreeMap<String, User>,
    /// The id of the user for each alias.
    pub(crate) aliases: BTreeMap<String, String>,
    pub(crate) preview_users: BTreeSet<String>,
    pub(crate) visits: Vec<Visit>,
    pub(crate) enrollments: Vec<Enrollment>,
    pub(crate) group_enrollments: Vec<GroupEnrollment>,
    pub(crate) exclusions: Vec<Exclusion>,
    pub(crate) group_exclusions: Vec<GroupExclusion>,
    pub(crate) audit: Vec<Audit>,
    pub(crate) metric_logs: u64,
    /// The factors that were uploaded for stratified random sampling.
    #[serde(default)]
    pub(crate) stratification_factors: BTreeSet<String>,
}

/// The status of an experiment. Depending on the version, answers use other names than the stored
/// ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum State {
    Draft,
    Inactive,
    Preview,
    Scheduled,
    Enrolling,
    EnrollmentComplete,
    Cancelled,
    Archived,
}

impl State {
    /// Returns the stored name.
    pub(crate) fn stored(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Inactive => "inactive",
            Self::Preview => "preview",
            Self::Scheduled => "scheduled",
            Self::Enrolling => "enrolling",
            Self::EnrollmentComplete => "enrollmentComplete",
            Self::Cancelled => "cancelled",
            Self::Archived => "archived",
        }
    }

    /// Returns the name in answers. Since 6.3, three states have another name than the stored one.
    pub(crate) fn shown(self, version: Version) -> &'static str {
        match (version, self) {
            (Version::V6_5, Self::Enrolling) => "running",
            (Version::V6_5, Self::EnrollmentComplete) => "paused",
            (Version::V6_5, Self::Cancelled) => "completed",
            _ => self.stored(),
        }
    }

    /// Returns the state with this stored name, or with this name in answers of the version.
    pub(crate) fn read(text: &str, version: Version) -> Option<Self> {
        const ALL: [State; 8] = [
            State::Draft,
            State::Inactive,
            State::Preview,
            State::Scheduled,
            State::Enrolling,
            State::EnrollmentComplete,
            State::Cancelled,
            State::Archived,
        ];
        ALL.into_iter().find(|state| state.stored() == text || state.shown(version) == text)
    }
}

/// The creation and update times and the version of a row.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Stamp {
    pub(crate) created_at: String,
    pub(crate) updated_at: String,
    pub(crate) version_number: u32,
}

impl Stamp {
    /// Returns the stamp of a row written now.
    pub(crate) fn new(now: Timestamp) -> Self {
        Self { created_at: now.to_string(), updated_at: now.to_string(), version_number: 1 }
    }

    /// Records an update of the row.
    pub(crate) fn touch(&mut self, now: Timestamp) {
        self.updated_at = now.to_string();
        self.version_number += 1;
    }
}

/// The columns of the experiment table, with the field names of the API.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) context: Vec<String>,
    pub(crate) state: State,
    pub(crate) start_on: Option<String>,
    pub(crate) consistency_rule: Option<String>,
    pub(crate) assignment_unit: String,
    pub(crate) post_experiment_rule: String,
    pub(crate) enrollment_complete_condition: Value,
    pub(crate) end_on: Option<String>,
    pub(crate) revert_to: Option<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) group: Option<String>,
    pub(crate) condition_order: Option<String>,
    pub(crate) assignment_algorithm: String,
    pub(crate) filter_mode: String,
    pub(crate) backend_version: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
}

/// An experiment with all its parts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Experiment {
    pub(crate) row: Row,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) points: Vec<Point>,
    pub(crate) payloads: Vec<Payload>,
    pub(crate) factors: Vec<Value>,
    /// The factor for stratified random sampling.
    #[serde(default)]
    pub(crate) stratification_factor: Option<String>,
    pub(crate) queries: Vec<Value>,
    pub(crate) logs: Vec<StateLog>,
    pub(crate) inclusion: Vec<List>,
    pub(crate) exclusion: Vec<List>,
}

impl Experiment {
    /// Returns the conditions in the order in which a draw adds up their weights.
    pub(crate) fn in_order(&self) -> Vec<&Condition> {
        let mut conditions: Vec<_> = self.conditions.iter().collect();
        conditions.sort_by_key(|condition| condition.order);
        conditions
    }

    /// Returns the condition with that id.
    pub(crate) fn condition(&self, id: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.id == id)
    }

    /// Returns the first point at that site and target.
    pub(crate) fn point_at(&self, site: &str, target: Option<&str>) -> Option<&Point> {
        self.points.iter().find(|point| point.site == site && point.target.as_deref() == target)
    }

    /// Returns true if conditions are assigned to groups as a whole.
    pub(crate) fn by_group(&self) -> bool {
        self.row.assignment_unit == "group"
    }

    /// Returns true if this is the consistency rule.
    pub(crate) fn rule_is(&self, rule: &str) -> bool {
        self.row.consistency_rule.as_deref() == Some(rule)
    }
}

/// A condition, one of the variants that are compared.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Condition {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) id: String,
    pub(crate) two_character_id: String,
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) condition_code: String,
    #[serde(serialize_with = "as_javascript")]
    pub(crate) assignment_weight: f64,
    pub(crate) order: i64,
    /// The levels that this condition combines, in a factorial design.
    #[serde(default)]
    pub(crate) level_combination_elements: Vec<Value>,
}

/// A decision point.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Point {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) id: String,
    pub(crate) two_character_id: String,
    pub(crate) site: String,
    pub(crate) target: Option<String>,
    pub(crate) description: String,
    pub(crate) order: i64,
    pub(crate) exclude_if_reached: bool,
}

/// The payload that a condition gives to the application at one point.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Payload {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) id: String,
    pub(crate) parent_condition: String,
    pub(crate) decision_point: String,
    pub(crate) payload: Value,
}

/// One change of status.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StateLog {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) id: String,
    pub(crate) from_state: State,
    pub(crate) to_state: State,
    pub(crate) time_log: String,
}

impl StateLog {
    /// Creates the record of a change at `now`.
    pub(crate) fn new(now: Timestamp, from_state: State, to_state: State) -> Self {
        Self { stamp: Stamp::new(now), id: fresh_id(), from_state, to_state, time_log: now.to_string() }
    }
}

/// An inclusion or exclusion list of one experiment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct List {
    pub(crate) stamp: Stamp,
    pub(crate) segment: Segment,
}

/// A named collection of users, groups and other segments.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Segment {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) list_type: Option<String>,
    pub(crate) context: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) tags: Value,
    pub(crate) users: Vec<String>,
    /// The type and id of each group.
    pub(crate) groups: Vec<(String, String)>,
    pub(crate) sub_segments: Vec<String>,
}

/// An end user of a client application.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct User {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) group: Option<BTreeMap<String, Vec<String>>>,
    pub(crate) working_group: Option<BTreeMap<String, String>>,
}

impl User {
    /// Returns the working group of this type, if the user is a member of it.
    pub(crate) fn valid_working_group(&self, kind: &str) -> Option<&str> {
        let working = self.working_group.as_ref()?.get(kind)?;
        self.group.as_ref()?.get(kind)?.contains(working).then_some(working.as_str())
    }

    /// Returns true if the user is a member of this group.
    pub(crate) fn belongs_to(&self, kind: &str, id: &str) -> bool {
        self.group.as_ref().and_then(|group| group.get(kind)).is_some_and(|ids| ids.iter().any(|own| own == id))
    }
}

/// The record that a user reached a point. There is one for each user and point.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Visit {
    pub(crate) id: String,
    pub(crate) user: String,
    pub(crate) site: String,
    pub(crate) target: String,
    pub(crate) experiment: Option<String>,
    pub(crate) condition: Option<String>,
    /// The number of times that the point was marked. It rotates the queue of a within-subjects
    /// experiment.
    pub(crate) marks: u32,
}

/// The enrolment of a user at one point.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Enrollment {
    pub(crate) experiment: String,
    pub(crate) user: String,
    pub(crate) point: String,
    pub(crate) condition: Option<String>,
    pub(crate) group: Option<String>,
    pub(crate) at: Timestamp,
}

/// The condition that was assigned to a group.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct GroupEnrollment {
    pub(crate) experiment: String,
    pub(crate) group: String,
    pub(crate) condition: String,
}

/// A user who visited but is excluded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Exclusion {
    pub(crate) experiment: String,
    pub(crate) user: String,
}

/// An excluded group.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct GroupExclusion {
    pub(crate) experiment: String,
    pub(crate) group: String,
}

/// An entry of the audit log.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Audit {
    pub(crate) stamp: Stamp,
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) data: Value,
    /// False if the server requires no token. The entry then names no user.
    pub(crate) by_system: bool,
}

impl World {
    /// Records a change.
    pub(crate) fn changed(&mut self) {
        self.revision += 1;
    }

    /// Returns the experiment with that id.
    pub(crate) fn experiment(&self, id: &str) -> Option<&Experiment> {
        self.experiments.iter().find(|experiment| experiment.row.id == id)
    }

    /// Returns the experiment with that id, mutably.
    pub(crate) fn experiment_mut(&mut self, id: &str) -> Option<&mut Experiment> {
        self.experiments.iter_mut().find(|experiment| experiment.row.id == id)
    }

    /// Returns the id of the user with this alias, or `user` itself if it is not an alias.
    pub(crate) fn original(&self, user: &str) -> String {
        self.aliases.get(user).cloned().unwrap_or_else(|| user.to_owned())
    }

    /// Adds an entry to the audit log, and records a change.
    pub(crate) fn log(&mut self, kind: &str, data: Value) {
        let entry = Audit {
            stamp: Stamp::new(self.now),
            id: fresh_id(),
            kind: kind.to_owned(),
            data,
            by_system: self.authenticated,
        };
        self.audit.push(entry);
        self.changed();
    }

    /// Sets the status of an experiment and logs the change. Every change of status is possible,
    /// and no data is deleted.
    pub(crate) fn change_state(&mut self, id: &str, to: State) {
        let now = self.now;
        let Some(experiment) = self.experiment_mut(id) else { return };
        let from = experiment.row.state;
        experiment.row.state = to;
        experiment.row.stamp.touch(now);
        experiment.logs.push(StateLog::new(now, from, to));
        let data = json!({
            "experimentId": id, "experimentName": experiment.row.name,
            "previousState": from.stored(), "newState": to.stored(),
        });
        self.log("experimentStateChanged", data);
    }

    /// Removes an experiment with its enrolments and exclusions.
    pub(crate) fn remove(&mut self, id: &str) -> Option<Experiment> {
        let at = self.experiments.iter().position(|experiment| experiment.row.id == id)?;
        self.enrollments.retain(|row| row.experiment != id);
        self.group_enrollments.retain(|row| row.experiment != id);
        self.exclusions.retain(|row| row.experiment != id);
        self.group_exclusions.retain(|row| row.experiment != id);
        let removed = self.experiments.remove(at);
        let data = json!({ "experimentId": id, "experimentName": removed.row.name });
        self.log("experimentDeleted", data);
        Some(removed)
    }
}

/// Returns a new id.
pub(crate) fn fresh_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// Returns true if the text has the form of an id.
pub(crate) fn is_id(text: &str) -> bool {
    text.len() == 36 && uuid::Uuid::try_parse(text).is_ok()
}

/// Returns two random letters or digits, a short id of a condition or point for people.
pub(crate) fn fresh_two_characters() -> String {
    let bytes = uuid::Uuid::new_v4();
    let sign = |byte: u8| char::from(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[usize::from(byte) % 36]);
    [sign(bytes.as_bytes()[0]), sign(bytes.as_bytes()[1])].iter().collect()
}

/// Returns a number in the format of JavaScript: whole numbers have no decimal point.
pub(crate) fn number(value: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "the result is compared with the original below")]
    let whole = value as i64;
    #[expect(clippy::cast_precision_loss, reason = "an inexact result is not equal and is printed as a fraction")]
    if whole as f64 == value {
        return json!(whole);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

fn as_javascript<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    number(*value).serialize(serializer)
}
