//! A chart of users over time, as PNG: one line for each experiment.
//!
//! A picture has its own light background, so it looks the same in dark mode; its texts are large, because a phone shows
//! it at a third of its width.

use countersign_capabilities::picture::{self, Area, Drawn, INK, write};
use jiff::civil::Date;
use plotters::{prelude::*, style::text_anchor::HPos};

const WIDTH: u32 = 960;
/// The height without the lines of the title.
const HEIGHT: u32 = 520;
/// The height of a line of the title, and the number of characters in it.
const TITLE_LINE: (u32, usize) = (40, 50);
const TITLE_SIZE: f64 = 32.0;
const LABEL_SIZE: f64 = 25.0;
/// The left and the right end of the lines.
const SPAN: (i32, i32) = (110, 920);
/// The height of the lines.
const RISE: i32 = 320;
const MUTED: RGBColor = RGBColor(98, 100, 115);
const GRID: RGBColor = RGBColor(222, 223, 230);
/// Colors that people with any kind of color vision can tell apart on white.
const COLORS: [RGBColor; 2] = [RGBColor(0, 90, 181), RGBColor(213, 94, 0)];

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
    let title = picture::wrapped(title, TITLE_LINE.1, usize::MAX);
    let height = HEIGHT + TITLE_LINE.0 * u32::try_from(title.len())?;
    picture::draw((WIDTH, height), |area| paint(area, &title, dates, lines))
}

fn paint(area: &Area<'_>, title: &[String], dates: &[Date], lines: &[Line]) -> Drawn {
    let line_height = i32::try_from(TITLE_LINE.0)?;
    let mut top = 36;
    for words in title {
        write(area, words, (28, top), TITLE_SIZE, INK, HPos::Left)?;
        top += line_height;
    }
    let floor = top + 20 + RISE;
    let most = lines.iter().flat_map(|line| &line.totals).copied().max().unwrap_or_default().max(1);
    let y = |count: u64| floor - (f64::from(RISE) * count as f64 / most as f64).round() as i32;
    let last = dates.len().saturating_sub(1).max(1) as f64;
    let x = |day: usize| SPAN.0 + (f64::from(SPAN.1 - SPAN.0) * day as f64 / last).round() as i32;
    let marks = if most > 1 { vec![0, most / 2, most] } else { vec![0, most] };
    for mark in marks {
        area.draw(&PathElement::new(vec![(SPAN.0, y(mark)), (SPAN.1, y(mark))], GRID.stroke_width(2)))?;
        write(area, &mark.to_string(), (SPAN.0 - 14, y(mark)), LABEL_SIZE, MUTED, HPos::Right)?;
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
        write(area, &day(first), (SPAN.0, floor + 32), LABEL_SIZE, MUTED, HPos::Left)?;
        write(area, &day(last), (SPAN.1, floor + 32), LABEL_SIZE, MUTED, HPos::Right)?;
    } else if let [only] = dates {
        write(area, &day(only), (SPAN.0, floor + 32), LABEL_SIZE, MUTED, HPos::Left)?;
    }
    legend(area, lines, floor + 72)
}

/// Draws the names of the lines, one below the other.
fn legend(area: &Area<'_>, lines: &[Line], mut top: i32) -> Drawn {
    for (line, color) in lines.iter().zip(COLORS).filter(|_| lines.len() > 1) {
        area.draw(&Rectangle::new([(SPAN.0, top - 10), (SPAN.0 + 20, top + 10)], color.filled()))?;
        write(area, &line.name, (SPAN.0 + 32, top), LABEL_SIZE, INK, HPos::Left)?;
        top += 36;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pixels_of(png: &[u8], color: RGBColor) -> usize {
        let mut picture = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
        let mut pixels = vec![0; picture.output_buffer_size().unwrap()];
        picture.next_frame(&mut pixels).unwrap();
        pixels.chunks_exact(3).filter(|pixel| *pixel == [color.0, color.1, color.2]).count()
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

    #[test]
    fn a_long_title_is_wrapped_and_kept() {
        let title =
            "Enrollment of A Very Long Name Of An Experiment (12 users) and Another Long Name Of One (345 users)";
        let lines = picture::wrapped(title, TITLE_LINE.1, usize::MAX);
        assert!(lines.len() > 1 && lines.iter().all(|line| line.chars().count() <= TITLE_LINE.1), "{lines:?}");
        assert_eq!(lines.join(" "), title);
    }
}
