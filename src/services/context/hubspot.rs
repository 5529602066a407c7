//! The contacts of HubSpot (CRM API v3).
//!
//! People are looked up there first, then in the store. A person who writes for the first time becomes a contact in the
//! store only: nothing is created in HubSpot without an approved action.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_core::clock::Timestamp;
use reqwest::Method;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use url::Url;

pub use crate::calls::Waits;
use crate::{
    calls::{Call, Credentials, Service},
    contact::{self, Contact, Update},
    contacts::Contacts,
    error::ContextError,
    store::MAX_LIMIT,
};

/// The name of the service in errors.
const WHAT: &str = "HubSpot";

/// The properties that are read.
const PROPERTIES: [&str; 8] =
    ["email", "firstname", "lastname", "company", "jobtitle", "phone", "lifecyclestage", "notes_last_contacted"];

/// The address and the credentials of HubSpot.
#[derive(Clone, Debug)]
pub struct HubSpotSettings {
    /// The base address, usually `https://api.hubapi.com`.
    pub base_url: Url,
    /// The access token of a private app.
    pub token: SecretString,
    /// The time limit of a call.
    pub timeout: Duration,
    /// The waits between attempts of a read.
    pub waits: Waits,
}

/// The contacts of HubSpot, and those of the store behind them.
#[derive(Debug)]
pub struct HubSpotContacts {
    service: Service,
    stored: Arc<dyn Contacts>,
}

/// The answer to a search.
#[derive(Deserialize)]
struct Found {
    results: Vec<Record>,
}

/// A contact as HubSpot describes it.
#[derive(Deserialize)]
struct Record {
    id: String,
    #[serde(default)]
    properties: Map<String, Value>,
}

impl HubSpotContacts {
    /// Creates a client. `stored` are the contacts for people whom HubSpot does not know. Makes no call yet.
    ///
    /// # Errors
    ///
    /// [`ContextError::Unavailable`] if TLS is not available on this machine.
    pub fn new(settings: HubSpotSettings, stored: Arc<dyn Contacts>) -> Result<Self, ContextError> {
        let HubSpotSettings { base_url, token, timeout, waits } = settings;
        let service = Service::new(WHAT, &base_url, Credentials::Token(token), timeout, waits)?;
        Ok(Self { service, stored })
    }

    /// Searches contacts. `groups` are alternatives of a property, an operator and a value.
    async fn query(&self, groups: &[(&str, &str, &str)], limit: usize) -> Result<Vec<Record>, ContextError> {
        let group = |(property, operator, value): &(&str, &str, &str)| json!({ "filters": [{ "propertyName": property, "operator": operator, "value": value }] });
        let body = json!({
            "filterGroups": groups.iter().map(group).collect::<Vec<_>>(),
            "properties": PROPERTIES,
            "limit": limit,
        });
        let call = Call { body: Some(&body), ..Call::new(&Method::POST, "/crm/v3/objects/contacts/search") };
        Ok(self.service.read::<Found>(call).await?.results)
    }

    async fn record(&self, address: &str) -> Result<Option<Record>, ContextError> {
        let address = contact::normal(address);
        let mut found = self.query(&[("email", "EQ", &address)], 2).await?;
        found.retain(|record| text(record, "email").is_some_and(|email| contact::normal(&email) == address));
        Ok(if found.is_empty() { None } else { Some(found.swap_remove(0)) })
    }
}

#[async_trait]
impl Contacts for HubSpotContacts {
    async fn find(&self, address: &str) -> Result<Option<Contact>, ContextError> {
        match self.record(address).await? {
            Some(record) => Ok(Some(contact_of(&record, address))),
            None => self.stored.find(address).await,
        }
    }

    async fn seen(&self, name: Option<&str>, address: &str, at: Timestamp) -> Result<bool, ContextError> {
        self.stored.seen(name, address, at).await
    }

    async fn update(&self, address: &str, fields: &Update, at: Timestamp) -> Result<Contact, ContextError> {
        let email = contact::checked(address)?;
        let mut properties = properties_of(fields)?;
        let record: Record = match self.record(&email).await? {
            Some(record) => {
                let path = format!("/crm/v3/objects/contacts/{}", checked_id(&record.id)?);
                let body = json!({ "properties": properties });
                self.service.change(Call { body: Some(&body), ..Call::new(&Method::PATCH, &path) }).await?
            }
            None => {
                properties.insert("email".to_owned(), Value::String(email.clone()));
                let body = json!({ "properties": properties });
                let call = Call { body: Some(&body), ..Call::new(&Method::POST, "/crm/v3/objects/contacts") };
                self.service.change(call).await?
            }
        };
        // The answer to a change contains only some properties.
        let known = self.record(&email).await?.unwrap_or(record);
        let mut contact = contact_of(&known, &email);
        contact.last_contacted_at = contact.last_contacted_at.max(Some(at));
        Ok(contact)
    }

    async fn search(&self, text: &str, limit: usize) -> Result<Vec<Contact>, ContextError> {
        let any: Vec<_> = ["email", "firstname", "lastname", "company"]
            .into_iter()
            .map(|property| (property, "CONTAINS_TOKEN", format!("*{}*", text.trim())))
            .collect();
        let any: Vec<_> =
            any.iter().map(|(property, operator, value)| (*property, *operator, value.as_str())).collect();
        let found = self.query(&any, limit.min(MAX_LIMIT)).await?;
        let contacts = found.iter().map(|record| contact_of(record, &self::text(record, "email").unwrap_or_default()));
        let mut contacts: Vec<_> = contacts.filter(|contact| !contact.email.is_empty()).collect();
        contacts.sort_by(|one, other| one.email.cmp(&other.email));
        Ok(contacts)
    }

    async fn check(&self) -> Result<String, ContextError> {
        let query = [("limit", "1".to_owned())];
        let call = Call { query: &query, ..Call::new(&Method::GET, "/crm/v3/objects/contacts") };
        self.service.read::<Found>(call).await?;
        Ok("HubSpot answers, and the token may read contacts".to_owned())
    }
}

/// Returns a property that is not empty.
fn text(record: &Record, property: &str) -> Option<String> {
    let text = record.properties.get(property)?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn contact_of(record: &Record, address: &str) -> Contact {
    let text = |property| text(record, property);
    let name: Vec<_> = ["firstname", "lastname"].into_iter().filter_map(text).collect();
    let last = text("notes_last_contacted").and_then(|at| at.parse::<jiff::Timestamp>().ok());
    Contact {
        name: (!name.is_empty()).then(|| name.join(" ")),
        company: text("company"),
        title: text("jobtitle"),
        phone: text("phone"),
        tags: text("lifecyclestage").into_iter().collect(),
        metadata: json!({ "hubspot_id": record.id }),
        last_contacted_at: last.map(|at| Timestamp(at.as_millisecond())),
        ..Contact::new(address)
    }
}

/// Returns the properties of an update. The last word of a name is the last name.
fn properties_of(fields: &Update) -> Result<Map<String, Value>, ContextError> {
    let Update { name, company, title, phone, notes } = fields;
    if notes.is_some() {
        return Err(ContextError::invalid("Notes can't be written to HubSpot. Its contacts have no field for them."));
    }
    let (first, last) = match name.as_deref().map(|name| name.trim().rsplit_once(' ').unwrap_or((name.trim(), ""))) {
        Some((first, last)) => (Some(first.trim()), Some(last)),
        None => (None, None),
    };
    let fields = [
        ("firstname", first),
        ("lastname", last),
        ("company", company.as_deref()),
        ("jobtitle", title.as_deref()),
        ("phone", phone.as_deref()),
    ];
    let given = fields.into_iter().filter_map(|(property, value)| Some((property.to_owned(), json!(value?))));
    Ok(given.collect())
}

/// Checks an id before it becomes part of a path.
fn checked_id(id: &str) -> Result<&str, ContextError> {
    let is_id = !id.is_empty() && id.len() <= 32 && id.chars().all(|c| c.is_ascii_digit());
    if is_id { Ok(id) } else { Err(ContextError::decode(WHAT, "the contact's ID isn't a number")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_split_at_its_last_word() {
        let update = |name: &str| Update { name: Some(name.into()), ..Update::default() };
        let properties = properties_of(&update("Ana Maria Example")).unwrap();
        assert_eq!(Value::Object(properties), json!({ "firstname": "Ana Maria", "lastname": "Example" }));
        let properties = properties_of(&update("Ana")).unwrap();
        assert_eq!(Value::Object(properties), json!({ "firstname": "Ana", "lastname": "" }));
        assert!(properties_of(&Update { notes: Some("x".into()), ..Update::default() }).is_err());
    }

    #[test]
    fn a_record_becomes_a_contact() {
        let record = Record {
            id: "51".into(),
            properties: json!({
                "firstname": "Alice", "lastname": "Example", "company": "Acme Corp", "jobtitle": null, "phone": " ",
                "lifecyclestage": "customer", "notes_last_contacted": "2026-03-01T08:00:00.000Z",
            })
            .as_object()
            .unwrap()
            .clone(),
        };
        let contact = contact_of(&record, "alice@example.com");
        assert_eq!(contact.line(), "Name: Alice Example; Company: Acme Corp; Tags: customer; Last contact: 2026-03-01");
        assert!(checked_id("51").is_ok() && checked_id("../1").is_err());
    }
}
