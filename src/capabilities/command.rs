//! The slash commands that capabilities declare.

/// A slash command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The name, with its slash.
    pub name: &'static str,
    /// The words of the command, in the order of the list.
    pub words: &'static [Word],
}

/// A word after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word.
    pub word: &'static str,
    /// The argument that may follow the word.
    pub takes: Takes,
    /// The description of the answer, for the list.
    pub what: &'static str,
    /// An example: the line without the command.
    pub example: &'static str,
}

/// The argument that may follow a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// No argument.
    Nothing,
    /// An optional argument, with its description.
    Optional(&'static str),
    /// A required argument, with its description.
    Required(&'static str),
}
