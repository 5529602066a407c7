//! Pearson's chi-square test for the goodness of fit of counts to weights.
//!
//! Source: K. Pearson, “On the criterion that a given system of deviations …”, Philosophical Magazine
//! 50 (1900). Since the degrees of freedom are integers, the distribution is a finite sum: M.
//! Abramowitz and I. Stegun, “Handbook of Mathematical Functions” (1964), 26.4.4 and 26.4.5.

use libm::{erfc, exp, lgamma, log, sqrt};

/// The smallest expected count for which the test is reliable, by the usual rule of thumb.
pub const SMALLEST_EXPECTED: f64 = 5.0;

/// The goodness of fit of counts to weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// The statistic. The larger it is, the worse the fit.
    pub chi_square: f64,
    /// The degrees of freedom: one less than the number of classes.
    pub freedom: u32,
    /// The probability that chance alone gives a difference at least this large, from 0 to 1.
    pub p: f64,
    /// True if every class is large enough for the test.
    pub reliable: bool,
}

/// Tests counts, given as pairs of a weight and a count, against their weights, which may have any sum.
/// Classes without weight are ignored. Returns `None` if fewer than two classes have weight, or the
/// total count is 0.
pub fn test(counts: &[(f64, u64)]) -> Option<Fit> {
    let classes: Vec<_> = counts.iter().filter(|(weight, _)| *weight > 0.0).collect();
    let weights: f64 = classes.iter().map(|(weight, _)| weight).sum();
    let total: u64 = classes.iter().map(|(_, count)| count).sum();
    if classes.len() < 2 || total == 0 {
        return None;
    }
    let expected = |weight: f64| total as f64 * weight / weights;
    let chi_square =
        classes.iter().map(|(weight, count)| (*count as f64 - expected(*weight)).powi(2) / expected(*weight)).sum();
    let freedom = u32::try_from(classes.len() - 1).ok()?;
    let p = beyond(chi_square, freedom);
    let reliable = classes.iter().all(|(weight, _)| expected(*weight) >= SMALLEST_EXPECTED);
    Some(Fit { chi_square, freedom, p, reliable })
}

/// Returns the upper tail of the chi-square distribution: the probability that chance alone gives `chi_square` or
/// more.
fn beyond(chi_square: f64, freedom: u32) -> f64 {
    let half = chi_square / 2.0;
    if half <= 0.0 {
        return 1.0;
    }
    // Steps of one from 0, or from 1/2 where the degrees of freedom are odd, up to half of them.
    let odd = freedom % 2 == 1;
    let (first, rest) = if odd { (0.5, erfc(sqrt(half))) } else { (0.0, 0.0) };
    let steps = (0..freedom / 2).map(|step| first + f64::from(step));
    // In logarithms, since the powers can overflow.
    let sum: f64 = steps.map(|step| exp(step * log(half) - half - lgamma(step + 1.0))).sum();
    (rest + sum).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_accurate_to_many_digits() {
        for (chi_square, freedom, p) in [
            (3.841458820694124, 1, 0.05000000000000006),
            (5.991464547107979, 2, 0.05000000000000007),
            (7.814727903251179, 3, 0.05000000000000002),
            (10.827566170662733, 1, 0.0009999999999999996),
            (18.307038053275146, 10, 0.05000000000000001),
            (0.001, 1, 0.9747728793699604),
            (0.1, 7, 0.9999976885812014),
            (100.0, 1, 1.523970604832105e-23),
            (250.0, 4, 6.509689997375705e-53),
            (1600.0, 1601, 0.5023511245209517),
            (2000.0, 1500, 5.809910989761993e-17),
        ] {
            let found = beyond(chi_square, freedom);
            assert!((found / p - 1.0).abs() < 1e-11, "{chi_square} with {freedom}: {found}, not {p}");
        }
        assert_eq!(beyond(0.0, 1), 1.0);
        assert_eq!(beyond(1e6, 3), 0.0);
    }

    #[test]
    fn it_agrees_with_the_tables() {
        // The 5 % points of the chi-square distribution: 3.841 with one degree of freedom, 5.991 with two.
        let one = test(&[(50.0, 100 + 14), (50.0, 100 - 14)]).unwrap();
        assert!((one.chi_square - 3.92).abs() < 1e-9 && (0.045..0.05).contains(&one.p), "{one:?}");
        let two = test(&[(1.0, 100), (1.0, 100), (1.0, 100)]).unwrap();
        assert_eq!((two.chi_square, two.freedom), (0.0, 2));
        assert!((two.p - 1.0).abs() < 1e-9);
    }

    #[test]
    fn weights_need_not_add_up_to_100() {
        let fit = test(&[(0.7, 149), (0.3, 51)]).unwrap();
        assert!((0.1..0.2).contains(&fit.p), "149 to 51 at 70/30 is nothing unusual: {fit:?}");
    }

    #[test]
    fn there_is_no_fit_for_one_class_or_without_counts() {
        assert_eq!(test(&[(100.0, 10)]), None);
        assert_eq!(test(&[(50.0, 0), (50.0, 0)]), None);
        assert!(!test(&[(50.0, 2), (50.0, 3)]).unwrap().reliable);
    }
}
