//! Checks of modals and Home tabs.

use serde_json::Value;

use super::{
    Checked, Problem,
    blocks::{Surface, all, nested},
    problem,
    text::{list, optional_plain_text, plain_text, string},
};

const MAX_VIEW_BYTES: usize = 250_000;

/// Checks a view of this kind, `modal` or `home`.
///
/// # Errors
///
/// The first problem, with Slack's name for it.
pub fn view(view: &Value, kind: &str) -> Checked {
    if view.to_string().len() > MAX_VIEW_BYTES {
        return Err(Problem { error: "view_too_large", reason: "no more than 250 kB are allowed".to_owned() });
    }
    // In views, Slack has the same name for every mistake.
    content(view, kind).map_err(|problem| Problem { error: "invalid_arguments", ..problem })
}

fn content(view: &Value, kind: &str) -> Checked {
    if view["type"] != kind {
        return Err(problem("/view/type", format_args!("must be {kind}")));
    }
    let blocks = list("/view/blocks", &view["blocks"], 0, 100)?;
    string("/view/private_metadata", &view["private_metadata"], 3_000)?;
    string("/view/callback_id", &view["callback_id"], 255)?;
    string("/view/external_id", &view["external_id"], 255)?;
    if kind == "home" {
        return all(blocks, Surface::Home);
    }
    plain_text("/view/title", &view["title"], 24)?;
    optional_plain_text("/view/submit", &view["submit"], 24)?;
    optional_plain_text("/view/close", &view["close"], 24)?;
    if view["submit"].is_null() && nested(blocks).iter().any(|block| block["type"] == "input") {
        return Err(problem("/view/submit", "an input block needs submit"));
    }
    all(blocks, Surface::Modal)
}

/// Checks the `errors` in the acknowledgement of a submission: each key must be an input block of
/// the view, and each value a text.
pub(in crate::slack) fn errors(errors: &Value, blocks: &[Value]) -> Checked {
    let invalid = |reason: String| Problem { error: "invalid_arguments", reason };
    let Some(errors) = errors.as_object().filter(|errors| !errors.is_empty()) else {
        return Err(invalid("`errors` names no field [json-pointer:/errors]".to_owned()));
    };
    for (field, words) in errors {
        let is_field = blocks.iter().any(|block| block["type"] == "input" && block["block_id"] == field.as_str());
        if !is_field {
            return Err(invalid(format!("no input block is called \"{field}\" [json-pointer:/errors/{field}]")));
        }
        super::text::required_string(&format!("/errors/{field}"), words, 2_000)?;
    }
    Ok(())
}
