//! One round trip of a person: mention the bot, read the card, click, and see the outcome.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::timeout};

use crate::{
    slack::{BOT, CHANNEL, Heard, Slack},
    wire::{Wire, now},
};

/// The time limit of each wait.
const BOUND: Duration = Duration::from_secs(30);

/// The way in which deliveries reach the bot.
#[derive(Clone)]
pub(crate) enum Way {
    Http(Wire),
    Socket,
}

/// A person who writes and clicks.
#[derive(Clone)]
pub(crate) struct Person {
    pub(crate) slack: Slack,
    pub(crate) way: Way,
}

/// A card, and the button that approves.
#[derive(Clone, Debug)]
pub(crate) struct Card {
    at: Instant,
    pub(crate) ts: String,
    block: String,
    value: String,
}

/// What followed the press of the button that approves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pressed {
    /// From the press to its acknowledgement.
    pub(crate) acknowledged: Duration,
    /// From the press to the outcome on the card.
    pub(crate) outcome: Duration,
    /// The moment of the last word.
    ended: Instant,
}

/// The durations of the parts of a round trip.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    /// From the mention to its acknowledgement.
    pub(crate) mention_acknowledged: Duration,
    /// From the mention to the card.
    pub(crate) card: Duration,
    /// From the press to its acknowledgement.
    pub(crate) click_acknowledged: Duration,
    /// From the press to the outcome on the card.
    pub(crate) outcome: Duration,
    /// From the mention to the last word.
    pub(crate) whole: Duration,
}

impl Person {
    /// Says something; returns how long the acknowledgement took.
    pub(crate) async fn says(&self, root: &str, ts: &str, mention: bool, words: &str) -> anyhow::Result<Duration> {
        let (kind, text) =
            if mention { ("app_mention", format!("<@{BOT}> {words}")) } else { ("message", words.to_owned()) };
        let mut event = json!({
            "type": kind, "user": "U0ANA", "text": text, "ts": ts, "team": "T1", "channel": CHANNEL, "event_ts": ts,
            "client_msg_id": ts, "blocks": [{ "type": "rich_text", "block_id": "b", "elements": [
                { "type": "rich_text_section", "elements": [{ "type": "text", "text": text }] }] }],
        });
        if !mention {
            event["channel_type"] = json!("channel");
        }
        if root != ts {
            event["thread_ts"] = json!(root);
        }
        let callback = json!({
            "token": "gone", "team_id": "T1", "api_app_id": "A1", "type": "event_callback",
            "event_id": format!("Ev{ts}"), "event_time": now(), "is_ext_shared_channel": false,
            "authorizations": [{ "enterprise_id": null, "team_id": "T1", "user_id": BOT, "is_bot": true }],
            "event_context": "4-bench", "event": event,
        });
        self.delivers("events_api", "/slack/events", callback).await
    }

    /// Presses a button of a message; returns how long the acknowledgement took.
    pub(crate) async fn presses(
        &self,
        root: &str,
        message: &str,
        action: &str,
        (block, value): (&str, &str),
    ) -> anyhow::Result<Duration> {
        let at = self.slack.fresh_ts();
        let payload = json!({
            "type": "block_actions", "api_app_id": "A1", "token": "gone", "trigger_id": format!("{at}.T1"),
            "user": { "id": "U0BO", "username": "bo", "name": "bo", "team_id": "T1" },
            "team": { "id": "T1", "domain": "bench" }, "enterprise": null, "is_enterprise_install": false,
            "container": { "type": "message", "message_ts": message, "channel_id": CHANNEL, "is_ephemeral": false,
                "thread_ts": root },
            "channel": { "id": CHANNEL, "name": "experiments" },
            "message": { "type": "message", "user": BOT, "ts": message, "thread_ts": root, "text": "…" },
            "state": { "values": {} },
            "actions": [{ "action_id": action, "block_id": block, "type": "button", "value": value,
                "text": { "type": "plain_text", "text": "Start experiment" }, "action_ts": at }],
        });
        self.delivers("interactive", "/slack/interactions", payload).await
    }

    /// Delivers something; returns how long the acknowledgement took.
    pub(crate) async fn delivers(&self, kind: &str, path: &str, payload: Value) -> anyhow::Result<Duration> {
        let began;
        match &self.way {
            Way::Http(wire) => {
                let (form, body) = if kind == "interactive" {
                    let encoded: String =
                        url::form_urlencoded::byte_serialize(payload.to_string().as_bytes()).collect();
                    ("application/x-www-form-urlencoded", format!("payload={encoded}"))
                } else if kind == "slash_commands" {
                    let fields = payload.as_object().into_iter().flatten();
                    let fields = fields.map(|(name, value)| (name, value.as_str().unwrap_or_default()));
                    let form = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
                    ("application/x-www-form-urlencoded", form)
                } else {
                    ("application/json", payload.to_string())
                };
                began = Instant::now();
                let status = wire.post(path, form, &body).await.context("the bot does not answer")?;
                ensure!(status == 200, "the bot answered {status}");
            }
            Way::Socket => {
                began = Instant::now();
                timeout(BOUND, self.slack.envelope(kind, payload)).await.context("no acknowledgement")?;
            }
        }
        Ok(began.elapsed())
    }

    /// Asks in a fresh thread for a change that takes long, and has it approved.
    pub(crate) async fn begins(&self, root: &str, hears: &mut Hears, words: &str) -> anyhow::Result<()> {
        let (_, card) = self.asks(root, hears, words).await?;
        self.presses(root, &card.ts, "approve", (&card.block, &card.value)).await?;
        Ok(())
    }

    /// Asks in a thread for a change; returns how long the acknowledgement took, and the card.
    pub(crate) async fn asks(&self, root: &str, hears: &mut Hears, words: &str) -> anyhow::Result<(Duration, Card)> {
        let ts = if hears.is_empty() { root.to_owned() } else { self.slack.fresh_ts() };
        hears.turns += 1;
        let acknowledged = self.says(root, &ts, true, words).await?;
        loop {
            let heard = hears.next(words).await?;
            if let Some((block, value)) = heard.approve {
                return Ok((acknowledged, Card { at: heard.at, ts: heard.ts, block, value }));
            }
            ensure!(heard.edit || heard.text.ends_with('…'), "no card for “{words}” but: {}", heard.text);
        }
    }

    /// Approves what a card shows, and waits for the outcome and the reply.
    pub(crate) async fn countersigns(
        &self,
        root: &str,
        hears: &mut Hears,
        words: &str,
        card: &Card,
    ) -> anyhow::Result<Pressed> {
        let pressed = Instant::now();
        let acknowledged = self.presses(root, &card.ts, "approve", (&card.block, &card.value)).await?;
        let (mut outcome, mut reply): (Option<Instant>, Option<Instant>) = (None, None);
        loop {
            if let (Some(outcome), Some(reply)) = (outcome, reply) {
                return Ok(Pressed { acknowledged, outcome: outcome - pressed, ended: outcome.max(reply) });
            }
            let heard = hears.next(words).await?;
            if heard.edit && heard.ts == card.ts {
                if heard.approve.is_none() && heard.text.contains("✅") {
                    outcome = Some(heard.at);
                }
            } else if heard.text.contains("@U0ANA") {
                reply = Some(heard.at);
            } else if !heard.text.ends_with('…') {
                bail!("“{words}” ended with: {}", heard.text);
            }
        }
    }

    /// Asks in a thread for a change of an experiment, has it approved, and waits for all that follows.
    pub(crate) async fn approves(&self, root: &str, hears: &mut Hears, words: &str) -> anyhow::Result<Round> {
        let began = Instant::now();
        let (mention_acknowledged, card) = self.asks(root, hears, words).await?;
        let pressed = self.countersigns(root, hears, words, &card).await?;
        Ok(Round {
            mention_acknowledged,
            card: card.at - began,
            click_acknowledged: pressed.acknowledged,
            outcome: pressed.outcome,
            whole: pressed.ended - began,
        })
    }
}

/// The messages of the bot in one thread.
pub(crate) struct Hears {
    messages: mpsc::UnboundedReceiver<Heard>,
    turns: usize,
}

impl Hears {
    /// Listens from now on.
    pub(crate) fn thread(slack: &Slack, root: &str) -> Self {
        Self { messages: slack.listen(root), turns: 0 }
    }

    fn is_empty(&self) -> bool {
        self.turns == 0
    }

    /// Waits for so many replies that are no status lines.
    pub(crate) async fn replies(&mut self, words: &str, count: usize) -> anyhow::Result<()> {
        let mut there = Vec::new();
        while there.len() < count {
            let heard = self.next(words).await.with_context(|| format!("so far: {there:?}"))?;
            if !heard.edit && !heard.text.ends_with('…') {
                there.push(heard.text);
            }
        }
        Ok(())
    }

    async fn next(&mut self, words: &str) -> anyhow::Result<Heard> {
        let heard = timeout(BOUND, self.messages.recv()).await;
        heard.with_context(|| format!("the bot is silent about “{words}”"))?.context("the thread was forgotten")
    }
}
