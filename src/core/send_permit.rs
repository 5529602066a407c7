//! A time-limited permit to change something outside this process.
//!
//! A process can be paused at any moment (`SIGSTOP`, a frozen machine), and its earlier checks may no longer hold when
//! it resumes: in the meantime another process may have taken over its work, checked that a change was not made, and
//! made it. An earlier check therefore does not justify sending a change. Instead, a [`SendPermit`] is checked immediately
//! before each write to the platform.
//!
//! The engine issues permits ([`SendPermit::during`]). Each expires before another process may check whether the change was
//! made. The platform's client gets its permit with [`current`]. A permit is task-local, like the
//! [`crate::http_log`], so that no action can forget to pass it on.
//!
//! A permit expires when either of two clocks says so, since the wall clock may be set back, and the monotonic clock
//! stops while a machine is frozen.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::clock::{Clock, Timestamp};

/// The maximum amount by which the wall clock may be set back without voiding a permit. Small corrections are common.
const MAX_SET_BACK: Duration = Duration::from_secs(1);

/// The permit has expired, so nothing more may be sent under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the deadline for sending this has passed")]
pub struct RunOut;

/// Permission to send changes until it expires. Clones share their state.
#[derive(Clone, Debug)]
pub struct SendPermit(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    clock: Arc<dyn Clock>,
    length: Duration,
    since: Mutex<Moment>,
}

/// A reading of both clocks at the same time.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    wall: Timestamp,
    monotonic: Instant,
}

tokio::task_local! {
    static CURRENT: SendPermit;
}

/// Returns the permit of the current work, if it has one.
pub fn current() -> Option<SendPermit> {
    CURRENT.try_with(SendPermit::clone).ok()
}

impl SendPermit {
    /// Creates a permit that is valid from now for `length`.
    pub fn new(clock: Arc<dyn Clock>, length: Duration) -> Self {
        let since = Mutex::new(Moment { wall: clock.now(), monotonic: Instant::now() });
        Self(Arc::new(Inner { clock, length, since }))
    }

    /// Checks that the permit is still valid. Must be called immediately before each write.
    ///
    /// # Errors
    ///
    /// [`RunOut`] if the permit has expired by either clock.
    pub fn check(&self) -> Result<(), RunOut> {
        let since = *self.since();
        let now = self.moment();
        let wall_is_valid = now.wall < since.wall + self.0.length && now.wall + MAX_SET_BACK >= since.wall;
        let monotonic_is_valid = now.monotonic.saturating_duration_since(since.monotonic) < self.0.length;
        if wall_is_valid && monotonic_is_valid { Ok(()) } else { Err(RunOut) }
    }

    /// Reads both clocks. Call this before checking that the work is still ours, and pass the result to [`Self::renew`]
    /// if it is.
    pub fn moment(&self) -> Moment {
        Moment { wall: self.0.clock.now(), monotonic: Instant::now() }
    }

    /// Restarts the permit at `moment`, which must have been read before the check that the work is still ours.
    pub fn renew(&self, moment: Moment) {
        *self.since() = moment;
    }

    /// Returns the duration for which the permit is valid.
    pub fn length(&self) -> Duration {
        self.0.length
    }

    /// Runs `work` under this permit.
    pub fn during<F: Future>(&self, work: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self.clone(), work)
    }

    fn since(&self) -> MutexGuard<'_, Moment> {
        self.0.since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use tokio::time::advance;

    use super::*;

    /// A wall clock that changes only when it is set.
    #[derive(Debug, Default)]
    struct Wall(AtomicI64);

    impl Clock for Wall {
        fn now(&self) -> Timestamp {
            Timestamp(self.0.load(Ordering::SeqCst))
        }
    }

    const LENGTH: Duration = Duration::from_secs(6);

    fn permit() -> (Arc<Wall>, SendPermit) {
        let wall = Arc::new(Wall(AtomicI64::new(1_000_000)));
        (wall.clone(), SendPermit::new(wall, LENGTH))
    }

    #[tokio::test(start_paused = true)]
    async fn a_permit_runs_out_by_the_wall_clock_alone() {
        let (wall, permit) = permit();
        assert_eq!(permit.check(), Ok(()));
        wall.0.fetch_add(5_999, Ordering::SeqCst);
        assert_eq!(permit.check(), Ok(()));
        wall.0.fetch_add(1, Ordering::SeqCst);
        assert_eq!(permit.check(), Err(RunOut));
    }

    #[tokio::test(start_paused = true)]
    async fn a_permit_runs_out_by_the_monotonic_clock_alone() {
        let (_wall, permit) = permit();
        advance(LENGTH).await;
        assert_eq!(permit.check(), Err(RunOut));
    }

    #[tokio::test(start_paused = true)]
    async fn a_permit_is_void_after_the_wall_clock_was_set_back() {
        let (wall, permit) = permit();
        wall.0.fetch_sub(500, Ordering::SeqCst);
        assert_eq!(permit.check(), Ok(()), "a small correction");
        wall.0.fetch_sub(600, Ordering::SeqCst);
        assert_eq!(permit.check(), Err(RunOut));
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewed_permit_starts_at_the_given_moment() {
        let (wall, permit) = permit();
        wall.0.fetch_add(4_000, Ordering::SeqCst);
        let moment = permit.moment();
        wall.0.fetch_add(4_000, Ordering::SeqCst);
        assert_eq!(permit.check(), Err(RunOut));
        permit.renew(moment);
        assert_eq!(permit.check(), Ok(()));
        wall.0.fetch_add(2_000, Ordering::SeqCst);
        assert_eq!(permit.check(), Err(RunOut));
    }

    #[tokio::test]
    async fn the_work_under_a_permit_finds_it() {
        assert!(current().is_none());
        let (wall, permit) = permit();
        let found = permit.during(async { current().expect("there is a permit") }).await;
        wall.0.fetch_add(7_000, Ordering::SeqCst);
        assert_eq!(found.check(), Err(RunOut), "it is the same permit");
    }
}
