//! What the bot says, before anybody decides how it looks.
//!
//! A [`Reply`] or a [`Card`] is plain data: it is stored, compared in tests and drawn as Block Kit at the last moment
//! (`conversation::presentation::render`). Text is built from [`Span`]s, so that whatever came from a person, a model or another
//! system is marked as such and is escaped where it is drawn, never here and never twice.

use serde::{Deserialize, Serialize};

use crate::{
    clock::Timestamp,
    ids::{ApprovalId, ChannelId, RunId, Slot, UserId},
};

/// A run of text with one look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Span {
    /// As it is.
    Plain(String),
    /// For names of things.
    Bold(String),
    /// For asides.
    Italic(String),
    /// For what a machine reads: codes, ids, statuses.
    Code(String),
    /// A person; Slack shows the name. Notifies them.
    Person(UserId),
    /// A person, only named: nobody is notified. What they are called is looked up when it is drawn.
    Name(UserId),
    /// A user group (`S…`), only named. What it is called is looked up when it is drawn.
    Group(String),
    /// A channel; Slack shows the name, to those who may know it.
    Channel(ChannelId),
    /// A moment in the reader's own time zone.
    Moment(Timestamp),
    /// A link with its words.
    Link {
        /// Where it leads; `http` or `https`.
        url: String,
        /// What it says.
        text: String,
    },
}

/// A line or paragraph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Text(pub Vec<Span>);

impl Text {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds words as they are.
    pub fn plain(mut self, words: impl Into<String>) -> Self {
        self.0.push(Span::Plain(words.into()));
        self
    }

    /// Adds a name.
    pub fn bold(mut self, words: impl Into<String>) -> Self {
        self.0.push(Span::Bold(words.into()));
        self
    }

    /// Adds an aside.
    pub fn italic(mut self, words: impl Into<String>) -> Self {
        self.0.push(Span::Italic(words.into()));
        self
    }

    /// Adds a code.
    pub fn code(mut self, words: impl Into<String>) -> Self {
        self.0.push(Span::Code(words.into()));
        self
    }

    /// Adds a person.
    pub fn person(mut self, user: UserId) -> Self {
        self.0.push(Span::Person(user));
        self
    }

    /// Adds a person's name, which notifies nobody.
    pub fn name(mut self, user: UserId) -> Self {
        self.0.push(Span::Name(user));
        self
    }

    /// Adds a user group, whose members are not notified.
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.0.push(Span::Group(group.into()));
        self
    }

    /// Adds a channel.
    pub fn channel(mut self, channel: ChannelId) -> Self {
        self.0.push(Span::Channel(channel));
        self
    }

    /// Adds a moment.
    pub fn moment(mut self, at: Timestamp) -> Self {
        self.0.push(Span::Moment(at));
        self
    }

    /// Adds a link with its words.
    pub fn link(mut self, url: impl Into<String>, words: impl Into<String>) -> Self {
        self.0.push(Span::Link { url: url.into(), text: words.into() });
        self
    }

    /// Adds another text.
    pub fn join(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// These in a row, `word` before the last: “a, b and c”.
    pub fn listed(texts: impl IntoIterator<Item = Self, IntoIter: ExactSizeIterator>, word: &str) -> Self {
        let texts = texts.into_iter();
        let last = texts.len().saturating_sub(1);
        texts.enumerate().fold(Self::new(), |listed, (nth, text)| match nth {
            0 => text,
            nth if nth == last => listed.plain(format!(" {word} ")).join(text),
            _ => listed.plain(", ").join(text),
        })
    }

    /// The words alone: for notifications, logs of tests and models. People are `@` and their id, user groups are their id.
    pub fn words(&self) -> String {
        self.0
            .iter()
            .map(|span| match span {
                Span::Plain(t) | Span::Bold(t) | Span::Italic(t) | Span::Code(t) | Span::Group(t) => t.clone(),
                Span::Person(user) | Span::Name(user) => format!("@{user}"),
                Span::Channel(channel) => format!("#{channel}"),
                Span::Moment(at) => at.to_string(),
                Span::Link { text, .. } => text.clone(),
            })
            .collect()
    }
}

impl From<&str> for Text {
    fn from(words: &str) -> Self {
        Self::new().plain(words)
    }
}

impl From<String> for Text {
    fn from(words: String) -> Self {
        Self::new().plain(words)
    }
}

/// One part of a reply, from top to bottom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// A paragraph.
    Text(Text),
    /// A heading above what follows.
    Heading(String),
    /// Points of a list.
    List(Vec<Text>),
    /// Short labelled facts, drawn in two columns.
    Facts(Vec<(String, Text)>),
    /// Rows under column names.
    Table {
        /// The names of the columns.
        columns: Vec<String>,
        /// The rows; each as long as `columns`.
        rows: Vec<Vec<Text>>,
    },
    /// Words of a language model, in Markdown; never trusted.
    Markdown(String),
    /// A block of code or data.
    Code(String),
    /// Small print: a hint, a source, how old something is.
    Note(Text),
}

/// A button that says something for the person who presses it, as if they had typed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// What the button shows.
    pub label: String,
    /// What is said when it is pressed.
    pub says: String,
}

impl Choice {
    /// A button with this label that says this.
    pub fn new(label: impl Into<String>, says: impl Into<String>) -> Self {
        Self { label: label.into(), says: says.into() }
    }
}

/// A button that sends something once more that could not be delivered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resend {
    /// What the button shows.
    pub label: String,
    /// Names what is sent: the nonce of a message.
    pub key: String,
}

/// Something the bot says in the thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// What it consists of.
    pub parts: Vec<Part>,
    /// What can be pressed below it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
    /// The run of which it is the final answer, if people are asked whether it helped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates: Option<RunId>,
    /// Buttons that send what could not be delivered once more.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub resends: Box<[Resend]>,
    /// Files that follow it in the thread. They are stored apart from it, by whoever sends it on.
    #[serde(skip)]
    pub files: Vec<Attachment>,
}

/// A file for the thread: what is too long for a message, or is a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// Its name, such as `math-hints.json`.
    pub name: String,
    /// What stands above it.
    pub title: String,
    /// What is in it; not empty.
    pub bytes: Vec<u8>,
}

impl Reply {
    /// One paragraph.
    pub fn text(text: impl Into<Text>) -> Self {
        Self::default().and(Part::Text(text.into()))
    }

    /// What a model wrote.
    pub fn markdown(text: impl Into<String>) -> Self {
        Self::default().and(Part::Markdown(text.into()))
    }

    /// Adds a part at the end.
    pub fn and(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// Adds a next step in small print.
    pub fn hint(self, text: impl Into<Text>) -> Self {
        self.and(Part::Note(text.into()))
    }

    /// Adds a button that says `says`.
    pub fn choice(mut self, label: impl Into<String>, says: impl Into<String>) -> Self {
        self.choices.push(Choice { label: label.into(), says: says.into() });
        self
    }

    /// Adds answers, each a label and what is said when it is pressed.
    pub fn choices<L: Into<String>, S: Into<String>>(self, choices: impl IntoIterator<Item = (L, S)>) -> Self {
        choices.into_iter().fold(self, |reply, (label, says)| reply.choice(label, says))
    }

    /// Adds a button that sends something once more.
    pub fn resend(mut self, label: impl Into<String>, key: impl Into<String>) -> Self {
        let one_more = Resend { label: label.into(), key: key.into() };
        self.resends = self.resends.into_iter().chain([one_more]).collect();
        self
    }

    /// Asks whether it helped: it is the final answer of `run`.
    pub fn rated(mut self, run: &RunId) -> Self {
        self.rates = Some(run.clone());
        self
    }

    /// Adds a file.
    pub fn file(mut self, file: Attachment) -> Self {
        self.files.push(file);
        self
    }

    /// The words alone, a line for each part: for notifications, history and models.
    pub fn words(&self) -> String {
        self.parts.iter().map(Part::words).collect::<Vec<_>>().join("\n")
    }
}

impl Part {
    /// The words alone.
    pub fn words(&self) -> String {
        match self {
            Self::Text(text) | Self::Note(text) => text.words(),
            Self::Heading(words) | Self::Markdown(words) | Self::Code(words) => words.clone(),
            Self::List(points) => {
                points.iter().map(|point| format!("• {}", point.words())).collect::<Vec<_>>().join("\n")
            }
            Self::Facts(facts) => {
                facts.iter().map(|(label, fact)| format!("{label}: {}", fact.words())).collect::<Vec<_>>().join("\n")
            }
            Self::Table { columns, rows } => std::iter::once(columns.join(" | "))
                .chain(rows.iter().map(|row| row.iter().map(Text::words).collect::<Vec<_>>().join(" | ")))
                .collect::<Vec<_>>()
                .join("\n"),
        }
    }
}

/// One line of a card: what it is about, and what will become of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// Such as `Status` or `Weights`.
    pub label: String,
    /// What is there now, read from the live system; absent for something new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Text>,
    /// What will be there.
    pub after: Text,
}

/// The question that a person countersigns: exactly what will be done.
///
/// Made by code from validated parameters, never from a model's words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// Names the act and its object as a question: `Start “Math Hints”?`
    pub title: String,
    /// Line by line what changes.
    pub facts: Vec<Fact>,
    /// Each begins with ⚠️ where it is drawn: what cannot be undone, what is unusual.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Text>,
    /// Small print: defaults that were filled in, reach.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Text>,
    /// The label of the button that does it: `Archive it`.
    pub approve: String,
    /// The label of the button that does not: `Don't start`.
    pub reject: String,
    /// What was done, for the record: `Started “Math Hints”.` is shown after success.
    pub done: String,
    /// Whether it cannot be undone: the button is red and asks once more.
    pub irreversible: bool,
    /// Whether a person may change it in a form before deciding.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub editable: bool,
}

/// What can be done about a card that is closed: a button on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FollowUp {
    /// Puts back what was changed, by a card of its own; with its label.
    Undo(String),
    /// Asks for the same once more, by a card of its own; with its label.
    Again(String),
    /// Asks for something like it: opens the form, filled in.
    Change,
    /// Looks once more whether it happened.
    Check,
    /// A person has looked: it happened.
    MarkDone,
    /// A person has looked: it did not happen, and is not to.
    Abandon,
}

/// How a card stands now: drawn below it in place of, or above, its buttons.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum CardState {
    /// Waiting for a person.
    Open {
        /// Goes into the buttons.
        approval: ApprovalId,
        /// Who asked.
        asked_by: UserId,
        /// Who may press, in words.
        #[serde(with = "plain_or_text")]
        deciders: Text,
        /// Until when.
        expires_at: Timestamp,
        /// The first characters of the digest.
        digest: String,
        /// Who has approved so far, where more than one is needed, and how many are needed.
        #[serde(default)]
        approved_by: Vec<UserId>,
        /// How many approvals are needed.
        #[serde(default)]
        needed: u32,
        /// Who changed the request before this card, each once.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        edited_by: Vec<UserId>,
        /// Why the policy is stricter than usual, if it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        because: Option<String>,
    },
    /// A person said yes; it is being done.
    Running {
        /// Who pressed.
        by: Vec<UserId>,
        /// When.
        at: Timestamp,
        /// How far it is, if it is made in batches.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        meter: Option<Meter>,
    },
    /// It is over. The card is the record from now on.
    Closed {
        /// Such as “Approved by @ana · today 14:02”, “Expired”.
        decision: Text,
        /// How it ended: “✅ Started”, “❌ The platform refused: …”. Nothing if nothing was tried.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<Text>,
        /// The first characters of the digest.
        digest: String,
        /// Goes into its buttons.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approval: Option<ApprovalId>,
        /// What can be done about it now.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        follow_ups: Vec<FollowUp>,
        /// The message of the card that took its place.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        newer: Option<Slot>,
        /// Who asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked_by: Option<UserId>,
        /// Who changed the request before it was decided.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        edited_by: Vec<UserId>,
    },
}

/// How far something is that takes a while, and can be stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meter {
    /// Goes into the button that stops it.
    pub approval: ApprovalId,
    /// How much is done.
    pub done: u64,
    /// Of how much.
    pub total: u64,
    /// How long the rest takes, in seconds, going by what is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_left: Option<u64>,
    /// What else is worth a glance; may be empty.
    pub note: Text,
}

/// A text that was a plain string in earlier versions, and still is where it is nothing more.
mod plain_or_text {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Span, Text};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Saved {
        Plain(String),
        Text(Text),
    }

    pub(super) fn serialize<S: Serializer>(text: &Text, serializer: S) -> Result<S::Ok, S::Error> {
        match text.0.as_slice() {
            [Span::Plain(words)] => words.serialize(serializer),
            _ => text.serialize(serializer),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
        Ok(match Saved::deserialize(deserializer)? {
            Saved::Plain(words) => Text::from(words),
            Saved::Text(text) => text,
        })
    }
}
