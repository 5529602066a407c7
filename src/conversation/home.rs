//! The Home tab: what waits for a decision, what was decided lately, how to ask.

use std::sync::Arc;

use serde_json::json;

use super::{commands::words, render};
use crate::{
    graph::{
        action::{ActionRecord, Status},
        store::{ActionFilter, Error, Store},
    },
    ids::UserId,
    reply::{Part, Reply, Text},
    slack::client::SlackClient,
};

/// How many actions are shown in each list.
const SHOWN: usize = 10;

/// Draws Home tabs.
#[derive(Clone)]
pub struct Home {
    store: Arc<dyn Store>,
    slack: SlackClient,
}

impl Home {
    /// From this store, in this workspace.
    pub fn new(store: Arc<dyn Store>, slack: SlackClient) -> Self {
        Self { store, slack }
    }

    /// Draws the tab of one person.
    ///
    /// # Errors
    ///
    /// If the store does not answer. A refusal by Slack is logged: the tab is drawn again at the next visit.
    pub async fn publish(&self, user: &UserId) -> Result<(), Error> {
        let open = self.actions(vec![Status::Pending]).await?;
        let latest: Vec<_> = self.actions(Vec::new()).await?.into_iter().filter(|a| !a.status.is_open()).collect();
        let message = render::reply(&page(user, &open, &latest));
        let view = json!({ "type": "home", "blocks": message.blocks });
        if let Err(error) = self.slack.publish_home(user, &view).await {
            tracing::warn!(error = %error, "A Home tab was not drawn");
        }
        Ok(())
    }

    async fn actions(&self, statuses: Vec<Status>) -> Result<Vec<ActionRecord>, Error> {
        self.store.actions(&ActionFilter { thread: None, statuses, limit: SHOWN }).await
    }
}

/// What the tab says.
fn page(user: &UserId, open: &[ActionRecord], latest: &[ActionRecord]) -> Reply {
    let (mine, others): (Vec<_>, Vec<_>) = open.iter().partition(|record| record.requested_by == *user);
    let mut page = Reply::default().and(Part::Heading("Waiting for a decision".to_owned()));
    page = match open {
        [] => page.and(Part::Text("Nothing is waiting.".into())),
        _ => page.and(Part::List(others.into_iter().chain(mine).map(waiting).collect())),
    };
    if !latest.is_empty() {
        page = page.and(Part::Heading("Lately".to_owned())).and(Part::List(latest.iter().map(ended).collect()));
    }
    page.and(Part::Heading("How to ask".to_owned()))
        .and(Part::Text(
            Text::from("Mention me in a channel, or write to me directly: ")
                .italic("list experiments")
                .plain(", ")
                .italic("start the Math Hints experiment")
                .plain(", ")
                .italic("what conditions does assign-prog have?"),
        ))
        .hint("I look things up by myself. Before I change anything, I show a card and wait for a person to press its button.")
}

fn waiting(record: &ActionRecord) -> Text {
    Text::new()
        .bold(record.act())
        .plain(" · asked by ")
        .person(record.requested_by.clone())
        .plain(" · open until ")
        .moment(record.expires_at)
}

fn ended(record: &ActionRecord) -> Text {
    Text::new().bold(record.act()).plain(format!(" {} · ", words(record.status))).moment(record.requested_at)
}
