//! The outcome of an action.

use countersign_core::reply::Text;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ActionRecord, Status};

/// The field of a result that is true if the action itself has set everything back, so that nothing is left to undo.
pub const IS_BACK: &str = "is_back";

/// The outcome of an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Outcome {
    /// The change happened; `result` is the system's answer or the state read back.
    Done {
        /// The data for the log and for later steps: names and ids, but no repetition of the input.
        result: Value,
        /// One sentence for people.
        summary: Text,
    },
    /// The change did not happen.
    Failed {
        /// The kind of error, which determines what people can do next.
        error: ErrorKind,
        /// One sentence for people, with what they can do next.
        summary: Text,
    },
    /// The change may have happened, and a person says that it did.
    Settled {
        /// The person who says so, and the state read back.
        summary: Text,
    },
    /// The change may have happened.
    Unknown {
        /// The request sent, the state read back, and what people can do next.
        summary: Text,
    },
}

impl Outcome {
    /// Returns the outcome of a change that happened, with the sentence on its card.
    pub fn done(record: &ActionRecord, result: Value) -> Self {
        Self::Done { result, summary: Text::from(record.card.done.as_str()) }
    }

    /// Returns the sentence for people.
    pub fn summary(&self) -> &Text {
        match self {
            Self::Done { summary, .. }
            | Self::Failed { summary, .. }
            | Self::Settled { summary }
            | Self::Unknown { summary } => summary,
        }
    }

    /// Returns the status of an action with this outcome.
    pub fn status(&self) -> Status {
        match self {
            Self::Done { .. } => Status::Done,
            Self::Failed { .. } => Status::Failed,
            Self::Settled { .. } => Status::Settled,
            Self::Unknown { .. } => Status::Unknown,
        }
    }
}

/// The kinds of error, which differ in their remedy.
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
    /// The state is already the one that the change would make, so nothing was sent.
    Already,
    /// None of these.
    Unknown,
}
