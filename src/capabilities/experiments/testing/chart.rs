//! A bar chart of counts and their expected values, as PNG.

use countersign_capabilities::picture::{self, Area, Drawn, INK, write};
use plotters::{prelude::*, style::text_anchor::HPos};

const WIDTH: u32 = 720;
const ROW: u32 = 64;
const TOP: u32 = 84;
const BOTTOM: u32 = 60;
const LEFT: i32 = 210;
const RIGHT: i32 = 100;
/// The maximum length of a name that fits left of a bar, in characters.
const MAX_NAME_LENGTH: usize = 18;

const MUTED: RGBColor = RGBColor(108, 110, 125);
const BAR: RGBColor = RGBColor(59, 98, 220);
const EXPECTED: RGBColor = RGBColor(223, 120, 38);

/// One row of the chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The label.
    pub name: String,
    /// The count.
    pub count: u64,
    /// The expected count.
    pub expected: f64,
}

/// The subject of the counts, which the legend names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Users or groups that are enrolled.
    Enrolled,
    /// Made-up users or groups that only got a condition from the platform's draw.
    Drawn,
}

impl Counted {
    /// Returns the word in the legend.
    fn word(self) -> &'static str {
        match self {
            Self::Enrolled => "enrolled",
            Self::Drawn => "drawn",
        }
    }
}

/// Draws rows under a title.
///
/// # Errors
///
/// Fails if the picture cannot be drawn. The data cannot cause that, and the figures are shown without
/// the picture.
pub fn draw(title: &str, counted: Counted, rows: &[Row]) -> anyhow::Result<Vec<u8>> {
    let height = TOP + ROW * u32::try_from(rows.len())? + BOTTOM;
    picture::draw((WIDTH, height), |area| paint(area, title, counted, rows))
}

fn paint(area: &Area<'_>, title: &str, counted: Counted, rows: &[Row]) -> Drawn {
    let most = rows.iter().map(|row| row.expected.max(row.count as f64)).fold(1.0, f64::max);
    let width = f64::from(i32::try_from(WIDTH)? - LEFT - RIGHT);
    let x = |count: f64| LEFT + (width * count / most).round() as i32;
    write(area, title, (24, 38), 26.0, INK, HPos::Left)?;
    for (nth, row) in rows.iter().enumerate() {
        let top = i32::try_from(TOP + ROW * u32::try_from(nth)?)?;
        let middle = top + 22;
        write(area, &shortened(&row.name), (LEFT - 16, middle), 22.0, INK, HPos::Right)?;
        let end = x(row.count as f64);
        area.draw(&Rectangle::new([(LEFT, top + 4), (end.max(LEFT + 1), top + 40)], BAR.filled()))?;
        let mark = x(row.expected);
        area.draw(&Rectangle::new([(mark - 2, top - 4), (mark + 2, top + 48)], EXPECTED.filled()))?;
        write(area, &row.count.to_string(), (end.max(mark) + 12, middle), 22.0, INK, HPos::Left)?;
    }
    let foot = i32::try_from(TOP + ROW * u32::try_from(rows.len())?)? + 18;
    area.draw(&Rectangle::new([(LEFT, foot - 6), (LEFT + 16, foot + 6)], BAR.filled()))?;
    write(area, counted.word(), (LEFT + 24, foot), 19.0, MUTED, HPos::Left)?;
    area.draw(&Rectangle::new([(LEFT + 132, foot - 9), (LEFT + 136, foot + 9)], EXPECTED.filled()))?;
    write(area, "expected by weight", (LEFT + 146, foot), 19.0, MUTED, HPos::Left)?;
    Ok(())
}

fn shortened(name: &str) -> String {
    match name.char_indices().nth(MAX_NAME_LENGTH) {
        None => name.to_owned(),
        Some(_) => name.chars().take(MAX_NAME_LENGTH - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_is_a_picture() {
        let row = |name: &str, count, expected| Row { name: name.to_owned(), count, expected };
        let rows =
            [row("control", 52, 50.0), row("a very long name of a condition 🙂", 48, 50.0), row("nobody", 0, 0.0)];
        let png = draw("Math Hints", Counted::Enrolled, &rows).unwrap();
        let mut picture = png::Decoder::new(std::io::Cursor::new(&png)).read_info().unwrap();
        let mut pixels = vec![0; picture.output_buffer_size().unwrap()];
        picture.next_frame(&mut pixels).unwrap();
        assert_eq!((picture.info().width, picture.info().height), (WIDTH, TOP + 3 * ROW + BOTTOM));
        let drawn = |colour: RGBColor| pixels.chunks_exact(3).filter(|p| **p == [colour.0, colour.1, colour.2]).count();
        assert!(drawn(BAR) > 10_000 && drawn(EXPECTED) > 200 && drawn(INK) > 200, "bars, marks and words are there");
    }
    #[test]
    fn the_legend_tells_a_draw_from_an_enrollment() {
        assert_eq!((Counted::Enrolled.word(), Counted::Drawn.word()), ("enrolled", "drawn"));
        let rows = [Row { name: "control".to_owned(), count: 52, expected: 50.0 }];
        let picture = |counted| draw("Math Hints", counted, &rows).unwrap();
        assert_ne!(picture(Counted::Enrolled), picture(Counted::Drawn));
    }
}
