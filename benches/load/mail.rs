//! The costs of mail, and a check while Gmail fails that no mail is lost and none is answered twice.
//!
//! Mails of every kind arrive in waves. Those of a sure class are answered automatically, up to the daily limit; people
//! decide on the cards of most others. Meanwhile Gmail's stand-in loses responses after sending, exceeds time limits,
//! asks for waits, fails, refuses tokens and forgets its history; a seed determines when. At the end, the channel and the
//! mailbox are compared (`verdict`). The model answers instantly.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};
use countersign::clock::SystemClock;
use countersign_sandbox::model::SandboxModel;
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{
    FEW, IDLE,
    bot::{self, Bot},
    figures::{Table, quantile},
    made_up::{Mailbox, Way, answers, letter, number_in},
    round::Person,
    slack::{CHANNEL, Heard},
    verdict::{End, Seen, broken},
};

/// The number of waves in which the mails arrive.
const WAVES: usize = 20;
/// The share of the mails that have arrived in the channel when the next wave comes.
const CAUGHT_UP: f64 = 0.9;
/// The waves after which the history is forgotten, and those after which all tokens are refused.
const FORGETS_AFTER: [usize; 3] = [4, 9, 14];
const REVOKES_AFTER: [usize; 4] = [2, 6, 11, 17];
/// The rate of each fault of sending, in thousandths.
const PER_MILLE: u16 = 5;
/// The time that a limit asks for, in seconds.
const RETRY_AFTER: u64 = 1;
/// The time for which nothing may happen: an answer whose response was lost is looked for after a minute, and once more.
const SILENCE: Duration = Duration::from_secs(240);
/// The maximum number of lost or repeated answers that are printed.
const TOLD: usize = 20;

/// The systems that mail needs.
pub(crate) struct Systems {
    mailbox: Mailbox,
    model: SandboxModel,
}

impl Systems {
    /// Starts them with an empty mailbox.
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let model = SandboxModel::start(0).await?;
        model.answers_by(answers);
        Ok(Self { mailbox: Mailbox::start(Arc::new(SystemClock)).await?, model })
    }

    /// Returns the settings of the bot.
    pub(crate) fn settings(&self) -> Vec<(&'static str, String)> {
        let mut settings = self.mailbox.variables(CHANNEL);
        settings.push(("ANTHROPIC_API_KEY", self.model.api_key().to_owned()));
        settings.push(("ANTHROPIC_BASE_URL", self.model.url()));
        settings
    }
}

/// A run, to be judged once the bot has ended.
pub(crate) struct Run {
    count: usize,
    seen: BTreeMap<usize, Seen>,
}

/// The mails as people see them, and the presses under way.
struct Watched {
    person: Person,
    count: usize,
    began: Instant,
    /// The mail of each thread.
    roots: HashMap<String, usize>,
    seen: BTreeMap<usize, Seen>,
    /// The messages that led to a press, with the button.
    pressed: HashSet<(String, &'static str)>,
    /// The newest card of each thread whose change can be asked for again, with that button.
    again: HashMap<String, (String, (String, String))>,
    seats: Arc<Semaphore>,
    presses: JoinSet<anyhow::Result<Duration>>,
    /// The time from the beginning to each mail's end or open card.
    reached: HashMap<usize, Duration>,
    ended: usize,
    requests_with_violations: Vec<String>,
}

impl Watched {
    fn hears(&mut self, heard: Heard) {
        let Some(root) = heard.root.clone() else {
            if !heard.edit
                && let Some(number) = number_in(&heard.text)
            {
                self.roots.insert(heard.ts, number);
                self.seen.entry(number).or_default().threads += 1;
            }
            return;
        };
        let Some(&number) = self.roots.get(&root) else { return };
        if let Some(end) = End::told_by(&heard.text) {
            self.ends(number, end, heard.at);
        } else if let Some(button) = heard.again {
            self.again.insert(root.clone(), (heard.ts.clone(), button.clone()));
            self.presses(root, heard.ts.clone(), "again", button, heard.ts);
        } else if heard.text.contains("Try again in")
            && let Some((message, button)) = self.again.get(&root).cloned()
        {
            self.presses(root, message, "again", button, heard.ts);
        } else if let Some(button) = heard.approve {
            self.reached.entry(number).or_insert_with(|| heard.at - self.began);
            match Way::of(number) {
                Way::Sends => self.presses(root, heard.ts.clone(), "approve", button, heard.ts),
                Way::Rejects => self.presses(root, heard.ts.clone(), "reject", button, heard.ts),
                Way::Leaves => self.ends(number, End::Waits, heard.at),
            }
        }
    }

    fn ends(&mut self, number: usize, end: End, at: Instant) {
        self.reached.entry(number).or_insert_with(|| at - self.began);
        let seen = self.seen.entry(number).or_default();
        if seen.end.is_none() {
            self.ended += 1;
        }
        // A card that was left open may be followed by nothing else; what was sent stays sent.
        if seen.end != Some(End::Sent) {
            seen.end = Some(end);
        }
    }

    /// Presses a button, once for each message that asks for it.
    fn presses(
        &mut self,
        root: String,
        message: String,
        action: &'static str,
        (block, value): (String, String),
        asked_by: String,
    ) {
        if !self.pressed.insert((asked_by, action)) {
            return;
        }
        let (person, seats) = (self.person.clone(), self.seats.clone());
        self.presses.spawn(async move {
            let _seat = seats.acquire().await?;
            person.presses(&root, &message, action, (&block, &value)).await
        });
    }

    /// Listens until enough mails have a thread, or all have their end.
    async fn until(
        &mut self,
        hears: &mut tokio::sync::mpsc::UnboundedReceiver<Heard>,
        what: &str,
        is_enough: impl Fn(&Self) -> bool,
    ) -> anyhow::Result<()> {
        while !is_enough(self) {
            let heard = timeout(SILENCE, hears.recv()).await;
            let so_far = || {
                let open = (0..self.count).filter(|n| self.seen.get(n).is_none_or(|seen| seen.end.is_none()));
                let open: Vec<_> = open.take(TOLD).collect();
                format!("in vain: {what}; {} mails have threads, {} an end, not {open:?}", self.seen.len(), self.ended)
            };
            let heard = heard.with_context(so_far)?.context("the stand-in for Slack is gone")?;
            self.hears(heard);
            while let Some(pressed) = self.presses.try_join_next() {
                pressed??;
            }
        }
        Ok(())
    }
}

/// Has the mails arrive, and returns once each has its end or an open card.
pub(crate) async fn run(
    person: &Person,
    bot: &Bot,
    systems: &Systems,
    count: usize,
    seed: u64,
    table: &mut Table,
) -> anyhow::Result<Run> {
    let (gmail, tokens) = (&systems.mailbox.gmail, systems.mailbox.tokens());
    let mut hears = person.slack.listen_to_all();
    sleep(IDLE).await;
    let (before, own_before) = (bot.processor_time()?, bot::own_processor_time()?);
    let (memory, calls) = (bot.memory()?, person.slack.calls());
    table.row("memory, idle", "PSS", format!("{:.1} MiB", memory.share));
    systems.mailbox.is_unreliable(seed, PER_MILLE, RETRY_AFTER);
    let began = Instant::now();
    let mut watched = Watched {
        person: person.clone(),
        count,
        began,
        roots: HashMap::new(),
        seen: BTreeMap::new(),
        pressed: HashSet::new(),
        again: HashMap::new(),
        seats: Arc::new(Semaphore::new(FEW)),
        presses: JoinSet::new(),
        reached: HashMap::new(),
        ended: 0,
        requests_with_violations: Vec::new(),
    };
    let mut received = 0;
    for wave in 0..WAVES {
        let end = (wave + 1) * count / WAVES;
        for number in received..end {
            gmail.receives(&letter(number));
        }
        received = end;
        if FORGETS_AFTER.contains(&wave) {
            gmail.expires_history();
        }
        if REVOKES_AFTER.contains(&wave) {
            tokens.revoke();
        }
        let enough = (received as f64 * CAUGHT_UP) as usize;
        watched
            .until(&mut hears, "the mails of a wave in their threads", |watched| watched.seen.len() >= enough)
            .await?;
        let violations = systems.model.takes_requests().into_iter().filter_map(|request| request.violation);
        watched.requests_with_violations.extend(violations);
    }
    watched.until(&mut hears, "an end or an open card for each", |watched| watched.ended >= count).await?;
    let elapsed = began.elapsed();
    sleep(IDLE).await; // what comes now is a message too many
    while let Ok(heard) = hears.try_recv() {
        watched.hears(heard);
    }
    let (spent, own) = (bot.processor_time()? - before, bot::own_processor_time()? - own_before);
    let after = bot.memory()?;
    let mut reached: Vec<Duration> = watched.reached.values().copied().collect();
    reached.sort_unstable();
    let each = |total: Duration| format!("{:.1} ms", total.as_secs_f64() * 1e3 / count as f64);
    let most = quantile(&reached, 0.99);
    table.row(
        format!("{count} mails, seed {seed}"),
        "a second, to their end or card, 99 of 100",
        format!("{:.0}", count as f64 * 0.99 / most.as_secs_f64()),
    );
    table.row("", "until the last, whose lost answer is waited for", format!("{:.0} s", elapsed.as_secs_f64()));
    table.row("", "bot's processor time for each", each(spent));
    table.row("", "the load's, for each", each(own));
    let calls = (person.slack.calls() - calls) as f64 / count as f64;
    table.row("", "calls to Slack · to Gmail for each", {
        format!("{calls:.1} · {:.1}", gmail.ledger().len() as f64 / count as f64)
    });
    table.row("", "memory afterwards, PSS · most", format!("{:.1} · {:.1} MiB", after.share, after.most));
    let for_each = (after.own - memory.own) * 1024.0 / count as f64;
    table.row("", "memory that is not of files, for each", format!("{for_each:.2} KiB"));
    ensure!(
        watched.requests_with_violations.is_empty(),
        "the model's API would refuse: {:?}",
        watched.requests_with_violations
    );
    Ok(Run { count, seen: watched.seen })
}

impl Run {
    /// Compares what people saw with what left the mailbox, and fails if a promise was broken.
    pub(crate) fn judge(self, systems: &Systems, folder: &Path, table: &mut Table) -> anyhow::Result<()> {
        let gmail = &systems.mailbox.gmail;
        let files: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
        let bytes = files.iter().filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum::<u64>();
        table.row("", "files for each", format!("{:.1} KiB", bytes as f64 / 1024.0 / self.count as f64));
        let of = |end: End| self.seen.values().filter(|seen| seen.end == Some(end)).count();
        let sent = gmail.sent();
        let automatic = sent.iter().filter(|mail| mail.is_automatic).count();
        table.row("ends", "sent by a person · without one", format!("{} · {automatic}", sent.len() - automatic));
        table.row("", "rejected · spam · left open", {
            format!("{} · {} · {}", of(End::Rejected), of(End::Spam), of(End::Waits))
        });
        let applied = gmail.faults().applied();
        table.row("faults survived", "all", applied.iter().map(|(_, times)| times).sum::<u64>().to_string());
        for (fault, times) in applied {
            table.row("", format!("{fault:?}"), times.to_string());
        }
        table.row("", "history forgotten · all tokens refused", {
            format!("{} · {}", FORGETS_AFTER.len(), REVOKES_AFTER.len())
        });
        let broken = broken(self.count, &self.seen, &sent);
        if !broken.is_empty() {
            bail!("{} promises broken:\n{}", broken.len(), broken[..broken.len().min(TOLD)].join("\n"));
        }
        table.row("lost · answered twice", "", "0 · 0");
        Ok(())
    }
}
