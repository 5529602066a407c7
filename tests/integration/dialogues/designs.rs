//! Designs beyond a plain comparison: factors whose levels are combined, and draws that go by a factor of the people.

use std::time::Duration;

use countersign::experiments::upgrade::{UpgradeConfig, client::UpgradeClient, sign_in::SignIn};
use insta::assert_snapshot;
use serde_json::json;

use crate::support::bot::TestBot;

#[tokio::test(flavor = "multi_thread")]
async fn a_factorial_experiment_in_one_breath() {
    let bot = TestBot::start().await;
    let mut thread = bot
        .user("ana")
        .asks(
            "create a factorial experiment Foo in mathstream with factors hints: none, text=Read this; feedback: later, now",
        )
        .await;
    thread.says("ana", "lesson-stream/question-hint").await;
    assert_snapshot!(thread.in_short(), @"
    *Create “Foo”?*
    *Name*  *Foo*
    *Context*  `mathstream`
    *Factor hints*  none, text “Read this”
    *Factor feedback*  later, now
    *Conditions*  all 4 combinations
    *hints=none; feedback=later*  25%
    *hints=none; feedback=now*  25%
    *hints=text; feedback=later*  25%
    *hints=text; feedback=now*  25%
    *Decision points*  lesson-stream / question-hint
    *Assigned*  each person by themselves
    *Consistency*  individual
    *Afterwards*  everyone keeps their condition
    *People on no list*  take part
    *Of 1,000 new users*  about 252 hints=none; feedback=later, 245 hints=none; feedback=now, 246 hints=text; feedback=later, 257 hints=text; feedback=now
    *Same points*  no other live experiment
    Simulated with the platform's own draw. Chance moves each number: 19 times in 20 by at most 27.
    Filled in by default: Assigned, Consistency, Afterwards, People on no list.
    It will be inactive until somebody starts it.
    Asked by @ana · anyone in this channel may decide · until ‹time› · digest `‹id›`
    [Create experiment] [Don't create] [Edit…] [Show all]
    ");
    thread.clicks("ana", "Create experiment").await;
    thread.skip();
    thread.says("ana", "show Foo in detail").await;
    assert_snapshot!(thread.in_short(), @"
    Foo
    *Status*
    inactive
    *Context*
    `mathstream`
    *Assigned*
    each person by themselves
    *Afterwards*
    everyone keeps their condition
    *People on no list*
    take part
    *Consistency*
    individual
    *Enrolled*
    nobody
    *Created*
    ‹time›
    *Last changed*
    ‹time›
    • Factor *hints*: `none`, `text` (payload `Read this`)
    • Factor *feedback*: `later`, `now`
    Condition | Weight | Enrolled
    hints=none; feedback=later | 25% | 0
    hints=none; feedback=now | 25% | 0
    hints=text; feedback=later | 25% | 0
    hints=text; feedback=now | 25% | 0
    Decision points:
    • `lesson-stream / question-hint`
    Id `‹id›`
    [Start] [As JSON]
    ");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn factors_are_asked_for_and_checked() {
    let bot = TestBot::start().await;
    let mut thread =
        bot.user("ana").says("create a factorial experiment Foo in assign-prog at SelectProblem/fraction_intro").await;
    assert_snapshot!(thread.heard(), @"Which factors does it vary, and which levels has each? For example hints: none, text; feedback: now, later.");
    thread.says("ana", "hints: none, text").await;
    assert_snapshot!(thread.in_short(), @"
    A factorial design combines two factors or more; “*hints*” alone is a plain comparison.
    Name a second factor, or give its levels as conditions of an ordinary experiment.
    ");
    thread.says("ana", "factors hints: none, text; feedback: now").await;
    assert_snapshot!(thread.in_short(), @"
    The factor “*feedback*” needs two levels or more.
    Say the factors again, such as hints: none, text; feedback: now, later.
    ");
    thread.says("ana", "factors hints: none, text; feedback: now, later").await;
    assert_snapshot!(thread.in_short(), @"
    *Create “Foo”?*
    *Name*  *Foo*
    *Context*  `assign-prog`
    *Factor hints*  none, text
    *Factor feedback*  now, later
    *Conditions*  all 4 combinations
    *hints=none; feedback=now*  25%
    *hints=none; feedback=later*  25%
    *hints=text; feedback=now*  25%
    *hints=text; feedback=later*  25%
    *Decision points*  SelectProblem / fraction_intro
    *Assigned*  each person by themselves
    *Consistency*  individual
    *Afterwards*  everyone keeps their condition
    *People on no list*  take part
    *Of 1,000 new users*  about 252 hints=none; feedback=now, 245 hints=none; feedback=later, 246 hints=text; feedback=now, 257 hints=text; feedback=later
    *Same points*  no other live experiment
    Simulated with the platform's own draw. Chance moves each number: 19 times in 20 by at most 27.
    Filled in by default: Assigned, Consistency, Afterwards, People on no list.
    It will be inactive until somebody starts it.
    Asked by @ana · anyone in this channel may decide · until ‹time› · digest `‹id›`
    [Create experiment] [Don't create] [Edit…] [Show all]
    ");
    thread.says("ana", "no, weights 40/20/20/20").await;
    assert_snapshot!(thread.in_short(), @"
    *Create “Foo”?*
    Replaced by a newer request · ‹time› · ‹the newer card›
    [Show all]
    ---
    *Create “Foo”?*
    *Name*  *Foo*
    *Context*  `assign-prog`
    *Factor hints*  none, text
    *Factor feedback*  now, later
    *Conditions*  all 4 combinations
    *hints=none; feedback=now*  40%
    *hints=none; feedback=later*  20%
    *hints=text; feedback=now*  20%
    *hints=text; feedback=later*  20%
    *Decision points*  SelectProblem / fraction_intro
    *Assigned*  each person by themselves
    *Consistency*  individual
    *Afterwards*  everyone keeps their condition
    *People on no list*  take part
    *Of 1,000 new users*  about 402 hints=none; feedback=now, 193 hints=none; feedback=later, 199 hints=text; feedback=now, 206 hints=text; feedback=later
    *Same points*  no other live experiment
    Simulated with the platform's own draw. Chance moves each number: 19 times in 20 by at most 31.
    Filled in by default: Assigned, Consistency, Afterwards, People on no list.
    It will be inactive until somebody starts it.
    Takes the place of the open card: Create “Foo”.
    Asked by @ana · anyone in this channel may decide · until ‹time› · digest `‹id›`
    [Create experiment] [Don't create] [Edit…] [Show all]
    ");
    thread.clicks("ana", "Create experiment").await;
    thread.skip();
    let made = bot.upgrade.experiment("Foo").unwrap();
    assert_eq!((&made["type"], &made["factors"][1]["levels"][1]["name"]), (&json!("Factorial"), &json!("later")));
    let last = &made["conditions"][3];
    assert_eq!(last["levelCombinationElements"][0]["level"]["name"], "text");
    assert_eq!(last["assignmentWeight"], 20);

    thread.says("ana", "show Foo").await;
    assert_snapshot!(thread.in_short(), @"
    Foo
    *Status*
    inactive
    *Context*
    `assign-prog`
    *Factors*
    hints (none, text) × feedback (now, later)
    *Conditions*
    hints=none; feedback=now 40% (0 enrolled), hints=none; feedback=later 20% (0 enrolled), hints=text; feedback=now 20% (0 enrolled), hints=text; feedback=later 20% (0 enrolled)
    *Decision points*
    SelectProblem / fraction_intro
    *Assigned*
    each person by themselves
    *Afterwards*
    everyone keeps their condition
    *People on no list*
    take part
    *Consistency*
    individual
    *Enrolled*
    nobody
    Id `‹id›`
    [Start] [In detail]
    ");
    thread.says("ana", "show Foo in detail").await;
    assert_snapshot!(thread.in_short(), @"
    Foo
    *Status*
    inactive
    *Context*
    `assign-prog`
    *Assigned*
    each person by themselves
    *Afterwards*
    everyone keeps their condition
    *People on no list*
    take part
    *Consistency*
    individual
    *Enrolled*
    nobody
    *Created*
    ‹time›
    *Last changed*
    ‹time›
    • Factor *hints*: `none`, `text`
    • Factor *feedback*: `now`, `later`
    Condition | Weight | Enrolled
    hints=none; feedback=now | 40% | 0
    hints=none; feedback=later | 20% | 0
    hints=text; feedback=now | 20% | 0
    hints=text; feedback=later | 20% | 0
    Decision points:
    • `SelectProblem / fraction_intro`
    Id `‹id›`
    I read this less than a minute ago.
    [Start] [As JSON] [Look again]
    ");
    thread.says("ana", "set the weights of Foo to 10/20/30/40").await;
    assert_snapshot!(thread.in_short(), @"
    *Change the weights of “Foo”?*
    *Conditions*  hints=none; feedback=now 40%, hints=none; feedback=later 20%, hints=text; feedback=now 20%, hints=text; feedback=later 20% → *hints=none; feedback=now 10%, hints=none; feedback=later 20%, hints=text; feedback=now 30%, hints=text; feedback=later 40%*
    *Of 1,000 new users*  about 402 hints=none; feedback=now, 193 hints=none; feedback=later, 199 hints=text; feedback=now, 206 hints=text; feedback=later → *about 100 hints=none; feedback=now, 200 hints=none; feedback=later, 294 hints=text; feedback=now, 406 hints=text; feedback=later*
    *Enrolled*  nobody
    *Same points*  no other live experiment
    It is inactive in assign-prog.
    Simulated with the platform's own draw. Chance moves each number: 19 times in 20 by at most 31.
    Asked by @ana · anyone in this channel may decide · until ‹time› · digest `‹id›`
    [Update experiment] [Don't update] [Edit…] [Show all]
    ");
    thread.clicks("ana", "Update experiment").await;
    thread.skip();
    let now = bot.upgrade.experiment("Foo").unwrap();
    assert_eq!(now["conditions"][0]["assignmentWeight"], 10);
    assert_eq!(now["conditions"][3]["levelCombinationElements"], last["levelCombinationElements"]);
    thread.says("ana", "set the conditions of Foo to control, variant").await;
    assert_snapshot!(thread.in_short(), @"
    “*Foo*” is factorial: its conditions are combinations of its factors, and “*control*” is none of these: hints=none; feedback=now, hints=none; feedback=later, hints=text; feedback=now, hints=text; feedback=later.
    I can change weights and leave combinations out, but not add any.
    ");

    thread.says("ana", "start Foo").await;
    thread.skip();
    thread.clicks("ana", "Start experiment").await;
    thread.skip();
    thread.says("ana", "simulate user u1 in Foo").await;
    thread.skip();
    thread.clicks("ana", "Simulate visit").await;
    // Which of the four it is hangs on the id, which is another in each run.
    let mut heard = thread.heard();
    for code in ["none; feedback=now", "none; feedback=later", "text; feedback=now", "text; feedback=later"] {
        heard = heard.replace(&format!("hints={code}"), "‹one of four›");
    }
    assert_snapshot!(heard, @"
    *Send user “u1” through “Foo”?*
    *User*  `u1`
    *Experiment*  *Foo* (enrolling (running), assign-prog)
    *At*  SelectProblem / fraction_intro
    *Steps*  introduce the user, ask for the condition, record the visit
    ⚠️ The visit enrols the user, and the platform cannot take that back.
    Approved by @ana · ‹time›
    ✅ `u1` got *‹one of four›* at SelectProblem / fraction_intro in “*Foo*” and is enrolled.
    Asked by @ana · digest `‹id›`
    ---
    @ana `u1` got *‹one of four›* at SelectProblem / fraction_intro in “*Foo*” and is enrolled.
    [Show details]
    ");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stratified_draw_goes_by_a_factor_that_is_known() {
    let bot = TestBot::start().await;
    let user_request = |more: &str| format!("create experiment Foo in livehint-ai at chat/chat-tone, {more}");
    let mut thread = bot.user("ana").says(&user_request("stratified by grade")).await;
    assert_snapshot!(thread.in_short(), @"
    I cannot draw by the factor “*grade*”. UpGrade does not tell which factors were uploaded, so I only take one that another experiment draws by, and none does yet.
    Say random instead, or set up the first one in UpGrade itself.
    ");

    bot.upgrade.has_factor("grade");
    let settings = UpgradeConfig {
        base_url: bot.upgrade.url().parse().unwrap(),
        sign_in: SignIn::Nobody,
        timeout: Duration::from_secs(5),
    };
    let body = json!({
        "name": "By Grade", "context": ["livehint-ai"], "state": "inactive", "consistencyRule": "individual",
        "assignmentUnit": "individual", "postExperimentRule": "continue", "tags": [], "filterMode": "includeAll",
        "type": "Simple", "conditions": [], "partitions": [], "assignmentAlgorithm": "stratified random sampling",
        "stratificationFactor": { "stratificationFactorName": "grade" },
    });
    UpgradeClient::new(settings).unwrap().create(&body).await.unwrap();
    let mut thread = bot.user("ana").says(&user_request("stratified by age")).await;
    assert_snapshot!(thread.in_short(), @"
    I cannot draw by the factor “*age*”. UpGrade does not tell which factors were uploaded, so I only take one that another experiment draws by: grade.
    Say it again with one of these.
    ");
    let mut thread = bot.user("ana").says(&user_request("with algorithm stratified")).await;
    let card = thread.heard();
    assert!(card.contains("*Drawn by*  stratified random sampling, by grade"), "{card}");
    thread.clicks("ana", "Create experiment").await;
    thread.skip();
    assert_eq!(bot.upgrade.experiment("Foo").unwrap()["stratificationFactor"]["stratificationFactorName"], "grade");
    thread.says("ana", "update Foo with algorithm random").await;
    assert_snapshot!(thread.in_short(), @"
    “*Foo*” draws by a factor of the participants, and I leave that as it is.
    Change it in UpGrade itself, or create a new experiment.
    ");
    thread.says("ana", "show Foo").await;
    let shown = thread.heard();
    assert!(shown.contains("stratified random sampling, by grade"), "{shown}");
    bot.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_start_of_what_is_scheduled_can_be_moved() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").asks("schedule Math Hints for 2099-01-15 09:00").await;
    thread.clicks("ana", "Schedule experiment").await;
    thread.skip();
    thread.says("ana", "move the start of Math Hints to 2099-02-01 at 10:00").await;
    assert_snapshot!(thread.in_short(), @"
    *Move the start of “Math Hints”?*
    *Status*  scheduled
    *Context*  `assign-prog`
    *Starts*  2099-01-15 09:00 UTC → *2099-02-01 10:00 UTC*
    *Conditions*  control 50%, variant 50%
    *Decision points*  SelectSection / absolute_value_plot_equality
    *Enrolled*  nobody
    *Same points*  no other live experiment
    UpGrade starts it by itself, where its scheduler is set up.
    Asked by @ana · anyone in this channel may decide · until ‹time› · digest `‹id›`
    [Move the start] [Don't move it] [Edit…] [Show all]
    ");
    thread.clicks("ana", "Move the start").await;
    assert_snapshot!(thread.in_short(), @"
    *Move the start of “Math Hints”?* ⋯
    Approved by @ana · ‹time›
    ✅ Moved the start of “Math Hints” to 2099-02-01 10:00 UTC.
    [Undo: back to the earlier date]
    ---
    @ana “*Math Hints*”: done. What next?
    [Show details]
    ");
    assert_eq!(bot.upgrade.experiment("Math Hints").unwrap()["startOn"], "2099-02-01T10:00:00.000Z");
    thread.says("ana", "set the end date of Math Hints to 2099-01-20").await;
    assert_snapshot!(thread.in_short(), @"
    It would end before it starts.
    Say the dates again.
    ");
    thread.says("ana", "move the start of Math Hints to 2020-01-01").await;
    assert_snapshot!(thread.heard(), @"2020-01-01 00:00 UTC is over. It has to be a moment to come.");
    bot.finish().await;
}
