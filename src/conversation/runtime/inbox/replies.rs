//! Private replies, which only the person concerned can read; and the end of a question that was answered.

use std::time::Duration;

use countersign_core::{
    cause,
    ids::{ChannelId, MessageTs, ThreadId, UserId},
    reply::Reply,
};
use countersign_graph::store::{ClaimedInteraction, Error};
use countersign_slack::{client::Respond, client_error};
use tokio::time::timeout;

use super::{Inbox, REPLY_ATTEMPTS, retry_later};
use crate::{
    approvals::clicks::Click,
    presentation::render,
    runtime::{choice::Choice, interaction::Interaction},
    surfaces::creation::CreationRequest,
};

/// The maximum time for taking the answers away from a question. The answer itself waits for it.
const UPDATE_TIMEOUT: Duration = Duration::from_secs(2);

impl Inbox {
    /// Shows the outcome of a press in a Home tab at the top of that tab, since there is no message
    /// to reply to.
    pub(super) async fn reply_at_home(&self, click: &Click, refused: Option<&Reply>) {
        if let Err(error) = self.0.home.answer(&click.by, &click.key, refused).await {
            tracing::warn!(error = cause::chain(&error), "A press in a Home tab was not answered");
        }
    }

    /// Shows the thread of a request that was made in a window in the Home tab, where the window may have been opened.
    pub(super) async fn tell_where_it_is(&self, request: &CreationRequest, thread: Option<&ThreadId>) {
        let Some(reply) = self.0.creation.notice(request, thread) else { return };
        if let Err(error) = self.0.home.tell(&request.by, reply).await {
            tracing::warn!(error = cause::chain(&error), "A Home tab does not say where a request is");
        }
    }

    /// Replies privately to the person whose request it is: through the address that Slack gave for that, or else in its
    /// conversation.
    pub(super) async fn reply_to(&self, interaction: &Interaction, reply: &Reply) -> ReplyDelivery {
        // The address works in channels that the bot is no member of, but only for 30 minutes.
        if let Some(url) = interaction.response_url()
            && self.try_respond(url, reply).await
        {
            return ReplyDelivery::Delivered;
        }
        match (interaction.by(), interaction.conversation()) {
            (Some(by), Some((channel, thread))) => self.post_privately(by, channel, thread, reply).await,
            _ => ReplyDelivery::Refused,
        }
    }

    /// Posts a message that only one person sees.
    pub(super) async fn post_privately(
        &self,
        user: &UserId,
        channel: &ChannelId,
        thread: Option<&MessageTs>,
        reply: &Reply,
    ) -> ReplyDelivery {
        let message = render::reply(self.0.approvals.names.in_reply(reply).await.as_ref());
        ReplyDelivery::of(self.0.slack.post_ephemeral(channel, thread, user, &message).await)
    }

    /// Replies through `url`. Returns true if the reply was delivered.
    pub(super) async fn try_respond(&self, url: &str, reply: &Reply) -> bool {
        self.respond(url, reply).await == ReplyDelivery::Delivered
    }

    /// Replies through `url`.
    pub(super) async fn respond(&self, url: &str, reply: &Reply) -> ReplyDelivery {
        let message = render::reply(self.0.approvals.names.in_reply(reply).await.as_ref());
        ReplyDelivery::of(self.0.slack.respond(url, Respond::Privately, &message).await)
    }

    /// Takes the answers away from a question that was answered. If Slack does not do it in time, they remain.
    pub(super) async fn take_answers_away(&self, choice: &Choice) {
        let Some(answered) = &choice.answered else { return };
        let message = answered.message();
        // Slack shows the message as it was, so its blocks are sent back without the buttons.
        let update = self.0.slack.update_message(&choice.thread.channel, &choice.message, &message);
        let refused = match timeout(UPDATE_TIMEOUT, update).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => cause::chain(&error),
            Err(_) => "it took too long".to_owned(),
        };
        tracing::warn!(error = refused, "The buttons of an answered question were not taken away");
    }
}

/// The result of delivering a private reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyDelivery {
    /// The reply was delivered.
    Delivered,
    /// Slack refuses the reply.
    Refused,
    /// A later attempt may deliver the reply.
    Later,
}

impl ReplyDelivery {
    fn of(result: Result<(), client_error::Error>) -> Self {
        let is_final = result.as_ref().is_err_and(client_error::Error::is_final);
        match log_failure(result) {
            true => Self::Delivered,
            false if is_final => Self::Refused,
            false => Self::Later,
        }
    }

    /// Makes the interaction be handled again if the reply may be delivered then.
    pub(super) fn or_retry(self, claimed: &ClaimedInteraction) -> Result<(), Error> {
        match self {
            Self::Later if claimed.attempts < REPLY_ATTEMPTS => Err(retry_later("a private answer did not arrive")),
            _ => Ok(()),
        }
    }
}

/// Logs a private reply that was not delivered. Returns true if it was delivered.
pub(super) fn log_failure(result: Result<(), client_error::Error>) -> bool {
    match &result {
        Ok(()) | Err(client_error::Error::MissingScope { .. }) => {} // the client reports the scope once
        Err(error) => {
            tracing::warn!(error = cause::chain(&error), "A private answer was not delivered")
        }
    }
    result.is_ok()
}
