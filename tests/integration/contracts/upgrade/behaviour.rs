//! The assignment engine against runs on a real server.
//!
//! The draw is the sandbox's own, so single draws are never compared: shares are, with a tolerance, and everything that follows
//! from a draw exactly. Each test names the run it repeats.

use std::collections::BTreeMap;

use countersign_sandbox::upgrade::{Options, SandboxUpgrade};
use serde_json::{Value, json};

use super::{plain, replay::http, with};

/// A sandbox and somebody who talks to it.
struct Lab {
    sandbox: SandboxUpgrade,
    http: reqwest::Client,
}

impl Lab {
    async fn start() -> Self {
        Self::asked_by(&http()).await
    }

    /// A fresh sandbox for a client that is there: making one takes longer than a whole run.
    async fn asked_by(http: &reqwest::Client) -> Self {
        Self { sandbox: SandboxUpgrade::start(Options::default()).await.unwrap(), http: http.clone() }
    }

    async fn call(&self, method: &str, path: &str, user: Option<&str>, body: Value) -> Value {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let mut request = self.http.request(method, format!("{}{path}", self.sandbox.url())).json(&body);
        if let Some(user) = user {
            request = request.header("User-Id", user);
        }
        let response = request.send().await.unwrap();
        let status = response.status();
        let answer: Value = response.json().await.unwrap();
        assert_eq!(status, 200, "{path}: {answer:#}");
        answer
    }

    async fn create(&self, changes: Value) -> String {
        let created = self.call("POST", "/experiments", None, with(plain("Run"), changes)).await;
        created["id"].as_str().unwrap().to_owned()
    }

    async fn becomes(&self, id: &str, state: &str) {
        self.call("POST", "/experiments/state", None, json!({ "experimentId": id, "state": state })).await;
    }

    async fn update(&self, id: &str, changes: Value) {
        let body = self.call("GET", &format!("/experiments/single/{id}"), None, Value::Null).await;
        self.call("PUT", &format!("/experiments/{id}"), None, with(body, changes)).await;
    }

    async fn conditions(&self, id: &str) -> Vec<Value> {
        let body = self.call("GET", &format!("/experiments/conditions/{id}"), None, Value::Null).await;
        body.as_array().unwrap().clone()
    }

    async fn hello(&self, user: &str, body: Value) {
        self.call("POST", "/v6/init", Some(user), body).await;
    }

    /// All codes a user is told, one for each point.
    async fn asks_everywhere(&self, user: &str) -> Vec<String> {
        let told = self.call("POST", "/v6/assign", Some(user), json!({ "context": "assign-prog" })).await;
        let code = |entry: &Value| entry["assignedCondition"][0]["conditionCode"].as_str().unwrap().to_owned();
        told.as_array().unwrap().iter().map(code).collect()
    }

    async fn asks(&self, user: &str) -> Option<String> {
        self.asks_everywhere(user).await.into_iter().next()
    }

    async fn marks(&self, user: &str) {
        let point = json!({ "data": { "site": "SelectSection", "target": "area_model" } });
        self.call("POST", "/v6/mark", Some(user), point).await;
    }

    /// Asks, then marks.
    async fn visits(&self, user: &str) -> Option<String> {
        let code = self.asks(user).await;
        self.marks(user).await;
        code
    }

    async fn stats(&self, id: &str) -> Value {
        self.call("POST", "/stats/enrollment/detail", None, json!({ "experimentId": id })).await
    }
}

fn run(name: &str) -> Value {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/upgrade/behaviour");
    serde_json::from_str(&std::fs::read_to_string(folder.join(name)).unwrap()).unwrap()
}

fn points(exclude_if_reached: bool) -> Value {
    json!([{
        "id": "p", "site": "SelectSection", "target": "area_model", "order": 1, "excludeIfReached": exclude_if_reached,
    }])
}

fn weighted(weights: &[(String, f64)]) -> Value {
    let condition = |(at, (code, weight)): (usize, &(String, f64))| json!({ "id": code, "conditionCode": code, "assignmentWeight": weight, "order": at + 1 });
    weights.iter().enumerate().map(condition).collect()
}

/// An id that makes the draws of a run the same each time.
fn fixed_id(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

/// Run 01: 200 users for ten weight settings, valid and invalid.
#[tokio::test]
async fn shares_follow_the_weights_however_odd_they_are() {
    let lab = Lab::start().await;
    for user in 0..200 {
        lab.hello(&format!("w-{user}"), json!({})).await;
    }
    for (number, run) in run("01-weights-200-users.json")["runs"].as_array().unwrap().iter().enumerate() {
        let order = ["control", "variant", "concrete"];
        let weights: Vec<_> =
            order.iter().filter_map(|code| Some(((*code).to_owned(), run["weights"][code].as_f64()?))).collect();
        let id = lab.create(json!({ "id": fixed_id(number), "conditions": weighted(&weights) })).await;
        lab.becomes(&id, "enrolling").await;
        let users: Vec<_> = (0..200).map(|user| format!("w-{user}")).collect();
        let asked = json!({
            "context": "assign-prog", "site": "SelectSection", "target": "area_model", "userIds": users,
        });
        let first = lab.call("POST", "/batch-assign", None, asked.clone()).await;
        assert_eq!(first, lab.call("POST", "/batch-assign", None, asked).await, "asking again changes nothing");
        let mut shares = BTreeMap::<String, f64>::new();
        for told in first.as_object().unwrap().values() {
            *shares.entry(told["assignedCondition"][0]["conditionCode"].as_str().unwrap().to_owned()).or_default() +=
                1.0;
        }
        for (code, _) in weights {
            let recorded = run["assigned"][&code].as_f64().unwrap_or_default();
            let given = shares.get(&code).copied().unwrap_or_default();
            if recorded == 0.0 || recorded == 200.0 {
                assert_eq!(given, recorded, "{code} under {}", run["weights"]);
            } else {
                // Shares of 200 users stray by 7 in the mean, on either side.
                assert!((given - recorded).abs() <= 30.0, "{code}: {given} instead of {recorded}, {}", run["weights"]);
            }
        }
        lab.becomes(&id, "cancelled").await;
    }
}

/// Run 02: the draw depends on experiment id and user id only.
#[tokio::test]
async fn the_same_experiment_id_draws_the_same() {
    let lab = Lab::start().await;
    let users: Vec<_> = (0..40).map(|user| format!("d-{user}")).collect();
    let mut draws = Vec::new();
    let fixed = "6d1f3f3e-8c54-4a1c-9f5e-2f7a1a3b0c77";
    for changes in [json!({}), json!({}), json!({ "id": fixed }), json!({ "id": fixed })] {
        let id = lab.create(changes).await;
        lab.becomes(&id, "enrolling").await;
        let mut drawn = Vec::new();
        for user in &users {
            lab.hello(user, json!({})).await;
            drawn.push(lab.asks(user).await);
        }
        lab.call("DELETE", &format!("/experiments/{id}"), None, Value::Null).await;
        draws.push(drawn);
    }
    assert_ne!(draws[0], draws[1], "another experiment, another draw");
    assert_eq!(draws[2], draws[3], "deleted and created again under its id");
}

/// Run 03: unit × consistency × exclude-if-reached × post rule, seen by five students in three phases.
#[tokio::test]
async fn consistency_early_visitors_and_post_rules_combine_as_recorded() {
    let recorded = run("03-consistency-exclude-if-reached-post-rule.json");
    let runs = recorded["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 30);
    let http = http();
    for run in runs {
        plays_three_phases(&Lab::asked_by(&http).await, run).await;
    }
}

async fn plays_three_phases(lab: &Lab, run: &Value) {
    let of_group = run["assignmentUnit"] == "group";
    let thirds =
        [("control", 33.3), ("variant", 33.3), ("concrete", 33.4)].map(|(code, weight)| (code.to_owned(), weight));
    let id = lab
        .create(json!({
            "assignmentUnit": run["assignmentUnit"], "consistencyRule": run["consistencyRule"],
            "group": if of_group { json!("schoolId") } else { Value::Null },
            "conditions": weighted(&thirds), "partitions": points(run["excludeIfReached"] == true),
        }))
        .await;
    let concrete = lab.conditions(&id).await.into_iter().find(|it| it["conditionCode"] == "concrete").unwrap();
    let named = run["revertTo"] == "concrete";
    let revert_to = if named { concrete["id"].clone() } else { Value::Null };
    lab.update(&id, json!({ "postExperimentRule": run["postExperimentRule"], "revertTo": revert_to })).await;

    let what = format!(
        "{} unit, {} rule, {}, {} {}",
        run["assignmentUnit"],
        run["consistencyRule"],
        run["excludeIfReached"],
        run["postExperimentRule"],
        run["revertTo"]
    );
    let mut while_enrolling = BTreeMap::new();
    for phase in ["inactive", "enrolling", "enrollmentComplete"] {
        if phase != "inactive" {
            lab.becomes(&id, phase).await;
        }
        for student in ["student-1", "student-2", "student-3", "student-4", "student-5"] {
            let Some(recorded) = run["seen"][student][phase].as_str() else { continue };
            let school = run["groups"][student].as_str().unwrap();
            let groups = json!({ "group": { "schoolId": [school] }, "workingGroup": { "schoolId": school } });
            lab.hello(student, groups).await;
            let given = lab.visits(student).await;
            let what = format!("{student}, {phase}: {what}");
            assert_eq!(given.is_none(), recorded.starts_with("default"), "{what}: {given:?}, not {recorded}");
            let Some(given) = given else { continue };
            let key = if of_group { school } else { student };
            if phase == "enrollmentComplete" && named {
                assert_eq!(given, "concrete", "{what}");
            } else {
                let first = while_enrolling.entry(key.to_owned()).or_insert_with(|| given.clone());
                assert_eq!(given, *first, "{what}: the condition stays");
            }
        }
    }
    let stats = lab.stats(&id).await;
    for count in ["users", "groups", "usersExcluded", "groupsExcluded"] {
        assert_eq!(stats[count], run["stats_detail"][count], "{count}: {what}");
    }
}

/// Runs 04 and 05: a class draws once, and only for users with a valid working group.
#[tokio::test]
async fn a_group_unit_needs_a_working_group_and_gives_it_one_condition() {
    let lab = Lab::start().await;
    let unit = json!({ "assignmentUnit": "group", "consistencyRule": "group", "group": "classId" });
    let id = lab.create(unit).await;
    lab.becomes(&id, "enrolling").await;
    let mut given = BTreeMap::<String, Vec<String>>::new();
    for class in 0..12 {
        for seat in 0..3 {
            let (user, class) = (format!("u-{class}-{seat}"), format!("class-{class}"));
            lab.hello(&user, json!({ "group": { "classId": [class] }, "workingGroup": { "classId": class } })).await;
            given.entry(class).or_default().extend(lab.visits(&user).await);
        }
    }
    assert!(given.values().all(|codes| codes.len() == 3 && codes.iter().all(|code| *code == codes[0])), "{given:?}");
    let odd = [
        json!({}),
        json!({ "group": { "classId": ["c"] } }),
        json!({ "group": { "classId": ["c"] }, "workingGroup": { "classId": "other" } }),
        json!({ "group": { "schoolId": ["s"] }, "workingGroup": { "schoolId": "s" } }),
    ];
    for (at, groups) in odd.into_iter().enumerate() {
        let user = format!("odd-{at}");
        lab.hello(&user, groups).await;
        assert_eq!(lab.visits(&user).await, None);
    }
    let stats = lab.stats(&id).await;
    assert_eq!(json!([stats["users"], stats["groups"], stats["usersExcluded"]]), json!([36, 12, 4]));
}

/// Run 06: a user changes class in the middle.
#[tokio::test]
async fn moving_to_another_class_follows_the_rule() {
    for (rule, keeps) in [("group", false), ("individual", true), ("experiment", false)] {
        let lab = Lab::start().await;
        let id = lab
            .create(
                json!({ "assignmentUnit": "group", "consistencyRule": rule, "group": "classId", "id": fixed_id(6) }),
            )
            .await;
        lab.becomes(&id, "enrolling").await;
        let classes: Vec<_> = (0..20).map(|class| format!("class-{class}")).collect();
        let acts_in = |class: &str| json!({ "group": { "classId": classes }, "workingGroup": { "classId": class } });
        let mut of = BTreeMap::new();
        for class in &classes {
            lab.hello("scout", acts_in(class)).await;
            of.entry(lab.asks("scout").await.unwrap()).or_insert_with(|| class.clone());
        }
        lab.hello("mover", acts_in(&of["control"])).await;
        assert_eq!(lab.visits("mover").await.as_deref(), Some("control"));
        lab.hello("mover", acts_in(&of["variant"])).await;
        let after = lab.visits("mover").await;
        assert_eq!(after.as_deref(), Some(if keeps { "control" } else { "variant" }), "rule {rule}");
    }
}

/// Run 07: weights changed while running.
#[tokio::test]
async fn changed_weights_move_only_those_who_never_marked() {
    let lab = Lab::start().await;
    let all_control = weighted(&[("control".to_owned(), 100.0), ("variant".to_owned(), 0.0)]);
    let id = lab.create(json!({ "conditions": all_control })).await;
    lab.becomes(&id, "enrolling").await;
    for user in ["m1", "m2"] {
        lab.hello(user, json!({})).await;
        assert_eq!(lab.asks(user).await.as_deref(), Some("control"));
    }
    lab.marks("m1").await;
    let mut conditions = lab.conditions(&id).await;
    for condition in &mut conditions {
        condition["assignmentWeight"] = json!(if condition["conditionCode"] == "control" { 0 } else { 100 });
    }
    lab.update(&id, json!({ "conditions": conditions })).await;
    assert_eq!(lab.asks("m1").await.as_deref(), Some("control"));
    assert_eq!(lab.asks("m2").await.as_deref(), Some("variant"));
}

/// Run 08: what an enrolled user and one who only asked are told in each status.
#[tokio::test]
async fn each_status_answers_as_recorded() {
    let lab = Lab::start().await;
    let id = lab.create(json!({})).await;
    for user in ["s1", "s2"] {
        lab.hello(user, json!({})).await;
    }
    for (at, step) in run("08-what-assign-answers-in-each-state.json")["steps"].as_array().unwrap().iter().enumerate() {
        lab.becomes(&id, step["state"].as_str().unwrap()).await;
        if at == 0 {
            lab.marks("s1").await;
        }
        let told = |user: &str| step[user].is_string();
        assert_eq!(lab.asks("s1").await.is_some(), told("enrolled user s1"), "{step}");
        assert_eq!(lab.asks("s2").await.is_some(), told("assigned-only user s2"), "{step}");
    }
}

/// Run 09: 24 cases of inclusion and exclusion.
#[tokio::test]
async fn lists_and_filter_mode_combine_as_recorded() {
    let user = json!({ "individualForSegment": [{ "userId": "x" }] });
    let class = json!({ "groupForSegment": [{ "type": "classId", "groupId": "c1" }] });
    let all = json!({ "groupForSegment": [{ "type": "All", "groupId": "All" }] });
    let none = || json!({});
    let usual = json!({ "group": { "classId": ["c1"] }, "workingGroup": { "classId": "c1" } });
    let http = http();
    for row in run("09-inclusion-and-exclusion.json")["rows"].as_array().unwrap() {
        let (included, excluded) = match row["case"].as_str().unwrap() {
            "no lists" => (none(), none()),
            "user on include list" => (user.clone(), none()),
            "user on exclude list" => (none(), user.clone()),
            "user on both lists" => (user.clone(), user.clone()),
            "group on exclude list" => (none(), class.clone()),
            "group on both lists" => (class.clone(), class.clone()),
            "user on include list, group on exclude list" => (user.clone(), class.clone()),
            "group on include list, user on exclude list" => (class.clone(), user.clone()),
            "All/All group on include list" => (all.clone(), none()),
            case if case.contains("include list") => (class.clone(), none()),
            case => panic!("new case `{case}`"),
        };
        let member = match row["case"].as_str().unwrap() {
            "group (not working group) on include list" => {
                json!({ "group": { "classId": ["c1", "c2"] }, "workingGroup": { "classId": "c2" } })
            }
            "working group only, group list empty, on include list" => json!({ "workingGroup": { "classId": "c1" } }),
            _ => usual.clone(),
        };
        let list = |members: Value| match members.as_object().unwrap().is_empty() {
            true => json!([]),
            false => json!([{ "segment": with(members, json!({ "type": "private" })) }]),
        };
        let lab = Lab::asked_by(&http).await;
        let id = lab
            .create(json!({
                "filterMode": row["filterMode"], "conditions": weighted(&[("variant".to_owned(), 100.0)]),
                "experimentSegmentInclusion": list(included), "experimentSegmentExclusion": list(excluded),
            }))
            .await;
        lab.becomes(&id, "enrolling").await;
        lab.hello("x", member).await;
        assert_eq!(json!(lab.visits("x").await), row["assigned"], "{row}");
        let stats = lab.stats(&id).await;
        assert_eq!(stats["users"], row["usersEnrolled"], "{row}");
        assert_eq!(stats["usersExcluded"], row["usersExcluded"], "{row}");
    }
}

/// Run 10: the global exclude segment of a context.
#[tokio::test]
async fn the_global_exclude_segment_beats_everything() {
    let lab = Lab::start().await;
    let global = lab.call("GET", "/segments/global", None, Value::Null).await;
    let own = global.as_array().unwrap().iter().find(|it| it["context"] == "assign-prog").unwrap();
    let banned = json!({
        "id": own["id"], "name": "Global Exclude", "context": "assign-prog", "type": "global_exclude",
        "userIds": ["banned"], "groups": [], "subSegmentIds": [],
    });
    lab.call("POST", "/segments", None, banned).await;
    let included = json!([{ "segment": { "type": "private", "individualForSegment": [{ "userId": "banned" }] } }]);
    let id = lab.create(json!({ "experimentSegmentInclusion": included })).await;
    lab.becomes(&id, "enrolling").await;
    for user in ["banned", "free"] {
        lab.hello(user, json!({})).await;
    }
    assert_eq!(lab.asks("banned").await, None);
    assert!(lab.asks("free").await.is_some());
}

/// Run 11: the experiment pauses itself at the third participant.
#[tokio::test]
async fn an_ending_criterion_pauses_the_experiment() {
    let lab = Lab::start().await;
    let id = lab.create(json!({ "enrollmentCompleteCondition": { "userCount": 3 } })).await;
    lab.becomes(&id, "enrolling").await;
    for step in run("11-ending-criterion-user-count.json")["steps"].as_array().unwrap() {
        let user = step["user"].as_str().unwrap();
        lab.hello(user, json!({})).await;
        assert_eq!(lab.visits(user).await.is_some(), step["condition"].is_string(), "{step}");
        let single = lab.call("GET", &format!("/experiments/single/{id}"), None, Value::Null).await;
        assert_eq!(single["state"], step["state_after"], "{step}");
        let logs = single["stateTimeLogs"].as_array().unwrap();
        let logs: Vec<_> = logs.iter().map(|log| json!([log["fromState"], log["toState"]])).collect();
        assert_eq!(json!(logs), step["logs"], "{step}");
    }
}

/// Runs 12 and 13: one condition for all points of an experiment, one experiment for each user of a point.
#[tokio::test]
async fn points_share_a_condition_and_experiments_share_the_users() {
    let lab = Lab::start().await;
    let two = json!([
        { "id": "p", "site": "SelectSection", "target": "area_model", "order": 1, "excludeIfReached": false },
        { "id": "q", "site": "SelectProblem", "target": "area_model", "order": 2, "excludeIfReached": false },
    ]);
    let id = lab.create(json!({ "partitions": two })).await;
    lab.becomes(&id, "enrolling").await;
    for user in 0..10 {
        let user = format!("p-{user}");
        lab.hello(&user, json!({})).await;
        let told = lab.asks_everywhere(&user).await;
        assert!(told.len() == 2 && told[0] == told[1], "{told:?}");
    }
    lab.becomes(&id, "cancelled").await;

    for (number, code) in ["control", "variant"].into_iter().enumerate() {
        let id =
            lab.create(json!({ "id": fixed_id(number), "conditions": weighted(&[(code.to_owned(), 100.0)]) })).await;
        lab.becomes(&id, "enrolling").await;
    }
    let mut control = 0;
    for user in 0..60 {
        let user = format!("s-{user}");
        lab.hello(&user, json!({})).await;
        let told = lab.asks_everywhere(&user).await;
        assert_eq!(told.len(), 1, "only one of the two");
        control += u32::from(told[0] == "control");
    }
    assert!((12..=48).contains(&control), "both get their share: {control} of 60");
}

/// Run 14: only the status call applies *exclude if reached*.
#[tokio::test]
async fn early_visitors_are_kept_out_only_by_the_status_call() {
    for (how, excluded) in [("POST /state", true), ("PUT", false), ("created running", false)] {
        let lab = Lab::start().await;
        lab.hello("early", json!({})).await;
        lab.marks("early").await;
        let state = if how == "created running" { "enrolling" } else { "inactive" };
        let id = lab.create(json!({ "state": state, "partitions": points(true) })).await;
        match how {
            "POST /state" => lab.becomes(&id, "enrolling").await,
            "PUT" => lab.update(&id, json!({ "state": "enrolling" })).await,
            _ => {}
        }
        assert_eq!(lab.asks("early").await.is_none(), excluded, "{how}");
    }
}
