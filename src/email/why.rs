//! The reasons why a person decides about an answer, in words.

use serde::{Deserialize, Serialize};

/// A reason why a person decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum Why {
    /// Complaints are always answered by a person.
    Complaint,
    /// It may be spam.
    MaybeSpam,
    /// The confidence is too low.
    Unsure {
        /// The confidence that is enough.
        needed: f64,
    },
    /// The class or the draft is not a model's.
    WithoutModel,
    /// A step failed.
    Failed {
        /// The step and the failure.
        what: String,
    },
    /// There is no draft.
    NoDraft,
    /// Automatic answers are off.
    Off,
    /// The limit of automatic answers a day is reached.
    DayLimit {
        /// The limit.
        limit: u32,
    },
    /// The limit of automatic answers to this address is reached.
    AddressLimit {
        /// The limit.
        limit: u32,
    },
    /// The mail was sent by a machine.
    AutomaticMail,
    /// The mail comes from one of our own addresses.
    FromUs,
    /// A newer mail came in the same conversation.
    Newer,
    /// Something about the mail is suspicious or could not be read.
    Suspicious,
    /// A person asked for this draft.
    Asked,
    /// The mail had an automatic answer already.
    HadOne,
    /// The draft repeats the text of other mails, which may not be meant for the sender.
    Repeats,
    /// The draft names addresses that are not in the mail.
    NamesAddresses,
    /// The number of automatic answers could not be read.
    UsedUnknown,
}

impl Why {
    /// Returns the sentence for people.
    pub fn sentence(&self) -> String {
        match self {
            Self::Complaint => "Complaints are always reviewed.".to_owned(),
            Self::MaybeSpam => "This may be spam.".to_owned(),
            Self::Unsure { needed } => format!("The confidence is below {needed}."),
            Self::WithoutModel => "The classification or the draft didn't come from a language model.".to_owned(),
            Self::Failed { what } => format!("A step failed: {what}"),
            Self::NoDraft => "There is no draft.".to_owned(),
            Self::Off => "Automatic replies are off.".to_owned(),
            Self::DayLimit { limit } => format!("Today's limit on automatic replies has been reached ({limit})."),
            Self::AddressLimit { limit } => {
                format!("Today's limit on automatic replies to this address has been reached ({limit}).")
            }
            Self::AutomaticMail => "A program sent this email.".to_owned(),
            Self::FromUs => "This email comes from your own address.".to_owned(),
            Self::Newer => "A newer email came in this conversation.".to_owned(),
            Self::Suspicious => "This email has a warning.".to_owned(),
            Self::Asked => "Someone asked for this draft.".to_owned(),
            Self::HadOne => "This email already got an automatic reply.".to_owned(),
            Self::Repeats => "The draft repeats text from other emails.".to_owned(),
            Self::NamesAddresses => "The draft contains an email address that isn't in the email.".to_owned(),
            Self::UsedUnknown => "The number of automatic replies sent today isn't known.".to_owned(),
        }
    }

    /// Returns the reason in a few words, for a list of other reasons.
    fn short(&self) -> &'static str {
        match self {
            Self::Complaint => "a complaint",
            Self::MaybeSpam => "may be spam",
            Self::Unsure { .. } => "low confidence",
            Self::WithoutModel => "no language model",
            Self::Failed { .. } => "a step failed",
            Self::NoDraft => "no draft",
            Self::Off => "automatic replies are off",
            Self::DayLimit { .. } | Self::AddressLimit { .. } => "today's limit is reached",
            Self::AutomaticMail => "sent by a program",
            Self::FromUs => "from your own address",
            Self::Newer => "a newer email came",
            Self::Suspicious => "has a warning",
            Self::Asked => "requested by a person",
            Self::HadOne => "already got an automatic reply",
            Self::Repeats => "repeats other emails",
            Self::NamesAddresses => "contains another email address",
            Self::UsedUnknown => "replies sent today unknown",
        }
    }

    /// Returns the place among several reasons: those about the mail itself come first, then those about the draft, then
    /// those that hold for every mail.
    fn place(&self) -> u8 {
        match self {
            Self::Complaint => 0,
            Self::Suspicious | Self::Newer => 1,
            Self::MaybeSpam => 2,
            Self::AutomaticMail | Self::FromUs => 3,
            Self::Failed { .. } | Self::NoDraft => 4,
            Self::Repeats | Self::NamesAddresses => 5,
            Self::Asked => 6,
            Self::HadOne | Self::DayLimit { .. } | Self::AddressLimit { .. } | Self::UsedUnknown => 7,
            Self::Off => 8,
            Self::WithoutModel => 9,
            Self::Unsure { .. } => 10,
        }
    }
}

/// Describes why a person decides: the reason that matters most in a sentence, the others in a few words.
pub(super) fn because(reasons: &[Why]) -> String {
    let mut sorted: Vec<&Why> = reasons.iter().collect();
    sorted.sort_by_key(|why| why.place());
    let Some((first, others)) = sorted.split_first() else { return String::new() };
    let mut short: Vec<&str> = Vec::new();
    for why in others {
        if !short.contains(&why.short()) {
            short.push(why.short());
        }
    }
    match short.as_slice() {
        [] => first.sentence(),
        short => format!("{} Also: {}.", first.sentence(), short.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_that_matters_most_comes_first() {
        let reasons = [Why::Unsure { needed: 0.8 }, Why::WithoutModel, Why::Off];
        assert_eq!(because(&reasons), "Automatic replies are off. Also: no language model, low confidence.");
        let reasons = [Why::Unsure { needed: 0.8 }, Why::Off, Why::Complaint];
        let said = because(&reasons);
        assert_eq!(said, "Complaints are always reviewed. Also: automatic replies are off, low confidence.");
        assert_eq!(because(&[Why::Off]), "Automatic replies are off.");
        assert_eq!(because(&[]), "");
    }
}
