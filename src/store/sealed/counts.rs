//! Counts what happens to cards and actions, when it is written.

use countersign_graph::{
    action::{ActionRecord, Approver, Policy, Status},
    store::{AuditKind, Changes},
};

/// Counts the events of a write that was stored. They are those of the record, of which each is written once.
pub(super) fn count(changes: &Changes) {
    for event in &changes.audit {
        let is_of = |record: &&ActionRecord| event.action.as_ref() == Some(&record.id);
        let Some(record) = changes.actions.iter().map(|change| &change.record).rfind(is_of) else {
            continue;
        };
        let action = || record.name.clone();
        let became = event.detail["status"].as_str().unwrap_or_default().to_owned();
        match event.kind {
            AuditKind::Shown => {
                metrics::counter!("countersign_cards_total", "action" => action(), "event" => "opened").increment(1);
            }
            // One of several approvals does not decide yet.
            AuditKind::Decided if became != Status::Pending.as_str() => {
                if [Status::Approved, Status::Rejected].iter().any(|status| became == status.as_str()) {
                    let took = event.at.since(record.requested_at).as_secs_f64();
                    let policy = policy_name(record.under.is_some(), &record.policy);
                    metrics::histogram!("countersign_decision_seconds", "action" => action(), "policy" => policy)
                        .record(took);
                }
                metrics::counter!("countersign_cards_total", "action" => action(), "event" => became).increment(1);
            }
            AuditKind::Outcome | AuditKind::Settled => {
                metrics::counter!("countersign_actions_total", "action" => action(), "outcome" => became).increment(1);
            }
            _ => {}
        }
    }
}

/// Names a policy by the number of approvals and by who may give them, of which there are only few.
fn policy_name(is_standing: bool, policy: &Policy) -> String {
    let named = |approver: &Approver| matches!(approver, Approver::User(_) | Approver::Group(_));
    match policy {
        _ if is_standing => "standing".to_owned(),
        Policy { approvers, also, needed, .. } if approvers.iter().chain(also.iter().flatten()).any(named) => {
            format!("{needed}_named")
        }
        Policy { needed, .. } => format!("{needed}_channel"),
    }
}
