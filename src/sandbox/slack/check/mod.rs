//! The limits of Block Kit, all of them: what is over one is refused, as Slack refuses it.
//!
//! Counts are characters. `blocks` knows the kinds of blocks, `elements` what stands in them, `views` modals and Home
//! tabs. A problem names the error and where it is, as a JSON pointer.

mod blocks;
mod elements;
mod text;
mod views;

pub(super) use blocks::message;
pub(super) use views::view;

/// Why something is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// Slack's name for it.
    pub(super) error: &'static str,
    /// Words and a JSON pointer.
    pub(super) reason: String,
}

/// What a check comes to.
type Checked = Result<(), Problem>;

fn problem(at: &str, words: impl std::fmt::Display) -> Problem {
    Problem { error: "invalid_blocks", reason: format!("{words} [json-pointer:{at}]") }
}
