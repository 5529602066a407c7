//! A message under construction, which accepts blocks as long as they fit.

use countersign_slack::{
    blocks::{self, MAX_BLOCKS, MAX_FALLBACK_CHARS, MAX_TEXT_CHARS},
    mrkdwn::{Mrkdwn, length},
};
use serde_json::Value;

use super::spans;

/// The maximum number of characters in all blocks of a message. Slack documents no limit; it has
/// refused messages above about 13,200.
const MAX_CHARS: usize = 12_000;

/// The remaining number of characters below which no further part is begun.
pub(super) const MIN_ROOM: usize = 200;

/// The blocks that fit, and the number of items that did not.
#[derive(Debug)]
pub(super) struct Canvas {
    blocks: Vec<Value>,
    max_blocks: usize,
    room: usize,
    left_out: usize,
    complete: bool,
}

impl Canvas {
    /// Returns an empty canvas that reserves some blocks and characters for the end of the message.
    pub(super) fn with_reserve(blocks: usize, characters: usize) -> Self {
        Self {
            blocks: Vec::new(),
            max_blocks: MAX_BLOCKS - blocks,
            room: MAX_CHARS - characters,
            left_out: 0,
            complete: true,
        }
    }

    /// Returns the number of characters that still fit.
    pub(super) fn room(&self) -> usize {
        if self.blocks.len() < self.max_blocks { self.room } else { 0 }
    }

    /// Adds a block with this number of characters if it fits. Otherwise counts its `items` as left
    /// out.
    pub(super) fn add(&mut self, block: Value, characters: usize, items: usize) {
        // After an omission, further content would seem to follow directly.
        if self.left_out == 0 && characters <= self.room() {
            self.room -= characters;
            self.blocks.push(block);
        } else {
            self.leave_out(items);
        }
    }

    /// Counts items that do not fit.
    pub(super) fn leave_out(&mut self, items: usize) {
        self.left_out += items;
        self.complete &= items == 0;
    }

    /// Counts items that could not be shown in any message.
    pub(super) fn leave_out_always(&mut self, items: usize) {
        self.left_out += items;
    }

    /// Returns true if nothing was left out that could be shown in another message.
    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    /// Records that a block was cut. The block itself says so.
    pub(super) fn mark_cut(&mut self) {
        self.complete = false;
    }

    /// Adds lines of mrkdwn, each at most [`MAX_TEXT_CHARS`] long, as the smallest possible number
    /// of blocks.
    pub(super) fn lines(&mut self, lines: &[String], block: impl Fn(&str) -> Value) {
        for (together, count) in packed(lines) {
            self.add(block(&together), length(&together), count);
        }
    }

    /// Adds code in fences, in as many blocks as it needs.
    pub(super) fn code(&mut self, code: &str) {
        for text in fenced(code) {
            self.add(blocks::section(&text), length(&text), 1);
        }
    }

    /// Adds the number of items left out so far, if there is room for more content after it.
    /// Otherwise it is added at the end.
    pub(super) fn note_left_out(&mut self) {
        if self.left_out > 0 && self.room() > MIN_ROOM {
            self.blocks.push(blocks::context(&format!("… and {} more", self.left_out)));
            self.room -= 20;
            self.left_out = 0;
        }
    }

    /// Returns the number of items that did not fit.
    pub(super) fn left_out(&self) -> usize {
        self.left_out
    }

    /// Adds a block in the reserved space.
    pub(super) fn add_reserved(&mut self, block: Value) {
        self.blocks.push(block);
    }

    /// Returns the blocks.
    pub(super) fn finish(self) -> Vec<Value> {
        self.blocks
    }
}

/// Packs lines of mrkdwn, each at most [`MAX_TEXT_CHARS`] long, into the smallest possible number
/// of texts, each returned with its number of lines.
pub(super) fn packed(lines: &[String]) -> Vec<(String, usize)> {
    let mut texts: Vec<(String, usize)> = Vec::new();
    for line in lines.iter().filter(|line| !line.trim().is_empty()) {
        match texts.last_mut() {
            Some((together, count)) if length(together) + 1 + length(line) <= MAX_TEXT_CHARS => {
                together.push('\n');
                together.push_str(line);
                *count += 1;
            }
            _ => texts.push((line.clone(), 1)),
        }
    }
    texts
}

/// Returns code in fences, in as many texts as it needs.
pub(super) fn fenced(code: &str) -> Vec<String> {
    const FENCES: usize = 8;
    let mut chunk = Mrkdwn::new(MAX_TEXT_CHARS - FENCES);
    let mut chunks = Vec::new();
    for piece in spans::pieces(code.trim_matches('\n')) {
        let longer = chunk.clone().verbatim(&piece);
        chunk = if longer.is_cut() {
            chunks.push(chunk.finish());
            Mrkdwn::new(MAX_TEXT_CHARS - FENCES).verbatim(&piece)
        } else {
            longer
        };
    }
    chunks.push(chunk.finish());
    let shown = chunks.iter().filter(|chunk| !chunk.trim().is_empty());
    shown.map(|chunk| format!("```\n{}\n```", chunk.trim_end())).collect()
}

/// Returns the text for notifications and screen readers. It is never empty, since Slack refuses a
/// message without text.
pub(super) fn fallback(words: &str) -> String {
    let text = Mrkdwn::new(MAX_FALLBACK_CHARS - 1000).plain(words.trim());
    if text.is_blank() { "…".to_owned() } else { text.finish() }
}
