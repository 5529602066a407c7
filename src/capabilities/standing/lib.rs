//! Standing approvals: a bounded number of changes of one kind that need not wait for a person, until a certain moment.
//!
//! A standing approval is asked for in words and granted by a card of its own, [`allow`]; [`revoke`] ends it, and
//! [`list::ListStandingApprovals`] shows which there are. [`grant`] is what one is and what it covers, [`book`] where all of
//! them are kept. The platform knows nothing of them: their effect is in our own store.
//!
//! *Architecture Invariant:* nothing that cannot be undone is covered but tests with simulated users, whose card says what
//! stays behind; nothing outside an envelope; and nothing that needs more people than granted it.

pub mod allow;
pub mod book;
pub mod grant;
pub mod list;
mod phrases;
pub mod replies;
pub mod revoke;

use std::sync::Arc;

use countersign_core::clock::Clock;
use countersign_graph::action::ActionKind;
use countersign_understanding::phrases::Phrases;

use self::book::Book;
use countersign_capabilities::{Capability, Family, Tool};

/// The names of the changes, for settings.
pub const ACTIONS: [&str; 2] = [allow::NAME, revoke::NAME];

/// What can be done with standing approvals.
pub struct StandingApprovals {
    book: Arc<Book>,
    others: Vec<Arc<dyn Capability>>,
    clock: Arc<dyn Clock>,
}

impl StandingApprovals {
    /// Those of this book, about what these capabilities do.
    pub fn new(book: Arc<Book>, others: Vec<Arc<dyn Capability>>, clock: Arc<dyn Clock>) -> Self {
        Self { book, others, clock }
    }
}

impl Capability for StandingApprovals {
    fn name(&self) -> &'static str {
        "standing approvals"
    }

    fn purpose(&self) -> &'static str {
        "Standing approvals: a bounded number of changes of one kind that need no card each."
    }

    fn phrases(&self) -> Option<&'static dyn Phrases> {
        Some(&phrases::OfStandingApprovals)
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![Arc::new(list::ListStandingApprovals(self.book.clone()))]
    }

    fn actions(&self) -> Vec<Arc<dyn ActionKind>> {
        let allow = allow::AllowStanding::new(self.book.clone(), self.others.clone(), self.clock.clone());
        vec![Arc::new(allow), Arc::new(revoke::RevokeStanding(self.book.clone()))]
    }

    fn families(&self) -> Vec<Family> {
        let family =
            Family::new("standing_approvals", "standing approvals: allow changes in advance, end that, list them");
        vec![family.tools(["list_standing_approvals"]).actions(ACTIONS)]
    }
}
