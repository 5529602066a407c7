//! What must be true of all mails in the end, judged by what people saw in Slack and what left the mailbox, never by the
//! bot's own store.

use std::collections::BTreeMap;

use countersign_sandbox::gmail::SentMail;

use super::made_up::{Kind, number_in};

/// The end of a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// An answer was sent.
    Sent,
    /// A person rejected the answer.
    Rejected,
    /// It is sure spam.
    Spam,
    /// It needs no reply.
    PutAway,
    /// A person has to decide, and can.
    Waits,
}

impl End {
    /// Returns the end that a message of the mail's thread tells, if it tells one.
    pub(crate) fn told_by(words: &str) -> Option<Self> {
        match words {
            _ if words.contains("Sent the reply to") => Some(Self::Sent),
            _ if words.contains("Rejected by") => Some(Self::Rejected),
            _ if words.contains("This is spam (") => Some(Self::Spam),
            _ if words.contains("so no reply was drafted") => Some(Self::PutAway),
            _ if words.contains("No reply can be sent to this email") => Some(Self::Waits),
            _ => None,
        }
    }
}

/// A mail as people saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The number of threads that begin with it.
    pub(crate) threads: usize,
    /// Its end, once there is one.
    pub(crate) end: Option<End>,
}

/// Returns the promises that were broken, in a sentence each. The mails have the numbers below `count`.
pub(crate) fn broken(count: usize, seen: &BTreeMap<usize, Seen>, sent: &[SentMail]) -> Vec<String> {
    let mut answers: BTreeMap<usize, Vec<&SentMail>> = BTreeMap::new();
    let mut broken = Vec::new();
    for mail in sent {
        match number_in(&mail.subject) {
            Some(number) if number < count => answers.entry(number).or_default().push(mail),
            _ => broken.push(format!("An answer was sent to no mail: {}.", mail.subject)),
        }
    }
    for number in 0..count {
        let Seen { threads, end } = seen.get(&number).copied().unwrap_or_default();
        let answers = answers.remove(&number).unwrap_or_default();
        let mut wrong = |what: String| broken.push(format!("Case {number:06} ({:?}): {what}.", Kind::of(number)));
        if threads != 1 {
            wrong(format!("{threads} threads, not one"));
        }
        if end.is_none() {
            wrong("neither an end nor an open card".to_owned());
        }
        let expected = usize::from(end == Some(End::Sent));
        if answers.len() != expected {
            wrong(format!("{} answers, and its thread says {end:?}", answers.len()));
        }
        if answers.iter().any(|mail| mail.is_automatic) && !Kind::of(number).may_be_automatic() {
            wrong("answered without a person".to_owned());
        }
        if answers.iter().any(|mail| mail.to != [format!("customer{number}@customer.example")]) {
            wrong("answered to another address".to_owned());
        }
    }
    broken
}
