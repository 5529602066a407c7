//! One suite for both stores of context.

use std::{sync::Arc, time::Duration};

use countersign::{
    clock::Timestamp,
    context::{
        Contact, ContextError, ContextStore, Embedding, Item, Kind,
        item::DIMENSIONS,
        postgres::PostgresContext,
        sqlite::SqliteContext,
        store::{How, Match, Query},
    },
};
use futures_util::future::join_all;
use secrecy::ExposeSecret as _;
use serde_json::json;
use tempfile::TempDir;

use crate::support::postgres;

const US: &str = "support@example.com";

/// A kind of store, empty at first.
trait Fixture: Sized {
    async fn start() -> Self;
    fn store(&self) -> Arc<dyn ContextStore>;
}

struct Sqlite {
    store: Arc<SqliteContext>,
    _folder: TempDir,
}

impl Fixture for Sqlite {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteContext::open(&folder.path().join("context.sqlite")).unwrap();
        Self { store: Arc::new(store), _folder: folder }
    }

    fn store(&self) -> Arc<dyn ContextStore> {
        self.store.clone()
    }
}

struct Postgres(Arc<PostgresContext>);

impl Fixture for Postgres {
    async fn start() -> Self {
        let url = postgres::database().await;
        Self(Arc::new(PostgresContext::new(&url, Duration::from_secs(30)).unwrap()))
    }

    fn store(&self) -> Arc<dyn ContextStore> {
        self.0.clone()
    }
}

macro_rules! context_suite {
    ($store:ident, $fixture:ty, [$($test:ident),* $(,)?]) => {
        mod $store {
            $(
                #[tokio::test]
                async fn $test() {
                    use super::Fixture as _;
                    let fixture = <$fixture>::start().await;
                    super::$test(&*fixture.store()).await;
                }
            )*
        }
    };
    ($($test:ident),* $(,)?) => {
        context_suite!(sqlite, super::Sqlite, [$($test),*]);
        context_suite!(postgresql, super::Postgres, [$($test),*]);
    };
}

context_suite! {
    the_nearest_come_first_and_at_most_five,
    what_is_not_similar_enough_is_left_out,
    accounts_do_not_mix,
    a_second_text_with_the_same_source_replaces_the_first,
    a_kind_can_be_chosen_and_the_mail_itself_left_out,
    vectors_of_another_model_are_not_compared,
    everything_about_a_text_comes_back,
    without_a_vector_words_are_compared,
    no_query_of_words_breaks_the_search,
    what_is_forgotten_is_not_found,
    old_texts_are_forgotten,
    what_cannot_be_stored_is_refused_or_cut,
    random_vectors_are_found_as_by_comparing_all,
    texts_that_are_remembered_at_once_are_all_there,
    a_contact_is_found_by_its_address_in_any_case,
    a_person_is_met_once,
    a_person_is_met_once_even_by_many_at_once,
    contacts_are_searched_in_addresses_names_and_companies,
    a_forgotten_contact_is_gone,
    a_check_says_what_is_stored,
}

/// A direction in the plane of the first two components.
fn towards(cosine: f32) -> Vec<f32> {
    let mut vector = vec![0.0; DIMENSIONS];
    vector[0] = cosine;
    vector[1] = (1.0 - cosine * cosine).sqrt();
    vector
}

fn embedding(vector: Vec<f32>) -> Embedding {
    Embedding::new("model-a", vector).unwrap()
}

fn item(id: &str, text: &str, vector: Option<Vec<f32>>) -> Item {
    Item {
        account: US.into(),
        kind: Kind::Email,
        source_id: id.into(),
        text: text.into(),
        embedding: vector.map(embedding),
        metadata: json!({}),
        at: Timestamp(1000),
    }
}

fn like(vector: Vec<f32>) -> Query {
    Query::new("", Some(embedding(vector)))
}

fn words(text: &str) -> Query {
    Query::new(text, None)
}

async fn found(store: &dyn ContextStore, query: &Query) -> Vec<Match> {
    store.similar(US, query).await.unwrap()
}

async fn ids(store: &dyn ContextStore, query: &Query) -> Vec<String> {
    found(store, query).await.into_iter().map(|found| found.source_id).collect()
}

async fn remember(store: &dyn ContextStore, items: &[Item]) {
    for item in items {
        store.remember(item).await.unwrap();
    }
}

async fn the_nearest_come_first_and_at_most_five(store: &dyn ContextStore) {
    for (n, cosine) in [0.75, 0.95, 0.8, 1.0, 0.85, 0.9, 0.72].into_iter().enumerate() {
        store.remember(&item(&n.to_string(), "x", Some(towards(cosine)))).await.unwrap();
    }
    assert_eq!(ids(store, &like(towards(1.0))).await, ["3", "1", "5", "4", "2"]);
    assert_eq!(ids(store, &Query { limit: 2, ..like(towards(1.0)) }).await, ["3", "1"]);
    assert!(ids(store, &Query { limit: 0, ..like(towards(1.0)) }).await.is_empty());
    let nearest = found(store, &like(towards(1.0))).await;
    assert!((nearest[0].similarity - 1.0).abs() < 1e-6 && (nearest[1].similarity - 0.95).abs() < 1e-6);
    assert_eq!(nearest[0].how, How::Cosine);
}

async fn what_is_not_similar_enough_is_left_out(store: &dyn ContextStore) {
    remember(store, &[item("a", "x", Some(towards(0.7001))), item("b", "x", Some(towards(0.6999)))]).await;
    remember(store, &[item("c", "x", Some(towards(-1.0))), item("d", "x", None)]).await;
    assert_eq!(ids(store, &like(towards(1.0))).await, ["a"]);
    assert_eq!(ids(store, &Query { at_least: -1.0, ..like(towards(1.0)) }).await, ["a", "b", "c"]);
}

async fn accounts_do_not_mix(store: &dyn ContextStore) {
    let theirs = Item { account: "other@example.com".into(), ..item("a", "refund for order 4711", Some(towards(1.0))) };
    remember(store, std::slice::from_ref(&theirs)).await;
    assert!(ids(store, &like(towards(1.0))).await.is_empty());
    assert!(ids(store, &words("refund for order 4711")).await.is_empty());
    store.put_contact("other@example.com", &Contact::new("ana@example.com")).await.unwrap();
    assert_eq!(store.contact(US, "ana@example.com").await.unwrap(), None);
    assert!(store.search_contacts(US, "ana", 5).await.unwrap().is_empty());
    store.forget(US, Kind::Email, "a").await.unwrap();
    assert_eq!(store.similar(&theirs.account, &like(towards(1.0))).await.unwrap().len(), 1, "it is theirs");
}

async fn a_second_text_with_the_same_source_replaces_the_first(store: &dyn ContextStore) {
    remember(store, &[item("a", "invoice from March", Some(towards(1.0)))]).await;
    assert_eq!(ids(store, &like(towards(1.0))).await, ["a"]);
    remember(store, &[item("a", "parking at the office", Some(towards(-1.0)))]).await;
    assert!(ids(store, &like(towards(1.0))).await.is_empty());
    let now = found(store, &like(towards(-1.0))).await;
    assert_eq!((now.len(), now[0].text.as_str()), (1, "parking at the office"));
    assert!(ids(store, &words("invoice March")).await.is_empty());
    assert_eq!(ids(store, &words("parking office")).await, ["a"]);
    remember(store, &[item("a", "parking at the office", None)]).await;
    assert!(ids(store, &like(towards(-1.0))).await.is_empty(), "it has no vector any more");
}

async fn a_kind_can_be_chosen_and_the_mail_itself_left_out(store: &dyn ContextStore) {
    let mail = item("1", "office party", Some(towards(1.0)));
    let event = Item { kind: Kind::Calendar, ..mail.clone() };
    let other = Item { source_id: "2".into(), kind: Kind::Crm, ..mail.clone() };
    remember(store, &[mail, event, other]).await;
    for query in [like(towards(1.0)), words("office party")] {
        assert_eq!(found(store, &query).await.len(), 3, "a source has a text for each kind");
        let events = found(store, &Query { kind: Some(Kind::Calendar), ..query.clone() }).await;
        assert_eq!(events.iter().map(|found| found.kind).collect::<Vec<_>>(), [Kind::Calendar]);
        assert_eq!(ids(store, &Query { not: Some("1".into()), ..query.clone() }).await, ["2"]);
        assert_eq!(ids(store, &Query { not: Some("3".into()), ..query }).await.len(), 3);
    }
}

async fn vectors_of_another_model_are_not_compared(store: &dyn ContextStore) {
    let other = Embedding::new("model-b", towards(1.0)).unwrap();
    remember(store, &[Item { embedding: Some(other.clone()), ..item("b", "x", None) }]).await;
    remember(store, &[item("a", "x", Some(towards(1.0)))]).await;
    assert_eq!(ids(store, &like(towards(1.0))).await, ["a"]);
    assert_eq!(ids(store, &Query { embedding: Some(other), ..like(towards(1.0)) }).await, ["b"]);
}

async fn everything_about_a_text_comes_back(store: &dyn ContextStore) {
    let metadata = json!({ "subject": "Grüße 🎉", "n": [1, null, 2.5], "quote": "'\"\\" });
    let text = "Ein 'Text' mit \"Zeichen\", \\ und 🎉\nauf zwei Zeilen";
    let stored =
        Item { metadata, at: Timestamp(1_764_000_000_123), ..item("id/with?odd&chars", text, Some(towards(1.0))) };
    store.remember(&stored).await.unwrap();
    let [back] = &found(store, &like(towards(1.0))).await[..] else { panic!("one text is stored") };
    assert_eq!((&back.source_id, &back.text, &back.metadata), (&stored.source_id, &stored.text, &stored.metadata));
    assert_eq!((back.at, back.kind), (stored.at, stored.kind));
}

async fn without_a_vector_words_are_compared(store: &dyn ContextStore) {
    let refund = item("a", "Where is the refund for my order 4711? I returned the blue shoes.", Some(towards(1.0)));
    let party = item("b", "The summer party takes place in the garden, rain or shine.", None);
    let shoes = item("c", "Do you have blue shoes in size 44?", None);
    remember(store, &[refund, party, shoes]).await;
    let nearest = found(store, &words("Refund order 4711: blue shoes returned")).await;
    assert_eq!(nearest[0].source_id, "a");
    assert!(nearest.iter().all(|found| found.how == How::Words && (0.2..=1.0).contains(&found.similarity)));
    assert!(nearest.iter().all(|found| found.source_id != "b"), "it shares no word");
    assert_eq!(ids(store, &words("GARDEN party in SUMMER")).await, ["b"]);
    assert!(ids(store, &words("is the in of")).await.is_empty(), "these words say nothing");
}

async fn no_query_of_words_breaks_the_search(store: &dyn ContextStore) {
    remember(store, &[item("a", "office party", None)]).await;
    let hostile =
        ["", " ", "\"", "' OR 1=1 --", "party\" OR *", "a:b AND (NEAR", "\0", "🎉", "''' & !! | <->", "party:*A"];
    for text in hostile {
        drop(found(store, &words(text)).await);
        drop(store.search_contacts(US, text, 5).await.unwrap());
        assert_eq!(store.contact(US, text).await.unwrap(), None);
    }
    let long: String = (0..20_000).map(|n| format!("word{n} ")).collect();
    assert!(found(store, &words(&long)).await.is_empty());
}

async fn what_is_forgotten_is_not_found(store: &dyn ContextStore) {
    remember(store, &[item("a", "office party", Some(towards(1.0))), item("b", "office party", Some(towards(0.9)))])
        .await;
    assert_eq!(ids(store, &like(towards(1.0))).await, ["a", "b"]);
    store.forget(US, Kind::Email, "a").await.unwrap();
    store.forget(US, Kind::Email, "a").await.unwrap();
    store.forget(US, Kind::Crm, "b").await.unwrap();
    assert_eq!(ids(store, &like(towards(1.0))).await, ["b"]);
    assert_eq!(ids(store, &words("office party")).await, ["b"]);
}

async fn old_texts_are_forgotten(store: &dyn ContextStore) {
    for (id, at) in [("a", 10), ("b", 20), ("c", 30)] {
        store.remember(&Item { at: Timestamp(at), ..item(id, "office party", Some(towards(1.0))) }).await.unwrap();
    }
    assert_eq!(ids(store, &like(towards(1.0))).await, ["c", "b", "a"], "of equally near texts the newest is first");
    assert_eq!(store.forget_before(Timestamp(20)).await.unwrap(), 1);
    assert_eq!(ids(store, &like(towards(1.0))).await, ["c", "b"]);
    assert_eq!(store.forget_before(Timestamp(20)).await.unwrap(), 0);
}

async fn what_cannot_be_stored_is_refused_or_cut(store: &dyn ContextStore) {
    let long = "ä".repeat(60_000);
    remember(store, &[item("a", &format!("nul\0 {long}"), Some(towards(1.0)))]).await;
    let text = &found(store, &like(towards(1.0))).await[0].text;
    assert!(text.starts_with("nul ä") && text.chars().count() == 50_000);
    for wrong in [
        item("", "x", None),
        item(&"x".repeat(513), "x", None),
        Item { account: String::new(), ..item("b", "x", None) },
        Item { metadata: json!({ "long": "x".repeat(70_000) }), ..item("b", "x", None) },
        Item { metadata: json!({ "nul": "\0" }), ..item("b", "x", None) },
    ] {
        assert!(matches!(store.remember(&wrong).await, Err(ContextError::Invalid { .. })));
    }
    let nobody = store.put_contact(US, &Contact::new("no address")).await;
    assert!(matches!(nobody, Err(ContextError::Invalid { .. })));
}

async fn random_vectors_are_found_as_by_comparing_all(store: &dyn ContextStore) {
    let mut state = 88_172_645_463_325_252_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1_u32 << 24) as f32 - 0.5
    };
    let center: Vec<f32> = (0..DIMENSIONS).map(|_| random()).collect();
    let mut near = || center.iter().map(|x| x + 0.8 * random()).collect::<Vec<f32>>();
    let vectors: Vec<_> = (0..60).map(|_| embedding(near())).collect();
    for (n, vector) in vectors.iter().enumerate() {
        store.remember(&Item { embedding: Some(vector.clone()), ..item(&format!("{n:02}"), "x", None) }).await.unwrap();
    }
    for _ in 0..10 {
        let query = embedding(near());
        let cosine = |other: &Embedding| -> f64 {
            query.vector().iter().zip(other.vector()).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
        };
        let mut all: Vec<_> = vectors.iter().enumerate().map(|(n, other)| (cosine(other), format!("{n:02}"))).collect();
        all.retain(|(near, _)| *near >= 0.6);
        all.sort_by(|one, other| other.0.total_cmp(&one.0));
        let expected: Vec<_> = all.into_iter().take(7).map(|(_, id)| id).collect();
        assert!(!expected.is_empty());
        let query = Query { at_least: 0.6, limit: 7, ..Query::new("", Some(query.clone())) };
        assert_eq!(ids(store, &query).await, expected);
    }
}

async fn texts_that_are_remembered_at_once_are_all_there(store: &dyn ContextStore) {
    let items: Vec<_> = (0..20).map(|n| item(&(n / 2).to_string(), "office party", Some(towards(1.0)))).collect();
    for written in join_all(items.iter().map(|item| store.remember(item))).await {
        written.unwrap();
    }
    assert_eq!(found(store, &Query { limit: 50, ..like(towards(1.0)) }).await.len(), 10);
}

async fn a_contact_is_found_by_its_address_in_any_case(store: &dyn ContextStore) {
    let ana = Contact {
        name: Some("Ana Example".into()),
        company: Some("Acme 'Corp'".into()),
        tags: vec!["vip".into()],
        metadata: json!({ "plan": "pro" }),
        last_contacted_at: Some(Timestamp(7)),
        ..Contact::new("Ana@Example.com")
    };
    store.put_contact(US, &ana).await.unwrap();
    for address in ["ana@example.com", "ANA@EXAMPLE.COM", "Ana Example <ana@example.com>"] {
        assert_eq!(store.contact(US, address).await.unwrap().as_ref(), Some(&ana), "{address}");
    }
    let less = Contact { last_contacted_at: None, ..Contact::new("ana@example.com") };
    store.put_contact(US, &less).await.unwrap();
    assert_eq!(store.contact(US, "ana@example.com").await.unwrap(), Some(less), "it was replaced");
    assert_eq!(store.contact(US, "bo@example.com").await.unwrap(), None);
}

async fn a_person_is_met_once(store: &dyn ContextStore) {
    let seen = |at, name: &str| Contact {
        name: Some(name.to_owned()),
        last_contacted_at: Some(Timestamp(at)),
        ..Contact::new("ana@example.com")
    };
    assert!(store.meet(US, &seen(5, "Ana")).await.unwrap());
    assert!(!store.meet(US, &seen(9, "Mallory")).await.unwrap());
    assert!(!store.meet(US, &seen(3, "Mallory")).await.unwrap());
    assert_eq!(store.contact(US, "ana@example.com").await.unwrap(), Some(seen(9, "Ana")));
    let never = Contact { last_contacted_at: None, ..seen(0, "Ana") };
    store.put_contact(US, &never).await.unwrap();
    assert!(!store.meet(US, &never).await.unwrap());
    assert!(!store.meet(US, &seen(4, "Ana")).await.unwrap());
    assert_eq!(store.contact(US, "ana@example.com").await.unwrap(), Some(seen(4, "Ana")));
}

async fn a_person_is_met_once_even_by_many_at_once(store: &dyn ContextStore) {
    let ana = Contact::new("ana@example.com");
    let met = join_all((0..8).map(|_| store.meet(US, &ana))).await;
    assert_eq!(met.into_iter().filter(|new| *new.as_ref().unwrap()).count(), 1);
}

async fn contacts_are_searched_in_addresses_names_and_companies(store: &dyn ContextStore) {
    for (address, name, company) in [
        ("carol@startup.dev", "Carol Jones", "Startup Dev"),
        ("alice@example.com", "Alice Smith", "Acme Corp"),
        ("bob@techcorp.io", "Bob 100%_Möller", "TechCorp"),
    ] {
        let contact = Contact { name: Some(name.into()), company: Some(company.into()), ..Contact::new(address) };
        store.put_contact(US, &contact).await.unwrap();
    }
    let search = async |text: &str| {
        let found = store.search_contacts(US, text, 5).await.unwrap();
        found.into_iter().map(|contact| contact.email).collect::<Vec<_>>()
    };
    assert_eq!(search("CORP").await, ["alice@example.com", "bob@techcorp.io"]);
    assert_eq!(search("carol").await, ["carol@startup.dev"]);
    assert_eq!(search("example.com").await, ["alice@example.com"]);
    assert_eq!(search("MÖLLER").await, ["bob@techcorp.io"]);
    assert_eq!(search("100%_").await, ["bob@techcorp.io"], "these signs mean themselves");
    assert!(search("nobody").await.is_empty());
    assert_eq!(store.search_contacts(US, "", 2).await.unwrap().len(), 2);
}

async fn a_forgotten_contact_is_gone(store: &dyn ContextStore) {
    store.put_contact(US, &Contact::new("ana@example.com")).await.unwrap();
    store.forget_contact(US, "Ana <ANA@example.com>").await.unwrap();
    store.forget_contact(US, "ana@example.com").await.unwrap();
    assert_eq!(store.contact(US, "ana@example.com").await.unwrap(), None);
}

async fn a_check_says_what_is_stored(store: &dyn ContextStore) {
    remember(store, &[item("a", "x", None), item("b", "x", None)]).await;
    store.put_contact(US, &Contact::new("ana@example.com")).await.unwrap();
    let line = store.check().await.unwrap();
    assert!(line.ends_with("2 texts, 1 contacts"), "{line}");
    assert!(line.starts_with("SQLite 3.") || line.contains("with pgvector 0."), "{line}");
}

#[tokio::test]
async fn a_lost_connection_to_the_database_is_made_again() {
    let url = postgres::database().await;
    let store = PostgresContext::new(&url, Duration::from_secs(30)).unwrap();
    store.remember(&item("a", "x", Some(towards(1.0)))).await.unwrap();
    let (client, connection) = tokio_postgres::connect(url.expose_secret(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let others = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity \
                  WHERE datname = current_database() AND pid <> pg_backend_pid()";
    client.query(others, &[]).await.unwrap();
    // The first call may notice that the connection is lost; the next one has another.
    if let Err(error) = store.check().await {
        assert!(matches!(error, ContextError::Unavailable { .. }), "{error}");
    }
    assert_eq!(ids(&store, &like(towards(1.0))).await, ["a"]);
}

#[tokio::test]
async fn two_processes_can_create_the_tables_at_once() {
    let url = postgres::database().await;
    let stores: Vec<_> = (0..4).map(|_| PostgresContext::new(&url, Duration::from_secs(30)).unwrap()).collect();
    for checked in join_all(stores.iter().map(|store| store.check())).await {
        checked.unwrap();
    }
}
