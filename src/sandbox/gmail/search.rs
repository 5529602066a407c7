//! The search of messages with `q`.

use super::{
    failure::Failure,
    mailbox::{Mailbox, Message},
    mime,
};

/// One condition. All conditions of a query must hold.
#[derive(Debug, PartialEq, Eq)]
enum Condition {
    Label(String),
    MessageId(String),
    Header(&'static str, String),
    Word(String),
    Not(Box<Condition>),
}

/// A query.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Query(Vec<Condition>);

impl Query {
    /// Reads a query of the operators `in`, `is`, `label`, `rfc822msgid`, `from`, `to` and `subject`, and of words. Gmail
    /// has more; the others are refused here so that no query silently finds something else.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        text.split_whitespace().map(condition).collect::<Result<_, _>>().map(Self)
    }

    /// Returns true if a message fits.
    pub(crate) fn fits(&self, mailbox: &Mailbox, message: &Message) -> bool {
        self.0.iter().all(|condition| holds(condition, mailbox, message))
    }
}

fn condition(word: &str) -> Result<Condition, Failure> {
    if let Some(rest) = word.strip_prefix('-') {
        return Ok(Condition::Not(Box::new(condition(rest)?)));
    }
    let Some((operator, value)) = word.split_once(':') else { return Ok(Condition::Word(word.to_lowercase())) };
    let value = value.trim_matches('"');
    Ok(match operator {
        "in" | "is" | "label" => Condition::Label(value.to_owned()),
        "rfc822msgid" => Condition::MessageId(value.trim_matches(['<', '>']).to_owned()),
        "from" => Condition::Header("From", value.to_lowercase()),
        "to" => Condition::Header("To", value.to_lowercase()),
        "subject" => Condition::Header("Subject", value.to_lowercase()),
        _ => return Err(Failure::invalid(format!("the stand-in does not know the search operator {operator}:"))),
    })
}

fn holds(condition: &Condition, mailbox: &Mailbox, message: &Message) -> bool {
    match condition {
        Condition::Label(name) => {
            let created = mailbox.labels.iter().find(|label| label.name.eq_ignore_ascii_case(name));
            let drafts = if name.eq_ignore_ascii_case("drafts") { "DRAFT" } else { name.as_str() };
            message.labels.iter().any(|own| own.eq_ignore_ascii_case(drafts))
                || created.is_some_and(|label| message.has(&label.id))
                || name.eq_ignore_ascii_case("anywhere")
        }
        Condition::MessageId(id) => mime::ids(mime::header(&message.bytes, "Message-ID").as_deref()).contains(id),
        Condition::Header("Subject", value) => mime::subject(&message.bytes).to_lowercase().contains(value),
        Condition::Header(name, value) => {
            mime::header(&message.bytes, name).is_some_and(|own| own.to_lowercase().contains(value))
        }
        Condition::Word(word) => {
            mime::subject(&message.bytes).to_lowercase().contains(word)
                || mime::text(&message.bytes).to_lowercase().contains(word)
        }
        Condition::Not(condition) => !holds(condition, mailbox, message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_conditions_must_hold() {
        let mut mailbox = Mailbox::new("support@sandbox.example".to_owned(), false);
        let mail =
            "From: Ana <ana@customer.example>\r\nSubject: Invoice 7\r\nMessage-ID: <a@x>\r\n\r\nIt is wrong.\r\n";
        let id = mailbox.receive(mail.into(), 1);
        let message = mailbox.message(&id).expect("it was received");
        let fits = |query: &str| Query::parse(query).expect("a valid query").fits(&mailbox, message);
        assert!(fits("in:inbox from:ana subject:invoice wrong"));
        assert!(fits("rfc822msgid:<a@x>") && fits("rfc822msgid:a@x -in:sent"));
        assert!(!fits("in:inbox from:bo"));
        assert!(Query::parse("larger:10M").is_err());
    }
}
