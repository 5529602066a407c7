//! The bot's own account in Slack.

use std::time::Duration;

use anyhow::Context as _;
use countersign_slack::{Identity, account::Account, client::SlackClient, client_error};

/// The number of attempts to get the bot's identity from Slack before startup fails.
const IDENTITY_ATTEMPTS: u32 = 30;

/// Asks Slack for the id of the bot's app. If that fails, the id is learned from the socket or the first delivery.
pub(super) async fn learn_app(slack: &SlackClient, bot: Option<&str>, us: &Identity) {
    let Some(bot) = bot else { return };
    match slack.app_of(bot).await {
        Ok(app) => us.learn_app(&app),
        Err(error) => {
            tracing::warn!(error = countersign_core::cause::chain(&error), "Slack has not returned the app's id yet")
        }
    }
}

/// Returns the bot's account, and retries if Slack does not respond.
pub(super) async fn own_account(slack: &SlackClient) -> anyhow::Result<Account> {
    for attempt in 1.. {
        match slack.auth_test().await {
            Ok(account) => {
                tracing::info!(team = %account.team, bot = %account.identity.user, "Connected to a workspace");
                return Ok(account);
            }
            Err(error @ client_error::Error::Auth { .. }) => {
                return Err(error).context("Slack doesn't accept SLACK_BOT_TOKEN");
            }
            Err(error) if attempt >= IDENTITY_ATTEMPTS => return Err(error).context("Slack isn't answering"),
            Err(error) => {
                tracing::warn!(attempt, error = countersign_core::cause::chain(&error), "Slack isn't answering yet");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
    unreachable!("the loop ends by returning")
}
