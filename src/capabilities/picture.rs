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
