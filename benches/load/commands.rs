//! The latency of commands on a large store: thousands of threads, and no model.
//!
//! The store is filled before the bot starts, as the bot itself fills it: an action with its card in each thread, every
//! tenth of them still open (or all of them), asked for by fifty people in twenty channels. Then somebody types each command, again and
//! again; what counts is the time from typing to the answer.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use countersign::{
    clock::{Clock as _, SystemClock},
    graph::{
        action::{ActionRecord, Approver, Decision, Evidence, NewRecord, Policy, Scope, Status, Verdict},
        keyring::Keyring,
        request::Times,
        store::{ActionChange, AuditKind, Changes, Store},
    },
    ids::{ApprovalId, CommitId, ThreadId, UserId},
    reply::{Card, Fact, Text},
    store::{
        redis::{RedisStore, address::Access},
        sqlite::SqliteStore,
    },
};
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::timeout};

use crate::{
    FEW,
    figures::{Table, quantiles},
    round::Person,
    slack::BOT,
    wire::now,
};

/// The number of times that each command is sent in sequence, and then the number sent at once.
const TIMES: usize = 200;

/// The time limit for an answer.
const BOUND: Duration = Duration::from_secs(30);

/// The number of actions that are written at a time.
const WRITERS: usize = 64;

/// The time until a card expires.
const OPEN_FOR: Duration = Duration::from_secs(86_400);

/// The person who sends the commands. One in fifty actions is theirs, one in twenty is in their channel.
const ASKER: &str = "U1";
const CHANNEL: &str = "C1";

const LINES: [&str; 11] = [
    "/upgrade status",
    "/upgrade list",
    "/upgrade list running",
    "/upgrade show Bench 00",
    "/upgrade help",
    "/countersign pending",
    "/countersign runs",
    "/countersign mine",
    "/countersign standing",
    "/countersign settings",
    "/countersign help",
];

/// Fills the store that the bot will open. With `all_open` every thread has an open card, and the timers that go with it.
pub(crate) async fn fill(folder: &Path, redis_url: Option<&str>, threads: usize, all_open: bool) -> anyhow::Result<()> {
    let clock = Arc::new(SystemClock);
    let store: Arc<dyn Store> = match redis_url {
        Some(url) => Arc::new(RedisStore::open(url, &Access::default()).await?),
        None => Arc::new(SqliteStore::open(folder.join("threads.sqlite"), clock)?),
    };
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let (store, keys) = (store.clone(), Keyring::new(vec![vec![7; 32]])?);
        writers.spawn(async move {
            for number in (writer..threads).step_by(WRITERS) {
                store.apply(&changes(record(number, all_open, &keys))).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(written) = writers.join_next().await {
        written??;
    }
    Ok(())
}

fn changes(record: ActionRecord) -> Changes {
    let mut changes = Changes::new(CommitId::fresh(), record.thread.clone());
    if record.status == Status::Pending {
        let times = Times { open_for: OPEN_FOR, remind_before: OPEN_FOR / 12, ..Times::default() };
        record.publish(&mut changes, &times);
        changes.outbox.clear(); // the card was posted long ago
        return changes;
    }
    let shown = json!({ "digest": record.digest, "parameters": record.parameters });
    changes.audit.push(record.event(AuditKind::Shown, record.requested_at, None, shown));
    changes.actions.push(ActionChange { expected: None, record });
    changes
}

/// The action of the thread with this number.
fn record(number: usize, all_open: bool, keys: &Keyring) -> ActionRecord {
    let thread = ThreadId {
        team: "T1".into(),
        channel: format!("C{}", number % 20 + 1).as_str().into(),
        root: format!("{}.000100", 1_760_000_000 + number).as_str().into(),
    };
    let by = |n: usize| UserId::new(format!("U{}", n % 50 + 1));
    let name = format!("Fractions {number}");
    let (parameters, preconditions) =
        (json!({ "experiment": name, "status": "enrolling" }), json!({ "status": "inactive" }));
    let policy =
        Policy { approvers: vec![Approver::Channel], own_request: true, needed: 1, typed: true, ..Policy::default() };
    let now = SystemClock.now();
    let status = match number % 10 {
        _ if all_open => Status::Pending,
        0 => Status::Pending,
        1 => Status::Rejected,
        2 => Status::Failed,
        _ => Status::Done,
    };
    let verdict = if status == Status::Rejected { Verdict::Rejected { reason: None } } else { Verdict::Approved };
    let decision = Decision { by: Some(by(number / 50 + 7)), at: now, verdict };
    let new = NewRecord {
        id: format!("bench-{number}").as_str().into(),
        approval: ApprovalId::new(&thread, number as u128),
        thread,
        run: "bench".into(),
        name: "update_experiment_status".to_owned(),
        action_version: 1,
        parameters,
        preconditions,
        policy,
        card: card(&name),
        slot: "card:1".into(),
        requested_by: by(number / 20),
        requested_at: now,
        expires_at: now + OPEN_FOR,
        undo: None,
        scope: Scope::default(),
        evidence: Evidence::default(),
    };
    let decisions = if status == Status::Pending { Vec::new() } else { vec![decision] };
    ActionRecord { status, decisions, ..new.signed(keys) }
}

fn card(name: &str) -> Card {
    let fact = |label: &str, after: &str| Fact { label: label.to_owned(), before: None, after: Text::from(after) };
    Card {
        title: format!("Start “{name}”?"),
        facts: vec![
            Fact { before: Some("inactive".into()), ..fact("Status", "running") },
            fact("Context", "assign-prog"),
            fact("Conditions", "control 50%, variant 50%"),
            fact("Decision points", "SelectSection / absolute_value_plot_equality"),
        ],
        warnings: Vec::new(),
        notes: vec!["Nobody is enrolled yet.".into()],
        approve: "Start experiment".to_owned(),
        reject: "Cancel request".to_owned(),
        done: format!("Started “{name}”."),
        irreversible: false,
        editable: false,
    }
}

/// Types every command, first one at a time, then many at once; then opens the Home tab.
pub(crate) async fn measure(person: &Person, threads: usize, table: &mut Table) -> anyhow::Result<()> {
    for (nth, line) in LINES.into_iter().enumerate() {
        types(person, line).await?; // the first one opens connections
        let mut took = Vec::new();
        for _ in 0..TIMES {
            took.push(types(person, line).await?);
        }
        let title = if nth == 0 { format!("commands, {threads} threads in the store") } else { String::new() };
        table.row(title, format!("{line} p50 · p99"), quantiles(&took));
    }
    let mut people = JoinSet::new();
    for n in 0..FEW {
        let person = person.clone();
        people.spawn(async move {
            let mut took = Vec::new();
            for m in 0..TIMES {
                took.push(types(&person, LINES[(n + m) % LINES.len()]).await?);
            }
            anyhow::Ok(took)
        });
    }
    let mut took = Vec::new();
    while let Some(one) = people.join_next().await {
        took.extend(one??);
    }
    table.row("", format!("all of them, {FEW} at a time, p50 · p99"), quantiles(&took));
    let mut took = Vec::new();
    for _ in 0..TIMES {
        took.push(opens_home(person).await?);
    }
    table.row("", "App Home drawn p50 · p99", quantiles(&took));
    Ok(())
}

/// From typing a command to its answer.
async fn types(person: &Person, line: &str) -> anyhow::Result<Duration> {
    let id = person.slack.fresh_ts();
    let answered = person.slack.expects(&id);
    let (command, text) = line.split_once(' ').unwrap_or((line, ""));
    let payload = json!({
        "token": "gone", "team_id": "T1", "team_domain": "bench", "channel_id": CHANNEL, "channel_name": "experiments",
        "user_id": ASKER, "user_name": "ana", "command": command, "text": text, "api_app_id": "A1",
        "is_enterprise_install": "false", "trigger_id": id, "response_url": person.slack.response_url(&id),
    });
    let began = Instant::now();
    person.delivers("slash_commands", "/slack/commands", payload).await?;
    let at = timeout(BOUND, answered).await.with_context(|| format!("no answer to {line}"))??;
    Ok(at - began)
}

/// From opening the Home tab to the moment it is drawn.
async fn opens_home(person: &Person) -> anyhow::Result<Duration> {
    let answered = person.slack.expects(ASKER);
    let ts = person.slack.fresh_ts();
    let event: Value =
        json!({ "type": "app_home_opened", "user": ASKER, "channel": "D1", "tab": "home", "event_ts": ts });
    let callback = json!({
        "token": "gone", "team_id": "T1", "api_app_id": "A1", "type": "event_callback", "event_id": format!("Ev{ts}"),
        "event_time": now(), "event": event,
        "authorizations": [{ "enterprise_id": null, "team_id": "T1", "user_id": BOT, "is_bot": true }],
    });
    let began = Instant::now();
    person.delivers("events_api", "/slack/events", callback).await?;
    let at = timeout(BOUND, answered).await.context("no Home tab")??;
    Ok(at - began)
}
