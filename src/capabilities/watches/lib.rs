//! Watches and digests: messages in a thread when something happens on a platform, or at regular times.
//!
//! A person says “tell me when Math Hints reaches 500 users” and is notified once, in that thread; or “post a digest here every
//! Monday 9am”. Nothing on a platform changes, so no approval is needed.
//!
//! | module | purpose |
//! | --- | --- |
//! | [`tools`] | begins, lists and stops watches and digests |
//! | [`watcher`] | the task that looks at things and posts digests |
//! | [`news`] | the messages that follow from a look |
//! | [`watch`] | a watch, a digest, and a thing that is looked at, as they are stored |
//! | [`register`] | the register with all of them |
//! | [`schedule`] | the times of a digest in a person's time zone |
//! | [`split`] | the sequential test of a split |
//! | [`replies`] | the sentences |
//!
//! This crate names no platform: the things are those that other capabilities let people follow
//! ([`countersign_capabilities::Observer`]). Start reading at [`watcher`].
//!
//! *Architecture Invariant:* a thing is read once for each look, however many watches it has, and every message is put into
//! the outbox under a key of its own before its watch is removed, so none is lost and none is sent twice.

pub mod news;
mod phrases;
pub mod register;
mod replies;
pub mod schedule;
pub mod settings;
pub mod split;
mod stopping;
#[cfg(test)]
mod testing;
mod tools;
pub mod watch;
pub mod watcher;

use std::{sync::Arc, time::Duration};

use countersign_capabilities::{Capability, CapabilityInfo, Family, Tool};
use countersign_graph::action::ActionKind;

use self::{register::WatchRegister, tools::Deps, watcher::Observers};

/// The capability of watches and digests.
#[derive(Debug)]
pub struct Watches(Deps);

impl Watches {
    /// Creates the capability for this register and the things of these capabilities, which are looked at so often.
    pub fn new(book: WatchRegister, observers: Observers, every: Duration) -> Self {
        Self(Deps { book, observers, every })
    }
}

/// Returns the capabilities whose things can be followed, by name.
pub fn observers(capabilities: &[Arc<dyn Capability>]) -> Observers {
    let with_name = |one: &Arc<dyn Capability>| one.observer().map(|observer| (one.name().to_owned(), observer));
    capabilities.iter().filter_map(with_name).collect()
}

impl Capability for Watches {
    fn info(&self) -> CapabilityInfo {
        CapabilityInfo {
            phrases: Some(&phrases::OfWatches),
            ..CapabilityInfo::new("watches", "Watches and digests: news when something happens, without asking again.")
        }
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        tools::all(&self.0)
    }

    fn actions(&self) -> Vec<Arc<dyn ActionKind>> {
        Vec::new()
    }

    fn families(&self) -> Vec<Family> {
        let family = Family::new(
            "watches",
            "tell a person later when something happens to a thing; regular digests; list and stop these",
        );
        vec![family.tools([tools::WATCH, tools::DIGEST, tools::LIST, tools::SHOW, tools::STOP])]
    }
}
