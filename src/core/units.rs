//! The compatibility and conversion of units, by the rules of UCUM.
//!
//! People and model files write units in various ways: `l/h`, `1/h`, `year(s)`, `µmol/l`. [`code`] turns them into UCUM
//! codes; the library does the rest. Known units are never compared as text.

/// Spellings of units in model files and messages, in lower case, each with its code. The parts of a unit are looked up
/// separately: `liters/hour` has two.
const SPELLINGS: &[(&str, &str)] = &[
    ("l", "L"),
    ("liter", "L"),
    ("liters", "L"),
    ("litre", "L"),
    ("litres", "L"),
    ("ml", "mL"),
    ("milliliter", "mL"),
    ("milliliters", "mL"),
    ("millilitres", "mL"),
    ("dl", "dL"),
    ("ul", "uL"),
    ("kilo", "kg"),
    ("kilos", "kg"),
    ("kilogram", "kg"),
    ("kilograms", "kg"),
    ("kgs", "kg"),
    ("gram", "g"),
    ("grams", "g"),
    ("milligram", "mg"),
    ("milligrams", "mg"),
    ("mgs", "mg"),
    ("mcg", "ug"),
    ("microgram", "ug"),
    ("micrograms", "ug"),
    ("lb", "[lb_av]"),
    ("lbs", "[lb_av]"),
    ("pound", "[lb_av]"),
    ("pounds", "[lb_av]"),
    ("sec", "s"),
    ("second", "s"),
    ("seconds", "s"),
    ("minute", "min"),
    ("minutes", "min"),
    ("mins", "min"),
    ("hr", "h"),
    ("hrs", "h"),
    ("hour", "h"),
    ("hours", "h"),
    ("day", "d"),
    ("days", "d"),
    ("day(s)", "d"),
    ("week", "wk"),
    ("weeks", "wk"),
    ("week(s)", "wk"),
    ("month(s)", "mo"),
    ("year", "a"),
    ("years", "a"),
    ("year(s)", "a"),
    ("meter", "m"),
    ("meters", "m"),
    ("centimeter", "cm"),
    ("centimeters", "cm"),
    ("molar", "mol/L"),
    ("percent", "%"),
];

/// The maximum length of a unit, in characters.
const MAX_CHARS: usize = 24;

/// The kind of a dose such as `mg/kg`, in words.
const BY_BODY_WEIGHT: &str = "a dose by body weight";

/// The kinds of quantities in words, each with the code of one of its units.
const KINDS: &[(&str, &str)] = &[
    ("a mass", "g"),
    ("a volume", "L"),
    ("a time", "h"),
    ("a length", "m"),
    ("a flow or clearance", "L/h"),
    ("a rate constant", "/h"),
    ("a mass concentration", "g/L"),
    ("a molar concentration", "mol/L"),
    ("an amount of substance", "mol"),
    ("a molar mass", "g/mol"),
    ("a mass per time", "g/h"),
    (BY_BODY_WEIGHT, "g/kg"),
    ("an area", "m2"),
];

/// The relation of a given unit to the wanted one.
#[derive(Clone, Debug, PartialEq)]
pub enum Fit {
    /// It is the same unit, or no unit was given.
    Same,
    /// It is another unit of the same quantity; with the converted value.
    Converted(f64),
    /// It is a unit of another quantity.
    Other,
    /// It is not a known unit.
    Unknown,
}

/// Returns the code of a unit as people and model files write it; `None` if the text is not a unit.
pub fn code(written: &str) -> Option<String> {
    let written = written.trim().replace(['µ', 'μ'], "u").replace(['·', '⋅'], ".");
    let written = written.replace("per ", "/").replace(' ', "");
    if written.is_empty() || written.chars().count() > MAX_CHARS {
        return None;
    }
    let part = |part: &str| {
        let lower = part.to_lowercase();
        let spelt = SPELLINGS.iter().find(|(spelling, _)| *spelling == lower);
        match spelt {
            Some((_, code)) => (*code).to_owned(),
            None => part.replace("³", "3").replace("²", "2").replace('^', ""),
        }
    };
    let parts: Vec<String> = written.split('/').map(part).collect();
    let code = parts.join("/");
    // The code of `1/h` is `/h`.
    let code = code.strip_prefix("1/").map_or(code.clone(), |rest| format!("/{rest}"));
    octofhir_ucum::validate(&code).is_ok().then_some(code)
}

/// Returns true if this is a unit.
pub fn is_unit(written: &str) -> bool {
    code(written).is_some()
}

/// Returns the relation of a value's unit to the unit of a parameter.
pub fn fit(value: f64, given: Option<&str>, wanted: Option<&str>) -> Fit {
    let Some(given) = given.filter(|given| !given.is_empty()) else { return Fit::Same };
    if wanted == Some(given) {
        return Fit::Same;
    }
    let Some(from) = code(given) else { return Fit::Unknown };
    // A pure number has no unit, but can be given in percent.
    let Some(wanted) = wanted else {
        return if from == "%" { Fit::Converted(rounded(value / 100.0)) } else { Fit::Other };
    };
    // If the unit of the model is unknown, only the same text fits, which was checked above.
    let Some(to) = code(wanted) else { return Fit::Other };
    if from == to {
        return Fit::Same;
    }
    if counts_amount(&from) != counts_amount(&to) {
        return Fit::Other;
    }
    match octofhir_ucum::convert(value, &from, &to) {
        Ok(converted) if converted.is_finite() => Fit::Converted(rounded(converted)),
        _ => Fit::Other,
    }
}

/// Returns the kind of quantity that a unit measures, in words: “a mass”; `None` if there is no word for it.
pub fn kind(written: &str) -> Option<&'static str> {
    let code = code(written)?;
    let is_of = |kind: &str, unit: &str| {
        counts_amount(&code) == counts_amount(unit)
            && (kind != BY_BODY_WEIGHT || code.contains("/kg")) // percent has no dimension either
            && octofhir_ucum::is_comparable(&code, unit).unwrap_or(false)
    };
    KINDS.iter().find(|(kind, unit)| is_of(kind, unit)).map(|(kind, _)| *kind)
}

/// Returns true if this is the unit of a dose by body weight, such as `mg/kg`.
pub fn is_by_body_weight(written: &str) -> bool {
    kind(written) == Some(BY_BODY_WEIGHT)
}

/// Returns true if a code counts an amount of substance. UCUM gives the mole no dimension, so that it would convert
/// `mg/kg` to `mol`.
fn counts_amount(code: &str) -> bool {
    code.contains("mol")
}

/// Returns a number without rounding noise: 12 significant digits.
pub fn rounded(value: f64) -> f64 {
    format!("{value:.11e}").parse().unwrap_or(value)
}

/// Formats a number for people: no trailing zeros, at most six significant digits. From 1e7 up and below 1e-3, in
/// scientific notation with five: `1e9`, `2.5e-4`.
pub fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    let size = value.abs();
    if !(1e-3..1e7).contains(&size) {
        let text = format!("{value:.4e}");
        return match text.split_once('e') {
            Some((digits, exponent)) => format!("{}e{exponent}", trimmed(digits)),
            None => text, // infinite or not a number
        };
    }
    let digits = (5 - size.log10().floor() as i32).clamp(0, 9) as usize;
    trimmed(&format!("{value:.digits$}"))
}

/// Formats a value with its unit for people.
pub fn quantity(value: f64, unit: Option<&str>) -> String {
    match unit {
        Some(unit) => format!("{} {unit}", number(value)),
        None => number(value),
    }
}

/// Returns a figure of a result, rounded to four significant digits.
pub fn significant(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

/// Formats a figure of a result with its unit, rounded to four significant digits.
pub fn figure(value: f64, unit: Option<&str>) -> String {
    quantity(significant(value), unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_known_in_the_spellings_of_people_and_models() {
        for (written, expected) in [
            ("L/h", "L/h"),
            ("l/h", "L/h"),
            ("1/h", "/h"),
            ("ml", "mL"),
            ("ml/min", "mL/min"),
            ("liters", "L"),
            ("mg/L", "mg/L"),
            ("µmol/l", "umol/L"),
            ("year(s)", "a"),
            ("g/mol", "g/mol"),
            ("kg", "kg"),
            ("pounds", "[lb_av]"),
            ("L/h/kg", "L/h/kg"),
            ("mg·h/L", "mg.h/L"),
        ] {
            assert_eq!(code(written).as_deref(), Some(expected), "{written}");
        }
        for nonsense in ["", "logP", "please", "for renal-study", "<script>", "kg; drop"] {
            assert_eq!(code(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn a_unit_of_the_same_quantity_is_converted() {
        assert_eq!(fit(1500.0, Some("ml"), Some("L")), Fit::Converted(1.5));
        assert_eq!(fit(0.5, Some("g"), Some("mg")), Fit::Converted(500.0));
        assert_eq!(fit(60.0, Some("L/h"), Some("L/min")), Fit::Converted(1.0));
        assert_eq!(fit(2.0, Some("l"), Some("L")), Fit::Same);
        assert_eq!(fit(2.0, None, Some("L")), Fit::Same);
        assert_eq!(fit(5.0, Some("%"), None), Fit::Converted(0.05));
    }

    #[test]
    fn a_unit_of_another_quantity_is_refused_with_its_kind() {
        assert_eq!(fit(500.0, Some("mg"), Some("L")), Fit::Other);
        assert_eq!(fit(5.0, Some("mg"), None), Fit::Other);
        assert_eq!(fit(5.0, Some("bananas"), Some("L")), Fit::Unknown);
        assert_eq!((kind("mg"), kind("ml"), kind("1/h")), (Some("a mass"), Some("a volume"), Some("a rate constant")));
        assert_eq!(fit(5.0, Some("mg"), Some("year(s)")), Fit::Other);
    }

    #[test]
    fn a_dose_by_body_weight_is_neither_an_amount_of_substance_nor_a_mass() {
        for (unit, expected) in [
            ("mg/kg", Some("a dose by body weight")),
            ("µmol", Some("an amount of substance")),
            ("mmol/l", Some("a molar concentration")),
            ("g/mol", Some("a molar mass")),
            ("%", None),
        ] {
            assert_eq!(kind(unit), expected, "{unit}");
        }
        for wanted in ["mol", "mg", "g/mol"] {
            assert_eq!(fit(2.0, Some("mg/kg"), Some(wanted)), Fit::Other, "{wanted}");
        }
        assert_eq!(fit(2.0, Some("mg/kg"), Some("g/kg")), Fit::Converted(0.002));
        assert_eq!(fit(2.0, Some("mmol"), Some("µmol")), Fit::Converted(2000.0));
    }

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (1.5, "1.5"),
            (70.0, "70"),
            (0.1 + 0.2, "0.3"),
            (61.435_476_5, "61.4355"),
            (1_234_567.0, "1234567"),
            (9_999_999.0, "9999999"),
            (1e7, "1e7"),
            (1e9, "1e9"),
            (-12_345_678.9, "-1.2346e7"),
            (0.001, "0.001"),
            (0.000_25, "2.5e-4"),
            (1e-12, "1e-12"),
            (-5.0, "-5"),
            (0.0, "0"),
        ] {
            assert_eq!(number(value), text);
            assert_eq!(figure(54.900_34, Some("mg·h/L")), "54.9 mg·h/L");
            assert_eq!(figure(123_456.0, None), "123500");
        }
    }
}
