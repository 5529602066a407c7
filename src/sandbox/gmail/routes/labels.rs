//! Labels, and the labels of a message.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    super::{
        failure::Failure,
        mailbox::{Label, SYSTEM_LABELS},
    },
    World,
    messages::short,
};
use crate::call::Call;

/// The maximum length of a name, in characters.
const MAX_NAME: usize = 225;

/// The body of a request that creates a label.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NewLabel {
    name: String,
    label_list_visibility: Option<String>,
    message_list_visibility: Option<String>,
}

/// The body of a request that changes the labels of a message.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Modify {
    #[serde(default)]
    add_label_ids: Vec<String>,
    #[serde(default)]
    remove_label_ids: Vec<String>,
}

/// Lists all labels.
pub(super) fn list(world: &World, call: &Call) -> Result<Value, Failure> {
    call.has_only(&[])?;
    let system = SYSTEM_LABELS.iter().map(|name| json!({ "id": name, "name": name, "type": "system" }));
    let labels: Vec<Value> = system.chain(world.mailbox.labels.iter().map(resource)).collect();
    Ok(json!({ "labels": labels }))
}

/// Creates a label.
pub(super) fn create(world: &mut World, call: &Call) -> Result<Value, Failure> {
    call.has_only(&[])?;
    let NewLabel { name, label_list_visibility, message_list_visibility } = call.body()?;
    let visible = |value: &Option<String>, known: &[&str]| value.as_deref().is_none_or(|value| known.contains(&value));
    if !visible(&label_list_visibility, &["labelShow", "labelShowIfUnread", "labelHide"])
        || !visible(&message_list_visibility, &["show", "hide"])
    {
        return Err(Failure::invalid("Invalid value at 'label' visibility"));
    }
    if name.trim().is_empty() || name.chars().count() > MAX_NAME {
        return Err(Failure::invalid("Invalid label name"));
    }
    let exists = world.mailbox.labels.iter().any(|label| label.name.eq_ignore_ascii_case(&name));
    if exists || SYSTEM_LABELS.iter().any(|label| label.eq_ignore_ascii_case(&name)) {
        return Err(Failure::conflict("Label name exists or conflicts"));
    }
    Ok(resource(&world.mailbox.create_label(&name)))
}

/// Adds labels to a message and removes labels from it.
pub(super) fn modify(world: &mut World, call: &Call, id: &str) -> Result<Value, Failure> {
    call.has_only(&[])?;
    let Modify { add_label_ids, remove_label_ids } = call.body()?;
    if add_label_ids.is_empty() && remove_label_ids.is_empty() {
        return Err(Failure::invalid("No label add or removes specified"));
    }
    let unknown = add_label_ids.iter().chain(&remove_label_ids).find(|label| !world.mailbox.has_label(label));
    if let Some(unknown) = unknown {
        return Err(Failure::invalid(format!("Invalid label: {unknown}")));
    }
    if add_label_ids.iter().any(|label| matches!(label.as_str(), "SENT" | "DRAFT")) {
        return Err(Failure::invalid("Invalid label: SENT and DRAFT cannot be added"));
    }
    let changed = world.mailbox.modify(id, &add_label_ids, &remove_label_ids);
    changed.map(short).ok_or_else(Failure::not_found)
}

fn resource(label: &Label) -> Value {
    json!({
        "id": label.id, "name": label.name, "type": "user",
        "messageListVisibility": "show", "labelListVisibility": "labelShow",
    })
}
