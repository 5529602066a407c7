//! The reasons why a cluster does not do what it is asked for.

use std::sync::Arc;

use countersign_graph::store::Error;
use redis::RedisError;

use super::{super::connection::is_corrupt, unit::Refusal};

/// The reason why a call failed.
#[derive(Clone, Debug, thiserror::Error)]
pub(in crate::redis) enum Fault {
    /// The server is away.
    #[error("Redis at {address} isn't answering")]
    Away {
        /// The host and port.
        address: String,
        /// The error after which it counts as away.
        #[source]
        source: RedisError,
    },
    /// The server answered with an error, or the connection failed.
    #[error("Redis at {address}")]
    Server {
        /// The host and port.
        address: String,
        /// The error.
        #[source]
        source: RedisError,
    },
    /// The server is not known to preserve acknowledged writes.
    #[error("{0}")]
    Unsafe(#[source] Arc<Error>),
    /// No replica has confirmed a write.
    #[error("Redis at {address} has stored it, but no replica has confirmed it, so it may be lost")]
    Unconfirmed {
        /// The host and port of the master.
        address: String,
    },
    /// No server is known for a partition.
    #[error("no server of the Redis cluster has the slot of partition {partition}")]
    Unserved {
        /// The number of the partition.
        partition: u8,
    },
    /// No server of the cluster has answered.
    #[error("no server of the Redis cluster at {addresses} tells where the others are")]
    Unknown {
        /// The hosts and ports that were asked.
        addresses: String,
    },
    /// The servers refer to each other.
    #[error("Redis at {address} refers to another server, and that one to the next")]
    Redirected {
        /// The host and port of the last one.
        address: String,
    },
}

/// The reason why a request was not carried out by a server.
#[derive(Debug)]
pub(super) enum Stop {
    /// The server refused it, and has executed nothing.
    Refused(Refusal),
    /// It did not reach the server, or can be sent again without harm. Another server may have the slot by now.
    Unreached(Fault),
    /// It may have been executed.
    Final(Fault),
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Server { address, source } if is_corrupt(&source) => {
                Self::Corrupt { what: format!("Redis at {address}: {source}") }
            }
            fault => Self::Unavailable(Box::new(fault)),
        }
    }
}
