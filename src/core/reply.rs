//! Replies and cards as plain data, before they are drawn.
//!
//! A [`Reply`] or a [`Card`] is stored, compared in tests and drawn as Block Kit at the last moment
//! (`conversation::presentation::render`). Text is built from [`Span`]s, so that text from a person, a model or another
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
    /// Text as it is.
    Plain(String),
    /// The name of a thing.
    Bold(String),
    /// An aside.
    Italic(String),
    /// Text for machines: a code, an id, a status.
    Code(String),
    /// A person, who is notified; Slack shows the name.
    Person(UserId),
    /// A person by name only, who is not notified. The name is looked up when it is drawn.
    Name(UserId),
    /// A user group (`S…`) by name only. The name is looked up when it is drawn.
    Group(String),
    /// A channel; Slack shows the name, to those who may know it.
    Channel(ChannelId),
    /// A moment in the reader's own time zone.
    Moment(Timestamp),
    /// A link with its words.
    Link {
        /// The address; `http` or `https`.
        url: String,
        /// The words of the link.
        text: String,
    },
}

/// A line or paragraph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Text(pub Vec<Span>);

impl Text {
    /// Creates an empty text.
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

    /// Adds a person's name, without notifying the person.
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

    /// Joins texts in a row, with `word` before the last: “a, b and c”.
    pub fn listed(texts: impl IntoIterator<Item = Self, IntoIter: ExactSizeIterator>, word: &str) -> Self {
        let texts = texts.into_iter();
        let last = texts.len().saturating_sub(1);
        texts.enumerate().fold(Self::new(), |listed, (nth, text)| match nth {
            0 => text,
            nth if nth == last => listed.plain(format!(" {word} ")).join(text),
            _ => listed.plain(", ").join(text),
        })
    }

    /// Returns the words alone, for notifications, logs of tests and models. A person is `@` and the id, a group its
    /// id.
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
    /// A heading above the parts that follow.
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
    /// Small print: a hint, a source, the age of something.
    Note(Text),
}

/// A button that says something on behalf of the person who presses it, as if typed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The label of the button.
    pub label: String,
    /// The words that are said when it is pressed.
    pub says: String,
}

impl Choice {
    /// Creates a button with a label and the words it says.
    pub fn new(label: impl Into<String>, says: impl Into<String>) -> Self {
        Self { label: label.into(), says: says.into() }
    }
}

/// A button that sends a message again that could not be delivered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resend {
    /// The label of the button.
    pub label: String,
    /// The nonce of the message.
    pub key: String,
}

/// A reply of the bot in the thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// The parts, from top to bottom.
    pub parts: Vec<Part>,
    /// The buttons below the reply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
    /// The run that this reply answers, if people are asked whether it helped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates: Option<RunId>,
    /// The buttons that send undelivered messages again.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub resends: Box<[Resend]>,
    /// The files that follow in the thread. They are stored and sent apart from the reply.
    #[serde(skip)]
    pub files: Vec<Attachment>,
}

/// A file for the thread: a picture, or text too long for a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// The file's name, such as `math-hints.json`.
    pub name: String,
    /// The title shown above the file.
    pub title: String,
    /// The contents; not empty.
    pub bytes: Vec<u8>,
}

impl Reply {
    /// Creates a reply of one paragraph.
    pub fn text(text: impl Into<Text>) -> Self {
        Self::default().and(Part::Text(text.into()))
    }

    /// Creates a reply from Markdown that a model wrote.
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

    /// Adds a button with the words `says`.
    pub fn choice(mut self, label: impl Into<String>, says: impl Into<String>) -> Self {
        self.choices.push(Choice { label: label.into(), says: says.into() });
        self
    }

    /// Adds buttons, each a label and the words it says.
    pub fn choices<L: Into<String>, S: Into<String>>(self, choices: impl IntoIterator<Item = (L, S)>) -> Self {
        choices.into_iter().fold(self, |reply, (label, says)| reply.choice(label, says))
    }

    /// Adds a button that sends the message with the nonce `key` again.
    pub fn resend(mut self, label: impl Into<String>, key: impl Into<String>) -> Self {
        let one_more = Resend { label: label.into(), key: key.into() };
        self.resends = self.resends.into_iter().chain([one_more]).collect();
        self
    }

    /// Asks whether the reply helped, as the final answer of `run`.
    pub fn rated(mut self, run: &RunId) -> Self {
        self.rates = Some(run.clone());
        self
    }

    /// Adds a file.
    pub fn file(mut self, file: Attachment) -> Self {
        self.files.push(file);
        self
    }

    /// Returns the words alone, a line for each part: for notifications, history and models.
    pub fn words(&self) -> String {
        self.parts.iter().map(Part::words).collect::<Vec<_>>().join("\n")
    }
}

impl Part {
    /// Returns the words alone.
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

/// One line of a card: a value before and after the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// The label, such as `Status` or `Weights`.
    pub label: String,
    /// The present value, read from the live system; `None` for something new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Text>,
    /// The value after the change.
    pub after: Text,
}

/// The question that a person countersigns: the exact change.
///
/// Made by code from validated parameters, never from a model's words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// The act and its object as a question: `Start “Math Hints”?`
    pub title: String,
    /// The changes, line by line.
    pub facts: Vec<Fact>,
    /// Warnings, drawn with ⚠️: irreversible or unusual effects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Text>,
    /// Small print: defaults that were filled in, reach.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Text>,
    /// The label of the button that approves: `Archive it`.
    pub approve: String,
    /// The label of the button that rejects: `Don't start`.
    pub reject: String,
    /// The deed in the past tense, shown after success: `Started “Math Hints”.`
    pub done: String,
    /// True if the change cannot be undone: the button is red and asks again.
    pub irreversible: bool,
    /// True if a person may change it in a form before deciding.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub editable: bool,
}

/// A button on a closed card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FollowUp {
    /// Undoes the change, by a card of its own; with its label.
    Undo(String),
    /// Asks for the same again, by a card of its own; with its label.
    Again(String),
    /// Opens the form, filled in, to ask for something similar.
    Change,
    /// Checks again whether the change happened.
    Check,
    /// Records that the change happened, as a person has seen.
    MarkDone,
    /// Records that the change did not happen and is abandoned, as a person has seen.
    Abandon,
}

/// The state of a card: drawn below it in place of, or above, its buttons.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum CardState {
    /// Waiting for a person.
    Open {
        /// The approval that the buttons name.
        approval: ApprovalId,
        /// The person who asked.
        asked_by: UserId,
        /// The people who may press, in words.
        #[serde(with = "plain_or_text")]
        deciders: Text,
        /// The time at which the question expires.
        expires_at: Timestamp,
        /// The first characters of the digest.
        digest: String,
        /// The people who have approved so far, where more than one is needed.
        #[serde(default)]
        approved_by: Vec<UserId>,
        /// The number of approvals needed.
        #[serde(default)]
        needed: u32,
        /// The people who changed the request before this card, each once.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        edited_by: Vec<UserId>,
        /// The reason why the policy is stricter than usual, if it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        because: Option<String>,
    },
    /// Approved and being done.
    Running {
        /// The people who approved.
        by: Vec<UserId>,
        /// The time of the approval.
        at: Timestamp,
        /// The progress, if the change is made in batches.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        meter: Option<Meter>,
    },
    /// Over: the card is the record from now on.
    Closed {
        /// The decision, such as “Approved by @ana · today 14:02”, “Expired”.
        decision: Text,
        /// The outcome: “✅ Started”, “❌ The platform refused: …”. `None` if nothing was tried.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<Text>,
        /// The first characters of the digest.
        digest: String,
        /// The approval that its buttons name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approval: Option<ApprovalId>,
        /// The buttons that the card offers now.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        follow_ups: Vec<FollowUp>,
        /// The message of the card that replaced this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        newer: Option<Slot>,
        /// The person who asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked_by: Option<UserId>,
        /// The people who changed the request before it was decided.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        edited_by: Vec<UserId>,
    },
}

/// The progress of a long change that can be stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meter {
    /// The approval that the stop button names.
    pub approval: ApprovalId,
    /// The amount done.
    pub done: u64,
    /// The whole amount.
    pub total: u64,
    /// The estimated time left, in seconds, at the pace so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_left: Option<u64>,
    /// A remark on the progress; may be empty.
    pub note: Text,
    /// The question that it waits for a person to answer, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<Asked>,
}

/// A question in the middle of a change, which comes from the system that makes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The question.
    pub text: Text,
    /// The label of the button that answers it, such as `Answer…`.
    pub answer: String,
}

/// A text that was a plain string in earlier versions, and is still stored as one where it is nothing more.
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
