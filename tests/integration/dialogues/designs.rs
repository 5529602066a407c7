//! Designs beyond a plain comparison: factors whose levels are combined, and draws that go by a factor of the people.

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
    ‹individual, for good›
    *Of 1,000 new users*  about 252 hints=none; feedback=later, 245 hints=none; feedback=now, 246 hints=text; feedback=later, 257 hints=text; feedback=now
    *Overlapping experiments*  none
    Simulated with UpGrade's own assignment. 95% of the time, each count lands within ±27.
    ‹the rest by default, inactive at first, for anyone to decide›
    ");
    thread.clicked("ana", "Create experiment").await;
    assert_snapshot!(thread.answer("ana", "show Foo in detail").await, @"
    Foo
    *Status*
    inactive
    *Context*
    `mathstream`
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
    ID `‹id›`
    [Start] [As JSON]
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn factors_are_asked_for_and_checked() {
    let (bot, mut thread) =
        TestBot::hears("ana", "create a factorial experiment Foo in assign-prog at SelectProblem/fraction_intro").await;
    assert_snapshot!(thread.heard(), @"
    Which factors does it vary, and which levels does each have? For example hints: none, text; feedback: now, later.
    So far: “Foo” in assign-prog, at SelectProblem / fraction_intro.
    [Fill in a form]
    ");
    assert_snapshot!(thread.answer("ana", "hints: none, text").await, @"
    A factorial design combines two factors or more; “*hints*” alone is a plain comparison.
    Name a second factor, or give its levels as conditions of an ordinary experiment.
    ");
    assert_snapshot!(thread.answer("ana", "factors hints: none, text; feedback: now").await, @"
    The factor “*feedback*” needs two levels or more.
    Give the factors again, for example hints: none, text; feedback: now, later.
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
    ‹individual, for good›
    *Of 1,000 new users*  about 252 hints=none; feedback=now, 245 hints=none; feedback=later, 246 hints=text; feedback=now, 257 hints=text; feedback=later
    *Overlapping experiments*  none
    Simulated with UpGrade's own assignment. 95% of the time, each count lands within ±27.
    ‹the rest by default, inactive at first, for anyone to decide›
    ");
    assert_snapshot!(thread.answer("ana", "no, weights 40/20/20/20").await, @"
    *Create “Foo”*
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
    ‹individual, for good›
    *Of 1,000 new users*  about 402 hints=none; feedback=now, 193 hints=none; feedback=later, 199 hints=text; feedback=now, 206 hints=text; feedback=later
    *Overlapping experiments*  none
    Simulated with UpGrade's own assignment. 95% of the time, each count lands within ±31.
    Defaults used: Assignment, Consistency, After enrollment ends, Users on no list.
    It stays inactive until someone starts it.
    Replaces the open card: Create “Foo”.
    ‹ana asks, anyone may decide› [Create experiment] [Reject…] [Withdraw] [Edit…] [Show all]
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
    ID `‹id›`
    [Start] [In detail]
    ");
    assert_snapshot!(thread.answer("ana", "show Foo in detail").await, @"
    Foo
    *Status*
    inactive
    *Context*
    `assign-prog`
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
    ID `‹id›`
    Fetched less than a minute ago.
    [Start] [As JSON] [Refresh]
    ");
    assert_snapshot!(thread.answer("ana", "set the weights of Foo to 10/20/30/40").await, @"
    *Change the weights of “Foo”?*
    *Conditions*  hints=none; feedback=now 40%, hints=none; feedback=later 20%, hints=text; feedback=now 20%, hints=text; feedback=later 20% → *hints=none; feedback=now 10%, hints=none; feedback=later 20%, hints=text; feedback=now 30%, hints=text; feedback=later 40%*
    *Of 1,000 new users*  about 402 hints=none; feedback=now, 193 hints=none; feedback=later, 199 hints=text; feedback=now, 206 hints=text; feedback=later → *about 100 hints=none; feedback=now, 200 hints=none; feedback=later, 294 hints=text; feedback=now, 406 hints=text; feedback=later*
    ‹nobody is enrolled, and nobody else is at the point›
    It is inactive in assign-prog.
    Simulated with UpGrade's own assignment. 95% of the time, each count lands within ±31.
    ‹ana asks, anyone may decide› [Update experiment] [Reject…] [Withdraw] [Edit…] [Show all]
    ");
    thread.clicked("ana", "Update experiment").await;
    let now = bot.upgrade.experiment("Foo").unwrap();
    assert_eq!(now["conditions"][0]["assignmentWeight"], 10);
    assert_eq!(now["conditions"][3]["levelCombinationElements"], last["levelCombinationElements"]);
    assert_snapshot!(thread.answer("ana", "set the conditions of Foo to control, variant").await, @"
    “*Foo*” is factorial: its conditions are combinations of its factors, and “*control*” is none of these: hints=none; feedback=now, hints=none; feedback=later, hints=text; feedback=now, hints=text; feedback=later.
    I can change weights and leave out combinations, but I can't add any.
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
    *Send user “u1” through “Foo”*
    ✅ `u1` got *‹one of four›* at SelectProblem / fraction_intro in “*Foo*” and is enrolled.
    Approved by @ana · ‹time›
    Asked by @ana · digest `‹id›`
    [Show all]
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
    I can't stratify by the factor “*grade*”. I looked in UpGrade: no factor is uploaded there.
    Use random instead, or upload the factor in UpGrade first.
    ");

    bot.upgrade.has_factor("grade");
    let mut thread = bot.user("ana").says(&user_request("stratified by age")).await;
    assert_snapshot!(thread.in_short(), @"
    I can't stratify by the factor “*age*”. The uploaded factors are: grade.
    Ask again with one of these.
    ");
    let mut thread = bot.user("ana").says(&user_request("with algorithm stratified")).await;
    let card = thread.heard();
    assert!(card.contains("*Algorithm*  stratified random sampling, by grade"), "{card}");
    thread.clicked("ana", "Create experiment").await;
    assert_eq!(bot.upgrade.experiment("Foo").unwrap()["stratificationFactor"]["stratificationFactorName"], "grade");
    assert_snapshot!(thread.answer("ana", "update Foo with algorithm random").await, @"
    “*Foo*” uses stratified sampling, which I can't change.
    Change it in UpGrade, or create a new experiment.
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
    UpGrade starts it automatically if its scheduler is enabled.
    ‹ana asks, anyone may decide› [Move the start] [Reject…] [Withdraw] [Edit…] [Show all]
    ");
    assert_snapshot!(thread.outcome("ana", "Move the start").await, @"
    ✅ *Moved the start of “Math Hints” to 2099-02-01 10:00 UTC.*
    Approved by @ana · ‹time›
    *Starts*  2099-01-15 09:00 UTC → 2099-02-01 10:00 UTC
    Asked by @ana · digest `‹id›`
    [Undo: restore earlier date] [Show all]
    ---
    @ana Moved the start of “Math Hints” to 2099-02-01 10:00 UTC. What next?
    [Show details]
    ");
    assert_eq!(bot.upgrade.experiment("Math Hints").unwrap()["startOn"], "2099-02-01T10:00:00.000Z");
    assert_snapshot!(thread.answer("ana", "set the end date of Math Hints to 2099-01-20").await, @"
    The end date is before the start date.
    Give both dates again.
    ");
    assert_snapshot!(thread.answer("ana", "move the start of Math Hints to 2020-01-01").await, @"2020-01-01 00:00 UTC is in the past. Give a time in the future.");
}
