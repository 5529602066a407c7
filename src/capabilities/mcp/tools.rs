//! Read-only tools: those that the server declares as read-only, and one that lists the server's tools.

use std::sync::Arc;

use async_trait::async_trait;
use countersign_capabilities::{
    Tool, ToolError, ToolInfo,
    rows::{Nothing, Read},
};
use countersign_core::reply::{Part, Reply, Text};
use countersign_graph::action::{ErrorKind, Reader};
use countersign_mcp_client::Call;
use serde_json::{Value, json};

use super::{
    replies, schema,
    server::{Server, Unusable},
};

/// The description of a tool that no operator has accepted; it is offered to nobody.
pub(crate) const NOT_ACCEPTED: &str = "Not accepted by an operator.";

/// Returns the schema of a tool that no operator has accepted.
pub(crate) fn nothing() -> Value {
    json!({ "type": "object", "properties": {} })
}

/// A read-only tool of the server.
#[derive(Debug)]
pub(crate) struct ReadTool {
    pub(crate) server: Arc<Server>,
    /// Its name on the server.
    pub(crate) tool: String,
    /// Its name in the registry.
    pub(crate) registered: &'static str,
}

/// Returns the error of a tool that cannot be called now.
fn unusable(server: &str, tool: &str, why: &Unusable) -> ToolError {
    let (kind, reply) = replies::unusable(server, tool, why);
    error(kind, reply)
}

fn error(kind: ErrorKind, reply: Reply) -> ToolError {
    ToolError { kind, reply, transient: kind == ErrorKind::Network }
}

#[async_trait]
impl Tool for ReadTool {
    fn info(&self) -> ToolInfo {
        ToolInfo::new(self.registered, self.server.tool(&self.tool).map_or(NOT_ACCEPTED, |tool| tool.description))
    }

    fn name(&self) -> &'static str {
        self.registered
    }

    fn schema(&self) -> Value {
        self.server.tool(&self.tool).map_or_else(|_| nothing(), |tool| schema::for_model(&tool.definition))
    }

    async fn call(&self, arguments: &Value, _: Option<&Reader>) -> Result<Value, ToolError> {
        let server = self.server.name;
        let tool = self.server.tool(&self.tool).map_err(|why| unusable(server, &self.tool, &why))?;
        let definition = &tool.definition;
        if !tool.reads {
            return Err(unusable(server, &definition.name, &Unusable::NeedsCard));
        }
        let given = schema::read(definition, arguments);
        // No draft is kept of a call that only reads, so nothing is asked.
        let lacking = schema::lacking(definition, &given);
        if !lacking.is_empty() {
            return Err(error(ErrorKind::UserInput, replies::incomplete(server, &tool, &lacking)));
        }
        let mistakes = schema::mistakes(definition, &given);
        if !mistakes.is_empty() {
            return Err(error(ErrorKind::Validation, replies::mistaken(&definition.name, mistakes)));
        }
        let is_as_accepted = self.server.check_definition(&tool, false).await;
        is_as_accepted.map_err(|why| unusable(server, &definition.name, &why))?;
        // Progress doesn't prolong it: the thread waits for a call that only reads, and nobody can stop it.
        let answer = self.server.client.call(&definition.name, &given, Call::default()).await;
        let answer = answer.map_err(|why| error(replies::kind(&why), replies::unreachable(server, &why)))?;
        let mut found = self.server.result(answer);
        found["from_server"] = json!(server);
        found["tool"] = json!(definition.name);
        if tool.vouched {
            found["read_only"] = json!("by the settings alone");
        }
        Ok(found)
    }

    fn present(&self, _: &Value, answer: &Value) -> Option<Reply> {
        Some(replies::read(&self.server, &self.tool, answer))
    }
}

/// Returns the tool `<server>_tools`: it lists the tools that the server offers here, and reports the server's state.
pub(crate) fn lists(server: Arc<Server>, description: &'static str) -> Read<Arc<Server>, Nothing> {
    let info = ToolInfo::new(server.lists, description);
    Read {
        present: |server, _, answer| Some(state(server, answer)),
        ..Read::new(server, info, |server, _, _| Box::pin(list(server)))
    }
}

async fn list(server: &Server) -> Result<Value, ToolError> {
    let unreachable = |why| error(replies::kind(&why), replies::unreachable(server.name, &why));
    let info = server.client.server().await.map_err(unreachable)?;
    let mut changed = Vec::new();
    let all = server.offered();
    for (name, tool) in &*all {
        match server.check_definition(tool, false).await {
            Ok(()) => {}
            Err(Unusable::Unreachable(why)) => return Err(unreachable(why)),
            Err(Unusable::Changed) => changed.push(json!([name, "changed"])),
            Err(Unusable::Gone) => changed.push(json!([name, "gone"])),
            Err(Unusable::NotAccepted | Unusable::NeedsCard) => {}
        }
    }
    let offered: Vec<_> = all.keys().collect();
    Ok(json!({
        "name": info.name,
        "version": info.version,
        "protocol": info.protocol,
        "offered": offered,
        "changed": changed,
        "not_accepted": server.not_accepted(),
    }))
}

/// Shows the answer of [`lists`].
fn state(server: &Server, answer: &Value) -> Reply {
    let changed = answer["changed"].as_array().into_iter().flatten().map(|entry| {
        let why = if entry[1] == "gone" { Unusable::Gone } else { Unusable::Changed };
        (entry[0].as_str().unwrap_or_default().to_owned(), why)
    });
    let reply = replies::offers(server, &changed.collect::<Vec<_>>());
    let text_of = |key: &str| answer[key].as_str().unwrap_or_default();
    let program = super::server::words(&format!("{} {}", text_of("name"), text_of("version")), 80);
    let text = Text::from("The server calls itself ").code(program).plain(".");
    reply.and(Part::Note(text))
}
