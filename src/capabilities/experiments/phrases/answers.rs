//! Parses answers to an open question about an experiment, and corrections of a draft or of the
//! change on a card.

use countersign_understanding::corrections::{AFTER, Correction};
use serde_json::{Map, Value};

use crate::families;

use super::{
    bulk,
    changes::{CREATE, STATUS, field, named_field},
    clauses::{self, clauses},
    moments,
    points::{may_be_point, names_a_point, offered_point},
    same, shares,
    situation::{Draft, Situation},
    slots, statuses,
    user_request::{Interpretation, UserRequest},
    words::{Word, after, are, skip, text, without_last},
};

/// Parses a correction of the draft, or of the change on the card: “no, use mathstream”.
pub(super) fn correction(words: &[Word], situation: &Situation) -> Option<Interpretation> {
    let draft = situation.in_hand()?;
    if draft.asked.as_ref().is_some_and(|asked| insists(words, &asked.parameter)) {
        return Some(Interpretation::update(BEYOND, true));
    }
    if let Some(earlier) = earlier_answer(words, draft) {
        return Some(earlier);
    }
    if let Some(parts) = same::correction(words, situation, draft) {
        return Some(parts);
    }
    let words = without_old_value(words, draft);
    if let Some(moment) = moments::correction(words, situation) {
        return Some(moment);
    }
    if let Some(status) = statuses::correction(words, situation) {
        return Some(status);
    }
    let asked = draft.asked.as_ref().map(|asked| asked.parameter.as_str());
    if let (None | Some("weights"), Some(suggested)) = (asked, shares::suggestion(words)) {
        return Some(suggested);
    }
    if let Some(split) = shares::correction(words, draft).filter(|_| !asked.is_some_and(is_free_text)) {
        return Some(split);
    }
    if let Some(parts) = parts_of_something_new(words, situation) {
        return Some(parts);
    }
    if let Some(other) = other_experiment(words, situation, draft) {
        return Some(other);
    }
    let found = Correction::of(words);
    let creates = draft.action == CREATE;
    let renamed = after(found.value, "call it|name it").or_else(|| after(found.value, RENAME).filter(|_| creates));
    let renames = renamed.is_some();
    let rest = renamed
        .or_else(|| after(found.value, "change|set"))
        .or_else(|| (found.objects || found.makes).then_some(found.value))
        .filter(|rest| !rest.is_empty())?;
    if renames && draft.asked.as_ref().is_some_and(|asked| asked.parameter == "name") {
        return None; // this is the answer to the open question
    }
    if named_field(rest).is_some_and(|(_, more)| more.first().is_some_and(|word| word.any(&["of", "for"]))) {
        return None; // a separate change, such as `set the description of Math Hints to …`
    }
    let rest = Correction::of(skip(rest, "with|it to|to|at")).value;
    if rest.is_empty() {
        return None;
    }
    if let Some((key, value)) = set_field(rest) {
        return Some(Interpretation::update(&key, value));
    }
    const REQUESTS: &[&str] =
        &["start", "stop", "pause", "resume", "cancel", "archive", "delete", "create", "schedule", "show", "launch"];
    if !renames && rest.len() > 1 && rest[0].any(REQUESTS) && rest[0].text == rest[0].lower {
        return None; // a request of its own, such as `no, start Running Test instead`
    }
    let found = clauses(rest);
    let mut params = found.params;
    let unparsed = text(&found.rest);
    if !unparsed.is_empty() {
        // “Call it Bar and put it in mathstream” contains more than a name.
        let more = found.rest.iter().any(|word| word.any(&["and", ",", "not", "put", "but"]));
        if renames && more {
            return Some(name_and_parts(rest, draft).unwrap_or_else(|| Interpretation::partly_unclear(&text(rest))));
        }
        if !params.is_empty() && found.rest.len() > 3 {
            return None; // too much for a correction
        }
        let has_members = draft.params.keys().any(|key| key.ends_with("inclusion") || key.ends_with("exclusion"));
        let is_number = |one: &Word| one.text.parse::<f64>().is_ok();
        let is_member = |one: &Word| has_members && !one.quoted && one.text.contains(|c: char| c.is_ascii_digit());
        let is_number = matches!(found.rest.as_slice(), [one] if is_number(one) || is_member(one));
        if is_number && !renames {
            return None; // no name: “make it 50” is read by the type of the value
        }
        let key = if renames { name_key(draft) } else { corrected_parameter(draft, &found.rest)? };
        params.entry(key.clone()).or_insert_with(|| field(&key, &found.rest));
    }
    (!params.is_empty()).then(|| UserRequest::Update(params).into())
}

/// Parses a message that consists only of parts of a description, for the draft of something new: `end it on Dec 20`. A
/// name or a description that is asked for may contain any words.
fn parts_of_something_new(words: &[Word], situation: &Situation) -> Option<Interpretation> {
    let draft = situation.draft.as_ref().filter(|draft| draft.action == CREATE)?;
    let asked = draft.asked.as_ref().map(|asked| asked.parameter.as_str());
    if asked.is_some_and(is_free_text) || situation.said.trim_end().ends_with('?') {
        return None;
    }
    only_parts(without_last(skip(words, "instead ,|instead|rather"), AFTER))
}

/// Parses the name of another experiment for the change in hand: `Lesson Video Hints instead`.
fn other_experiment(words: &[Word], situation: &Situation, draft: &Draft) -> Option<Interpretation> {
    let name = text(without_last(words, &["instead", "rather", "please", ","]));
    let is_marked = words.iter().any(|word| word.any(&["instead", "rather"]));
    let is_known = || {
        let mut subjects = situation.names.iter().filter(|mention| mention.kind == "experiment");
        subjects.any(|mention| mention.said.eq_ignore_ascii_case(&name))
    };
    (is_marked && draft.params.contains_key("experiment") && is_known())
        .then(|| Interpretation::update("experiment", name))
}

/// Returns the words without a value of the draft that is taken back at the end: “…, not assign-prog”.
fn without_old_value<'a>(words: &'a [Word], draft: &Draft) -> &'a [Word] {
    let Some(at) = (1..words.len()).find(|&at| after(&words[at..], "not|instead of|rather than").is_some()) else {
        return words;
    };
    let old = text(skip(&words[at..], "not in|not for|not|instead of|rather than"));
    let is_old = draft.params.values().filter_map(Value::as_str).any(|value| value.eq_ignore_ascii_case(&old));
    if is_old { without_last(&words[..at], &[",", "and", "but"]) } else { words }
}

/// Parses a new name and further parts: `Bar and put it in mathstream`.
fn name_and_parts(words: &[Word], draft: &Draft) -> Option<Interpretation> {
    const JOINING: &str = "put it|move it|make it|set it|use|then|also|it is|it should be";
    let at = (1..words.len()).find(|&at| words[at].any(&[",", "and"]))?;
    let mut parts = skip(&words[at..], ", and|,|and");
    while let Some(rest) = after(parts, JOINING) {
        parts = rest;
    }
    let found = clauses(parts);
    if !found.rest.is_empty() || found.params.is_empty() {
        return None;
    }
    let mut params = found.params;
    params.insert(name_key(draft), text(&words[..at]).into());
    Some(UserRequest::Update(params).into())
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

/// Words that are in no name.
const NO_NAME: &[&str] =
    &["you", "it", "that", "this", "can", "could", "please", "what", "why", "how", "who", "when", "back", "same"];

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
            None if has("experiment") && !words.iter().any(|word| word.any(NO_NAME)) => "experiment",
            None if has("context") && words.len() == 1 => "context",
            None => return None,
        },
    };
    Some(key.to_owned())
}

/// Parses one of the answers that were offered: the words are the whole value.
pub(super) fn offered(words: &[Word], situation: &Situation) -> Option<Interpretation> {
    let parameter = &situation.draft.as_ref()?.asked.as_ref()?.parameter;
    if insists(words, parameter) {
        return Some(Interpretation::update(BEYOND, true));
    }
    Some(Interpretation::update(parameter, field(parameter, words)))
}

/// The parameter that allows words that the context does not list.
const BEYOND: &str = "beyond_context";

/// Returns true if the person insists on the conditions or points that were asked about.
fn insists(words: &[Word], asked: &str) -> bool {
    const ANYWAY: &str = "use them anyway|use it anyway|use those anyway|use these anyway|use both anyway|anyway|take them anyway|\
        yes use them|yes use it|use them|use it|use them all the same|use it all the same|i want them anyway|they are new|it is new";
    matches!(asked, "conditions" | "decision_points") && are(words, ANYWAY)
}

/// Parses a message that only consists of parts of a description.
pub(super) fn parts(words: &[Word]) -> Option<Interpretation> {
    only_parts(words).or_else(|| same::is_part(words).then(|| UserRequest::Update(Map::new()).into()))
}

/// Parses the parameters in words that are all parts of a description.
fn only_parts(words: &[Word]) -> Option<Interpretation> {
    let parts = clauses(words);
    (parts.rest.is_empty() && !parts.params.is_empty()).then(|| UserRequest::Update(parts.params).into())
}

/// Parses the answer to the open question, which may also contain other parameters.
pub(super) fn answer(words: &[Word], situation: &Situation, is_question: bool) -> Option<Interpretation> {
    let Some(draft) = &situation.draft else { return card_correction(words, situation, is_question) };
    if let Some(known) = without_the_rest(words, draft) {
        return Some(known);
    }
    let Some(asked) = &draft.asked else { return draft_correction(words, draft, is_question) };
    let key = asked.parameter.as_str();
    // No question of another capability is answered by a question, or by what points back.
    let is_own = families::all().iter().any(|family| family.actions.contains(&draft.action.as_str()));
    if !is_own && words.iter().any(|word| word.any(NO_NAME)) {
        return None;
    }
    let is_status = key == "experiment" && draft.action == STATUS;
    if let Some(names) = is_status.then(|| bulk::several(words)).flatten() {
        return Some(
            UserRequest::Update(Map::from_iter([
                ("experiments".to_owned(), names.into()),
                ("experiment".to_owned(), Value::Null),
            ]))
            .into(),
        );
    }
    if let Some(point) = offered_point(words, key, &asked.options) {
        return Some(Interpretation::update("decision_points", vec![point]));
    }
    const UNSURE: &str = "not sure|i am not sure|i'm not sure|no idea|i don't know|i do not know|dunno|idk|unsure|let me think|\
        let me check|i will check|fill in a form|form|a form|the form|show the form|use a form";
    if key != "description" && after(words, UNSURE).is_some_and(|rest| rest.len() < 3) {
        return None;
    }
    let names_place = after(words, "at").is_some();
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
    if let ("context", None, Some((context, left))) = (key, params.get(key), context_in(&found.rest, &asked.options)) {
        params.insert(key.to_owned(), context.into());
        found.rest = left;
    }
    let is_only_small = !params.is_empty() && left_of_answer(&found.rest, key).is_none();
    if !found.rest.is_empty() && !params.contains_key(key) && (!is_only_small || is_free_text(key)) {
        let long = found.rest.len() > 6 && !matches!(key, "name" | "description" | "conditions" | "decision_points");
        if is_question || long {
            return None;
        }
        // “Nah, scrap it” names nothing.
        let names_nothing = |word: &Word| !word.quoted && (word.any(NO_NAME) || word.any(&["everything", "nah"]));
        if matches!(key, "context" | "experiment") && found.rest.iter().any(names_nothing) {
            return None;
        }
        let key = if names_place { key } else { answered_parameter(key, &found.rest) };
        // “Don't start it yet, just show me what it looks like” are no two conditions.
        const SPEECH: &str = "don't do not just show me please can could you i we us yet what how why it";
        if key == "conditions" && found.rest.iter().filter(|word| word.among(SPEECH)).count() > 1 {
            return None;
        }
        if key == "decision_points" && !may_be_point(&found.rest) {
            return None;
        }
        params.insert(key.to_owned(), field(key, &found.rest));
    } else if let Some(left) = left_of_answer(&found.rest, key) {
        // Conditions beside the answer; any other words must not be dropped.
        let (items, after) = clauses::list(&left);
        let are_codes = items.len() > 1 && after.is_empty() && items.iter().all(|item| item.len() == 1);
        if !are_codes || params.contains_key("conditions") {
            let known = draft.params.clone().into_iter().chain(params).collect();
            return Some(match draft.action.as_str() {
                CREATE => Interpretation::partly_understood(&text(&left), CREATE, known),
                _ => Interpretation::partly_unclear(&text(&left)),
            });
        }
        params.insert("conditions".to_owned(), field("conditions", &left));
    }
    if params.is_empty() || (is_question && key != "description") {
        return None;
    }
    Some(Interpretation { confidence: 0.9, ..UserRequest::Update(params).into() })
}

/// Finds the context in an answer: one of the offered ones, or else the words before the first comma. Returns it and the
/// other words.
fn context_in(words: &[Word], options: &[String]) -> Option<(String, Vec<Word>)> {
    const MAX_LENGTH: usize = 3;
    let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let offered = |length: usize| {
        let place = |at: &usize| {
            let said = letters(&text(&words[*at..at + length]));
            !said.is_empty() && options.iter().any(|option| letters(option) == said)
        };
        (0..=words.len() - length).find(place).map(|at| (at, at + length))
    };
    let before_comma = || words.iter().position(|word| word.is(",")).filter(|comma| *comma > 0).map(|comma| (0, comma));
    let (from, to) = (1..=MAX_LENGTH.min(words.len())).rev().find_map(offered).or_else(before_comma)?;
    Some((text(&words[from..to]), [&words[..from], &words[to..]].concat()))
}

/// Parses “continue without it”, after a part of the description was not understood: the draft stays as it is.
fn without_the_rest(words: &[Word], draft: &Draft) -> Option<Interpretation> {
    const WITHOUT: &str = "continue without it|continue|go on|without it|without that|leave it out|leave that out|\
        skip it|skip that|ignore it|ignore that|yes|yes please|yes continue|yeah|yep|ok|okay|sure|fine";
    let is_asked = draft.asked.is_none() && are(words, WITHOUT);
    let (key, value) = draft.params.iter().next().filter(|_| is_asked)?;
    Some(Interpretation::update(key, value.clone()))
}

/// Parses the button of a question about the context, which names its parameter: `context: mathstream`.
fn earlier_answer(words: &[Word], draft: &Draft) -> Option<Interpretation> {
    let [name, value] = words else { return None };
    let is_button = name.is("context") && name.tail.starts_with(':') && !draft.params.contains_key("experiment");
    is_button.then(|| Interpretation::update("context", value.text.clone()))
}

/// Parses a message that consists only of parts of a description. While a card is open or was just
/// rejected, it corrects the change on that card.
fn card_correction(words: &[Word], situation: &Situation, is_question: bool) -> Option<Interpretation> {
    situation.in_hand()?;
    only_parts(words).filter(|_| !is_question)
}

/// Returns the parameter that an answer is for: the one asked for, unless it is clearly another.
fn answered_parameter<'a>(asked: &'a str, words: &[Word]) -> &'a str {
    let slash = words.iter().any(|word| word.text.contains('/'));
    match (asked, words) {
        ("decision_points" | "conditions" | "context" | "weights", [one]) if one.is("individual") => "unit",
        ("decision_points", _) if !slash && clauses::list(words).0.len() > 1 && !names_a_point(words) => "conditions",
        _ => asked,
    }
}

/// Returns true if the value of a parameter may be any text.
fn is_free_text(key: &str) -> bool {
    matches!(key, "name" | "description")
}

/// Returns the words of an answer that belong to no parameter; `None` if they have no meaning of their own. The rest of a
/// free text is a part of it.
fn left_of_answer(rest: &[Word], key: &str) -> Option<Vec<Word>> {
    const EMPTY: &str = "please thanks thank you i think guess maybe it is should be the a an so too also and , \
        then yes yeah yep ok okay sure that this would let us we use want take will for with to in at on of now \
        well make put set have hmm hm right good fine great actually just me my our do experiment context";
    let has_meaning = |word: &Word| !word.among(EMPTY);
    if is_free_text(key) {
        return None;
    }
    let (first, last) = (rest.iter().position(has_meaning)?, rest.iter().rposition(has_meaning)?);
    Some(rest[first..=last].to_vec())
}

/// Parses a name up to the first comma, and the parts of a description after it.
fn plain_name(words: &[Word]) -> clauses::Clauses {
    // “Call it Bar. Two arms: a and b.” A sentence that is not read may belong to the name.
    let ends_sentence = |at: &usize| words[at - 1].tail.contains('.');
    let parts = (1..words.len()).find(ends_sentence).map(|end| {
        let mut sentence = words[end..].to_vec();
        sentence[0].text = sentence[0].lower.clone(); // its capital is no sign of a name
        (end, clauses(&sentence))
    });
    let parts = parts.filter(|(_, found)| found.rest.is_empty());
    let comma = || words.iter().position(|word| word.is(",")).map(|comma| (comma, clauses(&words[comma..])));
    match parts.or_else(comma) {
        Some((end, found)) => clauses::Clauses { rest: words[..end].to_vec(), ..found },
        None => clauses::Clauses { rest: words.to_vec(), ..clauses::Clauses::default() },
    }
}

/// Parses a correction of a draft without an open question: one of its parameters, or the misspelt
/// name of its experiment.
fn draft_correction(words: &[Word], draft: &Draft, is_question: bool) -> Option<Interpretation> {
    if let ([one], true) = (words, draft.params.contains_key("weights"))
        && let Some(weights) = slots::ratio(&one.text)
    {
        return Some(Interpretation::update("weights", weights));
    }
    let limit = without_last(skip(words, "at most|up to|only"), &["please"]);
    if let ([one], true) = (limit, draft.params.contains_key("limit"))
        && one.text.parse::<u64>().is_ok()
    {
        return Some(Interpretation::update("limit", one.text.clone()));
    }
    if let Some(parts) = only_parts(words).filter(|_| !is_question) {
        return Some(parts);
    }
    let old_name = draft.params.get("experiment")?.as_str()?;
    let new_name = text(skip(words, "the|i meant|i mean"));
    let similar = strsim::normalized_damerau_levenshtein(&old_name.to_lowercase(), &new_name.to_lowercase()) > 0.6
        || (new_name.len() > 3 && old_name.to_lowercase().contains(&new_name.to_lowercase()));
    (similar && !is_question).then(|| Interpretation::update("experiment", new_name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{
        situation::{Draft, DraftQuestion, Situation},
        tests::{check, params},
    };

    fn asked(parameter: &str) -> Situation {
        let asked = DraftQuestion { parameter: parameter.to_owned(), ..DraftQuestion::default() };
        let params = params(json!({ "name": "Foo", "context": "assign-prog" }));
        let draft = Draft { action: "create_experiment".to_owned(), params, asked: Some(asked), unread: None };
        Situation { draft: Some(draft), today: "2026-11-22".to_owned(), ..Situation::default() }
    }

    #[test]
    fn a_name_ends_with_its_sentence_and_scrapping_names_nothing() {
        check(
            &asked("name"),
            &[(
                "call it Worked Examples. Three arms: control, worked and faded",
                r#"update {"conditions":["control","worked","faded"],"name":"Worked Examples"}"#,
            )],
        );
        check(&asked("conditions"), &[("use them anyway", r#"update {"beyond_context":true}"#)]);
        check(&asked("context"), &[("nah scrap it", "drop"), ("whats it measuring", "unclear")]);
    }

    #[test]
    fn an_answer_may_change_its_mind() {
        check(
            &asked("decision_points"),
            &[
                ("hmm, make that 60/40 actually", r#"update {"weights":"60/40"}"#),
                ("oops I meant mathstream", r#"update {"context":"mathstream"}"#),
                ("oops, mathstream", r#"update {"context":"mathstream"}"#),
                ("sorry, in mathstream", r#"update {"context":"mathstream"}"#),
                ("context: mathstream", r#"update {"context":"mathstream"}"#),
                (
                    "actually call it Bar and put it in mathstream, not assign-prog",
                    r#"update {"context":"mathstream","name":"Bar"}"#,
                ),
                ("mathstream, I mean", r#"update {"context":"mathstream"}"#),
                ("no wait, mathstream", r#"update {"context":"mathstream"}"#),
                ("70/30, and make it end after 200 users", r#"update {"ends_after_users":200,"weights":"70/30"}"#),
                ("only class 5B", r#"update {"filter_mode":"excludeAll","inclusion":["class 5B"]}"#),
                ("hm not sure yet", "unclear"),
                ("control and hints", r#"update {"conditions":["control","hints"]}"#),
                (
                    "control and hints, 60/40, at Lobby/door",
                    r#"update {"conditions":["control","hints"],"decision_points":["Lobby / door"],"weights":"60/40"}"#,
                ),
            ],
        );
    }

    #[test]
    fn an_answer_about_the_context_may_contain_other_parts() {
        let both = r#"update {"conditions":["early","late"],"context":"mathstream"}"#;
        let mut situation = asked("context");
        check(&situation, &[("in mathstream, two conditions early and late", both)]);
        if let Some(asked) = situation.draft.as_mut().and_then(|draft| draft.asked.as_mut()) {
            asked.options = vec!["assign-prog".to_owned(), "mathstream".to_owned()];
        }
        check(
            &situation,
            &[
                ("in mathstream, two conditions early and late", both),
                ("mathstream with two conditions early and late", both),
                ("assign prog, 70/30", r#"update {"context":"assign prog","weights":"70/30"}"#),
                ("mathstream, purple elephants", "unclear"),
            ],
        );
    }

    #[test]
    fn a_decision_point_comes_in_any_order_and_form() {
        let point = r#"update {"decision_points":["lesson-quiz / question-hint"]}"#;
        check(
            &asked("decision_points"),
            &[
                ("lesson-quiz/question-hint", point),
                ("lesson-quiz / question-hint", point),
                ("lesson-quiz question-hint", point),
                ("at lesson-quiz, question-hint", point),
                ("site lesson-quiz target question-hint", point),
                ("target question-hint, site lesson-quiz", point),
                ("decision point lesson-quiz question-hint", point),
                ("the decision point is lesson-quiz question-hint", point),
            ],
        );
    }

    #[test]
    fn a_draft_can_continue_without_what_was_not_understood() {
        let mut situation = asked("context");
        if let Some(draft) = &mut situation.draft {
            draft.asked = None;
        }
        let as_it_is = r#"update {"context":"assign-prog"}"#;
        check(
            &situation,
            &[
                ("continue without it", as_it_is),
                ("yes", as_it_is),
                ("ok", as_it_is),
                ("instead end on 15 Dec", r#"update {"end_on":"December 15"}"#),
            ],
        );
    }
}
