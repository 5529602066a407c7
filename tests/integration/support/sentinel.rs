//! A Redis master with a replica, and three Sentinels that watch them.

use std::{
    fs,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::{ports::free_port, redis::RedisServer};

/// How long anything may take. Generous: the machine may have other work as well.
const LIMIT: Duration = Duration::from_secs(60);
/// How long is left between two looks.
const LOOK: Duration = Duration::from_millis(10);

/// The servers, of which the first one begins as the master, and their Sentinels.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) servers: Vec<RedisServer>,
    sentinels: Vec<Sentinel>,
}

#[derive(Debug)]
struct Sentinel {
    port: u16,
    process: Child,
    _folder: TempDir,
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        self.process.kill().expect("it is our child");
        self.process.wait().expect("it was killed");
    }
}

impl Watched {
    /// Starts all of them. A server that is silent for a second counts as down.
    pub(crate) async fn start() -> Self {
        let fast = ["--repl-diskless-sync-delay", "0"];
        let servers = vec![RedisServer::start_with(&fast).await, RedisServer::start_with(&fast).await];
        let master = servers[0].port();
        let follow = ["REPLICAOF", "127.0.0.1", &master.to_string()].map(str::to_owned);
        ask::<()>(servers[1].port(), &follow.each_ref().map(String::as_str)).await.expect("it is new");
        let watched = Self { servers, sentinels: (0..3).map(|_| Sentinel::start(master)).collect() };
        for n in 0..3 {
            watched.until(n, |facts| facts["num-slaves"] == "1" && facts["num-other-sentinels"] == "2").await;
        }
        watched.until_replica(1).await;
        watched
    }

    /// As a configuration names them.
    pub(crate) fn url(&self) -> String {
        let hosts: Vec<_> = self.sentinels.iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.port)).collect();
        format!("redis+sentinel://{}/mymaster", hosts.join(","))
    }

    /// The address of a Sentinel, as if it were a server.
    pub(crate) fn url_of_one(&self) -> String {
        format!("redis://127.0.0.1:{}", self.sentinels[0].port)
    }

    /// Ends all Sentinels but the first, and is their address still.
    pub(crate) fn leaves_one(&mut self) -> String {
        let url = self.url();
        self.sentinels.truncate(1);
        url
    }

    /// Waits until every Sentinel names this server as the master.
    pub(crate) async fn until_master(&self, server: usize) {
        let port = self.servers[server].port().to_string();
        for n in 0..self.sentinels.len() {
            self.until(n, |facts| facts["port"] == port).await;
        }
    }

    /// Waits until a server follows another one, and has its data.
    pub(crate) async fn until_replica(&self, server: usize) {
        let began = Instant::now();
        loop {
            let info: String = ask(self.servers[server].port(), &["INFO", "replication"]).await.unwrap_or_default();
            if info.contains("role:slave") && info.contains("master_link_status:up") {
                return;
            }
            assert!(began.elapsed() < LIMIT, "it never follows: {info}");
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn until(&self, n: usize, is: impl Fn(&std::collections::HashMap<String, String>) -> bool) {
        let began = Instant::now();
        loop {
            let facts = ask(self.sentinels[n].port, &["SENTINEL", "MASTER", "mymaster"]).await;
            if facts.as_ref().is_ok_and(&is) {
                return;
            }
            assert!(began.elapsed() < LIMIT, "Sentinel {n} never sees it: {facts:?}");
            tokio::time::sleep(LOOK).await;
        }
    }
}

impl Sentinel {
    fn start(master: u16) -> Self {
        let (folder, port) = (tempfile::tempdir().expect("a temporary directory"), free_port());
        let file = folder.path().join("sentinel.conf");
        let settings = format!(
            "bind 127.0.0.1\nport {port}\nlogfile sentinel.log\ndir {}\nsentinel monitor mymaster 127.0.0.1 {master} 2\n\
             sentinel down-after-milliseconds mymaster 1000\nsentinel failover-timeout mymaster 2000\n",
            folder.path().display()
        );
        fs::write(&file, settings).expect("it is ours");
        let mut command = Command::new("redis-server");
        command.arg(&file).arg("--sentinel").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { port, process: command.spawn().expect("redis-server is installed"), _folder: folder }
    }
}

async fn ask<T: redis::FromRedisValue>(port: u16, words: &[&str]) -> redis::RedisResult<T> {
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}"))?;
    let mut connection = client.get_multiplexed_async_connection().await?;
    redis::cmd(words[0]).arg(&words[1..]).query_async(&mut connection).await
}
