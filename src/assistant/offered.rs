//! Recognizes words that pick one of the choices that the last answer offered as buttons: “yes”, “the second one”, “the
//! running one”, “assign-prog”.
//!
//! A pick is replaced with the words of its button before the message is analyzed, so every model handles it the same
//! way. Only the next message can pick.

use countersign_core::reply::Choice;

/// Words of a pick that carry no meaning.
const FILLERS: &[&str] =
    &["the", "one", "in", "with", "of", "i", "mean", "meant", "no", "yes", "please", "take", "that", "id", "context"];
/// Messages that pick the only choice.
const YES: &[&str] = &[
    "yes",
    "y",
    "yes please",
    "yep",
    "yeah",
    "that one",
    "yes that one",
    "exactly",
    "correct",
    "right",
    "yes i did",
    "i did",
];
const ORDINALS: &[&[&str]] = &[
    &["first", "1", "1st", "#1"],
    &["second", "2", "2nd", "#2"],
    &["third", "3", "3rd", "#3"],
    &["fourth", "4", "4th", "#4"],
    &["fifth", "5", "5th", "#5"],
];
/// The maximum number of words in a pick; a longer message is a request of its own.
const MAX_WORDS: usize = 8;

/// Returns the words of the choice that a text picks, or of both choices if it picks both: “start A and B”.
pub(super) fn picked_words(choices: &[Choice], question: Option<&str>, said: &str) -> Option<String> {
    match picked_choice(choices, question, said) {
        Some(picked) => Some(picked.says.clone()),
        None => both(choices, said),
    }
}

/// Returns the request for both of two things, if the choices differ in nothing but a name.
fn both(choices: &[Choice], said: &str) -> Option<String> {
    const BOTH: &[&str] =
        &["both", "both of them", "both please", "both of them please", "both of these", "both of those"];
    let said = said.trim().trim_end_matches(['.', '!']).to_lowercase();
    let [first, second] = choices else { return None };
    let rest =
        |choice: &Choice| choice.says.contains(&choice.label).then(|| choice.says.replacen(&choice.label, "", 1));
    let is_alike = rest(first).is_some_and(|frame| rest(second).is_some_and(|other| frame == other));
    let names = match first.says.contains(&format!("“{}”", first.label)) {
        true => format!("{}” and “{}", first.label, second.label),
        false => format!("“{}” and “{}”", first.label, second.label),
    };
    (BOTH.contains(&said.as_str()) && is_alike).then(|| first.says.replacen(&first.label, &names, 1))
}

/// Returns the choice that a text picks, if it clearly picks one. Words of the question that are in no label are
/// ignored, such as “document” in “the running document” after a question about documents.
pub(super) fn picked_choice<'a>(choices: &'a [Choice], question: Option<&str>, said: &str) -> Option<&'a Choice> {
    let said = said.trim().trim_end_matches(['.', '!', '…']).to_lowercase().replace('’', "'");
    if choices.is_empty() || said.ends_with('?') {
        return None;
    }
    let all = words_of(&said);
    if let ([only], true) = (choices, YES.contains(&all.join(" ").as_str())) {
        return Some(only);
    }
    let question = words_of(&question.unwrap_or_default().to_lowercase());
    let of_question = |word: &str| question.iter().any(|asked| asked == word || asked.strip_suffix('s') == Some(word));
    let in_label =
        |word: &str| choices.iter().any(|choice| words_of(&choice.label.to_lowercase()).iter().any(|own| own == word));
    let is_ignored = |word: &str| FILLERS.contains(&word) || (of_question(word) && !in_label(word));
    let meaningful: Vec<&str> = all.iter().map(String::as_str).filter(|word| !is_ignored(word)).collect();
    if meaningful.is_empty() || all.len() > MAX_WORDS {
        return None;
    }
    if let [word] = meaningful.as_slice() {
        if *word == "last" {
            return choices.last();
        }
        if let Some(place) = ORDINALS.iter().position(|names| names.contains(word)) {
            return choices.get(place);
        }
    }
    let label = |choice: &&Choice| words_of(&choice.label.to_lowercase());
    let mut equal = choices.iter().filter(|choice| label(choice) == meaningful);
    let equal = equal.next().filter(|_| equal.next().is_none());
    equal.or_else(|| {
        let contains_all = |choice: &&Choice| {
            let label = label(choice);
            meaningful.iter().all(|word| label.iter().any(|own| own == word))
        };
        let mut fitting = choices.iter().filter(contains_all);
        fitting.next().filter(|_| fitting.next().is_none())
    })
}

/// Splits a text into words; hyphens and underscores are part of a word.
fn words_of(text: &str) -> Vec<String> {
    let inside = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '#' | '\'' | '.');
    let words = text.split(|c: char| !inside(c)).map(|word| word.trim_matches(['\'', '.', '-']));
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(label: &str) -> Choice {
        Choice { label: label.to_owned(), says: format!("start {label}") }
    }

    fn pick(labels: &[&str], said: &str) -> Option<usize> {
        let choices: Vec<_> = labels.iter().map(|label| choice(label)).collect();
        let found = picked_choice(&choices, Some("There are several experiments. Which one do you mean?"), said)?;
        choices.iter().position(|choice| choice == found)
    }

    #[test]
    fn one_suggestion_is_taken_with_a_yes() {
        for said in ["yes", "Yes!", "yes, please", "that one", "yes, Math Hints", "math hints", "“Math Hints”"] {
            assert_eq!(pick(&["Math Hints"], said), Some(0), "{said}");
        }
        for said in ["no", "yes?", "yes but rename it", "start Running Test", "what?", ""] {
            assert_eq!(pick(&["Math Hints"], said), None, "{said}");
        }
    }

    #[test]
    fn both_of_two_things_are_asked_for_at_once() {
        let words = |choices: &[Choice], said: &str| picked_words(choices, Some("Did you mean one of these?"), said);
        let plain = [choice("Math Hints"), choice("Math Hints v2")];
        for said in ["both", "Both of them!"] {
            assert_eq!(words(&plain, said).as_deref(), Some("start “Math Hints” and “Math Hints v2”"), "{said}");
        }
        let quoted = plain.clone().map(|Choice { label, .. }| Choice { says: format!("start “{label}”"), label });
        assert_eq!(words(&quoted, "both").as_deref(), Some("start “Math Hints” and “Math Hints v2”"));
        let different = [choice("A"), Choice { label: "B".to_owned(), says: "stop B".to_owned() }];
        assert_eq!(words(&different, "both"), None);
        assert_eq!(words(&plain[..1], "both"), None);
    }

    #[test]
    fn several_are_told_apart_by_place_or_words() {
        let twins = ["assign-prog, inactive, id 0a0b0c0d…", "mathstream, running, id 0a0b0c0e…"];
        for (said, place) in [
            ("the first one", Some(0)),
            ("the second", Some(1)),
            ("2", Some(1)),
            ("the last one", Some(1)),
            ("the running one", Some(1)),
            ("the one in assign-prog", Some(0)),
            ("assign-prog", Some(0)),
            ("0a0b0c0e", Some(1)),
            ("id 0a0b0c0d…", Some(0)),
            ("yes", None),
            ("the third", None),
            ("the one", None),
            ("the paused one", None),
            ("list the running experiments in assign-prog", None),
        ] {
            assert_eq!(pick(&twins, said), place, "{said}");
        }
        let names = ["Math Hints", "Math Hints v2"];
        assert_eq!(pick(&names, "Math Hints"), Some(0));
        assert_eq!(pick(&names, "v2"), Some(1));
        assert_eq!(pick(&names, "the hints one"), None);
    }
}
