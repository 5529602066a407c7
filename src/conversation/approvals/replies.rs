//! The replies to people whose decision did not count, and other texts about cards.

use countersign_core::{
    clock::Timestamp,
    ids::UserId,
    reply::{Part, Reply, Text},
};
use countersign_graph::{
    action::{ActionRecord, Approver, Policy, Status, Verdict},
    keyring::Proof,
};
use countersign_slack::mrkdwn::Mrkdwn;

use super::{consent::UnseenReason, policy::Denial};

/// Returns the reply if the key in the button is not known, or no longer.
pub fn not_known() -> Reply {
    Reply::text("This card is no longer on record, so its buttons do nothing.")
        .hint("Ask again in the thread for a new card.")
}

/// Returns the reply if the card's record cannot be read.
pub fn not_readable() -> Reply {
    Reply::text("The record of this card can't be read. Nothing was changed.")
        .hint("Ask again in the thread for a new card, and tell the app's operator.")
}

/// Returns the reply if the button is on a copy of the card; `is_gone` is true if the copy was just
/// removed.
pub fn copied(is_gone: bool) -> Reply {
    match is_gone {
        true => Reply::text("This card was posted twice, so I removed this copy. Nothing was changed.")
            .hint("Use the other card in this thread."),
        false => Reply::text("This is a copy of a card, so its buttons do nothing.")
            .hint("Use the original card in its thread."),
    }
}

/// Returns the reply if the record differs from what its card shows, so that it cannot be approved.
pub fn not_what_was_shown(proof: &Proof) -> Reply {
    let (text, hint) = match proof {
        Proof::Ours | Proof::Altered => (
            "The stored request differs from what this card shows, so your approval doesn't count.".to_owned(),
            "Ask again in the thread for a new card, and tell the app's operator.",
        ),
        Proof::KeyMissing(key) => (
            format!("This card was signed with digest key {key}, which is no longer configured, so your approval doesn't count."),
            "Ask again in the thread for a new card. If the app's operator restores the key, this card works again.",
        ),
        Proof::UnknownVersion(version) => (
            format!("This card has a seal of version {version}, which this program doesn't know, so your approval doesn't count."),
            "Ask again in the thread for a new card, and tell the app's operator.",
        ),
        Proof::Unsealed => (
            "This card has no seal, so your approval doesn't count: the seal was removed, or another program made the card."
                .to_owned(),
            "Ask again in the thread for a new card.",
        ),
    };
    Reply::text(text).hint(hint)
}

/// Returns the reply if the card expired before the person decided.
pub fn out_of_time() -> Reply {
    Reply::text("This card has expired. Nothing was changed.").hint("If you still want it, ask again in the thread.")
}

/// Returns the reply to a yes if the person cannot have read the current card.
pub fn not_seen(record: &ActionRecord, why: UnseenReason) -> Reply {
    let (before, after, then) = match why {
        UnseenReason::NotShown => ("The card ", " isn't in the thread,", "/countersign pending shows why."),
        UnseenReason::Unsure => {
            ("I can't tell whether the card ", " is up to date in the thread,", "Use the buttons on the card.")
        }
        UnseenReason::Before => {
            ("You said yes before the card ", " was posted,", "Read the card, then use its buttons or say yes again.")
        }
        UnseenReason::Older => {
            ("The card ", " is being updated,", "Read the updated card, then use its buttons or say yes again.")
        }
    };
    let text = Text::from(before).bold(record.card.title.clone()).plain(after).plain(" so nothing was approved.");
    Reply::text(text).hint(then)
}

/// Returns the reply to a person who may not settle an action with an unknown outcome.
pub fn may_not_settle(record: &ActionRecord, by: &UserId, in_channel: bool, why: Denial) -> Reply {
    let text = match why {
        Denial::OwnRequest if record.requested_by == *by => {
            "You asked for this, so another person has to confirm that it was done."
        }
        Denial::OwnRequest => "You edited this, so another person has to confirm that it was done.",
        Denial::NotAnApprover | Denial::AlreadyApproved => "You can't resolve this, but you can press Check again.",
        Denial::GroupLookupFailed => return denied(record, by, in_channel, why),
        Denial::Account(denial) => return denial.may_not_decide(),
    };
    Reply::text(text).hint(Text::from("Who can resolve this: ").join(deciders(record, in_channel)).plain("."))
}

/// Returns the people who may decide, for a reader in the channel of the request or in another
/// place.
fn deciders(record: &ActionRecord, in_channel: bool) -> Text {
    if in_channel { record.deciders() } else { record.deciders_elsewhere() }
}

/// Returns the reply if another person was faster or the card has expired. `newer` is the address
/// of the card that replaced this one.
pub fn already_decided(record: &ActionRecord, now: Timestamp, newer: Option<String>) -> Reply {
    if record.status.is_open() {
        return out_of_time();
    }
    if let Some(settled) = &record.settled {
        let text = Text::new().person(settled.by.clone()).plain(format!(" resolved this {}", ago(now, settled.at)));
        return Reply::text(text.plain(". The card says how."));
    }
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
        (Verdict::Cancelled, Some(by)) if record.was_closed_by_another() => {
            Text::new().person(by.clone()).plain(format!(" closed this {ago}, so nothing was changed"))
        }
        (Verdict::Cancelled, _) => Text::from(format!("This request was withdrawn {ago}, so nothing was changed")),
        (Verdict::Superseded, Some(by)) if record.was_edited() => {
            Text::new().person(by.clone()).plain(format!(" edited this {ago}, so another card took its place"))
        }
        (Verdict::Superseded, _) => Text::from(format!("A newer request took the place of this one {ago}")),
        (Verdict::Obsolete { why }, _) => why.clone().plain(". Nothing was changed"),
        (Verdict::Approved | Verdict::Rejected { .. }, None) => Text::from(format!("This was decided {ago}")),
    };
    let then = match record.status {
        _ if record.stopped_after().is_some() => "; it was stopped midway. The card shows how far it got.",
        Status::Approved | Status::Intent => "; it is running now.",
        Status::Done => "; it is done.",
        Status::Failed => "; it failed. The card says why.",
        Status::Unknown | Status::Settled => "; it isn't known whether it worked. The card says more.",
        _ => ".",
    };
    let reply = Reply::text(text.plain(then));
    match newer {
        Some(url) => reply.and(Part::Text(Text::new().link(url, "Open the newer card"))),
        None => reply,
    }
}

/// Returns the reply to a person who may not decide. `in_channel` is true if it is read in the
/// channel of the request.
pub fn denied(record: &ActionRecord, by: &UserId, in_channel: bool, why: Denial) -> Reply {
    let text = match why {
        Denial::Account(denial) => return denial.may_not_decide(),
        Denial::OwnRequest if record.is_suggested() && record.requested_by == *by => {
            "The assistant suggested this while answering you, so another person has to approve it."
        }
        Denial::OwnRequest if record.card.irreversible && record.requested_by == *by => match record.undo {
            None => "You asked for this and it can't be undone, so another person has to approve it.",
            // A standing approval can be ended, but the changes made under it remain.
            Some(_) => {
                "You asked for this, and some of its effects can't be undone, so another person has to approve it."
            }
        },
        Denial::OwnRequest if record.requested_by == *by => "You asked for this, so another person has to approve it.",
        Denial::OwnRequest => "You edited this, so another person has to approve it.",
        Denial::NotAnApprover => "You can't approve or reject this.",
        Denial::AlreadyApproved => "You already approved this. Another person has to approve it too.",
        Denial::GroupLookupFailed => {
            "I can't look up the user groups right now, so I couldn't check whether you can decide. Try again."
        }
    };
    let reply = Reply::text(text);
    let anyone = record.policy.approvers == [Approver::Channel] && record.policy.also.is_empty();
    match why {
        Denial::OwnRequest if anyone && record.thread.channel.is_direct() => {
            reply.hint("No one else can read this conversation. Ask in a channel where someone can approve it.")
        }
        Denial::OwnRequest | Denial::AlreadyApproved if anyone => reply,
        _ => reply.hint(Text::from("Who can decide: ").join(deciders(record, in_channel)).plain(".")),
    }
}

/// Returns the reply to a person who may not see the whole request.
pub fn not_in_channel() -> Reply {
    Reply::text("You aren't in the conversation of this request, so I can't show it to you.")
        .hint("Ask someone there to add you.")
}

/// Returns the reply to a person who may not withdraw the request, since it is another person's.
pub fn may_not_withdraw(record: &ActionRecord) -> Reply {
    let text = Text::from("Only ").person(record.requested_by.clone()).plain(" can withdraw this request.");
    Reply::text(text).hint(Text::from("If you don't want it, press ").bold(&*record.card.reject).plain("."))
}

/// Returns the reply if the new values would leave too few people who may approve them.
pub fn nobody_left(policy: &Policy) -> Reply {
    let why = match (policy.needed, policy.own_request) {
        (..=1, _) => {
            "If you save this, no one can approve it: people who asked for or edited a request can't approve it."
                .to_owned()
        }
        (needed, true) => format!(
            "If you save this, too few people can approve it: it needs {needed} approvals, and everyone who asked for or edited it counts as one person."
        ),
        (needed, false) => {
            format!(
                "If you save this, too few people can approve it: it needs {needed} approvals, and people who asked for or edited it can't approve it."
            )
        }
    };
    Reply::text(format!("{why} Ask someone else to edit it, or leave it as it is."))
}

/// Returns the reply to a typed yes if only the button counts.
pub fn use_the_button(record: &ActionRecord) -> Reply {
    press_a_button(record, Text::from("A typed answer isn't enough for this."))
}

/// Returns the reply to a typed yes after something that may have been a no, and the card stayed open.
pub fn after_a_no(record: &ActionRecord) -> Reply {
    let said = Text::from("Something said here while the card ").bold(record.card.title.clone());
    press_a_button(record, said.plain(" was open may have meant no, so a typed yes isn't enough."))
}

/// Returns the reply to a typed yes or no that follows another person's message, and may be an
/// answer to that.
pub fn not_taken(record: &ActionRecord) -> Reply {
    press_a_button(record, Text::from("I can't tell whether this answers the card, so it didn't count."))
}

fn press_a_button(record: &ActionRecord, why: Text) -> Reply {
    let (approve, reject) = (&*record.card.approve, &*record.card.reject);
    Reply::text(why.plain(" Press ").bold(approve).plain(" or ").bold(reject).plain(" on the card."))
}

/// Returns the reply to a typed yes if several cards are open.
pub fn which_card(open: &[ActionRecord]) -> Reply {
    let titles = open.iter().map(|record| Text::from(record.card.title.clone())).collect();
    Reply::text("Several cards are open here, so I can't tell which one you mean. Use the buttons on one of them:")
        .and(Part::List(titles))
}

/// Returns the reply if a window could not be opened.
pub fn not_opened() -> Reply {
    Reply::text("Slack didn't open the window in time. Try again.")
}

/// Returns the reply to an answer for which there is no open question any more.
pub fn no_longer_asked() -> Reply {
    Reply::text("This question is closed: it was answered, or the call ended.")
}

/// Returns the reply to a person who pressed a button instead of answering.
pub fn answered(action: &str) -> Reply {
    Reply::text(match action {
        "decline" => "OK, the call continues without an answer.",
        "cancel" => "OK, I asked to cancel the call.",
        _ => "OK, I passed your answer on.",
    })
}

/// Returns the reply if the card has no form.
pub fn no_form() -> Reply {
    Reply::text("This request has no form. Tell me in the thread what to change.")
}

/// Returns the text above a form, in mrkdwn.
pub fn form_intro(record: &ActionRecord, replaces: bool) -> String {
    let line = Mrkdwn::new(1500).bold(record.act());
    match replaces {
        true => line.plain(". Saving replaces the card with a new one, which still needs approval."),
        false => {
            let ended = match record.decisions.last().map(|last| &last.verdict) {
                Some(Verdict::Cancelled) if !record.was_closed_by_another() => "withdrawn",
                Some(Verdict::Rejected { .. }) => "rejected",
                _ => "closed",
            };
            line.plain(&format!(" was {ended}. Saving posts a new card, which still needs approval."))
        }
    }
    .finish()
}

/// Returns the message that a card will expire soon, or is still open. `asked_by` is the person who asked, if a person
/// did; otherwise it is for those who can decide.
pub fn reminder(record: &ActionRecord, asked_by: Option<&UserId>) -> Reply {
    let text = match asked_by {
        Some(person) => Text::from("⏰ ").person(person.clone()).plain(", "),
        None => Text::from("⏰ "),
    };
    let text = match (record.approvals_so_far(), asked_by) {
        (None, Some(_)) => text.plain("no one has decided yet: "),
        (None, None) => text.plain("No one has decided yet: "),
        (Some((count, who)), _) => text.plain(format!("{count} approved so far (")).join(who).plain("): "),
    };
    let text = text.bold(record.act()).plain(".");
    let text = match record.expires_at.is_never() {
        true => text,
        false => text.plain(" The card expires ").moment(record.expires_at).plain("."),
    };
    let deciders = Text::from("Who can decide: ").join(record.deciders()).plain(".");
    match asked_by {
        Some(_) => Reply::text(text).hint(deciders),
        None => Reply::text(text.plain(" ").join(deciders)),
    }
}

/// Returns the message that more people may decide, since there was no decision for a long time.
pub fn escalated(record: &ActionRecord) -> Reply {
    let text = match record.approvals_so_far() {
        None => Text::from("No one has decided about ").bold(record.act()).plain(" for a while. From now on, "),
        Some((count, who)) => {
            let text = Text::new().bold(record.act()).plain(format!(": {count} approved (")).join(who);
            text.plain("), and no one else has for a while. From now on, ")
        }
    };
    Reply::text(text.join(record.newcomers_in_words()).plain(" can decide too."))
}

/// Returns the elapsed time as text.
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
