//! Assigns the errors in a form's input to the fields where they are shown.

use std::collections::BTreeMap;

use countersign_core::reply::Part;
use countersign_graph::action::{ActionKind, Entered, Form, PrepareError, Refusal};
use serde_json::Value;

/// Returns the changed field that makes the input invalid. With its old value, the input would be valid, or another field
/// would be wrong. A field that must be filled in cannot be tried this way; it is the wrong one if the error quotes it. If
/// there is no such field, returns the first changed field.
pub async fn wrong_field<'a>(
    kind: &dyn ActionKind,
    parameters: &Value,
    form: &'a Form,
    entered: &'a Entered,
    error: &PrepareError,
) -> &'a str {
    let changed: Vec<&str> = form.changed(entered).collect();
    let mut others_wrong = None;
    if let [_, _, ..] = changed.as_slice() {
        for field in form.fields.iter().filter(|field| changed.contains(&field.place.as_str())) {
            let mut others = entered.clone();
            others.insert(field.place.clone(), field.input.as_entered());
            let Ok(filled) = form.fill(parameters, &others) else { continue };
            match kind.prepare(&filled, None).await {
                Ok(_) => return &field.place,
                Err(other @ PrepareError::Refusal(Refusal::Refused { .. })) if other != *error => {
                    others_wrong = others_wrong.or(Some(field.place.as_str()));
                }
                Err(_) => {}
            }
        }
    }
    // A field depends on those before it, so the last field that is quoted is the wrong one.
    let words = words_of(error);
    let is_quoted = |place: &&&str| entered.get(**place).is_some_and(|entries| is_quoted_in(&words, entries));
    let quoted = changed.iter().rev().find(is_quoted).copied();
    others_wrong.or(quoted).or(changed.first().copied()).unwrap_or_default()
}

/// Returns the words of an error.
fn words_of(error: &PrepareError) -> String {
    match error {
        PrepareError::Refusal(Refusal::Missing(_)) => String::new(),
        PrepareError::Refusal(Refusal::Refused { reply, .. })
        | PrepareError::Answered { reply, .. }
        | PrepareError::Unavailable { reply, .. } => reply.words(),
    }
}

/// Returns true if the words quote one of these entries, a line of it or a part of a line.
fn is_quoted_in(words: &str, entries: &[String]) -> bool {
    let plain: String = words.chars().filter(|c| *c != '*' && *c != '`').collect();
    let parts = entries.iter().flat_map(|entry| entry.lines()).flat_map(|line| {
        std::iter::once(line).chain(line.split(['/', ':', ','])).map(str::trim).filter(|part| !part.is_empty())
    });
    parts.into_iter().any(|part| plain.contains(&format!("“{part}”")))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_quotes_an_entry_or_a_part_of_it() {
        let quotes =
            |entry: &str| is_quoted_in("The context assign-prog has no target “*nowhere*”.", &[entry.to_owned()]);
        assert!(quotes("SelectSection / nowhere"));
        assert!(quotes("SelectSection / area_model\nSelectSection / nowhere"));
        assert!(quotes("nowhere: 50"));
        assert!(!quotes("assign-prog"), "it is named, but not quoted");
        assert!(!quotes("no"));
        assert!(!quotes(""));
    }
}
