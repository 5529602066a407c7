//! Keeps the bot's calls within Slack's rate limits, so that Slack need not reject any.
//!
//! Posts are limited for each channel: a few at once, then one a second. Edits and deletions are
//! limited for the whole workspace, as Slack counts them. A message that comes too early gets a
//! time to try again, which is reserved for it. It does not wait here, so a full window blocks no
//! sender and no other channel. Replies and cards may use all calls of a window. Progress may use
//! only some of them, comes after all messages with a reserved time, and is sent at most every 3 s
//! for each message.
//!
//! If Slack still asks to wait, no call of that method is made in that channel until then.
//!
//! Sleeping until a message may be sent was rejected as a design: a sleeping sender would hold a
//! permit and a claim that others need, and progress would be out of date afterwards.

use std::{
    collections::{HashMap, VecDeque},
    sync::Mutex,
    time::Duration,
};

use countersign_core::{
    clock::Timestamp,
    ids::{ChannelId, MessageTs, ThreadId},
};

/// The minimum time between the progress edits of one message.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(3);

/// The time after which a reservation expires if its message was not sent.
const RESERVATION_TTL: Duration = Duration::from_secs(5);

/// The number of windows above which empty ones are removed.
const MAX_WINDOWS: usize = 1_000;

/// The Slack methods that send messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `chat.postMessage`
    Post,
    /// `chat.update`
    Update,
    /// `chat.delete`
    Delete,
    /// `files.*`
    Upload,
    /// `chat.startStream`, with the `chat.stopStream` that follows it
    StartStream,
    /// `chat.appendStream`
    AppendStream,
}

/// A message that is ready to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// The method that sends it.
    pub method: Method,
    /// The thread of the message. A thread sends one message at a time.
    pub thread: &'a ThreadId,
    /// The message that is edited or deleted, if any.
    pub message: Option<&'a MessageTs>,
    /// True if it only shows progress.
    pub progress: bool,
}

/// The time at which a message may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clearance {
    /// Now.
    Go,
    /// At this time, which is reserved for it.
    Wait(Timestamp),
}

/// A maximum number of calls within a time.
#[derive(Clone, Copy, Debug)]
struct Limit {
    calls: usize,
    within: Duration,
    /// The number of calls that progress may use.
    progress: usize,
}

impl Method {
    fn limit(self) -> Limit {
        // A little longer than Slack's limits, since calls do not arrive as evenly as they are sent.
        let (calls, within, progress) = match self {
            Self::Post => (5, Duration::from_millis(5_250), 2),
            Self::Update | Self::Delete => (50, Duration::from_secs(63), 30),
            Self::Upload => (100, Duration::from_secs(63), 0),
            // Less than the limit: the stop of a stream must not have to wait, since the answer comes after it.
            Self::StartStream => (15, Duration::from_secs(63), 15),
            Self::AppendStream => (90, Duration::from_secs(63), 90),
        };
        Limit { calls, within, progress }
    }
}

/// The key of the calls that are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct WindowKey {
    method: Method,
    /// The channel; `None` for the whole workspace.
    channel: Option<ChannelId>,
}

/// The times of recent calls and reservations, oldest first. A reservation has the thread that it
/// is for.
#[derive(Debug, Default)]
struct CallWindow {
    times: VecDeque<(Timestamp, Option<ThreadId>)>,
}

impl CallWindow {
    /// Removes calls that no longer count, and expired reservations.
    fn drop_expired(&mut self, limit: Limit, now: Timestamp) {
        self.times.retain(|(at, kept)| match kept {
            None => *at + limit.within > now,
            Some(_) => *at + RESERVATION_TTL > now,
        });
    }

    /// Returns the time of the next free call, if at most `calls` are allowed `within` this time.
    fn free_at(&self, calls: usize, within: Duration, now: Timestamp) -> Timestamp {
        match self.times.len().checked_sub(calls) {
            Some(at) => (self.times[at].0 + within).max(now),
            None => now,
        }
    }

    fn request(&mut self, candidate: &Candidate<'_>, limit: Limit, now: Timestamp) -> Clearance {
        self.drop_expired(limit, now);
        // Progress is out of date soon, so it takes no reservation, and never the place of an answer.
        if candidate.progress {
            let waiting = self.times.iter().filter_map(|(at, kept)| kept.as_ref().map(|_| *at)).max();
            let free = self.free_at(limit.progress.max(1), limit.within, now);
            let at = waiting.map_or(free, |last| free.max(last + Duration::from_secs(1)));
            if at > now {
                return Clearance::Wait(at);
            }
            self.times.push_back((now, None));
            return Clearance::Go;
        }
        let place = self.times.iter().position(|(_, kept)| kept.as_ref() == Some(candidate.thread));
        if let Some(place) = place {
            let at = self.times[place].0;
            if at > now {
                return Clearance::Wait(at);
            }
            self.times[place] = (now, None);
            self.times.make_contiguous().sort_by_key(|(at, _)| *at); // it was sent later than its reservation
            return Clearance::Go;
        }
        let at = self.free_at(limit.calls, limit.within, now);
        if at > now {
            self.times.push_back((at, Some(candidate.thread.clone())));
            return Clearance::Wait(at);
        }
        self.times.push_back((now, None));
        Clearance::Go
    }
}

/// The rate limits of one workspace, as counted by this process. Other processes count separately,
/// so Slack may still reject a call.
#[derive(Debug, Default)]
pub struct Pacing {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    windows: HashMap<WindowKey, CallWindow>,
    /// The times until which Slack has asked to wait.
    rate_limited_until: HashMap<(Method, ChannelId), Timestamp>,
    /// The time of each message's last progress edit.
    progress: HashMap<(ChannelId, MessageTs), Timestamp>,
}

impl Pacing {
    /// Returns the time at which a message may be sent. If that is now, the call is counted.
    pub fn request(&self, candidate: &Candidate<'_>, now: Timestamp) -> Clearance {
        let mut inner = self.inner.lock().expect("no holder panics");
        let channel = &candidate.thread.channel;
        inner.rate_limited_until.retain(|_, until| *until > now);
        if let Some(until) = inner.rate_limited_until.get(&(candidate.method, channel.clone())) {
            return Clearance::Wait(*until);
        }
        if let Some(until) = inner.progress_again_at(candidate, now) {
            return Clearance::Wait(until);
        }
        let by_channel = candidate.method == Method::Post;
        let key = WindowKey { method: candidate.method, channel: by_channel.then(|| channel.clone()) };
        let limit = candidate.method.limit();
        if inner.windows.len() >= MAX_WINDOWS && !inner.windows.contains_key(&key) {
            inner.windows.retain(|key, window| {
                window.drop_expired(key.method.limit(), now);
                !window.times.is_empty()
            });
        }
        let clearance = inner.windows.entry(key).or_default().request(candidate, limit, now);
        if let (Clearance::Go, true, Some(message)) = (clearance, candidate.progress, candidate.message) {
            inner.progress.insert((channel.clone(), message.clone()), now);
        }
        clearance
    }

    /// Records that Slack asked to wait, for this method in this channel.
    pub fn on_rate_limit(&self, method: Method, channel: &ChannelId, until: Timestamp) {
        let mut inner = self.inner.lock().expect("no holder panics");
        let known = inner.rate_limited_until.entry((method, channel.clone())).or_insert(until);
        *known = until.max(*known);
    }
}

impl Inner {
    /// Returns the time when the message may show progress again; `None` if it may now.
    fn progress_again_at(&mut self, candidate: &Candidate<'_>, now: Timestamp) -> Option<Timestamp> {
        if !candidate.progress {
            return None;
        }
        self.progress.retain(|_, at| *at + PROGRESS_INTERVAL > now);
        let last = self.progress.get(&(candidate.thread.channel.clone(), candidate.message?.clone()))?;
        Some(*last + PROGRESS_INTERVAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(channel: &str, root: u32) -> ThreadId {
        ThreadId { team: "T1".into(), channel: channel.into(), root: format!("{root}.0").as_str().into() }
    }

    fn post(thread: &ThreadId) -> Candidate<'_> {
        Candidate { method: Method::Post, thread, message: None, progress: false }
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp(1_000_000 + millis)
    }

    #[test]
    fn a_short_burst_goes_out_at_once_and_then_one_a_second() {
        let pacing = Pacing::default();
        let turns: Vec<_> = (0..12).map(|n| pacing.request(&post(&thread("C1", n)), at(0))).collect();
        assert!(turns[..5].iter().all(|clearance| *clearance == Clearance::Go), "{turns:?}");
        assert!(turns[5..10].iter().all(|clearance| *clearance == Clearance::Wait(at(5_250))), "{turns:?}");
        assert!(turns[10..].iter().all(|clearance| *clearance == Clearance::Wait(at(10_500))), "{turns:?}");
        assert_eq!(pacing.request(&post(&thread("C2", 0)), at(0)), Clearance::Go, "another channel has its own limit");
    }

    #[test]
    fn never_more_than_slack_takes_in_any_five_seconds() {
        let pacing = Pacing::default();
        let threads: Vec<_> = (0..40).map(|n| thread("C1", n)).collect();
        let mut waiting: Vec<(Timestamp, usize)> = (0..40).map(|n| (at(0), n)).collect();
        let mut sent = Vec::new();
        for millis in (0..60_000).step_by(250) {
            for (due, n) in std::mem::take(&mut waiting) {
                match (due <= at(millis)).then(|| pacing.request(&post(&threads[n]), at(millis))) {
                    Some(Clearance::Go) => sent.push((at(millis), n)),
                    Some(Clearance::Wait(until)) => waiting.push((until, n)),
                    None => waiting.push((due, n)),
                }
            }
        }
        assert_eq!(sent.iter().map(|(_, n)| *n).collect::<Vec<_>>(), (0..40).collect::<Vec<_>>(), "in order");
        for six in sent.windows(6) {
            assert!(six[5].0.since(six[0].0) >= Duration::from_secs(5), "{six:?}");
        }
        let last = sent.last().unwrap().0;
        assert!(last <= at(38_000), "about one a second: {last:?}");
    }

    #[test]
    fn a_time_is_reserved_for_its_thread() {
        let pacing = Pacing::default();
        for n in 0..5 {
            pacing.request(&post(&thread("C1", n)), at(0));
        }
        let (first, second) = (thread("C1", 5), thread("C1", 6));
        let Clearance::Wait(due) = pacing.request(&post(&first), at(100)) else { panic!("the window is full") };
        assert_eq!(pacing.request(&post(&first), at(200)), Clearance::Wait(due), "asked again too early");
        (0..4).for_each(|_| assert!(pacing.request(&post(&second), at(300)) != Clearance::Go));
        assert_eq!(pacing.request(&post(&first), due), Clearance::Go);
    }

    #[test]
    fn progress_comes_last_and_is_rare() {
        let pacing = Pacing::default();
        let (busy, other) = (thread("C1", 1), thread("C1", 2));
        let message = MessageTs::from("9.0");
        let edit = Candidate { method: Method::Update, thread: &busy, message: Some(&message), progress: true };
        assert_eq!(pacing.request(&edit, at(0)), Clearance::Go);
        assert_eq!(pacing.request(&edit, at(1_000)), Clearance::Wait(at(3_000)));
        let outcome = Candidate { progress: false, ..edit };
        assert_eq!(pacing.request(&outcome, at(1_100)), Clearance::Go, "other messages do not wait for progress");
        assert_eq!(pacing.request(&edit, at(3_000)), Clearance::Go);

        let status = Candidate { method: Method::Post, thread: &busy, message: None, progress: true };
        assert_eq!(pacing.request(&status, at(3_000)), Clearance::Go);
        assert_eq!(pacing.request(&status, at(3_000)), Clearance::Go);
        assert_eq!(pacing.request(&status, at(3_000)), Clearance::Wait(at(8_250)), "the rest is for answers");
        assert_eq!(pacing.request(&post(&other), at(3_000)), Clearance::Go);
    }

    #[test]
    fn a_rate_limit_applies_to_its_method_and_channel() {
        let pacing = Pacing::default();
        let here = thread("C1", 1);
        pacing.on_rate_limit(Method::Post, &"C1".into(), at(7_000));
        pacing.on_rate_limit(Method::Post, &"C1".into(), at(2_000));
        assert_eq!(pacing.request(&post(&here), at(0)), Clearance::Wait(at(7_000)));
        let message = MessageTs::from("9.0");
        let edit = Candidate { method: Method::Update, thread: &here, message: Some(&message), progress: false };
        assert_eq!(pacing.request(&edit, at(0)), Clearance::Go);
        assert_eq!(pacing.request(&post(&thread("C2", 1)), at(0)), Clearance::Go);
        assert_eq!(pacing.request(&post(&here), at(7_000)), Clearance::Go);
    }

    #[test]
    fn an_unused_reservation_expires() {
        let pacing = Pacing::default();
        for n in 0..10 {
            pacing.request(&post(&thread("C1", n)), at(0));
        }
        assert_eq!(pacing.request(&post(&thread("C1", 20)), at(30_000)), Clearance::Go);
    }
}
