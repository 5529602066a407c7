//! The proof that a person approved a call, and the only place that claims it to the bridge.
//!
//! The bridge runs a critical tool for every caller who claims that a person agreed, without being able to verify it.
//! So the claim is tied to a record here: a [`Confirmed`] can only be made from an approved record that is being
//! carried out, and [`Confirmed::claim`] is the only function that writes the claim into a request.

use countersign_core::ids::UserId;
use countersign_graph::action::{ActionRecord, Status};
use reqwest::RequestBuilder;
use serde_json::{Value, json};

/// The header of the claim.
const HEADER: &str = "X-MCP-Confirm";

/// Proof that an action was approved and is being carried out now.
#[derive(Clone, Debug)]
pub struct Confirmed {
    by: UserId,
}

impl Confirmed {
    /// Returns the proof for a record; `None` unless people approved it and its intent is written.
    pub fn by_record(record: &ActionRecord) -> Option<Self> {
        let by = record.approved_by().pop().filter(|_| record.status == Status::Intent)?;
        Some(Self { by })
    }

    /// Returns the person who approved last.
    pub fn by(&self) -> &str {
        self.by.as_str()
    }

    /// Writes the claim into a request: the header, and the field in the body that some calls also need.
    pub(super) fn claim(&self, request: RequestBuilder, body: &mut Value) -> RequestBuilder {
        if body["params"].is_object() {
            body["params"]["critical"] = json!(true);
        } else if body["tool"].is_string() {
            body["critical"] = json!(true);
        }
        request.header(HEADER, "true")
    }
}
