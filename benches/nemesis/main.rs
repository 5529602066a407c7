//! The nemesis, for as long as you like: `cargo bench --bench nemesis -- --store redis --processes 3 --minutes 60 --seed 7`.
//!
//! Real `countersign serve` processes, people who ask and press, and faults drawn from a seed; judged by what people saw
//! in the workspace and what the platform received, never by the bot's own store. The harness is in
//! `tests/integration/nemesis/harness`, and the test command runs it for a minute on each store.

#![allow(clippy::print_stdout, reason = "the table is what it is for")]

#[path = "../../tests/integration/nemesis/harness/mod.rs"]
mod harness;
mod support;

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::{Parser, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use self::harness::{By, Options, Store, run, storms::kinds};

/// Runs the bot under faults and judges it from outside. Prints a table; ends with 1 if anything was wrong.
///
/// Each violation has a timeline in the folder of --out: what people did, what went wrong when, what crossed the wire to
/// Slack and to the platform, how the thread stands, and what the bot logged about it. SIGINT or SIGTERM ends it early:
/// no new threads, the faults stop, what is under way is judged (two minutes at most), and the table is printed. A second
/// one ends it at once.
#[derive(Parser)]
struct Arguments {
    /// The store of the bot. For redis, a separate redis-server is started, with appendfsync always.
    #[arg(long, value_enum, default_value_t = StoreName::Sqlite)]
    store: StoreName,
    /// The delivery of events: http (behind a load balancer) or socket. Default: http with redis, otherwise socket.
    #[arg(long, value_enum)]
    by: Option<ByName>,
    /// The number of bot processes. Default: 3 with redis. With sqlite there is always one.
    #[arg(long)]
    processes: Option<usize>,
    /// The time during which new threads and storms begin; judging the last threads takes up to two minutes more.
    #[arg(long, default_value_t = 5.0)]
    minutes: f64,
    /// The seed of all random choices. Default: a random one, which is printed.
    #[arg(long)]
    seed: Option<u64>,
    /// The maximum number of threads that begin in a second.
    #[arg(long, default_value_t = 12.0)]
    rate: f64,
    /// The number of threads in progress at a time.
    #[arg(long, default_value_t = 48)]
    people: usize,
    /// Only these kinds of faults, separated by commas; `none` for none, to see the harness alone.
    #[arg(long, value_delimiter = ',')]
    faults: Vec<String>,
    /// The folder for the timelines of violations.
    #[arg(long, default_value = "target/nemesis")]
    out: PathBuf,
    /// Another build of the bot, such as one that is broken on purpose.
    #[arg(long, default_value = env!("CARGO_BIN_EXE_countersign"))]
    bot: PathBuf,
    /// The log level of the bot; the logs are kept if there was a violation.
    #[arg(long, default_value = "warn")]
    log: String,
    /// Passed by `cargo bench`; ignored.
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum StoreName {
    Sqlite,
    Redis,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum ByName {
    Http,
    Socket,
}

fn options(arguments: Arguments) -> Result<Options, String> {
    let known = kinds();
    if let Some(wrong) = arguments.faults.iter().find(|kind| *kind != "none" && !known.contains(&kind.as_str())) {
        return Err(format!("--faults: found `{wrong}`; expected none, or some of {}", known.join(",")));
    }
    let redis = arguments.store == StoreName::Redis;
    let processes = arguments.processes.unwrap_or(if redis { 3 } else { 1 });
    if processes == 0 || (!redis && processes > 1) {
        return Err(format!("--processes: found {processes}; expected 1, or more with --store redis"));
    }
    let by = match arguments.by {
        Some(ByName::Http) => By::Http,
        Some(ByName::Socket) => By::Socket,
        None if redis => By::Http,
        None => By::Socket,
    };
    Ok(Options {
        store: if redis { Store::Redis } else { Store::Sqlite },
        by,
        processes,
        length: Duration::from_secs_f64(arguments.minutes.max(0.0) * 60.0),
        seed: arguments.seed.unwrap_or_else(|| u64::from(rand::random::<u32>())),
        rate: arguments.rate,
        people: arguments.people,
        faults: arguments.faults,
        out: arguments.out,
        program: arguments.bot,
        log: arguments.log,
    })
}

#[tokio::main]
async fn main() -> ExitCode {
    let options = match options(Arguments::parse()) {
        Ok(options) => options,
        Err(wrong) => {
            eprintln!("nemesis: {wrong}");
            return ExitCode::FAILURE;
        }
    };
    println!("nemesis: {options:?}");
    let stop = CancellationToken::new();
    let work = run(&options, stop.clone());
    tokio::pin!(work);
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        eprintln!("nemesis: signals cannot be heard");
        return ExitCode::FAILURE;
    };
    let result = loop {
        tokio::select! {
            result = &mut work => break result,
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        if stop.is_cancelled() {
            eprintln!("nemesis: broken off");
            return ExitCode::FAILURE; // everything that was started is ended as it is dropped
        }
        eprintln!("nemesis: ending; once more to break off");
        stop.cancel();
    };
    match result {
        Ok(report) => {
            println!("{}", report.table());
            for file in &report.files {
                println!("timeline: {}", file.display());
            }
            if report.violations() == 0 && report.broken_off.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("nemesis: {error:#}");
            ExitCode::FAILURE
        }
    }
}
