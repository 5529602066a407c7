//! Recognises typed messages that mean yes, no or “never mind”, and nothing else.
//!
//! The lists of words for yes and no are deliberately short: “sounds good to me I guess” is a
//! message for the assistant, not a decision. A no may be followed by its reason ([`reason_of`]). A
//! request can be withdrawn in more ways ([`withdraws`]), since that makes no change.

use countersign_assistant::{forbidden_change, refuses, says_undo, withdraws};
use countersign_core::ids::MessageTs;
use countersign_graph::{action::ActionRecord, store::Posted};

use super::clicks::CardButton;
use crate::presentation::modals::MAX_REASON_CHARS;

const YES: &[&str] =
    &["yes", "y", "yes please", "yep", "approve", "approved", "confirm", "confirmed", "go ahead", "do it", "proceed"];
/// Phrases that may stand before or between the words for yes, and mean nothing without them: “ok, go ahead”.
const BESIDE_YES: &[&str] = &["ok", "okay", "alright", "please", "just", "now", "and", "then", "hm", "hmm"];
/// Remarks that may stand beside a yes like [`BESIDE_YES`]. With a mere “yes”, they may as well answer another person.
const REMARKS: &[&str] = &[
    "looks good",
    "looks good to me",
    "sounds good",
    "sounds good to me",
    "lgtm",
    "great",
    "perfect",
    "thanks",
    "thank you",
];
/// Words with which people agree with each other.
const AGREEING: &[&str] = &["yes", "y", "yep", "yeah", "yup", "sure"];
/// Phrases for yes that follow another phrase, and the longer forms of [`YES`]. A phrase precedes its own beginning in
/// this list.
const LONGER_YES: &[&str] = &[
    "go ahead with it",
    "go ahead with that",
    "go for it",
    "approve it",
    "approve that",
    "approve this",
    "do that",
    "do this",
    "confirm it",
    "yeah",
    "yup",
    "sure",
];
/// The verbs of buttons that people type instead of a yes. Each counts only for a card whose button says it.
const VERBS: &[&str] = &["send", "mark as spam"];
const NO: &[&str] = &["no", "n", "nope", "reject", "rejected", "don't", "dont", "do not", "no thanks"];

/// Words for no that may precede “because” or one of the [`REFUSALS`].
const BEFORE_BECAUSE: &[&str] = &["nope", "no", "don't", "dont", "do not"];

/// Phrases that reject a card, and that a reason may follow after a punctuation mark. A phrase
/// precedes its own beginning in this list.
const REFUSALS: &[&str] = &[
    "don't do it",
    "don't do that",
    "don't do this",
    "dont do it",
    "dont do that",
    "dont do this",
    "do not do it",
    "do not do that",
    "do not do this",
    "i reject it",
    "i reject that",
    "i reject this",
    "i reject",
    "reject it",
    "reject that",
    "reject this",
    "rejected",
    "reject",
];

/// The characters between a refusal and its reason.
const MARKS: [char; 9] = [' ', ',', '.', '!', ';', ':', '-', '–', '—'];

/// The minimum number of words of a reason after a comma or at the beginning of a sentence.
const MIN_REASON_WORDS: usize = 3;

/// Returns the meaning of the whole message if it is clearly one of the three.
pub fn parse(text: &str) -> Option<CardButton> {
    let words = plain(text);
    if YES.contains(&words.as_str()) || is_repeated_yes(&words) || verb_of(text).is_some() {
        Some(CardButton::Approve)
    } else if NO.contains(&words.as_str()) {
        Some(CardButton::Reject)
    } else if withdraws(text) || says_undo(text) {
        Some(CardButton::Withdraw)
    } else if refuses(text) || reason_of(text).is_some() {
        Some(CardButton::Reject)
    } else {
        None
    }
}

/// Returns true if the words, in lower case, are several phrases for yes, or one with polite words around it: “yes, go
/// ahead”, “ok, do it please”. At least one of them has to mean yes by itself.
fn is_repeated_yes(words: &str) -> bool {
    let means_yes = |phrase: &&str| YES.contains(phrase) || LONGER_YES.contains(phrase) && phrase.contains(' ');
    phrases(words, &[YES, LONGER_YES, BESIDE_YES, REMARKS]).is_some_and(|found| found.iter().any(means_yes))
}

/// Returns the verb of a message that has only a button's verb, with “it” or “please”: “send it please”.
pub fn verb_of(text: &str) -> Option<&'static str> {
    let words = plain(text).replace(',', " ");
    let mut words: Vec<&str> = words.split_whitespace().collect();
    if words.first() == Some(&"please") {
        words.remove(0);
    }
    words.pop_if(|last| *last == "please");
    words.pop_if(|last| *last == "it");
    VERBS.iter().copied().find(|verb| *verb == words.join(" "))
}

/// Returns true if the button that approves this card says the verb.
pub fn says_verb(record: &ActionRecord, verb: &str) -> bool {
    record.card.approve.to_lowercase() == verb
}

/// Returns true if a typed yes reads like agreement with another person: “yes, sounds good to me”.
pub fn is_agreement(text: &str) -> bool {
    let found = phrases(&plain(text), &[AGREEING, BESIDE_YES, REMARKS]);
    found.is_some_and(|found| found.iter().any(|phrase| REMARKS.contains(phrase)))
}

/// Returns the text in lower case, without punctuation at its end.
fn plain(text: &str) -> String {
    text.trim().trim_end_matches(['.', '!']).to_lowercase().replace('’', "'")
}

/// Splits words in lower case into phrases of these lists, each as long as possible; `None` if there are other words.
fn phrases(words: &str, lists: &[&[&'static str]]) -> Option<Vec<&'static str>> {
    let spaced: String = words.chars().map(|c| if MARKS.contains(&c) { ' ' } else { c }).collect();
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let (mut rest, mut found) = (words.as_slice(), Vec::new());
    while !rest.is_empty() {
        let fitting = lists.iter().copied().flatten().copied().filter_map(|phrase| {
            let length = if phrase.starts_with(rest[0]) { phrase.split(' ').count() } else { return None };
            let begins = rest.len() >= length && phrase.split(' ').eq(rest[..length].iter().copied());
            begins.then_some((length, phrase))
        });
        let (length, phrase) = fitting.max()?;
        found.push(phrase);
        rest = &rest[length..];
    }
    Some(found)
}

/// Returns the reason in a message that refuses and says why: “no, because the dose should be 40
/// mg”, “don't do it: the dose should be 40 mg”. “No, use 40 mg” is a correction, without a reason.
pub fn reason_of(text: &str) -> Option<String> {
    let said = text.trim().replace('’', "'");
    // “No, because …?” asks, and rejects nothing.
    if said.ends_with('?') {
        return None;
    }
    let after_no = after_phrase(&said, BEFORE_BECAUSE).map(|rest| rest.trim_start_matches(MARKS));
    // “No, I reject it: …” begins with both.
    let after_refusal = after_phrase(&said, REFUSALS).or_else(|| after_phrase(after_no?, REFUSALS));
    let after_refusal = after_refusal.map(str::trim_start);
    let rest = after_refusal.or(after_no)?;
    let plain = rest.trim_start_matches(MARKS);
    let reason = match (after_phrase(plain, &["because of", "because"]), after_refusal) {
        (Some(reason), _) => reason.trim_start_matches(MARKS),
        (None, Some(rest)) if rest.starts_with([':', '-', '–', '—']) => plain,
        (None, Some(rest)) if rest.starts_with(MARKS) && plain.split_whitespace().count() >= MIN_REASON_WORDS => plain,
        _ => return None,
    };
    (!reason.is_empty() && reason.chars().count() <= MAX_REASON_CHARS).then(|| reason.to_owned())
}

/// Returns the rest of a text that begins with one of these phrases.
fn after_phrase<'a>(text: &'a str, phrases: &[&str]) -> Option<&'a str> {
    phrases.iter().find_map(|phrase| {
        let begins = text.get(..phrase.len())?.eq_ignore_ascii_case(phrase);
        let rest = text.get(phrase.len()..)?;
        let goes_on = rest.starts_with(|next: char| next.is_alphanumeric() || "'-_".contains(next));
        (begins && !goes_on).then_some(rest)
    })
}

/// The reasons why a person who says yes cannot have read the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnseenReason {
    /// The card is not known to be posted.
    NotShown,
    /// The message is posted, but its content is not known: it is a status line that will become
    /// the card.
    Unsure,
    /// The yes was said before the card was posted.
    Before,
    /// The message shows an older version of the card.
    Older,
}

impl UnseenReason {
    /// Returns the phrase that is stored in the audit trail.
    pub fn word(self) -> &'static str {
        match self {
            Self::NotShown => "the card is not shown",
            Self::Unsure => "it is not known what is shown",
            Self::Before => "said before the card",
            Self::Older => "the card shows an older version",
        }
    }
}

/// Returns the reason why a yes with the timestamp `said` cannot refer to the request, given the
/// message in the slot of its card; `None` if it can.
pub fn unseen_reason(posted: Option<&Posted>, said: &MessageTs, record: &ActionRecord) -> Option<UnseenReason> {
    let Some(posted) = posted else { return Some(UnseenReason::NotShown) };
    match posted.card.as_ref().filter(|shown| shown.approval == record.approval) {
        None => Some(UnseenReason::Unsure),
        Some(shown) if shown.since >= *said => Some(UnseenReason::Before),
        Some(shown) if shown.digest != record.digest.short() => Some(UnseenReason::Older),
        Some(_) => None,
    }
}

/// Returns true if a message that withdraws a request can refer to this card. “Don't delete Math
/// Hints” refers to no other one.
pub fn is_about(text: &str, record: &ActionRecord) -> bool {
    let title = record.card.title.to_lowercase();
    forbidden_change(text).is_none_or(|forbidden| {
        title.split_whitespace().take(2).any(|word| word == forbidden.verb)
            && forbidden.name.is_none_or(|name| {
                title.contains(&name.to_lowercase()) || title.contains(&without_kind(&name, record).to_lowercase())
            })
    })
}

/// Returns a name without the word for its kind, as in “the document Plan” or “Plan document”. The
/// kind is part of the action's name.
fn without_kind<'a>(name: &'a str, record: &ActionRecord) -> &'a str {
    let is_kind = |word: &str| record.name.split('_').any(|kind| kind == word);
    let name = name.split_once(' ').filter(|(first, _)| is_kind(first)).map_or(name, |(_, rest)| rest);
    name.rsplit_once(' ').filter(|(_, last)| is_kind(last)).map_or(name, |(rest, _)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agreement_with_another_person_is_a_mere_yes_with_a_remark() {
        for said in ["yes, sounds good to me", "Yes, looks good!", "sure, thanks"] {
            assert!(is_agreement(said), "{said}");
        }
        for said in ["yes", "go ahead", "looks good to me, go ahead", "approve it, thanks"] {
            assert!(!is_agreement(said), "{said}");
        }
    }

    #[test]
    fn a_request_can_be_withdrawn_in_many_ways() {
        for message in [
            "never mind",
            "No, never mind.",
            "oh never mind",
            "actually never mind",
            "cancel",
            "cancel that",
            "please cancel that",
            "cancel it please",
            "Cancel it, please!",
            "hold on, cancel that please",
            "Hold on… cancel that",
            "wait, stop that",
            "wait stop it please",
            "hang on, please cancel this",
            "sorry, cancel my request",
            "oh no, wait, cancel that",
            "can you cancel that?",
            "could you please withdraw it?",
            "I want to withdraw my request",
            "<@U0BOT> please cancel that",
            "please call it off",
            "actually don't",
            "Actually, don’t do it.",
            "no, do not",
            "I changed my mind",
            "withdraw it",
            "cancel that request",
            "<@U0BOT> cancel the card please",
            "no, don't start it",
            "actually don't delete Math Hints",
            "undo that",
            "please undo it",
        ] {
            assert_eq!(parse(message), Some(CardButton::Withdraw), "{message}");
        }
        for message in [
            "cancel the Math Hints experiment's end date",
            "cancel the Math Hints experiment",
            "please cancel Math Hints",
            "wait, cancel Math Hints",
            "cancel the end date",
            "cancel “that”",
            "how do I cancel?",
            "how do I cancel that?",
            "can I cancel it?",
            "should we cancel it?",
            "cancel it?",
            "would you cancel it?",
            "don't cancel it",
            "please don't cancel that",
            "stop it",
            "stop that",
            "please stop that experiment",
            "hold on",
            "wait",
            "wait, what?",
            "who cancelled that?",
            "was it cancelled",
            "cancel that and start Lesson Video Hints",
            "wait, cancel it tomorrow",
            "hold on, is it running?",
            "no, use mathstream",
        ] {
            assert_ne!(parse(message), Some(CardButton::Withdraw), "{message}");
        }
    }

    #[test]
    fn a_refusal_may_say_why() {
        for (message, reason) in [
            ("no, because the dose should be 40 mg", "the dose should be 40 mg"),
            ("No because the dose should be 40 mg.", "the dose should be 40 mg."),
            ("nope, because of the exam", "the exam"),
            ("don’t, because Bo asked first", "Bo asked first"),
            ("don't do it: the dose should be 40 mg", "the dose should be 40 mg"),
            ("No, don't do it - wrong dose", "wrong dose"),
            ("don't do that, the dose should be 40 mg", "the dose should be 40 mg"),
            ("reject because it's too early", "it's too early"),
            ("Rejected: 60/40 would be safer", "60/40 would be safer"),
            ("I reject this. The exam is on Monday.", "The exam is on Monday."),
        ] {
            assert_eq!(reason_of(message).as_deref(), Some(reason), "{message}");
            assert_eq!(parse(message), Some(CardButton::Reject), "{message}");
        }
        for message in [
            "no",
            "no, use mathstream",
            "no: use 40 mg",
            "no, because",
            "no, because why?",
            "don't do it yet",
            "don't do it, please",
            "don't do it, thank you",
            "reject-all",
            "nobody said that because of you",
            "it is because of the dose",
            "because the dose should be 40 mg",
        ] {
            assert_eq!(reason_of(message), None, "{message}");
        }
    }

    #[test]
    fn the_verb_of_a_button_counts_for_its_card_only() {
        for (said, verb) in [
            ("send it", "send"),
            ("Send!", "send"),
            ("please send it", "send"),
            ("send it, please", "send"),
            ("Mark as spam.", "mark as spam"),
        ] {
            assert_eq!((verb_of(said), parse(said)), (Some(verb), Some(CardButton::Approve)), "{said}");
        }
        for said in
            ["send it?", "send it to Bo", "don't send it", "send it now", "send this", "send the other one", "it"]
        {
            assert_eq!(verb_of(said), None, "{said}");
        }
        assert_ne!(parse("send it to Bo"), Some(CardButton::Approve));
        let saved = include_str!("../../../tests/fixtures/shapes/action_record.json");
        let mut record = serde_json::from_str::<Vec<ActionRecord>>(saved).unwrap().remove(0);
        assert!(!says_verb(&record, "send"), "{}", record.card.approve);
        record.card.approve = "Send".to_owned();
        assert!(says_verb(&record, "send"));
    }

    #[test]
    fn only_clear_messages_count() {
        assert_eq!(parse(" Yes! "), Some(CardButton::Approve));
        assert_eq!(parse("Go ahead."), Some(CardButton::Approve));
        for message in [
            "yes go ahead",
            "Yes, go ahead!",
            "yes, please do it",
            "ok, go ahead",
            "sure, go ahead",
            "yes yes",
            "yeah, go for it",
            "yes – approved",
            "please approve it",
            "looks good to me, go ahead",
        ] {
            assert_eq!(parse(message), Some(CardButton::Approve), "{message}");
        }
        for message in ["don’t", "actually no", "nah", "hm, no thanks", "please don't", "let's not"] {
            let meaning = parse(message);
            assert!(matches!(meaning, Some(CardButton::Reject | CardButton::Withdraw)), "{message}: {meaning:?}");
        }
        assert_eq!(parse("Never mind."), Some(CardButton::Withdraw));
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
            "sure",
            "yeah",
            "ok please",
            "looks good to me",
            "sounds good to me I guess",
            "yes go ahead on Friday",
            "yes, but not yet",
            "please",
            "go ahead and rename it",
        ] {
            assert_eq!(parse(message), None, "{message}");
        }
    }
}
