//! Builds the addresses of messages in Slack. Asking Slack for them would cost a call each.
//!
//! They have the same form as Slack's own. If the workspace's address is not known, there are no
//! links.

use std::sync::Arc;

use countersign_core::{
    ids::{ChannelId, MessageTs, Slot, ThreadId},
    reply::Text,
};
use countersign_graph::{
    action::ActionRecord,
    store::{Error, Store},
};

/// Builds links to cards and other messages.
#[derive(Clone)]
pub struct Links {
    store: Arc<dyn Store>,
    /// The address of the workspace, which ends in `/`.
    workspace: Option<String>,
}

impl Links {
    /// Creates links into the workspace at this address, such as `https://lab.slack.com/`.
    pub fn new(store: Arc<dyn Store>, workspace: Option<String>) -> Self {
        let workspace = workspace.filter(|url| url.starts_with("https://") || url.starts_with("http://"));
        Self { store, workspace: workspace.map(|url| format!("{}/", url.trim_end_matches('/'))) }
    }

    /// Returns the address of an action's card, or of its thread if the card is not posted yet.
    ///
    /// # Errors
    ///
    /// If the store isn't answering.
    pub async fn card(&self, record: &ActionRecord) -> Result<Option<String>, Error> {
        let posted = self.store.posted(&record.thread, &record.slot).await?;
        let thread = &record.thread;
        Ok(match &posted {
            Some(posted) => self.message(&posted.channel, &posted.ts, &thread.root),
            None => self.message(&thread.channel, &thread.root, &thread.root),
        })
    }

    /// Returns the address of the message in a slot of a thread; `None` if it is not posted yet.
    ///
    /// # Errors
    ///
    /// If the store isn't answering.
    pub async fn slot(&self, thread: &ThreadId, slot: &Slot) -> Result<Option<String>, Error> {
        let posted = self.store.posted(thread, slot).await?;
        Ok(posted.and_then(|posted| self.message(&posted.channel, &posted.ts, &thread.root)))
    }

    /// Returns the address of a message in the thread that starts with `root`; `None` if the
    /// workspace's address is not known.
    pub fn message(&self, channel: &ChannelId, ts: &MessageTs, root: &MessageTs) -> Option<String> {
        let workspace = self.workspace.as_ref()?;
        let link = format!("{workspace}archives/{channel}/p{}", ts.as_str().replace('.', ""));
        Some(if ts == root { link } else { format!("{link}?thread_ts={root}&cid={channel}") })
    }
}

/// Appends a link to the text if there is an address.
pub fn linked(text: Text, url: Option<String>, words: &str) -> Text {
    match url {
        Some(url) => text.plain(" · ").link(url, words),
        None => text,
    }
}

/// Parses the address of a message, such as `…/archives/C1/p1700000000000100?thread_ts=…`, into its
/// channel, the message and the root of its thread.
pub fn read(url: &str) -> Option<(ChannelId, MessageTs, MessageTs)> {
    let url: url::Url = url.trim().trim_matches(['<', '>']).parse().ok()?;
    let mut path = url.path_segments()?.skip_while(|part| *part != "archives").skip(1);
    let (channel, digits) = (path.next()?, path.next()?.strip_prefix('p')?);
    if channel.is_empty() || digits.len() < 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let (seconds, rest) = digits.split_at(digits.len() - 6);
    let ts = format!("{seconds}.{rest}");
    let root = url.query_pairs().find(|(name, _)| name == "thread_ts").map(|(_, root)| root.into_owned());
    Some((channel.into(), ts.as_str().into(), root.unwrap_or(ts).as_str().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_to_its_message_and_thread() {
        let reply = "https://lab.slack.com/archives/C1/p1700000000000200?thread_ts=1700000000.000100&cid=C1";
        let (channel, ts, root) = read(reply).unwrap();
        assert_eq!((channel.as_str(), ts.as_str(), root.as_str()), ("C1", "1700000000.000200", "1700000000.000100"));
        let (_, ts, root) = read("<https://lab.slack.com/archives/C1/p1700000000000100>").unwrap();
        assert_eq!(ts, root);
        for nothing in ["", "Math Hints", "https://lab.slack.com/", "https://lab.slack.com/archives/C1/pab"] {
            assert_eq!(read(nothing), None, "{nothing}");
        }
    }
}
