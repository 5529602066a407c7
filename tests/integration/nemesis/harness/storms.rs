//! What goes wrong, drawn from the seed: storms of a few kinds of faults at once, each followed by a calm in which
//! everything must come to its end.

use std::{sync::Arc, time::Duration};

use countersign_sandbox::{
    faults::{Down, Fault as PlatformFault, When},
    slack::{
        SandboxSlack,
        faults::{Fault as SlackFault, Loss},
    },
    upgrade::SandboxUpgrade,
};
use futures_util::future::{BoxFuture, FutureExt as _, join_all};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::{sync::Mutex, time::sleep};

use super::{
    bots::Slot,
    weather::Weather,
    wire::{Act, Mode, Rule, Side, Wire},
};
use crate::support::redis::RedisServer;

/// How long a storm lasts at most, its last fault aside.
const STORM: Duration = Duration::from_secs(9);
/// Longer than a lease and the time that a request may be on its way: others have taken over when the process wakes.
const STALL: std::ops::Range<f64> = 6.5..8.0;
/// How many seconds the only clock jumps at most.
const JUMP_ALONE: f64 = 3.0;
/// The same where clocks of several processes are compared: any two differ by less than half of the time that a change may
/// be on its way (4 s here), as `docs/reliability.md` assumes.
const JUMP_BESIDE_OTHERS: f64 = 0.95;

/// What a storm may be made of, with how often it is drawn.
const KINDS: &[(&str, u32)] = &[
    ("kills", 5),
    ("kills-at", 4),
    ("stalls", 3),
    ("stalls-at", 6),
    ("clocks", 2),
    ("wires", 3),
    ("slack", 4),
    ("platform", 4),
    ("redis-kill", 2),
    ("redis-stop", 2),
    ("redis-readonly", 1),
    ("redis-memory", 1),
    ("redis-fsync", 1),
];

/// The kinds there are.
pub(crate) fn kinds() -> Vec<&'static str> {
    KINDS.iter().map(|(name, _)| *name).collect()
}

/// Everything that can go wrong.
#[derive(Clone)]
pub(crate) struct Sky {
    pub(crate) weather: Weather,
    pub(crate) slots: Vec<Arc<Slot>>,
    /// Those of each slot: to Slack, to the platform and, where there is one, to Redis.
    pub(crate) wires: Arc<Vec<Vec<Wire>>>,
    pub(crate) slack: SandboxSlack,
    pub(crate) upgrade: Arc<SandboxUpgrade>,
    pub(crate) redis: Option<Arc<Mutex<RedisServer>>>,
    /// Only these kinds; all of them if it is empty.
    pub(crate) only: Vec<String>,
}

impl Sky {
    /// One storm, from its first fault to the moment at which nothing is wrong any more.
    pub(crate) async fn storm(&self, seed: u64) {
        let mut dice = StdRng::seed_from_u64(seed);
        let possible: Vec<_> = KINDS
            .iter()
            .filter(|(name, _)| self.redis.is_some() || !name.starts_with("redis"))
            .filter(|(name, _)| self.only.is_empty() || self.only.iter().any(|only| only == name))
            .collect();
        if possible.is_empty() {
            return;
        }
        let mut chosen: Vec<&str> = Vec::new();
        for _ in 0..dice.random_range(1..=3) {
            if let Ok((name, _)) = possible.choose_weighted(&mut dice, |(_, weight)| *weight)
                && !chosen.contains(name)
            {
                chosen.push(name);
            }
        }
        let whole = self.weather.begins("storm", &chosen.join(" and "));
        join_all(chosen.into_iter().map(|kind| self.kind(kind, StdRng::seed_from_u64(dice.random())))).await;
        self.calm_down().await;
        drop(whole);
    }

    /// Takes everything back.
    pub(crate) async fn calm_down(&self) {
        for wire in self.wires.iter().flatten() {
            wire.clear();
        }
        for slot in &self.slots {
            slot.set_clock(0.0);
        }
        self.slack.inject(SlackFault::Clear);
        self.upgrade.is_well();
        if self.redis.is_some() {
            self.set_redis("appendfsync", "always").await;
            self.set_redis("maxmemory", "0").await;
            self.set_redis("min-replicas-to-write", "0").await;
        }
    }

    fn kind(&self, kind: &str, dice: StdRng) -> BoxFuture<'_, ()> {
        match kind {
            "kills" => self.kills(dice).boxed(),
            "kills-at" => self.at_bytes(dice, true).boxed(),
            "stalls" => self.stalls(dice).boxed(),
            "stalls-at" => self.at_bytes(dice, false).boxed(),
            "clocks" => self.clocks(dice).boxed(),
            "wires" => self.wires(dice).boxed(),
            "slack" => self.slack(dice).boxed(),
            "platform" => self.platform(dice).boxed(),
            "redis-kill" => self.redis_kill(dice).boxed(),
            "redis-stop" => self.redis_stop(dice).boxed(),
            "redis-readonly" => self.redis_set(dice, "min-replicas-to-write", "1", "0").boxed(),
            "redis-memory" => self.redis_set(dice, "maxmemory", "1mb", "0").boxed(),
            _ => self.redis_set(dice, "appendfsync", "no", "always").boxed(),
        }
    }

    fn slot(&self, dice: &mut StdRng) -> &Arc<Slot> {
        &self.slots[dice.random_range(0..self.slots.len())]
    }

    fn wire(&self, dice: &mut StdRng) -> &Wire {
        let wires = &self.wires[dice.random_range(0..self.wires.len())];
        &wires[dice.random_range(0..wires.len())]
    }

    /// At moments that nothing tells.
    async fn kills(&self, mut dice: StdRng) {
        let times = dice.random_range(3..=7);
        for _ in 0..times {
            sleep(STORM.mul_f64(dice.random_range(0.3..1.0) / f64::from(times))).await;
            self.slot(&mut dice).kill("at random");
        }
    }

    async fn stalls(&self, mut dice: StdRng) {
        for _ in 0..dice.random_range(1..=3) {
            sleep(Duration::from_secs_f64(dice.random_range(0.0..3.0))).await;
            let time = Duration::from_secs_f64(dice.random_range(STALL));
            self.slot(&mut dice).freeze(time, "at random");
        }
        sleep(STORM).await;
    }

    /// At the moment at which certain bytes pass: near what cannot be taken back.
    async fn at_bytes(&self, mut dice: StdRng, kills: bool) {
        const SLACK: usize = 0;
        const PLATFORM: usize = 1;
        const REDIS: usize = 2;
        /// The wire, the side, what the request contains, and how likely it is to happen at each.
        const MOMENTS: &[(usize, Side, &str, f64)] = &[
            (PLATFORM, Side::Answer, "GET /api/experiments/single", 0.15), // just before the write
            (PLATFORM, Side::Request, "GET /api/experiments/single", 0.1),
            (PLATFORM, Side::Request, "POST /api/experiments/state", 0.3),
            (PLATFORM, Side::Answer, "POST /api/experiments/state", 0.3),
            (PLATFORM, Side::Request, "DELETE /api/experiments", 0.5),
            (PLATFORM, Side::Answer, "DELETE /api/experiments", 0.5),
            (SLACK, Side::Request, "chat.postMessage", 0.1),
            (SLACK, Side::Answer, "chat.postMessage", 0.1),
            (SLACK, Side::Request, "chat.update", 0.1),
            (SLACK, Side::Answer, "conversations.replies", 0.5),
            (REDIS, Side::Request, "", 0.01),
            (REDIS, Side::Answer, "", 0.01),
        ];
        let usable: Vec<_> = MOMENTS.iter().filter(|(wire, ..)| self.redis.is_some() || *wire != REDIS).collect();
        for wires in self.wires.iter() {
            for _ in 0..dice.random_range(1..=2) {
                let Some(&&(wire, side, only, chance)) = usable.choose(&mut dice) else { return };
                let time = Duration::from_secs_f64(dice.random_range(STALL));
                let held = Duration::from_secs_f64(dice.random_range(0.1..1.5));
                let act = match (kills, dice.random_bool(0.5)) {
                    (true, true) => Act::Kill,
                    (true, false) => Act::KillBefore,
                    (false, true) => Act::Freeze(time),
                    (false, false) => Act::FreezeAndHold(time, held),
                };
                let left = if kills { dice.random_range(1..=3) } else { 1 };
                wires[wire].add(Rule { kind: "", side, only, chance, left, act });
            }
        }
        sleep(STORM).await;
    }

    /// Wall clocks jump, there and back, and are right again at the end.
    async fn clocks(&self, mut dice: StdRng) {
        let most = if self.slots.len() > 1 { JUMP_BESIDE_OTHERS } else { JUMP_ALONE };
        for _ in 0..dice.random_range(2..=5) {
            let slot = self.slot(&mut dice);
            let seconds = dice.random_range(-most..most);
            self.weather.strikes("jump of a clock", &format!("bot {} to {seconds:+.1} s", slot.index));
            slot.set_clock(seconds);
            sleep(Duration::from_secs_f64(dice.random_range(0.5..3.0))).await;
        }
        self.slots.iter().for_each(|slot| slot.set_clock(0.0));
    }

    async fn wires(&self, mut dice: StdRng) {
        for _ in 0..dice.random_range(2..=5) {
            let wire = self.wire(&mut dice);
            let mode = *[Mode::Cut, Mode::Stalled, Mode::LosesAnswers].choose(&mut dice).expect("three");
            // What waits on a stalled wire arrives afterwards, and may not be later than requests ever are.
            let time = Duration::from_secs_f64(dice.random_range(0.3..2.5));
            let delay = dice.random_bool(0.4);
            let fault = self.weather.begins("wire", &format!("{} {mode:?} (delays: {delay}) {time:?}", wire.name()));
            let cut = Act::Cut;
            wire.add(Rule {
                kind: "wire, one connection cut",
                side: Side::Answer,
                only: "",
                chance: 0.05,
                left: 3,
                act: cut,
            });
            if delay {
                for side in [Side::Request, Side::Answer] {
                    let act = Act::Delay(Duration::from_millis(dice.random_range(20..700)));
                    wire.add(Rule { kind: "wire, one delay", side, only: "", chance: 0.1, left: 30, act });
                }
            } else {
                wire.set(mode);
            }
            sleep(time).await;
            wire.set(Mode::Up);
            drop(fault);
        }
    }

    async fn slack(&self, mut dice: StdRng) {
        const METHODS: &[&str] = &["chat.postMessage", "chat.postMessage", "chat.update", "conversations.replies", "*"];
        for _ in 0..dice.random_range(3..=8) {
            let method = (*METHODS.choose(&mut dice).expect("there are some")).to_owned();
            let how = if dice.random_bool(0.5) { Loss::Closed } else { Loss::TimedOut };
            let calls = dice.random_range(1..=6);
            let fault = match dice.random_range(0..9) {
                0 => SlackFault::LoseAnswer { method, calls, how },
                1 => SlackFault::LoseRequest { method, calls, how },
                2 => SlackFault::Slow { method, calls, delay_ms: dice.random_range(200..2_000) },
                3 => SlackFault::RateLimit { method, calls, retry_after: 1 },
                4 => {
                    let error = *["internal_error", "fatal_error", "something_new"].choose(&mut dice).expect("three");
                    SlackFault::Fail { method, error: error.to_owned(), calls }
                }
                5 => SlackFault::DeliverTwice { on: true },
                6 => SlackFault::Reorder { events: dice.random_range(2..=5) },
                7 => SlackFault::DropSockets,
                _ => {
                    let (what, raw) = page(&mut dice);
                    let done = dice.random_bool(0.5);
                    let act = Act::Say { raw, done };
                    let rule = Rule {
                        kind: what,
                        side: Side::Request,
                        only: "POST /api/chat.",
                        chance: 0.3,
                        left: calls,
                        act,
                    };
                    self.wires[dice.random_range(0..self.wires.len())][0].add(rule);
                    sleep(Duration::from_millis(500)).await;
                    continue;
                }
            };
            let name = serde_json::to_value(&fault).ok().and_then(|fault| fault["fault"].as_str().map(str::to_owned));
            self.weather.strikes(&format!("slack {}", name.unwrap_or_default()), &format!("{fault:?}"));
            self.slack.inject(fault);
            sleep(Duration::from_millis(dice.random_range(200..1_500))).await;
        }
    }

    async fn platform(&self, mut dice: StdRng) {
        for _ in 0..dice.random_range(3..=8) {
            let when = if dice.random_bool(0.6) { When::AfterEffect } else { When::BeforeEffect };
            let only = *[None, Some("POST /api/experiments/state"), Some("DELETE")].choose(&mut dice).expect("three");
            let fault = match dice.random_range(0..7) {
                0 => PlatformFault::LostRequest,
                1 => PlatformFault::Proxy(*[403, 404, 500, 502, 503].choose(&mut dice).expect("five")),
                2 => PlatformFault::Answer(200, json!([])),
                3 => PlatformFault::Answer(400, json!({ "message": "no" })),
                4 => PlatformFault::Hang,
                5 => {
                    let fault = self.weather.begins("platform slow or down", "");
                    match dice.random_range(0..3) {
                        0 => self.upgrade.is_down(Some(Down::Closed)),
                        1 => self.upgrade.is_down(Some(Down::Unavailable)),
                        _ => self.upgrade.is_slow(Duration::from_millis(dice.random_range(200..1_800))),
                    }
                    sleep(Duration::from_secs_f64(dice.random_range(0.3..2.5))).await;
                    self.upgrade.is_well();
                    drop(fault);
                    continue;
                }
                _ => {
                    let (what, raw) = page(&mut dice);
                    let done = dice.random_bool(0.5);
                    let only = if dice.random_bool(0.5) { "POST /api/experiments/state" } else { "" };
                    let rule = Rule {
                        kind: what,
                        side: Side::Request,
                        only,
                        chance: 0.3,
                        left: dice.random_range(1..=3),
                        act: Act::Say { raw, done },
                    };
                    self.wires[dice.random_range(0..self.wires.len())][1].add(rule);
                    sleep(Duration::from_millis(500)).await;
                    continue;
                }
            };
            let name = match &fault {
                PlatformFault::LostRequest => "loses answer",
                PlatformFault::Proxy(_) => "error page",
                PlatformFault::Answer(..) => "untrue answer",
                _ => "hangs",
            };
            let fault = fault.at(when);
            self.weather.strikes(&format!("platform {name} {when:?}"), &format!("{fault:?} on {only:?}"));
            self.upgrade.will(only.unwrap_or_default(), fault);
            sleep(Duration::from_millis(dice.random_range(100..1_000))).await;
        }
    }

    async fn redis_kill(&self, mut dice: StdRng) {
        let Some(redis) = &self.redis else { return };
        for _ in 0..dice.random_range(1..=2) {
            sleep(Duration::from_secs_f64(dice.random_range(0.2..2.0))).await;
            let fault = self.weather.begins("kill -9 of Redis", "");
            let mut redis = redis.lock().await;
            redis.kill();
            sleep(Duration::from_secs_f64(dice.random_range(0.0..2.5))).await;
            redis.restart().await;
            drop(fault);
        }
    }

    async fn redis_stop(&self, mut dice: StdRng) {
        let Some(redis) = &self.redis else { return };
        sleep(Duration::from_secs_f64(dice.random_range(0.2..2.0))).await;
        let redis = redis.lock().await;
        let Some(pid) = redis.id().and_then(|id| Pid::from_raw(i32::try_from(id).unwrap_or_default())) else { return };
        let fault = self.weather.begins("stall of Redis", "");
        kill_process(pid, Signal::STOP).ok();
        sleep(Duration::from_secs_f64(dice.random_range(0.5..7.0))).await;
        kill_process(pid, Signal::CONT).ok();
        drop(fault);
    }

    /// A setting of Redis is wrong for a while.
    async fn redis_set(&self, mut dice: StdRng, key: &str, wrong: &str, right: &str) {
        sleep(Duration::from_secs_f64(dice.random_range(0.2..2.0))).await;
        let fault = self.weather.begins(&format!("Redis {key} {wrong}"), "");
        self.set_redis(key, wrong).await;
        sleep(Duration::from_secs_f64(dice.random_range(1.0..6.0))).await;
        self.set_redis(key, right).await;
        drop(fault);
    }

    async fn set_redis(&self, key: &str, value: &str) {
        let Some(redis) = &self.redis else { return };
        let redis = redis.lock().await;
        let url = redis.url();
        let set = async {
            let client = redis::Client::open(url)?;
            let mut connection = client.get_multiplexed_async_connection().await?;
            redis::cmd("CONFIG").arg("SET").arg(key).arg(value).query_async::<()>(&mut connection).await
        };
        if let Err(error) = set.await {
            self.weather.note(&format!("Redis {key} could not be set to {value}: {error}"));
        }
    }
}

/// Something that is no answer of Slack or of the platform, as something between them and the bot would say it.
fn page(dice: &mut StdRng) -> (&'static str, Arc<[u8]>) {
    let html = "<html><body><h1>Something is in the way</h1></body></html>".to_owned();
    let (what, status, kind, body) = match dice.random_range(0..6) {
        0 => ("wrong answer: a page with 403", "403 Forbidden", "text/html", html),
        1 => ("wrong answer: a page with 502", "502 Bad Gateway", "text/html", html),
        2 => ("wrong answer: a page with 200", "200 OK", "text/html", html),
        3 => ("wrong answer: 500", "500 Internal Server Error", "text/plain", String::new()),
        4 => (
            "wrong answer: unknown refusal",
            "200 OK",
            "application/json",
            r#"{"ok":false,"error":"something_new"}"#.to_owned(),
        ),
        _ => ("wrong answer: huge", "200 OK", "application/json", format!("\"{}\"", "x".repeat(20 << 20))),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    (what, [head.into_bytes(), body.into_bytes()].concat().into())
}
