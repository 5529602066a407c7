//! A Redis server of its own for a test: real, durable, gone with the test.

use std::{
    collections::BTreeMap,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use countersign::store::redis::{address::Access, durability::Trust};
use tempfile::TempDir;

use super::ports::free_port;

/// Servers that must show that they lose nothing.
pub(crate) const CHECKED: Access = Access { trust: Trust::Checked, tls: None };
/// Servers that may lose what they acknowledge.
pub(crate) const LOSSY: Access = Access { trust: Trust::Lossy, tls: None };
/// How long a server may take until it answers.
const START_LIMIT: Duration = Duration::from_secs(60);
/// How often another port is tried.
const PORTS: usize = 5;

/// A running `redis-server` that writes everything down before it answers.
#[derive(Debug)]
pub(crate) struct RedisServer {
    port: u16,
    extra: Vec<String>,
    process: Option<Child>,
    directory: TempDir,
}

impl RedisServer {
    /// Starts a server with the settings that lose nothing.
    pub(crate) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts a server with other settings, as `["--appendfsync", "everysec"]`.
    pub(crate) async fn start_with(extra: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().expect("a temporary directory"), extra).await
    }

    async fn start_in(directory: TempDir, extra: &[&str]) -> Self {
        let extra = extra.iter().map(|&arg| arg.to_owned()).collect();
        let mut server = Self { port: 0, extra, process: None, directory };
        for _ in 0..PORTS {
            server.port = free_port();
            if server.launch().await {
                return server;
            }
        }
        panic!("redis-server did not start:\n{}", server.log());
    }

    /// The folder with its files.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Where it listens.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// As a configuration names it.
    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The number of its process; nothing after [`Self::kill`].
    pub(crate) fn id(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// Kills it without a word (SIGKILL).
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("it is our child");
            process.wait().expect("it was killed");
        }
    }

    /// Starts it again after [`Self::kill`], on the same port, with what its disk holds.
    pub(crate) async fn restart(&mut self) {
        assert!(self.process.is_none(), "kill it first");
        assert!(self.launch().await, "redis-server did not come back:\n{}", self.log());
    }

    /// Other settings from the next start on.
    pub(crate) fn set_extra(&mut self, extra: &[&str]) {
        self.extra = extra.iter().map(|&arg| arg.to_owned()).collect();
    }

    /// How often each command was carried out, also by scripts; without those with which a test or the check of the
    /// settings asks the server about itself.
    pub(crate) async fn calls(&self) -> BTreeMap<String, u64> {
        let mut connection = self.connection().await;
        let info: String = redis::cmd("INFO").arg("commandstats").query_async(&mut connection).await.expect("it runs");
        let counts = info.lines().filter_map(|line| {
            let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
            let is_about_itself = ["info", "config", "client", "hello", "ping"].iter().any(|of| name.starts_with(of));
            (!is_about_itself).then(|| Some((name.to_owned(), rest.split_once(',')?.0.parse().ok()?)))?
        });
        counts.collect()
    }

    /// A connection for the test itself. It is patient: the machine may have other work as well.
    pub(crate) async fn connection(&self) -> redis::aio::MultiplexedConnection {
        let client = redis::Client::open(self.url()).expect("our own URL");
        let patient = redis::AsyncConnectionConfig::new()
            .set_connection_timeout(Some(START_LIMIT))
            .set_response_timeout(Some(START_LIMIT));
        client.get_multiplexed_async_connection_with_config(&patient).await.expect("the server runs")
    }

    /// Whether it runs and answers; not if the port is somebody else's.
    async fn launch(&mut self) -> bool {
        let mut command = Command::new("redis-server");
        command
            .args(["--bind", "127.0.0.1", "--port", &self.port.to_string(), "--daemonize", "no", "--save", ""])
            .args(["--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction"])
            .args(&self.extra)
            .current_dir(self.directory.path())
            .args(["--logfile", "redis.log"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = command.spawn().unwrap_or_else(|error| {
            panic!("cannot start redis-server ({error}): these tests need Redis 7; install it, as with `apt-get install redis-server`")
        });
        let pid = process.id();
        let process = self.process.insert(process);
        let began = Instant::now();
        while process.try_wait().expect("it is our child").is_none() {
            if answering_pid(self.port).await == Some(pid) {
                return true;
            }
            assert!(began.elapsed() < START_LIMIT, "redis-server does not answer on port {}", self.port);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.process = None;
        false
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("redis.log")).unwrap_or_default()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The process that answers on a port, once it has loaded its file.
async fn answering_pid(port: u16) -> Option<u32> {
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}")).ok()?;
    let mut connection = client.get_multiplexed_async_connection().await.ok()?;
    let info: String = redis::cmd("INFO").query_async(&mut connection).await.ok()?;
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim_end);
    (field("loading:") == Some("0")).then(|| field("process_id:")?.parse().ok())?
}
