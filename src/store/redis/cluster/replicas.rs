//! Writes that count once a replica has them.
//!
//! Replication is asynchronous: a master answers before its replicas have the write, and if it fails then, one of them
//! takes over without it. So a write asks in the same request how far the replicas are (`WAIT`), and counts once one of
//! them has it. A replica confirms what it has written to its own file, if it syncs that file for each write as the
//! master does. Without a confirmation the write may be lost, and the caller gets an error that says so.
//!
//! **Which masters have replicas** changes while they run. A master that is believed to have none is therefore asked, in
//! the request of the write, for the replicas that follow it and for those that the cluster counts on. If there are any
//! by now, the write waits for them as well.
//!
//! **A replica that is not there** is not waited for: one that the cluster counts as failed, and one that is still
//! receiving all the data. It does not take over in that state. If the master fails in the very moment in which such a
//! replica comes back, the last writes from before may be lost. `min-replicas-to-write 1` on the servers excludes this:
//! they then refuse writes as long as no replica is in sync.
//!
//! `WAIT` covers the writes of its own connection. A script that only found what another connection has just written,
//! such as a repeat, has to wait for that one, so each request writes a small key of its own as well
//! ([`super::unit::Unit::of_write`]).
//!
//! A request waits on its connection, and what follows there waits too. Writes therefore have connections to themselves,
//! and the server answers many of them at a time.

use std::time::Duration;

use redis::{Pipeline, Value};

use super::topology::Followed;

/// The time in which a replica has to confirm a write. It is shorter than the limit for a response.
const CONFIRM_LIMIT: Duration = Duration::from_secs(2);

/// The state of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Confirmation {
    /// It is where it has to be.
    Complete,
    /// There are replicas, which have not been asked.
    Open,
    /// No replica has confirmed it in time.
    Missing,
}

/// Adds the question whether a replica has everything that this connection has written.
pub(super) fn ask_for_confirmation(request: &mut Pipeline) {
    request.cmd("WAIT").arg(1).arg(CONFIRM_LIMIT.as_millis() as u64);
}

/// Reads the answer to [`ask_for_confirmation`].
pub(super) fn read_confirmation(mut answers: impl Iterator<Item = Value>) -> Confirmation {
    match answers.next() {
        Some(Value::Int(1..)) => Confirmation::Complete,
        _ => Confirmation::Missing,
    }
}

/// Adds the question whether a master has replicas.
pub(super) fn ask_for_replicas(request: &mut Pipeline) {
    request.cmd("ROLE");
    request.cmd("CLUSTER").arg("MYID");
    request.cmd("CLUSTER").arg("SLOTS");
}

/// Reads the answer to [`ask_for_replicas`].
pub(super) fn read_replicas(mut answers: impl Iterator<Item = Value>) -> Confirmation {
    let role: Option<(String, i64, Vec<Value>)> = answers.next().and_then(|role| redis::from_redis_value(role).ok());
    let id = answers.next();
    if let (Some((role, _, following)), true) = (&role, id.as_ref().is_some_and(is_in_no_cluster)) {
        return match (role == "master", following.is_empty()) {
            (true, true) => Confirmation::Complete,
            (true, false) => Confirmation::Open,
            (false, _) => Confirmation::Missing,
        };
    }
    let id: Option<String> = id.and_then(|id| redis::from_redis_value(id).ok());
    match (role, id, answers.next()) {
        (Some((role, _, following)), Some(id), Some(slots @ Value::Array(_))) if role == "master" => {
            let has_replicas = !following.is_empty() || Followed::read(slots).has(&id);
            if has_replicas { Confirmation::Open } else { Confirmation::Complete }
        }
        _ => Confirmation::Missing, // it is no longer a master
    }
}

/// Returns true if a server that is no part of a cluster was asked for its id in the cluster.
fn is_in_no_cluster(answer: &Value) -> bool {
    matches!(answer, Value::ServerError(error) if error.details().is_some_and(|details| details.contains("cluster support disabled")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_counts_once_one_replica_has_it() {
        let read = |answers: &[Value]| read_confirmation(answers.iter().cloned());
        assert_eq!(read(&[Value::Int(2)]), Confirmation::Complete);
        assert_eq!(read(&[Value::Int(0)]), Confirmation::Missing);
        assert_eq!(read(&[Value::Nil]), Confirmation::Missing);
        assert_eq!(read(&[]), Confirmation::Missing);
    }

    #[test]
    fn replicas_are_those_that_follow_and_those_that_the_master_knows() {
        let role = |role: &str, following: usize| {
            let following = Value::Array(vec![Value::Array(Vec::new()); following]);
            Value::Array(vec![Value::BulkString(role.as_bytes().to_vec()), Value::Int(7), following])
        };
        let id = || Value::BulkString(b"a1".to_vec());
        let node = |id: &str| {
            let host = Value::BulkString(b"127.0.0.1".to_vec());
            Value::Array(vec![
                host,
                Value::Int(7001),
                Value::BulkString(id.as_bytes().to_vec()),
                Value::Array(Vec::new()),
            ])
        };
        let slots = |nodes: &[&str]| {
            let range = [Value::Int(0), Value::Int(5)].into_iter().chain(nodes.iter().map(|id| node(id)));
            Value::Array(vec![Value::Array(range.collect())])
        };
        let read = |role, slots| read_replicas([role, id(), slots].into_iter());
        assert_eq!(read(role("master", 0), slots(&["a1"])), Confirmation::Complete);
        assert_eq!(read(role("master", 0), slots(&["b2", "c3"])), Confirmation::Complete);
        assert_eq!(read(role("master", 0), slots(&["a1", "b2"])), Confirmation::Open);
        assert_eq!(read(role("master", 1), slots(&["a1"])), Confirmation::Open);
        assert_eq!(read(role("slave", 0), slots(&["a1"])), Confirmation::Missing);
        assert_eq!(read(role("master", 0), Value::Nil), Confirmation::Missing);

        let no_cluster = || redis::parse_redis_value(b"-ERR This instance has cluster support disabled\r\n").unwrap();
        let alone = |role| read_replicas([role, no_cluster(), no_cluster()].into_iter());
        assert_eq!(alone(role("master", 0)), Confirmation::Complete);
        assert_eq!(alone(role("master", 1)), Confirmation::Open);
        assert_eq!(alone(role("slave", 0)), Confirmation::Missing);
    }
}
