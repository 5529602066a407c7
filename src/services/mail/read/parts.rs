//! The parts of a message: found by their boundaries, without recursion into anything that is not needed.
//!
//! The parsers of whole messages keep nested messages as nested values and search each boundary to the end, so that a
//! hostile message can exhaust the stack or take quadratic time. Here, depth and number of the parts are limited, and a
//! nested message is an attachment. The text of a part is decoded by `mail-parser`.

use mail_parser::{
    ContentType,
    decoders::{base64::base64_decode, charsets::map::charset_decoder, quoted_printable::quoted_printable_decode},
};

use super::headers::Headers;
use crate::{address::one_line, mail::Attachment};

/// The maximum depth of parts within parts.
const MAX_DEPTH: usize = 20;
/// The maximum number of parts that are read.
const MAX_PARTS: usize = 1_000;
/// The maximum number of attachments that are listed.
const MAX_ATTACHMENTS: usize = 100;
/// The maximum length of a text before decoding, in bytes. Longer ones are cut.
const MAX_ENCODED_BYTES: usize = 4 * 1024 * 1024;

/// The texts and attachments of a message.
#[derive(Debug, Default)]
pub(super) struct Parts<'a> {
    /// The parts with plain text that are not attachments.
    pub(super) plain: Vec<Leaf<'a>>,
    /// The parts with HTML that are not attachments.
    pub(super) html: Vec<Leaf<'a>>,
    /// The attachments, at most [`MAX_ATTACHMENTS`].
    pub(super) attachments: Vec<Attachment>,
    /// Reasons why something could not be read.
    pub(super) problems: Vec<&'static str>,
    number: usize,
}

/// A part without parts of its own.
#[derive(Debug)]
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

impl<'a> Parts<'a> {
    /// Finds the parts of a message with these headers and this body.
    pub(super) fn of(headers: &Headers<'_>, body: &'a [u8]) -> Self {
        let mut parts = Self::default();
        parts.add(headers, body, false, 0);
        parts
    }

    fn add(&mut self, headers: &Headers<'_>, body: &'a [u8], is_digest: bool, depth: usize) {
        self.number += 1;
        let content_type = headers.content_type("Content-Type");
        let (kind, subtype) = kind(content_type.as_ref(), is_digest);
        if kind == "multipart" {
            let boundary = content_type.as_ref().and_then(|found| found.attribute("boundary")).unwrap_or_default();
            if depth >= MAX_DEPTH {
                return self.problem("its parts are nested too deeply");
            }
            if self.add_parts(boundary.as_bytes(), body, subtype == "digest", depth) {
                return;
            }
            self.problem("its parts have no boundaries");
        }
        let is_text = kind == "text" || kind == "multipart";
        let disposition = headers.content_type("Content-Disposition");
        let name = disposition.as_ref().and_then(|found| found.attribute("filename"));
        let name = name.or_else(|| content_type.as_ref().and_then(|found| found.attribute("name")));
        let is_inline = disposition.as_ref().is_some_and(ContentType::is_inline);
        let is_attachment =
            disposition.as_ref().is_some_and(ContentType::is_attachment) || name.is_some() && !is_inline;
        let name = name.map(one_line).filter(|name| !name.is_empty());
        let media_type = format!("{kind}/{subtype}");
        let leaf = Leaf { encoding: encoding(headers), content_type, body };
        match subtype.as_str() {
            "html" if is_text && !is_attachment => self.html.push(leaf),
            _ if is_text && !is_attachment && (subtype == "plain" || kind == "multipart") => {
                if !self.plain.is_empty() {
                    self.attach(name, media_type, leaf.decoded_size());
                }
                self.plain.push(leaf);
            }
            _ => self.attach(name, media_type, leaf.decoded_size()),
        }
    }

    /// Adds the parts between the boundaries. Returns false if there are none.
    fn add_parts(&mut self, boundary: &[u8], body: &'a [u8], is_digest: bool, depth: usize) -> bool {
        if boundary.is_empty() {
            return false;
        }
        let mut start = None;
        let mut is_found = false;
        let mut at = 0;
        for line in body.split_inclusive(|byte| *byte == b'\n') {
            if let Some(is_last) = boundary_line(line, boundary) {
                if let Some(start) = start {
                    self.add_part(without_line_end(&body[start..at]), is_digest, depth);
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
            self.add_part(&body[start..], is_digest, depth);
        }
        is_found
    }

    fn add_part(&mut self, part: &'a [u8], is_digest: bool, depth: usize) {
        if self.number < MAX_PARTS {
            let (headers, body) = Headers::split(part);
            self.add(&headers, body, is_digest, depth + 1);
        }
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
        let decoder = charset.filter(|name| !is_utf8(name)).and_then(|name| charset_decoder(name.trim().as_bytes()));
        let text = match decoder {
            Some(decode) => decode(&bytes),
            None => String::from_utf8(bytes).unwrap_or_else(|error| without_charset(error.as_bytes(), charset, is_cut)),
        };
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
fn from_base64(encoded: &[u8]) -> Vec<u8> {
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

fn is_utf8(charset: &str) -> bool {
    let charset = charset.trim();
    charset.eq_ignore_ascii_case("utf-8") || charset.eq_ignore_ascii_case("utf8")
}

/// Decodes bytes that are not UTF-8 and whose character set is not known: Windows-1252 is the usual one, except in a
/// text that says it is UTF-8 or was cut within a character.
fn without_charset(bytes: &[u8], charset: Option<&str>, is_cut: bool) -> String {
    let decoder = charset_decoder(b"windows-1252").filter(|_| !is_cut && !charset.is_some_and(is_utf8));
    decoder.map_or_else(|| String::from_utf8_lossy(bytes).into_owned(), |decode| decode(bytes))
}
