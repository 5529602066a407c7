//! The chat graph of the assistant: from a message to an answer or a card.
//!
//! ```text
//! analyze ─┬─► clarify ─► end              not sure what is meant: one question, with buttons
//!          ├─► respond ─► end              nothing to look up
//!          └─► gather ◄─┐                  the calls are done; more calls, one round at a time
//!                 ├─────┘
//!                 ├─► respond ─► end       the facts are the answer, or something is missing
//!                 └─► confirm ═ a person ═► (the engine performs) ═► respond ─► end
//! ```
//!
//! A clear request takes one call of a model, which is offered the tools that the request seems to need ([`tools`]) and
//! calls them. It classifies a message only if that is unclear, contains several requests, or is something else. Rounds
//! of calls are in [`nodes`].
//!
//! Several requests in one message are done in order ([`plan`]): when a step has been answered or done, `respond` goes
//! to `analyze` with the next one. If a plan ends early, `replan` may ask a language model for one other (`replanning`).
//!
//! Start reading at [`graph::chat_graph`], then [`state::AgentState`]; each node is one file in [`nodes`]. The
//! instructions of models are in `prompts/` and [`view`]; replies by code are in [`replies`].
//!
//! *Architecture Invariant:* nothing here changes the outside world, and no model's words reach a card: cards come from
//! [`countersign_graph::action::ActionKind::prepare`]. *Architecture Invariant:* it knows neither Slack nor stores nor
//! any platform; tools and actions come in a [`countersign_capabilities::Registry`].
//!
//! The alternative would be a model that runs the whole turn as one open-ended loop of tool calls. That is shorter to
//! write, but a person could not be asked in the middle of it, and nothing would bound the cost of a turn.

pub mod blob_cache;
mod brief;
mod conditions;
pub mod context;
mod conversing;
mod exchange;
mod follow_up;
pub mod graph;
pub mod history;
pub mod log;
pub mod model_health;
mod model_with_fallback;
mod nodes;
mod numbers;
mod offered;
pub mod outcomes;
mod past_changes;
pub mod plan;
pub mod plan_settings;
mod replanning;
pub mod replies;
mod rest_of_plan;
mod spoken_to;
pub mod state;
mod subjects;
mod thread_plans;
mod tools;
mod turn;
mod view;

pub use countersign_understanding::{
    StopRequest, declines, drops_any, forbidden_change, is_no, refuses, says_forget, says_undo, stop_request, withdraws,
};
