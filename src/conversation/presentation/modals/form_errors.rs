//! Assigns the errors in a form's input to the fields where they are shown.

use std::collections::BTreeMap;

use countersign_core::reply::Part;
use countersign_graph::action::{ActionKind, Entered, Form, PrepareError, Refusal};
use serde_json::Value;

/// Returns the changed field that makes the input invalid: with its old value, the input would be
/// valid. If there is none, returns the first changed field.
pub async fn wrong_field<'a>(
    kind: &dyn ActionKind,
    parameters: &Value,
    form: &'a Form,
    entered: &'a Entered,
) -> &'a str {
    let changed: Vec<&str> = form.changed(entered).collect();
    if let [_, _, ..] = changed.as_slice() {
        for field in form.fields.iter().filter(|field| changed.contains(&field.place.as_str())) {
            let mut others = entered.clone();
            others.insert(field.place.clone(), field.input.as_entered());
            if let Ok(filled) = form.fill(parameters, &others)
                && kind.prepare(&filled).await.is_ok()
            {
                return &field.place;
            }
        }
    }
    changed.first().copied().unwrap_or_default()
}

/// Returns the errors by field: a missing value at its own field, everything else at `place`.
pub fn by_field(error: PrepareError, place: &str) -> BTreeMap<String, String> {
    match error {
        PrepareError::Refusal(Refusal::Missing(missing)) => {
            missing.into_iter().map(|missing| (format!("/{}", missing.name), missing.question)).collect()
        }
        PrepareError::Refusal(Refusal::Refused { reply, .. })
        | PrepareError::Answered { reply, .. }
        | PrepareError::Unavailable { reply, .. } => {
            // A hint about phrasing a message is of no use next to a field for a single number.
            let lines = match place.ends_with("/weight") {
                true => reply.parts.iter().filter(|part| !matches!(part, Part::Note(_))).map(Part::words).collect(),
                false => vec![reply.words()],
            };
            [(place.to_owned(), lines.join("\n"))].into()
        }
    }
}
