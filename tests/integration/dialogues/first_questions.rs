//! Questions and requests as people put them the first time: a bare name, a link, another language, “stop everything”, a
//! comparison, a command with a change.

use crate::support::{bot::TestBot, thread::Thread};

/// Returns the whole answer to what ana writes in the thread.
pub(super) async fn answer(thread: &mut Thread<'_>, text: &str) -> String {
    thread.says("ana", text).await;
    thread.heard()
}

/// Returns the whole answer to what ana writes in the channel.
pub(super) async fn asked(bot: &TestBot, text: &str) -> String {
    bot.user("ana").says(text).await.heard()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bare_name_and_a_link_mean_the_experiment() {
    let bot = TestBot::start().await;
    let named = asked(&bot, "Running Test?").await;
    assert!(named.starts_with("Running Test"), "{named}");
    let id = bot.upgrade.experiment("Running Test").unwrap()["id"].as_str().unwrap().to_owned();
    let linked = asked(&bot, &format!("https://upgrade.example.org/#/home/detail/{id}")).await;
    assert!(linked.starts_with("Running Test"), "{linked}");
    let start = asked(&bot, &format!("resume https://upgrade.example.org/#/home/detail/{id} please")).await;
    assert!(start.contains("Resume “Running Test”"), "{start}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_experiments_are_shown_side_by_side() {
    let (bot, mut thread) = TestBot::hears("ana", "compare Math Hints and Running Test").await;
    let compared = thread.heard();
    assert!(compared.contains("“*Math Hints*” and “*Running Test*”"), "{compared}");
    assert!(compared.contains("inactive") && compared.contains("paused"), "{compared}");
    let card = answer(&mut thread, "archive both").await;
    assert!(!card.contains("There is no experiment"), "{card}");
    assert!(bot.upgrade.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_runs_is_stopped_on_one_card() {
    let bot = TestBot::start().await;
    let card = asked(&bot, "stop everything").await;
    assert!(card.contains("Stop 2 experiments?"), "{card}");
    assert!(card.contains("Class Hint Rollout") && card.contains("Lesson Video Hints"), "{card}");
    let question = asked(&bot, "cancel all experiments").await;
    assert!(question.contains("Which experiments should I cancel?"), "{question}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_language_gets_a_sentence() {
    let bot = TestBot::start().await;
    for (said, sentence) in [
        ("Bitte starte Math Hints", "Ich verstehe zurzeit nur Englisch"),
        ("¿Puedes iniciar Math Hints?", "Por ahora solo entiendo inglés"),
        ("peux-tu démarrer Math Hints ?", "Je ne comprends que l’anglais"),
        ("запусти Math Hints пожалуйста", "Пока я понимаю только по-английски"),
    ] {
        let answer = asked(&bot, said).await;
        assert!(answer.starts_with(sentence), "{said}: {answer}");
    }
    assert!(bot.upgrade.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_found_in_everyday_words() {
    let bot = TestBot::start().await;
    let hints = asked(&bot, "which experiments have hints in the name?").await;
    assert!(hints.contains("Math Hints") && !hints.contains("Chat Tone"), "{hints}");
    let all = asked(&bot, "list expermients in assign prog").await;
    assert!(all.contains("3 experiments (in assign-prog)"), "{all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finished_experiment_may_be_paused_or_cancelled() {
    let bot = TestBot::start().await;
    let question = asked(&bot, "We've finished Lesson Video Hints, please close it").await;
    assert!(question.contains("Do you want to pause it"), "{question}");
    let card = asked(&bot, "could we maybe get Math Hints going today").await;
    assert!(card.contains("Start “Math Hints”"), "{card}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bots_own_words_are_explained() {
    let bot = TestBot::start().await;
    let meaning = asked(&bot, "what are envelopes?").await;
    assert!(meaning.contains("two people"), "{meaning}");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_only_look_things_up() {
    let bot = TestBot::start().await;
    let answer = bot.user("ana").types("/upgrade start Running Test").await;
    assert!(answer.contains("Commands only look things up"), "{answer}");
    assert!(answer.contains("@countersign start Running Test"), "{answer}");
    assert!(bot.upgrade.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_open_card_who_can_approve_this_is_about_all_changes() {
    let (bot, mut thread) = TestBot::hears("ana", "show Math Hints").await;
    thread.says("ana", "@countersign who can approve this?").await;
    let told = thread.told("ana");
    assert!(told.contains("Who can approve what:") && !told.contains("update experiment status"), "{told}");
    assert!(bot.upgrade.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_approve_and_what_waits_is_answered_to_the_asker() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    thread.skip();
    thread.says("ana", "@countersign who may approve deletes?").await;
    let told = thread.told("ana");
    assert!(told.contains("delete experiment") && told.contains("can be approved by"), "{told}");
    thread.says("ana", "@countersign who can approve this?").await;
    let told = thread.told("ana");
    assert!(told.contains("*Start “Math Hints”* can be approved by anyone in this channel"), "{told}");
    thread.says("bo", "@countersign what's waiting for me?").await;
    let told = thread.told("bo");
    assert!(told.contains("Start “Math Hints”"), "{told}");
    assert!(bot.upgrade.effects().is_empty());
}
