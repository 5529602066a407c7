//! Handles typed answers: the ones that count for a card, and the replies to the others.

use countersign_assistant::{drops_any, is_no, says_forget, says_undo};
use countersign_graph::{
    action::{ActionRecord, Status},
    checkpoint::ReplySlots,
    conversing::Memory,
    store::{ActionFilter, AuditKind, Error, Seq},
};

use super::{
    MAX_WRITE_ATTEMPTS,
    clicks::{CardButton, TypedAnswer},
    consent::{self, UnseenReason},
    decide::DecisionMethod,
    inbox::{Approvals, InboxAnswer},
    people::Right,
    policy, replies,
    withdraw::{leave_to_buttons, open_cards, pass_on},
};
use crate::record::undelivered::slot_of_notice;

impl Approvals {
    /// Handles a typed yes, no or “never mind”. If a question is open, a no answers the question,
    /// which was asked last. A no with a reason counts only for a single card. “Never mind”
    /// withdraws the card of the person who requested it, if they have exactly one, and so does “undo
    /// that”, unless something was changed after the card. All other messages are passed to the assistant.
    ///
    /// After a no that leaves a card open, only its buttons decide: a later “yes” may be meant for anything.
    pub async fn on_typed(&self, typed: &TypedAnswer, seq: Seq) -> Result<InboxAnswer, Error> {
        let saved = self.store.load(&typed.thread).await?;
        if !typed.addressed && saved.is_none() {
            return Ok(InboxAnswer::NoAnswer); // two people talk about something else
        }
        let before = self.memories.read(saved);
        let open = open_cards(&*self.store, &typed.thread).await?;
        // Read before the decision, since that closes the card that the no may be about.
        let says_no = self.says_no(typed, &open, before.as_ref()).await?;
        let answer = match typed.meaning {
            None => None,
            Some(meaning) => self.decision_of(typed, meaning, &open, before.as_ref(), seq).await?,
        };
        match answer {
            // A decision that counted has closed the card. Any other no leaves one open, and a later bare “yes” once
            // approved it.
            None => self.pass_typed_on(typed, says_no, seq).await,
            Some(counted @ InboxAnswer::Counted(_)) => Ok(counted),
            Some(answer) => {
                if says_no {
                    leave_to_buttons(&*self.store, &typed.thread).await?;
                }
                Ok(answer)
            }
        }
    }

    /// Returns true if a message says no to the open cards of its thread. One that only begins so, as “no, I would wait”
    /// does, has to be said to the bot: people talk with each other as well.
    async fn says_no(
        &self,
        typed: &TypedAnswer,
        open: &[ActionRecord],
        before: Option<&Memory>,
    ) -> Result<bool, Error> {
        let Some(first) = open.first().filter(|_| typed.meaning != Some(CardButton::Approve)) else { return Ok(false) };
        let is_whole = typed.meaning.is_some() || is_no(&typed.text);
        let is_meant = typed.addressed || is_whole || self.answers_bot(typed, first, before).await?;
        Ok(is_meant && self.people.may(&typed.by, Right::Participate).await.is_ok())
    }

    /// Makes the decision that a typed answer means, or returns the reply to it; `None` if the message is for the
    /// assistant.
    async fn decision_of(
        &self,
        typed: &TypedAnswer,
        meaning: CardButton,
        open: &[ActionRecord],
        before: Option<&Memory>,
        seq: Seq,
    ) -> Result<Option<InboxAnswer>, Error> {
        let is_drafting = before.is_some_and(|before| before.is_drafting); // a no then drops the draft
        let is_choosing = before.is_some_and(|before| before.is_choosing); // a yes then answers the choice
        let means_answer = |before: &Memory| before.takes_forget && before.works_for.as_ref() == Some(&typed.by);
        if before.is_some_and(means_answer) && says_forget(&typed.text) {
            return Ok(None); // “forget it” is about the last answer, and about no card
        }
        let verb = consent::verb_of(&typed.text).filter(|_| meaning == CardButton::Approve);
        if verb.is_some_and(|verb| !open.iter().all(|record| consent::says_verb(record, verb))) {
            return Ok(None); // the button of this card says something else
        }
        if let Some(reason) = consent::reason_of(&typed.text).filter(|_| meaning == CardButton::Reject) {
            return self.on_typed_reason(typed, &reason, open, before, seq).await;
        }
        let drops_question = is_drafting || is_choosing && drops_any(&typed.text); // which was asked last
        // “Never mind” lets go of the person's own request, and of no other that happens to be open.
        let is_theirs = |record: &&ActionRecord| {
            record.requested_by == typed.by && !drops_question && consent::is_about(&typed.text, record)
        };
        let mut own = open.iter().filter(is_theirs);
        let only = own.next().filter(|_| own.next().is_none());
        let record = match open {
            [] => return Ok(None),
            _ if meaning == CardButton::Withdraw => match only {
                Some(only) if !(says_undo(&typed.text) && self.is_changed_since(only).await?) => only.clone(),
                _ => return Ok(None),
            },
            _ if meaning == CardButton::Reject && is_drafting => return Ok(None),
            _ if meaning == CardButton::Approve && is_choosing => return Ok(None),
            [one] => one.clone(),
            [first, ..] if !self.answers_bot(typed, first, before).await? => return Ok(Some(InboxAnswer::NoAnswer)),
            several => return Ok(Some(InboxAnswer::Refused(replies::which_card(several)))),
        };
        if meaning != CardButton::Withdraw && !self.answers_bot(typed, &record, before).await? {
            return self.refuse_unaddressed(typed, &record).await.map(Some);
        }
        // Who says yes must have had the chance to read the card as it is. A no can only reduce the changes.
        let unseen = match meaning {
            CardButton::Approve => self.unseen_reason(typed, &record).await?,
            _ => None,
        };
        let is_unsure = before.is_some_and(|before| before.is_unsure);
        // A list of refusals is never complete: a message that was not understood may have been one.
        let takes_yes = record.takes_typed_yes() && !is_unsure;
        if meaning == CardButton::Approve && unseen != Some(UnseenReason::NotShown) && !takes_yes {
            return self.refuse_typed(typed, &record).await.map(Some);
        }
        if let Some(unseen) = unseen {
            self.record_refusal(&record, &typed.by, unseen.word()).await?;
            return Ok(Some(InboxAnswer::Refused(replies::not_seen(&record, unseen))));
        }
        self.decide_typed(typed, meaning, None, record, seq).await.map(Some)
    }

    /// Returns true if a change of this thread was approved after the request for this one.
    async fn is_changed_since(&self, open: &ActionRecord) -> Result<bool, Error> {
        let statuses = [Status::Approved, Status::Intent, Status::Done, Status::Unknown];
        let filter = ActionFilter::of(&open.thread, &statuses, 20);
        let decided_at = |record: &ActionRecord| record.decisions.last().map(|decision| decision.at);
        Ok(self.store.actions(&filter).await?.iter().filter_map(decided_at).any(|at| at > open.requested_at))
    }

    /// Refuses a typed yes to a card that only its buttons decide.
    async fn refuse_typed(&self, typed: &TypedAnswer, record: &ActionRecord) -> Result<InboxAnswer, Error> {
        if let Err(denial) = self.people.may(&typed.by, Right::Decide).await {
            self.record_refusal(record, &typed.by, denial.word()).await?;
            return Ok(InboxAnswer::Refused(denial.may_not_decide()));
        }
        let person = self.person(record, &typed.by, true).await;
        if let Err(denial) = policy::may_approve(record, &typed.by, &person) {
            self.record_refusal(record, &typed.by, denial.word()).await?;
            return Ok(InboxAnswer::Refused(replies::denied(record, &typed.by, true, denial)));
        }
        let (why, reply) = match record.policy.typed {
            true => ("may be a no before", replies::after_a_no(record)),
            false => ("typed", replies::use_the_button(record)),
        };
        self.record_refusal(record, &typed.by, why).await?;
        Ok(InboxAnswer::Refused(reply))
    }

    /// Handles a typed no that says why. It counts for the only open card if the person may reject
    /// it; otherwise the message is passed to the assistant.
    async fn on_typed_reason(
        &self,
        typed: &TypedAnswer,
        reason: &str,
        open: &[ActionRecord],
        before: Option<&Memory>,
        seq: Seq,
    ) -> Result<Option<InboxAnswer>, Error> {
        let [record] = open else { return Ok(None) };
        let is_drafting = before.is_some_and(|before| before.is_drafting);
        let person = self.person(record, &typed.by, true).await;
        if is_drafting
            || policy::may_reject(record, &typed.by, &person).is_err()
            || !self.answers_bot(typed, record, before).await?
        {
            return Ok(None);
        }
        self.decide_typed(typed, CardButton::Reject, Some(reason), record.clone(), seq).await.map(Some)
    }

    /// Makes the decision of a typed answer.
    async fn decide_typed(
        &self,
        typed: &TypedAnswer,
        meaning: CardButton,
        reason: Option<&str>,
        mut record: ActionRecord,
        seq: Seq,
    ) -> Result<InboxAnswer, Error> {
        let how = DecisionMethod::Typed(&typed.text, reason);
        for _ in 0..MAX_WRITE_ATTEMPTS {
            if meaning == CardButton::Approve && record.status.is_open() && !record.takes_typed_yes() {
                return self.refuse_typed(typed, &record).await; // somebody said no a moment ago
            }
            match self.try_decide(&record, &typed.by, (meaning, how), true, seq).await? {
                Ok(answer) => return Ok(answer),
                Err(current) => record = current,
            }
        }
        Ok(InboxAnswer::Refused(self.too_late_reply(&record).await))
    }

    /// Refuses a yes or no that follows another person's message. The person gets only one reply
    /// for each card, since most such messages are meant for other people.
    async fn refuse_unaddressed(&self, typed: &TypedAnswer, record: &ActionRecord) -> Result<InboxAnswer, Error> {
        if consent::is_agreement(&typed.text) {
            return Ok(InboxAnswer::NoAnswer); // people agree with each other
        }
        let why = "said to somebody else";
        // The record says whether the person was told before. Nothing else remembers it across restarts.
        let audit = self.store.audit(&typed.thread).await?;
        let is_reported = audit.iter().map(|entry| &entry.event).any(|event| {
            event.kind == AuditKind::ClickRefused
                && event.action.as_ref() == Some(&record.id)
                && event.by.as_ref() == Some(&typed.by)
                && event.detail["why"] == why
        });
        if is_reported {
            return Ok(InboxAnswer::NoAnswer);
        }
        self.record_refusal(record, &typed.by, why).await?;
        Ok(InboxAnswer::Refused(match self.unseen_reason(typed, record).await? {
            Some(unseen @ UnseenReason::NotShown) => replies::not_seen(record, unseen),
            _ => replies::not_taken(record),
        }))
    }

    /// Returns the reason why the person who typed a yes cannot have seen the card; `None` if they
    /// could.
    async fn unseen_reason(&self, typed: &TypedAnswer, record: &ActionRecord) -> Result<Option<UnseenReason>, Error> {
        let posted = self.store.posted(&record.thread, &record.slot).await?;
        Ok(consent::unseen_reason(posted.as_ref(), &typed.ts, record))
    }

    /// Returns true if a typed yes or no answers the bot: it was addressed to the bot, or follows
    /// one of its messages.
    async fn answers_bot(
        &self,
        typed: &TypedAnswer,
        record: &ActionRecord,
        before: Option<&Memory>,
    ) -> Result<bool, Error> {
        if typed.addressed {
            return Ok(true);
        }
        let thread = &typed.thread;
        // A message of another person in between may be what the words answer, also one that no worker has read yet.
        let unread = self.store.messages(thread, 0, None).await?;
        let unread =
            unread.iter().filter_map(|message| message.message.said_at()).filter(|said| **said < typed.ts).max();
        let Some(said) = before.and_then(|before| before.said_at.as_ref()).max(unread) else { return Ok(true) };
        let mut slots = vec![record.slot.clone(), slot_of_notice(&record.card_message(self.clock.now()))];
        for reply_slots in before
            .map(|before| [before.reply_slots.clone(), ReplySlots::of(format!("turn:{}", before.turns))])
            .iter()
            .flatten()
        {
            slots.extend((0..=reply_slots.said).map(|said| ReplySlots { said, ..reply_slots.clone() }.slot()));
        }
        for slot in slots {
            let posted = self.store.posted(thread, &slot).await?;
            if posted.is_some_and(|posted| posted.ts >= *said && posted.ts < typed.ts) {
                return Ok(*said < typed.ts);
            }
        }
        Ok(false)
    }

    /// Passes a message that answers no card to the assistant. If it `says_no`, the cards that stay open are left to
    /// their buttons.
    async fn pass_typed_on(&self, typed: &TypedAnswer, says_no: bool, seq: Seq) -> Result<InboxAnswer, Error> {
        if says_no {
            leave_to_buttons(&*self.store, &typed.thread).await?;
        }
        let TypedAnswer { thread, by, text, ts, addressed, .. } = typed;
        pass_on(&*self.store, thread, (by, text, ts), *addressed, seq).await
    }
}
