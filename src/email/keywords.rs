//! The class of a mail by its keywords, for a program without a language model.
//!
//! Each class has phrases that speak for it, and words that only support it: “Tuesday” makes no meeting request, but
//! it makes one of “could we talk on Tuesday?”. The class with most evidence counts. Nothing that is decided here is
//! ever sent without a person.

use countersign_mail::Mail;

use super::rules::Class;

/// The confidence of a class by keywords: below every threshold for an automatic step.
const BY_KEYWORDS: f64 = 0.6;

/// The confidence of a mail without keywords.
const WITHOUT_KEYWORDS: f64 = 0.5;

/// The evidence for a class. A `*` at the end of a phrase stands for any ending of its last word.
struct Evidence {
    class: Class,
    /// Phrases that speak for the class, each with its weight.
    phrases: &'static [(u32, &'static [&'static str])],
    /// Words that count once there is a phrase.
    support: &'static [&'static str],
}

/// The evidence for all classes but the last. If two have as much, the first counts.
const EVIDENCE: &[Evidence] = &[
    Evidence {
        class: Class::Spam,
        phrases: &[
            (
                6,
                &[
                    "you have won",
                    "you won",
                    "lottery",
                    "million dollars",
                    "million usd",
                    "casino",
                    "viagra",
                    "crypto giveaway",
                    "double your",
                    "wire transfer fee",
                    "claim your prize",
                    "claim your reward",
                    "inheritance",
                    "work from home and earn",
                    "risk free",
                    "miracle",
                    "backlinks",
                    "guest post",
                    "rank your website",
                    "seo services",
                    "verify your account within",
                    "your account will be suspended",
                    "your mailbox is full",
                    "no credit check",
                    "guaranteed approval",
                    "get a loan",
                    "investment opportunity",
                ],
            ),
            (3, &["act now", "limited time offer", "100% free", "special promotion", "bitcoin", "dear beneficiary"]),
            (2, &["unsubscribe", "click here", "earn money", "cheap*"]),
        ],
        support: &["free", "prize", "winner", "urgent", "guaranteed", "offer", "click"],
    },
    Evidence {
        class: Class::Complaint,
        phrases: &[
            (
                7,
                &[
                    "complain*",
                    "unacceptable",
                    "disappoint*",
                    "refund",
                    "money back",
                    "charged twice",
                    "charged us twice",
                    "charged me twice",
                    "overcharged",
                    "terrible",
                    "awful",
                    "horrible",
                    "not happy",
                    "unhappy",
                    "dissatisfied",
                    "not satisfied",
                    "angry",
                    "furious",
                    "fed up",
                    "worst",
                    "ridiculous",
                    "outrageous",
                    "frustrat*",
                    "cancel my contract",
                    "cancel our contract",
                    "cancel my subscription",
                    "cancel our subscription",
                    "nobody answer*",
                    "nobody repl*",
                    "no one answer*",
                    "no one repl*",
                    "lawyer",
                    "not acceptable",
                    "late again",
                    "compensation",
                ],
            ),
            (
                6,
                &[
                    "arrived broken",
                    "is broken",
                    "was broken",
                    "damaged",
                    "stopped working",
                    "does not work",
                    "doesn't work",
                    "did not work",
                    "not working",
                    "keeps crashing",
                    "wrong item",
                    "never arrived",
                    "still not arrived",
                    "rude",
                    "waste of",
                    "let down",
                    "poor service",
                    "lost all",
                    "lost my",
                    "deleted my",
                    "full of errors",
                    "full of bugs",
                    "nobody tells",
                    "no one tells",
                ],
            ),
        ],
        support: &["again", "still", "never", "wrong", "third time", "second time", "twice", "late", "weeks"],
    },
    Evidence {
        class: Class::MeetingRequest,
        phrases: &[
            (
                4,
                &[
                    "appointment",
                    "schedule a",
                    "set up a call",
                    "set up a meeting",
                    "set up a time",
                    "arrange a",
                    "have a call",
                    "hop on a call",
                    "jump on a call",
                    "a quick call",
                    "a short call",
                    "a phone call",
                    "a video call",
                    "a call",
                    "could we meet",
                    "can we meet",
                    "shall we meet",
                    "like to meet",
                    "meet up",
                    "meet in person",
                    "meet you",
                    "meet with",
                    "could we talk",
                    "can we talk",
                    "could we speak",
                    "can we speak",
                    "time to talk",
                    "time to meet",
                    "time for a",
                    "are you free",
                    "are you available",
                    "when are you",
                    "your availability",
                    "find a time",
                    "find a slot",
                    "book a slot",
                    "book a time",
                    "book a demo",
                    "a demo",
                    "catch up over",
                    "visit you",
                    "visit your office",
                    "come by",
                    "grab a coffee",
                    "for lunch",
                    "for coffee",
                    "a chat",
                    "schedule an",
                    "schedule the",
                    "interview with",
                    "let's sync",
                    "let us sync",
                    "suit you",
                    "calendar invit*",
                ],
            ),
            (3, &["meeting", "reschedule", "move our", "postpone"]),
        ],
        support: &[
            "monday",
            "tuesday",
            "wednesday",
            "thursday",
            "friday",
            "tomorrow",
            "next week",
            "this week",
            "morning",
            "afternoon",
            "half an hour",
            "30 minutes",
            "15 minutes",
            "an hour",
            "o clock",
            "calendar",
            "zoom",
            "available",
        ],
    },
    Evidence {
        class: Class::FollowUp,
        phrases: &[
            (
                5,
                &[
                    "following up",
                    "follow up",
                    "followed up",
                    "any news",
                    "any update*",
                    "an update on",
                    "reminder",
                    "as discussed",
                    "as agreed",
                    "as promised",
                    "circling back",
                    "checking in",
                    "just checking",
                    "have not heard",
                    "haven't heard",
                    "not heard back",
                    "did you get my",
                    "did you receive my",
                    "did you have a chance",
                    "had a chance to",
                    "my last email",
                    "my last mail",
                    "my previous email",
                    "my earlier email",
                    "my email from",
                    "our conversation",
                    "our call",
                    "our last meeting",
                    "status of my",
                    "status of our",
                    "where are we with",
                    "still waiting",
                    "you promised",
                    "wanted to check",
                    "any progress",
                    "got no reply",
                    "got no answer",
                    "no reply yet",
                    "no answer yet",
                    "wrote to you",
                    "when can i expect",
                    "when can we expect",
                ],
            ),
            (2, &["last week you", "you said", "you told", "you mentioned"]),
        ],
        support: &["yet", "still", "last week", "yesterday", "earlier", "again"],
    },
    Evidence {
        class: Class::Inquiry,
        phrases: &[
            (
                3,
                &[
                    "question*",
                    "how much",
                    "how many",
                    "how do i",
                    "how do we",
                    "how do you",
                    "how can i",
                    "how can we",
                    "how does",
                    "how long does",
                    "what is",
                    "what are",
                    "what does",
                    "what would",
                    "which of",
                    "is it possible",
                    "is there a",
                    "are there any",
                    "do you offer",
                    "do you have",
                    "do you support",
                    "do you ship",
                    "does it",
                    "does your",
                    "can i use",
                    "can we use",
                    "would like to know",
                    "want to know",
                    "wanted to know",
                    "like more information",
                    "more details",
                    "more information",
                    "interested in",
                    "wondering",
                    "price*",
                    "pricing",
                    "a quote",
                    "quotation",
                    "discount*",
                    "cost*",
                    "tell me",
                    "let me know whether",
                    "let me know if",
                    "explain",
                ],
            ),
            (2, &["could you", "can you", "please send", "?"]),
        ],
        support: &["?"],
    },
];

/// Returns the class of a mail by its keywords, its confidence, which is too low for any automatic step, and the reason.
pub fn classify(mail: &Mail) -> (Class, f64, &'static str) {
    let own = mail.text.lines().filter(|line| !line.trim_start().starts_with('>')); // not what it quotes
    let text = words(&format!("{} . {}", mail.subject, own.collect::<Vec<_>>().join("\n")));
    let is_answer = !mail.references.is_empty();
    let scores = EVIDENCE.iter().map(|evidence| (evidence.score(&text), evidence.class));
    // The first of several with the same score counts.
    let best = scores.rev().max_by_key(|(score, _)| *score).filter(|(score, _)| *score > 0);
    match best {
        Some((_, class)) => (class, BY_KEYWORDS, "by keywords in the email"),
        None if is_answer => (Class::FollowUp, BY_KEYWORDS, "it continues an earlier exchange"),
        None => (Class::Other, WITHOUT_KEYWORDS, "no keywords of another class"),
    }
}

impl Evidence {
    fn score(&self, text: &str) -> u32 {
        let phrases =
            self.phrases.iter().flat_map(|(weight, phrases)| phrases.iter().map(move |phrase| (weight, phrase)));
        let found: u32 = phrases.filter(|(_, phrase)| holds(text, phrase)).map(|(weight, _)| weight).sum();
        if found == 0 {
            return 0;
        }
        found + self.support.iter().map(|word| u32::from(holds(text, word))).sum::<u32>()
    }
}

/// Returns the words of a text in lower case, with a space before and after each; a question mark is a word.
fn words(text: &str) -> String {
    let text = text.to_lowercase().replace('’', "'");
    let mut words = String::with_capacity(text.len() + 2);
    words.push(' ');
    for c in text.chars() {
        match c {
            c if c.is_alphanumeric() || c == '\'' || c == '%' => words.push(c),
            '?' => words.push_str(" ? "),
            _ => words.push(' '),
        }
    }
    words.push(' ');
    let words: Vec<&str> = words.split_whitespace().collect();
    format!(" {} ", words.join(" "))
}

/// Returns true if the phrase is among these words.
fn holds(text: &str, phrase: &str) -> bool {
    match phrase.strip_suffix('*') {
        Some(begin) => text.contains(&format!(" {begin}")),
        None => text.contains(&format!(" {phrase} ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        rules::{AutomaticSettings, SURE, is_sure_spam},
        tests::support::mail,
    };

    fn about(subject: &str, text: &str) -> Mail {
        Mail { subject: subject.to_owned(), text: text.to_owned(), ..mail() }
    }

    #[track_caller]
    fn are(class: Class, mails: &[(&str, &str)]) {
        for (subject, text) in mails {
            let (found, confidence, _) = classify(&about(subject, text));
            assert_eq!(found, class, "{subject}: {text}");
            assert!(
                confidence < SURE && !is_sure_spam(found, confidence, &AutomaticSettings::default()),
                "never enough confidence"
            );
        }
    }

    #[test]
    fn questions_are_inquiries() {
        are(
            Class::Inquiry,
            &[
                ("Prices", "How much is the small plan?"),
                ("Prices for 20 seats", "What would 20 seats cost us for a year, and is there a discount for schools?"),
                ("Integration", "Do you support single sign-on with Okta?"),
                ("Question about exports", "Can you tell me how to export my data?"),
                ("Your product", "We are interested in your product and would like more information."),
                ("Opening hours", "Are you open on Monday? We want to buy two licenses."),
                ("Invoice address", "Could you send me the invoice for March?"),
                ("Login", "How can I reset my password?"),
                ("Trial", "Is there a free trial?"),
                ("Shipping", "Do you ship to Norway, and how long does it take?"),
            ],
        );
    }

    #[test]
    fn requests_to_talk_are_meeting_requests() {
        are(
            Class::MeetingRequest,
            &[
                ("Next week", "Could we have a meeting on Tuesday?"),
                ("A call next week?", "Could we talk for half an hour next week? Tuesday or Wednesday would be best."),
                ("Demo", "Can you show us a demo on Friday morning?"),
                ("Hello", "I'd like to meet with your team while I am in Basel next week."),
                ("Coffee", "Are you free on Thursday afternoon? Let's grab a coffee."),
                ("Appointment", "I need an appointment with Ms. Roth."),
                ("Call", "Can we set up a call to discuss the contract?"),
                ("Lunch", "I will be in town next week. Can we meet for lunch on Thursday?"),
                ("Budget", "Would Tuesday at 3 work for a chat about the budget?"),
                ("Tomorrow", "Sorry, I have to reschedule. Does 3 o'clock work?"),
            ],
        );
    }

    #[test]
    fn unhappy_mails_are_complaints() {
        are(
            Class::Complaint,
            &[
                ("Order 7", "This is unacceptable, I want a refund."),
                ("Charged twice", "Your last invoice charged us twice for March, and nobody answered my first mail."),
                ("Broken", "The device arrived broken. What are you going to do about it?"),
                ("Login", "The app stopped working again, for the third time this week."),
                ("Service", "I am really disappointed with your service."),
                ("Delivery", "My order never arrived. It was due three weeks ago."),
                ("Cancel", "Please cancel our subscription. We are fed up."),
                ("Support", "Your agent was rude on the phone."),
                ("Bug", "Your update deleted my data. I want compensation."),
                ("Late again", "My package is late again and nobody tells me anything."),
            ],
        );
    }

    #[test]
    fn mails_about_earlier_ones_are_follow_ups() {
        are(
            Class::FollowUp,
            &[
                ("Order 7", "I'm following up on my mail."),
                ("Re: offer", "Is there any news about the offer?"),
                ("Contract", "As discussed, I attach the signed contract."),
                ("Ticket", "Did you get my email from Monday?"),
                ("Reminder", "Just a reminder that we wait for your numbers."),
                ("Offer", "I haven't heard back from you yet."),
                ("Quote", "When can I expect the quote you promised?"),
                ("Still no answer", "I wrote to you two weeks ago and got no reply."),
                ("Our call", "Thanks for our call yesterday. Here are the slides."),
            ],
        );
        let answer = Mail { references: vec!["a@b".into()], ..about("Hi", "Greetings from Basel.") };
        assert_eq!(classify(&answer).0, Class::FollowUp, "it answers an earlier mail");
        let answer = Mail { references: vec!["a@b".into()], ..about("Re: Hi", "This is unacceptable.") };
        assert_eq!(classify(&answer).0, Class::Complaint, "an answer can complain");
    }

    #[test]
    fn advertisements_and_fraud_are_spam() {
        are(
            Class::Spam,
            &[
                ("Lucky", "You have won a million dollars"),
                ("SEO", "We offer SEO services and can rank your website on page one. Are you interested?"),
                ("Act now", "Limited time offer: cheap pills, click here!"),
                ("Security", "Your account will be suspended. Verify your account within 24 hours: click here."),
                ("Guest post", "Can I publish a guest post with two backlinks on your site?"),
                ("Loan", "Get a loan today with no credit check, guaranteed approval!"),
                ("Investment", "Double your bitcoin in a week, guaranteed."),
            ],
        );
    }

    #[test]
    fn anything_else_is_other() {
        are(
            Class::Other,
            &[
                ("Hi", "Greetings from Basel."),
                ("Thank you", "Thank you all for the lovely evening!"),
                ("Change of address", "Our new address is Lake Street 5, Geneva."),
                ("Welcome", "Welcome our new colleague Bea, who starts on Monday."),
                ("Out of office", "I am away until the 5th."),
            ],
        );
    }
}
