//! Writes what was measured into `docs/performance.md`, with the machine, the day and the commit.

use std::{fs, process::Command, thread::available_parallelism};

use anyhow::Context as _;
use countersign::clock::{Clock as _, SystemClock};

use crate::page;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/performance.md");

/// Fills in a section; `note` says what a reader of the table has to know besides.
pub(crate) fn write(section: &str, table: &str, note: &str) -> anyhow::Result<()> {
    let text = format!("{table}\nMeasured {}. {note}", circumstances()?);
    let page = fs::read_to_string(PAGE).with_context(|| format!("cannot read {PAGE}"))?;
    let page = page::filled(&page, section, &text).with_context(|| format!("{PAGE} has no section {section}"))?;
    fs::write(PAGE, page).with_context(|| format!("cannot write {PAGE}"))?;
    println!("{text}\n\nThis is now in {PAGE}.");
    Ok(())
}

/// The day, the commit and the machine.
fn circumstances() -> anyhow::Result<String> {
    let day = jiff::Timestamp::from_millisecond(SystemClock.now().millis())?.strftime("%Y-%m-%d").to_string();
    let processors = fs::read_to_string("/proc/cpuinfo")?;
    let model = processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("a processor without a name", |(_, name)| name.trim());
    let cores = available_parallelism()?;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    Ok(format!("on {day} at {}: {model}, {cores} cores, Linux {}", commit(), kernel.trim()))
}

/// The commit that is checked out, and whether files differ from it.
fn commit() -> String {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(hash) = git(&["rev-parse", "--short", "HEAD"]) else { return "an unknown commit".to_owned() };
    // The page itself changes with each measurement.
    let changed = git(&["status", "--porcelain", "--", ".", ":!docs/performance.md"]);
    let changed = if changed.is_some_and(|files| files.is_empty()) { "" } else { " with changes" };
    format!("commit `{hash}`{changed}")
}
