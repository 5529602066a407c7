//! Drafts from templates, for a program without a language model. They are never sent without a person.

use countersign_mail::{Mail, topic};
use jiff::civil::{Date, DateTime};

use super::{
    greeting::greeting,
    lookup::FreeSlot,
    rules::{Class, cut},
};

/// The maximum number of times that a template offers.
const MAX_SLOTS: usize = 3;

/// The maximum length of a subject in a template, in characters.
const MAX_SUBJECT_CHARS: usize = 200;

/// Returns a draft for a mail of this class.
pub fn draft(mail: &Mail, class: Class, slots: &[FreeSlot], signature: &str) -> String {
    let greeting = greeting(mail.sender());
    let subject = cut(topic(&mail.subject), MAX_SUBJECT_CHARS);
    let about = if subject.is_empty() { String::new() } else { format!(" about “{subject}”") };
    let body = match class {
        Class::Complaint => format!(
            "I'm sorry about the trouble you describe. Thank you for telling us{about}. We are looking into it and will \
             get back to you as soon as we know more."
        ),
        Class::MeetingRequest if slots.is_empty() => {
            format!("Thank you for your message{about}. We'd be glad to meet. Which days work for you?")
        }
        Class::MeetingRequest => {
            let times = offered(mail, slots).into_iter().map(|slot| format!("- {}", spoken(slot)));
            format!(
                "Thank you for your message{about}. We'd be glad to meet. We're free at these times:\n\n{}\n\nWhich time \
                 suits you?",
                times.collect::<Vec<_>>().join("\n")
            )
        }
        Class::FollowUp => {
            format!("Thank you for following up{about}. We're on it and will get back to you with an update soon.")
        }
        Class::Inquiry | Class::Spam | Class::Other => {
            format!("Thank you for your message{about}. We'll look into it and get back to you soon.")
        }
    };
    format!("{greeting}\n\n{body}\n\nBest regards,\n{signature}")
}

/// Returns the free times to offer: those on days that the mail names come first.
pub(super) fn offered<'a>(mail: &Mail, slots: &'a [FreeSlot]) -> Vec<&'a FreeSlot> {
    let text = format!("{} {}", mail.subject, mail.text).to_lowercase();
    let words: Vec<&str> = text.split(|letter: char| !letter.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
    let mut offered: Vec<&FreeSlot> = slots.iter().collect();
    offered.sort_by_key(|slot| !slot.start.parse::<DateTime>().is_ok_and(|start| names(&words, start.date())));
    offered.truncate(MAX_SLOTS);
    offered
}

/// Returns true if the words name this day: `Tuesday`, `Tue`, `March 4`, `4th of March`.
fn names(words: &[&str], day: Date) -> bool {
    let written = |form: &str| day.strftime(form).to_string().to_lowercase();
    let (weekday, short_weekday, month, short_month) = (written("%A"), written("%a"), written("%B"), written("%b"));
    let is_month = |word: &str| word == month || word == short_month;
    let is_number = |word: &str| {
        let number = word.trim_end_matches(|letter: char| letter.is_alphabetic());
        number.parse() == Ok(day.day()) && ["", "st", "nd", "rd", "th"].contains(&&word[number.len()..])
    };
    // “Sat” and “sun” are words of their own.
    let is_weekday = |word: &str| word == weekday || (word == short_weekday && !["sat", "sun"].contains(&word));
    words.iter().any(|word| is_weekday(word))
        || words.windows(2).any(|two| is_month(two[0]) && is_number(two[1]) || is_number(two[0]) && is_month(two[1]))
        || words.windows(3).any(|three| is_number(three[0]) && three[1] == "of" && is_month(three[2]))
}

/// Returns a free time as people write it: `Tuesday, March 4, between 9:00 AM and 10:00 AM (UTC+01:00)`. What cannot be
/// read as a time stays as it is.
fn spoken(slot: &FreeSlot) -> String {
    let (Ok(start), Ok(end)) = (slot.start.parse::<DateTime>(), slot.end.parse::<DateTime>()) else {
        return format!("{} to {}", slot.start, slot.end);
    };
    let (day, time) = (|at: DateTime| at.strftime("%A, %B %-d").to_string(), |at: DateTime| at.strftime("%-I:%M %p"));
    let times = match start.date() == end.date() {
        true => format!("{}, between {} and {}", day(start), time(start), time(end)),
        false => format!("between {}, {} and {}, {}", day(start), time(start), day(end), time(end)),
    };
    match slot.start.get(19..) {
        Some("+00:00") => format!("{times} (UTC)"),
        Some(offset) if offset.starts_with(['+', '-']) => format!("{times} (UTC{offset})"),
        _ => times,
    }
}

#[cfg(test)]
mod tests {
    use countersign_mail::Address;
    use insta::assert_snapshot;

    use super::*;
    use crate::tests::support::mail;

    fn about(subject: &str, text: &str) -> Mail {
        Mail { subject: subject.to_owned(), text: text.to_owned(), ..mail() }
    }

    /// Returns a free time on a day of March 2025; the 4th is a Tuesday.
    fn slot(day: u8) -> FreeSlot {
        FreeSlot {
            start: format!("2025-03-{day:02}T09:00:00+01:00"),
            end: format!("2025-03-{day:02}T10:30:00+01:00"),
            duration_minutes: 90,
        }
    }

    #[test]
    fn days_that_the_mail_names_are_offered_first() {
        let slots = [slot(4), slot(5), slot(6), slot(7), slot(14)];
        for (text, days) in [
            ("Shall we meet?", [4, 5, 6]),
            ("Would Friday work, or Thu?", [6, 7, 14]),
            ("How about March 14?", [14, 4, 5]),
            ("I can do the 7th of March.", [7, 4, 5]),
            ("5 Mar, please", [5, 4, 6]),
            ("We sat down with 7 people in March 2024.", [4, 5, 6]),
        ] {
            let mail = about("Meeting", text);
            let offered: Vec<&str> = offered(&mail, &slots).iter().map(|slot| slot.start.as_str()).collect();
            assert_eq!(offered, days.map(|day| slot(day).start), "{text}");
        }
    }

    #[test]
    fn a_time_in_utc_has_no_offset() {
        let slot = FreeSlot {
            start: "2025-03-04T09:00:00+00:00".to_owned(),
            end: "2025-03-04T17:00:00+00:00".to_owned(),
            duration_minutes: 480,
        };
        assert_eq!(spoken(&slot), "Tuesday, March 4, between 9:00 AM and 5:00 PM (UTC)");
    }

    #[test]
    fn a_meeting_request_is_offered_free_times() {
        let slots = [slot(4), slot(5), slot(6), slot(7)];
        assert_snapshot!(draft(&about("Re: RE: Meeting", "Shall we meet?"), Class::MeetingRequest, &slots, "Support"), @"
        Hello Dana Fields,

        Thank you for your message about “Meeting”. We'd be glad to meet. We're free at these times:

        - Tuesday, March 4, between 9:00 AM and 10:30 AM (UTC+01:00)
        - Wednesday, March 5, between 9:00 AM and 10:30 AM (UTC+01:00)
        - Thursday, March 6, between 9:00 AM and 10:30 AM (UTC+01:00)

        Which time suits you?

        Best regards,
        Support
        ");
    }

    #[test]
    fn a_sender_without_a_name_is_greeted_without_one() {
        let mail = Mail { from: Address::parse("dana@example.org"), subject: String::new(), ..mail() };
        let draft = draft(&mail, Class::Complaint, &[], "Support");
        assert!(draft.starts_with("Hello,\n\nI'm sorry about the trouble you describe. Thank you for telling us. "));
    }
}
