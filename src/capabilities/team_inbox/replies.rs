//! The sentences about mails.
//!
//! Senders and subjects are shown only in the channel of mails, and to its members in their Home tab; every other text has
//! only numbers and links.

use std::time::Duration;

use countersign_core::{
    clock::{Timestamp, ago},
    ids::ChannelId,
    reply::{Attachment, Part, Reply, Text},
};
use countersign_mail::shown_subject;

use super::{
    chart,
    figures::Figures,
    mail_list::{Entry, MailListError, Overview, Pause},
};

/// The maximum number of characters of a subject in a list.
const MAX_SUBJECT: usize = 120;

/// The subject of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chart {
    /// The times until an answer.
    Times,
    /// The classes of mails.
    Classes,
}

/// Returns the name of a class for people, such as `meeting request`.
pub fn class_name(class: &str) -> String {
    class.replace('_', " ")
}

/// Returns the band of a confidence in words.
pub fn confidence(confidence: f64) -> &'static str {
    match confidence {
        above if above > 0.9 => "high confidence",
        medium if medium >= 0.7 => "medium confidence",
        _ => "low confidence",
    }
}

/// Returns a length of time for people: `40 s`, `12 min`, `5 h`, `3 days`.
pub fn span(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..=119 => format!("{seconds} s"),
        seconds @ 120..=7199 => format!("{} min", seconds / 60),
        seconds @ 7200..=172_799 => format!("{} h", seconds / 3600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

/// Returns a number of mails in words.
pub fn mails(count: usize) -> String {
    if count == 1 { "1 email".to_owned() } else { format!("{count} emails") }
}

/// Returns the reply about mails that cannot be read.
pub fn unavailable(error: &MailListError) -> Reply {
    let MailListError::Unavailable(_) = error;
    Reply::text("I can't read the team's email right now. Nothing was changed.").hint("Try again in a minute.")
}

/// Returns the reply to a request for mails in another channel than theirs.
pub fn elsewhere(channel: &ChannelId) -> Reply {
    Reply::text(Text::from("I only show email in ").channel(channel.clone()).plain(". Ask me there."))
}

/// Returns the reply to a request of a person who is not known.
pub fn unknown_person() -> Reply {
    Reply::text("I couldn't tell who asked, so nothing was changed.").hint("Type the command again.")
}

/// Returns the state of the account and of the synchronization.
pub fn status(overview: &Overview, now: Timestamp) -> Reply {
    let first = match (&overview.paused, &overview.fault) {
        (Some(pause), _) => Text::from("Email is paused. ")
            .name(pause.by.clone())
            .plain(format!(" paused it{}. New email stays on the server until someone resumes it.", since(pause, now))),
        (None, Some(fault)) => Text::from(format!("I couldn't fetch email: {fault}. I'll keep trying.")),
        (None, None) => Text::from("Email is running."),
    };
    let fetched = match overview.last_sync {
        Some(at) => ago(now, at),
        None => "never".to_owned(),
    };
    let waiting = match overview.oldest_waiting {
        Some(oldest) => format!("{}, the oldest for {}", mails(overview.waiting), span(now.since(oldest))),
        None => "none".to_owned(),
    };
    let in_progress = if overview.in_progress == 0 { "none".to_owned() } else { mails(overview.in_progress) };
    let automatic = match overview.is_automatic {
        true => format!("on, {} of {} sent today", overview.automatic_today, overview.automatic_a_day),
        false => "off".to_owned(),
    };
    let reply = Reply::text(first).and(Part::Facts(vec![
        ("Account".to_owned(), Text::from(overview.account.as_str())),
        ("Last fetched".to_owned(), Text::from(fetched)),
        ("Waiting for review".to_owned(), Text::from(waiting)),
        ("In progress".to_owned(), Text::from(in_progress)),
        ("Automatic replies".to_owned(), Text::from(automatic)),
    ]));
    match overview.paused {
        Some(_) => reply.hint("Use /mail resume to start again."),
        None => reply,
    }
}

/// Returns the age of a pause, such as ` 5 h ago`; empty if it is not known.
pub(super) fn since(pause: &Pause, now: Timestamp) -> String {
    pause.at.map(|at| format!(" {}", ago(now, at))).unwrap_or_default()
}

/// Returns the mails that wait, for the members of their channel. `more` is true if there are others.
pub fn waiting(entries: &[Entry], more: bool, now: Timestamp) -> Reply {
    if entries.is_empty() {
        return Reply::text("No email is waiting for review.");
    }
    let first = match more {
        true => format!("More than {} are waiting for review. The oldest:", mails(entries.len())),
        false if entries.len() == 1 => "1 email is waiting for review:".to_owned(),
        false => format!("{} are waiting for review, oldest first:", mails(entries.len())),
    };
    Reply::text(first)
        .and(Part::List(entries.iter().map(|entry| line(entry, now)).collect()))
        .hint("Open an email's thread to read it, and to edit, send or reject the reply.")
}

/// Says that no waiting mail is `wanted`, before the list of those that wait.
pub fn none_waiting(wanted: &str, all: Reply) -> Reply {
    let reply = Reply::text(format!("No waiting email is {wanted}."));
    all.parts.into_iter().fold(reply, Reply::and)
}

/// Returns a mail as a line of a list.
fn line(entry: &Entry, now: Timestamp) -> Text {
    linked(described(entry).plain(format!(" · {}", ago(now, entry.received_at))), entry, "open")
}

/// Returns a mail as a line of a list of mails with different outcomes.
fn line_with_outcome(entry: &Entry, now: Timestamp) -> Text {
    let line = described(entry).plain(format!(" · {} · {}", outcome(entry), ago(now, entry.received_at)));
    linked(line, entry, "open")
}

/// Returns sender, subject and class.
fn described(entry: &Entry) -> Text {
    let line = Text::new().bold(entry.from()).plain(": ").plain(subject(entry));
    match &entry.class {
        Some(class) => line.plain(format!(" · {}", class_name(class))),
        None => line,
    }
}

/// Returns the state in words, with how it was answered.
fn outcome(entry: &Entry) -> &'static str {
    match (entry.settled_at, entry.is_automatic) {
        (Some(_), true) => "answered automatically",
        _ => entry.outcome(),
    }
}

/// Returns the text with a link to the thread of the mail, if its address is known.
pub(super) fn linked(text: Text, entry: &Entry, words: &str) -> Text {
    match &entry.link {
        Some(link) => text.plain(" · ").link(link, words),
        None => text,
    }
}

/// Returns the reply to a search for a mail.
pub fn found(words: &str, entries: &[Entry], more: bool, now: Timestamp) -> Reply {
    match entries {
        [] => Reply::text(Text::from("No email matches “").plain(shortened(words, MAX_SUBJECT)).plain("”."))
            .hint("Search by sender, words in the subject, or ID."),
        [only] => one(only, now),
        several => {
            let first = match more {
                true => format!("More than {} match. The newest:", mails(several.len())),
                false => format!("{} match, newest first:", mails(several.len())),
            };
            Reply::text(first).and(Part::List(several.iter().map(|entry| line_with_outcome(entry, now)).collect()))
        }
    }
}

/// Returns one mail with what became of it.
fn one(entry: &Entry, now: Timestamp) -> Reply {
    let from = match (&entry.sender_name, &entry.sender) {
        (Some(name), Some(address)) if !name.trim().is_empty() => format!("{name} <{address}>"),
        _ => entry.from().to_owned(),
    };
    let class = entry.class.as_ref().map(|class| match entry.confidence {
        Some(sure) => format!("{}, {}", class_name(class), confidence(sure)),
        None => class_name(class),
    });
    let state = match entry.settled_at {
        Some(at) => format!("{} {}", outcome(entry), ago(now, at)),
        None => outcome(entry).to_owned(),
    };
    let facts = [
        Some(("From", Text::from(from))),
        Some(("Received", Text::new().moment(entry.received_at))),
        class.map(|class| ("Class", Text::from(class))),
        Some(("State", Text::from(state))),
        entry.why.as_deref().map(|why| ("Waiting because", Text::from(why))),
    ];
    let facts = facts.into_iter().flatten().map(|(label, fact)| (label.to_owned(), fact)).collect();
    let reply = Reply::text(Text::new().bold(subject(entry))).and(Part::Facts(facts));
    match &entry.link {
        Some(link) => reply.and(Part::Text(Text::new().link(link, "Open the thread"))),
        None => reply,
    }
}

/// Returns the reply to a request to fetch mail now.
pub fn sync_requested(overview: &Overview) -> Reply {
    match &overview.paused {
        Some(_) => Reply::text("Email is paused, so nothing is fetched.").hint("Use /mail resume to start again."),
        None => Reply::text("Fetching email now. New emails appear in the email channel."),
    }
}

/// Returns the reply to a request to stop or go on, which changed the state if `changed`.
pub fn paused(is_paused: bool, changed: bool) -> Reply {
    match (is_paused, changed) {
        (true, true) => Reply::text("Paused. No new email is fetched until someone resumes it.")
            .hint("Open cards stay open. Use /mail resume to start again."),
        (true, false) => Reply::text("Email is already paused.").hint("Use /mail resume to start again."),
        (false, true) => Reply::text("Resumed. Fetching the email that arrived in the meantime."),
        (false, false) => Reply::text("Email isn't paused."),
    }
}

/// Returns the subject on one line, as people read it.
pub(super) fn subject(entry: &Entry) -> String {
    shortened(shown_subject(&entry.subject), MAX_SUBJECT)
}

/// Returns figures about the mails of a number of days, with a picture if there is a `chart`.
pub fn figures(figures: &Figures, days: u32, chart: Option<Chart>) -> Reply {
    let last = if days == 1 { "last day".to_owned() } else { format!("last {days} days") };
    let period = format!("In the {last}");
    let Some(chart) = chart else {
        let arrived = if figures.received == 0 { "no email".to_owned() } else { mails(figures.received) };
        let were = match figures.answered {
            0 => "none was".to_owned(),
            1 => "1 was".to_owned(),
            more => format!("{more} were"),
        };
        return Reply::text(format!("{period}, {arrived} arrived and {were} answered."))
            .and(Part::Facts(counts(figures)));
    };
    if figures.received == 0 {
        return Reply::text(format!("{period}, no email arrived."));
    }
    let seconds = |seconds: Option<u64>| seconds.map(|seconds| span(Duration::from_secs(seconds)));
    let (first, name, title, drawn) = match chart {
        Chart::Times => {
            let first = match (seconds(figures.p50_s), seconds(figures.p90_s)) {
                (Some(only), _) if figures.answered == 1 => format!("{period}, 1 reply went out, within {only}."),
                (Some(half), Some(most)) => {
                    format!("{period}, half of the replies went out within {half} and 90% within {most}.")
                }
                _ => format!("{period}, no email was answered."),
            };
            let title = format!("Time to reply, {last}");
            (first, "answer-times.png", title.clone(), chart::times(&title, figures))
        }
        Chart::Classes => {
            let first = match figures.classes.first() {
                Some(only) if figures.received == 1 => {
                    format!("{period}, 1 email arrived. Its class is {}.", class_name(&only.class))
                }
                Some(most) => format!(
                    "{period}, the most common class was {} ({} of {}, {}%).",
                    class_name(&most.class),
                    most.count,
                    figures.received,
                    most.share
                ),
                None => format!("{period}, no email was classified."),
            };
            let title = format!("Emails by class, {last}");
            (first, "mail-classes.png", title.clone(), chart::classes(&title, figures))
        }
    };
    let reply = Reply::text(first).and(Part::Facts(counts(figures)));
    match drawn {
        Ok(drawn) => reply.file(Attachment { name: name.to_owned(), title, alt: drawn.alt, bytes: drawn.bytes }),
        Err(error) => {
            tracing::debug!(%error, "Cannot draw a chart");
            reply
        }
    }
}

fn counts(figures: &Figures) -> Vec<(String, Text)> {
    [
        ("Received", figures.received),
        ("Answered", figures.answered),
        ("Answered automatically", figures.automatic),
        ("Rejected", figures.rejected),
        ("Spam", figures.spam),
        ("Waiting", figures.waiting),
    ]
    .map(|(label, count)| (label.to_owned(), Text::from(count.to_string())))
    .into()
}

/// Returns the daily digest: counts, the mails that have waited longest, and links to automatic answers. It is posted
/// in the channel of mails.
pub fn digest(figures: &Figures, waiting: &[Entry], automatic: &[Entry], now: Timestamp) -> Reply {
    let reply = Reply::default().and(Part::Heading("Email since the last digest".to_owned()));
    let reply = reply.and(Part::Facts(counts(figures)));
    let list = |reply: Reply, title: &str, entries: &[Entry]| match entries {
        [] => reply,
        entries => reply
            .and(Part::Text(Text::new().bold(title)))
            .and(Part::List(entries.iter().map(|entry| line(entry, now)).collect())),
    };
    let reply = list(reply, "Waiting longest", waiting);
    list(reply, "Answered automatically", automatic)
}

/// Returns at most `most` characters of a text, on one line.
fn shortened(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        mail_list::{MailList as _, MailStatus},
        testing::{FixedMailList, RECEIVED, answered, entry},
    };

    fn later(hours: u64) -> Timestamp {
        RECEIVED + Duration::from_secs(3600 * hours)
    }

    #[tokio::test]
    async fn the_status_says_what_runs_and_what_waits() {
        let book = FixedMailList::new(vec![entry("m1", MailStatus::NeedsReview)]);
        let mut overview = book.overview().await.unwrap();
        let said = status(&overview, later(5)).words();
        assert!(said.starts_with("Email is running.\n"), "{said}");
        assert!(said.contains("Waiting for review: 1 email, the oldest for 5 h"), "{said}");
        assert!(said.contains("Automatic replies: off"), "{said}");

        overview.fault = Some("Gmail isn't answering".to_owned());
        assert!(
            status(&overview, later(5))
                .words()
                .contains("I couldn't fetch email: Gmail isn't answering. I'll keep trying.")
        );
        overview.paused = Some(Pause { by: "U1".into(), at: Some(RECEIVED) });
        (overview.is_automatic, overview.automatic_today) = (true, 12);
        let said = status(&overview, later(5)).words();
        assert!(said.starts_with("Email is paused. @U1 paused it 5 h ago."), "{said}");
        assert!(
            said.contains("on, 12 of 50 sent today") && said.ends_with("Use /mail resume to start again."),
            "{said}"
        );
    }

    #[test]
    fn a_list_of_mails_names_sender_subject_class_and_age() {
        let entries = [entry("m1", MailStatus::NeedsReview)];
        let said = waiting(&entries, false, later(5)).words();
        assert_eq!(
            said,
            "1 email is waiting for review:\n• Ada: Prices for 20 seats · inquiry · 5 h ago · open\n\
             Open an email's thread to read it, and to edit, send or reject the reply."
        );
        assert_eq!(waiting(&[], false, later(5)).words(), "No email is waiting for review.");
    }

    #[test]
    fn a_subject_is_shown_without_the_marks_of_replies() {
        let of = |subject: &str| Entry { subject: subject.to_owned(), ..entry("m1", MailStatus::NeedsReview) };
        let said = waiting(&[of("Re: Re: Prices"), of("")], false, later(5)).words();
        assert!(said.contains("• Ada: Prices · ") && said.contains("• Ada: (no subject) · "), "{said}");
    }

    #[test]
    fn spam_is_not_called_rejected() {
        let settled = Entry { settled_at: Some(RECEIVED), is_spam: true, ..entry("m1", MailStatus::Rejected) };
        let said = found("ada", std::slice::from_ref(&settled), false, later(2)).words();
        assert!(said.contains("State: marked as spam 2 h ago") && !said.contains("rejected"), "{said}");
        let figures = Figures::of(&[settled, entry("m2", MailStatus::Rejected)]);
        let said = digest(&figures, &[], &[], later(2)).words();
        assert!(said.contains("Rejected: 1\nSpam: 1"), "{said}");
    }

    #[test]
    fn one_mail_is_shown_with_its_outcome() {
        let said = found("ada", &[answered("m1", Duration::from_secs(600), true)], false, later(2)).words();
        assert!(said.starts_with("Prices for 20 seats\nFrom: Ada <ada@customer.example>"), "{said}");
        assert!(
            said.contains("Class: inquiry, medium confidence") && said.contains("answered automatically 110 min ago"),
            "{said}"
        );
        assert!(found("eve", &[], false, later(2)).words().starts_with("No email matches “eve”."));
    }

    #[test]
    fn several_mails_are_listed_with_their_outcomes() {
        let entries = [entry("m1", MailStatus::NeedsReview), answered("m2", Duration::from_secs(600), true)];
        let said = found("ada", &entries, false, later(5)).words();
        assert_eq!(
            said,
            "2 emails match, newest first:\n\
             • Ada: Prices for 20 seats · inquiry · waiting for review · 5 h ago · open\n\
             • Ada: Prices for 20 seats · inquiry · answered automatically · 5 h ago · open"
        );
    }

    #[test]
    fn figures_are_told_and_drawn() {
        let entries =
            [answered("a", Duration::from_secs(720), false), answered("b", Duration::from_secs(18_000), true)];
        let reply = figures(&Figures::of(&entries), 30, Some(Chart::Times));
        let said = reply.words();
        assert!(
            said.starts_with("In the last 30 days, half of the replies went out within 12 min and 90% within 5 h."),
            "{said}"
        );
        assert_eq!(reply.files[0].name, "answer-times.png");
        let one = figures(&Figures::of(&entries[..1]), 1, Some(Chart::Times));
        assert!(one.words().starts_with("In the last day, 1 reply went out, within 12 min."), "{}", one.words());
        assert_eq!(one.files[0].title, "Time to reply, last day");
        let one = figures(&Figures::of(&entries[..1]), 1, Some(Chart::Classes));
        assert!(one.words().starts_with("In the last day, 1 email arrived. Its class is inquiry."), "{}", one.words());
        let reply = figures(&Figures::of(&entries), 1, Some(Chart::Classes));
        assert!(reply.words().starts_with("In the last day, the most common class was inquiry (2 of 2, 100%)."));
        assert_eq!(reply.files[0].name, "mail-classes.png");
        assert_eq!(
            figures(&Figures::of(&[]), 30, Some(Chart::Times)).words(),
            "In the last 30 days, no email arrived."
        );
    }

    #[test]
    fn a_subject_takes_one_line_of_limited_length() {
        assert_eq!(shortened("a\n b\t c", 120), "a b c");
        assert_eq!(shortened("äöü", 2), "äö…");
    }
}
