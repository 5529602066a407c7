//! The settings of all servers of a cluster.
//!
//! A replica that does not answer here is left out: whether the cluster counts on it is in the [`super::topology`].

use std::{sync::Arc, time::Duration};

use countersign_core::ids::PARTITIONS;
use countersign_graph::store::Durability;
use futures_util::future::join_all;
use tokio::time::timeout;

use super::{super::durability::Settings, Cluster, fault::Fault, member::Member, topology::Topology};

/// The time limit for reading the settings of a replica, while a write waits for it.
const REPLICA_LIMIT: Duration = Duration::from_millis(500);

/// The settings of the servers of a cluster, as far as they answered.
pub(super) struct Survey {
    topology: Arc<Topology>,
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
        let mut name = Err(Fault::Unknown { addresses: address.to_owned() });
        let mut problems = Vec::new();
        for (member, settings) in self.masters {
            match settings {
                Ok(settings) => {
                    name = name.or(Ok(settings.name));
                    problems.extend(settings.problems);
                }
                Err(fault) => {
                    problems.push(format!("{} isn't answering: what is stored there waits", member.address()));
                    name = name.or(Err(fault));
                }
            }
        }
        let unserved = self.topology.unserved().count();
        if unserved > 0 {
            problems.push(format!(
                "{unserved} of {PARTITIONS} partitions are on no server; `redis-cli --cluster check` lists the slots"
            ));
        }
        let (servers, name) = (servers_of(&self.topology), name?);
        Ok(Durability { name: format!("{name}, cluster of {servers} ({address})"), problems })
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
        Survey { topology, masters }
    }

    /// Reads the settings of a master and its replicas.
    pub(super) async fn settings_of(&self, member: &Arc<Member>) -> Result<Settings, Fault> {
        let topology = self.topology();
        let of_member = topology.masters().filter(|master| Arc::ptr_eq(&master.member, member));
        let replicas = of_member.flat_map(|master| &master.replicas).map(async |replica| {
            let settings = timeout(REPLICA_LIMIT, replica.settings()).await.ok()?.ok()?;
            Some(settings.at(replica.address()).problems)
        });
        let mut settings = member.settings().await?.at(member.address());
        settings.problems.extend(join_all(replicas).await.into_iter().flatten().flatten());
        Ok(settings)
    }
}

/// Returns the numbers of masters and replicas.
fn servers_of(topology: &Topology) -> String {
    let replicas: usize = topology.masters().map(|master| master.replicas.len()).sum();
    let many = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
    format!("{} and {}", many(topology.masters().count(), "master"), many(replicas, "replica"))
}
