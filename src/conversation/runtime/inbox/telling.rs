//! Private replies, which only the person who pressed, typed or asked reads.

use countersign_core::{
    ids::{ChannelId, MessageTs, UserId},
    reply::Reply,
};
use countersign_slack::{client::Respond, client_error};

use super::Inbox;
use crate::{approvals::clicks::Click, presentation::render};

impl Inbox {
    /// Shows the outcome of a press in a Home tab at the top of that tab: there is no message to answer below.
    pub(super) async fn tell_at_home(&self, click: &Click, refused: Option<&Reply>) {
        if let Err(error) = self.0.home.answer(&click.by, &click.key, refused).await {
            tracing::warn!(error = countersign_core::cause::chain(&error), "A press in a Home tab was not answered");
        }
    }

    /// Replies to the person who pressed, where they pressed.
    pub(super) async fn tell_clicker(&self, click: &Click, reply: &Reply) -> Arrived {
        let thread = click.thread.as_ref().or(click.message.as_ref());
        let place = click.channel.as_ref().map(|channel| (channel, thread));
        self.tell_back(&click.by, click.response_url.as_deref(), place, reply).await
    }

    /// Replies to a person through `url`, or else in the conversation, and thread, where they pressed.
    pub(super) async fn tell_back(
        &self,
        by: &UserId,
        url: Option<&str>,
        place: Option<(&ChannelId, Option<&MessageTs>)>,
        reply: &Reply,
    ) -> Arrived {
        if let Some(url) = url
            && self.respond(url, reply).await
        {
            return Arrived::Yes;
        }
        match place {
            Some((channel, thread)) => self.tell(by, channel, thread, reply).await,
            None => Arrived::No,
        }
    }

    pub(super) async fn tell(
        &self,
        user: &UserId,
        channel: &ChannelId,
        thread: Option<&MessageTs>,
        reply: &Reply,
    ) -> Arrived {
        let message = render::reply(self.0.names.in_reply(reply).await.as_ref());
        Arrived::of(self.0.slack.post_ephemeral(channel, thread, user, &message).await)
    }

    pub(super) async fn respond(&self, url: &str, reply: &Reply) -> bool {
        self.answers(url, reply).await == Arrived::Yes
    }

    pub(super) async fn answers(&self, url: &str, reply: &Reply) -> Arrived {
        let message = render::reply(self.0.names.in_reply(reply).await.as_ref());
        Arrived::of(self.0.slack.respond(url, Respond::Privately, &message).await)
    }
}

/// The delivery of a private reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrived {
    Yes,
    /// Slack refuses the reply.
    No,
    /// The reply may arrive with a later try.
    Later,
}

impl Arrived {
    fn of(result: Result<(), client_error::Error>) -> Self {
        let is_final = result.as_ref().is_err_and(client_error::Error::is_final);
        match report(result) {
            true => Self::Yes,
            false if is_final => Self::No,
            false => Self::Later,
        }
    }
}

/// Returns true if a private reply arrived; a failure is worth no more than a log line.
pub(super) fn report(result: Result<(), client_error::Error>) -> bool {
    match &result {
        Ok(()) | Err(client_error::Error::MissingScope { .. }) => {} // the client names the scope, once
        Err(error) => {
            tracing::warn!(error = countersign_core::cause::chain(&error), "A private answer was not delivered")
        }
    }
    result.is_ok()
}
