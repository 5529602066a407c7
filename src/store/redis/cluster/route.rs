//! The way of one request to the server that has its slot, which may change on the way.
//!
//! A request is sent again only if it cannot have been executed, or if that would do no harm: after a reference to
//! another server, while the slot is being moved or the cluster changes, and if the server was not reached and another
//! one has taken over. Everything else is for the caller to repeat, with the same commit id.

use std::{sync::Arc, time::Duration};

use countersign_core::ids::Partition;
use redis::{ErrorKind, ServerErrorKind};
use tokio::time::{Instant, sleep};

use super::{
    Cluster,
    fault::{Fault, Stop},
    member::Member,
    unit::Refusal,
};

/// The time for which a request is sent again while its slot is being moved.
const PATIENCE: Duration = Duration::from_secs(1);
/// The pause before a request is sent again in that time.
const PAUSE: Duration = Duration::from_millis(20);
/// The maximum number of references that are followed without a pause.
const MAX_REFERENCES: usize = 5;

/// The way of a request.
#[derive(Debug)]
pub(super) struct Route<'a> {
    cluster: &'a Arc<Cluster>,
    partition: Partition,
    is_patient: bool,
    began: Instant,
    references: usize,
    /// The server that the last one referred to, and whether the slot is only about to get there.
    referred: Option<(Arc<Member>, bool)>,
}

impl<'a> Route<'a> {
    /// Begins the way of a request of a partition. If it is not patient, it is not sent again while its slot is being
    /// moved.
    pub(super) fn new(cluster: &'a Arc<Cluster>, partition: Partition, is_patient: bool) -> Self {
        Self { cluster, partition, is_patient, began: Instant::now(), references: 0, referred: None }
    }

    /// Returns the next server to send the request to, and whether it has to be asked for a slot that it does not have
    /// yet.
    pub(super) async fn next(&mut self) -> Result<(Arc<Member>, bool), Fault> {
        if let Some(referred) = self.referred.take() {
            return Ok(referred);
        }
        let mut master = self.cluster.master_of(self.partition);
        if master.is_none() {
            self.cluster.refresh().await;
            master = self.cluster.master_of(self.partition);
        }
        master.map(|master| (master, false)).ok_or(Fault::Unserved)
    }

    /// Decides what follows after a server has not carried out the request.
    ///
    /// # Errors
    ///
    /// The reason, if the request is not sent again.
    pub(super) async fn after(&mut self, member: &Arc<Member>, stop: Stop) -> Result<(), Fault> {
        let address = member.address().to_owned();
        match stop {
            Stop::Refused(Refusal::Moved(_) | Refusal::Ask(_)) if self.references == MAX_REFERENCES => {
                Err(Fault::Redirected { address })
            }
            Stop::Refused(Refusal::Moved(to)) => {
                self.cluster.refresh_soon();
                self.follow(member, &to, false);
                Ok(())
            }
            Stop::Refused(Refusal::Ask(to)) => {
                self.follow(member, &to, true);
                Ok(())
            }
            Stop::Refused(Refusal::NotNow(source)) => {
                if !self.is_patient || self.began.elapsed() >= PATIENCE {
                    self.cluster.refresh_soon();
                    return Err(Fault::Server { address, source });
                }
                sleep(PAUSE).await;
                if source.kind() != ErrorKind::Server(ServerErrorKind::TryAgain) {
                    self.cluster.refresh().await;
                }
                self.references = 0;
                Ok(())
            }
            Stop::Unreached(fault) => {
                self.cluster.refresh().await;
                let another = self.cluster.master_of(self.partition).filter(|master| !Arc::ptr_eq(master, member));
                another.map(drop).ok_or(fault)
            }
            Stop::Final(fault) => {
                self.cluster.refresh_soon();
                Err(fault)
            }
        }
    }

    /// Goes to the server at `to`, which has no host if that is the host of `from`.
    fn follow(&mut self, from: &Arc<Member>, to: &str, ask: bool) {
        self.references += 1;
        let host = from.address().rsplit_once(':').map_or("", |(host, _)| host);
        let to = if to.starts_with(':') { format!("{host}{to}") } else { to.to_owned() };
        self.referred = Some((self.cluster.member(&to), ask));
    }
}
