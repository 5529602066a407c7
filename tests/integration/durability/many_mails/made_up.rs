//! Made-up mails of every kind, the answers of a language model about them, and the mailbox with its faults.
//!
//! Everything about a mail follows from its number, which its subject names, so nothing has to be remembered, and a run
//! with the same seed meets the same faults. The bench `load` uses this file as well.

use std::sync::Arc;

use countersign::clock::Clock;
use countersign_sandbox::{
    faults::{Fault, Rate},
    gmail::{Letter, Options, SandboxGmail},
    google::{CLIENT_ID, CLIENT_SECRET, PERSON, REFRESH_TOKEN, SandboxGoogle, Tokens},
};
use serde_json::{Value, json};

/// The number of automatic answers a day, which is the most that the settings allow.
const ANSWERS_A_DAY: u32 = 1000;

/// Words for the texts of mails, so that they are neither all alike nor all different.
const WORDS: [&str; 24] = [
    "account", "battery", "charger", "delivery", "engine", "filter", "garden", "hinge", "invoice", "jacket", "kettle",
    "lamp", "mirror", "needle", "order", "pump", "quote", "router", "screen", "tablet", "umbrella", "valve", "wheel",
    "zipper",
];

/// The kind of a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A question whose class is sure, so that it may be answered without a person.
    Sure,
    /// A request to meet.
    Meeting,
    /// A mail whose class is not sure.
    Unsure,
    /// A complaint.
    Complaint,
    /// Sure spam.
    Spam,
    /// A mail that may be spam.
    MaybeSpam,
    /// A mail of a mailing list.
    List,
    /// A mail that a machine sent.
    Machine,
}

impl Kind {
    /// Returns the kind of the mail with this number.
    pub(crate) fn of(number: usize) -> Self {
        match number % 20 {
            0..=8 => Self::Sure,
            9 | 10 => Self::Meeting,
            11 | 12 => Self::Unsure,
            13 | 14 => Self::Complaint,
            15 | 16 => Self::Spam,
            17 => Self::MaybeSpam,
            18 => Self::List,
            _ => Self::Machine,
        }
    }

    /// Returns true if an answer may be sent without a person.
    pub(crate) fn may_be_automatic(self) -> bool {
        matches!(self, Self::Sure | Self::Meeting)
    }

    fn classification(self) -> (&'static str, f64) {
        match self {
            Self::Sure | Self::List | Self::Machine => ("inquiry", 0.95),
            Self::Meeting => ("meeting_request", 0.9),
            Self::Unsure => ("follow_up", 0.6),
            Self::Complaint => ("complaint", 0.99),
            Self::Spam => ("spam", 0.97),
            Self::MaybeSpam => ("spam", 0.55),
        }
    }
}

/// What a person does about a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Sends the answer.
    Sends,
    /// Rejects it.
    Rejects,
    /// Leaves the card open.
    Leaves,
}

impl Way {
    /// Returns what a person does about the card of this mail.
    pub(crate) fn of(number: usize) -> Self {
        match number / 3 % 10 {
            0..=5 => Self::Sends,
            6..=8 => Self::Rejects,
            _ => Self::Leaves,
        }
    }
}

/// Returns the mail with this number.
pub(crate) fn letter(number: usize) -> Letter {
    let word = |nth: usize| WORDS[(number / 7 + nth * 5 + number * nth) % WORDS.len()];
    let from = format!("Customer {number} <customer{number}@customer.example>");
    let subject = format!("Case {number:06} about the {}", word(0));
    let text = format!(
        "Hello,\n\nthe {} came without its {}, and the {} does not fit the {}. Case {number:06}.\n\nCustomer {number}",
        word(1),
        word(2),
        word(3),
        word(4),
    );
    let letter = Letter::new(&from, &subject, &text);
    match Kind::of(number) {
        Kind::List => letter.header("List-Id", "<news.customer.example>"),
        Kind::Machine => letter.header("Auto-Submitted", "auto-generated"),
        _ => letter,
    }
}

/// Returns the number of the mail that a text names first.
pub(crate) fn number_in(text: &str) -> Option<usize> {
    let (_, rest) = text.split_once("Case ")?;
    rest.get(..6)?.parse().ok()
}

/// Returns the blocks of a model's answer to a request, both in the form of the Messages API.
pub(crate) fn answers(request: &Value) -> Vec<Value> {
    let tools = request["tools"].as_array();
    let name = tools.and_then(|tools| tools.last()).and_then(|tool| tool["name"].as_str()).unwrap_or_default();
    let input = match name {
        "classification" => {
            let number = number_in(&request["messages"].to_string()).unwrap_or_default();
            let (class, confidence) = Kind::of(number).classification();
            json!({ "classification": class, "confidence": confidence, "reasoning": "As the script says." })
        }
        "tools" => {
            json!({ "tools": ["get_contact", "create_draft"], "start": "", "days": 7, "reasoning": "As the script says." })
        }
        // Fewer words than count as a repetition of other mails.
        _ => json!({ "reply": "Thank you. We look into it.", "confidence": 0.9 }),
    };
    vec![json!({ "type": "tool_use", "name": name, "input": input })]
}

/// A mailbox with the issuer of its tokens.
pub(crate) struct Mailbox {
    pub(crate) gmail: SandboxGmail,
    google: SandboxGoogle,
}

impl Mailbox {
    /// Starts the stand-ins. The ids of mails are the same in each run.
    pub(crate) async fn start(clock: Arc<dyn Clock>) -> std::io::Result<Self> {
        let google = SandboxGoogle::start_at(0, clock.clone()).await?;
        let options = Options { tokens: Some(google.tokens()), clock, ..Options::default() };
        Ok(Self { gmail: SandboxGmail::start(options).await?, google })
    }

    /// Applies faults of every kind, as the seed chooses: time-outs and lost connections after the effect of sending, and
    /// failures, limits and refused tokens at any call. Each fault of sending has the rate `per_mille`; `retry_after` is
    /// the time that a limit asks for, in seconds.
    pub(crate) fn is_unreliable(&self, seed: u64, per_mille: u16, retry_after: u64) {
        let sending = "/drafts/send";
        self.gmail.faults().at_rates(
            seed,
            vec![
                Rate::new(Fault::Hang.after(), sending, per_mille),
                Rate::new(Fault::LostAnswer, sending, per_mille),
                Rate::new(Fault::Status(500).after(), sending, per_mille),
                Rate::new(Fault::LostRequest, sending, per_mille),
                Rate::new(Fault::LostAnswer, "POST /gmail/v1/users/me/drafts", per_mille),
                Rate::new(Fault::TooMany(retry_after), "/gmail/", 10),
                Rate::new(Fault::Status(500), "/gmail/", 3),
                Rate::new(Fault::Status(503), "/gmail/", 3),
                Rate::new(Fault::Status(401), "/gmail/", 1),
            ],
        );
    }

    /// Returns the access tokens that were issued.
    pub(crate) fn tokens(&self) -> Arc<Tokens> {
        self.google.tokens()
    }

    /// Returns the settings of a bot that reads this mailbox, as environment variables.
    pub(crate) fn variables(&self, channel: &str) -> Vec<(&'static str, String)> {
        let texts = [
            ("COUNTERSIGN__EMAIL__CHANNEL", channel),
            ("COUNTERSIGN__EMAIL__ADDRESS", PERSON),
            ("COUNTERSIGN__EMAIL__SYNC_EVERY", "1s"),
            ("COUNTERSIGN__EMAIL__TIMEOUT", "2s"),
            ("COUNTERSIGN__EMAIL__AUTOMATIC", "true"),
            ("GOOGLE_TOKEN_URL", self.google.endpoint()),
            ("GOOGLE_CLIENT_ID", CLIENT_ID),
            ("GOOGLE_CLIENT_SECRET", CLIENT_SECRET),
            ("GOOGLE_REFRESH_TOKEN", REFRESH_TOKEN),
        ];
        let mut variables: Vec<_> = texts.map(|(name, value)| (name, value.to_owned())).into();
        variables.push(("COUNTERSIGN__EMAIL__ANSWERS_A_DAY", ANSWERS_A_DAY.to_string()));
        variables.push(("GMAIL_API_URL", self.gmail.url()));
        variables
    }
}
