//! The registry of all capabilities, by the names of their tools and actions.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use countersign_core::{clock::Timestamp, ids::ChannelId};
use countersign_graph::action::ActionKind;
use countersign_understanding::{
    Hint,
    lexicon::Mention,
    phrase_book::PhraseBook,
    situation::{Situation, Topic},
    user_request::UserRequest,
};
use futures_util::future::join_all;
use serde_json::{Map, Value};

use super::{
    Capability, ChangingOffer, Family, History, ParameterSchema, Service, Shortcut, Things, Tool, changing, family,
    schemas::Schemas,
};

/// The bot's own slash command.
pub const OWN_COMMAND: &str = "/countersign";

/// The maximum length of the parameters that are kept with a topic, in bytes of JSON.
const MAX_TOPIC_LENGTH: usize = 400;

/// All tools and actions by name.
#[derive(Clone, Default)]
pub struct Registry {
    /// The capabilities, in the order in which they are listed.
    pub capabilities: Vec<Arc<dyn Capability>>,
    /// The tools by name.
    pub tools: BTreeMap<&'static str, Arc<dyn Tool>>,
    /// The actions by name.
    pub actions: BTreeMap<&'static str, Arc<dyn ActionKind>>,
    /// The families, in the order in which they are listed to a model.
    pub families: Vec<Family>,
    /// The phrases of all capabilities.
    pub book: Arc<PhraseBook>,
    /// The reader of past changes; `None` if there is no store.
    pub history: Option<Arc<dyn History>>,
    /// The index in `capabilities` of each tool's and each action's capability.
    owners: BTreeMap<&'static str, usize>,
    /// The schemas of the tools and actions that were used.
    schemas: Arc<Schemas>,
}

/// The reason why capabilities cannot be combined: a fault of the program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// Two capabilities have the same name.
    #[error("there are two capabilities called `{0}`")]
    Capability(&'static str),
    /// Two tools or actions have the same name. A model calls both by name alone.
    #[error("`{name}` of {capability} has a name that is taken")]
    Taken {
        /// The tool or action.
        name: &'static str,
        /// The capability that was registered second.
        capability: &'static str,
    },
    /// Two capabilities have the same slash command or shortcut.
    #[error("`{name}` of {capability} is a command or a shortcut that is taken")]
    Way {
        /// The command or shortcut.
        name: &'static str,
        /// The capability that was registered second.
        capability: &'static str,
    },
    /// A shortcut leads to an action that the capability does not have.
    #[error("the shortcut `{shortcut}` of {capability} leads to `{action}`, which isn't one of its actions")]
    Leads {
        /// The shortcut.
        shortcut: &'static str,
        /// The action.
        action: &'static str,
        /// The capability.
        capability: &'static str,
    },
    /// Two families have the same name.
    #[error("there are two families called `{0}`")]
    Family(&'static str),
    /// A family names something that does not exist, or a tool or action is in no family.
    #[error("`{name}` and the families of {capability} do not fit together")]
    Misnamed {
        /// The tool or action.
        name: &'static str,
        /// The capability.
        capability: &'static str,
    },
    /// A phrase cannot be read.
    #[error("a phrase of {capability} cannot be read: {reason}")]
    Phrase {
        /// The capability.
        capability: &'static str,
        /// The reason.
        reason: String,
    },
    /// A phrase leads to no tool or action.
    #[error("a phrase leads to `{0}`, which is no tool or action")]
    LeadsNowhere(String),
    /// A schema is not a valid JSON schema.
    #[error("the schema of `{name}` cannot be used: {reason}")]
    Schema {
        /// The tool or action.
        name: &'static str,
        /// The reason.
        reason: String,
    },
}

/// The effect of a request, as far as the phrases can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It only reads.
    Reads,
    /// It is a change, which needs an approval.
    Changes,
    /// It is a change that cannot be undone, which needs an approval.
    Irreversible,
    /// It is not clear until the steps before it are done.
    Unclear,
}

impl Registry {
    /// Builds the registry of these capabilities.
    ///
    /// # Errors
    ///
    /// Returns [`RegistryError`] if a name is taken, a schema is invalid, or something leads nowhere.
    pub fn build(capabilities: Vec<Arc<dyn Capability>>) -> Result<Self, RegistryError> {
        let mut registry = Self::default();
        for capability in capabilities {
            if registry.capabilities.iter().any(|known| known.name() == capability.name()) {
                return Err(RegistryError::Capability(capability.name()));
            }
            let mut existing = BTreeSet::new();
            for tool in capability.tools() {
                existing.insert(tool.name());
                registry.check_name(tool.name(), tool.schema(), &*capability)?;
                registry.owners.insert(tool.name(), registry.capabilities.len());
                registry.tools.insert(tool.name(), tool);
            }
            for action in capability.actions() {
                existing.insert(action.name());
                registry.check_name(action.name(), action.schema(), &*capability)?;
                registry.owners.insert(action.name(), registry.capabilities.len());
                registry.actions.insert(action.name(), action);
            }
            registry.check_entry_points(&*capability)?;
            let families = capability.families();
            if let Some(name) = family::misnamed(&families, &existing) {
                return Err(RegistryError::Misnamed { name, capability: capability.name() });
            }
            for family in families {
                if registry.families.iter().any(|known| known.name == family.name) {
                    return Err(RegistryError::Family(family.name));
                }
                registry.families.push(family);
            }
            registry.capabilities.push(capability);
        }
        registry.book = Arc::new(registry.phrases()?);
        Ok(registry)
    }

    /// Returns the action that shows a plan on a card, if there is one.
    pub fn plan_action(&self) -> Option<&'static str> {
        self.capabilities.iter().find_map(|capability| capability.info().plan_action)
    }

    /// Returns the tools and actions that one request of several calls, as far as the phrases can tell.
    pub fn calls_of(&self, request: &str) -> Vec<String> {
        let situation = Situation {
            said: request.to_owned(),
            last_subject: Some("it".to_owned()),
            names: self.names_in(request),
            ..Situation::default()
        };
        match self.book.hint(&situation) {
            Hint::Calls(calls) => calls,
            Hint::Talk | Hint::Nothing => Vec::new(),
        }
    }

    /// Returns the change that one request of several asks for, as far as the phrases can tell: the action and its
    /// parameters. There is none if it is about what an earlier request names.
    pub fn change_in(&self, request: &str) -> Option<(String, Value)> {
        let situation = Situation { said: request.to_owned(), names: self.names_in(request), ..Situation::default() };
        match self.book.understand(&situation).user_request {
            UserRequest::Change { action, params } => Some((action, Value::Object(params))),
            _ => None,
        }
    }

    /// Returns the effect of one request of several, as far as the phrases can tell.
    pub fn effect_of(&self, request: &str) -> Effect {
        let calls = self.calls_of(request);
        match calls.iter().find_map(|name| self.actions.get(name.as_str())) {
            Some(action) if action.irreversible() => Effect::Irreversible,
            Some(_) => Effect::Changes,
            None if calls.iter().any(|name| self.tools.contains_key(name.as_str())) => Effect::Reads,
            None => Effect::Unclear,
        }
    }

    /// Collects the phrases of all capabilities and checks that each leads to a tool or action.
    fn phrases(&self) -> Result<PhraseBook, RegistryError> {
        let mut book = PhraseBook::default();
        for capability in &self.capabilities {
            if let Some(phrases) = capability.info().phrases {
                let wrong = |reason| RegistryError::Phrase { capability: capability.name(), reason };
                book = book.with(capability.name(), phrases).map_err(wrong)?;
            }
            if let Some(service) = capability.info().service {
                book.note_service(service.name);
            }
        }
        for family in &self.families {
            book.note_family(family.within, &family.tools, &family.actions);
        }
        let exists = |name: &str, changes: bool| match changes {
            true => self.actions.contains_key(name),
            false => self.tools.contains_key(name),
        };
        let nowhere = book.leads_to().find(|(name, changes)| !exists(name, *changes)).map(|(name, _)| name.to_owned());
        nowhere.map_or(Ok(book), |name| Err(RegistryError::LeadsNowhere(name)))
    }

    /// Returns the schema of the parameters of a tool or an action; `None` if there is no such tool or action.
    pub fn schema_of(&self, name: &str) -> Option<Arc<ParameterSchema>> {
        let generation = self.generation();
        if let Some((&name, action)) = self.actions.get_key_value(name) {
            return Some(self.schemas.get(generation, name, || action.schema()));
        }
        let (&name, tool) = self.tools.get_key_value(name)?;
        Some(self.schemas.get(generation, name, || tool.schema()))
    }

    /// Returns a number that changes when a description or a schema does; see [`ChangingOffer::generation`].
    pub fn generation(&self) -> u64 {
        changing(&self.capabilities).map(ChangingOffer::generation).fold(0, u64::wrapping_add)
    }

    /// Returns the capability that a tool or an action belongs to.
    pub fn owner_of(&self, name: &str) -> Option<&dyn Capability> {
        self.owners.get(name).map(|at| &*self.capabilities[*at])
    }

    /// Returns this call as the topic of a thread, with false if its capability has no things to talk about; `None` if no
    /// capability has this call.
    pub fn topic_of(&self, call: &str, parameters: &Map<String, Value>) -> Option<(Topic, bool)> {
        let owner = self.owner_of(call)?;
        let has_things = owner.info().phrases.is_some_and(|phrases| !phrases.vocabulary().greeting.is_empty());
        let is_short = serde_json::to_string(parameters).is_ok_and(|text| text.len() <= MAX_TOPIC_LENGTH);
        let parameters = if is_short { parameters.clone() } else { Map::new() };
        Some((Topic { capability: owner.name().to_owned(), call: call.to_owned(), parameters }, has_things))
    }

    /// Returns what threads in this channel are about before anything was said, if it is the home channel of a capability.
    pub fn topic_in(&self, channel: &ChannelId) -> Option<Topic> {
        let is_home = |capability: &&Arc<dyn Capability>| capability.info().home_channel.as_ref() == Some(channel);
        let capability = self.capabilities.iter().find(is_home)?.name().to_owned();
        Some(Topic { capability, ..Topic::default() })
    }

    /// Returns the families whose own or wider name this is.
    pub fn families_called<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Family> {
        self.families.iter().filter(move |family| family.name == name || family.within == name)
    }

    /// Returns the first family that contains this tool or action.
    pub fn family_of(&self, name: &str) -> Option<&Family> {
        self.families.iter().find(|family| family.names().any(|known| known == name))
    }

    /// Returns the name of the thing that a change is about; see [`Capability::subject`].
    pub fn subject(&self, action: &str, parameters: &Value, result: &Value) -> Option<String> {
        self.owner_of(action)?.subject(parameters, result)
    }

    /// Returns suggested first requests of all capabilities: a label, and the request.
    pub fn suggestions(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.capabilities.iter().flat_map(|capability| capability.info().suggestions.iter().copied())
    }

    /// Returns at most `most` entries of the lists that `of` returns, some from each capability. The capability of the
    /// topic comes first and gives most of them; without a topic, all give equally many.
    pub fn by_topic<T>(&self, topic: Option<&Topic>, most: usize, of: impl Fn(&dyn Capability) -> Vec<T>) -> Vec<T> {
        let in_topic = |capability: &dyn Capability| topic.is_some_and(|topic| topic.capability == capability.name());
        let lists = self.capabilities.iter().map(|capability| (in_topic(&**capability), of(&**capability)));
        let mut lists: Vec<_> = lists.filter(|(_, list)| !list.is_empty()).collect();
        lists.sort_by_key(|(in_topic, _)| !in_topic);
        let others = lists.len().saturating_sub(1);
        let mut picked = Vec::new();
        for (place, (in_topic, list)) in lists.into_iter().enumerate() {
            let ahead = if in_topic { most.saturating_sub(others).max(1) } else { 1 };
            let rounds = |(index, entry): (usize, T)| ((index + 1).saturating_sub(ahead), place, index, entry);
            picked.extend(list.into_iter().enumerate().map(rounds));
        }
        picked.sort_by_key(|(round, place, ..)| (*round, *place));
        picked.truncate(most);
        picked.sort_by_key(|(_, place, index, _)| (*place, *index));
        picked.into_iter().map(|(.., entry)| entry).collect()
    }

    /// Returns the existing things of all capabilities.
    fn things(&self) -> impl Iterator<Item = &dyn Things> {
        self.capabilities.iter().filter_map(|capability| capability.things())
    }

    /// Returns the tools and actions that are not offered to a model at present.
    pub fn hidden(&self) -> BTreeSet<&'static str> {
        changing(&self.capabilities).flat_map(ChangingOffer::hidden).collect()
    }

    /// Closes the connections to outside systems that are kept.
    pub async fn close(&self) {
        join_all(changing(&self.capabilities).map(ChangingOffer::close)).await;
    }

    /// Returns the names of existing things in these words. The names are those that were read last.
    pub fn names_in(&self, said: &str) -> Vec<Mention> {
        self.things().flat_map(|things| things.names().find(said)).collect()
    }

    /// Reads the names again if they are old, or were read before `since`.
    pub async fn refresh_names(&self, since: Option<Timestamp>) {
        join_all(self.things().map(|things| things.refresh_names(since))).await;
    }

    /// Returns requests to try in a new conversation, of all capabilities: a reason, and the request.
    pub fn invitations(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.capabilities.iter().flat_map(|capability| capability.info().invitations.iter().copied())
    }

    /// Returns a value of a parameter in the canonical form for comparison.
    pub fn canonical(&self, parameter: &str, value: &str) -> Option<String> {
        self.things().find_map(|things| things.canonical(parameter, value))
    }

    /// Returns the outside systems.
    pub fn services(&self) -> impl Iterator<Item = Service> {
        self.capabilities.iter().filter_map(|capability| capability.info().service)
    }

    /// Returns the forms in which something new can be asked for.
    pub fn shortcuts(&self) -> impl Iterator<Item = &'static Shortcut> {
        self.capabilities.iter().flat_map(|capability| capability.info().shortcuts)
    }

    /// Checks that the slash command and the shortcuts of a capability are new, and that its shortcuts lead to its
    /// actions.
    fn check_entry_points(&self, capability: &dyn Capability) -> Result<(), RegistryError> {
        let command = capability.info().command.map(|command| command.name);
        let taken =
            self.capabilities.iter().filter_map(|known| known.info().command).any(|known| Some(known.name) == command);
        if let Some(name) = command.filter(|name| taken || *name == OWN_COMMAND) {
            return Err(RegistryError::Way { name, capability: capability.name() });
        }
        for Shortcut { callback, action, .. } in capability.info().shortcuts {
            if self.shortcuts().any(|known| known.callback == *callback) {
                return Err(RegistryError::Way { name: callback, capability: capability.name() });
            }
            if !capability.actions().iter().any(|known| known.name() == *action) {
                return Err(RegistryError::Leads { shortcut: callback, action, capability: capability.name() });
            }
        }
        Ok(())
    }

    fn check_name(&self, name: &'static str, schema: Value, capability: &dyn Capability) -> Result<(), RegistryError> {
        if self.tools.contains_key(name) || self.actions.contains_key(name) {
            return Err(RegistryError::Taken { name, capability: capability.name() });
        }
        match ParameterSchema::new(schema).fault() {
            Some(reason) => Err(RegistryError::Schema { name, reason: reason.to_owned() }),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("tools", &self.tools.keys()).field("actions", &self.actions.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CapabilityInfo, Tool};
    use countersign_understanding::phrases::{Phrases, Vocabulary};

    /// A capability that has only phrases.
    struct Speaks(&'static str, Option<&'static str>);

    impl Capability for Speaks {
        fn info(&self) -> CapabilityInfo {
            CapabilityInfo {
                phrases: self.1.map(|lines| {
                    let words = Vocabulary { lines, ..Vocabulary::new(&["document", "documents"]) };
                    &*Box::leak(Box::new(words)) as &dyn Phrases
                }),
                ..CapabilityInfo::new(self.0, "What a test needs.")
            }
        }

        fn tools(&self) -> Vec<Arc<dyn Tool>> {
            Vec::new()
        }

        fn actions(&self) -> Vec<Arc<dyn ActionKind>> {
            Vec::new()
        }
    }

    #[test]
    fn the_capability_of_the_topic_gives_most_entries() {
        let all = ["documents", "letters"].map(|name| Arc::new(Speaks(name, None)) as Arc<dyn Capability>);
        let registry = Registry::build(all.into()).unwrap();
        let entries = |topic: Option<&Topic>, most: usize| {
            let of = |capability: &dyn Capability| {
                (1..=3).map(|number| format!("{} {number}", &capability.name()[..1])).collect()
            };
            registry.by_topic(topic, most, of).join(", ")
        };
        assert_eq!(entries(None, 4), "d 1, d 2, l 1, l 2");
        assert_eq!(entries(None, 3), "d 1, d 2, l 1");
        let letters = Topic { capability: "letters".to_owned(), ..Topic::default() };
        assert_eq!(entries(Some(&letters), 4), "l 1, l 2, l 3, d 1");
        assert_eq!(entries(Some(&letters), 1), "l 1");
        assert_eq!(entries(Some(&letters), 9), "l 1, l 2, l 3, d 1, d 2, d 3");
    }

    fn refused(capabilities: impl IntoIterator<Item = Speaks>) -> String {
        let all = capabilities.into_iter().map(|capability| Arc::new(capability) as Arc<dyn Capability>);
        Registry::build(all.collect()).expect_err("they do not fit together").to_string()
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let twice = refused([Speaks("documents", None), Speaks("documents", None)]);
        assert_eq!(twice, "there are two capabilities called `documents`");
        let nowhere = refused([Speaks("documents", Some("read show_document\n    show <document:thing>"))]);
        assert_eq!(nowhere, "a phrase leads to `show_document`, which is no tool or action");
        let open = refused([Speaks("documents", Some("read show_document\n    show (me|us <document:thing>"))]);
        assert_eq!(
            open,
            "a phrase of documents cannot be read: “show (me|us <document:thing>”: brackets do not fit together"
        );
        let headless = refused([Speaks("documents", Some("    show <document:thing>"))]);
        assert_eq!(headless, "a phrase of documents cannot be read: “    show <document:thing>” asks for nothing");
    }
}
