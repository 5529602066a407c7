//! The phrases about a plan on a card: `without step 2`, `drop the second step`, `without the deletion`, `only step 1`,
//! `2 before 1`, `swap steps 1 and 2`, `put step 2 first`, `move step 3 to the top`.
//!
//! They only make an order: [`super::carry_out`] refuses one in which a step comes before a result that it needs.

use countersign_understanding::{
    phrases::{Phrases, Stage, Utterance, Vocabulary},
    situation::Draft,
    user_request::{Interpretation, UserRequest},
};
use serde_json::{Map, json};

use super::carry_out::{NAME, PlanParameters};

/// The phrases about plans.
pub(super) struct OfPlans;

impl Phrases for OfPlans {
    fn vocabulary(&self) -> Vocabulary {
        // The card of a plan is claimed: its corrections are read here first, before the words of other capabilities.
        Vocabulary { greeting: "", creates: &[NAME], ..Vocabulary::new(&["plan", "plans"]) }
    }

    fn read(&self, stage: Stage, utterance: Utterance<'_>) -> Option<Interpretation> {
        let is_plan = |change: &&Draft| stage == Stage::Correction && change.action == NAME;
        let plan = utterance.situation.asked_for().filter(is_plan)?;
        let plan: PlanParameters = serde_json::from_value(plan.params.clone().into()).ok()?;
        let words: Vec<&str> = utterance.words.iter().map(|word| word.lower.as_str()).collect();
        if let Some(said) = answer(&words, &plan) {
            return Some(Interpretation::answered(said));
        }
        let order = order(&words, &plan)?;
        let params = Map::from_iter([("order".to_owned(), json!(order))]);
        Some(UserRequest::Update(params).into())
    }
}

/// Answers a question about a step, or a request that cannot be served; `None` if the words are neither.
fn answer(words: &[&str], plan: &PlanParameters) -> Option<String> {
    const ASKS: &[&[&str]] = &[
        &["what", "is"],
        &["what", "does"],
        &["what", "happens", "in"],
        &["what", "will", "happen", "in"],
        &["what", "about"],
        &["what", "was"],
        &["show"],
        &["explain"],
        &["describe"],
    ];
    const ENDS: &[&str] = &["exactly", "again", "do", "about", "mean", "in", "detail", "please", "me"];
    const FAILS: &[&str] =
        &["fails", "fail", "failed", "fails?", "breaks", "rejected", "goes", "work", "declined", "wrong", "refused"];
    let steps = present(plan);
    let asked = ASKS.iter().find_map(|asks| words.strip_prefix(*asks)).map(|rest| {
        let begins = rest.iter().position(|word| !ENDS.contains(word)).unwrap_or(rest.len());
        let ends = rest.iter().rposition(|word| !ENDS.contains(word)).map_or(0, |last| last + 1);
        rest.get(begins..ends).unwrap_or_default()
    });
    let names_step = |rest: &&[&str]| rest.iter().any(|word| word.starts_with("step"));
    if let Some(found) = asked.filter(names_step).and_then(|rest| numbers(rest, &steps)) {
        let line = |number: &usize| {
            let at = steps.iter().position(|step| step == number)? + 1;
            Some(format!("Step {at} is: “{}”.", plan.steps.get(number - 1)?))
        };
        let lines: Vec<String> = found.iter().filter_map(line).collect();
        return Some(format!("{} Each change gets its own card when its turn comes.", lines.join(" ")));
    }
    let conditions = words.iter().any(|word| ["if", "when"].contains(word));
    let asks = words.first().is_some_and(|first| ["what", "and", "if"].contains(first));
    if asks && conditions && words.iter().any(|word| FAILS.contains(word)) {
        let said =
            "If a step fails or is turned down, the steps after it are not started. What was already done stays.";
        return Some(said.to_owned());
    }
    let adds =
        [&["before", "that"][..], &["before", "it"], &["before", "this"], &["after", "that"], &["add", "a", "step"]];
    adds.iter().any(|begins| words.starts_with(begins)).then(|| {
        "I can leave out steps of this plan or change their order, but not add one. The plan stays as it is. For another \
         one, say all its requests in one message."
            .to_owned()
    })
}

/// Returns the numbers of the steps that are on the card, in order.
fn present(plan: &PlanParameters) -> Vec<usize> {
    match &plan.order {
        Some(order) => order.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect(),
        None => (1..=plan.steps.len()).collect(),
    }
}

/// Returns the numbers of the steps that remain after this correction, in order; `None` if it is about no step. The
/// words number the steps as on the card, the result as in the request.
fn order(words: &[&str], plan: &PlanParameters) -> Option<String> {
    let present = present(plan);
    let begins = words.iter().position(|word| !LEADING_WORDS.contains(word)).unwrap_or(words.len());
    let ends = words.iter().rposition(|word| !TRAILING_WORDS.contains(word)).map_or(0, |last| last + 1);
    let words = words.get(begins..ends)?;
    let left: Vec<usize> = match words {
        ["without" | "skip" | "skipping" | "drop" | "remove" | "except", rest @ ..] | ["leave", "out", rest @ ..] => {
            let dropped = numbers(rest, &present).or_else(|| named(rest, &plan.steps))?;
            present.iter().copied().filter(|number| !dropped.contains(number)).collect()
        }
        ["only" | "just", rest @ ..] => numbers(rest, &present)?,
        ["swap" | "switch" | "exchange" | "interchange", rest @ ..] => {
            let [first, second]: [usize; 2] = numbers(rest, &present)?.try_into().ok()?;
            let (from, to) = (place_of(first, &present)?, place_of(second, &present)?);
            let mut swapped = present.clone();
            swapped.swap(from, to);
            swapped
        }
        ["start" | "begin", "with", rest @ ..] => moved(numbers(rest, &present)?, Place::First, &present)?,
        ["put" | "move" | "take" | "bring", rest @ ..] => {
            let (what, place) = place(rest, &present, Some(&plan.steps))?;
            moved(numbers(what, &present).or_else(|| named(what, &plan.steps))?, place, &present)?
        }
        words => {
            let (what, place) = place(words, &present, None)?;
            moved(numbers(what, &present)?, place, &present)?
        }
    };
    let left: Vec<String> = left.iter().map(ToString::to_string).collect();
    (!left.is_empty()).then(|| left.join(", "))
}

/// The place to which a step is moved.
enum Place {
    First,
    Last,
    /// Just before the step with this number.
    Before(usize),
    /// Just after the step with this number.
    After(usize),
}

/// Divides `step 3 to the top` into the words for the step and its new place. A step is only described in words if the
/// requests of the plan are given.
fn place<'a, 'w>(
    words: &'a [&'w str],
    present: &[usize],
    requests: Option<&[String]>,
) -> Option<(&'a [&'w str], Place)> {
    const FIRST: &[&[&str]] = &[
        &["first"],
        &["to", "the", "top"],
        &["to", "the", "start"],
        &["to", "the", "front"],
        &["to", "the", "beginning"],
        &["at", "the", "top"],
        &["at", "the", "start"],
        &["at", "the", "beginning"],
    ];
    const LAST: &[&[&str]] =
        &[&["last"], &["to", "the", "end"], &["to", "the", "bottom"], &["at", "the", "end"], &["at", "the", "bottom"]];
    let before = |ends: &[&'static [&'static str]]| ends.iter().find_map(|end| words.strip_suffix(*end));
    if let Some(what) = before(FIRST) {
        return Some((what, Place::First));
    }
    if let Some(what) = before(LAST) {
        return Some((what, Place::Last));
    }
    let divider = words.iter().position(|word| ["before", "after"].contains(word))?;
    let target = &words[divider + 1..];
    let described = || named(target, requests?).filter(|found| found.len() == 1);
    let [target]: [usize; 1] = numbers(target, present).or_else(described)?.try_into().ok()?;
    let place = if words[divider] == "before" { Place::Before(target) } else { Place::After(target) };
    Some((&words[..divider], place))
}

/// Returns the order in which the only one of these steps is at its new place; `None` if there are several.
fn moved(steps: Vec<usize>, place: Place, present: &[usize]) -> Option<Vec<usize>> {
    let [step]: [usize; 1] = steps.try_into().ok()?;
    let from = place_of(step, present)?;
    let mut order = present.to_vec();
    order.remove(from);
    let to = match place {
        Place::First => 0,
        Place::Last => order.len(),
        Place::Before(other) => place_of(other, &order)?,
        Place::After(other) => place_of(other, &order)? + 1,
    };
    order.insert(to, step);
    Some(order)
}

fn place_of(step: usize, order: &[usize]) -> Option<usize> {
    order.iter().position(|number| *number == step)
}

/// Returns the steps that have these numbers on the card, as they are numbered in the request; `None` if other words are
/// among them.
fn numbers(words: &[&str], present: &[usize]) -> Option<Vec<usize>> {
    const FILLERS: &[&str] = &["step", "steps", "the", "and", "with", ",", "number"];
    let counts = |pair: &[&str]| ["first", "last"].contains(&pair[0]) && number(pair[1]).is_some();
    if words.windows(2).any(|pair| counts(pair) && pair[1] != "one") {
        return None; // “the last two” are two steps
    }
    let on_card = |word: &str| match word {
        "last" => present.last().copied(),
        _ => present.get(number(word)?.checked_sub(1)?).copied(),
    };
    let is_filler = |at: usize, word: &str| match word {
        "one" => at.checked_sub(1).is_some_and(|at| ordinal(words[at]).is_some() || words[at] == "last"),
        word => FILLERS.contains(&word),
    };
    let counted = words.iter().enumerate().filter(|(at, word)| !is_filler(*at, word));
    let numbers: Vec<usize> = counted.map(|(_, word)| on_card(word)).collect::<Option<_>>()?;
    (!numbers.is_empty()).then_some(numbers)
}

/// Words that may precede a correction.
const LEADING_WORDS: &[&str] =
    &["no", "ok", "okay", "yes", "but", "please", "do", "it", "that", "again", "then", ",", ".", ":", "-"];

/// Words that may follow a correction.
const TRAILING_WORDS: &[&str] = &["please", "instead", "thanks", "then", ",", "."];

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

/// Parses the number of a step: `2`, `#2`, `two`, `second` or `2nd`.
fn number(word: &str) -> Option<usize> {
    const WORDS: [&str; 8] = ["one", "two", "three", "four", "five", "six", "seven", "eight"];
    let counted = || WORDS.iter().position(|known| *known == word).map(|at| at + 1);
    word.trim_start_matches('#').parse().ok().or_else(counted).or_else(|| ordinal(word))
}

/// Parses the number of a step in a sequence: `second` or `2nd`.
fn ordinal(word: &str) -> Option<usize> {
    const WORDS: [&str; 8] = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"];
    let digits = || ["st", "nd", "rd", "th"].iter().find_map(|ending| word.strip_suffix(ending)?.parse().ok());
    WORDS.iter().position(|known| *known == word).map(|at| at + 1).or_else(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_explained_and_none_is_added() {
        let steps = ["show Foo", "start it", "list the contexts"].map(str::to_owned).to_vec();
        let plan = PlanParameters { steps, order: Some("1, 3".to_owned()) };
        let said = |words: &str| answer(&words.split(' ').collect::<Vec<_>>(), &plan).unwrap_or_default();
        for words in ["what is step 2 exactly", "what does the last step do", "explain step two"] {
            assert!(said(words).contains("Step 2 is: “list the contexts”"), "{words}: {}", said(words));
        }
        for words in ["what happens if step 1 fails", "what if one of them is rejected", "what if it does not work"] {
            assert!(said(words).contains("not started"), "{words}: {}", said(words));
        }
        assert!(said("before that , test it with 100 users").contains("not add one"));
        for words in
            ["what is a context", "what happens if i approve it", "skip step 2", "show Foo", "start it after 5 pm"]
        {
            assert_eq!(said(words), "", "{words}");
        }
    }

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
    #[test]
    fn steps_are_swapped_and_put_elsewhere_in_words() {
        let steps = ["show Foo", "start it", "list the contexts"].map(str::to_owned).to_vec();
        let plan = PlanParameters { steps, order: None };
        let said = |words: &str| order(&words.split(' ').collect::<Vec<_>>(), &plan);
        for (words, expected) in [
            ("swap step 1 and 2", "2, 1, 3"),
            ("please swap the first and the last step", "3, 2, 1"),
            ("switch steps 2 and 3 please", "1, 3, 2"),
            ("swap 1 with 3", "3, 2, 1"),
            ("put step 2 first", "2, 1, 3"),
            ("do step 3 first", "3, 1, 2"),
            ("the third step first", "3, 1, 2"),
            ("no , put the first step last", "2, 3, 1"),
            ("move step 3 to the top", "3, 1, 2"),
            ("move the first one to the end", "2, 3, 1"),
            ("move step 3 before step 2", "1, 3, 2"),
            ("move step 1 after the 2nd", "2, 1, 3"),
            ("put the list before step 1", "3, 1, 2"),
            ("1 after 3", "2, 3, 1"),
            ("start with step 3", "3, 1, 2"),
            ("skip step 2", "1, 3"),
            ("drop the second step", "1, 3"),
            ("remove the last one", "1, 2"),
        ] {
            assert_eq!(said(words).as_deref(), Some(expected), "{words}");
        }
        for words in [
            "swap step 1",
            "swap steps 1 and 2 and 3",
            "swap 1 and 7",
            "put it first",
            "put steps 1 and 2 last",
            "move step 3 after step 3",
            "move the rain to the top",
            "drop the last two",
            "start it after 5 pm",
            "show Foo first",
            "first",
        ] {
            assert_eq!(said(words), None, "{words}");
        }
    }
}
