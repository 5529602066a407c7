//! The check that a proposal covers everything that a person said.
//!
//! A language model that proposes a change may omit something: a date, a number, a name in quotes,
//! a restriction. [`left_out`] returns the words of the message that do not appear in the proposal,
//! so that they can be reported to the person. It compares words only and knows no platform. In
//! doubt it returns a word: a needless line on a card costs less than a lost restriction.

use std::{cell::OnceCell, collections::BTreeSet};

use countersign_core::clock::{MONTHS, WEEKDAYS};

use crate::words::is_one_of;

/// The maximum number of pieces that are returned.
const MAX_PIECES: usize = 4;
/// The maximum length of a restriction, in words.
const MAX_RESTRICTION_WORDS: usize = 8;

/// Words for a time other than weekdays and months. Any date in the proposal covers them.
const MOMENTS: &str = "tomorrow tonight weekend midnight noon week month morning afternoon evening night hour hours \
    days weeks months";
/// Words that restrict. They are covered if the words after them are.
const RESTRICTIONS: &str = "only except excluding without until besides before after once while during keep";
/// Words for a manner or an amount. Only the same word covers them.
const MANNERS: &str = "twice slowly gradually temporarily partly partially half secretly";
/// Words for a form of data. Only the same word covers them.
const FORMATS: &str = "csv tsv excel xls xlsx pdf spreadsheet powerpoint pptx docx";
/// Words that begin a condition. Only the same phrase covers them.
const CONDITIONALS: &[&str] = &["if", "unless", "provided"];
/// Words that follow a merely polite “if”.
const POLITE: &str = "you can|you could|you would|you please|you like|you want|you may|you don't mind|possible|\
    that's ok|that is ok|that's okay|that's possible|that is possible|it's possible|it is possible|i may|i can|\
    we can|we could|i could";
/// Words without a meaning of their own.
const EMPTY: &str = "a an the of for to in on at by with from and or but it its is are be that this those these \
    them they one ones please thanks not all any each i we you me us my our have has do does will would there so as \
    than then who which people whose only just";
/// Words before a number or a date that belong to it.
const BEFORE: &str = "on at by until till from after before in with for next this every to of";

/// A word of the message.
#[derive(Debug)]
struct Word<'a> {
    /// The word as it was written, without punctuation around it.
    bare: &'a str,
    /// The same in lower case.
    lower: String,
    /// The byte range of the word in the message, including punctuation after it.
    from: usize,
    to: usize,
    /// True if punctuation after it ends a part of the sentence.
    ends: bool,
}

/// The text, words and dates of `proposal`, in lower case. Most messages need only the text.
struct ProposalText {
    text: String,
    words: OnceCell<BTreeSet<String>>,
    dates: OnceCell<Vec<(i64, usize, i64)>>,
}

/// Returns the pieces of the message `said` that do not appear in `proposal`, in order and as they
/// were written. `proposal` is the parameters and the card of a change, or the requests that a
/// message was divided into.
pub fn left_out(said: &str, proposal: &str) -> Vec<String> {
    let words = words(said);
    let proposal = ProposalText::of(proposal);
    let mut missing = vec![false; words.len()];
    let mut mark = |from: usize, to: usize| missing[from..to].iter_mut().for_each(|word| *word = true);
    for (at, word) in words.iter().enumerate() {
        let lower = word.lower.as_str();
        if CONDITIONALS.contains(&lower) && !is_polite(&words[at + 1..]) {
            let to = restriction_end(&words, at);
            if !proposal.holds_phrase(&words[at..to]) {
                mark(at, to);
            }
        }
        if is_one_of(RESTRICTIONS, lower)
            || (lower == "but" && words.get(at + 1).is_some_and(|next| next.lower == "not"))
        {
            let to = restriction_end(&words, at);
            let carries = |at: &usize| {
                let lower = words[*at].lower.as_str();
                !is_one_of(EMPTY, lower) && !is_one_of(RESTRICTIONS, lower)
            };
            let mut carried = (at..to).filter(carries).peekable();
            if carried.peek().is_some() && !carried.all(|at| proposal.holds(&words, at)) {
                mark(at, to);
            }
        }
        if (is_one_of(MANNERS, lower) || is_one_of(FORMATS, lower)) && !proposal.holds_word(lower) {
            let to = if lower == "half" { restriction_end(&words, at) } else { at + 1 };
            mark(at, to);
        }
        if lower == "as" && words.get(at + 1).is_some_and(|next| next.lower == "long") {
            mark(at, restriction_end(&words, at));
        }
        let is_number = is_number(&said[word.from..word.to]);
        if (is_number && !proposal.holds_number(&word.lower)) || proposal.lacks_moment(&words, at) {
            let counted = at > 0 && !is_number && crate::dates::number_word(&words[at - 1].lower).is_some();
            let from = at - usize::from(counted);
            let begins = from > 0 && is_one_of(BEFORE, &words[from - 1].lower) && !words[from - 1].ends;
            let unit = is_number && !word.ends && words.get(at + 1).is_some_and(|next| !is_one_of(EMPTY, &next.lower));
            mark(from - usize::from(begins), at + 1 + usize::from(unit));
        }
    }
    for (from, to) in names(&words, said) {
        if !proposal.holds_name(&words[from..to]) {
            mark(from, to);
        }
    }
    pieces(said, &words, &missing)
}

/// Returns the first piece of a message that a question about what it mentions must not ignore: a number, a form of data,
/// or an exception.
pub(crate) fn left_out_of_question(said: &str, holds: &str) -> Option<String> {
    let is_marked = |piece: &String| {
        let is_format = |word: &str| is_one_of(FORMATS, &word.to_lowercase());
        let excepts = |word: &str| ["only", "except", "excluding", "without", "besides"].contains(&word);
        piece.contains(|c: char| c.is_ascii_digit())
            || piece.split(' ').any(is_format)
            || piece.split(' ').next().is_some_and(excepts)
    };
    left_out(said, holds).into_iter().find(is_marked)
}

/// Divides a message into words.
fn words(said: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut at = 0;
    for piece in said.split_inclusive(char::is_whitespace) {
        let from = at;
        at += piece.len();
        let written = piece.trim_end();
        let bare = written.trim_matches(|c: char| !c.is_alphanumeric());
        if bare.is_empty() {
            continue;
        }
        let after = &written[written.rfind(bare).unwrap_or(0) + bare.len()..];
        let ends = after.contains([',', '.', ';', '!', '?', ':', ')']);
        let lower = bare.to_lowercase().replace('’', "'");
        words.push(Word { bare, lower, from, to: from + written.len(), ends });
    }
    words
}

/// Returns true if a word contains a digit and is not merely the number of a list item, such as
/// `1.`.
fn is_number(written: &str) -> bool {
    let digits = written.chars().take_while(char::is_ascii_digit).count();
    let counts = (1..=2).contains(&digits) && matches!(&written[digits..], "." | ")" | ".)");
    written.chars().any(|c| c.is_ascii_digit()) && !counts
}

/// Returns the index after the last word of a restriction that begins at `at`.
fn restriction_end(words: &[Word<'_>], at: usize) -> usize {
    let mut to = at + 1;
    while to < words.len().min(at + MAX_RESTRICTION_WORDS) && !words[to - 1].ends && words[to].lower != "then" {
        to += 1;
    }
    to
}

fn is_polite(after: &[Word<'_>]) -> bool {
    let following: Vec<&str> = after.iter().take(3).map(|word| word.lower.as_str()).collect();
    let following = following.join(" ");
    POLITE.split('|').any(|polite| following.starts_with(polite))
}

/// Returns the index ranges of names: words in quotes, and runs of capitalised words.
fn names(words: &[Word<'_>], said: &str) -> Vec<(usize, usize)> {
    let mut names = Vec::new();
    let mut open: Option<usize> = None;
    for (at, word) in words.iter().enumerate() {
        let written = &said[word.from..word.to];
        let opens = written.starts_with(['“', '"', '«', '„']) || written.starts_with("(“");
        if open.is_none() && opens {
            open = Some(at);
        }
        let closes = written.trim_end_matches(|c: char| ",.;!?:)".contains(c)).ends_with(['”', '"', '»', '“']);
        if let (Some(from), true) = (open, closes) {
            names.push((from, at + 1));
            open = None;
        }
    }
    let capital = |word: &Word<'_>| word.bare.chars().next().is_some_and(char::is_uppercase);
    let mut from = 0;
    while from < words.len() {
        let run = words[from..].iter().take_while(|word| capital(word)).count();
        let mut to = from;
        // A comma may stand between two names.
        while to < from + run {
            let begin = to;
            while to < from + run && (to == begin || !words[to - 1].ends) {
                to += 1;
            }
            // The first word of a message is capitalised in any case.
            let begin = begin + usize::from(begin == 0);
            if to > begin + 1 {
                names.push((begin, to));
            }
        }
        from += run.max(1);
    }
    names
}

impl ProposalText {
    fn of(proposal: &str) -> Self {
        Self { text: proposal.to_lowercase(), words: OnceCell::new(), dates: OnceCell::new() }
    }

    fn words(&self) -> &BTreeSet<String> {
        self.words.get_or_init(|| {
            let words = self.text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
            words.map(str::to_owned).collect()
        })
    }

    fn dates(&self) -> &[(i64, usize, i64)] {
        self.dates.get_or_init(|| dates(&self.text))
    }

    /// Returns true if the word at this index appears here, or a date or number that it stands for.
    fn holds(&self, words: &[Word<'_>], at: usize) -> bool {
        let lower = words[at].lower.as_str();
        let when = WEEKDAYS.contains(&lower) || MONTHS.contains(&lower) || is_one_of(MOMENTS, lower);
        self.holds_word(lower)
            || (when && !self.lacks_moment(words, at))
            || (lower.contains(|c: char| c.is_ascii_digit()) && self.holds_number(lower))
    }

    /// Returns true if the same words appear here in the same order.
    fn holds_phrase(&self, words: &[Word<'_>]) -> bool {
        let phrase: Vec<&str> = words.iter().map(|word| word.lower.as_str()).collect();
        self.text.contains(&phrase.join(" "))
    }

    /// Returns true if the word appears here, or a word that begins with it or that it begins with.
    fn holds_word(&self, word: &str) -> bool {
        let like = |known: &String| {
            let (short, long) = if known.len() < word.len() { (known.as_str(), word) } else { (word, known.as_str()) };
            short.chars().count() >= 4 && long.starts_with(short)
        };
        let parts = word.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
        self.words().contains(word)
            || self.words().iter().any(like)
            || parts.clone().count() > 1 && parts.clone().all(|part| self.words().contains(part))
            || word.strip_suffix('s').is_some_and(|one| self.words().contains(one))
    }

    /// Returns true if the number appears here in some form. The parts of `70/30`, a date or a time
    /// are looked up separately.
    fn holds_number(&self, word: &str) -> bool {
        if self.text.contains(word) {
            return true;
        }
        let hour = |digits: &str, late: i64| digits.parse::<i64>().ok().map(|hour| (hour % 12 + late).to_string());
        let clock = word.strip_suffix("pm").and_then(|digits| hour(digits, 12));
        if let Some(hour) = clock.or_else(|| word.strip_suffix("am").and_then(|digits| hour(digits, 0))) {
            return self.holds_plain(&hour);
        }
        if word.split('x').count() == 2 && word.split('x').all(|part| part.parse::<u8>().is_ok()) {
            return true; // the shape of a design, such as 2x2; its details are checked separately
        }
        let ordinal = ["st", "nd", "rd", "th"].iter().find_map(|suffix| word.strip_suffix(suffix));
        let ordinal = ordinal.filter(|digits| digits.chars().all(|c| c.is_ascii_digit()));
        let parts = ordinal.unwrap_or(word).split(|c: char| !c.is_alphanumeric());
        parts.filter(|part| !part.is_empty()).all(|part| self.holds_plain(part))
    }

    fn holds_plain(&self, part: &str) -> bool {
        let same = |known: &String| known.trim_start_matches('0') == part.trim_start_matches('0');
        self.words().contains(part)
            || part.chars().all(|c| c.is_ascii_digit()) && self.words().iter().any(same)
            || !part.chars().any(|c| c.is_ascii_digit())
    }

    /// Returns true if the word at this index is a time that does not appear here.
    fn lacks_moment(&self, words: &[Word<'_>], at: usize) -> bool {
        let word = words[at].lower.as_str();
        let may_be_one = WEEKDAYS.contains(&word) || MONTHS.contains(&word) || is_one_of(MOMENTS, word);
        if !may_be_one || self.words().contains(word) {
            return false;
        }
        let beside = |at: Option<usize>| at.and_then(|at| words.get(at));
        if let Some(day) = WEEKDAYS.iter().position(|day| *day == word) {
            return !self.dates().iter().any(|date| weekday(*date) == day);
        }
        if let Some(month) = MONTHS.iter().position(|month| *month == word) {
            let numbered =
                |word: Option<&Word<'_>>| word.is_some_and(|word| word.bare.starts_with(|c: char| c.is_ascii_digit()));
            let is_meant = word != "may" || numbered(beside(at.checked_sub(1))) || numbered(beside(Some(at + 1)));
            return is_meant && !self.dates().iter().any(|date| date.1 == month + 1);
        }
        let next = || {
            beside(at.checked_sub(1)).is_some_and(|word| ["next", "this", "following"].contains(&word.lower.as_str()))
        };
        (!["week", "month"].contains(&word) || next()) && self.dates().is_empty()
    }

    fn holds_name(&self, words: &[Word<'_>]) -> bool {
        // One unknown word may be a typing mistake.
        let strange = words.iter().filter(|word| !self.holds_word(&word.lower)).count();
        self.holds_phrase(words) || strange == 0 || (strange == 1 && words.len() > 1)
    }
}

/// Returns the dates in a text, written as `2027-01-15`: year, month and day.
fn dates(text: &str) -> Vec<(i64, usize, i64)> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| text.get(from..to).and_then(|part| part.parse::<i64>().ok());
    let at = |from: usize| {
        let dashes = bytes.get(from + 4) == Some(&b'-') && bytes.get(from + 7) == Some(&b'-');
        let (year, month, day) = (number(from, from + 4)?, number(from + 5, from + 7)?, number(from + 8, from + 10)?);
        (dashes && (1..=12).contains(&month)).then_some((year, usize::try_from(month).ok()?, day))
    };
    (0..text.len()).filter_map(at).collect()
}

/// Returns the day of the week of a date, from 0 for Monday.
fn weekday((year, month, day): (i64, usize, i64)) -> usize {
    const SHIFT: [i64; 12] = [0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4];
    let year = if month < 3 { year - 1 } else { year };
    let days = year + year / 4 - year / 100 + year / 400 + SHIFT[month - 1] + day;
    usize::try_from((days + 6).rem_euclid(7)).unwrap_or_default()
}

/// Returns the missing words as they were written, with adjacent ones in one piece.
fn pieces(said: &str, words: &[Word<'_>], missing: &[bool]) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < words.len() && pieces.len() < MAX_PIECES {
        let run = missing[at..].iter().take_while(|missing| **missing).count();
        if run > 0 {
            let piece = &said[words[at].from..words[at + run - 1].to];
            let around = |c: char| c.is_whitespace() || ",.;!?:“”\"«»„()".contains(c);
            pieces.push(piece.trim_matches(around).split_whitespace().collect::<Vec<_>>().join(" "));
        }
        at += run.max(1);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rows: &[(&str, &str, &[&str])]) {
        for (said, proposal, missing) in rows {
            assert_eq!(left_out(said, proposal), *missing, "{said}");
        }
    }

    #[test]
    fn words_in_the_proposal_are_not_returned() {
        let start = r#"{"experiment":"Math Hints","status":"enrolling"} Start “Math Hints”? inactive"#;
        check(&[
            ("Could you please start Math Hints?", start, &[]),
            ("start only Math Hints", start, &[]),
            ("start “Math Hints”, if you can", start, &[]),
            ("strat Mth Hints now", start, &[]),
            ("Start it on Friday", r#"{"start_on":"Friday 9:00"}"#, &[]),
            ("schedule it for Friday at 9am", r#"{"start_on":"2026-11-27 09:00"}"#, &[]),
            ("schedule it for Friday at 3pm", r#"{"start_on":"2026-11-27 15:00"}"#, &[]),
            ("weights 70/30", r#"{"weights":[70,30]}"#, &[]),
            ("with 200 users", r#"{"users":200}"#, &[]),
            ("only for class 5B", r#"{"inclusion":["classId:5B"]}"#, &[]),
            ("on the 3rd of May", r#"{"start_on":"2027-05-03"}"#, &[]),
            ("may I start it?", start, &[]),
            ("1. show Math Hints 2. start it", start, &[]),
            ("only until Friday", r#"{"end_on":"2026-11-27 18:00"}"#, &[]),
            ("describe it as “see if hints help”", r#"{"description":"see if hints help"}"#, &[]),
        ]);
    }

    #[test]
    fn missing_words_are_returned_as_they_were_written() {
        let start = r#"{"experiment":"Math Hints","status":"enrolling"} Start “Math Hints”? inactive"#;
        check(&[
            ("start Math Hints on Friday", start, &["on Friday"]),
            ("start Math Hints, but only for class 5B", start, &["only for class 5B"]),
            ("start Math Hints and Tutor Voice", start, &["Tutor Voice"]),
            ("start Math Hints and “tutor voice”", start, &["tutor voice"]),
            ("start Math Hints if nobody objects", start, &["if nobody objects"]),
            ("start Math Hints with 200 users", start, &["with 200 users"]),
            ("start Math Hints except in class 5B, please", start, &["except in class 5B"]),
            ("start Math Hints tomorrow", start, &["tomorrow"]),
            ("the enrollment CSV of Math Hints", start, &["CSV"]),
            ("schedule it for Friday", r#"{"start_on":"2026-11-26 09:00"}"#, &["for Friday"]),
            ("start Math Hints at 9am, until Monday", start, &["at 9am, until Monday"]),
        ]);
    }

    #[test]
    fn no_text_panics() {
        for said in ["", "“", "\"", "🙂 only", "if", "Ä Ö “ü", "except", "2026-", "1234-56-78-9é", "A B", "but not"]
        {
            left_out(said, said);
            left_out(said, "");
        }
    }
}
