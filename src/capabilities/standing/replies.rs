//! The replies about standing approvals.

use countersign_capabilities::{Allowance, AllowancePlace, Allowances};
use countersign_core::{
    clock::Timestamp,
    reply::{Card, Fact, Part, Reply, Text},
};
use countersign_graph::action::ActionRecord;
use serde_json::Value;

use super::grant::{self, Bounds, Grant, GrantStatus, NotCovered};

/// Returns the card to grant a standing approval.
pub fn allow_card(allowances: &Allowances, allowance: &Allowance, bounds: &Bounds, place: &AllowancePlace) -> Card {
    let Bounds { id, within, limit, until, .. } = bounds;
    let (before, after) = allowance.title;
    let mut facts = vec![
        Fact::new("Allows", allowance.allows),
        Fact::new("In", place.words.clone()),
        Fact::new("At most", format!("{} in total", allowance.amount(*limit))),
        Fact::new("Until", grant::moment(*until)),
    ];
    facts.extend(place.facts.iter().cloned());
    let warnings = std::iter::once(allowance.warning).chain(allowance.stays).map(Text::from).collect();
    Card {
        facts,
        warnings,
        notes: vec![
            Text::from("It applies only in this conversation, and never to changes outside an envelope."),
            Text::new().plain("To end it at any time, say ").code(format!("revoke standing approval {id}")),
        ],
        irreversible: allowance.stays.is_some() && place.in_use,
        ..Card::new(
            format!("{before}{}{after}", within.name()),
            "Grant approval",
            format!("Granted {id}: {}.", bounds.words(allowances)),
        )
    }
}

/// Returns the card to end a standing approval.
pub fn revoke_card(allowances: &Allowances, granted: &Grant, now: Timestamp) -> Card {
    let Bounds { id, what, limit, .. } = &granted.bounds;
    let after = allowances.get(what).map_or("After that, each of these needs approval again.", |known| known.after);
    let by = granted.granted_by.iter().enumerate().fold(Text::new(), |text, (nth, person)| {
        if nth > 0 { text.plain(" and ").person(person.clone()) } else { text.person(person.clone()) }
    });
    Card {
        facts: vec![
            Fact::new("Allows", granted.bounds.words(allowances)),
            Fact::new("Granted by", by),
            Fact::new("Used", format!("{} of {limit}", granted.used)),
            Fact::change("Status", status_in_words(granted.status(now)), "revoked"),
        ],
        notes: vec![Text::from(after)],
        ..Card::new(
            format!("End the standing approval {id}?"),
            "End approval",
            format!("Ended the standing approval {id}."),
        )
    }
}

/// Returns the reason why a standing approval does not cover a change of its kind, as a line of the card on which the
/// change is approved instead.
pub fn not_covered(allowances: &Allowances, grant: &Grant, record: &ActionRecord, why: NotCovered) -> Text {
    let line = Text::from("The standing approval ").code(&grant.bounds.id).plain(" doesn't cover this: ");
    match why {
        NotCovered::Outside => line.plain("changes outside an envelope always need approval."),
        NotCovered::OwnRequest => line
            .person(record.requested_by.clone())
            .plain(" granted it and is asking for this, so another person has to approve it."),
        NotCovered::NotEntitled => line.plain("no one who granted it can approve this."),
        NotCovered::TooFew { counted, needed } => line.plain(format!(
            "this needs {needed} approvals, and only {counted} of the people who granted it can approve."
        )),
        NotCovered::TooMuch { amount, left } => {
            let amount = allowances.amount(&grant.bounds.what, amount);
            line.plain(format!("this is {amount}, and {left} of {} are left.", grant.bounds.limit))
        }
    }
}

fn status_in_words(standing: GrantStatus) -> &'static str {
    match standing {
        GrantStatus::Open => "can be used",
        GrantStatus::UsedUp => "used up",
        GrantStatus::Expired => "expired",
        GrantStatus::Revoked => "revoked",
    }
}

/// Returns the list of standing approvals in the answer of `list_standing_approvals`, with buttons to end the ones of
/// this conversation.
pub fn list_reply(answer: &Value) -> Reply {
    let open = answer["open"].as_array().into_iter().flatten().filter(|one| one["here"] != false);
    open.filter_map(|one| one["id"].as_str())
        .take(3)
        .fold(listed(answer), |reply, id| reply.choice(format!("End {id}"), format!("revoke standing approval {id}")))
}

/// Returns the list of standing approvals without buttons, for a place without a thread in which a button could be
/// answered.
pub fn plain_list_reply(answer: &Value) -> Reply {
    match answer["open"].as_array().and_then(|open| open.first()).and_then(|one| one["id"].as_str()) {
        Some(id) => {
            let how = Text::new().plain("To end one, mention me where it applies: ");
            listed(answer).hint(how.code(format!("revoke standing approval {id}")))
        }
        None => listed(answer),
    }
}

fn listed(answer: &Value) -> Reply {
    let read = |key: &str| answer[key].as_array().cloned().unwrap_or_default();
    let (open, over) = (read("open"), read("over"));
    let line = |one: &Value| {
        let part = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
        Text::new().code(part("id")).plain(format!(
            "  {}; {} of {} used{}{}",
            part("allows"),
            one["used"],
            one["limit"],
            match one["standing"].as_str() {
                Some("can be used") | None => String::new(),
                Some(other) => format!(" ({other})"),
            },
            if one["here"] == false { ", in another conversation" } else { "" },
        ))
    };
    let elsewhere = answer["elsewhere"].as_u64().unwrap_or_default();
    if open.is_empty() && over.is_empty() {
        let none = Reply::text("There are no standing approvals here. Every change needs approval.");
        return if elsewhere > 0 { none.hint(elsewhere_note(elsewhere)) } else { none.hint(EXAMPLE) };
    }
    let mut reply = match open.len() {
        0 => Reply::text("No standing approval can be used here. Every change needs approval."),
        _ => Reply::text("Standing approvals (each applies only where it was granted):")
            .and(Part::List(open.iter().map(line).collect())),
    };
    if !over.is_empty() {
        reply = reply.and(Part::Text("Ended:".into())).and(Part::List(over.iter().map(line).collect()));
    }
    if elsewhere > 0 { reply.hint(elsewhere_note(elsewhere)) } else { reply }
}

/// Returns the line about the number of standing approvals that are hidden because others can read the reply.
fn elsewhere_note(elsewhere: u64) -> Text {
    let how_many = match elsewhere {
        1 => "You have another one in another conversation. ".to_owned(),
        n => format!("You have {n} more in other conversations. "),
    };
    Text::new().plain(how_many).code("/countersign standing").plain(" shows them only to you.")
}

/// An example of a request.
const EXAMPLE: &str = "To ask for one: “allow up to 200 simulated users in Math Hints until Friday”.";

/// Says that no standing approval has this name.
pub fn unknown(asked: &str, ids: &[String]) -> Reply {
    let text = Text::new().plain("No standing approval is called “").plain(asked).plain("” here.");
    match ids {
        [] => Reply::text(text).hint("None can be used here right now."),
        ids => ids.iter().take(4).fold(Reply::text(text), |reply, id| {
            reply.choice(format!("End {id}"), format!("revoke standing approval {id}"))
        }),
    }
}

/// Says that the standing approval has already ended.
pub fn already_ended(granted: &Grant, now: Timestamp) -> Reply {
    let text = Text::new().plain("The standing approval ").code(&granted.bounds.id);
    Reply::text(text.plain(format!(" is already {}, so there's nothing to end.", status_in_words(granted.status(now)))))
}

/// Says that the standing approval would be valid for too long.
pub fn too_long(days: i64) -> Reply {
    Reply::text(format!("A standing approval can last at most {days} days."))
        .hint("Name an earlier day, such as “until Friday”.")
}

/// Says that the standing approval would allow too much, or nothing.
pub fn amount_out_of_range(allowance: &Allowance, asked: i64) -> Reply {
    let most = allowance.amount(allowance.most);
    Reply::text(format!("A standing approval can cover 1 to {most}, not {asked}."))
}

/// Says that this kind of change always needs an approval.
pub fn unknown_kind(asked: &str) -> Reply {
    Reply::text(
        Text::new().plain("“").plain(asked).plain(
            "” can't have a standing approval. Only changes that can be undone and tests with simulated users can.",
        ),
    )
    .hint(EXAMPLE)
}

/// Says that the store isn't answering.
pub fn unavailable() -> Reply {
    Reply::text("The list of standing approvals isn't available, so nothing was changed.")
        .hint("Ask again in a minute.")
}

/// Says that no capability has changes that could be allowed.
pub fn nothing_here() -> Reply {
    Reply::text("Nothing here can have a standing approval.")
}
