//! What Slack does not take, takes late, or takes twice: it is shown in the end, or people are told that it is not.

use std::time::Duration;

use countersign::{
    app::check,
    clock::{Clock as _, Timestamp},
    conversation::runtime::interaction::Interaction,
    graph::{
        action::Status,
        store::{ActionFilter, Changes, Delivery, Destination, Handling, Outbound, Outgoing},
    },
    ids::{CommitId, Nonce, Partition},
    reply::Reply,
};
use countersign_sandbox::slack::{
    faults::{Fault, Loss},
    world::message::Message,
};
use serde_json::json;

use crate::support::{
    bot::{TestBot, eventually, in_time},
    thread::Thread,
};

const START: &str = "@countersign start the Math Hints experiment";
const BUTTON: &str = "Start experiment";
const POST: &str = "chat.postMessage";

fn say<'a>(bot: &'a TestBot) -> Thread<'a> {
    let root = bot.slack.says("ana", "experiments", START, None).unwrap();
    Thread::new(bot, "experiments", root)
}

fn cards(thread: &Thread<'_>) -> Vec<Message> {
    thread.messages().into_iter().filter(|message| message.button(BUTTON).is_some()).collect()
}

fn is_running(bot: &TestBot) -> bool {
    bot.upgrade.experiment("Math Hints").unwrap()["state"] == "running"
}

/// What only ana is told after so many other words.
async fn told_ana(bot: &TestBot, before: usize) -> String {
    eventually("an answer", || bot.slack.ephemerals("ana").len() > before).await;
    bot.readable(&bot.slack.ephemerals("ana")[before].words())
}

/// A fault that only a card with its buttons suffers.
fn of_the_card(fault: Fault) -> Fault {
    Fault::Only { containing: BUTTON.into(), then: Box::new(fault) }
}

/// How many messages say that another is not there yet.
fn still_trying(thread: &Thread<'_>) -> usize {
    thread.messages().iter().filter(|message| message.words().contains("I'm still trying")).count()
}

async fn count_messages(bot: &TestBot) -> usize {
    bot.store().dead_letters(100).await.unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_clear_refusal_is_tried_again() {
    let faults = [
        Fault::Page { method: POST.into(), status: 403, calls: 2 },
        Fault::Page { method: POST.into(), status: 302, calls: 2 },
        Fault::Page { method: POST.into(), status: 404, calls: 2 },
        Fault::Page { method: POST.into(), status: 200, calls: 2 },
        Fault::Fail { method: POST.into(), error: "a_code_of_next_year".into(), calls: 2 },
    ];
    for fault in faults {
        let bot = TestBot::start().await;
        bot.slack.inject(fault.clone());
        let thread = say(&bot);
        in_time(&bot, "the card", || cards(&thread).len() == 1).await;
        thread.clicks("bo", BUTTON).await;
        assert!(is_running(&bot), "{fault:?}");
        assert_eq!(
            bot.slack.ledger().calls(POST).iter().filter(|call| call.answer["ok"] == true).count(),
            2,
            "{fault:?}"
        );
        bot.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decided_card_is_redrawn_until_it_is() {
    let faults = [
        Fault::Page { method: "chat.update".into(), status: 403, calls: 3 },
        Fault::Page { method: "chat.update".into(), status: 200, calls: 3 },
        Fault::Fail { method: "chat.update".into(), error: "a_code_of_next_year".into(), calls: 3 },
        Fault::RefuseBlocks { method: "chat.update".into(), calls: 20 },
    ];
    for fault in faults {
        let bot = TestBot::start().await;
        let thread = bot.user("ana").says("start the Math Hints experiment").await;
        bot.slack.inject(fault.clone());
        thread.press("bo", BUTTON).await;
        in_time(&bot, "a card without live buttons", || cards(&thread).is_empty()).await;
        in_time(&bot, "the change", || is_running(&bot)).await;
        bot.settled().await;
        assert_eq!(count_messages(&bot).await, 0, "{fault:?}");
        bot.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_that_slack_refuses_is_told_listed_and_sent_again() {
    let bot = TestBot::start().await;
    bot.slack.inject(Fault::RefuseBlocks { method: POST.into(), calls: 1 });
    let mut thread = bot.user("ana").says("start the Math Hints experiment").await;
    assert!(cards(&thread).is_empty());
    assert!(thread.last().contains("No one can approve it until it appears"), "{}", thread.last());
    assert_eq!(count_messages(&bot).await, 1);

    thread.says("bo", "@countersign yes").await;
    assert!(thread.told("bo").contains("isn't in the thread, so"));
    assert!(!is_running(&bot), "nobody has read what it says");

    let pending = bot.user("ana").types("/countersign pending").await;
    assert!(pending.contains("card couldn't be posted"), "{pending}");
    assert!(pending.contains("Not delivered:") && pending.contains("invalid_blocks"), "{pending}");
    let lines = check::run(&bot.config).await;
    let line = lines.iter().find(|line| line.what == "messages").unwrap();
    assert!(
        line.result.as_ref().is_err_and(|told| told.contains("1 not delivered") && told.contains("invalid_blocks")),
        "{line:?}"
    );

    thread.clicks("cy", "Send again").await;
    assert_eq!(cards(&thread).len(), 1);
    assert_eq!(thread.messages().len(), 1, "what was said of it is taken back: {}", thread.last());
    assert_eq!(count_messages(&bot).await, 0);
    thread.says("bo", "@countersign yes").await;
    assert!(is_running(&bot));
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_asked_is_told_directly_if_the_thread_cannot_be_written_to() {
    let bot = TestBot::start().await;
    bot.slack.inject(Fault::Fail { method: POST.into(), error: "is_archived".into(), calls: 1 });
    let thread = bot.user("ana").says("start the Math Hints experiment").await;
    assert!(thread.messages().is_empty());
    let told = bot.user("ana").direct_messages();
    assert!(told.contains("Math Hints") && told.contains("is_archived"), "{told}");
    assert_eq!(count_messages(&bot).await, 1);
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_that_nobody_knows_is_given_up_in_the_end_and_holds_nothing_up() {
    let bot = TestBot::start().await;
    let refused = Fault::Fail { method: POST.into(), error: "a_code_of_next_year".into(), calls: 10 };
    bot.slack.inject(of_the_card(refused));
    let thread = say(&bot);
    in_time(&bot, "a word about it", || still_trying(&thread) == 1).await;
    in_time(&bot, "its end", || still_trying(&thread) == 0).await;
    bot.settled().await;
    assert_eq!(count_messages(&bot).await, 1);
    assert_eq!(thread.messages().len(), 1, "the one takes the place of the other");
    let last = thread.last();
    assert!(last.contains("a_code_of_next_year") && last.contains("Send again"), "{last}");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_that_is_not_taken_for_long_holds_nothing_up_and_is_told() {
    for (status, reason) in [(403, "http_403"), (500, "no_answer")] {
        let bot = TestBot::start().await;
        bot.slack.inject(of_the_card(Fault::Page { method: POST.into(), status, calls: 10_000 }));
        let thread = say(&bot);
        in_time(&bot, "a word about it", || still_trying(&thread) == 1).await;
        assert!(cards(&thread).is_empty());
        let last = thread.last();
        assert!(last.contains("@ana, I couldn't show the card") && last.contains(reason), "{last}");
        assert!(last.contains("no one can approve it until it appears"), "{last}");
        bot.slack.says("ana", "experiments", "@countersign list experiments", Some(&thread.root)).unwrap();
        in_time(&bot, "an answer", || thread.messages().len() == 2).await;

        let before = bot.slack.ephemerals("ana").len();
        bot.slack.says("ana", "experiments", "@countersign status", Some(&thread.root)).unwrap();
        let here = told_ana(&bot, before).await;
        assert!(here.contains("card not posted yet"), "{here}");
        bot.slack.command("ana", "experiments", "/countersign pending").await.unwrap();
        let pending = told_ana(&bot, before + 1).await;
        assert!(pending.contains("card not posted yet"), "{pending}");
        assert!(!pending.contains("open the card"), "there is none: {pending}");
        assert_eq!(still_trying(&thread), 1, "it is told once");

        bot.slack.inject(Fault::Clear);
        in_time(&bot, "the card", || cards(&thread).len() == 1).await;
        in_time(&bot, "an end of what was said", || still_trying(&thread) == 0).await;
        bot.settled().await;
        thread.clicks("bo", BUTTON).await;
        assert!(is_running(&bot));
        bot.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_tells_what_is_late_and_since_when() {
    let bot = TestBot::start().await;
    let thread = bot.user("ana").says("start the Math Hints experiment").await;
    bot.slack.inject(Fault::Page { method: POST.into(), status: 403, calls: 1 });
    let pending = ActionFilter::all(&[Status::Pending], 1);
    let record = bot.store().actions(&pending).await.unwrap().pop().unwrap();
    let an_hour_ago = Timestamp(bot.clock.now().millis() - 3_600_000); // check goes by the clock on the wall
    let mut late = Changes::new(CommitId::fresh(), record.thread);
    late.outbox.push(Outgoing {
        slot: Some("late".into()),
        nonce: Nonce::fresh(),
        progress: false,
        not_before: an_hour_ago,
        body: Outbound::Reply { reply: Reply::text("By the way.") },
    });
    bot.store().apply(&late).await.unwrap();
    let line = async || check::run(&bot.config).await.into_iter().find(|line| line.what == "messages").unwrap();
    let told = line().await;
    let expected = format!("1 not delivered yet and being retried, the oldest since {an_hour_ago} (late in ");
    assert!(told.result.as_ref().is_err_and(|told| told.contains(&expected)), "{told:?}");
    in_time(&bot, "the message", || thread.messages().len() == 2).await;
    bot.settled().await;
    let told = line().await;
    assert!(told.result.is_ok(), "{told:?}");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_of_an_hour_is_believed_for_minutes_and_holds_nothing_up() {
    let bot = TestBot::start().await;
    bot.slack.inject(of_the_card(Fault::RateLimit { method: POST.into(), calls: 2, retry_after: 3600 }));
    let thread = say(&bot);
    let began = bot.clock.now();
    in_time(&bot, "a word about it", || still_trying(&thread) == 1).await;
    assert!(thread.last().contains("rate_limited"), "{}", thread.last());
    bot.slack.says("ana", "experiments", "@countersign list experiments", Some(&thread.root)).unwrap();
    in_time(&bot, "an answer", || thread.messages().len() == 2).await;
    assert!(bot.clock.now() < began + Duration::from_secs(300), "others do not wait for it");
    eventually("the card", || {
        bot.clock.advance(Duration::from_secs(1));
        cards(&thread).len() == 1
    })
    .await;
    assert!(bot.clock.now() < began + Duration::from_secs(900), "two waits of five minutes");
    in_time(&bot, "an end of what was said", || still_trying(&thread) == 0).await;
    bot.settled().await;
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_from_before_the_card_approves_nothing() {
    let bot = TestBot::start().await;
    bot.slack.inject(Fault::Page { method: POST.into(), status: 403, calls: 1 });
    let mut thread = say(&bot);
    eventually("the first try", || bot.slack.ledger().calls(POST).len() == 1).await;
    let yes = bot.slack.says("bo", "experiments", "@countersign yes", Some(&thread.root)).unwrap();
    bot.delivered(&yes).await;
    eventually("an answer", || !bot.slack.ephemerals("bo").is_empty()).await;
    assert!(thread.told("bo").contains("isn't in the thread, so"));
    in_time(&bot, "the card", || cards(&thread).len() == 1).await;
    bot.settled().await;
    assert!(!is_running(&bot));
    thread.says("bo", "@countersign yes").await;
    assert!(is_running(&bot), "a yes to what can be read counts");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_that_arrives_late_is_taken_away_again() {
    let bot = TestBot::start().await;
    bot.slack.inject(Fault::ArriveLate { method: POST.into(), delay_ms: 1500, calls: 1 });
    let thread = say(&bot);
    in_time(&bot, "both cards", || cards(&thread).len() == 2).await;
    let told = || bot.slack.ephemerals("bo").len();
    thread.press("bo", BUTTON).await; // on the newer one, which arrived last
    eventually("an answer", || told() == 1).await;
    eventually("one card", || {
        bot.clock.advance(Duration::from_secs(2));
        cards(&thread).len() == 1
    })
    .await;
    bot.settled().await;
    assert!(!is_running(&bot));
    thread.clicks("bo", BUTTON).await;
    assert!(is_running(&bot));
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_twin_that_nobody_pressed_goes_too() {
    let bot = TestBot::start().await;
    bot.slack.inject(Fault::ArriveLate { method: POST.into(), delay_ms: 1500, calls: 1 });
    let thread = say(&bot);
    in_time(&bot, "both cards", || cards(&thread).len() == 2).await;
    bot.settled().await;
    eventually("one card", || {
        bot.clock.advance(Duration::from_secs(2));
        cards(&thread).len() == 1
    })
    .await;
    bot.settled().await;
    thread.clicks("bo", BUTTON).await;
    assert!(is_running(&bot), "the one that is left is the one that counts");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_ran_out_is_given_up_unsent() {
    let bot = TestBot::start().await;
    bot.slack.inject(Fault::LoseRequest { method: POST.into(), calls: 1, how: Loss::Closed });
    bot.slack.inject(Fault::Slow { method: "conversations.replies".into(), delay_ms: 3000, calls: 1 });
    let thread = say(&bot);
    eventually("a lost post", || bot.slack.ledger().calls(POST).len() == 1).await;
    // The next sender stands still in its look; its claim ends, another takes over.
    eventually("the card", || {
        bot.clock.advance(Duration::from_millis(200));
        cards(&thread).len() == 1
    })
    .await;
    eventually("the end of the first look", || bot.slack.ledger().calls("conversations.replies").len() >= 2).await;
    bot.settled().await;
    let posts = bot.slack.ledger().calls(POST);
    assert_eq!(posts.iter().filter(|call| call.answer["ok"] == true).count(), 1, "nothing was sent after its claim");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_sent_while_its_claim_ran_out_is_parted() {
    let bot = TestBot::start().await;
    bot.slack.inject(Fault::Slow { method: POST.into(), delay_ms: 3000, calls: 1 });
    let thread = say(&bot);
    // The first post is on its way for longer than its claim is good.
    eventually("the card of the second sender", || {
        bot.clock.advance(Duration::from_millis(200));
        !cards(&thread).is_empty()
    })
    .await;
    eventually("the card of the first", || {
        bot.slack.ledger().calls(POST).iter().filter(|call| call.answer["ok"] == true).count() == 2
    })
    .await;
    in_time(&bot, "one card", || cards(&thread).len() == 1).await;
    bot.settled().await;
    thread.clicks("bo", BUTTON).await;
    assert!(is_running(&bot) && cards(&thread).is_empty());
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_is_drawn_again_as_its_record_has_it_by_then() {
    let bot = TestBot::start().await;
    let thread = bot.user("ana").says("start the Math Hints experiment").await;
    let filter = ActionFilter::all(&[Status::Pending], 1);
    let record = bot.store().actions(&filter).await.unwrap().pop().unwrap();
    let mut redraw = Changes::new(CommitId::fresh(), record.thread.clone());
    redraw.outbox.push(record.redraw_order(bot.clock.now())); // it is open, as far as is known here
    thread.clicks("bo", BUTTON).await;
    assert!(is_running(&bot));

    bot.store().apply(&redraw).await.unwrap();
    let drawn = || bot.slack.ledger().calls("chat.update").len();
    let before = drawn();
    in_time(&bot, "the card once more", || drawn() > before).await;
    bot.settled().await;
    assert!(cards(&thread).is_empty(), "no live button");
    assert!(thread.messages().iter().any(|message| message.text.contains("✅ Started")), "{:#?}", thread.messages());
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_fails_each_time_is_kept_and_not_tried_for_ever() {
    let bot = TestBot::start().await;
    let thread = bot.user("ana").says("start the Math Hints experiment").await;
    bot.slack.inject(Fault::Fail { method: "conversations.replies".into(), error: "odd".into(), calls: 1000 });
    let channel = bot.slack.look(|world| world.channel("experiments").unwrap().id.clone());
    let team = bot.slack.look(|world| world.team.clone());
    let of = json!({ "team": team, "channel": channel, "root": thread.root });
    let twins = json!({
        "kind": "possible_duplicate", "thread": of, "channel": channel, "root": thread.root, "nonce": "n", "since": 0, "looks": 0,
    });
    serde_json::from_value::<Interaction>(twins.clone()).unwrap();
    for entry in [twins, json!({ "kind": "nobody knows" })] {
        let to = Destination::Inbox { partition: Partition::of("p"), entry, claim: None };
        bot.store().ingest(&Delivery { to, dedup: vec![], at: bot.clock.now() }, Handling::Later).await.unwrap();
    }
    eventually("sixty tries", || {
        bot.clock.advance(Duration::from_secs(2));
        bot.slack.ledger().calls("conversations.replies").len() >= 60
    })
    .await;
    bot.settled().await;
    assert_eq!(count_messages(&bot).await, 1);
    assert_eq!(bot.store().unreadable(10).await.unwrap().len(), 1, "what means nothing waits for a newer program");
    assert_eq!(bot.slack.ledger().calls("conversations.replies").len(), 60);
    bot.finish().await;
}
