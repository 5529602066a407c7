//! `test_condition_balance`: enrols simulated participants and compares their conditions with the weights.
//!
//! Participants are sent in batches of [`BATCH_SIZE`]; the number saved after the previous batch
//! decides which ones are next. The effects of an interrupted batch are read back from the platform's
//! list of enrolments, so nobody is enrolled twice.
//!
//! Nobody can be enrolled in an experiment that has not started. For such an experiment, the answer is the number of
//! users that each condition can expect, with the range that chance allows; that changes nothing, so there is no card.

use std::{collections::HashMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_capabilities::rows::{Change, stored};
use countersign_core::ids::UserId;
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, Batch, Batches, ErrorKind, Outcome, PrepareError, Progress, Proposal,
};
use futures_util::{StreamExt as _, stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    conditions_of,
    enrolled::reached,
    simulated::{self, GROUP_SIZE, Received, VisitOutcome, VisitTarget},
    split::{self, ExpectedCount},
};
use crate::{
    access::{self, Deps},
    actions::{
        card_differences::differences_in_words,
        failed, in_flight, shown_now,
        surroundings::{Claims, Reach},
    },
    forms, points,
    replies::testing as words,
    scope,
    upgrade::{client::UpgradeClient, error::Error, experiment::View, status::Status},
};

/// The maximum number of participants in one test.
pub const MAX_USERS: u32 = 1_000;
/// The default number of participants.
const DEFAULT_USERS: u32 = 100;
/// The number of participants between two saves.
const BATCH_SIZE: u32 = 16;
/// The number of participants that are sent concurrently.
const CONCURRENCY: usize = 8;
/// The maximum duration of a test, after which it ends automatically.
pub const MAX_DURATION: Duration = Duration::from_secs(15 * 60);

/// The name of the action.
pub(crate) const NAME: &str = "test_condition_balance";

/// The batches of the action.
struct TestBalance(Deps);

/// The parameters of the action.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct TestBalanceParameters {
    /// The experiment, by name or id. Required.
    #[serde(alias = "experiment_name")]
    experiment: Option<String>,
    /// The number of simulated users to enrol, 1 to 1000. Default: 100.
    users: Option<i64>,
}

/// The stored parameters, which determine each participant and their visit.
#[derive(Serialize, Deserialize)]
pub struct Test {
    /// The name of the experiment, for people.
    pub experiment_name: String,
    /// The place that participants visit.
    pub place: VisitTarget,
    /// The number of participants.
    pub users: u32,
    /// The common prefix of the participants' names.
    pub run: String,
    /// The conditions that participants may get.
    pub conditions: Vec<Share>,
    /// The names of the other live experiments at its points, which get some of the participants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rivals: Vec<String>,
    /// True if only users on the inclusion list are included.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_included: bool,
}

impl Test {
    fn of(view: &View, place: VisitTarget, users: u32, run: String) -> Self {
        let conditions = view.conditions.iter().map(|c| Share {
            id: c.id.clone(),
            code: c.condition_code.clone(),
            weight: c.assignment_weight,
        });
        Self {
            experiment_name: view.name.clone(),
            place,
            users,
            run,
            conditions: conditions.collect(),
            rivals: Vec::new(),
            only_included: view.filter_mode == "excludeAll",
        }
    }
}

/// A condition with its weight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// The condition's id.
    pub id: String,
    /// The condition's code.
    pub code: String,
    /// The condition's weight.
    pub weight: f64,
}

/// The progress of a test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tally {
    /// The participant to send next.
    pub next: u32,
    /// Draws by condition: one for each participant, or for each group if groups draw.
    pub draws: Vec<(String, u64)>,
    /// The number of enrolled participants.
    pub enrolled: u64,
    /// The number of participants that got no condition.
    pub nothing_given: u64,
    /// The number of participants that may or may not be enrolled.
    pub silent: u64,
    /// The number of participants whose visit failed.
    pub failed: u64,
    /// Enrolled participants by condition, if groups draw.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<(String, u64)>,
}

impl Tally {
    /// Returns the number of draws.
    pub(crate) fn drawn(&self) -> u64 {
        self.draws.iter().map(|(_, count)| count).sum()
    }

    fn count(&mut self, number: u32, of_groups: bool, visit: &VisitOutcome) {
        match visit {
            VisitOutcome::Enrolled(Received { code, .. }) => {
                self.enrolled += 1;
                if of_groups {
                    add_one(&mut self.users, code);
                }
                if !of_groups || number.is_multiple_of(GROUP_SIZE) {
                    add_one(&mut self.draws, code); // otherwise the group has already drawn
                }
            }
            VisitOutcome::NothingGiven => self.nothing_given += 1,
            VisitOutcome::Silent => self.silent += 1,
            VisitOutcome::Failed(_) => self.failed += 1,
        }
    }
}

fn add_one(counts: &mut Vec<(String, u64)>, code: &str) {
    match counts.iter_mut().find(|(known, _)| known == code) {
        Some((_, count)) => *count += 1,
        None => counts.push((code.to_owned(), 1)),
    }
}

/// Returns the action.
pub(crate) fn action(deps: Deps) -> Arc<dyn ActionKind> {
    let info = ActionInfo::new(
        NAME,
        "Enrols up to 1000 simulated users in a running experiment and compares how many got each condition with the \
         weights. Use it when someone asks to test the balance or the weights, or to enrol a number of users.",
    );
    let mut change = Change::in_batches(
        TestBalance(deps),
        info,
        |row, asked, _| Box::pin(prepare(&row.deps.0.client, asked)),
        |row| &row.deps,
    );
    change.now =
        |row, test: Test, record| Box::pin(shown_now(&row.deps.0.client, test.place.experiment, record, state_of));
    change.form = Some(|_, given| Box::pin(async move { Some(forms::users(given, MAX_USERS)) }));
    change.differences = differences_in_words;
    change.report = |_, record, reply| match (stored(record), &record.outcome) {
        (Ok(test), Some(Outcome::Done { .. })) => words::report(reply, &test, &reached(record, "tally")),
        _ => reply,
    };
    Arc::new(change)
}

async fn prepare(client: &UpgradeClient, asked: TestBalanceParameters) -> Result<Proposal, PrepareError> {
    let fits = |state| matches!(state, Status::Enrolling | Status::Inactive);
    let name = access::named_in(client, asked.experiment.as_ref(), fits, words::none_to_test).await?;
    let users = asked.users.unwrap_or(DEFAULT_USERS.into());
    let users = u32::try_from(users).ok().filter(|users| (1..=MAX_USERS).contains(users));
    let users = users.ok_or_else(|| access::invalid(words::not_so_many()))?;
    let request_with = |name: &str| format!("test the balance of {name} with {users} users");
    let view = access::experiment_by_current_names(client, name, request_with).await?.view;
    let place = place(&view)?;
    match view.state {
        Status::Enrolling => {}
        Status::Inactive => return Err(expected_only(&view, place, users)),
        state => return Err(access::refused(ErrorKind::Execution, words::not_running(&view.name, state, users))),
    }
    let reach = Reach::read(client, &view).await;
    let mut test = Test::of(&view, place, users, simulated::run());
    test.rivals = reach.rival_names(&view);
    let card = words::card(&test, reach.users());
    let mut preconditions = state_of(&view);
    reach.note(&Claims::about(&view), &mut preconditions);
    Ok(Proposal { preconditions, scope: scope::test(&view, users), ..Proposal::new(test, card) })
}

#[async_trait]
impl Batches for TestBalance {
    async fn next(&self, record: &ActionRecord, interrupted: bool) -> Batch {
        let test: Test = match stored(record) {
            Ok(test) => test,
            Err(outcome) => return Batch::Ended(outcome),
        };
        let Deps { client, clock } = &self.0;
        let mut tally: Tally = reached(record, "tally");
        let numbers = tally.next..test.users.min(tally.next + BATCH_SIZE);
        let already = match interrupted {
            false => HashMap::new(),
            true => match enrolled(client, &test).await {
                Ok(already) => already,
                Err(error) => {
                    tracing::warn!(error = countersign_core::cause::chain(&error), "Cannot read back the enrolments");
                    let late = record.intent_at.is_some_and(|began| clock.now() > began + MAX_DURATION);
                    return match late {
                        true => Batch::Ended(Outcome::Unknown { summary: words::not_read_back(&test, &tally) }),
                        false => Batch::NotNow,
                    };
                }
            },
        };
        let (place, run) = (&test.place, test.run.as_str());
        let visits: Vec<_> = stream::iter(numbers.clone())
            .map(|number| {
                let known = already.get(&simulated::name(run, number)).cloned();
                async move {
                    match known {
                        Some(code) => (number, VisitOutcome::Enrolled(Received { code, levels: None })),
                        None => (number, simulated::visit(client, place, run, number).await),
                    }
                }
            })
            .buffered(CONCURRENCY)
            .collect()
            .await;
        if let Some(error) = error_if_all_failed(&visits) {
            let summary = words::gave_up(&test, &tally, error);
            return Batch::Ended(failed(access::kind(error), summary));
        }
        for (number, visit) in &visits {
            tally.count(*number, test.place.group.is_some(), visit);
        }
        tally.next = numbers.end;
        if tally.next < test.users {
            return Batch::Made(Progress {
                done: tally.next.into(),
                total: test.users.into(),
                note: words::troubles(&tally),
                data: json!(tally),
            });
        }
        let summary = words::summary(&test, &tally);
        Batch::Ended(Outcome::Done { result: result_of(&test, &tally), summary })
    }

    fn in_flight(&self) -> Duration {
        in_flight(&self.0.client)
    }

    fn longest(&self) -> Duration {
        MAX_DURATION
    }

    fn stopped(&self, record: &ActionRecord, by: Option<&UserId>) -> Outcome {
        let test: Test = match stored(record) {
            Ok(test) => test,
            Err(outcome) => return outcome,
        };
        let tally: Tally = reached(record, "tally");
        let summary = words::stopped(&test, &tally, by);
        Outcome::Done { result: json!({ "name": test.experiment_name, "tally": tally }), summary }
    }
}

/// Returns the codes of the conditions of this run's enrolled participants, by participant name.
async fn enrolled(client: &UpgradeClient, test: &Test) -> Result<HashMap<String, String>, Error> {
    let code = |id: &str| test.conditions.iter().find(|share| share.id == id).map(|share| share.code.clone());
    let all = client.enrolled(test.place.experiment).await?;
    let ours = all.into_iter().filter(|enrolled| enrolled.user_id.starts_with(&test.run));
    Ok(ours.filter_map(|e| Some((e.user_id, code(e.condition_id.as_deref()?)?))).collect())
}

/// Answers with the expected split of an experiment that has not started, and a draw for stand-ins: nobody can be
/// enrolled in it yet. A plan can depend on the draw.
fn expected_only(view: &View, place: VisitTarget, users: u32) -> PrepareError {
    let test = Test::of(view, place, users, String::new());
    let draws = if test.place.group.is_some() { users.div_ceil(GROUP_SIZE) } else { users };
    let weights: Vec<_> = test.conditions.iter().map(|share| share.weight).collect();
    let expected = split::expected_counts(&weights, draws);
    let counts = split::draw_stand_ins(&weights, draws);
    let counts = test.conditions.iter().map(|share| share.code.clone()).zip(counts.into_iter().map(u64::from));
    let tally = Tally { draws: counts.collect(), ..Tally::default() };
    let of_each = test.conditions.iter().zip(&expected).map(|(share, ExpectedCount { mean, least, most })| {
        json!({ "condition": share.code, "expected": mean, "least": least, "most": most })
    });
    let mut result = result_of(&test, &tally);
    result["expected"] = of_each.collect();
    PrepareError::Answered { reply: words::expected_only(&test, &tally, &expected), result }
}

/// Returns the result of a test, as data.
fn result_of(test: &Test, tally: &Tally) -> Value {
    let mut result = json!({ "name": test.experiment_name, "tally": tally });
    if let Some(fit) = words::fit_of(test, tally) {
        result["p_value"] = json!(fit.p);
    }
    result
}

/// Returns the place that the participants of a test visit: the first decision point of the experiment.
fn place(view: &View) -> Result<VisitTarget, PrepareError> {
    let refused = |reply| Err(access::refused(ErrorKind::Execution, reply));
    if !matches!(view.assignment_unit.as_str(), "group" | "individual") {
        return refused(words::not_within_subjects(&view.name));
    }
    match points::first(view) {
        Some(point) => Ok(VisitTarget::of(view, point)),
        None => refused(words::no_visitable_point(&view.name)),
    }
}

/// Returns the values that must still be as shown on the card: status, conditions, weights.
fn state_of(view: &View) -> Value {
    json!({ "status": view.state, "conditions": conditions_of(view) })
}

/// Returns the error of the first participant if every participant failed.
fn error_if_all_failed(visits: &[(u32, VisitOutcome)]) -> Option<&Error> {
    let all_failed = visits.iter().all(|(_, visit)| matches!(visit, VisitOutcome::Failed(_)));
    visits.iter().filter(|_| all_failed).find_map(|(_, visit)| match visit {
        VisitOutcome::Failed(error) => Some(error),
        VisitOutcome::Enrolled(_) | VisitOutcome::NothingGiven | VisitOutcome::Silent => None,
    })
}
