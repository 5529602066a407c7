//! The names of all keys. No other module builds key names.
//!
//! Every key begins with `countersign:{pNN}:`. The braces are a hash tag: all keys of a partition
//! share one slot, so a script that accesses one partition is atomic on Redis Cluster too. A script
//! receives all keys of its partition and, if it concerns a thread, all keys of the thread, in the
//! order of [`PartitionKey::ALL`] and [`ThreadKey::ALL`]. [`lua_names`] gives them the names that
//! the scripts use.
//!
//! Clocks: scores marked “server” are microseconds of the server's own `TIME`; scores marked
//! “people” are the milliseconds that callers pass as `now`.

use std::fmt::Write as _;

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
        /// `snapshot_version`, `mail_seq`, `outbox_seq`, `in_flight`, `audit_seq`, `audit_hash`.
        Meta = "meta",
        /// Hash: position → message.
        Mailbox = "mailbox",
        /// Hash: position → parked message.
        Aside = "aside",
        /// List of steps; the step of version 1 is the first.
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
        format!("{}{}", prefix(partition), self.as_str())
    }
}

impl ThreadKey {
    /// Returns the key of one thread.
    pub(super) fn of(self, thread: &ThreadId) -> String {
        format!("{}thread:{thread}:{}", prefix(thread.partition()), self.as_str())
    }
}

/// Returns all keys of a partition, in the order in which scripts receive them.
pub(super) fn of_partition(partition: Partition) -> Vec<String> {
    PartitionKey::ALL.iter().map(|index| index.of(partition)).collect()
}

/// Returns all keys of a thread and its partition, in the order in which scripts receive them.
pub(super) fn of_thread(thread: &ThreadId) -> Vec<String> {
    let mut keys = of_partition(thread.partition());
    keys.extend(ThreadKey::ALL.iter().map(|key| key.of(thread)));
    keys
}

/// Returns the key of the stored answer to a write.
pub(super) fn commit(thread: &ThreadId, commit: &CommitId) -> String {
    format!("{}commit:{thread}:{commit}", prefix(thread.partition()))
}

/// Returns the key that marks a partition all of whose actions are in
/// [`PartitionKey::ActionLabels`], including older ones.
pub(super) fn labelled(partition: Partition) -> String {
    format!("{}labelled", prefix(partition))
}

/// Returns the key of the layout version, which exists once in the store.
pub(super) fn layout() -> String {
    format!("{}layout", prefix(Partition::of("layout")))
}

/// Returns the key for test writes.
pub(super) fn probe() -> String {
    format!("{}probe", prefix(Partition::of("probe")))
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

/// Returns Lua code that names the keys of a script: `READY`, `MAILBOX`, …, and `COMMIT` for the
/// key after them.
pub(super) fn lua_names() -> String {
    let mut lua = String::new();
    let names =
        PartitionKey::ALL.iter().map(|s| s.name()).chain(ThreadKey::ALL.iter().map(|d| d.name())).chain(["Commit"]);
    for (n, name) in names.enumerate() {
        writeln!(lua, "local {} = KEYS[{}]", lua_name(name), n + 1).expect("writing to a string cannot fail");
    }
    lua
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

fn prefix(partition: Partition) -> String {
    format!("countersign:{{p{:02}}}:", partition.number())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread() -> ThreadId {
        ThreadId { team: "T1".into(), channel: "C1".into(), root: "1700000000.000100".into() }
    }

    #[test]
    fn all_keys_of_a_thread_share_a_slot() {
        let tag = format!("countersign:{{p{:02}}}:", thread().partition().number());
        let mut keys = of_thread(&thread());
        keys.push(commit(&thread(), &CommitId::from("c1")));
        for key in &keys {
            assert!(key.starts_with(&tag), "{key}");
        }
        let distinct: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), PartitionKey::ALL.len() + ThreadKey::ALL.len() + 1);
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
    fn scripts_know_the_keys_by_name() {
        let names = lua_names();
        assert!(names.starts_with("local READY = KEYS[1]\nlocal WAITING = KEYS[2]\n"), "{names}");
        assert!(
            names.ends_with(&format!("local COMMIT = KEYS[{}]\n", PartitionKey::ALL.len() + ThreadKey::ALL.len() + 1))
        );
    }
}
