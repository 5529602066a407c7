//! What a decision changes. Pure: a record and a decision in, a write out.

use serde_json::json;

use crate::{
    graph::{
        action::{ActionRecord, Decision, IllegalMove, Status, Verdict},
        store::{ActionChange, AuditKind, Changes, Mail, Outbound, Outgoing, Seq, TimerChange},
    },
    ids::{CommitId, Nonce},
};

/// The write that makes `decision` count, and the record after it.
///
/// # Errors
///
/// [`IllegalMove`] if the action is not waiting for a decision.
pub fn decide(
    record: &ActionRecord,
    decision: Decision,
    desk: Option<Seq>,
) -> Result<(ActionRecord, Changes), IllegalMove> {
    let approvals = record.approved_by().len() + usize::from(decision.verdict == Verdict::Approved);
    let to = match &decision.verdict {
        Verdict::Approved if approvals < record.policy.needed as usize => Status::Pending,
        Verdict::Approved => Status::Approved,
        Verdict::Rejected { .. } => Status::Rejected,
        Verdict::Expired => Status::Expired,
        Verdict::Cancelled => Status::Cancelled,
        Verdict::Superseded => Status::Superseded,
    };
    let mut decided = record.moved(to)?;
    decided.decisions.push(decision.clone());

    let mut changes = Changes::new(CommitId::new(uuid::Uuid::new_v4().to_string()), record.thread.clone());
    changes.desk_acks.extend(desk);
    changes.audit.push(record.event(
        AuditKind::Decided,
        decision.at,
        decision.by.clone(),
        json!({ "verdict": decision.verdict, "status": to, "digest": record.digest }),
    ));
    changes.outbox.push(Outgoing {
        slot: Some(record.slot.clone()),
        nonce: Nonce::new(uuid::Uuid::new_v4().to_string()),
        progress: false,
        not_before: decision.at,
        body: Outbound::Card { card: decided.card.clone(), state: decided.card_state() },
    });
    if to != Status::Pending {
        changes.timers.push(TimerChange::Clear { key: record.expiry_timer() });
        changes.mail.push(Mail::Decided { action: record.id.clone(), approval: record.approval.clone(), decision });
    }
    changes.actions.push(ActionChange { expected: Some(record.revision), record: decided.clone() });
    Ok((decided, changes))
}
