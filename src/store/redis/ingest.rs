//! Stores deliveries: one script checks the deduplication keys, stores the delivery and wakes its
//! thread.

use countersign_core::ids::{DedupKey, GraphName};
use countersign_graph::store::{Delivery, Destination, Error, Ingested, Seq};
use serde::Serialize;

use super::{RedisStore, json, keys, scripts::Call};

#[derive(Serialize)]
struct MailboxPlan<'a> {
    thread: String,
    dedup: &'a [DedupKey],
    at: i64,
    addressed: bool,
    message: String,
    graph: &'a GraphName,
    /// The text that follows the position in [`keys::parked`].
    parked: String,
}

#[derive(Serialize)]
struct InboxPlan<'a> {
    dedup: &'a [DedupKey],
    at: i64,
    entry: String,
    claim_us: u64,
}

/// Implements [`countersign_graph::store::Store::ingest`].
pub(super) async fn ingest(store: &RedisStore, delivery: &Delivery) -> Result<Ingested, Error> {
    let (dedup, at) = (delivery.dedup.as_slice(), delivery.at.millis());
    let call = match &delivery.to {
        Destination::Mailbox { thread, addressed, message, graph } => {
            let plan = MailboxPlan {
                thread: thread.to_string(),
                dedup,
                at,
                addressed: *addressed,
                message: json::write(message),
                graph,
                parked: keys::parked("", thread),
            };
            Call::on_thread(&store.scripts.ingest_message, thread).arg(json::write(&plan))
        }
        Destination::Inbox { partition, entry, claim } => {
            let claim_us = claim.as_ref().map_or(0, |(_, ttl)| json::micros(*ttl));
            let plan = InboxPlan { dedup, at, entry: json::write(entry), claim_us };
            Call::on_partition(&store.scripts.ingest_interaction, *partition).arg(json::write(&plan))
        }
    };
    let (what, seq): (String, Seq) = store.link.script(&call).await?;
    match what.as_str() {
        "new" => Ok(Ingested::New(seq)),
        "parked" => Ok(Ingested::Parked(seq)),
        "duplicate" => Ok(Ingested::Duplicate),
        other => Err(json::corrupt(format!("a delivery is `{other}`"))),
    }
}
