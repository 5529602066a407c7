//! Charts as PNG: curves over time, and bars of sensitivities.
//!
//! Every axis has a label with its unit.

use countersign_capabilities::picture::{self, COLORS, FONT, GRID, INK, LABEL_SIZE, Title, WIDTH, write};
use countersign_core::units::number;
use plotters::{
    coord::ranged1d::{DefaultFormatting, KeyPointHint},
    prelude::*,
    style::text_anchor::HPos,
};

use super::{bridge::subjects::Band, curve::Curve};

/// The height of a chart over time, without the further lines of the title and the legend.
const HEIGHT: u32 = 560;
/// The steps in hours between the marks of the time axis.
const TIME_STEPS: &[f64] =
    &[0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 6.0, 12.0, 24.0, 48.0, 72.0, 168.0, 336.0, 720.0, 2190.0, 8760.0];
/// The maximum number of steps on the time axis.
const MAX_TIME_STEPS: f64 = 8.0;
/// The height of a bar with the name above it.
const ROW: u32 = 92;
/// The maximum length of the name of a bar or a curve, in characters.
const MAX_LABEL: usize = 36;
/// The maximum number of curves in a chart.
const MAX_CURVES: usize = 12;

/// A bar of a sensitivity chart: the change of a figure in percent when a parameter is decreased and increased.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// The parameter.
    pub name: String,
    /// The change for the lower value.
    pub down: f64,
    /// The change for the upper value.
    pub up: f64,
}

/// Draws curves of concentrations over time.
///
/// # Errors
///
/// Fails if the picture cannot be drawn; the figures are then shown without it.
pub fn curves(title: &str, curves: &[Curve]) -> anyhow::Result<Vec<u8>> {
    over_time(title, curves, None)
}

/// Draws the median of the concentrations in a population over time, in the band between its outer percentiles.
///
/// # Errors
///
/// Fails if the picture cannot be drawn; the figures are then shown without it.
pub fn population(title: &str, unit: Option<&str>, band: &Band) -> anyhow::Result<Vec<u8>> {
    let points = band.points.iter().map(|(time, _, median, _)| (*time, *median)).collect();
    let median = Curve { name: "median".to_owned(), unit: unit.map(str::to_owned), points };
    over_time(title, &[median], Some(band))
}

fn over_time(title: &str, curves: &[Curve], band: Option<&Band>) -> anyhow::Result<Vec<u8>> {
    let curves: Vec<&Curve> = curves.iter().filter(|curve| !curve.points.is_empty()).collect();
    anyhow::ensure!(!curves.is_empty(), "there is nothing to draw");
    let finite = |value: &f64| value.is_finite();
    let outline = band.map(outline).unwrap_or_default();
    let points = || curves.iter().flat_map(|curve| &curve.points).chain(&outline);
    let end = points().map(|point| point.0).filter(finite).fold(0.0, f64::max);
    let top = points().map(|point| point.1).filter(finite).fold(0.0, f64::max);
    let bottom = points().map(|point| point.1).filter(finite).fold(0.0, f64::min);
    let (end, top) = (if end > 0.0 { end } else { 1.0 }, if top > bottom { top * 1.06 } else { bottom + 1.0 });
    let unit = curves[0].unit.as_deref().map(|unit| format!(" ({unit})")).unwrap_or_default();
    let what = if curves.iter().all(|curve| curve.unit == curves[0].unit) {
        format!("Concentration{unit}")
    } else {
        "Value".to_owned()
    };
    let title = Title::new(title);
    let names: Vec<String> = curves.iter().take(MAX_CURVES).map(|curve| shortened(&curve.name, MAX_LABEL)).collect();
    let band = (!outline.is_empty()).then(|| ("5th to 95th percentile", COLORS[0].mix(0.2)));
    let lines = names.iter().zip(COLORS.iter().cycle()).map(|(name, color)| (name.as_str(), color.to_rgba()));
    let legend: Vec<(&str, RGBAColor)> = lines.chain(band).collect();
    let legend_height = picture::legend_height(legend.len());
    let height = HEIGHT + title.extra() + legend_height + 16;
    picture::draw(height, |area| {
        title.write(area, (28, 36))?;
        let mut chart = ChartBuilder::on(area)
            .margin(18)
            .margin_top(72 + title.extra())
            .margin_bottom(legend_height + 16)
            .margin_right(34)
            .x_label_area_size(84)
            .y_label_area_size(120)
            .build_cartesian_2d(TimeAxis { end }, bottom..top)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(INK)
            .x_desc("Time (h)")
            .y_desc(&what)
            .y_labels(6)
            .axis_desc_style((FONT, LABEL_SIZE).into_font().color(&INK))
            .label_style((FONT, LABEL_SIZE).into_font().color(&INK))
            .x_label_formatter(&|value| number(*value))
            .y_label_formatter(&|value| number(*value))
            .draw()?;
        if let Some((_, color)) = &band {
            chart.draw_series(std::iter::once(Polygon::new(outline.clone(), *color)))?;
        }
        for (curve, color) in curves.iter().take(MAX_CURVES).zip(COLORS.iter().cycle()) {
            let line = curve.points.iter().filter(|point| point.0.is_finite() && point.1.is_finite()).copied();
            chart.draw_series(LineSeries::new(line, color.stroke_width(4)))?;
        }
        picture::legend(area, &legend, (138, i32::try_from(height - legend_height)? - 12))
    })
}

/// Describes a chart of curves with its numbers: the highest value of each curve, and the last.
pub fn description(title: &str, curves: &[Curve]) -> String {
    let curve = |curve: &Curve| {
        let unit = curve.unit.as_deref().map(|unit| format!(" {unit}")).unwrap_or_default();
        let points = || curve.points.iter().filter(|point| point.0.is_finite() && point.1.is_finite());
        let highest = points().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let last = points().next_back()?;
        let (name, high, at, end, value) =
            (&curve.name, number(highest.1), number(highest.0), number(last.0), number(last.1));
        Some(format!("{name}: highest {high}{unit} at {at} h, {value}{unit} at {end} h"))
    };
    let all: Vec<String> = curves.iter().take(MAX_CURVES).filter_map(curve).collect();
    format!("Line chart of concentration over time. {title}. {}.", all.join("; "))
}

/// Describes a chart of a population with its numbers, at the highest median.
pub fn description_of_population(title: &str, unit: Option<&str>, band: &Band) -> String {
    let unit = unit.map(|unit| format!(" {unit}")).unwrap_or_default();
    let highest = band.points.iter().max_by(|a, b| a.2.total_cmp(&b.2));
    let numbers = highest.map_or_else(String::new, |(time, low, median, high)| {
        let (time, low, median, high) = (number(*time), number(*low), number(*median), number(*high));
        format!(" The median is highest at {time} h: {median}{unit} (5th to 95th percentile {low} to {high}{unit}).")
    });
    format!("Line chart of concentration over time. {title}.{numbers}")
}

/// Describes a chart of sensitivities with its numbers.
pub fn description_of_bars(title: &str, figure: &str, percent: f64, bars: &[Bar]) -> String {
    let bar = |bar: &Bar| format!("{}: {:+.1}% and {:+.1}%", bar.name, bar.down, bar.up);
    let bars: Vec<String> = bars.iter().map(bar).collect();
    let percent = number(percent);
    format!("Bar chart. {title}. Change in {figure} if a parameter is {percent}% lower or higher: {}.", bars.join("; "))
}

/// Returns the corners of a band.
fn outline(band: &Band) -> Vec<(f64, f64)> {
    let upper = band.points.iter().map(|(time, _, _, high)| (*time, *high));
    let lower = band.points.iter().rev().map(|(time, low, _, _)| (*time, *low));
    upper.chain(lower).filter(|point| point.0.is_finite() && point.1.is_finite()).collect()
}

/// Draws the sensitivities of a figure as bars, the largest at the top.
///
/// # Errors
///
/// Fails if the picture cannot be drawn; the figures are then shown without it.
pub fn tornado(title: &str, figure: &str, percent: f64, bars: &[Bar]) -> anyhow::Result<Vec<u8>> {
    anyhow::ensure!(!bars.is_empty(), "there is nothing to draw");
    let mut bars = bars.to_vec();
    let reach = |bar: &Bar| bar.down.abs().max(bar.up.abs());
    bars.sort_by(|a, b| reach(b).total_cmp(&reach(a)));
    let names: Vec<String> = bars.iter().map(|bar| label(&bar.name, &bars)).collect();
    let most = bars.iter().map(reach).filter(|reach| reach.is_finite()).fold(1.0, f64::max);
    let title = Title::new(title);
    let head = i32::try_from(title.extra())?;
    let percent = number(percent);
    let legend = [
        (format!("parameter -{percent}%"), COLORS[1].to_rgba()),
        (format!("parameter +{percent}%"), COLORS[0].to_rgba()),
    ];
    let legend: Vec<(&str, RGBAColor)> = legend.iter().map(|(label, color)| (label.as_str(), *color)).collect();
    let foot = 82 + title.extra() + ROW * u32::try_from(bars.len())?;
    let height = foot + 56 + picture::legend_height(legend.len()) + 16;
    let foot = i32::try_from(foot)?;
    let (left, right) = (130_i32, i32::try_from(WIDTH)? - 130);
    let middle = (left + right) / 2;
    let x = |value: f64| middle + (f64::from(right - middle) * (value / most).clamp(-1.0, 1.0)).round() as i32;
    picture::draw(height, |area| {
        title.write(area, (28, 36))?;
        for (nth, bar) in bars.iter().enumerate() {
            let name_at = 94 + head + i32::try_from(ROW)? * i32::try_from(nth)?;
            let top = name_at + 20;
            write(area, &names[nth], (28, name_at), LABEL_SIZE, INK, HPos::Left)?;
            area.draw(&PathElement::new(vec![(middle, top - 4), (middle, top + 40)], INK.stroke_width(2)))?;
            let mut halves = [(bar.down, COLORS[1]), (bar.up, COLORS[0])];
            halves.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs())); // the shorter one on top
            for (value, color) in halves {
                let end = x(value);
                let (from, to) = (middle.min(end), middle.max(end).max(middle + 1));
                area.draw(&Rectangle::new([(from, top), (to, top + 36)], color.filled()))?;
            }
            let change = |value: f64| format!("{value:+.1}%");
            let is_one_sided = (bar.down < 0.0) == (bar.up < 0.0) && bar.down != 0.0 && bar.up != 0.0;
            let labels = match is_one_sided {
                true => vec![(halves[0].0, format!("{} / {}", change(bar.down), change(bar.up)))],
                false => vec![(bar.down, change(bar.down)), (bar.up, change(bar.up))],
            };
            for (value, label) in labels {
                // Two changes in the same direction are labelled on the other side of the axis.
                let from = if is_one_sided { middle } else { x(value) };
                let is_right_of_it = (value >= 0.0) != is_one_sided;
                let (side, at) = if is_right_of_it { (HPos::Left, from + 8) } else { (HPos::Right, from - 8) };
                write(area, &label, (at, top + 18), LABEL_SIZE, INK, side)?;
            }
        }
        write(area, &format!("Change in {figure} (%)"), (middle, foot + 28), LABEL_SIZE, INK, HPos::Center)?;
        picture::legend(area, &legend, (left, foot + 56))
    })
}

/// A time axis from 0 to `end` hours, with marks at the steps of [`TIME_STEPS`].
#[derive(Clone, Debug)]
struct TimeAxis {
    end: f64,
}

impl TimeAxis {
    fn marks(&self) -> Vec<f64> {
        let step = TIME_STEPS.iter().copied().find(|step| self.end / step <= MAX_TIME_STEPS).unwrap_or(self.end);
        let last = self.end * (1.0 + 1e-9); // sums of steps are not exact
        (0_u32..).map(|nth| f64::from(nth) * step).take_while(|mark| *mark <= last).collect()
    }
}

impl Ranged for TimeAxis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, hours: &f64, (left, right): (i32, i32)) -> i32 {
        left + (f64::from(right - left) * hours / self.end).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.marks()
    }

    fn range(&self) -> std::ops::Range<f64> {
        0.0..self.end
    }
}

/// Returns the label of a bar: the last two parts of its path, or more of it if another bar has the same two.
fn label(path: &str, bars: &[Bar]) -> String {
    let tail = |path: &str| {
        let parts: Vec<&str> = path.split('|').collect();
        parts[parts.len().saturating_sub(2)..].join("|")
    };
    let own = tail(path);
    let is_shared = bars.iter().filter(|bar| tail(&bar.name) == own).count() > 1;
    shortened(if is_shared { path } else { &own }, MAX_LABEL)
}

/// Returns the end of a name, if it is longer than `most` characters.
pub fn shortened(name: &str, most: usize) -> String {
    match name.chars().count() > most {
        false => name.to_owned(),
        // The end of a path is more informative than its beginning.
        true => std::iter::once('…').chain(name.chars().skip(name.chars().count() - most + 1)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_named_by_the_last_two_parts_of_its_path() {
        let bar = |name: &str| Bar { name: name.to_owned(), down: 0.0, up: 0.0 };
        let bars =
            ["Organism|Kidney|Clearance", "Organism|Liver|Clearance", "Dose", "A|Gut|Flow", "B|Gut|Flow"].map(bar);
        assert_eq!(label("Organism|Kidney|Clearance", &bars), "Kidney|Clearance");
        assert_eq!(label("Dose", &bars), "Dose");
        assert_eq!(label("A|Gut|Flow", &bars), "A|Gut|Flow");
    }

    fn pixels_of(png: &[u8], colour: RGBColor) -> usize {
        pixels_where(png, |pixel| pixel == [colour.0, colour.1, colour.2, 255])
    }

    fn pixels_where(png: &[u8], fits: impl Fn(&[u8]) -> bool) -> usize {
        let mut picture = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
        let mut pixels = vec![0; picture.output_buffer_size().unwrap()];
        picture.next_frame(&mut pixels).unwrap();
        pixels.chunks_exact(4).filter(|pixel| fits(pixel)).count()
    }

    /// Saves a picture in the folder named by `CHARTS`, if it is set.
    fn save(name: &str, png: &[u8]) {
        if let Some(folder) = std::env::var_os("CHARTS") {
            std::fs::write(std::path::Path::new(&folder).join(name), png).unwrap();
        }
    }

    #[test]
    fn curves_are_drawn_with_units_and_names() {
        let curve = |name: &str, dose: f64| Curve {
            name: name.to_owned(),
            unit: Some("mg/L".to_owned()),
            points: (0..49)
                .map(|at| f64::from(at) / 2.0)
                .map(|t| (t, dose * ((-0.2 * t).exp() - (-t).exp())))
                .collect(),
        };
        let png = curves("Concentration in renal-study", &[curve("1.5 L", 10.0), curve("2 L", 8.0), curve("3 L", 6.0)])
            .unwrap();
        save("curves.png", &png);
        for color in &COLORS[..3] {
            assert!(pixels_of(&png, *color) > 500);
        }
        assert!(curves("Nothing", &[]).is_err());
        let flat = Curve { name: "flat".to_owned(), unit: None, points: vec![(0.0, 0.0)] };
        assert!(curves("One point", &[flat]).is_ok());
    }

    #[test]
    fn a_population_is_drawn_as_a_band_with_its_median() {
        let points = (0..49)
            .map(|at| f64::from(at) / 2.0)
            .map(|t| (t, 10.0 * ((-0.2 * t).exp() - (-t).exp())))
            .map(|(t, median)| (t, median * 0.7, median, median * 1.4));
        let png = population("demo in 50 subjects", Some("mg/L"), &Band { subjects: 50, points: points.collect() });
        let png = png.unwrap();
        save("population.png", &png);
        assert!(pixels_of(&png, COLORS[0]) > 500);
        let is_light_blue = |pixel: &[u8]| pixel[3].abs_diff(51) <= 3 && pixel[2] > pixel[0].saturating_add(100);
        assert!(pixels_where(&png, is_light_blue) > 20_000);
    }

    #[test]
    fn the_time_axis_is_marked_in_hours_of_a_day() {
        let time_marks = |end: f64| TimeAxis { end }.marks();
        assert_eq!(time_marks(24.0), [0.0, 4.0, 8.0, 12.0, 16.0, 20.0, 24.0]);
        assert_eq!(time_marks(48.0), [0.0, 6.0, 12.0, 18.0, 24.0, 30.0, 36.0, 42.0, 48.0]);
        assert_eq!(time_marks(1.0), [0.0, 0.25, 0.5, 0.75, 1.0]);
        assert_eq!(time_marks(100_000.0), [0.0, 100_000.0]);
    }

    #[test]
    fn sensitivities_are_drawn_as_bars() {
        let bar = |name: &str, down, up| Bar { name: name.to_owned(), down, up };
        let bars = [
            bar("Dose", -10.0, 10.0),
            bar("Compound|CL", 4.2, -3.9),
            bar("Organism|A very long path|Volume", 0.0, 0.0),
            bar("Compound|ka", -8.9, -9.1),
        ];
        let png = tornado("Sensitivity of renal-study", "cmax", 10.0, &bars).unwrap();
        save("tornado.png", &png);
        assert!(pixels_of(&png, COLORS[0]) > 2_000 && pixels_of(&png, COLORS[1]) > 2_000);
    }
}
