//! `update_experiment_status`: starts, schedules, stops, resumes, cancels or archives one experiment or
//! several.

use std::sync::Arc;

use async_trait::async_trait;
use countersign_core::{
    clock::Clock,
    reply::{Card, Fact, Text},
};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, ErrorKind, Form, Outcome, Performed, PrepareError, Probed, Proposal, Reader,
    Recovery, Refusal, Undo,
};
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    SendWindow, cannot_read_back,
    card_differences::differences_in_words,
    change, end_date,
    expects::Expects,
    fact, failed, is_gone, missing, moment, non_blank, performed_with_error, read_failed,
    several::{self, BulkStatusChange, ExperimentFilter, ExperimentInput},
    stored_parameters,
    surroundings::{self, Claims, Reach},
};
use crate::{
    access, forms,
    inputs::OneOrMany,
    replies::{answers, outcomes, refusals},
    rules::{self, Objection},
    scope, summary,
    upgrade::{
        client::UpgradeClient,
        error::Error,
        experiment::{ExperimentId, View},
        status::Status,
    },
};

/// The name of the action.
pub(crate) const NAME: &str = "update_experiment_status";

/// The action `update_experiment_status`.
#[derive(Debug)]
pub struct UpdateStatus(pub Arc<UpgradeClient>, pub Arc<dyn Clock>);

/// The parameters of the action.
#[derive(Deserialize, JsonSchema)]
struct UpdateStatusParameters {
    /// The experiment, by name or id. Required.
    #[serde(default)]
    experiment: Option<String>,
    /// Several experiments, by name or id, instead of one.
    #[serde(default)]
    experiments: Option<OneOrMany<ExperimentInput>>,
    /// A filter for several experiments, instead of one.
    #[serde(default)]
    all: Option<ExperimentFilter>,
    /// The new status: `enrolling` (start, resume), `enrollmentComplete` (stop, pause), `cancelled` (cancel, final),
    /// `archived` (only from cancelled), `scheduled` (starts at `start_on`) or `inactive` (withdraws a schedule, or resets a
    /// paused experiment). Required.
    #[serde(default)]
    status: Option<String>,
    /// The start, with `scheduled`: such as `2027-01-15 09:00` or `Friday 9:00`. To
    /// move a scheduled start, give the new time.
    #[serde(default)]
    start_on: Option<String>,
    /// The end, with `enrolling` or `scheduled`: such as `2027-02-15` or `Friday`. The last day is included.
    #[serde(default)]
    end_on: Option<String>,
    /// Set by an undo.
    #[serde(default)]
    #[schemars(skip)]
    expects: Option<Expects>,
}

/// The stored parameters for one experiment.
#[derive(Serialize, Deserialize)]
struct StatusChange {
    experiment: ExperimentId,
    experiment_name: String,
    status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start_on: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end_on: Option<String>,
}

/// The stored parameters, for one experiment or several.
#[derive(Deserialize)]
#[serde(untagged)]
enum StoredParameters {
    Single(StatusChange),
    Bulk(BulkStatusChange),
}

#[async_trait]
impl ActionKind for UpdateStatus {
    fn info(&self) -> ActionInfo {
        ActionInfo::new(
            NAME,
            "Starts, schedules, stops (pauses), resumes, cancels or archives an experiment, or several at once. Use it when \
         someone asks to start, run, schedule, stop, pause, resume, cancel or archive experiments.",
        )
    }

    fn schema(&self) -> Value {
        access::schema::<UpdateStatusParameters>()
    }

    fn is_editable(&self, parameters: &Value) -> bool {
        parameters.get("experiments").is_none()
    }

    async fn form(&self, parameters: &Value) -> Option<Form> {
        self.is_editable(parameters).then(|| forms::status(parameters))
    }

    async fn prepare(&self, parameters: &Value, reader: Option<&Reader>) -> Result<Proposal, PrepareError> {
        self.prepare_in(parameters, &moment::time_zone(reader.and_then(|reader| reader.zone.as_deref()))).await
    }

    async fn preconditions(&self, record: &ActionRecord) -> Result<Value, Outcome> {
        let change = match stored_parameters(record)? {
            StoredParameters::Single(change) => change,
            StoredParameters::Bulk(several) => {
                let state = Box::pin(several::current_state(&self.0, record, &several)).await;
                return state.map_err(|error| read_failed(&error));
            }
        };
        match self.0.single(change.experiment).await {
            Ok(experiment) => {
                let state = relevant_state(&experiment.view, change.status);
                Claims::about(&experiment.view).note_now(&self.0, record, state).await
            }
            Err(Error::NotFound { .. }) => Err(failed(ErrorKind::NotFound, outcomes::gone(&change.experiment_name))),
            Err(error) => Err(read_failed(&error)),
        }
    }

    fn differences(&self, record: &ActionRecord, found: &Value) -> Vec<Fact> {
        differences_in_words(record, found)
    }

    fn already(&self, record: &ActionRecord, found: &Value) -> Option<Text> {
        let Ok(StoredParameters::Single(change)) = stored_parameters(record) else { return None };
        let is_whole = change.start_on.is_none() && change.end_on.is_none();
        (is_whole && found["status"] == json!(change.status))
            .then(|| outcomes::already(&change.experiment_name, change.status.display()))
    }

    async fn perform(&self, record: &ActionRecord) -> Performed {
        let change = match stored_parameters(record) {
            Ok(StoredParameters::Single(change)) => change,
            Ok(StoredParameters::Bulk(several)) => {
                return Box::pin(several::perform(&self.0, record, &several)).await;
            }
            Err(outcome) => return Performed::Ended(outcome),
        };
        if let Some(end) = &change.end_on
            && let Err(error) = Box::pin(end_date::set(&self.0, change.experiment, end)).await
        {
            return match is_gone(&self.0, change.experiment, &error).await {
                true => Performed::Ended(failed(
                    ErrorKind::NotFound,
                    outcomes::not_found_for_change(&change.experiment_name),
                )),
                false => performed_with_error(self, record, error).await,
            };
        }
        match self.0.set_state(change.experiment, change.status, change.start_on.as_deref()).await {
            Ok(_) => Performed::Ended(Outcome::done(record, result(&change))),
            Err(error) => match is_gone(&self.0, change.experiment, &error).await {
                true => Performed::Ended(failed(
                    ErrorKind::NotFound,
                    outcomes::not_found_for_change(&change.experiment_name),
                )),
                false => performed_with_error(self, record, error).await,
            },
        }
    }

    fn recovery(&self) -> Recovery {
        // Setting the same status again changes nothing.
        Recovery::Probe { in_flight: SendWindow::in_flight(&self.0), repeatable: true }
    }

    /// Reads back. The change happened if the experiment has the new status, since it had another one
    /// before.
    async fn probe(&self, record: &ActionRecord) -> Probed {
        let change = match stored_parameters(record) {
            Ok(StoredParameters::Single(change)) => change,
            Ok(StoredParameters::Bulk(several)) => {
                let probed = Box::pin(several::probe(&self.0, record, &several)).await;
                return probed.unwrap_or_else(|error| cannot_read_back(&error));
            }
            Err(_) => return Probed::CannotTell { evidence: outcomes::unreadable_record() },
        };
        let is_changed = |now: &View| {
            now.state == change.status
                && (change.start_on.is_none() || now.start_on == change.start_on)
                && (change.end_on.is_none() || now.end_on == change.end_on)
        };
        match self.0.single(change.experiment).await {
            Ok(now) if is_changed(&now.view) => Probed::Happened(Outcome::done(record, result(&change))),
            Ok(now) if record.preconditions["status"] == json!(now.view.state) => match &change.end_on {
                // Its end date is set first.
                Some(end) if now.view.end_on.as_ref() == Some(end) => Probed::Unfinished {
                    evidence: outcomes::only_the_end_date(
                        &now.view.name,
                        moment::moment_text(end),
                        now.view.state.display(),
                    ),
                },
                _ => Probed::DidNotHappen,
            },
            Ok(now) => Probed::Otherwise { evidence: outcomes::other_status(&now.view.name, now.view.state.display()) },
            Err(Error::NotFound { .. }) => {
                Probed::Otherwise { evidence: outcomes::gone_on_read_back(&change.experiment_name) }
            }
            Err(error) => cannot_read_back(&error),
        }
    }
}

impl UpdateStatus {
    /// Prepares the change for a person in this time zone.
    async fn prepare_in(&self, parameters: &Value, zone: &TimeZone) -> Result<Proposal, PrepareError> {
        let asked: UpdateStatusParameters = access::parameters(parameters)?;
        let to = match non_blank(asked.status.as_ref()) {
            None => non_blank(asked.start_on.as_ref()).map(|_| Status::Scheduled),
            Some(words) => Some(Status::asked_for(words).ok_or_else(|| {
                let allowed = Status::REQUESTED.map(Status::display);
                access::refused(ErrorKind::Validation, refusals::not_one_of("status", words, &allowed))
            })?),
        };
        if let Some(to) = to.filter(|to| *to != Status::Scheduled) {
            let verb = rules::verb(Status::Inactive, to);
            match (&asked.experiments, &asked.all) {
                (Some(names), _) => {
                    let named = Box::pin(several::find_named(&self.0, names, verb, to)).await?;
                    return Box::pin(several::propose(&self.0, named, to, asked.expects.as_ref())).await;
                }
                (None, Some(which)) => {
                    let all = self.0.all().await.map_err(access::unavailable)?;
                    let matching = several::matching_experiments(&all, which, self.1.now())?;
                    return Box::pin(several::propose(&self.0, matching, to, None)).await;
                }
                (None, None) => {}
            }
        }
        let Some(name) = non_blank(asked.experiment.as_ref()) else {
            let mut all = vec![match to {
                Some(to) => {
                    let fits = |from| rules::may_become(from, to);
                    access::which_experiment_in(&self.0, fits, || refusals::none_may_become(to)).await?
                }
                None => access::which_experiment(&self.0).await,
            }];
            if to.is_none() {
                all.push(missing("status", "What should the new status be?", Vec::new()));
            }
            return Err(Refusal::Missing(all).into());
        };
        let verb = to.map_or("show", |to| rules::verb(Status::Inactive, to));
        let request_with = |name: &str| format!("{verb} {name}");
        let experiment = match to {
            Some(Status::Cancelled) => access::experiment_by_current_names(&self.0, name, request_with).await?.view,
            _ => access::experiment(&self.0, name, request_with).await?.view,
        };
        let Some(to) = to else {
            let options =
                rules::possible(experiment.state).into_iter().map(|s| rules::verb(experiment.state, s).into());
            let question =
                format!("“{}” is {}. What should its new status be?", experiment.name, experiment.state.display());
            return Err(Refusal::Missing(vec![missing("status", question, options.collect())]).into());
        };
        if let Err(objection) = rules::check(&experiment, to) {
            let (name, kind) = (&experiment.name, ErrorKind::Execution);
            return Err(access::refused(
                kind,
                match objection {
                    Objection::Already => refusals::already(name, to),
                    Objection::NotReady(problems) => refusals::not_ready(name, &problems),
                    Objection::NotPossible(possible) => refusals::not_possible(name, experiment.state, to, &possible),
                },
            ));
        }
        let start_on = match (to, non_blank(asked.start_on.as_ref())) {
            (Status::Scheduled, Some(moment)) => Some(moment::moment(moment, self.1.now(), zone)?),
            (Status::Scheduled, None) => {
                let question =
                    format!("When should “{}” start? For example Friday 9:00, or 2027-01-15 09:00.", experiment.name);
                return Err(Refusal::Missing(vec![missing("start_on", question, Vec::new())]).into());
            }
            _ => None,
        };
        let end_on = end_date::resolve(
            non_blank(asked.end_on.as_ref()),
            &experiment,
            (to, start_on.as_deref()),
            (self.1.now(), zone),
        )?;
        if to == Status::Scheduled && experiment.state == to && experiment.start_on == start_on && end_on.is_none() {
            return Err(access::refused(ErrorKind::Execution, refusals::already(&experiment.name, to)));
        }
        if let Some(expects) = &asked.expects {
            expects.check(&experiment, None)?;
        }
        let reach = Reach::read(&self.0, &experiment).await;
        let warnings = if is_start(to) { reach.start_warnings(&self.0, &experiment).await? } else { Vec::new() };
        let mut preconditions = relevant_state(&experiment, to);
        reach.note(&Claims::about(&experiment), &mut preconditions);
        surroundings::note_warnings(&warnings, &mut preconditions);
        let mut card = card(&experiment, to, start_on.as_deref().map(|start| (start, zone)), warnings);
        if let Some(end) = &end_on {
            card.done = format!("{} It ends on {}.", card.done, moment::moment_in_zone(end, zone));
            card.facts.push(match &experiment.end_on {
                Some(before) => change("Ends", moment::moment_text(before), moment::moment_text(end)),
                None => fact("Ends", moment::moment_text(end)),
            });
        }
        card.facts.extend(reach.facts(&experiment));
        card.notes.extend(reach.age());
        Ok(Proposal {
            parameters: json!(StatusChange {
                experiment: experiment.id,
                experiment_name: experiment.name.clone(),
                status: to,
                start_on: start_on.clone(),
                end_on: end_on.clone(),
            }),
            preconditions,
            card,
            undo: undo(&experiment, to),
            scope: [(scope::START, &start_on), (scope::END, &end_on)]
                .into_iter()
                .fold(scope::of(&experiment).measure(scope::STATUS, json!(to)), |scope, (measure, moment)| {
                    moment.iter().fold(scope, |scope, at| scope.measure(measure, &**at))
                }),
        })
    }
}

/// Returns the values that the card shows: the status, and for a start also the design that is started.
fn relevant_state(experiment: &View, to: Status) -> Value {
    match to {
        Status::Enrolling | Status::Scheduled => json!({
            "status": experiment.state,
            "start_on": experiment.start_on,
            "conditions": rules::weights_in_words(&experiment.conditions),
            "decision_points": points(experiment),
        }),
        _ => json!({ "status": experiment.state }),
    }
}

fn result(change: &StatusChange) -> Value {
    json!({ "id": change.experiment, "name": change.experiment_name, "status": change.status })
}

fn points(experiment: &View) -> String {
    experiment.decision_points.iter().map(|point| point.words()).collect::<Vec<_>>().join(", ")
}

/// Returns the undo that the rules for status changes allow. A start is undone by a stop, since a running
/// experiment cannot become `inactive`.
fn undo(experiment: &View, to: Status) -> Option<Undo> {
    let (back, label) = match (experiment.state, to) {
        (_, Status::Enrolling) => (Status::EnrollmentComplete, "Undo: stop experiment"),
        (Status::Inactive, Status::Scheduled) => (Status::Inactive, "Undo: unschedule experiment"),
        (Status::Scheduled, Status::Scheduled) => (Status::Scheduled, "Undo: restore earlier date"),
        (Status::Enrolling, Status::EnrollmentComplete) => (Status::Enrolling, "Undo: resume experiment"),
        _ => return None,
    };
    let mut parameters = json!({ "experiment": experiment.id, "status": back, "expects": Expects::at(to) });
    if back == Status::Scheduled {
        parameters["start_on"] = json!(experiment.start_on);
    }
    Some(Undo { name: "update_experiment_status".to_owned(), parameters, label: label.to_owned() })
}

/// Returns true if the experiment starts, now or later.
fn is_start(to: Status) -> bool {
    matches!(to, Status::Enrolling | Status::Scheduled)
}

fn card(experiment: &View, to: Status, starts: Option<(&str, &TimeZone)>, mut warnings: Vec<Text>) -> Card {
    let name = &experiment.name;
    let start_on = starts.map(|(start, _)| start);
    let start = starts.map(|(start, zone)| moment::moment_in_zone(start, zone)).unwrap_or_default();
    let (title, approve, done) = match (experiment.state, to) {
        (Status::EnrollmentComplete, Status::Enrolling) => {
            (format!("Resume “{name}”?"), "Resume experiment", format!("Resumed “{name}”: it is running again."))
        }
        (_, Status::Enrolling) => {
            (format!("Start “{name}”?"), "Start experiment", format!("Started “{name}”: it is running now."))
        }
        (_, Status::EnrollmentComplete) => {
            (format!("Stop “{name}”?"), "Stop experiment", format!("Stopped “{name}”: no new users are enrolled."))
        }
        (_, Status::Archived) => {
            (format!("Archive “{name}”?"), "Archive experiment", format!("Archived “{name}”: its results are kept."))
        }
        (Status::Scheduled, Status::Scheduled) => (
            format!("Move the start of “{name}”?"),
            "Move the start",
            format!("Moved the start of “{name}” to {start}."),
        ),
        (_, Status::Scheduled) => {
            (format!("Schedule “{name}”?"), "Schedule experiment", format!("Scheduled “{name}”: it starts on {start}."))
        }
        (Status::EnrollmentComplete | Status::Preview, Status::Inactive) => (
            format!("Set “{name}” back to inactive?"),
            "Set to inactive",
            format!("Set “{name}” back to inactive: nobody gets a condition until someone starts it."),
        ),
        (_, Status::Inactive) => (
            format!("Unschedule “{name}”?"),
            "Unschedule experiment",
            format!("Unscheduled “{name}”: it stays inactive until someone starts it."),
        ),
        _ => (
            format!("Cancel “{name}”?"),
            "Cancel experiment",
            format!("Cancelled “{name}”: nobody gets its conditions anymore."),
        ),
    };
    let status = match experiment.state == to {
        true => fact("Status", to.display()),
        false => change("Status", experiment.state.display(), to.display()),
    };
    let mut facts = vec![status, fact("Context", Text::new().code(experiment.context()))];
    let mut notes = Vec::new();
    match to {
        Status::Enrolling | Status::Scheduled => {
            if let Some(moment) = start_on {
                let before = experiment.start_on.as_deref().filter(|_| experiment.state == Status::Scheduled);
                facts.push(match before {
                    Some(before) => change("Starts", moment::moment_text(before), moment::moment_text(moment)),
                    None => fact("Starts", moment::moment_text(moment)),
                });
                notes.push(Text::from("UpGrade starts it automatically if its scheduler is enabled."));
            }
            facts.push(fact("Conditions", rules::weights_in_words(&experiment.conditions)));
            facts.push(fact("Decision points", points(experiment)));
        }
        Status::EnrollmentComplete => {
            facts.push(fact("After enrollment ends", answers::afterwards(&summary::post_rule(experiment))));
            notes.push(Text::from(
                "Stopping only pauses it, so it can be resumed. To end it permanently, ask me to cancel it.",
            ));
        }
        Status::Archived => notes.push(Text::from("Its design and results are kept. It can't be started again here.")),
        Status::Inactive if experiment.state == Status::EnrollmentComplete => {
            warnings.push(Text::from("Enrolled users get the application's default too."));
            notes.push(Text::from("Enrollments are kept. If it is started again, users keep their condition."));
        }
        Status::Inactive => {}
        _ => {
            warnings.push(Text::from("A cancelled experiment can't be started again here."));
        }
    }
    Card {
        title,
        facts,
        warnings,
        notes,
        approve: approve.to_owned(),
        reject: Card::REJECT.to_owned(),
        done,
        irreversible: to == Status::Cancelled,
        ..Card::default()
    }
}
