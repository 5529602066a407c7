//! The grammar of commands: their words, and suggestions for mistyped ones.

use countersign_capabilities::{Command, Effect, OWN_COMMAND, Registry, Takes, Word};

/// The minimum similarity at which a word is suggested in place of a mistyped one.
const MIN_SIMILARITY: f64 = 0.72;

/// A parsed command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParsedCommand {
    /// A word of a capability.
    Capability {
        /// The index of the capability.
        capability: usize,
        /// The word.
        word: &'static str,
        /// The text after the word.
        rest: String,
    },
    /// The cards that wait for a decision.
    Pending,
    /// The latest changes.
    Runs,
    /// The asker's requests.
    Mine,
    /// The standing approvals.
    Standing,
    /// The export of the thread with this link, or of the asker's latest.
    Notebook(Option<String>),
    /// The settings.
    Settings,
    /// The list of words.
    Help,
}

/// The reasons why a command is not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandError {
    /// There is no such word, but `nearest` may be meant.
    UnknownWord {
        /// The word as typed.
        word: String,
        /// The nearest known word.
        nearest: Option<CommandWord>,
    },
    /// The text is a request for a change, which no command makes.
    Change(String),
    /// The word requires text after it.
    MissingText(CommandWord),
    /// The word takes no text after it.
    UnexpectedText(CommandWord),
}

/// A word, and the command that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandWord {
    /// The command with its slash.
    pub command: &'static str,
    /// The word.
    pub word: &'static Word,
}

const fn word(word: &'static str, takes: Takes, what: &'static str, example: &'static str) -> Word {
    Word { word, takes, what, example }
}

/// The word for the open cards, which every command has.
const PENDING: Word = word("pending", Takes::Nothing, "cards waiting for a decision", "pending");
/// The word for the list of words, which every command has.
const HELP: Word = word("help", Takes::Nothing, "this list", "help");

/// The words of the bot's own command.
const OWN_COMMAND_WORDS: Command = Command {
    name: OWN_COMMAND,
    words: &[
        PENDING,
        word("runs", Takes::Nothing, "recent changes and their outcomes", "runs"),
        word("mine", Takes::Nothing, "what you asked for", "mine"),
        word("standing", Takes::Nothing, "changes approved in advance", "standing"),
        word(
            "notebook",
            Takes::Optional("link to a thread"),
            "a thread as a file",
            "notebook https://…/archives/C…/p…",
        ),
        word("settings", Takes::Nothing, "who can decide what here, and the limits", "settings"),
        HELP,
    ],
};
/// The words that every capability's command has in addition to its own.
const SHARED_WORDS: &[Word] = &[PENDING, HELP];

/// Returns all words, those of the capabilities' commands first.
pub fn words(registry: &Registry) -> Vec<CommandWord> {
    let of_capabilities = registry.capabilities.iter().filter_map(|capability| capability.info().command);
    let of_capabilities = of_capabilities.flat_map(|command| {
        command.words.iter().chain(SHARED_WORDS).map(move |word| CommandWord { command: command.name, word })
    });
    of_capabilities
        .chain(OWN_COMMAND_WORDS.words.iter().map(|word| CommandWord { command: OWN_COMMAND_WORDS.name, word }))
        .collect()
}

/// Parses the text after a command.
///
/// # Errors
///
/// [`CommandError`] if the text is not understood.
pub fn parse(registry: &Registry, command: &str, text: &str) -> Result<ParsedCommand, CommandError> {
    let text = text.trim();
    let (typed, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let (typed, rest) = (if typed.is_empty() { HELP.word } else { typed }, rest.trim());
    let lower = typed.to_lowercase();
    let words = words(registry);
    let Some(known) = words.iter().find(|known| known.command == command && known.word.word == lower) else {
        // A command answers only its asker, and a change has to be asked for where others see it.
        if matches!(registry.effect_of(text), Effect::Changes | Effect::Irreversible) {
            return Err(CommandError::Change(text.to_owned()));
        }
        return Err(CommandError::UnknownWord { word: typed.to_owned(), nearest: nearest(&words, command, &lower) });
    };
    match (known.word.takes, rest) {
        (Takes::Nothing, rest) if !rest.is_empty() && known.word.word != HELP.word => {
            return Err(CommandError::UnexpectedText(*known));
        }
        (Takes::Required(_), "") => return Err(CommandError::MissingText(*known)),
        _ => {}
    }
    let is_capability_word = !OWN_COMMAND_WORDS.words.iter().chain(SHARED_WORDS).any(|own| own.word == known.word.word);
    let position = registry.capabilities.iter().position(|capability| {
        is_capability_word && capability.info().command.is_some_and(|command| command.name == known.command)
    });
    if let Some(capability) = position {
        return Ok(ParsedCommand::Capability { capability, word: known.word.word, rest: rest.to_owned() });
    }
    Ok(match known.word.word {
        "pending" => ParsedCommand::Pending,
        "runs" => ParsedCommand::Runs,
        "mine" => ParsedCommand::Mine,
        "standing" => ParsedCommand::Standing,
        "notebook" => ParsedCommand::Notebook(Some(rest.to_owned()).filter(|rest| !rest.is_empty())),
        "settings" => ParsedCommand::Settings,
        _ => ParsedCommand::Help,
    })
}

impl CommandWord {
    /// Returns true if the example of this word is about what was typed without the word: `running` for `list running`.
    pub fn is_left_out_before(&self, typed: &str) -> bool {
        self.word.example.strip_prefix(self.word.word).is_some_and(|rest| rest.trim().eq_ignore_ascii_case(typed))
    }
}

/// Returns the word that was most likely meant, preferring one of the same command.
fn nearest(words: &[CommandWord], command: &str, typed: &str) -> Option<CommandWord> {
    if let Some(left_out) = words.iter().find(|known| known.command == command && known.is_left_out_before(typed)) {
        return Some(*left_out);
    }
    let similarity = |known: &CommandWord| {
        let similarity = strsim::jaro_winkler(known.word.word, typed);
        if known.command == command { similarity } else { similarity - 0.05 }
    };
    let all = words.iter().map(|known| (similarity(known), known));
    let (similarity, word) = all.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (similarity >= MIN_SIMILARITY).then_some(*word)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use countersign_capabilities::{Capability, CapabilityInfo, Tool};
    use countersign_graph::action::ActionKind;

    /// A capability that has only a command.
    struct Lists;

    impl Capability for Lists {
        fn info(&self) -> CapabilityInfo {
            CapabilityInfo {
                command: {
                    const WORDS: &[Word] = &[
                        word("status", Takes::Nothing, "whether it runs", "status"),
                        word("list", Takes::Optional("kind"), "all of a kind", "list running"),
                        word("show", Takes::Required("name"), "one of them", "show Math Hints"),
                    ];
                    Some(Command { name: "/lists", words: WORDS })
                },
                ..CapabilityInfo::new("lists", "What a test needs.")
            }
        }

        fn tools(&self) -> Vec<Arc<dyn Tool>> {
            Vec::new()
        }

        fn actions(&self) -> Vec<Arc<dyn ActionKind>> {
            Vec::new()
        }
    }

    fn registry() -> Registry {
        Registry::build(vec![Arc::new(Lists)]).unwrap()
    }

    fn outcome_of(command: &str, text: &str) -> String {
        match parse(&registry(), command, text) {
            Ok(ParsedCommand::Capability { word, rest, .. }) => format!("{word}({rest:?})"),
            Ok(asked) => format!("{asked:?}"),
            Err(CommandError::UnknownWord { nearest: Some(known), .. }) => {
                format!("{} {}?", known.command, known.word.example)
            }
            Err(CommandError::UnknownWord { nearest: None, .. }) => "no idea".to_owned(),
            Err(CommandError::Change(asked)) => format!("change: {asked}"),
            Err(CommandError::MissingText(known)) => format!("{} what?", known.word.word),
            Err(CommandError::UnexpectedText(known)) => format!("{} alone", known.word.word),
        }
    }

    #[test]
    fn a_line_is_understood_or_the_nearest_word_is_suggested() {
        for (line, expected) in [
            ("/lists", "Help"),
            ("/lists  LIST   running ", "list(\"running\")"),
            ("/lists show Math Hints", "show(\"Math Hints\")"),
            ("/lists show", "show what?"),
            ("/lists status now", "status alone"),
            ("/lists stauts", "/lists status?"),
            ("/lists lsit", "/lists list running?"),
            ("/lists running", "/lists list running?"),
            ("/lists mine", "/countersign mine?"),
            ("/countersign pendign", "/countersign pending?"),
            ("/countersign setings", "/countersign settings?"),
            ("/countersign standing", "Standing"),
            ("/countersign standing all", "standing alone"),
            ("/countersign standig", "/countersign standing?"),
            ("/lists standing", "/countersign standing?"),
            ("/countersign list", "/lists list running?"),
            ("/countersign xyzzy", "no idea"),
        ] {
            let (command, text) = line.split_once(' ').unwrap_or((line, ""));
            assert_eq!(outcome_of(command, text), expected, "{line}");
        }
    }

    #[test]
    fn every_word_has_an_example_that_is_understood() {
        for known in words(&registry()) {
            assert!(parse(&registry(), known.command, known.word.example).is_ok(), "{known:?}");
        }
    }
}
