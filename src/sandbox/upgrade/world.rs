//! The state of the stand-in: experiments, people, visits, and who is in or out of what.
//!
//! Names follow the platform's own tables, and a status is kept under its *stored* name; its shape on the wire is in
//! [`super::wire`], its meaning for an assignment in [`super::assign`]. Nothing here knows HTTP. Start at [`World`].

use std::collections::{BTreeMap, BTreeSet};

use countersign_core::clock::Timestamp;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Number, Value, json};

use super::Version;

/// The state of the stand-in. Saved as a whole when the sandbox keeps a file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct World {
    /// The version of the server that is played; not saved, so that a file can be reopened as another version.
    #[serde(skip)]
    pub(crate) version: Version,
    /// The moment of the request in hand.
    #[serde(skip)]
    pub(crate) now: Timestamp,
    /// True if the request in hand came with a token; decides whom the audit log names.
    #[serde(skip)]
    pub(crate) authenticated: bool,
    /// Goes up by one with each change, which shows if a request took effect.
    pub(crate) revision: u64,
    pub(crate) experiments: Vec<Experiment>,
    /// Public and global segments; private ones live in their experiment.
    pub(crate) segments: Vec<Segment>,
    pub(crate) users: BTreeMap<String, User>,
    /// Alias to the id it stands for.
    pub(crate) aliases: BTreeMap<String, String>,
    pub(crate) preview_users: BTreeSet<String>,
    pub(crate) visits: Vec<Visit>,
    pub(crate) enrollments: Vec<Enrollment>,
    pub(crate) group_enrollments: Vec<GroupEnrollment>,
    pub(crate) exclusions: Vec<Exclusion>,
    pub(crate) group_exclusions: Vec<GroupExclusion>,
    pub(crate) audit: Vec<Audit>,
    pub(crate) metric_logs: u64,
    /// The factors that were uploaded for stratified draws.
    #[serde(default)]
    pub(crate) stratification_factors: BTreeSet<String>,
}

/// A stored status. Which of them has another name on the wire depends on the version.
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

    /// Returns the name in answers: from 6.3 on three states go by another one.
    pub(crate) fn shown(self, version: Version) -> &'static str {
        match (version, self) {
            (Version::V6_5, Self::Enrolling) => "running",
            (Version::V6_5, Self::EnrollmentComplete) => "paused",
            (Version::V6_5, Self::Cancelled) => "completed",
            _ => self.stored(),
        }
    }

    /// Reads either name, or only the stored one where the version knows no other.
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

/// The times at which a row was written.
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

    /// Notes that the row was written again.
    pub(crate) fn touch(&mut self, now: Timestamp) {
        self.updated_at = now.to_string();
        self.version_number += 1;
    }
}

/// The columns of the experiment table, in the words of the wire.
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

/// An experiment with everything that hangs on it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Experiment {
    pub(crate) row: Row,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) points: Vec<Point>,
    pub(crate) payloads: Vec<Payload>,
    pub(crate) factors: Vec<Value>,
    /// The factor of a stratified draw.
    #[serde(default)]
    pub(crate) stratification_factor: Option<String>,
    pub(crate) queries: Vec<Value>,
    pub(crate) logs: Vec<StateLog>,
    pub(crate) inclusion: Vec<List>,
    pub(crate) exclusion: Vec<List>,
}

impl Experiment {
    /// Returns the conditions as the draw walks them.
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

    /// Returns true if a group as a whole draws the lot.
    pub(crate) fn by_group(&self) -> bool {
        self.row.assignment_unit == "group"
    }

    /// Returns true if the rule has that name.
    pub(crate) fn rule_is(&self, rule: &str) -> bool {
        self.row.consistency_rule.as_deref() == Some(rule)
    }
}

/// One variant under comparison.
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
    /// Only for factorial designs: the levels this condition combines.
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

/// The payload that one condition hands to the application at one point.
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
    /// Creates the record of a change that happens now.
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
    /// Type and id.
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
    /// Returns the group a user acts in, if it is one of those it belongs to.
    pub(crate) fn valid_working_group(&self, kind: &str) -> Option<&str> {
        let working = self.working_group.as_ref()?.get(kind)?;
        self.group.as_ref()?.get(kind)?.contains(working).then_some(working.as_str())
    }

    /// Returns true if the user belongs to that group.
    pub(crate) fn belongs_to(&self, kind: &str, id: &str) -> bool {
        self.group.as_ref().and_then(|group| group.get(kind)).is_some_and(|ids| ids.iter().any(|own| own == id))
    }
}

/// The record that a user reached a point; one per user and point.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Visit {
    pub(crate) id: String,
    pub(crate) user: String,
    pub(crate) site: String,
    pub(crate) target: String,
    pub(crate) experiment: Option<String>,
    pub(crate) condition: Option<String>,
    /// The number of times the point was marked; a within-subjects queue turns with it.
    pub(crate) marks: u32,
}

/// A user who became part of the data at one point.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Enrollment {
    pub(crate) experiment: String,
    pub(crate) user: String,
    pub(crate) point: String,
    pub(crate) condition: Option<String>,
    pub(crate) group: Option<String>,
    pub(crate) at: Timestamp,
}

/// The condition a group has drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct GroupEnrollment {
    pub(crate) experiment: String,
    pub(crate) group: String,
    pub(crate) condition: String,
}

/// A user who visited but may not take part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Exclusion {
    pub(crate) experiment: String,
    pub(crate) user: String,
}

/// A group that may not take part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct GroupExclusion {
    pub(crate) experiment: String,
    pub(crate) group: String,
}

/// One line of the audit log.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Audit {
    pub(crate) stamp: Stamp,
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) data: Value,
    /// False where the server asks for no token: then the log names no user.
    pub(crate) by_system: bool,
}

impl World {
    /// Notes that something changed.
    pub(crate) fn changed(&mut self) {
        self.revision += 1;
    }

    /// Returns the experiment with that id.
    pub(crate) fn experiment(&self, id: &str) -> Option<&Experiment> {
        self.experiments.iter().find(|experiment| experiment.row.id == id)
    }

    /// Returns the experiment with that id, to change it.
    pub(crate) fn experiment_mut(&mut self, id: &str) -> Option<&mut Experiment> {
        self.experiments.iter_mut().find(|experiment| experiment.row.id == id)
    }

    /// Returns the id behind an alias, or the id itself.
    pub(crate) fn original(&self, user: &str) -> String {
        self.aliases.get(user).cloned().unwrap_or_else(|| user.to_owned())
    }

    /// Writes a line into the audit log, and with it notes a change.
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

    /// Moves an experiment to another status, logs the change and forgets nothing: a status guards no other.
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

    /// Drops an experiment with all that is known about it.
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

/// Returns the two letters or digits by which people tell conditions and points apart.
pub(crate) fn fresh_two_characters() -> String {
    let bytes = uuid::Uuid::new_v4();
    let sign = |byte: u8| char::from(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[usize::from(byte) % 36]);
    [sign(bytes.as_bytes()[0]), sign(bytes.as_bytes()[1])].iter().collect()
}

/// Returns a number as JavaScript prints it: whole ones without a decimal point.
pub(crate) fn number(value: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "compared with what it came from in the same line")]
    let whole = value as i64;
    #[expect(clippy::cast_precision_loss, reason = "a number that does not survive is printed as a fraction")]
    if whole as f64 == value {
        return json!(whole);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

fn as_javascript<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    number(*value).serialize(serializer)
}
