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
    /// What is relied upon for writes that a Redis server acknowledged.
    pub durability: StoreDurability,
    /// True to start although the Redis server may lose acknowledged writes.
    pub allow_lossy: bool,
    /// Certificates (PEM) of authorities that are trusted for the Redis servers, besides those of the machine.
    pub ca_file: Option<PathBuf>,
    /// The certificate (PEM) that is shown to the Redis servers.
    pub cert_file: Option<PathBuf>,
    /// Its key (PEM).
    pub key_file: Option<PathBuf>,
    /// `REDIS_URL`: `redis://user:password@host:port/0`; for a cluster, several hosts ([`countersign_core::addresses`]).
    /// With TLS, `rediss://`; of Sentinels, `redis+sentinel://host,host/master`.
    #[serde(skip)]
    pub redis_url: Option<SecretString>,
}

/// What is relied upon for writes that a Redis server acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoreDurability {
    /// The server's settings.
    Checked,
    /// The operator's word, where the server does not show its settings.
    Vouched,
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
