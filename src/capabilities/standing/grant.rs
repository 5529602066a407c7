//! A standing approval: what it allows, how much of it is used, and what it covers. Pure.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    clock::Timestamp,
    graph::{
        action::{ActionRecord, Reader},
        standing::Under,
    },
    ids::{ActionId, ChannelId, TeamId, UserId},
};

/// How many uses are kept in detail.
const USES: usize = 50;

/// What may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Enrol simulated users, so many in all.
    Simulate,
    /// Start, stop and resume, so many times in all.
    StartAndStop,
}

impl What {
    /// The changes that it covers.
    pub fn actions(self) -> &'static [&'static str] {
        match self {
            Self::Simulate => &["test_condition_balance"],
            Self::StartAndStop => &["update_experiment_status"],
        }
    }

    /// `200 simulated users`, `1 start or stop`.
    pub fn amount(self, number: u64) -> String {
        match (self, number) {
            (Self::Simulate, 1) => "1 simulated user".to_owned(),
            (Self::Simulate, n) => format!("{n} simulated users"),
            (Self::StartAndStop, 1) => "1 start or stop".to_owned(),
            (Self::StartAndStop, n) => format!("{n} starts and stops"),
        }
    }
}

/// In what it may be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Within {
    /// One experiment.
    Experiment {
        /// Its id.
        id: String,
        /// Its name when it was granted.
        name: String,
    },
    /// Every experiment of a context.
    Context(String),
}

impl Within {
    /// The name, for people.
    pub fn name(&self) -> &str {
        match self {
            Self::Experiment { name, .. } | Self::Context(name) => name,
        }
    }
}

/// What is asked for: the parameters of the card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Its name.
    pub id: String,
    /// What may be done.
    pub what: What,
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
    pub fn covers(&self, record: &ActionRecord, entitled: &[UserId], now: Timestamp) -> Option<Result<u64, WhyNot>> {
        let amount = self.amount_of(record).filter(|_| self.standing(now) == Standing::Open)?;
        let left = self.bounds.limit.saturating_sub(self.used);
        let room = if amount <= left { Ok(amount) } else { Err(WhyNot::TooMuch { amount, left }) };
        Some(self.why_not(record, entitled).map_or(room, Err))
    }

    /// Whether a change is of the kind that was granted, in the right place.
    pub fn is_about(&self, record: &ActionRecord) -> bool {
        self.amount_of(record).is_some()
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
    fn amount_of(&self, record: &ActionRecord) -> Option<u64> {
        let place = &record.thread;
        let contexts = &record.scope.contexts;
        let within = match &self.bounds.within {
            Within::Experiment { id, .. } => experiment(record) == Some(id.as_str()),
            Within::Context(context) => !contexts.is_empty() && contexts.iter().all(|own| own == context),
        };
        let here = place.team == self.team && place.channel == self.channel;
        amount(self.bounds.what, record).filter(|_| within && here)
    }

    /// Writes a use down.
    pub fn spend(&mut self, amount: u64, record: &ActionRecord, now: Timestamp) {
        self.used += amount;
        self.uses.push(Use { claim: claim(record), at: now, by: record.requested_by.clone(), amount });
        let over = self.uses.len().saturating_sub(USES);
        self.uses.drain(..over);
    }

    /// Whether this very change spent already.
    pub fn has_spent(&self, record: &ActionRecord) -> bool {
        let (claim, amount) = (claim(record), self.amount_of(record));
        self.uses.iter().any(|one| one.claim == claim && Some(one.amount) == amount)
    }

    /// As a record names it.
    pub fn under(&self) -> Under {
        Under {
            id: self.bounds.id.clone(),
            allows: self.bounds.words(),
            granted_by: self.granted_by.clone(),
            used: self.used,
            limit: self.bounds.limit,
        }
    }
}

impl Bounds {
    /// `up to 200 simulated users in “Math Hints” until 2027-01-15 09:00 UTC`.
    pub fn words(&self) -> String {
        let Self { what, within, limit, until, .. } = self;
        format!("up to {} in “{}” until {}", what.amount(*limit), within.name(), moment(*until))
    }
}

/// A moment for people who may be anywhere.
pub fn moment(at: Timestamp) -> String {
    let moment = jiff::Timestamp::from_millisecond(at.millis()).unwrap_or_default();
    moment.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

/// How much a change is; nothing if it is not of this kind, or cannot be undone.
fn amount(what: What, record: &ActionRecord) -> Option<u64> {
    if !what.actions().contains(&record.name.as_str()) {
        return None;
    }
    let values = |measure: &str| record.scope.measures.get(measure).map(Vec::as_slice).unwrap_or_default();
    match what {
        // What stays behind was said on the card that granted it.
        What::Simulate => match values("users") {
            [users] => users.as_u64().filter(|users| *users > 0),
            _ => None,
        },
        What::StartAndStop => {
            let back_and_forth = |status: &Value| matches!(status.as_str(), Some("enrolling" | "enrollmentComplete"));
            let statuses = values("status");
            let fits = !statuses.is_empty() && statuses.iter().all(back_and_forth) && values("start").is_empty();
            let undoable = !record.card.irreversible && record.undo.is_some();
            (fits && undoable && record.scope.experiments.len() == 1).then_some(1)
        }
    }
}

/// The one experiment that a change is about, by id.
fn experiment(record: &ActionRecord) -> Option<&str> {
    let parameters = &record.parameters;
    parameters["experiment"].as_str().or_else(|| parameters["place"]["experiment"].as_str())
}

fn claim(record: &ActionRecord) -> String {
    format!("{} {} {}", record.thread, record.run, record.slot)
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;
    use crate::graph::action::{Approver, Policy, Scope, Undo};

    pub(crate) const NOW: Timestamp = Timestamp(1_700_000_000_000);

    /// A change that asks for so many simulated users in an experiment.
    pub(crate) fn simulation(experiment: &str, users: u64) -> ActionRecord {
        let saved = include_str!("../../../tests/fixtures/shapes/action_record.json");
        let saved: Vec<ActionRecord> = serde_json::from_str(saved).unwrap();
        let mut record = saved[0].clone();
        record.name = "test_condition_balance".to_owned();
        record.parameters = json!({ "place": { "experiment": experiment }, "users": users });
        record.scope = Scope::default().of_experiment("Math Hints").in_context("assign-prog").measure("users", users);
        record.policy = Policy { approvers: vec![Approver::Channel], needed: 1, ..Policy::default() };
        record.decisions.clear();
        record
    }

    /// Up to 200 simulated users in the experiment `1`, for an hour.
    pub(crate) fn grant() -> Grant {
        let record = simulation("1", 1);
        let within = Within::Experiment { id: "1".to_owned(), name: "Math Hints".to_owned() };
        Grant {
            bounds: Bounds {
                id: "sa-1".to_owned(),
                what: What::Simulate,
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
            grant().covers(&record, &["bo".into()], NOW)
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
        assert_eq!(granted.covers(&record, &["bo".into()], Timestamp(end.0 - 1)), Some(Ok(50)));
        assert_eq!((granted.covers(&record, &["bo".into()], end), granted.standing(end)), (None, Standing::Expired));
        granted.spend(150, &record, NOW);
        assert_eq!(granted.covers(&record, &["bo".into()], NOW), Some(Ok(50)), "just enough is left");
        granted.spend(50, &record, NOW);
        assert_eq!((granted.covers(&record, &["bo".into()], NOW), granted.standing(NOW)), (None, Standing::UsedUp));
        let revoked = Some(Revoked { by: "cy".into(), at: NOW });
        let granted = Grant { revoked, ..grant() };
        assert_eq!((granted.covers(&record, &["bo".into()], NOW), granted.standing(NOW)), (None, Standing::Revoked));
    }

    #[test]
    fn a_change_is_known_again_only_if_it_is_the_same() {
        let mut granted = grant();
        granted.spend(50, &simulation("1", 50), NOW);
        assert!(granted.has_spent(&simulation("1", 50)));
        assert!(!granted.has_spent(&simulation("1", 60)), "another amount in the same place of the run");
        assert!(!granted.has_spent(&simulation("2", 50)), "another experiment");
        let mut later = simulation("1", 50);
        later.slot = "turn:7".into();
        assert!(!granted.has_spent(&later), "another message");
    }

    #[test]
    fn a_status_is_covered_only_if_there_is_a_way_back() {
        let mut granted = grant();
        (granted.bounds.what, granted.bounds.limit) = (What::StartAndStop, 2);
        let status = |to: &str, undo: bool| {
            let mut record = simulation("1", 1);
            record.name = "update_experiment_status".to_owned();
            record.parameters = json!({ "experiment": "1", "status": to });
            record.scope = Scope::of("experiment:1").of_experiment("Math Hints").measure("status", to);
            record.card.irreversible = !undo;
            let back = Undo { name: record.name.clone(), parameters: json!({}), label: "Undo".to_owned() };
            record.undo = undo.then_some(back);
            record
        };
        assert_eq!(granted.covers(&status("enrolling", true), &["bo".into()], NOW), Some(Ok(1)));
        assert_eq!(granted.covers(&status("enrollmentComplete", true), &["bo".into()], NOW), Some(Ok(1)));
        assert_eq!(granted.covers(&status("cancelled", true), &["bo".into()], NOW), None);
        assert_eq!(granted.covers(&status("enrolling", false), &["bo".into()], NOW), None);
    }

    #[test]
    fn a_context_covers_its_experiments() {
        let mut granted = grant();
        granted.bounds.within = Within::Context("assign-prog".to_owned());
        assert_eq!(granted.covers(&simulation("7", 50), &["bo".into()], NOW), Some(Ok(50)));
        let mut elsewhere = simulation("7", 50);
        elsewhere.scope.contexts = vec!["assign-prog".to_owned(), "other".to_owned()];
        assert_eq!(granted.covers(&elsewhere, &["bo".into()], NOW), None);
    }

    #[test]
    fn what_is_stored_reads_back() {
        let mut granted = grant();
        granted.spend(7, &simulation("1", 7), NOW);
        assert_eq!(serde_json::from_value::<Grant>(json!(granted)).unwrap(), granted);
    }
}
