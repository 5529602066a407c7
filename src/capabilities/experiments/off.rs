//! The capability without the address of a platform: it has no tools or actions, and says that it is not set up wherever
//! people look for it.

use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use countersign_capabilities::{
    Capability, CapabilityInfo, ChangingOffer, Family, Tool, ToolInfo,
    facts::Facts,
    rows::{Nothing, Read},
};
use countersign_core::reply::{Part, Reply};
use countersign_graph::action::{ActionKind, Reader};
use countersign_understanding::{
    phrases::{Phrases, Stage, Utterance, Vocabulary},
    user_request::{Interpretation, UserRequest},
};
use serde_json::json;

use super::{NAME, SERVICE, commands, families, phrases::ExperimentPhrases};

/// The capability for experiments if `upgrade.api_url` is not set.
#[derive(Debug)]
pub struct NotSetUp;

/// The name of the tool that says so.
const TOOL: &str = "experiments_not_set_up";

/// Returns the reply that says so.
fn reply() -> Reply {
    Reply::text(format!("Experiments aren't set up here: I don't know where {} is.", SERVICE.name))
        .hint("The app's operator can set upgrade.api_url (UPGRADE_API_URL).")
}

#[async_trait]
impl Capability for NotSetUp {
    fn info(&self) -> CapabilityInfo {
        CapabilityInfo {
            phrases: Some(&PhrasesOff),
            command: Some(commands::COMMAND),
            ..CapabilityInfo::new(NAME, "Says that experiments are not set up here.")
        }
    }

    fn changing(&self) -> Option<&dyn ChangingOffer> {
        Some(self)
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![says_so()]
    }

    fn actions(&self) -> Vec<Arc<dyn ActionKind>> {
        Vec::new()
    }

    async fn check(&self) -> Option<(&'static str, Result<String, String>)> {
        Some(("upgrade", Ok("not set up (set UPGRADE_API_URL for experiments)".to_owned())))
    }

    async fn answer(&self, _: &str, _: &str, _: &Facts, _: &Reader) -> Reply {
        reply()
    }

    async fn home(&self, _: &Facts) -> Option<Reply> {
        let heading = Reply::default().and(Part::Heading("Experiments".to_owned()));
        Some(reply().parts.into_iter().fold(heading, Reply::and))
    }
}

#[async_trait]
impl ChangingOffer for NotSetUp {
    /// Returns the names that the settings may contain although nothing has them now.
    fn hidden(&self) -> Vec<&'static str> {
        let names: BTreeSet<&'static str> = families::all().iter().flat_map(Family::names).collect();
        names.into_iter().collect()
    }
}

/// Returns `experiments_not_set_up`: says that experiments are not set up.
fn says_so() -> Arc<dyn Tool> {
    let info = ToolInfo::new(
        TOOL,
        "Says that experiments are not set up here. Use it for every request about experiments or UpGrade.",
    );
    Arc::new(Read {
        schema: |(), schema| *schema = json!({ "type": "object", "properties": {} }),
        present: |(), _, _| Some(reply()),
        ..Read::new((), info, |(), Nothing {}, _| Box::pin(async { Ok(json!({ "experiments": "not set up" })) }))
    })
}

/// The phrases, which recognise only what they are about.
struct PhrasesOff;

impl Phrases for PhrasesOff {
    fn vocabulary(&self) -> Vocabulary {
        Vocabulary {
            help: "*Experiments*\n\
         • Not set up here. The app's operator can set upgrade.api_url (UPGRADE_API_URL).",
            greeting: "",
            ..Vocabulary::new(ExperimentPhrases.vocabulary().things)
        }
    }

    fn read(&self, stage: Stage, utterance: Utterance<'_>) -> Option<Interpretation> {
        let names_it = utterance.words.iter().any(|word| word.any(self.vocabulary().things) || word.is("upgrade"));
        (stage == Stage::Mention && names_it).then(|| UserRequest::read(TOOL, []).into())
    }
}
