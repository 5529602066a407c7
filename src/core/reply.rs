//! Replies and cards as plain data, before they are rendered.
//!
//! A [`Reply`] or a [`Card`] is stored, compared in tests, and rendered as Block Kit only when it is sent
//! (`conversation::presentation::render`). Text is built from [`Span`]s, so that text from a person, a model or another
//! system is marked as such. It is escaped only when it is rendered, never here and never twice.

mod card;

use serde::{Deserialize, Serialize};

use crate::{
    clock::Timestamp,
    ids::{ChannelId, RunId, UserId},
};

pub use self::card::{Asked, Card, CardState, EndedBy, Fact, FollowUp, Meter};

/// The mark before the name of an API key, which no person has.
pub const KEY_MARK: &str = "🤖 ";

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
    /// Text over several lines that has to be read as it is, such as a message that will be sent. On a card, it is
    /// shown as a quotation when it is the whole value of a line; elsewhere like plain text.
    Quote(String),
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

    /// Adds text over several lines that has to be read as it is.
    pub fn quote(mut self, words: impl Into<String>) -> Self {
        self.0.push(Span::Quote(words.into()));
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
    /// group as its id, a program by the name of its API key.
    pub fn words(&self) -> String {
        self.0
            .iter()
            .map(|span| match span {
                Span::Plain(t) | Span::Bold(t) | Span::Italic(t) | Span::Code(t) | Span::Quote(t) | Span::Group(t) => {
                    t.clone()
                }
                Span::Person(user) | Span::Name(user) => match user.key() {
                    Some(key) => format!("{KEY_MARK}{key}"),
                    None => format!("@{user}"),
                },
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

/// The question after an outcome. Any request answers it, so the buttons below it are suggestions.
pub const WHAT_NEXT: &str = "What next?";

/// Returns true if a text asks something that the buttons below it answer.
pub fn is_question(text: &str) -> bool {
    let text = text.trim_end();
    (text.ends_with('?') || text.contains("? ")) && !text.ends_with(WHAT_NEXT)
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
    /// The description of a picture with its numbers, for people who cannot see it; empty for other files.
    pub alt: String,
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

    /// Returns true if the reply asks something that its buttons answer.
    pub fn asks(&self) -> bool {
        let asks = |part: &Part| matches!(part, Part::Text(text) if is_question(&text.words()));
        !self.choices.is_empty() && self.parts.iter().any(asks)
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
