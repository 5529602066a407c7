//! The outcomes of changes and runs in words, one or two sentences each.

use std::time::Duration;

use countersign_core::{ids::UserId, reply::Text, units::quantity};
use countersign_graph::action::ActionRecord;

use super::{errors, lasting};
use crate::{
    Deps,
    actions::compare::{Comparison, Sweep},
    bridge::{
        error::Error,
        job::{Job, JobStatus},
    },
};

/// Says that the bridge no longer has the simulation of an approved change.
pub fn forgotten(deps: &Deps, simulation: &str) -> Text {
    let text = Text::from("The bridge no longer has ").bold(simulation);
    let text = text.plain(", so nothing was done: it restarted, which unloads all simulations.");
    match deps.memory.file(simulation) {
        Some(_) => text.plain(" Load it again, then ask again."),
        None => text.plain(format!(" Say “load ‹model file› as {simulation}”, then ask again.")),
    }
}

/// Describes a comparison that is in progress, without a period at the end.
pub fn comparison(comparison: &ActionRecord) -> Text {
    let text = |key: &str| comparison.parameters[key].as_str().unwrap_or_default();
    let so_far = comparison.progress.as_ref().map(|progress| (progress.done, progress.total));
    let so_far = so_far.map(|(done, total)| format!(" ({done} of {total} values are done)")).unwrap_or_default();
    let sentence = Text::from("A comparison of ").code(text("parameter")).plain(" is running in ");
    let sentence = sentence.bold(text("simulation")).plain(format!("{so_far}. "));
    sentence.plain("It changes this parameter for each run and sets it back afterward")
}

/// Says that an approved change was not made because a comparison is in progress.
pub fn comparison_in_progress(record: &ActionRecord) -> Text {
    comparison(record).plain(". Nothing else was changed. Ask again when it ends.")
}

/// Says that an approved change was not made because a run has begun since its card was shown.
pub fn run_in_progress(simulation: &str) -> Text {
    Text::from("A run of ").bold(simulation).plain(
        " started after this card was posted and might use the change. Nothing was changed. Ask again when it ends.",
    )
}

/// Says that a run may or may not have been submitted.
pub fn perhaps_submitted(error: &Error) -> Text {
    Text::from(format!("{} The run may or may not have started.", errors::fact(error)))
}

/// Says that a run has succeeded.
pub fn ran(simulation: &str, took: Option<Duration>, unread: Option<&Error>) -> Text {
    let took = took.map(|took| format!(" in {}", lasting(took))).unwrap_or_default();
    let text = Text::from("Ran ").bold(simulation).plain(format!("{took}."));
    match unread {
        Some(error) => text.plain(format!(" Its results can't be read: {}", errors::fact(error))),
        None => text,
    }
}

/// Says that a run has not succeeded.
pub fn run_failed(simulation: &str, job: &Job) -> Text {
    let text = Text::from("The run of ").bold(simulation);
    let reason = job.error.clone().unwrap_or_default();
    let reason = reason.split(" ({").next().unwrap_or_default().trim_end_matches('.').to_owned();
    match job.status {
        JobStatus::Cancelled => text.plain(" was canceled at the bridge. It has no results."),
        JobStatus::Timeout => {
            let limit = job.limit_s.map(|limit| format!(" of {}", lasting(Duration::from_secs(limit)))).unwrap_or_default();
            text.plain(format!(" took longer than its limit{limit}. It has no results. Ask again with a longer limit."))
        }
        _ if reason.contains("restarted") => text.plain(
            " was lost: the bridge restarted before it ended. That also unloaded all simulations; load the model again and \
             rerun it.",
        ),
        _ if reason.is_empty() => text.plain(" failed. The bridge gave no reason."),
        _ => text.plain(format!(" failed: {reason}.")),
    }
}

/// Says that work was stopped by a person, or because it took too long, at this point of it.
fn stopped(at: &str, by: Option<&UserId>) -> Text {
    match by {
        Some(by) => Text::from("Stopped by ").person(by.clone()).plain(format!("{at}. ")),
        None => Text::from(format!("Stopped{at}, because it took too long. ")),
    }
}

/// Says that a comparison was stopped by a person, or because it took too long, and in which state its parameter is.
pub fn comparison_stopped(comparison: &Comparison, sweep: &Sweep, by: Option<&UserId>) -> Text {
    let at = format!(" after {} of {} values", sweep.points.len(), comparison.values.len());
    let before = quantity(comparison.before, comparison.unit.as_deref());
    let text = stopped(&at, by).code(&comparison.parameter).plain(match sweep.set_back {
        true => format!(" is {before} again."),
        false => format!(" may still have a value from the comparison; before that, it was {before}."),
    });
    match sweep.job.is_some() && !sweep.cancelled {
        true => text.plain(" I couldn't cancel the run of the current value, so it may continue at the bridge."),
        false => text,
    }
}

/// Says that a run was stopped by a person, or because it took too long. `cancelled` is true if the cancellation of its
/// job was requested, and `None` if there is no job.
pub fn run_stopped(simulation: &str, cancelled: Option<bool>, by: Option<&UserId>) -> Text {
    let text = stopped("", by);
    match cancelled {
        Some(true) => {
            text.plain("I asked the bridge to cancel the run of ").bold(simulation).plain("; it has no results.")
        }
        Some(false) => text
            .plain("I couldn't ask the bridge to cancel the run of ")
            .bold(simulation)
            .plain(", so it may continue there. Its results won't be posted here."),
        None => text.plain("Nothing was run."),
    }
}

/// Says that the answer of an analysis is lost.
pub fn analysis_lost(evidence: Text) -> Text {
    Text::from("The answer with the figures is lost. ").join(evidence).plain(" Ask again for a new analysis.")
}

/// Says that an analysis was not begun.
pub fn analysis_not_begun() -> Text {
    Text::from("The bridge didn't start the analysis. Ask again.")
}

/// Says that an analysis was stopped by a person, or because it took too long.
pub fn analysis_stopped(simulation: &str, begun: bool, by: Option<&UserId>) -> Text {
    let text = stopped("", by);
    match begun {
        true => text
            .plain("The bridge can't cancel an analysis, so it may still finish the one for ")
            .bold(simulation)
            .plain("; I'm no longer waiting for its figures."),
        false => text.plain("Nothing was run."),
    }
}
