//! The things to which “it” refers: the last subject of the thread, and the last one of each capability. And the list to
//! which “the second one” and “those” refer.
//!
//! A thread about two domains goes from one to the other. A request that names nothing is then about the last subject
//! of its own domain, and not about a thing of the other one.

use std::collections::BTreeMap;

use countersign_capabilities::{Registry, Tool};
use countersign_understanding::situation::Listed;
use serde_json::Value;

use super::state::AgentState;

/// The maximum number of entries of a list that are kept.
const MAX_LISTED: usize = 25;

impl AgentState {
    /// Makes “it” refer to the subject of this tool or action.
    pub(super) fn note_subject(&mut self, registry: &Registry, call: &str, subject: String) {
        if let Some(owner) = registry.owner_of(call) {
            self.subjects.insert(owner.name().to_owned(), subject.clone());
        }
        self.last_subject = Some(subject);
        if let Some(listed) = &mut self.listed {
            listed.is_passed = true;
        }
    }

    /// Makes “the second one” refer to the entries of an answer, if it is a list.
    pub(super) fn note_list(&mut self, tool: &dyn Tool, arguments: &Value, answer: &Value) {
        let Some(shown) = tool.listed(arguments, answer) else { return };
        let is_complete = shown.is_complete && shown.names.len() <= MAX_LISTED;
        self.listed = Some(Listed {
            call: tool.name().to_owned(),
            parameters: arguments.as_object().cloned().unwrap_or_default(),
            names: shown.names.into_iter().take(MAX_LISTED).collect(),
            is_complete,
            is_passed: false,
        });
    }

    /// Makes “both” and “the second one” refer to the things on the card of this action, if they are several.
    pub(super) fn note_things_on_card(&mut self, action: &str, names: &[String]) {
        if names.len() < 2 {
            return;
        }
        self.listed = Some(Listed {
            call: action.to_owned(),
            names: names.iter().take(MAX_LISTED).cloned().collect(),
            is_complete: names.len() <= MAX_LISTED,
            ..Listed::default()
        });
    }

    /// Returns the last subjects of the capabilities that the last subject of the thread does not belong to.
    pub(super) fn earlier_subjects(&self) -> BTreeMap<String, String> {
        let is_earlier = |subject: &String| Some(subject) != self.last_subject.as_ref();
        let earlier = self.subjects.iter().filter(|(_, subject)| is_earlier(subject));
        earlier.map(|(owner, subject)| (owner.clone(), subject.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subject_of_another_domain_stays_known() {
        let subjects = [("experiments", "Math Hints"), ("simulation", "demo")];
        let state = AgentState {
            last_subject: Some("Math Hints".to_owned()),
            subjects: subjects.map(|(owner, name)| (owner.to_owned(), name.to_owned())).into(),
            ..AgentState::default()
        };
        assert_eq!(state.earlier_subjects(), [("simulation".to_owned(), "demo".to_owned())].into());
    }
}
