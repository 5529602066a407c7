//! Draws a [`Card`] as it stands.
//!
//! What a person countersigns is shown line by line. A value is kept on one line, so that it cannot look like another
//! one, and nothing is left out silently.

use super::{APPROVE, REJECT, STOP, canvas::Canvas, fallback, spans};
use crate::{
    ids::{ApprovalId, UserId},
    reply::{Card, CardState, Fact, Meter, Text},
    slack::{
        blocks::{self, Message, TEXT},
        mrkdwn::{Mrkdwn, length},
    },
};

/// The longest decision or outcome that is shown.
const SENTENCE: usize = 1400;

/// Values longer than this are not in bold.
const SHORT: usize = 300;

pub(super) fn draw(card: &Card, state: &CardState) -> Message {
    let mut canvas = Canvas::keeping(5, 4000); // everything below the notes: sentences, small print, buttons
    let short = spans::with_short_quotes(&card.title);
    let title = Mrkdwn::new(TEXT).bold(&short);
    let title = if title.is_blank() { "*?*".to_owned() } else { title.finish() };
    canvas.lines(&[title], blocks::section);
    let whole = spans::one_line(&Text::new().bold("In full").plain("  ").plain(&card.title));
    if short != card.title {
        canvas.lines(&spans::paragraphs(&whole, TEXT), blocks::section);
    }
    canvas.lines(&card.facts.iter().flat_map(lines_of).collect::<Vec<_>>(), blocks::section);
    let warnings = card.warnings.iter().flat_map(|warning| {
        spans::paragraphs(&Text(std::iter::once(plain("⚠️ ")).chain(spans::one_line(warning).0).collect()), TEXT)
    });
    canvas.lines(&warnings.collect::<Vec<_>>(), blocks::section);
    let notes = card.notes.iter().flat_map(|note| spans::paragraphs(&spans::one_line(note), TEXT));
    canvas.lines(&notes.collect::<Vec<_>>(), blocks::context);
    let missing = canvas.left_out();
    if missing > 0 {
        let lines = if missing == 1 { "1 line does" } else { &format!("{missing} lines do") };
        canvas.add_kept(blocks::section(&format!(
            "⚠️ *Not everything is shown:* {lines} not fit on this card. The digest covers them too."
        )));
    }
    let text = draw_state(&mut canvas, card, state);
    Message { text, blocks: canvas.finish() }
}

/// Draws what stands below the facts. Returns the words for notifications.
fn draw_state(canvas: &mut Canvas, card: &Card, state: &CardState) -> String {
    match state {
        CardState::Open { approval, asked_by, deciders, expires_at, digest, approved_by, needed } => {
            if *needed > 1 {
                let line = match approved_by.len() {
                    0 => sentence().plain(&format!("{needed} different people must approve.")),
                    so_far => {
                        people(sentence().plain("Approved by "), approved_by).plain(&format!(" ({so_far} of {needed})"))
                    }
                };
                canvas.add_kept(blocks::section(&line.finish()));
            }
            let line = sentence().plain("Asked by ").person(asked_by).plain(" · ");
            let line = spans::write(line, deciders);
            let line = line.plain(" may decide · until ").moment(*expires_at).plain(" · digest ").code(digest);
            canvas.add_kept(blocks::context(&line.finish()));
            canvas.add_kept(buttons(card, approval, approved_by.len()));
            fallback_with(&card.title, sentence().plain(" Asked by ").person(asked_by).plain("."))
        }
        CardState::Running { by, at, meter } => {
            let line = people(sentence().plain("Approved by "), by).plain(" · ").moment(*at).plain(" · running…");
            let line = line.finish();
            canvas.add_kept(blocks::section(&line));
            if let Some(meter) = meter {
                canvas.add_kept(blocks::section(&bar(meter)));
                canvas.add_kept(stop_button(meter));
            }
            fallback_with(&card.title, Mrkdwn::new(TEXT).plain(" ").raw(&line))
        }
        CardState::Closed { decision, outcome, digest } => {
            let decision = spans::write(sentence(), decision).finish();
            let outcome = outcome.iter().map(|outcome| spans::write(sentence(), outcome).finish());
            let lines: Vec<_> =
                std::iter::once(decision).chain(outcome).filter(|line| !line.trim().is_empty()).collect();
            let record = lines.join("\n");
            if !record.is_empty() {
                canvas.add_kept(blocks::section(&record));
            }
            canvas.add_kept(blocks::context(&sentence().plain("digest ").code(digest).finish()));
            fallback_with(&card.title, Mrkdwn::new(TEXT).plain(" ").raw(&lines.join(" ")))
        }
    }
}

/// The title with what is added to it, for notifications.
fn fallback_with(title: &str, more: Mrkdwn) -> String {
    format!("{}{}", fallback(&spans::with_short_quotes(title)), more.finish())
}

/// A fact on its own line, or more if it is long.
fn lines_of(fact: &Fact) -> Vec<String> {
    let label = if fact.label.trim().is_empty() { "–" } else { fact.label.trim() };
    let mut line = Text::new().bold(label).plain("  ");
    let after = spans::one_line(&fact.after);
    match &fact.before {
        Some(before) => {
            line.0.extend(or_empty(spans::one_line(before)).0);
            line = line.plain(" → ");
            let after = or_empty(after);
            line.0.extend(if length(&after.words()) <= SHORT { spans::in_bold(after) } else { after }.0);
        }
        None => line.0.extend(or_empty(after).0),
    }
    spans::paragraphs(&line, TEXT)
}

/// A value that is nothing says so.
fn or_empty(text: Text) -> Text {
    if text.words().trim().is_empty() { Text::new().italic("empty") } else { text }
}

fn buttons(card: &Card, approval: &ApprovalId, approvals: usize) -> serde_json::Value {
    let approve = blocks::button(APPROVE, &card.approve, approval.as_str());
    let approve = if card.irreversible {
        let asked = "This cannot be undone.";
        blocks::confirmed(blocks::styled(approve, "danger"), &card.title, asked, &card.approve, "Go back")
    } else {
        blocks::styled(approve, "primary")
    };
    let reject = blocks::button(REJECT, &card.reject, approval.as_str());
    blocks::actions(&format!("card:{approval}:{approvals}"), &[approve, reject])
}

/// How far it is: `▓▓▓▓▓░░░░░  512 of 1000 · about 12 s left`.
fn bar(meter: &Meter) -> String {
    const CELLS: u64 = 20;
    let Meter { done, total, seconds_left, note, .. } = meter;
    let full = (done * CELLS).checked_div(*total).unwrap_or(0).min(CELLS);
    let cells: String = (0..CELLS).map(|cell| if cell < full { '▓' } else { '░' }).collect();
    let line = sentence().plain(&format!("{cells}  {done} of {total}"));
    let line = match seconds_left {
        Some(seconds @ 0..=90) => line.plain(&format!(" · about {} s left", (*seconds).max(1))),
        Some(seconds) => line.plain(&format!(" · about {} min left", seconds.div_ceil(60))),
        None => line,
    };
    if note.words().is_empty() { line.finish() } else { spans::write(line.plain(" · "), note).finish() }
}

fn stop_button(meter: &Meter) -> serde_json::Value {
    let stop = blocks::button(STOP, "Stop", meter.approval.as_str());
    blocks::actions(&format!("stop:{}:{}", meter.approval, meter.done), &[stop])
}

fn people(mut line: Mrkdwn, people: &[UserId]) -> Mrkdwn {
    for (nth, person) in people.iter().enumerate() {
        line = if nth > 0 { line.plain(", ") } else { line }.person(person);
    }
    line
}

fn sentence() -> Mrkdwn {
    Mrkdwn::new(SENTENCE)
}

fn plain(words: &str) -> crate::reply::Span {
    crate::reply::Span::Plain(words.to_owned())
}
