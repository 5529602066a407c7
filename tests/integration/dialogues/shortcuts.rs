//! Shortcuts on messages, and the notebook by command.

use std::time::Duration;

use countersign_sandbox::slack::Error;
use insta::assert_snapshot;
use serde_json::json;

use crate::support::{
    bot::{TestBot, eventually},
    short::in_short,
    thread::Thread,
};

/// The window that is open before somebody.
fn window(bot: &TestBot, name: &str) -> Option<(String, String)> {
    let user = bot.slack.user(name);
    bot.slack.look(|world| {
        let id = world.stacks.get(&user)?.last()?.clone();
        let view = &world.views[&id];
        Some((id, format!("{}\n{}", view.title(), view.words())))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_asks_about_a_message() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").says_in("experiments", "shall we start <!channel> & *Math Hints*?").await;
    bot.slack.uses_shortcut("bo", "ask_about_message", Some(("experiments", &thread.root))).await.unwrap();
    eventually("a window", || window(&bot, "bo").is_some()).await;
    let (id, words) = window(&bot, "bo").unwrap();
    assert_snapshot!(words, @"
    Ask about this message
    About: _shall we start &lt;!channel&gt; &amp; ∗Math Hints∗?_
    ");
    let refused = bot.slack.submits("bo", &id, json!({ "question": "   " })).await;
    let Err(Error::Refused(errors)) = refused else { panic!("{refused:?}") };
    assert_snapshot!(errors["question"], @"Tell me what to look at.");
    let question = || json!({ "question": "is UpGrade running?" });
    let both = tokio::join!(bot.slack.submits("bo", &id, question()), bot.slack.submits("bo", &id, question()));
    assert!(matches!(both, (Ok(true), Ok(true))), "it closes each time, and asks once: {both:?}");
    eventually("an answer", || thread.messages().len() >= 2).await;
    bot.settled().await;
    assert_snapshot!(thread.in_short(), @"
    @bo asks about this message: _is UpGrade running?_
    ---
    UpGrade is running: *A/B Testing Backend*, version `6.5.0`.
    ");
    assert_snapshot!(thread.told("bo"), @"On it. I'll answer in this thread.");
    assert!(window(&bot, "bo").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_is_exported_from_the_menu_of_a_message() {
    let (bot, mut thread) = TestBot::hears("ana", "start Math Hints").await;
    thread.clicks("bo", "Start experiment").await;
    let card = thread.messages()[0].ts.clone();
    bot.slack.uses_shortcut("bo", "export_thread", Some(("experiments", &card))).await.unwrap();
    eventually("files", || files(&thread).len() == 2).await;
    bot.settled().await;
    assert_snapshot!(thread.told("bo"), @"I'm posting the notebook of the thread “start Math Hints” in <#C1> to that thread: a readable page and a verifiable log. · ‹open the thread›");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notebook_is_had_by_command() {
    let bot = TestBot::start().await;
    let ana = bot.user("ana");
    assert_snapshot!(in_short(&ana.types("/countersign notebook").await), @"
    You haven't asked for any changes yet, so I don't know which thread you mean.
    Add a link to a message in the thread, or use “Export this thread” in the menu of that message.
    ");
    assert_snapshot!(in_short(&ana.types("/countersign notebook Math Hints").await), @"
    That isn't a link to a message. Use “Copy link” in the menu of any message in the thread.
    For example: `/countersign notebook https://…/archives/C…/p…`
    ");
    let thread = ana.says("start Math Hints").await;
    let told = ana.types_in("general", "/countersign notebook").await;
    assert!(
        told.starts_with("You haven't asked for any changes in this conversation. Your last request was in <#C1>"),
        "{told}"
    );
    ana.types("/countersign notebook").await;
    eventually("files", || files(&thread).len() == 2).await;
    let link = format!("https://learning-lab.slack.com/archives/C1/p{}", thread.root.as_str().replace('.', ""));
    assert_snapshot!(bot.user("bo").types_in("general", &format!("/countersign notebook {link}")).await, @"
    I can't tell from here whether you can see that thread.
    Type the command in the thread's channel, or use “Export this thread” in the menu of one of its messages.
    ");
    assert_eq!(files(&thread).len(), 2, "bo may not be in #experiments");
    bot.user("bo").types(&format!("/countersign notebook {link}")).await;
    eventually("files", || files(&thread).len() == 4).await;
    bot.clock.advance(Duration::from_secs(1));
    ana.writes("stop Lesson Video Hints").await;
    let told = ana.types_in("general", "/countersign notebook").await;
    assert!(told.contains("Your last request was in a direct message"), "{told}");
}

/// The names of the files in a thread.
fn files(thread: &Thread<'_>) -> Vec<String> {
    let messages = thread.messages();
    messages.iter().flat_map(|message| message.files.iter().map(|file| format!("{file:?}"))).collect()
}
