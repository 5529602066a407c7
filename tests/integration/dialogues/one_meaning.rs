//! With a card open, “cancel”, “no”, “yes” and “undo that” are about the card; what is negated is read; what is said of a card
//! is what it says.

use super::first_questions::answer;
use crate::support::bot::TestBot;

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_that_is_misread_leaves_nothing_behind() {
    let bot = TestBot::start().await;
    for misread in ["make it Fifty", "no, Mth Hnts"] {
        let mut thread = bot.user("ana").asks("start math hints").await;
        assert!(answer(&mut thread, misread).await.contains("No experiment is called"), "{misread}");
        assert!(answer(&mut thread, "cancel that").await.contains("Withdrawn by @ana"), "{misread}");
        thread.says("ana", "yes").await;
    }
    assert!(bot.upgrade.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_no_the_card_needs_a_press() {
    let bot = TestBot::start().await;
    for no in ["never mind", "not yet", "cancel", "actually no, twice", "hold on"] {
        let mut thread = bot.user("ana").asks("start Math Hints").await;
        thread.told("ana");
        thread.says("bo", &format!("@countersign {no}")).await;
        thread.says("ana", "yes").await;
        let told = "Something said here while the card *Start “Math Hints”?* was open may have meant no, so a typed yes isn't enough. \
                    Press *Start experiment* or *Reject…* on the card.";
        assert_eq!(thread.told("ana"), told, "{no}: {}", thread.heard());
        assert!(bot.upgrade.effects().is_empty(), "{no}");
        thread.says("ana", "never mind").await;
        assert!(thread.heard().contains("Withdrawn by @ana"), "{no}");
    }
    let mut thread = bot.user("ana").asks("start Math Hints").await;
    thread.says("bo", "@countersign not yet").await;
    thread.clicked("bo", "Start experiment").await;
    assert_eq!(bot.upgrade.effects().len(), 1, "the button still decides");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_after_a_no_is_a_card_of_its_own() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks("set the weights of Math Hints to 70/30").await;
    assert!(answer(&mut thread, "no, 60/40").await.contains("control 60%, variant 40%"));
    thread.says("bo", "yes").await;
    assert_eq!(bot.upgrade.effects().len(), 1, "the yes is for the new card");
}

#[tokio::test(flavor = "multi_thread")]
async fn undo_that_is_about_the_open_card() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks("start Math Hints").await;
    thread.clicked("bo", "Start experiment").await;
    thread.says("ana", "stop Lesson Video Hints").await;
    thread.skip();
    let heard = answer(&mut thread, "undo that").await;
    assert!(heard.contains("Withdrawn by @ana") && !heard.contains("This undoes the change"), "{heard}");
    let heard = answer(&mut thread, "undo that").await;
    assert!(heard.contains("This undoes the change"), "no card is open any more: {heard}");
    thread.says("ana", "never mind").await;
    thread.skip();
    thread.says("ana", "stop Class Hint Rollout").await;
    thread.skip();
    thread.says("bo", "@countersign undo that").await;
    let heard = thread.heard();
    assert!(heard.contains("Which one should I undo?") && !heard.contains("This undoes the change"), "{heard}");
    assert_eq!(bot.upgrade.effects().len(), 1);
}

/// What is not understood may have meant no, whatever its words are.
#[tokio::test(flavor = "multi_thread")]
async fn after_what_was_not_understood_a_yes_needs_the_button() {
    let bot = TestBot::start().await;
    for said in
        ["that was a mistake", "bad idea", "wait a minute", "oops", "i'd hold off", "ignore that", "remove the card"]
    {
        let mut thread = bot.user("ana").asks("start Math Hints").await;
        thread.says("ana", said).await;
        thread.told("ana");
        thread.says("ana", "yes").await;
        let told = thread.told("ana");
        let is_refused =
            told.contains("may have meant no") || told.contains("I can't tell whether this answers the card");
        assert!(is_refused, "{said}: {told} {}", thread.heard());
        assert!(bot.upgrade.effects().is_empty(), "{said}");
        thread.says("ana", "never mind").await;
    }
    let mut thread = bot.user("ana").asks("start Math Hints").await;
    thread.says("ana", "who can approve that?").await;
    thread.says("ana", "yes").await;
    assert!(thread.heard().contains("Started “Math Hints”"), "a question that was answered is no doubt");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_negated_is_read() {
    let bot = TestBot::start().await;
    for (said, card) in [
        ("don't forget to stop class hint rollout", "*Stop “Class Hint Rollout”?*"),
        ("please don’t hesitate to start Math Hints", "*Start “Math Hints”?*"),
        ("don't change the weights, just start Math Hints", "*Start “Math Hints”?*"),
        ("don't pause Class Hint Rollout, cancel it", "*Cancel “Class Hint Rollout”?*"),
        ("no need to change the weights, just start Math Hints", "*Start “Math Hints”?*"),
        ("remember to stop class hint rollout", "*Stop “Class Hint Rollout”?*"),
    ] {
        let mut thread = bot.user("ana").says(said).await;
        let heard = thread.heard();
        assert!(heard.contains(card), "{said}: {heard}");
        thread.says("ana", "stop").await;
    }
    for said in [
        "do not start Math Hints",
        "don't start Math Hints until Friday, then start it",
        "don't start Math Hints, unless Bo agrees",
        "never start Math Hints without asking me",
    ] {
        let mut thread = bot.user("ana").says(said).await;
        let heard = thread.heard();
        assert!(!heard.contains("can approve"), "{said}: {heard}");
    }
    assert!(bot.upgrade.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bot_may_be_mentioned_anywhere() {
    let bot = TestBot::start().await;
    for said in [
        "hey @countersign list experiments in short",
        "can you @countersign list experiments in short?",
        "please @countersign list experiments in short",
        "can @countersign list experiments in short?",
    ] {
        let mut thread = bot.user("ana").says_in("experiments", said).await;
        let heard = thread.heard();
        assert!(heard.contains("6 experiments:"), "{said}: {heard}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_found_as_slack_sends_them() {
    let bot = TestBot::start().await;
    let names = ["Hints 🎉", "It’s new", "“Quoted” test", "Hints, part 2", "Once Only"];
    for name in names {
        bot.upgrade.has(name, "inactive");
    }
    for (said, name) in [
        ("start Hints :tada:", "Hints 🎉"),
        ("start Hints 🎉", "Hints 🎉"),
        ("start It's new", "It’s new"),
        ("start \"Quoted\" test", "“Quoted” test"),
        ("start Hints, part 2", "Hints, part 2"),
        ("start Once Only", "Once Only"),
    ] {
        let mut thread = bot.user("ana").says(said).await;
        let heard = thread.heard();
        assert!(heard.contains(&format!("*Start “{name}”?*")), "{said}: {heard}");
        thread.says("ana", "never mind").await;
    }
    let mut thread =
        bot.user("ana").says("create experiment It’s newer in assign-prog at SelectSection / area_model").await;
    assert!(thread.heard().contains("*Create “It’s newer”?*"), "{}", thread.last());
    let mut thread = bot.user("ana").says("create experiment Twice Only in assign-prog").await;
    assert!(thread.heard().contains("“Twice Only” in assign-prog"), "{}", thread.last());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_about_an_open_card_is_answered_from_the_card() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks("stop Lesson Video Hints").await;
    thread.told("ana");
    let heard = answer(&mut thread, "does that delete the data too?").await;
    assert!(heard.contains("doesn't say so, and it changes only what it says:"), "{heard}");
    assert!(heard.contains("Status: running → paused") && heard.contains("It can be undone afterward."), "{heard}");
    thread.says("ana", "can i approve this myself?").await;
    assert_eq!(thread.told("ana"), "You can approve *Stop “Lesson Video Hints”*. Press *Stop experiment* on its card.");
    thread.says("ana", "who can approve that?").await;
    assert_eq!(thread.told("ana"), "*Stop “Lesson Video Hints”* can be approved by anyone in this channel.");
    thread.clicked("bo", "Stop experiment").await;
    thread.says("ana", "who can approve that?").await;
    assert_eq!(thread.told("ana"), "*Stop “Lesson Video Hints”* needed approval by anyone in this channel.");

    let mut thread = bot.user("ana").asks("delete Running Test").await;
    thread.told("ana");
    let heard = answer(&mut thread, "does that delete the data too?").await;
    assert!(heard.contains("This is all that the card Permanently delete “Running Test”? changes:"), "{heard}");
    assert!(
        heard.contains("enrollments of 24 users are deleted too") && heard.contains("It can't be undone."),
        "{heard}"
    );
    thread.says("ana", "why can't i approve this myself?").await;
    let told = "You asked for this and it can't be undone, so another person has to approve it.";
    assert_eq!(thread.told("ana"), told);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_is_not_kept_as_a_note() {
    let bot = TestBot::start().await;
    let mut thread =
        bot.user("ana").says("remember the present state of Math Hints so that I can get back to it").await;
    let heard = thread.heard();
    assert!(
        heard.contains("I can't save a state and put it back later") && !heard.contains("Remember this"),
        "{heard}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_about_all_experiments_lists_them() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").says("what can you tell me about our experiments?").await;
    assert!(thread.heard().contains("6 experiments:"), "{}", thread.last());
}
