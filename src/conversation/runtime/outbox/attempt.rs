//! One attempt to send a message.

use std::sync::atomic::Ordering;

use countersign_core::{
    cause,
    clock::Timestamp,
    ids::{ChannelId, MessageTs, Nonce, Slot, ThreadId},
    reply::{CardState, Part, Reply, Span, Text},
};
use countersign_graph::store::{Claimed, Outbound, Outgoing, Posted, Sent, ShownCard};
use countersign_slack::{blocks::Message, client_error::Error};

use super::{Sender, channel::Claim, clearance::method};
use crate::presentation::render;

/// The maximum duration of an attempt, as a multiple of the time-out of a call: one call searches
/// for the message, and one posts it. It must be less than the duration of a claim, or two
/// processes could send the same message.
const ATTEMPT_IN_TIMEOUTS: u32 = 2;

/// The maximum length of the text that is sent without blocks if Slack rejects those, in
/// characters.
const MAX_TEXT_CHARS: usize = 2900;

/// The reasons why a message was not sent.
#[derive(Debug)]
pub(super) enum AttemptError {
    /// Slack refused it, or could not be reached.
    Slack(Error),
    /// The claim was lost, so nothing was sent.
    ClaimLost,
}

impl From<Error> for AttemptError {
    fn from(error: Error) -> Self {
        Self::Slack(error)
    }
}

impl Sender {
    pub(super) async fn send_to_slack(&self, claim: &Claim) -> Sent {
        let claimed = &claim.message;
        if let Some(given_up) = self.tried_too_often(claimed) {
            return given_up;
        }
        let attempt = tokio::time::timeout(self.0.slack.timeout() * ATTEMPT_IN_TIMEOUTS, self.attempt(claim));
        match attempt.await.unwrap_or(Err(Error::NoAnswer("too slow").into())) {
            Ok(posted) => {
                self.0.thread_status.on_sent(&claimed.thread, &claimed.outgoing.body).await;
                Sent::Delivered(posted)
            }
            Err(AttemptError::Slack(error)) => {
                if let (Error::RateLimited { retry_after }, Some(pacing), Some(method)) =
                    (&error, &self.0.pacing, method(claimed))
                {
                    pacing.on_rate_limit(method, &claimed.thread.channel, self.0.clock.now() + *retry_after);
                }
                self.after_failure(claimed, &error)
            }
            Err(AttemptError::ClaimLost) => {
                metrics::counter!("countersign_claims_lost_total").increment(1);
                tracing::warn!(thread.id = %claimed.thread, "A claim expired before its message was sent; it was not sent");
                Sent::Deferred(self.0.clock.now())
            }
        }
    }

    /// Sends the message once.
    async fn attempt(&self, claim: &Claim) -> Result<Option<Posted>, AttemptError> {
        let claimed = &claim.message;
        if let Some(shown) = self.show_draft(claim).await? {
            return Ok(shown);
        }
        if let (Outbound::Status { text, .. }, None) = (&claimed.outgoing.body, &claimed.posted)
            && self.0.thread_status.show(&claimed.thread, text).await
        {
            return Ok(None);
        }
        let message = match &claimed.outgoing.body {
            Outbound::Status { text, .. } => render::status(text),
            Outbound::Reply { reply } => render::reply(self.0.names.in_reply(reply).await.as_ref()),
            Outbound::Card { card, state } => {
                let state = self.0.names.in_state(self.linked(claimed, state).await).await;
                let draw = if self.0.thread_status.has_stop() { render::card_beside_stop } else { render::card };
                draw(card, &state)
            }
            Outbound::File { name, title, alt, hash } => return self.upload(claim, name, (title, alt), hash).await,
            Outbound::Direct { card, reply, .. } => {
                let reply = self.with_link(claimed, card, reply).await?;
                render::reply(self.0.names.in_reply(&reply).await.as_ref())
            }
            // The first was turned into a card before this; the second is sent by another channel.
            Outbound::Redraw { .. } | Outbound::Elsewhere { .. } => return Ok(claimed.posted.clone()),
            Outbound::Remove => return Ok(self.remove(claimed).await?),
        };
        // Words without layout are better than silence, except on an open card, which has to be read line by line.
        match self.post_or_update(claim, &message).await {
            Err(AttemptError::Slack(error)) if error.is_about_content() && may_lose_blocks(claimed, &message) => {
                tracing::error!(thread.id = %claimed.thread, error = cause::chain(&error), "Slack rejects a message with blocks; it is sent as text only");
                self.post_or_update(claim, &without_blocks(&message)).await
            }
            result => result,
        }
    }

    /// Updates the message that is posted for the slot, or posts a new one at the end of the
    /// thread.
    async fn post_or_update(&self, claim: &Claim, message: &Message) -> Result<Option<Posted>, AttemptError> {
        let claimed = &claim.message;
        if let Some(posted) = &claimed.posted {
            self.check_claim(claim).await?;
            match self.update(claimed, posted, message).await {
                Ok(()) => return Ok(self.updated_posted(claimed, posted)),
                // The message was deleted in Slack. If people have to see it, it is posted again.
                Err(Error::Gone { code }) if code == "message_not_found" && has_to_be_seen(&claimed.outgoing.body) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if claimed.attempts > 0
            && let Some(posted) = self.find(claimed).await?
        {
            return Ok(Some(posted));
        }
        self.post(claim, message).await.map(Some)
    }

    /// Checks that the claim is still valid, immediately before a call.
    pub(super) async fn check_claim(&self, claim: &Claim) -> Result<(), AttemptError> {
        let holds = claim.is_ours(&*self.0.store, &*self.0.clock).await;
        if holds { Ok(()) } else { Err(AttemptError::ClaimLost) }
    }

    /// Returns the state of a closed card with a link to the card that replaced it. The link is
    /// omitted if that card is not posted yet or cannot be found.
    async fn linked(&self, claimed: &Claimed, state: &CardState) -> CardState {
        let mut linked = state.clone();
        if let CardState::Closed { newer: Some(slot), decision, .. } = &mut linked
            && let Ok(Some(url)) = self.0.links.slot(&claimed.thread, slot).await
        {
            decision.0.push(Span::Plain(" · ".to_owned()));
            decision.0.push(Span::Link { url, text: "the newer card".to_owned() });
        }
        linked
    }

    async fn post(&self, claim: &Claim, message: &Message) -> Result<Posted, AttemptError> {
        let claimed = &claim.message;
        let (channel, root) = self.destination(claimed).await?;
        self.check_claim(claim).await?;
        let ts = self.0.slack.post_message(&channel, root, message, &claimed.outgoing.nonce).await?;
        // A “yes” is compared with the time at which its card was last changed, and the time stamps of both are
        // Slack's.
        if let Some(slack) = ts.sent_at() {
            self.0.ahead.store(slack.millis() - self.0.clock.now().millis(), Ordering::Relaxed);
        }
        Ok(posted(claimed, channel, ts))
    }

    /// Returns the record of an updated message if it must be saved again, because the open card
    /// that the message shows has changed.
    fn updated_posted(&self, claimed: &Claimed, posted: &Posted) -> Option<Posted> {
        let now = self.0.clock.now().millis() + self.0.ahead.load(Ordering::Relaxed);
        let since = MessageTs::new(format!("{}.{:06}", now.div_euclid(1000), now.rem_euclid(1000) * 1000));
        let card = open_card_of(&claimed.outgoing.body, since.max(posted.ts.clone())).map(|card| match &posted.card {
            Some(known) if known.approval == card.approval && known.digest == card.digest => known.clone(),
            _ => card,
        });
        (card != posted.card).then(|| Posted { card, ..posted.clone() })
    }

    /// Returns the destination of a message: its thread, or the direct conversation with one
    /// person.
    pub(super) async fn destination<'a>(
        &self,
        claimed: &'a Claimed,
    ) -> Result<(ChannelId, Option<&'a MessageTs>), Error> {
        let Outbound::Direct { to, .. } = &claimed.outgoing.body else {
            return Ok((claimed.thread.channel.clone(), Some(&claimed.thread.root)));
        };
        let channel = match self.0.direct.get(to) {
            Some(channel) => channel,
            None => self.0.slack.open_direct(to).await?,
        };
        self.0.direct.set(to.clone(), channel.clone());
        Ok((channel, None))
    }

    /// Returns the reply with a link to the card, which was sent before it, or to the thread if the
    /// card could not be sent.
    async fn with_link(&self, claimed: &Claimed, card: &Slot, reply: &Reply) -> Result<Reply, Error> {
        let thread = &claimed.thread;
        let posted = self.0.store.posted(thread, card).await.map_err(|_| Error::NotSent)?;
        let (channel, ts) = posted.as_ref().map_or((&thread.channel, &thread.root), |at| (&at.channel, &at.ts));
        let words = if posted.is_some() { "Open the card" } else { "Open the thread" };
        Ok(match self.0.links.message(channel, ts, &thread.root) {
            Some(url) => reply.clone().and(Part::Text(Text::new().link(url, words))),
            None => reply.clone(),
        })
    }

    /// Searches for the message that an earlier attempt may have posted without getting an answer.
    async fn find(&self, claimed: &Claimed) -> Result<Option<Posted>, Error> {
        let (channel, root) = self.destination(claimed).await?;
        let Outgoing { nonce, not_before, .. } = &claimed.outgoing;
        let found = self.0.slack.find_by_nonce(&channel, root, nonce, earliest_attempt(*not_before)).await;
        let found = found.map_err(|error| match &error {
            // In a place that cannot be written to, there is no message from us either.
            Error::Gone { code } | Error::Refused { code }
                if code != "thread_not_found" && Error::is_about_place(code) =>
            {
                error
            }
            // Slack refused the search, not the message, which may have been posted.
            _ if error.is_final() => Error::NoAnswer("the thread cannot be read"),
            _ => error,
        })?;
        Ok(found.map(|ts| posted(claimed, channel, ts)))
    }

    /// Shares a file in the thread. A file has no metadata to find it by, so its name contains a
    /// part of the nonce.
    async fn upload(
        &self,
        claim: &Claim,
        name: &str,
        (title, alt): (&str, &str),
        hash: &str,
    ) -> Result<Option<Posted>, AttemptError> {
        let claimed = &claim.message;
        let ThreadId { channel, root, .. } = &claimed.thread;
        let Outgoing { nonce, not_before, .. } = &claimed.outgoing;
        let bytes = match self.0.store.get_blob(hash).await {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Err(Error::Gone { code: "file_not_stored".to_owned() }.into()),
            Err(_) => return Err(Error::NotSent.into()),
        };
        // Files have no metadata. The name is the only thing by which one that was shared before can be found.
        let name = with_nonce(name, nonce);
        let slack = &self.0.slack;
        if claimed.attempts == 0 || !slack.has_file(channel, root, &name, earliest_attempt(*not_before)).await? {
            self.check_claim(claim).await?;
            slack.upload_file(channel, root, &name, (title, alt), &bytes).await?;
        }
        Ok(None)
    }

    async fn remove(&self, claimed: &Claimed) -> Result<Option<Posted>, Error> {
        if let Some(posted) = &claimed.posted {
            match self.delete(&claimed.thread, posted, &claimed.outgoing.nonce).await {
                Ok(()) | Err(Error::Gone { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// Returns the record of a posted message, with the open card that it shows, if any.
fn posted(claimed: &Claimed, channel: ChannelId, ts: MessageTs) -> Posted {
    let card = open_card_of(&claimed.outgoing.body, ts.clone());
    Posted { channel, ts, card }
}

/// Returns the open card that a message has shown since `since`, if any.
fn open_card_of(body: &Outbound, since: MessageTs) -> Option<ShownCard> {
    match body {
        Outbound::Card { state: CardState::Open { approval, digest, .. }, .. } => {
            Some(ShownCard { approval: approval.clone(), digest: digest.clone(), since })
        }
        _ => None,
    }
}

/// Returns a time before the first attempt to send a message. `not_before` increases with each
/// attempt.
pub(super) fn earliest_attempt(not_before: Timestamp) -> Timestamp {
    Timestamp(
        not_before.millis().saturating_sub(i64::try_from(super::refused::MAX_RETRY_TIME.as_millis()).unwrap_or(0)),
    )
}

/// Returns true if a message is posted again after it was deleted in Slack, as replies and open
/// cards are.
fn has_to_be_seen(body: &Outbound) -> bool {
    matches!(body, Outbound::Reply { .. } | Outbound::Card { state: CardState::Open { .. }, .. })
}

/// Returns true if the text alone is sufficient without the blocks. It is not for an open card,
/// which has to be read line by line and has buttons.
fn may_lose_blocks(claimed: &Claimed, message: &Message) -> bool {
    let text_is_enough = match &claimed.outgoing.body {
        Outbound::Reply { .. } | Outbound::Direct { .. } => true,
        Outbound::Card { state, .. } => !matches!(state, CardState::Open { .. }),
        Outbound::Status { .. }
        | Outbound::File { .. }
        | Outbound::Redraw { .. }
        | Outbound::Elsewhere { .. }
        | Outbound::Remove => false,
    };
    text_is_enough && !message.blocks.is_empty()
}

fn without_blocks(message: &Message) -> Message {
    let text = match message.text.char_indices().nth(MAX_TEXT_CHARS) {
        Some((end, _)) => format!("{}…", &message.text[..end]),
        None => message.text.clone(),
    };
    Message { text, blocks: Vec::new() }
}

/// Returns the file name with the beginning of the nonce before its extension:
/// `chart-3fa85f64.png`.
fn with_nonce(name: &str, nonce: &Nonce) -> String {
    let part: String = nonce.as_str().chars().take(8).collect();
    match name.rsplit_once('.') {
        Some((stem, extension)) => format!("{stem}-{part}.{extension}"),
        None => format!("{name}-{part}"),
    }
}
