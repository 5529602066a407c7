//! A standing approval: what it allows, how much of it is used, and what it covers. Pure.

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

/// How many uses are kept in detail.
const USES: usize = 50;

/// In what it may be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Within {
    /// One thing.
    #[serde(rename = "experiment")]
    Thing {
        /// Its id.
        id: String,
        /// Its name when it was granted.
        name: String,
    },
    /// Everything of a context.
    Context(String),
}

impl Within {
    /// The name, for people.
    pub fn name(&self) -> &str {
        match self {
            Self::Thing { name, .. } | Self::Context(name) => name,
        }
    }
}

/// What is asked for: the parameters of the card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Its name.
    pub id: String,
    /// What may be done: the name of an [`countersign_capabilities::Allowance`].
    pub what: String,
    /// In what.
    pub within: Within,
    /// How much in all.
    pub limit: u64,
    /// Until when.
    pub until: Timestamp,
}

/// One use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Use {
    /// The run and the message that it was for; the same ones spend once.
    pub claim: String,
    /// When.
    pub at: Timestamp,
    /// Who asked.
    pub by: UserId,
    /// How much.
    pub amount: u64,
}

/// Who ended it, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revoked {
    /// Who asked for it.
    pub by: UserId,
    /// When.
    pub at: Timestamp,
}

/// A standing approval that was granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// What it allows.
    #[serde(flatten)]
    pub bounds: Bounds,
    /// The workspace it holds in.
    pub team: TeamId,
    /// The conversation it holds in: what one channel grants is no matter of another.
    pub channel: ChannelId,
    /// The change that granted it.
    pub action: ActionId,
    /// Who asked for it.
    pub asked_by: UserId,
    /// Who granted it.
    pub granted_by: Vec<UserId>,
    /// When.
    pub granted_at: Timestamp,
    /// How much is used.
    pub used: u64,
    /// The newest uses.
    #[serde(default)]
    pub uses: Vec<Use>,
    /// Whether it was ended before its time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Revoked>,
}

/// How a standing approval stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It can be used.
    Open,
    /// Nothing is left.
    UsedUp,
    /// Its time is over.
    Expired,
    /// It was ended.
    Revoked,
}

/// Why a change of the kind that was granted is not covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyNot {
    /// It is outside an envelope.
    Outside,
    /// Who granted it asks for this, and another person has to approve it.
    OwnRequest,
    /// Nobody who granted it may approve this.
    NotEntitled,
    /// Fewer of those who granted it may approve this than have to.
    TooFew {
        /// How many may.
        counted: usize,
        /// How many have to.
        needed: usize,
    },
    /// It is more than is left.
    TooMuch {
        /// What it needs.
        amount: u64,
        /// What is left.
        left: u64,
    },
}

impl Grant {
    /// How it stands.
    pub fn standing(&self, now: Timestamp) -> Standing {
        match () {
            () if self.revoked.is_some() => Standing::Revoked,
            () if now >= self.bounds.until => Standing::Expired,
            () if self.used >= self.bounds.limit => Standing::UsedUp,
            () => Standing::Open,
        }
    }

    /// Whether it holds in the conversation of somebody who asks.
    pub fn is_here(&self, reader: &Reader) -> bool {
        self.team == reader.team && self.channel == reader.channel
    }

    /// Whether somebody may be told of it: it holds in their conversation, or they asked for it or granted it. What it is
    /// about can give away what a private channel is for, so nobody else is told.
    pub fn is_told(&self, reader: &Reader) -> bool {
        let own = |by: &UserId| self.asked_by == *by || self.granted_by.contains(by);
        self.is_here(reader) || (self.team == reader.team && reader.by.as_ref().is_some_and(own))
    }

    /// What a change would use of it. `entitled` are those of its granters who may approve that change. Nothing if it is about
    /// other changes, or over.
    ///
    /// # Errors
    ///
    /// Why the change is not covered although it is of the kind that was granted.
    pub fn covers(
        &self,
        allowances: &Allowances,
        record: &ActionRecord,
        entitled: &[UserId],
        now: Timestamp,
    ) -> Option<Result<u64, WhyNot>> {
        let amount = self.amount_of(allowances, record).filter(|_| self.standing(now) == Standing::Open)?;
        let left = self.bounds.limit.saturating_sub(self.used);
        let room = if amount <= left { Ok(amount) } else { Err(WhyNot::TooMuch { amount, left }) };
        Some(self.why_not(record, entitled).map_or(room, Err))
    }

    /// Whether a change is of the kind that was granted, in the right place.
    pub fn is_about(&self, allowances: &Allowances, record: &ActionRecord) -> bool {
        self.amount_of(allowances, record).is_some()
    }

    /// Why those who granted it do not stand for those who have to approve a change; nothing if they do. Each of them counts
    /// only where they may approve the change itself.
    pub fn why_not(&self, record: &ActionRecord, entitled: &[UserId]) -> Option<WhyNot> {
        let (policy, granters) = (&record.policy, &self.granted_by);
        let needed = usize::try_from(policy.needed).unwrap_or(usize::MAX).max(1);
        let counted = granters.iter().filter(|granter| entitled.contains(granter)).count();
        let asks = granters.contains(&record.requested_by) && !entitled.contains(&record.requested_by);
        match () {
            () if policy.because.is_some() => Some(WhyNot::Outside),
            () if policy.approvers.is_empty() => Some(WhyNot::NotEntitled),
            () if counted >= needed => None,
            () if asks && !policy.own_request => Some(WhyNot::OwnRequest),
            () if counted == 0 => Some(WhyNot::NotEntitled),
            () => Some(WhyNot::TooFew { counted, needed }),
        }
    }

    /// How much a change is, if it is of the kind that was granted, in the right place.
    fn amount_of(&self, allowances: &Allowances, record: &ActionRecord) -> Option<u64> {
        let allowance = allowances.get(&self.bounds.what)?;
        let place = &record.thread;
        let contexts = &record.scope.contexts;
        let within = match &self.bounds.within {
            Within::Thing { id, .. } => (allowance.thing)(&record.parameters) == Some(id.as_str()),
            Within::Context(context) => !contexts.is_empty() && contexts.iter().all(|own| own == context),
        };
        let here = place.team == self.team && place.channel == self.channel;
        allowance.amount_of(record).filter(|_| within && here)
    }

    /// Writes a use down.
    pub fn spend(&mut self, amount: u64, record: &ActionRecord, now: Timestamp) {
        self.used += amount;
        self.uses.push(Use { claim: claim(record), at: now, by: record.requested_by.clone(), amount });
        let over = self.uses.len().saturating_sub(USES);
        self.uses.drain(..over);
    }

    /// Whether this very change spent already.
    pub fn has_spent(&self, allowances: &Allowances, record: &ActionRecord) -> bool {
        let (claim, amount) = (claim(record), self.amount_of(allowances, record));
        self.uses.iter().any(|one| one.claim == claim && Some(one.amount) == amount)
    }

    /// As a record names it.
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
    /// `up to 200 simulated users in “Math Hints” until 2027-01-15 09:00 UTC`.
    pub fn words(&self, allowances: &Allowances) -> String {
        let Self { what, within, limit, until, .. } = self;
        format!("up to {} in “{}” until {}", allowances.amount(what, *limit), within.name(), moment(*until))
    }
}

/// A moment for people who may be anywhere.
pub fn moment(at: Timestamp) -> String {
    let moment = jiff::Timestamp::from_millisecond(at.millis()).unwrap_or_default();
    moment.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

fn claim(record: &ActionRecord) -> String {
    format!("{} {} {}", record.thread, record.run, record.slot)
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;
    use countersign_graph::action::{Approver, Policy, Scope, Undo};

    /// What a test allows.
    pub(crate) fn allowances() -> Allowances {
        Allowances::new(countersign_experiments::allowances::ALL)
    }

    pub(crate) const NOW: Timestamp = Timestamp(1_700_000_000_000);

    /// A change that asks for so many simulated users in an experiment.
    pub(crate) fn simulation(experiment: &str, users: u64) -> ActionRecord {
        let saved = include_str!("../../../tests/fixtures/shapes/action_record.json");
        let saved: Vec<ActionRecord> = serde_json::from_str(saved).unwrap();
        let mut record = saved[0].clone();
        record.name = "test_condition_balance".to_owned();
        record.parameters = json!({ "place": { "experiment": experiment }, "users": users });
        record.scope = Scope::default().of_subject("Math Hints").in_context("assign-prog").measure("users", users);
        record.policy = Policy { approvers: vec![Approver::Channel], needed: 1, ..Policy::default() };
        record.decisions.clear();
        record
    }

    /// Up to 200 simulated users in the experiment `1`, for an hour.
    pub(crate) fn grant() -> Grant {
        let record = simulation("1", 1);
        let within = Within::Thing { id: "1".to_owned(), name: "Math Hints".to_owned() };
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
            grant().covers(&allowances(), &record, &["bo".into()], NOW)
        };
        type Case = (fn(&mut ActionRecord), Option<Result<u64, WhyNot>>, &'static str);
        let too_much = WhyNot::TooMuch { amount: 201, left: 200 };
        let too_few = WhyNot::TooFew { counted: 1, needed: 2 };
        let cases: [Case; 10] = [
            (|_| {}, Some(Ok(50)), "as granted"),
            (|r| r.parameters = json!({ "place": { "experiment": "2" } }), None, "another experiment of the same name"),
            (|r| r.name = "update_experiment_status".to_owned(), None, "another change"),
            (|r| r.scope = Scope::default().measure("users", 201), Some(Err(too_much)), "more than is left"),
            (|r| r.scope = Scope::default().measure("users", 0), None, "nobody"),
            (|r| r.scope = Scope::default(), None, "nobody knows how many"),
            (|r| r.thread.channel = "C2".into(), None, "another channel"),
            (
                |r| r.policy.because = Some("outside the envelope".to_owned()),
                Some(Err(WhyNot::Outside)),
                "outside an envelope",
            ),
            (|r| r.policy.needed = 2, Some(Err(too_few)), "more people than granted it"),
            (|r| r.policy.approvers.clear(), Some(Err(WhyNot::NotEntitled)), "nobody may"),
        ];
        for (change, expected, why) in cases {
            assert_eq!(asks(change), expected, "{why}");
        }
    }

    #[test]
    fn who_granted_it_counts_only_where_they_may_approve_the_change_itself() {
        let few = |counted, needed| Some(WhyNot::TooFew { counted, needed });
        // Who granted it, who of them may approve the change, how many have to, whether own requests count.
        type Case<'a> = (&'a [&'a str], &'a [&'a str], u32, bool, Option<WhyNot>);
        let cases: [Case<'_>; 8] = [
            (&["bo"], &["bo"], 1, false, None),
            (&["ana"], &["ana"], 1, true, None),
            (&["ana"], &[], 1, false, Some(WhyNot::OwnRequest)),
            (&["ana", "bo"], &["bo"], 1, false, None),
            (&["ana", "bo"], &["bo"], 2, false, Some(WhyNot::OwnRequest)),
            (&["bo"], &[], 1, true, Some(WhyNot::NotEntitled)),
            (&["bo", "cy"], &["cy"], 2, true, few(1, 2)),
            (&["bo", "cy"], &["bo", "cy", "di"], 3, true, few(2, 3)),
        ];
        let people = |names: &[&str]| names.iter().map(|name| UserId::from(*name)).collect::<Vec<_>>();
        for (granted_by, entitled, needed, own_request, expected) in cases {
            let granted = Grant { granted_by: people(granted_by), ..grant() };
            let mut record = simulation("1", 50);
            record.requested_by = "ana".into();
            (record.policy.needed, record.policy.own_request) = (needed, own_request);
            let found = granted.why_not(&record, &people(entitled));
            assert_eq!(found, expected, "granted by {granted_by:?}, entitled {entitled:?}, {needed} needed");
        }
    }

    #[test]
    fn it_is_told_in_its_channel_and_to_those_who_made_it() {
        let granted = grant();
        let (here, team) = (granted.channel.as_str(), granted.team.as_str());
        for (by, team, channel, told) in [
            (Some("cy"), team, here, true),
            (None, team, here, true),
            (Some("ana"), team, "C_OTHER", true), // asked for it
            (Some("bo"), team, "C_OTHER", true),  // granted it
            (Some("cy"), team, "C_OTHER", false),
            (None, team, "C_OTHER", false),
            (Some("ana"), "T_OTHER", here, false),
        ] {
            let by = by.map(UserId::from);
            let reader = Reader { by, team: team.into(), channel: channel.into(), alone: true };
            assert_eq!(granted.is_told(&reader), told, "{reader:?}");
        }
    }

    #[test]
    fn it_ends_with_its_time_its_amount_or_by_hand() {
        let record = simulation("1", 50);
        let mut granted = grant();
        let end = granted.bounds.until;
        assert_eq!(granted.covers(&allowances(), &record, &["bo".into()], Timestamp(end.0 - 1)), Some(Ok(50)));
        assert_eq!(
            (granted.covers(&allowances(), &record, &["bo".into()], end), granted.standing(end)),
            (None, Standing::Expired)
        );
        granted.spend(150, &record, NOW);
        assert_eq!(granted.covers(&allowances(), &record, &["bo".into()], NOW), Some(Ok(50)), "just enough is left");
        granted.spend(50, &record, NOW);
        assert_eq!(
            (granted.covers(&allowances(), &record, &["bo".into()], NOW), granted.standing(NOW)),
            (None, Standing::UsedUp)
        );
        let revoked = Some(Revoked { by: "cy".into(), at: NOW });
        let granted = Grant { revoked, ..grant() };
        assert_eq!(
            (granted.covers(&allowances(), &record, &["bo".into()], NOW), granted.standing(NOW)),
            (None, Standing::Revoked)
        );
    }

    #[test]
    fn a_change_is_known_again_only_if_it_is_the_same() {
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
    fn a_status_is_covered_only_if_there_is_a_way_back() {
        let mut granted = grant();
        (granted.bounds.what, granted.bounds.limit) = ("start_and_stop".to_owned(), 2);
        let status = |to: &str, undo: bool| {
            let mut record = simulation("1", 1);
            record.name = "update_experiment_status".to_owned();
            record.parameters = json!({ "experiment": "1", "status": to });
            record.scope = Scope::of("experiment:1").of_subject("Math Hints").measure("status", to);
            record.card.irreversible = !undo;
            let back = Undo { name: record.name.clone(), parameters: json!({}), label: "Undo".to_owned() };
            record.undo = undo.then_some(back);
            record
        };
        assert_eq!(granted.covers(&allowances(), &status("enrolling", true), &["bo".into()], NOW), Some(Ok(1)));
        assert_eq!(
            granted.covers(&allowances(), &status("enrollmentComplete", true), &["bo".into()], NOW),
            Some(Ok(1))
        );
        assert_eq!(granted.covers(&allowances(), &status("cancelled", true), &["bo".into()], NOW), None);
        assert_eq!(granted.covers(&allowances(), &status("enrolling", false), &["bo".into()], NOW), None);
    }

    #[test]
    fn a_context_covers_its_experiments() {
        let mut granted = grant();
        granted.bounds.within = Within::Context("assign-prog".to_owned());
        assert_eq!(granted.covers(&allowances(), &simulation("7", 50), &["bo".into()], NOW), Some(Ok(50)));
        let mut elsewhere = simulation("7", 50);
        elsewhere.scope.contexts = vec!["assign-prog".to_owned(), "other".to_owned()];
        assert_eq!(granted.covers(&allowances(), &elsewhere, &["bo".into()], NOW), None);
    }

    #[test]
    fn what_is_stored_reads_back() {
        let mut granted = grant();
        granted.spend(7, &simulation("1", 7), NOW);
        assert_eq!(serde_json::from_value::<Grant>(json!(granted)).unwrap(), granted);
    }
}
