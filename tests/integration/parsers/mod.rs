//! Every parser that meets the outside, given thousands of broken and hostile inputs.
//!
//! [`corpus`] holds one good input of each kind, [`mutation`] breaks it, [`targets`] knows the parsers. A case is a
//! number: the same number gives the same input for ever, so a failure names all that is needed to see it again. A
//! parser may refuse an input; it may not panic. `cargo bench --bench parsers` runs the same for millions of cases and
//! measures the memory that each case took.

mod corpus;
mod mutation;
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind};

use targets::Target;

/// Cases for each parser in the test command.
const CASES: u64 = 1_000;

/// Runs one case. Returns the size of its input, in bytes.
///
/// # Errors
///
/// The input that made the parser panic.
pub(crate) fn run_case(target: &Target, case: u64) -> Result<usize, String> {
    let input = mutation::input(&target.seeds, case);
    match catch_unwind(AssertUnwindSafe(|| (target.run)(&input))) {
        Ok(()) => Ok(input.len()),
        Err(_) => {
            let shown: String = String::from_utf8_lossy(&input).chars().take(2_000).collect();
            Err(format!("{} panics in case {case}: {shown}", target.name))
        }
    }
}

/// All parsers with their good inputs.
pub(crate) fn all() -> Vec<Target> {
    targets::all()
}

#[test]
fn no_input_from_outside_makes_a_parser_panic() {
    let failed: Vec<String> =
        all().iter().flat_map(|target| (0..CASES).filter_map(|case| run_case(target, case).err()).take(3)).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn good_inputs_reach_every_parser() {
    for target in all() {
        for seed in &target.seeds {
            (target.run)(seed);
        }
        assert!(
            (target.accepted)() > 0,
            "{} accepts none of its good inputs, so breaking them shows nothing",
            target.name
        );
    }
}

#[test]
fn a_case_is_the_same_each_time_and_differs_from_the_next() {
    let seeds = vec![br#"{"type":"message","text":"hello"}"#.to_vec()];
    assert_eq!(mutation::input(&seeds, 7), mutation::input(&seeds, 7));
    let different = (0..50).map(|case| mutation::input(&seeds, case)).collect::<std::collections::BTreeSet<_>>();
    assert!(different.len() > 30, "{} different inputs", different.len());
}
