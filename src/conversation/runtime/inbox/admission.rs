//! Refuses requests of people who have no right to make them, before they are handled.
//!
//! Button presses and typed answers are not included; they are checked together with their card.

use countersign_core::{
    ids::{CommitId, ThreadId, UserId},
    reply::Reply,
};
use countersign_graph::store::{AuditDraft, AuditKind, Changes, ClaimedInteraction, Error};
use serde_json::json;

use super::{IDENTIFICATION_ATTEMPTS, Inbox, replies::log_failure, retry_later};
use crate::{
    approvals::people::{AccountDenial, Right},
    commands::in_thread::ThreadCommand,
    presentation::modals,
    runtime::interaction::Interaction,
};

/// A request: the person, the required right, and the thread that it is about.
struct AccessRequest<'a> {
    by: &'a UserId,
    right: Right,
    thread: Option<&'a ThreadId>,
}

/// Returns the request of an interaction; `None` for timers, and for interactions that are checked
/// together with their card.
fn access_request_of(interaction: &Interaction) -> Option<AccessRequest<'_>> {
    let (by, right, thread) = match interaction {
        // Only the person whose request the thread works on is answered.
        Interaction::ThreadCommand(request) if request.overheard => return None,
        Interaction::ThreadCommand(request) if request.command == ThreadCommand::Cancel => {
            (&request.by, Right::Decide, Some(&request.thread))
        }
        Interaction::ThreadCommand(request) => (&request.by, Right::Ask, Some(&request.thread)),
        // Otherwise the thread decides whether it is for the bot, and the files are read only if it is.
        Interaction::MessageWithFiles(message) if message.addressed => (&message.by, Right::Ask, Some(&message.thread)),
        Interaction::Ask(shortcut) | Interaction::Export(shortcut) => {
            (&shortcut.by, Right::Ask, Some(&shortcut.thread))
        }
        Interaction::Question(question) => (&question.by, Right::Ask, Some(&question.thread)),
        Interaction::Choice(choice) => (&choice.by, Right::Ask, Some(&choice.thread)),
        Interaction::New { by, .. } => (by, Right::Ask, None),
        Interaction::Creation(request) => (&request.by, Right::Ask, None),
        Interaction::Command(command) => (&command.by, Right::Ask, None),
        Interaction::Notebook { thread, by, .. } => (by, Right::Ask, Some(thread)),
        Interaction::SendAgain(request) => (&request.by, Right::Ask, None),
        Interaction::Stop(stop) => (&stop.by, Right::Participate, Some(&stop.thread)),
        Interaction::Rating(rating) => (&rating.by, Right::Participate, Some(&rating.thread)),
        Interaction::Click(_)
        | Interaction::PageTurn(_)
        | Interaction::MessageWithFiles(_)
        | Interaction::ChangedMessage(_)
        | Interaction::TypedAnswer(_)
        | Interaction::Reason(_)
        | Interaction::Expire { .. }
        | Interaction::Remind { .. }
        | Interaction::Escalate { .. }
        | Interaction::NotifyApprovers { .. }
        | Interaction::Overdue { .. }
        | Interaction::PossibleDuplicate(_)
        | Interaction::Home { .. }
        | Interaction::Prompts { .. } => return None,
    };
    Some(AccessRequest { by, right, thread })
}

/// Returns true if the interaction was not addressed to the bot.
fn is_unaddressed(interaction: &Interaction) -> bool {
    match interaction {
        Interaction::Stop(stop) => !stop.addressed,
        Interaction::Notebook { addressed, .. } => !addressed,
        _ => false,
    }
}

impl Inbox {
    /// Returns true if the person was refused. They then get a reply, and the refusal is recorded
    /// in the thread if the bot takes part in it.
    pub(super) async fn refuse_unauthorized(
        &self,
        claimed: &ClaimedInteraction,
        interaction: &Interaction,
    ) -> Result<bool, Error> {
        let deps = &self.0;
        let Some(AccessRequest { by, right, thread }) = access_request_of(interaction) else { return Ok(false) };
        if is_unaddressed(interaction)
            && let Some(thread) = thread
            && deps.store.load(thread).await?.is_none()
        {
            return Ok(false); // a conversation between people, without the bot
        }
        let Err(denial) = deps.people.may(by, right).await else { return Ok(false) };
        // A window must be opened within three seconds. Everything else can wait for Slack's answer.
        let waits = !matches!(interaction, Interaction::New { trigger_id: Some(_), .. });
        if denial == AccountDenial::Unanswered && waits && claimed.attempts < IDENTIFICATION_ATTEMPTS {
            return Err(retry_later("Slack didn't identify the user"));
        }
        self.reply_to_refused(interaction, by, &refusal_reply(denial, right)).await;
        match thread {
            Some(thread) if deps.store.load(thread).await?.is_some() => {
                let detail = json!({ "why": denial.word(), "asked": right == Right::Ask });
                let mut changes = Changes::new(CommitId::fresh(), thread.clone());
                let at = deps.clock.now();
                changes.audit.push(AuditDraft::new(AuditKind::ClickRefused, at, Some(by.clone()), detail));
                changes.inbox_acks.push(claimed.seq);
                deps.store.apply(&changes).await?;
            }
            _ => deps.store.finish_interaction(claimed.partition, claimed.seq).await?,
        }
        Ok(true)
    }

    /// Replies privately to a person, in the place of their request.
    async fn reply_to_refused(&self, interaction: &Interaction, by: &UserId, reply: &Reply) {
        let deps = &self.0;
        let (url, thread) = match interaction {
            Interaction::Command(command) => (Some(&command.response_url), None),
            Interaction::Ask(shortcut) | Interaction::Export(shortcut) => {
                (shortcut.response_url.as_ref(), Some(&shortcut.thread))
            }
            Interaction::Question(question) => (question.response_url.as_ref(), Some(&question.thread)),
            Interaction::Rating(rating) => (rating.response_url.as_ref(), Some(&rating.thread)),
            Interaction::ThreadCommand(request) => (None, Some(&request.thread)),
            Interaction::MessageWithFiles(message) => (None, Some(&message.thread)),
            Interaction::Choice(choice) => (None, Some(&choice.thread)),
            Interaction::Notebook { thread, .. } => (None, Some(thread)),
            Interaction::SendAgain(request) => {
                self.reply_privately(by, request.response_url.as_deref(), request.place(), reply).await;
                return;
            }
            Interaction::Stop(stop) => (None, Some(&stop.thread)),
            Interaction::New { trigger_id: Some(trigger), .. } => {
                let window = modals::message_window("Nothing was done", reply);
                log_failure(deps.slack.open_view(trigger, &window).await.map(drop));
                return;
            }
            Interaction::Creation(request) => {
                match (&request.channel, deps.slack.open_direct(by).await) {
                    (Some(channel), _) => drop(self.post_privately(by, channel, None, reply).await),
                    (None, Ok(channel)) => drop(self.post_privately(by, &channel, None, reply).await),
                    (None, Err(error)) => drop(log_failure(Err(error))),
                }
                return;
            }
            _ => return,
        };
        let place = thread.map(|thread| (&thread.channel, Some(&thread.root)));
        self.reply_privately(by, url.map(String::as_str), place, reply).await;
    }
}

fn refusal_reply(denial: AccountDenial, right: Right) -> Reply {
    match right {
        Right::Ask => denial.may_not_ask(),
        Right::Decide | Right::Participate => denial.may_not_decide(),
    }
}
