//! Whether counts fit the weights: Pearson's chi-square test of goodness of fit.
//!
//! Source: K. Pearson, “On the criterion that a given system of deviations …”, Philosophical Magazine 50 (1900). The
//! distribution is that of the library.

use statrs::distribution::{ChiSquared, ContinuousCDF as _};

/// The smallest expected count with which the test can be relied on, by the usual rule of thumb.
pub const SMALLEST_EXPECTED: f64 = 5.0;

/// How well counts fit what was expected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// The statistic: the larger, the farther off.
    pub chi_square: f64,
    /// Degrees of freedom: one less than there are classes.
    pub freedom: u32,
    /// How often chance alone gives a difference as large as this one or larger, from 0 to 1.
    pub p: f64,
    /// Whether every class is large enough for the test.
    pub reliable: bool,
}

/// Compares counts with weights, which need not add up to anything. Classes without weight are left out; there has to be
/// more than one with weight, and somebody counted.
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
    let p = ChiSquared::new(f64::from(freedom)).ok()?.sf(chi_square);
    let reliable = classes.iter().all(|(weight, _)| expected(*weight) >= SMALLEST_EXPECTED);
    Some(Fit { chi_square, freedom, p, reliable })
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn weights_need_not_add_up() {
        let fit = test(&[(0.7, 149), (0.3, 51)]).unwrap();
        assert!((0.1..0.2).contains(&fit.p), "149 to 51 at 70/30 is nothing unusual: {fit:?}");
    }

    #[test]
    fn nothing_is_said_of_one_class_or_nobody() {
        assert_eq!(test(&[(100.0, 10)]), None);
        assert_eq!(test(&[(50.0, 0), (50.0, 0)]), None);
        assert!(!test(&[(50.0, 2), (50.0, 3)]).unwrap().reliable);
    }
}
