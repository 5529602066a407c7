//! Clients that keep the bot waiting, as many as there can be, and what others notice of them.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use countersign_sandbox::slow_client::{Slow, SlowClient};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{
    figures::{Table, millis, quantile},
    round::{Person, Way},
    wire::Wire,
};

/// The maximum number of files and sockets that the bot can open.
pub(crate) const DESCRIPTORS: u64 = 1_024;

/// Deliveries that are measured, so many at a time.
const DELIVERIES: usize = 4_000;
const AT_A_TIME: usize = 8;
/// The interval at which a slow client sends a byte, and the wait of a disconnected one before it returns.
const DRIP: Duration = Duration::from_secs(1);
/// The time that Slack waits for an acknowledgment.
const SLACK_WAITS: Duration = Duration::from_secs(3);

/// Measures acknowledgements and `/healthz` while `many` clients are slow; each that is cut off comes back.
pub(crate) async fn measure(person: &Person, bot: SocketAddr, many: usize, table: &mut Table) -> anyhow::Result<()> {
    may_open(many)?;
    let open = Arc::new(AtomicUsize::new(0));
    let cut = Arc::new(AtomicUsize::new(0));
    let mut slow = JoinSet::new();
    for nth in 0..many {
        let (open, cut) = (open.clone(), cut.clone());
        slow.spawn(async move {
            let how = [Slow::Silent, Slow::Head, Slow::Body, Slow::Idle][nth % 4];
            loop {
                if let Ok(mut client) = SlowClient::connect(bot, how).await {
                    open.fetch_add(1, Ordering::Relaxed);
                    while client.drips().await.is_ok() && timeout(DRIP, client.closed()).await.is_err() {}
                    open.fetch_sub(1, Ordering::Relaxed);
                    cut.fetch_add(1, Ordering::Relaxed);
                }
                sleep(DRIP).await;
            }
        });
    }
    let bound = Instant::now() + Duration::from_secs(30);
    while cut.load(Ordering::Relaxed) < many / 2 {
        ensure!(Instant::now() < bound, "too few slow clients get through: {} open", open.load(Ordering::Relaxed));
        sleep(Duration::from_millis(50)).await;
    }
    let (deliveries, health) = tokio::join!(deliveries(person, bot), healths(bot));
    let ((took, failed), (health, silent)) = (deliveries?, health);
    let of = |took: &[Duration]| {
        let at = [0.5, 0.99, 0.999, 1.0].map(|share| millis(quantile(took, share)));
        at.join(" · ")
    };
    let cut = cut.load(Ordering::Relaxed);
    table.row(
        format!("{many} slow clients, {DESCRIPTORS} descriptors"),
        "times one was cut off and came back",
        cut.to_string(),
    );
    table.row("", "acknowledgement p50 · p99 · p99.9 · most", of(&took));
    table.row("", "acknowledged · not", format!("{} · {failed}", took.len()));
    table.row("", "/healthz p50 · p99 · p99.9 · most", of(&health));
    table.row("", "/healthz answered · not", format!("{} · {silent}", health.len()));
    slow.shutdown().await;
    ensure!(failed == 0 && silent == 0, "{failed} deliveries and {silent} questions for health had no answer");
    ensure!(quantile(&took, 0.999) < SLACK_WAITS, "Slack would have given up");
    Ok(())
}

/// Raises the limit of open files, where it is lower: this process has a connection for each slow client. What it starts
/// from then on may open as many.
pub(crate) fn may_open(many: usize) -> anyhow::Result<()> {
    let needed = u64::try_from(many)? + 512;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let raised = Rlimit { current: Some(needed), maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).with_context(|| format!("{needed} open files are needed; see ulimit -Hn"))
}

/// Deliveries by connections of their own, as Slack makes them: how long each took, and how many had no answer in time.
async fn deliveries(person: &Person, bot: SocketAddr) -> anyhow::Result<(Vec<Duration>, usize)> {
    let mut people = JoinSet::new();
    for _ in 0..AT_A_TIME {
        let slack = person.slack.clone();
        people.spawn(async move {
            let (mut took, mut failed) = (Vec::new(), 0);
            let root = slack.fresh_ts();
            for _ in 0..DELIVERIES / AT_A_TIME {
                let person = Person { slack: slack.clone(), way: Way::Http(Wire::to(bot)) };
                let began = Instant::now();
                match timeout(2 * SLACK_WAITS, person.says(&root, &slack.fresh_ts(), false, "I think so too")).await {
                    Ok(Ok(_)) => took.push(began.elapsed()),
                    _ => failed += 1,
                }
            }
            (took, failed)
        });
    }
    let (mut took, mut failed) = (Vec::new(), 0);
    while let Some(one) = people.join_next().await {
        let one = one?;
        took.extend(one.0);
        failed += one.1;
    }
    Ok((took, failed))
}

/// Asks for `/healthz` again and again: how long each answer took, and how many there were none of.
async fn healths(bot: SocketAddr) -> (Vec<Duration>, usize) {
    let (mut took, mut silent) = (Vec::new(), 0);
    for _ in 0..100 {
        let began = Instant::now();
        match timeout(2 * SLACK_WAITS, SlowClient::connect(bot, Slow::Idle)).await {
            Ok(Ok(_)) => took.push(began.elapsed()),
            _ => silent += 1,
        }
        sleep(Duration::from_millis(50)).await;
    }
    (took, silent)
}
