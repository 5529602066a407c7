//! The node that decides who decides: it makes the card, and lets the operator's setting decide if the rules ask for no
//! person.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use countersign_core::{
    cause::chain,
    clock::Timestamp,
    ids::UserId,
    reply::{Reply, Text},
};
use countersign_graph::{
    action::{ActionKind, Evidence, PrepareError, Refusal},
    node::{Ask, Context, Node, NodeError, Step},
};
use countersign_mail::Mail;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::{
    super::{
        automatic::marked,
        card::{About, digest_of, name_of},
        deps::Deps,
        heading::{self, HeadingOrder},
        lookup::FreeSlot,
        register::{Entry, MailStatus},
        replies,
        rules::{Facts, Source, Tool, Used, cut, reasons},
        send::{self, SendParameters},
        state::{Cause, MailState},
        template,
        why::{Why, because},
    },
    close::Close,
    note_step, update_entry,
};

/// The number of attempts to prepare a card before the run ends.
const MAX_ATTEMPTS: u32 = 3;

/// The maximum length of a failure on a card, in characters.
const MAX_LOOKED_UP_CHARS: usize = 300;

/// The node that asks.
pub(in super::super) struct Review {
    deps: Arc<Deps>,
    kinds: BTreeMap<&'static str, Arc<dyn ActionKind>>,
}

/// The change that is proposed.
struct Wanted {
    action: String,
    parameters: Value,
    /// The reasons why a person decides; none for an answer that the setting may decide.
    why: Vec<Why>,
}

impl Review {
    /// The name of the node.
    pub(in super::super) const NAME: &'static str = "review";

    /// Creates the node with the kinds of action that it may propose.
    pub(in super::super) fn new(deps: Arc<Deps>, kinds: BTreeMap<&'static str, Arc<dyn ActionKind>>) -> Self {
        Self { deps, kinds }
    }

    /// Returns the automatic answers sent today; `None` if that cannot be read.
    async fn used(&self, mail: &Mail, context: &Context) -> Option<Used> {
        let address = mail.sender().map_or("", |sender| &sender.address);
        let used = self.deps.automatic.used(address, context.now).await;
        used.inspect_err(|error| tracing::warn!(error = chain(error), "Cannot count the automatic answers")).ok()
    }

    /// Returns true if a newer mail came in the conversation, or if that is not known.
    async fn has_newer(&self, mail: &Mail) -> bool {
        let entry = self.deps.book.entry(&mail.id).await;
        let entry = entry.inspect_err(|error| tracing::warn!(error = chain(error), "Cannot read the list of mails"));
        entry.map_or(true, |entry| entry.is_some_and(|entry| entry.newer.is_some()))
    }

    async fn wanted(&self, state: &mut MailState, mail: &Mail, context: &Context) -> Wanted {
        if let Cause::Request { action, parameters } = &state.turn.cause {
            return Wanted { action: action.clone(), parameters: parameters.clone(), why: vec![Why::Asked] };
        }
        let facts = Facts {
            mail: Some(mail),
            class: state.class(),
            confidence: state.confidence,
            classified_by: state.classified_by,
            draft: &state.draft_response,
            drafted_by: state.drafted_by,
            failures: &state.failures,
            context: &state.context,
            is_asked: state.turn.by.is_some(),
            is_from_us: mail.sender().is_some_and(|sender| self.deps.account.is_us(&sender.address)),
            has_newer: self.has_newer(mail).await,
            used: self.used(mail, context).await,
        };
        let why = reasons(&facts, &self.deps.settings);
        if state.draft_response.trim().is_empty() {
            let signature = name_of(self.deps.account.address());
            state.draft_response = template::draft(mail, state.class(), &[], &signature);
            state.drafted_by = Source::Rules;
        }
        let about = About {
            class: state.classification,
            confidence: state.confidence,
            classified_by: state.classified_by,
            drafted_by: state.drafted_by,
            looked_up: looked_up(state, mail),
            why: why.clone(),
            draft: Some(digest_of(&state.draft_response)),
        };
        let mut parameters = json!({ "mail": mail.id, "text": state.draft_response, "about": about });
        if let Some(SendParameters { to, .. }) = send::on_card(&context.open) {
            parameters["to"] = json!(to); // which a person may have chosen
        }
        Wanted { action: send::NAME.to_owned(), parameters, why }
    }

    /// Notes in the contacts that a mail of this sender arrived. It follows the lookup, so that a stranger does not look
    /// like a contact. A failure is logged; the answer does not need it.
    async fn note_sender(&self, state: &MailState, mail: &Mail) {
        if let (Some(sender), None, Cause::Mail | Cause::Stuck) = (mail.sender(), &mail.automatic, &state.turn.cause)
            && !self.deps.account.is_us(&sender.address)
            && let Err(error) = self.deps.lookup.seen(sender, mail.received_at).await
        {
            tracing::warn!(error = chain(&error), "Cannot note the sender of a mail");
        }
    }

    /// Ends the run without a card. The mail waits for a person.
    async fn without_card(&self, mut state: MailState, context: &Context, reply: Reply, why: &str) -> Step<MailState> {
        state.note_failure(Self::NAME, why);
        state.requires_approval = true;
        let facts = json!({ "requires_approval": true, "reasoning": why, "error": why });
        note_step(&mut state, &self.deps, context, Self::NAME, facts);
        let (now, steps, asks_for_spam) = (context.now, state.steps.clone(), state.asks_for_spam());
        update_entry(&self.deps, &state, |entry| {
            entry.steps.clone_from(&steps);
            if !asks_for_spam {
                needs_review(entry, now);
            }
            true
        })
        .await;
        let reply = match (&state.turn.cause, &state.email) {
            (Cause::Mail | Cause::Stuck, Some(mail)) => replies::with_mail(reply, mail),
            _ => reply, // the thread has shown it
        };
        let mail = state.email.as_ref().map(|mail| mail.id.clone());
        let step = Step::end(state).say(reply);
        match mail {
            Some(mail) => step.post(heading::CHANNEL, HeadingOrder::body(&mail)),
            None => step,
        }
    }
}

/// Makes an entry wait for a person, from any status from which that is legal.
pub(super) fn needs_review(entry: &mut Entry, now: Timestamp) {
    if matches!(entry.status, MailStatus::Pending | MailStatus::Rejected) {
        entry.move_to(MailStatus::Processing, now);
    }
    entry.move_to(MailStatus::NeedsReview, now);
}

/// Returns what was looked up, in words for people.
fn looked_up(state: &MailState, mail: &Mail) -> Vec<Text> {
    let mut found = state.shown_context.clone();
    if let Some(contact) = state.shown_contact.clone() {
        found.push(Text::from("contact: ").join(contact));
    }
    for (tool, result) in &state.tool_results {
        if let Some(error) = result["error"].as_str() {
            let source = Tool::parse(tool).and_then(Tool::source).unwrap_or(tool);
            found.push(Text::from(format!("{source}: {}", cut(error, MAX_LOOKED_UP_CHARS).trim_end_matches('.'))));
        } else if let Ok(slots) = Vec::<FreeSlot>::deserialize(&result["free_slots"]) {
            let times: Vec<Text> = template::offered(mail, &slots).into_iter().map(time_of).collect();
            found.push(match times.is_empty() {
                true => "no free times".into(),
                false => Text::from("free times: ").join(Text::listed(times, "and")),
            });
        }
    }
    found
}

/// Returns a free time from its start to its end, shown in the time zone of each reader.
fn time_of(slot: &FreeSlot) -> Text {
    let shown = |at: &str| match at.parse::<jiff::Timestamp>() {
        Ok(at) => Text::new().moment(Timestamp(at.as_millisecond())),
        Err(_) => at.into(),
    };
    shown(&slot.start).plain(" to ").join(shown(&slot.end))
}

#[async_trait]
impl Node<MailState> for Review {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn targets(&self) -> &'static [&'static str] {
        &[Close::NAME]
    }

    async fn run(&self, mut state: MailState, context: &Context) -> Result<Step<MailState>, NodeError> {
        let Some(mail) = state.email.clone() else {
            return Ok(Step::end(state).say(replies::no_mail()));
        };
        let Wanted { action, parameters, why } = self.wanted(&mut state, &mail, context).await;
        let Some(kind) = self.kinds.get(action.as_str()) else {
            return Ok(self.without_card(state, context, replies::not_an_answer(), "there is no such action").await);
        };
        let mut proposal = match kind.prepare(&parameters, None).await {
            Ok(proposal) => proposal,
            Err(PrepareError::Unavailable { reply, .. }) if context.attempt + 1 < MAX_ATTEMPTS => {
                return Err(NodeError::Transient { reply, source: "the card cannot be made now".into() });
            }
            Err(PrepareError::Unavailable { reply, .. } | PrepareError::Answered { reply, .. }) => {
                return Ok(self.without_card(state, context, reply, "the card could not be made").await);
            }
            Err(PrepareError::Refusal(Refusal::Refused { reply, .. })) => {
                let reply = replies::cannot_be_drafted(&reply);
                return Ok(self.without_card(state, context, reply, "no reply can be sent to this email").await);
            }
            Err(PrepareError::Refusal(Refusal::Missing(_))) => {
                return Ok(self.without_card(state, context, replies::not_an_answer(), "the draft is empty").await);
            }
        };
        let is_automatic = why.is_empty() && action == send::NAME;
        if is_automatic {
            proposal.scope = marked(proposal.scope, state.class(), state.confidence);
        }
        if let Some(text) = proposal.parameters["text"].as_str() {
            state.draft_response = text.to_owned();
        }
        state.requires_approval = !is_automatic;
        state.final_response = is_automatic.then(|| state.draft_response.clone());
        let reasoning = because(&why);
        let facts = json!({ "requires_approval": !is_automatic, "reasoning": reasoning });
        note_step(&mut state, &self.deps, context, Self::NAME, facts);
        if !is_automatic {
            note_step(&mut state, &self.deps, context, "human_queue", json!({ "action": "queued_for_review" }));
        }
        let (now, steps, asks_for_spam) = (context.now, state.steps.clone(), state.asks_for_spam());
        state.is_spam &= asks_for_spam;
        update_entry(&self.deps, &state, |entry| {
            entry.steps.clone_from(&steps);
            if !is_automatic && !asks_for_spam {
                needs_review(entry, now);
                entry.why = Some(reasoning.clone()).filter(|why| !why.is_empty());
            }
            true
        })
        .await;
        self.note_sender(&state, &mail).await;
        let requested_by = requester(&state, &self.deps);
        let evidence = Evidence::default(); // it comes from the mail, or from a request that the talk has checked
        let newest = context.open.iter().max_by_key(|open| open.requested_at);
        let replaces = newest.map(|open| open.id.clone());
        let step = Step::ask(state, Ask { action, proposal, requested_by, evidence, replaces, then: Close::NAME });
        Ok(match is_automatic {
            true => step, // the end says what became of it
            false => step.post(heading::CHANNEL, HeadingOrder::body(&mail.id)),
        })
    }
}

/// Returns the person who asked for the draft, or else the bot.
fn requester(state: &MailState, deps: &Deps) -> UserId {
    state.turn.by.clone().unwrap_or_else(|| deps.us.clone())
}
