//! The scripts: one for each operation, atomic on one partition.
//!
//! A script is the names of its keys (from [`keys`]), the numbers it goes by, `common.lua`, and its own file. It is called by its hash; a server
//! that does not know it (new, or started again) is sent the text, once.

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
            /// Puts the scripts together.
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
    /// Mail for a thread.
    ingest_mail,
    /// Something for the inbox.
    ingest_interaction,
    /// Leases a thread.
    acquire,
    /// Lengthens a lease.
    renew,
    /// Reads the mailbox under a lease.
    letters,
    /// Reads the mailbox without a lease.
    unread,
    /// Reads the checkpoint without a lease.
    load,
    /// Writes changes, under a lease or without.
    commit,
    /// Claims interactions.
    claim_interaction,
    /// Takes an interaction away.
    finish_interaction,
    /// Leaves an interaction alone for a while.
    retry_interaction,
    /// Keeps an interaction as a dead letter.
    fail_interaction,
    /// Claims what a thread says next.
    claim_outbox,
    /// Records what became of it.
    finish_outbox,
    /// Whether a claim of what a thread says still holds.
    holds_outbox,
    /// Puts a dead letter back.
    send_again,
    /// Puts due timers in the inbox.
    fire_timers,
    /// Drops what is kept of a finished thread.
    forget,
    /// Lets go of a file that a thread shows no more.
    drop_file,
    /// Drops a parked letter.
    drop_parked,
    /// Sets a register.
    set_register,
    /// Takes something that cannot be read out of the way.
    set_aside,
    /// Puts it back.
    put_back,
}

/// One call of a script.
pub(super) struct Call<'a>(ScriptInvocation<'a>);

impl<'a> Call<'a> {
    /// Calls `script` about a partition.
    pub(super) fn on_partition(script: &'a Script, partition: Partition) -> Self {
        let mut invocation = script.prepare_invoke();
        invocation.key(keys::of_partition(partition));
        Self(invocation)
    }

    /// Calls `script` about a thread.
    pub(super) fn on_thread(script: &'a Script, thread: &ThreadId) -> Self {
        let mut invocation = script.prepare_invoke();
        invocation.key(keys::of_thread(thread));
        Self(invocation)
    }

    /// With one key more.
    pub(super) fn key(mut self, key: String) -> Self {
        self.0.key(key);
        self
    }

    /// With an argument.
    pub(super) fn arg(mut self, arg: impl ToRedisArgs) -> Self {
        self.0.arg(arg);
        self
    }

    /// Sends it, by its hash or as a whole.
    pub(super) async fn invoke<T: FromRedisValue>(&self, connection: &mut impl ConnectionLike) -> RedisResult<T> {
        self.0.invoke_async(connection).await
    }
}
