//! Days by the calendar: weekdays, distances, ends of periods, holidays.

use countersign_core::clock::{MONTHS, WEEKDAYS};
use jiff::{
    Timestamp, ToSpan as _, Zoned,
    civil::{Date, Weekday, date as day_of},
};

/// The largest distance in time, in any unit.
const MAX_DISTANCE: i64 = 3_660;

/// Returns the moment that is a number of minutes or hours away, such as `in 2 hours`.
pub(super) fn after_minutes(day: &str, now: &Zoned) -> Option<Timestamp> {
    let (number, unit) = distance(day)?;
    let span = match unit {
        "minute" | "min" => number.minutes(),
        "hour" => number.hours(),
        _ => return None,
    };
    now.timestamp().checked_add(span).ok()
}

/// Returns the date of a day as [`countersign_understanding::dates`] writes it. `is_over` returns true if the time on
/// that date has passed; a weekday then is the one of the next week.
pub(super) fn date(day: &str, today: Date, is_over: &dyn Fn(Date) -> bool) -> Option<Date> {
    let day = day.to_lowercase();
    if let Ok(date) = day.parse::<Date>() {
        return Some(date);
    }
    if let Some((number, unit)) = distance(&day) {
        let span = match unit {
            "day" => number.days(),
            "week" => number.weeks(),
            "month" => number.months(),
            _ => return None,
        };
        return today.checked_add(span).ok();
    }
    if let Some(before) = day.strip_prefix("after ") {
        return date(before, today, &|_| false)?.checked_add(1.day()).ok();
    }
    match day.as_str() {
        "yesterday" => return today.checked_sub(1.day()).ok(), // refused later, as a date in the past
        "today" => return Some(today),
        "tomorrow" => return today.checked_add(1.day()).ok(),
        _ => {}
    }
    if let Some(of) = day.strip_prefix("end of ") {
        return end_of(of, today);
    }
    weekday(&day, today, is_over).or_else(|| nth(&day, today)).or_else(|| holiday(&day, today))
}

/// Parses `in 2 weeks`.
fn distance(day: &str) -> Option<(i64, &str)> {
    let (number, unit) = day.strip_prefix("in ")?.split_once(' ')?;
    let number = number.parse().ok().filter(|number| (0..=MAX_DISTANCE).contains(number))?;
    Some((number, unit.trim_end_matches('s')))
}

/// Returns the next such weekday: today, unless its time is over or it is called `next`.
fn weekday(day: &str, today: Date, is_over: &dyn Fn(Date) -> bool) -> Option<Date> {
    let (is_next, name) = day.strip_prefix("next ").map_or((false, day), |name| (true, name));
    let place = WEEKDAYS.iter().position(|known| *known == name || (name.len() == 3 && known.starts_with(name)))?;
    let wanted = Weekday::from_monday_zero_offset(i8::try_from(place).ok()?).ok()?;
    let ahead = i64::from(today.weekday().until(wanted));
    let ahead = if ahead == 0 && (is_next || is_over(today)) { 7 } else { ahead };
    today.checked_add(ahead.days()).ok()
}

/// Returns the last day of a period: `week` (its Friday), `month`, `next month`, `december`.
fn end_of(period: &str, today: Date) -> Option<Date> {
    let friday = || today.checked_add(i64::from(today.weekday().until(Weekday::Friday)).days()).ok();
    match period {
        "week" => friday(),
        "next week" => friday()?.checked_add(7.days()).ok(),
        "month" => Some(today.last_of_month()),
        "next month" => Some(today.first_of_month().checked_add(1.month()).ok()?.last_of_month()),
        "year" => Some(day_of(today.year(), 12, 31)),
        "next year" => Date::new(today.year().checked_add(1)?, 12, 31).ok(),
        name => {
            let month = MONTHS.iter().position(|month| name.len() >= 3 && month.starts_with(name))?;
            let first = Date::new(today.year(), i8::try_from(month + 1).ok()?, 1).ok()?;
            let last = first.last_of_month();
            if last >= today { Some(last) } else { Some(first.checked_add(1.year()).ok()?.last_of_month()) }
        }
    }
}

/// Returns the next day with a number: `the 15th`.
fn nth(day: &str, today: Date) -> Option<Date> {
    let number: i8 = day.strip_prefix("the ")?.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse().ok()?;
    let months = (0..12).filter_map(|ahead: i64| today.first_of_month().checked_add(ahead.months()).ok());
    months.filter_map(|first| Date::new(first.year(), first.month(), number).ok()).find(|date| *date >= today)
}

/// Returns the next such holiday.
fn holiday(name: &str, today: Date) -> Option<Date> {
    let name = name.replace('’', "'");
    let in_year = |year: i16| -> Option<Date> {
        let nth = |month: i8, nth: i8, weekday: Weekday| {
            Date::new(year, month, 1).ok()?.nth_weekday_of_month(nth, weekday).ok()
        };
        let on = |month: i8, day: i8| Date::new(year, month, day).ok();
        match name.as_str() {
            "thanksgiving" | "thanksgiving day" => nth(11, 4, Weekday::Thursday),
            "labor day" => nth(9, 1, Weekday::Monday),
            "memorial day" => nth(5, -1, Weekday::Monday),
            "presidents' day" | "presidents day" => nth(2, 3, Weekday::Monday),
            "martin luther king day" | "mlk day" => nth(1, 3, Weekday::Monday),
            "columbus day" => nth(10, 2, Weekday::Monday),
            "veterans day" => on(11, 11),
            "independence day" => on(7, 4),
            "juneteenth" => on(6, 19),
            "halloween" => on(10, 31),
            "valentine's day" => on(2, 14),
            "christmas" | "christmas day" => on(12, 25),
            "christmas eve" => on(12, 24),
            "new year's eve" => on(12, 31),
            "new year's day" | "new year's" | "new year" | "new years" => on(1, 1),
            "easter" | "easter sunday" => easter(year),
            "easter monday" => easter(year)?.checked_add(1.day()).ok(),
            _ => None,
        }
    };
    [today.year(), today.year().checked_add(1)?].into_iter().filter_map(in_year).find(|date| *date >= today)
}

/// Returns Easter Sunday, by the anonymous Gregorian algorithm (Meeus, “Astronomical Algorithms”, chapter 8).
fn easter(year: i16) -> Option<Date> {
    let y = i32::from(year);
    let (a, b, c) = (y % 19, y / 100, y % 100);
    let h = (19 * a + b - b / 4 - (b - (b + 8) / 25 + 1) / 3 + 15) % 30;
    let l = (32 + 2 * (b % 4) + 2 * (c / 4) - h - c % 4) % 7;
    let m = (a + 11 * h + 22 * l) / 451;
    let days = h + l - 7 * m + 114;
    Date::new(year, i8::try_from(days / 31).ok()?, i8::try_from(days % 31 + 1).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holidays_move_with_the_year() {
        let next = |name: &str, year: i16| holiday(name, day_of(year, 1, 1)).unwrap().to_string();
        assert_eq!(next("thanksgiving", 2026), "2026-11-26");
        assert_eq!(next("thanksgiving", 2028), "2028-11-23");
        assert_eq!(next("memorial day", 2027), "2027-05-31");
        assert_eq!(next("easter", 2026), "2026-04-05");
        assert_eq!(next("easter monday", 2027), "2027-03-29");
        assert_eq!(holiday("thanksgiving", day_of(2026, 11, 27)).unwrap().to_string(), "2027-11-25");
    }
}
