//! The reasons why a cluster does not do what it is asked for.

use std::sync::Arc;

use countersign_graph::store::Error;
use redis::RedisError;

use super::{
    super::{connection::is_corrupt, trouble},
    unit::Refusal,
};

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
    /// The server has never been reached at the address that the others tell.
    #[error(
        "the other servers announce one at {address}, and nothing answers there from here; set `cluster-announce-ip` on it \
         (with Sentinel, `replica-announce-ip`) to an address that this machine reaches"
    )]
    Unreachable {
        /// The host and port.
        address: String,
        /// The error.
        #[source]
        source: RedisError,
    },
    /// Another server answers at the address that the others tell.
    #[error(
        "the server that answers at {address} isn't the one that the cluster announces there; set `cluster-announce-ip` \
         on that one to an address at which this machine reaches it"
    )]
    Foreign {
        /// The host and port.
        address: String,
    },
    /// The Sentinels name another master, and this server is not trusted any more.
    #[error("Redis at {address} isn't the master any more: the Sentinels name {master}")]
    Deposed {
        /// The host and port of the former master.
        address: String,
        /// The host and port of the master.
        master: String,
    },
    /// Too few Sentinels have answered.
    #[error(
        "{answered} of {of} Sentinels tell which server is the master `{master}`, and more than half have to; {address} doesn't"
    )]
    Sentinels {
        /// The name of the master.
        master: String,
        /// The number of Sentinels that have answered.
        answered: usize,
        /// The number of Sentinels that were asked.
        of: usize,
        /// The host and port of one that has not.
        address: String,
        /// Its error.
        #[source]
        source: RedisError,
    },
    /// The server answered with an error, or the connection failed.
    #[error("Redis at {address}{}", remedy_of(source))]
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
    #[error("no master of the Redis cluster has the slot; `redis-cli --cluster check` tells which slots are missing")]
    Unserved,
    /// A slot is between two servers, and stays there.
    #[error(
        "slot {slot} has begun to move from {from} to {to}, and the move doesn't go on; \
         `redis-cli --cluster fix {from} --cluster-replace` ends it"
    )]
    Stuck {
        /// The slot.
        slot: u16,
        /// The address of the server that has it.
        from: String,
        /// The address of the server that gets it.
        to: String,
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

/// Returns what can be done about an error, to follow the name of the server.
fn remedy_of(source: &RedisError) -> String {
    trouble::remedy(source).map_or_else(String::new, |remedy| format!(": {remedy}"))
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
