//! Calls: each part of one goes to the server that has its partition, and the answers come together in order.

use std::{collections::BTreeMap, sync::Arc};

use countersign_core::ids::Partition;
use futures_util::{FutureExt as _, future::join_all};
use redis::{
    Cmd, ErrorKind, FromRedisValue, Pipeline, RedisError, RedisFuture, RedisResult, Value, aio::ConnectionLike,
};
use tokio::time::timeout;

use super::{
    super::{
        connection::{AT_ONCE_LIMIT, Look},
        keys,
        scripts::{Call, Effect},
    },
    Cluster,
    fault::{Fault, Stop},
    member::Member,
    route::Route,
    unit::Unit,
};

/// The answers to a unit, and the server's clock in microseconds, if it was asked for.
type Answered = Result<(i64, Vec<Value>), Fault>;
/// A master, and what it did with a unit.
type Sent<'a> = (&'a Arc<Member>, Result<(i64, Vec<Value>), Stop>);

impl Cluster {
    /// Runs a script on the master of its partition.
    pub(in crate::redis) async fn script<T: FromRedisValue>(self: &Arc<Self>, call: &Call<'_>) -> Result<T, Fault> {
        let guard = keys::absent(call.partition());
        let command = call.command(Some(&guard));
        let unit = match call.effect() {
            Effect::Read => Unit::of(call.partition(), command),
            Effect::Record | Effect::Promise => Unit::of_write(call.partition(), vec![command]),
        };
        let mut route = Route::new(self, call.partition(), call.is_patient());
        loop {
            let (member, ask) = route.next().await?;
            let stop = match self.script_on(&member, call, &unit, ask).await {
                Ok(mut values) => return value_of(&member, values.pop().unwrap_or(Value::Nil)),
                Err(stop) => stop,
            };
            route.after(&member, stop).await?;
        }
    }

    async fn script_on(
        self: &Arc<Self>,
        member: &Arc<Member>,
        call: &Call<'_>,
        unit: &Unit,
        ask: bool,
    ) -> Result<Vec<Value>, Stop> {
        match call.effect() {
            Effect::Read => member.read_by(call, unit, ask).await,
            Effect::Record => member.write(unit, Some(call), ask).await,
            Effect::Promise => self.promise(member, member.write(unit, Some(call), ask)).await,
        }
    }

    /// Stores something in one partition by commands that do the same if they are sent twice.
    pub(in crate::redis) async fn write(self: &Arc<Self>, pipeline: &Pipeline) -> Result<(), Fault> {
        let commands: Vec<Cmd> = pipeline.cmd_iter().cloned().collect();
        let Some(partition) = commands.first().and_then(partition_of) else { return Ok(()) };
        let unit = Unit::of_write(partition, commands);
        let mut route = Route::new(self, partition, true);
        loop {
            let (member, ask) = route.next().await?;
            match self.promise(&member, member.write(&unit, None, ask)).await {
                Ok(values) => return value_of(&member, Value::Array(values)),
                Err(stop) => route.after(&member, stop).await?,
            }
        }
    }

    /// Waits for a write to a server that is known to preserve acknowledged writes, before and after it.
    async fn promise(
        self: &Arc<Self>,
        member: &Arc<Member>,
        write: impl Future<Output = Result<Vec<Value>, Stop>>,
    ) -> Result<Vec<Value>, Stop> {
        self.check_before(member).await.map_err(Stop::Unreached)?;
        let values = write.await?;
        self.check_after(member).await.map_err(Stop::Final)?;
        Ok(values)
    }

    /// Returns a connection to all masters, for commands that read.
    pub(in crate::redis) fn connection(self: &Arc<Self>) -> ToAllMasters<'_> {
        ToAllMasters { cluster: self, fault: None }
    }

    /// Asks each of these partitions the same questions. Those whose server does not answer are left out, unless none
    /// does.
    pub(in crate::redis) async fn look(
        self: &Arc<Self>,
        partitions: impl IntoIterator<Item = Partition>,
        ask: impl Fn(&mut Pipeline, Partition),
    ) -> Result<Vec<Look>, Fault> {
        let (mut units, mut asked) = (Vec::new(), Vec::new());
        for partition in partitions {
            let mut questions = redis::pipe();
            ask(&mut questions, partition);
            asked.push((partition, questions.len()));
            units.extend(questions.cmd_iter().map(|command| Unit::of(partition, command.clone())));
        }
        let mut answers = self.send(&units, false, true).await.into_iter();
        let (mut looks, mut failed) = (Vec::new(), None);
        for (partition, many) in asked {
            let answers: Vec<Answered> = answers.by_ref().take(many).collect();
            match answers.into_iter().collect::<Result<Vec<_>, _>>() {
                Ok(answers) => {
                    let server_now = answers.first().map_or(0, |(now, _)| *now);
                    let answers = answers.into_iter().flat_map(|(_, values)| values).collect();
                    looks.push(Look { partition, server_now, answers });
                }
                Err(fault) => failed = Some(fault),
            }
        }
        match failed {
            Some(fault) if looks.is_empty() => Err(fault),
            _ => Ok(looks),
        }
    }

    /// Sends each unit to the master of its partition, those for one master in one request. Returns their answers in the
    /// same order.
    async fn send(self: &Arc<Self>, units: &[Unit], is_patient: bool, clock: bool) -> Vec<Answered> {
        let topology = self.topology();
        let mut of_masters: BTreeMap<&str, (&Arc<Member>, Vec<usize>)> = BTreeMap::new();
        for (n, unit) in units.iter().enumerate() {
            if let Some(master) = topology.master_of(unit.partition) {
                of_masters.entry(master.address()).or_insert((master, Vec::new())).1.push(n);
            }
        }
        let requests = of_masters.into_values().map(async |(master, numbers)| {
            let those: Vec<&Unit> = numbers.iter().map(|n| &units[*n]).collect();
            let answers = master.read(&those, false, clock);
            let answers = match is_patient {
                true => answers.await,
                false => timeout(AT_ONCE_LIMIT, answers).await.unwrap_or_else(|_| Err(master.suspect())),
            };
            (master, numbers, answers)
        });
        let mut sent: Vec<Option<Sent<'_>>> = units.iter().map(|_| None).collect();
        for (master, numbers, answers) in join_all(requests).await {
            match answers {
                Ok((now, answers)) => {
                    for (n, answer) in numbers.into_iter().zip(answers) {
                        sent[n] = Some((master, answer.map(|values| (now, values)).map_err(Stop::Refused)));
                    }
                }
                Err(fault) => {
                    numbers.into_iter().for_each(|n| sent[n] = Some((master, Err(Stop::Unreached(fault.clone())))));
                }
            }
        }
        let answers = units.iter().zip(sent).map(async |(unit, sent)| {
            let mut route = Route::new(self, unit.partition, is_patient);
            match sent {
                Some((_, Ok(answered))) => return Ok(answered),
                Some((master, Err(stop))) => route.after(master, stop).await?,
                None => {} // its master is not known
            }
            self.read(unit, route, clock).await
        });
        join_all(answers).await
    }

    /// Sends a unit that reads, along its route.
    async fn read(self: &Arc<Self>, unit: &Unit, mut route: Route<'_>, clock: bool) -> Answered {
        loop {
            let (member, ask) = route.next().await?;
            let stop = match member.read(&[unit], ask, clock).await {
                Ok((now, mut answers)) => match answers.pop() {
                    Some(Err(refusal)) => Stop::Refused(refusal),
                    Some(Ok(values)) => return Ok((now, values)),
                    None => return Ok((now, Vec::new())),
                },
                Err(fault) => Stop::Unreached(fault),
            };
            route.after(&member, stop).await?;
        }
    }
}

/// A connection to all masters, for commands that read, or change something that may be lost. A transaction is one within
/// each partition.
pub(in crate::redis) struct ToAllMasters<'a> {
    cluster: &'a Arc<Cluster>,
    /// The reason why the last command failed, if it was not an answer.
    pub(in crate::redis) fault: Option<Fault>,
}

impl ToAllMasters<'_> {
    async fn answers(&mut self, units: &[Unit]) -> RedisResult<Vec<Vec<Value>>> {
        let answers = self.cluster.send(units, true, false).await.into_iter();
        let answers: Result<_, _> = answers.map(|answered| answered.map(|(_, values)| values)).collect();
        answers.map_err(|fault| {
            self.fault = Some(fault);
            (ErrorKind::Io, "a server of the cluster has not answered").into()
        })
    }
}

impl ConnectionLike for ToAllMasters<'_> {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        async move {
            let unit = Unit::of(partition_of(command).ok_or_else(without_key)?, command.clone());
            let answers = self.answers(&[unit]).await?;
            Ok(answers.into_iter().flatten().next().unwrap_or(Value::Nil))
        }
        .boxed()
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        _offset: usize,
        _count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        async move {
            let mut of_partition: BTreeMap<(Partition, usize), (Vec<usize>, Vec<Cmd>)> = BTreeMap::new();
            for (n, command) in pipeline.cmd_iter().enumerate() {
                let partition = partition_of(command).ok_or_else(without_key)?;
                // Without a transaction, each command is on its own.
                let unit = (partition, if pipeline.is_transaction() { 0 } else { n });
                let (numbers, commands) = of_partition.entry(unit).or_default();
                numbers.push(n);
                commands.push(command.clone());
            }
            let (mut numbers, mut units) = (Vec::new(), Vec::new());
            for ((partition, _), (those, commands)) in of_partition {
                numbers.extend(those);
                units.push(Unit::of_several(partition, commands, pipeline.is_transaction()));
            }
            let answers = self.answers(&units).await?.into_iter().flatten();
            let mut in_order: Vec<(usize, Value)> = numbers.into_iter().zip(answers).collect();
            in_order.sort_unstable_by_key(|(n, _)| *n);
            let values = in_order.into_iter().map(|(_, value)| value).collect();
            Ok(if pipeline.is_transaction() { vec![Value::Array(values)] } else { values })
        }
        .boxed()
    }

    fn get_db(&self) -> i64 {
        0
    }
}

/// Returns the partition of a command: that of its first key.
fn partition_of(command: &Cmd) -> Option<Partition> {
    command.args_iter().find_map(|arg| match arg {
        redis::Arg::Simple(arg) => keys::partition_of(arg),
        _ => None,
    })
}

fn without_key() -> RedisError {
    (ErrorKind::Client, "a command without a key has no server").into()
}

/// Converts an answer to the expected type.
fn value_of<T: FromRedisValue>(member: &Member, answer: Value) -> Result<T, Fault> {
    let value = answer.extract_error().and_then(|value| Ok(redis::from_redis_value(value)?));
    value.map_err(|source| Fault::Server { address: member.address().to_owned(), source })
}

#[cfg(test)]
mod tests {
    use redis::cmd;

    use super::*;

    #[test]
    fn a_command_goes_to_the_partition_of_its_first_key() {
        let (one, other) = (Partition::all().nth(7).unwrap(), Partition::all().nth(12).unwrap());
        let get = cmd("MGET").arg(keys::absent(one)).arg(keys::absent(other)).to_owned();
        assert_eq!(partition_of(&get), Some(one));
        assert_eq!(partition_of(&cmd("TIME")), None);
    }
}
