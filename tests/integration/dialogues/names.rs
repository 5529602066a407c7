//! What user groups and people are called where they are named and not notified.

use std::time::Duration;

use countersign::config::{Config, ContextRule, Rule};
use countersign_sandbox::slack::faults::Fault;

use crate::support::bot::TestBot;

/// Everything that was sent to Slack.
fn sent(bot: &TestBot) -> String {
    bot.slack.recorded().calls.iter().map(|call| call.body.to_string()).collect::<Vec<_>>().join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_group_is_called_what_people_call_it_and_not_notified() {
    let bot = TestBot::decided_by(&["S1"]).await;
    bot.slack.arrange(|world| world.groups[0].handle = "stats".to_owned());
    let mut thread = bot.user("ana").says("start Math Hints").await;
    assert!(thread.heard().contains("a member of `@stats` can approve"));
    assert!(bot.user("bo").opens_home().await.contains("Asked by @ana · a member of `@stats` can approve"));
    assert!(bot.user("ana").opens_home().await.contains("· a member of `@stats` can approve"));
    thread.clicks("ana", "Start experiment").await;
    let told = bot.slack.ephemerals("ana").last().unwrap().words();
    assert!(told.ends_with("Who can decide: a member of `@stats`."), "{told}");
    thread.clicks("ana", "Show all").await;
    let windows = bot.slack.look(|world| world.views.values().map(|view| view.words()).collect::<String>());
    assert!(windows.contains("Who can decide: a member of `@stats`."), "{windows}");
    let settings = bot.user("ana").types("/countersign settings").await;
    assert!(settings.contains("By a member of `@stats`, but not"), "{settings}");
    assert!(!sent(&bot).contains("subteam"), "nobody is notified");
    assert_eq!(bot.slack.ledger().calls("usergroups.list").len(), 1, "it is looked up once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_group_whose_name_cannot_be_looked_up_is_shown_by_its_id() {
    let bot = TestBot::decided_by(&["S1"]).await;
    let (method, error) = ("usergroups.list".to_owned(), "fatal_error".to_owned());
    bot.slack.inject(Fault::Fail { method, error, calls: 1 });
    let mut thread = bot.user("ana").says("start Math Hints").await;
    assert!(thread.heard().contains("a member of `S1` can approve"));
    assert!(
        bot.user("bo").opens_home().await.contains("a member of `S1` can approve"),
        "it is not asked at once again"
    );
    bot.clock.advance(Duration::from_secs(61));
    assert!(bot.user("bo").opens_home().await.contains("a member of `@approvers` can approve"));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_approved_is_named_when_it_is_done_and_not_notified() {
    let (bot, mut thread) = TestBot::hears("ana", "start Math Hints").await;
    thread.clicks("bo", "Start experiment").await;
    assert!(
        thread.heard().ends_with("Started “Math Hints”: it is running now. Approved by bo. What next?\n[Show details]")
    );
    let posts = bot.slack.ledger().calls("chat.postMessage");
    assert!(!posts.iter().any(|call| call.body.to_string().contains("<@U2>")), "bo pressed a moment ago");

    let mut own = bot.user("ana").says("stop Math Hints").await;
    own.clicks("ana", "Stop experiment").await;
    assert!(
        own.heard().contains("Stopped “Math Hints”: no new users are enrolled. What next?"),
        "ana knows who approved"
    );
    let mut other = bot.user("ana").says("stop Lesson Video Hints").await;
    bot.user("cy").types("/countersign pending").await; // that cy is a member is known for a moment
    let (method, error) = ("users.info".to_owned(), "fatal_error".to_owned());
    bot.slack.inject(Fault::Fail { method, error, calls: 1 });
    other.clicks("cy", "Stop experiment").await;
    assert!(other.heard().contains("Approved by @cy. What next?"), "as Slack shows them");
}

#[tokio::test(flavor = "multi_thread")]
async fn check_names_the_user_group_that_may_have_been_meant() {
    let settings = |config: &mut Config| config.approvals.approvers = vec!["S2".to_owned()];
    let bot = TestBot::with_settings(settings).await;
    let told = |lines: Vec<countersign::app::check::CheckLine>| {
        lines.into_iter().find(|line| line.what == "approvers").unwrap().result
    };
    let wrong = told(countersign::app::check::run(&bot.config).await).unwrap_err();
    assert!(
        wrong.starts_with("the user group S2 cannot be looked up (no_such_subteam); the nearest is S1 (@approvers)"),
        "{wrong}"
    );
    let mut config = bot.config.clone();
    config.approvals.approvers = vec!["S1".to_owned()];
    assert_eq!(told(countersign::app::check::run(&config).await), Ok("1 user group, found".to_owned()));
    let here = |approver: &str| ContextRule { approvers: Some(vec![approver.to_owned()]), ..ContextRule::default() };
    let contexts = [("assign-prog", "S1"), ("mathstream", "U1"), ("qa", "U2")];
    config.approvals.contexts = contexts.map(|(context, approver)| (context.to_owned(), here(approver))).into();
    assert_eq!(
        told(countersign::app::check::run(&config).await).unwrap(),
        "1 user group, found; no change that affects both assign-prog and mathstream can be approved, because their approvers have no one in common. To allow it, list the same person in approvals.contexts.assign-prog and \
         approvals.contexts.mathstream; no change that affects both mathstream and qa can be approved, because their approvers have no one in common. To allow it, list the same person in approvals.contexts.mathstream and \
         approvals.contexts.qa",
        "the members of S1 are U2 and U3"
    );
    bot.expects_complaints();
}

#[tokio::test(flavor = "multi_thread")]
async fn check_objects_if_nobody_can_approve_anything() {
    let bot = TestBot::start().await;
    let told = async |config: &Config, what: &str| {
        let lines = countersign::app::check::run(config).await;
        lines.into_iter().find(|line| line.what == what).unwrap().result
    };
    let mut config = bot.config.clone();
    config.approvals.approvers = Vec::new();
    let wrong = "no one can approve anything, because approvals.approvers is empty; expected channel, requester, user ids \
                 (U…) or user group ids (S…)";
    assert_eq!(told(&config, "approvers").await, Err(wrong.to_owned()));
    let rule = |approvers: &[&str]| Rule {
        approvers: Some(approvers.iter().map(|name| (*name).to_owned()).collect()),
        ..Rule::default()
    };
    let delete = "delete_experiment".to_owned();
    config.approvals.actions = [(delete.clone(), rule(&["U1"]))].into();
    let some = told(&config, "approvers").await.unwrap();
    assert!(some.starts_with("as set in [approvals]; no one can approve "), "{some}");
    assert!(some.contains("create experiment") && !some.contains("delete experiment"), "{some}");

    let mut config = bot.config.clone();
    config.approvals.actions = [(delete, rule(&[]))].into();
    let one = told(&config, "approvers").await;
    assert_eq!(one, Ok("as set in [approvals]; no one can approve delete experiment".to_owned()), "that may be meant");

    let listed = bot.user("ana").types("/countersign settings").await;
    let counted = told(&bot.config, "actions").await.unwrap();
    assert!(counted.starts_with("12, "), "{counted}; and {listed}");
    bot.expects_complaints();
}
