//! Draws forms and reads their input.

use std::collections::BTreeMap;

use countersign_graph::action::{Entered, Field, Form, Input, Pick};
use countersign_slack::{blocks, interaction::View};
use serde_json::{Value, json};

use super::{MAX_BLOCKS, MAX_TITLE_CHARS, window};

/// The maximum length of a label or a hint, in characters.
const MAX_LABEL_CHARS: usize = 2000;

/// The maximum length of an entry, in characters.
const MAX_ENTRY_CHARS: usize = 3000;

/// The maximum number of options in a menu.
const MAX_OPTIONS: usize = 100;

/// The maximum length of an option's label and of its value, in characters.
const MAX_OPTION_CHARS: (usize, usize) = (75, 150);

/// The parts of a window around the fields of its form.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The window's title.
    pub title: &'a str,
    /// The label of the submit button.
    pub submit: &'a str,
    /// The `callback_id`: one of the constants of [`super`], by which the form's purpose is
    /// recognised.
    pub callback: &'a str,
    /// The data that Slack returns with the submission.
    pub metadata: &'a str,
    /// The text above the fields, in mrkdwn.
    pub intro: Option<&'a str>,
}

/// Draws the window. A field that cannot be shown, since its text is too long or there are too many
/// fields, is left out and keeps its value. In place of one that is too long, a line says so.
pub fn draw(form: &Form, frame: &Frame<'_>) -> Value {
    let intro = frame.intro.map(blocks::section);
    let room = MAX_BLOCKS - usize::from(intro.is_some());
    let block = |field: &Field| input_block(field).unwrap_or_else(|| too_long(field));
    let fields = form.fields.iter().map(block).take(room);
    let mut view = window(frame.title, &intro.into_iter().chain(fields).collect::<Vec<_>>());
    view["callback_id"] = json!(frame.callback);
    view["private_metadata"] = json!(frame.metadata);
    view["submit"] = blocks::plain(frame.submit, MAX_TITLE_CHARS);
    view["close"] = blocks::plain("Cancel", MAX_TITLE_CHARS);
    view
}

/// Reads the input. A field that was not shown keeps its value.
pub fn read(form: &Form, view: &View) -> Entered {
    let untouched = |field: &Field| field.input.as_entered();
    let entry = |field: &Field| {
        (field.place.clone(), view.values.get(&field.place).cloned().unwrap_or_else(|| untouched(field)))
    };
    form.fields.iter().map(entry).collect()
}

/// Returns the errors for the fields that are shown; those of other fields are shown at the first
/// field.
pub fn errors(form: &Form, wrong: BTreeMap<String, String>) -> Value {
    let shown: Vec<_> =
        form.fields.iter().filter(|field| input_block(field).is_some()).map(|field| &field.place).collect();
    let mut placed: BTreeMap<String, String> = BTreeMap::new();
    for (place, what) in wrong {
        let Some(place) = shown.iter().find(|shown| ***shown == place).or(shown.first()) else { continue };
        placed.entry((*place).clone()).and_modify(|said| *said = format!("{said} {what}")).or_insert(what);
    }
    super::errors(&placed)
}

/// Returns the line in place of a field whose text is too long.
fn too_long(field: &Field) -> Value {
    let said = format!("{} is too long for a form. It stays as it is.", field.label);
    json!({ "type": "context", "elements": [blocks::plain(&said, MAX_LABEL_CHARS)] })
}

/// Draws a field as an input block; `None` if it cannot be shown, since its text is too long.
fn input_block(field: &Field) -> Option<Value> {
    let element = element(&field.input)?;
    let mut block = json!({
        "type": "input",
        "block_id": field.place,
        "optional": !field.required,
        "label": blocks::plain(&field.label, MAX_LABEL_CHARS),
        "element": element,
    });
    if let Some(hint) = &field.hint {
        block["hint"] = blocks::plain(hint, MAX_LABEL_CHARS);
    }
    Some(block)
}

fn element(input: &Input) -> Option<Value> {
    let first = input.as_entered().into_iter().next().filter(|text| !text.is_empty());
    if first.as_ref().is_some_and(|text| text.chars().count() > MAX_ENTRY_CHARS) {
        return None;
    }
    let mut element = match input {
        Input::Line(_) => json!({ "type": "plain_text_input", "max_length": MAX_ENTRY_CHARS }),
        Input::Lines(_) | Input::Prose(_) => {
            json!({ "type": "plain_text_input", "multiline": true, "max_length": MAX_ENTRY_CHARS })
        }
        Input::Number { least, most, fraction, .. } => {
            let mut number = json!({ "type": "number_input", "is_decimal_allowed": fraction });
            for (key, bound) in [("min_value", least), ("max_value", most)] {
                if let Some(bound) = bound {
                    number[key] = json!(bound.to_string());
                }
            }
            number
        }
        Input::Moment(at) => {
            let mut picker = json!({ "type": "datetimepicker", "action_id": "value" });
            if let Some(at) = at {
                picker["initial_date_time"] = json!(at.seconds());
            }
            return Some(picker);
        }
        Input::One { picks, .. } => return menu(picks, first.as_deref()),
        Input::Flag(_) => {
            return menu(
                &[("yes", "Yes"), ("no", "No")].map(|(value, label)| Pick { value: value.into(), label: label.into() }),
                first.as_deref(),
            );
        }
    };
    element["action_id"] = json!("value");
    if let Some(first) = first {
        element["initial_value"] = json!(first);
    }
    Some(element)
}

/// Draws a menu. If there are too many options, or one is too long, draws a text field instead.
fn menu(picks: &[Pick], first: Option<&str>) -> Option<Value> {
    let fits = |pick: &Pick| pick.value.chars().count() <= MAX_OPTION_CHARS.1 && !pick.value.is_empty();
    if picks.is_empty() || picks.len() > MAX_OPTIONS || !picks.iter().all(fits) {
        return element(&Input::Line(first.unwrap_or_default().to_owned()));
    }
    let option = |pick: &Pick| json!({ "text": blocks::plain(&pick.label, MAX_OPTION_CHARS.0), "value": pick.value });
    let mut menu = json!({
        "type": "static_select",
        "action_id": "value",
        "options": picks.iter().map(option).collect::<Vec<_>>(),
    });
    match first {
        Some(first) => match picks.iter().find(|pick| pick.value == first) {
            Some(pick) => menu["initial_option"] = option(pick),
            None => return element(&Input::Line(first.to_owned())),
        },
        None => menu["placeholder"] = blocks::plain("Choose…", 150),
    }
    Some(menu)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_is_too_long_is_told_and_keeps_its_value() {
        let long = "x".repeat(MAX_ENTRY_CHARS + 1);
        let fields = vec![
            Field::new("/text".to_owned(), "Text <!channel>".to_owned(), Input::Prose(long.clone())),
            Field::new("/color".to_owned(), "Color".to_owned(), Input::Line("blue".to_owned())),
        ];
        let form = Form { fields };
        let frame = Frame { title: "Edit", submit: "Save", callback: "edit", metadata: "", intro: None };
        let view = draw(&form, &frame);
        let line = &view["blocks"][0]["elements"][0];
        assert_eq!(line["type"], "plain_text", "the label is no markup");
        assert_eq!(line["text"], "Text <!channel> is too long for a form. It stays as it is.");
        assert_eq!(view["blocks"][1]["block_id"], "/color");
        let view = View {
            id: "V1".to_owned(),
            callback_id: "edit".to_owned(),
            private_metadata: String::new(),
            hash: None,
            values: BTreeMap::from([("/color".to_owned(), vec!["yellow".to_owned()])]),
        };
        assert_eq!(
            read(&form, &view),
            Entered::from([("/color".to_owned(), vec!["yellow".to_owned()]), ("/text".to_owned(), vec![long])])
        );
    }
}
