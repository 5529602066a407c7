//! The conversion of a wanted value to the absolute number that is sent, in the parameter's own unit.

use countersign_capabilities::parameters::refused;
use countersign_core::units::{Fit, fit, is_by_body_weight, kind, number, quantity, rounded};
use countersign_graph::action::{ErrorKind, PrepareError};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{Deps, amount::Amount, bridge::data::Parameter, find, ranges, replies::refusals};

/// A wanted value.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// The number, in [`Self::unit`].
    pub value: f64,
    /// The parameter's own unit, or the given one if the parameter has none yet.
    pub unit: Option<String>,
    /// The calculation, if the number differs from the one in the request: “1500 ml = 1.5 L”.
    pub how: Option<String>,
    /// True if the parameter has a unit but none was given.
    pub assumed: bool,
}

/// Reads a value that may be given as a number or as text.
///
/// # Errors
///
/// Fails if it is neither.
pub fn words<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(reader)? {
        Value::Null => None,
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text),
        _ => return Err(serde::de::Error::custom("a number with a unit is needed here")),
    })
}

/// Computes the absolute value that these words ask for. `says` turns a corrected value into a whole request.
///
/// # Errors
///
/// A refusal that shows correct values. A quantity such as a mass or a volume is never negative, and a fraction is
/// between 0 and 1.
pub async fn absolute(
    deps: &Deps,
    simulation: &str,
    path: &str,
    before: Option<&Parameter>,
    said: &str,
    says: impl Fn(&str) -> String,
) -> Result<Wanted, PrepareError> {
    let wanted = computed(deps, simulation, path, before, said, says).await?;
    let has_value = if path == ranges::BODY_WEIGHT { wanted.value > 0.0 } else { wanted.value >= 0.0 };
    let is_quantity = wanted.unit.as_deref().is_some_and(|unit| kind(unit).is_some());
    if (is_quantity || wanted.unit.as_deref() == Some("%")) && !has_value {
        let range = find::range(deps, simulation, path).await;
        return Err(refused(ErrorKind::Validation, refusals::negative(path, &wanted, before, range.as_ref())));
    }
    // A model may write a fraction in percent; then its present value tells.
    let is_percent = wanted.unit.as_deref() == Some("%") || before.is_some_and(|before| before.value > 1.0);
    let whole = if is_percent { 100.0 } else { 1.0 };
    if ranges::is_fraction(path) && !is_quantity && !(0.0..=whole).contains(&wanted.value) {
        return Err(refused(ErrorKind::Validation, refusals::no_fraction(path, said)));
    }
    Ok(wanted)
}

/// Computes the value, without a check.
async fn computed(
    deps: &Deps,
    simulation: &str,
    path: &str,
    before: Option<&Parameter>,
    said: &str,
    says: impl Fn(&str) -> String,
) -> Result<Wanted, PrepareError> {
    let own = before.and_then(|before| before.unit.as_deref());
    let wrong = |reply| refused(ErrorKind::Validation, reply);
    let amount = Amount::read(said).ok_or_else(|| wrong(refusals::no_value(said, path, before)))?;
    let present = || before.ok_or_else(|| wrong(refusals::no_present_value(path)));
    let shown = |value: f64| quantity(value, own);
    let target = Target { deps, simulation, path };
    match amount {
        Amount::Absolute { value, unit } => {
            let Some(before) = before else {
                return Ok(Wanted { value, unit, how: None, assumed: false });
            };
            let converted = target.in_own_unit(value, unit.as_deref(), before, says).await?;
            let how = converted.map(|converted| format!("{} = {}", quantity(value, unit.as_deref()), shown(converted)));
            let assumed = unit.is_none() && before.unit.is_some();
            Ok(Wanted { value: converted.unwrap_or(value), unit: before.unit.clone(), how, assumed })
        }
        Amount::Plus { value, unit } => {
            let before = present()?;
            let more = target.in_own_unit(value, unit.as_deref(), before, says).await?.unwrap_or(value);
            let sign = if more < 0.0 { "−" } else { "+" };
            let how = format!("{} {sign} {}", shown(before.value), quantity(more.abs(), own));
            Ok(Wanted {
                value: rounded(before.value + more),
                unit: before.unit.clone(),
                how: Some(how),
                assumed: false,
            })
        }
        Amount::Times { factor, of: None } => {
            let before = present()?;
            let how = format!("{} × {}", shown(before.value), number(factor));
            Ok(Wanted {
                value: rounded(before.value * factor),
                unit: before.unit.clone(),
                how: Some(how),
                assumed: false,
            })
        }
        Amount::Times { factor, of: Some(other) } => {
            let other =
                find::parameter(deps, simulation, &other, |other| says(&format!("{} times {other}", number(factor))))
                    .await?;
            let found = find::value(deps, simulation, &other).await?;
            let found = found.ok_or_else(|| wrong(refusals::no_present_value(&other)))?;
            let counted = rounded(found.value * factor);
            let how = format!("{} × {other} ({})", number(factor), quantity(found.value, found.unit.as_deref()));
            let (value, unit) = match before {
                Some(before) => {
                    let converted = target.in_own_unit(counted, found.unit.as_deref(), before, says).await?;
                    (converted.unwrap_or(counted), before.unit.clone())
                }
                None => (counted, found.unit),
            };
            Ok(Wanted { value, unit, how: Some(how), assumed: false })
        }
        Amount::Default => {
            let recalled = deps.memory.recalled_default(simulation, path).await;
            let default = recalled.or_else(|| deps.memory.default_of(simulation, path));
            let default = default.ok_or_else(|| wrong(refusals::no_default(path, simulation)))?;
            let how = Some("the value when the model was loaded".to_owned());
            Ok(Wanted { value: default.value, unit: default.unit, how, assumed: false })
        }
    }
}

/// The parameter that gets a value.
struct Target<'a> {
    deps: &'a Deps,
    simulation: &'a str,
    path: &'a str,
}

impl Target<'_> {
    /// Returns the value converted to the parameter's own unit; `None` if it is already in that unit.
    async fn in_own_unit(
        &self,
        value: f64,
        given: Option<&str>,
        before: &Parameter,
        says: impl Fn(&str) -> String,
    ) -> Result<Option<f64>, PrepareError> {
        let (path, own) = (self.path, before.unit.as_deref());
        let wrong = |reply| Err(refused(ErrorKind::Validation, reply));
        match fit(value, given, own) {
            Fit::Same => Ok(None),
            Fit::Converted(converted) => Ok(Some(converted)),
            Fit::Other => {
                let range = find::range(self.deps, self.simulation, path).await;
                // The same number in the right unit is suggested only if it is a possible value.
                // A dose by body weight is another dose than the same number without it.
                let is_possible = value > 0.0
                    && range.as_ref().is_none_or(|range| range.allows(value))
                    && is_by_body_weight(given.unwrap_or_default()) == own.is_some_and(is_by_body_weight);
                let right = is_possible.then(|| quantity(value, own));
                let mistake = refusals::WrongUnit { path, given: given.unwrap_or_default(), own, range, right };
                wrong(refusals::wrong_unit(&mistake, says))
            }
            Fit::Unknown => wrong(refusals::unknown_unit(given.unwrap_or_default(), path, own)),
        }
    }
}
