//! Corrections of the time in the present draft or card: `no, at 9:00`, `Tuesday 9:00 instead`,
//! `make it 10:00`, `Saturday`.

use countersign_capabilities::dates::{PARAMETERS, moment_in_zone, time_zone};
use countersign_understanding::{
    corrections::Correction,
    dates::{Moment, time},
};
use serde_json::Map;

use super::{
    changes::STATUS,
    design::date,
    situation::{Draft, Situation},
    user_request::{Interpretation, UserRequest},
    words::{self, Word, after, without_last},
};

/// Parses a day, a time of day, or both, as a correction of a change with a time. A time of day alone
/// keeps the day; a day alone keeps the time of day.
pub(super) fn correction(words: &[Word], situation: &Situation) -> Option<Interpretation> {
    let draft = situation.in_hand().filter(|draft| draft.asked.is_none())?;
    let found = Correction::of(words);
    let (key, before) = moment_of(draft, found.is_marked || words.iter().any(|word| word.any(&["change", "move"])))?;
    let mut params = Map::new();
    if before.is_none() {
        params.insert("status".to_owned(), "scheduled".into());
    }
    let before = before.map(|before| day_and_time(before, situation.zone.as_deref()));
    params.insert(key.to_owned(), moment(found.value, before)?.into());
    Some(UserRequest::Update(params).into())
}

/// Returns the parameter of a change that is a time, and its present value, if there is exactly one. For
/// an immediate start, the value is `None`; it becomes a scheduled one only if `is_marked`, which means
/// that the message is marked as a correction.
fn moment_of(draft: &Draft, is_marked: bool) -> Option<(&'static str, Option<&str>)> {
    let mut given = PARAMETERS.iter().filter_map(|key| Some((*key, draft.params.get(*key)?.as_str()?)));
    match (given.next(), given.next()) {
        (Some((key, before)), None) => Some((key, Some(before))),
        (None, _) => {
            let starts = draft.action == STATUS && draft.params.get("status").is_some_and(|status| status == "start");
            (starts && is_marked).then_some(("start_on", None))
        }
        _ => None,
    }
}

/// Parses a time, completed from the day and the time of day before; `None` if there are other words.
fn moment(words: &[Word], before: Option<(String, Option<String>)>) -> Option<String> {
    const OPENINGS: &str =
        "move it to|it should start|how about|what about|start it|start|schedule it|on|for|to|until|till";
    let mut rest = words;
    while let Some(left) = after(rest, OPENINGS) {
        rest = left;
    }
    let rest = without_last(rest, &["utc", "better", "instead", "rather", "please", "then"]);
    let (day_before, time_before) = before.unzip();
    let nth = || Some(nth_of(&Moment::read(&words::text(rest), "")?, day_before.as_deref()?));
    let parsed = match date(rest) {
        Some((moment, [])) => moment,
        Some(_) => return None,
        None if rest.first().is_some_and(|first| first.is("the")) => nth()?,
        None => {
            let (time, _) = time(rest).filter(|(_, rest)| rest.is_empty())?;
            return Some(format!("{} {time}", day_before?));
        }
    };
    match (day_and_time(&parsed, None), time_before.flatten()) {
        ((day, None), Some(time)) => Some(format!("{day} {time}")),
        _ => Some(parsed),
    }
}

/// Returns a moment such as `the 23rd 9am` in the month of the day before it, if that is known: `December 23 9am`.
fn nth_of(moment: &Moment, before: &str) -> String {
    let number = moment.day.as_deref().and_then(|day| day.strip_prefix("the ")).map(|day| &day[..day.len() - 2]);
    let in_month = number.and_then(|number| match before.split_once(' ') {
        Some((month, day)) if day.parse::<u8>().is_ok() => Some(format!("{month} {number}")),
        _ if before.len() == 10 && before.matches('-').count() == 2 => Some(format!("{}-{number:0>2}", &before[..7])),
        _ => None,
    });
    Moment { day: in_month.or_else(|| moment.day.clone()), ..moment.clone() }.text()
}

/// Returns the day and the time of day of a moment in words, or in the format `2026-11-23T09:00:00.000Z` as the clocks of
/// the zone show it.
fn day_and_time(moment: &str, zone: Option<&str>) -> (String, Option<String>) {
    if moment.split_once('T').is_some_and(|(day, _)| day.len() == 10) {
        let local = moment_in_zone(moment, &time_zone(zone));
        let mut parts = local.split([' ', 'T']).map(|part| part.chars().take(10).collect::<String>());
        let (day, time) = (parts.next().unwrap_or_default(), parts.next());
        return (day, time.map(|time| time.chars().take(5).collect()));
    }
    if let Some(Moment { day: Some(day), time, .. }) = Moment::read(moment, "") {
        return (day, time);
    }
    let all = words::words(moment);
    let rest = after(&all, "next|this").unwrap_or(&all);
    let (day, time) = rest.split_at(if rest.first().is_some_and(|word| word.is("in")) { 3 } else { 1 }.min(rest.len()));
    let time = words::text(after(time, "at|,").unwrap_or(time));
    (words::text(day), (!time.is_empty()).then_some(time))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{
        changes::STATUS,
        situation::{Draft, Situation},
        tests::{check, open_card, params},
    };

    fn on_card(change: serde_json::Value) -> Situation {
        let draft = Draft { action: STATUS.into(), params: params(change), asked: None, unread: None };
        Situation {
            on_card: Some(draft),
            open_cards: vec![open_card("Schedule “Math Hints”?")],
            ..Situation::default()
        }
    }

    #[test]
    fn another_time_is_a_correction() {
        let scheduled =
            json!({ "experiment": "Math Hints", "status": "scheduled", "start_on": "2026-11-23T00:00:00.000Z" });
        let nine = r#"update {"start_on":"2026-11-23 9:00"}"#;
        check(
            &on_card(scheduled),
            &[
                ("no, at 9:00", nine),
                ("9:00", nine),
                ("at 9:00", nine),
                ("No, 9:00 please", nine),
                ("start it at 9:00 UTC", nine),
                ("make it 10:00", r#"update {"start_on":"2026-11-23 10:00"}"#),
                ("at 9 am", r#"update {"start_on":"2026-11-23 9am"}"#),
                ("at noon instead", r#"update {"start_on":"2026-11-23 noon"}"#),
                ("Tuesday 9:00 instead", r#"update {"start_on":"Tuesday 9:00"}"#),
                ("Saturday", r#"update {"start_on":"Saturday 00:00"}"#),
                ("no, on Saturday", r#"update {"start_on":"Saturday 00:00"}"#),
                ("tomorrow at noon", r#"update {"start_on":"tomorrow noon"}"#),
            ],
        );
        let friday =
            json!({ "experiment": "Math Hints", "status": "scheduled", "start_on": "2027-01-15T09:30:00.000Z" });
        check(&on_card(friday), &[("make it 2027-01-16", r#"update {"start_on":"2027-01-16 09:30"}"#)]);
    }

    #[test]
    fn a_time_on_a_card_is_corrected_in_the_zone_of_the_person() {
        let scheduled =
            json!({ "experiment": "Math Hints", "status": "scheduled", "start_on": "2026-11-23T23:30:00.000Z" });
        let situation = Situation { zone: Some("Europe/Berlin".to_owned()), ..on_card(scheduled) };
        check(
            &situation,
            &[
                ("no, at 9:00", r#"update {"start_on":"2026-11-24 9:00"}"#),
                ("Saturday", r#"update {"start_on":"Saturday 00:30"}"#),
            ],
        );
    }

    #[test]
    fn a_number_of_a_day_is_in_the_month_of_the_day_before() {
        let ends = |end: &str| on_card(json!({ "experiment": "Chat Tone", "end_on": end }));
        for (end, corrected) in [
            ("24.12", r#"update {"end_on":"December 23"}"#),
            ("December 24 noon", r#"update {"end_on":"December 23 noon"}"#),
            ("2026-12-24T23:59:00.000Z", r#"update {"end_on":"2026-12-23 23:59"}"#),
        ] {
            check(&ends(end), &[("actually the 23rd", corrected), ("no, the 23rd please", corrected)]);
        }
        check(&ends("24.12"), &[("at noon", r#"update {"end_on":"December 24 noon"}"#)]);
    }

    #[test]
    fn an_immediate_start_can_become_a_scheduled_one() {
        let start = json!({ "experiment": "Math Hints", "status": "start" });
        let scheduled = r#"update {"start_on":"tomorrow 9:00","status":"scheduled"}"#;
        check(&on_card(start), &[("no, tomorrow at 9:00", scheduled), ("tomorrow 9:00 instead", scheduled)]);
    }

    #[test]
    fn unparsed_parts_of_a_date_are_not_ignored() {
        check(
            &Situation::default(),
            &[
                ("schedule Math Hints for Monday or Tuesday", "unclear"),
                ("schedule Math Hints for next monday at dawn", "unclear"),
            ],
        );
    }
}
