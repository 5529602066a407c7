//! Handles the shortcuts in the menu of a message.

use countersign_core::ids::ThreadId;
use countersign_graph::store::{Error, Seq};
use countersign_slack::client_error;

use super::{Inbox, replies::log_failure};
use crate::{
    approvals::inbox::InboxAnswer,
    presentation::render,
    surfaces::shortcuts::{self, Question, Shortcut},
};

impl Inbox {
    /// Opens the window for a question about a message.
    pub(super) async fn open_window(&self, shortcut: &Shortcut) -> InboxAnswer {
        let opened = match &shortcut.trigger_id {
            Some(trigger) => log_failure(self.0.slack.open_view(trigger, &shortcuts::window(shortcut)).await.map(drop)),
            None => false,
        };
        if !opened && let Some(url) = &shortcut.response_url {
            self.try_respond(url, &shortcuts::window_too_late()).await;
        }
        InboxAnswer::NoAnswer
    }

    /// Asks the assistant about a message, if the bot may write in that channel.
    pub(super) async fn ask_assistant(&self, question: &Question, seq: Seq) -> Result<InboxAnswer, Error> {
        use client_error::Error::{Gone, Refused};
        let deps = &self.0;
        let ThreadId { channel, root, .. } = &question.thread;
        let notified = deps
            .slack
            .post_ephemeral(channel, Some(root), &question.by, &render::reply(&shortcuts::question_received()))
            .await;
        if let (Err(Gone { .. } | Refused { .. }), Some(url)) = (&notified, &question.response_url) {
            self.try_respond(url, &shortcuts::not_a_member()).await;
            return Ok(InboxAnswer::NoAnswer);
        }
        log_failure(notified);
        deps.store.apply(&shortcuts::question_changes(question, deps.clock.now(), seq)).await?;
        Ok(InboxAnswer::Counted(question.thread.clone()))
    }

    /// Exports the thread of a message.
    pub(super) async fn export(&self, shortcut: &Shortcut) -> Result<InboxAnswer, Error> {
        let reply = self.0.commands.notebook(&shortcut.by, &shortcut.thread).await?;
        match &shortcut.response_url {
            Some(url) => drop(self.try_respond(url, &reply).await),
            None => {
                self.post_privately(&shortcut.by, &shortcut.thread.channel, Some(&shortcut.thread.root), &reply).await;
            }
        }
        self.0.sender.flush(shortcut.thread.clone());
        Ok(InboxAnswer::NoAnswer)
    }
}
