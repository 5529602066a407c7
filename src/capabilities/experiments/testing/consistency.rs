//! `test_consistency_rules`: sends a few simulated participants through every phase of an experiment,
//! changing its status in between, and compares their conditions with those that its rules require.
//!
//! One batch is one [`Step`]. In each phase all visitors first ask for their condition and are then
//! marked. Asking can be repeated with the same answer, and the answers are saved before the marks,
//! which may change them. The status is read before it is changed, so an interrupted change is not
//! made twice. After an interruption, visitors that are already enrolled are not marked again.

use std::{collections::HashSet, sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_capabilities::rows::{Change, stored};
use countersign_core::{
    ids::UserId,
    reply::{Reply, Text},
};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, Batch, Batches, ErrorKind, Outcome, PrepareError, Progress, Proposal,
};
use futures_util::future::try_join_all;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    conditions_of,
    enrolled::reached,
    expected::{self, Observation, Phase, Rules, Visitor},
    simulated::{self, VisitTarget},
};
use crate::{
    access::{self, Deps},
    actions::{
        card_differences::differences_in_words,
        failed, in_flight, shown_now,
        surroundings::{Claims, Surroundings},
    },
    points,
    replies::{consistency as words, refusals, testing},
    rules::{self, Objection},
    scope,
    upgrade::{
        client::UpgradeClient,
        error::Error,
        experiment::{ExperimentId, View},
        overview::Outline,
        participants::Introduction,
        status::Status,
    },
};

/// The maximum duration of a test, after which it ends automatically.
pub const MAX_DURATION: Duration = Duration::from_secs(10 * 60);

/// The name of the action.
pub(crate) const NAME: &str = "test_consistency_rules";

/// The batches of the action.
struct TestConsistency(Deps);

/// The parameters of the action.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct TestConsistencyParameters {
    /// The experiment, by name or id. Required.
    #[serde(alias = "experiment_name")]
    experiment: Option<String>,
}

/// The stored parameters: the visitors of each phase, and the rules for their conditions.
#[derive(Debug, Serialize, Deserialize)]
pub struct Test {
    /// The name of the experiment, for people.
    pub experiment_name: String,
    /// The place that is visited.
    pub place: VisitTarget,
    /// The common prefix of the visitors' names.
    pub run: String,
    /// The phase in which the test starts.
    pub first: Phase,
    /// The rules that decide who gets which condition.
    pub rules: Rules,
    /// The visitors.
    pub visitors: Vec<Visitor>,
}

/// One step of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The experiment enters this phase.
    Enter(Phase),
    /// All visitors who have arrived by this phase ask for their condition.
    Ask(Phase),
    /// The visits of the same visitors are marked.
    Mark(Phase),
}

/// The progress of a test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TestProgress {
    /// The index of the next step.
    pub next: usize,
    /// The conditions observed, in order.
    #[serde(rename = "sights")]
    pub observations: Vec<Observation>,
}

impl Test {
    /// Returns the steps, in order.
    pub fn steps(&self) -> Vec<Step> {
        let phases = Phase::ALL.into_iter().filter(|phase| *phase >= self.first);
        let of_phase = |phase| {
            let change = (phase != self.first).then_some(Step::Enter(phase));
            change.into_iter().chain([Step::Ask(phase), Step::Mark(phase)])
        };
        phases.flat_map(of_phase).collect()
    }

    /// Returns the visitors of a phase, with their indexes in the list.
    pub fn visitors_in(&self, phase: Phase) -> impl Iterator<Item = (usize, &Visitor)> {
        self.visitors.iter().enumerate().filter(move |(_, visitor)| visitor.arrives <= phase)
    }

    /// Returns the phase of the experiment after the first `steps` steps.
    pub fn phase_after(&self, steps: usize) -> Phase {
        let changes = self.steps().into_iter().take(steps).rev();
        let last = changes.filter_map(|step| if let Step::Enter(phase) = step { Some(phase) } else { None }).next();
        last.unwrap_or(self.first)
    }

    /// Returns the number of lines on the card for the first `steps` steps. Asking and marking share a
    /// line.
    pub fn lines(&self, steps: usize) -> usize {
        self.steps().into_iter().take(steps).filter(|step| !matches!(step, Step::Ask(_))).count()
    }

    fn introduction(&self, visitor: &Visitor) -> Introduction {
        match (&self.place.group, visitor.group) {
            (Some(kind), Some(letter)) => simulated::member(kind, &format!("{}-group-{letter}", self.run)),
            _ => Introduction::default(),
        }
    }
}

/// The reason why a step did not succeed.
enum StepError {
    /// A request was sent, and its outcome has to be read back later.
    NoAnswer,
    /// The platform refused the step or did not answer.
    Failed(Error),
    /// Another person changed the status.
    StatusChanged,
}

impl From<Error> for StepError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Returns the action.
pub(crate) fn action(deps: Deps) -> Arc<dyn ActionKind> {
    let info = ActionInfo::new(
        NAME,
        "Sends a few simulated users through an experiment before its start, while it runs and while it is paused, and \
         compares what they get with what its consistency rule, exclude-if-reached and post-experiment rule say. It \
         starts and pauses the experiment itself. Use it when someone asks to test or check the consistency rules.",
    );
    let mut change = Change::in_batches(
        TestConsistency(deps),
        info,
        |row, asked, _| Box::pin(prepare(&row.deps.0.client, asked)),
        |row| &row.deps,
    );
    change.now =
        |row, test: Test, record| Box::pin(shown_now(&row.deps.0.client, test.place.experiment, record, state_of));
    change.differences = differences_in_words;
    change.report = |_, record, reply| {
        let Ok(test) = stored::<Test>(record) else { return reply };
        match &record.outcome {
            Some(Outcome::Done { .. }) => words::report(reply, &test, &reached(record, "course")),
            Some(_) => words::seen_so_far(reply, &test, &reached(record, "course")),
            None => reply,
        }
    };
    Arc::new(change)
}

async fn prepare(client: &UpgradeClient, asked: TestConsistencyParameters) -> Result<Proposal, PrepareError> {
    let fits = |state| Phase::of(state).is_some();
    let name = access::named_in(client, asked.experiment.as_ref(), fits, testing::none_to_test).await?;
    let request_with = |name: &str| format!("test the consistency rules of {name}");
    let view = access::experiment_by_current_names(client, name, request_with).await?.view;
    let refused = |reply| access::refused(ErrorKind::Execution, reply);
    let test = plan_test(&view).map_err(refused)?;
    let others = client.all().await?;
    if let Some(other) = others.iter().find(|other| shares_users(&view, other)) {
        return Err(refused(words::shared(&view.name, other)));
    }
    let enrolled = client.enrollment(&[view.id]).await.ok().and_then(|all| all.into_iter().next());
    if let Some(reply) = words::ends_too_soon(&view, &test, enrolled.as_ref()) {
        return Err(refused(reply));
    }
    let card = words::card(&test, enrolled.map(|enrolled| enrolled.users));
    let users = u32::try_from(test.visitors.len()).unwrap_or(u32::MAX);
    let mut scope = scope::test(&view, users);
    scope.targets.extend(scope::of(&view).targets);
    let mut preconditions = state_of(&view);
    let others = Surroundings::of(others.iter().map(Outline::from), Some(view.id));
    Claims::about(&view).note(&others, &mut preconditions);
    Ok(Proposal { preconditions, scope, ..Proposal::new(test, card) })
}

#[async_trait]
impl Batches for TestConsistency {
    async fn next(&self, record: &ActionRecord, interrupted: bool) -> Batch {
        let test: Test = match stored(record) {
            Ok(test) => test,
            Err(outcome) => return Batch::Ended(outcome),
        };
        let mut progress: TestProgress = reached(record, "course");
        let steps = test.steps();
        let Some(step) = steps.get(progress.next).copied() else { return Batch::Ended(done_outcome(&test, &progress)) };
        let made = match step {
            Step::Enter(phase) => self.enter(&test, phase).await,
            Step::Ask(phase) => {
                self.ask(&test, phase).await.map(|observations| progress.observations.extend(observations))
            }
            Step::Mark(phase) => self.mark(&test, phase, &progress.observations, interrupted).await,
        };
        match made {
            Ok(()) => progress.next += 1,
            Err(error) => return self.end_after_error(record, &test, &progress, error, interrupted).await,
        }
        match steps.get(progress.next) {
            Some(next) => Batch::Made(Progress {
                done: test.lines(progress.next) as u64,
                total: test.lines(steps.len()) as u64,
                note: words::under_way(*next),
                data: json!(progress),
            }),
            None => Batch::Ended(done_outcome(&test, &progress)),
        }
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
        let progress: TestProgress = reached(record, "course");
        let summary = words::stopped(&test, &progress, by);
        Outcome::Done { result: json!({ "name": test.experiment_name, "course": progress }), summary }
    }
}

impl TestConsistency {
    /// Moves the experiment from the previous phase to this one, with the call that applies *exclude if
    /// reached*.
    async fn enter(&self, test: &Test, phase: Phase) -> Result<(), StepError> {
        let (id, to) = (test.place.experiment, phase.status());
        let before = Phase::ALL.into_iter().rfind(|before| *before < phase);
        match self.status(id).await? {
            present if present == to => return Ok(()),
            present if before.is_some_and(|before| before.status() == present) => {}
            _ => return Err(StepError::StatusChanged),
        }
        let not_sent = |error: &Error| matches!(error, Error::Unavailable { .. });
        match simulated::with_retries(not_sent, || self.0.client.set_state(id, to, None)).await {
            Ok(_) => Ok(()),
            Err(Error::NoAnswer { .. }) => Err(StepError::NoAnswer),
            // The change may have been made despite the error.
            Err(_) if self.status(id).await? == to => Ok(()),
            Err(Error::Unclear { .. }) => Err(StepError::NoAnswer),
            Err(error) => Err(error.into()),
        }
    }

    async fn ask(&self, test: &Test, phase: Phase) -> Result<Vec<Observation>, StepError> {
        let everybody: Vec<_> =
            test.visitors_in(phase).map(|(visitor, who)| self.observe(test, phase, visitor, who)).collect();
        let observations = try_join_all(everybody).await?;
        // The observations count only if the experiment stayed in this phase throughout.
        match self.status(test.place.experiment).await? {
            status if status == phase.status() => Ok(observations),
            _ => Err(StepError::StatusChanged),
        }
    }

    async fn observe(&self, test: &Test, phase: Phase, visitor: usize, who: &Visitor) -> Result<Observation, Error> {
        let got = simulated::ask(&self.0.client, &test.place, &who.user, &test.introduction(who)).await?;
        Ok(Observation { phase, visitor, got: got.map(|received| received.code) })
    }

    /// Marks the visitors one after the other, since the first one of a group draws for the others.
    async fn mark(
        &self,
        test: &Test,
        phase: Phase,
        observations: &[Observation],
        interrupted: bool,
    ) -> Result<(), StepError> {
        let enrolled: HashSet<String> = match interrupted {
            false => HashSet::new(),
            true => self
                .0
                .client
                .enrolled(test.place.experiment)
                .await?
                .into_iter()
                .map(|enrolled| enrolled.user_id)
                .collect(),
        };
        for (visitor, who) in test.visitors_in(phase).filter(|(_, who)| !enrolled.contains(&who.user)) {
            let observation =
                observations.iter().find(|observation| observation.phase == phase && observation.visitor == visitor);
            let code = observation.and_then(|observation| observation.got.as_deref());
            match simulated::mark(&self.0.client, &test.place, &who.user, code).await {
                Ok(_) => {}
                Err(Error::NoAnswer { .. } | Error::Unclear { .. }) => return Err(StepError::NoAnswer),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    async fn status(&self, id: ExperimentId) -> Result<Status, Error> {
        Ok(self.0.client.single(id).await?.view.state)
    }

    /// Ends the batch after a step that did not succeed: either it is read back later, or the test ends
    /// and reports the present status of the experiment.
    async fn end_after_error(
        &self,
        record: &ActionRecord,
        test: &Test,
        progress: &TestProgress,
        error: StepError,
        interrupted: bool,
    ) -> Batch {
        let late = record.intent_at.is_some_and(|began| self.0.clock.now() > began + MAX_DURATION);
        let (kind, why) = match error {
            StepError::NoAnswer if !late => return Batch::NotNow,
            StepError::NoAnswer => (ErrorKind::Network, words::no_answer()),
            StepError::Failed(error) => {
                let unavailable = matches!(error, Error::Unavailable { .. } | Error::NoAnswer { .. });
                if interrupted && unavailable && !late {
                    return Batch::NotNow;
                }
                (access::kind(&error), testing::trouble(&error))
            }
            StepError::StatusChanged => (ErrorKind::Execution, words::changed_meanwhile()),
        };
        tracing::warn!(action.id = %record.id, "A test of consistency rules is aborted");
        let status = self.status(test.place.experiment).await.ok();
        Batch::Ended(failed(kind, words::broken_off(test, progress, why, status)))
    }
}

fn done_outcome(test: &Test, progress: &TestProgress) -> Outcome {
    let summary: Text = words::summary(test, progress);
    Outcome::Done { result: json!({ "name": test.experiment_name, "course": progress }), summary }
}

/// Plans the test, or returns the refusal.
fn plan_test(view: &View) -> Result<Test, Reply> {
    if view.assignment_unit == "within-subjects" {
        return Err(words::within_subjects(&view.name));
    }
    let Some(first) = Phase::of(view.state) else { return Err(words::not_from(&view.name, view.state)) };
    if let (Phase::Before, Err(Objection::NotReady(problems))) = (first, rules::check(view, Status::Enrolling)) {
        return Err(refusals::not_ready(&view.name, &problems));
    }
    let Some((site, target)) = points::first(view) else { return Err(testing::no_visitable_point(&view.name)) };
    let mut here = view.decision_points.iter().filter(|p| p.site == site && p.target.as_ref() == Some(&target));
    let early_stay_out = here.any(|point| point.exclude_if_reached);
    let Some(rules) = Rules::of(view, early_stay_out) else { return Err(words::unknown_rules(view)) };
    if view.filter_mode == "excludeAll" {
        return Err(words::only_listed(&view.name));
    }
    let run = simulated::run();
    let visitors = expected::visitors(rules.by_group, first, |nth| simulated::name(&run, nth));
    let place = VisitTarget::of(view, (site, target));
    Ok(Test { experiment_name: view.name.clone(), place, run, first, rules, visitors })
}

/// Returns true if the other experiment is live and shares a point with this one, so that each user
/// takes part in only one of the two.
fn shares_users(view: &View, other: &View) -> bool {
    let same_point = || {
        let mut points = other.decision_points.iter();
        points.any(|there| view.decision_points.iter().any(|p| p.site == there.site && p.target == there.target))
    };
    other.id != view.id && other.state.is_live() && same_point()
}

/// Returns the values that must still be as shown on the card: the status, and everything that decides
/// the conditions.
fn state_of(view: &View) -> Value {
    json!({
        "status": view.state, "conditions": conditions_of(view), "unit": view.assignment_unit, "group": view.group,
        "consistency": view.consistency_rule, "post_rule": view.post_experiment_rule, "revert_to": view.revert_to,
        "filter_mode": view.filter_mode, "points": view.decision_points,
    })
}
