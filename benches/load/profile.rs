//! Where the processor time of an approval goes: `perf record` looks at the bot while it makes approvals, and the
//! functions that it found most often are listed.
//!
//! Who called what is read from a copy of the stack in each sample, so the bot is the same as elsewhere: no build with
//! frame pointers is needed. The copy is as large as perf allows, and a few stacks are larger.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, ensure};
use tokio::time::sleep;

use crate::{
    FEW, MANY,
    approvals::{NO_LIMIT, approvals},
    bot::Bot,
    first_contact, measured,
    place::{Kept, Place},
    samples::Samples,
};

/// How often perf looks, in a second. Not a round number, so that it does not meet what happens regularly.
const FREQUENCY: &str = "499";

/// The copy of the stack, with the largest size in bytes.
const CALLERS: &str = "dwarf,65528";

/// The time in which perf gets ready.
const READY: Duration = Duration::from_millis(500);

/// The approvals before perf looks: they open connections and fill caches.
const FIRST: usize = 200;

/// Measures both stores and writes their lists.
pub(crate) async fn measure(program: &Path, rounds: usize) -> anyhow::Result<()> {
    let mut lists = String::new();
    for kept in [Kept::Sqlite, Kept::Redis] {
        let seen = look(program, kept, rounds).await?;
        lists.push_str(&seen.told(kept.name()));
    }
    let note = format!(
        "`perf record` at {FREQUENCY} Hz during {rounds} approvals with {FEW} in flight and {rounds} with {MANY}. Shares \
         are of the bot's processor time. Those with everything below them overlap, and closures count as part of their \
         function. A stack of more than 64 KiB is cut, so the outermost functions have a little more than the list says."
    );
    measured::write("profile", &lists, &note)
}

async fn look(program: &Path, kept: Kept, rounds: usize) -> anyhow::Result<Samples> {
    let place = Place::start(kept, 0, 0).await?;
    let bot = Bot::start(&place.surroundings(program, &[]))?;
    let (person, _) = first_contact(&place.slack, &bot, false).await?;
    approvals(&person, &[&bot], &place.upgrade, FEW, FIRST, NO_LIMIT).await?;
    let data = place.folder().join("perf.data");
    let mut perf = Command::new("perf")
        .args(["record", "--quiet", "--call-graph", CALLERS, "--freq", FREQUENCY, "--pid", &bot.id().to_string()])
        .arg("--output")
        .arg(&data)
        .stdin(Stdio::null())
        .spawn()
        .context("cannot start perf: install it, as with `apt-get install linux-perf`")?;
    sleep(READY).await;
    for in_flight in [FEW, MANY] {
        approvals(&person, &[&bot], &place.upgrade, in_flight, rounds, NO_LIMIT).await?;
    }
    Command::new("kill").args(["-INT", &perf.id().to_string()]).status()?;
    perf.wait()?;
    let told = Command::new("perf")
        .args(["script", "--no-inline", "--fields", "comm,ip,sym,dso", "--input"])
        .arg(&data)
        .output()?;
    bot.stop()?;
    ensure!(told.status.success(), "perf cannot read what it recorded: {}", String::from_utf8_lossy(&told.stderr));
    let seen = Samples::read(&String::from_utf8_lossy(&told.stdout));
    ensure!(!seen.is_empty(), "perf saw nothing");
    Ok(seen)
}
