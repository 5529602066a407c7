//! People at work: many threads at a time, each with an experiment of its own, asked for, pressed, pressed twice, pressed
//! by somebody who may not, edited, corrected, withdrawn.

use std::{
    collections::{BTreeMap, HashMap},
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use countersign::{
    clock::{Clock as _, SystemClock, Timestamp},
    ids::MessageTs,
};
use countersign_sandbox::{
    slack::{Error, SandboxSlack},
    upgrade::SandboxUpgrade,
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use serde_json::json;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{
    case::{self, Card, Case, Change, Effect, Line, PEOPLE, Person, Press, Said, Stands, To, Verb, changed},
    weather::Weather,
};

/// Where everything happens.
pub(crate) const CHANNEL: &str = "experiments";
/// Longer than this, without any fault, nothing may take: a lease (2 s), the time that a request to the platform may be on
/// its way (4 s), the longest pause that somebody who was refused during a storm makes (8 s), the
/// longest jump of a clock (3 s), and a second.
pub(crate) const STUCK: Duration = Duration::from_secs(18);
/// How often somebody looks at the thread.
const LOOK: Duration = Duration::from_millis(60);
/// How long somebody waits before they press again after a warning sign.
const AGAIN: Duration = Duration::from_millis(300);

/// How long words have to stand alone until they are the whole answer.
const WORDS: Duration = Duration::from_secs(3);
/// How often somebody asks who is answered in words only.
const TRIES: usize = 6;

/// What came of a request.
enum Answer {
    Card(MessageTs),
    Words,
}

/// A case, as the driver, the ledger and the judge share it.
pub(crate) type Shared = Arc<Mutex<Case>>;

pub(crate) fn locked(case: &Shared) -> MutexGuard<'_, Case> {
    case.lock().expect("nobody panics with the lock")
}

/// Everybody who works with the bot.
pub(crate) struct Driver {
    pub(crate) slack: SandboxSlack,
    pub(crate) upgrade: Arc<SandboxUpgrade>,
    pub(crate) weather: Weather,
    /// The cases, by the ids of their experiments.
    pub(crate) cases: Mutex<HashMap<String, (String, Shared)>>,
    pub(crate) tally: Mutex<BTreeMap<&'static str, u64>>,
    /// One form at a time before each person.
    pub(crate) forms: HashMap<&'static str, tokio::sync::Mutex<()>>,
    /// No new threads from now on.
    pub(crate) over: CancellationToken,
}

impl Driver {
    pub(crate) fn new(
        slack: SandboxSlack,
        upgrade: Arc<SandboxUpgrade>,
        weather: Weather,
        over: CancellationToken,
    ) -> Self {
        let forms = PEOPLE.iter().map(|person| (person.name, tokio::sync::Mutex::default())).collect();
        Self { slack, upgrade, weather, cases: Mutex::default(), tally: Mutex::default(), forms, over }
    }

    pub(crate) fn counts(&self, what: &'static str) {
        *self.tally.lock().expect("nobody panics with the lock").entry(what).or_default() += 1;
    }

    /// Reads what the platform received since the last time, and gives it to the cases.
    pub(crate) fn read_ledger(&self) {
        for entry in self.upgrade.takes_ledger() {
            let Some((id, to)) = changed(&entry).filter(|_| entry.method != "GET") else { continue };
            let known = self.cases.lock().expect("nobody panics with the lock").get(&id).cloned();
            let Some((experiment, case)) = known else { continue };
            let line = format!(
                "platform: {} {} {} → {:?}, effect {}",
                entry.method, entry.path, entry.body, entry.status, entry.effect
            );
            let at = entry
                .at
                .parse::<jiff::Timestamp>()
                .map_or_else(|_| SystemClock.now(), |at| Timestamp(at.as_millisecond()));
            let mut case = locked(&case);
            case.notes.push((at, line.clone()));
            if entry.effect {
                case.effects.push(Effect { at, change: Change { experiment, to }, entry: line });
            }
        }
    }

    /// An experiment that nobody else touches.
    fn experiment(&self, name: &str, case: &Shared) {
        let id = self.upgrade.has(name, "inactive");
        self.upgrade.has_own_point(name);
        self.cases.lock().expect("nobody panics with the lock").insert(id, (name.to_owned(), case.clone()));
    }

    /// One thread from its first request to the last outcome.
    pub(crate) async fn thread(&self, number: u64, seed: u64) -> Shared {
        let mut dice = StdRng::seed_from_u64(seed);
        let asker = &PEOPLE[dice.random_range(0..PEOPLE.len())];
        let name = format!("Nemesis {number:06}");
        let plan: &[To] = match dice.random_range(0..100) {
            0..45 => &[To::Started],
            45..70 => &[To::Started, To::Stopped],
            70..80 => &[To::Started, To::Stopped, To::Deleted],
            _ => &[To::Deleted],
        };
        let case = Arc::new(Mutex::new(Case {
            number,
            root: MessageTs::new(""),
            began: SystemClock.now(),
            asker,
            asked: Vec::new(),
            presses: Vec::new(),
            lines: Vec::new(),
            effects: Vec::new(),
            notes: Vec::new(),
            missing: Vec::new(),
            late: Vec::new(),
        }));
        self.experiment(&name, &case);
        for to in plan {
            let change = Change { experiment: name.clone(), to: *to };
            if !self.round(&case, change, &mut dice).await {
                break;
            }
        }
        case
    }

    /// One request, and what becomes of it. Says whether it was done.
    async fn round(&self, case: &Shared, change: Change, dice: &mut StdRng) -> bool {
        let verb = match change.to {
            To::Started => "start",
            To::Stopped => "stop",
            To::Cancelled => "cancel",
            To::Deleted | To::Other => "delete",
        };
        for _ in 0..TRIES {
            let asked = self.asks(case, &change, &format!("@countersign {verb} {}", change.experiment));
            if dice.random_bool(0.1) {
                self.inquires(case, dice);
            }
            match self.answer(case, &change, &asked).await {
                Some(Answer::Card(card)) => return self.decides(case, card, change, dice).await,
                Some(Answer::Words) => sleep(LOOK * 10).await,
                None => return false,
            }
        }
        self.counts("requests given up after many answers in words");
        false
    }

    /// Waits for the card of a change, or for words in its place: that the platform does not answer, for instance.
    async fn answer(&self, case: &Shared, change: &Change, asked: &MessageTs) -> Option<Answer> {
        let answers: Vec<&str> = locked(case).lines.iter().map(|line| line.expects).collect();
        let mut words_since: Option<Instant> = None;
        let find = |said: &[Said]| {
            let open = |card: &Card| card.change == *change && card.stands == Stands::Open;
            if let Some(card) = said.iter().rev().find(|said| said.card.as_ref().is_some_and(open)) {
                return Some(Answer::Card(card.ts.clone()));
            }
            // Words that would answer a question as well: as many of them answer the questions.
            let asked_back = |said: &&Said| answers.iter().any(|answer| said.words.contains(answer));
            // What is said privately answers a press, unless it asks for the same again.
            let to_all = |said: &Said| said.only_to.is_none() || said.words.contains("Ask again");
            let in_words = |said: &&Said| said.card.is_none() && to_all(said) && !case::tells_of_success(&said.words);
            let words = || said.iter().filter(in_words);
            let more = words().filter(asked_back).count() > answers.len();
            let other = |said: &&Said| said.ts > *asked && (more || !asked_back(said));
            // A card may follow the words, or be posted in their place.
            let since = words().find(other).map(|_| *words_since.get_or_insert_with(Instant::now))?;
            (since.elapsed() > WORDS).then_some(Answer::Words)
        };
        self.until(case, &format!("an answer to a request ({:?} {})", change.to, change.experiment), find).await
    }

    /// Decides about a card in one of the ways in which people do, and waits for the outcome.
    async fn decides(&self, case: &Shared, card: MessageTs, change: Change, dice: &mut StdRng) -> bool {
        let asker = locked(case).asker;
        let irreversible = change.to.is_irreversible();
        let may: Vec<&'static Person> = PEOPLE.iter().filter(|p| entitled(p, asker, &change)).collect();
        let who = may[dice.random_range(0..may.len())];
        let not: Vec<&'static Person> = PEOPLE.iter().filter(|p| !entitled(p, asker, &change)).collect();
        let wanted = change.clone();
        let (mut card, mut change) = (card, change);
        match dice.random_range(0..100) {
            0..45 => self.approves(case, &card, &change, who).await,
            45..60 => {
                let other = may[dice.random_range(0..may.len())];
                self.counts("approvals pressed twice at once");
                tokio::join!(self.approves(case, &card, &change, who), self.approves(case, &card, &change, other));
            }
            60..75 => {
                let stranger = not[dice.random_range(0..not.len())];
                self.counts("presses by somebody not entitled");
                self.approves(case, &card, &change, stranger).await;
                if dice.random_bool(0.6) {
                    self.approves(case, &card, &change, who).await;
                } else {
                    self.withdraws(case, &card, &change).await;
                }
            }
            75..83 if !irreversible => {
                self.counts("typed yes");
                self.types(case, &card, &change, who, Verb::Yes, "yes");
                let closes = self.closes_soon(case, &card).await;
                if !closes {
                    self.approves(case, &card, &change, who).await;
                }
            }
            83..87 => {
                self.counts("typed no");
                self.types(case, &card, &change, who, Verb::No, "no");
                if !self.closes_soon(case, &card).await {
                    self.withdraws(case, &card, &change).await;
                }
            }
            87..91 => self.withdraws(case, &card, &change).await,
            91..96 if change.to == To::Started => {
                let other = Change { experiment: format!("{} bis", change.experiment), to: change.to };
                self.experiment(&other.experiment, case);
                self.counts("corrections");
                let asked = self.asks(case, &other, &format!("@countersign no, {} instead", other.experiment));
                match self.answer(case, &other, &asked).await {
                    Some(Answer::Card(newer)) => (card, change) = (newer, other),
                    Some(Answer::Words) => {} // the card that was there stays open
                    None => return false,
                }
                self.approves(case, &card, &change, who).await;
            }
            96..100 if change.to == To::Started => {
                if let Some((newer, other)) = self.edits(case, &card, &change).await {
                    (card, change) = (newer, other);
                }
                let second = PEOPLE.iter().find(|p| entitled(p, asker, &change)).expect("two may decide");
                self.approves(case, &card, &change, second).await;
            }
            _ => self.approves(case, &card, &change, who).await,
        }
        self.outcome(case, &card, &change, who).await && change == wanted
    }

    /// Waits until it is said what became of a card. Says whether it was done.
    async fn outcome(&self, case: &Shared, card: &MessageTs, change: &Change, who: &'static Person) -> bool {
        let closed = |said: &[Said]| {
            let stands = state(said, card)?;
            (!matches!(stands, Stands::Open | Stands::Running)).then_some(stands)
        };
        let what = format!("an end of the card {card} ({:?} {})", change.to, change.experiment);
        let end = tokio::select! {
            end = self.until(case, &what, closed) => end,
            never = self.tries_again(case, card, change) => match never {},
        };
        match end {
            Some(Stands::Done) => {
                self.counts("changes said to be done");
                let told = |words: &str| words.contains(&change.experiment) && case::tells_of_success(words);
                let cards = |said: &[Said]| said.iter().filter(|s| is_done(s, &change.experiment)).count();
                let tells = |said: &[Said]| said.iter().filter(|s| s.card.is_none() && told(&s.words)).count();
                let told = |said: &[Said]| (tells(said) >= cards(said)).then_some(());
                self.until(case, &format!("word of the outcome of {card}"), told).await.is_some()
            }
            Some(Stands::Unknown) => {
                self.counts("outcomes said to be unknown");
                self.presses(case, card, change, who, Verb::Look, "check").await;
                self.closes_soon(case, card).await;
                false
            }
            Some(Stands::Failed { .. }) => {
                self.counts("changes said to have failed");
                false
            }
            Some(_) | None => false,
        }
    }

    fn asks(&self, case: &Shared, change: &Change, words: &str) -> MessageTs {
        self.counts("requests");
        let (root, asker) = {
            let mut case = locked(case);
            case.asked.push(change.clone());
            (case.root.clone(), case.asker)
        };
        let thread = (!root.as_str().is_empty()).then_some(&root);
        let ts = self.slack.says(asker.name, CHANNEL, words, thread).expect("the channel and the thread are there");
        let mut case = locked(case);
        case.notes.push((SystemClock.now(), format!("{} says {ts}: {words}", asker.name)));
        if thread.is_none() {
            case.root = ts.clone();
        }
        ts
    }

    /// Asks something that changes nothing.
    fn inquires(&self, case: &Shared, dice: &mut StdRng) {
        const QUESTIONS: [(&str, &str); 2] =
            [("What is A/B testing?", "A/B testing"), ("Is UpGrade running?", "UpGrade")];
        let (words, expects) = QUESTIONS[dice.random_range(0..QUESTIONS.len())];
        let who = &PEOPLE[dice.random_range(0..PEOPLE.len())];
        let root = locked(case).root.clone();
        if locked(case).lines.iter().any(|line| line.expects == expects) {
            return;
        }
        self.counts("questions");
        let line = format!("@countersign {words}");
        let ts = self.slack.says(who.name, CHANNEL, &line, Some(&root)).expect("the thread is there");
        let mut case = locked(case);
        case.notes.push((SystemClock.now(), format!("{} says {ts}: {line}", who.name)));
        case.lines.push(Line { ts, words: words.to_owned(), expects });
    }

    /// Waits for the card of a change.
    async fn card(&self, case: &Shared, change: &Change) -> Option<MessageTs> {
        let find = |said: &[Said]| {
            let open = |card: &Card| card.change == *change && card.stands == Stands::Open;
            said.iter().rev().find(|said| said.card.as_ref().is_some_and(open)).map(|said| said.ts.clone())
        };
        self.until(case, &format!("a card ({:?} {})", change.to, change.experiment), find).await
    }

    async fn approves(&self, case: &Shared, card: &MessageTs, change: &Change, by: &'static Person) {
        self.counts("presses of approve");
        self.presses(case, card, change, by, Verb::Approve, "approve").await;
    }

    /// Presses, and again whenever there is a warning sign.
    async fn presses(
        &self,
        case: &Shared,
        card: &MessageTs,
        change: &Change,
        by: &'static Person,
        verb: Verb,
        action: &str,
    ) {
        loop {
            let nth = {
                let mut case = locked(case);
                let entitled = entitled(by, case.asker, change);
                let (at, card, change) = (SystemClock.now(), card.clone(), change.clone());
                case.notes.push((at, format!("{} presses {action} on {card}", by.name)));
                case.presses.push(Press { at, by, verb, card, change, entitled, acknowledged: false });
                case.presses.len() - 1
            };
            let answer = self.slack.clicks(by.name, CHANNEL, card, action).await;
            let note = match &answer {
                Ok(()) => "acknowledged".to_owned(),
                Err(Error::Unanswered) => "a warning sign".to_owned(),
                Err(error) => error.to_string(),
            };
            locked(case).notes.push((SystemClock.now(), format!("{}: {note}", by.name)));
            locked(case).presses[nth].acknowledged = answer.is_ok();
            if !matches!(answer, Err(Error::Unanswered)) {
                return;
            }
            self.counts("warning signs");
            sleep(AGAIN).await;
        }
    }

    fn types(&self, case: &Shared, card: &MessageTs, change: &Change, by: &'static Person, verb: Verb, words: &str) {
        let root = locked(case).root.clone();
        {
            let mut case = locked(case);
            let entitled = entitled(by, case.asker, change);
            let (at, card, change) = (SystemClock.now(), card.clone(), change.clone());
            case.notes.push((at, format!("{} types: {words}", by.name)));
            case.presses.push(Press { at, by, verb, card, change, entitled, acknowledged: false });
        }
        self.slack.says(by.name, CHANNEL, words, Some(&root)).expect("the thread is there");
    }

    /// Takes the request back: by word and, if that is not understood, by the button.
    async fn withdraws(&self, case: &Shared, card: &MessageTs, change: &Change) {
        self.counts("withdrawals");
        let root = locked(case).root.clone();
        let asker = locked(case).asker;
        locked(case).notes.push((SystemClock.now(), format!("{} says: never mind", asker.name)));
        self.slack.says(asker.name, CHANNEL, "@countersign never mind", Some(&root)).expect("the thread is there");
        if !self.closes_soon(case, card).await {
            self.presses(case, card, change, asker, Verb::Reject, "reject").await;
        }
    }

    /// Approves each time that somebody is told privately to try again: Slack could not say who they are, so their press
    /// did not count.
    async fn tries_again(&self, case: &Shared, card: &MessageTs, change: &Change) -> Infallible {
        let asker = locked(case).asker;
        let who = PEOPLE.iter().find(|person| entitled(person, asker, change)).expect("somebody may decide");
        let mut told = 0;
        loop {
            let said = self.said(case);
            let now = said.iter().filter(|said| said.only_to.is_some() && said.words.contains("Try again in a moment"));
            let now = now.count();
            if now > told && state(&said, card) == Some(Stands::Open) {
                self.counts("presses again after being told to");
                self.approves(case, card, change, who).await;
            }
            told = told.max(now);
            sleep(AGAIN).await;
        }
    }

    /// Has the asker make a cancellation of it in its form. The new card, if that came to pass.
    async fn edits(&self, case: &Shared, card: &MessageTs, change: &Change) -> Option<(MessageTs, Change)> {
        let asker = locked(case).asker;
        let _alone = self.forms[asker.name].lock().await;
        self.counts("edits");
        self.presses(case, card, change, asker, Verb::Look, "edit").await;
        let user = self.slack.user(asker.name);
        let mut view = None;
        for _ in 0..50 {
            sleep(LOOK).await;
            view = self.slack.look(|world| {
                let open = world.views.values().filter(|view| view.open && view.user == user);
                let mut ours = open.filter(|view| view.words().contains(&change.experiment));
                ours.next_back().map(|view| view.id.clone())
            });
            if view.is_some() {
                break;
            }
        }
        let view = view?;
        let other = Change { to: To::Cancelled, ..change.clone() };
        locked(case).asked.push(other.clone());
        let sent = self.slack.submits(asker.name, &view, json!({ "Status": "cancelled" })).await;
        locked(case).notes.push((SystemClock.now(), format!("{} sends the form: {sent:?}", asker.name)));
        match sent {
            Ok(true) => self.card(case, &other).await.map(|card| (card, other)),
            // It stays open, with what is wrong. It may have been taken all the same: the card that is open tells.
            Ok(false) | Err(_) => {
                self.slack.closes(asker.name, &view).ok();
                self.closes_soon(case, card).await.then_some(())?;
                self.card(case, &other).await.map(|card| (card, other))
            }
        }
    }

    /// Whether a card closes, or begins to run, in the next few seconds; while there are faults, later.
    async fn closes_soon(&self, case: &Shared, card: &MessageTs) -> bool {
        let mut looks = 0;
        while looks < 60 {
            if state(&self.said(case), card).is_some_and(|stands| stands != Stands::Open) {
                return true;
            }
            if !self.weather.calm_for().is_zero() {
                looks += 1;
            }
            sleep(LOOK).await;
        }
        false
    }

    /// What the bot has standing in the thread of a case.
    pub(crate) fn said(&self, case: &Shared) -> Vec<Said> {
        let root = locked(case).root.clone();
        self.slack.said_in(CHANNEL, &root).iter().map(Said::read).collect()
    }

    /// Waits for something that has to come. What takes too long without a fault is noted; what has not come after the
    /// second such time never will.
    async fn until<T>(&self, case: &Shared, what: &str, mut find: impl FnMut(&[Said]) -> Option<T>) -> Option<T> {
        let began = Instant::now();
        let (mut times, mut in_time) = (0, true);
        loop {
            if let Some(found) = find(&self.said(case)) {
                if times > 0 {
                    locked(case).late.push(format!("{what}: after {:?}", began.elapsed()));
                }
                return Some(found);
            }
            let calm = self.weather.calm_for().min(began.elapsed());
            if calm < STUCK {
                in_time = true;
            } else if in_time {
                in_time = false;
                times += 1;
                locked(case).notes.push((SystemClock.now(), format!("still missing after {STUCK:?} of calm: {what}")));
            }
            if times > 1 || calm > STUCK * 2 {
                locked(case).missing.push(what.to_owned());
                return None;
            }
            sleep(LOOK).await;
        }
    }
}

/// Whether somebody may approve a change that `asker` asked for, or edited.
fn entitled(who: &Person, asker: &Person, change: &Change) -> bool {
    who.approver && !(change.to.is_irreversible() && who == asker)
}

fn state(said: &[Said], card: &MessageTs) -> Option<Stands> {
    said.iter().find(|said| said.ts == *card)?.card.as_ref().map(|card| card.stands)
}

fn is_done(said: &Said, experiment: &str) -> bool {
    said.card.as_ref().is_some_and(|card| card.stands == Stands::Done && card.change.experiment == experiment)
}
