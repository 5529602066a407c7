//! The words for the bot's own things, such as “envelope”, and their meanings.

use crate::words::{Word, after, lower, skip, without_last};

/// A word for one of the bot's own things.
struct OwnTerm {
    /// The name.
    name: &'static str,
    /// Other words for it, separated by `|`. They include the plural.
    names: &'static str,
    meaning: &'static str,
}

const TERMS: &[OwnTerm] = &[
    OwnTerm {
        name: "envelope",
        names: "envelope|envelopes|limit envelope|change envelope",
        meaning: "An *envelope* is a set of limits that the app's operator puts around some things, for example “weights from 10% to \
            90%”. A change within the limits needs the usual approval. A change outside them needs approval from two people, \
            neither of them the person who asked. `/countersign settings` lists the envelopes.",
    },
    OwnTerm {
        name: "standing approval",
        names: "standing approval|standing approvals|standing approve|advance approval|advance approvals|approval in advance",
        meaning: "A *standing approval* allows some kinds of changes in advance, for a limited time or number of times: “allow starts \
            and stops of Math Hints until Friday”. Someone has to approve it first. After that, these changes need no card of \
            their own. `/countersign standing` lists them, and anyone who can approve can end one.",
    },
    OwnTerm {
        name: "card",
        names: "card|cards|approval card|approval cards",
        meaning: "A *card* is the message that shows a change before it is made, with buttons to approve or reject it. It says \
            exactly what will change. Afterward it stays in the thread as the record of who decided what, and when.",
    },
    OwnTerm {
        name: "digest",
        names: "digest|digests|card digest|digest on card|digest of card",
        meaning: "The *digest* on a card is a fingerprint of the change that the card shows. Before the change is made, the fingerprint \
            is computed again, so only the change that was shown can run.",
    },
    OwnTerm {
        name: "notebook",
        names: "notebook|notebooks",
        meaning: "A *notebook* is a thread as a file: what was asked, looked up, decided and done, with a log that can be verified. \
            `/countersign notebook` exports one.",
    },
    OwnTerm {
        name: "countersignature",
        names: "countersignature|countersignatures|countersigning|countersign",
        meaning: "A *countersignature* is the approval of a change by a person who is entitled to give it. Without one, nothing is \
            changed.",
    },
];

/// Returns the name and the meaning of the word that a message asks about.
pub(crate) fn own_term(words: &[Word]) -> Option<(&'static str, &'static str)> {
    const ASKS: &str = "what is meant by|what do you mean by|what is|what are|what does|what do|explain to me|explain|define|\
        tell me about|meaning of|the meaning of|what is the meaning of|describe|how do|how does";
    let asked = after(words, ASKS)?;
    let named = skip(skip(asked, "these|those|the|an|a|your"), "app's");
    let named = without_last(named, &["mean", "means", "for", "here", "work", "works", "then"]);
    let plain = lower(named).replace(" the ", " ").replace(" a ", " ");
    let term = TERMS.iter().find(|term| term.names.split('|').any(|name| name == plain))?;
    Some((term.name, term.meaning))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::words;

    #[test]
    fn the_bots_own_words_are_explained() {
        let asked = |said: &str| own_term(&words(said)).map(|(name, _)| name);
        assert_eq!(asked("what are envelopes?"), Some("envelope"));
        assert_eq!(asked("What is a standing approval?"), Some("standing approval"));
        assert_eq!(asked("what does digest mean"), Some("digest"));
        assert_eq!(asked("explain the digest on the card"), Some("digest"));
        assert_eq!(asked("what is a decision point?"), None);
    }
}
