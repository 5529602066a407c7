//! Checks that the servers of a cluster preserve acknowledged writes.
//!
//! Each master is watched like a single server, together with its replicas, since any of them may become the master.

use std::{collections::BTreeMap, sync::Arc};

use countersign_core::{
    cause,
    clock::{Clock as _, SystemClock},
    ids::Partition,
};
use countersign_graph::store::{Durability, Error, Unwritable};
use futures_util::future::join_all;
use redis::ServerErrorKind;

use super::{
    super::{
        durability::{OpenError, Trust},
        keys,
        rights::{self, Kind},
    },
    Cluster,
    fault::Fault,
    member::Member,
    topology::{SlotMove, Topology},
};

impl Cluster {
    /// Checks, before a write, that its master is known to preserve acknowledged writes.
    pub(super) async fn check_before(&self, member: &Arc<Member>) -> Result<(), Fault> {
        let checked = member.watch.check_before(member.server(), || Box::pin(self.durability_of(member))).await;
        checked.map_err(|error| Fault::Unsafe(Arc::new(error)))
    }

    /// Checks that the master of a partition is known to preserve acknowledged writes.
    pub(in crate::redis) async fn check_partition(&self, partition: Partition) -> Result<(), Fault> {
        let member = self.master_of(partition).ok_or(Fault::Unserved)?;
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
        let unavailable = |address, source: Fault| OpenError::Unavailable { address, source: source.into() };
        if let Some(sentinels) = &self.sentinels {
            sentinels.ask().await.map_err(|fault| unavailable(sentinels.addresses(), fault))?;
        }
        let survey = self.survey().await;
        for (member, settings) in &survey.masters {
            let address = member.address().to_owned();
            let settings = settings.clone().map_err(|fault| unavailable(address.clone(), fault))?;
            member.watch.note(member.server(), &settings.durability(&address));
        }
        let kind = if self.sentinels.is_some() { Kind::Replicated } else { Kind::Clustered };
        for member in self.topology().members() {
            // A replica that does not answer is no part of this yet.
            if let Ok(Some(missing)) = rights::missing(member.server(), kind).await {
                return Err(OpenError::Rights { address: member.address().to_owned(), missing });
            }
        }
        if self.topology().unserved().next().is_some() {
            return Err(unavailable(self.address(), Fault::Unserved));
        }
        let found = survey.durability(&self.address()).map_err(|fault| unavailable(self.address(), fault))?;
        if found.problems.is_empty() || self.access.trust == Trust::Lossy {
            Ok(())
        } else {
            Err(OpenError::Lossy(found))
        }
    }

    /// Implements [`countersign_graph::store::Store::durability`].
    pub(in crate::redis) async fn durability(&self) -> Result<Durability, Error> {
        Ok(self.survey().await.durability(&self.address())?)
    }

    /// Implements [`countersign_graph::store::Store::probe`]. One master that takes a write and keeps it is enough: a
    /// process that is taken out of use for the sake of another one would serve nothing at all.
    pub(in crate::redis) async fn probe(self: &Arc<Self>) -> Result<Vec<Unwritable>, Error> {
        self.refresh().await;
        let topology = self.topology();
        let masters = topology.masters().map(async |master| {
            let (moving, settled): (Vec<_>, Vec<_>) =
                topology.partitions_of(&master.member).partition(|partition| topology.moves().contains_key(partition));
            let fault = match settled.first() {
                Some(partition) => self.probe_partition(*partition).await.err(),
                None => None, // each is looked at below
            };
            let unwritable = join_all(moving.iter().map(async |partition| {
                let fault = self.probe_partition(*partition).await.err()?;
                Some((vec![*partition], stuck(&topology, *partition, fault)))
            }));
            fault.map(|fault| (settled, fault)).into_iter().chain(unwritable.await.into_iter().flatten()).collect()
        });
        let faults: Vec<Vec<(Vec<Partition>, Fault)>> = join_all(masters).await;
        let mut faults: Vec<_> = faults.into_iter().flatten().collect();
        faults.extend(topology.unserved().map(|partition| (vec![partition], Fault::Unserved)));
        let unwritable: usize = faults.iter().map(|(partitions, _)| partitions.len()).sum();
        match faults.pop() {
            Some((_, fault)) if unwritable == Partition::all().count() => Err(fault.into()),
            last => Ok(unwritable_of(faults.into_iter().chain(last))),
        }
    }

    /// Writes to a partition as a script would.
    async fn probe_partition(self: &Arc<Self>, partition: Partition) -> Result<(), Fault> {
        if let Some(member) = self.master_of(partition) {
            let checked = member.watch.check_now(member.server(), self.durability_of(&member)).await;
            checked.map_err(|error| Fault::Unsafe(Arc::new(error)))?;
        }
        let mut write = redis::pipe();
        write.set(keys::probe(partition), SystemClock.now().millis()).exists(keys::absent(partition));
        self.write(&write).await
    }

    async fn durability_of(&self, member: &Arc<Member>) -> Result<Durability, Error> {
        let settings = self.settings_of(member).await?;
        Ok(settings.durability(member.address()))
    }
}

/// Returns why a partition cannot be written whose slot is being moved.
fn stuck(topology: &Topology, partition: Partition, fault: Fault) -> Fault {
    match (&fault, topology.moves().get(&partition).cloned()) {
        (Fault::Server { source, .. }, Some(SlotMove { slot, from, to }))
            if source.kind() == ServerErrorKind::TryAgain.into() =>
        {
            Fault::Stuck { slot, from, to }
        }
        _ => fault,
    }
}

/// Puts the partitions together that cannot be written for the same reason.
fn unwritable_of(faults: impl Iterator<Item = (Vec<Partition>, Fault)>) -> Vec<Unwritable> {
    let mut of_reasons: BTreeMap<String, Vec<Partition>> = BTreeMap::new();
    for (partitions, fault) in faults {
        of_reasons.entry(cause::chain(&fault)).or_default().extend(partitions);
    }
    let unwritable = of_reasons.into_iter().map(|(why, mut partitions)| {
        partitions.sort_unstable();
        Unwritable { partitions, why }
    });
    unwritable.collect()
}
