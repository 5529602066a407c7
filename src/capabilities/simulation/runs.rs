//! The finished runs of a simulation, from the records of the approved actions, and the earlier run that a person
//! means.

use countersign_capabilities::dates::day;
use countersign_core::clock::{Timestamp, WEEKDAYS};
use countersign_graph::action::{ActionRecord, Outcome, Status};
use jiff::{ToSpan as _, civil::Date};
use serde::{Deserialize, Serialize};

use super::{Deps, actions::run, bridge::data::Metric, curve::Curve, memory::run_target, replies::answers::part};

/// The maximum number of runs that are read.
const MAX_RUNS: usize = 200;

/// A finished run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PastRun {
    /// The time at which it was started.
    pub at: Timestamp,
    /// The job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The id of the results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<String>,
    /// The PK figures.
    pub metrics: Vec<Metric>,
    /// The curves.
    pub curves: Vec<Curve>,
}

/// Returns the finished runs of a simulation whose figures are known, newest first.
pub async fn finished(deps: &Deps, simulation: &str) -> Vec<PastRun> {
    let records = deps.memory.records(&run_target(simulation), MAX_RUNS).await;
    let mut runs: Vec<PastRun> = records.iter().filter_map(past_run).collect();
    runs.sort_by_key(|run| std::cmp::Reverse(run.at));
    runs
}

fn past_run(record: &ActionRecord) -> Option<PastRun> {
    let (Status::Done, run::NAME, Some(Outcome::Done { result, .. })) =
        (&record.status, record.name.as_str(), &record.outcome)
    else {
        return None;
    };
    let metrics: Vec<Metric> = part(&result["figures"]["metrics"]);
    let text = |key: &str| result[key].as_str().map(str::to_owned);
    (!metrics.is_empty()).then(|| PastRun {
        at: record.intent_at.unwrap_or(record.requested_at),
        job: text("job"),
        results: text("results"),
        metrics,
        curves: part(&result["figures"]["curves"]),
    })
}

/// Returns the unit of the concentrations of a simulation, from its last run since it was loaded.
pub async fn unit(deps: &Deps, simulation: &str) -> Option<String> {
    let loaded_at = deps.memory.loaded_at(simulation, None).await;
    let runs = finished(deps, simulation).await;
    let newest = runs.into_iter().next().filter(|run| loaded_at.is_none_or(|at| run.at >= at))?;
    newest.metrics.into_iter().next()?.unit
}

/// The earlier run that is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// The one before the newest.
    Previous,
    /// The oldest.
    First,
    /// The newest one on these days, both included, in UTC.
    Between(Date, Date),
    /// The one with this job or these results.
    Named(String),
}

/// Words that do not help to identify a run.
const FILLERS: &str = "the a an of from on in its my our their run runs simulation one ones result results \
    figures figure curve that this it we i made did had was job value values cmax auc tmax";

/// Parses the words for an earlier run, such as “yesterday's run” or “the run before”. Returns `None` if they are no
/// such words.
pub fn which(said: &str, today: Date) -> Option<Which> {
    let lower = said.to_lowercase().replace('’', "'");
    let is_filler = |word: &&str| FILLERS.split(' ').any(|filler| filler == *word);
    let words: Vec<&str> = lower.split_whitespace().filter(|word| !is_filler(word)).collect();
    let days_ago = |days: i64| today.checked_sub(days.days()).ok();
    let on = |day: Date| Some(Which::Between(day, day));
    let plain: Vec<&str> = words.iter().map(|word| word.strip_suffix("'s").unwrap_or(word)).collect();
    match plain.as_slice() {
        ["previous" | "last" | "earlier" | "prior" | "preceding" | "before" | "older"] => Some(Which::Previous),
        ["first" | "oldest" | "original" | "earliest"] => Some(Which::First),
        ["earlier", "today"] | ["today"] => on(today),
        ["yesterday"] => on(days_ago(1)?),
        ["last", "week"] => {
            let monday = days_ago(i64::from(today.weekday().to_monday_zero_offset()) + 7)?;
            Some(Which::Between(monday, monday.checked_add(6.days()).ok()?))
        }
        ["week", "ago"] => on(days_ago(7)?),
        ["day", "before", "yesterday"] => on(days_ago(2)?),
        [number, "day" | "days", "ago"] => {
            on(days_ago(number.parse().ok().filter(|days| (1..=3_660).contains(days))?)?)
        }
        [name] | ["last", name] if let Some(weekday) = weekday(name) => {
            let ago = i64::from((today.weekday().to_monday_zero_offset() - weekday).rem_euclid(7));
            on(days_ago(if ago == 0 { 7 } else { ago })?)
        }
        [date] if let Ok(date) = date.parse::<Date>() => on(date),
        [id] if is_id(id) => {
            let written = said.split_whitespace().find(|word| word.to_lowercase() == *id);
            Some(Which::Named(written.unwrap_or(id).to_owned()))
        }
        _ => None,
    }
}

/// Returns the weekday with this name, counted from Monday.
fn weekday(name: &str) -> Option<i8> {
    let at = WEEKDAYS.iter().position(|weekday| *weekday == name || (name.len() == 3 && weekday.starts_with(name)))?;
    i8::try_from(at).ok()
}

/// Returns true if this may be the id of a job or of results.
fn is_id(word: &str) -> bool {
    word.len() > 5
        && word.contains(|c: char| c.is_ascii_digit())
        && word.contains('-')
        && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// Returns the earlier run that is meant, among the runs before the newest.
pub fn earlier<'a>(runs: &'a [PastRun], which: &Which) -> Option<&'a PastRun> {
    let mut before = runs.iter().skip(1);
    match which {
        Which::Previous => before.next(),
        Which::First => before.last(),
        Which::Between(from, to) => before.find(|run| (*from..=*to).contains(&day(run.at))),
        Which::Named(id) => before.find(|run| [&run.job, &run.results].into_iter().flatten().any(|own| own == id)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> Date {
        text.parse().unwrap()
    }

    #[test]
    fn an_earlier_run_is_understood() {
        let today = date("2026-11-18"); // a Wednesday
        let on = |text: &str| Some(Which::Between(date(text), date(text)));
        for (said, meant) in [
            ("yesterday's run", on("2026-11-17")),
            ("the run of yesterday", on("2026-11-17")),
            ("yesterday", on("2026-11-17")),
            ("the previous run", Some(Which::Previous)),
            ("the last run", Some(Which::Previous)),
            ("the run before", Some(Which::Previous)),
            ("the one before that", Some(Which::Previous)),
            ("the first run", Some(Which::First)),
            ("Monday's run", on("2026-11-16")),
            ("the run on Friday", on("2026-11-13")),
            ("the run of last Wednesday", on("2026-11-11")),
            ("the run 3 days ago", on("2026-11-15")),
            ("the run of 2026-11-02", on("2026-11-02")),
            ("last week's run", Some(Which::Between(date("2026-11-09"), date("2026-11-15")))),
            ("run-ABC-12", Some(Which::Named("run-ABC-12".to_owned()))),
            ("the moon", None),
            ("the run", None),
            ("2 and 3 L", None),
        ] {
            assert_eq!(which(said, today), meant, "{said}");
        }
    }

    #[test]
    fn the_newest_run_of_a_day_is_taken_but_not_the_newest_of_all() {
        let at = |text: &str| Timestamp(text.parse::<jiff::Timestamp>().unwrap().as_millisecond());
        let run = |time: &str, job: &str| PastRun {
            at: at(time),
            job: Some(job.to_owned()),
            results: None,
            metrics: Vec::new(),
            curves: Vec::new(),
        };
        let runs = [
            run("2026-11-18T10:00:00Z", "d"),
            run("2026-11-17T23:00:00Z", "c"),
            run("2026-11-17T08:00:00Z", "b"),
            run("2026-11-10T08:00:00Z", "a"),
        ];
        let job = |which: Which| earlier(&runs, &which).and_then(|run| run.job.clone());
        let on = |text: &str| Which::Between(date(text), date(text));
        assert_eq!(job(on("2026-11-17")).as_deref(), Some("c"));
        assert_eq!(job(on("2026-11-18")), None, "a run is not compared with itself");
        assert_eq!(job(Which::First).as_deref(), Some("a"));
        assert_eq!(job(Which::Named("b".to_owned())).as_deref(), Some("b"));
    }
}
