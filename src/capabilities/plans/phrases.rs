//! The phrases about a plan on a card: `without step 2`, `without the deletion`, `only step 1`, `2 before 1`.

use countersign_understanding::{
    phrases::{Phrases, Utterance},
    user_request::{Interpretation, UserRequest},
};
use serde_json::{Map, json};

use super::carry_out::{NAME, PlanParameters};

/// The phrases about plans.
pub(super) struct OfPlans;

impl Phrases for OfPlans {
    fn things(&self) -> &'static [&'static str] {
        &["plan", "plans"]
    }

    fn greeting(&self) -> &'static str {
        ""
    }

    fn correction(&self, utterance: Utterance<'_>) -> Option<Interpretation> {
        let plan = utterance.situation.asked_for().filter(|change| change.action == NAME)?;
        let plan: PlanParameters = serde_json::from_value(plan.params.clone().into()).ok()?;
        let words: Vec<&str> = utterance.words.iter().map(|word| word.lower.as_str()).collect();
        let order = order(&words, &plan)?;
        let params = Map::from_iter([("order".to_owned(), json!(order))]);
        Some(UserRequest::Update(params).into())
    }
}

/// Returns the numbers of the steps that remain after this correction, in order; `None` if it is about no step. The
/// words number the steps as on the card, the result as in the request.
fn order(words: &[&str], plan: &PlanParameters) -> Option<String> {
    let present: Vec<usize> = match &plan.order {
        Some(order) => order.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect(),
        None => (1..=plan.steps.len()).collect(),
    };
    let begins = words.iter().position(|word| !LEADING_WORDS.contains(word)).unwrap_or(words.len());
    let on_card = |word: &str| present.get(number(word)?.checked_sub(1)?).copied();
    let numbers = |words: &[&str]| -> Option<Vec<usize>> {
        let words = words.iter().filter(|word| !["step", "steps", "the", "and", ",", "number"].contains(word));
        let numbers: Vec<usize> = words.map(|word| on_card(word)).collect::<Option<_>>()?;
        (!numbers.is_empty()).then_some(numbers)
    };
    let left: Vec<usize> = match &words[begins..] {
        ["without" | "skip" | "skipping" | "drop" | "remove" | "except", rest @ ..] | ["leave", "out", rest @ ..] => {
            let dropped = numbers(rest).or_else(|| named(rest, &plan.steps))?;
            present.iter().copied().filter(|number| !dropped.contains(number)).collect()
        }
        ["only" | "just", rest @ ..] => numbers(rest)?,
        [first @ .., "before", second] | [first @ .., "before", "step", second] => {
            let moved = numbers(first)?;
            let ([first], second) = (moved.as_slice(), on_card(second)?) else { return None };
            let (first, mut order) = (*first, present.clone());
            order.retain(|number| *number != first);
            let place = order.iter().position(|number| *number == second)?;
            order.insert(place, first);
            order
        }
        _ => return None,
    };
    let left: Vec<String> = left.iter().map(ToString::to_string).collect();
    (!left.is_empty()).then(|| left.join(", "))
}

/// Words that may precede a correction.
const LEADING_WORDS: &[&str] =
    &["no", "ok", "okay", "yes", "but", "please", "do", "it", "that", "again", "then", ",", ".", ":", "-"];

/// Returns the numbers of the steps that these words describe: `the deletion` is the step `delete it`.
fn named(words: &[&str], steps: &[String]) -> Option<Vec<usize>> {
    const FILLERS: &[&str] = &["the", "a", "an", "step", "steps", "it", "part", "with", "of", ",", ".", "please"];
    /// The number of letters at the beginning in which all forms of a word agree.
    const STEM: usize = 4;
    let stem = |word: &str| word.chars().take(STEM).collect::<String>();
    let meant: Vec<String> = words.iter().filter(|word| !FILLERS.contains(word)).map(|word| stem(word)).collect();
    let holds = |step: &String| {
        let step: Vec<String> = step.split_whitespace().map(|word| stem(&word.to_lowercase())).collect();
        meant.iter().all(|word| step.contains(word))
    };
    let found: Vec<usize> = (1..=steps.len()).filter(|number| holds(&steps[number - 1])).collect();
    (!meant.is_empty() && !found.is_empty()).then_some(found)
}

/// Parses the number of a step, in digits or as a word.
fn number(word: &str) -> Option<usize> {
    const WORDS: [&str; 8] = ["one", "two", "three", "four", "five", "six", "seven", "eight"];
    word.parse().ok().or_else(|| WORDS.iter().position(|known| *known == word).map(|at| at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_dropped_and_moved_in_words() {
        let plan = PlanParameters { steps: vec!["a".into(), "b".into(), "c".into()], order: None };
        let said = |words: &str| order(&words.split(' ').collect::<Vec<_>>(), &plan);
        assert_eq!(said("without step 2").as_deref(), Some("1, 3"));
        assert_eq!(said("skip the steps 1 and 2").as_deref(), Some("3"));
        assert_eq!(said("only step one").as_deref(), Some("1"));
        assert_eq!(said("3 before 1").as_deref(), Some("3, 1, 2"));
        assert_eq!(said("step 2 before step 1").as_deref(), Some("2, 1, 3"));
        let plan = PlanParameters { order: Some("3, 1, 2".to_owned()), ..plan };
        let said = |words: &str| order(&words.split(' ').collect::<Vec<_>>(), &plan);
        assert_eq!(said("without step 1").as_deref(), Some("1, 2"), "the first on the card");
        assert_eq!(said("3 before 2").as_deref(), Some("3, 2, 1"));
        let plan = PlanParameters { steps: vec!["stop Foo".into(), "delete it".into()], order: None };
        let said = |words: &str| order(&words.split(' ').collect::<Vec<_>>(), &plan);
        for words in ["no , without the delete", "without deleting it", "skip the deletion", "leave out delete it"] {
            assert_eq!(said(words).as_deref(), Some("1"), "{words}");
        }
        for words in ["without step 4", "skip it", "only", "without steps 1 and 2 and 3", "without the rain"] {
            assert_eq!(said(words), None, "{words}");
        }
    }
}
