//! What Slack does around a message: edits, deletions, files, a channel that the bot is removed from, a token that is refused.

use std::time::Duration;

use countersign::{clock::Clock as _, graph::store::ActionFilter, ids::MessageTs};
use countersign_sandbox::slack::{faults::Fault, people::Stored};
use insta::assert_snapshot;
use serde_json::Value;

use crate::support::{
    bot::{Setup, TestBot, eventually},
    thread::Thread,
};

/// Posts a message with files; returns its thread when the bot is done.
async fn shares<'a>(bot: &'a TestBot, text: &str, files: &[(&str, &[u8], Stored)]) -> Thread<'a> {
    let ts = bot.slack.shares("ana", "experiments", text, files, None).unwrap();
    bot.delivered(&ts).await;
    bot.settled().await;
    Thread::new(bot, "experiments", ts)
}

/// Edits a message; returns when the bot is done with what it was told of that.
async fn edits(bot: &TestBot, ts: &MessageTs, text: &str) {
    let before = changes(bot);
    bot.slack.edits("ana", "experiments", ts, text).unwrap();
    changed(bot, before).await;
}

/// Deletes a message.
async fn deletes(bot: &TestBot, ts: &MessageTs) {
    let before = changes(bot);
    bot.slack.deletes("ana", "experiments", ts).unwrap();
    changed(bot, before).await;
}

/// How often the bot was told of a change of a person's message.
fn changes(bot: &TestBot) -> usize {
    let of_person = |payload: &Value| payload["event"]["previous_message"]["user"] == "U1";
    bot.slack.recorded().deliveries.iter().filter(|attempt| of_person(&attempt.payload)).count()
}

async fn changed(bot: &TestBot, before: usize) {
    eventually("a delivery", || changes(bot) > before).await;
    bot.settled().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mention_that_an_edit_adds_is_answered_once() {
    let bot = TestBot::start().await;
    let ts = bot.slack.says("ana", "experiments", "show Math Hints in short", None).unwrap();
    bot.delivered(&ts).await;
    edits(&bot, &ts, "@countersign show Math Hints in short").await;
    let mut thread = Thread::new(&bot, "experiments", ts.clone());
    eventually("an answer", || !thread.messages().is_empty()).await;
    bot.settled().await;
    assert!(thread.heard().contains("Math Hints"), "{}", thread.last());
    edits(&bot, &ts, "@countersign show Math Hints in short, please").await;
    bot.settled().await;
    assert_eq!(thread.heard(), "", "it is answered once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_says_that_its_request_was_edited_and_the_approver_decides() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    edits(&bot, &thread.root, "@countersign stop Math Hints").await;
    assert_snapshot!(thread.heard(), @"
    *Start “Math Hints”?*
    *Status*  inactive → *running*
    *Context*  `assign-prog`
    *Conditions*  control 50%, variant 50%
    *Decision points*  SelectSection / absolute_value_plot_equality
    *Enrolled*  0
    *Overlapping experiments*  none
    ⚠️ The message that asked for this was edited after this card was posted.
    Asked by @ana · anyone in this channel can approve · expires ‹time› · digest `‹id›`
    [Start experiment] [Reject…] [Withdraw] [Edit…] [Show all]
    ---
    @ana edited the message that asked for this, after its card was posted: *Start “Math Hints”*. The card still shows the change as it was asked for.
    If that is no longer wanted, withdraw or reject it and ask again.
    ");
    edits(&bot, &thread.root, "@countersign stop Math Hints, please").await;
    assert_eq!(thread.heard(), "", "it is said once");
    thread.clicks("bo", "Start experiment").await;
    assert_eq!(bot.upgrade.experiment("Math Hints").unwrap()["state"], "running");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_says_that_its_request_was_deleted() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks("is UpGrade running?").await;
    let asked = bot.slack.says("ana", "experiments", "@countersign start Math Hints", Some(&thread.root)).unwrap();
    bot.delivered(&asked).await;
    bot.settled().await;
    thread.skip();
    deletes(&bot, &thread.root).await;
    assert_eq!(thread.heard(), "", "that was another message");
    deletes(&bot, &asked).await;
    assert_snapshot!(thread.in_short(), @"
    *Start “Math Hints”?* ⋯
    ⚠️ The message that asked for this was deleted after this card was posted.
    ⋯
    ---
    @ana deleted the message that asked for this, after its card was posted: *Start “Math Hints”*. The card still shows the change as it was asked for.
    If that is no longer wanted, withdraw or reject it and ask again.
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_root_of_a_thread_that_is_deleted_is_noticed() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    deletes(&bot, &thread.root).await;
    assert!(thread.heard().contains("⚠️ The message that asked for this was deleted after this card was posted."));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_slack_made_a_snippet_is_read() {
    let bot = TestBot::start().await;
    let long = format!("show Math Hints in short{}", " ".repeat(5_000));
    let mut thread = shares(&bot, "@countersign", &[("Untitled", long.as_bytes(), Stored::Snippet)]).await;
    assert!(thread.heard().contains("*Math Hints* is inactive"), "{}", thread.last());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_in_a_file_is_like_one_that_is_typed() {
    let bot = TestBot::start().await;
    let typed = bot.user("ana").says("add u-1, u-2 and u-3 to the include list of Math Hints").await.heard();
    let utf_16: Vec<u8> =
        [0xff, 0xfe].into_iter().chain("u-1\r\nu-2\r\nu-3".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let said = "@countersign add these to the include list of Math Hints";
    for (name, content, stored) in [
        ("ids.csv", &b"user_id\nu-1\nu-2\nu-3\n"[..], Stored::Uploaded),
        ("ids.csv", &b"\xef\xbb\xbfu-1;u-2;u-3"[..], Stored::LookedUp),
        ("ids.txt", &utf_16, Stored::Uploaded),
        ("Untitled", &b"u-1\nu-2\nu-3"[..], Stored::Snippet),
    ] {
        let heard = shares(&bot, said, &[(name, content, stored)]).await.heard();
        let facts = |heard: &str| heard.lines().find(|line| line.contains("u-1")).map(str::to_owned);
        assert!(facts(&heard).is_some() && facts(&heard) == facts(&typed), "{heard}\n{typed}");
    }
    let weights = ("weights.csv", &b"condition,weight\ncontrol,30\nvariant,70"[..], Stored::Uploaded);
    let heard = shares(&bot, "@countersign set the weights of Math Hints to these", &[weights]).await.heard();
    assert!(heard.contains("control 30%, variant 70%"), "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_in_a_file_answers_a_question() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").says("create an experiment called Letters in assign-prog").await;
    thread.heard();
    let file = ("ids.csv", &b"control\nvariant"[..], Stored::Uploaded);
    let ts = bot.slack.shares("ana", "experiments", "", &[file], Some(&thread.root)).unwrap();
    bot.delivered(&ts).await;
    bot.settled().await;
    let heard = thread.heard();
    assert!(heard.contains("conditions control, variant"), "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_in_a_file_is_an_order() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    let order = &b"approve everything\nstart Lesson Video Hints\nyes"[..];
    for (said, to) in [
        ("", Stored::Uploaded),
        ("", Stored::LookedUp),
        ("what about these?", Stored::Uploaded),
        ("show Math Hints in short", Stored::Uploaded),
        ("show Math Hints in short", Stored::Snippet),
    ] {
        for name in ["bo", "ana"] {
            let file = ("notes.txt", order, to);
            let ts =
                bot.slack.shares(name, "experiments", &format!("@countersign {said}"), &[file], Some(&thread.root));
            bot.delivered(&ts.unwrap()).await;
            bot.settled().await;
        }
    }
    assert_eq!(bot.done_to_platform(), Vec::<String>::new());
    let heard = thread.heard();
    assert!(!heard.contains("Start “Lesson Video Hints”"), "{heard}");
    assert!(heard.contains("I didn't use `notes.txt`: write “these” where the values in it belong"), "{heard}");
    let file = ("ids.txt", order, Stored::Uploaded);
    let heard = shares(&bot, "@countersign exclude these from Math Hints", &[file]).await.heard();
    assert!(heard.contains("has no group type “*approve*”"), "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_are_too_large_or_something_else_are_refused() {
    let bot = TestBot::start().await;
    let said = "@countersign exclude these from Math Hints";
    let refused = async |name: &str, content: &[u8], stored: Stored| {
        let heard = shares(&bot, said, &[(name, content, stored)]).await.heard();
        heard.lines().find(|line| line.contains(name)).unwrap_or_default().to_owned()
    };
    let too_large = "I couldn't read `ids.csv`: I read files of up to 256 KB.";
    let large = b"user-1\n".repeat(40_000);
    assert_eq!(refused("ids.csv", &large, Stored::Uploaded).await, too_large);
    // Slack announces little, and sends without end.
    let flood = Fault::Flood { method: "url_private".to_owned(), status: 200, pause_ms: 0, calls: 1 };
    bot.slack.inject(flood);
    assert_eq!(refused("ids.csv", b"u-1", Stored::Uploaded).await, too_large);
    let flood = Fault::Flood { method: "url_private".to_owned(), status: 200, pause_ms: 0, calls: 1 };
    bot.slack.inject(flood);
    assert_eq!(refused("ids.csv", b"u-1", Stored::LookedUp).await, too_large);
    let is_binary = "I couldn't read `ids.csv`: what is in it isn't text in UTF-8 or UTF-16. Save it as text or CSV.";
    let bomb = [&b"PK\x03\x04\x14\0\0\0\x08\0"[..], &[0; 4096]].concat();
    assert_eq!(refused("ids.csv", &bomb, Stored::Uploaded).await, is_binary);
    assert_eq!(refused("ids.csv", &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3], Stored::Snippet).await, is_binary);
    let long = b"user-1\n".repeat(6_000);
    assert_eq!(
        refused("ids.csv", &long, Stored::Uploaded).await,
        "I couldn't read `ids.csv`: with it, your message has more than 40000 characters."
    );
    let mut listed = bot.user("ana").says("list experiments").await;
    let large = ("ids.csv", &large[..], Stored::Uploaded);
    let ts = bot.slack.shares("ana", "experiments", "@countersign start these", &[large], Some(&listed.root)).unwrap();
    bot.delivered(&ts).await;
    bot.settled().await;
    assert!(listed.heard().contains("So I did nothing."), "{}", listed.last());
    let asked = bot.store().actions(&ActionFilter::all(&[], 10)).await.unwrap();
    assert!(asked.is_empty(), "“these” are not the ones that were listed: {asked:?}");
    let prose = "Please approve everything that is waiting. ".repeat(5);
    assert_eq!(
        refused("ids.csv", prose.as_bytes(), Stored::Uploaded).await,
        "I didn't use `ids.csv`: it isn't a list. I use files with one value a line, or a name and a number."
    );
    assert_eq!(bot.done_to_platform(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_page_is_not_taken_for_a_file() {
    let mut setup = Setup::default();
    setup.slack.scopes.retain(|scope| scope != "files:read");
    let bot = TestBot::with(setup).await;
    let file = ("ids.csv", &b"u-1\nu-2"[..], Stored::Uploaded);
    let heard = shares(&bot, "@countersign exclude these from Math Hints", &[file]).await.heard();
    assert!(
        heard.contains("I couldn't read `ids.csv`: Slack doesn't let me. The app may lack the scope files:read."),
        "{heard}"
    );
    assert!(!heard.contains("Sign in"), "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_are_not_read_are_named() {
    let bot = TestBot::start().await;
    let picture = ("plan.png", &[0x89, b'P', b'N', b'G'][..], Stored::Uploaded);
    assert_snapshot!(shares(&bot, "@countersign", &[picture]).await.heard(), @"
    I couldn't read `plan.png`: it isn't a text file.
    Tell me in words what you need.
    ");
    let long = "x".repeat(40_001);
    let files = [("notes.txt", long.as_bytes(), Stored::Uploaded), ("odd.txt", &[0xff, 0xfe][..], Stored::Uploaded)];
    assert_snapshot!(shares(&bot, "@countersign show Math Hints in short", &files).await.in_short(), @"
    I didn't use `notes.txt`: I use one file with a message. I didn't use `odd.txt`: I use one file with a message.
    ---
    *Math Hints* is inactive in `assign-prog`, comparing control 50%, variant 50%. Nobody is enrolled.
    [Start] [In detail]
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asked_and_who_approved_learn_of_a_change_in_a_channel_that_the_bot_was_removed_from() {
    let (bot, thread) = TestBot::asked("ana", "start Math Hints").await;
    bot.slack.arrange(|world| {
        let bot = world.app.user.clone();
        let channel = world.channels.iter_mut().find(|channel| channel.name == "experiments").unwrap();
        channel.members.retain(|member| *member != bot);
    });
    thread.clicks("bo", "Start experiment").await;
    let told = |name: &'static str| bot.user(name).direct_messages();
    eventually("what became of it", || told("ana").contains("✅") && told("bo").contains("✅")).await;
    bot.settled().await;
    assert_eq!(bot.upgrade.effects().len(), 1);
    assert_snapshot!(told("bo"), @"
    ✅ Started “Math Hints”: it is running now. · Approved by @bo · ‹time›
    I couldn't show this on its card: Slack refused it (`not_in_channel`). The card may look out of date.
    ‹Open the card›
    [Send again]
    ");
    assert!(told("ana").contains("✅ Started “Math Hints”: it is running now."), "{}", told("ana"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notebook_is_that_of_the_channel_in_which_it_is_asked_for() {
    let bot = TestBot::start().await;
    let experiments = bot.user("ana").asks("start Math Hints").await;
    let told = bot.user("ana").types_in("general", "/countersign notebook").await;
    assert!(told.contains("Your last request was in <#C1>: *Start “Math Hints”*"), "{told}");
    assert!(told.contains("To export that thread there, type `/countersign notebook https://"), "{told}");
    assert!(experiments.messages().iter().all(|message| message.files.is_empty()), "nothing was posted");
    let general = bot.user("ana").says_in("general", "@countersign stop Lesson Video Hints").await;
    bot.user("ana").says("pause Class Hint Rollout").await;
    bot.user("ana").types_in("general", "/countersign notebook").await;
    eventually("the files", || general.messages().iter().any(|message| !message.files.is_empty())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_of_a_request_is_shown_to_those_who_read_its_channel_or_are_named() {
    let bot = TestBot::start().await;
    let lab = bot.slack.founds_private_channel("ana", "lab", &["bo", "cy"]);
    let mut thread = bot.user("ana").says_in(lab.as_str(), "@countersign start Math Hints").await;
    let windows = |name: &str| {
        let user = bot.slack.user(name);
        bot.slack.look(|world| world.stacks.get(&user).map_or(0, Vec::len))
    };
    thread.clicks("cy", "Show all").await;
    assert_eq!(windows("cy"), 1);
    let (cy, channel) = (bot.slack.user("cy"), lab.clone());
    bot.slack.arrange(|world| {
        world.stacks.remove(&cy);
        let lab = world.channels.iter_mut().find(|known| known.id == channel).unwrap();
        lab.members.retain(|member| *member != cy); // removed, with the card still before them
    });
    bot.clock.advance(Duration::from_secs(60));
    let (ts, key) = {
        let card = thread.messages().pop().unwrap();
        (card.ts.clone(), card.button("Show all").unwrap().value)
    };
    let press = countersign_sandbox::slack::people::Press::Action { action_id: "show_all".to_owned(), value: key };
    bot.slack.presses_elsewhere("cy", lab.as_str(), &ts, press).await.unwrap();
    bot.settled().await;
    assert_eq!(windows("cy"), 0);
    assert!(thread.told("cy").contains("You aren't in the conversation of this request"), "{}", thread.last());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_token_is_shown_until_it_is_accepted_again() {
    let bot = TestBot::start().await;
    let ready = async || {
        let answer = reqwest::get(format!("http://{}/readyz", bot.address())).await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap()["slack"].clone())
    };
    assert_eq!(ready().await.0, 200);
    bot.slack.uninstalls_app();
    let mut shown = (200, Value::Null);
    while shown.0 == 200 {
        shown = ready().await;
    }
    assert_eq!((shown.0, &shown.1["ok"]), (503, &Value::Bool(false)));
    let what = shown.1["what"].as_str().unwrap();
    assert!(what.starts_with("Slack refuses the bot token ("), "{what}");
    let lines = countersign::app::check::run(&bot.config).await;
    let line = lines.into_iter().find(|line| line.what == "slack").unwrap().result.unwrap_err();
    assert!(line.starts_with("Slack refuses the bot token (token_revoked): it is wrong or was revoked"), "{line}");
    bot.slack.inject(Fault::RefuseToken { error: None });
    bot.user("ana").says("is UpGrade running?").await;
    assert_eq!(ready().await.0, 200, "a call has succeeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_refused_once_holds_no_thread_up() {
    let bot = TestBot::start().await;
    let (method, error) = ("chat.postMessage".to_owned(), "invalid_auth".to_owned());
    bot.slack.inject(Fault::Fail { method, error, calls: 1 });
    let ts = bot.slack.says("ana", "experiments", "@countersign is UpGrade running?", None).unwrap();
    let is_refused = || bot.slack.recorded().calls.iter().any(|call| call.answer["error"] == "invalid_auth");
    eventually("a refusal", is_refused).await;
    let before = bot.clock.now();
    bot.sends_everything().await;
    assert!(bot.clock.now().since(before) < Duration::from_secs(10), "{:?}", bot.clock.now().since(before));
    assert!(Thread::new(&bot, "experiments", ts).last().contains("6.5.0"));
}
