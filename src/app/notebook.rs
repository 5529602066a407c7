//! `countersign notebook` and `countersign audit verify`: exports a thread as files, and checks such files.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, bail};
use countersign_config::Config;
use countersign_conversation::record::notebook::{
    Notebook, Redaction,
    verify::{self, Verified},
};
use countersign_core::{clock::SystemClock, ids::ThreadId, private_file};
use countersign_graph::keyring::Proof;

use super::{dependencies, keys};

/// The checks of records.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Audit {
    /// Checks an exported notebook without the store or the network, and reports the first problem.
    ///
    /// Without a key, it detects damage: changed bytes, lines that are missing, added or moved, a truncated end. Anyone can
    /// compute such hashes anew, so it cannot tell who wrote the notebook. For that, give the digest key of the installation,
    /// or the last hash as it was noted elsewhere.
    Verify {
        /// The `notebook.jsonl`.
        file: PathBuf,
        /// The hash that the last entry must have, as noted elsewhere.
        #[arg(long, value_name = "HASH")]
        last: Option<String>,
        /// The file with the digest key of the installation, such as `countersign.key`.
        #[arg(long, value_name = "FILE")]
        key: Option<PathBuf>,
    },
}

/// Writes a thread's notebook into a folder, in files that only their owner can read. Returns a line for each file, and
/// one with the number of entries and the last hash.
///
/// # Errors
///
/// If the thread has no record, or something cannot be read or written.
pub async fn export(config: &Config, thread: &ThreadId, folder: &Path) -> anyhow::Result<Vec<String>> {
    let clock = Arc::new(SystemClock);
    let store = dependencies::store_to_read(config, clock.clone()).await?;
    let store = keys::checked_to_read(store.clone(), config)?.unwrap_or(store);
    let slack = dependencies::slack(config).ok(); // without a token, people appear by their ids
    let exported = Notebook::new(store, clock, slack, Redaction::from(&config.record)).export(thread).await?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create the folder {}", folder.display()))?;
    let mut written = Vec::new();
    for file in [&exported.markdown, &exported.jsonl].into_iter().chain(&exported.figures) {
        let path = folder.join(&file.name);
        private_file::write(&path, &file.bytes).with_context(|| format!("cannot write {}", path.display()))?;
        written.push(path.display().to_string());
    }
    written.push(format!("{} entries, the last with hash {}", exported.entries, exported.last));
    Ok(written)
}

/// Checks a notebook and the other files of its export in the same folder. Returns the findings, a line each.
///
/// # Errors
///
/// If something is wrong; the error describes the first fault.
pub fn verify(file: &Path, last: Option<&str>, key: Option<&Path>) -> anyhow::Result<Vec<String>> {
    let keys = key.map(keys::read).transpose()?;
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let name = file.display();
    let verified = verify::verify(&bytes).with_context(|| format!("{name} is not intact"))?;
    if let Some(last) = last.map(str::trim).filter(|last| **last != *verified.last) {
        bail!("{name} is consistent, but its last entry has hash {}, not {last}", verified.last);
    }
    if let Some(keys) = &keys {
        match verified.proof(keys) {
            Proof::Ours => {}
            Proof::Altered => {
                bail!("{name} is consistent, but it isn't the record that was sealed: its seal doesn't fit")
            }
            Proof::KeyMissing(key) => bail!("{name} is sealed with digest key {key}, which isn't in the file"),
            Proof::UnknownVersion(version) => {
                bail!("{name} has a seal of version {version}, which this program doesn't know")
            }
            Proof::Unsealed => bail!("{name} is consistent, but it has no seal, so the key can't show who wrote it"),
        }
    }
    let folder = match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let (right, absent) =
        verify::check_files(&verified.files, folder).with_context(|| format!("{name} is not intact"))?;
    Ok(describe(&verified, &right, &absent, last.is_some(), keys.is_some()))
}

fn describe(verified: &Verified, right: &[String], absent: &[String], compared: bool, sealed: bool) -> Vec<String> {
    let Verified { thread, entries, span, last, sealed: _, hidden, withheld, files: _ } = verified;
    let mut lines = vec![format!("intact: {entries} entries of thread {thread}")];
    if let Some((from, to)) = span {
        lines.push(format!("from {from} to {to}"));
    }
    lines.push(format!("last hash {last}"));
    if *hidden > 0 {
        lines.push(format!("{hidden} values are hidden; the chain covers their hashes"));
    }
    if *withheld > 0 {
        lines.push(format!("{withheld} entries are fully hidden; only their position in the chain is verified"));
    }
    if !right.is_empty() {
        lines.push(format!("unchanged since export: {}", right.join(", ")));
    }
    if !absent.is_empty() {
        lines.push(format!("not in the same folder, so not checked: {}", absent.join(", ")));
    }
    if sealed {
        lines.push("the seal fits: these are the entries that the bot wrote, in this order, up to this one".into());
    } else if !compared {
        lines.push(
            "not checked: whether the bot wrote it. Anyone can compute such hashes; give the digest key (--key) or the \
             last hash as noted elsewhere (--last)"
                .into(),
        );
    }
    lines
}
