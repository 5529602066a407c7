//! The names of all keys. No other module builds key names.
//!
//! Every key begins with `countersign:{pNN}:`. The braces are a hash tag: all keys of a partition
//! share one slot, so a script that accesses one partition is atomic on Redis Cluster too. A script
//! receives the keys that it names ([`ScriptKeys`]), in the order of [`PartitionKey::ALL`] and
//! [`ThreadKey::ALL`], and no others: keys that it does not use would cost the server more than
//! most scripts do.
//!
//! Clocks: scores marked “server” are microseconds of the server's own `TIME`; scores marked
//! “people” are the milliseconds that callers pass as `now`.

use std::{collections::HashSet, fmt::Write as _, sync::LazyLock};

use countersign_core::ids::{ActionId, CommitId, Partition, ThreadId};

/// Declares an enum of keys that exist once in each partition, or once in each thread.
macro_rules! places {
    ($(#[$doc:meta])* $name:ident { $($(#[$place_doc:meta])* $place:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum $name {
            $($(#[$place_doc])* $place,)*
        }

        impl $name {
            /// All keys, in the order in which scripts receive them.
            pub(super) const ALL: &[Self] = &[$(Self::$place),*];

            fn as_str(self) -> &'static str {
                match self {
                    $(Self::$place => $text,)*
                }
            }

            fn name(self) -> &'static str {
                match self {
                    $(Self::$place => stringify!($place),)*
                }
            }
        }
    };
}

places! {
    /// A key that each partition has once.
    PartitionKey {
        /// Sorted set: thread → time from which it may be leased, server. For a leased thread, this
        /// is the end of its lease.
        Ready = "ready",
        /// Sorted set: thread → end of its wait before a retry, people.
        Waiting = "waiting",
        /// Sorted set: deduplication key → time of arrival, people.
        Dedup = "dedup",
        /// Sorted set: [`parked`] entry → time of arrival, people.
        Parked = "parked",
        /// Sorted set: position of an interaction → time from which it may be claimed, server.
        Inbox = "desk",
        /// Hash: position of an interaction → time of arrival (server), a space, and the entry.
        InboxEntries = "desk_entries",
        /// Counter: the last position in the inbox.
        InboxSeq = "desk_seq",
        /// Sorted set: thread with messages to send and none in flight → time from which the next
        /// one may be sent, people.
        Outbox = "outbox",
        /// Sorted set: thread with a message in flight → end of its claim, server.
        Sending = "sending",
        /// Sorted set: [`timer`] → time at which it is due, people.
        Timers = "timers",
        /// Hash: [`timer`] → entry that is put into the inbox when it is due.
        TimerEntries = "timer_entries",
        /// Sorted set without scores: status, a space, [`action`]. Actions of the same status are
        /// therefore sorted by age.
        ActionIndex = "action_index",
        /// Hash: approval → [`action`].
        Approvals = "approvals",
        /// Sorted set: thread of the bot → time of its last change, server.
        Recent = "recent",
        /// Sorted set without scores: label, a space, status, a space, [`action`].
        ActionLabels = "action_labels",
        /// Set: [`let_go`] of each file that a thread no longer shows, until the file is updated.
        LetGo = "let_go",
        /// Hash: position of an interaction → number of claims.
        InboxAttempts = "desk_attempts",
        /// Hash: `desk`, a space and a position, or a thread, a space and `slot:…` or `seq:…` → the
        /// dead letter.
        DeadLetters = "dead_letters",
        /// Hash: name of an unreadable entry → the entry as it was stored.
        SetAside = "set_aside",
        /// Hash: name of a message that was set aside → its [`ThreadKey::OutboxMeta`].
        SetAsideMeta = "set_aside_meta",
        /// Hash: name of an unreadable entry → reason and time. Includes entries that stay where
        /// they are.
        SetAsideNotes = "set_aside_notes",
    }
}

places! {
    /// A key that each thread has once.
    ThreadKey {
        /// Hash of single values: `ours`, `graph`, `worker`, `fence`, `version`,
        /// `snapshot_version`, `mail_seq`, `outbox_seq`, `in_flight` (the positions of the claimed messages, with spaces
        /// between), `audit_seq`, `audit_hash` (with the seal).
        Meta = "meta",
        /// Hash: position → message.
        Mailbox = "mailbox",
        /// Hash: position → parked message.
        Aside = "aside",
        /// List of steps; the step that leads to version 1 of the thread is the first.
        Steps = "steps",
        /// The last full checkpoint.
        Snapshot = "snapshot",
        /// List of audit entries.
        Audit = "audit",
        /// Hash: action → record.
        Actions = "actions",
        /// Hash: action → `revision`, `status`, `index` and `labels` of its record.
        ActionMeta = "action_meta",
        /// Hash: position → `slot`, `nonce`, `progress`, `remove`, `not_before`, `attempts`, `since`.
        OutboxMeta = "outbox_meta",
        /// Hash: position → contents of an outgoing message.
        OutboxBodies = "outbox_bodies",
        /// Hash: slot → place of its message.
        Posted = "posted",
        /// Set: the hashes of the files that the thread shows.
        Files = "files",
    }
}

impl PartitionKey {
    /// Returns the key in one partition.
    pub(super) fn of(self, partition: Partition) -> String {
        [prefix(partition), self.as_str()].concat()
    }
}

impl ThreadKey {
    /// Returns the key of one thread.
    pub(super) fn of(self, thread: &ThreadId) -> String {
        format!("{}thread:{thread}:{}", prefix(thread.partition()), self.as_str())
    }
}

/// The channel in which processes tell each other the partitions in which something is to be done.
/// It is not a key, and needs no slot.
pub(super) const HINTS: &str = "countersign:hints";

/// The keys that a script uses.
#[derive(Debug)]
pub(super) struct ScriptKeys {
    of_partition: Vec<PartitionKey>,
    of_thread: Vec<ThreadKey>,
}

impl ScriptKeys {
    /// Returns the keys that a script names: `READY`, `MAILBOX` and so on.
    pub(super) fn named_in(lua: &str) -> Self {
        let code = lua.lines().filter_map(|line| line.split("--").next());
        let words: HashSet<&str> =
            code.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')).collect();
        let used = |name: &str| words.contains(lua_name(name).as_str());
        Self {
            of_partition: PartitionKey::ALL.iter().copied().filter(|key| used(key.name())).collect(),
            of_thread: ThreadKey::ALL.iter().copied().filter(|key| used(key.name())).collect(),
        }
    }

    /// Returns the number of keys.
    pub(super) fn count(&self) -> usize {
        self.of_partition.len() + self.of_thread.len()
    }

    /// Returns Lua code that gives the keys the names that the scripts use.
    pub(super) fn lua_names(&self) -> String {
        let mut lua = String::new();
        let of_partition = self.of_partition.iter().map(|key| key.name());
        for (n, name) in of_partition.chain(self.of_thread.iter().map(|key| key.name())).enumerate() {
            writeln!(lua, "local {} = KEYS[{}]", lua_name(name), n + 1).expect("writing to a string cannot fail");
        }
        lua
    }

    /// Returns the keys of a partition, in the order in which the script receives them.
    pub(super) fn of_partition(&self, partition: Partition) -> Vec<String> {
        self.in_partition(prefix(partition)).collect()
    }

    /// Returns the keys of a thread and its partition, in the order in which the script receives
    /// them. The partition is computed by the caller, since it is a hash.
    pub(super) fn of_thread(&self, thread: &ThreadId, partition: Partition) -> Vec<String> {
        let prefix = prefix(partition);
        let thread = format!("{prefix}thread:{thread}:");
        let of_thread = self.of_thread.iter().map(|key| [&*thread, key.as_str()].concat());
        self.in_partition(prefix).chain(of_thread).collect()
    }

    fn in_partition(&self, prefix: &str) -> impl Iterator<Item = String> {
        self.of_partition.iter().map(move |key| [prefix, key.as_str()].concat())
    }
}

/// Returns the key of the stored answer to a write in a thread, which is in this partition.
pub(super) fn commit(thread: &ThreadId, partition: Partition, commit: &CommitId) -> String {
    format!("{}commit:{thread}:{commit}", prefix(partition))
}

/// Returns the key of the layout version, which exists once in the store.
pub(super) fn layout() -> String {
    format!("{}layout", prefix(Partition::of("layout")))
}

/// Returns the key for test writes, of which each partition may have one.
pub(super) fn probe(partition: Partition) -> String {
    format!("{}probe", prefix(partition))
}

/// Returns the key that is written to learn whether the replicas of a cluster have everything before it.
pub(super) fn confirmed(partition: Partition) -> String {
    format!("{}confirmed", prefix(partition))
}

/// Returns a key that never exists. A server of a cluster refuses a script that names it while the partition is being
/// moved to another server.
pub(super) fn absent(partition: Partition) -> String {
    format!("{}absent", prefix(partition))
}

/// Returns the key of a blob.
pub(super) fn blob(hash: &str) -> String {
    format!("{}blob:{hash}", prefix(Partition::of(hash)))
}

/// Returns the key of a file.
pub(super) fn file(hash: &str) -> String {
    format!("{}file:{hash}", prefix(Partition::of(hash)))
}

/// Returns the key of the set of threads that show a file.
pub(super) fn shown_in(hash: &str) -> String {
    format!("{}file:{hash}:threads", prefix(Partition::of(hash)))
}

/// Returns the member of [`PartitionKey::LetGo`] for a file that a thread no longer shows.
pub(super) fn let_go(hash: &str, thread: &ThreadId) -> String {
    format!("{hash} {thread}")
}

/// Returns the hash and the thread of a [`let_go`] member.
pub(super) fn read_let_go(member: &str) -> Option<(&str, &str)> {
    member.split_once(' ')
}

/// Returns the key of a register, which is a hash of `revision` and `value`.
pub(super) fn register(key: &str) -> String {
    format!("{}register:{key}", prefix(Partition::of(key)))
}

/// Returns the member of [`PartitionKey::Parked`] for a parked message.
pub(super) fn parked(seq: &str, thread: &ThreadId) -> String {
    format!("{seq} {thread}")
}

/// Returns the position and the thread of a [`parked`] member.
pub(super) fn read_parked(member: &str) -> Option<(u64, ThreadId)> {
    let (seq, thread) = member.split_once(' ')?;
    Some((seq.parse().ok()?, thread.parse().ok()?))
}

/// Returns the member of [`PartitionKey::Timers`] for a timer.
pub(super) fn timer(thread: &ThreadId, key: &str) -> String {
    format!("{thread} {key}")
}

/// Returns the name of an action, as it is stored in [`PartitionKey::Approvals`]. Names sort by
/// age.
pub(super) fn action(requested_at: i64, thread: &ThreadId, id: &ActionId) -> String {
    format!("{:016} {thread} {id}", requested_at.max(0))
}

/// Returns the thread and the id of an [`action`].
pub(super) fn read_action(text: &str) -> Option<(ThreadId, ActionId)> {
    let mut parts = text.splitn(3, ' ').skip(1);
    Some((parts.next()?.parse().ok()?, ActionId::from(parts.next()?)))
}

/// Converts `DeadLetters` to `DEAD_LETTERS`.
fn lua_name(name: &str) -> String {
    let mut upper = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !upper.is_empty() {
            upper.push('_');
        }
        upper.push(letter.to_ascii_uppercase());
    }
    upper
}

/// Returns the hash tag of a partition, by which a cluster finds the server that has its keys.
pub(super) fn hash_tag(partition: Partition) -> String {
    format!("p{:02}", partition.number())
}

/// Returns the partition of a key; `None` if it is none of these keys.
pub(super) fn partition_of(key: &[u8]) -> Option<Partition> {
    let number = std::str::from_utf8(key.strip_prefix(b"countersign:{p")?.get(..2)?).ok()?;
    Partition::all().nth(number.parse().ok()?)
}

/// Returns the beginning of all keys of a partition. There are not many, and each look at the labels of all partitions needs
/// all of them.
fn prefix(partition: Partition) -> &'static str {
    static PREFIXES: LazyLock<Vec<String>> = LazyLock::new(|| {
        Partition::all().map(|partition| format!("countersign:{{{}}}:", hash_tag(partition))).collect()
    });
    &PREFIXES[usize::from(partition.number())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread() -> ThreadId {
        ThreadId { team: "T1".into(), channel: "C1".into(), root: "1700000000.000100".into() }
    }

    /// The keys of a script that uses all of them.
    fn all() -> ScriptKeys {
        ScriptKeys { of_partition: PartitionKey::ALL.to_vec(), of_thread: ThreadKey::ALL.to_vec() }
    }

    #[test]
    fn all_keys_of_a_thread_share_a_slot() {
        let tag = format!("countersign:{{p{:02}}}:", thread().partition().number());
        let mut keys = all().of_thread(&thread(), thread().partition());
        keys.push(commit(&thread(), thread().partition(), &CommitId::from("c1")));
        for key in &keys {
            assert!(key.starts_with(&tag), "{key}");
        }
        let distinct: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), PartitionKey::ALL.len() + ThreadKey::ALL.len() + 1);
        assert_eq!(keys[0], PartitionKey::Ready.of(thread().partition()));
        assert_eq!(keys[PartitionKey::ALL.len()], ThreadKey::Meta.of(&thread()));
    }

    #[test]
    fn a_key_tells_its_partition() {
        for partition in Partition::all() {
            assert_eq!(partition_of(absent(partition).as_bytes()), Some(partition));
            assert!(absent(partition).contains(&format!("{{{}}}", hash_tag(partition))));
        }
        for other in ["countersign:{p99}:x", "countersign:{p7", "countersign:hints", ""] {
            assert_eq!(partition_of(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn members_are_parsed_as_they_were_written() {
        assert_eq!(read_parked(&parked("7", &thread())), Some((7, thread())));
        let id = ActionId::from("an action");
        assert_eq!(read_action(&action(1_700_000_000_000, &thread(), &id)), Some((thread(), id)));
        assert_eq!(read_action("nonsense"), None);
    }

    #[test]
    fn an_older_action_sorts_first() {
        let id = ActionId::from("a");
        assert!(action(999, &thread(), &id) < action(1_700_000_000_000, &thread(), &id));
        assert!(action(-1, &thread(), &id) < action(1, &thread(), &id));
    }

    #[test]
    fn a_script_receives_the_keys_that_it_names() {
        let keys = ScriptKeys::named_in("redis.call('HSET', META, 'x', 1) -- not in MAILBOX\nput(INBOX_ENTRIES)");
        assert_eq!(keys.lua_names(), "local INBOX_ENTRIES = KEYS[1]\nlocal META = KEYS[2]\n");
        let partition = thread().partition();
        assert_eq!(
            keys.of_thread(&thread(), partition),
            [PartitionKey::InboxEntries.of(partition), ThreadKey::Meta.of(&thread())]
        );
        assert_eq!(keys.of_partition(partition), [PartitionKey::InboxEntries.of(partition)]);
    }
}
