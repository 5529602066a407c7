//! The messages that follow from a look at a thing.

use std::time::Duration;

use countersign_capabilities::Observed;
use countersign_core::{
    clock::Timestamp,
    ids::{ThreadId, UserId},
    reply::Reply,
};

use super::{
    register::Contents,
    replies,
    watch::{Event, Followed, Split},
};

/// The result of a look at a thing.
#[derive(Clone, Debug)]
pub enum Look {
    /// It was read.
    Seen(Observed),
    /// It no longer exists.
    Gone,
    /// It cannot be read at the moment.
    Unreadable,
}

/// A message to a person in a thread. The key tells it from all others, so that it is sent once.
#[derive(Clone, Debug)]
pub struct News {
    /// The thread.
    pub thread: ThreadId,
    /// The person who asked to be told.
    pub by: UserId,
    /// The key.
    pub key: String,
    /// The message.
    pub reply: Reply,
}

impl Contents {
    /// Takes in a look at a thing, and returns the messages that follow from it. Watches that are over are removed.
    pub fn after_look(
        &mut self,
        source: &str,
        thing: &str,
        look: &Look,
        now: Timestamp,
        tell_after: Duration,
    ) -> Vec<News> {
        let Some(at) = self.followed.iter().position(|known| known.source == source && known.thing == thing) else {
            return Vec::new();
        };
        let news = match look {
            Look::Seen(seen) => self.after_seen(at, seen, now),
            Look::Gone => self.after_gone(at),
            Look::Unreadable => self.after_unreadable(at, now, tell_after),
        };
        self.tidy();
        news
    }

    fn after_seen(&mut self, at: usize, seen: &Observed, now: Timestamp) -> Vec<News> {
        let mut news = Vec::new();
        let followed = &mut self.followed[at];
        let was_told = std::mem::take(&mut followed.is_told);
        let since = followed.unreadable_since.take();
        followed.split = followed.split.take().map(|split| split.at_look(seen));
        let waits_for_split =
            self.watches.iter().any(|watch| followed.is_of(watch) && watch.event == Event::SplitLooksWrong);
        if waits_for_split && followed.split.is_none() {
            followed.split = Some(Split::of_all(seen));
        }
        let followed = followed.clone();
        self.watches.retain_mut(|watch| {
            if !followed.is_of(watch) {
                return true;
            }
            watch.name.clone_from(&seen.name);
            let told =
                |key: String, reply: Reply| News { thread: watch.thread.clone(), by: watch.by.clone(), key, reply };
            if watch.has_happened(seen, followed.split.as_ref()) {
                news.push(told(watch.id.clone(), replies::happened(watch, seen, now)));
                return false;
            }
            if let Some(since) = since.filter(|_| was_told) {
                news.push(told(format!("{}:again:{}", watch.id, since.millis()), replies::readable_again(watch)));
            }
            true
        });
        news
    }

    fn after_gone(&mut self, at: usize) -> Vec<News> {
        let followed = self.followed[at].clone();
        let (over, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.watches).into_iter().partition(|watch| followed.is_of(watch));
        self.watches = others;
        let told = |watch: &super::watch::Watch| News {
            thread: watch.thread.clone(),
            by: watch.by.clone(),
            key: format!("{}:gone", watch.id),
            reply: replies::gone(watch),
        };
        over.iter().map(told).collect()
    }

    fn after_unreadable(&mut self, at: usize, now: Timestamp, tell_after: Duration) -> Vec<News> {
        let followed = &mut self.followed[at];
        let since = *followed.unreadable_since.get_or_insert(now);
        if followed.is_told || now.since(since) < tell_after {
            return Vec::new();
        }
        followed.is_told = true;
        let followed: Followed = followed.clone();
        let told = |watch: &super::watch::Watch| News {
            thread: watch.thread.clone(),
            by: watch.by.clone(),
            key: format!("{}:unreadable:{}", watch.id, since.millis()),
            reply: replies::unreadable(watch, since),
        };
        self.watches.iter().filter(|watch| followed.is_of(watch)).map(told).collect()
    }
}

#[cfg(test)]
mod tests {
    use countersign_capabilities::Phase;

    use super::*;
    use crate::testing::{followed, observed, watch};

    const HOUR: Duration = Duration::from_secs(3600);

    fn contents(events: &[Event]) -> Contents {
        let watches = events.iter().enumerate().map(|(at, event)| {
            let mut watch = watch(event.clone(), Phase::Running);
            watch.id = format!("w-{at}");
            watch
        });
        Contents { watches: watches.collect(), followed: vec![followed()], ..Contents::default() }
    }

    fn look(contents: &mut Contents, look: Look, now: i64) -> Vec<String> {
        let news = contents.after_look("things", "t1", &look, Timestamp(now), HOUR);
        news.iter().map(|news| format!("{} {}", news.key, news.reply.words())).collect()
    }

    #[test]
    fn each_watch_is_told_once_and_the_others_stay() {
        let mut all = contents(&[Event::Reaches { number: 500 }, Event::Ends]);
        assert!(look(&mut all, Look::Seen(observed(499, Phase::Running)), 0).is_empty());
        let told = look(&mut all, Look::Seen(observed(512, Phase::Running)), 1);
        assert!(told.len() == 1 && told[0].contains("Math Hints reached 500 users (512 enrolled"), "{told:?}");
        assert!(look(&mut all, Look::Seen(observed(513, Phase::Running)), 2).is_empty());
        assert_eq!(all.watches.len(), 1);
        assert_eq!(look(&mut all, Look::Seen(observed(513, Phase::Ended)), 3).len(), 1);
        assert_eq!(all, Contents::default(), "nothing is left to look at");
    }

    #[test]
    fn a_thing_that_cannot_be_read_is_told_once_after_a_while() {
        let mut all = contents(&[Event::Ends]);
        assert!(look(&mut all, Look::Unreadable, 0).is_empty());
        assert!(look(&mut all, Look::Unreadable, 3_599_999).is_empty());
        let told = look(&mut all, Look::Unreadable, 3_600_000);
        assert!(told.len() == 1 && told[0].starts_with("w-0:unreadable:0 "), "{told:?}");
        assert!(look(&mut all, Look::Unreadable, 9_000_000).is_empty(), "once");
        let told = look(&mut all, Look::Seen(observed(1, Phase::Running)), 9_100_000);
        assert!(told.len() == 1 && told[0].starts_with("w-0:again:0 "), "{told:?}");
        assert!(look(&mut all, Look::Seen(observed(1, Phase::Running)), 9_200_000).is_empty());
        assert_eq!(all.watches.len(), 1);
    }

    #[test]
    fn a_short_outage_is_not_told() {
        let mut all = contents(&[Event::Ends]);
        for minute in 0..50 {
            assert!(look(&mut all, Look::Unreadable, minute * 60_000).is_empty());
        }
        assert!(look(&mut all, Look::Seen(observed(1, Phase::Running)), 3_000_000).is_empty());
    }

    #[test]
    fn a_deleted_thing_ends_its_watches() {
        let mut all = contents(&[Event::Ends, Event::SplitLooksWrong]);
        let told = look(&mut all, Look::Gone, 0);
        assert!(told.len() == 2 && told[0].contains("was deleted"), "{told:?}");
        assert_eq!(all, Contents::default());
    }

    #[test]
    fn a_wrong_split_is_told_with_its_numbers() {
        let mut all = contents(&[Event::SplitLooksWrong]);
        let mut thing = observed(1000, Phase::Running);
        (thing.parts[0].count, thing.parts[1].count) = (505, 495);
        assert!(look(&mut all, Look::Seen(thing.clone()), 0).is_empty());
        (thing.parts[0].count, thing.parts[1].count) = (700, 300);
        let told = look(&mut all, Look::Seen(thing), 1);
        assert!(told[0].contains("The split of Math Hints looks wrong") && told[0].contains("700"), "{told:?}");
    }
}
