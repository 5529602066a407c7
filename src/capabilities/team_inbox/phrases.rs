//! The phrases about the team's mail: `mail status`, `which mails are waiting?`, `how fast do we answer mail?`.

use countersign_understanding::phrases::Vocabulary;

/// The phrases about mail.
pub(super) const OF_MAIL: Vocabulary = Vocabulary {
    lines: include_str!("phrases.txt"),
    help: "*Email*\n\
         • email status\n\
         • which emails are waiting?\n\
         • show the email from Ada\n\
         • how fast do we answer email?\n\
         • what kinds of email do we get?",
    // A thread cannot be about a mail here, since each mail has a thread of its own.
    greeting: "",
    ..Vocabulary::new(&["mail", "mails"])
};

#[cfg(test)]
mod tests {
    use super::OF_MAIL;
    use countersign_understanding::{
        checking::{check, check_offers},
        phrase_book::PhraseBook,
        situation::{Situation, Topic},
    };

    #[test]
    fn each_suggestion_is_read() {
        check_offers(&PhraseBook::default().with("mail", &OF_MAIL).unwrap(), &Situation::default());
    }

    #[test]
    fn in_a_thread_about_mail_one_is_named_by_its_sender() {
        let last = Topic { capability: "mail".to_owned(), call: "list_waiting_mails".to_owned(), ..Topic::default() };
        check(
            &PhraseBook::default().with("mail", &OF_MAIL).unwrap(),
            &Situation { aside: Some(last), ..Situation::default() },
            &[
                ("show me the one from chloe", r#"read find_mails {"words":"chloe"}"#),
                ("the one about prices please", r#"read find_mails {"words":"prices"}"#),
                ("oldest first pls", "read list_waiting_mails"),
                ("anything unanswered?", "read list_waiting_mails"),
                ("how quick are we usually", r#"read show_mail_figures {"about":"times"}"#),
                ("close the spam ones", "unclear"),
                ("delete them", "unclear"),
            ],
        );
    }

    #[test]
    fn questions_about_mail_are_understood() {
        check(
            &PhraseBook::default().with("mail", &OF_MAIL).unwrap(),
            &Situation::default(),
            &[
                ("mail status", "read mail_status"),
                ("what is the status of the inbox?", "read mail_status"),
                ("how many mails are waiting?", "read mail_status"),
                ("has new mail arrived?", "read mail_status"),
                ("which mails are waiting?", "read list_waiting_mails"),
                ("show me the waiting mails", "read list_waiting_mails"),
                ("which emails need an answer?", "read list_waiting_mails"),
                ("show the email from Lena", r#"read find_mails {"words":"Lena"}"#),
                ("find the mails about prices for 20 seats", r#"read find_mails {"words":"prices for 20 seats"}"#),
                ("search mails for invoice", r#"read find_mails {"words":"invoice"}"#),
                ("how fast do we answer mail?", r#"read show_mail_figures {"about":"times"}"#),
                ("how long does it take to answer a mail?", r#"read show_mail_figures {"about":"times"}"#),
                ("show the mail statistics", r#"read show_mail_figures {"about":"times"}"#),
                ("what kinds of mail do we get?", r#"read show_mail_figures {"about":"classes"}"#),
                ("show mails by class", r#"read show_mail_figures {"about":"classes"}"#),
            ],
        );
    }
}
