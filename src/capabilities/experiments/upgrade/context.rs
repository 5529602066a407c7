//! The vocabulary of each client application, set by the server's administrator.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// All contexts, by name.
pub type Contexts = BTreeMap<String, ContextMetadata>;

/// The vocabulary of one context. The server only checks that the context exists, not that its
/// vocabulary is used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextMetadata {
    /// Suggested condition codes.
    #[serde(rename = "CONDITIONS", default)]
    pub conditions: Vec<String>,
    /// Group types, such as `classId`.
    #[serde(rename = "GROUP_TYPES", default)]
    pub group_types: Vec<String>,
    /// Sites. The server calls them experiment points, which is easily confused with the next field.
    #[serde(rename = "EXP_POINTS", default)]
    pub sites: Vec<String>,
    /// Targets.
    #[serde(rename = "EXP_IDS", default)]
    pub targets: Vec<String>,
}
