//! PNG pictures: the drawing area and the font that the charts of all capabilities share.

use std::sync::Once;

use plotters::{
    coord::Shift,
    prelude::*,
    style::{
        FontStyle, register_font,
        text_anchor::{HPos, Pos, VPos},
    },
};

/// The name of the font.
pub const FONT: &str = "chart";
/// The colour of the main text.
pub const INK: RGBColor = RGBColor(29, 28, 38);

/// The area that a chart is drawn on.
pub type Area<'a> = DrawingArea<BitMapBackend<'a>, Shift>;
/// The result of drawing something.
pub type Drawn = Result<(), Box<dyn std::error::Error>>;

/// Draws a picture of this width and height in pixels, on a white background.
///
/// # Errors
///
/// Fails if `paint` fails, or the picture cannot be encoded.
pub fn draw(size: (u32, u32), paint: impl FnOnce(&Area<'_>) -> Drawn) -> anyhow::Result<Vec<u8>> {
    static FONTS: Once = Once::new();
    FONTS.call_once(|| {
        register_font(FONT, FontStyle::Normal, include_bytes!("font/inter.ttf")).ok();
    });
    let mut pixels = vec![255; (size.0 * size.1 * 3) as usize];
    {
        let area = BitMapBackend::with_buffer(&mut pixels, size).into_drawing_area();
        paint(&area).map_err(|error| anyhow::anyhow!("cannot draw a chart: {error}"))?;
        area.present().map_err(|error| anyhow::anyhow!("cannot draw a chart: {error}"))?;
    }
    encode(&pixels, size)
}

/// Writes a text beside a point, centred vertically; `side` is the side of the text at which the point lies.
///
/// # Errors
///
/// Fails if the text cannot be drawn.
pub fn write(area: &Area<'_>, text: &str, at: (i32, i32), size: f64, colour: RGBColor, side: HPos) -> Drawn {
    let style = (FONT, size).into_font().color(&colour).pos(Pos::new(side, VPos::Center));
    area.draw(&Text::new(text.to_owned(), at, style))?;
    Ok(())
}

/// The maximum number of lines of a title.
const MAX_TITLE_LINES: usize = 3;

/// A title over several lines, without emoji, which the font does not have.
#[derive(Clone, Debug, PartialEq)]
pub struct Title {
    lines: Vec<String>,
    size: f64,
}

impl Title {
    /// Breaks a title into lines of at most `most` characters, in letters of this size.
    pub fn new(words: &str, most: usize, size: f64) -> Self {
        Self { lines: wrapped(words, most, MAX_TITLE_LINES), size }
    }

    /// Returns the height of the lines below the first, in pixels.
    pub fn extra(&self) -> u32 {
        (self.lines.len().saturating_sub(1) as f64 * self.line_height()) as u32
    }

    /// Writes the title with its first line at this point.
    ///
    /// # Errors
    ///
    /// Fails if the text cannot be drawn.
    pub fn write(&self, area: &Area<'_>, (left, top): (i32, i32)) -> Drawn {
        for (nth, line) in self.lines.iter().enumerate() {
            let below = (nth as f64 * self.line_height()) as i32;
            write(area, line, (left, top + below), self.size, INK, HPos::Left)?;
        }
        Ok(())
    }

    fn line_height(&self) -> f64 {
        self.size * 1.25
    }
}

/// Breaks a text into at most `lines` lines of at most `most` characters, between words where possible. A text that is
/// longer ends with “…”. Characters that the font does not have are left out.
pub fn wrapped(text: &str, most: usize, lines: usize) -> Vec<String> {
    let text: String = text.chars().filter(|c| is_drawable(*c)).collect();
    let mut rest: Vec<char> = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().collect();
    let mut broken: Vec<String> = Vec::new();
    while rest.len() > most && broken.len() + 1 < lines {
        let at = rest[..=most].iter().rposition(|c| *c == ' ').filter(|at| *at > 0).unwrap_or(most);
        broken.push(rest[..at].iter().collect::<String>().trim_end().to_owned());
        rest.drain(..at);
        while rest.first() == Some(&' ') {
            rest.remove(0);
        }
    }
    if rest.len() > most {
        rest.truncate(most.saturating_sub(1));
        rest.push('…');
    }
    broken.push(rest.into_iter().collect());
    broken
}

/// Returns false for emoji and the marks that combine them.
fn is_drawable(c: char) -> bool {
    let joins = ['\u{200d}', '\u{20e3}'];
    let emoji = ['\u{2600}'..='\u{27bf}', '\u{2b00}'..='\u{2bff}', '\u{1f000}'..='\u{1faff}'];
    let selectors = ['\u{fe00}'..='\u{fe0f}', '\u{e0000}'..='\u{e007f}'];
    !joins.contains(&c) && !emoji.iter().chain(&selectors).any(|range| range.contains(&c))
}

fn encode(pixels: &[u8], (width, height): (u32, u32)) -> anyhow::Result<Vec<u8>> {
    let mut png = Vec::new();
    let mut encoder = png::Encoder::new(&mut png, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(png)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_title_is_broken_between_words_and_shown_in_full() {
        assert_eq!(wrapped("Balance of Math Hints", 40, 3), ["Balance of Math Hints"]);
        assert_eq!(wrapped("Balance of Math Hints for grade 5", 12, 4), ["Balance of", "Math Hints", "for grade 5"]);
        assert_eq!(wrapped("condition_without_any_break", 10, 3), ["condition_", "without_an", "y_break"]);
        assert_eq!(wrapped("one two three four", 7, 2), ["one two", "three …"]);
        assert_eq!(wrapped("", 7, 2), [""]);
    }

    #[test]
    fn emoji_are_left_out() {
        assert_eq!(wrapped("🚀 Math Hints ✅ χ² µmol/l 学", 40, 1), ["Math Hints χ² µmol/l 学"]);
    }
}
