//! The rules of the mail graph that need no model: classes, tools, and the line between an answer that may be sent
//! without a person and one that asks.
//!
//! Everything here is a pure function, so each boundary has a test below.

use std::{collections::BTreeMap, fmt, time::Duration};

use countersign_mail::{Address, Automatic, Mail, Warning};
use serde::{Deserialize, Serialize};

use super::why::Why;

/// The confidence from which an answer may be sent without a person, and from which spam counts as sure, unless the
/// settings say otherwise.
pub const SURE: f64 = 0.8;

/// The maximum duration of a run, after which a person decides.
pub const RUN_LIMIT: Duration = Duration::from_secs(60);

/// The maximum length of a mail's text for a model, in characters.
pub const MAX_MODEL_CHARS: usize = 4_000;

/// The maximum length of a draft, in characters: the form in which a person edits it takes no more.
pub const MAX_DRAFT_CHARS: usize = 2_900;

/// The class of a mail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// A question.
    Inquiry,
    /// A request for a meeting.
    MeetingRequest,
    /// A complaint.
    Complaint,
    /// A mail that continues an earlier exchange.
    FollowUp,
    /// Unwanted mail.
    Spam,
    /// Any other mail.
    #[default]
    Other,
}

impl Class {
    /// All classes, in the order of the rules.
    pub const ALL: [Self; 6] =
        [Self::Inquiry, Self::MeetingRequest, Self::Complaint, Self::FollowUp, Self::Spam, Self::Other];

    /// Returns the class with this label. An unknown label counts as [`Self::Other`].
    pub fn parse(label: &str) -> Self {
        let label = label.trim().to_lowercase().replace([' ', '-'], "_");
        Self::ALL.into_iter().find(|class| class.as_str() == label).unwrap_or_default()
    }

    /// Returns the label, as stored and as models use it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Inquiry => "inquiry",
            Self::MeetingRequest => "meeting_request",
            Self::Complaint => "complaint",
            Self::FollowUp => "follow_up",
            Self::Spam => "spam",
            Self::Other => "other",
        }
    }

    /// Returns the name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inquiry => "inquiry",
            Self::MeetingRequest => "meeting request",
            Self::Complaint => "complaint",
            Self::FollowUp => "follow-up",
            Self::Spam => "spam",
            Self::Other => "other",
        }
    }

    /// Returns the tone of an answer; `None` for spam, which is not answered.
    pub fn tone(self) -> Option<&'static str> {
        match self {
            Self::Inquiry | Self::MeetingRequest | Self::Other => Some("professional"),
            Self::Complaint => Some("empathetic"),
            Self::FollowUp => Some("friendly"),
            Self::Spam => None,
        }
    }

    /// Returns the tools that may run for a mail of this class, in order. `is_known` is true if the sender is a contact.
    pub fn tools(self, is_known: bool) -> &'static [Tool] {
        match self {
            Self::Inquiry if !is_known => &[Tool::CreateDraft],
            Self::Inquiry | Self::Complaint | Self::FollowUp => &[Tool::GetContact, Tool::CreateDraft],
            Self::MeetingRequest => &[Tool::CheckCalendar, Tool::CreateDraft],
            Self::Spam => &[],
            Self::Other => &[Tool::CreateDraft],
        }
    }

    /// Returns true if an answer may be sent without a person at all.
    pub fn may_be_automatic(self) -> bool {
        !matches!(self, Self::Complaint | Self::Spam)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A tool of the mail graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tool {
    /// Sends a mail. It is never a tool that runs: sending is an action that is decided.
    SendEmail,
    /// Makes a draft in the mail account. It is part of sending, since there is no text before.
    CreateDraft,
    /// Reads the free times of the calendar.
    CheckCalendar,
    /// Makes an event. It never runs.
    CreateEvent,
    /// Reads the contact of the sender.
    GetContact,
    /// Changes a contact. It never runs.
    UpdateContact,
}

impl Tool {
    /// All tools.
    pub const ALL: [Self; 6] = [
        Self::SendEmail,
        Self::CreateDraft,
        Self::CheckCalendar,
        Self::CreateEvent,
        Self::GetContact,
        Self::UpdateContact,
    ];

    /// Returns the tool with this name; `None` if there is no such tool.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.as_str() == name.trim())
    }

    /// Returns the name for people of what the tool reads; `None` if it reads nothing.
    pub fn source(self) -> Option<&'static str> {
        match self {
            Self::CheckCalendar => Some("calendar"),
            Self::GetContact => Some("contacts"),
            Self::SendEmail | Self::CreateDraft | Self::CreateEvent | Self::UpdateContact => None,
        }
    }

    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SendEmail => "send_email",
            Self::CreateDraft => "create_draft",
            Self::CheckCalendar => "check_calendar",
            Self::CreateEvent => "create_event",
            Self::GetContact => "get_contact",
            Self::UpdateContact => "update_contact",
        }
    }
}

/// Returns a confidence between 0 and 1; 0 for a value that is no number.
pub fn clamped(confidence: f64) -> f64 {
    if confidence.is_nan() { 0.0 } else { confidence.clamp(0.0, 1.0) }
}

/// Returns true if a mail is spam that needs no answer and no person.
pub fn is_sure_spam(class: Class, confidence: f64, settings: &AutomaticSettings) -> bool {
    class == Class::Spam && confidence >= settings.threshold_of(Class::Spam)
}

/// Returns what a mail is that needs no answer, after “This email is”; `None` for all others. Such a mail was sent by a
/// program that waits for none, or by the account itself. A list whose mails go to the account brings mails of people, and
/// a program that names another address for answers passes them on.
pub fn needs_no_answer(mail: &Mail, is_us: impl Fn(&str) -> bool) -> Option<String> {
    if mail.sender().is_some_and(|sender| is_us(&sender.address)) {
        return Some("from your own address".to_owned());
    }
    let sign = mail.automatic.filter(|sign| sign.needs_no_answer())?;
    let is_passed_on = match sign {
        Automatic::MailingList | Automatic::Precedence => mail.list.as_deref().is_some_and(is_us),
        Automatic::AutoSubmitted => {
            mail.reply_to.as_ref().is_some_and(|to| Some(to) != mail.sender() && !is_us(&to.address))
        }
        _ => false,
    };
    (!is_passed_on).then(|| sign.to_string())
}

/// The band in which people see a confidence. It decides nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Band {
    /// Above 0.9.
    High,
    /// From 0.7 to 0.9.
    Medium,
    /// Below 0.7.
    Low,
}

impl Band {
    /// Returns the band of a confidence.
    pub fn of(confidence: f64) -> Self {
        match confidence {
            high if high > 0.9 => Self::High,
            medium if medium >= 0.7 => Self::Medium,
            _ => Self::Low,
        }
    }

    /// Returns the name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        }
    }
}

/// The source of a class or of a draft.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A language model.
    Model,
    /// The words of the mail, or a template.
    Rules,
    /// A person.
    Person,
    /// Nothing, because it failed.
    #[default]
    Nothing,
}

/// The operator's settings for automatic answers.
#[derive(Clone, Debug, PartialEq)]
pub struct AutomaticSettings {
    /// True if answers may be sent without a person.
    pub is_on: bool,
    /// The confidence that is enough.
    pub threshold: f64,
    /// The confidence that is enough for a class, if it differs.
    pub thresholds: BTreeMap<Class, f64>,
    /// The maximum number of automatic answers a day.
    pub answers_a_day: u32,
    /// The maximum number of automatic answers to one address a day.
    pub answers_to_one_address: u32,
}

impl Default for AutomaticSettings {
    fn default() -> Self {
        Self {
            is_on: false,
            threshold: SURE,
            thresholds: BTreeMap::new(),
            answers_a_day: 50,
            answers_to_one_address: 3,
        }
    }
}

impl AutomaticSettings {
    /// Returns the confidence that is enough for a class.
    pub fn threshold_of(&self, class: Class) -> f64 {
        clamped(self.thresholds.get(&class).copied().unwrap_or(self.threshold))
    }
}

/// The number of automatic answers that were sent today.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// To any address.
    pub today: u32,
    /// To the sender of the mail.
    pub to_sender: u32,
}

/// The facts that decide whether an answer may be sent without a person.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// The mail; `None` if it could not be read.
    pub mail: Option<&'a Mail>,
    /// The class.
    pub class: Class,
    /// The confidence of the class.
    pub confidence: f64,
    /// The source of the class.
    pub classified_by: Source,
    /// The draft.
    pub draft: &'a str,
    /// The source of the draft.
    pub drafted_by: Source,
    /// The failures that decide nothing by themselves but that a person should judge, each as a sentence.
    pub failures: &'a [String],
    /// The texts that the draft's model was shown in addition to the mail.
    pub context: &'a [String],
    /// True if a person asked for the draft.
    pub is_asked: bool,
    /// True if the mail comes from one of our own addresses.
    pub is_from_us: bool,
    /// True if a newer mail came in the same conversation.
    pub has_newer: bool,
    /// The automatic answers sent today; `None` if that could not be read.
    pub used: Option<Used>,
}

/// Returns the reasons why a person decides; none if the answer may be sent by the operator's setting.
pub fn reasons(facts: &Facts<'_>, settings: &AutomaticSettings) -> Vec<Why> {
    let mut reasons = Vec::new();
    if facts.is_asked || facts.classified_by == Source::Person {
        reasons.push(Why::Asked);
    }
    if facts.class == Class::Complaint {
        reasons.push(Why::Complaint);
    }
    if facts.class == Class::Spam {
        reasons.push(Why::MaybeSpam);
    }
    let needed = settings.threshold_of(facts.class);
    if clamped(facts.confidence) < needed {
        reasons.push(Why::Unsure { needed });
    }
    reasons.extend(facts.failures.iter().map(|what| Why::Failed { what: what.clone() }));
    if facts.draft.trim().is_empty() {
        reasons.push(Why::NoDraft);
    }
    let is_classified = matches!(facts.classified_by, Source::Model | Source::Person);
    if !is_classified || facts.drafted_by != Source::Model && !facts.is_asked {
        reasons.push(Why::WithoutModel);
    }
    if facts.mail.is_some_and(|mail| mail.automatic.is_some()) {
        reasons.push(Why::AutomaticMail);
    }
    if facts.is_from_us {
        reasons.push(Why::FromUs);
    }
    if facts.has_newer {
        reasons.push(Why::Newer);
    }
    if facts.mail.is_none_or(|mail| mail.sender().is_none() || mail.warnings.iter().any(matters)) {
        reasons.push(Why::Suspicious);
    }
    let shown = facts.mail.map_or("", |mail| &mail.text);
    if repeats(facts.draft, facts.context, shown) {
        reasons.push(Why::Repeats);
    }
    if names_addresses(facts.draft, facts.mail) {
        reasons.push(Why::NamesAddresses);
    }
    if !settings.is_on {
        // The limits say nothing while nothing is sent without a person.
        reasons.push(Why::Off);
        return reasons;
    }
    match facts.used {
        None => reasons.push(Why::UsedUnknown),
        Some(used) if used.today >= settings.answers_a_day => {
            reasons.push(Why::DayLimit { limit: settings.answers_a_day });
        }
        Some(used) if used.to_sender >= settings.answers_to_one_address => {
            reasons.push(Why::AddressLimit { limit: settings.answers_to_one_address });
        }
        Some(_) => {}
    }
    reasons
}

/// Returns true if a warning is a reason for a person to decide.
fn matters(warning: &Warning) -> bool {
    match warning {
        Warning::AuthenticationFailed(_)
        | Warning::NoSender
        | Warning::Unreadable(_)
        | Warning::HiddenText
        | Warning::DeceptiveLink { .. }
        | Warning::ReplyToElsewhere(_) => true,
        Warning::InvisibleCharacters | Warning::Truncated { .. } | Warning::ManyRecipients(_) => false,
    }
}

/// The number of words in a row that two texts have in common only if one repeats the other.
const REPEATED_WORDS: usize = 8;

/// Returns true if the draft repeats a part of these texts that is not in the mail itself: a mail may ask the model to
/// pass on what others wrote.
fn repeats(draft: &str, context: &[String], mail: &str) -> bool {
    let words = |text: &str| {
        let split = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        split.map(str::to_lowercase).collect::<Vec<_>>()
    };
    let (draft, mail) = (words(draft), words(mail));
    let context: Vec<_> = context.iter().map(|text| words(text)).collect();
    draft.windows(REPEATED_WORDS).any(|run| {
        let is_in = |text: &Vec<String>| text.windows(REPEATED_WORDS).any(|other| other == run);
        context.iter().any(is_in) && !is_in(&mail)
    })
}

/// Returns true if the draft contains an address that the mail neither comes from nor contains.
fn names_addresses(draft: &str, mail: Option<&Mail>) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "@._+-".contains(c);
    let mut named = draft.split(|c: char| !is_part(c)).map(|word| word.trim_matches('.').to_lowercase());
    named.any(|word| {
        let is_address = word.split_once('@').is_some_and(|(local, domain)| !local.is_empty() && domain.contains('.'));
        is_address
            && !mail.is_some_and(|mail| {
                let own = mail.from.iter().chain(&mail.to).any(|address| address.address == word);
                own || mail.text.to_lowercase().contains(&word)
            })
    })
}

/// Returns the addresses to which an answer can go: the sender's, and the one to which the sender asks to reply, which only
/// a person can choose.
pub fn recipients(mail: &Mail) -> Vec<Address> {
    let other = mail.reply_to.iter().filter(|other| mail.sender().is_some_and(|sender| !sender.is_same_mailbox(other)));
    mail.sender().into_iter().chain(other).cloned().collect()
}

/// Returns at most `max` characters of a text.
pub(crate) fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => text[..end].to_owned(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::support::mail;

    fn facts<'a>(mail: &'a Mail, class: Class, confidence: f64) -> Facts<'a> {
        Facts {
            mail: Some(mail),
            class,
            confidence,
            classified_by: Source::Model,
            draft: "Yes, we do.",
            drafted_by: Source::Model,
            failures: &[],
            context: &[],
            is_asked: false,
            is_from_us: false,
            has_newer: false,
            used: Some(Used::default()),
        }
    }

    fn on() -> AutomaticSettings {
        AutomaticSettings { is_on: true, ..AutomaticSettings::default() }
    }

    #[test]
    fn the_line_is_drawn_at_the_threshold_itself() {
        let mail = mail();
        for (confidence, sends) in [(0.8, true), (0.79999, false), (1.0, true), (7.0, true), (-1.0, false)] {
            let reasons = reasons(&facts(&mail, Class::Inquiry, confidence), &on());
            assert_eq!(reasons.is_empty(), sends, "{confidence}: {reasons:?}");
        }
        let unsure = reasons(&facts(&mail, Class::Inquiry, f64::NAN), &on());
        assert_eq!(unsure, [Why::Unsure { needed: 0.8 }]);
    }

    #[test]
    fn a_complaint_always_asks() {
        let mail = mail();
        assert_eq!(reasons(&facts(&mail, Class::Complaint, 0.99), &on()), [Why::Complaint]);
        let lenient = AutomaticSettings { thresholds: [(Class::Complaint, 0.0)].into(), ..on() };
        assert_eq!(reasons(&facts(&mail, Class::Complaint, 0.99), &lenient), [Why::Complaint]);
    }

    #[test]
    fn spam_is_never_answered_without_a_person() {
        assert!(is_sure_spam(Class::Spam, 0.8, &on()));
        assert!(!is_sure_spam(Class::Spam, 0.79999, &on()));
        assert!(!is_sure_spam(Class::Inquiry, 0.99, &on()));
        let careful = AutomaticSettings { thresholds: [(Class::Spam, 0.95)].into(), ..AutomaticSettings::default() };
        assert!(!is_sure_spam(Class::Spam, 0.94, &careful) && is_sure_spam(Class::Spam, 0.95, &careful));
        let mail = mail();
        assert_eq!(reasons(&facts(&mail, Class::Spam, 0.85), &on()), [Why::MaybeSpam]);
    }

    #[test]
    fn a_mail_for_which_nobody_waits_needs_no_answer() {
        let us = |address: &str| address == "us@example.com";
        let list = |list: &str| Mail { automatic: Some(Automatic::MailingList), list: Some(list.to_owned()), ..mail() };
        let form = Mail {
            automatic: Some(Automatic::AutoSubmitted),
            reply_to: Address::parse("kim@customer.example"),
            ..mail()
        };
        let no_reply = Mail { automatic: Some(Automatic::NoReply), ..mail() };
        for (mail, words) in [
            (mail(), None),
            (list("news@shop.example"), Some("a mailing list message")),
            (list("us@example.com"), None),
            (Mail { automatic: Some(Automatic::NullReturnPath), ..mail() }, Some("a message from a mail system")),
            (Mail { reply_to: None, ..form.clone() }, Some("an automatic message")),
            (form, None),
            (no_reply, None),
            (Mail { from: Address::parse("Us <us@example.com>"), ..mail() }, Some("from your own address")),
        ] {
            assert_eq!(needs_no_answer(&mail, us).as_deref(), words, "{mail:?}");
        }
    }

    #[test]
    fn a_class_has_its_own_threshold() {
        let mail = mail();
        let settings = AutomaticSettings { threshold: 0.9, thresholds: [(Class::FollowUp, 0.5)].into(), ..on() };
        assert!(reasons(&facts(&mail, Class::FollowUp, 0.5), &settings).is_empty());
        let asked = reasons(&facts(&mail, Class::Inquiry, 0.89), &settings);
        assert_eq!(asked, [Why::Unsure { needed: 0.9 }]);
    }

    #[test]
    fn automatic_answers_are_off_unless_the_operator_turns_them_on() {
        let mail = mail();
        let off = AutomaticSettings::default();
        assert_eq!(reasons(&facts(&mail, Class::Inquiry, 0.99), &off), [Why::Off]);
    }

    #[test]
    fn the_limits_of_a_day_and_of_an_address_hold() {
        let mail = mail();
        let used =
            |today, to_sender| Facts { used: Some(Used { today, to_sender }), ..facts(&mail, Class::Other, 0.9) };
        assert!(reasons(&used(49, 2), &on()).is_empty());
        assert_eq!(reasons(&used(50, 0), &on()), [Why::DayLimit { limit: 50 }]);
        assert_eq!(reasons(&used(3, 3), &on()), [Why::AddressLimit { limit: 3 }]);
        let unknown = Facts { used: None, ..facts(&mail, Class::Other, 0.9) };
        assert_eq!(reasons(&unknown, &on()), [Why::UsedUnknown]);
    }

    #[test]
    fn only_a_models_class_and_draft_are_sent_without_a_person() {
        let mail = mail();
        let good = facts(&mail, Class::Inquiry, 0.9);
        let by_words = Facts { classified_by: Source::Rules, ..good.clone() };
        assert_eq!(reasons(&by_words, &on()), [Why::WithoutModel]);
        let template = Facts { drafted_by: Source::Rules, ..good.clone() };
        assert_eq!(reasons(&template, &on()), [Why::WithoutModel]);
        let empty = Facts { draft: " \n", ..good.clone() };
        assert_eq!(reasons(&empty, &on()), [Why::NoDraft]);
        let failed = ["generate: the model did not answer".to_owned()];
        let failed = Facts { failures: &failed, ..good };
        assert!(matches!(reasons(&failed, &on())[..], [Why::Failed { .. }]));
    }

    #[test]
    fn mails_of_machines_and_suspicious_mails_ask() {
        let machine = Mail { automatic: Some(Automatic::MailingList), ..mail() };
        assert_eq!(reasons(&facts(&machine, Class::Inquiry, 0.9), &on()), [Why::AutomaticMail]);
        let forged = Mail { warnings: vec![Warning::AuthenticationFailed("DMARC fail".into())], ..mail() };
        assert_eq!(reasons(&facts(&forged, Class::Inquiry, 0.9), &on()), [Why::Suspicious]);
        let nobody = Mail { from: None, ..mail() };
        assert_eq!(reasons(&facts(&nobody, Class::Inquiry, 0.9), &on()), [Why::Suspicious]);
        let harmless = Mail { warnings: vec![Warning::ManyRecipients(40)], ..mail() };
        assert!(reasons(&facts(&harmless, Class::Inquiry, 0.9), &on()).is_empty());
        let ours = mail();
        let ours = Facts { is_from_us: true, ..facts(&ours, Class::Inquiry, 0.9) };
        assert_eq!(reasons(&ours, &on()), [Why::FromUs]);
    }

    #[test]
    fn a_draft_that_passes_on_other_mails_asks() {
        let mail = mail();
        let secret =
            ["Similar mail (0.91): our new price for the Basel contract will be forty thousand a year".to_owned()];
        let told = Facts {
            draft: "Hello. Our new price for the Basel contract will be forty thousand a year. Best, Us",
            context: &secret,
            ..facts(&mail, Class::Inquiry, 0.9)
        };
        assert_eq!(reasons(&told, &on()), [Why::Repeats]);
        let kept = Facts { draft: "Hello. Our price list is on the page.", ..told.clone() };
        assert!(reasons(&kept, &on()).is_empty());
        let elsewhere = Facts { draft: "Please write to mallory@evil.example.", ..told };
        assert_eq!(reasons(&elsewhere, &on()), [Why::NamesAddresses]);
    }

    #[test]
    fn an_unknown_label_is_other() {
        assert_eq!(Class::parse(" Meeting-Request "), Class::MeetingRequest);
        assert_eq!(Class::parse("invoice"), Class::Other);
        assert_eq!(Class::parse(""), Class::Other);
        for class in Class::ALL {
            assert_eq!(Class::parse(class.as_str()), class);
        }
    }

    #[test]
    fn each_class_has_its_tools_and_tone() {
        use Tool::*;
        let rules = [
            (Class::Inquiry, &[CreateDraft][..], &[GetContact, CreateDraft][..], Some("professional")),
            (Class::MeetingRequest, &[CheckCalendar, CreateDraft], &[CheckCalendar, CreateDraft], Some("professional")),
            (Class::Complaint, &[GetContact, CreateDraft], &[GetContact, CreateDraft], Some("empathetic")),
            (Class::FollowUp, &[GetContact, CreateDraft], &[GetContact, CreateDraft], Some("friendly")),
            (Class::Spam, &[], &[], None),
            (Class::Other, &[CreateDraft], &[CreateDraft], Some("professional")),
        ];
        for (class, unknown, known, tone) in rules {
            assert_eq!((class.tools(false), class.tools(true), class.tone()), (unknown, known, tone), "{class}");
        }
        assert!(Class::ALL.iter().all(|class| !class.tools(true).contains(&SendEmail)));
    }

    #[test]
    fn bands_are_only_names() {
        let named = [0.91, 0.9, 0.7, 0.69].map(|confidence| Band::of(confidence).name());
        assert_eq!(named, ["high", "medium", "medium", "low"]);
    }
}
