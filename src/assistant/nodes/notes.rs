//! Values from a person's notes for the parameters that a request leaves out.

use countersign_capabilities::Registry;
use countersign_graph::action::MissingParameter;
use countersign_understanding::situation::Draft;
use serde_json::Value;

use super::super::state::AgentState;

/// Returns the value of a missing parameter and the note that names it, if the person's notes name exactly one of the
/// possible values.
pub(super) async fn value_of(
    registry: &Registry,
    state: &AgentState,
    change: &Draft,
    missing: &MissingParameter,
) -> Option<(String, String)> {
    let person = state.turn.by.as_ref().filter(|_| !change.params.contains_key(&missing.name))?;
    let mut named: Vec<(String, String)> = Vec::new();
    for capability in &registry.capabilities {
        for note in capability.notes(person).await {
            let options = missing.options.iter().filter(|option| mentions(&note, option));
            named.extend(options.map(|option| (option.clone(), note.clone())));
        }
    }
    let (value, _) = named.first()?;
    let only = named.iter().all(|(other, _)| other == value);
    named.iter().find(|_| only).cloned()
}

/// Returns true if a note names a value that the change has.
pub(super) fn gave_value(note: &str, change: &Draft) -> bool {
    change.params.values().filter_map(Value::as_str).any(|value| mentions(note, value))
}

/// Returns true if a note contains this name as whole words.
fn mentions(note: &str, name: &str) -> bool {
    let (note, name) = (note.to_lowercase(), name.to_lowercase());
    let is_part = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    !name.is_empty()
        && note
            .match_indices(&name)
            .any(|(at, _)| !note[..at].ends_with(is_part) && !note[at + name.len()..].starts_with(is_part))
}

#[cfg(test)]
mod tests {
    use super::mentions;

    #[test]
    fn a_name_is_found_as_whole_words() {
        assert!(mentions("I work in mathstream.", "mathstream") && mentions("Assign-prog is mine", "assign-prog"));
        assert!(!mentions("I work in mathstreams", "mathstream") && !mentions("my-assign-prog", "assign-prog"));
        assert!(!mentions("anything", ""));
    }
}
