//! Windows before people, as a test uses them.

use std::collections::BTreeMap;

use countersign_sandbox::slack::{Error, world::view::View};
use serde_json::Value;

use crate::support::{
    bot::{TestBot, eventually},
    thread::Thread,
};

/// The window that lies on top before somebody.
pub(crate) fn window(bot: &TestBot, name: &str) -> Option<View> {
    let user = bot.slack.user(name);
    bot.slack.look(|world| {
        let id = world.stacks.get(&user)?.last()?;
        world.views.get(id).cloned()
    })
}

/// Presses what opens a window, and waits until there is something to read in it.
pub(crate) async fn opens(bot: &TestBot, thread: &Thread<'_>, name: &str, label: &str) -> View {
    thread.press(name, label).await;
    let is_there = || window(bot, name).is_some_and(|window| !window.words().contains("One moment"));
    eventually("a window", is_there).await;
    bot.settled().await;
    window(bot, name).expect("it is there")
}

/// Fills in and sends the window before somebody: what is wrong, by the words of its field; nothing if it closed.
pub(crate) async fn sends(bot: &TestBot, name: &str, values: Value) -> BTreeMap<String, String> {
    let view = window(bot, name).expect("a window is open");
    let wrong = match bot.slack.submits(name, &view.id, values).await {
        Ok(_) => BTreeMap::new(),
        Err(Error::Refused(wrong)) => wrong,
        Err(error) => panic!("the window was not answered: {error}"),
    };
    bot.settled().await;
    wrong
}

/// The window as a reader sees it, with what stands in its fields.
pub(crate) fn as_read(bot: &TestBot, view: &View) -> String {
    let fields = view.blocks().iter().filter(|block| block["type"] == "input").map(|block| {
        let element = &block["element"];
        let first = element["initial_value"].as_str().or(element["initial_option"]["text"]["text"].as_str());
        format!("{}: {}", block["label"]["text"].as_str().unwrap_or_default(), first.unwrap_or("(empty)"))
    });
    let lines: Vec<_> = [format!("‹{}›", view.title()), view.words()].into_iter().chain(fields).collect();
    bot.readable(&lines.join("\n"))
}
