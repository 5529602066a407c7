//! A standing approval: its bounds, its uses, and the changes it covers. The code here is pure.

use countersign_capabilities::Allowances;
use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, ChannelId, TeamId, UserId},
};
use countersign_graph::{
    action::{ActionRecord, Reader},
    standing::Under,
};
use serde::{Deserialize, Serialize};

/// The maximum number of uses that are kept in detail.
const MAX_USES: usize = 50;

/// The scope in which the changes may be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantScope {
    /// One thing.
    Thing {
        /// The id of the thing.
        id: String,
        /// The name of the thing at the time of the grant.
        name: String,
    },
    /// Everything in a context.
    Context(String),
}

impl GrantScope {
    /// Returns the name of the thing or context.
    pub fn name(&self) -> &str {
        match self {
            Self::Thing { name, .. } | Self::Context(name) => name,
        }
    }
}

/// The bounds of a standing approval: the parameters of the card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// The id, such as `sa-1a2b3c`.
    pub id: String,
    /// The kind of change: the name of a [`countersign_capabilities::Allowance`].
    pub what: String,
    /// The scope.
    pub within: GrantScope,
    /// The maximum total amount.
    pub limit: u64,
    /// The time at which it ends.
    pub until: Timestamp,
}

/// One use of a standing approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Use {
    /// The thread, run and slot of the change, so that a repeat of the same change is recognised.
    pub claim: String,
    /// The moment of the use.
    pub at: Timestamp,
    /// The person who requested the change.
    pub by: UserId,
    /// The amount of the use.
    pub amount: u64,
}

/// The revocation of a standing approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revoked {
    /// The person who revoked it.
    pub by: UserId,
    /// The moment it was revoked.
    pub at: Timestamp,
}

/// A granted standing approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The granted kind of change, scope, amount and end.
    #[serde(flatten)]
    pub bounds: Bounds,
    /// The workspace in which it is valid.
    pub team: TeamId,
    /// The conversation in which it is valid: a grant in one channel does not apply in another.
    pub channel: ChannelId,
    /// The change that granted it.
    pub action: ActionId,
    /// The person who requested it.
    pub asked_by: UserId,
    /// The people who granted it.
    pub granted_by: Vec<UserId>,
    /// The moment it was granted.
    pub granted_at: Timestamp,
    /// The amount used.
    pub used: u64,
    /// The newest uses.
    #[serde(default)]
    pub uses: Vec<Use>,
    /// The revocation, if a person revoked it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Revoked>,
}

/// The state of a standing approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantStatus {
    /// It can be used.
    Open,
    /// All of the amount is used.
    UsedUp,
    /// The end has passed.
    Expired,
    /// A person revoked it.
    Revoked,
}

/// The reason why a change of the granted kind is not covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotCovered {
    /// The change is outside an envelope.
    Outside,
    /// A person who granted the approval requests the change, so another person has to approve it.
    OwnRequest,
    /// None of the granters may approve the change.
    NotEntitled,
    /// Too few of the granters may approve the change.
    TooFew {
        /// The number of granters who may approve it.
        counted: usize,
        /// The number of people who have to approve it.
        needed: usize,
    },
    /// The change needs more than the remaining amount.
    TooMuch {
        /// The amount that the change needs.
        amount: u64,
        /// The remaining amount.
        left: u64,
    },
}

impl Grant {
    /// Returns the state at this moment.
    pub fn status(&self, now: Timestamp) -> GrantStatus {
        match () {
            () if self.revoked.is_some() => GrantStatus::Revoked,
            () if now >= self.bounds.until => GrantStatus::Expired,
            () if self.used >= self.bounds.limit => GrantStatus::UsedUp,
            () => GrantStatus::Open,
        }
    }

    /// Returns true if it is valid in the reader's conversation.
    pub fn is_in_conversation_of(&self, reader: &Reader) -> bool {
        self.team == reader.team && self.channel == reader.channel
    }

    /// Returns true if the reader may see it: it is valid in their conversation, or they requested or granted it. Other
    /// people may not, because its subject can reveal the purpose of a private channel.
    pub fn is_visible_to(&self, reader: &Reader) -> bool {
        let took_part = |by: &UserId| self.asked_by == *by || self.granted_by.contains(by);
        self.is_in_conversation_of(reader) || (self.team == reader.team && reader.by.as_ref().is_some_and(took_part))
    }

    /// Returns the amount that a change would use; `None` if the grant is for other changes or can no longer be used.
    /// `entitled` are the granters who may approve the change.
    ///
    /// # Errors
    ///
    /// The reason why the change is not covered although it is of the granted kind.
    pub fn coverage(
        &self,
        allowances: &Allowances,
        record: &ActionRecord,
        entitled: &[UserId],
        now: Timestamp,
    ) -> Option<Result<u64, NotCovered>> {
        let amount = self.amount_of(allowances, record).filter(|_| self.status(now) == GrantStatus::Open)?;
        let left = self.bounds.limit.saturating_sub(self.used);
        let within_limit = if amount <= left { Ok(amount) } else { Err(NotCovered::TooMuch { amount, left }) };
        Some(self.reason_not_covered(record, entitled).map_or(within_limit, Err))
    }

    /// Returns true if a change is of the granted kind and in the granted scope.
    pub fn is_about(&self, allowances: &Allowances, record: &ActionRecord) -> bool {
        self.amount_of(allowances, record).is_some()
    }

    /// Returns the reason why the grant cannot replace the approvals of a change; `None` if it can. A granter counts
    /// only if entitled to approve the change itself.
    pub fn reason_not_covered(&self, record: &ActionRecord, entitled: &[UserId]) -> Option<NotCovered> {
        let (policy, granters) = (&record.policy, &self.granted_by);
        let needed = usize::try_from(policy.needed).unwrap_or(usize::MAX).max(1);
        let counted = granters.iter().filter(|granter| entitled.contains(granter)).count();
        let granter_requests = granters.contains(&record.requested_by) && !entitled.contains(&record.requested_by);
        match () {
            () if policy.because.is_some() => Some(NotCovered::Outside),
            () if policy.approvers.is_empty() => Some(NotCovered::NotEntitled),
            () if counted >= needed => None,
            () if granter_requests && !policy.own_request => Some(NotCovered::OwnRequest),
            () if counted == 0 => Some(NotCovered::NotEntitled),
            () => Some(NotCovered::TooFew { counted, needed }),
        }
    }

    /// Returns the amount of a change; `None` if it is not of the granted kind or not in the granted scope.
    fn amount_of(&self, allowances: &Allowances, record: &ActionRecord) -> Option<u64> {
        let allowance = allowances.get(&self.bounds.what)?;
        let thread = &record.thread;
        let contexts = &record.scope.contexts;
        let within = match &self.bounds.within {
            GrantScope::Thing { id, .. } => (allowance.thing)(&record.parameters) == Some(id.as_str()),
            GrantScope::Context(context) => !contexts.is_empty() && contexts.iter().all(|other| other == context),
        };
        let in_conversation = thread.team == self.team && thread.channel == self.channel;
        allowance.amount_of(record).filter(|_| within && in_conversation)
    }

    /// Records a use.
    pub fn spend(&mut self, amount: u64, record: &ActionRecord, now: Timestamp) {
        self.used += amount;
        self.uses.push(Use { claim: claim(record), at: now, by: record.requested_by.clone(), amount });
        let over = self.uses.len().saturating_sub(MAX_USES);
        self.uses.drain(..over);
    }

    /// Returns true if this change has already been counted.
    pub fn has_spent(&self, allowances: &Allowances, record: &ActionRecord) -> bool {
        let (claim, amount) = (claim(record), self.amount_of(allowances, record));
        self.uses.iter().any(|earlier| earlier.claim == claim && Some(earlier.amount) == amount)
    }

    /// Returns the description of the grant for the record of a change.
    pub fn under(&self, allowances: &Allowances) -> Under {
        Under {
            id: self.bounds.id.clone(),
            allows: self.bounds.words(allowances),
            granted_by: self.granted_by.clone(),
            used: self.used,
            limit: self.bounds.limit,
        }
    }
}

impl Bounds {
    /// Returns the bounds in words: `up to 200 simulated users in “Math Hints” until 2027-01-15 09:00 UTC`.
    pub fn words(&self, allowances: &Allowances) -> String {
        let Self { what, within, limit, until, .. } = self;
        format!("up to {} in “{}” until {}", allowances.amount(what, *limit), within.name(), moment(*until))
    }
}

/// Formats a moment in UTC, for people in any time zone.
pub fn moment(at: Timestamp) -> String {
    let moment = jiff::Timestamp::from_millisecond(at.millis()).unwrap_or_default();
    moment.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

fn claim(record: &ActionRecord) -> String {
    format!("{} {} {}", record.thread, record.run, record.slot)
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use countersign_graph::action::{Approver, Policy, Scope, Undo};

    /// Returns the allowances of the tests.
    pub(crate) fn allowances() -> Allowances {
        Allowances::new(countersign_experiments::allowances::ALL)
    }

    pub(crate) const NOW: Timestamp = Timestamp(1_700_000_000_000);

    /// Returns a change that asks for this number of simulated users in an experiment.
    pub(crate) fn simulation(experiment: &str, users: u64) -> ActionRecord {
        let saved = include_str!("../../../tests/fixtures/shapes/action_record.json");
        let saved: Vec<ActionRecord> = serde_json::from_str(saved).unwrap();
        let mut record = saved[0].clone();
        record.name = "test_condition_balance".to_owned();
        record.parameters = json!({ "place": { "experiment": experiment }, "users": users }).into();
        record.scope =
            Scope::default().of_subject("Math Hints").in_context("assign-prog").measure("users", users).into();
        record.policy = Policy { approvers: vec![Approver::Channel], needed: 1, ..Policy::default() }.into();
        record.decisions.clear();
        record
    }

    /// Returns a grant of up to 200 simulated users in the experiment `1`, for an hour.
    pub(crate) fn grant() -> Grant {
        let record = simulation("1", 1);
        let within = GrantScope::Thing { id: "1".to_owned(), name: "Math Hints".to_owned() };
        Grant {
            bounds: Bounds {
                id: "sa-1".to_owned(),
                what: "simulate".to_owned(),
                within,
                limit: 200,
                until: Timestamp(NOW.0 + 3_600_000),
            },
            team: record.thread.team.clone(),
            channel: record.thread.channel.clone(),
            action: record.id.clone(),
            asked_by: "ana".into(),
            granted_by: vec!["bo".into()],
            granted_at: NOW,
            used: 0,
            uses: Vec::new(),
            revoked: None,
        }
    }

    #[test]
    fn it_covers_what_was_granted_and_nothing_else() {
        let asks = |change: fn(&mut ActionRecord)| {
            let mut record = simulation("1", 50);
            change(&mut record);
            grant().coverage(&allowances(), &record, &["bo".into()], NOW)
        };
        type Case = (fn(&mut ActionRecord), Option<Result<u64, NotCovered>>, &'static str);
        let too_much = NotCovered::TooMuch { amount: 201, left: 200 };
        let too_few = NotCovered::TooFew { counted: 1, needed: 2 };
        let cases: [Case; 10] = [
            (|_| {}, Some(Ok(50)), "as granted"),
            (
                |r| r.parameters = json!({ "place": { "experiment": "2" } }).into(),
                None,
                "another experiment of the same name",
            ),
            (|r| r.name = "update_experiment_status".to_owned(), None, "another change"),
            (|r| r.scope = Scope::default().measure("users", 201).into(), Some(Err(too_much)), "more than is left"),
            (|r| r.scope = Scope::default().measure("users", 0).into(), None, "nobody"),
            (|r| r.scope = Arc::default(), None, "nobody knows how many"),
            (|r| r.thread.channel = "C2".into(), None, "another channel"),
            (
                |r| r.policy.because = Some("outside the envelope".to_owned()),
                Some(Err(NotCovered::Outside)),
                "outside an envelope",
            ),
            (|r| r.policy.needed = 2, Some(Err(too_few)), "more people than granted it"),
            (|r| r.policy.approvers.clear(), Some(Err(NotCovered::NotEntitled)), "nobody may"),
        ];
        for (change, expected, why) in cases {
            assert_eq!(asks(change), expected, "{why}");
        }
    }

    #[test]
    fn granters_count_only_if_they_may_approve_the_change_themselves() {
        let few = |counted, needed| Some(NotCovered::TooFew { counted, needed });
        // The granters, those who may approve the change, the number needed, and whether own requests count.
        type Case<'a> = (&'a [&'a str], &'a [&'a str], u32, bool, Option<NotCovered>);
        let cases: [Case<'_>; 8] = [
            (&["bo"], &["bo"], 1, false, None),
            (&["ana"], &["ana"], 1, true, None),
            (&["ana"], &[], 1, false, Some(NotCovered::OwnRequest)),
            (&["ana", "bo"], &["bo"], 1, false, None),
            (&["ana", "bo"], &["bo"], 2, false, Some(NotCovered::OwnRequest)),
            (&["bo"], &[], 1, true, Some(NotCovered::NotEntitled)),
            (&["bo", "cy"], &["cy"], 2, true, few(1, 2)),
            (&["bo", "cy"], &["bo", "cy", "di"], 3, true, few(2, 3)),
        ];
        let people = |names: &[&str]| names.iter().map(|name| UserId::from(*name)).collect::<Vec<_>>();
        for (granted_by, entitled, needed, own_request, expected) in cases {
            let granted = Grant { granted_by: people(granted_by), ..grant() };
            let mut record = simulation("1", 50);
            record.requested_by = "ana".into();
            (record.policy.needed, record.policy.own_request) = (needed, own_request);
            let found = granted.reason_not_covered(&record, &people(entitled));
            assert_eq!(found, expected, "granted by {granted_by:?}, entitled {entitled:?}, {needed} needed");
        }
    }

    #[test]
    fn it_is_visible_in_its_channel_and_to_its_requester_and_granters() {
        let granted = grant();
        let (here, team) = (granted.channel.as_str(), granted.team.as_str());
        for (by, team, channel, visible) in [
            (Some("cy"), team, here, true),
            (None, team, here, true),
            (Some("ana"), team, "C_OTHER", true), // asked for it
            (Some("bo"), team, "C_OTHER", true),  // granted it
            (Some("cy"), team, "C_OTHER", false),
            (None, team, "C_OTHER", false),
            (Some("ana"), "T_OTHER", here, false),
        ] {
            let by = by.map(UserId::from);
            let reader =
                Reader { by, team: team.into(), channel: channel.into(), thread: None, alone: true, zone: None };
            assert_eq!(granted.is_visible_to(&reader), visible, "{reader:?}");
        }
    }

    #[test]
    fn it_ends_when_it_expires_or_is_used_up_or_revoked() {
        let record = simulation("1", 50);
        let mut granted = grant();
        let end = granted.bounds.until;
        assert_eq!(granted.coverage(&allowances(), &record, &["bo".into()], Timestamp(end.0 - 1)), Some(Ok(50)));
        assert_eq!(
            (granted.coverage(&allowances(), &record, &["bo".into()], end), granted.status(end)),
            (None, GrantStatus::Expired)
        );
        granted.spend(150, &record, NOW);
        assert_eq!(granted.coverage(&allowances(), &record, &["bo".into()], NOW), Some(Ok(50)), "just enough is left");
        granted.spend(50, &record, NOW);
        assert_eq!(
            (granted.coverage(&allowances(), &record, &["bo".into()], NOW), granted.status(NOW)),
            (None, GrantStatus::UsedUp)
        );
        let revoked = Some(Revoked { by: "cy".into(), at: NOW });
        let granted = Grant { revoked, ..grant() };
        assert_eq!(
            (granted.coverage(&allowances(), &record, &["bo".into()], NOW), granted.status(NOW)),
            (None, GrantStatus::Revoked)
        );
    }

    #[test]
    fn only_the_same_change_counts_as_a_repeat() {
        let mut granted = grant();
        granted.spend(50, &simulation("1", 50), NOW);
        assert!(granted.has_spent(&allowances(), &simulation("1", 50)));
        assert!(!granted.has_spent(&allowances(), &simulation("1", 60)), "another amount in the same place of the run");
        assert!(!granted.has_spent(&allowances(), &simulation("2", 50)), "another experiment");
        let mut later = simulation("1", 50);
        later.slot = "turn:7".into();
        assert!(!granted.has_spent(&allowances(), &later), "another message");
    }

    #[test]
    fn a_status_change_is_covered_only_if_it_can_be_undone() {
        let mut granted = grant();
        (granted.bounds.what, granted.bounds.limit) = ("start_and_stop".to_owned(), 2);
        let status = |to: &str, undo: bool| {
            let mut record = simulation("1", 1);
            record.name = "update_experiment_status".to_owned();
            record.parameters = json!({ "experiment": "1", "status": to }).into();
            record.scope = Scope::of("experiment:1").of_subject("Math Hints").measure("status", to).into();
            record.card.irreversible = !undo;
            let back = Undo { name: record.name.clone(), parameters: json!({}), label: "Undo".to_owned() };
            record.undo = undo.then(|| back.into());
            record
        };
        assert_eq!(granted.coverage(&allowances(), &status("enrolling", true), &["bo".into()], NOW), Some(Ok(1)));
        assert_eq!(
            granted.coverage(&allowances(), &status("enrollmentComplete", true), &["bo".into()], NOW),
            Some(Ok(1))
        );
        assert_eq!(granted.coverage(&allowances(), &status("cancelled", true), &["bo".into()], NOW), None);
        assert_eq!(granted.coverage(&allowances(), &status("enrolling", false), &["bo".into()], NOW), None);
    }

    #[test]
    fn a_context_covers_its_experiments() {
        let mut granted = grant();
        granted.bounds.within = GrantScope::Context("assign-prog".to_owned());
        assert_eq!(granted.coverage(&allowances(), &simulation("7", 50), &["bo".into()], NOW), Some(Ok(50)));
        let mut elsewhere = simulation("7", 50);
        Arc::make_mut(&mut elsewhere.scope).contexts = vec!["assign-prog".to_owned(), "other".to_owned()];
        assert_eq!(granted.coverage(&allowances(), &elsewhere, &["bo".into()], NOW), None);
    }

    #[test]
    fn a_stored_grant_can_be_read_back() {
        let mut granted = grant();
        granted.spend(7, &simulation("1", 7), NOW);
        assert_eq!(serde_json::from_value::<Grant>(json!(granted)).unwrap(), granted);
    }
}
