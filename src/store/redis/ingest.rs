//! Stores deliveries: one script checks the deduplication keys, stores the delivery and wakes its
//! thread.

use countersign_core::{ids::DedupKey, recent::Recent};
use countersign_graph::store::{Acquired, Delivery, Destination, Error, Holder, Ingested, Seq};

use super::{
    RedisStore, json, keys,
    lease::{AcquiredAnswer, read_acquired},
    scripts::Call,
};

/// The deduplication keys of the deliveries that this process has stored, each with the number of the connection: another
/// one may lead to another server. Slack often reports a message twice, as a message and as a mention.
pub(super) type Deliveries = Recent<DedupKey, u64>;

/// Implements [`countersign_graph::store::Store::ingest`], and leases the thread if there is a holder.
pub(super) async fn ingest(
    store: &RedisStore,
    delivery: &Delivery,
    holder: Option<&Holder>,
) -> Result<(Ingested, Option<Acquired>), Error> {
    let partition = match &delivery.to {
        Destination::Mailbox { thread, .. } => thread.partition(),
        Destination::Inbox { partition, .. } => *partition,
    };
    let connection = store.link.connection_number(partition);
    if delivery.dedup.iter().any(|key| store.deliveries.get(key) == Some(connection)) {
        return Ok((Ingested::Duplicate, None));
    }
    let at = delivery.at.millis();
    let call = match &delivery.to {
        Destination::Mailbox { thread, addressed, message, graph } => {
            let call = Call::on_thread(&store.scripts.ingest_message, thread)
                .arg(thread.to_string())
                .arg(at)
                .arg(json::flag(*addressed))
                .arg(json::write(message))
                .arg(keys::parked("", thread))
                .arg(graph.as_str());
            with_holder(call, holder)
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
    let (what, seq, acquired): (String, Seq, Option<AcquiredAnswer>) = store.link.script(&call).await?;
    let ingested = match what.as_str() {
        "new" => Ingested::New(seq),
        "parked" => Ingested::Parked(seq),
        "duplicate" => Ingested::Duplicate,
        other => return Err(json::corrupt(format!("a delivery is `{other}`"))),
    };
    if ingested != Ingested::Duplicate {
        delivery.dedup.iter().for_each(|key| store.deliveries.set(key.clone(), connection));
    }
    let acquired = match (acquired, holder, &delivery.to) {
        // If a message cannot be set aside, the thread is leased all the same, until its lease ends.
        (Some(answer), Some(holder), Destination::Mailbox { thread, .. }) => {
            Box::pin(read_acquired(store, &holder.worker, thread, answer)).await.ok()
        }
        _ => None,
    };
    Ok((ingested, acquired))
}

/// Adds the worker that leases the thread, for how long, and the present; or that there is none.
pub(super) fn with_holder<'a>(call: Call<'a>, holder: Option<&Holder>) -> Call<'a> {
    match holder {
        Some(Holder { worker, ttl, now }) => call.arg(worker.as_str()).arg(json::micros(*ttl)).arg(now.millis()),
        None => call.arg("").arg("").arg(""),
    }
}
