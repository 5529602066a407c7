//! What can be asked with a command, and what somebody may have meant.

/// How alike two words must be for one to be suggested in place of the other.
const ALIKE: f64 = 0.72;

/// A word behind a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// With its slash.
    pub command: &'static str,
    /// The word.
    pub word: &'static str,
    /// What may follow it.
    pub takes: Takes,
    /// What it answers, for the list.
    pub what: &'static str,
    /// How it is used; the whole line.
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

/// What was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// How the platform is.
    Platform,
    /// Experiments: all, or of a context or status.
    List(String),
    /// One experiment.
    Show(String),
    /// What waits for a decision.
    Pending,
    /// What was changed lately.
    Runs,
    /// What the asker asked for.
    Mine,
    /// What may be done without asking each time.
    Standing,
    /// A thread as a file: the one with this link, or the asker's latest.
    Notebook(Option<String>),
    /// What is set.
    Settings,
    /// What can be asked.
    Help,
}

/// Why a line is not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// There is no such word; perhaps this one was meant.
    Unknown {
        /// What was typed.
        word: String,
        /// The nearest.
        nearest: Option<&'static Word>,
    },
    /// Something must follow the word.
    Missing(&'static Word),
    /// Nothing may follow the word.
    TooMuch(&'static Word),
}

const fn word(
    command: &'static str,
    word: &'static str,
    takes: Takes,
    what: &'static str,
    example: &'static str,
) -> Word {
    Word { command, word, takes, what, example }
}

const UPGRADE: &str = "/upgrade";
const COUNTERSIGN: &str = "/countersign";

/// Every word, in the order of the list.
pub const WORDS: &[Word] = &[
    word(UPGRADE, "status", Takes::Nothing, "whether UpGrade is running, and its version", "/upgrade status"),
    word(
        UPGRADE,
        "list",
        Takes::Optional("context or status"),
        "all experiments, or those of a context or status",
        "/upgrade list running",
    ),
    word(UPGRADE, "show", Takes::Required("name"), "one experiment", "/upgrade show Math Hints"),
    word(UPGRADE, "pending", Takes::Nothing, "cards that wait for somebody", "/upgrade pending"),
    word(UPGRADE, "help", Takes::Nothing, "this list", "/upgrade help"),
    word(COUNTERSIGN, "pending", Takes::Nothing, "cards that wait for somebody", "/countersign pending"),
    word(COUNTERSIGN, "runs", Takes::Nothing, "the latest changes and how they ended", "/countersign runs"),
    word(COUNTERSIGN, "mine", Takes::Nothing, "what you asked for", "/countersign mine"),
    word(COUNTERSIGN, "standing", Takes::Nothing, "what may be done without asking each time", "/countersign standing"),
    word(
        COUNTERSIGN,
        "notebook",
        Takes::Optional("link to a thread"),
        "a thread as a file",
        "/countersign notebook https://…/archives/C…/p…",
    ),
    word(COUNTERSIGN, "settings", Takes::Nothing, "who may decide what here, and the limits", "/countersign settings"),
    word(COUNTERSIGN, "help", Takes::Nothing, "this list", "/countersign help"),
];

/// Reads a line.
///
/// # Errors
///
/// [`Wrong`], for an answer that helps.
pub fn read(command: &str, text: &str) -> Result<Asked, Wrong> {
    let text = text.trim();
    let (typed, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let (typed, rest) = (if typed.is_empty() { "help" } else { typed }, rest.trim());
    let lower = typed.to_lowercase();
    let Some(known) = WORDS.iter().find(|known| known.command == command && known.word == lower) else {
        return Err(Wrong::Unknown { word: typed.to_owned(), nearest: nearest(command, &lower) });
    };
    match (known.takes, rest) {
        (Takes::Nothing, rest) if !rest.is_empty() && known.word != "help" => return Err(Wrong::TooMuch(known)),
        (Takes::Required(_), "") => return Err(Wrong::Missing(known)),
        _ => {}
    }
    Ok(match known.word {
        "status" => Asked::Platform,
        "list" => Asked::List(rest.to_owned()),
        "show" => Asked::Show(rest.to_owned()),
        "pending" => Asked::Pending,
        "runs" => Asked::Runs,
        "mine" => Asked::Mine,
        "standing" => Asked::Standing,
        "notebook" => Asked::Notebook(Some(rest.to_owned()).filter(|rest| !rest.is_empty())),
        "settings" => Asked::Settings,
        _ => Asked::Help,
    })
}

/// The word that was most likely meant; one of the same command rather than one of another.
fn nearest(command: &str, typed: &str) -> Option<&'static Word> {
    let likeness = |known: &Word| {
        let alike = strsim::jaro_winkler(known.word, typed);
        if known.command == command { alike } else { alike - 0.05 }
    };
    let all = WORDS.iter().map(|known| (likeness(known), known));
    let (likeness, word) = all.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (likeness >= ALIKE).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(command: &str, text: &str) -> String {
        match read(command, text) {
            Ok(asked) => format!("{asked:?}"),
            Err(Wrong::Unknown { nearest: Some(word), .. }) => format!("{}?", word.example),
            Err(Wrong::Unknown { nearest: None, .. }) => "no idea".to_owned(),
            Err(Wrong::Missing(word)) => format!("{} what?", word.word),
            Err(Wrong::TooMuch(word)) => format!("{} alone", word.word),
        }
    }

    #[test]
    fn a_line_is_understood_or_the_nearest_is_named() {
        for (line, expected) in [
            ("/upgrade", "Help"),
            ("/upgrade  LIST   running ", "List(\"running\")"),
            ("/upgrade show Math Hints", "Show(\"Math Hints\")"),
            ("/upgrade show", "show what?"),
            ("/upgrade status now", "status alone"),
            ("/upgrade stauts", "/upgrade status?"),
            ("/upgrade lsit", "/upgrade list running?"),
            ("/upgrade mine", "/countersign mine?"),
            ("/countersign pendign", "/countersign pending?"),
            ("/countersign setings", "/countersign settings?"),
            ("/countersign standing", "Standing"),
            ("/countersign standing all", "standing alone"),
            ("/countersign standig", "/countersign standing?"),
            ("/upgrade standing", "/countersign standing?"),
            ("/countersign list", "/upgrade list running?"),
            ("/countersign xyzzy", "no idea"),
        ] {
            let (command, text) = line.split_once(' ').unwrap_or((line, ""));
            assert_eq!(meant(command, text), expected, "{line}");
        }
    }

    #[test]
    fn every_word_has_an_example_that_is_understood() {
        for word in WORDS {
            let (command, text) = word.example.split_once(' ').unwrap();
            assert!(command == word.command && read(command, text).is_ok(), "{}", word.example);
        }
    }
}
