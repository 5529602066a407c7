//! The comparison of two runs, and the replies if there is no run to compare with.

use countersign_core::{
    reply::{Part, Reply, Text},
    units::quantity,
};
use serde_json::Value;

use super::figures::{cell, last_part, with_curves};
use crate::{
    changes,
    comparing::{self, Compared, Extreme, Found, TwoRuns},
    curve::Curve,
    runs::{PastRun, Which},
};

/// The maximum number of curves of each run in the chart.
const MAX_CURVES: usize = 2;

/// The comparison of two runs.
pub fn of_runs(answer: &Value) -> Reply {
    let Ok(two) = serde_json::from_value::<TwoRuns>(answer.clone()) else {
        return Reply::text("The runs can't be compared.");
    };
    let TwoRuns { simulation, earlier, newest, changed, .. } = &two;
    let compared = comparing::figures(&earlier.metrics, &newest.metrics);
    let text = Text::from("The newest run of ").bold(simulation).plain(" (").moment(newest.at);
    let reply = Reply::text(text.plain("), compared with the run of ").moment(earlier.at).plain(":"));
    if compared.is_empty() {
        return reply.hint("The two runs have no output in common.");
    }
    let several = compared.iter().any(|figure| figure.output != compared[0].output);
    let columns = ["Figure", "Earlier", "Newest", "Change"].map(str::to_owned).into();
    let rows = compared.iter().map(|figure| row(figure, several)).collect();
    let reply = reply.and(Part::Table { columns, rows });
    let reply = match changed.as_deref() {
        Some([]) => reply.and(Part::Text(Text::from("No parameter changed between the two runs."))),
        Some(all) => {
            reply.and(Part::Text(Text::from("Changed between the two runs: ").join(changes::listed(all)).plain(".")))
        }
        None => reply,
    };
    with_curves(reply, &format!("Two runs of {simulation}"), &curves(earlier, newest))
}

fn row(figure: &Compared, several: bool) -> Vec<Text> {
    let unit = figure.unit.as_deref().map(|unit| format!(" ({unit})")).unwrap_or_default();
    let name = match several {
        true => format!("{} {}{unit}", last_part(&figure.output), figure.name),
        false => format!("{}{unit}", figure.name),
    };
    let change = match figure.percent() {
        Some(percent) if percent.abs() < 0.05 => "0%".to_owned(),
        Some(percent) => format!("{percent:+.1}%"),
        None => "–".to_owned(),
    };
    vec![Text::from(name), cell(figure.earlier, None), cell(figure.newest, None), Text::from(change)]
}

/// Returns the curves of both runs, named by their run.
fn curves(earlier: &PastRun, newest: &PastRun) -> Vec<Curve> {
    let named = |run: &PastRun, name: &str| -> Vec<Curve> {
        let count = run.curves.len();
        let name = |curve: &Curve| match count {
            1 => name.to_owned(),
            _ => format!("{name}: {}", last_part(&curve.name)),
        };
        run.curves.iter().take(MAX_CURVES).map(|curve| Curve { name: name(curve), ..curve.clone() }).collect()
    };
    [named(newest, "newest run"), named(earlier, "earlier run")].concat()
}

/// Says that the words for an earlier run cannot be read.
pub fn unclear(words: &str) -> Reply {
    Reply::text(Text::from("I couldn't make sense of “").plain(words).plain("” as an earlier run."))
        .hint("Say, for example, “compare it with the previous run” or “compare it with yesterday's run”.")
}

/// Says that there is no finished run.
pub fn no_run(simulation: &str) -> Reply {
    Reply::text(
        Text::from("I have no finished run of ").bold(simulation).plain(" on record, so there is nothing to compare."),
    )
    .choice("Run simulation", format!("run {simulation}"))
}

/// Says that there is no such run before the newest one. `all` has at least that.
pub fn no_earlier_run(simulation: &str, which: &Which, all: &[PastRun]) -> Reply {
    let Some(previous) = all.get(1) else {
        let text = Text::from("I have only one finished run of ").bold(simulation).plain(" on record");
        let text = all.first().map_or(text.clone(), |only| text.plain(" (").moment(only.at).plain(")"));
        return Reply::text(text.plain(", so there is no earlier one to compare it with."));
    };
    let text = Text::from("I have no earlier finished run of ").bold(simulation);
    let text = match which {
        Which::Between(from, to) if from == to => text.plain(format!(" from {from} (UTC)")),
        Which::Between(from, to) => text.plain(format!(" from {from} to {to} (UTC)")),
        Which::Named(id) => text.plain(" called ").code(id),
        Which::Previous | Which::First => text,
    };
    Reply::text(text.plain(" on record. The last one before the newest is from ").moment(previous.at).plain("."))
        .choice("Compare with that", format!("compare {simulation} with the previous run"))
}

/// The value of a comparison with the highest or the lowest figure; `None` if the answer is another one.
pub fn extreme(answer: &Value) -> Option<Reply> {
    let found: Found = serde_json::from_value(answer["extreme"].clone()).ok()?;
    let Found { simulation, path, figure, .. } = &found;
    let words = |of: &(f64, f64)| {
        (quantity(of.0, found.unit.as_deref()), cell(Some(of.1), found.figure_unit.as_deref()).words())
    };
    let (first, last) = (found.values.first()?, found.values.last()?);
    let (value, best) = words(first);
    let which = if found.is_lowest { "lowest" } else { "highest" };
    let text = match first.1 == last.1 {
        true => Text::from(format!("All {} values of ", found.values.len())),
        false => Text::new().bold(&value).plain(format!(" gives the {which} {figure}, {best}, of the values of ")),
    };
    let text = text.code(path).plain(" compared in ").bold(simulation);
    let text =
        if first.1 == last.1 { text.plain(format!(" give the same {figure}, {best}.")) } else { text.plain(".") };
    let line = |of: &(f64, f64)| {
        let (value, figure) = words(of);
        Text::from(format!("{value}: {figure}"))
    };
    Some(Reply::text(text).and(Part::List(found.values.iter().map(line).collect())))
}

/// Says that no comparison of values tells which one has the highest or lowest figure.
pub fn no_comparison(asked: &Extreme<'_>) -> Reply {
    let which = if asked.is_lowest { "lowest" } else { "highest" };
    let figure = match asked.figure {
        "auc" => "AUC",
        "tmax" => "Tmax",
        _ => "Cmax",
    };
    let of = asked.of.map(|of| format!(" of the {}", of.trim_start_matches("the "))).unwrap_or_default();
    Reply::text(format!(
        "I have no comparison of values{of} on record, so I can't tell which gives the {which} {figure}."
    ))
    .hint("Run one, such as “run it at 100, 200 and 300 mg dose and compare cmax”.")
}
