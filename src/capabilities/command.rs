//! Slash commands: what capabilities bring.

/// A slash command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// With its slash.
    pub name: &'static str,
    /// Its words, in the order of the list.
    pub words: &'static [Word],
}

/// A word behind a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word.
    pub word: &'static str,
    /// What may follow it.
    pub takes: Takes,
    /// What it answers, for the list.
    pub what: &'static str,
    /// How it is used: the line without the command.
    pub example: &'static str,
}

/// What may follow a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Nothing.
    Nothing,
    /// Perhaps something.
    Optional(&'static str),
    /// Something, always.
    Required(&'static str),
}
