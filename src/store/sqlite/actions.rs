//! Actions, which change only by compare-and-set.

use countersign_core::ids::{ActionId, ApprovalId, ThreadId};
use countersign_graph::{
    action::{ActionRecord, Label, Parts, Status},
    store::{ActionChange, ActionFilter, ActionsOf, Error},
};
use rusqlite::{OptionalExtension as _, Row, ToSql, params};

use super::{
    connection::Connection,
    failure::Failure,
    keys::{bytes, int, json, name},
    thread_row::ThreadRow,
    written::Written,
};
use crate::{aside, packed::packed};

/// A change of an action, serialized.
#[derive(Debug)]
pub(super) struct StoredAction {
    id: ActionId,
    approval: ApprovalId,
    expected: Option<u64>,
    revision: u64,
    status: Status,
    requested_at: i64,
    /// The labels that the action does not have yet.
    labels: Vec<String>,
    /// The record without its parts. It is packed once it is final: until then, the next status replaces it.
    record: Vec<u8>,
    /// The parts; `None` if the action has them already.
    parts: Option<Vec<u8>>,
    /// The status that the change replaces, if it is known and nothing but the status and the record changes.
    replaces: Option<Status>,
}

impl StoredAction {
    /// Serializes a change of an action of which this is in the store.
    pub(super) fn new(ActionChange { expected, record }: &ActionChange, written: &Written) -> Self {
        let without_parts = record.without_parts();
        let is_new = |label: &&Label| !written.labels.contains(label);
        let labels: Vec<_> = record.labels().iter().filter(is_new).map(Label::to_string).collect();
        let only_status = written.parts && labels.is_empty();
        Self {
            id: record.id.clone(),
            approval: record.approval.clone(),
            expected: *expected,
            revision: record.revision,
            status: record.status,
            requested_at: record.requested_at.0,
            replaces: written.status.filter(|before| only_status && before.may_become(record.status)),
            labels,
            record: match record.status.is_in_progress() {
                true => json(&without_parts).into_bytes(),
                false => packed(&without_parts),
            },
            parts: (!written.parts).then(|| packed(&Parts::of(record))),
        }
    }
}

/// Inserts or updates an action, if it is in the state that the change assumes.
pub(super) fn change(connection: &Connection<'_>, row: &ThreadRow, change: &StoredAction) -> Result<(), Failure> {
    if replace_status(connection, row, change)? {
        return Ok(());
    }
    const STORED: &str = "SELECT id, status, revision, approval = ?3 AND requested_at = ?4 FROM actions \
                          WHERE thread = ?1 AND action = ?2";
    let values = params![row.id, change.id.as_str(), change.approval.as_str(), change.requested_at];
    let stored: Option<(i64, String, i64, bool)> = connection
        .statement(STORED)?
        .query_row(values, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
        .optional()?;
    match (change.expected, stored) {
        (None, None) => {
            const SQL: &str = "INSERT INTO actions \
                               (thread, action, approval, status, revision, requested_at, record, parts, ended) \
                               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
            connection.statement(SQL)?.execute(params![
                row.id,
                change.id.as_str(),
                change.approval.as_str(),
                change.status.as_str(),
                int(change.revision),
                change.requested_at,
                change.record,
                change.parts,
                !change.status.is_in_progress(),
            ])?;
            label(connection, connection.last_insert_rowid(), change)
        }
        (Some(expected), Some((id, status, revision, has_same_keys)))
            if revision == int(expected) && read_status(&status)?.may_become(change.status) =>
        {
            let was_in_progress = read_status(&status)?.is_in_progress();
            const KEYS: &str = "UPDATE actions SET approval = ?2, requested_at = ?3 WHERE id = ?1";
            const SQL: &str = "UPDATE actions SET status = ?2, revision = ?3, record = ?4 WHERE id = ?1";
            const PARTS: &str = "UPDATE actions SET parts = ?2 WHERE id = ?1";
            const ENDED: &str = "UPDATE actions SET ended = ?2 WHERE id = ?1";
            // A column that is set is written to all of its indexes, even if its value is the same.
            if !has_same_keys {
                let values = params![id, change.approval.as_str(), change.requested_at];
                connection.statement(KEYS)?.execute(values)?;
            }
            let values = params![id, change.status.as_str(), int(change.revision), change.record];
            connection.statement(SQL)?.execute(values)?;
            if let Some(parts) = &change.parts {
                connection.statement(PARTS)?.execute(params![id, parts])?;
            }
            if change.status.is_in_progress() != was_in_progress {
                connection.statement(ENDED)?.execute(params![id, was_in_progress])?;
            }
            label(connection, id, change)
        }
        (_, stored) => {
            let current = match stored {
                Some(_) => find(connection, &row.thread, &change.id)?.map(|record| record.read()).transpose()?,
                None => None,
            };
            Err(Error::ActionMoved { id: change.id.clone(), current: current.map(Box::new) }.into())
        }
    }
}

/// Updates an action of which only the status and the record change, if that is known and it is in the state that the change
/// assumes. Returns false otherwise.
fn replace_status(connection: &Connection<'_>, row: &ThreadRow, change: &StoredAction) -> Result<bool, Failure> {
    let (Some(expected), Some(replaces)) = (change.expected, change.replaces) else { return Ok(false) };
    macro_rules! update {
        ($($ended:literal)?) => {
            concat!(
                "UPDATE actions SET status = ?1, revision = ?2, record = ?3", $($ended,)?
                " WHERE thread = ?4 AND action = ?5 AND revision = ?6 AND status = ?7"
            )
        };
    }
    // A column that is set is written to all of its indexes, even if its value is the same.
    let sql =
        if change.status.is_in_progress() == replaces.is_in_progress() { update!() } else { update!(", ended = 1") };
    let updated = connection.statement(sql)?.execute(params![
        change.status.as_str(),
        int(change.revision),
        change.record,
        row.id,
        change.id.as_str(),
        int(expected),
        replaces.as_str(),
    ])?;
    Ok(updated == 1)
}

/// Adds an action's labels. Outdated labels remain, and are ignored by readers.
fn label(connection: &Connection<'_>, id: i64, change: &StoredAction) -> Result<(), Failure> {
    const SQL: &str = "INSERT OR IGNORE INTO action_labels (label, requested_at, action) VALUES (?1, ?2, ?3)";
    let mut insert = connection.statement(SQL)?;
    for label in &change.labels {
        insert.execute(params![label, change.requested_at, id])?;
    }
    Ok(())
}

/// Returns an action of a thread, still serialized.
pub(super) fn find(
    connection: &Connection<'_>,
    thread: &ThreadId,
    id: &ActionId,
) -> Result<Option<StoredRecord>, Failure> {
    let Some(row) = ThreadRow::find(connection, thread)? else { return Ok(None) };
    const SQL: &str = "SELECT record, parts FROM actions WHERE thread = ?1 AND action = ?2";
    let mut select = connection.statement(SQL)?;
    Ok(select.query_row(params![row.id, id.as_str()], |row| StoredRecord::of(row, 0)).optional()?)
}

/// Returns the action with this approval key, still serialized.
pub(super) fn find_by_approval(
    connection: &Connection<'_>,
    approval: &ApprovalId,
) -> Result<Option<StoredRecord>, Failure> {
    let mut select = connection.statement("SELECT record, parts FROM actions WHERE approval = ?1")?;
    Ok(select.query_row([approval.as_str()], |row| StoredRecord::of(row, 0)).optional()?)
}

/// An action, still serialized.
#[derive(Debug)]
pub(super) struct StoredRecord {
    record: Vec<u8>,
    /// The parts of the record.
    parts: Vec<u8>,
}

impl StoredRecord {
    /// Takes a record from two columns.
    fn of(row: &Row<'_>, first: usize) -> rusqlite::Result<Self> {
        Ok(Self { record: bytes(row, first)?, parts: bytes(row, first + 1)? })
    }

    /// Parses the record.
    pub(super) fn read(&self) -> Result<ActionRecord, Error> {
        let record: ActionRecord = aside::parse_versioned("an action", &self.record, ActionRecord::FORMAT)?;
        Ok(record.with_parts(aside::parse("an action", &self.parts)?))
    }
}

/// An action in a list: its place and its record.
pub(super) type Listed = (String, StoredRecord);

/// Returns the actions selected by a filter, newest first, still serialized.
pub(super) fn list(connection: &Connection<'_>, filter: &ActionFilter) -> Result<Vec<Listed>, Failure> {
    let mut values: Vec<Box<dyn ToSql>> = Vec::new();
    if let ActionsOf::Labels(labels) = &filter.of {
        return list_under(connection, labels, &filter.statuses, filter.limit);
    }
    if let ActionsOf::Thread(thread) = &filter.of {
        let Some(row) = ThreadRow::find(connection, thread)? else { return Ok(Vec::new()) };
        values.push(Box::new(row.id));
    }
    values.extend(filter.statuses.iter().map(|status| Box::new(status.as_str()) as Box<dyn ToSql>));
    values.push(Box::new(i64::try_from(filter.limit).unwrap_or(i64::MAX)));
    let mut select = connection.prepare_cached(&list_sql(filter))?;
    let values: Vec<&dyn ToSql> = values.iter().map(AsRef::as_ref).collect();
    let rows = select.query_map(values.as_slice(), |row| Ok((place(row, 0)?, StoredRecord::of(row, 2)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const FROM_ACTIONS: &str = "SELECT (SELECT team || '/' || channel || '/' || root FROM threads WHERE id = thread), \
                            action, record, parts FROM actions";

/// Returns the statement for a filter. Its parameters are the thread, the statuses and the limit,
/// as far as the filter has them.
fn list_sql(filter: &ActionFilter) -> String {
    let of_thread = matches!(filter.of, ActionsOf::Thread(_));
    let mut sql = FROM_ACTIONS.to_owned();
    // These indexes avoid reading actions that have ended, however many there are. The sign keeps SQLite from reading the
    // actions of all threads in their order.
    sql += match (of_thread, are_in_progress(&filter.statuses)) {
        (true, true) => " INDEXED BY actions_of_thread WHERE ended = 0 AND actions.thread = ?",
        (true, false) => " WHERE actions.thread = ?",
        (false, true) => " INDEXED BY actions_in_progress WHERE ended = 0",
        (false, false) => " WHERE 1",
    };
    if !filter.statuses.is_empty() {
        sql += &format!(" AND status IN ({})", question_marks(filter.statuses.len()));
    }
    sql += if of_thread { " ORDER BY +requested_at DESC" } else { " ORDER BY requested_at DESC" };
    sql + ", id DESC LIMIT ?"
}

/// Returns true if only actions in progress have one of these statuses. No statuses stand for all.
fn are_in_progress(statuses: &[Status]) -> bool {
    !statuses.is_empty() && statuses.iter().all(|status| status.is_in_progress())
}

/// Returns parameters for a list, which costs less than a table of them made from JSON.
fn question_marks(count: usize) -> String {
    vec!["?"; count].join(", ")
}

/// Returns the place of an action, from the columns with its thread and its id.
fn place(row: &Row<'_>, first: usize) -> rusqlite::Result<String> {
    let thread: Option<String> = row.get(first).unwrap_or_default();
    Ok(format!("{} {}", thread.unwrap_or_default(), name(row, first + 1)?))
}

/// Returns the actions with any of the labels, newest first, each once, still serialized.
///
/// There are few actions in progress, so all of them are looked at; others are found by their labels.
fn list_under(
    connection: &Connection<'_>,
    labels: &[Label],
    statuses: &[Status],
    limit: usize,
) -> Result<Vec<Listed>, Failure> {
    const COLUMNS: &str = "a.requested_at, a.id, a.record, a.parts, \
                           (SELECT team || '/' || channel || '/' || root FROM threads WHERE id = a.thread), a.action";
    let all_in_progress = are_in_progress(statuses);
    let statuses = if statuses.is_empty() { Status::ALL.as_slice() } else { statuses };
    let any = question_marks(statuses.len());
    let sql = match all_in_progress {
        true => format!(
            "SELECT {COLUMNS} FROM actions AS a INDEXED BY actions_in_progress WHERE a.ended = 0 AND a.status IN ({any}) \
             AND EXISTS (SELECT 1 FROM action_labels AS l \
                         WHERE l.label = ? AND l.requested_at = a.requested_at AND l.action = a.id) \
             ORDER BY a.requested_at DESC, a.id DESC LIMIT ?"
        ),
        false => format!(
            "SELECT {COLUMNS} FROM action_labels AS l CROSS JOIN actions AS a ON a.id = l.action \
             WHERE a.status IN ({any}) AND l.label = ? ORDER BY l.requested_at DESC, l.action DESC LIMIT ?"
        ),
    };
    let limit_per_label = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut select = connection.prepare_cached(&sql)?;
    let mut found: Vec<(i64, i64, Listed)> = Vec::new();
    for label in labels.iter().map(Label::to_string) {
        let mut values: Vec<&dyn ToSql> = Vec::with_capacity(statuses.len() + 2);
        let words: Vec<&str> = statuses.iter().map(|status| status.as_str()).collect();
        values.extend(words.iter().map(|word| word as &dyn ToSql));
        values.extend([&label as &dyn ToSql, &limit_per_label]);
        let rows = select.query_map(values.as_slice(), |row| {
            Ok((row.get(0)?, row.get(1)?, (place(row, 4)?, StoredRecord::of(row, 2)?)))
        })?;
        for row in rows {
            found.push(row?);
        }
    }
    found.sort_by_key(|(at, id, _)| std::cmp::Reverse((*at, *id)));
    found.dedup_by_key(|(_, id, _)| *id);
    found.truncate(limit);
    Ok(found.into_iter().map(|(_, _, record)| record).collect())
}

/// Parses the records of a list, and reports those that cannot be read.
pub(super) fn read_list(records: Vec<Listed>, mut unreadable: impl FnMut(String, Error)) -> Vec<ActionRecord> {
    let read = |(place, record): Listed| match record.read() {
        Ok(record) => Some(record),
        Err(error) => {
            unreadable(place, error);
            None
        }
    };
    records.into_iter().filter_map(read).collect()
}

fn read_status(word: &str) -> Result<Status, Error> {
    let known = Status::ALL.into_iter().find(|status| status.as_str() == word);
    known.ok_or_else(|| Error::Corrupt { what: format!("an action: no status is called `{word}`") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_column_and_the_record_name_a_status_alike() {
        for status in Status::ALL {
            assert_eq!(json(&status), format!("\"{status}\""));
            assert_eq!(read_status(status.as_str()).unwrap(), status);
        }
        assert!(read_status("decided").is_err());
    }

    #[test]
    fn old_actions_of_a_thread_do_not_slow_down_a_query() {
        let mut connection = rusqlite::Connection::open_in_memory().unwrap();
        crate::sqlite::schema::migrate(&mut connection).unwrap().unwrap();
        let insert = |n: i64, status: Status| {
            const SQL: &str = "INSERT INTO actions (thread, action, approval, status, revision, requested_at, record, parts, ended) \
                               VALUES (1, ?1, ?1, ?2, 1, ?3, x'7b7d', x'7b7d', ?4)";
            connection.execute(SQL, params![format!("a{n}"), status.as_str(), n, !status.is_in_progress()]).unwrap();
        };
        let thread = ThreadId { team: "T1".into(), channel: "C1".into(), root: "1.1".into() };
        let filter = ActionFilter::of(&thread, &[Status::Pending], 20);
        let cost = || {
            let mut select = connection.prepare(&list_sql(&filter)).unwrap();
            let found = select.query_map(params![1, "pending", 20], |_| Ok(())).unwrap().count();
            assert_eq!(found, 1);
            select.get_status(rusqlite::StatementStatus::VmStep)
        };
        insert(0, Status::Pending);
        let alone = cost();
        (1..=500).for_each(|n| insert(n, Status::Rejected));
        assert_eq!(cost(), alone, "steps of SQLite's virtual machine");
    }
}
