//! Slash commands, their likes in threads, direct messages, and to whom the bot listens.

use std::time::Duration;

use countersign::config::{Config, ContextRule, Envelope, Rule};
use countersign_sandbox::{faults::Down, slack::ledger::Attempt};
use insta::assert_snapshot;

use crate::support::{
    bot::{TestBot, eventually},
    short::in_short,
};

#[tokio::test(flavor = "multi_thread")]
async fn the_platform_at_a_glance() {
    let bot = TestBot::start().await;
    let ana = bot.user("ana");
    assert_snapshot!(in_short(&ana.types("/upgrade status").await), @"
    UpGrade is running: *A/B Testing Backend*, version `6.5.0`.
    Fetched from UpGrade just now.
    ");
    assert_snapshot!(in_short(&ana.types("/upgrade list").await), @"
    ‹all experiments›
    Fetched from UpGrade just now.
    ");
    assert_snapshot!(in_short(&ana.types("/upgrade list running").await), @"
    ‹running experiments›
    Fetched from UpGrade just now.
    ");
    assert_snapshot!(in_short(&ana.types("/upgrade list livehint-ai").await), @"
    ‹the one of livehint-ai›
    Fetched from UpGrade just now.
    ");
    assert_snapshot!(in_short(&ana.types("/upgrade list zebra").await), @"
    No context is called “*zebra*”. Available contexts: assign-prog, livehint-ai, mathstream.
    Fetched from UpGrade just now.
    ");
    assert_snapshot!(in_short(&ana.types("/upgrade show math hints").await), @"
    Math Hints
    Worked hints when the graph of an absolute value is compared.
    *Status*
    inactive
    *Context*
    `assign-prog`
    *Conditions*
    control 50% (0 enrolled), variant 50% (0 enrolled)
    *Decision points*
    SelectSection / absolute_value_plot_equality
    *Assignment*
    individual
    *After enrollment ends*
    enrolled users keep their condition
    *Users on no list*
    included
    *Consistency*
    individual
    *Enrolled*
    0
    *Tags*
    hints, algebra
    ID `‹id›`
    Fetched from UpGrade just now.
    ");
    assert_snapshot!(ana.types("/upgrade show Maht Hints").await, @"No experiment is called “*Maht Hints*”. Did you mean “*Math Hints*”?");
    assert_snapshot!(in_short(&ana.types("/upgrade help").await), @"
    You can ask me:
    • `/upgrade status`  UpGrade's status and version
    • `/upgrade list [context or status]`  all experiments, or only those in a context or status
    • `/upgrade show &lt;name&gt;`  one experiment
    • `/upgrade watches`  your active watches
    • `/upgrade pending`  cards waiting for a decision
    • `/upgrade help`  this list
    For everything else, mention me in a channel or message me directly, in your own words. Slack doesn't allow commands in threads; mention me there with “status” or “cancel”.
    ");
    assert_eq!(ana.types("/upgrade").await, ana.types("/upgrade help").await);
    assert!(bot.slack.thread("experiments", &"0".into()).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_is_not_understood_is_answered_with_one_that_would_be() {
    let bot = TestBot::start().await;
    let ana = bot.user("ana");
    assert_snapshot!(in_short(&ana.types("/upgrade stauts").await), @"
    I don't know `/upgrade stauts`. Did you mean `/upgrade status`?
    For example: `/upgrade status`
    ");
    assert_snapshot!(in_short(&ana.types("/upgrade runs").await), @"
    I don't know `/upgrade runs`. Did you mean `/countersign runs`?
    For example: `/countersign runs`
    ");
    assert_snapshot!(in_short(&ana.types("/upgrade explode").await), @"
    I don't know `/upgrade explode`.
    Try `/upgrade help`.
    ");
    assert_snapshot!(in_short(&ana.types("/upgrade show").await), @"
    `/upgrade show` needs a name after it.
    For example: `/upgrade show Math Hints`
    ");
    assert_snapshot!(in_short(&ana.types("/countersign pending please").await), @"
    `/countersign pending` takes no arguments.
    For example: `/countersign pending`
    ");
    assert_snapshot!(in_short(&ana.types("/countersign <!channel> *x*").await), @"
    I don't know `/countersign &lt;!channel&gt;`.
    Try `/countersign help`.
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_and_what_was_done() {
    let bot = TestBot::start().await;
    let (ana, bo) = (bot.user("ana"), bot.user("bo"));
    assert_snapshot!(bo.types("/countersign pending").await, @"Nothing is waiting for a decision here, and you have no open requests elsewhere.");
    assert_snapshot!(bo.types("/countersign runs").await, @"No changes have been requested here, and you haven't requested any elsewhere.");
    assert_snapshot!(bo.types("/countersign mine").await, @"You haven't asked for any changes yet.");
    let thread = ana.says("start Math Hints").await;
    thread.says("ana", "@countersign stop Lesson Video Hints").await;
    thread.clicks("bo", "Start experiment").await;
    assert_snapshot!(in_short(&bo.types("/countersign pending").await), @"
    Waiting for a decision:
    • *Stop “Lesson Video Hints”* · asked by @ana · expires ‹time› · ‹open the card›
    As of ‹time›.
    ");
    assert_eq!(bo.types("/upgrade pending").await, bo.types("/countersign pending").await);
    assert_snapshot!(in_short(&bo.types("/countersign runs").await), @"
    Recent changes:
    • *Stop “Lesson Video Hints”* is waiting for a decision · asked by @ana ‹time› · ‹open the card›
    • *Started “Math Hints”* · asked by @ana ‹time› · ‹open the card›
    As of ‹time›.
    ");
    assert_snapshot!(in_short(&ana.types("/countersign mine").await), @"
    You asked for:
    • *Stop “Lesson Video Hints”* is waiting for a decision · asked ‹time› · ‹open the card›
    • *Started “Math Hints”* · asked ‹time› · ‹open the card›
    As of ‹time›.
    ");
    assert_snapshot!(bo.types("/countersign mine").await, @"You haven't asked for any changes yet.");
    assert_snapshot!(in_short(&bo.types("/countersign help").await), @"
    You can ask me:
    • `/countersign pending`  cards waiting for a decision
    • `/countersign runs`  recent changes and their outcomes
    • `/countersign mine`  what you asked for
    • `/countersign standing`  changes approved in advance
    • `/countersign notebook [link to a thread]`  a thread as a file
    • `/countersign settings`  who can decide what here, and the limits
    • `/countersign help`  this list
    For everything else, mention me in a channel or message me directly, in your own words. Slack doesn't allow commands in threads; mention me there with “status” or “cancel”.
    ");
    assert_snapshot!(in_short(&bo.types("/countersign settings").await), @"
    Who can decide here
    • By anyone in this channel, but not by the requester if it can't be undone: create experiment, get decision point assignments, grant standing approval, init experiment user, mark decision point, revoke standing approval, simulate user journey, test condition balance, test consistency rules, update experiment, update experiment status
    • By anyone in this channel except the requester: delete experiment
    Settings
    *Platform*
    A/B Testing Backend, version `6.5.0` (just now)
    *Language model*
    none; documented phrases only
    *A card expires after*
    24 hours
    *Time limit for a step*
    2 minutes
    *Time limit for a call to the platform*
    2 seconds
    *Threads handled at once*
    64
    These are set by the app's operator and can't be changed here.
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_leads_to_the_card() {
    let (bot, thread) = TestBot::hears("ana", "start Math Hints").await;
    bot.user("bo").types("/countersign pending").await;
    let card = thread.with_button("Start experiment");
    let told = bot.slack.ephemerals("bo");
    let expected = format!(
        "https://learning-lab.slack.com/archives/C1/p{}?thread_ts={}&amp;cid=C1|open the card",
        card.as_str().replace('.', ""),
        thread.root
    );
    assert!(told[0].words().contains(&expected), "{}", told[0].words());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_asked_for_elsewhere_is_shown_to_nobody_else() {
    let bot = TestBot::start().await;
    bot.user("ana").says("start Math Hints").await;
    bot.user("cy").writes("stop Lesson Video Hints").await;
    let everything = async |name: &'static str, channel: &'static str| {
        let person = bot.user(name);
        let pending = person.types_in(channel, "/countersign pending").await;
        let runs = person.types_in(channel, "/countersign runs").await;
        let mine = person.types_in(channel, "/countersign mine").await;
        [pending.contains("Math"), runs.contains("Math"), mine.contains("Math")]
            .into_iter()
            .chain([pending.contains("Lesson"), runs.contains("Lesson"), mine.contains("Lesson")])
            .map(|seen| if seen { 'x' } else { '.' })
            .collect::<String>()
    };
    //                                     Math Hints: pending, runs, mine; then Lesson Video Hints
    assert_eq!(everything("bo", "experiments").await, "xx....", "asked for in this channel");
    assert_eq!(everything("bo", "general").await, "......", "asked for somewhere else");
    assert_eq!(everything("ana", "general").await, "xxx...", "her own");
    assert_eq!(everything("cy", "general").await, "...xxx", "his own, in his direct messages");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_platform_that_is_away_is_said_in_a_command_too() {
    let bot = TestBot::start().await;
    let ana = bot.user("ana");
    bot.upgrade.is_down(Some(Down::Unavailable));
    assert_snapshot!(in_short(&ana.types("/upgrade status").await), @"
    UpGrade didn't answer within 2 s, so I couldn't look that up.
    Try again in a minute. If it keeps failing, contact your administrator.
    ");
    bot.upgrade.is_down(None);
    ana.types("/upgrade status").await;
    ana.types("/upgrade list livehint-ai").await;
    bot.upgrade.is_down(Some(Down::Unavailable));
    bot.clock.advance(Duration::from_secs(180));
    assert_snapshot!(in_short(&ana.types("/upgrade status").await), @"
    UpGrade isn't answering. It was running 3 min ago: *A/B Testing Backend*, version `6.5.0`.
    Try again in a minute. If it keeps failing, contact your administrator.
    ");
    assert_snapshot!(in_short(&ana.types("/upgrade list livehint-ai").await), @"
    ‹the one of livehint-ai›
    UpGrade isn't answering. This is from *3 min ago*.
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_thread_a_mention_does_what_a_command_does_elsewhere() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    thread.says("bo", "@countersign status").await;
    assert_snapshot!(thread.told("bo"), @"
    In this thread:
    • *Start “Math Hints”* · asked by @ana · expires ‹time›
    ");
    thread.says("bo", "@countersign cancel").await;
    assert_snapshot!(thread.told("bo"), @"You have no waiting requests in this thread.");
    assert_eq!(thread.heard(), "", "nothing changed");
    thread.says("ana", "@countersign stop Lesson Video Hints").await;
    thread.skip();
    thread.says("ana", "@countersign cancel!").await;
    assert_snapshot!(thread.told("ana"), @"
    Withdrawn. Nothing was changed:
    • *Stop “Lesson Video Hints”*
    • *Start “Math Hints”*
    ");
    assert!(thread.heard().contains("Withdrawn by @ana"));
    thread.says("ana", "@countersign Status?").await;
    assert_snapshot!(thread.told("ana"), @"
    Nothing is running or waiting in this thread.
    Last: *Stop “Lesson Video Hints”* was withdrawn · asked by @ana ‹time›
    ");
    assert_eq!(bot.done_to_platform(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_question_is_open_the_words_are_its_answer() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").writes("create an experiment").await;
    thread.skip();
    assert_snapshot!(thread.answer("ana", "cancel").await, @"OK, dropped. Nothing was changed.");
    assert_eq!(thread.told("ana"), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_can_be_written_to_directly() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").writes("start Math Hints").await;
    assert_snapshot!(thread.in_short(), @"
    *Start “Math Hints”?* ⋯
    Asked by @ana · anyone in this conversation can approve · expires ‹time› · digest `‹id›`
    [Start experiment] [Withdraw] [Edit…] [Show all]
    ");
    assert_snapshot!(thread.outcome("ana", "Start experiment").await, @"
    ✅ *Started “Math Hints”: it is running now.*
    Approved by @ana · ‹time›
    *Status*  inactive → *running*
    Asked by @ana · digest `‹id›`
    [Undo: stop experiment] [Show all]
    ---
    @ana Started “Math Hints”: it is running now. What next?
    [Show details]
    ");
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
    elsewhere.says("ana", "list experiments").await;
    assert!(elsewhere.heard().contains("6 experiments"), "who is alone with it needs no mention any more");
    elsewhere.says("bo", "list experiments").await;
    elsewhere.says("ana", "list experiments").await;
    assert_eq!(elsewhere.heard(), "", "several people talk with each other");
    elsewhere.says("bo", "@countersign list experiments").await;
    assert!(elsewhere.heard().contains("6 experiments"));
}

#[tokio::test(flavor = "multi_thread")]
async fn it_does_not_answer_itself() {
    let (bot, mut thread) = TestBot::hears("ana", "list experiments").await;
    thread.says("ana", "start Math Hints").await;
    thread.clicked("ana", "Start experiment").await;
    // Slack tells of the last edit after it has answered it.
    eventually("the delivery of an edit of our own message", || {
        let deliveries = bot.slack.recorded().deliveries;
        let of_edits = |attempt: &&Attempt| attempt.payload["event"]["subtype"] == "message_changed";
        deliveries.iter().find(of_edits).is_some_and(|attempt| attempt.acknowledged_after_ms.is_some())
    })
    .await;
    bot.settled().await;
    assert_eq!(thread.messages().len(), 3, "a table, a record, a reply");
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_tell_contexts_envelopes_and_who_is_brought_in() {
    let settings = |config: &mut Config| {
        let approvals = &mut config.approvals;
        approvals.escalate_to = vec!["U3".to_owned()];
        let rule = Rule { needed: Some(2), ..Rule::default() };
        let context = ContextRule {
            approvers: Some(vec!["U2".to_owned()]),
            actions: [("delete_experiment".to_owned(), rule)].into(),
            ..ContextRule::default()
        };
        approvals.contexts.insert("assign-prog".to_owned(), context);
        let pilot = Envelope {
            subjects: vec!["Math Hints".to_owned()],
            contexts: vec!["mathstream".to_owned()],
            limits: serde_json::from_value(serde_json::json!({
                "statuses": ["scheduled", "enrolling"],
                "least_weight": 10,
                "most_weight": 90,
                "earliest_start": "2027-01-15",
                "most_users": 200,
            }))
            .unwrap(),
        };
        approvals.envelopes.insert("pilot".to_owned(), pilot);
    };
    let bot = TestBot::with_settings(settings).await;
    let told = bot.user("bo").types("/countersign settings").await;
    for line in [
        "\n• By anyone in this channel, but not by the requester if it can't be undone, and after 4 hours by @cy \
         as well: create experiment",
        "\nDifferent rules in `assign-prog`:\n• By @bo, but not by the requester if it can't be undone, and",
        "\n• By @bo (but not the requester), 2 different people, and after 4 hours by @cy as well: delete experiment",
        "\nOutside these limits, two people other than the requester must approve:\n• `pilot`, for mathstream, \
         Math Hints: status scheduled, enrolling; weights from 10 % to 90 %; start from 2027-01-15; at most 200 simulated \
         users\n",
    ] {
        assert!(told.contains(line), "no {line:?} in {told}");
    }
}
