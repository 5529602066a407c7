//! Charts as PNG: horizontal bars with a number each.

use countersign_capabilities::picture::{self, COLORS, INK, LABEL_SIZE, Title, write};
use plotters::{prelude::*, style::text_anchor::HPos};

use super::{figures::Figures, replies};

/// The height of a row in pixels.
const ROW: u32 = 68;
/// The height of a bar in pixels.
const BAR: i32 = 44;
/// The height above the first row.
const HEAD: u32 = 78;
/// The height below the last row, without the legend.
const FOOT: u32 = 22;
/// The left and the right end of the longest bar.
const SPAN: (i32, i32) = (250, 580);

/// A row of a chart.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    label: String,
    /// The two parts of the bar.
    parts: [usize; 2],
    /// The text after the bar.
    value: String,
}

/// Draws how long answers took.
///
/// # Errors
///
/// Fails if there are no answers, or the picture cannot be drawn.
pub(super) fn times(title: &str, figures: &Figures) -> anyhow::Result<Picture> {
    let rows = figures.bands.iter().map(|band| Row {
        label: band.label.clone(),
        parts: [band.by_people, band.automatic],
        value: (band.by_people + band.automatic).to_string(),
    });
    let legend: &[&str] = if figures.automatic > 0 { &["by a person", "automatically"] } else { &[] };
    bars(title, &rows.collect::<Vec<_>>(), legend)
}

/// Draws the number of mails of each class.
///
/// # Errors
///
/// Fails if no mail is classified, or the picture cannot be drawn.
pub(super) fn classes(title: &str, figures: &Figures) -> anyhow::Result<Picture> {
    let rows = figures.classes.iter().map(|class| Row {
        label: replies::class_name(&class.class),
        parts: [class.count, 0],
        value: format!("{} ({}%)", class.count, class.share.round()),
    });
    bars(title, &rows.collect::<Vec<_>>(), &[])
}

/// A drawn chart, and its description with the numbers.
pub(super) struct Picture {
    /// The chart as PNG.
    pub(super) bytes: Vec<u8>,
    /// The description.
    pub(super) alt: String,
}

fn bars(title: &str, rows: &[Row], legend: &[&str]) -> anyhow::Result<Picture> {
    let numbers = rows.iter().map(|row| format!("{}: {}", row.label, row.value)).collect::<Vec<_>>().join("; ");
    Ok(Picture { bytes: painted(title, rows, legend)?, alt: format!("Bar chart. {title}. {numbers}.") })
}

fn painted(title: &str, rows: &[Row], legend: &[&str]) -> anyhow::Result<Vec<u8>> {
    let total = |row: &Row| row.parts.iter().sum::<usize>();
    let most = rows.iter().map(total).max().unwrap_or_default();
    anyhow::ensure!(most > 0, "there is nothing to draw");
    let length = |count: usize| ((SPAN.1 - SPAN.0) as f64 * count as f64 / most as f64).round() as i32;
    let title = Title::new(title);
    let head = HEAD + title.extra();
    let rows_end = head + ROW * u32::try_from(rows.len())?;
    let height = rows_end + picture::legend_height(legend.len()) + FOOT;
    picture::draw(height, |area| {
        title.write(area, (28, 36))?;
        let row_height = i32::try_from(ROW)?;
        let first = i32::try_from(head)?;
        for (nth, row) in rows.iter().enumerate() {
            let top = first + row_height * i32::try_from(nth)?;
            let middle = top + BAR / 2;
            picture::name(area, &row.label, (SPAN.0 - 16, middle))?;
            let mut from = SPAN.0;
            for (part, color) in row.parts.into_iter().zip(COLORS).filter(|(part, _)| *part > 0) {
                let to = from + length(part).max(2);
                area.draw(&Rectangle::new([(from, top), (to, top + BAR)], color.filled()))?;
                from = to;
            }
            write(area, &row.value, (from + 12, middle), LABEL_SIZE, INK, HPos::Left)?;
        }
        let entries: Vec<_> = legend.iter().zip(COLORS).map(|(label, color)| (*label, color.to_rgba())).collect();
        picture::legend(area, &entries, (SPAN.0, i32::try_from(rows_end)?))
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::testing::answered;

    fn pixels_of(png: &[u8], color: RGBColor) -> usize {
        let mut picture = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
        let mut pixels = vec![0; picture.output_buffer_size().unwrap()];
        picture.next_frame(&mut pixels).unwrap();
        pixels.chunks_exact(4).filter(|pixel| *pixel == [color.0, color.1, color.2, 255]).count()
    }

    #[test]
    fn a_bar_is_as_long_as_its_share_of_the_longest() {
        let hour = Duration::from_secs(3600);
        let entries = [answered("a", hour / 2, false), answered("b", hour * 3, false), answered("c", hour * 3, true)];
        let picture = times("Time to reply", &Figures::of(&entries)).unwrap();
        assert!(picture.alt.starts_with("Bar chart. Time to reply. "), "{}", picture.alt);
        let png = picture.bytes;
        let (people, automatic) = (pixels_of(&png, COLORS[0]), pixels_of(&png, COLORS[1]));
        let full = (SPAN.1 - SPAN.0) as usize * BAR as usize;
        assert!(people.abs_diff(full) < full / 10, "two halves of the longest bar: {people} of {full} pixels");
        assert!(automatic.abs_diff(full / 2) < full / 10, "one half of it, and the legend: {automatic} pixels");
    }

    #[test]
    fn classes_are_drawn_and_nothing_is_not() {
        let png = classes("Emails by class", &Figures::of(&[answered("a", Duration::ZERO, false)])).unwrap();
        assert!(pixels_of(&png.bytes, COLORS[0]) > 1000);
        assert!(classes("Emails by class", &Figures::of(&[])).is_err());
        assert!(times("Time to reply", &Figures::of(&[])).is_err());
    }
}
