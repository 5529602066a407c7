//! Classes by words, and drafts by templates, for a program without a language model. Neither is ever sent without a
//! person.

use countersign_mail::Mail;

use super::{
    card::name_of,
    lookup::FreeSlot,
    rules::{Class, cut},
};

/// The confidence of a class by words: below every threshold for an automatic step.
const BY_WORDS: f64 = 0.6;

/// The maximum number of times that a template offers.
const MAX_SLOTS: usize = 3;

/// The maximum length of a subject in a template, in characters.
const MAX_SUBJECT_CHARS: usize = 200;

/// Words that speak for a class, in the order in which they are tried.
const WORDS: &[(Class, &[&str])] = &[
    (
        Class::Spam,
        &["unsubscribe", "lottery", "you have won", "million dollars", "casino", "viagra", "crypto giveaway"],
    ),
    (
        Class::Complaint,
        &["complain", "unacceptable", "disappointed", "refund", "terrible", "not happy", "angry", "broken", "worst"],
    ),
    (
        Class::MeetingRequest,
        &["meeting", "appointment", "schedule a call", "have a call", "are you free", "available on", "calendar"],
    ),
    (
        Class::FollowUp,
        &["following up", "follow up", "follow-up", "any news", "any update", "reminder", "as discussed"],
    ),
    (Class::Inquiry, &["question", "could you", "can you", "how do", "how much", "what is", "price", "?"]),
];

/// Returns the class of a mail by its words, with a confidence too low for any automatic step.
pub(super) fn classify(mail: &Mail) -> (Class, f64, &'static str) {
    let text = format!("{} {}", mail.subject, mail.text).to_lowercase();
    let found = WORDS.iter().find(|(_, words)| words.iter().any(|word| text.contains(word)));
    match found {
        Some((class, _)) => (*class, BY_WORDS, "by the words of the mail"),
        None if !mail.references.is_empty() => (Class::FollowUp, BY_WORDS, "it continues an earlier exchange"),
        None => (Class::Other, 0.5, "no words of another class"),
    }
}

/// Returns a draft for a mail of this class.
pub(super) fn draft(mail: &Mail, class: Class, slots: &[FreeSlot], signature: &str) -> String {
    let name = mail.sender().filter(|sender| sender.name.is_some()).map(name_of);
    let greeting = name.map_or_else(|| "Hello,".to_owned(), |name| format!("Hello {name},"));
    let subject = cut(mail.subject.trim(), MAX_SUBJECT_CHARS);
    let about = if subject.is_empty() { String::new() } else { format!(" about “{subject}”") };
    let body = match class {
        Class::Complaint => format!(
            "I'm sorry about the trouble you describe. Thank you for telling us{about}. We are looking into it and will \
             get back to you as soon as we know more."
        ),
        Class::MeetingRequest if slots.is_empty() => {
            format!("Thank you for your message{about}. We'd be glad to meet. Which days suit you?")
        }
        Class::MeetingRequest => {
            let times = slots.iter().take(MAX_SLOTS).map(|slot| format!("- {} to {}", slot.start, slot.end));
            format!(
                "Thank you for your message{about}. We'd be glad to meet. These times are free:\n\n{}\n\nDoes one of \
                 them suit you?",
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

#[cfg(test)]
mod tests {
    use countersign_mail::Address;
    use insta::assert_snapshot;

    use super::*;
    use crate::{
        rules::{SURE, is_sure_spam},
        tests::support::mail,
    };

    fn about(subject: &str, text: &str) -> Mail {
        Mail { subject: subject.to_owned(), text: text.to_owned(), ..mail() }
    }

    #[test]
    fn words_give_a_class_but_never_enough_confidence() {
        for (subject, text, class) in [
            ("Prices", "How much is the small plan?", Class::Inquiry),
            ("Next week", "Could we have a meeting on Tuesday?", Class::MeetingRequest),
            ("Order 7", "This is unacceptable, I want a refund.", Class::Complaint),
            ("Order 7", "I'm following up on my mail.", Class::FollowUp),
            ("Lucky", "You have won a million dollars", Class::Spam),
            ("Hi", "Greetings from Basel.", Class::Other),
        ] {
            let (found, confidence, _) = classify(&about(subject, text));
            assert_eq!(found, class, "{subject}");
            assert!(confidence < SURE && !is_sure_spam(found, confidence));
        }
        let answer = Mail { references: vec!["a@b".into()], ..about("Hi", "Greetings from Basel.") };
        assert_eq!(classify(&answer).0, Class::FollowUp);
    }

    #[test]
    fn a_meeting_request_is_offered_free_times() {
        let slot = |day| FreeSlot {
            start: format!("2025-03-0{day} 09:00"),
            end: format!("2025-03-0{day} 10:00"),
            duration_minutes: 60,
        };
        let slots = [slot(4), slot(5), slot(6), slot(7)];
        assert_snapshot!(draft(&about("Meeting", "Shall we meet?"), Class::MeetingRequest, &slots, "Support"), @"
        Hello Dana Fields,

        Thank you for your message about “Meeting”. We'd be glad to meet. These times are free:

        - 2025-03-04 09:00 to 2025-03-04 10:00
        - 2025-03-05 09:00 to 2025-03-05 10:00
        - 2025-03-06 09:00 to 2025-03-06 10:00

        Does one of them suit you?

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
