//! The Lua scripts: one for each operation, each atomic within one partition.
//!
//! A script consists of the names of its keys (from [`keys`]), its constants, `common.lua`, and its
//! own file. It is called by its hash. A server that does not have it, because it is new or was
//! restarted, is sent the text once.

use countersign_core::ids::{Partition, ThreadId};
use countersign_graph::store::TRIED_OFTEN;
use redis::{FromRedisValue, RedisResult, Script, ScriptInvocation, ToRedisArgs, aio::ConnectionLike};

use super::keys;

/// Declares the scripts, each with its file.
macro_rules! scripts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// All scripts, ready to be called.
        #[derive(Debug)]
        pub(super) struct Scripts {
            $($(#[$doc])* pub(super) $name: Script,)*
        }

        impl Scripts {
            /// Assembles the scripts.
            pub(super) fn new() -> Self {
                let often = format!("local TRIED_OFTEN = {TRIED_OFTEN}\n");
                let head = keys::lua_names() + &often + include_str!("scripts/common.lua");
                let script = |body: &str| Script::new(&format!("{head}\n{body}"));
                Self { $($name: script(include_str!(concat!("scripts/", stringify!($name), ".lua"))),)* }
            }
        }
    };
}

scripts! {
    /// Stores a message for a thread.
    ingest_message,
    /// Stores an entry for the inbox.
    ingest_interaction,
    /// Leases a thread.
    acquire,
    /// Extends a lease.
    renew,
    /// Reads the mailbox with a lease.
    messages,
    /// Reads the mailbox without a lease.
    unread,
    /// Reads the checkpoint without a lease.
    load,
    /// Writes changes, with or without a lease.
    commit,
    /// Claims interactions.
    claim_interaction,
    /// Removes an interaction.
    finish_interaction,
    /// Postpones an interaction.
    retry_interaction,
    /// Moves an interaction to the dead letters.
    fail_interaction,
    /// Claims the next message of a thread.
    claim_outbox,
    /// Records the result of sending a message.
    finish_outbox,
    /// Checks that the claim of an outgoing message is still valid.
    holds_outbox,
    /// Puts a dead letter back.
    send_again,
    /// Moves due timers to the inbox.
    fire_timers,
    /// Deletes the data of a finished thread.
    forget,
    /// Releases a file that a thread no longer shows.
    drop_file,
    /// Deletes a parked message.
    drop_parked,
    /// Sets a register.
    set_register,
    /// Sets an unreadable entry aside.
    set_aside,
    /// Puts an unreadable entry back.
    put_back,
}

/// One call of a script.
pub(super) struct Call<'a>(ScriptInvocation<'a>);

impl<'a> Call<'a> {
    /// Prepares a call of `script` with the keys of a partition.
    pub(super) fn on_partition(script: &'a Script, partition: Partition) -> Self {
        let mut invocation = script.prepare_invoke();
        invocation.key(keys::of_partition(partition));
        Self(invocation)
    }

    /// Prepares a call of `script` with the keys of a thread and its partition.
    pub(super) fn on_thread(script: &'a Script, thread: &ThreadId) -> Self {
        let mut invocation = script.prepare_invoke();
        invocation.key(keys::of_thread(thread));
        Self(invocation)
    }

    /// Adds a key.
    pub(super) fn key(mut self, key: String) -> Self {
        self.0.key(key);
        self
    }

    /// Adds an argument.
    pub(super) fn arg(mut self, arg: impl ToRedisArgs) -> Self {
        self.0.arg(arg);
        self
    }

    /// Calls the script by its hash, and sends its text if the server does not have it.
    pub(super) async fn invoke<T: FromRedisValue>(&self, connection: &mut impl ConnectionLike) -> RedisResult<T> {
        self.0.invoke_async(connection).await
    }
}
