//! The instructions that the bot executes for one approval: the one figure of its processor time that depends neither on
//! the machine nor on what else runs there.
//!
//! The bot runs under [`callgrind`](super::callgrind). The count is taken after each approval, once nothing is left to do.
//! This test has the debug build, so the number is many times that of the release build, which
//! `cargo bench --bench load -- --instructions` counts; but it grows with it.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    callgrind::Callgrind,
    hot_path::{asked, card_of, is_over, presses},
    process::{Process, serve},
    processes::Page,
    script::World,
};
use crate::{
    nemesis::harness::clocks,
    support::{ports::free_port, redis::RedisServer},
};

/// The most that one approval may take, in millions: what it took when it was last measured (51.2 and 54.7 on 1 December
/// 2026; 45.3 and 47.9 before the traces, the streamed answers, the API and the names that are found by a part), and what it
/// takes more beside other work, 7 %.
const WITH_SQLITE: f64 = 55.0;
const WITH_REDIS: f64 = 58.5;

/// The approvals that are counted. Nothing makes one cheaper than it is, so the least is compared.
const APPROVALS: usize = 3;

/// How long anything may take. Generous: the machine may have other work as well.
const LIMIT: Duration = Duration::from_secs(600);
/// How long is left between two looks, and how long nothing may be left to do until the bot is quiet.
const LOOK: Duration = Duration::from_millis(50);
const QUIET: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_takes_few_instructions_with_sqlite() {
    assert_few(one_approval(None).await, WITH_SQLITE);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_takes_few_instructions_with_redis() {
    let server = RedisServer::start().await;
    assert_few(one_approval(Some(server.url())).await, WITH_REDIS);
}

#[expect(clippy::print_stdout, reason = "how many it takes is a result, too")]
fn assert_few(counted: Vec<f64>, budget: f64) {
    println!("{counted:.1?} million instructions, of at most {budget}");
    let least = counted.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(least > budget / 10.0, "too few to be an approval: {counted:.1?} million");
    assert!(least <= budget, "at most {budget} million: {counted:.1?}");
}

/// Returns what each of some approvals takes, in million instructions, once the bot knows who is who.
async fn one_approval(redis: Option<String>) -> Vec<f64> {
    let world = World::unhurried(redis).await;
    let name = |number: usize| format!("Trial {number}");
    for number in 0..=APPROVALS {
        world.upgrade.has(&name(number), "inactive");
    }
    let bot = Counted::start(&world);
    until("a bot that is connected", &bot, || bot.process.is_up() && world.slack.sockets() > 0).await;
    let mut took = Vec::new();
    for number in 0..=APPROVALS {
        let name = name(number);
        let root = asked(&world, &name);
        until("a card", &bot, || card_of(&world, &root).is_some()).await;
        presses(&world, &root).await;
        until("the outcome and the answer", &bot, || is_over(&world, &root)).await;
        assert_eq!(world.upgrade.experiment(&name).unwrap()["state"], "running", "{}", bot.process.log());
        bot.is_quiet(&world).await;
        took.push(bot.executed().await as f64 / 1e6);
    }
    took.remove(0); // with the start, and the first one asks who is who
    took
}

/// A bot whose instructions are counted.
struct Counted {
    process: Process,
    page: Page,
    /// Answers at once, and does nothing else.
    health: String,
    counts: Callgrind,
}

impl Counted {
    fn start(world: &World) -> Self {
        let port = free_port();
        let listens_on = port.to_string();
        let mut settings = world.settings();
        let further = [
            ("PORT", listens_on.as_str()),
            ("COUNTERSIGN__SLACK__TIMEOUT", "60s"),
            ("COUNTERSIGN__UPGRADE__TIMEOUT", "60s"),
            ("COUNTERSIGN__WORKERS__LEASE", "1h"),
            ("COUNTERSIGN__WORKERS__SWEEP_EVERY", "1h"),
            ("COUNTERSIGN__WATCHES__EVERY", "1h"),
        ];
        settings.extend(further.map(|(name, value)| (name.to_owned(), value.to_owned())));
        settings.extend(Callgrind::clock(&clocks::library().unwrap()).map(|(name, value)| (name.to_owned(), value)));
        let program = serve(&settings);
        let counts = Callgrind::in_folder(world.folder());
        let mut command = counts.command(program.get_program());
        command.args(program.get_args()).env_clear().envs(&settings);
        let process = Process::start(command, &world.log());
        let health = format!("http://127.0.0.1:{port}/healthz");
        Self { process, page: Page::new(&settings), health, counts }
    }

    /// Waits until nothing is left to do, and nothing is being done.
    async fn is_quiet(&self, world: &World) {
        let store = world.kept.open_beside().await;
        let (deadline, mut since) = (Instant::now() + LIMIT, Instant::now());
        let seen = || (world.slack.recorded().calls.len(), world.upgrade.ledger().len(), self.time());
        let mut before = seen();
        while since.elapsed() < QUIET {
            tokio::time::sleep(LOOK).await;
            let left = store.backlog().await.unwrap();
            let now = seen();
            if left != Default::default() || now != before {
                (before, since) = (now, Instant::now());
            }
            assert!(Instant::now() < deadline, "it does not become quiet: {left:?}\n{}", self.process.log());
        }
    }

    /// The processor time that it has had, in hundredths of a second.
    fn time(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap();
        let (_, fields) = stat.rsplit_once(") ").expect("the name is in brackets");
        fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
    }

    /// The instructions since this was last asked, or since it began.
    async fn executed(&self) -> u64 {
        self.counts.executed(self.process.id(), async || drop(self.page.get(&self.health).await)).await.unwrap()
    }
}

async fn until(what: &str, bot: &Counted, fact: impl Fn() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !fact() {
        assert!(bot.process.ended().is_none(), "it ended:\n{}", bot.process.log());
        assert!(Instant::now() < deadline, "waited in vain for {what}:\n{}", bot.process.log());
        tokio::time::sleep(LOOK).await;
    }
}
