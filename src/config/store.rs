//! `[store]`: the place where threads are stored.

use std::path::PathBuf;

use secrecy::SecretString;
use serde::Deserialize;

/// `[store]`: the place where threads are stored.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Store {
    /// `sqlite` or `redis`. Left out: `redis` if `REDIS_URL` is set, else `sqlite`.
    pub kind: Option<StoreKind>,
    /// The SQLite file.
    pub path: PathBuf,
    /// True to start although the Redis server may lose acknowledged writes.
    pub allow_lossy: bool,
    /// `REDIS_URL`: `redis://user:password@host:port/0`; for a cluster, several hosts ([`countersign_core::addresses`]).
    #[serde(skip)]
    pub redis_url: Option<SecretString>,
}

/// The kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoreKind {
    /// An SQLite file, for one process.
    Sqlite,
    /// A Redis server, for several processes.
    Redis,
}
