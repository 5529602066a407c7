//! The bot's own account in Slack.

use std::time::Duration;

use anyhow::Context as _;
use countersign_core::cause;
use countersign_slack::{account::Account, client::SlackClient, client_error};

/// The number of attempts to get the bot's identity from Slack before startup fails.
const IDENTITY_ATTEMPTS: u32 = 30;

/// Returns the bot's account, and retries if Slack does not respond. Its app's id is asked for once; if that fails, it is
/// learned from the socket or the first delivery.
pub(super) async fn own_account(slack: &SlackClient) -> anyhow::Result<Account> {
    for attempt in 1.. {
        match slack.auth_test().await {
            Ok(account) => {
                tracing::info!(team = %account.team, bot = %account.identity.user, "Connected to a workspace");
                if let Some(bot) = account.bot.as_deref() {
                    match slack.app_of(bot).await {
                        Ok(app) => account.identity.learn_app(&app),
                        Err(error) => {
                            tracing::warn!(error = cause::chain(&error), "Slack has not returned the app's id yet");
                        }
                    }
                }
                return Ok(account);
            }
            Err(error @ client_error::Error::Auth { .. }) => {
                return Err(error).context("Slack doesn't accept SLACK_BOT_TOKEN");
            }
            Err(error) if attempt >= IDENTITY_ATTEMPTS => return Err(error).context("Slack isn't answering"),
            Err(error) => {
                tracing::warn!(attempt, error = cause::chain(&error), "Slack isn't answering yet");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
    unreachable!("the loop ends by returning")
}
