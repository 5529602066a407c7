//! Dates in digits: `2026-12-03`, `2026/12/03`, `13.12.2026`, `12/25/2026`; and those with two meanings, such as
//! `12/03/2026`.

use countersign_core::clock::MONTHS;

use crate::words::Word;

/// A date in digits that may mean two days.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AmbiguousDate {
    /// The date as typed.
    pub written: String,
    /// The two days: the month first, then the day first, such as `December 3, 2026`, or `December 3` without a year.
    pub meanings: [String; 2],
}

impl AmbiguousDate {
    /// Returns true if a text contains the first meaning, in words or as `2026-12-03`.
    pub fn is_first_in(&self, text: &str) -> bool {
        let Some((month, day, year)) = month_and_day(&self.written) else { return false };
        let year = year.map_or_else(String::new, |year| format!("{year:04}"));
        text.contains(&format!("{year}-{month:02}-{day:02}")) || year.is_empty() && text.contains(&self.meanings[0])
    }
}

/// Returns the first date of a text that has two meanings. Without a year, only after a preposition or at the start, since
/// `1/2` may be weights.
pub fn ambiguous(text: &str) -> Option<AmbiguousDate> {
    const BEFORE: &[&str] = &["on", "until", "till", "by", "from", "starting", "before", "after", "through"];
    let words: Vec<&str> = text.split_whitespace().collect();
    (0..words.len()).find_map(|at| {
        let written = words[at].trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let (first, second, year) = month_and_day(written)?;
        let is_introduced = at == 0 || BEFORE.contains(&words[at - 1].to_lowercase().as_str());
        let both = (1..=12).contains(&first) && (1..=12).contains(&second) && first != second;
        if !both || (year.is_none() && !is_introduced) {
            return None;
        }
        let day = |month: u16, day: u16| {
            let name = MONTHS.get(usize::from(month) - 1)?;
            let (initial, rest) = name.split_at(1);
            let year = year.map_or_else(String::new, |year| format!(", {year}"));
            Some(format!("{}{rest} {day}{year}", initial.to_uppercase()))
        };
        let meanings = [day(first, second)?, day(second, first)?];
        Some(AmbiguousDate { written: written.to_owned(), meanings })
    })
}

/// Returns the numbers of `12/03/2026` or `12/3`: the month, the day and the year, if it is the month that comes first.
fn month_and_day(written: &str) -> Option<(u16, u16, Option<u16>)> {
    if let Some([first, second, year]) = numbers(written, '/') {
        return Some((first, second, Some(full_year(year)?)));
    }
    let (first, second) = written.split_once('/')?;
    Some((first.parse().ok()?, second.parse().ok()?, None))
}

/// Parses a date in digits at the start of the words. Without a year, only after a preposition, since `12/88` may be
/// weights.
pub(super) fn day<'a>(words: &'a [Word], is_introduced: bool, today: &str) -> Option<(String, &'a [Word])> {
    let (first, rest) = words.split_first()?;
    let written = first.text.as_str();
    let digits = written.chars().filter(char::is_ascii_digit).count();
    if digits >= 6 && written.matches('-').count() == 2 && !written.starts_with('-') {
        let is_iso = written.split('-').next().is_some_and(|year| year.len() == 4);
        return is_iso.then(|| (first.text.clone(), rest));
    }
    let iso = |year: u16, month: u16, day: u16| {
        let is_valid = (1..=12).contains(&month) && (1..=31).contains(&day);
        is_valid.then(|| format!("{year:04}-{month:02}-{day:02}"))
    };
    if let Some([year, month, day]) = numbers(written, '/').filter(|[year, ..]| *year >= 2000) {
        return iso(year, month, day).map(|date| (date, rest));
    }
    if let Some([day, month, year]) = numbers(written, '.') {
        return full_year(year).and_then(|year| iso(year, month, day)).map(|date| (date, rest));
    }
    if let Some([first, second, year]) = numbers(written, '/') {
        let year = full_year(year)?;
        return match (first > 12, second > 12) {
            (false, true) => iso(year, first, second).map(|date| (date, rest)),
            (true, false) => iso(year, second, first).map(|date| (date, rest)),
            (false, false) if first == second => iso(year, first, second).map(|date| (date, rest)),
            // Kept as it is: the capability asks which day is meant.
            (false, false) => iso(year, first, second).map(|_| (written.to_owned(), rest)),
            (true, true) => None,
        };
    }
    if let Some((number, month)) = written.split_once('.').filter(|_| is_introduced)
        && let (Ok(number @ 1..=31), Ok(month @ 1..=12)) = (number.parse::<u8>(), month.parse::<u8>())
        && (number > 12 || first.tail.starts_with('.'))
    {
        return super::days::dated(month, number, today).map(|date| (date, rest));
    }
    let short = written.split_once('/').filter(|_| is_introduced)?;
    let (first, second): (u8, u8) = (short.0.parse().ok()?, short.1.parse().ok()?);
    let (month, day) = match (first > 12, second > 12) {
        (false, true) => (first, second),
        (true, false) => (second, first),
        (false, false) if first == second => (first, second),
        _ => return None,
    };
    let is_valid = (1..=12).contains(&month) && (1..=31).contains(&day);
    super::days::dated(month, day, today).filter(|_| is_valid).map(|date| (date, rest))
}

/// Returns three numbers divided by a mark.
fn numbers(text: &str, mark: char) -> Option<[u16; 3]> {
    let mut parts = text.split(mark).map(|part| {
        let is_number = (1..=4).contains(&part.len()) && part.chars().all(|c| c.is_ascii_digit());
        if is_number { part.parse().ok() } else { None }
    });
    let found = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(found)
}

/// Returns a year with four digits: `26` is 2026.
fn full_year(year: u16) -> Option<u16> {
    match year {
        0..=99 => Some(2000 + year),
        2000..=2199 => Some(year),
        _ => None,
    }
}
