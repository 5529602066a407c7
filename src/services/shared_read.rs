//! A read that is shared by all concurrent callers.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;

/// A read that runs once at a time. Callers that arrive while it runs share the next one, so each
/// gets an answer that was read after its call, and a slow system never receives all their requests
/// at once.
#[derive(Debug)]
pub struct SharedRead<T> {
    /// The number of reads begun so far.
    begun: AtomicU64,
    /// The last answer and the number of its read.
    last: Mutex<Option<(u64, T)>>,
}

impl<T: Clone> SharedRead<T> {
    /// Returns the answer of a read that began after this call: its own, or one that another caller
    /// has begun since.
    pub async fn get(&self, read: impl AsyncFnOnce() -> T) -> T {
        let before = self.begun.load(Ordering::SeqCst);
        let mut last = self.last.lock().await; // in the order of the calls
        if let Some((number, answer)) = &*last
            && *number > before
        {
            return answer.clone();
        }
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let answer = read().await;
        *last = Some((number, answer.clone()));
        answer
    }
}

impl<T> Default for SharedRead<T> {
    fn default() -> Self {
        Self { begun: AtomicU64::new(0), last: Mutex::new(None) }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use tokio::time::{sleep, timeout};

    use super::*;

    /// A system that answers with the number of reads so far, after a delay.
    #[derive(Default)]
    struct Slow {
        shared: SharedRead<u64>,
        reads: AtomicU64,
    }

    impl Slow {
        async fn get(&self) -> u64 {
            let read = async || {
                let number = self.reads.fetch_add(1, Ordering::SeqCst) + 1;
                sleep(Duration::from_millis(100)).await;
                number
            };
            self.shared.get(read).await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn callers_that_arrive_during_a_read_share_the_next_one() {
        let slow = Arc::new(Slow::default());
        let ask = || {
            tokio::spawn({
                let slow = slow.clone();
                async move { slow.get().await }
            })
        };
        let first = ask();
        sleep(Duration::from_millis(10)).await;
        let concurrent = [ask(), ask(), ask()];
        assert_eq!(first.await.unwrap(), 1);
        for other in concurrent {
            assert_eq!(other.await.unwrap(), 2, "the read in progress may be older than their call");
        }
        assert_eq!(slow.get().await, 3, "an answer is not reused for a later call");
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_gives_up_does_not_block_others() {
        let slow = Slow::default();
        assert!(timeout(Duration::from_millis(50), slow.get()).await.is_err());
        assert_eq!(timeout(Duration::from_millis(150), slow.get()).await, Ok(2));
    }
}
