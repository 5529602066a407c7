//! The tools: one table describes, checks and documents each.

use std::time::Duration;

use countersign_graph::action::Status;
use rmcp::model::{JsonObject, Tool as Described, ToolAnnotations};
use serde_json::{Value, json};

use super::{Call, Waiting, is_undecided, tool_use};
use crate::{
    asked::{FIELD, RESULTS, payload_digest},
    server::WHILE_OPEN,
    shape::{Kind, Member, check, member, schema},
};

/// A tool.
pub(super) struct Tool {
    pub(super) name: &'static str,
    what: &'static str,
    input: &'static [Member],
    op: Op,
}

/// What a tool does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Op {
    Request,
    Check,
    Cancel,
    Claim,
    Report,
    Policies,
    ToolUse,
}

const ID: Member = member("approval_id", true, Kind::Line(1, 100), "The id of the request, apr_…");

const WAIT: Member = member(
    "wait_seconds",
    false,
    Kind::Integer,
    "How long to wait for a decision; as long as it is safe if it is left out. 0 does not wait.",
);

/// All tools.
pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "request_approval",
        what: "Asks people to approve a change, and waits a little. Asking again for the same change finds the same request \
               while it is open. Only `approved: true` is an approval, and claim_approval has to follow before the change.",
        input: &[
            member("policy", true, Kind::Line(1, 40), "A policy of list_policies."),
            member("title", true, Kind::Line(1, 150), "What it is about, for people."),
            member("kind", true, Kind::Word(64), "The kind of change, such as deploy."),
            member("target", true, Kind::Line(1, 200), "What it changes."),
            member("payload", true, Kind::Payload, "Exactly what is about to be done. Only this is approved."),
            member("fields", false, Kind::List(20, FIELD), "The values of the payload that the card shows."),
            member("reason", false, Kind::Text(0, 1000), "Why it is needed."),
            WAIT,
            member("idempotency_key", false, Kind::Line(1, 255), "A key under which a repeat finds the same request."),
        ],
        op: Op::Request,
    },
    Tool {
        name: "check_approval",
        what: "Waits a little for the decision about a request, and returns its state.",
        input: &[ID, WAIT],
        op: Op::Check,
    },
    Tool {
        name: "cancel_approval",
        what: "Withdraws a request that nobody has decided.",
        input: &[ID],
        op: Op::Cancel,
    },
    Tool {
        name: "claim_approval",
        what: "Takes an approval, once, right before the change. Give the payload that is about to be used, or its digest. \
               Returns a token for whoever carries the change out.",
        input: &[
            ID,
            member("payload", false, Kind::Payload, "The payload that is about to be used."),
            member("payload_digest", false, Kind::Line(1, 100), "Its digest, computed from what is about to be used."),
        ],
        op: Op::Claim,
    },
    Tool {
        name: "report_outcome",
        what: "Reports how a claimed change went.",
        input: &[
            ID,
            member("result", true, Kind::OneOf(RESULTS), "How it went."),
            member("summary", false, Kind::Text(0, 300), "A sentence for people."),
        ],
        op: Op::Report,
    },
    Tool { name: "list_policies", what: "Lists the policies that requests may name.", input: &[], op: Op::Policies },
    Tool {
        name: "approve_tool_use",
        what: "For the permission prompt of an agent (--permission-prompt-tool): asks people whether a tool may be used with \
               exactly this input.",
        input: tool_use::INPUT,
        op: Op::ToolUse,
    },
];

impl Tool {
    /// Returns the tool as clients see it.
    pub(super) fn described(&self) -> Described {
        let input: JsonObject = serde_json::from_value(schema(self.input)).expect("a schema is an object");
        let only_reads = matches!(self.op, Op::Check | Op::Policies);
        let hints = ToolAnnotations::new().read_only(only_reads).destructive(false).open_world(true);
        Described::new(self.name, self.what, input).with_annotations(hints.idempotent(self.op != Op::Claim))
    }

    /// Calls the tool.
    ///
    /// # Errors
    ///
    /// The problem, as the API describes it.
    pub(super) async fn call(&self, waiting: &Waiting<'_>, given: Value) -> Result<Value, Value> {
        if self.op == Op::ToolUse {
            return Ok(tool_use::prompted(waiting, given).await.to_string().into());
        }
        wrong_arguments(&given, self.input).map_or(Ok(()), Err)?;
        let wait = || match given["wait_seconds"].as_u64() {
            Some(seconds) => Duration::from_secs(seconds).min(waiting.patience()),
            None => waiting.patience(),
        };
        let id = given["approval_id"].as_str().unwrap_or_default();
        let path = format!("/v1/approvals/{id}");
        let door = waiting.door;
        match self.op {
            Op::Policies => door.call(Call::get("/v1/policies")).await,
            Op::Request => {
                let key = given["idempotency_key"].as_str().unwrap_or(WHILE_OPEN);
                let asked = door.call(Call::post("/v1/approvals", &request(&given)).under(key)).await?;
                Ok(summary(&waiting.decided(asked, wait()).await?))
            }
            Op::Check => {
                let seen = door.call(Call::get(path)).await?;
                Ok(summary(&waiting.decided(seen, wait()).await?))
            }
            Op::Cancel => Ok(summary(&door.call(Call::post(format!("{path}/cancel"), &json!({}))).await?)),
            Op::Claim => {
                let digest = match (&given["payload"], given["payload_digest"].as_str()) {
                    (Value::Null, Some(digest)) => Some(digest.to_owned()),
                    (payload, None) => payload_digest(payload).filter(|_| payload.is_object()),
                    (_, Some(_)) => None,
                };
                let digest = digest.ok_or_else(|| json!({ "detail": "Give either `payload` or `payload_digest`." }))?;
                claim(waiting, id, &digest).await
            }
            Op::Report => {
                let body = json!({ "result": given["result"], "summary": given["summary"] });
                Ok(summary(&door.call(Call::post(format!("{path}/outcome"), &body)).await?))
            }
            Op::ToolUse => unreachable!("it was answered above"),
        }
    }
}

/// Describes what is wrong with arguments, if anything is.
pub(super) fn wrong_arguments(given: &Value, input: &[Member]) -> Option<Value> {
    let mut faults = Vec::new();
    check(given, input, "", &mut faults);
    (!faults.is_empty()).then(|| json!({ "detail": "The arguments are not right.", "errors": faults }))
}

/// Claims an approval. If the answer is lost, the claim can be repeated under its own key.
pub(super) async fn claim(waiting: &Waiting<'_>, id: &str, digest: &str) -> Result<Value, Value> {
    let (body, key) = (json!({ "payload_digest": digest }), format!("{:032x}", rand::random::<u128>()));
    let claimed = waiting.door.call(Call::post(format!("/v1/approvals/{id}/claim"), &body).under(key)).await?;
    let mut told = summary(&claimed["approval"]);
    told["token"] = claimed["token"].clone();
    Ok(told)
}

/// Returns the body of a request.
fn request(given: &Value) -> Value {
    let fields = if given["fields"].is_null() { json!([]) } else { given["fields"].clone() };
    json!({ "policy": given["policy"], "title": given["title"], "reason": given["reason"],
        "change": { "kind": given["kind"], "target": given["target"], "payload": given["payload"], "fields": fields } })
}

/// Returns what a model has to know of a request.
fn summary(seen: &Value) -> Value {
    let (id, state) = (seen["id"].as_str().unwrap_or_default(), seen["state"].as_str().unwrap_or_default());
    let last = seen["decisions"].as_array().and_then(|decisions| decisions.last());
    let reason = last.map_or(&Value::Null, |last| &last["reason"]);
    let status = Status::ALL.into_iter().find(|status| status.as_str() == state);
    let next = match status {
        _ if is_undecided(seen) => format!(
            "Not decided yet, and not an approval: still waiting for a person. Call check_approval with approval_id {id}; do \
             not request it again, and do not look for another way."
        ),
        Some(Status::Approved) => {
            "Approved. Call claim_approval with the payload that you are about to use, before the change.".to_owned()
        }
        Some(Status::Intent) => "Claimed, which works once. Make the change now, then call report_outcome.".to_owned(),
        Some(Status::Done | Status::Unknown | Status::Settled) => "It is over. Do not repeat the change.".to_owned(),
        _ => "Do not make the change, and do not look for another way.".to_owned(),
    };
    json!({ "approval_id": id, "state": state, "approved": status == Some(Status::Approved),
        "payload_digest": seen["payload_digest"], "reason": reason, "url": seen["url"], "next": next })
}
