//! Approvals, many at a time or many in one thread.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use countersign_sandbox::upgrade::SandboxUpgrade;
use tokio::{sync::Barrier, task::JoinSet};

use crate::{
    bot::{self, Bot},
    figures::{Table, quantiles},
    round::{Hears, Person, Round},
};

/// Long threads that go on at the same time.
const LONG_THREADS: usize = 8;
/// The turns on each side of a turn that are measured with it.
const AROUND: usize = 5;

/// No time after which no further round trip begins.
pub(crate) const NO_LIMIT: Duration = Duration::MAX;

/// Names the experiment of one of those who ask at the same time.
pub(crate) fn experiment(number: usize) -> String {
    format!("Bench {number:02}")
}

/// Puts so many experiments on the platform that nobody asks for.
pub(crate) fn further_experiments(upgrade: &SandboxUpgrade, count: usize) {
    for number in 0..count {
        upgrade.has(&format!("Further {number:05}"), "inactive");
    }
}

/// What a number of round trips took.
pub(crate) struct Approvals {
    in_flight: usize,
    took: Vec<Round>,
    /// All of them, with those that only put an experiment back.
    pub(crate) all: f64,
    elapsed: Duration,
    processor_time: Duration,
    own_processor_time: Duration,
    slack_calls: u64,
}

/// Has at most `rounds` round trips made, so many at a time; no further one begins after `limit`. The bot may be several
/// processes.
pub(crate) async fn approvals(
    person: &Person,
    bots: &[&Bot],
    upgrade: &Arc<SandboxUpgrade>,
    in_flight: usize,
    rounds: usize,
    limit: Duration,
) -> anyhow::Result<Approvals> {
    let left = Arc::new(AtomicUsize::new(rounds));
    let bot_time = || bots.iter().map(|bot| bot.processor_time()).sum::<anyhow::Result<Duration>>();
    let (bot_before, own_before, calls) = (bot_time()?, bot::own_processor_time()?, person.slack.calls());
    let began = Instant::now();
    let mut people = JoinSet::new();
    for number in 0..in_flight {
        let (person, left, upgrade) = (person.clone(), left.clone(), upgrade.clone());
        people.spawn(async move {
            let mut took = Vec::new();
            let mut words = Alternating::of(number, upgrade);
            while began.elapsed() < limit
                && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
            {
                let root = person.slack.fresh_ts();
                let mut hears = Hears::thread(&person.slack, &root);
                took.push(person.approves(&root, &mut hears, &words.next()).await?);
                person.slack.forget(&root);
            }
            if words.is_running() {
                // For whoever comes next with this experiment; not counted.
                let root = person.slack.fresh_ts();
                let mut hears = Hears::thread(&person.slack, &root);
                person.approves(&root, &mut hears, &words.next()).await?;
                person.slack.forget(&root);
            }
            anyhow::Ok(took)
        });
    }
    let mut took: Vec<Round> = Vec::new();
    let mut extra = 0;
    while let Some(one) = people.join_next().await {
        let one = one??;
        extra += one.len() % 2;
        took.extend(one);
    }
    Ok(Approvals {
        in_flight,
        all: (took.len() + extra) as f64,
        took,
        elapsed: began.elapsed(),
        // A thread that has ended counts no longer, such as the one that starts the metrics.
        processor_time: bot_time()?.saturating_sub(bot_before),
        own_processor_time: bot::own_processor_time()? - own_before,
        slack_calls: person.slack.calls() - calls,
    })
}

impl Approvals {
    /// Returns how many there were in a second.
    pub(crate) fn a_second(&self) -> String {
        format!("{:.0}", self.rate())
    }

    /// Returns how many there were in a second, as a number.
    pub(crate) fn rate(&self) -> f64 {
        self.all / self.elapsed.as_secs_f64()
    }

    /// Returns the share of a core that the bot used, all its processes together.
    pub(crate) fn busy(&self) -> f64 {
        self.processor_time.as_secs_f64() / self.elapsed.as_secs_f64()
    }

    /// Returns the load's processor time for each.
    pub(crate) fn own_processor_time(&self) -> String {
        self.each(self.own_processor_time)
    }

    /// Returns the bot's processor time for each.
    pub(crate) fn processor_time(&self) -> String {
        self.each(self.processor_time)
    }

    /// Returns the number of calls to Slack for each.
    pub(crate) fn slack_calls(&self) -> String {
        format!("{:.1}", self.slack_calls as f64 / self.all)
    }

    /// Returns how long a part took, p50 and p99.
    pub(crate) fn part(&self, part: fn(&Round) -> Duration) -> String {
        quantiles(&self.took.iter().map(part).collect::<Vec<_>>())
    }

    /// Returns a time divided among all of them.
    pub(crate) fn each(&self, total: Duration) -> String {
        format!("{:.2} ms", total.as_secs_f64() * 1e3 / self.all)
    }

    /// Adds all figures to a table.
    pub(crate) fn tell(&self, table: &mut Table) {
        table.row(format!("approvals, {} in flight", self.in_flight), "round trips a second", self.a_second());
        table.row("", "bot's processor time for each", self.processor_time());
        table.row("", "the load's, for each", self.own_processor_time());
        table.row("", "calls to Slack for each", self.slack_calls());
        table.row("", "mention acknowledged p50 · p99", self.part(|round| round.mention_acknowledged));
        table.row("", "press acknowledged p50 · p99", self.part(|round| round.click_acknowledged));
        table.row("", "mention → card p50 · p99", self.part(|round| round.card));
        table.row("", "press → outcome p50 · p99", self.part(|round| round.outcome));
        table.row("", "whole round trip p50 · p99", self.part(|round| round.whole));
    }
}

/// Measures the growth of a turn's cost with its thread: the bot's CPU time for a turn around turns 10, 100 and so on.
pub(crate) async fn long_threads(
    person: &Person,
    bot: &Bot,
    upgrade: &Arc<SandboxUpgrade>,
    turns: usize,
    table: &mut Table,
) -> anyhow::Result<()> {
    let measured: Vec<usize> = [10, 100, 500].into_iter().filter(|turn| *turn < turns).chain([turns]).collect();
    let edges: Vec<usize> = measured.iter().flat_map(|turn| [turn - AROUND, turn + AROUND]).collect();
    let barrier = Arc::new(Barrier::new(LONG_THREADS + 1));
    let mut people = JoinSet::new();
    for number in 0..LONG_THREADS {
        let (person, barrier, edges, upgrade) = (person.clone(), barrier.clone(), edges.clone(), upgrade.clone());
        people.spawn(async move {
            let mut words = Alternating::of(number, upgrade);
            let root = person.slack.fresh_ts();
            let mut hears = Hears::thread(&person.slack, &root);
            let mut turn = 0;
            for edge in edges {
                while turn < edge {
                    person.approves(&root, &mut hears, &words.next()).await?;
                    turn += 1;
                }
                barrier.wait().await; // everybody is there
                barrier.wait().await; // and the clock was read
            }
            anyhow::Ok(())
        });
    }
    let measure = async {
        let mut figures = Vec::new();
        for turn in &measured {
            barrier.wait().await;
            let (before, began) = (bot.processor_time()?, Instant::now());
            barrier.wait().await;
            barrier.wait().await;
            let rounds = (2 * AROUND * LONG_THREADS) as f64;
            let spent = (bot.processor_time()? - before).as_secs_f64() * 1e3 / rounds;
            let took = began.elapsed().as_secs_f64() * 1e3 / (2 * AROUND) as f64;
            barrier.wait().await;
            figures.push((*turn, spent, took));
        }
        anyhow::Ok(figures)
    };
    let finish = async {
        while let Some(one) = people.join_next().await {
            one??;
        }
        std::future::pending::<()>().await;
        anyhow::Ok(())
    };
    let figures = tokio::select! {
        figures = measure => figures?,
        failed = finish => return failed,
    };
    let first = figures[0];
    for (nth, (turn, spent, took)) in figures.into_iter().enumerate() {
        let title = if nth == 0 { format!("long threads, {LONG_THREADS} at a time") } else { String::new() };
        let what = format!("turn {turn}: bot's processor time · latency");
        let ratio = if nth == 0 { String::new() } else { format!(" ({:.2} × turn {})", spent / first.1, first.0) };
        table.row(title, what, format!("{spent:.2} ms{ratio} · {took:.1} ms"));
    }
    Ok(())
}

/// An experiment, started and stopped, and then again as if it were new.
struct Alternating {
    upgrade: Arc<SandboxUpgrade>,
    name: String,
    running: bool,
}

impl Alternating {
    fn of(number: usize, upgrade: Arc<SandboxUpgrade>) -> Self {
        let name = experiment(number);
        upgrade.has_anew(&name, "inactive");
        upgrade.has_own_point(&name);
        Self { upgrade, name, running: false }
    }

    fn next(&mut self) -> String {
        if !self.running {
            self.upgrade.is_as_new(&self.name);
        }
        self.running = !self.running;
        format!("{} {}", if self.running { "start" } else { "stop" }, self.name)
    }

    fn is_running(&self) -> bool {
        self.running
    }
}
