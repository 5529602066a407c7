//! Watches and digests as they are stored, and what a look at a thing means for them.

use countersign_capabilities::{Observed, Phase};
use countersign_core::{
    clock::Timestamp,
    ids::{ThreadId, UserId},
};
use serde::{Deserialize, Serialize};

use super::{schedule::Schedule, split};

/// An event that a person waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Event {
    /// The thing has this number of participants.
    Reaches {
        /// The number.
        number: u64,
    },
    /// The thing starts.
    Starts,
    /// The thing pauses.
    Pauses,
    /// The thing ends, or takes no new participants any more.
    Ends,
    /// Participants do not seem to be drawn by the shares of the parts.
    SplitLooksWrong,
}

/// The phase of a thing when it was first looked at, as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FirstPhase {
    /// It had not started.
    NotStarted,
    /// It was in progress.
    Running,
    /// It took no new participants.
    Paused,
    /// It was over.
    Ended,
}

impl From<Phase> for FirstPhase {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::NotStarted => Self::NotStarted,
            Phase::Running => Self::Running,
            Phase::Paused => Self::Paused,
            Phase::Ended => Self::Ended,
        }
    }
}

/// A person's wish to be told, once, when something happens to a thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    /// The id, such as `w-1a2b3c4d`.
    pub id: String,
    /// The name of the capability of the thing.
    pub source: String,
    /// The id of the thing.
    pub thing: String,
    /// The name of the thing.
    pub name: String,
    /// The event.
    pub event: Event,
    /// The person.
    pub by: UserId,
    /// The thread in which the person asked and is notified.
    pub thread: ThreadId,
    /// The time at which the person asked.
    pub since: Timestamp,
    /// The phase of the thing at that time.
    pub first_phase: FirstPhase,
}

impl Watch {
    /// Returns true if the event of this watch has happened. A change of phase that came and went between two looks
    /// counts where it can still be seen.
    pub fn has_happened(&self, thing: &Observed, split: Option<&Split>) -> bool {
        match self.event {
            Event::Reaches { number } => thing.enrolled >= number,
            Event::Starts => match self.first_phase {
                FirstPhase::NotStarted => thing.phase != Phase::NotStarted,
                _ => thing.phase == Phase::Running,
            },
            Event::Pauses => thing.phase == Phase::Paused,
            Event::Ends => {
                thing.phase == Phase::Ended || (thing.phase == Phase::Paused && self.first_phase != FirstPhase::Paused)
            }
            Event::SplitLooksWrong => split.is_some_and(|split| split.looks_wrong(thing)),
        }
    }
}

/// The shares that a test of a split is about, and the counts at its beginning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Split {
    /// The parts by name with their shares.
    pub shares: Vec<(String, f64)>,
    /// The count of each part at the beginning.
    pub begins_at: Vec<u64>,
}

impl Split {
    /// Begins a test of everybody who was drawn so far and of those to come.
    pub fn of_all(thing: &Observed) -> Self {
        Self { shares: shares(thing), begins_at: vec![0; thing.parts.len()] }
    }

    /// Begins a test of those to come, because the shares have changed.
    fn of_those_to_come(thing: &Observed) -> Self {
        Self { shares: shares(thing), begins_at: thing.parts.iter().map(|part| part.count).collect() }
    }

    /// Returns the test for this look: the same one, or another one if the shares have changed since.
    pub fn at_look(self, thing: &Observed) -> Self {
        if self.shares == shares(thing) { self } else { Self::of_those_to_come(thing) }
    }

    /// Returns true if the counts since the beginning contradict the shares.
    pub fn looks_wrong(&self, thing: &Observed) -> bool {
        let shares: Vec<f64> = self.shares.iter().map(|(_, share)| *share).collect();
        let new =
            |(part, begins_at): (&countersign_capabilities::ObservedPart, &u64)| part.count.saturating_sub(*begins_at);
        let counts: Vec<u64> = thing.parts.iter().zip(&self.begins_at).map(new).collect();
        split::looks_wrong(&shares, &counts)
    }
}

fn shares(thing: &Observed) -> Vec<(String, f64)> {
    thing.parts.iter().map(|part| (part.name.clone(), part.share)).collect()
}

/// A thing that at least one watch is about. All of them share its looks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Followed {
    /// The name of the capability of the thing.
    pub source: String,
    /// The id of the thing.
    pub thing: String,
    /// The time of the next look.
    pub next_look: Timestamp,
    /// The time since which the thing cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable_since: Option<Timestamp>,
    /// True if those who follow the thing were told that it cannot be read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_told: bool,
    /// The test of the split, if a watch is about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Split>,
}

/// A regular message about everything that is in progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    /// The id, such as `d-1a2b3c4d`.
    pub id: String,
    /// The times.
    pub schedule: Schedule,
    /// The person who asked.
    pub by: UserId,
    /// The thread in which the person asked, and in which it is posted.
    pub thread: ThreadId,
    /// The time of the next one.
    pub next: Timestamp,
    /// The time before which no other attempt is made at the next one.
    pub not_before: Timestamp,
    /// The counts of the last one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last: Vec<Counted>,
}

/// The number of participants of a thing at some time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// The name of the capability of the thing.
    pub source: String,
    /// The id of the thing.
    pub thing: String,
    /// The name of the thing.
    pub name: String,
    /// The number.
    pub enrolled: u64,
    /// The number of simulated participants, who are not among the others.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub simulated: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{observed, watch};

    #[test]
    fn a_number_is_reached_once_it_is_there() {
        let watch = watch(Event::Reaches { number: 500 }, Phase::Running);
        assert!(!watch.has_happened(&observed(499, Phase::Running), None));
        assert!(watch.has_happened(&observed(500, Phase::Running), None));
        assert!(watch.has_happened(&observed(512, Phase::Ended), None));
    }

    #[test]
    fn an_end_is_also_a_pause_unless_it_was_paused_before() {
        let running = watch(Event::Ends, Phase::Running);
        assert!(running.has_happened(&observed(1, Phase::Paused), None));
        assert!(running.has_happened(&observed(1, Phase::Ended), None));
        assert!(!running.has_happened(&observed(1, Phase::Running), None));
        assert!(!watch(Event::Ends, Phase::Paused).has_happened(&observed(1, Phase::Paused), None));
    }

    #[test]
    fn a_start_that_is_over_at_the_next_look_counts() {
        let new = watch(Event::Starts, Phase::NotStarted);
        assert!(!new.has_happened(&observed(0, Phase::NotStarted), None));
        assert!(new.has_happened(&observed(3, Phase::Paused), None));
        assert!(!watch(Event::Starts, Phase::Paused).has_happened(&observed(3, Phase::Paused), None));
    }

    #[test]
    fn a_change_of_shares_begins_another_test() {
        let mut thing = observed(1000, Phase::Running);
        (thing.parts[0].count, thing.parts[1].count) = (700, 300);
        let split = Split::of_all(&thing);
        assert!(split.looks_wrong(&thing));
        (thing.parts[0].share, thing.parts[1].share) = (0.7, 0.3);
        let other = split.at_look(&thing);
        assert_eq!(other.begins_at, [700, 300]);
        assert!(!other.looks_wrong(&thing));
        assert_eq!(other.clone().at_look(&thing), other);
    }
}
