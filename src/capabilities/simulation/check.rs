//! Checks the bridge for an operator.

use super::bridge::{client::BridgeClient, error::Error, token::Access};

/// Checks that the bridge answers and accepts our token. Returns its version and the kind of token.
pub(super) async fn bridge(client: &BridgeClient) -> Result<String, String> {
    let at = |error: Error| format!("{error} (BRIDGE_URL is {})", client.address());
    let health = client.health().await.map_err(at)?;
    let (how, wrong) = match client.access() {
        Access::Nothing => ("without a token", "requires a token; set BRIDGE_TOKEN or BRIDGE_JWT_SECRET"),
        Access::Token(_) => ("with BRIDGE_TOKEN", "does not accept BRIDGE_TOKEN; renew it"),
        Access::Secret(_) => {
            ("with tokens made with BRIDGE_JWT_SECRET", "does not accept tokens made with BRIDGE_JWT_SECRET; check it")
        }
    };
    let engine =
        client.engine().await.ok().flatten().map(|engine| format!(", model engine {engine}")).unwrap_or_default();
    match client.signed_in().await {
        Ok(()) => Ok(format!("{} {}, {how}{engine}", health.name, health.version)),
        Err(Error::Auth { .. }) => Err(format!("{} {} answers, but {wrong}", health.name, health.version)),
        Err(error) => Err(at(error)),
    }
}
