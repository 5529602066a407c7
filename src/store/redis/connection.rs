//! A connection that is shared by all calls, and replaced after a failure.
//!
//! Every call has a time limit for the response, and one for the whole call, including waiting and
//! connecting. A connection that fails or does not respond in time is dropped, and the next call
//! opens a new one. The failed call is not retried here, since it may have taken effect; the caller
//! retries it with the same commit id.
//!
//! The crate's `ConnectionManager` is deliberately not used. It keeps a connection that has stopped
//! responding without being closed, and its delays before reconnecting hold up callers that need an
//! error at once.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use countersign_graph::store::Error;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, FromRedisValue, Pipeline, RedisError, RedisResult, ServerErrorKind,
    aio::{MultiplexedConnection, PubSub},
};
use tokio::{sync::Mutex, time::timeout};

use crate::redis::{keys::HINTS, scripts::Call};

/// The time limit for opening a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);
/// The time limit for one response, with some allowance for a slow disk.
const RESPONSE_LIMIT: Duration = Duration::from_secs(3);
/// The time limit for a whole call.
const CALL_LIMIT: Duration = Duration::from_secs(5);
/// The maximum number of commands that wait to be written to the connection.
const MAX_QUEUED_COMMANDS: usize = 1024;

/// The link to the server.
pub(super) struct Link {
    client: Client,
    current: Mutex<Option<Arc<MultiplexedConnection>>>,
    /// The number of connections opened so far.
    made: AtomicU64,
}

impl Link {
    /// Creates a link to the server at `url`. It connects on the first call.
    ///
    /// # Errors
    ///
    /// Fails if the URL is invalid. The error does not contain the password.
    pub(super) fn new(url: &str) -> RedisResult<Self> {
        Ok(Self { client: Client::open(url)?, current: Mutex::new(None), made: AtomicU64::new(0) })
    }

    /// Returns the number of connections opened so far. If it changes, the server at the other end
    /// may be a different one.
    pub(super) fn connections_made(&self) -> u64 {
        self.made.load(Ordering::SeqCst)
    }

    /// Returns the server's host and port.
    pub(super) fn address(&self) -> String {
        self.client.get_connection_info().addr().to_string()
    }

    /// Runs a script, and loads it first if the server does not have it.
    pub(super) async fn script<T: FromRedisValue>(&self, call: &Call<'_>) -> Result<T, Error> {
        self.bounded(async {
            let connection = self.connection().await?;
            let result = call.invoke(&mut MultiplexedConnection::clone(&connection)).await;
            self.drop_if_failed(&connection, result).await
        })
        .await
    }

    /// Sends one command.
    pub(super) async fn command<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Error> {
        self.bounded(async {
            let connection = self.connection().await?;
            let result = command.query_async(&mut MultiplexedConnection::clone(&connection)).await;
            self.drop_if_failed(&connection, result).await
        })
        .await
    }

    /// Sends several commands in one round trip.
    pub(super) async fn pipeline<T: FromRedisValue>(&self, pipeline: &Pipeline) -> Result<T, Error> {
        self.bounded(async {
            let connection = self.connection().await?;
            let result = pipeline.query_async(&mut MultiplexedConnection::clone(&connection)).await;
            self.drop_if_failed(&connection, result).await
        })
        .await
    }

    /// Opens a connection of its own, which receives the hints of the scripts.
    pub(super) fn subscriber(&self) -> impl Future<Output = RedisResult<PubSub>> + Send + use<> {
        let client = self.client.clone();
        async move {
            let subscribed = timeout(CONNECT_LIMIT, async {
                let mut connection = client.get_async_pubsub().await?;
                connection.subscribe(HINTS).await?;
                Ok(connection)
            });
            subscribed.await.unwrap_or_else(|_| Err((ErrorKind::Io, "the server does not answer in time").into()))
        }
    }

    /// Waits for a call within its time limit, and counts it. Loading a script is not counted: it happens once.
    async fn bounded<T>(&self, call: impl Future<Output = RedisResult<T>>) -> Result<T, Error> {
        metrics::counter!("countersign_store_round_trips_total").increment(1);
        match timeout(CALL_LIMIT, call).await {
            Ok(result) => result.map_err(store_error),
            Err(elapsed) => Err(Error::Unavailable(Box::new(elapsed))),
        }
    }

    async fn connection(&self) -> RedisResult<Arc<MultiplexedConnection>> {
        let mut current = self.current.lock().await;
        if let Some(connection) = &*current {
            return Ok(connection.clone());
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_LIMIT))
            .set_response_timeout(Some(RESPONSE_LIMIT))
            .set_pipeline_buffer_size(MAX_QUEUED_COMMANDS);
        let connection = Arc::new(self.client.get_multiplexed_async_connection_with_config(&config).await?);
        self.made.fetch_add(1, Ordering::SeqCst);
        *current = Some(connection.clone());
        Ok(connection)
    }

    /// Drops the connection if the result shows that it has failed.
    async fn drop_if_failed<T>(&self, used: &Arc<MultiplexedConnection>, result: RedisResult<T>) -> RedisResult<T> {
        if let Err(error) = &result
            && (error.is_io_error() || error.is_unrecoverable_error())
        {
            let mut current = self.current.lock().await;
            if current.as_ref().is_some_and(|connection| Arc::ptr_eq(connection, used)) {
                *current = None;
            }
        }
        result
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("address", &self.address()).finish_non_exhaustive()
    }
}

/// Converts an error, which may be temporary unless the data is corrupt.
fn store_error(error: RedisError) -> Error {
    if is_corrupt(&error) { Error::Corrupt { what: error.to_string() } } else { Error::Unavailable(Box::new(error)) }
}

/// Returns true for a script error or an unexpected type, which mean that the data is corrupt. What a server refuses to
/// do at the moment, such as `NOREPLICAS` or `OOM`, has a code of its own, also within a script.
fn is_corrupt(error: &RedisError) -> bool {
    let in_script = error.detail().is_some_and(|detail| detail.contains("user_script"));
    let is_plain = error.kind() == ErrorKind::Server(ServerErrorKind::ResponseError);
    in_script && is_plain || error.code() == Some("WRONGTYPE") || error.kind() == ErrorKind::UnexpectedReturnType
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_refuses_is_not_corrupt() {
        let corrupt = |line: &str| {
            let answer = redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
            is_corrupt(&answer.extract_error().unwrap_err())
        };
        let place = "script: a0c67e550fe1e52c89d75aedca42c38a09da9783, on @user_script:41.";
        assert!(corrupt(&format!("ERR user_script:41: attempt to index a nil value {place}")));
        assert!(corrupt(&format!("WRONGTYPE Operation against a key holding the wrong kind of value {place}")));
        assert!(!corrupt(&format!("NOREPLICAS Not enough good replicas to write. {place}")));
        assert!(!corrupt(&format!("OOM command not allowed when used memory > 'maxmemory'. {place}")));
        assert!(!corrupt("ERR unknown command"));
    }
}
