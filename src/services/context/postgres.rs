//! The store in a PostgreSQL database with the extension pgvector.
//!
//! The tables are created when the first connection is made. An HNSW index speeds up the search in large accounts; it
//! is approximate, and PostgreSQL decides whether to use it. With pgvector 0.8 or newer it is read on until there are
//! enough results of the account.
//!
//! There is one connection, which many calls share. It is made when it is needed, and again after it was lost. Every
//! call has a time limit, here and on the server.

mod schema;

use std::{fmt, str::FromStr as _, sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_core::{cause, clock::Timestamp};
use countersign_wire::tls;
use pgvector::Vector;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::{sync::Mutex, time::timeout};
use tokio_postgres::{
    Client, Config, Row,
    config::SslMode,
    types::{FromSql, ToSql},
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{
    contact::{self, Contact},
    error::ContextError,
    item::{Item, Kind, MAX_TEXT, check_id, storable},
    store::{ContextStore, How, MAX_LIMIT, Match, Query, WORDS_AT_LEAST},
    words,
};

/// The name of the store in errors.
const WHAT: &str = "the context database";

/// The maximum length of a message of the database in an error, in characters.
const MAX_REASON: usize = 200;

/// A store of texts and contacts in a database.
pub struct PostgresContext {
    config: Config,
    timeout: Duration,
    connection: Mutex<Option<Arc<Client>>>,
}

impl fmt::Debug for PostgresContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PostgresContext")
    }
}

impl PostgresContext {
    /// Creates a store for the database at `url`, such as `postgresql://user:password@host/database`. Makes no
    /// connection yet. `timeout` limits each call.
    ///
    /// # Errors
    ///
    /// [`ContextError::Invalid`] if the URL cannot be read. The error does not contain it.
    pub fn new(url: &SecretString, timeout: Duration) -> Result<Self, ContextError> {
        let invalid = || {
            ContextError::invalid(
                "The address of the database isn't. It must look like postgresql://user:password@host/database.",
            )
        };
        let mut config = Config::from_str(url.expose_secret()).map_err(|_| invalid())?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(invalid());
        }
        config.connect_timeout(timeout / 2);
        config.tcp_user_timeout(timeout);
        if config.get_application_name().is_none() {
            config.application_name("countersign");
        }
        Ok(Self { config, timeout, connection: Mutex::default() })
    }

    /// Returns the connection, and makes one if there is none.
    async fn client(&self) -> Result<Arc<Client>, ContextError> {
        let mut connection = self.connection.lock().await;
        if let Some(client) = connection.as_ref().filter(|client| !client.is_closed()) {
            return Ok(client.clone());
        }
        let made = timeout(self.timeout, self.connect()).await;
        let client = Arc::new(made.unwrap_or_else(|_| Err(ContextError::unavailable(WHAT, "no connection in time")))?);
        *connection = Some(client.clone());
        Ok(client)
    }

    /// Makes a connection, and creates the tables if there are none.
    async fn connect(&self) -> Result<Client, ContextError> {
        let uses_tls = self.config.get_ssl_mode() != SslMode::Disable;
        let tls = tls::client(uses_tls).map_err(|error| ContextError::unavailable(WHAT, error.to_string()))?;
        let (client, connection) = self.config.connect(MakeRustlsConnect::new(tls)).await.map_err(failed)?;
        // The task ends when the client is dropped, or with the connection.
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::warn!(error = cause::chain(&error), "Lost the connection to the context database");
            }
        });
        schema::create(&client).await?;
        schema::set_up(&client, self.timeout).await.map_err(failed)?;
        Ok(client)
    }

    /// Waits for a call on a connection. The connection is given up if there is no answer, or if it
    /// was lost.
    async fn bounded<T>(
        &self,
        client: &Arc<Client>,
        call: impl Future<Output = Result<T, tokio_postgres::Error>> + Send,
    ) -> Result<T, ContextError> {
        let late = |_| Err(ContextError::unavailable(WHAT, "no answer in time"));
        let done = timeout(self.timeout, call).await.map_or_else(late, |done| done.map_err(failed));
        if let Err(ContextError::Unavailable { .. }) = &done {
            let mut connection = self.connection.lock().await;
            if connection.as_ref().is_some_and(|current| Arc::ptr_eq(current, client)) {
                *connection = None;
            }
        }
        done
    }
}

/// Converts an error. The details that PostgreSQL adds are left out, since they contain values of rows.
fn failed(error: tokio_postgres::Error) -> ContextError {
    let Some(refusal) = error.as_db_error() else {
        return ContextError::unavailable(WHAT, cause::chain(&error));
    };
    let (code, message) = (refusal.code().code(), refusal.message());
    let reason = format!("{} ({code})", message.chars().take(MAX_REASON).collect::<String>());
    match &code[..2.min(code.len())] {
        // Lost connections, missing resources, interventions of an operator, failures of the system.
        "08" | "53" | "57" | "58" => ContextError::unavailable(WHAT, reason),
        "28" => ContextError::SignIn { what: WHAT, reason },
        _ => ContextError::Refused { what: WHAT, status: None, reason },
    }
}

#[async_trait]
impl ContextStore for PostgresContext {
    async fn remember(&self, item: &Item) -> Result<(), ContextError> {
        item.check()?;
        let Item { account, kind, source_id, text, embedding, metadata, at } = item;
        let text = storable(text, MAX_TEXT);
        let words: Vec<String> = words::of(&text).into_iter().collect();
        let model = embedding.as_ref().map(|embedding| embedding.model());
        let vector = embedding.as_ref().map(|embedding| Vector::from(embedding.vector().to_vec()));
        let sql = "INSERT INTO context_items (account, kind, source_id, text, words, metadata, at, model, embedding) \
                   VALUES ($1, $2, $3, $4, array_to_tsvector($5), $6, $7, $8, $9) \
                   ON CONFLICT (account, kind, source_id) DO UPDATE SET text = excluded.text, \
                   words = excluded.words, metadata = excluded.metadata, at = excluded.at, model = excluded.model, \
                   embedding = excluded.embedding";
        let client = self.client().await?;
        let (kind, at) = (kind.name(), at.millis());
        let values: [&(dyn ToSql + Sync); 9] =
            [account, &kind, source_id, &text, &words, metadata, &at, &model, &vector];
        self.bounded(&client, client.execute(sql, &values)).await.map(drop)
    }

    async fn similar(&self, account: &str, to: &Query) -> Result<Vec<Match>, ContextError> {
        match &to.embedding {
            Some(embedding) => {
                let query = Vector::from(embedding.vector().to_vec());
                self.nearest(account, to, embedding.model(), &query).await
            }
            None => self.with_similar_words(account, to).await,
        }
    }

    async fn forget(&self, account: &str, kind: Kind, source_id: &str) -> Result<(), ContextError> {
        let sql = "DELETE FROM context_items WHERE account = $1 AND kind = $2 AND source_id = $3";
        let client = self.client().await?;
        self.bounded(&client, client.execute(sql, &[&account, &kind.name(), &source_id])).await.map(drop)
    }

    async fn forget_before(&self, before: Timestamp) -> Result<u64, ContextError> {
        let client = self.client().await?;
        let sql = "DELETE FROM context_items WHERE at < $1";
        self.bounded(&client, client.execute(sql, &[&before.0])).await
    }

    async fn contact(&self, account: &str, address: &str) -> Result<Option<Contact>, ContextError> {
        let sql = "SELECT record, last_contacted_at FROM context_contacts WHERE account = $1 AND email = $2";
        let address = contact::normal(address);
        if address.contains('\0') {
            return Ok(None); // the database refuses such a text, so it has no such contact
        }
        let client = self.client().await?;
        let row = self.bounded(&client, client.query_opt(sql, &[&account, &address])).await?;
        row.as_ref().map(contact_of).transpose()
    }

    async fn put_contact(&self, account: &str, contact: &Contact) -> Result<(), ContextError> {
        let sql = "INSERT INTO context_contacts (account, email, record, last_contacted_at, search) \
                   VALUES ($1, $2, $3, $4, $5) ON CONFLICT (account, email) DO UPDATE SET record = excluded.record, \
                   last_contacted_at = excluded.last_contacted_at, search = excluded.search RETURNING true";
        self.write_contact(sql, account, contact).await.map(drop)
    }

    async fn meet(&self, account: &str, contact: &Contact) -> Result<bool, ContextError> {
        // A row that was just inserted has no earlier version, so its `xmax` is 0.
        let sql = "INSERT INTO context_contacts AS known (account, email, record, last_contacted_at, search) \
                   VALUES ($1, $2, $3, $4, $5) ON CONFLICT (account, email) DO UPDATE \
                   SET last_contacted_at = greatest(known.last_contacted_at, excluded.last_contacted_at) \
                   RETURNING known.xmax = 0";
        self.write_contact(sql, account, contact).await
    }

    async fn search_contacts(&self, account: &str, text: &str, limit: usize) -> Result<Vec<Contact>, ContextError> {
        let sql = "SELECT record, last_contacted_at FROM context_contacts \
                   WHERE account = $1 AND strpos(search, $2) > 0 ORDER BY email COLLATE \"C\" LIMIT $3";
        let (text, limit) = (storable(&text.trim().to_lowercase(), MAX_TEXT), limit.min(MAX_LIMIT) as i64);
        let client = self.client().await?;
        let rows = self.bounded(&client, client.query(sql, &[&account, &text, &limit])).await?;
        rows.iter().map(contact_of).collect()
    }

    async fn forget_contact(&self, account: &str, address: &str) -> Result<(), ContextError> {
        let sql = "DELETE FROM context_contacts WHERE account = $1 AND email = $2";
        let (client, address) = (self.client().await?, contact::normal(address));
        self.bounded(&client, client.execute(sql, &[&account, &address])).await.map(drop)
    }

    async fn check(&self) -> Result<String, ContextError> {
        let sql = "SELECT current_setting('server_version'), \
                   (SELECT extversion FROM pg_extension WHERE extname = 'vector'), \
                   (SELECT count(*) FROM context_items), (SELECT count(*) FROM context_contacts)";
        let client = self.client().await?;
        let row = self.bounded(&client, client.query_one(sql, &[])).await?;
        let (server, extension): (String, String) = (column(&row, 0)?, column(&row, 1)?);
        let (texts, contacts): (i64, i64) = (column(&row, 2)?, column(&row, 3)?);
        Ok(format!("PostgreSQL {server} with pgvector {extension}, {texts} texts, {contacts} contacts"))
    }
}

impl PostgresContext {
    /// Returns the texts with the nearest vectors.
    async fn nearest(
        &self,
        account: &str,
        to: &Query,
        model: &str,
        query: &Vector,
    ) -> Result<Vec<Match>, ContextError> {
        let sql = "SELECT kind, source_id, text, metadata, at, 1 - (embedding <=> $3) FROM context_items \
                   WHERE account = $1 AND model = $2 AND ($4::text IS NULL OR kind = $4) \
                   AND ($5::text IS NULL OR source_id <> $5) ORDER BY embedding <=> $3 LIMIT $6";
        let (kind, limit) = (to.kind.map(Kind::name), to.limit() as i64);
        let client = self.client().await?;
        let values: [&(dyn ToSql + Sync); 6] = [&account, &model, query, &kind, &to.not, &limit];
        let rows = self.bounded(&client, client.query(sql, &values)).await?;
        let mut matches: Vec<Match> = rows
            .iter()
            .map(|row| match_of(row, column::<f64>(row, 5)? as f32, How::Cosine))
            .collect::<Result<_, ContextError>>()?;
        matches.retain(|found| found.similarity >= to.at_least);
        matches.sort_by(Match::order);
        Ok(matches)
    }

    /// Returns the texts that share the most words with the query.
    async fn with_similar_words(&self, account: &str, to: &Query) -> Result<Vec<Match>, ContextError> {
        let wanted = words::of_query(&to.text);
        if wanted.is_empty() || to.limit() == 0 {
            return Ok(Vec::new());
        }
        // The words consist of letters and digits, so none of them can end the quotation.
        let any: Vec<_> = wanted.iter().map(|word| format!("'{word}'")).collect();
        let sql = "SELECT kind, source_id, text, metadata, at FROM context_items \
                   WHERE account = $1 AND words @@ $2::text::tsquery AND ($3::text IS NULL OR kind = $3) \
                   AND ($4::text IS NULL OR source_id <> $4) \
                   ORDER BY ts_rank(words, $2::text::tsquery, 1) DESC, id DESC LIMIT $5";
        let (kind, any, limit) = (to.kind.map(Kind::name), any.join(" | "), words::CANDIDATES.max(to.limit()) as i64);
        let client = self.client().await?;
        let rows = self.bounded(&client, client.query(sql, &[&account, &any, &kind, &to.not, &limit])).await?;
        let mut matches = Vec::new();
        for row in &rows {
            let similarity = words::similarity(&wanted, &words::of(&column::<String>(row, 2)?));
            if similarity >= WORDS_AT_LEAST {
                matches.push(match_of(row, similarity, How::Words)?);
            }
        }
        matches.sort_by(Match::order);
        matches.truncate(to.limit());
        Ok(matches)
    }

    /// Writes a contact with a statement that returns a truth value.
    async fn write_contact(&self, sql: &str, account: &str, contact: &Contact) -> Result<bool, ContextError> {
        check_id("account", account)?;
        let contact = contact.storable()?;
        let (record, search) = contact.record();
        let last = contact.last_contacted_at.map(Timestamp::millis);
        let client = self.client().await?;
        let values: [&(dyn ToSql + Sync); 5] = [&account, &contact.email, &record, &last, &search];
        let row = self.bounded(&client, client.query_one(sql, &values)).await?;
        column(&row, 0)
    }
}

/// Returns a value of a row.
fn column<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Result<T, ContextError> {
    row.try_get(at).map_err(|_| ContextError::decode(WHAT, format!("column {at} has another type")))
}

/// Reads a match from the columns kind, source, text, metadata and time.
fn match_of(row: &Row, similarity: f32, how: How) -> Result<Match, ContextError> {
    let kind = Kind::named(column(row, 0)?).ok_or_else(|| ContextError::decode(WHAT, "a text has an unknown kind"))?;
    let (source_id, text, metadata) = (column(row, 1)?, column(row, 2)?, column(row, 3)?);
    let (similarity, at) = (similarity.clamp(-1.0, 1.0), Timestamp(column(row, 4)?));
    Ok(Match { kind, source_id, text, similarity, how, metadata, at })
}

fn contact_of(row: &Row) -> Result<Contact, ContextError> {
    let contact = Contact::of_record(column(row, 0)?, column(row, 1)?);
    contact.ok_or_else(|| ContextError::decode(WHAT, "a contact has an unknown form"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        PostgresContext::new(&SecretString::from(url), Duration::from_secs(1)).unwrap_err().to_string()
    }

    #[test]
    fn an_unreadable_address_is_refused_without_repeating_it() {
        for url in ["", "mysql://ana:secret@host/x", "postgresql://ana:secret@host:port/x", "user=ana password=secret"]
        {
            let error = refused(url);
            assert!(error.contains("must look like") && !error.contains("secret"), "{error}");
        }
    }

    #[tokio::test]
    async fn a_database_that_is_away_is_reported() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let url = SecretString::from(format!("postgresql://ana:secret@127.0.0.1:{port}/x?sslmode=disable"));
        let store = PostgresContext::new(&url, Duration::from_secs(5)).unwrap();
        let error = store.check().await.unwrap_err();
        assert!(matches!(&error, ContextError::Unavailable { .. }), "{error}");
        assert!(!format!("{store:?} {error}").contains("secret"));
    }
}
