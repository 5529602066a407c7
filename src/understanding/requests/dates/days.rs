//! Days: `tomorrow`, `next Monday`, `Dec 3`, `in two weeks`, `the 15th`, `end of the month`, `after Thanksgiving`.

use countersign_core::clock::MONTHS;

use super::{number_word, numeric};
use crate::words::{Word, after, lower, skip, text};

/// Holidays by the words for them: those of the United States, and the ones that everybody knows.
pub const HOLIDAYS: &[&str] = &[
    "thanksgiving",
    "thanksgiving day",
    "labor day",
    "memorial day",
    "presidents' day",
    "presidents day",
    "martin luther king day",
    "mlk day",
    "columbus day",
    "veterans day",
    "independence day",
    "juneteenth",
    "halloween",
    "valentine's day",
    "christmas",
    "christmas day",
    "christmas eve",
    "new year's day",
    "new year's eve",
    "new year's",
    "new year",
    "new years",
    "easter",
    "easter sunday",
    "easter monday",
];

const DAYS: &str = "yesterday today tomorrow monday tuesday wednesday thursday friday saturday sunday mon tue tues \
    wed thu thur thurs fri sat sun";
/// The first characters by which an abbreviated day is longer than its usual form.
const LONGER: &[&str] = &["tues", "thur", "thurs"];

/// The units of a distance in time.
const UNITS: &[&str] =
    &["minute", "minutes", "min", "mins", "hour", "hours", "day", "days", "week", "weeks", "month", "months"];

/// Parses a day at the start of the words. `is_introduced` is true after a preposition, without which words
/// such as `the 15th` or `Christmas` may be something else.
pub(super) fn day<'a>(words: &'a [Word], today: &str, is_introduced: bool) -> Option<(String, &'a [Word])> {
    words.first().filter(|first| !first.quoted)?;
    later(words, today)
        .or_else(|| distance(words))
        .or_else(|| named(words, today))
        .or_else(|| numeric::day(words, is_introduced, today))
        .or_else(|| dated_day(words, today))
        .or_else(|| end_of(words, today))
        .or_else(|| if is_introduced { holiday(words).or_else(|| nth(words)) } else { None })
}

/// Parses the day after a date or a holiday: `after Thanksgiving`, `the day after Dec 3`. A weekday is left over, since
/// `after Monday` may mean any later day.
fn later<'a>(words: &'a [Word], today: &str) -> Option<(String, &'a [Word])> {
    if let Some(rest) = after(words, "the day after tomorrow|day after tomorrow") {
        return Some(("in 2 days".to_owned(), rest));
    }
    let start = after(words, "the day after|day after|after")?;
    let (day, rest) =
        dated_day(start, today).or_else(|| numeric::day(start, false, today)).or_else(|| holiday(start))?;
    Some((format!("after {day}"), rest))
}

/// Parses `in two weeks`, `a week from now`, `in half an hour`.
fn distance(words: &[Word]) -> Option<(String, &[Word])> {
    if let Some(rest) = after(words, "in half an hour|half an hour from now") {
        return Some(("in 30 minutes".to_owned(), rest));
    }
    let is_in = words.first()?.is("in");
    let [number, unit, rest @ ..] = (if is_in { &words[1..] } else { words }) else { return None };
    let number = number.lower.parse::<u64>().ok().or_else(|| number_word(&number.lower)).filter(|_| !number.quoted)?;
    let rest = if is_in { skip(rest, "from now|from today|time") } else { after(rest, "from now|from today")? };
    unit.any(UNITS).then(|| (format!("in {number} {}", unit.lower), rest))
}

/// Parses `tomorrow`, `next Monday`, `this evening`. A date that follows a weekday is the day, unless it is
/// another weekday: `Tuesday, Dec 8`.
fn named<'a>(words: &'a [Word], today: &str) -> Option<(String, &'a [Word])> {
    let first = words.first()?;
    if first.is("this") && words.get(1).is_some_and(|part| part.any(super::PARTS_OF_DAY)) {
        return Some(("today".to_owned(), &words[1..]));
    }
    let named = skip(words, "next|this coming|the coming|this|coming");
    let (day, rest) = named.split_first().filter(|(day, _)| day.among(DAYS) && day.text.len() > 2)?;
    let is_weekday = !day.any(&["yesterday", "today", "tomorrow"]);
    let written = skip(skip(rest, ","), "the");
    if let Some((date, rest)) = dated_day(written, today).filter(|_| is_weekday && named.len() == words.len()) {
        return (date.starts_with(|c: char| !c.is_ascii_digit()) || falls_on(&day.text, &date)).then_some((date, rest));
    }
    // “Sun” and “Mon” may be ordinary words.
    let is_short = day.text.len() == 3;
    if is_short && named.len() == words.len() {
        let ends = rest.first().is_none_or(|next| {
            next.any(&["at", ",", "morning", "afternoon", "evening", "night", "noon", "please"])
                || next.text.contains(':')
                || next.lower.ends_with("am")
                || next.lower.ends_with("pm")
        });
        return ends.then(|| (day.text.clone(), rest));
    }
    let written = match () {
        () if day.any(LONGER) => day.text[..3].to_owned(),
        () if day.text.eq_ignore_ascii_case(&day.lower) => day.text.clone(),
        () => day.lower.clone(), // “tmrw”
    };
    let is_next = words.first().is_some_and(|first| first.is("next")) && is_weekday;
    Some((if is_next && falls_on(&written, today) { format!("next {written}") } else { written }, rest))
}

/// Returns true if a date, such as `2026-11-23`, is this weekday.
fn falls_on(weekday: &str, date: &str) -> bool {
    const SHIFT: [u32; 12] = [0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4];
    let part = |from: usize, to: usize| date.get(from..to).and_then(|part| part.parse::<u32>().ok());
    let (Some(year), Some(month), Some(day)) = (part(0, 4), part(5, 7), part(8, 10)) else { return false };
    let Some(shift) = (month as usize).checked_sub(1).and_then(|month| SHIFT.get(month)) else { return false };
    let year = if month < 3 { year.saturating_sub(1) } else { year };
    let of_week = (year + year / 4 - year / 100 + year / 400 + shift + day + 6) % 7; // from 0 for Monday
    let wanted = countersign_core::clock::WEEKDAYS.get(of_week as usize);
    wanted.is_some_and(|name| name.starts_with(&weekday.to_lowercase()[..]))
}

/// Parses a day of a month: `3 December 2026`, `Dec. 3rd`, `the first of December`.
fn dated_day<'a>(words: &'a [Word], today: &str) -> Option<(String, &'a [Word])> {
    let (month, number, rest) = month_and_day(words)?;
    let (year, rest) = match skip(rest, ",").split_first() {
        Some((year, left)) if year.text.len() == 4 && year.text.starts_with("20") && !year.quoted => {
            (year.text.parse::<u16>().ok(), left)
        }
        _ => (None, rest),
    };
    let day = match year.or_else(|| next_year(today, month, number)) {
        Some(year) => format!("{year:04}-{month:02}-{number:02}"),
        None => in_words(month, number),
    };
    Some((day, rest))
}

/// Returns a day of a month for which the year is not known: `December 3`.
fn in_words(month: u8, day: u8) -> String {
    let name = MONTHS.get(usize::from(month).saturating_sub(1)).copied().unwrap_or_default();
    let (first, rest) = name.split_at(name.len().min(1));
    format!("{}{rest} {day}", first.to_uppercase())
}

/// Parses a month and a day in either order, with or without `the` and `of`. Returns both numbers and the
/// remaining words.
pub fn month_and_day(words: &[Word]) -> Option<(u8, u8, &[Word])> {
    let start = skip(words, "the");
    month_first(start).or_else(|| day_first(start))
}

/// Parses two days of one month: `Dec 1 to 18`, `Dec 1-18`, `1 to 18 December`. Returns the month with the first
/// day, the last day, and the remaining words.
pub(super) fn days_of_one_month(words: &[Word]) -> Option<((u8, u8), u8, &[Word])> {
    const UNTIL: &str = "to|until|till|through|thru|and|–|-|—";
    let start = skip(words, "the");
    if let Some((first, rest)) = start.split_first()
        && let Some(month) = month(first)
    {
        let (number, rest) = skip(rest, "the").split_first()?;
        if let Some((from, until)) = number.text.split_once(['-', '–']) {
            return Some(((month, day_number(from)?), day_number(until)?, rest))
                .filter(|((_, from), until, _)| from < until);
        }
        let from = day_number(&number.lower)?;
        let (last, rest) = skip(after(rest, UNTIL)?, "the").split_first()?;
        let until = day_number(&last.lower).filter(|until| *until > from)?;
        return rest.first().is_none_or(|next| self::month(next).is_none()).then_some(((month, from), until, rest));
    }
    let (number, rest) = start.split_first()?;
    let (from, until, rest) = match number.text.split_once(['-', '–']) {
        Some((from, until)) => (day_number(from)?, day_number(until)?, rest),
        None => {
            let (last, rest) = skip(after(rest, UNTIL)?, "the").split_first()?;
            (day_number(&number.lower)?, day_number(&last.lower)?, rest)
        }
    };
    let (named, rest) = skip(rest, "of").split_first()?;
    Some(((month(named)?, from), until, rest)).filter(|((_, from), until, _)| from < until)
}

/// Returns the next such date. If `today` is not known, it stays in words.
pub(super) fn dated(month: u8, day: u8, today: &str) -> Option<String> {
    Some(match next_year(today, month, day) {
        Some(year) => format!("{year:04}-{month:02}-{day:02}"),
        None => in_words(month, day),
    })
}

/// Parses the end or the beginning of a period: `end of the month`, `end of December`, `beginning of January`.
fn end_of<'a>(words: &'a [Word], today: &str) -> Option<(String, &'a [Word])> {
    let start = skip(words, "the|at the");
    if let Some(named) = after(start, "beginning of|start of") {
        let (first, rest) = named.split_first()?;
        return dated(month(first)?, 1, today).map(|day| (day, rest));
    }
    let of = after(start, "end of|last day of")?;
    for unit in ["week", "month", "year"] {
        let rest = after(of, &format!("the {unit}|this {unit}|{unit}"));
        if let Some(rest) = rest {
            return Some((format!("end of {unit}"), rest));
        }
        if let Some(rest) = after(of, &format!("next {unit}")) {
            return Some((format!("end of next {unit}"), rest));
        }
    }
    let (first, rest) = of.split_first()?;
    month(first).map(|_| (format!("end of {}", first.lower), rest))
}

fn holiday(words: &[Word]) -> Option<(String, &[Word])> {
    let start = skip(words, "the");
    (1..=start.len().min(4)).rev().find_map(|length| {
        let (named, rest) = start.split_at(length);
        let is_one =
            HOLIDAYS.contains(&lower(named).replace('’', "'").as_str()) && named.iter().all(|word| !word.quoted);
        is_one.then(|| (text(named), rest))
    })
}

/// Parses `the 15th`: the next day with this number.
fn nth(words: &[Word]) -> Option<(String, &[Word])> {
    let (number, rest) = after(words, "the")?.split_first()?;
    let is_ordinal = number.lower.starts_with(|c: char| c.is_ascii_digit())
        && ["st", "nd", "rd", "th"].iter().any(|suffix| number.lower.ends_with(suffix));
    let ends = rest.first().is_none_or(|next| !next.any(&["one", "group", "class", "condition", "user", "school"]));
    let day = day_number(&number.lower).filter(|_| is_ordinal && ends && !number.quoted)?;
    Some((format!("the {day}{}", &number.lower[number.lower.len() - 2..]), rest))
}

/// Parses `Dec 3` and `December the 3rd`.
fn month_first(words: &[Word]) -> Option<(u8, u8, &[Word])> {
    let (first, rest) = words.split_first()?;
    let month = month(first)?;
    let (number, rest) = skip(rest, "the").split_first()?;
    Some((month, day_number(&number.lower)?, rest))
}

/// Parses `3 December` and `the first of December`.
fn day_first(words: &[Word]) -> Option<(u8, u8, &[Word])> {
    let (number, rest) = words.split_first()?;
    let number = day_number(&number.lower)?;
    let (first, rest) = skip(rest, "of").split_first()?;
    Some((month(first)?, number, rest))
}

pub(super) fn month(word: &Word) -> Option<u8> {
    let written = word.lower.trim_end_matches('.');
    let place = MONTHS.iter().position(|month| {
        *month == written || (written.len() >= 3 && written.len() <= 4 && month.starts_with(written))
    })?;
    u8::try_from(place + 1).ok().filter(|_| !word.quoted)
}

/// Parses `3`, `3rd` and `third`.
fn day_number(word: &str) -> Option<u8> {
    const ORDINALS: [&str; 12] = [
        "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
        "twelfth",
    ];
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let suffix = &word[digits.len()..];
    let number = match digits.parse::<u8>() {
        Ok(number) if matches!(suffix, "" | "st" | "nd" | "rd" | "th") => Some(number),
        _ => ORDINALS.iter().position(|ordinal| *ordinal == word).and_then(|place| u8::try_from(place + 1).ok()),
    };
    number.filter(|number| (1..=31).contains(number))
}

/// Returns the year in which this day next occurs, on or after `today`.
fn next_year(today: &str, month: u8, day: u8) -> Option<u16> {
    let mut parts = today.splitn(3, '-');
    let year: u16 = parts.next()?.parse().ok()?;
    let now: (u8, u8) = (parts.next()?.parse().ok()?, parts.next()?.get(..2)?.parse().ok()?);
    Some(if (month, day) < now { year + 1 } else { year })
}
