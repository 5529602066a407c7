//! A bar chart of counts and their expected values, as PNG.

use countersign_capabilities::picture::{self, Area, Drawn, INK, Title, wrapped, write};
use plotters::{prelude::*, style::text_anchor::HPos};

const WIDTH: u32 = 720;
const ROW: u32 = 76;
const TOP: u32 = 92;
const BOTTOM: u32 = 66;
const LEFT: i32 = 250;
const RIGHT: i32 = 100;
/// The maximum length of a line of a name left of a bar, in characters, and the number of lines.
const MAX_NAME: (usize, usize) = (15, 2);
/// The maximum length of a line of the title, in characters.
const MAX_TITLE: usize = 40;
/// The sizes of the texts in pixels. They are large because a phone shows the picture at half of its width.
const TITLE_SIZE: f64 = 32.0;
const LABEL_SIZE: f64 = 27.0;

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
    let title = Title::new(title, MAX_TITLE, TITLE_SIZE);
    let height = TOP + title.extra() + ROW * u32::try_from(rows.len())? + BOTTOM;
    picture::draw((WIDTH, height), |area| paint(area, &title, counted, rows))
}

/// Describes the chart with its numbers.
pub fn description(title: &str, counted: Counted, rows: &[Row]) -> String {
    let row = |row: &Row| format!("{}: {} {}, {:.1} expected", row.name, row.count, counted.word(), row.expected);
    format!("Bar chart. {title}. {}.", rows.iter().map(row).collect::<Vec<_>>().join("; "))
}

fn paint(area: &Area<'_>, title: &Title, counted: Counted, rows: &[Row]) -> Drawn {
    let head = TOP + title.extra();
    let most = rows.iter().map(|row| row.expected.max(row.count as f64)).fold(1.0, f64::max);
    let width = f64::from(i32::try_from(WIDTH)? - LEFT - RIGHT);
    let x = |count: f64| LEFT + (width * count / most).round() as i32;
    title.write(area, (24, 38))?;
    for (nth, row) in rows.iter().enumerate() {
        let top = i32::try_from(head + ROW * u32::try_from(nth)?)?;
        let middle = top + 27;
        let name = wrapped(&row.name, MAX_NAME.0, MAX_NAME.1);
        let first = middle - 14 * i32::try_from(name.len() - 1)?;
        for (line, at) in name.iter().zip((first..).step_by(28)) {
            write(area, line, (LEFT - 16, at), LABEL_SIZE, INK, HPos::Right)?;
        }
        let end = x(row.count as f64);
        area.draw(&Rectangle::new([(LEFT, top + 4), (end.max(LEFT + 1), top + 50)], BAR.filled()))?;
        let mark = x(row.expected);
        area.draw(&Rectangle::new([(mark - 2, top - 4), (mark + 2, top + 58)], EXPECTED.filled()))?;
        write(area, &row.count.to_string(), (end.max(mark) + 12, middle), LABEL_SIZE, INK, HPos::Left)?;
    }
    let foot = i32::try_from(head + ROW * u32::try_from(rows.len())?)? + 18;
    area.draw(&Rectangle::new([(LEFT, foot - 6), (LEFT + 16, foot + 6)], BAR.filled()))?;
    write(area, counted.word(), (LEFT + 24, foot), LABEL_SIZE, MUTED, HPos::Left)?;
    area.draw(&Rectangle::new([(LEFT + 172, foot - 12), (LEFT + 176, foot + 12)], EXPECTED.filled()))?;
    write(area, "expected by weight", (LEFT + 188, foot), LABEL_SIZE, MUTED, HPos::Left)?;
    Ok(())
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
    fn the_description_has_the_numbers() {
        let rows = [Row { name: "control".to_owned(), count: 52, expected: 50.0 }];
        assert_eq!(
            description("Math Hints: 52 users", Counted::Enrolled, &rows),
            "Bar chart. Math Hints: 52 users. control: 52 enrolled, 50.0 expected."
        );
    }

    #[test]
    fn the_legend_tells_a_draw_from_an_enrollment() {
        assert_eq!((Counted::Enrolled.word(), Counted::Drawn.word()), ("enrolled", "drawn"));
        let rows = [Row { name: "control".to_owned(), count: 52, expected: 50.0 }];
        let picture = |counted| draw("Math Hints", counted, &rows).unwrap();
        assert_ne!(picture(Counted::Enrolled), picture(Counted::Drawn));
    }
}
