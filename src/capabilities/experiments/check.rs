//! Checks the platform for an operator, and reads the things that the settings can name.

use countersign_capabilities::Nameable;

use super::{
    settings::Upgrade,
    upgrade::{client::UpgradeClient, error::Error, sign_in::SignIn},
};

/// Checks that the platform responds and accepts our credentials. Returns its version and the
/// method of signing in, in words.
pub(super) async fn platform(client: &UpgradeClient, settings: &Upgrade) -> Result<String, String> {
    let at = |error: Error| match error {
        Error::SignIn(_) => error.to_string(),
        error => format!("{error} (UPGRADE_API_URL is {})", settings.api_url.as_deref().unwrap_or_default()),
    };
    let health = client.health().await.map_err(at)?;
    let (how, refused) = match client.sign_in() {
        SignIn::Nobody => (
            "without signing in".to_owned(),
            "requires a token; set UPGRADE_SERVICE_ACCOUNT or UPGRADE_AUTH_TOKEN".to_owned(),
        ),
        SignIn::Token(_) => {
            ("with UPGRADE_AUTH_TOKEN".to_owned(), "does not accept UPGRADE_AUTH_TOKEN; renew it".to_owned())
        }
        SignIn::ServiceAccount(account) => {
            let name = account.account();
            let refused = format!("does not accept {name}; register it there as a service account");
            (format!("as {name}, with tokens from {}", account.endpoint()), refused)
        }
    };
    match client.signed_in().await {
        Ok(()) => Ok(format!("{} {}, {how}", health.name, health.version)),
        Err(Error::Auth) => Err(format!("{} {} answers, but {refused}", health.name, health.version)),
        Err(error) => Err(at(error)),
    }
}

/// Reads the names of the contexts and experiments.
pub(super) async fn nameable(client: &UpgradeClient) -> Result<Nameable, String> {
    let contexts = client.context_metadata().await.map_err(|error| error.to_string())?;
    let names = client.names().await.map_err(|error| error.to_string())?;
    Ok(Nameable {
        thing: "experiment",
        contexts: contexts.into_keys().collect(),
        things: names.all().iter().map(|named| named.name.clone()).collect(),
    })
}
