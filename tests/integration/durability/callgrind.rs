//! A process under `valgrind --tool=callgrind`, which counts the instructions that it executes.
//!
//! What the process does at its start depends on the time, so the counts are taken while it runs: each is written to a
//! file when it is asked for, and the next one begins at zero.
//!
//! Valgrind makes the process some fifty times slower, and time passes as much slower for it (libfaketime). So it does
//! what it does otherwise: it holds steps back that take milliseconds, and does not say that a change is running.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, ensure};
use tokio::time::{Instant, sleep};

/// How fast time passes for the process.
const TIME: &str = "+0 x0.02";

/// The name of the files with the counts, before their numbers.
const COUNTED: &str = "counted";

/// How long is left between two looks at whether a count was written.
const LOOK: Duration = Duration::from_millis(20);

/// How long a count may take. Generous: the machine may have other work as well.
const LIMIT: Duration = Duration::from_secs(600);

/// Where a process under valgrind and those that ask it meet, and where the counts are.
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
            // It is told when it does something, and not made to by ptrace, which may be forbidden.
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
        let text = fs::read_to_string(newest)?;
        let total = text.lines().find_map(|line| line.strip_prefix("totals: ")).context("a count without a total")?;
        Ok(total.trim().parse()?)
    }

    fn meeting_place(&self) -> String {
        format!("--vgdb-prefix={}", self.folder.join("vgdb").display())
    }
}
