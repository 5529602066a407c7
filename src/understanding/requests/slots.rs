//! The values in a sentence: things, moments, weights, numbers, people, groups. They are found
//! before the verb is read; the rest of the sentence expresses the request. Every part keeps its
//! words, so that unused words can be reported.

use serde_json::{Map, Value};

use crate::{
    dates::{moment, number_word, period, time_alone},
    phrase_list::PhraseList,
    phrases::{Phrases, Utterance},
    words::{Word, after, lower, skip},
};

/// A part of a sentence that is a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Slot {
    /// The names of the things that the sentence is about, as typed.
    Subjects(Vec<String>),
    /// “It”: the last subject of the thread.
    Pronoun(String),
    /// A time.
    Moment {
        /// The time, in words that the capability parses.
        when: String,
        /// True if it is the end of a period: “until Friday”.
        until: bool,
        /// True if it is the latest moment for something: “by Friday”.
        by: bool,
    },
    /// Weights: a ratio such as `70/30`, or an object of weights by condition.
    Weights(Value),
    /// A number of users or groups.
    Count {
        /// The number.
        number: u64,
        /// The unit: `users` or `groups`.
        of: &'static str,
    },
    /// Users and groups: `u1`, `class 5B`.
    Members(Vec<String>),
    /// A type of group.
    GroupType(String),
    /// Another existing name: its kind and the name.
    Known(String, String),
    /// `Site/target`.
    Point(String),
}

/// A part of a sentence: a slot, or one word.
#[derive(Clone, Debug, PartialEq)]
pub struct SentencePart {
    /// The value; `None` for a plain word.
    pub slot: Option<Slot>,
    /// The words of the part.
    pub words: Vec<Word>,
}

impl SentencePart {
    /// Returns the first word in lower case.
    pub fn lower(&self) -> &str {
        &self.words[0].lower
    }
}

/// Words at any place that do not affect the request, such as politeness.
static FILLERS: PhraseList = PhraseList::new(
    "please|pls|plz|kindly|thanks a lot|thanks|thank you|thx|ty|cheers|for me|for us|would you|will you|could you|can you|\
    when you get a chance|when you have a minute|when you have a moment|when you have time|when you can|\
    if you do not mind|if you don't mind|if possible|if you can|right now|right away|immediately|straight away|now|asap|\
    as soon as possible|again|it is done|we are done|it is over|for everyone|for everybody|for all users|for all students|for all|hey team|hi team|hello team|team|hi all|hi everyone|\
    go ahead and|just|by the way|btw|as well|today|oh|um|hmm|already",
);

/// Function words that do not restrict a request.
pub const SMALL: &[&str] = &[
    "the", "a", "an", "of", "for", "in", "to", "on", "at", "with", "from", "our", "my", "is", "are", "it", "its",
    "both", ",", "called", "named", "–", "-", "—",
];

/// Words that may restrict a request. A phrase with one of them is never dropped as a reason.
pub const LIMITING: &[&str] = &[
    "if", "only", "but", "not", "until", "till", "before", "after", "unless", "except", "without", "once", "when",
    "while", "instead", "and", "then", "never", "no", "don't", "also", "or", "with", "for", "by", "from", "at", "on",
    "in", "per", "than", "least", "most",
];

/// Divides a sentence into its parts, without politeness.
pub fn sentence_parts(utterance: Utterance<'_>, phrases: &dyn Phrases, owner: &str) -> Vec<SentencePart> {
    let Utterance { words, situation, .. } = utterance;
    let mut parts: Vec<SentencePart> = Vec::new();
    let mut rest = words;
    while let Some((first, others)) = rest.split_first() {
        if let Some(left) = filler(rest, parts.is_empty()) {
            rest = left;
            continue;
        }
        if let Some(left) = other_left_alone(rest, &parts) {
            rest = left;
            continue;
        }
        if let Some((from, until, left)) = period(rest, &situation.today) {
            let words = rest[..rest.len() - left.len()].to_vec();
            let bounds = [
                Slot::Moment { when: from, until: false, by: false },
                Slot::Moment { when: until, until: true, by: false },
            ];
            parts.extend(bounds.map(|slot| SentencePart { slot: Some(slot), words: words.clone() }));
            rest = left;
            continue;
        }
        let found = subjects(rest, phrases)
            .or_else(|| pronoun(rest, utterance.subject_of(owner), phrases))
            .or_else(|| {
                let (when, until, left) = moment(rest, &situation.today)?;
                Some((Slot::Moment { when, until, by: is_limit(rest) }, left))
            })
            .or_else(|| weights(rest))
            .or_else(|| {
                let (when, until, left) = time_alone(rest)?;
                Some((Slot::Moment { when, until, by: is_limit(rest) }, left))
            })
            .or_else(|| count(rest).map(|(number, of, left)| (Slot::Count { number, of }, left)))
            .or_else(|| members(rest, phrases))
            .or_else(|| known_name(rest))
            .or_else(|| group_type(rest, phrases))
            .or_else(|| point_slot(rest));
        let (slot, left) = match found {
            Some((slot, left)) => (Some(slot), left),
            None => (None, others),
        };
        let taken = match slot {
            Some(_) => rest[..rest.len() - left.len()].to_vec(),
            None => vec![first.clone()],
        };
        parts.push(SentencePart { slot, words: taken });
        rest = left;
    }
    parts
}

/// Returns true if a moment in these words is the latest one: “by Friday”.
fn is_limit(words: &[Word]) -> bool {
    after(words, "by|no later than|not later than").is_some()
}

/// Reads `but not “B”` at the end of a sentence about “A”. It asks for nothing, since only “A” is changed. Returns the
/// words after it.
fn other_left_alone<'a>(words: &'a [Word], parts: &[SentencePart]) -> Option<&'a [Word]> {
    let (other, rest) = after(words, ", but not|but not|, not|and not")?.split_first()?;
    let names: Vec<&String> = parts
        .iter()
        .filter_map(|part| match &part.slot {
            Some(Slot::Subjects(names)) => Some(names),
            _ => None,
        })
        .flatten()
        .collect();
    let is_other = other.quoted && other.kind.is_some() && !names.is_empty();
    let is_free = |name: &&String| !name.eq_ignore_ascii_case(&other.text);
    (is_other && names.iter().all(is_free) && rest.is_empty()).then_some(rest)
}

/// Returns the words after politeness or a reason at the beginning; `None` if the words do not
/// begin with either.
fn filler(words: &[Word], first: bool) -> Option<&[Word]> {
    if let Some(left) = FILLERS.after(words) {
        let dated =
            words[0].is("today") && left.first().is_some_and(|next| next.any(&["at", "before", "after", "until"]));
        return (!dated).then_some(left);
    }
    // `…, we have enough data`: a reason, up to the end of the sentence.
    const OPENS: &str = "because|, we have|, we are|, we|, it is|, it|, they|, i|, that is|, looks|, as we|, enough";
    let plain = |word: &Word| !word.quoted && !word.text.contains(|c: char| c.is_ascii_digit());
    let is_reason = match after(words, OPENS) {
        Some(reason) => reason.len() > 1 && words.iter().all(|word| plain(word) && !word.any(LIMITING)),
        None => words.iter().all(plain) && says_how_things_are(words),
    };
    (!first && is_reason).then_some(&[])
}

/// Returns true if the words are a sentence of its own about others: `, teachers are complaining on the forum`. Where it is
/// may be said in it, but nothing that could restrict what is asked for.
fn says_how_things_are(words: &[Word]) -> bool {
    const STATES: &str = "is are was were has have had keeps keep looks look seems seem needs need wants want complain complains \
        crashes fails";
    const PLACES: &[&str] = &["in", "on", "with", "from"];
    // When something should be done restricts it; what was before does not.
    const TIMES: &str = "today tonight tomorrow next soon later monday tuesday wednesday thursday friday saturday sunday \
        weekend am pm noon midnight";
    const ASKS: &str = "should must may can could will would shall it they which that";
    let is_past = |word: &Word| word.lower.len() > 4 && word.lower.ends_with("ed");
    let Some(clause) = after(words, ", since|, as|since|,") else { return false };
    let Some(verb) = clause.iter().take(4).position(|word| word.among(STATES) || is_past(word)) else { return false };
    let (subject, rest) = clause.split_at(verb);
    let restricts = |word: &Word| word.any(LIMITING) || word.among(ASKS) || word.among(TIMES) || word.is(",");
    !subject.is_empty()
        && (rest.len() > 1 || is_past(&rest[0]))
        && !subject.iter().any(restricts)
        && !rest.iter().any(|word| restricts(word) && !word.any(PLACES))
}

type SlotMatch<'a> = Option<(Slot, &'a [Word])>;

/// Reads `the “Plan” document`, `both A and B`, `“A”, “B” and “C”`.
fn subjects<'a>(words: &'a [Word], phrases: &dyn Phrases) -> SlotMatch<'a> {
    let one = |words: &[Word]| -> Option<(String, usize)> {
        let start = skip_things(skip(words, "the one called|the one named|the|our|my"), phrases);
        let (first, rest) = start.split_first()?;
        let is_id = first.text.len() == 36 && first.text.split('-').count() == 5;
        if !(first.quoted || is_id) {
            return None;
        }
        let rest = skip_things(rest, phrases);
        Some((first.text.clone(), words.len() - rest.len()))
    };
    let start = skip(words, "of both|both of|both|each of");
    let (name, taken) = one(start)?;
    let mut names = vec![name];
    let mut rest = &start[taken..];
    while let Some(next) = after(rest, ", and|, &|,|and|&")
        && let Some((name, taken)) = one(next)
    {
        names.push(name);
        rest = &next[taken..];
    }
    Some((Slot::Subjects(names), rest))
}

/// Reads “it”, if the thread has a last subject.
fn pronoun<'a>(words: &'a [Word], subject: Option<&str>, phrases: &dyn Phrases) -> SlotMatch<'a> {
    let name = subject?.to_owned();
    let thing = |words: &'a [Word]| {
        words.split_first().filter(|(first, _)| first.any(phrases.vocabulary().things)).map(|(_, rest)| rest)
    };
    let rest =
        after(words, "the same one|that one|this one|it").or_else(|| thing(after(words, "the same|that|this|the")?))?;
    Some((Slot::Pronoun(name), rest))
}

/// Returns the words without a leading noun for a thing of the capability.
fn skip_things<'a>(words: &'a [Word], phrases: &dyn Phrases) -> &'a [Word] {
    match words.split_first() {
        Some((first, rest)) if first.any(phrases.vocabulary().things) => rest,
        _ => words,
    }
}

/// Reads `70/30`, `25% control and 75% variant`, `control 30% and variant 70%`, `the variant 80 percent`, `thirds`.
fn weights(words: &[Word]) -> SlotMatch<'_> {
    let start = skip(words, "to|at|with|as|into|in|,");
    if let Some(rest) = after(start, "thirds|equal thirds|a third each|one third each") {
        return Some((Slot::Weights("33.33/33.33/33.34".into()), rest));
    }
    if let Some(rest) = after(start, "quarters|equal quarters") {
        return Some((Slot::Weights("25/25/25/25".into()), rest));
    }
    if let Some(rest) = after(start, "half and half|half half|fifty fifty|fifty-fifty") {
        return Some((Slot::Weights("50/50".into()), rest));
    }
    let (first, rest) = start.split_first()?;
    if !first.quoted
        && let Some(ratio) = ratio(&first.text)
    {
        return Some((Slot::Weights(ratio.into()), skip(rest, "weights|weight|split|percent")));
    }
    // `70 30`: plain numbers are weights only if they make a whole.
    let plain = |word: &&Word| !word.quoted && word.text.parse::<u8>().is_ok();
    let numbers: Vec<&str> = start.iter().take_while(plain).map(|word| word.text.as_str()).collect();
    let total: u32 = numbers.iter().filter_map(|number| number.parse::<u32>().ok()).sum();
    if numbers.len() > 1 && total == 100 {
        return Some((Slot::Weights(numbers.join("/").into()), &start[numbers.len()..]));
    }
    let (by_code, rest) = shares(start);
    (by_code.len() > 1).then_some((Slot::Weights(Value::Object(by_code)), rest))
}

/// Reads conditions with their shares, and returns the words after them.
pub fn shares(words: &[Word]) -> (Map<String, Value>, &[Word]) {
    let mut by_code = Map::new();
    let mut rest = words;
    while let Some((code, share, left)) = share(skip(skip(rest, ", and|,|and"), "the")) {
        by_code.insert(code, share.into());
        rest = left;
    }
    (by_code, rest)
}

/// Reads a condition and its share: `25% control`, `25 percent to control`, `control 25%`.
fn share(words: &[Word]) -> Option<(String, f64, &[Word])> {
    let percent = |words: &'_ [Word]| -> Option<(f64, usize)> {
        let (first, rest) = words.split_first()?;
        let digits = first.text.strip_suffix('%');
        let number: f64 = digits.unwrap_or(&first.text).parse().ok().filter(|number: &f64| number.is_finite())?;
        match (digits, after(rest, "percent|%")) {
            (Some(_), _) => Some((number, 1)),
            (None, Some(_)) => Some((number, 2)),
            (None, None) => None,
        }
    };
    if let Some((number, taken)) = percent(words) {
        let (code, rest) = skip(&words[taken..], "for the|for|to the|to|of the|in the|on").split_first()?;
        return (!code.any(SMALL) && !code.any(LIMITING)).then(|| (code.text.clone(), number, rest));
    }
    let (code, rest) = words.split_first().filter(|(code, _)| !code.any(SMALL) && !code.any(LIMITING))?;
    // `control=10`
    if let Some((name, share)) = code.text.split_once(['=', ':']).filter(|_| !code.quoted)
        && let Ok(number) = share.trim_end_matches('%').parse::<f64>()
        && !name.is_empty()
        && number.is_finite()
        && name.contains(char::is_alphabetic)
    {
        return Some((name.to_owned(), number, rest));
    }
    // The same with a known name, which is a word of its own.
    if let Some((next, left)) = rest.split_first()
        && let Some(Ok(number)) =
            next.text.strip_prefix(['=', ':']).map(|share| share.trim_end_matches('%').parse::<f64>())
        && number.is_finite()
    {
        return Some((code.text.clone(), number, left));
    }
    let rest = skip(rest, "to|at|with|=|:|gets|get");
    let (number, taken) = percent(rest)?;
    Some((code.text.trim_end_matches([':', '=']).to_owned(), number, &rest[taken..]))
}

/// Reads `200 users`, `ten groups`: the number, what is counted (`users` or `groups`), and the words after it.
pub fn count(words: &[Word]) -> Option<(u64, &'static str, &[Word])> {
    let (first, rest) = skip(words, "with|using|to|at|of").split_first()?;
    let number = first.lower.replace(',', "").parse::<u64>().ok().or_else(|| number_word(&first.lower));
    let number = number.filter(|_| !first.quoted && !first.any(&["a", "an"]))?;
    let rest = skip(rest, "simulated|test|fake|new|more|different");
    let of_people = after(rest, "users|user|students|student|people|person|participants|participant|learners|pupils");
    let of_groups = || after(rest, "groups|group|classes|schools");
    of_people.map(|rest| (number, "users", rest)).or_else(|| Some((number, "groups", of_groups()?)))
}

/// Reads `students u17 and u18`, `class 5B`.
fn members<'a>(words: &'a [Word], phrases: &dyn Phrases) -> SlotMatch<'a> {
    const PEOPLE: &str = "the students|the users|the user|the student|the participants|students|users|user|student|participants|participant|learners|learner";
    let is_id = |word: &Word| {
        let digits = word.text.ends_with(|c: char| c.is_ascii_digit());
        let letters = word.text.starts_with(|c: char| c.is_ascii_lowercase());
        !word.quoted
            && word.kind.is_none()
            && digits
            && letters
            && word.text.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
    };
    let one = |words: &[Word], named: bool| -> Option<(String, usize)> {
        let start = skip(words, "the");
        let (first, rest) = start.split_first()?;
        let skipped = words.len() - start.len();
        if first.any(phrases.vocabulary().groups)
            && rest
                .first()
                .is_some_and(|id| !id.any(SMALL) && id.text.contains(|c: char| c.is_ascii_digit() || c.is_uppercase()))
        {
            return Some((format!("{} {}", one_group(&first.text), rest[0].text), skipped + 2));
        }
        (is_id(first) || named && !first.any(SMALL) && !first.any(LIMITING)).then(|| (first.text.clone(), skipped + 1))
    };
    let named = after(words, PEOPLE);
    let start = named.unwrap_or(words);
    let (first, taken) = one(start, named.is_some() && start.first().is_some_and(is_id))?;
    let mut all = vec![first];
    let mut rest = &start[taken..];
    // `classes 5B and 6A`: both are classes.
    while let Some((kind, _)) = all.last().and_then(|last| last.split_once(' '))
        && let Some((id, left)) = after(rest, ", and|,|and|&").and_then(<[Word]>::split_first)
        && !id.quoted
        && id.kind.is_none()
        && id.text.starts_with(|c: char| c.is_ascii_digit())
        && left.first().is_none_or(|next| !next.any(&["users", "students", "people", "percent", "groups", "classes"]))
    {
        let next = format!("{kind} {}", id.text);
        all.push(next);
        rest = left;
    }
    while let Some(next) = after(rest, ", and|,|and|&")
        && let Some((member, taken)) = one(skip(next, PEOPLE), false)
    {
        all.push(member);
        rest = &skip(next, PEOPLE)[taken..];
    }
    Some((Slot::Members(all), rest))
}

/// Returns the word for one group: `class` for `classes`.
fn one_group(word: &str) -> String {
    match word.to_lowercase().as_str() {
        "classes" => "class".to_owned(),
        "schools" | "teachers" | "districts" => word.trim_end_matches('s').to_owned(),
        _ => word.to_owned(),
    }
}

/// Reads another existing name: `in mathstream`.
fn known_name(words: &[Word]) -> SlotMatch<'_> {
    let start = skip(words, "in the context|in context|for the context|in the|in|for|within|the context|context");
    let (first, rest) = start.split_first()?;
    let kind = first.kind.clone().filter(|_| !first.quoted)?;
    let bare = start.len() == words.len();
    (bare || kind == "context").then(|| (Slot::Known(kind, first.text.clone()), skip(rest, "context")))
}

/// Reads `by class`, `per school`.
fn group_type<'a>(words: &'a [Word], phrases: &dyn Phrases) -> SlotMatch<'a> {
    const AS_UNIT: &str =
        "as the assignment unit|as assignment unit|as the unit of assignment|as unit of assignment|as the unit";
    let unit = words.split_first().and_then(|(_, rest)| after(rest, AS_UNIT));
    let start = if unit.is_some() { words } else { skip(after(words, "by|per")?, "the|whole") };
    let (kind, rest) = start.split_first()?;
    let rest = unit.unwrap_or(rest);
    let known = kind.kind.as_deref() == Some("group type");
    let plain = kind.text.trim_end_matches("es").to_owned();
    let plain = if kind.lower == "classes" { "class".to_owned() } else { plain };
    (known || kind.any(phrases.vocabulary().groups)).then_some((Slot::GroupType(plain), rest))
}

/// Reads `SelectSection/area_model`.
fn point_slot(words: &[Word]) -> SlotMatch<'_> {
    let (first, rest) = skip(words, "at|on").split_first()?;
    let point = (!first.quoted).then(|| point(&first.text)).flatten()?;
    Some((Slot::Point(point), rest))
}

/// Returns a ratio of numbers as `70/30`, without percent signs; `None` if the text is not a ratio.
pub fn ratio(text: &str) -> Option<String> {
    let mark = ['/', ':', '-'].into_iter().find(|mark| text.contains(*mark))?;
    let parts: Vec<&str> = text.split(mark).map(|part| part.trim_end_matches('%')).collect();
    if parts.len() == 3 && parts[0].len() == 4 {
        return None; // a date
    }
    if mark == ':' && is_time(&parts) {
        return None;
    }
    let numbers = parts.iter().all(|part| part.parse::<f64>().is_ok_and(f64::is_finite));
    (parts.len() > 1 && numbers).then(|| parts.join("/"))
}

/// Returns weights as whole percentages in the same ratio: 33 and 67 for 1 and 2. `None` if one is negative or all are 0.
pub fn in_percent(weights: &[f64]) -> Option<Vec<f64>> {
    let total: f64 = weights.iter().sum();
    if total <= 0.0 || !total.is_finite() || weights.iter().any(|weight| *weight < 0.0) {
        return None;
    }
    let exact: Vec<f64> = weights.iter().map(|weight| weight * 100.0 / total).collect();
    let mut percent: Vec<f64> = exact.iter().map(|share| share.floor()).collect();
    let mut left = 100.0 - percent.iter().sum::<f64>();
    let mut by_remainder: Vec<usize> = (0..exact.len()).collect();
    by_remainder.sort_by(|one, other| exact[*other].fract().total_cmp(&exact[*one].fract()));
    for place in by_remainder {
        if left < 0.5 {
            break;
        }
        percent[place] += 1.0;
        left -= 1.0;
    }
    Some(percent)
}

/// Returns fractions in words that add up to 1 as percentages: 33 and 67 for `one third / two thirds`.
pub fn fractions(words: &[Word]) -> Option<Vec<f64>> {
    const PARTS: [(&str, f64); 6] =
        [("half", 2.0), ("third", 3.0), ("quarter", 4.0), ("fourth", 4.0), ("fifth", 5.0), ("tenth", 10.0)];
    let said = lower(words).replace('/', " ");
    let (mut found, mut count) = (Vec::new(), None);
    for word in said.split_whitespace().filter(|word| !["and", "to", "&", ":"].contains(word)) {
        let part = PARTS.iter().find(|(part, _)| word.strip_suffix('s').unwrap_or(word) == *part);
        match part {
            Some((_, size)) => found.push(count.take().unwrap_or(1.0) / size),
            None if count.is_none() => count = Some(f64::from(u32::try_from(number_word(word)?).ok()?)),
            None => return None,
        }
    }
    let is_whole = count.is_none() && found.len() > 1 && (found.iter().sum::<f64>() - 1.0).abs() < 0.001;
    if is_whole { in_percent(&found) } else { None }
}

/// Returns true for a time of day, such as `9:00`, but not for shares, such as `20:80` or `1:2`.
fn is_time(parts: &[&str]) -> bool {
    let number = |part: &str| part.parse::<u8>().ok().filter(|_| part.len() <= 2);
    match parts {
        [hour, minute] => {
            number(hour).zip(number(minute)).is_some_and(|(h, m)| minute.len() == 2 && h < 24 && m < 60 && h + m != 100)
        }
        _ => false,
    }
}

/// Returns `Site/target` in its stored form, `Site / target`.
pub fn point(text: &str) -> Option<String> {
    let (site, target) = text.split_once('/')?;
    let plain = |part: &str| !part.is_empty() && !part.contains(['/', ':']);
    (plain(site) && plain(target)).then(|| format!("{site} / {target}"))
}
