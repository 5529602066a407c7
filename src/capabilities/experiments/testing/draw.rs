//! A reimplementation of the platform's draw: the random number of a user or group in an experiment,
//! and the condition that it selects.
//!
//! The server seeds the generator `seedrandom` with the id of the experiment and that of the user (or
//! working group), takes one number from 0 to 100, and adds up the weights of the conditions until
//! they reach the number. The generator is RC4: its key is the seed, mixed into at most 256 bytes; the
//! first 256 outputs are discarded, and the next ones make up the number. The results equal those of
//! the server: the tests reproduce its recorded draws for each user.

/// The size of the generator's state, and the number of outputs that it discards.
const WIDTH: usize = 256;

/// Returns the random number, from 0 to 100, for a draw in an experiment. `by` is the id of the user, or
/// that of the group if groups draw.
pub fn number(experiment: &str, by: &str) -> f64 {
    Generator::seeded(&format!("{experiment}_{by}")).next() * 100.0
}

/// Returns the index of the condition that a number selects; the first one if the number is larger
/// than all weights together.
pub fn condition_index(weights: &[f64], number: f64) -> usize {
    let mut sum = 0.0;
    let reached = weights.iter().position(|weight| {
        sum += weight;
        number <= sum
    });
    reached.unwrap_or_default()
}

/// Returns the random number, from 0 to below 1, that assigns a user to one of several experiments at a
/// point.
pub fn pool_number(user: &str) -> f64 {
    Generator::seeded(user).next()
}

/// Returns the index of the experiment that a pool number selects, out of `size` at one point.
pub fn pool_member(size: usize, number: f64) -> usize {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to below the size")]
    let index = (number * size as f64) as usize;
    index.min(size.saturating_sub(1))
}

/// The RC4 generator, as `seedrandom` uses it.
struct Generator {
    states: [u8; WIDTH],
    i: u8,
    j: u8,
}

impl Generator {
    fn seeded(seed: &str) -> Self {
        let key = key(seed);
        let mut states = [0; WIDTH];
        states.iter_mut().zip(0..=u8::MAX).for_each(|(state, number)| *state = number);
        let mut j: u8 = 0;
        for i in 0..WIDTH {
            j = j.wrapping_add(states[i]).wrapping_add(key[i % key.len()]);
            states.swap(i, j.into());
        }
        let mut generator = Self { states, i: 0, j: 0 };
        for _ in 0..WIDTH {
            generator.byte();
        }
        generator
    }

    fn byte(&mut self) -> u8 {
        self.i = self.i.wrapping_add(1);
        self.j = self.j.wrapping_add(self.states[usize::from(self.i)]);
        self.states.swap(self.i.into(), self.j.into());
        let at = self.states[usize::from(self.i)].wrapping_add(self.states[usize::from(self.j)]);
        self.states[usize::from(at)]
    }

    /// Returns a number from 0 to below 1 that uses all 52 bits of its fraction.
    fn next(&mut self) -> f64 {
        const DIGITS: u64 = 1 << 52;
        let mut numerator = (0..6).fold(0_u64, |sum, _| sum << 8 | u64::from(self.byte()));
        let mut bits = 48;
        let mut last: u64 = 0;
        while numerator < DIGITS {
            numerator = (numerator + last) << 8;
            bits += 8;
            last = self.byte().into();
        }
        while numerator >= DIGITS * 2 {
            numerator >>= 1;
            bits -= 1;
            last >>= 1;
        }
        (numerator + last) as f64 / 2_f64.powi(bits)
    }
}

/// Returns the key: the UTF-16 code units of the seed (as in the server's language), mixed into at most
/// 256 bytes as `seedrandom` does.
fn key(seed: &str) -> Vec<u8> {
    let mut key: Vec<u8> = Vec::with_capacity(WIDTH);
    let mut smear: u32 = 0;
    for (at, unit) in seed.encode_utf16().enumerate() {
        let at = at % WIDTH;
        smear ^= u32::from(key.get(at).copied().unwrap_or_default()) * 19;
        let byte = (smear.wrapping_add(unit.into()) & 0xff) as u8;
        match key.get_mut(at) {
            Some(there) => *there = byte,
            None => key.push(byte),
        }
    }
    if key.is_empty() { vec![0] } else { key }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn drawn(experiment: &str, user: &str) -> &'static str {
        ["control", "variant"][condition_index(&[50.0, 50.0], number(experiment, user))]
    }

    #[test]
    fn it_reproduces_recorded_draws_of_the_server() {
        let file = include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../tests/fixtures/upgrade/behaviour/02-draw-is-deterministic.json"
        ));
        let recorded: Value = serde_json::from_str(file).unwrap();
        let experiment = recorded["fixed_experiment_id"].as_str().unwrap();
        // The recording does not contain the names of its forty users. With wrong names only about half
        // of the draws would agree.
        let ours: Vec<_> = (0..40).map(|nth| drawn(experiment, &format!("d-{nth:02}"))).collect();
        let theirs: Vec<_> = recorded["fixed_id_first"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(ours, theirs);
    }

    #[test]
    fn it_agrees_with_single_recorded_assignments() {
        let experiment = "419f9e2f-875c-4688-9bb1-abb74dc0c280";
        let seen = [
            ("student-1", "variant"),
            ("student-2", "variant"),
            ("student-nobody", "control"),
            ("five-1", "control"),
            ("preview-1", "variant"),
        ];
        for (user, condition) in seen {
            assert_eq!(drawn(experiment, user), condition, "{user}");
        }
    }

    #[test]
    fn its_numbers_equal_those_of_the_library() {
        // The results of seedrandom 3.0.5 for these seeds.
        for (seed, expected) in NUMBERS {
            let ours = Generator::seeded(seed).next();
            assert!((ours - expected).abs() < f64::EPSILON, "{seed}: {ours} instead of {expected}");
        }
    }

    #[test]
    fn a_number_beyond_all_weights_selects_the_first_condition() {
        assert_eq!(condition_index(&[10.0, 10.0], 55.0), 0);
        assert_eq!(condition_index(&[0.0, 100.0], 0.5), 1);
        assert_eq!(condition_index(&[50.0, 50.0], 50.0), 0);
        assert_eq!(condition_index(&[], 50.0), 0);
    }

    #[test]
    fn a_pool_spreads_users_over_its_experiments() {
        let counts = (0..300).fold([0; 3], |mut counts, nth| {
            counts[pool_member(3, pool_number(&format!("user-{nth}")))] += 1;
            counts
        });
        assert!(counts.iter().all(|count| (70..=130).contains(count)), "{counts:?}");
        assert_eq!(pool_member(1, pool_number("anybody")), 0);
    }

    const NUMBERS: [(&str, f64); 4] = [
        ("hello.", 0.9282578795792454),
        ("", 0.23144008215179881),
        ("Ärger 😀", 0.5299521390700178),
        ("419f9e2f-875c-4688-9bb1-abb74dc0c280_student-1", 0.9198286817418377),
    ];
}
