//! Reports messages that could not be delivered, and lists those that a person may see.

use countersign_core::{
    clock::Timestamp,
    ids::{Nonce, Slot, ThreadId, UserId},
    reply::{Part, Reply, Text},
};
use countersign_graph::{
    action::ActionRecord,
    store::{DeadLetter, Outbound, Outgoing, Undelivered},
};

use super::sight::Asker;
use crate::presentation::links::{Links, linked};

/// The maximum number of messages that are listed.
const MAX_LISTED: usize = 10;

/// The prefix of the slots of messages that report an undelivered one.
const REPORT_PREFIX: &str = "undelivered:";

/// Returns the messages among the dead letters, each with its thread.
pub fn messages(letters: &[DeadLetter]) -> impl Iterator<Item = (&DeadLetter, &ThreadId, &Outgoing)> {
    letters.iter().filter_map(|letter| match (&letter.thread, &letter.what) {
        (Some(thread), Undelivered::Message(outgoing)) => Some((letter, thread, &**outgoing)),
        _ => None,
    })
}

/// Appends to a reply the undelivered messages that the asker may see: those of their channel,
/// direct messages to them, and those with a card among `records`.
pub fn with_undelivered(
    reply: Reply,
    letters: &[DeadLetter],
    asker: &Asker,
    records: &[ActionRecord],
    links: &Links,
) -> Reply {
    let may_see = |(_, thread, outgoing): &(&DeadLetter, &ThreadId, &Outgoing)| {
        let of_card =
            records.iter().any(|record| record.thread == **thread && outgoing.slot.as_ref() == Some(&record.slot));
        match &outgoing.body {
            Outbound::Direct { to, .. } => *to == asker.by,
            _ => of_card || asker.place == (thread.team.clone(), thread.channel.clone()),
        }
    };
    let seen: Vec<_> = messages(letters).filter(may_see).collect();
    if seen.is_empty() {
        return reply;
    }
    let lines = seen.iter().take(MAX_LISTED).map(|(letter, thread, outgoing)| {
        linked(line(letter, outgoing), links.message(&thread.channel, &thread.root, &thread.root), "open the thread")
    });
    let reply = reply.and(Part::Text("Not delivered:".into())).and(Part::List(lines.collect()));
    let reply = match seen.len() {
        more if more > MAX_LISTED => reply.hint(format!("{} more are not listed.", more - MAX_LISTED)),
        _ => reply,
    };
    seen.iter().take(MAX_LISTED).enumerate().fold(reply, |reply, (n, (_, _, outgoing))| {
        let label = if seen.len() == 1 { "Send again".to_owned() } else { format!("Send again: {}", n + 1) };
        reply.resend(label, outgoing.nonce.as_str())
    })
}

/// Returns the line of a message: `Card Start “Math Hints”? · since … · invalid_blocks`
fn line(letter: &DeadLetter, outgoing: &Outgoing) -> Text {
    let what = match &outgoing.body {
        Outbound::Card { card, .. } => Text::from("Card ").bold(card.title.clone()),
        Outbound::File { name, .. } => Text::from("File ").code(name.clone()),
        body => Text::from(match kind(body) {
            "direct message" => "A direct message",
            "card" => "A card",
            _ => "An answer",
        }),
    };
    what.plain(" · since ").moment(letter.at).plain(" · ").code(letter.reason.clone())
}

/// Returns the slot of the direct message that reports `of` as undelivered, or of that to `another` person.
pub fn slot_of_direct_notice(of: &Outgoing, another: Option<&UserId>) -> Slot {
    let whose = another.map(|person| format!(":{person}")).unwrap_or_default();
    Slot::new(format!("{}:direct{whose}", slot_of_notice(of)))
}

/// Returns the slot of the message that reports `of` as undelivered.
pub fn slot_of_notice(of: &Outgoing) -> Slot {
    let name = of.slot.as_ref().map_or(of.nonce.as_str(), Slot::as_str);
    Slot::new(format!("{REPORT_PREFIX}{name}"))
}

/// Returns true if a message reports another as undelivered.
pub fn is_report(outgoing: &Outgoing) -> bool {
    outgoing.slot.as_ref().is_some_and(|slot| slot.as_str().starts_with(REPORT_PREFIX))
}

/// Returns the kind of a message, for metrics and lists.
pub fn kind(body: &Outbound) -> &'static str {
    match body {
        Outbound::Status { .. } => "status",
        Outbound::Reply { .. } => "answer",
        Outbound::Card { .. } | Outbound::Redraw { .. } => "card",
        Outbound::File { .. } => "file",
        Outbound::Direct { .. } => "direct message",
        Outbound::Remove => "removal",
        Outbound::Elsewhere { .. } => "message elsewhere",
    }
}

/// Returns the messages that remove outdated reports on `of`, in its thread and from direct
/// messages.
pub fn report_removals(of: &Outgoing, at: Timestamp) -> [Outgoing; 2] {
    [slot_of_notice(of), slot_of_direct_notice(of, None)].map(|slot| Outgoing {
        slot: Some(slot),
        nonce: Nonce::fresh(),
        progress: false,
        not_before: at,
        body: Outbound::Remove,
    })
}

/// Returns the reply if a message is being sent again.
pub fn sending_again() -> Reply {
    Reply::text("I'm sending it again. If Slack refuses it once more, I'll say so.")
}

/// Returns the reply if the message has been delivered or deleted in the meantime.
pub fn nothing_to_send() -> Reply {
    Reply::text("There's nothing left to send: this message was delivered or replaced.")
}

/// Returns the reply if an interaction failed each time.
pub fn not_handled() -> Reply {
    Reply::text("I couldn't process this after many tries. Nothing was changed.")
        .hint("Try again. If it still fails, tell the app's operator: `countersign check` lists it.")
}
