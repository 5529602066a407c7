//! The trace of a thread, step by step, for people and programs.

use std::sync::Arc;

use countersign_core::ids::ThreadId;
use countersign_graph::store::{ActionFilter, AuditEntry, AuditKind, Error, StepRecord, Store, ThreadFilter, Version};
use countersign_planner::events::{self, StreamEvent};
use serde::Deserialize;
use serde_json::{Value, json};

/// The maximum number of steps that are listed; the newest ones are.
const MAX_STEPS: usize = 500;

/// The maximum number of threads, and of actions of a thread, that are listed.
const MAX_THREADS: usize = 100;

/// The reader of traces.
#[derive(Clone, Debug)]
pub struct Traces {
    store: Arc<dyn Store>,
}

impl Traces {
    /// Creates a reader of the traces in this store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Returns the threads, most recently changed first.
    ///
    /// # Errors
    ///
    /// Fails if the store isn't answering.
    pub async fn threads(&self) -> Result<Value, Error> {
        let threads = self.store.threads(ThreadFilter::All, MAX_THREADS).await?;
        let rows = threads.iter().map(|summary| {
            json!({
                "thread": summary.thread.to_string(),
                "channel": summary.thread.channel,
                "ts": summary.thread.root,
                "graph": summary.graph,
                "version": summary.version,
                "updated_at": summary.updated_at.to_string(),
                "busy": summary.busy,
            })
        });
        Ok(json!({ "threads": rows.collect::<Vec<_>>() }))
    }

    /// Returns everything about one thread: its runs with their steps, the events of its plans, its actions and its
    /// audit log. `None` if the bot does not know the thread.
    ///
    /// # Errors
    ///
    /// Fails if the store isn't answering.
    pub async fn trace(&self, thread: &ThreadId) -> Result<Option<Value>, Error> {
        let Some(saved) = self.store.load(thread).await? else { return Ok(None) };
        let after = saved.version.saturating_sub(MAX_STEPS as Version);
        let steps = self.store.steps(thread, after, MAX_STEPS).await?;
        let filter = ActionFilter::of(thread, &[], MAX_THREADS);
        let actions = self.store.actions(&filter).await?;
        let audit = self.store.audit(thread).await?;
        Ok(Some(json!({
            "thread": thread.to_string(),
            "version": saved.version,
            "runs": runs(&steps, &audit),
            "events": plan_events(&audit),
            "actions": actions.iter().map(|action| json!({
                "id": action.id,
                "name": action.name,
                "title": action.card.title,
                "status": action.status,
                "digest": action.digest,
                "requested_by": action.requested_by,
                "evidence": action.evidence,
                "requested_at": action.requested_at.to_string(),
                "parameters": action.parameters,
                "decisions": action.decisions.iter().map(|decision| json!({
                    "by": decision.by, "at": decision.at.to_string(), "verdict": decision.verdict,
                })).collect::<Vec<_>>(),
                "outcome": action.outcome.as_ref().map(|outcome| outcome.summary().words()),
            })).collect::<Vec<_>>(),
            "audit": audit.iter().map(|entry| json!({
                "seq": entry.seq,
                "at": entry.event.at.to_string(),
                "kind": entry.event.kind,
                "by": entry.event.by,
                "action": entry.event.action,
                "detail": entry.event.detail,
                "hash": entry.hash,
            })).collect::<Vec<_>>(),
        })))
    }
}

/// Returns the events of plans, in the form of [`events::lists`].
fn plan_events(audit: &[AuditEntry]) -> Value {
    let of_plans = audit.iter().map(|entry| &entry.event).filter(|event| event.kind == AuditKind::Progress);
    let of_plans = of_plans.filter(|event| event.detail["source"] != "model");
    let read = of_plans.filter_map(|event| Some((event.at, StreamEvent::deserialize(&*event.detail).ok()?)));
    events::lists(&read.collect::<Vec<_>>())
}

/// Groups steps by their runs. Runs and steps keep their order.
fn runs(steps: &[(Version, StepRecord)], audit: &[AuditEntry]) -> Vec<Value> {
    let mut runs: Vec<(&str, Vec<Value>, String)> = Vec::new();
    for (version, step) in steps {
        let step_json = step_json(*version, step);
        match runs.iter_mut().find(|(run, ..)| *run == step.run.as_str()) {
            Some((_, steps, _)) => steps.push(step_json),
            None => runs.push((step.run.as_str(), vec![step_json], step.at.to_string())),
        }
    }
    let run_json = |(run, steps, started): (&str, Vec<Value>, String)| json!({ "run": run, "started_at": started, "steps": steps, "ratings": ratings(run, audit) });
    runs.into_iter().map(run_json).collect()
}

/// Returns people's ratings of a run's answer.
fn ratings(run: &str, audit: &[AuditEntry]) -> Vec<Value> {
    let of_run = audit.iter().map(|entry| &entry.event);
    of_run
        .filter(|event| event.kind == AuditKind::Rated && event.detail["run"] == run)
        .map(|event| json!({ "by": event.by, "at": event.at.to_string(), "helped": event.detail["helped"] }))
        .collect()
}

fn step_json(version: Version, step: &StepRecord) -> Value {
    json!({
        "version": version,
        "node": step.node,
        "at": step.at.to_string(),
        "duration_ms": step.duration_ms,
        "input": step.input,
        "next": step.next,
        "changes": step.delta,
        "usage": step.usage,
        "error": step.error,
        "trace": step.trace,
    })
}
