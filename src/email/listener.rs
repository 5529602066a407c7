//! The reaction of the mail graph to events for which no node runs.

use countersign_core::{
    clock::Timestamp,
    ids::UserId,
    reply::{Reply, Text},
};
use countersign_graph::{
    action::{ActionRecord, Outcome, Status, Verdict},
    node::Listener,
    store::ActionFollowUp,
};

use super::{state::MailState, talk};

/// The listener of the mail graph.
pub(super) struct MailListener;

impl Listener<MailState> for MailListener {
    fn is_meant(&self, state: &MailState, by: &UserId, text: &str, _open: &[ActionRecord]) -> bool {
        // People talk to each other about a mail; only an answer to our question and the documented phrases are for us.
        state.asked_for_changes.as_ref() == Some(by) || {
            let sender = state.email.as_ref().and_then(|mail| mail.sender());
            talk::parse_about(sender, text).is_some()
        }
    }

    fn heard(
        &self,
        _state: &mut MailState,
        record: &ActionRecord,
        follow_up: ActionFollowUp,
        by: &UserId,
        _now: Timestamp,
    ) -> Option<Reply> {
        let act = || Text::new().bold(record.act());
        let outcome = || record.outcome.as_ref().map(Outcome::summary).cloned().unwrap_or_default();
        match follow_up {
            ActionFollowUp::Explained => {
                let reason = record.decisions.iter().rev().find_map(|decision| match &decision.verdict {
                    Verdict::Rejected { reason } => reason.as_deref(),
                    _ => None,
                });
                reason.map(|reason| {
                    Reply::text(Text::from("Reason given by ").person(by.clone()).plain(": “").plain(reason).plain("”"))
                })
            }
            ActionFollowUp::CheckAgain if record.status == Status::Unknown => {
                Some(Reply::text(act().plain(": the outcome still isn't known. ").join(outcome())))
            }
            ActionFollowUp::CheckAgain | ActionFollowUp::SaidDone | ActionFollowUp::Settled => {
                Some(Reply::text(act().plain(": ").join(outcome())))
            }
            ActionFollowUp::CameLate => {
                Some(Reply::text(act().plain(" was resolved in the meantime: ").join(outcome())))
            }
        }
    }

    /// A follow-up that settles an unknown outcome, or that explains a rejection, closes the mail.
    fn goes_on(
        &self,
        state: &mut MailState,
        record: &ActionRecord,
        follow_up: ActionFollowUp,
        _: Option<String>,
        now: Timestamp,
    ) -> bool {
        let is_settled =
            matches!(follow_up, ActionFollowUp::CheckAgain | ActionFollowUp::SaidDone | ActionFollowUp::Settled)
                && record.status != Status::Unknown;
        if is_settled {
            state.begin_settled(record, now);
        }
        is_settled
    }
}
