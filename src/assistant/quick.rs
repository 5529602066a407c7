//! Quick answers without any model: what slash commands ask for.

use serde_json::{Value, json};

use crate::{
    capabilities::{
        Registry, ToolError,
        experiments::{
            listing::Which,
            replies::{answers, contexts, lists},
            rules,
        },
    },
    reply::Reply,
};

/// Answers from the tools that read, and nothing else.
#[derive(Clone, Debug)]
pub struct QuickAnswers {
    registry: Registry,
}

impl QuickAnswers {
    /// With these tools.
    pub fn new(registry: Registry) -> Self {
        Self { registry }
    }

    /// Whether the experiment platform answers, and which version it is.
    pub async fn health(&self) -> Reply {
        match self.read("check_upgrade_health", json!({})).await {
            Ok(answer) => answers::health_reply(&answer),
            Err(error) => error.reply,
        }
    }

    /// The experiments: all, or those of a status or a context.
    pub async fn list(&self, filter: &str) -> Reply {
        let which = match rules::status_meant(filter) {
            _ if filter.is_empty() => Which::default(),
            Some(status) => Which { status: Some(status.stored().to_owned()), ..Which::default() },
            None => match self.read("get_context_metadata", json!({})).await {
                Ok(contexts) if contexts.get(filter).is_none() => {
                    return contexts::contexts_reply(&contexts, Some(filter));
                }
                Ok(_) => Which { context: Some(filter.to_owned()), ..Which::default() },
                Err(error) => return error.reply,
            },
        };
        match self.read("get_all_experiments", json!(which)).await {
            Ok(answer) => lists::list_reply(&answer, &which),
            Err(error) => error.reply,
        }
    }

    async fn read(&self, tool: &str, arguments: Value) -> Result<Value, ToolError> {
        let tool = self.registry.tools.get(tool).expect("the experiments capability is always registered");
        tool.call(&arguments).await
    }
}
