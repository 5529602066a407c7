//! The node that classifies the mail.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_graph::{
    node::{Context, Node, NodeError, Step},
    store::Usage,
};
use countersign_mail::{Handled, Mail};
use countersign_model::{Model, Purpose};
use serde_json::{Value, json};

use super::{
    super::{
        ask_model::{Question, ask},
        deps::Deps,
        heading::{self, HeadingOrder},
        keywords,
        labels::{self, LabelOrder},
        replies,
        rules::{Class, Source, clamped, cut, is_sure_spam},
        state::MailState,
    },
    TOO_LONG, data_of, note_step,
    retrieve::Retrieve,
    update_entry,
};

/// The confidence of a class that could not be read from the answer.
const UNREADABLE: f64 = 0.5;

/// The maximum length of a reason, in characters.
const MAX_REASONING_CHARS: usize = 300;

/// The node that classifies.
pub(in super::super) struct Classify(Arc<Deps>);

/// A class with its source.
#[derive(Debug)]
pub struct Classified {
    /// The class.
    pub class: Class,
    /// The confidence, from 0 to 1.
    pub confidence: f64,
    /// The source.
    pub by: Source,
    /// The reason.
    pub reasoning: String,
    /// The usage of the model.
    pub usage: Option<Usage>,
    /// The reason why there is no class, if there is none.
    pub failure: Option<String>,
}

impl Classified {
    /// A mail that could not be classified: it is answered by a person.
    fn failed(failure: String) -> Self {
        let (class, by) = (Class::Other, Source::Nothing);
        Self { class, confidence: 0.0, by, reasoning: String::new(), usage: None, failure: Some(failure) }
    }
}

impl Classify {
    /// The name of the node.
    pub(in super::super) const NAME: &'static str = "classify";

    /// Creates the node.
    pub(in super::super) fn new(deps: Arc<Deps>) -> Self {
        Self(deps)
    }

    async fn classified(&self, state: &MailState, mail: &Mail) -> Classified {
        let classifier = self.0.classifier.as_deref();
        match (classifier, self.0.time_left(state.turn.began)) {
            (Some(_), None) => Classified::failed(TOO_LONG.to_owned()),
            (_, left) => classify(classifier, mail, left.unwrap_or_default()).await,
        }
    }
}

/// Classifies a mail by a model, which has to answer within this time, or else by its keywords.
pub async fn classify(classifier: Option<&dyn Model>, mail: &Mail, within: Duration) -> Classified {
    let Some(model) = classifier else {
        let (class, confidence, reasoning) = keywords::classify(mail);
        let (by, reasoning) = (Source::Rules, reasoning.to_owned());
        return Classified { class, confidence, by, reasoning, usage: None, failure: None };
    };
    let question = Question {
        purpose: Purpose::Classify,
        instructions: include_str!("../prompts/classify.md"),
        situation: json!({ "mail": data_of(mail), "is_answer_to_us": !mail.references.is_empty() }),
        name: "classification",
        schema: schema(),
        max_tokens: 300,
    };
    let answer = match ask(model, question, within).await {
        Ok(answer) => answer,
        Err(failure) => return Classified::failed(failure),
    };
    let usage = Some(answer.usage);
    let Some(value) = answer.value else {
        let failure = Some("the language model's answer isn't JSON".to_owned());
        let (class, confidence, by) = (Class::Other, UNREADABLE, Source::Model);
        return Classified { class, confidence, by, reasoning: String::new(), usage, failure };
    };
    Classified {
        class: Class::parse(value["classification"].as_str().unwrap_or_default()),
        confidence: clamped(value["confidence"].as_f64().unwrap_or(0.0)),
        by: Source::Model,
        reasoning: cut(value["reasoning"].as_str().unwrap_or_default(), MAX_REASONING_CHARS),
        usage,
        failure: None,
    }
}

fn schema() -> Value {
    let labels = Class::ALL.map(Class::as_str);
    json!({
        "type": "object",
        "properties": {
            "classification": { "type": "string", "enum": labels },
            "confidence": { "type": "number", "description": "From 0 to 1." },
            "reasoning": { "type": "string", "description": "One short sentence." },
        },
        "required": ["classification", "confidence", "reasoning"],
        "additionalProperties": false,
    })
}

#[async_trait]
impl Node<MailState> for Classify {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn status(&self) -> Option<&'static str> {
        Some("Classifying the email…")
    }

    fn targets(&self) -> &'static [&'static str] {
        &[Retrieve::NAME]
    }

    async fn run(&self, mut state: MailState, context: &Context) -> Result<Step<MailState>, NodeError> {
        let Some(mail) = state.email.clone() else {
            return Ok(Step::end(state).say(replies::unreadable()));
        };
        let Classified { class, confidence, by, reasoning, usage, failure } = self.classified(&state, &mail).await;
        let mut facts = json!({ "classification": class, "confidence": confidence, "reasoning": reasoning });
        if let Some(failure) = &failure {
            state.note_failure(Self::NAME, failure);
            facts["error"] = json!(failure);
        }
        metrics::counter!("countersign_mail_classified_total", "class" => class.as_str()).increment(1);
        (state.classification, state.confidence, state.classified_by) = (Some(class), confidence, by);
        state.reasoning = reasoning;
        note_step(&mut state, &self.0, context, Self::NAME, facts);
        let is_spam = is_sure_spam(class, confidence, &self.0.settings) && by == Source::Model && failure.is_none();
        let (now, steps) = (context.now, state.steps.clone());
        update_entry(&self.0, &state, |entry| {
            (entry.class, entry.confidence) = (Some(class), confidence);
            entry.steps.clone_from(&steps);
            if is_spam {
                entry.close_as_spam(now);
            }
            true
        })
        .await;
        if is_spam {
            let label = LabelOrder { mail: mail.id.clone(), handled: Handled::Spam };
            let step = Step::end(state).say(replies::sure_spam(confidence, &mail)).cost(usage);
            let step = step.post(labels::CHANNEL, label.into_body());
            return Ok(step.post(heading::CHANNEL, HeadingOrder::body(&mail.id)));
        }
        let has_writer = self.0.writer.is_some();
        let reply = replies::classified_as(class, confidence, by, has_writer);
        Ok(Step::go(state, Retrieve::NAME).say(reply).cost(usage))
    }
}
