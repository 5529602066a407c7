//! A server of a cluster: its connections, and whether it answers.
//!
//! A server that cannot be reached, or does not answer in time, is *away*: calls to it fail at once, so that one server
//! does not hold up what concerns the others. It is asked again and again until it answers.

mod writes;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use countersign_core::cause;
use redis::{
    ConnectionInfo, ErrorKind, FromRedisValue, Pipeline, RedisError, RedisResult, ServerErrorKind, Value,
    aio::MultiplexedConnection, cmd,
};
use tokio::{sync::Semaphore, time::sleep};

use super::{
    super::{
        address::Access,
        durability::{Settings, Trust},
        scripts::Call,
        server::{Server, has_failed},
        watch::DurabilityWatch,
    },
    fault::{Fault, Stop},
    unit::{Refusal, Unit},
};

/// The maximum number of writes that wait for the answers of a server at a time.
const MAX_WRITES: usize = 32;
/// The interval between questions to a server that is away.
const ASK_EVERY: Duration = Duration::from_millis(200);

/// A server of a cluster.
#[derive(Debug)]
pub(super) struct Member {
    address: String,
    /// A number that no other member has.
    serial: u64,
    server: Server,
    trust: Trust,
    /// The watch on its settings.
    pub(super) watch: DurabilityWatch,
    /// True if its address is what other servers say, and not that of the setting.
    is_announced: bool,
    /// The number of the connection with which the Sentinels named it as the master; 0 if they have not.
    identified: AtomicU64,
    has_replicas: AtomicBool,
    /// The reason, if the server is away.
    away: Mutex<Option<RedisError>>,
    /// The number of times that any member went away.
    losses: Arc<AtomicU64>,
    /// The connections for writes that nobody uses at the moment.
    idle: Mutex<Vec<MultiplexedConnection>>,
    writes: Semaphore,
}

/// The answers to a request of several units: the server's clock in microseconds, if it was asked for, and the answers to
/// each unit.
pub(super) type Answers = (i64, Vec<Result<Vec<Value>, Refusal>>);

impl Member {
    /// Creates a member. It connects on the first call.
    ///
    /// # Errors
    ///
    /// Fails if the address is invalid.
    pub(super) fn new(
        info: ConnectionInfo,
        serial: u64,
        access: &Access,
        losses: &Arc<AtomicU64>,
    ) -> RedisResult<Self> {
        let server = Server::new(info, access.tls.clone())?;
        Ok(Self {
            address: server.address(),
            serial,
            server,
            trust: access.trust,
            watch: DurabilityWatch::new(access.trust),
            is_announced: false,
            identified: AtomicU64::new(0),
            has_replicas: AtomicBool::new(false),
            away: Mutex::default(),
            losses: Arc::clone(losses),
            idle: Mutex::default(),
            writes: Semaphore::new(MAX_WRITES),
        })
    }

    /// Notes that its address is what other servers say.
    pub(super) fn announced(self) -> Self {
        Self { is_announced: true, ..self }
    }

    /// Creates a member that is not called.
    #[cfg(test)]
    pub(super) fn for_test(address: &str) -> Arc<Self> {
        let info = redis::IntoConnectionInfo::into_connection_info(format!("redis://{address}")).unwrap();
        Arc::new(Self::new(info, 0, &Access::default(), &Arc::default()).unwrap())
    }

    /// Returns the host and port.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Returns the server.
    pub(super) fn server(&self) -> &Server {
        &self.server
    }

    /// Returns a number that changes with each connection, and that no other member has.
    pub(super) fn connection_number(&self) -> u64 {
        (self.serial << 32) | self.server.connections_made()
    }

    /// Notes whether replicas may take over from this master.
    pub(super) fn set_has_replicas(&self, has_replicas: bool) {
        self.has_replicas.store(has_replicas, Ordering::Relaxed);
    }

    /// Notes that the Sentinels name it as the master.
    pub(super) fn identify(&self) {
        self.identified.store(self.server.connections_made(), Ordering::SeqCst);
    }

    /// Returns true if the Sentinels have named it as the master since the last connection was opened.
    pub(super) fn is_identified(&self) -> bool {
        let made = self.server.connections_made();
        made > 0 && self.identified.load(Ordering::SeqCst) == made
    }

    /// Returns true if the server is away.
    pub(super) fn is_away(&self) -> bool {
        self.away.lock().is_ok_and(|away| away.is_some())
    }

    /// Sends units in one request, and reads the server's clock before them if `clock` is true.
    pub(super) async fn read(self: &Arc<Self>, units: &[&Unit], ask: bool, clock: bool) -> Result<Answers, Fault> {
        let mut request = redis::pipe();
        if clock {
            request.cmd("TIME");
        }
        units.iter().for_each(|unit| unit.add_to(&mut request, ask));
        self.check_presence()?;
        let answers: Vec<Value> = self.noted(self.exchange(request).await)?;
        let mut answers = answers.into_iter();
        let now = if clock { self.noted(clock_in(answers.next()))? } else { 0 };
        let answers = units.iter().map(|unit| unit.take(&mut answers, ask));
        Ok((now, answers.collect()))
    }

    /// Runs a script that only reads, whose call is `unit`.
    pub(super) async fn read_by(self: &Arc<Self>, call: &Call<'_>, unit: &Unit, ask: bool) -> Result<Vec<Value>, Stop> {
        let values = self.read_one(unit, ask).await?;
        if !is_unknown_script(&values) {
            return Ok(values);
        }
        self.noted(self.server.load(call).await).map_err(Stop::Unreached)?;
        self.read_one(unit, ask).await
    }

    /// Sends a unit that only reads.
    async fn read_one(self: &Arc<Self>, unit: &Unit, ask: bool) -> Result<Vec<Value>, Stop> {
        let (_, mut answers) = self.read(&[unit], ask, false).await.map_err(Stop::Unreached)?;
        answers.pop().unwrap_or_else(|| Ok(Vec::new())).map_err(Stop::Refused)
    }

    /// Asks the server about the cluster.
    pub(super) async fn ask<T: FromRedisValue>(self: &Arc<Self>, questions: &Pipeline) -> Result<T, Fault> {
        self.check_presence()?;
        self.noted(self.server.pipeline(questions).await)
    }

    /// Finds out in the background whether a server that did not answer at once is away. Returns the reason why its answer
    /// is missing.
    pub(super) fn suspect(self: &Arc<Self>) -> Fault {
        let member = Arc::clone(self);
        tokio::spawn(async move { member.noted(member.server.command::<()>(&cmd("PING")).await) });
        let source = (ErrorKind::Io, "it does not answer at once").into();
        Fault::Server { address: self.address.clone(), source }
    }

    /// Reads the settings of this server.
    pub(super) async fn settings(self: &Arc<Self>) -> Result<Settings, Fault> {
        self.check_presence()?;
        self.noted(Settings::of(&self.server, self.trust).await)
    }

    /// Sends a request on the connection that calls share.
    async fn exchange(&self, mut request: Pipeline) -> RedisResult<Vec<Value>> {
        request.ignore_errors();
        self.server.pipeline(&request).await
    }

    /// Returns an error if the server is away.
    fn check_presence(&self) -> Result<(), Fault> {
        match self.away.lock().ok().and_then(|away| away.clone()) {
            Some(source) => Err(self.away_for(source)),
            None => Ok(()),
        }
    }

    /// Returns the fault of a server that cannot be reached.
    fn away_for(&self, source: RedisError) -> Fault {
        let address = self.address.clone();
        match self.is_announced && self.server.connections_made() == 0 {
            true => Fault::Unreachable { address, source },
            false => Fault::Away { address, source },
        }
    }

    /// Notes it if a result means that the server is away.
    fn noted<T>(self: &Arc<Self>, result: RedisResult<T>) -> Result<T, Fault> {
        result.map_err(|error| {
            if has_failed(&error) {
                self.drop_idle();
            }
            // A connection that was closed may be made again.
            if error.is_io_error() && (error.is_connection_refusal() || !error.is_connection_dropped()) {
                self.goes_away(&error);
                return self.away_for(error);
            }
            Fault::Server { address: self.address.clone(), source: error }
        })
    }

    fn drop_idle(&self) {
        if let Ok(mut idle) = self.idle.lock() {
            idle.clear();
        }
    }

    fn goes_away(self: &Arc<Self>, error: &RedisError) {
        let Ok(mut away) = self.away.lock() else { return };
        if away.is_none() {
            tracing::warn!(error = cause::chain(error), "Redis at {} isn't answering", self.address);
            *away = Some(error.clone());
            self.losses.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(until_it_answers(Arc::clone(self)));
        }
    }
}

/// Asks a server that is away until it answers, or nobody needs it any more.
async fn until_it_answers(member: Arc<Member>) {
    loop {
        sleep(ASK_EVERY).await;
        if Arc::strong_count(&member) == 1 {
            return;
        }
        if member.server.command::<()>(&cmd("PING")).await.is_ok() {
            tracing::info!("Redis at {} answers again", member.address);
            if let Ok(mut away) = member.away.lock() {
                *away = None;
            }
            return;
        }
    }
}

/// Returns the server's clock in microseconds, from its answer to `TIME`.
fn clock_in(answer: Option<Value>) -> RedisResult<i64> {
    let (seconds, micros): (i64, i64) = redis::from_redis_value(answer.unwrap_or(Value::Nil))?;
    Ok(seconds * 1_000_000 + micros)
}

fn is_unknown_script(values: &[Value]) -> bool {
    matches!(values, [Value::ServerError(error)] if error.kind() == Some(ServerErrorKind::NoScript))
}
