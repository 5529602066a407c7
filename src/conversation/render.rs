//! Draws what the bot says as Block Kit, at the last moment.
//!
//! [`reply()`], [`card()`] and [`status()`] turn the plain data of [`crate::reply`] into a [`Message`] that Slack accepts,
//! whatever the data holds: everything is escaped ([`spans`]), and every limit is kept ([`canvas`]). What does not fit is
//! left out at the end, and the message says so; [`portions()`] divides a long answer before that.
//!
//! This module decides nothing and looks nothing up; the same data always gives the same message.

mod canvas;
mod card;
mod notice;
mod portions;
mod reply;
mod spans;
mod table;
#[cfg(test)]
mod tests;

use crate::{
    reply::{Card, CardState, Reply},
    slack::{
        blocks::{self, FALLBACK, Message},
        mrkdwn::Mrkdwn,
    },
};

/// The action id of the button that approves; its value is the approval's key.
pub const APPROVE: &str = "approve";

/// The action id of the button that rejects; its value is the approval's key.
pub const REJECT: &str = "reject";

/// The action id of the button that stops what is running; its value is the approval's key.
pub const STOP: &str = "stop";

/// How the action ids of choices begin; a number follows, and the value is what is said.
pub const SAY: &str = "say:";

/// An answer, or something that only one person sees.
pub fn reply(reply: &Reply) -> Message {
    reply::draw(reply)
}

/// A long answer as one reply for each message that it becomes.
pub fn portions(reply: Reply) -> Vec<Reply> {
    portions::of(reply)
}

/// The card of an action, as it stands.
pub fn card(card: &Card, state: &CardState) -> Message {
    card::draw(card, state)
}

/// The line that tells what is being done.
pub fn status(text: &str) -> Message {
    let text = if text.trim().is_empty() { "Working…" } else { text };
    let shown = Mrkdwn::new(FALLBACK / 2).italic(text);
    if shown.is_blank() {
        return status("");
    }
    Message { text: fallback(text), blocks: vec![blocks::context(&shown.finish())] }
}

/// Words for notifications and screen readers. Never empty: Slack refuses a message without words.
fn fallback(words: &str) -> String {
    let text = Mrkdwn::new(FALLBACK - 1000).plain(words.trim());
    if text.is_blank() { "…".to_owned() } else { text.finish() }
}
