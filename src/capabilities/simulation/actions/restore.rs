//! `restore_simulation`: sets all parameters of a simulation back to a snapshot.

use std::sync::Arc;

use countersign_capabilities::{
    parameters::{non_blank, refused},
    rows::Change,
};
use countersign_core::{
    reply::{Card, Fact, Reply, Text},
    units::quantity,
};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, ErrorKind, Outcome, Performed, PrepareError, Proposal, differences,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Action, free, proposal, sent, still_free, unread};
use crate::{
    Deps, busy, changes,
    find::{self, Target},
    memory::restore_target,
    replies::refusals,
    snapshots,
};

/// The name of the action.
pub const NAME: &str = "restore_simulation";

/// The word for the values in the model file, of which the bridge keeps no snapshot.
const LOADED: &str = "loaded";

/// The key of the present values on the card, in the preconditions.
const VALUES: &str = "values";

/// The maximum number of values on a card.
const MAX_VALUES: usize = 8;

/// The parameters of the action.
#[derive(Deserialize, JsonSchema)]
struct Given {
    #[serde(flatten)]
    target: Target,
    /// The id of the snapshot; `loaded` for the values in the model file. Default: the last one that was taken here.
    #[serde(default)]
    snapshot: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Restore {
    simulation: String,
    snapshot: String,
}

/// Returns the action `restore_simulation`.
pub(crate) fn action(deps: Deps) -> Arc<dyn ActionKind> {
    let info = ActionInfo::new(
        NAME,
        "Sets all parameters of a simulation back to a snapshot. Only when someone asks to restore a simulation.",
    );
    // Without an answer it is sent again: the request names the snapshot, so a second one leads to the same values. A
    // probe is not possible: the bridge does not report the snapshot that a simulation was restored to.
    Arc::new(Change {
        now: |row, restore, record| Box::pin(now(&row.deps, restore, record)),
        differences: changed_since,
        ..Change::new(
            deps,
            info,
            |row, asked, _| Box::pin(prepare(&row.deps, asked)),
            |row, restore, record| Box::pin(send(row, restore, record)),
        )
    })
}

async fn prepare(deps: &Deps, asked: Given) -> Result<Proposal, PrepareError> {
    let loaded = free(deps, &asked.target, |simulation| format!("restore {simulation}")).await?;
    if asked.snapshot.as_deref() == Some(LOADED) {
        let changed = changes::since_loading(deps, &loaded.id).await;
        return Err(refused(ErrorKind::UserInput, refusals::back_to_loaded(&loaded.id, &changed)));
    }
    let snapshots = deps.client.snapshots(&loaded.id).await;
    let snapshots = snapshots.map_err(|error| find::not_read(deps, &loaded.id, error))?;
    let wanted = non_blank(asked.snapshot.as_ref());
    let taken_here = snapshots::taken_here(deps, &loaded.id).await;
    let found = match wanted {
        Some(id) => snapshots.iter().find(|snapshot| snapshot.id == id),
        None => snapshots::last(&snapshots, &taken_here),
    };
    let Some(snapshot) = found else {
        let text = Text::from(match wanted {
            Some(id) => format!("There is no snapshot {id} of "),
            None => "There is no snapshot of ".to_owned(),
        });
        return Err(refused(ErrorKind::NotFound, Reply::text(text.bold(&loaded.id).plain("."))));
    };
    let taken = snapshot.taken_at.clone().unwrap_or_else(|| "at an unknown time".to_owned());
    let is_from_here = taken_here.iter().any(|taken| taken.id == snapshot.id);
    let newer = snapshots.iter().take_while(|other| other.id != snapshot.id).count();
    let changed = snapshots::differences(deps, &loaded.id, snapshot, &snapshots, &taken_here).await;
    let mut notes = Vec::new();
    if wanted.is_none() && snapshots.len() > 1 {
        notes.push(Text::from(match (is_from_here, newer) {
            (true, 0) => "This is the last snapshot.".to_owned(),
            (true, 1) => "This is the last snapshot that was taken here. There is 1 newer one.".to_owned(),
            (true, newer) => {
                format!("This is the last snapshot that was taken here. There are {newer} newer ones.")
            }
            (false, _) => format!(
                "This is the newest of {} snapshots. None was taken here; the bridge may take its own before changes.",
                snapshots.len()
            ),
        }));
    }
    if changed.is_empty() {
        notes.push(Text::from("I have no changes since then on record, so I can't show which values will change."));
    } else if changed.len() > MAX_VALUES {
        notes.push(Text::from(format!("{} more parameters change.", changed.len() - MAX_VALUES)));
    }
    let title = format!("Restore “{}” from its snapshot?", loaded.id);
    let mut card = Card {
        facts: vec![
            Fact::new("Simulation", Text::new().bold(&loaded.id)),
            Fact::new("Snapshot", Text::new().code(&snapshot.id)),
            Fact::new("Taken", taken),
        ],
        warnings: vec![Text::from("All parameters return to their values at that time. Later changes are lost.")],
        notes,
        ..Card::new(title, "Restore snapshot", format!("Restored {} from its snapshot.", loaded.id))
    };
    card.facts.extend(changed.iter().take(MAX_VALUES).map(|changed| {
        let [before, after] = [changed.before, changed.after].map(|value| quantity(value, changed.unit.as_deref()));
        Fact::change(&changed.path, before, after)
    }));
    let restore = Restore { simulation: loaded.id.clone(), snapshot: snapshot.id.clone() };
    let mut proposal = proposal(&loaded, restore_target(&loaded.id), restore, card);
    if !changed.is_empty() {
        let values = changed.iter().take(MAX_VALUES).map(|changed| (changed.path.clone(), json!(changed.before)));
        proposal.preconditions[VALUES] = values.collect();
    }
    busy::warn_of_run(deps, &loaded.id, &mut proposal).await;
    Ok(proposal)
}

async fn now(deps: &Deps, restore: Restore, record: &ActionRecord) -> Result<Value, Outcome> {
    let mut state = still_free(deps, record).await?;
    if let Some(shown) = record.preconditions[VALUES].as_object() {
        let mut now = Map::new();
        for path in shown.keys() {
            let found = deps.client.parameter(&restore.simulation, path).await;
            now.insert(path.clone(), json!(found.map_err(|error| unread(deps, record, &error))?.value));
        }
        state[VALUES] = Value::Object(now);
    }
    busy::no_new_run(deps, record, &mut state).await?;
    Ok(state)
}

fn changed_since(record: &ActionRecord, found: &Value) -> Vec<Fact> {
    let (mut shown, mut found) = ((*record.preconditions).clone(), found.clone());
    let (then, now) = (shown[VALUES].take(), found[VALUES].take());
    let changed = then.as_object().into_iter().flatten().filter(|(path, value)| now[path.as_str()] != **value);
    let words = |value: &Value| value.as_f64().map_or_else(|| "no value".to_owned(), |value| quantity(value, None));
    let values = changed.map(|(path, value)| Fact::change(path, words(value), words(&now[path.as_str()])));
    values.chain(differences(&shown, &found)).collect()
}

async fn send(row: &Action<Given, Restore>, restore: Restore, record: &ActionRecord) -> Performed {
    let call = |confirmed| async move {
        row.deps.client.restore(&restore.simulation, &restore.snapshot, &confirmed).await?;
        Ok(Outcome::done(record, json!(restore)))
    };
    sent(row, record, call).await
}
