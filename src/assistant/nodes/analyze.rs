//! What does the person want? One model call; no tool that reads.

use async_trait::async_trait;

use super::{
    super::{
        exchange,
        mind::{Bill, Mind},
        state::{AgentState, Phase},
        tools, view,
    },
    clarify::Clarify,
    gather::Gather,
    respond::Respond,
};
use crate::{
    capabilities::Registry,
    graph::node::{Context, Node, NodeError, Step},
    model::{Purpose, Response, ToolChoice},
    understanding::{
        self,
        situation::{Analysis, Capability, IntentType},
    },
};

/// Below this the person is asked.
const SURE: f64 = 0.7;
/// How often a model may try to say it in a way that can be read.
const TRIES: usize = 2;

/// The first node of every turn.
pub(in super::super) struct Analyze {
    mind: Mind,
    registry: Registry,
}

impl Analyze {
    /// Its name.
    pub(in super::super) const NAME: &'static str = "analyze";

    /// The node.
    pub(in super::super) fn new(mind: Mind, registry: Registry) -> Self {
        Self { mind, registry }
    }

    /// Finds the names in the message, where they matter to what it means. They are read where they are old.
    async fn find_names(&self, state: &mut AgentState, context: &Context) {
        state.turn.names.clear();
        if understanding::wants_names(&view::situation(state, context)) {
            self.registry.refresh_names().await;
            state.turn.names = self.registry.names_in(&state.turn.said);
        }
    }

    async fn analysis(
        &self,
        state: &mut AgentState,
        context: &Context,
        bill: &mut Bill,
    ) -> Result<Analysis, NodeError> {
        let choice = ToolChoice::Only(tools::ANALYZE);
        let mut request = view::request(Purpose::Analyze, state, context, tools::analysis(), choice);
        for _ in 0..TRIES {
            let response = self.mind.ask(state, bill, &request).await?;
            match read(&response) {
                Ok(analysis) => return Ok(analysis),
                Err(mistake) => {
                    let calls = exchange::calls(&response);
                    if calls.is_empty() {
                        break; // it was told to call and did not: telling it again costs as much and helps less
                    }
                    let results = calls.iter().map(|call| exchange::result(call, Err(mistake.clone()))).collect();
                    exchange::append(&mut request.exchange, response, results);
                }
            }
        }
        self.mind.give_up(state);
        request.exchange.clear();
        let response = self.mind.ask(state, bill, &request).await?;
        Ok(read(&response).unwrap_or_else(|mistake| Analysis {
            intent_type: IntentType::DirectAnswer,
            confidence: 0.0,
            user_request_summary: state.turn.said.clone(),
            reasoning: mistake,
            ..Analysis::default()
        }))
    }
}

/// The first readable analysis in what a model said.
fn read(response: &Response) -> Result<Analysis, String> {
    let [spec] = &*tools::analysis() else { return Err(format!("call `{}`", tools::ANALYZE)) };
    let mut mistake = format!("call `{}`", tools::ANALYZE);
    for call in exchange::calls(response) {
        if call.name != tools::ANALYZE {
            mistake = format!("there is no tool `{}` here; call `{}`", call.name, tools::ANALYZE);
            continue;
        }
        match exchange::parsed::<Analysis>(&call.input, &spec.input_schema) {
            Ok(analysis) => return Ok(analysis),
            Err(why) => mistake = why,
        }
    }
    Err(mistake)
}

#[async_trait]
impl Node<AgentState> for Analyze {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn status(&self) -> Option<&'static str> {
        Some("Reading your message…")
    }

    fn targets(&self) -> &'static [&'static str] {
        &[Self::NAME, Clarify::NAME, Gather::NAME, Respond::NAME]
    }

    async fn run(&self, mut state: AgentState, context: &Context) -> Result<Step<AgentState>, NodeError> {
        state.turn.phase = Phase::Analyzing;
        if state.turn.wished {
            state.turn.analysis = Some(Analysis::of_step(&state.turn.said));
            return Ok(Step::go(state, Gather::NAME));
        }
        self.find_names(&mut state, context).await;
        let situation = view::situation(&state, context);
        if understanding::without_a_wish(&situation).is_some() {
            state.turn.analysis = Some(Analysis {
                confidence: 1.0,
                capability: understanding::capability(&situation),
                user_request_summary: state.turn.said.clone(),
                ..Analysis::default()
            });
            return Ok(Step::go(state, Respond::NAME));
        }
        let mut bill = Bill::default();
        let mut analysis = match state.plan() {
            // A step is a whole request: that it is one was found out with the message.
            Some(_) if self.mind.finds_words(&state) => Analysis::of_step(&state.turn.said),
            _ => self.analysis(&mut state, context, &mut bill).await?,
        };
        let steps = std::mem::take(&mut analysis.steps);
        if state.plan().is_none() && steps.len() > 1 {
            state.begin_plan(&steps);
            return Ok(Step::go(state, Self::NAME).cost(bill.total()));
        }
        let situation = view::situation(&state, context);
        analysis.capability = analysis.capability.or_else(|| understanding::capability(&situation));
        let next = match analysis.intent_type {
            _ if analysis.capability == Some(Capability::Unsupported) => Respond::NAME,
            _ if analysis.confidence < SURE => Clarify::NAME,
            IntentType::DirectAnswer => Respond::NAME,
            IntentType::NeedsInfo => Gather::NAME,
        };
        state.turn.analysis = Some(analysis);
        Ok(Step::go(state, next).cost(bill.total()))
    }
}
