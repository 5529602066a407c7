//! Checks of interactive elements: buttons, menus, inputs, confirmations.

use serde_json::Value;

use super::{
    Checked, problem,
    text::{list, optional_plain_text, plain_text, required_string, string, text, unique},
};

const NAME: usize = 255;
const OPTIONS: usize = 100;

/// The place of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In an actions block.
    Actions,
    /// Next to the text of a section.
    Accessory,
    /// In an input block.
    Input,
    /// In a context_actions block.
    ContextActions,
}

/// Checks an element.
pub(super) fn element(at: &str, element: &Value, place: Place) -> Checked {
    let kind = element["type"].as_str().ok_or_else(|| problem(&format!("{at}/type"), "missing required field"))?;
    if !fits(kind, place) {
        return Err(problem(&format!("{at}/type"), format_args!("unsupported type: {kind}")));
    }
    if kind == "image" {
        return image(at, element);
    }
    string(&format!("{at}/action_id"), &element["action_id"], NAME)?;
    confirm(&format!("{at}/confirm"), &element["confirm"])?;
    optional_plain_text(&format!("{at}/placeholder"), &element["placeholder"], 150)?;
    match kind {
        "button" | "workflow_button" => button(at, element),
        "overflow" => options(at, element, 1, 5),
        "radio_buttons" | "checkboxes" => options(at, element, 1, 10),
        "static_select" | "multi_static_select" => {
            select(at, element)?;
            initial(at, element)
        }
        "icon_button" => {
            required_string(&format!("{at}/icon"), &element["icon"], NAME)?;
            button(at, element)
        }
        "plain_text_input" => input(at, element),
        "number_input" if !element["is_decimal_allowed"].is_boolean() => {
            Err(problem(&format!("{at}/is_decimal_allowed"), "missing required field"))
        }
        "feedback_buttons" => {
            button(&format!("{at}/positive_button"), &element["positive_button"])?;
            button(&format!("{at}/negative_button"), &element["negative_button"])
        }
        _ => Ok(()),
    }
}

/// Checks the address and the alternative text of an image.
pub(super) fn image(at: &str, image: &Value) -> Checked {
    if image["slack_file"].is_object() {
        string(&format!("{at}/image_url"), &image["image_url"], 3_000)?;
    } else {
        required_string(&format!("{at}/image_url"), &image["image_url"], 3_000)?;
    }
    required_string(&format!("{at}/alt_text"), &image["alt_text"], 2_000)
}

/// Checks that each `action_id` is unique in a block.
pub(super) fn unique_actions(at: &str, elements: &[Value]) -> Checked {
    unique(at, elements, "action_id")
}

fn fits(kind: &str, place: Place) -> bool {
    match kind {
        "button" | "workflow_button" | "overflow" => matches!(place, Place::Actions | Place::Accessory),
        "image" => place == Place::Accessory,
        "plain_text_input" | "email_text_input" | "url_text_input" | "number_input" | "file_input" => {
            place == Place::Input
        }
        "rich_text_input" => matches!(place, Place::Input | Place::Actions),
        "datetimepicker" => matches!(place, Place::Input | Place::Actions),
        "feedback_buttons" | "icon_button" => place == Place::ContextActions,
        "multi_static_select"
        | "multi_users_select"
        | "multi_channels_select"
        | "multi_conversations_select"
        | "multi_external_select" => matches!(place, Place::Input | Place::Accessory),
        "static_select"
        | "external_select"
        | "users_select"
        | "channels_select"
        | "conversations_select"
        | "radio_buttons"
        | "checkboxes"
        | "datepicker"
        | "timepicker" => place != Place::ContextActions,
        _ => false,
    }
}

fn button(at: &str, button: &Value) -> Checked {
    plain_text(&format!("{at}/text"), &button["text"], 75)?;
    string(&format!("{at}/value"), &button["value"], 2_000)?;
    string(&format!("{at}/url"), &button["url"], 3_000)?;
    string(&format!("{at}/accessibility_label"), &button["accessibility_label"], 75)?;
    style(at, button)
}

fn confirm(at: &str, confirm: &Value) -> Checked {
    if confirm.is_null() {
        return Ok(());
    }
    plain_text(&format!("{at}/title"), &confirm["title"], 100)?;
    text(&format!("{at}/text"), &confirm["text"], 300)?;
    plain_text(&format!("{at}/confirm"), &confirm["confirm"], 30)?;
    plain_text(&format!("{at}/deny"), &confirm["deny"], 30)?;
    style(at, confirm)
}

/// Checks the optional colour of a button.
fn style(at: &str, styled: &Value) -> Checked {
    match styled["style"].as_str() {
        None | Some("primary" | "danger") => Ok(()),
        Some(style) => Err(problem(&format!("{at}/style"), format_args!("unsupported style: {style}"))),
    }
}

/// Checks the options that the app suggests while a person types into a menu: the answer to `block_suggestion`.
///
/// # Errors
///
/// The first problem, with Slack's name for it.
pub(in crate::slack) fn suggestions(answer: &Value) -> Checked {
    let checked =
        if answer["option_groups"].is_null() { options("", answer, 0, OPTIONS) } else { groups("", answer, 0) };
    checked.map_err(|problem| super::Problem { error: "invalid_arguments", ..problem })
}

fn select(at: &str, element: &Value) -> Checked {
    if element["option_groups"].is_null() {
        return options(at, element, 1, OPTIONS);
    }
    groups(at, element, 1)
}

fn groups(at: &str, element: &Value, least: usize) -> Checked {
    let groups = list(&format!("{at}/option_groups"), &element["option_groups"], least, OPTIONS)?;
    for (index, group) in groups.iter().enumerate() {
        let at = format!("{at}/option_groups/{index}");
        plain_text(&format!("{at}/label"), &group["label"], 75)?;
        options(&at, group, least, OPTIONS)?;
    }
    Ok(())
}

/// Checks that the initial option is one of the options.
fn initial(at: &str, element: &Value) -> Checked {
    let grouped = element["option_groups"].as_array().into_iter().flatten();
    let grouped = grouped.flat_map(|group| group["options"].as_array().into_iter().flatten());
    let offered: Vec<&Value> = element["options"].as_array().into_iter().flatten().chain(grouped).collect();
    let chosen = &element["initial_option"];
    if chosen.is_null() || offered.iter().any(|option| option["value"] == chosen["value"]) {
        return Ok(());
    }
    Err(problem(&format!("{at}/initial_option"), "is none of the options"))
}

fn options(at: &str, element: &Value, least: usize, most: usize) -> Checked {
    let options = list(&format!("{at}/options"), &element["options"], least, most)?;
    for (index, option) in options.iter().enumerate() {
        let at = format!("{at}/options/{index}");
        text(&format!("{at}/text"), &option["text"], 75)?;
        required_string(&format!("{at}/value"), &option["value"], 150)?;
        string(&format!("{at}/url"), &option["url"], 3_000)?;
        optional_plain_text(&format!("{at}/description"), &option["description"], 75)?;
    }
    Ok(())
}

fn input(at: &str, element: &Value) -> Checked {
    string(&format!("{at}/initial_value"), &element["initial_value"], 3_000)?;
    for (name, least) in [("min_length", 0), ("max_length", 1)] {
        let length = &element[name];
        if !length.is_null() && !length.as_u64().is_some_and(|length| (least..=3_000).contains(&length)) {
            return Err(problem(&format!("{at}/{name}"), format_args!("must be between {least} and 3000")));
        }
    }
    Ok(())
}
