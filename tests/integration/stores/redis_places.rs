//! Where people have their Redis: behind TLS, at a provider that shows no settings, with a user of few rights, behind
//! Sentinels; and what is said where it cannot be used.

use std::{path::Path, process::Command, sync::Arc, time::Duration};

use countersign::{
    cause,
    clock::{Clock as _, SystemClock},
    graph::store::{Delivery, Handling, Ingested, Store},
    store::redis::{RedisStore, address::Access, durability::Trust},
    wire::tls::{self, Authorities, Identity},
};

use super::{
    cluster::Cluster,
    fixture::*,
    redis::{insist, set},
};
use crate::support::{
    certificates::make_certificates,
    ports::free_port,
    redis::{CHECKED, RedisServer},
    redis_cluster::RedisCluster,
    sentinel::Watched,
};

/// The operator vouches for the servers.
const VOUCHED: Access = Access { trust: Trust::Vouched, tls: None };
/// How long no server fails.
const LONG: Duration = Duration::from_secs(60);

fn hello(n: u32, key: &str) -> Delivery {
    delivery(&thread(n), key, true, &[format!("{n}:{key}")], SystemClock.now())
}

/// A store in which something can be stored and found again.
async fn works(url: &str, access: &Access) {
    let store = RedisStore::open(url, access).await.unwrap();
    assert!(matches!(
        store.ingest(&hello(1, "hello"), Handling::Later).await.unwrap().0,
        Ingested::New(_) | Ingested::Duplicate
    ));
    assert_eq!(words(&store.messages(&thread(1), 0, None).await.unwrap()), ["hello"]);
    assert_eq!(store.probe().await.unwrap(), []);
}

/// Why a store cannot be opened, with all causes.
async fn refusal(url: &str, access: &Access) -> String {
    cause::chain(&RedisStore::open(url, access).await.expect_err("it cannot be used"))
}

/// The certificates of a folder as a client uses them; without the authority's if it is not known, and without its own.
fn with_certificates(folder: &Path, is_certified: bool) -> Access {
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let identity = is_certified.then(|| Identity::from_pem(&read("server.pem"), &read("server.key")).unwrap());
    let tls = tls::client_as(&Authorities::from_pem(read("ca.pem")).unwrap(), identity).unwrap();
    Access { trust: Trust::Checked, tls: Some(Arc::new(tls)) }
}

/// The settings of a server that encrypts at a port besides.
fn encrypting(folder: &Path, port: u16, clients: &str) -> Vec<String> {
    let file = |name: &str| folder.join(name).display().to_string();
    let settings = [
        ("--tls-port", port.to_string()),
        ("--tls-cert-file", file("server.pem")),
        ("--tls-key-file", file("server.key")),
        ("--tls-ca-cert-file", file("ca.pem")),
        ("--tls-auth-clients", clients.to_owned()),
    ];
    settings.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect()
}

async fn start_with(settings: &[String]) -> RedisServer {
    RedisServer::start_with(&settings.iter().map(String::as_str).collect::<Vec<_>>()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_encrypted_server_is_a_store_and_what_is_wrong_with_one_is_told() {
    let (folder, others) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    make_certificates(folder.path(), "DNS:localhost");
    make_certificates(others.path(), "DNS:localhost");
    let (open, closed) = (free_port(), free_port());
    let plain = start_with(&encrypting(folder.path(), open, "no")).await;
    let _strict = start_with(&encrypting(folder.path(), closed, "yes")).await;
    let (anyone, certified) = (with_certificates(folder.path(), false), with_certificates(folder.path(), true));
    works(&format!("rediss://localhost:{open}"), &anyone).await;
    works(&format!("valkeys://localhost:{closed}"), &certified).await;
    works(&plain.url(), &certified).await;

    let strangers = with_certificates(others.path(), false);
    for (url, access, what) in [
        (format!("rediss://localhost:{open}"), &strangers, "name the certificate of that authority in store.ca_file"),
        (format!("rediss://127.0.0.1:{open}"), &anyone, "isn't for 127.0.0.1"),
        (format!("rediss://localhost:{}", plain.port()), &anyone, "an address without TLS begins with redis://"),
        (format!("rediss://localhost:{closed}"), &anyone, "store.cert_file and store.key_file"),
        (format!("redis://localhost:{open}"), &anyone, "if it expects TLS, the address begins with rediss://"),
        (format!("rediss://localhost:{open}/#insecure"), &anyone, "store.ca_file instead of #insecure"),
    ] {
        let told = refusal(&url, access).await;
        assert!(told.contains(what), "{url}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_encrypted_cluster_is_a_store() {
    let folder = tempfile::tempdir().unwrap();
    make_certificates(folder.path(), "IP:127.0.0.1");
    let ports: Vec<u16> = (0..3).map(|_| free_port()).collect();
    let all = ["--tls-cluster", "yes", "--tls-replication", "yes"].map(str::to_owned);
    let settings = |n: usize| [encrypting(folder.path(), ports[n], "yes"), all.to_vec()].concat();
    let _cluster = RedisCluster::start_with(0, LONG, settings).await;
    let (url, access) = (format!("rediss://127.0.0.1:{}", ports[0]), with_certificates(folder.path(), true));
    let store = RedisStore::open(&url, &access).await.unwrap();
    for n in 0..12 {
        assert_eq!(store.ingest(&hello(n, "hello"), Handling::Later).await.unwrap().0, Ingested::New(1));
        assert_eq!(words(&store.messages(&thread(n), 0, None).await.unwrap()), ["hello"]);
    }
    assert_eq!(store.probe().await.unwrap(), []);
}

/// Lets a user in, with these rights.
async fn let_in(server: &RedisServer, user: &str, rights: &[&str]) {
    let mut command = redis::cmd("ACL");
    command.arg(&["SETUSER", user, "reset", "on", ">sesame"]).arg(rights);
    command.query_async::<()>(&mut server.connection().await).await.unwrap();
}

fn url_of(user: &str, server: &RedisServer) -> String {
    format!("redis://{user}:sesame@127.0.0.1:{}", server.port())
}

#[tokio::test]
async fn an_operator_can_vouch_for_what_a_server_does_not_show_but_not_against_it() {
    let server = RedisServer::start().await;
    let_in(&server, "ana", &["~countersign:*", "&*", "+@all", "-config"]).await;
    let told = refusal(&url_of("ana", &server), &CHECKED).await;
    assert!(told.contains("vouch for it with store.durability = \"vouched\""), "{told}");
    works(&url_of("ana", &server), &VOUCHED).await;
    let store = RedisStore::open(&url_of("ana", &server), &VOUCHED).await.unwrap();
    let found = store.durability().await.unwrap();
    assert!(found.vouched.is_some_and(|who| who.contains("by the operator's word")));
    assert_eq!(found.problems, [""; 0]);

    set(&server, "maxmemory-policy", "allkeys-lru").await;
    let told = refusal(&url_of("ana", &server), &VOUCHED).await;
    assert!(told.contains("maxmemory-policy is `allkeys-lru`"), "what it does show counts: {told}");
    set(&server, "maxmemory-policy", "noeviction").await;
    set(&server, "appendfsync", "everysec").await;
    let told = refusal(&server.url(), &VOUCHED).await;
    assert!(told.contains("appendfsync is `everysec`"), "{told}");
}

/// The line about the store of `countersign check`, with these settings.
fn check(settings: &[(&str, &str)]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command.arg("check").env_clear().envs(settings.iter().copied());
    command.envs([("SLACK_API_URL", "http://127.0.0.1:9/api"), ("UPGRADE_API_URL", "http://127.0.0.1:9/api")]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    said.lines().find(|line| line.contains(" store ")).unwrap_or(&said).to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn check_says_who_vouches_and_which_file_is_no_good() {
    let server = RedisServer::start_with(&["--rename-command", "CONFIG", ""]).await;
    let (url, port) = (server.url(), server.port());
    let told = check(&[("REDIS_URL", &url), ("COUNTERSIGN__STORE__DURABILITY", "vouched")]);
    assert!(told.starts_with("ok    store    Redis "), "{told}");
    let expected = format!(
        "(127.0.0.1:{port}), writes are durable by the operator's word (store.durability is \"vouched\"), \
         since the server doesn't show its settings"
    );
    assert!(told.ends_with(&expected), "{told}");
    let told = check(&[("REDIS_URL", &url)]);
    assert!(told.starts_with("wrong store    "), "{told}");
    let told =
        check(&[("REDIS_URL", &format!("rediss://127.0.0.1:{port}")), ("COUNTERSIGN__STORE__CA_FILE", "/none.pem")]);
    assert!(told.contains("cannot read store.ca_file, /none.pem"), "{told}");
}

#[tokio::test]
async fn rights_that_are_missing_are_told_with_the_command_that_gives_them() {
    let server = RedisServer::start().await;
    for (rights, what) in [
        (["~countersign:*", "+@all", "-evalsha", "-zadd"], "`ACL SETUSER ana +evalsha +zadd` gives them"),
        (["~other:*", "+@all", "&*", "-config"], "`ACL SETUSER ana ~countersign:*` gives them"),
        (["~*", "+@all", "-multi", "&*"], "`ACL SETUSER ana +multi"),
        (["~*", "+@all", "-info", "&*"], "the user in REDIS_URL lacks a right"),
    ] {
        let_in(&server, "ana", &rights).await;
        let told = refusal(&url_of("ana", &server), &VOUCHED).await;
        assert!(told.contains(what), "{rights:?}: {told}");
    }
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut server.connection().await).await.unwrap();
    assert_eq!(keys, [""; 0], "asking stores nothing");
    let told = refusal(&url_of("ana", &server).replace("sesame", "wrong"), &CHECKED).await;
    assert!(told.contains("refuses the user name or the password in REDIS_URL"), "{told}");
    let_in(&server, "bo", &["~*", "+@all", "&*"]).await;
    let_in(&server, "default", &["~*", "+@all", "&*"]).await;
    let told = refusal(&server.url(), &CHECKED).await;
    assert!(told.contains("the server asks for a password; write it in REDIS_URL"), "{told}");
    works(&url_of("bo", &server), &CHECKED).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rights_on_the_page_are_enough() {
    const PAGE: &str = include_str!("../../../docs/managed-redis.md");
    let line = PAGE.lines().find_map(|line| line.trim().strip_prefix("ACL SETUSER countersign on >password ")).unwrap();
    let rights: Vec<&str> = line.split(' ').collect();
    let (f, single) = (Cluster::fresh().await, RedisServer::start().await);
    for server in f.servers().servers.iter().chain([&single]) {
        let_in(server, "ana", &rights).await;
    }
    works(&url_of("ana", &single), &CHECKED).await;
    works(&f.servers().url().replace("redis://", "redis://ana:sesame@"), &CHECKED).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_server_of_a_cluster_is_asked_for_its_rights() {
    let f = Cluster::fresh().await;
    let servers = &f.servers().servers;
    for server in servers {
        let_in(server, "bo", &["~countersign:*", "&*", "+@all"]).await;
    }
    let url = f.servers().url().replace("redis://", "redis://bo:sesame@");
    works(&url, &CHECKED).await;
    let_in(&servers[4], "bo", &["~countersign:*", "&*", "+@all", "-wait"]).await;
    let told = refusal(&url, &CHECKED).await;
    let expected =
        format!("127.0.0.1:{}: its user `bo` lacks rights; `ACL SETUSER bo +wait` gives them", servers[4].port());
    assert!(told.contains(&expected), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_makes_a_cluster_fail_as_a_whole_is_told() {
    let f = Cluster::fresh().await;
    let servers = &f.servers().servers;
    for server in servers {
        set(server, "cluster-require-full-coverage", "yes").await;
    }
    let advice = f.store().durability().await.unwrap().advice;
    for server in servers {
        set(server, "cluster-require-full-coverage", "no").await;
    }
    let [line] = advice.as_slice() else { panic!("one line: {advice:?}") };
    assert!(
        line.contains(
            "while one master is missing, all others refuse everything; set `cluster-require-full-coverage no`"
        )
    );
    assert!(servers.iter().all(|server| line.contains(&server.port().to_string())), "{line}");
    assert_eq!(f.store().durability().await.unwrap().advice, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_announced_address_where_nobody_or_somebody_else_answers_is_told() {
    let f = Cluster::fresh().await;
    let cluster = f.servers();
    let bus = free_port().to_string();
    let stranger = RedisServer::start_with(&["--cluster-enabled", "yes", "--cluster-port", &bus]).await;
    let own = cluster.servers[1].port();
    let mut told = Vec::new();
    for port in [1, stranger.port()] {
        set(&cluster.servers[1], "cluster-announce-port", &port.to_string()).await;
        cluster.until("the address has changed", 0, |nodes| nodes.iter().any(|node| node.port == port)).await;
        told.push(refusal(&cluster.servers[0].url(), &CHECKED).await);
    }
    set(&cluster.servers[1], "cluster-announce-port", "0").await;
    for n in 0..cluster.servers.len() {
        cluster.until("the address is right", n, |nodes| nodes.iter().any(|node| node.port == own)).await;
    }
    assert!(
        told[0].contains("the other servers announce one at 127.0.0.1:1, and nothing answers there"),
        "{}",
        told[0]
    );
    let foreign = format!("the server that answers at 127.0.0.1:{} isn't the one", stranger.port());
    assert!(told[1].contains(&foreign) && told[1].contains("set `cluster-announce-ip`"), "{}", told[1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sentinel_is_told_from_a_server_and_one_of_three_is_not_believed() {
    let mut watched = Watched::start().await;
    let told = refusal(&watched.url_of_one(), &CHECKED).await;
    assert!(told.contains("is a Sentinel, which stores nothing; write REDIS_URL as redis+sentinel://"), "{told}");
    assert!(told.contains("/mymaster"), "{told}");
    works(&watched.url(), &CHECKED).await;
    let told = refusal(&watched.url().replace("/mymaster", "/other"), &CHECKED).await;
    assert!(told.contains("0 of 3 Sentinels tell which server is the master `other`"), "{told}");
    let url = watched.leaves_one();
    let told = refusal(&url, &CHECKED).await;
    assert!(told.contains("1 of 3 Sentinels tell which server is the master `mymaster`"), "{told}");
}

/// Stores messages one after the other until there are so many, each until it is acknowledged.
async fn hears(store: &dyn Store, from: u32, to: u32) {
    for n in from..to {
        let message = hello(1, &n.to_string());
        insist("the message", || store.ingest(&message, Handling::Later)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_by_sentinels_is_followed_and_loses_nothing() {
    let mut watched = Watched::start().await;
    let store = RedisStore::open(&watched.url(), &CHECKED).await.unwrap();
    let found = store.durability().await.unwrap();
    assert!(found.name.contains("1 master and 1 replica watched by Sentinel as `mymaster`"), "{}", found.name);
    hears(&store, 0, 10).await;
    watched.servers[0].kill();
    hears(&store, 10, 20).await;
    watched.until_master(1).await;
    // The former master returns as one, until the Sentinels make it a replica.
    watched.servers[0].restart().await;
    hears(&store, 20, 30).await;
    watched.until_replica(0).await;
    let ours = thread(1);
    let heard = words(&insist("what was heard", || store.messages(&ours, 0, None)).await);
    let expected: Vec<_> = (0..30).map(|n: u32| n.to_string()).collect();
    assert_eq!(heard, expected, "each message once, in order");
}
