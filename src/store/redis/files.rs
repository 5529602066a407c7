//! Blobs, and files with the threads that show them.
//!
//! A thread and a file may be in different partitions, which no script can access together. A
//! thread whose files are deleted therefore first records, in its own partition, the files that it
//! releases. Then each file is updated, and deleted if no thread shows it any more. Work that one
//! process leaves unfinished is completed by the next one.

use countersign_core::{hash::sha256, ids::Partition};
use countersign_graph::store::{Error, Keep};
use redis::cmd;

use super::{
    RedisStore,
    keys::{self, PartitionKey, ThreadKey},
    scripts::Call,
};

/// Implements [`countersign_graph::store::Store::put_blob`].
pub(super) async fn put_blob(store: &RedisStore, bytes: &[u8], keep: Keep<'_>) -> Result<String, Error> {
    let hash = hex::encode(sha256(bytes));
    let key = keys::blob(&hash);
    let mut set = redis::pipe();
    set.atomic();
    match keep {
        // The later expiry wins, and a permanent blob stays permanent.
        Keep::For(time) => {
            let time = u64::try_from(time.as_millis()).unwrap_or(u64::MAX).clamp(1, i64::MAX as u64 / 2);
            set.cmd("SET").arg(&key).arg(bytes).arg("NX").arg("PX").arg(time).ignore();
            set.cmd("PEXPIRE").arg(&key).arg(time).arg("GT").ignore();
        }
        Keep::Permanently => {
            set.cmd("SET").arg(&key).arg(bytes).ignore();
        }
        Keep::WithThread(thread) => {
            let mut of_thread = redis::pipe();
            of_thread.atomic();
            of_thread.srem(PartitionKey::LetGo.of(thread.partition()), keys::let_go(&hash, thread)).ignore();
            of_thread.sadd(ThreadKey::Files.of(thread), &hash).ignore();
            store.link.write(&of_thread).await?;
            set.sadd(keys::shown_in(&hash), thread.to_string()).ignore();
            set.set(keys::file(&hash), bytes).ignore();
        }
    }
    store.link.write(&set).await?;
    Ok(hash)
}

/// Implements [`countersign_graph::store::Store::get_blob`].
pub(super) async fn get_blob(store: &RedisStore, hash: &str) -> Result<Option<Vec<u8>>, Error> {
    let get = cmd("MGET").arg(keys::blob(hash)).arg(keys::file(hash)).to_owned();
    let found: Vec<Option<Vec<u8>>> = store.link.command(&get).await?;
    Ok(found.into_iter().flatten().next())
}

/// Removes the threads of a partition from the files that they have released.
pub(super) async fn let_go(store: &RedisStore, partition: Partition) -> Result<(), Error> {
    let list = PartitionKey::LetGo.of(partition);
    let members: Vec<String> = store.link.command(cmd("SMEMBERS").arg(&list)).await?;
    for member in members {
        let Some((hash, thread)) = keys::read_let_go(&member) else { continue };
        let call = Call::on_partition(&store.scripts.drop_file, Partition::of(hash));
        let call = call.key(keys::shown_in(hash)).key(keys::file(hash)).arg(thread);
        store.link.script::<i64>(&call).await?;
        store.link.command::<i64>(cmd("SREM").arg(&list).arg(&member)).await?;
    }
    Ok(())
}
