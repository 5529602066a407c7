//! Finds the words of people that ask for a change, when a language model proposes it.
//!
//! The words are those of the person whose message is answered: the message itself, and earlier ones that it continues,
//! as an answer to a question or a correction of a card. Without a language model, the phrases made the change of these
//! words, so all of them ask for it.

use countersign_capabilities::Registry;
use countersign_core::reply::Reply;
use countersign_graph::{
    action::{Evidence, Proposal, Suggested, Words},
    node::Context,
};
use countersign_understanding::{
    asked::AskedWords,
    situation::{Draft, Situation},
    user_request::UserRequest,
};
use serde_json::{Map, Value};

use super::{
    super::{
        history::shorten,
        replies,
        state::AgentState,
        turn::{Heard, Turn},
        view,
    },
    look_first,
    round::Rounds,
};

/// Returns true if the values that a verb stands for are those of the change.
type IsSame<'a> = &'a dyn Fn(&Map<String, Value>) -> bool;

/// The maximum number of earlier messages that are kept for a draft or a card.
const MAX_HEARD: usize = 3;
/// The maximum length of a kept message, in characters.
const MAX_HEARD_LENGTH: usize = 1_500;

/// Returns the evidence of a change that was made of a person's words without a language model: the whole message.
pub(super) fn of_phrases(turn: &Turn, proposal: &Proposal, is_step: bool) -> Evidence {
    let Some(message) = turn.ts.as_ref().filter(|_| !turn.is_explicit) else { return Evidence::default() };
    let whole = || Words { message: Some(message.clone()), ..Words::default() };
    // Of a step of a plan and of a button's words, the place in the message is not known.
    let is_message = !is_step && !turn.is_picked;
    let named = proposal.scope.subjects.iter().filter(|_| is_message).filter_map(|name| {
        let at = turn.said.find(name.as_str())?;
        Some(words_at(&turn.said, at..at + name.len(), Some(message.clone())))
    });
    let named: Vec<Words> = named.collect();
    Evidence { target: if named.is_empty() { vec![whole()] } else { named }, kind: vec![whole()], suggested: None }
}

impl Rounds {
    /// Returns the words of people behind a change that a language model proposes, and keeps them for messages that
    /// continue it. Of a change that the phrases made of the message, there are none to look for.
    pub(super) fn words_behind(
        &self,
        state: &mut AgentState,
        context: &Context,
        change: &Draft,
        is_proposed_by_model: bool,
    ) -> Vec<Heard> {
        if !is_proposed_by_model && !state.turn.is_of_model {
            return Vec::new();
        }
        let heard = heard(&self.registry, state, context, change);
        state.keep_heard(heard.clone());
        heard
    }

    /// Adds to the turn where the change that a language model proposes comes from. Returns the refusal of a change that no
    /// person asked for and that cannot be undone.
    pub(super) fn add_evidence(
        &self,
        state: &mut AgentState,
        context: &Context,
        change: &Draft,
        proposal: &Proposal,
        heard: &[Heard],
    ) -> Option<Reply> {
        let found = of_proposal(&self.registry, state, context, change, proposal, heard);
        if found.suggested.is_some() {
            tracing::info!(action.name = change.action, run.id = %context.run, "A model suggests a change that no person named");
            let answer = replies::results(&self.registry, &state.turn, &state.log);
            let kind = self.registry.actions.get(change.action.as_str());
            let is_irreversible = proposal.card.irreversible || kind.is_some_and(|kind| kind.irreversible());
            if is_irreversible || look_first::is_irreversible(&self.registry, change) {
                state.draft = None;
                return Some(replies::not_suggested(answer, &proposal.card.title));
            }
            state.turn.reply = answer;
        }
        state.turn.evidence = Some(found);
        None
    }
}

impl Turn {
    /// Returns the words of people that the turn is about: the message, unless a model wrote it as a step of a plan, and
    /// those before it.
    fn own_words(&self) -> Vec<Heard> {
        let own = (!self.is_of_model).then(|| Heard {
            ts: self.ts.clone(),
            by: self.by.clone(),
            text: shorten(&self.said, MAX_HEARD_LENGTH),
            it: self.it.clone(),
            is_picked: self.is_picked,
        });
        self.heard.iter().cloned().chain(own).collect()
    }

    /// Notes that a language model writes the words from here on, as the steps of a plan.
    pub(in super::super) fn goes_on_in_words_of_model(&mut self) {
        let mut heard = self.own_words();
        heard.drain(..heard.len().saturating_sub(MAX_HEARD));
        self.heard = heard;
        self.is_of_model = true;
    }
}

impl AgentState {
    /// Keeps the words of people behind an open question or card, for messages that continue it.
    pub(in super::super) fn keep_heard(&mut self, heard: Vec<Heard>) {
        let over = heard.len().saturating_sub(MAX_HEARD);
        self.heard = heard.into_iter().skip(over).collect();
    }

    /// Keeps the words of this turn for the answer to a question about it.
    pub(in super::super) fn keep_own_words(&mut self) {
        self.asked_turn = self.turn.number;
        self.keep_heard(self.turn.own_words());
    }
}

/// Returns true if the message continues an open question, a card or a change that was turned down, so that the words
/// behind these ask for the change as well.
fn continues(registry: &Registry, state: &AgentState, context: &Context, change: &Draft) -> bool {
    let is_same = |draft: &Draft| draft.action == change.action;
    let turned_down = state.turned_down.as_ref().map(|one| &one.change);
    let waits = [state.draft.as_ref(), state.on_card.as_ref(), turned_down].into_iter().flatten().any(is_same);
    let was_asked = state.asked_turn != 0 && state.asked_turn + 1 == state.turn.number;
    if !waits && !was_asked {
        return false;
    }
    if registry.book.asks_otherwise(&view::situation(state, context)) {
        return true;
    }
    let said = AskedWords::of(&state.turn.said);
    let is_answer = was_asked || state.draft.as_ref().is_some_and(|draft| draft.asked.is_some() && is_same(draft));
    let is_named = |value: &Value| texts_of(value).iter().any(|text| said.name(text).is_some());
    !said.is_look() && (is_answer || change.params.values().any(is_named))
}

/// Finds the evidence of one change.
struct Search<'a> {
    registry: &'a Registry,
    state: &'a AgentState,
    context: &'a Context,
    change: &'a Draft,
    proposal: &'a Proposal,
}

/// Returns the words of people in which the evidence of a change is looked for: those of the turn, and those that they
/// continue.
fn heard(registry: &Registry, state: &AgentState, context: &Context, change: &Draft) -> Vec<Heard> {
    let mut heard = state.turn.own_words();
    if continues(registry, state, context, change) {
        let earlier = state.heard.iter().filter(|earlier| earlier.by.is_none() || earlier.by == state.turn.by);
        let new: Vec<Heard> = earlier.filter(|earlier| !heard.contains(earlier)).cloned().collect();
        heard.extend(new);
    }
    heard
}

/// Returns the evidence of a change that a language model proposes.
fn of_proposal(
    registry: &Registry,
    state: &AgentState,
    context: &Context,
    change: &Draft,
    proposal: &Proposal,
    heard: &[Heard],
) -> Evidence {
    let search = Search { registry, state, context, change, proposal };
    match registry.plan_action() == Some(change.action.as_str()) {
        true => search.of_plan(heard),
        false => search.evidence(heard),
    }
}

impl Search<'_> {
    fn evidence(&self, heard: &[Heard]) -> Evidence {
        let mut evidence = Evidence::default();
        if let Some((heard, target)) = heard.iter().find_map(|heard| Some((heard, self.as_phrases_read(heard)?))) {
            evidence.kind.push(whole(heard));
            evidence.target.extend(target.then(|| whole(heard)));
        }
        let is_irreversible = self.is_irreversible();
        if evidence.kind.is_empty() && !(is_irreversible && heard.iter().any(|heard| self.is_read_as_another(heard))) {
            evidence.kind.extend(heard.iter().find_map(|heard| self.verb(heard)));
        }
        let mut unnamed = Vec::new();
        if evidence.target.is_empty() {
            (evidence.target, unnamed) = self.targets(heard, is_irreversible);
        }
        let unasked = evidence.kind.is_empty();
        if unasked || !unnamed.is_empty() {
            let read_in = self.source(unnamed.first().or(self.proposal.scope.subjects.first()));
            evidence.suggested = Some(Suggested { unnamed, unasked, read_in });
        }
        evidence
    }

    /// Returns the evidence of a plan that a language model wrote: each of its steps is looked up like a change of its own.
    fn of_plan(&self, heard: &[Heard]) -> Evidence {
        let mut evidence = Evidence { kind: heard.iter().map(whole).collect(), ..Evidence::default() };
        let (mut unnamed, mut unasked): (Vec<String>, bool) = (Vec::new(), false);
        for step in self.change.params.get("steps").and_then(Value::as_array).into_iter().flatten() {
            let step = step.as_str().unwrap_or_default();
            if heard.iter().any(|heard| heard.text.to_lowercase().contains(&step.to_lowercase())) {
                continue; // in the person's own words
            }
            for name in self.registry.names_in(step).into_iter().filter(|name| name.subject) {
                match heard.iter().find_map(|heard| self.name(heard, &name.name, false)) {
                    Some(words) => evidence.target.push(words),
                    None if unnamed.contains(&name.name) => {}
                    None => unnamed.push(name.name),
                }
            }
            let calls = self.registry.calls_of(step);
            let changes = calls.iter().filter(|call| self.registry.actions.contains_key(call.as_str()));
            let read_only = calls.iter().any(|call| self.registry.tools.contains_key(call.as_str()));
            let mut asked =
                changes.map(|action| heard.iter().any(|heard| self.verb_of(heard, action, None).is_some())).peekable();
            unasked |= match asked.peek() {
                Some(_) => !asked.all(|asked| asked),
                None => !read_only && !self.is_said(step, heard),
            };
        }
        if unasked || !unnamed.is_empty() {
            let read_in = self.source(unnamed.first());
            evidence.suggested = Some(Suggested { unnamed, unasked, read_in });
        }
        evidence
    }

    /// Returns true if each longer word of a step stands in a person's words.
    fn is_said(&self, step: &str, heard: &[Heard]) -> bool {
        let long = step.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() > 3);
        let said: String = heard.iter().map(|heard| heard.text.to_lowercase()).collect::<Vec<_>>().join("\n");
        long.map(str::to_lowercase).all(|word| said.contains(&word))
    }

    fn is_irreversible(&self) -> bool {
        let kind = self.registry.actions.get(self.change.action.as_str());
        self.proposal.card.irreversible || kind.is_some_and(|kind| kind.irreversible())
    }

    /// Returns the situation with these words as the message.
    fn situation(&self, heard: &Heard) -> Situation {
        let present = view::situation(self.state, self.context);
        Situation {
            said: heard.text.clone(),
            names: self.registry.names_in(&heard.text),
            last_subject: heard.it.clone(),
            ..present
        }
    }

    /// Returns the requests in these words as the phrases read them, without a model.
    fn requests(&self, heard: &Heard) -> Vec<UserRequest> {
        let situation = self.situation(heard);
        let book = &self.registry.book;
        let steps = book.steps(&situation);
        let all = if steps.is_empty() { vec![heard.text.clone()] } else { steps };
        let read = |said: String| {
            let found = book.understand(&Situation { said, ..situation.clone() });
            (found.confidence >= 0.7).then_some(found.user_request)
        };
        all.into_iter().filter_map(read).collect()
    }

    /// Returns whether the phrases read the same kind of change in these words: true if they also find the same things.
    fn as_phrases_read(&self, heard: &Heard) -> Option<bool> {
        let subjects = &self.proposal.scope.subjects;
        let mut found = None;
        for request in self.requests(heard) {
            let UserRequest::Change { action, params } = request else { continue };
            if action != self.change.action || !self.is_same(&params) {
                continue;
            }
            let texts: Vec<String> = params.values().flat_map(texts_of).collect();
            let given = |name: &String| texts.iter().any(|text| text.eq_ignore_ascii_case(name));
            let is_same_request = self.change.params.iter().all(|(key, value)| params.get(key) == Some(value));
            let names_all = !subjects.is_empty() && subjects.iter().all(given);
            found = Some(found.unwrap_or(false) || is_same_request || names_all);
        }
        found
    }

    /// Returns true if the phrases read only another change in these words.
    fn is_read_as_another(&self, heard: &Heard) -> bool {
        let requests = self.requests(heard);
        let is_other = |request: &UserRequest| match request {
            UserRequest::Change { action, .. } => *action != self.change.action,
            _ => false,
        };
        requests.iter().any(is_other) && requests.iter().all(is_other)
    }

    /// Returns true if the fixed values of a row, or of a reading, are those of the change, as far as they tell one kind of
    /// change from another.
    fn is_same(&self, fixed: &Map<String, Value>) -> bool {
        fixed.iter().all(|(key, fixed)| {
            let canonical = |value: &Value| value.as_str().and_then(|value| self.registry.canonical(key, value));
            match self.change.params.get(key).and_then(canonical) {
                Some(given) => canonical(fixed) == Some(given),
                None => true,
            }
        })
    }

    fn verb(&self, heard: &Heard) -> Option<Words> {
        self.verb_of(heard, &self.change.action, Some(&|fixed: &Map<String, Value>| self.is_same(fixed)))
    }

    fn verb_of(&self, heard: &Heard, action: &str, is_same: Option<IsSame<'_>>) -> Option<Words> {
        let owner = self.registry.owner_of(action).map_or("", |capability| capability.name());
        let said = AskedWords::of(&heard.text);
        let is_same = |fixed: &Map<String, Value>| is_same.is_none_or(|is_same| is_same(fixed));
        let found = self.registry.book.verb_of(action, owner, is_same, &said)?;
        Some(words_in(heard, found))
    }

    /// Returns the words that name what changes, and the names that no words name.
    fn targets(&self, heard: &[Heard], is_exact: bool) -> (Vec<Words>, Vec<String>) {
        let scope = &self.proposal.scope;
        let given: Vec<String> = self.change.params.values().flat_map(texts_of).collect();
        let ids: Vec<&str> =
            scope.targets.iter().filter_map(|target| target.split_once(':')).map(|(_, id)| id).collect();
        let is_given = |name: &String| {
            let is_it = |text: &String| text.eq_ignore_ascii_case(name) || ids.contains(&text.as_str());
            given.iter().any(is_it) || scope.subjects.len() > 1
        };
        let (mut words, mut unnamed) = (Vec::new(), Vec::new());
        // What the call does not name is resolved by code, such as what is loaded.
        for (at, name) in scope.subjects.iter().enumerate().filter(|(_, name)| is_given(name)) {
            let id = ids.get(at).filter(|_| ids.len() == scope.subjects.len());
            let by_id = |heard: &Heard| Some(words_in(heard, AskedWords::of(&heard.text).name(id?)?));
            let named = heard.iter().find_map(|heard| self.name(heard, name, is_exact).or_else(|| by_id(heard)));
            let several =
                || heard.iter().find_map(|heard| Some(words_in(heard, AskedWords::of(&heard.text).quantifier()?)));
            match named.or_else(|| several().filter(|_| !is_exact)) {
                Some(named) => words.push(named),
                None => unnamed.push(name.clone()),
            }
        }
        if words.is_empty() && unnamed.is_empty() {
            let named = |text: &String| heard.iter().find_map(|heard| self.name(heard, text, is_exact));
            match given.iter().find_map(named) {
                Some(named) => words.push(named),
                None if given.is_empty() => words.extend(heard.first().map(whole)),
                None => unnamed.extend(given.into_iter().take(1).map(|text| shorten(&text, 80))),
            }
        }
        words.dedup();
        (words, unnamed)
    }

    /// Returns the words that name this thing: its name, a part of it, or a reference to it.
    fn name(&self, heard: &Heard, name: &str, is_exact: bool) -> Option<Words> {
        let said = AskedWords::of(&heard.text);
        if let Some(found) = said.name(name) {
            return Some(words_in(heard, found));
        }
        let situation = self.situation(heard);
        let resolved = self.registry.book.with_names(&situation);
        if resolved.is_some_and(|resolved| AskedWords::of(&resolved).name(name).is_some()) {
            return Some(Words { means: Some(name.to_owned()), ..whole(heard) });
        }
        if let Some(it) = heard.it.as_deref().filter(|it| it.eq_ignore_ascii_case(name) && self.was_seen(it)) {
            let alone = || (said.len() <= 4 && situation.names.is_empty()).then_some(0..heard.text.len());
            if let Some(found) = said.pointer().or_else(alone) {
                return Some(Words { means: Some(it.to_owned()), ..words_in(heard, found) });
            }
        }
        let part = said.part_of_name(name, &situation.names).filter(|_| !is_exact)?;
        Some(words_in(heard, part))
    }

    /// Returns true if the thread's messages contain this name, so that “it” can mean it for the person.
    fn was_seen(&self, name: &str) -> bool {
        let number = self.state.turn.number;
        let mut before = self.state.conversation.lines.iter().filter(|line| line.turn < number);
        before.any(|line| AskedWords::of(&line.text).name(name).is_some())
    }

    /// Returns the name of what was read in this turn and contains a name.
    fn source(&self, name: Option<&String>) -> Option<String> {
        let name = name?;
        let turn = &self.state.turn;
        turn.reads.iter().find_map(|read| {
            let answer = turn.gathered.get(&read.key)?;
            let subject = self.registry.tools.get(read.tool.as_str())?.subject(&read.arguments, answer)?;
            (subject != *name && answer.to_string().to_lowercase().contains(&name.to_lowercase())).then_some(subject)
        })
    }
}

/// Returns the texts in a value.
fn texts_of(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Number(number) => vec![number.to_string()],
        Value::Array(values) => values.iter().flat_map(texts_of).collect(),
        Value::Object(members) => members.values().flat_map(texts_of).collect(),
        Value::Null | Value::Bool(_) => Vec::new(),
    }
}

fn whole(heard: &Heard) -> Words {
    Words { message: heard.ts.clone(), ..Words::default() }
}

/// Returns the part of a person's words at these bytes. Of a button's words, the place in the message is not known.
fn words_in(heard: &Heard, bytes: std::ops::Range<usize>) -> Words {
    match heard.is_picked {
        true => whole(heard),
        false => words_at(&heard.text, bytes, heard.ts.clone()),
    }
}

fn words_at(text: &str, bytes: std::ops::Range<usize>, message: Option<countersign_core::ids::MessageTs>) -> Words {
    let count = |to: usize| u32::try_from(text[..to].chars().count()).unwrap_or(u32::MAX);
    Words { message, from: count(bytes.start), to: count(bytes.end), means: None }
}
