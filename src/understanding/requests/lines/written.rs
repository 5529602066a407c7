//! The syntax of lines: calls, and the parts of a line.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::user_request::UserRequest;

/// The kind of call that a line stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// A tool.
    Read,
    /// An action.
    Change,
    /// A kind of talk.
    Talk,
    /// An answer, such as what cannot be done.
    Say,
}

/// The tool, action or talk that lines stand for.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The kind of call.
    pub kind: CallKind,
    /// The name of the tool or action, or of the kind of talk; or the answer.
    pub name: String,
    /// The values given to it.
    pub arguments: Map<String, Value>,
}

impl Call {
    /// Returns the call as a request.
    pub(crate) fn user_request(self) -> UserRequest {
        match self.kind {
            CallKind::Change => UserRequest::Change { action: self.name, params: self.arguments },
            CallKind::Read | CallKind::Talk => UserRequest::Read { tool: self.name, arguments: self.arguments },
            CallKind::Say => UserRequest::Unclear { question: self.name, options: Vec::new() },
        }
    }
}

/// A part of a line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PatternPart {
    /// This word.
    Word(String),
    /// One of several alternatives. With an empty alternative, the part is optional.
    OneOf(Vec<Vec<PatternPart>>),
    /// A value.
    Slot { name: String, kind: String },
}

/// A request that may be suggested. `<thing>`, `<number>`, `<weights>`, `<when>` and `<text>` stand for values of the message.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    /// The request, which other lines read.
    pub(crate) request: String,
    /// Other ways to say it.
    pub(crate) samples: Vec<String>,
}

impl PatternPart {
    /// Returns true if this part can be a value of the parameter.
    pub(super) fn takes(&self, parameter: &str) -> bool {
        match self {
            Self::Word(_) => false,
            Self::OneOf(several) => several.iter().flatten().any(|part| part.takes(parameter)),
            Self::Slot { name, .. } => name == parameter,
        }
    }

    /// Adds the words in this part.
    pub(super) fn add_words(&self, words: &mut Vec<String>) {
        match self {
            Self::Word(word) => words.push(word.clone()),
            Self::OneOf(several) => several.iter().flatten().for_each(|part| part.add_words(words)),
            Self::Slot { .. } => {}
        }
    }

    /// Adds the kinds of the parameter's values in this part.
    pub(super) fn add_kinds<'a>(&'a self, parameter: &str, kinds: &mut Vec<&'a str>) {
        match self {
            Self::Word(_) => {}
            Self::OneOf(several) => several.iter().flatten().for_each(|part| part.add_kinds(parameter, kinds)),
            Self::Slot { name, kind } if name == parameter && !kinds.contains(&kind.as_str()) => kinds.push(kind),
            Self::Slot { .. } => {}
        }
    }

    /// Returns true if a request with these words can contain this part. Long words always can,
    /// since they may have a typing mistake.
    pub(super) fn may_be_in(&self, said: &HashSet<&str>) -> bool {
        match self {
            Self::Word(word) => word.len() > 7 || said.contains(word.as_str()),
            Self::OneOf(several) => several.iter().any(|one| one.iter().all(|part| part.may_be_in(said))),
            Self::Slot { .. } => true,
        }
    }
}

/// Reads `read name key=value key="two words"`, `change …`, `talk …` or `say Any answer.`
pub(super) fn call(line: &str) -> Option<Call> {
    let (keyword, line) = line.split_once(' ')?;
    if keyword == "say" {
        return Some(Call { kind: CallKind::Say, name: line.trim().to_owned(), arguments: Map::new() });
    }
    let (name, mut rest) = line.trim_end().split_once(' ').unwrap_or((line.trim_end(), ""));
    let mut arguments = Map::new();
    loop {
        rest = rest.trim_start();
        let Some((key, after)) = rest.split_once('=') else { break };
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_once(' ').unwrap_or((after, "")),
        };
        let plain = serde_json::from_str(value).ok().filter(|value: &Value| !value.is_object());
        arguments.insert(key.to_owned(), plain.unwrap_or_else(|| value.into()));
        rest = after;
    }
    let kind = match keyword {
        "read" => CallKind::Read,
        "change" => CallKind::Change,
        "talk" => CallKind::Talk,
        _ => return None,
    };
    (rest.is_empty() && !name.is_empty()).then(|| Call { kind, name: name.to_owned(), arguments })
}

/// Reads the parts of a line up to a closing bracket or `|`; `None` if the brackets are not
/// balanced.
pub(crate) fn parts(rest: &mut &str) -> Option<Vec<PatternPart>> {
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
                found.push(PatternPart::OneOf(several));
            }
            '<' => {
                let (slot, after) = rest[1..].split_once('>')?;
                let (name, kind) = slot.split_once(':').unwrap_or((slot, slot));
                found.push(PatternPart::Slot { name: name.to_owned(), kind: kind.to_owned() });
                *rest = after;
            }
            _ => {
                let end = rest.find([' ', '(', ')', '[', ']', '|', '<', '/']).unwrap_or(rest.len());
                found.push(PatternPart::Word(rest[..end].to_owned()));
                *rest = &rest[end..];
                if rest.starts_with('/') {
                    // Other forms of the same verb, which only lines without an order use.
                    *rest = &rest[rest.find([')', ']', '|']).unwrap_or(rest.len())..];
                }
            }
        }
    }
}

/// The ways in which parts can begin other than with a word.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Beginnings {
    /// They can begin with a value.
    pub(super) by_value: bool,
    /// They are optional.
    pub(super) may_be_empty: bool,
}

/// Adds the words with which parts can begin to `firsts`, and returns the other ways in which they
/// can begin.
pub(super) fn beginnings(parts: &[PatternPart], firsts: &mut Vec<String>) -> Beginnings {
    let mut by_value = false;
    for part in parts {
        match part {
            PatternPart::Word(word) => {
                firsts.push(word.clone());
                return Beginnings { by_value, may_be_empty: false };
            }
            PatternPart::Slot { .. } => return Beginnings { by_value: true, may_be_empty: false },
            PatternPart::OneOf(several) => {
                let ways: Vec<Beginnings> = several.iter().map(|one| beginnings(one, firsts)).collect();
                by_value |= ways.iter().any(|way| way.by_value);
                if !ways.iter().any(|way| way.may_be_empty) {
                    return Beginnings { by_value, may_be_empty: false };
                }
            }
        }
    }
    Beginnings { by_value, may_be_empty: true }
}
