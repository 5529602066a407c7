//! Words about any pending change: “never mind”, an offered answer, “undo”, “try again”.

use crate::{
    corrections::Correction,
    phrase_book::PhraseBook,
    phrase_list::PhraseList,
    phrases::{Stage, Utterance},
    situation::{Draft, RecentChange, Situation},
    stop_words::{StopRequest, stop_request, stop_request_in},
    talk,
    user_request::{Interpretation, Talk, UserRequest},
    words::{self, Word, after, are, lower, skip, strip_objection, text},
};

/// Phrases that drop any request.
static NEVER_MIND: PhraseList = PhraseList::new(
    "never mind|nevermind|forget it|forget that|forget about it|forget the whole thing|scrap the whole thing|\
    drop the whole thing|drop it|drop that|leave it|scratch that|\
    scrap that|scrap it|actually forget it|nvm|not now|don't bother",
);

/// Phrases that refuse what was shown or asked last.
static REFUSAL: PhraseList = PhraseList::new(
    "no|nope|nah|nay|naw|no no|no no no|no way|no thanks|no thank you|no please|please no|absolutely not|certainly not|\
    of course not|don't|not|please don't|us not|let us not|let's not|lets not|leave it be|hold off|\
    hold off on that|hold off on it|not so fast|abort it|abort that|scrap|veto|veto it",
);

/// The beginnings of a message that refuses, and possibly says what to do instead.
const REFUSES: &str = "no|nope|nah|nay|naw|don't|not|never|us not|let's not|lets not|hold off|rather not|\
    better not|i'd rather not|i would rather not|i don't want|i dont want|we don't want|i no longer want|\
    forget it|forget that|drop it|drop that|scrap it|scrap that|leave it|wrong";

/// Phrases that begin like a refusal, and are none.
const REFUSES_NOT: &str =
    "no problem|no worries|no rush|no hurry|no idea|no doubt|no wonder|not bad|not sure|never mind that";

/// Phrases that ask to undo what was done or shown last.
static UNDO: PhraseList = PhraseList::new(
    "undo|undo it|undo that|undo this|undo that please|revert|revert it|revert that|revert this|undo my request|\
    undo that request|undo the last one|undo that one",
);

/// Phrases that drop a request, but may also mean to cancel the last subject of the thread.
static CANCEL: PhraseList = PhraseList::new("cancel|cancel that|cancel it|cancel this");

/// Phrases that can only mean to drop a request.
static WITHDRAW: PhraseList = PhraseList::new(
    "cancel the request|cancel my request|cancel this request|cancel that request|cancel the card|\
    cancel this card|withdraw it|withdraw that|withdraw this|withdraw the request|withdraw my request|\
    withdraw this request|take it back|take that back|call it off|withdraw|withdraw the card|\
    withdraw this card|close the card|close this card|i changed my mind|i've changed my mind|\
    i have changed my mind|changed my mind|we changed our mind|don't|not|don't do it|don't do that|\
    don't do this|not do it|not do that|better not|rather not|i'd rather not",
);

/// Phrases that drop a request only after “wait” and the like. Otherwise they ask to stop the last
/// subject of the thread.
static STOP: PhraseList = PhraseList::new("stop that|stop this|stop it");

/// Further phrases that end the questions about a change.
static ENDS_DRAFT: PhraseList =
    PhraseList::new("stop|stop it|stop that|abort|quit|exit|no thanks|no thank you|none|none of them|no|delete it");

/// Returns true if a message as a whole drops its author's request: “never mind”, “hold on, cancel
/// that please”. A question does so only in the form of a request: “can you cancel that?”
pub fn is_cancellation(said: &str) -> bool {
    let all = words::words(said);
    is_cancellation_in(said, &all, without_hesitation(words::strip_politeness(&all)))
}

/// Returns true if [`is_cancellation`] or [`forbidden_change`] holds. The message is read once for both.
pub fn withdraws(said: &str) -> bool {
    let all = words::words(said);
    let plain = without_hesitation(words::strip_politeness(&all));
    is_cancellation_in(said, &all, plain) || forbidden_change_in(said, plain.1).is_some()
}

/// Returns true if a message drops its author's request. `all` are its words, `plain` those without politeness and
/// hesitation.
fn is_cancellation_in(said: &str, all: &[Word], plain: (bool, &[Word])) -> bool {
    if is_mere_question(said, all) || all.iter().any(|word| word.quoted) {
        return false;
    }
    let (hesitates, plain) = (plain.0, lower(plain.1));
    [&NEVER_MIND, &CANCEL, &WITHDRAW].iter().any(|list| list.contains(&plain)) || hesitates && STOP.contains(&plain)
}

/// Returns true if a message is a question, and not a request in the form of one: “can you cancel
/// that?” `all` are its words.
pub(crate) fn is_mere_question(said: &str, all: &[Word]) -> bool {
    let is_request = |pair: &[Word]| pair[0].any(&["can", "could", "will"]) && pair[1].any(&["you", "u"]);
    said.trim_end().ends_with('?') && !all.windows(2).any(is_request)
}

/// Returns true if a message as a whole asks to forget what was said last: “forget it”. It drops a request, unless the
/// last answer was about something that can be forgotten.
pub fn says_forget(said: &str) -> bool {
    static FORGET: PhraseList = PhraseList::new(
        "forget it|forget that|forget this|forget them|forget those|forget about it|forget about that|\
         forget it all|forget all of it|forget all of that|forget all of them|forget all that|actually forget it|\
         actually forget that",
    );
    let all = words::words(said);
    !said.trim_end().ends_with('?') && FORGET.contains(&lower(words::strip_politeness(&all)))
}

/// Returns true if a message as a whole drops whatever was said last, and names nothing: “hmm, never mind”.
pub fn drops_any(said: &str) -> bool {
    let all = words::words(said);
    let (_, rest) = without_hesitation(words::strip_politeness(&all));
    !said.trim_end().ends_with('?') && (NEVER_MIND.contains(&lower(rest)) || is_repeated_cancellation(rest))
}

/// Returns true if a message as a whole refuses what was shown last: “no”, “actually no”, “hm, no thanks”.
pub fn refuses(said: &str) -> bool {
    let all = words::words(said);
    let plain = words::strip_politeness(&all);
    let is_whole = |words: &[Word]| REFUSAL.contains(&lower(words));
    let is_plain = !said.trim_end().ends_with('?') && !all.iter().any(|word| word.quoted);
    is_plain && (is_whole(plain) || is_whole(without_hesitation(plain).1))
}

/// Returns true if a message as a whole asks to undo what was done or shown last: “undo that”.
pub fn says_undo(said: &str) -> bool {
    let all = words::words(said);
    let (_, rest) = without_hesitation(words::strip_politeness(&all));
    !is_mere_question(said, &all) && !all.iter().any(|word| word.quoted) && UNDO.contains(&lower(rest))
}

/// Returns true if a person would take a message for “no”: it refuses, drops, stops or postpones something, or begins
/// so, as “no, 60/40” does. In doubt it is one, since all that follows is that a card needs a press of its button.
pub fn declines(said: &str) -> bool {
    says_no(said, true)
}

/// Returns true if [`declines`] holds for a message as a whole, and not only for its beginning.
pub fn is_no(said: &str) -> bool {
    says_no(said, false)
}

fn says_no(said: &str, or_begins: bool) -> bool {
    let all = words::words(said);
    if is_mere_question(said, &all) {
        return false;
    }
    let whole = words::strip_politeness(&all);
    static OPENERS: PhraseList = PhraseList::new("actually|well|oh|hm|sorry|,");
    let opened = OPENERS.after(whole).unwrap_or(whole);
    let rest = without_hesitation(whole).1;
    let is_one = |words: &[Word]| {
        let plain = lower(words);
        or_begins && after(words, REFUSES).is_some()
            || [&REFUSAL, &NEVER_MIND, &CANCEL, &WITHDRAW, &STOP, &UNDO].iter().any(|list| list.contains(&plain))
            || talk::is_postponement(&plain)
            || talk::is_thumb_down(&plain)
    };
    let begins_otherwise = after(whole, REFUSES_NOT).is_some();
    !begins_otherwise
        && (is_one(whole)
            || is_one(opened)
            || is_one(rest)
            || is_repeated_cancellation(rest)
            || stop_request_in(&all).is_some())
}

/// Returns true if a message as a whole ends the questions about a change: “stop that”, “no
/// thanks”, “wait, cancel everything”.
pub fn ends_draft(said: &str) -> bool {
    let all = words::words(said);
    ENDS_DRAFT.contains(&lower(words::strip_politeness(&all))) || stop_request(said) == Some(StopRequest::Everything)
}

/// A change that a person asks not to make: “don't start it”, “no, do not delete Math Hints”.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForbiddenChange {
    /// The verb.
    pub verb: String,
    /// The name of the thing; `None` for “it” and the like.
    pub name: Option<String>,
}

/// Returns the change that a message as a whole forbids.
pub fn forbidden_change(said: &str) -> Option<ForbiddenChange> {
    let all = words::words(said);
    forbidden_change_in(said, without_hesitation(words::strip_politeness(&all)).1)
}

/// Returns the change that a message forbids. `plain` are its words without politeness and hesitation.
fn forbidden_change_in(said: &str, plain: &[Word]) -> Option<ForbiddenChange> {
    const VERBS: &str = "start stop pause resume delete archive schedule create change rename move";
    if said.trim_end().ends_with('?') {
        return None;
    }
    let (verb, about) = after(plain, "don't|not|never")?.split_first()?;
    if about.iter().any(|word| word.is(",") || word.is("but")) {
        return None; // “don't pause it, stop it” asks for something
    }
    let about = skip(about, "the");
    let name = match lower(about).as_str() {
        "" | "it" | "that" | "this" | "that one" | "this one" => None,
        _ => Some(text(about)),
    };
    verb.among(VERBS).then(|| ForbiddenChange { verb: verb.lower.clone(), name })
}

/// Returns true if a message revises an earlier request: “no, Running Test”, “actually …”, “…
/// instead”, “… instead of Math Hints”.
pub fn is_retraction(said: &str) -> bool {
    let all = words::words(said);
    let words = words::strip_politeness(&all);
    let in_place = |at: usize| after(&words[at..], "instead of|rather than").is_some();
    Correction::of(words).objects
        || after(words, "hold on|hang on").is_some()
        || words.last().is_some_and(|last| last.is("instead"))
        || (1..words.len()).any(in_place)
}

/// Returns the words after “hold on” and the like, and true if there were any such words.
fn without_hesitation(words: &[Word]) -> (bool, &[Word]) {
    static OPENINGS: PhraseList = PhraseList::new(
        "hold on|hang on|wait a moment|wait a minute|wait a second|wait a sec|wait|one moment|\
        just a moment|stop ,|oh no|oh|oops|sorry|no|nah|nope|actually|my mistake|on second thought|on second thoughts|,",
    );
    let mut rest = words;
    while let Some(left) = OPENINGS.after(rest).filter(|left| !left.is_empty()) {
        rest = words::strip_politeness(left);
    }
    (rest.len() < words.len(), rest)
}

/// Returns true if the words only say that everything stays: “leave it as is for now”.
fn keeps_everything(words: &[Word]) -> bool {
    const STAYS: &str = "leave it|leave that|leave them|leave everything|keep it|keep that|keep them|keep everything|let it|\
        it can|it stays|it is fine|it is ok|all good|all fine";
    const AS: &str = "|as it is|as is|as they are|alone|be|running|run|going|on|off|stay|stay as it is|stopped|paused|unchanged|\
        the way it is|like that|like this|for now|then|as is for now|as it is for now|running for now|then as it is";
    after(words, STAYS).is_some_and(|rest| are(rest, AS))
}

/// Returns the words before an assurance that everything stays: “forget it, leave it running”.
fn without_reassurance(words: &[Word]) -> &[Word] {
    let ends = |at: &usize| words[*at].any(&[",", "and"]) || words[*at - 1].tail.contains(['.', '!', ';']);
    match (1..words.len()).find(ends) {
        Some(at) if keeps_everything(skip(&words[at..], ",|and|just|we")) => &words[..at],
        _ => words,
    }
}

/// Reads “never mind”. If only cards are open, the reply says how to decide them.
pub(crate) fn cancellation(Utterance { words, situation, .. }: Utterance<'_>) -> Option<Interpretation> {
    let (hesitates, rest) = without_hesitation(words);
    let rest = without_reassurance(rest);
    let (whole, plain) = (lower(words), lower(rest));
    let drops_any =
        NEVER_MIND.contains(&plain) || is_repeated_cancellation(rest) || hesitates && keeps_everything(rest);
    let cancels = CANCEL.contains(&plain);
    let withdraws = WITHDRAW.contains(&plain) || hesitates && STOP.contains(&plain);
    let stops = stop_request_in(words) == Some(StopRequest::Everything);
    let drops_draft = cancels || withdraws || stops || ENDS_DRAFT.contains(&whole) || REFUSAL.contains(&plain);
    let drop_or_explain_cards = || match situation.open_cards.as_slice() {
        [] => UserRequest::Drop,
        _ => UserRequest::Talk(Talk::CardWaits),
    };
    match (drops_any, drops_draft, situation.draft.is_some()) {
        (true, _, true) | (_, true, true) => Some(UserRequest::Drop.into()),
        (true, _, false) => Some(drop_or_explain_cards().into()),
        (_, true, false) if withdraws && !situation.open_cards.is_empty() => Some(drop_or_explain_cards().into()),
        (_, true, false) if cancels => Some(match &situation.last_subject {
            Some(name) if situation.open_cards.is_empty() => Interpretation::unclear(
                "What should I cancel?",
                vec![format!("cancel “{name}”"), "never mind".to_owned()],
            ),
            _ => drop_or_explain_cards().into(),
        }),
        _ => None,
    }
}

/// Reads “no, not yet” while a card is open and no question is: it decides nothing, and the reply says how to decide.
/// “No, tomorrow” is not read: it corrects a time.
pub(crate) fn postponement(Utterance { words, situation, .. }: Utterance<'_>) -> Option<Interpretation> {
    let rest = strip_objection(words);
    let plain = lower(rest);
    let waits = situation.draft.is_none() && !situation.open_cards.is_empty();
    let objects = rest.len() < words.len() && plain != "tomorrow";
    (waits && objects && talk::is_postponement(&plain)).then(|| UserRequest::Talk(Talk::CardWaits).into())
}

/// Reads “both” while several cards are open and nothing else can be meant: a card is decided by its buttons.
pub(crate) fn both_cards(Utterance { words, situation, .. }: Utterance<'_>) -> Option<Interpretation> {
    const BOTH: &str = "both|both of them|both cards|yes both|approve both|all of them|approve all";
    let waits = situation.draft.is_none() && situation.open_cards.len() > 1;
    (waits && are(words, BOTH)).then(|| UserRequest::Talk(Talk::CardWaits).into())
}

/// Returns true if the words are several phrases that drop a request: “nvm, scrap that”.
fn is_repeated_cancellation(words: &[Word]) -> bool {
    let parts: Vec<String> = words.split(|word| word.is(",")).map(lower).filter(|part| !part.is_empty()).collect();
    let cancels = |part: String| NEVER_MIND.contains(&part) || CANCEL.contains(&part);
    parts.len() > 1 && parts.into_iter().all(cancels)
}

/// Reads a question about the change on an open card: “does that delete the data too?”, “what happens if I approve it?”.
pub(crate) fn about_card(Utterance { words, situation, .. }: Utterance<'_>) -> Option<Interpretation> {
    const ASKS: &str = "does it|does that|does this|does the card|does this card|will it|will that|will this|would it|would that|\
        would this|is it going to|is that going to|is this going to|could it|could that|do they|will they|can it|can that|\
        can this|do we|will we|do i|will i|what does it|what does that|what does this|what will it|what will that|\
        what would it|what would that|what else does it|what else does that|is it|is that|is this|are they|what happens|\
        what will happen|what would happen|will|would|does|do|could|can|are|is|it|that|this";
    const VERBS: &str = "delete deletes deleted remove removed erase erased lose lost keep kept wipe affect \
        affected change changed touch alter modify overwrite reset notify email tell send undo undone revert \
        reversed reversible irreversible permanent final do happens happen end stop cost enroll enrolled assign \
        include dangerous safe risky notice noticed see";
    if situation.open_cards.is_empty() || situation.draft.is_some() {
        return None;
    }
    // “Can it be undone?” has lost its “can” as politeness.
    let rest = after(words, ASKS)?;
    let names_thing = words.iter().any(|word| word.quoted);
    let asks = situation.said.trim_end().ends_with('?') || after(words, "what").is_some();
    let is_about_effect = after(words, "what happens|what will happen|what would happen").is_some()
        || rest.iter().take(5).any(|word| word.among(VERBS));
    (asks && !names_thing && is_about_effect).then(|| UserRequest::Talk(Talk::AboutCard).into())
}

/// Reads one of the answers that were offered.
pub(crate) fn offered_answer(
    book: &PhraseBook,
    Utterance { words, situation, .. }: Utterance<'_>,
) -> Option<Interpretation> {
    let asked = situation.draft.as_ref()?.asked.as_ref()?;
    let said = text(words).to_lowercase();
    let chosen = asked.options.iter().find(|option| option.to_lowercase() == said)?;
    let parts: Vec<Word> = crate::words::words(chosen);
    let owner = book.in_charge(situation).find(|(_, is_owner)| *is_owner);
    let read = owner.and_then(|(phrases, _)| phrases.read(Stage::OfferedAnswer, Utterance::of(&parts, situation)));
    Some(read.unwrap_or_else(|| Interpretation::update(&asked.parameter, text(&parts))))
}

/// Reports a correction that matches no parameter.
pub(crate) fn unclear_correction(Utterance { words, situation, .. }: Utterance<'_>) -> Option<Interpretation> {
    let draft = situation.in_hand()?;
    let found = Correction::of(words);
    (draft.asked.is_none() && (found.objects || found.makes) && !found.value.is_empty())
        .then(|| Interpretation::partly_unclear(&text(found.value)))
}

/// Reads “undo” and “try again”, with or without the change that is meant.
pub(crate) fn undo_or_retry(Utterance { words, situation, .. }: Utterance<'_>) -> Option<Interpretation> {
    if let Some(which) = after(words, "undo|revert|take back|put back|roll back|rollback") {
        if let (true, [_, ..]) = (points(which), situation.open_cards.as_slice()) {
            return Some(card_or_change(situation));
        }
        return Some(follow_up_of_recent(which, situation, |change| change.undo.as_ref(), Talk::NothingToUndo));
    }
    let which = match words {
        [word] if word.any(&["try", "retry", "repeat", "ask"]) => &[], // “again” at the end was removed before
        _ => after(words, "try again|ask again|try it again|try that again|retry|repeat|try it|try that")?,
    };
    Some(follow_up_of_recent(which, situation, |change| change.again.as_ref(), Talk::NothingToRepeat))
}

/// Returns true if these words name no change: “that”, “the last one”.
fn points(which: &[Word]) -> bool {
    const POINTING: &str = "|that|it|this|the last change|the change|last|that change|the last one|the last|the last thing|last thing|that thing|\
        my last change|the last request|the change you made|what you did|what you just did|what i did|what we did|what was done";
    are(which, POINTING)
}

/// Asks whether “undo that” is about an open card or about a change that was made. Without such a change, only the card
/// can be meant, about which people decide.
fn card_or_change(situation: &Situation) -> Interpretation {
    let made = situation.recent_changes.iter().rev().find(|change| change.undo.is_some());
    let (Some(made), [.., newest]) = (made, situation.open_cards.as_slice()) else {
        return UserRequest::Talk(Talk::CardWaits).into();
    };
    let question = format!(
        "There's an open card ({}) and a change that was made earlier ({}). Which one should I undo?",
        newest.title.trim_end_matches('?'),
        made.what.trim_end_matches('.')
    );
    Interpretation::unclear(question, vec!["withdraw the card".to_owned(), format!("undo {}", made.what)])
}

/// Returns the follow-up of the newest recent change that has one, or of the change that is named.
fn follow_up_of_recent(
    which: &[Word],
    situation: &Situation,
    follow_up: impl Fn(&RecentChange) -> Option<&Draft>,
    nothing: Talk,
) -> Interpretation {
    let wanted = lower(which);
    let plain = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let fits = |change: &RecentChange| points(which) || plain(&change.what).contains(&plain(&wanted));
    let found = situation.recent_changes.iter().rev().filter(|change| fits(change)).find_map(follow_up);
    match found {
        Some(draft) => UserRequest::change(&draft.action, draft.params.clone()).into(),
        None => UserRequest::Talk(nothing).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_takes_for_no_is_one() {
        for said in [
            "no",
            "No!",
            "nope",
            "nah",
            "actually no",
            "hm, no",
            "no no",
            "no, actually",
            "no thanks",
            "no way",
            "no, 70/30",
            "no, at 9:00",
            "don't",
            "please don’t",
            "do not do it",
            "don't start it",
            "let's not",
            "let us not do that",
            "rather not",
            "I'd rather not",
            "not yet",
            "not now, please",
            "no, not yet",
            "later",
            "wait",
            "hold on",
            "hold off on that",
            "stop",
            "stop it",
            "wait, stop",
            "cancel",
            "cancel that",
            "can you cancel that?",
            "never mind",
            "nvm",
            "forget it",
            "forget it, we will do that tomorrow",
            "drop it",
            "scrap that",
            "withdraw it",
            "I changed my mind",
            "undo",
            "undo that",
            "I don't want that",
            "wrong one",
            "nvm, scrap that",
            "👎",
        ] {
            assert!(declines(said), "{said}");
        }
        for said in [
            "yes",
            "ok, go ahead",
            "start Math Hints",
            "stop Math Hints",
            "cancel Math Hints",
            "no problem",
            "no worries, go ahead",
            "not sure",
            "who said no?",
            "should we not do it?",
            "why not?",
            "now",
            "make it 50",
            "show it again",
            "nobody objects",
            "note that it is running",
            "",
        ] {
            assert!(!declines(said), "{said}");
        }
        for said in ["no", "not yet", "hold on", "never mind", "wait, stop", "undo that"] {
            assert!(is_no(said), "{said}");
        }
        for said in ["no, 70/30", "no, looks right", "don't we have enough data", "not sure", "start it"] {
            assert!(!is_no(said), "{said}");
        }
    }

    #[test]
    fn a_refusal_is_a_whole_message() {
        for said in ["no", "Nah.", "actually, no", "hm, no thanks", "please don't", "let's not", "no no no"] {
            assert!(refuses(said), "{said}");
        }
        for said in ["no, at 9:00", "no, use mathstream", "no?", "don't start Math Hints", "“no”", "not Math Hints"]
        {
            assert!(!refuses(said), "{said}");
        }
        for said in ["undo", "undo that", "please undo it", "wait, undo that", "can you undo that?"] {
            assert!(says_undo(said), "{said}");
        }
        for said in ["undo “that”", "undo the rename", "can it be undone?", "can I undo that?"] {
            assert!(!says_undo(said), "{said}");
        }
    }
}
