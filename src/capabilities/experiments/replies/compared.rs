//! The reply that shows a few experiments side by side: a column for each, a row for each part.

use countersign_core::reply::{Part, Reply, Text};
use serde::Deserialize as _;
use serde_json::Value;

use super::{
    super::{compare::MAX_COMPARED, summary::Details},
    answers::{afterwards, people_and_tests, shares, some_or_none, unit_words, unreadable},
    lists::moment,
};

/// Returns the experiments side by side: the answer of `compare_experiments`.
pub fn compared_reply(answer: &Value) -> Reply {
    let all: Option<Vec<Details>> = answer["experiments"]
        .as_array()
        .and_then(|all| all.iter().map(|one| Details::deserialize(one).ok()).collect::<Option<Vec<_>>>())
        .filter(|all| all.len() > 1);
    let Some(all) = all else { return unreadable() };
    let row = |label: &str, of: &dyn Fn(&Details) -> Text| {
        std::iter::once(Text::from(label)).chain(all.iter().map(of)).collect::<Vec<_>>()
    };
    let enrolled = |details: &Details| {
        details.enrolled_users.map_or("–".to_owned(), |users| people_and_tests(users, details.test_users))
    };
    let started = |details: &Details| {
        let running = |entry: &&super::super::setup::StatusHistoryEntry| {
            entry.status == crate::upgrade::status::Status::Enrolling
        };
        details.history.iter().find(running).map(|entry| entry.at.clone())
    };
    let mut rows = vec![
        row("Status", &|details| details.summary.status.display().into()),
        row("Context", &|details| Text::new().code(&details.summary.context)),
        row("Conditions", &|details| some_or_none(shares(&details.summary.conditions)).into()),
        row("Decision points", &|details| some_or_none(details.summary.decision_points.join(", ")).into()),
        row("Assignment", &|details| unit_words(&details.assignment_unit, details.group.as_deref()).into()),
        row("After enrollment ends", &|details| afterwards(&details.post_experiment_rule).into()),
        row("Enrolled", &|details| enrolled(details).into()),
        row("Created", &|details| moment(details.summary.created_at.as_deref())),
        row("First started", &|details| moment(started(details).as_deref())),
    ];
    if all.iter().any(|details| !details.summary.tags.is_empty()) {
        rows.push(row("Tags", &|details| some_or_none(details.summary.tags.join(", ")).into()));
    }
    let names = all.iter().map(|details| details.summary.name.clone());
    let columns = std::iter::once("Part".to_owned()).chain(names).collect();
    let heading =
        Text::listed(all.iter().map(|details| Text::new().plain("“").bold(&details.summary.name).plain("”")), "and");
    let reply = Reply::text(heading.plain(":")).and(Part::Table { columns, rows });
    let points = |details: &Details| details.summary.decision_points.clone();
    let is_shared = |point: &String| all.iter().all(|details| points(details).contains(point));
    match points(&all[0]).into_iter().find(is_shared) {
        Some(point) => reply.hint(Text::from("They share the decision point ").code(point).plain(".")),
        None => reply,
    }
}

/// Returns the request to compare these experiments.
pub fn request<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<_> = names.map(|name| format!("“{name}”")).collect();
    format!("compare {}", quoted.join(" and "))
}

/// Returns the refusal to compare this number of experiments.
pub fn wrong_number(given: usize) -> Reply {
    match given {
        0 | 1 => Reply::text("I need at least two experiments to compare.")
            .hint("For example: “compare Math Hints and Running Test”"),
        given => {
            Reply::text(format!("{given} experiments are too many to compare side by side. Name up to {MAX_COMPARED}."))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_experiment_is_a_column() {
        let experiment = |name: &str, users: u64| {
            json!({
                "id": "6bd2a7a8-9b4c-4b7b-a0f8-8f2ffdf1c3c1", "name": name, "status": "enrolling", "status_words": "running",
                "context": "assign-prog", "conditions": [], "decision_points": ["a / b"], "assignment_unit": "individual",
                "post_experiment_rule": "continue", "filter_mode": "includeAll", "enrolled_users": users,
                "next_statuses": [],
            })
        };
        let reply = compared_reply(&json!({ "experiments": [experiment("Ada", 3), experiment("Bea", 4)] }));
        let Some(Part::Table { columns, rows }) = reply.parts.get(1) else { panic!("{reply:?}") };
        assert_eq!(columns, &["Part", "Ada", "Bea"]);
        let enrolled = rows.iter().find(|row| row[0].words() == "Enrolled").unwrap();
        assert_eq!([enrolled[1].words(), enrolled[2].words()], ["3 users", "4 users"]);
        assert!(reply.words().contains("They share the decision point a / b."), "{}", reply.words());
        assert!(wrong_number(5).words().starts_with("5 experiments are too many"));
    }
}
