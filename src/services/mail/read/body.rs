//! The text of a message: of all its parts, in their order.

use super::{
    html,
    parts::{Leaf, Part, Parts},
    text::plain,
};
use crate::mail::{MAX_TEXT_CHARS, Warning};

/// The text of a message, and what was noticed in it.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub(super) text: String,
    pub(super) is_cut: bool,
    pub(super) warnings: Vec<Warning>,
}

/// A piece of the text, in its place.
#[derive(Debug)]
enum Piece {
    Text {
        body: Body,
        is_html: bool,
    },
    /// The name of something that is no text.
    Name(String),
}

impl Piece {
    fn is_text(&self) -> bool {
        matches!(self, Self::Text { body, .. } if !body.text.trim().is_empty())
    }

    fn is_plain_text(&self) -> bool {
        self.is_text() && matches!(self, Self::Text { is_html: false, .. })
    }
}

impl Body {
    /// Returns the text of a message. What stands between two texts and is none is named in its place. A message without
    /// a text has that of its first file, which then is no attachment.
    pub(super) fn of(parts: &mut Parts<'_>) -> Self {
        let is_single = matches!(parts.root, Some(Part::Plain(_) | Part::Html(_))) && parts.attachments.is_empty();
        let mut pieces = Vec::new();
        if let Some(root) = &parts.root {
            collect(root, &parts.images, is_single, &mut pieces);
        }
        if !pieces.iter().any(Piece::is_text) && !parts.files.is_empty() {
            let (at, file) = parts.files.remove(0);
            let mut text = Vec::new();
            collect(&file, &parts.images, parts.attachments.len() == 1, &mut text);
            if text.iter().any(Piece::is_text) && at < parts.attachments.len() {
                parts.attachments.remove(at);
                pieces = text;
            }
        }
        joined(pieces)
    }
}

/// Joins the pieces with empty lines between them. A name after the last text is not needed: the attachments are listed.
fn joined(pieces: Vec<Piece>) -> Body {
    let texts = pieces.iter().filter(|piece| piece.is_text()).count();
    let mut left = texts;
    let mut whole = Body::default();
    for piece in pieces {
        left -= usize::from(piece.is_text());
        let words = match piece {
            Piece::Text { body, .. } => {
                whole.is_cut |= body.is_cut;
                for warning in body.warnings {
                    if !whole.warnings.contains(&warning) {
                        whole.warnings.push(warning);
                    }
                }
                body.text
            }
            Piece::Name(name) if left > 0 => name,
            Piece::Name(_) => continue,
        };
        if texts > 0 && words.trim().is_empty() {
            continue;
        }
        if !whole.text.is_empty() {
            let ends = whole.text.bytes().rev().take_while(|byte| *byte == b'\n').count();
            whole.text.extend(std::iter::repeat_n('\n', 2_usize.saturating_sub(ends)));
        }
        whole.text.push_str(&words);
    }
    if let Some((end, _)) = whole.text.char_indices().nth(MAX_TEXT_CHARS) {
        whole.text.truncate(end);
        whole.is_cut = true;
    }
    whole
}

/// Collects the pieces of a part. Of several versions, the first one with plain text counts, or else the first one with
/// text.
fn collect(part: &Part<'_>, images: &[(String, String)], is_single: bool, pieces: &mut Vec<Piece>) {
    match part {
        Part::Plain(leaf) => pieces.push(Piece::Text { body: from_plain(leaf, is_single), is_html: false }),
        Part::Html(leaf) => pieces.push(Piece::Text { body: from_html(leaf, images), is_html: true }),
        Part::Named(name, kind) => pieces.push(Piece::Name(named(name.as_deref(), kind))),
        Part::Several(parts) => parts.iter().for_each(|part| collect(part, images, false, pieces)),
        Part::Versions(versions) => {
            let mut versions: Vec<Vec<Piece>> = versions
                .iter()
                .map(|version| {
                    let mut pieces = Vec::new();
                    collect(version, images, false, &mut pieces);
                    pieces
                })
                .collect();
            let first = |fits: fn(&Piece) -> bool| versions.iter().position(|version| version.iter().any(fits));
            let chosen = first(Piece::is_plain_text).or_else(|| first(Piece::is_text)).unwrap_or_default();
            if chosen < versions.len() {
                pieces.append(&mut versions.remove(chosen));
            }
            // Whoever opens the message in a mail program sees another version of it.
            let links = versions.into_iter().flatten().filter_map(|piece| match piece {
                Piece::Text { body, .. } => Some(body.warnings),
                Piece::Name(_) => None,
            });
            let warnings = links.flatten().filter(|found| matches!(found, Warning::DeceptiveLink { .. })).collect();
            pieces.push(Piece::Text { body: Body { warnings, ..Body::default() }, is_html: true });
        }
    }
}

/// Returns the words that stand for an image or another part: `[image: plan.png]`.
pub(super) fn named(name: Option<&str>, kind: &str) -> String {
    match name.filter(|name| !name.is_empty()) {
        Some(name) => format!("[{kind}: {name}]"),
        None => format!("[{kind}]"),
    }
}

fn from_plain(leaf: &Leaf<'_>, is_single: bool) -> Body {
    let mut decoded = leaf.text();
    if is_single && decoded.ends_by_transport && decoded.text.ends_with('\n') {
        decoded.text.pop();
        let without_return = decoded.text.strip_suffix('\r').map_or(decoded.text.len(), str::len);
        decoded.text.truncate(without_return);
    }
    let clean = plain(&decoded.text, MAX_TEXT_CHARS);
    let mut warnings = Vec::new();
    if clean.had_invisible {
        warnings.push(Warning::InvisibleCharacters);
    }
    Body { is_cut: decoded.is_cut || clean.is_cut, text: clean.into_string(), warnings }
}

fn from_html(leaf: &Leaf<'_>, images: &[(String, String)]) -> Body {
    let decoded = leaf.text();
    let seen = html::visible(&decoded.text, images, MAX_TEXT_CHARS);
    let mut warnings = Vec::new();
    if seen.has_hidden_text {
        warnings.push(Warning::HiddenText);
    }
    if seen.text.had_invisible {
        warnings.push(Warning::InvisibleCharacters);
    }
    let deceptions = seen.deceptions.into_iter();
    warnings.extend(deceptions.map(|found| Warning::DeceptiveLink { shown: found.shown, leads_to: found.leads_to }));
    Body { is_cut: decoded.is_cut || seen.text.is_cut, text: seen.text.into_string(), warnings }
}
