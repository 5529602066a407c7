//! The client of HubSpot against the stand-in.

use std::{sync::Arc, time::Duration};

use countersign::{
    clock::{SystemClock, Timestamp},
    context::{
        Contact, Contacts, ContextError, ContextStore,
        contact::Update,
        contacts::StoredContacts,
        hubspot::{HubSpotContacts, HubSpotSettings, Waits},
        sqlite::SqliteContext,
    },
    send_permit::SendPermit,
};
use countersign_sandbox::{
    faults::Fault,
    hubspot::{Options, SandboxHubSpot, TOKEN},
};
use tempfile::TempDir;

/// HubSpot, a client, and the store behind it.
struct World {
    hubspot: SandboxHubSpot,
    client: HubSpotContacts,
    stored: Arc<dyn Contacts>,
    _folder: TempDir,
}

impl World {
    async fn start() -> Self {
        Self::with_token(TOKEN).await
    }

    async fn with_token(token: &str) -> Self {
        let hubspot = SandboxHubSpot::start(Options { seed: true, ..Options::default() }).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn ContextStore> =
            Arc::new(SqliteContext::open(&folder.path().join("context.sqlite")).unwrap());
        let stored: Arc<dyn Contacts> = Arc::new(StoredContacts::new(store, "support@example.com"));
        let settings = HubSpotSettings {
            base_url: hubspot.url().parse().unwrap(),
            token: token.into(),
            timeout: Duration::from_secs(5),
            waits: Waits { first: Duration::from_millis(1), longest: Duration::from_millis(2) },
        };
        let client = HubSpotContacts::new(settings, stored.clone()).unwrap();
        Self { hubspot, client, stored, _folder: folder }
    }

    /// Updates a contact under a permit.
    async fn update(&self, address: &str, fields: &Update) -> Result<Contact, ContextError> {
        let permit = SendPermit::new(Arc::new(SystemClock), Duration::from_secs(30));
        permit.during(self.client.update(address, fields, Timestamp(5))).await
    }
}

#[tokio::test]
async fn a_contact_is_found_by_its_address() {
    let world = World::start().await;
    let found = world.client.find("Alice <ALICE@example.com>").await.unwrap().unwrap();
    assert_eq!(found.line(), "Name: Alice; Company: Acme Corp");
    assert_eq!(found.email, "alice@example.com");
    assert_eq!(world.client.find("nobody@example.com").await.unwrap(), None);
    assert!(world.hubspot.ledger().iter().all(|request| !request.effect));
}

#[tokio::test]
async fn an_unknown_person_is_remembered_in_the_store_alone() {
    let world = World::start().await;
    assert!(world.client.seen(Some("Dora"), "dora@new.example", Timestamp(3)).await.unwrap());
    let dora = world.client.find("dora@new.example").await.unwrap().unwrap();
    assert_eq!(dora.tags, ["auto-synced", "business"]);
    assert_eq!(world.stored.find("dora@new.example").await.unwrap(), Some(dora));
    assert_eq!(world.hubspot.contact("dora@new.example"), None);
}

#[tokio::test]
async fn an_update_changes_or_creates_a_contact_under_a_permit() {
    let world = World::start().await;
    let fields = Update { title: Some("CEO".into()), name: Some("Alice Smith".into()), ..Update::default() };
    let alice = world.update("alice@example.com", &fields).await.unwrap();
    let last = "Last contact: 1970-01-01";
    assert_eq!(alice.line(), format!("Name: Alice Smith; Company: Acme Corp; Title: CEO; {last}"));
    let fields = Update { company: Some("New Ltd".into()), ..Update::default() };
    let dora = world.update("dora@new.example", &fields).await.unwrap();
    assert_eq!(dora.line(), format!("Company: New Ltd; {last}"));
    assert_eq!(world.hubspot.contact("dora@new.example").unwrap()["company"], "New Ltd");

    let changes = world.hubspot.ledger().iter().filter(|request| request.effect).count();
    let alone = world.client.update("alice@example.com", &fields, Timestamp(5)).await;
    assert_eq!(alone.unwrap_err(), ContextError::RunOut);
    assert_eq!(world.hubspot.ledger().iter().filter(|request| request.effect).count(), changes);
}

#[tokio::test]
async fn contacts_are_searched_in_every_field() {
    let world = World::start().await;
    let found = world.client.search("corp", 5).await.unwrap();
    let addresses: Vec<_> = found.iter().map(|contact| contact.email.as_str()).collect();
    assert_eq!(addresses, ["alice@example.com", "bob@techcorp.io"]);
}

#[tokio::test]
async fn a_wrong_token_is_reported_without_the_token() {
    let world = World::with_token("pat-wrong").await;
    let error = world.client.check().await.unwrap_err();
    assert!(matches!(&error, ContextError::SignIn { .. }), "{error}");
    assert!(!format!("{error} {:?}", world.client).contains("pat-wrong"));
    World::start().await.client.check().await.unwrap();
}

#[tokio::test]
async fn a_read_is_tried_three_times_and_a_change_once() {
    let world = World::start().await;
    world.hubspot.faults().next(Fault::TooMany(0));
    world.hubspot.faults().next(Fault::Status(500));
    assert!(world.client.find("alice@example.com").await.unwrap().is_some());
    assert_eq!(world.hubspot.ledger().len(), 3);

    world.hubspot.faults().next_on("PATCH", Fault::LostAnswer);
    let fields = Update { phone: Some("555".into()), ..Update::default() };
    let error = world.update("alice@example.com", &fields).await.unwrap_err();
    assert!(matches!(&error, ContextError::NoAnswer { .. }), "{error}");
    let changes = world.hubspot.ledger().iter().filter(|request| request.method == "PATCH").count();
    assert_eq!(changes, 1);
    assert_eq!(world.hubspot.contact("alice@example.com").unwrap()["phone"], "555");
}
