//! The replies of the mail graph, as sentences for people.

use countersign_core::{
    ids::UserId,
    reply::{Part, Reply, Text},
};
use countersign_graph::action::{ActionRecord, Outcome, Status};
use countersign_mail::{Address, AnswerByHand, Mail, MailError, NoReply, shown_subject};
use serde::Deserialize as _;

use super::{
    card::{attachments, class_line, name_of, shown_text},
    register::{EarlierAnswer, Entry, MailStatus},
    rules::{Class, MAX_DRAFT_CHARS, Source, cut},
    send::SendParameters,
};

/// The maximum length of an email's words in a reply, in characters.
const MAX_CONTENT_CHARS: usize = 1500;

/// The maximum number of earlier emails of a sender that are listed.
const MAX_EARLIER_SHOWN: usize = 5;

/// The text that the button for another draft says.
pub(super) const ANOTHER_DRAFT: &str = "another draft";

/// The text that the button for spam says.
pub(super) const SPAM: &str = "this is spam";

/// Adds the button for another draft, which only a language model (`has_writer`) can write.
fn with_another_draft(reply: Reply, has_writer: bool) -> Reply {
    if has_writer { reply.choice("Ask for another draft…", ANOTHER_DRAFT) } else { reply }
}

/// Adds the button for a draft to a reply that stands where no card is open any more.
fn with_draft_again(reply: Reply, has_writer: bool) -> Reply {
    match has_writer {
        true => with_another_draft(reply, true),
        false => reply.choice("Show the draft again", ANOTHER_DRAFT),
    }
}

/// Returns the message above the card: the class, and what else can be done. The card shows the mail itself.
pub(super) fn classified_as(class: Class, confidence: f64, by: Source, has_writer: bool) -> Reply {
    let class = class_line(class, confidence, by);
    let reply = Reply::text(format!("Class: {class}. The email and a draft are on the card below."));
    with_another_draft(reply, has_writer).choice("Mark as spam", SPAM)
}

/// Returns the message above the card of a mail that was not classified.
pub(super) fn not_classified(has_writer: bool) -> Reply {
    let reply = Reply::text("This email was not classified. It is on the card below.");
    with_another_draft(reply, has_writer).choice("Mark as spam", SPAM)
}

/// Returns the message with the file of a long mail.
pub(super) fn long_mail() -> Reply {
    Reply::text("This email is long. The card shows its beginning; the whole text is attached.")
}

/// Adds a mail to the reply, for threads without a card that shows it.
pub(super) fn with_mail(reply: Reply, mail: &Mail) -> Reply {
    let sender = mail.sender().map_or_else(|| "an unknown sender".to_owned(), Address::to_string);
    let head = Text::from("From ").bold(sender).plain(" · ").moment(mail.received_at);
    let reply = reply.and(Part::Text(head)).and(Part::Code(shown_text(mail)));
    match attachments(mail) {
        Some(names) => reply.hint(format!("Attachments: {names}")),
        None => reply,
    }
}

/// Returns the reply about a mail that needs no answer; `what` is what it is, after “This email is”.
pub(super) fn needs_no_answer(what: &str, mail: &Mail, can_be_answered: bool) -> Reply {
    let reply = with_mail(Reply::text(format!("This email is {what}, so no reply was drafted.")), mail);
    if can_be_answered { reply.choice("Draft a reply", ANOTHER_DRAFT) } else { reply }
}

/// Returns the reply about a newer mail in the same conversation.
pub(super) fn newer(newer: &Entry, is_on_card: bool) -> Reply {
    let reply = Reply::text(newer_line(newer).plain("."));
    match is_on_card {
        true => reply.hint("The draft on the card below answers the earlier email. Sending it asks once more."),
        false => reply,
    }
}

/// Names a newer mail in the same conversation, without a full stop.
pub(super) fn newer_line(newer: &Entry) -> Text {
    let name = newer.sender_name.as_deref().or(newer.sender.as_deref()).unwrap_or("an unknown sender");
    let subject = shown_subject(&newer.subject);
    Text::from(format!("A newer email came in this conversation: “{subject}” from {name}, ")).moment(newer.received_at)
}

/// Returns the reply about another copy of the mail whose text differs.
pub(super) fn copied(copy: &Mail) -> Reply {
    with_mail(Reply::text("This email arrived once more, with a different text:"), copy)
}

pub(super) fn sure_spam(confidence: f64, mail: &Mail) -> Reply {
    let reply = Reply::text(format!("This is spam ({confidence:.2}), so no reply was drafted."));
    with_mail(reply, mail).choice("Draft a reply", ANOTHER_DRAFT)
}

pub(super) fn unreadable() -> Reply {
    Reply::text("I couldn't read this email, so there is no draft. It's still in the mailbox.")
        .hint("Open it in your email program and answer it there.")
}

pub(super) fn cannot_be_drafted(why: &Reply) -> Reply {
    let mut reply = Reply::text("No reply can be sent to this email.");
    reply.parts.extend(why.parts.iter().cloned());
    reply
}

pub(super) fn mail_gone() -> Reply {
    Reply::text("This email is no longer in the mailbox, so it can't be answered.")
}

pub(super) fn not_an_answer() -> Reply {
    Reply::text("I don't know which email this would reply to. Nothing was sent.")
}

pub(super) fn too_long(length: usize) -> Reply {
    Reply::text(format!("The reply has {length} characters. It can have at most {MAX_DRAFT_CHARS}."))
}

/// Returns the reply if the recipient is none of those that are possible; the first one of them is the sender.
pub(super) fn only_to_the_sender(possible: &[Address]) -> Reply {
    let addresses: Vec<&str> = possible.iter().map(|possible| possible.address.as_str()).collect();
    Reply::text(format!("A reply can only go to the sender of the email: {}.", addresses.join(" or ")))
}

pub(super) fn cannot_be_answered(why: &NoReply) -> Reply {
    let why = why.to_string();
    let mut letters = why.chars();
    let why = letters.next().map(|first| format!("{}{}", first.to_uppercase(), letters.as_str())).unwrap_or_default();
    Reply::text(format!("{why}."))
}

pub(super) fn already_answered() -> Reply {
    Reply::text("This email was already answered. Nothing more was sent.")
}

/// Returns the reply to a request to mark a mail as spam that is marked already.
pub(super) fn already_spam() -> Reply {
    Reply::text("This email is already marked as spam.").hint("Say “not spam” if that's wrong.")
}

/// Names the person who answered a mail with a mail program, and the time: without a full stop.
pub(super) fn answered_by_hand(answer: &AnswerByHand) -> Text {
    let by = answer.by.as_ref().map_or_else(|| "someone".to_owned(), name_of);
    Text::from(format!("Answered in the mailbox by {by}, ")).moment(answer.at)
}

/// Describes a failure of the mail account, in one sentence without addresses.
pub(super) fn account_error(error: &MailError) -> String {
    match error {
        MailError::Unavailable { .. } => "The mail server isn't answering.".to_owned(),
        MailError::SignIn { .. } => "The mail server refused the sign-in.".to_owned(),
        MailError::Refused { status: Some(status), .. } => format!("The mail server refused this ({status})."),
        MailError::Refused { status: None, .. } => "The mail server refused this.".to_owned(),
        MailError::Decode { .. } => "The mail server's answer couldn't be read.".to_owned(),
        MailError::RunOut => "Sending took too long.".to_owned(),
    }
}

pub(super) fn account_unavailable(error: &MailError) -> Reply {
    Reply::text(account_error(error)).hint("Try again in a few minutes.")
}

pub(super) fn store_unavailable() -> Reply {
    Reply::text("I can't look up earlier replies right now.").hint("Try again in a few minutes.")
}

pub(super) fn which_changes(by: &UserId) -> Reply {
    Reply::text(Text::new().person(by.clone()).plain(" What should the new draft do differently?"))
        .hint("For example: “shorter, and offer Tuesday”.")
}

pub(super) fn no_writer() -> Reply {
    let text = Text::from("I can't rewrite a draft without a language model. Use ").bold("Edit…");
    Reply::text(text.plain(" on the card to change it yourself."))
}

/// Returns the reply to a request for another draft without a language model, when no card is open.
pub(super) fn no_writer_and_no_card() -> Reply {
    with_draft_again(Reply::text("I can't rewrite a draft without a language model. You can edit the last one."), false)
}

/// Returns the reply to a request for another draft that could not be written. The last one is on the open card, or on
/// the next one.
pub(super) fn no_other_draft(failure: &str, is_on_card: bool) -> Reply {
    let last = if is_on_card { "The draft on the card is unchanged" } else { "The last draft is on the card below" };
    Reply::text(format!("No new draft: {failure}. {last}.")).hint("Try again in a moment.")
}

/// Returns the reply to a question about the sender if that is the account itself.
pub(super) fn who_is_us(sender: &Address) -> Reply {
    Reply::text(Text::new().bold(name_of(sender)).plain(format!(" ({}) is your own address.", sender.address)))
}

pub(super) fn who(mail: &Mail, contact: Option<Text>, answers: &[EarlierAnswer]) -> Reply {
    let Some(sender) = mail.sender() else {
        return Reply::text("This email has no valid sender address, so I can't tell who wrote it.");
    };
    let reply = match contact {
        Some(contact) => {
            let who = Text::new().bold(name_of(sender)).plain(format!(" ({}): ", sender.address));
            Reply::text(who.join(contact).plain("."))
        }
        None => Reply::text(
            Text::new().bold(name_of(sender)).plain(format!(" ({}) isn't in your contacts.", sender.address)),
        ),
    };
    match answers {
        [] => reply.hint("There are no earlier replies to this address."),
        [newest, ..] => {
            let count = if answers.len() == 1 {
                "1 earlier reply".to_owned()
            } else {
                format!("{} earlier replies", answers.len())
            };
            reply.hint(Text::from(format!("{count}, the last one ")).moment(newest.at).plain("."))
        }
    }
}

pub(super) fn last_answer(sender: Option<&Address>, answers: &[EarlierAnswer]) -> Reply {
    let name = sender.map_or_else(|| "this sender".to_owned(), name_of);
    match answers.first() {
        None => Reply::text(format!("There are no earlier replies to {name}.")),
        Some(answer) => Reply::text(
            Text::from("The last reply to ")
                .bold(name)
                .plain(" was to ")
                .plain(format!("“{}”, ", shown_subject(&answer.subject)))
                .moment(answer.at)
                .plain(":"),
        )
        .and(Part::Code(answer.text.clone())),
    }
}

/// Tells which mails of the sender came before, the newest first.
pub(super) fn earlier_mails(sender: Option<&Address>, earlier: &[Entry]) -> Reply {
    let name = sender.map_or_else(|| "this sender".to_owned(), name_of);
    if earlier.is_empty() {
        return Reply::text(Text::from("I know of no earlier email from ").bold(name).plain("."));
    }
    let count =
        if earlier.len() == 1 { "1 earlier email".to_owned() } else { format!("{} earlier emails", earlier.len()) };
    let more = if earlier.len() > MAX_EARLIER_SHOWN { "The newest:" } else { "Newest first:" };
    let more = if earlier.len() == 1 { "" } else { more };
    let line = |entry: &Entry| {
        let line = Text::from(format!("“{}”, ", shown_subject(&entry.subject))).moment(entry.received_at);
        line.plain(format!(" · {}", entry.outcome()))
    };
    Reply::text(
        Text::from(format!("I know of {count} from ")).bold(name).plain(format!(". {more}").trim_end().to_owned()),
    )
    .and(Part::List(earlier.iter().take(MAX_EARLIER_SHOWN).map(line).collect()))
}

/// Tells what became of the reply: `sends` are the replies that were proposed, the newest first.
pub(super) fn sent(mail: &Mail, sends: &[ActionRecord], entry: Option<&Entry>) -> Reply {
    let name = mail.sender().map_or_else(|| "the sender".to_owned(), name_of);
    if let Some(record) = sent_in(sends) {
        let when = record.intent_at.or(record.decisions.last().map(|decision| decision.at));
        let text = Text::from("The reply to ").bold(name).plain(" was sent");
        let text = when.into_iter().fold(text, |text, when| text.plain(" ").moment(when)).plain(".");
        let text = if record.under.is_some() { text.plain(" It went out automatically.") } else { text };
        return done(text, record.approved_by()).hint("A sent reply can't be taken back.");
    }
    let outcome = |record: &ActionRecord| record.outcome.as_ref().map(Outcome::summary).cloned().unwrap_or_default();
    let newest = sends.first();
    match newest.map(|record| record.status) {
        _ if entry.is_some_and(|entry| entry.status == MailStatus::Sent) => {
            Reply::text("This email was answered in the mailbox. I sent nothing.")
        }
        Some(Status::Unknown) => Reply::text("I don't know whether the reply was sent. Check the mailbox."),
        Some(Status::Approved | Status::Intent) => Reply::text("The reply was approved and is being sent."),
        Some(Status::Proposed | Status::Pending) => {
            let text = Text::from("The reply hasn't been sent. That happens only when someone presses ").bold("Send");
            Reply::text(text.plain(" on the card."))
        }
        _ if entry.is_some_and(|entry| entry.is_spam) => {
            Reply::text("No reply was sent. This email is marked as spam.")
        }
        Some(Status::Failed) => {
            Reply::text(Text::from("The reply wasn't sent. ").join(newest.map(outcome).unwrap_or_default()))
        }
        Some(Status::Rejected) => {
            let by = newest.and_then(|record| record.decisions.last()).and_then(|decision| decision.by.clone());
            match by {
                Some(by) => Reply::text(Text::from("No reply was sent. Rejected by ").person(by).plain(".")),
                None => Reply::text("No reply was sent. It was rejected."),
            }
        }
        _ => Reply::text("No reply was sent, and none is about to be."),
    }
}

fn sent_in(sends: &[ActionRecord]) -> Option<&ActionRecord> {
    sends.iter().find(|record| matches!(record.status, Status::Done | Status::Settled))
}

/// Tells who gets the reply.
pub(super) fn recipients(mail: &Mail, sends: &[ActionRecord]) -> Reply {
    let open = |record: &&ActionRecord| matches!(record.status, Status::Proposed | Status::Pending | Status::Approved);
    let to = |record: &ActionRecord| Some(SendParameters::deserialize(&*record.parameters).ok()?.to.address);
    let gone = sent_in(sends).and_then(to);
    let text = match (gone, sends.iter().find(open).and_then(to), mail.sender()) {
        (Some(gone), ..) => format!("The reply went only to {gone}."),
        (None, Some(open), _) => format!("The reply goes only to {open}."),
        (None, None, Some(sender)) => format!("A reply would go only to the sender, {}.", sender.address),
        (None, None, None) => "This email has no valid sender address, so no reply can be sent.".to_owned(),
    };
    let reply = Reply::text(text);
    let reply = match mail.to.len() + mail.cc.len() > 1 {
        true => reply.hint("Other people who got the email don't get the reply."),
        false => reply,
    };
    reply.hint("Everyone in this channel can read the card and this thread; the customer can't.")
}

pub(super) fn classified(class: Class, confidence: f64, by: Source, is_spam: bool) -> Reply {
    let reply = Reply::text(format!("Class: {}.", class_line(class, confidence, by)));
    if is_spam { reply.hint("This email is marked as spam.") } else { reply }
}

pub(super) fn why_waiting(why: Option<&str>) -> Reply {
    match why {
        Some(why) => Reply::text(why),
        None => Reply::text("This email isn't waiting for review."),
    }
}

/// Returns the outcome of an action with the people who approved it.
pub(super) fn done(summary: Text, by: Vec<UserId>) -> Reply {
    let people: Vec<Text> = by.into_iter().map(|by| Text::new().person(by)).collect();
    match people.is_empty() {
        true => Reply::text(summary),
        false => Reply::text(summary.plain(" Approved by ").join(Text::listed(people, "and")).plain(".")),
    }
}

pub(super) fn failed(summary: Text) -> Reply {
    Reply::text(summary).hint(Text::from("Use ").bold("Try again").plain(" on the card for a new one."))
}

pub(super) fn rejected(by: Option<&UserId>, has_writer: bool) -> Reply {
    let text = match by {
        Some(by) => Text::from("Rejected by ").person(by.clone()).plain(". No reply was sent."),
        None => Text::from("Rejected. No reply was sent."),
    };
    with_draft_again(Reply::text(text), has_writer)
}

pub(super) fn still_waiting(why: &str, has_writer: bool) -> Reply {
    let reply = Reply::text(format!("{why} No reply was sent, and the email is still waiting."));
    with_draft_again(reply, has_writer)
}

/// What determines which requests make sense in a mail's thread at the moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Possible {
    /// True if there is a language model, which can write another draft.
    pub(super) has_writer: bool,
    /// True if the mail was answered.
    pub(super) is_answered: bool,
    /// True while the card with the draft is open.
    pub(super) is_on_card: bool,
}

/// Returns the reply to a message that was not understood.
pub(super) fn not_understood(possible: Possible) -> Reply {
    requests("I didn't catch that. In this thread, you can say:", possible)
}

/// Asks which of these requests is meant.
pub(super) fn which_is_meant(question: String, options: &[String]) -> Reply {
    options.iter().fold(Reply::text(question), |reply, option| reply.choice(option.clone(), option.clone()))
}

/// Returns the words of the mail; there is no summary without a model.
pub(super) fn content(mail: &Mail) -> Reply {
    Reply::text("This is what the email says:").and(Part::Code(cut(&shown_text(mail), MAX_CONTENT_CHARS)))
}

/// Says where other mails are listed.
pub(super) fn other_mails() -> Reply {
    Reply::text("In this thread I only know this email. Anywhere else, ask me “which emails are waiting?”.")
}

/// Says how the draft is sent.
pub(super) fn sending(Possible { is_on_card, is_answered, .. }: Possible) -> Reply {
    match (is_on_card, is_answered) {
        (true, _) => Reply::text(
            Text::from("Press ")
                .bold("Send")
                .plain(" on the card to send the reply. ")
                .bold("Edit…")
                .plain(" changes it first, and ")
                .bold("Reject…")
                .plain(" means that it isn't sent. The card says who can approve it."),
        ),
        (false, true) => Reply::text("This email was answered already."),
        (false, false) => Reply::text("There is no open card in this thread, so nothing is about to be sent.")
            .choice("Another draft", "another draft"),
    }
}

/// Says that nothing was changed, in place of a model's answer that claims otherwise.
pub(super) fn nothing_was_changed() -> Reply {
    Reply::text("Nothing was changed.").hint("To see what you can ask for in this thread, say “help”.")
}

/// Returns the reply to a request for help.
pub(super) fn help(possible: Possible) -> Reply {
    requests("In this thread, you can say:", possible)
}

/// Lists the requests that are understood.
fn requests(first: &str, Possible { has_writer, is_answered, is_on_card }: Possible) -> Reply {
    let can_draft = has_writer && !is_answered;
    let lines = [
        can_draft.then_some("shorter, and offer Tuesday (for another draft)"),
        Some("who wrote this?"),
        Some("what did we answer last time?"),
        Some("what class is it?"),
        is_on_card.then_some("why is it waiting?"),
        (!is_answered).then_some("this is spam"),
    ];
    let reply = Reply::text(first).and(Part::List(lines.into_iter().flatten().map(Text::from).collect()));
    let reply = with_another_draft(reply, can_draft)
        .choice("Who wrote this?", "who is this?")
        .choice("Last reply", "what did we answer last time?");
    if !is_on_card {
        return reply;
    }
    let buttons = Text::from("Use ").bold("Send").plain(", ").bold("Edit…").plain(" or ").bold("Reject…");
    reply.hint(buttons.plain(" on the card to decide about the draft."))
}

pub(super) fn no_mail() -> Reply {
    Reply::text("I couldn't read this thread's email, so I can't help with it here.")
}
