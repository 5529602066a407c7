//! Further limits of the last list: “which of those are running?”, “only the paused ones”. They take over the whole
//! request, with all its limits.

use countersign_understanding::{phrases::Utterance, situation::Listed};
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::{
    lists,
    user_request::{Interpretation, UserRequest},
    words::{after, skip},
};
use crate::listing::ListArguments;

/// Parses a further limit of the last list: `which of those are running?`, `only the running ones`.
pub(super) fn narrowed(utterance: Utterance<'_>) -> Option<Interpretation> {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::{
            OWNER,
            situation::{Situation, Topic},
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
