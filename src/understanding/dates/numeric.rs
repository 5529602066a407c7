//! Dates in digits: `2026-12-03`, `2026/12/03`, `13.12.2026`, `12/25/2026`; and those with two meanings, such as
//! `12/03/2026`.

use countersign_core::clock::MONTHS;

use super::super::words::Word;

/// A date in digits that may mean two days.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AmbiguousDate {
    /// The date as typed.
    pub written: String,
    /// The two days: the month first, then the day first, such as `December 3, 2026`.
    pub meanings: [String; 2],
}

impl AmbiguousDate {
    /// Returns the first meaning as `2026-12-03`.
    pub fn first_as_iso(&self) -> String {
        let [month, day, year] = numbers(&self.written, '/').unwrap_or_default();
        format!("{:04}-{month:02}-{day:02}", full_year(year).unwrap_or_default())
    }
}

/// Returns the first date of a text that has two meanings.
pub fn ambiguous(text: &str) -> Option<AmbiguousDate> {
    text.split_whitespace().find_map(|word| {
        let written = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let [first, second, year] = numbers(written, '/')?;
        let both = first <= 12 && second <= 12 && first != second && first > 0 && second > 0;
        let year = full_year(year).filter(|_| both)?;
        let day = |month: u16, day: u16| {
            let name = MONTHS.get(usize::from(month) - 1)?;
            let (initial, rest) = name.split_at(1);
            Some(format!("{}{rest} {day}, {year}", initial.to_uppercase()))
        };
        let meanings = [day(first, second)?, day(second, first)?];
        Some(AmbiguousDate { written: written.to_owned(), meanings })
    })
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
