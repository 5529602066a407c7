//! How an action ended.

use countersign_core::reply::Text;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Status;

/// How an action ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Outcome {
    /// It happened; `result` is what the system answered or what was read back.
    Done {
        /// For the log and for later steps: names and ids, no echoes.
        result: Value,
        /// One sentence for people.
        summary: Text,
    },
    /// It did not happen.
    Failed {
        /// What to do about it.
        error: ErrorKind,
        /// One sentence for people, saying what to do.
        summary: Text,
    },
    /// It may have happened, and a person says that it did.
    Settled {
        /// Who says so, and what was read back.
        summary: Text,
    },
    /// It may have happened.
    Unknown {
        /// What was sent, what was read back, what to do.
        summary: Text,
    },
}

impl Outcome {
    /// The sentence for people.
    pub fn summary(&self) -> &Text {
        match self {
            Self::Done { summary, .. }
            | Self::Failed { summary, .. }
            | Self::Settled { summary }
            | Self::Unknown { summary } => summary,
        }
    }

    /// The status an action has after it.
    pub fn status(&self) -> Status {
        match self {
            Self::Done { .. } => Status::Done,
            Self::Failed { .. } => Status::Failed,
            Self::Settled { .. } => Status::Settled,
            Self::Unknown { .. } => Status::Unknown,
        }
    }
}

/// What kind of thing went wrong, by what can be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The platform answered with an error of its own.
    Api,
    /// The platform does not accept our credentials.
    Auth,
    /// A parameter is not valid.
    Validation,
    /// What was named does not exist.
    NotFound,
    /// The platform cannot be reached.
    Network,
    /// The request cannot be understood or served.
    UserInput,
    /// The action could not be carried out.
    Execution,
    /// None of these.
    Unknown,
}
