//! The action ids of buttons, by which a press is recognised, and the values of those that rate an answer.
//!
//! The buttons of cards are also stored by these names, when they are pressed.

use countersign_core::ids::RunId;

/// The action id of the button that approves; its value is the approval's key.
pub const APPROVE: &str = "approve";

/// The action id of the button that rejects; its value is the approval's key.
pub const REJECT: &str = "reject";

/// The action id of the button that stops a running action; its value is the approval's key.
pub const STOP: &str = "stop";

/// The action id of the button that opens the form of an open card.
pub const EDIT: &str = "edit";

/// The action id of the button that shows everything that the digest covers.
pub const SHOW_ALL: &str = "show_all";

/// The action id of the button that undoes a change.
pub const UNDO: &str = "undo";

/// The action id of the button that requests the same action again.
pub const AGAIN: &str = "again";

/// The action id of the button that opens the form of a card that was rejected or withdrawn.
pub const CHANGE: &str = "change";

/// The action id of the button that checks again whether the change was made.
pub const CHECK: &str = "check";

/// The action id of the button that states that the change was made.
pub const MARK_DONE: &str = "mark_done";

/// The action id of the button that states that the change was not made, and is not wanted any
/// more.
pub const ABANDON: &str = "abandon";

/// The action id of the button that answers a question in the middle of a change.
pub const ANSWER: &str = "answer";

/// The action id of the button that declines to answer such a question; the change continues
/// without an answer.
pub const DECLINE: &str = "decline";

/// The action id of the button that cancels the change instead of answering the question.
pub const CANCEL: &str = "cancel_call";

/// The action id of the button that withdraws the person's own request; its value is the approval's
/// key.
pub const WITHDRAW: &str = "withdraw";

/// The action id of the buttons that rate an answer as helpful or not ([`rating_values`]).
pub const RATE: &str = "rate";

/// The prefix of the action ids of choices. A number follows, and the value is the text that a
/// choice says.
pub const SAY: &str = "say:";

/// The prefix of the action ids of buttons that send a message again. A number follows, and the
/// value is the key of the message.
pub const SEND_AGAIN: &str = "send_again:";

/// The prefix of the action ids of the buttons that turn pages. Their value contains the pages.
pub const HOME_PAGE: &str = "home:page:";

/// The prefix of the action ids of the buttons that open the window for something new. The callback
/// id of the shortcut follows.
pub const HOME_NEW: &str = "home:new:";

/// The prefix of the action ids of the buttons that turn a page; the value is the number of the page.
pub const SHOWN_PAGE: &str = "show_page:";

/// The prefix of the value of the button for a helpful answer. The run follows.
const HELPED: &str = "helped:";

/// The prefix of the value of the button for an answer that did not help. The run follows.
const DID_NOT: &str = "did-not:";

/// Returns the values of the two buttons below an answer of `run`, “helpful” first.
pub fn rating_values(run: &RunId) -> [String; 2] {
    [format!("{HELPED}{run}"), format!("{DID_NOT}{run}")]
}

/// Parses a value into the run, and true if its answer helped.
pub fn read_rating(value: &str) -> Option<(RunId, bool)> {
    let of = |prefix: &str| value.strip_prefix(prefix).map(RunId::from);
    of(HELPED).map(|run| (run, true)).or_else(|| of(DID_NOT).map(|run| (run, false)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_contains_its_run_and_rating() {
        let run = RunId::from("r1");
        let [yes, no] = rating_values(&run);
        assert_eq!(read_rating(&yes), Some((run.clone(), true)));
        assert_eq!(read_rating(&no), Some((run, false)));
        assert_eq!(read_rating("approve"), None);
    }
}
