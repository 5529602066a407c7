//! Divides a long answer, so that nothing is left out.
//!
//! A chunk takes as many parts as fit into a message. A part that does not fit is divided where a reader would: between
//! points, rows, paragraphs, lines. Drawing decides if something fits, so that there is only one rule. A heading stays
//! with the part below it.

use std::collections::VecDeque;

use countersign_core::reply::{Part, Reply, Span, Text};
use countersign_slack::markdown;

use super::reply::fits;

/// The most messages that one answer becomes; the last one names what is missing. More would bury the thread.
const MAX_MESSAGES: usize = 8;

/// The fewest rows of a table, points or facts that are worth beginning at the end of a message.
const MIN_BEGUN: usize = 3;

/// Divides the answer into one reply for each message, in order. The buttons are below the last one.
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
        match divide(&current, part) {
            (None, Some(whole)) if current.iter().all(is_heading) => current.push(whole), // no message would hold it
            (begun, left) => {
                current.extend(begun);
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

/// Divides a part that does not fit after others, and returns the piece that does and the rest.
fn divide(before: &[Part], part: Part) -> (Option<Part>, Option<Part>) {
    let fits_after = |part: Part| {
        let mut parts = before.to_vec();
        parts.push(part);
        fits(&parts)
    };
    let worth = |n: usize| if n < MIN_BEGUN && !before.is_empty() { 0 } else { n };
    match part {
        Part::List(points) => {
            let n = worth(largest_fitting(points.len(), |n| fits_after(Part::List(points[..n].to_vec()))));
            split_at(n, points, Part::List)
        }
        Part::Facts(facts) => {
            let n = worth(largest_fitting(facts.len(), |n| fits_after(Part::Facts(facts[..n].to_vec()))));
            split_at(n, facts, Part::Facts)
        }
        Part::Table { columns, rows } => {
            let table = |rows: Vec<Vec<Text>>| Part::Table { columns: columns.clone(), rows };
            let n = worth(largest_fitting(rows.len(), |n| fits_after(table(rows[..n].to_vec()))));
            split_at(n, rows, table)
        }
        Part::Code(code) => {
            let lines: Vec<&str> = code.trim_matches('\n').lines().collect();
            let n = worth(largest_fitting(lines.len(), |n| fits_after(Part::Code(lines[..n].join("\n")))));
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

/// Returns the first `n` things as a part, and the rest as another.
fn split_at<T>(n: usize, mut things: Vec<T>, part: impl Fn(Vec<T>) -> Part) -> (Option<Part>, Option<Part>) {
    let rest = things.split_off(n);
    ((n > 0).then(|| part(things)), (!rest.is_empty()).then(|| part(rest)))
}

/// Returns the greatest number up to `n` for which `fits` holds, if it also holds for all smaller numbers.
fn largest_fitting(n: usize, fits: impl Fn(usize) -> bool) -> usize {
    let (mut fitting, mut over) = (0, n + 1);
    while over - fitting > 1 {
        let middle = (fitting + over) / 2;
        if fits(middle) { fitting = middle } else { over = middle }
    }
    fitting
}

/// Returns the lines of a text, each with its line break. Formatted spans are not divided.
fn lines(text: &Text) -> Vec<Text> {
    let mut lines = vec![Text::new()];
    for span in &text.0 {
        let Span::Plain(words) = span else {
            lines.last_mut().expect("there is one").0.push(span.clone());
            continue;
        };
        for piece in words.split_inclusive('\n') {
            lines.last_mut().expect("there is one").0.push(Span::Plain(piece.to_owned()));
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
    fn what_fits_is_one_message() {
        let short = Reply::text("hello").choice("Yes", "yes");
        assert_eq!(of(short.clone()), [short]);
    }

    #[test]
    fn a_long_table_goes_on_with_its_columns_and_the_buttons_come_last() {
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
    fn a_heading_goes_with_what_it_is_above() {
        let list = |n: usize| Part::List((0..n).map(|n| Text::from(format!("{n} {}", "x".repeat(1000)))).collect());
        let answer = Reply::default().and(list(11)).and(Part::Heading("Next".to_owned())).and(list(5));
        let chunks = of(answer);
        assert_eq!(chunks.len(), 2, "{:?}", words(&chunks));
        assert_eq!(chunks[1].parts[0], Part::Heading("Next".to_owned()));
    }

    #[test]
    fn nothing_of_a_long_answer_is_missing_and_all_of_it_is_in_order() {
        let paragraphs: Vec<String> =
            (0..60).map(|n| format!("Paragraph {n}. {}", "word ".repeat(100).trim())).collect();
        let chunks = of(Reply::markdown(paragraphs.join("\n\n")).hint("The end."));
        assert!(chunks.len() > 2);
        assert!(chunks.iter().all(|chunk| fits(&chunk.parts)));
        let again: Vec<String> = chunks.iter().map(Reply::words).collect();
        assert_eq!(again.join("\n\n"), format!("{}\nThe end.", paragraphs.join("\n\n")));
    }

    #[test]
    fn more_than_anybody_reads_is_cut_and_says_so() {
        let chunks = of(Reply::markdown("A line of words.\n\n".repeat(20_000)));
        assert_eq!(chunks.len(), MAX_MESSAGES);
        assert!(chunks[..MAX_MESSAGES - 1].iter().all(|chunk| fits(&chunk.parts)));
        assert!(!fits(&chunks[MAX_MESSAGES - 1].parts));
    }

    #[test]
    fn what_no_message_holds_does_not_go_on_for_ever() {
        let endless = Part::List(vec!["x".repeat(40_000).into()]);
        let wide = Part::Table { columns: vec!["c".into(); 30], rows: vec![vec![Text::from("x"); 30]; 3] };
        let chunks = of(Reply::default().and(Part::Heading("One".into())).and(endless).and(wide));
        assert!(chunks.len() <= 3, "{}", chunks.len());
    }
}
