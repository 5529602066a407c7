//! The link to the place where everything is stored.
//!
//! What the answer to a call promises is kept here: a script that stores something or hands out work, and a write, count
//! only if the server preserves acknowledged writes ([`super::watch`]). Start reading at [`super::server`], the
//! connections to it.

use std::time::Duration;

use countersign_core::{
    clock::{Clock as _, SystemClock},
    ids::Partition,
};
use countersign_graph::store::{Durability, Error};
use futures_util::TryFutureExt as _;
use redis::{
    Cmd, ErrorKind, FromRedisValue, IntoConnectionInfo as _, Pipeline, RedisError, RedisResult, ServerErrorKind, Value,
    aio::PubSub,
};
use tokio::time::timeout;

use super::{
    durability::{OpenError, Settings},
    json, keys,
    scripts::{Call, Effect},
    server::Server,
    watch::DurabilityWatch,
};

/// The time limit for a whole call.
const CALL_LIMIT: Duration = Duration::from_secs(5);

/// The link to the server.
#[derive(Debug)]
pub(super) struct Link {
    server: Server,
    watch: DurabilityWatch,
}

/// The answers of one partition, and the clock of the server that gave them.
#[derive(Debug)]
pub(super) struct Look {
    /// The partition.
    pub(super) partition: Partition,
    /// The server's clock, in microseconds.
    pub(super) server_now: i64,
    /// The answers, in the order of the questions.
    pub(super) answers: Vec<Value>,
}

impl Link {
    /// Connects to the server at `url`. Unless `allow_lossy` is true, it must be set up to keep acknowledged writes.
    pub(super) async fn open(url: &str, allow_lossy: bool) -> Result<Self, OpenError> {
        let server = url.into_connection_info().and_then(Server::new);
        let server = server.map_err(|error| OpenError::Url(error.category().to_owned()))?;
        let settings = bounded(Settings::of(&server).map_err(store_error)).await;
        let address = server.address();
        let settings = settings.map_err(|source| OpenError::Unavailable { address: address.clone(), source })?;
        let (watch, found) = (DurabilityWatch::new(allow_lossy), settings.durability(&address));
        watch.note(&server, &found);
        if !found.problems.is_empty() && !allow_lossy {
            return Err(OpenError::Lossy(found));
        }
        Ok(Self { server, watch })
    }

    /// Returns the host and port of the server.
    pub(super) fn address(&self) -> String {
        self.server.address()
    }

    /// Returns the number of connections opened so far. If it changes, the server at the other end
    /// may be a different one.
    pub(super) fn connections_made(&self) -> u64 {
        self.server.connections_made()
    }

    /// Opens a connection of its own, which receives the hints of the scripts.
    pub(super) fn subscriber(&self) -> impl Future<Output = RedisResult<PubSub>> + Send + use<> {
        self.server.subscriber()
    }

    /// Runs a script, and loads it first if the server does not have it.
    pub(super) async fn script<T: FromRedisValue>(&self, call: &Call<'_>) -> Result<T, Error> {
        let promises = call.effect() == Effect::Promise;
        if promises {
            self.check_before().await?;
        }
        let answer = bounded(self.server.script(call).map_err(store_error)).await?;
        if promises {
            self.check_after().await?;
        }
        Ok(answer)
    }

    /// Sends one command. It reads, or changes something that may be lost.
    pub(super) async fn command<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Error> {
        bounded(self.server.command(command).map_err(store_error)).await
    }

    /// Sends several commands in one round trip. They read, or change something that may be lost.
    pub(super) async fn pipeline<T: FromRedisValue>(&self, pipeline: &Pipeline) -> Result<T, Error> {
        bounded(self.server.pipeline(pipeline).map_err(store_error)).await
    }

    /// Sends commands that store something in one partition. Sending them twice does the same as sending them once.
    pub(super) async fn write(&self, pipeline: &Pipeline) -> Result<(), Error> {
        self.check_before().await?;
        self.pipeline::<()>(pipeline).await?;
        self.check_after().await
    }

    /// Asks each of these partitions the same questions.
    pub(super) async fn look(
        &self,
        partitions: impl IntoIterator<Item = Partition>,
        ask: impl Fn(&mut Pipeline, Partition),
    ) -> Result<Vec<Look>, Error> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("TIME");
        let mut asked = Vec::new();
        for partition in partitions {
            let before = pipeline.len();
            ask(&mut pipeline, partition);
            asked.push((partition, pipeline.len() - before));
        }
        let mut answers = self.pipeline::<Vec<Value>>(&pipeline).await?.into_iter();
        let server_now = json::server_time(answers.next())?;
        let asked = asked.into_iter();
        let look = |(partition, many)| Look { partition, server_now, answers: answers.by_ref().take(many).collect() };
        Ok(asked.map(look).collect())
    }

    /// Checks, before work is handed out, that the server is known to preserve acknowledged writes.
    pub(super) async fn check_before(&self) -> Result<(), Error> {
        self.watch.check_before(&self.server, || Box::pin(self.durability())).await
    }

    /// Checks, after work was handed out, that the server that answered preserves acknowledged writes.
    pub(super) async fn check_after(&self) -> Result<(), Error> {
        self.watch.check_after(&self.server, || Box::pin(self.durability())).await
    }

    /// Implements [`countersign_graph::store::Store::probe`].
    pub(super) async fn probe(&self) -> Result<(), Error> {
        self.watch.check_now(&self.server, self.durability()).await?;
        let mut set = redis::pipe();
        set.set(keys::probe(), SystemClock.now().millis());
        self.write(&set).await
    }

    /// Implements [`countersign_graph::store::Store::durability`].
    pub(super) async fn durability(&self) -> Result<Durability, Error> {
        let settings = bounded(Settings::of(&self.server).map_err(store_error)).await?;
        Ok(settings.durability(&self.server.address()))
    }
}

/// Waits for a call within the time limit of all calls, and counts it. Loading a script is not counted: it happens
/// once.
async fn bounded<T>(call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    metrics::counter!("countersign_store_round_trips_total").increment(1);
    match timeout(CALL_LIMIT, call).await {
        Ok(result) => result,
        Err(elapsed) => Err(Error::Unavailable(Box::new(elapsed))),
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
