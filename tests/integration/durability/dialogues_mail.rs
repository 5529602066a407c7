//! The dialogues that a mail begins: it is brought into a thread, answered, and labelled.
//!
//! Here it is also written how they must come out, since that is what mail is about: the mail has one thread, its sender
//! gets one answer at most, which is the one that was shown, in the conversation of the mail.

use countersign_sandbox::{
    faults::Fault,
    gmail::{Letter, SentMail, StoredMail},
};
use serde_json::json;

use super::{
    beside::Beside,
    dialogues::{Act, Dialogue, PLAIN, Seen, Turn, approves, presses, says},
    mail_servers::Writer,
    script::{Outcome, World},
};

/// The request that sends a draft.
const SEND: &str = "POST /gmail/v1/users/me/drafts/send";

/// A customer writes.
fn arrives(world: &World) {
    let letter = Letter::new("Dana Fields <dana@customer.example>", "Prices", "How much is the small plan?");
    world.mail().gmail.receives(&letter);
}

/// A customer writes, and the answer to the first request that sends a draft will be lost.
fn arrives_and_an_answer_is_lost(world: &World) {
    world.mail().gmail.faults().next_on(SEND, Fault::LostAnswer);
    arrives(world);
}

/// The draft waits for a person.
fn waits(seen: &Seen) -> bool {
    seen.cards() == 1 && seen.offers("edit")
}

/// The reply was sent, and its card says so.
fn is_sent(seen: &Seen) -> bool {
    seen.cards() == 0 && seen.effects == 1 && seen.has("Sent the reply to")
}

const ANSWERED: Dialogue = Dialogue {
    name: "mail",
    beside: Beside::Mail(Writer::Templates),
    before: arrives,
    asked: waits,
    turns: &[approves(is_sent)],
    effects: mailbox,
    agrees: is_answered_once,
    ..PLAIN
};

/// All of them.
pub(super) const MAIL: &[Dialogue] = &[
    Dialogue {
        name: "mail whose draft is edited",
        turns: &[
            Turn {
                act: Act::FillsIn("ana", "edit", "Reply", "Hello Dana,\n\nit costs 5 a month."),
                then: |seen| waits(seen) && seen.has("it costs 5 a month."),
            },
            approves(is_sent),
        ],
        ..ANSWERED
    },
    Dialogue {
        name: "mail that is rejected",
        turns: &[Turn {
            act: Act::FillsIn("bo", "reject", "Reason", "Not today"),
            then: |seen| seen.cards() == 0 && seen.has("Rejected by") && seen.has("Not today"),
        }],
        agrees: |undisturbed, interrupted| is_ended(undisturbed, interrupted, "rejected"),
        ..ANSWERED
    },
    Dialogue {
        name: "mail that is spam",
        turns: &[
            says("ana", "this is spam", |seen| seen.has("Mark “Prices” as spam?")),
            presses("bo", "approve", "as spam?", |seen| seen.has("Marked as spam. No reply was sent.")),
        ],
        agrees: |undisturbed, interrupted| is_ended(undisturbed, interrupted, "spam"),
        ..ANSWERED
    },
    Dialogue {
        name: "mail that is answered without a person",
        beside: Beside::Mail(Writer::Automatic),
        before: |_| (),
        // It comes when the mailbox is known already.
        asked: |seen| seen.follows > 0,
        turns: &[Turn {
            act: Act::Beside(arrives),
            then: |seen| is_sent(seen) && seen.has("Approved by the operator's setting"),
        }],
        ..ANSWERED
    },
    Dialogue {
        name: "mail with another draft",
        beside: Beside::Mail(Writer::Model),
        turns: &[
            says("ana", "shorter, please", |seen| waits(seen) && seen.has("Someone asked for this draft")),
            approves(is_sent),
        ],
        ..ANSWERED
    },
    Dialogue { name: "mail whose sending has no answer", before: arrives_and_an_answer_is_lost, ..ANSWERED },
];

/// What there is in the end, in Slack and in the mailbox.
fn mailbox(world: &World) -> Vec<String> {
    let gmail = &world.mail().gmail;
    let letters: Vec<_> = gmail.mails().into_iter().filter(|mail| mail.message_id.starts_with("letter-")).collect();
    let threads = world.slack.look(|world| {
        let all = world.messages.values().flat_map(|messages| messages.values());
        let begins = all.filter(|message| message.by_app && message.is_root() && !message.deleted);
        begins.filter(|message| message.words().contains("Email from")).count()
    });
    let own = |mail: &StoredMail| {
        let labels = mail.labels.iter().filter(|label| label.starts_with("Countersign/"));
        format!("labelled {}", labels.cloned().collect::<Vec<_>>().join(" and "))
    };
    let counts = [format!("{threads} thread in Slack"), format!("{} drafts", gmail.drafts().len())];
    let sent = gmail.sent();
    counts
        .into_iter()
        .chain(letters.iter().map(own))
        .chain(sent.iter().map(|sent| told(world, sent, &letters)))
        .collect()
}

/// Who got what, and whether it is an answer to the mail, and the one that was shown.
fn told(world: &World, sent: &SentMail, letters: &[StoredMail]) -> String {
    let is_answer = letters.iter().any(|letter| {
        let of_letter = [letter.message_id.clone()];
        sent.thread == letter.thread && sent.in_reply_to == of_letter && sent.references == of_letter
    });
    let text = sent.text.trim_end();
    let place = if is_answer { "in its conversation" } else { "elsewhere" };
    // What the operator's setting decides may be sent before its card is posted, which then tells of it in short.
    let by_setting = world.slack.look(|world| {
        let mut all = world.messages.values().flat_map(|messages| messages.values());
        all.any(|message| message.words().contains("Approved by the operator's setting"))
    });
    let shown = if by_setting || is_shown(world, text) { "as it was shown" } else { "not as it was shown" };
    format!("sent to {}, {place}, {shown}: “{}”, {text}", sent.to.join(", "), sent.subject)
}

/// Returns true if a card had exactly this text as a quotation.
fn is_shown(world: &World, text: &str) -> bool {
    let quoted = json!({ "type": "rich_text_quote", "elements": [{ "type": "text", "text": text }] });
    let quoted = quoted.to_string();
    world.slack.look(|world| {
        let mut all = world.messages.values().flat_map(|messages| messages.values());
        all.any(|message| json!([message.blocks, message.earlier]).to_string().contains(&quoted))
    })
}

/// True if it came out as without a crash, and that is as it must be: one thread, one answer, one label.
fn is_answered_once(undisturbed: &Outcome, interrupted: &Outcome) -> bool {
    let all = &interrupted.effects;
    let before = ["1 thread in Slack", "0 drafts", "labelled Countersign/answered"];
    let begins = "sent to dana@customer.example, in its conversation, as it was shown: “Re: Prices”, ";
    undisturbed == interrupted && all.len() == 4 && all[..3] == before && all[3].starts_with(begins)
}

/// True if it came out as without a crash, and nothing was sent.
fn is_ended(undisturbed: &Outcome, interrupted: &Outcome, label: &str) -> bool {
    let right = ["1 thread in Slack".to_owned(), "0 drafts".to_owned(), format!("labelled Countersign/{label}")];
    undisturbed == interrupted && interrupted.effects == right
}
