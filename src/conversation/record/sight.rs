//! The actions and standing approvals that a person may see outside of their threads, and their status as text.
//!
//! A title can reveal the subject of a private channel, so lists do not rely on channel membership.
//! A person may see
//!
//! 1. requests made *in the channel where they typed the command*, since they can read that channel;
//! 2. their own requests in any channel, including direct messages;
//! 3. actions they decided on;
//! 4. cards that wait for them, since the shown or the current policy names them or one of their user groups.
//!
//! This requires no scope for reading the members of channels, and uses no data that could be out
//! of date.
//!
//! A single request is shown by the same rules ([`may_see`]), and to those who can read its conversation now.

use countersign_core::ids::{ChannelId, TeamId, UserId};
use countersign_graph::action::{ActionRecord, Label, Status};

/// A person who asks for a list, and the channel from which they ask.
#[derive(Clone, Debug)]
pub struct Asker {
    /// The person.
    pub by: UserId,
    /// The channel where the command was typed.
    pub place: (TeamId, ChannelId),
    /// The person's user groups, as far as policies name them.
    pub groups: Vec<String>,
    /// True if the current settings name the person anywhere as an approver.
    pub is_named: bool,
}

impl Asker {
    /// Returns the labels of the open actions that the person may see.
    pub fn waiting(&self) -> Vec<Label> {
        let mut labels = vec![self.here(), Label::AskedBy(self.by.clone())];
        labels.extend(approver_labels(&self.by, &self.groups));
        labels
    }

    /// Returns the labels of the past actions that the person may see.
    pub fn done(&self) -> Vec<Label> {
        vec![self.here(), Label::AskedBy(self.by.clone()), Label::DecidedBy(self.by.clone())]
    }

    fn here(&self) -> Label {
        let (team, channel) = self.place.clone();
        Label::Within(team, channel)
    }
}

/// Returns true if a person who does not read the conversation of a request may see it all the same: it is their own, or
/// they decided on it, or it names them or one of these groups of theirs.
pub fn may_see(record: &ActionRecord, by: &UserId, groups: &[String]) -> bool {
    let mut labels = approver_labels(by, groups);
    labels.extend([Label::AskedBy(by.clone()), Label::DecidedBy(by.clone())]);
    record.is_under(&labels)
}

/// Returns the labels that name a person as an approver.
pub fn approver_labels(user: &UserId, groups: &[String]) -> Vec<Label> {
    let groups = groups.iter().cloned().map(Label::NamesGroup);
    std::iter::once(Label::Names(user.clone())).chain(groups).collect()
}

/// Returns the action and its status: `Start “Math Hints”` and ` was rejected`, but `Started “Math Hints”` and nothing.
pub fn act_and_status(record: &ActionRecord) -> (&str, String) {
    let done = record.card.done_act();
    let is_done = record.status == Status::Done && record.stopped_after().is_none() && !record.scope.is_of_plan();
    match is_done && !done.is_empty() {
        true => (done, String::new()),
        false => (record.act(), format!(" {}", status(record))),
    }
}

/// Returns the status as a phrase that follows the action's name.
fn status(record: &ActionRecord) -> String {
    if let Some(stopped) = record.stopped_after() {
        return format!("was {stopped}");
    }
    let words = match record.status {
        Status::Proposed => "is being prepared",
        Status::Pending => "is waiting for a decision",
        Status::Approved | Status::Intent => "is in progress",
        Status::Done if record.scope.is_of_plan() => "was approved", // its steps follow
        Status::Done => "was done",
        Status::Failed => "failed",
        Status::Unknown => "has no known outcome",
        Status::Settled => "was marked as done",
        Status::Rejected => "was rejected",
        Status::Expired => "expired",
        Status::Superseded => "was replaced",
        Status::Cancelled if record.was_closed_by_another() => "was closed",
        Status::Cancelled => "was withdrawn",
    };
    words.to_owned()
}
