//! The stand-in for an MCP server against the recordings of the reference server, and our client against the stand-in.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use countersign::{
    clock::SystemClock,
    mcp_client::{Answered, Asks, Call, Error, McpClient, OAuth, Program, Question, Remote, Settings, Way},
    send_permit::SendPermit,
};
use countersign_sandbox::mcp::{Fault, Options, SandboxMcp, SessionLost};
use serde_json::{Map, Value, json};
use url::Url;

const RECORDINGS: &str = "tests/fixtures/mcp";

/// The recordings that are not replayed as they are, each with the reason.
const LEFT_OUT: &[(&str, &str)] = &[("index", "it is the list of the others")];

fn arguments(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

fn client_of(server: &SandboxMcp) -> McpClient {
    client_with(server, None, Duration::from_secs(5), 1 << 20)
}

fn client_with(server: &SandboxMcp, token: Option<&str>, timeout: Duration, longest: usize) -> McpClient {
    rustls::crypto::ring::default_provider().install_default().ok();
    let remote = Remote::from(server.url().parse::<Url>().unwrap());
    let settings = Settings { way: Way::Http(remote), token: token.map(Into::into), timeout, longest };
    McpClient::new(settings, Arc::new(SystemClock))
}

/// A call that changes something.
fn change() -> Call {
    Call { permit: Some(SendPermit::new(Arc::new(SystemClock), Duration::from_secs(5))), ..Call::default() }
}

/// The messages in a body of events, without what differs from run to run.
fn messages(body: &str) -> Vec<Value> {
    let whole = body.rsplit_once("\n\n").map_or("", |(whole, _)| whole);
    let data = whole.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| plain(serde_json::from_str(data).unwrap())).collect()
}

/// The same message with texts that are JSON as what they say: the order of keys is nobody's promise.
fn plain(mut message: Value) -> Value {
    for content in message["result"]["content"].as_array_mut().into_iter().flatten() {
        let json = content["text"].as_str().map(|text| text.strip_prefix("\nRaw result: ").unwrap_or(text));
        if let Some(said) = json.and_then(|text| serde_json::from_str::<Value>(text).ok()) {
            content["text"] = said;
        }
        if let Some((said, _)) = content["resource"]["text"].as_str().and_then(|text| text.split_once(" created at ")) {
            content["resource"]["text"] = json!(said);
        }
    }
    message
}

#[tokio::test]
async fn the_stand_in_answers_as_the_reference_server_did() {
    let server = SandboxMcp::start(Options::default()).await.unwrap();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut files: Vec<_> = std::fs::read_dir(RECORDINGS).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut session = String::new();
    let mut replayed = 0;
    for path in files {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if LEFT_OUT.iter().any(|(left_out, _)| *left_out == name) {
            continue;
        }
        let recorded: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let (request, response) = (&recorded["request"], &recorded["response"]);
        let method = request["method"].as_str().unwrap().parse().unwrap();
        let mut sent = http.request(method, server.url());
        for (header, value) in request["headers"].as_object().unwrap() {
            let value = value.as_str().unwrap();
            let is_session = header == "mcp-session-id" && value != "nope";
            sent = sent.header(header, if is_session { session.as_str() } else { value });
        }
        if !request["body"].is_null() {
            sent = sent.body(request["body"].to_string());
        }
        let mut answer = sent.send().await.unwrap();
        assert_eq!(answer.status().as_u16(), response["status"], "{name}");
        if let Some(id) = answer.headers().get("mcp-session-id") {
            id.to_str().unwrap().clone_into(&mut session);
        }
        let kind = answer.headers().get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
        let wanted = response["headers"]["content-type"].as_str().map(str::to_owned);
        let bare = |kind: Option<String>| kind.map(|kind| kind.split(';').next().unwrap().to_owned());
        if wanted.is_some() {
            assert_eq!(bare(kind), bare(wanted), "{name}");
        }
        // Where the server asks, the recorded answer is given.
        let reply = response["chunks"].as_array().into_iter().flatten().find_map(|chunk| chunk.get("clientReply"));
        let (mut bytes, mut body) = (Vec::new(), String::new());
        while let Some(more) = answer.chunk().await.unwrap() {
            bytes.extend_from_slice(&more);
            body = String::from_utf8_lossy(&bytes).into_owned();
            if let (Some(reply), Some(asked)) =
                (reply, messages(&body).iter().find(|m| m["method"] == "elicitation/create"))
                && messages(&body).len() == 1
            {
                let reply = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": reply });
                let accept = "application/json, text/event-stream";
                let post = http.post(server.url()).header("mcp-session-id", &session).header("accept", accept);
                assert_eq!(post.body(reply.to_string()).send().await.unwrap().status().as_u16(), 202, "{name}");
            }
        }
        match &response["body"] {
            Value::String(wanted) if !wanted.is_empty() => {
                let (mut found, wanted) = (messages(&body), messages(wanted));
                if name == "003-tools-list" {
                    let own = wanted[0]["result"]["tools"].as_array().unwrap().len();
                    found[0]["result"]["tools"].as_array_mut().unwrap().truncate(own); // the notes come after them
                }
                assert_eq!(found, wanted, "{name}");
            }
            Value::Object(_) => {
                assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), response["body"], "{name}");
            }
            _ => assert_eq!(body, "", "{name}"),
        }
        replayed += 1;
    }
    assert_eq!(replayed, 21);
}

#[tokio::test]
async fn the_client_reads_what_a_server_offers() {
    let server = SandboxMcp::start(Options::default()).await.unwrap();
    let client = client_of(&server);
    assert_eq!(server.requests().len(), 0, "it connects when it is used");
    let tools = client.tools().await.unwrap();
    let sum = tools.iter().find(|tool| tool.name == "get-sum").unwrap();
    assert!(sum.reads && !sum.destroys && sum.idempotent);
    let add = tools.iter().find(|tool| tool.name == "add-note").unwrap();
    assert!(!add.reads && !add.idempotent);
    let info = client.server().await.unwrap();
    assert_eq!((info.name.as_str(), info.protocol.as_str()), ("mcp-servers/everything", "2025-11-25"));

    let answer = client.call("get-sum", &arguments(json!({ "a": 2, "b": 40 })), Call::default()).await.unwrap();
    assert_eq!(answer.text, "The sum of 2 and 40 is 42.");
    let failed = client.call("get-sum", &arguments(json!({ "a": "x", "b": 1 })), Call::default()).await.unwrap();
    assert!(failed.failed && failed.text.contains("expected number"), "{failed:?}");
    let weather = client
        .call("get-structured-content", &arguments(json!({ "location": "New York" })), Call::default())
        .await
        .unwrap();
    assert_eq!(weather.data.unwrap()["humidity"], 82);

    let resources = client.resources().await.unwrap();
    assert_eq!(client.resource(&resources[0].0).await.unwrap(), "# Features");
}

#[tokio::test]
async fn tools_are_read_again_once_the_server_says_that_they_changed() {
    let server = SandboxMcp::start(Options::default()).await.unwrap();
    let client = client_of(&server);
    client.tools().await.unwrap();
    let lists =
        |server: &SandboxMcp| server.requests().iter().filter(|request| request.body["method"] == "tools/list").count();
    client.known_tools().await.unwrap();
    assert_eq!(lists(&server), 1);
    // The stream on which it is said is opened beside the first calls.
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while !server.requests().iter().any(|request| request.method == "GET") {
        assert!(tokio::time::Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    server.changes_tool("echo", |tool| tool["description"] = json!("Another one"));
    loop {
        let tools = client.known_tools().await.unwrap();
        if tools.iter().any(|tool| tool.description == "Another one") {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "it is never read again");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(lists(&server), 2);
}

#[tokio::test]
async fn progress_is_told_and_keeps_a_call_waiting() {
    let server = SandboxMcp::start(Options::default()).await.unwrap();
    let client = client_of(&server);
    type Progress = (f64, Option<f64>);
    let seen: Arc<Mutex<Vec<Progress>>> = Arc::default();
    let told = seen.clone();
    let call = Call {
        watch: Some(Arc::new(move |progress| told.lock().unwrap().push((progress.done, progress.total)))),
        longest: Duration::from_secs(60),
        ..Call::default()
    };
    let given = arguments(json!({ "duration": 4, "steps": 4 }));
    let answer = client.call("trigger-long-running-operation", &given, call).await.unwrap();
    assert_eq!(answer.text, "Long running operation completed. Duration: 4 seconds, Steps: 4.");
    let deadline = tokio::time::Instant::now() + Duration::from_secs(5);
    while seen.lock().unwrap().is_empty() && tokio::time::Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(seen.lock().unwrap()[0], (1.0, Some(4.0)));
}

/// Somebody who gives one answer.
struct Says(Answered, Mutex<Vec<Question>>);

#[async_trait]
impl Asks for Says {
    async fn ask(&self, question: Question) -> Answered {
        self.1.lock().unwrap().push(question);
        self.0.clone()
    }
}

#[tokio::test]
async fn a_question_in_the_middle_of_a_call_is_answered() {
    let server = SandboxMcp::start(Options::default()).await.unwrap();
    let client = client_of(&server);
    let answers = [
        (Answered::Accepted(json!({ "name": "Ada", "check": true })), "User inputs:\n- Name: Ada"),
        (Answered::Declined, "declined to provide"),
        (Answered::Cancelled, "cancelled the elicitation"),
    ];
    for (answer, told) in answers {
        let says = Arc::new(Says(answer, Mutex::default()));
        let call = Call { asks: Some(says.clone()), ..change() };
        let found = client.call("trigger-elicitation-request", &Map::new(), call).await.unwrap();
        assert!(found.text.contains(told), "{found:?}");
        let asked = says.1.lock().unwrap().clone();
        assert_eq!(asked[0].message, "Please provide inputs for the following fields:");
        assert_eq!(asked[0].schema["properties"]["integer"]["maximum"], 100);
        assert_eq!(asked[0].schema["required"], json!(["name"]));
    }
    let nobody = client.call("trigger-elicitation-request", &Map::new(), change()).await.unwrap();
    assert!(nobody.text.contains("cancelled the elicitation"), "{nobody:?}");
}

#[tokio::test]
async fn a_lost_session_is_begun_again_for_what_reads_and_refuses_what_changes() {
    let server = SandboxMcp::start(Options::default()).await.unwrap();
    let client = client_of(&server);
    client.tools().await.unwrap();
    server.forgets_sessions();
    client.tools().await.unwrap();
    server.fail_next(Fault::Own(SessionLost));
    let echo = arguments(json!({ "message": "x" }));
    assert_eq!(client.call("echo", &echo, Call::default()).await.unwrap().text, "Echo: x");

    server.forgets_sessions();
    let note = arguments(json!({ "text": "x", "color": "blue" }));
    let lost = client.call("add-note", &note, change()).await.unwrap_err();
    assert_eq!(lost, Error::SessionLost);
    assert!(lost.had_no_effect() && server.notes().is_empty());
    client.call("add-note", &note, change()).await.unwrap();
    assert_eq!(server.notes(), ["x"], "the next one finds a new session");
}

#[tokio::test]
async fn a_change_without_an_answer_is_not_sent_again() {
    let server = SandboxMcp::start(Options::default()).await.unwrap();
    let client = client_with(&server, None, Duration::from_millis(700), 100_000);
    client.tools().await.unwrap();
    let note = arguments(json!({ "text": "x", "color": "blue" }));
    let huge = Fault::Flood { status: 200, pause_ms: 1 }.after();
    let faults = [Fault::LostAnswer, Fault::Hang.after(), huge, Fault::Status(500).after()];
    for (nth, fault) in faults.into_iter().enumerate() {
        server.fail_next(fault.clone());
        let begun = tokio::time::Instant::now();
        let error = client.call("add-note", &note, change()).await.unwrap_err();
        assert!(!error.had_no_effect(), "{fault:?}: {error:?}");
        assert_eq!(server.notes().len(), nth + 1, "{fault:?}: once");
        assert!(begun.elapsed() < Duration::from_secs(5), "{fault:?}");
    }
    client.call("add-note", &note, change()).await.unwrap();
}

#[tokio::test]
async fn nothing_leaves_once_the_permit_has_run_out() {
    let server = SandboxMcp::start(Options::default()).await.unwrap();
    let client = client_of(&server);
    client.tools().await.unwrap();
    let over = SendPermit::new(Arc::new(SystemClock), Duration::ZERO);
    let note = arguments(json!({ "text": "x", "color": "blue" }));
    let call = Call { permit: Some(over), ..Call::default() };
    assert_eq!(client.call("add-note", &note, call).await.unwrap_err(), Error::RunOut);
    assert!(server.calls().is_empty());
}

#[tokio::test]
async fn the_token_is_sent_and_a_wrong_one_is_told() {
    let options = Options { token: Some("s3cret".to_owned()), ..Options::default() };
    let server = SandboxMcp::start(options).await.unwrap();
    let right = client_with(&server, Some("s3cret"), Duration::from_secs(5), 1 << 20);
    right.tools().await.unwrap();
    let wrong = client_with(&server, Some("other"), Duration::from_secs(5), 1 << 20);
    assert_eq!(wrong.tools().await.unwrap_err(), Error::Auth { status: 401 });
}

/// What an operator's browser gets at this address, after its redirects.
async fn browse(address: &str) {
    reqwest::get(address).await.unwrap().error_for_status().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_signs_in_and_tokens_are_refreshed() {
    let server = SandboxMcp::start(Options { oauth: true, ..Options::default() }).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens.json");
    let oauth = OAuth { client_id: None, client_secret: None, scopes: Vec::new(), port: 0, tokens: tokens.clone() };
    let client = || {
        rustls::crypto::ring::default_provider().install_default().ok();
        let remote = Remote { oauth: Some(oauth.clone()), ..Remote::from(server.url().parse::<Url>().unwrap()) };
        let (timeout, longest) = (Duration::from_secs(5), 1 << 20);
        McpClient::new(Settings { way: Way::Http(remote), token: None, timeout, longest }, Arc::new(SystemClock))
    };
    let (first, later) = (client(), client());
    first.tools().await.unwrap_err();

    // A page that knows the port, but not the state of the sign-in, signs nobody in.
    let forges = |said: &str| {
        let shown = said.split_once(": ").unwrap().1.parse::<Url>().unwrap();
        let back = shown.query_pairs().find(|(name, _)| name == "redirect_uri").unwrap().1.into_owned();
        tokio::spawn(async move { browse(&format!("{back}?code=code-1&state=forged")).await });
    };
    first.sign_in().unwrap().authorize(&forges).await.unwrap_err();
    assert!(!tokens.exists() && server.tokens_issued() == 0);

    let opens = |said: &str| {
        let shown = said.split_once(": ").unwrap().1.to_owned();
        tokio::spawn(async move { browse(&shown).await });
    };
    first.sign_in().unwrap().authorize(&opens).await.unwrap();
    first.tools().await.unwrap();
    assert_eq!(server.tokens_issued(), 1);

    // Another process has the tokens from the file, and a new one when the server refuses the old one.
    server.ends_token();
    later.tools().await.unwrap();
    assert_eq!(server.tokens_issued(), 2);
}

#[tokio::test]
async fn a_server_that_is_not_there_was_not_reached() {
    let server = SandboxMcp::start(Options::default()).await.unwrap();
    let client = client_of(&server);
    drop(server);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let error = client.tools().await.unwrap_err();
    assert!(matches!(error, Error::NotSent { .. }), "{error:?}");
}

/// A server in a few lines of shell: it greets, lists one tool, and echoes.
const SHELL: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"shell","version":"1"}}}\n' "$id" ;;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"env","inputSchema":{"type":"object"}}]}}\n' "$id" ;;
    *'"tools/call"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s %s"}]}}\n' "$id" "$MCP_TOKEN" "${CARGO_MANIFEST_DIR:-clean}" ;;
  esac
done
"#;

#[tokio::test]
async fn a_server_behind_pipes_is_started_without_the_secrets_of_the_bot() {
    let client = client_of_program(SHELL, |_| ());
    assert_eq!(client.tools().await.unwrap()[0].name, "env");
    assert_eq!(client.server().await.unwrap().protocol, "2025-06-18");
    let answer = client.call("env", &Map::new(), change()).await.unwrap();
    assert_eq!(answer.text, "t0ken clean");
    client.close().await;

    let away = client_of_program("", |program| program.command = "/no/such/server".to_owned());
    let error = away.tools().await.unwrap_err();
    assert!(matches!(&error, Error::NotSent { reason } if reason.contains("cannot be started")), "{error:?}");
}

/// A client of a program in shell.
fn client_of_program(script: &str, change: impl FnOnce(&mut Program)) -> McpClient {
    let arguments = vec!["-c".to_owned(), script.to_owned()];
    let mut program = Program { command: "sh".to_owned(), arguments, ..Program::default() };
    change(&mut program);
    let way = Way::Process(program);
    let settings = Settings { way, token: Some("t0ken".into()), timeout: Duration::from_secs(5), longest: 20_000 };
    McpClient::new(settings, Arc::new(SystemClock))
}
