//! `POST /v1/approvals`.

use std::time::Duration;

use axum::{
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use countersign_core::{clock::ago, ids::Nonce, reply::Text};
use countersign_graph::{
    action::{Status, Verdict},
    digest::Digest,
    engine::PolicyInput,
};
use serde_json::Value;

use super::{Caller, Server, fresh_id, is_id};
use crate::{
    asked::{Asked, payload_digest},
    outside_change::{CONTEXT, NAME},
    problem::Problem,
    register::{Ended, Entry, FirstUse, Requests, hash},
    settings::Policy,
    shape::Fault,
    view::Seen,
};

/// The time for which the answer waits for the card. It is a courtesy: the request is stored by then.
const CARD_WITHIN: Duration = Duration::from_secs(3);

/// The time after a rejection in which the same request is refused.
const COOLDOWN: Duration = Duration::from_secs(600);

/// The `Idempotency-Key` that stands for the open request for the same change, whatever its words are. If there is none, a
/// new one is made.
pub(crate) const WHILE_OPEN: &str = "while-open";

/// The longest `Idempotency-Key`.
const MAX_KEY: usize = 255;

impl Server {
    /// Stores a request, or returns the one that was stored under the same `Idempotency-Key`.
    pub(super) async fn ask(&self, caller: &Caller, headers: &HeaderMap, body: Value) -> Result<Response, Problem> {
        let idempotency_key = idempotency_key(headers)?;
        if body.get("requested_for").is_some_and(|person| !person.is_null()) {
            return Err(Problem::missing_scope("act_for"));
        }
        let mut asked = Asked::read(&body).map_err(|faults| Problem::invalid(&faults))?;
        let policy = self.allowed_policy(caller, &asked)?;
        asked.callback = asked.callback.or_else(|| policy.callback.clone());
        let digest = payload_digest(&asked.change.payload).unwrap_or_default(); // its shape is right, so it has one
        let is_while_open = idempotency_key == WHILE_OPEN;
        let body = match is_while_open {
            true => hash(&[&asked.policy, &asked.change.kind, &asked.change.target, &digest]),
            // White space and the order of names do not matter.
            false => hash(&[&Digest::canonical_text(&body).unwrap_or_else(|| body.to_string())]),
        };
        let idempotency_key = if is_while_open { &*format!("{WHILE_OPEN}:{body}") } else { idempotency_key };
        let requests = &self.0.deps.requests;
        let mine = FirstUse { id: fresh_id(), body };
        let mut first = requests.first_use(&caller.name, idempotency_key, None, &mine).await?;
        if first.body != mine.body {
            let detail = "This Idempotency-Key was used for a request with another body.";
            return Err(Problem::new("idempotency-key-reused", detail));
        }
        let mut known = requests.entry(&first.id).await?;
        if is_while_open && known.is_some() && !self.seen(caller, &first.id).await?.is_open() {
            first = requests.first_use(&caller.name, idempotency_key, Some(&first.id), &mine).await?;
            known = requests.entry(&first.id).await?;
        }
        if let Some(entry) = known {
            return self.answer_asked(caller, &entry, false).await;
        }
        let before = self.decided_before(caller, &asked, &digest).await?;
        self.list_open(caller, &first.id).await?;
        let now = self.now();
        let expires_at = now + asked.open_for(policy);
        let entry = Entry {
            id: first.id,
            key: caller.name.clone(),
            payload_digest: digest,
            claim_within: policy.claim_within.as_secs(),
            asked_from: caller.address.to_string(),
            idempotency: hash(&[idempotency_key]),
            nonce: Nonce::fresh(),
            created_at: now,
            expires_at,
            thread: None,
            is_delivered: false,
            tries: 0,
            posting_until: now,
            ended: None,
            replaced_by: None,
            before,
            asked,
        };
        requests.set_waiting(&entry.id, Some(now)).await?;
        let stored = requests.add(&entry).await?;
        let is_new = stored.nonce == entry.nonce;
        if is_new {
            self.replace_older(caller, &stored).await?;
        }
        self.0.deps.poster.look_now();
        self.answer_asked(caller, &stored, is_new).await
    }

    /// Waits a moment for the card, and shows the request.
    async fn answer_asked(&self, caller: &Caller, entry: &Entry, is_new: bool) -> Result<Response, Problem> {
        let seen = self.wait_for(caller, &entry.id, CARD_WITHIN, &|seen| seen.state() != Status::Proposed).await?;
        let mut answer = self.show(if is_new { StatusCode::CREATED } else { StatusCode::OK }, &seen);
        let headers = answer.headers_mut();
        if is_new {
            if let Ok(location) = HeaderValue::from_str(&format!("/v1/approvals/{}", entry.id)) {
                headers.insert(header::LOCATION, location);
            }
        } else {
            headers.insert("idempotency-replayed", HeaderValue::from_static("true"));
        }
        Ok(answer)
    }

    /// Returns the policy that a request names, if the key may name it and somebody can approve under it.
    fn allowed_policy(&self, caller: &Caller, asked: &Asked) -> Result<&Policy, Problem> {
        let deps = &self.0.deps;
        let is_allowed = caller.key.policies.contains(&asked.policy);
        let policy = deps.settings.policies.get(&asked.policy).filter(|_| is_allowed);
        let policy = policy.ok_or_else(|| Problem::new("policy-not-allowed", "The key may not name this policy."))?;
        let faults = asked.faults_under(policy, &deps.settings);
        if !faults.is_empty() {
            return Err(Problem::invalid(&faults));
        }
        if policy.require_person {
            return Err(Problem::new("requester-not-verified", "This policy needs a person who is known to ask."));
        }
        let scope = countersign_graph::action::Scope::default().in_context(format!("{CONTEXT}{}", asked.policy));
        let input = PolicyInput { action: NAME, irreversible: false, scope: &scope, is_suggested: false };
        if (deps.policy_for)(&input).approvers.is_empty() {
            return Err(Problem::new("nobody-can-approve", "Under this policy, nobody can approve."));
        }
        Ok(policy)
    }

    /// Returns a warning if a similar request was rejected a moment before.
    async fn decided_before(&self, caller: &Caller, asked: &Asked, digest: &str) -> Result<Option<Text>, Problem> {
        let about = (&*caller.name, &*asked.policy, &*asked.change.target);
        let Some(newest) = self.0.deps.requests.newest_about(about, None).await? else { return Ok(None) };
        let Ok(seen) = self.seen(caller, &newest).await else { return Ok(None) };
        let Some(record) = seen.record.filter(|record| record.status == Status::Rejected) else { return Ok(None) };
        let Some(decision) = record.decisions.last() else { return Ok(None) };
        let now = self.now();
        let left = COOLDOWN.saturating_sub(now.since(decision.at));
        if left.is_zero() {
            return Ok(None);
        }
        if seen.entry.payload_digest == digest {
            let detail = "The same was rejected a moment ago. Asking again does not change that.";
            return Err(Problem::new("recently-rejected", detail).after(left.as_secs()));
        }
        let text = Text::from(format!("A similar request was rejected {}", ago(now, decision.at)));
        let text = decision.by.iter().fold(text, |text, by| text.plain(" by ").name(by.clone()));
        Ok(Some(match &decision.verdict {
            Verdict::Rejected { reason: Some(reason) } => text.plain(format!(": {reason}")),
            _ => text.plain("."),
        }))
    }

    /// Adds a request to the open ones of its key.
    async fn list_open(&self, caller: &Caller, id: &str) -> Result<(), Problem> {
        let requests = &self.0.deps.requests;
        let Err(open) = requests.list(&caller.name, id, caller.key.max_open).await? else { return Ok(()) };
        let mut closed = Vec::new();
        for other in open.iter().filter(|other| is_id(other)) {
            match self.seen(caller, other).await {
                Ok(seen) if seen.is_open() => {}
                Ok(_) => closed.push(other.clone()),
                Err(problem) if problem.slug() == "not-found" => closed.push(other.clone()),
                Err(problem) => return Err(problem),
            }
        }
        requests.no_longer_open(&caller.name, &closed).await?;
        match requests.list(&caller.name, id, caller.key.max_open).await? {
            Ok(()) => Ok(()),
            Err(open) => {
                let detail = format!("{} requests of this key are open, which is its limit.", open.len());
                Err(Problem::new("too-many-open", detail).after(30))
            }
        }
    }

    /// Notes the newest request for its target. The one before is closed if the program wants that and it is open.
    async fn replace_older(&self, caller: &Caller, entry: &Entry) -> Result<(), Problem> {
        let requests = &self.0.deps.requests;
        let about = (&*caller.name, &*entry.asked.policy, &*entry.asked.change.target);
        let Some(older) = requests.newest_about(about, Some(&entry.id)).await? else { return Ok(()) };
        if !entry.asked.supersede {
            return Ok(());
        }
        let Ok(seen) = self.seen(caller, &older).await else { return Ok(()) };
        if self.close(caller, &seen, &Verdict::Superseded, Ended::Superseded).await? {
            let newer = entry.id.clone();
            requests.change(&older, |older| older.replaced_by = Some(newer.clone())).await?;
        }
        Ok(())
    }
}

/// Returns the `Idempotency-Key`.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<&str, Problem> {
    let Some(given) = headers.get("idempotency-key") else {
        let detail = "Send an Idempotency-Key, such as the id of the job, so that a repeat finds the same request.";
        return Err(Problem::new("idempotency-key-missing", detail));
    };
    let is_right = |key: &&str| (1..=MAX_KEY).contains(&key.len()) && key.bytes().all(|b| (b' '..=b'~').contains(&b));
    let key = given.to_str().ok().map(str::trim).filter(is_right);
    let detail = format!("Idempotency-Key: expected 1 to {MAX_KEY} visible characters.");
    key.ok_or_else(|| Problem::invalid(&[Fault { pointer: String::new(), detail }]))
}

impl Server {
    /// Returns a request once it `is_ready`, or as it is after this time.
    pub(super) async fn wait_for(
        &self,
        caller: &Caller,
        id: &str,
        within: Duration,
        is_ready: &(dyn Fn(&Seen) -> bool + Send + Sync),
    ) -> Result<Seen, Problem> {
        let place = self.0.waiters.enter(&caller.name);
        let (requests, stop) = (&self.0.deps.requests, &self.0.deps.stop);
        let deadline = tokio::time::Instant::now() + within;
        loop {
            // Each is watched before it is read, so that no change is missed.
            let mut of_request = requests.written().register(&Requests::register_of(id));
            let entry = self.entry(caller, id).await?;
            let mut of_thread = entry.thread.as_ref().map(|thread| requests.written().thread(thread));
            let record = requests.record(&entry).await?;
            let seen = Seen { entry, record };
            let is_over =
                tokio::time::Instant::now() >= deadline || stop.is_cancelled() || place.gives_way.is_cancelled();
            if is_over || is_ready(&seen) {
                return Ok(seen);
            }
            let written_elsewhere = self.written_elsewhere(&seen);
            tokio::select! {
                _ = of_request.changed() => {}
                _ = async { of_thread.as_mut().expect("it is there").changed().await }, if of_thread.is_some() => {}
                () = written_elsewhere => {}
                () = tokio::time::sleep_until(deadline) => {}
                () = stop.cancelled() => {}
                () = place.gives_way.cancelled() => {}
            }
        }
    }
}
