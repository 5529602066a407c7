//! The link to the place where everything is stored: one server, or a cluster.
//!
//! A call names no server. What its answer promises is kept here: a script that stores something or hands out work, and
//! a write, count only if the server preserves acknowledged writes ([`super::watch`]). Start reading at
//! [`super::server`], the connections to one server; [`super::cluster`] is made of these.

use std::{sync::Arc, time::Duration};

use countersign_core::{
    clock::{Clock as _, SystemClock},
    ids::Partition,
};
use countersign_graph::store::{Durability, Error, Unwritable};
use futures_util::{TryFutureExt as _, future::BoxFuture};
use redis::{Cmd, ErrorKind, FromRedisValue, Pipeline, RedisError, RedisResult, ServerErrorKind, Value, aio::PubSub};
use tokio::time::timeout;

use super::{
    address::{Access, Address},
    cluster::Cluster,
    durability::{OpenError, Settings, Trust},
    json, keys,
    rights::{self, Kind},
    scripts::{Call, Effect},
    server::Server,
    trouble::Trouble,
    watch::DurabilityWatch,
};

/// The time limit for a whole call.
const CALL_LIMIT: Duration = Duration::from_secs(5);
/// The time limit for a call whose caller has other servers to turn to.
pub(super) const AT_ONCE_LIMIT: Duration = Duration::from_secs(1);

/// The link to the place where everything is stored.
#[derive(Debug)]
pub(super) enum Link {
    /// One server.
    Single(Box<Single>),
    /// Several servers that share the partitions.
    Cluster(Arc<Cluster>),
}

/// The only server, and the watch on its settings.
#[derive(Debug)]
pub(super) struct Single {
    server: Server,
    trust: Trust,
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
    /// Connects to the server at `text`, or to the cluster that it belongs to. Several addresses name servers of one
    /// cluster. Unless writes may be lost, the servers must be set up to keep acknowledged writes.
    pub(super) async fn open(text: &str, access: &Access) -> Result<Self, OpenError> {
        let wrong = |error: RedisError| OpenError::Url(error.category().to_owned());
        let at = Address::read(text)?;
        let access = at.access(access).map_err(OpenError::Certificates)?;
        let servers = at.servers;
        if let Some((master, credentials)) = at.watched {
            let cluster = Cluster::watched(servers, master, credentials, &access).await.map_err(wrong)?;
            Box::pin(cluster.check_at_first()).await?;
            return Ok(Self::Cluster(cluster));
        }
        let mut unavailable = None;
        for info in &servers {
            let server = Server::new(info.clone(), access.tls.clone()).map_err(wrong)?;
            let address = server.address();
            let settings = Settings::of(&server, access.trust).map_err(|error| {
                let is_encrypted = access.tls.is_some();
                unless_corrupt(error, |error| Trouble::of_first_call(error, is_encrypted))
            });
            match bounded(settings).await {
                Ok(settings) if settings.is_in_cluster => {
                    may_do_all(&server, Kind::Clustered).await?;
                    let cluster = Cluster::open(servers, &access).await.map_err(wrong)?;
                    Box::pin(cluster.check_at_first()).await?;
                    return Ok(Self::Cluster(cluster));
                }
                Ok(settings) if settings.watches.is_some() => {
                    return Err(OpenError::Sentinel { address, masters: settings.watches.unwrap_or_default() });
                }
                Ok(_) if servers.len() > 1 => return Err(OpenError::NotInCluster { address }),
                Ok(settings) => {
                    may_do_all(&server, Kind::Single).await?;
                    let (watch, found) =
                        (DurabilityWatch::new(access.trust), settings.of_master().durability(&address));
                    watch.note(&server, &found);
                    if !found.problems.is_empty() && access.trust != Trust::Lossy {
                        return Err(OpenError::Lossy(found));
                    }
                    return Ok(Self::Single(Box::new(Single { server, trust: access.trust, watch })));
                }
                Err(source) => unavailable = Some(OpenError::Unavailable { address, source }),
            }
        }
        Err(unavailable.unwrap_or_else(|| OpenError::Url("it names no server".to_owned())))
    }

    /// Returns the hosts and ports of the servers.
    pub(super) fn address(&self) -> String {
        match self {
            Self::Single(single) => single.server.address(),
            Self::Cluster(cluster) => cluster.address(),
        }
    }

    /// Returns true if some partitions may be served while others are not.
    pub(super) fn is_cluster(&self) -> bool {
        matches!(self, Self::Cluster(_))
    }

    /// Returns a number that changes with each connection for a partition. Another one may lead to another server.
    pub(super) fn connection_number(&self, partition: Partition) -> u64 {
        match self {
            Self::Single(single) => single.server.connections_made(),
            Self::Cluster(cluster) => cluster.connection_number(partition),
        }
    }

    /// Returns a number that changes if a subscription may be dead without having noticed.
    pub(super) fn subscription_number(&self) -> u64 {
        match self {
            Self::Single(single) => single.server.connections_made(),
            Self::Cluster(cluster) => cluster.losses(),
        }
    }

    /// Opens a connection of its own, which receives the hints of the scripts.
    pub(super) fn subscriber(&self) -> BoxFuture<'static, RedisResult<PubSub>> {
        match self {
            Self::Single(single) => Box::pin(single.server.subscriber()),
            Self::Cluster(cluster) => Box::pin(cluster.subscriber()),
        }
    }

    /// Returns true if all partitions are on one server, so that a script may access several.
    pub(super) fn is_one_server(&self) -> bool {
        matches!(self, Self::Single(_))
    }

    /// Runs a script, and loads it first if the server does not have it.
    pub(super) async fn script<T: FromRedisValue>(&self, call: &Call<'_>) -> Result<T, Error> {
        match self {
            Self::Single(single) => {
                let promises = call.effect() == Effect::Promise;
                if promises {
                    single.check_before().await?;
                }
                let answer = bounded(single.server.script(call).map_err(store_error)).await?;
                if promises {
                    single.check_after().await?;
                }
                Ok(answer)
            }
            Self::Cluster(cluster) => {
                let limit = if call.is_patient() { CALL_LIMIT } else { AT_ONCE_LIMIT };
                let answer = timeout(limit, cluster.script(call).map_err(Error::from));
                Box::pin(bounded(answer.unwrap_or_else(|elapsed| Err(Error::Unavailable(Box::new(elapsed)))))).await
            }
        }
    }

    /// Sends one command. It reads, or changes something that may be lost.
    pub(super) async fn command<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Error> {
        match self {
            Self::Single(single) => bounded(single.server.command(command).map_err(store_error)).await,
            Self::Cluster(cluster) => {
                let mut masters = cluster.connection();
                let answer = Box::pin(bounded(command.query_async(&mut masters).map_err(store_error))).await;
                answer.map_err(|error| masters.fault.map_or(error, Error::from))
            }
        }
    }

    /// Sends several commands in one round trip. They read, or change something that may be lost. If they are atomic,
    /// they are so within each partition.
    pub(super) async fn pipeline<T: FromRedisValue>(&self, pipeline: &Pipeline) -> Result<T, Error> {
        match self {
            Self::Single(single) => bounded(single.server.pipeline(pipeline).map_err(store_error)).await,
            Self::Cluster(cluster) => {
                let mut masters = cluster.connection();
                let answer = Box::pin(bounded(pipeline.query_async(&mut masters).map_err(store_error))).await;
                answer.map_err(|error| masters.fault.map_or(error, Error::from))
            }
        }
    }

    /// Sends commands that store something in one partition. Sending them twice does the same as sending them once.
    pub(super) async fn write(&self, pipeline: &Pipeline) -> Result<(), Error> {
        match self {
            Self::Single(single) => {
                single.check_before().await?;
                bounded(single.server.pipeline::<()>(pipeline).map_err(store_error)).await?;
                single.check_after().await
            }
            Self::Cluster(cluster) => Box::pin(bounded(cluster.write(pipeline).map_err(Error::from))).await,
        }
    }

    /// Asks each of these partitions the same questions. In a cluster, those whose server does not answer are left out,
    /// unless none does.
    pub(super) async fn look(
        &self,
        partitions: impl IntoIterator<Item = Partition>,
        ask: impl Fn(&mut Pipeline, Partition),
    ) -> Result<Vec<Look>, Error> {
        match self {
            Self::Single(_) => {
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
                let look = |(partition, many)| {
                    let answers = answers.by_ref().take(many).collect();
                    Look { partition, server_now, answers }
                };
                Ok(asked.map(look).collect())
            }
            Self::Cluster(cluster) => {
                let looks = bounded(cluster.look(partitions, ask).map_err(Error::from));
                Box::pin(looks).await
            }
        }
    }

    /// Checks, before work of a partition is handed out, that its server is known to preserve acknowledged writes.
    pub(super) async fn check_before(&self, partition: Partition) -> Result<(), Error> {
        match self {
            Self::Single(single) => single.check_before().await,
            Self::Cluster(cluster) => Ok(cluster.check_partition(partition).await?),
        }
    }

    /// Checks, after work of a partition was handed out, that the server that answered preserves acknowledged writes.
    pub(super) async fn check_after(&self, partition: Partition) -> Result<(), Error> {
        match self {
            Self::Single(single) => single.check_after().await,
            Self::Cluster(cluster) => Ok(cluster.check_partition(partition).await?),
        }
    }

    /// Implements [`countersign_graph::store::Store::probe`].
    pub(super) async fn probe(&self) -> Result<Vec<Unwritable>, Error> {
        match self {
            Self::Single(single) => {
                single.watch.check_now(&single.server, single.durability()).await?;
                let mut set = redis::pipe();
                set.set(keys::probe(Partition::of("probe")), SystemClock.now().millis());
                self.write(&set).await?;
                Ok(Vec::new())
            }
            Self::Cluster(cluster) => Box::pin(cluster.probe()).await,
        }
    }

    /// Implements [`countersign_graph::store::Store::durability`].
    pub(super) async fn durability(&self) -> Result<Durability, Error> {
        match self {
            Self::Single(single) => single.durability().await,
            Self::Cluster(cluster) => Box::pin(cluster.durability()).await,
        }
    }
}

impl Single {
    async fn check_before(&self) -> Result<(), Error> {
        self.watch.check_before(&self.server, || Box::pin(self.durability())).await
    }

    async fn check_after(&self) -> Result<(), Error> {
        self.watch.check_after(&self.server, || Box::pin(self.durability())).await
    }

    async fn durability(&self) -> Result<Durability, Error> {
        let settings = bounded(Settings::of(&self.server, self.trust).map_err(store_error)).await?;
        Ok(settings.of_master().durability(&self.server.address()))
    }
}

/// Checks that the user of a server has all rights that are needed.
async fn may_do_all(server: &Server, kind: Kind) -> Result<(), OpenError> {
    match bounded(rights::missing(server, kind).map_err(store_error)).await {
        Ok(Some(missing)) => Err(OpenError::Rights { address: server.address(), missing }),
        _ => Ok(()), // what follows tells it if the server does not answer
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
    unless_corrupt(error, Trouble::of)
}

fn unless_corrupt(error: RedisError, trouble: impl FnOnce(RedisError) -> Result<Trouble, RedisError>) -> Error {
    if is_corrupt(&error) {
        return Error::Corrupt { what: error.to_string() };
    }
    Error::Unavailable(match trouble(error) {
        Ok(trouble) => Box::new(trouble),
        Err(error) => Box::new(error),
    })
}

/// Returns true for a script error or an unexpected type, which mean that the data is corrupt. What a server refuses to
/// do at the moment, such as `NOREPLICAS` or `OOM`, has a code of its own, also within a script.
pub(super) fn is_corrupt(error: &RedisError) -> bool {
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
