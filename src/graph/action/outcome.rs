//! The outcome of an action.

use countersign_core::reply::Text;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Status;

/// The outcome of an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Outcome {
    /// The change happened; `result` is the system's answer or the state read back.
    Done {
        /// The data for the log and for later steps: names and ids, no echoes.
        result: Value,
        /// One sentence for people.
        summary: Text,
    },
    /// The change did not happen.
    Failed {
        /// The kind of error, which decides the way on.
        error: ErrorKind,
        /// One sentence for people, with a way on.
        summary: Text,
    },
    /// The change may have happened, and a person says that it did.
    Settled {
        /// The person who says so, and the state read back.
        summary: Text,
    },
    /// The change may have happened.
    Unknown {
        /// The request sent, the state read back, and the way on.
        summary: Text,
    },
}

impl Outcome {
    /// Returns the sentence for people.
    pub fn summary(&self) -> &Text {
        match self {
            Self::Done { summary, .. }
            | Self::Failed { summary, .. }
            | Self::Settled { summary }
            | Self::Unknown { summary } => summary,
        }
    }

    /// Returns the status that an action has after it.
    pub fn status(&self) -> Status {
        match self {
            Self::Done { .. } => Status::Done,
            Self::Failed { .. } => Status::Failed,
            Self::Settled { .. } => Status::Settled,
            Self::Unknown { .. } => Status::Unknown,
        }
    }
}

/// The kinds of error, by the remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The platform answered with an error of its own.
    Api,
    /// The platform does not accept our credentials.
    Auth,
    /// A parameter is not valid.
    Validation,
    /// A thing that was named does not exist.
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
