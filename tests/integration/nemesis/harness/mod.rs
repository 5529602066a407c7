//! The nemesis: real processes of the bot, people who work with it, faults drawn from a seed, and a judge who looks only
//! at what people saw in the workspace and what the platform received.
//!
//! Start at [`run`]. `driver` is the people, `storms` what goes wrong (through `wire`, `bots`, `clocks` and the stand-ins), `weather`
//! keeps book of it, `case` is what is known about one thread, `judge` says what is wrong with it, `report` tells.
//!
//! A thread is judged when it is over and nothing has gone wrong for a while, and then forgotten everywhere outside the
//! bot: a run may take hours.

mod bots;
pub(crate) mod case;
pub(crate) mod clocks;
mod driver;
pub(crate) mod judge;
mod report;
pub(crate) mod storms;
mod weather;
mod wire;

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use countersign_sandbox::{
    slack::{self, Mode, SandboxSlack},
    upgrade::{self, SandboxUpgrade},
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    sync::{Mutex, mpsc},
    task::JoinSet,
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use self::{
    bots::{Fleet, Slot},
    driver::{CHANNEL, Driver, STUCK, Shared, locked},
    report::Around,
    storms::Sky,
    weather::Weather,
    wire::Wire,
};
use crate::support::{redis::RedisServer, stream::arrived};

pub(crate) use self::report::Report;

/// How long it is calm between two storms: longer than [`STUCK`], so that in each calm what is stuck shows.
const CALM: Duration = Duration::from_secs(20);
/// How long the next storm waits for that at most.
const CALM_AT_MOST: Duration = Duration::from_secs(60);
/// How long the last threads may take once no new ones begin.
const LAST: Duration = Duration::from_secs(120);
/// How many threads may wait for their judgement; there is no new one meanwhile.
const WAITING: usize = 600;
/// How many calls and deliveries the workspace remembers, for timelines.
const REMEMBERED: usize = 15_000;

/// The file with the audit stream.
const STREAM: &str = "audit.jsonl";

/// Where the bot keeps its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    Sqlite,
    Redis,
}

/// How the bot hears of things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Http,
    Socket,
}

/// What to do.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) store: Store,
    pub(crate) by: By,
    pub(crate) processes: usize,
    pub(crate) length: Duration,
    pub(crate) seed: u64,
    /// New threads a second, at most.
    pub(crate) rate: f64,
    /// How many threads are under way at a time.
    pub(crate) people: usize,
    /// Only these kinds of faults; all if it is empty.
    pub(crate) faults: Vec<String>,
    /// Where timelines go.
    pub(crate) out: PathBuf,
    /// The program, as it was built.
    pub(crate) program: PathBuf,
    /// How much the bot logs.
    pub(crate) log: String,
}

/// Works with the bot for a while, has things go wrong, and judges. Ends early, with what there is, when `stop` is
/// cancelled.
///
/// # Errors
///
/// If the stand-ins, Redis or the bot cannot be started, or libfaketime is missing.
pub(crate) async fn run(options: &Options, stop: CancellationToken) -> anyhow::Result<Report> {
    rustls::crypto::ring::default_provider().install_default().ok();
    std::fs::create_dir_all(&options.out).with_context(|| format!("cannot make {}", options.out.display()))?;
    let began = Instant::now();
    let mut dice = StdRng::seed_from_u64(options.seed);
    let Setting { folder, fleet, sky, driver } = Setting::new(options, &mut dice).await?;
    ensure!(fleet.ready(Duration::from_secs(60)).await, "the bot does not start:\n{}", log_of(&fleet));

    let over = driver.over.clone();
    let (finished, mut to_judge) = mpsc::unbounded_channel::<Shared>();
    let waiting = Arc::new(AtomicU64::new(0));
    let mut people = begin_work(options, &driver, &finished, &waiting, dice.random());
    drop(finished);
    let storms = tokio::spawn(storms(sky.clone(), dice.random(), over.clone()));

    let mut report = Report {
        title: format!("{:?}, {} process(es), by {:?}", options.store, options.processes, options.by),
        seed: options.seed,
        ..Report::default()
    };
    let around = Around { folder: &options.out, slack: &driver.slack, weather: &sky.weather, slots: &fleet.slots };
    let mut pending: Vec<(Instant, Shared)> = Vec::new();
    let mut ending: Option<Instant> = None;
    loop {
        sleep(Duration::from_millis(200)).await;
        driver.read_ledger();
        while let Ok(case) = to_judge.try_recv() {
            pending.push((Instant::now(), case));
        }
        let calm = sky.weather.calm_for();
        let (due, rest) = pending.into_iter().partition(|(since, _)| calm >= STUCK && since.elapsed() >= STUCK);
        pending = rest;
        for (_, case) in due as Vec<_> {
            judge(&driver, &case, &mut report, &around);
        }
        waiting.store(pending.len() as u64, Ordering::Relaxed);
        while let Some(ended) = people.try_join_next() {
            if let Err(error) = ended
                && error.is_panic()
            {
                report.broken_off = Some(format!("one of the people panicked: {error}"));
                over.cancel();
            }
        }
        if ending.is_none() && (began.elapsed() >= options.length || stop.is_cancelled() || over.is_cancelled()) {
            over.cancel();
            ending = Some(Instant::now());
        }
        let Some(since) = ending else { continue };
        if storms.is_finished() && people.is_empty() && pending.is_empty() && to_judge.is_empty() {
            break;
        }
        if since.elapsed() > LAST {
            report.broken_off =
                Some(format!("{} threads were never over, {} never judged", people.len(), pending.len()));
            break;
        }
    }
    people.abort_all();
    if let Err(wrong) = whole_stream(folder.path(), options, report.approvals).await {
        *report.violations.entry(judge::Kind::Stream).or_default() += 1;
        report.examples.push(format!("{:?}: {wrong}", judge::Kind::Stream));
    }
    report.took = began.elapsed();
    report.operations = driver.tally.lock().expect("nobody panics with the lock").clone();
    report.faults = sky.weather.counts();
    let alone = fleet.slots.iter().map(|slot| slot.ended_by_itself.load(Ordering::Relaxed)).sum();
    report.faults.insert("(a bot ended unexpectedly and was started again)".to_owned(), alone);
    if report.violations() > 0 || report.broken_off.is_some() {
        for slot in &fleet.slots {
            std::fs::copy(&slot.log, options.out.join(format!("seed-{}-bot-{}.log", options.seed, slot.index))).ok();
        }
    }
    drop(fleet);
    driver.slack.stop().await;
    Ok(report)
}

/// Everything that is there before the first request.
struct Setting {
    folder: TempDir,
    fleet: Fleet,
    sky: Sky,
    driver: Arc<Driver>,
}

impl Setting {
    async fn new(options: &Options, dice: &mut StdRng) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let weather = Weather::fair();
        let upgrade = Arc::new(SandboxUpgrade::start(upgrade::Options::default()).await?);
        let secret = SandboxSlack::SIGNING_SECRET.to_owned();
        let mode = match options.by {
            By::Http => Mode::Http { events_url: None, signing_secret: secret },
            By::Socket => Mode::Socket,
        };
        let slack = SandboxSlack::start(slack::Options {
            mode,
            // Slack gives up after the third; that an event is lost there is not what is looked for.
            redeliver_after: [vec![Duration::from_millis(250)], vec![Duration::from_secs(2); 120]].concat(),
            ..slack::Options::default()
        })
        .await?;
        slack.ledger().keeps(REMEMBERED);
        let redis = match options.store {
            Store::Redis => Some(Arc::new(Mutex::new(RedisServer::start().await))),
            Store::Sqlite => None,
        };
        let redis_port = match &redis {
            Some(redis) => Some(redis.lock().await.port()),
            None => None,
        };
        let (mut wires, mut slots) = (Vec::new(), Vec::new());
        for index in 0..options.processes {
            let slot = Slot::new(index, folder.path(), &weather)?;
            let mut own = Vec::new();
            for (name, target) in [
                ("slack", Some(port_of(slack.url())?)),
                ("platform", Some(port_of(&upgrade.url())?)),
                ("redis", redis_port),
            ] {
                if let Some(target) = target {
                    own.push(Wire::new(name, &slot, target, dice.random(), &weather).await?);
                }
            }
            let settings = settings(options, &slot, &own, folder.path());
            wires.push(own);
            slots.push((slot, settings));
        }
        let fleet = Fleet::start(slots, &options.program, &weather);
        if options.by == By::Http {
            let port = wire::balancer(fleet.slots.clone()).await?;
            slack.point_at(&format!("http://127.0.0.1:{port}"));
        }
        let sky = Sky {
            weather: weather.clone(),
            slots: fleet.slots.clone(),
            wires: Arc::new(wires),
            slack: slack.clone(),
            upgrade: upgrade.clone(),
            redis,
            only: options.faults.clone(),
        };
        let driver = Arc::new(Driver::new(slack, upgrade, weather, CancellationToken::new()));
        Ok(Self { folder, fleet, sky, driver })
    }
}

/// What a bot is told: short leases and short time limits, so that many of them pass in an hour.
fn settings(options: &Options, slot: &Slot, wires: &[Wire], folder: &Path) -> HashMap<String, String> {
    let at = |wire: usize| format!("http://127.0.0.1:{}/api", wires[wire].port);
    let mut settings: HashMap<String, String> = [
        ("SLACK_API_URL", at(0)),
        ("UPGRADE_API_URL", at(1)),
        ("SLACK_BOT_TOKEN", SandboxSlack::BOT_TOKEN.to_owned()),
        ("PORT", slot.port.to_string()),
        ("COUNTERSIGN__SERVER__LOG", options.log.clone()),
        ("COUNTERSIGN__SLACK__TIMEOUT", "1s".to_owned()),
        ("COUNTERSIGN__SLACK__RATE_LIMITS", "false".to_owned()),
        ("COUNTERSIGN__SLACK__NATIVE_STATUS", "false".to_owned()),
        ("COUNTERSIGN__UPGRADE__TIMEOUT", "1s".to_owned()),
        ("COUNTERSIGN__UPGRADE__SETTLE_WITHIN", "6s".to_owned()),
        ("COUNTERSIGN__APPROVALS__DIGEST_KEY_FILE", folder.join("countersign.key").display().to_string()),
        ("COUNTERSIGN__WORKERS__LEASE", "2s".to_owned()),
        ("COUNTERSIGN__WORKERS__SWEEP_EVERY", "100ms".to_owned()),
        ("COUNTERSIGN__WORKERS__STATUS_AFTER", "60s".to_owned()),
        ("COUNTERSIGN__APPROVALS__APPROVERS", "U1,U2".to_owned()),
        ("COUNTERSIGN__RECORD__STREAM", format!("file:{}", folder.join(STREAM).display())),
        ("COUNTERSIGN__RECORD__STREAM_TIMEOUT", "1s".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    let mut set = |name: &str, value: String| settings.insert(name.to_owned(), value);
    match options.by {
        By::Socket => set("SLACK_APP_TOKEN", SandboxSlack::APP_TOKEN.to_owned()),
        By::Http => set("SLACK_SIGNING_SECRET", SandboxSlack::SIGNING_SECRET.to_owned()),
    };
    match options.store {
        Store::Sqlite => set("COUNTERSIGN__STORE__PATH", folder.join("threads.sqlite").display().to_string()),
        Store::Redis => set("REDIS_URL", format!("redis://127.0.0.1:{}", wires[2].port)),
    };
    settings
}

fn port_of(url: &str) -> anyhow::Result<u16> {
    let url: url::Url = url.parse()?;
    url.port().context("the address of a stand-in names a port")
}

/// So many people who each see one thread through and begin the next.
fn begin_work(
    options: &Options,
    driver: &Arc<Driver>,
    finished: &mpsc::UnboundedSender<Shared>,
    waiting: &Arc<AtomicU64>,
    seed: u64,
) -> JoinSet<()> {
    let number = Arc::new(AtomicU64::new(0));
    let pause = Duration::from_secs_f64(1.0 / options.rate.max(0.01));
    let next = Arc::new(Mutex::new(tokio::time::interval(pause)));
    let mut people = JoinSet::new();
    for _ in 0..options.people {
        let (driver, finished, waiting) = (driver.clone(), finished.clone(), waiting.clone());
        let (number, next) = (number.clone(), next.clone());
        people.spawn(async move {
            loop {
                let tick = async { next.lock().await.tick().await };
                tokio::select! {
                    _ = tick => {}
                    () = driver.over.cancelled() => return,
                }
                if waiting.load(Ordering::Relaxed) > WAITING as u64 {
                    continue;
                }
                let number = number.fetch_add(1, Ordering::Relaxed) + 1;
                let case = driver.thread(number, seed.wrapping_add(number)).await;
                finished.send(case).ok(); // nobody listens any more once the run is over
            }
        });
    }
    people
}

/// Storm after storm, each followed by a calm.
async fn storms(sky: Sky, seed: u64, over: CancellationToken) {
    let mut dice = StdRng::seed_from_u64(seed);
    loop {
        let began = Instant::now();
        while sky.weather.calm_for() < CALM && began.elapsed() < CALM_AT_MOST {
            if over.is_cancelled() {
                return;
            }
            sleep(Duration::from_millis(100)).await;
        }
        // To its end, also when the run is over: what was stopped or killed has to be there again for the last threads.
        sky.storm(dice.random()).await;
    }
}

/// Judges a thread that is over, and forgets it.
fn judge(driver: &Driver, case: &Shared, report: &mut Report, around: &Around<'_>) {
    let said = driver.said(case);
    let known = locked(case).clone();
    let found = judge::judge(&known, &said);
    report.threads += 1;
    let done = said.iter().filter(|said| said.card.as_ref().is_some_and(|card| card.stands == case::Stands::Done));
    report.approvals += done.count() as u64;
    if !found.is_empty() {
        report.finds(&known, &said, &found, around);
    }
    let mut cases = driver.cases.lock().expect("nobody panics with the lock");
    let ids: Vec<String> =
        cases.iter().filter(|(_, (_, of))| Arc::ptr_eq(of, case)).map(|(id, _)| id.clone()).collect();
    for id in ids {
        cases.remove(&id);
        driver.upgrade.forgets(&id);
    }
    driver.slack.forgets(CHANNEL, &known.root);
}

/// Waits until the stream has the outcome of as many approvals as were seen, and checks its lines. A process that was frozen
/// as it wrote may repeat some without saying so.
async fn whole_stream(folder: &Path, options: &Options, approvals: u64) -> Result<(), String> {
    let began = Instant::now();
    loop {
        let lines = std::fs::read_to_string(folder.join(STREAM)).unwrap_or_default();
        arrived(&lines, options.processes > 1)?;
        let outcomes: HashSet<(String, u64)> = lines
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|line| line["entry"]["event"]["kind"] == "outcome")
            .map(|line| (line["thread"].to_string(), line["position"].as_u64().unwrap_or_default()))
            .collect();
        if outcomes.len() as u64 >= approvals {
            return Ok(());
        }
        if began.elapsed() > LAST {
            return Err(format!("it has {} outcomes, and {approvals} were seen", outcomes.len()));
        }
        sleep(Duration::from_secs(1)).await;
    }
}

fn log_of(fleet: &Fleet) -> String {
    let logs = fleet.slots.iter().map(|slot| std::fs::read_to_string(&slot.log).unwrap_or_default());
    logs.collect::<Vec<_>>().join("\n")
}
