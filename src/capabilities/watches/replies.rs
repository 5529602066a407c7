//! The sentences about watches and digests.

use std::time::Duration;

use countersign_capabilities::{Observed, Phase};
use countersign_core::{
    clock::Timestamp,
    ids::UserId,
    reply::{Part, Reply, Text},
};
use countersign_graph::action::Reader;

use super::{
    split::FALSE_ALARM_RATE,
    watch::{Counted, Digest, Event, Watch},
};

/// The maximum number of things in a digest.
const MAX_LISTED: usize = 25;

fn bold(name: &str) -> Text {
    Text::new().bold(name)
}

/// Returns the name of the person who asked, for small print; the person is notified.
fn asked_by(by: &UserId) -> Text {
    Text::from("Asked for by ").person(by.clone()).plain(".")
}

/// Returns a number of users in words: “1 user”.
pub(super) fn users(number: u64) -> String {
    match number {
        1 => "1 user".to_owned(),
        number => format!("{number} users"),
    }
}

/// Returns the reply to the question how often things are looked at.
pub(super) fn how_often(every: Duration) -> Reply {
    let seconds = every.as_secs();
    let time = match seconds {
        1 => "second".to_owned(),
        60 => "minute".to_owned(),
        seconds if seconds % 60 == 0 => format!("{} minutes", seconds / 60),
        seconds => format!("{seconds} seconds"),
    };
    Reply::text(format!("I check everything that is watched every {time}. A digest is counted when it is posted."))
        .choice("What I'm watching", "what are you watching?")
}

/// Returns the event in words: “when Math Hints reaches 500 users”.
pub(super) fn event(name: &str, event: &Event) -> Text {
    let when = || Text::from("when ").bold(name);
    match event {
        Event::Reaches { number } => when().plain(format!(" reaches {}", users(*number))),
        Event::Starts => when().plain(" starts"),
        Event::Pauses => when().plain(" pauses"),
        Event::Ends => when().plain(" ends"),
        Event::SplitLooksWrong => Text::from("if the split of ").bold(name).plain(" looks wrong"),
    }
}

/// Returns the reply about a new watch, or one that is there already.
pub(super) fn watching(seen: &Observed, of: &Event, is_new: bool) -> Reply {
    let name = &seen.name;
    let begin = if is_new { "I'll tell you here " } else { "I'm already watching that. I'll tell you here " };
    let text = Text::from(begin).join(event(name, of)).plain(".");
    let text = match of {
        Event::Reaches { .. } => text.plain(format!(" It has {}{} now.", seen.enrolled, beside(seen.simulated))),
        _ => text,
    };
    let reply = Reply::text(text).choice("Stop watching", format!("stop watching “{name}”"));
    match of {
        Event::SplitLooksWrong => reply.hint(false_alarms()),
        _ => reply,
    }
}

/// Returns the simulated participants in words, after the number of the others.
fn beside(simulated: u64) -> String {
    match simulated {
        0 => String::new(),
        1 => ", plus 1 test user".to_owned(),
        users => format!(", plus {users} test users"),
    }
}

fn false_alarms() -> String {
    let of = (1.0 / FALSE_ALARM_RATE).round();
    format!("At most 1 in {of} watches of a correct split raises a false alarm, however often I check.")
}

/// Returns the reply if the event has happened already.
pub(super) fn happened_already(seen: &Observed, of: &Event) -> Reply {
    let name = bold(&seen.name);
    let text = match of {
        Event::Reaches { number } => {
            let users = format!("{}{}", users(seen.enrolled), beside(seen.simulated));
            name.plain(format!(" already has {users}, so it has reached {number}."))
        }
        Event::Starts => name.plain(" is already running."),
        Event::Pauses => name.plain(" is already paused."),
        Event::Ends => name.plain(" has already ended."),
        Event::SplitLooksWrong => return split_looks_wrong(seen),
    };
    Reply::text(text.plain(" There's nothing to wait for."))
}

/// Returns the reply if the split of a thing cannot be tested.
pub(super) fn no_test_of_split(seen: &Observed) -> Reply {
    Reply::text(bold(&seen.name).plain(
        " doesn't assign each user independently to one of at least two conditions, so its split can't be tested.",
    ))
}

/// Returns the message that an event has happened.
pub(super) fn happened(watch: &Watch, seen: &Observed, now: Timestamp) -> Reply {
    let name = bold(&seen.name);
    let enrolled = format!(" ({} enrolled{}, ", seen.enrolled, beside(seen.simulated));
    let with_time = |text: Text| text.plain(enrolled.as_str()).moment(now).plain(").");
    let reply = match watch.event {
        Event::Reaches { number } => Reply::text(with_time(name.plain(format!(" reached {}", users(number))))),
        Event::Starts => Reply::text(with_time(name.plain(" has started"))),
        Event::Pauses => Reply::text(with_time(name.plain(" was paused"))),
        Event::Ends if seen.phase == Phase::Paused => {
            Reply::text(with_time(name.plain(" was paused: it enrolls no new users")))
        }
        Event::Ends => Reply::text(with_time(name.plain(" has ended"))),
        Event::SplitLooksWrong => split_looks_wrong(seen),
    };
    reply.hint(asked_by(&watch.by))
}

fn split_looks_wrong(seen: &Observed) -> Reply {
    let drawn: u64 = seen.parts.iter().map(|part| part.count).sum();
    let whole: f64 = seen.parts.iter().map(|part| part.share).sum();
    let line = |part: &countersign_capabilities::ObservedPart| {
        let percent = |share: f64| (share * 1000.0).round() / 10.0;
        let found = part.count as f64 / (drawn.max(1)) as f64;
        let planned = percent(part.share / whole.max(f64::MIN_POSITIVE));
        Text::new().bold(part.name.as_str()).plain(format!(
            ": {} ({}%, planned {planned}%)",
            part.count,
            percent(found)
        ))
    };
    Reply::text(Text::from("The split of ").bold(seen.name.as_str()).plain(" looks wrong."))
        .and(Part::List(seen.parts.iter().map(line).collect()))
        .hint(format!("{} Check how users reach each condition before you use the results.", false_alarms()))
}

/// Returns the message that a thing was deleted.
pub(super) fn gone(watch: &Watch) -> Reply {
    let text = bold(&watch.name).plain(" was deleted, so I stopped watching it.");
    Reply::text(text).hint(asked_by(&watch.by))
}

/// Returns the message that a thing cannot be read for some time.
pub(super) fn unreadable(watch: &Watch, since: Timestamp) -> Reply {
    let text = Text::from("I can't read ").bold(watch.name.as_str()).plain(" since ").moment(since);
    Reply::text(text.plain(". I'll keep trying, and tell you when it works again."))
        .choice("Stop watching", format!("stop watching “{}”", watch.name))
        .hint(asked_by(&watch.by))
}

/// Returns the message that a thing can be read again.
pub(super) fn readable_again(watch: &Watch) -> Reply {
    let text = Text::from("I can read ").bold(watch.name.as_str()).plain(" again, and I'll keep watching it.");
    Reply::text(text).hint(asked_by(&watch.by))
}

/// Returns the reply about a new digest, or one that is there already.
pub(super) fn digest_planned(words: &str, next: Option<Timestamp>, is_new: bool) -> Reply {
    let begin =
        if is_new { "I'll post a digest in this thread " } else { "I'm already posting a digest in this thread " };
    let text = Text::from(format!("{begin}{words}."));
    let text = match next {
        Some(next) => text.plain(" Next: ").moment(next).plain("."),
        None => text,
    };
    Reply::text(text).choice("Stop the digest", "stop the digest")
}

/// Returns a digest of what is in progress. `last` is empty in the first one. One that `is_regular` can be stopped.
pub(super) fn digest(things: &str, now: &[Counted], last: &[Counted], by: &UserId, is_regular: bool) -> Reply {
    let title = format!("Running {things}");
    let mut lines = Vec::new();
    for thing in now.iter().take(MAX_LISTED) {
        let before = last.iter().find(|known| known.source == thing.source && known.thing == thing.thing);
        let line = bold(&thing.name).plain(format!(": {}{}", users(thing.enrolled), beside(thing.simulated)));
        lines.push(match before {
            Some(before) => line.plain(format!(", {} new", thing.enrolled.saturating_sub(before.enrolled))),
            None if last.is_empty() => line,
            None => line.plain(", new since the last digest"),
        });
    }
    if now.len() > MAX_LISTED {
        lines.push(Text::from(format!("and {} more", now.len() - MAX_LISTED)));
    }
    let reply = match lines.is_empty() {
        true => Reply::text(format!("Digest: no {things} are running.")),
        false => Reply::default().and(Part::Heading(title)).and(Part::List(lines)),
    };
    let is_running =
        |known: &Counted| now.iter().any(|thing| thing.source == known.source && thing.thing == known.thing);
    let over: Vec<Text> = last.iter().filter(|known| !is_running(known)).map(|known| bold(&known.name)).collect();
    let reply = match over.is_empty() {
        true => reply,
        false => reply.and(Part::Text(Text::from("No longer running: ").join(Text::listed(over, "and")).plain("."))),
    };
    let reply = if is_regular { reply.choice("Stop the digest", "stop the digest") } else { reply };
    reply.hint(asked_by(by))
}

/// Returns the message in place of a digest that could not be made.
pub(super) fn no_digest(things: &str, by: &UserId) -> Reply {
    Reply::text(format!("I couldn't read the {things} for this digest. I'll post the next one as planned."))
        .choice("Stop the digest", "stop the digest")
        .hint(asked_by(by))
}

/// Returns the list of watches and digests for this reader.
pub(super) fn list(watches: &[Watch], digests: &[Digest], reader: &Reader) -> Reply {
    if watches.is_empty() && digests.is_empty() {
        return Reply::text("I'm not watching anything for you.")
            .hint("Say “tell me when Math Hints reaches 500 users”, or “post a digest here every Monday 9am”.");
    }
    let watch = |watch: &Watch| {
        let whom = Text::from("I'll tell ");
        let whom = match reader.by.as_ref() == Some(&watch.by) {
            true => whom.plain("you"),
            false => whom.name(watch.by.clone()),
        };
        whom.plain(" ").join(event(&watch.name, &watch.event))
    };
    let digest = |digest: &Digest| {
        let here = if reader.thread.as_ref() == Some(&digest.thread) { "in this thread " } else { "" };
        Text::from(format!("A digest {here}{}, next ", digest.schedule.words())).moment(digest.next)
    };
    let lines = watches.iter().map(watch).chain(digests.iter().map(digest)).collect();
    let reply = stop_watch_buttons(Reply::default().and(Part::List(lines)), watches);
    match digests {
        [_] => reply.choice("Stop the digest", "stop the digest"),
        digests => stop_buttons(reply, digests),
    }
}

/// Adds a button for each watched thing that stops its watches.
fn stop_watch_buttons(reply: Reply, watches: &[Watch]) -> Reply {
    let mut names: Vec<&str> = watches.iter().map(|watch| watch.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let button = |name: &&str| (format!("Stop watching {name}"), format!("stop watching “{name}”"));
    reply.choices(names.iter().take(4).map(button))
}

/// Returns the question which watch is to be stopped.
pub(super) fn which_watch(watches: &[Watch]) -> Reply {
    let lines = watches.iter().map(|watch| event(&watch.name, &watch.event)).collect();
    let reply = Reply::text("There are several watches. Which one should I stop?").and(Part::List(lines));
    stop_watch_buttons(reply, watches)
}

/// Adds a button for each digest that stops it.
fn stop_buttons(reply: Reply, digests: &[Digest]) -> Reply {
    let mut times: Vec<String> = digests.iter().map(|digest| digest.schedule.days_and_time()).collect();
    times.sort_unstable();
    times.dedup();
    let button = |when: &String| (format!("Stop the digest {when}"), format!("stop the digest {when}"));
    reply.choices(times.iter().take(4).map(button))
}

/// Returns the question which digest is to be stopped.
pub(super) fn which_digest(digests: &[Digest]) -> Reply {
    stop_buttons(Reply::text("There are several digests. Which one should I stop?"), digests)
}

/// Returns the reply about what was stopped.
pub(super) fn stopped(watches: &[Watch], digests: usize) -> Reply {
    let mut names: Vec<&str> = watches.iter().map(|watch| watch.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let names = Text::listed(names.into_iter().map(bold).collect::<Vec<_>>(), "and");
    match (watches.is_empty(), digests) {
        (true, 0) => Reply::text("I wasn't watching that, so there's nothing to stop.")
            .choice("What I'm watching", "what are you watching?"),
        (false, 0) => Reply::text(Text::from("I stopped watching ").join(names).plain(".")),
        (true, 1) => Reply::text("I stopped the digest."),
        (true, several) => Reply::text(format!("I stopped {several} digests.")),
        (false, 1) => Reply::text(Text::from("I stopped watching ").join(names).plain(", and stopped the digest.")),
        (false, several) => {
            let text = Text::from("I stopped watching ").join(names);
            Reply::text(text.plain(format!(", and stopped {several} digests.")))
        }
    }
}

/// Returns the reply to a number that makes no sense.
pub(super) fn which_number() -> Reply {
    Reply::text("How many users? For example: “tell me when Math Hints reaches 500 users”.")
}

/// Returns the reply to times that cannot be read.
pub(super) fn which_times(found: &str) -> Reply {
    Reply::text(Text::from("I can't read “").bold(found).plain("” as a day or a time."))
        .hint("Say “post a digest here every Monday 9am”, “every weekday at 8:30” or “every day at noon”.")
}

/// Returns the reply if there are too many watches.
pub(super) fn too_many(limit: usize) -> Reply {
    Reply::text(format!("The limit is {limit}. Stop some first.")).choice("What I'm watching", "what are you watching?")
}

/// Returns the reply where there is no thread to answer in.
pub(super) fn only_in_a_thread() -> Reply {
    Reply::text("Ask in a channel or a direct message, so I know where to tell you.")
}

/// Returns the reply if the watches cannot be read or written.
pub(super) fn unavailable() -> Reply {
    Reply::text("The list of watches isn't available. Try again in a minute.")
}

/// Returns the reply if nothing can be watched.
pub(super) fn nothing_to_watch() -> Reply {
    Reply::text("Nothing here can be watched.")
}
