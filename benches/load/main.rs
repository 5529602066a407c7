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
//! | `--one` | also with one round trip at a time |
//! | `--experiments N` | so many further experiments on the platform |
//! | `--turns N` | the last turn of the long threads, 500 if not said; 0 leaves them out |
//! | `--threads N` | only commands and the Home tab, on a store that holds so many threads before the bot starts |
//! | `--all-open` | with `--threads`: each of those threads has an open card |
//! | `--slow-connections N` | only acknowledgements and `/healthz`, while so many clients keep the bot waiting; it may have 1,024 files and sockets open |
//! | `--waiting N` | only threads that wait for a job at the simulation bridge: none, N, then twice as many; and plans |
//! | `--mail N` | only mail: so many arrive while Gmail fails in every way; ends with 1 if one is lost or answered twice |
//! | `--seed N` | with `--mail`: the seed of the faults, 7 if not said |
//! | `--cells` | only approvals, in the cells of a table (`cells`), which is written into `docs/performance.md` |
//! | `--instructions` | only the instructions of an approval, counted by valgrind and written there as well |
//! | `--stored N` | only a store of N threads that the bot wrote, every fifth with an open card: the start, memory, presses of those cards and the size of the files, written there as well |
//! | `--profile` | only the functions of an approval that take most of the processor time, found by perf and written there as well |
//! | `--processes N` | only approvals on Redis, by one process and by N that share the deliveries, written there as well; needs to be root, for shares of cores |
//! | `--bot FILE` | another build of the bot, such as the one before a change |
//!
//! One round trip is: mention → card → press → change on the platform → outcome on the card and a reply in the thread.
//! Each has a thread of its own, and an experiment that nobody else touches at that time. Once it was started and
//! stopped, its changes of status are forgotten: the platform sends all of them with an experiment, and one with
//! hundreds of them would be what is measured.

#![allow(clippy::print_stdout, reason = "the figures are what it is for")]

mod approvals;
mod bot;
#[path = "../../tests/integration/durability/callgrind.rs"]
mod callgrind;
mod cells;
#[path = "../../tests/integration/nemesis/harness/clocks.rs"]
#[allow(dead_code, reason = "the nemesis uses more of it")]
mod clocks;
mod commands;
mod figures;
mod instructions;
#[path = "../../tests/integration/durability/many_mails/made_up.rs"]
mod made_up;
mod mail;
mod measured;
mod page;
mod place;
mod processes;
mod profile;
mod quota;
mod round;
mod samples;
mod slack;
mod slow;
mod stored;
#[path = "../../tests/integration/durability/many_mails/verdict.rs"]
mod verdict;
mod waiting;
mod wire;

use std::{
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use clap::Parser;
use countersign_sandbox::upgrade::{self, SandboxUpgrade};
use tokio::{task::JoinSet, time::sleep};

use self::{
    approvals::{NO_LIMIT, approvals, experiment, further_experiments, long_threads},
    bot::{Bot, Redis, Surroundings, Under},
    figures::{Table, kib, millis, quantiles},
    place::on_disk,
    round::{Person, Way},
    slack::Slack,
    wire::Wire,
};

/// The number of round trips, or deliveries, in flight.
const FEW: usize = 16;
const MANY: usize = 64;
/// Deliveries that are only acknowledged.
const DELIVERIES: usize = 4_000;
/// The idle time before the bot's memory is read.
const IDLE: Duration = Duration::from_secs(3);

/// The options that change what is measured, which the page would not say.
const NOT_ON_THE_PAGE: [&str; 9] =
    ["socket", "redis", "one", "experiments", "threads", "slow_connections", "waiting", "mail", "bot"];

#[derive(Parser)]
struct Options {
    #[arg(long)]
    socket: bool,
    #[arg(long)]
    redis: bool,
    #[arg(long, default_value_t = 1_000)]
    rounds: usize,
    #[arg(long)]
    one: bool,
    #[arg(long, default_value_t = 0)]
    experiments: usize,
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
    #[arg(long, conflicts_with_all = NOT_ON_THE_PAGE)]
    cells: bool,
    #[arg(long, conflicts_with_all = NOT_ON_THE_PAGE)]
    instructions: bool,
    #[arg(long, conflicts_with_all = NOT_ON_THE_PAGE)]
    stored: Option<usize>,
    #[arg(long, conflicts_with_all = NOT_ON_THE_PAGE)]
    processes: Option<usize>,
    #[arg(long, conflicts_with_all = NOT_ON_THE_PAGE)]
    profile: bool,
    #[arg(long, default_value = env!("CARGO_BIN_EXE_countersign"))]
    bot: PathBuf,
    /// Passed by `cargo bench`; ignored.
    #[arg(long, hide = true)]
    bench: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run_as_told(Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("load: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run_as_told(options: Options) -> anyhow::Result<()> {
    if options.cells {
        cells::measure(&options.bot, options.rounds).await?;
    }
    if options.instructions {
        instructions::measure(&options.bot).await?;
    }
    if let Some(threads) = options.stored {
        stored::measure(&options.bot, threads, options.rounds).await?;
    }
    if let Some(processes) = options.processes {
        processes::measure(&options.bot, processes, options.rounds).await?;
    }
    if options.profile {
        profile::measure(&options.bot, options.rounds).await?;
    }
    let fills_in_the_page = options.cells || options.instructions || options.profile;
    if !fills_in_the_page && options.stored.is_none() && options.processes.is_none() {
        println!("{}", run(options).await?);
    }
    Ok(())
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
    further_experiments(&upgrade, options.experiments);
    let mut settings = mails.as_ref().map(mail::Systems::settings).unwrap_or_default();
    settings.extend(place::reads_long_lists());
    let surroundings = Surroundings {
        slack_url: &slack_url,
        upgrade_url: &upgrade_url,
        bridge: bridge_url.as_ref().map(|(url, secret)| (url.as_str(), secret.as_str())),
        folder: folder.path(),
        redis_url: redis_url.as_deref(),
        socket: options.socket,
        program: &options.bot,
        under: options.slow_connections.map(|_| Under::Descriptors(slow::DESCRIPTORS)),
        settings: &settings,
    };
    let mut table = Table::default();
    if options.threads.is_some() {
        // The first start makes the digest key and seals the open cards it finds, once.
        let first = Bot::start(&surroundings)?;
        first_contact(&slack, &first, options.socket).await?;
        first.stop()?;
    }
    let bot = Bot::start(&surroundings)?;

    let (person, start) = first_contact(&slack, &bot, options.socket).await?;
    table.row("start", "to the first acknowledgement", millis(start));
    if let Some(threads) = options.threads {
        sleep(IDLE).await;
        table.row("memory, idle", "RSS · PSS", bot.memory()?.told());
        commands::measure(&person, threads, &mut table).await?;
        let memory = bot.memory()?;
        table.row("memory, after the load", "RSS · PSS", memory.told());
        table.row("", "most RSS", format!("{:.1} MiB", memory.most));
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
    table.row("memory, idle", "RSS · PSS", bot.memory()?.told());

    deliveries(&person, &mut table).await?;
    let before = on_disk(folder.path())?;
    let mut all = 0.0;
    for in_flight in options.one.then_some(1).into_iter().chain([FEW, MANY]) {
        let measured = approvals(&person, &[&bot], &upgrade, in_flight, options.rounds, NO_LIMIT).await?;
        measured.tell(&mut table);
        all += measured.all;
    }
    table.row("approvals", "grown on disk for each", kib((on_disk(folder.path())? - before) / all));
    if options.turns > 0 {
        long_threads(&person, &bot, &upgrade, options.turns, &mut table).await?;
    }
    sleep(IDLE).await;
    let memory = bot.memory()?;
    table.row("memory, after the load", "RSS · PSS", memory.told());
    table.row("", "most RSS", format!("{:.1} MiB", memory.most));
    bot.stop()?;
    Ok(table)
}

/// Says the first words; returns who said them, and the time from the start of the process to their acknowledgement.
async fn first_contact(slack: &Slack, bot: &Bot, socket: bool) -> anyhow::Result<(Person, Duration)> {
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
    Ok((person, bot.started.elapsed()))
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
