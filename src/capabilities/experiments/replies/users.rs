//! The replies with generated names of simulated participants.

use countersign_core::reply::{Attachment, Part, Reply, Text};
use serde::Deserialize as _;
use serde_json::Value;

use super::answers::unreadable;
use crate::testing::users::{MAX_USERS, User, Users};

/// The maximum number of names in a list.
const MAX_LISTED: usize = 10;
/// The maximum number of names in a table. If there are more, all of them are in a file.
const MAX_ROWS: usize = 50;

/// Returns the names: the answer of `generate_test_users`.
pub fn reply(answer: &Value) -> Reply {
    let Ok(all) = Users::deserialize(answer) else { return unreadable() };
    let Users { run: _, experiment, group_type, users } = &all;
    let how_many = if users.len() == 1 {
        "Here is 1 test user".to_owned()
    } else {
        format!("Here are {} test users", users.len())
    };
    let mut text = Text::from(how_many);
    if let Some(name) = experiment {
        text = text.plain(" for “").bold(name).plain("”");
    }
    if let Some(kind) = group_type {
        let groups = groups(users);
        let word = if groups == 1 { "group" } else { "groups" };
        text = text.plain(format!(", in {groups} {word} of ")).code(kind);
    }
    let rest = users.len().saturating_sub(MAX_ROWS);
    let mut reply = Reply::text(text.plain(if rest > 0 { format!("; the first {MAX_ROWS}:") } else { ":".to_owned() }));
    reply = match (group_type, users.len()) {
        (None, ..=MAX_LISTED) => reply.and(Part::List(users.iter().map(|user| Text::new().code(&user.user)).collect())),
        _ => {
            let group = |user: &User| user.group.iter().map(|group| Text::new().code(group)).collect::<Vec<_>>();
            let row = |user: &User| std::iter::once(Text::new().code(&user.user)).chain(group(user)).collect();
            let columns = std::iter::once("User".to_owned()).chain(group_type.clone()).collect();
            reply.and(Part::Table { columns, rows: users.iter().take(MAX_ROWS).map(row).collect() })
        }
    };
    reply = reply.hint("These are only IDs. Nobody is enrolled until a visit is approved.");
    if rest > 0 {
        reply = reply.file(csv(&all));
    }
    match (experiment, group_type, users.first()) {
        (Some(name), None, Some(first)) => {
            reply.choice("Simulate the first", format!("simulate user {} in “{name}”", first.user))
        }
        _ => reply,
    }
}

fn groups(users: &[User]) -> usize {
    users.iter().filter_map(|user| user.group.as_deref()).collect::<std::collections::HashSet<_>>().len()
}

fn csv(all: &Users) -> Attachment {
    let mut text = match &all.group_type {
        Some(kind) => format!("user,{kind}\n"),
        None => "user\n".to_owned(),
    };
    for User { user, group } in &all.users {
        let cells: Vec<_> = std::iter::once(user).chain(group).map(String::as_str).collect();
        text.push_str(&cells.join(","));
        text.push('\n');
    }
    Attachment {
        name: format!("{}.csv", all.run),
        title: format!("{} test users", all.users.len()),
        alt: String::new(),
        bytes: text.into_bytes(),
    }
}

/// Refuses too large a number of names, or zero.
pub fn not_so_many() -> Reply {
    Reply::text(format!("I can make up 1 to {MAX_USERS} test users. How many do you need?"))
}

/// Says that the common prefix of the names is too long.
pub fn long_run(most: usize) -> Reply {
    Reply::text(format!("The name prefix can have at most {most} characters."))
}

/// Says that groups are requested, but that their type is unclear.
pub fn which_groups(users: u32, experiment: Option<&str>, known: &[String]) -> Reply {
    if known.is_empty() {
        return Reply::text("This context has no group types, so test users can't have groups.");
    }
    let reply = Reply::text(format!("Which group type should they have: {}?", known.join(", ")));
    let whose = experiment.map(|name| format!(" for “{name}”")).unwrap_or_default();
    known
        .iter()
        .take(5)
        .fold(reply, |reply, kind| reply.choice(kind, format!("generate {users} test users with {kind} groups{whose}")))
}
