//! The status of an action as text.

use countersign_graph::action::{ActionRecord, Status};

/// Returns the status as a phrase that follows the action's name.
pub fn words(record: &ActionRecord) -> String {
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
