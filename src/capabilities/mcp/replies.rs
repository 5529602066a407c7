//! The replies about servers and their tools. A server's own words are always shown as code, so that they cannot become
//! a mention or a link.

use countersign_core::reply::{Part, Reply, Text};
use countersign_graph::action::{ErrorKind, Outcome};
use countersign_mcp_client::Error;
use serde_json::Value;

use super::{
    schema::{self, Argument},
    server::{Offered, Server, Unusable, shown, words},
};

/// The maximum length of a server's words within a sentence, in characters.
const MAX_QUOTED: usize = 200;

/// Returns the kind of error for a tool that cannot be called now, with the reason and a hint.
fn why_unusable(server: &str, tool: &str, why: &Unusable) -> (ErrorKind, Text, Text) {
    let not_called = || Text::from("Not called: ");
    match why {
        Unusable::Changed => {
            let text = not_called().bold(tool).plain(" on ").bold(server);
            let hint = Text::from("An operator can see what changed with ").code("countersign check");
            let hint = hint.plain(", and accept it with ").code("countersign accept --keep").plain(".");
            (ErrorKind::Validation, text.plain(" has changed since an operator accepted it."), hint)
        }
        Unusable::NotAccepted => {
            let text = not_called().plain("no operator has accepted ").bold(tool).plain(" on ").bold(server).plain(".");
            let hint = Text::from("An operator can look at it with ").code("countersign accept");
            (ErrorKind::Validation, text, hint.plain(", and accept it with ").code("--keep").plain("."))
        }
        Unusable::NeedsCard => {
            let text = not_called().bold(tool).plain(" on ").bold(server);
            let text = text.plain(" was accepted again, as a tool that changes something.");
            (ErrorKind::Validation, text, "An operator needs to restart me before its calls can be approved.".into())
        }
        Unusable::Gone => {
            let text = not_called().bold(server).plain(" no longer has ").bold(tool).plain(".");
            (ErrorKind::NotFound, text, Text::from(format!("Ask me: what can {server} do?")))
        }
        Unusable::Unreachable(error) => {
            let text = not_called().plain("I can't reach ").bold(server).plain(" right now.");
            (kind(error), text, Text::from("Try again in a minute. If it keeps failing, contact your administrator."))
        }
    }
}

/// Returns the kind of error and the reply for a tool that cannot be called now.
pub(crate) fn unusable(server: &str, tool: &str, why: &Unusable) -> (ErrorKind, Reply) {
    match why {
        Unusable::Unreachable(error) => (kind(error), unreachable(server, error)),
        Unusable::Changed | Unusable::Gone | Unusable::NotAccepted | Unusable::NeedsCard => {
            let (kind, text, hint) = why_unusable(server, tool, why);
            (kind, Reply::text(text).hint(hint))
        }
    }
}

/// Returns the outcome of a change whose tool cannot be called now.
pub(crate) fn not_called(server: &str, tool: &str, why: &Unusable) -> Outcome {
    let (error, text, hint) = why_unusable(server, tool, why);
    Outcome::Failed { error, summary: text.plain(" ").join(hint) }
}

/// Returns the kind of an error.
pub(crate) fn kind(error: &Error) -> ErrorKind {
    match error {
        Error::Auth { .. } | Error::NotSignedIn { .. } => ErrorKind::Auth,
        Error::Refused { .. } | Error::TooLong { .. } => ErrorKind::Api,
        Error::NotSent { .. } | Error::RunOut | Error::SessionLost | Error::NoAnswer { .. } => ErrorKind::Network,
    }
}

/// Returns the reply about a failed call to a server.
pub(crate) fn unreachable(server: &str, error: &Error) -> Reply {
    match error {
        Error::Auth { status } => {
            Reply::text(Text::new().bold(server).plain(format!(" doesn't accept the token (HTTP {status}).")))
                .hint("Ask an operator to set a new one.")
        }
        Error::NotSignedIn { .. } => {
            let text = Text::from("Nobody is signed in to ").bold(server).plain(", or the sign-in is over.");
            let hint = Text::from("An operator can sign in with ").code("countersign accept").plain(".");
            Reply::text(text).hint(hint)
        }
        Error::TooLong { .. } => {
            let text = Text::new().bold(server).plain(format!(" answered, but {error}, so it wasn't read."));
            let hint = Text::from("Ask for less, or ask an operator to raise ").code("max_answer_kb").plain(".");
            Reply::text(text).hint(hint)
        }
        Error::Refused { reason } => {
            let text = Text::new().bold(server).plain(" refused the call: ").code(words(reason, MAX_QUOTED));
            Reply::text(text.plain("."))
        }
        Error::NotSent { .. } | Error::RunOut | Error::SessionLost => {
            Reply::text(Text::from("I can't reach ").bold(server).plain(" right now."))
                .hint("Try again in a minute. If it keeps failing, contact your administrator.")
        }
        Error::NoAnswer { reason } => {
            let text = Text::new().bold(server).plain(" didn't answer: ").plain(words(reason, MAX_QUOTED));
            Reply::text(text.plain(".")).hint("Try again in a minute. If it keeps failing, contact your administrator.")
        }
    }
}

/// Returns the reply that lists the mistakes in the arguments.
pub(crate) fn mistaken(tool: &str, mistakes: Vec<Text>) -> Reply {
    let text = Text::from("Nothing was sent: ").bold(tool).plain(" doesn't take these arguments.");
    Reply::text(text).and(Part::List(mistakes))
}

/// Returns the reply about a call of a reading tool that lacks arguments: what it needs, and how to ask again.
pub(crate) fn incomplete(server: &str, tool: &Offered, lacking: &[Argument]) -> Reply {
    let line = |argument: &Argument| {
        let text = Text::new().code(words(&argument.name, 60)).plain(format!(": {}", argument.shape.wanted()));
        match argument.shape.description.as_deref().map(|says| words(says, 150)) {
            Some(says) if !says.is_empty() => text.plain(". ").bold(server).plain(" describes it as ").code(says),
            _ => text,
        }
    };
    let text = Text::from("Nothing was sent: ").bold(tool.definition.name.as_str());
    let text = match lacking.len() {
        1 => text.plain(" needs one more argument."),
        several => text.plain(format!(" needs {several} more arguments.")),
    };
    Reply::text(text).and(Part::List(lacking.iter().map(line).collect())).hint(example(server, tool))
}

/// Returns the reply with the answer of a reading tool.
pub(crate) fn read(server: &Server, tool: &str, answer: &Value) -> Reply {
    let (name, said) = (server.name, shown(answer));
    let head = match (answer["failed"] == true, said.is_none()) {
        (true, _) => Text::new().bold(name).plain(" reports that ").bold(tool).plain(" failed:"),
        (false, true) => Text::new().bold(tool).plain(" on ").bold(name).plain(" returned no text."),
        (false, false) => Text::new().bold(tool).plain(" on ").bold(name).plain(" answered:"),
    };
    let reply = said.into_iter().fold(Reply::text(head), |reply, said| reply.and(Part::Code(said)));
    let reply = server.with_pictures(reply, tool, &answer["pictures"]);
    match answer["read_only"].is_null() {
        true => reply,
        false => {
            let text = Text::from("The settings say that ").bold(tool).plain(" only reads. ").bold(name);
            reply.hint(text.plain(" doesn't say so."))
        }
    }
}

/// Returns the sentence about a change that was made, with this result.
pub(crate) fn called(server: &str, tool: &str, result: &Value) -> Text {
    let text = Text::from("Called ").bold(tool).plain(" on ").bold(server).plain(".");
    match words(&shown(result).unwrap_or_default(), MAX_QUOTED) {
        said if said.is_empty() => text,
        said => text.plain(" It answered ").code(said.trim_end_matches('.')).plain("."),
    }
}

/// Returns the sentence about a change that failed according to the server, with this result.
pub(crate) fn failed(server: &str, tool: &str, result: &Value) -> Text {
    let text = Text::new().bold(server).plain(" reports that ").bold(tool).plain(" failed");
    match words(&shown(result).unwrap_or_default(), MAX_QUOTED) {
        said if said.is_empty() => text.plain("."),
        said => text.plain(": ").code(said.trim_end_matches('.')).plain("."),
    }
}

/// Returns the parts that follow the sentence about a change: the whole answer, if that is longer than the sentence says,
/// and its pictures.
pub(crate) fn with_result(server: &Server, tool: &str, result: &Value, reply: Reply) -> Reply {
    let reply = match shown(result) {
        Some(said) if words(&said, MAX_QUOTED) != said => reply.and(Part::Code(said)),
        _ => reply,
    };
    server.with_pictures(reply, tool, &result["pictures"])
}

/// Returns the reply that lists the tools of a server, for “what can files do?”.
pub(crate) fn offers(server: &Server, changed: &[(String, Unusable)]) -> Reply {
    let (name, offered) = (server.name, server.offered());
    let mut reply = match offered.len() {
        0 => {
            let reply = Reply::text(Text::from("No tools of ").bold(name).plain(" are offered here."));
            match server.settings.tools.is_empty() {
                true => reply.hint(format!("An operator can list them in the settings, under [mcp.{name}].")),
                false => reply,
            }
        }
        1 => Reply::text(Text::new().bold(name).plain(" offers 1 tool here:")),
        several => Reply::text(Text::new().bold(name).plain(format!(" offers {several} tools here:"))),
    };
    let line = |tool: &Offered| {
        let what = match (server.needs_no_card(tool), tool.vouched) {
            (true, false) => " reads",
            (true, true) => " reads, by the settings",
            (false, _) => " needs approval",
        };
        let text = Text::new().bold(tool.definition.name.as_str()).plain(what);
        let takes: Vec<_> = schema::arguments(&tool.definition)
            .into_iter()
            .map(|argument| if argument.required { argument.name } else { format!("[{}]", argument.name) })
            .collect();
        let text = if takes.is_empty() { text } else { text.plain(format!(" · {}", takes.join(", "))) };
        match words(&tool.definition.description, 120) {
            says if says.is_empty() => text,
            says => text.plain(" · ").code(says),
        }
    };
    if !offered.is_empty() {
        reply = reply.and(Part::List(offered.values().map(line).collect()));
    }
    for (tool, why) in changed {
        let why = match why {
            Unusable::Changed => "has changed since it was accepted, so it can't be called",
            Unusable::Gone => "is no longer there",
            Unusable::Unreachable(_) | Unusable::NotAccepted | Unusable::NeedsCard => continue,
        };
        reply = reply.and(Part::Note(Text::new().bold(tool).plain(format!(" {why}."))));
    }
    let waiting = server.not_accepted();
    if !waiting.is_empty() {
        let text = format!("Not accepted by an operator yet: {}.", waiting.join(", "));
        reply = reply.hint(text);
    }
    match offered.values().next() {
        Some(tool) => reply.hint(example(name, tool)),
        None => reply,
    }
}

/// Returns a request that calls a tool, as an example.
fn example(server: &str, tool: &Offered) -> String {
    let required = schema::arguments(&tool.definition).into_iter().filter(|argument| argument.required);
    let given = required.map(|argument| {
        // The parts of an object are given by their own names.
        let parts = argument.shape.parts().iter().filter(|part| part.required);
        let parts: Vec<_> = parts.map(|part| format!("{}.{}=…", argument.name, part.name)).collect();
        if parts.is_empty() { format!("{}=…", argument.name) } else { parts.join(" ") }
    });
    let given: Vec<_> = given.collect();
    let with = if given.is_empty() { String::new() } else { format!(" with {}", given.join(" ")) };
    format!("For example: call {} on {server}{with}", tool.definition.name)
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    #[test]
    fn a_call_that_lacks_arguments_says_what_it_needs_and_how_to_ask_again() {
        let definition = countersign_mcp_client::ToolDefinition {
            name: "read_text_file".to_owned(),
            description: String::new(),
            schema: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": "The <!channel> path" },
                    "head": { "type": "number" },
                },
                "required": ["path"],
            }),
            reads: true,
            destroys: false,
            idempotent: true,
            needs_task: false,
        };
        let lacking = schema::lacking(&definition, &Map::new());
        let tool = Offered {
            registered: "files_read_text_file",
            description: "",
            definition,
            reads: true,
            vouched: false,
            repeats: true,
        };
        let wanted = "Nothing was sent: read_text_file needs one more argument.\n\
            • path: text. files describes it as The <!channel> path\n\
            For example: call read_text_file on files with path=…";
        assert_eq!(incomplete("files", &tool, &lacking).words(), wanted);
    }
}
