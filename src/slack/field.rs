//! Access to fields of Slack's JSON, without types for all of it.

use serde_json::Value;

use super::UnreadableDelivery;

/// Returns the value at `pointer`, such as `/user/id`, which is a path of plain names. [`Value::pointer`] makes a text of
/// each of them, to replace what is escaped, and every delivery is asked for dozens of fields.
fn at<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    pointer.split('/').skip(1).try_fold(value, |value, name| match value {
        Value::Object(members) => members.get(name),
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        _ => None,
    })
}

/// Returns the text at `pointer`, such as `/user/id`; `None` if it is missing, null, empty or not a string.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    at(value, pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Returns the text at `pointer`, which is required.
///
/// # Errors
///
/// [`UnreadableDelivery`] with the pointer, if there is no text.
pub(super) fn required<'a>(value: &'a Value, pointer: &'static str) -> Result<&'a str, UnreadableDelivery> {
    text(value, pointer).ok_or(UnreadableDelivery(pointer))
}

/// Returns the text at the first of these pointers where there is one.
pub(super) fn first<'a>(value: &'a Value, pointers: &[&str]) -> Option<&'a str> {
    pointers.iter().find_map(|pointer| text(value, pointer))
}

/// Returns true if there is a value other than null at `pointer`.
pub(super) fn present(value: &Value, pointer: &str) -> bool {
    at(value, pointer).is_some_and(|found| !found.is_null())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_is_found_by_its_path() {
        let value = json!({ "user": { "id": "U1", "": "x", "none": null }, "list": [{ "id": 1 }] });
        for pointer in
            ["", "/user", "/user/id", "/user/", "/user/none", "/list/0/id", "/list/1", "/user/id/x", "/nobody"]
        {
            assert_eq!(at(&value, pointer), value.pointer(pointer), "{pointer}");
        }
    }
}
