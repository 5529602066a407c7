//! Approvals in cells: store × in flight × experiments on the platform × threads stored.
//!
//! All combinations would take hours. From one cell in the middle, one dimension at a time is varied, on both stores.
//! Each group of cells has a bot, a store, a workspace and a platform of its own; the cells of a group follow one
//! another. A cell ends after its round trips, or when no further one begins because it has taken long enough, so the
//! whole takes about ten minutes at most.

use std::{path::Path, time::Duration};

use tokio::time::sleep;

use crate::{
    IDLE,
    approvals::{Approvals, approvals},
    bot::{Bot, Memory},
    figures::{kib, millis},
    first_contact, measured,
    place::{Kept, Place, reads_long_lists},
};

/// Cells that share a bot.
struct Group {
    /// The experiments on the platform that nobody asks for.
    experiments: usize,
    /// The threads in the store before the bot starts; every tenth of them has an open card.
    threads: usize,
    in_flight: &'static [usize],
}

const GROUPS: [Group; 4] = [
    Group { experiments: 10, threads: 0, in_flight: &[1, 16, 64] },
    Group { experiments: 1_000, threads: 0, in_flight: &[16] },
    Group { experiments: 10_000, threads: 0, in_flight: &[16] },
    Group { experiments: 10, threads: 10_000, in_flight: &[16] },
];

/// The time after which no further round trip of a cell begins.
const LIMIT: Duration = Duration::from_secs(30);

/// The round trips before the first cell of a group: they open connections and fill caches.
const FIRST: usize = 32;

/// The columns of the table.
const COLUMNS: [&str; 14] = [
    "store",
    "in flight",
    "further experiments",
    "threads stored",
    "approvals a second",
    "CPU each: bot",
    "server",
    "Slack calls each",
    "mention acknowledged p50 · p99",
    "mention → card p50 · p99",
    "whole trip p50 · p99",
    "grown on disk each",
    "first acknowledgement",
    "PSS idle · after",
];
/// The columns before the first figure that is measured.
const GIVEN: usize = 4;

/// Measures all cells and writes their table.
pub(crate) async fn measure(program: &Path, rounds: usize) -> anyhow::Result<()> {
    let mut table = format!("| {} |\n|{}\n", COLUMNS.join(" | "), " ---: |".repeat(COLUMNS.len()));
    for kept in [Kept::Sqlite, Kept::Redis] {
        for group in &GROUPS {
            for row in measure_group(program, rounds, kept, group).await {
                eprintln!("  {row}");
                table.push_str(&row);
                table.push('\n');
            }
        }
    }
    let note = format!(
        "{rounds} round trips in a cell, or as many as began within {} s. The load runs on the same cores.",
        LIMIT.as_secs()
    );
    measured::write("cells", &table, &note)
}

/// Measures the cells of a group. A cell that fails gets a row with the reason, and ends its group.
async fn measure_group(program: &Path, rounds: usize, kept: Kept, group: &Group) -> Vec<String> {
    let mut rows = Vec::new();
    if let Err(error) = fill_in(&mut rows, program, rounds, kept, group).await {
        let in_flight = group.in_flight.get(rows.len()).copied().unwrap_or_default();
        let reason = format!("{error:#}").replace(['|', '\n'], " ");
        rows.push(row(kept, in_flight, group, &[format!("not measured: {reason}")]));
    }
    rows
}

async fn fill_in(
    rows: &mut Vec<String>,
    program: &Path,
    rounds: usize,
    kept: Kept,
    group: &Group,
) -> anyhow::Result<()> {
    let place = Place::start(kept, group.experiments, group.threads).await?;
    let settings = reads_long_lists();
    let surroundings = place.surroundings(program, &settings);
    if group.threads > 0 {
        // The first start makes the digest key and seals the open cards it finds, once.
        let first = Bot::start(&surroundings)?;
        first_contact(&place.slack, &first, false).await?;
        first.stop()?;
    }
    let bot = Bot::start(&surroundings)?;
    let (person, start) = first_contact(&place.slack, &bot, false).await?;
    sleep(IDLE).await;
    let idle = bot.memory()?;
    approvals(&person, &[&bot], &place.upgrade, FIRST, FIRST, LIMIT).await?;
    for in_flight in group.in_flight {
        let (disk, server) = (place.on_disk()?, place.server_processor_time()?);
        let measured = approvals(&person, &[&bot], &place.upgrade, *in_flight, rounds, LIMIT).await?;
        let server = place.server_processor_time()?.zip(server).map(|(now, before)| now - before);
        let disk = (place.on_disk()? - disk) / measured.all;
        sleep(IDLE).await;
        let figures = figures(&measured, server, disk, start, (idle, bot.memory()?));
        rows.push(row(kept, *in_flight, group, &figures));
    }
    bot.stop()
}

/// The figures of a cell, in the order of the columns.
fn figures(
    measured: &Approvals,
    server: Option<Duration>,
    disk: f64,
    start: Duration,
    (idle, after): (Memory, Memory),
) -> Vec<String> {
    vec![
        measured.a_second(),
        measured.processor_time(),
        server.map_or_else(|| "–".to_owned(), |spent| measured.each(spent)),
        measured.slack_calls(),
        measured.part(|round| round.mention_acknowledged),
        measured.part(|round| round.card),
        measured.part(|round| round.whole),
        kib(disk),
        millis(start),
        format!("{:.1} · {:.1} MiB", idle.share, after.share),
    ]
}

fn row(kept: Kept, in_flight: usize, group: &Group, figures: &[String]) -> String {
    let numbers = [in_flight, group.experiments, group.threads].map(|number| number.to_string());
    let missing = (COLUMNS.len() - GIVEN).saturating_sub(figures.len());
    format!("| {} | {} | {} |{}", kept.name(), numbers.join(" | "), figures.join(" | "), " |".repeat(missing))
}
