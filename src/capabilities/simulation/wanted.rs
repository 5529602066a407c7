//! The conversion of a wanted value to the absolute number that is sent, in the parameter's own unit.

use countersign_capabilities::parameters::refused;
use countersign_graph::action::{ErrorKind, PrepareError};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{
    Deps,
    amount::Amount,
    bridge::data::Parameter,
    find,
    replies::refusals,
    units::{Fit, fit, number, quantity, rounded},
};

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
/// A refusal that shows a correct value.
pub async fn absolute(
    deps: &Deps,
    simulation: &str,
    path: &str,
    before: Option<&Parameter>,
    said: &str,
    says: impl Fn(&str) -> String,
) -> Result<Wanted, PrepareError> {
    let own = before.and_then(|before| before.unit.as_deref());
    let wrong = |reply| refused(ErrorKind::Validation, reply);
    let amount = Amount::read(said).ok_or_else(|| wrong(refusals::no_value(said, path, own)))?;
    let present = || before.ok_or_else(|| wrong(refusals::no_present_value(path)));
    let shown = |value: f64| quantity(value, own);
    match amount {
        Amount::Absolute { value, unit } => {
            let Some(before) = before else {
                return Ok(Wanted { value, unit, how: None, assumed: false });
            };
            let converted = in_own_unit(value, unit.as_deref(), path, before, says)?;
            let how = converted.map(|converted| format!("{} = {}", quantity(value, unit.as_deref()), shown(converted)));
            let assumed = unit.is_none() && before.unit.is_some();
            Ok(Wanted { value: converted.unwrap_or(value), unit: before.unit.clone(), how, assumed })
        }
        Amount::Plus { value, unit } => {
            let before = present()?;
            let more = in_own_unit(value, unit.as_deref(), path, before, says)?.unwrap_or(value);
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
                    let converted = in_own_unit(counted, found.unit.as_deref(), path, before, says)?;
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

/// Returns the value converted to the parameter's own unit; `None` if it is already in that unit.
fn in_own_unit(
    value: f64,
    given: Option<&str>,
    path: &str,
    before: &Parameter,
    says: impl Fn(&str) -> String,
) -> Result<Option<f64>, PrepareError> {
    let own = before.unit.as_deref();
    match fit(value, given, own) {
        Fit::Same => Ok(None),
        Fit::Converted(converted) => Ok(Some(converted)),
        Fit::Other => {
            let reply = refusals::wrong_unit(value, given.unwrap_or_default(), path, own, says);
            Err(refused(ErrorKind::Validation, reply))
        }
        Fit::Unknown => {
            let reply = refusals::unknown_unit(given.unwrap_or_default(), path, own);
            Err(refused(ErrorKind::Validation, reply))
        }
    }
}
