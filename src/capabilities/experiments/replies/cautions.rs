//! The warnings on cards: risks that the platform does not prevent, and that people should know of before
//! they decide.

use std::sync::Arc;

use countersign_core::reply::Text;

use crate::upgrade::{overview::Outline, status::Status};

/// The maximum number of other experiments that a warning names.
const MAX_NAMED: usize = 3;

/// Warns of other live experiments at the same points. Each of `others` comes with a shared point.
pub fn shared_points(others: &[(Arc<Outline>, String)]) -> Option<Text> {
    let mut text = Text::new();
    for (i, (other, point)) in others.iter().take(MAX_NAMED).enumerate() {
        let join = if i == 0 { "“" } else { "; “" };
        text = text.plain(join).bold(&other.name).plain(format!("”, {}, has {point}", other.state.display()));
    }
    let more = others.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!("; {more} more share one of these decision points") } else { String::new() };
    let words = format!("{more} too. Each user takes part in only one experiment at a decision point.");
    (!others.is_empty()).then(|| text.plain(words))
}

/// Says that other experiments already have the new name.
pub fn name_taken(others: &[Arc<Outline>]) -> Option<Text> {
    let states = others.iter().take(MAX_NAMED).map(|other| format!("{} in {}", other.state.display(), other.context));
    let states = states.collect::<Vec<_>>().join("; ");
    match others.len() {
        0 => None,
        1 => Some(Text::from(format!("An experiment with this name already exists ({states}), so there will be two."))),
        n => Some(Text::from(format!(
            "{n} experiments with this name already exist ({states}), so there will be one more."
        ))),
    }
}

/// Returns the experiments with a name in a few words.
pub fn namesakes_in_words(others: &[Arc<Outline>]) -> String {
    let all = others.iter().map(|other| format!("{} in {}", other.state.display(), other.context));
    let all: Vec<_> = all.collect();
    if all.is_empty() { "none".to_owned() } else { all.join("; ") }
}

/// Says that only people on the inclusion list take part, and that it is empty.
pub fn nobody_takes_part() -> Text {
    Text::from("Nobody will be enrolled: only users on its inclusion list are included, and that list is empty.")
}

/// Says that people on no list take part as well, although there is an inclusion list.
pub fn everybody_takes_part() -> Text {
    Text::from(
        "Users on no list are included too, so the inclusion list only matters for users whose group is excluded.",
    )
}

/// Describes the effect of a changed draw on participants. `enrolled` is their number, if it could be
/// read.
pub fn redraws(status: Status, enrolled: Option<u64>) -> Text {
    let what = match enrolled {
        Some(0) => "nobody is enrolled yet, so everyone is assigned under the new design".to_owned(),
        Some(1) => "the 1 enrolled user keeps their condition; everyone else is assigned again".to_owned(),
        Some(n) => format!("the {n} enrolled users keep their condition; everyone else is assigned again"),
        None => "enrolled users keep their condition; everyone else is assigned again".to_owned(),
    };
    Text::from(format!("It is {}: {what}.", status.display()))
}

/// Says that conditions or decision points are removed.
pub fn removal() -> Text {
    Text::from("Removing this deletes its enrollments. Adding it again doesn't restore them.")
}

/// Names the payloads that are deleted with conditions or decision points; `None` if there are none.
pub fn lost_payloads(payloads: &str) -> Option<Text> {
    (!payloads.is_empty()).then(|| Text::from(format!("These payloads are deleted with it: {payloads}.")))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn other(name: &str, state: &str) -> Arc<Outline> {
        let raw = json!({ "id": Uuid::from_u128(1), "name": name, "context": ["assign-prog"], "state": state });
        Arc::new(serde_json::from_value(raw).unwrap())
    }

    #[test]
    fn other_experiments_at_the_same_points_are_named() {
        let all: Vec<_> = ["A", "B", "C", "D", "E"].map(|name| other(name, "running")).into();
        let at =
            |n: usize| all.iter().take(n).map(|other| (other.clone(), "chat / tone".to_owned())).collect::<Vec<_>>();
        assert!(shared_points(&[]).is_none());
        assert_snapshot!(shared_points(&at(1)).unwrap().words(), @"“A”, running, has chat / tone too. Each user takes part in only one experiment at a decision point.");
        assert!(
            shared_points(&at(5))
                .unwrap()
                .words()
                .contains("“C”, running, has chat / tone; 2 more share one of these decision points")
        );
    }

    #[test]
    fn namesakes_and_redraws_are_counted() {
        let (one, two) = (other("A", "inactive"), other("A", "completed"));
        let said = [
            name_taken(std::slice::from_ref(&one)).unwrap(),
            name_taken(&[one, two]).unwrap(),
            redraws(Status::Enrolling, Some(0)),
            redraws(Status::Enrolling, Some(24)),
        ];
        assert_snapshot!(said.map(|text| text.words()).join("\n"), @"
        An experiment with this name already exists (inactive in assign-prog), so there will be two.
        2 experiments with this name already exist (inactive in assign-prog; cancelled in assign-prog), so there will be one more.
        It is running: nobody is enrolled yet, so everyone is assigned under the new design.
        It is running: the 24 enrolled users keep their condition; everyone else is assigned again.
        ");
    }
}
