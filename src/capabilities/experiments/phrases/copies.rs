//! Requests for a copy of an experiment: `make a copy of Math Hints called Hints 2`, `create an experiment like W One`.

use serde_json::Map;

use super::{
    changes::CREATE,
    clauses::clauses,
    free_text,
    situation::Situation,
    user_request::{Interpretation, UserRequest},
    words::{Word, after, skip, text, without_last},
};
use crate::actions::copy::COPY_OF;

/// Parses a request for a copy. Further words have to be parts of the new experiment.
pub(super) fn copy(words: &[Word], situation: &Situation) -> Option<Interpretation> {
    if after(words, "copy that").is_some_and(<[Word]>::is_empty) && situation.last_subject.is_none() {
        return None; // “understood”
    }
    let rest = original(words)?;
    let (name, rest) = named(rest, situation);
    let rest = skip(rest, ",|but|and|except");
    let called = after(rest, "call it|name it|and call it|with the name|called|named|as");
    let (rest, is_called) = (called.unwrap_or(rest), called.is_some());
    let mut params = Map::from_iter([(COPY_OF.to_owned(), name.into())]);
    let found = clauses(rest);
    params.extend(found.params.clone());
    let mut beyond = found.beyond();
    let front = without_last(found.front(), &[","]);
    let begins_clause =
        front.first().is_some_and(|first| first.any(&["that", "which", "but", "without", "only", "if", "for"]));
    match front {
        [] => {}
        front if is_called && !begins_clause => {
            // “…, change weights to 80/20” is no part of the name.
            let end = front.iter().position(|word| word.is(",")).unwrap_or(front.len());
            let (name, left) = free_text::name(without_last(&front[..end], &["but", "and", "except"]));
            let left = [left, &front[end..]].concat();
            let left = skip(skip(&left, ",|and"), "and change|and set|and use|change|set|use|with|make|give it");
            params.insert("name".to_owned(), text(name).into());
            beyond = [left.to_vec(), beyond].concat();
        }
        front => beyond = [front.to_vec(), beyond].concat(),
    }
    Some(match beyond.is_empty() {
        true => Interpretation::whole(UserRequest::change(CREATE, params)),
        false => Interpretation::partly_understood(&text(&beyond), CREATE, params),
    })
}

/// Returns the words after those that ask for a copy.
fn original(words: &[Word]) -> Option<&[Word]> {
    const MAKE: &str =
        "make me|make us|make|create|set up|build|add|do|get me|get|give me|we need|i need|we want|i want|start with";
    const COPY: &str = "copy of|duplicate of|clone of|copy|duplicate|clone|replica of";
    const LIKE: &str = "just like|like|similar to|based on|modeled on|modelled on|identical to|the same as|same as|with the same design as";
    if let Some(rest) = after(words, "copy of|copy|duplicate of|duplicate|clone of|clone|replicate") {
        return Some(skip(rest, "the experiment|experiment|the study|study"));
    }
    let made = skip(skip(words, MAKE), "a new|another new|an exact|an|a|the|another|one more|new");
    if let Some(rest) = after(made, COPY).filter(|_| made.len() < words.len()) {
        return Some(skip(rest, "the experiment|experiment|the study|study"));
    }
    let thing = after(made, "experiment|study|a/b test|ab test|test|one").filter(|_| made.len() < words.len())?;
    Some(skip(after(thing, LIKE)?, "the experiment|experiment|the study|study"))
}

/// Returns the name of the experiment to copy, and the words after it. The name is empty if it is not known.
pub(super) fn named<'a>(words: &'a [Word], situation: &Situation) -> (String, &'a [Word]) {
    const ENDS: &[&str] = &["called", "named", "as", "but", "with", "in", "for", "and", ",", "except", "without", "at"];
    let subject = || situation.last_subject.clone().unwrap_or_default();
    match words {
        [] => (subject(), words),
        [first, rest @ ..] if first.quoted => (first.text.clone(), rest),
        _ if after(words, "that one|this one|the one|that experiment|this experiment|it|that|this|one").is_some() => {
            (subject(), skip(words, "that one|this one|the one|that experiment|this experiment|it|that|this|one"))
        }
        _ => {
            let ends = |at: &usize| words[*at].any(ENDS) && words[*at].text == words[*at].lower;
            let end = (0..words.len()).find(ends).unwrap_or(words.len());
            let name = text(skip(&words[..end], "the|our|my"));
            (if name.is_empty() { subject() } else { name }, &words[end..])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::check, Situation};

    #[test]
    fn copies_keep_what_is_said_about_them() {
        let subject = Situation { last_subject: Some("Math Hints".to_owned()), ..Situation::default() };
        check(
            &subject,
            &[
                ("make a copy", r#"create_experiment {"copy_of":"Math Hints"}"#),
                ("duplicate it", r#"create_experiment {"copy_of":"Math Hints"}"#),
                ("make a copy of “W One”", r#"create_experiment {"copy_of":"W One"}"#),
                ("make a copy of W One called W Two", r#"create_experiment {"copy_of":"W One","name":"W Two"}"#),
                ("make a copy of W One called Group A", r#"create_experiment {"copy_of":"W One","name":"Group A"}"#),
                ("create an experiment like “W One”", r#"create_experiment {"copy_of":"W One"}"#),
                ("make a copy of W One called W Two by friday", "unclear"),
                (
                    "copy W One as W 2 but with 80/20",
                    r#"create_experiment {"copy_of":"W One","name":"W 2","weights":"80/20"}"#,
                ),
                (
                    "clone W One as W 2, change weights to 80/20",
                    r#"create_experiment {"copy_of":"W One","name":"W 2","weights":"80/20"}"#,
                ),
                ("copy “W One” but in mathstream", r#"create_experiment {"context":"mathstream","copy_of":"W One"}"#),
            ],
        );
    }
}
