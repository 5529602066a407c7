//! The replies with the answers of the read tools. They are made from the JSON of the answers, so that
//! they state nothing that was not read.

use countersign_core::reply::{Attachment, Part, Reply, Text};
use serde::Deserialize as _;
use serde_json::Value;

use super::{
    super::{listing::ListArguments, rules, summary::Share},
    lists,
};
use crate::upgrade::client::Health;

/// The maximum number of experiments in a list.
const MAX_ROWS: usize = 30;

/// Returns the names of experiments: the answer of `get_experiment_names`.
pub fn names_reply(answer: &Value) -> Reply {
    let names: Vec<_> =
        answer["experiments"].as_array().into_iter().flatten().filter_map(|named| named["name"].as_str()).collect();
    if names.is_empty() {
        return lists::list_reply(answer, &ListArguments::default());
    }
    let one_or_many = if names.len() == 1 { "experiment" } else { "experiments" };
    let points = names.iter().take(MAX_ROWS).map(|name| Text::new().bold(*name)).collect();
    let reply = Reply::text(format!("{} {one_or_many}:", names.len())).and(Part::List(points));
    if names.len() > MAX_ROWS { reply.hint(format!("{} more are not shown.", names.len() - MAX_ROWS)) } else { reply }
}

/// Returns the health of the platform: the answer of `check_upgrade_health`.
pub fn health_reply(answer: &Value) -> Reply {
    match Health::deserialize(answer) {
        Ok(Health { name, version }) => Reply::text(
            Text::new().plain("UpGrade is running: ").bold(name).plain(", version ").code(version).plain("."),
        ),
        Err(_) => unreadable(),
    }
}

/// Says that the platform does not answer, and shows its last known answer. `ago` is the age of that
/// answer, such as `3 min ago`.
pub fn earlier_health_reply(answer: &Value, ago: &str) -> Reply {
    let text = Text::from("UpGrade isn't answering. ");
    Reply::text(match Health::deserialize(answer) {
        Ok(Health { name, version }) => {
            text.plain(format!("It was running {ago}: ")).bold(name).plain(", version ").code(version).plain(".")
        }
        Err(_) => text.plain(format!("It last answered {ago}.")),
    })
    .hint("Try again in a minute. If it keeps failing, contact your administrator.")
}

/// Adds the data as a file below the reply, named after `about`.
pub fn json_file(reply: Reply, about: &str, title: &str, data: &Value) -> Reply {
    let words = about.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let name: String = words.collect::<Vec<_>>().join("-").to_lowercase().chars().take(60).collect();
    let name = if name.is_empty() { "data.json".to_owned() } else { format!("{name}.json") };
    let bytes = serde_json::to_vec_pretty(data).expect("a value is plain data");
    reply.file(Attachment { name, title: title.to_owned(), alt: String::new(), bytes })
}

/// Returns the reply to a tool's answer with an unexpected format, which is a bug in the bot.
pub(super) fn unreadable() -> Reply {
    Reply::text("UpGrade sent data that I can't read, so I can't answer this.")
        .hint("Try again. If it keeps failing, tell the app's operator.")
}

/// Returns the shares in words: `control 50%, variant 50% (12 enrolled)`.
pub fn shares(conditions: &[Share]) -> String {
    let words = conditions.iter().map(|share| {
        let enrolled = share.enrolled.map(|users| format!(" ({users} enrolled)")).unwrap_or_default();
        format!("{} {}%{enrolled}", share.code, rules::number(share.weight))
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Returns a number of people in words: `0`, `1 user`, `12 users`.
pub fn people(users: u64) -> String {
    match users {
        0 => "0".to_owned(),
        1 => "1 user".to_owned(),
        users => format!("{users} users"),
    }
}

/// Returns a number of people, and of the test users beside them, in words: `24 users, plus 1000 test users`.
pub fn people_and_tests(users: u64, tests: u64) -> String {
    format!("{}{}", people(users), plus_tests(tests))
}

/// Returns the number of test users after that of other people: `, plus 1000 test users`; nothing if there are none.
pub fn plus_tests(tests: u64) -> String {
    match tests {
        0 => String::new(),
        1 => ", plus 1 test user".to_owned(),
        tests => format!(", plus {tests} test users"),
    }
}

/// Returns the unit of assignment in words.
pub fn unit_words(unit: &str, group: Option<&str>) -> String {
    match (unit, group) {
        ("individual", _) => "individual".to_owned(),
        ("group", Some(group)) => format!("by group ({group})"),
        ("group", None) => "by group".to_owned(),
        ("within-subjects", _) => "within subjects".to_owned(),
        (other, _) => other.to_owned(),
    }
}

/// Returns the post-experiment rule in words.
pub fn afterwards(rule: &str) -> String {
    match rule.split_once(' ') {
        None if rule == "continue" => "enrolled users keep their condition".to_owned(),
        Some(("assign", "default")) => "all users get the application's default".to_owned(),
        Some(("assign", condition)) => format!("enrolled users get {condition}"),
        _ => rule.to_owned(),
    }
}

/// Returns the filter mode in words.
pub fn filter_words(mode: &str) -> String {
    match mode {
        "includeAll" => "included".to_owned(),
        "excludeAll" => "excluded".to_owned(),
        other => other.to_owned(),
    }
}

pub(super) fn some_or_none(words: String) -> String {
    if words.is_empty() { "none".to_owned() } else { words }
}

/// Returns the words with a capital letter at the beginning.
pub(crate) fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::{super::tests::read, *};

    #[test]
    fn names_are_listed() {
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
        assert_snapshot!(read(&earlier_health_reply(&answer, "3 min ago")), @r"
        UpGrade isn't answering. It was running 3 min ago: A/B Testing Backend, version 6.5.0.
        Try again in a minute. If it keeps failing, contact your administrator.
        ");
        assert_snapshot!(read(&health_reply(&json!(null))), @r"
        UpGrade sent data that I can't read, so I can't answer this.
        Try again. If it keeps failing, tell the app's operator.
        ");
    }
}
