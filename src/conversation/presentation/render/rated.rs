//! The values of the buttons that rate an answer.

use countersign_core::ids::RunId;

/// The prefix of the value of the button for a helpful answer. The run follows.
const HELPED: &str = "helped:";

/// The prefix of the value of the button for an answer that did not help. The run follows.
const DID_NOT: &str = "did-not:";

/// Returns the values of the two buttons below an answer of `run`, “helpful” first.
pub fn values(run: &RunId) -> [String; 2] {
    [format!("{HELPED}{run}"), format!("{DID_NOT}{run}")]
}

/// Parses a value into the run, and true if its answer helped.
pub fn read(value: &str) -> Option<(RunId, bool)> {
    let of = |prefix: &str| value.strip_prefix(prefix).map(RunId::from);
    of(HELPED).map(|run| (run, true)).or_else(|| of(DID_NOT).map(|run| (run, false)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_contains_its_run_and_rating() {
        let run = RunId::from("r1");
        let [yes, no] = values(&run);
        assert_eq!(read(&yes), Some((run.clone(), true)));
        assert_eq!(read(&no), Some((run, false)));
        assert_eq!(read("approve"), None);
    }
}
