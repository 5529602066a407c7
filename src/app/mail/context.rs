//! The sources of context for mails: similar mails, contacts and the calendar, as the settings say.

use std::sync::Arc;

use anyhow::Context as _;
use async_trait::async_trait;
use countersign_config::Config;
use countersign_context::{
    Contacts, Context, ContextError, ContextStore, Embedded, Embedder,
    calendar::{
        Calendar, WorkingHours,
        google::{GoogleCalendar, GoogleCalendarSettings, Waits},
    },
    contacts::StoredContacts,
    hubspot::{HubSpotContacts, HubSpotSettings},
    postgres::PostgresContext,
    sqlite::SqliteContext,
};
use countersign_model::{self as model, embeddings::Embeddings};
use countersign_services::google::TokenSource;
use url::Url;

use super::super::dependencies;

/// The sources of context.
#[derive(Clone, Debug)]
pub struct Sources {
    /// All sources together.
    pub context: Arc<Context>,
}

/// Opens the sources of context of the account with this address.
///
/// # Errors
///
/// Fails if a source cannot be set up. Servers are not asked.
pub fn open(config: &Config, tokens: Option<&Arc<TokenSource>>, address: &str) -> anyhow::Result<Sources> {
    let store = store(config)?;
    let stored: Arc<dyn Contacts> = Arc::new(StoredContacts::new(store.clone(), address));
    let contacts = hubspot(config, stored.clone())?.unwrap_or(stored);
    let mut context = Context::new(address, store, contacts).with_limit(config.email.timeout);
    let embedder = embedder(config)?;
    if let Some(embedder) = &embedder {
        context = context.with_embedder(embedder.clone());
    }
    if let Some(calendar) = calendar(config, tokens)? {
        context = context.with_calendar(calendar);
    }
    Ok(Sources { context: Arc::new(context) })
}

/// Returns the calendar in which free times are looked up; `None` if there is none.
///
/// # Errors
///
/// Fails if there are no credentials of Google, or its client cannot be set up.
pub fn calendar(config: &Config, tokens: Option<&Arc<TokenSource>>) -> anyhow::Result<Option<Arc<dyn Calendar>>> {
    let settings = &config.email;
    let Some(calendar) = &settings.calendar else { return Ok(None) };
    let tokens = tokens.context(
        "email.calendar is set, but no Google credentials are; set GOOGLE_CLIENT_ID, GOOGLE_CLIENT_SECRET and \
         GOOGLE_REFRESH_TOKEN",
    )?;
    let calendar = GoogleCalendar::new(GoogleCalendarSettings {
        base_url: url(&settings.calendar_api_url, "email.calendar_api_url")?,
        calendar: calendar.clone(),
        tokens: tokens.clone(),
        hours: WorkingHours::default(),
        timeout: settings.timeout,
        waits: Waits::default(),
    });
    Ok(Some(Arc::new(calendar.context("cannot set up the client for the calendar")?)))
}

/// Opens the store of texts and contacts: PostgreSQL if its address is set, else a file.
///
/// # Errors
///
/// Fails if the address is not one, or the file cannot be opened.
pub fn store(config: &Config) -> anyhow::Result<Arc<dyn ContextStore>> {
    if let Some(url) = &config.email.database_url {
        let store = PostgresContext::new(url, config.email.timeout);
        return Ok(Arc::new(store.context("DATABASE_URL cannot be used")?));
    }
    let path = config.email.context_file(&config.store.path);
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create the folder {}", folder.display()))?;
    }
    Ok(Arc::new(SqliteContext::open(&path).context("cannot open the file with similar emails and contacts")?))
}

/// Returns the contacts of HubSpot, with `stored` behind them; `None` if its token is not set.
///
/// # Errors
///
/// Fails if its client cannot be set up.
pub fn hubspot(config: &Config, stored: Arc<dyn Contacts>) -> anyhow::Result<Option<Arc<dyn Contacts>>> {
    let settings = &config.email;
    let Some(token) = settings.hubspot_token.clone() else { return Ok(None) };
    let settings = HubSpotSettings {
        base_url: url(&settings.hubspot_api_url, "email.hubspot_api_url")?,
        token,
        timeout: settings.timeout,
        waits: Waits::default(),
    };
    Ok(Some(Arc::new(HubSpotContacts::new(settings, stored).context("cannot set up the client for HubSpot")?)))
}

/// Returns the model for embeddings; `None` if there is none.
///
/// # Errors
///
/// Fails if its client cannot be set up.
pub fn embedder(config: &Config) -> anyhow::Result<Option<Arc<dyn Embedder>>> {
    let embeddings = dependencies::embeddings(config)?;
    Ok(embeddings.map(|embeddings| -> Arc<dyn Embedder> { Arc::new(ModelEmbedder(embeddings)) }))
}

fn url(address: &str, key: &str) -> anyhow::Result<Url> {
    address.parse().with_context(|| format!("{key} isn't a valid URL"))
}

/// The embeddings of a provider of language models.
#[derive(Debug)]
struct ModelEmbedder(Arc<dyn Embeddings>);

#[async_trait]
impl Embedder for ModelEmbedder {
    fn name(&self) -> &str {
        self.0.name()
    }

    async fn embed(&self, text: &str) -> Result<Embedded, ContextError> {
        const WHAT: &str = "the model for embeddings";
        let embedded = self.0.embed(text).await;
        let embedded = embedded.map(|model::embeddings::Embedded { vector, tokens }| Embedded { vector, tokens });
        embedded.map_err(|error| match error {
            model::Error::Unavailable { reason } => ContextError::Unavailable { what: WHAT, reason, retry_after: None },
            model::Error::OverLimit(_) => {
                ContextError::Unavailable { what: WHAT, reason: error.to_string(), retry_after: None }
            }
            model::Error::Auth => ContextError::SignIn { what: WHAT, reason: "it does not accept the key".to_owned() },
            model::Error::Refused { reason } => ContextError::Refused { what: WHAT, status: None, reason },
            model::Error::Decode { reason } => ContextError::Decode { what: WHAT, reason },
        })
    }
}
