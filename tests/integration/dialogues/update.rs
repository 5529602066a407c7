//! Changes field by field, and what concerns one participant.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::bot::TestBot;

#[tokio::test(flavor = "multi_thread")]
async fn a_new_name_is_shown_before_and_after() {
    let (bot, mut thread) = TestBot::hears("ana", "rename Math Hints to Algebra Hints").await;
    assert_snapshot!(thread.in_short(), @"
    *Rename “Math Hints” to “Algebra Hints”?*
    *Name*  Math Hints → *Algebra Hints*
    ‹nobody is enrolled, and nobody else is at the point›
    ‹an update of an inactive experiment, for anyone to decide›
    ");
    assert_snapshot!(thread.outcome("bo", "Update experiment").await, @"
    ✅ *Renamed “Math Hints” to “Algebra Hints”.*
    Approved by @bo · ‹time›
    *Name*  Math Hints → *Algebra Hints*
    Asked by @ana · digest `‹id›`
    [Undo: restore previous design] [Show all]
    ---
    @ana Renamed “Math Hints” to “Algebra Hints”. Approved by bo. What next?
    [Show details]
    ");
    assert!(bot.upgrade.contains("Algebra Hints") && !bot.upgrade.contains("Math Hints"));

    thread.says("ana", "start it").await;
    assert!(thread.heard().contains("Start “Algebra Hints”?"));
}

#[tokio::test(flavor = "multi_thread")]
async fn new_weights_are_shown_condition_by_condition() {
    let (bot, mut thread) = TestBot::hears("ana", "set the weights of Lesson Video Hints to 50/25/25").await;
    assert_snapshot!(thread.in_short(), @"
    *Change the weights of “Lesson Video Hints”?*
    *Conditions*  control 34%, question-hint-default 33%, question-hint-tutorbot 33% → *control 50%, question-hint-default 25%, question-hint-tutorbot 25%*
    *Of 1,000 new users*  about 340 control, 319 question-hint-default, 341 question-hint-tutorbot → *about 496 control, 247 question-hint-default, 257 question-hint-tutorbot*
    *Enrolled*  24 users
    *Overlapping experiments*  none
    ⚠️ It is running: the 24 enrolled users keep their condition; everyone else is assigned again.
    It is running in mathstream.
    Simulated with UpGrade's own assignment. 95% of the time, each count lands within ±31.
    ‹ana asks, anyone may decide› [Update experiment] [Reject…] [Withdraw] [Edit…] [Show all]
    ");
    assert_snapshot!(thread.outcome("ana", "Update experiment").await, @"
    ✅ *Changed the weights of “Lesson Video Hints”.*
    Approved by @ana · ‹time›
    *Conditions*  control 34%, question-hint-default 33%, question-hint-tutorbot 33% → *control 50%, question-hint-default 25%, question-hint-tutorbot 25%*
    *Of 1,000 new users*  about 340 control, 319 question-hint-default, 341 question-hint-tutorbot → *about 496 control, 247 question-hint-default, 257 question-hint-tutorbot*
    Asked by @ana · digest `‹id›`
    [Undo: restore previous design] [Show all]
    ---
    @ana Changed the weights of “Lesson Video Hints”. What next?
    [Show details]
    ");
    let now = bot.upgrade.experiment("Lesson Video Hints").unwrap();
    let weights: Vec<_> = now["conditions"].as_array().unwrap().iter().map(|c| &c["assignmentWeight"]).collect();
    assert_eq!(weights, [50, 25, 25]);

    assert_snapshot!(thread.outcome("ana", "Undo: restore previous design").await, @"
    *Change the weights of “Lesson Video Hints”?*
    *Conditions*  control 50%, question-hint-default 25%, question-hint-tutorbot 25% → *control 34%, question-hint-default 33%, question-hint-tutorbot 33%*
    *Of 1,000 new users*  about 496 control, 247 question-hint-default, 257 question-hint-tutorbot → *about 340 control, 319 question-hint-default, 341 question-hint-tutorbot*
    *Enrolled*  24 users
    *Overlapping experiments*  none
    ⚠️ It is running: the 24 enrolled users keep their condition; everyone else is assigned again.
    It is running in mathstream.
    Simulated with UpGrade's own assignment. 95% of the time, each count lands within ±30.
    This undoes the change made ‹time›: Changed the weights of “Lesson Video Hints”.
    ‹ana asks, anyone may decide› [Update experiment] [Reject…] [Withdraw] [Edit…] [Show all]
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_fields_at_once_and_none_at_all() {
    let (_bot, mut thread) = TestBot::hears("ana", "update Math Hints").await;
    assert_snapshot!(thread.in_short(), @"
    What should I change about “*Math Hints*”?
    Its name, description, tags, weights, conditions, decision points, assignment, or what happens after enrollment ends.
    ");
    assert_snapshot!(thread.answer("ana", "set the description of Math Hints to Do worked hints help?").await, @"
    *Change the description of “Math Hints”?*
    *Description*  Worked hints when the graph of an absolute value is compared. → *Do worked hints help?*
    ‹nobody is enrolled, and nobody else is at the point›
    ‹an update of an inactive experiment, for anyone to decide›
    ");
    thread.clicked("ana", "Update experiment").await;
    assert_snapshot!(thread.answer("ana", "set the description of Math Hints to Do worked hints help?").await, @"“*Math Hints*” is already like that, so there's nothing to change.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_participant_is_introduced_asked_about_and_marked() {
    let (bot, mut thread) = TestBot::hears("ana", "what condition would student-1 get in mathstream?").await;
    let heard = thread.heard();
    assert!(heard.starts_with("UpGrade doesn't know the user `student-1` yet."), "no card: {heard}");

    assert_snapshot!(thread.answer("ana", "initialize user student-1 with groups classId 5B and working group classId 5B in mathstream").await, @"
    *Initialize user “student-1”?*
    *User*  `student-1`
    *Groups*  classId: 5B
    *Working group*  classId: 5B
    ⚠️ These groups replace the ones the platform has for this user.
    ⚠️ “*Class Hint Rollout*”, running, assigns by classId. This user gets the group's condition there.
    UpGrade stores users once for all contexts; mathstream only determines the available group types.
    ‹ana asks, anyone may decide› [Initialize user] [Reject…] [Withdraw] [Edit…] [Show all]
    ");
    assert_snapshot!(thread.outcome("ana", "Initialize user").await, @"
    ✅ *UpGrade knows the user student-1 now.*
    Approved by @ana · ‹time›
    Asked by @ana · digest `‹id›`
    [Show all]
    ---
    @ana UpGrade knows the user student-1 now.
    ");

    thread.says("ana", "what condition would student-1 get in mathstream?").await;
    let heard = thread.heard();
    let heard = ["control", "question-hint-default", "question-hint-tutorbot"]
        .iter()
        .fold(heard, |heard, code| heard.replace(&format!("*{code}*"), "*‹condition›*"));
    let answer = "`student-1` gets *‹condition›* at lesson-quiz / question-hint (“*Class Hint Rollout*”); *‹condition›* at \
                  lesson-stream / lesson-video (“*Lesson Video Hints*”).";
    assert!(heard.starts_with(answer), "it only reads: {heard}");

    assert_snapshot!(thread.answer("ana", "mark lesson-stream / lesson-video for student-1 in Lesson Video Hints with condition control").await, @"
    *Mark lesson-stream / lesson-video for “student-1”?*
    *User*  `student-1`
    *Experiment*  *Lesson Video Hints* (running, mathstream)
    *Decision point*  lesson-stream / lesson-video
    *Condition*  control
    *Status*  condition applied
    *Enrolled*  24 users
    *Overlapping experiments*  none
    UpGrade enrolls users by its own assignment; the condition given here is only recorded.
    ‹ana asks, anyone may decide› [Mark visit] [Reject…] [Withdraw] [Edit…] [Show all]
    ");
    assert_snapshot!(thread.outcome("bo", "Mark visit").await, @"
    *Mark lesson-stream / lesson-video for “student-1”*
    ✅ Marked lesson-stream / lesson-video for `student-1` with *control*.
    Approved by @bo · ‹time›
    Asked by @ana · digest `‹id›`
    [Show all]
    ---
    @ana Marked lesson-stream / lesson-video for `student-1` with *control*. Approved by bo.
    [Show details]
    ");
    assert_eq!(bot.upgrade.effects().len(), 2, "{:?}", json!(bot.done_to_platform()));
}
