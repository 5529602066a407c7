//! A thread is exported in the thread, and rated there; what is out of date is forgotten.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign::{
    app::dependencies::memories,
    config::{self, Kept},
    conversation::record::{
        notebook::{Notebook, Redaction, verify::verify},
        retention::Retention,
        stream::{Round, Sink, Stream},
    },
    graph::store::AuditKind,
    ids::ThreadId,
    slack::client::SlackClient,
};
use insta::assert_snapshot;

use crate::{
    approvals::windows::{opens, sends},
    support::{
        bot::{TestBot, eventually},
        thread::{Thread, normalised},
    },
};

/// The files of a thread whose names begin with this, oldest first.
fn files(bot: &TestBot, thread: &Thread<'_>, begins: &str, ends: &str) -> Vec<Vec<u8>> {
    let ids: Vec<_> = thread.messages().into_iter().flat_map(|message| message.files).collect();
    bot.slack.look(|world| {
        let files = ids.iter().map(|id| &world.files[id]);
        files.filter(|f| f.name.starts_with(begins) && f.name.ends_with(ends)).map(|f| f.bytes.clone()).collect()
    })
}

pub(super) fn id_of(bot: &TestBot, thread: &Thread<'_>) -> ThreadId {
    let (team, channel) =
        bot.slack.look(|world| (world.team.clone(), world.channel("experiments").unwrap().id.clone()));
    ThreadId { team, channel, root: thread.root.clone() }
}

/// The hash of the first file that the bot put into a thread.
async fn file_of(bot: &TestBot, thread: &ThreadId) -> String {
    let audit = bot.store().audit(thread).await.unwrap().entries;
    let attached = audit.iter().find(|entry| entry.event.kind == AuditKind::Attached).expect("a file");
    attached.event.detail["hash"].as_str().unwrap().to_owned()
}

/// Without times and hashes, which differ from run to run.
fn readable(bot: &TestBot, notebook: &str) -> String {
    let mut lines = Vec::new();
    for line in bot.readable(notebook).lines() {
        let words: Vec<_> = line
            .split(' ')
            .map(|word| {
                let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
                let time = bare.len() == 8 && bare.matches(':').count() == 2;
                let date = bare.len() == 10 && bare.matches('-').count() == 2;
                let hash = bare.len() >= 64 && bare.bytes().all(|b| b.is_ascii_hexdigit());
                match (time, date, hash) {
                    (true, ..) => word.replace(bare, "‹time›"),
                    (_, true, _) => word.replace(bare, "‹date›"),
                    (.., true) => word.replace(bare, "‹hash›"),
                    _ if bare.starts_with("T1/C") || bare.contains('/') && bare.contains(".0") => "‹thread›".to_owned(),
                    _ => word.to_owned(),
                }
            })
            .collect();
        lines.push(normalised(&words.join(" ")));
    }
    lines.join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_is_exported_where_it_is() {
    let (bot, mut thread) = TestBot::hears("ana", "start Math Hints").await;
    thread.clicks("bo", "Start experiment").await;
    thread.says("ana", "yes").await;
    thread.says("ana", "stop Math Hints").await;
    thread.clicked("cy", "Reject…").await;
    thread.says("ana", "@countersign notebook").await;
    eventually("two files", || files(&bot, &thread, "notebook", "").len() == 2).await;

    let jsonl = files(&bot, &thread, "notebook", ".jsonl").remove(0);
    let verified = verify(&jsonl).unwrap();
    assert_eq!(verified.thread, id_of(&bot, &thread));
    let markdown = String::from_utf8(files(&bot, &thread, "notebook", ".md").remove(0)).unwrap();
    assert_snapshot!(readable(&bot, &markdown));

    // The record says that it was exported, and with which hash, so a later export proves the earlier one.
    thread.says("bo", "notebook").await; // in its thread nobody has to mention it
    eventually("four files", || files(&bot, &thread, "notebook", "").len() == 4).await;
    let second = String::from_utf8(files(&bot, &thread, "notebook", ".jsonl").remove(1)).unwrap();
    assert!(second.contains(&verified.last), "{second}");
    verify(second.as_bytes()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn people_who_speak_of_a_notebook_elsewhere_are_left_alone() {
    let bot = TestBot::start().await;
    let thread = bot.user("ana").says_in("experiments", "what shall we bring?").await;
    thread.says("bo", "notebook").await;
    assert!(thread.messages().is_empty());
    assert!(bot.slack.ephemerals("bo").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_where_nothing_happened_has_no_notebook() {
    let (_bot, mut thread) = TestBot::hears("ana", "notebook").await;
    assert_snapshot!(thread.told("ana"), @"
    There's nothing to export in this thread.
    Ask for the notebook inside the thread you mean, or choose Export this thread in the menu of a message there.
    ");
    assert_eq!(thread.heard(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_people_think_of_an_answer_is_kept() {
    let (bot, mut thread) = TestBot::hears("ana", "list experiments").await;
    let answer = thread.messages().pop().unwrap();
    let block =
        answer.blocks.iter().find(|block| block["type"] == "context_actions").expect("it asks whether it helped");
    let [yes, no] = ["positive_button", "negative_button"].map(|name| block["elements"][0][name]["value"].clone());
    let press = |value: &serde_json::Value| countersign_sandbox::slack::people::Press::Action {
        action_id: "rate".to_owned(),
        value: Some(value.as_str().unwrap().to_owned()),
    };
    for (name, value) in [("ana", &yes), ("ana", &yes), ("bo", &no)] {
        bot.slack.clicks(name, "experiments", &answer.ts, press(value)).await.unwrap();
        bot.settled().await;
    }
    eventually("answers", || !bot.slack.ephemerals("bo").is_empty()).await;
    assert_snapshot!(thread.told("ana"), @"
    Thank you. Recorded: this helped.
    ---
    You already rated this answer. Thank you.
    ");
    assert_snapshot!(thread.told("bo"), @"
    Thank you. Recorded: this didn't help.
    Tell me in the thread what you were looking for and I'll try again.
    ");
    let traces = countersign::conversation::record::trace::Traces::new(bot.store());
    let trace = traces.trace(&id_of(&bot, &thread)).await.unwrap().unwrap();
    drop(traces);
    let ratings = trace["runs"][0]["ratings"].as_array().unwrap();
    assert_eq!(ratings.iter().map(|rating| rating["helped"].clone()).collect::<Vec<_>>(), [true, false]);

    thread.says("ana", "start Math Hints").await;
    let card = thread.messages().pop().unwrap();
    assert!(card.blocks.iter().all(|block| block["type"] != "context_actions"), "nobody rates a card");
    thread.skip();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finished_thread_is_forgotten_and_its_record_still_verifies() {
    let mut bot = TestBot::start().await;
    bot.config.record.keep = Some(Duration::from_secs(24 * 3600));
    let (root, id) = {
        let thread = bot.user("ana").says("start Math Hints").await;
        thread.clicks("bo", "Start experiment").await;
        thread.says("ana", "list experiments as raw JSON").await;
        let open = bot.user("ana").says("start Class Hint Rollout").await;
        assert!(open.last().contains("Class Hint Rollout"));
        (thread.root.clone(), id_of(&bot, &thread))
    };
    let file = file_of(&bot, &id).await;
    bot.settled().await;
    let clock: Arc<countersign::clock::ManualClock> = Arc::new(bot.clock.clone());
    let retention = Retention::new(bot.store(), clock.clone(), memories(), &bot.config.record);
    assert_eq!(retention.sweep().await.unwrap(), 0, "nothing is so old");
    bot.clock.advance(Duration::from_secs(23 * 3600));
    assert_eq!(retention.sweep().await.unwrap(), 0);
    bot.clock.advance(Duration::from_secs(2 * 3600));
    bot.settled().await;
    assert!(retention.sweep().await.unwrap() >= 1);
    drop(retention);

    assert_eq!(bot.store().steps(&id, 0, 100).await.unwrap(), []);
    assert_eq!(bot.store().get_blob(&file).await.unwrap(), None, "files go with the words");
    let slack =
        SlackClient::new(&bot.slack.api_url(), bot.config.slack.bot_token.as_ref().unwrap(), SlackClient::TIMEOUT);
    let notebook = Notebook::new(bot.store(), clock, slack.ok(), Redaction::default());
    let exported = notebook.export(&id).await.unwrap();
    drop(notebook);
    let verified = verify(&exported.jsonl.bytes).unwrap();
    assert!(verified.hidden > 0);
    let told = String::from_utf8(exported.markdown.bytes).unwrap();
    assert!(!told.contains("start Math Hints") && told.contains("approved card 1"), "{told}");
    assert!(told.contains("Messages and steps up to here were deleted"), "{told}");

    let mut thread = Thread::new(&bot, "experiments", root);
    thread.skip();
    thread.says("ana", "@countersign is UpGrade running?").await;
    let heard = thread.heard();
    assert!(heard.contains("UpGrade is running"), "it goes on, in a message of its own: {heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn words_that_decided_are_forgotten_with_all_others() {
    let mut bot = TestBot::start().await;
    bot.config.record.keep = Some(Duration::from_secs(24 * 3600));
    let ids = {
        let typed = bot.user("ana").says("start Math Hints").await;
        typed.says("bo", "Go ahead!").await;
        let turned_down = bot.user("ana").says("pause Math Hints").await;
        opens(&bot, &turned_down, "bo", "reject").await;
        assert!(sends(&bot, "bo", serde_json::json!({ "Reason": "teachers asked for it" })).await.is_empty());
        assert!(turned_down.messages().iter().any(|message| message.words().contains("teachers asked for it")));
        [id_of(&bot, &typed), id_of(&bot, &turned_down)]
    };
    let before = serde_json::to_string(&bot.store().audit(&ids[0]).await.unwrap().entries).unwrap();
    assert!(before.contains("Go ahead!"), "as long as it is kept, it says by which words");
    bot.settled().await;
    bot.clock.advance(Duration::from_secs(49 * 3600));
    bot.settled().await;
    let retention = Retention::new(bot.store(), Arc::new(bot.clock.clone()), memories(), &bot.config.record);
    retention.sweep().await.unwrap();
    drop(retention);
    for id in &ids {
        let audit = serde_json::to_string(&bot.store().audit(id).await.unwrap().entries).unwrap();
        let filter = countersign::graph::store::ActionFilter::of(id, &[], 9);
        let actions = serde_json::to_string(&bot.store().actions(&filter).await.unwrap()).unwrap();
        for words in ["Go ahead", "teachers asked"] {
            assert!(!audit.contains(words) && !actions.contains(words), "{words}: {audit}\n{actions}");
        }
        let notebook = Notebook::new(bot.store(), Arc::new(bot.clock.clone()), None, Redaction::default());
        let exported = notebook.export(id).await.unwrap();
        assert!(verify(&exported.jsonl.bytes).unwrap().hidden > 0, "the rest still verifies");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_thread_may_leave_nothing() {
    let mut bot = TestBot::start().await;
    (bot.config.record.keep, bot.config.record.kept) = (Some(Duration::from_secs(24 * 3600)), Kept::Nothing);
    let id = {
        let thread = bot.user("ana").says("list experiments as raw JSON").await;
        id_of(&bot, &thread)
    };
    let file = file_of(&bot, &id).await;
    assert!(bot.store().get_blob(&file).await.unwrap().is_some());
    bot.clock.advance(Duration::from_secs(49 * 3600));
    let retention = Retention::new(bot.store(), Arc::new(bot.clock.clone()), memories(), &bot.config.record);
    assert_eq!(retention.sweep().await.unwrap(), 1);
    drop(retention);
    assert_eq!(bot.store().load(&id).await.unwrap(), None);
    assert_eq!(bot.store().audit(&id).await.unwrap().entries, []);
    assert_eq!(bot.store().get_blob(&file).await.unwrap(), None, "its file went with it");
}

/// Another system, which takes everything.
struct Elsewhere;

#[async_trait]
impl Sink for Elsewhere {
    async fn send(&mut self, lines: Vec<u8>) -> Result<(), String> {
        assert!(String::from_utf8(lines).unwrap().contains("list experiments as raw JSON"));
        Ok(())
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(1)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_is_forgotten_only_after_its_record_was_sent() {
    let mut bot = TestBot::start().await;
    (bot.config.record.keep, bot.config.record.kept) = (Some(Duration::from_secs(24 * 3600)), Kept::Nothing);
    bot.config.record.stream = Some(config::Stream::Stdout);
    bot.user("ana").says("list experiments as raw JSON").await;
    bot.clock.advance(Duration::from_secs(49 * 3600));
    let clock = Arc::new(bot.clock.clone());
    let retention = Retention::new(bot.store(), clock.clone(), memories(), &bot.config.record);
    assert_eq!(retention.sweep().await.unwrap(), 0, "nothing was sent yet");
    let mut stream = Stream::new(bot.store(), clock, Redaction::default(), Elsewhere, "process".to_owned());
    assert!(matches!(stream.round().await.unwrap(), Round::Sent(1..)));
    assert_eq!(retention.sweep().await.unwrap(), 1);
    drop((stream, retention));
}
