//! Future moments as people write them: `2027-01-15 09:00`, `Friday 9:00`, `tomorrow at noon`, `in 3 days`, `Dec 3
//! 9:30am`, `the end of the month`.
//!
//! [`countersign_understanding::dates`] knows the forms; here they become points in time, by the clock and in the time
//! zone of the person who wrote them. The card shows how they were understood.

mod calendar;

use countersign_core::{
    clock,
    reply::{Reply, Text},
};
use countersign_graph::action::{ErrorKind, PrepareError};
use countersign_understanding::dates::{self, Moment, ZONES};
use jiff::{
    Timestamp, ToSpan as _, Zoned,
    civil::{self, Date, Time},
    tz::TimeZone,
};

use super::parameters::refused;

/// The maximum number of characters of a person's words that are quoted in a reply.
const MAX_QUOTED: usize = 60;

/// Returns the time zone with this IANA name, such as `Europe/Berlin`; UTC if there is none.
pub fn time_zone(name: Option<&str>) -> TimeZone {
    name.and_then(|name| TimeZone::get(name).ok()).unwrap_or(TimeZone::UTC)
}

/// Parses a future moment into the platform's format. The default time is midnight.
///
/// # Errors
///
/// Fails with a reply if it is not a moment, has two meanings, or is over.
pub fn moment(given: &str, now: clock::Timestamp, zone: &TimeZone) -> Result<String, PrepareError> {
    future(given, now, zone, Time::midnight())
}

/// Parses the end of a period: a day without a time means 23:59.
///
/// # Errors
///
/// The same as for [`moment`].
pub fn end_of(given: &str, now: clock::Timestamp, zone: &TimeZone) -> Result<String, PrepareError> {
    future(given, now, zone, civil::time(23, 59, 0, 0))
}

/// Formats a moment of the platform for people: `2027-01-15 09:00 UTC`.
pub fn moment_in_words(moment: &str) -> String {
    moment_in_zone(moment, &TimeZone::UTC)
}

/// Formats a moment of the platform in a time zone: `2027-01-15 10:00 CET`.
pub fn moment_in_zone(moment: &str, zone: &TimeZone) -> String {
    match moment.parse::<Timestamp>() {
        Ok(moment) => moment.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M %Z").to_string(),
        Err(_) => moment.to_owned(),
    }
}

/// Returns a moment of the platform as text in which each reader sees it in their own time zone.
pub fn moment_text(moment: &str) -> Text {
    match moment.parse::<Timestamp>() {
        Ok(moment) => Text::new().moment(clock::Timestamp(moment.as_millisecond())),
        Err(_) => Text::from(moment),
    }
}

/// Returns the day of a moment, in UTC.
pub fn day(at: clock::Timestamp) -> Date {
    in_zone(at, &TimeZone::UTC).date()
}

/// Returns the day of a moment in a time zone.
pub fn day_in(at: clock::Timestamp, zone: &TimeZone) -> Date {
    in_zone(at, zone).date()
}

/// Returns a moment in a time zone.
fn in_zone(at: clock::Timestamp, zone: &TimeZone) -> Zoned {
    Timestamp::from_millisecond(at.millis()).unwrap_or_default().to_zoned(zone.clone())
}

/// Parses a moment that has to be in the future. `default` is the time of a day without one.
fn future(given: &str, now: clock::Timestamp, zone: &TimeZone, default: Time) -> Result<String, PrepareError> {
    let refuse = |reply| Err(refused(ErrorKind::Validation, reply));
    if let Some(date) = dates::ambiguous(given) {
        return refuse(two_meanings(&date));
    }
    let Some(moment) = read(given.trim(), &in_zone(now, zone), default) else {
        return refuse(no_date(given, zone));
    };
    match moment.as_millisecond() > now.millis() {
        true => Ok(format!("{moment:.3}")),
        false => refuse(past_date(&moment_in_zone(&moment.to_string(), zone))),
    }
}

/// Parses a moment.
fn read(given: &str, now: &Zoned, default: Time) -> Option<Timestamp> {
    if let Ok(moment) = given.parse::<Timestamp>() {
        return Some(moment);
    }
    let moment = |civil: civil::DateTime, zone: &TimeZone| civil.to_zoned(zone.clone()).map(|at| at.timestamp()).ok();
    if given.contains(':')
        && let Ok(civil) = given.parse::<civil::DateTime>()
    {
        return moment(civil, now.time_zone());
    }
    let today = now.date().to_string();
    let written = Moment::read(given, &today)?;
    let zone = match &written.zone {
        Some(name) => ZONES.iter().find(|(short, _)| short.eq_ignore_ascii_case(name)).map(|(_, name)| *name),
        None => None,
    };
    let now = zone.map_or_else(|| now.clone(), |zone| now.with_time_zone(time_zone(Some(zone))));
    let time = match &written.time {
        Some(time) => clock_time(time)?,
        None => default,
    };
    let passed = |civil: civil::DateTime| moment(civil, now.time_zone()).is_some_and(|at| at <= now.timestamp());
    let Some(day) = &written.day else {
        let today = now.date().to_datetime(time);
        let day = if passed(today) { now.date().checked_add(1.day()).ok()? } else { now.date() };
        return moment(day.to_datetime(time), now.time_zone());
    };
    if let Some(later) = calendar::after_minutes(day, &now) {
        return Some(later);
    }
    if let Ok(civil) = day.parse::<civil::DateTime>()
        && day.contains('T')
    {
        return moment(civil, now.time_zone());
    }
    let date = calendar::date(day, now.date(), &|today| passed(today.to_datetime(time)))?;
    moment(date.to_datetime(time), now.time_zone())
}

/// Parses a time of day: `9:00`, `9`, `9am`, `9:30pm`, `noon` and the parts of a day.
pub fn time_of_day(words: &str) -> Option<Time> {
    let words = words.trim().to_lowercase();
    let words = words.strip_prefix("at ").unwrap_or(&words);
    clock_time(&words.replace(' ', ""))
}

/// Parses a time of day in lower case and without blanks.
fn clock_time(words: &str) -> Option<Time> {
    let (digits, afternoon) = match words {
        "midnight" => return Some(Time::midnight()),
        "morning" => return Time::new(9, 0, 0, 0).ok(),
        "noon" => return Time::new(12, 0, 0, 0).ok(),
        "afternoon" => return Time::new(14, 0, 0, 0).ok(),
        "evening" => return Time::new(18, 0, 0, 0).ok(),
        "night" => return Time::new(20, 0, 0, 0).ok(),
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

/// Returns a person's words, shortened.
fn shortened(asked: &str) -> String {
    match asked.chars().count() {
        0..=MAX_QUOTED => asked.to_owned(),
        _ => asked.chars().take(MAX_QUOTED).chain(['…']).collect(),
    }
}

/// Returns the reply for a date that cannot be read.
fn no_date(asked: &str, zone: &TimeZone) -> Reply {
    let zone = zone.iana_name().unwrap_or("UTC");
    Reply::text(Text::new().plain("I can't read “").bold(shortened(asked)).plain("” as a date."))
        .hint(format!("Write it as 2027-01-15 09:00, or Friday 9:00. Times are in {zone}."))
}

/// Returns the reply for a date in the past.
fn past_date(when: &str) -> Reply {
    Reply::text(format!("{when} is in the past. Give a time in the future."))
}

/// Returns the reply for a date with two meanings.
fn two_meanings(date: &dates::AmbiguousDate) -> Reply {
    let [first, second] = &date.meanings;
    Reply::text(Text::new().plain("Is ").bold(date.written.as_str()).plain(format!(" {first} or {second}?")))
        .choice(first.as_str(), first.as_str())
        .choice(second.as_str(), second.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a Wednesday.
    fn now() -> clock::Timestamp {
        clock::Timestamp("2026-11-18T10:00:00Z".parse::<Timestamp>().unwrap().as_millisecond())
    }

    #[test]
    fn moments_as_people_say_them() {
        let meant = |words: &str| moment(words, now(), &TimeZone::UTC).ok().map(|moment| moment_in_words(&moment));
        for (words, meaning) in [
            ("2027-01-15", "2027-01-15 00:00 UTC"),
            ("2027-01-15 09:00 UTC", "2027-01-15 09:00 UTC"),
            ("2027-01-15T09:00:00+01:00", "2027-01-15 08:00 UTC"),
            ("2027-01-15 9:00", "2027-01-15 09:00 UTC"),
            ("2027-01-15 9pm", "2027-01-15 21:00 UTC"),
            ("Dec 3 9:30am", "2026-12-03 09:30 UTC"),
            ("3 December 2026", "2026-12-03 00:00 UTC"),
            ("December 3, 2026", "2026-12-03 00:00 UTC"),
            ("Jan 3 at noon", "2027-01-03 12:00 UTC"),
            ("Friday 9:00", "2026-11-20 09:00 UTC"),
            ("next fri at 9:30 pm", "2026-11-20 21:30 UTC"),
            ("Wednesday 9:00", "2026-11-25 09:00 UTC"),
            ("next Wednesday 11:00", "2026-11-25 11:00 UTC"),
            ("Wednesday 12am", "2026-11-25 00:00 UTC"),
            ("wednesday at 11", "2026-11-18 11:00 UTC"),
            ("tomorrow 8", "2026-11-19 08:00 UTC"),
            ("in 2 days 10 UTC", "2026-11-20 10:00 UTC"),
            ("tomorrow, noon", "2026-11-19 12:00 UTC"),
            ("tomorrow evening", "2026-11-19 18:00 UTC"),
            ("today night", "2026-11-18 20:00 UTC"),
            ("tonight at 8", "2026-11-18 20:00 UTC"),
            ("in 2 weeks", "2026-12-02 00:00 UTC"),
            ("in two weeks", "2026-12-02 00:00 UTC"),
            ("in 1 month", "2026-12-18 00:00 UTC"),
            ("in 2 hours", "2026-11-18 12:00 UTC"),
            ("in 30 minutes", "2026-11-18 10:30 UTC"),
            ("at 3pm", "2026-11-18 15:00 UTC"),
            ("at 9am", "2026-11-19 09:00 UTC"),
            ("end of month", "2026-11-30 00:00 UTC"),
            ("end of week", "2026-11-20 00:00 UTC"),
            ("the end of December", "2026-12-31 00:00 UTC"),
            ("the 15th", "2026-12-15 00:00 UTC"),
            ("Thanksgiving", "2026-11-26 00:00 UTC"),
            ("after Thanksgiving", "2026-11-27 00:00 UTC"),
            ("after 2026-12-31", "2027-01-01 00:00 UTC"),
            ("New Year's Eve at noon", "2026-12-31 12:00 UTC"),
            ("Easter", "2027-03-28 00:00 UTC"),
            ("12/25/2026", "2026-12-25 00:00 UTC"),
        ] {
            assert_eq!(meant(words).as_deref(), Some(meaning), "{words}");
        }
        for words in [
            "today 9:00",
            "yesterday",
            "Friday 25:00",
            "Friday 13pm",
            "2026-11-18 10:00",
            "soon",
            "",
            "12/03/2026",
            "9",
            "in 2",
        ] {
            assert_eq!(meant(words), None, "{words}");
        }
    }

    #[test]
    fn the_end_of_a_period_includes_its_last_day() {
        let end = |words: &str| end_of(words, now(), &TimeZone::UTC).ok().map(|moment| moment_in_words(&moment));
        assert_eq!(end("Friday").as_deref(), Some("2026-11-20 23:59 UTC"));
        assert_eq!(end("today").as_deref(), Some("2026-11-18 23:59 UTC"));
        assert_eq!(end("2027-01-15 09:00").as_deref(), Some("2027-01-15 09:00 UTC"));
        assert_eq!(end("end of month").as_deref(), Some("2026-11-30 23:59 UTC"));
    }

    #[test]
    fn moments_are_in_the_persons_time_zone() {
        let berlin = time_zone(Some("Europe/Berlin"));
        let meant = |words: &str| moment(words, now(), &berlin).ok();
        for (words, meaning) in [
            ("next Monday 8am", "2026-11-23T07:00:00.000Z"),
            ("2027-07-01 08:00", "2027-07-01T06:00:00.000Z"),
            ("Friday 9am ET", "2026-11-20T14:00:00.000Z"),
            ("Friday 9am UTC", "2026-11-20T09:00:00.000Z"),
            ("2026-11-23T07:00:00.000Z", "2026-11-23T07:00:00.000Z"),
        ] {
            assert_eq!(meant(words).as_deref(), Some(meaning), "{words}");
        }
        assert_eq!(moment_in_zone("2026-11-23T07:00:00.000Z", &berlin), "2026-11-23 08:00 CET");
        assert_eq!(time_zone(Some("Nowhere/Here")), TimeZone::UTC);
    }

    #[test]
    fn a_date_with_two_meanings_is_asked_about() {
        let Err(PrepareError::Refusal(countersign_graph::action::Refusal::Refused { reply, .. })) =
            moment("12/03/2026", now(), &TimeZone::UTC)
        else {
            panic!("it should be refused")
        };
        assert_eq!(reply.words(), "Is 12/03/2026 December 3, 2026 or March 12, 2026?");
        assert_eq!(reply.choices.len(), 2);
    }
}
