//! Unreadable entries, which are set aside so that they hold up nothing else.

use countersign_core::{
    clock::{Clock as _, SystemClock, Timestamp},
    ids::{Partition, ThreadId},
};
use countersign_graph::store::{Error, Unreadable};
use redis::cmd;
use serde::{Deserialize, Serialize};

use super::{RedisStore, json, keys::PartitionKey, scripts::Call};
use crate::aside::StoredPlace;

/// The reason why an entry cannot be read, and the time at which this was found; stored next to the
/// entry.
#[derive(Serialize, Deserialize)]
struct Note {
    why: String,
    at: Timestamp,
}

impl Note {
    fn written(why: &str) -> String {
        json::write(&Self { why: why.to_owned(), at: SystemClock.now() })
    }
}

/// Sets an unreadable entry aside.
pub(super) async fn set(store: &RedisStore, place: &StoredPlace, why: &str) -> Result<(), Error> {
    store.unreadable.note(place, why);
    let (name, note) = (place.to_string(), Note::written(why));
    let script = &store.scripts.set_aside;
    let (call, seq, thread) = match place {
        StoredPlace::Mailbox(thread, seq) | StoredPlace::Message(thread, seq) => {
            (Call::on_thread(script, thread), *seq, thread.to_string())
        }
        StoredPlace::Inbox(partition, seq) => (Call::on_partition(script, *partition), *seq, String::new()),
        StoredPlace::Other(..) => return Ok(()),
    };
    let call = call.arg(place.kind()).arg(seq).arg(name).arg(note).arg(thread);
    store.link.script::<i64>(&call).await.map(drop)
}

/// Records an unreadable entry that stays where it is. An error is only logged.
pub(super) async fn note(store: &RedisStore, thread: &ThreadId, place: &StoredPlace, why: &str) {
    if store.unreadable.note(place, why) {
        let notes = PartitionKey::SetAsideNotes.of(thread.partition());
        let noted = cmd("HSETNX").arg(notes).arg(place.to_string()).arg(Note::written(why)).to_owned();
        if let Err(error) = store.link.command::<i64>(&noted).await {
            tracing::debug!(%error, "Cannot record an unreadable entry");
        }
    }
}

/// Implements [`countersign_graph::store::Store::unreadable`].
pub(super) async fn list(store: &RedisStore, limit: usize) -> Result<Vec<Unreadable>, Error> {
    let mut pipeline = redis::pipe();
    for partition in Partition::all() {
        pipeline.hgetall(PartitionKey::SetAsideNotes.of(partition));
    }
    let found: Vec<Vec<(String, String)>> = store.link.pipeline(&pipeline).await?;
    let mut list: Vec<Unreadable> = found
        .into_iter()
        .flatten()
        .map(|(place, note)| match serde_json::from_str(&note) {
            Ok(Note { why, at }) => Unreadable { place, why, since: at },
            Err(_) => Unreadable { place, why: "nobody knows".to_owned(), since: Timestamp(0) },
        })
        .collect();
    list.sort_by(|a, b| (a.since, &a.place).cmp(&(b.since, &b.place)));
    list.truncate(limit);
    Ok(list)
}

/// Puts back the entries that this process can read and did not set aside itself.
pub(super) async fn put_back(store: &RedisStore) -> Result<(), Error> {
    let mut pipeline = redis::pipe();
    for partition in Partition::all() {
        pipeline.hkeys(PartitionKey::SetAside.of(partition));
    }
    let names: Vec<Vec<String>> = store.link.pipeline(&pipeline).await?;
    for (partition, names) in Partition::all().zip(names) {
        for name in names {
            let Ok(place) = name.parse::<StoredPlace>() else { continue };
            if store.unreadable.has(&place) {
                continue;
            }
            let get = cmd("HGET").arg(PartitionKey::SetAside.of(partition)).arg(&name).to_owned();
            let content: Option<Vec<u8>> = store.link.command(&get).await?;
            if content.is_some_and(|content| place.can_hold(contents_of(&place, &content))) {
                restore(store, &place, &name).await?;
            }
        }
    }
    Ok(())
}

/// Returns the contents of an entry. In the inbox, they follow the time of arrival and a space.
pub(super) fn contents_of<'a>(place: &StoredPlace, content: &'a [u8]) -> &'a [u8] {
    match place {
        StoredPlace::Inbox(..) => {
            content.iter().position(|byte| *byte == b' ').map_or(content, |space| &content[space + 1..])
        }
        _ => content,
    }
}

async fn restore(store: &RedisStore, place: &StoredPlace, name: &str) -> Result<(), Error> {
    let call = match place {
        StoredPlace::Mailbox(thread, seq) | StoredPlace::Message(thread, seq) => {
            Call::on_thread(&store.scripts.put_back, thread)
                .arg(place.kind())
                .arg(*seq)
                .arg(name)
                .arg(thread.to_string())
        }
        StoredPlace::Inbox(partition, seq) => {
            Call::on_partition(&store.scripts.put_back, *partition).arg(place.kind()).arg(*seq).arg(name)
        }
        StoredPlace::Other(..) => return Ok(()),
    };
    store.link.script::<i64>(&call).await?;
    tracing::info!(place = %place, "An entry that was unreadable before can be read now and is put back");
    Ok(())
}
