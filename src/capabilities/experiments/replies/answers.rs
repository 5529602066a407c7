//! What the read tools found, for people: from the tools' JSON answers, so that nothing is said that was not read.

use std::collections::BTreeMap;

use serde::Deserialize as _;
use serde_json::Value;

use super::{
    super::{
        listing::Which,
        rules,
        summary::{Details, Share},
    },
    lists,
};
use crate::{
    reply::{Attachment, Part, Reply, Text},
    services::upgrade::{client::Health, context::ContextMetadata, status::Status},
};

/// How many experiments a list shows.
const ROWS: usize = 30;

/// The names of experiments: the answer of `get_experiment_names`.
pub fn names_reply(answer: &Value) -> Reply {
    let names: Vec<_> =
        answer["experiments"].as_array().into_iter().flatten().filter_map(|named| named["name"].as_str()).collect();
    if names.is_empty() {
        return lists::list_reply(answer, &Which::default());
    }
    let one_or_many = if names.len() == 1 { "experiment" } else { "experiments" };
    let points = names.iter().take(ROWS).map(|name| Text::new().bold(*name)).collect();
    let reply = Reply::text(format!("{} {one_or_many}:", names.len())).and(Part::List(points));
    if names.len() > ROWS { reply.hint(format!("{} more are not shown.", names.len() - ROWS)) } else { reply }
}

/// One experiment: the answer of `get_experiment_details`.
pub fn details_reply(answer: &Value) -> Reply {
    let Ok(details) = Details::deserialize(answer) else { return unreadable() };
    let Details { summary, .. } = &details;
    let mut facts = vec![
        ("Status".to_owned(), Text::from(summary.status.display())),
        ("Context".to_owned(), Text::new().code(&summary.context)),
        ("Conditions".to_owned(), Text::from(some_or_none(shares(&summary.conditions)))),
        ("Decision points".to_owned(), Text::from(some_or_none(summary.decision_points.join(", ")))),
        ("Assigned".to_owned(), Text::from(unit_words(&details.assignment_unit, details.group.as_deref()))),
        ("Afterwards".to_owned(), Text::from(afterwards(&details.post_experiment_rule))),
        ("People on no list".to_owned(), Text::from(filter_words(&details.filter_mode))),
    ];
    if let Some(rule) = &details.consistency_rule {
        facts.push(("Consistency".to_owned(), Text::from(rule.as_str())));
    }
    if let Some(users) = details.enrolled_users {
        let mut enrolled = people(users);
        if let Some(excluded) = details.excluded_users.filter(|excluded| *excluded > 0) {
            enrolled.push_str(&format!(", {excluded} excluded"));
        }
        facts.push(("Enrolled".to_owned(), Text::from(enrolled)));
    }
    if !summary.tags.is_empty() {
        facts.push(("Tags".to_owned(), Text::from(summary.tags.join(", "))));
    }
    let mut reply = Reply::default().and(Part::Heading(summary.name.clone()));
    if !details.description.is_empty() {
        reply = reply.and(Part::Text(Text::from(details.description.as_str())));
    }
    reply = reply.and(Part::Facts(facts)).hint(Text::new().plain("Id ").code(summary.id.to_string()));
    for next in details.next_statuses.iter().filter(|next| **next != Status::Cancelled) {
        let verb = rules::verb(summary.status, *next);
        reply = reply.choice(capital(verb), format!("{verb} {}", summary.name));
    }
    reply
}

/// What contexts know: the answer of `get_context_metadata`; of one context, or of all.
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

/// Whether the platform is there: the answer of `check_upgrade_health`.
pub fn health_reply(answer: &Value) -> Reply {
    match Health::deserialize(answer) {
        Ok(Health { name, version }) => Reply::text(
            Text::new().plain("UpGrade is running: ").bold(name).plain(", version ").code(version).plain("."),
        ),
        Err(_) => unreadable(),
    }
}

/// The data as a file below the reply; `about` becomes its name.
pub fn json_file(reply: Reply, about: &str, title: &str, data: &Value) -> Reply {
    let words = about.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let name: String = words.collect::<Vec<_>>().join("-").to_lowercase().chars().take(60).collect();
    let name = if name.is_empty() { "data.json".to_owned() } else { format!("{name}.json") };
    let bytes = serde_json::to_vec_pretty(data).expect("a value is plain data");
    reply.file(Attachment { name, title: title.to_owned(), bytes })
}

/// A tool's answer of another shape; a fault of ours.
fn unreadable() -> Reply {
    Reply::text("I read something from UpGrade that I do not understand, so I would rather not say anything about it.")
        .hint("Ask again, or tell whoever runs me.")
}

/// `control 50%, variant 50% (12 enrolled)`.
pub fn shares(conditions: &[Share]) -> String {
    let words = conditions.iter().map(|share| {
        let enrolled = share.enrolled.map(|users| format!(" ({users} enrolled)")).unwrap_or_default();
        format!("{} {}%{enrolled}", share.code, rules::number(share.weight))
    });
    words.collect::<Vec<_>>().join(", ")
}

/// `nobody`, `1 person`, `12 people`.
pub fn people(users: u64) -> String {
    match users {
        0 => "nobody".to_owned(),
        1 => "1 person".to_owned(),
        users => format!("{users} people"),
    }
}

/// Who draws a lot, in words.
pub fn unit_words(unit: &str, group: Option<&str>) -> String {
    match (unit, group) {
        ("individual", _) => "each person by themselves".to_owned(),
        ("group", Some(group)) => format!("all of a group together, by {group}"),
        ("group", None) => "all of a group together".to_owned(),
        ("within-subjects", _) => "each person through several conditions".to_owned(),
        (other, _) => other.to_owned(),
    }
}

/// The post-experiment rule, in words.
pub fn afterwards(rule: &str) -> String {
    match rule.split_once(' ') {
        None if rule == "continue" => "everyone keeps their condition".to_owned(),
        Some(("assign", "default")) => "everyone gets the application's default".to_owned(),
        Some(("assign", condition)) => format!("everyone enrolled gets {condition}"),
        _ => rule.to_owned(),
    }
}

/// The filter mode, in words.
pub fn filter_words(mode: &str) -> String {
    match mode {
        "includeAll" => "take part".to_owned(),
        "excludeAll" => "do not take part".to_owned(),
        other => other.to_owned(),
    }
}

fn some_or_none(words: String) -> String {
    if words.is_empty() { "none".to_owned() } else { words }
}

fn capital(verb: &str) -> String {
    let mut letters = verb.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::{super::tests::read, *};

    fn experiment(name: &str, status: &str) -> Value {
        json!({
            "id": "d56d271d-a23c-4e9b-a163-b5fd658c5b03", "name": name, "status": status, "status_words": status,
            "context": "assign-prog",
            "conditions": [{ "code": "control", "weight": 50 }, { "code": "variant", "weight": 50 }],
            "decision_points": ["SelectSection / area_model"],
        })
    }

    #[test]
    fn details_are_facts_with_what_can_be_done_next() {
        let mut answer = experiment("Math Hints", "inactive");
        for (key, value) in [
            ("description", json!("Do hints help?")),
            ("assignment_unit", json!("group")),
            ("group", json!("classId")),
            ("consistency_rule", json!("group")),
            ("post_experiment_rule", json!("assign variant")),
            ("filter_mode", json!("includeAll")),
            ("tags", json!(["algebra"])),
            ("enrolled_users", json!(12)),
            ("excluded_users", json!(3)),
            ("next_statuses", json!(["enrolling", "cancelled"])),
        ] {
            answer[key] = value;
        }
        assert_snapshot!(read(&details_reply(&answer)), @r"
        Math Hints
        Do hints help?
        Status: inactive
        Context: assign-prog
        Conditions: control 50%, variant 50%
        Decision points: SelectSection / area_model
        Assigned: all of a group together, by classId
        Afterwards: everyone enrolled gets variant
        People on no list: take part
        Consistency: group
        Enrolled: 12 people, 3 excluded
        Tags: algebra
        Id d56d271d-a23c-4e9b-a163-b5fd658c5b03
        [Start → start Math Hints]
        ");
    }

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
        There is no context “assign”. There are: assign-prog, mathstream.
        [assign-prog → what does assign-prog know?]
        [mathstream → what does mathstream know?]
        ");
    }

    #[test]
    fn names_alone_are_a_list() {
        let answer =
            json!({ "experiments": [{ "id": "1", "name": "Math Hints" }, { "id": "2", "name": "Chat Tone" }] });
        assert_snapshot!(read(&names_reply(&answer)), @r"
        2 experiments:
        • Math Hints
        • Chat Tone
        ");
    }

    #[test]
    fn health_is_one_sentence() {
        let answer = json!({ "name": "A/B Testing Backend", "version": "6.5.0" });
        assert_snapshot!(read(&health_reply(&answer)), @"UpGrade is running: A/B Testing Backend, version 6.5.0.");
        assert_snapshot!(read(&health_reply(&json!(null))), @r"
        I read something from UpGrade that I do not understand, so I would rather not say anything about it.
        Ask again, or tell whoever runs me.
        ");
    }
}
