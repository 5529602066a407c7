//! Slash commands, the Home tab, direct messages, and to whom the bot listens.

use insta::assert_snapshot;

use crate::support::bot::TestBot;

#[tokio::test(flavor = "multi_thread")]
async fn the_platform_at_a_glance() {
    let bot = TestBot::start().await;
    let ana = bot.user("ana");
    assert_snapshot!(ana.types("/upgrade status").await, @"UpGrade is running: *A/B Testing Backend*, version `6.5.0`.");
    assert_snapshot!(ana.types("/upgrade list").await, @"
    6 experiments:
    Name | Status | Context | Conditions
    Chat Tone | cancelled (completed) | livehint-ai | tutor-a 50%, tutor-b 50%
    Class Hint Rollout | enrolling (running) | mathstream | control 34%, question-hint-default 33%, question-hint-tutorbot 33%
    Concrete Fractions | archived | assign-prog | concrete 50%, abstract 50%
    Lesson Video Hints | enrolling (running) | mathstream | control 34%, question-hint-default 33%, question-hint-tutorbot 33%
    Math Hints | inactive | assign-prog | control 50%, variant 50%
    Running Test | enrollmentComplete (paused) | assign-prog | control 50%, variant 50%
    ");
    assert_snapshot!(ana.types("/upgrade list running").await, @"
    2 experiments (running):
    Name | Status | Context | Conditions
    Class Hint Rollout | enrolling (running) | mathstream | control 34%, question-hint-default 33%, question-hint-tutorbot 33%
    Lesson Video Hints | enrolling (running) | mathstream | control 34%, question-hint-default 33%, question-hint-tutorbot 33%
    ");
    assert_snapshot!(ana.types("/upgrade list livehint-ai").await, @"
    1 experiment (in livehint-ai):
    Name | Status | Context | Conditions
    Chat Tone | cancelled (completed) | livehint-ai | tutor-a 50%, tutor-b 50%
    ");
    assert_snapshot!(ana.types("/upgrade list zebra").await, @"There is no context “*zebra*”. There are: assign-prog, livehint-ai, mathstream.");
    assert_snapshot!(ana.types("/upgrade help").await, @"
    You can ask me:
    • `/upgrade status`  whether UpGrade is running, and its version
    • `/upgrade list`  all experiments; list assign-prog or list running for some
    • `/upgrade help`  this list
    For everything else, mention me in a channel or write to me directly, in your own words.
    ");
    assert_snapshot!(ana.types("/upgrade").await, @"
    You can ask me:
    • `/upgrade status`  whether UpGrade is running, and its version
    • `/upgrade list`  all experiments; list assign-prog or list running for some
    • `/upgrade help`  this list
    For everything else, mention me in a channel or write to me directly, in your own words.
    ");
    assert_snapshot!(ana.types("/upgrade explode").await, @"
    I don't know `/upgrade explode`.
    Try `/upgrade help`.
    ");
    assert!(bot.slack.thread("experiments", &"0".into()).is_empty());
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_and_what_was_done() {
    let bot = TestBot::start().await;
    let bo = bot.user("bo");
    assert_snapshot!(bo.types("/countersign pending").await, @"Nothing is waiting for a decision.");
    assert_snapshot!(bo.types("/countersign runs").await, @"No change has been asked for yet.");
    let thread = bot.user("ana").says("start Math Hints").await;
    thread.says("ana", "stop Lesson Video Hints").await;
    thread.clicks("bo", "Start experiment").await;
    assert_snapshot!(bo.types("/countersign pending").await, @"
    Waiting for a decision:
    • *Stop “Lesson Video Hints”* · asked by @ana · open until ‹time›
    ");
    assert_snapshot!(bo.types("/countersign runs").await, @"
    The latest changes:
    • *Stop “Lesson Video Hints”* waits for a decision · asked by @ana ‹time›
    • *Start “Math Hints”* was done · asked by @ana ‹time›
    ");
    assert_snapshot!(bo.types("/countersign help").await, @"
    You can ask me:
    • `/countersign pending`  cards that wait for somebody
    • `/countersign runs`  the latest changes and how they ended
    • `/countersign help`  this list
    For everything else, mention me in a channel or write to me directly, in your own words.
    ");
    assert_snapshot!(bo.types("/countersign dance").await, @"
    I don't know `/countersign dance`.
    Try `/countersign help`.
    ");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_platform_that_is_away_is_said_in_a_command_too() {
    let bot = TestBot::start().await;
    bot.upgrade.is_down(Some(countersign::sandbox::upgrade::faults::Down::Unavailable));
    assert_snapshot!(bot.user("ana").types("/upgrade status").await, @"
    UpGrade does not answer at the moment (status 503), so I could not look that up.
    Ask again in a minute, or tell whoever runs it.
    ");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_home_tab_shows_what_waits() {
    let bot = TestBot::start().await;
    assert_snapshot!(bot.user("bo").opens_home().await, @"
    Waiting for a decision
    Nothing is waiting.
    How to ask
    Mention me in a channel, or write to me directly: _list experiments_, _start the Math Hints experiment_, _what conditions does assign-prog have?_
    I look things up by myself. Before I change anything, I show a card and wait for a person to press its button.
    ");
    let thread = bot.user("ana").says("start Math Hints").await;
    thread.says("ana", "stop Lesson Video Hints").await;
    thread.clicks("bo", "Start experiment").await;
    assert_snapshot!(bot.user("bo").opens_home().await, @"
    Waiting for a decision
    • *Stop “Lesson Video Hints”* · asked by @ana · open until ‹time›
    Lately
    • *Start “Math Hints”* was done · ‹time›
    How to ask
    Mention me in a channel, or write to me directly: _list experiments_, _start the Math Hints experiment_, _what conditions does assign-prog have?_
    I look things up by myself. Before I change anything, I show a card and wait for a person to press its button.
    ");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_can_be_written_to_directly() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").writes("start Math Hints").await;
    assert_snapshot!(thread.heard(), @"
    *Start “Math Hints”?*
    *Status*  inactive → *enrolling (running)*
    *Context*  `assign-prog`
    *Conditions*  control 50%, variant 50%
    *Decision points*  SelectSection / absolute_value_plot_equality
    *Enrolled*  nobody
    *Same points*  no other live experiment
    Asked by @ana · anyone in this channel may decide · until ‹time› · digest `‹id›`
    [Start experiment] [Don't start]
    ");
    thread.clicks("ana", "Start experiment").await;
    assert_snapshot!(thread.heard(), @"
    *Start “Math Hints”?*
    *Status*  inactive → *enrolling (running)*
    *Context*  `assign-prog`
    *Conditions*  control 50%, variant 50%
    *Decision points*  SelectSection / absolute_value_plot_equality
    *Enrolled*  nobody
    *Same points*  no other live experiment
    Approved by @ana · ‹time›
    ✅ Started “Math Hints”: it is enrolling now.
    digest `‹id›`
    ---
    @ana “*Math Hints*”: done. What next?
    [Undo: stop it again] [Show details]
    ");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_listens_in_its_own_threads_and_nowhere_else() {
    let bot = TestBot::start().await;
    let mut elsewhere = bot.user("ana").says_in("experiments", "shall we start Math Hints?").await;
    elsewhere.says("bo", "yes").await;
    elsewhere.says("bo", "start Math Hints").await;
    assert_eq!(elsewhere.heard(), "", "talk to somebody else");

    elsewhere.says("ana", "@countersign is UpGrade running?").await;
    assert!(elsewhere.heard().contains("6.5.0"), "a mention opens it");
    assert_eq!(elsewhere.messages().len(), 1, "what was said before was for somebody else");
    elsewhere.says("bo", "list experiments").await;
    assert!(elsewhere.heard().contains("6 experiments"), "no mention is needed any more");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_does_not_answer_itself() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").says("list experiments").await;
    thread.says("ana", "start Math Hints").await;
    thread.clicks("ana", "Start experiment").await;
    thread.heard();
    let deliveries = bot.slack.recorded().deliveries;
    let of_ours = |kind: &str| deliveries.iter().filter(|d| d.payload["event"]["subtype"] == kind).count();
    assert!(of_ours("message_changed") > 0, "edits of our own messages are delivered to us");
    assert_eq!(thread.messages().len(), 3, "a table, a record, a reply");
    bot.finish().await;
}
