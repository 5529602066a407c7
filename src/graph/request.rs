//! A request for a decision: the writes that put its card out, and that replace it.

use std::time::Duration;

use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, ApprovalId, Nonce, RunId, Slot, ThreadId, UserId},
    reply::{Reply, Text},
};
use serde_json::json;

use super::{
    action::{
        ActionKind, ActionRecord, Decision, Edit, IllegalMove, Policy, Proposal, Replacement, Status, Verdict,
        digest_of,
    },
    keyring::{Keyring, Proof},
    store::{ActionChange, AuditKind, Changes, Outbound, Outgoing, TimerChange},
};

/// The times of a card: until its end, and of the reminder.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// The time for which it is open.
    pub open_for: Duration,
    /// The time before the end at which people are reminded; zero: never. At most half of the time it is open.
    pub remind_before: Duration,
}

/// The contents of a new record, apart from fresh keys.
#[expect(missing_debug_implementations, reason = "a kind of action has none")]
pub struct Request<'a> {
    /// The thread it was asked for in.
    pub thread: &'a ThreadId,
    /// The run.
    pub run: RunId,
    /// The kind of change.
    pub kind: &'a dyn ActionKind,
    /// The exact change.
    pub proposal: Proposal,
    /// The person who asked.
    pub requested_by: UserId,
    /// The time of the request.
    pub at: Timestamp,
    /// The people who may decide.
    pub policy: Policy,
    /// The message its card will be on.
    pub slot: Slot,
    /// The times of its card.
    pub times: Times,
    /// The keys that its digest is made with.
    pub keys: &'a Keyring,
}

impl Request<'_> {
    /// Creates the record, waiting for a decision under a fresh key.
    pub fn into_record(self) -> ActionRecord {
        let Self { thread, run, kind, proposal, requested_by, at, policy, slot, times, keys } = self;
        let Proposal { parameters, preconditions, mut card, undo, scope } = proposal;
        card.irreversible |= kind.irreversible();
        card.editable = kind.is_editable(&parameters);
        let mut record = ActionRecord {
            format: ActionRecord::FORMAT,
            id: ActionId::fresh(),
            approval: ApprovalId::new(thread, rand::random()),
            thread: thread.clone(),
            run,
            name: kind.name().to_owned(),
            action_version: kind.version(),
            digest: digest_of(kind.name(), kind.version(), &parameters, &preconditions, &policy),
            keyed: None,
            seal: None,
            proof: Proof::Ours,
            parameters,
            preconditions,
            policy,
            status: Status::Pending,
            revision: 1,
            card,
            slot,
            requested_by,
            requested_at: at,
            expires_at: at + times.open_for,
            decisions: Vec::new(),
            intent_at: None,
            sends: 0,
            answers: Vec::new(),
            progress: None,
            progress_at: None,
            interrupted_at: None,
            waits: None,
            outcome: None,
            undo,
            notified: Vec::new(),
            scope,
            edits: Vec::new(),
            origin: None,
            escalated_at: None,
            replaced_by: None,
            cut_short: false,
            under: None,
            settled: None,
        };
        keys.sign(&mut record);
        if record.is_out_of_reach() {
            record.card.warnings.push(Text::from(
                "Another person has to approve this, and nobody else can read a direct message. Ask me in a channel.",
            ));
        }
        record
    }
}

impl ActionRecord {
    /// Puts the card out: the record, its timers, the audit entries, the message.
    pub fn publish(self, changes: &mut Changes, times: &Times) {
        let (asked_by, at) = match self.edits.last() {
            Some(Edit { by, at, .. }) => (by.clone(), *at),
            None => (self.requested_by.clone(), self.requested_at),
        };
        let timer = |key: String, due: Timestamp, kind: &str| TimerChange::Set {
            key,
            due,
            entry: json!({ "kind": kind, "approval": self.approval }),
        };
        changes.timers.push(timer(self.expiry_timer(), self.expires_at, "expire"));
        if self.policy.names_anybody() {
            changes.timers.push(timer(self.notification_timer(), at, "tell"));
        }
        let open_for = self.expires_at.since(at);
        let before = times.remind_before.min(open_for / 2);
        if !before.is_zero() {
            changes.timers.push(timer(self.reminder_timer(), at + (open_for - before), "remind"));
        }
        if let Some(escalation) = &self.policy.escalation {
            let due = self.requested_at + Duration::from_millis(escalation.after_ms);
            if due < self.expires_at {
                changes.timers.push(timer(self.escalation_timer(), due, "escalate"));
            }
        }
        let mut asked = json!({ "action": self.name, "title": self.card.title });
        let mut kind = AuditKind::Asked;
        if let Some(edit) = self.edits.last() {
            kind = AuditKind::Edited;
            asked["edited"] = json!(edit.changed);
            asked["from"] = json!(edit.from);
        }
        changes.audit.push(self.event(kind, at, Some(asked_by), asked));
        changes.audit.push(self.shown(at));
        changes.outbox.push(self.card_message(at));
        changes.actions.push(ActionChange { expected: None, record: self });
    }

    /// Withdraws the card, since another one replaces it. Returns the record as it is then.
    ///
    /// # Errors
    ///
    /// [`IllegalMove`] if it is no longer open.
    pub fn supersede_with(
        &self,
        changes: &mut Changes,
        to: Replacement,
        by: Option<UserId>,
        at: Timestamp,
    ) -> Result<Self, IllegalMove> {
        let mut older = self.moved(Status::Superseded)?;
        let decision = Decision { by, at, verdict: Verdict::Superseded };
        changes.audit.push(older.event(
            AuditKind::Decided,
            at,
            decision.by.clone(),
            json!({ "verdict": decision.verdict, "status": older.status, "digest": older.digest, "replaced_by": to.action }),
        ));
        older.decisions.push(decision);
        older.replaced_by = Some(to);
        changes.timers.extend(older.timers().map(|key| TimerChange::Clear { key }));
        changes.outbox.push(older.card_message(at));
        changes.outbox.extend(older.notices(at));
        changes.actions.push(ActionChange { expected: Some(self.revision), record: older.clone() });
        Ok(older)
    }

    /// Returns the messages to those who were notified directly, each saying how the request stands now.
    pub fn notices(&self, at: Timestamp) -> Vec<Outgoing> {
        let text = if self.status.is_open() {
            Text::new()
                .person(self.requested_by.clone())
                .plain(" asks you to decide: ")
                .bold(self.card.title.clone())
                .plain(" · open until ")
                .moment(self.expires_at)
        } else {
            Text::new().bold(self.act()).plain(" · ").join(self.decision_line())
        };
        let notice = |person: &UserId| Outgoing {
            slot: Some(Slot::new(format!("tell:{}:{person}", self.id))),
            nonce: Nonce::fresh(),
            progress: false,
            not_before: at,
            body: Outbound::Direct { to: person.clone(), card: self.slot.clone(), reply: Reply::text(text.clone()) },
        };
        self.notified.iter().map(notice).collect()
    }

    /// Returns an order to redraw the card from its record at the time of sending, for a caller that may know an older
    /// state than others do.
    pub fn redraw_order(&self, at: Timestamp) -> Outgoing {
        Outgoing {
            slot: Some(self.slot.clone()),
            nonce: Nonce::fresh(),
            progress: false,
            not_before: at,
            body: Outbound::Redraw { action: self.id.clone() },
        }
    }

    /// Returns the present card, to replace its message.
    pub fn card_message(&self, at: Timestamp) -> Outgoing {
        Outgoing {
            slot: Some(self.slot.clone()),
            nonce: Nonce::fresh(),
            progress: false,
            not_before: at,
            body: Outbound::Card { card: self.card.clone(), state: self.card_state() },
        }
    }
}

/// Creates a reply in the thread of a request, in a message of its own.
pub fn reply_in_thread(slot: impl Into<String>, at: Timestamp, reply: Reply) -> Outgoing {
    Outgoing {
        slot: Some(Slot::new(slot)),
        nonce: Nonce::fresh(),
        progress: false,
        not_before: at,
        body: Outbound::Reply { reply },
    }
}
