//! Requests that are understood without a language model: `call add-note on notes with text="a b" color=blue`, `what
//! can notes do?`, `add a red note: buy reagents`, and the answers to questions about a missing argument.

use countersign_understanding::{
    phrases::{Phrases, Stage, Utterance, Vocabulary, Wording},
    user_request::{Interpretation, UserRequest},
    words::{Word, skip, strip_politeness, text, words},
};
use serde_json::{Map, Value};

use super::{
    schema::{self, Argument, Kind},
    server::{Offered, Server, leaked},
    written,
};

/// The phrases of one server.
pub(crate) struct ServerPhrases {
    server: std::sync::Arc<Server>,
    help: &'static str,
    /// The actions that these phrases are about.
    lines: &'static str,
}

impl ServerPhrases {
    pub(crate) fn new(server: std::sync::Arc<Server>) -> Self {
        let name = server.name;
        let help = format!("*Tools of {name}*\n• “what can {name} do?”, “call … on {name} with …=…”");
        let actions = server.listed.iter().filter(|(tool, _)| !server.readers.contains(*tool));
        let actions: String = actions.map(|(_, registered)| format!("change {registered}\n")).collect();
        let lines = actions + &Self::offers(&server);
        Self { server, help: leaked(help), lines: leaked(lines) }
    }

    /// Returns the requests that may be suggested, as lines: a call of each tool, also with the text after a colon as its first
    /// argument. What the server says of a tool is only compared with messages.
    fn offers(server: &Server) -> String {
        let name = server.name;
        let mut lines = format!(
            "offer what can {name} do?\n    what can the {name} server do\n    which tools does {name} have\n    what is on {name}\n"
        );
        for tool in server.offered().values().map(|tool| &tool.definition) {
            let described = tool.description.split_whitespace().collect::<Vec<_>>().join(" ");
            let samples = format!("    {}\n    {described}\n", tool.name.replace(['-', '_'], " "));
            let call = format!("offer call {} on {name}", tool.name);
            let first = schema::arguments(tool).into_iter().find(|argument| argument.required);
            if let Some(first) = first.filter(|first| matches!(first.shape.kind, Kind::Text { .. })) {
                lines.push_str(&format!("{call} with {}=\"<text>\"\n{samples}", first.name));
            }
            lines.push_str(&format!("{call}\n{samples}"));
        }
        lines
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
            false => match written::arguments(&utterance.situation.said) {
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
        Some(Interpretation::whole(request))
    }

    /// Reads a call by the words of the tool's name, with the text after a colon or “saying”: `add a red note: buy reagents`.
    fn spoken(&self, utterance: Utterance<'_>) -> Option<Interpretation> {
        const SAYS: &[&str] = &[" saying ", " that says ", " which says ", " with the text "];
        let said = &utterance.situation.said;
        let (head, body) = match said.split_once(':') {
            Some((head, body)) => (words(head), body.trim().to_owned()),
            None => match SAYS.iter().find_map(|says| said.split_once(says)) {
                Some((head, body)) => (words(head), written::unwrapped(body)),
                None => (utterance.words.to_vec(), String::new()),
            },
        };
        let head = strip_politeness(&head);
        let offered = self.server.offered();
        let mut calls = offered.values().filter_map(|tool| self.spoken_call(tool, head, &body));
        let only = calls.next()?;
        calls.next().is_none().then(|| Interpretation::whole(only))
    }

    /// Reads a call of this tool, which changes something. All words besides those of its name must be values of arguments
    /// that have a choice, so that nothing of the message is lost.
    fn spoken_call(&self, tool: &Offered, head: &[Word], body: &str) -> Option<UserRequest> {
        const SMALL: &[&str] = &["a", "an", "the", "to", "on", "in", "with", "this", "my", "our", "new", "please"];
        if self.server.readers.contains(&tool.definition.name) {
            return None;
        }
        let parts: Vec<String> = tool.definition.name.split(['-', '_']).map(str::to_lowercase).collect();
        let known = |word: &Word| parts.contains(&word.lower);
        let named = head.iter().filter(|word| known(word)).map(|word| &word.lower);
        if parts.len() < 2 || !known(head.first()?) || !named.eq(&parts) {
            return None;
        }
        let arguments = schema::arguments(&tool.definition);
        let mut given = Map::new();
        let small = |word: &Word| word.any(SMALL) || word.lower == self.server.name || word.is("server");
        for word in head.iter().filter(|word| !known(word) && !small(word)) {
            let value_of = |argument: &Argument| {
                let value = argument.shape.read(&Value::from(word.lower.as_str()));
                argument.shape.fits(&value).then(|| (argument.name.clone(), value))
            };
            let mut fits = arguments.iter().filter(|one| !one.shape.choices().is_empty()).filter_map(value_of);
            let (name, value) = fits.next().filter(|_| fits.next().is_none())?;
            given.insert(name, value).is_none().then_some(())?;
        }
        if !body.is_empty() {
            let text = arguments.iter().find(|argument| matches!(argument.shape.kind, Kind::Text { .. }))?;
            given.insert(text.name.clone(), body.into());
        }
        Some(UserRequest::Change { action: tool.registered.to_owned(), params: given })
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
            word.any(SMALL)
                || word.any(&["tools", "tool", "server", "offer", "offers", "with"])
                || word.lower == self.server.name
        };
        let is_one = first.any(OPENS) && names_it && rest.iter().all(plain);
        let request = UserRequest::read(self.server.lists, []);
        is_one.then(|| Interpretation::whole(request))
    }
}

/// An argument that was asked for, and its tool.
struct Asked {
    tool: Offered,
    argument: Argument,
}

impl ServerPhrases {
    /// Returns the argument of a tool of this server that the last message asked for.
    fn asked(&self, utterance: Utterance<'_>) -> Option<Asked> {
        let draft = utterance.situation.draft.as_ref()?;
        let name = &draft.asked.as_ref()?.parameter;
        let tool = self.server.offered().values().find(|tool| tool.registered == draft.action).cloned()?;
        let argument = schema::arguments(&tool.definition).into_iter().find(|argument| argument.name == *name)?;
        Some(Asked { tool, argument })
    }
}

impl Asked {
    /// Reads an answer: the value alone, or several arguments as in a call.
    fn answer(&self, utterance: Utterance<'_>) -> Interpretation {
        let said = &utterance.situation.said;
        let known = schema::arguments(&self.tool.definition);
        let is_known = |name: &String| known.iter().any(|one| name.split('.').next() == Some(one.name.as_str()));
        let given = written::pairs(said).ok().filter(|given| !given.is_empty() && given.keys().all(is_known));
        let alone = || Map::from_iter([(self.argument.name.clone(), Value::from(self.value(utterance)))]);
        UserRequest::Update(given.unwrap_or_else(alone)).into()
    }

    /// Returns the text of the value. A text is taken as it was typed; for any other value, words around it are dropped
    /// if it can only be read without them.
    fn value(&self, utterance: Utterance<'_>) -> String {
        const AROUND: &str = "it should be|it is|it's|make it|use|i think|take|the|to|as";
        let typed = written::unwrapped(&utterance.situation.said);
        let shape = &self.argument.shape;
        let fits = |said: &String| shape.fits(&shape.read(&Value::from(said.as_str())));
        let plain = || [text(utterance.words), text(skip(utterance.words, AROUND))].into_iter().find(fits);
        if self.takes_text() || fits(&typed) { typed } else { plain().unwrap_or(typed) }
    }

    /// Returns true if any text is a value.
    fn takes_text(&self) -> bool {
        let is_text = |kind: &Kind| matches!(kind, Kind::Text { .. } | Kind::Any);
        match &self.argument.shape.kind {
            Kind::Either(shapes) => shapes.iter().any(|shape| is_text(&shape.kind)),
            kind => is_text(kind),
        }
    }

    /// Returns true if a message can hardly be anything else than the value: another capability would take it apart, or
    /// take its first word for a correction. What looks like another request is left to the others, and is the value if
    /// none of them reads it.
    fn is_plainly_answered_by(&self, utterance: Utterance<'_>) -> bool {
        const OPENINGS: &[&str] = &["actually", "change", "make", "rather", "set", "sorry", "use", "wait"];
        const REQUESTS: &[&str] = &[
            "call", "compare", "create", "delete", "explain", "find", "invoke", "list", "rename", "run", "show",
            "simulate", "start", "stop", "test",
        ];
        let said = utterance.situation.said.trim();
        let is_marked = said.starts_with(['{', '[', '"', '“', '`', '«', '<', '/', '#']) || said.contains('\n');
        let is_code = !said.contains(char::is_whitespace)
            && said.contains(char::is_alphanumeric)
            && said.trim_end_matches(['.', '!', '?']).contains(|c: char| "/\\:=_.@#{}[]()<>|-".contains(c));
        if is_marked || is_code {
            return true;
        }
        // A message about something that is known by its name may be a request of its own.
        let names_nothing = utterance.words.iter().all(|word| word.kind.is_none());
        let Some(first) = utterance.words.first().filter(|_| names_nothing && self.takes_text()) else { return false };
        let is_written = said.contains([':', '/', '=', '"', '“', '`', '«']);
        first.any(OPENINGS) || is_written && !utterance.is_question && !first.any(REQUESTS)
    }
}

/// Returns true if the words say that there is no answer yet.
fn is_unsure(words: &[Word]) -> bool {
    const UNSURE: &[&str] = &["not sure", "i'm not sure", "no idea", "i don't know", "dunno", "idk", "let me think"];
    let said = text(words).to_lowercase().replace('’', "'");
    UNSURE.contains(&said.trim_end_matches('.'))
}

impl Phrases for ServerPhrases {
    fn vocabulary(&self) -> Vocabulary {
        Vocabulary {
            // The actions alone, without any line: an answer to a question about one of them is offered to these phrases first.
            lines: self.lines,
            help: self.help,
            greeting: "",
            about_others: true,
            ..Vocabulary::new(&["tool", "tools"])
        }
    }

    fn read(&self, stage: Stage, utterance: Utterance<'_>) -> Option<Interpretation> {
        match stage {
            // What is plainly the answer to a question, before another capability takes parts of it for its own.
            Stage::Correction => {
                let asked = self.asked(utterance)?;
                self.call(utterance)
                    .or_else(|| asked.is_plainly_answered_by(utterance).then(|| asked.answer(utterance)))
            }
            Stage::First => self.call(utterance).or_else(|| self.lists(utterance)),
            Stage::Change => self.spoken(utterance),
            Stage::Answer => {
                let asked = self.asked(utterance)?;
                // A sentence is none of a few choices.
                let is_long = !asked.argument.shape.choices().is_empty() && utterance.words.len() > 4;
                let is_other = is_unsure(utterance.words) || is_long || utterance.is_question && !asked.takes_text();
                (!is_other).then(|| asked.answer(utterance))
            }
            _ => None,
        }
    }

    fn generation(&self) -> u64 {
        self.server.generation()
    }

    fn worded(&self, action: &str, _: &Map<String, Value>) -> Option<Wording> {
        let is_own = self.server.listed.values().any(|registered| *registered == action);
        is_own.then_some(Wording { participle: "called", request: None, so_far: None })
    }
}

#[cfg(test)]
mod tests;
