//! What the app asks to be allowed in its manifest: all that it needs, and nothing else.
//!
//! One day in the life of the bot, in which it does everything it can do. What crossed the wire needs some scopes and
//! events; the manifests must ask for exactly these, and that of an agent for what its day needs. A call that the days forget
//! is found as well: whatever the client can call must be permitted.

use std::{collections::BTreeSet, time::Duration};

use countersign::config::Config;
use countersign_sandbox::slack::{
    faults::{Fault, Loss},
    people::Stored,
    scopes,
};
use serde_json::Value;

use crate::support::{
    bot::{Setup, TestBot, eventually, manifest_scopes},
    thread::Thread,
};

/// Does everything there is to do; as an `agent`, what only agents do as well.
async fn a_busy_day(agent: bool) -> TestBot {
    let settings = Box::new(move |config: &mut Config| {
        config.approvals.approvers = vec!["requester".to_owned(), "S1".to_owned()]; // a user group
        config.workers.status_after = Duration::from_millis(20);
        config.slack.timeout = Duration::from_secs(2);
        config.slack.native_status = agent;
        config.slack.agent_view = agent;
    });
    let mut setup = Setup { settings, ..Setup::default() };
    if agent {
        setup.slack.scopes = scopes_in(&manifest("agent")).into_iter().collect();
    }
    let bot = TestBot::with(setup).await;
    // A channel: a mention, a card, a decision by somebody of a group, a file.
    let thread = bot.user("ana").says("start Math Hints").await;
    thread.clicks("bo", "Start experiment").await;
    thread.says("ana", "list running experiments as raw JSON").await;
    // A status line that comes and goes.
    bot.upgrade.is_slow(Duration::from_millis(400));
    thread.says("ana", "list experiments").await;
    bot.upgrade.is_well();
    // A post whose answer is lost: it is looked for.
    bot.slack.inject(Fault::LoseAnswer { method: "chat.postMessage".into(), calls: 1, how: Loss::Closed });
    thread.says("ana", "is UpGrade running?").await;
    // Direct messages, a private channel, commands.
    bot.user("bo").writes("is UpGrade running?").await;
    let private = bot.slack.founds_private_channel("ana", "lab", &["bo"]);
    let inside = bot.user("ana").says_in(private.as_str(), "@countersign is UpGrade running?").await;
    inside.says("bo", "@countersign list experiments").await;
    inside.says("bo", "@countersign stop Lesson Video Hints").await;
    // A direct message of several people, in which somebody looks at a card.
    let group = bot.slack.founds_private_channel("ana", "mpdm-ana--bo--countersign-1", &["bo"]);
    let among = bot.user("ana").says_in(group.as_str(), "@countersign stop Lesson Video Hints").await;
    among.clicks("bo", "Show all").await;
    // Files: one that is read, and one that has to be looked up first.
    let files = [("a.txt", &b"list experiments"[..], Stored::Snippet), ("b.txt", &b"or not"[..], Stored::LookedUp)];
    for file in files {
        let ts = bot.slack.shares("ana", "experiments", "@countersign", &[file], None).unwrap();
        bot.delivered(&ts).await;
        bot.settled().await;
    }
    thread.says("ana", "@countersign notebook").await;
    bot.user("ana").types("/upgrade status").await;
    bot.user("ana").types("/countersign pending").await;
    // Somebody who may not decide, told in private.
    let other = bot.user("ana").says("stop Math Hints").await;
    other.says("cy", "@countersign hello").await;
    bot.settled().await;
    // Whoever is in a channel finds its card in the Home tab.
    bot.user("ana").opens_home().await;
    // Who is named by the policy is told a moment after the card was shown.
    let tells = || bot.slack.recorded().calls.iter().any(|call| call.method == "conversations.open");
    eventually("a direct message to an approver", tells).await;
    bot.settled().await;
    if agent {
        an_agents_day(&bot, &other).await;
    }
    // The app is removed from the workspace.
    bot.slack.uninstalls_app();
    eventually("a token that is refused", || is_revoked(&bot)).await;
    bot
}

/// Whether the app has been told that its token is no longer valid.
fn is_revoked(bot: &TestBot) -> bool {
    let told = bot.slack.recorded().deliveries;
    ["tokens_revoked", "app_uninstalled"].iter().all(|event| told.iter().any(|attempt| attempt.about == *event))
}

/// What is offered first, and Slack's own Stop button.
async fn an_agents_day(bot: &TestBot, thread: &Thread<'_>) {
    bot.slack.opens_talk("ana");
    eventually("what can be asked", || bot.slack.look(|world| !world.prompts.is_empty())).await;
    bot.upgrade.is_slow(Duration::from_secs(4));
    bot.slack.says("ana", "experiments", "@countersign list experiments", Some(&thread.root)).unwrap();
    let session = format!("{}/{}", bot.slack.messages("experiments")[0].channel, thread.root);
    let works = || bot.slack.look(|world| world.sessions.get(&session).is_some_and(|status| status == "processing"));
    eventually("a session that works", works).await;
    bot.slack.stops_session("ana", "experiments", &thread.root).unwrap();
    // It also withdraws the card that is open in the thread, and says so before or after.
    eventually("an end", || thread.messages().iter().any(|message| message.words().contains("Stopped"))).await;
    bot.upgrade.is_well();
    bot.settled().await;
}

fn manifest(variant: &str) -> Value {
    let text = std::fs::read_to_string(format!("deploy/slack-manifest.{variant}.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn scopes_in(manifest: &Value) -> BTreeSet<String> {
    strings(&manifest["oauth_config"]["scopes"]["bot"])
}

fn strings(list: &Value) -> BTreeSet<String> {
    list.as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned()).collect()
}

fn rust_files(folder: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![std::path::PathBuf::from(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension() {
                _ if path.is_dir() => folders.push(path),
                Some(kind) if kind == "rs" => found.push(path),
                _ => {}
            }
        }
    }
    found
}

/// Every method of the Web API that the code names: `"chat.postMessage"` and the like, in the room that talks to Slack.
fn methods_in_the_code() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in rust_files("src/slack") {
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            found.extend(line.split('"').skip(1).step_by(2).filter(|word| is_method(word)).map(str::to_owned));
        }
    }
    found
}

fn is_method(word: &str) -> bool {
    const FAMILIES: [&str; 15] = [
        "agents",
        "api",
        "apps",
        "assistant",
        "auth",
        "bookmarks",
        "bots",
        "chat",
        "conversations",
        "files",
        "pins",
        "reactions",
        "usergroups",
        "users",
        "views",
    ];
    let (family, rest) = word.split_once('.').unwrap_or((word, ""));
    FAMILIES.contains(&family) && !rest.is_empty() && rest.chars().all(|c| c.is_ascii_alphabetic() || c == '.')
}

#[tokio::test(flavor = "multi_thread")]
async fn the_manifests_ask_for_what_is_needed_and_no_more() {
    let (mut called, mut allowed) = (BTreeSet::new(), BTreeSet::new());
    for (agent, variants) in [(false, &["socket", "http"][..]), (true, &["agent"])] {
        let bot = a_busy_day(agent).await;
        let recorded = bot.slack.recorded();
        let needed = bot.slack.look(|world| scopes::needed(&recorded, world));
        let events: BTreeSet<String> = recorded.deliveries.iter().filter_map(scopes::name_of_event).collect();
        for variant in variants {
            let manifest = manifest(variant);
            assert_eq!(scopes_in(&manifest), needed, "scopes in the {variant} manifest");
            let subscribed = strings(&manifest["settings"]["event_subscriptions"]["bot_events"]);
            assert_eq!(subscribed, events, "events in the {variant} manifest");
            allowed.extend(scopes_in(&manifest));
        }
        called.extend(recorded.calls.iter().map(|call| call.method.clone()));
        bot.finish().await;
    }
    for method in methods_in_the_code().difference(&called) {
        let permitted = scopes::of_method(method, None).is_none_or(|scope| allowed.contains(scope));
        assert!(permitted, "the client can call {method}: have the busy day do so, and add its scope to the manifests");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_scope_is_named_once_and_everything_else_goes_on() {
    let slack = countersign_sandbox::slack::Options {
        scopes: manifest_scopes().into_iter().filter(|scope| scope != "files:write").collect(),
        ..Default::default()
    };
    let bot = TestBot::with(Setup { slack, ..Setup::default() }).await;
    let thread = bot.user("ana").says("list running experiments as raw JSON").await;
    thread.says("ana", "list archived experiments as raw JSON").await;
    let refused = bot.slack.recorded().calls.iter().filter(|call| call.answer["error"] == "missing_scope").count();
    assert_eq!(refused, 2, "each file was tried");
    let ready: Value = reqwest::get(format!("http://{}/readyz", bot.address())).await.unwrap().json().await.unwrap();
    assert_eq!(ready["ready"], true);
    assert_eq!(ready["missing_scopes"], serde_json::json!(["files:write (for files.getUploadURLExternal)"]));
    thread.says("ana", "is UpGrade running?").await;
    eventually("an answer", || thread.last().contains("6.5.0")).await;
    bot.expects_complaints();
}

#[tokio::test(flavor = "multi_thread")]
async fn check_names_the_scopes_that_are_missing() {
    let slack = countersign_sandbox::slack::Options {
        scopes: manifest_scopes().into_iter().filter(|scope| !scope.ends_with(":history")).collect(),
        ..Default::default()
    };
    let bot = TestBot::with(Setup { slack, ..Setup::default() }).await;
    let lines = countersign::app::check::run(&bot.config).await;
    let line = lines.into_iter().find(|line| line.what == "scopes").unwrap();
    assert_eq!(
        line.result.unwrap_err(),
        "the app lacks channels:history, groups:history, im:history, mpim:history; add the missing scopes under OAuth & Permissions, then reinstall the app"
    );
}
