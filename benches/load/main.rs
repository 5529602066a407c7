//! The load bench: `cargo bench --bench load`.
//!
//! The bot runs as `countersign serve`, a process of its own whose processor time and memory the kernel tells. Round it,
//! in this process, are the sandbox's UpGrade, a light stand-in for Slack (`slack`; the sandbox's workspace costs more
//! than the bot) and people who mention, read the card and press (`round`). The model is `rules`, which takes no time.
//! Bot and load share the machine, so the rates are what both reach together; processor time per round trip is the
//! bot's alone. Nothing is random, and everything ends by itself.
//!
//! | option | what it does |
//! | --- | --- |
//! | `--socket` | deliveries by Socket Mode instead of HTTP |
//! | `--redis` | a redis-server of its own (append-only, fsync always) instead of SQLite |
//! | `--rounds N` | round trips at each number in flight, 1000 if not said |
//! | `--turns N` | the last turn of the long threads, 500 if not said; 0 leaves them out |
//! | `--threads N` | only commands and the Home tab, on a store that holds so many threads before the bot starts |
//! | `--all-open` | with `--threads`: each of those threads has an open card |
//! | `--slow-connections N` | only acknowledgements and `/healthz`, while so many clients keep the bot waiting; it may have 1,024 files and sockets open |
//! | `--waiting N` | only threads that wait for a job at the simulation bridge: none, N, then twice as many; and plans |
//! | `--mail N` | only mail: so many arrive while Gmail fails in every way; ends with 1 if one is lost or answered twice |
//! | `--seed N` | with `--mail`: the seed of the faults, 7 if not said |
//! | `--bot FILE` | another build of the bot, such as the one before a change |
//!
//! One round trip is: mention → card → press → change on the platform → outcome on the card and a reply in the thread.
//! Each has a thread of its own, and an experiment that nobody else touches at that time. Once it was started and
//! stopped, its changes of status are forgotten: the platform sends all of them with an experiment, and one with
//! hundreds of them would be what is measured.

#![allow(clippy::print_stdout, reason = "the figures are what it is for")]

mod bot;
mod commands;
mod figures;
#[path = "../../tests/integration/durability/many_mails/made_up.rs"]
mod made_up;
mod mail;
mod round;
mod slack;
mod slow;
#[path = "../../tests/integration/durability/many_mails/verdict.rs"]
mod verdict;
mod waiting;
mod wire;

use std::{
    path::PathBuf,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Context as _;
use clap::Parser;
use countersign::sandbox::upgrade::{self, SandboxUpgrade};
use tokio::{sync::Barrier, task::JoinSet, time::sleep};

use self::{
    bot::{Bot, Redis, Surroundings},
    figures::{Table, millis, quantiles},
    round::{Hears, Person, Round, Way},
    slack::Slack,
    wire::Wire,
};

/// The number of round trips, or deliveries, in flight.
const FEW: usize = 16;
const MANY: usize = 64;
/// Deliveries that are only acknowledged.
const DELIVERIES: usize = 4_000;
/// Long threads that go on at the same time.
const LONG_THREADS: usize = 8;
/// The turns on each side of a turn that are measured with it.
const AROUND: usize = 5;
/// The idle time before the bot's memory is read.
const IDLE: Duration = Duration::from_secs(3);

#[derive(Parser)]
struct Options {
    #[arg(long)]
    socket: bool,
    #[arg(long)]
    redis: bool,
    #[arg(long, default_value_t = 1_000)]
    rounds: usize,
    #[arg(long, default_value_t = 500)]
    turns: usize,
    #[arg(long)]
    threads: Option<usize>,
    #[arg(long, requires = "threads")]
    all_open: bool,
    #[arg(long, conflicts_with_all = ["threads", "socket"])]
    slow_connections: Option<usize>,
    #[arg(long, conflicts_with_all = ["threads", "slow_connections"])]
    waiting: Option<usize>,
    #[arg(long, conflicts_with_all = ["threads", "slow_connections", "waiting"])]
    mail: Option<usize>,
    #[arg(long, default_value_t = 7, requires = "mail")]
    seed: u64,
    #[arg(long, default_value = env!("CARGO_BIN_EXE_countersign"))]
    bot: PathBuf,
    /// Passed by `cargo bench`; ignored.
    #[arg(long, hide = true)]
    bench: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Options::parse()).await {
        Ok(table) => {
            println!("{table}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("load: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> anyhow::Result<Table> {
    let folder = tempfile::tempdir()?;
    let slack = Slack::start().await?;
    let upgrade = Arc::new(SandboxUpgrade::start(upgrade::Options::default()).await?);
    let redis = options.redis.then(|| Redis::start(folder.path())).transpose()?;
    let redis_url = redis.as_ref().map(Redis::url);
    if let Some(threads) = options.threads {
        upgrade.has_anew(&experiment(0), "inactive");
        commands::fill(folder.path(), redis_url.as_deref(), threads, options.all_open)
            .await
            .context("filling the store")?;
    }
    let (slack_url, upgrade_url) = (slack.api_url(), upgrade.url());
    let bridge = match options.waiting {
        Some(threads) => {
            upgrade.has_anew(&experiment(0), "inactive");
            slow::may_open(4 * threads)?;
            Some(waiting::bridge().await?)
        }
        None => None,
    };
    let bridge_url = bridge.as_ref().map(|bridge| (bridge.url(), bridge.jwt_secret().to_owned()));
    let mails = match options.mail {
        Some(_) => Some(mail::Systems::start().await?),
        None => None,
    };
    let settings = mails.as_ref().map(mail::Systems::settings).unwrap_or_default();
    let surroundings = Surroundings {
        slack_url: &slack_url,
        upgrade_url: &upgrade_url,
        bridge: bridge_url.as_ref().map(|(url, secret)| (url.as_str(), secret.as_str())),
        folder: folder.path(),
        redis_url: redis_url.as_deref(),
        socket: options.socket,
        program: &options.bot,
        descriptors: options.slow_connections.map(|_| slow::DESCRIPTORS),
        settings: &settings,
    };
    let mut table = Table::default();
    if options.threads.is_some() {
        // The first start makes the digest key and seals the open cards it finds, once.
        let mut first = Bot::start(&surroundings)?;
        first_contact(&slack, &mut first, options.socket, &mut Table::default()).await?;
        first.stop()?;
    }
    let mut bot = Bot::start(&surroundings)?;

    let person = first_contact(&slack, &mut bot, options.socket, &mut table).await?;
    if let Some(threads) = options.threads {
        sleep(IDLE).await;
        table.row("memory, idle", "RSS", format!("{:.1} MiB", bot.memory()?.now));
        commands::measure(&person, threads, &mut table).await?;
        let memory = bot.memory()?;
        table.row("memory, after the load", "RSS · most", format!("{:.1} · {:.1} MiB", memory.now, memory.most));
        bot.stop()?;
        return Ok(table);
    }
    if let Some(many) = options.slow_connections {
        slow::measure(&person, bot.address, many, &mut table).await?;
        table.row("", "memory", format!("{:.1} MiB", bot.memory()?.now));
        bot.stop()?;
        return Ok(table);
    }
    if let (Some(threads), Some(bridge)) = (options.waiting, &bridge) {
        waiting::measure(&person, &bot, bridge, threads, &mut table).await?;
        bot.stop()?;
        return Ok(table);
    }
    if let (Some(count), Some(mails)) = (options.mail, &mails) {
        let run = mail::run(&person, &bot, mails, count, options.seed, &mut table).await?;
        bot.stop()?;
        run.judge(mails, folder.path(), &mut table)?;
        return Ok(table);
    }
    sleep(IDLE).await;
    table.row("memory, idle", "RSS", format!("{:.1} MiB", bot.memory()?.now));

    deliveries(&person, &mut table).await?;
    for in_flight in [FEW, MANY] {
        approvals(&person, &bot, &upgrade, in_flight, options.rounds, &mut table).await?;
    }
    if options.turns > 0 {
        long_threads(&person, &bot, &upgrade, options.turns, &mut table).await?;
    }
    sleep(IDLE).await;
    let memory = bot.memory()?;
    table.row("memory, after the load", "RSS · most", format!("{:.1} · {:.1} MiB", memory.now, memory.most));
    bot.stop()?;
    Ok(table)
}

fn experiment(number: usize) -> String {
    format!("Bench {number:02}")
}

/// From the start of the process to the first acknowledgement.
async fn first_contact(slack: &Slack, bot: &mut Bot, socket: bool, table: &mut Table) -> anyhow::Result<Person> {
    let bound = Instant::now() + Duration::from_secs(30);
    let way = if socket {
        while slack.sockets() == 0 {
            anyhow::ensure!(Instant::now() < bound, "the bot does not connect");
            sleep(Duration::from_millis(1)).await;
        }
        Way::Socket
    } else {
        while tokio::net::TcpStream::connect(bot.address).await.is_err() {
            anyhow::ensure!(Instant::now() < bound, "the bot does not listen");
            sleep(Duration::from_millis(1)).await;
        }
        Way::Http(Wire::to(bot.address))
    };
    let person = Person { slack: slack.clone(), way };
    let ts = slack.fresh_ts();
    person.says(&ts, &ts, true, "help").await.context("the first mention")?;
    table.row("start", "to the first acknowledgement", millis(bot.started.elapsed()));
    Ok(person)
}

/// Deliveries that are stored and acknowledged, and set nothing off: replies in threads that are not the bot's.
async fn deliveries(person: &Person, table: &mut Table) -> anyhow::Result<()> {
    let mut people = JoinSet::new();
    let began = Instant::now();
    for _ in 0..MANY {
        let person = person.clone();
        people.spawn(async move {
            let mut took = Vec::new();
            let root = person.slack.fresh_ts();
            for _ in 0..DELIVERIES / MANY {
                took.push(person.says(&root, &person.slack.fresh_ts(), false, "I think so too").await?);
            }
            anyhow::Ok(took)
        });
    }
    let mut took = Vec::new();
    while let Some(one) = people.join_next().await {
        took.extend(one??);
    }
    table.row(format!("deliveries, {MANY} in flight"), "acknowledgement p50 · p99", quantiles(&took));
    table.row("", "a second", format!("{:.0}", took.len() as f64 / began.elapsed().as_secs_f64()));
    Ok(())
}

/// Round trips, so many at a time.
async fn approvals(
    person: &Person,
    bot: &Bot,
    upgrade: &Arc<SandboxUpgrade>,
    in_flight: usize,
    rounds: usize,
    table: &mut Table,
) -> anyhow::Result<()> {
    let left = Arc::new(AtomicUsize::new(rounds));
    let (bot_before, own_before, calls) = (bot.processor_time()?, bot::own_processor_time()?, person.slack.calls());
    let began = Instant::now();
    let mut people = JoinSet::new();
    for number in 0..in_flight {
        let (person, left, upgrade) = (person.clone(), left.clone(), upgrade.clone());
        people.spawn(async move {
            let mut took = Vec::new();
            let mut words = Alternating::of(number, upgrade);
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                let root = person.slack.fresh_ts();
                let mut hears = Hears::thread(&person.slack, &root);
                took.push(person.approves(&root, &mut hears, &words.next()).await?);
                person.slack.forget(&root);
            }
            if words.is_running() {
                // For whoever comes next with this experiment; not counted.
                let root = person.slack.fresh_ts();
                let mut hears = Hears::thread(&person.slack, &root);
                person.approves(&root, &mut hears, &words.next()).await?;
                person.slack.forget(&root);
            }
            anyhow::Ok(took)
        });
    }
    let mut took: Vec<Round> = Vec::new();
    let mut extra = 0;
    while let Some(one) = people.join_next().await {
        let one = one??;
        extra += one.len() % 2;
        took.extend(one);
    }
    let elapsed = began.elapsed();
    let all = (took.len() + extra) as f64;
    let each = |total: Duration| format!("{:.2} ms", total.as_secs_f64() * 1e3 / all);
    let of = |part: fn(&Round) -> Duration| quantiles(&took.iter().map(part).collect::<Vec<_>>());
    table.row(
        format!("approvals, {in_flight} in flight"),
        "round trips a second",
        format!("{:.0}", all / elapsed.as_secs_f64()),
    );
    table.row("", "bot's processor time for each", each(bot.processor_time()? - bot_before));
    table.row("", "the load's, for each", each(bot::own_processor_time()? - own_before));
    table.row("", "calls to Slack for each", format!("{:.1}", (person.slack.calls() - calls) as f64 / all));
    table.row("", "mention acknowledged p50 · p99", of(|round| round.mention_acknowledged));
    table.row("", "press acknowledged p50 · p99", of(|round| round.click_acknowledged));
    table.row("", "mention → card p50 · p99", of(|round| round.card));
    table.row("", "press → outcome p50 · p99", of(|round| round.outcome));
    table.row("", "whole round trip p50 · p99", of(|round| round.whole));
    Ok(())
}

/// Measures the growth of a turn's cost with its thread: the bot's CPU time for a turn around turns 10, 100 and so on.
async fn long_threads(
    person: &Person,
    bot: &Bot,
    upgrade: &Arc<SandboxUpgrade>,
    turns: usize,
    table: &mut Table,
) -> anyhow::Result<()> {
    let measured: Vec<usize> = [10, 100, 500].into_iter().filter(|turn| *turn < turns).chain([turns]).collect();
    let edges: Vec<usize> = measured.iter().flat_map(|turn| [turn - AROUND, turn + AROUND]).collect();
    let barrier = Arc::new(Barrier::new(LONG_THREADS + 1));
    let mut people = JoinSet::new();
    for number in 0..LONG_THREADS {
        let (person, barrier, edges, upgrade) = (person.clone(), barrier.clone(), edges.clone(), upgrade.clone());
        people.spawn(async move {
            let mut words = Alternating::of(number, upgrade);
            let root = person.slack.fresh_ts();
            let mut hears = Hears::thread(&person.slack, &root);
            let mut turn = 0;
            for edge in edges {
                while turn < edge {
                    person.approves(&root, &mut hears, &words.next()).await?;
                    turn += 1;
                }
                barrier.wait().await; // everybody is there
                barrier.wait().await; // and the clock was read
            }
            anyhow::Ok(())
        });
    }
    let measure = async {
        let mut figures = Vec::new();
        for turn in &measured {
            barrier.wait().await;
            let (before, began) = (bot.processor_time()?, Instant::now());
            barrier.wait().await;
            barrier.wait().await;
            let rounds = (2 * AROUND * LONG_THREADS) as f64;
            let spent = (bot.processor_time()? - before).as_secs_f64() * 1e3 / rounds;
            let took = began.elapsed().as_secs_f64() * 1e3 / (2 * AROUND) as f64;
            barrier.wait().await;
            figures.push((*turn, spent, took));
        }
        anyhow::Ok(figures)
    };
    let finish = async {
        while let Some(one) = people.join_next().await {
            one??;
        }
        std::future::pending::<()>().await;
        anyhow::Ok(())
    };
    let figures = tokio::select! {
        figures = measure => figures?,
        failed = finish => return failed,
    };
    let first = figures[0];
    for (nth, (turn, spent, took)) in figures.into_iter().enumerate() {
        let title = if nth == 0 { format!("long threads, {LONG_THREADS} at a time") } else { String::new() };
        let what = format!("turn {turn}: bot's processor time · latency");
        let ratio = if nth == 0 { String::new() } else { format!(" ({:.2} × turn {})", spent / first.1, first.0) };
        table.row(title, what, format!("{spent:.2} ms{ratio} · {took:.1} ms"));
    }
    Ok(())
}

/// An experiment, started and stopped, and then again as if it were new.
struct Alternating {
    upgrade: Arc<SandboxUpgrade>,
    name: String,
    running: bool,
}

impl Alternating {
    fn of(number: usize, upgrade: Arc<SandboxUpgrade>) -> Self {
        let name = experiment(number);
        upgrade.has_anew(&name, "inactive");
        Self { upgrade, name, running: false }
    }

    fn next(&mut self) -> String {
        if !self.running {
            self.upgrade.is_as_new(&self.name);
        }
        self.running = !self.running;
        format!("{} {}", if self.running { "start" } else { "stop" }, self.name)
    }

    fn is_running(&self) -> bool {
        self.running
    }
}
