//! The node that writes the draft: with a language model, or else from a template.

use std::sync::Arc;

use async_trait::async_trait;
use countersign_graph::{
    node::{Context, Node, NodeError, Step},
    store::Usage,
};
use countersign_mail::Mail;
use countersign_model::Purpose;
use serde_json::{Value, json};

use super::{
    super::{
        ask_model::{Question, ask},
        card::name_of,
        deps::Deps,
        lookup::FreeSlot,
        replies,
        rules::{Class, MAX_DRAFT_CHARS, Source, clamped},
        send,
        state::MailState,
        template,
        why::because,
    },
    TOO_LONG, data_of, note_step,
    review::{Review, needs_review},
    update_entry,
};

/// The tone of a draft for a mail that may be spam.
const TONE_FOR_SPAM: &str = "professional";

/// The node that writes the draft.
pub(in super::super) struct Generate(Arc<Deps>);

/// A draft with its source.
#[derive(Default)]
struct Drafted {
    text: String,
    by: Source,
    confidence: Option<f64>,
    usage: Option<Usage>,
    failure: Option<String>,
}

impl Generate {
    /// The name of the node.
    pub(in super::super) const NAME: &'static str = "generate";

    /// Creates the node.
    pub(in super::super) fn new(deps: Arc<Deps>) -> Self {
        Self(deps)
    }

    async fn drafted(&self, state: &MailState, mail: &Mail) -> Drafted {
        let Some(model) = &self.0.writer else {
            return Drafted { text: self.template(state, mail), by: Source::Rules, ..Drafted::default() };
        };
        let failed = |usage, failure: &str| Drafted { usage, failure: Some(failure.to_owned()), ..Drafted::default() };
        let Some(left) = self.0.time_left(state.turn.began) else { return failed(None, TOO_LONG) };
        let question = Question {
            purpose: Purpose::Generate,
            instructions: include_str!("../prompts/generate.md"),
            situation: self.situation(state, mail),
            name: "draft",
            schema: schema(),
            max_tokens: 1_500,
        };
        let answer = match ask(&**model, question, left).await {
            Ok(answer) => answer,
            Err(failure) => return failed(None, &failure),
        };
        let Some(value) = answer.value else {
            return failed(Some(answer.usage), "the language model's answer isn't JSON");
        };
        let text = value["reply"].as_str().unwrap_or_default().replace("\r\n", "\n").trim().to_owned();
        let failure = match text.chars().count() {
            0 => Some("the language model wrote nothing".to_owned()),
            length if length > MAX_DRAFT_CHARS => {
                Some(format!("the draft has {length} characters, more than {MAX_DRAFT_CHARS}"))
            }
            _ => None,
        };
        let text = if failure.is_some() { String::new() } else { text };
        let confidence = value["confidence"].as_f64().map(clamped);
        Drafted { text, by: Source::Model, confidence, usage: Some(answer.usage), failure }
    }

    /// Returns to the last draft: to its card if that is open, or else to a new card.
    async fn with_last_draft(&self, state: MailState, context: &Context, failure: &str) -> Step<MailState> {
        let Some(shown) = send::on_card(&context.open) else {
            return Step::go(state, Review::NAME).say(replies::no_other_draft(failure, false));
        };
        let (now, why) = (context.now, because(&shown.about.why));
        update_entry(&self.0, &state, |entry| {
            needs_review(entry, now);
            entry.why = Some(why.clone()).filter(|why| !why.is_empty());
            true
        })
        .await;
        Step::end(state).say(replies::no_other_draft(failure, true))
    }

    fn situation(&self, state: &MailState, mail: &Mail) -> Value {
        let class = state.class();
        let mut situation = json!({
            "mail": data_of(mail),
            "class": class,
            "tone": class.tone().unwrap_or(TONE_FOR_SPAM),
            "context": state.context,
            "contact": state.contact,
            "tool_results": state.tool_results,
            "today": self.0.clock.now().to_string(),
            "time_zone": self.0.time_zone.iana_name(),
            "we_are": self.0.account.address().to_string(),
        });
        if let Some(instruction) = &state.turn.instruction {
            situation["earlier_draft"] = json!(state.draft_response);
            situation["colleague_asks"] = json!(instruction);
        }
        situation
    }

    fn template(&self, state: &MailState, mail: &Mail) -> String {
        let slots = state.tool_results.get("check_calendar").map(|result| result["free_slots"].clone());
        let slots: Vec<FreeSlot> = slots.and_then(|slots| serde_json::from_value(slots).ok()).unwrap_or_default();
        template::draft(mail, state.class(), &slots, &name_of(self.0.account.address()))
    }
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "reply": { "type": "string", "description": "The whole reply as plain text, without a subject." },
            "confidence": { "type": "number", "description": "From 0 to 1: how sure you are that it can be sent as it is." },
        },
        "required": ["reply", "confidence"],
        "additionalProperties": false,
    })
}

#[async_trait]
impl Node<MailState> for Generate {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn status(&self) -> Option<&'static str> {
        Some("Writing a draft…")
    }

    fn targets(&self) -> &'static [&'static str] {
        &[Review::NAME]
    }

    async fn run(&self, mut state: MailState, context: &Context) -> Result<Step<MailState>, NodeError> {
        let Some(mail) = state.email.clone() else {
            return Ok(Step::end(state).say(replies::unreadable()));
        };
        let is_another = state.turn.instruction.is_some();
        let Drafted { text, by, confidence, usage, failure } = self.drafted(&state, &mail).await;
        if let (Some(failure), true) = (&failure, is_another && !state.draft_response.trim().is_empty()) {
            // The draft that is there is better than a template.
            state.note_failure(Self::NAME, failure);
            note_step(&mut state, &self.0, context, Self::NAME, json!({ "error": failure }));
            return Ok(self.with_last_draft(state, context, failure).await.cost(usage));
        }
        state.draft_response = text;
        state.drafted_by = by;
        state.generation_confidence = confidence;
        let tone = state.class().tone().unwrap_or(TONE_FOR_SPAM);
        let length = state.draft_response.chars().count();
        let mut facts = json!({ "tone": tone, "generation_confidence": confidence, "response_length": length });
        if let Some(failure) = failure {
            state.note_failure(Self::NAME, &failure);
            facts["error"] = json!(failure);
            // A person gets something to start from; a template is never sent without one.
            state.draft_response = self.template(&state, &mail);
            state.drafted_by = Source::Rules;
        }
        if state.class() == Class::Spam {
            state.generation_confidence = None;
        }
        note_step(&mut state, &self.0, context, Self::NAME, facts);
        Ok(Step::go(state, Review::NAME).cost(usage))
    }
}
