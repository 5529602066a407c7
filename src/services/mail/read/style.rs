//! The styles that hide text in HTML, as far as they can be told without laying out the page.

use std::collections::HashSet;

/// The maximum number of hiding selectors that are kept from style sheets.
const MAX_SELECTORS: usize = 1_000;
/// The maximum number of declarations that are read in one place.
const MAX_DECLARATIONS: usize = 200;

/// A color, as red, green and blue.
type Color = [u8; 3];

/// The style of the text in an element.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Style {
    /// The element is not shown, and nothing within it can be.
    is_gone: bool,
    /// The element is invisible, unless an element within it is visible again.
    is_invisible: bool,
    /// The letters are too small to be seen, unless an element within it sets another size.
    is_tiny: bool,
    color: Option<Color>,
    background: Option<Color>,
    /// The background is an image or something else that is not known.
    has_unknown_background: bool,
}

/// The selectors of style sheets that hide elements: `.class`, `#id`, and names of elements with one of these.
#[derive(Debug, Default)]
pub(super) struct Sheet(HashSet<String>);

impl Style {
    /// Returns true if text with this style cannot be seen.
    pub(super) fn hides_text(&self) -> bool {
        let is_same = match self.color {
            Some(color) if !self.has_unknown_background => is_close(color, self.background.unwrap_or([255; 3])),
            _ => false,
        };
        self.is_gone || self.is_invisible || self.is_tiny || is_same
    }

    /// Returns true if nothing within the element can be seen.
    pub(super) fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Marks the element as not shown.
    pub(super) fn go(&mut self) {
        self.is_gone = true;
    }

    /// Applies the attribute `color` of `<font>`.
    pub(super) fn set_color(&mut self, value: &str) {
        self.color = color(value).or(self.color);
    }

    /// Applies the attribute `bgcolor`.
    pub(super) fn set_background(&mut self, value: &str) {
        if let Some(color) = color(value) {
            self.background = Some(color);
            self.has_unknown_background = false;
        }
    }

    /// Applies declarations, as in the attribute `style`.
    pub(super) fn apply(&mut self, declarations: &str) {
        let declarations = without_comments(&declarations.to_ascii_lowercase());
        let mut is_clipped = false;
        let mut has_no_extent = false;
        let mut is_positioned = false;
        let mut is_outside = false;
        for declaration in declarations.split(';').take(MAX_DECLARATIONS) {
            let Some((property, value)) = declaration.split_once(':') else { continue };
            let value = value.trim();
            let value = value.strip_suffix("!important").unwrap_or(value).trim_end();
            match property.trim() {
                "display" => self.is_gone |= value == "none",
                "mso-hide" => self.is_gone |= value == "all",
                "visibility" => self.is_invisible = matches!(value, "hidden" | "collapse"),
                "opacity" => self.is_gone |= number(value).is_some_and(|opacity| opacity < 0.05),
                "font-size" => self.is_tiny = is_tiny(value).unwrap_or(self.is_tiny),
                "font" => self.is_tiny = value.split([' ', '/']).find_map(is_tiny).unwrap_or(self.is_tiny),
                "color" if value == "transparent" => self.is_invisible = true,
                "color" => self.color = color(value).or(self.color),
                "background" | "background-color" => self.apply_background(value),
                "overflow" | "overflow-y" | "overflow-x" => is_clipped |= value.starts_with("hidden"),
                "height" | "max-height" | "width" | "max-width" => has_no_extent |= is_zero(value),
                "clip" => self.is_gone |= value.replace(' ', "").starts_with("rect(0"),
                "position" => is_positioned |= matches!(value, "absolute" | "fixed"),
                "left" | "top" | "right" => is_outside |= is_far_outside(value),
                "text-indent" => self.is_gone |= is_far_outside(value),
                "transform" => self.is_gone |= value.replace(' ', "").starts_with("scale(0)"),
                _ => {}
            }
        }
        self.is_gone |= is_clipped && has_no_extent || is_positioned && is_outside;
    }

    fn apply_background(&mut self, value: &str) {
        if value.contains("url(") || value.contains("gradient") {
            self.has_unknown_background = true;
        } else if let Some(color) = color(value).or_else(|| value.split_whitespace().find_map(color)) {
            self.background = Some(color);
            self.has_unknown_background = false;
        }
    }
}

impl Sheet {
    /// Reads a style sheet. Rules that apply only in some media are ignored.
    pub(super) fn read(&mut self, css: &str) {
        let css = without_comments(css).replace("<!--", " ").replace("-->", " ");
        let mut rest = css.as_str();
        while let Some(open) = rest.find('{') {
            let selectors = rest[..open].rsplit(['}', ';']).next().unwrap_or_default().trim();
            let close = if selectors.starts_with('@') { end_of_block(&rest[open..]) } else { rest[open..].find('}') };
            let close = close.map_or(rest.len(), |close| open + close);
            if !selectors.starts_with('@') {
                self.read_rule(selectors, &rest[open + 1..close]);
            }
            rest = rest.get(close + 1..).unwrap_or_default();
        }
    }

    /// Returns true if the style sheets hide an element with this name, these classes and this id.
    pub(super) fn hides(&self, name: &str, classes: &str, id: &str) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let classes = classes.split_whitespace().take(50).map(|class| format!(".{class}"));
        let id = (!id.is_empty()).then(|| format!("#{id}"));
        let mut selectors = classes.chain(id);
        selectors.any(|selector| self.0.contains(&selector) || self.0.contains(&format!("{name}{selector}")))
    }

    fn read_rule(&mut self, selectors: &str, declarations: &str) {
        let mut style = Style::default();
        style.apply(declarations);
        if !style.is_gone && !style.is_invisible && !style.is_tiny {
            return;
        }
        for selector in selectors.split(',').map(str::trim) {
            let is_simple = selector.contains(['.', '#']) && !selector.contains([' ', '>', '+', '~', ':', '[', '*']);
            if is_simple && self.0.len() < MAX_SELECTORS {
                self.0.insert(selector.to_owned());
            }
        }
    }
}

/// Returns the position of the `}` that closes the block at the beginning.
fn end_of_block(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    text.bytes().position(|byte| {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => return false,
        }
        depth == 0
    })
}

fn without_comments(css: &str) -> String {
    let mut plain = String::with_capacity(css.len());
    let mut rest = css;
    while let Some((before, after)) = rest.split_once("/*") {
        plain.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    plain + rest
}

/// Reads the number at the beginning of a value.
fn number(value: &str) -> Option<f32> {
    let end =
        value.find(|char: char| !char.is_ascii_digit() && !matches!(char, '.' | '-' | '+')).unwrap_or(value.len());
    value[..end].parse().ok()
}

/// Returns true if a size is too small to be read, and `None` if it is not a size.
fn is_tiny(value: &str) -> Option<bool> {
    let size = number(value)?;
    let unit = value.trim_start_matches(|char: char| char.is_ascii_digit() || matches!(char, '.' | '-' | '+')).trim();
    match unit {
        "px" | "pt" => Some(size < 2.0),
        "em" | "rem" => Some(size < 0.1),
        "%" => Some(size < 10.0),
        "" if size == 0.0 => Some(true),
        _ => None,
    }
}

fn is_zero(value: &str) -> bool {
    number(value).is_some_and(|size| size.abs() < 1.5) && !value.contains("em") && !value.starts_with("1%")
}

fn is_far_outside(value: &str) -> bool {
    number(value).is_some_and(|offset| offset <= -500.0)
}

/// Reads a color as CSS or an attribute of HTML names it.
fn color(value: &str) -> Option<Color> {
    let value = value.trim().to_ascii_lowercase();
    if let Some(hex) = value.strip_prefix('#') {
        return hex_color(hex);
    }
    if let Some(channels) = value.strip_prefix("rgb(").or_else(|| value.strip_prefix("rgba(")) {
        let channels = channels.trim_end_matches(')').split([',', ' ', '/']).filter(|channel| !channel.is_empty());
        let channels: Vec<f32> = channels.take(4).filter_map(number).collect();
        let [red, green, blue]: [f32; 3] = channels.get(..3)?.try_into().ok()?;
        return Some([red, green, blue].map(|channel: f32| channel.clamp(0.0, 255.0) as u8));
    }
    match value.as_str() {
        "white" => Some([255; 3]),
        "snow" | "ghostwhite" | "mintcream" | "floralwhite" | "azure" | "ivory" => Some([250; 3]),
        "whitesmoke" => Some([245; 3]),
        "black" => Some([0; 3]),
        "red" => Some([255, 0, 0]),
        "green" => Some([0, 128, 0]),
        "blue" => Some([0, 0, 255]),
        "yellow" => Some([255, 255, 0]),
        "gray" | "grey" => Some([128; 3]),
        "silver" => Some([192; 3]),
        "navy" => Some([0, 0, 128]),
        _ => None,
    }
}

fn hex_color(hex: &str) -> Option<Color> {
    let digits: Option<Vec<u8>> =
        hex.chars().map(|char| char.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    match digits?.as_slice() {
        [red, green, blue] | [red, green, blue, _] => Some([red * 17, green * 17, blue * 17]),
        [r1, r2, g1, g2, b1, b2] | [r1, r2, g1, g2, b1, b2, _, _] => Some([r1 * 16 + r2, g1 * 16 + g2, b1 * 16 + b2]),
        _ => None,
    }
}

/// Returns true if text of one color cannot be read on the other.
fn is_close(one: Color, other: Color) -> bool {
    one.iter().zip(other).all(|(one, other)| one.abs_diff(other) <= 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hides(declarations: &str) -> bool {
        let mut style = Style::default();
        style.apply(declarations);
        style.hides_text()
    }

    #[test]
    fn text_that_cannot_be_seen_is_recognized() {
        for hidden in [
            "display:none",
            "DISPLAY : none !important",
            "display:/* x */none",
            "visibility: hidden",
            "opacity:0",
            "font-size:0",
            "font-size: 1px; color: red",
            "font: 0/0 a",
            "color:#fff",
            "color: #FEFEFE; background: white",
            "color:rgb(0, 0, 0); background-color:#000",
            "color:transparent",
            "max-height:0; overflow:hidden",
            "position:absolute; left:-9999px",
            "text-indent:-5000px",
            "mso-hide:all",
        ] {
            assert!(hides(hidden), "{hidden}");
        }
    }

    #[test]
    fn usual_text_is_not_hidden() {
        for shown in [
            "",
            "color:#333; font-size:14px",
            "color:#fff; background:#005",
            "color:#fff; background:url(x.png)",
            "height:0",
            "opacity:.8",
            "font-size:0.9em",
            "font: bold 14px/1.5 Arial",
            "position:absolute; left:10px",
        ] {
            assert!(!hides(shown), "{shown}");
        }
    }

    #[test]
    fn a_size_can_be_set_again() {
        let mut style = Style::default();
        style.apply("font-size:0");
        assert!(style.hides_text());
        style.apply("font-size:13px");
        assert!(!style.hides_text());
    }

    #[test]
    fn simple_selectors_of_style_sheets_are_known() {
        let mut sheet = Sheet::default();
        sheet.read("/* x */ .a, p.b { display: none } @media (max-width: 600px) { .c { display: none } } #d{font-size:0} .e{color:red}");
        assert!(sheet.hides("div", "x a", ""));
        assert!(sheet.hides("p", "b", "") && !sheet.hides("div", "b", ""));
        assert!(!sheet.hides("div", "c", ""), "only on small screens");
        assert!(sheet.hides("span", "", "d"));
        assert!(!sheet.hides("div", "e", ""));
    }
}
