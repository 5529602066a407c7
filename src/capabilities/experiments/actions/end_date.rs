//! The end date that a start brings with it: `run Math Hints from Dec 1 to Dec 18`.

use countersign_core::clock::Timestamp;
use countersign_graph::action::PrepareError;
use jiff::tz::TimeZone;
use serde_json::json;

use super::{dates, design};
use crate::{
    access,
    replies::refusals,
    upgrade::{
        client::UpgradeClient,
        error::Error,
        experiment::{ExperimentId, View},
        status::Status,
    },
};

/// Returns the end date for a change of status. It has to be after the start, and only a start can have one.
///
/// # Errors
///
/// Fails if the end is not a future moment, is before the start, or belongs to another change than a start.
pub(super) fn resolve(
    given: Option<&str>,
    experiment: &View,
    (to, start_on): (Status, Option<&str>),
    (now, zone): (Timestamp, &TimeZone),
) -> Result<Option<String>, PrepareError> {
    let end_on = given.map(|given| dates::end_of(given, now, zone)).transpose()?;
    if end_on.is_some() && !to.is_start() {
        return Err(access::invalid(refusals::only_a_start_has_an_end()));
    }
    check_order(start_on, end_on.as_deref().or(experiment.end_on.as_deref()))?;
    Ok(end_on.filter(|end| at(Some(end)) != at(experiment.end_on.as_deref())))
}

/// Checks that the end is after the start, if there are both.
///
/// # Errors
///
/// A refusal.
pub(super) fn check_order(start: Option<&str>, end: Option<&str>) -> Result<(), PrepareError> {
    match at(start).zip(at(end)) {
        Some((start, end)) if start >= end => Err(access::invalid(refusals::ends_before_it_starts())),
        _ => Ok(()),
    }
}

fn at(moment: Option<&str>) -> Option<jiff::Timestamp> {
    moment?.parse().ok()
}

/// Sets the end date of an experiment, unless it has this end date already. Repeating it changes nothing.
///
/// # Errors
///
/// The error of the first request that failed.
pub(super) async fn set(client: &UpgradeClient, id: ExperimentId, end_on: &str) -> Result<(), Error> {
    let experiment = client.single(id).await?;
    if experiment.view.end_on.as_deref() == Some(end_on) {
        return Ok(());
    }
    let version = client.version().await?;
    let mut body = experiment.raw()?;
    body["endOn"] = json!(end_on);
    client.update(id, &design::with_lists_for(&version, body)).await.map(|_| ())
}
