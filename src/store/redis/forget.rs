//! Deletes the data of finished threads.

use countersign_core::{
    clock::Timestamp,
    ids::{Partition, ThreadId},
};
use countersign_graph::{
    action::{ActionRecord, Status},
    store::{Error, Forget, UNFINISHED, Version},
};
use redis::{Value, cmd};
use serde::Serialize;

use super::{
    RedisStore, files, json,
    keys::{PartitionKey, ThreadKey},
    scripts::Call,
};

/// The maximum number of threads of a partition that one search checks, the oldest first.
const MAX_CANDIDATES: isize = 500;

#[derive(Serialize)]
struct Plan {
    thread: String,
    version: Version,
    /// The time in microseconds, the unit of the server.
    before: i64,
    unfinished: Vec<&'static str>,
    only_ask: bool,
    files: bool,
    record: Vec<EntryPlan>,
    approvals: Vec<String>,
}

#[derive(Serialize)]
struct EntryPlan {
    seq: u64,
    hash: String,
    entry: String,
}

impl Plan {
    fn new(thread: &ThreadId, before: Timestamp) -> Self {
        Self {
            thread: thread.to_string(),
            version: 0,
            before: micros(before),
            unfinished: UNFINISHED.into_iter().map(Status::as_str).collect(),
            only_ask: true,
            files: false,
            record: Vec::new(),
            approvals: Vec::new(),
        }
    }
}

/// Returns the threads that are finished, with the times of their last changes in microseconds.
pub(super) async fn finished(store: &RedisStore, before: Timestamp, limit: usize) -> Result<Vec<(String, f64)>, Error> {
    let mut pipeline = redis::pipe();
    for partition in Partition::all() {
        let recent = PartitionKey::Recent.of(partition);
        pipeline.scard(PartitionKey::LetGo.of(partition));
        pipeline.zrangebyscore_limit_withscores(recent, "-inf", format!("({}", micros(before)), 0, MAX_CANDIDATES);
    }
    let mut answers = store.link.pipeline::<Vec<Value>>(&pipeline).await?.into_iter();
    let mut next = || answers.next().unwrap_or(Value::Nil);
    let mut found = Vec::new();
    for partition in Partition::all() {
        if json::answer::<u64>(next())? > 0 {
            files::let_go(store, partition).await?; // work that an earlier process left unfinished
        }
        for (name, at) in json::answer::<Vec<(String, f64)>>(next())? {
            if found.len() >= limit {
                return Ok(found);
            }
            let Ok(thread) = name.parse::<ThreadId>() else { continue };
            if call(store, &thread, &Plan::new(&thread, before), "").await? {
                found.push((name, at));
            }
        }
    }
    Ok(found)
}

/// Implements [`countersign_graph::store::Store::forget`].
pub(super) async fn forget(store: &RedisStore, forget: &Forget) -> Result<bool, Error> {
    let mut plan = Plan::new(&forget.thread, forget.before);
    (plan.only_ask, plan.version, plan.files) = (false, forget.version, forget.drops_files());
    let entries = forget.record.iter();
    plan.record = entries.map(|e| EntryPlan { seq: e.seq, hash: e.hash.clone(), entry: json::write(e) }).collect();
    let checkpoint = forget.checkpoint.as_ref().map(json::write).unwrap_or_default();
    if forget.checkpoint.is_none() {
        // Only a finished thread is deleted, so no action is added between this read and the script.
        let texts: Vec<Vec<u8>> = store.link.command(cmd("HVALS").arg(ThreadKey::Actions.of(&forget.thread))).await?;
        let read = texts.iter().filter_map(|stored| json::read::<ActionRecord>("an action", stored).ok());
        plan.approvals.extend(read.map(|record| record.approval.to_string()));
    }
    let forgotten = call(store, &forget.thread, &plan, &checkpoint).await?;
    if forgotten && plan.files {
        files::let_go(store, forget.thread.partition()).await?;
    }
    Ok(forgotten)
}

async fn call(store: &RedisStore, thread: &ThreadId, plan: &Plan, checkpoint: &str) -> Result<bool, Error> {
    let call = Call::on_thread(&store.scripts.forget, thread).arg(json::write(plan)).arg(checkpoint);
    Ok(store.link.script::<i64>(&call).await? == 1)
}

fn micros(at: Timestamp) -> i64 {
    at.millis().saturating_mul(1000)
}
