//! PNG pictures: the drawing area, the font, the colors, the sizes and the legend that the charts of all capabilities
//! share.
//!
//! A picture has no background, so it is no white box in dark mode. Its colors are of a medium brightness, and stand out
//! from white as well as from the background of dark mode (a test computes it).

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
/// The width of a picture in pixels. A phone shows it at half of this width, so the texts are twice as large as they
/// have to be.
pub const WIDTH: u32 = 720;
/// The size of a title in pixels.
pub const TITLE_SIZE: f64 = 32.0;
/// The maximum length of a line of a title, in characters.
pub const MAX_TITLE: usize = 40;
/// The size of all other texts in pixels.
pub const LABEL_SIZE: f64 = 27.0;
/// The color of texts.
pub const INK: RGBColor = RGBColor(118, 124, 138);
/// The color of the lines behind a chart.
pub const GRID: RGBAColor = RGBAColor(118, 124, 138, 0.35);
/// Colors that people with any kind of color vision can tell apart.
pub const COLORS: [RGBColor; 6] = [
    RGBColor(30, 110, 214),
    RGBColor(213, 94, 0),
    RGBColor(0, 128, 96),
    RGBColor(170, 68, 153),
    RGBColor(150, 120, 0),
    RGBColor(110, 112, 125),
];
/// The maximum length of a line of a name beside a bar, in characters, and the number of lines.
const MAX_NAME: (usize, usize) = (15, 2);
/// The maximum length of a name in a legend, in characters.
const MAX_LEGEND: usize = 38;
/// The height of an entry of a legend.
const LEGEND_ROW: u32 = 38;

/// The area that a chart is drawn on.
pub type Area<'a> = DrawingArea<BitMapBackend<'a>, Shift>;
/// The result of drawing something.
pub type Drawn = Result<(), Box<dyn std::error::Error>>;

/// Draws a picture of this height in pixels, without a background.
///
/// # Errors
///
/// Fails if `paint` fails, or the picture cannot be encoded.
pub fn draw(height: u32, paint: impl Fn(&Area<'_>) -> Drawn) -> anyhow::Result<Vec<u8>> {
    static FONTS: Once = Once::new();
    FONTS.call_once(|| {
        register_font(FONT, FontStyle::Normal, include_bytes!("font/inter.ttf")).ok();
    });
    let size = (WIDTH, height);
    encode(&with_transparency(&painted(255, size, &paint)?, &painted(0, size, &paint)?), size)
}

/// Returns the pixels of a picture on a background of this brightness.
fn painted(background: u8, size: (u32, u32), paint: impl Fn(&Area<'_>) -> Drawn) -> anyhow::Result<Vec<u8>> {
    let mut pixels = vec![background; (size.0 * size.1 * 3) as usize];
    {
        let area = BitMapBackend::with_buffer(&mut pixels, size).into_drawing_area();
        paint(&area).map_err(|error| anyhow::anyhow!("cannot draw a chart: {error}"))?;
        area.present().map_err(|error| anyhow::anyhow!("cannot draw a chart: {error}"))?;
    }
    Ok(pixels)
}

/// Returns the pixels with their opacity, which is what remains the same on white and on black.
fn with_transparency(on_white: &[u8], on_black: &[u8]) -> Vec<u8> {
    let pixels = on_white.chunks_exact(3).zip(on_black.chunks_exact(3));
    let with_opacity = pixels.flat_map(|(white, black)| {
        let seen_through = white.iter().zip(black).map(|(white, black)| white.saturating_sub(*black)).max();
        let opacity = 255 - seen_through.unwrap_or_default();
        let color = |value: u8| (u32::from(value) * 255 / u32::from(opacity).max(1)).min(255) as u8;
        [color(black[0]), color(black[1]), color(black[2]), opacity]
    });
    with_opacity.collect()
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

/// Writes a name left of a bar, over up to two lines.
///
/// # Errors
///
/// Fails if the text cannot be drawn.
pub fn name(area: &Area<'_>, text: &str, (right, middle): (i32, i32)) -> Drawn {
    let lines = wrapped(text, MAX_NAME.0, MAX_NAME.1);
    let first = middle - 14 * i32::try_from(lines.len().saturating_sub(1))?;
    for (line, at) in lines.iter().zip((first..).step_by(28)) {
        write(area, line, (right, at), LABEL_SIZE, INK, HPos::Right)?;
    }
    Ok(())
}

/// Returns the height of a legend with this number of entries, in pixels.
pub fn legend_height(entries: usize) -> u32 {
    LEGEND_ROW * u32::try_from(entries).unwrap_or(u32::MAX / LEGEND_ROW)
}

/// Draws a legend whose top left corner is this point: a colored square for each name, one below the other.
///
/// # Errors
///
/// Fails if it cannot be drawn.
pub fn legend(area: &Area<'_>, entries: &[(&str, RGBAColor)], (left, top): (i32, i32)) -> Drawn {
    for (nth, (name, color)) in entries.iter().enumerate() {
        let middle = top + i32::try_from(legend_height(nth) + LEGEND_ROW / 2)?;
        area.draw(&Rectangle::new([(left, middle - 10), (left + 20, middle + 10)], color.filled()))?;
        let name = wrapped(name, MAX_LEGEND, 1).concat();
        write(area, &name, (left + 32, middle), LABEL_SIZE, INK, HPos::Left)?;
    }
    Ok(())
}

/// The maximum number of lines of a title.
const MAX_TITLE_LINES: usize = 3;
/// The height of a line of a title, in pixels.
const TITLE_LINE: f64 = TITLE_SIZE * 1.25;

/// A title over several lines, without emoji, which the font does not have.
#[derive(Clone, Debug, PartialEq)]
pub struct Title {
    lines: Vec<String>,
}

impl Title {
    /// Breaks a title into lines, and cuts one that is longer than three.
    pub fn new(words: &str) -> Self {
        Self { lines: wrapped(words, MAX_TITLE, MAX_TITLE_LINES) }
    }

    /// Breaks a title into as many lines as it needs.
    pub fn whole(words: &str) -> Self {
        Self { lines: wrapped(words, MAX_TITLE, usize::MAX) }
    }

    /// Returns the height of the lines below the first, in pixels.
    pub fn extra(&self) -> u32 {
        (self.lines.len().saturating_sub(1) as f64 * TITLE_LINE) as u32
    }

    /// Writes the title with its first line at this point.
    ///
    /// # Errors
    ///
    /// Fails if the text cannot be drawn.
    pub fn write(&self, area: &Area<'_>, (left, top): (i32, i32)) -> Drawn {
        for (nth, line) in self.lines.iter().enumerate() {
            let below = (nth as f64 * TITLE_LINE) as i32;
            write(area, line, (left, top + below), TITLE_SIZE, INK, HPos::Left)?;
        }
        Ok(())
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
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_filter(png::Filter::NoFilter); // areas of one color are smaller and faster without one
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
    fn a_picture_has_no_background_of_its_own() {
        let green = COLORS[2];
        let png = draw(4, |area| {
            area.draw(&Rectangle::new([(0, 0), (9, 1)], green.filled()))?;
            area.draw(&Rectangle::new([(20, 0), (29, 1)], green.mix(0.5).filled()))?;
            Ok(())
        });
        let mut picture = png::Decoder::new(std::io::Cursor::new(png.unwrap())).read_info().unwrap();
        let mut pixels = vec![0; picture.output_buffer_size().unwrap()];
        picture.next_frame(&mut pixels).unwrap();
        let pixel = |x: usize| &pixels[x * 4..x * 4 + 4];
        assert_eq!(pixel(5), [green.0, green.1, green.2, 255]);
        assert_eq!(pixel(15)[3], 0, "transparent beside it");
        assert!(pixel(25)[3].abs_diff(128) <= 1 && pixel(25)[1].abs_diff(green.1) <= 3, "{:?}", pixel(25));
    }

    /// Returns the contrast of two colors as WCAG defines it.
    fn contrast(one: RGBColor, other: RGBColor) -> f64 {
        let linear = |value: u8| match f64::from(value) / 255.0 {
            dark if dark <= 0.04045 => dark / 12.92,
            value => ((value + 0.055) / 1.055).powf(2.4),
        };
        let light =
            |color: RGBColor| 0.2126 * linear(color.0) + 0.7152 * linear(color.1) + 0.0722 * linear(color.2) + 0.05;
        let (one, other) = (light(one), light(other));
        one.max(other) / one.min(other)
    }

    #[test]
    fn every_color_stands_out_in_light_and_in_dark_mode() {
        let backgrounds = [WHITE, RGBColor(26, 29, 34)];
        for color in COLORS.into_iter().chain([INK]) {
            assert!(backgrounds.iter().all(|behind| contrast(color, *behind) >= 3.0), "{color:?}");
        }
        assert!(backgrounds.iter().all(|behind| contrast(INK, *behind) >= 4.0), "texts");
    }

    #[test]
    fn emoji_are_left_out() {
        assert_eq!(wrapped("🚀 Math Hints ✅ χ² µmol/l 学", 40, 1), ["Math Hints χ² µmol/l 学"]);
    }
}
