//! `countersign golden`: writes a thread as a case for `countersign-playground evaluate`.
//!
//! The case has the messages of the thread and what its last turn looked up or proposed, which becomes what is expected.
//! Check that it was right before you keep the case. Mentions, addresses and long numbers are replaced, and names
//! as the caller says.

use std::sync::Arc;

use anyhow::bail;
use countersign_config::Config;
use countersign_conversation::record::notebook::Redaction;
use countersign_core::{clock::SystemClock, ids::ThreadId};
use countersign_graph::store::{AuditKind, Store};
use serde_json::{Map, Value, json};

use super::{dependencies, fork, keys};

/// The confidence below which a message counts as not understood, as in the evaluation.
const MIN_CONFIDENCE: f64 = 0.7;

/// The number of digits from which on a number is replaced.
const LONG_NUMBER: usize = 7;

/// A name and what replaces it, written as `NAME=OTHER`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renaming {
    from: String,
    to: String,
}

impl std::str::FromStr for Renaming {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            Some((from, to)) if !from.trim().is_empty() => {
                Ok(Self { from: from.trim().to_owned(), to: to.trim().to_owned() })
            }
            _ => {
                Err(format!("found `{text}`; expected a name and its replacement, such as \"Spring Pilot=Math Hints\""))
            }
        }
    }
}

/// Returns the case for a thread of the configured store, in a list of its own.
///
/// # Errors
///
/// If there is no such thread, its words are hidden or deleted, or the store cannot be read.
pub async fn write(config: &Config, thread: &ThreadId, renamed: &[Renaming]) -> anyhow::Result<Value> {
    let store = dependencies::store_to_read(config, Arc::new(SystemClock)).await?;
    let store = keys::checked_to_read(store.clone(), config)?.unwrap_or(store);
    Ok(json!([case(&*store, thread, &Redaction::from(&config.record), renamed).await?]))
}

/// Returns the case for a thread.
///
/// # Errors
///
/// As [`write()`].
pub async fn case(
    store: &dyn Store,
    thread: &ThreadId,
    redaction: &Redaction,
    renamed: &[Renaming],
) -> anyhow::Result<Value> {
    let record = redaction.applied(store.audit(thread).await?.entries).await;
    let said = record.iter().map(|entry| &entry.event).filter(|event| event.kind == AuditKind::Said);
    let said = said.map(|event| match event.detail["text"].as_str() {
        Some(text) if !text.contains("[hidden") => Ok(text.to_owned()),
        _ => {
            bail!("words of thread {thread} are hidden or deleted (record.redact, record.keep), so it can't be a case")
        }
    });
    let mut said = said.collect::<anyhow::Result<Vec<_>>>()?;
    let Some(last) = said.pop() else { bail!("there is no message of a person in thread {thread} of this store") };
    let turn = last_turn(store, thread).await?;
    let analysis = &turn["analysis"];
    if analysis.is_null() {
        bail!("thread {thread} is no conversation, or its last message needed no understanding, such as a “yes”");
    }
    let is_unclear = analysis["confidence"].as_f64().is_some_and(|confidence| confidence < MIN_CONFIDENCE);
    let mut case = json!({ "said": last, "before": said, "capability": analysis["capability"], "action": turn["change"]["action"] });
    case["intent"] = if is_unclear { json!("unclear") } else { analysis["intent_type"].clone() };
    case["tool"] = turn["read"]["tool"].clone();
    case["parameters"] = match (&turn["change"], &turn["read"]) {
        (Value::Null, read) => read["arguments"].clone(),
        (change, _) => change["params"].clone(),
    };
    let Value::Object(members) = scrubbed(case, renamed) else { unreachable!("it is an object") };
    let is_given = |value: &Value| !value.is_null() && *value != json!([]) && *value != json!({});
    Ok(Value::Object(members.into_iter().filter(|(_, value)| is_given(value)).collect()))
}

/// Returns what the steps of the last turn have found, each the first time: `analysis`, `change` and `read`.
async fn last_turn(store: &dyn Store, thread: &ThreadId) -> anyhow::Result<Value> {
    let mut found = Map::new();
    fork::each_checkpoint(store, thread, |_, _, checkpoint| {
        let turn = &checkpoint["state"]["turn"];
        if found.get("number") != Some(&turn["number"]) {
            found = Map::from_iter([("number".to_owned(), turn["number"].clone())]);
        }
        for (name, value) in [("analysis", &turn["analysis"]), ("change", &turn["change"]), ("read", &turn["reads"][0])]
        {
            if !value.is_null() {
                found.entry(name).or_insert_with(|| value.clone());
            }
        }
    })
    .await?;
    Ok(Value::Object(found))
}

/// Replaces in all texts what names people, and the names to be replaced.
fn scrubbed(value: Value, renamed: &[Renaming]) -> Value {
    match value {
        Value::String(text) => {
            let renamed = renamed.iter().fold(text, |text, Renaming { from, to }| text.replace(from, to));
            let words = renamed.split(' ').map(scrubbed_word);
            Value::String(words.collect::<Vec<_>>().join(" "))
        }
        Value::Array(items) => items.into_iter().map(|item| scrubbed(item, renamed)).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(name, value)| (name, scrubbed(value, renamed))).collect::<Map<_, _>>().into()
        }
        other => other,
    }
}

fn scrubbed_word(word: &str) -> String {
    let digits = word.chars().filter(char::is_ascii_digit).count();
    match () {
        () if word.contains("<@") => "<@U1>".to_owned(),
        () if word.contains("://") => "https://example.com".to_owned(),
        () if word.split_once('@').is_some_and(|(_, host)| host.contains('.')) => "person@example.com".to_owned(),
        () if digits >= LONG_NUMBER && !word.contains(['-', ':', '/']) => {
            word.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect()
        }
        () => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_people_is_replaced() {
        let renamed = ["Spring Pilot=Math Hints".parse().unwrap()];
        let case = json!({
            "said": "start Spring Pilot for <@U777> and ana@school.edu, see https://school.edu/x or call 5550100123",
            "parameters": { "experiment": "Spring Pilot", "start_on": "2026-12-01T08:00", "weights": [70, "30"] },
        });
        let expected = json!({
            "said": "start Math Hints for <@U1> and person@example.com see https://example.com or call 0000000000",
            "parameters": { "experiment": "Math Hints", "start_on": "2026-12-01T08:00", "weights": [70, "30"] },
        });
        assert_eq!(scrubbed(case, &renamed), expected);
    }

    #[test]
    fn a_renaming_has_two_names() {
        assert!("Spring Pilot".parse::<Renaming>().unwrap_err().contains("expected a name and its replacement"));
        assert!("=Math Hints".parse::<Renaming>().is_err());
    }
}
