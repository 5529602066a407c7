//! Handles answers to questions in the middle of a change, which are given by the buttons of its
//! card and by a form.

use countersign_core::{ids::UserId, reply::Reply};
use countersign_graph::{
    action::{ActionRecord, Status, Wait},
    store::{Error, External, Handling, Ingested},
};
use countersign_slack::{interaction::View, mrkdwn::Mrkdwn};
use serde_json::{Value, json};

use super::{
    clicks::Click,
    forms::FormOutcome,
    inbox::{Approvals, InboxAnswer},
    policy, replies,
};
use crate::presentation::modals::{
    self,
    form::{self, Frame},
};

/// The title of the form.
const TITLE: &str = "Answer";

/// Returns the wait of a change if it has an open question.
fn open_wait(record: &ActionRecord) -> Option<&Wait> {
    record.waits.as_ref().filter(|wait| record.status == Status::Intent && wait.open_question().is_some())
}

impl Approvals {
    /// Opens the form of the question, or accepts the question immediately if it has no form.
    pub(super) async fn open_answer(&self, record: &ActionRecord, click: &Click) -> Result<InboxAnswer, Error> {
        let in_channel = self.is_in_channel(record, click).await;
        if let Err(refusal) = self.may_answer(record, &click.by, in_channel).await {
            return Ok(InboxAnswer::Refused(refusal));
        }
        let batches = self.actions.get(record.name.as_str()).and_then(|kind| kind.batches());
        let Some(form) = batches.and_then(|batches| batches.answer_form(record)) else {
            return self.answer(record, click, "accept").await;
        };
        let question =
            open_wait(record).and_then(Wait::open_question).map(|asked| asked.text.words()).unwrap_or_default();
        let intro = Mrkdwn::new(1500).plain(&question).finish();
        let frame = Frame {
            title: TITLE,
            submit: "Send answer",
            callback: modals::ANSWER,
            metadata: record.approval.as_str(),
            intro: Some(&intro),
        };
        Ok(self.open_window(click, &form::draw(&form, &frame)).await)
    }

    /// Gives an answer without content.
    pub(super) async fn answer(
        &self,
        record: &ActionRecord,
        click: &Click,
        action: &str,
    ) -> Result<InboxAnswer, Error> {
        let in_channel = self.is_in_channel(record, click).await;
        Ok(match self.may_answer(record, &click.by, in_channel).await {
            Err(refusal) => InboxAnswer::Refused(refusal),
            Ok(()) => match self.deliver(record, &click.by, action, None).await? {
                Ok(()) => InboxAnswer::Redrawn { thread: record.thread.clone(), reply: replies::answered(action) },
                Err(refusal) => InboxAnswer::Refused(refusal),
            },
        })
    }

    /// Handles the submitted form of a question.
    ///
    /// # Errors
    ///
    /// If the store isn't answering. The form is then not acknowledged, and Slack delivers it
    /// again.
    pub async fn on_answer(&self, view: &View, by: &UserId) -> Result<FormOutcome, Error> {
        let say = |reply: &Reply| {
            Ok(FormOutcome::Stays(modals::replacement(&modals::message_window("Nothing was sent", reply))))
        };
        let Some(record) = self.record_of(view).await? else { return say(&replies::not_known()) };
        if let Err(refusal) = self.may_answer(&record, by, true).await {
            return say(&refusal);
        }
        let batches = self.actions.get(record.name.as_str()).and_then(|kind| kind.batches());
        let Some((batches, form)) = batches.and_then(|batches| Some((batches, batches.answer_form(&record)?))) else {
            return say(&replies::no_form());
        };
        let content = match form.fill_all(&form::read(&form, view)) {
            Ok(content) => content,
            Err(wrong) => return Ok(FormOutcome::Stays(form::errors(&form, wrong))),
        };
        let wrong = batches.wrong_answer(&record, &content);
        if !wrong.is_empty() {
            return Ok(FormOutcome::Stays(form::errors(&form, wrong)));
        }
        match self.deliver(&record, by, "accept", Some(content)).await? {
            Ok(()) => Ok(FormOutcome::Closed(InboxAnswer::PassedOn(record.thread))),
            Err(refusal) => say(&refusal),
        }
    }

    /// Returns `Ok` if the person may answer: they may decide about the change, or requested it.
    async fn may_answer(&self, record: &ActionRecord, by: &UserId, in_channel: bool) -> Result<(), Reply> {
        if open_wait(record).is_none() {
            return Err(replies::no_longer_asked());
        }
        let person = self.person(record, by, in_channel).await;
        policy::may_reject(record, by, &person).map_err(|why| replies::denied(record, by, in_channel, why))
    }

    /// Delivers an answer to the thread exactly once.
    async fn deliver(
        &self,
        record: &ActionRecord,
        by: &UserId,
        action: &str,
        content: Option<Value>,
    ) -> Result<Result<(), Reply>, Error> {
        let Some(wait) = open_wait(record) else { return Ok(Err(replies::no_longer_asked())) };
        let body = json!({ "action": action, "content": content, "by": by });
        let Ok(event) = External::new(&wait.source, &wait.key, body) else {
            return Ok(Err(Reply::text("That answer is too long, so it wasn't sent.")));
        };
        // An event with a key of its own: of two answers, the first one counts.
        let delivery = event.deliver_to(record.thread.clone(), self.clock.now());
        Ok(match self.store.ingest(&delivery, Handling::Later).await?.0 {
            Ingested::Duplicate => Err(replies::no_longer_asked()),
            Ingested::New(_) | Ingested::Parked(_) | Ingested::Handled => Ok(()),
        })
    }
}
