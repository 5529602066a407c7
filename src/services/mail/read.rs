//! From the bytes of a message to a [`Mail`]. Never fails, and takes time and memory in proportion to the size.

mod authentication;
mod body;
mod calendar;
mod charset;
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
use self::{body::Body, headers::Headers, parts::Parts};
use crate::{
    address::{is_invisible, one_line_of},
    mail::{MAX_SUBJECT_CHARS, Mail, RawMail, Warning},
};

/// The maximum number of recipients that are kept of each header.
const MAX_RECIPIENTS: usize = 50;
/// The number of recipients from which there is a warning.
const MANY_RECIPIENTS: usize = 50;
/// The maximum number of ids in `References` that are kept: the first one and the newest.
const MAX_REFERENCES: usize = 30;
/// The maximum number of problems that are reported.
const MAX_PROBLEMS: usize = 5;

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
            Self { warnings, ..Self::of_server(raw) }
        })
    }
}

fn read(raw: &RawMail) -> Mail {
    let (mut headers, body) = Headers::split(&raw.bytes);
    let mut parts = Parts::of(&headers, body);
    headers.guess_by(parts.charset.as_deref());
    let mut mail = Mail::of_server(raw);
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
    mail.list = signs::list(&headers);

    let mut problems: Vec<&str> = parts.problems.clone();
    if headers.is_empty() {
        problems.insert(0, "it has no headers");
    }
    if headers.count("From") > 1 {
        problems.push("it names several senders");
    }
    let body = Body::of(&mut parts);
    mail.text = body.text;
    mail.is_cut = raw.is_cut || body.is_cut;
    (mail.attachments, mail.invitations) = (parts.attachments, parts.invitations);

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
