//! What the read tools found, for people: from the tools' JSON answers, so that nothing is said that was not read.

use std::collections::BTreeMap;

use serde::Deserialize as _;
use serde_json::Value;

use super::super::{
    rules,
    summary::{Details, Share, Summary},
};
use crate::{
    reply::{Part, Reply, Text},
    services::upgrade::{client::Health, context::ContextMetadata, status::Status},
};

/// How many experiments a list shows.
const ROWS: usize = 30;

/// A list of experiments: the `experiments` of `get_all_experiments`. `filter` says which ones were asked for, such as
/// `enrolling` or `in assign-prog`.
pub fn list_reply(experiments: &[Value], filter: Option<&str>) -> Reply {
    let all: Vec<_> = experiments.iter().filter_map(|value| Summary::deserialize(value).ok()).collect();
    let which = filter.map(|filter| format!(" ({filter})")).unwrap_or_default();
    if all.is_empty() {
        let none = Reply::text(format!("There are no experiments{which}."));
        return match filter {
            Some(_) => none.choice("Show all", "list experiments"),
            None => none.hint("Ask me to create one: I need a name, a context and a decision point."),
        };
    }
    let rows = all.iter().take(ROWS).map(|experiment| {
        vec![
            Text::new().bold(&experiment.name),
            Text::new().plain(experiment.status.display()),
            Text::new().code(&experiment.context),
            Text::new().plain(shares(&experiment.conditions)),
        ]
    });
    let columns = ["Name", "Status", "Context", "Conditions"].map(str::to_owned).to_vec();
    let one_or_many = if all.len() == 1 { "experiment" } else { "experiments" };
    let reply =
        Reply::text(format!("{} {one_or_many}{which}:", all.len())).and(Part::Table { columns, rows: rows.collect() });
    if all.len() > ROWS {
        return reply.hint(format!("{} more are not shown; ask for one context or status.", all.len() - ROWS));
    }
    reply
}

/// The names of experiments: the answer of `get_experiment_names`.
pub fn names_reply(answer: &Value) -> Reply {
    let names: Vec<_> =
        answer["experiments"].as_array().into_iter().flatten().filter_map(|named| named["name"].as_str()).collect();
    if names.is_empty() {
        return list_reply(&[], None);
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
    if !details.tags.is_empty() {
        facts.push(("Tags".to_owned(), Text::from(details.tags.join(", "))));
    }
    let mut reply = Reply::default().and(Part::Heading(summary.name.clone()));
    if !details.description.is_empty() {
        reply = reply.and(Part::Text(Text::from(details.description.as_str())));
    }
    reply = reply.and(Part::Facts(facts)).hint(Text::new().plain("Id ").code(summary.id.to_string()));
    let offered = |next: &&Status| !matches!(next, Status::Cancelled | Status::Scheduled | Status::Inactive);
    for next in details.next_statuses.iter().filter(offered) {
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
    fn a_list_is_a_table() {
        let experiments = [experiment("Math Hints", "inactive"), experiment("Running Test", "running")];
        assert_snapshot!(read(&list_reply(&experiments, None)), @r"
        2 experiments:
        Name | Status | Context | Conditions
        Math Hints | inactive | assign-prog | control 50%, variant 50%
        Running Test | enrolling (running) | assign-prog | control 50%, variant 50%
        ");
        assert_snapshot!(read(&list_reply(&[], Some("enrolling"))), @r"
        There are no experiments (enrolling).
        [Show all → list experiments]
        ");
        assert_snapshot!(read(&list_reply(&[], None)), @r"
        There are no experiments.
        Ask me to create one: I need a name, a context and a decision point.
        ");
    }

    #[test]
    fn a_long_list_says_that_it_is_cut() {
        let experiments = vec![experiment("Twin", "inactive"); 33];
        assert!(
            list_reply(&experiments, None).words().ends_with("3 more are not shown; ask for one context or status.")
        );
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
