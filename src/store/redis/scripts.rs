//! The Lua scripts: one for each operation, each atomic within one partition.
//!
//! A script consists of the names of its keys (from [`super::keys`]), its constants, the functions of
//! `common.lua` that it uses, and its own file. It is called by its hash. A server that does not
//! have it, because it is new or was restarted, is sent the text once.

use countersign_core::ids::{Partition, ThreadId};
use countersign_graph::store::TRIED_OFTEN;
use redis::{FromRedisValue, RedisResult, ScriptInvocation, ToRedisArgs, aio::ConnectionLike};

use super::keys::{HINTS, ScriptKeys};

/// The functions that scripts have in common. They are separated by blank lines, and each uses only
/// those before it.
const COMMON: &str = include_str!("scripts/common.lua");

/// A script, with the keys that it uses.
#[derive(Debug)]
pub(super) struct Script {
    script: redis::Script,
    keys: ScriptKeys,
}

impl Script {
    /// Assembles a script from its own file.
    fn new(body: &str) -> Self {
        let code = with_common_functions(body);
        let keys = ScriptKeys::named_in(&code);
        let constants = format!("local TRIED_OFTEN = {TRIED_OFTEN}\nlocal HINTS = '{HINTS}'\n");
        Self { script: redis::Script::new(&(keys.lua_names() + &constants + &code)), keys }
    }
}

/// Returns a script after the functions of `common.lua` that it uses, directly or through others.
fn with_common_functions(body: &str) -> String {
    let mut code = body.to_owned();
    for function in COMMON.rsplit("\n\n") {
        if name_of(function).is_some_and(|name| code.contains(&format!("{name}("))) {
            code = format!("{function}\n\n{code}");
        }
    }
    code
}

/// Returns the name of a function of `common.lua`.
fn name_of(function: &str) -> Option<&str> {
    let (_, rest) = function.split_once("local function ")?;
    Some(rest.split_once('(')?.0)
}

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
                Self { $($name: Script::new(include_str!(concat!("scripts/", stringify!($name), ".lua"))),)* }
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
    /// Prepares a call of `script` with its keys of a partition.
    pub(super) fn on_partition(script: &'a Script, partition: Partition) -> Self {
        let mut invocation = script.script.prepare_invoke();
        invocation.key(script.keys.of_partition(partition));
        Self(invocation)
    }

    /// Prepares a call of `script` with its keys of a thread and the thread's partition.
    pub(super) fn on_thread(script: &'a Script, thread: &ThreadId) -> Self {
        let mut invocation = script.script.prepare_invoke();
        invocation.key(script.keys.of_thread(thread));
        Self(invocation)
    }

    /// Adds a key after those that the script names.
    pub(super) fn key(mut self, key: String) -> Self {
        self.0.key(key);
        self
    }

    /// Adds an argument.
    pub(super) fn arg(mut self, arg: impl ToRedisArgs) -> Self {
        self.0.arg(arg);
        self
    }

    /// Adds the length of a list, and the arguments for each of its items.
    pub(super) fn list<T>(self, items: &[T], add: impl Fn(Self, &T) -> Self) -> Self {
        items.iter().fold(self.arg(items.len()), add)
    }

    /// Calls the script by its hash, and sends its text if the server does not have it.
    pub(super) async fn invoke<T: FromRedisValue>(&self, connection: &mut impl ConnectionLike) -> RedisResult<T> {
        self.0.invoke_async(connection).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_has_the_common_functions_that_it_uses() {
        let parts: Vec<_> = COMMON.split("\n\n").map(name_of).collect();
        assert_eq!(parts.iter().filter(|name| name.is_none()).count(), 1, "the first part is a comment: {parts:?}");
        let code = with_common_functions("index_outbox(thread)");
        let has: Vec<_> = parts.iter().flatten().filter(|name| code.contains(&format!("function {name}("))).collect();
        assert_eq!(has, [&"hint", &"read_outbox", &"to_send", &"index_outbox"]);
    }
}
