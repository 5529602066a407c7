//! Whether the servers of a cluster preserve acknowledged writes.
//!
//! Each master is watched like a single server, together with its replicas, since any of them may become the master. A
//! replica that does not answer here is left out: whether the cluster counts on it is in the [`super::topology`].

use std::{sync::Arc, time::Duration};

use countersign_core::{
    clock::{Clock as _, SystemClock},
    ids::{PARTITIONS, Partition},
};
use countersign_graph::store::{Durability, Error};
use futures_util::future::join_all;
use tokio::time::timeout;

use super::{
    super::{
        durability::{OpenError, Settings},
        keys,
    },
    Cluster,
    fault::Fault,
    member::Member,
    topology::Topology,
};

/// A master, and its settings with those of its replicas.
type Surveyed = (Arc<Member>, Result<Settings, Fault>);

/// The time limit for reading the settings of a replica, while a write waits for it.
const REPLICA_LIMIT: Duration = Duration::from_millis(500);

impl Cluster {
    /// Checks, before a write, that its master is known to preserve acknowledged writes.
    pub(super) async fn check_before(&self, member: &Arc<Member>) -> Result<(), Fault> {
        let checked = member.watch.check_before(member.server(), || Box::pin(self.durability_of(member))).await;
        checked.map_err(|error| Fault::Unsafe(Arc::new(error)))
    }

    /// Checks that the master of a partition is known to preserve acknowledged writes.
    pub(in crate::redis) async fn check_partition(&self, partition: Partition) -> Result<(), Fault> {
        let member = self.master_of(partition).ok_or(Fault::Unserved { partition: partition.number() })?;
        self.check_before(&member).await
    }

    /// Checks, after a write, that the master that answered preserves acknowledged writes.
    pub(super) async fn check_after(&self, member: &Arc<Member>) -> Result<(), Fault> {
        let checked = member.watch.check_after(member.server(), || Box::pin(self.durability_of(member))).await;
        checked.map_err(|error| Fault::Unsafe(Arc::new(error)))
    }

    /// Checks all masters, to begin with.
    ///
    /// # Errors
    ///
    /// [`OpenError::Unavailable`] names a master that does not answer. [`OpenError::Lossy`] lists what is unsafe.
    pub(in crate::redis) async fn check_at_first(&self) -> Result<(), OpenError> {
        let (topology, settings) = self.survey().await;
        for (member, settings) in &settings {
            let address = member.address().to_owned();
            match settings {
                Ok(found) => drop(member.watch.note(member.server(), &found.clone().durability(&address))),
                Err(fault) => return Err(OpenError::Unavailable { address, source: fault.clone().into() }),
            }
        }
        let found = self.summary(&topology, settings);
        let found = found.map_err(|fault| OpenError::Unavailable { address: self.address(), source: fault.into() })?;
        if found.problems.is_empty() || self.allow_lossy { Ok(()) } else { Err(OpenError::Lossy(found)) }
    }

    /// Implements [`countersign_graph::store::Store::durability`].
    pub(in crate::redis) async fn durability(&self) -> Result<Durability, Error> {
        let (topology, settings) = self.survey().await;
        Ok(self.summary(&topology, settings)?)
    }

    /// Reads the settings of all masters, each with those of its replicas.
    async fn survey(&self) -> (Arc<Topology>, Vec<Surveyed>) {
        self.refresh().await;
        let topology = self.topology();
        let masters = topology.masters().map(async |master| {
            let member = Arc::clone(&master.member);
            let settings = self.settings_of(&member).await;
            (member, settings)
        });
        let settings = join_all(masters).await;
        (topology, settings)
    }

    /// Puts together what the masters have answered. It fails if none has.
    fn summary(&self, topology: &Topology, settings: Vec<Surveyed>) -> Result<Durability, Fault> {
        let (mut name, mut problems, mut failed) = (None, Vec::new(), None);
        for (member, settings) in settings {
            match settings {
                Ok(settings) => {
                    name.get_or_insert(settings.name);
                    problems.extend(settings.problems);
                }
                Err(fault) => {
                    problems.push(format!("{} isn't answering: what is stored there waits", member.address()));
                    failed = Some(fault);
                }
            }
        }
        let unserved = topology.unserved().count();
        if unserved > 0 {
            problems.push(format!(
                "{unserved} of {PARTITIONS} partitions are on no server; `redis-cli --cluster check` lists the slots"
            ));
        }
        let Some(name) = name else {
            return Err(failed.unwrap_or_else(|| Fault::Unknown { addresses: self.address() }));
        };
        let masters = topology.masters().count();
        let replicas: usize = topology.masters().map(|master| master.replicas.len()).sum();
        let many = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
        let (masters, replicas) = (many(masters, "master"), many(replicas, "replica"));
        Ok(Durability { name: format!("{name}, cluster of {masters} and {replicas} ({})", self.address()), problems })
    }

    /// Implements [`countersign_graph::store::Store::probe`]. One master that answers is enough: a process that is taken
    /// out of use for the sake of another one would serve nothing at all. None of those that answer may lose a write.
    pub(in crate::redis) async fn probe(self: &Arc<Self>) -> Result<(), Error> {
        self.refresh().await;
        let topology = self.topology();
        let probes = join_all(topology.masters().map(async |master| {
            let member = &master.member;
            let partition = topology.partitions_of(member).next()?;
            let checked = member.watch.check_now(member.server(), self.durability_of(member)).await;
            if let Err(error) = checked {
                return Some(Err(Fault::Unsafe(Arc::new(error))));
            }
            let mut set = redis::pipe();
            set.set(keys::probe(partition), SystemClock.now().millis());
            Some(self.write(&set).await)
        }));
        let (mut answered, mut failed) = (false, None);
        for probe in probes.await.into_iter().flatten() {
            match probe {
                Ok(()) => answered = true,
                Err(fault) => failed = Some(fault),
            }
        }
        let is_unsafe = topology.masters().any(|master| !master.member.watch.is_safe());
        match failed {
            Some(fault) if is_unsafe || !answered => Err(fault.into()),
            _ if answered => Ok(()),
            _ => Err(Fault::Unknown { addresses: self.address() }.into()),
        }
    }

    async fn durability_of(&self, member: &Arc<Member>) -> Result<Durability, Error> {
        let settings = self.settings_of(member).await?;
        Ok(settings.durability(member.address()))
    }

    /// Reads the settings of a master and its replicas.
    async fn settings_of(&self, member: &Arc<Member>) -> Result<Settings, Fault> {
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
