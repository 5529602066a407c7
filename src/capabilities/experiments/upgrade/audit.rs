//! The platform's log of who did what, newest first.

use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{calls::As, client::UpgradeClient, error::Error, experiment::ExperimentId};

/// The number of entries in one answer.
const PAGE: u64 = 100;
/// The maximum number of pages that are searched.
const MAX_PAGES: u64 = 5;

/// A page of the log.
#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    total: u64,
    #[serde(default)]
    nodes: Vec<Entry>,
}

/// An entry of the log.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    data: Value,
    #[serde(default)]
    user: Option<Author>,
}

/// The person of an entry.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Author {
    #[serde(default)]
    first_name: Option<String>,
    #[serde(default)]
    last_name: Option<String>,
}

impl UpgradeClient {
    /// Reads the name of the person who created an experiment; `None` if the newest entries of the log do not name one.
    ///
    /// # Errors
    ///
    /// Returns [`Error`], like every read.
    pub async fn creator(&self, id: ExperimentId) -> Result<Option<String>, Error> {
        for page in 0..MAX_PAGES {
            let body = json!({ "skip": page * PAGE, "take": PAGE });
            let Page { total, nodes } = self.read(Method::POST, "/audit", As::Admin, Some(&body)).await?;
            let is_creation =
                |entry: &&Entry| entry.kind == "experimentCreated" && entry.data["experimentId"] == json!(id);
            if let Some(entry) = nodes.iter().find(is_creation) {
                return Ok(entry.user.as_ref().and_then(Author::name));
            }
            if (page + 1) * PAGE >= total || nodes.is_empty() {
                break;
            }
        }
        Ok(None)
    }
}

impl Author {
    /// Returns the full name.
    fn name(&self) -> Option<String> {
        let parts = [&self.first_name, &self.last_name].into_iter().flatten().map(|part| part.trim());
        let name = parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
        (!name.is_empty()).then_some(name)
    }
}
