//! Writes JSON Pointers (RFC 6901).

/// Appends a step to a pointer: the name of a member, or the position of an element.
pub(super) fn push(pointer: &mut String, step: &str) {
    pointer.push('/');
    match step.contains(['~', '/']) {
        true => pointer.push_str(&step.replace('~', "~0").replace('/', "~1")),
        false => pointer.push_str(step),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pointer_leads_to_the_value() {
        for name in ["plain", "", "a/b", "m~n", "~1", "/~", "ä"] {
            let value = json!({ "list": [{ name: 7 }] });
            let mut pointer = String::new();
            for step in ["list", "0", name] {
                push(&mut pointer, step);
            }
            assert_eq!(value.pointer(&pointer), Some(&json!(7)), "{pointer}");
        }
    }
}
