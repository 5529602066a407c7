//! A change that takes effect after its answer was given up: looked for until it is quiet, and never made twice.

use std::time::Duration;

use countersign::experiments::settings::Upgrade;
use countersign_sandbox::faults::Fault;

use crate::support::{
    bot::{TestBot, eventually},
    thread::Thread,
};

async fn impatient() -> TestBot {
    TestBot::with_settings(|config| config.sections.get_mut::<Upgrade>().timeout = Duration::from_secs(1)).await
}

/// What is asked, the button that approves it, and its request.
const CHANGES: [(&str, &str, &str); 4] = [
    ("start Math Hints", "Start experiment", "POST /api/experiments/state"),
    ("change the weights of Math Hints to 70/30", "Update experiment", "PUT /api/experiments"),
    ("delete Math Hints", "Delete permanently", "DELETE /api/experiments"),
    (
        "create experiment Foo in assign-prog with conditions control, variant weights 70/30 at SelectSection/area_model",
        "Create experiment",
        "POST /api/experiments ",
    ),
];

/// Approved, and given up by the client.
async fn given_up<'a>(bot: &'a TestBot, asked: &str, button: &str) -> Thread<'a> {
    let mut thread = bot.user("ana").says(asked).await;
    thread.press("bo", button).await;
    eventually("a word about it", || thread.last().contains("No answer")).await;
    thread.skip();
    thread
}

/// How often a request was sent.
fn sent(bot: &TestBot, request: &str) -> usize {
    let sent = bot.upgrade.ledger();
    sent.iter().filter(|entry| format!("{} {} ", entry.method, entry.path).contains(request)).count()
}

/// A minute and a half goes by, second by second.
async fn time_passes(bot: &TestBot) {
    for _ in 0..45 {
        bot.clock.advance(Duration::from_secs(2));
        bot.rests().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_takes_effect_late_is_made_once() {
    for (asked, button, request) in CHANGES {
        for late in [6, 20, 50] {
            let bot = impatient().await;
            bot.upgrade.delays_next(Duration::from_secs(late), request);
            let mut thread = given_up(&bot, asked, button).await;
            time_passes(&bot).await;
            let heard = thread.heard();
            assert!(heard.contains("✅"), "{asked}, {late} s late: {heard}");
            assert_eq!(bot.upgrade.effects().len(), 1, "{asked}, {late} s late");
            bot.finish().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_hurt_twice_is_not_sent_again_and_a_person_is_asked() {
    for (asked, button, request) in &CHANGES[2..] {
        let bot = impatient().await;
        bot.upgrade.will(request, Fault::Hang);
        let mut thread = given_up(&bot, asked, button).await;
        time_passes(&bot).await;
        let heard = thread.heard();
        assert!(heard.contains("[Check again] [Mark as done]"), "{asked}: {heard}");
        assert_eq!(sent(&bot, request), 1, "{asked}");
        assert!(bot.upgrade.effects().is_empty());
        bot.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_be_repeated_is_sent_three_times_in_all_as_the_settings_say() {
    let bot = impatient().await;
    let (asked, button, request) = CHANGES[0];
    for _ in 0..4 {
        bot.upgrade.will(request, Fault::Hang);
    }
    let mut thread = given_up(&bot, asked, button).await;
    for _ in 0..4 {
        time_passes(&bot).await;
    }
    let heard = thread.heard();
    assert!(heard.contains("[Check again] [Mark as done]"), "{heard}");
    assert_eq!(sent(&bot, request), 3);
    let settings = include_str!("../../../config/default.toml");
    assert_eq!(settings.matches("three times in all").count(), 2, "of the platform, and of the simulations");
}

#[tokio::test(flavor = "multi_thread")]
async fn looking_goes_on_after_a_restart() {
    let mut bot = impatient().await;
    let (asked, button, request) = CHANGES[3];
    bot.upgrade.delays_next(Duration::from_secs(40), request);
    let root = given_up(&bot, asked, button).await.root.clone();
    bot.clock.advance(Duration::from_secs(10));
    bot.rests().await;
    bot.restart().await;
    time_passes(&bot).await;
    let mut thread = Thread::new(&bot, "experiments", root);
    let heard = thread.heard();
    assert!(heard.contains("✅ *Created “Foo”"), "{heard}");
    assert_eq!(bot.upgrade.effects().len(), 1);
}
