//! Divides long Markdown texts: between paragraphs if possible, else between list items, rows or lines.

use super::addresses::indent_of;

/// The length beyond which no text fits into a message, in bytes.
const MAX_BYTES: usize = 50_000;

/// Divides a text into a beginning that fits and the rest; `None` if not even a part of the first line fits. If a code
/// block is divided, it is closed and reopened; if a table is divided, its head is repeated.
pub fn divide(text: &str, fits: impl Fn(&str) -> bool) -> Option<(String, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut bytes = 0;
    let may_fit = lines.iter().take_while(|line| {
        bytes += line.len();
        bytes <= MAX_BYTES
    });
    let most = largest_fitting(may_fit.count(), |n| fits(&closed(&lines[..n])));
    let head = head_of_table(&lines, lines.len().min(2)).map_or(0, |_| 2);
    let floor = head.max(usize::from(lines.first().is_some_and(|line| fence(line).is_some())));
    if most <= floor {
        return divide_line(&lines, floor, &fits).or_else(|| divide_line(&lines, 0, &fits));
    }
    let inside = inside_of_code(&lines[..most]);
    let places = (most / 2 + 1..=most).filter(|at| *at > floor);
    let at = places.max_by_key(|at| (rank(&lines, *at, inside[*at]), *at))?;
    let mut rest = reopened(&lines, at);
    rest.extend(lines[at..].iter().skip_while(|line| line.trim().is_empty()));
    let nothing_left = rest.len() == reopened(&lines, at).len();
    Some((closed(&lines[..at]), if nothing_left { String::new() } else { rest.join("\n") }))
}

/// Divides the line at `floor`, which does not fit, between words if possible, else between any characters.
fn divide_line(lines: &[&str], floor: usize, fits: &impl Fn(&str) -> bool) -> Option<(String, String)> {
    let line = lines.get(floor)?;
    let before = &lines[..floor];
    let with = |end: usize| closed(&[before, &[&line[..end]]].concat());
    let blanks: Vec<usize> = line.match_indices(' ').map(|(at, _)| at).filter(|at| *at > 0).collect();
    let ends: Vec<usize> = line.char_indices().map(|(at, _)| at).skip(1).collect();
    let end = [blanks, ends].into_iter().find_map(|ends| {
        let n = largest_fitting(ends.len(), |n| n == 0 || fits(&with(ends[n - 1])));
        n.checked_sub(1).map(|last| ends[last])
    })?;
    let mut rest = reopened(lines, floor);
    rest.push(line[end..].trim_start());
    rest.extend(&lines[floor + 1..]);
    Some((with(end), rest.join("\n")))
}

/// Returns the largest number up to `n` for which `fits` is true, by binary search; 0 always fits.
fn largest_fitting(n: usize, fits: impl Fn(usize) -> bool) -> usize {
    let (mut fitting, mut over) = (0, n + 1);
    while over - fitting > 1 {
        let middle = (fitting + over) / 2;
        if fits(middle) { fitting = middle } else { over = middle }
    }
    fitting
}

/// Rates the place before the line at `at` for dividing; higher is better. `inside` is true inside a code block.
fn rank(lines: &[&str], at: usize, inside: bool) -> u8 {
    let (before, next) = (lines[at - 1].trim_start(), lines.get(at).map_or("", |line| line.trim_start()));
    let heading = |line: &str| line.starts_with('#');
    match () {
        () if inside => u8::from(next.is_empty()),
        () if heading(before) || (is_rule(next) && is_row(before)) || is_rule(before) => 0,
        () if before.is_empty() || next.is_empty() || heading(next) => 4,
        () if is_point(next) => 3,
        () if is_row(next) && is_row(before) => 3,
        () => 2,
    }
}

/// Returns the lines that are repeated before the line at `at` if it is inside a code block or table.
fn reopened<'a>(lines: &[&'a str], at: usize) -> Vec<&'a str> {
    match (open_fence(&lines[..at]), head_of_table(lines, at)) {
        (Some(fence), _) => vec![fence],
        (None, Some(head)) => vec![lines[head], lines[head + 1]],
        (None, None) => Vec::new(),
    }
}

/// Joins the lines, and closes a code block that is open at the end.
fn closed(lines: &[&str]) -> String {
    let text = lines.join("\n");
    match open_fence(lines).and_then(|line| Some((indent_of(line), fence(line)?))) {
        Some((indent, mark)) => format!("{text}\n{indent}{mark}"),
        None => text.trim_end().to_owned(),
    }
}

/// Returns the first line of the code block that is open at the end.
pub(super) fn open_fence<'a>(lines: &[&'a str]) -> Option<&'a str> {
    lines.iter().fold(None, |open, line| fence_after(open, line))
}

/// Returns, for each line and for the end, true if a code block is open before it. Computed only once, since a text may
/// be long.
fn inside_of_code(lines: &[&str]) -> Vec<bool> {
    let mut open = None;
    let mut inside = vec![false];
    for line in lines {
        open = fence_after(open, line);
        inside.push(open.is_some());
    }
    inside
}

/// Returns the first line of the code block that is open after `line`. `open` is the one before `line`.
fn fence_after<'a>(open: Option<&'a str>, line: &'a str) -> Option<&'a str> {
    match (open.and_then(fence), fence(line)) {
        (None, Some(_)) => Some(line),
        (Some(mark), Some(other)) if closes(mark, other, line) => None,
        _ => open,
    }
}

/// Returns the backticks or tildes with which a line opens or closes a code block.
pub(super) fn fence(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let marks = &line[..line.len() - line.trim_start_matches(mark).len()];
    let info = &line[marks.len()..];
    (marks.len() >= 3 && !(mark == '`' && info.contains('`'))).then_some(marks)
}

/// Returns true if a line that begins with `other` closes the block opened by `mark`.
pub(super) fn closes(mark: &str, other: &str, line: &str) -> bool {
    other.starts_with(mark) && line.trim() == other
}

/// Returns the position of the first line of the table that the line at `at` continues.
fn head_of_table(lines: &[&str], at: usize) -> Option<usize> {
    let first = lines[..at].iter().rposition(|line| !is_row(line)).map_or(0, |before| before + 1);
    let continues = at == lines.len() || is_row(lines[at]);
    (first + 1 < at && is_rule(lines[first + 1]) && continues).then_some(first)
}

fn is_row(line: &str) -> bool {
    line.contains('|')
}

fn is_rule(line: &str) -> bool {
    is_row(line) && line.contains('-') && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '))
}

fn is_point(line: &str) -> bool {
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let after = &line[digits..];
    ["- ", "* ", "+ "].iter().any(|mark| line.starts_with(mark)) || (digits > 0 && after.starts_with(". "))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(text: &str, limit: usize) -> Vec<String> {
        let mut pieces = Vec::new();
        let mut rest = text.to_owned();
        while rest.chars().count() > limit {
            let (head, tail) = divide(&rest, |head| head.chars().count() <= limit).unwrap_or_else(|| panic!("{rest}"));
            assert!(head.chars().count() <= limit, "{head}");
            pieces.push(head);
            rest = tail;
            assert!(pieces.len() < 1_000, "the division does not end: {rest}");
        }
        pieces.push(rest);
        pieces
    }

    #[test]
    fn paragraphs_stay_whole() {
        assert_eq!(all("one two\n\nthree four\n\nfive", 20), ["one two\n\nthree four", "five"]);
        assert_eq!(all("# Head\ntext\n\n# Next\nmore text", 22), ["# Head\ntext", "# Next\nmore text"]);
    }

    #[test]
    fn list_items_stay_whole() {
        assert_eq!(all("- one two\n- three\n  four\n- five", 25), ["- one two\n- three\n  four", "- five"]);
    }

    #[test]
    fn the_head_of_a_divided_table_is_repeated() {
        let table = "|a|b|\n|-|-|\n|1|2|\n|3|4|\n|5|6|";
        assert_eq!(all(table, 23), ["|a|b|\n|-|-|\n|1|2|\n|3|4|", "|a|b|\n|-|-|\n|5|6|"]);
    }

    #[test]
    fn a_divided_code_block_is_closed_and_reopened() {
        let code = "```rust\nlet a = 1;\nlet b = 2;\nlet c = 3;\n```\nDone.";
        assert_eq!(all(code, 35), ["```rust\nlet a = 1;\nlet b = 2;\n```", "```rust\nlet c = 3;\n```\nDone."],);
        assert_eq!(all("````\n```\n1234567890\n````", 20), ["````\n```\n````", "````\n1234567890\n````"]);
    }

    #[test]
    fn a_long_line_is_divided_between_words() {
        assert_eq!(all("aaa bbb ccc ddd", 8), ["aaa bbb", "ccc ddd"]);
        assert_eq!(all("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(all("```\nabcdefghij\n```", 12), ["```\nabcd\n```", "```\nefgh\n```", "```\nij\n```"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_text_comes_to_an_end_and_no_code_stays_open(text in "([a-z |#`~\n-]|```|\n\n|[|]-[|]){0,200}") {
            let mut pieces = all(&text, 40);
            pieces.pop(); // the last piece ends like the text, possibly inside a code block
            for piece in pieces {
                prop_assert!(open_fence(&piece.lines().collect::<Vec<_>>()).is_none(), "{}", piece);
            }
        }
    }
}
