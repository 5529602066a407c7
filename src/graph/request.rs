//! Requests for a decision: the changes that publish a card, and those that replace it.

use std::time::Duration;

use countersign_core::{
    SmolStr,
    clock::Timestamp,
    ids::{ActionId, ApprovalId, Nonce, RunId, Slot, ThreadId, UserId},
    reply::{Reply, Text},
};
use serde_json::json;

use super::{
    action::{
        ActionKind, ActionRecord, Decision, Edit, Evidence, IllegalMove, NewRecord, Policy, Proposal, Replacement,
        Scope, Status, Verdict,
    },
    keyring::Keyring,
    store::{ActionChange, AuditDraft, AuditKind, Changes, Outbound, Outgoing, TimerChange},
};

/// The times of cards: how long they are open, and when people are reminded.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// The time for which the card is open.
    pub open_for: Duration,
    /// The time before its end at which people are reminded; zero for no reminder. At most half of
    /// `open_for` is used.
    pub remind_before: Duration,
    /// The times of cards for what came from outside, and waits whether someone looks at it or not.
    pub outside: OutsideTimes,
}

/// The times of cards for requests that came from outside, such as emails.
#[derive(Clone, Copy, Debug, Default)]
pub struct OutsideTimes {
    /// The time for which such a card is open; `None` until someone decides.
    pub open_for: Option<Duration>,
    /// The time between reminders of a card that stays open; zero for none.
    pub remind_every: Duration,
}

impl Times {
    /// Returns the end of a card that is shown at this time.
    fn end(&self, scope: &Scope, at: Timestamp) -> Timestamp {
        match (scope.ends, scope.is_from_outside, self.outside.open_for) {
            (Some(end), ..) => end,
            (None, true, None) => Timestamp::NEVER,
            (None, true, Some(open_for)) => at + open_for,
            (None, false, _) => at + self.open_for,
        }
    }
}

/// The contents of a new record, except for its newly created keys.
#[expect(missing_debug_implementations, reason = "a kind of action has none")]
pub struct Request<'a> {
    /// The thread in which the change was requested.
    pub thread: &'a ThreadId,
    /// The run.
    pub run: RunId,
    /// The kind of change.
    pub kind: &'a dyn ActionKind,
    /// The exact change.
    pub proposal: Proposal,
    /// The person who asked.
    pub requested_by: UserId,
    /// The words of a person that ask for the change.
    pub evidence: Evidence,
    /// The time of the request.
    pub at: Timestamp,
    /// The people who may decide.
    pub policy: Policy,
    /// The message that will show its card.
    pub slot: Slot,
    /// The times of its card.
    pub times: Times,
    /// The keys for its digest.
    pub keys: &'a Keyring,
}

impl Request<'_> {
    /// Creates the record, which waits for a decision under a new key.
    pub fn into_record(self) -> ActionRecord {
        let Self { thread, run, kind, proposal, requested_by, evidence, at, policy, slot, times, keys } = self;
        let Proposal { parameters, preconditions, mut card, undo, scope } = proposal;
        card.irreversible |= kind.irreversible();
        card.editable = kind.is_editable(&parameters);
        let new = NewRecord {
            id: ActionId::fresh(),
            approval: ApprovalId::new(thread, rand::random()),
            thread: thread.clone(),
            run,
            name: kind.name().to_owned(),
            action_version: kind.info().version,
            parameters,
            preconditions,
            policy,
            card,
            slot,
            requested_by,
            requested_at: at,
            expires_at: times.end(&scope, at),
            undo,
            scope,
            evidence,
        };
        let mut record = new.signed(keys);
        if record.is_out_of_reach() {
            record.card.warnings.push(Text::from(
                "Another person has to approve this, and no one else can read our direct messages. Ask me in a channel.",
            ));
        }
        record
    }
}

impl ActionRecord {
    /// Adds the card to `changes`: the record, its timers, the audit entries and the message.
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
        if !self.expires_at.is_never() {
            changes.timers.push(timer(self.expiry_timer(), self.expires_at, "expire"));
        }
        if self.policy.names_anybody() {
            changes.timers.push(timer(self.notification_timer(), at, "notify_approvers"));
        }
        let reminded_after = if self.expires_at.is_never() {
            Some(times.outside.remind_every).filter(|every| !every.is_zero())
        } else {
            let open_for = self.expires_at.since(at);
            let before = times.remind_before.min(open_for / 2);
            (!before.is_zero()).then(|| open_for - before)
        };
        changes.timers.extend(reminded_after.map(|after| timer(self.reminder_timer(), at + after, "remind")));
        if let Some(escalation) = &self.policy.escalation {
            let due = self.requested_at + Duration::from_millis(escalation.after_ms);
            if due < self.expires_at {
                changes.timers.push(timer(self.escalation_timer(), due, "escalate"));
            }
        }
        let mut asked = json!({ "action": self.name, "title": self.card.title });
        if self.is_suggested() {
            asked["suggested"] = true.into();
        }
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

    /// Withdraws the card because another one replaces it. Returns the updated record.
    ///
    /// # Errors
    ///
    /// [`IllegalMove`] if the card is no longer open.
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

    /// Closes the card because of something that happened elsewhere. Returns the updated record.
    ///
    /// # Errors
    ///
    /// [`IllegalMove`] if the card is no longer open.
    pub fn close_as_obsolete(&self, changes: &mut Changes, why: Text, at: Timestamp) -> Result<Self, IllegalMove> {
        let mut closed = self.moved(Status::Cancelled)?;
        let mut detail = AuditDraft::text_detail(&why.words());
        detail["verdict"] = json!("obsolete");
        (detail["status"], detail["digest"]) = (json!(closed.status), json!(closed.digest));
        changes.audit.push(closed.event(AuditKind::Decided, at, None, detail));
        closed.decisions.push(Decision { by: None, at, verdict: Verdict::Obsolete { why } });
        changes.timers.extend(closed.timers().map(|key| TimerChange::Clear { key }));
        changes.outbox.push(closed.card_message(at));
        changes.outbox.extend(closed.notices(at));
        changes.actions.push(ActionChange { expected: Some(self.revision), record: closed.clone() });
        Ok(closed)
    }

    /// Returns the messages to the people who were notified directly, with the current state of the
    /// request.
    pub fn notices(&self, at: Timestamp) -> Vec<Outgoing> {
        let text = if self.status.is_open() {
            let line = Text::new().person(self.requested_by.clone());
            let asks = match self.is_suggested() {
                true => Text::from("The assistant suggests this while answering ").join(line).plain(": "),
                false => line.plain(" asks for your decision: "),
            };
            asks.bold(self.card.title.clone()).join(self.end_in_words())
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

    /// Returns “ · expires …”; nothing for a card that stays open.
    pub fn end_in_words(&self) -> Text {
        match self.expires_at.is_never() {
            true => Text::new(),
            false => Text::from(" · expires ").moment(self.expires_at),
        }
    }

    /// Returns a message that redraws the card from the record as it is at the time of sending, for
    /// a caller whose copy of the record may be outdated.
    pub fn redraw_order(&self, at: Timestamp) -> Outgoing {
        Outgoing {
            slot: Some(self.slot.clone()),
            nonce: Nonce::fresh(),
            progress: false,
            not_before: at,
            body: Outbound::Redraw { action: self.id.clone() },
        }
    }

    /// Returns the card in its current state, to replace the posted message.
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

/// Creates a reply in the thread of a request, as a separate message.
pub fn reply_in_thread(slot: impl Into<SmolStr>, at: Timestamp, reply: Reply) -> Outgoing {
    Outgoing {
        slot: Some(Slot::new(slot)),
        nonce: Nonce::fresh(),
        progress: false,
        not_before: at,
        body: Outbound::Reply { reply },
    }
}
