//! The replies about the vocabularies of contexts, as a whole and part by part.

use std::collections::BTreeMap;

use countersign_core::reply::{Part, Reply, Text};
use serde::Deserialize as _;
use serde_json::Value;

use super::{
    super::context_tools::PointInUse,
    answers::{some_or_none, unreadable},
};
use crate::upgrade::context::ContextMetadata;

/// Returns the vocabulary of one context, or of all: the answer of `get_context_metadata`.
pub fn contexts_reply(answer: &Value, context: Option<&str>) -> Reply {
    let Ok(contexts) = BTreeMap::<String, ContextMetadata>::deserialize(answer) else { return unreadable() };
    let shown: Vec<_> = contexts.iter().filter(|(name, _)| context.is_none_or(|wanted| *name == wanted)).collect();
    if shown.is_empty() {
        let known: Vec<_> = contexts.into_keys().collect();
        return super::refusals::unknown_context(context.unwrap_or_default(), &known, |known| {
            format!("what does {known} know?")
        });
    }
    if shown.len() > 1 {
        let columns = ["Context", "Conditions", "Sites", "Targets", "Group types"].map(str::to_owned).to_vec();
        let rows = shown.iter().map(|(name, known)| {
            let ContextMetadata { conditions, group_types, sites, targets } = known;
            let words =
                [conditions, sites, targets, group_types].map(|words| Text::from(some_or_none(words.join(", "))));
            std::iter::once(Text::new().code(*name)).chain(words).collect()
        });
        return Reply::text(format!("{} contexts:", shown.len())).and(Part::Table { columns, rows: rows.collect() });
    }
    shown.into_iter().fold(Reply::default(), |reply, (name, known)| {
        let ContextMetadata { conditions, group_types, sites, targets } = known;
        let facts = [("Conditions", conditions), ("Sites", sites), ("Targets", targets), ("Group types", group_types)];
        let facts = facts.map(|(label, words)| (label.to_owned(), Text::from(some_or_none(words.join(", ")))));
        reply.and(Part::Heading(name.clone())).and(Part::Facts(facts.to_vec()))
    })
}

/// Returns the names of the contexts: the answer of `get_available_contexts`.
pub fn available_reply(answer: &Value) -> Reply {
    let names = words(&answer["contexts"]);
    let reply = match names.as_slice() {
        [] => return Reply::text("UpGrade has no contexts. Its administrator sets them up."),
        [one] => Reply::text(Text::new().plain("There is one context: ").join(codes(&[one])).plain(".")),
        several => Reply::text(
            Text::new().plain(format!("There are {} contexts: ", several.len())).join(codes(several)).plain("."),
        ),
    };
    names.iter().take(5).fold(reply, |reply, name| reply.choice(*name, format!("what does {name} know?")))
}

/// Returns the conditions of one context: the answer of `get_conditions_for_context`.
pub fn conditions_reply(answer: &Value) -> Reply {
    part(answer, "conditions", "Conditions in ", "lists no conditions, so any code can be used.")
        .choice("Decision points", format!("what decision points does {} have?", context(answer)))
}

/// Returns the kinds of groups of one context: the answer of `get_group_types_for_context`.
pub fn group_types_reply(answer: &Value) -> Reply {
    part(
        answer,
        "group_types",
        "Group types in ",
        "has no group types, so experiments there assign users individually.",
    )
}

/// Returns the decision points of one context: the answer of `get_decision_points_for_context`.
pub fn points_reply(answer: &Value) -> Reply {
    let Ok(in_use) = Vec::<PointInUse>::deserialize(&answer["in_use"]) else { return unreadable() };
    let reply = Reply::text(
        Text::new()
            .plain("A decision point in ")
            .code(context(answer))
            .plain(" is one of its sites with one of its targets."),
    );
    let listed = |key: &str| match words(&answer[key]).as_slice() {
        [] => Text::from("none listed"),
        known => codes(known),
    };
    let facts = [("Sites", "sites"), ("Targets", "targets")].map(|(label, key)| (label.to_owned(), listed(key)));
    let reply = reply.and(Part::Facts(facts.to_vec()));
    if in_use.is_empty() {
        return reply.hint("No experiment uses any of them yet.");
    }
    let rows = in_use
        .iter()
        .map(|point| vec![Text::new().code(&point.decision_point), Text::from(point.experiments.join(", "))]);
    let columns = ["Decision point in use", "Used by"].map(str::to_owned).to_vec();
    reply.and(Part::Table { columns, rows: rows.collect() })
}

fn part(answer: &Value, key: &str, heading: &str, none: &str) -> Reply {
    let context = Text::new().code(context(answer));
    Reply::text(match words(&answer[key]).as_slice() {
        [] => context.plain(format!(" {none}")),
        known => Text::new().plain(heading).join(context).plain(": ").join(codes(known)).plain("."),
    })
}

fn context(answer: &Value) -> &str {
    answer["context"].as_str().unwrap_or("?")
}

fn words(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn codes(words: &[&str]) -> Text {
    let mut text = Text::new();
    for (nth, word) in words.iter().enumerate() {
        text = if nth > 0 { text.plain(", ") } else { text }.code(*word);
    }
    text
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::{super::tests::read, *};

    #[test]
    fn the_vocabulary_of_a_context() {
        let answer = json!({
            "assign-prog": { "CONDITIONS": ["control", "variant"], "GROUP_TYPES": ["classId"],
                "EXP_POINTS": ["SelectSection"], "EXP_IDS": ["area_model"] },
            "mathstream": {},
        });
        assert_snapshot!(read(&contexts_reply(&answer, Some("assign-prog"))), @r"
        assign-prog
        Conditions: control, variant
        Sites: SelectSection
        Targets: area_model
        Group types: classId
        ");
        assert_snapshot!(read(&contexts_reply(&answer, Some("assign"))), @r"
        No context is called “assign”. Available contexts: assign-prog, mathstream.
        [assign-prog → what does assign-prog know?]
        [mathstream → what does mathstream know?]
        ");
    }

    #[test]
    fn part_by_part() {
        assert_snapshot!(read(&available_reply(&json!({ "contexts": ["assign-prog", "mathstream"] }))), @"
        There are 2 contexts: assign-prog, mathstream.
        [assign-prog → what does assign-prog know?]
        [mathstream → what does mathstream know?]
        ");
        assert_snapshot!(read(&conditions_reply(&json!({ "context": "assign-prog", "conditions": ["control"] }))), @"
        Conditions in assign-prog: control.
        [Decision points → what decision points does assign-prog have?]
        ");
        assert_snapshot!(read(&group_types_reply(&json!({ "context": "assign-prog", "group_types": [] }))), @"assign-prog has no group types, so experiments there assign users individually.");
        let points = json!({ "context": "assign-prog", "sites": ["SelectSection"], "targets": [],
            "in_use": [{ "decision_point": "SelectSection / area_model", "experiments": ["Math Hints", "Twin"] }] });
        assert_snapshot!(read(&points_reply(&points)), @"
        A decision point in assign-prog is one of its sites with one of its targets.
        Sites: SelectSection
        Targets: none listed
        Decision point in use | Used by
        SelectSection / area_model | Math Hints, Twin
        ");
    }
}
