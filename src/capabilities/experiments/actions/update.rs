//! `update_experiment`: changes the design of an experiment, field by field.
//!
//! The platform only replaces whole experiments, so the experiment is read, edited and sent back. To
//! avoid overwriting other changes, nothing is sent if the time of the last change differs from the one
//! on the card.
//!
//! From 6.3 on the lists are changed by separate requests, after the experiment itself. If an answer is
//! lost in between, reading back shows which changes are still missing.

use std::sync::Arc;

use async_trait::async_trait;
use countersign_core::{
    clock::Clock,
    reply::{Card, Fact, Text},
};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, ErrorKind, Form, Outcome, Performed, PrepareError, Probed, Proposal, Reader,
    Recovery, Refusal, Undo,
};
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use super::{
    SendWindow,
    apply_changes::{apply, lost_payloads},
    cannot_read_back,
    card_differences::differences_in_words,
    change, design,
    expects::Expects,
    failed,
    fields::{Changes, Field, same},
    is_gone, lists, missing, moment, non_blank, not_sent, performed_with_error, read_back, read_failed,
    requested_changes::{self, UpdateExperimentParameters},
    stored_parameters,
    surroundings::{Reach, SURROUNDINGS},
};
use crate::{
    access, forms,
    replies::{cautions, outcomes, refusals, split},
    testing::split::Design,
    upgrade::{
        client::UpgradeClient,
        error::Error,
        experiment::View,
        lists::{MemberList, Side},
        status::Status,
    },
};

/// The action `update_experiment`.
#[derive(Debug)]
pub struct UpdateExperiment(pub Arc<UpgradeClient>, pub Arc<dyn Clock>);

#[async_trait]
impl ActionKind for UpdateExperiment {
    fn info(&self) -> ActionInfo {
        ActionInfo::new(
            "update_experiment",
            "Changes the design of an experiment: name, description, tags, weights, conditions, decision points, unit, \
         consistency, post-experiment rule, filter mode, payloads, ending criteria, inclusion and exclusion lists. Not its \
         status.",
        )
    }

    fn schema(&self) -> Value {
        access::schema::<UpdateExperimentParameters>()
    }

    fn is_editable(&self, _: &Value) -> bool {
        true
    }

    async fn form(&self, parameters: &Value) -> Option<Form> {
        Some(forms::update(&self.0, parameters).await)
    }

    async fn prepare(&self, parameters: &Value, reader: Option<&Reader>) -> Result<Proposal, PrepareError> {
        self.prepare_in(parameters, &moment::time_zone(reader.and_then(|reader| reader.zone.as_deref()))).await
    }

    async fn preconditions(&self, record: &ActionRecord) -> Result<Value, Outcome> {
        let changes: Changes = stored_parameters(record)?;
        match self.0.single(changes.experiment).await {
            Ok(experiment) => {
                let state = shown_state_of(record, &changes, &experiment.view);
                changes.claims(&experiment.view).note_now(&self.0, record, state).await
            }
            Err(Error::NotFound { .. }) => Err(failed(ErrorKind::NotFound, outcomes::gone(&changes.experiment_name))),
            Err(error) => Err(read_failed(&error)),
        }
    }

    fn differences(&self, record: &ActionRecord, found: &Value) -> Vec<Fact> {
        differences_in_words(record, found)
    }

    async fn perform(&self, record: &ActionRecord) -> Performed {
        let changes: Changes = match stored_parameters(record) {
            Ok(changes) => changes,
            Err(outcome) => return Performed::Ended(outcome),
        };
        let experiment = match self.0.single(changes.experiment).await {
            Ok(experiment) => experiment,
            Err(Error::NotFound { .. }) => {
                let name = &changes.experiment_name;
                let gone = if record.sends > 1 { outcomes::gone_on_read_back(name) } else { outcomes::gone(name) };
                return Performed::Ended(failed(ErrorKind::NotFound, gone));
            }
            Err(error) => return not_sent(record, &error),
        };
        // The request replaces the whole experiment, so it must be based on exactly the state on the card.
        if shown_state_of(record, &changes, &experiment.view) != *record.preconditions
            && !changes.is_begun(&experiment.view, &record.preconditions["before"])
        {
            if record.sends > 1 {
                // The change may be the effect of this action's previous request.
                return read_back(self, record, "it was changed in the meantime".to_owned()).await;
            }
            let summary = outcomes::changed_meanwhile(&changes.experiment_name);
            return Performed::Ended(failed(ErrorKind::Execution, summary));
        }
        let window = SendWindow::open(&self.0);
        let version = match self.0.version().await {
            Ok(version) => version,
            Err(error) => return not_sent(record, &error),
        };
        let mut answered = None;
        let includes_lists = version.is_below_6_3();
        if changes.lacking(&experiment.view).iter().any(|field| includes_lists || field.side().is_none()) {
            let changed = match apply(&changes, &experiment) {
                Ok(changed) => changed,
                Err(error) => return not_sent(record, &error),
            };
            let mut body = design::with_lists_for(&version, changed);
            for (side, members) in changes.lists().filter(|_| includes_lists) {
                lists::write(&mut body, side, members);
            }
            match self.0.update(changes.experiment, &body).await {
                Ok(experiment) => answered = Some(experiment),
                Err(error) if is_gone(&self.0, changes.experiment, &error).await => {
                    let summary = outcomes::not_found_for_change(&changes.experiment_name);
                    return Performed::Ended(failed(ErrorKind::NotFound, summary));
                }
                Err(error) => return performed_with_error(self, record, error).await,
            }
        }
        for (side, members) in changes.lists().filter(|_| !includes_lists) {
            match lists::settle(&self.0, &window, &experiment.view, (side, members), &[]).await {
                Ok(()) => {}
                Err(Error::NoAnswer { reason }) => return Performed::NoAnswer { detail: reason },
                Err(Error::Unclear { reason }) => return read_back(self, record, reason).await,
                Err(error) => {
                    return Performed::Ended(self.outcome_after_partial_update(record, &changes, &error).await);
                }
            }
        }
        match answered.filter(|answered| changes.lacking(&answered.view).is_empty()) {
            Some(_) => Performed::Ended(Outcome::done(record, result(&changes))),
            None => read_back(self, record, "not all of it was confirmed".to_owned()).await,
        }
    }

    fn recovery(&self) -> Recovery {
        // The request contains the complete new state, and is sent only if the experiment is as shown.
        Recovery::Probe { in_flight: SendWindow::in_flight(&self.0), repeatable: true }
    }

    /// Reads back. The change happened if every field has its new value, and did not happen if every
    /// field has its old one.
    async fn probe(&self, record: &ActionRecord) -> Probed {
        let Ok(changes) = stored_parameters::<Changes>(record) else {
            return Probed::CannotTell { evidence: outcomes::unreadable_record() };
        };
        let now = match self.0.single(changes.experiment).await {
            Ok(experiment) => experiment.view,
            Err(Error::NotFound { .. }) => {
                return Probed::Otherwise { evidence: outcomes::gone_on_read_back(&changes.experiment_name) };
            }
            Err(error) => return cannot_read_back(&error),
        };
        let lacking = changes.lacking(&now);
        if lacking.is_empty() {
            return Probed::Happened(Outcome::done(record, result(&changes)));
        }
        if shown_state_of(record, &changes, &now) == *record.preconditions {
            return Probed::DidNotHappen;
        }
        let labels = |fields: Vec<Field>| fields.into_iter().map(Field::label).collect::<Vec<_>>();
        let changed = changes.fields().filter(|field| !lacking.contains(field)).collect();
        let evidence = outcomes::partly(&changes.experiment_name, &labels(changed), &labels(lacking));
        match changes.is_begun(&now, &record.preconditions["before"]) {
            true => Probed::Unfinished { evidence },
            false => Probed::Otherwise { evidence },
        }
    }
}

impl UpdateExperiment {
    /// Prepares the change for a person in this time zone.
    async fn prepare_in(&self, parameters: &Value, zone: &TimeZone) -> Result<Proposal, PrepareError> {
        let asked: UpdateExperimentParameters = access::parameters(parameters)?;
        let Some(name) = non_blank(asked.experiment.as_ref()) else {
            return Err(Refusal::Missing(vec![access::which_experiment(&self.0).await]).into());
        };
        let experiment = access::experiment(&self.0, name, |name| format!("update {name}")).await?.view;
        if let Some(expects) = &asked.expects {
            expects.check(&experiment, None)?;
        }
        if asked.lacks_weights() {
            let codes: Vec<_> =
                experiment.conditions.iter().map(|condition| condition.condition_code.as_str()).collect();
            let question = format!("Which weights, in the order {}? For example 70/30.", codes.join(", "));
            return Err(Refusal::Missing(vec![missing("weights", question, Vec::new())]).into());
        }
        let mut changes = requested_changes::changes(&self.0, (self.1.now(), zone), &asked, &experiment).await?;
        if changes.fields().count() == 0 {
            return Err(access::refused(ErrorKind::UserInput, refusals::no_change_given(&experiment.name)));
        }
        for field in Field::ALL {
            if field.after(&changes).is_some_and(|after| same(&after, &field.read(&experiment))) {
                field.drop_from(&mut changes);
            }
        }
        if changes.fields().count() == 0 {
            return Err(access::refused(ErrorKind::Execution, refusals::nothing_changes(&experiment.name)));
        }
        let reach = Reach::read(&self.0, &experiment).await;
        let warnings = warnings(&changes, &experiment, &reach)?;
        let mut card = card(&changes, &experiment, warnings);
        let (before, after) = designs_before_and_after(&changes, &experiment, reach.rivals(&experiment));
        if let Some(split) = split::changing(&before, &after) {
            card.facts.push(split);
            card.notes.extend(split::note(&after));
        }
        card.facts.extend(reach.facts(&experiment));
        card.notes.extend(reach.age());
        let mut preconditions = shown_state(&changes, &experiment);
        reach.note(&changes.claims(&experiment), &mut preconditions);
        Ok(Proposal {
            preconditions,
            card,
            undo: undo(&changes, &experiment),
            scope: changes.scope(&experiment),
            parameters: json!(changes),
        })
    }

    /// Reads back after a later one of several requests was refused, and returns the outcome.
    async fn outcome_after_partial_update(&self, record: &ActionRecord, changes: &Changes, error: &Error) -> Outcome {
        match self.0.single(changes.experiment).await {
            Ok(now) => match changes.lacking(&now.view).as_slice() {
                [] => Outcome::done(record, result(changes)),
                _ if shown_state_of(record, changes, &now.view) == *record.preconditions => {
                    failed(access::kind(error), outcomes::refused_and_unchanged(error))
                }
                lacking => {
                    let labels: Vec<_> = lacking.iter().map(|field| field.label().to_lowercase()).collect();
                    let labels: Vec<_> = labels.iter().map(String::as_str).collect();
                    let name = &changes.experiment_name;
                    let summary = outcomes::updated_in_part(name, &labels, &outcomes::part_failed(error));
                    failed(access::kind(error), summary)
                }
            },
            Err(unread) => Outcome::Unknown { summary: outcomes::cannot_read_back(&unread.to_string()) },
        }
    }
}

/// Returns the warnings for the card.
fn warnings(changes: &Changes, experiment: &View, reach: &Reach) -> Result<Vec<Text>, PrepareError> {
    let mut warnings = Vec::new();
    if changes.new_name.is_some() || changes.decision_points.is_some() {
        let others = reach.surroundings()?;
        warnings.extend(changes.new_name.as_ref().and_then(|name| others.namesakes(name)));
        let points = changes.decision_points.iter().flatten();
        let points = points.map(|point| (point.site.as_str(), Some(point.target.as_str())));
        warnings.extend(cautions::shared_points(&others.sharing(experiment.context(), points)));
    }
    if removes_anything(changes, experiment) {
        warnings.push(cautions::removal());
        warnings.extend(cautions::lost_payloads(&design::payload_words(&lost_payloads(changes, experiment))));
    }
    let redraws = changes.conditions.is_some() || changes.decision_points.is_some() || changes.unit.is_some();
    if experiment.state == Status::Enrolling && redraws {
        warnings.push(cautions::redraws(experiment.state, reach.users()));
    }
    let mode = changes.filter_mode.as_ref().unwrap_or(&experiment.filter_mode);
    let nobody = match &changes.inclusion {
        Some(members) => members.is_empty(),
        None => changes.filter_mode.is_some() && experiment.inclusion.iter().all(MemberList::is_empty),
    };
    if mode == "excludeAll" && nobody {
        warnings.push(cautions::nobody_takes_part());
    }
    if mode == "includeAll" && changes.inclusion.as_ref().is_some_and(|members| !members.is_empty()) {
        warnings.push(cautions::everybody_takes_part());
    }
    Ok(warnings)
}

/// Returns the values of the changed fields as shown on the card, the time of the last change, and the
/// other fields in words, so that a reply can name their earlier values if they change.
fn shown_state(changes: &Changes, experiment: &View) -> Value {
    let before: Map<_, _> = changes.fields().map(|field| (field.label().to_owned(), field.read(experiment))).collect();
    json!({
        "before": before, "updated_at": experiment.updated_at, "version_number": experiment.version_number,
        REST: other_fields(changes, experiment),
    })
}

/// The key of the other fields in [`shown_state`].
const REST: &str = "rest";

/// Returns the status and the fields that do not change, in the words of a card.
fn other_fields(changes: &Changes, experiment: &View) -> Map<String, Value> {
    let unchanged = Field::ALL.into_iter().filter(|field| field.after(changes).is_none());
    let words = unchanged.map(|field| (field.label().to_owned(), json!(field.words(&field.read(experiment)))));
    std::iter::once(("Status".to_owned(), json!(experiment.state.display()))).chain(words).collect()
}

/// Returns [`shown_state`], with what the card says about other experiments, which is taken from `record`.
fn shown_state_of(record: &ActionRecord, changes: &Changes, experiment: &View) -> Value {
    let mut now = shown_state(changes, experiment);
    if let Some(said) = record.preconditions.get(SURROUNDINGS) {
        now[SURROUNDINGS] = said.clone();
    }
    now
}

fn result(changes: &Changes) -> Value {
    let fields = Field::ALL.into_iter().filter_map(|field| Some((field.label().to_owned(), field.after(changes)?)));
    let name = changes.new_name.as_ref().unwrap_or(&changes.experiment_name);
    json!({ "id": changes.experiment, "name": name, "changed": fields.collect::<Map<_, _>>() })
}

/// Returns the undo, which restores the earlier values; `None` if a condition or point is removed, since
/// a new one with the same name would lack its enrolments.
fn undo(changes: &Changes, experiment: &View) -> Option<Undo> {
    if removes_anything(changes, experiment) {
        return None;
    }
    let mut back = Map::new();
    back.insert("experiment".into(), json!(experiment.id));
    let new_values = changes.fields().filter_map(|field| Some((field.label().to_owned(), field.after(changes)?)));
    back.insert("expects".into(), json!(Expects::reading(new_values.collect())));
    for field in changes.fields() {
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
            Field::Payloads => "payloads",
            Field::ConditionOrder => "condition_order",
            Field::EndOn => "end_on",
            Field::Inclusion => "inclusion",
            Field::Exclusion => "exclusion",
            Field::Ending => {
                back.insert("ends_after_users".into(), json!(experiment.ending.user_count.unwrap_or_default()));
                back.insert("ends_after_groups".into(), json!(experiment.ending.group_count.unwrap_or_default()));
                continue;
            }
        };
        back.insert(
            key.into(),
            if field == Field::Unit { json!(experiment.assignment_unit) } else { field.read(experiment) },
        );
    }
    if changes.unit.is_some() {
        let rest = [
            ("group", &experiment.group),
            ("consistency", &experiment.consistency_rule),
            ("condition_order", &experiment.condition_order),
        ];
        for (key, value) in rest {
            if let Some(value) = value {
                back.insert(key.into(), json!(value));
            }
        }
        back.retain(|_, value| !value.is_null());
    }
    let name = "update_experiment".to_owned();
    Some(Undo { name, parameters: Value::Object(back), label: "Undo: restore previous design".to_owned() })
}

/// Returns the designs before and after the change, for the expected split of newcomers.
fn designs_before_and_after(changes: &Changes, experiment: &View, rivals: usize) -> (Design, Design) {
    let [included, excluded] = Side::BOTH.map(|side| lists::named_members(&lists::members_of(experiment.lists(side))));
    let conditions = experiment.conditions.iter();
    // The members of segments are not known.
    let has_segments = experiment.inclusion.iter().any(|list| !list.sub_segments.is_empty());
    let before = Design {
        experiment: experiment.id.to_string(),
        conditions: conditions.map(|c| (c.condition_code.clone(), c.assignment_weight)).collect(),
        unit: experiment.assignment_unit.clone(),
        group: experiment.group.clone(),
        order: experiment.condition_order.clone(),
        strata: experiment.stratification_factor.clone().map(|factor| factor.stratification_factor_name),
        only_named: experiment.filter_mode == "excludeAll" && !has_segments,
        included,
        excluded,
        early_stay_out: experiment.decision_points.iter().any(|point| point.exclude_if_reached),
        rivals,
    };
    let mut after = before.clone();
    if let Some(conditions) = &changes.conditions {
        after.conditions = conditions.iter().map(|c| (c.code.clone(), c.weight)).collect();
    }
    if let Some(unit) = &changes.unit {
        after.unit.clone_from(unit);
        after.group.clone_from(&changes.group);
    }
    if let Some(mode) = &changes.filter_mode {
        after.only_named = mode == "excludeAll" && !has_segments;
    }
    if let Some(points) = &changes.decision_points {
        after.early_stay_out = points.iter().any(|point| point.exclude_if_reached);
    }
    after.order = changes.condition_order.clone().or(after.order);
    after.included = changes.inclusion.as_ref().map_or(after.included, lists::named_members);
    after.excluded = changes.exclusion.as_ref().map_or(after.excluded, lists::named_members);
    (before, after)
}

fn removes_anything(changes: &Changes, experiment: &View) -> bool {
    let removes_condition = changes.conditions.as_ref().is_some_and(|after| {
        experiment.conditions.iter().any(|before| !after.iter().any(|c| c.id.to_string() == before.id))
    });
    let removes_point = changes.decision_points.as_ref().is_some_and(|after| {
        experiment.decision_points.iter().any(|before| !after.iter().any(|p| p.id.to_string() == before.id))
    });
    removes_condition || removes_point
}

/// Returns the names of the changed fields for use within a sentence. If only weights change, “weights”
/// stands for the conditions.
fn changed_things(changes: &Changes, experiment: &View) -> Vec<&'static str> {
    let new_codes = changes.conditions.as_ref().is_some_and(|after| {
        let before = experiment.conditions.iter().map(|condition| &condition.condition_code);
        !before.eq(after.iter().map(|condition| &condition.code))
    });
    let name = |field: Field| match field {
        Field::Conditions if !new_codes => "weights",
        field => field.name_in_sentence(),
    };
    changes.fields().map(name).collect()
}

fn card(changes: &Changes, experiment: &View, warnings: Vec<Text>) -> Card {
    let name = &experiment.name;
    let facts = Field::ALL.into_iter().filter_map(|field| {
        let after = field.after(changes)?;
        let text = |value: &Value| match (field, value.as_str()) {
            (Field::EndOn, Some(moment)) => moment::moment_text(moment),
            _ => Text::from(field.words(value)),
        };
        Some(change(field.label(), text(&field.read(experiment)), text(&after)))
    });
    let facts: Vec<_> = facts.collect();
    let (title, done) = outcomes::update_words(name, changes.new_name.as_deref(), &changed_things(changes, experiment));
    Card {
        title,
        facts,
        warnings,
        notes: vec![Text::from(format!("It is {} in {}.", experiment.state.display(), experiment.context()))],
        approve: "Update experiment".to_owned(),
        reject: Card::REJECT.to_owned(),
        done,
        ..Card::default()
    }
}
