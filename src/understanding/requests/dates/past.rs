//! Periods in the past: `today`, `last 3 days`, `since Monday`. They are kept as words.

use countersign_core::clock::MONTHS;

use super::moment;
use crate::words::{Word, after, skip, text};

/// Parses a period that needs no “since” or the like. Returns it and the words that follow.
pub fn fixed_period(words: &[Word]) -> Option<(String, &[Word])> {
    let named =
        after(words, "today|yesterday|recently|lately|this week|last week|this month|last month|this year|last year");
    let counted = || {
        let rest = after(words, "in the last|in the past|within the last|the last|last|during the last")?;
        let (number, unit) = (rest.first()?, rest.get(1)?);
        let counts =
            number.text.parse::<u32>().is_ok() && unit.any(&["day", "days", "week", "weeks", "month", "months"]);
        counts.then(|| &rest[2..])
    };
    let month = || {
        let (first, rest) = after(words, "in|during")?.split_first()?;
        let is_month = first.lower.len() >= 3 && MONTHS.iter().any(|month| month.starts_with(&first.lower));
        let is_year = |word: &Word| word.text.len() == 4 && word.text.parse::<u16>().is_ok();
        match rest.first() {
            Some(year) if is_month && is_year(year) => Some(&rest[1..]),
            _ => (is_month || is_year(first)).then_some(rest),
        }
    };
    let day = || {
        let (first, rest) = words.split_first()?;
        (first.text.len() == 10 && first.text.matches('-').count() == 2 && first.text.starts_with("20")).then_some(rest)
    };
    let rest = named.or_else(counted).or_else(month).or_else(day)?;
    Some((plain_period(&words[..words.len() - rest.len()]), rest))
}

/// Returns the period without its preposition and article: `last 3 days` for `in the last 3 days`.
pub fn plain_period(words: &[Word]) -> String {
    let words = skip(words, "in the|in|within the|during the|during|the");
    text(match words.first() {
        Some(first) if first.is("on") => &words[1..],
        _ => words,
    })
}

/// Divides words that end with a period in the past, or with a day, into those before it and the period.
pub fn ending_in_period<'a>(words: &'a [Word], today: &str) -> (&'a [Word], Option<String>) {
    let period = |words: &'a [Word]| {
        let fixed = || fixed_period(words).filter(|(_, rest)| rest.is_empty()).map(|(period, _)| period);
        let since = || {
            let start = after(words, "since")?;
            let is_day = moment(start, today).is_some_and(|(.., rest)| rest.is_empty());
            (is_day || fixed_period(start).is_some_and(|(_, rest)| rest.is_empty())).then(|| text(words))
        };
        let on = || moment(words, today).filter(|(.., rest)| words[0].is("on") && rest.is_empty());
        fixed().or_else(since).or_else(|| on().map(|_| plain_period(words)))
    };
    let found = (1..words.len()).find_map(|at| Some((&words[..at], Some(period(&words[at..])?))));
    found.unwrap_or((words, None))
}
