//! The records of a bot that is away, as they are written in either store.

use std::sync::Arc;

use countersign::{
    config::{Config, StoreKind},
    graph::{action::ActionRecord, store::Store},
    store::{packed, redis::RedisStore, sqlite::SqliteStore},
};
use redis::aio::MultiplexedConnection;
use secrecy::SecretString;

use crate::support::{
    bot::{Setup, TestBot},
    redis::{LOSSY, RedisServer},
};

/// Where a bot keeps its threads.
pub(super) enum Kept {
    InSqlite,
    InRedis(RedisServer),
}

/// In which way a record cannot be read.
#[derive(Clone, Copy)]
pub(super) enum CannotRead {
    NoJson,
    NoRecord,
}

impl CannotRead {
    pub(super) fn replacement_for(self, record: &str) -> String {
        match self {
            Self::NoJson => record[..record.len() / 2].to_owned(),
            Self::NoRecord => record.replacen("\"requested_by\"", "\"asked_by\"", 1),
        }
    }
}

impl Kept {
    pub(super) async fn in_redis() -> Self {
        Self::InRedis(RedisServer::start().await)
    }

    /// A bot that keeps its threads here.
    pub(super) async fn bot(&self) -> TestBot {
        let url = match self {
            Self::InSqlite => None,
            Self::InRedis(server) => Some(server.url()),
        };
        let settings = |config: &mut Config| {
            if let Some(url) = url {
                config.store.kind = Some(StoreKind::Redis);
                config.store.redis_url = Some(SecretString::from(url));
            }
        };
        TestBot::with(Setup { settings: Box::new(settings), ..Setup::default() }).await
    }

    /// The store of a bot that is away.
    pub(super) async fn open(&self, bot: &TestBot) -> Arc<dyn Store> {
        match self {
            Self::InSqlite => Arc::new(SqliteStore::open(&bot.config.store.path, Arc::new(bot.clock.clone())).unwrap()),
            Self::InRedis(server) => Arc::new(RedisStore::open(&server.url(), &LOSSY).await.unwrap()),
        }
    }

    /// A record as it is written.
    pub(super) async fn read(&self, bot: &TestBot, record: &ActionRecord) -> String {
        match self {
            Self::InSqlite => {
                let sql = "SELECT record, parts FROM actions WHERE approval = ?1";
                let columns = |row: &rusqlite::Row<'_>| Ok([row.get(0)?, row.get(1)?]);
                let [record, parts]: [Vec<u8>; 2] =
                    file(bot).query_row(sql, [record.approval.as_str()], columns).unwrap();
                let read =
                    |packed| serde_json::from_slice::<serde_json::Value>(&packed::unpack(packed).unwrap()).unwrap();
                let mut record = read(&record);
                record.as_object_mut().unwrap().extend(read(&parts).as_object().unwrap().clone());
                record.to_string()
            }
            Self::InRedis(server) => {
                let (mut connection, place) = place(server, record).await;
                redis::cmd("HGET").arg(place).arg(record.id.as_str()).query_async(&mut connection).await.unwrap()
            }
        }
    }

    /// Writes something in place of a record.
    pub(super) async fn write(&self, bot: &TestBot, record: &ActionRecord, text: &str) {
        match self {
            Self::InSqlite => {
                let sql = "UPDATE actions SET record = ?1, parts = ?1 WHERE approval = ?2";
                assert_eq!(file(bot).execute(sql, (text.as_bytes(), record.approval.as_str())).unwrap(), 1);
            }
            Self::InRedis(server) => {
                let (mut connection, place) = place(server, record).await;
                let mut set = redis::cmd("HSET");
                let new: u32 =
                    set.arg(place).arg(record.id.as_str()).arg(text).query_async(&mut connection).await.unwrap();
                assert_eq!(new, 0, "it took the place of the record");
            }
        }
    }
}

fn file(bot: &TestBot) -> rusqlite::Connection {
    rusqlite::Connection::open(&bot.config.store.path).unwrap()
}

/// The hash that holds a record.
async fn place(server: &RedisServer, record: &ActionRecord) -> (MultiplexedConnection, String) {
    let mut connection = server.connection().await;
    let hashes: Vec<String> =
        redis::cmd("KEYS").arg("countersign:*:thread:*:actions").query_async(&mut connection).await.unwrap();
    for hash in hashes {
        let mut holds = redis::cmd("HEXISTS");
        if holds.arg(&hash).arg(record.id.as_str()).query_async(&mut connection).await.unwrap() {
            return (connection, hash);
        }
    }
    panic!("no hash holds {}", record.id);
}
