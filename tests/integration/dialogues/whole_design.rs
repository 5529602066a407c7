//! Everything an experiment can be: payloads, order, endings, lists.

use insta::assert_snapshot;

use crate::support::bot::TestBot;

/// What named people draw hangs on the id of the experiment, which is a new one each time.
fn without_the_draw(heard: &str) -> String {
    let lines = heard.lines().map(|line| match line.split_once("users named*  ") {
        Some((before, drawn)) => {
            assert!(drawn.contains("tutor-a") && drawn.contains("tutor-b"), "{drawn}");
            format!("{before}users named*  ‹their draw›")
        }
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rich_design_is_created_in_one_go() {
    let bot = TestBot::start().await;
    let mut thread = bot
        .user("ana")
        .says(
            "create experiment Tutor Trial in livehint-ai at chat/chat-tone with conditions tutor-a, tutor-b, \
             weights 60/40, exclude if reached, payloads tutor-a=calm and tutor-b=lively, ending after 100 users, \
             post rule assign tutor-a, inclusion list u1, u2, class 5B, exclusion list u9, \
             filter mode excludeAll, tags tutor, 2026",
        )
        .await;
    assert_snapshot!(without_the_draw(&thread.in_short()), @"
    *Create “Tutor Trial”?*
    *Name*  *Tutor Trial*
    *Context*  `livehint-ai`
    *Conditions*  tutor-a 60%, tutor-b 40%
    *Payloads*  tutor-a “calm”, tutor-b “lively”
    *Decision points*  chat / chat-tone (excludes users who were there before the start)
    *Assignment*  individual
    *Consistency*  individual
    *Enrollment ends*  automatically after 100 users
    *After enrollment ends*  enrolled users get tutor-a
    *Users on no list*  excluded
    *Inclusion list*  u1, u2, classId 5B
    *Exclusion list*  u9
    *Tags*  tutor, 2026
    *Of the 2 users named*  ‹their draw›
    *Overlapping experiments*  none
    Only users on the inclusion list are included; their conditions are computed from their IDs. Members of the groups on the list are added to that and split by the weights. Users who reached its decision points before the start get no condition.
    Defaults used: Assignment, Consistency.
    It stays inactive until someone starts it.
    ‹ana asks, anyone may decide› [Create experiment] [Reject…] [Withdraw] [Edit…] [Show all]
    ");
    thread.clicks("ana", "Create experiment").await;
    assert_snapshot!(without_the_draw(&thread.in_short()), @"
    ✅ *Created “Tutor Trial”. It stays inactive until someone starts it.*
    Approved by @ana · ‹time›
    Asked by @ana · digest `‹id›`
    [Undo: delete experiment] [Show all]
    ---
    @ana Created “Tutor Trial”. It stays inactive until someone starts it. What next?
    [Start experiment] [Show details]
    ");
    let made = bot.upgrade.experiment("Tutor Trial").unwrap();
    assert_eq!(made["postExperimentRule"], "assign");
    assert_eq!(made["revertTo"], made["conditions"][0]["id"]);
    assert_eq!(made["partitions"][0]["excludeIfReached"], true);
    assert_eq!(made["enrollmentCompleteCondition"]["userCount"], 100);
    assert_eq!(made["conditionPayloads"][1]["payload"]["value"], "lively");
    let sent = bot.upgrade.effects().len();
    assert_eq!(sent, 5, "created, its rule set, two lists of those who take part, one of those who do not");
}

#[tokio::test(flavor = "multi_thread")]
async fn within_subjects_has_an_order_and_no_consistency() {
    let (bot, mut thread) = TestBot::hears(
        "ana",
        "create experiment Tour in mathstream at lesson-quiz/lesson-video within subjects, ordered round robin",
    )
    .await;
    assert_snapshot!(thread.in_short(), @"
    *Create “Tour”?*
    *Name*  *Tour*
    *Context*  `mathstream`
    *Conditions*  control 50%, question-hint-default 50%
    *Decision points*  lesson-quiz / lesson-video
    *Assignment*  within subjects
    *Order of conditions*  ordered round robin
    *After enrollment ends*  enrolled users keep their condition
    *Users on no list*  included
    *Expected split*  none: each user gets every condition, in turn, from the first
    *Overlapping experiments*  none
    Defaults used: Conditions (the first of mathstream), After enrollment ends, Users on no list.
    It stays inactive until someone starts it.
    ‹ana asks, anyone may decide› [Create experiment] [Reject…] [Withdraw] [Edit…] [Show all]
    ");
    thread.clicked("ana", "Create experiment").await;
    let made = bot.upgrade.experiment("Tour").unwrap();
    assert_eq!((&made["conditionOrder"], &made["consistencyRule"]), (&"ordered round robin".into(), &().into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn people_are_put_on_lists_and_taken_off() {
    let (_bot, mut thread) = TestBot::hears("ana", "add u1, u2 to the inclusion list of Math Hints").await;
    assert_snapshot!(thread.in_short(), @"
    *Change the inclusion list of “Math Hints”?*
    *Inclusion list*  nobody → *u1, u2*
    ‹nobody is enrolled, and nobody else is at the point›
    ⚠️ Users on no list are included too, so the inclusion list only matters for users whose group is excluded.
    ‹an update of an inactive experiment, for anyone to decide›
    ");
    thread.clicked("ana", "Update experiment").await;
    assert_snapshot!(thread.answer("ana", "exclude class 5B from Math Hints").await, @"
    *Change the exclusion list of “Math Hints”?*
    *Exclusion list*  nobody → *classId 5B*
    ‹nobody is enrolled, and nobody else is at the point›
    ‹an update of an inactive experiment, for anyone to decide›
    ");
    thread.clicked("ana", "Update experiment").await;
    assert_snapshot!(thread.answer("ana", "remove u1 from the inclusion list of Math Hints").await, @"
    *Change the inclusion list of “Math Hints”?*
    *Inclusion list*  u1, u2 → *u2*
    ‹nobody is enrolled, and nobody else is at the point›
    ⚠️ Users on no list are included too, so the inclusion list only matters for users whose group is excluded.
    ‹an update of an inactive experiment, for anyone to decide›
    ");
    assert_snapshot!(thread.outcome("ana", "Update experiment").await, @"
    ✅ *Changed the inclusion list of “Math Hints”.*
    Approved by @ana · ‹time›
    *Inclusion list*  u1, u2 → *u2*
    Asked by @ana · digest `‹id›`
    [Undo: restore previous design] [Show all]
    ---
    @ana Changed the inclusion list of “Math Hints”. What next?
    [Show details]
    ");
    assert_snapshot!(thread.outcome("ana", "Undo: restore previous design").await, @"
    *Change the inclusion list of “Math Hints”?*
    *Inclusion list*  u2 → *u1, u2*
    ‹nobody is enrolled, and nobody else is at the point›
    ⚠️ Users on no list are included too, so the inclusion list only matters for users whose group is excluded.
    It is inactive in assign-prog.
    This undoes the change made ‹time›: Changed the inclusion list of “Math Hints”.
    ‹ana asks, anyone may decide› [Update experiment] [Reject…] [Withdraw] [Edit…] [Show all]
    ");
    assert_snapshot!(thread.answer("ana", "exclude team 7 from Math Hints").await, @"
    The context assign-prog has no group type “*team*”. It has: schoolId, classId, instructorId.
    Ask again with one of these.
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_done_is_refused_with_the_reason() {
    let bot = TestBot::start().await;
    let mut said = Vec::new();
    for user_request in [
        "create experiment Foo in livehint-ai at chat/chat-tone with algorithm stratified",
        "create experiment Foo in livehint-ai at chat/chat-tone with algorithm ts_configurable",
        "create experiment Foo in livehint-ai at chat/chat-tone within subjects, consistency group",
        "create experiment Foo in livehint-ai at chat/chat-tone ending on 2020-01-01",
        "create experiment Foo in livehint-ai at chat/chat-tone with payloads purple=x",
        "create experiment Foo in livehint-ai at chat/chat-tone assigned by team",
    ] {
        let mut thread = bot.user("ana").says(user_request).await;
        said.push(thread.heard());
    }
    assert_snapshot!(said.join("\n"), @"
    Stratified sampling uses a user attribute (factor), such as grade. I looked in UpGrade: no factor is uploaded there.
    Use random instead, or upload the factor in UpGrade first.
    I can't create or copy adaptive experiments, such as those with Thompson sampling. UpGrade has them where the Mooclet service is set up.
    Create it in UpGrade's own pages, or ask me for one with random or stratified assignment.
    A within-subjects experiment gives each user several conditions, so it has no consistency rule.
    Leave the rule out, or choose the unit individual or group.
    2020-01-01 23:59 UTC is in the past. Give a time in the future.
    “*Foo*” has no condition “*purple*”. It has: control, tutor-a.
    The context livehint-ai has no group type “*team*”. It has: classId.
    Ask again with one of these.
    ");
}
