//! Sentences that mention a change but do not request it: “don't start it”, “should I start it?”

use serde_json::Value;

use crate::{
    leftovers::left_out::left_out_of_question,
    phrase_book::{MENTION_CONFIDENCE, PhraseBook},
    phrases::Utterance,
    situation::Situation,
    user_request::{Interpretation, Talk, UserRequest},
    words::{Word, after, as_typed, skip, strip_politeness},
};

/// The openings of a message that refuses something.
const REFUSES: &str = "don't|do not|not|never|better not|we should not|we shouldn't|you should not|you shouldn't|i don't want to|\
    we don't want to|i don't want you to|no need to|there is no need to|you don't need to|you don't have to|\
    we don't need to|we don't have to|no reason to";

/// Returns the words that a message refuses, after any sigh; `None` if it refuses nothing.
fn refused<'a>(words: &'a [Word], openings: &str) -> Option<&'a [Word]> {
    const SIGHS: &str = "no ,|no|wait ,|wait|stop ,|actually ,|actually|sorry ,|sorry";
    // The “no” of “no need to” is no sigh.
    after(words, openings).or_else(|| after(skip(words, SIGHS), openings))
}

/// Reads “don't pause X, stop it” and “don't change the dose, just run it”: what is refused asks for nothing, and the rest
/// is a request. A refusal with a limit (“don't start it until Friday, then …”) is none of these.
pub(crate) fn request_beside_refusal(book: &PhraseBook, utterance: Utterance<'_>) -> Option<Interpretation> {
    const LIMITS: &[&str] = &[
        "until", "till", "unless", "before", "after", "if", "when", "while", "except", "without", "yet", "once", "only",
    ];
    const BESIDES: &str = "never mind about|never mind|nevermind|forget about";
    let rest = refused(utterance.words, REFUSES).or_else(|| after(utterance.words, BESIDES))?;
    let ends = |word: &Word| word.tail.contains(['.', ';', ':', '!', '…']);
    let divides = |at: &usize| rest[*at].any(&[",", "but", "–", "—", "-"]) || ends(&rest[*at - 1]);
    let at = (1..rest.len()).find(divides)?;
    let (unwanted, wanted) = rest.split_at(at);
    if unwanted.iter().any(|word| word.any(LIMITS)) {
        return None;
    }
    const CONNECTS: &str =
        ",|–|—|-|but rather|but instead|but just|but only|but simply|but|rather|instead|only|simply|,";
    let mut wanted = strip_politeness(wanted);
    while let Some(left) = after(wanted, CONNECTS).filter(|left| !left.is_empty()) {
        wanted = strip_politeness(left);
    }
    let mut named = unwanted.iter().filter(|word| word.quoted && word.kind.is_some());
    let subject = named.next().filter(|_| named.next().is_none());
    // In “don't pause X, stop it”, “it” is X.
    let with_subject = |word: &Word| match subject {
        Some(subject) if word.is("it") => format!("“{}”", subject.text),
        _ => as_typed(std::slice::from_ref(word)),
    };
    let said = wanted.iter().map(with_subject).collect::<Vec<_>>().join(" ");
    let found = book.understand(&Situation { said, ..utterance.situation.clone() });
    matches!(found.user_request, UserRequest::Change { .. } | UserRequest::Update(_)).then_some(found)
}

/// Reads “remember to stop X on Friday” as a request to stop it: a note would not do so.
pub(crate) fn reminder(book: &PhraseBook, utterance: Utterance<'_>) -> Option<Interpretation> {
    let rest = after(utterance.words, "remember to|don't let me forget to")?;
    let found = book.understand(&Situation { said: as_typed(rest), ..utterance.situation.clone() });
    matches!(found.user_request, UserRequest::Change { .. }).then_some(found)
}

/// Reads “don't start X”. A draft of that change is dropped; without one, there is nothing to do.
pub(crate) fn refusal(book: &PhraseBook, utterance: Utterance<'_>) -> Option<Interpretation> {
    let rest = refused(utterance.words, REFUSES)?;
    let found = book.change(Utterance { words: rest, ..utterance })?;
    let (action, done) = match &found.user_request {
        UserRequest::Change { action, params } => {
            (action.as_str(), book.worded(action, params).map_or("changed", |words| words.participle))
        }
        UserRequest::Unclear { options, .. } if !options.is_empty() => ("", "ended"),
        UserRequest::Unclear { .. } => ("", "changed"),
        _ => return None,
    };
    let drafted = utterance.situation.draft.as_ref().is_some_and(|draft| draft.action == action);
    Some(if drafted { UserRequest::Drop } else { UserRequest::Talk(Talk::NothingDone(done)) }.into())
}

/// Reads “should I start X?” as a request to show X, because the bot gives no advice.
pub(crate) fn considered_subject(book: &PhraseBook, utterance: Utterance<'_>) -> Option<Interpretation> {
    let UserRequest::Change { params, .. } = considered_change(book, utterance)? else { return None };
    let shows = book.phrases().map(|phrases| phrases.vocabulary()).find(|vocabulary| vocabulary.shows.is_some())?;
    Some(shows.shows?.request(shows.about(&params)).into())
}

/// Returns a request for the change that is only considered, if there is one.
pub(crate) fn considered_request(book: &PhraseBook, utterance: Utterance<'_>) -> Option<String> {
    let UserRequest::Change { action, params } = considered_change(book, utterance)? else { return None };
    book.worded(&action, &params)
        .and_then(|words| words.request)
        .or_else(|| Some(as_typed(after(utterance.words, ASKING)?)))
}

/// Returns the request for what a message merely mentions, unless that ignores a number or the like. Then it is offered.
pub(crate) fn of_mention(book: &PhraseBook, user_request: UserRequest, utterance: Utterance<'_>) -> Interpretation {
    let left = match &user_request {
        UserRequest::Read { tool, arguments } => {
            let holds = format!("{tool} {}", Value::Object(arguments.clone())).replace('_', " ");
            left_out_of_question(&utterance.situation.said, &holds).map(|left| (left, arguments))
        }
        _ => None,
    };
    // A number in a question about a term is an example.
    let about = left.and_then(|(left, arguments)| Some((left, book.about(arguments)?)));
    let Some((left, name)) = about else {
        return Interpretation { confidence: MENTION_CONFIDENCE, ..user_request.into() };
    };
    let question = format!("I couldn't make sense of “{left}” in that. What did you mean by it?");
    Interpretation::unclear(question, vec![format!("show “{name}”")])
}

/// Reads a statement that asks for nothing: “we stopped X last week”, “haha, the name X is confusing”.
pub(crate) fn remark(book: &PhraseBook, utterance: Utterance<'_>) -> Option<Interpretation> {
    const PEOPLE: &str = "we|i|they|we all|we already|i already|they already";
    const DONE: &str = "stopped started paused resumed created deleted archived cancelled canceled ran launched \
        finished changed renamed discussed talked looked saw liked tried tested";
    const ASKS: &[&str] = &[
        "please", "pls", "can", "could", "would", "should", "so", "then", "but", "want", "need", "wanted", "undo",
        "if", "now", "let", "instead", "again",
    ];
    const LAUGHS: &str = "haha|hahaha|lol|hehe|heh|rofl|lmao|wow";
    const STATES: &[&str] = &["is", "was", "are", "were", "looks", "looked", "seems", "seemed", "sounds"];
    let words = utterance.words;
    let asks = utterance.is_question || words.iter().any(|word| word.any(ASKS));
    let is_past = after(words, PEOPLE).is_some_and(|rest| rest.first().is_some_and(|verb| verb.among(DONE)));
    let laughs = after(words, LAUGHS).is_some_and(|rest| {
        let rest = skip(rest, "yeah|yes|yep|right|true|ok|,");
        rest.iter().any(|word| word.any(STATES)) && book.change(Utterance { words: rest, ..utterance }).is_none()
    });
    (!asks && utterance.situation.draft.is_none() && (is_past || laughs))
        .then(|| UserRequest::Talk(Talk::Remark).into())
}

const ASKING: &str = "should i|should we|shall i|shall we|should you|is it safe to|is it ok to|is it okay to|\
    is it a good idea to|is it wise to|is it time to|would it be ok to|would it be wise to|you think i should|you think we should|\
    i wonder whether to|i wonder if i should|i wonder if we should";

/// Returns the change that is only considered.
fn considered_change(book: &PhraseBook, utterance: Utterance<'_>) -> Option<UserRequest> {
    let rest = after(utterance.words, ASKING)?;
    Some(book.change(Utterance { words: rest, ..utterance })?.user_request)
}
