//! The times of a digest: certain days of the week, at a time of day in a person's time zone.

use countersign_core::clock::Timestamp;
use jiff::{
    ToSpan as _,
    civil::{Time, Weekday},
    tz::TimeZone,
};
use serde::{Deserialize, Serialize};

/// The days of the week and the time of day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// The days, 1 for Monday to 7 for Sunday, in order.
    pub days: Vec<i8>,
    /// The time of day.
    pub at: Time,
    /// The time zone by its IANA name.
    pub zone: String,
}

/// The names of the days, from Monday.
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Returns the days of the week in some words, such as `Monday`, `every day` or `weekdays`; `None` if there are none.
pub fn days(words: &str) -> Option<Vec<i8>> {
    let words = words.trim().to_lowercase();
    let plain = words.strip_prefix("every ").or_else(|| words.strip_prefix("each ")).unwrap_or(&words);
    match plain {
        "day" | "daily" | "morning" => return Some((1..=7).collect()),
        "weekday" | "weekdays" | "working day" | "workday" => return Some((1..=5).collect()),
        "week" | "weekly" => return Some(vec![1]),
        _ => {}
    }
    let of = |word: &str| {
        let word = word.strip_suffix('s').filter(|shorter| shorter.ends_with("day")).unwrap_or(word);
        let fits = |day: &&str| {
            let day = day.to_lowercase();
            day == word || (word.len() >= 3 && day.starts_with(word))
        };
        DAYS.iter().position(fits).and_then(|at| i8::try_from(at + 1).ok())
    };
    let named = plain.split([',', ' ']).filter(|word| !word.is_empty() && *word != "and");
    let mut found: Vec<i8> = named.map(of).collect::<Option<_>>()?;
    found.sort_unstable();
    found.dedup();
    (!found.is_empty()).then_some(found)
}

impl Schedule {
    /// Returns the first time after `now`; `None` if there is none. Where the clocks are put forward, a time that is left
    /// out is taken an hour later; where they are put back, the first of two equal times is taken.
    pub fn next_after(&self, now: Timestamp) -> Option<Timestamp> {
        let zone = TimeZone::get(&self.zone).unwrap_or(TimeZone::UTC);
        let local = jiff::Timestamp::from_millisecond(now.millis()).ok()?.to_zoned(zone.clone());
        (0..=8).find_map(|ahead: i64| {
            let date = local.date().checked_add(ahead.days()).ok()?;
            let is_right =
                self.days.iter().any(|day| Weekday::from_monday_one_offset(*day).ok() == Some(date.weekday()));
            let at = date.to_datetime(self.at).to_zoned(zone.clone()).ok().filter(|_| is_right)?;
            let at = Timestamp(at.timestamp().as_millisecond());
            (at > now).then_some(at)
        })
    }

    /// Returns true if people call a digest at these times by these days: `weekly` is any one day of the week.
    pub fn is_called(&self, asked: &str) -> bool {
        match asked.trim().to_lowercase().as_str() {
            "week" | "weekly" | "every week" | "each week" => self.days.len() == 1,
            asked => days(asked).is_some_and(|days| days == self.days),
        }
    }

    /// Returns the schedule in words, such as `every Monday at 9:00 AM (Europe/Berlin)`.
    pub fn words(&self) -> String {
        format!("{} ({})", self.days_and_time(), self.zone)
    }

    /// Returns the schedule in words without the time zone, such as `every Monday at 9:00 AM`.
    pub fn days_and_time(&self) -> String {
        let name = |day: &i8| usize::try_from(*day - 1).ok().and_then(|at| DAYS.get(at)).copied().unwrap_or_default();
        let days = match self.days.as_slice() {
            [1, 2, 3, 4, 5, 6, 7] => "every day".to_owned(),
            [1, 2, 3, 4, 5] => "every weekday".to_owned(),
            [only] => format!("every {}", name(only)),
            [most @ .., last] => {
                format!("every {} and {}", most.iter().map(name).collect::<Vec<_>>().join(", "), name(last))
            }
            [] => "never".to_owned(),
        };
        format!("{days} at {}", self.at.strftime("%-I:%M %p"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(moment: &str) -> Timestamp {
        Timestamp(moment.parse::<jiff::Timestamp>().unwrap().as_millisecond())
    }

    fn every_monday(zone: &str) -> Schedule {
        Schedule { days: vec![1], at: Time::constant(9, 0, 0, 0), zone: zone.to_owned() }
    }

    #[test]
    fn the_local_time_stays_when_the_clocks_change() {
        let berlin = every_monday("Europe/Berlin");
        // Summer time ends on October 25, 2026.
        assert_eq!(berlin.next_after(at("2026-10-17T00:00:00Z")), Some(at("2026-10-19T07:00:00Z")));
        assert_eq!(berlin.next_after(at("2026-10-19T07:00:00Z")), Some(at("2026-10-26T08:00:00Z")));
        let chicago = every_monday("America/Chicago");
        // Summer time begins there on March 14, 2027.
        assert_eq!(chicago.next_after(at("2027-03-08T15:00:00Z")), Some(at("2027-03-15T14:00:00Z")));
    }

    #[test]
    fn a_time_that_is_left_out_is_an_hour_later_and_one_that_comes_twice_is_taken_once() {
        let sunday = Schedule { days: vec![7], at: Time::constant(2, 30, 0, 0), zone: "Europe/Berlin".to_owned() };
        assert_eq!(
            sunday.next_after(at("2027-03-27T12:00:00Z")),
            Some(at("2027-03-28T01:30:00Z")),
            "3:30 in summer time"
        );
        let first = at("2026-10-25T00:30:00Z");
        assert_eq!(sunday.next_after(at("2026-10-24T12:00:00Z")), Some(first), "2:30 in summer time");
        assert_eq!(sunday.next_after(first), Some(at("2026-11-01T01:30:00Z")), "not at 2:30 in winter time again");
    }

    #[test]
    fn days_are_read_as_people_say_them() {
        assert_eq!(days("Monday"), Some(vec![1]));
        assert_eq!(days("every monday"), Some(vec![1]));
        assert_eq!(days("Mondays"), Some(vec![1]));
        assert_eq!(days("thu and tue"), Some(vec![2, 4]));
        assert_eq!(days("every day"), Some(vec![1, 2, 3, 4, 5, 6, 7]));
        assert_eq!(days("weekdays"), Some(vec![1, 2, 3, 4, 5]));
        assert_eq!(days("blue moon"), None);
        assert_eq!(days(""), None);
    }

    #[test]
    fn a_weekly_schedule_has_one_day() {
        let monday = every_monday("UTC");
        assert!(monday.is_called("weekly") && monday.is_called("Monday") && monday.is_called("every monday"));
        assert!(!monday.is_called("daily") && !monday.is_called("Tuesday"));
        let daily = Schedule { days: (1..=7).collect(), ..monday };
        assert!(daily.is_called("daily") && !daily.is_called("weekly"));
    }

    #[test]
    fn a_schedule_is_told_in_words() {
        assert_eq!(every_monday("Europe/Berlin").words(), "every Monday at 9:00 AM (Europe/Berlin)");
        let some = Schedule { days: vec![1, 3, 5], at: Time::constant(17, 30, 0, 0), zone: "UTC".to_owned() };
        assert_eq!(some.words(), "every Monday, Wednesday and Friday at 5:30 PM (UTC)");
    }
}
