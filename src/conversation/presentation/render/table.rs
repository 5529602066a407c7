//! Renders a table, as Slack's table block if possible, otherwise as lines.

use countersign_core::reply::Text;
use countersign_slack::{
    blocks::{self, MAX_CELLS, MAX_ROWS, MAX_TEXT_CHARS},
    mrkdwn::{Mrkdwn, cut, length},
};

use super::{
    canvas::{Canvas, MIN_ROOM},
    spans,
};

/// The maximum number of characters of a cell that are shown. It is enough for a long sentence, and
/// keeps long names from crowding out the other columns.
const MAX_CELL_CHARS: usize = 160;

/// Renders a table. Slack allows only one table block per message; the `first` table gets it.
pub(super) fn draw(canvas: &mut Canvas, columns: &[String], rows: &[Vec<Text>], first: bool) {
    let columns: Vec<_> = columns.iter().map(|name| Text::new().bold(name)).collect();
    if columns.is_empty() {
        return;
    }
    if first { draw_block(canvas, &columns, rows) } else { draw_lines(canvas, &columns, rows) }
}

fn draw_block(canvas: &mut Canvas, columns: &[Text], rows: &[Vec<Text>]) {
    let width = columns.len().min(MAX_CELLS);
    let empty = Text::new();
    let mut room = canvas.room().saturating_sub(MIN_ROOM); // for further content, such as the note on missing rows
    let mut drawn = Vec::new();
    let mut characters = 0;
    for row in std::iter::once(columns).chain(rows.iter().map(Vec::as_slice)).take(MAX_ROWS) {
        let cells = (0..width).map(|n| row.get(n).unwrap_or(&empty));
        let row_chars: usize = cells.clone().map(|cell| length(&cell.words()).clamp(1, MAX_CELL_CHARS)).sum();
        if row_chars > room {
            break;
        }
        room -= row_chars;
        characters += row_chars;
        drawn.push(cells.map(|cell| spans::cell(cell, MAX_CELL_CHARS)).collect::<Vec<_>>());
    }
    let shown = drawn.len().saturating_sub(1);
    match drawn.is_empty() {
        true if rows.is_empty() => canvas.leave_out(1), // not even the header fits
        false if shown > 0 || rows.is_empty() => canvas.add(blocks::table(&drawn), characters, shown.max(1)),
        true | false => {}
    }
    canvas.leave_out(rows.len() - shown);
    canvas.leave_out_always(columns.len() - width);
}

fn draw_lines(canvas: &mut Canvas, columns: &[Text], rows: &[Vec<Text>]) {
    let line = |row: &[Text]| {
        let mut line = Mrkdwn::new(MAX_TEXT_CHARS);
        for (n, cell) in row.iter().enumerate() {
            line = spans::write(if n > 0 { line.raw(" · ") } else { line }, &spans::one_line(&shortened(cell)));
        }
        line.finish()
    };
    let lines: Vec<_> = std::iter::once(line(columns)).chain(rows.iter().map(|row| line(row))).collect();
    canvas.lines(&lines, blocks::section);
}

/// Returns the cell, truncated if its text is too long.
fn shortened(cell: &Text) -> Text {
    let words = cell.words();
    if length(&words) > MAX_CELL_CHARS { Text::from(cut(&words, MAX_CELL_CHARS)) } else { cell.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_does_not_fit_counts_as_left_out() {
        for rows in [vec![], vec![vec![Text::from("x")]]] {
            let mut canvas = Canvas::with_reserve(2, 12_000);
            draw(&mut canvas, &["Name".to_owned()], &rows, true);
            assert_eq!(canvas.left_out(), 1);
            assert!(canvas.finish().is_empty());
        }
    }

    #[test]
    fn only_a_long_cell_is_shortened() {
        let short = Text::new().bold("Math Hints");
        assert_eq!(shortened(&short), short);
        let long = shortened(&"Hint Timing ".repeat(20).into()).words();
        assert!(length(&long) == MAX_CELL_CHARS && long.ends_with('…'), "{long}");
    }
}
