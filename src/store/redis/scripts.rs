//! The Lua scripts: one for each operation, each atomic within one partition.
//!
//! A script consists of the names of its keys (from [`super::keys`]), its constants, the functions of
//! `common.lua` that it uses, and its own file. It is called by its hash. A server that does not
//! have it, because it is new or was restarted, is sent the text once.

use countersign_core::ids::{Partition, ThreadId};
use countersign_graph::store::TRIED_OFTEN;
use redis::{Cmd, FromRedisValue, RedisResult, ServerErrorKind, ToRedisArgs, aio::ConnectionLike};

use super::keys::{HINTS, ScriptKeys};

/// The functions that scripts have in common. They are separated by blank lines, and each uses only
/// those before it.
const COMMON: &str = include_str!("scripts/common.lua");

/// The effect of a script, which decides what its answer has to promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It changes nothing.
    Read,
    /// It records something that has happened in any case. It runs on every server.
    Record,
    /// It stores something, or hands out work. It runs only on a server that preserves acknowledged writes.
    Promise,
}

/// A script, with the keys that it uses.
#[derive(Debug)]
pub(super) struct Script {
    script: redis::Script,
    keys: ScriptKeys,
    effect: Effect,
}

impl Script {
    /// Assembles a script from its own file.
    fn new(body: &str, effect: Effect) -> Self {
        let code = with_common_functions(body);
        let keys = ScriptKeys::named_in(&code);
        let constants = format!("local TRIED_OFTEN = {TRIED_OFTEN}\nlocal HINTS = '{HINTS}'\n");
        Self { script: redis::Script::new(&(keys.lua_names() + &constants + &code)), keys, effect }
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

/// Declares the scripts, each with its file and its effect.
macro_rules! scripts {
    ($($(#[$doc:meta])* $name:ident: $effect:ident,)*) => {
        /// All scripts, ready to be called.
        #[derive(Debug)]
        pub(super) struct Scripts {
            $($(#[$doc])* pub(super) $name: Script,)*
        }

        impl Scripts {
            /// Assembles the scripts.
            pub(super) fn new() -> Self {
                Self {
                    $($name: Script::new(
                        include_str!(concat!("scripts/", stringify!($name), ".lua")),
                        Effect::$effect,
                    ),)*
                }
            }
        }
    };
}

scripts! {
    /// Stores a message for a thread.
    ingest_message: Promise,
    /// Stores an entry for the inbox.
    ingest_interaction: Promise,
    /// Leases a thread.
    acquire: Promise,
    /// Extends a lease.
    renew: Record,
    /// Reads the mailbox with a lease.
    messages: Read,
    /// Reads the mailbox without a lease.
    unread: Read,
    /// Reads the checkpoint without a lease.
    load: Read,
    /// Writes changes, with or without a lease.
    commit: Promise,
    /// Looks for actions by their labels in all partitions, and reads a register.
    find_labels: Read,
    /// Claims interactions.
    claim_interaction: Promise,
    /// Removes an interaction.
    finish_interaction: Record,
    /// Postpones an interaction.
    retry_interaction: Record,
    /// Moves an interaction to the dead letters.
    fail_interaction: Record,
    /// Claims the next message of a thread.
    claim_outbox: Promise,
    /// Records the result of sending a message.
    finish_outbox: Record,
    /// Checks that the claim of an outgoing message is still valid.
    holds_outbox: Read,
    /// Puts a dead letter back.
    send_again: Record,
    /// Moves due timers to the inbox.
    fire_timers: Record,
    /// Deletes the data of a finished thread.
    forget: Promise,
    /// Releases a file that a thread no longer shows.
    drop_file: Record,
    /// Deletes a parked message.
    drop_parked: Record,
    /// Sets a register.
    set_register: Promise,
    /// Sets an unreadable entry aside.
    set_aside: Record,
    /// Puts an unreadable entry back.
    put_back: Record,
}

/// One call of a script.
pub(super) struct Call<'a> {
    script: &'a Script,
    partition: Partition,
    keys: Vec<String>,
    args: Vec<Vec<u8>>,
    is_patient: bool,
}

impl<'a> Call<'a> {
    /// Prepares a call of `script` with its keys of a partition.
    pub(super) fn on_partition(script: &'a Script, partition: Partition) -> Self {
        let keys = script.keys.of_partition(partition);
        Self { script, partition, keys, args: Vec::new(), is_patient: true }
    }

    /// Prepares a call of `script` with its keys of a thread and the thread's partition.
    pub(super) fn on_thread(script: &'a Script, thread: &ThreadId) -> Self {
        let partition = thread.partition();
        let keys = script.keys.of_thread(thread, partition);
        Self { script, partition, keys, args: Vec::new(), is_patient: true }
    }

    /// Adds a key after those that the script names.
    pub(super) fn key(mut self, key: String) -> Self {
        self.keys.push(key);
        self
    }

    /// Adds an argument.
    pub(super) fn arg(mut self, arg: impl ToRedisArgs) -> Self {
        arg.write_redis_args(&mut self.args);
        self
    }

    /// Adds the length of a list, and the arguments for each of its items.
    pub(super) fn list<T>(self, items: &[T], add: impl Fn(Self, &T) -> Self) -> Self {
        items.iter().fold(self.arg(items.len()), add)
    }

    /// Gives up at once if the partition is being moved to another server. The caller has others to turn to.
    pub(super) fn at_once(self) -> Self {
        Self { is_patient: false, ..self }
    }

    /// Returns false after [`Self::at_once`].
    pub(super) fn is_patient(&self) -> bool {
        self.is_patient
    }

    /// Returns the effect of the script.
    pub(super) fn effect(&self) -> Effect {
        self.script.effect
    }

    /// Returns the partition that the script accesses.
    pub(super) fn partition(&self) -> Partition {
        self.partition
    }

    /// Returns the command that calls the script by its hash. `guard` is a key that the script does not use.
    pub(super) fn command(&self, guard: Option<&str>) -> Cmd {
        let hash = self.script.script.get_hash();
        // The scripts count the keys that they name from the beginning, and others from the end.
        let (named, others) = self.keys.split_at(self.script.keys.count().min(self.keys.len()));
        let keys = self.keys.len() + guard.iter().len();
        let data = self.keys.iter().map(String::len).chain(self.args.iter().map(Vec::len)).sum::<usize>();
        let guard_length = guard.map_or(0, str::len);
        let mut command = Cmd::with_capacity(3 + keys + self.args.len(), data + guard_length + hash.len() + 16);
        command.arg("EVALSHA").arg(hash).arg(keys).arg(named).arg(guard).arg(others).arg(&*self.args);
        command
    }

    /// Sends the text of the script to a server that does not have it.
    pub(super) async fn load(&self, connection: &mut impl ConnectionLike) -> RedisResult<()> {
        self.script.script.load_async(connection).await.map(drop)
    }

    /// Calls the script by its hash, and sends its text if the server does not have it.
    pub(super) async fn invoke<T: FromRedisValue>(&self, connection: &mut impl ConnectionLike) -> RedisResult<T> {
        let command = self.command(None);
        match command.query_async(connection).await {
            Err(error) if error.kind() == ServerErrorKind::NoScript.into() => {
                self.load(connection).await?;
                command.query_async(connection).await
            }
            result => result,
        }
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
