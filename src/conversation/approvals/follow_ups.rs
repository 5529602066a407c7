//! Handles the follow-ups of a closed card: undo, ask again, check again, settle.

use countersign_core::{
    ids::UserId,
    reply::{FollowUp, Reply, Text},
};
use countersign_graph::{
    action::{ActionRecord, ActionRequest, ErrorKind, Outcome, Settlement, Status},
    store::{ActionChange, ActionFollowUp, AuditKind, Error, Seq, ThreadMessage},
};
use serde_json::{Value, json};

use super::{
    clicks::{CardButton, Click},
    completing,
    inbox::{Approvals, InboxAnswer},
    policy, replies,
};

impl Approvals {
    /// Requests the undo of an action, or the same action again. This is a request of the person
    /// who pressed the button, with a card of its own.
    pub(super) async fn request_follow_up(
        &self,
        record: &ActionRecord,
        click: &Click,
        seq: Seq,
    ) -> Result<InboxAnswer, Error> {
        // The change may have happened. Sending it again is for those who may say whether it did.
        if record.status == Status::Unknown
            && let Some(reply) = self.settlement_refusal(record, click).await?
        {
            return Ok(InboxAnswer::Refused(reply));
        }
        let (request, text) = match (click.button, record.possible_undo()) {
            (CardButton::Undo, Some(undo)) => (
                ActionRequest { action: undo.name.clone(), parameters: undo.parameters.clone() },
                format!("undo: {}", record.card.done.trim()),
            ),
            (CardButton::Again, _) if record.follow_ups().iter().any(|f| matches!(f, FollowUp::Again(_))) => (
                ActionRequest { action: record.name.clone(), parameters: Value::clone(&record.parameters) },
                format!("try again: {}", record.act()),
            ),
            _ => return Ok(InboxAnswer::Refused(self.too_late_reply(record).await)),
        };
        self.pass_to_thread(record, request_message(record, &click.by, request, text), seq).await
    }

    /// Has the assistant check again whether the change was made.
    pub(super) async fn check_again(&self, record: &ActionRecord, by: &UserId, seq: Seq) -> Result<InboxAnswer, Error> {
        if record.status != Status::Unknown {
            return Ok(InboxAnswer::Refused(self.too_late_reply(record).await));
        }
        self.pass_to_thread(record, follow_up(record, by, ActionFollowUp::CheckAgain), seq).await
    }

    /// Records that an approver, according to the current settings, says that the change was made.
    /// Before this counts, the assistant checks it.
    pub(super) async fn mark_done(&self, record: &ActionRecord, click: &Click, seq: Seq) -> Result<InboxAnswer, Error> {
        if let Some(reply) = self.settlement_refusal(record, click).await? {
            return Ok(InboxAnswer::Refused(reply));
        }
        self.pass_to_thread(record, follow_up(record, &click.by, ActionFollowUp::SaidDone), seq).await
    }

    /// Passes a message on to the thread of a record.
    async fn pass_to_thread(
        &self,
        record: &ActionRecord,
        message: ThreadMessage,
        seq: Seq,
    ) -> Result<InboxAnswer, Error> {
        let mut changes = completing(&record.thread, seq);
        changes.messages.push(message);
        self.store.apply(&changes).await?;
        Ok(InboxAnswer::PassedOn(record.thread.clone()))
    }

    /// Abandons an action. This is allowed for approvers, according to the current settings, and
    /// for the requester.
    pub(super) async fn abandon(&self, record: &ActionRecord, click: &Click, seq: Seq) -> Result<InboxAnswer, Error> {
        if let Some(reply) = self.settlement_refusal(record, click).await? {
            return Ok(InboxAnswer::Refused(reply));
        }
        let (by, now) = (click.by.clone(), self.clock.now());
        let summary = Text::new().person(by.clone()).plain(" abandoned it; it isn't known whether it happened.");
        // For the record it failed, so that it can be asked for again; the summary says that nobody knows.
        let outcome = Outcome::Failed { error: ErrorKind::Unknown, summary };
        let mut settled = record.moved(outcome.status()).map_err(|error| Error::Corrupt { what: error.to_string() })?;
        let mut changes = completing(&record.thread, seq);
        let detail = json!({ "status": settled.status, "summary": outcome.summary().words() });
        changes.audit.push(settled.event(AuditKind::Settled, now, Some(by.clone()), detail));
        settled.outcome = Some(outcome);
        settled.settled = Some(Settlement { by: by.clone(), at: now });
        changes.outbox.push(settled.card_message(now));
        changes.messages.push(follow_up(record, &by, ActionFollowUp::Settled));
        changes.actions.push(ActionChange { expected: Some(record.revision), record: settled });
        match self.store.apply(&changes).await {
            Ok(()) => Ok(InboxAnswer::Counted(record.thread.clone())),
            Err(Error::ActionMoved { current: Some(current), .. }) => {
                Ok(InboxAnswer::Refused(self.too_late_reply(&current).await))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the refusal if the person may not settle an unknown outcome or retry the action,
    /// according to the current settings.
    async fn settlement_refusal(&self, record: &ActionRecord, click: &Click) -> Result<Option<Reply>, Error> {
        if record.status != Status::Unknown {
            return Ok(Some(self.too_late_reply(record).await));
        }
        let in_channel = self.is_in_channel(record, click).await;
        // Nobody is bound by the approvers of the day on which the card was made.
        let record = self.with_current_policy(record.clone());
        let person = self.person(&record, &click.by, in_channel).await;
        let allowed = match click.button {
            CardButton::MarkDone => policy::may_settle(&record, &click.by, &person),
            _ => policy::may_reject(&record, &click.by, &person),
        };
        let Err(why) = allowed else { return Ok(None) };
        self.record_refusal(&record, &click.by, why.word()).await?;
        Ok(Some(replies::may_not_settle(&record, &click.by, in_channel, why)))
    }
}

/// Returns the message about a person's follow-up of an action.
pub(super) fn follow_up(record: &ActionRecord, by: &UserId, follow_up: ActionFollowUp) -> ThreadMessage {
    ThreadMessage::FollowUp { action: record.id.clone(), by: by.clone(), follow_up }
}

/// Returns a person's request as a message to the thread of a record.
pub(super) fn request_message(
    record: &ActionRecord,
    by: &UserId,
    request: ActionRequest,
    text: String,
) -> ThreadMessage {
    let ts = record.thread.root.clone();
    ThreadMessage::Said { by: by.clone(), text, ts, addressed: true, request: Some(request) }
}
