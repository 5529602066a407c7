//! Draws the bot's messages with Block Kit, right before they are sent.
//!
//! [`reply()`], [`card()`] and [`status()`] turn the plain data of [`countersign_core::reply`] into
//! a [`Message`] that Slack accepts, whatever the data contains: everything is escaped ([`spans`]),
//! and all limits are kept ([`canvas`]). Content that does not fit is left out at the end, and the
//! message says so. Long replies are split beforehand by [`chunks()`].
//!
//! This module makes no decisions and looks nothing up: the same data always results in the same
//! message.

mod canvas;
mod card;
mod chunks;
mod reply;
mod spans;
mod table;
#[cfg(test)]
mod tests;

pub(in crate::presentation) use self::card::opening;
use countersign_core::reply::{Card, CardState, Fact, Meter, Reply, Text};
use countersign_slack::{
    blocks::{self, MAX_FALLBACK_CHARS, MAX_TEXT_CHARS, Message},
    mrkdwn::Mrkdwn,
};

/// Draws a reply, to a thread or to a single person.
pub fn reply(reply: &Reply) -> Message {
    reply::draw(reply)
}

/// Splits a long reply into one for each message.
pub fn chunks(reply: Reply) -> Vec<Reply> {
    chunks::of(reply)
}

/// Draws the card of an action in its current state.
pub fn card(card: &Card, state: &CardState) -> Message {
    card::draw(card, state, true)
}

/// Draws the card of an action without a Stop button, for threads in which Slack shows its own.
pub fn card_beside_stop(card: &Card, state: &CardState) -> Message {
    card::draw(card, state, false)
}

/// Draws lines of text as the smallest possible number of sections, without cutting anything.
pub fn sections(lines: &[Text]) -> Vec<serde_json::Value> {
    let lines: Vec<_> =
        lines.iter().flat_map(|line| spans::paragraphs(&spans::one_line(line), MAX_TEXT_CHARS)).collect();
    canvas::packed(&lines).iter().map(|(text, _)| blocks::section(text)).collect()
}

/// Draws a fact that is a quotation, without cutting anything; `None` if it is shown as a line.
pub fn quotation(fact: &Fact) -> Option<serde_json::Value> {
    card::quotation_of(fact).map(|(label, words)| blocks::quotation(label, words))
}

/// Draws code as sections, without cutting anything.
pub fn code(code: &str) -> Vec<serde_json::Value> {
    canvas::fenced(code).iter().map(|text| blocks::section(text)).collect()
}

/// Draws the progress of an action, with the button that stops it.
pub fn meter(meter: &Meter) -> Vec<serde_json::Value> {
    vec![blocks::section(&card::bar(meter)), card::stop_button(meter)]
}

/// Draws the status line of work in progress.
pub fn status(text: &str) -> Message {
    let text = if text.trim().is_empty() { "Working…" } else { text };
    let shown = Mrkdwn::new(MAX_FALLBACK_CHARS / 2).italic(text);
    if shown.is_blank() {
        return status("");
    }
    Message { text: canvas::fallback(text), blocks: vec![blocks::context(&shown.finish())] }
}
