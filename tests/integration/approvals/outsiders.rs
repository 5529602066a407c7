//! Whose words count: full members of the workspace, unless the settings say otherwise; and payloads of our own app there.

use std::time::Duration;

use countersign::{
    graph::{
        action::Status,
        store::{ActionKey, AuditKind, Backlog},
    },
    ids::{ApprovalId, UserId},
};
use countersign_sandbox::slack::{
    faults::{Fault, Loss},
    people::Account,
};

use crate::support::{
    bot::{TestBot, in_time},
    thread::Thread,
};

/// Everybody who is no full member.
const OUTSIDERS: [(&str, Account); 5] = [
    ("gus", Account::Guest),
    ("sam", Account::SingleChannelGuest),
    ("eli", Account::Elsewhere),
    ("hal", Account::Bot),
    ("old", Account::Deactivated),
];

/// The key of the newest open card of a thread.
fn key(thread: &Thread<'_>) -> ApprovalId {
    let button = |message: countersign_sandbox::slack::world::message::Message| {
        message
            .buttons()
            .into_iter()
            .find(|button| button.action_id == "approve")
            .and_then(|button| button.value.clone())
    };
    ApprovalId::try_from(thread.messages().into_iter().rev().find_map(button).expect("a card is open")).unwrap()
}

/// Who was refused in the record of a thread, and why.
async fn refused(bot: &TestBot, key: &ApprovalId, by: &UserId) -> Vec<String> {
    let record = bot.store().action(ActionKey::ByApproval(key)).await.unwrap().unwrap();
    let audit = bot.store().audit(&record.thread).await.unwrap().entries;
    let theirs = audit.iter().filter(|entry| entry.event.by.as_ref() == Some(by));
    let theirs = theirs.filter(|entry| entry.event.kind == AuditKind::ClickRefused);
    theirs.map(|entry| entry.event.detail["why"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_full_members_decide_whichever_way() {
    let (bot, mut thread) = TestBot::hears("ana", "start Math Hints").await;
    let key = key(&thread);
    for (name, account) in OUTSIDERS {
        let id = bot.slack.admits(name, account);
        thread.skip();
        for (nth, way) in ["Start experiment", "Reject…", "Edit…", "yes", "no", "stop"].into_iter().enumerate() {
            match way {
                "yes" | "no" | "stop" => thread.says(name, &format!("@countersign {way}")).await,
                label => thread.clicks(name, label).await,
            }
            let record = bot.store().action(ActionKey::ByApproval(&key)).await.unwrap().unwrap();
            assert_eq!((record.status, record.decisions.len()), (Status::Pending, 0), "{name}, {way}");
            let told = thread.told(name);
            assert!(told.contains("members of this workspace"), "{name}, {way}: {told}");
            assert_eq!(thread.heard(), "", "{name}, {way}");
            assert_eq!(refused(&bot, &key, &id).await.len(), nth + 1, "{name}, {way}");
        }
        let open = bot.slack.look(|world| world.stacks.get(&id).is_none_or(Vec::is_empty));
        assert!(open, "{name} has no window before them");
    }
    assert!(bot.done_to_platform().is_empty());
    thread.clicks("bo", "Start experiment").await;
    assert_eq!(bot.done_to_platform().len(), 1, "a member's press counts");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_full_members_may_ask() {
    let bot = TestBot::start().await;
    let root = bot.user("ana").says("list experiments").await.messages()[0].ts.clone();
    for (name, account) in OUTSIDERS {
        bot.slack.admits(name, account);
        let mut thread = bot.user(name).says("start Math Hints").await;
        assert_eq!(thread.heard(), "", "{name} gets no card");
        let told = thread.told(name);
        assert!(told.contains("members of this workspace"), "{name}: {told}");
        let mut direct = bot.user(name).writes("list experiments").await;
        assert_eq!(direct.heard(), "", "{name}");
        assert!(direct.told(name).contains("members of this workspace"), "{name}");
        let told = bot.user(name).types("/upgrade list").await;
        assert!(told.contains("members of this workspace") && !told.contains("Math Hints"), "{name}: {told}");
        bot.slack.uses_shortcut(name, "ask_about_message", Some(("experiments", &root))).await.unwrap();
        bot.slack.uses_shortcut(name, "new_experiment", None).await.unwrap();
        bot.slack.uses_shortcut(name, "export_thread", Some(("experiments", &root))).await.unwrap();
        bot.settled().await;
        let id = bot.slack.user(name);
        let shown = bot.slack.look(|world| {
            let windows = world.stacks.get(&id).into_iter().flatten();
            windows.map(|view| world.views[view].words()).collect::<Vec<_>>()
        });
        assert!(shown.iter().all(|words| words.contains("members of this workspace")), "{name}: {shown:?}");
    }
    assert!(bot.done_to_platform().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_settings_may_let_them() {
    let bot = TestBot::with_settings(|config| {
        config.approvals.outsiders = ["guests", "external"].map(str::to_owned).to_vec();
        config.slack.outsiders = vec!["bots".to_owned()];
    })
    .await;
    for (name, account) in OUTSIDERS {
        bot.slack.admits(name, account);
    }
    for (name, may_decide) in [("gus", true), ("sam", true), ("eli", true), ("hal", false), ("old", false)] {
        let thread = bot.user("ana").says("start Math Hints").await;
        let key = key(&thread);
        thread.clicks(name, "Reject…").await;
        let record = bot.store().action(ActionKey::ByApproval(&key)).await.unwrap().unwrap();
        assert_eq!(record.status == Status::Rejected, may_decide, "{name}");
        let asked = !bot.user(name).says("list experiments").await.messages().is_empty();
        assert_eq!(asked, name == "hal", "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_stops_being_a_member_stops_counting() {
    let (bot, mut thread) = TestBot::hears("ana", "start Math Hints").await;
    let key = key(&thread);
    thread.clicks("bo", "Edit…").await;
    bot.slack.arrange(|world| world.users.iter_mut().find(|user| user.name == "bo").unwrap().deleted = true);
    bot.clock.advance(Duration::from_secs(11));
    thread.clicks("bo", "Start experiment").await;
    assert!(thread.told("bo").contains("members of this workspace"));
    let view = bot.slack.look(|world| world.stacks[&UserId::from("U2")].last().cloned()).expect("the form is open");
    bot.slack.submits("bo", &view, serde_json::json!({})).await.ok();
    bot.settled().await;
    let record = bot.store().action(ActionKey::ByApproval(&key)).await.unwrap().unwrap();
    assert_eq!((record.status, record.decisions.len()), (Status::Pending, 0), "the form saved nothing");
    assert!(bot.done_to_platform().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_cannot_be_looked_up_is_told_so_and_does_not_count() {
    let (bot, mut thread) = TestBot::hears("ana", "start Math Hints").await;
    let key = key(&thread);
    let users_info =
        |error: &str, calls| Fault::Fail { method: "users.info".to_owned(), error: error.to_owned(), calls };
    // The first is refused for good; of the second Slack only says that something is wrong, again and again.
    for fault in [users_info("missing_scope", 1), users_info("fatal_error", 1_000)] {
        bot.slack.inject(fault.clone());
        let before = bot.slack.ephemerals("bo").len();
        thread.press("bo", "Start experiment").await;
        in_time(&bot, "a word to bo", || bot.slack.ephemerals("bo").len() > before).await;
        let record = bot.store().action(ActionKey::ByApproval(&key)).await.unwrap().unwrap();
        assert_eq!(record.status, Status::Pending, "{fault:?}");
        let told = thread.told("bo");
        assert!(told.contains("couldn't check your account"), "{fault:?}: {told}");
    }
    bot.slack.inject(Fault::Clear);
    thread.clicks("bo", "Start experiment").await;
    assert_eq!(bot.done_to_platform().len(), 1, "the next press counts");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_while_slack_does_not_answer_counts_once_it_does() {
    let method = || "users.info".to_owned();
    let faults = [
        Fault::Fail { method: method(), error: "internal_error".to_owned(), calls: 3 },
        Fault::RateLimit { method: method(), calls: 2, retry_after: 30 },
        Fault::LoseRequest { method: method(), calls: 2, how: Loss::Closed },
        Fault::Fail { method: "*".to_owned(), error: "internal_error".to_owned(), calls: 4 },
    ];
    for fault in faults {
        let bot = TestBot::start().await;
        let thread = bot.user("ana").says("start Math Hints").await;
        bot.slack.inject(fault.clone());
        thread.press("bo", "Start experiment").await;
        bot.slack.says("cy", "experiments", "@countersign list experiments", Some(&thread.root)).unwrap();
        in_time(&bot, "the change", || bot.done_to_platform().len() == 1).await;
        in_time(&bot, "the answer", || thread.messages().iter().any(|message| message.text.contains("Running Test")))
            .await;
        assert!(bot.slack.ephemerals("bo").is_empty() && bot.slack.ephemerals("cy").is_empty(), "{fault:?}");
        bot.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn payloads_of_another_app_or_workspace_are_refused() {
    let (bot, mut thread) = TestBot::hears("ana", "start Math Hints").await;
    let (key, root) = (key(&thread), thread.root.clone());
    thread.skip();
    let (app, team) = (Some("A0OTHER".to_owned()), Some("T0OTHER".to_owned()));
    for (app, team) in [(app.clone(), None), (None, team.clone()), (app, team)] {
        let why = format!("{app:?} {team:?}");
        bot.slack.inject(Fault::Foreign { app, team });
        thread.clicks("bo", "Start experiment").await;
        thread.clicks("bo", "Reject…").await;
        thread.says("bo", "@countersign yes").await;
        thread.says("ana", "stop").await;
        assert_eq!(bot.user("ana").says("start Running Test").await.heard(), "", "{why}");
        assert_eq!(bot.user("ana").writes("list experiments").await.heard(), "", "{why}");
        bot.slack.command("bo", "experiments", "/upgrade list").await.unwrap();
        bot.slack.uses_shortcut("bo", "ask_about_message", Some(("experiments", &root))).await.unwrap();
        bot.slack.uses_shortcut("bo", "new_experiment", None).await.unwrap();
        bot.settled().await;
        assert!(!bot.slack.ephemerals("bo").iter().any(|told| told.words().contains("Math Hints")), "{why}");
        let record = bot.store().action(ActionKey::ByApproval(&key)).await.unwrap().unwrap();
        assert_eq!((record.status, record.decisions.len()), (Status::Pending, 0), "{why}");
        assert_eq!(thread.heard(), "", "{why}");
        assert!(bot.slack.look(|world| world.stacks.get(&UserId::from("U2")).is_none_or(Vec::is_empty)), "{why}");
    }
    assert!(bot.done_to_platform().is_empty());
    bot.slack.inject(Fault::Foreign { app: None, team: None });
    thread.clicks("bo", "Start experiment").await;
    assert_eq!(bot.done_to_platform().len(), 1, "our own are taken");
    assert_eq!(bot.store().backlog().await.unwrap(), Backlog::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standing_approval_ends_with_the_membership_of_who_granted_it() {
    let (bot, thread) = TestBot::hears("ana", "start Math Hints").await;
    thread.clicks("bo", "Start experiment").await;
    thread.says("ana", "@countersign allow up to 60 simulated users in Math Hints until Friday").await;
    thread.clicks("bo", "Grant approval").await;
    let marked = || bot.done_to_platform().iter().filter(|call| call.contains("mark")).count();
    thread.says("ana", "@countersign enrol 5 users in Math Hints").await;
    assert_eq!(marked(), 5, "it is covered");
    bot.slack.arrange(|world| world.users.iter_mut().find(|user| user.name == "bo").unwrap().deleted = true);
    bot.clock.advance(Duration::from_secs(11));
    thread.says("ana", "@countersign enrol 5 users in Math Hints").await;
    assert_eq!(marked(), 5, "a person has to decide: {}", thread.last());
}
