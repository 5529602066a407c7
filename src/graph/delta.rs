//! The difference between two checkpoints, as a JSON Patch (RFC 6902).
//!
//! Both checkpoints are JSON texts. Parts with the same text are the same, so only the parts around a difference are read
//! any further.
//!
//! A thread's memory consists mostly of lists that grow at one end and, once full, lose elements at
//! the other. Comparing such a list position by position would rewrite it each time. Lists are
//! therefore aligned first: common elements are kept, and only the others are written. As a result, a
//! step in an old thread costs no more than one in a new thread.

use std::{collections::BTreeMap, fmt::Write as _};

use super::{
    indexed::{self, Indexed, Kind},
    json::Json,
    pointer,
};

/// The maximum length of the differing parts of two lists that are aligned. Longer ones are
/// compared position by position.
const MAX_ALIGNED: usize = 128;

/// The maximum number of members among which one is found faster by looking at each than in a map.
const MAX_FEW: usize = 32;

/// Returns the patch that turns `before` into `after`.
pub(super) fn between(before: &Indexed, after: &Indexed) -> Json {
    let mut delta = Delta { path: Vec::new(), patch: "[".to_owned() };
    delta.values(before.whole(), after.whole());
    delta.patch.push(']');
    Json::written(delta.patch)
}

/// A value in one of the checkpoints.
type Value<'t> = indexed::Part<'t>;

struct Delta<'t> {
    /// The place of the values that are compared. Most places have no difference, so it is written only for an operation.
    path: Vec<Part<'t>>,
    /// The patch as far as it is written, without its end.
    patch: String,
}

/// A part of a path.
#[derive(Clone, Copy)]
enum Part<'t> {
    /// A member, by its name in quotes.
    Member(&'t str),
    Element(usize),
}

impl<'t> Delta<'t> {
    fn values(&mut self, before: Value<'t>, after: Value<'t>) {
        if before.text() == after.text() {
            return;
        }
        match (before.kind(), after.kind()) {
            (Kind::Object, Kind::Object) => self.objects(before, after),
            (Kind::List, Kind::List) => self.lists(before, after),
            _ => self.write("replace", Some(after)),
        }
    }

    fn objects(&mut self, before: Value<'t>, after: Value<'t>) {
        if before.parts().map(|(name, _)| name).eq(after.parts().map(|(name, _)| name)) {
            for ((name, old), (_, new)) in before.parts().zip(after.parts()) {
                self.at(Part::Member(name), |delta| delta.values(old, new));
            }
            return;
        }
        let (old, new): (Vec<_>, Vec<_>) = (before.parts().collect(), after.parts().collect());
        let (old, new) = (Members::of(&old), Members::of(&new));
        for (name, _) in before.parts().filter(|(name, _)| new.get(name).is_none()) {
            self.at(Part::Member(name), Self::remove);
        }
        for (name, value) in after.parts() {
            match old.get(name) {
                Some(old) => self.at(Part::Member(name), |delta| delta.values(old, value)),
                None => self.at(Part::Member(name), |delta| delta.add(value)),
            }
        }
    }

    /// Aligns two lists. The positions in operations refer to the list as left by the previous
    /// operations. The elements before `position` are final.
    fn lists(&mut self, before: Value<'t>, after: Value<'t>) {
        let elements = |list: Value<'t>| list.parts().map(|(_, element)| element).collect::<Vec<_>>();
        let (before, after) = (elements(before), elements(after));
        let same = |(old, new): &(&Value<'t>, &Value<'t>)| old.text() == new.text();
        let start = before.iter().zip(&after).take_while(same).count();
        let (before, after) = (&before[start..], &after[start..]);
        let end = before.iter().rev().zip(after.iter().rev()).take_while(same).count();
        let (before, after) = (&before[..before.len() - end], &after[..after.len() - end]);

        let (mut position, mut old, mut new) = (start, 0, 0);
        for (kept_old, kept_new) in common(before, after).into_iter().chain([(before.len(), after.len())]) {
            position = self.gap(position, &before[old..kept_old], &after[new..kept_new]) + 1;
            (old, new) = (kept_old + 1, kept_new + 1);
        }
    }

    /// Patches the elements between two kept ones: paired elements are changed, and the others are
    /// added or removed. Returns the position after them.
    fn gap(&mut self, position: usize, before: &[Value<'t>], after: &[Value<'t>]) -> usize {
        let pairs = before.len().min(after.len());
        // Removed elements are usually the oldest, so the last ones are paired.
        let (removed, changed) = before.split_at(before.len() - pairs);
        for _ in removed {
            self.at(Part::Element(position), Self::remove);
        }
        for (offset, (old, new)) in changed.iter().zip(after).enumerate() {
            self.at(Part::Element(position + offset), |delta| delta.values(*old, *new));
        }
        for (offset, new) in after.iter().enumerate().skip(pairs) {
            self.at(Part::Element(position + offset), |delta| delta.add(*new));
        }
        position + after.len()
    }

    fn at(&mut self, part: Part<'t>, compare: impl FnOnce(&mut Self)) {
        self.path.push(part);
        compare(self);
        self.path.pop();
    }

    fn add(&mut self, value: Value<'t>) {
        self.write("add", Some(value));
    }

    fn remove(&mut self) {
        self.write("remove", None);
    }

    /// Writes an operation at the current place. Names and values are parts of JSON texts, so they are written as they are.
    fn write(&mut self, op: &str, value: Option<Value<'t>>) {
        let Self { path, patch } = self;
        if patch.len() > 1 {
            patch.push(',');
        }
        patch.extend([r#"{"op":""#, op, r#"","path":""#]);
        for part in path {
            match part {
                Part::Member(name) => pointer::push(patch, &name[1..name.len() - 1]),
                Part::Element(position) => write!(patch, "/{position}").expect("a string takes everything"),
            }
        }
        patch.push('"');
        if let Some(value) = value {
            patch.extend([r#","value":"#, value.text()]);
        }
        patch.push('}');
    }
}

/// The members of an object, to be found by name.
enum Members<'m, 't> {
    Few(&'m [(&'t str, Value<'t>)]),
    Many(BTreeMap<&'t str, Value<'t>>),
}

impl<'m, 't> Members<'m, 't> {
    fn of(members: &'m [(&'t str, Value<'t>)]) -> Self {
        match members.len() {
            0..=MAX_FEW => Self::Few(members),
            _ => Self::Many(members.iter().copied().collect()),
        }
    }

    fn get(&self, name: &str) -> Option<Value<'t>> {
        match self {
            Self::Few(members) => members.iter().find(|(other, _)| *other == name).map(|(_, value)| *value),
            Self::Many(members) => members.get(name).copied(),
        }
    }
}

/// Returns the positions of a longest common subsequence, in order.
fn common(before: &[Value<'_>], after: &[Value<'_>]) -> Vec<(usize, usize)> {
    let (rows, columns) = (before.len(), after.len());
    if rows == 0 || columns == 0 || rows.max(columns) > MAX_ALIGNED {
        return Vec::new();
    }
    let same: Vec<bool> = before.iter().flat_map(|old| after.iter().map(move |new| old.text() == new.text())).collect();
    // `longest[row][column]` is the length of a longest common subsequence of `before[row..]` and `after[column..]`.
    let width = columns + 1;
    let mut longest = vec![0u8; (rows + 1) * width];
    for row in (0..rows).rev() {
        for column in (0..columns).rev() {
            longest[row * width + column] = if same[row * columns + column] {
                longest[(row + 1) * width + column + 1] + 1
            } else {
                longest[(row + 1) * width + column].max(longest[row * width + column + 1])
            };
        }
    }
    let (mut row, mut column, mut pairs) = (0, 0, Vec::new());
    while row < rows && column < columns {
        if same[row * columns + column] {
            pairs.push((row, column));
            (row, column) = (row + 1, column + 1);
        } else if longest[(row + 1) * width + column] >= longest[row * width + column + 1] {
            row += 1;
        } else {
            column += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{between as between_texts, *};

    fn between(before: &Value, after: &Value) -> Value {
        between_texts(&Indexed::of(before), &Indexed::of(after)).value()
    }

    /// Generates any value that a checkpoint may hold, with keys that need escaping in a path.
    fn anything() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), (0..4i64).prop_map(Value::from)];
        leaf.prop_recursive(4, 48, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map("[a/~0\"\\\\\u{1}ä-]{0,2}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_patch_turns_one_value_into_the_other(before in anything(), after in anything()) {
            let mut value = before.clone();
            let patch: json_patch::Patch = serde_json::from_value(between(&before, &after)).unwrap();
            json_patch::patch(&mut value, &patch).unwrap();
            prop_assert_eq!(value, after);
        }

        #[test]
        fn equal_values_have_an_empty_patch(value in anything()) {
            prop_assert_eq!(between(&value, &value), json!([]));
        }
    }

    #[test]
    fn members_of_large_objects_are_found_as_well() {
        let object = |names: std::ops::Range<usize>| -> Value {
            names.map(|n| (format!("member {n}"), json!({ "n": n.min(50) }))).collect()
        };
        for (before, after) in [(0..60, 3..62), (0..MAX_FEW, 1..MAX_FEW + 1), (0..2, 1..90)] {
            let (before, after) = (object(before), object(after));
            let mut value = before.clone();
            let patch: json_patch::Patch = serde_json::from_value(between(&before, &after)).unwrap();
            json_patch::patch(&mut value, &patch).unwrap();
            assert_eq!(value, after);
        }
    }

    #[test]
    fn a_full_list_that_drops_its_oldest_element_is_not_rewritten() {
        let list: Vec<Value> = (0..40).map(|n| json!({ "n": n, "undo": n >= 35 })).collect();
        let mut after = list[1..].to_vec();
        after[34]["undo"] = json!(false); // it is no longer among the newest
        after.push(json!({ "n": 40, "undo": true }));
        let delta = between_texts(&Indexed::of(&json!({ "log": list })), &Indexed::of(&json!({ "log": after })));
        insta::assert_snapshot!(delta.text(), @r#"[{"op":"remove","path":"/log/0"},{"op":"replace","path":"/log/34/undo","value":false},{"op":"add","path":"/log/39","value":{"n":40,"undo":true}}]"#);
    }
}
