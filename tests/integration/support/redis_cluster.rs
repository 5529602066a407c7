//! A Redis Cluster of its own for a test: three masters, each with replicas or without, on this machine.

use std::{
    collections::BTreeMap,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use countersign::ids::Partition;
use futures_util::future::join_all;
use rustix::process::{Pid, Signal, kill_process};

use super::{ports::free_port, redis::RedisServer};

/// How many masters share the slots.
pub(crate) const MASTERS: usize = 3;
/// The number of slots of every cluster.
const SLOTS: usize = 16384;
/// How long anything in the cluster may take. Generous: the machine may have other work as well.
const LIMIT: Duration = Duration::from_secs(60);
/// How long is left between two looks.
const LOOK: Duration = Duration::from_millis(5);

/// Three masters, and their replicas after them: server `n` begins as a replica of master `n % 3`.
#[derive(Debug)]
pub(crate) struct RedisCluster {
    pub(crate) servers: Vec<RedisServer>,
}

/// A server as the cluster knows it.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) port: u16,
    pub(crate) flags: String,
    /// The id of its master; `-` for a master.
    pub(crate) master: String,
    pub(crate) slots: Vec<(u16, u16)>,
}

impl RedisCluster {
    /// Starts a cluster whose masters have so many replicas each. A server that is silent for `timeout` counts as failed.
    pub(crate) async fn start(replicas: usize, timeout: Duration) -> Self {
        Self::start_with(replicas, timeout, |_| Vec::new()).await
    }

    /// Starts a cluster whose servers have further settings.
    pub(crate) async fn start_with(replicas: usize, timeout: Duration, more: impl Fn(usize) -> Vec<String>) -> Self {
        let timeout = timeout.as_millis().to_string();
        let servers = (0..MASTERS * (1 + replicas)).map(async |n| {
            let more = more(n);
            let bus = free_port().to_string();
            let settings = [
                ["--cluster-enabled", "yes"],
                ["--cluster-port", &bus],
                ["--cluster-node-timeout", &timeout],
                ["--cluster-require-full-coverage", "no"],
                ["--repl-diskless-sync-delay", "0"],
            ];
            let more = more.iter().map(String::as_str);
            let settings: Vec<&str> = settings.as_flattened().iter().copied().chain(more).collect();
            (RedisServer::start_with(&settings).await, bus)
        });
        let (servers, buses): (Vec<_>, Vec<_>) = join_all(servers).await.into_iter().unzip();
        let cluster = Self { servers };
        cluster.join(&buses).await;
        cluster
    }

    /// Makes the servers a cluster.
    async fn join(&self, buses: &[String]) {
        let first_of = |n: usize| (n * SLOTS / MASTERS).to_string();
        for (n, server) in self.servers.iter().enumerate() {
            let mut connection = server.connection().await;
            let mut ask = redis::pipe();
            ask.cmd("CLUSTER").arg("SET-CONFIG-EPOCH").arg(n + 1).ignore();
            if n < MASTERS {
                let last = ((n + 1) * SLOTS / MASTERS - 1).to_string();
                ask.cmd("CLUSTER").arg("ADDSLOTSRANGE").arg(first_of(n)).arg(last).ignore();
            }
            ask.query_async::<()>(&mut connection).await.expect("the servers are new");
        }
        for (n, server) in self.servers.iter().enumerate().take(self.servers.len() - 1) {
            let (mut connection, mut ask) = (server.connection().await, redis::pipe());
            for (other, bus) in self.servers.iter().zip(buses).skip(n + 1) {
                ask.cmd("CLUSTER").arg("MEET").arg("127.0.0.1").arg(other.port()).arg(bus).ignore();
            }
            ask.query_async::<()>(&mut connection).await.expect("the servers are new");
        }
        for n in 0..self.servers.len() {
            self.until("everybody knows everybody", n, |nodes| {
                nodes.len() == self.servers.len() && nodes.iter().all(|node| !node.flags.contains("handshake"))
            })
            .await;
        }
        let masters = self.nodes(0).await;
        let id_of =
            |n: usize| &masters.iter().find(|node| node.port == self.servers[n].port()).expect("it is known").id;
        for n in MASTERS..self.servers.len() {
            self.command::<()>(n, &["CLUSTER", "REPLICATE", id_of(n % MASTERS)]).await;
        }
        for n in 0..self.servers.len() {
            self.is_complete(n).await;
        }
    }

    /// Waits until a server has a complete view of the cluster, and its data if it is a replica.
    pub(crate) async fn is_complete(&self, n: usize) {
        let replicas = self.servers.len() - MASTERS;
        self.until("every replica is known", n, |nodes| {
            nodes.iter().filter(|node| node.flags.contains("slave")).count() == replicas
                && nodes.iter().all(|node| !node.flags.contains("fail"))
        })
        .await;
        self.until_info("it is up", n, |info| {
            info.get("role").is_some_and(|role| role == "master")
                || info.get("master_link_status").is_some_and(|link| link == "up")
        })
        .await;
        let began = Instant::now();
        loop {
            // A server is up before it has heard which slots the others have.
            let info = self.command::<String>(n, &["CLUSTER", "INFO"]).await;
            if ["cluster_state:ok", "cluster_slots_ok:16384"].iter().all(|fact| info.contains(fact)) {
                return;
            }
            assert!(began.elapsed() < LIMIT, "the cluster of server {n} is never up: {info}");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The cluster, as a configuration names it: all its servers.
    pub(crate) fn url(&self) -> String {
        let hosts: Vec<_> = self.servers.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
        format!("redis://{}", hosts.join(","))
    }

    /// The servers as one of them knows them; nothing if it does not answer.
    pub(crate) async fn nodes(&self, n: usize) -> Vec<Node> {
        let Some(id) = self.servers[n].id() else { return Vec::new() };
        let answer: String = self.command(n, &["CLUSTER", "NODES"]).await;
        let nodes: Vec<Node> = answer.lines().filter_map(Node::read).collect();
        assert!(!nodes.is_empty(), "process {id} says {answer}");
        nodes
    }

    /// Waits until a server sees a fact.
    pub(crate) async fn until(&self, what: &str, n: usize, is: impl Fn(&[Node]) -> bool) {
        let began = Instant::now();
        loop {
            let nodes = self.nodes(n).await;
            if is(&nodes) {
                return;
            }
            assert!(began.elapsed() < LIMIT, "server {n} never sees that {what}: {nodes:#?}");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until a server says something of itself.
    pub(crate) async fn until_info(&self, what: &str, n: usize, is: impl Fn(&BTreeMap<String, String>) -> bool) {
        let began = Instant::now();
        loop {
            let info: String = self.command(n, &["INFO"]).await;
            let info = info.lines().filter_map(|line| line.trim_end().split_once(':'));
            let info = info.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            if is(&info) {
                return;
            }
            assert!(began.elapsed() < LIMIT, "server {n}: {what} is never true");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Sends a command to one server.
    pub(crate) async fn command<T: redis::FromRedisValue>(&self, n: usize, words: &[&str]) -> T {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query_async(&mut self.servers[n].connection().await).await.unwrap_or_else(|error| {
            panic!("{words:?}: {error}");
        })
    }

    /// Runs `redis-cli --cluster`, as people do, with a server's address after the first word.
    pub(crate) async fn cli(&self, n: usize, words: &[&str]) -> Result<String, String> {
        let address = format!("127.0.0.1:{}", self.servers[n].port());
        let mut command = tokio::process::Command::new("redis-cli");
        command.arg("--cluster").arg(words[0]).arg(address).args(&words[1..]).stdin(Stdio::null()).kill_on_drop(true);
        let output = command.output().await.expect("redis-cli comes with redis-server");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() { Ok(said) } else { Err(said) }
    }

    /// Moves the first slots of a master to another one: so many. Waits until the servers agree before.
    pub(crate) async fn reshard(&self, from: usize, to: usize, slots: usize, more: &[&str]) -> Result<String, String> {
        self.agrees().await;
        let [from_id, to_id] = [from, to].map(|n| self.command::<String>(n, &["CLUSTER", "MYID"]));
        let (from_id, to_id, slots) = (from_id.await, to_id.await, slots.to_string());
        let words = ["reshard", "--cluster-from", &from_id, "--cluster-to", &to_id, "--cluster-slots", &slots];
        self.cli(from, &[&words, ["--cluster-yes"].as_slice(), more].concat()).await
    }

    /// Waits until all servers agree on who has which slot, and no slot is being moved.
    pub(crate) async fn agrees(&self) {
        let began = Instant::now();
        loop {
            let told = match self.cli(0, &["check"]).await {
                Ok(told) if !told.contains("[WARNING]") => return,
                Ok(told) | Err(told) => told,
            };
            assert!(began.elapsed() < LIMIT, "{told}");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Begins to move a slot to another master, and moves nothing.
    pub(crate) async fn opens_slot(&self, partition: Partition, from: usize, to: usize) {
        let slot = self.slot_of(partition).await.to_string();
        let ids = join_all([from, to].map(|n| self.command::<String>(n, &["CLUSTER", "MYID"]))).await;
        self.command::<()>(to, &["CLUSTER", "SETSLOT", &slot, "IMPORTING", &ids[0]]).await;
        self.command::<()>(from, &["CLUSTER", "SETSLOT", &slot, "MIGRATING", &ids[1]]).await;
    }

    /// The slot of a partition.
    pub(crate) async fn slot_of(&self, partition: Partition) -> u16 {
        self.command(0, &["CLUSTER", "KEYSLOT", &format!("{{p{:02}}}", partition.number())]).await
    }

    /// The master of a partition, as the server `asked` knows it.
    pub(crate) async fn master_of(&self, partition: Partition, asked: usize) -> usize {
        let slot: u16 = self.command(asked, &["CLUSTER", "KEYSLOT", &format!("{{p{:02}}}", partition.number())]).await;
        let nodes = self.nodes(asked).await;
        let has_it = |node: &&Node| node.slots.iter().any(|(first, last)| (*first..=*last).contains(&slot));
        let master = nodes.iter().find(has_it).expect("every slot has a master");
        self.servers.iter().position(|server| server.port() == master.port).expect("it is ours")
    }

    /// The only replica of a master, as the master knows it.
    pub(crate) async fn replica_of(&self, master: usize) -> usize {
        let nodes = self.nodes(master).await;
        let itself = nodes.iter().find(|node| node.flags.contains("myself")).expect("it knows itself");
        let replica = nodes.iter().find(|node| node.master == itself.id).expect("it has a replica");
        self.servers.iter().position(|server| server.port() == replica.port).expect("it is ours")
    }

    /// Stops a server (SIGSTOP) until [`Self::resume`].
    pub(crate) fn stall(&self, n: usize) {
        self.signal(n, Signal::STOP);
    }

    /// Lets a server go on.
    pub(crate) fn resume(&self, n: usize) {
        self.signal(n, Signal::CONT);
    }

    fn signal(&self, n: usize, signal: Signal) {
        let id = self.servers[n].id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)).expect("it runs");
        kill_process(id, signal).expect("it is our child");
    }

    /// Has the servers killed and their files removed when this process ends, however it ends.
    pub(crate) fn ends_with_this_process(&self) -> Child {
        const SCRIPT: &str = r#"trap '' INT TERM HUP; ids=$1; shift; cat >/dev/null; kill -9 $ids; rm -rf "$@""#;
        let ids: Vec<_> = self.servers.iter().filter_map(RedisServer::id).map(|id| id.to_string()).collect();
        let mut script = Command::new("sh");
        script.args(["-c", SCRIPT, "sh", &ids.join(" ")]);
        script.args(self.servers.iter().map(RedisServer::directory));
        script.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().expect("there is a shell")
    }
}

impl Node {
    fn read(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [id, address, flags, master, _, _, _, _, slots @ ..] = words.as_slice() else { return None };
        let range = |word: &&str| {
            let (first, last) = word.split_once('-').unwrap_or((word, word));
            Some((first.parse().ok()?, last.parse().ok()?))
        };
        Some(Self {
            id: (*id).to_owned(),
            port: address.split('@').next()?.rsplit(':').next()?.parse().ok()?,
            flags: (*flags).to_owned(),
            master: (*master).to_owned(),
            slots: slots.iter().filter_map(range).collect(),
        })
    }
}
