//! A chart of users over time, as PNG: one line for each experiment.

use countersign_capabilities::picture::{self, Area, COLORS, Drawn, GRID, INK, LABEL_SIZE, Title, write};
use jiff::civil::Date;
use plotters::{prelude::*, style::text_anchor::HPos};

/// The height without the further lines of the title, and the legend.
const HEIGHT: u32 = 500;
/// The left and the right end of the lines.
const SPAN: (i32, i32) = (100, 690);
/// The height of the lines.
const RISE: i32 = 320;
/// The meaning of the lines, which are not the new users of each day as in the table.
const MEANING: &str = "Users enrolled up to each day";

/// One line of the chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// The name.
    pub(super) name: String,
    /// The total of each day.
    pub(super) totals: Vec<u64>,
}

/// Draws lines over these days.
///
/// # Errors
///
/// Fails if there are no days, or the picture cannot be drawn.
pub(super) fn draw(title: &str, dates: &[Date], lines: &[Line]) -> anyhow::Result<Vec<u8>> {
    anyhow::ensure!(!dates.is_empty(), "there is nothing to draw");
    let title = Title::whole(title);
    let height = HEIGHT + title.extra() + picture::legend_height(named(lines).len());
    picture::draw(height, |area| paint(area, &title, dates, lines))
}

fn paint(area: &Area<'_>, title: &Title, dates: &[Date], lines: &[Line]) -> Drawn {
    title.write(area, (28, 36))?;
    let head = 36 + i32::try_from(title.extra())?;
    write(area, MEANING, (28, head + 40), LABEL_SIZE, INK, HPos::Left)?;
    let floor = head + 84 + RISE;
    let most = lines.iter().flat_map(|line| &line.totals).copied().max().unwrap_or_default().max(1);
    let y = |count: u64| floor - (f64::from(RISE) * count as f64 / most as f64).round() as i32;
    let last = dates.len().saturating_sub(1).max(1) as f64;
    let x = |day: usize| SPAN.0 + (f64::from(SPAN.1 - SPAN.0) * day as f64 / last).round() as i32;
    let marks = if most > 1 { vec![0, most / 2, most] } else { vec![0, most] };
    for mark in marks {
        area.draw(&PathElement::new(vec![(SPAN.0, y(mark)), (SPAN.1, y(mark))], GRID.stroke_width(2)))?;
        write(area, &mark.to_string(), (SPAN.0 - 14, y(mark)), LABEL_SIZE, INK, HPos::Right)?;
    }
    for (line, color) in lines.iter().zip(COLORS) {
        let points: Vec<(i32, i32)> = line.totals.iter().enumerate().map(|(day, total)| (x(day), y(*total))).collect();
        for point in &points {
            area.draw(&Circle::new(*point, if points.len() > 60 { 2 } else { 5 }, color.filled()))?;
        }
        area.draw(&PathElement::new(points, color.stroke_width(4)))?;
    }
    let day = |date: &Date| date.strftime("%b %-d, %Y").to_string();
    if let [first, .., last] = dates {
        write(area, &day(first), (SPAN.0, floor + 32), LABEL_SIZE, INK, HPos::Left)?;
        write(area, &day(last), (SPAN.1, floor + 32), LABEL_SIZE, INK, HPos::Right)?;
    } else if let [only] = dates {
        write(area, &day(only), (SPAN.0, floor + 32), LABEL_SIZE, INK, HPos::Left)?;
    }
    picture::legend(area, &named(lines), (SPAN.0, floor + 56))
}

/// Returns the names of the lines with their colors; none if there is a single line, which the title names.
fn named(lines: &[Line]) -> Vec<(&str, RGBAColor)> {
    let named = lines.iter().zip(COLORS).filter(|_| lines.len() > 1);
    named.map(|(line, color)| (line.name.as_str(), color.to_rgba())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pixels_of(png: &[u8], color: RGBColor) -> usize {
        let mut picture = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
        let mut pixels = vec![0; picture.output_buffer_size().unwrap()];
        picture.next_frame(&mut pixels).unwrap();
        pixels.chunks_exact(4).filter(|pixel| *pixel == [color.0, color.1, color.2, 255]).count()
    }

    fn dates(days: usize) -> Vec<Date> {
        let first: Date = "2026-11-01".parse().unwrap();
        first.series(jiff::Span::new().days(1)).take(days).collect()
    }

    #[test]
    fn each_experiment_has_a_line_of_its_own() {
        let line = |name: &str, totals: &[u64]| Line { name: name.to_owned(), totals: totals.to_vec() };
        let two = [line("A", &[0, 10, 20]), line("B", &[5, 5, 40])];
        let png = draw("Enrollment", &dates(3), &two).unwrap();
        assert!(pixels_of(&png, COLORS[0]) > 1000 && pixels_of(&png, COLORS[1]) > 1000);
        let png = draw("Enrollment", &dates(1), &[line("A", &[7])]).unwrap();
        assert!(pixels_of(&png, COLORS[0]) > 20, "a single day is a point");
        assert_eq!(pixels_of(&png, COLORS[1]), 0);
        assert!(draw("Enrollment", &[], &[]).is_err());
    }
}
