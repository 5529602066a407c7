//! Renders a [`Card`] in its current state.
//!
//! The content of a card is shown line by line. Each value is kept on one line, or quoted line by
//! line, so that it cannot look like another fact, and the card says so if something does not fit.

use countersign_core::{
    ids::{ApprovalId, UserId},
    reply::{Asked, Card, CardState, EndedBy, Fact, FollowUp, Meter, Span, Text},
};
use countersign_graph::card;
use countersign_slack::{
    blocks::{self, MAX_TEXT_CHARS, Message},
    mrkdwn::{Mrkdwn, length, literal},
};

use super::{
    canvas::{Canvas, fallback},
    spans,
};
use crate::presentation::buttons::{
    ABANDON, AGAIN, ANSWER, APPROVE, CANCEL, CHANGE, CHECK, DECLINE, EDIT, MARK_DONE, REJECT, SHOW_ALL, STOP, UNDO,
    WITHDRAW,
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

/// The maximum length of a quoted value on a closed card, in characters.
const MAX_KEPT_QUOTE_CHARS: usize = 300;

/// Renders the card. If `stops` is true, a running action has a Stop button on the card.
pub(super) fn draw(card: &Card, state: &CardState, stops: bool) -> Message {
    if let CardState::Closed { decision, approval: Some(approval), newer: Some(_), .. } = state {
        return draw_superseded(card, decision, approval);
    }
    if let CardState::Closed {
        decision,
        outcome,
        digest,
        approval,
        follow_ups,
        newer: _,
        asked_by,
        edited_by,
        is_suggested,
    } = state
    {
        let who = (asked_by.as_ref(), edited_by.as_slice(), *is_suggested);
        return draw_closed(card, (decision, outcome.as_ref()), digest, (approval.as_ref(), follow_ups), who);
    }
    let mut canvas = Canvas::with_reserve(6, 4000); // for everything below the notes: decision, context, buttons
    let short = spans::with_short_quotes(&card.title);
    let title = Mrkdwn::new(MAX_TEXT_CHARS).bold(&short);
    let title = if title.is_blank() { "*?*".to_owned() } else { title.finish() };
    if let CardState::Open { origin: Some(origin), .. } = state {
        let origin = Text::from("⚠️ ").join(spans::one_line(origin));
        canvas.lines(&spans::paragraphs(&origin, MAX_TEXT_CHARS), blocks::section);
    }
    canvas.lines(&[title], blocks::section);
    if short != card.title {
        let full_title = spans::one_line(&Text::new().bold("In full").plain("  ").plain(&card.title));
        canvas.lines(&spans::paragraphs(&full_title, MAX_TEXT_CHARS), blocks::section);
    }
    let is_risky = matches!(state, CardState::Open { is_risky: true, .. });
    if is_risky {
        draw_warnings(&mut canvas, card);
    }
    let mut is_cut = false;
    let facts = card.facts.iter().map(|fact| shortened_fact(fact, &mut is_cut)).collect::<Vec<_>>();
    for group in facts.chunk_by(|a, b| quotation_of(a).is_none() && quotation_of(b).is_none()) {
        match group.first().and_then(quotation_of) {
            Some((label, words)) => {
                canvas.add(blocks::quotation(label, words), length(label) + length(&literal(words)), 1);
            }
            None => canvas.lines(&group.iter().flat_map(lines_of).collect::<Vec<_>>(), blocks::section),
        }
    }
    if !is_risky {
        draw_warnings(&mut canvas, card);
    }
    let notes = card.notes.iter().flat_map(|note| spans::paragraphs(&spans::one_line(note), MAX_TEXT_CHARS));
    canvas.lines(&notes.collect::<Vec<_>>(), blocks::context);
    is_cut |= canvas.left_out() > 0;
    if is_cut {
        let notice =
            sentence().plain("⚠️ Not everything fits here. To see the rest, press ").raw("*Show all*").plain(".");
        canvas.add_reserved(blocks::section(&notice.finish()));
    }
    let text = draw_state(&mut canvas, card, state, stops);
    Message { text, blocks: canvas.finish() }
}

fn draw_warnings(canvas: &mut Canvas, card: &Card) {
    let warnings = card.warnings.iter().flat_map(|warning| {
        spans::paragraphs(
            &Text(std::iter::once(plain("⚠️ ")).chain(spans::one_line(warning).0).collect()),
            MAX_TEXT_CHARS,
        )
    });
    canvas.lines(&warnings.collect::<Vec<_>>(), blocks::section);
}

/// Renders a card that was replaced by another one, with only its title and outcome. Everything else
/// is on the newer card or behind the button.
fn draw_superseded(card: &Card, decision: &Text, approval: &ApprovalId) -> Message {
    let title = Mrkdwn::new(MAX_SENTENCE_CHARS).bold(&spans::with_short_quotes(act(card)));
    let title = if title.is_blank() { "*?*".to_owned() } else { title.finish() };
    let decision = spans::write(sentence(), decision).finish();
    let text = fallback_with(act(card), Mrkdwn::new(MAX_TEXT_CHARS).plain(" · ").raw(&decision));
    let show_all = blocks::button(SHOW_ALL, "Show all", approval.as_str());
    let lines = [title, decision];
    let lines: Vec<_> = lines.iter().filter(|line| !line.trim().is_empty()).map(String::as_str).collect();
    let buttons = blocks::actions(&format!("closed:{approval}:{SHOW_ALL}"), &[show_all]);
    Message { text, blocks: vec![blocks::section(&lines.join("\n")), buttons] }
}

/// Renders the state below the facts. Returns the text for notifications.
fn draw_state(canvas: &mut Canvas, card: &Card, state: &CardState, stops: bool) -> String {
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
            is_risky,
            ended_by,
            origin,
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
            let line = spans::write(requesters(asked_by, edited_by, origin.is_some()).plain(" · "), deciders);
            let line = line.plain(" can approve");
            let line = if expires_at.is_never() { line } else { line.plain(" · expires ").moment(*expires_at) };
            canvas.add_reserved(blocks::context(&line.plain(" · digest ").code(digest).finish()));
            canvas.add_reserved(buttons(card, approval, approved_by.len(), (*is_risky, *ended_by)));
            let asked = sentence().plain(" ").plain(opening(origin.is_some())).person(asked_by).plain(".");
            fallback_with(&card.title, asked)
        }
        CardState::Running { by, at, meter, is_elsewhere } => {
            let approved = match by.as_slice() {
                [] => sentence().plain("Approved by a setting"),
                by => people(sentence().plain("Approved by "), by),
            };
            let line = approved.plain(" · ").moment(*at);
            let line = if *is_elsewhere { line } else { line.plain(" · running…") }.finish();
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
        CardState::Closed { .. } => fallback(act(card)), // drawn by `draw_closed`
    }
}

/// Renders a card that was decided: a header with its state, the values that the change replaced, the beginning of the
/// text that was sent, and who asked and decided. Everything else is behind a button.
fn draw_closed(
    card: &Card,
    (decision, outcome): (&Text, Option<&Text>),
    digest: &str,
    (approval, follow_ups): (Option<&ApprovalId>, &[FollowUp]),
    (asked_by, edited_by, is_suggested): (Option<&UserId>, &[UserId], bool),
) -> Message {
    let mut canvas = Canvas::with_reserve(3, 2000); // for the context and the buttons
    let title = Mrkdwn::new(MAX_TEXT_CHARS).bold(&spans::with_short_quotes(act(card)));
    let title = if title.is_blank() { "*?*".to_owned() } else { title.finish() };
    // An outcome in the card's own words names the change, so the title would only repeat it.
    let is_named = outcome.is_some_and(|outcome| is_done_as_announced(card, outcome));
    let outcome = outcome.map(|outcome| spans::write(sentence(), outcome).finish());
    let decision = spans::write(sentence(), decision).finish();
    let state: Vec<String> = outcome.into_iter().chain([decision]).filter(|line| !line.trim().is_empty()).collect();
    let text = match is_named {
        true => state.join(" "),
        false => fallback_with(act(card), Mrkdwn::new(MAX_TEXT_CHARS).plain(" · ").raw(&state.join(" "))),
    };
    let done = sentence().plain("✅ ").bold(&spans::with_short_quotes(&card.done)).finish();
    let header: Vec<String> = match is_named {
        true => std::iter::once(done).chain(state.into_iter().skip(1)).collect(),
        false => std::iter::once(title).chain(state).collect(),
    };
    canvas.lines(&header, blocks::section);
    let (replaced, others): (Vec<&Fact>, Vec<&Fact>) = card.facts.iter().partition(|fact| fact.before.is_some());
    let mut is_cut = !others.is_empty() || !card.warnings.is_empty() || !card.notes.is_empty();
    let facts: Vec<Fact> = replaced.into_iter().map(|fact| shortened_fact(fact, &mut is_cut)).collect();
    canvas.lines(&facts.iter().flat_map(lines_of).collect::<Vec<_>>(), blocks::section);
    // What came in from outside is nowhere else in the thread.
    let made = others.last().filter(|_| card.editable);
    for fact in &others[..others.len() - usize::from(made.is_some())] {
        let fact = shortened_fact(fact, &mut is_cut);
        if let Some((label, words)) = quotation_of(&fact) {
            canvas.add(blocks::quotation(label, words), length(label) + length(&literal(words)), 1);
        }
    }
    // The last line of a card that can be edited is what the change makes: a quotation there is a text that was sent.
    let sent = made
        .filter(|_| is_named)
        .map(|fact| Fact { after: shortened(&fact.after, MAX_KEPT_QUOTE_CHARS).0, ..Fact::clone(fact) });
    if let Some((label, words)) = sent.as_ref().and_then(quotation_of) {
        canvas.add(blocks::quotation(label, words), length(label) + length(&literal(words)), 1);
    }
    is_cut |= canvas.left_out() > 0;
    let line = match asked_by {
        Some(asked_by) => requesters(asked_by, edited_by, is_suggested).plain(" · "),
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
    Message { text, blocks: canvas.finish() }
}

/// Returns the title without the question mark, since the card asks nothing any more.
fn act(card: &Card) -> &str {
    card.title.trim().trim_end_matches('?')
}

/// Returns true if an outcome is that the change was made, in the words that the card has for it.
fn is_done_as_announced(card: &Card, outcome: &Text) -> bool {
    let done = card.done.trim();
    !done.is_empty() && outcome.words().trim_end() == format!("✅ {done}")
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
            let asked = "I'll check the platform once more. If I can't see the change there, the record says that you confirmed it.";
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

/// Returns the label and the words of a fact that is shown as a quotation; `None` if it is shown as a line.
pub(super) fn quotation_of(fact: &Fact) -> Option<(&str, &str)> {
    match (&fact.before, fact.after.0.as_slice()) {
        (None, [Span::Quote(words)]) => Some((label_of(fact), words)),
        _ => None,
    }
}

fn label_of(fact: &Fact) -> &str {
    if fact.label.trim().is_empty() { "–" } else { fact.label.trim() }
}

/// Returns a fact as a line, or as several if it is long.
fn lines_of(fact: &Fact) -> Vec<String> {
    let mut line = Text::new().bold(label_of(fact)).plain("  ");
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

/// Returns the text, or “empty” if it has no words.
fn or_empty(text: Text) -> Text {
    if text.words().trim().is_empty() { Text::new().italic("empty") } else { text }
}

fn buttons(
    card: &Card,
    approval: &ApprovalId,
    approvals: usize,
    (is_risky, ended_by): (bool, EndedBy),
) -> serde_json::Value {
    let approve = blocks::button(APPROVE, &card.approve, approval.as_str());
    let asked_again = |approve| {
        let warnings: Vec<String> = card.warnings.iter().map(Text::words).collect();
        let asked = if warnings.is_empty() { "This can't be undone.".to_owned() } else { warnings.join(" ") };
        blocks::confirmed(approve, &card.title, &asked, &card.approve, "Go back")
    };
    let reject = || blocks::button(REJECT, &card.reject, approval.as_str());
    let reject = (ended_by != EndedBy::Withdrawing).then(reject);
    let withdraw = || blocks::button(WITHDRAW, card::WITHDRAW, approval.as_str());
    let withdraw = (ended_by != EndedBy::Rejecting).then(withdraw);
    let (first, second) = if card.irreversible {
        (Some(asked_again(blocks::styled(approve, "danger"))), reject)
    } else if is_risky {
        (reject.map(|reject| blocks::styled(reject, "primary")), Some(asked_again(approve)))
    } else {
        (Some(blocks::styled(approve, "primary")), reject)
    };
    let edit = card.editable.then(|| blocks::button(EDIT, "Edit…", approval.as_str()));
    let show = blocks::button(SHOW_ALL, "Show all", approval.as_str());
    let buttons: Vec<_> = [first, second, withdraw, edit, Some(show)].into_iter().flatten().collect();
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

/// Returns the words before the name of the person who asked, or whom a suggestion answered.
pub(in crate::presentation) fn opening(is_suggested: bool) -> &'static str {
    if is_suggested { "Suggested by the assistant while answering " } else { "Asked by " }
}

/// Returns `Asked by @ana, edited by @bo`.
fn requesters(asked_by: &UserId, edited_by: &[UserId], is_suggested: bool) -> Mrkdwn {
    let line = sentence().plain(opening(is_suggested)).person(asked_by);
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
