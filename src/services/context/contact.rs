//! A contact: one person, by address.

use std::fmt;

use countersign_core::clock::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    error::ContextError,
    item::{check_metadata, storable},
};

/// The maximum length of an address, in characters.
pub const MAX_ADDRESS: usize = 320;

/// The maximum length of a name, a company, a title or a phone number, in characters.
pub const MAX_FIELD: usize = 500;

/// The maximum length of notes, in characters.
pub const MAX_NOTES: usize = 10_000;

/// The maximum number of tags.
pub const MAX_TAGS: usize = 50;

/// A person with an address.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Contact {
    /// The address, in lower case.
    pub email: String,
    /// The full name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The company.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub company: Option<String>,
    /// The job title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The phone number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phone: Option<String>,
    /// Notes about the person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// Tags, such as `auto-synced`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Anything else that a system knows.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub metadata: Value,
    /// The time of the last contact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_contacted_at: Option<Timestamp>,
}

impl Contact {
    /// Creates a contact of which only the address is known.
    pub fn new(email: &str) -> Self {
        Self { email: normal(email), ..Self::default() }
    }

    /// Returns the contact as it is stored: with its address in lower case, and without empty or too long fields.
    ///
    /// # Errors
    ///
    /// [`ContextError::Invalid`] if the address is not one, or the metadata is too large.
    pub(crate) fn storable(&self) -> Result<Self, ContextError> {
        let field = |text: &Option<String>, longest| {
            let text = storable(text.as_deref()?, longest).trim().to_owned();
            (!text.is_empty()).then_some(text)
        };
        check_metadata(&self.metadata)?;
        let tags = self.tags.iter().filter_map(|tag| field(&Some(tag.clone()), 100)).take(MAX_TAGS).collect();
        Ok(Self {
            email: checked(&self.email)?,
            name: field(&self.name, MAX_FIELD),
            company: field(&self.company, MAX_FIELD),
            title: field(&self.title, MAX_FIELD),
            phone: field(&self.phone, MAX_FIELD),
            notes: field(&self.notes, MAX_NOTES),
            tags,
            metadata: self.metadata.clone(),
            last_contacted_at: self.last_contacted_at,
        })
    }

    /// Returns the contact as JSON without the time of the last contact, which stores keep in a column of its own, and
    /// the text in which contacts are searched.
    pub(crate) fn record(&self) -> (Value, String) {
        let without = Self { last_contacted_at: None, ..self.clone() };
        let record = serde_json::to_value(&without).expect("a contact is plain JSON");
        let fields = [Some(&self.email), self.name.as_ref(), self.company.as_ref()];
        let search: Vec<_> = fields.into_iter().flatten().map(|text| text.to_lowercase()).collect();
        (record, search.join("\n"))
    }

    /// Reads a contact from what [`Self::record`] returned and the time of the last contact. Returns `None` if the
    /// record has an unknown form.
    pub(crate) fn of_record(record: Value, last: Option<i64>) -> Option<Self> {
        let contact: Self = serde_json::from_value(record).ok()?;
        Some(Self { last_contacted_at: last.map(Timestamp), ..contact })
    }

    /// Returns the contact with the fields of an update, at the time of the update.
    #[must_use]
    pub fn updated(mut self, fields: &Update, at: Timestamp) -> Self {
        let Update { name, company, title, phone, notes } = fields;
        for (own, new) in [
            (&mut self.name, name),
            (&mut self.company, company),
            (&mut self.title, title),
            (&mut self.phone, phone),
            (&mut self.notes, notes),
        ] {
            if new.is_some() {
                own.clone_from(new);
            }
        }
        self.last_contacted_at = self.last_contacted_at.max(Some(at));
        self
    }

    /// Describes the contact in one line: `Name: …; Company: …; …`, without its address.
    pub fn line(&self) -> String {
        let tags = self.tags.join(", ");
        let fields = [
            ("Name", self.name.as_deref()),
            ("Company", self.company.as_deref()),
            ("Title", self.title.as_deref()),
            ("Phone", self.phone.as_deref()),
            ("Notes", self.notes.as_deref()),
            ("Tags", Some(tags.as_str())),
        ];
        let known = fields.iter().filter_map(|(label, value)| Some((label, value.filter(|text| !text.is_empty())?)));
        let mut line: Vec<_> = known.map(|(label, value)| format!("{label}: {}", one_line(value))).collect();
        if let Some(at) = self.last_contacted_at {
            let day = jiff::Timestamp::from_millisecond(at.millis()).map(|at| at.strftime("%Y-%m-%d").to_string());
            line.extend(day.map(|day| format!("Last contact: {day}")));
        }
        line.join("; ")
    }
}

impl fmt::Debug for Contact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contact").field("tags", &self.tags).finish_non_exhaustive()
    }
}

/// New values for some fields of a contact; `None` leaves a field as it is.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Update {
    /// The full name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The company.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub company: Option<String>,
    /// The job title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The phone number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phone: Option<String>,
    /// Notes about the person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
}

impl fmt::Debug for Update {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Update")
    }
}

/// Returns an address as it is compared: the part between `<` and `>` if there is one, in lower case.
pub(crate) fn normal(address: &str) -> String {
    let inner = address.rsplit_once('<').and_then(|(_, rest)| rest.split_once('>')).map_or(address, |(inner, _)| inner);
    inner.trim().to_lowercase()
}

/// Returns an address as it is stored.
///
/// # Errors
///
/// [`ContextError::Invalid`] if it is not an address, or too long.
pub(crate) fn checked(address: &str) -> Result<String, ContextError> {
    let address = normal(address);
    let length = address.chars().count();
    let is_address = address.split_once('@').is_some_and(|(local, domain)| !local.is_empty() && !domain.is_empty());
    if !is_address || length > MAX_ADDRESS || address.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(ContextError::invalid(format!(
            "The contact has no usable address ({length} characters). It must look like name@example.com, with at most {MAX_ADDRESS} characters."
        )));
    }
    Ok(address)
}

/// Returns a text in one line.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contact_is_found_by_the_address_alone() {
        assert_eq!(normal("Ana Example <Ana@Example.COM>"), "ana@example.com");
        assert_eq!(normal(" ana@example.com "), "ana@example.com");
        assert_eq!(Contact::new("Bo <bo@x.org>").email, "bo@x.org");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["", "ana", "@x.org", "a b@x.org", "ana@", &format!("{}@x.org", "a".repeat(320))] {
            assert!(Contact::new(text).storable().is_err(), "{text}");
        }
    }

    #[test]
    fn the_line_names_known_fields_in_order() {
        let contact = Contact {
            company: Some("Acme Corp".into()),
            name: Some("Alice\nExample".into()),
            tags: vec!["vip".into(), "business".into()],
            last_contacted_at: Some(Timestamp(86_400_000)),
            ..Contact::new("alice@example.com")
        };
        assert_eq!(
            contact.line(),
            "Name: Alice Example; Company: Acme Corp; Tags: vip, business; Last contact: 1970-01-02"
        );
        assert_eq!(Contact::new("a@b.c").line(), "");
    }

    #[test]
    fn an_update_leaves_other_fields_and_never_moves_the_last_contact_back() {
        let before =
            Contact { title: Some("CTO".into()), last_contacted_at: Some(Timestamp(9)), ..Contact::new("a@b.c") };
        let fields = Update { company: Some("Acme".into()), ..Update::default() };
        let after = before.updated(&fields, Timestamp(5));
        assert_eq!((after.title.as_deref(), after.company.as_deref()), (Some("CTO"), Some("Acme")));
        assert_eq!(after.last_contacted_at, Some(Timestamp(9)));
    }

    #[test]
    fn empty_fields_are_not_stored() {
        let contact = Contact { name: Some(" \0 ".into()), tags: vec![String::new()], ..Contact::new("a@b.c") };
        let stored = contact.storable().unwrap();
        assert_eq!((stored.name, stored.tags.len()), (None, 0));
    }
}
