//! Renders a [`Reply`] as plain text for notifications and screen readers, without formatting but
//! with the names of people and readable times.

use countersign_core::reply::{Part, Reply, Span, Text};
use countersign_slack::{
    blocks::MAX_FALLBACK_CHARS,
    markdown,
    mrkdwn::{Mrkdwn, utc},
};

/// Returns the text of a reply, with a line for each part. It is never empty.
pub(super) fn words(reply: &Reply) -> String {
    let mut notice = Mrkdwn::new(MAX_FALLBACK_CHARS - 1000);
    for (nth, part) in reply.parts.iter().enumerate() {
        notice = write_part(if nth > 0 { notice.raw("\n") } else { notice }, part);
    }
    if notice.is_blank() { "…".to_owned() } else { notice.finish().trim().to_owned() }
}

fn write_part(notice: Mrkdwn, part: &Part) -> Mrkdwn {
    match part {
        Part::Text(text) | Part::Note(text) => write(notice, text),
        Part::Heading(words) | Part::Code(words) => notice.plain(words),
        Part::Markdown(text) => notice.plain(&markdown::plain(text)),
        Part::List(points) => lines(notice, points, |notice, point| write(notice.plain("• "), point)),
        Part::Facts(facts) => {
            lines(notice, facts, |notice, (label, fact)| write(notice.plain(label).plain(": "), fact))
        }
        Part::Table { columns, rows } => {
            let head = notice.plain(&columns.join(" | ")).raw("\n");
            lines(head, rows, |notice, row| between(notice, " | ", row, write))
        }
    }
}

fn lines<T>(notice: Mrkdwn, items: &[T], draw: impl Fn(Mrkdwn, &T) -> Mrkdwn) -> Mrkdwn {
    between(notice, "\n", items, draw)
}

fn between<T>(mut notice: Mrkdwn, mark: &str, items: &[T], draw: impl Fn(Mrkdwn, &T) -> Mrkdwn) -> Mrkdwn {
    for (nth, item) in items.iter().enumerate() {
        notice = draw(if nth > 0 { notice.raw(mark) } else { notice }, item);
    }
    notice
}

fn write(notice: Mrkdwn, text: &Text) -> Mrkdwn {
    text.0.iter().fold(notice, |notice, span| match span {
        Span::Plain(words) | Span::Bold(words) | Span::Italic(words) | Span::Code(words) | Span::Quote(words) => {
            notice.plain(words)
        }
        Span::Link { text, .. } => notice.plain(text),
        Span::Person(user) | Span::Name(user) => notice.person(user),
        Span::Group(group) => notice.plain(group),
        Span::Channel(channel) => notice.channel(channel),
        Span::Moment(at) => notice.plain(&utc(*at)),
    })
}
