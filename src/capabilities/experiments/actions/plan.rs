//! The plan of a new experiment, which is shown on the card, stored, sent, and compared with the
//! experiment when it is read back.

use countersign_core::reply::{Card, Fact, Text};
use countersign_graph::action::{Scope, Undo};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    choices,
    copy::Copied,
    dates,
    design::{self, PlannedCondition, PlannedPoint},
    expects::Expects,
    factorial::{self, PlannedFactor},
    fields::{self, Field},
    lists,
    lists::Members,
    stratified::STRATIFIED,
    surroundings::{Claims, Surroundings},
};
use crate::{
    inputs::PayloadInput,
    replies::{answers, cautions, reach, split},
    rules, scope, summary,
    testing::split::Design,
    upgrade::{
        context::ContextMetadata,
        error::Error,
        experiment::{Ending, Experiment, ExperimentId, View},
        lists::{SharedSegment, Side},
        status::Status,
        version::Version,
    },
};

/// The stored parameters.
#[derive(Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) id: ExperimentId,
    pub(super) name: String,
    pub(super) description: String,
    pub(super) context: String,
    pub(super) unit: String,
    pub(super) group: Option<String>,
    /// The consistency rule; `None` within subjects.
    pub(super) consistency: Option<String>,
    /// Only within subjects.
    pub(super) condition_order: Option<String>,
    /// One of `continue`, `assign <code>` and `assign default`.
    #[serde(default = "keep")]
    pub(super) post_rule: String,
    pub(super) filter_mode: String,
    pub(super) tags: Vec<String>,
    pub(super) conditions: Vec<PlannedCondition>,
    /// Empty unless the design is factorial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) factors: Vec<PlannedFactor>,
    /// The factor of a stratified draw; `None` for a random one.
    pub(super) stratification_factor: Option<String>,
    pub(super) decision_points: Vec<PlannedPoint>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) payloads: Vec<PayloadInput>,
    pub(super) ends_after_users: Option<u64>,
    pub(super) ends_after_groups: Option<u64>,
    pub(super) start_on: Option<String>,
    pub(super) end_on: Option<String>,
    #[serde(default, skip_serializing_if = "Members::is_empty")]
    pub(super) inclusion: Members,
    #[serde(default, skip_serializing_if = "Members::is_empty")]
    pub(super) exclusion: Members,
    /// What was copied beside the parameters.
    pub(super) copied: Option<Copied>,
}

fn keep() -> String {
    "continue".to_owned()
}

impl Plan {
    /// Returns the scope. A plan for another experiment with the same name counts as another version of
    /// this request.
    pub(super) fn scope(&self) -> Scope {
        let mut scope = Scope::of(format!("new experiment:{}", self.name.trim().to_lowercase()))
            .in_context(&*self.context)
            .of_subject(&*self.name);
        for condition in &self.conditions {
            scope = scope.measure(scope::WEIGHT, condition.weight);
        }
        let moments = [(scope::START, &self.start_on), (scope::END, &self.end_on)];
        moments.into_iter().fold(scope, |scope, (measure, moment)| match moment {
            Some(moment) => scope.measure(measure, &**moment),
            None => scope,
        })
    }

    fn members(&self, side: Side) -> &Members {
        match side {
            Side::Inclusion => &self.inclusion,
            Side::Exclusion => &self.exclusion,
        }
    }

    /// Returns the shared segments that are copied.
    pub(super) fn segments(&self, side: Side) -> &[SharedSegment] {
        self.copied.as_ref().map_or(&[], |copied| copied.segments(side))
    }

    fn ending(&self) -> Ending {
        Ending { user_count: self.ends_after_users, group_count: self.ends_after_groups }
    }

    /// Returns the subjects of what the card says about other experiments.
    pub(super) fn claims(&self) -> Claims<'_> {
        let points = self.decision_points.iter().map(|point| (point.site.as_str(), point.target.as_str()));
        Claims::about_new(self.id, &self.context, points, &self.name)
    }

    /// Returns the request that creates the experiment, in the format of the server's version.
    pub(super) fn body(&self, version: &Version) -> Value {
        let conditions = self.conditions.iter().zip(1..).map(|(condition, order)| {
            let PlannedCondition { id, code, weight } = condition;
            json!({ "id": id, "conditionCode": code, "assignmentWeight": weight, "order": order })
        });
        let points = self.decision_points.iter().zip(1..).map(|(point, order)| {
            json!({
                "id": point.id, "site": point.site, "target": point.target, "description": "", "order": order,
                "excludeIfReached": point.exclude_if_reached,
            })
        });
        let payloads = self.payloads.iter().filter_map(|payload| {
            let condition = self.conditions.iter().find(|condition| condition.code == payload.condition)?;
            let point = self.decision_points.iter().find(|p| payload.decision_point.as_deref() == Some(&p.words()))?;
            Some(json!({
                "id": Uuid::new_v4(), "parentCondition": condition.id, "decisionPoint": point.id,
                "payload": { "type": payload.kind, "value": payload.value },
            }))
        });
        let mut body = json!({
            "id": self.id,
            "name": self.name,
            "description": self.description,
            "context": [self.context],
            "state": if self.start_on.is_some() { "scheduled" } else { "inactive" },
            "assignmentUnit": self.unit,
            "postExperimentRule": "continue",
            "filterMode": self.filter_mode,
            "type": "Simple",
            "tags": self.tags,
            "conditions": conditions.collect::<Vec<_>>(),
            "partitions": points.collect::<Vec<_>>(),
            "conditionPayloads": payloads.collect::<Vec<_>>(),
        });
        let optional = [
            ("group", json!(self.group)),
            ("consistencyRule", json!(self.consistency)),
            ("conditionOrder", json!(self.condition_order)),
            ("startOn", json!(self.start_on)),
            ("endOn", json!(self.end_on)),
        ];
        for (key, value) in optional.into_iter().filter(|(_, value)| !value.is_null()) {
            body[key] = value;
        }
        factorial::write(&mut body, &self.factors);
        if let Some(factor) = &self.stratification_factor {
            body["assignmentAlgorithm"] = json!(STRATIFIED);
            body["stratificationFactor"] = json!({ "stratificationFactorName": factor });
        }
        if self.ending() != Ending::default() {
            body["enrollmentCompleteCondition"] = json!(self.ending());
        }
        if let Some(copied) = &self.copied {
            copied.write(&mut body);
        }
        let mut body = design::with_lists_for(version, body);
        if version.is_below_6_3() {
            for side in Side::BOTH {
                lists::write(&mut body, side, self.members(side));
                let segments = self.segments(side).iter().map(|segment| json!({ "id": segment.id }));
                body[side.field()]["segment"]["subSegments"] = segments.collect();
            }
        }
        body
    }

    /// Returns the update that sets the post-experiment rule, which the creating request does not set;
    /// `None` if the rule is already set.
    ///
    /// # Errors
    ///
    /// As [`Experiment::raw`].
    pub(super) fn post_rule_update(&self, experiment: &Experiment) -> Result<Option<Value>, Error> {
        if summary::post_rule(&experiment.view) == self.post_rule {
            return Ok(None);
        }
        let mut body = experiment.raw()?;
        design::write_post_rule(&mut body, &self.post_rule);
        Ok(Some(body))
    }

    /// Returns true if the experiment exists completely and as planned.
    pub(super) fn is_fully_applied(&self, view: &View) -> bool {
        self.differing_fields(view).is_empty() && self.missing_parts(view).is_empty()
    }

    /// Returns the fields set by the creating request that differ from the plan.
    pub(super) fn differing_fields(&self, view: &View) -> Vec<&'static str> {
        let state = if self.start_on.is_some() { Status::Scheduled } else { Status::Inactive };
        let conditions: Vec<_> =
            self.conditions.iter().map(|c| json!({ "code": c.code, "weight": summary::as_shown(c.weight) })).collect();
        let points: Vec<_> =
            self.decision_points.iter().map(|p| fields::point(&p.site, &p.target, p.exclude_if_reached)).collect();
        let equals = |field: Field, planned: Value| fields::same(&field.read(view), &planned);
        let all = [
            ("name", view.name == self.name),
            ("context", view.context().eq_ignore_ascii_case(&self.context)),
            ("status", view.state == state),
            ("start", self.start_on.is_none() || view.start_on == self.start_on),
            ("conditions", equals(Field::Conditions, json!(conditions))),
            ("decision points", equals(Field::DecisionPoints, json!(points))),
            ("assignment unit", equals(Field::Unit, fields::unit(&self.unit, self.group.as_deref()))),
            ("consistency rule", self.consistency.is_none() || view.consistency_rule == self.consistency),
            ("filter mode", view.filter_mode == self.filter_mode),
            ("metric queries", self.copied.as_ref().is_none_or(|copied| copied.has_queries_of(view))),
        ];
        all.into_iter().filter(|(_, same)| !same).map(|(label, _)| label).collect()
    }

    /// Returns the labels of the parts that later requests set and that are still missing.
    pub(super) fn missing_parts(&self, view: &View) -> Vec<&'static str> {
        let mut missing = Vec::new();
        if summary::post_rule(view) != self.post_rule {
            missing.push("post-experiment rule");
        }
        for (side, words) in [(Side::Inclusion, "inclusion list"), (Side::Exclusion, "exclusion list")] {
            if lists::members_of(view.lists(side)) != self.members_with_segments(side) {
                missing.push(words);
            }
        }
        missing
    }

    /// Returns the planned lists that have members or shared segments.
    pub(super) fn lists(&self) -> impl Iterator<Item = (Side, &Members)> {
        let all = Side::BOTH.into_iter().map(|side| (side, self.members(side)));
        all.filter(|(side, members)| !members.is_empty() || !self.segments(*side).is_empty())
    }

    fn members_with_segments(&self, side: Side) -> Members {
        lists::with_segments(self.members(side), self.segments(side))
    }

    pub(super) fn result(&self) -> Value {
        let status = if self.start_on.is_some() { "scheduled" } else { "inactive" };
        json!({ "id": self.id, "name": self.name, "status": status, "context": self.context })
    }

    /// Returns the design for the expected split of newcomers. `rivals` is the number of other live
    /// experiments at its points.
    fn design(&self, rivals: usize) -> Design {
        Design {
            experiment: self.id.to_string(),
            conditions: self.conditions.iter().map(|condition| (condition.code.clone(), condition.weight)).collect(),
            unit: self.unit.clone(),
            group: self.group.clone(),
            order: self.condition_order.clone(),
            strata: self.stratification_factor.clone(),
            only_named: self.filter_mode == "excludeAll" && self.segments(Side::Inclusion).is_empty(),
            included: lists::named_members(&self.inclusion),
            excluded: lists::named_members(&self.exclusion),
            early_stay_out: self.decision_points.iter().any(|point| point.exclude_if_reached),
            rivals,
        }
    }

    /// Returns the undo of a creation, which is a deletion: only that leaves nothing behind.
    pub(super) fn undo(&self) -> Undo {
        let state = if self.start_on.is_some() { Status::Scheduled } else { Status::Inactive };
        let expects = Expects::at(state).with_nobody_enrolled();
        let parameters = json!({ "experiment": self.id, "expects": expects });
        Undo { name: "delete_experiment".to_owned(), parameters, label: "Undo: delete experiment".to_owned() }
    }

    pub(super) fn card(
        &self,
        known: &ContextMetadata,
        defaults: &[String],
        others: &Surroundings,
        zone: &TimeZone,
    ) -> Card {
        let name = &self.name;
        let shares = self.conditions.iter().map(|c| format!("{} {}%", c.code, rules::number(c.weight)));
        let points =
            self.decision_points.iter().map(|point| design::point_words(&point.words(), point.exclude_if_reached));
        let mut facts = vec![Fact::new("Name", Text::new().bold(name))];
        if !self.description.is_empty() {
            facts.push(Fact::new("Description", self.description.as_str()));
        }
        facts.push(Fact::new("Context", Text::new().code(&self.context)));
        if !self.factors.is_empty() {
            let conditions = self.conditions.iter().map(|condition| (condition.code.as_str(), condition.weight));
            facts.extend(factorial::facts(&self.factors, conditions));
        }
        let mut add = |label: &str, words: Option<String>| {
            facts.extend(words.filter(|words| !words.is_empty()).map(|words| Fact::new(label, words)));
        };
        let some = |side: Side| Some(self.members_with_segments(side)).filter(|all| !all.is_empty());
        let some = |side: Side| some(side).map(|members| lists::words(&members));
        add("Conditions", self.factors.is_empty().then(|| shares.collect::<Vec<_>>().join(", ")));
        add("Payloads", Some(design::payload_words(&self.payloads)));
        add("Decision points", Some(points.collect::<Vec<_>>().join(", ")));
        add("Assignment", Some(answers::unit_words(&self.unit, self.group.as_deref())));
        add("Algorithm", self.stratification_factor.as_ref().map(|factor| format!("{STRATIFIED}, by {factor}")));
        add("Order of conditions", self.condition_order.clone());
        add("Consistency", self.consistency.clone());
        add("Enrollment ends", (self.ending() != Ending::default()).then(|| choices::ending_words(self.ending())));
        add("After enrollment ends", Some(answers::afterwards(&self.post_rule)));
        add("Users on no list", Some(answers::filter_words(&self.filter_mode)));
        add("Inclusion list", some(Side::Inclusion));
        add("Exclusion list", some(Side::Exclusion));
        for (label, at) in [("Starts", &self.start_on), ("Ends", &self.end_on)] {
            facts.extend(at.as_deref().map(|at| Fact::new(label, dates::moment_text(at))));
        }
        facts.extend((!self.tags.is_empty()).then(|| Fact::new("Tags", self.tags.join(", "))));
        facts.extend(self.copied.iter().flat_map(Copied::facts));
        let at = self.decision_points.iter().map(|point| (point.site.as_str(), Some(point.target.as_str())));
        let sharing = others.sharing(&self.context, at);
        let design = self.design(sharing.len());
        facts.extend(split::line(&design));
        if sharing.is_empty() {
            facts.push(reach::same_points(Some(&[])));
        }
        let mut warnings: Vec<_> =
            others.namesakes(name).into_iter().chain(cautions::shared_points(&sharing)).collect();
        if self.filter_mode == "excludeAll" && self.members_with_segments(Side::Inclusion).is_empty() {
            warnings.push(cautions::nobody_takes_part());
        }
        if self.filter_mode == "includeAll" && !self.inclusion.is_empty() {
            warnings.push(cautions::everybody_takes_part());
        }
        if known.conditions.is_empty() && self.factors.is_empty() {
            warnings.push(Text::from(format!("{} lists no conditions, so these couldn't be checked.", self.context)));
        }
        let begins = match &self.start_on {
            Some(moment) => format!("It starts automatically on {}.", dates::moment_in_zone(moment, zone)),
            None => "It stays inactive until someone starts it.".to_owned(),
        };
        let mut notes = Vec::from_iter(split::note(&design));
        if !defaults.is_empty() {
            notes.push(Text::from(format!("Defaults used: {}.", defaults.join(", "))));
        }
        notes.push(Text::from(begins.replace("It is", "It will be")));
        let done = format!("Created “{name}”. {begins}");
        Card { facts, warnings, notes, ..Card::new(format!("Create “{name}”?"), "Create experiment", done) }
    }
}
