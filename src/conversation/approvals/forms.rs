//! The windows that cards open: the form, the full content, and the reason of a rejection.

use std::time::Duration;

use countersign_core::{
    cause,
    ids::{ApprovalId, CommitId, Slot, UserId},
    reply::{Card, Fact, Reply},
};
use countersign_graph::{
    action::{
        ActionKind, ActionRecord, ActionRequest, Approver, Edit, Evidence, Policy, Proposal, Replacement, Status,
    },
    engine::PolicyInput,
    request::Request,
    store::{ActionKey, Changes, Delivery, Destination, Error, Handling, Seq},
};
use countersign_slack::interaction::View;
use serde_json::Value;

use super::{
    MAX_WRITE_ATTEMPTS,
    clicks::{CardButton, Click, PageTurn},
    decide::DecisionMethod,
    follow_ups::request_message,
    inbox::{Approvals, InboxAnswer, lost_race},
    people::Right,
    policy::{self, Denial},
    replies,
};
use crate::{
    presentation::modals::{
        self,
        check::{self, Deadline, FormCheck},
        form::{self, Frame},
        show_all,
    },
    record::sight::may_see,
};

/// The time-out for loading a form's content.
const FORM_TIMEOUT: Duration = Duration::from_secs(8);

/// The outcomes of a submitted window.
#[derive(Debug)]
pub enum FormOutcome {
    /// The window closes, with this answer.
    Closed(InboxAnswer),
    /// The window stays open and shows this.
    Stays(Value),
}

/// The refusal to open or save a form.
struct FormRefusal {
    /// The reply to the person.
    reply: Reply,
    /// True if a retry in a moment may succeed.
    is_temporary: bool,
}

impl From<Reply> for FormRefusal {
    fn from(reply: Reply) -> Self {
        Self { reply, is_temporary: false }
    }
}

impl Approvals {
    /// Returns true if the person may see a request: they read its conversation, or [`may_see`] allows it. A press in its
    /// conversation counts as reading it, unless Slack says that the person is not a member.
    async fn may_see(&self, record: &ActionRecord, click: &Click) -> bool {
        let channel = &record.thread.channel;
        let is_here = click.channel.as_ref() == Some(channel);
        let reads = match channel.is_direct() {
            true => is_here,
            false if is_here => !self.groups.is_outside(channel, &click.by).await,
            false => self.groups.is_in_channel(channel, &click.by).await,
        };
        reads || may_see(record, &click.by, &self.groups.of(&click.by).await)
    }

    /// Shows everything that the digest covers, to everyone who may see the card.
    pub(super) async fn show_all(&self, record: &ActionRecord, click: &Click) -> Result<InboxAnswer, Error> {
        if !self.may_see(record, click).await {
            self.record_refusal(record, &click.by, "not in the channel").await?;
            return Ok(InboxAnswer::Refused(replies::not_in_channel()));
        }
        let resolved = self.names.of_approvers([record]).await;
        Ok(self.open_window(click, &show_all::draw(record, &resolved, 0)).await)
    }

    /// Turns a page of the window that shows everything.
    ///
    /// # Errors
    ///
    /// If the store isn't answering.
    pub async fn turn_page(&self, turned: &PageTurn) -> Result<InboxAnswer, Error> {
        let PageTurn { approval, by, view, page } = turned;
        if self.people.may(by, Right::Participate).await.is_ok()
            && let Some(record) = self.store.action(ActionKey::ByApproval(approval)).await?
        {
            let resolved = self.names.of_approvers([&record]).await;
            if let Err(error) = self.slack.update_view(view, None, &show_all::draw(&record, &resolved, *page)).await {
                tracing::warn!(error = cause::chain(&error), "A page was not turned");
            }
        }
        Ok(InboxAnswer::NoAnswer)
    }

    /// Asks a person who rejects a request for the reason, in a window. Nothing is decided before it is submitted.
    pub(super) async fn ask_for_reason(&self, record: &ActionRecord, click: &Click) -> InboxAnswer {
        self.open_window(click, &modals::reason(record)).await
    }

    /// Opens a window for the person who pressed a button.
    pub(super) async fn open_window(&self, click: &Click, view: &Value) -> InboxAnswer {
        match self.open_view(click, view).await {
            Some(_) => InboxAnswer::NoAnswer,
            None => InboxAnswer::Refused(replies::not_opened()),
        }
    }

    /// Opens a window, and returns Slack's id of it; `None` if that was not possible in time.
    async fn open_view(&self, click: &Click, view: &Value) -> Option<String> {
        let opened = self.slack.open_view(click.trigger_id.as_ref()?, view).await;
        opened.inspect_err(|error| tracing::warn!(error = cause::chain(error), "A window was not opened")).ok()
    }

    /// Returns the action whose key a window has.
    pub(super) async fn record_of(&self, view: &View) -> Result<Option<ActionRecord>, Error> {
        match ApprovalId::try_from(view.private_metadata.clone()) {
            Ok(approval) => self.store.action(ActionKey::ByApproval(&approval)).await,
            Err(_) => Ok(None),
        }
    }

    /// Handles the submitted window of a rejection. The person's right to it is checked again.
    ///
    /// # Errors
    ///
    /// If the store isn't answering. The window is then not acknowledged, and can be submitted again.
    pub async fn on_rejection(&self, view: &View, by: &UserId) -> Result<FormOutcome, Error> {
        let not_decided = |reply: &Reply| {
            let reply = self.names.known().in_reply(reply.clone()); // the answer must not wait for names
            let window = modals::message_window("Nothing was decided", &reply);
            Ok(FormOutcome::Stays(modals::replacement(&window)))
        };
        let Some(mut record) = self.record_of(view).await? else { return not_decided(&replies::not_known()) };
        let reason = view.values.get(modals::REASON).and_then(|values| values.first());
        for _ in 0..MAX_WRITE_ATTEMPTS {
            let is_repeat = record.status == Status::Rejected
                && record.decisions.last().is_some_and(|last| last.by.as_ref() == Some(by));
            let answer = match is_repeat {
                true => Ok(InboxAnswer::Counted(record.thread.clone())),
                false => {
                    let how = (CardButton::Reject, DecisionMethod::Window(reason.map(String::as_str)));
                    self.try_decide(&record, by, how, true, None::<Seq>).await?
                }
            };
            match answer {
                Ok(InboxAnswer::Refused(reply) | InboxAnswer::Redrawn { reply, .. }) => return not_decided(&reply),
                Ok(InboxAnswer::Unanswered { reply, .. }) => {
                    let wrong = [(modals::REASON.to_owned(), reply.words())].into();
                    return Ok(FormOutcome::Stays(modals::errors(&wrong)));
                }
                Ok(answer) => return Ok(FormOutcome::Closed(answer)),
                Err(current) => record = current,
            }
        }
        Err(lost_race(record))
    }

    /// Opens the form of a card. That of an open card is for those who may decide or who requested
    /// it, and that of a rejected or withdrawn one for everyone.
    pub(super) async fn open_form(
        &self,
        record: ActionRecord,
        click: &Click,
        callback: &'static str,
    ) -> Result<InboxAnswer, Error> {
        if callback == modals::EDIT && record.status.is_open() && self.clock.now() >= record.expires_at {
            return Ok(match self.close_late(&record, &click.by).await? {
                Ok(reply) => reply,
                Err(current) => InboxAnswer::Refused(self.too_late_reply(&current).await),
            });
        }
        let shown = record;
        let record = self.with_current_policy(shown.clone());
        let in_channel = self.is_in_channel(&record, click).await;
        if let Err(FormRefusal { reply, .. }) = self.may_open(&record, &click.by, in_channel, callback).await {
            let is_redrawn = shown.status.is_open() && matches!(self.update_policy(&shown).await?, Ok((_, true)));
            self.record_refusal(&record, &click.by, "not to be edited").await?;
            return Ok(match is_redrawn {
                true => InboxAnswer::Redrawn { thread: record.thread, reply },
                false => InboxAnswer::Refused(reply),
            });
        }
        // Slack accepts the window only within three seconds, so it is opened before its content is loaded.
        let title = if callback == modals::EDIT { "Edit the request" } else { "Change and ask again" };
        let Some(kind) = self.actions.get(record.name.as_str()) else {
            return Ok(InboxAnswer::Refused(replies::not_opened()));
        };
        let Some(opened) = self.open_view(click, &modals::loading(title)).await else {
            return Ok(InboxAnswer::Refused(replies::not_opened()));
        };
        // The choices come from the platform, which may be slow or away. The window then says so instead of staying
        // empty.
        let form = tokio::time::timeout(FORM_TIMEOUT, kind.form(&record.parameters)).await;
        let view = match form {
            Ok(Some(form)) => {
                let intro = replies::form_intro(&record, callback == modals::EDIT);
                let frame = Frame {
                    title,
                    submit: "Update request",
                    callback,
                    metadata: record.approval.as_str(),
                    intro: Some(&intro),
                };
                form::draw(&form, &frame)
            }
            _ => modals::message_window(title, &replies::no_form()),
        };
        if let Err(error) = self.slack.update_view(&opened, None, &view).await {
            tracing::warn!(error = cause::chain(&error), "A window was not filled");
        }
        Ok(InboxAnswer::NoAnswer)
    }

    /// Returns `Ok` if the form may be opened, or submitted.
    async fn may_open(
        &self,
        record: &ActionRecord,
        by: &UserId,
        in_channel: bool,
        callback: &str,
    ) -> Result<(), FormRefusal> {
        if callback == modals::CHANGE {
            if let Err(denial) = self.people.may(by, Right::Ask).await {
                return Err(FormRefusal { reply: denial.may_not_ask(), is_temporary: denial.is_unknown() });
            }
            return match record.status {
                Status::Rejected | Status::Cancelled => Ok(()),
                _ => Err(self.too_late_reply(record).await.into()),
            };
        }
        if !record.status.is_open() || self.clock.now() >= record.expires_at {
            return Err(self.too_late_reply(record).await.into());
        }
        if !record.proof.holds() {
            return Err(replies::not_what_was_shown(&record.proof).into()); // a new version would get a valid seal
        }
        let person = self.person(record, by, in_channel).await;
        policy::may_reject(record, by, &person).map_err(|why| FormRefusal {
            reply: replies::denied(record, by, in_channel, why),
            is_temporary: match why {
                Denial::GroupLookupFailed => true,
                Denial::Account(denial) => denial.is_unknown(),
                _ => false,
            },
        })
    }

    /// Handles a submitted form of a card. The person's right to it is checked again.
    ///
    /// # Errors
    ///
    /// If the store isn't answering. The form is then not acknowledged, and Slack delivers it
    /// again.
    pub async fn on_form(&self, view: &View, by: &UserId) -> Result<FormOutcome, Error> {
        let deadline = Deadline::from_now();
        let not_saved = |reply: &Reply| {
            Ok(FormOutcome::Stays(modals::replacement(&modals::message_window("Nothing was saved", reply))))
        };
        let Some(record) = self.record_of(view).await? else { return not_saved(&replies::not_known()) };
        let record = self.with_current_policy(record);
        if self.was_saved(&record, view).await? {
            return Ok(FormOutcome::Closed(InboxAnswer::Counted(record.thread))); // submitted twice
        }
        if let Err(FormRefusal { reply, is_temporary }) = self.may_open(&record, by, true, &view.callback_id).await {
            let reply = self.names.known().in_reply(reply); // the answer must not wait for names
            return match is_temporary {
                true => Ok(FormOutcome::Stays(check::at_first_field(view, reply.words()))),
                false => not_saved(&reply),
            };
        }
        let Some(kind) = self.actions.get(record.name.as_str()) else { return not_saved(&replies::no_form()) };
        let checking = Box::pin(check::check(kind.as_ref(), &record.parameters, view, deadline));
        let (parameters, proposal) = match checking.await {
            FormCheck::Valid(parameters, proposal) => (parameters, *proposal),
            FormCheck::Unchecked(_) => return Ok(FormOutcome::Stays(check::too_slow(view))),
            FormCheck::Invalid(stays) => return Ok(FormOutcome::Stays(stays)),
            FormCheck::NoForm => return not_saved(&replies::no_form()),
        };
        if view.callback_id == modals::CHANGE {
            let text = format!("ask again, changed: {}", proposal.card.title.trim_end_matches('?'));
            let request = ActionRequest { action: record.name.clone(), parameters };
            return self.ask_again(record, view, by, request, text).await.map(FormOutcome::Closed);
        }
        let irreversible = proposal.card.irreversible || kind.irreversible();
        let is_suggested = record.is_suggested();
        let input = PolicyInput { action: kind.name(), irreversible, scope: &proposal.scope, is_suggested };
        let policy = (self.policy_for)(&input);
        // Who edits a card may no longer approve it. Saved, such a card could only expire.
        if let Some(reply) = self.too_few_approvers(&record, &policy, by).await {
            return Ok(FormOutcome::Stays(check::at_first_field(view, reply.words())));
        }
        let edit = Edit {
            by: by.clone(),
            at: self.clock.now(),
            from: record.id.clone(),
            changed: differences(&record.card, &proposal.card),
            window: Some(view.id.clone()),
        };
        match self.replace(&record, kind.as_ref(), proposal, policy, edit).await? {
            Err(current) if !self.was_saved(&current, view).await? => not_saved(&self.too_late_reply(&current).await),
            _ => Ok(FormOutcome::Closed(InboxAnswer::Counted(record.thread))),
        }
    }

    /// Returns the reply if too few people would remain who may approve the new values: those who
    /// requested or edited the card may not approve it, or count as one. Returns `None` if others
    /// may exist, or the number is not known.
    async fn too_few_approvers(&self, record: &ActionRecord, policy: &Policy, by: &UserId) -> Option<Reply> {
        let mut named = Vec::new();
        for approver in policy.approvers.iter().chain(policy.escalation.iter().flat_map(|more| &more.approvers)) {
            match approver {
                Approver::Channel => return None,
                Approver::Requester => named.push(record.requested_by.clone()),
                Approver::User(user) => named.push(user.clone()),
                Approver::Group(group) => named.extend(self.groups.recent_members(group).await?),
            }
        }
        let mut authors = vec![record.requested_by.clone(), by.clone()];
        authors.extend(record.edits.iter().map(|edit| edit.by.clone()));
        let possible = policy::max_approvals(policy, &named, &authors);
        (!policy.approvers.is_empty() && possible < policy.needed as usize).then(|| replies::nobody_left(policy))
    }

    /// Returns true if this window's content was saved already, which means that it was submitted
    /// twice.
    async fn was_saved(&self, record: &ActionRecord, view: &View) -> Result<bool, Error> {
        let Some(replacement) = record.replaced_by.as_ref().filter(|newer| newer.edited) else { return Ok(false) };
        let newer = self.store.action(ActionKey::Of(&record.thread, &replacement.action)).await?;
        let edit = newer.as_ref().and_then(|newer| newer.edits.last());
        Ok(edit.is_some_and(|edit| edit.window.as_ref() == Some(&view.id)))
    }

    /// Delivers a request to the thread of a rejected or withdrawn card, once for each window.
    async fn ask_again(
        &self,
        record: ActionRecord,
        view: &View,
        by: &UserId,
        request: ActionRequest,
        text: String,
    ) -> Result<InboxAnswer, Error> {
        let thread = record.thread.clone();
        let message = request_message(&record, by, request, text);
        let to = Destination::mailbox(thread.clone(), true, message);
        self.store.ingest(&Delivery { to, dedup: vec![view.dedup()], at: self.clock.now() }, Handling::Later).await?;
        Ok(InboxAnswer::PassedOn(thread))
    }

    /// Replaces an open card with a new version. If another person has changed the card, `Err`
    /// contains its current record.
    async fn replace(
        &self,
        older: &ActionRecord,
        kind: &dyn ActionKind,
        proposal: Proposal,
        policy: Policy,
        edit: Edit,
    ) -> Result<Result<(), ActionRecord>, Error> {
        let (by, now) = (edit.by.clone(), edit.at);
        let request = Request {
            thread: &older.thread,
            run: older.run.clone(),
            kind,
            proposal,
            requested_by: older.requested_by.clone(),
            evidence: Evidence::clone(&older.evidence),
            at: now,
            policy,
            slot: Slot::new("card"),
            times: self.times,
            keys: &self.keys,
        };
        let mut newer = request.into_record();
        newer.slot = Slot::new(format!("card:{}", newer.id));
        // It is still the same request, with other values.
        newer.requested_at = older.requested_at;
        newer.origin = Some(older.question().clone());
        newer.edits.clone_from(&older.edits);
        newer.edits.push(edit);
        let to = Replacement { action: newer.id.clone(), slot: newer.slot.clone(), edited: true };
        let mut changes = Changes::new(CommitId::fresh(), older.thread.clone());
        newer.publish(&mut changes, &self.times);
        older
            .supersede_with(&mut changes, to, Some(by), now)
            .map_err(|error| Error::Corrupt { what: error.to_string() })?;
        match self.store.apply(&changes).await {
            Ok(()) => Ok(Ok(())),
            Err(Error::ActionMoved { current: Some(current), .. }) => Ok(Err(*current)),
            Err(error) => Err(error),
        }
    }
}

/// Returns the lines of the card that have changed.
fn differences(older: &Card, newer: &Card) -> Vec<Fact> {
    let was = |label: &str| older.facts.iter().find(|fact| fact.label == label);
    let is = |label: &str| newer.facts.iter().any(|fact| fact.label == label);
    let title = (older.title != newer.title).then(|| Fact {
        label: "Request".to_owned(),
        before: Some(older.title.as_str().into()),
        after: newer.title.as_str().into(),
    });
    let changed = newer.facts.iter().filter_map(|fact| match was(&fact.label) {
        Some(before) if before.after == fact.after => None,
        before => Some(Fact { before: before.map(|before| before.after.clone()), ..fact.clone() }),
    });
    let removed = older.facts.iter().filter(|fact| !is(&fact.label)).map(|fact| Fact {
        label: fact.label.clone(),
        before: Some(fact.after.clone()),
        after: "not any more".into(),
    });
    title.into_iter().chain(changed).chain(removed).collect()
}
