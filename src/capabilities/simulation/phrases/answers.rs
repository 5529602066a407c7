//! Values without a parameter: answers to a question, corrections, and new values for the parameter that was named last.

use countersign_core::units;
use countersign_understanding::{
    corrections::Correction,
    phrases::Utterance,
    situation::Draft,
    user_request::{Interpretation, UserRequest},
    words::{Word, after, text},
};

use serde_json::Value;

use super::{OWNER, SET, values};
use crate::{amount::Amount, families};

/// Returns the current request to set a parameter, if there is one.
fn current_set<'a>(utterance: Utterance<'a>) -> Option<&'a Draft> {
    utterance.situation.in_hand().filter(|draft| draft.action == SET)
}

/// Reads a value of the parameter that is being set or was named last: “make it 80 kg”, “no, 2 L”, “95”.
pub(super) fn correction(utterance: Utterance<'_>) -> Option<Interpretation> {
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
        "file" => {
            let named = words.iter().find(|word| word.text.contains(['/', '.'])).or(words.first())?;
            named.text.clone().into()
        }
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
