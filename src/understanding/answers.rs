//! Words about the change in hand, whatever it is: “never mind”, an offered answer, “undo”, “try again”.

use serde_json::Map;

use super::{
    book::Book,
    situation::{Draft, RecentChange, Situation},
    user_request::{Talk, Understood, UserRequest},
    words::{self, Word, after, lower, plainly, skip, text},
};

/// Phrases that let go of any request.
const NEVER_MIND: &str = "never mind|nevermind|forget it|forget that|forget about it|drop it|drop that|leave it|scratch that|\
    scrap that|scrap it|actually forget it|nvm|not now|don't bother";

/// Phrases that let go of a request, but may also mean the thing that was talked about.
const CANCEL: &str = "cancel|cancel that|cancel it|cancel this";

/// Phrases that let go of a request and of nothing else.
const WITHDRAW: &str = "cancel the request|cancel my request|cancel this request|cancel that request|cancel the card|\
    cancel this card|withdraw it|withdraw that|withdraw this|withdraw the request|withdraw my request|\
    withdraw this request|take it back|take that back|call it off|withdraw|withdraw the card|\
    withdraw this card|close the card|close this card|i changed my mind|i've changed my mind|\
    i have changed my mind|changed my mind|we changed our mind|don't|dont|not|don't do it|don't do that|\
    don't do this|not do it|not do that|better not|rather not|i'd rather not";

/// Phrases that let go of a request only after “wait” and the like: else the thing that was talked about is to be
/// stopped.
const STOP: &str = "stop that|stop this|stop it";

/// Further phrases that end the questions about a change.
const ENDS_DRAFT: &str = "stop|stop it|stop that|abort|quit|exit|no thanks|no thank you|none|none of them|no|delete it";

/// Returns true if these words are one of the phrases.
fn listed(phrases: &str, plain: &str) -> bool {
    phrases.split('|').any(|phrase| phrase == plain)
}

/// Returns true if a whole message lets go of its author's request: “never mind”, “hold on, cancel that please”. A
/// question does so only where it is a request: “can you cancel that?”
pub fn lets_go(said: &str) -> bool {
    let all = words::words(said);
    let is_request = |pair: &[Word]| pair[0].any(&["can", "could", "will"]) && pair[1].any(&["you", "u"]);
    if said.trim_end().ends_with('?') && !all.windows(2).any(is_request) || all.iter().any(|word| word.quoted) {
        return false;
    }
    let (waits, rest) = after_wait(words::polite(&all));
    let plain = lower(rest);
    [NEVER_MIND, CANCEL, WITHDRAW].iter().any(|list| listed(list, &plain)) || waits && listed(STOP, &plain)
}

/// Returns true if a whole message ends the questions about a change: “stop that”, “no thanks”.
pub fn ends_draft(said: &str) -> bool {
    let all = words::words(said);
    listed(ENDS_DRAFT, &lower(words::polite(&all)))
}

/// A change that is not to be made: “don't start it”, “no, do not delete Math Hints”.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spared {
    /// The verb.
    pub verb: String,
    /// The name of the thing; `None` for “it” and the like.
    pub name: Option<String>,
}

/// Returns the change that a whole message forbids.
pub fn spared(said: &str) -> Option<Spared> {
    const VERBS: &[&str] =
        &["start", "stop", "pause", "resume", "delete", "archive", "schedule", "create", "change", "rename", "move"];
    let all = words::words(said);
    if said.trim_end().ends_with('?') {
        return None;
    }
    let (_, rest) = after_wait(words::polite(&all));
    let (verb, about) = after(rest, "don't|dont|not|never")?.split_first()?;
    let about = skip(about, "the");
    let name = match lower(about).as_str() {
        "" | "it" | "that" | "this" | "that one" | "this one" => None,
        _ => Some(text(about)),
    };
    verb.any(VERBS).then(|| Spared { verb: verb.lower.clone(), name })
}

/// Returns true if a message takes back an earlier request: “no, Running Test”, “actually …”, “… instead”.
pub fn says_no(said: &str) -> bool {
    const OPENINGS: &str = "no|nope|actually|oops|oh no|sorry|wait|i meant|i mean|rather|my mistake|hold on|hang on";
    let all = words::words(said);
    let words = words::polite(&all);
    after(words, OPENINGS).is_some() || words.last().is_some_and(|last| last.is("instead"))
}

/// Returns the words after “hold on” and the like, and true if there were any such words.
fn after_wait(words: &[Word]) -> (bool, &[Word]) {
    const OPENINGS: &str = "hold on|hang on|wait a moment|wait a minute|wait a second|wait a sec|wait|one moment|\
        just a moment|stop ,|oh no|oh|oops|sorry|no|actually|my mistake|on second thought|on second thoughts|,";
    let mut rest = words;
    while let Some(left) = after(rest, OPENINGS).filter(|left| !left.is_empty()) {
        rest = words::polite(left);
    }
    (rest.len() < words.len(), rest)
}

/// Reads “never mind”. With nothing to let go of but cards, the reply says how those are decided.
pub(crate) fn drop(words: &[Word], situation: &Situation) -> Option<Understood> {
    let (waits, rest) = after_wait(words);
    let (whole, plain) = (lower(words), lower(rest));
    let always = listed(NEVER_MIND, &plain) || twice(rest);
    let cancels = listed(CANCEL, &plain);
    let holds_up = listed(WITHDRAW, &plain) || waits && listed(STOP, &plain);
    let of_draft = cancels || holds_up || listed(ENDS_DRAFT, &whole);
    let nothing_but_cards = || match situation.open_cards.as_slice() {
        [] => UserRequest::Drop,
        _ => UserRequest::Talk(Talk::CardWaits),
    };
    match (always, of_draft, situation.draft.is_some()) {
        (true, _, true) | (_, true, true) => Some(UserRequest::Drop.into()),
        (true, _, false) => Some(nothing_but_cards().into()),
        (_, true, false) if holds_up && !situation.open_cards.is_empty() => Some(nothing_but_cards().into()),
        (_, true, false) if cancels => Some(match &situation.last_subject {
            Some(name) if situation.open_cards.is_empty() => {
                Understood::unclear("What should I cancel?", vec![format!("cancel “{name}”"), "never mind".to_owned()])
            }
            _ => nothing_but_cards().into(),
        }),
        _ => None,
    }
}

/// Returns true if the words let go in several ways at once: “nvm, scrap that”.
fn twice(words: &[Word]) -> bool {
    let parts: Vec<String> = words.split(|word| word.is(",")).map(lower).filter(|part| !part.is_empty()).collect();
    let lets_go = |part: String| listed(NEVER_MIND, &part) || listed(CANCEL, &part);
    parts.len() > 1 && parts.into_iter().all(lets_go)
}

/// Reads one of the answers that were offered.
pub(crate) fn offered(book: &Book, words: &[Word], situation: &Situation) -> Option<Understood> {
    let draft = situation.draft.as_ref()?;
    let asked = draft.asked.as_ref()?;
    let said = text(words).to_lowercase();
    let chosen = asked.options.iter().find(|option| option.to_lowercase() == said)?;
    let parts: Vec<Word> = super::words::words(chosen);
    Some(UserRequest::Update(Map::from_iter([(asked.parameter.clone(), book.value(&asked.parameter, &parts))])).into())
}

/// Reports a correction that fits no field.
pub(crate) fn unclear_correction(words: &[Word], situation: &Situation) -> Option<Understood> {
    let draft = situation.in_hand()?;
    let plain = plainly(words);
    let said = after(plain, "use|make it|change it to|change that to|rather|instead use").unwrap_or(plain);
    (draft.asked.is_none() && said.len() < words.len() && !said.is_empty()).then(|| Understood::all_but(&text(said)))
}

/// Reads “undo” and “try again”, perhaps with the change that is meant.
pub(crate) fn undo(words: &[Word], situation: &Situation) -> Option<Understood> {
    if let Some(which) = after(words, "undo|revert|take back|put back|roll back|rollback") {
        return Some(recent(which, situation, |change| change.undo.as_ref(), Talk::NothingToUndo));
    }
    let which = match words {
        [word] if word.any(&["try", "retry", "repeat", "ask"]) => &[], // “again” at the end is gone already
        _ => after(words, "try again|ask again|try it again|try that again|retry|repeat|try it|try that")?,
    };
    Some(recent(which, situation, |change| change.again.as_ref(), Talk::NothingToRepeat))
}

/// Returns the follow-up of the newest recent change that has one, or of the change that is named.
fn recent(
    which: &[Word],
    situation: &Situation,
    follow_up: impl Fn(&RecentChange) -> Option<&Draft>,
    nothing: Talk,
) -> Understood {
    const POINTING: &[&str] =
        &["", "that", "it", "this", "the last change", "the change", "last", "that change", "the last one"];
    let wanted = lower(which);
    let plain = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let fits =
        |change: &RecentChange| POINTING.contains(&wanted.as_str()) || plain(&change.what).contains(&plain(&wanted));
    let found = situation.recent_changes.iter().rev().filter(|change| fits(change)).find_map(follow_up);
    match found {
        Some(draft) => UserRequest::change(&draft.action, draft.params.clone()).into(),
        None => UserRequest::Talk(nothing).into(),
    }
}
