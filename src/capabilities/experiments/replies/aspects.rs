//! The answers to questions about one part of an experiment: who created it, how long it has been running, how many
//! people are enrolled, who is on its lists.

use countersign_core::{
    clock::Timestamp,
    reply::{Part, Reply, Text},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    super::{setup::MemberListSummary, summary::Details},
    answers::unreadable,
    details::on_list,
    lists::moment,
};
use crate::upgrade::status::Status;

/// A part of an experiment that a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Aspect {
    /// The person who created it, and the time.
    Created,
    /// The time since it has been running.
    RunningTime,
    /// The number of enrolled people.
    Enrollment,
    /// The people who are left out.
    Excluded,
    /// The people who are let in.
    Included,
}

/// Returns the answer about one part of an experiment. `answer` is that of `get_experiment_details`.
pub fn aspect_reply(answer: &Value, aspect: Aspect) -> Reply {
    let Ok(details) = Details::deserialize(answer) else { return unreadable() };
    let name = &details.summary.name;
    let reply = match aspect {
        Aspect::Created => created(&details, answer["created_by"].as_str()),
        Aspect::RunningTime => running_time(&details, answer["read_at"].as_i64().map(Timestamp)),
        Aspect::Enrollment => enrollment(&details),
        Aspect::Excluded => {
            let reply = listed(name, "exclusion list", "excluded from", &details.exclusion_lists);
            match details.filter_mode.as_str() {
                "excludeAll" => reply.hint("Only users on its inclusion list are included."),
                _ => reply,
            }
        }
        Aspect::Included => {
            let reply = listed(name, "inclusion list", "included in", &details.inclusion_lists);
            match details.filter_mode.as_str() {
                "excludeAll" => reply.hint("Nobody else is included."),
                _ => reply.hint("Users on no list are included too."),
            }
        }
    };
    reply.choice("Show details", format!("show “{name}”"))
}

/// Returns the name in quotes.
fn named(name: &str) -> Text {
    Text::new().plain("“").bold(name).plain("”")
}

fn created(details: &Details, by: Option<&str>) -> Reply {
    let summary = &details.summary;
    let text = named(&summary.name).plain(" was created ").join(moment(summary.created_at.as_deref()));
    Reply::text(match by {
        Some(by) => text.plain(" by ").plain(by).plain("."),
        None => text.plain(". I couldn't find out by whom."),
    })
}

fn running_time(details: &Details, now: Option<Timestamp>) -> Reply {
    let summary = &details.summary;
    let since = |status: Status| details.history.iter().rev().find(|entry| entry.status == status);
    let text = named(&summary.name);
    let text = match (summary.status, since(summary.status)) {
        (Status::Enrolling, Some(started)) => {
            let text = text.plain(" has been running since ").join(moment(Some(&started.at)));
            match now.and_then(|now| days(&started.at, now)) {
                Some(days) => text.plain(format!(", for {days}.")),
                None => text.plain("."),
            }
        }
        (Status::Enrolling, None) => text.plain(" is running. Its status history doesn't say since when."),
        (status, ended) => match (since(Status::Enrolling), ended) {
            (Some(started), Some(ended)) => text
                .plain(format!(" isn't running: it is {}. It ran from ", status.display()))
                .join(moment(Some(&started.at)))
                .plain(" to ")
                .join(moment(Some(&ended.at)))
                .plain("."),
            (Some(started), None) => text
                .plain(format!(" isn't running: it is {}. It was started ", status.display()))
                .join(moment(Some(&started.at)))
                .plain("."),
            (None, _) => text.plain(format!(" isn't running: it is {} and has no start on record.", status.display())),
        },
    };
    Reply::text(text)
}

/// Returns the time between a moment in the platform's format and now: `4 days`, `3 hours`, `12 minutes`.
fn days(since: &str, now: Timestamp) -> Option<String> {
    let since = since.parse::<jiff::Timestamp>().ok()?;
    let minutes = (now.0 - since.as_millisecond()).max(0) / 60_000;
    let (count, unit) = match minutes {
        minutes if minutes >= 48 * 60 => (minutes / (24 * 60), "day"),
        minutes if minutes >= 120 => (minutes / 60, "hour"),
        minutes => (minutes, "minute"),
    };
    Some(format!("{count} {unit}{}", if count == 1 { "" } else { "s" }))
}

fn enrollment(details: &Details) -> Reply {
    let summary = &details.summary;
    let Some(users) = details.enrolled_users else {
        let text = Text::new().plain("UpGrade didn't say how many users are enrolled in ").join(named(&summary.name));
        return Reply::text(text.plain("."));
    };
    let count = match users {
        0 => "Nobody is enrolled in ".to_owned(),
        1 => "1 user is enrolled in ".to_owned(),
        users => format!("{users} users are enrolled in "),
    };
    let shares: Vec<String> = summary
        .conditions
        .iter()
        .filter_map(|share| Some(format!("{} {}", share.code, share.enrolled?)))
        .filter(|_| users > 0)
        .collect();
    let text = Text::from(count).join(named(&summary.name));
    let text = match shares.is_empty() {
        true => text.plain("."),
        false => text.plain(format!(": {}.", shares.join(", "))),
    };
    let text = match details.test_users {
        0 => text,
        1 => text.plain(" 1 test user of mine isn't counted."),
        tests => text.plain(format!(" {tests} test users of mine aren't counted.")),
    };
    match details.excluded_users {
        Some(excluded) if excluded > 0 => {
            Reply::text(text.plain(format!(" {excluded} more reached a decision point but are excluded.")))
        }
        _ => Reply::text(text),
    }
}

fn listed(name: &str, list: &str, role: &str, lists: &[MemberListSummary]) -> Reply {
    match lists {
        [] => Reply::text(named(name).plain(format!(" has no {list}."))),
        lists => {
            let total: usize = lists.iter().map(|list| list.total).sum();
            let verb = if total == 1 { "1 entry is" } else { "entries are" };
            let count = if total == 1 { String::new() } else { format!("{total} ") };
            let heading = Text::from(format!("{count}{verb} {role} ")).join(named(name)).plain(":");
            Reply::text(heading).and(Part::List(lists.iter().map(on_list).collect()))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn experiment(status: &str) -> Value {
        json!({
            "id": "6bd2a7a8-9b4c-4b7b-a0f8-8f2ffdf1c3c1", "name": "Math Hints", "status": status, "status_words": status,
            "context": "assign-prog", "conditions": [{ "code": "control", "weight": 50.0, "enrolled": 3 },
            { "code": "variant", "weight": 50.0, "enrolled": 4 }], "decision_points": [], "assignment_unit": "individual",
            "post_experiment_rule": "continue", "filter_mode": "includeAll", "enrolled_users": 7, "next_statuses": [],
            "created_at": "2026-11-01T08:00:00.000Z", "read_at": 1_795_000_000_000_i64,
            "exclusion_lists": [{ "members": ["u1", "class: 5B"], "total": 2 }],
            "history": [{ "status": "enrolling", "at": "2026-11-02T08:00:00.000Z" }],
        })
    }

    fn said(status: &str, aspect: Aspect) -> String {
        aspect_reply(&experiment(status), aspect).words()
    }

    #[test]
    fn one_part_is_answered_in_a_sentence() {
        assert!(
            said("enrolling", Aspect::Enrollment)
                .starts_with("7 users are enrolled in “Math Hints”: control 3, variant 4.")
        );
        assert!(said("enrolling", Aspect::RunningTime).contains("has been running since"));
        assert!(said("enrolling", Aspect::RunningTime).contains("days."));
        assert!(said("inactive", Aspect::RunningTime).contains("isn't running: it is inactive"));
        assert!(said("enrolling", Aspect::Created).contains("I couldn't find out by whom."));
        assert!(said("enrolling", Aspect::Excluded).contains("u1, class: 5B"));
        assert!(said("enrolling", Aspect::Included).starts_with("“Math Hints” has no inclusion list."));
    }
}
