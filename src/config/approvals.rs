//! `[approvals]`: who may decide.

use std::{collections::BTreeMap, time::Duration};

use serde::Deserialize;

/// `[approvals]`: who may decide, unless a rule for the action says otherwise.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approvals {
    /// How long a card is open, such as `"24h"`.
    #[serde(with = "humantime_serde")]
    pub expires_after: Duration,
    /// How long before that the thread is reminded, such as `"1h"`; `"0s"` for never.
    #[serde(with = "humantime_serde")]
    pub remind_before: Duration,
    /// Who may decide: `channel`, `requester`, user ids (`U…`) and user groups (`S…`). Empty: nobody.
    pub approvers: Vec<String>,
    /// Whether the person who asked may approve a change that can be undone.
    pub own_request: bool,
    /// Whether the person who asked may approve a change that cannot be undone.
    pub own_irreversible: bool,
    /// How many people must approve.
    pub needed: u32,
    /// `[approvals.actions.<name>]`: the same for one action.
    #[serde(default)]
    pub actions: BTreeMap<String, Rule>,
}

/// `[approvals.actions.<name>]`: what is different for one action.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Who may decide.
    pub approvers: Option<Vec<String>>,
    /// Whether the person who asked may approve.
    pub own_request: Option<bool>,
    /// How many people must approve.
    pub needed: Option<u32>,
}
