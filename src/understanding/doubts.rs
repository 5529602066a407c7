//! Sentences that mention a change but do not request it: “don't start it”, “should I start it?”

use serde_json::Value;

use super::{
    book::{Book, MENTION_CONFIDENCE},
    left_out::left_out_of_question,
    phrases::Utterance,
    user_request::{Interpretation, Talk, UserRequest},
    words::{after, as_typed, skip},
};

/// Reads “don't start X”. A draft of that change is dropped; without one, there is nothing to do.
pub(super) fn refusal(book: &Book, utterance: Utterance<'_>) -> Option<Interpretation> {
    let words = skip(utterance.words, "no ,|no|wait ,|wait|stop ,|actually ,|actually|sorry ,|sorry");
    let rest = after(
        words,
        "don't|dont|do not|not|better not|we should not|we shouldn't|you should not|you shouldn't|i don't want to|\
         we don't want to|i don't want you to|no need to",
    )?;
    let found = book.change(Utterance { words: rest, ..utterance })?;
    let (action, done) = match &found.user_request {
        UserRequest::Change { action, params } => (
            action.as_str(),
            book.phrases().map(|phrases| phrases.past_participle(action, params)).next().unwrap_or("changed"),
        ),
        UserRequest::Unclear { .. } => ("", "ended"),
        _ => return None,
    };
    let drafted = utterance.situation.draft.as_ref().is_some_and(|draft| draft.action == action);
    Some(if drafted { UserRequest::Drop } else { UserRequest::Talk(Talk::NothingDone(done)) }.into())
}

/// Reads “should I start X?” as a request to show X, because the bot gives no advice.
pub(super) fn considered_subject(book: &Book, utterance: Utterance<'_>) -> Option<Interpretation> {
    let UserRequest::Change { params, .. } = considered_change(book, utterance)? else { return None };
    book.phrases().find_map(|phrases| phrases.show_request(phrases.about(&params))).map(Interpretation::from)
}

/// Returns a request for the change that is only considered, if there is one.
pub(super) fn considered_request(book: &Book, utterance: Utterance<'_>) -> Option<String> {
    let UserRequest::Change { action, params } = considered_change(book, utterance)? else { return None };
    book.phrases()
        .find_map(|phrases| phrases.request(&action, &params))
        .or_else(|| Some(as_typed(after(utterance.words, ASKING)?)))
}

/// Returns the request for what a message merely mentions, unless that ignores a number or the like. Then it is offered.
pub(super) fn of_mention(book: &Book, user_request: UserRequest, utterance: Utterance<'_>) -> Interpretation {
    let left = match &user_request {
        UserRequest::Read { tool, arguments } => {
            let holds = format!("{tool} {}", Value::Object(arguments.clone())).replace('_', " ");
            left_out_of_question(&utterance.situation.said, &holds).map(|left| (left, arguments))
        }
        _ => None,
    };
    let Some((left, arguments)) = left else {
        return Interpretation { confidence: MENTION_CONFIDENCE, ..user_request.into() };
    };
    let shown = book.phrases().find_map(|phrases| phrases.about(arguments));
    let options = shown.map(|name| format!("show “{name}”")).into_iter().collect();
    Interpretation::unclear(format!("I couldn't make sense of “{left}” in that. What did you mean by it?"), options)
}

/// Reads a statement that asks for nothing: “we stopped X last week”, “haha, the name X is confusing”.
pub(super) fn remark(book: &Book, utterance: Utterance<'_>) -> Option<Interpretation> {
    const PEOPLE: &str = "we|i|they|we all|we already|i already|they already";
    const DONE: &[&str] = &[
        "stopped",
        "started",
        "paused",
        "resumed",
        "created",
        "deleted",
        "archived",
        "cancelled",
        "canceled",
        "ran",
        "launched",
        "finished",
        "changed",
        "renamed",
        "discussed",
        "talked",
        "looked",
        "saw",
        "liked",
        "tried",
        "tested",
    ];
    const ASKS: &[&str] = &[
        "please", "pls", "can", "could", "would", "should", "so", "then", "but", "want", "need", "wanted", "undo",
        "if", "now", "let", "instead", "again",
    ];
    const LAUGHS: &str = "haha|hahaha|lol|hehe|heh|rofl|lmao|wow";
    const STATES: &[&str] = &["is", "was", "are", "were", "looks", "looked", "seems", "seemed", "sounds"];
    let words = utterance.words;
    let asks = utterance.is_question || words.iter().any(|word| word.any(ASKS));
    let is_past = after(words, PEOPLE).is_some_and(|rest| rest.first().is_some_and(|verb| verb.any(DONE)));
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
fn considered_change(book: &Book, utterance: Utterance<'_>) -> Option<UserRequest> {
    let rest = after(utterance.words, ASKING)?;
    Some(book.change(Utterance { words: rest, ..utterance })?.user_request)
}
