//! The card on which a person decides about an answer.
//!
//! It shows the mail, everything that speaks for or against the answer, and the answer exactly as it will be sent. The
//! mail and the answer are quotations, which are shown character by character; all other texts from outside are plain text
//! of the card, which the renderer escapes.

use countersign_core::reply::{Card, Fact, Text};
use countersign_graph::digest::Digest;
use countersign_mail::{Address, Authentication, Invitation, Mail, Warning, topic};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    register::Entry,
    replies,
    rules::{Band, Class, Source, cut},
    send::SendParameters,
    why::{Why, because},
};

/// The maximum length of a mail's text on a card, in characters. A longer mail is also a file in the thread.
const MAX_MAIL_CHARS: usize = 4_000;

/// The maximum length of a name in a title, in characters.
pub(super) const MAX_NAME_CHARS: usize = 60;

/// The maximum number of recipients that are named.
const MAX_PEOPLE: usize = 10;

/// The maximum length of a subject in a title, in characters.
const MAX_TITLE_CHARS: usize = 80;

/// The facts about an answer that the card shows and that are not in the mail. They are stored with the answer, so that
/// an edited version shows them as well.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct About {
    /// The class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    /// The confidence of the class.
    pub confidence: f64,
    /// The source of the class.
    pub classified_by: Source,
    /// The source of the draft.
    pub drafted_by: Source,
    /// What was looked up, in words for people.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub looked_up: Vec<Text>,
    /// The reasons why a person decides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<Why>,
    /// The digest of the draft as it was written, to recognize an edited one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draft: Option<Digest>,
}

/// Returns the digest of a draft.
pub(super) fn digest_of(draft: &str) -> Digest {
    Digest::of(&[&json!(draft.replace("\r\n", "\n").trim())])
}

/// Returns the name of a person, or else the address.
pub(super) fn name_of(address: &Address) -> String {
    cut(address.name.as_deref().unwrap_or(&address.address), MAX_NAME_CHARS)
}

/// Makes the card of an answer. `may_have_been_answered` is true if the outcome of an earlier answer is not known;
/// `link` opens the mail in a browser.
pub(super) fn card(
    mail: &Mail,
    answer: &SendParameters,
    (newer, may_have_been_answered): (Option<&Entry>, bool),
    link: Option<&str>,
) -> Card {
    let About { class, confidence, classified_by, drafted_by, looked_up, why, draft } = &answer.about;
    let is_edited = draft.as_ref().is_some_and(|draft| !draft.is(&digest_of(&answer.text)));
    let name = name_of(&answer.to);
    let subject = title_of(&mail.subject);
    let from = mail.sender().unwrap_or(&answer.to);
    let mut facts = vec![Fact::new("From", exactly(from.to_string()))];
    facts.extend(people(&mail.to).map(|to| Fact::new("To", to)));
    facts.extend(people(&mail.cc).map(|cc| Fact::new("Cc", cc)));
    if let Some(authenticated) = authentication(&mail.authentication) {
        facts.push(Fact::new("Sender check", authenticated));
    }
    facts.push(Fact::new("Received", Text::new().moment(mail.received_at)));
    if subject != topic(&mail.subject) || has_marks(&subject) {
        facts.push(Fact::new("Subject", exactly(mail.subject.clone()))); // the title does not show it exactly
    }
    facts.extend(mail.invitations.iter().map(|invitation| Fact::new("Invitation", event(invitation))));
    facts.extend(attachments(mail).map(|names| Fact::new("Attachments", names)));
    facts.push(Fact::new("Email", Text::new().quote(shown_text(mail))));
    if let Some(class) = class {
        facts.push(Fact::new("Class", class_line(*class, *confidence, *classified_by)));
    }
    if !looked_up.is_empty() {
        let joined = looked_up.iter().cloned().reduce(|all, next| all.plain("; ").join(next));
        facts.push(Fact::new("Looked up", joined.unwrap_or_default()));
    }
    if !why.is_empty() {
        facts.push(Fact::new("Waiting because", because(why)));
    }
    facts.push(Fact::new("Reply subject", exactly(answer.subject.clone())));
    facts.push(Fact::new("Reply", Text::new().quote(&*answer.text)));
    let mut warnings: Vec<Text> = mail.warnings.iter().map(|warning| self::warning(warning, mail, answer)).collect();
    if *class == Some(Class::Spam) {
        warnings.push("This may be spam.".into());
    }
    warnings.extend(newer.map(|newer| replies::newer_line(newer).plain(". This reply answers the earlier one.")));
    if may_have_been_answered {
        let words = "An earlier reply to this email may have been sent. Check the mailbox before you send another one.";
        warnings.push(words.into());
    }
    if let Some(sign) = &mail.automatic {
        warnings.push(Text::from(format!("This email is {sign}.")));
    }
    let mut notes = vec![Text::from(format!("Goes only to {}. A sent reply can't be taken back.", answer.to.address))];
    if *drafted_by == Source::Rules && !is_edited {
        notes.push("This draft comes from a template, not from a language model.".into());
    }
    notes.extend(link.map(|link| Text::new().link(link, "Open in the mailbox")));
    Card {
        title: match subject.is_empty() {
            true => format!("Send reply to {name} (no subject)?"),
            false => format!("Send reply to {name} about “{subject}”?"),
        },
        facts,
        warnings,
        notes,
        approve: "Send".to_owned(),
        reject: Card::REJECT.to_owned(),
        done: format!("Sent the reply to {name}."),
        editable: true,
        ..Card::default()
    }
}

/// Returns true if something speaks against sending an answer without a second look.
pub(super) fn is_risky(mail: &Mail, about: &About, newer: Option<&Entry>, may_have_been_answered: bool) -> bool {
    let is_dangerous = mail.warnings.iter().any(|warning| warning.danger().is_some());
    is_dangerous || about.class == Some(Class::Spam) || newer.is_some() || may_have_been_answered
}

/// Returns a warning about a mail, with what can be done about it.
fn warning(warning: &Warning, mail: &Mail, answer: &SendParameters) -> Text {
    match (warning, mail.sender()) {
        (Warning::ReplyToElsewhere(address), Some(sender)) if answer.to.is_same_mailbox(address) => {
            let text = format!("This reply goes to {address}, as the email asks, and not to its sender, {sender}.");
            text.into()
        }
        (Warning::ReplyToElsewhere(_), _) => {
            Text::from(format!("{warning} To change that, use ")).bold("Edit…").plain(".")
        }
        _ => warning.to_string().into(),
    }
}

/// Names people; `None` if there are none.
fn people(people: &[Address]) -> Option<Text> {
    let named: Vec<String> = people.iter().take(MAX_PEOPLE).map(ToString::to_string).collect();
    let named = named.join(", ");
    match people.len().saturating_sub(MAX_PEOPLE) {
        _ if named.is_empty() => None,
        0 => Some(exactly(named)),
        more => Some(exactly(format!("{named} and {more} more"))),
    }
}

/// Returns the names of the attachments; `None` if there are none.
pub(super) fn attachments(mail: &Mail) -> Option<String> {
    let names: Vec<_> = mail.attachments.iter().map(|attachment| attachment.name.as_str()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Describes an event as it is written, with its start for the reader.
fn event(invitation: &Invitation) -> Text {
    let text = Text::from(invitation.to_string());
    match invitation.start.at {
        Some(at) => text.plain("; in your time zone: ").moment(at),
        None => text,
    }
}

/// Returns the subject of a mail for the title of a card; empty if there is none.
pub(super) fn title_of(subject: &str) -> String {
    cut(topic(subject), MAX_TITLE_CHARS)
}

/// Returns a text that is shown character by character, as a quotation if a line of a card could not do that.
pub(super) fn exactly(words: String) -> Text {
    if has_marks(&words) { Text::new().quote(words) } else { words.into() }
}

/// Returns true if the text has characters that may begin a format in Slack, which are shown as look-alikes on a line.
fn has_marks(words: &str) -> bool {
    let mut previous = ' ';
    words.chars().any(|c| {
        let begins = c == '`' || "*_~".contains(c) && !previous.is_alphanumeric();
        previous = c;
        begins
    })
}

/// Returns the text of the mail, with the length of the rest.
pub(super) fn shown_text(mail: &Mail) -> String {
    let text = mail.text.trim();
    if text.is_empty() {
        return "(no text)".to_owned();
    }
    let shown = cut(text, MAX_MAIL_CHARS);
    match text.chars().count() - shown.chars().count() {
        0 if mail.is_cut => format!("{shown}… (cut)"),
        0 => shown,
        left_out => format!("{shown}… ({left_out} more characters)"),
    }
}

/// Returns the class with its confidence and its source: “inquiry · 0.92 (high)”.
pub(super) fn class_line(class: Class, confidence: f64, by: Source) -> String {
    let line = format!("{} · {:.2} ({})", class.name(), confidence, Band::of(confidence).name());
    match by {
        Source::Rules => format!("{line}, from keywords"),
        Source::Person => format!("{}, set manually", class.name()),
        Source::Nothing => format!("{line}; classification failed"),
        Source::Model => line,
    }
}

/// Returns the results of the sender checks: “SPF pass · DMARC fail”.
fn authentication(results: &Authentication) -> Option<String> {
    let checks = [("SPF", &results.spf), ("DKIM", &results.dkim), ("DMARC", &results.dmarc)];
    let known = checks.iter().filter_map(|(name, result)| Some(format!("{name} {}", result.as_deref()?)));
    let known: Vec<_> = known.collect();
    (!known.is_empty()).then(|| known.join(" · "))
}
