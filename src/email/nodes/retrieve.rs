//! The node that looks up similar mails, the sender's contact and events.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_core::cause::chain;
use countersign_graph::{
    node::{Context, Node, NodeError, Step},
    store::Usage,
};
use futures_util::future::join;
use serde_json::json;

use super::{
    super::{
        deps::Deps,
        lookup::{About, Found},
        rules::{Class, cut},
        state::{MAX_TEXT_CHARS, MailState},
    },
    TOO_LONG,
    decide::Decide,
    note_step,
};

/// The maximum duration of the lookup.
const MAX_DURATION: Duration = Duration::from_secs(20);

/// The maximum number of texts that are kept.
const MAX_TEXTS: usize = 12;

/// The node that looks up context.
pub(in super::super) struct Retrieve(Arc<Deps>);

impl Retrieve {
    /// The name of the node.
    pub(in super::super) const NAME: &'static str = "retrieve";

    /// Creates the node.
    pub(in super::super) fn new(deps: Arc<Deps>) -> Self {
        Self(deps)
    }

    /// Remembers the mail for later ones. A failure is logged: the mail is answered without. Returns the usage of models.
    async fn remember(&self, state: &MailState) -> Option<Usage> {
        let mail = state.email.as_ref().filter(|_| state.class() != Class::Spam)?; // spam is no example for others
        match tokio::time::timeout(MAX_DURATION, self.0.lookup.remember(mail, None)).await {
            Ok(Ok(usage)) => return usage,
            Ok(Err(error)) => tracing::warn!(error = chain(&error), "Cannot remember a mail for similar ones"),
            Err(_) => tracing::warn!("A mail was not remembered for similar ones in time"),
        }
        None
    }

    async fn found(&self, state: &MailState, context: &Context) -> Found {
        let failed = |what: &str| Found { failures: vec![what.to_owned()], ..Found::default() };
        let (Some(mail), Some(left)) = (&state.email, self.0.time_left(state.turn.began)) else {
            return failed(TOO_LONG);
        };
        let about = About { mail, with_events: state.class() == Class::MeetingRequest, now: context.now };
        let found = tokio::time::timeout(left.min(MAX_DURATION), self.0.lookup.gather(&about)).await;
        found.unwrap_or_else(|_| failed("the lookup took too long"))
    }
}

#[async_trait]
impl Node<MailState> for Retrieve {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn status(&self) -> Option<&'static str> {
        Some("Looking up similar emails and the sender…")
    }

    fn targets(&self) -> &'static [&'static str] {
        &[Decide::NAME]
    }

    async fn run(&self, mut state: MailState, context: &Context) -> Result<Step<MailState>, NodeError> {
        let (found, remembered) = join(self.found(&state, context), self.remember(&state)).await;
        let Found { context: texts, shown, contact, failures, usage } = found;
        let texts = texts.into_iter().filter(|text| !text.trim().is_empty());
        state.context = texts.map(|text| cut(&text, MAX_TEXT_CHARS)).take(MAX_TEXTS).collect();
        state.shown_context = shown.into_iter().take(MAX_TEXTS).collect();
        state.know_contact(contact);
        let mut facts = json!({ "context_count": state.context.len() });
        if !failures.is_empty() {
            let failures = failures.join("; ");
            state.note_error(Self::NAME, &failures); // the other sources count
            facts["error"] = json!(failures);
        }
        note_step(&mut state, &self.0, context, Self::NAME, facts);
        Ok(Step::go(state, Decide::NAME).cost(sum(usage, remembered)))
    }
}

/// Returns the usage of two calls of the same model.
fn sum(one: Option<Usage>, other: Option<Usage>) -> Option<Usage> {
    match (one, other) {
        (Some(one), Some(other)) => Some(Usage {
            calls: one.calls + other.calls,
            input_tokens: one.input_tokens + other.input_tokens,
            cached_tokens: one.cached_tokens + other.cached_tokens,
            output_tokens: one.output_tokens + other.output_tokens,
            nano_usd: one.nano_usd.zip(other.nano_usd).map(|(one, other)| one + other),
            ..one
        }),
        (one, other) => one.or(other),
    }
}
