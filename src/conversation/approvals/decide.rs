//! Computes the changes that record a decision. There are no side effects.

use std::time::Duration;

use countersign_graph::{
    action::{ActionRecord, Decision, IllegalMove, Lapse, Status, Verdict},
    store::{ActionChange, ActionFollowUp, AuditDraft, AuditKind, Changes, Seq, ThreadMessage, TimerChange},
};
use serde_json::json;

use super::{completing, follow_ups::follow_up};

/// The time after an approval before the card shows that the change is running.
const RUNNING_AFTER: Duration = Duration::from_millis(300);

/// The ways to make a decision.
#[derive(Clone, Copy, Debug)]
pub enum DecisionMethod<'a> {
    /// By a button of the card.
    Button,
    /// By the window that a button of the card opened, for this reason.
    Window(Option<&'a str>),
    /// By these words in the thread, for this reason.
    Typed(&'a str, Option<&'a str>),
}

impl DecisionMethod<'_> {
    /// Returns the reason that the person gave, without blanks around it; `None` if it is empty.
    fn reason(&self) -> Option<&str> {
        let (Self::Window(reason) | Self::Typed(_, reason)) = self else { return None };
        reason.map(str::trim).filter(|reason| !reason.is_empty())
    }
}

/// Returns the record after `decision`, and the write that stores it.
///
/// # Errors
///
/// [`IllegalMove`] if the action is not waiting for a decision.
pub fn decide(
    record: &ActionRecord,
    decision: Decision,
    how: Option<DecisionMethod<'_>>,
    inbox: Option<Seq>,
) -> Result<(ActionRecord, Changes), IllegalMove> {
    let approvals = record.approved_by().len() + usize::from(decision.verdict == Verdict::Approved);
    let to = match &decision.verdict {
        Verdict::Approved if approvals < record.policy.needed as usize => Status::Pending,
        Verdict::Approved => Status::Approved,
        Verdict::Rejected { .. } => Status::Rejected,
        Verdict::Expired => Status::Expired,
        Verdict::Cancelled | Verdict::Obsolete { .. } => Status::Cancelled,
        Verdict::Superseded => Status::Superseded,
    };
    let mut decided = record.moved(to)?;
    // The reason is written with the rejection: a person who closes the window after a failure in between could not give
    // it again.
    let reason = how.as_ref().filter(|_| to == Status::Rejected).and_then(DecisionMethod::reason);
    let mut explained = decision.clone();
    if let Verdict::Rejected { reason: slot } = &mut explained.verdict {
        *slot = reason.map(str::to_owned);
    }
    decided.decisions.push(explained);

    let mut changes = completing(&record.thread, inbox);
    let mut detail = json!({ "verdict": decision.verdict, "status": to, "digest": record.digest });
    match how {
        None => {}
        Some(DecisionMethod::Button | DecisionMethod::Window(_)) => detail["how"] = json!("button"),
        Some(DecisionMethod::Typed(words, _)) => {
            detail["how"] = json!({ "typed": AuditDraft::text_detail(words.trim()) })
        }
    }
    // An approval that no longer counts was noted when it was found. With each decision, only those since the last one
    // are new.
    let is_new = |lapse: &&Lapse| record.decisions.last().is_none_or(|last| lapse.at > last.at);
    for lapse in record.lapses.iter().filter(is_new) {
        changes.audit.push(record.event(
            AuditKind::Lapsed,
            lapse.at,
            Some(lapse.by.clone()),
            json!({ "why": lapse.why }),
        ));
    }
    let (at, by) = (decision.at, decision.by.clone());
    changes.audit.push(record.event(AuditKind::Decided, at, by.clone(), detail));
    let mut redrawn = decided.card_message(at);
    if to == Status::Approved {
        redrawn.not_before = at + RUNNING_AFTER; // the outcome usually comes first, and takes its place
    }
    changes.outbox.push(redrawn);
    if to != Status::Pending {
        changes.outbox.extend(decided.notices(at));
        changes.timers.extend(record.timers().map(|key| TimerChange::Clear { key }));
        changes.messages.push(ThreadMessage::Decided {
            action: record.id.clone(),
            approval: record.approval.clone(),
            decision,
        });
    }
    if let (Some(reason), Some(by)) = (reason, by) {
        changes.audit.push(decided.event(AuditKind::Reasoned, at, Some(by.clone()), json!({ "reason": reason })));
        changes.messages.push(follow_up(record, &by, ActionFollowUp::Explained));
    }
    changes.actions.push(ActionChange { expected: Some(record.revision), record: decided.clone() });
    Ok((decided, changes))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::approvals::policy::{Denial, Person, may_approve, may_reject};
    use countersign_core::{clock::Timestamp, ids::UserId};
    use countersign_graph::action::{Approver, Edit};

    /// Returns an open card that was requested by `ana`.
    fn open(needed: u32, own_request: bool) -> ActionRecord {
        let saved = include_str!("../../../tests/fixtures/shapes/action_record.json");
        let saved: Vec<ActionRecord> = serde_json::from_str(saved).unwrap();
        let mut record = saved[0].clone();
        record.status = Status::Pending;
        record.requested_by = "ana".into();
        record.decisions.clear();
        record.policy.approvers = vec![Approver::Channel];
        record.policy.needed = needed;
        record.policy.own_request = own_request;
        record
    }

    fn decision(by: &str, verdict: Verdict) -> Decision {
        Decision { by: Some(by.into()), at: Timestamp(1), verdict }
    }

    #[test]
    fn the_last_required_approval_approves_the_action() {
        let (counted, changes) = decide(&open(2, true), decision("ana", Verdict::Approved), None, None).unwrap();
        assert_eq!(
            (counted.status, changes.messages.len()),
            (Status::Pending, 0),
            "one of two: the thread gets no message"
        );
        let (approved, changes) = decide(&counted, decision("bo", Verdict::Approved), None, Some(7)).unwrap();
        assert_eq!((approved.status, changes.messages.len(), changes.inbox_acks), (Status::Approved, 1, vec![7]));
        assert_eq!(approved.approved_by(), ["ana".into(), "bo".into()] as [UserId; 2]);
        assert!(decide(&approved, decision("cy", Verdict::Approved), None, None).is_err(), "it is decided");
    }

    #[test]
    fn a_no_withdraws_ones_own_request_but_rejects_an_email() {
        let mut record = open(1, true);
        assert!(!record.is_judged_by(&"ana".into()) && record.is_judged_by(&"bo".into()));
        record.scope = Arc::new((*record.scope).clone().from_outside());
        assert!(record.is_judged_by(&"ana".into()), "the email asked, not the person who wanted another draft");
    }

    #[test]
    fn an_empty_list_of_approvers_means_nobody() {
        let mut record = open(1, true);
        record.policy.approvers.clear();
        let person = Person { in_channel: true, groups: vec!["S1".to_owned()], ..Person::default() };
        assert_eq!(may_approve(&record, &"bo".into(), &person), Err(Denial::NotAnApprover));
        assert_eq!(may_reject(&record, &"bo".into(), &person), Err(Denial::NotAnApprover));
        assert_eq!(may_reject(&record, &"ana".into(), &person), Ok(()), "the requester may always withdraw");
    }

    #[test]
    fn the_requester_and_an_editor_count_as_one() {
        let mut record = open(2, true);
        let edit =
            |by: &str| Edit { by: by.into(), at: Timestamp(1), from: "a0".into(), changed: Vec::new(), window: None };
        record.edits = vec![edit("bo")];
        let person = Person { in_channel: true, ..Person::default() };
        let (counted, _) = decide(&record, decision("ana", Verdict::Approved), None, None).unwrap();
        assert_eq!(may_approve(&counted, &"bo".into(), &person), Err(Denial::OwnRequest));
        assert_eq!(may_approve(&counted, &"cy".into(), &person), Ok(()));
    }

    #[test]
    fn a_group_counts_only_its_members() {
        let mut record = open(1, true);
        record.policy.approvers = vec![Approver::Group("S1".to_owned())];
        let member = Person { in_channel: false, groups: vec!["S1".to_owned()], ..Person::default() };
        assert_eq!(may_approve(&record, &"bo".into(), &member), Ok(()));
        assert_eq!(may_approve(&record, &"bo".into(), &Person::default()), Err(Denial::NotAnApprover));
    }

    proptest! {
        /// For any presses in any order: each person counts once, the required number of approvals
        /// approves the action, one rejection ends it, and the requester counts only if the policy
        /// allows it.
        #[test]
        fn a_crowd_cannot_outvote_the_policy(
            presses in prop::collection::vec((0..4usize, any::<bool>()), 1..12),
            needed in 1..4u32,
            own_request: bool,
        ) {
            let people = ["ana", "bo", "cy", "di"];
            let person = Person { in_channel: true, ..Person::default() };
            let mut record = open(needed, own_request);
            let mut approved = Vec::new();
            for (who, approves) in presses {
                let by: UserId = people[who].into();
                let allowed = match approves {
                    true => may_approve(&record, &by, &person),
                    false => may_reject(&record, &by, &person),
                };
                if record.status != Status::Pending || allowed.is_err() {
                    continue;
                }
                let verdict = if approves { Verdict::Approved } else { Verdict::Rejected { reason: None } };
                record = decide(&record, decision(people[who], verdict), None, None).unwrap().0;
                if approves {
                    prop_assert!(!approved.contains(&who), "counted twice");
                    approved.push(who);
                }
                let expected = match approves {
                    false => Status::Rejected,
                    true if approved.len() as u32 == needed => Status::Approved,
                    true => Status::Pending,
                };
                prop_assert_eq!(record.status, expected);
            }
            prop_assert!(own_request || !approved.contains(&0), "the requester may not approve");
        }
    }
}
