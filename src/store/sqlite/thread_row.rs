//! The row of a thread: read at the start of an operation, changed in memory, and written once at
//! its end. Operations that follow each other in any case share it ([`super::joined`]), and the rows that were written last
//! are kept for later operations ([`super::cache`]).

use countersign_core::{
    clock::Timestamp,
    ids::{ChannelId, GraphName, MessageTs, TeamId, ThreadId},
};
use countersign_graph::store::{Error, Lease, Seq, Version};
use rusqlite::{OptionalExtension as _, Row, ToSql, params};

use super::{
    connection::Connection,
    failure::Failure,
    keys::{int, key, last, name, uint},
    waiters::Waiters,
};

/// A row of `threads`.
#[derive(Debug, PartialEq)]
pub(super) struct ThreadRow {
    pub(super) id: i64,
    pub(super) thread: ThreadId,
    pub(super) known: bool,
    pub(super) graph: GraphName,
    pub(super) version: Version,
    last_seq: Seq,
    pub(super) fence: u64,
    pub(super) worker: Option<String>,
    pub(super) lease_until: Timestamp,
    pub(super) ready_at: Option<Timestamp>,
    pub(super) send_at: Option<Timestamp>,
    /// The positions of the messages that are claimed until `sending_until`.
    pub(super) in_flight: Vec<Seq>,
    pub(super) sending_until: Timestamp,
    /// The seal of the head of the audit trail.
    pub(super) audit_seal: Option<String>,
    /// The messages in the outbox, if this operation knows them. They are not saved.
    pub(super) waiting: Option<Waiters>,
    /// The values of the columns with indexes, as they are in the file.
    stored: Indexed,
}

/// The values of columns with indexes, by index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Indexed {
    /// `ready_at` and `lease_until`.
    ready: (Option<i64>, i64),
    /// `send_at` and `sending_until`.
    send: (Option<i64>, i64),
}

macro_rules! select_where {
    ($condition:literal) => {
        concat!(
            "SELECT id, known, version, last_seq, fence, lease_worker, lease_until, ready_at, send_at, in_flight, ",
            "sending_until, graph, audit_seal, team, channel, root FROM threads WHERE ",
            $condition
        )
    };
}

impl ThreadRow {
    /// Returns the row of a thread, if there is one.
    pub(super) fn find(connection: &Connection<'_>, thread: &ThreadId) -> Result<Option<Self>, Failure> {
        let Some(row) = connection.cache().and_then(|cache| cache.take_row(thread)) else {
            return Self::select(connection, thread);
        };
        debug_assert_eq!(
            Some(&row),
            Self::select(connection, thread)?.as_ref(),
            "a row in the cache is as in the file"
        );
        Ok(Some(row))
    }

    fn select(connection: &Connection<'_>, thread: &ThreadId) -> Result<Option<Self>, Failure> {
        let mut select = connection.statement(select_where!("root = ?1 AND channel = ?2 AND team = ?3"))?;
        let values = [thread.root.as_str(), thread.channel.as_str(), thread.team.as_str()];
        Ok(select.query_row(values, |row| Self::read(row, thread.clone())).optional()?)
    }

    /// Returns the row with this id, which must exist.
    pub(super) fn get(connection: &Connection<'_>, id: i64) -> Result<Self, Failure> {
        Ok(connection.statement(select_where!("id = ?1"))?.query_row([id], Self::read_all)?)
    }

    /// Returns the row with this id, if there is one.
    pub(super) fn try_get(connection: &Connection<'_>, id: i64) -> Result<Option<Self>, Failure> {
        Ok(connection.statement(select_where!("id = ?1"))?.query_row([id], Self::read_all).optional()?)
    }

    /// Returns the row of a thread, and inserts it if there is none. If `graph` is given, a new row is `known`: the thread is
    /// one of the bot's threads.
    pub(super) fn find_or_insert(
        connection: &Connection<'_>,
        thread: &ThreadId,
        graph: Option<&GraphName>,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        if let Some(row) = Self::find(connection, thread)? {
            return Ok(row);
        }
        const SQL: &str =
            "INSERT INTO threads (team, channel, root, known, graph, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let ThreadId { team, channel, root } = thread;
        let (known, graph) = (graph.is_some(), graph.cloned().unwrap_or_default());
        let values = params![team.as_str(), channel.as_str(), root.as_str(), known, graph.as_str(), now.0];
        connection.statement(SQL)?.execute(values)?;
        Ok(Self {
            id: connection.last_insert_rowid(),
            thread: thread.clone(),
            known,
            graph,
            version: 0,
            last_seq: 0,
            fence: 0,
            worker: None,
            lease_until: Timestamp(0),
            ready_at: None,
            send_at: None,
            in_flight: Vec::new(),
            sending_until: Timestamp(0),
            audit_seal: None,
            waiting: None,
            stored: Indexed::default(),
        })
    }

    /// Writes the row. A column that is set is written to all of its indexes, even if its value is the same. So the columns
    /// of each of the two indexes of what is due are set only if one of them has changed. `threads_by_change` changes with
    /// each write.
    pub(super) fn save(mut self, connection: &Connection<'_>, now: Timestamp) -> Result<(), Failure> {
        macro_rules! update {
            ($($indexed:literal)?) => {
                concat!(
                    "UPDATE threads SET known = ?2, version = ?3, last_seq = ?4, fence = ?5, lease_worker = ?6, ",
                    "in_flight = ?7, updated_at = ?8, graph = ?9, audit_seal = ?10", $(", ", $indexed,)? " WHERE id = ?1"
                )
            };
        }
        let [version, last_seq, fence] = [self.version, self.last_seq, self.fence].map(int);
        let (in_flight, graph, worker) = (self.in_flight_text(), self.graph.as_str(), self.worker.as_deref());
        let audit_seal = self.audit_seal.as_deref();
        let mut values: Vec<&dyn ToSql> =
            vec![&self.id, &self.known, &version, &last_seq, &fence, &worker, &in_flight, &now.0, &graph, &audit_seal];
        let Indexed { ready, send } = self.indexed();
        let (sets_ready, sets_send) = (ready != self.stored.ready, send != self.stored.send);
        if sets_ready {
            values.extend([&ready.0 as &dyn ToSql, &ready.1]);
        }
        if sets_send {
            values.extend([&send.0 as &dyn ToSql, &send.1]);
        }
        let sql = match (sets_ready, sets_send) {
            (false, false) => update!(),
            (true, false) => update!("ready_at = ?11, lease_until = ?12"),
            (false, true) => update!("send_at = ?11, sending_until = ?12"),
            (true, true) => update!("ready_at = ?11, lease_until = ?12, send_at = ?13, sending_until = ?14"),
        };
        if connection.statement(sql)?.execute(values.as_slice())? != 1 {
            return Err(Error::Corrupt { what: format!("the row of thread {}: it was deleted", self.thread) }.into());
        }
        if let Some(cache) = connection.cache() {
            (self.waiting, self.stored) = (None, Indexed { ready, send });
            cache.keep_row(self);
        }
        Ok(())
    }

    /// Notes that a message is no longer claimed. The next ones may be claimed once none is.
    pub(super) fn land(&mut self, seq: Seq) {
        let before = self.in_flight.len();
        self.in_flight.retain(|other| *other != seq);
        if self.in_flight.is_empty() && before > 0 {
            self.sending_until = Timestamp(0);
        }
    }

    fn in_flight_text(&self) -> String {
        self.in_flight.iter().map(Seq::to_string).collect::<Vec<_>>().join(" ")
    }

    fn indexed(&self) -> Indexed {
        let millis = |at: Option<Timestamp>| at.map(Timestamp::millis);
        Indexed {
            ready: (millis(self.ready_at), self.lease_until.0),
            send: (millis(self.send_at), self.sending_until.0),
        }
    }

    /// Returns the next position in the mailbox or the outbox.
    pub(super) fn next_seq(&mut self) -> Seq {
        self.last_seq += 1;
        self.last_seq
    }

    /// Makes the thread ready from `now` on, unless it is ready earlier.
    pub(super) fn wake(&mut self, now: Timestamp) {
        self.ready_at = Some(self.ready_at.map_or(now, |since| since.min(now)));
    }

    /// Returns true if a worker holds the thread.
    pub(super) fn leased(&self, now: Timestamp) -> bool {
        self.lease_until > now
    }

    /// Refuses a lease that was taken over or released. A lease that has merely expired is still
    /// accepted.
    pub(super) fn check(&self, lease: &Lease) -> Result<(), Error> {
        if self.fence == lease.fence && self.worker.as_deref() == Some(lease.worker.as_str()) {
            Ok(())
        } else {
            Err(Error::Fenced(lease.thread.clone()))
        }
    }

    /// Returns the first and the last key of this thread's positions.
    pub(super) fn keys(&self) -> [i64; 2] {
        [key(self.id, 0), last(self.id)]
    }

    fn read_all(row: &Row<'_>) -> rusqlite::Result<Self> {
        let text = |column| name(row, column);
        let (team, channel, root) = (TeamId::new(text(13)?), ChannelId::new(text(14)?), MessageTs::new(text(15)?));
        Self::read(row, ThreadId { team, channel, root })
    }

    /// Reads the row of this thread.
    fn read(row: &Row<'_>, thread: ThreadId) -> rusqlite::Result<Self> {
        let mut read = Self {
            id: row.get(0)?,
            thread,
            known: row.get(1)?,
            version: uint(row.get(2)?),
            last_seq: uint(row.get(3)?),
            fence: uint(row.get(4)?),
            worker: row.get(5)?,
            lease_until: Timestamp(row.get(6)?),
            ready_at: row.get::<_, Option<i64>>(7)?.map(Timestamp),
            send_at: row.get::<_, Option<i64>>(8)?.map(Timestamp),
            in_flight: in_flight(row.get_ref(9)?.as_str()?),
            sending_until: Timestamp(row.get(10)?),
            graph: GraphName::new(row.get::<_, String>(11)?),
            audit_seal: row.get(12)?,
            waiting: None,
            stored: Indexed::default(),
        };
        read.stored = read.indexed();
        Ok(read)
    }
}

/// Reads positions that are separated by spaces.
fn in_flight(text: &str) -> Vec<Seq> {
    text.split_ascii_whitespace().filter_map(|seq| seq.parse().ok()).collect()
}
