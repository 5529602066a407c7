//! Checks the server's settings to determine whether it preserves acknowledged writes.
//!
//! An answer of the store promises that the effect survives a crash. Redis guarantees this only if
//! it writes every command to its file before it answers (`appendonly yes`, `appendfsync always`),
//! even while it rewrites the file, and never evicts keys.
//!
//! `appendfsync everysec` with `WAITAOF` after each write was rejected as a design: each answer
//! would wait up to a second for the next flush, and so would all later commands on the connection.

use std::{collections::HashMap, fmt};

use countersign_graph::store::{Durability, Error};
use redis::{RedisResult, cmd};

use super::server::{Server, has_failed};

/// The settings that decide what survives a crash.
const SETTINGS: [&str; 4] = ["appendonly", "appendfsync", "no-appendfsync-on-rewrite", "maxmemory-policy"];
/// The setting that decides which replicas may become the master in a cluster.
const VALIDITY: &str = "cluster-replica-validity-factor";

/// The reason why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL is invalid. It is not included here, since it may contain a password.
    #[error("the Redis URL is no good: {0}; one looks like redis://user:password@host:6379/0")]
    Url(String),
    /// The server does not answer, or refuses the login.
    #[error("cannot talk to Redis at {address}")]
    Unavailable {
        /// The host and port.
        address: String,
        /// The error.
        #[source]
        source: Error,
    },
    /// Several addresses are set, and the server at one of them does not belong to a cluster.
    #[error("Redis at {address} isn't part of a cluster; name a single address, or the servers of one cluster")]
    NotInCluster {
        /// The host and port.
        address: String,
    },
    /// A later version of this program created the store.
    #[error(
        "the store in Redis at {address} has layout {found}, and this program knows only {known}; run the newer program"
    )]
    Newer {
        /// The host and port.
        address: String,
        /// The layout of the store.
        found: u32,
        /// The newest layout that this program knows.
        known: u32,
    },
    /// The server may lose acknowledged writes.
    #[error("{}", Lossy(.0))]
    Lossy(Durability),
}

struct Lossy<'a>(&'a Durability);

impl fmt::Display for Lossy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} may lose what it has acknowledged:", self.0.name)?;
        for problem in &self.0.problems {
            writeln!(f, "  - {problem}")?;
        }
        write!(
            f,
            "Set these on the server, or store.allow_lossy = true if losing approvals and messages is acceptable."
        )
    }
}

/// The settings of a server that matter for acknowledged writes.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// The product and its version.
    pub(super) name: String,
    /// True if the server belongs to a cluster.
    pub(super) is_in_cluster: bool,
    /// The problems, each in one line with the right setting.
    pub(super) problems: Vec<String>,
}

impl Settings {
    /// Reads the settings of a server.
    pub(super) async fn of(server: &Server) -> RedisResult<Self> {
        let info: String = server.command(&cmd("INFO")).await?;
        let info = parse_info(&info);
        let is_in_cluster = info.get("cluster_enabled").is_some_and(|enabled| *enabled == "1");
        let mut settings = HashMap::new();
        for name in SETTINGS.into_iter().chain(is_in_cluster.then_some(VALIDITY)) {
            match server.command::<HashMap<String, String>>(cmd("CONFIG").arg("GET").arg(name)).await {
                Ok(answer) => settings.extend(answer),
                Err(error) if !has_failed(&error) => break, // it refused, rather than not answering at all
                Err(error) => return Err(error),
            }
        }
        Ok(Self { name: name_of(&info), is_in_cluster, problems: problems(&info, &settings) })
    }

    /// Names the server in each problem.
    pub(super) fn at(mut self, address: &str) -> Self {
        self.problems.iter_mut().for_each(|problem| *problem = format!("{address}: {problem}"));
        self
    }

    /// Returns what they mean for the store on the server at `address`.
    pub(super) fn durability(self, address: &str) -> Durability {
        Durability { name: format!("{} ({address})", self.name), problems: self.problems }
    }
}

/// Returns the problems of the settings, one line each. A setting that cannot be read is also a
/// problem.
fn problems(info: &HashMap<&str, &str>, settings: &HashMap<String, String>) -> Vec<String> {
    let mut problems = Vec::new();
    let mut wants = |name: &str, right: &str, otherwise: &str| match settings.get(name).map(String::as_str) {
        Some(found) if found == right => {}
        Some(found) => problems.push(format!("{name} is `{found}`: {otherwise}; set `{name} {right}`")),
        None => problems
            .push(format!("{name} cannot be read (the server does not allow CONFIG GET): make sure it is `{right}`")),
    };
    wants("appendonly", "yes", "nothing survives a crash but the last snapshot");
    wants("appendfsync", "always", "the last writes before a crash are lost although they were answered");
    wants("no-appendfsync-on-rewrite", "no", "writes during a rewrite of the file are not flushed");
    wants("maxmemory-policy", "noeviction", "threads are thrown away when memory is short");

    if let Some(found) = info.get("aof_last_write_status").filter(|status| **status != "ok") {
        problems.push(format!("aof_last_write_status is `{found}`: the file cannot be written; look at the disk"));
    }
    let is_in_cluster = info.get("cluster_enabled").is_some_and(|enabled| *enabled == "1");
    if let Some(found) = info.get("role").filter(|role| **role != "master" && !is_in_cluster) {
        problems.push(format!("role is `{found}`: a replica takes no writes; use the address of the master"));
    }
    if is_in_cluster && settings.get(VALIDITY).is_some_and(|factor| factor == "0") {
        problems.push(format!(
            "{VALIDITY} is `0`: a replica that was cut off for long may take over without the last writes; \
             set `{VALIDITY} 10`"
        ));
    }
    problems
}

fn name_of(info: &HashMap<&str, &str>) -> String {
    match (info.get("valkey_version"), info.get("redis_version")) {
        (Some(version), _) => format!("Valkey {version}"),
        (None, Some(version)) => format!("Redis {version}"),
        (None, None) => "Redis".to_owned(),
    }
}

fn parse_info(info: &str) -> HashMap<&str, &str> {
    info.lines().filter_map(|line| line.trim_end().split_once(':')).collect()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn settings(changed: &[(&str, &str)]) -> HashMap<String, String> {
        let right = [
            ("appendonly", "yes"),
            ("appendfsync", "always"),
            ("no-appendfsync-on-rewrite", "no"),
            ("maxmemory-policy", "noeviction"),
        ];
        right.iter().chain(changed).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn info() -> HashMap<&'static str, &'static str> {
        parse_info("# Server\r\nredis_version:7.0.15\r\nrole:master\r\naof_last_write_status:ok\r\n")
    }

    #[test]
    fn a_server_with_safe_settings_has_no_problems() {
        assert!(problems(&info(), &settings(&[])).is_empty());
        assert_eq!(name_of(&info()), "Redis 7.0.15");
    }

    #[test]
    fn the_error_for_a_lossy_server_names_the_right_settings() {
        let settings = settings(&[("appendfsync", "everysec"), ("maxmemory-policy", "allkeys-lru")]);
        let error = OpenError::Lossy(Durability {
            name: "Redis 7.0.15 (127.0.0.1:6379)".into(),
            problems: problems(&info(), &settings),
        });
        assert_snapshot!(error, @r"
        Redis 7.0.15 (127.0.0.1:6379) may lose what it has acknowledged:
          - appendfsync is `everysec`: the last writes before a crash are lost although they were answered; set `appendfsync always`
          - maxmemory-policy is `allkeys-lru`: threads are thrown away when memory is short; set `maxmemory-policy noeviction`
        Set these on the server, or store.allow_lossy = true if losing approvals and messages is acceptable.
        ");
    }

    #[test]
    fn in_a_cluster_a_replica_may_answer_but_not_one_that_takes_over_at_any_age() {
        let info = parse_info("cluster_enabled:1\r\nrole:slave\r\naof_last_write_status:ok\r\n");
        assert_eq!(problems(&info, &settings(&[(VALIDITY, "10")])), [""; 0]);
        assert_snapshot!(problems(&info, &settings(&[(VALIDITY, "0")])).join("\n"), @"cluster-replica-validity-factor is `0`: a replica that was cut off for long may take over without the last writes; set `cluster-replica-validity-factor 10`");
    }

    #[test]
    fn settings_that_cannot_be_read_are_problems() {
        assert_snapshot!(problems(&info(), &HashMap::new()).join("\n"), @r"
        appendonly cannot be read (the server does not allow CONFIG GET): make sure it is `yes`
        appendfsync cannot be read (the server does not allow CONFIG GET): make sure it is `always`
        no-appendfsync-on-rewrite cannot be read (the server does not allow CONFIG GET): make sure it is `no`
        maxmemory-policy cannot be read (the server does not allow CONFIG GET): make sure it is `noeviction`
        ");
    }

    #[test]
    fn a_replica_with_a_full_disk_is_named() {
        let info = parse_info("role:slave\r\naof_last_write_status:err\r\n");
        assert_snapshot!(problems(&info, &settings(&[])).join("\n"), @r"
        aof_last_write_status is `err`: the file cannot be written; look at the disk
        role is `slave`: a replica takes no writes; use the address of the master
        ");
    }
}
