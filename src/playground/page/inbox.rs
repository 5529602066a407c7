//! `/inbox`: the mails between made-up customers and the team, as the customers see them.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use axum::{
    Json, Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The maximum number of characters of a name.
const MAX_NAME: usize = 100;
/// The maximum number of characters of an address.
const MAX_ADDRESS: usize = 320;
/// The maximum number of characters of a subject.
const MAX_SUBJECT: usize = 998;
/// The maximum number of characters of a text.
const MAX_TEXT: usize = 50_000;

/// A person who writes to the team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Customer {
    /// The display name.
    pub name: String,
    /// The address.
    pub address: String,
    /// A subject and a text to begin with.
    pub example: Option<Example>,
}

/// An example of a mail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Example {
    /// The subject.
    pub subject: String,
    /// The text.
    pub text: String,
    /// True if the text is HTML.
    pub is_html: bool,
}

/// A mail that the user of the page writes as a customer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrittenMail {
    /// The display name of the sender.
    pub name: String,
    /// The address of the sender.
    pub address: String,
    /// The subject.
    pub subject: String,
    /// The text.
    pub text: String,
    /// True if the text is HTML.
    #[serde(default)]
    pub is_html: bool,
    /// The id of the mail of the team that it answers, if any.
    #[serde(default)]
    pub answers: Option<String>,
}

/// A mail of a customer, or of the team to a customer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShownMail {
    /// The id.
    pub id: String,
    /// The id of the conversation to which a mail program would add it.
    pub conversation: String,
    /// True if the team wrote it.
    pub is_from_team: bool,
    /// The display name of the sender.
    pub name: String,
    /// The address of the customer.
    pub customer: String,
    /// The subject.
    pub subject: String,
    /// The text.
    pub text: String,
    /// The time at which it was sent, in milliseconds since 1970.
    pub at: i64,
    /// The thread in the workspace that is about it, if there is one yet.
    pub thread: Option<SlackThread>,
}

/// The place of a thread in the workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SlackThread {
    /// The channel.
    pub channel: String,
    /// The first message.
    pub ts: String,
}

/// The source of the mails that the page shows.
#[async_trait]
pub trait CustomerMail: Send + Sync {
    /// Returns the made-up customers.
    fn customers(&self) -> Vec<Customer>;

    /// Returns all mails between customers and the team, oldest first.
    ///
    /// # Errors
    ///
    /// A sentence for the user of the page, if they cannot be read.
    async fn mails(&self) -> Result<Vec<ShownMail>, String>;

    /// Delivers a mail to the team and returns its id.
    ///
    /// # Errors
    ///
    /// A sentence for the user of the page, if it cannot be delivered.
    async fn write(&self, mail: &WrittenMail) -> Result<String, String>;
}

type Source = Option<Arc<dyn CustomerMail>>;

/// Returns the routes. Without a source, they say that there is no inbox.
pub(super) fn router(source: Source) -> Router {
    Router::new().route("/inbox", get(read).post(write)).with_state(source)
}

async fn read(State(source): State<Source>) -> Response {
    let Some(source) = source else { return respond(StatusCode::OK, json!({ "available": false })) };
    match source.mails().await {
        Ok(mails) => {
            respond(StatusCode::OK, json!({ "available": true, "customers": source.customers(), "mails": mails }))
        }
        Err(reason) => respond(StatusCode::BAD_GATEWAY, json!({ "error": reason })),
    }
}

async fn write(State(source): State<Source>, Json(mail): Json<WrittenMail>) -> Response {
    let Some(source) = source else {
        return respond(StatusCode::NOT_FOUND, json!({ "error": "This playground has no email." }));
    };
    let wrong = problems(&mail);
    if !wrong.is_empty() {
        return respond(StatusCode::OK, json!({ "ok": false, "errors": wrong }));
    }
    match source.write(&mail).await {
        Ok(id) => respond(StatusCode::OK, json!({ "ok": true, "id": id })),
        Err(reason) => respond(StatusCode::BAD_GATEWAY, json!({ "error": reason })),
    }
}

fn respond(status: StatusCode, body: Value) -> Response {
    (status, [(header::CACHE_CONTROL, "no-store")], Json(body)).into_response()
}

/// Returns a sentence for each field whose value cannot be sent.
fn problems(mail: &WrittenMail) -> BTreeMap<&'static str, String> {
    let is_line = |text: &str| !text.chars().any(char::is_control);
    let too_long = |text: &str, most: usize| text.chars().count() > most;
    let mut found = BTreeMap::new();
    if !is_line(&mail.name) || too_long(&mail.name, MAX_NAME) {
        found.insert("name", format!("A name is a single line of up to {MAX_NAME} characters."));
    }
    if mail.address.trim().is_empty() {
        found.insert("address", "Enter the email address of the sender, such as ada@example.com.".to_owned());
    } else if !is_address(&mail.address) {
        found.insert(
            "address",
            format!("“{}” isn't an email address. Use one such as ada@example.com.", mail.address.trim()),
        );
    }
    if !is_line(&mail.subject) || too_long(&mail.subject, MAX_SUBJECT) {
        found.insert("subject", format!("A subject is a single line of up to {MAX_SUBJECT} characters."));
    }
    if mail.text.trim().is_empty() {
        found.insert("text", "Write a message.".to_owned());
    } else if too_long(&mail.text, MAX_TEXT) {
        found.insert("text", format!("A message can have up to {MAX_TEXT} characters here."));
    }
    found
}

fn is_address(text: &str) -> bool {
    let is_plain = |part: &str| {
        let odd = |c: char| c.is_whitespace() || c.is_control() || "<>()[]\",;:\\@".contains(c);
        !part.is_empty() && !part.contains(odd)
    };
    let parts = text.trim().rsplit_once('@');
    text.len() <= MAX_ADDRESS && parts.is_some_and(|(local, domain)| is_plain(local) && is_plain(domain))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mail() -> WrittenMail {
        WrittenMail {
            name: "Ada".to_owned(),
            address: "ada@customer.example".to_owned(),
            subject: "Prices".to_owned(),
            text: "What do 20 seats cost?".to_owned(),
            is_html: false,
            answers: None,
        }
    }

    fn wrong(mail: WrittenMail) -> Vec<&'static str> {
        problems(&mail).into_keys().collect()
    }

    #[test]
    fn a_field_that_cannot_be_sent_is_named() {
        assert_eq!(wrong(mail()), Vec::<&str>::new());
        assert_eq!(wrong(WrittenMail { subject: String::new(), name: String::new(), ..mail() }), Vec::<&str>::new());
        assert_eq!(wrong(WrittenMail { subject: "a\r\nBcc: eve@example.com".to_owned(), ..mail() }), ["subject"]);
        assert_eq!(wrong(WrittenMail { text: "  ".to_owned(), ..mail() }), ["text"]);
        assert_eq!(wrong(WrittenMail { name: "a\nb".to_owned(), ..mail() }), ["name"]);
        assert_eq!(
            problems(&WrittenMail { address: " ".to_owned(), ..mail() })["address"],
            "Enter the email address of the sender, such as ada@example.com."
        );
        for address in ["ada", "@customer.example", "ada@", "a b@customer.example", "<ada@customer.example>"] {
            assert_eq!(wrong(WrittenMail { address: address.to_owned(), ..mail() }), ["address"], "{address}");
        }
    }
}
