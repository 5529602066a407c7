//! The typed words that mean yes or no, and nothing more.
//!
//! The list is short on purpose: “sounds good to me I guess” is a message for the assistant, not a decision.

use crate::conversation::entry::Pressed;

const YES: &[&str] =
    &["yes", "y", "yes please", "yep", "approve", "approved", "confirm", "confirmed", "go ahead", "do it", "proceed"];
const NO: &[&str] = &["no", "n", "nope", "reject", "rejected", "don't", "dont", "do not", "no thanks"];

/// What a whole message means, if it is a plain yes or no.
pub fn typed(text: &str) -> Option<Pressed> {
    let words = text.trim().trim_end_matches(['.', '!']).to_lowercase().replace('’', "'");
    if YES.contains(&words.as_str()) {
        Some(Pressed::Approve)
    } else if NO.contains(&words.as_str()) {
        Some(Pressed::Reject)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_yes_or_no_counts() {
        assert_eq!(typed(" Yes! "), Some(Pressed::Approve));
        assert_eq!(typed("Go ahead."), Some(Pressed::Approve));
        assert_eq!(typed("don’t"), Some(Pressed::Reject));
        for message in ["yes, but rename it first", "no idea", "ok", "sure?", "", "yes no", "approve Math Hints"] {
            assert_eq!(typed(message), None, "{message}");
        }
    }
}
