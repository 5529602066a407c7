//! `update_experiment`: changes the design of an experiment, field by field.
//!
//! The platform only replaces whole experiments, so the experiment is read, edited and sent back. To
//! avoid overwriting other changes, nothing is sent if the time of the last change differs from the one
//! on the card.
//!
//! From 6.3 on the lists are changed by separate requests, after the experiment itself. If an answer is
//! lost in between, reading back shows which changes are still missing.

use std::sync::Arc;

use countersign_capabilities::rows::Change;
use countersign_core::reply::{Card, Fact, Text};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, ErrorKind, Outcome, Performed, PrepareError, Probed, Proposal, Undo,
};
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use super::{
    SendWindow,
    apply_changes::{apply, lost_payloads},
    dates, design,
    expects::Expects,
    failed,
    fields::{Changes, Field, same},
    lists, not_sent,
    one::{self, OneExperiment, on_one, propose},
    read_back,
    requested_changes::{self, UpdateExperimentParameters},
    surroundings::{Claims, Reach, SURROUNDINGS},
    zone,
};
use crate::{
    access::{self, Deps},
    forms,
    replies::{cautions, outcomes, refusals, split},
    testing::split::Design,
    upgrade::{
        client::UpgradeClient,
        error::Error,
        experiment::{ExperimentId, View},
        lists::{MemberList, Side},
        status::Status,
    },
};

/// The name of the action.
const NAME: &str = "update_experiment";

impl OneExperiment for Changes {
    fn target(&self) -> (ExperimentId, &str) {
        (self.experiment, &self.experiment_name)
    }

    /// Returns the values of the changed fields as shown on the card, the time of the last change, and the
    /// other fields in words, so that a reply can name their earlier values if they change.
    fn state(&self, experiment: &View) -> Value {
        let before: Map<_, _> = self.fields().map(|field| (field.label().to_owned(), field.read(experiment))).collect();
        json!({
            "before": before, "updated_at": experiment.updated_at, "version_number": experiment.version_number,
            REST: other_fields(self, experiment),
        })
    }

    fn claims<'a>(&'a self, experiment: &'a View) -> Claims<'a> {
        let claims = Claims::about(experiment).with_name(self.new_name.as_deref());
        match &self.decision_points {
            Some(points) => {
                claims.at_new_points(points.iter().map(|point| (point.site.as_str(), point.target.as_str())))
            }
            None => claims,
        }
    }

    fn result(&self) -> Value {
        let name = self.new_name.as_ref().unwrap_or(&self.experiment_name);
        json!({ "id": self.experiment, "name": name, "changed": self.after() })
    }

    /// The change happened if every field has its new value, and did not happen if every field has its old one.
    fn read_back(&self, record: &ActionRecord, now: &View) -> Probed {
        let lacking = self.lacking(now);
        if lacking.is_empty() {
            return Probed::Happened(Outcome::done(record, self.result()));
        }
        if is_as_shown(record, self, now) {
            return Probed::DidNotHappen;
        }
        let labels = |fields: &[Field]| fields.iter().map(|field| field.label()).collect::<Vec<_>>();
        let changed: Vec<_> = self.fields().filter(|field| !lacking.contains(field)).collect();
        let evidence = outcomes::partly(&self.experiment_name, &labels(&changed), &labels(&lacking));
        match self.is_begun(now, &record.preconditions["before"]) {
            true => Probed::Unfinished { evidence },
            false => Probed::Otherwise { evidence },
        }
    }
}

/// Returns the action. Its request contains the complete new state, and is sent only if the experiment is as shown.
pub(crate) fn action(deps: Deps) -> Arc<dyn ActionKind> {
    let info = ActionInfo::new(
        NAME,
        "Changes the design of an experiment: name, description, tags, weights, conditions, decision points, unit, \
         consistency, post-experiment rule, filter mode, payloads, ending criteria, inclusion and exclusion lists. Not its \
         status.",
    );
    let mut change = on_one(Change::new(
        deps,
        info,
        |row, asked, reader| Box::pin(async move { prepare(&row.deps, asked, &zone(reader)).await }),
        |row, changes, record| Box::pin(async move { send((row, &row.deps.client), &changes, record).await }),
    ));
    change.form = Some(|row, given| Box::pin(async move { Some(forms::update(&row.deps.client, given).await) }));
    Arc::new(change)
}

async fn send(
    (action, client): (&dyn ActionKind, &UpgradeClient),
    changes: &Changes,
    record: &ActionRecord,
) -> Performed {
    let experiment = match client.single(changes.experiment).await {
        Ok(experiment) => experiment,
        Err(Error::NotFound { .. }) => {
            let name = &changes.experiment_name;
            let gone = if record.sends > 1 { outcomes::gone_on_read_back(name) } else { outcomes::gone(name) };
            return Performed::Ended(failed(ErrorKind::NotFound, gone));
        }
        Err(error) => return not_sent(record, &error),
    };
    // The request replaces the whole experiment, so it must be based on exactly the state on the card.
    if !is_as_shown(record, changes, &experiment.view)
        && !changes.is_begun(&experiment.view, &record.preconditions["before"])
    {
        if record.sends > 1 {
            // The change may be the effect of this action's previous request.
            return read_back(action, record, "it was changed in the meantime".to_owned()).await;
        }
        let summary = outcomes::changed_meanwhile(&changes.experiment_name);
        return Performed::Ended(failed(ErrorKind::Execution, summary));
    }
    let window = SendWindow::open(client);
    let version = match client.version().await {
        Ok(version) => version,
        Err(error) => return not_sent(record, &error),
    };
    let mut answered = None;
    let includes_lists = version.is_below_6_3();
    if changes.lacking(&experiment.view).iter().any(|field| includes_lists || field.side().is_none()) {
        let changed = match apply(changes, &experiment) {
            Ok(changed) => changed,
            Err(error) => return not_sent(record, &error),
        };
        let mut body = design::with_lists_for(&version, changed);
        for (side, members) in changes.lists().filter(|_| includes_lists) {
            lists::write(&mut body, side, members);
        }
        match client.update(changes.experiment, &body).await {
            Ok(experiment) => answered = Some(experiment),
            Err(error) => return one::ended((action, client), changes, record, Err(error)).await,
        }
    }
    for (side, members) in changes.lists().filter(|_| !includes_lists) {
        match lists::settle(client, &window, &experiment.view, (side, members), &[]).await {
            Ok(()) => {}
            Err(Error::NoAnswer { reason }) => return Performed::NoAnswer { detail: reason },
            Err(Error::Unclear { reason }) => return read_back(action, record, reason).await,
            Err(error) => {
                return Performed::Ended(outcome_after_partial_update(client, record, changes, &error).await);
            }
        }
    }
    match answered.filter(|answered| changes.lacking(&answered.view).is_empty()) {
        Some(_) => Performed::Ended(Outcome::done(record, changes.result())),
        None => read_back(action, record, "not all of it was confirmed".to_owned()).await,
    }
}

async fn prepare(
    Deps { client, clock }: &Deps,
    asked: UpdateExperimentParameters,
    zone: &TimeZone,
) -> Result<Proposal, PrepareError> {
    let name = access::named(client, asked.experiment.as_ref()).await?;
    let experiment = access::experiment(client, name, |name| format!("update {name}")).await?.view;
    if let Some(expects) = &asked.expects {
        expects.check(&experiment, None)?;
    }
    if asked.lacks_weights() {
        let codes: Vec<_> = experiment.conditions.iter().map(|condition| condition.condition_code.as_str()).collect();
        let question = format!("Which weights, in the order {}? For example 70/30.", codes.join(", "));
        return Err(access::ask("weights", question, Vec::new()));
    }
    let mut changes = requested_changes::changes(client, (clock.now(), zone), &asked, &experiment).await?;
    if changes.fields().count() == 0 {
        return Err(access::refused(ErrorKind::UserInput, refusals::no_change_given(&experiment.name)));
    }
    for field in Field::ALL {
        if field.after(&changes).is_some_and(|after| same(&after, &field.read(&experiment))) {
            changes = changes.without(field);
        }
    }
    if changes.fields().count() == 0 {
        return Err(access::refused(ErrorKind::Execution, refusals::nothing_changes(&experiment.name)));
    }
    let reach = Reach::read(client, &experiment).await;
    let warnings = warnings(&changes, &experiment, &reach)?;
    let mut card = card(&changes, &experiment, warnings);
    let (before, after) = designs_before_and_after(&changes, &experiment, reach.rivals(&experiment));
    if let Some(split) = split::changing(&before, &after) {
        card.facts.push(split);
        card.notes.extend(split::note(&after));
    }
    Ok(Proposal {
        undo: undo(&changes, &experiment),
        scope: changes.scope(&experiment),
        ..propose(&experiment, &reach, &changes, card)
    })
}

/// Reads back after a later one of several requests was refused, and returns the outcome.
async fn outcome_after_partial_update(
    client: &UpgradeClient,
    record: &ActionRecord,
    changes: &Changes,
    error: &Error,
) -> Outcome {
    match client.single(changes.experiment).await {
        Ok(now) => match changes.lacking(&now.view).as_slice() {
            [] => Outcome::done(record, changes.result()),
            _ if is_as_shown(record, changes, &now.view) => {
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

/// The key of the other fields in the state on a card.
const REST: &str = "rest";

/// Returns the status and the fields that do not change, in the words of a card.
fn other_fields(changes: &Changes, experiment: &View) -> Map<String, Value> {
    let unchanged = Field::ALL.into_iter().filter(|field| field.after(changes).is_none());
    let words = unchanged.map(|field| (field.label().to_owned(), json!(field.words(&field.read(experiment)))));
    std::iter::once(("Status".to_owned(), json!(experiment.state.display()))).chain(words).collect()
}

/// Returns true if the experiment is as shown on the card; what the card says about other experiments is not compared.
fn is_as_shown(record: &ActionRecord, changes: &Changes, experiment: &View) -> bool {
    let mut now = changes.state(experiment);
    if let Some(said) = record.preconditions.get(SURROUNDINGS) {
        now[SURROUNDINGS] = said.clone();
    }
    now == *record.preconditions
}

/// Returns the undo, which restores the earlier values; `None` if a condition or point is removed, since
/// a new one with the same name would lack its enrolments.
fn undo(changes: &Changes, experiment: &View) -> Option<Undo> {
    if removes_anything(changes, experiment) {
        return None;
    }
    let mut back = Map::new();
    back.insert("experiment".into(), json!(experiment.id));
    back.insert("expects".into(), json!(Expects::reading(changes.after())));
    for field in changes.fields() {
        match field {
            // A limit that is not set is restored as 0.
            Field::Ending => {
                back.insert("ends_after_users".into(), json!(experiment.ending.user_count.unwrap_or_default()));
                back.insert("ends_after_groups".into(), json!(experiment.ending.group_count.unwrap_or_default()));
            }
            Field::Unit => {
                back.insert("unit".into(), json!(experiment.assignment_unit));
                back.insert("group".into(), json!(experiment.group));
                for rule in [Field::Consistency, Field::ConditionOrder] {
                    back.insert(rule.keys()[0].into(), rule.read(experiment));
                }
            }
            field => {
                back.insert(field.keys()[0].into(), field.read(experiment));
            }
        }
    }
    if changes.unit.is_some() {
        back.retain(|_, value| !value.is_null());
    }
    let label = "Undo: restore previous design".to_owned();
    Some(Undo { name: NAME.to_owned(), parameters: Value::Object(back), label })
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
    let facts = changes.fields().filter_map(|field| {
        let after = field.after(changes)?;
        let text = |value: &Value| match (field, value.as_str()) {
            (Field::EndOn, Some(moment)) => dates::moment_text(moment),
            _ => Text::from(field.words(value)),
        };
        Some(Fact::change(field.label(), text(&field.read(experiment)), text(&after)))
    });
    let things = changed_things(changes, experiment);
    let (title, done) = outcomes::update_words(&experiment.name, changes.new_name.as_deref(), &things);
    Card {
        facts: facts.collect(),
        warnings,
        notes: vec![Text::from(format!("It is {} in {}.", experiment.state.display(), experiment.context()))],
        ..Card::new(title, "Update experiment", done)
    }
}
