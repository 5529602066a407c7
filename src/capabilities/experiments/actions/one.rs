//! The shared part of all changes to one experiment: the state on the card is read again before the request is sent, and an
//! attempt without an answer is settled by reading the experiment back.
//!
//! The file of an action holds only what is its own: its parameters, its rules, its card and its request.

use countersign_capabilities::rows::{Change, Settle};
use countersign_core::reply::{Card, Text};
use countersign_graph::action::{ActionKind, ActionRecord, ErrorKind, Outcome, Performed, Probed, Proposal};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    SendWindow, cannot_read_back,
    card_differences::differences_in_words,
    compact, failed, performed_with_error, read_failed,
    surroundings::{Claims, Reach},
};
use crate::{
    access::Deps,
    replies::outcomes,
    scope,
    upgrade::{
        client::UpgradeClient,
        error::Error,
        experiment::{ExperimentId, View},
    },
};

/// The stored parameters of a change to one experiment.
pub(super) trait OneExperiment: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Returns the experiment, and its name on the card.
    fn target(&self) -> (ExperimentId, &str);

    /// Returns the values that the card shows.
    fn state(&self, experiment: &View) -> Value;

    /// Returns the subjects of what the card says about other experiments.
    fn claims<'a>(&'a self, experiment: &'a View) -> Claims<'a> {
        Claims::about(experiment)
    }

    /// Returns the result as data.
    fn result(&self) -> Value;

    /// Returns what became of the change, from the experiment as it was read back.
    fn read_back(&self, record: &ActionRecord, now: &View) -> Probed;

    /// Says that the platform did not find the experiment for the change, although it was read just before.
    fn not_found(&self) -> Text {
        outcomes::not_found_for_change(self.target().1)
    }
}

/// Completes an action on one experiment. Making it twice has the same effect as making it once.
pub(super) fn on_one<A, S: OneExperiment>(change: Change<Deps, A, S>) -> Change<Deps, A, S> {
    Change {
        now: |row, stored, record| Box::pin(async move { current(&row.deps.client, &stored, record).await }),
        differences: differences_in_words,
        settle: Settle::ReadBack {
            in_flight: |deps| SendWindow::in_flight(&deps.client),
            repeatable: true,
            probe: |row, stored, record| Box::pin(async move { probe(&row.deps.client, &stored, record).await }),
        },
        ..change
    }
}

/// Completes a card with the people whom the change affects, and proposes it.
pub(super) fn propose<S: OneExperiment>(experiment: &View, reach: &Reach, stored: &S, mut card: Card) -> Proposal {
    card.facts.extend(reach.facts(experiment));
    card.notes.extend(reach.age());
    let mut preconditions = stored.state(experiment);
    reach.note(&stored.claims(experiment), &mut preconditions);
    Proposal { preconditions, scope: scope::of(experiment), ..Proposal::new(compact(stored), card) }
}

/// Reads again what the card says.
pub(super) async fn current<S: OneExperiment>(
    client: &UpgradeClient,
    stored: &S,
    record: &ActionRecord,
) -> Result<Value, Outcome> {
    let (id, name) = stored.target();
    match client.single(id).await {
        Ok(now) => stored.claims(&now.view).note_now(client, record, stored.state(&now.view)).await,
        Err(Error::NotFound { .. }) => Err(failed(ErrorKind::NotFound, outcomes::gone(name))),
        Err(error) => Err(read_failed(&error)),
    }
}

/// Returns the result of an attempt. A platform that does not find the experiment is asked once more.
pub(super) async fn ended<S: OneExperiment>(
    (action, client): (&dyn ActionKind, &UpgradeClient),
    stored: &S,
    record: &ActionRecord,
    sent: Result<(), Error>,
) -> Performed {
    let is_gone = async || matches!(client.single(stored.target().0).await, Err(Error::NotFound { .. }));
    match sent {
        Ok(()) => Performed::Ended(Outcome::done(record, stored.result())),
        Err(Error::NotFound { .. }) if is_gone().await => {
            Performed::Ended(failed(ErrorKind::NotFound, stored.not_found()))
        }
        Err(error) => performed_with_error(action, record, error).await,
    }
}

/// Reads the experiment back.
pub(super) async fn probe<S: OneExperiment>(client: &UpgradeClient, stored: &S, record: &ActionRecord) -> Probed {
    let (id, name) = stored.target();
    match client.single(id).await {
        Ok(now) => stored.read_back(record, &now.view),
        Err(Error::NotFound { .. }) => Probed::Otherwise { evidence: outcomes::gone_on_read_back(name) },
        Err(error) => cannot_read_back(&error),
    }
}
