//! A form in which a person enters or edits an action's parameters.
//!
//! A field represents one place in the parameters, given as a JSON pointer (RFC 6901). Values that
//! are not in the form, or that were not edited, stay exactly as they are, so a form never loses a
//! value that it cannot show.

use std::collections::BTreeMap;

use countersign_core::clock::Timestamp;
use serde_json::{Map, Number, Value};

/// The entries by the place of their field. An entry consists of one or more texts.
pub type Entered = BTreeMap<String, Vec<String>>;

/// A form: fields in the order in which they are shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Form {
    /// The fields.
    pub fields: Vec<Field>,
}

/// One field of a form.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The place in the parameters, such as `/name` or `/conditions/0/weight`.
    pub place: String,
    /// The label, with the unit: `Weight of control, in %`.
    pub label: String,
    /// A hint on what can be entered.
    pub hint: Option<String>,
    /// True if it must be filled in.
    pub required: bool,
    /// The kind of input, with its initial value.
    pub input: Input,
}

/// The kind of input of a field, with its initial value.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A single line.
    Line(String),
    /// Several lines, each of which becomes an element of a list.
    Lines(Vec<String>),
    /// Free text over several lines.
    Prose(String),
    /// A number.
    Number {
        /// The initial value.
        value: Option<f64>,
        /// The smallest number allowed.
        least: Option<f64>,
        /// The largest number allowed.
        most: Option<f64>,
        /// True if fractions are allowed.
        fraction: bool,
    },
    /// A choice of one value.
    One {
        /// The choices.
        picks: Vec<Pick>,
        /// The initial choice.
        value: Option<String>,
    },
    /// Yes or no.
    Flag(Option<bool>),
    /// A day with a time, in the time zone of the person; `None` if it is not set.
    Moment(Option<Timestamp>),
}

/// One choice of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The value that is stored.
    pub value: String,
    /// The label that is shown.
    pub label: String,
}

impl Pick {
    /// Creates a choice that is shown as it is stored.
    pub fn of(value: impl Into<String>) -> Self {
        let value = value.into();
        Self { label: value.clone(), value }
    }
}

impl Form {
    /// Returns the parameters with the entries applied. Only values that differ from the initial
    /// ones are changed.
    ///
    /// # Errors
    ///
    /// The errors of invalid entries, by the places of their fields.
    pub fn fill(&self, parameters: &Value, entered: &Entered) -> Result<Value, BTreeMap<String, String>> {
        let mut filled = match parameters {
            Value::Object(map) => map.clone(),
            _ => Map::new(),
        };
        let mut errors = BTreeMap::new();
        for field in &self.fields {
            let given = entered.get(&field.place).map_or(&[][..], Vec::as_slice);
            if given == field.input.as_entered() {
                continue;
            }
            match field.read(given) {
                Ok(value) => put(&mut filled, &field.place, value),
                Err(what) => {
                    errors.insert(field.place.clone(), what);
                }
            }
        }
        if errors.is_empty() { Ok(Value::Object(filled)) } else { Err(errors) }
    }

    /// Returns all entries, including those equal to the initial value.
    ///
    /// # Errors
    ///
    /// The errors of invalid entries, by the places of their fields.
    pub fn fill_all(&self, entered: &Entered) -> Result<Value, BTreeMap<String, String>> {
        let mut filled = Map::new();
        let mut errors = BTreeMap::new();
        for field in &self.fields {
            let given = entered.get(&field.place).map_or(&[][..], Vec::as_slice);
            match field.read(given) {
                Ok(value) => put(&mut filled, &field.place, value),
                Err(what) => {
                    errors.insert(field.place.clone(), what);
                }
            }
        }
        if errors.is_empty() { Ok(Value::Object(filled)) } else { Err(errors) }
    }

    /// Returns the places whose entry differs from the initial one, in the order of the fields.
    pub fn changed<'a>(&'a self, entered: &'a Entered) -> impl Iterator<Item = &'a str> {
        let unchanged =
            |field: &Field| entered.get(&field.place).map_or(&[][..], Vec::as_slice) == field.input.as_entered();
        self.fields.iter().filter(move |field| !unchanged(field)).map(|field| field.place.as_str())
    }
}

impl Field {
    /// Creates a field that may be left empty.
    pub fn new(place: impl Into<String>, label: impl Into<String>, input: Input) -> Self {
        Self { place: place.into(), label: label.into(), hint: None, required: false, input }
    }

    /// Adds a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Marks the field as required.
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Converts an entry to a parameter; `None` if nothing was entered.
    fn read(&self, given: &[String]) -> Result<Option<Value>, String> {
        let text = given.first().map_or("", |text| text.trim());
        if text.is_empty() {
            return if self.required { Err("Fill this in.".to_owned()) } else { Ok(None) };
        }
        Ok(Some(match &self.input {
            Input::Line(_) | Input::Prose(_) | Input::One { .. } => Value::from(text),
            Input::Lines(_) => text.lines().map(str::trim).filter(|line| !line.is_empty()).map(Value::from).collect(),
            Input::Flag(_) => Value::from(text == "yes"),
            Input::Moment(_) => match text.parse::<i64>() {
                Ok(seconds) => Value::from(Timestamp(seconds.saturating_mul(1000)).to_string()),
                Err(_) => Value::from(text), // the action parses it
            },
            Input::Number { least, most, fraction, .. } => {
                let number = text.replace(',', ".").parse::<f64>().ok().filter(|number| number.is_finite());
                let number = number.ok_or_else(|| format!("Enter a number. “{text}” isn't one."))?;
                if !fraction && number.fract() != 0.0 {
                    return Err(format!("Enter a whole number. {text} isn't one."));
                }
                match (least, most) {
                    (Some(least), Some(most)) if number < *least || number > *most => {
                        return Err(format!("Enter a number from {least} to {most}. You entered {text}."));
                    }
                    (Some(least), _) if number < *least => {
                        return Err(format!("Enter {least} or more. You entered {text}."));
                    }
                    (_, Some(most)) if number > *most => {
                        return Err(format!("Enter {most} or less. You entered {text}."));
                    }
                    _ => {}
                }
                #[expect(clippy::cast_possible_truncation, reason = "it is whole and less than 1e15")]
                let whole = (number.fract() == 0.0 && number.abs() < 1e15).then_some(number as i64);
                whole.map_or_else(|| Number::from_f64(number).map_or(Value::Null, Value::Number), Value::from)
            }
        }))
    }
}

impl Input {
    /// Returns the initial value in the form in which it is submitted if it is not edited.
    pub fn as_entered(&self) -> Vec<String> {
        let text = |text: &str| if text.trim().is_empty() { Vec::new() } else { vec![text.to_owned()] };
        match self {
            Self::Line(value) | Self::Prose(value) => text(value),
            Self::Lines(lines) => text(&lines.join("\n")),
            Self::Number { value, .. } => value.map(|value| value.to_string()).into_iter().collect(),
            Self::One { value, .. } => value.clone().into_iter().collect(),
            Self::Moment(at) => at.map(|at| at.seconds().to_string()).into_iter().collect(),
            Self::Flag(value) => value.map(|yes| if yes { "yes" } else { "no" }.to_owned()).into_iter().collect(),
        }
    }
}

/// Sets the value at a place, or removes it.
fn put(into: &mut Map<String, Value>, place: &str, value: Option<Value>) {
    let mut steps = place.trim_start_matches('/').split('/').peekable();
    let Some(first) = steps.next() else { return };
    if steps.peek().is_none() {
        match value {
            Some(value) => into.insert(unescaped(first), value),
            None => into.remove(&unescaped(first)),
        };
        return;
    }
    let rest = place.trim_start_matches('/').get(first.len()..).unwrap_or_default();
    if let Some(target) = into.get_mut(first).and_then(|inner| inner.pointer_mut(rest)) {
        *target = value.unwrap_or(Value::Null);
        return;
    }
    // The objects on the way are made with the first of their parts.
    if let Some(value) = value {
        let inner = into.entry(unescaped(first)).or_insert_with(|| Value::Object(Map::new()));
        if inner.is_null() {
            *inner = Value::Object(Map::new());
        }
        if let Value::Object(inner) = inner {
            put(inner, rest, Some(value));
        }
    }
}

/// Returns the key that a step of a JSON pointer names.
fn unescaped(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form() -> Form {
        let number = |value| Input::Number { value, least: Some(0.0), most: Some(100.0), fraction: true };
        Form {
            fields: vec![
                Field::new("/name", "Name", Input::Line("Math Hints".into())).required(),
                Field::new("/conditions/0/weight", "Weight of control, in %", number(Some(50.0))),
                Field::new("/tags", "Tags", Input::Lines(vec!["pilot".into()])),
            ],
        }
    }

    fn parameters() -> Value {
        json!({ "name": "Math Hints", "id": 7, "tags": ["pilot"], "conditions": [{ "code": "control", "weight": 50.0, "id": 1 }] })
    }

    fn entered(entries: &[(&str, &str)]) -> Entered {
        let first = [("/name", "Math Hints"), ("/conditions/0/weight", "50"), ("/tags", "pilot")];
        first.iter().chain(entries).map(|(place, text)| ((*place).to_owned(), vec![(*text).to_owned()])).collect()
    }

    #[test]
    fn values_that_are_not_edited_stay_as_they_are() {
        assert_eq!(form().fill(&parameters(), &entered(&[])), Ok(parameters()));
        assert_eq!(form().changed(&entered(&[])).count(), 0);
    }

    #[test]
    fn only_edited_values_change() {
        let entered = entered(&[("/conditions/0/weight", "60,5"), ("/tags", "pilot\n\n second ")]);
        let filled = form().fill(&parameters(), &entered).unwrap();
        assert_eq!(filled["conditions"], json!([{ "code": "control", "weight": 60.5, "id": 1 }]));
        assert_eq!((&filled["tags"], &filled["id"]), (&json!(["pilot", "second"]), &json!(7)));
        assert_eq!(form().changed(&entered).collect::<Vec<_>>(), ["/conditions/0/weight", "/tags"]);
    }

    #[test]
    fn parts_of_an_object_that_is_not_there_yet_make_it() {
        let form = Form {
            fields: vec![
                Field::new("/home/city", "City", Input::Line(String::new())),
                Field::new("/home/geo/lat", "Latitude", Input::Line(String::new())),
            ],
        };
        let entered: Entered = [("/home/geo/lat".to_owned(), vec!["52.5".to_owned()])].into();
        let wanted = json!({ "home": { "geo": { "lat": "52.5" } } });
        assert_eq!(form.fill(&json!({}), &entered), Ok(wanted.clone()));
        assert_eq!(form.fill(&json!({ "home": null }), &entered), Ok(wanted.clone()));
        assert_eq!(form.fill_all(&entered), Ok(wanted));
        assert_eq!(form.fill_all(&Entered::new()), Ok(json!({})));
    }

    #[test]
    fn a_moment_is_stored_as_the_platform_writes_it() {
        let field = Field::new("/end_on", "Ends", Input::Moment(Some(Timestamp(1_767_225_600_000))));
        assert_eq!(field.input.as_entered(), ["1767225600"]);
        assert_eq!(field.read(&["1767225660".to_owned()]), Ok(Some(json!("2026-01-01T00:01:00.000Z"))));
        assert_eq!(field.read(&["Friday".to_owned()]), Ok(Some(json!("Friday"))));
        assert_eq!(field.read(&[]), Ok(None));
    }

    #[test]
    fn an_error_is_reported_at_its_field() {
        for (place, text, what) in [
            ("/name", " ", "Fill this in."),
            ("/conditions/0/weight", "lots", "Enter a number. “lots” isn't one."),
            ("/conditions/0/weight", "101", "Enter a number from 0 to 100. You entered 101."),
        ] {
            let errors = form().fill(&parameters(), &entered(&[(place, text)])).unwrap_err();
            assert_eq!(errors, [(place.to_owned(), what.to_owned())].into());
        }
    }
}
