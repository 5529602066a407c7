//! What follows from a power failure.
//!
//! A claim of a message is not synced ([`super::writer::Durable::Later`]), so it may be lost if the machine stops, and the
//! message may have been sent without a trace of it. When the file is opened after the machine was restarted, every
//! waiting message therefore counts as tried: it is searched for in Slack before it is sent.

use rusqlite::{Connection, OptionalExtension as _};

/// The register of the machine's last start.
pub(super) const MACHINE_START: &str = "sqlite:machine-start";

/// Counts the waiting messages as tried if the machine was restarted since the file was last opened.
pub(super) fn after_restart(connection: &Connection) -> rusqlite::Result<()> {
    count_as_tried(connection, machine_start().as_deref())
}

/// Returns an id that changes with each start of the machine; `None` if the system has none.
fn machine_start() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

fn count_as_tried(connection: &Connection, start: Option<&str>) -> rusqlite::Result<()> {
    const KNOWN: &str = "SELECT value ->> '$' FROM registers WHERE key = ?1";
    let known: Option<Option<String>> = connection.query_row(KNOWN, [MACHINE_START], |row| row.get(0)).optional()?;
    if start.is_some() && known.as_ref().and_then(Option::as_deref) == start {
        return Ok(());
    }
    connection.execute("UPDATE outbox SET attempts = 1 WHERE attempts = 0", [])?;
    const SET: &str = "INSERT INTO registers (key, revision, value) VALUES (?1, 1, json_quote(?2)) \
                       ON CONFLICT (key) DO UPDATE SET revision = revision + 1, value = excluded.value";
    connection.execute(SET, (MACHINE_START, start)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_wait_count_as_tried_after_a_restart_of_the_machine() {
        let mut connection = Connection::open_in_memory().unwrap();
        super::super::schema::migrate(&mut connection).unwrap().unwrap();
        let waits = "INSERT INTO outbox (nonce, progress, removes, not_before, since, attempts, body) VALUES ('n', 0, 0, 0, 0, ?1, x'7b7d')";
        let attempts_after = |start| {
            count_as_tried(&connection, start).unwrap();
            let mut select = connection.prepare("SELECT attempts FROM outbox ORDER BY id").unwrap();
            let attempts = select.query_map([], |row| row.get(0)).unwrap();
            attempts.collect::<Result<Vec<u32>, _>>().unwrap()
        };
        assert_eq!(attempts_after(Some("first")), [0; 0], "the file is new");
        connection.execute(waits, [0]).unwrap();
        connection.execute(waits, [3]).unwrap();
        assert_eq!(attempts_after(Some("first")), [0, 3], "only the process was restarted");
        assert_eq!(attempts_after(Some("second")), [1, 3], "the machine was");
        connection.execute(waits, [0]).unwrap();
        assert_eq!(attempts_after(Some("second")), [1, 3, 0]);
        assert_eq!(attempts_after(None), [1, 3, 1], "the system cannot tell");
        connection.execute(waits, [0]).unwrap();
        assert_eq!(attempts_after(None), [1, 3, 1, 1], "nor the next time");
        assert_eq!(attempts_after(Some("third")), [1, 3, 1, 1]);
    }
}
