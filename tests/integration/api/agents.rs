//! Agents, which use the API as tools: over HTTP, and through `countersign mcp` on standard input and output.

use std::{process::Stdio, sync::Arc, time::Duration};

use countersign::{
    clock::SystemClock,
    mcp_client::{Answer, Call, McpClient, Program, Remote, Settings, Way},
};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use super::{DIGEST, Programs};
use crate::support::bot::{BOUND, Setup, TestBot};

/// The program itself.
const COUNTERSIGN: &str = env!("CARGO_BIN_EXE_countersign");

fn client(way: Way, token: Option<&str>) -> McpClient {
    let settings = Settings { way, token: token.map(Into::into), timeout: BOUND, longest: 1 << 20 };
    McpClient::new(settings, Arc::new(SystemClock))
}

impl Programs {
    /// An agent that uses the server itself.
    fn over_http(&self) -> McpClient {
        let url: url::Url = format!("http://{}/mcp", self.bot.api()).parse().unwrap();
        client(Way::Http(Remote::from(url)), Some(self.secret("ci")))
    }

    /// An agent that starts `countersign mcp`.
    fn over_stdio(&self) -> McpClient {
        let variables = vec![
            ("COUNTERSIGN_URL".to_owned(), format!("http://{}", self.bot.api()).into()),
            ("COUNTERSIGN_KEY".to_owned(), self.secret("ci").into()),
        ];
        let (command, arguments) = (COUNTERSIGN.to_owned(), vec!["mcp".to_owned()]);
        client(Way::Process(Program { command, arguments, variables, folder: None }), None)
    }

    /// Decides about the newest request, once it has a card.
    async fn decides(&self, label: &str) {
        let id = self.newest().await;
        self.clicks(&id, label).await;
    }
}

async fn calls(agent: &McpClient, tool: &str, arguments: Value) -> Answer {
    let call = Call { longest: BOUND, ..Call::default() };
    agent.call(tool, arguments.as_object().unwrap(), call).await.unwrap()
}

/// Calls a tool that must work, and returns its data.
async fn data(agent: &McpClient, tool: &str, arguments: Value) -> Value {
    let answer = calls(agent, tool, arguments).await;
    assert!(!answer.failed, "{answer:?}");
    answer.data.clone().unwrap_or_else(|| panic!("{answer:?}"))
}

fn deploy(wait: u64) -> Value {
    json!({ "policy": "deploy-prod", "title": "Deploy web 1.4.2", "kind": "deploy", "target": "web/production",
        "payload": { "service": "web", "version": "1.4.2" }, "wait_seconds": wait })
}

/// Asks, waits, claims and reports.
async fn goes_the_whole_way(programs: &Programs, agent: &McpClient) {
    let tools = agent.tools().await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(
        names,
        [
            "request_approval",
            "check_approval",
            "cancel_approval",
            "claim_approval",
            "report_outcome",
            "list_policies",
            "approve_tool_use"
        ],
        "no tool decides"
    );
    let policies = data(agent, "list_policies", json!({})).await;
    assert_eq!(policies["data"][0]["name"], "deploy-prod");
    let asked = data(agent, "request_approval", deploy(0)).await;
    assert_eq!((&asked["state"], &asked["approved"]), (&json!("pending"), &json!(false)), "{asked}");
    let next = asked["next"].as_str().unwrap();
    let id = asked["approval_id"].as_str().unwrap().to_owned();
    assert!(
        next.contains("still waiting for a person") && next.contains(&id) && next.contains("not request it"),
        "{next}"
    );
    let mut reworded = deploy(0);
    reworded["title"] = json!("Deploy it, please");
    assert_eq!(data(agent, "request_approval", reworded).await["approval_id"], json!(id), "it finds the same card");
    let early = calls(agent, "claim_approval", json!({ "approval_id": id, "payload_digest": DIGEST })).await;
    assert!(early.failed && early.text.contains("only an approved request can be claimed"), "{early:?}");
    let (waited, ()) = tokio::join!(
        data(agent, "check_approval", json!({ "approval_id": id, "wait_seconds": 20 })),
        programs.decides("Approve")
    );
    assert_eq!((&waited["state"], &waited["approved"]), (&json!("approved"), &json!(true)), "{waited}");
    let payload = json!({ "service": "web", "version": "1.4.3" });
    let other = calls(agent, "claim_approval", json!({ "approval_id": id, "payload": payload })).await;
    assert!(other.failed && other.text.contains("not the one that was approved"), "{other:?}");
    let payload = deploy(0)["payload"].clone();
    let claimed = data(agent, "claim_approval", json!({ "approval_id": id, "payload": payload })).await;
    assert_eq!((&claimed["state"], claimed["token"].is_string()), (&json!("intent"), true), "{claimed}");
    let reported = data(agent, "report_outcome", json!({ "approval_id": id, "result": "succeeded" })).await;
    assert_eq!(reported["state"], "done");
    let again = data(agent, "request_approval", deploy(0)).await;
    assert_ne!(again["approval_id"], json!(id), "the other is over, so this is a new one");
    let cancelled = data(agent, "cancel_approval", json!({ "approval_id": again["approval_id"] })).await;
    assert_eq!(cancelled["state"], "cancelled");
    let wrong = calls(agent, "request_approval", json!({ "policy": "deploy-prod", "approver": "UANA" })).await;
    assert!(wrong.failed && wrong.text.contains("/approver: There is no such member"), "{wrong:?}");
    let foreign =
        calls(agent, "check_approval", json!({ "approval_id": "apr_00000000000000000000000000000000" })).await;
    assert!(foreign.failed && foreign.text.contains("no request with this id"), "{foreign:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_asks_claims_and_reports_over_http() {
    let programs = Programs::start().await;
    Box::pin(goes_the_whole_way(&programs, &programs.over_http())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_asks_claims_and_reports_over_stdio() {
    let programs = Programs::start().await;
    let agent = programs.over_stdio();
    Box::pin(goes_the_whole_way(&programs, &agent)).await;
    agent.close().await;
}

/// Answers a permission prompt, and returns what the agent is told.
async fn prompts(agent: &McpClient, input: &Value, wait: u64) -> Value {
    let asked =
        json!({ "tool_name": "Bash", "input": input, "tool_use_id": "toolu_1", "wait_seconds": wait, "later": 1 });
    serde_json::from_str(&calls(agent, "approve_tool_use", asked).await.text).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permission_prompt_is_answered_by_people() {
    let programs = Programs::start().await;
    let agent = programs.over_http();
    let input = json!({ "command": "rm -r build", "timeout": 5, "options": { "force": true } });
    let undecided = prompts(&agent, &input, 0).await;
    assert_eq!(undecided["behavior"], "deny");
    assert!(undecided["message"].as_str().unwrap().contains("try again with the same input"), "{undecided}");
    let id = programs.newest().await;
    programs.bot.settled().await;
    let card = programs.thread(&programs.looks(&id).await.body).messages().pop().unwrap().words();
    assert!(card.contains("rm -r build") && card.contains("1 more value is not listed"), "{card}");
    programs.clicks(&id, "Approve").await;
    let allowed = prompts(&agent, &input, 0).await;
    assert_eq!(allowed, json!({ "behavior": "allow", "updatedInput": input }), "the next try finds the decision");
    assert_eq!(programs.looks(&id).await.state(), "unknown", "the agent reports nothing");

    let (denied, ()) = tokio::join!(prompts(&agent, &input, 20), programs.decides("Reject…"));
    assert_eq!(denied["behavior"], "deny", "one approval is for one use");
    assert!(denied["message"].as_str().unwrap().contains("rejected"), "{denied}");
    let strange = prompts(&agent, &json!({ "ratio": 0.5 }), 0).await;
    assert!(strange["message"].as_str().unwrap().contains("Numbers must be whole"), "{strange}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_is_answered_by_people() {
    let programs = Programs::start().await;
    let url = format!("http://{}", programs.bot.api());
    let hook = async |event: &str, input: Value, wait: &str| {
        let mut command = tokio::process::Command::new(COUNTERSIGN);
        command.args(["hook", "--wait", wait]).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped());
        command.env("COUNTERSIGN_URL", &url).env("COUNTERSIGN_KEY", programs.secret("ci")).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let asked = json!({ "hook_event_name": event, "tool_name": "Bash", "tool_input": input, "session_id": "s" });
        child.stdin.take().unwrap().write_all(asked.to_string().as_bytes()).await.unwrap();
        let output = tokio::time::timeout(BOUND, child.wait_with_output()).await.unwrap().unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["hookSpecificOutput"].clone()
    };
    let (input, other) = (json!({ "command": "ls" }), json!({ "command": "rm" }));
    let (answered, ()) = tokio::join!(hook("PermissionRequest", input.clone(), "20s"), programs.decides("Approve"));
    assert_eq!(answered["decision"], json!({ "behavior": "allow", "updatedInput": input }), "{answered}");
    let answered = hook("PreToolUse", other, "0s").await;
    assert_eq!((&answered["permissionDecision"], &answered["hookEventName"]), (&json!("deny"), &json!("PreToolUse")));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tools_need_a_key_and_no_page_of_a_browser() {
    let programs = Programs::start().await;
    let url = format!("http://{}/mcp", programs.bot.api());
    let send = |key: &str, header: (&'static str, &'static str)| {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} });
        let post = programs.http.post(&url).bearer_auth(key).header("accept", "application/json, text/event-stream");
        post.header(header.0, header.1).json(&body).send()
    };
    let right = programs.secret("ci").to_owned();
    assert_eq!(send(&right, ("x-none", "")).await.unwrap().status().as_u16(), 200);
    let refused = send("csk_ci-web_x", ("x-none", "")).await.unwrap();
    assert_eq!((refused.status().as_u16(), refused.headers().contains_key("www-authenticate")), (401, true));
    assert_eq!(send(&right, ("origin", "https://evil.example")).await.unwrap().status().as_u16(), 403);
    assert_eq!(send(&right, ("host", "evil.example")).await.unwrap().status().as_u16(), 403);
    assert_eq!(programs.get("/mcp").await.status, 405, "there is no stream without a call");
    let off = Programs::with(|api| api.mcp = false).await;
    assert_eq!(off.post("/mcp", &json!({})).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_ends_leaves_the_request_open() {
    let programs = Programs::start().await;
    let agent = programs.over_http();
    let arguments = deploy(20);
    let call = calls(&agent, "request_approval", arguments);
    let ended = tokio::time::timeout(Duration::from_secs(20), async {
        tokio::select! {
            _ = call => panic!("nobody decided"),
            id = programs.newest() => id,
        }
    });
    let id = Box::pin(ended).await.unwrap();
    assert_eq!(programs.looks(&id).await.state(), "pending");
    assert_eq!(data(&agent, "request_approval", deploy(0)).await["approval_id"], json!(id));
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_reported_and_a_slow_decision_cuts_nothing_off() {
    let (tell, told) = std::sync::mpsc::channel();
    let settings = Box::new(move |config: &mut countersign::config::Config| {
        tell.send(super::with_api(config, 0)).unwrap();
        config.server.body_timeout = Duration::from_millis(300); // for what a client does, not for people
    });
    let bot = TestBot::with(Setup { settings, ..Setup::default() }).await;
    let programs = Programs { bot, http: reqwest::Client::new(), secrets: told.recv().unwrap() };
    let (id, thread) = programs.asked("k1", &super::request()).await;
    let arguments = json!({ "approval_id": id, "wait_seconds": 20 });
    let params = json!({ "name": "check_approval", "arguments": arguments, "_meta": { "progressToken": 7 } });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let post = programs.http.post(format!("http://{}/mcp", programs.bot.api())).bearer_auth(programs.secret("ci"));
    let post = post.header("accept", "application/json, text/event-stream").json(&body);
    let mut answer = post.send().await.unwrap();
    let mut stream = String::new();
    let began = tokio::time::Instant::now();
    let mut is_pressed = false;
    while let Some(bytes) = tokio::time::timeout(Duration::from_millis(50), answer.chunk())
        .await
        .unwrap_or(Ok(Some(Default::default())))
        .unwrap()
    {
        stream += std::str::from_utf8(&bytes).unwrap();
        if began.elapsed() > Duration::from_millis(600) && !is_pressed {
            thread.press("bo", "Approve").await;
            is_pressed = true;
        }
    }
    assert!(stream.contains("0 of 1 approvals; ends ") && stream.contains("notifications/progress"), "{stream}");
    assert!(stream.contains("call claim_approval") || stream.contains("Call claim_approval"), "{stream}");
}
