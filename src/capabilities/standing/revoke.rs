//! `revoke_standing_approval`: ends a standing approval before its time.

use std::sync::Arc;

use countersign_capabilities::{
    parameters::{incomplete, non_blank, refused},
    rows::Change,
};
use countersign_core::reply::Text;
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, ErrorKind, Outcome, Performed, PrepareError, Proposal, Reader, Scope,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    grant::{Grant, GrantStatus},
    register::{GrantRegister, GrantRegisterError},
    replies,
};

/// The name of the action.
pub const NAME: &str = "revoke_standing_approval";

/// The parameters of the action.
#[derive(Deserialize, JsonSchema)]
struct RevokeParameters {
    /// The name, such as `sa-1a2b3c`, or the thing or context it applies to. Required.
    #[serde(default)]
    id: Option<String>,
}

/// The stored parameters.
#[derive(Serialize, Deserialize)]
struct Revocation {
    id: String,
}

/// Returns the action.
pub(super) fn action(register: Arc<GrantRegister>) -> Arc<dyn ActionKind> {
    let info =
        ActionInfo::new(NAME, "Ends a standing approval before its time, so that each change is asked about again.");
    // Ending the same standing approval again changes nothing.
    Arc::new(Change::<Arc<GrantRegister>, RevokeParameters, Revocation> {
        now: |row, revocation, _| Box::pin(now(&row.deps, revocation)),
        ..Change::new(
            register,
            info,
            |row, asked, reader| Box::pin(prepare(&row.deps, asked, reader)),
            |row, revocation, record| Box::pin(send(&row.deps, revocation, record)),
        )
    })
}

/// Proposes to end a standing approval, out of those that the reader may see. An unknown reader cannot end any.
async fn prepare(
    register: &GrantRegister,
    asked: RevokeParameters,
    reader: Option<&Reader>,
) -> Result<Proposal, PrepareError> {
    let unavailable = |_| PrepareError::Unavailable { error: ErrorKind::Network, reply: replies::unavailable() };
    let mut all = register.all().await.map_err(unavailable)?;
    all.retain(|grant| reader.is_some_and(|reader| grant.is_visible_to(reader)));
    let now = register.now();
    let open: Vec<&Grant> = all.iter().filter(|grant| grant.status(now) == GrantStatus::Open).collect();
    let ids = || open.iter().map(|grant| grant.bounds.id.clone()).collect::<Vec<_>>();
    let found = match (non_blank(asked.id.as_ref()), open.as_slice()) {
        (None, [only]) => only,
        (None, []) => return Err(refused(ErrorKind::NotFound, replies::list_reply(&json!({})))),
        (None, _) => return Err(incomplete("id", "Which standing approval?", ids())),
        (Some(asked), _) => {
            let is = |name: &str| name.trim().eq_ignore_ascii_case(asked);
            let of = |grant: &&&Grant| is(grant.bounds.within.name());
            let by_id = all.iter().find(|grant| is(&grant.bounds.id));
            let by_name: Vec<_> = open.iter().filter(of).copied().collect();
            match (by_id, by_name.as_slice()) {
                (Some(grant), _) => grant,
                (None, [only]) => only,
                (None, []) => {
                    return Err(refused(ErrorKind::NotFound, replies::unknown(asked, &ids())));
                }
                (None, several) => {
                    let ids = several.iter().map(|grant| grant.bounds.id.clone()).collect();
                    return Err(incomplete("id", "Which of them?", ids));
                }
            }
        }
    };
    if matches!(found.status(now), GrantStatus::Expired | GrantStatus::Revoked) {
        return Err(refused(ErrorKind::Execution, replies::already_ended(found, now)));
    }
    Ok(Proposal {
        preconditions: json!({ "revoked": false }),
        scope: Scope::of(format!("standing:{}", found.bounds.id)),
        ..Proposal::new(
            Revocation { id: found.bounds.id.clone() },
            replies::revoke_card(register.allowances(), found, now),
        )
    })
}

async fn now(register: &GrantRegister, Revocation { id }: Revocation) -> Result<Value, Outcome> {
    let unavailable = |_| failed(ErrorKind::Network, replies::unavailable().words());
    let all = register.all().await.map_err(unavailable)?;
    let grant = all.iter().find(|grant| grant.bounds.id == id);
    Ok(json!({ "revoked": grant.is_none_or(|grant| grant.revoked.is_some()) }))
}

async fn send(register: &GrantRegister, Revocation { id }: Revocation, record: &ActionRecord) -> Performed {
    let by = record.decisions.iter().rev().find_map(|decision| decision.by.clone());
    let by = by.unwrap_or_else(|| record.requested_by.clone());
    match register.revoke(&id, &by).await {
        Ok(_) => Performed::Ended(Outcome::done(record, json!({ "id": id }))),
        Err(GrantRegisterError::Unknown) => {
            let summary = "That standing approval no longer exists, so there's nothing to end.";
            Performed::Ended(failed(ErrorKind::NotFound, summary))
        }
        Err(error) => Performed::NoAnswer { detail: error.to_string() },
    }
}

/// Returns the outcome of a change that did not happen.
pub(super) fn failed(error: ErrorKind, summary: impl Into<Text>) -> Outcome {
    Outcome::Failed { error, summary: summary.into() }
}
