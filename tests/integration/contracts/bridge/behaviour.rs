//! Behaviour that the recordings do not show: faults on demand, jobs that are held, and models that react.

use std::time::Duration;

use countersign_sandbox::bridge::{Backend, Bridge, CRITICAL, Fault, Options, Own, Role, Version};
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};

const DEMO: &str = "/data/models/demo.pkml";

/// A caller with one token, who confirms what it calls.
struct Caller<'a> {
    bridge: &'a Bridge,
    http: reqwest::Client,
    token: String,
}

impl<'a> Caller<'a> {
    fn of(bridge: &'a Bridge) -> Self {
        // A second installation is refused, which is fine: the first one is the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().timeout(Duration::from_secs(20)).build().unwrap();
        Self { bridge, http, token: bridge.token(Role::Operator) }
    }

    async fn posts(&self, path: &str, body: Value) -> Result<Response, reqwest::Error> {
        let request = self.http.post(format!("{}{path}", self.bridge.url())).bearer_auth(&self.token);
        request.header("X-MCP-Confirm", "true").json(&body).send().await
    }

    async fn calls(&self, path: &str, body: Value) -> Value {
        let response = self.posts(path, body).await.unwrap();
        assert!(response.status().is_success(), "{path}: {}", response.text().await.unwrap());
        response.json().await.unwrap()
    }

    async fn status_of(&self, path: &str, body: Value) -> StatusCode {
        self.posts(path, body).await.unwrap().status()
    }

    /// Returns true if a request is left without an answer.
    async fn waits_in_vain(&self, path: &str, body: Value) -> bool {
        let request = self.http.post(format!("{}{path}", self.bridge.url())).bearer_auth(&self.token);
        let request = request.header("X-MCP-Confirm", "true").json(&body).timeout(Duration::from_millis(500));
        request.send().await.is_err_and(|error| error.is_timeout())
    }

    async fn gets(&self, path: &str) -> Result<Response, reqwest::Error> {
        self.http.get(format!("{}{path}", self.bridge.url())).bearer_auth(&self.token).send().await
    }

    /// Calls a tool through `call_tool`.
    async fn tool(&self, tool: &str, arguments: Value) -> Value {
        let body = json!({ "tool": tool, "arguments": arguments, "critical": true });
        self.calls("/mcp/call_tool", body).await["structuredContent"].clone()
    }

    async fn loads(&self, id: &str) {
        self.calls("/load_simulation", json!({ "filePath": DEMO, "simulationId": id })).await;
    }

    async fn sets(&self, id: &str, path: &str, value: f64, unit: &str) {
        let body = json!({ "simulationId": id, "parameterPath": path, "value": value, "unit": unit });
        self.calls("/set_parameter_value", body).await;
    }

    /// Runs a simulation to its end and returns its highest concentration.
    async fn peak(&self, id: &str, run: &str) -> f64 {
        self.calls("/run_simulation", json!({ "simulationId": id, "runId": run })).await;
        self.bridge.finish_jobs();
        let answer = self.calls("/calculate_pk_parameters", json!({ "resultsId": run })).await;
        answer["metrics"][0]["cmax"].as_f64().unwrap()
    }

    async fn job(&self, id: &str) -> Value {
        self.calls("/get_job_status", json!({ "jobId": id })).await
    }
}

#[tokio::test]
async fn curves_react_to_what_was_set() {
    for version in [Version::V01, Version::V05] {
        let bridge = Bridge::start(version).await;
        let caller = Caller::of(&bridge);
        caller.loads("demo").await;
        let usual = caller.peak("demo", "r1").await;
        caller.sets("demo", "Dose", 200.0, "mg").await;
        let doubled = caller.peak("demo", "r2").await;
        assert!((doubled / usual - 2.0).abs() < 1e-4, "{usual} {doubled}");
        caller.sets("demo", "Organism|Weight", 90.0, "kg").await;
        let diluted = caller.peak("demo", "r3").await;
        assert!(diluted < doubled * 0.9, "{doubled} {diluted}");
        assert_eq!(bridge.parameter("demo", "Dose"), Some((200.0, "mg".to_owned())));
    }
}

#[tokio::test]
async fn a_held_job_waits_and_runs_with_what_stood_at_its_start() {
    let bridge = Bridge::start(Version::V01).await;
    let caller = Caller::of(&bridge);
    caller.loads("demo").await;
    let usual = caller.peak("demo", "before").await;
    bridge.hold_jobs();
    let run = |id: &'static str| caller.calls("/run_simulation", json!({ "simulationId": "demo", "runId": id }));
    let first = run("a").await["jobId"].as_str().unwrap().to_owned();
    run("b").await;
    let third = run("c").await["jobId"].as_str().unwrap().to_owned();
    assert_eq!(caller.job(&first).await["status"], "running");
    assert_eq!(caller.job(&third).await["status"], "queued", "there are two workers");
    caller.sets("demo", "Dose", 200.0, "mg").await;
    assert_eq!(bridge.finish_next_job(), Some(first.clone()));
    assert_eq!(caller.job(&first).await["resultHandle"], json!({ "resultsId": "a" }));
    assert_eq!(caller.job(&third).await["status"], "running");
    bridge.finish_jobs();
    assert!(bridge.jobs().iter().all(|(_, state)| state == "succeeded"));
    let peak = async |id: &str| {
        let answer = caller.calls("/calculate_pk_parameters", json!({ "resultsId": id })).await;
        answer["metrics"][0]["cmax"].as_f64().unwrap()
    };
    assert_eq!(peak("a").await, usual);
    assert!((peak("c").await / usual - 2.0).abs() < 1e-4, "the third began after the change");
}

#[tokio::test]
async fn each_fault_happens_to_the_request_it_was_meant_for() {
    let bridge = Bridge::start(Version::V05).await;
    let caller = Caller::of(&bridge);
    caller.loads("demo").await;
    let read = || caller.posts("/list_parameters", json!({ "simulationId": "demo" }));
    for status in [401, 403, 409, 429, 500, 502, 503, 504] {
        bridge.fail_next(Fault::Status(status));
        let response = read().await.unwrap();
        assert_eq!(response.status().as_u16(), status);
        assert_eq!(response.headers().contains_key("connection"), status == 500);
        let body: Value = response.json().await.unwrap();
        assert_eq!(body["error"]["retryable"], matches!(status, 502 | 504));
        assert!(read().await.unwrap().status().is_success(), "it happens once");
    }
    bridge.fail_next(Fault::Proxy(502));
    assert!(read().await.unwrap().text().await.unwrap().starts_with("<html>"));

    bridge.fail_next_on("set_parameter_value", Fault::LostAnswer);
    assert!(read().await.unwrap().status().is_success(), "another request");
    let set = |value: u32| json!({ "simulationId": "demo", "parameterPath": "Dose", "value": value, "unit": "mg" });
    assert!(caller.posts("/set_parameter_value", set(150)).await.is_err());
    assert_eq!(bridge.parameter("demo", "Dose"), Some((150.0, "mg".to_owned())), "it was done");
    bridge.fail_next(Fault::LostRequest);
    assert!(caller.posts("/set_parameter_value", set(160)).await.is_err());
    bridge.fail_next(Fault::Hang);
    assert!(caller.waits_in_vain("/set_parameter_value", set(170)).await);
    assert_eq!(bridge.parameter("demo", "Dose"), Some((150.0, "mg".to_owned())), "nothing was done");

    bridge.fail_next(Fault::Flood { status: 200, pause_ms: 0 });
    let mut huge = read().await.unwrap();
    for _ in 0..100 {
        assert!(!huge.chunk().await.unwrap().unwrap().is_empty());
    }
    drop(huge);

    bridge.fail_next(Fault::Own(Own::Restart));
    assert_eq!(read().await.unwrap().status(), 404, "the simulation is forgotten");
    bridge.fail_next(Fault::Own(Own::Stall));
    assert!(caller.waits_in_vain("/list_parameters", json!({ "simulationId": "demo" })).await);
    assert!(caller.waits_in_vain("/health", json!({})).await, "nothing at all is answered");
    bridge.restart().await;
    assert!(caller.gets("/health").await.unwrap().status().is_success());
}

#[tokio::test]
async fn a_stream_is_cut_or_broken_and_the_status_still_tells_the_end() {
    let bridge = Bridge::start(Version::V05).await;
    let caller = Caller::of(&bridge);
    caller.loads("demo").await;
    bridge.hold_jobs();
    let started = caller.calls("/run_simulation", json!({ "simulationId": "demo", "runId": "r" })).await;
    let id = started["jobId"].as_str().unwrap();
    let events = format!("/jobs/{id}/events");

    bridge.fail_next(Fault::Own(Own::CutStream));
    let text = caller.gets(&events).await.unwrap().text().await.unwrap();
    assert!(text.contains("\"running\"") && text.matches("data: ").count() == 1, "{text}");

    let mut stream = caller.gets(&events).await.unwrap();
    assert!(stream.chunk().await.unwrap().is_some());
    bridge.restart().await;
    assert!(stream.chunk().await.is_err(), "the line breaks");
    let job = caller.job(id).await;
    assert_eq!(job["status"], "failed");
    assert_eq!(job["error"]["message"], "Job service restarted before completion");

    bridge.fail_next(Fault::Own(Own::CutStream));
    assert_eq!(caller.gets(&events).await.unwrap().text().await.unwrap(), "");
}

#[tokio::test]
async fn jobs_and_snapshots_outlast_the_process_and_simulations_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let options = || {
        let (persist, ledger_file) = (folder.path().join("bridge.json"), folder.path().join("bridge.jsonl"));
        Options { persist: Some(persist), ledger_file: Some(ledger_file), ..Options::quick(Version::V05) }
    };
    let bridge = Bridge::with(options()).await.unwrap();
    let caller = Caller::of(&bridge);
    caller.loads("demo").await;
    caller.sets("demo", "Dose", 150.0, "mg").await;
    caller.peak("demo", "done").await;
    bridge.hold_jobs();
    let call = json!({
        "tool": "run_simulation", "arguments": { "simulationId": "demo" }, "critical": true, "idempotencyKey": "k",
    });
    let started = caller.calls("/mcp/call_tool", call.clone()).await["structuredContent"].clone();
    drop(bridge);

    let bridge = Bridge::with(options()).await.unwrap();
    let caller = Caller::of(&bridge);
    let states: Vec<String> = bridge.jobs().into_iter().map(|(_, state)| state).collect();
    assert_eq!(states, ["succeeded", "failed"]);
    let again = caller.calls("/mcp/call_tool", call).await["structuredContent"].clone();
    assert_eq!(again["jobId"], started["jobId"], "the key is remembered");
    assert_eq!(bridge.simulations(), [] as [&str; 0]);
    caller.loads("demo").await;
    caller.calls("/restore_simulation", json!({ "simulationId": "demo" })).await;
    assert_eq!(bridge.parameter("demo", "Dose"), Some((100.0, "mg".to_owned())));
    let ledger = std::fs::read_to_string(folder.path().join("bridge.jsonl")).unwrap();
    let lines: Vec<Value> = ledger.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().all(|line| line["status"].is_number()));
    assert_eq!(lines.iter().filter(|line| line["tool"] == "load_simulation").count(), 2);
}

#[tokio::test]
async fn the_audit_holds_every_critical_call_with_its_caller_and_its_digest() {
    let bridge = Bridge::start(Version::V05).await;
    let caller = Caller::of(&bridge);
    let ana = json!({ "sub": "ana", "roles": ["operator"], "exp": 4_000_000_000_u64 });
    let ana = Caller { token: bridge.signed(&ana), ..Caller::of(&bridge) };
    ana.loads("demo").await;
    let arguments = json!({ "simulationId": "demo", "runId": "r" });
    ana.tool("run_simulation", arguments.clone()).await;
    let bare = caller.http.post(format!("{}/run_simulation", bridge.url())).bearer_auth(&caller.token);
    assert_eq!(bare.json(&arguments).send().await.unwrap().status(), 428);
    caller.tool("list_parameters", json!({ "simulationId": "demo" })).await;

    let audit = bridge.audit();
    let told: Vec<_> =
        audit.iter().map(|call| (call.tool.as_str(), call.subject.as_str(), call.confirmed, call.done)).collect();
    let expected = [
        ("load_simulation", "ana", true, true),
        ("run_simulation", "ana", true, true),
        ("run_simulation", "alice", false, false),
    ];
    assert_eq!(told, expected);
    assert!(told.iter().all(|(tool, ..)| CRITICAL.contains(tool)));
    assert_eq!(audit[1].digest, audit[2].digest, "the same arguments");
    assert_eq!(audit[1].arguments, arguments);

    let requests = bridge.requests();
    let confirmed: Vec<_> = requests.iter().filter(|own| own.says_confirmed()).collect();
    assert_eq!(confirmed.len(), 3, "a read that is confirmed stands out");
    assert_eq!(confirmed[1].tool.as_deref(), Some("run_simulation"));
    assert_eq!((confirmed[1].subject.as_deref(), confirmed[1].status), (Some("ana"), Some(200)));
    let trail = bridge.trail();
    assert!(trail.windows(2).all(|pair| pair[1]["previousHash"] == pair[0]["hash"]));
}

#[tokio::test]
async fn populations_and_sensitivities_are_worked_out_with_the_model() {
    let bridge = Bridge::start(Version::V05).await;
    let caller = Caller::of(&bridge);
    caller.loads("demo").await;
    let cohort =
        |seed: u32| json!({ "simulationId": "demo", "modelPath": DEMO, "cohort": { "size": 45, "seed": seed } });
    let population = async |seed: u32| {
        let job = caller.tool("run_population_simulation", cohort(seed)).await["jobId"].clone();
        bridge.finish_jobs();
        let job = caller.job(job.as_str().unwrap()).await;
        caller.tool("get_population_results", json!({ "resultsId": job["resultHandle"]["resultsId"] })).await
    };
    let one = population(7).await;
    assert_eq!(one["aggregates"], population(7).await["aggregates"]);
    assert_ne!(one["aggregates"], population(8).await["aggregates"]);
    assert_eq!(one["chunks"].as_array().unwrap().len(), 3, "45 subjects, 20 in a chunk");
    let last = caller.gets(one["chunks"][2]["uri"].as_str().unwrap()).await.unwrap();
    let last: Value = last.json().await.unwrap();
    assert_eq!(last["series"].as_array().unwrap().len(), 5);
    let of = |name: &str| one["aggregates"][name].as_f64().unwrap();
    assert!(of("p05Cmax") < of("medianCmax") && of("medianCmax") < of("p95Cmax"));

    let arguments = json!({
        "modelPath": DEMO, "simulationId": "demo",
        "parameters": [{ "path": "Organism|Liver|Clearance", "deltas": [-0.5, 0.5] }],
    });
    let report = caller.tool("run_sensitivity_analysis", arguments).await["report"].clone();
    let change = |at: usize| report["scenarios"][at]["delta_percent"]["VenousBlood|Plasma|Concentration"].clone();
    assert!(change(1)["auc"].as_f64().unwrap() > 20.0, "{report:#}");
    assert!(change(2)["auc"].as_f64().unwrap() < -10.0);
    assert_eq!(bridge.simulations(), ["demo", "demo__sens_1", "demo__sens_2"]);
}

#[tokio::test]
async fn a_sensitivity_run_answers_when_the_held_jobs_are_let_go() {
    let bridge = Bridge::start(Version::V01).await;
    let caller = Caller::of(&bridge);
    caller.loads("demo").await;
    bridge.hold_jobs();
    let arguments = json!({
        "modelPath": DEMO, "simulationId": "demo", "parameters": [{ "path": "Dose", "deltas": [1.0] }],
    });
    let call = caller.tool("run_sensitivity_analysis", arguments);
    let release = async {
        while bridge.jobs().is_empty() {
            tokio::task::yield_now().await;
        }
        bridge.finish_jobs();
    };
    let (answer, ()) = tokio::join!(call, release);
    assert_eq!(answer["report"]["failures"], json!([]));
}

#[tokio::test]
async fn the_newer_version_finds_models_and_checks_them() {
    let bridge = Bridge::start(Version::V05).await;
    let caller = Caller::of(&bridge);
    let found = caller.tool("discover_models", json!({})).await;
    assert_eq!(found["total"], 3);
    for (at, model) in found["items"].as_array().unwrap().iter().enumerate() {
        let id = format!("m{at}");
        caller.calls("/load_simulation", json!({ "filePath": model["filePath"], "simulationId": id })).await;
        let listed = caller.calls("/list_parameters", json!({ "simulationId": id })).await;
        assert!((10..=20).contains(&listed["parameters"].as_array().unwrap().len()));
        let checked = caller.tool("run_parameter_consistency_check", json!({ "simulationId": id })).await;
        assert_eq!(checked["ok"], true, "{checked:#}");
        assert!(caller.peak(&id, &id).await > 0.1);
    }
    let loaded = caller.tool("discover_models", json!({ "search": "theophylline" })).await;
    assert_eq!(loaded["items"][0]["isLoaded"], true);
    bridge.changes("m0", "Organism|Liver|Volume", 80.0);
    let checked = caller.tool("run_parameter_consistency_check", json!({ "simulationId": "m0" })).await;
    assert_eq!(checked["violationCount"], 1);
    for (tool, more) in [
        ("validate_simulation_request", json!({})),
        ("run_verification_checks", json!({})),
        ("export_oecd_report", json!({ "parameterLimit": 5 })),
    ] {
        let mut arguments = more;
        arguments["simulationId"] = json!("m1");
        assert_eq!(caller.tool(tool, arguments).await["simulationId"], "m1");
    }
}

#[tokio::test]
async fn the_older_version_speaks_no_mcp_and_the_limit_counts_calls_with_a_token() {
    let options = Options { version: Version::V01, rate_limit: 2, backend: Backend::Demo, ..Options::default() };
    let bridge = Bridge::with(options).await.unwrap();
    let caller = Caller::of(&bridge);
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize" });
    assert_eq!(caller.status_of("/mcp", ping).await, 404);
    assert!(caller.gets("/health").await.unwrap().status().is_success());
    caller.loads("demo").await;
    let read = json!({ "simulationId": "demo" });
    assert_eq!(caller.status_of("/list_parameters", read.clone()).await, 200);
    assert_eq!(caller.status_of("/list_parameters", read).await, 429);
    assert!(caller.gets("/health").await.unwrap().status().is_success());
}
