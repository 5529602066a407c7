//! Questions about what was changed, in other threads of the channel as well.

use std::time::Duration;

use insta::assert_snapshot;

use crate::support::bot::TestBot;

/// Returns the answers in new threads of #experiments.
async fn answers(bot: &TestBot, questions: &[&str]) -> String {
    let mut answers = Vec::new();
    for said in questions {
        answers.push(format!("> {said}\n{}", bot.user("cy").answer(said).await));
    }
    answers.join("\n\n")
}

/// What was said, without the days on which the bot looked.
fn undated(said: &str) -> String {
    let undated = |line: &str| match line.split_once(", 20") {
        Some((before, days)) if line.starts_with("I looked in") => {
            format!("{before}{}", days.find(". ").map_or("", |at| &days[at..]))
        }
        _ => line.to_owned(),
    };
    said.lines().map(undated).collect::<Vec<_>>().join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_thread_knows_the_changes_of_its_channel_and_of_no_other() {
    let bot = TestBot::start().await;
    assert_snapshot!(answers(&bot, &["what have we accomplished?"]).await, @"
    > what have we accomplished?
    Nothing has been changed in this thread yet, nor in the other threads of this channel.
    I looked in this thread and the other threads of this channel. Threads that were removed from the store aren't included.
    [List experiments]
    ");

    let lab = bot.slack.founds_private_channel("ana", "lab", &["bo", "cy"]);
    for (channel, said, by, label) in [
        (lab.as_str(), "rename Chat Tone to Tutor Tone", "bo", "Update experiment"),
        ("general", "delete Concrete Fractions", "bo", "Delete permanently"),
        ("experiments", "start Math Hints", "bo", "Start experiment"),
        ("experiments", "stop Lesson Video Hints", "cy", "Reject…"),
    ] {
        let mut thread = bot.user("ana").says_in(channel, &format!("@countersign {said}")).await;
        thread.clicked(by, label).await;
    }
    let questions = [
        "what have we accomplished?",
        "what was changed today?",
        "who approved Math Hints",
        "who approved the start of Math Hints",
        "who approved lesson video hints",
        "was anything turned down this week?",
        "did anybody touch Chat Tone lately",
    ];
    assert_snapshot!(undated(&answers(&bot, &questions).await), @"
    > what have we accomplished?
    Nothing has been changed in this thread yet. In the other threads of this channel:
    • ✅ Started “Math Hints”: it is running now. · ‹time› · asked by ana, approved by bo · ‹open the card›
    I looked in this thread and the other threads of this channel. Threads that were removed from the store aren't included.

    > what was changed today?
    In the other threads of this channel (today):
    • ✅ Started “Math Hints”: it is running now. · ‹time› · asked by ana, approved by bo · ‹open the card›
    I looked in this thread and the other threads of this channel. Threads that were removed from the store aren't included.

    > who approved Math Hints
    In the other threads of this channel:
    • ✅ Started “Math Hints”: it is running now. · ‹time› · asked by ana, approved by bo · ‹open the card›
    I looked in this thread and the other threads of this channel. Threads that were removed from the store aren't included.

    > who approved the start of Math Hints
    In the other threads of this channel:
    • ✅ Started “Math Hints”: it is running now. · ‹time› · asked by ana, approved by bo · ‹open the card›
    I looked in this thread and the other threads of this channel. Threads that were removed from the store aren't included.

    > who approved lesson video hints
    In the other threads of this channel:
    • 🚫 Stop “Lesson Video Hints”: rejected · ‹time› · asked by ana, rejected by cy · ‹open the card›
    I looked in this thread and the other threads of this channel. Threads that were removed from the store aren't included.

    > was anything turned down this week?
    In the other threads of this channel (this week):
    • 🚫 Stop “Lesson Video Hints”: rejected · ‹time› · asked by ana, rejected by cy · ‹open the card›
    I looked in this thread and the other threads of this channel. Threads that were removed from the store aren't included.

    > did anybody touch Chat Tone lately
    No changes about “Chat Tone” in this thread or in the other threads of this channel (lately).
    I looked in this thread and the other threads of this channel. Threads that were removed from the store aren't included.
    ");

    let mut direct = bot.user("bo").writes("what have we accomplished?").await;
    assert_snapshot!(direct.in_short(), @"
    Nothing has been changed in this thread yet, nor in your requests in other threads.
    I looked in this thread and your requests in other threads. Threads that were removed from the store aren't included.
    [List experiments]
    ");
    let mut direct = bot.user("ana").writes("who approved Math Hints?").await;
    assert_snapshot!(direct.in_short(), @"
    In your requests in other threads:
    • ✅ Started “Math Hints”: it is running now. · ‹time› · asked by ana, approved by bo · ‹open the card›
    I looked in this thread and your requests in other threads. Threads that were removed from the store aren't included.
    ");

    bot.clock.advance(Duration::from_secs(24 * 3600));
    let mut thread = bot.user("ana").says("stop Math Hints").await;
    thread.clicked("bo", "Stop experiment").await;
    thread.skip();
    let mut told = Vec::new();
    for said in ["who approved it?", "what was changed today?", "what about yesterday", "history of Math Hints"] {
        told.push(format!("> {said}\n{}", thread.answer("ana", &format!("@countersign {said}")).await));
    }
    assert_snapshot!(undated(&told.join("\n\n")), @"
    > who approved it?
    1 change in this thread:
    • ✅ Stopped “Math Hints”: no new users are enrolled. · ‹time› · asked by @ana, approved by @bo

    > what was changed today?
    In this thread (today):
    • ✅ Stopped “Math Hints”: no new users are enrolled. · ‹time› · asked by ana, approved by bo · ‹open the card›
    I looked in this thread and the other threads of this channel. Threads that were removed from the store aren't included.

    > what about yesterday
    In the other threads of this channel (yesterday):
    • ✅ Started “Math Hints”: it is running now. · ‹time› · asked by ana, approved by bo · ‹open the card›
    I looked in this thread and the other threads of this channel. Threads that were removed from the store aren't included.

    > history of Math Hints
    In this thread:
    • ✅ Stopped “Math Hints”: no new users are enrolled. · ‹time› · asked by ana, approved by bo · ‹open the card›
    In the other threads of this channel:
    • ✅ Started “Math Hints”: it is running now. · ‹time› · asked by ana, approved by bo · ‹open the card›
    I looked in this thread and the other threads of this channel. Threads that were removed from the store aren't included.
    ");
}
