//! Withdrawing, claiming, reporting, and checking tokens. Each is one compare-and-set on the record.

use std::time::Duration;

use axum::{
    http::{HeaderMap, StatusCode},
    response::Response,
};
use countersign_conversation::approvals::decide::decide;
use countersign_core::ids::CommitId;
use countersign_core::reply::Text;
use countersign_graph::{
    action::{ActionRecord, Claim, Decision, ErrorKind, Outcome, Status, Verdict},
    engine::{PolicyInput, lapsed},
    store::{AuditKind, Changes, Error, ThreadMessage},
};
use serde_json::{Value, json};

use super::{Caller, Server, ask::idempotency_key, json_answer};
use crate::{
    asked::payload_digest,
    card,
    outside_change::{OutsideChange, REPORT_WITHIN},
    problem::Problem,
    register::{Ended, hash},
    token::{Expected, VALID_FOR, verify},
    view::Seen,
};

/// The number of attempts of a write while others change the record.
const MAX_TRIES: usize = 8;

/// The time to wait for the card of a request that is about to be posted.
const CARD_WITHIN: Duration = Duration::from_secs(10);

impl Server {
    /// Withdraws a request.
    pub(super) async fn cancel(&self, caller: &Caller, id: &str) -> Result<Response, Problem> {
        let seen = self.seen(caller, id).await?;
        if !self.close(caller, &seen, &Verdict::Cancelled, Ended::Cancelled).await? {
            let seen = self.seen(caller, id).await?;
            if seen.state() != Status::Cancelled {
                let detail = format!("It was decided before: it is {}.", seen.state());
                return Err(Problem::new("already-decided", detail).in_state(seen.state().as_str()));
            }
        }
        Ok(self.show(StatusCode::OK, &self.seen(caller, id).await?))
    }

    /// Closes a request that nobody has decided. Returns false if somebody has.
    pub(super) async fn close(
        &self,
        caller: &Caller,
        seen: &Seen,
        verdict: &Verdict,
        ended: Ended,
    ) -> Result<bool, Problem> {
        let requests = &self.0.deps.requests;
        let id = &seen.entry.id;
        let mut record = match &seen.record {
            Some(record) => record.clone(),
            None => {
                let closed = requests.change(id, |entry| {
                    let is_open = entry.thread.is_none() && entry.ended.is_none();
                    entry.ended = entry.ended.or(is_open.then_some(ended));
                    (is_open, entry.ended.is_some())
                });
                match closed.await?.unwrap_or((false, true)) {
                    (true, _) => return Ok(true),
                    (false, true) => return Ok(false),
                    (false, false) => {} // its card is about to be posted
                }
                let waited = self.wait_for(caller, id, CARD_WITHIN, &|seen| seen.record.is_some()).await?;
                let busy = || Problem::new("store-unavailable", "Its card is being posted. Try again.").after(2);
                waited.record.ok_or_else(busy)?
            }
        };
        for _ in 0..MAX_TRIES {
            let decision = Decision { by: Some(caller.id()), at: self.now(), verdict: verdict.clone() };
            let Ok((_, changes)) = decide(&record, decision, None, None) else { return Ok(false) };
            match self.write(&record, changes).await? {
                None => return Ok(true),
                Some(current) => record = current,
            }
        }
        Err(Problem::new("store-unavailable", "Others keep changing this request. Try again.").after(1))
    }

    /// Writes changes of a record. Returns the record as it is if another write came first.
    async fn write(&self, record: &ActionRecord, changes: Changes) -> Result<Option<ActionRecord>, Problem> {
        match self.0.deps.requests.store().apply(&changes).await {
            Ok(()) => {
                (self.0.deps.wake)(record.thread.clone());
                Ok(None)
            }
            Err(Error::ActionMoved { current: Some(current), .. }) => Ok(Some(*current)),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes an approval, once.
    pub(super) async fn claim(
        &self,
        caller: &Caller,
        id: &str,
        headers: &HeaderMap,
        body: &Value,
    ) -> Result<Response, Problem> {
        let given = body["payload_digest"].as_str().unwrap_or_default();
        // A claim whose answer was lost can be repeated under the same key.
        let repeat = match headers.contains_key("idempotency-key") {
            true => Some(hash(&[&caller.name, idempotency_key(headers)?])),
            false => None,
        };
        let mut seen = self.seen(caller, id).await?;
        for _ in 0..MAX_TRIES {
            let Some(record) = seen.record.clone() else { return Err(not_approved(&seen)) };
            let is_repeat = repeat.is_some() && repeat.as_deref() == data(&record, "repeat").as_str();
            if record.status == Status::Intent && is_repeat && data(&record, "digest") == given {
                return self.claimed(caller, &seen, &record);
            }
            if let Some(problem) = self.refusal(&seen, &record, given).await? {
                metrics::counter!("countersign_api_claims_refused_total", "why" => problem.slug()).increment(1);
                self.note_refusal(caller, &record, &problem, given).await?;
                return Err(problem);
            }
            let claim = Claim {
                by: caller.id(),
                at: self.now(),
                id: format!("clm_{:032x}", rand::random::<u128>()),
                data: json!({ "digest": given, "repeat": repeat }),
                report_within: REPORT_WITHIN,
            };
            let Ok((claimed, changes)) = record.claimed(&claim) else { return Err(not_approved(&seen)) };
            match self.write(&record, changes).await? {
                None => {
                    metrics::counter!("countersign_api_claims_total").increment(1);
                    seen.record = Some(claimed.clone());
                    return self.claimed(caller, &seen, &claimed);
                }
                Some(current) => seen.record = Some(current),
            }
        }
        Err(Problem::new("store-unavailable", "Others keep changing this request. Try again.").after(1))
    }

    /// Returns the reason why an approval cannot be claimed now.
    async fn refusal(&self, seen: &Seen, record: &ActionRecord, given: &str) -> Result<Option<Problem>, Problem> {
        if record.claim().is_some() {
            let detail = "Its approval was claimed before, and can be used once.";
            return Ok(Some(Problem::new("already-claimed", detail).in_state(record.status.as_str())));
        }
        let Some(change) = OutsideChange::of(record).filter(|_| record.status == Status::Approved) else {
            return Ok(Some(not_approved(seen)));
        };
        let refused = |detail: String| Some(Problem::new("not-approved", detail).in_state(record.status.as_str()));
        if let Some(objection) = record.proof.objection() {
            return Ok(refused(objection));
        }
        if payload_digest(&change.asked.change.payload).is_none_or(|digest| digest != given) {
            let detail = "The payload that you are about to use is not the one that was approved.";
            return Ok(Some(Problem::new("digest-mismatch", detail).in_state(record.status.as_str())));
        }
        let decided = record.decisions.last().map_or(record.requested_at, |decision| decision.at);
        if self.now().since(decided) >= Duration::from_secs(change.claim_within) {
            return Ok(refused("The time to claim the approval is over.".to_owned()));
        }
        let unread = self.0.deps.requests.store().messages(&record.thread, 0, None).await?;
        if unread.iter().any(|message| matches!(message.message, ThreadMessage::Stop { .. })) {
            return Ok(refused("Someone has just stopped it.".to_owned()));
        }
        let policy = (self.0.deps.policy_for)(&PolicyInput::of(record));
        let lapsed = lapsed(record, policy, &*self.0.deps.entitled, self.now()).await;
        Ok(lapsed.and_then(|outcome| refused(outcome.summary().words())))
    }

    /// Records that a claim was refused.
    async fn note_refusal(
        &self,
        caller: &Caller,
        record: &ActionRecord,
        problem: &Problem,
        given: &str,
    ) -> Result<(), Problem> {
        let mut changes = Changes::new(CommitId::fresh(), record.thread.clone());
        let detail = json!({ "why": problem.slug(), "claim": true, "payload_digest": given });
        changes.audit.push(record.event(AuditKind::ClickRefused, self.now(), Some(caller.id()), detail));
        Ok(self.0.deps.requests.store().apply(&changes).await?)
    }

    /// Returns the answer to a claim, with its token.
    fn claimed(&self, caller: &Caller, seen: &Seen, record: &ActionRecord) -> Result<Response, Problem> {
        let change = &seen.entry.asked.change;
        let from = record.intent_at.unwrap_or_default().seconds();
        let claims = json!({
            "iss": self.0.deps.settings.url(), "aud": caller.name, "sub": seen.entry.id, "jti": record.claim(),
            "iat": from, "exp": from + VALID_FOR, "verdict": "approved", "payload_digest": data(record, "digest"),
            "kind": change.kind, "target": change.target, "policy": seen.entry.asked.policy,
            "approved_by": record.approved_by(),
        });
        let token = self.0.deps.tokens.sign(&claims);
        let token = token.ok_or_else(|| Problem::new("store-unavailable", "The token cannot be signed."))?;
        let body =
            json!({ "claim": record.claim(), "token": token, "expires_in": VALID_FOR, "approval": self.shown(seen) });
        Ok(json_answer(StatusCode::OK, &body))
    }

    /// Stores how it went.
    pub(super) async fn report(&self, caller: &Caller, id: &str, body: &Value) -> Result<Response, Problem> {
        let reported = json!({ "result": body["result"], "summary": body["summary"], "url": body["url"] });
        let mut seen = self.seen(caller, id).await?;
        for _ in 0..MAX_TRIES {
            let state = seen.state();
            let record = seen.record.clone().filter(|record| record.claim().is_some());
            let Some(record) = record else {
                let detail = "Its approval was not claimed, so there is nothing to report.";
                return Err(Problem::new("not-claimed", detail).in_state(state.as_str()));
            };
            if *data(&record, "reported") == reported {
                return Ok(self.show(StatusCode::OK, &seen));
            }
            let is_open = matches!(record.status, Status::Intent | Status::Unknown);
            let outcome = outcome(caller, body);
            let written = is_open.then(|| record.reported(&caller.id(), outcome, reported.clone(), self.now()).ok());
            let Some((ended, changes)) = written.flatten() else {
                let detail = format!("Another outcome is on record: it is {state}.");
                return Err(Problem::new("already-decided", detail).in_state(state.as_str()));
            };
            match self.write(&record, changes).await? {
                None => {
                    seen.record = Some(ended);
                    return Ok(self.show(StatusCode::OK, &seen));
                }
                Some(current) => seen.record = Some(current),
            }
        }
        Err(Problem::new("store-unavailable", "Others keep changing this request. Try again.").after(1))
    }

    /// Tells whether a token is good now: it is valid, and its change was neither reported nor stopped.
    pub(super) async fn introspect(&self, caller: &Caller, body: &Value) -> Result<Response, Problem> {
        let token = body["token"].as_str().unwrap_or_default();
        let issuer = self.0.deps.settings.url();
        let expected = Expected { issuer: &issuer, audience: Some(&caller.name), payload: None, now: self.now() };
        let inactive = || json_answer(StatusCode::OK, &json!({ "active": false }));
        let Ok(mut claims) = verify(token, self.0.deps.tokens.set(), expected) else { return Ok(inactive()) };
        let seen = match self.seen(caller, claims["sub"].as_str().unwrap_or_default()).await {
            Ok(seen) => seen,
            Err(problem) if problem.slug() == "not-found" => return Ok(inactive()),
            Err(problem) => return Err(problem),
        };
        let is_claimed = |record: &ActionRecord| {
            record.status == Status::Intent && record.proof.holds() && claims["jti"].as_str() == record.claim()
        };
        if !seen.record.as_ref().is_some_and(is_claimed) {
            return Ok(inactive());
        }
        claims["active"] = json!(true);
        Ok(json_answer(StatusCode::OK, &claims))
    }
}

/// Returns a value that was stored with a claim.
fn data<'r>(record: &'r ActionRecord, name: &str) -> &'r Value {
    record.progress.as_ref().map_or(&Value::Null, |progress| &progress.data[name])
}

fn not_approved(seen: &Seen) -> Problem {
    let detail = format!("It is {}, and only an approved request can be claimed.", seen.state());
    Problem::new("not-approved", detail).in_state(seen.state().as_str())
}

/// Returns the outcome that a program reports.
fn outcome(caller: &Caller, body: &Value) -> Outcome {
    let said = body["summary"].as_str().map(str::trim).filter(|said| !said.is_empty()).map(card::plain);
    let by = || Text::from("Reported by ").person(caller.id());
    let with = |text: Text| match &said {
        Some(said) => text.plain(": “").plain(said).plain("”"),
        None => text.plain("."),
    };
    match body["result"].as_str() {
        Some("succeeded") => {
            Outcome::Done { result: json!({ "reported": true }), summary: with(by().plain(", not checked: done")) }
        }
        Some("failed") => {
            Outcome::Failed { error: ErrorKind::Execution, summary: with(by().plain(", not checked: failed")) }
        }
        _ => Outcome::Unknown { summary: with(by().plain(": it is not known how it went")) },
    }
}
