//! UpGrade, the platform that runs the experiments: a client for versions 6.2 to 6.5.
//!
//! [`client`] has a method for each call the bot makes; [`error`] says what became of a call; [`experiment`],
//! [`status`], [`lists`], [`participants`] and [`context`] are what it reads. It knows nothing of people, cards or sentences.
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

/// Where UpGrade is and how to ask.
#[derive(Clone, Debug)]
pub struct UpgradeConfig {
    /// The address with its prefix, such as `http://host/api`.
    pub base_url: Url,
    /// How to prove who asks.
    pub sign_in: SignIn,
    /// The longest any call may take; [`UpgradeConfig::TIMEOUT`] is a good value.
    pub timeout: Duration,
}

impl UpgradeConfig {
    /// How long a call may take if nobody says otherwise.
    pub const TIMEOUT: Duration = Duration::from_secs(10);
}
