//! The names of the people in a thread.

use std::collections::BTreeMap;

use countersign_core::{ids::UserId, reply::Text};
use countersign_graph::{
    seal::{self, Leaf},
    store::AuditEntry,
};
use countersign_slack::client::SlackClient;
use serde_json::Value;

/// The maximum number of people whose names are looked up, since each lookup is a call to Slack.
const MAX_LOOKUPS: usize = 50;

/// The fields of an entry's details that contain a person's id.
const PERSON_FIELDS: [&str; 3] = ["user", "by", "requested_by"];

/// The people in a record.
#[derive(Clone, Debug, Default)]
pub(super) struct People {
    names: BTreeMap<String, String>,
}

impl People {
    /// Finds the people in a record, with their names. If a name is not known, it is `@` and the
    /// id. If people are hidden, it is a number.
    pub(super) async fn of(record: &[AuditEntry], hides_people: bool, slack: Option<&SlackClient>) -> Self {
        let mut names = BTreeMap::new();
        for id in ids(record) {
            let name = match (hides_people, slack) {
                _ if UserId::new(&*id).key().is_some() => Text::new().name(UserId::new(&*id)).words(),
                (true, _) => format!("Person {}", names.len() + 1),
                (false, Some(slack)) if names.len() < MAX_LOOKUPS => match slack.user_info(&UserId::new(&*id)).await {
                    Ok(person) => person.name,
                    Err(_) => format!("@{id}"),
                },
                (false, _) => format!("@{id}"),
            };
            names.insert(id, name);
        }
        Self { names }
    }

    /// Returns the name of a person.
    pub(super) fn name(&self, id: &str) -> String {
        // If people are hidden, the entry contains the name instead of the id.
        self.names.get(id).cloned().unwrap_or_else(|| match id.starts_with("Person ") || id.starts_with('[') {
            true => id.to_owned(),
            false => format!("@{id}"),
        })
    }

    /// Returns the text with mentioned ids replaced by names: `@U1` becomes `@Ann`.
    pub(super) fn named(&self, text: &str) -> String {
        self.replaced(text, |id, name| (format!("@{id}"), format!("@{}", name.trim_start_matches('@'))))
    }

    /// Returns the text with all ids replaced by names, mentioned or not.
    pub(super) fn pseudonymized(&self, text: &str) -> String {
        self.replaced(text, |id, name| (id.to_owned(), name.to_owned()))
    }

    /// Returns all people, with id and name.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.names.iter().map(|(id, name)| (id.as_str(), name.as_str()))
    }

    fn replaced(&self, text: &str, what: impl Fn(&str, &str) -> (String, String)) -> String {
        let mut out = text.to_owned();
        for (id, name) in &self.names {
            let (from, to) = what(id, name);
            out = replace_word(&out, &from, &to);
        }
        out
    }
}

/// Replaces `from` if it is not followed by a letter, digit or underscore and, unless it begins
/// with `@`, not preceded by one.
fn replace_word(text: &str, from: &str, to: &str) -> String {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(from) {
        let (before, after) = (&rest[..at], &rest[at + from.len()..]);
        let is_whole_word = !after.starts_with(part) && (from.starts_with('@') || !before.ends_with(part));
        out.push_str(before);
        out.push_str(if is_whole_word { to } else { from });
        rest = after;
    }
    out + rest
}

/// Returns the ids of the people in a record, each once.
fn ids(record: &[AuditEntry]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut add = |id: &str| {
        if !id.is_empty() && !found.iter().any(|known| known == id) && !id.starts_with('[') {
            found.push(id.to_owned());
        }
    };
    for entry in record {
        entry.event.by.iter().for_each(|by| add(by.as_str()));
        for Leaf { place, value, .. } in seal::leaves(&entry.event.detail) {
            let field = place.rsplit('/').next().unwrap_or_default();
            let Value::String(text) = value else { continue };
            if PERSON_FIELDS.contains(&field) && !text.contains(char::is_whitespace) {
                add(text);
            }
            mentions(text).for_each(&mut add);
        }
    }
    found
}

/// Returns everything that looks like a mention of a person: `@U…` or `@W…`, with capital letters
/// and digits.
fn mentions(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('@').filter_map(|(at, _)| {
        let rest = &text[at + 1..];
        let end =
            rest.find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')).unwrap_or(rest.len());
        let followed = rest[end..].starts_with(|c: char| c.is_alphanumeric());
        (end > 1 && rest.starts_with(['U', 'W']) && !followed).then(|| &rest[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_ids_are_replaced_by_names() {
        let names = BTreeMap::from([("U1".to_owned(), "Ann".to_owned())]);
        let people = People { names };
        assert_eq!(people.named("@U1, not @U12 and not U1"), "@Ann, not @U12 and not U1");
        assert_eq!(people.pseudonymized("<@U1> and U1x"), "<@Ann> and U1x");
        assert_eq!(people.name("U2"), "@U2");
    }

    #[test]
    fn mentions_are_found() {
        assert_eq!(mentions("ask @U1, @W2_B; not @ana, @Uwe, a@b").collect::<Vec<_>>(), ["U1", "W2_B"]);
    }
}
