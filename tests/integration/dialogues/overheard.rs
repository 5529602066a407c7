//! People talk with each other in a thread where the bot is: it listens to what is said to it, and to nothing else.

use countersign::graph::{action::Status, store::AuditKind};
use countersign_sandbox::slack::world::message::Message;

use super::scripted::{answers_at_once, bot_with_model, finish};
use crate::support::{bot::TestBot, thread::Thread};

/// How many lines are said before anybody waits for the bot: as many as it acknowledges in time on a busy machine.
const AT_ONCE: usize = 20;

/// What people say to each other about experiments, from pieces: each line is another one.
fn talk(nth: usize) -> (&'static str, String) {
    const WHO: [&str; 3] = ["bo", "cy", "ana"];
    const BEFORE: [&str; 12] =
        ["", "I think ", "hm, ", "Ana, ", "bo: ", "@cy ", "yes, ", "no, ", "well, ", "ok so ", "honestly ", "hey Cy, "];
    const WHAT: [&str; 33] = [
        "are you sure about Math Hints?",
        "I would wait until Monday.",
        "we should start it after the exams",
        "60/40 would be safer",
        "the weights look fine to me",
        "did you ask the teachers what they think about it?",
        "who knows what the control condition is?",
        "yes please, but only once the data is in",
        "I would not approve this yet",
        "can you look at the numbers of last week first?",
        "the last experiment in assign-prog was stopped too early",
        "let's talk about it at lunch",
        "what conditions does it have?",
        "that was Running Test, not Math Hints",
        "we had 24 users last time, that is not enough",
        "start Math Hints tomorrow and we will see",
        "do we need the other school to agree?",
        "the students didn't like the hints",
        "delete it and begin anew, I would say",
        "sounds good to me",
        "looks right",
        "not sure this is what they wanted",
        "why is the weight 50/50?",
        "it should be in mathstream anyway",
        "please check with the district",
        "thanks, that helps",
        "exactly",
        "rename it to something that people understand",
        "I can approve it this afternoon",
        "reject it if you are unsure",
        "then cancel the meeting",
        "how many users does it have now",
        "approved by the board, as far as I know",
    ];
    let line = format!("{}{}", BEFORE[nth / WHAT.len() % BEFORE.len()], WHAT[nth % WHAT.len()]);
    let line = if nth >= BEFORE.len() * WHAT.len() { format!("{line} ({})", nth / 396) } else { line };
    (WHO[nth % WHO.len()], line)
}

/// What the bot has said so far: in the thread, and to each of them alone.
fn said(bot: &TestBot, thread: &Thread<'_>) -> (Vec<String>, usize) {
    let alone = ["ana", "bo", "cy"].iter().map(|name| bot.slack.ephemerals(name).len()).sum();
    (thread.messages().iter().map(Message::words).collect(), alone)
}

/// Lets people talk and expects no word of the bot.
async fn people_talk(bot: &TestBot, thread: &Thread<'_>, lines: usize) {
    let before = said(bot, thread);
    for nth in 0..lines {
        let (who, line) = talk(nth);
        let ts = bot.slack.says(who, "experiments", &line, Some(&thread.root)).unwrap();
        if nth % AT_ONCE == AT_ONCE - 1 || nth + 1 == lines {
            bot.delivered(&ts).await;
            bot.settled().await;
        }
    }
    assert_eq!(said(bot, thread), before);
    assert!(bot.done_to_platform().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn talk_beside_an_open_card_is_nobodys_business() {
    let (bot, mut thread) = TestBot::hears("ana", "start Math Hints").await;
    people_talk(&bot, &thread, 1_000).await;
    let id = {
        let (team, channel) =
            bot.slack.look(|world| (world.team.clone(), world.channel("experiments").unwrap().id.clone()));
        countersign::ids::ThreadId { team, channel, root: thread.root.clone() }
    };
    let steps = serde_json::to_string(&bot.store().steps(&id, 0, 5_000).await.unwrap()).unwrap();
    assert!(!steps.contains("teachers"), "what they said is not kept");
    let audit = bot.store().audit(&id).await.unwrap().entries;
    assert_eq!(audit.iter().filter(|entry| entry.event.kind == AuditKind::Said).count(), 1);
    // The card still listens: a mention, then a plain answer to what the bot said.
    thread.skip();
    thread.says("bo", "@countersign what is waiting?").await;
    assert!(thread.heard().contains("Math Hints"));
    thread.says("bo", "yes").await;
    assert_eq!(bot.done_to_platform().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn talk_beside_an_open_question_is_no_answer() {
    let (bot, mut thread) = TestBot::hears("ana", "create an experiment called Pilot in assign-prog").await;
    let asked = thread.heard();
    assert!(asked.contains('?'), "it asks for what is missing: {asked}");
    people_talk(&bot, &thread, 400).await;
    thread.says("bo", "control and treatment").await;
    assert_eq!(thread.heard(), "", "bo was not asked");
    thread.says("ana", "@countersign never mind").await;
    assert_ne!(thread.heard(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_overheard_costs_no_call_of_a_model() {
    let (bot, model) = bot_with_model().await;
    answers_at_once(&model, "Hello, Ana.");
    let thread = bot.user("ana").says("hello, who are you?").await;
    let calls = model.requests().len();
    people_talk(&bot, &thread, 200).await;
    assert_eq!(model.requests().len(), calls);
    finish(bot, model).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_to_the_bot_is_heard() {
    // Who says what right after the card, and how the card stands then.
    for (who, words, stands) in [
        ("bo", "yes", Status::Done),
        ("bo", "Go ahead!", Status::Done),
        ("bo", "no", Status::Rejected),
        ("ana", "never mind", Status::Cancelled),
        ("bo", "stop", Status::Cancelled),
        ("ana", "no, don't start it", Status::Cancelled),
    ] {
        let bot = TestBot::start().await;
        let thread = bot.user("ana").says("start Math Hints").await;
        thread.says(who, words).await;
        let filter = countersign::graph::store::ActionFilter::all(&[], 9);
        let actions = bot.store().actions(&filter).await.unwrap();
        assert_eq!(actions[0].status, stands, "{who}: {words}");
        bot.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_asked_answers_without_a_mention() {
    let (_bot, mut thread) = TestBot::asked("ana", "create an experiment called Pilot in assign-prog").await;
    thread.says("bo", "nice idea, should we use three conditions?").await;
    assert_eq!(thread.heard(), "");
    let mut answered = false;
    for answer in ["control and treatment", "60/40", "assign-prog", "SelectSection / absolute_value_plot_equality"] {
        thread.says("ana", answer).await;
        answered |= !thread.heard().is_empty();
    }
    assert!(answered);
    thread.says("bo", "that is quick").await;
    thread.says("cy", "Ana, are you sure about 60/40? I would wait until Monday.").await;
    assert_eq!(thread.heard(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_among_people_is_pointed_at_once_and_counts_never() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    thread.says("cy", "did you talk to the teachers?").await;
    for _ in 0..3 {
        thread.says("bo", "yes").await;
    }
    assert_eq!(thread.heard(), "");
    assert_eq!(bot.slack.ephemerals("bo").len(), 1, "a word for bo alone, once");
    thread.says("cy", "stop that").await;
    assert!(bot.done_to_platform().is_empty());
}
