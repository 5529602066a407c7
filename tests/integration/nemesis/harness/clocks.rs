//! The wall clock of a process: libfaketime, loaded before the program, adds to it what a file says. The monotonic clock
//! goes on as it is.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;

/// Where Debian's package libfaketime is, below the folder of the machine's architecture.
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

/// A wall clock that can be set while the process runs.
#[derive(Debug)]
pub(crate) struct WallClock {
    library: PathBuf,
    file: PathBuf,
}

impl WallClock {
    /// A clock that is right.
    ///
    /// # Errors
    ///
    /// If libfaketime is not installed, or the file cannot be written.
    pub(crate) fn right(file: PathBuf) -> anyhow::Result<Self> {
        let clock = Self { library: library()?, file };
        clock.set(0.0).with_context(|| format!("cannot write {}", clock.file.display()))?;
        Ok(clock)
    }

    /// Sets it so many seconds fast, or slow if they are negative. It counts from the next look at the clock on.
    pub(crate) fn set(&self, seconds: f64) -> std::io::Result<()> {
        let written = self.file.with_extension("next");
        fs::write(&written, format!("{seconds:+.3}\n"))?;
        fs::rename(written, &self.file) // a look at the clock meets the old file or the new one
    }

    /// What a process has to be started with.
    pub(crate) fn variables(&self) -> [(&'static str, &Path); 5] {
        [
            ("LD_PRELOAD", &self.library),
            ("FAKETIME_TIMESTAMP_FILE", &self.file),
            ("FAKETIME_NO_CACHE", Path::new("1")),
            ("FAKETIME_DONT_FAKE_MONOTONIC", Path::new("1")),
            ("NO_FAKE_STAT", Path::new("1")),
        ]
    }
}

/// Where libfaketime is.
///
/// # Errors
///
/// If it is not installed.
pub(crate) fn library() -> anyhow::Result<PathBuf> {
    let folders = fs::read_dir("/usr/lib").context("cannot read /usr/lib")?;
    let mut found = folders.flatten().map(|folder| folder.path().join(LIBRARY)).filter(|path| path.exists());
    found.next().context("libfaketime is missing; on Debian: apt-get install libfaketime")
}
