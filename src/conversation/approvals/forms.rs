//! Windows that cards open: their form, everything on them, the reason of a rejection.

use std::{sync::Arc, time::Duration};

use serde_json::Value;

use super::{
    desk::{Answer, Approvals},
    policy, replies,
};
use crate::{
    conversation::{
        entry::Click,
        modals::{
            self,
            form::{self, Frame},
            reason, show_all, wrong,
        },
    },
    graph::{
        action::{ActionKind, ActionRecord, Edit, Proposal, Replacement, Status, Wish},
        engine::Matter,
        request::Request,
        store::{Changes, Error},
    },
    ids::{ApprovalId, CommitId, Slot, UserId},
    reply::{Card, Fact, Reply},
    slack::interaction::View,
};

/// How long reading what a form shows may take.
const FILLING: Duration = Duration::from_secs(8);

/// How long checking what was entered may take: Slack wants an answer within three seconds, and some of them are gone.
const CHECKING: Duration = Duration::from_millis(1500);

/// What becomes of a window that was sent.
#[derive(Debug)]
pub enum Submitted {
    /// It closes, and this is what follows.
    Closed(Answer),
    /// It stays, and says this.
    Stays(Value),
}

impl Approvals {
    /// Shows everything that the digest covers. Anybody who sees the card may see it.
    pub(super) async fn show_all(&self, record: &ActionRecord, click: &Click) -> Result<Answer, Error> {
        let Some(trigger) = &click.trigger_id else { return Ok(Answer::Refused(replies::not_opened())) };
        Ok(match self.slack.open_view(trigger, &show_all::draw(record)).await {
            Ok(_) => Answer::Nothing,
            Err(error) => {
                tracing::warn!(error = %error, "A window was not opened");
                Answer::Refused(replies::not_opened())
            }
        })
    }

    /// Asks for the reason of a rejection that counts. If the window cannot be opened, the rejection stands without one.
    pub(super) fn ask_why(&self, record: &ActionRecord, click: &Click) {
        let Some(trigger) = click.trigger_id.clone().filter(|_| record.requested_by != click.by) else { return };
        let (slack, view) = (self.slack.clone(), reason::draw(record, &record.approval));
        tokio::spawn(async move {
            if let Err(error) = slack.open_view(&trigger, &view).await {
                tracing::debug!(error = %error, "The reason of a rejection was not asked for");
            }
        });
    }

    /// Opens the form of a card: of an open one for those who may decide or who asked, of a rejected one for anybody.
    pub(super) async fn open_form(
        &self,
        record: ActionRecord,
        click: &Click,
        callback: &'static str,
    ) -> Result<Answer, Error> {
        let record = self.as_of_now(record);
        let in_channel = click.channel.as_ref() == Some(&record.thread.channel);
        if let Err(refused) = self.may_open(&record, &click.by, in_channel, callback).await {
            self.refused(&record, &click.by, "not to be edited").await?;
            return Ok(Answer::Refused(refused));
        }
        let (Some(trigger), Some(kind)) = (&click.trigger_id, self.actions.get(record.name.as_str())) else {
            return Ok(Answer::Refused(replies::not_opened()));
        };
        let title = if callback == modals::EDIT { "Edit the request" } else { "Ask again, changed" };
        let opened = match self.slack.open_view(trigger, &modals::loading(title)).await {
            Ok(opened) => opened,
            Err(error) => {
                tracing::warn!(error = %error, "A window was not opened");
                return Ok(Answer::Refused(replies::not_opened()));
            }
        };
        let form = tokio::time::timeout(FILLING, kind.form(&record.parameters)).await;
        let view = match form {
            Ok(Some(form)) => {
                let intro = replies::form_intro(&record, callback == modals::EDIT);
                let frame =
                    Frame { title, submit: "Save", callback, metadata: record.approval.as_str(), intro: Some(&intro) };
                form::draw(&form, &frame)
            }
            _ => modals::saying(title, &replies::no_form()),
        };
        if let Err(error) = self.slack.update_view(&opened, None, &view).await {
            tracing::warn!(error = %error, "A window was not filled");
        }
        Ok(Answer::Nothing)
    }

    /// Whether the form may be opened, or sent.
    async fn may_open(
        &self,
        record: &ActionRecord,
        by: &UserId,
        in_channel: bool,
        callback: &str,
    ) -> Result<(), Reply> {
        let now = self.clock.now();
        if callback == modals::CHANGE {
            return match record.status {
                Status::Rejected => Ok(()),
                _ => Err(replies::already_decided(record, now)),
            };
        }
        if !record.status.is_open() || now >= record.expires_at {
            return Err(replies::already_decided(record, now));
        }
        let person = self.person(record, by, in_channel).await;
        policy::may_reject(record, by, &person).map_err(|why| replies::denied(record, by, why))
    }

    /// A form of a card was sent. Whoever had it open was allowed to; whether they still are is looked at again.
    ///
    /// # Errors
    ///
    /// If the store does not answer: nothing is acknowledged, and Slack sends it again.
    pub async fn on_form(&self, view: &View, by: &UserId) -> Result<Submitted, Error> {
        let record = match ApprovalId::try_from(view.private_metadata.clone()) {
            Ok(approval) => self.store.action_by_approval(&approval).await?,
            Err(_) => None,
        };
        let say = |reply: &Reply| Ok(Submitted::Stays(modals::instead(&modals::saying("Nothing was saved", reply))));
        let Some(record) = record.map(|record| self.as_of_now(record)) else { return say(&replies::not_known()) };
        if self.was_saved(&record, by).await? {
            return Ok(Submitted::Closed(Answer::Counted(record.thread))); // sent twice
        }
        if let Err(refused) = self.may_open(&record, by, true, &view.callback_id).await {
            return say(&refused);
        }
        let Some(kind) = self.actions.get(record.name.as_str()) else { return say(&replies::no_form()) };
        let checking = Box::pin(check(kind, &record.parameters, view));
        let (parameters, proposal) = match tokio::time::timeout(CHECKING, checking).await {
            Ok(Ok(checked)) => checked,
            Ok(Err(stays)) => return Ok(Submitted::Stays(stays)),
            Err(_) => {
                // What was entered stays: the window says it at a field.
                let slow = replies::platform_is_slow().words();
                let wrong = view.values.keys().take(1).map(|field| (field.clone(), slow.clone())).collect();
                return Ok(Submitted::Stays(modals::errors(&wrong)));
            }
        };
        if view.callback_id == modals::CHANGE {
            let text = format!("ask again, changed: {}", proposal.card.title.trim_end_matches('?'));
            let wish = Wish { action: record.name.clone(), parameters };
            return self.wish(&record, by, wish, text, None).await.map(Submitted::Closed);
        }
        match self.replace(&record, kind, proposal, by).await? {
            Ok(()) => Ok(Submitted::Closed(Answer::Counted(record.thread))),
            Err(moved_on) => say(&replies::already_decided(&moved_on, self.clock.now())),
        }
    }

    /// Whether this person's form has been saved already, so that this is the same form once more. A newer request of
    /// theirs that took the card's place is something else.
    async fn was_saved(&self, record: &ActionRecord, by: &UserId) -> Result<bool, Error> {
        let Some(replacement) = &record.replaced_by else { return Ok(false) };
        let newer = self.store.action(&record.thread, &replacement.action).await?;
        let edit = newer.as_ref().and_then(|newer| newer.edits.last());
        Ok(edit.is_some_and(|edit| edit.from == record.id && edit.by == *by))
    }

    /// Puts a new version in the place of an open card, or returns the record as somebody else left it.
    async fn replace(
        &self,
        older: &ActionRecord,
        kind: &Arc<dyn ActionKind>,
        proposal: Proposal,
        by: &UserId,
    ) -> Result<Result<(), ActionRecord>, Error> {
        let now = self.clock.now();
        let irreversible = proposal.card.irreversible || kind.irreversible();
        let policy = (self.policy_for)(&Matter { action: kind.name(), irreversible, scope: &proposal.scope });
        let changed = differences(&older.card, &proposal.card);
        let request = Request {
            thread: &older.thread,
            run: older.run.clone(),
            kind: kind.as_ref(),
            proposal,
            requested_by: older.requested_by.clone(),
            at: now,
            policy,
            slot: Slot::new("card"),
            times: self.times,
        };
        let mut newer = request.into_record();
        newer.slot = Slot::new(format!("card:{}", newer.id));
        newer.requested_at = older.requested_at;
        newer.origin = Some(older.question().clone());
        newer.edits.clone_from(&older.edits);
        newer.edits.push(Edit { by: by.clone(), at: now, from: older.id.clone(), changed });
        let to = Replacement { action: newer.id.clone(), slot: newer.slot.clone() };
        let mut changes = Changes::new(CommitId::fresh(), older.thread.clone());
        newer.put_out(&mut changes, &self.times);
        older
            .give_way(&mut changes, to, Some(by.clone()), now)
            .map_err(|error| Error::Corrupt { what: error.to_string() })?;
        match self.store.apply(&changes).await {
            Ok(()) => Ok(Ok(())),
            Err(Error::ActionMoved { current: Some(current), .. }) => Ok(Err(*current)),
            Err(error) => Err(error),
        }
    }
}

/// The parameters with what was entered, and what would be done with them; or what the window says instead.
pub async fn check(kind: &Arc<dyn ActionKind>, parameters: &Value, view: &View) -> Result<(Value, Proposal), Value> {
    let Some(form) = kind.form(parameters).await else {
        return Err(modals::instead(&modals::saying("Nothing was saved", &replies::no_form())));
    };
    let entered = form::read(&form, view);
    let filled = form.fill(parameters, &entered).map_err(|wrong| form::errors(&form, wrong))?;
    if form.changed(&entered).next().is_none() {
        return Err(form::errors(&form, [(String::new(), "Nothing is different yet.".to_owned())].into()));
    }
    match kind.prepare(&filled).await {
        Ok(proposal) => Ok((filled, proposal)),
        Err(error) => {
            let place = wrong::culprit(kind.as_ref(), parameters, &form, &entered).await;
            Err(form::errors(&form, wrong::by_field(error, place)))
        }
    }
}

/// The lines of a card that are not as they were.
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
    let gone = older.facts.iter().filter(|fact| !is(&fact.label)).map(|fact| Fact {
        label: fact.label.clone(),
        before: Some(fact.after.clone()),
        after: "not any more".into(),
    });
    title.into_iter().chain(changed).chain(gone).collect()
}
