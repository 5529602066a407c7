//! Splits a long reply into several messages, so that nothing is left out.
//!
//! A chunk takes as many parts as fit into a message. A part that does not fit is split between
//! list items, rows, paragraphs or lines. Rendering decides whether something fits, so the limits
//! are defined only once. A heading stays with the part below it.

use std::collections::VecDeque;

use countersign_core::reply::{Part, Reply, Span, Text};
use countersign_slack::markdown;

use super::reply::fits;

/// The maximum number of messages for one reply; the last one states what is missing. More would
/// flood the thread.
const MAX_MESSAGES: usize = 8;

/// The minimum number of rows, list items, facts or lines of code at the end of a message, if the
/// rest of their part follows in the next message.
const MIN_PIECE: usize = 3;

/// Splits the reply into one for each message, in order. The last one has the buttons and files.
pub(super) fn of(reply: Reply) -> Vec<Reply> {
    if fits(&reply.parts) {
        return vec![reply];
    }
    let Reply { parts, choices, files, rates, resends } = reply;
    let mut rest: VecDeque<Part> = parts.into();
    let mut done: Vec<Vec<Part>> = Vec::new();
    let mut current = Vec::new();
    while let Some(part) = rest.pop_front() {
        current.push(part);
        if done.len() + 1 == MAX_MESSAGES || fits(&current) {
            continue;
        }
        let part = current.pop().expect("it was just pushed");
        match split(&current, part) {
            (None, Some(whole)) if current.iter().all(is_heading) => current.push(whole), // it fits into no message
            (fitting, left) => {
                current.extend(fitting);
                left.into_iter().for_each(|part| rest.push_front(part));
                while current.len() > 1 && current.last().is_some_and(is_heading) {
                    current.pop().into_iter().for_each(|heading| rest.push_front(heading));
                }
            }
        }
        done.push(std::mem::take(&mut current));
    }
    done.push(current);
    done.retain(|parts| !parts.is_empty());
    let mut chunks: Vec<Reply> = done.into_iter().map(|parts| Reply { parts, ..Reply::default() }).collect();
    if let Some(last) = chunks.last_mut() {
        last.choices = choices;
        last.files = files;
        last.rates = rates;
        last.resends = resends;
    }
    chunks
}

fn is_heading(part: &Part) -> bool {
    matches!(part, Part::Heading(_))
}

/// Splits a part that does not fit after `before`. Returns the piece that does, and the rest.
fn split(before: &[Part], part: Part) -> (Option<Part>, Option<Part>) {
    let fits_after = |part: Part| {
        let mut parts = before.to_vec();
        parts.push(part);
        fits(&parts)
    };
    let enough = |n: usize| if n < MIN_PIECE && !before.is_empty() { 0 } else { n };
    match part {
        Part::List(points) => {
            let n = enough(largest_fitting(points.len(), |n| fits_after(Part::List(points[..n].to_vec()))));
            split_at(n, points, Part::List)
        }
        Part::Facts(facts) => {
            let n = enough(largest_fitting(facts.len(), |n| fits_after(Part::Facts(facts[..n].to_vec()))));
            split_at(n, facts, Part::Facts)
        }
        Part::Table { columns, rows } => {
            let table = |rows: Vec<Vec<Text>>| Part::Table { columns: columns.clone(), rows };
            let n = enough(largest_fitting(rows.len(), |n| fits_after(table(rows[..n].to_vec()))));
            split_at(n, rows, table)
        }
        Part::Code(code) => {
            let lines: Vec<&str> = code.trim_matches('\n').lines().collect();
            let n = enough(largest_fitting(lines.len(), |n| fits_after(Part::Code(lines[..n].join("\n")))));
            split_at(n, lines, |lines| Part::Code(lines.join("\n")))
        }
        Part::Text(text) => {
            let lines = lines(&text);
            let n = largest_fitting(lines.len(), |n| fits_after(Part::Text(joined(lines[..n].to_vec()))));
            split_at(n, lines, |lines| Part::Text(joined(lines)))
        }
        Part::Note(text) => {
            let lines = lines(&text);
            let n = largest_fitting(lines.len(), |n| fits_after(Part::Note(joined(lines[..n].to_vec()))));
            split_at(n, lines, |lines| Part::Note(joined(lines)))
        }
        Part::Markdown(text) => match markdown::divide(&text, |head| fits_after(Part::Markdown(head.to_owned()))) {
            Some((head, tail)) => (Some(Part::Markdown(head)), Some(Part::Markdown(tail))),
            None => (None, Some(Part::Markdown(text))),
        },
        Part::Heading(words) => (None, Some(Part::Heading(words))),
    }
}

/// Returns the first `n` items as a part, and the rest as another.
fn split_at<T>(n: usize, mut items: Vec<T>, part: impl Fn(Vec<T>) -> Part) -> (Option<Part>, Option<Part>) {
    let rest = items.split_off(n);
    ((n > 0).then(|| part(items)), (!rest.is_empty()).then(|| part(rest)))
}

/// Returns the greatest number up to `n` for which `fits` returns true, assuming that it also does
/// for all smaller numbers.
fn largest_fitting(n: usize, fits: impl Fn(usize) -> bool) -> usize {
    let (mut fitting, mut over) = (0, n + 1);
    while over - fitting > 1 {
        let middle = (fitting + over) / 2;
        if fits(middle) { fitting = middle } else { over = middle }
    }
    fitting
}

/// Returns the lines of a text, each with its line break. Formatted spans are not split.
fn lines(text: &Text) -> Vec<Text> {
    let mut lines = vec![Text::new()];
    for span in &text.0 {
        let Span::Plain(words) = span else {
            lines.last_mut().expect("there is always a line").0.push(span.clone());
            continue;
        };
        for piece in words.split_inclusive('\n') {
            lines.last_mut().expect("there is always a line").0.push(Span::Plain(piece.to_owned()));
            if piece.ends_with('\n') {
                lines.push(Text::new());
            }
        }
    }
    lines.retain(|line| !line.0.is_empty());
    lines
}

fn joined(lines: Vec<Text>) -> Text {
    lines.into_iter().fold(Text::new(), Text::join)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(chunks: &[Reply]) -> Vec<String> {
        chunks.iter().map(Reply::words).collect()
    }

    #[test]
    fn a_short_reply_is_one_message() {
        let short = Reply::text("hello").choice("Yes", "yes");
        assert_eq!(of(short.clone()), [short]);
    }

    #[test]
    fn a_long_table_repeats_its_columns_and_the_buttons_come_last() {
        let rows: Vec<Vec<Text>> = (0..150).map(|n| vec![format!("row {n}").into()]).collect();
        let answer = Reply::text("All:").and(Part::Table { columns: vec!["Row".into()], rows }).choice("More", "more");
        let chunks = of(answer.hint("Ask for one."));
        assert_eq!(chunks.len(), 2);
        assert!(chunks[0].words().ends_with("row 98") && chunks[0].choices.is_empty());
        assert!(chunks[1].words().starts_with("Row\nrow 99\n"), "{}", chunks[1].words());
        assert!(chunks[1].words().ends_with("row 149\nAsk for one."));
        assert_eq!(chunks[1].choices[0].label, "More");
    }

    #[test]
    fn a_heading_stays_with_the_part_below_it() {
        let list = |n: usize| Part::List((0..n).map(|n| Text::from(format!("{n} {}", "x".repeat(1000)))).collect());
        let answer = Reply::default().and(list(11)).and(Part::Heading("Next".to_owned())).and(list(5));
        let chunks = of(answer);
        assert_eq!(chunks.len(), 2, "{:?}", words(&chunks));
        assert_eq!(chunks[1].parts[0], Part::Heading("Next".to_owned()));
    }

    #[test]
    fn a_long_reply_is_complete_and_in_order() {
        let paragraphs: Vec<String> =
            (0..60).map(|n| format!("Paragraph {n}. {}", "word ".repeat(100).trim())).collect();
        let chunks = of(Reply::markdown(paragraphs.join("\n\n")).hint("The end."));
        assert!(chunks.len() > 2);
        assert!(chunks.iter().all(|chunk| fits(&chunk.parts)));
        let again: Vec<String> = chunks.iter().map(Reply::words).collect();
        assert_eq!(again.join("\n\n"), format!("{}\nThe end.", paragraphs.join("\n\n")));
    }

    #[test]
    fn a_reply_beyond_the_maximum_number_of_messages_is_cut() {
        let chunks = of(Reply::markdown("A line of words.\n\n".repeat(20_000)));
        assert_eq!(chunks.len(), MAX_MESSAGES);
        assert!(chunks[..MAX_MESSAGES - 1].iter().all(|chunk| fits(&chunk.parts)));
        assert!(!fits(&chunks[MAX_MESSAGES - 1].parts));
    }

    #[test]
    fn a_part_that_fits_into_no_message_is_not_split_forever() {
        let endless = Part::List(vec!["x".repeat(40_000).into()]);
        let wide = Part::Table { columns: vec!["c".into(); 30], rows: vec![vec![Text::from("x"); 30]; 3] };
        let chunks = of(Reply::default().and(Part::Heading("One".into())).and(endless).and(wide));
        assert!(chunks.len() <= 3, "{}", chunks.len());
    }
}
