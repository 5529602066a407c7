//! The data that capabilities have read, kept from turn to turn: type → key → entry.
//!
//! Merging is specified by `tests/fixtures/agent-state/merge-vectors.json`: an entry is replaced as a whole, and types
//! and keys that are not in the update stay. It is associative, the later write wins, and merging a value with itself
//! gives that value. To bound the size of a thread, [`ContextData::learn`] forgets the entries that were written
//! longest ago; nothing else is deleted.

use std::{collections::BTreeMap, time::Duration};

use countersign_core::clock::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The maximum number of entries kept.
pub const MAX_ENTRIES: usize = 8;
/// The maximum size of an entry, in bytes of JSON; see [`shortened`].
pub const MAX_ENTRY_BYTES: usize = 2_000;

/// The maximum age of an entry that is used instead of reading again.
pub const MAX_AGE: Duration = Duration::from_secs(120);

/// Entries by type and key.
pub type Entries = BTreeMap<String, BTreeMap<String, Value>>;

/// Entries, and the order in which they were written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextData {
    /// The entries.
    pub entries: Entries,
    /// The type and key of each entry, in the order of writing.
    order: Vec<(String, String)>,
    /// The time at which each entry was read, by key, if it is complete and not outdated.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    read_at: BTreeMap<String, Timestamp>,
    /// The names in the [`super::blob_cache`] of the complete entries that are too large to be kept here, by key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    cached: BTreeMap<String, String>,
}

/// An entry that can be used again.
#[derive(Clone, Debug, PartialEq)]
pub enum Fresh {
    /// The entry.
    Here(Value),
    /// Its name in the [`super::blob_cache`].
    Cached(String),
}

impl ContextData {
    /// Merges one entry and forgets the oldest beyond [`MAX_ENTRIES`].
    pub fn learn(&mut self, kind: &str, key: &str, value: &Value, now: Timestamp) {
        let kept = shortened(value);
        self.cached.remove(key);
        match kept == *value {
            true => self.read_at.insert(key.to_owned(), now),
            false => self.read_at.remove(key),
        };
        let update = Entries::from([(kind.to_owned(), BTreeMap::from([(key.to_owned(), kept)]))]);
        merge(&mut self.entries, update);
        let place = (kind.to_owned(), key.to_owned());
        self.order.retain(|known| *known != place);
        self.order.push(place);
        while self.order.len() > MAX_ENTRIES {
            let (kind, key) = self.order.remove(0);
            self.read_at.remove(&key);
            self.cached.remove(&key);
            if let Some(keys) = self.entries.get_mut(&kind) {
                keys.remove(&key);
                if keys.is_empty() {
                    self.entries.remove(&kind);
                }
            }
        }
    }

    /// Notes that the newest entry with this key is cached in full under `name`.
    pub fn move_to_cache(&mut self, key: &str, name: &str, now: Timestamp) {
        if self.order.iter().any(|(_, known)| known == key) {
            self.cached.insert(key.to_owned(), name.to_owned());
            self.read_at.insert(key.to_owned(), now);
        }
    }

    /// Returns an entry that was read at most [`MAX_AGE`] ago and is not outdated, with the time at which it was read.
    pub fn fresh(&self, kind: &str, key: &str, now: Timestamp) -> Option<(Fresh, Timestamp)> {
        let read_at = *self.read_at.get(key)?;
        let entry = self.of(kind)?.get(key)?;
        let entry = match self.cached.get(key) {
            Some(name) => Fresh::Cached(name.clone()),
            None => Fresh::Here(entry.clone()),
        };
        (now.since(read_at) <= MAX_AGE).then_some((entry, read_at))
    }

    /// Marks all entries as outdated, since something was changed.
    pub fn mark_outdated(&mut self) {
        self.read_at.clear();
    }

    /// Returns all entries of one type.
    pub fn of(&self, kind: &str) -> Option<&BTreeMap<String, Value>> {
        self.entries.get(kind)
    }
}

/// Merges an update into the stored entries.
pub fn merge(stored: &mut Entries, update: Entries) {
    for (kind, keys) in update {
        stored.entry(kind).or_default().extend(keys);
    }
}

/// Shortens a value to [`MAX_ENTRY_BYTES`], with a note of how much was left out.
pub fn shortened(value: &Value) -> Value {
    shortened_to(value, MAX_ENTRY_BYTES)
}

/// Shortens a value to at most `longest` bytes of JSON. A list keeps its first items; an object keeps its members, of
/// which the longest is shortened. The number of omitted parts is added.
pub fn shortened_to(value: &Value, longest: usize) -> Value {
    let size = value.to_string().len();
    if size <= longest {
        return value.clone();
    }
    match value {
        Value::Array(items) => {
            let kept = first_items(items, longest.saturating_sub(48));
            json!({ "left_out": items.len() - kept.len(), "first": kept })
        }
        Value::Object(members) => shortened_object(members, size, longest),
        other => {
            let text = other.as_str().map_or_else(|| other.to_string(), str::to_owned);
            let mut end = text.len().min(longest / 8); // escaping can make six bytes of one
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            Value::String(format!("{}…", &text[..end]))
        }
    }
}

fn first_items(items: &[Value], longest: usize) -> Vec<Value> {
    let mut size = 2;
    let fits = items.iter().take_while(|item| {
        size += item.to_string().len() + 1;
        size <= longest
    });
    fits.cloned().collect()
}

fn shortened_object(members: &Map<String, Value>, size: usize, longest: usize) -> Value {
    let mut kept = members.clone();
    let longest_member = members.iter().max_by_key(|(_, member)| member.to_string().len());
    if let Some((key, member)) = longest_member {
        let rest = size - member.to_string().len();
        if rest + 96 + key.len() < longest {
            let room = longest - rest - 48 - key.len();
            if let Value::Array(items) = member {
                let first = first_items(items, room);
                kept.insert(format!("{key}_left_out"), json!(items.len() - first.len()));
                kept.insert(key.clone(), Value::Array(first));
            } else {
                kept.insert(key.clone(), shortened_to(member, room));
            }
            return Value::Object(kept);
        }
    }
    let keys: Vec<Value> = members.keys().map(|key| json!(key)).collect();
    json!({ "left_out": members.len(), "members": first_items(&keys, longest.saturating_sub(48)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Deserialize)]
    struct Vector {
        case: String,
        existing: Option<Entries>,
        new: Entries,
        result: Entries,
    }

    #[test]
    fn merges_like_the_vectors() {
        let vectors: Vec<Vector> =
            serde_json::from_str(include_str!("../../tests/fixtures/agent-state/merge-vectors.json")).unwrap();
        assert!(vectors.len() >= 16);
        for Vector { case, existing, new, result } in vectors {
            let mut stored = existing.unwrap_or_default();
            merge(&mut stored, new.clone());
            assert_eq!(stored, result, "{case}");
            merge(&mut stored, new);
            assert_eq!(stored, result, "{case}, again");
        }
    }

    fn entries() -> impl Strategy<Value = Entries> {
        let keys = prop::collection::btree_map("[a-c]", (0..9).prop_map(|v| json!({ "v": v })), 0..3);
        prop::collection::btree_map("[A-C]", keys, 0..3)
    }

    proptest! {
        #[test]
        fn merging_is_associative(a in entries(), b in entries(), c in entries()) {
            let mut left = a.clone();
            merge(&mut left, b.clone());
            merge(&mut left, c.clone());
            let mut bc = b;
            merge(&mut bc, c);
            let mut right = a;
            merge(&mut right, bc);
            prop_assert_eq!(left, right);
        }

        #[test]
        fn merging_with_itself_changes_nothing(a in entries()) {
            let mut merged = a.clone();
            merge(&mut merged, a.clone());
            prop_assert_eq!(merged, a);
        }

        #[test]
        fn an_entry_is_never_longer_than_allowed(text in ".{0,1500}", items in prop::collection::vec(".{0,40}", 0..60)) {
            for value in [json!(text), json!({ "a": text, "b": items }), json!(items)] {
                prop_assert!(shortened(&value).to_string().len() <= MAX_ENTRY_BYTES);
            }
        }
    }

    #[test]
    fn only_a_whole_and_recent_entry_is_fresh() {
        let mut context = ContextData::default();
        context.learn("DETAILS", "short", &json!(1), Timestamp(0));
        context.learn("DETAILS", "long", &json!("x".repeat(MAX_ENTRY_BYTES)), Timestamp(0));
        let fresh = |context: &ContextData, key, at| context.fresh("DETAILS", key, Timestamp(at)).is_some();
        assert!(fresh(&context, "short", 120_000));
        assert!(!fresh(&context, "short", 120_001));
        assert!(!fresh(&context, "long", 0), "it was shortened");
        context.move_to_cache("long", "a name", Timestamp(0));
        let long = context.fresh("DETAILS", "long", Timestamp(0));
        assert_eq!(long, Some((Fresh::Cached("a name".into()), Timestamp(0))));
        context.mark_outdated();
        assert!(!fresh(&context, "short", 0));
    }

    #[test]
    fn the_oldest_entry_is_forgotten_first() {
        let mut context = ContextData::default();
        for key in 0..MAX_ENTRIES {
            context.learn("DETAILS", &key.to_string(), &json!(key), Timestamp(0));
        }
        context.learn("DETAILS", "0", &json!("again"), Timestamp(0));
        context.learn("NAMES", "all", &json!([]), Timestamp(0));
        let details = context.of("DETAILS").unwrap();
        assert!(!details.contains_key("1"), "written longest ago");
        assert_eq!(details["0"], json!("again"));
        assert!(context.of("NAMES").is_some());
    }
}
