//! Stores deliveries: one script checks the deduplication keys, stores the delivery and wakes its
//! thread.

use countersign_graph::store::{Delivery, Destination, Error, Ingested, Seq};

use super::{RedisStore, json, keys, scripts::Call};

/// Implements [`countersign_graph::store::Store::ingest`].
pub(super) async fn ingest(store: &RedisStore, delivery: &Delivery) -> Result<Ingested, Error> {
    let at = delivery.at.millis();
    let call = match &delivery.to {
        Destination::Mailbox { thread, addressed, message, graph } => {
            Call::on_thread(&store.scripts.ingest_message, thread)
                .arg(thread.to_string())
                .arg(at)
                .arg(json::flag(*addressed))
                .arg(json::write(message))
                .arg(keys::parked("", thread))
                .arg(graph.as_str())
        }
        Destination::Inbox { partition, entry, claim } => {
            let claim_us = claim.as_ref().map_or(0, |(_, ttl)| json::micros(*ttl));
            Call::on_partition(&store.scripts.ingest_interaction, *partition)
                .arg(at)
                .arg(json::write(entry))
                .arg(claim_us)
        }
    };
    let call = delivery.dedup.iter().fold(call, |call, key| call.arg(key.as_str()));
    let (what, seq): (String, Seq) = store.link.script(&call).await?;
    match what.as_str() {
        "new" => Ok(Ingested::New(seq)),
        "parked" => Ok(Ingested::Parked(seq)),
        "duplicate" => Ok(Ingested::Duplicate),
        other => Err(json::corrupt(format!("a delivery is `{other}`"))),
    }
}
