//! Checks that the record of a thread is the one that the bot wrote.
//!
//! The chain shows that its entries belong together, the seal of its head that nobody without the key changed, added or
//! removed one ([`countersign_graph::store::AuditHead`]). The decisions in it are compared with those of the stored
//! requests, which have seals of their own: an older row that was put back in either place, with the seal it had then,
//! does not fit the other.

use countersign_core::{cause, ids::ThreadId};
use countersign_graph::{
    action::{ActionRecord, Decision, Status},
    keyring::Proof,
    store::{ActionFilter, AuditDraft, AuditEntry, AuditKind, AuditTrail, ChainFault, Store, TrailFault},
};
use serde_json::{Value, json};

/// The maximum number of requests of a thread that are compared.
const MAX_ACTIONS: usize = 10_000;

/// The number of reads, if decisions are made between the read of the record and that of the requests.
const READS: usize = 3;

/// The reasons why the record of a thread cannot be read or exported.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The thread has no record: the bot does not take part in it, or nothing has happened in it
    /// yet.
    #[error("there is no record of thread {0}; `countersign trace` lists all threads")]
    NoRecord(ThreadId),
    /// The stored record is inconsistent. It is not exported, since the notebook would seem valid.
    #[error("the stored record of thread {thread} is broken at entry {seq}: {what}")]
    Broken {
        /// The thread.
        thread: ThreadId,
        /// The first entry that is wrong.
        seq: u64,
        /// The fault.
        what: String,
    },
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] countersign_graph::store::Error),
}

impl Error {
    /// Notes that the record of this thread could not be used. That there is none is no fault.
    pub(crate) fn log(&self, thread: &ThreadId) {
        match self {
            Self::NoRecord(_) => tracing::debug!(thread.id = %thread, "A thread without a record was asked for"),
            _ => tracing::warn!(thread.id = %thread, error = cause::chain(self), "A thread was not exported"),
        }
    }
}

/// Returns the record of a thread after checking it. A record without a seal is returned with [`Proof::Unsealed`].
///
/// # Errors
///
/// [`Error::Broken`], or [`Error::Store`] if the store isn't answering.
pub async fn read_record(store: &dyn Store, thread: &ThreadId) -> Result<AuditTrail, Error> {
    let broken = |seq: u64, what: String| Error::Broken { thread: thread.clone(), seq, what };
    let filter = ActionFilter::of(thread, &Status::ALL, MAX_ACTIONS);
    let mut found = None;
    for _ in 0..READS {
        let actions = store.actions(&filter).await?;
        let trail = store.audit(thread).await?;
        trail.check(thread).map_err(|(nth, fault)| {
            let what = match fault {
                TrailFault::Place { found } => format!("entry {found} is in its place"),
                TrailFault::Chain(fault) => broken_entry(&trail.entries[nth], &fault).0,
            };
            broken(nth as u64 + 1, what)
        })?;
        let last = trail.len() as u64;
        match &trail.proof {
            Proof::Ours | Proof::Unsealed => {}
            Proof::Altered => {
                return Err(broken(last, "the seal doesn't fit: entries were changed, added or removed".to_owned()));
            }
            Proof::KeyMissing(key) => {
                return Err(broken(last, format!("it is sealed with digest key {key}, which isn't configured")));
            }
            Proof::UnknownVersion(version) => {
                let what = format!("its seal is of version {version}, which this program doesn't know");
                return Err(broken(last, what));
            }
        }
        // A decision between the two reads is no forgery. It is in both at the next attempt.
        match difference(&trail, &actions, trail.proof == Proof::Ours) {
            None => return Ok(trail),
            difference => found = difference,
        }
    }
    let (seq, what) = found.expect("each read found a difference");
    Err(broken(seq, what))
}

/// Returns the first difference between the decisions of the record and those of the requests: the entry, and the
/// difference. The requests of a record that `is_sealed` have a seal as well.
fn difference(record: &[AuditEntry], actions: &[ActionRecord], is_sealed: bool) -> Option<(u64, String)> {
    let last = record.len() as u64;
    actions.iter().find_map(|action| {
        let id = &action.id;
        match action.proof {
            Proof::Altered => return Some((last, format!("the stored request {id} was altered"))),
            Proof::UnknownVersion(version) => {
                let what = format!(
                    "the seal of the stored request {id} is of version {version}, which this program doesn't know"
                );
                return Some((last, what));
            }
            Proof::Unsealed if is_sealed => return Some((last, format!("the stored request {id} has no seal"))),
            Proof::Unsealed | Proof::Ours | Proof::KeyMissing(_) => {}
        }
        let of_action =
            |entry: &&AuditEntry| entry.event.kind == AuditKind::Decided && entry.event.action.as_ref() == Some(id);
        let mut entries = record.iter().filter(of_action);
        for decision in &action.decisions {
            match entries.next() {
                Some(entry) if says(entry, decision) => {}
                Some(entry) => {
                    return Some((entry.seq, format!("the stored request {id} has another decision")));
                }
                None => return Some((last, format!("a decision of the stored request {id} is missing"))),
            }
        }
        if let Some(more) = entries.next() {
            return Some((more.seq, format!("the stored request {id} doesn't have this decision")));
        }
        let is_open = matches!(action.status, Status::Pending | Status::Approved | Status::Intent);
        let mut outcomes = record.iter().filter(|entry| {
            is_open && entry.event.kind == AuditKind::Outcome && entry.event.action.as_ref() == Some(id)
        });
        let outcome = outcomes.next()?;
        Some((outcome.seq, format!("the stored request {id} doesn't have this outcome")))
    })
}

/// Returns true if an entry may be that of a decision, as far as it isn't hidden.
fn says(entry: &AuditEntry, decision: &Decision) -> bool {
    if entry.withheld || entry.sealed.is_some() {
        return true;
    }
    let kind = |verdict: &Value| match verdict {
        Value::Object(named) => named.keys().next().cloned().unwrap_or_default(),
        verdict => verdict.as_str().unwrap_or_default().to_owned(),
    };
    entry.event.by == decision.by && kind(&entry.event.detail["verdict"]) == kind(&json!(decision.verdict))
}

/// Returns the fault of an entry, and the correct content.
pub(super) fn broken_entry(entry: &AuditEntry, wrong: &ChainFault) -> (String, String) {
    match wrong {
        ChainFault::Link { expected } => (
            format!("it says that it follows the entry with hash {}", shown(&entry.previous)),
            format!("the entry before it has hash {}", shown(expected)),
        ),
        ChainFault::Hash { expected: Some(expected) } => {
            (format!("it says that its hash is {}", shown(&entry.hash)), format!("its content has hash {expected}"))
        }
        ChainFault::Hash { expected: None } if entry.sealed.is_none() => {
            ("its salt is missing or damaged".to_owned(), "16 bytes in hexadecimal, in lower case".to_owned())
        }
        ChainFault::Hash { expected: None } => (
            "what is hidden of it and what is shown do not fit together".to_owned(),
            "every value has either a salt or a commitment, in hexadecimal".to_owned(),
        ),
        ChainFault::Format { found } => (
            format!("its hash is of version {found}, which this program does not know"),
            format!("version {}, or a program that knows {found}", AuditDraft::FORMAT),
        ),
    }
}

fn shown(hash: &str) -> &str {
    if hash.is_empty() { "(none: it is the first)" } else { hash }
}
