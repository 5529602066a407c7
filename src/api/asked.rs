//! What a program asks for: its shape, and the checks that a table cannot make.

use std::{collections::BTreeMap, time::Duration};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use countersign_core::hash::sha256;
use countersign_graph::digest::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    settings::{Api, Policy},
    shape::{Fault, Kind, Member, check, member},
};

/// A request for an approval.
pub const REQUEST: &[Member] = &[
    member("policy", true, Kind::Line(1, 40), "The policy, one of those that the key may name."),
    member("title", true, Kind::Line(1, 150), "What it is about, for people."),
    member("reason", false, Kind::Text(0, 1000), "Why it is asked for."),
    member("change", true, Kind::Object(CHANGE), "The exact change."),
    member("links", false, Kind::List(3, LINK), "Addresses on the card; their hosts must be in the policy."),
    member(
        "requested_for",
        false,
        Kind::Object(PERSON),
        "The person who started it; no key has the right to say so yet.",
    ),
    member("expires_in", false, Kind::Integer, "The seconds for which it is open, at most those of the policy."),
    member(
        "callback",
        false,
        Kind::Word(40),
        "The name of a callback in the settings, which is told when the state changes.",
    ),
    member(
        "supersede",
        false,
        Kind::Flag,
        "True if it takes the place of an open request for the same policy and target.",
    ),
    member("metadata", false, Kind::Pairs(16, 40, 200), "Values that are returned and not shown."),
];

const CHANGE: &[Member] = &[
    member("kind", true, Kind::Word(64), "The kind of change, such as deploy."),
    member("target", true, Kind::Line(1, 200), "What it changes."),
    member("payload", true, Kind::Payload, "Exactly what is approved, and what the digest covers."),
    member("fields", false, Kind::List(20, FIELD), "The values of the payload that the card shows."),
];

/// A value of the payload that the card shows.
pub(crate) const FIELD: &[Member] = &[
    member("label", true, Kind::Line(1, 60), "The label on the card."),
    member("pointer", true, Kind::Line(0, 500), "The place in the payload (RFC 6901)."),
    member("before", false, Kind::Text(0, 500), "The value before, as the program says."),
];

const LINK: &[Member] = &[
    member("label", true, Kind::Line(1, 40), "The text of the link."),
    member("url", true, Kind::Https, "The address."),
];

const PERSON: &[Member] = &[member("slack_user", true, Kind::Line(1, 40), "The person in Slack.")];

/// A claim of an approval.
pub const CLAIM: &[Member] = &[member(
    "payload_digest",
    true,
    Kind::Line(1, 100),
    "The digest of the payload that is about to be used, computed from it.",
)];

/// The results that a program can report.
pub const RESULTS: &[&str] = &["succeeded", "failed", "unknown"];

/// A report of how it went.
pub const OUTCOME: &[Member] = &[
    member("result", true, Kind::OneOf(RESULTS), "How it went."),
    member("summary", false, Kind::Text(0, 300), "A sentence for people."),
    member("url", false, Kind::Https, "The address of a log."),
];

/// A token that is to be checked.
pub const TOKEN: &[Member] = &[member("token", true, Kind::Line(1, 4000), "The token.")];

/// The body of a request that says nothing more.
pub const NOTHING: &[Member] = &[];

/// A request for an approval, as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// The policy.
    pub policy: String,
    /// What it is about.
    pub title: String,
    /// Why it is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The change.
    pub change: Change,
    /// The links.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// The seconds for which it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u64>,
    /// True if it takes the place of an open request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub supersede: bool,
    /// The callback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback: Option<String>,
    /// Values that are only returned.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

/// The change that is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The kind.
    pub kind: String,
    /// The target.
    pub target: String,
    /// Exactly what is approved.
    pub payload: Value,
    /// The values that the card shows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Field>,
}

/// A value of the payload that the card shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Field {
    /// The label.
    pub label: String,
    /// The place in the payload.
    pub pointer: String,
    /// The value before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

/// A link on the card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// The text.
    pub label: String,
    /// The address.
    pub url: String,
}

impl Asked {
    /// Reads a request whose shape is right.
    ///
    /// # Errors
    ///
    /// The faults: those of the shape, fields that point nowhere, or names that nothing is registered under.
    pub fn read(body: &Value) -> Result<Self, Vec<Fault>> {
        let mut faults = Vec::new();
        check(body, REQUEST, "", &mut faults);
        if !faults.is_empty() {
            return Err(faults);
        }
        let mut without_null = body.clone();
        if let Some(members) = without_null.as_object_mut() {
            members.retain(|_, member| !member.is_null());
        }
        let asked = Self::deserialize(&without_null);
        let asked = asked.map_err(|error| vec![Fault { pointer: String::new(), detail: error.to_string() }])?;
        for (nth, field) in asked.change.fields.iter().enumerate() {
            if asked.change.payload.pointer(&field.pointer).is_none() {
                let detail = format!("The payload has nothing at `{}`.", field.pointer);
                faults.push(Fault { pointer: format!("/change/fields/{nth}/pointer"), detail });
            }
        }
        if faults.is_empty() { Ok(asked) } else { Err(faults) }
    }

    /// Returns the faults that depend on the policy and the settings: its times, the hosts of links, and the callback.
    pub fn faults_under(&self, policy: &Policy, settings: &Api) -> Vec<Fault> {
        let mut faults = Vec::new();
        let (least, most) = (settings.minimum_expiry.as_secs(), policy.expires_after.as_secs());
        if self.expires_in.is_some_and(|seconds| !(least..=most.max(least)).contains(&seconds)) {
            let detail = format!("Expected {least} to {most} seconds.");
            faults.push(Fault { pointer: "/expires_in".to_owned(), detail });
        }
        if self.callback.as_ref().is_some_and(|name| !settings.callbacks.contains_key(name)) {
            let detail = "There is no callback of this name. Callbacks are named, never given by address.".to_owned();
            faults.push(Fault { pointer: "/callback".to_owned(), detail });
        }
        for (nth, link) in self.links.iter().enumerate() {
            let host = url::Url::parse(&link.url).ok().and_then(|url| url.host_str().map(str::to_owned));
            if !host.is_some_and(|host| policy.links.contains(&host)) {
                let detail = "The policy does not allow links to this host.".to_owned();
                faults.push(Fault { pointer: format!("/links/{nth}/url"), detail });
            }
        }
        faults
    }

    /// Returns the time for which it is open.
    pub fn open_for(&self, policy: &Policy) -> Duration {
        self.expires_in.map_or(policy.expires_after, Duration::from_secs)
    }
}

/// Returns the digest of a payload, which anyone can compute: SHA-256 of its canonical form. `None` if it has none.
pub fn payload_digest(payload: &Value) -> Option<String> {
    let text = Digest::canonical_text(payload)?;
    Some(format!("sha-256:{}", BASE64_URL_SAFE_NO_PAD.encode(sha256(text.as_bytes()))))
}
