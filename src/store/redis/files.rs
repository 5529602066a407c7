//! Files, and the threads that show them.
//!
//! A thread and a file may be in different partitions, which no script can access together. A
//! thread whose files are deleted therefore first records, in its own partition, the files that it
//! releases. Then each file is updated, and deleted if no thread shows it any more. Work that one
//! process leaves unfinished is completed by the next one.

use countersign_core::{
    hash::sha256,
    ids::{Partition, ThreadId},
};
use countersign_graph::store::Error;
use redis::cmd;

use super::{
    RedisStore,
    keys::{self, PartitionKey, ThreadKey},
    scripts::Call,
};

/// Implements [`countersign_graph::store::Store::put_file`].
pub(super) async fn put_file(store: &RedisStore, thread: &ThreadId, bytes: &[u8]) -> Result<String, Error> {
    let hash = hex::encode(sha256(bytes));
    let mut of_thread = redis::pipe();
    of_thread.atomic();
    of_thread.srem(PartitionKey::LetGo.of(thread.partition()), keys::let_go(&hash, thread)).ignore();
    of_thread.sadd(ThreadKey::Files.of(thread), &hash).ignore();
    store.link.write(&of_thread).await?;
    let mut of_file = redis::pipe();
    of_file.atomic();
    of_file.sadd(keys::shown_in(&hash), thread.to_string()).ignore();
    of_file.set(keys::file(&hash), bytes).ignore();
    store.link.write(&of_file).await?;
    Ok(hash)
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
