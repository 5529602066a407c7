//! The queue of threads whose messages wait for a free permit, and the threads whose messages are being sent.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use countersign_core::ids::ThreadId;
use tracing::Span;

/// The maximum number of threads in the queue. Further ones are found by a sweep.
const MAX_THREADS: usize = 4096;

/// The queue, which contains each thread at most once, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct ThreadQueue(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    order: VecDeque<ThreadId>,
    /// True if the work in the thread has ended, with the span that queued it.
    ended: HashMap<ThreadId, (bool, Span)>,
    /// The threads for which a task of this process sends.
    sending: HashMap<ThreadId, Sending>,
}

/// What happened to a thread while a task sent its messages.
#[derive(Debug, Default)]
struct Sending {
    /// True if there may be messages that the last claim did not find.
    again: bool,
    /// True if the work in the thread has ended since the task last looked.
    ended: bool,
}

impl ThreadQueue {
    /// Puts a thread at the end, unless it is queued already. `ended` is true if the work in it has
    /// ended. If a task sends its messages, the task looks again instead.
    pub(super) fn push(&self, thread: ThreadId, ended: bool) {
        let mut inner = self.inner();
        if let Some(sending) = inner.sending.get_mut(&thread) {
            sending.again = true;
            sending.ended |= ended;
        } else if let Some((known, _)) = inner.ended.get_mut(&thread) {
            *known |= ended;
        } else if inner.order.len() < MAX_THREADS {
            inner.order.push_back(thread.clone());
            inner.ended.insert(thread, (ended, Span::current()));
        }
    }

    /// Takes the first thread, for a task that begins to send its messages, and the span that queued it.
    pub(super) fn pop(&self) -> Option<(ThreadId, Span)> {
        let mut inner = self.inner();
        while let Some(thread) = inner.order.pop_front() {
            let (ended, origin) = inner.ended.remove(&thread).unwrap_or_else(|| (false, Span::none()));
            if let Some(sending) = inner.sending.get_mut(&thread) {
                sending.again = true;
                sending.ended |= ended;
            } else {
                inner.sending.insert(thread.clone(), Sending { again: false, ended });
                return Some((thread, origin));
            }
        }
        None
    }

    /// Notes that a task begins to send the messages of this thread. Returns false if there is one already.
    pub(super) fn begin(&self, thread: &ThreadId) -> bool {
        let mut inner = self.inner();
        let is_free = !inner.sending.contains_key(thread);
        if is_free {
            inner.sending.insert(thread.clone(), Sending::default());
        }
        is_free
    }

    /// Notes that the task is about to claim messages: it will find those that are in the outbox by now. Returns true if
    /// the work in the thread has ended since it last looked.
    pub(super) fn looks(&self, thread: &ThreadId) -> bool {
        let mut inner = self.inner();
        let Some(sending) = inner.sending.get_mut(thread) else { return false };
        std::mem::take(sending).ended
    }

    /// Notes that the task found no more messages. Returns false if it has to look again.
    pub(super) fn end(&self, thread: &ThreadId) -> bool {
        let mut inner = self.inner();
        let has_news = inner.sending.get(thread).is_some_and(|sending| sending.again || sending.ended);
        if !has_news {
            inner.sending.remove(thread);
        }
        !has_news
    }

    /// Notes that no task sends the messages of this thread after all. If it had to look again, the thread is queued.
    pub(super) fn give_back(&self, thread: &ThreadId) {
        let given_back = self.inner().sending.remove(thread);
        if let Some(Sending { again: true, ended }) = given_back {
            self.push(thread.clone(), ended);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.inner().order.is_empty()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(n: usize) -> ThreadId {
        ThreadId { team: "T1".into(), channel: "C1".into(), root: format!("{n}.0").as_str().into() }
    }

    #[test]
    fn each_thread_is_queued_once() {
        let queue = ThreadQueue::default();
        let pop = || queue.pop().map(|(thread, _)| thread);
        queue.push(thread(1), false);
        queue.push(thread(2), false);
        queue.push(thread(1), true);
        assert_eq!((pop(), pop()), (Some(thread(1)), Some(thread(2))));
        assert_eq!((pop(), queue.is_empty()), (None, true));
        assert_eq!((queue.looks(&thread(1)), queue.looks(&thread(2))), (true, false));
        assert!(queue.end(&thread(1)) && queue.end(&thread(2)));
    }

    #[test]
    fn whoever_sends_looks_again_for_what_came_since_the_last_look() {
        let queue = ThreadQueue::default();
        assert!(queue.begin(&thread(1)) && !queue.begin(&thread(1)));
        queue.push(thread(1), false);
        assert!(queue.is_empty(), "a second task is not needed");
        assert!(!queue.looks(&thread(1)) && queue.end(&thread(1)));

        assert!(queue.begin(&thread(1)));
        assert!(!queue.looks(&thread(1)));
        queue.push(thread(1), true);
        assert!(!queue.end(&thread(1)), "something came since the last look");
        assert!(queue.looks(&thread(1)) && !queue.looks(&thread(1)), "an end is noticed once");
        assert!(queue.end(&thread(1)));

        assert!(queue.begin(&thread(1)));
        queue.push(thread(1), true);
        queue.give_back(&thread(1));
        assert_eq!(queue.pop().map(|(thread, _)| thread), Some(thread(1)));
        assert!(queue.looks(&thread(1)) && queue.end(&thread(1)));
    }

    #[test]
    fn the_queue_has_a_maximum_length() {
        let queue = ThreadQueue::default();
        (0..2 * MAX_THREADS).for_each(|n| queue.push(thread(n), false));
        assert_eq!(std::iter::from_fn(|| queue.pop()).count(), MAX_THREADS);
    }
}
