//! One thread with all that is known about it from outside: what people did, what they saw, what the platform received.

use countersign::{clock::Timestamp, ids::MessageTs};
use countersign_sandbox::{ledger::Request, slack::world::message::Message};

/// Somebody in the workspace. Two of the three may decide.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Person {
    pub(crate) name: &'static str,
    pub(crate) id: &'static str,
    /// Whether the settings name them as an approver.
    pub(crate) approver: bool,
}

pub(crate) static PEOPLE: [Person; 3] = [
    Person { name: "ana", id: "U1", approver: true },
    Person { name: "bo", id: "U2", approver: true },
    Person { name: "cy", id: "U3", approver: false },
];

/// A change of one experiment. In each thread, each is asked for on purpose once at most.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Change {
    pub(crate) experiment: String,
    pub(crate) to: To,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum To {
    Started,
    Stopped,
    Cancelled,
    Deleted,
    /// Nothing that anybody asks for here.
    Other,
}

impl To {
    /// Whether the person who asked, or edited, may not approve it.
    pub(crate) fn is_irreversible(self) -> bool {
        matches!(self, Self::Cancelled | Self::Deleted)
    }
}

/// What somebody pressed or typed to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Approve,
    Reject,
    /// A button that decides nothing: it opens a form, or looks again.
    Look,
    Yes,
    No,
}

/// One attempt to decide.
#[derive(Clone, Debug)]
pub(crate) struct Press {
    /// When it began.
    pub(crate) at: Timestamp,
    pub(crate) by: &'static Person,
    pub(crate) verb: Verb,
    /// The card, which for typed words is the open one.
    pub(crate) card: MessageTs,
    pub(crate) change: Change,
    /// Whether this person may decide about it.
    pub(crate) entitled: bool,
    /// Whether the bot acknowledged it.
    pub(crate) acknowledged: bool,
}

/// A line to the bot that is no request for a change.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) ts: MessageTs,
    pub(crate) words: String,
    /// What an answer to it contains.
    pub(crate) expects: &'static str,
}

/// A request that changed something on the platform.
#[derive(Clone, Debug)]
pub(crate) struct Effect {
    pub(crate) at: Timestamp,
    pub(crate) change: Change,
    pub(crate) entry: String,
}

/// How a card stands, by what a reader sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stands {
    Open,
    Running,
    /// It says that the change was made.
    Done,
    /// It says that it failed, and perhaps that nothing was changed.
    Failed {
        denies: bool,
    },
    /// It says that nobody knows.
    Unknown,
    /// Rejected, withdrawn, expired, edited or replaced: nothing was done.
    Closed,
}

/// A card, as a message.
#[derive(Clone, Debug)]
pub(crate) struct Card {
    pub(crate) change: Change,
    pub(crate) stands: Stands,
}

/// A message of the bot as it stands.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) ts: MessageTs,
    pub(crate) words: String,
    /// What its buttons do.
    pub(crate) buttons: Vec<String>,
    /// The id of the only one who sees it.
    pub(crate) only_to: Option<String>,
    /// What the bot knows it by.
    pub(crate) nonce: Option<String>,
    pub(crate) card: Option<Card>,
}

impl Said {
    pub(crate) fn read(message: &Message) -> Self {
        let words = message.words();
        let buttons: Vec<String> = message.buttons().into_iter().map(|button| button.action_id).collect();
        let nonce = message.metadata.as_ref().and_then(|metadata| metadata["event_payload"]["nonce"].as_str());
        let only_to = message.ephemeral_to.as_ref().map(ToString::to_string);
        let card = only_to.is_none().then(|| card(&words, &buttons)).flatten();
        Self { ts: message.ts.clone(), nonce: nonce.map(str::to_owned), only_to, words, buttons, card }
    }

    /// When it was said, in milliseconds.
    pub(crate) fn at(&self) -> i64 {
        millis(&self.ts)
    }
}

/// The time in the name of a message.
pub(crate) fn millis(ts: &MessageTs) -> i64 {
    let seconds: f64 = ts.as_str().parse().unwrap_or_default();
    (seconds * 1000.0).floor() as i64
}

fn card(words: &str, buttons: &[String]) -> Option<Card> {
    // A card that was carried out begins with its outcome, and any other with its act.
    let title = words.lines().next()?;
    let title = title.strip_prefix("✅ ").unwrap_or(title);
    let verbs = [
        ("*Start “", To::Started),
        ("*Started “", To::Started),
        ("*Resume “", To::Started),
        ("*Resumed “", To::Started),
        ("*Stop “", To::Stopped),
        ("*Stopped “", To::Stopped),
        ("*Cancel “", To::Cancelled),
        ("*Cancelled “", To::Cancelled),
        ("*Permanently delete “", To::Deleted),
        ("*Deleted “", To::Deleted),
        ("*“", To::Deleted), // “…” was permanently deleted
    ];
    let (rest, to) = verbs.iter().find_map(|(verb, to)| Some((title.strip_prefix(verb)?, *to)))?;
    let experiment = rest.split_once('”')?.0.to_owned();
    let has = |mark: &str| words.lines().any(|line| line.starts_with(mark));
    let stands = if buttons.iter().any(|button| button == "approve") {
        Stands::Open
    } else if has("✅") {
        Stands::Done
    } else if has("❌") {
        let denies = words.contains("othing was changed") || words.contains("othing changed");
        Stands::Failed { denies }
    } else if has("❔") {
        Stands::Unknown
    } else if words.contains("running…") {
        Stands::Running
    } else {
        Stands::Closed
    };
    Some(Card { change: Change { experiment, to }, stands })
}

/// All that is known about a thread.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) number: u64,
    pub(crate) root: MessageTs,
    pub(crate) began: Timestamp,
    pub(crate) asker: &'static Person,
    /// The changes that were asked for, by request, correction or form, in order.
    pub(crate) asked: Vec<Change>,
    pub(crate) presses: Vec<Press>,
    pub(crate) lines: Vec<Line>,
    pub(crate) effects: Vec<Effect>,
    /// What the driver did.
    pub(crate) notes: Vec<(Timestamp, String)>,
    /// What never came, while no fault was present.
    pub(crate) missing: Vec<String>,
    /// What came, but only after longer than the declared bound without a fault.
    pub(crate) late: Vec<String>,
}

/// Which experiment a request was about, by its id, and where it was to take it.
pub(crate) fn changed(entry: &Request) -> Option<(String, To)> {
    let path = entry.path.split('?').next().unwrap_or_default();
    let last = path.rsplit('/').next().unwrap_or_default();
    match (entry.method.as_str(), last) {
        ("POST", "state") => {
            let to = match entry.body["state"].as_str() {
                Some("enrolling" | "running") => To::Started,
                Some("enrollmentComplete" | "paused") => To::Stopped,
                Some("cancelled" | "completed") => To::Cancelled,
                _ => To::Other,
            };
            Some((entry.body["experimentId"].as_str()?.to_owned(), to))
        }
        ("DELETE", id) => Some((id.to_owned(), To::Deleted)),
        _ => Some((entry.body["id"].as_str().unwrap_or(last).to_owned(), To::Other)),
    }
}

/// Whether a reply says that a change was made: by the answer of the platform, or by a look after it.
pub(crate) fn tells_of_success(words: &str) -> bool {
    const DONE: [&str; 6] =
        ["Started “", "Resumed “", "Stopped “", "Cancelled “", "Archived “", "” was permanently deleted"];
    DONE.iter().any(|done| words.contains(done)) || words.contains("but I checked and it went through")
}
