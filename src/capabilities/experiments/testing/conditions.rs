//! Conditions on the result of a test, for plans: `only if it is even, start it`.

use countersign_planner::condition::Verdict;
use serde_json::Value;

/// The p-value below which a balance does not count as even.
pub(crate) const UNUSUAL: f64 = 0.05;

/// The phrases that mean that a balance fits the weights.
const EVEN: &[&str] = &["even", "balanced", "in balance", "fits", "fits the weights", "as expected", "fair"];

/// Evaluates a condition about a balance; `None` if the words are about something else, or the result
/// is not that of a test.
pub(crate) fn verdict(condition: &str, result: &Value) -> Option<Verdict> {
    let words = condition.to_lowercase();
    let words = words.trim_end_matches(['.', '?', '!']).trim();
    let ends_with =
        |phrase: &&&str| words.strip_suffix(**phrase).is_some_and(|before| before.is_empty() || before.ends_with(' '));
    let phrase = EVEN.iter().filter(ends_with).max_by_key(|phrase| phrase.len())?;
    let before = words.strip_suffix(phrase)?;
    let negated = before.split_whitespace().any(|word| matches!(word, "not" | "isn't" | "isn’t" | "never"));
    result.get("tally")?;
    let Some(p) = result["p_value"].as_f64() else {
        return Some(Verdict::CannotTell("too few users got a condition to compare them with the weights".to_owned()));
    };
    let is_even = p >= UNUSUAL;
    let because = match is_even {
        true => format!("it fits the weights (p = {p:.2})"),
        false => format!("it does not fit the weights (p = {p:.3})"),
    };
    Some(if is_even == negated { Verdict::Fails(because) } else { Verdict::Holds(because) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_balance_is_even_or_not() {
        let even = json!({ "tally": {}, "p_value": 0.62 });
        let uneven = json!({ "tally": {}, "p_value": 0.0004 });
        let holds = |words, result| matches!(verdict(words, result), Some(Verdict::Holds(_)));
        assert!(
            holds("it is even", &even) && holds("the balance is even", &even) && holds("it fits the weights", &even)
        );
        assert!(holds("it is not even", &uneven) && !holds("it is even", &uneven) && !holds("it is not even", &even));
    }

    #[test]
    fn other_words_and_results_are_not_evaluated() {
        assert_eq!(verdict("it is uneven", &json!({ "tally": {}, "p_value": 0.5 })), None);
        assert_eq!(verdict("it is even", &json!({ "name": "Math Hints" })), None);
        assert!(matches!(verdict("it is even", &json!({ "tally": {} })), Some(Verdict::CannotTell(_))));
    }
}
