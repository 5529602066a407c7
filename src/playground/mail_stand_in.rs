//! The stand-ins for the systems that mail needs: Gmail, Google's tokens, the calendar and HubSpot.

use std::{path::Path, sync::Arc};

use anyhow::Context as _;
use countersign_config::{Config, MailProvider};
use countersign_core::{
    clock::{Clock, SystemClock},
    ids::ChannelId,
};
use countersign_sandbox::{
    calendar::{self, SandboxCalendar},
    gmail::{self, SandboxGmail},
    google::{CLIENT_ID, CLIENT_SECRET, PERSON, REFRESH_TOKEN, SandboxGoogle},
    hubspot::{self, SandboxHubSpot},
};
use tokio::time::Duration;

/// The name of the channel for mails, and its topic.
pub const CHANNEL: (&str, &str) = ("mail", "The team's inbox: each email is a thread");

/// The calendar whose free times are offered.
const CALENDAR: &str = "primary";

/// The name of the sender of answers.
const SENDER: &str = "Learning Lab";

/// The interval between two looks for new mail: short, because people watch.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// The options of the stand-ins for mail.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct MailOptions {
    /// Run stand-ins for Gmail, the calendar and HubSpot as well, and create an email channel.
    #[arg(long)]
    pub mail: bool,
    /// The port of the stand-in for Gmail; 0 picks a free one.
    #[arg(long, default_value_t = 8093, requires = "mail")]
    gmail_port: u16,
    /// The port of the stand-in for the calendar; 0 picks a free one.
    #[arg(long, default_value_t = 8094, requires = "mail")]
    calendar_port: u16,
    /// The port of the stand-in for HubSpot; 0 picks a free one.
    #[arg(long, default_value_t = 8095, requires = "mail")]
    hubspot_port: u16,
}

impl MailOptions {
    /// Returns options for stand-ins on free ports.
    pub fn on_free_ports() -> Self {
        Self { mail: true, ..Self::default() }
    }
}

/// The stand-ins for mail. Dropping them stops the servers.
pub struct MailStandIn {
    /// The stand-in for Gmail.
    pub gmail: Arc<SandboxGmail>,
    google: SandboxGoogle,
    calendar: SandboxCalendar,
    hubspot: SandboxHubSpot,
    channel: ChannelId,
}

impl MailStandIn {
    /// The address of the team.
    pub const ADDRESS: &str = PERSON;

    /// The name of the file in the data folder that contains the mailbox.
    pub const FILE: &str = "gmail.json";

    /// Starts the stand-ins; `channel` is the one for mails.
    ///
    /// # Errors
    ///
    /// If a port is taken.
    pub async fn start(options: &MailOptions, channel: ChannelId) -> anyhow::Result<Self> {
        Self::with(options, channel, Arc::new(SystemClock), None).await
    }

    /// Starts the stand-ins with a clock of their own. The mailbox is kept in the folder `data`, if there is one.
    ///
    /// # Errors
    ///
    /// As [`Self::start`]; also if the kept mailbox cannot be read.
    pub async fn with(
        options: &MailOptions,
        channel: ChannelId,
        clock: Arc<dyn Clock>,
        data: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let google = SandboxGoogle::start_at(0, clock.clone()).await.context("the stand-in for Google cannot start")?;
        let tokens = Some(google.tokens());
        // A mailbox that is not kept is empty after a restart, and its ids must not be those of earlier mails.
        let numbers_from = u64::try_from(clock.now().millis()).unwrap_or_default();
        let gmail = SandboxGmail::start(gmail::Options {
            port: options.gmail_port,
            tokens: tokens.clone(),
            numbers_from,
            persist: data.map(|data| data.join(Self::FILE)),
            clock: clock.clone(),
            ..gmail::Options::default()
        });
        let calendar = calendar::Options {
            port: options.calendar_port,
            tokens,
            clock: clock.clone(),
            ..calendar::Options::default()
        };
        let hubspot = hubspot::Options { port: options.hubspot_port, seed: true, clock };
        Ok(Self {
            gmail: Arc::new(gmail.await.context("the stand-in for Gmail cannot start")?),
            calendar: SandboxCalendar::start(calendar).await.context("the stand-in for the calendar cannot start")?,
            hubspot: SandboxHubSpot::start(hubspot).await.context("the stand-in for HubSpot cannot start")?,
            google,
            channel,
        })
    }

    /// Points the settings to the stand-ins instead of the real account. Real credentials are removed, so that none is
    /// sent to a stand-in.
    pub fn apply_to(&self, config: &mut Config) {
        let email = &mut config.email;
        (email.provider, email.channel) = (Some(MailProvider::Gmail), Some(self.channel.to_string()));
        (email.address, email.name) = (Some(Self::ADDRESS.to_owned()), Some(SENDER.to_owned()));
        (email.aliases, email.sync_every) = (Vec::new(), SYNC_EVERY);
        (email.gmail_api_url, email.google_token_url) = (self.gmail.url(), self.google.endpoint().to_owned());
        (email.calendar_api_url, email.calendar) = (self.calendar.url(), Some(CALENDAR.to_owned()));
        (email.pubsub_topic, email.pubsub_subscription, email.service_account) = (None, None, None);
        email.google_client_id = Some(CLIENT_ID.into());
        email.google_client_secret = Some(CLIENT_SECRET.into());
        email.google_refresh_token = Some(REFRESH_TOKEN.into());
        (email.hubspot_api_url, email.hubspot_token) = (self.hubspot.url(), Some(hubspot::TOKEN.into()));
        (email.database_url, email.context_path) = (None, None); // the default: beside the store
    }

    /// Returns the environment variables that point a bot to the stand-ins.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            ("COUNTERSIGN__EMAIL__CHANNEL", self.channel.to_string()),
            ("COUNTERSIGN__EMAIL__SYNC_EVERY", format!("{}s", SYNC_EVERY.as_secs())),
            ("COUNTERSIGN__EMAIL__CALENDAR", CALENDAR.to_owned()),
            ("GMAIL_API_URL", self.gmail.url()),
            ("CALENDAR_API_URL", self.calendar.url()),
            ("GOOGLE_TOKEN_URL", self.google.endpoint().to_owned()),
            ("GOOGLE_CLIENT_ID", CLIENT_ID.to_owned()),
            ("GOOGLE_CLIENT_SECRET", CLIENT_SECRET.to_owned()),
            ("GOOGLE_REFRESH_TOKEN", REFRESH_TOKEN.to_owned()),
            ("HUBSPOT_API_URL", self.hubspot.url()),
            ("HUBSPOT_TOKEN", hubspot::TOKEN.to_owned()),
        ]
    }
}
