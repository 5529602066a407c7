//! Values without a parameter: answers to a question, corrections, and new values for the parameter that was named last.

use countersign_core::units;
use countersign_understanding::{
    phrases::Utterance,
    situation::Draft,
    user_request::{Interpretation, UserRequest},
    words::{Word, text, without_last},
};
use serde_json::{Map, Value};

use super::{OWNER, SET, values};
use crate::amount::Amount;

/// Returns the current request to set a parameter, if there is one.
fn current_set<'a>(utterance: Utterance<'a>) -> Option<&'a Draft> {
    utterance.situation.in_hand().filter(|draft| draft.action == SET)
}

/// Reads a value of the parameter that is being set or was named last: “make it 80 kg”, “no, 2 L”, “95”.
pub(super) fn correction(utterance: Utterance<'_>) -> Option<Interpretation> {
    const OPENINGS: &[&str] = &[
        "no", ",", "actually", "make", "it", "rather", "sorry", "i", "meant", "mean", "use", "instead", "set", "to",
        "better", "that", "wait", "but", "change", "try", "put", "what", "about", "how",
    ];
    let begins = utterance.words.iter().position(|word| !word.any(OPENINGS))?;
    let rest = without_last(&utterance.words[begins..], &["instead", "please", "rather"]);
    let amount = Amount::read(&text(rest))?;
    if rest[0].any(&["double", "triple", "halve"]) && matches!(amount, Amount::Times { of: Some(_), .. }) {
        return None; // a request of its own: “double the dose”
    }
    if begins == 0 && (utterance.is_question || utterance.situation.draft.is_some() || !stands_alone(&amount)) {
        return None;
    }
    let named = utterance.topic_of(OWNER).and_then(|topic| Some((topic, topic.parameters.get("parameter")?)));
    let has_draft = utterance.situation.draft.is_some();
    // A parameter that was read after the card was shown was named later.
    let read_since = named.is_some_and(|(topic, _)| topic.call == "get_parameter_value") && !has_draft;
    let objects = utterance.words[..begins].iter().any(|word| word.any(&["no", "actually", "sorry", "wait", "meant"]));
    if current_set(utterance).is_some() && (objects || !read_since) {
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
    let asked = draft.asked.as_ref()?;
    match (draft.action.as_str(), asked.parameter.as_str()) {
        (SET, "value") => update("value", utterance.words),
        ("compare_values", "values") => {
            let found = values(utterance.words)?;
            Some(updated("values", found.value))
        }
        (SET | "compare_values", "parameter") => Some(updated("parameter", text(utterance.words).into())),
        ("run_sensitivity_analysis", "parameters") => Some(updated("parameters", text(utterance.words).into())),
        ("run_population_simulation", "size") => {
            let number = utterance.words.iter().find_map(|word| word.text.replace(',', "").parse::<f64>().ok())?;
            Some(updated("size", number.into()))
        }
        ("load_simulation" | "run_population_simulation" | "run_sensitivity_analysis", "file") => {
            let named =
                utterance.words.iter().find(|word| word.text.contains(['/', '.'])).or(utterance.words.first())?;
            Some(updated("file", named.text.clone().into()))
        }
        (action, "simulation") if NEED_SIMULATION.contains(&action) => {
            Some(updated("simulation", utterance.words.first()?.text.clone().into()))
                .filter(|_| utterance.words.len() <= 2)
        }
        _ => None,
    }
}

/// The actions of this capability that need a loaded simulation.
const NEED_SIMULATION: &[&str] = &[
    SET,
    "run_simulation",
    "compare_values",
    "run_population_simulation",
    "run_sensitivity_analysis",
    "restore_simulation",
    "snapshot_simulation",
];

fn update(key: &str, words: &[Word]) -> Option<Interpretation> {
    let said = text(words);
    Amount::read(&said)?;
    Some(updated(key, said.into()))
}

fn updated(key: &str, value: Value) -> Interpretation {
    UserRequest::Update(Map::from_iter([(key.to_owned(), value)])).into()
}
