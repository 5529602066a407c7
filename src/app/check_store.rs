//! Checks of the store: that it exists or can be created, is accessible only to its owner, can be read, and keeps what
//! it acknowledges.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use countersign_config::{Config, StoreKind};
use countersign_conversation::record::integrity;
use countersign_core::clock::{SystemClock, Timestamp};
use countersign_graph::store::{Durability, Store, ThreadFilter, Unreadable};
use countersign_store::sqlite::{self, OpenError};

use super::{check::CheckLine, dependencies, keys, seen, stdout::describe_error};

/// The maximum number of unreadable entries that are listed.
const MAX_LISTED: usize = 20;

/// The maximum number of threads that are searched for unknown graphs.
const MAX_THREADS: usize = 5_000;

/// The maximum number of threads, the latest first, whose records are checked.
const MAX_RECORDS: usize = 500;

/// Returns the line about the store, and the store itself if it can be read.
pub(super) async fn run(config: &Config) -> (CheckLine, Option<Arc<dyn Store>>) {
    let (result, store) = state(config).await;
    let (result, advice) = match result {
        Ok((how, advice)) => (Ok(how), advice),
        Err(wrong) => (Err(wrong), None),
    };
    (CheckLine { what: "store", result, advice }, store)
}

/// The state of the store and what would make it better, or what is wrong.
type State = Result<(String, Option<String>), String>;

/// Returns the state of the store, and the store itself if it can be read.
async fn state(config: &Config) -> (State, Option<Arc<dyn Store>>) {
    let is_file = config.store_kind() == StoreKind::Sqlite;
    if is_file && !config.store.path.exists() {
        let how = traces(&config.store.path).map_or_else(|| can_be_made(&config.store.path), Err);
        return (how.map(|how| (how, None)), None);
    }
    // Opening the file for writing would correct its rights, and the problem would not be reported.
    let open_to_others = if is_file { exposure(&config.store.path) } else { None };
    let opened = if open_to_others.is_none() {
        dependencies::store(config, Arc::new(SystemClock)).await
    } else {
        dependencies::store_to_read(config, Arc::new(SystemClock)).await
    };
    let (store, in_use) = match opened {
        Ok(store) => (store, false),
        Err(error) if matches!(error.downcast_ref(), Some(OpenError::InUse { .. })) => {
            match dependencies::store_to_read(config, Arc::new(SystemClock)).await {
                Ok(store) => (store, true),
                Err(error) => return (Err(describe_error(&error)), None),
            }
        }
        Err(error) => {
            return (
                Err(open_to_others.into_iter().chain([describe_error(&error)]).collect::<Vec<_>>().join("; ")),
                None,
            );
        }
    };
    let how = if in_use {
        all_readable(&*store)
            .await
            .map(|()| (format!("{} is in use by a running Countersign", config.store.path.display()), None))
    } else if open_to_others.is_none() {
        reliable(&*store).await
    } else {
        let unreadable = all_readable(&*store).await.err();
        Err(open_to_others.into_iter().chain(unreadable).collect::<Vec<_>>().join("; "))
    };
    let how = match (how, keys::checked_to_read(store.clone(), config)) {
        (Ok(how), Ok(Some(sealed))) => intact_records(&*sealed).await.map(|()| how),
        (how, _) => how, // wrong keys have a line of their own
    };
    let how = match seen::check(config, &store).await {
        Ok(None) => how,
        Ok(Some(behind)) => Err(how.err().into_iter().chain([behind]).collect::<Vec<_>>().join("; ")),
        Err(error) => Err(describe_error(&error)),
    };
    (how, Some(store))
}

/// Checks that the store works, that all of it can be read, and that it keeps what it acknowledges.
async fn reliable(store: &dyn Store) -> State {
    let unwritable = store.probe().await.map_err(|error| describe_error(&error.into()))?;
    if unwritable.is_empty() {
        all_readable(store).await?;
    }
    let Durability { name, problems, advice, vouched } =
        store.durability().await.map_err(|error| describe_error(&error.into()))?;
    let problems: Vec<String> = unwritable.iter().map(ToString::to_string).chain(problems).collect();
    if !problems.is_empty() {
        return Err(format!("{name}: {}", problems.into_iter().chain(advice).collect::<Vec<_>>().join("; ")));
    }
    let durable = match vouched {
        Some(vouched) => format!("{name}, {vouched}"),
        None => format!("{name}, writes are durable"),
    };
    Ok((durable, (!advice.is_empty()).then(|| advice.join("; "))))
}

/// Returns an error that lists the unreadable entries, if there are any. Such entries are kept and block nothing.
pub(super) async fn all_readable(store: &dyn Store) -> Result<(), String> {
    let unreadable = store.unreadable(MAX_LISTED + 1).await.map_err(|error| error.to_string())?;
    if unreadable.is_empty() {
        return all_of_our_graphs(store).await;
    }
    let listed = unreadable
        .iter()
        .take(MAX_LISTED)
        .map(|Unreadable { place, why, since }| format!("{place} ({why}; since {since})"));
    let listed = listed.collect::<Vec<_>>().join("; ");
    let more = if unreadable.len() > MAX_LISTED { "; and more" } else { "" };
    Err(format!("some stored data can't be read by this version and is kept for one that can: {listed}{more}"))
}

/// Returns an error that lists the unknown graphs of threads, if there are any. Such threads wait for a program that
/// has their graph.
async fn all_of_our_graphs(store: &dyn Store) -> Result<(), String> {
    let threads = store.threads(ThreadFilter::All, MAX_THREADS).await.map_err(|error| error.to_string())?;
    let mut others = BTreeMap::<_, usize>::new();
    for thread in threads.iter().filter(|thread| !dependencies::GRAPHS.contains(&thread.graph.as_str())) {
        *others.entry(&thread.graph).or_default() += 1;
    }
    if others.is_empty() {
        return Ok(());
    }
    let others = others.iter().map(|(graph, threads)| format!("{graph}: {threads}")).collect::<Vec<_>>().join(", ");
    Err(format!(
        "some threads need a graph that this version doesn't have; they wait until you run one that does ({others})"
    ))
}

/// Returns an error that lists the threads whose records are not those that were written, if there are any.
async fn intact_records(store: &dyn Store) -> Result<(), String> {
    let mut broken = records(store, MAX_RECORDS).await?.broken;
    let more = broken.len().saturating_sub(MAX_LISTED);
    broken.truncate(MAX_LISTED);
    if more > 0 {
        broken.push(format!("and {more} more"));
    }
    if broken.is_empty() { Ok(()) } else { Err(broken.join("; ")) }
}

/// The records of the latest threads.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// The number of threads.
    pub(super) threads: usize,
    /// The number of their entries.
    pub(super) entries: usize,
    /// The time of the newest entry.
    pub(super) newest: Option<Timestamp>,
    /// A line for each record that is not the one that was written.
    pub(super) broken: Vec<String>,
}

/// Reads and checks the records of at most `limit` threads, the latest first.
pub(super) async fn records(store: &dyn Store, limit: usize) -> Result<Records, String> {
    let mut records = Records::default();
    for summary in store.threads(ThreadFilter::All, limit).await.map_err(|error| describe_error(&error.into()))? {
        records.threads += 1;
        match integrity::read_record(store, &summary.thread).await {
            Ok(trail) if trail.is_empty() || trail.proof.holds() => {
                records.entries += trail.len();
                records.newest = records.newest.max(trail.iter().map(|entry| entry.event.at).max());
            }
            Ok(_) => records.broken.push(format!(
                "the record of thread {} has no seal: the seal was removed, or another program wrote it",
                summary.thread
            )),
            Err(error @ integrity::Error::Broken { .. }) => records.broken.push(error.to_string()),
            Err(error) => return Err(describe_error(&error.into())),
        }
    }
    Ok(records)
}

/// Describes the rights of the store at `path` if others on this machine can read or write it. Its log and index get
/// the same rights when they are created.
fn exposure(path: &Path) -> Option<String> {
    let rights = fs::metadata(path).ok()?.permissions().mode() & 0o777;
    let path = path.display();
    (rights & 0o077 != 0).then(|| {
        format!("{path}, permissions {rights:o}: others on this machine can read it; expected `chmod 600 {path}`")
    })
}

/// Returns the log of the store at `path` and the index of that log.
fn log_files(path: &Path) -> [PathBuf; 2] {
    ["-wal", "-shm"].map(|ending| sqlite::file_beside(path, ending))
}

/// Describes the traces of a store that has disappeared from `path`, and how to correct that.
fn traces(path: &Path) -> Option<String> {
    let gone = format!("{} is gone", std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display());
    let lock = sqlite::lock_of(path);
    if lock.exists() && matches!(sqlite::lock(path), Err(OpenError::InUse { .. })) {
        return Some(format!(
            "{gone}, but a running Countersign holds {}: it was deleted or moved, and nothing is stored or acknowledged; \
             put it back. Restarting would create an empty store, without its threads and open cards",
            lock.display()
        ));
    }
    let left: Vec<String> =
        log_files(path).iter().filter(|file| file.exists()).map(|file| file.display().to_string()).collect();
    (!left.is_empty()).then(|| {
        let is = if left.len() > 1 { "are" } else { "is" };
        let left = left.join(" and ");
        format!(
            "{gone}, but {left} {is} still there; put it back. Restarting would create an empty store, \
             without its threads and open cards; if that is what you want, remove {left}"
        )
    })
}

/// Checks that a store can be created at `path`, without creating one.
fn can_be_made(path: &Path) -> Result<String, String> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.ancestors().skip(1).find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    let probe = folder.join(format!(".countersign-check-{}", std::process::id()));
    match File::create_new(&probe).and_then(|_| fs::remove_file(&probe)) {
        Ok(()) => {
            Ok(format!("none yet; it will be created at {}, and {} is writable", path.display(), folder.display()))
        }
        Err(error) => Err(format!(
            "none yet, and it cannot be created at {}: {} is not writable ({error}); store.path sets the location",
            path.display(),
            folder.display(),
        )),
    }
}
