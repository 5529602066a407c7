//! The shape of a value: a JSON schema in the terms that questions, forms and cards need.
//!
//! References are resolved, parts of `allOf` are joined, and an alternative of null makes a value nullable. Rules that
//! have no place here are left to the validator, which has the last word.

use serde_json::{Map, Value};

use super::{Argument, text_of};
use crate::server::words;

/// The depth to which references and parts are followed; a deeper value may be anything.
const MAX_DEPTH: usize = 8;

/// The keywords that only annotate; an alternative does not inherit them.
const ANNOTATIONS: [&str; 6] = ["title", "description", "default", "examples", "anyOf", "oneOf"];

/// The shape of a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shape {
    pub(crate) kind: Kind,
    /// True if it may be null.
    pub(crate) nullable: bool,
    /// The title, in the server's words.
    pub(crate) title: Option<String>,
    /// The description, in the server's words.
    pub(crate) description: Option<String>,
    /// The value that the server takes if none is given.
    pub(crate) default: Option<Value>,
}

/// The kind of a value, with its limits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// One of these values.
    Choice(Vec<Choice>),
    /// Text.
    Text { format: Option<String>, pattern: Option<String>, length: Limits<u64> },
    /// A number.
    Number { whole: bool, limits: Limits<f64>, above: Option<f64>, below: Option<f64>, multiple: Option<f64> },
    /// Yes or no.
    Flag,
    /// A list.
    List { items: Box<Shape>, length: Limits<u64>, unique: bool },
    /// An object with these parts, and others of this shape if they are allowed.
    Object { parts: Vec<Argument>, others: Option<Box<Shape>> },
    /// One of several shapes.
    Either(Vec<Shape>),
    /// Anything.
    Any,
}

/// A possible value, with the name that people see.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Choice {
    pub(crate) value: Value,
    pub(crate) title: String,
}

/// The smallest and the largest value allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Limits<T> {
    pub(crate) least: Option<T>,
    pub(crate) most: Option<T>,
}

impl Limits<u64> {
    fn of(schema: &Map<String, Value>, least: &str, most: &str) -> Self {
        let limit = |key: &str| schema.get(key).and_then(Value::as_u64);
        Self { least: limit(least).filter(|least| *least > 0), most: limit(most) }
    }

    /// Returns the limits in words: ` of 1 to 3 items`.
    fn words(self, unit: &str) -> String {
        match (self.least, self.most) {
            (Some(least), Some(most)) if least == most => format!(" of exactly {least} {unit}"),
            (Some(least), Some(most)) => format!(" of {least} to {most} {unit}"),
            (Some(least), None) => format!(" of at least {least} {unit}"),
            (None, Some(most)) => format!(" of at most {most} {unit}"),
            (None, None) => String::new(),
        }
    }
}

impl Shape {
    /// Returns the shape of the values that a schema allows; `root` is the whole document, which references lead into.
    pub(crate) fn of(root: &Value, schema: &Value) -> Self {
        shape(root, schema, MAX_DEPTH)
    }

    /// Returns a shape of this kind without annotations.
    fn plain(kind: Kind) -> Self {
        Self { kind, nullable: false, title: None, description: None, default: None }
    }

    /// Returns the values it can be, if there are only certain ones.
    pub(crate) fn choices(&self) -> &[Choice] {
        match &self.kind {
            Kind::Choice(choices) => choices,
            _ => &[],
        }
    }

    /// Returns its parts, if it is an object.
    pub(crate) fn parts(&self) -> &[Argument] {
        match &self.kind {
            Kind::Object { parts, .. } => parts,
            _ => &[],
        }
    }

    /// Returns true if values of this shape fit into one line of text.
    pub(crate) fn is_scalar(&self) -> bool {
        match &self.kind {
            Kind::Choice(_) | Kind::Text { .. } | Kind::Number { .. } | Kind::Flag => true,
            Kind::Either(shapes) => shapes.iter().all(Self::is_scalar),
            Kind::List { .. } | Kind::Object { .. } | Kind::Any => false,
        }
    }

    /// Returns true if a value can have this shape, as far as the shape tells.
    pub(crate) fn fits(&self, value: &Value) -> bool {
        if value.is_null() && self.nullable {
            return true;
        }
        match &self.kind {
            Kind::Choice(choices) => choices.iter().any(|choice| choice.value == *value),
            Kind::Text { .. } => value.is_string(),
            Kind::Flag => value.is_boolean(),
            Kind::Number { whole, limits, .. } => value.as_f64().is_some_and(|number| {
                let in_limits =
                    limits.least.is_none_or(|least| number >= least) && limits.most.is_none_or(|most| number <= most);
                in_limits && (!whole || number.fract() == 0.0)
            }),
            Kind::List { items, .. } => value.as_array().is_some_and(|all| all.iter().all(|item| items.fits(item))),
            Kind::Object { parts, others } => value.as_object().is_some_and(|object| {
                let part = |name: &str| parts.iter().find(|part| part.name == name);
                let is_complete = parts.iter().all(|part| !part.required || object.contains_key(&part.name));
                is_complete
                    && object.iter().all(|(name, value)| match (part(name), others) {
                        (Some(part), _) => part.shape.fits(value),
                        (None, Some(others)) => others.fits(value),
                        (None, None) => false,
                    })
            }),
            Kind::Either(shapes) => shapes.iter().any(|shape| shape.fits(value)),
            Kind::Any => true,
        }
    }

    /// Returns the shape of the value at a place within a value of this shape.
    pub(crate) fn at(&self, steps: &[String]) -> Option<&Self> {
        let Some((step, rest)) = steps.split_first() else { return Some(self) };
        match &self.kind {
            Kind::List { items, .. } => items.at(rest),
            Kind::Object { parts, others } => match parts.iter().find(|part| part.name == *step) {
                Some(part) => part.shape.at(rest),
                None => others.as_ref()?.at(rest),
            },
            Kind::Either(shapes) => shapes.iter().find_map(|shape| shape.at(steps)),
            _ => None,
        }
    }

    /// Returns its kind and limits in words: `a whole number from 1 to 5`.
    pub(crate) fn wanted(&self) -> String {
        match self.kind.wanted() {
            nothing if nothing.is_empty() => "null".to_owned(),
            what if self.nullable => format!("{what}, or null"),
            what => what,
        }
    }
}

impl Kind {
    fn wanted(&self) -> String {
        match self {
            Self::Choice(choices) => match &choices[..] {
                [only] => text_of(&only.value),
                _ => {
                    let listed: Vec<_> = choices.iter().map(|choice| text_of(&choice.value)).collect();
                    format!("one of {}", listed.join(", "))
                }
            },
            Self::Text { format, pattern, length } => {
                let text = format!("{}{}", text_in(format.as_deref()), length.words("characters"));
                match pattern {
                    Some(pattern) => format!("{text} that matches {}", words(pattern, 100)),
                    None => text,
                }
            }
            Self::Number { whole, limits, above, below, multiple } => {
                let what = if *whole { "a whole number" } else { "a number" };
                let between = match (limits.least, limits.most) {
                    (Some(least), Some(most)) => format!(" from {least} to {most}"),
                    (Some(least), None) => format!(" of at least {least}"),
                    (None, Some(most)) => format!(" of at most {most}"),
                    (None, None) => String::new(),
                };
                let more = [(above, "above"), (below, "below"), (multiple, "that is a multiple of")];
                let more = more.into_iter().filter_map(|(limit, how)| limit.map(|limit| format!(" {how} {limit}")));
                format!("{what}{between}{}", more.collect::<Vec<_>>().join(" and"))
            }
            Self::Flag => "yes or no".to_owned(),
            Self::List { items, length, unique } => {
                let different = if *unique { "different " } else { "" };
                let length = length.words(&format!("{different}items"));
                let list = if length.is_empty() && *unique { " of different items" } else { length.as_str() };
                match &items.kind {
                    Self::Any => format!("a list{list}"),
                    _ => format!("a list{list}, each of them {}", items.wanted()),
                }
            }
            Self::Object { parts, .. } if parts.is_empty() => "an object as JSON".to_owned(),
            Self::Object { parts, .. } => {
                let named = |required: bool| {
                    let named = parts.iter().filter(|part| part.required == required).map(|part| words(&part.name, 40));
                    named.collect::<Vec<_>>().join(", ")
                };
                match (named(true), named(false)) {
                    (required, optional) if optional.is_empty() => format!("an object with {required}"),
                    (required, optional) if required.is_empty() => format!("an object with, if wanted, {optional}"),
                    (required, optional) => format!("an object with {required} and, if wanted, {optional}"),
                }
            }
            Self::Either(shapes) => shapes.iter().map(Shape::wanted).collect::<Vec<_>>().join(" or "),
            Self::Any => "text or JSON".to_owned(),
        }
    }
}

/// Returns the words for text in a format.
fn text_in(format: Option<&str>) -> String {
    match format {
        None => "text".to_owned(),
        Some("date") => "a date such as 2026-03-15".to_owned(),
        Some("date-time") => "a date and time such as 2026-03-15T09:00:00Z".to_owned(),
        Some("time") => "a time such as 09:00:00Z".to_owned(),
        Some("duration") => "a duration such as PT15M".to_owned(),
        Some("email" | "idn-email") => "an email address".to_owned(),
        Some("uri" | "url" | "iri") => "an address such as https://example.com".to_owned(),
        Some("uuid") => "a UUID".to_owned(),
        Some(other) => format!("text in the format {}", words(other, 40)),
    }
}

/// Returns a schema without references and `allOf`: their keywords are joined with its own.
fn joined(root: &Value, schema: &Value, depth: usize) -> Map<String, Value> {
    let Some(own) = schema.as_object().filter(|_| depth > 0) else { return Map::new() };
    let target = own.get("$ref").and_then(Value::as_str).and_then(|place| root.pointer(place.strip_prefix('#')?));
    let parts = own.get("allOf").and_then(Value::as_array).into_iter().flatten();
    let mut all = Map::new();
    for part in target.into_iter().chain(parts) {
        add(&mut all, joined(root, part, depth - 1));
    }
    let mut own = own.clone();
    own.retain(|keyword, _| keyword != "$ref" && keyword != "allOf");
    add(&mut all, own);
    all
}

/// Adds keywords, which replace those that are there; properties and required names are added to them.
fn add(all: &mut Map<String, Value>, more: Map<String, Value>) {
    for (keyword, value) in more {
        let joined = match (keyword.as_str(), all.remove(&keyword), value) {
            ("properties" | "$defs", Some(Value::Object(mut known)), Value::Object(more)) => {
                known.extend(more);
                Value::Object(known)
            }
            ("required", Some(Value::Array(mut known)), Value::Array(more)) => {
                known.extend(more);
                Value::Array(known)
            }
            (_, _, value) => value,
        };
        all.insert(keyword, joined);
    }
}

fn shape(root: &Value, schema: &Value, depth: usize) -> Shape {
    // The title of a type that is referred to is not the title of its values, of which there may be several.
    let title = schema.get("title").and_then(Value::as_str).map(str::to_owned);
    let schema = joined(root, schema, depth);
    let found = kind_of(root, &schema, depth);
    Shape {
        title,
        description: schema.get("description").and_then(Value::as_str).map(str::to_owned).or(found.description),
        default: schema.get("default").cloned().or(found.default),
        nullable: found.nullable || schema.get("nullable") == Some(&Value::Bool(true)),
        kind: found.kind,
    }
}

/// Returns the shape of a schema without its own annotations.
fn kind_of(root: &Value, schema: &Map<String, Value>, depth: usize) -> Shape {
    if depth == 0 {
        return Shape::plain(Kind::Any);
    }
    let choice = |value: &Value, title: Option<&Value>| Choice {
        value: value.clone(),
        title: title.and_then(Value::as_str).map_or_else(|| text_of(value), |title| words(title, 70)),
    };
    if let Some(only) = schema.get("const") {
        let kind = if only.is_null() {
            Kind::Either(Vec::new())
        } else {
            Kind::Choice(vec![choice(only, schema.get("title"))])
        };
        return Shape { nullable: only.is_null(), ..Shape::plain(kind) };
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let titles = schema.get("enumNames").and_then(Value::as_array);
        let titled = |(nth, value)| choice(value, titles.and_then(|titles| titles.get(nth)));
        let choices: Vec<_> = values.iter().enumerate().map(titled).filter(|choice| !choice.value.is_null()).collect();
        return Shape { nullable: values.contains(&Value::Null), ..Shape::plain(Kind::Choice(choices)) };
    }
    let alternatives = ["anyOf", "oneOf"].iter().filter_map(|key| schema.get(*key)?.as_array()).flatten();
    if schema.contains_key("properties") {
        let mut whole = schema.clone();
        for alternative in alternatives {
            let mut more = joined(root, alternative, depth);
            more.retain(|keyword, _| keyword == "properties");
            add(&mut whole, more);
        }
        return by_type(root, &whole, depth);
    }
    let mut base = schema.clone();
    base.retain(|keyword, _| !ANNOTATIONS.contains(&keyword.as_str()));
    let shapes: Vec<_> = alternatives
        .map(|alternative| {
            let mut whole = base.clone();
            add(&mut whole, joined(root, alternative, depth));
            shape(root, &Value::Object(whole), depth - 1)
        })
        .collect();
    if shapes.is_empty() { by_type(root, schema, depth) } else { either(shapes) }
}

/// Joins alternatives: null makes the others nullable, and certain values become one choice.
fn either(shapes: Vec<Shape>) -> Shape {
    let nullable = shapes.iter().any(|shape| shape.nullable);
    let mut flat: Vec<Shape> = Vec::new();
    for shape in shapes {
        match shape.kind {
            Kind::Either(inner) => flat.extend(inner),
            _ => flat.push(Shape { nullable: false, ..shape }),
        }
    }
    flat.dedup_by(|next, before| next.kind == before.kind);
    if flat.iter().all(|shape| !shape.choices().is_empty()) && !flat.is_empty() {
        let choices = flat.into_iter().flat_map(|shape| shape.choices().to_vec()).collect();
        return Shape { nullable, ..Shape::plain(Kind::Choice(choices)) };
    }
    match flat.len() {
        1 => Shape { nullable, ..flat.remove(0) },
        _ => Shape { nullable, ..Shape::plain(Kind::Either(flat)) },
    }
}

/// Returns the shape by the type that a schema names, or that its keywords show.
fn by_type(root: &Value, schema: &Map<String, Value>, depth: usize) -> Shape {
    let named: Vec<&str> = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => {
            let shows = [
                ("object", &["properties", "additionalProperties", "patternProperties"][..]),
                ("array", &["items", "prefixItems"]),
                ("string", &["pattern", "minLength", "maxLength", "format"]),
                ("number", &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
            ];
            let shown = shows.iter().find(|(_, keys)| keys.iter().any(|key| schema.contains_key(*key)));
            shown.map(|(kind, _)| *kind).into_iter().collect()
        }
    };
    let nullable = named.contains(&"null");
    let kinds = named.iter().filter(|kind| **kind != "null").map(|kind| of_type(root, schema, kind, depth));
    let mut kinds: Vec<Kind> = kinds.collect();
    let kind = match kinds.len() {
        0 if nullable => Kind::Either(Vec::new()),
        0 => Kind::Any,
        1 => kinds.remove(0),
        _ => Kind::Either(kinds.into_iter().map(Shape::plain).collect()),
    };
    Shape { nullable, ..Shape::plain(kind) }
}

fn of_type(root: &Value, schema: &Map<String, Value>, kind: &str, depth: usize) -> Kind {
    let number = |key: &str| schema.get(key).and_then(Value::as_f64);
    let text = |key: &str| schema.get(key).and_then(Value::as_str).map(str::to_owned);
    let inner = |schema: &Value| Box::new(shape(root, schema, depth - 1));
    match kind {
        "string" => Kind::Text {
            format: text("format"),
            pattern: text("pattern"),
            length: Limits::of(schema, "minLength", "maxLength"),
        },
        "integer" | "number" => Kind::Number {
            whole: kind == "integer",
            limits: Limits { least: number("minimum"), most: number("maximum") },
            above: number("exclusiveMinimum"),
            below: number("exclusiveMaximum"),
            multiple: number("multipleOf"),
        },
        "boolean" => Kind::Flag,
        "array" => Kind::List {
            items: inner(schema.get("items").unwrap_or(&Value::Bool(true))),
            length: Limits::of(schema, "minItems", "maxItems"),
            unique: schema.get("uniqueItems") == Some(&Value::Bool(true)),
        },
        "object" => {
            let required: Vec<&str> = schema
                .get("required")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
            let mut parts: Vec<_> = properties
                .map(|(name, schema)| Argument {
                    name: name.clone(),
                    shape: *inner(schema),
                    required: required.contains(&name.as_str()),
                })
                .collect();
            parts.sort_by_key(|part| required.iter().position(|name| *name == part.name).unwrap_or(usize::MAX));
            let others = match schema.get("additionalProperties") {
                Some(Value::Bool(false)) => None,
                Some(others) => Some(inner(others)),
                None if parts.is_empty() || schema.contains_key("patternProperties") => {
                    Some(Box::new(Shape::plain(Kind::Any)))
                }
                None => None,
            };
            Kind::Object { parts, others }
        }
        _ => Kind::Any,
    }
}
