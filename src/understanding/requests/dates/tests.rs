//! Tests of dates and times.

use super::{ambiguous, moment, named_zone, period, time_alone};
use crate::words::{text, words};

const TODAY: &str = "2026-11-22"; // a Sunday

fn read(said: &str) -> String {
    let words = words(said);
    let found = moment(&words, TODAY)
        .map(|(when, until, rest)| format!("{}{when} · {}", if until { "until " } else { "" }, text(rest)));
    found.unwrap_or_else(|| "none".to_owned())
}

#[test]
fn moments_are_recognised_with_their_prepositions() {
    for (said, expected) in [
        ("on 3 December 2026 at 9am", "2026-12-03 9am · "),
        ("Dec 10, 8:30 please", "2026-12-10 8:30 · please"),
        ("Dec 3 9:30am", "2026-12-03 9:30am · "),
        ("Dec. 3rd, 2026 at 9.30", "2026-12-03 9:30 · "),
        ("next Monday 9am", "Monday 9am · "),
        ("next Sunday 9am", "next Sunday 9am · "),
        ("Tuesday, Dec 8 at noon", "2026-12-08 noon · "),
        ("on Thurs at 4 pm", "Thu 4pm · "),
        ("in two weeks", "in 2 weeks · "),
        ("a week from now", "in 1 week · "),
        ("in half an hour", "in 30 minutes · "),
        ("in an hour", "in 1 hour · "),
        ("the day after tomorrow at 10", "in 2 days 10 · "),
        ("on the first of December", "2026-12-01 · "),
        ("to Dec 18", "until 2026-12-18 · "),
        ("on friday evening", "friday evening · "),
        ("tomorrow morning", "tomorrow morning · "),
        ("tonight", "today night · "),
        ("this afternoon", "today afternoon · "),
        ("tomorrow at 8 in the evening", "tomorrow 8pm · "),
        ("tomorrow at 8", "tomorrow 8 · "),
        ("9am tomorrow", "tomorrow 9am · "),
        ("at noon on Friday", "Friday noon · "),
        ("tomorrow at 8 pm UTC sharp", "tomorrow 8pm UTC · sharp"),
        ("Friday 9am ET", "Friday 9am ET · "),
        ("Friday 9am Europe/Berlin", "Friday 9am Europe/Berlin · "),
        ("Friday 9:00 utc+5:30 please", "Friday 9:00 UTC+5:30 · please"),
        ("on January 3rd", "2027-01-03 · "),
        ("2027-01-15 09:00", "2027-01-15 09:00 · "),
        ("after Thanksgiving", "after Thanksgiving · "),
        ("after Dec 3", "after 2026-12-03 · "),
        ("on New Year's Day", "New Year's Day · "),
        ("until the end of the month", "until end of month · "),
        ("by end of December", "until end of december · "),
        ("on the 15th", "the 15th · "),
        ("on 12/25/2026", "2026-12-25 · "),
        ("on 25/12/2026 at 9am", "2026-12-25 9am · "),
        ("on 13.12.2026", "2026-12-13 · "),
        ("on 12/25", "2026-12-25 · "),
        ("on 12/03/2026", "12/03/2026 · "),
        ("next week", "none"),
        ("after Friday", "none"),
        ("may be", "none"),
        ("the second one", "none"),
        ("Christmas Hints", "none"),
        ("Monday, Dec 8", "none"),
        ("tonight at 8", "today 8pm · "),
        ("Sun is shining", "none"),
        ("12/88", "none"),
    ] {
        assert_eq!(read(said), expected, "{said}");
    }
}

#[test]
fn a_month_stays_in_words_if_the_day_is_not_known() {
    let words = words("Dec 3 at 9am");
    assert_eq!(moment(&words, "").map(|(when, ..)| when).as_deref(), Some("December 3 9am"));
}

#[test]
fn periods_of_one_month_and_times_alone() {
    for (said, expected) in [
        ("Dec 1 to 18", Some(("2026-12-01", "2026-12-18"))),
        ("from Dec 1-18", Some(("2026-12-01", "2026-12-18"))),
        ("1 to 18 December", Some(("2026-12-01", "2026-12-18"))),
        ("between Dec 1 and Jan 18", Some(("2026-12-01", "2027-01-18"))),
        ("Dec 1 – Dec 18", Some(("2026-12-01", "2026-12-18"))),
        ("Dec 1 to Jan 18", None),
        ("Dec 18 to 1", None),
    ] {
        let words = words(said);
        let found = period(&words, TODAY);
        let found = found.as_ref().map(|(from, until, _)| (from.as_str(), until.as_str()));
        assert_eq!(found, expected, "{said}");
    }
    for (said, expected) in
        [("at 3pm", Some("at 3pm")), ("until noon", Some("at noon")), ("3", None), ("at home", None)]
    {
        let words = words(said);
        assert_eq!(time_alone(&words).map(|(when, ..)| when).as_deref(), expected, "{said}");
    }
}

#[test]
fn a_date_with_two_meanings_is_found() {
    let found = ambiguous("start Math Hints on 12/03/2026, please").unwrap();
    assert_eq!(found.written, "12/03/2026");
    assert_eq!(found.meanings, ["December 3, 2026", "March 12, 2026"]);
    assert!(found.is_first_in(r#"{"start_on":"2026-12-03 9:00"}"#) && !found.is_first_in("2026-03-12"));
    let found = ambiguous("start Math Hints on 12/1").unwrap();
    assert_eq!((found.written.as_str(), found.meanings.clone()), ("12/1", ["December 1".into(), "January 12".into()]));
    assert!(found.is_first_in("2026-12-01") && found.is_first_in("December 1"));
    for said in [
        "on 12/13/2026",
        "on 12/12/2026",
        "on 12/13",
        "on 12/12",
        "split 1/2",
        "weights to 1/2",
        "70/30",
        "SelectSection/area_model",
        "2026-12-03",
        "",
    ] {
        assert_eq!(ambiguous(said), None, "{said}");
    }
}

#[test]
fn a_message_names_one_zone_or_none() {
    for (said, expected) in [
        ("start it on Friday at 9am ET, then end it on Monday at noon", Some("America/New_York")),
        ("start it at 9:00 UTC+2 and end it on Monday at 9 UTC+2", Some("Etc/GMT-2")),
        ("start it on Friday at 9:00 Europe/Berlin", Some("Europe/Berlin")),
        ("start it at 9am ET and end it on Monday at 9am PT", None),
        ("start it on Friday at 9am", None),
        ("rename it to “9am ET”", None),
        ("et", None),
    ] {
        assert_eq!(named_zone(said).as_deref(), expected, "{said}");
    }
}
