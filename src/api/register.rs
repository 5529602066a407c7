//! The requests of programs: one sealed register for each, and lists of their ids.
//!
//! A request is stored before it has a thread. From then on its action is the truth about it, and the register keeps what the
//! program gave. A request is found again by the program's `Idempotency-Key`: the register under its hash names the request
//! that was the first to use it, in one compare-and-set.

use std::{collections::BTreeMap, sync::Arc};

use countersign_core::{
    clock::Timestamp,
    hash::sha256,
    ids::{Nonce, ThreadId},
    reply::Text,
};
use countersign_graph::{
    action::ActionRecord,
    store::{ActionFilter, Error, Store, TypedRegister, Written},
};
use serde::{Deserialize, Serialize};

use super::{asked::Asked, outside_change::OutsideChange};

/// The beginning of the keys of all registers about requests. They are sealed.
pub const REGISTERS: &str = "api/";

/// The list of requests that have no card yet.
const WAITING: &str = "api/waiting";

/// The callbacks whose receivers have switched them off.
const SWITCHED_OFF: &str = "api/off";

/// The number of ids on a page of a key's requests.
const PAGE: usize = 100;

/// A request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The id.
    pub id: String,
    /// The name of the key.
    pub key: String,
    /// What was asked for.
    pub asked: Asked,
    /// The digest of the payload.
    pub payload_digest: String,
    /// The seconds for which an approval may be claimed.
    pub claim_within: u64,
    /// The address from which it was asked for.
    pub asked_from: String,
    /// The hash of its `Idempotency-Key`.
    pub idempotency: String,
    /// The key by which the message that begins its thread is found in Slack.
    pub nonce: Nonce,
    /// The time at which it was stored.
    pub created_at: Timestamp,
    /// The time until which it is open.
    pub expires_at: Timestamp,
    /// The thread; `None` before it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadId>,
    /// True once the thread has the request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_delivered: bool,
    /// The number of attempts to post the message that begins its thread.
    #[serde(default)]
    pub tries: u32,
    /// The time until which another process posts it, or before which it is not tried again.
    #[serde(default)]
    pub posting_until: Timestamp,
    /// How it ended, if that was before it had a thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// The request that took its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<String>,
    /// What people decided about the same target a moment before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Text>,
}

/// How a request ended that had no thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// The program withdrew it.
    Cancelled,
    /// Its time was over.
    Expired,
    /// A newer request took its place.
    Superseded,
}

impl Entry {
    /// Returns the change that is approved.
    pub fn as_change(&self) -> OutsideChange {
        OutsideChange {
            id: self.id.clone(),
            key: self.key.clone(),
            payload_digest: self.payload_digest.clone(),
            claim_within: self.claim_within,
            expires_at: self.expires_at,
            asked_from: self.asked_from.clone(),
            idempotency: self.idempotency.clone(),
            asked: self.asked.clone(),
            before: self.before.clone(),
        }
    }
}

/// The first use of an `Idempotency-Key`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FirstUse {
    /// The id of the request.
    pub id: String,
    /// The hash of the body.
    pub body: String,
}

/// The requests of a key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct OfKey {
    /// The number of full pages.
    pages: usize,
    /// The requests that were open when they were last looked at.
    open: Vec<String>,
}

/// All requests.
#[derive(Clone, Debug)]
pub struct Requests {
    store: Arc<dyn Store>,
    written: Arc<Written>,
}

impl Requests {
    /// Returns the requests in a store that tells of its writes.
    pub fn new(store: Arc<dyn Store>, written: Arc<Written>) -> Self {
        Self { store, written }
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Returns the watchers of what this process writes.
    pub fn written(&self) -> &Written {
        &self.written
    }

    /// Returns the key of the register of a request.
    pub fn register_of(id: &str) -> String {
        format!("{REGISTERS}request/{id}")
    }

    fn register<T: Serialize + serde::de::DeserializeOwned + Default + Send>(&self, key: String) -> TypedRegister<T> {
        TypedRegister::new(self.store.clone(), key)
    }

    fn of_request(&self, id: &str) -> TypedRegister<Option<Entry>> {
        self.register(Self::register_of(id))
    }

    /// Returns a request.
    ///
    /// # Errors
    ///
    /// If the store isn't answering.
    pub async fn entry(&self, id: &str) -> Result<Option<Entry>, Error> {
        Ok(self.of_request(id).load().await?.1)
    }

    /// Stores a new request, unless it is there.
    ///
    /// # Errors
    ///
    /// If the store isn't answering: it may have been stored.
    pub async fn add(&self, entry: &Entry) -> Result<Entry, Error> {
        self.of_request(&entry.id).change(|stored| stored.get_or_insert_with(|| entry.clone()).clone()).await
    }

    /// Changes a request. Returns the answer of `change`, or `None` if there is no such request.
    ///
    /// # Errors
    ///
    /// If the store isn't answering: it may have been changed.
    pub async fn change<A: Send>(
        &self,
        id: &str,
        mut change: impl FnMut(&mut Entry) -> A + Send,
    ) -> Result<Option<A>, Error> {
        self.of_request(id).change(|stored| stored.as_mut().map(&mut change)).await
    }

    /// Returns the action of a request, if it has one.
    ///
    /// # Errors
    ///
    /// If the store isn't answering.
    pub async fn record(&self, entry: &Entry) -> Result<Option<ActionRecord>, Error> {
        let Some(thread) = &entry.thread else { return Ok(None) };
        let found = self.store.actions(&ActionFilter::of(thread, &[], 1)).await?;
        Ok(found.into_iter().find(|record| OutsideChange::of(record).is_some_and(|change| change.id == entry.id)))
    }

    /// Returns the request that was the first to use this `Idempotency-Key`, and stores `mine` as such if none was, or if it
    /// was the one `before`.
    ///
    /// # Errors
    ///
    /// If the store isn't answering: `mine` may have been stored.
    pub async fn first_use(
        &self,
        key: &str,
        idempotency_key: &str,
        before: Option<&str>,
        mine: &FirstUse,
    ) -> Result<FirstUse, Error> {
        let register = self.register::<Option<FirstUse>>(format!("{REGISTERS}asked/{}", hash(&[key, idempotency_key])));
        let change = |first: &mut Option<FirstUse>| {
            first.take_if(|first| before == Some(&*first.id));
            first.get_or_insert_with(|| mine.clone()).clone()
        };
        register.change(change).await
    }

    /// Adds a request to the list of its key, unless it is there or `most` are open. Returns false in the latter case, with
    /// those that were open when they were last looked at.
    ///
    /// # Errors
    ///
    /// If the store isn't answering: it may have been added.
    pub async fn list(&self, key: &str, id: &str, most: usize) -> Result<Result<(), Vec<String>>, Error> {
        let mine = self.register::<OfKey>(format!("{REGISTERS}key/{key}"));
        let added = mine.change(|list| {
            if list.open.iter().any(|known| known == id) {
                return Ok(());
            }
            if list.open.len() >= most {
                return Err(list.open.clone());
            }
            list.open.push(id.to_owned());
            Ok(())
        });
        if let Err(open) = added.await? {
            return Ok(Err(open));
        }
        loop {
            let (_, list) = mine.load().await?;
            let page = self.register::<Vec<String>>(format!("{REGISTERS}key/{key}/{}", list.pages));
            let is_there = page.change(|ids| {
                let is_known = ids.iter().any(|known| known == id);
                if !is_known && ids.len() < PAGE {
                    ids.push(id.to_owned());
                }
                is_known || ids.iter().any(|known| known == id)
            });
            if is_there.await? {
                return Ok(Ok(()));
            }
            let full = list.pages;
            mine.change(|list| list.pages = list.pages.max(full + 1)).await?;
        }
    }

    /// Notes that requests of a key are no longer open.
    ///
    /// # Errors
    ///
    /// If the store isn't answering.
    pub async fn no_longer_open(&self, key: &str, ids: &[String]) -> Result<(), Error> {
        let mine = self.register::<OfKey>(format!("{REGISTERS}key/{key}"));
        mine.change(|list| list.open.retain(|open| !ids.contains(open))).await
    }

    /// Returns the ids of a key's requests on a page, the oldest first; `None` if there is no such page.
    ///
    /// # Errors
    ///
    /// If the store isn't answering.
    pub async fn page(&self, key: &str, page: usize) -> Result<Option<Vec<String>>, Error> {
        let (_, list) = self.register::<OfKey>(format!("{REGISTERS}key/{key}")).load().await?;
        if page > list.pages {
            return Ok(None);
        }
        Ok(Some(self.register::<Vec<String>>(format!("{REGISTERS}key/{key}/{page}")).load().await?.1))
    }

    /// Replaces the newest request of a key for a target. Returns the one before.
    ///
    /// # Errors
    ///
    /// If the store isn't answering: it may have been replaced.
    pub async fn newest_about(&self, entry: (&str, &str, &str), id: Option<&str>) -> Result<Option<String>, Error> {
        let (key, policy, target) = entry;
        let register = self.register::<Option<String>>(format!("{REGISTERS}target/{}", hash(&[key, policy, target])));
        register
            .change(|newest| match id {
                Some(id) if newest.as_deref() != Some(id) => newest.replace(id.to_owned()),
                Some(_) => None,
                None => newest.clone(),
            })
            .await
    }

    /// Returns the requests that have no card yet, with the times at which they were added.
    ///
    /// # Errors
    ///
    /// If the store isn't answering.
    pub async fn waiting(&self) -> Result<BTreeMap<String, Timestamp>, Error> {
        Ok(self.register::<BTreeMap<String, Timestamp>>(WAITING.to_owned()).load().await?.1)
    }

    /// Adds a request to those that have no card, or removes it.
    ///
    /// # Errors
    ///
    /// If the store isn't answering.
    pub async fn set_waiting(&self, id: &str, since: Option<Timestamp>) -> Result<(), Error> {
        let register = self.register::<BTreeMap<String, Timestamp>>(WAITING.to_owned());
        register
            .change(|waiting| match since {
                Some(since) if !waiting.contains_key(id) => waiting.insert(id.to_owned(), since).is_none(),
                Some(_) => false,
                None => waiting.remove(id).is_some(),
            })
            .await
            .map(drop)
    }
}

impl Requests {
    /// Returns the callbacks whose receivers have switched them off, with the addresses that they had.
    ///
    /// # Errors
    ///
    /// If the store isn't answering.
    pub async fn switched_off(&self) -> Result<BTreeMap<String, String>, Error> {
        Ok(self.register::<BTreeMap<String, String>>(SWITCHED_OFF.to_owned()).load().await?.1)
    }

    /// Switches a callback off until it has another address.
    ///
    /// # Errors
    ///
    /// If the store isn't answering.
    pub async fn switch_off(&self, callback: &str, url: &str) -> Result<(), Error> {
        let register = self.register::<BTreeMap<String, String>>(SWITCHED_OFF.to_owned());
        register.change(|off| off.insert(callback.to_owned(), url.to_owned())).await.map(drop)
    }
}

/// Returns a hash of texts, for the name of a register.
pub fn hash(texts: &[&str]) -> String {
    let joined = serde_json::to_vec(texts).expect("texts are plain data");
    hex::encode(sha256(&joined))
}
