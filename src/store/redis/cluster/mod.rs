//! The client of a Redis Cluster: several masters that share the partitions, and their replicas.
//!
//! A request goes to the master of its partition ([`route`]); what concerns all partitions goes to all masters at the
//! same time, and their answers are put together ([`calls`]). A write counts once a replica has it ([`replicas`]). Start
//! reading at [`topology`], which server has which partition.
//!
//! **One server does not hold up the others.** A server that is away fails its own calls at once ([`member`]). Searches
//! for work leave its partitions out. A list of everything fails, since it would not be one of everything; the error
//! names the server.
//!
//! **A slot that is being moved** is served by neither server. A key may be here or there at that time, and a server
//! refuses a script only if a key that the script names is missing *at its beginning*: one that removes a key and asks
//! for it again would stop in the middle. Each script therefore names a key that never exists
//! ([`super::keys::absent`]), so that none begins before the slot has arrived. Single commands are answered meanwhile,
//! by whichever server has the key.
//!
//! **A master that Sentinels watch** is a cluster with one master ([`sentinels`]): it and its replicas are told by them.
//!
//! The crate's own client for clusters was rejected: it repeats requests whose answer was lost, though they may have been
//! executed, and has one connection to each server, on which a write that waits for a replica would hold up the others.

mod calls;
mod checks;
mod fault;
mod member;
mod replicas;
mod route;
mod sentinels;
mod settings;
mod slots;
mod topology;
mod unit;

use std::{
    sync::{
        Arc, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use countersign_core::ids::Partition;
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use redis::{ConnectionAddr, ConnectionInfo, ErrorKind, RedisResult, Value, aio::PubSub};
use tokio::{
    sync::Mutex,
    time::{Instant, timeout_at},
};

use super::address::Access;

use self::{
    member::Member,
    sentinels::{Sentinels, Watched},
    topology::{Topology, View},
};

/// The shortest interval between two looks at the cluster.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The time limit for the first view of the cluster.
const FIRST_VIEW: Duration = Duration::from_secs(2);
/// The time limit for further views, after the first one.
const OTHER_VIEWS: Duration = Duration::from_millis(100);

/// A cluster.
#[derive(Debug)]
pub(super) struct Cluster {
    /// The servers of the setting, which are asked if no other answers. None if there are Sentinels.
    seeds: Vec<Arc<Member>>,
    sentinels: Option<Sentinels>,
    /// The connection settings that all servers share: everything but the address.
    credentials: ConnectionInfo,
    access: Access,
    topology: RwLock<Arc<Topology>>,
    /// The time of the last look at the cluster.
    looked_at: Mutex<Option<Instant>>,
    /// The number of members created so far.
    created: AtomicU64,
    /// The number of times that any member went away.
    losses: Arc<AtomicU64>,
}

impl Cluster {
    /// Connects to a cluster by any of its servers.
    ///
    /// # Errors
    ///
    /// Fails if an address is invalid.
    pub(super) async fn open(seeds: Vec<ConnectionInfo>, access: &Access) -> RedisResult<Arc<Self>> {
        let Some(credentials) = seeds.first().cloned() else {
            return Err((ErrorKind::InvalidClientConfig, "no address").into());
        };
        Self::new(seeds, None, credentials, access).await
    }

    /// Connects to the master that these Sentinels watch.
    ///
    /// # Errors
    ///
    /// Fails if an address is invalid.
    pub(super) async fn watched(
        sentinels: Vec<ConnectionInfo>,
        master: String,
        credentials: ConnectionInfo,
        access: &Access,
    ) -> RedisResult<Arc<Self>> {
        let sentinels = Sentinels::new(master, sentinels, access.tls.as_ref())?;
        Self::new(Vec::new(), Some(sentinels), credentials, access).await
    }

    async fn new(
        seeds: Vec<ConnectionInfo>,
        sentinels: Option<Sentinels>,
        credentials: ConnectionInfo,
        access: &Access,
    ) -> RedisResult<Arc<Self>> {
        let (created, losses) = (AtomicU64::new(seeds.len() as u64), Arc::<AtomicU64>::default());
        let seeds = seeds.into_iter().enumerate();
        let seeds = seeds.map(|(serial, info)| Member::new(info, serial as u64, access, &losses).map(Arc::new));
        let seeds = seeds.collect::<RedisResult<_>>()?;
        let (topology, looked_at) = (RwLock::default(), Mutex::default());
        let access = access.clone();
        let cluster = Arc::new(Self { seeds, sentinels, credentials, access, topology, looked_at, created, losses });
        cluster.refresh().await;
        Ok(cluster)
    }

    /// Returns the hosts and ports of the masters or, if none is known, those of the setting.
    pub(super) fn address(&self) -> String {
        let topology = self.topology();
        let mut servers: Vec<_> = topology.masters().map(|master| master.member.address()).collect();
        if servers.is_empty() {
            servers.extend(self.seeds.iter().map(|seed| seed.address()));
        }
        match (&self.sentinels, servers.is_empty()) {
            (Some(sentinels), true) => sentinels.addresses(),
            _ => servers.join(", "),
        }
    }

    /// Returns the number of times that any server went away.
    pub(super) fn losses(&self) -> u64 {
        self.losses.load(Ordering::SeqCst)
    }

    /// Returns a number that changes with each connection to the master of a partition, and with the master.
    pub(super) fn connection_number(&self, partition: Partition) -> u64 {
        self.master_of(partition).map_or(0, |master| master.connection_number())
    }

    /// Subscribes to the hints of all scripts, at the first server that accepts it: the servers pass them on.
    pub(super) fn subscriber(&self) -> impl Future<Output = RedisResult<PubSub>> + Send + use<> {
        let topology = self.topology();
        let here = topology.members().filter(|member| !member.is_away());
        let subscribers: Vec<_> = here.map(|member| member.server().subscriber()).collect();
        async move {
            let mut subscribed = Err((ErrorKind::Io, "no server of the cluster is known").into());
            for subscriber in subscribers {
                subscribed = subscriber.await;
                if subscribed.is_ok() {
                    break;
                }
            }
            subscribed
        }
    }

    fn topology(&self) -> Arc<Topology> {
        self.topology.read().map(|topology| Arc::clone(&topology)).unwrap_or_default()
    }

    /// Returns the master of a partition.
    fn master_of(&self, partition: Partition) -> Option<Arc<Member>> {
        self.topology().master_of(partition).cloned()
    }

    /// Returns the server at an address.
    fn member(&self, address: &str) -> Arc<Member> {
        let topology = self.topology();
        let known = topology.members().chain(&self.seeds).find(|member| member.address() == address);
        known.cloned().unwrap_or_else(|| {
            let info = self.credentials.clone().set_addr(at(address));
            let serial = self.created.fetch_add(1, Ordering::SeqCst);
            let member = Member::new(info, serial, &self.access, &self.losses);
            Arc::new(member.expect("only the address differs from that of a seed").announced())
        })
    }

    /// Looks at the cluster in the background.
    fn refresh_soon(self: &Arc<Self>) {
        let cluster = Arc::clone(self);
        tokio::spawn(async move { cluster.refresh().await });
    }

    /// Looks at the cluster, unless that has just been done.
    async fn refresh(&self) {
        let mut looked_at = self.looked_at.lock().await;
        if looked_at.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return;
        }
        let topology = match &self.sentinels {
            Some(sentinels) => sentinels.ask().await.ok().map(|watched| self.topology_of(&watched)),
            None => self.asked().await,
        };
        *looked_at = Some(Instant::now());
        if let Some(topology) = topology {
            self.set_topology(topology);
        }
    }

    /// Asks the servers for their topology, as far as they answer.
    async fn asked(&self) -> Option<Topology> {
        let named = self.access.tls.is_some();
        let before = self.topology();
        let known: Vec<_> = before.members().cloned().collect();
        let mut views = views_of(&known, named).await;
        // A server of another cluster may answer at an address that means another one there.
        views.retain(|view| view.own_id().is_none_or(|id| before.has_id(id)));
        if views.is_empty() {
            views = views_of(&self.seeds, named).await;
        }
        (!views.is_empty()).then(|| Topology::of(&views, |address| self.member(address)))
    }

    fn topology_of(&self, watched: &Watched) -> Topology {
        let replicas = watched.replicas.iter().map(|address| self.member(address));
        Topology::of_one(self.member(&watched.master), replicas.collect())
    }

    fn set_topology(&self, topology: Topology) {
        for master in topology.masters() {
            master.member.set_has_replicas(master.is_followed);
        }
        if let Ok(mut current) = self.topology.write() {
            *current = Arc::new(topology);
        }
    }
}

/// Returns the views that these servers have of the cluster. Once one has answered, the others have little time left.
async fn views_of(members: &[Arc<Member>], named: bool) -> Vec<View> {
    let mut ask = redis::pipe();
    ask.cmd("CLUSTER").arg("NODES").cmd("CLUSTER").arg("SLOTS");
    let asked = members.iter().map(async |member| {
        let (nodes, slots): (String, Value) = member.ask(&ask).await.ok()?;
        Some(View::read(&nodes, slots, member.address(), named))
    });
    let mut asked: FuturesUnordered<_> = asked.collect();
    let (mut until, mut views) = (Instant::now() + FIRST_VIEW, Vec::new());
    while let Ok(Some(view)) = timeout_at(until, asked.next()).await {
        if let Some(view) = view {
            until = until.min(Instant::now() + OTHER_VIEWS);
            views.push(view);
        }
    }
    views
}

/// Returns the address of a server, given its host and port.
fn at(address: &str) -> ConnectionAddr {
    let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
    ConnectionAddr::Tcp(host.to_owned(), port.parse().unwrap_or(6379))
}
