//! `update_experiment_status`: starts, schedules, stops, resumes, cancels or archives one experiment or
//! several.

use std::sync::Arc;

use countersign_capabilities::rows::{Change, Settle, stored};
use countersign_core::reply::{Card, Fact, Text};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, ErrorKind, Outcome, Performed, PrepareError, Probed, Proposal, Refusal, Undo,
};
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    SendWindow, cannot_read_back,
    card_differences::differences_in_words,
    dates, end_date,
    expects::Expects,
    missing, non_blank,
    one::{self, OneExperiment, propose},
    read_failed,
    several::{self, BulkStatusChange, ExperimentFilter, ExperimentInput},
    surroundings::{self, Reach},
    zone,
};
use crate::{
    access::{self, Deps},
    forms,
    inputs::OneOrMany,
    replies::{
        answers::{self, capital},
        outcomes, refusals,
    },
    rules::{self, Objection},
    scope, summary,
    upgrade::{
        experiment::{ExperimentId, View},
        status::Status,
    },
};

/// The name of the action.
pub(crate) const NAME: &str = "update_experiment_status";

/// The parameters of the action.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct UpdateStatusParameters {
    /// The experiment, by name or id. Required.
    experiment: Option<String>,
    /// Several experiments, by name or id, instead of one.
    experiments: Option<OneOrMany<ExperimentInput>>,
    /// A filter for several experiments, instead of one.
    all: Option<ExperimentFilter>,
    /// The new status: `enrolling` (start, resume), `enrollmentComplete` (stop, pause), `cancelled` (cancel, final),
    /// `archived` (only from cancelled), `scheduled` (starts at `start_on`) or `inactive` (withdraws a schedule, or resets a
    /// paused experiment). Required.
    status: Option<String>,
    /// The start, with `scheduled`: such as `2027-01-15 09:00` or `Friday 9:00`. To
    /// move a scheduled start, give the new time.
    start_on: Option<String>,
    /// The end, with `enrolling` or `scheduled`: such as `2027-02-15` or `Friday`. The last day is included.
    end_on: Option<String>,
    /// Set by an undo.
    #[schemars(skip)]
    expects: Option<Expects>,
}

/// The stored parameters for one experiment.
#[derive(Serialize, Deserialize)]
struct StatusChange {
    experiment: ExperimentId,
    experiment_name: String,
    status: Status,
    start_on: Option<String>,
    end_on: Option<String>,
}

/// The stored parameters, for one experiment or several.
#[derive(Deserialize)]
#[serde(untagged)]
enum StoredParameters {
    Single(StatusChange),
    Bulk(BulkStatusChange),
}

impl OneExperiment for StatusChange {
    fn target(&self) -> (ExperimentId, &str) {
        (self.experiment, &self.experiment_name)
    }

    /// Returns the status, and for a start also the design that is started.
    fn state(&self, experiment: &View) -> Value {
        match self.status.is_start() {
            true => json!({
                "status": experiment.state,
                "start_on": experiment.start_on,
                "conditions": rules::weights_in_words(&experiment.conditions),
                "decision_points": experiment.places().join(", "),
            }),
            false => json!({ "status": experiment.state }),
        }
    }

    fn result(&self) -> Value {
        json!({ "id": self.experiment, "name": self.experiment_name, "status": self.status })
    }

    /// The change happened if the experiment has the new status, since it had another one before.
    fn read_back(&self, record: &ActionRecord, now: &View) -> Probed {
        let is_changed = now.state == self.status
            && (self.start_on.is_none() || now.start_on == self.start_on)
            && (self.end_on.is_none() || now.end_on == self.end_on);
        let (name, status) = (&now.name, now.state.display());
        match &self.end_on {
            _ if is_changed => Probed::Happened(Outcome::done(record, self.result())),
            _ if record.preconditions["status"] != json!(now.state) => {
                Probed::Otherwise { evidence: outcomes::other_status(name, status) }
            }
            // Its end date is set first.
            Some(end) if now.end_on.as_ref() == Some(end) => {
                Probed::Unfinished { evidence: outcomes::only_the_end_date(name, dates::moment_text(end), status) }
            }
            _ => Probed::DidNotHappen,
        }
    }
}

/// Returns the action.
pub(crate) fn action(deps: Deps) -> Arc<dyn ActionKind> {
    let info = ActionInfo::new(
        NAME,
        "Starts, schedules, stops (pauses), resumes, cancels or archives an experiment, or several at once. Use it when \
         someone asks to start, run, schedule, stop, pause, resume, cancel or archive experiments.",
    );
    let mut change = Change::new(
        deps,
        info,
        |row, asked, reader| Box::pin(async move { prepare(&row.deps, asked, &zone(reader)).await }),
        |row, change, record| Box::pin(send((row, &row.deps), change, record)),
    );
    change.now = |row, change, record| Box::pin(current(&row.deps, change, record));
    change.settle = Settle::ReadBack {
        in_flight: |deps| SendWindow::in_flight(&deps.client),
        repeatable: true, // setting the same status again changes nothing
        probe: |row, change, record| Box::pin(probe(&row.deps, change, record)),
    };
    change.form = Some(|_, given| Box::pin(async move { Some(forms::status(given)) }));
    change.is_editable = |parameters| parameters.get("experiments").is_none();
    change.differences = differences_in_words;
    change.already = |record, found| {
        let Ok(StoredParameters::Single(change)) = stored(record) else { return None };
        let is_whole = change.start_on.is_none() && change.end_on.is_none();
        (is_whole && found["status"] == json!(change.status))
            .then(|| outcomes::already(&change.experiment_name, change.status.display()))
    };
    Arc::new(change)
}

async fn current(deps: &Deps, change: StoredParameters, record: &ActionRecord) -> Result<Value, Outcome> {
    match change {
        StoredParameters::Single(change) => one::current(&deps.client, &change, record).await,
        StoredParameters::Bulk(several) => {
            let state = Box::pin(several::current_state(&deps.client, record, &several)).await;
            state.map_err(|error| read_failed(&error))
        }
    }
}

async fn send((row, deps): (&dyn ActionKind, &Deps), change: StoredParameters, record: &ActionRecord) -> Performed {
    let client = &deps.client;
    let change = match change {
        StoredParameters::Single(change) => change,
        StoredParameters::Bulk(several) => return Box::pin(several::perform(client, record, &several)).await,
    };
    let sent = async {
        if let Some(end) = &change.end_on {
            Box::pin(end_date::set(client, change.experiment, end)).await?;
        }
        client.set_state(change.experiment, change.status, change.start_on.as_deref()).await.map(|_| ())
    };
    one::ended((row, client), &change, record, sent.await).await
}

async fn probe(deps: &Deps, change: StoredParameters, record: &ActionRecord) -> Probed {
    match change {
        StoredParameters::Single(change) => one::probe(&deps.client, &change, record).await,
        StoredParameters::Bulk(several) => {
            let probed = Box::pin(several::probe(&deps.client, record, &several)).await;
            probed.unwrap_or_else(|error| cannot_read_back(&error))
        }
    }
}

async fn prepare(
    Deps { client, clock }: &Deps,
    asked: UpdateStatusParameters,
    zone: &TimeZone,
) -> Result<Proposal, PrepareError> {
    let now = clock.now();
    let to = match non_blank(asked.status.as_ref()) {
        None => non_blank(asked.start_on.as_ref()).map(|_| Status::Scheduled),
        Some(words) => Some(Status::asked_for(words).ok_or_else(|| {
            let allowed = Status::REQUESTED.map(Status::display);
            access::invalid(refusals::not_one_of("status", words, &allowed))
        })?),
    };
    if let Some(to) = to.filter(|to| *to != Status::Scheduled) {
        match (&asked.experiments, &asked.all) {
            (Some(names), _) => {
                let named = Box::pin(several::find_named(client, names, to)).await?;
                return Box::pin(several::propose(client, named, to, asked.expects.as_ref())).await;
            }
            (None, Some(which)) => {
                let all = client.all().await?;
                let matching = several::matching_experiments(&all, which, now)?;
                return Box::pin(several::propose(client, matching, to, None)).await;
            }
            (None, None) => {}
        }
    }
    let name = match (non_blank(asked.experiment.as_ref()), to) {
        (Some(name), _) => name,
        (None, Some(to)) => {
            let fits = |from| rules::may_become(from, to);
            access::named_in(client, None, fits, || refusals::none_may_become(to)).await?
        }
        (None, None) => {
            let status = missing("status", "What should the new status be?", Vec::new());
            return Err(Refusal::Missing(vec![access::which_experiment(client).await, status]).into());
        }
    };
    let experiment = several::find(client, name, to).await?;
    let Some(to) = to else {
        let options = rules::possible(experiment.state).into_iter().map(|s| rules::verb(experiment.state, s).into());
        let question =
            format!("“{}” is {}. What should its new status be?", experiment.name, experiment.state.display());
        return Err(access::ask("status", question, options.collect()));
    };
    rules::check(&experiment, to).map_err(|objection| {
        let name = &experiment.name;
        let reply = match objection {
            Objection::Already => refusals::already(name, to),
            Objection::NotReady(problems) => refusals::not_ready(name, &problems),
            Objection::NotPossible(possible) => refusals::not_possible(name, experiment.state, to, &possible),
        };
        access::refused(ErrorKind::Execution, reply)
    })?;
    let start_on = match (to, non_blank(asked.start_on.as_ref())) {
        (Status::Scheduled, Some(moment)) => Some(dates::moment(moment, now, zone)?),
        (Status::Scheduled, None) => {
            let question =
                format!("When should “{}” start? For example Friday 9:00, or 2027-01-15 09:00.", experiment.name);
            return Err(access::ask("start_on", question, Vec::new()));
        }
        _ => None,
    };
    let end_on =
        end_date::resolve(non_blank(asked.end_on.as_ref()), &experiment, (to, start_on.as_deref()), (now, zone))?;
    if to == Status::Scheduled && experiment.state == to && experiment.start_on == start_on && end_on.is_none() {
        return Err(access::refused(ErrorKind::Execution, refusals::already(&experiment.name, to)));
    }
    if let Some(expects) = &asked.expects {
        expects.check(&experiment, None)?;
    }
    let reach = Reach::read(client, &experiment).await;
    let warnings = if to.is_start() { reach.start_warnings(client, &experiment).await? } else { Vec::new() };
    let mut card = card(&experiment, to, start_on.as_deref().map(|start| (start, zone)), warnings);
    if let Some(end) = &end_on {
        card.done = format!("{} It ends on {}.", card.done, dates::moment_in_zone(end, zone));
        card.facts.push(match &experiment.end_on {
            Some(before) => Fact::change("Ends", dates::moment_text(before), dates::moment_text(end)),
            None => Fact::new("Ends", dates::moment_text(end)),
        });
    }
    let (id, undo) = (experiment.id, undo(&experiment, to));
    let change =
        StatusChange { experiment: id, experiment_name: experiment.name.clone(), status: to, start_on, end_on };
    let mut proposal = propose(&experiment, &reach, &change, card);
    surroundings::note_warnings(&proposal.card.warnings, &mut proposal.preconditions);
    let moments = [(scope::START, change.start_on), (scope::END, change.end_on)];
    let scope =
        moments.into_iter().fold(proposal.scope.measure(scope::STATUS, json!(to)), |scope, (measure, moment)| {
            moment.iter().fold(scope, |scope, at| scope.measure(measure, &**at))
        });
    Ok(Proposal { undo, scope, ..proposal })
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
    Some(Undo { name: NAME.to_owned(), parameters, label: label.to_owned() })
}

fn card(experiment: &View, to: Status, starts: Option<(&str, &TimeZone)>, mut warnings: Vec<Text>) -> Card {
    let name = &experiment.name;
    let start_on = starts.map(|(start, _)| start);
    let start = starts.map(|(start, zone)| dates::moment_in_zone(start, zone)).unwrap_or_default();
    let then = match (experiment.state, to) {
        (Status::EnrollmentComplete, Status::Enrolling) => "it is running again",
        (_, Status::Enrolling) => "it is running now",
        (_, Status::EnrollmentComplete) => "no new users are enrolled",
        (_, Status::Archived) => "its results are kept",
        (_, Status::Scheduled) => &format!("it starts on {start}"),
        (_, Status::Inactive) => "it stays inactive until someone starts it",
        _ => "nobody gets its conditions anymore",
    };
    let verb = rules::verb(experiment.state, to);
    let participle = capital(to.verb(verb).map_or("changed", |verb| verb.participle));
    let verb = capital(verb);
    let (title, approve, done) = match (experiment.state, to) {
        (Status::Scheduled, Status::Scheduled) => (
            format!("Move the start of “{name}”?"),
            "Move the start",
            format!("Moved the start of “{name}” to {start}."),
        ),
        (Status::EnrollmentComplete | Status::Preview, Status::Inactive) => (
            format!("Set “{name}” back to inactive?"),
            "Set to inactive",
            format!("Set “{name}” back to inactive: nobody gets a condition until someone starts it."),
        ),
        _ => (format!("{verb} “{name}”?"), &*format!("{verb} experiment"), format!("{participle} “{name}”: {then}.")),
    };
    let status = match experiment.state == to {
        true => Fact::new("Status", to.display()),
        false => Fact::change("Status", experiment.state.display(), to.display()),
    };
    let mut facts = vec![status, Fact::new("Context", Text::new().code(experiment.context()))];
    let mut notes = Vec::new();
    match to {
        Status::Enrolling | Status::Scheduled => {
            if let Some(moment) = start_on {
                let before = experiment.start_on.as_deref().filter(|_| experiment.state == Status::Scheduled);
                facts.push(match before {
                    Some(before) => Fact::change("Starts", dates::moment_text(before), dates::moment_text(moment)),
                    None => Fact::new("Starts", dates::moment_text(moment)),
                });
                notes.push(Text::from("UpGrade starts it automatically if its scheduler is enabled."));
            }
            facts.push(Fact::new("Conditions", rules::weights_in_words(&experiment.conditions)));
            facts.push(Fact::new("Decision points", experiment.places().join(", ")));
        }
        Status::EnrollmentComplete => {
            facts.push(Fact::new("After enrollment ends", answers::afterwards(&summary::post_rule(experiment))));
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
    Card { facts, warnings, notes, irreversible: to == Status::Cancelled, ..Card::new(title, approve, done) }
}
