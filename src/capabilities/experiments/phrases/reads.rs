//! Questions that are recognised by the things they mention. If no pattern matches, a named experiment
//! and a question word are enough to show the experiment, and a term of the glossary is enough to
//! explain it. These requests never change anything.

use countersign_understanding::phrases::Utterance;

use super::{
    DETAILS,
    situation::Situation,
    slots::{Slot, sentence_parts},
    user_request::UserRequest,
    words::{Word, lower},
};
use crate::{glossary, upgrade::experiment::ExperimentId};

/// Words that ask a question or name a part of an experiment.
const ASKING: &str = "what which who why when where how is are was were has have did does do show tell list see view give \
    description details detail status state setup conditions weights tags points users summary overview info \
    numbers progress look check display explain describe find open get";

/// Words that refer to the last subject.
const POINTING: &[&str] = &["it", "its", "that", "this", "them", "they"];

/// Parses a question by the only thing that it mentions.
pub(super) fn read(words: &[Word], situation: &Situation, is_question: bool) -> Option<UserRequest> {
    if let [only] = words
        && only.quoted
    {
        return is_known(only, situation).then(|| details(&only.text)).flatten();
    }
    let parts = sentence_parts(Utterance::of(words, situation), &super::ExperimentPhrases, super::OWNER);
    let subjects: Vec<&Slot> = parts
        .iter()
        .filter_map(|part| part.slot.as_ref())
        .filter(|slot| matches!(slot, Slot::Subjects(_) | Slot::Pronoun(_)))
        .collect();
    let first = words.iter().find(|word| !word.quoted && word.text != "," && word.text != "the")?;
    let asking = |word: &Word| word.among(ASKING);
    let opens =
        asking(first) || words.first().is_some_and(|word| word.quoted) && is_question && words.iter().any(asking);
    let opens = opens || words.iter().take(2).any(asking) || parts.len() == 1;
    match subjects.as_slice() {
        [Slot::Subjects(names)] if opens && names.len() == 1 => details(&names[0]),
        [Slot::Pronoun(name)] if opens => details(name),
        [] if (opens || is_question) && !words.iter().any(|word| word.any(POINTING)) => {
            of_context(words).or_else(|| term(words))
        }
        _ => None,
    }
}

/// Returns true if the word is the name or the id of an experiment.
fn is_known(word: &Word, situation: &Situation) -> bool {
    let is_listed = || situation.listed.as_ref().is_some_and(|listed| listed.names.contains(&word.text));
    word.kind.as_deref() == Some("experiment") || word.text.parse::<ExperimentId>().is_ok() || is_listed()
}

fn details(name: &str) -> Option<UserRequest> {
    Some(UserRequest::read(DETAILS, [("experiment_id", Some(name.to_owned()))]))
}

/// Parses a question about a part of a context's vocabulary: `which decision points livehint-ai has`.
fn of_context(words: &[Word]) -> Option<UserRequest> {
    let context = words.iter().find(|word| word.kind.as_deref() == Some("context"))?;
    let has = |things: &[&str]| words.iter().any(|word| word.any(things));
    let tool = if has(&["conditions", "condition"]) {
        "get_conditions_for_context"
    } else if has(&["points", "point", "sites", "site", "targets", "target"]) {
        "get_decision_points_for_context"
    } else if has(&["groups", "group", "types"]) {
        "get_group_types_for_context"
    } else {
        return None;
    };
    Some(UserRequest::read(tool, [("context", Some(context.text.clone()))]))
}

/// Parses a question about one or two terms of the glossary.
fn term(words: &[Word]) -> Option<UserRequest> {
    // “Which one has the most participants?” asks for no definition.
    const COMPARING: &str = "most least highest lowest best worst biggest smallest largest gives fewest";
    if words.iter().any(|word| word.among(COMPARING)) {
        return None;
    }
    let mut found: Vec<&'static glossary::Term> = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let longest = (1..=4.min(words.len() - at)).rev().find_map(|length| {
            let phrase = &words[at..at + length];
            if phrase.iter().any(|word| word.quoted || word.is(",")) {
                return None;
            }
            glossary::exactly(&lower(phrase)).map(|term| (term, length))
        });
        match longest {
            Some((term, length)) => {
                if !found.iter().any(|other| other.name() == term.name()) {
                    found.push(term);
                }
                at += length;
            }
            None => at += 1,
        }
    }
    match found.as_slice() {
        [one] => Some(super::explain(one)),
        [one, other] => {
            let concept = Some(one.name().to_owned());
            Some(UserRequest::read(
                "explain_upgrade_concept",
                [("concept", concept), ("with", Some(other.name().to_owned()))],
            ))
        }
        _ => None,
    }
}
