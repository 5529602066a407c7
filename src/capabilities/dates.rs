//! Future moments as people write them: `2027-01-15 09:00`, `Friday 9:00`, `tomorrow at noon`, `in 3 days`, `Dec 3
//! 9:30am`, `the end of the month`.
//!
//! [`countersign_understanding::dates`] knows the forms; here they become points in time, by the clock and in the time
//! zone of the person who wrote them. The card shows how they were understood.

mod calendar;
pub mod period;

use countersign_core::{
    clock,
    reply::{Reply, Text},
};
use countersign_graph::action::{ErrorKind, PrepareError};
use countersign_understanding::dates::{self, Moment, ZONES};
use jiff::{
    Timestamp, ToSpan as _, Zoned,
    civil::{self, Date, Time},
    tz::{AmbiguousOffset, AmbiguousTimestamp, Offset, TimeZone},
};

use super::parameters::refused;

/// The parameters of changes that are moments.
pub const PARAMETERS: [&str; 3] = ["start_on", "end_on", "until"];

/// The maximum number of characters of a person's words that are quoted in a reply.
const MAX_QUOTED: usize = 60;

/// Returns the IANA name of the only time zone that a message names; `None` if it names none, or several.
pub fn zone_named_in(message: &str) -> Option<String> {
    dates::named_zone(message).filter(|name| TimeZone::get(name).is_ok())
}

/// Returns the time zone with this IANA name, such as `Europe/Berlin`; UTC if there is none.
pub fn time_zone(name: Option<&str>) -> TimeZone {
    name.and_then(|name| TimeZone::get(name).ok()).unwrap_or(TimeZone::UTC)
}

/// Parses a future moment into the platform's format. The default time is midnight.
///
/// # Errors
///
/// Fails with a reply if it is not a moment, has two meanings, is over, or if the clocks of the zone never show it, or show
/// it twice.
pub fn moment(given: &str, now: clock::Timestamp, zone: &TimeZone) -> Result<String, PrepareError> {
    future(given, now, zone, EdgeOfDay::Start)
}

/// Parses the end of a period: a day without a time means 23:59.
///
/// # Errors
///
/// The same as for [`moment`].
pub fn end_of(given: &str, now: clock::Timestamp, zone: &TimeZone) -> Result<String, PrepareError> {
    future(given, now, zone, EdgeOfDay::End)
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

/// The time of a day without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EdgeOfDay {
    /// Its first moment.
    Start,
    /// Its last minute.
    End,
}

/// Parses a moment that has to be in the future. `default` is the time of a day without one.
fn future(given: &str, now: clock::Timestamp, zone: &TimeZone, default: EdgeOfDay) -> Result<String, PrepareError> {
    let refuse = |reply| Err(refused(ErrorKind::Validation, reply));
    if let Some(date) = dates::ambiguous(given) {
        return refuse(two_meanings(&date));
    }
    let Some(meant) = read(given.trim(), &in_zone(now, zone)) else {
        return refuse(no_date(given, zone));
    };
    let moment = match meant.at(default) {
        Ok(moment) => moment,
        Err(unclear) => return refuse(unclear.map_or_else(|| no_date(given, zone), |unclear| unclear_time(&unclear))),
    };
    match moment.as_millisecond() > now.millis() {
        true => Ok(format!("{moment:.3}")),
        false => refuse(past_date(&moment_in_zone(&moment.to_string(), zone))),
    }
}

/// Returns a moment in the words of a message so that it means the same in a later one, whoever writes that: with its
/// date, and with its zone if it has a time. Words that cannot be read stay as they are.
pub fn pinned(given: &str, now: clock::Timestamp, zone: &TimeZone) -> String {
    if dates::ambiguous(given).is_some() {
        return given.to_owned();
    }
    match read(given.trim(), &in_zone(now, zone)) {
        None => given.to_owned(),
        Some(Meant::Point(moment)) => format!("{moment:.3}"),
        Some(Meant::Local { date, time: None, .. }) => date.to_string(),
        Some(Meant::Local { date, time: Some(time), zone }) => {
            let offset =
                || zone.to_ambiguous_timestamp(date.to_datetime(time)).compatible().map(|at| zone.to_offset(at));
            let named = zone.iana_name().filter(|name| *name == "UTC" || name.contains('/')).map(str::to_owned);
            let zone = named.or_else(|| offset().ok().map(offset_in_words)).unwrap_or_default();
            format!("{date} {} {zone}", time.strftime("%H:%M"))
        }
    }
}

/// What the words for a moment mean.
#[derive(Clone, Debug, PartialEq)]
enum Meant {
    /// A point in time.
    Point(Timestamp),
    /// A day, perhaps with a time of day, as the clocks of a zone show them.
    Local {
        /// The day.
        date: Date,
        /// The time of day.
        time: Option<Time>,
        /// The zone.
        zone: TimeZone,
    },
}

/// A time that the clocks of a zone never show, or show twice.
#[derive(Clone, Debug, PartialEq)]
struct UnclearTime {
    civil: civil::DateTime,
    zone: TimeZone,
    /// The two points in time that may be meant.
    between: [Timestamp; 2],
    /// True if the clocks show it twice.
    is_twice: bool,
}

impl Meant {
    /// Returns the point in time. `default` is the time of a day without one.
    ///
    /// # Errors
    ///
    /// Fails if the clocks of the zone do not show the time once; `None` if it is out of range.
    fn at(&self, default: EdgeOfDay) -> Result<Timestamp, Option<Box<UnclearTime>>> {
        let (date, time, zone) = match self {
            Self::Point(moment) => return Ok(*moment),
            Self::Local { date, time, zone } => (*date, *time, zone),
        };
        let local = |time: Time| zone.to_ambiguous_timestamp(date.to_datetime(time));
        let Some(time) = time else {
            // The day was meant, whatever its clocks do at midnight.
            let moment = match default {
                EdgeOfDay::Start => local(Time::midnight()).compatible(),
                EdgeOfDay::End if is_skipped(&local(LAST_MINUTE)) => local(LAST_MINUTE).earlier(),
                EdgeOfDay::End => local(LAST_MINUTE).later(),
            };
            return moment.map_err(|_| None);
        };
        let local = local(time);
        if !local.is_ambiguous() {
            return local.unambiguous().map_err(|_| None);
        }
        let is_twice = !is_skipped(&local);
        let both = local.earlier().and_then(|earlier| Ok([earlier, local.later()?]));
        let between = both.map_err(|_| None)?;
        Err(Some(Box::new(UnclearTime { civil: date.to_datetime(time), zone: zone.clone(), between, is_twice })))
    }
}

/// Returns true for a time that the clocks never show.
fn is_skipped(local: &AmbiguousTimestamp) -> bool {
    matches!(local.offset(), AmbiguousOffset::Gap { .. })
}

/// The last minute of a day.
const LAST_MINUTE: Time = Time::constant(23, 59, 0, 0);

/// Parses a moment.
fn read(given: &str, now: &Zoned) -> Option<Meant> {
    if let Ok(moment) = given.parse::<Timestamp>() {
        return Some(Meant::Point(moment));
    }
    let local = |date: Date, time: Option<Time>, zone: &TimeZone| Meant::Local { date, time, zone: zone.clone() };
    if given.contains(':')
        && let Ok(civil) = given.parse::<civil::DateTime>()
    {
        return Some(local(civil.date(), Some(civil.time()), now.time_zone()));
    }
    let written = Moment::read(given, &now.date().to_string())?;
    let now = match &written.zone {
        Some(name) => now.with_time_zone(zone_called(name)?),
        None => now.clone(),
    };
    let time = match &written.time {
        Some(time) => Some(clock_time(time)?),
        None => None,
    };
    let passed = |date: Date| date.to_datetime(time.unwrap_or_default()) <= now.datetime();
    let Some(day) = &written.day else {
        let date = if passed(now.date()) { now.date().checked_add(1.day()).ok()? } else { now.date() };
        return Some(local(date, time, now.time_zone()));
    };
    if let Some(later) = calendar::after_minutes(day, &now) {
        return Some(Meant::Point(later));
    }
    if let Ok(civil) = day.parse::<civil::DateTime>()
        && day.contains('T')
    {
        return Some(local(civil.date(), Some(civil.time()), now.time_zone()));
    }
    let date = calendar::date(day, now.date(), &passed)?;
    Some(local(date, time, now.time_zone()))
}

/// Returns the zone that people call by this name, in the form of [`Moment::zone`].
fn zone_called(name: &str) -> Option<TimeZone> {
    if let Some(minutes) = dates::distance_from_utc(name) {
        return Offset::from_seconds(i32::from(minutes) * 60).ok().map(Offset::to_time_zone);
    }
    let short = ZONES.iter().find(|(short, _)| short.eq_ignore_ascii_case(name));
    TimeZone::get(short.map_or(name, |(_, name)| name)).ok()
}

/// Formats a distance from UTC: `UTC+2`, `UTC-3:30`.
fn offset_in_words(offset: Offset) -> String {
    let minutes = offset.seconds() / 60;
    let (sign, minutes) = (if minutes < 0 { '-' } else { '+' }, minutes.abs());
    match minutes % 60 {
        0 => format!("UTC{sign}{}", minutes / 60),
        rest => format!("UTC{sign}{}:{rest:02}", minutes / 60),
    }
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
    // What was typed may have been put into another form before, so it is not quoted.
    let what = match no_such_day(asked) {
        Some(sentence) => Text::from(sentence),
        None => Text::from("I can't read ").bold(shortened(asked)).plain(" as a date."),
    };
    Reply::text(what).hint(format!("Write it as 2027-01-15 09:00, or Friday 9:00. Times are in {zone}."))
}

/// Returns what is wrong with a date such as `2027-02-30`, whose month has fewer days.
fn no_such_day(asked: &str) -> Option<String> {
    let mut numbers = asked.trim().get(..10)?.split('-').map(str::parse::<i16>);
    let (Some(Ok(year)), Some(Ok(month)), Some(Ok(day))) = (numbers.next(), numbers.next(), numbers.next()) else {
        return None;
    };
    let first = Date::new(year, i8::try_from(month).ok()?, 1).ok()?;
    (day > first.days_in_month().into()).then(|| format!("{} has no day {day}.", first.strftime("%B %Y")))
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

/// Returns the reply for a time that the clocks never show, or show twice. Each choice is a whole moment.
fn unclear_time(UnclearTime { civil, zone, between, is_twice }: &UnclearTime) -> Reply {
    let (time, day) = (civil.strftime("%-H:%M"), civil.strftime("%B %-d, %Y"));
    let place = zone.iana_name().unwrap_or("that time zone");
    let name = |at: &Timestamp| at.to_zoned(zone.clone()).strftime("%Z").to_string();
    let question = match is_twice {
        true => format!(
            "The clocks in {place} show {time} twice on {day}: first in {}, then in {}. Which one do you mean?",
            name(&between[0]),
            name(&between[1])
        ),
        false => format!("The clocks in {place} skip {time} on {day}. Which time do you mean?"),
    };
    between.iter().fold(Reply::text(question), |reply, at| {
        let local = at.to_zoned(zone.clone());
        let moment = format!("{} {}", local.strftime("%Y-%m-%d %-H:%M"), offset_in_words(local.offset()));
        reply.choice(moment.as_str(), moment.as_str())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
            ("Friday 9am UTC+5:30", "2026-11-20T03:30:00.000Z"),
            ("Friday 9am America/New_York", "2026-11-20T14:00:00.000Z"),
            ("2026-11-23T07:00:00.000Z", "2026-11-23T07:00:00.000Z"),
        ] {
            assert_eq!(meant(words).as_deref(), Some(meaning), "{words}");
        }
        assert_eq!(moment_in_zone("2026-11-23T07:00:00.000Z", &berlin), "2026-11-23 08:00 CET");
        assert_eq!(time_zone(Some("Nowhere/Here")), TimeZone::UTC);
    }

    /// Returns the question about a moment that is refused, and its choices.
    fn asked(words: &str, zone: &TimeZone) -> (String, Vec<String>) {
        let Err(PrepareError::Refusal(countersign_graph::action::Refusal::Refused { reply, .. })) =
            moment(words, now(), zone)
        else {
            panic!("{words} should be refused")
        };
        (reply.words(), reply.choices.into_iter().map(|choice| choice.says).collect())
    }

    #[test]
    fn a_time_that_the_clocks_skip_or_show_twice_is_asked_about() {
        let berlin = time_zone(Some("Europe/Berlin"));
        let meant = |words: &str| moment(words, now(), &berlin).ok();
        let (skipped, between) = asked("28 March 2027 at 2:30", &berlin);
        assert_eq!(skipped, "The clocks in Europe/Berlin skip 2:30 on March 28, 2027. Which time do you mean?");
        assert_eq!(between, ["2027-03-28 1:30 UTC+1", "2027-03-28 3:30 UTC+2"]);
        let (twice, both) = asked("31 October 2027 2:30", &berlin);
        assert_eq!(
            twice,
            "The clocks in Europe/Berlin show 2:30 twice on October 31, 2027: first in CEST, then in CET. Which one do you mean?"
        );
        assert_eq!(both, ["2027-10-31 2:30 UTC+2", "2027-10-31 2:30 UTC+1"]);
        assert_eq!(meant(&both[0]).as_deref(), Some("2027-10-31T00:30:00.000Z"));
        assert_eq!(meant(&both[1]).as_deref(), Some("2027-10-31T01:30:00.000Z"));
        assert_eq!(meant("28 March 2027 at 2:30 UTC").as_deref(), Some("2027-03-28T02:30:00.000Z"));
        // In Cairo the clocks go forward at midnight, and back at midnight: a day without a time is meant as a whole.
        let cairo = time_zone(Some("Africa/Cairo"));
        assert_eq!(moment("30 April 2027", now(), &cairo).ok().as_deref(), Some("2027-04-29T22:00:00.000Z"));
        assert_eq!(end_of("28 October 2027", now(), &cairo).ok().as_deref(), Some("2027-10-28T21:59:00.000Z"));
    }

    /// Returns the points in time at which the clocks of a zone show this.
    fn showing(zone: &TimeZone, civil: civil::DateTime) -> Vec<Timestamp> {
        let utc = civil.to_zoned(TimeZone::UTC).unwrap().timestamp();
        let near = (-26..=26).map(|hours: i64| zone.to_offset(utc + hours.hours()));
        let mut offsets: Vec<Offset> = near.collect();
        offsets.sort_unstable();
        offsets.dedup();
        let at = |offset: Offset| utc - i64::from(offset.seconds()).seconds();
        let mut found: Vec<Timestamp> = offsets.into_iter().map(at).collect();
        found.retain(|at| at.to_zoned(zone.clone()).datetime() == civil);
        found.sort_unstable();
        found
    }

    const ZONES_WITH_TRANSITIONS: &[&str] = &[
        "Europe/Berlin",
        "Europe/Dublin",
        "America/New_York",
        "America/Santiago",
        "Australia/Lord_Howe",
        "Pacific/Chatham",
        "Africa/Cairo",
        "Asia/Beirut",
        "Antarctica/Troll",
        "Asia/Kathmandu",
    ];

    proptest! {
        #[test]
        fn a_time_is_never_moved(
            zone in proptest::sample::select(ZONES_WITH_TRANSITIONS),
            after in 0_usize..12,
            minutes in -200_i64..200,
        ) {
            let zone = TimeZone::get(zone).unwrap();
            let start = Timestamp::from_millisecond(now().millis()).unwrap() + (24 * 40).hours();
            let near = zone.following(start).nth(after).map_or(start, |change| change.timestamp());
            let utc = (near + minutes.minutes()).to_zoned(TimeZone::UTC);
            let civil = utc.datetime().checked_add(i64::from(zone.to_offset(near).seconds()).seconds()).unwrap();
            let civil = civil.date().to_datetime(civil.time().with().second(0).subsec_nanosecond(0).build().unwrap());
            let words = civil.strftime("%Y-%m-%d %H:%M").to_string();
            let shown = showing(&zone, civil);
            match (shown.as_slice(), moment(&words, now(), &zone)) {
                ([once], Ok(meant)) => prop_assert_eq!(meant.parse::<Timestamp>().unwrap(), *once),
                ([] | [_, _], Err(_)) => {
                    let (_, choices) = asked(&words, &zone);
                    let meant = |choice: &String| moment(choice, now(), &zone).unwrap().parse::<Timestamp>().unwrap();
                    let meant: Vec<Timestamp> = choices.iter().map(meant).collect();
                    prop_assert!(shown.is_empty() || meant == shown, "{words}: {meant:?}, but {shown:?}");
                    prop_assert_eq!(meant.len(), 2);
                }
                (shown, found) => prop_assert!(false, "{words} is shown at {shown:?}, but meant {:?}", found.ok()),
            }
        }

        #[test]
        fn a_pinned_moment_means_the_same_in_another_zone(
            said in proptest::sample::select(vec![
                "Friday 9:00", "tomorrow at noon", "2027-03-01 14:30", "Dec 3 9:30am", "in 2 hours", "at 3pm", "next Wednesday 11:00",
                "in 2 days 10 ET", "Friday 8am UTC+5:30", "Friday", "end of month", "2027-01-15T09:00:00+01:00",
            ]),
            zone in proptest::sample::select(ZONES_WITH_TRANSITIONS),
            other in proptest::sample::select(ZONES_WITH_TRANSITIONS),
            hours in 0_i64..9,
        ) {
            let (zone, other) = (TimeZone::get(zone).unwrap(), TimeZone::get(other).unwrap());
            let pinned = pinned(said, now(), &zone);
            let later = clock::Timestamp(now().0 + hours * 3_600_000);
            let has_time = said.contains(|c: char| c.is_ascii_digit()) || said.contains("noon");
            let read_in = if has_time { &other } else { &zone };
            let meant = moment(said, now(), &zone).ok();
            match meant.as_ref().and_then(|at| at.parse::<Timestamp>().ok()) {
                Some(at) if at.as_millisecond() > later.0 => prop_assert_eq!(moment(&pinned, later, read_in).ok(), meant, "{}", pinned),
                _ => {}
            }
        }
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
