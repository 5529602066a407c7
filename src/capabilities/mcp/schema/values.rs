//! Values from people's words: text is read as the shape wants it, and what cannot be read stays as it is, for the
//! validator to complain about.

use serde_json::{Map, Value};

use super::{
    Argument,
    shape::{Kind, Shape},
    text_of,
};

impl Shape {
    /// Reads a value that may be given as text, or contain text.
    pub(crate) fn read(&self, given: &Value) -> Value {
        match (given, &self.kind) {
            (Value::String(text), _) => self.read_text(text).unwrap_or_else(|| given.clone()),
            (Value::Object(object), Kind::Object { parts, others }) => {
                Value::Object(parts_of(parts, others.as_deref(), object))
            }
            (Value::Array(all), Kind::List { items, .. }) => all.iter().map(|item| items.read(item)).collect(),
            (_, Kind::Either(shapes)) => {
                let mut read = shapes.iter().map(|shape| (shape, shape.read(given)));
                read.find(|(shape, value)| shape.fits(value)).map_or_else(|| given.clone(), |(_, value)| value)
            }
            _ => given.clone(),
        }
    }

    /// Reads text; `None` if it is taken as it is.
    fn read_text(&self, text: &str) -> Option<Value> {
        let said = text.trim();
        let same = |known: &str| known.eq_ignore_ascii_case(said);
        if let Some(choice) = self.choices().iter().find(|choice| same(&text_of(&choice.value)) || same(&choice.title))
        {
            return Some(choice.value.clone());
        }
        if self.nullable && same("null") {
            return Some(Value::Null);
        }
        match &self.kind {
            Kind::Choice(_) | Kind::Text { .. } => None,
            Kind::Number { whole, .. } => number(said, *whole),
            Kind::Flag => match said.to_lowercase().as_str() {
                "yes" | "true" | "on" | "y" => Some(Value::Bool(true)),
                "no" | "false" | "off" | "n" => Some(Value::Bool(false)),
                _ => None,
            },
            Kind::List { .. } if said.starts_with('[') => {
                serde_json::from_str(said).ok().filter(Value::is_array).map(|list: Value| self.read(&list))
            }
            Kind::List { items, .. } => {
                let by = if said.contains('\n') { '\n' } else { ',' };
                let each = said.split(by).map(str::trim).filter(|item| !item.is_empty());
                Some(each.map(|item| items.read(&Value::from(item))).collect())
            }
            Kind::Object { .. } => object(said).map(|object| self.read(&object)),
            Kind::Either(shapes) => {
                let takes_text = shapes.iter().any(|shape| matches!(shape.kind, Kind::Text { .. } | Kind::Any));
                shapes.iter().find_map(|shape| {
                    let value = shape.read_text(text)?;
                    // A number such as 007 or 1e3 is text where text is allowed.
                    let is_same = !takes_text || !value.is_number() || text_of(&value) == said;
                    let is_list = takes_text && value.is_array() && !said.starts_with('[');
                    (shape.fits(&value) && is_same && !is_list).then_some(value)
                })
            }
            Kind::Any => {
                serde_json::from_str(said).ok().filter(|value: &Value| text_of(value) == said || !value.is_number())
            }
        }
    }
}

/// Reads the parts of an object. A part that must not be null is left out if it is.
fn parts_of(parts: &[Argument], others: Option<&Shape>, given: &Map<String, Value>) -> Map<String, Value> {
    let read = |(name, value): (&String, &Value)| {
        let known = parts.iter().find(|part| part.name == *name).map(|part| &part.shape);
        let value = match known.or(others) {
            Some(shape) => shape.read(value),
            None => value.clone(),
        };
        let is_left_out = value.is_null() && known.is_some_and(|shape| !takes_null(shape));
        (!is_left_out).then(|| (name.clone(), value))
    };
    given.iter().filter_map(read).collect()
}

/// Returns true if null says something else than no value.
fn takes_null(shape: &Shape) -> bool {
    let is_default = shape.default.as_ref().is_some_and(Value::is_null);
    matches!(shape.kind, Kind::Any) || shape.nullable && !is_default
}

fn number(said: &str, whole: bool) -> Option<Value> {
    if let Ok(number) = said.parse::<i64>() {
        return Some(Value::from(number));
    }
    let number = said.parse::<f64>().ok().filter(|number| number.is_finite())?;
    let is_whole = whole && number.fract() == 0.0 && number.abs() < 1e15;
    Some(if is_whole { Value::from(number as i64) } else { Value::from(number) })
}

/// Reads an object: JSON, or `name=value` and `name: value` on lines of their own or separated by commas.
fn object(said: &str) -> Option<Value> {
    if said.starts_with('{') {
        return serde_json::from_str(said).ok().filter(Value::is_object);
    }
    let by = if said.contains('\n') { '\n' } else { ',' };
    let pairs = said.split(by).map(str::trim).filter(|pair| !pair.is_empty()).map(|pair| {
        let at = pair.find(['=', ':'])?;
        let name = pair[..at].trim();
        let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
        is_name.then(|| (name.to_owned(), Value::from(pair[at + 1..].trim())))
    });
    let object: Map<_, _> = pairs.collect::<Option<_>>()?;
    (!object.is_empty()).then_some(Value::Object(object))
}

/// Returns the arguments, with texts read as the shapes want them. `address.city` is the city in the argument address.
pub(super) fn read(all: &[Argument], others: Option<&Shape>, given: &Map<String, Value>) -> Map<String, Value> {
    let is_whole = |name: &str| all.iter().any(|argument| argument.name == name);
    let inside = |name: &str| {
        let (first, rest) = name.split_once('.')?;
        let holds = |shape: &Shape| match &shape.kind {
            Kind::Object { .. } | Kind::Any => true,
            Kind::Either(shapes) => shapes.iter().any(|shape| matches!(shape.kind, Kind::Object { .. })),
            _ => false,
        };
        let argument = all.iter().find(|argument| argument.name == first)?;
        holds(&argument.shape).then(|| (first.to_owned(), rest.to_owned()))
    };
    let (parts, mut whole): (Map<_, _>, Map<_, _>) =
        given.clone().into_iter().partition(|(name, _)| !is_whole(name) && inside(name).is_some());
    for (name, value) in parts {
        let Some((first, rest)) = inside(&name) else { continue };
        let known = whole.remove(&first).unwrap_or_else(|| Value::Object(Map::new()));
        let mut known = known.as_str().and_then(object).unwrap_or(known);
        match put(&mut known, &rest, &value) {
            true => drop(whole.insert(first, known)),
            false => whole.extend([(first, known), (name, value)]),
        }
    }
    parts_of(all, others, &whole)
}

/// Sets the value at a place such as `geo.lat`, unless something else than an object is on the way.
fn put(into: &mut Value, place: &str, value: &Value) -> bool {
    let Some(object) = into.as_object_mut() else { return false };
    match place.split_once('.') {
        None => {
            object.insert(place.to_owned(), value.clone());
            true
        }
        Some((first, rest)) => put(object.entry(first).or_insert_with(|| Value::Object(Map::new())), rest, value),
    }
}
