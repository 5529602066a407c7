//! The dependencies of the mail graph.

use std::{sync::Arc, time::Duration};

use countersign_core::{
    clock::{Clock, Timestamp},
    ids::UserId,
};
use countersign_mail::MailAccount;
use countersign_model::Model;
use jiff::tz::TimeZone;

use super::{
    automatic::AutomaticAnswers,
    lookup::MailLookup,
    register::MailRegister,
    rules::{AutomaticSettings, RUN_LIMIT},
};

/// The dependencies that the nodes of the mail graph share.
#[derive(Debug)]
pub struct Deps {
    /// The mail account.
    pub account: Arc<dyn MailAccount>,
    /// The sources of context.
    pub lookup: Arc<dyn MailLookup>,
    /// The model that classifies; `None` without a language model.
    pub classifier: Option<Arc<dyn Model>>,
    /// The model that writes; `None` without a language model.
    pub writer: Option<Arc<dyn Model>>,
    /// The settings for automatic answers.
    pub settings: AutomaticSettings,
    /// The automatic answers that were sent.
    pub automatic: Arc<AutomaticAnswers>,
    /// The list of mails.
    pub book: MailRegister,
    /// The time zone in which times are offered.
    pub time_zone: TimeZone,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The time after which a request to the mail account can no longer arrive.
    pub in_flight: Duration,
    /// The bot, which asks for a decision when nobody else does.
    pub us: UserId,
}

impl Deps {
    /// Returns the time that a run has left; `None` if its time is over.
    pub(super) fn time_left(&self, began: Timestamp) -> Option<Duration> {
        RUN_LIMIT.checked_sub(self.clock.now().since(began)).filter(|left| !left.is_zero())
    }
}
