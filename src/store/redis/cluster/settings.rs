//! The settings of all servers of a cluster.
//!
//! A replica that does not answer here is left out: whether the cluster counts on it is in the [`super::topology`].

use std::{sync::Arc, time::Duration};

use countersign_graph::store::Durability;
use futures_util::future::join_all;
use tokio::time::timeout;

use super::{super::durability::Settings, Cluster, fault::Fault, member::Member, topology::Topology};

/// The time limit for reading the settings of a replica, while a write waits for it.
const REPLICA_LIMIT: Duration = Duration::from_millis(500);

/// The settings of the servers of a cluster, as far as they answered.
pub(super) struct Survey {
    topology: Arc<Topology>,
    /// The name by which Sentinels watch the only master.
    watched: Option<String>,
    /// Each master, and its settings with those of its replicas.
    pub(super) masters: Vec<(Arc<Member>, Result<Settings, Fault>)>,
}

impl Survey {
    /// Returns what the settings mean for the store in the cluster at `address`.
    ///
    /// # Errors
    ///
    /// Fails if no master has answered.
    pub(super) fn durability(self, address: &str) -> Result<Durability, Fault> {
        let mut found = Err(Fault::Unknown { addresses: address.to_owned() });
        for (_, settings) in self.masters {
            found = match (found, settings) {
                (Ok(found), Ok(settings)) => Ok(Settings::both(found, settings)),
                (Ok(found), Err(_)) | (Err(_), Ok(found)) => Ok(found), // `probe` tells who does not answer
                (Err(_), Err(fault)) => Err(fault),
            };
        }
        let found = found?;
        let servers = servers_of(&self.topology);
        let name = match self.watched {
            Some(master) => format!("{}, {servers} watched by Sentinel as `{master}`", found.name),
            None => format!("{}, cluster of {servers}", found.name),
        };
        Ok(Settings { name, ..found }.durability(address))
    }
}

impl Cluster {
    /// Reads the settings of all masters, each with those of its replicas.
    pub(super) async fn survey(&self) -> Survey {
        self.refresh().await;
        let topology = self.topology();
        let masters = topology.masters().map(async |master| {
            let settings = self.settings_of(&master.member).await;
            (Arc::clone(&master.member), settings)
        });
        let masters = join_all(masters).await;
        Survey { topology, watched: self.sentinels.as_ref().map(|sentinels| sentinels.master.clone()), masters }
    }

    /// Reads the settings of a master and its replicas, if it is the one that the others mean.
    pub(super) async fn settings_of(&self, member: &Arc<Member>) -> Result<Settings, Fault> {
        self.identify(member).await?;
        let topology = self.topology();
        let of_member = topology.masters().filter(|master| Arc::ptr_eq(&master.member, member));
        let replicas = of_member.flat_map(|master| &master.replicas).map(async |replica| {
            let settings = timeout(REPLICA_LIMIT, replica.settings()).await.ok()?.ok()?;
            Some(settings.at(replica.address()))
        });
        let settings = member.settings().await?;
        let settings = if self.sentinels.is_some() { settings.of_master() } else { settings }.at(member.address());
        Ok(join_all(replicas).await.into_iter().flatten().fold(settings, Settings::both))
    }
}

impl Cluster {
    /// Checks that a server is the master that the Sentinels name, or the one that the cluster has at this address. A
    /// master that was away may have been replaced, and another network may have the same addresses.
    async fn identify(&self, member: &Arc<Member>) -> Result<(), Fault> {
        let address = member.address().to_owned();
        if let Some(sentinels) = &self.sentinels {
            let watched = match sentinels.ask().await {
                Err(_) if member.is_identified() => return Ok(()), // nobody has taken over on these connections
                watched => watched?,
            };
            self.set_topology(self.topology_of(&watched));
            if watched.master != address {
                return Err(Fault::Deposed { address, master: watched.master });
            }
            member.identify();
            return Ok(());
        }
        let mut ask = redis::pipe();
        ask.cmd("CLUSTER").arg("MYID");
        let (id,): (String,) = member.ask(&ask).await?;
        let is_known = |topology: &Topology| topology.id_of(member).is_none_or(|known| known == id);
        if !is_known(&self.topology()) {
            self.refresh().await; // it may be new there
            if !is_known(&self.topology()) {
                return Err(Fault::Foreign { address });
            }
        }
        Ok(())
    }
}

/// Returns the numbers of masters and replicas.
fn servers_of(topology: &Topology) -> String {
    let replicas: usize = topology.masters().map(|master| master.replicas.len()).sum();
    let many = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
    format!("{} and {}", many(topology.masters().count(), "master"), many(replicas, "replica"))
}
