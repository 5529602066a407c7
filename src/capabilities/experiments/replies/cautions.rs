//! The warnings on cards: risks that the platform does not prevent, and that people should know of before
//! they decide.

use countersign_core::reply::Text;

use crate::upgrade::{experiment::View, status::Status};

/// The maximum number of other experiments that a warning names.
const MAX_NAMED: usize = 3;

/// Warns of other live experiments at the same points. Each of `others` comes with a shared point.
pub fn shared_points(others: &[(&View, String)]) -> Option<Text> {
    let mut text = Text::new();
    for (i, (view, point)) in others.iter().take(MAX_NAMED).enumerate() {
        let join = if i == 0 { "“" } else { "; “" };
        text = text.plain(join).bold(&view.name).plain(format!("”, {}, has {point}", view.state.display()));
    }
    let more = others.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!("; and {more} more have one of these points") } else { String::new() };
    let words = format!("{more} too: each person takes part in only one experiment at a point.");
    (!others.is_empty()).then(|| text.plain(words))
}

/// Says that other experiments already have the new name.
pub fn name_taken(others: &[&View]) -> Option<Text> {
    let states = others.iter().take(MAX_NAMED).map(|view| format!("{} in {}", view.state.display(), view.context()));
    let states = states.collect::<Vec<_>>().join("; ");
    match others.len() {
        0 => None,
        1 => {
            Some(Text::from(format!("There is an experiment of this name already ({states}); then there will be two.")))
        }
        n => Some(Text::from(format!(
            "There are {n} experiments of this name already ({states}); then there will be one more."
        ))),
    }
}

/// Says that only people on the inclusion list take part, and that it is empty.
pub fn nobody_takes_part() -> Text {
    Text::from("Nobody will be enrolled: only people on its inclusion list take part, and that list is empty.")
}

/// Says that people on no list take part as well, although there is an inclusion list.
pub fn everybody_takes_part() -> Text {
    Text::from("People on no list take part as well, so the inclusion list only helps people whose group is excluded.")
}

/// Describes the effect of a changed draw on participants. `enrolled` is their number, if it could be
/// read.
pub fn redraws(status: Status, enrolled: Option<u64>) -> Text {
    let what = match enrolled {
        Some(0) => "nobody is enrolled yet, so everybody is drawn by the new design".to_owned(),
        Some(1) => "the 1 person enrolled keeps their condition, everybody else is drawn anew".to_owned(),
        Some(n) => format!("the {n} people enrolled keep their condition, everybody else is drawn anew"),
        None => "people who are enrolled keep their condition, others are drawn anew".to_owned(),
    };
    Text::from(format!("It is {}: {what}.", status.display()))
}

/// Says that conditions or decision points are removed.
pub fn removal() -> Text {
    Text::from("What is removed here goes with its enrolments; adding it again does not bring them back.")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::upgrade::experiment::Experiment;

    fn view(name: &str, state: &str) -> View {
        let raw = json!({ "id": Uuid::from_u128(1), "name": name, "context": ["assign-prog"], "state": state });
        Experiment::from_value(raw).unwrap().view
    }

    #[test]
    fn other_experiments_at_the_same_points_are_named() {
        let all: Vec<_> = ["A", "B", "C", "D", "E"].map(|name| view(name, "running")).into();
        let at = |n: usize| all.iter().take(n).map(|view| (view, "chat / tone".to_owned())).collect::<Vec<_>>();
        assert!(shared_points(&[]).is_none());
        assert_snapshot!(shared_points(&at(1)).unwrap().words(), @"“A”, enrolling (running), has chat / tone too: each person takes part in only one experiment at a point.");
        assert!(
            shared_points(&at(5))
                .unwrap()
                .words()
                .contains("“C”, enrolling (running), has chat / tone; and 2 more have one of these points too:")
        );
    }

    #[test]
    fn namesakes_and_redraws_are_counted() {
        let (one, other) = (view("A", "inactive"), view("A", "completed"));
        let said = [
            name_taken(&[&one]).unwrap(),
            name_taken(&[&one, &other]).unwrap(),
            redraws(Status::Enrolling, Some(0)),
            redraws(Status::Enrolling, Some(24)),
        ];
        assert_snapshot!(said.map(|text| text.words()).join("\n"), @"
        There is an experiment of this name already (inactive in assign-prog); then there will be two.
        There are 2 experiments of this name already (inactive in assign-prog; cancelled (completed) in assign-prog); then there will be one more.
        It is enrolling (running): nobody is enrolled yet, so everybody is drawn by the new design.
        It is enrolling (running): the 24 people enrolled keep their condition, everybody else is drawn anew.
        ");
    }
}
