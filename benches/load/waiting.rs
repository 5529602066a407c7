//! Threads that each wait for the end of a job at the simulation bridge, and what that costs while nothing changes; and
//! what a step of a plan costs.
//!
//! Every thread asks for a run, has it approved, and then waits. The bridge's stand-in is in this process, so memory and
//! processor time are the bot's alone. The first wave of threads also makes the bot grow to its working size, of which
//! SQLite's page caches are the largest part; a second wave shows the cost of a further thread. Memory excludes file-backed
//! pages.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::ensure;
use countersign_sandbox::bridge::{self, Bridge};
use tokio::{task::JoinSet, time::sleep};

use crate::{
    FEW,
    bot::Bot,
    figures::Table,
    round::{Hears, Person, Way},
    wire::Wire,
};

/// The time for which the idle bot is observed.
const QUIET: Duration = Duration::from_secs(120);
/// The time limit for the bot to become idle.
const BOUND: Duration = Duration::from_secs(300);
/// The processor time in half a second below which the bot counts as quiet.
const STILL: Duration = Duration::from_millis(10);
/// The plans that are measured.
const PLANS: usize = 50;
/// The steps of a plan, each of which only reads.
const STEPS: [&str; 4] =
    ["list the running experiments", "show details of Bench 00", "list the contexts", "list the inactive experiments"];

/// Starts a bridge with one simulation, whose jobs run until they are released.
pub(crate) async fn bridge() -> std::io::Result<Bridge> {
    let bridge = Bridge::with(bridge::Options { rate_limit: usize::MAX, ..bridge::Options::default() }).await?;
    bridge.has_loaded("/data/models/demo.pkml", "demo");
    bridge.hold_jobs();
    Ok(bridge)
}

/// Lets twice as many threads wait, and measures the bot with none, with half and with all of them.
pub(crate) async fn measure(
    person: &Person,
    bot: &Bot,
    bridge: &Bridge,
    threads: usize,
    table: &mut Table,
) -> anyhow::Result<()> {
    plans(person, bot, table).await?;
    becomes_quiet(bot).await?;
    let mut memory = vec![bot.memory()?.own];
    let spent = stays_quiet(bot).await?;
    table.row("no thread waits", "memory", format!("{:.1} MiB", memory[0]));
    table.row("", "processor time in a minute", spent);
    for wave in 1..=2 {
        let before = bot.processor_time()?;
        let person = match &person.way {
            // The bot has closed the connections that were not used meanwhile.
            Way::Http(_) => &Person { slack: person.slack.clone(), way: Way::Http(Wire::to(bot.address)) },
            Way::Socket => person,
        };
        begin(person, threads).await?;
        streams(bridge, wave * threads).await?;
        becomes_quiet(bot).await?;
        let begun = (bot.processor_time()? - before).as_secs_f64() * 1e3 / threads as f64;
        memory.push(bot.memory()?.own);
        let each = (memory[wave] - memory[wave - 1]) * 1024.0 / threads as f64;
        let spent = stays_quiet(bot).await?;
        table.row(format!("{} threads wait", wave * threads), "memory", format!("{:.1} MiB", memory[wave]));
        table.row("", format!("for each of the last {threads}"), format!("{each:.1} KiB"));
        table.row("", "processor time to get there, for each", format!("{begun:.2} ms"));
        table.row("", "processor time in a minute", spent);
    }
    Ok(())
}

/// Has as many threads ask for a run and approves it.
async fn begin(person: &Person, threads: usize) -> anyhow::Result<()> {
    let left = Arc::new(AtomicUsize::new(threads));
    let mut people = JoinSet::new();
    for _ in 0..FEW {
        let (person, left) = (person.clone(), left.clone());
        people.spawn(async move {
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                let root = person.slack.fresh_ts();
                let mut hears = Hears::thread(&person.slack, &root);
                person.begins(&root, &mut hears, "run demo").await?;
                person.slack.forget(&root);
            }
            anyhow::Ok(())
        });
    }
    while let Some(one) = people.join_next().await {
        one??;
    }
    Ok(())
}

/// Waits until so many jobs are followed.
async fn streams(bridge: &Bridge, wanted: usize) -> anyhow::Result<()> {
    let opened = || bridge.requests().iter().filter(|request| request.path.ends_with("/events")).count();
    until("the jobs are followed", || opened() >= wanted).await
}

async fn until(what: &str, is_so: impl Fn() -> bool) -> anyhow::Result<()> {
    let bound = Instant::now() + BOUND;
    while !is_so() {
        ensure!(Instant::now() < bound, "in vain: {what}");
        sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}

/// Waits until the bot has nothing to do.
async fn becomes_quiet(bot: &Bot) -> anyhow::Result<()> {
    let bound = Instant::now() + BOUND;
    let mut still = 0;
    while still < 6 {
        ensure!(Instant::now() < bound, "the bot does not become quiet");
        let before = bot.processor_time()?;
        sleep(Duration::from_millis(500)).await;
        still = if bot.processor_time()? - before < STILL { still + 1 } else { 0 };
    }
    Ok(())
}

/// The processor time in a minute in which nothing happens.
async fn stays_quiet(bot: &Bot) -> anyhow::Result<String> {
    let (before, began) = (bot.processor_time()?, Instant::now());
    sleep(QUIET).await;
    let spent = (bot.processor_time()? - before).as_secs_f64();
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    Ok(format!("{:.0} ms ({:.3} %)", spent * 1e3 / minutes, spent / minutes / 0.6))
}

/// Measures the steps of plans that only read, against the same requests by themselves.
async fn plans(person: &Person, bot: &Bot, table: &mut Table) -> anyhow::Result<()> {
    let plan = [STEPS.join("; then ")];
    let single = STEPS.map(str::to_owned);
    let mut spent = Vec::new();
    for (requests, replies) in [(&single[..], 1), (&plan[..], STEPS.len())] {
        for round in 0..=1 {
            let before = bot.processor_time()?;
            for words in (0..PLANS).flat_map(|_| requests) {
                let root = person.slack.fresh_ts();
                let mut hears = Hears::thread(&person.slack, &root);
                person.says(&root, &root, true, words).await?;
                hears.replies(words, replies).await?;
                person.slack.forget(&root);
            }
            becomes_quiet(bot).await?;
            if round == 1 {
                // The first round opens connections and fills caches.
                spent.push((bot.processor_time()? - before).as_secs_f64() * 1e3 / (PLANS * STEPS.len()) as f64);
            }
        }
    }
    table.row("a read request", "processor time of the bot, on its own", format!("{:.2} ms", spent[0]));
    table.row("", format!("as a step of a plan of {}", STEPS.len()), format!("{:.2} ms", spent[1]));
    Ok(())
}
