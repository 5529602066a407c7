//! Drafts from templates, for a program without a language model. They are never sent without a person.

use countersign_mail::{Mail, topic};
use jiff::civil::DateTime;

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
            let times = slots.iter().take(MAX_SLOTS).map(|slot| format!("- {}", spoken(slot)));
            format!(
                "Thank you for your message{about}. We'd be glad to meet. These times are free:\n\n{}\n\nDoes one of \
                 these work for you?",
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

/// Returns a free time as people write it: `Tuesday, March 4, 9:00 AM to 10:00 AM (UTC+01:00)`. What cannot be read as a
/// time stays as it is.
fn spoken(slot: &FreeSlot) -> String {
    let (Ok(start), Ok(end)) = (slot.start.parse::<DateTime>(), slot.end.parse::<DateTime>()) else {
        return format!("{} to {}", slot.start, slot.end);
    };
    let end_form = if start.date() == end.date() { "%-I:%M %p" } else { "%A, %B %-d, %-I:%M %p" };
    let times = format!("{} to {}", start.strftime("%A, %B %-d, %-I:%M %p"), end.strftime(end_form));
    match slot.start.get(19..).filter(|offset| offset.starts_with(['+', '-'])) {
        Some(offset) => format!("{times} (UTC{offset})"),
        None => times,
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

    #[test]
    fn a_meeting_request_is_offered_free_times() {
        let slot = |day| FreeSlot {
            start: format!("2025-03-0{day}T09:00:00+01:00"),
            end: format!("2025-03-0{day}T10:30:00+01:00"),
            duration_minutes: 90,
        };
        let slots = [slot(4), slot(5), slot(6), slot(7)];
        assert_snapshot!(draft(&about("Re: RE: Meeting", "Shall we meet?"), Class::MeetingRequest, &slots, "Support"), @"
        Hello Dana Fields,

        Thank you for your message about “Meeting”. We'd be glad to meet. These times are free:

        - Tuesday, March 4, 9:00 AM to 10:30 AM (UTC+01:00)
        - Wednesday, March 5, 9:00 AM to 10:30 AM (UTC+01:00)
        - Thursday, March 6, 9:00 AM to 10:30 AM (UTC+01:00)

        Does one of these work for you?

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
