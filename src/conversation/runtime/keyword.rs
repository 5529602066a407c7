//! Messages that are commands when typed in a thread with the bot. They are recognised without a
//! model.

use countersign_assistant::stop_request;

/// A command that is typed as a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keyword {
    /// End the work in progress, and close the open cards. If the message only points at the work,
    /// such as “stop it”, this depends on the thread ([`super::stopping`]).
    Stop,
    /// Export the thread.
    Notebook,
}

const NOTEBOOK: &[&str] =
    &["notebook", "lab notebook", "the notebook", "export", "export this thread", "export the thread"];

impl Keyword {
    /// Returns the command if the whole message consists of one.
    pub fn parse(text: &str) -> Option<Self> {
        let words = text.trim().trim_end_matches(['.', '!']).to_lowercase();
        if stop_request(text).is_some() {
            Some(Self::Stop)
        } else if NOTEBOOK.contains(&words.as_str()) {
            Some(Self::Notebook)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_message_is_a_command() {
        for message in [" Stop! ", "wait, stop", "cancel everything", "stop the plan", "hold on, stop it"] {
            assert_eq!(Keyword::parse(message), Some(Keyword::Stop), "{message}");
        }
        assert_eq!(Keyword::parse("notebook"), Some(Keyword::Notebook));
        for message in ["stop Math Hints", "stop the experiment", "export Math Hints", "", "don't stop"] {
            assert_eq!(Keyword::parse(message), None, "{message}");
        }
    }
}
