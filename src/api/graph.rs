//! The graph of the threads of requests: a request arrives, its card is posted, and nothing is left to do after the decision.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use countersign_core::{
    clock::Timestamp,
    ids::UserId,
    reply::{Reply, Text},
};
use countersign_graph::{
    action::{ActionKind, ActionRecord, Evidence, Outcome, PrepareError, Verdict},
    conversing::Conversing,
    definition::{DefinitionError, Graph},
    node::{Ask, Context, Listener, Node, NodeError, Said, State, Step},
    standing::{Spent, StandingApprovals},
    store::{ActionFollowUp, External},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    outside_change::{NAME, OutsideChangeKind},
    register::Requests,
};

/// The name of the graph.
pub const API: &str = "api";

/// The name of the source of the event with which a thread begins.
pub const SOURCE: &str = "api";

/// The memory of a thread: its request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ApiState {
    /// The id of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// True if the turn answers a person.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_said: bool,
}

impl State for ApiState {
    fn begin_turn(&mut self, _: &Said) {
        self.is_said = true;
    }

    fn begin_with(&mut self, arrived: &External, _: Timestamp) -> bool {
        let id = arrived.body()["id"].as_str().filter(|_| arrived.source() == SOURCE && self.id.is_none());
        let Some(id) = id.map(str::to_owned) else { return false };
        (self.id, self.is_said) = (Some(id), false);
        true
    }

    fn suspend(&self) -> Value {
        json!({ "is_said": self.is_said })
    }

    fn resume(&mut self, turn: Value) -> Result<(), serde_json::Error> {
        self.is_said = serde_json::from_value(turn["is_said"].clone())?;
        Ok(())
    }

    fn superseded(&mut self, _: &ActionRecord, _: Timestamp) {}
}

impl Conversing for ApiState {}

/// Returns the kinds of action of the graph.
pub fn actions() -> BTreeMap<&'static str, Arc<dyn ActionKind>> {
    [(NAME, Arc::new(OutsideChangeKind) as Arc<dyn ActionKind>)].into()
}

/// Builds the graph.
///
/// # Errors
///
/// Fails if the nodes do not fit together, which is a bug.
pub fn api_graph(requests: Requests) -> Result<Graph<ApiState>, DefinitionError> {
    Graph::builder(API, Begin::NAME, ApiListener).node(Begin(requests)).node(Ended).build()
}

/// The node that posts the card, or answers a person.
struct Begin(Requests);

impl Begin {
    const NAME: &'static str = "begin";
}

#[async_trait]
impl Node<ApiState> for Begin {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn targets(&self) -> &'static [&'static str] {
        &[Ended::NAME]
    }

    async fn run(&self, state: ApiState, _: &Context) -> Result<Step<ApiState>, NodeError> {
        if state.is_said {
            let reply = Reply::text("A program asked for this, so only the buttons on the card count here.");
            return Ok(Step::end(state).say(reply.hint("For anything else, ask me in another thread.")));
        }
        let unreadable = || Reply::text("I can't read this request now, so it has no card.");
        let transient = |source: String| NodeError::Transient { reply: unreadable(), source: source.into() };
        let Some(id) = state.id.clone() else { return Ok(Step::end(state)) };
        let entry = self.0.entry(&id).await.map_err(|error| transient(error.to_string()))?;
        let Some(entry) = entry else { return Ok(Step::end(state).say(unreadable())) };
        let parameters = serde_json::to_value(entry.as_change()).map_err(|error| transient(error.to_string()))?;
        let proposal = OutsideChangeKind.prepare(&parameters, None).await;
        let proposal = match proposal {
            Ok(proposal) => proposal,
            Err(PrepareError::Refusal(_) | PrepareError::Answered { .. } | PrepareError::Unavailable { .. }) => {
                return Ok(Step::end(state).say(unreadable()));
            }
        };
        let (action, requested_by) = (NAME.to_owned(), UserId::of_key(&entry.key));
        let evidence = Evidence::default(); // a program gave the change as data
        Ok(Step::ask(state, Ask { action, proposal, requested_by, evidence, replaces: None, then: Ended::NAME }))
    }
}

/// The node after the end of the change. The card says everything.
struct Ended;

impl Ended {
    const NAME: &'static str = "ended";
}

#[async_trait]
impl Node<ApiState> for Ended {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn targets(&self) -> &'static [&'static str] {
        &[]
    }

    async fn run(&self, state: ApiState, _: &Context) -> Result<Step<ApiState>, NodeError> {
        Ok(Step::end(state))
    }
}

/// The listener of the graph.
struct ApiListener;

impl Listener<ApiState> for ApiListener {
    fn is_meant(&self, _: &ApiState, _: &UserId, _: &str, _: &[ActionRecord]) -> bool {
        false // people talk to each other about the request
    }

    fn heard(
        &self,
        _: &mut ApiState,
        record: &ActionRecord,
        follow_up: ActionFollowUp,
        by: &UserId,
        _: Timestamp,
    ) -> Option<Reply> {
        if follow_up == ActionFollowUp::Explained {
            let reason = record.decisions.iter().rev().find_map(|decision| match &decision.verdict {
                Verdict::Rejected { reason } => reason.as_deref(),
                _ => None,
            });
            let given = Text::from("Reason given by ").person(by.clone()).plain(": “");
            return reason.map(|reason| Reply::text(given.plain(reason).plain("”")));
        }
        let outcome = record.outcome.as_ref().map(Outcome::summary).cloned().unwrap_or_default();
        Some(Reply::text(Text::new().bold(record.act()).plain(": ").join(outcome)))
    }
}

/// Nothing that a program asks for is allowed in advance.
#[derive(Clone, Copy, Debug)]
pub struct NothingInAdvance;

#[async_trait]
impl StandingApprovals for NothingInAdvance {
    async fn spend(&self, _: &ActionRecord) -> Spent {
        Spent::Nothing { why: None }
    }
}
