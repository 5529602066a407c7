//! The node that receives the end of an action: it reports it, labels the mail and remembers the answer.

use std::sync::Arc;

use async_trait::async_trait;
use countersign_core::{
    cause::chain,
    ids::UserId,
    reply::{Reply, Text},
};
use countersign_graph::{
    action::{ActionRecord, Outcome, Status, Verdict},
    node::{Context, Node, NodeError, Step},
    store::{AuditKind, Usage},
};
use countersign_mail::{Handled, Mail};
use serde_json::json;

use super::{
    super::{
        deps::Deps,
        drafts::{self, DiscardOrder},
        heading::{self, HeadingOrder},
        labels::{self, LabelOrder},
        register::{EarlierAnswer, MailStatus},
        replies, spam,
        state::{Cause, MailState},
    },
    generate::Generate,
    not_spam, note_step,
    review::{Review, needs_review},
    update_entry,
};

/// The last node of a mail.
pub(in super::super) struct Close(Arc<Deps>);

/// The end of an action.
struct Ended {
    is_spam: bool,
    /// Closed by something that happened elsewhere.
    is_obsolete: bool,
    status: Status,
    text: String,
    is_automatic: bool,
    summary: Text,
    by: Option<UserId>,
}

impl Ended {
    fn of(record: &ActionRecord) -> Self {
        let rejected_by = record.decisions.iter().rev().find_map(|decision| match &decision.verdict {
            Verdict::Rejected { .. } => decision.by.clone(),
            _ => None,
        });
        Self {
            is_spam: record.name == spam::NAME,
            is_obsolete: record.decisions.iter().any(|decision| matches!(decision.verdict, Verdict::Obsolete { .. })),
            status: record.status,
            text: record.parameters["text"].as_str().unwrap_or_default().to_owned(),
            is_automatic: record.under.is_some(),
            summary: record.outcome.as_ref().map(Outcome::summary).cloned().unwrap_or_default(),
            by: rejected_by,
        }
    }
}

impl Close {
    /// The name of the node.
    pub(in super::super) const NAME: &'static str = "close";

    /// Creates the node.
    pub(in super::super) fn new(deps: Arc<Deps>) -> Self {
        Self(deps)
    }

    /// Remembers an answer that was sent, for later mails. A failure is logged: the answer was sent. Returns the usage
    /// of models.
    async fn remember(&self, mail: &Mail, context: &Context, text: &str) -> Option<Usage> {
        if let Some(sender) = mail.sender() {
            let answer = EarlierAnswer {
                mail: mail.id.clone(),
                subject: mail.subject.clone(),
                at: context.now,
                text: text.to_owned(),
                thread: context.thread.clone(),
            };
            if let Err(error) = self.0.book.remember_answer(&sender.address, answer).await {
                tracing::warn!(error = chain(&error), "Cannot remember an answer");
            }
        }
        self.0.lookup.remember(mail, Some(text)).await.unwrap_or_else(|error| {
            tracing::warn!(error = chain(&error), "Cannot remember a mail for similar ones");
            None
        })
    }

    /// Returns the outcome in words if the decision was typed, since the card may then be far above. A failure is logged:
    /// the card tells the outcome as well.
    async fn told(&self, context: &Context) -> Option<Reply> {
        let record = context.ended.as_ref()?;
        let audit = self.0.book.store().audit(&record.thread).await;
        let audit = audit.inspect_err(|error| tracing::warn!(error = chain(error), "Cannot read the record")).ok()?;
        let is_typed = audit.iter().map(|entry| &entry.event).any(|event| {
            event.kind == AuditKind::Decided
                && event.action.as_ref() == Some(&record.id)
                && !event.detail["how"]["typed"].is_null()
        });
        let summary = record.outcome.as_ref().map(Outcome::summary)?;
        is_typed.then(|| replies::done(summary.clone(), record.approved_by()))
    }

    async fn sent(&self, mut state: MailState, context: &Context, ended: Ended, mail: &Mail) -> Step<MailState> {
        state.final_response = Some(ended.text.clone());
        state.is_answered = true;
        self.dispatched(&mut state, context, "sent", None);
        let usage = self.remember(mail, context, &ended.text).await;
        let (now, steps, is_automatic) = (context.now, state.steps.clone(), ended.is_automatic);
        update_entry(&self.0, &state, |entry| {
            entry.steps.clone_from(&steps);
            entry.is_automatic = is_automatic;
            if entry.status == MailStatus::Rejected {
                entry.move_to(MailStatus::Processing, now);
            }
            entry.move_to(MailStatus::Sent, now);
            true
        })
        .await;
        let label = LabelOrder { mail: mail.id.clone(), handled: Handled::Answered };
        // The card tells the outcome.
        let mut step = Step::end(state).post(labels::CHANNEL, label.into_body()).cost(usage);
        step.says.extend(self.told(context).await);
        step.post(heading::CHANNEL, HeadingOrder::body(&mail.id))
    }

    /// Forgets a mail that is spam, so that it is no example for others. A failure is logged: the mail is closed anyway.
    async fn forget(&self, mail: &Mail) {
        if let Err(error) = self.0.lookup.forget(&mail.id).await {
            tracing::warn!(error = chain(&error), "Cannot forget spam among the similar mails");
        }
    }

    /// Ends the run for a mail that a person does not want to answer.
    async fn rejected(&self, state: MailState, context: &Context, mail: &Mail, by: Option<&UserId>) -> Step<MailState> {
        let now = context.now;
        update_entry(&self.0, &state, |entry| {
            needs_review(entry, now);
            entry.move_to(MailStatus::Rejected, now)
        })
        .await;
        let label = LabelOrder { mail: mail.id.clone(), handled: Handled::Rejected };
        let reply = replies::rejected(by, self.0.writer.is_some());
        let step = Step::end(state).say(reply).post(labels::CHANNEL, label.into_body());
        step.post(heading::CHANNEL, HeadingOrder::body(&mail.id))
    }

    /// Ends the run for a mail that a person marked as spam. The action has set the label, and its card tells the outcome.
    async fn spam(&self, mut state: MailState, context: &Context, mail: &Mail) -> Step<MailState> {
        state.is_spam = true;
        let now = context.now;
        update_entry(&self.0, &state, |entry| {
            needs_review(entry, now);
            entry.close_as_spam(now)
        })
        .await;
        self.forget(mail).await;
        let mut step = Step::end(state);
        step.says.extend(self.told(context).await);
        step.post(heading::CHANNEL, HeadingOrder::body(&mail.id))
    }

    /// Goes on with a mail that is not marked as spam: its draft is shown again, unless it was answered. `is_judged` is
    /// true if a person said that it is no spam.
    async fn no_spam(&self, mut state: MailState, context: &Context, mail: &Mail, is_judged: bool) -> Step<MailState> {
        state.turn.cause = Cause::Mail;
        let next = match is_judged {
            true => not_spam(&self.0, &mut state, context.now).await,
            false => Review::NAME,
        };
        match state.is_answered {
            true => Step::end(state).post(heading::CHANNEL, HeadingOrder::body(&mail.id)),
            false => Step::go(state, next),
        }
    }

    async fn waits(&self, state: MailState, context: &Context, reply: Option<Reply>) -> Step<MailState> {
        let now = context.now;
        update_entry(&self.0, &state, |entry| {
            needs_review(entry, now);
            true
        })
        .await;
        let mut step = Step::end(state);
        step.says.extend(reply);
        step
    }

    fn dispatched(&self, state: &mut MailState, context: &Context, action: &str, error: Option<&str>) {
        let mut facts = json!({ "action": action });
        if let Some(error) = error {
            facts["error"] = json!(error);
        }
        metrics::counter!("countersign_mail_dispatched_total", "action" => action.to_owned()).increment(1);
        note_step(state, &self.0, context, "dispatch", facts);
    }
}

#[async_trait]
impl Node<MailState> for Close {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn targets(&self) -> &'static [&'static str] {
        &[Generate::NAME, Review::NAME]
    }

    async fn run(&self, mut state: MailState, context: &Context) -> Result<Step<MailState>, NodeError> {
        let ended = match (&context.ended, &state.turn.cause) {
            (Some(record), _) => Ended::of(record),
            (None, Cause::Settled { status, text, is_automatic, is_spam }) => Ended {
                is_obsolete: false,
                is_spam: *is_spam,
                status: *status,
                text: text.clone(),
                is_automatic: *is_automatic,
                summary: Text::new(),
                by: None,
            },
            (None, _) => return Ok(Step::end(state)),
        };
        let Some(mail) = state.email.clone() else {
            return Ok(Step::end(state).say(replies::no_mail()));
        };
        let is_settled = context.ended.is_none();
        Ok(match ended.status {
            Status::Done | Status::Settled if ended.is_spam => self.spam(state, context, &mail).await,
            Status::Done | Status::Settled => self.sent(state, context, ended, &mail).await,
            Status::Rejected | Status::Cancelled | Status::Expired if ended.is_spam && !ended.is_obsolete => {
                self.no_spam(state, context, &mail, ended.status == Status::Rejected && ended.by.is_some()).await
            }
            Status::Rejected => self.rejected(state, context, &mail, ended.by.as_ref()).await,
            Status::Failed => {
                let error = ended.summary.words();
                self.dispatched(&mut state, context, "send_failed", Some(&error));
                let discard = context.ended.as_ref().and_then(DiscardOrder::of).map(DiscardOrder::into_body);
                let step = if ended.is_automatic && !is_settled {
                    // Nobody has seen this draft, so a person decides now.
                    state.note_failure("dispatch", &error);
                    Step::go(state, Review::NAME)
                } else {
                    let reply = (!is_settled).then(|| replies::failed(ended.summary));
                    self.waits(state, context, reply).await
                };
                match discard {
                    Some(order) => step.post(drafts::CHANNEL, order),
                    None => step,
                }
            }
            Status::Unknown => {
                self.dispatched(&mut state, context, "send_unknown", None);
                let reply = Reply::text(ended.summary).hint("I won't send it again unless someone asks for it.");
                self.waits(state, context, Some(reply)).await
            }
            Status::Expired => {
                let reply = replies::still_waiting("No one decided in time.", self.0.writer.is_some());
                self.waits(state, context, Some(reply)).await
            }
            Status::Cancelled => {
                let reply = replies::still_waiting("The draft was withdrawn.", self.0.writer.is_some());
                self.waits(state, context, Some(reply)).await
            }
            Status::Superseded | Status::Proposed | Status::Pending | Status::Approved | Status::Intent => {
                Step::end(state)
            }
        })
    }
}
