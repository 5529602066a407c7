//! One process, and several that share a Redis and the deliveries.
//!
//! Where every process has a core of its own, so have the server and the load. The machine at hand may have two in all.
//! So each process runs on one core, of which it may use only a part, and what is left suffices for the server and the
//! load: then the processes alone limit what they reach together. The same without that limit says what this machine does.

use std::{path::Path, thread::available_parallelism, time::Duration};

use crate::{
    FEW,
    approvals::approvals,
    bot::{Bot, Under},
    first_contact, measured,
    place::{Kept, Place},
    quota::Quota,
    round::{Person, Way},
    wire::Wire,
};

/// The share of a core that each process may use, in the cells in which it is limited.
const SHARES: [f64; 2] = [0.25, 1.0];

/// The time after which no further round trip of a cell begins.
const LIMIT: Duration = Duration::from_secs(30);

/// The round trips before those that are measured: they open connections and fill caches.
const FIRST: usize = 64;

/// The columns of the table.
const COLUMNS: [&str; 10] = [
    "of a core, each process may use",
    "processes",
    "in flight",
    "approvals a second",
    "× of one",
    "cores used by the processes",
    "CPU each: bot",
    "server",
    "load",
    "whole trip p50 · p99",
];

/// Measures one process and several, and writes their table.
pub(crate) async fn measure(program: &Path, processes: usize, rounds: usize) -> anyhow::Result<()> {
    let mut table = format!("| {} |\n|{}\n", COLUMNS.join(" | "), " ---: |".repeat(COLUMNS.len()));
    for share in SHARES {
        let mut alone = None;
        for processes in [1, processes] {
            let (rate, row) = measure_one(program, processes, rounds, share, alone).await?;
            alone = alone.or(Some(rate));
            eprintln!("  {row}");
            table.push_str(&row);
            table.push('\n');
        }
    }
    let note = format!(
        "Redis; at most {rounds} round trips for each process, or as many as began within {} s. Process, server and \
         load share the cores.",
        LIMIT.as_secs()
    );
    measured::write("processes", &table, &note)
}

async fn measure_one(
    program: &Path,
    processes: usize,
    rounds: usize,
    share: f64,
    alone: Option<f64>,
) -> anyhow::Result<(f64, String)> {
    let place = Place::start(Kept::Redis, 0, 0).await?;
    let quotas = (0..processes).map(|_| Quota::of(share)).collect::<anyhow::Result<Vec<_>>>()?;
    let cores = available_parallelism()?.get();
    let mut bots = Vec::new();
    for (number, quota) in quotas.iter().enumerate() {
        let mut surroundings = place.surroundings(program, &[]);
        surroundings.under = Some(Under::Core(number % cores, quota));
        let bot = Bot::start(&surroundings)?;
        first_contact(&place.slack, &bot, false).await?;
        bots.push(bot);
    }
    let way = Way::Http(Wire::to_each(bots.iter().map(|bot| bot.address)));
    let person = Person { slack: place.slack.clone(), way };
    let all: Vec<&Bot> = bots.iter().collect();
    let in_flight = FEW * processes;
    approvals(&person, &all, &place.upgrade, in_flight, FIRST, LIMIT).await?;
    let server = place.server_processor_time()?;
    let measured = approvals(&person, &all, &place.upgrade, in_flight, rounds * processes, LIMIT).await?;
    let server = place.server_processor_time()?.zip(server).map(|(now, before)| now - before);
    for bot in bots {
        bot.stop()?;
    }
    let rate = measured.rate();
    let figures = [
        format!("{:.0} %", share * 100.0),
        processes.to_string(),
        in_flight.to_string(),
        format!("{rate:.0}"),
        alone.map_or_else(|| "–".to_owned(), |alone| format!("{:.2}", rate / alone)),
        format!("{:.2}", measured.busy()),
        measured.processor_time(),
        measured.each(server.unwrap_or_default()),
        measured.own_processor_time(),
        measured.part(|round| round.whole),
    ];
    Ok((rate, format!("| {} |", figures.join(" | "))))
}
