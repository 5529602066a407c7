//! What the buttons carry that say whether an answer helped: written into them, and read back.

use countersign_core::ids::RunId;

/// How the value of a button that says yes begins; the run follows.
const HELPED: &str = "helped:";

/// How the value of a button that says no begins.
const DID_NOT: &str = "did-not:";

/// The values of the two buttons below an answer of `run`: that it helped, that it did not.
pub fn values(run: &RunId) -> [String; 2] {
    [format!("{HELPED}{run}"), format!("{DID_NOT}{run}")]
}

/// The run that a value is about, and whether it helped.
pub fn read(value: &str) -> Option<(RunId, bool)> {
    let of = |prefix: &str| value.strip_prefix(prefix).map(RunId::from);
    of(HELPED).map(|run| (run, true)).or_else(|| of(DID_NOT).map(|run| (run, false)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_button_says_which_run_it_is_about() {
        let run = RunId::from("r1");
        let [yes, no] = values(&run);
        assert_eq!(read(&yes), Some((run.clone(), true)));
        assert_eq!(read(&no), Some((run, false)));
        assert_eq!(read("approve"), None);
    }
}
