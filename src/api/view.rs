//! What a program sees of its request.

use countersign_core::clock::Timestamp;
use countersign_graph::action::{ActionRecord, Decision, Status, Verdict};
use serde_json::{Value, json};

use super::register::{Ended, Entry};

/// A request with its action, if it has one.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The request.
    pub entry: Entry,
    /// The action.
    pub record: Option<ActionRecord>,
}

impl Seen {
    /// Returns the state.
    pub fn state(&self) -> Status {
        match (&self.record, self.entry.ended) {
            (Some(record), _) => record.status,
            (None, None) => Status::Proposed,
            (None, Some(Ended::Cancelled)) => Status::Cancelled,
            (None, Some(Ended::Expired)) => Status::Expired,
            (None, Some(Ended::Superseded)) => Status::Superseded,
        }
    }

    /// Returns the revision, which grows with each change.
    pub fn revision(&self) -> u64 {
        let before = u64::from(self.entry.ended.is_some());
        self.record.as_ref().map_or(before, |record| record.revision)
    }

    /// Returns true if nothing can change any more.
    pub fn is_final(&self) -> bool {
        use Status::*;
        matches!(self.state(), Done | Failed | Settled | Rejected | Expired | Superseded | Cancelled)
    }

    /// Returns true if nobody has decided yet.
    pub fn is_undecided(&self) -> bool {
        matches!(self.state(), Status::Proposed | Status::Pending)
    }

    /// Returns true if it can still be approved or claimed.
    pub fn is_open(&self) -> bool {
        self.is_undecided() || self.state() == Status::Approved
    }

    /// Returns the request as JSON. `needed` is the number of approvals that its policy needs now, `url` the address of
    /// its card.
    pub fn as_json(&self, needed: u32, url: Option<String>) -> Value {
        let Self { entry, record } = self;
        let asked = &entry.asked;
        let decisions = record.as_ref().map(|record| record.decisions.as_slice()).unwrap_or_default();
        let needed = record.as_ref().map_or(needed, |record| record.policy.needed);
        let decided_at = (!self.is_undecided()).then(|| decisions.last().map(|last| last.at.to_string())).flatten();
        json!({
            "id": entry.id, "object": "approval", "state": self.state(), "revision": self.revision(),
            "final": self.is_final(), "execution": "caller",
            "policy": { "name": asked.policy, "needed": needed,
                "approvals": record.as_ref().map_or(0, |record| record.approved_by().len()) },
            "title": asked.title, "reason": asked.reason, "change": asked.change, "links": asked.links,
            "payload_digest": entry.payload_digest,
            "requested_by": { "key": entry.key, "verified": {}, "slack_user": null },
            "created_at": time(entry.created_at), "expires_at": time(entry.expires_at), "decided_at": decided_at,
            "decisions": decisions.iter().map(decision).collect::<Vec<_>>(),
            "replaced_by": entry.replaced_by, "outcome": record.as_ref().and_then(outcome), "url": url,
            "metadata": asked.metadata,
        })
    }
}

fn time(at: Timestamp) -> String {
    at.to_string()
}

fn decision(decision: &Decision) -> Value {
    let (verdict, reason) = match &decision.verdict {
        Verdict::Approved => ("approved", None),
        Verdict::Rejected { reason } => ("rejected", reason.clone()),
        Verdict::Expired => ("expired", None),
        Verdict::Cancelled => ("cancelled", None),
        Verdict::Superseded => ("superseded", None),
        Verdict::Obsolete { why } => ("obsolete", Some(why.words())),
    };
    let by = decision.by.as_ref().map(|by| match by.key() {
        Some(key) => json!({ "key": key }),
        None => json!({ "slack_user": by }),
    });
    json!({ "verdict": verdict, "by": by, "at": time(decision.at), "reason": reason })
}

fn outcome(record: &ActionRecord) -> Option<Value> {
    let outcome = record.outcome.as_ref()?;
    let reported = record.progress.as_ref().map_or(&Value::Null, |progress| &progress.data["reported"]);
    if reported.is_object() {
        return Some(reported.clone());
    }
    Some(json!({ "result": null, "summary": outcome.summary().words(), "url": null }))
}
