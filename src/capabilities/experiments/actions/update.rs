//! `update_experiment`: changes the design of an experiment, field by field.
//!
//! The platform replaces experiments whole, so the change is read, edited and put back; nothing else is touched. What
//! guards it is the time of the last change: if that is not the one the card was made from, nothing is sent.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    cannot_read_back, change,
    design::{self, PlannedCondition, PlannedPoint},
    done, ended_badly, failed,
    fields::{Changes, Field, apply, same},
    given, in_flight, missing, stored,
    surroundings::Surroundings,
    unread,
};
use crate::{
    capabilities::experiments::{
        access,
        given::{GivenCondition, GivenPoint, GivenWeights, OneOrMany},
        replies::{cautions, outcomes, refusals},
    },
    graph::action::{
        ActionKind, ActionRecord, ErrorKind, Outcome, Performed, PrepareError, Probed, Proposal, Recovery, Refusal,
        Undo,
    },
    reply::{Card, Text},
    services::upgrade::{client::UpgradeClient, error::Error, experiment::View, status::Status},
};

/// `update_experiment`.
#[derive(Debug)]
pub struct UpdateExperiment(pub Arc<UpgradeClient>);

/// What people give.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Given {
    /// The experiment, by name or id. Required.
    #[serde(default)]
    experiment: Option<String>,
    /// Comes back with stored parameters.
    #[serde(default, rename = "experiment_name")]
    #[schemars(skip)]
    _experiment_name: Option<String>,
    /// A new name.
    #[serde(default)]
    new_name: Option<String>,
    /// A new description.
    #[serde(default)]
    description: Option<String>,
    /// All tags from now on.
    #[serde(default)]
    tags: Option<Vec<String>>,
    /// New weights in percent for the conditions there are, in their order, by code, or `70/30`.
    #[serde(default)]
    weights: Option<GivenWeights>,
    /// All conditions from now on: objects with `code` and `weight`. Only to add or remove conditions.
    #[serde(default)]
    conditions: Option<OneOrMany<GivenCondition>>,
    /// All decision points from now on: objects with `site` and `target`, or texts `site / target`.
    #[serde(default)]
    decision_points: Option<OneOrMany<GivenPoint>>,
    /// Who draws a lot: `individual` or `group`.
    #[serde(default)]
    unit: Option<String>,
    /// The type of group, with unit `group`.
    #[serde(default)]
    group: Option<String>,
    /// Whose past decides: `individual`, `group` or `experiment`.
    #[serde(default)]
    consistency: Option<String>,
    /// What people get once enrolment is complete: `continue` (keep their condition), `assign <condition code>`, or
    /// `assign default`.
    #[serde(default)]
    post_rule: Option<String>,
    /// Whether people on no list take part: `includeAll` or `excludeAll`.
    #[serde(default)]
    filter_mode: Option<String>,
}

#[async_trait]
impl ActionKind for UpdateExperiment {
    fn name(&self) -> &'static str {
        "update_experiment"
    }

    fn description(&self) -> &'static str {
        "Changes the design of an experiment: name, description, tags, weights, conditions, decision points, unit, \
         consistency, post-experiment rule, filter mode. Not its status."
    }

    fn schema(&self) -> Value {
        access::schema::<Given>()
    }

    async fn prepare(&self, parameters: &Value) -> Result<Proposal, PrepareError> {
        let asked: Given = access::parameters(parameters)?;
        let Some(name) = given(asked.experiment.as_ref()) else {
            return Err(Refusal::Missing(vec![missing("experiment", "Which experiment?", Vec::new())]).into());
        };
        let experiment = access::experiment(&self.0, name, |name| format!("update {name}")).await?.view;
        let mut changes = self.changes(&asked, &experiment).await?;
        let asked_for = |changes: &Changes| Field::ALL.into_iter().filter(|f| f.after(changes).is_some()).count();
        if asked_for(&changes) == 0 {
            return Err(access::refused(ErrorKind::UserInput, refusals::no_change_given(&experiment.name)));
        }
        for field in Field::ALL {
            if field.after(&changes).is_some_and(|after| same(&after, &field.read(&experiment))) {
                field.drop_from(&mut changes);
            }
        }
        if asked_for(&changes) == 0 {
            return Err(access::refused(ErrorKind::Execution, refusals::nothing_changes(&experiment.name)));
        }
        let warnings = self.warnings(&changes, &experiment).await?;
        Ok(Proposal {
            preconditions: what_was_shown(&changes, &experiment),
            card: card(&changes, &experiment, warnings),
            undo: undo(&changes, &experiment),
            parameters: json!(changes),
        })
    }

    async fn preconditions(&self, record: &ActionRecord) -> Result<Value, Outcome> {
        let changes: Changes = stored(record)?;
        match self.0.single(changes.experiment).await {
            Ok(experiment) => Ok(what_was_shown(&changes, &experiment.view)),
            Err(Error::NotFound { .. }) => Err(failed(ErrorKind::NotFound, outcomes::gone(&changes.experiment_name))),
            Err(error) => Err(unread(&error)),
        }
    }

    async fn perform(&self, record: &ActionRecord) -> Performed {
        let changes: Changes = match stored(record) {
            Ok(changes) => changes,
            Err(outcome) => return Performed::Ended(outcome),
        };
        let gone = || failed(ErrorKind::NotFound, outcomes::gone(&changes.experiment_name));
        let experiment = match self.0.single(changes.experiment).await {
            Ok(experiment) => experiment,
            Err(Error::NotFound { .. }) => return Performed::Ended(gone()),
            Err(error) => return Performed::Ended(unread(&error)),
        };
        // What is put back replaces everything, so it must be an edit of exactly what the card was made from.
        if what_was_shown(&changes, &experiment.view) != record.preconditions {
            let summary = outcomes::changed_meanwhile(&changes.experiment_name);
            return Performed::Ended(failed(ErrorKind::Execution, summary));
        }
        let version = match self.0.version().await {
            Ok(version) => version,
            Err(error) => return Performed::Ended(unread(&error)),
        };
        let body = design::with_lists_for(&version, apply(&changes, &experiment));
        match self.0.update(changes.experiment, &body).await {
            Ok(_) => Performed::Ended(done(record, result(&changes))),
            Err(Error::NotFound { .. }) => Performed::Ended(gone()),
            Err(error) => ended_badly(self, record, error).await,
        }
    }

    fn recovery(&self) -> Recovery {
        Recovery::Probe { in_flight: in_flight(&self.0) }
    }

    /// It happened if every field reads as it was to be, and did not if every field reads as before.
    async fn probe(&self, record: &ActionRecord) -> Probed {
        let Ok(changes) = stored::<Changes>(record) else {
            return Probed::CannotTell { evidence: outcomes::unreadable_record() };
        };
        let now = match self.0.single(changes.experiment).await {
            Ok(experiment) => experiment.view,
            Err(Error::NotFound { .. }) => {
                return Probed::CannotTell { evidence: outcomes::gone_meanwhile(&changes.experiment_name) };
            }
            Err(error) => return cannot_read_back(&error),
        };
        let (there, lacking): (Vec<_>, Vec<_>) = Field::ALL
            .into_iter()
            .filter_map(|field| Some((field, field.after(&changes)?)))
            .partition(|(field, after)| same(&field.read(&now), after));
        if lacking.is_empty() {
            return Probed::Happened(done(record, result(&changes)));
        }
        if what_was_shown(&changes, &now) == record.preconditions {
            return Probed::DidNotHappen;
        }
        let labels =
            |fields: Vec<(Field, Value)>| fields.into_iter().map(|(field, _)| field.label()).collect::<Vec<_>>();
        let evidence = outcomes::partly(&changes.experiment_name, &labels(there), &labels(lacking));
        Probed::CannotTell { evidence }
    }
}

impl UpdateExperiment {
    /// What people should know before they decide.
    async fn warnings(&self, changes: &Changes, experiment: &View) -> Result<Vec<Text>, PrepareError> {
        let mut warnings = Vec::new();
        if changes.new_name.is_some() || changes.decision_points.is_some() {
            let all = self.0.all().await.map_err(access::unavailable)?;
            let others = Surroundings::of(all, Some(experiment.id));
            warnings.extend(changes.new_name.as_ref().and_then(|name| others.namesakes(name)));
            let points = changes.decision_points.iter().flatten();
            let points = points.map(|point| (point.site.as_str(), Some(point.target.as_str())));
            warnings.extend(others.at_points(experiment.context(), points));
        }
        if removes(changes, experiment) {
            warnings.push(cautions::removal());
        }
        let redraws = changes.conditions.is_some() || changes.decision_points.is_some() || changes.unit.is_some();
        if experiment.state == Status::Enrolling && redraws {
            let enrolled = self.0.enrollment(&[experiment.id]).await.ok();
            let enrolled = enrolled.and_then(|all| all.first().map(|enrolled| enrolled.users));
            warnings.push(cautions::redraws(experiment.state, enrolled));
        }
        if changes.filter_mode.as_deref() == Some("excludeAll")
            && experiment.inclusion.iter().all(|list| list.is_empty())
        {
            warnings.push(cautions::nobody_takes_part());
        }
        Ok(warnings)
    }

    /// What was given, checked and with identities; may still be what is there already.
    async fn changes(&self, asked: &Given, experiment: &View) -> Result<Changes, PrepareError> {
        let refuse = |reply| access::refused(ErrorKind::Validation, reply);
        let choice = |what: &str, given: Option<&str>, allowed: &[&str]| match given {
            Some(given) if !allowed.contains(&given) => Err(refuse(refusals::not_one_of(what, given, allowed))),
            given => Ok(given.map(str::to_owned)),
        };
        let needs_context = asked.conditions.is_some() || asked.decision_points.is_some() || asked.group.is_some();
        let mut contexts = if needs_context {
            self.0.context_metadata().await.map_err(access::unavailable)?
        } else {
            Default::default()
        };
        let known = contexts.remove(experiment.context()).unwrap_or_default();

        let planned = match (&asked.conditions, &asked.weights) {
            (Some(conditions), weights) => {
                let known_codes: Vec<_> = experiment.conditions.iter().map(|c| c.condition_code.clone()).collect();
                let vocabulary = [known_codes, known.conditions.clone()].concat();
                let unknown = design::unknown_conditions(conditions, &vocabulary, experiment.context());
                if let Some(unknown) = unknown.filter(|_| !known.conditions.is_empty()) {
                    return Err(Refusal::Missing(vec![unknown]).into());
                }
                Some(design::conditions(conditions, weights.as_ref(), &vocabulary)?)
            }
            (None, Some(weights)) => {
                let codes = experiment.conditions.iter();
                let codes = codes.map(|c| GivenCondition::Parts { code: c.condition_code.clone(), weight: None });
                Some(design::conditions(&OneOrMany::Many(codes.collect()), Some(weights), &[])?)
            }
            (None, None) => None,
        };
        let conditions: Option<Vec<_>> = planned.map(|planned| {
            let identity = |code: &str| {
                let old = experiment.conditions.iter().find(|c| c.condition_code == code);
                old.and_then(|c| c.id.parse().ok()).unwrap_or_else(Uuid::new_v4)
            };
            planned.into_iter().map(|(code, weight)| PlannedCondition { id: identity(&code), code, weight }).collect()
        });
        let decision_points = match &asked.decision_points {
            Some(points) => Some(design::points(points, experiment.context(), &known)?),
            None => None,
        };
        let decision_points = decision_points.map(|points| {
            let identity = |site: &str, target: &str| {
                let old = experiment.decision_points.iter();
                let old = old.clone().find(|p| p.site == site && p.target.as_deref() == Some(target));
                old.and_then(|p| p.id.parse().ok()).unwrap_or_else(Uuid::new_v4)
            };
            let planned = points.into_iter();
            planned.map(|(site, target)| PlannedPoint { id: identity(&site, &target), site, target }).collect()
        });
        let given_unit = given(asked.unit.as_ref()).or(given(asked.group.as_ref()).map(|_| "group"));
        let unit = choice("assignment unit", given_unit, &["individual", "group"])?;
        let group = match given(asked.group.as_ref()).filter(|_| unit.as_deref() == Some("group")) {
            Some(group) => Some(access::group(&known.group_types, group, experiment.context())?),
            None if unit.as_deref() == Some("group") => experiment.group.clone(),
            None => None,
        };
        if unit.as_deref() == Some("group") && group.is_none() {
            let question = "Which type of group draws a lot together?";
            return Err(Refusal::Missing(vec![missing("group", question, Vec::new())]).into());
        }
        let codes: Vec<_> = match &conditions {
            Some(conditions) => conditions.iter().map(|c| c.code.clone()).collect(),
            None => experiment.conditions.iter().map(|c| c.condition_code.clone()).collect(),
        };
        Ok(Changes {
            experiment: experiment.id,
            experiment_name: experiment.name.clone(),
            new_name: given(asked.new_name.as_ref()).map(str::to_owned),
            description: asked.description.as_ref().map(|description| description.trim().to_owned()),
            tags: asked.tags.clone(),
            conditions,
            decision_points,
            unit,
            group,
            consistency: choice(
                "consistency rule",
                given(asked.consistency.as_ref()),
                &["individual", "group", "experiment"],
            )?,
            post_rule: match given(asked.post_rule.as_ref()) {
                Some(rule) => Some(post_rule(rule, &experiment.name, &codes)?),
                None => None,
            },
            filter_mode: choice("filter mode", given(asked.filter_mode.as_ref()), &["includeAll", "excludeAll"])?,
        })
    }
}

/// `continue`, `assign <code>` or `assign default`, with a code that the experiment has.
fn post_rule(rule: &str, name: &str, codes: &[String]) -> Result<String, PrepareError> {
    let refuse = |reply| Err(access::refused(ErrorKind::Validation, reply));
    match rule.split_once(' ') {
        None if rule == "continue" => Ok(rule.to_owned()),
        Some(("assign", "default")) => Ok(rule.to_owned()),
        Some(("assign", code)) if codes.iter().any(|known| known == code.trim()) => {
            Ok(format!("assign {}", code.trim()))
        }
        Some(("assign", code)) => refuse(refusals::unknown_condition(code, name, codes)),
        _ => refuse(refusals::not_one_of(
            "rule for afterwards",
            rule,
            &["continue", "assign and a condition", "assign default"],
        )),
    }
}

/// The fields as the card showed them, and the time of the last change.
fn what_was_shown(changes: &Changes, experiment: &View) -> Value {
    let fields = Field::ALL.into_iter().filter(|field| field.after(changes).is_some());
    let before: Map<_, _> = fields.map(|field| (field.label().to_owned(), field.read(experiment))).collect();
    json!({ "before": before, "updated_at": experiment.updated_at, "version_number": experiment.version_number })
}

fn result(changes: &Changes) -> Value {
    let fields = Field::ALL.into_iter().filter_map(|field| Some((field.label().to_owned(), field.after(changes)?)));
    let name = changes.new_name.as_ref().unwrap_or(&changes.experiment_name);
    json!({ "id": changes.experiment, "name": name, "changed": fields.collect::<Map<_, _>>() })
}

/// The values from before. Not if a condition or point goes: one of the same name would be another one, without its
/// enrolments.
fn undo(changes: &Changes, experiment: &View) -> Option<Undo> {
    if removes(changes, experiment) {
        return None;
    }
    let mut back = Map::new();
    back.insert("experiment".into(), json!(experiment.id));
    for field in Field::ALL.into_iter().filter(|field| field.after(changes).is_some()) {
        let key = match field {
            Field::Name => "new_name",
            Field::Description => "description",
            Field::Tags => "tags",
            Field::Conditions => "conditions",
            Field::DecisionPoints => "decision_points",
            Field::Unit => "unit",
            Field::Consistency => "consistency",
            Field::PostRule => "post_rule",
            Field::FilterMode => "filter_mode",
        };
        back.insert(
            key.into(),
            if field == Field::Unit { json!(experiment.assignment_unit) } else { field.read(experiment) },
        );
    }
    if let (Some(_), Some(group)) = (&changes.unit, &experiment.group) {
        back.insert("group".into(), json!(group));
    }
    let name = "update_experiment".to_owned();
    Some(Undo { name, parameters: Value::Object(back), label: "Undo: put it back".to_owned() })
}

fn removes(changes: &Changes, experiment: &View) -> bool {
    let condition_goes = changes.conditions.as_ref().is_some_and(|after| {
        experiment.conditions.iter().any(|before| !after.iter().any(|c| c.id.to_string() == before.id))
    });
    let point_goes = changes.decision_points.as_ref().is_some_and(|after| {
        experiment.decision_points.iter().any(|before| !after.iter().any(|p| p.id.to_string() == before.id))
    });
    condition_goes || point_goes
}

fn card(changes: &Changes, experiment: &View, warnings: Vec<Text>) -> Card {
    let name = &experiment.name;
    let facts = Field::ALL.into_iter().filter_map(|field| {
        let after = field.after(changes)?;
        Some(change(field.label(), field.words(&field.read(experiment)), field.words(&after)))
    });
    let facts: Vec<_> = facts.collect();
    let done = match (&changes.new_name, facts.as_slice()) {
        (Some(new_name), [_]) => format!("Renamed “{name}” to “{new_name}”."),
        (new_name, facts) => {
            let changed: Vec<_> = facts.iter().map(|fact| fact.label.to_lowercase()).collect();
            let changed = if changed.len() > 3 { format!("{} fields", changed.len()) } else { changed.join(", ") };
            format!("Updated “{}”: {changed}.", new_name.as_ref().unwrap_or(name))
        }
    };
    Card {
        title: format!("Update “{name}”?"),
        facts,
        warnings,
        notes: vec![Text::from(format!("It is {} in {}.", experiment.state.display(), experiment.context()))],
        approve: "Update experiment".to_owned(),
        reject: "Don't update".to_owned(),
        done,
        irreversible: false,
    }
}
