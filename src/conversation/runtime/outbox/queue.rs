//! The queue of threads whose messages wait for a free seat.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use countersign_core::ids::ThreadId;

/// The maximum number of threads in the queue. Further ones are found by a sweep.
const MAX_THREADS: usize = 4096;

/// The queue, which contains each thread at most once, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct ThreadQueue(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    order: VecDeque<ThreadId>,
    /// True if the work in the thread has ended.
    ended: HashMap<ThreadId, bool>,
}

impl ThreadQueue {
    /// Puts a thread at the end, unless it is queued already. `ended` is true if the work in it has
    /// ended.
    pub(super) fn push(&self, thread: ThreadId, ended: bool) {
        let mut inner = self.inner();
        if let Some(known) = inner.ended.get_mut(&thread) {
            *known |= ended;
        } else if inner.order.len() < MAX_THREADS {
            inner.order.push_back(thread.clone());
            inner.ended.insert(thread, ended);
        }
    }

    /// Takes the first thread.
    pub(super) fn pop(&self) -> Option<(ThreadId, bool)> {
        let mut inner = self.inner();
        let thread = inner.order.pop_front()?;
        let ended = inner.ended.remove(&thread).unwrap_or_default();
        Some((thread, ended))
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
        queue.push(thread(1), false);
        queue.push(thread(2), false);
        queue.push(thread(1), true);
        assert_eq!(queue.pop(), Some((thread(1), true)));
        assert_eq!(queue.pop(), Some((thread(2), false)));
        assert_eq!((queue.pop(), queue.is_empty()), (None, true));
    }

    #[test]
    fn the_queue_has_a_maximum_length() {
        let queue = ThreadQueue::default();
        (0..2 * MAX_THREADS).for_each(|n| queue.push(thread(n), false));
        assert_eq!(std::iter::from_fn(|| queue.pop()).count(), MAX_THREADS);
    }
}
