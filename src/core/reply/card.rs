//! A card that asks for approval of a change, and its states.

use serde::{Deserialize, Serialize};

use super::Text;
use crate::{
    clock::Timestamp,
    ids::{ApprovalId, Slot, UserId},
};

/// One line of a card: a value before and after the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// The label, such as `Status` or `Weights`.
    pub label: String,
    /// The current value, read from the live system; `None` for something new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Text>,
    /// The value after the change.
    pub after: Text,
}

/// The question to a person who must approve a change, with the exact change.
///
/// It is created by code from validated parameters, never from the text of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// The action and its object as a question: `Start “Math Hints”?`
    pub title: String,
    /// The changes, line by line.
    pub facts: Vec<Fact>,
    /// Warnings of irreversible or unusual effects, shown with ⚠️.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Text>,
    /// Small print, such as defaults that were filled in, or the scope of the change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Text>,
    /// The label of the button that approves: `Archive it`.
    pub approve: String,
    /// The label of the button that rejects. If it ends in `…`, it opens a window for the reason first: `Reject…`.
    pub reject: String,
    /// The action in the past tense, shown after success: `Started “Math Hints”.`
    pub done: String,
    /// True if the change cannot be undone. The button is then red and asks for confirmation.
    pub irreversible: bool,
    /// True if a person may edit the change in a form before deciding.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub editable: bool,
}

impl Fact {
    /// Creates a line about something new.
    pub fn new(label: impl Into<String>, after: impl Into<Text>) -> Self {
        Self { label: label.into(), before: None, after: after.into() }
    }

    /// Creates a line about a change.
    pub fn change(label: impl Into<String>, before: impl Into<Text>, after: impl Into<Text>) -> Self {
        Self { before: Some(before.into()), ..Self::new(label, after) }
    }
}

impl Card {
    /// Returns the action in the past tense, without what was so afterwards, which may have changed: `Started “Math Hints”`
    /// of `Started “Math Hints”: it is running now.`
    pub fn done_act(&self) -> &str {
        let done = self.done.strip_suffix('.').unwrap_or(&self.done);
        let end = ["”: ", "”. "].iter().filter_map(|end| done.find(end)).min().map(|at| at + "”".len());
        match end {
            // What the question says as well is a part of the action.
            Some(end) if !self.title.contains(&done[end..]) => &done[..end],
            _ => done,
        }
    }

    /// Creates a card without lines, with its question, the label of the button that approves, and what is said afterwards.
    pub fn new(title: impl Into<String>, approve: &str, done: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            approve: approve.to_owned(),
            reject: Self::REJECT.to_owned(),
            done: done.into(),
            ..Self::default()
        }
    }

    /// The label of the button that rejects, unless the change has a word of its own for that.
    pub const REJECT: &str = "Reject…";

    /// Returns true if the button that rejects opens a window, where a reason can be given before anything is decided.
    pub fn asks_for_reason(&self) -> bool {
        self.reject.ends_with('…')
    }
}

/// The buttons with which a request can be ended. Everybody sees the same card, so it has those of all its readers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// Only the one that rejects; if the person who asked presses it, that may withdraw the request.
    #[default]
    Rejecting,
    /// The one that rejects, and another one that withdraws, for the person who asked.
    Both,
    /// Only the one that withdraws, as nobody else can decide.
    Withdrawing,
}

impl EndedBy {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A button on a closed card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FollowUp {
    /// Requests that the change be undone, on a new card. Contains the label of the button.
    Undo(String),
    /// Requests the same change again, on a new card. Contains the label of the button.
    Again(String),
    /// Opens the form with the values of this change, to request a similar one.
    Change,
    /// Checks again whether the change happened.
    Check,
    /// Records a person's observation that the change happened.
    MarkDone,
    /// Records a person's observation that the change did not happen, and abandons it.
    Abandon,
}

/// The state of a card, shown below it, above or instead of its buttons.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum CardState {
    /// Waiting for a person.
    Open {
        /// The approval to which the buttons refer.
        approval: ApprovalId,
        /// The person who asked.
        asked_by: UserId,
        /// The people who may decide, in words.
        deciders: Text,
        /// The time at which the question expires; possibly [`Timestamp::NEVER`].
        expires_at: Timestamp,
        /// The first characters of the digest.
        digest: String,
        /// The people who have approved so far, where more than one is needed.
        #[serde(default)]
        approved_by: Vec<UserId>,
        /// The number of approvals needed.
        #[serde(default)]
        needed: u32,
        /// The people who changed the request before this card, each once.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        edited_by: Vec<UserId>,
        /// The reason why the policy is stricter than usual, if it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        because: Option<String>,
        /// True if something speaks against the change: the warnings come first, the safe button stands out, and the
        /// other one asks once more.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_risky: bool,
        /// The buttons that end the request.
        #[serde(default, skip_serializing_if = "EndedBy::is_default")]
        ended_by: EndedBy,
        /// What no person named of the change, if the assistant suggested it while answering `asked_by`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<Text>,
    },
    /// Approved and being carried out.
    Running {
        /// The people who approved.
        by: Vec<UserId>,
        /// The time of the approval.
        at: Timestamp,
        /// The progress, if the change is made in batches.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        meter: Option<Meter>,
        /// True if a program elsewhere carries it out.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_elsewhere: bool,
    },
    /// Closed. From then on the card serves as the record.
    Closed {
        /// The decision, such as “Approved by @ana · today 14:02”, “Expired”.
        decision: Text,
        /// The outcome: “✅ Started”, “❌ The platform refused: …”. `None` if nothing was tried.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<Text>,
        /// The first characters of the digest.
        digest: String,
        /// The approval to which the buttons refer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approval: Option<ApprovalId>,
        /// The buttons that the card still offers.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        follow_ups: Vec<FollowUp>,
        /// The message of the card that replaced this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        newer: Option<Slot>,
        /// The person who asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked_by: Option<UserId>,
        /// The people who changed the request before it was decided.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        edited_by: Vec<UserId>,
        /// True if the assistant suggested the change while answering `asked_by`.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_suggested: bool,
    },
}

/// The progress of a long change that can be stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meter {
    /// The approval to which the stop button refers.
    pub approval: ApprovalId,
    /// The amount done.
    pub done: u64,
    /// The total amount.
    pub total: u64,
    /// The estimated remaining time at the current pace, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_left: Option<u64>,
    /// A remark on the progress; may be empty.
    pub note: Text,
    /// The question that a person must answer before the change continues, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<Asked>,
}

/// A question that the outside system asks during a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The question.
    pub text: Text,
    /// The label of the button for the answer, such as `Answer…`.
    pub answer: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_so_afterwards_is_no_part_of_the_act() {
        let act = |title: &str, done: &str| Card::new(title, "", done).done_act().to_owned();
        let start = "Start “Math Hints”?";
        assert_eq!(act(start, "Started “Math Hints”: it is running now. It ends on 1 May."), "Started “Math Hints”");
        assert_eq!(act("Create “A. b”?", "Created “A. b”. It stays inactive."), "Created “A. b”");
        assert_eq!(
            act("Update “A”: weights, points?", "Updated “A”: weights, points."),
            "Updated “A”: weights, points"
        );
        assert_eq!(act("Stop 2 experiments?", "Stopped 2 experiments: “A”, “B”."), "Stopped 2 experiments: “A”, “B”");
        assert_eq!(act("Run “demo”?", "Ran demo."), "Ran demo");
    }
}
