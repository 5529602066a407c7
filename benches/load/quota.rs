//! A share of a core for a process, by the kernel's control groups: a machine with two cores has none to spare for each
//! process, the server and the load.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use anyhow::Context as _;

/// The period in which a process gets its share, in microseconds. A short one, so that a process that has used its share
/// does not stand still for long.
const PERIOD: u32 = 5_000;

/// A control group that may use so much of a core; it is removed when it is dropped, which must be after its process.
#[derive(Debug)]
pub(crate) struct Quota {
    folder: PathBuf,
}

impl Quota {
    /// Creates one for so large a share of a core.
    pub(crate) fn of(share: f64) -> anyhow::Result<Self> {
        static LAST: AtomicUsize = AtomicUsize::new(0);
        let name = format!("bench-{}-{}", std::process::id(), LAST.fetch_add(1, Ordering::Relaxed));
        let limit = (f64::from(PERIOD) * share) as u32;
        let second = Path::new("/sys/fs/cgroup/cgroup.controllers").exists(); // the second version of control groups
        let root = if second { "/sys/fs/cgroup" } else { "/sys/fs/cgroup/cpu" };
        let folder = Path::new(root).join(name);
        let needs = || format!("cannot limit processor time below {root}, which needs to be root");
        fs::create_dir(&folder).with_context(needs)?;
        let quota = Self { folder };
        let limits = match second {
            true => vec![("cpu.max", format!("{limit} {PERIOD}"))],
            false => vec![("cpu.cfs_period_us", PERIOD.to_string()), ("cpu.cfs_quota_us", limit.to_string())],
        };
        for (file, value) in limits {
            fs::write(quota.folder.join(file), value).with_context(needs)?;
        }
        Ok(quota)
    }

    /// Takes in a process, which must not have begun to work yet.
    pub(crate) fn take_in(&self, process: u32) -> anyhow::Result<()> {
        fs::write(self.folder.join("cgroup.procs"), process.to_string()).context("cannot limit a process")
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        fs::remove_dir(&self.folder).ok(); // a process that is still in it keeps it
    }
}
