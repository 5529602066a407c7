//! Invitations in mails: the events of a calendar (RFC 5545), with what a person needs to answer them.
//!
//! A time is kept as it is written, with the name of its time zone, and as a moment if that zone is known: by its name,
//! or else by the rules that come with the calendar, as Outlook writes them.

use countersign_core::clock::Timestamp;
use jiff::{
    Span,
    civil::{Date, DateTime, Weekday},
    tz::{Offset, TimeZone},
};

use crate::{
    address::{Address, one_line_of},
    invitation::{EventTime, Invitation, InvitationKind},
};

/// The maximum length of a calendar that is read, in bytes. The rest is ignored.
const MAX_BYTES: usize = 256 * 1024;
/// The maximum number of events that are read.
const MAX_EVENTS: usize = 20;
/// The maximum number of rules of time zones that are read.
const MAX_RULES: usize = 100;
/// The maximum length of a title or place, in characters.
const MAX_CHARS: usize = 200;

/// A line of a calendar: `NAME;PARAMETER=…:value`.
struct Line<'a> {
    name: String,
    parameters: &'a str,
    value: &'a str,
}

/// The parts of an event that have been read so far.
#[derive(Default)]
struct Event {
    title: String,
    start: Option<Time>,
    end: Option<Time>,
    duration: Option<Span>,
    place: Option<String>,
    organizer: Option<Address>,
    answer: Option<String>,
    repeats: bool,
    is_cancelled: bool,
}

/// A time as it is written.
#[derive(Clone)]
struct Time {
    at: DateTime,
    is_day: bool,
    zone: Option<String>,
}

/// A rule of a time zone: from when its offset from UTC holds, in each year.
#[derive(Clone)]
struct Rule {
    zone: String,
    start: Option<DateTime>,
    offset: Option<Offset>,
    each_year: Option<(i8, i8, Weekday)>,
}

/// Reads the events of a calendar. What is not valid is left out.
pub(super) fn read(text: &str) -> Vec<Invitation> {
    let text = unfolded(text);
    let (mut method, mut zone, mut events, mut rules) = (String::new(), String::new(), Vec::new(), Vec::new());
    let (mut event, mut rule, mut within): (Option<Event>, Option<Rule>, Vec<String>) = (None, None, Vec::new());
    for line in text.lines().filter_map(Line::of) {
        let value = line.value.trim();
        match (line.name.as_str(), value.to_ascii_uppercase().as_str()) {
            ("BEGIN", "VEVENT") => event = Some(Event::default()),
            ("BEGIN", "STANDARD" | "DAYLIGHT") => {
                rule = Some(Rule { zone: zone.clone(), start: None, offset: None, each_year: None });
            }
            ("BEGIN", other) => within.push(other.to_owned()),
            ("END", "VEVENT") => events.extend(event.take()),
            ("END", "STANDARD" | "DAYLIGHT") if rules.len() < MAX_RULES => rules.extend(rule.take()),
            ("END", _) => drop(within.pop()),
            ("METHOD", method_name) => method_name.clone_into(&mut method),
            ("TZID", _) => value.clone_into(&mut zone),
            _ if within.last().is_some_and(|within| within == "VALARM") => {}
            _ => {
                if let Some(rule) = &mut rule {
                    rule.take(&line);
                } else if let Some(event) = &mut event {
                    event.take(&line);
                }
            }
        }
        if events.len() >= MAX_EVENTS {
            break;
        }
    }
    events.into_iter().filter_map(|event| event.into_invitation(&method, &rules)).collect()
}

/// Joins the lines that are folded. Lines are folded by a line end and a space.
fn unfolded(text: &str) -> String {
    let mut end = text.len().min(MAX_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].replace("\r\n", "\n").replace("\n ", "").replace("\n\t", "")
}

impl<'a> Line<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let mut is_quoted = false;
        let colon = line.find(|c| {
            is_quoted ^= c == '"';
            c == ':' && !is_quoted
        })?;
        let (head, value) = (&line[..colon], &line[colon + 1..]);
        let (name, parameters) = head.split_once(';').unwrap_or((head, ""));
        Some(Self { name: name.trim().to_ascii_uppercase(), parameters, value })
    }

    /// Returns the value of a parameter, without quotation marks.
    fn parameter(&self, name: &str) -> Option<String> {
        let mut is_quoted = false;
        let mut parameters = self.parameters.split(|c| {
            is_quoted ^= c == '"';
            c == ';' && !is_quoted
        });
        parameters.find_map(|parameter| {
            let (own, value) = parameter.split_once('=')?;
            own.trim().eq_ignore_ascii_case(name).then(|| value.trim().trim_matches('"').to_owned())
        })
    }

    /// Returns the value on one line, without its escapes; `None` if it is empty.
    fn text(&self) -> Option<String> {
        let mut plain = String::new();
        let mut chars = self.value.chars();
        while let Some(char) = chars.next() {
            plain.push(match char {
                '\\' => match chars.next() {
                    Some('n' | 'N') | None => ' ',
                    Some(escaped) => escaped,
                },
                char => char,
            });
        }
        Some(one_line_of(&plain, MAX_CHARS)).filter(|text| !text.is_empty())
    }

    fn person(&self) -> Option<Address> {
        let scheme = self.value.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("mailto:"));
        Address::new(self.parameter("CN").as_deref(), &self.value[scheme.map_or(0, str::len)..])
    }

    fn time(&self) -> Option<Time> {
        let value = self.value.trim();
        let zone = value.ends_with(['Z', 'z']).then(|| "UTC".to_owned()).or_else(|| self.parameter("TZID"));
        let at = value.trim_end_matches(['Z', 'z']);
        match DateTime::strptime("%Y%m%dT%H%M%S", at) {
            Ok(at) => Some(Time { at, is_day: false, zone }),
            Err(_) => {
                let day = Date::strptime("%Y%m%d", at).ok()?;
                Some(Time { at: day.at(0, 0, 0, 0), is_day: true, zone: None })
            }
        }
    }
}

impl Event {
    fn take(&mut self, line: &Line<'_>) {
        match line.name.as_str() {
            "SUMMARY" => self.title = line.text().unwrap_or_default(),
            "DTSTART" => self.start = line.time(),
            "DTEND" => self.end = line.time(),
            "DURATION" => self.duration = line.value.trim().parse().ok(),
            "LOCATION" => self.place = line.text(),
            "ORGANIZER" => self.organizer = line.person(),
            "ATTENDEE" if self.answer.is_none() => self.answer = line.parameter("PARTSTAT"),
            "RRULE" | "RDATE" => self.repeats = true,
            "STATUS" => self.is_cancelled = line.value.trim().eq_ignore_ascii_case("CANCELLED"),
            _ => {}
        }
    }

    fn into_invitation(self, method: &str, rules: &[Rule]) -> Option<Invitation> {
        let start = self.start?;
        let end = self.end.or_else(|| {
            let at = start.at.checked_add(self.duration?).ok()?;
            Some(Time { at, ..start.clone() })
        });
        // The end of whole days is the day after the last one.
        let end = end.map(|end| match end.is_day {
            true => Time { at: end.at.checked_sub(Span::new().days(1)).unwrap_or(end.at), ..end },
            false => end,
        });
        let kind = match method {
            "CANCEL" => InvitationKind::Cancels,
            _ if self.is_cancelled => InvitationKind::Cancels,
            "REPLY" | "COUNTER" => {
                InvitationKind::Answers(one_line_of(&self.answer.unwrap_or_default().to_lowercase(), 30))
            }
            _ => InvitationKind::Invites,
        };
        Some(Invitation {
            kind,
            title: self.title,
            end: end.filter(|end| end.at > start.at).map(|end| end.known(rules)),
            start: start.known(rules),
            place: self.place,
            organizer: self.organizer,
            repeats: self.repeats,
        })
    }
}

impl Time {
    /// Returns the time with its moment, if its zone is known.
    fn known(self, rules: &[Rule]) -> EventTime {
        let Self { at, is_day, zone } = self;
        let moment = zone.as_deref().filter(|_| !is_day).and_then(|zone| moment(at, zone, rules));
        EventTime {
            written: at.strftime(if is_day { "%Y-%m-%d" } else { "%Y-%m-%dT%H:%M" }).to_string(),
            zone: zone.map(|zone| one_line_of(&zone, MAX_CHARS)),
            at: moment,
        }
    }
}

fn moment(at: DateTime, zone: &str, rules: &[Rule]) -> Option<Timestamp> {
    // Some programs put their own name before that of the zone: `/example.org/Europe/Berlin`.
    let names = zone.trim_start_matches('/').split('/').count();
    let mut names = (0..names).filter_map(|skip| zone.trim_start_matches('/').splitn(skip + 1, '/').last());
    let zone_of_name = names.find_map(|name| TimeZone::get(name).ok());
    let known = zone_of_name.or_else(|| {
        let of_zone = rules.iter().filter(|rule| rule.zone == zone);
        let begun = of_zone.filter_map(|rule| Some((rule.begun(at)?, rule.offset?)));
        begun.max_by_key(|(begun, _)| *begun).map(|(_, offset)| TimeZone::fixed(offset))
    });
    Some(Timestamp(known?.to_zoned(at).ok()?.timestamp().as_millisecond()))
}

impl Rule {
    fn take(&mut self, line: &Line<'_>) {
        match line.name.as_str() {
            "DTSTART" => self.start = line.time().map(|time| time.at),
            "TZOFFSETTO" => self.offset = offset(line.value.trim()),
            "RRULE" => self.each_year = each_year(line.value),
            _ => {}
        }
    }

    /// Returns the last time before `at` at which the offset began to hold.
    fn begun(&self, at: DateTime) -> Option<DateTime> {
        let start = self.start?;
        let in_year = |year: i16| {
            let (month, nth, weekday) = self.each_year?;
            let day = Date::new(year, month, 1).ok()?.nth_weekday_of_month(nth, weekday).ok()?;
            Some(DateTime::from_parts(day, start.time()))
        };
        let years = [in_year(at.year()), in_year(at.year() - 1), Some(start)];
        years.into_iter().flatten().find(|begun| *begun <= at && *begun >= start)
    }
}

/// Reads `+0100` or `-033000`.
fn offset(text: &str) -> Option<Offset> {
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let number = |at: usize| digits.get(at..at + 2).map_or(Some(0), |two| two.parse::<i32>().ok());
    Offset::from_seconds(sign * (number(0)? * 3600 + number(2)? * 60 + number(4)?)).ok()
}

/// Reads a rule such as `FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3`: the month, the week in it and the day.
fn each_year(rule: &str) -> Option<(i8, i8, Weekday)> {
    let part = |name: &str| rule.split(';').find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='));
    let (nth, day) = part("BYDAY")?.split_at_checked(part("BYDAY")?.len().checked_sub(2)?)?;
    let weekday = match day {
        "MO" => Weekday::Monday,
        "TU" => Weekday::Tuesday,
        "WE" => Weekday::Wednesday,
        "TH" => Weekday::Thursday,
        "FR" => Weekday::Friday,
        "SA" => Weekday::Saturday,
        "SU" => Weekday::Sunday,
        _ => return None,
    };
    Some((part("BYMONTH")?.parse().ok()?, nth.trim_start_matches('+').parse().ok()?, weekday))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OUTLOOK: &str = "BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nBEGIN:VTIMEZONE\r\nTZID:Customized Time Zone\r\n\
        BEGIN:STANDARD\r\nDTSTART:16010101T030000\r\nTZOFFSETFROM:+0200\r\nTZOFFSETTO:+0100\r\n\
        RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10\r\nEND:STANDARD\r\nBEGIN:DAYLIGHT\r\nDTSTART:16010101T020000\r\n\
        TZOFFSETFROM:+0100\r\nTZOFFSETTO:+0200\r\nRRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3\r\nEND:DAYLIGHT\r\n\
        END:VTIMEZONE\r\nBEGIN:VEVENT\r\nORGANIZER;CN=\"Fields; Dana\":mailto:Dana@example.org\r\n\
        SUMMARY;LANGUAGE=en:Planning\\, part\r\n  two\r\nDTSTART;TZID=Customized Time Zone:{start}\r\n\
        DTEND;TZID=Customized Time Zone:{end}\r\nLOCATION:Room 5\\nFirst floor\r\nBEGIN:VALARM\r\n\
        DESCRIPTION:REMINDER\r\nTRIGGER:-PT15M\r\nSUMMARY:Other\r\nEND:VALARM\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";

    fn one(text: &str) -> Invitation {
        let mut found = read(text);
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    #[test]
    fn the_rules_of_a_calendar_give_the_moment() {
        for (start, end, moment) in [
            ("20250304T100000", "20250304T110000", "2025-03-04T09:00:00.000Z"),
            ("20250704T100000", "20250704T110000", "2025-07-04T08:00:00.000Z"),
            ("20251104T100000", "20251104T110000", "2025-11-04T09:00:00.000Z"),
        ] {
            let found = one(&OUTLOOK.replace("{start}", start).replace("{end}", end));
            assert_eq!(found.start.at.unwrap().to_string(), moment);
            assert_eq!(found.start.zone.as_deref(), Some("Customized Time Zone"));
        }
        let found = one(&OUTLOOK.replace("{start}", "20250304T100000").replace("{end}", "20250304T110000"));
        assert_eq!((found.title.as_str(), found.place.as_deref()), ("Planning, part two", Some("Room 5 First floor")));
        assert_eq!(
            found.organizer.as_ref().map(ToString::to_string).as_deref(),
            Some("Fields; Dana <dana@example.org>")
        );
        assert_eq!(
            found.to_string(),
            "Planning, part two, Tue, Mar 4, 2025, 10:00 AM to 11:00 AM (Customized Time Zone), \
            Room 5 First floor, from Fields; Dana <dana@example.org>"
        );
    }

    #[test]
    fn times_are_read_in_every_form() {
        let event = |lines: &str| one(&format!("BEGIN:VCALENDAR\nBEGIN:VEVENT\n{lines}\nEND:VEVENT\nEND:VCALENDAR\n"));
        for (lines, words, moment) in [
            (
                "DTSTART:20250304T090000Z\nDURATION:PT1H30M",
                "Tue, Mar 4, 2025, 9:00 AM to 10:30 AM (UTC)",
                Some("2025-03-04T09:00:00.000Z"),
            ),
            (
                "DTSTART;TZID=Europe/Berlin:20250704T100000",
                "Fri, Jul 4, 2025, 10:00 AM (Europe/Berlin)",
                Some("2025-07-04T08:00:00.000Z"),
            ),
            (
                "DTSTART;TZID=\"/x.org/Europe/Berlin\":20250704T100000",
                "Fri, Jul 4, 2025, 10:00 AM (/x.org/Europe/Berlin)",
                Some("2025-07-04T08:00:00.000Z"),
            ),
            ("DTSTART;TZID=Nowhere:20250704T100000", "Fri, Jul 4, 2025, 10:00 AM (Nowhere)", None),
            ("DTSTART:20250704T100000", "Fri, Jul 4, 2025, 10:00 AM (no time zone given)", None),
            ("DTSTART;VALUE=DATE:20250704\nDTEND;VALUE=DATE:20250705", "Fri, Jul 4, 2025", None),
            ("DTSTART;VALUE=DATE:20250704\nDTEND;VALUE=DATE:20250707", "Fri, Jul 4, 2025 to Sun, Jul 6, 2025", None),
            (
                "DTSTART:20250704T220000Z\nDTEND:20250705T020000Z\nRRULE:FREQ=WEEKLY",
                "Fri, Jul 4, 2025, 10:00 PM to Sat, Jul 5, 2025, 2:00 AM (UTC), repeats",
                Some("2025-07-04T22:00:00.000Z"),
            ),
        ] {
            let found = event(&format!("SUMMARY:Call\n{lines}"));
            assert_eq!(found.to_string(), format!("Call, {words}"), "{lines}");
            assert_eq!(found.start.at.map(|at| at.to_string()).as_deref(), moment, "{lines}");
        }
    }

    #[test]
    fn an_answer_and_a_cancellation_are_no_invitations() {
        let with = |method: &str, lines: &str| {
            let event = format!("BEGIN:VEVENT\nSUMMARY:Call\nDTSTART:20250304T090000Z\n{lines}\nEND:VEVENT");
            one(&format!("BEGIN:VCALENDAR\nMETHOD:{method}\n{event}\nEND:VCALENDAR")).kind
        };
        assert_eq!(with("CANCEL", ""), InvitationKind::Cancels);
        assert_eq!(with("REQUEST", "STATUS:CANCELLED"), InvitationKind::Cancels);
        assert_eq!(
            with("REPLY", "ATTENDEE;PARTSTAT=DECLINED:mailto:a@b.c"),
            InvitationKind::Answers("declined".into())
        );
        assert_eq!(with("PUBLISH", ""), InvitationKind::Invites);
    }

    proptest! {
        #[test]
        fn any_calendar_is_read(pieces in prop::collection::vec(prop::sample::select(vec![
            "BEGIN:VEVENT", "END:VEVENT", "BEGIN:VTIMEZONE", "TZID:x", "BEGIN:STANDARD", "END:STANDARD", "\r\n", "\n ", ":", ";",
            "DTSTART", "DTEND", ";TZID=x", ";TZID=\"", "20250304T100000", "20250304", "Z", "00000000", "DURATION:P9999999Y",
            "TZOFFSETTO:+99999999", "TZOFFSETTO:-", "RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3", "BYDAY=S", "SUMMARY:\\", "ü",
            "ORGANIZER:mailto", "99990101T000000",
        ]), 0..60)) {
            read(&pieces.concat());
            read(&pieces.join("\r\n"));
        }
    }
}
