//! What a person is told whose click did not count.

use super::policy::Denied;
use crate::{
    clock::Timestamp,
    graph::action::{ActionRecord, Approver, Status, Verdict},
    reply::{Reply, Text},
};

/// The key in the button is not, or no longer, known.
pub fn not_known() -> Reply {
    Reply::text("I don't know this card any more, so the button does nothing.")
        .hint("Ask again in the thread for a fresh one.")
}

/// The button was copied from the card to another message.
pub fn copied() -> Reply {
    Reply::text("This is a copy of a card, so its buttons do nothing.").hint("Please use the original in its thread.")
}

/// Somebody was faster, or time was.
pub fn already_decided(record: &ActionRecord, now: Timestamp) -> Reply {
    let Some(last) = record.decisions.last() else {
        return Reply::text("This card is closed.");
    };
    let ago = ago(now, last.at);
    let text = match (&last.verdict, &last.by) {
        (Verdict::Approved, Some(by)) => Text::new().person(by.clone()).plain(format!(" approved this {ago}")),
        (Verdict::Rejected { .. }, Some(by)) => {
            Text::new().person(by.clone()).plain(format!(" rejected this {ago}, so nothing was changed"))
        }
        (Verdict::Expired, _) => Text::from(format!("This card expired {ago}, so nothing was changed")),
        (Verdict::Cancelled, _) => Text::from(format!("This request was withdrawn {ago}, so nothing was changed")),
        (Verdict::Superseded, _) => Text::from(format!("A newer request took the place of this one {ago}")),
        (Verdict::Approved | Verdict::Rejected { .. }, None) => Text::from(format!("This was decided {ago}")),
    };
    let then = match record.status {
        Status::Approved | Status::Intent => "; it is being done now.",
        Status::Done => "; it is done.",
        Status::Failed => "; it was tried and did not work. The card says why.",
        Status::Unknown => "; whether it worked is not known. The card says more.",
        _ => ".",
    };
    Reply::text(text.plain(then))
}

/// The person may not decide.
pub fn denied(record: &ActionRecord, why: Denied) -> Reply {
    let text = match why {
        Denied::OwnRequest if record.card.irreversible => {
            "You asked for this, and it cannot be undone, so another person has to approve it."
        }
        Denied::OwnRequest => "You asked for this, so another person has to approve it.",
        Denied::NotAnApprover => "You cannot decide about this.",
        Denied::Twice => "Your approval is counted already; another person has to approve as well.",
    };
    let reply = Reply::text(text);
    let anyone = record.policy.approvers == [Approver::Channel];
    match why {
        Denied::OwnRequest if anyone && record.thread.channel.is_direct() => {
            reply.hint("Nobody else can read this conversation. Ask me in a channel, where somebody can approve it.")
        }
        Denied::OwnRequest | Denied::Twice if anyone => reply,
        _ => reply.hint(Text::from("Who may decide: ").join(record.policy.deciders()).plain(".")),
    }
}

/// A typed yes, where only the button counts.
pub fn use_the_button(record: &ActionRecord) -> Reply {
    Reply::text(
        Text::from("This cannot be undone, so a typed answer is not enough. Please press ")
            .bold(&*record.card.approve)
            .plain(" or ")
            .bold(&*record.card.reject)
            .plain(" on the card."),
    )
}

/// A typed yes, with several cards open.
pub fn which_card(open: &[ActionRecord]) -> Reply {
    let titles = open.iter().map(|record| Text::from(record.card.title.clone())).collect();
    Reply::text("Several cards are open here, so I can't tell which one you mean. Please press a button:")
        .and(crate::reply::Part::List(titles))
}

/// How long ago, for people.
fn ago(now: Timestamp, then: Timestamp) -> String {
    let seconds = now.since(then).as_secs();
    match seconds {
        0..=1 => "a moment ago".to_owned(),
        2..=119 => format!("{seconds} s ago"),
        120..=7199 => format!("{} min ago", seconds / 60),
        7200..=172_799 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86400),
    }
}
