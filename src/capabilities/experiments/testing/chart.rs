//! A bar chart of counts and their expected values, as PNG.

use countersign_capabilities::picture::{self, Area, COLORS, Drawn, INK, LABEL_SIZE, Title, WIDTH, write};
use plotters::{prelude::*, style::text_anchor::HPos};

const ROW: u32 = 76;
const TOP: u32 = 92;
/// The height below the last row, without the legend.
const BOTTOM: u32 = 22;
const LEFT: i32 = 250;
const RIGHT: i32 = 100;
const BAR: RGBColor = COLORS[0];
const EXPECTED: RGBColor = COLORS[1];

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
    let title = Title::new(title);
    let height = TOP + title.extra() + ROW * u32::try_from(rows.len())? + picture::legend_height(2) + BOTTOM;
    picture::draw(height, |area| paint(area, &title, counted, rows))
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
        picture::name(area, &row.name, (LEFT - 16, middle))?;
        let end = x(row.count as f64);
        area.draw(&Rectangle::new([(LEFT, top + 4), (end.max(LEFT + 1), top + 50)], BAR.filled()))?;
        let mark = x(row.expected);
        area.draw(&Rectangle::new([(mark - 2, top - 4), (mark + 2, top + 58)], EXPECTED.filled()))?;
        write(area, &row.count.to_string(), (end.max(mark) + 12, middle), LABEL_SIZE, INK, HPos::Left)?;
    }
    let foot = i32::try_from(head + ROW * u32::try_from(rows.len())?)?;
    let entries = [(counted.word(), BAR.to_rgba()), ("expected by weight", EXPECTED.to_rgba())];
    picture::legend(area, &entries, (LEFT, foot))
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
        assert_eq!(
            (picture.info().width, picture.info().height),
            (WIDTH, TOP + 3 * ROW + picture::legend_height(2) + BOTTOM)
        );
        let drawn =
            |color: RGBColor| pixels.chunks_exact(4).filter(|p| **p == [color.0, color.1, color.2, 255]).count();
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
