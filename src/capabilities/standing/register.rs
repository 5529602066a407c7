//! The standing approvals, in one register of the store that is changed by compare-and-set.
//!
//! Every change reads the whole register and writes it again ([`TypedRegister::change`]). This is cheap because standing
//! approvals are few, and it ensures that two processes never use the same part of an amount.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use countersign_capabilities::Allowances;
use countersign_core::{
    clock::{Clock, Timestamp},
    ids::UserId,
};
use countersign_graph::{
    action::ActionRecord,
    standing::{Entitled, Spent, StandingApprovals},
    store::{Error, Register, Store, TypedRegister},
};

use super::{
    grant::{Grant, GrantStatus, Revoked},
    replies,
};

/// The key of the register.
pub const KEY: &str = "standing approvals";

/// The maximum number of standing approvals in the register. The oldest one that has ended is removed first.
const MAX_GRANTS: usize = 200;

/// All standing approvals, in the store.
pub struct GrantRegister {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    entitled: Arc<dyn Entitled>,
    allowances: Allowances,
}

impl fmt::Debug for GrantRegister {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GrantRegister")
    }
}

/// The reason why the register could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum GrantRegisterError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] Error),
    /// The register is full of standing approvals that can be used.
    #[error("there are {MAX_GRANTS} standing approvals that can be used")]
    Full,
    /// No standing approval has this name.
    #[error("there is no standing approval of this name")]
    Unknown,
}

impl GrantRegister {
    /// Opens the register in this store. A granter of a standing approval counts only if `entitled` says that they may
    /// approve the changes it covers.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        entitled: Arc<dyn Entitled>,
        allowances: Allowances,
    ) -> Self {
        Self { store, clock, entitled, allowances }
    }

    /// Returns the allowances that can be granted.
    pub fn allowances(&self) -> &Allowances {
        &self.allowances
    }

    /// Returns the current time, for replies that show standing approvals.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns all standing approvals, oldest first.
    ///
    /// # Errors
    ///
    /// Fails if the store isn't answering, or its content cannot be read.
    pub async fn all(&self) -> Result<Vec<Grant>, Error> {
        Ok(self.typed().load().await?.1)
    }

    /// Adds a standing approval. Adding the same one again changes nothing.
    ///
    /// # Errors
    ///
    /// [`GrantRegisterError`].
    pub async fn add(&self, grant: &Grant) -> Result<(), GrantRegisterError> {
        let now = self.clock.now();
        let register = self.typed();
        let added = register.change(|grants| {
            if grants.iter().any(|other| other.bounds.id == grant.bounds.id) {
                return Ok(());
            }
            if grants.len() >= MAX_GRANTS {
                let over = grants.iter().position(|other| other.status(now) != GrantStatus::Open);
                grants.remove(over.ok_or(GrantRegisterError::Full)?);
            }
            grants.push(grant.clone());
            Ok::<_, GrantRegisterError>(())
        });
        added.await?
    }

    /// Ends a standing approval and returns its new state. Ending it again changes nothing.
    ///
    /// # Errors
    ///
    /// [`GrantRegisterError::Unknown`], or an error of the store.
    pub async fn revoke(&self, id: &str, by: &UserId) -> Result<Grant, GrantRegisterError> {
        let now = self.clock.now();
        let register = self.typed();
        let revoked = register.change(|grants| {
            let grant = grants.iter_mut().find(|grant| grant.bounds.id == id).ok_or(GrantRegisterError::Unknown)?;
            grant.revoked.get_or_insert_with(|| Revoked { by: by.clone(), at: now });
            Ok::<_, GrantRegisterError>(grant.clone())
        });
        revoked.await?
    }

    fn typed(&self) -> TypedRegister<Vec<Grant>> {
        TypedRegister::new(self.store.clone(), KEY)
    }
}

#[async_trait]
impl StandingApprovals for GrantRegister {
    async fn spend(&self, record: &ActionRecord) -> Spent {
        let spent = async { self.try_to_spend(record, self.all().await?).await };
        or_nothing(record, spent.await)
    }

    fn register(&self) -> Option<&'static str> {
        Some(KEY)
    }

    async fn spend_from(&self, register: Register, record: &ActionRecord) -> Spent {
        let spent = async { self.try_to_spend(record, self.typed().read(register)?.1).await };
        or_nothing(record, spent.await)
    }
}

/// Returns the result, or if it is an error, lets a person decide, as if there were no standing approval.
fn or_nothing(record: &ActionRecord, spent: Result<Spent, Error>) -> Spent {
    spent.unwrap_or_else(|error| {
        let error = countersign_core::cause::chain(&error);
        tracing::warn!(action.name = %record.name, error, "Cannot use standing approvals");
        Spent::Nothing { why: None }
    })
}

impl GrantRegister {
    /// Spends from these standing approvals, or from those that there are by then.
    async fn try_to_spend(&self, record: &ActionRecord, grants: Vec<Grant>) -> Result<Spent, Error> {
        let now = self.clock.now();
        let allowances = &self.allowances;
        let mut granters = Vec::new();
        for grant in grants.iter().filter(|grant| grant.is_about(allowances, record)) {
            granters.extend(grant.granted_by.iter().cloned());
        }
        if granters.is_empty() {
            return Ok(Spent::Nothing { why: None });
        }
        granters.sort();
        granters.dedup();
        // This is determined before the register is changed: a person who grants one in between does not count yet.
        let entitled = self.entitled.who_may_approve(record, &granters).await;
        let register = self.typed();
        let spent = register.change(|grants| {
            let again = |grant: &&Grant| {
                grant.has_spent(allowances, record) && grant.reason_not_covered(record, &entitled).is_none()
            };
            if let Some(grant) = grants.iter().find(again) {
                return Spent::Under(grant.under(allowances));
            }
            let mut why = None;
            for grant in grants {
                match grant.coverage(allowances, record, &entitled, now) {
                    Some(Ok(amount)) => {
                        grant.spend(amount, record, now);
                        return Spent::Under(grant.under(allowances));
                    }
                    Some(Err(reason)) => {
                        why = why.or_else(|| Some(replies::not_covered(allowances, grant, record, reason)))
                    }
                    None => {}
                }
            }
            Spent::Nothing { why }
        });
        spent.await
    }
}
