//! Notifications of new mails, by Pub/Sub.
//!
//! Gmail publishes to a topic while the mailbox is watched, which has to be renewed at least once a week, and we pull
//! from its subscription. A notification only ends the wait: what is new is found by the history.

use std::{io, time::Duration};

use countersign_core::clock::Timestamp;
use reqwest::Method;
use serde::Serialize;
use tokio::{
    sync::Mutex,
    time::{Instant, sleep, sleep_until, timeout_at},
};

use super::{
    super::account::MailError,
    GmailSettings, PushSettings,
    calls::{Calls, either_way},
    wire::{INBOX, Ignored, Pulled, Watched},
};

/// The time before its end at which a watch is renewed. Google recommends to renew it once a day.
const RENEW_BEFORE: Duration = Duration::from_secs(6 * 24 * 3600);
/// The time limit of a pull. The server answers an unsuccessful one after about 90 seconds.
const PULL_TIMEOUT: Duration = Duration::from_secs(120);
/// The maximum number of notifications in one pull.
const MAX_MESSAGES: usize = 100;
/// The pause after a pull without a notification, in case the server does not wait.
const PAUSE: Duration = Duration::from_secs(1);

/// A subscription to the notifications of the mailbox.
#[derive(Debug)]
pub(super) struct Push {
    settings: PushSettings,
    calls: Calls,
    /// The time until which the mailbox is watched.
    watched: Mutex<Option<Timestamp>>,
}

/// The body of a request to watch the mailbox.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Watch<'a> {
    topic_name: &'a str,
    label_ids: [&'a str; 1],
    label_filter_behavior: &'a str,
}

/// The body of a pull.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Pull {
    max_messages: usize,
}

/// The body of an acknowledgement.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Acknowledge {
    ack_ids: Vec<String>,
}

impl Push {
    /// Creates the subscription, without sending a request.
    pub(super) fn new(push: PushSettings, settings: &GmailSettings) -> io::Result<Self> {
        let calls = Calls::new(&push.api, "/v1", settings, PULL_TIMEOUT)?;
        Ok(Self { settings: push, calls, watched: Mutex::default() })
    }

    /// Checks that the mailbox can be watched.
    pub(super) async fn check(&self, gmail: &Calls) -> Result<(), MailError> {
        self.watch(gmail).await
    }

    /// Returns at the next notification, and after `at_most` in any case.
    pub(super) async fn wait(&self, gmail: &Calls, at_most: Duration) {
        let end = Instant::now() + at_most;
        match timeout_at(end, self.news(gmail)).await {
            Ok(Ok(())) | Err(_) => {}
            Ok(Err(error)) => {
                tracing::warn!(error = countersign_core::cause::chain(&error), "No notifications of new mail");
                sleep_until(end).await;
            }
        }
    }

    /// Waits for a notification.
    async fn news(&self, gmail: &Calls) -> Result<(), MailError> {
        loop {
            self.watch(gmail).await?;
            let path = format!("/{}:pull", self.settings.subscription);
            let pulled: Pulled = self.calls.ask(&path, &Pull { max_messages: MAX_MESSAGES }).await?;
            if pulled.received_messages.is_empty() {
                sleep(PAUSE).await;
                continue;
            }
            let ack_ids = pulled.received_messages.into_iter().map(|message| message.ack_id).collect();
            let path = format!("/{}:acknowledge", self.settings.subscription);
            if let Err(error) = self.calls.ask::<Ignored>(&path, &Acknowledge { ack_ids }).await {
                // It is delivered again, which only causes one more look.
                tracing::debug!(%error, "Cannot acknowledge a notification");
            }
            return Ok(());
        }
    }

    /// Watches the mailbox, unless it was begun less than a day ago.
    async fn watch(&self, gmail: &Calls) -> Result<(), MailError> {
        let mut watched = self.watched.lock().await;
        let now = gmail.clock.now();
        if watched.is_some_and(|until| now + RENEW_BEFORE < until) {
            return Ok(());
        }
        let topic_name = &self.settings.topic;
        let body = Watch { topic_name, label_ids: [INBOX], label_filter_behavior: "INCLUDE" };
        let begun = gmail.change::<Watched>(Method::POST, "/watch", &body, &gmail.any_permit()).await;
        let until = begun.map_err(either_way)?.expiration.parse().map(Timestamp);
        *watched = Some(until.map_err(|_| MailError::Decode { reason: "the watch has no end".to_owned() })?);
        tracing::info!("Gmail announces new mail");
        Ok(())
    }
}
