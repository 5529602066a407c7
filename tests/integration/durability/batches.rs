//! Tests with simulated participants and a bot that is killed again and again on the way: nobody is enrolled twice, nobody
//! is forgotten, and no status is changed twice.

use std::{collections::HashMap, time::Duration};

use countersign_sandbox::slack::world::message::Message;
use tokio::time::{Instant, sleep};

use super::{
    process::{Process, serve},
    script::World,
};
use crate::support::redis::RedisServer;

const USERS: usize = 300;
const BOUND: Duration = Duration::from_secs(90);

#[tokio::test(flavor = "multi_thread")]
async fn a_test_outlives_its_bots_with_sqlite() {
    a_test_outlives_its_bots(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_outlives_its_bots_with_redis() {
    let server = RedisServer::start().await;
    a_test_outlives_its_bots(Some(server.url())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_of_every_phase_outlives_its_bots_with_sqlite() {
    phases_outlive_their_bots(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_of_every_phase_outlives_its_bots_with_redis() {
    let server = RedisServer::start().await;
    phases_outlive_their_bots(Some(server.url())).await;
}

async fn a_test_outlives_its_bots(redis: Option<String>) {
    let world = World::start(redis).await;
    world.upgrade.has("Trial", "enrolling");
    let request = format!("test the balance of Trial with {USERS} users");
    let marked = || marks_of(&world).values().sum::<usize>();
    plays(&world, &request, "Enroll test users", "| Share", &[1, 90, 200], marked).await;
    let marks = marks_of(&world);
    let twice: Vec<_> = marks.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "enrolled more than once: {twice:?}");
    assert_eq!(marks.len(), USERS);
}

/// Killed after every mark and every change of status: once in each batch that changes something.
async fn phases_outlive_their_bots(redis: Option<String>) {
    let world = World::start(redis).await;
    let changes = || {
        let changes = world.upgrade.effects();
        changes.iter().filter(|entry| entry.path.ends_with("/mark") || entry.path.ends_with("/state")).count()
    };
    // A mark before the start, the start, two marks, the pause, three marks.
    let request = "test consistency rules for Math Hints";
    let words = plays(&world, request, "Run the test", "| Observed", &[1, 2, 3, 5, 6], changes).await;
    assert!(words.contains("all 6 observations match the rules."), "{words}");
    let experiment = world.upgrade.experiment("Math Hints").unwrap();
    assert_eq!(experiment["state"], "paused");
    assert_eq!(experiment["stateTimeLogs"].as_array().unwrap().len(), 2, "started once, paused once");
    let marks = marks_of(&world);
    assert_eq!(marks.len(), 3);
    let joined = marks.iter().find(|(user, _)| user.ends_with("0002")).unwrap();
    assert!(*joined.1 <= 2, "once while it runs, once while it is paused: {marks:?}");
}

/// Asks for a test, approves it and kills the bot whenever `count` reaches one of `kills`. Returns what the thread says when
/// `end` is said.
async fn plays(
    world: &World,
    request: &str,
    button: &str,
    end: &str,
    kills: &[usize],
    count: impl Fn() -> usize,
) -> String {
    world.upgrade.is_slow(Duration::from_millis(5));
    let start = || Process::start(serve(&world.settings()), &world.log());
    let mut bot = start();
    let root = world.slack.says("ana", "experiments", &format!("@countersign {request}"), None).unwrap();
    let said = || -> Vec<Message> {
        let all = world.slack.thread("experiments", &root);
        all.into_iter().filter(|message| message.by_app && !message.deleted).collect()
    };
    let words = || said().iter().map(Message::words).collect::<Vec<_>>().join("\n");
    let (mut pressed, mut kills) = (false, kills.iter());
    let mut next_kill = kills.next();
    let deadline = Instant::now() + BOUND;
    while !words().contains(end) {
        assert!(Instant::now() < deadline, "it does not end: {}\n{}", words(), bot.log());
        if let (false, Some(card)) = (pressed, said().into_iter().find(|message| message.button(button).is_some())) {
            world.slack.clicks("bo", "experiments", &card.ts, button).await.unwrap();
            pressed = true;
        }
        if next_kill.is_some_and(|kill| count() >= *kill) {
            bot.kill();
            bot = start();
            next_kill = kills.next();
        }
        sleep(Duration::from_millis(2)).await;
    }
    assert!(next_kill.is_none(), "it was killed as often as it should be");
    bot.stop().await;
    words()
}

/// How often each participant was at the decision point.
fn marks_of(world: &World) -> HashMap<String, usize> {
    let mut marks = HashMap::new();
    for entry in world.upgrade.effects() {
        if let (true, Some(user)) = (entry.path.ends_with("/mark"), entry.user_id) {
            *marks.entry(user).or_default() += 1;
        }
    }
    marks
}
