//! What operators see of a bot that runs: traces and metrics.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Command,
    time::{Duration, Instant},
};

use countersign::app::metrics::{Kind, METRICS};
use countersign_sandbox::{mcp, model::SandboxModel};
use fancy_regex::{Captures, Regex};
use serde_json::json;

use super::{
    beside::{Beside, Running},
    process::{COUNTERSIGN, Process, serve},
    processes::{By, Given, Page, given},
};
use crate::support::{
    collector::{Collector, Manner, Seen, tree},
    ports::free_port,
};

/// The words of people, and a name that they say.
const WORDS: [&str; 4] = ["start", "Math", "Hints", "<@"];

/// What leads a bot to a collector at this address.
fn exports_to(given: &mut Given, endpoint: &str) {
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20secret"),
        ("OTEL_SERVICE_NAME", "the bot"),
        ("COUNTERSIGN__SERVER__LOG", "info,countersign::graph=debug"),
    ] {
        given.settings.insert(name.to_owned(), value.to_owned());
    }
}

async fn begins(given: &Given) -> Process {
    let bot = Process::start(serve(&given.settings), &given.folder.path().join("bot.log"));
    given.page.until_ready(&bot, &given.bot).await;
    bot
}

/// Somebody asks for a change, and gets a card.
async fn asks(page: &Page) -> (String, serde_json::Value) {
    let root = page.says("ana", "@countersign start the Math Hints experiment").await;
    let card = page.message_with(&root, "approve").await;
    (root, card)
}

/// Somebody else approves it, and it is made and told.
async fn approves(page: &Page, root: &str, card: &serde_json::Value) {
    page.presses("bo", card, "approve").await;
    page.until("the answer", async || page.says_in_thread(root).await == 3).await;
    page.until("the record", async || !page.thread(root).await.to_string().contains(r#""action_id":"approve""#)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_and_a_click_are_whole_traces_and_belong_together() {
    let collector = Collector::start(Manner::Takes).await;
    let mut given = given(By::Socket, None).await;
    exports_to(&mut given, &collector.url);
    let said = Command::new(COUNTERSIGN).arg("check").env_clear().envs(&given.settings).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(said.contains(&format!("ok    traces   {}/v1/traces takes traces", collector.url)), "{said}");

    let bot = begins(&given).await;
    let (root, card) = asks(&given.page).await;
    assert!(bot.stop().await.success(), "{}", bot.log());
    // The click comes to another process, which knows the card from the store alone.
    let bot = begins(&given).await;
    approves(&given.page, &root, &card).await;
    assert!(bot.stop().await.success(), "{}", bot.log());

    let spans = collector.spans();
    let mut traces: BTreeMap<&str, Vec<&Seen>> = BTreeMap::new();
    spans.iter().for_each(|span| traces.entry(&span.trace).or_default().push(span));
    for (trace, spans) in &traces {
        let told = || tree(&collector.spans(), trace);
        let first: Vec<_> = spans.iter().filter(|span| span.parent.is_empty()).collect();
        assert_eq!(first.len(), 1, "{spans:#?}");
        for span in spans {
            let has_parent = spans.iter().any(|other| other.id == span.parent) || span.parent.is_empty();
            assert!(has_parent, "{} has no parent in {}", span.name, told());
            assert!(first[0].began <= span.began && span.ended <= first[0].ended, "{} outlasts {}", span.name, told());
            if let Some(system) = span.attributes.get("system") {
                assert!(span.attributes.contains_key("status"), "a call of {system} without an end in {}", told());
            }
            let all = span.attributes.iter().flat_map(|(key, value)| [key, value]).chain([&span.name]);
            for (text, word) in all.flat_map(|text| WORDS.map(|word| (text, word))) {
                assert!(!text.contains(word), "`{word}` in {text}");
            }
        }
    }
    let has = |trace: &str, name: &str| spans.iter().any(|span| span.trace == trace && span.name.starts_with(name));
    // A message that mentions the bot comes as two events. The one that is a repetition goes no further, and ends first.
    let goes_on = |span: &&Seen| span.parent.is_empty() && has(&span.trace, "advance");
    let first = |name: &str| spans.iter().filter(goes_on).find(|span| span.name == name);
    let turn = &first("turn").expect("the message").trace;
    println!("{}", tree(&spans, turn));
    for name in ["ingest", "advance", "step analyze", "upgrade GET", "post", "slack chat.postMessage"] {
        assert!(has(turn, name), "no {name} in\n{}", tree(&spans, turn));
    }
    let click = &first("click").expect("the press").trace;
    println!("{}", tree(&spans, click));
    for name in ["decide", "advance", "step execute", "upgrade ", "post", "slack chat."] {
        assert!(has(click, name), "no {name} in\n{}", tree(&spans, click));
    }
    let links: BTreeSet<_> = spans.iter().filter(|span| span.trace == *click).flat_map(|span| &span.links).collect();
    assert_eq!(links, BTreeSet::from([turn]), "the click is linked to the turn of its card, and to nothing else");

    let log = bot.log();
    let of_steps: Vec<_> = log.lines().filter(|line| line.contains("A step is held back")).collect();
    assert!(of_steps.iter().any(|line| line.contains(turn)), "{of_steps:#?}");
    assert!(of_steps.iter().all(|line| line.contains("trace.id=")), "{of_steps:#?}");
    let thread = log.split("thread.id=").nth(1).unwrap().split([' ', '}']).next().unwrap();
    let told = Command::new(COUNTERSIGN).args(["trace", thread]).env_clear().envs(&given.settings).output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains(turn) && told.contains(click), "{told}");
    given.sandbox.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_language_model_and_an_mcp_server_get_the_trace_of_the_turn() {
    let collector = Collector::start(Manner::Takes).await;
    let mut given = given(By::Socket, None).await;
    exports_to(&mut given, &collector.url);
    let notes = Running::start(Beside::Notes, given.folder.path()).await;
    let model = SandboxModel::start(0).await.unwrap();
    model.answers_by(|request| match request.to_string().contains("tool_result") {
        true => vec![json!({ "type": "text", "text": "There are no notes." })],
        false => vec![json!({ "type": "tool_use", "name": "notes_list_notes", "input": {} })],
    });
    given
        .settings
        .extend(notes.settings(given.folder.path()).into_iter().map(|(name, value)| (name.to_owned(), value)));
    for (name, value) in [("ANTHROPIC_BASE_URL", model.url()), ("ANTHROPIC_API_KEY", model.api_key().to_owned())] {
        given.settings.insert(name.to_owned(), value);
    }
    let bot = begins(&given).await;
    let root = given.page.says("ana", "@countersign which notes does the notes server have?").await;
    given.page.until("the answer", async || given.page.says_in_thread(&root).await == 2).await;
    assert!(bot.stop().await.success(), "{}", bot.log());

    let spans = collector.spans();
    let turn = &spans.iter().find(|span| span.name == "turn").expect("the message").trace;
    let belongs = |parent: Option<&str>, system: &str| {
        let parent = parent.unwrap_or_else(|| panic!("{system} got no trace\n{}", tree(&spans, turn)));
        let [_, trace, span, _] = parent.split('-').collect::<Vec<_>>()[..] else { panic!("{parent}") };
        assert_eq!(trace, turn, "{system}\n{}", tree(&spans, turn));
        let caller = spans.iter().find(|known| known.trace == trace && known.id == span);
        assert!(caller.is_some_and(|caller| caller.attributes.contains_key("system")), "{system}: {parent}");
    };
    let asked = model.requests();
    assert!(asked.len() >= 2, "a call and an answer: {asked:#?}");
    asked.iter().for_each(|request| belongs(request.trace.as_deref(), "the model"));
    let Running::Notes(server) = &notes else { panic!("it is a server of notes") };
    let called = |request: &mcp::Received| request.body["method"] == "tools/call";
    let calls: Vec<_> = server.requests().into_iter().filter(called).collect();
    assert!(!calls.is_empty(), "{:#?}\n{}", server.requests(), bot.log());
    calls.iter().for_each(|call| belongs(call.headers.get("traceparent").map(String::as_str), "the server"));
    given.sandbox.stop().await;
}

/// Whatever the collector does, people wait no longer, and the bot ends when it is told to.
#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_no_help_is_no_harm_either() {
    let nobody = format!("http://127.0.0.1:{}", free_port());
    let [fails, hangs] = [Collector::start(Manner::Fails).await, Collector::start(Manner::Hangs).await];
    for endpoint in [&nobody, &fails.url, &hangs.url] {
        let mut given = given(By::Socket, None).await;
        exports_to(&mut given, endpoint);
        let bot = begins(&given).await;
        let began = Instant::now();
        let (root, card) = asks(&given.page).await;
        approves(&given.page, &root, &card).await;
        let took = began.elapsed();
        assert!(took < Duration::from_secs(4), "a dialogue takes less than a request to the collector: {took:?}");
        let has_dropped = async || {
            let (_, metrics) = given.page.get(&format!("{}/metrics", given.bot)).await.unwrap();
            metrics.contains("countersign_spans_dropped_total")
        };
        given.page.until("dropped spans", has_dropped).await;
        given.page.says("ana", "@countersign thanks").await; // something more to export, right before the end
        let began = Instant::now();
        assert!(bot.stop().await.success(), "{}", bot.log());
        assert!(began.elapsed() < Duration::from_secs(6), "it ended after {:?}", began.elapsed());
        given.sandbox.stop().await;
    }
}

/// The names of metrics in a file.
fn names_in(path: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(path).unwrap();
    let ends = |c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let found = text.match_indices("countersign_").map(|(at, _)| text[at..].split(ends).next().unwrap());
    found.map(family).collect()
}

/// The metric to which a sample belongs.
fn family(sample: &str) -> String {
    let is_distribution = |name: &&str| METRICS.iter().any(|metric| metric.0 == *name && metric.1 == Kind::Histogram);
    let ends = ["_bucket", "_sum", "_count"].iter().find_map(|end| sample.strip_suffix(end)).filter(is_distribution);
    ends.unwrap_or(sample).to_owned()
}

/// What dashboards, alerts and the page for operators name is what a bot really has, or will have once it happens.
#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_those_that_are_described() {
    let mut given = given(By::Socket, None).await;
    given.settings.insert("COUNTERSIGN__WORKERS__SWEEP_EVERY".to_owned(), "20ms".to_owned());
    let bot = begins(&given).await;
    let (root, card) = asks(&given.page).await;
    approves(&given.page, &root, &card).await;
    tokio::time::sleep(Duration::from_secs(3)).await; // what the sweeper counts, it counts now and then
    let (_, text) = given.page.get(&format!("{}/metrics", given.bot)).await.unwrap();
    assert!(bot.stop().await.success());
    given.sandbox.stop().await;

    let mut real = BTreeSet::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').unwrap();
        let metric = METRICS.iter().find(|metric| metric.0 == name);
        let (_, described, _, help) = metric.unwrap_or_else(|| panic!("{name} is not described"));
        assert_eq!(kind, format!("{described:?}").to_lowercase(), "{name}");
        assert!(text.contains(&format!("# HELP {name} {help}")), "{name} has no help");
        real.insert(name.to_owned());
    }
    for name in [
        "countersign_ready",
        "countersign_cards_open",
        "countersign_cards_total",
        "countersign_actions_total",
        "countersign_decision_seconds",
        "countersign_step_seconds",
        "countersign_outbound_seconds",
        "countersign_outbox_oldest_seconds",
        "countersign_inbox_entries",
        "countersign_inbox_busy_seconds",
        "countersign_messages_late",
        "countersign_dead_letters",
        "countersign_slack_received_total",
        "countersign_slack_calls_total",
        "countersign_slack_sockets",
        "countersign_store_synced_writes_total",
    ] {
        assert!(real.contains(name), "{name} is missing:\n{text}");
    }
    let sample =
        |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}:\n{text}"));
    assert_eq!(
        sample(r#"countersign_cards_total{action="update_experiment_status",event="approved"}"#).rsplit(' ').next(),
        Some("1")
    );
    assert_eq!(
        sample(r#"countersign_actions_total{action="update_experiment_status",outcome="done"}"#).rsplit(' ').next(),
        Some("1")
    );
    sample(r#"countersign_decision_seconds_count{action="update_experiment_status",policy="1_channel"}"#);
    sample(r#"countersign_outbound_seconds_count{system="upgrade",status="200"}"#);

    let described: BTreeSet<String> = METRICS.iter().map(|metric| metric.0.to_owned()).collect();
    for path in ["deploy/grafana/approvals.json", "deploy/grafana/health.json", "deploy/alerts.yaml"] {
        let unknown: Vec<_> = names_in(path).into_iter().filter(|name| !described.contains(name)).collect();
        assert!(unknown.is_empty(), "{path} names {unknown:?}, which no bot has");
    }
    // A gauge is there from the start, unless it is about mail or a fault; a counter from its first event on.
    let shown = ["approvals", "health"].map(|of| names_in(&format!("deploy/grafana/{of}.json")));
    let unseen = shown.into_iter().flatten().filter(|name| !real.contains(name));
    let gauges = unseen.filter(|name| METRICS.iter().any(|metric| metric.0 == name && metric.1 == Kind::Gauge));
    let gauges: Vec<_> = gauges.filter(|name| !name.starts_with("countersign_mail")).collect();
    assert_eq!(gauges, ["countersign_store_partition_unwritable"]);
}

/// The table of metrics has those that the code counts, by their kinds, and the page for operators has the table.
#[test]
fn every_metric_is_described_and_explained() {
    let counted = Regex::new(r#"(counter|gauge|histogram)!\(\s*"(countersign_\w+)""#).unwrap();
    let given = Regex::new(r#"publish_latency\("(countersign_\w+)""#).unwrap();
    let mut found = BTreeSet::new();
    for path in crate::tidy::sources() {
        let text = fs::read_to_string(&path).unwrap();
        let part = |hit: &Captures<'_, String>, n| hit.get(n).unwrap().as_str().to_owned();
        for hit in counted.captures_iter(&text).map(Result::unwrap) {
            found.insert((part(&hit, 2), part(&hit, 1)));
        }
        for hit in given.captures_iter(&text).map(Result::unwrap) {
            found.insert((part(&hit, 1), "gauge".to_owned()));
        }
    }
    let kind = |kind: Kind| format!("{kind:?}").to_lowercase();
    let described: BTreeSet<_> = METRICS.iter().map(|metric| (metric.0.to_owned(), kind(metric.1))).collect();
    assert_eq!(found, described);
    let page = fs::read_to_string("docs/observability.md").unwrap();
    let rows = METRICS.iter().map(|(name, of, _, help)| format!("| `{name}` | {} | {help} |\n", kind(*of)));
    let table: String = rows.collect();
    assert!(page.ends_with(&table), "docs/observability.md ends with this table:\n{table}");
}
