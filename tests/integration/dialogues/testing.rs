//! Tests of an experiment with simulated participants.
//!
//! Who gets what is drawn from ids that differ from run to run, so counts are read, not compared.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use countersign::{
    conversation::record::notebook::{Notebook, Redaction},
    ids::ThreadId,
};
use insta::assert_snapshot;

use crate::support::{
    bot::{TestBot, eventually},
    thread::Thread,
};

/// How often each simulated participant was at the decision point.
fn marks(bot: &TestBot) -> HashMap<String, usize> {
    let mut marks = HashMap::new();
    for entry in bot.upgrade.effects() {
        if let (true, Some(user)) = (entry.path.ends_with("/mark"), entry.user_id) {
            *marks.entry(user).or_default() += 1;
        }
    }
    marks
}

/// Runs have names of their own.
pub(super) fn without_run(text: &str) -> String {
    let mut parts = text.split("test-");
    let mut words = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let run = part.get(..6).filter(|run| run.bytes().all(|b| b.is_ascii_hexdigit()));
        let rest = run.map_or_else(|| part.to_owned(), |_| format!("‹run›{}", &part[6..]));
        words = format!("{words}test-{rest}");
    }
    words
}

/// The counts in the report's table, by condition.
fn counts(thread: &Thread<'_>) -> BTreeMap<String, u64> {
    let report = thread.messages().into_iter().rev().find(|m| m.words().contains("| Share")).expect("there is a table");
    let words = report.words();
    let rows = words.lines().filter(|line| line.matches(" | ").count() == 4 && !line.contains("Share"));
    rows.map(|row| {
        let cells: Vec<_> = row.split(" | ").collect();
        (cells[0].trim_matches(['`', '|', ' ']).to_owned(), cells[3].trim().parse().unwrap())
    })
    .collect()
}

/// A thread in which Math Hints was started.
pub(super) async fn running(bot: &TestBot) -> Thread<'_> {
    let mut thread = bot.user("ana").says("start Math Hints").await;
    thread.clicked("bo", "Start experiment").await;
    thread
}

#[tokio::test(flavor = "multi_thread")]
async fn the_balance_of_a_running_experiment() {
    let bot = TestBot::start().await;
    let mut thread = running(&bot).await;
    thread.says("ana", "test condition balance for Math Hints with 100 users").await;
    assert_snapshot!(without_run(&thread.in_short()), @"
    *Enroll 100 test users in “Math Hints”?*
    *Users*  `test-‹run›-0001` to `test-‹run›-0100`
    *Decision point*  SelectSection / absolute_value_plot_equality
    *Expected*  control 50%, variant 50%
    *Limits*  100 users, this experiment only, at most 15 minutes
    ⚠️ UpGrade removes enrolled users only together with the experiment.
    You can stop it midway; users enrolled by then stay enrolled.
    ‹ana asks, anyone may decide› [Enroll test users] [Reject…] [Withdraw] [Edit…] [Show all]
    ");
    assert!(marks(&bot).is_empty(), "asking enrols nobody");

    thread.clicks("bo", "Enroll test users").await;
    let marks = marks(&bot);
    assert_eq!((marks.len(), marks.values().max()), (100, Some(&1)));
    let counts = counts(&thread);
    assert_eq!(counts.values().sum::<u64>(), 100, "{counts:?}");
    assert_eq!(counts.keys().collect::<Vec<_>>(), ["control", "variant"]);
    let report = thread.heard();
    assert!(report.contains("A difference this large would arise by chance"), "{report}");

    let file = thread.messages().into_iter().find_map(|message| message.files.first().cloned()).expect("a chart");
    let png = bot.slack.look(|world| world.files[&file].bytes.clone());
    assert!(png.starts_with(b"\x89PNG"));
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_draw_together() {
    let (bot, thread) = TestBot::hears("ana", "test the balance of Class Hint Rollout with 60 users").await;
    assert!(thread.last().contains("5 users in each"), "{}", thread.last());
    thread.clicks("bo", "Enroll test users").await;
    assert_eq!(counts(&thread).values().sum::<u64>(), 12, "five users make a group");
    assert_eq!(marks(&bot).len(), 60);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_running_enrols_nobody() {
    let (_bot, mut thread) = TestBot::hears("ana", "enroll 50 users in Math Hints").await;
    assert_snapshot!(thread.in_short(), @"
    “*Math Hints*” is inactive, so nobody was enrolled. Of 50 users, expect about control 25, variant 25.
    Condition | Weight | Expected | 95% range | Simulated users
    control | 50% | 25.0 | 18 to 32 | 20
    variant | 50% | 25.0 | 18 to 32 | 30
    95% of the time, each count lands in its range. The last column is one simulated assignment of made-up users with UpGrade's own rule.
    *This fits the weights.* A difference this large would arise by chance about 16% of the time (χ² = 2.00, 1 degree of freedom, p = 0.157).
    [Start it, then test]
    ---
    ");
    thread.clicks("ana", "Start it, then test").await;
    assert!(thread.heard().contains("Step 1 of 2. When it is done: test the balance"));
    thread.clicks("bo", "Start experiment").await;
    assert!(thread.last().contains("Enroll 50 test users in “Math Hints”?"), "{}", thread.last());
    thread.clicks("bo", "Enroll test users").await;
    assert!(thread.heard().contains("\n[Stop the experiment] [Show details]"), "it offers to put it back");
    assert_snapshot!(thread.answer("ana", "test the balance of Lesson Video Hints with 5000 users").await, @"A test can have 1 to 1000 users. How many?");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_user_visits_a_decision_point() {
    let (bot, mut thread) =
        TestBot::hears("ana", "simulate user u1 visiting SelectSection absolute_value_plot_equality").await;
    assert_snapshot!(thread.in_short(), @"
    *Send user “u1” through “Math Hints”?*
    *User*  `u1`
    *Experiment*  *Math Hints* (inactive, assign-prog)
    *Decision point*  SelectSection / absolute_value_plot_equality
    *Steps*  initialize the user, request the condition, record the visit
    ⚠️ The experiment is inactive, so the user will most likely get no condition.
    ‹ana asks, anyone may decide› [Simulate visit] [Reject…] [Withdraw] [Edit…] [Show all]
    ");
    thread.says("ana", "no").await;
    thread.says("ana", "simulate user u1 in Class Hint Rollout").await;
    thread.skip();
    assert_snapshot!(thread.outcome("bo", "Simulate visit").await, @"
    *Send user “u1” through “Class Hint Rollout”*
    ✅ `u1` got no condition at lesson-quiz / question-hint in “*Class Hint Rollout*”, so the visit was not recorded: it assigns by classId, and none of this user's groups is their working group.
    Approved by @bo · ‹time›
    Asked by @ana · digest `‹id›`
    [Show all]
    ---
    @ana `u1` got no condition at lesson-quiz / question-hint in “*Class Hint Rollout*”, so the visit was not recorded: it assigns by classId, and none of this user's groups is their working group. Approved by bo.
    [Show details]
    ");
    thread.says("ana", "start Math Hints").await;
    thread.clicks("bo", "Start experiment").await;
    thread.says("ana", "simulate user u1 in it").await;
    thread.clicks("bo", "Simulate visit").await;
    let heard = thread.heard();
    assert!(heard.contains("and is enrolled."), "{heard}");
    assert_eq!(marks(&bot), HashMap::from([("u1".to_owned(), 1)]));
    assert_snapshot!(thread.answer("ana", "simulate user u2 visiting Nowhere/at_all").await, @"
    No experiment has the decision point *Nowhere / at_all*, so a user would get no condition there.
    [List experiments]
    ");
    assert_snapshot!(thread.answer("ana", "simulate user").await, @"Which user? Give any ID that doesn't belong to a real person.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_is_stopped_by_its_button() {
    let bot = TestBot::start().await;
    let mut thread = running(&bot).await;
    thread.says("ana", "test the balance of Math Hints with 1000 users").await;
    bot.upgrade.is_slow(Duration::from_millis(10));
    thread.press("bo", "Enroll test users").await;
    eventually("some progress", || thread.messages().iter().any(|m| m.button("Stop").is_some())).await;
    thread.clicks("cy", "Stop").await;
    bot.upgrade.is_well();
    let enrolled = marks(&bot).len();
    assert!((1..1000).contains(&enrolled), "{enrolled}");
    let heard = thread.heard();
    assert!(heard.contains(&format!("The {enrolled} users already enrolled stay enrolled.")), "{enrolled}: {heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_is_stopped_by_a_typed_word_and_the_record_says_by_whose() {
    let bot = TestBot::start().await;
    let mut thread = running(&bot).await;
    thread.says("ana", "test the balance of Math Hints with 1000 users").await;
    bot.upgrade.is_slow(Duration::from_millis(10));
    thread.press("bo", "Enroll test users").await;
    eventually("some progress", || thread.messages().iter().any(|m| m.button("Stop").is_some())).await;
    thread.says("ana", "stop").await;
    bot.upgrade.is_well();
    let enrolled = marks(&bot).len();
    let heard = thread.heard();
    assert!(heard.contains(&format!("⏹ Stopped by @ana after {enrolled} of 1000 users.")), "{heard}");
    thread.says("cy", "@countersign stop").await;
    assert!(thread.heard().starts_with("I'm not working on anything in this thread, so there's nothing to stop here."));

    let (team, channel) =
        bot.slack.look(|world| (world.team.clone(), world.channel("experiments").unwrap().id.clone()));
    let id = ThreadId { team, channel, root: thread.root.clone() };
    let exported =
        Notebook::new(bot.store(), Arc::new(bot.clock.clone()), None, Redaction::default()).export(&id).await.unwrap();
    let page = bot.readable(&String::from_utf8(exported.markdown.bytes).unwrap());
    let after = format!("stopped after {enrolled} of 1000");
    assert!(page.contains(&format!("approved by @U2; {after}.")), "{page}");
    assert!(page.contains(&format!("**@U1** stopped card 2 after {enrolled} of 1000.")), "{page}");
    assert!(page.contains("**@U3** said “stop”; nothing was running at that moment."), "{page}");
    assert!(!page.contains("the work ended there"), "{page}");
    assert!(bot.user("ana").opens_home().await.contains(&format!("was {after} ·")), "in the Home tab");
    thread.says("ana", "@countersign status").await;
    assert!(thread.told("ana").contains(&format!("was {after} ·")), "by the command");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_process_goes_on_and_enrols_nobody_twice() {
    let mut bot = TestBot::start().await;
    let root = {
        let thread = running(&bot).await;
        thread.says("ana", "test the balance of Math Hints with 200 users").await;
        bot.upgrade.is_slow(Duration::from_millis(10));
        thread.press("bo", "Enroll test users").await;
        eventually("some progress", || !marks(&bot).is_empty()).await;
        thread.root.clone()
    };
    bot.stop().await;
    let before = marks(&bot).len();
    assert!(before < 200, "it was stopped on the way");
    bot.upgrade.is_well();
    bot.run().await;
    bot.settled().await;
    let marks = marks(&bot);
    assert_eq!((marks.len(), marks.values().max()), (200, Some(&1)));
    let thread = Thread::new(&bot, "experiments", root);
    assert_eq!(counts(&thread).values().sum::<u64>(), 200);
}
