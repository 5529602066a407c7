//! From the bytes of a message to a [`Mail`]. Never fails, and takes time and memory in proportion to the size.

mod authentication;
mod headers;
mod html;
mod links;
mod parts;
mod signs;
mod style;
#[cfg(test)]
mod tests;
mod text;

use std::panic::{AssertUnwindSafe, catch_unwind};

pub(crate) use self::headers::is_message_id;
use self::{
    headers::Headers,
    parts::{Leaf, Parts},
    text::plain,
};
use crate::{
    address::{is_invisible, one_line_of},
    mail::{Authentication, MAX_SUBJECT_CHARS, MAX_TEXT_CHARS, Mail, RawMail, Warning},
};

/// The maximum number of recipients that are kept of each header.
const MAX_RECIPIENTS: usize = 50;
/// The number of recipients from which there is a warning.
const MANY_RECIPIENTS: usize = 50;
/// The maximum number of ids in `References` that are kept: the first one and the newest.
const MAX_REFERENCES: usize = 30;
/// The maximum number of problems that are reported.
const MAX_PROBLEMS: usize = 5;

/// The text of a message, and what was noticed in it.
#[derive(Default)]
struct Body {
    text: String,
    is_cut: bool,
    warnings: Vec<Warning>,
}

/// Returns true if a message has a header with this name.
pub(crate) fn has_header(message: &[u8], name: &str) -> bool {
    Headers::split(message).0.count(name) > 0
}

impl Mail {
    /// Reads a message. Never fails: the parts of a broken message that can be saved are kept, and
    /// [`Warning::Unreadable`] says what is missing.
    pub fn read(raw: &RawMail) -> Self {
        // The decoders belong to a library, and a mail must not be lost because of a fault in one of them.
        catch_unwind(AssertUnwindSafe(|| read(raw))).unwrap_or_else(|_| {
            let warnings = vec![Warning::Unreadable("it could not be decoded".to_owned()), Warning::NoSender];
            Self { warnings, ..empty(raw) }
        })
    }
}

fn read(raw: &RawMail) -> Mail {
    let (headers, body) = Headers::split(&raw.bytes);
    let mut mail = empty(raw);
    mail.from = headers.address("From");
    mail.reply_to = headers.address("Reply-To");
    let (to, cc) = (headers.recipients("To", MAX_RECIPIENTS), headers.recipients("Cc", MAX_RECIPIENTS));
    mail.recipients = to.number + cc.number;
    (mail.to, mail.cc) = (to.first, cc.first);
    let subject = headers.text("Subject").unwrap_or_default();
    mail.subject = one_line_of(&subject, MAX_SUBJECT_CHARS);
    mail.message_id = headers.ids("Message-ID").into_iter().next();
    mail.references = references(&headers);
    mail.authentication = authentication::results(&headers);
    mail.automatic = signs::automatic(&headers, mail.from.as_ref());

    let parts = Parts::of(&headers, body);
    let mut problems: Vec<&str> = parts.problems.clone();
    if headers.is_empty() {
        problems.insert(0, "it has no headers");
    }
    if headers.count("From") > 1 {
        problems.push("it names several senders");
    }
    let body = text_of(&parts);
    mail.text = body.text;
    mail.is_cut = raw.is_cut || body.is_cut;
    mail.attachments = parts.attachments;

    let mut warnings = Vec::new();
    if mail.from.is_none() {
        warnings.push(Warning::NoSender);
    }
    warnings.extend(authentication::failure(&mail.authentication).map(Warning::AuthenticationFailed));
    let elsewhere =
        mail.reply_to.clone().filter(|reply_to| mail.from.as_ref().is_some_and(|from| !from.is_same_mailbox(reply_to)));
    warnings.extend(elsewhere.map(Warning::ReplyToElsewhere));
    if subject.chars().any(is_invisible) && !body.warnings.contains(&Warning::InvisibleCharacters) {
        warnings.push(Warning::InvisibleCharacters);
    }
    warnings.extend(body.warnings);
    if mail.recipients > MANY_RECIPIENTS {
        warnings.push(Warning::ManyRecipients(mail.recipients));
    }
    if mail.is_cut {
        warnings.push(Warning::Truncated { size: raw.size });
    }
    warnings.extend(problems.into_iter().take(MAX_PROBLEMS).map(|problem| Warning::Unreadable(problem.to_owned())));
    mail.warnings = warnings;
    mail
}

/// Returns a mail of which only the server's own data are known.
fn empty(raw: &RawMail) -> Mail {
    Mail {
        id: raw.id.clone(),
        thread: raw.thread.clone(),
        from: None,
        reply_to: None,
        to: Vec::new(),
        cc: Vec::new(),
        recipients: 0,
        subject: String::new(),
        received_at: raw.received_at,
        message_id: None,
        references: Vec::new(),
        text: String::new(),
        is_cut: raw.is_cut,
        attachments: Vec::new(),
        authentication: Authentication::default(),
        automatic: None,
        warnings: Vec::new(),
    }
}

/// Returns the ids of the earlier messages: the first one and the newest.
fn references(headers: &Headers<'_>) -> Vec<String> {
    let mut ids = headers.ids("References");
    if ids.is_empty() {
        ids = headers.ids("In-Reply-To");
    }
    if ids.len() > MAX_REFERENCES {
        let newest = ids.len() - MAX_REFERENCES + 1;
        ids.drain(1..newest);
    }
    ids
}

/// Returns the first plain text that is not empty, or else the first such text in HTML.
fn text_of(parts: &Parts<'_>) -> Body {
    let is_single = parts.plain.len() + parts.html.len() + parts.attachments.len() == 1;
    let mut bodies = parts.plain.iter().map(|leaf| from_plain(leaf, is_single)).chain(parts.html.iter().map(from_html));
    let mut empty = Body::default();
    let found = bodies.find_map(|body| {
        if !body.text.trim().is_empty() {
            return Some(body);
        }
        if empty.warnings.is_empty() {
            empty = body;
        }
        None
    });
    found.unwrap_or(empty)
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

fn from_html(leaf: &Leaf<'_>) -> Body {
    let decoded = leaf.text();
    let seen = html::visible(&decoded.text, MAX_TEXT_CHARS);
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
