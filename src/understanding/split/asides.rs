//! What a message says beside its request: small talk before it (`thanks @bo! start X`), and a request that the next words
//! take back (`delete X? no, just archive it`).
//!
//! Both are removed before a message is read. Of a request that is taken back, only its subject is kept, for an “it” in
//! the correction.

use crate::{
    phrase_book::{MENTION_CONFIDENCE, PhraseBook},
    situation::Situation,
    slots::LIMITING,
    steps::{self, Segment, segments},
    talk,
    user_request::{Talk, UserRequest},
    words::{Word, after, are, skip, words, words_with},
};

/// Words that begin a correction.
const CORRECTS: &str = "actually|rather|better|on second thought|on second thoughts|scratch that|i mean|i meant|\
    correction";
/// Words that begin a correction if a pause follows.
const OBJECTS: &str = "no|nope|nah|wait|hold on|oops|whoops|sorry";
/// Words that may precede a correction.
const BEFORE: &str = "or|but|oh|well|hm|hmm|ah|um|,";
/// Words that may follow the ones that begin a correction.
const BESIDES: &str = ",|just|only|simply|please|instead|rather|better|let us";
/// What is left of a correction that only takes back.
const TAKES_BACK: &str = "|don't|do not|never mind|nevermind|forget it|leave it|leave it alone|keep it|let us not";
/// The maximum length of a sentence that is for another person, in words.
const MAX_ASIDE: usize = 5;

/// Returns the message without its asides, if it has any.
pub(crate) fn without(book: &PhraseBook, situation: &Situation) -> Option<String> {
    let asked = situation.draft.as_ref().and_then(|draft| draft.asked.as_ref());
    if asked.is_some_and(|asked| matches!(asked.parameter.as_str(), "name" | "description")) {
        return None; // the answer may be any text
    }
    let rest = without_small_talk(book, &situation.said, situation);
    corrected(book, rest.unwrap_or(&situation.said), situation).or_else(|| rest.map(str::to_owned))
}

/// Returns the message after a first sentence that is small talk, or that is for another person.
fn without_small_talk<'a>(book: &PhraseBook, said: &'a str, situation: &Situation) -> Option<&'a str> {
    let said = said.trim();
    let segments = segments(said, &situation.names);
    let ends = |pair: &&[Segment]| pair[1].clearly && said[pair[0].end..pair[1].start].contains(['.', '!', '\n']);
    let pair = segments.windows(2).find(ends).filter(|_| segments[0].start == 0)?;
    let (sentence, rest) = (&said[..pair[0].end], &said[pair[1].start..]);
    let (people, own): (Vec<&str>, Vec<&str>) =
        sentence.split_whitespace().partition(|word| word.starts_with('@') || word.starts_with("<@"));
    let is_called = sentence.split_whitespace().next_back().is_some_and(|last| people.contains(&last));
    let typed = own.join(" ");
    let own = words(&typed);
    let is_small = || {
        matches!(
            talk::talk(&own, &Situation::default()),
            Some(UserRequest::Talk(Talk::Greeting | Talk::Thanks | Talk::Remark))
        )
    };
    let is_for_another = || {
        let asks = |word: &Word| word.any(LIMITING) || word.any(&["stop", "wait", "hold", "do", "let"]);
        let is_short = own.len() <= MAX_ASIDE && !own.iter().any(asks);
        is_called && is_short && book.understand(&Situation { said: typed.clone(), ..situation.clone() }).is_nothing()
    };
    (!own.is_empty() && (is_small() || is_for_another())).then_some(rest)
}

/// Returns the message with a correction in place of the request that it corrects, which is the one before it.
fn corrected(book: &PhraseBook, said: &str, situation: &Situation) -> Option<String> {
    let said = said.trim();
    let typed = said.to_lowercase();
    if !CORRECTS.split('|').chain(OBJECTS.split('|')).any(|word| typed.contains(word)) {
        return None;
    }
    let segments = segments(said, &situation.names);
    let places = segments.windows(2).rev().filter(|pair| {
        // After “then”, it is a step of its own.
        let between = said[pair[0].end..pair[1].start].to_lowercase();
        !between.contains(char::is_alphabetic) || between.trim_matches([' ', ',']) == "and"
    });
    places.map(|pair| pair[1]).find_map(|segment| correction_at(book, said, segment, situation))
}

/// Returns the message with what begins at this segment in place of the request before it, if it corrects it.
fn correction_at(book: &PhraseBook, said: &str, segment: Segment, situation: &Situation) -> Option<String> {
    let typed = words_with(&said[segment.start..], &situation.names);
    let correction = after_objection(&typed)?;
    let with = |said: String| Situation { said, ..situation.clone() };
    let before = said[..segment.start].trim_end_matches(|c: char| c.is_whitespace() || ",;.?!–—-".contains(c));
    let before = before.strip_suffix(" or").or_else(|| before.strip_suffix(" but")).unwrap_or(before);
    let mut kept = steps::steps(book, &with(before.to_owned()));
    let retracted = kept.pop().unwrap_or_else(|| before.to_owned());
    let subject = match book.understand(&with(retracted.clone())).user_request {
        UserRequest::Change { action, params } => {
            let subject = book.about(&params);
            let is_new = subject.is_none() && book.makes_new(&action);
            if is_new && correction.iter().any(|word| word.is("it")) {
                return None; // “create X, actually start it too” needs X
            }
            subject
        }
        UserRequest::Unclear { options, .. } if !options.is_empty() => None,
        _ => return None, // a question is answered, whatever follows
    };
    if are(correction, TAKES_BACK) {
        // “Start X, no?” asks for agreement.
        return (kept.is_empty() && !said.ends_with('?')).then(|| format!("don't {retracted}"));
    }
    let mut sentences = correction.split_inclusive(|word| word.tail.contains(['.', ';', '!', '?']));
    if sentences.next().is_some_and(|first| first.iter().any(|word| word.any(&["also", "too"]))) {
        return None;
    }
    let correction = about(correction, subject.as_deref());
    let is_read = || {
        let found = book.understand(&with(correction.clone()));
        match found.user_request {
            UserRequest::Change { .. } | UserRequest::Drop | UserRequest::Talk(Talk::NothingDone(_)) => true,
            UserRequest::Read { .. } => found.confidence > MENTION_CONFIDENCE,
            UserRequest::Unclear { options, .. } => !options.is_empty(),
            _ => false,
        }
    };
    if steps::steps(book, &with(correction.clone())).is_empty() && !is_read() {
        return None;
    }
    kept.push(correction);
    Some(kept.join("\n"))
}

/// Returns the words after `no,`, `actually` and the like; `None` if the words do not begin so.
fn after_objection(words: &[Word]) -> Option<&[Word]> {
    let pauses = |rest: &[Word], left: &[Word]| {
        let last = &rest[rest.len() - left.len() - 1];
        let next = [CORRECTS, OBJECTS, "just|simply|please|instead|don't|do not"];
        !last.tail.is_empty()
            || left.first().is_none_or(|first| first.is(","))
            || next.iter().any(|next| after(left, next).is_some())
    };
    let mut rest = skip(words, BEFORE);
    let mut begins = false;
    loop {
        let objection = || after(rest, OBJECTS).filter(|left| pauses(rest, left));
        let besides = || after(rest, BESIDES).filter(|_| begins);
        if let Some(left) = after(rest, CORRECTS).or_else(objection) {
            begins = true;
            rest = left;
        } else if let Some(left) = besides() {
            rest = left;
        } else {
            return begins.then_some(rest);
        }
    }
}

/// Returns the words as a message in which “it” is the subject.
fn about(words: &[Word], subject: Option<&str>) -> String {
    let mut said = String::new();
    for word in words {
        let text = match subject {
            Some(subject) if word.is("it") => format!("“{subject}”"),
            _ if word.quoted => format!("“{}”", word.text),
            _ => word.text.clone(),
        };
        let is_joined = said.is_empty() || word.is(",") || ["'s", "’s"].contains(&word.text.as_str());
        said.push_str(if is_joined { "" } else { " " });
        said.push_str(&text);
        said.push_str(&word.tail);
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_correction_begins_with_an_objection_and_a_pause() {
        for (said, correction) in [
            ("no, just archive it", Some("archive it")),
            ("No just archive it", Some("archive it")),
            ("no! wait, don't", Some("don't")),
            ("or actually archive it", Some("archive it")),
            ("on second thought, please archive it", Some("archive it")),
            ("no", Some("")),
            ("no tags", None),
            ("wait until Friday", None),
            ("archive it", None),
            ("then archive it", None),
        ] {
            let typed = words(said);
            assert_eq!(after_objection(&typed).map(|rest| about(rest, None)), correction.map(str::to_owned), "{said}");
        }
        assert_eq!(
            about(&words("archive it, it's old. Show it!"), Some("A b")),
            "archive “A b”, “A b”'s old. Show “A b”!"
        );
    }

    #[test]
    fn small_talk_before_a_request_is_dropped() {
        for (said, request) in [
            ("thanks @bo! start A", Some("start A")),
            ("thanks! start A. stop B", Some("start A. stop B")),
            ("good catch, @bo. start A", Some("start A")),
            ("good catch @bo. start A", Some("start A")),
            ("got it\nstart A", Some("start A")),
            ("only with @bo. start A", None),
            ("wait for @bo. start A", None),
            ("ok. start A", None),
            ("stop B. start A", None),
            ("thanks @bo!", None),
        ] {
            assert_eq!(without_small_talk(&PhraseBook::default(), said, &Situation::default()), request, "{said}");
        }
    }
}
