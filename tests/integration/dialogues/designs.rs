//! Designs beyond a plain comparison: factors whose levels are combined, and draws that go by a factor of the people.

use std::time::Duration;

use countersign::experiments::upgrade::{UpgradeConfig, client::UpgradeClient, sign_in::SignIn};
use insta::assert_snapshot;
use serde_json::json;

use crate::support::bot::TestBot;

#[tokio::test(flavor = "multi_thread")]
async fn a_factorial_experiment_in_one_breath() {
    let (_bot, mut thread) = TestBot::asked("ana", "create a factorial experiment Foo in mathstream with factors hints: none, text=Read this; feedback: later, now").await;
    assert_snapshot!(thread.answer("ana", "lesson-stream/question-hint").await, @"
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
    ‹each person by themselves, for good›
    *Of 1,000 new users*  about 252 hints=none; feedback=later, 245 hints=none; feedback=now, 246 hints=text; feedback=later, 257 hints=text; feedback=now
    *Same points*  no other live experiment
    Simulated with the platform's own draw. Chance moves each number: 19 times in 20 by at most 27.
    ‹the rest by default, inactive at first, for anyone to decide›
    ");
    thread.clicked("ana", "Create experiment").await;
    assert_snapshot!(thread.answer("ana", "show Foo in detail").await, @"
    Foo
    *Status*
    inactive
    *Context*
    `mathstream`
    ‹nobody is enrolled yet; each person by themselves, for good›
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
}

#[tokio::test(flavor = "multi_thread")]
async fn factors_are_asked_for_and_checked() {
    let (bot, mut thread) =
        TestBot::hears("ana", "create a factorial experiment Foo in assign-prog at SelectProblem/fraction_intro").await;
    assert_snapshot!(thread.heard(), @"
    Which factors does it vary, and which levels has each? For example hints: none, text; feedback: now, later.
    So far: “Foo” in assign-prog, at SelectProblem / fraction_intro.
    [Fill in a form]
    ");
    assert_snapshot!(thread.answer("ana", "hints: none, text").await, @"
    A factorial design combines two factors or more; “*hints*” alone is a plain comparison.
    Name a second factor, or give its levels as conditions of an ordinary experiment.
    ");
    assert_snapshot!(thread.answer("ana", "factors hints: none, text; feedback: now").await, @"
    The factor “*feedback*” needs two levels or more.
    Say the factors again, such as hints: none, text; feedback: now, later.
    ");
    assert_snapshot!(thread.answer("ana", "factors hints: none, text; feedback: now, later").await, @"
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
    ‹each person by themselves, for good›
    *Of 1,000 new users*  about 252 hints=none; feedback=now, 245 hints=none; feedback=later, 246 hints=text; feedback=now, 257 hints=text; feedback=later
    *Same points*  no other live experiment
    Simulated with the platform's own draw. Chance moves each number: 19 times in 20 by at most 27.
    ‹the rest by default, inactive at first, for anyone to decide›
    ");
    assert_snapshot!(thread.answer("ana", "no, weights 40/20/20/20").await, @"
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
    ‹each person by themselves, for good›
    *Of 1,000 new users*  about 402 hints=none; feedback=now, 193 hints=none; feedback=later, 199 hints=text; feedback=now, 206 hints=text; feedback=later
    *Same points*  no other live experiment
    Simulated with the platform's own draw. Chance moves each number: 19 times in 20 by at most 31.
    Filled in by default: Assigned, Consistency, Afterwards, People on no list.
    It will be inactive until somebody starts it.
    Takes the place of the open card: Create “Foo”.
    ‹ana asks, anyone may decide› [Create experiment] [Don't create] [Edit…] [Show all]
    ");
    thread.clicked("ana", "Create experiment").await;
    let made = bot.upgrade.experiment("Foo").unwrap();
    assert_eq!((&made["type"], &made["factors"][1]["levels"][1]["name"]), (&json!("Factorial"), &json!("later")));
    let last = &made["conditions"][3];
    assert_eq!(last["levelCombinationElements"][0]["level"]["name"], "text");
    assert_eq!(last["assignmentWeight"], 20);

    assert_snapshot!(thread.answer("ana", "show Foo").await, @"
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
    ‹nobody is enrolled yet; each person by themselves, for good›
    Id `‹id›`
    [Start] [In detail]
    ");
    assert_snapshot!(thread.answer("ana", "show Foo in detail").await, @"
    Foo
    *Status*
    inactive
    *Context*
    `assign-prog`
    ‹nobody is enrolled yet; each person by themselves, for good›
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
    assert_snapshot!(thread.answer("ana", "set the weights of Foo to 10/20/30/40").await, @"
    *Change the weights of “Foo”?*
    *Conditions*  hints=none; feedback=now 40%, hints=none; feedback=later 20%, hints=text; feedback=now 20%, hints=text; feedback=later 20% → *hints=none; feedback=now 10%, hints=none; feedback=later 20%, hints=text; feedback=now 30%, hints=text; feedback=later 40%*
    *Of 1,000 new users*  about 402 hints=none; feedback=now, 193 hints=none; feedback=later, 199 hints=text; feedback=now, 206 hints=text; feedback=later → *about 100 hints=none; feedback=now, 200 hints=none; feedback=later, 294 hints=text; feedback=now, 406 hints=text; feedback=later*
    ‹nobody is enrolled, and nobody else is at the point›
    It is inactive in assign-prog.
    Simulated with the platform's own draw. Chance moves each number: 19 times in 20 by at most 31.
    ‹ana asks, anyone may decide› [Update experiment] [Don't update] [Edit…] [Show all]
    ");
    thread.clicked("ana", "Update experiment").await;
    let now = bot.upgrade.experiment("Foo").unwrap();
    assert_eq!(now["conditions"][0]["assignmentWeight"], 10);
    assert_eq!(now["conditions"][3]["levelCombinationElements"], last["levelCombinationElements"]);
    assert_snapshot!(thread.answer("ana", "set the conditions of Foo to control, variant").await, @"
    “*Foo*” is factorial: its conditions are combinations of its factors, and “*control*” is none of these: hints=none; feedback=now, hints=none; feedback=later, hints=text; feedback=now, hints=text; feedback=later.
    I can change weights and leave combinations out, but not add any.
    ");

    thread.says("ana", "start Foo").await;
    thread.skip();
    thread.clicked("ana", "Start experiment").await;
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
    thread.clicked("ana", "Create experiment").await;
    assert_eq!(bot.upgrade.experiment("Foo").unwrap()["stratificationFactor"]["stratificationFactorName"], "grade");
    assert_snapshot!(thread.answer("ana", "update Foo with algorithm random").await, @"
    “*Foo*” draws by a factor of the participants, and I leave that as it is.
    Change it in UpGrade itself, or create a new experiment.
    ");
    thread.says("ana", "show Foo").await;
    let shown = thread.heard();
    assert!(shown.contains("stratified random sampling, by grade"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_start_of_what_is_scheduled_can_be_moved() {
    let (bot, mut thread) = TestBot::asked("ana", "schedule Math Hints for 2099-01-15 09:00").await;
    thread.clicked("ana", "Schedule experiment").await;
    assert_snapshot!(thread.answer("ana", "move the start of Math Hints to 2099-02-01 at 10:00").await, @"
    *Move the start of “Math Hints”?*
    *Status*  scheduled
    *Context*  `assign-prog`
    *Starts*  2099-01-15 09:00 UTC → 2099-02-01 10:00 UTC
    *Conditions*  control 50%, variant 50%
    *Decision points*  SelectSection / absolute_value_plot_equality
    ‹nobody is enrolled, and nobody else is at the point›
    UpGrade starts it by itself, where its scheduler is set up.
    ‹ana asks, anyone may decide› [Move the start] [Don't move it] [Edit…] [Show all]
    ");
    assert_snapshot!(thread.outcome("ana", "Move the start").await, @"
    *Move the start of “Math Hints”?* ⋯
    Approved by @ana · ‹time›
    ✅ Moved the start of “Math Hints” to 2099-02-01 10:00 UTC.
    [Undo: back to the earlier date]
    ---
    @ana “*Math Hints*”: done. What next?
    [Show details]
    ");
    assert_eq!(bot.upgrade.experiment("Math Hints").unwrap()["startOn"], "2099-02-01T10:00:00.000Z");
    assert_snapshot!(thread.answer("ana", "set the end date of Math Hints to 2099-01-20").await, @"
    It would end before it starts.
    Say the dates again.
    ");
    assert_snapshot!(thread.answer("ana", "move the start of Math Hints to 2020-01-01").await, @"2020-01-01 00:00 UTC is over. It has to be a moment to come.");
}
