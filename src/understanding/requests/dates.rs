//! Dates and times as people write them: `on 3 December 2026 at 9am`, `next Monday 9:00`, `9am tomorrow`, `in two weeks`,
//! `Friday evening`, `after Thanksgiving`, `the first of December`, `Dec 1 to 18`.
//!
//! A day with a month becomes the next such date, in the form `2026-12-03`. Other moments are kept as
//! words, which the capability resolves with its clock and the person's time zone. Anything beyond a day,
//! a time and a time zone is left over, so that it is reported rather than ignored. So is a numeric date
//! that has two meanings, such as `12/03/2026`, which [`ambiguous`] finds.

mod days;
mod numeric;
mod past;
#[cfg(test)]
mod tests;

use countersign_core::clock::MONTHS;

use crate::words::{Word, after, skip};

pub use self::{
    days::{HOLIDAYS, month_and_day},
    numeric::{AmbiguousDate, ambiguous},
    past::{ending_in_period, fixed_period, plain_period},
};

/// The words for a time zone, and its IANA name.
pub const ZONES: &[(&str, &str)] = &[
    ("utc", "UTC"),
    ("gmt", "UTC"),
    ("et", "America/New_York"),
    ("est", "America/New_York"),
    ("edt", "America/New_York"),
    ("ct", "America/Chicago"),
    ("cst", "America/Chicago"),
    ("cdt", "America/Chicago"),
    ("mt", "America/Denver"),
    ("mst", "America/Denver"),
    ("mdt", "America/Denver"),
    ("pt", "America/Los_Angeles"),
    ("pst", "America/Los_Angeles"),
    ("pdt", "America/Los_Angeles"),
    ("cet", "Europe/Berlin"),
    ("cest", "Europe/Berlin"),
];

/// The areas of IANA names, such as `Europe/Berlin`.
const AREAS: &[&str] =
    &["Africa", "America", "Antarctica", "Asia", "Atlantic", "Australia", "Etc", "Europe", "Indian", "Pacific"];

/// The parts of a day, which stand for a time.
pub const PARTS_OF_DAY: &[&str] = &["morning", "afternoon", "evening", "night"];

/// The words before the end of a period.
const TO: &str = "no later than|not later than|until|till|up to|through|thru|ending on|ending|to|by";

/// A moment as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The day, such as `2026-12-03`, `Friday` or `in 2 weeks`; `None` for the next time of day.
    pub day: Option<String>,
    /// The time of day, such as `9am` or `evening`.
    pub time: Option<String>,
    /// The time zone: one of [`ZONES`] in capital letters, a distance such as `UTC+2`, or an IANA name.
    pub zone: Option<String>,
    /// True if it is the end of a period: “until Friday”.
    pub until: bool,
}

impl Moment {
    /// Returns the moment as one text, which [`Moment::read`] parses.
    pub fn text(&self) -> String {
        let day = self.day.as_deref().unwrap_or("at");
        [Some(day), self.time.as_deref(), self.zone.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// Parses a text that is a moment as a whole, with a day or a time of day.
    pub fn read(text: &str, today: &str) -> Option<Self> {
        let whole =
            |found: Option<(Self, &[Word])>| found.filter(|(_, rest)| rest.is_empty()).map(|(moment, _)| moment);
        let plain = crate::words::words(text);
        let introduced = crate::words::words(&format!("on {}", with_at(text)));
        whole(dated_moment(&introduced, today))
            .or_else(|| whole(dated_moment(&plain, today)))
            .or_else(|| whole(time_of_next_day(&plain)))
    }
}

/// Returns the text of a moment with “at” before an hour that is only a number: `tomorrow at 8`. A number after a month is
/// a day.
fn with_at(text: &str) -> String {
    let parts: Vec<&str> = text.split_whitespace().collect();
    let is_hour = |at: &usize| {
        let before = at.checked_sub(1).and_then(|at| parts.get(at)).map(|word| word.to_lowercase());
        let follows_day = before.is_some_and(|word| {
            let is_month = word.len() >= 3 && MONTHS.iter().any(|month| month.starts_with(word.trim_end_matches('.')));
            !is_month && !["at", "in", "the", "of", "on", "to"].contains(&word.as_str())
        });
        let is_last = parts[*at + 1..].iter().all(|word| ZONES.iter().any(|(zone, _)| zone.eq_ignore_ascii_case(word)));
        follows_day && is_last && parts[*at].len() <= 2 && parts[*at].parse::<u8>().is_ok()
    };
    match (0..parts.len()).find(is_hour) {
        Some(hour) => format!("{} at {}", parts[..hour].join(" "), parts[hour..].join(" ")),
        None => text.to_owned(),
    }
}

/// Parses a moment at the start of the words, with an optional preposition before it. Returns the
/// moment, true if it is the end of a period, and the remaining words.
pub fn moment<'a>(words: &'a [Word], today: &str) -> Option<(String, bool, &'a [Word])> {
    dated_moment(words, today).map(|(moment, rest)| (moment.text(), moment.until, rest))
}

/// Parses a time without a day: `at 3pm`, `by noon`. Returns the moment as `at 3pm`, true if it is the end of
/// a period, and the remaining words.
pub fn time_alone(words: &[Word]) -> Option<(String, bool, &[Word])> {
    time_of_next_day(words).map(|(moment, rest)| (moment.text(), moment.until, rest))
}

/// Parses a day, with an optional time of day before or after it.
fn dated_moment<'a>(words: &'a [Word], today: &str) -> Option<(Moment, &'a [Word])> {
    const FROM: &str = "starting on|starting from|starting|beginning on|beginning|from|on|for|at|as of|between|\
        but not before|not before|but not earlier than|not earlier than|no earlier than";
    let (until, start) = match (after(words, TO), after(words, FROM)) {
        (Some(start), _) => (true, start),
        (None, Some(start)) => (false, start),
        (None, None) => (false, words),
    };
    let is_introduced = start.len() < words.len();
    if let Some(rest) = after(start, "tonight") {
        let (time, rest) =
            time(rest).map_or(("night".to_owned(), rest), |(clock, rest)| (in_part(clock, "night"), rest));
        let (zone, rest) = zone(rest, true);
        return Some((Moment { day: Some("today".to_owned()), time: Some(time), zone, until }, rest));
    }
    if let Some((day, rest)) = days::day(start, today, is_introduced) {
        let (time, rest) = time_of_day(rest).map_or((None, rest), |(time, rest)| (Some(time), rest));
        let (zone, rest) = zone(rest, time.is_some());
        return Some((Moment { day: Some(day), time, zone, until }, rest));
    }
    // `9am tomorrow`, `at noon on Friday`
    let at = if words.first().is_some_and(|first| first.is("at")) { words } else { start };
    let (time, rest) = time_of_day(at)?;
    let (zone, rest) = zone(rest, true);
    let (day, rest) = days::day(skip(skip(rest, ","), "on|of"), today, true)?;
    Some((Moment { day: Some(day), time: Some(time), zone, until }, rest))
}

/// Parses a time of day after “at”, “until” or “by”.
fn time_of_next_day(words: &[Word]) -> Option<(Moment, &[Word])> {
    let (until, start) = match after(words, "until|till|by") {
        Some(start) => (true, start),
        None => (false, words.first().filter(|first| first.is("at")).map(|_| words)?),
    };
    let (time, rest) = time(start)?;
    let (zone, rest) = zone(rest, true);
    Some((Moment { day: None, time: Some(time), zone, until }, rest))
}

/// Parses a period whose parts are not moments by themselves: `Dec 1 to 18`, `December 1-18`, `between Dec 1 and Jan 18`.
/// Returns the two moments and the remaining words.
pub fn period<'a>(words: &'a [Word], today: &str) -> Option<(String, String, &'a [Word])> {
    let start = skip(words, "from|between|on");
    if let Some((from, until, rest)) = days::days_of_one_month(start) {
        let date = |day: u8| days::dated(from.0, day, today);
        return Some((date(from.1)?, date(until)?, rest));
    }
    let (from, rest) = dated_moment(words, today).filter(|(from, _)| !from.until)?;
    let joined = if words.first()?.is("between") { "and|–|-|—" } else { "–|-|—" };
    let (until, rest) = dated_moment(after(rest, joined)?, today)?;
    Some((from.text(), until.text(), rest))
}

/// Parses a time zone after a time.
fn zone(words: &[Word], has_time: bool) -> (Option<String>, &[Word]) {
    let named = words.split_first().filter(|(first, _)| has_time && !first.quoted);
    match named.and_then(|(first, rest)| Some((written_zone(&first.text)?, rest))) {
        Some((zone, rest)) => (Some(zone), skip(rest, "time")),
        None => (None, words),
    }
}

/// Returns the words without a time zone at the beginning.
pub fn without_zone(words: &[Word]) -> &[Word] {
    zone(words, true).1
}

/// Returns the time zone that a word names, in the form of [`Moment::zone`].
fn written_zone(word: &str) -> Option<String> {
    let is_short = ZONES.iter().any(|(short, _)| short.eq_ignore_ascii_case(word));
    let is_area = word.split_once('/').is_some_and(|(area, city)| AREAS.contains(&area) && !city.is_empty());
    match () {
        () if is_short || distance_from_utc(word).is_some() => Some(word.to_uppercase()),
        () => is_area.then(|| word.to_owned()),
    }
}

/// Returns the distance of a zone from UTC in minutes: 120 for `UTC+2`, -210 for `GMT-3:30`.
pub fn distance_from_utc(zone: &str) -> Option<i16> {
    let upper = zone.to_uppercase();
    let signed = upper.strip_prefix("UTC").or_else(|| upper.strip_prefix("GMT"))?;
    let (sign, digits) = match signed.strip_prefix('+') {
        Some(digits) => (1, digits),
        None => (-1, signed.strip_prefix('-').or_else(|| signed.strip_prefix('−'))?),
    };
    let (hours, minutes) = digits.split_once(':').unwrap_or((digits, "0"));
    let number = |digits: &str, most: i16| digits.parse::<i16>().ok().filter(|number| (0..=most).contains(number));
    Some(sign * (number(hours, 14)? * 60 + number(minutes, 59)?))
}

/// Returns the IANA name of the only time zone that a message names after a time: `America/New_York` for `at 9am ET`.
pub fn named_zone(message: &str) -> Option<String> {
    let words = crate::words::words(message);
    let named = (0..words.len()).filter_map(|at| zone(time(&words[at..])?.1, true).0);
    let mut names: Vec<String> = named.map(|zone| iana_name(&zone).unwrap_or(zone)).collect();
    names.sort_unstable();
    names.dedup();
    match names.as_slice() {
        [one] => iana_name(one),
        _ => None,
    }
}

/// Returns the IANA name of a zone in the form of [`Moment::zone`]. A distance from UTC has one if it is whole hours.
fn iana_name(zone: &str) -> Option<String> {
    if let Some((_, name)) = ZONES.iter().find(|(short, _)| short.eq_ignore_ascii_case(zone)) {
        return Some((*name).to_owned());
    }
    match distance_from_utc(zone) {
        Some(minutes) => (minutes % 60 == 0).then(|| format!("Etc/GMT{:+}", -minutes / 60)), // the sign is reversed there
        None => zone.contains('/').then(|| zone.to_owned()),
    }
}

/// Parses a time or a part of the day: `at 9`, `in the evening`, `8 in the morning`.
fn time_of_day(words: &[Word]) -> Option<(String, &[Word])> {
    let part = |words: &'_ [Word]| -> Option<(String, usize)> {
        let start = skip(skip(words, ","), "in the|at");
        let (first, _) = start.split_first().filter(|(first, _)| first.any(PARTS_OF_DAY))?;
        Some((first.lower.clone(), words.len() - start.len() + 1))
    };
    let Some((clock, rest)) = time(words) else {
        let (part, taken) = part(words)?;
        return Some((part, &words[taken..]));
    };
    match part(rest) {
        Some((part, taken)) => Some((in_part(clock, &part), &rest[taken..])),
        None => Some((clock, rest)),
    }
}

/// Returns a time in a part of the day: 8 in the evening is `8pm`. A time that is clear by itself stays.
fn in_part(clock: String, part: &str) -> String {
    let hour: Option<u8> = clock.split(':').next().and_then(|hour| hour.parse().ok());
    match (hour, part) {
        (Some(12), "night") if !clock.ends_with('m') => "midnight".to_owned(),
        (Some(1..=12), _) if !clock.ends_with('m') => {
            format!("{clock}{}", if part == "morning" { "am" } else { "pm" })
        }
        _ => clock,
    }
}

/// Parses a time at the start of the words: `at 9`, `9:00`, `9 am` or `noon`.
pub fn time(words: &[Word]) -> Option<(String, &[Word])> {
    let start = skip(words, ", at around|, at|,|at around|at about|at");
    let at = words.len() != start.len() && after(words, ", at|at").is_some();
    let (clock, rest) = start.split_first().filter(|(clock, _)| !clock.quoted)?;
    if clock.any(&["noon", "midnight"]) {
        return Some((clock.lower.clone(), rest));
    }
    if let Some(rest) = after(start, "eod|cob|end of day|end of the day|close of business") {
        return Some(("5pm".to_owned(), rest));
    }
    let written = clock.lower.trim_end_matches('.');
    let digits = written.strip_suffix("am").or_else(|| written.strip_suffix("pm")).unwrap_or(written);
    let (hour, minute) = digits.split_once([':', '.']).unwrap_or((digits, "00"));
    let is_valid =
        |part: &str, max: u8| (1..=2).contains(&part.len()) && part.parse::<u8>().is_ok_and(|number| number <= max);
    if !is_valid(hour, 24) || !is_valid(minute, 59) {
        return None;
    }
    let half = rest.first().filter(|half| half.any(&["am", "pm", "a.m", "p.m"]));
    let is_clearly_a_time = at || digits.contains(':') || digits.len() < written.len() || half.is_some();
    if !is_clearly_a_time {
        return None;
    }
    let written = written.replace('.', ":");
    Some(match half {
        Some(half) => (format!("{written}{}", half.lower.replace('.', "")), &rest[1..]),
        None => (written, skip(rest, "o'clock|oclock|sharp")),
    })
}

/// Parses a spelled-out number up to one hundred.
pub fn number_word(word: &str) -> Option<u64> {
    const SMALL: &str = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen \
        fifteen sixteen seventeen eighteen nineteen";
    const TENS: &str = "twenty thirty forty fifty sixty seventy eighty ninety hundred";
    let place = |names: &str, word: &str| u64::try_from(names.split(' ').position(|name| name == word)?).ok();
    let tens = |word: &str| Some((place(TENS, word)? + 2) * 10);
    match word.split_once('-') {
        None if matches!(word, "a" | "an") => Some(1),
        None => place(SMALL, word).or_else(|| tens(word)),
        Some((ten, one)) => {
            Some(tens(ten).filter(|ten| *ten < 100)? + place(SMALL, one).filter(|one| (1..10).contains(one))?)
        }
    }
}
