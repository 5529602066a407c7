//! The phrases of all capabilities.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    fmt,
    sync::OnceLock,
};

use serde_json::{Map, Value};

use super::{
    asides, either, id_lists, in_place,
    lexicon::Mention,
    lines::{Call, CallKind, Lines},
    memory::Memory,
    phrases::{Division, Phrases, Shows, Utterance, Vocabulary, Wording},
    quotations,
    references::{self, Resolution},
    situation::{Situation, Topic},
    suggestions, talk,
    user_request::{Interpretation, Talk, UserRequest},
    words::{Word, respell, strip_objection, strip_politeness, words_with},
};

/// The confidence that a message asks about a thing that it merely mentions.
pub(super) const MENTION_CONFIDENCE: f64 = 0.75;

/// The maximum length of a message that is read, in words. The cost grows faster than the length.
pub(super) const MAX_WORDS: usize = 250;

/// The phrases of all capabilities.
#[derive(Default)]
pub struct PhraseBook {
    pub(super) capabilities: Vec<CapabilityPhrases>,
    /// The family of each tool and action. A family is offered to language models as a whole.
    families: HashMap<String, String>,
    /// The actions of all families.
    actions: HashSet<&'static str>,
    /// The first family with actions. Questions about changes in general belong to it.
    changes: Option<String>,
    /// The names by which people call the outside systems.
    services: Vec<&'static str>,
    /// What is known of the newest messages.
    pub(super) memory: Memory,
    /// The requests that may be suggested, indexed when the first is.
    offers: OnceLock<suggestions::Index>,
    /// All words of lines.
    line_words: OnceLock<HashSet<String>>,
}

/// The phrases of one capability.
pub(super) struct CapabilityPhrases {
    /// The name of the capability.
    pub(super) owner: &'static str,
    pub(super) phrases: &'static dyn Phrases,
    pub(super) lines: Lines,
}

impl fmt::Debug for PhraseBook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.capabilities.iter().map(|capability| capability.owner)).finish()
    }
}

impl PhraseBook {
    /// Adds the phrases of a capability.
    ///
    /// # Errors
    ///
    /// Fails with the first line that cannot be read, and the reason.
    pub fn with(mut self, owner: &'static str, phrases: &'static dyn Phrases) -> Result<Self, String> {
        let lines = Lines::read(phrases.vocabulary().lines)?;
        self.capabilities.push(CapabilityPhrases { owner, phrases, lines });
        (self.memory, self.offers, self.line_words) = Default::default();
        Ok(self)
    }

    /// Assigns these tools and actions to a family, unless they have one.
    pub fn note_family(&mut self, family: &str, tools: &[&'static str], actions: &[&'static str]) {
        for name in tools.iter().chain(actions) {
            self.families.entry((*name).to_owned()).or_insert_with(|| family.to_owned());
        }
        self.actions.extend(actions);
        if !actions.is_empty() {
            self.changes.get_or_insert_with(|| family.to_owned());
        }
    }

    /// Returns true if this is an action.
    pub(super) fn is_action(&self, name: &str) -> bool {
        self.actions.contains(name) || self.leads_to().any(|(known, is_action)| is_action && known == name)
    }

    /// Returns the request for a tool or an action.
    pub(super) fn call(&self, name: &str, arguments: Map<String, Value>) -> UserRequest {
        match self.is_action(name) {
            true => UserRequest::change(name, arguments),
            false => UserRequest::Read { tool: name.to_owned(), arguments },
        }
    }

    /// Adds the name of an outside system.
    pub fn note_service(&mut self, service: &'static str) {
        self.services.push(service);
    }

    /// Returns the tools (`false`) and actions (`true`) that lines request.
    pub fn leads_to(&self) -> impl Iterator<Item = (&str, bool)> {
        let lines = self.capabilities.iter().flat_map(|capability| capability.lines.calls());
        let names = |call: &&Call| matches!(call.kind, CallKind::Read | CallKind::Change);
        lines.filter(names).map(|call| (call.name.as_str(), call.kind == CallKind::Change))
    }

    pub(super) fn phrases(&self) -> impl Iterator<Item = &'static dyn Phrases> {
        self.capabilities.iter().map(|capability| capability.phrases)
    }

    /// Returns true if the message begins like a request for a change.
    pub fn begins_change(&self, said: &str) -> bool {
        let words = self.words(said, &[]);
        let first = strip_politeness(strip_objection(strip_politeness(&words))).first();
        let begins = |first: &Word| self.capabilities.iter().any(|one| one.lines.begin_change_with(&first.lower));
        first.is_some_and(|first| !first.quoted && begins(first))
    }

    /// Returns the phrases of all capabilities, that of the pending change first, with true: an answer is most likely for it.
    pub(super) fn in_charge(&self, situation: &Situation) -> impl Iterator<Item = (&'static dyn Phrases, bool)> {
        let is_of = |one: &CapabilityPhrases, action: &str| {
            let vocabulary = one.phrases.vocabulary();
            one.lines.calls().iter().any(|call| call.name == action) || vocabulary.creates.contains(&action)
        };
        let owner = situation
            .in_hand()
            .and_then(|change| self.capabilities.iter().position(|capability| is_of(capability, &change.action)));
        let others = (0..self.capabilities.len()).filter(move |at| Some(*at) != owner);
        owner.into_iter().chain(others).map(move |at| (self.capabilities[at].phrases, Some(at) == owner))
    }

    /// Returns the requests that a sentence with one verb combines, in order; `None` for a single one.
    pub(super) fn combined_requests(&self, utterance: Utterance<'_>) -> Option<Vec<String>> {
        self.phrases().find_map(|phrases| match phrases.divided(utterance)? {
            Division::Combined(requests) => Some(requests),
            Division::Suggested(_) => None,
        })
    }

    /// Returns the tools that show things, of each capability that has some.
    pub(super) fn shows(&self) -> impl Iterator<Item = Shows> {
        self.phrases().filter_map(|phrases| phrases.vocabulary().shows)
    }

    /// Returns true if this tool lists the things that requests are about.
    pub fn lists_things(&self, tool: &str) -> bool {
        self.shows().any(|shows| shows.all == tool)
    }

    /// Returns one of the changes of a capability in words.
    pub(super) fn worded(&self, action: &str, params: &Map<String, Value>) -> Option<Wording> {
        self.phrases().find_map(|phrases| phrases.worded(action, params))
    }

    /// Returns the names of the outside systems.
    pub(super) fn services(&self) -> &[&'static str] {
        &self.services
    }

    /// Returns the family of the tool or action that a request needs; `None` for talk.
    pub(super) fn family_of(&self, user_request: &UserRequest, situation: &Situation) -> Option<&str> {
        let of = |name: &str| self.families.get(name).map(String::as_str);
        match user_request {
            UserRequest::Term { .. } => {
                self.families.values().find(|family| *family == "terminology").map(String::as_str)
            }
            UserRequest::Talk(Talk::NothingDone(_)) => self.changes.as_deref(),
            UserRequest::Read { tool, .. } if tool == talk::EXECUTION_LOG => self.changes.as_deref(),
            UserRequest::Unclear { options, .. } if !options.is_empty() => self.changes.as_deref(),
            UserRequest::Read { tool, .. } => of(tool),
            UserRequest::Change { action, .. } => of(action),
            UserRequest::Update(_) | UserRequest::Drop => situation.in_hand().and_then(|draft| of(&draft.action)),
            UserRequest::Unsupported => Some("unsupported"),
            UserRequest::Talk(_) | UserRequest::Unclear { .. } => None,
        }
    }

    /// Returns the request that ends what this call began, in words. Values in `<…>` are those of the call.
    pub(super) fn ended_by(&self, begun: &Topic) -> Option<&'static str> {
        let ended_by = self.of_topic(begun)?.phrases.vocabulary().ended_by;
        ended_by.iter().find(|(call, _)| *call == begun.call).map(|(_, request)| *request)
    }

    /// Returns true if a tool may begin something, such as a watch: it belongs to a capability about the things of others.
    pub(super) fn begins_something(&self, tool: &str) -> bool {
        let has = |one: &CapabilityPhrases| one.lines.calls().iter().any(|call| call.name == tool);
        self.capabilities.iter().any(|one| has(one) && one.phrases.vocabulary().about_others)
    }

    /// Returns the phrases of the capability that a topic belongs to.
    pub(super) fn of_topic(&self, topic: &Topic) -> Option<&CapabilityPhrases> {
        self.capabilities.iter().find(|one| one.owner == topic.capability)
    }

    /// Returns the requests that may be suggested.
    pub(super) fn offers(&self) -> &suggestions::Index {
        self.offers.get_or_init(|| suggestions::Index::of(&self.capabilities))
    }

    /// Returns the words of all lines, and the nouns.
    pub(super) fn line_words(&self) -> &HashSet<String> {
        let nouns = |vocabulary: Vocabulary| {
            let all = [vocabulary.things, vocabulary.groups, vocabulary.lists, vocabulary.kinds];
            all.concat().into_iter().map(str::to_owned)
        };
        let of_one =
            |one: &CapabilityPhrases| one.lines.words().chain(nouns(one.phrases.vocabulary())).collect::<Vec<_>>();
        self.line_words.get_or_init(|| self.capabilities.iter().flat_map(of_one).collect())
    }

    /// Returns the words of a message. Each of these names is one word.
    pub(super) fn words(&self, said: &str, names: &[Mention]) -> Vec<Word> {
        let mut found = words_with(said, names);
        self.phrases().for_each(|phrases| respell(&mut found, phrases.vocabulary().things));
        let found = id_lists::with_commas(found);
        if found.len() > MAX_WORDS { id_lists::joined(found) } else { found }
    }

    /// Returns the situation with a message without asides, and with names in place of references to the last list.
    ///
    /// # Errors
    ///
    /// The question about a reference that is not clear.
    pub(super) fn resolved<'s>(&self, situation: &'s Situation) -> Result<Cow<'s, Situation>, Interpretation> {
        let situation = match asides::without(self, situation) {
            Some(said) => Cow::Owned(Situation { said, ..situation.clone() }),
            None => Cow::Borrowed(situation),
        };
        match references::resolve(&situation, self.phrases()) {
            Resolution::Nothing => Ok(situation),
            Resolution::Message(said) => Ok(Cow::Owned(Situation { said, ..situation.into_owned() })),
            Resolution::Question(question, options) => Err(Interpretation::unclear(question, options)),
        }
    }

    /// Returns the request that a message expresses. A message is only read if it is not one of the newest.
    pub fn understand(&self, situation: &Situation) -> Interpretation {
        let situation = &*situation.without_quotes();
        let resolve = |resolved: Cow<'_, Situation>| {
            let found = in_place::resolve(self, self.read(&resolved), situation);
            quotations::exact(either::asked(found, &resolved), &situation.said)
        };
        let read = || self.resolved(situation).map_or_else(|question| question, resolve);
        self.recall(situation, |known| &mut known.interpretation, read)
    }
}
