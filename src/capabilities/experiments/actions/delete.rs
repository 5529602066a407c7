//! `delete_experiment`: permanently deletes an experiment with all its enrolments.

use std::sync::Arc;

use async_trait::async_trait;
use countersign_core::reply::{Card, Fact, Text};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, ErrorKind, Outcome, Performed, PrepareError, Probed, Proposal, Reader,
    Recovery, Refusal,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    cannot_read_back,
    card_differences::differences_in_words,
    expects::Expects,
    fact, failed, in_flight, is_gone, non_blank, performed_with_error, read_failed, stored_parameters,
    surroundings::{Claims, Reach},
};
use crate::{
    access,
    replies::{answers, outcomes},
    rules, scope,
    upgrade::{
        client::UpgradeClient,
        error::Error,
        experiment::{ExperimentId, View},
        status::Status,
    },
};

/// The action `delete_experiment`.
#[derive(Debug)]
pub struct DeleteExperiment(pub Arc<UpgradeClient>);

/// The parameters of the action.
#[derive(Deserialize, JsonSchema)]
struct DeleteExperimentParameters {
    /// The experiment, by name or id. Required.
    #[serde(default)]
    experiment: Option<String>,
    /// Set by the undo of a creation.
    #[serde(default)]
    #[schemars(skip)]
    expects: Option<Expects>,
}

/// The stored parameters.
#[derive(Serialize, Deserialize)]
struct Deletion {
    experiment: ExperimentId,
    experiment_name: String,
}

#[async_trait]
impl ActionKind for DeleteExperiment {
    fn info(&self) -> ActionInfo {
        ActionInfo {
            irreversible: true,
            ..ActionInfo::new(
                "delete_experiment",
                "Deletes an experiment permanently, with all enrolments. Only when someone asks to delete or remove it.",
            )
        }
    }

    fn schema(&self) -> Value {
        access::schema::<DeleteExperimentParameters>()
    }

    async fn prepare(&self, parameters: &Value, _: Option<&Reader>) -> Result<Proposal, PrepareError> {
        let asked: DeleteExperimentParameters = access::parameters(parameters)?;
        let Some(name) = non_blank(asked.experiment.as_ref()) else {
            return Err(Refusal::Missing(vec![access::which_experiment(&self.0).await]).into());
        };
        let request_with = |name: &str| format!("delete {name}");
        let experiment = access::experiment_by_current_names(&self.0, name, request_with).await?.view;
        let reach = Reach::read(&self.0, &experiment).await;
        if let Some(expects) = &asked.expects {
            expects.check(&experiment, reach.users().zip(reach.test_users()).map(|(users, tests)| users + tests))?;
        }
        let mut card = card(&experiment, reach.users().zip(reach.test_users()));
        card.facts.extend(reach.facts(&experiment));
        card.notes.extend(reach.age());
        let mut preconditions = shown_state(&experiment);
        reach.note(&Claims::about(&experiment), &mut preconditions);
        Ok(Proposal {
            parameters: json!(Deletion { experiment: experiment.id, experiment_name: experiment.name.clone() }),
            preconditions,
            card,
            undo: None,
            scope: scope::of(&experiment),
        })
    }

    async fn preconditions(&self, record: &ActionRecord) -> Result<Value, Outcome> {
        let deletion: Deletion = stored_parameters(record)?;
        match self.0.single(deletion.experiment).await {
            Ok(experiment) => {
                let state = shown_state(&experiment.view);
                Claims::about(&experiment.view).note_now(&self.0, record, state).await
            }
            Err(Error::NotFound { .. }) => Err(failed(ErrorKind::NotFound, outcomes::gone(&deletion.experiment_name))),
            Err(error) => Err(read_failed(&error)),
        }
    }

    fn differences(&self, record: &ActionRecord, found: &Value) -> Vec<Fact> {
        differences_in_words(record, found)
    }

    async fn perform(&self, record: &ActionRecord) -> Performed {
        let deletion: Deletion = match stored_parameters(record) {
            Ok(deletion) => deletion,
            Err(outcome) => return Performed::Ended(outcome),
        };
        match self.0.delete(deletion.experiment).await {
            Ok(()) => Performed::Ended(Outcome::done(record, result(&deletion))),
            // A deletion by another person looks the same as one by this request.
            Err(error) => match is_gone(&self.0, deletion.experiment, &error).await {
                true => Performed::Ended(failed(
                    ErrorKind::NotFound,
                    outcomes::not_found_for_deletion(&deletion.experiment_name),
                )),
                false => performed_with_error(self, record, error).await,
            },
        }
    }

    fn recovery(&self) -> Recovery {
        Recovery::Probe { in_flight: in_flight(&self.0), repeatable: false }
    }

    async fn probe(&self, record: &ActionRecord) -> Probed {
        let Ok(deletion) = stored_parameters::<Deletion>(record) else {
            return Probed::CannotTell { evidence: outcomes::unreadable_record() };
        };
        match self.0.single(deletion.experiment).await {
            Ok(_) => Probed::DidNotHappen,
            Err(Error::NotFound { .. }) => self.confirmed(record, &deletion).await,
            Err(error) => cannot_read_back(&error),
        }
    }
}

impl DeleteExperiment {
    /// Checks that an experiment that was not found is not listed either, since one answer alone does
    /// not prove its deletion.
    async fn confirmed(&self, record: &ActionRecord, deletion: &Deletion) -> Probed {
        match self.0.names().await {
            Ok(names) if names.by_id(deletion.experiment).is_some() => {
                Probed::CannotTell { evidence: outcomes::listed_but_not_found(&deletion.experiment_name) }
            }
            Ok(_) => Probed::Happened(Outcome::done(record, result(deletion))),
            Err(error) => cannot_read_back(&error),
        }
    }
}

/// Returns the values that show whether the experiment has changed. Enrolments do not count as changes.
fn shown_state(experiment: &View) -> Value {
    json!({
        "status": experiment.state,
        "updated_at": experiment.updated_at,
        "version_number": experiment.version_number,
    })
}

fn result(deletion: &Deletion) -> Value {
    json!({ "id": deletion.experiment, "name": deletion.experiment_name, "deleted": true })
}

/// `enrolled` has the numbers of users and of test users, if they could be read.
fn card(experiment: &View, enrolled: Option<(u64, u64)>) -> Card {
    let name = &experiment.name;
    let mut warnings = vec![Text::from(match enrolled {
        Some((0, 0)) => "This can't be undone. Nobody is enrolled.".to_owned(),
        Some((0, tests)) => format!("This can't be undone. Only test users are enrolled ({tests})."),
        Some((users, tests)) => {
            let enrolled = answers::people_and_tests(users, tests);
            format!("This can't be undone. The enrollments of {enrolled} are deleted too.")
        }
        None => "This can't be undone. The number of enrolled users couldn't be read.".to_owned(),
    })];
    if experiment.state == Status::Enrolling {
        warnings.push(Text::from(match enrolled {
            Some((0, _)) => "It is running, but nobody has been enrolled yet.",
            _ => "It is running, so users are getting its conditions now.",
        }));
    }
    let points: Vec<_> = experiment.decision_points.iter().map(|point| point.words()).collect();
    let or_none = |words: String| if words.is_empty() { "none".to_owned() } else { words };
    Card {
        title: format!("Permanently delete “{name}”?"),
        facts: vec![
            fact("Status", experiment.state.display()),
            fact("Context", Text::new().code(experiment.context())),
            fact("Conditions", or_none(rules::weights_in_words(&experiment.conditions))),
            fact("Decision points", or_none(points.join(", "))),
            fact("ID", Text::new().code(experiment.id.to_string())),
        ],
        warnings,
        approve: "Delete permanently".to_owned(),
        reject: Card::REJECT.to_owned(),
        done: format!("“{name}” was permanently deleted."),
        irreversible: true,
        ..Card::default()
    }
}
