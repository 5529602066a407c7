//! Parses answers to an open question about an experiment, and corrections of a draft or of the
//! change on a card.

use serde_json::Value;

use super::{
    changes::{field, named_field},
    clauses::{self, clauses},
    moments,
    situation::{Draft, Situation},
    slots,
    user_request::{Interpretation, UserRequest},
    words::{Word, after, skip, strip_objection, text},
};

/// Parses a correction of the draft, or of the change on the card: “no, use mathstream”.
pub(super) fn correction(words: &[Word], situation: &Situation) -> Option<Interpretation> {
    let draft = situation.in_hand()?;
    if let Some(moment) = moments::correction(words, situation) {
        return Some(moment);
    }
    let asked = draft.asked.as_ref().map(|asked| asked.parameter.as_str());
    if let (None | Some("weights"), Some(suggested)) = (asked, suggested_weights(words)) {
        return Some(suggested);
    }
    const OPENINGS: &str = "no , use|no use|no , i meant|no i meant|no , i mean|no i mean|no , make it|no make it|no ,|no|actually , use|actually use|\
        actually , make it|actually make it|actually ,|actually|sorry ,|sorry|instead use|rather|i meant|i mean|make it|make that|use|change it to|change that to|let it be|\
        change|set|wait ,|wait|call it|name it";
    let plain = strip_objection(words);
    let creates = draft.action == "create_experiment";
    let renamed = after(plain, "call it|name it").or_else(|| after(plain, RENAME).filter(|_| creates));
    let rest = renamed.or_else(|| after(words, OPENINGS))?;
    if rest.is_empty() {
        return None;
    }
    let renames = renamed.is_some();
    if renames && draft.asked.as_ref().is_some_and(|asked| asked.parameter == "name") {
        return None; // this is the answer to the open question
    }
    if named_field(rest).is_some_and(|(_, more)| more.first().is_some_and(|word| word.any(&["of", "for"]))) {
        return None; // a separate change, such as `set the description of Math Hints to …`
    }
    let rest =
        super::words::without_last(skip(rest, "use|make it|rather|with|it to|to|at|instead"), &["instead", "rather"]);
    if let Some((key, value)) = set_field(rest) {
        return Some(update([(key, value)]));
    }
    let found = clauses(rest);
    let mut params = found.params;
    let unparsed = text(&found.rest);
    if !unparsed.is_empty() {
        // “Call it Bar and put it in mathstream” contains more than a name.
        let more = found.rest.iter().any(|word| word.any(&["and", ",", "not", "put", "but"]));
        if renames && more {
            return Some(Interpretation::partly_unclear(&text(rest)));
        }
        if !params.is_empty() && found.rest.len() > 3 {
            return None; // too much for a correction
        }
        let key = if renames { name_key(draft) } else { corrected_parameter(draft, &found.rest)? };
        params.entry(key.clone()).or_insert_with(|| field(&key, &found.rest));
    }
    (!params.is_empty()).then(|| UserRequest::Update(params).into())
}

/// Parses suggested weights: `60/40 would be safer`, `it should be 60/40`.
fn suggested_weights(words: &[Word]) -> Option<Interpretation> {
    const BEFORE: &str = "i would prefer|i'd prefer|i prefer|i would rather have|i'd rather have|i would take|i'd take|\
        it should be|this should be|that should be|they should be|the weights should be|weights should be|should be|\
        better make it|better use|better to use|better|rather make it|rather use|rather|at most|at least|no more than|\
        try|maybe|perhaps|only|we should use|we should start with|start with|what about|how about|,|:|–|-|but|no|not this ,|with";
    const AFTER: &str = "would be safer|would be better|would be fine|would be ok|would be okay|would be enough|\
        would be right|would be best|would be good|would do|will do|would suffice|would be more careful|is safer|\
        is better|is enough|is fine|seems safer|seems better|feels safer|please|instead|rather|would be safer please|\
        would be better please|, please|to begin with|to start with";
    let mut rest = words;
    while let Some(left) = after(rest, BEFORE) {
        rest = left;
    }
    let (first, following) = skip(rest, "the weights|weights|a split of|a ratio of").split_first()?;
    let weights = slots::ratio(&first.text)?;
    let is_suggestion = rest.len() < words.len() || !following.is_empty();
    let fits = following.is_empty() || after(following, AFTER).is_some_and(<[_]>::is_empty);
    (is_suggestion && fits).then(|| update([("weights".to_owned(), weights.into())]))
}

/// Parses a parameter and its new value: `the context to mathstream`, `weights to 60/40`.
fn set_field(words: &[Word]) -> Option<(String, Value)> {
    let other = || ["status", "experiment"].into_iter().find_map(|key| Some((key, after(skip(words, "the"), key)?)));
    let (key, rest) = match named_field(words).or_else(other)? {
        ("new_name", rest) => ("name", rest),
        found => found,
    };
    let given = after(rest, "to|is|should be|=|as").filter(|given| !given.is_empty())?;
    Some((key.to_owned(), field(key, given)))
}

/// Returns the parameter that holds the name in a draft.
fn name_key(draft: &Draft) -> String {
    let key = match draft.action.as_str() {
        "update_experiment" => "new_name",
        _ if draft.params.contains_key("experiment") => "experiment",
        _ => "name",
    };
    key.to_owned()
}

/// The openings of a message that renames the draft.
const RENAME: &str = "rename it to|rename it|rename this to|rename that to|rename to|change its name to";

/// Returns the parameter that a value corrects if the message does not name one. It is inferred
/// from the form of the value, then from the open question, then from the parameters of the draft.
fn corrected_parameter(draft: &Draft, words: &[Word]) -> Option<String> {
    let has = |key: &str| draft.params.contains_key(key);
    let key = match words {
        [one] if slots::ratio(&one.text).is_some() => "weights",
        [one] if !one.quoted && slots::point(&one.text).is_some() => "decision_points",
        [one] if has("context") && !has("experiment") && one.text == one.lower => "context",
        _ => match &draft.asked {
            Some(asked) => &asked.parameter,
            None if has("experiment") => "experiment",
            None if has("context") && words.len() == 1 => "context",
            None => return None,
        },
    };
    Some(key.to_owned())
}

/// Parses the answer to the open question, which may also contain other parameters.
pub(super) fn answer(words: &[Word], situation: &Situation, is_question: bool) -> Option<Interpretation> {
    let Some(draft) = &situation.draft else { return card_correction(words, situation, is_question) };
    let Some(asked) = &draft.asked else { return draft_correction(words, draft, is_question) };
    let key = asked.parameter.as_str();
    let words = skip(
        words,
        "it should be|it is|it will be|i think|let us use|use|call it|name it|the name is|make it|that would be|it's|in the|in|for the|at the|at|with|the|to|as",
    );
    // A name may contain anything, and a time may look like weights; for other parameters, the
    // parts of a description are parsed first.
    let mut found =
        if matches!(key, "name" | "description" | "start_on" | "end_on") { plain_name(words) } else { clauses(words) };
    if !matches!(key, "name" | "description") {
        found.rest.retain(|word| !word.any(&["oh", "um", "uh"])); // as in “assign-prog, oh and site …”
    }
    let mut params = found.params;
    if !found.rest.is_empty() && !params.contains_key(key) {
        let long = found.rest.len() > 6 && !matches!(key, "name" | "description" | "conditions" | "decision_points");
        if is_question || long {
            return None;
        }
        let key = answered_parameter(key, &found.rest);
        params.insert(key.to_owned(), field(key, &found.rest));
    }
    if params.is_empty() || (is_question && key != "description") {
        return None;
    }
    Some(Interpretation { confidence: 0.9, ..UserRequest::Update(params).into() })
}

/// Parses a message that consists only of parts of a description. While a card is open or was just
/// rejected, it corrects the change on that card.
fn card_correction(words: &[Word], situation: &Situation, is_question: bool) -> Option<Interpretation> {
    situation.in_hand()?;
    let parts = clauses(words);
    (parts.rest.is_empty() && !parts.params.is_empty() && !is_question)
        .then(|| UserRequest::Update(parts.params).into())
}

/// Returns the parameter that an answer is for: the one asked for, unless it is clearly another.
fn answered_parameter<'a>(asked: &'a str, words: &[Word]) -> &'a str {
    let slash = words.iter().any(|word| word.text.contains('/'));
    match (asked, words) {
        ("decision_points" | "conditions" | "context" | "weights", [one]) if one.is("individual") => "unit",
        ("decision_points", _) if !slash && clauses::list(words).0.len() > 1 => "conditions",
        _ => asked,
    }
}

/// Parses a name up to the first comma, and the parts of a description after it.
fn plain_name(words: &[Word]) -> clauses::Clauses {
    match words.iter().position(|word| word.is(",")) {
        Some(comma) => {
            let mut found = clauses(&words[comma..]);
            found.rest = words[..comma].to_vec();
            found
        }
        None => clauses::Clauses { rest: words.to_vec(), ..clauses::Clauses::default() },
    }
}

/// Parses a correction of a draft without an open question: one of its parameters, or the misspelt
/// name of its experiment.
fn draft_correction(words: &[Word], draft: &Draft, is_question: bool) -> Option<Interpretation> {
    if let ([one], true) = (words, draft.params.contains_key("weights"))
        && let Some(weights) = slots::ratio(&one.text)
    {
        return Some(update([("weights".to_owned(), weights.into())]));
    }
    let limit = super::words::without_last(skip(words, "at most|up to|only"), &["please"]);
    if let ([one], true) = (limit, draft.params.contains_key("limit"))
        && one.text.parse::<u64>().is_ok()
    {
        return Some(update([("limit".to_owned(), one.text.clone().into())]));
    }
    let parts = clauses(words);
    if parts.rest.is_empty() && !parts.params.is_empty() && !is_question {
        return Some(UserRequest::Update(parts.params).into());
    }
    let old_name = draft.params.get("experiment")?.as_str()?;
    let new_name = text(skip(words, "the|i meant|i mean"));
    let similar = strsim::normalized_damerau_levenshtein(&old_name.to_lowercase(), &new_name.to_lowercase()) > 0.6
        || (new_name.len() > 3 && old_name.to_lowercase().contains(&new_name.to_lowercase()));
    (similar && !is_question).then(|| update([("experiment".to_owned(), new_name.into())]))
}

fn update<const N: usize>(params: [(String, Value); N]) -> Interpretation {
    UserRequest::Update(params.into_iter().collect()).into()
}
