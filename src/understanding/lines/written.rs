//! The syntax of lines: calls, and the parts of a line.

use serde_json::{Map, Value};

/// The kind of thing that a line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// A tool.
    Read,
    /// An action.
    Change,
    /// A kind of talk.
    Talk,
}

/// The tool, action or talk that lines ask for.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The kind of thing.
    pub asks: Asks,
    /// The name of the tool or action, or of the kind of talk.
    pub name: String,
    /// The values given to it.
    pub given: Map<String, Value>,
}

/// A part of a line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    /// This word.
    Word(String),
    /// One of several; an empty one may be left out.
    OneOf(Vec<Vec<Part>>),
    /// A value.
    Slot { name: String, kind: String },
}

/// Reads `read name key=value key="two words"`, `change …` or `talk …`.
pub(super) fn call(line: &str) -> Option<Call> {
    let (kind, line) = line.split_once(' ')?;
    let (name, mut rest) = line.trim_end().split_once(' ').unwrap_or((line.trim_end(), ""));
    let mut given = Map::new();
    loop {
        rest = rest.trim_start();
        let Some((key, after)) = rest.split_once('=') else { break };
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_once(' ').unwrap_or((after, "")),
        };
        let plain = serde_json::from_str(value).ok().filter(|value: &Value| !value.is_object());
        given.insert(key.to_owned(), plain.unwrap_or_else(|| value.into()));
        rest = after;
    }
    let asks = match kind {
        "read" => Asks::Read,
        "change" => Asks::Change,
        "talk" => Asks::Talk,
        _ => return None,
    };
    (rest.is_empty() && !name.is_empty()).then(|| Call { asks, name: name.to_owned(), given })
}

/// Reads the parts of a line up to a closing bracket or `|`; `None` if brackets do not fit together.
pub(crate) fn parts(rest: &mut &str) -> Option<Vec<Part>> {
    let mut found = Vec::new();
    loop {
        *rest = rest.trim_start();
        let Some(first) = rest.chars().next() else { return Some(found) };
        match first {
            ')' | ']' | '|' => return Some(found),
            '(' | '[' => {
                let closing = if first == '(' { ')' } else { ']' };
                let mut several = if first == '[' { vec![Vec::new()] } else { Vec::new() };
                loop {
                    *rest = &rest[1..];
                    several.push(parts(rest)?);
                    match rest.chars().next()? {
                        '|' => {}
                        last if last == closing => break,
                        _ => return None,
                    }
                }
                *rest = &rest[1..];
                found.push(Part::OneOf(several));
            }
            '<' => {
                let (slot, after) = rest[1..].split_once('>')?;
                let (name, kind) = slot.split_once(':').unwrap_or((slot, slot));
                found.push(Part::Slot { name: name.to_owned(), kind: kind.to_owned() });
                *rest = after;
            }
            _ => {
                let end = rest.find([' ', '(', ')', '[', ']', '|', '<', '/']).unwrap_or(rest.len());
                found.push(Part::Word(rest[..end].to_owned()));
                *rest = &rest[end..];
                if rest.starts_with('/') {
                    // Other forms of the same verb: they count in lines without an order alone.
                    *rest = &rest[rest.find([')', ']', '|']).unwrap_or(rest.len())..];
                }
            }
        }
    }
}

/// The ways other than words in which parts can begin.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Begins {
    /// They can begin with a value.
    pub(super) by_value: bool,
    /// They may be left out.
    pub(super) may_be_empty: bool,
}

/// Collects the words with which parts can begin, and returns the other ways.
pub(super) fn begins(parts: &[Part], firsts: &mut Vec<String>) -> Begins {
    let mut by_value = false;
    for part in parts {
        match part {
            Part::Word(word) => {
                firsts.push(word.clone());
                return Begins { by_value, may_be_empty: false };
            }
            Part::Slot { .. } => return Begins { by_value: true, may_be_empty: false },
            Part::OneOf(several) => {
                let ways: Vec<Begins> = several.iter().map(|one| begins(one, firsts)).collect();
                by_value |= ways.iter().any(|way| way.by_value);
                if !ways.iter().any(|way| way.may_be_empty) {
                    return Begins { by_value, may_be_empty: false };
                }
            }
        }
    }
    Begins { by_value, may_be_empty: true }
}
