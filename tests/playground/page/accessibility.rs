//! The page with a screen reader, with a keyboard, or with little contrast: axe-core finds no barrier.

use super::{INBOX, THREAD, browser::Browser};
use crate::running::Playground;

#[tokio::test(flavor = "multi_thread")]
async fn no_part_of_the_page_has_a_barrier() {
    let folder = tempfile::tempdir().unwrap();
    let playground = Playground::start(&folder);
    let page = Browser::open(&format!("{}/#as=U1&channel=C2", playground.url())).await;
    let mut found = Vec::new();
    let mut look = async |place: &str| {
        found.extend(page.barriers().await.into_iter().map(|line| format!("{place}, {line}")));
    };

    page.shows(".empty", "Mention @countersign").await;
    look("an empty channel").await;
    page.visits("as=U1&channel=C1").await;
    page.writes("[data-composer=channel]", "@countersign start the Math Hints experiment").await;
    page.shows(&format!("{THREAD} [data-action-id=approve]"), "Start experiment").await;
    look("a thread with a card").await;

    page.presses(&format!("{THREAD} [data-action-id=edit]"), "Edit").await;
    page.shows("dialog h2", "Edit").await;
    look("the form of a request").await;
    page.presses("dialog [aria-label=Close]", "").await;
    page.lacks("dialog").await;

    page.presses(&format!("{THREAD} .tab"), "Trace").await;
    page.shows(&format!("{THREAD} .step-node"), "Ask for approval").await;
    page.presses(&format!("{THREAD} .fold summary"), "Details").await;
    page.presses(&format!("{THREAD} [aria-label='Next step']"), "").await;
    look("the trace").await;

    page.presses("#person", "Ana").await;
    page.shows(".menu-item", "Bo").await;
    look("the menu of people").await;
    page.presses(".menu-item", "Bo").await;
    page.shows("#person", "Bo").await;
    page.visits("as=U2&channel=D2&home=1").await;
    page.shows(".home", "Waiting for you").await;
    look("Home").await;

    page.visits("as=U2&channel=C1&inbox=1").await;
    page.presses(&format!("{INBOX} .inbox-people button"), "Ada").await;
    page.presses(&format!("{INBOX} [type=submit]"), "Send email").await;
    page.shows(&format!("{INBOX} .conversation h2"), "Prices for 20 seats").await;
    page.presses(&format!("{INBOX} [type=submit]"), "Send email").await;
    page.shows(&format!("{INBOX} .input-error"), "Write a message.").await;
    look("the inbox").await;

    assert!(found.is_empty(), "{}", found.join("\n"));
    page.close().await;
    playground.stop().await;
}
