//! `countersign fork`: replays a thread as a copy, from one of its steps on. Nothing outside is read or changed.
//!
//! The copy begins with the checkpoint of the step, which `countersign trace` lists. It goes on with the nodes of this
//! program, in a store that is deleted at the end. A tool gives the answer that it gave in the thread; a read that is
//! not on record fails and says so, and every change is refused ([`record`]). What a language model answered is not on
//! record, so the documented phrases are used in its place.
//!
//! The real store is only read. A copy in it, beside the thread, was rejected: the bot would take up the copy, and owe
//! its messages, its cards and its timers.

mod record;
mod replay;

use std::sync::Arc;

use anyhow::{Context as _, bail};
use countersign_config::Config;
use countersign_core::{
    clock::SystemClock,
    ids::{CHAT, ThreadId},
};
use countersign_graph::{
    json::Json,
    store::{ActionFilter, Saved, StepRecord, Store, Version},
};
use serde_json::{Value, json};

use self::{record::Record, replay::Replay};
use super::{dependencies, keys};

/// The maximum number of steps that are read at once.
const STEPS_AT_ONCE: usize = 500;

/// The maximum number of cards whose titles are read.
const MAX_CARDS: usize = 1000;

/// Replays a thread of the configured store from the step `at`, or from its last step, and says these messages in the
/// copy. Returns the report.
///
/// # Errors
///
/// If there is no such thread or step, its steps were deleted, messages are to be said in a thread that is no
/// conversation, or the store cannot be read.
pub async fn run(config: &Config, thread: &ThreadId, at: Option<Version>, say: &[String]) -> anyhow::Result<Value> {
    let store = dependencies::store_to_read(config, Arc::new(SystemClock)).await?;
    let store = keys::checked_to_read(store.clone(), config)?.unwrap_or(store);
    let number = number_of(&*store, thread, at).await?;
    let mut record = Record::as_of(number);
    let mut found = None;
    each_checkpoint(&*store, thread, |version, step, checkpoint| {
        record.learn(version, &checkpoint["state"]["turn"]);
        if version == number {
            found = Some((step.clone(), checkpoint.clone()));
        }
    })
    .await?;
    let (step, mut checkpoint) = found.context("its steps are not complete")?;
    let graph = checkpoint["graph"].as_str().unwrap_or(CHAT).to_owned();
    if graph != CHAT && !say.is_empty() {
        bail!("thread {thread} belongs to the graph `{graph}`, so nothing can be said in its copy; leave out --say");
    }
    let cards = store.actions(&ActionFilter::of(thread, &[], MAX_CARDS)).await?;
    let closed = close(&mut checkpoint).into_iter().map(|id| {
        let card = cards.iter().find(|card| card.id.as_str() == id);
        json!({ "action": id, "title": card.map(|card| card.card.title.as_str()) })
    });
    let mut report = json!({
        "copy_of": thread.to_string(),
        "step": number,
        "node": step.node,
        "at": step.at.to_string(),
        "closed": closed.collect::<Vec<_>>(),
        "checkpoint": checkpoint,
    });
    if graph == CHAT {
        let (mut replay, rest) = Replay::start(config, &*store, thread, step, &checkpoint, record).await?;
        let mut turns = Vec::from_iter(rest);
        for words in say {
            turns.push(replay.say(words).await?);
        }
        report["on_record"] = replay.on_record();
        report["turns"] = turns.into();
    }
    Ok(report)
}

/// Returns the number of the step to copy, if there is such a step.
async fn number_of(store: &dyn Store, thread: &ThreadId, at: Option<Version>) -> anyhow::Result<Version> {
    let Some(saved) = store.load(thread).await? else {
        bail!("there is no thread {thread} in this store; `countersign trace` lists the threads");
    };
    saved.check_format(thread)?;
    let (last, first) = (saved.version, store.steps(thread, 0, 1).await?);
    if last > 0 && first.first().is_none_or(|(version, _)| *version != 1) {
        bail!("the first steps of thread {thread} were deleted (record.keep), so it can't be replayed");
    }
    match at.unwrap_or(last) {
        number if (1..=last).contains(&number) => Ok(number),
        number => bail!(
            "thread {thread} has no step {number}; it has {last}, each with its `version` in `countersign trace {thread}`"
        ),
    }
}

/// Shows the steps of a thread, oldest first, each with the checkpoint after it.
pub(super) async fn each_checkpoint(
    store: &dyn Store,
    thread: &ThreadId,
    mut show: impl FnMut(Version, &StepRecord, &Value),
) -> anyhow::Result<()> {
    let (mut newest, mut checkpoint) = (0, Value::Null);
    loop {
        let steps = store.steps(thread, newest, STEPS_AT_ONCE).await?;
        if steps.is_empty() {
            return Ok(());
        }
        for (version, step) in steps {
            let snapshot = (!checkpoint.is_null()).then(|| Json::of(&checkpoint));
            let saved = Saved { version, snapshot, deltas: vec![step.delta.clone()] };
            checkpoint = saved.restore().context("its steps are not complete")?;
            show(version, &step, &checkpoint);
            newest = version;
        }
    }
}

/// Closes what waits for a person or an event, and ends a turn that carries out a change. Returns the actions of both.
fn close(checkpoint: &mut Value) -> Vec<String> {
    let cursor = &checkpoint["cursor"];
    let in_hand = [&cursor["performing"]["action"], &cursor["at"]["ended"]].map(Value::as_str);
    let in_hand = in_hand.into_iter().flatten().map(str::to_owned).next();
    let Some(members) = checkpoint.as_object_mut() else { return Vec::new() };
    if in_hand.is_some() {
        members.insert("cursor".to_owned(), json!("idle"));
    }
    members.remove("with_buttons");
    let waiting = members.remove("suspended").unwrap_or_default();
    let waiting = waiting.as_object().into_iter().flatten().filter_map(|(_, waits)| waits["action"].as_str());
    in_hand.into_iter().chain(waiting.map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_nothing_open() {
        let mut checkpoint = json!({
            "cursor": { "performing": { "action": "a1", "node": "respond" } },
            "suspended": { "00ff": { "action": "a2", "run": "r", "node": "respond", "turn": {} } },
            "with_buttons": [{ "wait_for": "it" }],
            "turns": 2,
        });
        assert_eq!(close(&mut checkpoint), ["a1", "a2"]);
        assert_eq!(checkpoint, json!({ "cursor": "idle", "turns": 2 }));

        let mut after_change = json!({ "cursor": { "at": { "node": "respond", "ended": "a3" } } });
        assert_eq!(close(&mut after_change), ["a3"]);
        assert_eq!(after_change, json!({ "cursor": "idle" }));
    }

    #[test]
    fn a_turn_that_reads_goes_on_in_the_copy() {
        let mut checkpoint = json!({ "cursor": { "at": { "node": "gather" } } });
        assert!(close(&mut checkpoint).is_empty());
        assert_eq!(checkpoint["cursor"]["at"]["node"], "gather");
    }
}
