//! “New experiment…”: a window that leads to a card.

use std::time::Duration;

use countersign_sandbox::slack::{
    Error,
    faults::{Fault, Loss},
    world::{message::Message, view::View},
};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::{
    bot::{TestBot, eventually},
    thread::Thread,
};

/// The window that is open before somebody, once it is filled.
async fn form(bot: &TestBot, name: &str) -> View {
    bot.slack.uses_shortcut(name, "new_experiment", None).await.unwrap();
    let user = bot.slack.user(name);
    let find = || {
        bot.slack.look(|world| {
            let id = world.stacks.get(&user)?.last()?.clone();
            world.views.get(&id).filter(|view| view.content["submit"].is_object()).cloned()
        })
    };
    eventually("the form", || find().is_some()).await;
    find().unwrap()
}

/// Each field: its label, whether it may stay empty, what it is.
fn fields(view: &View) -> String {
    let line = |block: &Value| {
        let may = if block["optional"] == true { " (optional)" } else { "" };
        let kind = block["element"]["type"].as_str()?;
        Some(format!("{}{may}: {kind}", block["label"]["text"].as_str()?))
    };
    view.content["blocks"].as_array().unwrap().iter().filter_map(line).collect::<Vec<_>>().join("\n")
}

/// The thread that the bot began in a channel.
async fn begun<'a>(bot: &'a TestBot, channel: &str) -> Thread<'a> {
    begun_with(bot, channel, "asks for a new").await
}

/// The thread that the bot began in a channel with these words.
async fn begun_with<'a>(bot: &'a TestBot, channel: &str, words: &str) -> Thread<'a> {
    let is_root =
        |message: &Message| message.by_app && message.ephemeral_to.is_none() && message.words().contains(words);
    let root = || bot.slack.messages(channel).into_iter().find(is_root);
    eventually("a thread", || root().is_some()).await;
    let thread = Thread::new(bot, channel, root().unwrap().ts);
    eventually("a card", || thread.messages().len() > 1).await;
    bot.settled().await;
    thread
}

/// The direct messages of somebody with the bot.
fn direct(bot: &TestBot, name: &str) -> String {
    let user = bot.slack.user(name);
    let find = |world: &countersign_sandbox::slack::world::World| {
        world.channels.iter().find(|c| c.with.as_ref() == Some(&user)).map(|c| c.id.to_string())
    };
    bot.slack.look(find).unwrap()
}

fn filled() -> Value {
    json!({
        "Name": "Worked <!channel> Examples", "Context": "assign-prog",
        "Decision points, one per line": "SelectSection / area_model",
        "Conditions, one per line": "variant: 60\ncontrol: 40",
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_experiment_is_proposed_in_a_channel() {
    let bot = TestBot::start().await;
    let view = form(&bot, "ana").await;
    assert_snapshot!(format!("{}\n{}\n{}", view.title(), view.words(), fields(&view)), @"
    New experiment
    Nothing is created yet. I'll post a card that shows exactly what will be created. Someone has to approve it.
    Where to ask (optional): conversations_select
    Name: plain_text_input
    Context: static_select
    Decision points, one per line: plain_text_input
    Conditions, one per line (optional): plain_text_input
    Weights, in % (optional): plain_text_input
    Description (optional): plain_text_input
    Assignment (optional): static_select
    Group type (optional): plain_text_input
    Consistency (optional): static_select
    After enrollment ends (optional): plain_text_input
    Users on no list (optional): static_select
    Tags, one per line (optional): plain_text_input
    End after this many users (optional): number_input
    Start automatically at (optional): datetimepicker
    Ends at (optional): datetimepicker
    ");
    let mut values = filled();
    values["Conditions, one per line"] = json!("variant: 60\ncontrol: 60");
    let refused = bot.slack.submits("ana", &view.id, values).await;
    let Err(Error::Refused(errors)) = refused else { panic!("{refused:?}") };
    assert!(errors["/conditions"].contains("add up to 120"), "{errors:?}");
    assert_eq!(errors.len(), 1, "{errors:?}");
    let mut values = filled();
    values["where"] = json!("C2");
    assert!(bot.slack.submits("ana", &view.id, values).await.unwrap(), "it closes");
    let mut thread = begun(&bot, "general").await;
    let heard = thread.heard();
    assert!(heard.starts_with("@ana asks for a new experiment: *Worked"), "{heard}");
    assert!(heard.contains("Asked by @ana") && heard.contains("variant 60%"), "{heard}");
    assert!(!bot.upgrade.contains("Worked <!channel> Examples"), "nothing is made before somebody approves");
    thread.clicks("bo", "Create experiment").await;
    assert!(thread.heard().contains("Approved by @bo"));
    assert!(bot.upgrade.contains("Worked <!channel> Examples"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_stands_at_the_field_that_is_wrong() {
    let bot = TestBot::start().await;
    let view = form(&bot, "ana").await;
    let weights = "variant: 60\ncontrol: 60";
    for (label, entry, place, words) in [
        ("Decision points, one per line", "SelectSection / nowhere", "/decision_points", "has no target “nowhere”"),
        ("Conditions, one per line", weights, "/conditions", "add up to 120"),
        ("After enrollment ends", "assign nothing", "/post_rule", "nothing"),
    ] {
        let mut values = filled();
        values[label] = json!(entry);
        let refused = bot.slack.submits("ana", &view.id, values).await;
        let Err(Error::Refused(errors)) = refused else { panic!("{label}: {refused:?}") };
        let errors: Vec<_> = errors.iter().map(|(place, words)| (place.as_str(), words.as_str())).collect();
        let [(found, said)] = errors[..] else { panic!("{label}: {errors:?}") };
        assert!(found == place && said.contains(words), "{label}: {errors:?}");
    }
    // Two fields are wrong: the error that is shown stands at its own.
    let mut values = filled();
    (values["Conditions, one per line"], values["After enrollment ends"]) = (json!(weights), json!("assign nothing"));
    let refused = bot.slack.submits("ana", &view.id, values).await;
    let Err(Error::Refused(errors)) = refused else { panic!("{refused:?}") };
    assert!(errors["/conditions"].contains("add up to 120"), "{errors:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_home_tab_says_where_the_card_is() {
    let bot = TestBot::start().await;
    bot.user("ana").opens_home().await;
    let view = form(&bot, "ana").await;
    let mut values = filled();
    values["where"] = json!("C2");
    assert!(bot.slack.submits("ana", &view.id, values).await.unwrap());
    eventually("the place", || bot.user("ana").home().contains("Your request for")).await;
    let home = bot.user("ana").home();
    assert_snapshot!(home.lines().next().unwrap_or_default(), @"Your request for *Worked &lt;!channel&gt; Examples* is in <#C2> · ‹Open the thread›");
    begun(&bot, "general").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_channel_it_is_proposed_in_direct_messages_and_only_once() {
    let bot = TestBot::start().await;
    bot.slack.inject(Fault::DeliverTwice { on: true });
    let view = form(&bot, "ana").await;
    // The message arrives, but the bot does not learn it: it looks for it before it posts again.
    bot.slack.inject(Fault::LoseAnswer { method: "chat.postMessage".into(), calls: 1, how: Loss::Closed });
    assert!(bot.slack.submits("ana", &view.id, filled()).await.unwrap());
    let channel = direct(&bot, "ana");
    eventually("the message", || bot.slack.messages(&channel).iter().any(|message| message.by_app)).await;
    bot.clock.advance(Duration::from_secs(120)); // what failed in the inbox is tried again
    let mut thread = begun(&bot, &channel).await;
    bot.settled().await;
    let cards = thread.heard().matches("[Create experiment]").count();
    let roots = bot.slack.messages(&channel).iter().filter(|message| message.by_app).count();
    assert_eq!((cards, roots), (1, 1), "{}", thread.heard());
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_bot_is_not_the_request_comes_in_direct_messages() {
    let bot = TestBot::start().await;
    let view = form(&bot, "ana").await;
    let error = "not_in_channel".to_owned();
    bot.slack.inject(Fault::Fail { method: "conversations.history".into(), error, calls: 1 });
    let mut values = filled();
    values["where"] = json!("C2");
    assert!(bot.slack.submits("ana", &view.id, values).await.unwrap());
    let thread = begun(&bot, &direct(&bot, "ana")).await;
    let heard = thread.messages()[0].words();
    assert!(heard.contains("I'm not in the channel you chose, so your request is here."), "{heard}");
    assert!(bot.slack.messages("general").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_that_is_sent_twice_proposes_once() {
    let bot = TestBot::start().await;
    let view = form(&bot, "ana").await;
    let mut values = filled();
    values["where"] = json!("C2");
    let both = tokio::join!(
        bot.slack.submits("ana", &view.id, values.clone()),
        bot.slack.submits("ana", &view.id, values.clone())
    );
    assert!(matches!(both, (Ok(true), Ok(true))), "it closes each time: {both:?}");
    let mut thread = begun(&bot, "general").await;
    assert_eq!(thread.heard().matches("[Create experiment]").count(), 1);
    assert_eq!(bot.slack.messages("general").iter().filter(|message| message.by_app).count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_is_answered_in_time_however_slow_the_platform_is() {
    let bot = TestBot::start().await;
    let view = form(&bot, "ana").await;
    bot.upgrade.is_slow(Duration::from_millis(1800));
    let refused = bot.slack.submits("ana", &view.id, filled()).await;
    let Err(Error::Refused(errors)) = refused else { panic!("{refused:?}") };
    assert_snapshot!(bot.readable(&format!("{errors:?}")), @r#"{"/conditions": "The platform took too long to check this, so nothing was saved. Try again in a moment."}"#);
    // What could be read but not checked in time is checked in the thread.
    bot.upgrade.is_slow(Duration::from_millis(700));
    assert!(bot.slack.submits("ana", &view.id, Value::Null).await.unwrap(), "it closes, with what was entered first");
    bot.upgrade.is_well();
    let thread = begun(&bot, &direct(&bot, "ana")).await;
    assert!(thread.last().contains("[Create experiment]"), "{}", thread.last());
    let recorded = bot.slack.recorded();
    let sent: Vec<_> = recorded.deliveries.iter().filter(|attempt| attempt.about == "view_submission").collect();
    assert_eq!(sent.len(), 2);
    for sent in sent {
        assert!(sent.acknowledged_after_ms.is_some_and(|after| after < 2000), "{sent:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_asks_for_a_change_offers_to_ask_in_the_channel() {
    let bot = TestBot::start().await;
    let ana = bot.user("ana");
    assert_snapshot!(ana.types("/upgrade start Math Hints").await, @"
    Commands only look things up, so nothing was changed. Ask for a change in a conversation, where others can see it.
    Or post this in a channel: `@countersign start Math Hints`
    [Ask in this channel]
    ");
    let answer = bot.slack.ephemerals("ana").pop().unwrap();
    for _ in 0..2 {
        bot.slack.clicks("ana", "experiments", &answer.ts, "Ask in this channel").await.unwrap();
    }
    let thread = begun_with(&bot, "experiments", "asks: *start Math Hints*").await;
    let said: Vec<String> = thread.messages().iter().map(|message| bot.readable(&message.words())).collect();
    assert!(said[0].starts_with("@ana asks:") && said[1].starts_with("*Start “Math Hints”?*"), "{said:?}");
    assert_eq!(said.len(), 2, "pressing again asks for nothing more");
    thread.clicks("bo", "Start experiment").await;
    assert_eq!(bot.upgrade.experiment("Math Hints").unwrap()["state"], "running");
}
