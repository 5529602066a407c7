//! A large store: many threads in which a change was approved, and many in which a card is still open.
//!
//! The bot itself writes them, by as many approvals and cards, so all of it is real: leases, steps, actions, audit
//! trails, timers, keys of duplicates. Then the bot is started again, and people press the buttons of those cards. The
//! same is measured on a store that was empty at the start, with as many cards as there are presses.

use std::{
    collections::VecDeque,
    path::Path,
    time::{Duration, Instant},
};

use tokio::{task::JoinSet, time::sleep};

use crate::{
    FEW, IDLE, MANY,
    approvals::{NO_LIMIT, approvals, experiment},
    bot::{Bot, Memory, Surroundings},
    figures::{kib, millis, quantile, quantiles},
    first_contact, measured,
    place::{Kept, Place},
    round::{Card, Hears, Person, Pressed},
};

/// One in so many threads has an open card.
const OPEN: usize = 5;

/// The number of approvals after which the platform forgets what it was asked, so that memory suffices.
const FORGETS_AFTER: usize = 5_000;

/// The number of starts, of which the median counts.
const STARTS: usize = 5;

/// The presses before those that are measured: they open connections and fill caches.
const FIRST: usize = 2 * MANY;

/// The columns of the table.
const COLUMNS: [&str; 13] = [
    "store",
    "threads stored",
    "with an open card",
    "first acknowledgement",
    "PSS idle",
    "PSS after the presses",
    "press → outcome p50 · p99, 1 in flight",
    "16 in flight",
    "CPU each",
    "on disk for each approval",
    "with the log",
    "for each open card",
    "filled in",
];

/// A card in the store.
#[derive(Clone)]
struct Open {
    root: String,
    card: Card,
}

/// The open cards about each experiment.
type Cards = Vec<VecDeque<Open>>;

/// Bytes on disk.
struct Disk {
    approval: f64,
    with_log: f64,
    card: f64,
}

/// A bot that has just been started, and does nothing.
struct Rest {
    start: Duration,
    memory: Memory,
}

/// Measures both stores, empty and with so many threads, and writes their table.
pub(crate) async fn measure(program: &Path, threads: usize, rounds: usize) -> anyhow::Result<()> {
    let mut table = format!("| {} |\n|{}\n", COLUMNS.join(" | "), " ---: |".repeat(COLUMNS.len()));
    for kept in [Kept::Sqlite, Kept::Redis] {
        for threads in [0, threads] {
            let row = measure_one(program, kept, threads, rounds).await?;
            eprintln!("  {row}");
            table.push_str(&row);
            table.push('\n');
        }
    }
    let note = format!(
        "At most {rounds} presses at each number in flight, of cards of all ages; the median of {STARTS} starts. The \
         load runs on the same cores."
    );
    measured::write("stored", &table, &note)
}

async fn measure_one(program: &Path, kept: Kept, threads: usize, rounds: usize) -> anyhow::Result<String> {
    let place = Place::start(kept, 0, 0).await?;
    let surroundings = place.surroundings(program, &[]);
    // The first start makes the digest key and the tables.
    let first = Bot::start(&surroundings)?;
    first_contact(&place.slack, &first, false).await?;
    first.stop()?;
    let (open, needed) = (threads / OPEN, FIRST + 2 * rounds);
    let (cards, rest, disk, filled_in) = if threads == 0 {
        let rest = rests(&place, &surroundings).await?;
        let (cards, _) = asks(&place, &surroundings, needed).await?;
        (cards, rest, None, None)
    } else {
        let began = Instant::now();
        let (approval, with_log) = approves(&place, &surroundings, threads - open).await?;
        let (cards, card) = asks(&place, &surroundings, open).await?;
        let filled_in = began.elapsed();
        (cards, rests(&place, &surroundings).await?, Some(Disk { approval, with_log, card }), Some(filled_in))
    };

    let bot = Bot::start(&surroundings)?;
    let (person, _) = first_contact(&place.slack, &bot, false).await?;
    let mut cards = spread(cards, needed);
    let rounds = rounds.min(cards.iter().map(VecDeque::len).sum::<usize>().saturating_sub(FIRST) / 2);
    presses(&person, &place, &mut cards, MANY, FIRST).await?;
    let one = presses(&person, &place, &mut cards, 1, rounds).await?;
    let before = bot.processor_time()?;
    let few = presses(&person, &place, &mut cards, FEW, rounds).await?;
    let processor_time = (bot.processor_time()? - before).as_secs_f64() * 1e3 / few.len().max(1) as f64;
    sleep(IDLE).await;
    let after = bot.memory()?;
    bot.stop()?;

    let outcomes = |pressed: &[Pressed]| quantiles(&pressed.iter().map(|one| one.outcome).collect::<Vec<_>>());
    let or_dash = |bytes: Option<f64>| bytes.map_or_else(|| "–".to_owned(), kib);
    let figures = [
        kept.name().to_owned(),
        threads.to_string(),
        open.to_string(),
        millis(rest.start),
        format!("{:.1} MiB", rest.memory.share),
        format!("{:.1} MiB", after.share),
        outcomes(&one),
        outcomes(&few),
        format!("{processor_time:.2} ms"),
        or_dash(disk.as_ref().map(|disk| disk.approval)),
        or_dash(disk.as_ref().map(|disk| disk.with_log)),
        or_dash(disk.as_ref().map(|disk| disk.card)),
        filled_in.map_or_else(|| "–".to_owned(), |took| format!("{:.0} s", took.as_secs_f64())),
    ];
    Ok(format!("| {} |", figures.join(" | ")))
}

/// Starts the bot a few times; returns how long the start took, and the memory of the last one when it is idle.
async fn rests(place: &Place, surroundings: &Surroundings<'_>) -> anyhow::Result<Rest> {
    let mut starts = Vec::new();
    loop {
        let bot = Bot::start(surroundings)?;
        let (_, start) = first_contact(&place.slack, &bot, false).await?;
        starts.push(start);
        if starts.len() == STARTS {
            sleep(IDLE).await;
            let memory = bot.memory()?;
            bot.stop()?;
            return Ok(Rest { start: quantile(&starts, 0.5), memory });
        }
        bot.stop()?;
    }
}

/// Fills the store with threads in which a change was approved. Returns the bytes on disk for each, once settled and
/// as the files were before.
async fn approves(place: &Place, surroundings: &Surroundings<'_>, count: usize) -> anyhow::Result<(f64, f64)> {
    place.settle().await?;
    let before = place.on_disk()?;
    let bot = Bot::start(surroundings)?;
    let (person, _) = first_contact(&place.slack, &bot, false).await?;
    let mut all = 0.0;
    while (all as usize) < count {
        let rounds = FORGETS_AFTER.min(count - all as usize);
        all += approvals(&person, &[&bot], &place.upgrade, MANY, rounds, NO_LIMIT).await?.all;
        place.upgrade.takes_ledger();
        eprintln!("  … {all} of {count} approvals");
    }
    let with_log = place.on_disk()?;
    bot.stop()?;
    place.settle().await?;
    Ok(((place.on_disk()? - before) / all, (with_log - before) / all))
}

/// Fills the store with threads in which a card is open. Returns the cards, and the bytes on disk for each.
async fn asks(place: &Place, surroundings: &Surroundings<'_>, count: usize) -> anyhow::Result<(Cards, f64)> {
    place.settle().await?;
    let before = place.on_disk()?;
    let bot = Bot::start(surroundings)?;
    let (person, _) = first_contact(&place.slack, &bot, false).await?;
    let mut people = JoinSet::new();
    for number in 0..MANY {
        let person = person.clone();
        place.upgrade.has_anew(&waiting(number), "inactive");
        place.upgrade.has_own_point(&waiting(number));
        people.spawn(async move {
            let words = format!("start {}", waiting(number));
            let mut cards = VecDeque::new();
            for _ in (number..count).step_by(MANY) {
                let root = person.slack.fresh_ts();
                let mut hears = Hears::thread(&person.slack, &root);
                let (_, card) = person.asks(&root, &mut hears, &words).await?;
                person.slack.forget(&root);
                cards.push_back(Open { root, card });
            }
            anyhow::Ok((number, cards))
        });
    }
    let mut cards = vec![VecDeque::new(); MANY];
    while let Some(asked) = people.join_next().await {
        let (number, asked) = asked??;
        cards[number] = asked;
    }
    bot.stop()?;
    place.upgrade.takes_ledger();
    place.settle().await?;
    Ok((cards, (place.on_disk()? - before) / count.max(1) as f64))
}

/// Names the experiment of open cards; approvals are about others.
fn waiting(number: usize) -> String {
    experiment(MANY + number)
}

/// Returns about so many of the cards, of all ages.
fn spread(cards: Cards, wanted: usize) -> Cards {
    let wanted = wanted.div_ceil(cards.len());
    let some = |cards: VecDeque<Open>| match cards.len() {
        len if len > wanted => (0..wanted).map(|nth| cards[nth * len / wanted].clone()).collect(),
        _ => cards,
    };
    cards.into_iter().map(some).collect()
}

/// Has the buttons of about so many cards pressed, so many at a time.
async fn presses(
    person: &Person,
    place: &Place,
    cards: &mut Cards,
    in_flight: usize,
    count: usize,
) -> anyhow::Result<Vec<Pressed>> {
    let mut people = JoinSet::new();
    for first in 0..in_flight {
        // The experiments of one person are nobody else's, since each is made inactive again before a press.
        let share = count.div_ceil(cards.len());
        let own = cards.iter_mut().enumerate().skip(first).step_by(in_flight);
        let theirs: Vec<(usize, Vec<Open>)> =
            own.map(|(number, cards)| (number, cards.drain(..share.min(cards.len())).collect())).collect();
        let (person, upgrade) = (person.clone(), place.upgrade.clone());
        people.spawn(async move {
            let mut pressed = Vec::new();
            for (number, cards) in theirs {
                for open in cards {
                    upgrade.is_as_new(&waiting(number));
                    let mut hears = Hears::thread(&person.slack, &open.root);
                    person.slack.learns(&open.card.ts, &open.root);
                    pressed.push(person.countersigns(&open.root, &mut hears, &waiting(number), &open.card).await?);
                    person.slack.forget(&open.root);
                }
            }
            anyhow::Ok(pressed)
        });
    }
    let mut pressed = Vec::new();
    while let Some(one) = people.join_next().await {
        pressed.extend(one??);
    }
    Ok(pressed)
}
