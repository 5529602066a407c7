//! The messages that people write in a mail's thread, as far as they are understood without a model.

/// The meaning of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// Another draft, with these changes; `None` if the changes were not said.
    AnotherDraft(Option<String>),
    /// Information about the sender of the mail.
    Who,
    /// The last answer to the sender.
    LastAnswer,
    /// The class of the mail.
    Class,
    /// The reason why it waits for a person.
    Why,
    /// Mark the mail as spam.
    Spam,
    /// Go on with the mail, which is no spam.
    NotSpam,
    /// The requests that are understood.
    Help,
}

/// Messages that ask for another draft without saying how.
const DRAFT: &[&str] = &[
    "another draft",
    "ask for another draft",
    "new draft",
    "try again",
    "draft again",
    "rewrite it",
    "rewrite",
    "redraft",
    "draft a reply",
    "write another draft",
    "process again",
];

/// The beginnings of messages that say how another draft should be.
const CHANGES: &[&str] = &[
    "another draft",
    "new draft",
    "rewrite",
    "redraft",
    "make it",
    "make the draft",
    "shorter",
    "longer",
    "shorten",
    "friendlier",
    "warmer",
    "nicer",
    "simpler",
    "more formal",
    "less formal",
    "more polite",
    "more direct",
    "offer",
    "suggest",
    "propose",
    "mention",
    "say",
    "tell",
    "ask",
    "add",
    "include",
    "remove",
    "drop",
    "leave out",
    "apologize",
    "apologise",
    "thank",
    "use",
    "in german",
    "in english",
    "in french",
    "in spanish",
    "in italian",
    "change",
    "replace",
];

/// The beginnings that people also use when they ask a favor of each other: “can you ask Bo?”.
const FAVORS: &[&str] = &["ask", "say", "tell", "use"];

/// The questions about the sender. “Who is she” needs no name.
const WHO: &[&str] = &[
    "who is this",
    "who is that",
    "who is she",
    "who is he",
    "who are they",
    "who is it",
    "who's this",
    "who's she",
    "who's he",
    "who wrote this",
    "who wrote it",
    "who is the sender",
    "who wrote that mail",
    "who wrote that email",
    "who wrote this email",
    "do we know her",
    "do we know him",
    "do we know them",
];

/// The questions about the last answer to the sender.
const LAST: &[&str] = &[
    "what did we answer last time",
    "what did we answer before",
    "what did we say last time",
    "what did we tell her",
    "what did we tell him",
    "what did we tell them",
    "what did we write last time",
    "last answer",
    "last reply",
    "show the last reply",
    "show the last answer",
];

/// The questions about the class.
const CLASS: &[&str] = &[
    "what class is it",
    "what kind of mail is this",
    "what kind of mail is it",
    "what kind of email is this",
    "what kind of email is it",
    "how was it classified",
    "class",
    "is it spam",
    "is this spam",
    "is that spam",
];

/// The questions about the reason why the mail waits.
const WHY: &[&str] = &[
    "why does it wait",
    "why is it waiting",
    "why is this waiting",
    "why does this wait",
    "why wasn't it sent",
    "why was it not sent",
    "why do we have to review it",
    "why do we have to review this",
];

/// The words of other questions about this reason.
const WAITING: &[&str] = &[
    "we",
    "i",
    "wait",
    "waits",
    "waiting",
    "review",
    "look",
    "check",
    "approve",
    "approval",
    "person",
    "sent",
    "automatic",
];

/// The messages that say the mail is spam.
const SPAM: &[&str] =
    &["spam", "this is spam", "it's spam", "its spam", "that's spam", "mark as spam", "mark it as spam"];

/// The messages that say the mail is no spam.
const NOT_SPAM: &[&str] = &[
    "not spam",
    "this is not spam",
    "this isn't spam",
    "it's not spam",
    "it isn't spam",
    "it is not spam",
    "that's not spam",
    "that isn't spam",
    "no spam",
    "mark as not spam",
    "mark it as not spam",
];

/// The requests for help.
const HELP: &[&str] = &["help", "help me", "what can you do", "what can i do", "what can i say", "what can i ask"];

/// Beginnings that make a request polite, in the order in which they occur.
const POLITE: &[&str] = &["please ", "can you ", "could you ", "would you ", "please ", "tell me "];

/// Returns the meaning of a message; `None` if it is not one of the documented phrases.
pub(super) fn parse(said: &str) -> Option<Wish> {
    let said = said.trim();
    let words = said.trim_end_matches(['.', '!', '?', '…', ' ']).to_lowercase().replace('’', "'");
    let bare = POLITE.iter().fold(words.as_str(), |words, polite| words.strip_prefix(polite).unwrap_or(words));
    let plain = bare.trim_end_matches(" please").trim_end_matches(',');
    let is = |phrases: &[&str]| phrases.contains(&plain);
    if is(DRAFT) {
        return Some(Wish::AnotherDraft(None));
    }
    if is(WHO) {
        return Some(Wish::Who);
    }
    if is(LAST) {
        return Some(Wish::LastAnswer);
    }
    if is(CLASS) {
        return Some(Wish::Class);
    }
    // In the thread of a mail that waits, what is asked about is that it does.
    let asks_why = plain.starts_with("why ") && WAITING.iter().any(|word| plain.split(' ').any(|said| said == *word));
    if is(WHY) || asks_why {
        return Some(Wish::Why);
    }
    if is(NOT_SPAM) && !said.ends_with('?') {
        return Some(Wish::NotSpam);
    }
    if is(SPAM) {
        return Some(Wish::Spam);
    }
    if is(HELP) {
        return Some(Wish::Help);
    }
    let begins = |phrases: &[&str]| {
        let follows = |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric());
        phrases.iter().any(|phrase| plain.strip_prefix(phrase).is_some_and(follows))
    };
    let is_polite = bare.len() < words.len();
    let is_question = said.ends_with('?') && (!is_polite || begins(FAVORS));
    (begins(CHANGES) && !is_question).then(|| Wish::AnotherDraft(Some(said.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_phrases_are_understood() {
        for (said, wish) in [
            ("Another draft", Wish::AnotherDraft(None)),
            ("try again, please", Wish::AnotherDraft(None)),
            ("Who is she?", Wish::Who),
            ("who’s this", Wish::Who),
            ("What did we answer last time?", Wish::LastAnswer),
            ("What kind of email is this?", Wish::Class),
            ("Why is it waiting?", Wish::Why),
            ("This is spam!", Wish::Spam),
            ("Is it spam?", Wish::Class),
            ("This isn’t spam.", Wish::NotSpam),
            ("Could you please tell me who wrote this?", Wish::Who),
            ("why do we need to look at this one?", Wish::Why),
            ("help", Wish::Help),
        ] {
            assert_eq!(parse(said), Some(wish), "{said}");
        }
    }

    #[test]
    fn changes_are_passed_on_as_they_were_said() {
        for said in [
            "shorter, and offer Tuesday",
            "Please mention the new price.",
            "in German",
            "Another draft: warmer",
            "can you make it shorter?",
            "Could you please add the price?",
        ] {
            assert_eq!(parse(said), Some(Wish::AnotherDraft(Some(said.to_owned()))), "{said}");
        }
    }

    #[test]
    fn other_messages_are_not_guessed() {
        for said in [
            "",
            "Bo, can you take this?",
            "can you take this?",
            "can you tell me more?",
            "can you ask Bo?",
            "sayonara",
            "user error",
            "Should we offer Tuesday?",
            "hello",
        ] {
            assert_eq!(parse(said), None, "{said}");
        }
    }
}
