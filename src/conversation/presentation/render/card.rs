//! Renders a [`Card`] in its current state.
//!
//! The content of a card is shown line by line. Each value is kept on one line, or quoted line by
//! line, so that it cannot look like another fact, and the card says so if something does not fit.

use countersign_core::{
    ids::{ApprovalId, UserId},
    reply::{Asked, Card, CardState, Fact, FollowUp, Meter, Span, Text},
};
use countersign_slack::{
    blocks::{self, MAX_TEXT_CHARS, Message},
    mrkdwn::{Mrkdwn, length},
};

use super::{
    ABANDON, AGAIN, ANSWER, APPROVE, CANCEL, CHANGE, CHECK, DECLINE, EDIT, MARK_DONE, REJECT, SHOW_ALL, STOP, UNDO,
    canvas::Canvas, fallback, spans,
};

/// The maximum length of a decision or outcome, in characters.
const MAX_SENTENCE_CHARS: usize = 1400;

/// The maximum length of a value in bold, in characters.
const MAX_BOLD_CHARS: usize = 300;

/// The maximum length of a value, in characters. A longer value is truncated, and shown in full
/// behind a button.
const MAX_VALUE_CHARS: usize = 700;

/// The maximum length of a quoted value, in characters. It is longer, since people read it as a whole.
const MAX_QUOTE_CHARS: usize = 3000;

/// Renders the card. If `stops` is true, a running action has a Stop button on the card.
pub(super) fn draw(card: &Card, state: &CardState, stops: bool) -> Message {
    if let CardState::Closed { decision, approval: Some(approval), newer: Some(_), .. } = state {
        return draw_superseded(card, decision, approval);
    }
    let mut canvas = Canvas::with_reserve(6, 4000); // for everything below the notes: decision, context, buttons
    let short = spans::with_short_quotes(&card.title);
    let title = Mrkdwn::new(MAX_TEXT_CHARS).bold(&short);
    let title = if title.is_blank() { "*?*".to_owned() } else { title.finish() };
    canvas.lines(&[title], blocks::section);
    if short != card.title {
        let full_title = spans::one_line(&Text::new().bold("In full").plain("  ").plain(&card.title));
        canvas.lines(&spans::paragraphs(&full_title, MAX_TEXT_CHARS), blocks::section);
    }
    let mut is_cut = false;
    let facts = card.facts.iter().map(|fact| shortened_fact(fact, &mut is_cut)).collect::<Vec<_>>();
    canvas.lines(&facts.iter().flat_map(lines_of).collect::<Vec<_>>(), blocks::section);
    let warnings = card.warnings.iter().flat_map(|warning| {
        spans::paragraphs(
            &Text(std::iter::once(plain("⚠️ ")).chain(spans::one_line(warning).0).collect()),
            MAX_TEXT_CHARS,
        )
    });
    canvas.lines(&warnings.collect::<Vec<_>>(), blocks::section);
    let notes = card.notes.iter().flat_map(|note| spans::paragraphs(&spans::one_line(note), MAX_TEXT_CHARS));
    canvas.lines(&notes.collect::<Vec<_>>(), blocks::context);
    is_cut |= canvas.left_out() > 0;
    if is_cut {
        let notice = sentence().plain("⚠️ Not everything fits here. The rest is behind ").raw("*Show all*").plain(".");
        canvas.add_reserved(blocks::section(&notice.finish()));
    }
    let text = draw_state(&mut canvas, card, state, is_cut, stops);
    Message { text, blocks: canvas.finish() }
}

/// Renders a card that was replaced by another one, with only its title and outcome. Everything else
/// is on the newer card or behind the button.
fn draw_superseded(card: &Card, decision: &Text, approval: &ApprovalId) -> Message {
    let title = Mrkdwn::new(MAX_SENTENCE_CHARS).bold(&spans::with_short_quotes(&card.title));
    let title = if title.is_blank() { "*?*".to_owned() } else { title.finish() };
    let decision = spans::write(sentence(), decision).finish();
    let text = fallback_with(&card.title, Mrkdwn::new(MAX_TEXT_CHARS).plain(" ").raw(&decision));
    let show_all = blocks::button(SHOW_ALL, "Show all", approval.as_str());
    let lines = [title, decision];
    let lines: Vec<_> = lines.iter().filter(|line| !line.trim().is_empty()).map(String::as_str).collect();
    let buttons = blocks::actions(&format!("closed:{approval}:{SHOW_ALL}"), &[show_all]);
    Message { text, blocks: vec![blocks::section(&lines.join("\n")), buttons] }
}

/// Renders the state below the facts. Returns the text for notifications.
fn draw_state(canvas: &mut Canvas, card: &Card, state: &CardState, is_cut: bool, stops: bool) -> String {
    match state {
        CardState::Open {
            approval,
            asked_by,
            deciders,
            expires_at,
            digest,
            approved_by,
            needed,
            edited_by,
            because,
        } => {
            if let Some(because) = because {
                canvas.add_reserved(blocks::section(&sentence().plain("🔒 ").plain(because).finish()));
            }
            if *needed > 1 {
                let line = match approved_by.len() {
                    0 => sentence().plain(&format!("{needed} different people must approve.")),
                    so_far => {
                        people(sentence().plain(&format!("{so_far} of {needed}: approved by ")), approved_by).plain(".")
                    }
                };
                canvas.add_reserved(blocks::section(&line.finish()));
            }
            let line = spans::write(requesters(asked_by, edited_by).plain(" · "), deciders);
            let line = line.plain(" may decide · until ").moment(*expires_at).plain(" · digest ").code(digest);
            canvas.add_reserved(blocks::context(&line.finish()));
            canvas.add_reserved(buttons(card, approval, approved_by.len()));
            fallback_with(&card.title, sentence().plain(" Asked by ").person(asked_by).plain("."))
        }
        CardState::Running { by, at, meter } => {
            let approved = match by.as_slice() {
                [] => sentence().plain("Approved by a setting"),
                by => people(sentence().plain("Approved by "), by),
            };
            let line = approved.plain(" · ").moment(*at).plain(" · running…");
            let line = line.finish();
            canvas.add_reserved(blocks::section(&line));
            if let Some(meter) = meter {
                let bar = bar(meter);
                if !bar.is_empty() {
                    canvas.add_reserved(blocks::section(&bar));
                }
                if let Some(asked) = &meter.asks {
                    let question = spans::write(sentence().plain("❓ "), &spans::one_line(&asked.text)).finish();
                    canvas.add_reserved(blocks::section(&question));
                    canvas.add_reserved(answer_buttons(meter, asked));
                } else if stops {
                    canvas.add_reserved(stop_button(meter));
                }
            }
            fallback_with(&card.title, Mrkdwn::new(MAX_TEXT_CHARS).plain(" ").raw(&line))
        }
        CardState::Closed { decision, outcome, digest, approval, follow_ups, newer: _, asked_by, edited_by } => {
            let decision = spans::write(sentence(), decision).finish();
            let outcome = outcome.iter().map(|outcome| spans::write(sentence(), outcome).finish());
            let lines: Vec<_> =
                std::iter::once(decision).chain(outcome).filter(|line| !line.trim().is_empty()).collect();
            let sentences = lines.join("\n");
            if !sentences.is_empty() {
                canvas.add_reserved(blocks::section(&sentences));
            }
            let line = match asked_by {
                Some(asked_by) => requesters(asked_by, edited_by).plain(" · "),
                None => sentence(),
            };
            canvas.add_reserved(blocks::context(&line.plain("digest ").code(digest).finish()));
            if let Some(approval) = approval {
                let mut buttons: Vec<_> = follow_ups.iter().map(|follow_up| button_of(follow_up, approval)).collect();
                if is_cut {
                    buttons.push(blocks::button(SHOW_ALL, "Show all", approval.as_str()));
                }
                if !buttons.is_empty() {
                    let names: Vec<_> = buttons.iter().filter_map(|button| button["action_id"].as_str()).collect();
                    canvas.add_reserved(blocks::actions(&format!("closed:{approval}:{}", names.join("+")), &buttons));
                }
            }
            fallback_with(&card.title, Mrkdwn::new(MAX_TEXT_CHARS).plain(" ").raw(&lines.join(" ")))
        }
    }
}

/// Returns the button of a follow-up to a closed card.
fn button_of(follow_up: &FollowUp, approval: &ApprovalId) -> serde_json::Value {
    let (action, label) = match follow_up {
        FollowUp::Undo(label) => (UNDO, label.as_str()),
        FollowUp::Again(label) => (AGAIN, label.as_str()),
        FollowUp::Change => (CHANGE, "Change and ask again…"),
        FollowUp::Check => (CHECK, "Check again"),
        FollowUp::MarkDone => (MARK_DONE, "Mark as done"),
        FollowUp::Abandon => (ABANDON, "Abandon"),
    };
    let button = blocks::button(action, label, approval.as_str());
    match follow_up {
        FollowUp::MarkDone => {
            let asked = "I read it back once more. If I cannot see it there, the record says that you say so.";
            blocks::confirmed(button, "Mark as done?", asked, label, "Go back")
        }
        _ => button,
    }
}

/// Returns a fact with shortened values. Sets `is_cut` if a value was truncated.
fn shortened_fact(fact: &Fact, is_cut: &mut bool) -> Fact {
    let mut shorten = |text: &Text| {
        let max = if matches!(text.0.as_slice(), [Span::Quote(_)]) { MAX_QUOTE_CHARS } else { MAX_VALUE_CHARS };
        let (short, cut) = shortened(text, max);
        *is_cut |= cut;
        short
    };
    Fact { label: fact.label.clone(), before: fact.before.as_ref().map(&mut shorten), after: shorten(&fact.after) }
}

/// Returns at most `max` characters of a text, and true if it was truncated.
fn shortened(text: &Text, max: usize) -> (Text, bool) {
    let mut left = max;
    let mut short = Text::new();
    for span in &text.0 {
        let words = match span {
            Span::Plain(words) | Span::Bold(words) | Span::Italic(words) | Span::Code(words) | Span::Quote(words) => {
                words
            }
            Span::Person(_)
            | Span::Name(_)
            | Span::Group(_)
            | Span::Channel(_)
            | Span::Moment(_)
            | Span::Link { .. } => {
                short.0.push(span.clone());
                continue;
            }
        };
        let count = words.chars().count();
        if count <= left {
            left -= count;
            short.0.push(span.clone());
            continue;
        }
        let kept: String = words.chars().take(left).collect();
        short.0.push(match span {
            Span::Bold(_) => Span::Bold(kept),
            Span::Italic(_) => Span::Italic(kept),
            Span::Code(_) => Span::Code(kept),
            Span::Quote(_) => Span::Quote(format!("{kept}…")),
            _ => Span::Plain(kept),
        });
        let is_quote = matches!(span, Span::Quote(_));
        return (if is_quote { short } else { short.plain("…") }, true);
    }
    (short, false)
}

/// Returns the notification text: the title, followed by `more`.
fn fallback_with(title: &str, more: Mrkdwn) -> String {
    format!("{}{}", fallback(&spans::with_short_quotes(title)), more.finish())
}

/// Returns a fact as a line, or as several if it is long.
fn lines_of(fact: &Fact) -> Vec<String> {
    let label = if fact.label.trim().is_empty() { "–" } else { fact.label.trim() };
    if let (None, [Span::Quote(words)]) = (&fact.before, fact.after.0.as_slice()) {
        let label = Mrkdwn::new(MAX_TEXT_CHARS).bold(label).finish();
        return std::iter::once(label).chain(quoted(words)).collect();
    }
    let mut line = Text::new().bold(label).plain("  ");
    let after = spans::one_line(&fact.after);
    match &fact.before {
        Some(before) => {
            line.0.extend(or_empty(spans::one_line(before)).0);
            line = line.plain(" → ");
            let after = or_empty(after);
            line.0.extend(if length(&after.words()) <= MAX_BOLD_CHARS { spans::in_bold(after) } else { after }.0);
        }
        None => line.0.extend(or_empty(after).0),
    }
    spans::paragraphs(&line, MAX_TEXT_CHARS)
}

/// Returns the lines of a text as a quotation.
fn quoted(words: &str) -> Vec<String> {
    let words = words.replace("\r\n", "\n").replace(['\r', '\u{2028}', '\u{2029}'], "\n");
    let lines = words.split('\n').flat_map(|line| {
        let pieces = spans::paragraphs(&Text::from(line), MAX_TEXT_CHARS - 2);
        if pieces.is_empty() { vec![String::new()] } else { pieces }
    });
    lines.map(|line| if line.is_empty() { ">".to_owned() } else { format!("> {line}") }).collect()
}

/// Returns the text, or “empty” if it has no words.
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
    let edit = card.editable.then(|| blocks::button(EDIT, "Edit…", approval.as_str()));
    let show = blocks::button(SHOW_ALL, "Show all", approval.as_str());
    let buttons: Vec<_> = [Some(approve), Some(reject), edit, Some(show)].into_iter().flatten().collect();
    blocks::actions(&format!("card:{approval}:{approvals}"), &buttons)
}

/// Returns the progress bar: `■■■■■□□□□□  512 of 1000 · about 12 s left`.
pub(super) fn bar(meter: &Meter) -> String {
    const CELLS: u64 = 20;
    let Meter { done, total, seconds_left, note, .. } = meter;
    if *total <= 1 && !note.words().is_empty() {
        return spans::write(sentence(), note).finish(); // a single item needs no progress bar
    }
    let full = (done * CELLS).checked_div(*total).unwrap_or(0).min(CELLS);
    let cells: String = (0..CELLS).map(|cell| if cell < full { '■' } else { '□' }).collect();
    if *total == 0 {
        return spans::write(sentence(), note).finish(); // the total is unknown
    }
    let line = sentence().plain(&format!("{cells}  {done} of {total}"));
    let line = match seconds_left {
        Some(seconds @ 0..=90) => line.plain(&format!(" · about {} s left", (*seconds).max(1))),
        Some(seconds) => line.plain(&format!(" · about {} min left", seconds.div_ceil(60))),
        None => line,
    };
    if note.words().is_empty() { line.finish() } else { spans::write(line.plain(" · "), note).finish() }
}

/// Returns the buttons of a question that is asked during a change.
fn answer_buttons(meter: &Meter, asked: &Asked) -> serde_json::Value {
    let key = meter.approval.as_str();
    let answer = blocks::styled(blocks::button(ANSWER, &asked.answer, key), "primary");
    let decline = blocks::button(DECLINE, "Don't answer", key);
    let cancel = blocks::button(CANCEL, "Cancel call", key);
    blocks::actions(&format!("asks:{}:{}", meter.approval, meter.done), &[answer, decline, cancel])
}

pub(super) fn stop_button(meter: &Meter) -> serde_json::Value {
    let stop = blocks::button(STOP, "Stop", meter.approval.as_str());
    blocks::actions(&format!("stop:{}:{}", meter.approval, meter.done), &[stop])
}

/// Returns `Asked by @ana, edited by @bo`.
fn requesters(asked_by: &UserId, edited_by: &[UserId]) -> Mrkdwn {
    let line = sentence().plain("Asked by ").person(asked_by);
    match edited_by {
        [] => line,
        editors => people(line.plain(", edited by "), editors),
    }
}

fn people(mut line: Mrkdwn, people: &[UserId]) -> Mrkdwn {
    for (nth, person) in people.iter().enumerate() {
        line = if nth > 0 { line.plain(", ") } else { line }.person(person);
    }
    line
}

fn sentence() -> Mrkdwn {
    Mrkdwn::new(MAX_SENTENCE_CHARS)
}

fn plain(words: &str) -> Span {
    Span::Plain(words.to_owned())
}
