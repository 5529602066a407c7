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

use async_trait::async_trait;
use countersign_core::{clock::Clock, reply::Fact};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, ErrorKind, Form, Outcome, Performed, PrepareError, Probed, Proposal, Reader,
    Recovery, Refusal,
};
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::{
    SendWindow, cannot_read_back,
    card_differences::differences_in_words,
    copy::{self, Copied},
    design, failed, lists, moment, non_blank, not_sent, performed_with_error,
    plan::Plan,
    read_back,
    requested_design::{CreateExperimentParameters, missing_parameters, resolve_plan},
    stored_parameters, stratified,
    surroundings::Surroundings,
};
use crate::{
    access, forms,
    replies::{outcomes, refusals},
    upgrade::{client::UpgradeClient, error::Error, experiment::Experiment, version::Version},
};

/// The name of the action.
pub(crate) const NAME: &str = "create_experiment";

/// The action `create_experiment`.
#[derive(Debug)]
pub struct CreateExperiment(pub Arc<UpgradeClient>, pub Arc<dyn Clock>);

#[async_trait]
impl ActionKind for CreateExperiment {
    fn info(&self) -> ActionInfo {
        ActionInfo::new(
            NAME,
            "Creates a new experiment (inactive). Needs a name, a context and a decision point (site and target).",
        )
    }

    fn schema(&self) -> Value {
        access::schema::<CreateExperimentParameters>()
    }

    fn is_editable(&self, _: &Value) -> bool {
        true
    }

    async fn form(&self, parameters: &Value) -> Option<Form> {
        let copied = copy::with_copied(&self.0, parameters, self.1.now()).await;
        Some(forms::creation(&self.0, copied.as_ref().map_or(parameters, |(parameters, _)| parameters)).await)
    }

    async fn prepare(&self, parameters: &Value, reader: Option<&Reader>) -> Result<Proposal, PrepareError> {
        self.prepare_in(parameters, &moment::time_zone(reader.and_then(|reader| reader.zone.as_deref()))).await
    }

    async fn preconditions(&self, record: &ActionRecord) -> Result<Value, Outcome> {
        let plan: Plan = stored_parameters(record)?;
        plan.claims().note_now(&self.0, record, json!({})).await
    }

    fn differences(&self, record: &ActionRecord, found: &Value) -> Vec<Fact> {
        differences_in_words(record, found)
    }

    async fn perform(&self, record: &ActionRecord) -> Performed {
        let plan: Plan = match stored_parameters(record) {
            Ok(plan) => plan,
            Err(outcome) => return Performed::Ended(outcome),
        };
        let window = SendWindow::open(&self.0);
        let version = match self.0.version().await {
            Ok(version) => version,
            Err(error) => return not_sent(record, &error),
        };
        let created = match self.0.single(plan.id).await {
            Ok(existing) => existing, // created by an earlier attempt
            Err(Error::NotFound { .. }) => match self.0.create(&plan.body(&version)).await {
                Ok(created) => created,
                Err(error) => return performed_with_error(self, record, error).await,
            },
            Err(error) => return not_sent(record, &error),
        };
        match self.complete(&plan, &version, &window, created).await {
            Ok(Some(now)) if plan.is_fully_applied(&now.view) => Performed::Ended(Outcome::done(record, plan.result())),
            Ok(_) => read_back(self, record, "not all of it was confirmed".to_owned()).await,
            Err(Error::NoAnswer { reason }) => Performed::NoAnswer { detail: reason },
            Err(Error::Unclear { reason }) => read_back(self, record, reason).await,
            Err(error) => Performed::Ended(match self.0.single(plan.id).await {
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

    fn recovery(&self) -> Recovery {
        // Sending the same id again would duplicate the conditions.
        Recovery::Probe { in_flight: SendWindow::in_flight(&self.0), repeatable: false }
    }

    /// Looks up the experiment. One that exists without its post-experiment rule or lists is unfinished, which means
    /// that it is completed and not created a second time.
    async fn probe(&self, record: &ActionRecord) -> Probed {
        let Ok(plan) = stored_parameters::<Plan>(record) else {
            return Probed::CannotTell { evidence: outcomes::unreadable_record() };
        };
        match self.0.single(plan.id).await {
            Ok(now) => match (plan.differing_fields(&now.view).as_slice(), plan.missing_parts(&now.view).as_slice()) {
                ([], []) => Probed::Happened(Outcome::done(record, plan.result())),
                ([], missing) => Probed::Unfinished { evidence: outcomes::created_so_far(&plan.name, missing) },
                (differing, _) => Probed::Otherwise { evidence: outcomes::created_otherwise(&plan.name, differing) },
            },
            Err(Error::NotFound { .. }) => Probed::DidNotHappen,
            Err(error) => cannot_read_back(&error),
        }
    }
}

impl CreateExperiment {
    /// Prepares the change for a person in this time zone.
    async fn prepare_in(&self, parameters: &Value, zone: &TimeZone) -> Result<Proposal, PrepareError> {
        let (parameters, original) = copy::with_copied(&self.0, parameters, self.1.now()).await?;
        let asked: CreateExperimentParameters = access::parameters(&parameters)?;
        if let Some(algorithm) = non_blank(asked.algorithm.as_ref()).filter(|words| refusals::is_adaptive(words)) {
            return Err(access::refused(ErrorKind::Validation, refusals::algorithm(algorithm)));
        }
        let mut contexts = self.0.context_metadata().await.map_err(access::unavailable)?;
        if let Some((view, known)) = original.as_ref().and_then(|view| Some((view, contexts.get_mut(view.context())?)))
        {
            copy::add_words_of(view, known);
        }
        let mut defaults = Vec::new();
        let wanted = asked.context.as_ref().and_then(|context| context.all().into_iter().next());
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
        let options: Vec<String> = contexts.keys().cloned().collect();
        let missing = missing_parameters(&asked, context, options);
        let (Some(name), Some((context, known)), []) = (non_blank(asked.name.as_ref()), context, missing.as_slice())
        else {
            return Err(Refusal::Missing(missing).into());
        };
        let mut plan = resolve_plan(&asked, name, (context, known), (self.1.now(), zone), &mut defaults)?;
        plan.copied = original.as_ref().map(|view| Copied::of(view, &plan.context));
        let others = Surroundings::read(&self.0, None).await.map_err(access::unavailable)?;
        let (algorithm, factor) =
            (non_blank(asked.algorithm.as_ref()), non_blank(asked.stratification_factor.as_ref()));
        plan.stratification_factor = stratified::factor(&self.0, algorithm, factor).await?;
        let mut card = plan.card(known, &defaults, &others, zone);
        card.notes.extend(original.and_then(|view| copy::not_copied(&view, &parameters)));
        card.notes.extend(others.age());
        let mut preconditions = json!({});
        plan.claims().note(&others, &mut preconditions);
        let (scope, undo) = (plan.scope(), Some(plan.undo()));
        Ok(Proposal { parameters: json!(plan), preconditions, card, undo, scope })
    }

    /// Sends the requests that are still needed: for the post-experiment rule, then the inclusion list, then the
    /// exclusion list. Returns the experiment if no request was needed, and `None` otherwise.
    async fn complete(
        &self,
        plan: &Plan,
        version: &Version,
        window: &SendWindow,
        created: Experiment,
    ) -> Result<Option<Experiment>, Error> {
        if version.is_below_6_3() && plan.post_rule == "continue" {
            return Ok(Some(created)); // the creating request contained everything
        }
        let experiment = self.0.single(plan.id).await.map_err(error_after_creation)?;
        let rule_update = plan.post_rule_update(&experiment)?;
        if rule_update.is_none() && (version.is_below_6_3() || plan.lists().next().is_none()) {
            return Ok(Some(experiment));
        }
        if let Some(body) = rule_update {
            window.ensure_open()?;
            self.0.update(plan.id, &design::with_lists_for(version, body)).await?;
        }
        if !version.is_below_6_3() {
            for (side, members) in plan.lists() {
                lists::settle(&self.0, window, &experiment.view, (side, members), plan.segments(side)).await?;
            }
        }
        Ok(None)
    }
}

/// Turns the failure of a read between two requests into a missing answer, so that the remaining requests are sent
/// later.
fn error_after_creation(error: Error) -> Error {
    match error {
        Error::Unavailable { reason } => Error::NoAnswer { reason },
        error => error,
    }
}
