//! Finding experiments: by where, how and when, in an order, page by page.

use insta::assert_snapshot;

use crate::support::bot::TestBot;

#[tokio::test(flavor = "multi_thread")]
async fn experiments_are_found_by_what_is_known_of_them() {
    let bot = TestBot::start().await;
    bot.upgrade.has("Fresh Start", "inactive");
    let mut thread = bot.user("ana").says("find experiments created today").await;
    assert_snapshot!(thread.in_short(), @"
    1 experiment (created today):
    Name | Status | Context | Conditions | Created
    Fresh Start | inactive | assign-prog | control 50%, variant 50% | ‹time›
    ");
    thread.says("ana", "list experiments in assign-prog created this year, oldest first").await;
    let said = thread.heard();
    assert!(said.find("Math Hints") < said.find("Fresh Start"), "{said}");
    assert_snapshot!(thread.answer("ana", "which experiments are tagged hints?").await, @"
    3 experiments (tagged hints):
    Name | Status | Context | Conditions
    Class Hint Rollout | running | mathstream | control 34%, question-hint-default 33%, question-hint-tutorbot 33%
    Lesson Video Hints | running | mathstream | control 34%, question-hint-default 33%, question-hint-tutorbot 33%
    Math Hints | inactive | assign-prog | control 50%, variant 50%
    ");
    assert_snapshot!(thread.answer("ana", "search for experiments about fractions").await, @"
    1 experiment (about “fractions”):
    Name | Status | Context | Conditions
    Concrete Fractions | archived | assign-prog | concrete 50%, abstract 50%
    ");
    assert_snapshot!(thread.answer("ana", "what is running in assign-prog?").await, @"
    No experiments in UpGrade match: running, in assign-prog.
    [List experiments]
    ");
    assert_snapshot!(thread.answer("ana", "what is running in asign-prog?").await, @"‹there is no “asign-prog”›");
    assert_snapshot!(thread.answer("ana", "list experiments created since whenever").await, @"
    I couldn't read “*since whenever*” as a time.
    For example: today, this week, last 3 days, or since 2026-11-01.
    ");
    assert_snapshot!(thread.answer("ana", "list paused experiments in short").await, @"
    1 experiment (paused):
    • *Running Test*: paused
    ");
    assert_snapshot!(thread.answer("ana", "list paused experiments in detail").await, @"
    1 experiment (paused):
    Name | Status | Context | Conditions | Decision points | Tags | Created | Changed
    Running Test | paused | assign-prog | control 50%, variant 50% | SelectSection / area_model | test | ‹time› | ‹time›
    Fetched less than a minute ago.
    [Refresh]
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_list_is_turned_page_by_page() {
    let bot = TestBot::start().await;
    for number in 1..=15 {
        bot.upgrade.has(&format!("Pilot {number:02}"), "inactive");
    }
    let mut thread = bot.user("ana").says("list inactive experiments in assign-prog").await;
    assert_snapshot!(thread.in_short(), @"
    Experiments 1–10 of 16 (inactive, in assign-prog):
    Name | Status | Context | Conditions
    Math Hints | inactive | assign-prog | control 50%, variant 50%
    Pilot 01 | inactive | assign-prog | control 50%, variant 50%
    Pilot 02 | inactive | assign-prog | control 50%, variant 50%
    Pilot 03 | inactive | assign-prog | control 50%, variant 50%
    Pilot 04 | inactive | assign-prog | control 50%, variant 50%
    Pilot 05 | inactive | assign-prog | control 50%, variant 50%
    Pilot 06 | inactive | assign-prog | control 50%, variant 50%
    Pilot 07 | inactive | assign-prog | control 50%, variant 50%
    Pilot 08 | inactive | assign-prog | control 50%, variant 50%
    Pilot 09 | inactive | assign-prog | control 50%, variant 50%
    [Next 6]
    ");
    assert_snapshot!(thread.outcome("ana", "Next 6").await, @"
    @ana chose *Next 6*.
    ---
    Experiments 11–16 of 16 (inactive, in assign-prog):
    Name | Status | Context | Conditions
    Pilot 10 | inactive | assign-prog | control 50%, variant 50%
    Pilot 11 | inactive | assign-prog | control 50%, variant 50%
    Pilot 12 | inactive | assign-prog | control 50%, variant 50%
    Pilot 13 | inactive | assign-prog | control 50%, variant 50%
    Pilot 14 | inactive | assign-prog | control 50%, variant 50%
    Pilot 15 | inactive | assign-prog | control 50%, variant 50%
    Fetched less than a minute ago.
    [Previous 10] [Refresh]
    ");
    thread.clicks("ana", "Previous 10").await;
    assert!(thread.heard().contains("Experiments 1–10 of 16"), "{}", thread.last());
    assert_snapshot!(thread.answer("ana", "list experiments page 7").await, @"
    There are 3 pages of experiments, so page 7 is empty.
    [First page]
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_just_read_is_not_read_again() {
    let (bot, mut thread) = TestBot::asked("ana", "what is archived?").await;
    let asked = bot.upgrade.ledger().len();
    assert_snapshot!(thread.answer("ana", "what is archived?").await, @"
    1 experiment (archived):
    Name | Status | Context | Conditions
    Concrete Fractions | archived | assign-prog | concrete 50%, abstract 50%
    Fetched less than a minute ago.
    [Refresh]
    ");
    assert_eq!(bot.upgrade.ledger().len(), asked, "the platform was not asked");
    thread.clicks("ana", "Refresh").await;
    assert!(!thread.heard().contains("I read this"), "{}", thread.last());
    assert!(bot.upgrade.ledger().len() > asked);
    bot.clock.advance(std::time::Duration::from_secs(180));
    thread.says("ana", "what is archived?").await;
    assert!(!thread.heard().contains("I read this"), "{}", thread.last());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_description_by_part_of_the_name_and_the_place_is_recognised() {
    let bot = TestBot::start().await;
    for said in ["stop the question hint one on the lesson-stream", "stop the lesson video one"] {
        let mut thread = bot.user("ana").says(said).await;
        assert!(thread.heard().contains("Did you mean “*Lesson Video Hints*”?"), "{said}: {}", thread.last());
        thread.says("ana", "yes").await;
        assert!(thread.heard().contains("*Stop “Lesson Video Hints”?*"), "{said}: {}", thread.last());
        thread.says("ana", "never mind").await;
    }
    let shown = bot.user("ana").answer("show me the class hint one in mathstream").await;
    assert!(shown.contains("Class Hint Rollout"), "{shown}");
}
