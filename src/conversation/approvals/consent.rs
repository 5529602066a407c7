//! The typed words that mean yes, no or never mind, and nothing more.
//!
//! The list is short on purpose: “sounds good to me I guess” is a message for the assistant, not a decision.

use crate::conversation::entry::Pressed;

const YES: &[&str] =
    &["yes", "y", "yes please", "yep", "approve", "approved", "confirm", "confirmed", "go ahead", "do it", "proceed"];
const NO: &[&str] = &["no", "n", "nope", "reject", "rejected", "don't", "dont", "do not", "no thanks"];
const NEVER_MIND: &[&str] = &[
    "never mind",
    "nevermind",
    "nvm",
    "no never mind",
    "no, never mind",
    "actually never mind",
    "oh never mind",
    "forget it",
    "forget that",
    "forget about it",
    "drop it",
    "drop that",
    "leave it",
    "scratch that",
    "not now",
    "don't bother",
    "cancel",
    "cancel it",
    "cancel that",
    "cancel this",
    "cancel the request",
    "cancel my request",
];

/// What a whole message means, if it is plainly one of the three.
pub fn typed(text: &str) -> Option<Pressed> {
    let words = text.trim().trim_end_matches(['.', '!']).to_lowercase().replace('’', "'");
    if YES.contains(&words.as_str()) {
        Some(Pressed::Approve)
    } else if NO.contains(&words.as_str()) {
        Some(Pressed::Reject)
    } else if NEVER_MIND.contains(&words.as_str()) {
        Some(Pressed::Withdraw)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_words_count() {
        assert_eq!(typed(" Yes! "), Some(Pressed::Approve));
        assert_eq!(typed("Go ahead."), Some(Pressed::Approve));
        assert_eq!(typed("don’t"), Some(Pressed::Reject));
        assert_eq!(typed("Never mind."), Some(Pressed::Withdraw));
        for message in [
            "cancel Math Hints",
            "stop it",
            "yes, but rename it first",
            "no idea",
            "ok",
            "sure?",
            "",
            "yes no",
            "approve Math Hints",
        ] {
            assert_eq!(typed(message), None, "{message}");
        }
    }
}
