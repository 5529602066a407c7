//! `countersign backup` and `countersign restore`: a copy of the store in one file, checked before it is used.
//!
//! The store of similar mails and contacts is copied as well, to a second file beside the first. A backup names the digest
//! key that its records are sealed with, and does not contain it.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, chown},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, bail};
use countersign_config::Config;
use countersign_core::clock::{Clock as _, SystemClock, Timestamp};
use countersign_graph::{
    action::Status,
    keyring::KeyId,
    store::{ActionFilter, AuditDraft, Store},
};
use countersign_store::sqlite::{self, SqliteStore, backup};
use serde_json::{Value, json};

use super::{check_store, keys};

/// What to do with Redis, whose copies are the server's.
pub const WITH_REDIS: &str = "The store is Redis, which makes and restores copies of its own (`redis-cli --rdb FILE`, or the \
                              snapshots of your provider). The steps are in docs/operating.md, under Backup.";

/// The ending of the file beside a backup with similar mails and contacts.
const MAIL_CONTEXT: &str = ".mail-context";

/// The maximum number of faults that are listed.
const MAX_LISTED: usize = 20;

/// Makes a backup, also while a bot uses the store. Returns what was written, a line each.
///
/// # Errors
///
/// If there is such a file already, or something cannot be read or written.
pub fn back_up(config: &Config, to: &Path) -> anyhow::Result<Vec<String>> {
    let path = &config.store.path;
    if !path.exists() {
        bail!("there is no store at {}; the setting store.path says where it is kept", path.display());
    }
    let ring = keys::existing_keys(config)?;
    let key = ring.as_ref().map(|ring| ring.newest());
    let about = json!({
        "at": SystemClock.now(),
        "program": env!("CARGO_PKG_VERSION"),
        "record": AuditDraft::FORMAT,
        "key": key,
    });
    let mails = config.email.context_file(path);
    let mut lines = Vec::new();
    let mut copy = |from: &Path, to: &Path, about: Option<Value>| {
        backup::back_up(from, to, about)
            .with_context(|| format!("cannot back up {} to {}", from.display(), to.display()))?;
        let bytes = fs::metadata(to)?.len();
        lines.push(format!("{} is a backup of {}: {bytes} bytes", to.display(), from.display()));
        anyhow::Ok(())
    };
    if config.email.database_url.is_none() && mails.exists() {
        copy(&mails, &sqlite::file_beside(to, MAIL_CONTEXT), None)?;
    }
    copy(path, to, Some(about))?;
    lines.push(match key {
        Some(key) => {
            format!("it is sealed with digest key {key}, which is not in it: keep a copy of the key elsewhere")
        }
        None => "no digest key is configured here: keep a copy of the bot's elsewhere".to_owned(),
    });
    lines.push(format!("check it with `countersign restore {} --verify`", to.display()));
    Ok(lines)
}

/// Checks a backup, and puts it in the place of the store unless it is `only_verified`. With `replace`, a store that is there
/// is kept under another name. Returns the findings, a line each.
///
/// # Errors
///
/// If the backup is not intact, a bot uses the store, or there is a store already.
pub async fn restore(config: &Config, from: &Path, only_verified: bool, replace: bool) -> anyhow::Result<Vec<String>> {
    let path = sqlite::file_beside(&config.store.path, "");
    let mails = config.email.context_file(&config.store.path);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder).with_context(|| format!("cannot create the folder {}", folder.display()))?;
    let copied_mails = sqlite::file_beside(from, MAIL_CONTEXT);
    let _held = match only_verified {
        true => None,
        false => {
            refuse_existing(&path, replace)?;
            if copied_mails.exists() {
                refuse_existing(&mails, replace)?;
            }
            let held = sqlite::lock(&path).context("cannot restore while a bot uses the store")?;
            like_its_folder(&sqlite::lock_of(&path));
            Some(held)
        }
    };
    let copy = Copy::of(from, &path)?;
    let mut lines = verify(config, &copy.0).await.with_context(|| format!("{} is not restored", from.display()))?;
    let mail_copy = copied_mails.exists().then(|| Copy::of(&copied_mails, &mails)).transpose()?;
    if let Some(copy) = &mail_copy {
        intact(&copy.0).with_context(|| format!("{} is not restored", copied_mails.display()))?;
        lines.push(format!("{}: intact", copied_mails.display()));
    }
    if only_verified {
        return Ok(lines);
    }
    let now = SystemClock.now().to_string().replace([':', '.'], "-");
    let of_mails = mail_copy.as_ref().map(|copy| (copy, &mails));
    for (copy, path) in of_mails.into_iter().chain([(&copy, &path)]) {
        let old = sqlite::file_beside(path, &format!(".{now}"));
        let existed = path.exists();
        backup::put_in_place(&copy.0, path, &old).with_context(|| format!("cannot restore {}", path.display()))?;
        lines.push(match existed {
            true => format!("{} is restored; what was there is now {}", path.display(), old.display()),
            false => format!("{} is restored", path.display()),
        });
    }
    lines.push("before you start the bot, read “After a restore” in docs/operating.md".to_owned());
    Ok(lines)
}

/// Fails if there is a database at `path`, or a log without one, which is not to be replaced.
fn refuse_existing(path: &Path, replace: bool) -> anyhow::Result<()> {
    let found = backup::FILES.map(|ending| sqlite::file_beside(path, ending)).into_iter().find(|file| file.exists());
    match found {
        Some(found) if !replace => bail!(
            "there is {} already; with --replace it is kept beside the restored one, under a name with the time",
            found.display()
        ),
        _ => Ok(()),
    }
}

/// A copy that is removed in the end, unless it was put in its place.
struct Copy(PathBuf);

impl Copy {
    /// Copies a file to the folder of `path`.
    fn of(from: &Path, path: &Path) -> anyhow::Result<Self> {
        let to = sqlite::file_beside(path, ".restoring");
        let copied = (|| {
            fs::remove_file(&to)
                .or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })?;
            let mut source = File::open(from)?;
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&to)?;
            io::copy(&mut source, &mut file)?;
            like_its_folder(&to);
            file.sync_all()
        })();
        copied.with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
        Ok(Self(to))
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        for ending in backup::FILES.into_iter().chain([".lock"]) {
            fs::remove_file(sqlite::file_beside(&self.0, ending)).ok(); // there may be none
        }
    }
}

/// Gives a file the owner of its folder, which only root may do: a bot with an account of its own could not open it.
fn like_its_folder(path: &Path) {
    let folder = path.parent().and_then(|folder| fs::metadata(folder).ok());
    if let Some(folder) = folder {
        chown(path, Some(folder.uid()), Some(folder.gid())).ok();
    }
}

fn intact(path: &Path) -> anyhow::Result<()> {
    let faults = backup::faults(path).context("it isn't a database")?;
    match faults.is_empty() {
        true => Ok(()),
        false => {
            bail!("SQLite finds it damaged: {}", faults.into_iter().take(MAX_LISTED).collect::<Vec<_>>().join("; "))
        }
    }
}

/// Checks a copy: the database, that everything in it can be read, and the seals of all records, requests and registers.
/// An older schema is brought up to date.
async fn verify(config: &Config, copy: &Path) -> anyhow::Result<Vec<String>> {
    intact(copy)?;
    let open = SqliteStore::open(copy, Arc::new(SystemClock)).context("it can't be opened as a store")?;
    let store: Arc<dyn Store> = Arc::new(open);
    let about = store.register(backup::ABOUT).await?.value;
    let Some(sealed) = keys::checked_to_read(store.clone(), config)? else {
        bail!("there is no digest key to check it with; put the key of its bot at {}", keys::file_of(config).display());
    };
    let key: Option<KeyId> = serde_json::from_value(about["key"].clone()).ok();
    if let Some(key) = key.filter(|key| !keys::existing_keys(config).ok().flatten().is_some_and(|ring| ring.has(key))) {
        bail!(
            "it is sealed with digest key {key}, and there is no such key here; put it in {}",
            keys::file_of(config).display()
        );
    }
    check_store::all_readable(&*store).await.map_err(anyhow::Error::msg)?;
    let records = check_store::records(&*sealed, usize::MAX).await.map_err(anyhow::Error::msg)?;
    let mut faults = records.broken;
    for key in backup::registers(copy)? {
        if store.register(&key).await?.value != Value::Null && sealed.register(&key).await?.value == Value::Null {
            faults.push(format!("the register `{key}` was altered"));
        }
    }
    if !faults.is_empty() {
        bail!("{}", faults.join("; "));
    }
    let open = ActionFilter::all(&[Status::Pending], usize::MAX);
    let open = sealed.actions(&open).await?.len();
    let made: Option<Timestamp> = serde_json::from_value(about["at"].clone()).ok();
    let of = match made {
        Some(made) => format!("a backup of {made}, by version {}", about["program"].as_str().unwrap_or("unknown")),
        None => "a copy that `countersign backup` did not make".to_owned(),
    };
    let newest = records.newest.map_or_else(|| "none".to_owned(), |newest| newest.to_string());
    Ok(vec![
        format!("intact: {of}"),
        format!("threads: {}, with {} entries, all sealed and in order", records.threads, records.entries),
        format!("open approvals: {open}"),
        format!("newest entry: {newest}"),
    ])
}
