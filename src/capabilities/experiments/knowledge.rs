//! Tools that do not depend on the platform: the glossary, and the parameters of each action.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_capabilities::{Tool, ToolError, ToolInfo};
use countersign_core::reply::Reply;
use countersign_graph::action::{ActionKind, ErrorKind, Reader};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    access::schema,
    examples,
    glossary::{self, Term},
    replies::{knowledge as words, refusals},
    tools::arguments_as,
};
use crate::upgrade::client::UpgradeClient;

/// The maximum time that an explanation waits for its example.
const EXAMPLE_TIMEOUT: Duration = Duration::from_secs(2);

/// No parameters.
#[derive(Deserialize, JsonSchema)]
struct NoArguments {}

/// The terms to explain.
#[derive(Deserialize, JsonSchema)]
struct ExplainConceptArguments {
    /// The term, such as `weight` or `consistency rule`.
    concept: String,
    /// Another term, to explain how both work together.
    #[serde(default)]
    with: Option<String>,
}

/// `explain_upgrade_concept`: explains one term, or how two terms work together.
#[derive(Debug)]
pub struct ExplainConcept(pub Arc<UpgradeClient>);

#[async_trait]
impl Tool for ExplainConcept {
    fn info(&self) -> ToolInfo {
        ToolInfo::new("explain_upgrade_concept", {
            "Explains a word of UpGrade from the glossary, with an example from this platform where one helps; with `with`, how \
         two of them work together. Use it whenever someone asks what a word means, instead of what you remember."
        })
    }

    fn schema(&self) -> Value {
        schema::<ExplainConceptArguments>()
    }

    async fn call(&self, arguments: &Value, _: Option<&Reader>) -> Result<Value, ToolError> {
        let ExplainConceptArguments { concept, with } = arguments_as(arguments)?;
        let term = find_term(&concept)?;
        let Some(other) = with.as_deref().filter(|with| !with.trim().is_empty()).map(find_term).transpose()? else {
            // The example is optional, since the explanation must not depend on the platform.
            let example = match term.example {
                Some(example) => {
                    tokio::time::timeout(EXAMPLE_TIMEOUT, examples::of(&self.0, example)).await.ok().flatten()
                }
                None => None,
            };
            return Ok(json!({ "concept": term.name(), "meaning": term.meaning, "example": example }));
        };
        Ok(match glossary::together(term, other) {
            Some(together) => json!({ "concept": term.name(), "with": other.name(), "meaning": together }),
            None => json!({
                "concept": term.name(), "with": other.name(),
                "meaning": format!("{}\n\n{}", term.meaning, other.meaning),
            }),
        })
    }

    fn present(&self, _: &Value, answer: &Value) -> Option<Reply> {
        Some(words::explain_reply(answer))
    }
}

fn find_term(concept: &str) -> Result<&'static Term, ToolError> {
    glossary::find(concept).ok_or_else(|| ToolError {
        kind: ErrorKind::NotFound,
        reply: refusals::unknown_concept(concept, &glossary::similar(concept)),
        transient: false,
    })
}

/// A tool that lists terms of the glossary.
#[derive(Debug)]
pub struct Terms {
    name: &'static str,
    description: &'static str,
    parts: &'static [(&'static str, &'static [Term])],
    with_meaning: bool,
}

/// The tools `list_upgrade_concepts`, `get_core_terms` and `get_assignment_terms`.
pub const TERMS: [Terms; 3] = [
    Terms {
        name: "list_upgrade_concepts",
        description: "Lists the words that can be explained, without their meaning.",
        parts: &[("core", glossary::core_terms()), ("assignment", glossary::assignment_terms())],
        with_meaning: false,
    },
    Terms {
        name: "get_core_terms",
        description: "Explains the words for what an experiment is, who takes part, and what becomes of it, each briefly.",
        parts: &[("core", glossary::core_terms())],
        with_meaning: true,
    },
    Terms {
        name: "get_assignment_terms",
        description: "Explains the words for how people get their condition (unit, consistency, enrollment …), each briefly.",
        parts: &[("assignment", glossary::assignment_terms())],
        with_meaning: true,
    },
];

#[async_trait]
impl Tool for Terms {
    fn info(&self) -> ToolInfo {
        ToolInfo::new(self.name, self.description)
    }

    fn schema(&self) -> Value {
        schema::<NoArguments>()
    }

    async fn call(&self, _: &Value, _: Option<&Reader>) -> Result<Value, ToolError> {
        let brief = |term: &Term| match self.with_meaning {
            true => json!({ "concept": term.name(), "meaning": first_sentence(term.meaning) }),
            false => json!(term.name()),
        };
        let parts = self.parts.iter().map(|(name, terms)| (*name, terms.iter().map(brief).collect::<Vec<_>>()));
        Ok(json!(parts.collect::<BTreeMap<_, _>>()))
    }

    fn present(&self, _: &Value, answer: &Value) -> Option<Reply> {
        Some(match self.with_meaning {
            true => words::terms_reply(answer),
            false => words::concepts_reply(answer),
        })
    }
}

fn first_sentence(meaning: &str) -> &str {
    meaning.find(". ").or_else(|| meaning.find(".\n")).map_or(meaning, |end| &meaning[..=end])
}

/// The tool that explains what a change takes.
pub const EXPLAIN_CHANGE: &str = "explain_change";

/// The tool `explain_change`, for these actions.
pub struct ExplainChange(pub Vec<Arc<dyn ActionKind>>);

impl ExplainChange {
    fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|action| action.name()).collect()
    }
}

#[async_trait]
impl Tool for ExplainChange {
    fn info(&self) -> ToolInfo {
        ToolInfo::new(
            EXPLAIN_CHANGE,
            "Explains what a change takes, for someone who asks what can be given. Not needed to propose the change.",
        )
    }

    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": { "action": { "type": "string", "enum": self.names(), "description": "The change." } },
            "required": ["action"],
            "additionalProperties": false,
        })
    }

    async fn call(&self, arguments: &Value, _: Option<&Reader>) -> Result<Value, ToolError> {
        let Some(action) = self.0.iter().find(|action| arguments["action"] == action.name()) else {
            let asked = arguments["action"].as_str().unwrap_or_default();
            let reply = refusals::not_one_of("action", asked, &self.names());
            return Err(ToolError { kind: ErrorKind::Validation, reply, transient: false });
        };
        let schema = action.schema();
        let parameter = |(name, about): (&String, &Value)| {
            let words =
                about["description"].as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
            let needed = words.contains("Required.") || words.contains("One is required.");
            let what = words.replace("One is required.", "").replace("Required.", "");
            json!({ "name": name, "needed": needed, "what": what.trim() })
        };
        let parameters: Vec<_> = schema["properties"].as_object().into_iter().flatten().map(parameter).collect();
        Ok(json!({ "action": action.name(), "what": action.info().description, "parameters": parameters }))
    }

    fn present(&self, _: &Value, answer: &Value) -> Option<Reply> {
        Some(words::schema_reply(answer))
    }
}
