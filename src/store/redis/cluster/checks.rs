//! Checks that the servers of a cluster preserve acknowledged writes.
//!
//! Each master is watched like a single server, together with its replicas, since any of them may become the master.

use std::sync::Arc;

use countersign_core::{
    clock::{Clock as _, SystemClock},
    ids::Partition,
};
use countersign_graph::store::{Durability, Error};
use futures_util::future::join_all;

use super::{
    super::{durability::OpenError, keys},
    Cluster,
    fault::Fault,
    member::Member,
};

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
        let survey = self.survey().await;
        let unavailable = |address, source: Fault| OpenError::Unavailable { address, source: source.into() };
        for (member, settings) in &survey.masters {
            let address = member.address().to_owned();
            let settings = settings.clone().map_err(|fault| unavailable(address.clone(), fault))?;
            member.watch.note(member.server(), &settings.durability(&address));
        }
        let found = survey.durability(&self.address()).map_err(|fault| unavailable(self.address(), fault))?;
        if found.problems.is_empty() || self.allow_lossy { Ok(()) } else { Err(OpenError::Lossy(found)) }
    }

    /// Implements [`countersign_graph::store::Store::durability`].
    pub(in crate::redis) async fn durability(&self) -> Result<Durability, Error> {
        Ok(self.survey().await.durability(&self.address())?)
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
}
