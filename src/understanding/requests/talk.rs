//! Talk: greetings, help, questions about past changes, and replies to messages that request
//! nothing.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::{
    dates,
    lines::{Lines, Offer},
    phrase_book::PhraseBook,
    phrases::{Phrases, Utterance, Vocabulary},
    situation::{OpenCard, Situation},
    user_request::{Interpretation, Talk, UserRequest},
    words::{Word, after, are, is_sign, lower, text, without_last},
};

/// Buttons below an answer: the label, and the message that is sent when it is pressed.
pub(crate) type Steps = Vec<(&'static str, &'static str)>;

/// Phrases for requests that people make of every bot, separated by `|`.
pub(crate) const UNSUPPORTED_REQUESTS: &str = "send an email|send a mail|send an e-mail|send a message|send me an email|email|e-mail|mail|\
    remind me|set a reminder|book|order|translate|tell me a joke|tell a joke|sing|play|write me|write a|write an|write some|\
    write code|what is the weather|what will the weather|how is the weather|look up the weather|check the weather|\
    look up the news|check the news|what is the news|look it up online|look that up online|search online|search the internet|what time is it|what day is it|what is the time|\
    restart the server|stop the server|shut down|deploy|post in|post to|invite|give access to|grant access|grant permission|order pizza|google|\
    make a powerpoint|make a presentation|make slides|make a slide|make a deck|make a pdf|make a spreadsheet|export|forward|\
    search the web|browse|text me|text us|call me|call us|phone me|phone|sms|whatsapp|ring me";

/// The lines, in the form of [`crate::lines`].
const LINES: &str = include_str!("talk.txt");

static TALK: LazyLock<Lines> = LazyLock::new(|| Lines::read(LINES).expect("the lines of talk can be read"));

/// Returns the questions about the bot and its work that may be suggested.
pub(crate) fn offers() -> &'static [Offer] {
    TALK.offers()
}

/// Reads greetings, thanks, and questions about the bot and its past changes; `words` may include politeness.
pub(crate) fn talk(words: &[Word], situation: &Situation) -> Option<UserRequest> {
    let said: Vec<Word> = words.iter().filter(|word| words.len() == 1 || !is_sign(word)).cloned().collect();
    let plain = lower(&said);
    const THUMBS: &[&str] = &["👍", ":+1", ":thumbsup", "✅", ":white_check_mark", ":ok_hand", "👌", "👎", ":-1"];
    if THUMBS.iter().any(|thumb| plain.starts_with(thumb)) || is_postponement(&plain) {
        return Some(UserRequest::Talk(Talk::NothingAsked));
    }
    let alone = Situation::default();
    let fit = |words: &[Word]| TALK.fit(Utterance::of(words, &alone), &Vocabulary::new(&[]), "", true);
    let of_log = |words: &[Word]| fit(words).filter(|fit| fit.call.name == EXECUTION_LOG).map(|fit| fit.call);
    let (asked, when) = dates::ending_in_period(without_last(&said, HERE), &situation.today);
    let asked = without_last(asked, HERE);
    let everywhere = said.iter().any(|word| word.is("channel"));
    if when.is_some() && are(asked, "what about|how about|and what about") {
        return Some(past_changes(Map::new(), when, everywhere, situation));
    }
    if let Some(call) = of_log(asked).filter(|_| asked.len() < said.len()) {
        return Some(past_changes(call.arguments, when, everywhere, situation));
    }
    let call = fit(&said).map(|fit| fit.call).or_else(|| of_log(asked))?;
    Some(match call.name.as_str() {
        // Only approvals check if these words decide a card.
        "agreement" => UserRequest::Talk(Talk::NothingAsked),
        "greeting" => UserRequest::Talk(Talk::Greeting),
        "thanks" => UserRequest::Talk(Talk::Thanks),
        "remark" => UserRequest::Talk(Talk::Remark),
        // Who does not understand what is waiting is told what it is.
        "confusion" if !situation.open_cards.is_empty() || situation.draft.is_some() => {
            UserRequest::Talk(Talk::Pending)
        }
        "help" | "confusion" => UserRequest::Talk(Talk::Help),
        "limits" => UserRequest::Talk(Talk::Limits),
        "pending" => UserRequest::Talk(Talk::Pending),
        "approval" => UserRequest::Talk(Talk::Approval),
        "why" => UserRequest::Talk(Talk::Why),
        _ => past_changes(call.arguments, None, everywhere, situation),
    })
}

/// The words at the end of a question about past changes that say where it looks.
const HERE: &[&str] = &["so", "far", "yet", "already", "here", "together", "in", "this", "thread", "channel"];

/// Words of a question about past changes that name none of them.
const NO_SUBJECT: &str = "the a an of on to for about my our your this that it its these those them change changes request \
    requests card cards last one ones just then there made anything something everything all";

/// Returns the request for past changes. In a line, `subject` is what they are about, and `it` is the same, but may also
/// be the last subject of the thread.
fn past_changes(
    mut arguments: Map<String, Value>,
    when: Option<String>,
    everywhere: bool,
    situation: &Situation,
) -> UserRequest {
    let named = |given: Option<Value>| {
        let given = crate::words::words(given?.as_str()?);
        let is_name = |word: &Word| word.quoted || !word.among(NO_SUBJECT);
        let (first, last) = (given.iter().position(is_name)?, given.iter().rposition(is_name)?);
        Some(text(&given[first..=last]))
    };
    let it = arguments.remove("it");
    let back = || situation.last_subject.clone().filter(|_| it.is_some());
    if let Some(subject) = named(arguments.remove("subject")).or_else(|| named(it.clone())).or_else(back) {
        arguments.insert("subject".to_owned(), subject.into());
    }
    arguments.extend(when.map(|when| ("when".to_owned(), when.into())));
    if everywhere {
        arguments.insert("where".to_owned(), "channel".into());
    }
    UserRequest::Read { tool: EXECUTION_LOG.to_owned(), arguments }
}

/// The tool that lists past changes.
pub(crate) const EXECUTION_LOG: &str = "get_execution_log";

/// Returns buttons for first requests.
pub(crate) fn first_steps(book: &PhraseBook) -> Steps {
    let of = |phrases: &'static dyn Phrases| {
        phrases.vocabulary().first_steps.split_last().map_or(&[][..], |(_, first)| first)
    };
    book.phrases().flat_map(of).copied().take(3).chain([WHAT_CAN_YOU_DO]).collect()
}

const WHAT_CAN_YOU_DO: (&str, &str) = ("What can you do?", "what can you do?");

/// Returns the reply to talk, and the buttons below it.
pub(crate) fn reply_to(book: &PhraseBook, talk: Talk, situation: &Situation) -> (String, Steps) {
    let steps = || book.phrases().flat_map(|phrases| phrases.vocabulary().first_steps.iter().copied());
    match talk {
        Talk::Greeting => {
            let things: Vec<_> = book
                .phrases()
                .map(|phrases| phrases.vocabulary().greeting)
                .filter(|things| !things.is_empty())
                .collect();
            let hello = match things.is_empty() {
                true => "Hello. Ask me something, or tell me what to change.".to_owned(),
                false => format!("Hello. Ask me about your {}, or tell me what to change.", things.join(" and ")),
            };
            (hello, first_steps(book))
        }
        Talk::Thanks => ("You're welcome.".to_owned(), Vec::new()),
        Talk::Help => (help(book), steps().take(2).chain(steps().last()).collect()),
        Talk::Limits => (LIMITS.to_owned(), vec![WHAT_CAN_YOU_DO]),
        Talk::Pending => (pending(situation), Vec::new()),
        Talk::Approval => (APPROVAL.to_owned(), Vec::new()),
        Talk::Why => (why(situation), Vec::new()),
        Talk::NothingToUndo => ("There's nothing to undo in this thread.".to_owned(), Vec::new()),
        Talk::NothingToRepeat => {
            ("There's nothing here to try again. Tell me in one sentence what you'd like.".to_owned(), Vec::new())
        }
        Talk::NothingAsked => (
            "I'm not waiting for an answer here. If you mean a card, use its buttons.".to_owned(),
            steps().take(1).chain([WHAT_CAN_YOU_DO]).collect(),
        ),
        Talk::NothingDone(what) => {
            let so_far = if situation.recent_changes.is_empty() { "" } else { " Earlier changes in this thread stay." };
            let said = format!("OK, nothing was {what}.{so_far} {}", how_to_decide(&situation.open_cards));
            (said.trim_end().to_owned(), Vec::new())
        }
        Talk::Remark => ("OK. Nothing was changed.".to_owned(), Vec::new()),
        Talk::AboutCard => (about_card(situation), Vec::new()),
        Talk::CardWaits => (format!("That isn't a decision yet. {}", how_to_decide(&situation.open_cards)), Vec::new()),
    }
}

/// Returns the list of possible questions and changes.
fn help(book: &PhraseBook) -> String {
    let parts: Vec<&str> =
        book.phrases().map(|phrases| phrases.vocabulary().help).filter(|help| !help.is_empty()).collect();
    let on = match book.services() {
        [] => String::new(),
        [service] => format!(" on {service}"),
        [earlier @ .., last] => format!(" on {} and {last}", earlier.join(", ")),
    };
    format!(
        "I look things up{on} and prepare changes. Nothing is changed until someone approves the card I post.\n\n{}",
        parts.join("\n\n")
    )
}

/// Reads thanks with something after them that asks for nothing.
pub(crate) fn thanks(Utterance { typed, is_question, .. }: Utterance<'_>) -> Option<Interpretation> {
    const THANKS: &str = "thx|thanks|thank you|cheers|ty|nice|great|perfect|cool";
    let rest = after(typed, THANKS).filter(|rest| rest.first().is_some_and(|pause| pause.is(",")))?;
    let asks = rest.iter().any(|word| word.quoted || word.any(&["but", "please", "now", "then", "also", "and"]));
    (!is_question && !asks).then(|| UserRequest::Talk(Talk::Thanks).into())
}

/// Returns true if the words are a sign that refuses.
pub(crate) fn is_thumb_down(plain: &str) -> bool {
    ["👎", ":-1", ":thumbsdown", "❌", "🚫", "🛑", "✋"].iter().any(|sign| plain.starts_with(sign))
}

/// Returns true if the words postpone a decision.
pub(crate) fn is_postponement(plain: &str) -> bool {
    const ALONE: &str = "not yet|don't do it yet|don't do that yet|don't yet|not just yet|later|maybe later|wait|hold on|one moment|let me think|i will think about it|\
        tomorrow";
    const LATER: &[&str] = &["not now", "not", "not yet", "later", "tomorrow", "wait", "not today"];
    let but = ["yes but ", "ok but ", "okay but ", "sure but ", "no but ", "fine but "].into_iter();
    let qualified = but.into_iter().filter_map(|start| plain.strip_prefix(start)).any(|rest| LATER.contains(&rest));
    ALONE.split('|').any(|alone| alone == plain) || qualified
}

/// Returns the reply to words that match no phrase.
pub(crate) fn lost(book: &PhraseBook) -> String {
    let simple =
        book.phrases().map(|phrases| phrases.vocabulary().simplest_requests).filter(|simple| !simple.is_empty());
    let simple: Vec<&str> = simple.chain(["*what can you do?*"]).collect();
    format!("I couldn't make sense of that without my language model. Simple phrases work: {}", simple.join(", "))
}

/// Returns a sentence about the open cards and how to decide about them.
fn how_to_decide(open: &[OpenCard]) -> String {
    match open {
        [] => String::new(),
        [OpenCard { title, approve, reject, typed, .. }] => {
            let typing = match typed {
                true => ", or type just “yes” or “no” in this thread.",
                false => ". What is typed decides nothing for this one.",
            };
            format!("A card is open: {title} Press **{approve}** or **{reject}** on it{typing}")
        }
        several => {
            let titles: Vec<String> = several.iter().map(|card| format!("• {}", card.title)).collect();
            format!("Several cards are open. Use the buttons on the one you mean:\n{}", titles.join("\n"))
        }
    }
}

/// Returns true if the last thing that happened in the thread is a change that was made. Its log says who asked for it and
/// who approved it.
pub(crate) fn ends_with_a_done_change(situation: &Situation) -> bool {
    let is_done = situation.recent_changes.last().is_some_and(|change| change.again.is_none());
    is_done && situation.turned_down.is_none() && situation.open_cards.is_empty()
}

/// Returns the reason why the last request was not done, as far as the thread knows it.
fn why(situation: &Situation) -> String {
    if let Some(rejected) = &situation.turned_down {
        return match rejected.reason.as_deref().map(str::trim).filter(|reason| !reason.is_empty()) {
            Some(reason) => format!("The reason given for the rejection: “{reason}”."),
            None => "It was rejected without a reason. Ask “who turned it down?” to see who rejected it.".to_owned(),
        };
    }
    let failed = situation.recent_changes.last().filter(|change| change.again.is_some());
    match (failed, situation.open_cards.as_slice()) {
        (Some(failed), _) => format!("This is all I know: {}", failed.what),
        (None, [_, ..]) => format!("Nothing has been decided yet. {}", how_to_decide(&situation.open_cards)),
        (None, []) => {
            "Nothing was rejected and nothing failed in this thread. Which change or answer do you mean?".to_owned()
        }
    }
}

/// Answers a question about the change on the newest open card from what the card says.
fn about_card(situation: &Situation) -> String {
    let Some(card) = situation.open_cards.last() else { return why(situation) };
    let said = crate::words::words(&situation.said);
    let asked: Vec<&str> = said.iter().map(|word| word.lower.as_str()).filter(|word| word.len() > 3).collect();
    let lines = || card.facts.iter().chain(&card.warnings).chain([&card.title]);
    let mentions = |line: &String| {
        let line = line.to_lowercase();
        asked.iter().any(|word| !ABOUT_A_CARD.contains(word) && line.contains(word.strip_suffix('e').unwrap_or(word)))
    };
    let first = match lines().any(mentions) {
        true => format!("This is all that the card {} changes:", card.title),
        false => format!("The card {} doesn't say so, and it changes only what it says:", card.title),
    };
    let listed = lines().take(card.facts.len() + card.warnings.len()).map(|line| format!("• {line}"));
    let undone = match card.irreversible {
        true => "It can't be undone.",
        false => "It can be undone afterward.",
    };
    format!("{first}\n{}\n{undone}", listed.collect::<Vec<_>>().join("\n"))
}

/// Words in questions about a card that say nothing about it.
const ABOUT_A_CARD: &[&str] = &[
    "does", "will", "would", "could", "that", "this", "card", "change", "also", "with", "what", "happen", "when",
    "then",
];

fn pending(situation: &Situation) -> String {
    let mut waiting: Vec<String> = situation.open_cards.iter().map(|card| format!("• {}", card.title)).collect();
    if let Some(asked) = situation.draft.as_ref().and_then(|draft| draft.asked.as_ref()) {
        waiting.push(format!("• My question: {}", asked.question));
    }
    match waiting.is_empty() {
        true => "Nothing is waiting in this thread.".to_owned(),
        false => format!("Waiting in this thread:\n{}", waiting.join("\n")),
    }
}

const LIMITS: &str = "I only do what is listed under “What can you do?”. I change nothing without a card that someone approves, and I don't decide for you. I can't look anything up on the web, give people access, or book and order things.";

const APPROVAL: &str = "When you ask for a change, I work out exactly what would be done and show it on a card. When an approver approves it, that change, and nothing else, is made once: a misunderstanding, mine or somebody else's, changes nothing. If nobody decides, it ends at the time that it names. The card stays here as the record of who decided what, and when.";

#[cfg(test)]
mod tests {
    use crate::{checking::check, phrase_book::PhraseBook, situation::Situation};

    #[test]
    fn who_did_what_and_when_is_in_the_log() {
        let log = "read get_execution_log";
        check(
            &PhraseBook::default(),
            &Situation::default(),
            &[
                ("who pressed the button", log),
                ("whose idea was it", log),
                ("who requested that?", log),
                ("and when", log),
                ("when was that approved?", log),
                ("who gave the green light", log),
                ("so what cant you do", "talk limits"),
                ("what can't you do?", "talk limits"),
                ("what are the rules here anyway", "talk approval"),
                ("who can grant that", "talk approval"),
                ("do i really need someone to approve every little weight change?", "talk approval"),
                ("can you look up the weather in pittsburgh", "unsupported"),
                ("hmm dont do it yet", "talk nothingasked"),
                ("never mind, forget the whole thing", "drop"),
                ("nah scrap it", "drop"),
            ],
        );
    }
}
