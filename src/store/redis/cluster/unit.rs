//! Commands of one partition that go to one server, and what its answer means.

use countersign_core::ids::Partition;
use redis::{Cmd, Pipeline, RedisError, ServerError, ServerErrorKind, Value, cmd};

use super::super::keys;

/// Commands of one partition. They are sent together and, if the server refuses them, sent together again.
#[derive(Debug)]
pub(super) struct Unit {
    /// The partition.
    pub(super) partition: Partition,
    commands: Vec<Cmd>,
    is_atomic: bool,
}

/// The reason why a server has executed nothing of a unit.
#[derive(Debug)]
pub(super) enum Refusal {
    /// Another server has the slot: the one at this address.
    Moved(String),
    /// The slot is being moved, and these keys are on another server already: the one at this address.
    Ask(String),
    /// The server cannot do it at the moment, because the slot is being moved or the cluster changes.
    NotNow(RedisError),
}

impl Unit {
    /// Creates a unit of one command.
    pub(super) fn of(partition: Partition, command: Cmd) -> Self {
        Self { partition, commands: vec![command], is_atomic: false }
    }

    /// Creates a unit of commands that write. They are executed together with the write of a small key, so that a replica
    /// that has it has everything before it, or not at all: if the slot is being moved and the server refuses the others,
    /// the small key must not come into being on a second server, since the move could then not be completed.
    pub(super) fn of_write(partition: Partition, mut commands: Vec<Cmd>) -> Self {
        commands.push(cmd("SET").arg(keys::confirmed(partition)).arg(1).to_owned());
        Self { partition, commands, is_atomic: true }
    }

    /// Creates a unit of several commands, which are executed together if they are atomic. Others must be harmless if they
    /// are executed twice.
    pub(super) fn of_several(partition: Partition, commands: Vec<Cmd>, is_atomic: bool) -> Self {
        Self { partition, commands, is_atomic }
    }

    /// Adds the unit to a request. A server that is only about to get the slot serves those that `ask` it.
    pub(super) fn add_to(&self, request: &mut Pipeline, ask: bool) {
        let asking = |request: &mut Pipeline| {
            if ask {
                request.cmd("ASKING");
            }
        };
        if self.is_atomic {
            asking(request);
            request.cmd("MULTI");
        }
        for command in &self.commands {
            if !self.is_atomic {
                asking(request);
            }
            request.add_command(command.clone());
        }
        if self.is_atomic {
            request.cmd("EXEC");
        }
    }

    /// Takes the unit's answers from those of a request, one for each command. Errors of a command are among them, unless
    /// they mean that nothing was executed.
    pub(super) fn take(&self, answers: &mut impl Iterator<Item = Value>, asked: bool) -> Result<Vec<Value>, Refusal> {
        let mut next = || answers.next().unwrap_or(Value::Nil);
        let mut taken = Vec::with_capacity(self.commands.len());
        if self.is_atomic {
            if asked {
                next();
            }
            next(); // MULTI
        }
        for _ in &self.commands {
            if asked && !self.is_atomic {
                next();
            }
            taken.push(next());
        }
        let refused = taken.iter().find_map(refusal);
        if self.is_atomic {
            // A command that cannot be queued aborts the transaction.
            match (next(), refused) {
                (Value::Array(values), None) => return Ok(values),
                (answer, refused) => match refused.or_else(|| refusal(&answer)) {
                    Some(refusal) => return Err(refusal),
                    None => {
                        let error = taken.into_iter().find(|queued| matches!(queued, Value::ServerError(_)));
                        return Ok(vec![error.unwrap_or(answer); self.commands.len()]);
                    }
                },
            }
        }
        refused.map_or(Ok(taken), Err)
    }
}

/// Returns what an answer says about the server's part in the cluster.
fn refusal(answer: &Value) -> Option<Refusal> {
    let Value::ServerError(error) = answer else { return None };
    match error.kind()? {
        ServerErrorKind::Moved => Some(Refusal::Moved(address_in(error)?)),
        ServerErrorKind::Ask => Some(Refusal::Ask(address_in(error)?)),
        ServerErrorKind::TryAgain
        | ServerErrorKind::ClusterDown
        | ServerErrorKind::MasterDown
        | ServerErrorKind::BusyLoading
        | ServerErrorKind::ReadOnly => Some(Refusal::NotNow(error.clone().into())),
        _ => None,
    }
}

/// Returns the address in an error, after the slot. It has no host if that is the host of the server that answered.
fn address_in(error: &ServerError) -> Option<String> {
    error.details()?.split_whitespace().nth(1).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use redis::cmd;

    use super::*;

    fn error(line: &str) -> Value {
        redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap()
    }

    fn words(request: &Pipeline) -> Vec<String> {
        let name = |command: &Cmd| match command.args_iter().next() {
            Some(redis::Arg::Simple(name)) => String::from_utf8_lossy(name).into_owned(),
            _ => String::new(),
        };
        request.cmd_iter().map(name).collect()
    }

    fn unit(is_atomic: bool) -> Unit {
        let commands = vec![cmd("GET").arg("a").to_owned(), cmd("SET").arg("a").arg(1).to_owned()];
        Unit::of_several(Partition::of("x"), commands, is_atomic)
    }

    fn sent(is_atomic: bool, ask: bool) -> Vec<String> {
        let mut request = redis::pipe();
        unit(is_atomic).add_to(&mut request, ask);
        words(&request)
    }

    #[test]
    fn every_command_asks_but_in_a_transaction() {
        assert_eq!(sent(false, false), ["GET", "SET"]);
        assert_eq!(sent(false, true), ["ASKING", "GET", "ASKING", "SET"]);
        assert_eq!(sent(true, false), ["MULTI", "GET", "SET", "EXEC"]);
        assert_eq!(sent(true, true), ["ASKING", "MULTI", "GET", "SET", "EXEC"]);
    }

    #[test]
    fn what_is_written_for_the_replicas_is_written_with_the_rest_or_not_at_all() {
        let (mut request, script) = (redis::pipe(), cmd("EVALSHA").arg("a").to_owned());
        let unit = Unit::of_write(Partition::of("x"), vec![script]);
        unit.add_to(&mut request, true);
        assert_eq!(words(&request), ["ASKING", "MULTI", "EVALSHA", "SET", "EXEC"]);
        let busy = error("TRYAGAIN Multiple keys request during rehashing of slot");
        let queued = Value::SimpleString("QUEUED".to_owned());
        let aborted = error("EXECABORT Transaction discarded because of previous errors.");
        let answers = [Value::Okay, Value::Okay, busy, queued, aborted];
        assert!(matches!(unit.take(&mut answers.into_iter(), true), Err(Refusal::NotNow(_))));
    }

    #[test]
    fn each_unit_takes_its_own_answers() {
        let queued = || Value::SimpleString("QUEUED".to_owned());
        let both = Value::Array(vec![Value::Int(1), Value::Okay]);
        let answers = [Value::Int(1), Value::Okay, Value::Okay, queued(), queued(), both, Value::Int(9)];
        let mut answers = answers.into_iter();
        assert_eq!(unit(false).take(&mut answers, false).unwrap(), [Value::Int(1), Value::Okay]);
        assert_eq!(unit(true).take(&mut answers, false).unwrap(), [Value::Int(1), Value::Okay]);
        assert_eq!(answers.next(), Some(Value::Int(9)));

        let answers = [Value::Okay, Value::Int(1), Value::Okay, Value::Okay];
        assert_eq!(unit(false).take(&mut answers.into_iter(), true).unwrap(), [Value::Int(1), Value::Okay]);
    }

    #[test]
    fn a_refusal_is_told_from_the_error_of_a_command() {
        let take = |is_atomic, answers: Vec<Value>| unit(is_atomic).take(&mut answers.into_iter(), false);
        let moved = take(false, vec![Value::Int(1), error("MOVED 3999 10.0.0.1:7001")]);
        assert!(matches!(moved, Err(Refusal::Moved(address)) if address == "10.0.0.1:7001"));
        let ask = error("ASK 3999 :7001");
        let aborted = error("EXECABORT Transaction discarded because of previous errors.");
        let asks = take(true, vec![Value::Okay, ask, Value::Okay, aborted]);
        assert!(matches!(asks, Err(Refusal::Ask(address)) if address == ":7001"));
        let busy = error("TRYAGAIN Multiple keys request during rehashing of slot");
        assert!(matches!(take(true, vec![Value::Okay, Value::Okay, Value::Okay, busy]), Err(Refusal::NotNow(_))));
        let wrong = error("WRONGTYPE Operation against a key holding the wrong kind of value");
        assert_eq!(take(false, vec![wrong.clone(), Value::Okay]).unwrap(), [wrong, Value::Okay]);
    }
}
