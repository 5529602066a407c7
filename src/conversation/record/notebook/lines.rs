//! The notebook for machines, in JSON Lines: a head, then a line for each entry, in a fixed form.
//!
//! Each line is a JSON object whose last field, `line`, is the SHA-256 hash of the line without
//! that field. Any change of a line can therefore be detected in that line, even where the record's
//! chain does not apply: in the head, a pseudonym or white space.

use countersign_core::{clock::Timestamp, ids::ThreadId, reply::Attachment};
use countersign_graph::store::AuditEntry;
use serde::{Deserialize, Serialize};

use super::words::sha256;

/// The version of this format, which a notebook names in its head. One of another version is refused, and so is a line with
/// anything else in it: a new field takes the next version.
pub const FORMAT: u32 = 1;

/// The first line of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// The version of the format. The name of the field identifies the kind of file.
    pub countersign_notebook: u32,
    /// The program that wrote it.
    pub exporter: String,
    /// The time of the export.
    pub exported_at: Timestamp,
    /// The thread, as `TEAM/CHANNEL/TS`.
    pub thread: String,
    /// The number of entries that follow.
    pub entries: u64,
    /// The hash of the last entry.
    pub last: String,
    /// The number of values hidden in the entries.
    pub hidden: usize,
    /// The seal of the record's head, for those who have the key: [`countersign_graph::store::AuditHead::seal`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<String>,
    /// The other files of the export.
    pub files: Vec<FileLine>,
    /// The SHA-256 hash of everything below this line.
    pub seal: String,
}

/// A file of the export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileLine {
    /// The file's name.
    pub name: String,
    /// The file's length.
    pub bytes: usize,
    /// The file's hash.
    pub sha256: String,
}

impl FileLine {
    /// Describes a file.
    pub fn of(file: &Attachment) -> Self {
        Self { name: file.name.clone(), bytes: file.bytes.len(), sha256: sha256(&file.bytes) }
    }
}

impl Head {
    pub(super) fn new(
        thread: &ThreadId,
        at: Timestamp,
        record: &[AuditEntry],
        last: &str,
        sealed: Option<String>,
        files: Vec<FileLine>,
    ) -> Self {
        Self {
            countersign_notebook: FORMAT,
            exporter: format!("countersign {}", env!("CARGO_PKG_VERSION")),
            exported_at: at,
            thread: thread.to_string(),
            entries: record.len() as u64,
            last: last.to_owned(),
            hidden: record.iter().filter_map(|entry| entry.sealed.as_ref()).map(|sealed| sealed.hidden.len()).sum(),
            sealed,
            files,
            seal: String::new(),
        }
    }
}

/// Returns the whole file, and sets the head's seal.
pub(super) fn write(mut head: Head, record: &[AuditEntry]) -> Vec<u8> {
    let body: String = record.iter().map(|entry| line(entry) + "\n").collect();
    head.seal = sha256(body.as_bytes());
    (line(&head) + "\n" + &body).into_bytes()
}

fn line(content: &impl Serialize) -> String {
    let text = serde_json::to_string(content).expect("a line is plain data");
    let hash = sha256(text.as_bytes());
    format!("{},\"line\":\"{hash}\"}}", &text[..text.len() - 1])
}

/// Checks the hash of a line, and returns the line without it.
///
/// # Errors
///
/// The fault, and the correct form.
pub(super) fn read(line: &str) -> Result<String, (String, String)> {
    const FIELD: &str = ",\"line\":\"";
    let shape = || {
        let wrong = "it does not end in its own hash".to_owned();
        (wrong, format!("its last field is {FIELD}…\"}} with 64 hexadecimal digits"))
    };
    let (text, rest) = line.rsplit_once(FIELD).ok_or_else(shape)?;
    let found = rest.strip_suffix("\"}").ok_or_else(shape)?;
    let text = format!("{text}}}");
    let right = sha256(text.as_bytes());
    if found == right {
        Ok(text)
    } else {
        Err((format!("it says that the line's hash is {found}"), format!("the line as it stands has hash {right}")))
    }
}
