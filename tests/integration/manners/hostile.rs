//! The whole bot among hostile names, hostile people and a hostile model; and answers longer than a message.

use proptest::{
    strategy::{Strategy, ValueTree},
    test_runner::TestRunner,
};
use serde_json::{Value, json};

use super::{
    judge,
    words::{TRICKS, hostile},
};
use crate::{
    dialogues::scripted::{answers_at_once, bot_with_model, finish},
    support::bot::TestBot,
};

/// The same hostile texts at each run: every trick once, and some that are made of many.
fn texts(mixed: usize) -> Vec<String> {
    let mut runner = TestRunner::deterministic();
    let mut next = || hostile().new_tree(&mut runner).unwrap().current();
    let tricks = TRICKS.iter().map(|trick| format!("Pilot {trick} end"));
    tricks.chain((0..mixed).map(|n| format!("Mix {n} {}", next()))).collect()
}

/// Judges everything that was sent to anybody.
fn judged(bot: &TestBot) -> usize {
    let calls = bot.slack.recorded().calls;
    for call in &calls {
        match call.method.as_str() {
            "chat.postMessage" | "chat.update" | "chat.postEphemeral" | "response_url" => judge::message(&call.body),
            "views.open" | "views.push" | "views.update" | "views.publish" => judge::view(&call.body["view"]),
            _ => {}
        }
    }
    calls.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_names_and_people_call_nobody_and_lead_nowhere() {
    let bot = TestBot::start().await;
    let names = texts(20);
    for name in &names {
        bot.upgrade.has(name, "inactive");
    }
    bot.slack.arrange(|world| {
        for (user, name) in world.users.iter_mut().zip(&names) {
            user.real_name = name.clone();
        }
    });
    let thread = bot.user("ana").says("list experiments").await;
    thread.says("ana", "list all experiments in detail").await;
    bot.user("ana").types("/upgrade list").await;
    for name in names.iter().filter(|name| name.len() < 300) {
        thread.says("bo", &format!("@countersign show “{name}”")).await;
        thread.says("bo", &format!("@countersign start “{name}”")).await;
    }
    for name in names.iter().take(12) {
        bot.user("cy").types(&format!("/upgrade list {}", name.replace('\n', " "))).await;
        bot.user("cy").types(&format!("/countersign {}", name.replace('\n', " "))).await;
    }
    bot.user("ana").types("/countersign pending").await;
    bot.user("ana").types("/countersign runs").await;
    bot.user("ana").opens_home().await;
    assert!(thread.messages().iter().any(|message| message.button("Start experiment").is_some()), "no card was shown");
    assert!(judged(&bot) > 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_model_calls_nobody_and_leads_nowhere() {
    let (bot, model) = bot_with_model().await;
    let answers = texts(15);
    for answer in &answers {
        answers_at_once(&model, answer);
        bot.user("ana").says("hello there, how do you do?").await;
    }
    assert!(judged(&bot) > answers.len());
    finish(bot, model).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_answer_of_a_model_comes_whole_and_in_order() {
    let (bot, model) = bot_with_model().await;
    let paragraphs: Vec<String> =
        (0..30).map(|n| format!("Paragraph {n}. {}", "Some more words. ".repeat(40))).collect();
    let code: String = (0..200).map(|n| format!("let step_{n} = assign(\"question-hint\", {n});\n")).collect();
    let answer = format!("{}\n\n```rust\n{code}```\n\nThat is all.", paragraphs.join("\n\n"));
    answers_at_once(&model, &answer);
    let thread = bot.user("ana").says("hello there, how do you do?").await;
    let messages = thread.messages();
    assert!(messages.len() > 2, "{} messages", messages.len());
    let markdown = |message: &countersign_sandbox::slack::world::message::Message| -> String {
        let of = |block: &Value| block["text"].as_str().map(str::to_owned);
        message.blocks.iter().filter(|block| block["type"] == "markdown").filter_map(of).collect::<Vec<_>>().join("\n")
    };
    let all: Vec<String> = messages.iter().map(markdown).collect();
    let together = all.join("\n");
    let mut from = 0;
    let steps = (0..200).map(|n| format!("let step_{n} = "));
    for wanted in (0..30).map(|n| format!("Paragraph {n}. ")).chain(steps).chain(["That is all.".to_owned()]) {
        from += together[from..].find(&wanted).unwrap_or_else(|| panic!("`{wanted}` is missing or out of order"));
    }
    let fences = |text: &String| text.lines().filter(|line| line.starts_with("```")).count();
    assert!(all.iter().all(|text| fences(text) % 2 == 0), "each message closes what it opens");
    assert!(all.iter().filter(|text| text.contains("```rust")).count() > 1, "the code goes on as code");
    judged(&bot);
    assert_eq!(json!(messages.last().unwrap().thread_ts), json!(thread.root));
    finish(bot, model).await;
}
