//! Adds labels to the actions of a store from before labels existed. This is done once.
//!
//! Adding a label again is harmless. An action that changes in the meantime may keep a label with
//! its former status; readers check the record as well and ignore it. A record that cannot be read
//! gets no labels, so one damaged record does not prevent the start.

use countersign_core::ids::{ActionId, Partition, ThreadId};
use countersign_graph::store::Error;
use redis::cmd;

use super::{
    connection::Link,
    json,
    keys::{self, PartitionKey, ThreadKey},
};

/// The number of actions that are read at a time.
const BATCH: usize = 200;

/// Adds labels to the actions of all partitions that are not labeled yet.
pub(super) async fn bring_up_to_date(link: &Link) -> Result<(), Error> {
    let mut pipeline = redis::pipe();
    for partition in Partition::all() {
        pipeline.exists(keys::labelled(partition));
    }
    let done: Vec<bool> = link.pipeline(&pipeline).await?;
    for (partition, done) in Partition::all().zip(done) {
        if !done {
            label(link, partition).await?;
        }
    }
    Ok(())
}

async fn label(link: &Link, partition: Partition) -> Result<(), Error> {
    let index: Vec<String> =
        link.command(cmd("ZRANGE").arg(PartitionKey::ActionIndex.of(partition)).arg(0).arg(-1)).await?;
    let names: Vec<&str> = index.iter().filter_map(|member| Some(member.split_once(' ')?.1)).collect();
    for names in names.chunks(BATCH) {
        let mut pipeline = redis::pipe();
        for name in names {
            // Names that cannot be parsed are queried as well, so that the answers match the names.
            let (thread, id) = keys::read_action(name).unwrap_or_else(no_action);
            pipeline.hget(ThreadKey::Actions.of(&thread), id.as_str());
        }
        let records: Vec<Option<Vec<u8>>> = link.pipeline(&pipeline).await?;
        let mut members = Vec::new();
        for (name, record) in names.iter().zip(records) {
            let Some(record) = record else { continue };
            let record = match json::read_record(&record) {
                Ok(record) => record,
                Err(error) => {
                    tracing::error!(
                        error = countersign_core::cause::chain(&error),
                        action = name,
                        "A stored action cannot be read and is not labelled"
                    );
                    continue;
                }
            };
            members.extend(record.labels().iter().map(|label| format!("{label} {} {name}", record.status)));
        }
        if members.is_empty() {
            continue; // nothing to send
        }
        let mut pipeline = redis::pipe();
        for member in members {
            pipeline.zadd(PartitionKey::ActionLabels.of(partition), member, 0).ignore();
        }
        link.write(&pipeline).await?;
    }
    if names.is_empty() {
        return Ok(()); // later actions are written with their labels
    }
    let mut done = redis::pipe();
    done.set(keys::labelled(partition), 1);
    link.write(&done).await
}

/// Returns a thread and an id that belong to no action.
fn no_action() -> (ThreadId, ActionId) {
    (ThreadId { team: "".into(), channel: "".into(), root: "".into() }, ActionId::from(""))
}
