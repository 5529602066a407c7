//! A thousand participants and a bot that is killed again and again on the way: nobody is enrolled twice, nobody is
//! forgotten.

use std::{collections::HashMap, time::Duration};

use countersign::sandbox::slack::world::message::Message;
use tokio::time::{Instant, sleep};

use super::{
    process::{Process, serve},
    script::World,
};
use crate::support::redis::RedisServer;

const USERS: usize = 300;
/// After how many marks the bot is killed.
const KILLS: [usize; 3] = [1, 90, 200];
const BUTTON: &str = "Enrol test users";
const BOUND: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_test_outlives_its_bots_with_sqlite() {
    a_test_outlives_its_bots(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_outlives_its_bots_with_redis() {
    let server = RedisServer::start().await;
    a_test_outlives_its_bots(Some(server.url())).await;
}

async fn a_test_outlives_its_bots(redis: Option<String>) {
    let world = World::start(redis).await;
    world.upgrade.has("Trial", "enrolling");
    world.upgrade.is_slow(Duration::from_millis(5));
    let start = || Process::start(serve(&world.settings()), &world.log());
    let mut bot = start();
    let text = format!("@countersign test the balance of Trial with {USERS} users");
    let root = world.slack.says("ana", "experiments", &text, None).unwrap();
    let said = || -> Vec<Message> {
        let all = world.slack.thread("experiments", &root);
        all.into_iter().filter(|message| message.by_app && !message.deleted).collect()
    };
    let (mut pressed, mut kills) = (false, KILLS.iter());
    let mut next_kill = kills.next();
    let deadline = Instant::now() + BOUND;
    while !said().iter().any(|message| message.words().contains("| Share")) {
        let words: Vec<_> = said().iter().map(Message::words).collect();
        assert!(Instant::now() < deadline, "it does not end: {words:#?}\n{}", bot.log());
        if let (false, Some(card)) = (pressed, said().into_iter().find(|message| message.button(BUTTON).is_some())) {
            world.slack.clicks("bo", "experiments", &card.ts, BUTTON).await.unwrap();
            pressed = true;
        }
        if next_kill.is_some_and(|marks| marks_of(&world).values().sum::<usize>() >= *marks) {
            bot.kill();
            bot = start();
            next_kill = kills.next();
        }
        sleep(Duration::from_millis(2)).await;
    }
    assert!(next_kill.is_none(), "it was killed as often as it should be");
    let marks = marks_of(&world);
    let twice: Vec<_> = marks.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "enrolled more than once: {twice:?}");
    assert_eq!(marks.len(), USERS);
    bot.stop().await;
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
