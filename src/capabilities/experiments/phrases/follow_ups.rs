//! Requests that continue the one before: “which of those are running?”, “the same for mathstream”, “again with 100
//! more”.
//!
//! They take over the whole request, with all its limits, and change one part of it. If it has no such part, they are not
//! read here.

use countersign_understanding::{dates::number_word, phrases::Utterance, situation::Listed};
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::{
    OWNER, lists,
    situation::Topic,
    user_request::{Interpretation, UserRequest},
    words::{Word, after, skip, text, without_last},
};
use crate::{families, listing::ListArguments};

/// Parses a request that continues the one before.
pub(super) fn follow_up(utterance: Utterance<'_>) -> Option<Interpretation> {
    narrowed(utterance)
        .or_else(|| same_for(utterance).map(Interpretation::from))
        .or_else(|| again_with(utterance).map(|request| Interpretation { is_whole: true, ..request.into() }))
}

/// Parses a further limit of the last list: `which of those are running?`, `only the running ones`.
fn narrowed(utterance: Utterance<'_>) -> Option<Interpretation> {
    const OF_THOSE: &str = "which of those|which of these|which of them|which ones of those|which ones of these|which ones|\
        how many of those|how many of these|how many of them|any of those|any of these|any of them|are any of those|\
        are any of these|are any of them|is any of those|is any of them|what of those|who of those|list those|show those|\
        of those|of these|of them";
    const ONLY: &str = "show me only|show only|list only|only show me|only show|only list|only|narrow it to|narrow that to|\
        narrow those to|narrow them to|limit it to|limit those to|limit that to|limit them to|filter by|filter them by|\
        filter those by|filter to|the";
    let listed = utterance.situation.listed.as_ref().filter(|listed| listed.call == lists::LIST)?;
    let words = skip(utterance.words, "and|,|but");
    let (rest, is_sure) = match after(words, OF_THOSE) {
        Some(rest) => (rest, true),
        None => (after(words, ONLY)?, false),
    };
    let rest = skip(skip(rest, "the|those|these"), "ones that|ones which|ones");
    if rest.is_empty() {
        return None;
    }
    let limits = match lists::limits(rest) {
        Ok(limits) if !limits.is_empty() => limits,
        Err(question) if is_sure => return Some(question),
        _ => return None,
    };
    // “The running ones” names entries; “the running costs” does not.
    let names_entries = rest.last().is_some_and(|last| last.among("ones one experiments studies"));
    if !is_sure && after(words, "the").is_some() && !names_entries {
        return None;
    }
    Some(limited(listed, limits))
}

/// Returns the request for the last list with further limits. A limit of another value for what the list is limited to
/// already leads to a question.
fn limited(listed: &Listed, limits: Map<String, Value>) -> Interpretation {
    let mut arguments = listed.parameters.clone();
    arguments.remove("page");
    let is_limit = |key: &str| !matches!(key, "sort" | "form" | "page");
    let clashes =
        limits.iter().any(|(key, value)| is_limit(key) && arguments.get(key).is_some_and(|known| known != value));
    if clashes {
        let of = |arguments: Map<String, Value>| ListArguments::deserialize(Value::Object(arguments)).ok();
        let old = of(arguments.clone()).map(|which| which.words()).unwrap_or_default();
        let options = of(limits).map(|which| which.request(1)).into_iter().collect();
        return Interpretation::unclear(
            format!("That list shows only these experiments: {old}. Do you want a different list?"),
            options,
        );
    }
    arguments.extend(limits);
    UserRequest::Read { tool: lists::LIST.to_owned(), arguments }.into()
}

/// Parses the last request about another context or experiment: `the same for mathstream`.
fn same_for(utterance: Utterance<'_>) -> Option<UserRequest> {
    const SAME: &str = "the same for|same for|the same with|same with|the same in|same in|the same to|do the same for|\
        do the same with|do the same in|do the same to|same thing for|same thing with|same again for|the same thing for|\
        likewise for|repeat for|repeat it for|repeat that for|repeat this for|do it for|do that for|do this for|now for|now in";
    const AND: &str = "what about|how about|and for|and in|and what about|and how about|and|for|in";
    let topic = utterance.topic_of(OWNER)?;
    let (rest, is_sure) = match after(utterance.words, SAME) {
        Some(rest) => (rest, true),
        None => (after(utterance.words, AND)?, false),
    };
    let named = skip(rest, "the context|context|the experiment|experiment|the study|the");
    let named = without_last(named, &["too", "instead", "context", "experiment", "please", ","]);
    let [one] = named else {
        let is_title =
            is_sure && !named.is_empty() && named.iter().all(|word| word.text.starts_with(char::is_uppercase));
        return is_title.then(|| with_experiment(topic, &text(named))).flatten();
    };
    let is_known_context = one.kind.as_deref() == Some("context") && !one.quoted;
    let may_be_context = is_sure && !one.quoted && one.text == one.lower && !lists::is_no_context(one);
    if is_known_context || may_be_context {
        return with_context(topic, one);
    }
    let is_experiment = one.quoted || one.text.starts_with(char::is_uppercase);
    (is_sure && is_experiment).then(|| with_experiment(topic, &one.text)).flatten()
}

/// Returns the request of the topic in another context.
fn with_context(topic: &Topic, context: &Word) -> Option<UserRequest> {
    let takes_context = topic.call == lists::LIST
        || topic.call.ends_with("_for_context")
        || topic.call == "get_decision_point_assignments" && topic.parameters.contains_key("context");
    let mut arguments = topic.parameters.clone();
    arguments.remove("page");
    arguments.insert("context".to_owned(), context.text.clone().into());
    takes_context.then(|| request(&topic.call, arguments))
}

/// Returns the request of the topic about another experiment.
fn with_experiment(topic: &Topic, name: &str) -> Option<UserRequest> {
    let key = ["experiment", "experiment_id"].into_iter().find(|key| topic.parameters.contains_key(*key))?;
    // Another name, another list of conditions: these belong to one experiment.
    let is_own = ["new_name", "conditions", "name"].iter().any(|key| topic.parameters.contains_key(*key));
    let mut arguments = topic.parameters.clone();
    arguments.insert(key.to_owned(), name.into());
    (!is_own).then(|| request(&topic.call, arguments))
}

/// Parses the last test with another number of users: `again with 100 more`, `another 100 users`.
fn again_with(utterance: Utterance<'_>) -> Option<UserRequest> {
    const AGAIN: &str = "again with|again for|the same with|same with|the same again with|same again with|repeat with|\
        repeat it with|repeat that with|do it again with|do that again with|run it again with|run that again with|\
        run again with|test it again with|test again with|once more with|try again with|try it again with|try it with|\
        rerun with|rerun it with|another|and another|now with|with";
    const WHOLE: &[&str] =
        &["again", "do it again", "run it again", "run that again", "do that again", "once more", "same again"];
    let topic = utterance.topic_of(OWNER)?;
    let plain = super::words::lower(utterance.words);
    let is_test = topic.call.starts_with("test_") || topic.call.starts_with("generate_test");
    if !is_test && !is_read(&topic.call) {
        return None;
    }
    if WHOLE.contains(&plain.as_str()) {
        return Some(request(&topic.call, topic.parameters.clone()));
    }
    let (number, rest) = after(utterance.words, AGAIN).filter(|_| is_test)?.split_first()?;
    let users = number.text.replace(',', "").parse::<u64>().ok().or_else(|| number_word(&number.lower))?;
    let rest = skip(skip(rest, "more|other|further|additional|of them"), "simulated|test|fake");
    let rest = skip(rest, "users|people|students|participants|ids");
    let rest = skip(rest, "more|instead|this time|again");
    let mut arguments = topic.parameters.clone();
    arguments.insert("users".to_owned(), users.into());
    rest.is_empty().then(|| request(&topic.call, arguments))
}

/// Returns true if this is a tool.
fn is_read(call: &str) -> bool {
    !families::all().iter().any(|family| family.actions.contains(&call))
}

/// Returns the request for a tool or an action.
fn request(call: &str, arguments: Map<String, Value>) -> UserRequest {
    match is_read(call) {
        true => UserRequest::Read { tool: call.to_owned(), arguments },
        false => UserRequest::change(call, arguments),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::{
            situation::Situation,
            tests::{check, params},
        },
        *,
    };

    fn after_call(call: &str, parameters: Value) -> Situation {
        let topic =
            Topic { capability: OWNER.to_owned(), call: call.to_owned(), parameters: params(parameters.clone()) };
        let listed = (call == lists::LIST).then(|| Listed {
            call: call.to_owned(),
            parameters: params(parameters),
            names: vec!["Ada".to_owned(), "Bea".to_owned()],
            is_complete: true,
            is_passed: false,
        });
        Situation { topic: Some(topic), listed, ..Situation::default() }
    }

    #[test]
    fn a_list_is_limited_further_and_asked_for_elsewhere() {
        check(
            &after_call(lists::LIST, json!({ "context": "assign-prog", "page": 2 })),
            &[
                (
                    "which of those are running?",
                    r#"read get_all_experiments {"context":"assign-prog","status":"enrolling"}"#,
                ),
                (
                    "only the paused ones",
                    r#"read get_all_experiments {"context":"assign-prog","status":"enrollmentComplete"}"#,
                ),
                ("the same for mathstream", r#"read get_all_experiments {"context":"mathstream"}"#),
            ],
        );
    }

    #[test]
    fn a_test_is_repeated_with_other_users_or_for_another_experiment() {
        check(
            &after_call("test_condition_balance", json!({ "experiment": "Math Hints", "users": 200 })),
            &[
                ("again with 100 more", r#"test_condition_balance {"experiment":"Math Hints","users":100}"#),
                ("another 1,000 users", r#"test_condition_balance {"experiment":"Math Hints","users":1000}"#),
                ("the same for Running Test", r#"test_condition_balance {"experiment":"Running Test","users":200}"#),
            ],
        );
    }
}
