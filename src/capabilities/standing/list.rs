//! `list_standing_approvals`: what may be done without asking each time.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{
    book::Book,
    grant::{Grant, Standing},
    replies,
};
use crate::{
    capabilities::{Tool, ToolError},
    graph::action::ErrorKind,
};

/// Its name.
pub const NAME: &str = "list_standing_approvals";

/// How many of those that are over are shown.
const OVER: usize = 5;

/// `list_standing_approvals`.
#[derive(Debug)]
pub struct ListStandingApprovals(pub Arc<Book>);

#[async_trait]
impl Tool for ListStandingApprovals {
    fn name(&self) -> &'static str {
        NAME
    }

    fn description(&self) -> &'static str {
        "Lists the standing approvals: what may be done without asking each time, how much of it is used, and until when."
    }

    fn schema(&self) -> Value {
        json!({ "type": "object", "properties": {} })
    }

    async fn call(&self, _: &Value) -> Result<Value, ToolError> {
        let all = self.0.all().await.map_err(|error| {
            tracing::warn!(%error, "The standing approvals cannot be read");
            ToolError { kind: ErrorKind::Network, reply: replies::not_now(), transient: true }
        })?;
        let now = self.0.now();
        let (open, over): (Vec<_>, Vec<_>) = all.into_iter().partition(|grant| grant.standing(now) == Standing::Open);
        let line = |grant: &Grant| {
            json!({
                "id": grant.bounds.id,
                "allows": grant.bounds.words(),
                "used": grant.used,
                "limit": grant.bounds.limit,
                "granted_by": grant.granted_by,
                "channel": grant.channel,
                "standing": match grant.standing(now) {
                    Standing::Open => "can be used",
                    Standing::UsedUp => "used up",
                    Standing::Expired => "expired",
                    Standing::Revoked => "revoked",
                },
            })
        };
        let newest = over.iter().rev().take(OVER);
        Ok(json!({
            "open": open.iter().map(line).collect::<Vec<_>>(),
            "over": newest.map(line).collect::<Vec<_>>(),
        }))
    }
}
