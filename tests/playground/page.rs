//! The playground as a newcomer meets it: the real program, its page in a real browser.
//!
//! Needs Chromium and its driver (`chromium`, `chromium-driver`); without them the test fails and says so.

mod accessibility;
mod browser;

use serde_json::json;

use self::browser::Browser;
use crate::running::Playground;

/// Where the bot answers.
const THREAD: &str = ".pane-thread";

/// Where the customer writes and reads.
const INBOX: &str = "#inbox";

#[tokio::test(flavor = "multi_thread")]
async fn a_researcher_asks_and_a_colleague_presses() {
    let folder = tempfile::tempdir().unwrap();
    let playground = Playground::start(&folder);
    let page = Browser::open(&format!("{}/#as=U1&channel=C1", playground.url())).await;

    page.writes("[data-composer=channel]", "@countersign start the Math Hints experiment").await;
    page.shows(THREAD, "Start “Math Hints”?").await;
    page.shows(THREAD, "inactive → running").await;
    page.shows(&format!("{THREAD} [data-action-id=approve]"), "Start experiment").await;
    page.shows(&format!("{THREAD} [data-action-id=reject]"), "Reject…").await;

    page.presses("#person", "Ana").await;
    page.presses(".menu-item", "Bo").await;
    page.shows("#person", "Bo").await;
    page.presses(&format!("{THREAD} [data-action-id=approve]"), "Start experiment").await;
    page.shows(THREAD, "Approved by @bo").await;
    page.lacks(&format!("{THREAD} [data-action-id=approve], {THREAD} [data-action-id=reject]")).await;
    page.shows(".pane-main .replies", "repl").await;

    page.presses(&format!("{THREAD} .tab"), "Trace").await;
    page.shows(&format!("{THREAD} .step-node"), "Ask for approval").await;
    page.shows(&format!("{THREAD} .step-said"), "Waits for a person’s decision.").await;
    page.presses(&format!("{THREAD} [aria-label='Next step']"), "").await;
    page.shows(&format!("{THREAD} .replay-words"), "Step 1 of").await;
    page.presses(&format!("{THREAD} .replay-all"), "Show all").await;
    page.shows(&format!("{THREAD} .pill"), "done").await;
    page.shows(&format!("{THREAD} .chain"), "Decision").await;

    page.writes("[data-composer=channel]", "@countersign show Math Hints").await;
    page.shows(THREAD, "show Math Hints").await;
    page.shows(&format!("{THREAD} .message-blocks"), "running").await;
    page.presses(&format!("{THREAD} [aria-label='This helped']"), "").await;
    page.shows(THREAD, "Thank you. Recorded: this helped.").await;
    page.presses(&format!("{THREAD} .tab"), "Trace").await;
    page.shows(&format!("{THREAD} .step-node"), "Answer").await;
    page.shows(&format!("{THREAD} .opinions"), "Bo: this helped").await;
    page.shows(&format!("{THREAD} .chain-detail"), "this helped").await;
    page.lacks(".toast").await;
    page.close().await;
    playground.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hello_without_a_mention_is_told_how_to_get_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let playground = Playground::start(&folder);
    let page = Browser::open(&format!("{}/#as=U1&channel=C1", playground.url())).await;

    page.shows(".empty", "Mention @countersign in #experiments").await;
    page.writes("[data-composer=channel]", "hello").await;
    page.shows(".toast", "Mention @countersign to get an answer in #experiments.").await;
    page.shows(".beginning", "Mention @countersign to ask for something:").await;
    page.writes("[data-composer=channel]", "@countersign hello").await;
    page.shows(THREAD, "Hello. Ask me about your").await;
    page.close().await;
    playground.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_that_was_open_can_still_be_pressed_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let before = Playground::start(&folder);
    let asked = json!({ "as": "U1", "channel": "C1", "text": "@countersign start the Math Hints experiment" });
    let root = before.does("post", asked).await["ts"].as_str().unwrap().to_owned();
    let card = before.button(&root, "Start experiment").await;
    before.stop().await;

    let after = Playground::start(&folder);
    after.does("action", card.pressed_by("U2")).await;
    after.says(&root, "Approved by").await;
    assert_eq!(after.buttons(&root).await, Vec::<String>::new(), "nothing is left to press");
    after.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_customer_writes_a_colleague_answers_and_the_customer_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let playground = Playground::start(&folder);
    let page = Browser::open(&format!("{}/#as=U1&channel=C1", playground.url())).await;

    page.presses("#open-inbox", "Inbox").await;
    page.shows(&format!("{INBOX} .inbox-none"), "No emails yet").await;
    page.presses(&format!("{INBOX} .inbox-people button"), "Ada").await;
    page.fills(&format!("{INBOX} [name=subject]"), "Prices for 20 seats").await;
    page.fills(&format!("{INBOX} [name=text]"), "Hello, what would 20 seats cost us? Ada").await;
    page.presses(&format!("{INBOX} [type=submit]"), "Send email").await;
    page.shows(&format!("{INBOX} .inbox-news"), "Sent.").await;
    page.shows(&format!("{INBOX} .conversation h2"), "Prices for 20 seats").await;
    page.fills(&format!("{INBOX} [name=subject]"), "Another question").await;
    page.lacks(&format!("{INBOX} .inbox-news:not(:empty)")).await;
    page.shows(&format!("{INBOX} .inbox-waits"), "No reply yet.").await;

    page.presses(&format!("{INBOX} .conversation .button"), "Show thread").await;
    page.shows(THREAD, "what would 20 seats cost us?").await;
    page.presses(&format!("{THREAD} .message a"), "Open in the mailbox").await;
    page.shows(&format!("{INBOX} .mail-in-view"), "what would 20 seats cost us?").await;
    page.presses(&format!("{THREAD} [data-action-id=edit]"), "Edit").await;
    page.shows("dialog", "Edit").await;
    assert!(page.height("dialog textarea").await >= 8.0 * 22.0, "a draft can be read in the window");
    page.presses("dialog [aria-label=Close]", "").await;
    page.presses(&format!("{THREAD} [data-action-id=approve]"), "Send").await;
    page.shows(&format!("{INBOX} .mail-from-team .badge"), "TEAM").await;
    page.shows(&format!("{INBOX} .inbox-news"), "replied: “Re: Prices for 20 seats”.").await;
    page.lacks(&format!("{INBOX} .inbox-waits")).await;

    page.presses(&format!("{INBOX} .conversation .button"), "Show trace").await;
    page.shows(&format!("{THREAD} .step-node"), "Sort the email").await;
    page.shows(&format!("{THREAD} .step-said"), "Sorted as: ").await;
    page.shows(&format!("{THREAD} .chain-detail"), "An email arrived.").await;
    page.shows(&format!("{THREAD} .chain-detail"), "Approved, with a button.").await;
    page.shows(&format!("{THREAD} .chain-detail"), "The label in the mailbox was updated.").await;
    page.presses(&format!("{INBOX} .conversation .button"), "Reply").await;
    page.shows(&format!("{INBOX} .inbox-answering"), "Reply to “Re: Prices for 20 seats”").await;
    page.lacks(".toast-error").await;
    page.close().await;
    playground.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_that_cannot_be_sent_says_which_field_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let playground = Playground::start(&folder);
    let page = Browser::open(&format!("{}/#as=U1&channel=C1&inbox=1", playground.url())).await;
    page.presses(&format!("{INBOX} .inbox-people button"), "Someone else").await;
    page.presses(&format!("{INBOX} [type=submit]"), "Send email").await;
    page.shows(&format!("{INBOX} .input-error"), "Enter the email address of the sender, such as ada@example.com.")
        .await;
    page.fills(&format!("{INBOX} [name=address]"), "nobody").await;
    page.presses(&format!("{INBOX} [type=submit]"), "Send email").await;
    page.shows(&format!("{INBOX} .input-error"), "“nobody” isn't an email address. Use one such as ada@example.com.")
        .await;
    page.shows(&format!("{INBOX} .input-error"), "Write a message.").await;
    page.shows(&format!("{INBOX} .inbox-none"), "No emails yet").await;
    page.close().await;
    playground.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suggestion_about_mail_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let playground = Playground::start(&folder);
    let page = Browser::open(&format!("{}/#as=U1&channel=C1", playground.url())).await;
    page.presses("#sidebar .entry", "mail").await;
    page.presses(".ask", "@countersign email status").await;
    page.shows(THREAD, "Email is running.").await;
    page.presses(".small-ask", "@countersign which emails are waiting?").await;
    page.shows(THREAD, "No email is waiting for review.").await;
    page.close().await;
    playground.stop().await;
}
