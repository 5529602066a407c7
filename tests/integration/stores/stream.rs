//! The record as it is sent elsewhere, from every store: nothing is lost or out of order, whoever dies.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use countersign::{
    clock::{ManualClock, Timestamp},
    conversation::record::{
        notebook::Redaction,
        stream::{Round, Sink, Stream},
    },
    graph::store::Changes,
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

use super::fixture::{Fixture, Shorthand as _, changes, event, thread};
use crate::support::stream::arrived;

/// What happens to the next lines.
#[derive(Clone, Copy, Debug, Default)]
enum Fate {
    #[default]
    Arrive,
    /// They do not arrive.
    Lost,
    /// So many arrive, and whoever sent them is not told.
    Unknown(usize),
}

/// Another system: what arrived there, and what happens next.
#[derive(Clone, Debug, Default)]
struct Receiver(Arc<Mutex<(String, Fate)>>);

#[async_trait]
impl Sink for Receiver {
    async fn send(&mut self, lines: Vec<u8>) -> Result<(), String> {
        let lines = String::from_utf8(lines).unwrap();
        let (arrived, fate) = &mut *self.0.lock().unwrap();
        match std::mem::take(fate) {
            Fate::Arrive => arrived.push_str(&lines),
            Fate::Lost => return Err("not reachable".to_owned()),
            Fate::Unknown(count) => {
                lines.split_inclusive('\n').take(count).for_each(|line| arrived.push_str(line));
                return Err("no answer".to_owned());
            }
        }
        Ok(())
    }

    /// A process that died is followed at once.
    fn timeout(&self) -> Duration {
        Duration::ZERO
    }
}

impl Receiver {
    fn stream(&self, f: &impl Fixture, name: u64) -> Stream<Self> {
        let clock = Arc::new(ManualClock::default());
        Stream::new(f.store().clone(), clock, Redaction::default(), self.clone(), format!("process {name}"))
    }

    fn text(&self) -> String {
        self.0.lock().unwrap().0.clone()
    }
}

async fn records(f: &impl Fixture, number: u32, entries: u64) {
    let audit = (0..entries).map(|_| event("because")).collect();
    f.store().apply(&Changes { audit, ..changes(&thread(number)) }).await.unwrap();
}

pub(crate) async fn a_stream_loses_nothing_whoever_dies(f: impl Fixture) {
    let (receiver, mut written) = (Receiver::default(), BTreeMap::new());
    for number in 1..=5 {
        f.hears(&thread(number), "hello").await;
    }
    let mut dice = StdRng::seed_from_u64(7);
    let (mut process, mut stream) = (0, receiver.stream(&f, 0));
    for _ in 0..300 {
        match dice.random_range(0..10) {
            0..=3 => {
                let (number, entries) = (dice.random_range(1..=5_u32), dice.random_range(1..=3_u64));
                records(&f, number, entries).await;
                *written.entry(thread(number).to_string()).or_default() += entries;
            }
            4..=6 => drop(stream.round().await),
            7 => receiver.0.lock().unwrap().1 = Fate::Unknown(dice.random_range(0..4)),
            8 => receiver.0.lock().unwrap().1 = Fate::Lost,
            _ => {
                if dice.random() {
                    stream.give_up().await;
                }
                process += 1;
                stream = receiver.stream(&f, process);
            }
        }
    }
    receiver.0.lock().unwrap().1 = Fate::Arrive;
    stream.round().await.unwrap();
    assert_eq!(stream.round().await.unwrap(), Round::Sent(0), "all of it was sent");
    assert_eq!(arrived(&receiver.text(), false).unwrap(), written);
}

pub(crate) async fn one_process_at_a_time_sends(f: impl Fixture) {
    /// A receiver that takes long, so that a term does.
    struct Slow(Receiver);

    #[async_trait]
    impl Sink for Slow {
        async fn send(&mut self, lines: Vec<u8>) -> Result<(), String> {
            self.0.send(lines).await
        }

        fn timeout(&self) -> Duration {
            Duration::from_secs(60)
        }
    }

    f.hears(&thread(1), "hello").await;
    records(&f, 1, 2).await;
    let receiver = Receiver::default();
    let slow = |name: &str| {
        let (store, clock) = (f.store().clone(), Arc::new(ManualClock::default()));
        Stream::new(store, clock, Redaction::default(), Slow(receiver.clone()), name.to_owned())
    };
    let (mut first, mut second) = (slow("first"), slow("second"));
    assert_eq!(first.round().await.unwrap(), Round::Sent(2));
    // A store that is one process's own has no second one, and a successor need not wait.
    let meanwhile = if f.store().is_shared() { Round::NotOurs } else { Round::Sent(0) };
    assert_eq!(second.round().await.unwrap(), meanwhile);
    first.give_up().await;
    assert_eq!(second.round().await.unwrap(), Round::Sent(0));
    records(&f, 1, 1).await;
    assert_eq!(second.round().await.unwrap(), Round::Sent(1));
    assert_eq!(receiver.text().lines().filter(|line| line.contains("\"repeated\"")).count(), 2, "those after a start");
    assert_eq!(arrived(&receiver.text(), false).unwrap(), [(thread(1).to_string(), 3)].into());
}

pub(crate) async fn a_clock_that_is_set_back_hides_no_entry(f: impl Fixture) {
    f.hears(&thread(1), "hello").await;
    let (receiver, clock) = (Receiver::default(), ManualClock::default());
    let new = |clock: &ManualClock| {
        let (store, clock) = (f.store().clone(), Arc::new(clock.clone()));
        Stream::new(store, clock, Redaction::default(), receiver.clone(), "process".to_owned())
    };
    clock.advance(Duration::from_secs(3600));
    records(&f, 1, 1).await;
    assert_eq!(new(&clock).round().await.unwrap(), Round::Sent(1));
    records(&f, 1, 1).await; // as the store's clock has it, an hour before
    assert_eq!(new(&ManualClock::default()).round().await.unwrap(), Round::Sent(1));
    assert!(f.now() > Timestamp(0) && arrived(&receiver.text(), false).is_ok());
}
