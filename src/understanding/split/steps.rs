//! Several requests in one message: `start Math Hints and then show it`, a numbered list, one
//! request per line.
//!
//! A message is divided only if every part is understood as a request of its own, so that names with
//! “and”, lists of conditions and several weights stay whole. After a mere “and” or comma, the next
//! part must begin in lower case: `show Stop and Go` contains one name.

use crate::{
    conditions,
    lexicon::Mention,
    phrase_book::{MAX_WORDS, MENTION_CONFIDENCE, PhraseBook},
    phrases::Utterance,
    situation::{Situation, Topic},
    slots::{Slot, sentence_parts},
    user_request::{Interpretation, UserRequest},
    words::{self, Word, after, lower, words},
};

/// The maximum number of segments of a message. A message with more is not divided.
const MAX_SEGMENTS: usize = 24;
/// The minimum confidence for a part to count as a request.
const MIN_CONFIDENCE: f64 = 0.7;

/// A byte range of a message. `clearly` is true if the divider before it is unambiguous.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) clearly: bool,
}

/// Returns the requests in a message, in order, if there are several; otherwise nothing.
pub(crate) fn steps(book: &PhraseBook, situation: &Situation) -> Vec<String> {
    let read = || book.resolved(situation).map_or_else(|_| Vec::new(), |resolved| steps_of(book, &resolved));
    book.recall(situation, |known| &mut known.steps, read)
}

/// Returns the requests in a message without references.
fn steps_of(book: &PhraseBook, situation: &Situation) -> Vec<String> {
    let said = situation.said.trim();
    let typed = book.words(said, &situation.names);
    if typed.len() > MAX_WORDS {
        return Vec::new();
    }
    let first = lower(&typed);
    let follows_up = ["undo", "try again", "ask again", "retry"].iter().any(|word| first.starts_with(word));
    let asked = situation.draft.as_ref().and_then(|draft| draft.asked.as_ref());
    let anything_goes = asked.is_some_and(|asked| matches!(asked.parameter.as_str(), "name" | "description"));
    let whole = Utterance::whole(&typed, situation);
    if let Some(requests) = several(book, whole).or_else(|| book.combined_requests(whole)) {
        return requests;
    }
    let segments = segments(said, &situation.names);
    if segments.len() < 2 || follows_up || anything_goes {
        return Vec::new();
    }
    let found = divide(book, said, &segments, situation).unwrap_or_default();
    let mut requests: Vec<Interpretation> = found.iter().map(|part| interpret(book, part, situation, false)).collect();
    requests.dedup();
    if requests.len() < 2 {
        return Vec::new();
    }
    found.into_iter().flat_map(|part| combined(book, &part, situation).unwrap_or_else(|| vec![part])).collect()
}

/// Returns the parts that are not understood of a message in which at least as many others are requests. The parts are
/// those between unambiguous dividers, and conditions with their requests.
pub(crate) fn not_understood(book: &PhraseBook, situation: &Situation) -> Vec<String> {
    let said = situation.said.trim();
    if words(said).len() > MAX_WORDS {
        return Vec::new();
    }
    let segments = segments(said, &situation.names);
    let ended = |start: usize| segments.iter().map(|segment| segment.end).filter(|end| *end <= start).max();
    let is_sequence = |start: usize| {
        let between = said[ended(start).unwrap_or(0)..start].to_lowercase();
        between.contains("then") || between.contains([';', '\n'])
    };
    let begins = |start: &usize| {
        *start == segments[0].start || is_sequence(*start) || conditions::split(&said[*start..]).is_before()
    };
    let starts: Vec<usize> = segments.iter().map(|segment| segment.start).filter(begins).collect();
    let ends = starts.iter().skip(1).map(|next| ended(*next)).chain([ended(said.len())]);
    let parts = starts.iter().zip(ends).filter_map(|(start, end)| said.get(*start..end?));
    let is_read = |(nth, part): &(usize, &str)| {
        let Interpretation { user_request, confidence, .. } = interpret(book, part, situation, *nth == 0);
        let is_unclear = matches!(user_request, UserRequest::Unclear { .. } | UserRequest::Unsupported);
        let alone = Situation { said: conditions::split(part).request.to_owned(), ..situation.clone() };
        (!is_unclear && confidence >= MIN_CONFIDENCE) || !steps(book, &alone).is_empty()
    };
    let (read, unread): (Vec<_>, Vec<_>) = parts.enumerate().partition(is_read);
    match read.len() >= unread.len() {
        true => unread.into_iter().map(|(_, part)| part.to_owned()).collect(),
        false => Vec::new(),
    }
}

/// Returns the requests that a part of a message combines in one sentence.
fn combined(book: &PhraseBook, part: &str, situation: &Situation) -> Option<Vec<String>> {
    let typed = book.words(part, &situation.names);
    let is_question = part.trim_end().ends_with('?');
    book.combined_requests(Utterance { is_question, ..Utterance::whole(&typed, situation) })
}

/// Reads `show A and B` as one request for each name.
fn several(book: &PhraseBook, utterance: Utterance<'_>) -> Option<Vec<String>> {
    const SHOW: &str = "show me|show us|show|tell me about|display|describe|details of";
    let words = after(utterance.words, SHOW)?;
    let parts = book.phrases().next().map(|phrases| sentence_parts(Utterance { words, ..utterance }, phrases, ""))?;
    let [only] = parts.as_slice() else { return None };
    match &only.slot {
        Some(Slot::Subjects(names)) if names.len() > 1 => {
            Some(names.iter().map(|name| format!("show “{name}”")).collect())
        }
        _ => None,
    }
}

/// Returns the division with the largest number of parts that are all requests.
fn divide(book: &PhraseBook, said: &str, segments: &[Segment], situation: &Situation) -> Option<Vec<String>> {
    let count = segments.len();
    let mut best: Vec<Option<Vec<String>>> = vec![None; count + 1];
    best[count] = Some(Vec::new());
    for from in (0..count).rev() {
        for to in (from + 1..=count).rev() {
            let Some(rest) = &best[to] else { continue };
            let part = said[segments[from].start..segments[to - 1].end].trim();
            // A condition begins a request of its own, so it must not be inside a part.
            let begins_condition =
                |segment: &Segment| conditions::split(&said[segment.start..segments[count - 1].end]).is_before();
            if segments[from + 1..to].iter().any(begins_condition) {
                continue;
            }
            let more = best[from].as_ref().is_none_or(|known| known.len() < rest.len() + 1);
            if more && is_request(book, part, from, said, segments, situation) {
                best[from] = Some(std::iter::once(part.to_owned()).chain(rest.iter().cloned()).collect());
            }
        }
    }
    best.swap_remove(0)
}

/// Returns true if this part, which begins at the segment `from`, is a request on its own.
fn is_request(
    book: &PhraseBook,
    part: &str,
    from: usize,
    said: &str,
    segments: &[Segment],
    situation: &Situation,
) -> bool {
    let segment = segments[from];
    let typed = words(part);
    let clearly = from == 0 || segment.clearly;
    let lower_case = part.chars().next().is_some_and(|first| !first.is_uppercase());
    if !clearly && (!lower_case || is_listed(book, &typed, &said[..segment.end], situation)) {
        return false;
    }
    // “Show it, in detail”: a continuation.
    if from > 0 && typed.first().is_some_and(|first| first.any(&["in", "as", "with", "for", "at", "on", "by"])) {
        return false;
    }
    // “Create X, it should run until Friday”: a part of its description.
    const DESCRIBES: &str =
        "it should|it shall|it will|it must|it runs|it starts|it ends|it begins|that should|which should";
    const CREATES: &str = "create|make|set|build|add|new|design|draft";
    let creates = || after(words::strip_politeness(&words(said)), CREATES).is_some();
    if !clearly && after(&typed, DESCRIBES).is_some() && creates() {
        return false;
    }
    if from > 0 && is_pair(&typed, &said[..segment.start]) {
        return false;
    }
    if combined(book, part, situation).is_some() {
        return true;
    }
    let Interpretation { user_request, confidence, .. } = interpret(book, part, situation, from == 0);
    let sure = confidence >= MIN_CONFIDENCE;
    match user_request {
        UserRequest::Read { .. } | UserRequest::Term { .. } => sure && confidence > MENTION_CONFIDENCE,
        UserRequest::Change { .. } => sure && typed.len() > 1,
        UserRequest::Update(_) => sure && from == 0,
        UserRequest::Unclear { options, .. } => !options.is_empty(),
        UserRequest::Talk(_) | UserRequest::Drop | UserRequest::Unsupported => false,
    }
}

/// Returns the request of a part. Later parts may refer back with “it”, and do not answer an open
/// question.
fn interpret(book: &PhraseBook, part: &str, situation: &Situation, first: bool) -> Interpretation {
    let said = if first { part } else { conditions::split(part).request }.to_owned();
    let topic = situation.topic.as_ref();
    book.understand(&match first {
        true => Situation { said, ..situation.clone() },
        false => Situation {
            said,
            last_subject: Some(situation.last_subject.clone().unwrap_or_else(|| "it".to_owned())),
            topic: topic.map(|topic| Topic { capability: topic.capability.clone(), ..Topic::default() }),
            recent_changes: situation.recent_changes.clone(),
            names: situation.names.clone(),
            today: situation.today.clone(),
            ..Situation::default()
        },
    })
}

/// Returns true if this part continues a pair such as “up to 3 starts and 2 stops”, which is a
/// single request.
fn is_pair(part: &[Word], before: &str) -> bool {
    const STARTS: &[&str] = &["starts", "start", "starting"];
    const STOPS: &[&str] = &["stops", "stop", "stopping"];
    let before = words(before);
    let last = before.iter().rev().find(|word| !word.any(&["and", ","]));
    match (last, part.first()) {
        (Some(last), Some(next)) => (last.any(STARTS) && next.any(STOPS)) || (last.any(STOPS) && next.any(STARTS)),
        _ => false,
    }
}

/// Returns true if this part is more likely the next item of a list, or the end of a description.
fn is_listed(book: &PhraseBook, part: &[Word], before: &str, situation: &Situation) -> bool {
    let before = words(before);
    let of_text = before.iter().any(|word| word.any(&["description", "described"]));
    let of_list = before.iter().any(|word| book.phrases().any(|phrases| word.any(phrases.vocabulary().lists)))
        || situation.draft.as_ref().and_then(|draft| draft.asked.as_ref()).is_some();
    let points_back = part.iter().any(|word| word.any(&["it", "its", "that", "this"]));
    (of_text || of_list) && !points_back
}

/// Phrases that unambiguously divide requests.
const CLEAR_DIVIDERS: &str = "and then|and after that|after that|and afterwards|afterwards|and finally|finally|\
    and lastly|lastly|and next|next|then|and also";
/// Phrases that may open one of several requests.
const OPENINGS: &str = "first of all|first|firstly|second|secondly|third|thirdly|and then|then|and also|also|and|\
    next|finally|lastly|after that|afterwards";

/// Splits a message at every possible divider: ends of lines and sentences, semicolons, commas,
/// list numbers, “then” and “and”.
pub(crate) fn segments(said: &str, names: &[Mention]) -> Vec<Segment> {
    let mut found: Vec<Segment> = Vec::new();
    let (mut start, mut clearly) = (0, true);
    let mut at = 0;
    let mut push = |start: usize, end: usize, clearly: bool| {
        let begin = opening(said, start, end);
        let text = said[begin..end].trim_matches(|c: char| c.is_whitespace() || c == ',' || c == ';');
        if text.is_empty() {
            return clearly; // this divider belongs to the next segment
        }
        let begin = begin + said[begin..end].find(text).unwrap_or(0);
        found.push(Segment { start: begin, end: begin + text.len(), clearly });
        false
    };
    let mut numbers = 0;
    while at < said.len() {
        let rest = &said[at..];
        let begins = at == 0 || said[..at].ends_with(|c: char| !c.is_alphanumeric());
        let name =
            names.iter().find(|name| name.subject && rest.starts_with(name.said.as_str()) && !name.said.is_empty());
        if let Some(name) = name.filter(|_| begins) {
            at += name.said.len();
            continue;
        }
        let quoted = rest.chars().next().and_then(|first| words::quoted(first, rest)).filter(|_| begins);
        if let Some((_, after)) = quoted {
            at = said.len() - after.len();
            continue;
        }
        let Some((length, divides_clearly, next_number)) = divider(said, at, numbers) else {
            at += rest.chars().next().map_or(1, char::len_utf8);
            continue;
        };
        numbers = next_number;
        let carried = push(start, at, clearly);
        clearly = divides_clearly || carried;
        at += length;
        start = at;
    }
    push(start, said.len(), clearly);
    // A greeting is not a request.
    const GREETINGS: [&str; 6] = ["hi", "hello", "hey", "hiya", "good morning", "hi there"];
    if found.len() > 1 && GREETINGS.contains(&said[found[0].start..found[0].end].to_lowercase().as_str()) {
        found.remove(0);
    }
    // “Please do the following:” announces the rest.
    if found.len() > 2 && said[found[0].start..found[0].end].ends_with(':') {
        found.remove(0);
    }
    if found.len() > MAX_SEGMENTS { Vec::new() } else { found }
}

/// Returns the length of the divider at this place in bytes, true if it is unambiguous, and the
/// last list number so far.
fn divider(said: &str, at: usize, numbers: u32) -> Option<(usize, bool, u32)> {
    let rest = &said[at..];
    let first = rest.chars().next()?;
    let begins_word = at == 0 || said[..at].ends_with(|c: char| c.is_whitespace() || c == ',');
    if matches!(first, '\n' | ';') {
        return Some((1, true, numbers));
    }
    if matches!(first, '.' | '!' | '?') && rest[1..].starts_with(char::is_whitespace) {
        return Some((1, true, numbers));
    }
    if begins_word && first.is_ascii_digit() {
        let number = format!("{}", numbers + 1);
        let after = rest.strip_prefix(&number)?;
        let mark = after.starts_with(['.', ')', ':']) && after[1..].starts_with(char::is_whitespace);
        return mark.then_some((number.len() + 1, true, numbers + 1));
    }
    if begins_word && matches!(first, '-' | '*' | '•') && rest[first.len_utf8()..].starts_with(' ') {
        let of_line = said[..at].trim_end_matches([' ', '\t']);
        return (of_line.is_empty() || of_line.ends_with('\n')).then_some((first.len_utf8(), true, numbers));
    }
    if first == ',' && rest[1..].starts_with(char::is_whitespace) {
        return Some((1, false, numbers));
    }
    let word = |phrase: &&str| {
        let beginning = rest.get(..phrase.len());
        let follows = rest.get(phrase.len()..).and_then(|rest| rest.chars().next());
        beginning.is_some_and(|text| text.eq_ignore_ascii_case(phrase))
            && follows.is_some_and(|c| c.is_whitespace() || c == ',')
    };
    if !begins_word {
        return None;
    }
    match CLEAR_DIVIDERS.split('|').find(word) {
        Some(phrase) => Some((phrase.len(), true, numbers)),
        None => ["and"].into_iter().find(word).map(|phrase| (phrase.len(), false, numbers)),
    }
}

/// Returns the byte index at which a segment begins, after “first”, “then” and the like.
fn opening(said: &str, start: usize, end: usize) -> usize {
    let mut begin = start;
    loop {
        let segment = &said[begin..end];
        let plain = segment.trim_start_matches(|c: char| c.is_whitespace() || c == ',' || c == ':');
        let begins = begin + segment.len() - plain.len();
        let opened = OPENINGS.split('|').find(|phrase| {
            let text = plain.get(..phrase.len());
            let follows = plain.get(phrase.len()..).and_then(|rest| rest.chars().next());
            text.is_some_and(|text| text.eq_ignore_ascii_case(phrase))
                && follows.is_some_and(|c| c.is_whitespace() || c == ',' || c == ':')
        });
        match opened {
            Some(phrase) => begin = begins + phrase.len(),
            None => return begins,
        }
    }
}
