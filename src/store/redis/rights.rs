//! The rights of the user. Each server of a cluster has its own list, and a right that is missing would be noticed only
//! when the first thread needs it.
//!
//! The commands are queued as one transaction, which is dropped: a server says of each of them whether the user may run it
//! with keys of ours, and runs none.

use redis::{RedisResult, Value};

use super::{keys, server::Server};

/// The key of ours in a command.
const KEY: &str = "KEY";

/// Everything that scripts and calls use, with arguments that a server accepts.
const COMMANDS: &[&[&str]] = &[
    &["DEL", KEY],
    &["EVALSHA", "0000000000000000000000000000000000000000", "1", KEY],
    &["EXISTS", KEY],
    &["GET", KEY],
    &["HDEL", KEY, "f"],
    &["HEXISTS", KEY, "f"],
    &["HGET", KEY, "f"],
    &["HGETALL", KEY],
    &["HINCRBY", KEY, "f", "1"],
    &["HKEYS", KEY],
    &["HLEN", KEY],
    &["HMGET", KEY, "f"],
    &["HSET", KEY, "f", "v"],
    &["HSETNX", KEY, "f", "v"],
    &["HVALS", KEY],
    &["INCR", KEY],
    &["INFO"],
    &["LINDEX", KEY, "0"],
    &["LLEN", KEY],
    &["LRANGE", KEY, "0", "0"],
    &["LSET", KEY, "0", "v"],
    &["MGET", KEY],
    &["PEXPIRE", KEY, "1"],
    &["PING"],
    &["RPUSH", KEY, "v"],
    &["SADD", KEY, "m"],
    &["SCARD", KEY],
    &["SCRIPT", "LOAD", "return 1"],
    &["SET", KEY, "v"],
    &["SMEMBERS", KEY],
    &["SREM", KEY, "m"],
    &["TIME"],
    &["ZADD", KEY, "1", "m"],
    &["ZRANGE", KEY, "0", "0"],
    &["ZRANGEBYSCORE", KEY, "0", "1"],
    &["ZREM", KEY, "m"],
    &["ZREMRANGEBYSCORE", KEY, "0", "1"],
    &["ZREVRANGE", KEY, "0", "0"],
    &["ZREVRANGEBYLEX", KEY, "+", "-"],
    &["ZSCORE", KEY, "m"],
];

/// What is used besides with replicas.
const WITH_REPLICAS: &[&[&str]] = &[&["ROLE"], &["WAIT", "1", "1"]];

/// What is used besides in a cluster.
const IN_CLUSTER: &[&[&str]] = &[&["ASKING"], &["CLUSTER", "MYID"], &["CLUSTER", "NODES"], &["CLUSTER", "SLOTS"]];

/// The kind of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The only server.
    Single,
    /// One with replicas, or a replica.
    Replicated,
    /// One of a cluster.
    Clustered,
}

/// Returns what the user of a server may not do, as a sentence; `None` if nothing is missing.
pub(super) async fn missing(server: &Server, kind: Kind) -> RedisResult<Option<String>> {
    let mut transaction = redis::pipe();
    transaction.cmd("MULTI").cmd("DISCARD").ignore_errors();
    let answers: Vec<Value> = server.pipeline(&transaction).await?;
    if !matches!(answers.as_slice(), [Value::Okay, Value::Okay]) {
        return Ok(missing_of(&server.user(), ["MULTI", "EXEC", "DISCARD"].into_iter().zip(answers)));
    }
    let with_replicas = if kind == Kind::Single { &[] } else { WITH_REPLICAS };
    let in_cluster = if kind == Kind::Clustered { IN_CLUSTER } else { &[] };
    let commands = || COMMANDS.iter().chain(with_replicas).chain(in_cluster);
    let key = keys::layout();
    let mut transaction = redis::pipe();
    transaction.cmd("MULTI");
    for command in commands() {
        let mut words = command.iter().map(|word| if *word == KEY { key.as_str() } else { word });
        transaction.cmd(words.next().unwrap_or_default());
        words.for_each(|word| {
            transaction.arg(word);
        });
    }
    transaction.cmd("DISCARD").ignore_errors();
    let answers: Vec<Value> = server.pipeline(&transaction).await?;
    let names = commands().map(|command| match command {
        ["SCRIPT" | "CLUSTER", ..] => command[..2].join("|"),
        _ => command[0].to_owned(),
    });
    let names: Vec<String> = names.collect();
    Ok(missing_of(&server.user(), names.iter().map(String::as_str).zip(answers.into_iter().skip(1))))
}

/// Puts what was refused into a sentence.
fn missing_of<'a>(user: &str, answers: impl Iterator<Item = (&'a str, Value)>) -> Option<String> {
    let (mut rights, mut unknown) = (Vec::new(), Vec::new());
    for (name, answer) in answers {
        let Value::ServerError(error) = answer else { continue };
        let details = error.details().unwrap_or_default();
        let right = match error.code() {
            "NOPERM" if details.contains(" command") => format!("+{}", name.to_lowercase()),
            "NOPERM" => "~countersign:*".to_owned(),
            _ if details.starts_with("unknown command") => {
                unknown.push(name);
                continue;
            }
            _ => continue, // the slot is on another server, or the like
        };
        if !rights.contains(&right) {
            rights.push(right);
        }
    }
    let rights = (!rights.is_empty())
        .then(|| format!("its user `{user}` lacks rights; `ACL SETUSER {user} {}` gives them", rights.join(" ")));
    let unknown = (!unknown.is_empty()).then(|| format!("it has no command {}", unknown.join(", ")));
    let sentences: Vec<String> = rights.into_iter().chain(unknown).collect();
    (!sentences.is_empty()).then(|| sentences.join("; "))
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    /// The commands in the files of a folder, as scripts and calls name them.
    fn used_in(folder: &Path, used: &mut BTreeSet<String>) {
        for file in fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.is_dir() {
                used_in(&path, used);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let text = text.split("#[cfg(test)]").next().unwrap_or_default();
            for begin in [".call('", "cmd(\""] {
                let names = text.split(begin).skip(1).filter_map(|rest| rest.split(['\'', '"']).next());
                used.extend(names.map(str::to_owned));
            }
        }
    }

    #[test]
    fn every_command_that_is_used_is_asked_for() {
        let mut used = BTreeSet::new();
        used_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("redis"), &mut used);
        assert!(used.contains("EVALSHA") || used.contains("ZADD"), "{used:?}");
        let listed: BTreeSet<&str> =
            COMMANDS.iter().chain(WITH_REPLICAS).chain(IN_CLUSTER).map(|words| words[0]).collect();
        // Transactions are tried first, settings may be vouched for, and Sentinels have rights of their own.
        let besides = ["MULTI", "EXEC", "DISCARD", "CONFIG", "SENTINEL"];
        let forgotten: Vec<_> =
            used.iter().filter(|name| !listed.contains(name.as_str()) && !besides.contains(&name.as_str())).collect();
        assert_eq!(forgotten, [""; 0]);
    }

    #[test]
    fn what_is_missing_is_a_sentence() {
        let error = |line: &str| redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
        let no_command =
            |name: &str| error(&format!("NOPERM this user has no permissions to run the '{name}' command"));
        let no_key = || error("NOPERM this user has no permissions to access one of the keys used as arguments");
        let queued = || Value::SimpleString("QUEUED".to_owned());
        let answers = [
            ("GET", queued()),
            ("EVALSHA", no_command("evalsha")),
            ("SET", no_key()),
            ("DEL", no_key()),
            ("CLUSTER|MYID", no_command("cluster|myid")),
            ("WAIT", error("ERR unknown command 'WAIT', with args beginning with: '1' '1'")),
            ("HGET", error("MOVED 3999 10.0.0.1:7001")),
        ];
        assert_eq!(
            missing_of("ana", answers.into_iter()).unwrap(),
            "its user `ana` lacks rights; `ACL SETUSER ana +evalsha ~countersign:* +cluster|myid` gives them; \
             it has no command WAIT"
        );
        assert_eq!(missing_of("ana", [("GET", queued())].into_iter()), None);
    }
}
