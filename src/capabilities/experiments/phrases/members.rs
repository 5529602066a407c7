//! Lists of people and groups in a request: `u1, u2`, `classId 5B and 6A`.

use countersign_understanding::{id_lists::ids, phrases::Phrases as _};
use serde_json::Value;

use super::{
    ExperimentPhrases,
    words::{Word, after, skip, text},
};

/// The words for users before their ids.
pub(super) const USERS: &str =
    "user ids|user id|student ids|student id|userids|userid|user|student|users|students|people|participants|ids|id";

/// Returns the items of an item that ends with a long list of ids, which is one word.
fn one_each(item: &[Word]) -> Vec<Vec<Word>> {
    let Some((last, before)) = item.split_last() else { return vec![Vec::new()] };
    let id = |id: &str| Word { text: id.to_owned(), lower: id.to_lowercase(), ..last.clone() };
    let mut all = ids(&last.text).map(id).map(|id| vec![id]);
    let first = all.next().unwrap_or_default();
    std::iter::once([before, first.as_slice()].concat()).chain(all).collect()
}

/// Returns the members in a list: `u1`, `class 5B`. In `classId 5B and 6A`, both are classes.
pub(super) fn who_of(items: &[Vec<Word>]) -> Value {
    let mut all: Vec<String> = Vec::new();
    let mut group: Option<(String, String, bool)> = None;
    for item in items.iter().flat_map(|item| one_each(item)) {
        let of_users = after(skip(&item, "the"), USERS).is_some();
        let item = skip(skip(skip(&item, "the|only"), USERS), "only");
        match item {
            [] => continue,
            [kind, id] if !of_users && ExperimentPhrases.vocabulary().groups.contains(&kind.lower.as_str()) => {
                let (one, is_plural) = singular(kind);
                group = Some((one.clone(), shape(&id.text), is_plural));
                all.push(format!("{one} {}", id.text));
            }
            [id] if !of_users && !id.text.contains(':') => match &group {
                Some((kind, like, is_plural)) if *is_plural || *like == shape(&id.text) => {
                    all.push(format!("{kind} {}", id.text));
                }
                _ => all.push(id.text.clone()),
            },
            item => {
                group = None;
                all.push(text(item));
            }
        }
    }
    all.into()
}

/// Returns the word for one group, and true if the word was in the plural: `classes`.
fn singular(kind: &Word) -> (String, bool) {
    match kind.lower.as_str() {
        "classes" => ("class".to_owned(), true),
        "schools" | "teachers" | "districts" => (kind.lower.trim_end_matches('s').to_owned(), true),
        _ => (kind.text.clone(), false),
    }
}

/// Returns the kinds of characters of an id: `5B` has a digit and a capital letter.
fn shape(id: &str) -> String {
    let mut kinds: Vec<char> = id
        .chars()
        .map(|c| match c {
            c if c.is_ascii_digit() => '0',
            c if c.is_uppercase() => 'A',
            c if c.is_alphabetic() => 'a',
            c => c,
        })
        .collect();
    kinds.dedup();
    kinds.into_iter().collect()
}
