//! Guard rails: undo that looks first, envelopes, standing approvals.

use countersign::{config::Envelope, graph::store::ActionFilter};
use insta::assert_snapshot;
use serde_json::json;

use super::testing::{running, without_run};
use crate::support::{
    bot::{Setup, TestBot},
    short::in_short,
};

/// Standing approvals have names of their own, and end on a day that depends on today.
fn without_id(text: &str) -> String {
    let mut parts = text.split("sa-");
    let mut words = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        words.push_str("sa-‹id›");
        words.push_str(part.get(6..).unwrap_or_default());
    }
    let (told, last) = words.rsplit_once(" UTC").unwrap_or(("", &words));
    let days = told.split(" UTC").filter(|part| !part.is_empty());
    let told: String = days.map(|part| format!("{}‹day›", &part[..part.len() - "2027-01-15 09:00".len()])).collect();
    told + last
}

/// The name of the standing approval that was spoken of last.
fn id_in(text: &str) -> String {
    let at = text.rfind("sa-").expect("one is named");
    text[at..at + 9].to_owned()
}

fn marked(bot: &TestBot) -> usize {
    bot.upgrade.effects().iter().filter(|entry| entry.path.ends_with("/mark")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_weights_says_how_newcomers_will_split_and_can_be_undone() {
    let (bot, mut thread) = TestBot::hears("ana", "change the weights of Math Hints to 70/30").await;
    assert_snapshot!(thread.in_short(), @"
    *Change the weights of “Math Hints”?*
    *Conditions*  control 50%, variant 50% → *control 70%, variant 30%*
    *Of 1,000 new users*  about 496 control, 504 variant → *about 689 control, 311 variant*
    ‹nobody is enrolled, and nobody else is at the point›
    It is inactive in assign-prog.
    Simulated with UpGrade's own assignment. 95% of the time, each count lands within ±29.
    ‹ana asks, anyone may decide› [Update experiment] [Reject…] [Withdraw] [Edit…] [Show all]
    ");
    thread.clicked("bo", "Update experiment").await;
    assert_snapshot!(thread.outcome("ana", "Undo: restore previous design").await, @"
    *Change the weights of “Math Hints”?*
    *Conditions*  control 70%, variant 30% → *control 50%, variant 50%*
    *Of 1,000 new users*  about 689 control, 311 variant → *about 496 control, 504 variant*
    ‹nobody is enrolled, and nobody else is at the point›
    It is inactive in assign-prog.
    Simulated with UpGrade's own assignment. 95% of the time, each count lands within ±31.
    This undoes the change made ‹time›: Changed the weights of “Math Hints”.
    ‹ana asks, anyone may decide› [Update experiment] [Reject…] [Withdraw] [Edit…] [Show all]
    ");
    thread.clicks("bo", "Update experiment").await;
    let weights = |bot: &TestBot| {
        let experiment = bot.upgrade.experiment("Math Hints").unwrap();
        [0, 1].map(|n| experiment["conditions"][n]["assignmentWeight"].as_f64().unwrap())
    };
    assert_eq!(weights(&bot), [50.0, 50.0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_leaves_alone_what_somebody_changed_since() {
    let (bot, mut thread) = TestBot::hears("ana", "change the weights of Math Hints to 70/30").await;
    thread.clicked("bo", "Update experiment").await;
    let mut other = bot.user("cy").says("change the weights of Math Hints to 60/40").await;
    other.clicked("bo", "Update experiment").await;
    assert_snapshot!(thread.outcome("ana", "Undo: restore previous design").await, @"
    “*Math Hints*” was changed again since then, so nothing was undone: undoing this would undo that change too.
    • *Conditions*: then control 70%, variant 30%, now control 60%, variant 40%
    Tell me what it should be and I'll post a card for that.
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_creation_is_undone_by_a_deletion_as_long_as_nobody_takes_part() {
    let (bot, mut thread) =
        TestBot::hears("ana", "create an experiment called Foo in assign-prog at SelectSection / area_model").await;
    thread.clicked("bo", "Create experiment").await;
    assert_snapshot!(thread.outcome("ana", "Undo: delete experiment").await, @"
    *Permanently delete “Foo”?*
    *Status*  inactive
    *Context*  `assign-prog`
    *Conditions*  control 50%, variant 50%
    *Decision points*  SelectSection / area_model
    *ID*  `‹id›`
    *Enrolled*  0
    *Overlapping experiments*  “*Running Test*”, paused, at SelectSection / area_model
    ⚠️ This can't be undone. Nobody is enrolled.
    This undoes the change made ‹time›: Created “Foo”. It stays inactive until someone starts it.
    Asked by @ana · anyone in this channel except the requester can approve · expires ‹time› · digest `‹id›`
    [Delete permanently] [Reject…] [Withdraw] [Show all]
    ");
    thread.clicked("bo", "Delete permanently").await;
    assert!(bot.upgrade.experiment("Foo").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn outside_an_envelope_two_others_have_to_approve() {
    let settings = Box::new(|config: &mut countersign::config::Config| {
        let pilot = Envelope {
            subjects: vec!["Math Hints".to_owned()],
            limits: serde_json::from_value(json!({ "statuses": ["enrolling"], "most_weight": 60.0, "most_users": 20 }))
                .unwrap(),
            ..Envelope::default()
        };
        config.approvals.envelopes.insert("pilot".to_owned(), pilot);
    });
    let bot = TestBot::with(Setup { settings, ..Setup::default() }).await;
    let mut thread = bot.user("ana").says("start Math Hints").await;
    thread.clicked("ana", "Start experiment").await;
    assert_eq!(bot.done_to_platform(), ["POST /api/experiments/state"], "inside it the usual policy applies");

    thread.says("ana", "enrol 30 users in Math Hints").await;
    thread.clicks("ana", "Enroll test users").await;
    thread.clicks("bo", "Enroll test users").await;
    assert_eq!(marked(&bot), 0, "one of two, and who asked is neither");
    thread.clicks("cy", "Enroll test users").await;
    assert_eq!(marked(&bot), 30);

    thread.says("ana", "change the weights of Math Hints to 70/30").await;
    let filter = ActionFilter::all(&[], 1);
    let newest = bot.store().actions(&filter).await.unwrap().remove(0);
    let because = "outside the envelope pilot: a weight of 70 %, at most 60 %";
    assert_eq!(newest.policy.because.as_deref(), Some(because));
    assert_eq!((newest.policy.needed, newest.policy.own_request, newest.policy.typed), (2, false, false));
    thread.clicks("ana", "Withdraw").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_standing_approval_covers_runs_at_once_until_it_is_used_up() {
    let bot = TestBot::start().await;
    let mut thread = running(&bot).await;
    thread.says("ana", "allow up to 60 simulated users in Math Hints until Friday").await;
    assert_snapshot!(without_id(&thread.in_short()), @"
    *Allow simulated users in “Math Hints” without asking each time?*
    *Allows*  enroll simulated users (balance tests)
    *In*  *Math Hints*, running, assign-prog
    *At most*  60 simulated users in total
    *Until*  ‹day›
    *Enrolled*  nobody
    ⚠️ These tests then need no approval: each one runs as soon as someone in this conversation asks for it.
    ⚠️ UpGrade removes simulated users only together with the experiment.
    It applies only in this conversation, and never to changes outside an envelope.
    To end it at any time, say `revoke standing approval sa-‹id›`
    ‹ana asks, anyone may decide› [Grant approval] [Reject…] [Withdraw] [Show all]
    ");
    thread.clicks("bo", "Grant approval").await;
    assert_snapshot!(without_id(&thread.in_short()), @"
    ✅ *Granted sa-‹id›: up to 60 simulated users in “Math Hints” until ‹day›.*
    Approved by @bo · ‹time›
    Asked by @ana · digest `‹id›`
    [Undo: end approval] [Show all]
    ---
    @ana Granted sa-‹id›: up to 60 simulated users in “Math Hints” until ‹day›. Approved by bo.
    ");

    thread.says("ana", "enrol 40 users in Math Hints").await;
    bot.settled().await;
    assert_eq!(marked(&bot), 40, "nobody was asked");
    let ran = without_run(&without_id(&thread.heard()));
    assert_snapshot!(ran.split("✅").next().unwrap().trim_end(), @"
    *Enroll 40 test users in “Math Hints”*
    ");
    let newest = |bot: &TestBot| {
        let store = bot.store();
        async move {
            let filter = ActionFilter::all(&[], 1);
            store.actions(&filter).await.unwrap().remove(0)
        }
    };
    let record = newest(&bot).await;
    let under = record.under.clone().expect("it names the standing approval");
    assert_eq!((under.used, under.limit, record.approved_by()), (40, 60, under.granted_by));
    let audit = bot.store().audit(&record.thread).await.unwrap().entries;
    let decided = audit.iter().rev().find(|entry| json!(entry.event.kind) == "decided").unwrap();
    assert_eq!(decided.event.detail["standing"]["id"], under.id.as_str());

    thread.says("cy", "@countersign enrol 40 users in Math Hints").await;
    assert!(newest(&bot).await.under.is_none(), "20 are left, so a person is asked");
    assert_eq!(marked(&bot), 40);
    thread.skip();
    thread.clicked("cy", "Reject…").await;

    thread.says("cy", "@countersign list standing approvals").await;
    let listed = thread.heard();
    assert_snapshot!(without_id(&listed), @"
    Standing approvals (each applies only where it was granted):
    • `sa-‹id›`  up to 60 simulated users in “Math Hints” until ‹day›; 40 of 60 used
    [End sa-‹id›]
    ");
    thread.says("cy", &format!("@countersign revoke standing approval {}", id_in(&listed))).await;
    assert_snapshot!(without_id(&thread.in_short()), @"
    *End the standing approval sa-‹id›?*
    *Allows*  up to 60 simulated users in “Math Hints” until ‹day›
    *Granted by*  @bo
    *Used*  40 of 60
    *Status*  can be used → *revoked*
    After that, each test needs approval again. Tests already running continue.
    This undoes the change made ‹time›: Granted sa-‹id›: up to 60 simulated users in “Math Hints” until ‹day›.
    Asked by @cy · anyone in this channel can approve · expires ‹time› · digest `‹id›`
    [End approval] [Reject…] [Withdraw] [Show all]
    ");
    thread.clicked("cy", "End approval").await;
    thread.says("ana", "@countersign enrol 10 users in Math Hints").await;
    assert_eq!(marked(&bot), 40, "it is revoked, so a person is asked");
    thread.clicks("ana", "Withdraw").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standing_approval_ends_with_its_time_and_holds_in_its_channel_only() {
    let bot = TestBot::start().await;
    let mut thread = running(&bot).await;
    thread.says("ana", "allow up to 60 simulated users in Math Hints until tomorrow").await;
    thread.clicked("bo", "Grant approval").await;
    let elsewhere = bot.user("ana").writes("enrol 5 users in Math Hints").await;
    assert_eq!(marked(&bot), 0, "a direct message is another conversation");
    elsewhere.clicks("ana", "Withdraw").await;
    bot.clock.advance(std::time::Duration::from_secs(3 * 24 * 3600));
    thread.says("ana", "enrol 5 users in Math Hints").await;
    assert_eq!(marked(&bot), 0, "its time is over");
    thread.clicks("ana", "Withdraw").await;
}

/// What it is about can give away what a private channel is for.
#[tokio::test(flavor = "multi_thread")]
async fn a_standing_approval_is_told_in_its_channel_and_to_those_who_made_it() {
    let bot = TestBot::start().await;
    let private = bot.slack.founds_private_channel("ana", "lab", &["bo"]);
    let mut inside = bot.user("ana").says_in(private.as_str(), "@countersign start Math Hints").await;
    inside.clicks("bo", "Start experiment").await;
    inside.says("ana", "allow up to 60 simulated users in Math Hints until Friday").await;
    inside.clicks("bo", "Grant approval").await;
    let id = id_in(&inside.heard());

    let mut outside = bot.user("cy").says("list standing approvals").await;
    assert_snapshot!(outside.in_short(), @"
    There are no standing approvals here. Every change needs approval.
    To ask for one: “allow up to 200 simulated users in Math Hints until Friday”.
    ");
    outside.says("cy", &format!("revoke standing approval {id}")).await;
    assert_snapshot!(without_id(&outside.in_short()), @"
    No standing approval is called “sa-‹id›” here.
    None can be used here right now.
    ");
    outside.says("cy", "revoke the standing approval for Math Hints").await;
    assert_snapshot!(without_id(&outside.in_short()), @"
    No standing approval is called “Math Hints” here.
    None can be used here right now.
    ");
    assert_snapshot!(outside.answer("bo", "@countersign list standing approvals").await, @"
    There are no standing approvals here. Every change needs approval.
    You have another one in another conversation. `/countersign standing` shows them only to you.
    ");
    assert_snapshot!(without_id(&bot.user("bo").types("/countersign standing").await), @"
    Standing approvals (each applies only where it was granted):
    • `sa-‹id›`  up to 60 simulated users in “Math Hints” until ‹day›; 0 of 60 used, in another conversation
    To end one, mention me where it applies: `revoke standing approval sa-‹id›`
    ");
    assert_snapshot!(in_short(&bot.user("cy").types("/countersign standing").await), @"
    There are no standing approvals here. Every change needs approval.
    To ask for one: “allow up to 200 simulated users in Math Hints until Friday”.
    ");
    let alone = bot.user("bo").types_in(private.as_str(), "/countersign standing").await;
    assert_snapshot!(without_id(&alone), @"
    Standing approvals (each applies only where it was granted):
    • `sa-‹id›`  up to 60 simulated users in “Math Hints” until ‹day›; 0 of 60 used
    To end one, mention me where it applies: `revoke standing approval sa-‹id›`
    ");
    let mut direct = bot.user("ana").writes("list standing approvals").await;
    assert_snapshot!(without_id(&direct.in_short()), @"
    Standing approvals (each applies only where it was granted):
    • `sa-‹id›`  up to 60 simulated users in “Math Hints” until ‹day›; 0 of 60 used, in another conversation
    ");
    direct.says("ana", &format!("revoke standing approval {id}")).await;
    direct.clicks("ana", "End approval").await;
    assert_snapshot!(without_id(&bot.user("ana").types("/countersign standing").await), @"
    No standing approval can be used here. Every change needs approval.
    Ended:
    • `sa-‹id›`  up to 60 simulated users in “Math Hints” until ‹day›; 0 of 60 used (revoked), in another conversation
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_said_of_a_standing_approval_is_asked_for() {
    let (_bot, mut thread) = TestBot::hears("ana", "grant a standing approval").await;
    assert_snapshot!(thread.in_short(), @"
    What should be allowed in advance?
    Needed: what, within, limit, until. You can give several at once, or say never mind.
    [simulated users] [starts and stops]
    ");
    assert_snapshot!(thread.answer("ana", "allow up to 5000 simulated users in Math Hints until Friday").await, @"A standing approval can cover 1 to 1000 simulated users, not 5000.");
    thread.says("ana", "never mind").await;
    thread.skip();
    assert_snapshot!(thread.answer("ana", "list standing approvals").await, @"
    There are no standing approvals here. Every change needs approval.
    To ask for one: “allow up to 200 simulated users in Math Hints until Friday”.
    ");
    assert_snapshot!(thread.answer("ana", "revoke sa-123456").await, @"
    No standing approval is called “sa-123456” here.
    None can be used here right now.
    ");
}

/// What one person grants herself lets nobody do what needs a second person.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_allows_themselves_what_another_person_has_to_approve() {
    let (bot, mut thread) = TestBot::asked("ana", "allow up to 100 simulated users in mathstream until Friday").await;
    thread.clicks("ana", "Grant approval").await;
    let told = bot.slack.ephemerals("ana").last().unwrap().words();
    assert!(told.starts_with("You asked for this, and some of its effects can't be undone"), "{told}");
    thread.clicked("bo", "Grant approval").await;

    // Who granted it approved what others ask for, not what they ask for themselves.
    thread.says("bo", "@countersign test the balance of Lesson Video Hints with 30 users").await;
    bot.settled().await;
    assert_eq!(marked(&bot), 0);
    assert_snapshot!(without_run(&without_id(&thread.in_short())), @"
    *Enroll 30 test users in “Lesson Video Hints”?*
    *Users*  `test-‹run›-0001` to `test-‹run›-0030`
    *Decision point*  lesson-stream / lesson-video
    *Expected*  control 34%, question-hint-default 33%, question-hint-tutorbot 33%
    *Limits*  30 users, this experiment only, at most 15 minutes
    ⚠️ UpGrade removes enrolled users only together with the experiment.
    ⚠️ 24 users are already enrolled, so the data will be mixed.
    You can stop it midway; users enrolled by then stay enrolled.
    The standing approval `sa-‹id›` doesn't cover this: @bo granted it and is asking for this, so another person has to approve it.
    Asked by @bo · anyone in this channel except the requester can approve · expires ‹time› · digest `‹id›`
    [Enroll test users] [Reject…] [Withdraw] [Edit…] [Show all]
    ");
    thread.clicked("bo", "Reject…").await;
    thread.says("ana", "@countersign test the balance of Lesson Video Hints with 30 users").await;
    bot.settled().await;
    assert_eq!(marked(&bot), 30, "bo may approve it, and has");
}
