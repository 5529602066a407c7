//! Values without a parameter: answers to a question, corrections, and new values for the parameter that was named last.

use countersign_core::units;
use countersign_understanding::{
    corrections::Correction,
    phrases::Utterance,
    situation::Draft,
    user_request::{Interpretation, UserRequest},
    words::{Word, after, are, skip, text, without_last},
};

use serde_json::Value;

use super::{OWNER, SET, values};
use crate::{
    amount::{Amount, listed},
    families,
};

/// The maximum length of the name of a model file in an answer, in words.
const MAX_FILE_WORDS: usize = 4;

/// Returns the current request to set a parameter, if there is one.
fn current_set<'a>(utterance: Utterance<'a>) -> Option<&'a Draft> {
    utterance.situation.in_hand().filter(|draft| draft.action == SET)
}

/// Reads a value of the parameter that is being set or was named last: “make it 80 kg”, “no, 2 L”, “95”.
pub(super) fn correction(utterance: Utterance<'_>) -> Option<Interpretation> {
    if let Some(found) = other_values(utterance) {
        return Some(found);
    }
    const OPENINGS: &str = "what about|how about|change to|set to|put it at|put it to|try|put|make|it|to";
    let found = Correction::of(utterance.words);
    let mut rest = found.value;
    while let Some(left) = after(rest, OPENINGS).filter(|left| !left.is_empty()) {
        rest = left;
    }
    let is_alone = rest.as_ptr() == utterance.words.as_ptr();
    let amount = Amount::read(&text(rest))?;
    if rest.first()?.any(&["double", "triple", "halve"]) && matches!(amount, Amount::Times { of: Some(_), .. }) {
        return None; // a request of its own: “double the dose”
    }
    if is_alone && (utterance.is_question || utterance.situation.draft.is_some() || !stands_alone(&amount)) {
        return None;
    }
    let named = utterance.topic_of(OWNER).and_then(|topic| Some((topic, topic.parameters.get("parameter")?)));
    let has_draft = utterance.situation.draft.is_some();
    // A parameter that was read after the card was shown was named later.
    let read_since = named.is_some_and(|(topic, _)| topic.call == "get_parameter_value") && !has_draft;
    if current_set(utterance).is_some() && (found.objects || !read_since) {
        return update("value", rest);
    }
    let (_, parameter) = named.filter(|_| read_since || utterance.situation.in_hand().is_none())?;
    let simulation = super::last_simulation(utterance).map(|name| ("active".to_owned(), name.into()));
    let given = [("parameter".to_owned(), parameter.clone()), ("value".to_owned(), text(rest).into())];
    Some(UserRequest::change(SET, given.into_iter().chain(simulation).collect()).into())
}

/// Reads values to add to the comparison that is being asked for, or to leave out of it: “wait, add 25”, “without 10”.
fn other_values(utterance: Utterance<'_>) -> Option<Interpretation> {
    const OBJECTS: &str =
        "no|wait|oh|hm|actually|sorry|oops|hang on|hold on|,|please|and|also|but|can you|could you|let us";
    const ADDS: &str = "add|include|plus|and also|also|and|with|throw in|put in";
    const DROPS: &str = "without|drop|remove|leave out|take out|skip|not";
    let draft = utterance.situation.in_hand().filter(|draft| draft.action == "compare_values")?;
    let mut words = utterance.typed;
    let mut adds_also = false;
    while let Some(rest) = after(words, OBJECTS).filter(|rest| !rest.is_empty()) {
        adds_also |= words[0].any(&["and", "also"]);
        words = rest;
    }
    let (drops, rest) = match (after(words, ADDS), after(words, DROPS)) {
        (Some(rest), _) => (false, rest),
        (None, Some(rest)) => (true, rest),
        (None, None) => (false, Some(words).filter(|_| adds_also)?),
    };
    let rest = without_last(rest, &["too", "also", "please", "as", "well", "to", "it", "that", "them", "the", "list"]);
    let rest = skip(rest, "a|another|at|the value|value|of");
    let more = values(rest).map(|_| listed(&text(rest))).or_else(|| match Amount::read(&text(rest))? {
        Amount::Absolute { unit, .. } if unit.as_deref().is_none_or(units::is_unit) => Some(vec![text(rest)]),
        _ => None,
    })?;
    let old = match draft.params.get("values")? {
        Value::String(old) => listed(old),
        _ => return None,
    };
    let number = |value: &String| match Amount::read(value) {
        Some(Amount::Absolute { value, .. }) => Some(value),
        _ => None,
    };
    let is_new = |value: &String| !more.iter().any(|other| number(other) == number(value));
    let kept: Vec<String> = old.iter().filter(|value| is_new(value)).cloned().collect();
    if drops {
        return (kept.len() < old.len()).then(|| Interpretation::update("values", kept.join(", ")));
    }
    let unit = old.iter().find_map(|value| value.split_once(' ')).map(|(_, unit)| unit.to_owned());
    let with_unit = |value: String| match (&unit, value.contains(|c: char| c.is_alphabetic() || c == '%')) {
        (Some(unit), false) => format!("{value} {unit}"),
        _ => value,
    };
    let all: Vec<String> = kept.into_iter().chain(more.into_iter().map(with_unit)).collect();
    Some(Interpretation::update("values", all.join(", ")))
}

/// Reads the order to run what was just loaded or set: “go”.
pub(super) fn go(utterance: Utterance<'_>) -> Option<Interpretation> {
    const GO: &str =
        "go|go ahead|go on|go for it|start|start it|start now|launch|launch it|begin|proceed|off you go|off we go";
    const READY: &[&str] = &["load_simulation", "use_simulation", SET, "restore_simulation", "snapshot_simulation"];
    let Utterance { words, situation, is_question, .. } = utterance;
    let topic = utterance.topic_of(OWNER).filter(|topic| READY.contains(&topic.call.as_str()))?;
    let is_free = situation.open_cards.is_empty() && situation.draft.is_none() && situation.aside.is_none();
    if is_question || !is_free || !are(words, GO) {
        return None;
    }
    let named = topic.parameters.get("simulation").cloned().filter(|name| !name.is_null());
    let simulation = named.or_else(|| super::last_simulation(utterance).map(Value::from));
    let simulation = simulation.map(|name| ("simulation".to_owned(), name));
    Some(UserRequest::change("run_simulation", simulation.into_iter().collect()).into())
}

/// Returns true if an amount without other words is a value for the parameter that was named last.
fn stands_alone(amount: &Amount) -> bool {
    match amount {
        Amount::Absolute { unit, .. } | Amount::Plus { unit, .. } => unit.as_deref().is_none_or(units::is_unit),
        Amount::Times { of, .. } => of.is_none(),
        Amount::Default => false,
    }
}

/// Reads the answer to an open question about a change of this capability.
pub(super) fn answer(utterance: Utterance<'_>) -> Option<Interpretation> {
    let draft = utterance.situation.draft.as_ref()?;
    let parameter = draft.asked.as_ref()?.parameter.as_str();
    families::all().iter().find(|family| family.actions.contains(&draft.action.as_str()))?;
    let words = utterance.words;
    let value: Value = match parameter {
        "value" => return update("value", words),
        "values" => values(words)?.value,
        "parameter" | "parameters" => text(words).into(),
        "size" => words.iter().find_map(|word| word.text.replace(',', "").parse::<f64>().ok())?.into(),
        "file" => match words.iter().find(|word| word.text.contains(['/', '.'])) {
            Some(path) => path.text.clone().into(),
            None => text(words.get(..words.len().min(MAX_FILE_WORDS))?).into(),
        },
        "simulation" if words.len() <= 2 => words.first()?.text.clone().into(),
        _ => return None,
    };
    Some(Interpretation::update(parameter, value))
}

fn update(key: &str, words: &[Word]) -> Option<Interpretation> {
    let said = text(words);
    Amount::read(&said)?;
    Some(Interpretation::update(key, said))
}
