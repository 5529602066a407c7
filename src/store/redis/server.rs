//! One server, and the connections to it.
//!
//! All calls share a connection, which is replaced after a failure. Every call has a time limit for the response, and
//! one for the whole call, including waiting and connecting. A connection that fails or does not respond in time is
//! dropped, and the next call opens a new one. The failed call is not retried here, since it may have taken effect; the
//! caller retries it with the same commit id.
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

use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, FromRedisValue, Pipeline,
    RedisError, RedisResult,
    aio::{MultiplexedConnection, PubSub},
};
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{net::TcpStream, sync::Mutex, time::timeout};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{keys::HINTS, scripts::Call, trouble};

/// The time limit for opening a connection.
pub(super) const CONNECT_LIMIT: Duration = Duration::from_secs(2);
/// The time limit for one response, with some allowance for a slow disk.
pub(super) const RESPONSE_LIMIT: Duration = Duration::from_secs(3);
/// The maximum number of commands that wait to be written to the connection.
const MAX_QUEUED_COMMANDS: usize = 1024;

/// A server.
pub(super) struct Server {
    client: Client,
    /// The certificates, if the connections are encrypted. The crate's own TLS trusts no other certificates than those of a
    /// file, and loads them for each connection.
    tls: Option<Arc<ClientConfig>>,
    shared: Mutex<Option<Arc<MultiplexedConnection>>>,
    /// The number of connections opened so far.
    made: AtomicU64,
}

impl Server {
    /// Creates a link to a server. It connects on the first call.
    ///
    /// # Errors
    ///
    /// Fails if the address is invalid. The error does not contain the password.
    pub(super) fn new(info: ConnectionInfo, tls: Option<Arc<ClientConfig>>) -> RedisResult<Self> {
        Ok(Self { client: Client::open(info)?, tls, shared: Mutex::new(None), made: AtomicU64::new(0) })
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

    /// Returns the name of the user.
    pub(super) fn user(&self) -> String {
        self.client.get_connection_info().redis_settings().username().unwrap_or("default").to_owned()
    }

    /// Runs a script, and loads it first if the server does not have it.
    pub(super) async fn script<T: FromRedisValue>(&self, call: &Call<'_>) -> RedisResult<T> {
        let connection = self.shared().await?;
        let result = call.invoke(&mut MultiplexedConnection::clone(&connection)).await;
        self.drop_if_failed(&connection, result).await
    }

    /// Sends the text of a script.
    pub(super) async fn load(&self, call: &Call<'_>) -> RedisResult<()> {
        let connection = self.shared().await?;
        let result = call.load(&mut MultiplexedConnection::clone(&connection)).await;
        self.drop_if_failed(&connection, result).await
    }

    /// Sends one command.
    pub(super) async fn command<T: FromRedisValue>(&self, command: &Cmd) -> RedisResult<T> {
        let connection = self.shared().await?;
        let result = command.query_async(&mut MultiplexedConnection::clone(&connection)).await;
        self.drop_if_failed(&connection, result).await
    }

    /// Sends several commands in one round trip.
    pub(super) async fn pipeline<T: FromRedisValue>(&self, pipeline: &Pipeline) -> RedisResult<T> {
        let connection = self.shared().await?;
        let result = pipeline.query_async(&mut MultiplexedConnection::clone(&connection)).await;
        self.drop_if_failed(&connection, result).await
    }

    /// Opens a connection of its own, which receives the hints of the scripts.
    pub(super) fn subscriber(&self) -> impl Future<Output = RedisResult<PubSub>> + Send + use<> {
        let (client, tls) = (self.client.clone(), self.tls.clone());
        async move {
            let subscribed = timeout(CONNECT_LIMIT, async {
                let mut connection = match tls {
                    None => client.get_async_pubsub().await?,
                    Some(tls) => {
                        let info = client.get_connection_info();
                        PubSub::new(info.redis_settings(), encrypted(info.addr(), tls).await?).await?
                    }
                };
                connection.subscribe(HINTS).await?;
                Ok(connection)
            });
            subscribed.await.unwrap_or_else(|_| Err(not_in_time()))
        }
    }

    /// Opens a connection that nobody else uses.
    pub(super) async fn connect(&self) -> RedisResult<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_LIMIT))
            .set_response_timeout(Some(RESPONSE_LIMIT))
            .set_pipeline_buffer_size(MAX_QUEUED_COMMANDS);
        let connection = match &self.tls {
            None => self.client.get_multiplexed_async_connection_with_config(&config).await?,
            Some(tls) => {
                let info = self.client.get_connection_info();
                let connected = timeout(CONNECT_LIMIT, async {
                    let stream = encrypted(info.addr(), Arc::clone(tls)).await?;
                    MultiplexedConnection::new_with_config(info.redis_settings(), stream, config).await
                });
                let (connection, driver) = connected.await.unwrap_or_else(|_| Err(trouble::no_handshake()))?;
                tokio::spawn(driver); // it ends with the connection
                connection
            }
        };
        self.made.fetch_add(1, Ordering::SeqCst);
        Ok(connection)
    }

    /// Returns the connection that all calls share, and opens it if there is none.
    async fn shared(&self) -> RedisResult<Arc<MultiplexedConnection>> {
        let mut shared = self.shared.lock().await;
        if let Some(connection) = &*shared {
            return Ok(connection.clone());
        }
        let connection = Arc::new(Box::pin(self.connect()).await?); // rare, so not in the futures of all calls
        *shared = Some(connection.clone());
        Ok(connection)
    }

    /// Drops the connection if the result shows that it has failed.
    async fn drop_if_failed<T>(&self, used: &Arc<MultiplexedConnection>, result: RedisResult<T>) -> RedisResult<T> {
        if result.as_ref().is_err_and(has_failed) {
            let mut shared = self.shared.lock().await;
            if shared.as_ref().is_some_and(|connection| Arc::ptr_eq(connection, used)) {
                *shared = None;
            }
        }
        result
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("address", &self.address()).finish_non_exhaustive()
    }
}

/// Opens an encrypted connection.
async fn encrypted(address: &ConnectionAddr, tls: Arc<ClientConfig>) -> RedisResult<TlsStream<TcpStream>> {
    let ConnectionAddr::Tcp(host, port) = address else {
        return Err((ErrorKind::InvalidClientConfig, "only TCP connections are encrypted").into());
    };
    let name = ServerName::try_from(host.clone())
        .map_err(|_| (ErrorKind::InvalidClientConfig, "a certificate cannot be for a host of this name"))?;
    let stream = TcpStream::connect((host.as_str(), *port)).await?;
    stream.set_nodelay(true)?;
    let encrypted = TlsConnector::from(tls).connect(name, stream).await;
    encrypted.map_err(|error| trouble::of_handshake(error, host))
}

fn not_in_time() -> RedisError {
    (ErrorKind::Io, "the server does not answer in time").into()
}

/// Returns true if an error means that the connection can no longer be used.
pub(super) fn has_failed(error: &RedisError) -> bool {
    error.is_io_error() || error.is_unrecoverable_error()
}
