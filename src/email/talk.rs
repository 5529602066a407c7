//! The messages that people write in a mail's thread, as far as they are understood without a model: the lines of `talk.txt`,
//! and how another draft should be.

use std::sync::LazyLock;

use countersign_mail::Address;
use countersign_understanding::{
    phrase_book::PhraseBook,
    phrases::Vocabulary,
    situation::Situation,
    user_request::{Interpretation, UserRequest},
};

use super::greeting::person_of;

/// The meaning of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// Another draft, with these changes; `None` if the changes were not said.
    AnotherDraft(Option<String>),
    /// Information about the sender of the mail.
    Who,
    /// The last answer to the sender.
    LastAnswer,
    /// The earlier mails of the sender.
    Earlier,
    /// Whether the reply was sent, when, and who approved it.
    Sent,
    /// The people who get the reply.
    Recipients,
    /// The class of the mail.
    Class,
    /// The reason why it waits for a person.
    Why,
    /// What the mail says.
    Content,
    /// The other mails that wait.
    Inbox,
    /// How the draft is sent, and who decides about it.
    Sending,
    /// Mark the mail as spam.
    Spam,
    /// Go on with the mail, which is no spam.
    NotSpam,
    /// This is said, such as what cannot be done.
    Say(String),
    /// The requests that are understood.
    Help,
}

/// The lines, and the names by which they call the wishes.
const LINES: Vocabulary =
    Vocabulary { lines: include_str!("talk.txt"), ..Vocabulary::new(&["mail", "mails", "email", "emails"]) };

static BOOK: LazyLock<PhraseBook> =
    LazyLock::new(|| PhraseBook::default().with("mail", &LINES).expect("the lines of mail can be read"));

/// The beginnings of messages that say how another draft should be.
const CHANGES: &str = "another draft|a bit|a little|be more|be less|be friendlier|be nicer|be shorter|be warmer|don't mention|\
    don't offer|don't promise|don't say|answer her|answer him|answer that|answer them|answer this person|draft|\
    reply that|reply to|sign it|write her|write him|write them|write this person|write to this person|new draft|\
    rewrite|redraft|make it|make that|make the answer|make the draft|make the reply|make the tone|make this|\
    rephrase|reword|shorter|longer|shorten|friendlier|warmer|nicer|simpler|more formal|less formal|more polite|\
    more direct|offer|suggest|propose|mention|say|tell|ask|add|include|remove|drop|leave out|apologize|\
    apologise|thank|translate our|translate the answer|translate the draft|translate the reply|use|in german|\
    in english|in french|in spanish|in italian|change|replace";

/// The beginnings that say what the reply tells the sender: “let her know that …”, and not “let Bo know that …”.
const TOLD: &str =
    "email her|email him|email them|email this person|let her know|let him know|let them know|let this person know";

/// The words that the lines have for the sender.
const SENDER: &str = "this person";

/// The beginnings that people also use when they ask a favor of each other: “can you ask Bo?”.
const FAVORS: &str = "ask|say|tell|use";

/// The words of other questions about this reason.
const WAITING: &str = "we|i|wait|waits|waiting|review|look|check|approve|approval|person|sent|automatic";

/// The words with which questions begin that ask for no favor.
const QUESTIONS: &str = "what|what's|whats|who|who's|whos|why|when|where|which|how|is|isn't|are|was|were|did|does|do|has|\
    have";

/// The requests for help.
const HELP: &[&str] = &["help", "help me", "what can you do", "what can i do", "what can i say", "what can i ask"];

/// Beginnings that make a request polite or lead over to it, in the order in which they occur.
const POLITE: &[&str] = &[
    "ok ",
    "ok, ",
    "okay ",
    "okay, ",
    "well, ",
    "hm, ",
    "so ",
    "then ",
    "please ",
    "can you ",
    "could you ",
    "would you ",
    "please ",
    "tell me ",
];

/// Returns the meaning of a message in the thread of this sender's mail; `None` if it is not one of the documented phrases.
pub(super) fn parse_about(sender: Option<&Address>, said: &str) -> Option<Wish> {
    let found = parse(said);
    if !matches!(found, None | Some(Wish::Say(_))) {
        return found;
    }
    // “Let Ben know that …” in the thread of Ben's mail.
    let Some(name) = person_of(sender) else { return found };
    let names: Vec<String> = name.to_lowercase().split_whitespace().map(str::to_owned).collect();
    let mut words: Vec<String> = Vec::new();
    for word in said.split_whitespace() {
        let bare = word.trim_end_matches(['?', '!', '.', ',']);
        let is_name = names.contains(&bare.to_lowercase());
        if is_name && words.last().is_some_and(|last| last == SENDER) {
            words.pop();
        }
        words.push(if is_name { word.replacen(bare, SENDER, 1) } else { word.to_owned() });
    }
    match parse(&words.join(" ")) {
        None | Some(Wish::Say(_)) => found,
        Some(Wish::AnotherDraft(Some(_))) => Some(Wish::AnotherDraft(Some(said.to_owned()))),
        wish => wish,
    }
}

/// Returns the meaning of a message that does not call the sender by name.
fn parse(said: &str) -> Option<Wish> {
    let said = said.trim();
    let words = said.trim_end_matches(['.', '!', '?', '…', ' ']).to_lowercase().replace('’', "'");
    let bare = POLITE.iter().fold(words.as_str(), |words, polite| words.strip_prefix(polite).unwrap_or(words));
    let plain = bare.trim_end_matches(" please").trim_end_matches(',');
    if HELP.contains(&plain) {
        return Some(Wish::Help);
    }
    // In the thread of a mail that waits, what is asked about is that it does.
    let asks_why =
        plain.starts_with("why ") && WAITING.split('|').any(|word| plain.split(' ').any(|said| said == word));
    let found = BOOK.understand(&situation(plain));
    let begins = |phrases: &str| {
        let follows = |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric());
        phrases.split('|').any(|phrase| plain.strip_prefix(phrase).is_some_and(follows))
    };
    let is_polite = bare.len() < words.len();
    let is_question = said.ends_with('?') && (!is_polite || begins(FAVORS));
    let another =
        ((begins(CHANGES) || begins(TOLD)) && !is_question).then(|| Wish::AnotherDraft(Some(said.to_owned())));
    match wish(&found).or(asks_why.then_some(Wish::Why)) {
        // Whether it is spam is asked, and not said.
        Some(Wish::Spam | Wish::NotSpam) if said.ends_with('?') => Some(Wish::Class),
        Some(Wish::Say(_)) if begins(TOLD) => another,
        Some(wish) => Some(wish),
        None => another,
    }
}

/// What a message to the bot may mean that is none of the documented phrases.
pub(super) enum Nearest {
    /// This is clearly asked.
    Wish(Wish),
    /// The person is asked which of these requests is meant.
    Asked { question: String, options: Vec<String> },
}

/// Returns the requests that are nearest to a message, without a model that could write another draft; `None` if none is
/// near. What is only a guess is never spam, unless the message names spam and does not limit that.
pub(super) fn nearest(said: &str) -> Option<Nearest> {
    let found = BOOK.suggest(&situation(said))?;
    let UserRequest::Unclear { question, options } = found.user_request else {
        return wish(&found).map(|wish| Nearest::Wish(guessed(wish, said)));
    };
    let may_be_spam = names_spam(said) && !limits(said);
    let wishes = options.into_iter().filter_map(|option| parse(&option).map(|wish| (option, wish)));
    let wishes = wishes.filter(|(_, wish)| *wish != Wish::Help);
    // A question is none about the words of the draft, unless it asks for a favor.
    let first = said.split_whitespace().next().unwrap_or_default().to_lowercase().replace('’', "'");
    let asks = QUESTIONS.split('|').any(|word| word == first);
    let is_draft = |wish: &Wish| matches!(wish, Wish::AnotherDraft(_));
    let wishes = wishes.filter(|(_, wish)| !(asks && is_draft(wish)));
    let mut wishes = wishes.filter(|(_, wish)| may_be_spam || !matches!(wish, Wish::Spam | Wish::NotSpam)).peekable();
    // Without a model, all wishes about the draft have one answer, and so has its sending; neither changes anything.
    if let Some((_, wish)) = wishes.next_if(|(_, wish)| matches!(wish, Wish::AnotherDraft(_) | Wish::Sending)) {
        return Some(Nearest::Wish(guessed(wish, said)));
    }
    let options: Vec<String> = wishes.filter(|(_, wish)| !is_draft(wish)).map(|(option, _)| option).collect();
    (!options.is_empty()).then_some(Nearest::Asked { question, options })
}

/// Returns a wish that was guessed.
fn guessed(wish: Wish, said: &str) -> Wish {
    match wish {
        Wish::AnotherDraft(_) => Wish::AnotherDraft(Some(said.to_owned())),
        // “Send it, but not before …”
        Wish::Sending if limits(said) => Wish::Sent,
        wish => wish,
    }
}

/// Returns true if a message negates something, or makes a condition.
fn limits(said: &str) -> bool {
    const LIMITS: &[&str] = &["not", "no", "never", "if", "unless", "before", "until", "without", "except", "only"];
    let said = said.to_lowercase().replace('’', "'");
    let mut words = said.split(|letter: char| !letter.is_alphanumeric() && letter != '\'');
    words.any(|word| LIMITS.contains(&word) || word.ends_with("n't") || word == "dont")
}

/// Returns true if a message names spam, so that it can be about the class of the mail.
pub(super) fn names_spam(said: &str) -> bool {
    const NAMES: &[&str] = &[
        "spam",
        "junk",
        "scam",
        "phish",
        "unsolicited",
        "legit",
        "genuine",
        "müll",
        "betrug",
        "pourriel",
        "indésirable",
        "basura",
        "no deseado",
        "spazzatura",
        "lixo",
        "ongewenst",
        "skräp",
        "спам",
        "垃圾",
    ];
    let said = said.to_lowercase();
    NAMES.iter().any(|name| said.contains(name))
}

fn situation(said: &str) -> Situation {
    Situation { said: said.to_owned(), ..Situation::default() }
}

/// Returns the wish that a line names.
fn wish(found: &Interpretation) -> Option<Wish> {
    let tool = match &found.user_request {
        UserRequest::Read { tool, .. } => tool,
        UserRequest::Unclear { question, options } if found.is_whole && options.is_empty() => {
            return Some(Wish::Say(question.clone()));
        }
        _ => return None,
    };
    Some(match tool.as_str() {
        "who" => Wish::Who,
        "last_answer" => Wish::LastAnswer,
        "earlier" => Wish::Earlier,
        "sent" => Wish::Sent,
        "recipients" => Wish::Recipients,
        "class" => Wish::Class,
        "why" => Wish::Why,
        "content" => Wish::Content,
        "inbox" => Wish::Inbox,
        "sending" => Wish::Sending,
        "spam" => Wish::Spam,
        "not_spam" => Wish::NotSpam,
        "draft" => Wish::AnotherDraft(None),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use countersign_understanding::checking::check_offers;

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
            ("what does she want?", Wish::Content),
            ("has she written before", Wish::Earlier),
            ("has she written to us before?", Wish::Earlier),
            ("did he ever contact us before?", Wish::Earlier),
            ("how often has she written to us?", Wish::Earlier),
            ("any earlier emails from him?", Wish::Earlier),
            ("is this the first email from her?", Wish::Earlier),
            ("did it go out?", Wish::Sent),
            ("was the reply sent already?", Wish::Sent),
            ("has it been sent yet?", Wish::Sent),
            ("did you send it?", Wish::Sent),
            ("when was it sent?", Wish::Sent),
            ("who approved it?", Wish::Sent),
            ("has she received our answer?", Wish::Sent),
            ("dont send yet", Wish::Sent),
            ("don't answer it yet please", Wish::Sent),
            ("who's going to see this reply?", Wish::Recipients),
            ("who else will get this?", Wish::Recipients),
            ("who does it go to?", Wish::Recipients),
            ("is anyone else in cc?", Wish::Recipients),
            ("looks good, send it", Wish::Sending),
            ("what did we send her?", Wish::LastAnswer),
            ("ok, this is spam", Wish::Spam),
            ("is this urgent?", Wish::Class),
            ("anything else open in the inbox?", Wish::Inbox),
            ("who replied to her last time", Wish::LastAnswer),
            ("help", Wish::Help),
        ] {
            assert_eq!(parse(said), Some(wish), "{said}");
        }
    }

    #[test]
    fn what_cannot_be_done_is_said() {
        for said in [
            "can bo take this one?",
            "assign it to Bo",
            "forward this to Bo",
            "cc Bo",
            "please add bo to the cc",
            "can you forward that mail to the sales team?",
            "email Bo that it's done",
            "let Bo know that we answered",
            "reply to all",
            "send a copy to finance",
            "can bo look at this one",
            "can you send it tomorrow at 9?",
            "post it at 5pm",
            "remind me tomorrow",
            "mark it",
            "ok mark it",
            "mark it as done",
            "archive this email",
        ] {
            assert!(matches!(parse(said), Some(Wish::Say(_))), "{said}: {:?}", parse(said));
        }
    }

    #[test]
    fn the_sender_is_called_by_name() {
        let sender = Address { name: Some("Ben Hale".to_owned()), address: "ben@northwind.example".to_owned() };
        for (said, wish) in [
            ("has Ben written to us before?", Some(Wish::Earlier)),
            ("did ben hale get our reply?", Some(Wish::Sent)),
            ("let Ben know that it works", Some(Wish::AnotherDraft(Some("let Ben know that it works".to_owned())))),
            ("who is Ada?", None),
        ] {
            assert_eq!(parse_about(Some(&sender), said), wish, "{said}");
        }
        assert!(matches!(parse_about(Some(&sender), "let Bo know that it works"), Some(Wish::Say(_))));
        let mark = Address { name: Some("Mark Spam".to_owned()), ..sender };
        assert_eq!(parse_about(Some(&mark), "mark it as spam"), Some(Wish::Spam), "the words come before the name");
    }

    #[test]
    fn changes_are_passed_on_as_they_were_said() {
        for said in [
            "shorter, and offer Tuesday",
            "Please mention the new price.",
            "in German",
            "Another draft: warmer",
            "can you make it shorter?",
            "can you make this shorter and friendlier",
            "be friendlier",
            "let her know that it takes a week",
            "don't promise anything",
            "Could you please add the price?",
        ] {
            assert_eq!(parse(said), Some(Wish::AnotherDraft(Some(said.to_owned()))), "{said}");
        }
    }

    #[test]
    fn each_suggestion_is_read() {
        check_offers(&BOOK, &Situation::default());
    }

    #[test]
    fn the_nearest_requests_are_suggested() {
        for (said, wanted) in [
            ("can u give me the gist of it", "what does she want?"),
            ("send it but not before bo has seen it", "was it sent?"),
            ("this looks like junk to me", "this is spam"),
            ("all good now, just send that thing to her", "how is it sent?"),
            ("do not send this before bo agrees", "was it sent?"),
            ("not now, let's wait until monday", "was it sent?"),
            ("is the answer out of the door", "was it sent?"),
        ] {
            match nearest(said) {
                Some(Nearest::Asked { options, .. }) => {
                    assert!(options.iter().any(|one| one == wanted), "{said}: {options:?}")
                }
                Some(Nearest::Wish(wish)) => assert_eq!(Some(wish), parse(wanted), "{said}"),
                None => panic!("{said}"),
            }
        }
        assert!(nearest("lunch at the usual place").is_none());
    }

    #[test]
    fn a_wish_about_the_draft_is_none_of_the_other_requests() {
        for said in [
            "no wait, 10%",
            "actually 15 percent",
            "hmm the tone is too cold",
            "it should be less formal",
            "we should also apologise",
            "i'd rather offer wednesday",
            "the second sentence has a typo",
            "could it sound a little less stiff?",
            "put my name at the bottom",
        ] {
            match nearest(said) {
                Some(Nearest::Wish(Wish::AnotherDraft(Some(changes)))) => assert_eq!(changes, said),
                Some(Nearest::Wish(wish)) => panic!("{said}: {wish:?}"),
                Some(Nearest::Asked { options, .. }) => panic!("{said}: {options:?}"),
                None => panic!("{said}"),
            }
        }
    }

    #[test]
    fn spam_is_suggested_only_if_it_is_named_without_a_limit() {
        for said in
            ["this doesn't look like junk", "block her if it's spam", "get rid of this sender", "looks fine to me"]
        {
            if let Some(Nearest::Asked { options, .. }) = nearest(said) {
                assert!(!options.iter().any(|one| one.contains("spam")), "{said}: {options:?}");
            }
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
