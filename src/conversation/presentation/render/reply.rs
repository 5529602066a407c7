//! Draws a [`Reply`], with the text for notifications and screen readers.

use countersign_core::{
    hash::sha256,
    reply::{Choice, Part, Reply, Span, Text},
};
use countersign_slack::{
    blocks::{
        self, MAX_ACTIONS, MAX_BUTTON_VALUE_CHARS, MAX_FALLBACK_CHARS, MAX_FIELD_CHARS, MAX_FIELDS, MAX_HEADER_CHARS,
        MAX_TEXT_CHARS, Message,
    },
    markdown::{self, harmless},
    mrkdwn::{Mrkdwn, length, utc},
};

use super::{
    canvas::{Canvas, MIN_ROOM},
    spans, table,
};
use crate::presentation::buttons::{RATE, SAY, SEND_AGAIN, rating_values};

pub(super) fn draw(reply: &Reply) -> Message {
    let mut canvas = canvas_of(&reply.parts);
    let shown: Vec<_> = reply.choices.iter().filter(|choice| fits_in_button(choice)).take(MAX_ACTIONS).collect();
    let missing = canvas.left_out() + reply.choices.len() - shown.len();
    if missing > 0 {
        canvas.add_reserved(blocks::context(&format!("… and {missing} more")));
    }
    let words = reply.words();
    if !shown.is_empty() {
        let id = format!("{SAY}{}", &hex::encode(sha256(words.as_bytes()))[..12]);
        let buttons = shown.iter().enumerate();
        let buttons: Vec<_> =
            buttons.map(|(n, choice)| blocks::button(&format!("{SAY}{n}"), &choice.label, &choice.says)).collect();
        canvas.add_reserved(blocks::actions(&id, &buttons));
    }
    if !reply.resends.is_empty() {
        let buttons = reply.resends.iter().take(MAX_ACTIONS).enumerate();
        let buttons: Vec<_> = buttons
            .map(|(n, resend)| blocks::button(&format!("{SEND_AGAIN}{n}"), &resend.label, &resend.key))
            .collect();
        let id = format!("{SEND_AGAIN}{}", &hex::encode(sha256(reply.resends[0].key.as_bytes()))[..12]);
        canvas.add_reserved(blocks::actions(&id, &buttons));
    }
    if let Some(run) = &reply.rates {
        let [yes, no] = rating_values(run);
        canvas.add_reserved(blocks::feedback(RATE, ("This helped", &yes), ("This didn't help", &no)));
    }
    Message { text: notice(reply), blocks: canvas.finish() }
}

/// Returns true if all parts fit into one message.
pub(super) fn fits(parts: &[Part]) -> bool {
    canvas_of(parts).is_complete()
}

fn canvas_of(parts: &[Part]) -> Canvas {
    let mut canvas = Canvas::with_reserve(4, 100); // the note on missing items, two kinds of buttons and the rating
    let mut tables = 0;
    for part in parts {
        if canvas.left_out() > 0 {
            canvas.leave_out(1); // the message is full, so further parts are only counted
            continue;
        }
        draw_part(&mut canvas, part, &mut tables);
        canvas.note_left_out();
    }
    canvas
}

/// Returns true if the choice's whole text fits into a button. A part of the text could mean
/// something else.
fn fits_in_button(choice: &Choice) -> bool {
    !choice.says.trim().is_empty() && length(&choice.says) <= MAX_BUTTON_VALUE_CHARS
}

fn draw_part(canvas: &mut Canvas, part: &Part, tables: &mut usize) {
    match part {
        Part::Text(text) => {
            for paragraph in spans::paragraphs(text, MAX_TEXT_CHARS) {
                canvas.add(blocks::section(&paragraph), length(&paragraph), 1);
            }
        }
        Part::Heading(words) if words.trim().is_empty() => {}
        Part::Heading(words) if length(words) <= MAX_HEADER_CHARS => {
            canvas.add(blocks::header(words), length(words), 1)
        }
        Part::Heading(words) => {
            let heading = Mrkdwn::new(MAX_TEXT_CHARS).bold(words).finish();
            canvas.lines(&[heading], blocks::section);
        }
        Part::List(points) => canvas.lines(&points.iter().map(point).collect::<Vec<_>>(), blocks::section),
        Part::Facts(facts) => draw_facts(canvas, facts),
        Part::Table { columns, rows } => {
            *tables += 1;
            table::draw(canvas, columns, rows, *tables == 1);
        }
        Part::Markdown(text) => {
            let room = canvas.room().min(markdown::MAX_CHARS);
            let whole = harmless(text);
            if whole.is_empty() {
                return;
            }
            if length(&whole) > room {
                canvas.mark_cut();
            }
            match markdown::cut(&whole, room) {
                text if text.is_empty() || (room < MIN_ROOM && length(&whole) > room) => canvas.leave_out(1),
                text => canvas.add(blocks::markdown(&text), length(&text), 1),
            }
        }
        Part::Code(code) => canvas.code(code),
        Part::Note(text) => {
            for note in spans::paragraphs(text, MAX_TEXT_CHARS) {
                canvas.add(blocks::context(&note), length(&note), 1);
            }
        }
    }
}

fn point(text: &Text) -> String {
    spans::write(Mrkdwn::new(MAX_TEXT_CHARS).raw("• "), &spans::with_short_names(text)).finish()
}

fn draw_facts(canvas: &mut Canvas, facts: &[(String, Text)]) {
    for together in facts.chunks(MAX_FIELDS) {
        let fields: Vec<_> = together
            .iter()
            .map(|(label, fact)| spans::write(Mrkdwn::new(MAX_FIELD_CHARS).bold(label).raw("\n"), fact).finish())
            .map(|field| if field.trim().is_empty() { "–".to_owned() } else { field })
            .collect();
        let characters = fields.iter().map(|field| length(field)).sum();
        canvas.add(blocks::fields(&fields), characters, fields.len());
    }
}

/// Returns the text of a reply for notifications and screen readers: a line for each part, without formatting but with the
/// names of people and readable times. It is never empty.
fn notice(reply: &Reply) -> String {
    let mut text = Mrkdwn::new(MAX_FALLBACK_CHARS - 1000);
    for (nth, part) in reply.parts.iter().enumerate() {
        text = notice_part(if nth > 0 { text.raw("\n") } else { text }, part);
    }
    if text.is_blank() { "…".to_owned() } else { text.finish().trim().to_owned() }
}

fn notice_part(notice: Mrkdwn, part: &Part) -> Mrkdwn {
    match part {
        Part::Text(text) | Part::Note(text) => notice_text(notice, text),
        Part::Heading(words) | Part::Code(words) => notice.plain(words),
        Part::Markdown(text) => notice.plain(&markdown::plain(text)),
        Part::List(points) => by_line(notice, points, |notice, point| notice_text(notice.plain("• "), point)),
        Part::Facts(facts) => {
            by_line(notice, facts, |notice, (label, fact)| notice_text(notice.plain(label).plain(": "), fact))
        }
        Part::Table { columns, rows } => {
            let head = notice.plain(&columns.join(" | ")).raw("\n");
            by_line(head, rows, |notice, row| between(notice, " | ", row, notice_text))
        }
    }
}

fn by_line<T>(notice: Mrkdwn, items: &[T], draw: impl Fn(Mrkdwn, &T) -> Mrkdwn) -> Mrkdwn {
    between(notice, "\n", items, draw)
}

fn between<T>(mut notice: Mrkdwn, mark: &str, items: &[T], draw: impl Fn(Mrkdwn, &T) -> Mrkdwn) -> Mrkdwn {
    for (nth, item) in items.iter().enumerate() {
        notice = draw(if nth > 0 { notice.raw(mark) } else { notice }, item);
    }
    notice
}

fn notice_text(notice: Mrkdwn, text: &Text) -> Mrkdwn {
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
