//! The handlers of all calls. [`find`] is the routing table.
//!
//! A handler takes the world and the call, and returns JSON or an error. It is synchronous and
//! holds the lock, so requests are atomic. Transport, faults and the ledger are in
//! [`super::server`].

pub(crate) mod client;
pub(crate) mod create;
pub(crate) mod experiments;
pub(crate) mod lists;
pub(crate) mod search;
pub(crate) mod state;
pub(crate) mod stats;
pub(crate) mod system;
pub(crate) mod update;

use serde_json::Value;

use super::{
    Version,
    failure::{Failure, Outcome},
    validate::Violation,
    world::{World, is_id},
};

/// One request, parsed.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) method: String,
    /// The path with its prefix, without the query.
    pub(crate) path: String,
    /// The segments of the path after the prefix.
    pub(crate) segments: Vec<String>,
    pub(crate) query: String,
    pub(crate) user_id: Option<String>,
    pub(crate) authorization: Option<String>,
    /// The JSON body, or null.
    pub(crate) body: Value,
    /// The error if the body is not JSON.
    pub(crate) broken: Option<&'static str>,
}

impl Call {
    /// Returns the last segment of the path, which may be an id.
    pub(crate) fn last(&self) -> &str {
        self.segments.last().map_or("", String::as_str)
    }

    /// Returns the id at the end of the path.
    pub(crate) fn id(&self) -> Result<&str, Failure> {
        Some(self.last()).filter(|id| is_id(id)).ok_or_else(Failure::invalid_params)
    }

    /// Returns a text field of the body, if it exists.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.body[name].as_str()
    }
}

/// The callers that a route admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Any caller.
    Open,
    /// A caller with the administration token.
    Admin,
    /// An application on behalf of a user.
    Client,
}

type Handler = fn(&mut World, &Call) -> Outcome;

/// Returns the handler of a call and the callers that it admits; `None` if there is no such route.
pub(crate) fn find(call: &Call, version: Version) -> Option<(Gate, Handler)> {
    use Gate::{Admin, Client, Open};
    let segments: Vec<&str> = call.segments.iter().map(String::as_str).collect();
    let new = version == Version::V6_5;
    let found: (Gate, Handler) = match (call.method.as_str(), segments.as_slice()) {
        ("GET", []) => (Open, system::health),
        ("GET", ["version"]) => (Admin, system::version),
        ("GET", ["check", "individualAssignment"]) => (Open, stats::enrolled),
        ("POST", ["audit"]) => (Admin, system::audit),
        ("POST", ["previewusers"]) => (Admin, system::preview_user),
        ("POST", ["batch-assign"]) => (Admin, system::batch_assign),
        ("GET", ["segments", "global"]) => (Admin, system::global_segments),
        ("POST", ["segments"]) => (Admin, system::create_segment),
        ("GET", ["stratification"]) => (Admin, system::stratification),
        ("GET", ["experiments"]) => (Admin, experiments::all),
        ("POST", ["experiments"]) => (Admin, create::create),
        ("GET", ["experiments", "contextMetaData"]) => (Admin, experiments::context_metadata),
        ("GET", ["experiments", "names"]) => (Admin, experiments::names),
        ("GET", ["experiments", "partitions"]) => (Admin, experiments::partitions),
        ("GET", ["experiments", "export"]) => (Admin, experiments::export),
        ("GET", ["experiments", "single", _]) => (Admin, experiments::single),
        ("GET", ["experiments", "conditions", _]) => (Admin, experiments::conditions),
        ("POST", ["experiments", "paginated"]) => (Admin, search::paginated),
        ("POST", ["experiments", "validation"]) => (Admin, experiments::validation),
        ("POST", ["experiments", "state"]) => (Admin, state::change),
        ("POST", ["experiments", "inclusionList" | "exclusionList"]) if new => (Admin, lists::add),
        ("PUT", ["experiments", "inclusionList" | "exclusionList", _]) if new => (Admin, lists::replace),
        ("DELETE", ["experiments", "inclusionList" | "exclusionList", _]) if new => (Admin, lists::delete),
        ("PUT", ["experiments", _]) => (Admin, update::update),
        ("DELETE", ["experiments", _]) => (Admin, experiments::delete),
        ("POST", ["stats", "enrollment"]) => (Admin, stats::summary),
        ("POST", ["stats", "enrollment", "detail"]) => (Admin, stats::detail),
        ("POST", ["stats", "enrollment", "date"]) => (Admin, stats::by_day),
        ("POST", ["v6" | "v5", "init"]) => (Client, client::init),
        ("PATCH", ["v6" | "v5", "groupmembership"]) => (Client, client::group_membership),
        ("PATCH", ["v6" | "v5", "workinggroup"]) => (Client, client::working_group),
        ("PATCH", ["v6" | "v5", "useraliases"]) => (Client, client::aliases),
        ("POST", ["v6" | "v5", "assign"]) => (Client, client::assign),
        ("POST", ["v6" | "v5", "mark"]) => (Client, client::mark),
        ("POST", ["v6" | "v5", "log"]) => (Client, client::log),
        _ => return None,
    };
    Some(found)
}

/// Refuses a body in which the validator found violations.
pub(crate) fn checked(violations: &[Violation]) -> Result<(), Failure> {
    if violations.is_empty() { Ok(()) } else { Err(Failure::invalid_body(violations)) }
}
