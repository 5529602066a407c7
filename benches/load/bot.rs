//! The bot as a process of its own, so that its processor time and memory can be told from those of the load.

use std::{
    fs, io,
    net::{SocketAddr, TcpListener},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};

use crate::{callgrind::Callgrind, clocks, quota::Quota, wire::SIGNING_SECRET};

/// The name of the SQLite file.
pub(crate) const STORE: &str = "threads.sqlite";

/// The time limit for the bot to stop.
const DRAIN: Duration = Duration::from_secs(30);

/// The outside systems, files and limits of the bot.
pub(crate) struct Surroundings<'a> {
    pub(crate) slack_url: &'a str,
    pub(crate) upgrade_url: &'a str,
    /// The address of the simulation bridge and the secret of its tokens, if there is one.
    pub(crate) bridge: Option<(&'a str, &'a str)>,
    pub(crate) folder: &'a Path,
    pub(crate) redis_url: Option<&'a str>,
    pub(crate) socket: bool,
    pub(crate) program: &'a Path,
    pub(crate) under: Option<Under<'a>>,
    /// Further settings, as environment variables.
    pub(crate) settings: &'a [(&'static str, String)],
}

/// What the bot runs under.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Under<'a> {
    /// A maximum number of open files and sockets.
    Descriptors(u64),
    /// A count of the instructions that it executes, which makes it some fifty times slower.
    Callgrind(&'a Callgrind),
    /// One core of the machine, by its number, and a share of its time.
    Core(usize, &'a Quota),
}

impl Under<'_> {
    /// Returns the command that runs the program in this way.
    fn command(&self, program: &Path) -> Command {
        let mut command;
        match self {
            Self::Descriptors(descriptors) => {
                command = Command::new("/bin/sh");
                command.args(["-c", r#"ulimit -n "$0" && exec "$@""#, &descriptors.to_string()]);
            }
            Self::Callgrind(counts) => return counts.command(program),
            Self::Core(core, _) => {
                command = Command::new("taskset");
                command.args(["--cpu-list", &core.to_string()]);
            }
        }
        command.arg(program);
        command
    }

    /// Says why the program may not have started.
    fn why_not(&self) -> &'static str {
        match self {
            Self::Descriptors(_) => "cannot start a shell",
            Self::Callgrind(_) => {
                "cannot start valgrind, which counts instructions: install it, as with `apt-get install valgrind`"
            }
            Self::Core(..) => {
                "cannot start taskset, which chooses a core: install it, as with `apt-get install util-linux`"
            }
        }
    }
}

/// A running `countersign serve`; killed when it is dropped.
pub(crate) struct Bot {
    process: Child,
    pub(crate) address: SocketAddr,
    pub(crate) started: Instant,
}

/// Memory in MiB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) now: f64,
    /// That part of it which is not of files, such as the program's own.
    pub(crate) own: f64,
    /// All of it, with its share of what other processes use as well.
    pub(crate) share: f64,
    pub(crate) most: f64,
}

impl Memory {
    /// Says how much it is now.
    pub(crate) fn told(&self) -> String {
        format!("{:.1} · {:.1} MiB", self.now, self.share)
    }
}

impl Bot {
    /// Starts it on a free port, without waiting for anything.
    pub(crate) fn start(around: &Surroundings<'_>) -> anyhow::Result<Self> {
        let free = TcpListener::bind("127.0.0.1:0")?;
        let address = free.local_addr()?;
        drop(free);
        let mut command = match around.under {
            None => Command::new(around.program),
            Some(under) => under.command(around.program),
        };
        command
            .arg("serve")
            .env_clear()
            .env("SLACK_API_URL", around.slack_url)
            .env("SLACK_BOT_TOKEN", "xoxb-bench")
            .env("SLACK_SIGNING_SECRET", SIGNING_SECRET)
            .env("UPGRADE_API_URL", around.upgrade_url)
            .env("PORT", address.port().to_string())
            .env("COUNTERSIGN__STORE__PATH", around.folder.join(STORE))
            .env("COUNTERSIGN__APPROVALS__DIGEST_KEY_FILE", around.folder.join("countersign.key"))
            .env("COUNTERSIGN__SERVER__LOG", "warn")
            // All dialogues are in one channel here: at Slack's one message a second it would measure nothing else.
            .env("COUNTERSIGN__SLACK__RATE_LIMITS", "false")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command.envs(around.settings.iter().map(|(name, value)| (*name, value)));
        if around.socket {
            command.env("SLACK_APP_TOKEN", "xapp-bench");
        }
        if let Some((url, secret)) = around.bridge {
            command.env("BRIDGE_URL", url).env("BRIDGE_JWT_SECRET", secret);
        }
        if let Some(url) = around.redis_url {
            command.env("REDIS_URL", url);
        }
        if let Some(Under::Callgrind(_)) = around.under {
            command.envs(Callgrind::clock(&clocks::library()?));
        }
        let started = Instant::now();
        let why_not = || around.under.map_or("cannot start the bot", |under| under.why_not());
        let bot = Self { process: command.spawn().with_context(why_not)?, address, started };
        if let Some(Under::Core(_, quota)) = around.under {
            quota.take_in(bot.process.id())?;
        }
        Ok(bot)
    }

    /// Returns the number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// The processor time it has had, of all its threads, to the nanosecond.
    pub(crate) fn processor_time(&self) -> anyhow::Result<Duration> {
        processor_time(&self.process)
    }

    /// Returns the memory of the process.
    pub(crate) fn memory(&self) -> anyhow::Result<Memory> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let rollup = fs::read_to_string(format!("/proc/{}/smaps_rollup", self.process.id()))?;
        let field = |name: &str| -> anyhow::Result<f64> {
            let line = status
                .lines()
                .chain(rollup.lines())
                .find_map(|line| line.strip_prefix(name))
                .context("the kernel tells it")?;
            let kib = line.split_whitespace().next().context("a number")?;
            Ok(kib.parse::<f64>()? / 1024.0)
        };
        Ok(Memory { now: field("VmRSS:")?, own: field("RssAnon:")?, share: field("Pss:")?, most: field("VmHWM:")? })
    }

    /// Ends it as a service manager does.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        let told = Command::new("kill").args(["-TERM", &self.process.id().to_string()]).status()?;
        ensure!(told.success(), "the bot had ended already");
        let began = Instant::now();
        loop {
            if let Some(ended) = self.process.try_wait()? {
                ensure!(ended.success(), "the bot ended badly: {ended}");
                return Ok(());
            }
            ensure!(began.elapsed() < DRAIN, "the bot does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Bot {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

/// A redis-server that loses nothing; killed when it is dropped.
pub(crate) struct Redis {
    process: Child,
    port: u16,
}

impl Redis {
    /// Starts one that keeps its files in `folder`, and waits until it listens.
    pub(crate) fn start(folder: &Path) -> anyhow::Result<Self> {
        let free = TcpListener::bind("127.0.0.1:0")?;
        let port = free.local_addr()?.port();
        drop(free);
        let process = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", ""])
            .args(["--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction"])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start redis-server: install it, as with `apt-get install redis-server`")?;
        let redis = Self { process, port };
        let began = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            ensure!(began.elapsed() < DRAIN, "redis-server does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(redis)
    }

    /// The processor time it has had.
    pub(crate) fn processor_time(&self) -> anyhow::Result<Duration> {
        processor_time(&self.process)
    }

    /// As a configuration names it.
    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

/// The processor time of all threads of a process, to the nanosecond.
fn processor_time(process: &Child) -> anyhow::Result<Duration> {
    let mut spent = 0;
    for thread in fs::read_dir(format!("/proc/{}/task", process.id()))? {
        let Ok(stat) = fs::read_to_string(thread?.path().join("schedstat")) else { continue }; // it has just ended
        let first = stat.split_whitespace().next().context("schedstat holds three numbers")?;
        spent += first.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(spent))
}

/// Kills a process of ours; an error means that it has ended already.
fn end(process: &mut Child) {
    let ended: io::Result<()> = process.kill();
    ended.ok();
    process.wait().ok();
}

/// The processor time of this process: load, stand-ins and all.
pub(crate) fn own_processor_time() -> anyhow::Result<Duration> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit_once(") ").context("the name is in brackets")?.1;
    let fields: Vec<&str> = after_name.split(' ').collect();
    let ticks = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
    Ok(Duration::from_millis(ticks * 10)) // the kernel counts hundredths here, whatever its own clock
}
