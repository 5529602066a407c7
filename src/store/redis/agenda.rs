//! What is due, so that an idle process does not ask for each partition again and again.
//!
//! For each partition, the agenda knows the first time at which something is due. It looks at a
//! partition again after a hint ([`super::hints`]) and once that time has come. Every
//! [`LOOK_EVERY`], it looks at all of them: a hint may have been lost, and the work of a process
//! that died is announced by nobody. Without a subscription to hints, it always looks at all.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use countersign_core::{clock::Timestamp, ids::Partition};
use countersign_graph::store::Error;
use redis::Value;
use tokio::{sync::Mutex, time::Instant};

use super::{
    connection::{Link, Look},
    hints::Hints,
    json,
    keys::PartitionKey,
};

/// The interval between looks at all partitions.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The sets of a partition with the times at which something is due, except the timers, which are
/// far more numerous. They are empty if the partition is idle.
const WORK: [PartitionKey; 5] =
    [PartitionKey::Ready, PartitionKey::Inbox, PartitionKey::Sending, PartitionKey::Waiting, PartitionKey::Outbox];

/// What this process knows of the times at which something is due.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    hints: Hints,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    firsts: BTreeMap<Partition, First>,
    /// The time of the last look at all partitions; `None` if a look has failed since.
    looked_at: Option<Instant>,
}

/// The first times at which something is due in a partition, by each of the two clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct First {
    /// By the server's clock, converted to the clock of this process.
    server: Option<Instant>,
    /// In milliseconds of the people's clock.
    people: Option<i64>,
}

impl Agenda {
    /// Implements [`countersign_graph::store::Store::is_anything_due`].
    pub(super) async fn is_anything_due(&self, link: &Link, now: Timestamp) -> Result<bool, Error> {
        let mut known = self.known.lock().await;
        let hinted = self.hints.take(link);
        let in_time = known.looked_at.is_some_and(|at| at.elapsed() < LOOK_EVERY);
        let (all, partitions) = match hinted {
            Some(hinted) if in_time => (false, &hinted | &known.due(now)),
            _ => (true, Partition::all().collect()),
        };
        if !partitions.is_empty() {
            let looked_at = known.looked_at.take(); // if this look fails, the next one is at all partitions
            known.firsts.extend(look(link, &partitions).await?);
            known.looked_at = if all { Some(Instant::now()) } else { looked_at };
        }
        Ok(!known.due(now).is_empty())
    }
}

impl Known {
    /// Returns the partitions in which something is due.
    fn due(&self, now: Timestamp) -> BTreeSet<Partition> {
        let is_due = |first: &First| {
            first.server.is_some_and(|from| from <= Instant::now())
                || first.people.is_some_and(|from| from <= now.millis())
        };
        self.firsts.iter().filter(|(_, first)| is_due(first)).map(|(partition, _)| *partition).collect()
    }
}

/// Reads when something is due first in each of these partitions.
async fn look(link: &Link, partitions: &BTreeSet<Partition>) -> Result<BTreeMap<Partition, First>, Error> {
    let looks = link.look(partitions.iter().copied(), |pipeline, partition| {
        pipeline.cmd("EXISTS").arg(WORK.map(|set| set.of(partition)).as_slice());
        pipeline.zrange_withscores(PartitionKey::Timers.of(partition), 0, 0);
    });
    let (mut firsts, mut busy) = (BTreeMap::new(), Vec::new());
    for Look { partition, answers, .. } in looks.await? {
        let mut answers = answers.into_iter();
        let sets: u32 = json::answer(answers.next().unwrap_or(Value::Nil))?;
        if sets > 0 {
            busy.push(partition);
        }
        firsts.insert(partition, First { server: None, people: first_score(answers.next())? });
    }
    if busy.is_empty() {
        return Ok(firsts);
    }

    let looks = link.look(busy, |pipeline, partition| {
        for set in WORK {
            pipeline.zrange_withscores(set.of(partition), 0, 0);
        }
    });
    for Look { partition, server_now, answers } in looks.await? {
        let first = firsts.entry(partition).or_default();
        for (set, answer) in WORK.into_iter().zip(answers) {
            let from = first_score(Some(answer))?;
            match set {
                PartitionKey::Waiting | PartitionKey::Outbox => first.people = earlier(first.people, from),
                _ => first.server = earlier(first.server, from.and_then(|from| here(from, server_now))),
            }
        }
    }
    Ok(firsts)
}

/// Converts a time of the server's clock to the clock of this process. `None` if it is too far ahead.
fn here(at: i64, server_now: i64) -> Option<Instant> {
    Instant::now().checked_add(Duration::from_micros(u64::try_from(at.saturating_sub(server_now)).unwrap_or(0)))
}

/// Returns the score of the only member of an answer, if there is one.
fn first_score(answer: Option<Value>) -> Result<Option<i64>, Error> {
    let members = json::answer::<Vec<(String, f64)>>(answer.unwrap_or(Value::Nil))?;
    Ok(members.first().map(|(_, score)| *score as i64))
}

fn earlier<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    a.into_iter().chain(b).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_partition_is_due_by_either_clock() {
        let partitions: Vec<_> = Partition::all().take(3).collect();
        let at = |server, people| First { server, people };
        let firsts = [at(here(5_000_000, 4_000_000), None), at(None, Some(70)), at(None, None)];
        let known = Known { firsts: partitions.iter().copied().zip(firsts).collect(), looked_at: None };
        let due = |now| known.due(Timestamp(now)).into_iter().collect::<Vec<_>>();
        assert_eq!(due(69), []);
        assert_eq!(due(70), [partitions[1]]);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(due(69), [partitions[0]], "the server's clock goes on between looks");
        assert!(here(i64::MAX, 0).is_none_or(|at| at > Instant::now()), "it is not due in a lifetime");
        assert_eq!(earlier(None, Some(2)), Some(2));
        assert_eq!(earlier(Some(1), Some(2)), Some(1));
    }
}
