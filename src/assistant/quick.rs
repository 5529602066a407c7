//! Quick answers without any model: what slash commands ask for.

use serde_json::{Value, json};

use crate::{
    capabilities::{
        Registry, ToolError,
        experiments::{replies::answers, rules},
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
        let arguments = match rules::status_meant(filter) {
            _ if filter.is_empty() => json!({}),
            Some(status) => json!({ "status": status }),
            None => match self.read("get_context_metadata", json!({})).await {
                Ok(contexts) if contexts.get(filter).is_none() => {
                    return answers::contexts_reply(&contexts, Some(filter));
                }
                Ok(_) => json!({ "context": filter }),
                Err(error) => return error.reply,
            },
        };
        match self.read("get_all_experiments", arguments).await {
            Ok(answer) => {
                let experiments = answer["experiments"].as_array().cloned().unwrap_or_default();
                answers::list_reply(&experiments, Some(filter).filter(|words| !words.is_empty()))
            }
            Err(error) => error.reply,
        }
    }

    async fn read(&self, tool: &str, arguments: Value) -> Result<Value, ToolError> {
        let tool = self.registry.tools.get(tool).expect("the experiments capability is always registered");
        tool.call(&arguments).await
    }
}
