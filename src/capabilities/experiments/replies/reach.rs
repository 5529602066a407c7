//! The lines on cards about the people that a change affects: the enrolled people, and the other live
//! experiments at the same decision points.

use std::{sync::Arc, time::Duration};

use countersign_core::reply::{Fact, Text};

use super::answers;
use crate::upgrade::{experiment::View, overview::Outline, participants::Enrollment};

/// The maximum number of other experiments that a card names.
const MAX_NAMED: usize = 3;

/// The label of the line about the live experiments that share a decision point.
pub const OVERLAPPING: &str = "Overlapping experiments";

/// Returns the line about the enrolled people.
pub fn enrolled(enrolled: Option<&Enrollment>, in_groups: bool) -> Fact {
    let words = match enrolled {
        None => "couldn't be read".to_owned(),
        Some(Enrollment { users, groups, test_users, .. }) if in_groups && *users > 0 => {
            let groups = if *groups == 1 { "1 group".to_owned() } else { format!("{groups} groups") };
            format!("{} in {groups}{}", answers::people(*users), answers::plus_tests(*test_users))
        }
        Some(enrolled) => answers::people_and_tests(enrolled.users, enrolled.test_users),
    };
    Fact::new("Enrolled", words)
}

/// Returns the line about the people who are enrolled in several experiments, as a total. `enrolled` is
/// `None` if it couldn't be read.
pub fn enrolled_together(enrolled: Option<&[Enrollment]>) -> Fact {
    let words = match enrolled {
        None => "couldn't be read".to_owned(),
        Some(all) => {
            let (users, tests): (u64, u64) =
                all.iter().fold((0, 0), |(users, tests), one| (users + one.users, tests + one.test_users));
            let in_total = if users > 0 { " in total" } else { "" };
            format!("{}{in_total}{}", answers::people(users), answers::plus_tests(tests))
        }
    };
    Fact::new("Enrolled", words)
}

/// Returns the line about the live experiments that share a decision point, each with the point.
/// `others` is `None` if they couldn't be read.
pub fn same_points(others: Option<&[(Arc<Outline>, String)]>) -> Fact {
    let text = match others {
        None => Text::from("couldn't be read"),
        Some([]) => Text::from("none"),
        Some(others) => {
            let mut text = Text::new();
            for (nth, (other, point)) in others.iter().enumerate() {
                let join = if nth == 0 { "“" } else { "; “" };
                text = text.plain(join).bold(&other.name).plain(format!("”, {}, at {point}", other.state.display()));
            }
            text
        }
    };
    Fact::new(OVERLAPPING, text)
}

/// The age up to which what was read counts as live; people need longer to read a card.
const LIVE: Duration = Duration::from_secs(10);

/// Says how long before the card the other experiments were read; `None` if they were just read.
pub fn read_before(age: Duration) -> Option<Text> {
    let seconds = age.as_secs();
    let words = format!(
        "Other experiments were read {seconds} seconds before this card. I check them again before the change."
    );
    (age >= LIVE).then(|| Text::from(words))
}

/// Warns of the live experiments that draw by a type of group that is set for a user. Each of `others`
/// comes with the type.
pub fn draws_by_group(others: &[(&View, String)]) -> Option<Text> {
    let mut text = Text::new();
    for (nth, (view, kind)) in others.iter().take(MAX_NAMED).enumerate() {
        let join = if nth == 0 { "“" } else { ", “" };
        text = text.plain(join).bold(&view.name).plain(format!("”, {}, assigns by {kind}", view.state.display()));
    }
    let more = others.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!(", and {more} more also assign by this user's groups") } else { String::new() };
    (!others.is_empty()).then(|| text.plain(format!("{more}. This user gets the group's condition there.")))
}
