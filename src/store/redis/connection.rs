//! One connection, shared by all calls; made anew after a failure.
//!
//! Every call is bounded: by the answer's own limit, and by one limit over waiting, connecting and answering together.
//! A connection that failed or did not answer in time is thrown away, and the next call makes a new one. The failed
//! call is not repeated here: whether it happened is not known, and the caller repeats it with its commit id.
//!
//! The design we did not take: the crate's `ConnectionManager`. It keeps a connection that stopped answering without
//! being closed, and its waits before a reconnect hold up callers that need an error at once.

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
    AsyncConnectionConfig, Client, Cmd, ErrorKind, FromRedisValue, Pipeline, RedisError, RedisResult,
    aio::MultiplexedConnection,
};
use tokio::{sync::Mutex, time::timeout};

use crate::redis::scripts::Call;

/// The time limit for making a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);
/// The time limit for one answer; a disk that has to write everything down may be slow.
const ANSWER_LIMIT: Duration = Duration::from_secs(3);
/// The time limit for a whole call.
const CALL_LIMIT: Duration = Duration::from_secs(5);
/// The most commands that may wait to be written to the connection.
const WAITING_COMMANDS: usize = 1024;

/// The link to the server.
pub(super) struct Link {
    client: Client,
    current: Mutex<Option<Arc<MultiplexedConnection>>>,
    /// The number of connections made.
    made: AtomicU64,
}

impl Link {
    /// Creates a link to the server at `url`; connects with the first call.
    ///
    /// # Errors
    ///
    /// The fault of the URL, without its password.
    pub(super) fn new(url: &str) -> RedisResult<Self> {
        Ok(Self { client: Client::open(url)?, current: Mutex::new(None), made: AtomicU64::new(0) })
    }

    /// Returns the number of connections made so far: if it changes, another server may be at the other end.
    pub(super) fn connections_made(&self) -> u64 {
        self.made.load(Ordering::SeqCst)
    }

    /// Returns host and port.
    pub(super) fn address(&self) -> String {
        self.client.get_connection_info().addr().to_string()
    }

    /// Runs a script; loads it first if the server does not have it.
    pub(super) async fn script<T: FromRedisValue>(&self, call: &Call<'_>) -> Result<T, Error> {
        self.bounded(async {
            let connection = self.connection().await?;
            let answer = call.invoke(&mut MultiplexedConnection::clone(&connection)).await;
            self.judge(&connection, answer).await
        })
        .await
    }

    /// Sends one command.
    pub(super) async fn command<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Error> {
        self.bounded(async {
            let connection = self.connection().await?;
            let answer = command.query_async(&mut MultiplexedConnection::clone(&connection)).await;
            self.judge(&connection, answer).await
        })
        .await
    }

    /// Sends several commands in one round trip.
    pub(super) async fn pipeline<T: FromRedisValue>(&self, pipeline: &Pipeline) -> Result<T, Error> {
        self.bounded(async {
            let connection = self.connection().await?;
            let answer = pipeline.query_async(&mut MultiplexedConnection::clone(&connection)).await;
            self.judge(&connection, answer).await
        })
        .await
    }

    async fn bounded<T>(&self, call: impl Future<Output = RedisResult<T>>) -> Result<T, Error> {
        match timeout(CALL_LIMIT, call).await {
            Ok(answer) => answer.map_err(error_of),
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
            .set_response_timeout(Some(ANSWER_LIMIT))
            .set_pipeline_buffer_size(WAITING_COMMANDS);
        let connection = Arc::new(self.client.get_multiplexed_async_connection_with_config(&config).await?);
        self.made.fetch_add(1, Ordering::SeqCst);
        *current = Some(connection.clone());
        Ok(connection)
    }

    /// Throws the connection away if the answer shows that it has failed.
    async fn judge<T>(&self, used: &Arc<MultiplexedConnection>, answer: RedisResult<T>) -> RedisResult<T> {
        if let Err(error) = &answer
            && (error.is_io_error() || error.is_unrecoverable_error())
        {
            let mut current = self.current.lock().await;
            if current.as_ref().is_some_and(|connection| Arc::ptr_eq(connection, used)) {
                *current = None;
            }
        }
        answer
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("address", &self.address()).finish_non_exhaustive()
    }
}

/// Converts an error: data of another shape than ours will not be better next time; anything else may be.
fn error_of(error: RedisError) -> Error {
    let in_script = error.detail().is_some_and(|detail| detail.contains("user_script"));
    let wrong_type = error.code() == Some("WRONGTYPE") || error.kind() == ErrorKind::UnexpectedReturnType;
    if in_script || wrong_type {
        Error::Corrupt { what: error.to_string() }
    } else {
        Error::Unavailable(Box::new(error))
    }
}
