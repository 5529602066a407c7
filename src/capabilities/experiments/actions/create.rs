//! The action `create_experiment`: creates an experiment, which stays inactive until it is started.
//!
//! The experiment's id is generated here and stored with the action, so that the request can be repeated safely: the id
//! is looked up before the request is sent, and again if its answer is lost. This lookup is essential, because the
//! server does not reject an existing id: it overwrites the experiment and duplicates its conditions.
//!
//! Creating may take several requests: from UpGrade 6.3 on, the post-experiment rule and the lists are set once the
//! experiment exists. Each request is sent only if reading back shows that it is still needed, so that an interrupted
//! attempt is continued.

use std::sync::Arc;

use countersign_capabilities::rows::{Change, Settle};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, Outcome, Performed, PrepareError, Probed, Proposal, Refusal,
};
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    SendWindow, cannot_read_back,
    card_differences::differences_in_words,
    compact,
    copy::{self, Copied},
    design, failed, lists, non_blank, not_sent, performed_with_error,
    plan::Plan,
    read_back,
    requested_design::{CreateExperimentParameters, add_own_words, missing_parameters, resolve_plan},
    stratified,
    surroundings::Surroundings,
    zone,
};
use crate::{
    access::{self, Deps},
    forms, lookup,
    replies::{outcomes, refusals},
    upgrade::{client::UpgradeClient, error::Error, experiment::Experiment, version::Version},
};

/// The name of the action.
pub(crate) const NAME: &str = "create_experiment";

/// The parameters as they are given: those of the experiment that is copied are added before they are read.
#[derive(Deserialize, JsonSchema)]
struct Given(#[schemars(with = "CreateExperimentParameters")] Value);

/// Returns the action.
pub(crate) fn action(deps: Deps) -> Arc<dyn ActionKind> {
    let info = ActionInfo::new(
        NAME,
        "Creates a new experiment (inactive). Needs a name, a context and a decision point (site and target).",
    );
    let mut change = Change::new(
        deps,
        info,
        |row, Given(given), reader| Box::pin(async move { prepare(&row.deps, &given, &zone(reader)).await }),
        |row, plan, record| Box::pin(async move { send((row, &row.deps.client), &plan, record).await }),
    );
    change.now = |row, plan: Plan, record| {
        Box::pin(async move { plan.claims().note_now(&row.deps.client, record, json!({})).await })
    };
    change.settle = Settle::ReadBack {
        in_flight: |deps| SendWindow::in_flight(&deps.client),
        repeatable: false, // sending the same id again would duplicate the conditions
        probe: |row, plan, record| Box::pin(async move { probe(&row.deps.client, &plan, record).await }),
    };
    change.form = Some(|row, given| {
        Box::pin(async move {
            let copied = copy::with_copied(&row.deps.client, given, row.deps.clock.now()).await;
            let given = copied.as_ref().map_or(given, |(parameters, _)| parameters);
            Some(forms::creation(&row.deps.client, given).await)
        })
    });
    change.differences = differences_in_words;
    Arc::new(change)
}

async fn send((action, client): (&dyn ActionKind, &UpgradeClient), plan: &Plan, record: &ActionRecord) -> Performed {
    let window = SendWindow::open(client);
    let version = match client.version().await {
        Ok(version) => version,
        Err(error) => return not_sent(record, &error),
    };
    let created = match client.single(plan.id).await {
        Ok(existing) => existing, // created by an earlier attempt
        Err(Error::NotFound { .. }) => match client.create(&plan.body(&version)).await {
            Ok(created) => created,
            Err(error) => return performed_with_error(action, record, error).await,
        },
        Err(error) => return not_sent(record, &error),
    };
    match complete(client, plan, (&version, &window), created).await {
        Ok(Some(now)) if plan.is_fully_applied(&now.view) => Performed::Ended(Outcome::done(record, plan.result())),
        Ok(_) => read_back(action, record, "not all of it was confirmed".to_owned()).await,
        Err(Error::NoAnswer { reason }) => Performed::NoAnswer { detail: reason },
        Err(Error::Unclear { reason }) => read_back(action, record, reason).await,
        Err(error) => Performed::Ended(match client.single(plan.id).await {
            Ok(now) if plan.is_fully_applied(&now.view) => Outcome::done(record, plan.result()),
            Ok(now) => {
                let unmet = [plan.differing_fields(&now.view), plan.missing_parts(&now.view)].concat();
                let summary = outcomes::created_in_part(&plan.name, &unmet, &outcomes::part_failed(&error));
                failed(access::kind(&error), summary)
            }
            Err(unread) => Outcome::Unknown { summary: outcomes::cannot_read_back(&unread.to_string()) },
        }),
    }
}

/// Looks up the experiment. One that exists without its post-experiment rule or lists is unfinished, which means
/// that it is completed and not created a second time.
async fn probe(client: &UpgradeClient, plan: &Plan, record: &ActionRecord) -> Probed {
    match client.single(plan.id).await {
        Ok(now) => match (plan.differing_fields(&now.view).as_slice(), plan.missing_parts(&now.view).as_slice()) {
            ([], []) => Probed::Happened(Outcome::done(record, plan.result())),
            ([], missing) => Probed::Unfinished { evidence: outcomes::created_so_far(&plan.name, missing) },
            (differing, _) => Probed::Otherwise { evidence: outcomes::created_otherwise(&plan.name, differing) },
        },
        Err(Error::NotFound { .. }) => Probed::DidNotHappen,
        Err(error) => cannot_read_back(&error),
    }
}

async fn prepare(Deps { client, clock }: &Deps, given: &Value, zone: &TimeZone) -> Result<Proposal, PrepareError> {
    let (parameters, original) = copy::with_copied(client, given, clock.now()).await?;
    let asked: CreateExperimentParameters = access::parameters(&parameters)?;
    if let Some(algorithm) = non_blank(asked.algorithm.as_ref()).filter(|words| refusals::is_adaptive(words)) {
        return Err(access::invalid(refusals::algorithm(algorithm)));
    }
    let mut contexts = client.context_metadata().await?;
    if let Some((view, known)) = original.as_ref().and_then(|view| Some((view, contexts.get_mut(view.context())?))) {
        copy::add_words_of(view, known);
    }
    let mut defaults = Vec::new();
    let wanted = asked.context.as_ref().and_then(|context| context.all().into_iter().next());
    let names: Vec<String> = contexts.keys().cloned().collect();
    let its = match (&wanted, names.as_slice()) {
        (Some(wanted), names) => lookup::pick(names, wanted),
        (None, [only]) => Some(only),
        (None, _) => None,
    };
    let own_words = its.and_then(|name| Some(add_own_words(&asked, contexts.get_mut(name)?))).unwrap_or_default();
    let context = match non_blank(wanted.as_ref()) {
        Some(context) => {
            let name = non_blank(asked.name.as_ref()).unwrap_or("an experiment").to_owned();
            Some(access::context(&contexts, context, |known| format!("create {name} in {known}"))?)
        }
        None if contexts.len() == 1 => contexts.iter().next().map(|(name, known)| {
            defaults.push("Context (the only one)".to_owned());
            (name.as_str(), known)
        }),
        None => None,
    };
    let missing = missing_parameters(&asked, context, names);
    let (Some(name), Some((context, known)), []) = (non_blank(asked.name.as_ref()), context, missing.as_slice()) else {
        return Err(Refusal::Missing(missing).into());
    };
    let mut plan = resolve_plan(&asked, name, (context, known), (clock.now(), zone), &mut defaults)?;
    plan.copied = original.as_ref().map(|view| Copied::of(view, &plan.context));
    let others = Surroundings::read(client, None).await?;
    let (algorithm, factor) = (non_blank(asked.algorithm.as_ref()), non_blank(asked.stratification_factor.as_ref()));
    plan.stratification_factor = stratified::factor(client, algorithm, factor).await?;
    let mut card = plan.card(known, &defaults, &others, zone);
    card.notes.extend(original.and_then(|view| copy::not_copied(&view, &parameters)));
    card.warnings.extend((!own_words.is_empty()).then(|| refusals::beyond_context(&own_words, context)));
    card.notes.extend(others.age());
    let mut preconditions = json!({});
    plan.claims().note(&others, &mut preconditions);
    let (scope, undo) = (plan.scope(), Some(plan.undo()));
    Ok(Proposal { preconditions, undo, scope, ..Proposal::new(compact(plan), card) })
}

/// Sends the requests that are still needed: for the post-experiment rule, then the inclusion list, then the
/// exclusion list. Returns the experiment if no request was needed, and `None` otherwise.
async fn complete(
    client: &UpgradeClient,
    plan: &Plan,
    (version, window): (&Version, &SendWindow),
    created: Experiment,
) -> Result<Option<Experiment>, Error> {
    if version.is_below_6_3() && plan.post_rule == "continue" {
        return Ok(Some(created)); // the creating request contained everything
    }
    let experiment = client.single(plan.id).await.map_err(error_after_creation)?;
    let rule_update = plan.post_rule_update(&experiment)?;
    if rule_update.is_none() && (version.is_below_6_3() || plan.lists().next().is_none()) {
        return Ok(Some(experiment));
    }
    if let Some(body) = rule_update {
        window.ensure_open()?;
        client.update(plan.id, &design::with_lists_for(version, body)).await?;
    }
    if !version.is_below_6_3() {
        for (side, members) in plan.lists() {
            lists::settle(client, window, &experiment.view, (side, members), plan.segments(side)).await?;
        }
    }
    Ok(None)
}

/// Turns the failure of a read between two requests into a missing answer, so that the remaining requests are sent
/// later.
fn error_after_creation(error: Error) -> Error {
    match error {
        Error::Unavailable { reason } => Error::NoAnswer { reason },
        error => error,
    }
}
