//! Callbacks: signed messages that tell a program that the state of its request has changed.
//!
//! A message goes into the outbox of the request's thread in the write that changes the state ([`of_write`]), so none is
//! lost, and those of a request are sent in order. It is sent as Standard Webhooks describes, and says little: the program
//! looks at the request for everything else, with its key.
//!
//! Only the addresses in the settings are called. Redirects and proxies are not followed, and a name that leads to a private
//! address is refused unless the settings allow it.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use countersign_conversation::runtime::outbox::channel::{Channel, Claim};
use countersign_core::{
    cause,
    clock::{Clock, Timestamp},
    ids::{CommitId, MessageTs, Nonce, Slot, ThreadId},
};
use countersign_graph::{
    action::{ActionRecord, Status},
    store::{AuditDraft, AuditKind, Changes, Claimed, Error, Outbound, Outgoing, Sent, TRIED_OFTEN},
};
use reqwest::{Client, StatusCode, dns, redirect};
use ring::hmac;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    outside_change::OutsideChange,
    register::{Entry, Requests},
    settings::{Api, Callback},
    view::Seen,
};

/// The name of the channel in the outbox.
pub const CHANNEL: &str = "callback";

/// The time limit of a call.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The waits before the next attempts, in seconds, each up to a fifth longer or shorter.
const WAITS: [u64; 8] = [5, 30, 120, 600, 3600, 3 * 3600, 8 * 3600, 24 * 3600];

/// A message about a change of state, as it waits in the outbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Event {
    /// The name of the callback.
    to: String,
    /// The id of the request.
    request: String,
    state: Status,
    revision: u64,
    at: Timestamp,
}

impl Event {
    /// Returns the type, by which the program may choose; `None` if a program is not told of this state.
    fn kind(&self) -> Option<&'static str> {
        match self.state {
            Status::Approved | Status::Rejected | Status::Expired | Status::Cancelled => Some("approval.decided"),
            Status::Superseded => Some("approval.replaced"),
            Status::Done | Status::Failed | Status::Unknown | Status::Settled => Some("approval.ended"),
            Status::Proposed | Status::Pending | Status::Intent => None, // its own program made it so
        }
    }

    /// Returns the id, which is the same in all attempts.
    fn id(&self) -> String {
        format!("msg_{}_{}", self.request.trim_start_matches("apr_"), self.revision)
    }

    fn body(&self, kind: &str) -> String {
        let data = json!({ "id": self.request, "state": self.state, "revision": self.revision });
        json!({ "type": kind, "timestamp": self.at.to_string(), "data": data }).to_string()
    }

    fn outgoing(&self) -> Option<Outgoing> {
        self.kind()?;
        let body = serde_json::to_value(self).ok()?;
        Some(Outgoing {
            slot: Some(Slot::new(format!("{CHANNEL}:{}", self.to))), // those of a request are sent one after another
            nonce: Nonce::new(self.id()),
            progress: false,
            not_before: self.at,
            body: Outbound::Elsewhere { channel: CHANNEL.to_owned(), body },
        })
    }
}

/// Returns the message about a change of a record, if its program wants one.
pub fn of_write(before: &dyn Fn() -> Option<ActionRecord>, after: &ActionRecord, at: Timestamp) -> Option<Outgoing> {
    let OutsideChange { id, asked, .. } = OutsideChange::of(after)?;
    if before().is_some_and(|before| before.status == after.status) {
        return None;
    }
    let event = Event { to: asked.callback?, request: id, state: after.status, revision: after.revision, at };
    event.outgoing()
}

/// Stores the message about a request that ended before it had a thread. Storing it again changes nothing.
pub(super) async fn store_end(requests: &Requests, entry: &Entry, team: &str, at: Timestamp) -> Result<(), Error> {
    let Some(to) = entry.asked.callback.clone() else { return Ok(()) };
    let seen = Seen { entry: entry.clone(), record: None };
    let event = Event { to, request: entry.id.clone(), state: seen.state(), revision: seen.revision(), at };
    let (channel, root) = (CHANNEL.into(), MessageTs::new(&*entry.id)); // the outbox of no thread in Slack
    let mut changes =
        Changes::new(CommitId::new(format!("{CHANNEL}:{}", entry.id)), ThreadId { team: team.into(), channel, root });
    changes.outbox.extend(event.outgoing());
    requests.store().apply(&changes).await
}

/// The channel that sends callbacks.
pub struct Callbacks {
    settings: Arc<Api>,
    requests: Requests,
    clock: Arc<dyn Clock>,
    client: Client,
}

impl Callbacks {
    /// Creates the channel.
    ///
    /// # Errors
    ///
    /// If no HTTP client can be set up.
    pub fn new(settings: Arc<Api>, requests: Requests, clock: Arc<dyn Clock>) -> Result<Self, reqwest::Error> {
        let client = client(&settings)?;
        Ok(Self { settings, requests, clock, client })
    }

    /// Makes one attempt. The error is the reason why it failed.
    async fn post(&self, callback: &Callback, event: &Event, kind: &str) -> Result<StatusCode, String> {
        let secret = callback.secret.as_ref().ok_or("it has no secret")?;
        let (id, body, now) = (event.id(), event.body(kind), self.clock.now().seconds());
        let signature = signature(secret, &id, now, &body).ok_or("its secret cannot be used")?;
        let request = self.client.post(&callback.url).header("content-type", "application/json");
        let request = request.header("webhook-id", &id).header("webhook-timestamp", now);
        let sent = request.header("webhook-signature", signature).body(body).send().await;
        let answer = sent.map_err(|error| match error.is_timeout() {
            true => format!("no answer within {} s", TIMEOUT.as_secs()),
            false => cause::chain(&error.without_url()),
        })?;
        Ok(answer.status())
    }

    /// Sends a message, or tells when to try again.
    async fn send(&self, claimed: &Claimed, event: &Event, kind: &str) -> Result<Sent, Error> {
        let Some(callback) = self.settings.callbacks.get(&event.to) else {
            return self.give_up(claimed, event, "there is no such callback in the settings").await;
        };
        if self.requests.switched_off().await?.get(&event.to) == Some(&callback.url) {
            return self.give_up(claimed, event, "its receiver has switched it off (HTTP 410)").await;
        }
        let why = match self.post(callback, event, kind).await {
            Ok(status) if status.is_success() => {
                self.record(claimed, event, None).await?;
                return Ok(Sent::Delivered(None));
            }
            Ok(StatusCode::GONE) => {
                self.requests.switch_off(&event.to, &callback.url).await?;
                return self.give_up(claimed, event, "its receiver has switched it off (HTTP 410)").await;
            }
            Ok(status) => format!("HTTP {}", status.as_u16()),
            Err(why) => why,
        };
        // A message that was postponed counts as tried often, so that it delays nothing else in the thread.
        let tried = claimed.attempts.saturating_sub(TRIED_OFTEN - 1) as usize;
        match WAITS.get(tried) {
            Some(wait) => {
                tracing::warn!(
                    request.id = event.request,
                    callback = event.to,
                    why,
                    "A callback failed; it is tried again"
                );
                count("failed");
                let share: f64 = 0.8 + 0.4 * rand::random::<f64>();
                Ok(Sent::Postponed(self.clock.now() + Duration::from_secs(*wait).mul_f64(share)))
            }
            None => self.give_up(claimed, event, &why).await,
        }
    }

    async fn give_up(&self, claimed: &Claimed, event: &Event, why: &str) -> Result<Sent, Error> {
        tracing::error!(request.id = event.request, callback = event.to, why, "A callback is given up");
        self.record(claimed, event, Some(why)).await?;
        if is_of_no_thread(claimed, event) {
            return Ok(Sent::Dropped); // there is nobody to tell
        }
        Ok(Sent::Failed { reason: format!("{CHANNEL} {}: {why}", event.to), at: self.clock.now() })
    }

    /// Notes in the record of the thread how it ended.
    async fn record(&self, claimed: &Claimed, event: &Event, given_up: Option<&str>) -> Result<(), Error> {
        count(if given_up.is_some() { "given_up" } else { "delivered" });
        if is_of_no_thread(claimed, event) {
            return Ok(());
        }
        let detail = json!({ "channel": format!("the callback {}", event.to), "state": event.state,
            "revision": event.revision, "given_up": given_up });
        let mut changes = Changes::new(CommitId::fresh(), claimed.thread.clone());
        changes.audit.push(AuditDraft::new(AuditKind::Posted, self.clock.now(), None, detail));
        self.requests.store().apply(&changes).await
    }
}

/// Returns the client that calls receivers, and nobody else.
fn client(settings: &Arc<Api>) -> Result<Client, reqwest::Error> {
    let resolver = Arc::new(Resolver(settings.clone()));
    let client = Client::builder().redirect(redirect::Policy::none()).no_proxy().dns_resolver(resolver);
    client.connect_timeout(TIMEOUT).timeout(TIMEOUT).build()
}

/// Checks that the receiver of a callback is there, whatever it answers.
///
/// # Errors
///
/// The reason why it is not reached.
pub async fn is_there(settings: &Arc<Api>, callback: &Callback) -> Result<(), String> {
    let client = client(settings).map_err(|error| cause::chain(&error))?;
    let answer = client.get(&callback.url).send().await;
    answer.map(drop).map_err(|error| cause::chain(&error.without_url()))
}

/// Counts an attempt by its result.
fn count(result: &'static str) {
    metrics::counter!("countersign_api_callbacks_total", "result" => result).increment(1);
}

fn is_of_no_thread(claimed: &Claimed, event: &Event) -> bool {
    claimed.thread.root.as_str() == event.request
}

#[async_trait]
impl Channel for Callbacks {
    fn name(&self) -> &str {
        CHANNEL
    }

    async fn deliver(&self, claim: &Claim) -> Sent {
        let now = self.clock.now();
        let Outbound::Elsewhere { body, .. } = &claim.message.outgoing.body else { return Sent::Dropped };
        let Ok(event) = Event::deserialize(body) else { return Sent::Dropped };
        let Some(kind) = event.kind() else { return Sent::Dropped };
        if !claim.is_ours(&**self.requests.store(), &*self.clock).await {
            return Sent::Deferred(now);
        }
        self.send(&claim.message, &event, kind).await.unwrap_or_else(|error| {
            tracing::warn!(error = cause::chain(&error), "The store isn't answering, so a callback waits");
            Sent::Deferred(now + Duration::from_secs(WAITS[0]))
        })
    }
}

/// Returns the key in a secret (`whsec_…`); `None` if it has none of 24 to 64 bytes.
pub(super) fn key_of(secret: &SecretString) -> Option<Vec<u8>> {
    let key = BASE64_STANDARD.decode(secret.expose_secret().trim().strip_prefix("whsec_")?).ok()?;
    (24..=64).contains(&key.len()).then_some(key)
}

/// Returns the signature of a message, as Standard Webhooks describes it; `None` if the secret is not right.
pub fn signature(secret: &SecretString, id: &str, timestamp: i64, body: &str) -> Option<String> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key_of(secret)?);
    let signed = hmac::sign(&key, format!("{id}.{timestamp}.{body}").as_bytes());
    Some(format!("v1,{}", BASE64_STANDARD.encode(signed)))
}

/// Finds the addresses of receivers: public ones, unless the settings name this machine or allow private ones.
struct Resolver(Arc<Api>);

impl dns::Resolve for Resolver {
    fn resolve(&self, name: dns::Name) -> dns::Resolving {
        let name = name.as_str().to_owned();
        let named = |callback: &&Callback| callback.host().is_some_and(|host| host == name);
        let may_be_private =
            name == "localhost" || self.0.callbacks.values().find(named).is_some_and(|found| found.private);
        Box::pin(async move {
            let found = tokio::net::lookup_host((&*name, 0)).await?;
            let right: Vec<SocketAddr> = found.filter(|found| may_be_private || is_public(found.ip())).collect();
            if right.is_empty() {
                return Err(format!("{name} leads only to private addresses; `private = true` allows that").into());
            }
            Ok(Box::new(right.into_iter()) as dns::Addrs)
        })
    }
}

/// Returns true if an address is one of the public network.
fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            let is_special = match (a, b) {
                (0 | 10 | 127 | 224.., _) | (169, 254) | (192, 168) | (198, 18 | 19) => true,
                (100, b) => (64..128).contains(&b),
                (172, b) => (16..32).contains(&b),
                (192, 0) => c == 0 || c == 2,
                (198, 51) => c == 100,
                (203, 0) => c == 113,
                _ => false,
            };
            !is_special
        }
        IpAddr::V6(v6) => {
            let [a, b, ..] = v6.segments();
            // The global part, without the documentation and the tunnels that contain another address.
            a & 0xe000 == 0x2000 && a != 0x2002 && !(a == 0x2001 && (b == 0 || b == 0xdb8))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_vectors_of_webhooks_hold() {
        let vectors: Value =
            serde_json::from_str(include_str!("../../tests/fixtures/approval-api/vectors.json")).unwrap();
        let cases = vectors["webhooks"].as_array().unwrap();
        assert_eq!(cases.len(), 6);
        for case in cases {
            let text = |name: &str| case[name].as_str().unwrap();
            let at: i64 = text("webhook-timestamp").parse().unwrap();
            let ours = signature(&SecretString::from(text("secret")), text("webhook-id"), at, text("body")).unwrap();
            let is_given = text("webhook-signature").split(' ').any(|given| given == ours);
            let is_recent = (case["now"].as_i64().unwrap() - at).abs() <= 300;
            assert_eq!(is_given && is_recent, case["genuine"] == true, "{}: {ours}", case["name"]);
        }
    }

    #[test]
    fn a_message_has_the_form_of_the_vectors() {
        let vectors: Value =
            serde_json::from_str(include_str!("../../tests/fixtures/approval-api/vectors.json")).unwrap();
        let at = Timestamp("2026-12-01T12:00:00Z".parse::<jiff::Timestamp>().unwrap().as_millisecond());
        let event = Event { to: "hook".into(), request: "apr_01".into(), state: Status::Approved, revision: 3, at };
        let (ours, theirs) = (event.body(event.kind().unwrap()), vectors["webhooks"][0]["body"].as_str().unwrap());
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let time = |body: &Value| body["timestamp"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
        assert_eq!((&read(&ours)["data"], time(&read(&ours))), (&read(theirs)["data"], time(&read(theirs))));
        assert_eq!(event.id(), "msg_01_3");
    }

    #[test]
    fn a_secret_has_the_form_of_standard_webhooks() {
        let is_right = |secret: &str| key_of(&SecretString::from(secret)).is_some();
        assert!(is_right("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"));
        for wrong in ["", "whsec_", "whsec_MDEy", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3", "whsec_!!!!"] {
            assert!(!is_right(wrong), "{wrong}");
        }
    }

    #[tokio::test]
    async fn a_name_that_leads_to_a_private_address_is_refused() {
        let callback = |url: &str, private| json!({ "url": url, "secret_env": "X", "private": private });
        let api: Api = serde_json::from_value(json!({
            "minimum_expiry": "1min", "requests_a_minute": 60, "waiting": 1000, "cards_a_minute": 5,
            "callbacks": { "open": callback("https://127.0.0.2/", true), "closed": callback("https://127.0.0.3/", false) },
        }))
        .unwrap();
        let resolver = Resolver(Arc::new(api));
        let is_found = async |name: &str| dns::Resolve::resolve(&resolver, name.parse().unwrap()).await.is_ok();
        assert!(is_found("127.0.0.2").await && is_found("localhost").await);
        assert!(!is_found("127.0.0.3").await && !is_found("10.0.0.1").await);
        assert!(is_found("8.8.8.8").await);
    }

    #[test]
    fn private_addresses_are_known() {
        for private in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "198.18.0.1",
            "192.0.2.1",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "::ffff:10.0.0.1",
            "2001:db8::1",
            "2002:a00:1::",
            "2001::1",
            "64:ff9b::a00:1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
        for public in ["8.8.8.8", "172.32.0.1", "100.128.0.1", "192.169.0.1", "198.52.0.1", "2606:4700::1111"] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }
}
