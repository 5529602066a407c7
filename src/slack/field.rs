//! Access to fields of Slack's JSON, without types for all of it.

use serde_json::Value;

use super::UnreadableDelivery;

/// Returns the text at `pointer`, such as `/user/id`; `None` if it is missing, null, empty or not a string.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
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
    value.pointer(pointer).is_some_and(|found| !found.is_null())
}
