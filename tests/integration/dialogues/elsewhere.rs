//! What happens elsewhere than in Slack, and threads that belong to another graph than the chat.

use std::time::Duration;

use countersign::{
    app::check,
    clock::Clock as _,
    conversation::runtime::interaction::Interaction,
    graph::store::{Delivery, Destination, External, Handling},
    ids::ThreadId,
};
use serde_json::json;

use crate::support::{bot::TestBot, thread::Thread};

fn event(key: &str) -> External {
    External::new("cluster", key, json!({ "rows": 3 })).unwrap()
}

/// The thread that began with this message.
fn in_channel(bot: &TestBot, root: &str) -> ThreadId {
    let (team, channel) =
        bot.slack.look(|world| (world.team.clone(), world.channel("experiments").unwrap().id.clone()));
    ThreadId { team: team.as_str().into(), channel: channel.as_str().into(), root: root.into() }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_chat_notes_what_happens_elsewhere_and_goes_on() {
    let (bot, thread) = TestBot::hears("ana", "start the Math Hints experiment").await;
    let id = in_channel(&bot, thread.root.as_str());
    let said = thread.messages().len();

    for _ in 0..2 {
        bot.store().ingest(&event("job-1").deliver_to(id.clone(), bot.clock.now()), Handling::Later).await.unwrap();
    }
    let overdue = Interaction::Overdue { thread: id.clone(), action: "nobody's".into(), until: bot.clock.now() };
    let to = Destination::Inbox { partition: id.partition(), entry: overdue.to_value(), claim: None };
    bot.store().ingest(&Delivery { to, dedup: vec![], at: bot.clock.now() }, Handling::Later).await.unwrap();
    bot.settled().await;

    assert_eq!(thread.messages().len(), said, "nothing is said about it");
    let steps = bot.store().steps(&id, 0, 100).await.unwrap();
    let count = |node: &str| steps.iter().filter(|(_, step)| step.node == node).count();
    assert_eq!((count("external"), count("overdue")), (1, 1), "the trace tells of it, once");
    thread.clicks("bo", "Start experiment").await;
    assert_eq!(bot.done_to_platform(), ["POST /api/experiments/state"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_of_an_unknown_graph_is_kept_and_told() {
    let mut bot = TestBot::start().await;
    let id = in_channel(&bot, "1700000000.000100");
    let mut delivery = event("job-1").deliver_to(id.clone(), bot.clock.now());
    let Destination::Mailbox { graph, .. } = &mut delivery.to else { unreachable!() };
    *graph = "letters".into();
    bot.store().ingest(&delivery, Handling::Later).await.unwrap();
    bot.rests().await;

    let ts = bot.slack.says("ana", "experiments", "@countersign list experiments", None).unwrap();
    bot.delivered(&ts).await;
    bot.rests().await;
    let thread = Thread::new(&bot, "experiments", ts);
    assert_eq!(thread.messages().len(), 1, "the chat goes on");
    bot.clock.advance(Duration::from_secs(61));
    bot.rests().await;
    assert_eq!(bot.store().messages(&id, 0, None).await.unwrap().len(), 1, "nothing of it is lost");
    assert_eq!(bot.store().load(&id).await.unwrap().unwrap().version, 0, "and nothing was done");
    bot.stop().await;

    let store = check::run(&bot.config).await.into_iter().find(|line| line.what == "store").unwrap();
    let wrong = store.result.unwrap_err();
    assert!(wrong.contains("(letters: 1)"), "{wrong}");
}
