//! Questions: answered from what the platform says, and nobody has to press anything.

use countersign::graph::store::ThreadFilter;
use insta::assert_snapshot;

use crate::support::bot::TestBot;

/// How many of a condition are enrolled is drawn anew for each run.
fn without_draw(heard: &str) -> String {
    let mut out = String::new();
    let mut rest = heard;
    while let Some((before, after)) = rest.split_once(" enrolled)") {
        let start = before.rfind('(').expect("a number in brackets");
        out.push_str(&format!("{}(‹n› enrolled)", &before[..start]));
        rest = after;
    }
    out + rest
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_of_the_trade_is_explained() {
    let (bot, mut thread) = TestBot::hears("ana", "What is A/B testing?").await;
    assert_snapshot!(thread.in_short(), @"
    *A/B testing* shows different versions of the same thing to different people at the same time, assigned at random, and compares how they do. Because assignment is random, a difference beyond chance is caused by the version.

    On UpGrade such a comparison is an *experiment*, and its versions are *conditions*.
    ");
    assert!(bot.upgrade.ledger().is_empty(), "nothing has to be looked up for that");
    assert_snapshot!(thread.answer("ana", "and what is a decision point?").await, @"
    A *decision point* is a place where the application asks “which version for this user?” It is named by a site and a target, such as `SelectSection / area_model`.

    A user gets the same condition at all decision points of an experiment.
    For example, “Class Hint Rollout” runs at `lesson-quiz / question-hint`.
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn whether_the_platform_is_there() {
    let bot = TestBot::start().await;
    assert_snapshot!(bot.user("ana").answer("Is UpGrade running?").await, @"UpGrade is running: *A/B Testing Backend*, version `6.5.0`.");
}

#[tokio::test(flavor = "multi_thread")]
async fn experiments_are_listed_in_a_table() {
    let (_bot, mut thread) = TestBot::hears("ana", "List experiments").await;
    assert_snapshot!(thread.in_short(), @"‹all experiments›");
    assert_snapshot!(thread.answer("ana", "what is running?").await, @"‹running experiments›");
    assert_snapshot!(thread.answer("ana", "list experiments in livehint-ai").await, @"‹the one of livehint-ai›");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_experiment_is_shown_with_what_can_be_done_next() {
    let (_bot, mut thread) = TestBot::hears("ana", "Show Math Hints").await;
    assert_snapshot!(thread.in_short(), @"
    Math Hints ⋯
    0
    ‹not: nobody›
    ⋯
    [Start] [In detail]
    ");
    thread.says("ana", "what is the status of Class Hint Rollout?").await;
    assert_snapshot!(without_draw(&thread.in_short()), @"
    Class Hint Rollout
    Hints class by class, so that neighbours see the same.
    *Status*
    running
    *Context*
    `mathstream`
    *Conditions*
    control 34% (‹n› enrolled), question-hint-default 33% (‹n› enrolled), question-hint-tutorbot 33% (‹n› enrolled)
    *Decision points*
    lesson-quiz / question-hint
    *Assignment*
    by group (classId)
    *After enrollment ends*
    enrolled users keep their condition
    *Users on no list*
    included
    *Consistency*
    group
    *Enrolled*
    24 users in 4 groups
    *Tags*
    hints
    ID `‹id›`
    [Stop] [In detail]
    ");
    thread.says("ana", "show Concrete Fractions").await;
    assert_snapshot!(without_draw(&thread.in_short()), @"
    Concrete Fractions
    Concrete against abstract pictures in the introduction to fractions.
    *Status*
    archived
    *Context*
    `assign-prog`
    *Conditions*
    concrete 50% (‹n› enrolled), abstract 50% (‹n› enrolled)
    *Decision points*
    SelectProblem / fraction_intro
    *Assignment*
    individual
    *After enrollment ends*
    enrolled users keep their condition
    *Users on no list*
    included
    *Consistency*
    individual
    *Enrolled*
    24 users
    *Tags*
    fractions, 2025
    ID `‹id›`
    [In detail]
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_context_knows() {
    let (_bot, mut thread) = TestBot::hears("ana", "What conditions does assign-prog have?").await;
    assert_snapshot!(thread.in_short(), @"
    Conditions in `assign-prog`: `control`, `variant`, `concrete`, `abstract`.
    [Decision points]
    ");
    assert_snapshot!(thread.answer("ana", "what contexts are there?").await, @"
    3 contexts:
    Context | Conditions | Sites | Targets | Group types
    assign-prog | control, variant, concrete, abstract | SelectSection, SelectProblem | absolute_value_plot_equality, area_model, fraction_intro | schoolId, classId, instructorId
    livehint-ai | control, tutor-a, tutor-b | chat | chat-tone | classId
    mathstream | control, question-hint-default, question-hint-tutorbot | lesson-stream, lesson-quiz | question-hint, lesson-video | classId, schoolId
    ");
    assert_snapshot!(thread.answer("ana", "what conditions does asign-prog have?").await, @"‹there is no “asign-prog”›");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_greeting_a_thank_you_and_a_cry_for_help() {
    let (_bot, mut thread) = TestBot::hears("ana", "hi").await;
    assert_snapshot!(thread.in_short(), @"
    Hello. Ask me about your experiments, or tell me what to change.
    [List experiments] [Is UpGrade running?] [Create an experiment] [What can you do?]
    ");
    assert_snapshot!(thread.answer("ana", "what can you do?").await, @"
    I look things up on UpGrade and prepare changes. Nothing is changed until someone approves the card I post.

    *Look up*
    • “list experiments”, “what is running?”, “find experiments in assign-prog created this week”
    • “show Math Hints”, “show it in detail”, “show it as JSON”
    • “what conditions does assign-prog have?”, “is UpGrade running?”
    • “what condition would u1 get in assign-prog?”

    *Change*
    • “create experiment Hint Timing in assign-prog with conditions control, variant at SelectSection/area_model”
    • “start Math Hints”, “stop it”, “cancel Math Hints”, “delete Math Hints”
    • “rename Math Hints to Hints 2”, “set the weights of Math Hints to 70/30”
    • “initialize user u1 with groups classId 5B in assign-prog”

    *Test*
    • “test the balance of Math Hints with 200 users”, “test consistency rules for Math Hints”
    • “simulate user u1 in Math Hints”, “generate 5 test users”

    *And*
    • “what have we done so far?”, “undo that”
    • “what is a decision point?”, “what concepts can you explain?”, “what parameters does create take?”

    *Watch*
    • “tell me when Math Hints reaches 500 users”, “tell me when it ends”
    • “tell me if the split of Math Hints looks wrong”
    • “post a digest here every Monday 9am”
    • “what are you watching?”, “stop watching Math Hints”
    [List experiments] [Is UpGrade running?] [What is A/B testing?]
    ");
    assert_snapshot!(thread.answer("ana", "thanks!").await, @"You're welcome.");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_understood_gets_examples() {
    let (_bot, mut thread) = TestBot::hears("ana", "asdf").await;
    assert_snapshot!(thread.in_short(), @"‹not understood›");
    thread.clicks("ana", "List experiments").await;
    assert!(thread.last().contains("Math Hints"), "{}", thread.last());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_answer_is_used_again_without_being_kept_in_the_thread() {
    let bot = TestBot::start().await;
    for number in 0..150 {
        bot.upgrade.has(&format!("Experiment {number:03}"), "inactive");
    }
    let reads = |bot: &TestBot| bot.upgrade.ledger().iter().filter(|call| call.path == "/api/experiments").count();
    let mut thread = bot.user("ana").says("list experiments").await;
    let first = thread.heard();
    let before = reads(&bot);
    thread.says("ana", "list experiments").await;
    assert!(thread.heard().contains("Fetched less than a minute ago."));
    assert_eq!(reads(&bot), before, "the platform was not asked again");

    thread.says("ana", "list experiments again").await;
    assert_eq!(thread.heard(), first);
    assert_eq!(reads(&bot), before + 1);

    let id = bot.store().threads(ThreadFilter::All, 1).await.unwrap().remove(0).thread;
    let saved = bot.store().load(&id).await.unwrap().unwrap();
    let kept = format!("{:?} {:?}", saved.snapshot, saved.deltas).len();
    assert!(kept < 60_000, "the thread and all its steps are {kept} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn short_questions_of_a_newcomer() {
    let (_bot, mut thread) = TestBot::hears("ana", "help with creating an experiment").await;
    let first_line = |text: String| text.lines().take(3).collect::<Vec<_>>().join("\n");
    assert_snapshot!(first_line(thread.heard()), @"
    To *create an experiment*, I need: name, context, decision points. Everything else is optional.
    What | Needed | Meaning
    Name | yes | what it is called
    ");
    assert_snapshot!(thread.answer("ana", "health check").await, @"UpGrade is running: *A/B Testing Backend*, version `6.5.0`.");
    assert_snapshot!(thread.answer("ana", "what is running?").await, @"‹running experiments›");
    thread.says("ana", "what condition would u3 get in Math Hints?").await;
    assert!(thread.heard().starts_with("UpGrade doesn't know the user `u3` yet."), "its context is known");
    thread.says("ana", "explain the setup of Math Hints").await;
    assert_snapshot!(first_line(thread.heard()), @"
    Math Hints
    Worked hints when the graph of an absolute value is compared.
    *Status*
    ");
}
