//! Two bots on one Redis, of which one is killed or frozen every now and then. A frozen one wakes up after its leases
//! have run out and goes on where it was: whatever it writes then must be refused.

use std::{collections::BTreeSet, process::Command, time::Duration};

use countersign::{
    graph::store::{Backlog, Store as _},
    ids::MessageTs,
    store::redis::RedisStore,
};
use countersign_sandbox::slack::world::message::Message;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tokio::time::{Instant, sleep};

use super::{
    process::{Process, serve},
    script::World,
};
use crate::support::redis::{CHECKED, RedisServer};

const THREADS: usize = 10;
const TROUBLES: usize = 6;
const BUTTON: &str = "Start experiment";
/// Longer than a lease; shorter than a request may be on its way before somebody looks whether it arrived.
const FROZEN: Duration = Duration::from_millis(1800);
const BOUND: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn two_bots_of_which_one_dies_or_freezes_do_everything_once() {
    let seed: u64 = rand::rng().random();
    println!("the seed is {seed}");
    let mut chance = StdRng::seed_from_u64(seed);
    let server = RedisServer::start().await;
    let world = World::start(Some(server.url())).await;
    let bot = |n: usize| Process::start(serve(&world.settings()), &world.folder().join(format!("bot{n}.log")));
    let mut bots = [bot(0), bot(1)];
    for n in 0..THREADS {
        world.upgrade.has(&format!("Trial {n}"), "inactive");
        world.upgrade.has_own_point(&format!("Trial {n}"));
    }
    let say = |n: usize| {
        let text = format!("@countersign start the Trial {n} experiment");
        world.slack.says("ana", "experiments", &text, None).unwrap()
    };
    let roots: Vec<_> = (0..THREADS).map(say).collect();

    let mut pressed = BTreeSet::new();
    let deadline = Instant::now() + BOUND;
    let mut troubles = 0;
    let mut next_trouble = Instant::now() + Duration::from_millis(800);
    while !roots.iter().all(|root| is_over(&said(&world, root))) || troubles < TROUBLES {
        if Instant::now() > deadline {
            let all: Vec<_> = roots.iter().map(|root| said(&world, root)).map(|said| words(&said)).collect();
            panic!("it does not come to its end (seed {seed}): {all:#?}\n{}\n{}", bots[0].log(), bots[1].log());
        }
        for root in &roots {
            let card = said(&world, root).into_iter().find(|message| message.button(BUTTON).is_some());
            // A few at a time, so that there is always something going on when trouble comes.
            if let Some(card) = card.filter(|_| pressed.len() <= troubles * 2)
                && !pressed.contains(root)
                && world.slack.clicks("bo", "experiments", &card.ts, BUTTON).await.is_ok()
            {
                pressed.insert(root.clone());
            }
        }
        if troubles < TROUBLES && Instant::now() > next_trouble {
            troubles += 1;
            let n = chance.random_range(0..2);
            if chance.random() {
                bots[n].kill();
                bots[n] = bot(n);
            } else {
                bots[n].signal("STOP");
                sleep(FROZEN).await;
                bots[n].signal("CONT");
            }
            next_trouble = Instant::now() + Duration::from_millis(chance.random_range(100..900));
        }
        sleep(Duration::from_millis(20)).await;
    }

    let store = RedisStore::open(&server.url(), &CHECKED).await.unwrap();
    while store.backlog().await.unwrap() != Backlog::default() {
        assert!(Instant::now() < deadline, "something is left to do (seed {seed}): {:?}", store.backlog().await);
        sleep(Duration::from_millis(20)).await;
    }
    for bot in &bots {
        while !bot.is_up() {
            assert!(Instant::now() < deadline, "it does not come up (seed {seed}):\n{}", bot.log());
            sleep(Duration::from_millis(20)).await;
        }
        let status = bot.stop().await;
        assert!(status.success(), "{status}\n{}", bot.log());
    }
    for (n, root) in roots.iter().enumerate() {
        assert_eq!(said(&world, root).len(), 2, "seed {seed}: {:#?}", words(&said(&world, root)));
        assert_eq!(world.upgrade.experiment(&format!("Trial {n}")).unwrap()["state"], "running");
    }
    assert_eq!(world.upgrade.effects().len(), THREADS, "seed {seed}: one change each");
}

fn said(world: &World, root: &MessageTs) -> Vec<Message> {
    world.slack.thread("experiments", root).into_iter().filter(|message| message.by_app).collect()
}

fn is_over(said: &[Message]) -> bool {
    said.len() >= 2 && said[0].button(BUTTON).is_none()
}

fn words(said: &[Message]) -> Vec<String> {
    said.iter().map(Message::words).collect()
}

impl Process {
    /// Sends it a signal by name.
    fn signal(&self, name: &str) {
        let pid = self.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap().success());
    }
}
