//! The digest keys of this installation, from the environment or from a file that is created at the first start.
//!
//! Processes that share a store need the same keys. If they share a Redis server, the id of the newest key is stored
//! there, and a process without that key does not start: its cards would all be refused by the others.

use std::{
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, bail};
use countersign_config::{Config, StoreKind, digest_key};
use countersign_graph::{
    action::{ActionRecord, Status},
    keyring::{KeyId, Keyring},
    store::{ActionFilter, Store},
};
use countersign_memory::notes;
use countersign_standing::register;
use countersign_store::sealed::{SealScope, SealedStore};
use secrecy::ExposeSecret as _;
use serde_json::json;

use super::stdout::describe_error;

/// The name of the key file beside the SQLite file.
const FILE_NAME: &str = "countersign.key";

/// The comment at the top of a key file.
const HEAD: &str = "# Countersign signs its cards with the first of these keys and accepts all of them. Keep this file secret, \
                    back it up,\n# and keep it separate from the store. Put a new key above the others: openssl rand -hex 32\n";

/// The register that contains the id of the newest key.
const REGISTER: &str = "digest key";

/// The number of attempts to store the id of the newest key while other processes store theirs.
const MAX_TRIES: usize = 10;

/// The maximum number of open cards that are compared with the keys.
const MAX_CARDS: usize = 10_000;

/// The length of a generated key, in bytes.
const KEY_BYTES: usize = 32;

/// The scope of the seals, beyond the records of actions.
const SCOPE: SealScope = SealScope {
    registers: &[register::KEY],
    register_families: &[notes::KEYS, countersign_email::register::REGISTERS, countersign_api::register::REGISTERS],
};

/// The keys and their origin.
#[derive(Debug)]
pub struct Keys {
    /// The keys.
    pub ring: Arc<Keyring>,
    /// The file from which the keys were read, if any.
    pub file: Option<PathBuf>,
    /// True if the file was created just now.
    pub is_new: bool,
}

/// Returns the path of the key file, which is used if the settings themselves contain no keys.
pub fn file_of(config: &Config) -> PathBuf {
    config.approvals.digest_key_file.clone().unwrap_or_else(|| config.store.path.with_file_name(FILE_NAME))
}

/// Reads the configured keys. A missing key file is created.
///
/// # Errors
///
/// If the keys are wrong; the error says what would be right.
pub fn open(config: &Config) -> anyhow::Result<Keys> {
    if let Some(keys) = from_settings(config)? {
        return Ok(keys);
    }
    let path = file_of(config);
    match read(&path) {
        Ok(ring) => Ok(Keys { ring: Arc::new(ring), file: Some(path), is_new: false }),
        Err(error) if is_missing(&error) => {
            let is_new = create(&path).with_context(|| {
                format!(
                    "cannot create the digest key file {}; the setting approvals.digest_key_file says where it is",
                    path.display()
                )
            })?;
            // The file is read again, since another process may have created it.
            Ok(Keys { ring: Arc::new(read(&path)?), file: Some(path), is_new })
        }
        Err(error) => Err(error),
    }
}

/// Returns the keys in the settings, if there are any.
fn from_settings(config: &Config) -> anyhow::Result<Option<Keys>> {
    let Some(secret) = &config.approvals.digest_keys else { return Ok(None) };
    let keys = secret.expose_secret().split(',').map(|key| digest_key(key.trim()));
    let keys =
        keys.collect::<Result<Vec<_>, _>>().map_err(|what| anyhow::anyhow!("COUNTERSIGN_DIGEST_KEYS: {what}"))?;
    let ring = Keyring::new(keys).context("COUNTERSIGN_DIGEST_KEYS")?;
    Ok(Some(Keys { ring: Arc::new(ring), file: None, is_new: false }))
}

fn is_missing(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Reads the keys in a file: one on each line, the signing key first.
///
/// # Errors
///
/// If the file cannot be read, or has no valid key.
pub fn read(path: &Path) -> anyhow::Result<Keyring> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read the digest key file {}", path.display()))?;
    let lines = text.lines().enumerate().map(|(n, line)| (n + 1, line.trim()));
    let keys = lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(n, line)| digest_key(line).map_err(|what| anyhow::anyhow!("{}, line {n}: {what}", path.display())));
    let keys: Vec<_> = keys.collect::<Result<_, _>>()?;
    if keys.is_empty() {
        bail!(
            "the digest key file {} has no key in it; expected the key that was there, or a new one on a line of its \
             own: openssl rand -hex 32",
            path.display()
        );
    }
    Keyring::new(keys).with_context(|| format!("the digest key file {}", path.display()))
}

/// Creates a key file that only its owner may read. The file appears atomically, and only one of several processes
/// creates it. Returns true if this process did.
fn create(path: &Path) -> std::io::Result<bool> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder)?;
    }
    let temporary = path.with_extension(format!("key.{}", uuid::Uuid::new_v4().simple()));
    let key = hex::encode(rand::random::<[u8; KEY_BYTES]>());
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        writeln!(file, "{HEAD}{key}")?;
        file.sync_all()?;
        match fs::hard_link(&temporary, path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    })();
    fs::remove_file(&temporary).ok();
    if let (Ok(true), Some(folder)) = (&written, path.parent().filter(|folder| !folder.as_os_str().is_empty())) {
        File::open(folder)?.sync_all()?;
    }
    written
}

/// Wraps the store so that its records are sealed, after checking that the keys are the right ones for it.
///
/// # Errors
///
/// If other processes on this store use a newer key, or the store isn't answering.
pub async fn sealed(store: Arc<dyn Store>, keys: &Keys, config: &Config) -> anyhow::Result<Arc<SealedStore>> {
    agree(&*store, keys, config).await?;
    if keys.is_new {
        tracing::info!(key = %keys.ring.newest(), "Made a digest key");
    }
    let sealed = SealedStore::new(store, keys.ring.clone(), SCOPE);
    Ok(Arc::new(sealed.announcing(countersign_api::callback::of_write)))
}

/// Wraps a store that is only read, so that the seals of its records are checked. No key is created.
///
/// # Errors
///
/// If the keys are missing or wrong; the error says what would be right.
pub fn sealed_to_read(store: Arc<dyn Store>, config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    let ring = match from_settings(config)? {
        Some(keys) => keys.ring,
        None => Arc::new(read(&file_of(config))?),
    };
    Ok(Arc::new(SealedStore::new(store, ring, SCOPE)))
}

/// As [`sealed_to_read`], but returns `None` if there are no keys.
///
/// # Errors
///
/// If the keys are wrong.
pub fn checked_to_read(store: Arc<dyn Store>, config: &Config) -> anyhow::Result<Option<Arc<dyn Store>>> {
    let ring = existing_keys(config)?;
    Ok(ring.map(|ring| Arc::new(SealedStore::new(store, Arc::new(ring), SCOPE)) as Arc<dyn Store>))
}

/// Checks that the keys include the one with which the store was last used, and stores the id of the newest key in it.
async fn agree(store: &dyn Store, keys: &Keys, config: &Config) -> anyhow::Result<()> {
    let newest = keys.ring.newest();
    for _ in 0..MAX_TRIES {
        let noted = store.register(REGISTER).await.context("cannot read which digest key the store is used with")?;
        let named: Option<KeyId> = serde_json::from_value(noted.value["newest"].clone()).ok();
        match named {
            Some(named) if named == *newest => return Ok(()),
            Some(named) if !keys.ring.has(&named) => {
                if is_shared(config) {
                    if let (true, Some(file)) = (keys.is_new, &keys.file) {
                        fs::remove_file(file).ok(); // the new key has not signed anything
                    }
                    return Err(anyhow::Error::msg(missing_key_message(&named, config)));
                }
                tracing::error!(key = %named, found = %newest, "The digest key of earlier cards is missing; their actions will not run");
            }
            Some(named) => {
                tracing::info!(key = %named, newest = %newest, "A new digest key is used for signing from now on")
            }
            None => {}
        }
        let note = json!({ "newest": newest });
        if store.set_register(REGISTER, noted.revision, &note).await.context("cannot store the digest key's id")? {
            return Ok(());
        } // another process was faster: its key is compared in the next iteration
    }
    bail!("other processes keep storing other digest keys; give all of them the same keys")
}

/// Returns true if other processes may use the same store, and so need the same keys.
fn is_shared(config: &Config) -> bool {
    config.store_kind() == StoreKind::Redis && !config.approvals.new_digest_key
}

/// Returns the error message for a store that is used with a key that this process does not have.
fn missing_key_message(named: &KeyId, config: &Config) -> String {
    let file = file_of(config).display().to_string();
    let here = if config.approvals.digest_keys.is_some() { "COUNTERSIGN_DIGEST_KEYS" } else { &file };
    format!(
        "this store is used with digest key {named}, and {here} has no such key. Copy the key file of the process that has \
         it to {file} here, or set COUNTERSIGN_DIGEST_KEYS in all of them. If that key is lost, start once with \
         approvals.new_digest_key = true: you then have to ask for the open cards again"
    )
}

/// Returns the state of the keys for `countersign check`, compared with the store if it is given.
///
/// # Errors
///
/// If the keys or the rights of their file are wrong, or the store is used with other keys.
pub async fn check(config: &Config, store: Option<&dyn Store>) -> Result<String, String> {
    let description = describe(config);
    let (Some(store), Ok(ring)) = (store, existing_keys(config)) else { return description };
    match mismatch(store, ring.as_ref(), config).await? {
        None => description,
        Some(wrong) => Err(description.err().into_iter().chain([wrong]).collect::<Vec<_>>().join("; ")),
    }
}

/// Returns the keys, if there are any. No file is created.
pub(super) fn existing_keys(config: &Config) -> anyhow::Result<Option<Keyring>> {
    if let Some(keys) = from_settings(config)? {
        return Ok(Some((*keys.ring).clone()));
    }
    match read(&file_of(config)) {
        Ok(ring) => Ok(Some(ring)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Describes the mismatch between the keys and the store, if there is one: the store is used with another key, or open
/// cards were made with keys that are missing.
async fn mismatch(store: &dyn Store, ring: Option<&Keyring>, config: &Config) -> Result<Option<String>, String> {
    let is_here = |key: &KeyId| ring.is_some_and(|ring| ring.has(key));
    let noted = store.register(REGISTER).await.map_err(|error| describe_error(&error.into()))?;
    let named: Option<KeyId> = serde_json::from_value(noted.value["newest"].clone()).ok();
    if let Some(named) = named.filter(|named| !is_here(named) && is_shared(config)) {
        return Ok(Some(missing_key_message(&named, config)));
    }
    let statuses = [Status::Pending, Status::Approved, Status::Intent];
    let open = store.actions(&ActionFilter::all(&statuses, MAX_CARDS)).await;
    let open = open.map_err(|error| describe_error(&error.into()))?;
    let missing = |record: &ActionRecord| {
        let of = [record.seal.as_ref().map(|seal| &seal.by), Some(&record.keyed)];
        of.into_iter().flatten().map(|by| &by.key).find(|key| !is_here(key)).cloned()
    };
    let missing: Vec<KeyId> = open.iter().filter_map(missing).collect();
    let cards = match missing.len() {
        0 => return Ok(None),
        1 => "1 open card was".to_owned(),
        cards => format!("{cards} open cards were"),
    };
    let mut keys: Vec<String> = missing.iter().map(ToString::to_string).collect();
    keys.sort();
    keys.dedup();
    let (keys, it) =
        if let [key] = &*keys { (format!("key {key}"), "it") } else { (format!("keys {}", keys.join(", ")), "them") };
    let place = match config.approvals.digest_keys {
        Some(_) => "COUNTERSIGN_DIGEST_KEYS".to_owned(),
        None => file_of(config).display().to_string(),
    };
    Ok(Some(format!(
        "{cards} made with digest {keys}, which {place} doesn't have, so they can't run; put {it} back there, or ask again for new cards"
    )))
}

/// Returns the key in use, for `countersign check`. No file is created.
///
/// # Errors
///
/// If the keys or the rights of their file are wrong.
pub fn describe(config: &Config) -> Result<String, String> {
    if let Some(keys) = from_settings(config).map_err(|error| describe_error(&error))? {
        return Ok(format!("{}, from COUNTERSIGN_DIGEST_KEYS", key_names(&keys.ring)));
    }
    let path = file_of(config);
    let rights = match fs::metadata(&path) {
        Ok(file) => file.permissions().mode() & 0o777,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok(format!("none yet; one will be created at {}", path.display()));
        }
        Err(error) => return Err(format!("cannot access {}: {error}", path.display())),
    };
    let ring = read(&path).map_err(|error| describe_error(&error))?;
    let at = format!("{}, from {}, permissions {rights:o}", key_names(&ring), path.display());
    match rights & 0o077 {
        0 => Ok(at),
        _ => Err(format!("{at}: others on this machine can read it; expected `chmod 600 {}`", path.display())),
    }
}

/// Returns the id of the newest key, and the number of older ones.
fn key_names(ring: &Keyring) -> String {
    match ring.older().count() {
        0 => format!("key {}", ring.newest()),
        1 => format!("key {}, and 1 older key", ring.newest()),
        older => format!("key {}, and {older} older keys", ring.newest()),
    }
}
