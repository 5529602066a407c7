//! UpGrade, the platform that runs the experiments: a client for versions 6.2 to 6.5.
//!
//! [`client`] has a method for each call that the bot makes; [`error`] distinguishes the ways in which
//! a call can fail; [`experiment`], [`status`], [`lists`], [`participants`] and [`context`] are the
//! data. [`known`] keeps the names of all experiments and an [`overview`] of them in memory. Nothing here deals with
//! cards or replies.
//!
//! The server checks little: it accepts every change of status and does not check weights. The rules
//! for changes that *should* be made are not here but with the actions, which ask a person.

pub mod answer;
mod audit;
mod calls;
pub mod client;
pub mod context;
pub mod error;
pub mod experiment;
pub mod known;
pub mod lists;
pub mod overview;
pub mod participants;
mod problems;
pub mod sign_in;
pub mod status;
pub mod version;

use std::time::Duration;

use url::Url;

use self::sign_in::SignIn;

/// The settings of a client for UpGrade.
#[derive(Clone, Debug)]
pub struct UpgradeConfig {
    /// The address with its prefix, such as `http://host/api`.
    pub base_url: Url,
    /// The method of signing in.
    pub sign_in: SignIn,
    /// The time limit of a call. The usual value is [`UpgradeConfig::TIMEOUT`].
    pub timeout: Duration,
}

impl UpgradeConfig {
    /// The default time limit of a call.
    pub const TIMEOUT: Duration = Duration::from_secs(10);
}
