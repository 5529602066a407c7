//! Dates and times as people write them: `on 3 December 2026 at 9am`, `next Monday 9:00`, `in two weeks`, `the first of
//! December`.
//!
//! A day with a month becomes the next such date, in the form `2026-12-03`. Other moments are kept as
//! words, which the capability resolves with its clock. Anything beyond a day and a time (“evening”,
//! another time zone) is left over, so that it is reported rather than ignored.

use countersign_core::clock::MONTHS;

use super::words::{Word, after, skip};

const DAYS: &[&str] = &[
    "yesterday",
    "today",
    "tomorrow",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "mon",
    "tue",
    "wed",
    "thu",
    "fri",
    "sat",
    "sun",
];

/// Parses a moment at the start of the words, with an optional preposition before it. Returns the
/// moment, true if it is the end of a period, and the remaining words.
pub fn moment<'a>(words: &'a [Word], today: &str) -> Option<(String, bool, &'a [Word])> {
    const FROM: &str = "starting on|starting from|starting|beginning on|beginning|from|on|for|at|as of";
    const TO: &str = "until|till|up to|through|ending on|ending|to|by";
    let (until, start) = match (after(words, TO), after(words, FROM)) {
        (Some(start), _) => (true, start),
        (None, Some(start)) => (false, start),
        (None, None) => (false, words),
    };
    let (day, rest) = day(start, today)?;
    let (time, rest) = match time(rest) {
        Some((time, rest)) => (Some(time), rest),
        None => (None, rest),
    };
    let rest = match &time {
        Some(_) => skip(rest, "utc"),
        None => rest,
    };
    Some((time.map_or(day.clone(), |time| format!("{day} {time}")), until, rest))
}

/// Parses a day at the start of the words.
fn day<'a>(words: &'a [Word], today: &str) -> Option<(String, &'a [Word])> {
    let (first, rest) = words.split_first().filter(|(first, _)| !first.quoted)?;
    if first.is("in") {
        let [number, unit, left @ ..] = rest else { return None };
        let number = number.lower.parse::<u64>().ok().or_else(|| number_word(&number.lower))?;
        return unit.any(&["day", "days", "week", "weeks"]).then(|| (format!("in {number} {}", unit.lower), left));
    }
    let named = skip(words, "next|this|coming|this coming");
    if let Some((day, left)) = named.split_first().filter(|(day, _)| day.any(DAYS) && day.text.len() > 2) {
        // “Sun” and “Mon” may be ordinary words.
        let short = day.text.len() == 3;
        return (!short || named.len() == words.len()).then(|| (day.text.clone(), left)).filter(|_| {
            !short
                || left
                    .first()
                    .is_none_or(|next| next.any(&["at", ","]) || next.text.contains(':') || next.text.ends_with('m'))
        });
    }
    let digits = first.text.chars().filter(char::is_ascii_digit).count();
    if digits >= 6 && first.text.matches('-').count() == 2 {
        let (date, clock) =
            first.text.split_once('T').map_or((first.text.as_str(), None), |(date, clock)| (date, Some(clock)));
        return clock.is_none().then(|| (date.to_owned(), rest)).or_else(|| Some((first.text.clone(), rest)));
    }
    let start = skip(words, "the");
    let (month, number, rest) = month_first(start).or_else(|| day_first(start))?;
    let (year, rest) = match skip(rest, ",").split_first() {
        Some((year, left)) if year.text.len() == 4 && year.text.starts_with("20") => {
            (year.text.parse::<u16>().ok(), left)
        }
        _ => (None, rest),
    };
    let year = year.or_else(|| next_year(today, month, number))?;
    Some((format!("{year:04}-{month:02}-{number:02}"), rest))
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

fn month(word: &Word) -> Option<u8> {
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

/// Parses a time at the start of the words: `at 9`, `9:00`, `9 am` or `noon`.
pub fn time(words: &[Word]) -> Option<(String, &[Word])> {
    let start = skip(words, ", at|,|at");
    let at = words.len() != start.len() && after(words, ", at|at").is_some();
    let (clock, rest) = start.split_first().filter(|(clock, _)| !clock.quoted)?;
    if clock.any(&["noon", "midnight"]) {
        return Some((clock.lower.clone(), rest));
    }
    let digits = clock.lower.trim_end_matches("am").trim_end_matches("pm");
    let (hour, minute) = digits.split_once([':', '.']).unwrap_or((digits, "00"));
    let is_valid = |part: &str, max: u8| part.len() <= 2 && part.parse::<u8>().is_ok_and(|number| number <= max);
    if !is_valid(hour, 24) || !is_valid(minute, 59) {
        return None;
    }
    let half = rest.first().filter(|half| half.any(&["am", "pm", "a.m", "p.m"]));
    let is_clearly_a_time = at || digits.contains(':') || digits.len() < clock.lower.len() || half.is_some();
    if !is_clearly_a_time {
        return None;
    }
    let written = clock.lower.replace('.', ":");
    Some(match half {
        Some(half) => (format!("{written}{}", half.lower.replace('.', "")), &rest[1..]),
        None => (written, skip(rest, "o'clock|oclock")),
    })
}

/// Parses a spelled-out number up to one hundred.
pub fn number_word(word: &str) -> Option<u64> {
    const SMALL: &str = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen \
        seventeen eighteen nineteen";
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

#[cfg(test)]
mod tests {
    use super::{
        super::words::{text, words},
        moment,
    };

    #[test]
    fn moments_are_recognised_with_their_prepositions() {
        for (said, expected) in [
            ("on 3 December 2026 at 9am", "2026-12-03 9am · "),
            ("Dec 10, 8:30 please", "2026-12-10 8:30 · please"),
            ("next Monday 9am", "Monday 9am · "),
            ("in two weeks", "in 2 weeks · "),
            ("on the first of December", "2026-12-01 · "),
            ("to Dec 18", "until 2026-12-18 · "),
            ("on friday evening", "friday · evening"),
            ("tomorrow at 8", "tomorrow 8 · "),
            ("tomorrow at 8 pm UTC sharp", "tomorrow 8pm · sharp"),
            ("on January 3rd", "2027-01-03 · "),
            ("2027-01-15 09:00", "2027-01-15 09:00 · "),
            ("after Thanksgiving", "none"),
            ("next week", "none"),
            ("may be", "none"),
        ] {
            let words = words(said);
            let found = moment(&words, "2026-11-22")
                .map(|(when, until, rest)| format!("{}{when} · {}", if until { "until " } else { "" }, text(rest)));
            assert_eq!(found.as_deref().unwrap_or("none"), expected, "{said}");
        }
    }
}
