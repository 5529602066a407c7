//! Tools that do not depend on the platform: the glossary, and the parameters of each action.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use countersign_capabilities::{
    Tool, ToolError, ToolInfo,
    rows::{Nothing, Read},
};
use countersign_graph::action::{ActionKind, ErrorKind};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    access::{self, Deps},
    examples,
    glossary::{self, Term},
    replies::{knowledge as words, refusals},
};

/// The maximum time that an explanation waits for its example.
const EXAMPLE_TIMEOUT: Duration = Duration::from_secs(2);

/// The terms to explain.
#[derive(Deserialize, JsonSchema)]
struct ExplainConceptArguments {
    /// The term, such as `weight` or `consistency rule`.
    concept: String,
    /// Another term, to explain how both work together.
    #[serde(default)]
    with: Option<String>,
}

/// Returns `explain_upgrade_concept`: explains one term, or how two terms work together.
pub(super) fn explain_concept(deps: Deps) -> Arc<dyn Tool> {
    let info = ToolInfo::new(
        "explain_upgrade_concept",
        "Explains a word of UpGrade from the glossary, with an example from this platform where one helps; with `with`, how \
         two of them work together. Use it whenever someone asks what a word means, instead of what you remember.",
    );
    Arc::new(Read {
        present: |_, _, answer| Some(words::explain_reply(answer)),
        ..Read::new(deps, info, |deps, asked, _| Box::pin(explain(deps, asked)))
    })
}

async fn explain(deps: &Deps, asked: ExplainConceptArguments) -> Result<Value, ToolError> {
    let term = find_term(&asked.concept)?;
    let with = asked.with.filter(|with| !with.trim().is_empty());
    let Some(other) = with.as_deref().map(find_term).transpose()? else {
        // The example is optional, since the explanation must not depend on the platform.
        let example = match term.example {
            Some(example) => {
                tokio::time::timeout(EXAMPLE_TIMEOUT, examples::of(&deps.client, example)).await.ok().flatten()
            }
            None => None,
        };
        return Ok(json!({ "concept": term.name(), "meaning": term.meaning, "example": example }));
    };
    let both = || format!("{}\n\n{}", term.meaning, other.meaning);
    let meaning = glossary::together(term, other).map_or_else(both, str::to_owned);
    Ok(json!({ "concept": term.name(), "with": other.name(), "meaning": meaning }))
}

fn find_term(concept: &str) -> Result<&'static Term, ToolError> {
    let unknown = || refusals::unknown_concept(concept, &glossary::similar(concept));
    Ok(glossary::find(concept).ok_or_else(|| access::refused(ErrorKind::NotFound, unknown()))?)
}

/// A tool that lists terms of the glossary.
struct Terms {
    info: ToolInfo,
    parts: &'static [(&'static str, &'static [Term])],
    with_meaning: bool,
}

/// The tools `list_upgrade_concepts`, `get_core_terms` and `get_assignment_terms`.
const TERMS: [Terms; 3] = [
    Terms {
        info: ToolInfo::new("list_upgrade_concepts", "Lists the words that can be explained, without their meaning."),
        parts: &[("core", glossary::core_terms()), ("assignment", glossary::assignment_terms())],
        with_meaning: false,
    },
    Terms {
        info: ToolInfo::new(
            "get_core_terms",
            "Explains the words for what an experiment is, who takes part, and what becomes of it, each briefly.",
        ),
        parts: &[("core", glossary::core_terms())],
        with_meaning: true,
    },
    Terms {
        info: ToolInfo::new(
            "get_assignment_terms",
            "Explains the words for how people get their condition (unit, consistency, enrollment …), each briefly.",
        ),
        parts: &[("assignment", glossary::assignment_terms())],
        with_meaning: true,
    },
];

/// Returns the tools that list terms.
pub(super) fn terms() -> impl Iterator<Item = Arc<dyn Tool>> {
    TERMS.into_iter().map(|terms| {
        let info = terms.info;
        Arc::new(Read {
            present: |Terms { with_meaning, .. }, _, answer| {
                Some(if *with_meaning { words::terms_reply(answer) } else { words::concepts_reply(answer) })
            },
            ..Read::new(terms, info, |Terms { parts, with_meaning, .. }, Nothing {}, _| {
                let brief = |term: &Term| match with_meaning {
                    true => json!({ "concept": term.name(), "meaning": first_sentence(term.meaning) }),
                    false => json!(term.name()),
                };
                let parts = parts.iter().map(|(name, terms)| (*name, terms.iter().map(brief).collect()));
                let parts: BTreeMap<_, Vec<Value>> = parts.collect();
                Box::pin(async move { Ok(json!(parts)) })
            })
        }) as Arc<dyn Tool>
    })
}

fn first_sentence(meaning: &str) -> &str {
    meaning.find(". ").or_else(|| meaning.find(".\n")).map_or(meaning, |end| &meaning[..=end])
}

/// The tool that explains what a change takes.
pub const EXPLAIN_CHANGE: &str = "explain_change";

/// The actions that can be explained.
struct Actions(Vec<Arc<dyn ActionKind>>);

impl Actions {
    fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|action| action.name()).collect()
    }

    fn explain(&self, arguments: &Value) -> Result<Value, ToolError> {
        let Some(action) = self.0.iter().find(|action| arguments["action"] == action.name()) else {
            let asked = arguments["action"].as_str().unwrap_or_default();
            let reply = refusals::not_one_of("action", asked, &self.names());
            return Err(access::invalid(reply).into());
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
}

/// Returns the tool `explain_change` for these actions.
pub(super) fn explain_change(actions: Vec<Arc<dyn ActionKind>>) -> Arc<dyn Tool> {
    let info = ToolInfo::new(
        EXPLAIN_CHANGE,
        "Explains what a change takes, for someone who asks what can be given. Not needed to propose the change.",
    );
    Arc::new(Read {
        schema: |actions: &Actions, schema| {
            *schema = json!({
                "type": "object",
                "properties": { "action": { "type": "string", "enum": actions.names(), "description": "The change." } },
                "required": ["action"],
                "additionalProperties": false,
            });
        },
        present: |_, _, answer| Some(words::schema_reply(answer)),
        ..Read::new(Actions(actions), info, |actions, arguments: Value, _| {
            Box::pin(async move { actions.explain(&arguments) })
        })
    })
}
