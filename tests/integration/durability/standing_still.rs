//! A process that stands still after its last check, and wakes after another has looked and sent: what it was about to send
//! must not leave any more.
//!
//! Both are here in one process. The platform keeps back an answer that the first worker waits for; the clock moves past its
//! lease and its permit; a second worker takes over and goes on; then the first one is let go.

use std::{cell::Cell, collections::HashMap, time::Duration};

use countersign::experiments::settings::Upgrade;
use countersign_sandbox::ledger::Request;

use crate::support::bot::{TestBot, eventually};

/// Longer than any test takes, so that only the clock of the test ends it.
const LEASE: Duration = Duration::from_secs(60);
const TIMEOUT: Duration = Duration::from_secs(20);

async fn bot() -> TestBot {
    TestBot::with_settings(|config| {
        config.workers.lease = LEASE;
        config.sections.get_mut::<Upgrade>().timeout = TIMEOUT;
    })
    .await
}

/// Requests whose path ends like this, whatever came of them.
fn sent(bot: &TestBot, end: &str) -> Vec<Request> {
    bot.upgrade.ledger().into_iter().filter(|entry| entry.method == "POST" && entry.path.ends_with(end)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_does_not_leave_after_another_process_has_looked_and_sent() {
    let mut bot = bot().await;
    bot.upgrade.has("Pilot", "inactive");
    let thread = bot.user("ana").says("start all inactive experiments in assign-prog").await;
    let held = bot.upgrade.holds_next_answer("GET /api/experiments/single/");
    thread.press("bo", "Start 2 experiments").await;
    held.arrived().await; // the intent is written, nothing has left, and the first worker stands still here

    bot.clock.advance(Duration::from_secs(3600));
    eventually("the second worker to start both", || sent(&bot, "/experiments/state").len() == 2).await;
    eventually("the outcome to be told", || thread.last().contains("Approved by bo.")).await;
    held.let_go();
    drop(thread);
    bot.stop().await; // waits for both
    assert_eq!(sent(&bot, "/experiments/state").len(), 2, "each was started once");
    for name in ["Math Hints", "Pilot"] {
        let experiment = bot.upgrade.experiment(name).unwrap();
        assert_eq!(experiment["stateTimeLogs"].as_array().unwrap().len(), 1, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_does_not_go_on_after_another_process_has_taken_it_over() {
    let mut bot = bot().await;
    bot.upgrade.has("Trial", "enrolling");
    let thread = bot.user("ana").says("test the balance of Trial with 20 users").await;
    let held = bot.upgrade.holds_next_answer("POST /api/v6/assign");
    thread.press("bo", "Enroll test users").await;
    held.arrived().await;

    // Past the lease; then past the time in flight that the second worker waits.
    bot.clock.advance(LEASE);
    let looked = || bot.upgrade.ledger().iter().any(|entry| entry.path.ends_with("/check/individualAssignment"));
    let polls = Cell::new(0_u32);
    eventually("the second worker to look who is enrolled", || {
        polls.set(polls.get() + 1);
        if polls.get().is_multiple_of(10) {
            bot.clock.advance(Duration::from_secs(1));
        }
        looked()
    })
    .await;
    eventually("the second worker to enrol the rest", || sent(&bot, "/v6/mark").len() >= 20).await;
    // The chart follows in a message of its own.
    let told = || thread.messages().iter().any(|message| message.words().contains("| Share"));
    eventually("the outcome to be told", told).await;
    held.let_go();
    drop(thread);
    bot.stop().await;
    let mut marks: HashMap<String, usize> = HashMap::new();
    for entry in sent(&bot, "/v6/mark") {
        *marks.entry(entry.user_id.unwrap()).or_default() += 1;
    }
    assert_eq!(marks.len(), 20);
    assert!(marks.values().all(|times| *times == 1), "enrolled once each: {marks:?}");
}
