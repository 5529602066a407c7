//! The mail account, as the settings say.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, anyhow, bail};
use countersign_config::{Config, Email, Encryption, MailProvider};
use countersign_context::calendar::google as calendar;
use countersign_core::{cause, clock::Clock};
use countersign_mail::{
    Address, Authorities, GMAIL_PUSH_SCOPE, GMAIL_SCOPES, GmailAccount, GmailSettings, ImapAccount, ImapSettings,
    MailAccount, MailError, PushSettings, Retry, Security, Server, gmail_address,
};
use countersign_services::google::{RefreshToken, TokenSource};
use secrecy::ExposeSecret as _;
use url::Url;

/// The number of attempts to read the address of the account before startup fails.
const ADDRESS_ATTEMPTS: u32 = 10;

/// The mailbox in which new mail arrives.
const INBOX: &str = "INBOX";

/// Returns the source of Google's tokens; `None` without credentials of Google.
///
/// # Errors
///
/// Fails if the credentials cannot be used. Google is not asked.
pub fn tokens(settings: &Email, clock: &Arc<dyn Clock>) -> anyhow::Result<Option<Arc<TokenSource>>> {
    if let Some(path) = &settings.service_account {
        let person = settings.address.as_deref().context("a service account needs email.address, for which it acts")?;
        let source = TokenSource::service_account(path, None, settings.timeout, clock.clone());
        let source = source.context("email.service_account cannot be used")?;
        return Ok(Some(Arc::new(source.acting_for(person, &scopes(settings)))));
    }
    let Some(token) = settings.google_refresh_token.clone() else { return Ok(None) };
    let client_id = settings.google_client_id.as_ref().context("GOOGLE_CLIENT_ID is not set")?;
    let refresh = RefreshToken {
        endpoint: url(&settings.google_token_url, "email.google_token_url")?,
        client_id: client_id.expose_secret().to_owned(),
        client_secret: settings.google_client_secret.clone().context("GOOGLE_CLIENT_SECRET is not set")?,
        token,
    };
    let source = TokenSource::refresh_token(refresh, settings.timeout, clock.clone());
    Ok(Some(Arc::new(source.context("email.google_token_url cannot be used")?)))
}

/// Returns the scopes that the settings need.
fn scopes(settings: &Email) -> Vec<&'static str> {
    let mail: &[&str] = if settings.provider() == Some(MailProvider::Gmail) { &GMAIL_SCOPES } else { &[] };
    let calendar: &[&str] = if settings.calendar.is_some() { &calendar::SCOPES } else { &[] };
    let push = settings.pubsub_topic.as_ref().map(|_| GMAIL_PUSH_SCOPE);
    mail.iter().chain(calendar).copied().chain(push).collect()
}

/// Opens the account. The server is asked only for the address of a Gmail account, if the settings do not have it.
///
/// # Errors
///
/// Fails if something is missing, or the address cannot be read.
pub async fn open(
    config: &Config,
    tokens: Option<&Arc<TokenSource>>,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<Arc<dyn MailAccount>> {
    let settings = &config.email;
    match settings.provider() {
        None => bail!("no mail account is set; see [email] in config/default.toml"),
        Some(MailProvider::Gmail) => {
            let tokens = tokens.context("the mail account is Gmail, but no Google credentials are set")?;
            let gmail = gmail_settings(settings, tokens, clock)?;
            let address = match own_address(settings)? {
                Some(address) => address,
                None => named(settings, address_of(&gmail).await?),
            };
            Ok(Arc::new(GmailAccount::new(gmail, address).context("cannot set up the client for Gmail")?))
        }
        Some(MailProvider::Imap) => {
            let account = ImapAccount::new(imap_settings(settings)?);
            Ok(Arc::new(account.context("cannot set up the mail account")?))
        }
    }
}

/// Returns the address of the account. Gmail is asked for it if the settings do not have it.
///
/// # Errors
///
/// Fails if no account is set, or its address cannot be read.
pub async fn address(config: &Config, clock: &Arc<dyn Clock>) -> anyhow::Result<String> {
    let tokens = tokens(&config.email, clock)?;
    Ok(open(config, tokens.as_ref(), clock).await?.address().address.clone())
}

fn gmail_settings(
    settings: &Email,
    tokens: &Arc<TokenSource>,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<GmailSettings> {
    let push = match (&settings.pubsub_topic, &settings.pubsub_subscription) {
        (Some(topic), Some(subscription)) => Some(PushSettings {
            api: url(&settings.pubsub_api_url, "email.pubsub_api_url")?,
            topic: topic.clone(),
            subscription: subscription.clone(),
        }),
        _ => None,
    };
    Ok(GmailSettings {
        api: url(&settings.gmail_api_url, "email.gmail_api_url")?,
        web: url(&settings.gmail_web_url, "email.gmail_web_url")?,
        tokens: tokens.clone(),
        aliases: settings.aliases.clone(),
        push,
        timeout: settings.timeout,
        retry: Retry::default(),
        clock: clock.clone(),
    })
}

fn imap_settings(settings: &Email) -> anyhow::Result<ImapSettings> {
    let authorities = match &settings.ca_file {
        None => Authorities::default(),
        Some(path) => {
            let pem = std::fs::read(path).with_context(|| format!("cannot read email.ca_file, {}", path.display()))?;
            Authorities::from_pem(pem).with_context(|| format!("email.ca_file, {}, cannot be used", path.display()))?
        }
    };
    let server = |host: &Option<String>, key: &str, port: u16, encryption: Encryption| {
        let host = host.clone().with_context(|| format!("{key} is not set"))?;
        anyhow::Ok(Server { host, port, security: security(encryption), authorities: authorities.clone() })
    };
    let address = own_address(settings)?.context("email.address is not set")?;
    Ok(ImapSettings {
        imap: server(&settings.imap_host, "email.imap_host", settings.imap_port, settings.imap_encryption)?,
        smtp: server(&settings.smtp_host, "email.smtp_host", settings.smtp_port, settings.smtp_encryption)?,
        user: settings.user.clone().unwrap_or_else(|| address.address.clone()),
        password: settings.imap_password.clone().context("IMAP_PASSWORD is not set")?,
        address,
        aliases: settings.aliases.clone(),
        mailbox: INBOX.to_owned(),
        sent: None,
        timeout: settings.timeout,
    })
}

fn security(encryption: Encryption) -> Security {
    match encryption {
        Encryption::Tls => Security::Tls,
        Encryption::Starttls => Security::StartTls,
        Encryption::None => Security::None,
    }
}

/// Returns the address in the settings, with the name of the sender; `None` if there is none.
fn own_address(settings: &Email) -> anyhow::Result<Option<Address>> {
    let Some(text) = &settings.address else { return Ok(None) };
    let address = Address::parse(text).ok_or_else(|| anyhow!("email.address isn't a valid email address"))?;
    Ok(Some(named(settings, address)))
}

fn named(settings: &Email, address: Address) -> Address {
    Address { name: settings.name.clone(), ..address }
}

/// Asks Gmail for the address of the account, and retries if it does not answer.
async fn address_of(gmail: &GmailSettings) -> anyhow::Result<Address> {
    for attempt in 1.. {
        match gmail_address(gmail).await {
            Ok(address) => return Ok(address),
            Err(error @ MailError::Unavailable { .. }) if attempt < ADDRESS_ATTEMPTS => {
                tracing::warn!(attempt, error = cause::chain(&error), "Gmail does not answer yet");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            Err(error) => {
                return Err(error).context(
                    "cannot read the address of the mail account; set email.address so that the bot can start without asking Gmail",
                );
            }
        }
    }
    unreachable!("the loop ends by returning")
}

fn url(address: &str, key: &str) -> anyhow::Result<Url> {
    address.parse().with_context(|| format!("{key} isn't a valid URL"))
}
