//! The choices that the last answer offered as buttons, picked in words: “yes”, “the second one”, “the running one”,
//! “assign-prog”.
//!
//! A pick becomes the words of its button before the message is read, so every model understands it alike. It holds for
//! the next message only.

use countersign_core::reply::Choice;

/// The words around a choice that carry no meaning.
const SMALL: &[&str] =
    &["the", "one", "in", "with", "of", "i", "mean", "meant", "no", "yes", "please", "take", "that", "id", "context"];
/// Agreement with the only thing that was offered.
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
/// The largest number of words in a pick; a longer message stands for itself.
const MAX_WORDS: usize = 8;

/// Returns the choice that these words pick, if they plainly pick one. Words of the question that are in no label do
/// not count: “the running document” where documents were asked about.
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
    let says_nothing = |word: &str| SMALL.contains(&word) || (of_question(word) && !in_label(word));
    let meaningful: Vec<&str> = all.iter().map(String::as_str).filter(|word| !says_nothing(word)).collect();
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
    let mut same = choices.iter().filter(|choice| label(choice) == meaningful);
    let same = same.next().filter(|_| same.next().is_none());
    same.or_else(|| {
        let has = |choice: &&Choice| {
            let label = label(choice);
            meaningful.iter().all(|word| label.iter().any(|own| own == word))
        };
        let mut fitting = choices.iter().filter(has);
        fitting.next().filter(|_| fitting.next().is_none())
    })
}

/// Returns the words of a text; a hyphen or an underscore joins.
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
    fn several_are_told_apart_by_place_or_words() {
        let twins = ["assign-prog, inactive, id 0a0b0c0d…", "mathstream, enrolling (running), id 0a0b0c0e…"];
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
