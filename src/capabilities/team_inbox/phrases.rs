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
                ("which one's been waiting longest?", "read list_waiting_mails"),
                ("how many unanswered?", "read list_waiting_mails"),
                ("is it spam?", "read list_waiting_mails"),
                ("anything urgent in there?", "read list_waiting_mails"),
                ("anything angry in there?", r#"read list_waiting_mails {"class":"complaint"}"#),
                ("is anyone upset?", r#"read list_waiting_mails {"class":"complaint"}"#),
                ("any meeting requests?", r#"read list_waiting_mails {"class":"meeting_request"}"#),
                ("any spam in there", r#"read list_waiting_mails {"class":"spam"}"#),
                ("can ben get the tuesday slot?", r#"read list_waiting_mails {"from":"ben"}"#),
                ("tell chloe that it is on its way", r#"read list_waiting_mails {"from":"chloe"}"#),
                ("is mallorys mail spam?", r#"read list_waiting_mails {"from":"mallorys"}"#),
                ("did ben write back?", r#"read find_mails {"words":"ben"}"#),
                ("have we already answered ada", r#"read find_mails {"words":"ada"}"#),
                ("what happened today?", r#"read show_mail_figures {"about":"counts","days":1}"#),
                ("send ben a reply saying tuesday is fine", r#"read list_waiting_mails {"from":"ben"}"#),
                ("can you draft the answers for all of them", "read list_waiting_mails"),
                ("show me bens mail", r#"read find_mails {"words":"bens"}"#),
                ("show me the last mail", "read list_waiting_mails"),
                ("mark mallory as spam", "unclear"),
                ("ok mark it", "unclear"),
                ("can bo take this one", "unclear"),
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
                ("any mail from ben", r#"read find_mails {"words":"ben"}"#),
                ("is there any new email about refunds", r#"read find_mails {"words":"refunds"}"#),
                ("how many unanswered mails do we have?", "read list_waiting_mails"),
                ("which email has been waiting longest?", "read list_waiting_mails"),
                ("any complaints?", r#"read list_waiting_mails {"class":"complaint"}"#),
                ("are there any complaints in the inbox", r#"read list_waiting_mails {"class":"complaint"}"#),
                (
                    "draft something for chloe, apologise and offer a refund",
                    r#"read list_waiting_mails {"from":"chloe"}"#,
                ),
                ("reply to chloe that the refund is on its way", r#"read list_waiting_mails {"from":"chloe"}"#),
                ("what happened in the inbox today?", r#"read show_mail_figures {"about":"counts","days":1}"#),
                ("how many emails came in this week?", r#"read show_mail_figures {"about":"counts","days":7}"#),
                ("forward mallorys mail to Bo", "unclear"),
                ("assign the mail from ben to ana", "unclear"),
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
