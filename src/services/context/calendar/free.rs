//! Free times: what remains of the working hours without the busy times.

use countersign_core::clock::Timestamp;
use jiff::{
    civil::{Date, Weekday},
    tz::TimeZone,
};
use serde::{Deserialize, Serialize};

use super::{MAX_DAYS, Slot, Span, zoned};

/// The length of a minute, in milliseconds.
const MINUTE: i64 = 60_000;

/// The grid on which a free time that has already begun starts, in milliseconds.
const QUARTER_HOUR: i64 = 15 * MINUTE;

/// The working hours of a person, in the person's time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkingHours {
    /// The full hour at which work begins, from 0 to 23.
    pub from: u8,
    /// The full hour at which work ends, from 1 to 24.
    pub to: u8,
    /// True if Saturday and Sunday are working days.
    pub on_weekends: bool,
}

impl Default for WorkingHours {
    fn default() -> Self {
        Self { from: 9, to: 17, on_weekends: false }
    }
}

impl WorkingHours {
    /// Returns the working hours of a day; `None` on a day without any.
    fn on(self, day: Date, zone: &TimeZone) -> Option<Span> {
        if !self.on_weekends && matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday) {
            return None;
        }
        let (start, end) = (moment(day, self.from, zone)?, moment(day, self.to, zone)?);
        (start < end).then_some(Span { start, end })
    }
}

/// Returns an hour of a day. If the clocks skip it, the moment is later by the skipped time; if it occurs twice, the
/// first one counts.
fn moment(day: Date, hour: u8, zone: &TimeZone) -> Option<Timestamp> {
    let (day, hour) = if hour >= 24 { (day.tomorrow().ok()?, 0) } else { (day, hour) };
    let at = zone.to_timestamp(day.at(i8::try_from(hour).ok()?, 0, 0, 0)).ok()?;
    Some(Timestamp(at.as_millisecond()))
}

/// Returns the time from `from`, but not before `now`, to the end of the day `days - 1` days after the day of `from`.
/// If the time has already begun, it starts at the next quarter of an hour.
pub fn window(from: Timestamp, days: u32, zone: &TimeZone, now: Timestamp) -> Span {
    let days = i32::try_from(days.clamp(1, MAX_DAYS)).unwrap_or(1);
    let first = zoned(from, zone).date();
    let last = first.checked_add(jiff::Span::new().days(days - 1)).unwrap_or(first);
    let end = moment(last, 24, zone).unwrap_or(from);
    let start = if from > now { from } else { Timestamp(now.0.div_euclid(QUARTER_HOUR) * QUARTER_HOUR + after(now.0)) };
    Span { start, end }
}

/// Returns the distance from the last quarter of an hour to the next one; 0 if the moment is one.
fn after(millis: i64) -> i64 {
    if millis.rem_euclid(QUARTER_HOUR) == 0 { 0 } else { QUARTER_HOUR }
}

/// Returns the free times in `window` within working hours, in order. Busy times may overlap and come in any order.
pub fn free(busy: &[Span], window: Span, hours: WorkingHours, zone: &TimeZone) -> Vec<Slot> {
    let mut busy: Vec<Span> = busy.iter().copied().filter(|span| span.start < span.end).collect();
    busy.sort_unstable();
    let mut slots = Vec::new();
    if window.start >= window.end {
        return slots;
    }
    let last = zoned(window.end, zone).date();
    let mut day = zoned(window.start, zone).date();
    while day <= last {
        if let Some(Span { start, end }) = hours.on(day, zone) {
            add_free(&busy, Span { start: start.max(window.start), end: end.min(window.end) }, &mut slots);
        }
        let Ok(next) = day.tomorrow() else { break };
        day = next;
    }
    slots
}

/// Adds the free times in a span. `busy` is sorted.
fn add_free(busy: &[Span], within: Span, slots: &mut Vec<Slot>) {
    let mut cursor = within.start;
    for span in busy.iter().filter(|span| span.overlaps(within)) {
        add(Span { start: cursor, end: span.start }, slots);
        cursor = cursor.max(span.end);
    }
    add(Span { start: cursor, end: within.end }, slots);
}

/// Adds a slot of at least one minute.
fn add(Span { start, end }: Span, slots: &mut Vec<Slot>) {
    let duration_minutes = u32::try_from((end.0 - start.0).div_euclid(MINUTE)).unwrap_or(0);
    if duration_minutes > 0 {
        slots.push(Slot { start, end, duration_minutes });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
    }

    fn span(start: &str, end: &str) -> Span {
        Span { start: at(start), end: at(end) }
    }

    fn zone(name: &str) -> TimeZone {
        TimeZone::get(name).unwrap()
    }

    fn found(busy: &[Span], window: Span, zone: &TimeZone) -> Vec<String> {
        free(busy, window, WorkingHours::default(), zone).iter().map(|slot| slot.in_zone(zone)).collect()
    }

    #[test]
    fn busy_times_are_cut_out_of_the_working_hours() {
        let busy = [
            span("2026-11-24T12:00:00Z", "2026-11-24T13:00:00Z"),
            span("2026-11-24T07:00:00Z", "2026-11-24T09:30:00Z"), // begins before work
            span("2026-11-24T12:30:00Z", "2026-11-24T14:00:00Z"), // overlaps the first
            span("2026-11-24T12:45:00Z", "2026-11-24T12:50:00Z"), // within both
            span("2026-11-24T16:00:00Z", "2026-11-24T20:00:00Z"), // ends after work
            span("2026-11-24T15:00:00Z", "2026-11-24T15:00:00Z"), // no length
        ];
        let day = span("2026-11-24T00:00:00Z", "2026-11-25T00:00:00Z");
        let slots = found(&busy, day, &TimeZone::UTC);
        assert_eq!(slots, ["Tue 2026-11-24 09:30–12:00", "Tue 2026-11-24 14:00–16:00"]);
    }

    #[test]
    fn a_day_that_is_busy_from_beginning_to_end_has_no_slot() {
        let day = span("2026-11-24T00:00:00Z", "2026-11-25T00:00:00Z");
        assert!(found(&[span("2026-11-24T09:00:00Z", "2026-11-24T17:00:00Z")], day, &TimeZone::UTC).is_empty());
        assert!(found(&[day], day, &TimeZone::UTC).is_empty());
        assert!(found(&[], Span { start: day.end, end: day.start }, &TimeZone::UTC).is_empty());
    }

    #[test]
    fn working_hours_follow_daylight_saving() {
        let berlin = zone("Europe/Berlin");
        // The clocks are set forward on Sunday, March 29, 2026.
        let window = window(at("2026-03-27T00:00:00Z"), 4, &berlin, at("2026-03-01T00:00:00Z"));
        let slots = free(&[], window, WorkingHours::default(), &berlin);
        let starts: Vec<_> = slots.iter().map(|slot| slot.start).collect();
        assert_eq!(starts, [at("2026-03-27T08:00:00Z"), at("2026-03-30T07:00:00Z")], "no weekend, an hour earlier");
        assert!(slots.iter().all(|slot| slot.duration_minutes == 8 * 60));
    }

    #[test]
    fn a_day_on_which_the_clocks_change_is_shorter_or_longer() {
        let berlin = zone("Europe/Berlin");
        let hours = WorkingHours { from: 0, to: 24, on_weekends: true };
        let length = |day: &str, to: &str| {
            let slots = free(&[], span(day, to), hours, &berlin);
            slots.iter().map(|slot| slot.duration_minutes / 60).collect::<Vec<_>>()
        };
        assert_eq!(length("2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"), [23]);
        assert_eq!(length("2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"), [25]);
    }

    #[test]
    fn nothing_is_offered_in_the_past() {
        let now = at("2026-11-24T10:07:23Z");
        let window = window(at("2026-11-23T08:00:00Z"), 2, &TimeZone::UTC, now);
        assert_eq!(found(&[], window, &TimeZone::UTC), ["Tue 2026-11-24 10:15–17:00"]);
        let over = window_after_work();
        assert!(found(&[], over, &TimeZone::UTC).is_empty());
    }

    fn window_after_work() -> Span {
        let now = at("2026-11-24T18:00:00Z");
        window(now, 1, &TimeZone::UTC, now)
    }

    #[test]
    fn a_window_is_about_days_of_the_time_zone() {
        let tokyo = zone("Asia/Tokyo");
        let from = at("2026-11-23T20:00:00Z"); // Tuesday, 05:00 in Tokyo
        let window = window(from, 2, &tokyo, Timestamp(0));
        assert_eq!(window, Span { start: from, end: at("2026-11-25T15:00:00Z") });
        assert_eq!(found(&[], window, &tokyo), ["Tue 2026-11-24 09:00–17:00", "Wed 2026-11-25 09:00–17:00"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn slots_are_free_in_order_and_complete(
            busy in prop::collection::vec((0_i64..5 * 1440, 0_i64..600), 0..12),
            start in 0_i64..2 * 1440,
            length in 0_i64..4 * 1440,
            place in prop::sample::select(vec!["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]),
        ) {
            // Around a change of the clocks in three of the zones.
            let base = at("2026-03-27T00:00:00Z").0;
            let minute = |n: i64| Timestamp(base + n * MINUTE);
            let zone = zone(place);
            let busy: Vec<_> = busy.iter().map(|(at, long)| Span { start: minute(*at), end: minute(at + long) }).collect();
            let window = Span { start: minute(start), end: minute(start + length) };
            let hours = WorkingHours { on_weekends: true, ..WorkingHours::default() };
            let slots = free(&busy, window, hours, &zone);
            for pair in slots.windows(2) {
                prop_assert!(pair[0].end <= pair[1].start);
            }
            for n in start..start + length {
                let (now, hour) = (Span { start: minute(n), end: minute(n + 1) }, zoned(minute(n), &zone).hour());
                let is_busy = busy.iter().any(|span| span.overlaps(now));
                let expected = !is_busy && (9..17).contains(&hour);
                let offered = slots.iter().any(|slot| slot.start <= now.start && now.end <= slot.end);
                prop_assert_eq!(offered, expected, "minute {}", n);
            }
        }
    }
}
