//! Future moments as people write them: `2027-01-15 09:00`, `Friday 9:00`, `tomorrow at noon`, `in 3 days`. All are in
//! UTC; the card shows how they were understood.

use countersign_core::{
    clock,
    reply::{Reply, Text},
};
use countersign_graph::action::{ErrorKind, PrepareError};
use jiff::{
    Timestamp, ToSpan as _, Zoned,
    civil::{self, Date, Time, Weekday},
    tz::TimeZone,
};

use super::parameters::refused;

/// The maximum number of characters of a person's words that are quoted in a reply.
const MAX_QUOTED: usize = 60;

/// Parses a future moment into the platform's format. The default zone is UTC, the default time midnight.
pub fn moment(given: &str, now: clock::Timestamp) -> Result<String, PrepareError> {
    let refuse = |reply| Err(refused(ErrorKind::Validation, reply));
    let words = given.trim().trim_end_matches("UTC").trim_end();
    let civil = words.parse::<civil::DateTime>().or_else(|_| words.parse::<Date>().map(civil::DateTime::from));
    let civil = civil.ok().or_else(|| relative(&words.to_lowercase(), now));
    let in_utc = |moment: civil::DateTime| moment.to_zoned(TimeZone::UTC).map(|zoned: Zoned| zoned.timestamp()).ok();
    let Some(moment) = words.parse::<Timestamp>().ok().or_else(|| civil.and_then(in_utc)) else {
        return refuse(no_date(given));
    };
    match moment.as_millisecond() > now.millis() {
        true => Ok(format!("{moment:.3}")),
        false => refuse(past_date(&moment_in_words(&format!("{moment:.3}")))),
    }
}

/// Parses the end of a period: a day without a time means 23:59.
pub fn end_of(given: &str, now: clock::Timestamp) -> Result<String, PrepareError> {
    moment(&format!("{} 23:59", given.trim()), now).or_else(|_| moment(given, now))
}

/// Formats a moment of the platform for people: `2027-01-15 09:00 UTC`.
pub fn moment_in_words(moment: &str) -> String {
    match moment.parse::<Timestamp>() {
        Ok(moment) => moment.strftime("%Y-%m-%d %H:%M UTC").to_string(),
        Err(_) => moment.to_owned(),
    }
}

/// Parses a day relative to today, and optionally a time.
fn relative(words: &str, now: clock::Timestamp) -> Option<civil::DateTime> {
    let words = words.replace(',', " ");
    let words: Vec<&str> = words.split_whitespace().filter(|word| !matches!(*word, "on" | "at" | "next")).collect();
    let today = day(now);
    let (days, time) = match words.as_slice() {
        ["in", number, unit, time @ ..] => {
            let number: i64 = number.parse().ok().filter(|number| (0..=3_660).contains(number))?;
            match unit.trim_end_matches('s') {
                "day" => (number, time),
                "week" => (number * 7, time),
                _ => return None,
            }
        }
        ["yesterday", time @ ..] => (-1, time), // refused later, as a date in the past
        ["today", time @ ..] => (0, time),
        ["tomorrow", time @ ..] => (1, time),
        [day, time @ ..] if let Ok(date) = day.parse::<Date>() => return Some(date.to_datetime(clock_time(time)?)),
        [day, time @ ..] => {
            let weekday =
                clock::WEEKDAYS.iter().position(|name| name == day || (day.len() == 3 && name.starts_with(day)))?;
            let weekday = Weekday::from_monday_zero_offset(i8::try_from(weekday).ok()?).ok()?;
            let ahead = i64::from(today.weekday().until(weekday));
            let passed = |moment: civil::DateTime| {
                let at = moment.to_zoned(TimeZone::UTC).map(|zoned| zoned.timestamp().as_millisecond());
                at.is_ok_and(|at| at <= now.millis())
            };
            (if ahead == 0 && passed(today.to_datetime(clock_time(time)?)) { 7 } else { ahead }, time)
        }
        [] => return None,
    };
    Some(today.checked_add(days.days()).ok()?.to_datetime(clock_time(time)?))
}

/// Parses `9:00`, `9`, `9am`, `9:30 pm`, `noon`; no words mean midnight.
fn clock_time(words: &[&str]) -> Option<Time> {
    let words = words.concat();
    let (digits, afternoon) = match words.as_str() {
        "" | "midnight" => return Some(Time::midnight()),
        "noon" => return Time::new(12, 0, 0, 0).ok(),
        words => match (words.strip_suffix("am"), words.strip_suffix("pm")) {
            (Some(digits), _) => (digits, Some(false)),
            (_, Some(digits)) => (digits, Some(true)),
            _ => (words, None),
        },
    };
    let (hour, minute) = digits.split_once(':').unwrap_or((digits, "0"));
    let (hour, minute): (i8, i8) = (hour.parse().ok()?, minute.parse().ok()?);
    let hour = match afternoon {
        None => hour,
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some(afternoon) => hour % 12 + if afternoon { 12 } else { 0 },
    };
    Time::new(hour, minute, 0, 0).ok()
}

/// Returns the day of a moment, in UTC.
pub fn day(at: clock::Timestamp) -> Date {
    Timestamp::from_millisecond(at.millis()).unwrap_or_default().to_zoned(TimeZone::UTC).date()
}

/// Returns a person's words, shortened.
fn shortened(asked: &str) -> String {
    match asked.chars().count() {
        0..=MAX_QUOTED => asked.to_owned(),
        _ => asked.chars().take(MAX_QUOTED).chain(['…']).collect(),
    }
}

/// Returns the reply for a date that cannot be read.
fn no_date(asked: &str) -> Reply {
    Reply::text(Text::new().plain("I cannot read “").bold(shortened(asked)).plain("” as a date."))
        .hint("Write it as 2027-01-15 09:00, or Friday 9:00. I take it as UTC.")
}

/// Returns the reply for a date in the past.
fn past_date(when: &str) -> Reply {
    Reply::text(format!("{when} is over. It has to be a moment to come."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_as_people_say_them() {
        let now = clock::Timestamp("2026-11-18T10:00:00Z".parse::<Timestamp>().unwrap().as_millisecond()); // a Wednesday
        let meant = |words: &str| moment(words, now).ok().map(|moment| moment_in_words(&moment));
        for (words, meaning) in [
            ("2027-01-15", "2027-01-15 00:00 UTC"),
            ("2027-01-15 09:00 UTC", "2027-01-15 09:00 UTC"),
            ("2027-01-15T09:00:00+01:00", "2027-01-15 08:00 UTC"),
            ("2027-01-15 9:00", "2027-01-15 09:00 UTC"),
            ("2027-01-15 9pm", "2027-01-15 21:00 UTC"),
            ("Friday 9:00", "2026-11-20 09:00 UTC"),
            ("next fri at 9:30 pm", "2026-11-20 21:30 UTC"),
            ("Wednesday 9:00", "2026-11-25 09:00 UTC"),
            ("Wednesday 12am", "2026-11-25 00:00 UTC"),
            ("wednesday at 11", "2026-11-18 11:00 UTC"),
            ("tomorrow, noon", "2026-11-19 12:00 UTC"),
            ("in 2 weeks", "2026-12-02 00:00 UTC"),
        ] {
            assert_eq!(meant(words).as_deref(), Some(meaning), "{words}");
        }
        let end = |words: &str| end_of(words, now).ok().map(|moment| moment_in_words(&moment));
        assert_eq!(end("Friday").as_deref(), Some("2026-11-20 23:59 UTC"));
        assert_eq!(end("today").as_deref(), Some("2026-11-18 23:59 UTC"));
        assert_eq!(end("2027-01-15 09:00").as_deref(), Some("2027-01-15 09:00 UTC"));
        for words in ["today 9:00", "yesterday", "Friday 25:00", "Friday 13pm", "2026-11-18 10:00", "soon", ""] {
            assert_eq!(meant(words), None, "{words}");
        }
    }
}
