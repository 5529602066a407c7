//! A process under `valgrind --tool=callgrind`, which counts the instructions that it executes.
//!
//! The start takes a varying number of instructions, so they are counted while the process runs: each request writes the
//! count so far to a file and resets it to zero.
//!
//! Valgrind makes the process some fifty times slower, and time passes as much slower for it (libfaketime). So it does
//! what it does otherwise: it holds steps back that take milliseconds, and does not say that a change is running. The
//! instructions that its calls of this library take are not counted, since without valgrind the process has the system's
//! clock.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, ensure};
use tokio::time::{Instant, sleep};

/// The speed of the clock of the process.
const TIME: &str = "+0 x0.02";

/// The name of the files with the counts, before their numbers.
const COUNTED: &str = "counted";

/// The interval at which the end of vgdb is checked.
const LOOK: Duration = Duration::from_millis(20);

/// A part of the file name of the library that slows the clock.
const CLOCK: &str = "libfaketime";

/// The time limit for a count. It is generous, since other programs may be running.
const LIMIT: Duration = Duration::from_secs(600);

/// Runs a program under callgrind and asks it for its counts.
#[derive(Clone, Debug)]
pub(crate) struct Callgrind {
    folder: PathBuf,
}

impl Callgrind {
    /// Counts in files of this folder.
    pub(crate) fn in_folder(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Returns the command that runs a program and counts. Its arguments are added afterwards.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("valgrind");
        command
            .args(["--tool=callgrind", "--quiet", "--fair-sched=yes", "--read-inline-info=no"])
            .arg(format!("--callgrind-out-file={}", self.folder.join(COUNTED).display()))
            .arg(self.meeting_place())
            .arg(program);
        command
    }

    /// Returns the environment variables that slow the clock of the process, which has to load this library, libfaketime.
    pub(crate) fn clock(library: &Path) -> [(&'static str, String); 2] {
        [("LD_PRELOAD", library.display().to_string()), ("FAKETIME", TIME.to_owned())]
    }

    /// Returns the number of instructions since this was last asked, or since the process began. `look` asks the process
    /// for something small: it notices that it is asked for its count only while it executes instructions.
    ///
    /// # Errors
    ///
    /// If the process does not say it.
    pub(crate) async fn executed(&self, process: u32, look: impl AsyncFn()) -> anyhow::Result<u64> {
        let mut dump = Command::new("vgdb")
            .arg(format!("--pid={process}"))
            .arg(self.meeting_place())
            // Without ptrace, which may be forbidden: the process notices the request by itself.
            .args(["--max-invoke-ms=0", "dump"])
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start vgdb, which belongs to valgrind")?;
        let deadline = Instant::now() + LIMIT;
        let ended = loop {
            if let Some(ended) = dump.try_wait()? {
                break ended;
            }
            ensure!(Instant::now() < deadline, "it does not say what it counted");
            look().await;
            sleep(LOOK).await;
        };
        ensure!(ended.success(), "vgdb ended badly: {ended}");
        let number = |path: &Path| path.extension()?.to_str()?.parse::<u32>().ok();
        let mut newest = None;
        for file in fs::read_dir(&self.folder)? {
            let path = file?.path();
            if path.file_stem().is_some_and(|stem| stem == COUNTED) {
                newest = newest.max(number(&path).map(|number| (number, path)));
            }
        }
        let (_, newest) = newest.context("valgrind wrote no count")?;
        let profile = fs::read(newest)?;
        // Names of functions need not be UTF-8.
        counted(&String::from_utf8_lossy(&profile))
    }

    fn meeting_place(&self) -> String {
        format!("--vgdb-prefix={}", self.folder.join("vgdb").display())
    }
}

/// Returns the total of a profile, without what the program's calls of the clock take: the clock calls functions of the C
/// library as well. Those that it stands in for, such as waiting for a socket, are left out too; they are mostly the kernel's. The format is that of <https://valgrind.org/docs/manual/cl-format.html>.
fn counted(profile: &str) -> anyhow::Result<u64> {
    let (mut clock, mut in_clock, mut is_call, mut called, mut of_clock) = (None, false, false, None, 0);
    for line in profile.lines() {
        if let Some(object) = line.strip_prefix("ob=").or_else(|| line.strip_prefix("cob=")) {
            // A number in parentheses, and after it, the first time, the name.
            let number = object.split(' ').next();
            if object.contains(CLOCK) {
                clock = number;
            }
            match line.starts_with("ob=") {
                true => in_clock = number == clock,
                false => called = number, // otherwise, the called function is in the same object
            }
        } else if line.starts_with("calls=") {
            is_call = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            let calls_clock = is_call && called.take().is_some_and(|called| Some(called) == clock);
            if calls_clock && !in_clock {
                of_clock += line.split(' ').nth(1).context("a line without a count")?.parse::<u64>()?;
            }
            is_call = false;
        }
    }
    let total = profile.lines().find_map(|line| line.strip_prefix("totals: ")).context("a count without a total")?;
    total.trim().parse::<u64>()?.checked_sub(of_clock).context("the clock takes more than there is")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_clock_is_not_counted() {
        let profile = "version: 1\nsummary: 1079\n\n\
                       ob=(4) /usr/bin/bot\nfn=(1) main\n31 1000\ncob=(7) /usr/lib/libfaketime.so.1\ncfn=(2) now\ncalls=3 +35\n* 67\n\
                       cfn=(4) say\ncalls=1 40\n* 5\ncob=(9) /lib/libc.so\ncfn=(3) lock\ncalls=1 2\n* 7\n\
                       fn=(4)\n40 5\n\
                       ob=(7)\nfn=(2)\n7 20\n+1 40\ncob=(9)\ncfn=(3)\ncalls=1 2\n* 7\n\
                       ob=(9)\nfn=(3)\n+2 14\n\ntotals: 1079\n";
        assert_eq!(super::counted(profile).unwrap(), 1012, "also without what the clock calls");
        assert!(super::counted("version: 1\n").is_err());
    }
}
