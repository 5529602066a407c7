//! Checks the server's settings to determine whether it preserves acknowledged writes.
//!
//! An answer of the store promises that the effect survives a crash. Redis guarantees this only if
//! it writes every command to its file before it answers (`appendonly yes`, `appendfsync always`),
//! even while it rewrites the file, and never evicts keys.
//!
//! `appendfsync everysec` with `WAITAOF` after each write was rejected as a design: each answer
//! would wait up to a second for the next flush, and so would all later commands on the connection.

use std::{collections::HashMap, fmt, io};

use countersign_graph::store::{Durability, Error};
use redis::{RedisResult, cmd};

use super::server::{Server, has_failed};

/// The settings that decide what survives a crash.
const SETTINGS: [&str; 4] = ["appendonly", "appendfsync", "no-appendfsync-on-rewrite", EVICTION];
/// The setting that decides what is thrown away when memory is short.
const EVICTION: &str = "maxmemory-policy";
/// The setting by which all masters of a cluster refuse everything while one is missing.
const COVERAGE: &str = "cluster-require-full-coverage";
/// The setting that decides which replicas may become the master in a cluster.
const VALIDITY: &str = "cluster-replica-validity-factor";

/// The reason why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL is invalid. It is not included here, since it may contain a password.
    #[error("the Redis URL is no good: {0}; one looks like redis://user:password@host:6379/0")]
    Url(String),
    /// The address asks for TLS, and the certificates of authorities cannot be loaded.
    #[error("this machine has no certificates of authorities, so a TLS server cannot be verified")]
    Certificates(#[source] io::Error),
    /// The server does not answer, or refuses the login.
    #[error("cannot talk to Redis at {address}")]
    Unavailable {
        /// The host and port.
        address: String,
        /// The error.
        #[source]
        source: Error,
    },
    /// The user of the address may not do what is needed.
    #[error("Redis at {address}: {missing}; docs/managed-redis.md lists what is needed")]
    Rights {
        /// The host and port.
        address: String,
        /// What is missing, and what gives it.
        missing: String,
    },
    /// The address is that of a Sentinel.
    #[error(
        "{address} is a Sentinel, which stores nothing; write REDIS_URL as \
         redis+sentinel://user:password@{address}/{}, with commas between several Sentinels",
        masters_of(masters)
    )]
    Sentinel {
        /// The host and port.
        address: String,
        /// The names of the masters that it watches.
        masters: Vec<String>,
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

fn masters_of(masters: &[String]) -> &str {
    masters.first().map_or("mymaster", String::as_str)
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

/// What is relied upon for writes that were acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// The settings of each server.
    #[default]
    Checked,
    /// The settings of each server as far as they can be read, and the operator's word for the rest.
    Vouched,
    /// Nothing: writes may be lost.
    Lossy,
}

/// The settings of a server that matter for acknowledged writes, or those of several servers.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// The product and its version.
    pub(super) name: String,
    /// True if the server belongs to a cluster.
    pub(super) is_in_cluster: bool,
    /// True if the server is no replica.
    pub(super) is_master: bool,
    /// The names of the masters that it watches, if it is a Sentinel.
    pub(super) watches: Option<Vec<String>>,
    /// The problems, each with the right setting, and with the servers that have it, if there are several.
    pub(super) problems: Vec<(Vec<String>, String)>,
    /// What would keep more of it working when something fails, in the same form.
    pub(super) advice: Vec<(Vec<String>, String)>,
    /// The settings for which the operator vouches.
    pub(super) vouched: Vec<&'static str>,
}

impl Settings {
    /// Reads the settings of a server.
    pub(super) async fn of(server: &Server, trust: Trust) -> RedisResult<Self> {
        let info: String = server.command(&cmd("INFO")).await?;
        let info = parse_info(&info);
        let mut settings = HashMap::new();
        let of_cluster = if is_in_cluster(&info) { [VALIDITY, COVERAGE].as_slice() } else { &[] };
        for name in SETTINGS.iter().chain(of_cluster) {
            match server.command::<HashMap<String, String>>(cmd("CONFIG").arg("GET").arg(name)).await {
                Ok(answer) => settings.extend(answer),
                Err(error) if !has_failed(&error) => break, // it refused, rather than not answering at all
                Err(error) => return Err(error),
            }
        }
        Ok(Self::read(&info, settings, trust))
    }

    fn read(info: &HashMap<&str, &str>, mut settings: HashMap<String, String>, trust: Trust) -> Self {
        // A server that does not allow CONFIG tells this one nevertheless.
        if let Some(policy) = info.get("maxmemory_policy") {
            settings.entry(EVICTION.to_owned()).or_insert_with(|| (*policy).to_owned());
        }
        let unknown: Vec<_> = SETTINGS.into_iter().filter(|name| !settings.contains_key(*name)).collect();
        let (vouched, unknown) = if trust == Trust::Vouched { (unknown, Vec::new()) } else { (Vec::new(), unknown) };
        let of_itself = |told: Vec<String>| told.into_iter().map(|line| (Vec::new(), line)).collect();
        let is_sentinel = info.get("redis_mode").is_some_and(|mode| *mode == "sentinel");
        let watched = info.iter().filter(|(key, _)| key.starts_with("master"));
        let watched = watched.filter_map(|(_, facts)| facts.strip_prefix("name=")?.split(',').next());
        let watches = is_sentinel.then(|| watched.map(str::to_owned).collect());
        Self {
            watches,
            name: name_of(info),
            is_in_cluster: is_in_cluster(info),
            is_master: info.get("role").is_none_or(|role| *role == "master"),
            problems: of_itself(problems(info, &settings, &unknown)),
            advice: of_itself(advice(&settings)),
            vouched,
        }
    }

    /// Adds the problem that the server is a replica.
    pub(super) fn of_master(mut self) -> Self {
        if !self.is_master {
            let line = "its role is `slave`: a replica takes no writes; use the address of the master";
            self.problems.push((Vec::new(), line.to_owned()));
        }
        self
    }

    /// Names the server in each line.
    pub(super) fn at(mut self, address: &str) -> Self {
        let lines = self.problems.iter_mut().chain(&mut self.advice);
        lines.for_each(|(servers, _)| *servers = vec![address.to_owned()]);
        self
    }

    /// Puts the settings of two servers together. What is the same on both is one line.
    pub(super) fn both(mut one: Self, other: Self) -> Self {
        for (all, more) in [(&mut one.problems, other.problems), (&mut one.advice, other.advice)] {
            for (servers, line) in more {
                match all.iter_mut().find(|(_, known)| *known == line) {
                    Some((known, _)) => known.extend(servers),
                    None => all.push((servers, line)),
                }
            }
        }
        one.vouched.extend(other.vouched);
        one
    }

    /// Returns what they mean for the store on the servers at `address`.
    pub(super) fn durability(self, address: &str) -> Durability {
        let lines = |lines: Vec<(Vec<String>, String)>| {
            let named = lines.into_iter().map(|(servers, line)| match servers.join(", ").as_str() {
                "" => line,
                servers => format!("{servers}: {line}"),
            });
            named.collect()
        };
        let vouched = (!self.vouched.is_empty()).then(|| {
            "writes are durable by the operator's word (store.durability is \"vouched\"), since the server doesn't show its settings"
                .to_owned()
        });
        Durability {
            name: format!("{} ({address})", self.name),
            problems: lines(self.problems),
            advice: lines(self.advice),
            vouched,
        }
    }
}

fn is_in_cluster(info: &HashMap<&str, &str>) -> bool {
    info.get("cluster_enabled").is_some_and(|enabled| *enabled == "1")
}

/// Returns the problems of the settings, one line each. Settings that cannot be read are also a problem.
fn problems(info: &HashMap<&str, &str>, settings: &HashMap<String, String>, unknown: &[&str]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut wants = |name: &str, right: &str, otherwise: &str| match settings.get(name).map(String::as_str) {
        Some(found) if found != right => {
            problems.push(format!("{name} is `{found}`: {otherwise}; set `{name} {right}`"));
        }
        _ => {}
    };
    wants("appendonly", "yes", "nothing survives a crash but the last snapshot");
    wants("appendfsync", "always", "the last writes before a crash are lost although they were answered");
    wants("no-appendfsync-on-rewrite", "no", "writes during a rewrite of the file are not flushed");
    wants(EVICTION, "noeviction", "threads are thrown away when memory is short");
    if let [first, rest @ ..] = unknown {
        let names = rest.iter().fold((*first).to_owned(), |names, name| format!("{names}, {name}"));
        problems.push(format!(
            "{names} cannot be read (the server does not allow CONFIG GET); if its provider guarantees that no \
             acknowledged write is lost, vouch for it with store.durability = \"vouched\" (docs/managed-redis.md)"
        ));
    }

    if let Some(found) = info.get("aof_last_write_status").filter(|status| **status != "ok") {
        problems.push(format!("aof_last_write_status is `{found}`: the file cannot be written; look at the disk"));
    }
    if settings.get(VALIDITY).is_some_and(|factor| factor == "0") {
        problems.push(format!(
            "{VALIDITY} is `0`: a replica that was cut off for long may take over without the last writes; \
             set `{VALIDITY} 10`"
        ));
    }
    problems
}

/// Returns what would keep more of a cluster working when something fails, one line each.
fn advice(settings: &HashMap<String, String>) -> Vec<String> {
    let refuses_all = settings.get(COVERAGE).is_some_and(|coverage| coverage == "yes");
    let line =
        format!("{COVERAGE} is `yes`: while one master is missing, all others refuse everything; set `{COVERAGE} no`");
    refuses_all.then_some(line).into_iter().collect()
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

    fn found(info: &HashMap<&str, &str>, settings: HashMap<String, String>) -> Durability {
        Settings::read(info, settings, Trust::Checked).durability("127.0.0.1:6379")
    }

    fn info() -> HashMap<&'static str, &'static str> {
        parse_info("# Server\r\nredis_version:7.0.15\r\nrole:master\r\naof_last_write_status:ok\r\n")
    }

    #[test]
    fn a_server_with_safe_settings_has_no_problems() {
        assert!(found(&info(), settings(&[])).problems.is_empty());
        assert_eq!(name_of(&info()), "Redis 7.0.15");
    }

    #[test]
    fn the_error_for_a_lossy_server_names_the_right_settings() {
        let settings = settings(&[("appendfsync", "everysec"), ("maxmemory-policy", "allkeys-lru")]);
        let error = OpenError::Lossy(found(&info(), settings));
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
        assert_eq!(found(&info, settings(&[(VALIDITY, "10")])).problems, [""; 0]);
        assert_snapshot!(found(&info, settings(&[(VALIDITY, "0")])).problems.join("\n"), @"cluster-replica-validity-factor is `0`: a replica that was cut off for long may take over without the last writes; set `cluster-replica-validity-factor 10`");
    }

    #[test]
    fn settings_that_cannot_be_read_are_one_problem_or_vouched_for() {
        assert_snapshot!(found(&info(), HashMap::new()).problems.join("\n"), @r#"appendonly, appendfsync, no-appendfsync-on-rewrite, maxmemory-policy cannot be read (the server does not allow CONFIG GET); if its provider guarantees that no acknowledged write is lost, vouch for it with store.durability = "vouched" (docs/managed-redis.md)"#);
        let vouched = Settings::read(&info(), HashMap::new(), Trust::Vouched).durability("127.0.0.1:6379");
        assert_eq!(vouched.problems, [""; 0]);
        assert_snapshot!(vouched.vouched.unwrap(), @r#"writes are durable by the operator's word (store.durability is "vouched"), since the server doesn't show its settings"#);
    }

    #[test]
    fn what_a_server_says_counts_for_more_than_the_operators_word() {
        let info = parse_info("role:master\r\nmaxmemory_policy:volatile-lru\r\naof_last_write_status:ok\r\n");
        let told = [("appendfsync".to_owned(), "everysec".to_owned())];
        let found = Settings::read(&info, told.into(), Trust::Vouched).durability("127.0.0.1:6379");
        assert_snapshot!(found.problems.join("\n"), @r"
        appendfsync is `everysec`: the last writes before a crash are lost although they were answered; set `appendfsync always`
        maxmemory-policy is `volatile-lru`: threads are thrown away when memory is short; set `maxmemory-policy noeviction`
        ");
    }

    #[test]
    fn what_several_servers_have_in_common_is_said_once() {
        let info = parse_info("cluster_enabled:1\r\nrole:master\r\naof_last_write_status:ok\r\n");
        let server = |address: &str| Settings::read(&info, settings(&[(COVERAGE, "yes")]), Trust::Checked).at(address);
        let found = Settings::both(server("10.0.0.1:7001"), server("10.0.0.2:7002")).durability("");
        assert_snapshot!(found.advice.join("\n"), @"10.0.0.1:7001, 10.0.0.2:7002: cluster-require-full-coverage is `yes`: while one master is missing, all others refuse everything; set `cluster-require-full-coverage no`");
    }

    #[test]
    fn a_replica_with_a_full_disk_is_named() {
        let info = parse_info("role:slave\r\naof_last_write_status:err\r\n");
        let found = Settings::read(&info, settings(&[]), Trust::Checked).of_master().durability("127.0.0.1:6379");
        assert_snapshot!(found.problems.join("\n"), @r"
        aof_last_write_status is `err`: the file cannot be written; look at the disk
        its role is `slave`: a replica takes no writes; use the address of the master
        ");
    }
}
