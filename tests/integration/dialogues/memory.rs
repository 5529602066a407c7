//! Memory: a person's own notes, written after their own yes, used where a request leaves something out.

use crate::support::bot::TestBot;

#[tokio::test(flavor = "multi_thread")]
async fn a_note_is_written_used_and_deleted() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").says("remember that I work in assign-prog").await;
    let card = thread.heard();
    assert!(card.contains("*Remember this about you?*") && card.contains("I work in assign-prog"), "{card}");
    thread.clicks("bo", "Remember it").await;
    assert!(!thread.heard().contains("I'll remember"), "nobody else decides");
    thread.clicks("ana", "Remember it").await;
    assert!(thread.heard().contains("I'll remember: “I work in assign-prog”."));

    let mut thread = bot.user("ana").says("what do you remember about me?").await;
    assert!(thread.heard().contains("I work in assign-prog"));
    let mut thread = bot.user("bo").says("what do you remember about me?").await;
    assert!(thread.heard().contains("I have no notes about you."));

    let said = "create experiment Foo with conditions control, variant at SelectSection/area_model weights 70/30";
    let mut thread = bot.user("ana").says(said).await;
    let card = thread.heard();
    assert!(card.contains("*Create “Foo”?*") && card.contains("*Context*  `assign-prog`"), "{card}");
    assert!(card.contains("Based on what you asked me to remember: _I work in assign-prog_"), "{card}");
    let mut thread = bot.user("bo").says(said).await;
    assert!(!thread.heard().contains("*Create “Foo”?*"), "notes of others are not used");

    let mut thread = bot.user("ana").says("forget everything you remember about me").await;
    assert!(thread.heard().contains("*Forget this note about you?*"));
    thread.clicks("ana", "Forget note").await;
    assert!(thread.heard().contains("Deleted the note."));
    let mut thread = bot.user("ana").says("what do you remember about me?").await;
    assert!(thread.heard().contains("I have no notes about you."));
}

#[tokio::test(flavor = "multi_thread")]
async fn forget_it_is_about_the_notes_that_were_just_listed() {
    let bot = TestBot::start().await;
    let thread = bot.user("ana").says("remember that I work in assign-prog").await;
    thread.clicks("ana", "Remember it").await;

    let mut thread = bot.user("ana").asks("what do you remember about me?").await;
    thread.says("ana", "forget it").await;
    assert!(thread.heard().contains("*Forget this note about you?*"), "{}", thread.last());
    thread.clicks("ana", "Keep note").await;

    let mut thread = bot.user("ana").asks("start Math Hints").await;
    thread.says("ana", "what do you remember about me?").await;
    thread.skip();
    thread.says("ana", "forget it").await;
    let heard = thread.heard();
    assert!(heard.contains("*Forget this note about you?*") && !heard.contains("Withdrawn"), "{heard}");

    let mut thread = bot.user("ana").asks("start Math Hints").await;
    thread.says("ana", "forget it").await;
    assert!(thread.heard().contains("Withdrawn by @ana"), "without a list of notes, it withdraws the card");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_note_is_named_on_the_card_after_a_question_in_between() {
    let bot = TestBot::start().await;
    let thread = bot.user("ana").says("remember that I work in assign-prog").await;
    thread.clicks("ana", "Remember it").await;

    let mut thread = bot.user("ana").asks("create experiment Foo").await;
    thread.says("ana", "control and variant").await;
    thread.says("ana", "SelectSection/area_model").await;
    let heard = thread.heard();
    assert!(heard.contains("*Context*  `assign-prog`"), "{heard}");
    assert!(heard.contains("Based on what you asked me to remember: _I work in assign-prog_"), "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_note_is_corrected_by_its_person() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").says("by the way, our pilot classes are 3A and 3B, please remember").await;
    thread.clicks("ana", "Remember it").await;
    assert!(thread.heard().contains("I'll remember: “our pilot classes are 3A and 3B”."));
    thread.says("ana", "what have you noted about us?").await;
    thread.says("ana", "actually its 3A and 3C").await;
    let card = thread.heard();
    assert!(card.contains("*Replaces*  _our pilot classes are 3A and 3B_"), "{card}");
    thread.clicks("ana", "Remember it").await;
    let mut thread = bot.user("ana").says("what do you remember about me?").await;
    let notes = thread.heard();
    assert!(notes.contains("3A and 3C") && !notes.contains("3B"), "{notes}");
}
