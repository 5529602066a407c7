//! `delete_experiment`: permanently deletes an experiment with all its enrolments.

use std::sync::Arc;

use countersign_capabilities::rows::{Change, Settle};
use countersign_core::reply::{Card, Fact, Text};
use countersign_graph::action::{ActionInfo, ActionKind, ActionRecord, Outcome, PrepareError, Probed, Proposal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    cannot_read_back,
    expects::Expects,
    in_flight,
    one::{OneExperiment, ended, on_one, propose},
    surroundings::Reach,
};
use crate::{
    access::{self, Deps},
    replies::{answers, outcomes},
    rules,
    upgrade::{
        client::UpgradeClient,
        error::Error,
        experiment::{ExperimentId, View},
        status::Status,
    },
};

/// The parameters of the action.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct DeleteExperimentParameters {
    /// The experiment, by name or id. Required.
    experiment: Option<String>,
    /// Set by the undo of a creation.
    #[schemars(skip)]
    expects: Option<Expects>,
}

/// The stored parameters.
#[derive(Serialize, Deserialize)]
struct Deletion {
    experiment: ExperimentId,
    experiment_name: String,
}

impl OneExperiment for Deletion {
    fn target(&self) -> (ExperimentId, &str) {
        (self.experiment, &self.experiment_name)
    }

    /// Returns the values that show whether the experiment has changed. Enrolments do not count as changes.
    fn state(&self, experiment: &View) -> Value {
        json!({
            "status": experiment.state,
            "updated_at": experiment.updated_at,
            "version_number": experiment.version_number,
        })
    }

    fn result(&self) -> Value {
        json!({ "id": self.experiment, "name": self.experiment_name, "deleted": true })
    }

    fn read_back(&self, _: &ActionRecord, _: &View) -> Probed {
        Probed::DidNotHappen
    }

    /// A deletion by another person looks the same as one by this request.
    fn not_found(&self) -> Text {
        outcomes::not_found_for_deletion(&self.experiment_name)
    }
}

/// Returns the action.
pub(crate) fn action(deps: Deps) -> Arc<dyn ActionKind> {
    let info = ActionInfo {
        irreversible: true,
        ..ActionInfo::new(
            "delete_experiment",
            "Deletes an experiment permanently, with all enrolments. Only when someone asks to delete or remove it.",
        )
    };
    let mut change = on_one(Change::new(
        deps,
        info,
        |row, asked, _| Box::pin(prepare(&row.deps.client, asked)),
        |row, deletion: Deletion, record| {
            Box::pin(async move {
                let sent = row.deps.client.delete(deletion.experiment).await;
                ended((row, &row.deps.client), &deletion, record, sent).await
            })
        },
    ));
    change.settle = Settle::ReadBack {
        in_flight: |deps| in_flight(&deps.client),
        repeatable: false,
        probe: |row, deletion, record| Box::pin(probe(&row.deps.client, deletion, record)),
    };
    Arc::new(change)
}

async fn prepare(client: &UpgradeClient, asked: DeleteExperimentParameters) -> Result<Proposal, PrepareError> {
    let name = access::named(client, asked.experiment.as_ref()).await?;
    let view = access::experiment_by_current_names(client, name, |name| format!("delete {name}")).await?.view;
    let reach = Reach::read(client, &view).await;
    let enrolled = reach.users().zip(reach.test_users());
    if let Some(expects) = &asked.expects {
        expects.check(&view, enrolled.map(|(users, tests)| users + tests))?;
    }
    let deletion = Deletion { experiment: view.id, experiment_name: view.name.clone() };
    Ok(propose(&view, &reach, &deletion, card(&view, enrolled)))
}

/// Reads back. An experiment that was not found must not be listed either, since one answer alone does not prove its
/// deletion.
async fn probe(client: &UpgradeClient, deletion: Deletion, record: &ActionRecord) -> Probed {
    let names = match client.single(deletion.experiment).await {
        Ok(now) => return deletion.read_back(record, &now.view),
        Err(Error::NotFound { .. }) => client.names().await,
        Err(error) => Err(error),
    };
    match names {
        Ok(names) if names.by_id(deletion.experiment).is_some() => {
            Probed::CannotTell { evidence: outcomes::listed_but_not_found(&deletion.experiment_name) }
        }
        Ok(_) => Probed::Happened(Outcome::done(record, deletion.result())),
        Err(error) => cannot_read_back(&error),
    }
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
    let or_none = |words: String| if words.is_empty() { "none".to_owned() } else { words };
    Card {
        facts: vec![
            Fact::new("Status", experiment.state.display()),
            Fact::new("Context", Text::new().code(experiment.context())),
            Fact::new("Conditions", or_none(rules::weights_in_words(&experiment.conditions))),
            Fact::new("Decision points", or_none(experiment.places().join(", "))),
            Fact::new("ID", Text::new().code(experiment.id.to_string())),
        ],
        warnings,
        irreversible: true,
        ..Card::new(
            format!("Permanently delete “{name}”?"),
            "Delete permanently",
            format!("“{name}” was permanently deleted."),
        )
    }
}
