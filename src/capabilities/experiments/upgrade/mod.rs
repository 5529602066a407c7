//! UpGrade, the platform that runs the experiments: a client for versions 6.2 to 6.5.
//!
//! [`client`] has a method for each call the bot makes; [`error`] distinguishes how a call can fail; [`experiment`],
//! [`status`], [`lists`], [`participants`] and [`context`] are the data. The module knows nothing of people, cards or
//! sentences.
//!
//! The server guards little: it accepts every change of status and does not check weights. Rules about what *should* be
//! done are therefore not here but with the actions that ask a person.

pub mod answer;
mod calls;
pub mod client;
pub mod context;
pub mod error;
pub mod experiment;
pub mod lists;
pub mod participants;
mod problems;
pub mod sign_in;
pub mod status;
pub mod version;

use std::time::Duration;

use url::Url;

use self::sign_in::SignIn;

/// The address of UpGrade and the way to call it.
#[derive(Clone, Debug)]
pub struct UpgradeConfig {
    /// The address with its prefix, such as `http://host/api`.
    pub base_url: Url,
    /// The way to sign in.
    pub sign_in: SignIn,
    /// The time limit of a call; [`UpgradeConfig::TIMEOUT`] is a good value.
    pub timeout: Duration,
}

impl UpgradeConfig {
    /// The default time limit of a call.
    pub const TIMEOUT: Duration = Duration::from_secs(10);
}
