//! `[approvals]`: the people who may approve or reject changes.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use secrecy::SecretString;
use serde::Deserialize;

use super::{Envelope, Measure};

/// `[approvals]`: the people who may decide, unless a rule for the action or context says otherwise.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approvals {
    /// The time for which a card stays open, such as `"24h"`.
    #[serde(with = "humantime_serde")]
    pub expires_after: Duration,
    /// The time between the reminder in the thread and the expiry, such as `"1h"`; `"0s"` for no reminder.
    #[serde(with = "humantime_serde")]
    pub remind_before: Duration,
    /// The people who may decide: `channel`, `requester`, user ids (`U…`) and user groups (`S…`). Empty: nobody.
    pub approvers: Vec<String>,
    /// The accounts whose decisions count in addition to those of full members of the workspace: `guests`, `external`
    /// people of other workspaces, `bots`, `deactivated` accounts. Empty: none.
    #[serde(default)]
    pub outsiders: Vec<String>,
    /// True if the person who asked may approve a change that can be undone.
    pub own_request: bool,
    /// True if the person who asked may approve a change that cannot be undone.
    pub own_irreversible: bool,
    /// The number of people who must approve.
    pub needed: u32,
    /// The people who may also decide if nobody has decided within [`Self::escalate_after`]. Empty: nobody else.
    #[serde(default)]
    pub escalate_to: Vec<String>,
    /// The delay after a request until the people in [`Self::escalate_to`] may decide, such as `"4h"`.
    #[serde(with = "humantime_serde")]
    pub escalate_after: Duration,
    /// The file with the keys for digests, one on each line, the newest first. If omitted: `countersign.key` next
    /// to [`super::Store::path`]. Created on the first start.
    pub digest_key_file: Option<PathBuf>,
    /// True to start with a new key even if the one last used with the store is missing. Open cards become invalid.
    #[serde(default)]
    pub new_digest_key: bool,
    /// `COUNTERSIGN_DIGEST_KEYS`: the keys themselves, separated by commas, instead of a file.
    #[serde(skip)]
    pub digest_keys: Option<SecretString>,
    /// `[approvals.actions.<name>]`: the rules for individual actions.
    #[serde(default)]
    pub actions: BTreeMap<String, Rule>,
    /// `[approvals.contexts.<name>]`: the rules for individual contexts, and for actions in them.
    #[serde(default)]
    pub contexts: BTreeMap<String, ContextRule>,
    /// `[approvals.envelopes.<name>]`: limits agreed in advance for contexts or subjects.
    #[serde(default)]
    pub envelopes: BTreeMap<String, Envelope>,
    /// The measures that envelopes can limit.
    #[serde(skip)]
    pub measures: &'static [&'static [Measure]],
}

/// `[approvals.actions.<name>]`: the overrides for one action.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The people who may decide.
    pub approvers: Option<Vec<String>>,
    /// True if the person who asked may approve.
    pub own_request: Option<bool>,
    /// The number of people who must approve.
    pub needed: Option<u32>,
    /// The people who may also decide after [`Approvals::escalate_after`].
    pub escalate_to: Option<Vec<String>>,
}

/// `[approvals.contexts.<name>]`: the overrides for one context.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextRule {
    /// The people who may decide.
    pub approvers: Option<Vec<String>>,
    /// True if the person who asked may approve.
    pub own_request: Option<bool>,
    /// The number of people who must approve.
    pub needed: Option<u32>,
    /// The people who may also decide after [`Approvals::escalate_after`].
    pub escalate_to: Option<Vec<String>>,
    /// `[approvals.contexts.<name>.actions.<name>]`: the overrides for one action in this context.
    #[serde(default)]
    pub actions: BTreeMap<String, Rule>,
}

impl ContextRule {
    /// Returns the context's overrides for all actions.
    pub fn rule(&self) -> Rule {
        let Self { approvers, own_request, needed, escalate_to, actions: _ } = self.clone();
        Rule { approvers, own_request, needed, escalate_to }
    }
}

impl Approvals {
    /// Returns every rule with its key in the settings.
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

    /// Returns everyone named in the escalations of any rule.
    pub fn named_in_escalations(&self) -> Vec<String> {
        let rules = self.rules().into_iter().filter_map(|(_, rule)| rule.escalate_to);
        rules.flatten().chain(self.escalate_to.iter().cloned()).collect()
    }

    /// Returns everyone named in any rule: `channel`, `requester`, user ids and user groups.
    pub fn named(&self) -> Vec<String> {
        let rules = self.rules().into_iter().flat_map(|(_, rule)| [rule.approvers, rule.escalate_to]);
        let mut named: Vec<_> = rules.flatten().flatten().collect();
        named.extend(self.approvers.iter().chain(&self.escalate_to).cloned());
        named.sort();
        named.dedup();
        named
    }
}
