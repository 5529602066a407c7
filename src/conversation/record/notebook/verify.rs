//! Checks a notebook for machines, without store or network, and reports the first fault.

use std::{fmt, path::Path};

use countersign_core::{clock::Timestamp, ids::ThreadId};
use countersign_graph::{
    keyring::{Keyring, Proof},
    store::{AuditEntry, AuditHead},
};
use serde_json::Value;

use super::{
    lines::{self, FORMAT, FileLine, Head},
    words::sha256,
};
use crate::record::integrity::broken_entry;

/// A notebook without faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The thread.
    pub thread: ThreadId,
    /// The number of entries.
    pub entries: u64,
    /// The times of the first and the last entry.
    pub span: Option<(Timestamp, Timestamp)>,
    /// The hash of the last entry.
    pub last: String,
    /// The seal of the record's head.
    pub sealed: Option<String>,
    /// The number of hidden values, which are bound by their commitments.
    pub hidden: usize,
    /// The number of entries that are hidden completely. Only their place in the chain is proven.
    pub withheld: usize,
    /// The other files of the export.
    pub files: Vec<FileLine>,
}

/// The first fault of a notebook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The number of the line, counted from 1.
    pub line: usize,
    /// The number of the entry, if it is known.
    pub seq: Option<u64>,
    /// The fault.
    pub wrong: String,
    /// The correct content.
    pub right: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        if let Some(seq) = self.seq {
            write!(f, ", entry {seq}")?;
        }
        write!(f, ": {}; expected: {}", self.wrong, self.right)
    }
}

impl std::error::Error for Fault {}

/// Checks a whole file.
///
/// # Errors
///
/// The first [`Fault`].
pub fn verify(bytes: &[u8]) -> Result<Verified, Fault> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
        fault(line, None, "it contains bytes that are not text", "UTF-8, as it was written")
    })?;
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let Some((first, body)) = lines.split_first() else {
        return Err(fault(1, None, "the file is empty", "a notebook begins with its head"));
    };
    let head = read_head(complete_line(1, first)?)?;
    let thread: ThreadId = head
        .thread
        .parse()
        .map_err(|_| fault(1, None, format!("the thread is `{}`", head.thread), "TEAM/CHANNEL/TS"))?;
    // Changes within a line are detected by its own hash. The order of the lines is checked only
    // afterwards.
    let mut texts = Vec::with_capacity(body.len());
    for (n, raw) in body.iter().enumerate() {
        let wrong = |(wrong, right): (String, String)| fault(n + 2, Some(n as u64 + 1), wrong, right);
        texts.push(lines::read(complete_line(n + 2, raw)?).map_err(wrong)?);
    }
    let (mut previous, mut span, mut withheld, mut hidden) = (String::new(), None, 0, 0);
    for (n, text) in texts.iter().enumerate() {
        let (line, seq) = (n + 2, n as u64 + 1);
        if seq > head.entries {
            let right = format!("the file ends after entry {}, as its head says", head.entries);
            return Err(fault(line, Some(seq), "there is an extra line", right));
        }
        let entry = read_entry(line, seq, text)?;
        entry.check(&thread, &previous).map_err(|wrong| {
            let (wrong, right) = broken_entry(&entry, &wrong);
            fault(line, Some(seq), wrong, right)
        })?;
        span = Some((span.map_or(entry.event.at, |(first, _)| first), entry.event.at));
        withheld += usize::from(entry.withheld);
        hidden += entry.sealed.as_ref().map_or(0, |sealed| sealed.hidden.len());
        previous = entry.hash;
    }
    if (body.len() as u64) < head.entries {
        let wrong = format!("the file is cut off after entry {}", body.len());
        return Err(fault(body.len() + 2, None, wrong, format!("{} entries, as its head says", head.entries)));
    }
    if previous != head.last {
        let (wrong, right) = (format!("the head says that the last entry has hash {}", head.last), previous);
        return Err(fault(1, None, wrong, format!("it has hash {right}")));
    }
    let seal = sha256(&bytes[first.len()..]);
    if seal != head.seal || hidden != head.hidden {
        let wrong =
            format!("the head was made for different lines: its seal is {}, with {} hidden", head.seal, head.hidden);
        return Err(fault(1, None, wrong, format!("the lines below it have {seal}, with {hidden} hidden")));
    }
    let Head { entries, last, sealed, files, .. } = head;
    Ok(Verified { thread, entries, span, last, sealed, hidden, withheld, files })
}

impl Verified {
    /// Checks with the keys of the installation that the entries are those that its bot wrote.
    pub fn proof(&self, keys: &Keyring) -> Proof {
        let head = AuditHead { seq: self.entries, hash: self.last.clone(), seal: self.sealed.clone() };
        head.proof(&self.thread, keys)
    }
}

/// Checks the files next to the notebook. Returns those that exist and are correct, and those that
/// are missing. A file that was renamed by a download is found by its content.
///
/// # Errors
///
/// The first file that exists and differs.
pub fn check_files(files: &[FileLine], folder: &Path) -> Result<(Vec<String>, Vec<String>), Fault> {
    let (mut right, mut absent) = (Vec::new(), Vec::new());
    for file in files {
        let plain = Path::new(&file.name).file_name().is_some_and(|name| name == file.name.as_str());
        match std::fs::read(folder.join(&file.name)) {
            Ok(bytes) if plain && sha256(&bytes) == file.sha256 => right.push(file.name.clone()),
            Ok(bytes) if plain => {
                let wrong = format!("{} is next to it and has SHA-256 {}", file.name, sha256(&bytes));
                return Err(fault(1, None, wrong, format!("{}, as the head says", file.sha256)));
            }
            _ => match under_another_name(file, folder) {
                Some(name) => right.push(format!("{} (as {name})", file.name)),
                None => absent.push(file.name.clone()),
            },
        }
    }
    Ok((right, absent))
}

/// Returns the name of a file in the folder with the same extension, length and hash.
fn under_another_name(file: &FileLine, folder: &Path) -> Option<String> {
    let ending = Path::new(&file.name).extension()?;
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .ok()?
        .filter_map(Result::ok)
        .filter(|entry| Path::new(&entry.file_name()).extension() == Some(ending))
        .filter(|entry| entry.metadata().is_ok_and(|about| about.is_file() && about.len() == file.bytes as u64))
        .map(|entry| entry.file_name())
        .collect();
    names.sort();
    let found = names
        .into_iter()
        .find(|name| std::fs::read(folder.join(name)).is_ok_and(|bytes| sha256(&bytes) == file.sha256))?;
    Some(found.to_string_lossy().into_owned())
}

fn fault(line: usize, seq: Option<u64>, wrong: impl Into<String>, right: impl Into<String>) -> Fault {
    Fault { line, seq, wrong: wrong.into(), right: right.into() }
}

/// Returns a line without its line break.
fn complete_line(line: usize, raw: &str) -> Result<&str, Fault> {
    raw.strip_suffix('\n').ok_or_else(|| fault(line, None, "the line is cut off", "every line ends in a line break"))
}

fn read_head(line: &str) -> Result<Head, Fault> {
    let right = "a head that begins with {\"countersign_notebook\":";
    let loose: Value =
        serde_json::from_str(line).map_err(|error| fault(1, None, format!("it is not JSON ({error})"), right))?;
    match loose["countersign_notebook"].as_u64() {
        None => return Err(fault(1, None, "it isn't the head of a notebook", right)),
        Some(format) if format != u64::from(FORMAT) => {
            let right = format!("{FORMAT}, or a program that knows {format}");
            return Err(fault(1, None, format!("the format is {format}, which this program does not know"), right));
        }
        Some(_) => {}
    }
    let text = lines::read(line).map_err(|(wrong, right)| fault(1, None, wrong, right))?;
    let head: Head = serde_json::from_str(&text)
        .map_err(|error| fault(1, None, format!("the head cannot be read ({error})"), "a head in this format"))?;
    check_exact_form(1, None, &head, &text)?;
    Ok(head)
}

fn read_entry(line: usize, seq: u64, text: &str) -> Result<AuditEntry, Fault> {
    let entry: AuditEntry = serde_json::from_str(text).map_err(|error| {
        fault(line, Some(seq), format!("it cannot be read ({error})"), "a record entry in this format")
    })?;
    check_exact_form(line, Some(seq), &entry, text)?;
    if entry.seq != seq {
        let wrong = match entry.seq > seq {
            true => format!("entry {} is here: entry {seq} is missing or out of place", entry.seq),
            false => format!("entry {} is here again, or too late", entry.seq),
        };
        return Err(fault(line, Some(seq), wrong, format!("entry {seq}")));
    }
    Ok(entry)
}

/// Checks that a line contains nothing that the format does not define.
fn check_exact_form(line: usize, seq: Option<u64>, read: &impl serde::Serialize, text: &str) -> Result<(), Fault> {
    let again = serde_json::to_string(read).expect("a line is plain data");
    if again == text {
        return Ok(());
    }
    Err(fault(line, seq, "there is something in it that does not belong there", again))
}
