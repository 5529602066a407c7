//! Requests that are understood without a language model: `call add-note on notes with text="a b" color=blue`, `what
//! can notes do?`

use countersign_understanding::{
    phrases::{Phrases, Utterance},
    user_request::{Interpretation, UserRequest},
    words::{Word, quoted},
};
use serde_json::{Map, Value};

use super::{
    schema,
    server::{Offered, Server, leaked},
};

/// The phrases of one server.
pub(crate) struct ServerPhrases {
    server: std::sync::Arc<Server>,
    help: &'static str,
}

impl ServerPhrases {
    pub(crate) fn new(server: std::sync::Arc<Server>) -> Self {
        let name = server.name;
        let help = format!("*Tools of {name}*\n• “what can {name} do?”, “call … on {name} with …=…”");
        Self { server, help: leaked(help) }
    }

    /// Reads `call TOOL on SERVER with …`.
    fn call(&self, utterance: Utterance<'_>) -> Option<Interpretation> {
        const VERBS: &[&str] = &["call", "run", "use", "invoke"];
        const ON: &[&str] = &["on", "of", "from", "at", "in", "to"];
        let (verb, rest) = utterance.words.split_first()?;
        if !verb.any(VERBS) {
            return None;
        }
        let rest = match rest.split_first()? {
            (the, rest) if the.any(&["the", "tool"]) => rest,
            _ => rest,
        };
        let rest = if rest.first()?.is("tool") { &rest[1..] } else { rest };
        let (tool, rest) = rest.split_first()?;
        let at = rest.iter().position(|word| word.any(ON))?;
        let server = rest.get(at + 1)?;
        if at != 0 || server.lower != self.server.name {
            return None;
        }
        let Some(offered) = self.offered(tool) else {
            let name = self.server.name;
            let said = format!("{name} doesn't offer “{}” here. Nothing was called.", tool.text);
            return Some(Interpretation::unclear(said, vec![format!("what can {name} do?")]));
        };
        let mut behind = &rest[at + 2..];
        while let Some((word, rest)) = behind.split_first()
            && word.any(&["with", "using", ",", "and", "please"])
        {
            behind = rest;
        }
        let given = match behind.is_empty() {
            true => Map::new(),
            false => match pairs(arguments_of(&utterance.situation.said)) {
                Ok(given) => given,
                Err(left) => {
                    let said = format!("I couldn't read “{left}” as an argument. Nothing was called.");
                    let hint = "Write each one as name=value, with quotes around words: text=\"a note\".";
                    return Some(Interpretation::unclear(format!("{said} {hint}"), self.suggestions()));
                }
            },
        };
        let given = schema::read(&offered.definition, &Value::Object(given));
        if let Some((unknown, takes)) = schema::unknown(&offered.definition, &given) {
            let said = format!("{} has no argument “{unknown}”. {takes} Nothing was called.", offered.definition.name);
            return Some(Interpretation::unclear(said, self.suggestions()));
        }
        let request = match self.server.readers.contains(&offered.definition.name) {
            true => UserRequest::Read { tool: offered.registered.to_owned(), arguments: given },
            false => UserRequest::Change { action: offered.registered.to_owned(), params: given },
        };
        Some(Interpretation { is_whole: true, ..request.into() })
    }

    /// Returns the request that lists the tools, as a suggestion after a call that cannot be read.
    fn suggestions(&self) -> Vec<String> {
        vec![format!("list the tools of {}", self.server.name)]
    }

    fn offered(&self, word: &Word) -> Option<Offered> {
        let same = |name: &str| name.eq_ignore_ascii_case(&word.text);
        let all = self.server.offered();
        all.values().find(|tool| same(&tool.definition.name) || same(tool.registered)).cloned()
    }

    /// Reads `what can SERVER do`, `list the tools of SERVER` and the like.
    fn lists(&self, utterance: Utterance<'_>) -> Option<Interpretation> {
        const SMALL: &[&str] =
            &["the", "does", "do", "can", "of", "on", "are", "is", "there", "a", "me", "have", "it", "i"];
        const OPENS: &[&str] = &["what", "which", "list", "show"];
        let (first, rest) = utterance.words.split_first()?;
        let names_it = rest.iter().any(|word| word.lower == self.server.name);
        let plain = |word: &Word| {
            word.any(SMALL) || word.any(&["tools", "tool", "offer", "offers", "with"]) || word.lower == self.server.name
        };
        let is_one = first.any(OPENS) && names_it && rest.iter().all(plain);
        let request = UserRequest::read(self.server.lists, []);
        is_one.then(|| Interpretation { is_whole: true, ..request.into() })
    }
}

/// Returns the part of a message with the arguments, which starts at the word before the first `=`.
fn arguments_of(said: &str) -> &str {
    let Some(first) = said.find('=') else {
        return said.rsplit_once(" with ").map_or(said, |(_, rest)| rest).trim();
    };
    let before = said[..first].trim_end();
    let start = before.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    &said[start..]
}

/// Reads `a=1 b="two words", c=3`; the error is the part that cannot be read. `a=null` gives no value.
fn pairs(text: &str) -> Result<Map<String, Value>, String> {
    let mut given = Map::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        rest = rest.strip_prefix("and ").unwrap_or(rest).trim_start_matches([',', ' ']);
        if rest.is_empty() || ["please", "please.", "thanks", ".", "!"].contains(&rest.trim()) {
            break;
        }
        let unreadable = || rest.split_whitespace().next().unwrap_or_default().to_owned();
        let (name, value) = rest.split_once('=').ok_or_else(unreadable)?;
        let name = name.trim();
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(unreadable());
        }
        let value = value.trim_start();
        let first = value.chars().next().ok_or_else(unreadable)?;
        let (value, after) = match quoted(first, value) {
            Some((inside, after)) => (Value::from(inside), after),
            None if matches!(first, '{' | '[') => {
                let (json, after) = whole_json(value).ok_or_else(unreadable)?;
                (Value::from(json), after)
            }
            None => {
                let end = value.find(char::is_whitespace).unwrap_or(value.len());
                let word = value[..end].trim_end_matches(',');
                (if word == "null" { Value::Null } else { Value::from(word) }, &value[end..])
            }
        };
        given.insert(name.to_owned(), value);
        rest = after.trim_start();
    }
    Ok(given)
}

/// Returns the JSON value that a text begins with, and the rest.
fn whole_json(text: &str) -> Option<(&str, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    values.next()?.ok()?;
    Some(text.split_at(values.byte_offset()))
}

impl Phrases for ServerPhrases {
    fn things(&self) -> &'static [&'static str] {
        &["tool", "tools"]
    }

    fn generation(&self) -> u64 {
        self.server.generation()
    }

    fn first(&self, utterance: Utterance<'_>) -> Option<Interpretation> {
        self.call(utterance).or_else(|| self.lists(utterance))
    }

    fn about_others(&self) -> bool {
        true
    }

    fn help(&self) -> &'static str {
        self.help
    }

    fn past_participle(&self, _: &str, _: &Map<String, Value>) -> &'static str {
        "called"
    }

    fn greeting(&self) -> &'static str {
        ""
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<Value, String> {
        pairs(text).map(Value::Object)
    }

    #[test]
    fn arguments_are_pairs() {
        assert_eq!(read("a=1 b=\"two words\", c=x"), Ok(json!({ "a": "1", "b": "two words", "c": "x" })));
        assert_eq!(read("text=“smart quotes” and color=blue"), Ok(json!({ "text": "smart quotes", "color": "blue" })));
        assert_eq!(read("where={\"x\": [1, 2]} b=2"), Ok(json!({ "where": "{\"x\": [1, 2]}", "b": "2" })));
        assert_eq!(read("a=null b=\"null\""), Ok(json!({ "a": null, "b": "null" })));
        assert_eq!(read("a=1 or so"), Err("or".to_owned()));
        assert_eq!(read("a="), Err("a=".to_owned()));
        assert_eq!(arguments_of("call add on notes with text = \"x y\" b=1"), "text = \"x y\" b=1");
    }
}
