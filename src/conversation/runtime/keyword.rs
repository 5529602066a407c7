//! Words that are commands when typed alone in a thread with the bot. They are recognised without a
//! model.

/// A command that is typed as a single word or phrase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keyword {
    /// End the work in progress, and close the open cards.
    Stop,
    /// Export the thread.
    Notebook,
}

const STOP: &[&str] = &["stop", "stop please", "please stop", "stop now", "stop working", "halt", "abort"];
const NOTEBOOK: &[&str] =
    &["notebook", "lab notebook", "the notebook", "export", "export this thread", "export the thread"];

impl Keyword {
    /// Returns the command if the whole message consists of one.
    pub fn parse(text: &str) -> Option<Self> {
        let words = text.trim().trim_end_matches(['.', '!']).to_lowercase();
        if STOP.contains(&words.as_str()) {
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
        assert_eq!(Keyword::parse(" Stop! "), Some(Keyword::Stop));
        assert_eq!(Keyword::parse("notebook"), Some(Keyword::Notebook));
        for message in ["stop Math Hints", "stop it", "export Math Hints", "", "don't stop"] {
            assert_eq!(Keyword::parse(message), None, "{message}");
        }
    }
}
