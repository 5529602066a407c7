//! Requests that continue the one before with one other part: “the same for Letters”, “and Letters?”, “again with 100 more”,
//! “make it 50”; and those that end what it began: “turn it off”.
//!
//! The part is told by its type: the name of a thing, a name of another kind, or a number of users. The tool or action has
//! to take a parameter of this type. It is used again with all its other parameters.

use serde_json::{Map, Value};

use crate::{
    dates::number_word,
    phrase_book::{CapabilityPhrases, PhraseBook},
    phrases::{Utterance, Vocabulary},
    situation::{Situation, Topic},
    suggestions::is_read,
    user_request::{Interpretation, UserRequest},
    words::{Word, after, are, as_typed, skip, text, without_last, words as split},
};

/// What the last request is repeated with, for another thing.
const SAME: &str = "the same for|same for|the same with|same with|the same in|same in|the same to|do the same for|\
    do the same with|do the same in|do the same to|same thing for|same thing with|same again for|the same thing for|\
    likewise for|repeat for|repeat it for|repeat that for|repeat this for|do it for|do that for|do this for|now for|now in";

/// The parameter for a number of people.
const USERS: &str = "users";

/// The parameter of a tool that begins something: the earlier one is to end.
const INSTEAD: &str = "instead";

/// Reads a request that continues the one before.
pub(crate) fn follow_up(book: &PhraseBook, utterance: Utterance<'_>) -> Option<Interpretation> {
    let is_asked = utterance.situation.draft.as_ref().is_some_and(|draft| draft.asked.is_some());
    let situation = utterance.situation;
    if is_asked {
        return None;
    }
    let (same, other) = divide(utterance.words);
    for last in [&situation.aside, &situation.topic].into_iter().flatten() {
        let Some(capability) = book.of_topic(last) else { continue };
        let same = Utterance { words: same, ..utterance };
        let Some(mut parameters) = same_for(capability, last, same) else { continue };
        if let Some(other) = other {
            let other = Utterance { words: other, ..utterance };
            let (key, value) = one_of(capability, &last.call, parameters.iter(), other, false)?;
            parameters.insert(key, value);
        }
        return Some(book.call(&last.call, parameters).into());
    }
    let topic = situation.topic.as_ref()?;
    let capability = book.of_topic(topic)?;
    let parameters = again(book, capability, topic, utterance)?;
    Some(Interpretation::whole(book.call(&topic.call, parameters)))
}

/// Reads words that end what the last call began, such as a watch: “turn it off”, “remove it again”, “delete that note”. Never
/// is a thing meant that the thread was about before. If the call was about a thing, “it” may be either.
pub(crate) fn ending(book: &PhraseBook, utterance: Utterance<'_>) -> Option<Interpretation> {
    const ENDS: &str = "turn off|switch off|stop|end|cancel|remove|delete|erase|revoke|take away|take down";
    const ENDS_IT: &str = "turn it off|turn that off|turn this off|switch it off|switch that off|switch this off|take it away|\
        take that away|take it down|take that down";
    const CHANGES_IT: &str = "change it to|change that to|rename it to|rename it|edit it|edit that";
    let Utterance { words, situation, is_question, .. } = utterance;
    let last = situation.aside.as_ref()?;
    if is_question || situation.draft.is_some() || !situation.open_cards.is_empty() {
        return None;
    }
    let capability = book.of_topic(last)?;
    let is_noun = |word: &Word| {
        word.any(capability.phrases.vocabulary().things) || last.call.split(['_', '-']).any(|part| word.is(part))
    };
    let points = |rest: &[Word]| {
        let rest = skip(rest, "the|that|this");
        are(rest, "|it|one|one again|it again") || matches!(skip(rest, "last|new"), [noun] if is_noun(noun))
    };
    let ends = are(words, ENDS_IT) || after(words, ENDS).is_some_and(|rest| !rest.is_empty() && points(rest));
    let Some(request) = book.ended_by(last) else {
        // What an action of a tool did is known to the tool alone.
        let changes = ends || after(words, CHANGES_IT).is_some();
        let said = format!(
            "The last thing done here was “{}”, and I can't take it back or change it. Nothing was changed. Say what should be removed or changed by its name.",
            last.call.replace(['_', '-'], " ")
        );
        return (changes && book.is_action(&last.call)).then(|| Interpretation::answered(said));
    };
    if !ends {
        return None;
    }
    let said = last.parameters.iter().fold(request.to_owned(), |said, (key, value)| {
        said.replace(&format!("<{key}>"), value.as_str().unwrap_or_default())
    });
    let read = |said: &str| book.understand(&Situation { said: said.to_owned(), ..situation.clone() });
    let found = Some(read(&said)).filter(|found| !said.contains('<') && is_read(&found.user_request))?;
    let verb = as_typed(&words[..1]);
    let thing = book.about(&last.parameters).filter(|_| !words.iter().any(is_noun));
    let thing = thing.map(|name| format!("{verb} “{name}”"));
    match thing.filter(|other| matches!(read(other).user_request, UserRequest::Change { .. })) {
        Some(other) => Some(Interpretation::unclear("Which of these do you mean?", vec![said, other])),
        None => Some(found),
    }
}

/// Reads the last request, or the change on the card, with another value: “now with 400”, “make it 9:00”, “and the weight?”.
/// Of its parameters, the one is meant whose type the value has; if two have it, none is.
pub(crate) fn other_value(book: &PhraseBook, utterance: Utterance<'_>) -> Option<Interpretation> {
    const ADDS: &str = "and also|and|also|plus";
    const ASKS: &str = "and what about|what about|how about|and for|and on|and";
    const LEADS: &str = "and also|also|plus|now with|and now with|and with|with|now for|and for|now at|and at|at|and|now|try|try it with|try with|\
        try it at|what about|how about|what if it was|make it|make that|make this|set it to|set that to|change it to|\
        change that to|move it to|move that to|switch it to|put it at|do it at|do it on|have it at|have it on|let us make it|let us say|better|better make it|no , make it|no , make that|no|actually|rather";
    let Utterance { words, typed, situation, .. } = utterance;
    if situation.draft.as_ref().is_some_and(|draft| draft.asked.is_some()) {
        return None;
    }
    let has_number = words.iter().any(is_number);
    let last = situation.aside.as_ref().or(situation.topic.as_ref());
    // What a tool began, such as a watch, begins anew with any other value, also with one alone.
    let begun = last.filter(|last| situation.in_hand().is_none() && !book.is_action(&last.call));
    let begun = begun.filter(|begun| book.ended_by(begun).is_some());
    // “And” alone counts as politeness.
    let is_another = after(typed, ASKS).is_some();
    let lead = if has_number || begun.is_some() { LEADS } else { ASKS };
    let alone = begun.map(|_| words);
    let words = skip(after(words, lead).or_else(|| after(typed, lead)).or(alone)?, "the|its|their");
    let words = without_last(
        words,
        &["instead", "then", "please", "rather", "too", "now", "better", "be", "is", "are", "would"],
    );
    if words.is_empty() || words.iter().any(|word| word.quoted) {
        return None; // things are read by `same_for`
    }
    let value = Utterance { words, ..utterance };
    let adds = after(typed, ADDS).is_some();
    // “Also 50” is no other value of a number, but may be one more of a list.
    let is_more = after(typed, "and also|also|plus").is_some();
    let may_change = |(_, old): &(&String, &Value)| !is_more || old.is_array();
    if let Some(change) = situation.in_hand().filter(|_| has_number) {
        let is_its = |one: &&CapabilityPhrases| one.lines.calls().iter().any(|call| call.name == change.action);
        let capability = book.capabilities.iter().find(is_its)?;
        let update = one_of(capability, &change.action, change.params.iter().filter(may_change), value, adds)?;
        return Some(UserRequest::Update(Map::from_iter([update])).into());
    }
    let topic = last.filter(|last| has_number || !book.is_action(&last.call))?;
    let capability = book.of_topic(topic)?;
    let (key, value) = one_of(capability, &topic.call, topic.parameters.iter().filter(may_change), value, false)?;
    let mut parameters = with(topic, &key, value);
    if begun.is_some() && !is_another {
        parameters.insert(INSTEAD.to_owned(), true.into());
    }
    Some(Interpretation::whole(book.call(&topic.call, parameters)))
}

/// Divides “the same for Letters but with 300” into the request and the value that differs.
fn divide(words: &[Word]) -> (&[Word], Option<&[Word]>) {
    const LEADS: &str = "but with|but at|but for|but using|but|with|at|using";
    let differs = |at: usize| after(&words[at..], LEADS).filter(|value| value.iter().any(has_digit));
    let named = after(words, SAME).map_or(words.len(), |rest| words.len() - rest.len());
    match (named + 1..words.len()).find_map(|at| Some((at, differs(at)?))) {
        Some((at, value)) => (without_last(&words[..at], &[","]), Some(value)),
        None => (words, None),
    }
}

fn has_digit(word: &Word) -> bool {
    word.text.contains(|letter: char| letter.is_ascii_digit())
}

/// Returns true if the word is a number, or says how much of one.
fn is_number(word: &Word) -> bool {
    const FACTORS: &[&str] = &["half", "halved", "twice", "doubled", "tripled"];
    has_digit(word) || word.any(FACTORS)
}

/// Returns the one parameter of a call whose type the words have, with its new value. If two have it, none is meant. With
/// `adds`, the items of a list are added to it.
fn one_of<'p>(
    capability: &CapabilityPhrases,
    call: &str,
    parameters: impl Iterator<Item = (&'p String, &'p Value)>,
    utterance: Utterance<'_>,
    adds: bool,
) -> Option<(String, Value)> {
    // A time alone is recognised by the “at” before it.
    let at: Vec<Word> = [Word::new("at", false)].into_iter().chain(utterance.words.iter().cloned()).collect();
    let value = |(key, old): (&String, &Value)| {
        let of = |words: &[Word]| {
            let value = Utterance { words, ..utterance };
            capability.lines.value_of(call, key, value, capability.phrases, capability.owner)
        };
        if let Some(old) = old.as_array().filter(|old| !old.is_empty()) {
            return Some((key.clone(), continued(old, utterance.words, of, adds)?));
        }
        // “300 users” for the parameter `users`.
        let named = || of(without_last(utterance.words, &[key.as_str()]));
        Some((key.clone(), of(utterance.words).or_else(named).or_else(|| of(&at))?))
    };
    let subjects = capability.phrases.vocabulary().subjects;
    let mut fitting = parameters.filter(|(key, _)| !subjects.contains(&key.as_str())).filter_map(value);
    fitting.next().filter(|_| fitting.next().is_none())
}

/// Reads the items of a list after those before them: in “class 5B”, “and 6A”, both are classes. Returns only the new ones,
/// or all of them.
fn continued(old: &[Value], words: &[Word], of: impl Fn(&[Word]) -> Option<Value>, adds: bool) -> Option<Value> {
    let before = old.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?.join(", ");
    let all = of(&[split(&before), vec![Word::new(",", false)], words.to_vec()].concat())?;
    let items = all.as_array().filter(|items| items.len() > old.len())?;
    Some(if adds { all } else { items[old.len()..].into() })
}

/// Reads the last request about another thing: “the same for Letters”. Without “same”, it has to be a known name.
fn same_for(capability: &CapabilityPhrases, topic: &Topic, utterance: Utterance<'_>) -> Option<Map<String, Value>> {
    const AND: &str = "what about|how about|and for|and in|and what about|and how about|and|for|in";
    let vocabulary = capability.phrases.vocabulary();
    let (rest, is_sure) = match after(utterance.words, SAME) {
        Some(rest) => (rest, true),
        // “And” alone counts as politeness.
        None => {
            let stripped = || after(utterance.typed, "and").map(|_| utterance.words);
            (after(utterance.words, AND).or_else(stripped)?, false)
        }
    };
    let is_noun = |word: &Word| word.is("the") || word.any(vocabulary.kinds) || word.any(vocabulary.things);
    let named = &rest[rest.iter().take_while(|word| is_noun(word)).count()..];
    let named = without_last(named, &["too", "instead", "please", ","]);
    let named = without_last(without_last(named, vocabulary.kinds), vocabulary.things);
    let is_title = |word: &Word| word.quoted || word.text.starts_with(char::is_uppercase);
    let of_kind = |kind: &&&str| {
        let [one] = named else { return false };
        let is_known = one.kind.as_deref() == Some(**kind) && !one.quoted;
        let may_be = || !capability.phrases.slot(kind, Utterance { words: named, ..utterance }).is_empty();
        is_known || is_sure && !is_title(one) && may_be()
    };
    if let Some(kind) = vocabulary.kinds.iter().find(of_kind) {
        return takes(capability, topic, kind).then(|| with(topic, kind, text(named).into()));
    }
    let is_thing = is_sure && !named.is_empty() && named.iter().all(is_title);
    is_thing.then(|| with_thing(&vocabulary, topic, text(named))).flatten()
}

/// Returns the parameters of the topic with another thing, unless some of them belong to one thing alone.
fn with_thing(vocabulary: &Vocabulary, topic: &Topic, name: String) -> Option<Map<String, Value>> {
    let given = |key: &&&str| topic.parameters.contains_key(**key);
    let key = vocabulary.subjects.iter().find(given).filter(|_| !vocabulary.own.iter().any(|own| given(&own)))?;
    Some(with(topic, key, name.into()))
}

/// Reads the last request again, also with another number of users: “again with 100 more”, “another 100 users”.
fn again(
    book: &PhraseBook,
    capability: &CapabilityPhrases,
    topic: &Topic,
    utterance: Utterance<'_>,
) -> Option<Map<String, Value>> {
    const AGAIN: &str = "again with|again for|the same with|same with|the same again with|same again with|repeat with|\
        repeat it with|repeat that with|do it again with|do that again with|run it again with|run that again with|\
        run again with|test it again with|test again with|once more with|try again with|try it again with|try it with|\
        rerun with|rerun it with|another|and another|now with|with";
    const WHOLE: &str = "again|do it again|run it again|run that again|do that again|once more|same again";
    let repeats = capability.phrases.vocabulary().repeats.contains(&topic.call.as_str());
    let takes_users = repeats || takes(capability, topic, USERS);
    if are(utterance.words, WHOLE) {
        let is_harmless = repeats || !book.is_action(&topic.call);
        return is_harmless.then(|| topic.parameters.clone());
    }
    let (number, rest) = after(utterance.words, AGAIN).filter(|_| takes_users)?.split_first()?;
    let users = number.text.replace(',', "").parse::<u64>().ok().or_else(|| number_word(&number.lower))?;
    let rest = skip(skip(rest, "more|other|further|additional|of them"), "simulated|test|fake");
    let rest = skip(rest, "users|people|students|participants|ids");
    let rest = skip(rest, "more|instead|this time|again");
    rest.is_empty().then(|| with(topic, USERS, users.into()))
}

/// Returns true if the tool or action of the topic takes this parameter: it was given, a line has it, or all things are
/// listed, which any kind of name limits.
fn takes(capability: &CapabilityPhrases, topic: &Topic, parameter: &str) -> bool {
    let lists_all = capability.phrases.vocabulary().shows.is_some_and(|shows| shows.all == topic.call);
    topic.parameters.contains_key(parameter)
        || lists_all && capability.phrases.vocabulary().kinds.contains(&parameter)
        || capability.lines.take(&topic.call, parameter)
}

/// Returns the parameters of the topic with one other value, from the first page on.
fn with(topic: &Topic, parameter: &str, value: Value) -> Map<String, Value> {
    let mut parameters = topic.parameters.clone();
    parameters.remove("page");
    parameters.remove(INSTEAD);
    parameters.insert(parameter.to_owned(), value);
    parameters
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{checking::check, phrases::Vocabulary, situation::Situation};

    /// Phrases about documents, which are on shelves.
    const OF_DOCUMENTS: Vocabulary = Vocabulary {
        subjects: &["document"],
        own: &["title"],
        kinds: &["shelf"],
        repeats: &["test_document"],
        lines: "read list_documents\n    list documents [on <shelf:word>]\nread show_document\n    show <document:thing>\n\
                change test_document\n    test <document:thing> with <users:number> users\n\
                change name_document\n    name <document:thing> <title:word>\n",
        ..Vocabulary::new(&["document", "documents"])
    };

    #[track_caller]
    fn after_call(call: &str, parameters: Value, rows: &[(&str, &str)]) {
        let Value::Object(parameters) = parameters else { panic!("an object") };
        let topic = Topic { capability: "documents".to_owned(), call: call.to_owned(), parameters };
        let shelf =
            crate::lexicon::Mention { kind: "shelf".to_owned(), said: "attic".to_owned(), ..Default::default() };
        let situation = Situation { topic: Some(topic), names: vec![shelf], ..Situation::default() };
        check(&PhraseBook::default().with("documents", &OF_DOCUMENTS).unwrap(), &situation, rows);
    }

    #[test]
    fn what_the_last_call_began_is_ended_and_no_thing_is_meant() {
        const OF_BELLS: Vocabulary = Vocabulary {
            ended_by: &[("ring", "silence the bell in <room>")],
            about_others: true,
            greeting: "",
            lines: "read ring\n    ring in <room:word> (at|every) <minutes:number> [minutes]\n\
                    read silence\n    silence bell in <room:word>\nchange paint_bell\n    paint bell\n",
            ..Vocabulary::new(&["bell", "bells"])
        };
        const OF_ROOMS: Vocabulary = Vocabulary {
            subjects: &["document"],
            lines: "change stop_document\n    stop <document:thing>\n    remove <document:thing>\n",
            ..Vocabulary::new(&["document", "documents"])
        };
        let book = PhraseBook::default().with("documents", &OF_ROOMS).unwrap().with("bells", &OF_BELLS).unwrap();
        let after = |call: &str| {
            let Value::Object(parameters) = json!({ "room": "attic", "minutes": 5 }) else { panic!("an object") };
            let aside = Topic { capability: "bells".to_owned(), call: call.to_owned(), parameters };
            Situation { aside: Some(aside), last_subject: Some("Plan".to_owned()), ..Situation::default() }
        };
        let silence = r#"read silence {"room":"attic"}"#;
        check(
            &book,
            &after("ring"),
            &[
                ("turn it off", silence),
                ("remove it again", silence),
                ("stop that bell", silence),
                ("stop “Plan”", r#"stop_document {"document":"Plan"}"#),
                ("10", r#"read ring {"instead":true,"minutes":10,"room":"attic"}"#),
                ("make it 10", r#"read ring {"instead":true,"minutes":10,"room":"attic"}"#),
                ("and 10", r#"read ring {"minutes":10,"room":"attic"}"#),
            ],
        );
        check(&book, &after("paint_bell"), &[("remove it again", "unclear"), ("stop that bell", "unclear")]);
        check(
            &book,
            &Situation { aside: None, ..after("ring") },
            &[("stop it", r#"stop_document {"document":"Plan"}"#)],
        );
    }

    #[test]
    fn a_request_is_continued_with_another_part_of_its_type() {
        after_call(
            "list_documents",
            json!({ "page": 2 }),
            &[
                ("and in the attic?", r#"read list_documents {"shelf":"attic"}"#),
                ("and attic?", r#"read list_documents {"shelf":"attic"}"#),
            ],
        );
        after_call(
            "show_document",
            json!({ "document": "Plan" }),
            &[
                ("the same for “Letter”", r#"read show_document {"document":"Letter"}"#),
                ("again", r#"read show_document {"document":"Plan"}"#),
            ],
        );
        after_call(
            "test_document",
            json!({ "document": "Plan", "users": 100 }),
            &[
                ("again with 50 more", r#"test_document {"document":"Plan","users":50}"#),
                ("the same for the document “Letter”", r#"test_document {"document":"Letter","users":100}"#),
                ("same for “Letter” but with 300", r#"test_document {"document":"Letter","users":300}"#),
                ("same for “Letter”, but 300 users", r#"test_document {"document":"Letter","users":300}"#),
                ("same for “Letter” but with 300 pens", "unclear"),
            ],
        );
        after_call("name_document", json!({ "document": "Plan", "title": "A" }), &[("same for “Letter”", "unclear")]);
    }
}
