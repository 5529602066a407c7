//! The handling of requests on the contacts.

use std::collections::BTreeMap;

use countersign_core::clock::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::TOKEN;
use crate::call::{Call, Reply, Service};

/// The properties that a contact can have, and that can be changed.
const WRITABLE: [&str; 7] = ["email", "firstname", "lastname", "company", "jobtitle", "phone", "lifecyclestage"];

/// The properties that a contact can have, and that HubSpot itself sets.
const READ_ONLY: [&str; 4] = ["createdate", "hs_object_id", "lastmodifieddate", "notes_last_contacted"];

/// The operators of a filter with one value.
const OPERATORS: [&str; 4] = ["EQ", "NEQ", "CONTAINS_TOKEN", "NOT_CONTAINS_TOKEN"];

/// A refusal: status, category and message.
type Refusal = (u16, &'static str, String);

/// All contacts.
#[derive(Debug, Default)]
pub(super) struct World {
    contacts: Vec<Contact>,
}

/// A contact.
#[derive(Clone, Debug)]
pub(super) struct Contact {
    id: String,
    pub(super) properties: BTreeMap<String, String>,
    created: Timestamp,
    updated: Timestamp,
}

/// The body of a search.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Search {
    #[serde(default)]
    filter_groups: Vec<Group>,
    #[serde(default)]
    properties: Vec<String>,
    #[serde(default)]
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    filters: Vec<Filter>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Filter {
    property_name: String,
    operator: String,
    value: String,
}

/// The body of a change.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    properties: BTreeMap<String, String>,
}

impl World {
    /// Adds a contact. Returns its id.
    pub(super) fn add(&mut self, properties: &[(&str, &str)], now: Timestamp) -> String {
        let properties = properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.insert(properties, now).id.clone()
    }

    /// Returns the contact with an address.
    pub(super) fn with_email(&self, email: &str) -> Option<&Contact> {
        self.contacts.iter().find(|contact| contact.email().eq_ignore_ascii_case(email))
    }

    fn insert(&mut self, properties: BTreeMap<String, String>, now: Timestamp) -> &Contact {
        let id = (51 + self.contacts.len()).to_string();
        self.contacts.push(Contact { id, properties, created: now, updated: now });
        self.contacts.last().expect("it was just added")
    }

    fn dispatch(&mut self, call: &Call, now: Timestamp) -> Result<Reply, Refusal> {
        if call.token.as_deref() != Some(TOKEN) {
            let message = "Authentication credentials not found. This API supports OAuth 2.0 authentication.";
            return Err((401, "INVALID_AUTHENTICATION", message.to_owned()));
        }
        let parts = call.parts();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let ["crm", "v3", "objects", "contacts", rest @ ..] = &parts[..] else { return Err(no_such_page()) };
        match (call.method.as_str(), rest) {
            ("GET", []) => self.list(call),
            ("POST", ["search"]) => self.search(&body(call)?),
            ("POST", []) => self.create(body(call)?, now),
            ("PATCH", [id]) => self.change(id, body(call)?, now),
            _ => Err(no_such_page()),
        }
    }

    fn list(&self, call: &Call) -> Result<Reply, Refusal> {
        if let Some((name, _)) = call.query.iter().find(|(name, _)| name != "limit") {
            return Err(invalid(format!("Unknown parameter {name}")));
        }
        let limit = call.parameter("limit").map_or(Ok(10), str::parse::<usize>).ok().filter(|limit| *limit <= 100);
        let limit = limit.ok_or_else(|| invalid("limit must be at most 100".to_owned()))?;
        let names = ["email", "firstname", "lastname"].map(str::to_owned);
        let results: Vec<_> = self.contacts.iter().take(limit).map(|contact| contact.resource(&names)).collect();
        Ok(Reply::ok(json!({ "results": results })))
    }

    fn search(&self, search: &Search) -> Result<Reply, Refusal> {
        if search.filter_groups.len() > 5 || search.filter_groups.iter().any(|group| group.filters.len() > 6) {
            return Err(invalid("There are too many filters".to_owned()));
        }
        for Filter { property_name, operator, .. } in search.filter_groups.iter().flat_map(|group| &group.filters) {
            if !is_property(property_name) {
                return Err(invalid(format!(
                    "There was a problem with the request: property {property_name} does not exist"
                )));
            }
            if !OPERATORS.contains(&operator.as_str()) {
                return Err(invalid(format!("{operator} is not a valid operator")));
            }
        }
        let limit = search.limit.unwrap_or(10);
        if limit > 200 {
            return Err(invalid("limit must be at most 200".to_owned()));
        }
        let fits = |contact: &&Contact| {
            search.filter_groups.is_empty()
                || search.filter_groups.iter().any(|group| group.filters.iter().all(|filter| filter.fits(contact)))
        };
        let found: Vec<_> = self.contacts.iter().filter(fits).collect();
        let total = found.len();
        let results: Vec<_> =
            found.into_iter().take(limit).map(|contact| contact.resource(&search.properties)).collect();
        Ok(Reply::ok(json!({ "total": total, "results": results })))
    }

    fn create(&mut self, change: Change, now: Timestamp) -> Result<Reply, Refusal> {
        writable(&change.properties)?;
        if let Some(existing) = change.properties.get("email").and_then(|email| self.with_email(email)) {
            return Err((409, "CONFLICT", format!("Contact already exists. Existing ID: {}", existing.id)));
        }
        let names: Vec<_> = change.properties.keys().cloned().collect();
        let contact = self.insert(change.properties, now);
        Ok(Reply::changed(201, contact.resource(&names)))
    }

    fn change(&mut self, id: &str, change: Change, now: Timestamp) -> Result<Reply, Refusal> {
        writable(&change.properties)?;
        let contact = self.contacts.iter_mut().find(|contact| contact.id == id);
        let contact = contact.ok_or_else(|| (404, "OBJECT_NOT_FOUND", "Object not found.".to_owned()))?;
        let names: Vec<_> = change.properties.keys().cloned().collect();
        contact.properties.extend(change.properties);
        contact.updated = now;
        Ok(Reply::changed(200, contact.resource(&names)))
    }
}

impl Service for World {
    fn reply(&mut self, call: &Call, now: Timestamp) -> Reply {
        self.dispatch(call, now).unwrap_or_else(|(status, category, message)| Reply {
            status,
            body: failure(category, &message),
            effect: false,
        })
    }

    fn failure(status: u16) -> Value {
        match status {
            401 => failure("INVALID_AUTHENTICATION", "The access token is not valid."),
            403 => failure("MISSING_SCOPES", "This app hasn't been granted all required scopes to make this call."),
            404 => failure("OBJECT_NOT_FOUND", "Object not found."),
            429 => failure("RATE_LIMITS", "You have reached your secondly limit."),
            other if other < 500 => failure("VALIDATION_ERROR", "The request is not valid."),
            _ => failure("INTERNAL_ERROR", "There was an internal error."),
        }
    }
}

impl Contact {
    fn email(&self) -> &str {
        self.properties.get("email").map_or("", String::as_str)
    }

    /// Describes the contact as HubSpot does, with these properties.
    fn resource(&self, names: &[String]) -> Value {
        let mut properties = Map::new();
        properties.insert("createdate".to_owned(), json!(self.created.to_string()));
        properties.insert("hs_object_id".to_owned(), json!(self.id));
        properties.insert("lastmodifieddate".to_owned(), json!(self.updated.to_string()));
        for name in names.iter().filter(|name| is_property(name)) {
            let value = self.properties.get(name).map_or(Value::Null, |value| json!(value));
            properties.entry(name.as_str()).or_insert(value);
        }
        json!({
            "id": self.id, "properties": properties, "createdAt": self.created.to_string(),
            "updatedAt": self.updated.to_string(), "archived": false,
        })
    }
}

impl Filter {
    fn fits(&self, contact: &Contact) -> bool {
        let own = contact.properties.get(&self.property_name).map_or("", String::as_str).to_lowercase();
        let wanted = self.value.to_lowercase();
        let has_token = || match wanted.strip_prefix('*').and_then(|rest| rest.strip_suffix('*')) {
            Some(part) => own.contains(part),
            None => own.split(|c: char| !c.is_alphanumeric()).any(|token| token == wanted),
        };
        match self.operator.as_str() {
            "EQ" => own == wanted,
            "NEQ" => own != wanted,
            "CONTAINS_TOKEN" => has_token(),
            _ => !has_token(),
        }
    }
}

/// Returns an error in HubSpot's format.
fn failure(category: &str, message: &str) -> Value {
    json!({
        "status": "error", "message": message, "correlationId": uuid::Uuid::new_v4(), "category": category,
    })
}

fn invalid(message: String) -> Refusal {
    (400, "VALIDATION_ERROR", message)
}

fn no_such_page() -> Refusal {
    (404, "OBJECT_NOT_FOUND", "The requested page was not found.".to_owned())
}

fn is_property(name: &str) -> bool {
    WRITABLE.contains(&name) || READ_ONLY.contains(&name)
}

fn writable(properties: &BTreeMap<String, String>) -> Result<(), Refusal> {
    for (name, value) in properties {
        if READ_ONLY.contains(&name.as_str()) {
            return Err(invalid(format!("Property values were not valid: {name} is a read only property")));
        }
        if !WRITABLE.contains(&name.as_str()) {
            return Err(invalid(format!("Property values were not valid: Property \"{name}\" does not exist")));
        }
        if name == "email" && !value.contains('@') {
            return Err(invalid(format!("Property values were not valid: Email address {value} is invalid")));
        }
    }
    Ok(())
}

/// Reads the body of a request, which must not contain unknown fields.
fn body<T: for<'de> Deserialize<'de>>(call: &Call) -> Result<T, Refusal> {
    serde_json::from_slice(&call.body).map_err(|error| match error.is_data() {
        true => invalid(format!("Invalid input JSON: {error}")),
        false => invalid("Invalid input JSON".to_owned()),
    })
}
