//! Every error that was recorded of a call the bot makes, and the sentence it leads to: one that a researcher can act on,
//! without anything that only the server's developers could read.

use std::{collections::BTreeMap, fs, path::PathBuf};

use countersign::graph::action::{Outcome, Performed};
use countersign_sandbox::{faults::Fault, upgrade::Version};
use insta::assert_snapshot;
use serde_json::{Value, json};

use super::Bench;

/// What a recorded request is for us: the action that sends such a one, and what is asked of it.
fn ours(method: &str, path: &str) -> Option<(&'static str, Value)> {
    let hints = "Math Hints";
    let (_, path) = path.split_once("/api/")?;
    Some(match (method, path) {
        ("POST", "experiments") => (
            "create_experiment",
            json!({ "name": "New", "context": "assign-prog", "site": "SelectSection", "target": "area_model" }),
        ),
        ("POST", "experiments/state") => {
            ("update_experiment_status", json!({ "experiment": hints, "status": "start" }))
        }
        ("POST", "experiments/inclusionList") => {
            ("update_experiment", json!({ "experiment": hints, "inclusion": ["u9"] }))
        }
        ("POST", "experiments/exclusionList") => {
            ("update_experiment", json!({ "experiment": hints, "exclusion": ["u9"] }))
        }
        ("PUT", list) if list.starts_with("experiments/inclusionList/") => {
            ("update_experiment", json!({ "experiment": "Listed", "add_to_inclusion": ["u9"] }))
        }
        ("DELETE", list) if list.starts_with("experiments/inclusionList/") => {
            ("update_experiment", json!({ "experiment": "Listed", "remove_from_inclusion": ["u1"] }))
        }
        ("PUT", "experiments/state") => return None,
        ("PUT", one) if one.starts_with("experiments/") => {
            ("update_experiment", json!({ "experiment": hints, "weights": "70/30" }))
        }
        ("DELETE", one) if one.starts_with("experiments/") => ("delete_experiment", json!({ "experiment": hints })),
        ("POST", "v6/init") => ("init_experiment_user", json!({ "user": "u9" })),
        ("POST", "v6/assign") => ("get_decision_point_assignments", json!({ "user": "u1", "context": "assign-prog" })),
        ("POST", "v6/mark") => (
            "mark_decision_point",
            json!({ "user": "u1", "context": "assign-prog", "site": "SelectSection", "target": "absolute_value_plot_equality", "experiment": hints }),
        ),
        _ => return None,
    })
}

/// The recorded errors of one version, by name: request and response.
fn recorded(version: &str) -> BTreeMap<String, (Value, Value)> {
    let folder = PathBuf::from("tests/fixtures/upgrade").join(version);
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: PathBuf| {
        let recording: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (name, (recording["request"].clone(), recording["response"].clone()))
    };
    files.map(read).filter(|(_, (_, response))| response["status"].as_u64() >= Some(400)).collect()
}

/// What people read after the platform answered so.
async fn sentence(bench: &Bench, request: &Value, response: &Value) -> Option<String> {
    let (method, path) = (request["method"].as_str()?, request["path"].as_str()?);
    let (name, parameters) = ours(method, path)?;
    let record = bench.approved(name, parameters).await;
    let known = ["api", "experiments", "state", "inclusionList", "exclusionList", "v6", "init", "assign", "mark"];
    let sent = path.split('/').filter(|part| part.is_empty() || known.contains(part)).collect::<Vec<_>>().join("/");
    let status = u16::try_from(response["status"].as_u64()?).unwrap();
    let body = response["body"].clone();
    // From 6.3 on the bot asks what is wrong with a body: the platform would say it of the body that was recorded.
    let mut explained = None;
    if status == 400 && request["body"].is_object() && path.ends_with("/experiments") {
        let files = json!([{ "fileName": "a.json", "fileContent": request["body"].to_string() }]);
        let asked = crate::contracts::upgrade::replay::http()
            .post(format!("{}/experiments/validation", bench.upgrade.url()))
            .json(&files);
        let body: Value = asked.bearer_auth("token").send().await.unwrap().json().await.unwrap();
        explained = Some(body);
    }
    let fault = if body.is_string() { Fault::Proxy(status) } else { Fault::Answer(status, body) };
    bench.upgrade.will(&format!("{method} {sent}"), fault);
    if let Some(body) = explained {
        bench.upgrade.will("POST /api/experiments/validation", Fault::Answer(200, body));
    }
    let outcome = match bench.action(name).perform(&record).await {
        Performed::Ended(outcome) => outcome,
        other => panic!("{method} {path} {status}: {other:?}"),
    };
    assert!(!matches!(outcome, Outcome::Done { .. }), "{method} {path} {status} is no success");
    Some(format!("{name}: {}", outcome.summary().words()))
}

/// Each sentence with the recordings that lead to it.
async fn sentences(version: Version, folder: &str) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, (request, response)) in recorded(folder) {
        let bench = Bench::start(version).await;
        bench.upgrade.has("Math Hints", "inactive");
        bench.upgrade.has("Listed", "inactive");
        bench.does("init_experiment_user", json!({ "user": "u1" })).await;
        bench.does("update_experiment", json!({ "experiment": "Listed", "inclusion": ["u1"] })).await;
        if let Some(sentence) = sentence(&bench, &request, &response).await {
            all.entry(sentence).or_default().push(name.split('-').next().unwrap().to_owned());
        }
    }
    all
}

/// Words that nobody but a developer of the platform could use.
const NOT_FOR_PEOPLE: [&str; 13] = [
    "errors'",
    "property",
    "uuid",
    "UUID",
    "null",
    "undefined",
    "constraint",
    "Query",
    "{",
    "jwt",
    "partitions",
    "Cannot",
    "CONTEXT_METADATA",
];

/// Refuses sentences that nobody could act on.
fn worth_reading(all: &BTreeMap<String, Vec<String>>) {
    for sentence in all.keys() {
        for word in NOT_FOR_PEOPLE {
            assert!(!sentence.contains(word), "“{word}” is not for people: {sentence}");
        }
        assert!(
            [
                "nothing was changed",
                "Nothing was changed",
                "Check in UpGrade",
                "I couldn't check whether anything changed",
                "Initialize the user"
            ]
            .iter()
            .any(|part| sentence.contains(part)),
            "what became of it? {sentence}"
        );
    }
}

fn listed(all: &BTreeMap<String, Vec<String>>) -> String {
    all.iter()
        .map(|(sentence, recordings)| format!("{sentence} [{}]", recordings.join(" ")))
        .collect::<Vec<_>>()
        .join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_recorded_error_of_the_newer_server_leads_to_a_sentence() {
    let all = sentences(Version::V6_5, "6.5").await;
    assert_snapshot!(listed(&all), @"
    create_experiment: UpGrade doesn't accept my credentials. I checked: nothing was changed. The app's operator needs to renew the access token. [016]
    create_experiment: UpGrade failed while handling this (a database error). I checked: nothing was changed. Try again. If it keeps failing, contact your administrator. [032 035 041 048 049 050]
    create_experiment: UpGrade failed while handling this (an internal error). I checked: nothing was changed. Try again. If it keeps failing, contact your administrator. [092]
    create_experiment: UpGrade rejected this without giving a reason. I checked: nothing was changed. If it happens again, contact your administrator. [054]
    create_experiment: UpGrade rejected this: a condition can't be called “default”. I checked: nothing was changed. Correct that and ask again. [085]
    create_experiment: UpGrade rejected this: an internal error. I checked: nothing was changed. Correct that and ask again. [055]
    create_experiment: UpGrade rejected this: assignment unit doesn't fit the group type. I checked: nothing was changed. Correct that and ask again. [080 081]
    create_experiment: UpGrade rejected this: assignment unit is missing. I checked: nothing was changed. Correct that and ask again. [060]
    create_experiment: UpGrade rejected this: condition order is missing. I checked: nothing was changed. Correct that and ask again. [026]
    create_experiment: UpGrade rejected this: conditions is missing. I checked: nothing was changed. Correct that and ask again. [064]
    create_experiment: UpGrade rejected this: consistency rule is missing. I checked: nothing was changed. Correct that and ask again. [059]
    create_experiment: UpGrade rejected this: context is missing. I checked: nothing was changed. Correct that and ask again. [057]
    create_experiment: UpGrade rejected this: context must be text. I checked: nothing was changed. Correct that and ask again. [075]
    create_experiment: UpGrade rejected this: context must have at least one entry. I checked: nothing was changed. Correct that and ask again. [076]
    create_experiment: UpGrade rejected this: decision points is missing. I checked: nothing was changed. Correct that and ask again. [065]
    create_experiment: UpGrade rejected this: exclude if reached of decision point 1 is missing. I checked: nothing was changed. Correct that and ask again. [073]
    create_experiment: UpGrade rejected this: filter mode is missing. I checked: nothing was changed. Correct that and ask again. [063]
    create_experiment: UpGrade rejected this: id of condition 1 is missing. I checked: nothing was changed. Correct that and ask again. [070]
    create_experiment: UpGrade rejected this: inclusion list must be a list; exclusion list must be a list. I checked: nothing was changed. Correct that and ask again. [030]
    create_experiment: UpGrade rejected this: name is missing. I checked: nothing was changed. Correct that and ask again. [056 068]
    create_experiment: UpGrade rejected this: name is missing; context is missing; status is missing; consistency rule is missing; and 7 more. I checked: nothing was changed. Correct that and ask again. [053]
    create_experiment: UpGrade rejected this: order of condition 1 is missing. I checked: nothing was changed. Correct that and ask again. [071]
    create_experiment: UpGrade rejected this: post-experiment rule is missing. I checked: nothing was changed. Correct that and ask again. [061]
    create_experiment: UpGrade rejected this: start isn't a date. I checked: nothing was changed. Correct that and ask again. [096]
    create_experiment: UpGrade rejected this: status is missing. I checked: nothing was changed. Correct that and ask again. [058]
    create_experiment: UpGrade rejected this: status isn't one of the allowed values. I checked: nothing was changed. Correct that and ask again. [052]
    create_experiment: UpGrade rejected this: tags is missing. I checked: nothing was changed. Correct that and ask again. [062]
    create_experiment: UpGrade rejected this: there is no context “Assign-Prog”. I checked: nothing was changed. Correct that and ask again. [078]
    create_experiment: UpGrade rejected this: there is no context “no-such-app”. I checked: nothing was changed. Correct that and ask again. [077]
    create_experiment: UpGrade rejected this: this server has no Mooclet, which this algorithm needs. I checked: nothing was changed. Correct that and ask again. [036]
    create_experiment: UpGrade rejected this: two-character id of condition 1 isn't valid. I checked: nothing was changed. Correct that and ask again. [095]
    create_experiment: UpGrade rejected this: type is missing. I checked: nothing was changed. Correct that and ask again. [066 097]
    create_experiment: UpGrade rejected this: weight of condition 1 must be a number. I checked: nothing was changed. Correct that and ask again. [074]
    delete_experiment: UpGrade couldn't find this: the experiment does not exist. I checked: nothing was changed. Check the name and ask again. [255 257]
    delete_experiment: UpGrade doesn't accept my credentials. I checked: nothing was changed. The app's operator needs to renew the access token. [253]
    delete_experiment: UpGrade rejected this without giving a reason. I checked: nothing was changed. If it happens again, contact your administrator. [258]
    get_decision_point_assignments: UpGrade doesn't know the user u1 yet. Initialize the user first. [424]
    get_decision_point_assignments: UpGrade rejected this without giving a reason. Nothing was changed. If it happens again, contact your administrator. [426]
    get_decision_point_assignments: UpGrade rejected this: no user was given. Nothing was changed. Correct that and ask again. [425]
    get_decision_point_assignments: UpGrade rejected this: there is no context “Assign-Prog”. Nothing was changed. Correct that and ask again. [428]
    get_decision_point_assignments: UpGrade rejected this: there is no context “no-such-app”. Nothing was changed. Correct that and ask again. [427]
    init_experiment_user: UpGrade doesn't accept my credentials. I couldn't check whether anything changed. The app's operator needs to renew the access token. [517 518 519 520 521]
    init_experiment_user: UpGrade rejected this without giving a reason. I couldn't check whether anything changed. If it happens again, contact your administrator. [408 409 410]
    init_experiment_user: UpGrade rejected this: no user was given. I couldn't check whether anything changed. Correct that and ask again. [406 407 523]
    mark_decision_point: UpGrade couldn't find this: the experiment does not have this decision point. I couldn't check whether anything changed. Check the name and ask again. [444]
    mark_decision_point: UpGrade doesn't know the user u1 yet. Initialize the user first. [449]
    mark_decision_point: UpGrade refused this: the experiment has no condition “purple”. I couldn't check whether anything changed. Correct that and ask again. [441]
    mark_decision_point: UpGrade rejected this without giving a reason. I couldn't check whether anything changed. If it happens again, contact your administrator. [445 446 447 448]
    mark_decision_point: UpGrade rejected this: no user was given. I couldn't check whether anything changed. Correct that and ask again. [450]
    update_experiment: UpGrade doesn't accept my credentials. I checked: nothing was changed. The app's operator needs to renew the access token. [240]
    update_experiment: UpGrade failed while handling this (a database error). I checked: nothing was changed. Try again. If it keeps failing, contact your administrator. [208 212 215]
    update_experiment: UpGrade failed while handling this (an internal error). I checked: nothing was changed. Try again. If it keeps failing, contact your administrator. [228 238 248 251 252]
    update_experiment: UpGrade failed while handling this (the list no longer exists). I checked: nothing was changed. Try again. If it keeps failing, contact your administrator. [250]
    update_experiment: UpGrade rejected this without giving a reason. I checked: nothing was changed. If it happens again, contact your administrator. [224 227 236 239]
    update_experiment: UpGrade rejected this: there is no context “no-such-app”. I checked: nothing was changed. Correct that and ask again. [222]
    update_experiment_status: UpGrade doesn't accept my credentials. I checked: nothing was changed. The app's operator needs to renew the access token. [312]
    update_experiment_status: UpGrade failed while handling this (an internal error). I checked: nothing was changed. Try again. If it keeps failing, contact your administrator. [310]
    update_experiment_status: UpGrade rejected this without giving a reason. I checked: nothing was changed. If it happens again, contact your administrator. [307 308 309 311 320]
    ");
    worth_reading(&all);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_recorded_error_of_the_older_server_leads_to_a_sentence() {
    let all = sentences(Version::V6_2, "6.2").await;
    assert_snapshot!(listed(&all), @"
    create_experiment: UpGrade failed while handling this (a database error). I checked: nothing was changed. Try again. If it keeps failing, contact your administrator. [004 005 007]
    create_experiment: UpGrade rejected this: inclusion list is missing; exclusion list is missing. I checked: nothing was changed. Correct that and ask again. [003]
    create_experiment: UpGrade rejected this: name is missing; context is missing; status is missing; consistency rule is missing; and 9 more. I checked: nothing was changed. Correct that and ask again. [012]
    create_experiment: UpGrade rejected this: there is no context “no-such-app”. I checked: nothing was changed. Correct that and ask again. [011]
    delete_experiment: UpGrade couldn't find this: the experiment does not exist. I checked: nothing was changed. Check the name and ask again. [039]
    get_decision_point_assignments: UpGrade doesn't know the user u1 yet. Initialize the user first. [030]
    init_experiment_user: UpGrade rejected this: no user was given. I couldn't check whether anything changed. Correct that and ask again. [031]
    update_experiment: UpGrade failed while handling this (an internal error). I checked: nothing was changed. Try again. If it keeps failing, contact your administrator. [037]
    update_experiment_status: UpGrade failed while handling this (an internal error). I checked: nothing was changed. Try again. If it keeps failing, contact your administrator. [035]
    update_experiment_status: UpGrade rejected this: status isn't one of the allowed values. I checked: nothing was changed. Correct that and ask again. [019]
    ");
    worth_reading(&all);
}
