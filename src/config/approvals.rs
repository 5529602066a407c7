//! `[approvals]`: who may decide.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use secrecy::SecretString;
use serde::Deserialize;

use super::{Envelope, Measure};

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
    /// Whose decision counts besides that of full members of the workspace: `guests`, `external` people of other
    /// workspaces, `bots`, `deactivated` accounts. Empty: nobody's.
    #[serde(default)]
    pub outsiders: Vec<String>,
    /// Whether the person who asked may approve a change that can be undone.
    pub own_request: bool,
    /// Whether the person who asked may approve a change that cannot be undone.
    pub own_irreversible: bool,
    /// How many people must approve.
    pub needed: u32,
    /// Who may decide besides, once nobody did for [`Self::escalate_after`]. Empty: nobody else.
    #[serde(default)]
    pub escalate_to: Vec<String>,
    /// How long after the request that is, such as `"4h"`.
    #[serde(with = "humantime_serde")]
    pub escalate_after: Duration,
    /// The file with the keys that digests are made with, one on each line, the newest first. Left out:
    /// `countersign.key` beside [`super::Store::path`]. Made at the first start.
    pub digest_key_file: Option<PathBuf>,
    /// Whether to start with a new key although the one that the store was used with is missing; the cards that are open
    /// are void then.
    #[serde(default)]
    pub new_digest_key: bool,
    /// `COUNTERSIGN_DIGEST_KEYS`: the keys themselves, with commas between them, in place of a file.
    #[serde(skip)]
    pub digest_keys: Option<SecretString>,
    /// `[approvals.actions.<name>]`: the same for one action.
    #[serde(default)]
    pub actions: BTreeMap<String, Rule>,
    /// `[approvals.contexts.<name>]`: the same for one context, and within it for one action.
    #[serde(default)]
    pub contexts: BTreeMap<String, ContextRule>,
    /// `[approvals.envelopes.<name>]`: what was agreed beforehand about a context or a thing.
    #[serde(default)]
    pub envelopes: BTreeMap<String, Envelope>,
    /// What envelopes can limit.
    #[serde(skip)]
    pub measures: &'static [&'static [Measure]],
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
    /// Who may decide besides, after a while.
    pub escalate_to: Option<Vec<String>>,
}

/// `[approvals.contexts.<name>]`: what is different in one context.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextRule {
    /// Who may decide.
    pub approvers: Option<Vec<String>>,
    /// Whether the person who asked may approve.
    pub own_request: Option<bool>,
    /// How many people must approve.
    pub needed: Option<u32>,
    /// Who may decide besides, after a while.
    pub escalate_to: Option<Vec<String>>,
    /// `[approvals.contexts.<name>.actions.<name>]`: what is different for one action there.
    #[serde(default)]
    pub actions: BTreeMap<String, Rule>,
}

impl ContextRule {
    /// What is different in the context, whatever the action.
    pub fn rule(&self) -> Rule {
        let Self { approvers, own_request, needed, escalate_to, actions: _ } = self.clone();
        Rule { approvers, own_request, needed, escalate_to }
    }
}

impl Approvals {
    /// Every rule with its key in the settings.
    pub fn rules(&self) -> Vec<(String, Rule)> {
        let mut rules: Vec<_> =
            self.actions.iter().map(|(name, rule)| (format!("approvals.actions.{name}"), rule.clone())).collect();
        for (context, rule) in &self.contexts {
            let key = format!("approvals.contexts.{context}");
            rules.extend(rule.actions.iter().map(|(name, rule)| (format!("{key}.actions.{name}"), rule.clone())));
            rules.push((key, rule.rule()));
        }
        rules
    }

    /// Everybody who may be brought in.
    pub fn named_in_escalations(&self) -> Vec<String> {
        let rules = self.rules().into_iter().filter_map(|(_, rule)| rule.escalate_to);
        rules.flatten().chain(self.escalate_to.iter().cloned()).collect()
    }

    /// Everybody who is named anywhere: `channel`, `requester`, user ids and user groups.
    pub fn named(&self) -> Vec<String> {
        let rules = self.rules().into_iter().flat_map(|(_, rule)| [rule.approvers, rule.escalate_to]);
        let mut named: Vec<_> = rules.flatten().flatten().collect();
        named.extend(self.approvers.iter().chain(&self.escalate_to).cloned());
        named.sort();
        named.dedup();
        named
    }
}
