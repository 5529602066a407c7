//! Requests with a restriction, drawn at random and sent to a whole bot: what restricts is on the card, in a question or in a
//! refusal. Everything that a person sees is looked at, and what its buttons say when they are pressed.
//!
//! The seed of the draw is `PROPTEST_RNG_SEED`, as in every test that draws. Requests are not made smaller where one fails: it
//! is one sentence already, and all that fail are told together.

use std::collections::{BTreeMap, BTreeSet};

use countersign::{
    capabilities::dates,
    clock::{Clock as _, MONTHS, WEEKDAYS},
    understanding::lexicon::fold,
};
use countersign_sandbox::slack::world::message::Button;
use proptest::{
    prelude::*,
    sample::select,
    strategy::ValueTree as _,
    test_runner::{Config, TestRunner},
};
use serde_json::json;

use super::scripted::{bot_with_model, finish};
use crate::support::{
    bot::{TestBot, eventually},
    thread::Thread,
};

/// How many requests are drawn for each bot; what a workspace keeps of all that was said makes a longer one slow.
const OF_EACH_BOT: usize = 100;
/// How many are sent before anybody waits.
const AT_ONCE: usize = 30;

/// What exists besides the experiments of the playground.
const EXPERIMENTS: &[(&str, &str)] = &[
    ("Geometry B", "enrolling"),
    ("Ana's Übung 🚀", "inactive"),
    ("Stop and Go", "enrolling"),
    ("数学提示", "inactive"),
    ("Foo Experiment", "cancelled"),
    ("Tutor Voice", "inactive"),
];

/// What requests are about.
const NAMES: &[&str] =
    &["Math Hints", "Running Test", "Geometry B", "Ana's Übung 🚀", "Stop and Go", "数学提示", "Foo Experiment"];

/// How a change is asked for.
const REQUESTS: &[&str] = &[
    "start {}",
    "please stop {}",
    "pause {}",
    "resume {}",
    "cancel {}",
    "archive {}",
    "delete {}",
    "can you start {}",
    "let's launch {}",
    "kick off {}",
    "run {}",
    "turn off {}",
    "schedule {}",
    "remove {}",
    "set the weights to 70/30 for {}",
    "exclude u17 from {}",
    "test the balance of {}",
    "simulate 50 users in {}",
    "test consistency rules for {}",
    "rename {} to Old Hints",
    "add the tag algebra to {}",
    "include class 4C in {}",
    "stop enrolling in {}",
    "could somebody please start {}",
];

/// Of these a refusal sometimes quotes other words than those that restrict: “I can rename X to Old Hints week, but not
/// “next””. Nothing is dropped, as nothing is done; a refusal is enough, whatever it quotes. Nothing is to be added here.
const REFUSED_IN_OTHER_WORDS: &[&str] =
    &["set the weights to 70/30 for {}", "simulate 50 users in {}", "rename {} to Old Hints"];

/// What is not noticed yet where a model leaves it out of a change. Nothing is to be added here.
const A_MODEL_MAY_LOSE: &[&str] = &[
    "from scratch",
    "as a pilot",
    "for the variant condition",
    "in mathstream",
    "except in mathstream",
    "on the site SelectSection",
];

/// What restricts, and the words of it by which a person recognises it: of each group one.
type Restriction = (&'static str, Vec<Vec<String>>);

/// The restrictions, with the days as they are today.
fn restrictions(bot: &TestBot) -> Vec<Restriction> {
    let today = dates::day(bot.clock.now());
    let mark = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    // A day as people and the platform write it.
    let day = |date: jiff::civil::Date, said: &str| {
        let month = MONTHS[usize::try_from(date.month() - 1).unwrap()];
        let number = date.day();
        vec![said.to_owned(), date.to_string(), format!("{number} {month}"), format!("{month} {number}")]
    };
    let days = |days: i64| today.checked_add(jiff::Span::new().days(days)).unwrap();
    let next = |weekday: &str| {
        let named = |ahead: &i64| {
            let offset = days(*ahead).weekday().to_monday_zero_offset();
            WEEKDAYS[usize::try_from(offset).unwrap()] == weekday
        };
        // On that weekday itself it is today or in a week, depending on the hour.
        (0..=7).filter(named).flat_map(|ahead| day(days(ahead), weekday)).collect()
    };
    // The next day of this date: this year or the next one.
    let on = |month: i8, number: i8, said: &str| {
        let this = jiff::civil::date(today.year(), month, number);
        let next = jiff::civil::date(today.year() + 1, month, number);
        day(if this < today { next } else { this }, said)
    };
    vec![
        ("on Friday", vec![next("friday")]),
        ("on Friday evening", vec![next("friday"), mark(&["evening", "18:00"])]),
        ("tomorrow at 8", vec![day(days(1), "tomorrow"), mark(&["08 00", "at 8"])]),
        ("on 3 December at 9am", vec![on(12, 3, "3 december"), mark(&["09 00", "9am"])]),
        ("on December 15th", vec![on(12, 15, "december 15th")]),
        ("in two weeks", vec![day(days(14), "two weeks")]),
        ("by Monday", vec![next("monday")]),
        ("every Monday", vec![mark(&["every"]), mark(&["monday"])]),
        ("next week", vec![mark(&["next week"])]),
        ("at midnight", vec![mark(&["midnight", "00:00"])]),
        ("in an hour", vec![mark(&["hour", "Schedule", "end date", "Ends"])]),
        ("until Dec 18", vec![on(12, 18, "dec 18")]),
        ("before the exam", vec![mark(&["before the exam"])]),
        ("after Thanksgiving", vec![mark(&["after thanksgiving", "Schedule", "end date"])]),
        ("for two weeks", vec![day(days(14), "two weeks")]),
        ("for 20 minutes", vec![mark(&["20 minutes"])]),
        ("twice", vec![mark(&["twice"])]),
        ("slowly", vec![mark(&["slowly"])]),
        ("from scratch", vec![mark(&["scratch"])]),
        ("as a pilot", vec![mark(&["pilot"])]),
        ("for class 5B only", vec![mark(&["5b"])]),
        ("but only in class 5B", vec![mark(&["5b"])]),
        ("but keep it hidden from class 5B", vec![mark(&["5b"]), mark(&["hidden"])]),
        ("in class 7A and 7C", vec![mark(&["7a"]), mark(&["7c"])]),
        ("only for school 12", vec![mark(&["school 12", "schoolid 12"])]),
        ("but only 200 users", vec![mark(&["200"])]),
        ("with at most 200 users", vec![mark(&["200"])]),
        ("with 30 students", vec![mark(&["30"])]),
        ("for the first 100 students", vec![mark(&["100"])]),
        ("for half of the students", vec![mark(&["half"])]),
        ("for everyone but u23", vec![mark(&["u23"])]),
        ("at 60%", vec![mark(&["60"])]),
        ("to 80%", vec![mark(&["80"])]),
        ("with 3 conditions", vec![mark(&["3 conditions"])]),
        ("for the variant condition", vec![mark(&["variant"])]),
        ("without the video condition", vec![mark(&["video"])]),
        ("in mathstream", vec![mark(&["mathstream"])]),
        ("except in mathstream", vec![mark(&["mathstream"])]),
        ("on the site SelectSection", vec![mark(&["site selectsection"])]),
        ("if Bo agrees", vec![mark(&["bo"])]),
        ("unless Ana objects", vec![mark(&["ana objects"])]),
        ("as long as nobody complains", vec![mark(&["complains"])]),
        ("once Chat Tone has ended", vec![mark(&["chat tone"])]),
        ("when Chat Tone is done", vec![mark(&["chat tone"])]),
        ("instead of Chat Tone", vec![mark(&["chat tone"])]),
        ("or Chat Tone", vec![mark(&["chat tone"])]),
        ("and then Chat Tone", vec![mark(&["chat tone"])]),
        ("and Tutor Voice", vec![mark(&["tutor voice"])]),
        ("and keep the data", vec![mark(&["data"])]),
    ]
}

/// A request, with its restriction and without it.
#[derive(Clone, Debug)]
struct Drawn {
    said: String,
    bare: String,
    request: &'static str,
    name: &'static str,
    restriction: Restriction,
}

fn drawn(restrictions: Vec<Restriction>) -> impl Strategy<Value = Drawn> {
    let ending = select(vec!["", " please", ", thanks!", "."]);
    (select(REQUESTS), select(NAMES), any::<bool>(), select(restrictions), 0..5_u8, ending).prop_map(
        |(request, name, quoted, restriction, place, ending)| {
            let bare = request.replace("{}", &if quoted { format!("“{name}”") } else { name.to_owned() });
            let said = match place {
                0 => format!("{}, {bare}{ending}", restriction.0),
                1 => format!("{bare}, {}{ending}", restriction.0),
                _ => format!("{bare} {}{ending}", restriction.0),
            };
            Drawn { said, bare, request, name, restriction }
        },
    )
}

/// What a person sees in a thread.
#[derive(Clone, Debug, Default)]
struct Seen {
    words: String,
    buttons: Vec<Button>,
}

impl Seen {
    fn in_thread(bot: &TestBot, thread: &Thread<'_>) -> Self {
        let messages = thread.messages();
        let words = messages.iter().map(|message| message.words()).collect::<Vec<_>>().join("\n");
        // What is said of the card itself, and of those of other threads, is no part of this one's change.
        let about_others = |line: &&str| !line.contains("Another request about this") && !line.starts_with("Asked by ");
        let words = words.lines().filter(about_others).map(with_dates).collect::<Vec<_>>().join("\n");
        Self { words: bot.readable(&words), buttons: messages.iter().flat_map(|message| message.buttons()).collect() }
    }

    /// What is said where a button is pressed.
    fn says(&self) -> impl Iterator<Item = &str> {
        let says = self.buttons.iter().filter(|button| button.action_id.starts_with("say"));
        says.filter_map(|button| button.value.as_deref())
    }

    fn proposes(&self) -> bool {
        self.buttons.iter().any(|button| button.action_id.starts_with("approve"))
    }

    /// How often these words are to be read.
    fn count(&self, mark: &str) -> usize {
        occurrences(&self.words, mark)
    }
}

/// A line of a card about its start or end, with the date as it is written for readers whose time zone is not known.
fn with_dates(line: &str) -> String {
    let is_date = line.starts_with("*Starts*") || line.starts_with("*Ends*");
    let Some((before, token)) = line.split_once("<!date^").filter(|_| is_date) else { return line.to_owned() };
    let (token, after) = token.split_once('>').unwrap_or((token, ""));
    format!("{before}{}{}", token.split_once('|').map_or("", |(_, written)| written), with_dates(after))
}

/// How often words stand in a text, as whole words and however they are written.
fn occurrences(text: &str, mark: &str) -> usize {
    format!(" {} ", fold(text).replace(' ', "  ")).matches(&format!(" {} ", fold(mark).replace(' ', "  "))).count()
}

/// Whether a message is only looked up, whatever it names.
fn only_reads(said: &str) -> bool {
    ["list", "show", "what", "which", "is ", "how", "who", "for how", "tell me", "when"]
        .iter()
        .any(|word| said.to_lowercase().starts_with(word))
}

/// What is wrong with the answer to a request; `bare` is the answer to the same one without its restriction.
fn wrong(drawn: &Drawn, seen: &Seen, bare: &Seen) -> Option<&'static str> {
    let (_, marks) = &drawn.restriction;
    // A card without it has some of these words as well, such as its conditions.
    let without = |mark: &str| if seen.proposes() == bare.proposes() { bare.count(mark) } else { 0 };
    // A time from now on is the one at which the change ends, on whichever card.
    let has_end = drawn.restriction.0 == "in an hour" && seen.words.contains("*Ends*  none →");
    let told = has_end || marks.iter().all(|any| any.iter().any(|mark| seen.count(mark) > without(mark)));
    if seen.words.is_empty() {
        return Some("there is no answer");
    }
    for says in seen.says().filter(|says| !only_reads(says) && fold(says).contains(&fold(drawn.name))) {
        let in_full = marks.iter().all(|any| any.iter().any(|mark| occurrences(says, mark) > 0));
        // What is said where the request itself is impossible offers other changes.
        let offered_anyway = bare.says().any(|offer| offer == says) || seen.words.contains("so I won't make it");
        // One of several is asked for, and the others are there to be pressed as well.
        let offered_anyway = offered_anyway || told && seen.words.contains("one experiment at a time. Which one?");
        // It is asked whether the words belong to a name; each answer is a button.
        let offered_anyway = offered_anyway || told && seen.words.contains("part of the name?");
        if !in_full && !offered_anyway {
            return Some("a button leaves it out");
        }
    }
    if told {
        return None;
    }
    if seen.proposes() {
        return Some("the card leaves it out");
    }
    let nothing_was_understood =
        ["I didn't catch that.", "I'm not sure what you mean."].iter().any(|lost| seen.words.starts_with(lost));
    let refused = REFUSED_IN_OTHER_WORDS.contains(&drawn.request) && seen.words.contains("Nothing was changed.");
    let is_asked = seen.words.starts_with("I couldn't make sense of “") && seen.words.contains("Nothing was changed.");
    let refused = refused || is_asked;
    let impossible_anyway = seen.words == bare.words || seen.words.contains("so I won't make it scheduled");
    (!nothing_was_understood && !refused && !impossible_anyway).then_some("nobody is told")
}

/// Says all of this, each in a thread of its own; what is seen then.
async fn asked(bot: &TestBot, said: &[String]) -> BTreeMap<String, Seen> {
    let mut seen = BTreeMap::new();
    for some in said.chunks(AT_ONCE) {
        let mut threads = Vec::new();
        for said in some {
            let ts = bot.slack.says("ana", "experiments", &format!("@countersign {said}"), None).unwrap();
            threads.push((said, Thread::new(bot, "experiments", ts)));
        }
        let acknowledged = || {
            let deliveries = bot.slack.recorded().deliveries;
            let arrived = deliveries.iter().filter(|attempt| attempt.acknowledged_after_ms.is_some());
            let arrived: BTreeSet<_> = arrived.filter_map(|attempt| attempt.payload["event"]["ts"].as_str()).collect();
            threads.iter().all(|(_, thread)| arrived.contains(thread.root.as_str()))
        };
        eventually("all to be delivered", acknowledged).await;
        bot.settled().await;
        seen.extend(threads.into_iter().map(|(said, thread)| (said.clone(), Seen::in_thread(bot, &thread))));
    }
    seen
}

/// All of it that is wrong, with what was shown.
fn told(failures: &[(&str, &Seen, &str)]) -> String {
    let told = |(said, seen, why): &(&str, &Seen, &str)| {
        format!("{said}\n    {why}:\n    {}\n", seen.words.replace('\n', "\n    "))
    };
    failures.iter().map(told).collect()
}

async fn with_experiments(bot: &TestBot) {
    for (name, status) in EXPERIMENTS {
        bot.upgrade.has(name, status);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_restricts_a_request_is_on_the_card_or_told() {
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    for _ in 0..2 {
        let bot = TestBot::start().await;
        with_experiments(&bot).await;
        let requests = drawn(restrictions(&bot));
        let mut draw = || requests.new_tree(&mut runner).unwrap().current();
        let all: Vec<Drawn> = (0..OF_EACH_BOT).map(|_| draw()).collect();
        let mut said: Vec<String> = all.iter().flat_map(|drawn| [drawn.bare.clone(), drawn.said.clone()]).collect();
        said.sort();
        said.dedup();
        let seen = asked(&bot, &said).await;
        let judged = |drawn: &Drawn| wrong(drawn, &seen[&drawn.said], &seen[&drawn.bare]);
        let failures: Vec<_> =
            all.iter().filter_map(|drawn| Some((&*drawn.said, &seen[&drawn.said], judged(drawn)?))).collect();
        assert!(failures.is_empty(), "{} of {} were dropped:\n{}", failures.len(), all.len(), told(&failures));
        assert!(seen.values().filter(|seen| seen.proposes()).count() > 20, "there are cards to look at");
        assert_eq!(bot.done_to_platform(), [""; 0], "nothing is done before anybody decides");
        bot.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_model_leaves_out_of_a_change_is_told_on_its_card() {
    let (bot, model) = bot_with_model().await;
    with_experiments(&bot).await;
    let told_today = |(said, _): &Restriction| !A_MODEL_MAY_LOSE.contains(said);
    let restrictions: Vec<Restriction> = restrictions(&bot).into_iter().filter(told_today).collect();
    let ask = |restriction: &str| format!("could we get math hints going {restriction}?");
    let proposed = json!({ "experiment": "Math Hints", "status": "enrolling" });
    let bare = "could we get math hints going?".to_owned();
    let said: Vec<String> = restrictions.iter().map(|(said, _)| ask(said)).chain([bare.clone()]).collect();
    said.iter().for_each(|_| model.will_call("propose_update_experiment_status", proposed.clone()));
    let seen = asked(&bot, &said).await;
    let judged = |restriction: &Restriction| {
        let said = ask(restriction.0);
        let (name, request) = ("Math Hints", "could we get {} going");
        let drawn = Drawn { said: said.clone(), bare: bare.clone(), request, name, restriction: restriction.clone() };
        Some((said.clone(), wrong(&drawn, &seen[&said], &seen[&bare])?))
    };
    let failures: Vec<_> = restrictions.iter().filter_map(judged).collect();
    let failures: Vec<_> = failures.iter().map(|(said, why)| (&**said, &seen[said], *why)).collect();
    assert!(failures.is_empty(), "{} of {} were dropped:\n{}", failures.len(), said.len(), told(&failures));
    finish(bot, model).await;
}
