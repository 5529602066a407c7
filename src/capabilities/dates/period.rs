//! Periods in the past, as people say them: “today”, “this week”, “since 2026-11-01”.

use countersign_core::clock::{MONTHS, WEEKDAYS};
use jiff::{
    ToSpan,
    civil::{Date, Weekday},
};

/// A period of days, first and last included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// The first day.
    pub from: Date,
    /// The last day.
    pub to: Date,
}

impl Period {
    /// Returns true if a moment in the platform's format is within the period.
    pub fn contains(&self, moment: &str) -> bool {
        moment.get(..10).and_then(|day| day.parse().ok()).is_some_and(|day| self.has(day))
    }

    /// Returns true if a day is within the period.
    pub fn has(&self, day: Date) -> bool {
        self.from <= day && day <= self.to
    }
}

/// Parses a period, relative to `today`. A date without a year is the last one up to today.
pub fn parse(words: &str, today: Date) -> Option<Period> {
    let plain = words.trim().to_lowercase().replace(',', " ");
    let words: Vec<&str> = plain.split_whitespace().filter(|word| !matches!(*word, "the" | "in" | "on")).collect();
    let until_today = |from: Date| Some(Period { from, to: today });
    let single = |day: Date| Some(Period { from: day, to: day });
    let monday = today.checked_sub(i64::from(today.weekday().to_monday_zero_offset()).days()).ok()?;
    match words.as_slice() {
        ["today"] => single(today),
        ["yesterday"] => single(today.yesterday().ok()?),
        ["recently" | "lately"] => until_today(today.checked_sub(7.days()).ok()?),
        ["this", "week"] => until_today(monday),
        ["last", "week"] => {
            Some(Period { from: monday.checked_sub(7.days()).ok()?, to: monday.checked_sub(1.days()).ok()? })
        }
        ["this", "month"] => until_today(today.first_of_month()),
        ["this", "year"] => until_today(today.first_of_year()),
        ["last", "month"] => {
            let end = today.first_of_month().yesterday().ok()?;
            Some(Period { from: end.first_of_month(), to: end })
        }
        ["last" | "past", number, unit] => {
            let number: i64 = number.parse().ok().filter(|number| (0..=3_660).contains(number))?;
            let days = match unit.trim_end_matches('s') {
                "day" => number,
                "week" => number * 7,
                "month" => number * 31,
                _ => return None,
            };
            until_today(today.checked_sub(days.days()).ok()?)
        }
        ["last", "year"] => {
            let end = today.first_of_year().yesterday().ok()?;
            Some(Period { from: end.first_of_year(), to: end })
        }
        ["between", rest @ ..] if rest.contains(&"and") => range(rest, &["and"], today),
        ["from", rest @ ..] if rest.iter().any(|word| TO.contains(word)) => range(rest, TO, today),
        ["since" | "after" | "from", rest @ ..] => until_today(parse(&rest.join(" "), today)?.from),
        ["before" | "until", rest @ ..] => {
            let end = parse(&rest.join(" "), today)?.from;
            Some(Period { from: Date::MIN, to: end.yesterday().ok()? })
        }
        ["last", name] | [name] if weekday(name).is_some() => single(
            today
                .nth_weekday(-1, weekday(name)?)
                .ok()
                .filter(|_| today.weekday() != weekday(name).unwrap_or(Weekday::Monday))
                .unwrap_or(today),
        ),
        [name] if month(name).is_some() => {
            let month = month(name)?;
            whole_month(if month > today.month() { today.year() - 1 } else { today.year() }, month)
        }
        [number] if number.len() == 4 && number.parse::<i16>().is_ok() => {
            let first = Date::new(number.parse().ok()?, 1, 1).ok()?;
            Some(Period { from: first, to: first.last_of_year() })
        }
        [date] => single(date.parse().ok()?),
        [name, number] if number.len() == 4 && month(name).is_some() => whole_month(number.parse().ok()?, month(name)?),
        [one, other, year] => {
            let (month, number) = month(one).map(|m| (m, other)).or_else(|| month(other).map(|m| (m, one)))?;
            single(Date::new(year.parse().ok()?, month, day_of_month(number)?).ok()?)
        }
        [one, other] => {
            let (month, number) = month(one).map(|m| (m, other)).or_else(|| month(other).map(|m| (m, one)))?;
            let number = day_of_month(number)?;
            let this_year = Date::new(today.year(), month, number).ok()?;
            match this_year > today {
                true => single(Date::new(today.year() - 1, month, number).ok()?),
                false => single(this_year),
            }
        }
        _ => None,
    }
}

/// The words between the two dates of a range.
const TO: &[&str] = &["to", "until", "till"];

/// Returns the period from the first day of one period to the last day of another, with one of
/// `separators` between them. If that would end before it starts, it ends a year later: in a range
/// that has begun, the second date may be in the future.
fn range(words: &[&str], separators: &[&str], today: Date) -> Option<Period> {
    let middle = words.iter().position(|word| separators.contains(word))?;
    let (from, last) =
        (parse(&words[..middle].join(" "), today)?.from, parse(&words[middle + 1..].join(" "), today)?.to);
    let to = if last < from { last.checked_add(1.year()).ok()? } else { last };
    (from <= to).then_some(Period { from, to })
}

fn whole_month(year: i16, month: i8) -> Option<Period> {
    let first = Date::new(year, month, 1).ok()?;
    Some(Period { from: first, to: first.last_of_month() })
}

/// Parses `3` or `3rd`.
fn day_of_month(word: &str) -> Option<i8> {
    word.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse().ok()
}

fn weekday(word: &str) -> Option<Weekday> {
    let at = WEEKDAYS.iter().position(|name| *name == word)?;
    Weekday::from_monday_zero_offset(i8::try_from(at).ok()?).ok()
}

fn month(word: &str) -> Option<i8> {
    let at = MONTHS.iter().position(|name| word.len() >= 3 && name.starts_with(word))?;
    i8::try_from(at + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_parsed() {
        let today = Date::constant(2026, 11, 20); // a Friday
        for (words, period) in [
            ("today", "2026-11-20 2026-11-20"),
            ("yesterday", "2026-11-19 2026-11-19"),
            ("lately", "2026-11-13 2026-11-20"),
            ("this week", "2026-11-16 2026-11-20"),
            ("last week", "2026-11-09 2026-11-15"),
            ("this month", "2026-11-01 2026-11-20"),
            ("last month", "2026-10-01 2026-10-31"),
            ("in the last 3 days", "2026-11-17 2026-11-20"),
            ("since 2026-11-01", "2026-11-01 2026-11-20"),
            ("since yesterday", "2026-11-19 2026-11-20"),
            ("since Monday", "2026-11-16 2026-11-20"),
            ("friday", "2026-11-20 2026-11-20"),
            ("on November 3rd", "2026-11-03 2026-11-03"),
            ("since 1 Dec", "2025-12-01 2026-11-20"),
            ("since last month", "2026-10-01 2026-11-20"),
            ("between 1 May and 31 May", "2026-05-01 2026-05-31"),
            ("from 1 Nov to 30 Nov", "2026-11-01 2026-11-30"),
            ("May", "2026-05-01 2026-05-31"),
            ("December 2025", "2025-12-01 2025-12-31"),
            ("last year", "2025-01-01 2025-12-31"),
            ("on 3 May 2025", "2025-05-03 2025-05-03"),
            ("2026-02-30", "none"),
            ("soon", "none"),
        ] {
            let found = parse(words, today).map_or("none".to_owned(), |found| format!("{} {}", found.from, found.to));
            assert_eq!(found, period, "{words}");
        }
        assert!(parse("today", today).unwrap().contains("2026-11-20T10:00:00.000Z"));
        assert!(!parse("before today", today).unwrap().contains("2026-11-20T10:00:00.000Z"));
    }
}
