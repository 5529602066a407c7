//! The maximum number of attempts at something, and the increasing waits between them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The maximum number of attempts, including the first, and the waits between them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// The maximum number of attempts.
    pub attempts: u32,
    /// The wait before the second attempt.
    pub delay: Duration,
    /// The factor by which each later wait is multiplied.
    pub factor: f64,
}

impl RetryPolicy {
    /// The default policy for capabilities: three attempts, with waits of 0.5 s and 0.75 s.
    pub const OF_CAPABILITY: Self = Self { attempts: 3, delay: Duration::from_millis(500), factor: 1.5 };

    /// Returns true if another attempt is allowed after this number of failures.
    pub fn allows(&self, failures: u32) -> bool {
        failures < self.attempts
    }

    /// Returns the wait before the next attempt after this number of failures; zero before the
    /// first attempt.
    pub fn wait(&self, failures: u32) -> Duration {
        match failures.checked_sub(1) {
            None => Duration::ZERO,
            Some(waited) => self.delay.mul_f64(self.factor.powi(i32::try_from(waited).unwrap_or(i32::MAX)).min(1e6)),
        }
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::OF_CAPABILITY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_by_the_factor() {
        let policy = RetryPolicy::OF_CAPABILITY;
        let waits: Vec<_> = (0..4).map(|failures| policy.wait(failures).as_millis()).collect();
        assert_eq!(waits, [0, 500, 750, 1_125]);
        assert!(policy.allows(2) && !policy.allows(3));
    }

    #[test]
    fn a_wait_never_overflows() {
        assert!(
            RetryPolicy { factor: 1e9, ..RetryPolicy::OF_CAPABILITY }.wait(u32::MAX) < Duration::from_secs(1_000_000)
        );
    }
}
