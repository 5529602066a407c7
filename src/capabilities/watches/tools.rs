//! The tools about watches. They change nothing outside of our own store, and a watch only reads, so no approval is needed.

use std::{sync::Arc, time::Duration};

use countersign_capabilities::{
    Observed, Observer, Tool, ToolError, ToolInfo, dates,
    rows::{Call, Nothing, Read},
};
use countersign_core::{
    ids::{ThreadId, UserId},
    reply::Reply,
};
use countersign_graph::{
    action::{ErrorKind, Reader},
    store::Error,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    register::{Contents, WatchRegister},
    replies,
    schedule::{self, Schedule},
    stopping::stop_watching,
    watch::{Digest, Event, Followed, Split, Watch},
    watcher::{Observers, counts, things},
};

/// The name of the tool that begins a watch.
pub(super) const WATCH: &str = "watch";
/// The name of the tool that begins a digest.
pub(super) const DIGEST: &str = "schedule_digest";
/// The name of the tool that shows a digest at once.
pub(super) const SHOW: &str = "show_digest";
/// The name of the tool that lists watches and digests, which slash commands of other capabilities call, too.
pub(super) const LIST: &str = "list_watches";
/// The name of the tool that ends watches and digests.
pub(super) const STOP: &str = "stop_watching";

/// The maximum number of watches of one person.
const MAX_OF_PERSON: usize = 20;
/// The maximum number of watches.
const MAX_WATCHES: usize = 300;
/// The maximum number of digests.
const MAX_DIGESTS: usize = 50;

/// The time within which the same request is a repeat of a step that was interrupted, and gets the same answer.
const REPEATED_WITHIN: Duration = Duration::from_secs(60);

/// The components of the tools.
#[derive(Clone)]
pub(super) struct Deps {
    /// The register.
    pub(super) book: WatchRegister,
    /// The capabilities whose things can be followed.
    pub(super) observers: Observers,
    /// The time between two looks at a thing.
    pub(super) every: Duration,
}

impl std::fmt::Debug for Deps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Deps")
    }
}

/// Returns all tools.
pub(super) fn all(deps: &Deps) -> Vec<Arc<dyn Tool>> {
    let watch = Read {
        subject: |arguments, _| arguments["thing"].as_str().map(str::to_owned),
        ..row(
            deps,
            WATCH,
            "Tells the person in this thread, once, when something happens to a thing on a platform: it reaches a \
             number of users, starts, pauses, ends, or its split looks wrong. It only reads, so no approval is needed.",
            |deps, asked, reader| Box::pin(begin_watch(deps, asked, reader)),
        )
    };
    let digest = row(
        deps,
        DIGEST,
        "Posts a digest of everything that is running in this thread, on certain days of the week at a certain time, until \
         it is stopped. It only reads, so no approval is needed.",
        |deps, asked, reader| Box::pin(schedule_digest(deps, asked, reader)),
    );
    let show = row(
        deps,
        SHOW,
        "Shows at once what a digest would say now. Nothing is scheduled.",
        |deps, _: Nothing, reader| Box::pin(show_digest(deps, reader)),
    );
    let list = row(
        deps,
        LIST,
        "Lists what is being watched in this conversation, and the digests that are posted here.",
        |deps, asked, reader| Box::pin(list_watches(deps, asked, reader)),
    );
    let stop = row(
        deps,
        STOP,
        "Stops watching a thing, stops the digest, or both, in this conversation. Nothing on the platform changes.",
        |deps, asked, reader| Box::pin(stop_watching(deps, asked, reader)),
    );
    vec![Arc::new(watch), Arc::new(digest), Arc::new(show), Arc::new(list), Arc::new(stop)]
}

/// Returns a tool that answers with a reply.
fn row<A>(deps: &Deps, name: &'static str, description: &'static str, call: Call<Deps, A>) -> Read<Deps, A> {
    Read {
        present: |_, _, answer| serde_json::from_value(answer["reply"].clone()).ok(),
        ..Read::new(deps.clone(), ToolInfo::new(name, description), call)
    }
}

fn refused(kind: ErrorKind, reply: Reply) -> ToolError {
    ToolError { kind, reply, transient: false }
}

pub(super) fn unavailable(error: &Error) -> ToolError {
    tracing::warn!(error = countersign_core::cause::chain(error), "The watches cannot be read or written");
    ToolError { kind: ErrorKind::Network, reply: replies::unavailable(), transient: true }
}

/// Returns the person who asks, and the thread for the messages.
fn asker(reader: &Reader) -> Result<(UserId, ThreadId), ToolError> {
    let asker = reader.by.clone().zip(reader.thread.clone());
    asker.ok_or_else(|| refused(ErrorKind::UserInput, replies::only_in_a_thread()))
}

/// Returns an answer that people see as this reply, and a model as data.
pub(super) fn answer(reply: &Reply) -> Value {
    json!({ "reply": reply })
}

/// Returns the refusal of a call without a person.
pub(super) fn nobody() -> ToolError {
    refused(ErrorKind::UserInput, replies::only_in_a_thread())
}

fn fresh_id(kind: &str) -> String {
    let id = uuid::Uuid::new_v4().simple().to_string();
    format!("{kind}-{}", &id[..12])
}

/// The event that is waited for.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum EventName {
    /// It has a number of users.
    Reaches,
    /// It starts.
    Starts,
    /// It pauses.
    Pauses,
    /// It ends.
    Ends,
    /// Users do not seem to be divided by the weights.
    SplitLooksWrong,
}

#[derive(Deserialize, JsonSchema)]
struct WatchArguments {
    /// The name or id of the thing to watch.
    thing: String,
    /// The event.
    event: EventName,
    /// The number of users, for `reaches`.
    #[serde(default)]
    number: Option<u64>,
    /// True if it takes the place of the newest watch of this thing in this thread.
    #[serde(default)]
    instead: bool,
}

/// Finds a thing by its name in the capabilities, and returns the name of its capability.
async fn find(deps: &Deps, asked: &WatchArguments) -> Result<(String, Observed), ToolError> {
    let request = |name: &str| match (asked.event, asked.number) {
        (EventName::Reaches, Some(number)) => format!("tell me when “{name}” reaches {}", replies::users(number)),
        (EventName::Reaches, None) => format!("watch “{name}”"),
        (EventName::Starts, _) => format!("tell me when “{name}” starts"),
        (EventName::Pauses, _) => format!("tell me when “{name}” pauses"),
        (EventName::Ends, _) => format!("tell me when “{name}” ends"),
        (EventName::SplitLooksWrong, _) => format!("tell me if the split of “{name}” looks wrong"),
    };
    let mut failed = None;
    for (source, observer) in &deps.observers {
        let observer: &Arc<dyn Observer> = observer;
        match observer.find(&asked.thing, &request).await {
            Ok(found) => return Ok((source.clone(), found)),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    Err(failed.unwrap_or_else(|| refused(ErrorKind::NotFound, replies::nothing_to_watch())))
}

/// Begins to tell a person, once, when something happens to a thing.
async fn begin_watch(deps: &Deps, asked: WatchArguments, reader: Option<&Reader>) -> Result<Value, ToolError> {
    let reader = reader.ok_or_else(nobody)?;
    let (by, thread) = asker(reader)?;
    let event = match (asked.event, asked.number) {
        (EventName::Reaches, Some(number)) if number > 0 => Event::Reaches { number },
        (EventName::Reaches, _) => return Err(refused(ErrorKind::UserInput, replies::which_number())),
        (EventName::Starts, _) => Event::Starts,
        (EventName::Pauses, _) => Event::Pauses,
        (EventName::Ends, _) => Event::Ends,
        (EventName::SplitLooksWrong, _) => Event::SplitLooksWrong,
    };
    let (source, seen) = find(deps, &asked).await?;
    let is_split = event == Event::SplitLooksWrong;
    if is_split && seen.parts.iter().filter(|part| part.share > 0.0).count() < 2 {
        return Err(refused(ErrorKind::Execution, replies::no_test_of_split(&seen)));
    }
    let now = deps.book.now();
    let split = is_split.then(|| Split::of_all(&seen));
    let watch = Watch {
        id: fresh_id("w"),
        source,
        thing: seen.id.clone(),
        name: seen.name.clone(),
        event,
        by,
        thread,
        since: now,
        first_phase: seen.phase.into(),
    };
    if watch.has_happened(&seen, split.as_ref()) {
        return Ok(answer(&replies::happened_already(&seen, &watch.event)));
    }
    let added = deps.book.change(|contents| {
        let is_earlier = |known: &Watch| {
            known.thread == watch.thread && known.by == watch.by && known.thing == watch.thing && known.id != watch.id
        };
        let earlier = contents.watches.iter().rposition(is_earlier).filter(|_| asked.instead);
        match earlier.map(|at| contents.watches.remove(at)) {
            // It may be the same one: it stays.
            Some(earlier) if earlier.event == watch.event => {
                contents.watches.push(earlier);
                Added::Known
            }
            _ => add(contents, &watch, split.as_ref()),
        }
    });
    let added = added.await;
    match added.map_err(|error| unavailable(&error))? {
        Added::New => Ok(answer(&replies::watching(&seen, &watch.event, true))),
        Added::Known => Ok(answer(&replies::watching(&seen, &watch.event, false))),
        Added::TooMany(limit) => Err(refused(ErrorKind::Execution, replies::too_many(limit))),
    }
}

/// The result of adding a watch or a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Added {
    /// It was added.
    New,
    /// There is the same one.
    Known,
    /// There are as many as are kept.
    TooMany(usize),
}

/// Adds a watch, unless the thread has the same one. The first look at its thing is due at once.
fn add(contents: &mut Contents, watch: &Watch, split: Option<&Split>) -> Added {
    let is_same = |known: &&Watch| {
        known.thread == watch.thread
            && known.source == watch.source
            && known.thing == watch.thing
            && known.event == watch.event
    };
    if let Some(known) = contents.watches.iter().find(is_same) {
        let is_repeat = known.by == watch.by && watch.since.since(known.since) < REPEATED_WITHIN;
        return if is_repeat { Added::New } else { Added::Known };
    }
    if contents.watches.len() >= MAX_WATCHES {
        return Added::TooMany(MAX_WATCHES);
    }
    if contents.watches.iter().filter(|known| known.by == watch.by).count() >= MAX_OF_PERSON {
        return Added::TooMany(MAX_OF_PERSON);
    }
    match contents.followed.iter_mut().find(|followed| followed.is_of(watch)) {
        Some(followed) => followed.split = followed.split.take().or_else(|| split.cloned()),
        None => contents.followed.push(Followed {
            source: watch.source.clone(),
            thing: watch.thing.clone(),
            next_look: watch.since,
            unreadable_since: None,
            is_told: false,
            split: split.cloned(),
        }),
    }
    contents.watches.push(watch.clone());
    Added::New
}

#[derive(Deserialize, JsonSchema)]
struct DigestArguments {
    /// The days, such as `Monday`, `Monday and Thursday`, `weekdays` or `every day`.
    days: String,
    /// The time of day in the person's time zone, such as `9am` or `17:30`. 9:00 if it is not given.
    #[serde(default)]
    time: Option<String>,
    /// True if it takes the place of the newest digest of this person in this thread.
    #[serde(default)]
    instead: bool,
}

/// Begins to post a digest of everything that is running, on certain days at a certain time.
async fn schedule_digest(deps: &Deps, asked: DigestArguments, reader: Option<&Reader>) -> Result<Value, ToolError> {
    let reader = reader.ok_or_else(nobody)?;
    let (by, thread) = asker(reader)?;
    let unreadable = |found: &str| refused(ErrorKind::Validation, replies::which_times(found));
    let days = schedule::days(&asked.days).ok_or_else(|| unreadable(&asked.days))?;
    let time = asked.time.as_deref().unwrap_or("9:00");
    let at = dates::time_of_day(time).ok_or_else(|| unreadable(time))?;
    let zone = dates::time_zone(reader.zone.as_deref());
    let zone = zone.iana_name().unwrap_or("UTC").to_owned();
    let schedule = Schedule { days, at, zone };
    let next = schedule.next_after(deps.book.now()).ok_or_else(|| unreadable(&asked.days))?;
    let digest = Digest { id: fresh_id("d"), schedule, by, thread, next, not_before: next, last: Vec::new() };
    let added = deps.book.change(|contents| {
        if contents.digests.iter().any(|known| known.thread == digest.thread && known.schedule == digest.schedule) {
            return Added::Known;
        }
        let is_earlier = |known: &Digest| known.thread == digest.thread && known.by == digest.by;
        if let Some(earlier) = contents.digests.iter().rposition(is_earlier).filter(|_| asked.instead) {
            // The next one still says what is new since the last.
            let last = contents.digests.remove(earlier).last;
            contents.digests.push(Digest { last, ..digest.clone() });
            return Added::New;
        }
        if contents.digests.len() >= MAX_DIGESTS {
            return Added::TooMany(MAX_DIGESTS);
        }
        contents.digests.push(digest.clone());
        Added::New
    });
    let words = digest.schedule.words();
    match added.await.map_err(|error| unavailable(&error))? {
        Added::New => Ok(answer(&replies::digest_planned(&words, Some(next), true))),
        Added::Known => Ok(answer(&replies::digest_planned(&words, Some(next), false))),
        Added::TooMany(limit) => Err(refused(ErrorKind::Execution, replies::too_many(limit))),
    }
}

/// Shows what a digest would say now: compared with the last one of this thread, if there is one.
async fn show_digest(deps: &Deps, reader: Option<&Reader>) -> Result<Value, ToolError> {
    let reader = reader.ok_or_else(nobody)?;
    let (by, thread) = asker(reader)?;
    let (_, contents) = deps.book.register().load().await.map_err(|error| unavailable(&error))?;
    let digest = contents.digests.iter().rfind(|digest| digest.thread == thread);
    let last = digest.map_or(&[][..], |digest| &digest.last);
    let counts = counts(&deps.observers).await?;
    let shown = replies::digest(&things(&deps.observers), &counts, last, &by, digest.is_some());
    Ok(answer(&shown))
}

/// Returns true if this reader may see and stop what this person asked for in this thread: the person anywhere, others
/// where they read along.
pub(super) fn is_visible(by: &UserId, thread: &ThreadId, reader: &Reader) -> bool {
    let is_own = reader.by.as_ref() == Some(by) && (reader.alone || thread.channel == reader.channel);
    is_own || (thread.team == reader.team && thread.channel == reader.channel)
}

#[derive(Deserialize, JsonSchema)]
struct ListArguments {
    /// True if only the time between two looks at a thing is asked for.
    #[serde(default)]
    how_often: bool,
}

/// Lists what is watched, and the digests.
async fn list_watches(deps: &Deps, asked: ListArguments, reader: Option<&Reader>) -> Result<Value, ToolError> {
    let reader = reader.ok_or_else(nobody)?;
    if asked.how_often {
        return Ok(answer(&replies::how_often(deps.every)));
    }
    let (_, contents) = deps.book.register().load().await.map_err(|error| unavailable(&error))?;
    let Contents { mut watches, mut digests, .. } = contents;
    watches.retain(|watch| is_visible(&watch.by, &watch.thread, reader));
    digests.retain(|digest| is_visible(&digest.by, &digest.thread, reader));
    Ok(answer(&replies::list(&watches, &digests, reader)))
}
