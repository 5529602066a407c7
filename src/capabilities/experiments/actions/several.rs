//! One change of status for several experiments: a card that lists all of them, one decision, and an
//! outcome for each.
//!
//! The requests are sent one by one. An experiment that already has the new status is skipped, so after
//! a lost answer the next attempt changes the remaining ones.

use std::sync::Arc;

use countersign_core::{
    clock::Timestamp,
    reply::{Card, Fact, Text},
};
use countersign_graph::action::{ActionRecord, ErrorKind, Outcome, Performed, PrepareError, Probed, Proposal, Undo};
use jiff::{Timestamp as Moment, tz::TimeZone};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{SendWindow, expects::Expects, failed, surroundings::SURROUNDINGS};
use crate::{
    access,
    inputs::OneOrMany,
    lookup,
    replies::{answers::capital, cautions, outcomes, reach, refusals},
    rules::{self, Objection},
    scope,
    upgrade::{
        client::UpgradeClient,
        error::Error,
        experiment::{ExperimentName, View},
        overview::{Outline, Overview},
        status::Status,
    },
};

/// The maximum number of experiments on one card.
const MAX_EXPERIMENTS: usize = 25;

/// One of several experiments, as a person or a record names it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum ExperimentInput {
    /// By name or id.
    Words(String),
    /// The stored form.
    Stored {
        /// Its id.
        id: String,
    },
}

/// A filter for experiments; a member that is left out does not limit.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct ExperimentFilter {
    /// The status, such as `completed`.
    status: Option<String>,
    /// The context.
    context: Option<String>,
    /// A tag.
    tag: Option<String>,
    /// The month in which they reached their status: `May` (the last one) or `2026-05`.
    month: Option<String>,
    /// The names of experiments that stay as they are.
    #[serde(default)]
    except: Vec<String>,
}

/// The stored parameters.
#[derive(Serialize, Deserialize)]
pub(super) struct BulkStatusChange {
    experiments: Vec<ExperimentName>,
    status: Status,
}

/// Returns the experiment that is named. `to` is its new status; before one that cannot be undone, names from memory do not
/// count.
pub(super) async fn find(client: &UpgradeClient, name: &str, to: Option<Status>) -> Result<View, PrepareError> {
    let verb = to.map_or("show", |to| rules::verb(Status::Inactive, to));
    let request_with = |name: &str| format!("{verb} {name}");
    let found = match to {
        Some(Status::Cancelled) => access::experiment_by_current_names(client, name, request_with).await?,
        _ => access::experiment(client, name, request_with).await?,
    };
    Ok(found.view)
}

/// Returns the named experiments, each once, for a change to the status `to`.
pub(super) async fn find_named(
    client: &UpgradeClient,
    given: &OneOrMany<ExperimentInput>,
    to: Status,
) -> Result<Vec<View>, PrepareError> {
    let mut found = Vec::<View>::new();
    for one in given.all() {
        let (ExperimentInput::Words(name) | ExperimentInput::Stored { id: name }) = one;
        let view = find(client, &name, Some(to)).await?;
        if !found.iter().any(|other| other.id == view.id) {
            found.push(view);
        }
    }
    Ok(found)
}

/// Returns the experiments that match a filter, by name.
pub(super) fn matching_experiments(
    all: &[View],
    which: &ExperimentFilter,
    now: Timestamp,
) -> Result<Vec<View>, PrepareError> {
    let status = |words: &String| {
        let known = Status::ALL.map(Status::stored);
        Status::asked_for(words).ok_or_else(|| access::invalid(refusals::not_one_of("status", words, &known)))
    };
    let month = |words: &String| parse_month(words, now).ok_or_else(|| access::invalid(refusals::no_month(words)));
    let status = which.status.as_ref().map(status).transpose()?;
    let month = which.month.as_ref().map(month).transpose()?;
    let is = |one: &String, other: &str| lookup::pick(std::slice::from_ref(one), other).is_some();
    let fits = |view: &View| {
        status.is_none_or(|status| view.state == status)
            && which.context.as_ref().is_none_or(|context| is(context, view.context()))
            && which.tag.as_ref().is_none_or(|tag| view.tags.iter().any(|own| is(tag, own)))
            && month.is_none_or(|month| in_status_since(view).and_then(month_of) == Some(month))
            && !which.except.iter().any(|name| is(name, &view.name))
    };
    if let Some(unknown) = which.except.iter().find(|name| !all.iter().any(|view| is(name, &view.name))) {
        return Err(access::invalid(refusals::none_to_except(unknown)));
    }
    let found: Vec<_> = all.iter().filter(|view| fits(view)).cloned().collect();
    if found.is_empty() { Err(access::invalid(refusals::none_fits())) } else { Ok(found) }
}

/// Returns the time since which the experiment has had its status: that of its last change to this
/// status, or else of its last change.
fn in_status_since(view: &View) -> Option<&str> {
    let changes = view.state_time_logs.iter().filter(|change| change.to_state == view.state);
    changes.map(|change| change.time_log.as_str()).max().or(view.updated_at.as_deref())
}

/// A year and a month.
type Month = (i16, i8);

fn month_of(moment: &str) -> Option<Month> {
    let date = moment.parse::<Moment>().ok()?.to_zoned(TimeZone::UTC);
    Some((date.year(), date.month()))
}

/// Parses `2026-05`, `May 2026`, or `May`, which means the last May up to now.
fn parse_month(words: &str, now: Timestamp) -> Option<Month> {
    const NAMES: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let (year, this) = month_of(&now.to_string())?;
    if let Some((year, month)) = words.trim().split_once('-') {
        return Some((year.parse().ok()?, month.parse().ok().filter(|month| (1..=12).contains(month))?));
    }
    let mut parts = words.split_whitespace();
    let name = parts.next()?.to_lowercase();
    let month = (1..).zip(NAMES).find(|(_, short)| name.starts_with(short)).map(|(number, _)| number)?;
    Some((parts.next().and_then(|year| year.parse().ok()).unwrap_or(year - i16::from(month > this)), month))
}

/// Proposes the change for all experiments that may change. The card names the others as left out.
pub(super) async fn propose(
    client: &UpgradeClient,
    views: Vec<View>,
    to: Status,
    expects: Option<&Expects>,
) -> Result<Proposal, PrepareError> {
    if let Some(expects) = expects {
        views.iter().try_for_each(|view| expects.check(view, None))?;
    }
    let mut left_out = Vec::new();
    let (fit, unfit): (Vec<_>, Vec<_>) = views.into_iter().partition(|view| rules::check(view, to).is_ok());
    for view in &unfit {
        let why = match rules::check(view, to) {
            Err(Objection::NotReady(problems)) => problems.join(", "),
            _ => format!("it is {}", view.state.display()),
        };
        left_out.push(format!("{} ({why})", view.name));
    }
    if fit.is_empty() {
        return Err(access::refused(ErrorKind::Execution, refusals::none_can_change(to, &left_out)));
    }
    if fit.len() > MAX_EXPERIMENTS {
        return Err(access::refused(ErrorKind::UserInput, refusals::too_many(fit.len(), MAX_EXPERIMENTS)));
    }
    let ids: Vec<_> = fit.iter().map(|view| view.id).collect();
    let (all, enrolled) = tokio::join!(client.all(), client.enrollment(&ids));
    let overlaps = overlaps(&all?, fit.iter(), to);
    let statuses: Map<_, _> = fit.iter().map(|view| (view.id.to_string(), json!(view.state))).collect();
    let named = fit.iter().map(|view| ExperimentName { id: view.id, name: view.name.clone() });
    let stored = BulkStatusChange { experiments: named.collect(), status: to };
    let enrolled = reach::enrolled_together(enrolled.ok().as_deref());
    Ok(Proposal {
        preconditions: json!({ "statuses": statuses, SURROUNDINGS: overlaps_in_words(&overlaps) }),
        undo: undo(&fit, to),
        scope: scope::all(&fit).measure(scope::STATUS, json!(to)),
        ..Proposal::new(stored, card(&fit, to, &left_out, sharing_warnings(&overlaps), enrolled))
    })
}

/// Returns the present state of the experiments, in the form of the preconditions of `record`.
pub(super) async fn current_state(
    client: &UpgradeClient,
    record: &ActionRecord,
    several: &BulkStatusChange,
) -> Result<Value, Error> {
    let all = client.all().await?;
    let mut state = statuses_among(&all, several);
    if record.preconditions.get(SURROUNDINGS).is_some() {
        let changed = several.experiments.iter().filter_map(|named| all.iter().find(|view| view.id == named.id));
        state[SURROUNDINGS] = Value::Object(overlaps_in_words(&overlaps(&all, changed, several.status)));
    }
    Ok(state)
}

/// Returns the present status of each experiment, in the form of the preconditions.
fn statuses_among(all: &[View], several: &BulkStatusChange) -> Value {
    let of = |named: &ExperimentName| all.iter().find(|other| other.id == named.id).map(|other| other.state);
    let statuses: Map<_, _> =
        several.experiments.iter().map(|named| (named.id.to_string(), json!(of(named)))).collect();
    json!({ "statuses": statuses })
}

/// Changes each experiment that does not have the new status yet.
pub(super) async fn perform(client: &UpgradeClient, record: &ActionRecord, several: &BulkStatusChange) -> Performed {
    let window = SendWindow::open(client);
    let (mut changed, mut unchanged, mut unknown) = (Vec::new(), Vec::new(), false);
    for named in &several.experiments {
        if let Err(Error::NoAnswer { reason }) = window.ensure_open() {
            return Performed::NoAnswer { detail: reason };
        }
        let before = &record.preconditions["statuses"][named.id.to_string()];
        let ended = match client.single(named.id).await {
            Ok(now) if now.view.state == several.status => Ok(()),
            Ok(now) if json!(now.view.state) == *before => {
                client.set_state(named.id, several.status, None).await.map(|_| ())
            }
            Ok(now) => {
                let why = format!("It is {} now.", now.view.state.display());
                unchanged.push((named.name.as_str(), Text::from(why)));
                continue;
            }
            Err(error) => Err(error),
        };
        match ended {
            Ok(()) => changed.push(named.name.as_str()),
            Err(Error::NoAnswer { reason }) => return Performed::NoAnswer { detail: reason },
            // The present status decides, not the answer.
            Err(error) => match client.single(named.id).await {
                Ok(now) if now.view.state == several.status => changed.push(named.name.as_str()),
                found => match error {
                    Error::Unclear { reason } => return Performed::NoAnswer { detail: reason },
                    error => {
                        let as_before = found.is_ok_and(|now| json!(now.view.state) == *before);
                        unknown |= !as_before;
                        unchanged.push((named.name.as_str(), outcomes::one_refused(&error, as_before)));
                    }
                },
            },
        }
    }
    let summary = outcomes::bulk_summary(&past_participle(several.status), &changed, &unchanged);
    Performed::Ended(match (unchanged.is_empty(), summary) {
        (true, _) => Outcome::done(record, json!({ "experiments": several.experiments, "status": several.status })),
        (false, summary) if unknown => Outcome::Unknown { summary },
        (false, summary) => failed(ErrorKind::Execution, summary),
    })
}

/// Reads back: the change happened if all experiments have the new status, and is unfinished if only some have it.
pub(super) async fn probe(
    client: &UpgradeClient,
    record: &ActionRecord,
    several: &BulkStatusChange,
) -> Result<Probed, Error> {
    let now = statuses_among(&client.all().await?, several);
    let is = |named: &&ExperimentName| now["statuses"][named.id.to_string()] == json!(several.status);
    let was = |named: &&ExperimentName| {
        let id = named.id.to_string();
        now["statuses"][&id] == record.preconditions["statuses"][&id]
    };
    let (changed, rest): (Vec<_>, Vec<_>) = several.experiments.iter().partition(is);
    let names = |some: &[&ExperimentName]| some.iter().map(|named| named.name.clone()).collect::<Vec<_>>();
    let result = json!({ "experiments": several.experiments, "status": several.status });
    Ok(match rest.is_empty() {
        true => Probed::Happened(Outcome::done(record, result)),
        false if several.experiments.iter().all(|named| was(&named)) => Probed::DidNotHappen,
        false => Probed::Unfinished { evidence: outcomes::some_of_several(&names(&changed), &names(&rest)) },
    })
}

/// The live experiments that share decision points with a changed one, by the name of that one.
type Overlap = (String, Vec<(Arc<Outline>, String)>);

/// Returns the overlaps of the changed experiments. Those that are being started count as live.
fn overlaps<'a>(all: &[View], changed: impl Iterator<Item = &'a View> + Clone, to: Status) -> Vec<Overlap> {
    let outline = |view: &View| match to {
        Status::Enrolling if changed.clone().any(|own| own.id == view.id) => Outline { state: to, ..view.into() },
        _ => view.into(),
    };
    let all: Overview = all.iter().map(outline).collect();
    let overlap = |view: &View| {
        let points = view.decision_points.iter().map(|point| (point.site.as_str(), point.target.as_deref()));
        (view.name.clone(), all.sharing(view.context(), points, Some(view.id)))
    };
    changed.clone().map(overlap).collect()
}

/// Returns a warning for each changed experiment that shares decision points with a live one.
fn sharing_warnings(overlaps: &[Overlap]) -> Vec<Text> {
    let warning = |(name, others): &Overlap| {
        Some(Text::new().plain("“").bold(name).plain("”: ").join(cautions::shared_points(others)?))
    };
    overlaps.iter().filter_map(warning).collect()
}

/// Returns the overlaps in the form of the preconditions.
fn overlaps_in_words(overlaps: &[Overlap]) -> Map<String, Value> {
    let words = |(name, others): &Overlap| {
        (format!("{} of “{name}”", reach::OVERLAPPING), json!(reach::same_points(Some(others)).after.words()))
    };
    overlaps.iter().map(words).collect()
}

/// Returns the undo for all experiments, if they all have the same status and the change can be undone.
fn undo(changed: &[View], to: Status) -> Option<Undo> {
    let from = changed.first()?.state;
    let (back, label) = match (from, to) {
        (_, Status::Enrolling) => (Status::EnrollmentComplete, "Undo: stop experiments"),
        (Status::Enrolling, Status::EnrollmentComplete) => (Status::Enrolling, "Undo: resume experiments"),
        _ => return None,
    };
    let ids: Vec<_> = changed.iter().map(|view| view.id).collect();
    let parameters = json!({ "experiments": ids, "status": back, "expects": Expects::at(to) });
    let undo = Undo { name: "update_experiment_status".to_owned(), parameters, label: label.to_owned() };
    changed.iter().all(|view| view.state == from).then_some(undo)
}

/// Returns the beginning of a sentence about the change, such as “Started”.
fn past_participle(to: Status) -> String {
    let verb = to.verbs().first().filter(|_| to != Status::Inactive);
    let words = verb.map_or("set to inactive", |verb| verb.participle);
    capital(words)
}

fn card(fit: &[View], to: Status, left_out: &[String], mut warnings: Vec<Text>, enrolled: Fact) -> Card {
    let verb = rules::verb(fit[0].state, to);
    let capital = capital(verb);
    let many = if fit.len() == 1 { "1 experiment".to_owned() } else { format!("{} experiments", fit.len()) };
    let names: Vec<_> = fit.iter().map(|view| format!("“{}”", view.name)).collect();
    if to == Status::Cancelled {
        warnings.push(Text::from("A cancelled experiment can't be started again here."));
    }
    if to == Status::Inactive && fit.iter().any(|view| view.state == Status::EnrollmentComplete) {
        warnings.push(Text::from("Enrolled users get the application's default too."));
    }
    let mut notes = vec![Text::from("One decision covers all of them. I'll report the outcome of each.")];
    if !left_out.is_empty() {
        notes.push(Text::from(format!("Left out: {}.", left_out.join(", "))));
    }
    let statuses = fit.iter().map(|view| Fact::change(&view.name, view.state.display(), to.display()));
    let done = format!("{} {many}: {}.", past_participle(to), names.join(", "));
    Card {
        facts: statuses.chain([enrolled]).collect(),
        warnings,
        notes,
        irreversible: to == Status::Cancelled,
        ..Card::new(format!("{capital} {many}?"), &format!("{capital} {many}"), done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_without_a_year_is_the_last_one() {
        let now = Timestamp("2026-06-20T10:00:00Z".parse::<Moment>().unwrap().as_millisecond());
        for (words, expected) in [
            ("May", Some((2026, 5))),
            ("june", Some((2026, 6))),
            ("Nov", Some((2025, 11))),
            ("May 2024", Some((2024, 5))),
            ("2025-12", Some((2025, 12))),
            ("2025-13", None),
            ("soon", None),
        ] {
            assert_eq!(parse_month(words, now), expected, "{words}");
        }
    }
}
