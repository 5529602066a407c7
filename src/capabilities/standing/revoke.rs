//! `revoke_standing_approval`: ends a standing approval before its time.

use std::sync::Arc;

use async_trait::async_trait;
use countersign_capabilities::parameters::{self, missing, refused};
use countersign_core::reply::Text;
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, ErrorKind, Outcome, Performed, PrepareError, Proposal, Reader, Recovery,
    Refusal, Scope,
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

/// The action `revoke_standing_approval`.
#[derive(Debug)]
pub struct RevokeStanding(pub Arc<GrantRegister>);

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

#[async_trait]
impl ActionKind for RevokeStanding {
    fn info(&self) -> ActionInfo {
        ActionInfo::new(NAME, "Ends a standing approval before its time, so that each change is asked about again.")
    }

    fn schema(&self) -> Value {
        parameters::schema::<RevokeParameters>()
    }

    /// An unknown reader cannot end a standing approval.
    async fn prepare(&self, parameters: &Value, reader: Option<&Reader>) -> Result<Proposal, PrepareError> {
        self.propose(parameters, |grant| reader.is_some_and(|reader| grant.is_visible_to(reader))).await
    }

    async fn preconditions(&self, record: &ActionRecord) -> Result<Value, Outcome> {
        let id = record.parameters["id"].as_str().unwrap_or_default();
        let all = self.0.all().await.map_err(|_| store_unavailable())?;
        let grant = all.iter().find(|grant| grant.bounds.id == id);
        Ok(json!({ "revoked": grant.is_none_or(|grant| grant.revoked.is_some()) }))
    }

    async fn perform(&self, record: &ActionRecord) -> Performed {
        let id = record.parameters["id"].as_str().unwrap_or_default();
        let by = record.decisions.iter().rev().find_map(|decision| decision.by.clone());
        let by = by.unwrap_or_else(|| record.requested_by.clone());
        match self.0.revoke(id, &by).await {
            Ok(_) => Performed::Ended(Outcome::done(record, json!({ "id": id }))),
            Err(GrantRegisterError::Unknown) => Performed::Ended(Outcome::Failed {
                error: ErrorKind::NotFound,
                summary: Text::from("That standing approval no longer exists, so there's nothing to end."),
            }),
            Err(error) => Performed::NoAnswer { detail: error.to_string() },
        }
    }

    /// Ending the same standing approval again changes nothing.
    fn recovery(&self) -> Recovery {
        Recovery::Idempotent
    }
}

impl RevokeStanding {
    /// Proposes to end a standing approval, out of those for which `is_visible` returns true.
    async fn propose(
        &self,
        parameters: &Value,
        is_visible: impl Fn(&Grant) -> bool + Send,
    ) -> Result<Proposal, PrepareError> {
        let asked: RevokeParameters = parameters::parameters(parameters)?;
        let mut all = self
            .0
            .all()
            .await
            .map_err(|_| PrepareError::Unavailable { error: ErrorKind::Network, reply: replies::unavailable() })?;
        all.retain(is_visible);
        let now = self.0.now();
        let open: Vec<&Grant> = all.iter().filter(|grant| grant.status(now) == GrantStatus::Open).collect();
        let ids = || open.iter().map(|grant| grant.bounds.id.clone()).collect::<Vec<_>>();
        let asked = asked.id.as_deref().map(str::trim).filter(|asked| !asked.is_empty());
        let found = match (asked, open.as_slice()) {
            (None, [only]) => only,
            (None, []) => return Err(refused(ErrorKind::NotFound, replies::list_reply(&json!({})))),
            (None, _) => return Err(Refusal::Missing(vec![missing("id", "Which standing approval?", ids())]).into()),
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
                        return Err(Refusal::Missing(vec![missing("id", "Which of them?", ids)]).into());
                    }
                }
            }
        };
        if matches!(found.status(now), GrantStatus::Expired | GrantStatus::Revoked) {
            return Err(refused(ErrorKind::Execution, replies::already_ended(found, now)));
        }
        Ok(Proposal {
            parameters: json!(Revocation { id: found.bounds.id.clone() }),
            preconditions: json!({ "revoked": false }),
            card: replies::revoke_card(self.0.allowances(), found, now),
            undo: None,
            scope: Scope::of(format!("standing:{}", found.bounds.id)),
        })
    }
}

/// Returns the outcome for a store that does not answer: nothing was changed.
pub(super) fn store_unavailable() -> Outcome {
    Outcome::Failed { error: ErrorKind::Network, summary: Text::from(replies::unavailable().words()) }
}
