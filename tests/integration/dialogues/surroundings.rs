//! What a card says about other experiments and lists, copies of experiments, and test users beside others.

use std::time::Duration;

use countersign::experiments::upgrade::{UpgradeConfig, client::UpgradeClient, known::MAX_AGE, sign_in::SignIn};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::bot::TestBot;

fn client(bot: &TestBot) -> UpgradeClient {
    let settings = UpgradeConfig {
        base_url: bot.upgrade.url().parse().unwrap(),
        sign_in: SignIn::Nobody,
        timeout: Duration::from_secs(5),
    };
    UpgradeClient::new(settings).unwrap()
}

/// The number of changes on the platform.
fn changes(bot: &TestBot) -> usize {
    bot.upgrade.effects().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_is_refused_if_another_experiment_has_started_at_its_point() {
    let (bot, mut thread) = TestBot::asked("ana", "start Math Hints").await;
    bot.upgrade.has("Rival", "enrolling");
    assert_snapshot!(thread.outcome("bo", "Start experiment").await, @"
    *Start “Math Hints”*
    ❌ It changed after this card was posted, so nothing was done. On the card → now: *Overlapping experiments* none → “Rival”, running, at SelectSection / absolute_value_plot_equality. *Try again* posts a card that shows how it is now.
    Approved by @bo · ‹time›
    *Status*  inactive → *running*
    Asked by @ana · digest `‹id›`
    [Try again] [Show all]
    ---
    @ana, @bo *Start “Math Hints”* didn't work. It changed after this card was posted, so nothing was done. On the card → now: *Overlapping experiments* none → “Rival”, running, at SelectSection / absolute_value_plot_equality. *Try again* posts a card that shows how it is now.
    ");
    assert_eq!(changes(&bot), 0);
    thread.clicks("ana", "Try again").await;
    let card = thread.heard();
    assert!(card.contains("*Overlapping experiments*  “*Rival*”, running, at SelectSection"), "{card}");
    thread.clicks("bo", "Start experiment").await;
    assert_eq!(bot.upgrade.experiment("Math Hints").unwrap()["state"], "running");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_change_is_refused_if_what_its_card_says_of_others_has_changed() {
    for (said, button) in [
        ("create experiment Foo in assign-prog at SelectSection / absolute_value_plot_equality", "Create experiment"),
        ("rename Math Hints to Foo", "Update experiment"),
        ("set the weights of Math Hints to 70/30", "Update experiment"),
        ("delete Math Hints", "Delete permanently"),
        ("cancel Math Hints", "Cancel experiment"),
        ("cancel Math Hints and Lesson Video Hints", "Cancel 2 experiments"),
    ] {
        let bot = TestBot::start().await;
        let mut thread = bot.user("ana").says(said).await;
        thread.skip();
        bot.upgrade.has("Foo", "enrolling");
        let heard = {
            thread.clicks("bo", button).await;
            thread.heard()
        };
        assert_eq!(changes(&bot), 0, "{said}: {heard}");
        assert!(heard.contains("It changed after this card was posted"), "{said}: {heard}");
        assert!(heard.contains("Foo") || heard.contains("Experiments with this name"), "{said}: {heard}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_says_how_old_its_facts_about_others_are() {
    let bot = TestBot::start().await;
    let first = bot.user("ana").says("start Math Hints").await;
    assert!(!first.last().contains("Other experiments were read"), "{}", first.last());
    bot.clock.advance(MAX_AGE / 2);
    let second = bot.user("ana").says("delete Math Hints").await;
    let age = "Other experiments were read 15 seconds before this card. I check them again before the change.";
    assert!(second.last().contains(age), "{}", second.last());
}

/// An experiment in which each field has a value.
fn rich(name: &str, segment: &str) -> Value {
    json!({
        "name": name, "description": "Do colors help?", "context": ["assign-prog"], "state": "inactive",
        "consistencyRule": "individual", "assignmentUnit": "individual", "postExperimentRule": "continue",
        "tags": ["color"], "filterMode": "includeAll", "type": "Simple", "endOn": "2099-01-01T00:00:00.000Z",
        "enrollmentCompleteCondition": { "userCount": 100 },
        "conditions": [
            { "id": "c1", "conditionCode": "control", "assignmentWeight": 60, "order": 1, "name": "As it is" },
            { "id": "c2", "conditionCode": "variant", "assignmentWeight": 40, "order": 2, "name": "Colors",
              "description": "all in red" },
        ],
        "partitions": [
            { "id": "p1", "site": "SelectSection", "target": "area_model", "order": 1, "excludeIfReached": false,
              "description": "the first page" },
            { "id": "p2", "site": "SelectProblem", "target": "area_model", "order": 2, "excludeIfReached": true },
        ],
        "conditionPayloads": [
            { "id": "x1", "parentCondition": "c2", "decisionPoint": "p1", "payload": { "type": "json", "value": "{\"color\":\"red\"}" } },
            { "id": "x2", "parentCondition": "c2", "decisionPoint": "p2", "payload": { "type": "csv", "value": "red,blue" } },
        ],
        "queries": [{
            "id": "q1", "name": "Mean time", "query": { "operationType": "avg" }, "repeatedMeasure": "MOST RECENT",
            "metric": { "key": "totalTimeSeconds" },
        }],
        "experimentSegmentExclusion": [{ "segment": {
            "type": "private", "name": "Teachers", "listType": "Segment", "individualForSegment": [], "groupForSegment": [],
            "subSegments": [{ "id": segment }],
        } }],
    })
}

async fn bot_with_rich_plan() -> TestBot {
    let bot = TestBot::start().await;
    let segment = bot.upgrade.has_segment("Pilot teachers", "assign-prog", &["t1"]);
    client(&bot).create(&rich("Rich Plan", &segment)).await.unwrap();
    bot
}

/// The parts of an experiment without ids and times.
fn design(experiment: &Value) -> Value {
    let each = |key: &str, of: &[&str]| -> Value {
        let one = |item: &Value| of.iter().map(|key| ((*key).to_owned(), item[*key].clone())).collect::<Value>();
        experiment[key].as_array().into_iter().flatten().map(one).collect()
    };
    let payloads: Vec<Value> = experiment["conditionPayloads"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|payload| payload["payload"].clone())
        .filter(|payload| !["control", "variant"].contains(&payload["value"].as_str().unwrap()))
        .collect();
    let segments: Vec<Value> = experiment["experimentSegmentExclusion"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|list| list["segment"]["subSegments"][0]["name"].clone())
        .collect();
    let fields = ["description", "context", "endOn", "tags", "filterMode", "enrollmentCompleteCondition", "type"];
    json!({
        "fields": fields.map(|key| experiment[key].clone()),
        "conditions": each("conditions", &["conditionCode", "assignmentWeight", "name", "description"]),
        "points": each("partitions", &["site", "target", "description", "excludeIfReached"]),
        "queries": experiment["queries"].as_array().unwrap().iter().map(|query| {
            json!([query["name"], query["query"], query["repeatedMeasure"], query["metric"]["key"]])
        }).collect::<Vec<_>>(),
        "payloads": payloads, "segments": segments,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_has_everything_and_its_card_says_what_it_has_not() {
    let bot = bot_with_rich_plan().await;
    let mut thread = bot.user("ana").says("copy Rich Plan as Rich Copy").await;
    assert_snapshot!(thread.in_short(), @r#"
    *Create “Rich Copy”?*
    *Name*  *Rich Copy*
    *Description*  Do colors help?
    *Context*  `assign-prog`
    *Conditions*  control 60%, variant 40%
    *Payloads*  variant “{"color":"red"}” (JSON) at SelectSection / area_model, variant “red,blue” (CSV) at SelectProblem / area_model
    *Decision points*  SelectSection / area_model, SelectProblem / area_model (excludes users who were there before the start)
    *Assignment*  individual
    *Consistency*  individual
    *Enrollment ends*  automatically after 100 users
    *After enrollment ends*  enrolled users keep their condition
    *Users on no list*  included
    *Exclusion list*  segment “Pilot teachers”
    *Ends*  2099-01-01 00:00 UTC
    *Tags*  color
    *Names of conditions*  control “As it is”, variant “Colors” (all in red)
    *About the points*  SelectSection / area_model (the first page)
    *Metric queries*  “Mean time” (avg of totalTimeSeconds)
    *Of 1,000 new users*  about 306 control, 198 variant; 496 go to other experiments at this decision point
    ⚠️ “*Running Test*”, paused, has SelectSection / area_model too. Each user takes part in only one experiment at a decision point.
    Simulated with UpGrade's own assignment. 95% of the time, each count lands within ±22. Users who reached its decision points before the start get no condition.
    It stays inactive until someone starts it.
    Not copied: the names and descriptions of its lists.
    ‹ana asks, anyone may decide› [Create experiment] [Reject…] [Withdraw] [Edit…] [Show all]
    "#);
    thread.clicks("ana", "Create experiment").await;
    let (original, copy) = ("Rich Plan", "Rich Copy");
    let of = |name: &str| design(&bot.upgrade.experiment(name).unwrap());
    assert_eq!(of(copy), of(original), "{}", thread.heard());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corrected_copy_still_has_everything() {
    let bot = bot_with_rich_plan().await;
    let mut thread = bot.user("ana").says("copy Rich Plan as Rich Copy").await;
    thread.says("ana", "tags pilot").await;
    thread.heard();
    thread.clicks("ana", "Create experiment").await;
    let of = |name: &str| design(&bot.upgrade.experiment(name).unwrap());
    for part in ["conditions", "points", "queries", "payloads", "segments"] {
        assert_eq!(of("Rich Copy")[part], of("Rich Plan")[part], "{part}: {}", thread.heard());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_segment_on_a_list_is_part_of_it_and_stays() {
    let bot = bot_with_rich_plan().await;
    let mut thread = bot.user("ana").says("exclude user kim-7 from Rich Plan").await;
    let card = thread.heard();
    assert!(card.contains("*Exclusion list*  segment “Pilot teachers” → *kim-7, segment “Pilot teachers”*"), "{card}");
    thread.clicks("bo", "Update experiment").await;
    assert!(thread.heard().contains("✅"));
    let lists = bot.upgrade.experiment("Rich Plan").unwrap()["experimentSegmentExclusion"].clone();
    assert_eq!(lists[0]["segment"]["subSegments"][0]["name"], "Pilot teachers");
    assert_eq!(lists[1]["segment"]["individualForSegment"][0]["userId"], "kim-7");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_gets_the_type_of_its_new_content() {
    let bot = bot_with_rich_plan().await;
    let mut thread = bot.user("ana").says("update Rich Plan with payloads variant: blue").await;
    assert_snapshot!(thread.in_short(), @r#"
    *Change the payloads of “Rich Plan”?*
    *Payloads*  variant “{"color":"red"}” (JSON) at SelectSection / area_model, variant “red,blue” (CSV) at SelectProblem / area_model → *variant “blue” at SelectSection / area_model, variant “blue” (CSV) at SelectProblem / area_model*
    *Enrolled*  0
    *Overlapping experiments*  “*Running Test*”, paused, at SelectSection / area_model
    ‹an update of an inactive experiment, for anyone to decide›
    "#);
    thread.clicks("bo", "Update experiment").await;
    assert_snapshot!(thread.in_short(), @r#"
    ✅ *Changed the payloads of “Rich Plan”.*
    Approved by @bo · ‹time›
    *Payloads*  variant “{"color":"red"}” (JSON) at SelectSection / area_model, variant “red,blue” (CSV) at SelectProblem / area_model → *variant “blue” at SelectSection / area_model, variant “blue” (CSV) at SelectProblem / area_model*
    Asked by @ana · digest `‹id›`
    [Undo: restore previous design] [Show all]
    ---
    @ana Changed the payloads of “Rich Plan”. Approved by bo. What next?
    [Show details]
    "#);
    let payloads = bot.upgrade.experiment("Rich Plan").unwrap()["conditionPayloads"].clone();
    let of_variant: Vec<_> =
        payloads.as_array().unwrap().iter().map(|p| p["payload"].clone()).filter(|p| p["value"] == "blue").collect();
    let expected = [json!({ "type": "string", "value": "blue" }), json!({ "type": "csv", "value": "blue" })];
    assert!(expected.iter().all(|payload| of_variant.contains(payload)), "{payloads}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_payloads_of_a_removed_decision_point_are_on_the_card() {
    let bot = bot_with_rich_plan().await;
    let thread = bot.user("ana").says("update Rich Plan with decision points SelectProblem/area_model").await;
    let lost = "These payloads are deleted with it: variant “{\"color\":\"red\"}” (JSON).";
    assert!(thread.last().contains(lost), "{}", thread.last());
}

#[tokio::test(flavor = "multi_thread")]
async fn test_users_are_shown_apart_from_others() {
    let bot = TestBot::start().await;
    let mut thread = bot.user("ana").says("test the balance of Lesson Video Hints with 40 users").await;
    thread.clicks("bo", "Enroll test users").await;
    bot.settled().await;
    thread.skip();
    for (said, expected) in [
        ("show Lesson Video Hints", "24 users, plus 40 test users"),
        ("how many users are enrolled in Lesson Video Hints?", "40 test users of mine aren't counted."),
        ("show enrollment of Lesson Video Hints over time", "40 test users of mine are left out."),
        ("compare Lesson Video Hints and Math Hints", "24 users, plus 40 test users"),
        ("stop Lesson Video Hints", "*Enrolled*  24 users, plus 40 test users"),
        ("delete Lesson Video Hints", "The enrollments of 24 users, plus 40 test users are deleted too."),
        ("tell me when Lesson Video Hints reaches 60 users", "It has 24, plus 40 test users now."),
    ] {
        let heard = bot.user("ana").answer(said).await;
        assert!(heard.contains(expected), "{said}: {heard}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adaptive_experiment_is_declined() {
    let bot = TestBot::start().await;
    let declined = "I can't create or copy adaptive experiments, such as those with Thompson sampling.";
    for said in [
        "create an adaptive experiment Bandit in assign-prog at SelectSection/area_model",
        "create a Thompson sampling experiment called Bandit in assign-prog at SelectSection/area_model",
        "create experiment Bandit in assign-prog at SelectSection/area_model with algorithm ts_configurable",
    ] {
        let heard = bot.user("ana").answer(said).await;
        assert!(heard.contains(declined), "{said}: {heard}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_experiment_in_preview_can_be_started() {
    let bot = TestBot::start().await;
    bot.upgrade.has("Trial", "preview");
    let mut thread = bot.user("ana").says("start Trial").await;
    thread.clicks("bo", "Start experiment").await;
    assert!(thread.heard().contains("Started “Trial”"));
    assert_eq!(bot.upgrade.experiment("Trial").unwrap()["state"], "running");
}
