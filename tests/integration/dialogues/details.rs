//! One experiment in all its parts: in short, in detail, and as a file.

use std::time::Duration;

use countersign::experiments::upgrade::{UpgradeConfig, client::UpgradeClient, sign_in::SignIn};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::{bot::TestBot, thread::Thread};

/// Puts an experiment with everything on the platform.
async fn full_experiment(bot: &TestBot) {
    let settings = UpgradeConfig {
        base_url: bot.upgrade.url().parse().unwrap(),
        sign_in: SignIn::Nobody,
        timeout: Duration::from_secs(5),
    };
    let list = |name: &str, users: &[&str]| {
        let users: Vec<_> = users.iter().map(|user| json!({ "userId": user })).collect();
        json!([{ "segment": { "type": "private", "name": name, "listType": "Individual",
            "individualForSegment": users, "groupForSegment": [], "subSegments": [] } }])
    };
    let body = json!({
        "name": "Area Steps", "description": "Do steps help?", "context": ["assign-prog"], "state": "inactive",
        "consistencyRule": "individual", "assignmentUnit": "individual", "postExperimentRule": "continue",
        "tags": ["area"], "filterMode": "excludeAll", "type": "Simple",
        "enrollmentCompleteCondition": { "userCount": 100 },
        "conditions": [
            { "id": "c1", "conditionCode": "control", "assignmentWeight": 60, "order": 1 },
            { "id": "c2", "conditionCode": "variant", "assignmentWeight": 40, "order": 2 },
        ],
        "partitions": [{ "id": "p1", "site": "SelectSection", "target": "area_model", "order": 1, "excludeIfReached": true }],
        "conditionPayloads": [
            { "id": "x1", "parentCondition": "c1", "decisionPoint": "p1", "payload": { "type": "string", "value": "no steps" } },
            { "id": "x2", "parentCondition": "c2", "decisionPoint": "p1", "payload": { "type": "string", "value": "five steps" } },
        ],
        "experimentSegmentInclusion": list("Pilot classes", &["u1", "u2"]),
        "experimentSegmentExclusion": list("Teachers", &["t1"]),
    });
    UpgradeClient::new(settings).unwrap().create(&body).await.unwrap();
}

/// The files of the thread: name and data.
fn files(bot: &TestBot, thread: &Thread<'_>) -> Vec<(String, Value)> {
    let ids: Vec<String> = thread.messages().into_iter().flat_map(|message| message.files).collect();
    let data = |bytes: &[u8]| serde_json::from_slice(bytes).unwrap();
    bot.slack.look(|world| {
        ids.iter().map(|id| &world.files[id]).map(|file| (file.name.clone(), data(&file.bytes))).collect()
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_experiment_in_short_and_in_detail() {
    let bot = TestBot::start().await;
    full_experiment(&bot).await;
    let mut thread = bot.user("ana").says("describe Area Steps in short").await;
    assert_snapshot!(thread.in_short(), @"
    *Area Steps* is inactive in `assign-prog`, comparing control 60%, variant 40%. Nobody is enrolled.
    [Start] [In detail]
    ");
    assert_snapshot!(thread.answer("ana", "what are the conditions?").await, @"
    Area Steps
    Do steps help?
    *Status*
    inactive
    *Context*
    `assign-prog`
    *Conditions*
    control 60% (0 enrolled), variant 40% (0 enrolled)
    *Decision points*
    SelectSection / area_model
    *Assignment*
    individual
    *After enrollment ends*
    enrolled users keep their condition
    *Users on no list*
    excluded
    *Consistency*
    individual
    *Ends automatically*
    with 100 users enrolled
    *Enrolled*
    0
    *Tags*
    area
    *Payloads*
    control “no steps”, variant “five steps”
    *Included*
    2 entries on lists
    *Excluded*
    1 entry on a list
    ID `‹id›`
    Fetched less than a minute ago.
    [Start] [In detail] [Refresh]
    ");
    assert_snapshot!(thread.answer("ana", "explain the setup").await, @"
    Area Steps
    Do steps help?
    *Status*
    inactive
    *Context*
    `assign-prog`
    *Assignment*
    individual
    *After enrollment ends*
    enrolled users keep their condition
    *Users on no list*
    excluded
    *Consistency*
    individual
    *Ends automatically*
    with 100 users enrolled
    *Enrolled*
    0
    *Tags*
    area
    *Created*
    ‹time›
    *Last changed*
    ‹time›
    Condition | Weight | Enrolled
    control | 60% | 0
    variant | 40% | 0
    Decision points:
    • `SelectSection / area_model` (users who were here before the start are excluded)
    *Decision point* · *Condition* · *Payload*
    `SelectSection / area_model` · `control` · `no steps`
    `SelectSection / area_model` · `variant` · `five steps`
    Included:
    • *Pilot classes*: u1, u2
    Excluded:
    • *Teachers*: t1
    ID `‹id›`
    Fetched less than a minute ago.
    [Start] [As JSON] [Refresh]
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn raw_data_come_as_a_file() {
    let (bot, mut thread) = TestBot::asked("ana", "show Math Hints").await;
    thread.clicked("ana", "In detail").await;
    assert_snapshot!(thread.outcome("ana", "As JSON").await, @"
    @ana chose *As JSON*.
    ---
    All UpGrade data about “*Math Hints*” is in the file below.
    ---
    ");
    assert_snapshot!(thread.answer("ana", "list running experiments as raw JSON").await, @"
    The data of 2 experiments (running) is in the file below.
    ---
    ");
    let files = files(&bot, &thread);
    let names: Vec<_> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names[0].starts_with("math-hints") && names[1].starts_with("experiments"), "{names:?}");
    assert_eq!(files[0].1["conditions"][0]["conditionCode"], "control", "as the platform says it");
    assert_eq!(files[1].1.as_array().unwrap().len(), 2);
}
