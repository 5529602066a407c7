//! Replies and cards as plain data, before they are rendered.
//!
//! A [`Reply`] or a [`Card`] is stored, compared in tests, and rendered as Block Kit only when it is sent
//! (`conversation::presentation::render`). Text is built from [`Span`]s, so that text from a person, a model or another
//! system is marked as such. It is escaped only when it is rendered, never here and never twice.

use serde::{Deserialize, Serialize};

use crate::{
    clock::Timestamp,
    ids::{ApprovalId, ChannelId, RunId, Slot, UserId},
};

/// A run of text with one style.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Span {
    /// Plain text.
    Plain(String),
    /// Bold text, for names of things.
    Bold(String),
    /// Italic text, for asides.
    Italic(String),
    /// Text in a monospaced font: a code, an id, a status.
    Code(String),
    /// A mention of a person, who is notified. Slack shows the name.
    Person(UserId),
    /// The name of a person, who is not notified. It is looked up when the text is rendered.
    Name(UserId),
    /// The name of a user group (`S…`), whose members are not notified. It is looked up when the text is rendered.
    Group(String),
    /// A channel. Slack shows the name to people who have access to the channel.
    Channel(ChannelId),
    /// A point in time, shown in the reader's time zone.
    Moment(Timestamp),
    /// A link with its text.
    Link {
        /// The address; `http` or `https`.
        url: String,
        /// The text of the link.
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

    /// Adds plain text.
    pub fn plain(mut self, words: impl Into<String>) -> Self {
        self.0.push(Span::Plain(words.into()));
        self
    }

    /// Adds bold text, for a name.
    pub fn bold(mut self, words: impl Into<String>) -> Self {
        self.0.push(Span::Bold(words.into()));
        self
    }

    /// Adds italic text, for an aside.
    pub fn italic(mut self, words: impl Into<String>) -> Self {
        self.0.push(Span::Italic(words.into()));
        self
    }

    /// Adds text in a monospaced font, for a code.
    pub fn code(mut self, words: impl Into<String>) -> Self {
        self.0.push(Span::Code(words.into()));
        self
    }

    /// Adds a mention of a person, who is notified.
    pub fn person(mut self, user: UserId) -> Self {
        self.0.push(Span::Person(user));
        self
    }

    /// Adds a person's name, without notifying the person.
    pub fn name(mut self, user: UserId) -> Self {
        self.0.push(Span::Name(user));
        self
    }

    /// Adds the name of a user group, without notifying its members.
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.0.push(Span::Group(group.into()));
        self
    }

    /// Adds a channel.
    pub fn channel(mut self, channel: ChannelId) -> Self {
        self.0.push(Span::Channel(channel));
        self
    }

    /// Adds a point in time.
    pub fn moment(mut self, at: Timestamp) -> Self {
        self.0.push(Span::Moment(at));
        self
    }

    /// Adds a link with its text.
    pub fn link(mut self, url: impl Into<String>, words: impl Into<String>) -> Self {
        self.0.push(Span::Link { url: url.into(), text: words.into() });
        self
    }

    /// Adds another text.
    pub fn join(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Joins texts to a list, with `word` before the last: “a, b and c”.
    pub fn listed(texts: impl IntoIterator<Item = Self, IntoIter: ExactSizeIterator>, word: &str) -> Self {
        let texts = texts.into_iter();
        let last = texts.len().saturating_sub(1);
        texts.enumerate().fold(Self::new(), |listed, (nth, text)| match nth {
            0 => text,
            nth if nth == last => listed.plain(format!(" {word} ")).join(text),
            _ => listed.plain(", ").join(text),
        })
    }

    /// Returns the text without styles, for notifications, test logs and models. A person appears as `@` and the id, a
    /// group as its id.
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

/// A part of a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// A paragraph.
    Text(Text),
    /// A heading above the parts that follow.
    Heading(String),
    /// The items of a list.
    List(Vec<Text>),
    /// Short labelled facts, shown in two columns.
    Facts(Vec<(String, Text)>),
    /// A table.
    Table {
        /// The names of the columns.
        columns: Vec<String>,
        /// The rows, each as long as `columns`.
        rows: Vec<Vec<Text>>,
    },
    /// Text of a language model in Markdown, which is not trusted.
    Markdown(String),
    /// A block of code or data.
    Code(String),
    /// Small print: a hint, a source, the age of something.
    Note(Text),
}

/// A button that says something in the name of the person who presses it, as if they had typed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The label of the button.
    pub label: String,
    /// The text that is said when the button is pressed.
    pub says: String,
}

impl Choice {
    /// Creates a button with a label and the text that it says.
    pub fn new(label: impl Into<String>, says: impl Into<String>) -> Self {
        Self { label: label.into(), says: says.into() }
    }
}

/// A button that sends an undelivered message again.
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
    /// The run that this reply answers, if people are asked to rate it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates: Option<RunId>,
    /// The buttons for sending undelivered messages again.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub resends: Box<[Resend]>,
    /// The files that follow in the thread. They are stored and sent separately from the reply.
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

    /// Adds a hint in small print.
    pub fn hint(self, text: impl Into<Text>) -> Self {
        self.and(Part::Note(text.into()))
    }

    /// Adds a button that says `says`.
    pub fn choice(mut self, label: impl Into<String>, says: impl Into<String>) -> Self {
        self.choices.push(Choice { label: label.into(), says: says.into() });
        self
    }

    /// Adds buttons, each given by its label and the text that it says.
    pub fn choices<L: Into<String>, S: Into<String>>(self, choices: impl IntoIterator<Item = (L, S)>) -> Self {
        choices.into_iter().fold(self, |reply, (label, says)| reply.choice(label, says))
    }

    /// Adds a button that sends the message with the nonce `key` again.
    pub fn resend(mut self, label: impl Into<String>, key: impl Into<String>) -> Self {
        let resend = Resend { label: label.into(), key: key.into() };
        self.resends = self.resends.into_iter().chain([resend]).collect();
        self
    }

    /// Asks people to rate the reply, as the final answer of `run`.
    pub fn rated(mut self, run: &RunId) -> Self {
        self.rates = Some(run.clone());
        self
    }

    /// Adds a file.
    pub fn file(mut self, file: Attachment) -> Self {
        self.files.push(file);
        self
    }

    /// Returns the text without styles, a line for each part, for notifications, history and models.
    pub fn words(&self) -> String {
        self.parts.iter().map(Part::words).collect::<Vec<_>>().join("\n")
    }
}

impl Part {
    /// Returns the text without styles.
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
    /// The current value, read from the live system; `None` for something new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Text>,
    /// The value after the change.
    pub after: Text,
}

/// The question to a person who must approve a change, with the exact change.
///
/// It is created by code from validated parameters, never from the text of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// The action and its object as a question: `Start “Math Hints”?`
    pub title: String,
    /// The changes, line by line.
    pub facts: Vec<Fact>,
    /// Warnings of irreversible or unusual effects, shown with ⚠️.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Text>,
    /// Small print, such as defaults that were filled in, or the scope of the change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Text>,
    /// The label of the button that approves: `Archive it`.
    pub approve: String,
    /// The label of the button that rejects: `Don't start`.
    pub reject: String,
    /// The action in the past tense, shown after success: `Started “Math Hints”.`
    pub done: String,
    /// True if the change cannot be undone. The button is then red and asks for confirmation.
    pub irreversible: bool,
    /// True if a person may edit the change in a form before deciding.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub editable: bool,
}

/// A button on a closed card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FollowUp {
    /// Requests that the change be undone, on a new card. Contains the label of the button.
    Undo(String),
    /// Requests the same change again, on a new card. Contains the label of the button.
    Again(String),
    /// Opens the form with the values of this change, to request a similar one.
    Change,
    /// Checks again whether the change happened.
    Check,
    /// Records a person's observation that the change happened.
    MarkDone,
    /// Records a person's observation that the change did not happen, and abandons it.
    Abandon,
}

/// The state of a card, shown below it, above or instead of its buttons.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum CardState {
    /// Waiting for a person.
    Open {
        /// The approval to which the buttons refer.
        approval: ApprovalId,
        /// The person who asked.
        asked_by: UserId,
        /// The people who may decide, in words.
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
    /// Approved and being carried out.
    Running {
        /// The people who approved.
        by: Vec<UserId>,
        /// The time of the approval.
        at: Timestamp,
        /// The progress, if the change is made in batches.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        meter: Option<Meter>,
    },
    /// Closed. From then on the card serves as the record.
    Closed {
        /// The decision, such as “Approved by @ana · today 14:02”, “Expired”.
        decision: Text,
        /// The outcome: “✅ Started”, “❌ The platform refused: …”. `None` if nothing was tried.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<Text>,
        /// The first characters of the digest.
        digest: String,
        /// The approval to which the buttons refer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approval: Option<ApprovalId>,
        /// The buttons that the card still offers.
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
    /// The approval to which the stop button refers.
    pub approval: ApprovalId,
    /// The amount done.
    pub done: u64,
    /// The total amount.
    pub total: u64,
    /// The estimated remaining time at the current pace, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_left: Option<u64>,
    /// A remark on the progress; may be empty.
    pub note: Text,
    /// The question that a person must answer before the change continues, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<Asked>,
}

/// A question that the outside system asks during a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The question.
    pub text: Text,
    /// The label of the button for the answer, such as `Answer…`.
    pub answer: String,
}

/// Serialization of a text that was a plain string in earlier versions. Plain text is still stored as a string.
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
