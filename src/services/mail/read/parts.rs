//! The parts of a message: found by their boundaries, without recursion into anything that is not needed.
//!
//! The parsers of whole messages keep nested messages as nested values and search each boundary to the end, so that a
//! hostile message can exhaust the stack or take quadratic time. Here, depth and number of the parts are limited, and a
//! nested message is an attachment. The text of a part is decoded by `mail-parser`.

use mail_parser::{
    ContentType,
    decoders::{base64::base64_decode, quoted_printable::quoted_printable_decode},
};

use super::{calendar, charset::Guess, headers::Headers};
use crate::{address::one_line, invitation::Invitation, mail::Attachment};

/// The maximum depth of parts within parts.
const MAX_DEPTH: usize = 20;
/// The maximum number of parts that are read.
const MAX_PARTS: usize = 1_000;
/// The maximum number of attachments that are listed.
const MAX_ATTACHMENTS: usize = 100;
/// The maximum number of invitations that are kept.
const MAX_INVITATIONS: usize = 5;
/// The maximum length of a text before decoding, in bytes. Longer ones are cut.
const MAX_ENCODED_BYTES: usize = 4 * 1024 * 1024;

/// The text types that are shown if a message has no other text. The others are not made for people, such as style sheets.
const READABLE: [&str; 6] = ["csv", "enriched", "markdown", "richtext", "x-markdown", "x-patch"];

/// The texts and attachments of a message.
#[derive(Debug, Default)]
pub(super) struct Parts<'a> {
    /// The part that contains all others; `None` if the message has none that can be read.
    pub(super) root: Option<Part<'a>>,
    /// The attachments, at most [`MAX_ATTACHMENTS`].
    pub(super) attachments: Vec<Attachment>,
    /// The texts with the name of a file that do not say whether they are attachments, each with its place among the
    /// attachments.
    pub(super) files: Vec<(usize, Part<'a>)>,
    /// The names of the images that HTML can show, by their `Content-ID` without angle brackets.
    pub(super) images: Vec<(String, String)>,
    /// The invitations.
    pub(super) invitations: Vec<Invitation>,
    /// Reasons why something could not be read.
    pub(super) problems: Vec<&'static str>,
    /// The first character set that a part names.
    pub(super) charset: Option<String>,
    number: usize,
}

/// A part of a message.
#[derive(Debug)]
pub(super) enum Part<'a> {
    /// A plain text.
    Plain(Leaf<'a>),
    /// A text in HTML.
    Html(Leaf<'a>),
    /// Something that stands in the text: its name and its kind, such as `image`.
    Named(Option<String>, String),
    /// Several parts, which follow each other.
    Several(Vec<Part<'a>>),
    /// Several versions of the same content.
    Versions(Vec<Part<'a>>),
}

/// A part without parts of its own.
#[derive(Clone, Debug)]
pub(super) struct Leaf<'a> {
    content_type: Option<ContentType<'static>>,
    encoding: Encoding,
    body: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Identity,
    QuotedPrintable,
    Base64,
}

/// The text of a part.
#[derive(Debug)]
pub(super) struct Text {
    /// The decoded text.
    pub(super) text: String,
    /// True if only the beginning was decoded.
    pub(super) is_cut: bool,
    /// True if the last line was ended by the transport rather than by the sender.
    pub(super) ends_by_transport: bool,
}

/// The part around a part.
#[derive(Clone, Copy, Debug, Default)]
struct Around {
    is_digest: bool,
    is_alternative: bool,
    is_related: bool,
    depth: usize,
}

impl<'a> Parts<'a> {
    /// Finds the parts of a message with these headers and this body.
    pub(super) fn of(headers: &Headers<'_>, body: &'a [u8]) -> Self {
        let mut parts = Self::default();
        parts.root = parts.read(headers, body, Around::default());
        parts
    }

    /// Reads a part, and notes what it contains. Returns `None` if it has no place in the text.
    fn read(&mut self, headers: &Headers<'_>, body: &'a [u8], around: Around) -> Option<Part<'a>> {
        self.number += 1;
        let content_type = headers.content_type("Content-Type");
        let (kind, subtype) = kind(content_type.as_ref(), around.is_digest);
        if let (None, Some(named)) = (&self.charset, content_type.as_ref().and_then(|found| found.attribute("charset")))
        {
            self.charset = Some(named.to_owned());
        }
        if kind == "multipart" {
            let boundary = content_type.as_ref().and_then(|found| found.attribute("boundary")).unwrap_or_default();
            if around.depth >= MAX_DEPTH {
                self.problem("its parts are nested too deeply");
                return None;
            }
            let is_alternative = subtype == "alternative";
            let (is_digest, is_related) = (subtype == "digest", subtype == "related");
            let within = Around { is_digest, is_alternative, is_related, depth: around.depth + 1 };
            if let Some(parts) = self.read_parts(boundary.as_bytes(), body, within) {
                return Some(if is_alternative { Part::Versions(parts) } else { Part::Several(parts) });
            }
            self.problem("its parts have no boundaries");
        }
        let disposition = headers.content_type("Content-Disposition");
        let name = disposition.as_ref().and_then(|found| found.attribute("filename"));
        let name = name.or_else(|| content_type.as_ref().and_then(|found| found.attribute("name")));
        let name = name.map(one_line).filter(|name| !name.is_empty());
        let is_attachment = disposition.as_ref().is_some_and(ContentType::is_attachment);
        let is_inline = disposition.as_ref().is_some_and(ContentType::is_inline);
        let media_type = format!("{kind}/{subtype}");
        let leaf = Leaf { encoding: encoding(headers), content_type, body };
        if media_type == "text/calendar" || media_type == "application/ics" {
            let found = calendar::read(&leaf.text().text);
            let is_read = !found.is_empty();
            for invitation in found {
                if self.invitations.len() < MAX_INVITATIONS && !self.invitations.contains(&invitation) {
                    self.invitations.push(invitation);
                }
            }
            if is_read && name.is_none() {
                return None; // there is no file that people could look for
            }
        }
        let text = match subtype.as_str() {
            "html" if kind == "text" => Some(Part::Html as fn(Leaf<'a>) -> Part<'a>),
            "plain" if kind == "text" => Some(Part::Plain as fn(Leaf<'a>) -> Part<'a>),
            _ if kind == "multipart" => Some(Part::Plain as fn(Leaf<'a>) -> Part<'a>),
            _ => None,
        };
        let is_file = name.is_some() && !around.is_alternative;
        if let Some(text) = text.filter(|_| !is_attachment && (!is_file || is_inline)) {
            if !is_file || around.depth == 0 {
                return Some(text(leaf));
            }
            self.attach(name.clone(), media_type, leaf.decoded_size());
            return Some(Part::Several(vec![Part::Named(name, "attachment".to_owned()), text(leaf)]));
        }
        let id = headers.ids("Content-ID").into_iter().next();
        let is_within_html = around.is_related && id.is_some();
        self.images.extend(id.map(|id| (id, name.clone().unwrap_or_default())));
        if kind == "text" && !is_attachment && (text.is_some() || READABLE.contains(&subtype.as_str())) {
            let text = text.unwrap_or(Part::Plain as fn(Leaf<'a>) -> Part<'a>);
            self.files.push((self.attachments.len(), text(leaf.clone())));
        }
        self.attach(name.clone(), media_type, leaf.decoded_size());
        let is_signature = subtype.ends_with("signature");
        let kind = if kind == "image" { kind } else { "attachment".to_owned() };
        (!is_signature && !is_within_html).then_some(Part::Named(name, kind))
    }

    /// Reads the parts between the boundaries. Returns `None` if there are none.
    fn read_parts(&mut self, boundary: &[u8], body: &'a [u8], around: Around) -> Option<Vec<Part<'a>>> {
        if boundary.is_empty() {
            return None;
        }
        let mut parts = Vec::new();
        let mut start = None;
        let mut is_found = false;
        let mut at = 0;
        for line in body.split_inclusive(|byte| *byte == b'\n') {
            if let Some(is_last) = boundary_line(line, boundary) {
                if let Some(start) = start {
                    parts.extend(self.read_part(without_line_end(&body[start..at]), around));
                }
                is_found = true;
                start = (!is_last).then_some(at + line.len());
                if is_last || self.number >= MAX_PARTS {
                    break;
                }
            }
            at += line.len();
        }
        if self.number >= MAX_PARTS {
            self.problem("it has more than 1,000 parts");
        } else if let Some(start) = start {
            // The last boundary is missing, as in a message that was cut.
            parts.extend(self.read_part(&body[start..], around));
        }
        is_found.then_some(parts)
    }

    fn read_part(&mut self, part: &'a [u8], around: Around) -> Option<Part<'a>> {
        if self.number >= MAX_PARTS {
            return None;
        }
        let (headers, body) = Headers::split(part);
        self.read(&headers, body, around)
    }

    fn attach(&mut self, name: Option<String>, media_type: String, size: u64) {
        if self.attachments.len() < MAX_ATTACHMENTS {
            let name = name.unwrap_or_else(|| "unnamed".to_owned());
            self.attachments.push(Attachment { name, media_type, size });
        } else {
            self.problem("it has more than 100 attachments");
        }
    }

    fn problem(&mut self, problem: &'static str) {
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }
}

impl Leaf<'_> {
    /// Decodes the text. What cannot be decoded is replaced or left as it is.
    pub(super) fn text(&self) -> Text {
        let is_cut = self.body.len() > MAX_ENCODED_BYTES;
        let encoded = &self.body[..self.body.len().min(MAX_ENCODED_BYTES)];
        let bytes = match self.encoding {
            Encoding::Identity => encoded.to_vec(),
            Encoding::QuotedPrintable => from_quoted_printable(encoded),
            Encoding::Base64 => from_base64(encoded),
        };
        let charset = self.content_type.as_ref().and_then(|found| found.attribute("charset"));
        let text = Guess::default().decode_named(&bytes, charset, is_cut);
        Text { text, is_cut, ends_by_transport: self.encoding != Encoding::Base64 }
    }

    /// Returns the size after decoding, in bytes, without decoding.
    fn decoded_size(&self) -> u64 {
        let bytes = self.body;
        (match self.encoding {
            Encoding::Identity => bytes.len(),
            Encoding::Base64 => bytes.iter().filter(|byte| is_base64(**byte)).count() * 3 / 4,
            Encoding::QuotedPrintable => {
                let escapes = bytes.iter().filter(|byte| **byte == b'=').count();
                let soft_breaks = bytes.windows(3).filter(|found| *found == b"=\r\n").count();
                bytes.len().saturating_sub(2 * escapes + soft_breaks)
            }
        }) as u64
    }
}

/// Returns type and subtype in lower case. A part without a usable type is plain text, or a message in a digest.
fn kind(content_type: Option<&ContentType<'_>>, is_digest: bool) -> (String, String) {
    let found = content_type.and_then(|found| Some((found.ctype(), found.subtype()?)));
    let (kind, subtype) = found.unwrap_or(if is_digest { ("message", "rfc822") } else { ("text", "plain") });
    let token = |text: &str| {
        let token: String = text.chars().filter(char::is_ascii_graphic).take(60).collect();
        token.to_ascii_lowercase()
    };
    (token(kind), token(subtype))
}

fn encoding(headers: &Headers<'_>) -> Encoding {
    match headers.raw("Content-Transfer-Encoding").unwrap_or_default().to_ascii_lowercase().as_str() {
        "base64" => Encoding::Base64,
        "quoted-printable" => Encoding::QuotedPrintable,
        _ => Encoding::Identity,
    }
}

/// Returns `Some` for the line of a boundary: true if it is the last one.
fn boundary_line(line: &[u8], boundary: &[u8]) -> Option<bool> {
    let rest = line.strip_prefix(b"--")?.strip_prefix(boundary)?.trim_ascii_end();
    match rest {
        b"" => Some(false),
        b"--" => Some(true),
        _ => None,
    }
}

/// Removes the end of the last line, which belongs to the boundary after it.
fn without_line_end(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}

/// Decodes quoted-printable line by line if it is not valid as a whole, so that only the wrong lines stay encoded.
fn from_quoted_printable(encoded: &[u8]) -> Vec<u8> {
    quoted_printable_decode(encoded).unwrap_or_else(|| {
        let lines = encoded.split_inclusive(|byte| *byte == b'\n');
        lines.flat_map(|line| quoted_printable_decode(line).unwrap_or_else(|| line.to_vec())).collect()
    })
}

/// Decodes base64, without the characters that do not belong to it. The padding may be missing.
pub(super) fn from_base64(encoded: &[u8]) -> Vec<u8> {
    let mut clean: Vec<u8> = encoded.iter().copied().filter(|byte| is_base64(*byte) || *byte == b'=').collect();
    let rest = clean.iter().filter(|byte| is_base64(**byte)).count() % 4;
    if rest == 1 && clean.last().is_some_and(|byte| is_base64(*byte)) {
        clean.pop();
    }
    clean.push(b'=');
    base64_decode(&clean).unwrap_or_default()
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')
}
