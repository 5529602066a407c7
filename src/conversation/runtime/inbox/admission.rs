//! Refuses requests of people who have no right to make them, before they are handled.
//!
//! Button presses and typed answers are not included; they are checked together with their card.

use countersign_core::{ids::UserId, reply::Reply};
use countersign_graph::store::{AuditDraft, AuditKind, ClaimedInteraction, Error, Settlement};
use serde_json::json;

use super::{IDENTIFICATION_ATTEMPTS, Inbox, replies::log_failure, retry_later};
use crate::{
    approvals::{
        completing,
        people::{AccountDenial, Right},
    },
    commands::in_thread::ThreadCommand,
    presentation::modals,
    runtime::interaction::Interaction,
    surfaces::creation::CreationRequest,
};

/// Returns the right that an interaction requires; `None` for timers, and for interactions that are checked together with
/// their card.
fn required_right(interaction: &Interaction) -> Option<Right> {
    match interaction {
        // Only the person whose request the thread works on is answered.
        Interaction::ThreadCommand(request) if request.overheard => None,
        Interaction::ThreadCommand(request) if request.command == ThreadCommand::Cancel => Some(Right::Decide),
        // Otherwise the thread decides whether it is for the bot, and the files are read only if it is.
        Interaction::MessageWithFiles(message) => message.addressed.then_some(Right::Ask),
        Interaction::ThreadCommand(_)
        | Interaction::Ask(_)
        | Interaction::Export(_)
        | Interaction::Question(_)
        | Interaction::Choice(_)
        | Interaction::New { .. }
        | Interaction::Creation(_)
        | Interaction::Command(_)
        | Interaction::Notebook { .. }
        | Interaction::SendAgain(_) => Some(Right::Ask),
        Interaction::Stop(_) | Interaction::Rating(_) => Some(Right::Participate),
        Interaction::Click(_)
        | Interaction::PageTurn(_)
        | Interaction::ChangedMessage(_)
        | Interaction::TypedAnswer(_)
        | Interaction::Expire { .. }
        | Interaction::Remind { .. }
        | Interaction::Escalate { .. }
        | Interaction::NotifyApprovers { .. }
        | Interaction::Overdue { .. }
        | Interaction::PossibleDuplicate(_)
        | Interaction::Home { .. }
        | Interaction::Prompts { .. } => None,
    }
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
        let (Some(right), Some(by)) = (required_right(interaction), interaction.by()) else { return Ok(false) };
        let thread = interaction.thread();
        if is_unaddressed(interaction)
            && let Some(thread) = thread
            && deps.store.load(thread).await?.is_none()
        {
            return Ok(false); // a conversation between people, without the bot
        }
        let Err(denial) = deps.approvals.people.may(by, right).await else { return Ok(false) };
        // A window must be opened within three seconds. Everything else can wait for Slack's answer.
        let waits = !matches!(interaction, Interaction::New { trigger_id: Some(_), .. });
        if denial == AccountDenial::Unanswered && waits && claimed.attempts < IDENTIFICATION_ATTEMPTS {
            return Err(retry_later("Slack didn't identify the user"));
        }
        self.reply_to_refused(interaction, by, &denial.refusal(right)).await;
        match thread {
            Some(thread) if deps.store.load(thread).await?.is_some() => {
                let detail = json!({ "why": denial.word(), "asked": right == Right::Ask });
                let mut changes = completing(thread, claimed.seq);
                let at = deps.clock.now();
                changes.audit.push(AuditDraft::new(AuditKind::ClickRefused, at, Some(by.clone()), detail));
                deps.store.apply(&changes).await?;
            }
            _ => deps.store.settle_interaction(claimed, Settlement::Done).await?,
        }
        Ok(true)
    }

    /// Replies privately to a person, in the place of their request.
    async fn reply_to_refused(&self, interaction: &Interaction, by: &UserId, reply: &Reply) {
        let slack = &self.0.slack;
        match interaction {
            Interaction::New { trigger_id: Some(trigger), .. } => {
                let window = modals::message_window("Nothing was done", reply);
                log_failure(slack.open_view(trigger, &window).await.map(drop));
            }
            Interaction::Creation(CreationRequest { channel: Some(channel), .. }) => {
                self.post_privately(by, channel, None, reply).await;
            }
            Interaction::Creation(_) => match slack.open_direct(by).await {
                Ok(channel) => drop(self.post_privately(by, &channel, None, reply).await),
                Err(error) => drop(log_failure(Err(error))),
            },
            _ => drop(self.reply_to(interaction, reply).await),
        }
    }
}
