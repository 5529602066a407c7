//! The instructions of one approval, counted by valgrind: the one figure that does not depend on how fast the machine
//! is or what else it does.
//!
//! The bot runs twice, each time on a new store: for a few approvals, and for some more. The difference, divided by the
//! number of further approvals, leaves out the start and the end. The bot does not look for unannounced work meanwhile,
//! since what that takes depends on the time. Only instructions of the bot itself are counted, not those of the kernel.
//! Valgrind simulates a processor without some newer instructions, such as those for SHA-2, so a bot by itself executes
//! rather fewer. The library that slows the bot's clock down as much as valgrind slows the bot executes about half a million,
//! which are included.

use std::{fs, path::Path};

use anyhow::Context as _;

use crate::{
    approvals::{NO_LIMIT, approvals},
    bot::{Bot, Under},
    first_contact, measured,
    place::{Kept, Place},
};

/// The approvals of the short run, and those that the long one has besides.
const FEW: usize = 10;
const FURTHER: usize = 50;

/// What depends on the time, and therefore happens only at the start.
const RARELY: [&str; 3] =
    ["COUNTERSIGN__WORKERS__LEASE", "COUNTERSIGN__WORKERS__SWEEP_EVERY", "COUNTERSIGN__WORKERS__STATUS_AFTER"];

/// Counts them for both stores and writes their table.
pub(crate) async fn measure(program: &Path) -> anyhow::Result<()> {
    let mut table = "| store | million instructions of one approval |\n| --- | ---: |\n".to_owned();
    for kept in [Kept::Sqlite, Kept::Redis] {
        let short = executed(program, kept, FEW).await?;
        let long = executed(program, kept, FEW + FURTHER).await?;
        let each = long.saturating_sub(short) as f64 / FURTHER as f64 / 1e6;
        eprintln!("  {}: {each:.2} million instructions", kept.name());
        table.push_str(&format!("| {} | {each:.2} |\n", kept.name()));
    }
    let note = format!(
        "The mean of {FURTHER} approvals, one after another, counted by `valgrind --tool=callgrind`; about 0.5 million are those of the slowed clock."
    );
    measured::write("instructions", &table, &note)
}

/// Returns the instructions of a bot from its start to its end, with so many approvals in between.
async fn executed(program: &Path, kept: Kept, rounds: usize) -> anyhow::Result<u64> {
    let place = Place::start(kept, 0, 0).await?;
    let counts = place.folder().join("callgrind.out");
    let settings = RARELY.map(|name| (name, "1h".to_owned()));
    let mut surroundings = place.surroundings(program, &settings);
    surroundings.under = Some(Under::Callgrind(&counts));
    let bot = Bot::start(&surroundings)?;
    let (person, _) = first_contact(&place.slack, &bot, false).await?;
    approvals(&person, &[&bot], &place.upgrade, 1, rounds, NO_LIMIT).await?;
    bot.stop()?;
    let counted = fs::read_to_string(&counts).context("valgrind left no counts")?;
    let totals = counted.lines().find_map(|line| line.strip_prefix("totals: "));
    Ok(totals.context("valgrind's counts have no total")?.trim().parse()?)
}
