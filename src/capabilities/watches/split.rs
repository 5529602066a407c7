//! A sequential test of a split: were participants drawn by the shares of the parts?
//!
//! The test compares the shares with all other shares at once, by the multinomial test with a Dirichlet prior of Lindon
//! and Malek (2020, arXiv 2011.03567). The evidence against the shares is a martingale that begins at 1 if they hold, so
//! by Ville's inequality it ever reaches 1/α with a probability of at most α, however often it is looked at. It depends
//! only on the counts, not on the order in which participants came.
//!
//! *Architecture Invariant:* the false-alarm rate of a watch is at most [`FALSE_ALARM_RATE`], with a look after every
//! participant and for as long as the watch lasts. It holds if participants are drawn independently.

/// The maximum probability that a watch ever reports a split that is right.
pub const FALSE_ALARM_RATE: f64 = 0.01;

/// The weight of the prior around the shares, in participants: deviations that show after a few hundred to a few ten
/// thousand participants are found soonest.
const PRIOR: f64 = 100.0;

/// Returns the natural logarithm of the evidence that participants were not drawn by these shares. `counts` has the
/// number of participants of each part. Parts without a share are left out; the shares need not add up to 1.
pub fn log_evidence(shares: &[f64], counts: &[u64]) -> f64 {
    let used = || shares.iter().zip(counts).filter(|(share, _)| **share > 0.0);
    let whole: f64 = used().map(|(share, _)| share).sum();
    let total: f64 = used().map(|(_, count)| *count as f64).sum();
    let parts = used().map(|(share, count)| {
        let (share, count) = (share / whole, *count as f64);
        let prior = PRIOR * share;
        libm::lgamma(prior + count) - libm::lgamma(prior) - count * share.ln()
    });
    parts.sum::<f64>() + libm::lgamma(PRIOR) - libm::lgamma(PRIOR + total)
}

/// Returns true if the counts contradict the shares, with a false-alarm rate of at most [`FALSE_ALARM_RATE`] over all
/// looks.
pub fn looks_wrong(shares: &[f64], counts: &[u64]) -> bool {
    log_evidence(shares, counts) >= -FALSE_ALARM_RATE.ln()
}

#[cfg(test)]
mod tests {
    use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

    use super::*;

    /// Plays experiments of two conditions with a look after every user; returns the number of those with an alarm.
    fn alarms(experiments: u64, users: u64, share: f64, planned: &[f64]) -> u64 {
        let alarmed = |seed: &u64| {
            let mut random = StdRng::seed_from_u64(*seed);
            let mut counts = [0, 0];
            (0..users).any(|_| {
                counts[usize::from(random.random::<f64>() >= share)] += 1;
                looks_wrong(planned, &counts)
            })
        };
        (0..experiments).filter(alarmed).count() as u64
    }

    #[test]
    fn a_right_split_is_rarely_reported_however_often_it_is_looked_at() {
        let found = alarms(500, 1_000, 0.5, &[0.5, 0.5]);
        // At most 1% are expected; 13 of 500 or more would have a probability below 0.5%.
        assert!(found < 13, "{found} false alarms in 500 experiments");
    }

    #[test]
    fn a_wrong_split_is_reported() {
        let found = alarms(200, 1_000, 0.6, &[0.5, 0.5]);
        assert!(found >= 190, "60/40 in place of 50/50 was found in {found} of 200 experiments");
    }

    #[test]
    fn evidence_grows_with_the_deviation_and_begins_at_none() {
        assert!(log_evidence(&[0.5, 0.5], &[0, 0]).abs() < 1e-9);
        let of = |counts: [u64; 2]| log_evidence(&[0.5, 0.5], &counts);
        assert!(of([500, 500]) < 0.0, "an even split speaks for the shares");
        assert!(of([560, 440]) < of([600, 400]));
        assert!((of([600, 400]) - of([400, 600])).abs() < 1e-9);
        assert!(!looks_wrong(&[0.7, 0.3], &[700, 300]) && looks_wrong(&[0.5, 0.5], &[700, 300]));
    }

    #[test]
    fn shares_need_not_add_up_and_a_part_without_a_share_is_left_out() {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(close(log_evidence(&[50.0, 50.0], &[30, 20]), log_evidence(&[0.5, 0.5], &[30, 20])));
        assert!(close(log_evidence(&[0.5, 0.5, 0.0], &[30, 20, 9]), log_evidence(&[0.5, 0.5], &[30, 20])));
    }

    #[test]
    fn the_next_user_changes_the_evidence_by_one_on_average() {
        // The martingale itself: over the next draw by the shares, the mean of the evidence stays as it is.
        let shares = [0.2, 0.3, 0.5];
        let now = [7, 3, 11];
        let after = |part: usize| {
            let mut counts = now;
            counts[part] += 1;
            log_evidence(&shares, &counts).exp()
        };
        let mean: f64 = (0..3).map(|part| shares[part] * after(part)).sum();
        assert!((mean - log_evidence(&shares, &now).exp()).abs() < 1e-9);
    }
}
