//! With a card open: what corrects it, what takes it back, and what is said to somebody else.

use serde_json::json;

use crate::{
    approvals::windows::{opens, sends},
    support::{bot::TestBot, thread::Thread},
};

async fn card<'a>(bot: &'a TestBot, request: &str) -> Thread<'a> {
    bot.user("ana").asks(request).await
}

/// What waits, by the titles of the cards with live buttons.
fn open_cards(thread: &Thread<'_>) -> Vec<String> {
    let with_buttons = thread.messages().into_iter().filter(|message| {
        message.buttons().iter().any(|button| button.action_id == "approve" || button.action_id.starts_with("approve"))
    });
    with_buttons.map(|message| message.words().lines().next().unwrap_or_default().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_of_the_time_makes_a_new_card() {
    let bot = TestBot::start().await;
    for correction in ["no, at 9:00", "9:00", "at 9:00", "make it 9:00"] {
        let mut thread = card(&bot, "schedule Math Hints for 2099-01-15").await;
        thread.says("ana", correction).await;
        let heard = thread.heard();
        assert!(heard.contains("*Starts*  2099-01-15 09:00 UTC"), "{correction}: {heard}");
        assert!(!heard.contains("exactly this"), "{correction}: {heard}");
        assert_eq!(open_cards(&thread).len(), 1, "{correction}: {heard}");
        thread.says("ana", "never mind").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_change_cannot_take_is_not_taken_for_the_same() {
    let bot = TestBot::start().await;
    let mut thread = card(&bot, "start Math Hints").await;
    thread.says("ana", "no, 70/30").await;
    insta::assert_snapshot!(thread.in_short(), @"
    I couldn't read that as a change to the request, so it stays as it was.
    The card is still open: *Start “Math Hints”?* Use the buttons on the card.
    *Status*
    running
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_target_takes_the_place_of_the_card() {
    let bot = TestBot::start().await;
    let mut thread = card(&bot, "delete Math Hints").await;
    thread.says("ana", "no, Running Test instead").await;
    insta::assert_snapshot!(thread.in_short(), @"
    *Permanently delete “Math Hints”*
    Replaced by a newer request · ‹time› · ‹the newer card›
    [Show all]
    ---
    *Permanently delete “Running Test”?*
    *Status*  paused
    *Context*  `assign-prog`
    *Conditions*  control 50%, variant 50%
    *Decision points*  SelectSection / area_model
    *ID*  `‹id›`
    *Enrolled*  24 users
    *Overlapping experiments*  none
    ⚠️ This can't be undone. The enrollments of 24 users are deleted too.
    Replaces the open card: Permanently delete “Math Hints”.
    Asked by @ana · anyone in this channel except the requester can approve · expires ‹time› · digest `‹id›`
    [Delete permanently] [Reject…] [Withdraw] [Show all]
    ");
    assert_eq!(open_cards(&thread), ["*Permanently delete “Running Test”?*"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_else_cannot_take_the_card_back() {
    let bot = TestBot::start().await;
    let mut thread = card(&bot, "delete Math Hints").await;
    thread.says("bo", "@countersign no, Running Test instead").await;
    assert!(thread.heard().contains("The earlier card stays open: "));
    assert_eq!(open_cards(&thread).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_asked_takes_the_card_back_in_their_words() {
    let bot = TestBot::start().await;
    for words in [
        "actually don't",
        "no, don't start it",
        "don’t start Math Hints",
        "don't start the Math Hints experiment",
        "withdraw it",
        "cancel that request",
    ] {
        let mut thread = card(&bot, "start Math Hints").await;
        thread.says("ana", words).await;
        let heard = thread.heard();
        assert!(heard.contains("Withdrawn by"), "{words}: {heard}");
        assert_eq!(open_cards(&thread), [""; 0], "{words}: {heard}");
    }
    let mut thread = card(&bot, "start Math Hints").await;
    for (who, words) in [("ana", "don't start Running Test"), ("bo", "@countersign actually don't")] {
        thread.says(who, words).await;
        let heard = thread.heard();
        assert!(heard.contains("A card is open: Start “Math Hints”?"), "{who}: {heard}");
        assert_eq!(open_cards(&thread).len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_to_somebody_else_approves_nothing() {
    let bot = TestBot::start().await;
    let mut thread = card(&bot, "start Math Hints").await;
    thread.says("cy", "@ana did you talk to the teachers?").await;
    assert_eq!(thread.heard(), "", "it is between the two of them");
    for word in ["yes", "no"] {
        thread.says("ana", word).await;
        assert_eq!(thread.heard(), "");
    }
    let told = "I can't tell whether this answers the card, so it didn't count. Press *Start \
                experiment* or *Reject…* on the card.";
    assert_eq!(thread.told("ana"), told, "once is enough");
    assert!(bot.upgrade.effects().is_empty());

    thread.says("cy", "@countersign looks good, but wait").await;
    insta::assert_snapshot!(thread.in_short(), @"
    I didn't catch that. Nothing was changed.
    The card is still open: *Start “Math Hints”?* Use the buttons on the card.
    *Status*
    running
    [What can you do?]
    ");
    thread.says("ana", "yes").await;
    assert!(thread.told("ana").contains("may have meant no"), "it follows our own words now, and her own no");
    assert!(bot.upgrade.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_counts_again_after_our_own_words() {
    let bot = TestBot::start().await;
    let mut thread = card(&bot, "start Math Hints").await;
    thread.says("cy", "@ana did you talk to the teachers?").await;
    thread.says("ana", "yes").await;
    assert_eq!(thread.heard(), "", "it is between the two of them");
    thread.says("cy", "@countersign show Class Hint Rollout").await;
    thread.says("ana", "yes").await;
    let told = thread.told("ana");
    assert_eq!(bot.upgrade.effects().len(), 1, "now it follows our own words: {told}{}", thread.heard());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mention_of_us_and_another_is_for_us() {
    let bot = TestBot::start().await;
    let mut thread = card(&bot, "start Math Hints").await;
    thread.says("cy", "@ana and @countersign please look").await;
    assert!(thread.heard().contains("The card is still open: *Start “Math Hints”?*"), "{}", thread.last());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unclear_answer_is_told_what_is_open() {
    let bot = TestBot::start().await;
    let mut thread = card(&bot, "start Math Hints").await;
    for words in ["yes if Cy agrees", "yes please, on Monday", "yes I saw it", "sounds good, but wait"] {
        thread.says("ana", words).await;
        assert_eq!(thread.heard(), "", "{words}: said to nobody in particular");
        thread.says("ana", &format!("@countersign {words}")).await;
        let heard = thread.heard();
        assert!(heard.contains("Start “Math Hints”?") && heard.contains("open"), "{words}: {heard}");
        assert_eq!(open_cards(&thread).len(), 1, "{words}: {heard}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_is_asked_for_until_there_is_one() {
    let bot = TestBot::start().await;
    for (answer, limit) in [("3", "3"), ("ten", "10"), ("at most 3", "3"), ("up to 5", "5")] {
        let mut thread = bot.user("ana").says("allow starting and stopping Math Hints until tomorrow").await;
        assert!(thread.heard().contains("What is the maximum number of starts and stops?"));
        thread.says("ana", "as many as needed").await;
        insta::allow_duplicates! {
            insta::assert_snapshot!(thread.in_short(), @"
            Enter a whole number, such as 5.
            What is the maximum number of starts and stops?
            [Never mind]
            ");
        }
        thread.says("ana", answer).await;
        let heard = thread.heard();
        assert!(heard.contains(&format!("{limit} starts and stops")), "{answer}: {heard}");
    }
    let mut thread = bot.user("ana").says("allow starting and stopping Math Hints until yesterday").await;
    assert!(thread.heard().contains("Give a time in the future."), "{}", thread.last());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suggestion_is_taken_with_a_yes() {
    let bot = TestBot::start().await;
    let mut thread = card(&bot, "stop Running Test").await;
    thread.says("ana", "start Math Hint").await;
    assert!(thread.heard().contains("Did you mean"), "{}", thread.last());
    thread.says("ana", "yes").await;
    assert!(thread.heard().contains("Start “Math Hints”?"), "{}", thread.last());
    assert!(bot.upgrade.effects().is_empty(), "the yes was not for the open card");
}

#[tokio::test(flavor = "multi_thread")]
async fn weights_are_asked_for_where_none_are_said() {
    let (_bot, mut thread) = TestBot::hears("ana", "change the weights of Math Hints").await;
    insta::assert_snapshot!(thread.heard(), @"Which weights, in the order control, variant? For example 70/30.");
    thread.says("ana", "70/30").await;
    assert!(thread.heard().contains("control 70%, variant 30%"), "{}", thread.last());
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_say_what_was_nearly_meant_and_repeat_little() {
    let bot = TestBot::start().await;
    assert_eq!(
        bot.user("ana").types("/upgrade list runing").await,
        "No context or status is called `runing`. Did you mean `/upgrade list running`?"
    );
    assert_eq!(
        bot.user("ana").types("/upgrade running").await,
        "I don't know `/upgrade running`. Did you mean `/upgrade list running`?"
    );
    let told = bot.user("ana").types(&format!("/countersign {}", "x".repeat(3000))).await;
    assert!(told.chars().count() < 200, "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_edited_in_the_form_is_kept_by_a_later_correction() {
    let bot = TestBot::start().await;
    let said = "create an experiment called Foo in assign-prog at SelectSection / area_model";
    let mut thread = bot.user("ana").asks(said).await;
    opens(&bot, &thread, "ana", "Edit…").await;
    assert!(sends(&bot, "ana", json!({ "Name": "Bar", "Description": "A pilot." })).await.is_empty());
    assert!(thread.heard().contains("*Create “Bar”?*"));
    thread.says("ana", "no, at 60/40").await;
    let heard = thread.heard();
    let newest = heard.rfind("*Create “").map(|at| &heard[at..]).unwrap_or_default();
    assert!(
        newest.starts_with("*Create “Bar”?*") && newest.contains("A pilot.") && newest.contains("control 60%"),
        "{heard}"
    );
}
