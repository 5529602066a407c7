//! The contacts of one account.

use std::{fmt::Debug, sync::Arc};

use async_trait::async_trait;
use countersign_core::clock::Timestamp;

use crate::{
    contact::{self, Contact, Update},
    error::ContextError,
    store::ContextStore,
};

/// The tag of a contact that was created because the person wrote a mail.
pub const AUTO_SYNCED: &str = "auto-synced";

/// The tag of a contact whose address belongs to an organization.
pub const BUSINESS: &str = "business";

/// Domains where anyone can have an address, in alphabetical order.
const FREE_MAIL: &[&str] = &[
    "126.com",
    "163.com",
    "aol.com",
    "duck.com",
    "fastmail.com",
    "fastmail.fm",
    "free.fr",
    "freenet.de",
    "gmail.com",
    "gmx.at",
    "gmx.ch",
    "gmx.com",
    "gmx.de",
    "gmx.net",
    "googlemail.com",
    "hey.com",
    "hotmail.co.uk",
    "hotmail.com",
    "hotmail.de",
    "hotmail.fr",
    "hotmail.it",
    "hushmail.com",
    "icloud.com",
    "inbox.com",
    "laposte.net",
    "libero.it",
    "live.co.uk",
    "live.com",
    "live.de",
    "live.fr",
    "mac.com",
    "mail.com",
    "mail.ru",
    "mailbox.org",
    "me.com",
    "msn.com",
    "naver.com",
    "orange.fr",
    "outlook.com",
    "outlook.de",
    "outlook.fr",
    "pm.me",
    "posteo.de",
    "proton.me",
    "protonmail.com",
    "qq.com",
    "rediffmail.com",
    "rocketmail.com",
    "sina.com",
    "t-online.de",
    "tuta.com",
    "tutanota.com",
    "web.de",
    "yahoo.ca",
    "yahoo.co.in",
    "yahoo.co.jp",
    "yahoo.co.uk",
    "yahoo.com",
    "yahoo.de",
    "yahoo.es",
    "yahoo.fr",
    "yahoo.it",
    "yandex.com",
    "yandex.ru",
    "ymail.com",
    "zoho.com",
];

/// The contacts of one account, in a store or in another system.
#[async_trait]
pub trait Contacts: Send + Sync + Debug {
    /// Returns the contact with an address. `Name <address>` is looked up by the address alone.
    ///
    /// # Errors
    ///
    /// Fails if the contacts cannot be read.
    async fn find(&self, address: &str) -> Result<Option<Contact>, ContextError>;

    /// Notes that a person wrote. An unknown person becomes a contact with the tag [`AUTO_SYNCED`], and [`BUSINESS`]
    /// unless the domain is one of free mail. Returns true if the contact is new.
    ///
    /// # Errors
    ///
    /// Fails if the contact cannot be written.
    async fn seen(&self, name: Option<&str>, address: &str, at: Timestamp) -> Result<bool, ContextError>;

    /// Changes fields of the contact with an address, and creates it if there is none. Returns the new contact. If the
    /// contacts are in another system, there must be a permit.
    ///
    /// # Errors
    ///
    /// Fails if the contact cannot be written.
    async fn update(&self, address: &str, fields: &Update, at: Timestamp) -> Result<Contact, ContextError>;

    /// Returns the contacts whose address, name or company contains `text`.
    ///
    /// # Errors
    ///
    /// Fails if the contacts cannot be read.
    async fn search(&self, text: &str, limit: usize) -> Result<Vec<Contact>, ContextError>;

    /// Checks that the contacts can be read, and describes them in one line.
    ///
    /// # Errors
    ///
    /// Fails if they cannot be read.
    async fn check(&self) -> Result<String, ContextError>;
}

/// The contacts of one account in a store.
#[derive(Clone, Debug)]
pub struct StoredContacts {
    store: Arc<dyn ContextStore>,
    account: String,
}

impl StoredContacts {
    /// Creates the contacts of an account.
    pub fn new(store: Arc<dyn ContextStore>, account: impl Into<String>) -> Self {
        Self { store, account: account.into() }
    }
}

#[async_trait]
impl Contacts for StoredContacts {
    async fn find(&self, address: &str) -> Result<Option<Contact>, ContextError> {
        self.store.contact(&self.account, address).await
    }

    async fn seen(&self, name: Option<&str>, address: &str, at: Timestamp) -> Result<bool, ContextError> {
        self.store.meet(&self.account, &from_mail(name, address, at)).await
    }

    async fn update(&self, address: &str, fields: &Update, at: Timestamp) -> Result<Contact, ContextError> {
        let known = self.find(address).await?;
        let contact = known.unwrap_or_else(|| Contact::new(address)).updated(fields, at).storable()?;
        self.store.put_contact(&self.account, &contact).await?;
        Ok(contact)
    }

    async fn search(&self, text: &str, limit: usize) -> Result<Vec<Contact>, ContextError> {
        self.store.search_contacts(&self.account, text, limit).await
    }

    async fn check(&self) -> Result<String, ContextError> {
        self.store.check().await
    }
}

/// Returns the contact of a person who is known only from a mail.
fn from_mail(name: Option<&str>, address: &str, at: Timestamp) -> Contact {
    let mut contact = Contact::new(address);
    contact.name =
        name.map(contact::one_line).filter(|name| !name.is_empty() && contact::normal(name) != contact.email);
    contact.tags = vec![AUTO_SYNCED.to_owned()];
    if !is_free_mail(&contact.email) {
        contact.tags.push(BUSINESS.to_owned());
    }
    contact.last_contacted_at = Some(at);
    contact
}

/// Returns true if anyone can have an address in the domain of this one.
fn is_free_mail(address: &str) -> bool {
    let domain = address.rsplit_once('@').map_or("", |(_, domain)| domain);
    FREE_MAIL.binary_search(&domain).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::SqliteContext;

    fn contacts() -> (StoredContacts, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteContext::open(&folder.path().join("context.sqlite")).unwrap();
        (StoredContacts::new(Arc::new(store), "support@example.com"), folder)
    }

    #[test]
    fn the_domains_are_sorted() {
        assert!(FREE_MAIL.is_sorted());
    }

    #[tokio::test]
    async fn an_unknown_sender_becomes_a_contact_and_a_known_one_stays_as_it_is() {
        let (contacts, _folder) = contacts();
        assert!(contacts.seen(Some("Alice  Example"), "Alice@Acme.example", Timestamp(5)).await.unwrap());
        let alice = contacts.find("Alice <ALICE@acme.example>").await.unwrap().unwrap();
        assert_eq!(alice.name.as_deref(), Some("Alice Example"));
        assert_eq!(alice.tags, [AUTO_SYNCED, BUSINESS]);
        assert_eq!(alice.last_contacted_at, Some(Timestamp(5)));

        assert!(!contacts.seen(Some("Mallory"), "alice@acme.example", Timestamp(9)).await.unwrap());
        let later = contacts.find("alice@acme.example").await.unwrap().unwrap();
        assert_eq!(later, Contact { last_contacted_at: Some(Timestamp(9)), ..alice });
    }

    #[tokio::test]
    async fn an_address_of_free_mail_is_no_business() {
        let (contacts, _folder) = contacts();
        contacts.seen(None, "carol@gmail.com", Timestamp(1)).await.unwrap();
        assert_eq!(contacts.find("carol@gmail.com").await.unwrap().unwrap().tags, [AUTO_SYNCED]);
    }

    #[tokio::test]
    async fn an_update_creates_a_contact_or_changes_some_of_its_fields() {
        let (contacts, _folder) = contacts();
        let fields = Update { company: Some("TechCorp".into()), ..Update::default() };
        let bob = contacts.update("Bob <bob@techcorp.example>", &fields, Timestamp(3)).await.unwrap();
        assert_eq!(contacts.find("bob@techcorp.example").await.unwrap(), Some(bob));
        let fields = Update { title: Some("CTO".into()), ..Update::default() };
        let bob = contacts.update("bob@techcorp.example", &fields, Timestamp(4)).await.unwrap();
        assert_eq!((bob.company.as_deref(), bob.title.as_deref()), (Some("TechCorp"), Some("CTO")));
        assert_eq!(contacts.search("TECHCORP", 5).await.unwrap(), [bob]);
    }
}
