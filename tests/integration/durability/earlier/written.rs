//! Writes a fixture with an earlier program: has it work with today's stand-ins, holds back calls of it so that it stands
//! still in every stage, and kills it. `tests/fixtures/stores/README.md` says how to run this.

use std::{path::Path, process::Command};

use countersign::config::environment;

use super::*;
use crate::durability::{
    gate::{Calls, Gate},
    hot_path::asked,
};

/// The earlier program, and the name of the fixture. Without them, nothing is written.
const PROGRAM: &str = "EARLIER_PROGRAM";
const FIXTURE: &str = "EARLIER_FIXTURE";

/// The settings with which calls can be held back for long enough, and all workers are busy with three threads.
const SLOW: [(&str, &str); 3] = [
    ("COUNTERSIGN__SLACK__TIMEOUT", "60s"),
    ("COUNTERSIGN__UPGRADE__TIMEOUT", "60s"),
    ("COUNTERSIGN__WORKERS__THREADS", "3"),
];
/// The settings with which a card expires soon.
const SOON: [(&str, &str); 2] =
    [("COUNTERSIGN__APPROVALS__EXPIRES_AFTER", "60s"), ("COUNTERSIGN__APPROVALS__REMIND_BEFORE", "0s")];

#[tokio::test(flavor = "multi_thread")]
#[ignore = "no test: writes the fixtures"]
async fn by_an_earlier_program() {
    let environment = environment();
    let (Some(program), Some(fixture)) = (environment.get(PROGRAM), environment.get(FIXTURE)) else { return };
    for kind in [Kind::Sqlite, Kind::Redis] {
        write(Path::new(program), &kind.fixture(fixture), kind).await;
    }
}

async fn write(program: &Path, fixture: &Path, kind: Kind) {
    let mut server = match kind {
        Kind::Sqlite => None,
        Kind::Redis => Some(RedisServer::start().await),
    };
    let world = world(tempfile::tempdir().unwrap(), server.as_ref(), SystemClock).await;
    ALL.iter().for_each(|name| drop(world.upgrade.has(name, "inactive")));
    let calls = Calls::with(None);
    let (mut gates, mut settings) = (Vec::new(), world.settings());
    for origin in world.origins() {
        let gate = Gate::before(&origin, calls.clone()).await;
        settings.values_mut().for_each(|value| *value = value.replace(&origin, gate.url()));
        gates.push(gate);
    }
    let start = async |more: &[(&str, &str)]| {
        let mut command = Command::new(program);
        command.arg("serve").env_clear().envs(&settings).envs(more.iter().copied());
        let bot = Process::start(command, &world.log());
        eventually("a bot that is connected", || bot.is_up() && world.slack.sockets() > 0).await;
        bot
    };
    let mut threads = BTreeMap::new();
    let mut asks = |name: &str| {
        let root = asked(&world, name);
        threads.insert(name.to_owned(), root.clone());
        root
    };

    let bot = start(&SOON).await;
    let root = asks(EXPIRING);
    eventually("a card", || card_of(&world, &root).is_some()).await;
    assert!(bot.stop().await.success(), "{}", bot.log());
    eventually("no connection", || world.slack.sockets() == 0).await;

    let bot = start(&SLOW).await;
    for name in [OPEN, APPROVED, INTENDED, MADE, CLICKED] {
        let root = asks(name);
        eventually("a card", || card_of(&world, &root).is_some()).await;
    }
    let root = world.slack.says("ana", "experiments", "@countersign start an experiment", None).unwrap();
    eventually("a question", || said(&world, &root).len() == 1).await;
    let question = root;
    calls.stops(["chat.postMessage", UNSENT], false);
    calls.stops(["chat.postMessage", SENT], true);
    asks(UNSENT);
    asks(SENT);
    eventually("two cards that are on their way", || calls.stopped() == 2).await;
    let id = |name: &str| world.upgrade.experiment(name).unwrap()["id"].as_str().unwrap().to_owned();
    calls.stops(["GET /api/experiments/single", &id(APPROVED)], false);
    calls.stops(["/experiments/state", &id(INTENDED)], false);
    calls.stops(["/experiments/state", &id(MADE)], true);
    calls.stops(["users.info", world.slack.user("cy").as_str()], false);
    for (person, name) in [("bo", APPROVED), ("bo", INTENDED), ("bo", MADE), ("cy", CLICKED)] {
        let card = card_of(&world, &threads[name]).unwrap();
        world.slack.clicks(person, "experiments", &card.ts, "Start experiment").await.unwrap();
    }
    eventually("clicks and changes that are on their way", || calls.stopped() == 6).await;
    threads.insert(MENTIONED.to_owned(), asked(&world, MENTIONED));
    eventually("an acknowledged mention", || {
        let deliveries = world.slack.recorded().deliveries;
        let ours = deliveries.iter().filter(|delivery| delivery.payload.to_string().contains(MENTIONED));
        ours.filter(|delivery| delivery.about == "app_mention").any(|delivery| delivery.failure.is_none())
    })
    .await;
    threads.insert(ASKED.to_owned(), question);
    bot.kill();
    if let Some(server) = &mut server {
        server.kill();
    }
    drop(gates);
    world.slack.stop().await;
    assert!(said(&world, &threads[MENTIONED]).is_empty());
    assert_eq!((said(&world, &threads[UNSENT]).len(), said(&world, &threads[SENT]).len()), (0, 1));

    std::fs::remove_dir_all(fixture).ok();
    copy(world.folder(), fixture);
    std::fs::remove_file(fixture.join("bot.log")).unwrap();
    std::fs::remove_file(fixture.join("threads.sqlite.lock")).ok();
    if kind == Kind::Sqlite {
        // The log is ten times as long as what is in it.
        let file = rusqlite::Connection::open(fixture.join("threads.sqlite")).unwrap();
        let log = |row: &rusqlite::Row<'_>| row.get::<_, bool>(0);
        assert!(!file.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], log).unwrap(), "nobody reads it");
    }
    if let Some(server) = &server {
        copy(server.directory(), &fixture.join("server"));
        std::fs::remove_file(fixture.join("server/redis.log")).unwrap();
    }
    let left = LeftBehind { at: SystemClock.now().seconds(), threads };
    std::fs::write(fixture.join("left.json"), serde_json::to_string_pretty(&left).unwrap() + "\n").unwrap();
}
