//! The instructions of one approval, counted by valgrind: the one figure that does not depend on how fast the machine
//! is or what else it does.
//!
//! A few approvals come first, which open connections and fill caches. The bot does not look for unannounced work
//! meanwhile, since what that takes depends on the time. Only instructions of the bot itself are counted, not those of the
//! kernel. Valgrind simulates a processor without some newer instructions, such as those for SHA-2, so a bot by itself
//! executes rather fewer.

use std::path::Path;

use countersign_sandbox::slow_client::{Slow, SlowClient};

use crate::{
    approvals::{NO_LIMIT, approvals},
    bot::{Bot, Under},
    callgrind::Callgrind,
    first_contact, measured,
    place::{Kept, Place},
};

/// The approvals before those that are counted.
const FIRST: usize = 10;
/// The approvals that are counted.
const COUNTED: usize = 50;

/// What depends on the time, and therefore happens only at the start.
const RARELY: [&str; 3] =
    ["COUNTERSIGN__WORKERS__LEASE", "COUNTERSIGN__WORKERS__SWEEP_EVERY", "COUNTERSIGN__WORKERS__STATUS_AFTER"];

/// Counts them for both stores and writes their table.
pub(crate) async fn measure(program: &Path) -> anyhow::Result<()> {
    let mut table = "| store | million instructions of one approval |\n| --- | ---: |\n".to_owned();
    for kept in [Kept::Sqlite, Kept::Redis] {
        let each = executed(program, kept).await? as f64 / COUNTED as f64 / 1e6;
        eprintln!("  {}: {each:.2} million instructions", kept.name());
        table.push_str(&format!("| {} | {each:.2} |\n", kept.name()));
    }
    let note = format!("The mean of {COUNTED} approvals, one after another, counted by `valgrind --tool=callgrind`.");
    measured::write("instructions", &table, &note)
}

/// Returns the instructions of [`COUNTED`] approvals.
async fn executed(program: &Path, kept: Kept) -> anyhow::Result<u64> {
    let place = Place::start(kept, 0, 0).await?;
    let settings = RARELY.map(|name| (name, "1h".to_owned()));
    let counts = Callgrind::in_folder(place.folder());
    let mut surroundings = place.surroundings(program, &settings);
    surroundings.under = Some(Under::Callgrind(&counts));
    let bot = Bot::start(&surroundings)?;
    let (person, _) = first_contact(&place.slack, &bot, false).await?;
    let look = async || drop(SlowClient::connect(bot.address, Slow::Idle).await);
    approvals(&person, &[&bot], &place.upgrade, 1, FIRST, NO_LIMIT).await?;
    counts.executed(bot.id(), look).await?;
    approvals(&person, &[&bot], &place.upgrade, 1, COUNTED, NO_LIMIT).await?;
    let executed = counts.executed(bot.id(), look).await?;
    bot.stop()?;
    Ok(executed)
}
