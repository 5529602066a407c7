//! `grant_standing_approval`: lets a bounded number of changes of one kind be made without asking each time.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    book::{Book, BookError},
    grant::{Bounds, Grant, What, Within},
    replies, revoke,
};
use crate::{
    capabilities::experiments::{
        access,
        actions::{given, missing, moment},
        lookup,
    },
    clock::{Clock, Timestamp},
    graph::action::{
        ActionKind, ActionRecord, ErrorKind, Outcome, Performed, PrepareError, Proposal, Recovery, Refusal, Scope, Undo,
    },
    reply::Text,
    services::upgrade::{client::UpgradeClient, experiment::View},
};

/// Its name.
pub const NAME: &str = "grant_standing_approval";

/// The measure that names the changes which are covered: whoever may approve those may grant this.
pub const COVERS: &str = "covers";

/// The longest that one holds, in days.
const DAYS: i64 = 31;
/// The most simulated users of one.
const MOST_USERS: u64 = 1_000;
/// The most starts and stops of one.
const MOST_TIMES: u64 = 20;

/// `grant_standing_approval`.
#[derive(Debug)]
pub struct AllowStanding(pub Arc<Book>, pub Arc<UpgradeClient>, pub Arc<dyn Clock>);

/// What people give.
#[derive(Deserialize, JsonSchema)]
struct Given {
    /// What is to be allowed: `simulate` (enrol simulated users) or `start_and_stop`. Nothing else can be. Required.
    #[serde(default)]
    what: Option<String>,
    /// The experiment that it is for, by name or id; or the context, for all of its experiments. Required.
    #[serde(default)]
    within: Option<String>,
    /// How much in all: users with `simulate`, 1 to 1000; starts and stops, 1 to 20. Required.
    #[serde(default)]
    limit: Option<i64>,
    /// Until when, such as `Friday` or `2027-01-15 09:00` (UTC); at most 31 days. Required.
    #[serde(default)]
    until: Option<String>,
}

#[async_trait]
impl ActionKind for AllowStanding {
    fn name(&self) -> &'static str {
        NAME
    }

    fn description(&self) -> &'static str {
        "Grants a standing approval: lets a limited number of simulated users, or of starts and stops, happen without asking \
         each time, until a certain moment. Use it when someone asks to allow or permit these in advance."
    }

    fn schema(&self) -> Value {
        access::schema::<Given>()
    }

    async fn prepare(&self, parameters: &Value) -> Result<Proposal, PrepareError> {
        let asked: Given = access::parameters(parameters)?;
        let refuse = |reply| access::refused(ErrorKind::Validation, reply);
        let now = self.2.now();
        let until = given(asked.until.as_ref()).map(|until| until_when(until, now)).transpose()?;
        if until.is_some_and(|until| until.since(now) > Duration::from_secs(DAYS.unsigned_abs() * 24 * 3600)) {
            return Err(refuse(replies::too_long(DAYS)));
        }
        let mut lacking = Vec::new();
        let what = match given(asked.what.as_ref()) {
            Some(words) => Some(what(words).ok_or_else(|| refuse(replies::not_that(words)))?),
            None => {
                let options = vec!["simulated users".to_owned(), "starts and stops".to_owned()];
                lacking.push(missing("what", "What should be allowed without asking each time?", options));
                None
            }
        };
        if given(asked.within.as_ref()).is_none() {
            let names = access::which_experiment(&self.1).await.options;
            lacking.push(missing("within", "In which experiment?", names));
        }
        if asked.limit.is_none() {
            let question = match what {
                Some(What::StartAndStop) => "How many starts and stops at most?",
                _ => "How many simulated users at most, in all?",
            };
            lacking.push(missing("limit", question, Vec::new()));
        }
        if until.is_none() {
            lacking.push(missing("until", "Until when? Such as Friday, or 2027-01-15 09:00 (UTC).", Vec::new()));
        }
        let (Some(what), Some(name), Some(limit), Some(until)) =
            (what, given(asked.within.as_ref()), asked.limit, until)
        else {
            return Err(Refusal::Missing(lacking).into());
        };
        let most = if what == What::Simulate { MOST_USERS } else { MOST_TIMES };
        let Some(limit) = u64::try_from(limit).ok().filter(|limit| (1..=most).contains(limit)) else {
            return Err(refuse(replies::not_so_much(what, limit, most)));
        };
        let (within, view) = self.within(name).await?;
        let enrolled = match &view {
            Some(view) => self.1.enrollment(&[view.id]).await.ok().and_then(|all| all.into_iter().next()),
            None => None,
        };
        let id = format!("sa-{}", &Uuid::new_v4().simple().to_string()[..6]);
        let bounds = Bounds { id, what, within, limit, until };
        let card = replies::allow_card(&bounds, view.as_ref().map(|view| (view, enrolled)));
        Ok(Proposal {
            preconditions: json!({}),
            card,
            undo: Some(Undo {
                name: revoke::NAME.to_owned(),
                parameters: json!({ "id": bounds.id }),
                label: "Undo: end it again".to_owned(),
            }),
            scope: scope(&bounds, view.as_ref()),
            parameters: json!(bounds),
        })
    }

    async fn preconditions(&self, _: &ActionRecord) -> Result<Value, Outcome> {
        Ok(json!({}))
    }

    async fn perform(&self, record: &ActionRecord) -> Performed {
        let Ok(bounds) = serde_json::from_value::<Bounds>(record.parameters.clone()) else {
            let summary =
                Text::from("What is stored of this cannot be read, so nothing was granted. Please ask again.");
            return Performed::Ended(Outcome::Failed { error: ErrorKind::Execution, summary });
        };
        let grant = Grant {
            team: record.thread.team.clone(),
            channel: record.thread.channel.clone(),
            action: record.id.clone(),
            asked_by: record.requested_by.clone(),
            granted_by: record.approved_by(),
            granted_at: self.2.now(),
            used: 0,
            uses: Vec::new(),
            revoked: None,
            bounds,
        };
        match self.0.add(&grant).await {
            Ok(()) => Performed::Ended(Outcome::Done {
                result: json!({ "id": grant.bounds.id, "allows": grant.bounds.words() }),
                summary: Text::from(record.card.done.as_str()),
            }),
            Err(BookError::Full) => {
                let summary = "There are too many standing approvals already. End one of them, then ask again.";
                Performed::Ended(Outcome::Failed { error: ErrorKind::Execution, summary: Text::from(summary) })
            }
            Err(error) => Performed::NoAnswer { detail: error.to_string() },
        }
    }

    /// The same one again changes nothing.
    fn recovery(&self) -> Recovery {
        Recovery::Idempotent
    }
}

impl AllowStanding {
    /// The experiment of that name, or else the context.
    async fn within(&self, name: &str) -> Result<(Within, Option<View>), PrepareError> {
        let says = |known: &str| format!("allow simulated users in {known}");
        match access::experiment(&self.1, name, says).await {
            Ok(experiment) => {
                let view = experiment.view;
                Ok((Within::Experiment { id: view.id.to_string(), name: view.name.clone() }, Some(view)))
            }
            Err(unknown @ PrepareError::Refusal(_)) => {
                let contexts = self.1.context_metadata().await.map_err(access::unavailable)?;
                let known: Vec<_> = contexts.into_keys().collect();
                match lookup::pick(&known, name) {
                    Some(context) => Ok((Within::Context(context.clone()), None)),
                    None => Err(unknown),
                }
            }
            Err(error) => Err(error),
        }
    }
}

fn what(words: &str) -> Option<What> {
    match words.trim().to_lowercase().replace([' ', '-'], "_").as_str() {
        "simulate" | "simulation" | "simulations" | "simulated_users" | "simulate_users" | "test_condition_balance" => {
            Some(What::Simulate)
        }
        "start_and_stop" | "start" | "stop" | "starts_and_stops" | "update_experiment_status" => {
            Some(What::StartAndStop)
        }
        _ => None,
    }
}

/// The moment; a day without a time is meant with its evening.
fn until_when(words: &str, now: Timestamp) -> Result<Timestamp, PrepareError> {
    let moment = moment::end_of(words, now)?;
    let moment: Option<jiff::Timestamp> = moment.parse().ok();
    let unreadable = || access::refused(ErrorKind::Validation, replies::not_now());
    moment.map(|moment| Timestamp(moment.as_millisecond())).ok_or_else(unreadable)
}

/// What it is about: whoever may approve the changes that it covers may grant it, within the same envelopes.
fn scope(bounds: &Bounds, view: Option<&View>) -> Scope {
    let scope = match (&bounds.within, view) {
        (Within::Experiment { name, .. }, Some(view)) => {
            Scope::default().of_experiment(&**name).in_context(view.context())
        }
        (Within::Experiment { name, .. }, None) => Scope::default().of_experiment(&**name),
        (Within::Context(context), _) => Scope::default().in_context(&**context),
    };
    let scope = bounds.what.actions().iter().fold(scope, |scope, action| scope.measure(COVERS, *action));
    match bounds.what {
        What::Simulate => scope.measure("users", bounds.limit),
        What::StartAndStop => scope.measure("status", "enrolling").measure("status", "enrollmentComplete"),
    }
}
