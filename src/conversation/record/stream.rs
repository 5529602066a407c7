//! Sends every entry of the record to the outside, such as to a system that watches for misuse.
//!
//! The threads that changed lately are asked for their records, and the entries after the last one that was sent are sent, in
//! order within each thread. Then the positions are stored in a register ([`Cursor`]). So each entry is sent at least once:
//! after a crash, those that were sent and not noted are sent again. A line that may be a repetition says so. One process
//! at a time sends; in a store that several share, it is the one that holds the cursor's term.
//!
//! The cursor keeps the positions of the threads that changed lately, and those of others up to [`MAX_POSITIONS`]. If a
//! thread without a position changes again, its whole record is sent again.
//!
//! An outbox for the entries was rejected as a design: every write would grow for it, and the entries are in the store
//! already.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use countersign_core::{
    cause,
    clock::{Clock, Timestamp},
    ids::ThreadId,
};
use countersign_graph::store::{
    AuditEntry, AuditKind, AuditTrail, Error, Store, ThreadFilter, ThreadSummary, TypedRegister,
};
use serde::{Deserialize, Serialize};

use super::notebook::Redaction;

/// The register of the cursor.
const REGISTER: &str = "audit stream";

/// How far the search for changes goes back: clocks differ, and a write takes a while to appear.
const OVERLAP: Duration = Duration::from_secs(20);

/// The time after a change from which on another one is sure to have another time.
const SETTLED: Duration = Duration::from_secs(2);

/// The number of positions that are kept of threads that have not changed lately.
const MAX_POSITIONS: usize = 1_000;

/// The maximum number of lines that are sent together.
const MAX_LINES: usize = 500;

/// The size, in bytes, from which on lines are sent.
const ENOUGH_BYTES: usize = 512 * 1024;

/// The number of threads that the first search of a round asks for.
const FIRST_THREADS: usize = 32;

/// Where lines go.
#[async_trait]
pub trait Sink: Send {
    /// Sends whole lines. If this succeeds, they have arrived for good.
    ///
    /// # Errors
    ///
    /// The reason why they may not have arrived, in words.
    async fn send(&mut self, lines: Vec<u8>) -> Result<(), String>;

    /// The time that sending can take.
    fn timeout(&self) -> Duration;
}

/// How far the stream is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Cursor {
    /// The process that sends; `None` if it has ended.
    holder: Option<String>,
    /// The end of its term.
    until: Timestamp,
    /// All changes before this time were sent.
    through: Timestamp,
    /// The last change of a thread whose position is no longer kept.
    dropped: Timestamp,
    /// The positions by thread.
    positions: BTreeMap<String, Position>,
}

/// The number of the last entry of a thread that was sent, and the time of the thread's last change then.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Position(u64, Timestamp);

impl Cursor {
    /// Returns the register of the cursor.
    fn register(store: &Arc<dyn Store>) -> TypedRegister<Self> {
        TypedRegister::new(store.clone(), REGISTER)
    }

    /// Returns the time before which all changes were sent.
    ///
    /// # Errors
    ///
    /// If the store isn't answering.
    pub(super) async fn all_before(store: &Arc<dyn Store>) -> Result<Timestamp, Error> {
        let (_, Self { through, .. }) = Self::register(store).load().await?;
        Ok(through.minus(OVERLAP))
    }
}

/// A line of the stream.
#[derive(Serialize)]
struct Line<'a> {
    thread: &'a str,
    position: u64,
    /// True if the record up to here is the one that the bot wrote.
    sealed: bool,
    entry: AuditEntry,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeated: Option<&'static str>,
}

/// The result of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// Another process sends.
    NotOurs,
    /// So many entries were sent, and no more were there.
    Sent(usize),
}

/// The reason why a round ended early. The next one continues.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The lines may not have arrived.
    #[error("{0}")]
    Sink(String),
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] Error),
    /// Another process has taken over. [`Stream::round`] returns [`Round::NotOurs`] instead.
    #[error("another process sends")]
    TakenOver,
}

/// The sender of the stream.
pub struct Stream<S> {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    register: TypedRegister<Cursor>,
    redaction: Redaction,
    sink: S,
    /// The name of this process.
    name: String,
    /// The cursor and its revision, while this process sends.
    ours: Option<(u64, Cursor)>,
    /// True if lines may have been sent that the cursor does not cover.
    unsure: bool,
    /// The threads that were read after their last change had settled, with the time of that change.
    settled: HashMap<ThreadId, Timestamp>,
    /// The moment of the last search, and its time: the clock may be set back in between.
    searched: Option<(Instant, Timestamp)>,
}

/// The entries of a round that are to be sent next.
#[derive(Default)]
struct Batch {
    lines: Vec<u8>,
    count: usize,
    positions: Vec<(String, Position)>,
    /// The last change of the last thread that is in it to the end.
    through: Timestamp,
}

impl<S: Sink> Stream<S> {
    /// Creates the sender for a process of this name.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, redaction: Redaction, sink: S, name: String) -> Self {
        let register = Cursor::register(&store);
        let (settled, searched) = (HashMap::new(), None);
        Self { store, clock, register, redaction, sink, name, ours: None, unsure: true, settled, searched }
    }

    /// Sends what is new.
    ///
    /// # Errors
    ///
    /// [`StreamError`]; the next round continues.
    pub async fn round(&mut self) -> Result<Round, StreamError> {
        let sent = self.try_round().await;
        if sent.is_err() {
            (self.ours, self.unsure) = (None, true);
            self.settled.clear();
        }
        match sent {
            Err(StreamError::TakenOver) => Ok(Round::NotOurs),
            sent => sent,
        }
    }

    /// Lets another process send at once.
    pub async fn give_up(&mut self) {
        if let Some((revision, cursor)) = self.ours.take() {
            let cursor = Cursor { holder: None, until: Timestamp::default(), ..cursor };
            if let Err(error) = self.register.set(revision, &cursor).await {
                tracing::warn!(
                    error = cause::chain(&error),
                    "Cannot give up the audit stream; its term ends by itself"
                );
            }
        }
    }

    async fn try_round(&mut self) -> Result<Round, StreamError> {
        let now = self.clock.now();
        if !self.take_over(now).await? {
            return Ok(Round::NotOurs);
        }
        let changed = self.changed(now).await?;
        let (mut batch, mut sent) = (Batch::default(), 0);
        for ThreadSummary { thread, updated_at, .. } in changed {
            let trail = self.store.audit(&thread).await?;
            let (from, may_be_known) = self.position(&thread, &trail);
            let (sealed, last, name) = (trail.proof.holds(), trail.len() as u64, thread.to_string());
            let may_be_repeated = self.unsure || may_be_known;
            if last > from {
                metrics::gauge!("countersign_audit_stream_lag_seconds")
                    .set(self.clock.now().since(updated_at).as_secs_f64());
                for (position, entry) in (1..).zip(self.redaction.applied(trail.entries).await).skip(from as usize) {
                    let repeated = may_be_repeated.then_some("maybe");
                    batch.add(&Line { thread: &name, position, sealed, entry, repeated });
                    if batch.count >= MAX_LINES || batch.lines.len() >= ENOUGH_BYTES {
                        batch.positions.push((name.clone(), Position(position, updated_at)));
                        sent += self.flush(std::mem::take(&mut batch)).await?;
                    }
                }
            }
            if last > 0 {
                batch.positions.push((name, Position(last, updated_at)));
            }
            batch.through = updated_at;
            if now >= updated_at + SETTLED {
                self.settled.insert(thread, updated_at);
            }
        }
        sent += self.flush(batch).await?;
        metrics::gauge!("countersign_audit_stream_lag_seconds").set(0.0);
        if let Some((_, cursor)) = &mut self.ours {
            cursor.through = now;
            if sent > 0 || self.unsure || cursor.until < now + self.sink.timeout() * 3 {
                self.keep().await?;
            }
        }
        self.unsure = false;
        Ok(Round::Sent(sent))
    }

    /// Takes over the cursor, unless it is ours already or another process's.
    async fn take_over(&mut self, now: Timestamp) -> Result<bool, StreamError> {
        if self.ours.is_none() {
            let (revision, cursor) = self.register.load().await?;
            let is_others = cursor.holder.as_ref().is_some_and(|holder| *holder != self.name);
            if self.store.is_shared() && is_others && now < cursor.until {
                return Ok(false);
            }
            self.ours = Some((revision, Cursor { holder: Some(self.name.clone()), ..cursor }));
            self.keep().await?;
        }
        Ok(true)
    }

    /// Stores the cursor and extends the term.
    async fn keep(&mut self) -> Result<(), StreamError> {
        let Some((revision, cursor)) = &mut self.ours else { return Ok(()) };
        cursor.until = self.clock.now() + self.sink.timeout() * 6;
        if !self.register.set(*revision, cursor).await? {
            return Err(StreamError::TakenOver);
        }
        *revision += 1;
        Ok(())
    }

    /// Returns the threads that changed since the last search, except those that were read since, the oldest change first.
    async fn changed(&mut self, now: Timestamp) -> Result<Vec<ThreadSummary>, StreamError> {
        let through = self.ours.as_ref().map(|(_, cursor)| cursor.through).unwrap_or_default();
        let moment = Instant::now();
        // By how much the clock was set back since the last search.
        let back = self
            .searched
            .map_or(Duration::ZERO, |(then, time)| moment.duration_since(then).saturating_sub(now.since(time)));
        self.searched = Some((moment, now));
        let since = through.min(now).minus(OVERLAP + back);
        let mut limit = FIRST_THREADS;
        let mut found = loop {
            let found = self.store.threads(ThreadFilter::All, limit).await?;
            if found.len() < limit || found.last().is_none_or(|last| last.updated_at < since) {
                break found;
            }
            limit = limit.saturating_mul(8);
        };
        found.retain(|thread| thread.updated_at >= since);
        let settled = std::mem::take(&mut self.settled);
        for thread in &found {
            self.settled.extend(settled.get(&thread.thread).map(|at| (thread.thread.clone(), *at)));
        }
        found.retain(|thread| self.settled.get(&thread.thread) != Some(&thread.updated_at));
        found.reverse();
        Ok(found)
    }

    /// Returns the number of entries of a thread that were sent, and whether more of them may have been.
    fn position(&self, thread: &ThreadId, trail: &AuditTrail) -> (u64, bool) {
        let Some((_, cursor)) = &self.ours else { return (0, true) };
        if let Some(Position(sent, _)) = cursor.positions.get(&thread.to_string()) {
            return (*sent, false);
        }
        let may_be_known = trail.first().is_some_and(|first| first.event.at <= cursor.dropped + OVERLAP);
        // The record of a thread is forgotten after it was sent.
        let is_forgotten = trail.last().is_some_and(|last| last.event.kind == AuditKind::Forgotten);
        (if may_be_known && is_forgotten { trail.len() as u64 - 1 } else { 0 }, may_be_known)
    }

    /// Sends a batch, if there is one, and stores the positions. Returns the number of its entries.
    async fn flush(&mut self, batch: Batch) -> Result<usize, StreamError> {
        let Batch { lines, count, positions, through } = batch;
        if count > 0 {
            let runs_out = self.clock.now() + self.sink.timeout() * 2;
            if self.store.is_shared() && self.ours.as_ref().is_none_or(|(_, cursor)| cursor.until < runs_out) {
                self.keep().await?;
            }
            self.sink.send(lines).await.map_err(StreamError::Sink)?;
            metrics::counter!("countersign_audit_stream_entries_total").increment(count as u64);
        }
        if let Some((_, cursor)) = &mut self.ours {
            cursor.positions.extend(positions);
            cursor.through = cursor.through.max(through);
            cursor.drop_old();
        }
        if count > 0 {
            self.keep().await?;
        }
        Ok(count)
    }
}

impl Cursor {
    /// Drops the oldest positions, if there are too many.
    fn drop_old(&mut self) {
        let recent = |Position(_, at): &Position| *at + OVERLAP * 2 >= self.through;
        let mut old: Vec<(Timestamp, String)> = self
            .positions
            .iter()
            .filter(|(_, position)| !recent(position))
            .map(|(thread, at)| (at.1, thread.clone()))
            .collect();
        old.sort_unstable();
        for (at, thread) in old.iter().take(old.len().saturating_sub(MAX_POSITIONS)) {
            self.positions.remove(thread);
            self.dropped = self.dropped.max(*at);
        }
    }
}

impl Batch {
    fn add(&mut self, line: &Line<'_>) {
        serde_json::to_writer(&mut self.lines, line).expect("a line is plain data");
        self.lines.push(b'\n');
        self.count += 1;
    }
}
