//! Writes to a server of a cluster, each on a connection that nobody else uses at the time.

use std::sync::{Arc, atomic::Ordering};

use redis::{Pipeline, RedisResult, Value, aio::MultiplexedConnection};
use tokio::sync::SemaphorePermit;

use super::{
    super::{
        super::scripts::Call,
        fault::{Fault, Stop},
        replicas::{self, Confirmation},
        unit::Unit,
    },
    Member, is_unknown_script,
};

impl Member {
    /// Sends a unit that writes ([`Unit::of_write`]), and waits until a replica has it, if there is any. If it is a script,
    /// `call` is its call.
    pub(in crate::redis::cluster) async fn write(
        self: &Arc<Self>,
        unit: &Unit,
        call: Option<&Call<'_>>,
        ask: bool,
    ) -> Result<Vec<Value>, Stop> {
        let mut reserved = self.reserve().await?;
        let mut written = self.write_on(&mut reserved.connection, unit, ask).await;
        if let (Ok(values), Some(call)) = (&written, call)
            && is_unknown_script(values)
        {
            self.noted(call.load(&mut reserved.connection).await).map_err(Stop::Unreached)?;
            written = self.write_on(&mut reserved.connection, unit, ask).await;
        }
        if !matches!(written, Err(Stop::Final(_))) {
            reserved.give_back();
        }
        written
    }

    async fn write_on(
        self: &Arc<Self>,
        connection: &mut MultiplexedConnection,
        unit: &Unit,
        ask: bool,
    ) -> Result<Vec<Value>, Stop> {
        let has_replicas = self.has_replicas.load(Ordering::Relaxed);
        let mut request = redis::pipe();
        unit.add_to(&mut request, ask);
        match has_replicas {
            true => replicas::ask_for_confirmation(&mut request),
            false => replicas::ask_for_replicas(&mut request),
        }
        let answers = self.noted(exchange_on(connection, request).await).map_err(Stop::Final)?;
        let mut answers = answers.into_iter();
        let mut values = unit.take(&mut answers, ask).map_err(Stop::Refused)?;
        values.pop(); // the answer to the small key
        if values.iter().any(|value| matches!(value, Value::ServerError(_))) {
            return Ok(values);
        }
        let mut confirmation = match has_replicas {
            true => replicas::read_confirmation(answers),
            false => replicas::read_replicas(answers),
        };
        if confirmation == Confirmation::Open {
            self.set_has_replicas(true);
            let mut request = redis::pipe();
            replicas::ask_for_confirmation(&mut request);
            let answers = self.noted(exchange_on(connection, request).await).map_err(Stop::Final)?;
            confirmation = replicas::read_confirmation(answers.into_iter());
        }
        match confirmation {
            Confirmation::Complete => Ok(values),
            _ => Err(Stop::Final(Fault::Unconfirmed { address: self.address.clone() })),
        }
    }

    /// Returns a connection for a write.
    async fn reserve(self: &Arc<Self>) -> Result<Reserved<'_>, Stop> {
        self.check_presence().map_err(Stop::Unreached)?;
        let permit = self.writes.acquire().await.expect("it is never closed");
        let idle = self.idle.lock().ok().and_then(|mut idle| idle.pop());
        let connection = match idle {
            Some(connection) => connection,
            None => self.noted(self.server.connect().await).map_err(Stop::Unreached)?,
        };
        Ok(Reserved { member: self, connection, _permit: permit })
    }
}

/// A connection for a write, until the write is done.
struct Reserved<'a> {
    member: &'a Member,
    connection: MultiplexedConnection,
    _permit: SemaphorePermit<'a>,
}

impl Reserved<'_> {
    /// Keeps the connection for the next write.
    fn give_back(self) {
        if let Ok(mut idle) = self.member.idle.lock() {
            idle.push(self.connection);
        }
    }
}

async fn exchange_on(connection: &mut MultiplexedConnection, mut request: Pipeline) -> RedisResult<Vec<Value>> {
    request.ignore_errors();
    request.query_async(connection).await
}
