//! `list_standing_approvals`: lists the changes that need no approval each time.

use std::sync::Arc;

use countersign_capabilities::{
    Allowances, ToolError, ToolInfo,
    rows::{Nothing, Read},
};
use countersign_core::clock::Timestamp;
use countersign_graph::action::{ErrorKind, Reader};
use serde_json::{Value, json};

use super::{
    grant::{Grant, GrantStatus},
    register::GrantRegister,
    replies,
};

/// The name of the tool.
pub const NAME: &str = "list_standing_approvals";

/// The maximum number of ended standing approvals that are shown.
const MAX_ENDED: usize = 5;

/// Returns the tool. It lists nothing for an unknown reader.
pub(super) fn tool(register: Arc<GrantRegister>) -> Read<Arc<GrantRegister>, Nothing> {
    let info = ToolInfo::new(
        NAME,
        "Lists the standing approvals: changes that need no approval each time, how much of it is used, and until when.",
    );
    Read {
        present: |_, _, answer| Some(replies::list_reply(answer)),
        ..Read::new(register, info, |register, _, reader| {
            Box::pin(async move {
                let Some(reader) = reader else { return Ok(json!({})) };
                let all = register.all().await.map_err(|error| {
                    tracing::warn!(
                        error = countersign_core::cause::chain(&error),
                        "Cannot read the standing approvals"
                    );
                    ToolError { kind: ErrorKind::Network, reply: replies::unavailable(), transient: true }
                })?;
                Ok(list_for(register.allowances(), &all, reader, register.now()))
            })
        })
    }
}

/// Returns the list for a reader. If others can read it too, grants in the reader's other conversations are only
/// counted.
fn list_for(allowances: &Allowances, all: &[Grant], reader: &Reader, now: Timestamp) -> Value {
    let is_open = |grant: &Grant| grant.status(now) == GrantStatus::Open;
    let (mut visible, mut elsewhere) = (Vec::new(), 0);
    for grant in all.iter().filter(|grant| grant.is_visible_to(reader)) {
        match reader.alone || grant.is_in_conversation_of(reader) {
            true => visible.push(grant),
            false => elsewhere += usize::from(is_open(grant)),
        }
    }
    let (open, over): (Vec<_>, Vec<_>) = visible.into_iter().partition(|grant| is_open(grant));
    let line = |grant: &&Grant| {
        json!({
            "id": grant.bounds.id,
            "allows": grant.bounds.words(allowances),
            "used": grant.used,
            "limit": grant.bounds.limit,
            "granted_by": grant.granted_by,
            "here": grant.is_in_conversation_of(reader),
            "standing": match grant.status(now) {
                GrantStatus::Open => "can be used",
                GrantStatus::UsedUp => "used up",
                GrantStatus::Expired => "expired",
                GrantStatus::Revoked => "revoked",
            },
        })
    };
    json!({
        "open": open.iter().map(line).collect::<Vec<_>>(),
        "over": over.iter().rev().take(MAX_ENDED).map(line).collect::<Vec<_>>(),
        "elsewhere": elsewhere,
    })
}

#[cfg(test)]
mod tests {
    use super::{
        super::grant::tests::{NOW, allowances, grant},
        *,
    };

    #[test]
    fn where_others_read_along_the_rest_is_only_counted() {
        let here = grant();
        let mut there = grant();
        (there.channel, there.bounds.id) = ("C_PRIVATE".into(), "sa-2".to_owned());
        let all = [here.clone(), there];
        let reader = |by: &str, alone| Reader {
            by: Some(by.into()),
            team: here.team.clone(),
            channel: here.channel.clone(),
            thread: None,
            alone,
            zone: None,
        };
        let ids = |reader: &Reader| {
            let visible = list_for(&allowances(), &all, reader, NOW);
            let ids: Vec<_> = visible["open"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect();
            (ids, visible["elsewhere"].clone())
        };
        assert_eq!(ids(&reader("cy", true)), (vec![json!("sa-1")], json!(0)), "none of theirs");
        assert_eq!(ids(&reader("ana", false)), (vec![json!("sa-1")], json!(1)), "others read along");
        assert_eq!(ids(&reader("ana", true)), (vec![json!("sa-1"), json!("sa-2")], json!(0)));
    }
}
