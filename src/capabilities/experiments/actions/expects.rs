//! The state that an undo expects to find, which is the one that the reverted change left behind.
//!
//! An undo is a change like any other, with its own checks and card. It is prepared before the change
//! is made, so it contains the state that will exist afterwards. If that state has changed since,
//! restoring the old values would revert the later changes too, so the undo is refused with both
//! states.

use countersign_graph::action::{ErrorKind, PrepareError, difference};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::fields::{Field, same};
use crate::{
    access,
    replies::{answers, refusals},
    upgrade::{experiment::View, status::Status},
};

/// The expected state. Absent parts are not checked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Expects {
    /// The status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
    /// The values of fields, by their labels on the card.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    fields: Map<String, Value>,
    /// True if nobody may be enrolled yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    nobody_enrolled: bool,
}

impl Expects {
    /// Expects this status.
    pub(super) fn at(status: Status) -> Self {
        Self { status: Some(status), ..Self::default() }
    }

    /// Expects these values of fields.
    pub(super) fn reading(fields: Map<String, Value>) -> Self {
        Self { fields, ..Self::default() }
    }

    /// Also expects that no user is enrolled yet.
    pub(super) fn with_nobody_enrolled(self) -> Self {
        Self { nobody_enrolled: true, ..self }
    }

    /// Checks that the experiment is in the expected state. `enrolled` is the number of enrolled users, if it was
    /// read.
    ///
    /// # Errors
    ///
    /// A refusal that shows the expected state and the present one.
    pub(super) fn check(&self, experiment: &View, enrolled: Option<u64>) -> Result<(), PrepareError> {
        let mut changed = Vec::new();
        if let Some(status) = self.status.filter(|status| *status != experiment.state) {
            changed.push(difference("Status", status.display(), experiment.state.display()));
        }
        for field in Field::ALL {
            let now = field.read(experiment);
            if let Some(expected) = self.fields.get(field.label()).filter(|expected| !same(expected, &now)) {
                changed.push(difference(field.label(), field.words(expected), field.words(&now)));
            }
        }
        if self.nobody_enrolled && enrolled != Some(0) {
            let now = enrolled.map_or_else(|| "couldn't be read".to_owned(), answers::people);
            changed.push(difference("Enrolled", "nobody", now));
        }
        match changed.is_empty() {
            true => Ok(()),
            false => Err(access::refused(ErrorKind::Execution, refusals::changed_since(&experiment.name, &changed))),
        }
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;
    use crate::upgrade::experiment::Experiment;
    use countersign_graph::action::Refusal;

    fn view(weights: [f64; 2], state: &str) -> View {
        let raw = json!({
            "id": "6d1f3f3e-8c54-4a1c-9f5e-2f7a1a3b0c77", "name": "Math Hints", "context": ["assign-prog"], "state": state,
            "conditions": [
                { "id": "a", "conditionCode": "control", "assignmentWeight": weights[0], "order": 1 },
                { "id": "b", "conditionCode": "variant", "assignmentWeight": weights[1], "order": 2 },
            ],
        });
        Experiment::from_value(&raw).unwrap().view
    }

    fn expects_weights(weights: [f64; 2]) -> Expects {
        let read = Field::Conditions.read(&view(weights, "inactive"));
        Expects::reading(Map::from_iter([(Field::Conditions.label().to_owned(), read)]))
    }

    #[test]
    fn an_undo_finds_what_the_change_left_behind() {
        assert_eq!(expects_weights([70.0, 30.0]).check(&view([70.0, 30.0], "enrolling"), None), Ok(()));
        assert_eq!(
            Expects::at(Status::Inactive).with_nobody_enrolled().check(&view([50.0; 2], "inactive"), Some(0)),
            Ok(())
        );
    }

    #[test]
    fn an_undo_is_refused_if_somebody_changed_it_since() {
        let Err(PrepareError::Refusal(Refusal::Refused { reply, .. })) =
            expects_weights([70.0, 30.0]).check(&view([60.0, 40.0], "inactive"), None)
        else {
            panic!("the undo was not refused");
        };
        assert_snapshot!(reply.words(), @"
        “Math Hints” was changed again since then, so nothing was undone: undoing this would undo that change too.
        • Conditions: then control 70%, variant 30%, now control 60%, variant 40%
        Tell me what it should be and I'll post a card for that.
        ");
        let created = Expects::at(Status::Inactive).with_nobody_enrolled();
        let Err(PrepareError::Refusal(Refusal::Refused { reply, .. })) =
            created.check(&view([50.0; 2], "enrolling"), Some(3))
        else {
            panic!("the undo was not refused");
        };
        assert_snapshot!(reply.words(), @"
        “Math Hints” was changed again since then, so nothing was undone: undoing this would undo that change too.
        • Status: then inactive, now running
        • Enrolled: then nobody, now 3 users
        Tell me what it should be and I'll post a card for that.
        ");
        assert!(created.check(&view([50.0; 2], "inactive"), None).is_err(), "the enrolment is not known");
    }

    #[test]
    fn the_expected_state_survives_a_round_trip() {
        let expects = expects_weights([70.0, 30.0]).with_nobody_enrolled();
        assert_eq!(serde_json::from_value::<Expects>(json!(expects)).unwrap(), expects);
    }
}
