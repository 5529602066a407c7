//! A permit to change something outside of this process, with an end.
//!
//! A process can stand still at any moment (`SIGSTOP`, a frozen machine), and the checks it made before are no longer
//! true when it wakes: another process may have taken its work over, looked whether a change was made, and made it. So
//! a past check is not enough to send a change. The change carries a [`Permit`], which is asked again immediately
//! before each write to the platform.
//!
//! The engine gives permits out ([`Permit::during`]): each ends before another process may look. The client of the
//! platform finds its own with [`current`]. A permit belongs to the task, as [`crate::http_log`] does, so that no
//! action can forget to hand it on.
//!
//! Two clocks are asked, and either ends a permit: the wall clock may be set back, and the monotonic clock of a frozen
//! machine stands still.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::clock::{Clock, Timestamp};

/// The time by which the wall clock may go back without ending a permit: small corrections are common.
const SET_BACK: Duration = Duration::from_secs(1);

/// A permit has run out: what was to be sent must not leave any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the time for sending this is over")]
pub struct RunOut;

/// Permission to send a change, until it runs out. Clones are the same permit.
#[derive(Clone, Debug)]
pub struct Permit(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    clock: Arc<dyn Clock>,
    length: Duration,
    since: Mutex<Moment>,
}

/// A reading of both clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    wall: Timestamp,
    monotonic: Instant,
}

tokio::task_local! {
    static CURRENT: Permit;
}

/// Returns the permit of the current work, if it has one.
pub fn current() -> Option<Permit> {
    CURRENT.try_with(Permit::clone).ok()
}

impl Permit {
    /// Creates a permit that begins now and ends after `length`.
    pub fn new(clock: Arc<dyn Clock>, length: Duration) -> Self {
        let since = Mutex::new(Moment { wall: clock.now(), monotonic: Instant::now() });
        Self(Arc::new(Inner { clock, length, since }))
    }

    /// Checks both clocks; to be called immediately before each write.
    ///
    /// # Errors
    ///
    /// [`RunOut`] if either clock says that the permit has ended.
    pub fn check(&self) -> Result<(), RunOut> {
        let since = *self.since();
        let now = self.moment();
        let wall_is_fine = now.wall < since.wall + self.0.length && now.wall + SET_BACK >= since.wall;
        let monotonic_is_fine = now.monotonic.saturating_duration_since(since.monotonic) < self.0.length;
        if wall_is_fine && monotonic_is_fine { Ok(()) } else { Err(RunOut) }
    }

    /// Returns the present moment, for [`Self::renew`] once it is known that the work was still ours then.
    pub fn moment(&self) -> Moment {
        Moment { wall: self.0.clock.now(), monotonic: Instant::now() }
    }

    /// Restarts the permit at `moment`, which must be read before the check that the work is still ours.
    pub fn renew(&self, moment: Moment) {
        *self.since() = moment;
    }

    /// Returns the duration of the permit.
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

    /// A wall clock that stands still until it is set.
    #[derive(Debug, Default)]
    struct Wall(AtomicI64);

    impl Clock for Wall {
        fn now(&self) -> Timestamp {
            Timestamp(self.0.load(Ordering::SeqCst))
        }
    }

    const LENGTH: Duration = Duration::from_secs(6);

    fn permit() -> (Arc<Wall>, Permit) {
        let wall = Arc::new(Wall(AtomicI64::new(1_000_000)));
        (wall.clone(), Permit::new(wall, LENGTH))
    }

    #[tokio::test(start_paused = true)]
    async fn the_wall_clock_ends_it_although_the_other_stands_still() {
        let (wall, permit) = permit();
        assert_eq!(permit.check(), Ok(()));
        wall.0.fetch_add(5_999, Ordering::SeqCst);
        assert_eq!(permit.check(), Ok(()));
        wall.0.fetch_add(1, Ordering::SeqCst);
        assert_eq!(permit.check(), Err(RunOut));
    }

    #[tokio::test(start_paused = true)]
    async fn the_monotonic_clock_ends_it_although_the_other_stands_still() {
        let (_wall, permit) = permit();
        advance(LENGTH).await;
        assert_eq!(permit.check(), Err(RunOut));
    }

    #[tokio::test(start_paused = true)]
    async fn a_wall_clock_that_was_set_back_says_nothing_so_it_ends_too() {
        let (wall, permit) = permit();
        wall.0.fetch_sub(500, Ordering::SeqCst);
        assert_eq!(permit.check(), Ok(()), "a small correction");
        wall.0.fetch_sub(600, Ordering::SeqCst);
        assert_eq!(permit.check(), Err(RunOut));
    }

    #[tokio::test(start_paused = true)]
    async fn renewed_it_lasts_from_the_moment_of_the_proof() {
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
    async fn the_work_under_it_finds_it() {
        assert!(current().is_none());
        let (wall, permit) = permit();
        let found = permit.during(async { current().expect("it is there") }).await;
        wall.0.fetch_add(7_000, Ordering::SeqCst);
        assert_eq!(found.check(), Err(RunOut), "it is the same");
    }
}
