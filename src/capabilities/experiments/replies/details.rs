//! The replies about one experiment: in short, as usual, in detail, or as a file.

use countersign_core::reply::{Part, Reply, Text};
use serde::Deserialize as _;
use serde_json::Value;

use super::{
    super::{
        listing::Form,
        rules,
        setup::{FactorSummary, MemberListSummary, PayloadSummary},
        summary::Details,
    },
    answers::{
        afterwards, capital, filter_words, json_file, people, plus_tests, shares, some_or_none, unit_words, unreadable,
    },
    lists::moment,
};
use crate::upgrade::status::Status;

/// Returns the reply about one experiment: the answer of `get_experiment_details`.
pub fn details_reply(answer: &Value, form: Form) -> Reply {
    let Ok(details) = Details::deserialize(answer) else { return unreadable() };
    let name = &details.summary.name;
    let (reply, (label, more)) = match form {
        Form::Short => (short(&details), ("In detail", "in detail")),
        Form::Normal => (normal(&details), ("In detail", "in detail")),
        Form::Full => (full(&details), ("As JSON", "as JSON")),
        Form::Raw => return raw(&details, &answer["raw"]),
    };
    let offered = |next: &&Status| !matches!(next, Status::Cancelled | Status::Scheduled | Status::Inactive);
    let next = details.next_statuses.iter().filter(offered);
    let reply = next.fold(reply, |reply, next| {
        let verb = rules::verb(details.summary.status, *next);
        reply.choice(capital(verb), format!("{verb} {name}"))
    });
    reply.choice(label, format!("show “{name}” {more}"))
}

fn short(details: &Details) -> Reply {
    let summary = &details.summary;
    let enrolled = match details.enrolled_users {
        Some(1) => " 1 user is enrolled.".to_owned(),
        Some(0) => " Nobody is enrolled.".to_owned(),
        Some(users) => format!(" {users} users are enrolled."),
        None => String::new(),
    };
    let enrolled = match details.test_users {
        0 => enrolled,
        1 => format!("{enrolled} 1 test user isn't counted."),
        tests => format!("{enrolled} {tests} test users aren't counted."),
    };
    let compares = match summary.conditions.as_slice() {
        [] => ", without conditions yet.".to_owned(),
        conditions => format!(", comparing {}.", shares_alone(conditions)),
    };
    Reply::text(
        Text::new()
            .bold(&summary.name)
            .plain(format!(" is {} in ", summary.status.display()))
            .code(&summary.context)
            .plain(format!("{compares}{enrolled}")),
    )
}

fn shares_alone(conditions: &[super::super::summary::Share]) -> String {
    let alone: Vec<_> =
        conditions.iter().map(|share| super::super::summary::Share { enrolled: None, ..share.clone() }).collect();
    shares(&alone)
}

fn opening(details: &Details) -> Reply {
    let reply = Reply::default().and(Part::Heading(details.summary.name.clone()));
    match details.description.as_str() {
        "" => reply,
        description => reply.and(Part::Text(Text::from(description))),
    }
}

fn normal(details: &Details) -> Reply {
    let summary = &details.summary;
    let mut facts = vec![
        ("Status".to_owned(), Text::from(summary.status.display())),
        ("Context".to_owned(), Text::new().code(&summary.context)),
        ("Conditions".to_owned(), Text::from(some_or_none(shares(&summary.conditions)))),
        ("Decision points".to_owned(), Text::from(some_or_none(summary.decision_points.join(", ")))),
    ];
    if !details.factors.is_empty() {
        facts.insert(2, ("Factors".to_owned(), Text::from(factors(&details.factors))));
    }
    facts.extend(rules_of(details));
    let several = |count: usize, one: &str, many: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    };
    if !details.payloads.is_empty() {
        facts.push(("Payloads".to_owned(), Text::from(payloads(&details.payloads))));
    }
    for (label, lists) in [("Included", &details.inclusion_lists), ("Excluded", &details.exclusion_lists)] {
        if !lists.is_empty() {
            let total = lists.iter().map(|list| list.total).sum();
            facts.push((label.to_owned(), Text::from(several(total, "entry on a list", "entries on lists"))));
        }
    }
    opening(details).and(Part::Facts(facts)).hint(Text::new().plain("ID ").code(summary.id.to_string()))
}

/// Returns the factors in a line: `hints (none, text) × feedback (now, later)`.
fn factors(all: &[FactorSummary]) -> String {
    let words = all.iter().map(|varied| {
        let levels: Vec<_> = varied.levels.iter().map(|summary| summary.level.as_str()).collect();
        format!("{} ({})", varied.factor, levels.join(", "))
    });
    words.collect::<Vec<_>>().join(" × ")
}

/// Returns a factor in a line: `Factor hints: none, text (payload “T”)`.
fn factor(varied: &FactorSummary) -> Text {
    let mut text = Text::new().plain("Factor ").bold(&varied.factor).plain(": ");
    for (i, summary) in varied.levels.iter().enumerate() {
        text = text.plain(if i == 0 { "" } else { ", " }).code(&summary.level);
        if let Some(payload) = summary.payload.as_ref().filter(|payload| **payload != summary.level) {
            text = text.plain(" (payload ").code(payload).plain(")");
        }
    }
    text
}

/// Returns the payloads if they are few and short, otherwise their number.
fn payloads(all: &[PayloadSummary]) -> String {
    match all.len() <= 4 && all.iter().all(|content| content.value.chars().count() <= 40) {
        true => all.iter().map(|c| format!("{} “{}”", c.condition, c.value)).collect::<Vec<_>>().join(", "),
        false => format!("{}, shown in detail", all.len()),
    }
}

/// Returns the rules and numbers: assignment, people on no list, the post-experiment rule, enrolments.
fn rules_of(details: &Details) -> Vec<(String, Text)> {
    let mut facts = vec![
        ("Assignment".to_owned(), Text::from(unit_words(&details.assignment_unit, details.group.as_deref()))),
        ("After enrollment ends".to_owned(), Text::from(afterwards(&details.post_experiment_rule))),
        ("Users on no list".to_owned(), Text::from(filter_words(&details.filter_mode))),
    ];
    let mut add = |label: &str, words: &str| facts.push((label.to_owned(), Text::from(words)));
    if let Some(rule) = &details.consistency_rule {
        add("Consistency", rule);
    }
    if let Some(algorithm) = &details.assignment_algorithm {
        match &details.stratification_factor {
            Some(factor) => add("Algorithm", &format!("{algorithm}, by {factor}")),
            None => add("Algorithm", algorithm),
        }
    }
    if let Some(ends) = &details.ends {
        add("Ends automatically", ends);
    }
    for (label, at) in [("Starts", &details.start_on), ("Ends", &details.end_on)] {
        if let Some(at) = at {
            facts.push((label.to_owned(), moment(Some(at))));
        }
    }
    let mut add = |label: &str, words: &str| facts.push((label.to_owned(), Text::from(words)));
    if let Some(users) = details.enrolled_users {
        let mut enrolled = people(users);
        if let Some(groups) = details.enrolled_groups.filter(|groups| *groups > 0) {
            enrolled.push_str(&format!(" in {groups} group{}", if groups == 1 { "" } else { "s" }));
        }
        enrolled.push_str(&plus_tests(details.test_users));
        if let Some(excluded) = details.excluded_users.filter(|excluded| *excluded > 0) {
            enrolled.push_str(&format!(", {excluded} excluded"));
        }
        add("Enrolled", &enrolled);
    }
    if !details.summary.tags.is_empty() {
        add("Tags", &details.summary.tags.join(", "));
    }
    facts
}

fn full(details: &Details) -> Reply {
    let summary = &details.summary;
    let mut facts = vec![
        ("Status".to_owned(), Text::from(summary.status.display())),
        ("Context".to_owned(), Text::new().code(&summary.context)),
    ];
    facts.extend(rules_of(details));
    facts.push(("Created".to_owned(), moment(summary.created_at.as_deref())));
    facts.push(("Last changed".to_owned(), moment(summary.updated_at.as_deref())));
    let mut reply = opening(details).and(Part::Facts(facts));
    if !details.factors.is_empty() {
        reply = reply.and(Part::List(details.factors.iter().map(factor).collect()));
    }
    if !summary.conditions.is_empty() {
        let rows = summary.conditions.iter().map(|share| {
            let enrolled = share.enrolled.map_or("–".to_owned(), |users| users.to_string());
            vec![Text::new().code(&share.code), format!("{}%", rules::number(share.weight)).into(), enrolled.into()]
        });
        reply = reply.and(table(["Condition", "Weight", "Enrolled"], rows.collect()));
    }
    let points = summary.decision_points.iter().map(|point| match details.exclude_if_reached.contains(point) {
        true => Text::new().code(point).plain(" (users who were here before the start are excluded)"),
        false => Text::new().code(point),
    });
    if !summary.decision_points.is_empty() {
        reply = reply.and(Part::Text("Decision points:".into())).and(Part::List(points.collect()));
    }
    if !details.enrolled_at.is_empty() {
        let rows = details.enrolled_at.iter().map(|at| {
            let codes = [&at.decision_point, &at.condition].map(|words| Text::new().code(words));
            codes.into_iter().chain([Text::from(at.users.to_string())]).collect()
        });
        reply = reply.and(table(["Decision point", "Condition", "Enrolled"], rows.collect()));
    }
    if !details.payloads.is_empty() {
        let rows = details.payloads.iter().map(|content| {
            [&content.decision_point, &content.condition, &content.value].map(|words| Text::new().code(words)).to_vec()
        });
        reply = reply.and(table(["Decision point", "Condition", "Payload"], rows.collect()));
    }
    for (label, lists) in [("Included", &details.inclusion_lists), ("Excluded", &details.exclusion_lists)] {
        if !lists.is_empty() {
            reply = reply.and(Part::Text(format!("{label}:").into()));
            reply = reply.and(Part::List(lists.iter().map(on_list).collect()));
        }
    }
    if !details.history.is_empty() {
        let entries =
            details.history.iter().map(|entry| moment(Some(&entry.at)).plain(format!(": {}", entry.status.display())));
        reply = reply.and(Part::Text("History:".into())).and(Part::List(entries.collect()));
    }
    reply.hint(Text::new().plain("ID ").code(summary.id.to_string()))
}

fn table(columns: [&str; 3], rows: Vec<Vec<Text>>) -> Part {
    Part::Table { columns: columns.map(str::to_owned).to_vec(), rows }
}

pub(super) fn on_list(list: &MemberListSummary) -> Text {
    let text = match list.name.as_str() {
        "" => Text::new(),
        name => Text::new().bold(name).plain(": "),
    };
    let more = list.total - list.members.len().min(list.total);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    text.plain(format!("{}{more}", list.members.join(", ")))
}

fn raw(details: &Details, data: &Value) -> Reply {
    let name = &details.summary.name;
    if data.is_null() || data.get("left_out").is_some() {
        let text = Text::new().plain("The data of “").bold(name).plain("” is too large to post.");
        return Reply::text(text).choice("In detail", format!("show “{name}” in detail"));
    }
    let text = Text::new().plain("All UpGrade data about “").bold(name).plain("” is in the file below.");
    json_file(Reply::text(text), name, name, data)
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
    fn details_are_facts_with_the_next_steps() {
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
        assert_snapshot!(read(&details_reply(&answer, Form::Normal)), @"
        Math Hints
        Do hints help?
        Status: inactive
        Context: assign-prog
        Conditions: control 50%, variant 50%
        Decision points: SelectSection / area_model
        Assignment: by group (classId)
        After enrollment ends: enrolled users get variant
        Users on no list: included
        Consistency: group
        Enrolled: 12 users, 3 excluded
        Tags: algebra
        ID d56d271d-a23c-4e9b-a163-b5fd658c5b03
        [Start → start Math Hints]
        [In detail → show “Math Hints” in detail]
        ");
    }

    #[test]
    fn in_short_and_in_detail() {
        let mut answer = experiment("Math Hints", "enrolling");
        for (key, value) in [
            ("assignment_unit", json!("individual")),
            ("post_experiment_rule", json!("continue")),
            ("filter_mode", json!("excludeAll")),
            ("enrolled_users", json!(1)),
            ("next_statuses", json!([])),
            ("exclude_if_reached", json!(["SelectSection / area_model"])),
            ("ends", json!("with 100 users enrolled")),
            (
                "payloads",
                json!([{ "condition": "control", "decision_point": "SelectSection / area_model", "type": "string", "value": "off" }]),
            ),
            ("inclusion_lists", json!([{ "name": "Pilot", "members": ["u1", "classId: 5B"], "total": 30 }])),
            ("exclusion_lists", json!([{ "members": ["u9"], "total": 1 }])),
            ("history", json!([{ "status": "enrolling", "at": "2026-11-20T08:00:00.000Z" }])),
        ] {
            answer[key] = value;
        }
        assert_snapshot!(read(&details_reply(&answer, Form::Short)), @"
        Math Hints is running in assign-prog, comparing control 50%, variant 50%. 1 user is enrolled.
        [In detail → show “Math Hints” in detail]
        ");
        assert_snapshot!(read(&details_reply(&answer, Form::Full)), @"
        Math Hints
        Status: running
        Context: assign-prog
        Assignment: individual
        After enrollment ends: enrolled users keep their condition
        Users on no list: excluded
        Ends automatically: with 100 users enrolled
        Enrolled: 1 user
        Created: –
        Last changed: –
        Condition | Weight | Enrolled
        control | 50% | –
        variant | 50% | –
        Decision points:
        • SelectSection / area_model (users who were here before the start are excluded)
        Decision point | Condition | Payload
        SelectSection / area_model | control | off
        Included:
        • Pilot: u1, classId: 5B and 28 more
        Excluded:
        • u9
        History:
        • 2026-11-20T08:00:00.000Z: running
        ID d56d271d-a23c-4e9b-a163-b5fd658c5b03
        [As JSON → show “Math Hints” as JSON]
        ");
        assert_snapshot!(read(&details_reply(&answer, Form::Normal)), @"
        Math Hints
        Status: running
        Context: assign-prog
        Conditions: control 50%, variant 50%
        Decision points: SelectSection / area_model
        Assignment: individual
        After enrollment ends: enrolled users keep their condition
        Users on no list: excluded
        Ends automatically: with 100 users enrolled
        Enrolled: 1 user
        Payloads: control “off”
        Included: 30 entries on lists
        Excluded: 1 entry on a list
        ID d56d271d-a23c-4e9b-a163-b5fd658c5b03
        [In detail → show “Math Hints” in detail]
        ");
        answer["raw"] = json!({ "left_out": 100_000 });
        assert_snapshot!(read(&details_reply(&answer, Form::Raw)), @"
        The data of “Math Hints” is too large to post.
        [In detail → show “Math Hints” in detail]
        ");
        answer["raw"] = json!({ "id": "d56d271d" });
        let file = details_reply(&answer, Form::Raw).files.remove(0);
        assert_eq!(
            (file.name.as_str(), file.bytes.as_slice()),
            ("math-hints.json", &b"{\n  \"id\": \"d56d271d\"\n}"[..])
        );
    }
}
