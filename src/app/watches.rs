//! The task that looks at what people follow, with the people who may still read.

use std::sync::Arc;

use async_trait::async_trait;
use countersign_capabilities::Registry;
use countersign_config::Config;
use countersign_conversation::approvals::people::{People, Right};
use countersign_core::{clock::Clock, ids::UserId};
use countersign_graph::store::Store;
use countersign_watches::{
    observers,
    register::WatchRegister,
    settings::WatchSettings,
    watcher::{Readers, Watcher},
};

/// The number of the sweeper's rounds between two looks at the register of watches.
pub(super) const SWEEPS_A_TICK: u32 = 4;

/// Creates the task.
pub(super) fn watcher(
    config: &Config,
    registry: &Registry,
    store: &Arc<dyn Store>,
    clock: &Arc<dyn Clock>,
    people: People,
) -> Watcher {
    let book = WatchRegister::new(store.clone(), clock.clone());
    let settings: &WatchSettings = config.sections.get();
    Watcher::new(book, observers(&registry.capabilities), Arc::new(Askers(people)), settings.clone())
}

/// The people who may ask the bot for something.
#[derive(Debug)]
struct Askers(People);

#[async_trait]
impl Readers for Askers {
    async fn may_read(&self, person: &UserId) -> Option<bool> {
        match self.0.may(person, Right::Ask).await {
            Ok(()) => Some(true),
            Err(denial) if denial.is_unknown() => None,
            Err(_) => Some(false),
        }
    }
}
