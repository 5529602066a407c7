//! The store in a file of SQLite.
//!
//! The search over vectors is exact: [`index`] holds them in memory in a compact form, filled by the first search of an
//! account. Without embeddings, SQLite's own full-text search ranks the texts (BM25), and [`crate::words`] computes
//! how similar the best ones are.
//!
//! Everything runs on one connection, in threads for blocking work. Another process may use the same file: before each
//! search, SQLite reports whether another connection has written, and then the vectors are read again.

mod index;
mod schema;

use std::{
    collections::BTreeSet,
    fmt,
    path::Path,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use async_trait::async_trait;
use countersign_core::{clock::Timestamp, private_file};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde_json::Value;

use self::index::{Index, List, Search, cosine};
use crate::{
    contact::{self, Contact},
    error::ContextError,
    item::{DIMENSIONS, Item, Kind, MAX_TEXT, check_id, storable},
    store::{ContextStore, How, MAX_LIMIT, Match, Query, WORDS_AT_LEAST},
    words,
};

/// The name of the store in errors.
const WHAT: &str = "the context store";

/// The time for which the connection waits while another process writes.
const BUSY: Duration = Duration::from_secs(5);

/// The maximum number of texts that are ranked because they have one of the rarer words of a query.
const MAX_MATCHES: i64 = 500;

/// A store of texts and contacts in a file.
#[derive(Clone)]
pub struct SqliteContext {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    connection: Connection,
    index: Index,
    /// SQLite's number for the state of the file, which changes when another connection writes.
    data_version: i64,
}

impl fmt::Debug for SqliteContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SqliteContext")
    }
}

impl SqliteContext {
    /// Opens the file at `path`, which only its owner can access. It is created if necessary.
    ///
    /// # Errors
    ///
    /// [`ContextError::Refused`] if the file belongs to another program or to a newer version of this one;
    /// [`ContextError::Unavailable`] if it cannot be opened.
    pub fn open(path: &Path) -> Result<Self, ContextError> {
        let not_opened =
            |reason: String| ContextError::unavailable(WHAT, format!("cannot open {}: {reason}", path.display()));
        drop(private_file::append(path).map_err(|error| not_opened(error.to_string()))?);
        let mut connection = Connection::open(path).map_err(|error| not_opened(error.to_string()))?;
        let version = set_up(&mut connection).map_err(|error| not_opened(error.to_string()))?;
        if version != schema::VERSION {
            let reason = format!(
                "{} has schema {version}, and this program knows {}; it belongs to a newer version or to another program",
                path.display(),
                schema::VERSION
            );
            return Err(ContextError::Refused { what: WHAT, status: None, reason });
        }
        let inner = Inner { connection, index: Index::default(), data_version: 0 };
        Ok(Self { inner: Arc::new(Mutex::new(inner)) })
    }

    /// Runs blocking work on the connection. The work finishes even if the caller is dropped.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Inner) -> Result<T, ContextError> + Send + 'static,
    ) -> Result<T, ContextError> {
        let inner = self.inner.clone();
        let done = tokio::task::spawn_blocking(move || work(&mut lock(&inner)));
        done.await.map_err(|_| ContextError::unavailable(WHAT, "the work was interrupted"))?
    }
}

/// Locks the connection. If its last user panicked, the vectors in memory may not fit the file and are forgotten.
fn lock(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().unwrap_or_else(|poisoned| {
        inner.clear_poison();
        let mut inner = poisoned.into_inner();
        inner.index.clear();
        inner
    })
}

/// Sets up the connection and creates the tables in an empty file. Returns the version of the tables.
fn set_up(connection: &mut Connection) -> rusqlite::Result<u32> {
    connection.busy_timeout(BUSY)?;
    let version = schema::version(connection)?;
    if version > schema::VERSION {
        return Ok(version);
    }
    connection.set_prepared_statement_cache_capacity(64);
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "cache_size", -65_536)?; // KiB
    schema::create(connection)?;
    connection.execute_batch("CREATE VIRTUAL TABLE temp.frequencies USING fts5vocab(main, words, row)")?;
    schema::version(connection)
}

impl From<rusqlite::Error> for ContextError {
    fn from(error: rusqlite::Error) -> Self {
        Self::unavailable(WHAT, error.to_string())
    }
}

#[async_trait]
impl ContextStore for SqliteContext {
    async fn remember(&self, item: &Item) -> Result<(), ContextError> {
        item.check()?;
        let item = item.clone();
        self.run(move |inner| inner.remember(&item)).await
    }

    async fn similar(&self, account: &str, to: &Query) -> Result<Vec<Match>, ContextError> {
        let (account, to) = (account.to_owned(), to.clone());
        self.run(move |inner| match &to.embedding {
            Some(embedding) => inner.nearest(&account, &to, embedding.model(), embedding.vector()),
            None => inner.with_similar_words(&account, &to),
        })
        .await
    }

    async fn forget(&self, account: &str, kind: Kind, source_id: &str) -> Result<(), ContextError> {
        let (account, source_id) = (account.to_owned(), source_id.to_owned());
        self.run(move |inner| {
            let sql = "DELETE FROM items WHERE account = ?1 AND kind = ?2 AND source_id = ?3 RETURNING id";
            let mut statement = inner.connection.prepare_cached(sql)?;
            let id: Option<i64> =
                statement.query_row(params![account, kind.name(), source_id], |row| row.get(0)).optional()?;
            drop(statement);
            if let Some(id) = id {
                inner.index.put(&account, id, kind, None);
            }
            Ok(())
        })
        .await
    }

    async fn forget_before(&self, before: Timestamp) -> Result<u64, ContextError> {
        self.run(move |inner| {
            let forgotten = inner.connection.execute("DELETE FROM items WHERE at < ?1", [before.millis()])?;
            if forgotten > 0 {
                inner.index.clear();
            }
            Ok(forgotten as u64)
        })
        .await
    }

    async fn contact(&self, account: &str, address: &str) -> Result<Option<Contact>, ContextError> {
        let (account, address) = (account.to_owned(), contact::normal(address));
        self.run(move |inner| {
            let sql = "SELECT record, last_contacted_at FROM contacts WHERE account = ?1 AND email = ?2";
            let mut statement = inner.connection.prepare_cached(sql)?;
            let row = statement.query_row(params![account, address], contact_row).optional()?;
            row.map(read_contact).transpose()
        })
        .await
    }

    async fn put_contact(&self, account: &str, contact: &Contact) -> Result<(), ContextError> {
        check_id("account", account)?;
        let (account, contact) = (account.to_owned(), contact.storable()?);
        self.run(move |inner| {
            let sql = "INSERT OR REPLACE INTO contacts (account, email, record, last_contacted_at, search) \
                       VALUES (?1, ?2, ?3, ?4, ?5)";
            inner.write_contact(sql, &account, &contact).map(drop)
        })
        .await
    }

    async fn meet(&self, account: &str, contact: &Contact) -> Result<bool, ContextError> {
        check_id("account", account)?;
        let (account, contact) = (account.to_owned(), contact.storable()?);
        self.run(move |inner| {
            let sql = "INSERT INTO contacts (account, email, record, last_contacted_at, search) \
                       VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING";
            let is_new = inner.write_contact(sql, &account, &contact)? > 0;
            if let (false, Some(at)) = (is_new, contact.last_contacted_at) {
                let sql = "UPDATE contacts SET last_contacted_at = max(coalesce(last_contacted_at, ?3), ?3) \
                           WHERE account = ?1 AND email = ?2";
                inner.connection.prepare_cached(sql)?.execute(params![account, contact.email, at.millis()])?;
            }
            Ok(is_new)
        })
        .await
    }

    async fn search_contacts(&self, account: &str, text: &str, limit: usize) -> Result<Vec<Contact>, ContextError> {
        let (account, text, limit) = (account.to_owned(), text.trim().to_lowercase(), limit.min(MAX_LIMIT));
        self.run(move |inner| {
            let sql = "SELECT record, last_contacted_at FROM contacts \
                       WHERE account = ?1 AND instr(search, ?2) > 0 ORDER BY email LIMIT ?3";
            let mut statement = inner.connection.prepare_cached(sql)?;
            let rows = statement.query_map(params![account, text, limit as i64], contact_row)?;
            rows.map(|row| read_contact(row?)).collect()
        })
        .await
    }

    async fn forget_contact(&self, account: &str, address: &str) -> Result<(), ContextError> {
        let (account, address) = (account.to_owned(), contact::normal(address));
        self.run(move |inner| {
            let sql = "DELETE FROM contacts WHERE account = ?1 AND email = ?2";
            inner.connection.prepare_cached(sql)?.execute(params![account, address])?;
            Ok(())
        })
        .await
    }

    async fn check(&self) -> Result<String, ContextError> {
        self.run(|inner| {
            let count = |table: &str| {
                let sql = format!("SELECT count(*) FROM {table}");
                inner.connection.query_row(&sql, [], |row| row.get::<_, i64>(0))
            };
            let (texts, contacts) = (count("items")?, count("contacts")?);
            Ok(format!("SQLite {}, {texts} texts, {contacts} contacts", rusqlite::version()))
        })
        .await
    }
}

impl Inner {
    /// Stores an item and its embedding, then replaces its vector in memory.
    fn remember(&mut self, item: &Item) -> Result<(), ContextError> {
        let Item { account, kind, source_id, text, embedding, metadata, at } = item;
        let transaction = self.connection.transaction()?;
        let sql = "INSERT INTO items (account, kind, source_id, text, metadata, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
                   ON CONFLICT (account, kind, source_id) DO UPDATE \
                   SET text = excluded.text, metadata = excluded.metadata, at = excluded.at RETURNING id";
        let (text, metadata) = (storable(text, MAX_TEXT), metadata.to_string());
        let values = params![account, kind.name(), source_id, text, metadata, at.millis()];
        let id: i64 = transaction.prepare_cached(sql)?.query_row(values, |row| row.get(0))?;
        match embedding {
            Some(embedding) => {
                let sql = "INSERT OR REPLACE INTO embeddings (item, model, vector) VALUES (?1, ?2, ?3)";
                let bytes: Vec<u8> = embedding.vector().iter().flat_map(|x| x.to_le_bytes()).collect();
                transaction.prepare_cached(sql)?.execute(params![id, embedding.model(), bytes])?;
            }
            None => {
                transaction.prepare_cached("DELETE FROM embeddings WHERE item = ?1")?.execute([id])?;
            }
        }
        transaction.commit()?;
        let vector = embedding.as_ref().map(|embedding| (embedding.model(), embedding.vector()));
        self.index.put(account, id, *kind, vector);
        Ok(())
    }

    /// Returns the texts with the nearest vectors.
    fn nearest(&mut self, account: &str, to: &Query, model: &str, query: &[f32]) -> Result<Vec<Match>, ContextError> {
        self.read_vectors(account, model)?;
        let Some(list) = self.index.list(account, model) else { return Ok(Vec::new()) };
        let not = self.ids_of(account, to)?;
        let search = Search { query, kind: to.kind, not: &not, at_least: to.at_least, limit: to.limit() };
        let mut vectors = self.connection.prepare_cached("SELECT vector FROM embeddings WHERE item = ?1")?;
        let found = list.nearest(&search, |id| {
            let bytes = vectors.query_row([id], |row| row.get::<_, Vec<u8>>(0))?;
            Ok::<_, ContextError>(cosine(query, &vector_of(&bytes)?))
        })?;
        self.in_order(found, How::Cosine, to.limit())
    }

    /// Reads the vectors of an account and a model into memory, unless they are there and still up to date.
    fn read_vectors(&mut self, account: &str, model: &str) -> Result<(), ContextError> {
        let now: i64 = self.connection.pragma_query_value(None, "data_version", |row| row.get(0))?;
        if now != self.data_version {
            self.index.clear();
            self.data_version = now;
        }
        if self.index.list(account, model).is_some() {
            return Ok(());
        }
        let sql = "SELECT items.id, items.kind, embeddings.vector FROM items JOIN embeddings ON items.id = item \
                   WHERE account = ?1 AND model = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query([account, model])?;
        let mut list = List::default();
        while let Some(row) = rows.next()? {
            let bytes = row.get_ref(2)?.as_blob().map_err(|_| ContextError::decode(WHAT, "a vector is not binary"))?;
            list.push(row.get(0)?, kind_in(row, 1)?, &vector_of(bytes)?);
        }
        drop(rows);
        drop(statement);
        self.index.add(account, model, list);
        Ok(())
    }

    /// Returns the texts that share the most words with the query.
    fn with_similar_words(&mut self, account: &str, to: &Query) -> Result<Vec<Match>, ContextError> {
        let wanted = words::of_query(&to.text);
        if wanted.is_empty() || to.limit() == 0 {
            return Ok(Vec::new());
        }
        // The words consist of letters and digits, so none of them can end the quotation.
        let any: Vec<_> = self.rarest(&wanted)?.into_iter().map(|word| format!("\"{word}\"")).collect();
        let sql = "SELECT items.id, items.text FROM words JOIN items ON items.id = words.rowid \
                   WHERE words MATCH ?1 AND account = ?2 AND (?3 IS NULL OR kind = ?3) \
                   AND (?4 IS NULL OR source_id <> ?4) ORDER BY words.rank, items.id DESC LIMIT ?5";
        let values = params![
            any.join(" OR "),
            account,
            to.kind.map(Kind::name),
            to.not,
            words::CANDIDATES.max(to.limit()) as i64
        ];
        let mut statement = self.connection.prepare_cached(sql)?;
        let candidates = statement.query_map(values, |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
        let mut found = Vec::new();
        for candidate in candidates {
            let (id, text) = candidate?;
            let similarity = words::similarity(&wanted, &words::of(&text));
            if similarity >= WORDS_AT_LEAST {
                found.push((id, similarity));
            }
        }
        self.in_order(found, How::Words, to.limit())
    }

    /// Returns the words that occur in the fewest texts, of which at most [`MAX_MATCHES`] have any of them. So a search
    /// costs the same however many texts have the words that nearly all of them have.
    fn rarest<'a>(&self, wanted: &'a BTreeSet<String>) -> Result<Vec<&'a str>, ContextError> {
        let mut frequency = self.connection.prepare_cached("SELECT doc FROM temp.frequencies WHERE term = ?1")?;
        let mut counted = Vec::with_capacity(wanted.len());
        for word in wanted {
            let texts: Option<i64> = frequency.query_row([word], |row| row.get(0)).optional()?;
            counted.push((texts.unwrap_or(0), word.as_str()));
        }
        counted.sort_unstable();
        let mut texts = 0;
        let is_within = |(nth, (more, _)): &(usize, (i64, &str))| {
            texts += more;
            *nth == 0 || texts <= MAX_MATCHES
        };
        Ok(counted.into_iter().enumerate().take_while(is_within).map(|(_, (_, word))| word).collect())
    }

    /// Returns the ids of the items with the source that is not wanted.
    fn ids_of(&self, account: &str, to: &Query) -> Result<Vec<i64>, ContextError> {
        let Some(not) = &to.not else { return Ok(Vec::new()) };
        let sql = "SELECT id FROM items WHERE account = ?1 AND source_id = ?2 AND kind IN ('email', 'crm', 'calendar')";
        let mut statement = self.connection.prepare_cached(sql)?;
        let ids = statement.query_map([account, not.as_str()], |row| row.get(0))?;
        Ok(ids.collect::<rusqlite::Result<_>>()?)
    }

    /// Reads the items that were found, sorts them and returns the first ones. Texts are read for these only.
    fn in_order(&self, found: Vec<(i64, f32)>, how: How, limit: usize) -> Result<Vec<Match>, ContextError> {
        let mut rows = self.connection.prepare_cached("SELECT kind, source_id, at FROM items WHERE id = ?1")?;
        let mut matches = Vec::with_capacity(found.len());
        for (id, similarity) in found {
            let (kind, source_id, at) =
                rows.query_row([id], |row| Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?)))?;
            let (text, metadata, at) = (String::new(), Value::Null, Timestamp(at));
            matches.push((Match { kind: kind_of(&kind)?, source_id, text, similarity, how, metadata, at }, id));
        }
        matches.sort_by(|(one, _), (other, _)| one.order(other));
        matches.truncate(limit);
        let mut texts = self.connection.prepare_cached("SELECT text, metadata FROM items WHERE id = ?1")?;
        let complete = |(mut found, id): (Match, i64)| -> Result<Match, ContextError> {
            let (text, metadata) = texts.query_row([id], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
            found.text = text;
            found.metadata = serde_json::from_str(&metadata)
                .map_err(|_| ContextError::decode(WHAT, "the metadata of a text is no JSON"))?;
            Ok(found)
        };
        matches.into_iter().map(complete).collect()
    }

    /// Writes a contact. Returns the number of written rows.
    fn write_contact(&self, sql: &str, account: &str, contact: &Contact) -> Result<usize, ContextError> {
        let (record, search) = contact.record();
        let last = contact.last_contacted_at.map(Timestamp::millis);
        Ok(self.connection.prepare_cached(sql)?.execute(params![
            account,
            contact.email,
            record.to_string(),
            last,
            search
        ])?)
    }
}

fn contact_row(row: &Row<'_>) -> rusqlite::Result<(String, Option<i64>)> {
    Ok((row.get(0)?, row.get(1)?))
}

fn read_contact((record, last): (String, Option<i64>)) -> Result<Contact, ContextError> {
    let contact = serde_json::from_str(&record).ok().and_then(|record| Contact::of_record(record, last));
    contact.ok_or_else(|| ContextError::decode(WHAT, "a contact has an unknown form"))
}

/// Reads a vector from its stored bytes.
fn vector_of(bytes: &[u8]) -> Result<Vec<f32>, ContextError> {
    if bytes.len() != DIMENSIONS * size_of::<f32>() {
        return Err(ContextError::decode(WHAT, format!("a vector has {} bytes", bytes.len())));
    }
    let component = |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    Ok(bytes.chunks_exact(size_of::<f32>()).map(component).collect())
}

fn kind_in(row: &Row<'_>, column: usize) -> Result<Kind, ContextError> {
    let name = row.get_ref(column)?.as_str().map_err(|_| ContextError::decode(WHAT, "a kind is no text"))?;
    kind_of(name)
}

fn kind_of(name: &str) -> Result<Kind, ContextError> {
    Kind::named(name).ok_or_else(|| ContextError::decode(WHAT, "a text has an unknown kind"))
}

#[cfg(test)]
mod tests;
