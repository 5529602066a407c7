//! The figures of runs, analyses and comparisons, as short tables and charts.
//!
//! A phone shows about 40 characters in a line. Tables therefore have short names, and a single output has no table.

use std::collections::BTreeSet;

use countersign_core::{
    reply::{Attachment, Part, Reply, Text},
    units::{figure, quantity},
};
use serde_json::Value;

use super::answers::part;
use crate::{
    actions::compare::{Comparison, Point},
    bridge::data::{Metric, Population, Scenario, auc_unit},
    changes::{self, Changed},
    chart::{self, Bar},
    curve::Curve,
};

/// The maximum number of outputs, and of rows of a table.
const MAX_ROWS: usize = 24;
/// The maximum number of characters of a parameter's name in a table.
const MAX_NAME: usize = 16;
/// The least relative difference between figures that counts as one.
const LEAST_DIFFERENCE: f64 = 1e-3;

/// Returns the last part of a path.
pub fn last_part(path: &str) -> &str {
    path.rsplit('|').next().unwrap_or(path)
}

/// Returns a path with spaces between its parts, so that a narrow field breaks it there and not inside a word.
fn with_breaks(path: &str) -> String {
    path.split('|').map(str::trim).collect::<Vec<_>>().join(" | ")
}

/// Returns short names of paths: the last parts of each, as few as are needed to tell them apart.
fn short_name(path: &str, all: &BTreeSet<&str>) -> String {
    let tail = |path: &str, count: usize| {
        let parts: Vec<&str> = path.split('|').collect();
        parts[parts.len().saturating_sub(count)..].join("|")
    };
    let is_unique = |count: &usize| {
        let own = tail(path, *count);
        all.iter().filter(|other| tail(other, *count) == own).count() <= 1
    };
    let name = (1..4).find(is_unique).map_or_else(|| path.to_owned(), |count| tail(path, count));
    chart::shortened(&name, MAX_NAME)
}

/// Returns a figure, or a dash if there is none.
pub fn cell(value: Option<f64>, unit: Option<&str>) -> Text {
    Text::from(value.map_or("–".to_owned(), |value| figure(value, unit)))
}

/// Adds PK figures: as facts for a single output, otherwise as a line for each.
pub fn pk(reply: Reply, metrics: &[Metric]) -> Reply {
    let shown =
        |metric: &Metric| metric.figures().map(|(name, value, unit)| (name.to_owned(), cell(value, unit.as_deref())));
    match metrics {
        [] => reply,
        [only] => {
            let output = ("Output".to_owned(), Text::from(with_breaks(&only.output)));
            reply.and(Part::Facts(std::iter::once(output).chain(shown(only)).collect()))
        }
        several => {
            let line = |metric: &Metric| {
                let figures = shown(metric).map(|(name, value)| format!("{name} {}", value.words()));
                Text::new().bold(&metric.output).plain(format!(": {}", figures.join(" · ")))
            };
            reply.and(Part::List(several.iter().take(MAX_ROWS).map(line).collect()))
        }
    }
}

/// Adds a chart of curves, unless it cannot be drawn.
pub fn with_curves(reply: Reply, title: &str, curves: &[Curve]) -> Reply {
    let alt = chart::description(title, curves);
    picture(reply, "concentration-time.png", (title, alt), chart::curves(title, curves))
}

fn picture(reply: Reply, name: &str, (title, alt): (&str, String), drawn: anyhow::Result<Vec<u8>>) -> Reply {
    match drawn {
        Ok(bytes) => reply.file(Attachment { name: name.to_owned(), title: title.to_owned(), alt, bytes }),
        Err(error) => {
            tracing::debug!(%error, "Cannot draw a chart");
            reply
        }
    }
}

/// Adds the figures of a run to its outcome.
pub fn run_report(reply: Reply, result: &Value) -> Reply {
    let metrics: Vec<Metric> = part(&result["figures"]["metrics"]);
    let curves: Vec<Curve> = part(&result["figures"]["curves"]);
    let simulation = result["simulation"].as_str().unwrap_or_default();
    with_curves(pk(reply, &metrics), &format!("Concentration over time in {simulation}"), &curves)
}

/// The aggregates of a population by the beginning of their names, in the order of the table.
const AGGREGATES: &[(&str, &str)] =
    &[("mean", "Mean"), ("sd", "SD"), ("p05", "5th percentile"), ("median", "Median"), ("p95", "95th percentile")];

/// The figures of a population run, as a table of percentiles, with a chart.
pub fn population_report(reply: Reply, population: &Value) -> Reply {
    let Ok(found) = serde_json::from_value::<Population>(population.clone()) else { return reply };
    let figure_of = |name: &str| AGGREGATES.iter().find_map(|(short, _)| name.strip_prefix(short).map(str::to_owned));
    let is_figure = |figure: &String| ["Cmax", "Tmax", "AUC"].contains(&figure.as_str());
    let figures: BTreeSet<String> =
        found.aggregates.keys().filter_map(|name| figure_of(name)).filter(is_figure).collect();
    let mut figures: Vec<String> = figures.into_iter().collect();
    figures.sort_by_key(|name| name != "Cmax"); // Cmax first
    let unit_of = |figure: &str| match figure {
        "Tmax" => Some("h".to_owned()),
        "AUC" => found.unit.as_deref().map(auc_unit),
        _ => found.unit.clone(),
    };
    let row = |(short, words): &(&str, &str)| {
        let value = |figure: &String| found.aggregates.get(&format!("{short}{figure}")).copied();
        let values: Vec<Option<f64>> = figures.iter().map(value).collect();
        let cells = values.iter().map(|value| cell(*value, None));
        let row = std::iter::once(Text::from(*words)).chain(cells).collect::<Vec<_>>();
        values.iter().any(Option::is_some).then_some(row)
    };
    let rows: Vec<Vec<Text>> = AGGREGATES.iter().filter_map(row).collect();
    let head = |name: &String| unit_of(name).map_or(name.clone(), |unit| format!("{name} ({unit})"));
    let columns = std::iter::once("Statistic".to_owned()).chain(figures.iter().map(head)).collect();
    let reply = if rows.is_empty() { reply } else { reply.and(Part::Table { columns, rows }) };
    let others = found.aggregates.iter().filter(|(name, _)| !figure_of(name).is_some_and(|figure| is_figure(&figure)));
    let others = others.map(|(name, value)| (name.clone(), Text::from(figure(*value, None))));
    let subjects = found.size.map(|size| ("Subjects".to_owned(), Text::from(size.to_string())));
    let facts: Vec<(String, Text)> = subjects.into_iter().chain(others).take(20).collect();
    let reply = if facts.is_empty() { reply } else { reply.and(Part::Facts(facts)) };
    let reply = not_reported(&found, &figures).into_iter().fold(reply, |reply, sentence| reply.hint(sentence));
    let name = found.simulation.clone().unwrap_or_default();
    let reply = match (&found.unit, figures.is_empty()) {
        (None, false) => reply.hint(format!(
            "The bridge reports no units for populations. They're the same as in a single run: run {name} once to see them."
        )),
        _ => reply,
    };
    let Some(band) = &found.band else { return reply };
    let reply = match found.size {
        Some(size) if size > band.subjects as u64 => {
            reply.hint(format!("The chart shows {} of the {size} subjects.", band.subjects))
        }
        _ => reply,
    };
    let title = format!("{name} in {} virtual subjects", band.subjects);
    let unit = found.unit.as_deref();
    let alt = chart::description_of_population(&title, unit, band);
    picture(reply, "population.png", (&title, alt), chart::population(&title, unit, band))
}

/// Returns a sentence for each figure of a population that has some statistics and not all of the table. They cannot be
/// computed here: the bridge sends statistics, and the curves of only some subjects.
fn not_reported(found: &Population, figures: &[String]) -> Vec<String> {
    let is_known = |short: &str, figure: &str| found.aggregates.contains_key(&format!("{short}{figure}"));
    let shown: Vec<&(&str, &str)> =
        AGGREGATES.iter().filter(|(short, _)| figures.iter().any(|figure| is_known(short, figure))).collect();
    let sentence = |figure: &String| {
        let missing = shown.iter().filter(|(short, _)| !is_known(short, figure));
        let missing: Vec<Text> = missing.map(|(_, words)| Text::from(in_sentence(words))).collect();
        (!missing.is_empty())
            .then(|| format!("The bridge doesn't report the {} of {figure}.", Text::listed(missing, "and").words()))
    };
    figures.iter().filter_map(sentence).collect()
}

/// Returns the name of a statistic as it is written in the middle of a sentence.
fn in_sentence(name: &str) -> String {
    if name.chars().all(char::is_uppercase) { name.to_owned() } else { name.to_lowercase() }
}

/// The figures of a sensitivity analysis.
pub fn sensitivity_report(reply: Reply, result: &Value) -> Reply {
    let scenarios: Vec<Scenario> = part(&result["scenarios"]);
    let of = |scenario: &Scenario, figure: &str| match scenario.deltas.get(figure) {
        Some(delta) if scenario.succeeded => Text::from(format!("{delta:+.1}%")),
        _ => Text::from("–"),
    };
    let varied = || scenarios.iter().filter(|scenario| scenario.path.is_some() && !scenario.is_reference());
    let paths: BTreeSet<&str> = varied().filter_map(|scenario| scenario.path.as_deref()).collect();
    let rows: Vec<Vec<Text>> = varied()
        .take(MAX_ROWS)
        .map(|scenario| {
            vec![
                Text::from(short_name(scenario.path.as_deref().unwrap_or_default(), &paths)),
                Text::from(format!("{:+}%", (scenario.change * 1000.0).round() / 10.0)),
                of(scenario, "cmax"),
                of(scenario, "auc"),
            ]
        })
        .collect();
    if rows.is_empty() {
        return reply;
    }
    let simulation = result["simulation"].as_str().unwrap_or_default();
    let columns = ["Parameter", "Change", "Cmax", "AUC"].map(str::to_owned).into();
    let reply = reply.and(Part::Table { columns, rows });
    let reply = match differences(simulation, &scenarios, &part::<Vec<Changed>>(&result["changed"])) {
        Some(text) => reply.and(Part::Text(text)),
        None => reply,
    };
    let reply = match varied().any(|scenario| !scenario.deltas.is_empty()) {
        true => reply,
        false => reply.hint(
            "I can't give a percentage, because no copy with the current value has figures. Ask again for a new \
             analysis.",
        ),
    };
    let mut bars: Vec<Bar> = Vec::new();
    for scenario in varied().filter(|scenario| scenario.succeeded) {
        let (Some(path), Some(delta)) = (&scenario.path, scenario.deltas.get("cmax")) else { continue };
        if !bars.iter().any(|bar| bar.name == *path) {
            bars.push(Bar { name: path.clone(), down: 0.0, up: 0.0 });
        }
        if let Some(bar) = bars.iter_mut().find(|bar| bar.name == *path) {
            if scenario.change < 0.0 { bar.down = *delta } else { bar.up = *delta }
        }
    }
    let percent = varied().map(|scenario| scenario.change.abs() * 100.0).fold(0.0, f64::max);
    let title = format!("Sensitivity of Cmax in {simulation}");
    let drawn = chart::tornado(&title, "Cmax", percent, &bars);
    let alt = chart::description_of_bars(&title, "Cmax", percent, &bars);
    picture(reply, "sensitivity.png", (&title, alt), drawn)
}

/// Returns the sentences about the copies of an analysis, if they differ from the simulation before the variation:
/// according to the records of changes, or to the figures.
fn differences(simulation: &str, scenarios: &[Scenario], changed: &[Changed]) -> Option<Text> {
    let succeeded = || scenarios.iter().filter(|scenario| scenario.succeeded);
    let itself = succeeded().find(|scenario| scenario.is_of_itself()).and_then(|scenario| scenario.metric.as_ref());
    let pairs = succeeded().filter(|scenario| scenario.is_reference()).filter_map(|reference| {
        let (copy, itself) = (reference.metric.as_ref()?, itself?);
        Some(copy.figures().into_iter().zip(itself.figures()))
    });
    let pairs = pairs.flatten().filter(|((name, ..), _)| *name != "Tmax");
    let mut values = pairs.filter_map(|((name, copy, unit), (_, itself, _))| Some((name, copy?, itself?, unit)));
    let differs = |(_, copy, itself, _): &(&str, f64, f64, Option<String>)| {
        (copy - itself).abs() > LEAST_DIFFERENCE * copy.abs().max(itself.abs())
    };
    let different = values.find(differs);
    if different.is_none() && changed.is_empty() {
        return None;
    }
    let text = Text::from("The copies come from the model file and lack the changes made in ").bold(simulation);
    let text = text.plain(" since it was loaded");
    let text = if changed.is_empty() { text } else { text.plain(": ").join(changes::listed(changed)) };
    let text = text.plain(". Each percentage compares two copies that differ only in the parameter of its row.");
    Some(match different {
        Some((name, copy, itself, unit)) => {
            let [copy, itself] = [copy, itself].map(|value| figure(value, unit.as_deref()));
            text.plain(format!(" With nothing varied, {name} is {copy} in the copies and {itself} in "))
                .bold(simulation)
                .plain(".")
        }
        None => text,
    })
}

/// The figures of a comparison.
pub fn comparison_report(reply: Reply, comparison: &Comparison, points: &[Point]) -> Reply {
    if points.is_empty() {
        return reply;
    }
    let unit = comparison.unit.as_deref();
    let name = |point: &Point| quantity(point.value, unit);
    let row = |point: &Point| {
        let figures = point.metric.as_ref().map(Metric::figures).into_iter().flatten();
        let mut row = vec![Text::from(name(point))];
        row.extend(figures.map(|(_, value, unit)| cell(value, unit.as_deref())));
        row.resize(4, Text::from("–"));
        row
    };
    let last = last_part(&comparison.parameter);
    let name_of_values = chart::shortened(last, MAX_NAME);
    let columns = [name_of_values.as_str(), "Cmax", "Tmax", "AUC"].map(str::to_owned).into();
    let reply = reply.and(Part::Table { columns, rows: points.iter().map(row).collect() });
    let problems =
        points.iter().filter_map(|point| Some(Text::from(format!("At {}: {}", name(point), point.problem.as_ref()?))));
    let problems: Vec<Text> = problems.collect();
    let reply = if problems.is_empty() { reply } else { reply.and(Part::List(problems)) };
    let curves = points.iter().filter_map(|point| Some(Curve { name: name(point), ..point.curve.clone()? }));
    let curves: Vec<Curve> = curves.collect();
    with_curves(reply, &format!("{} at {} values of {last}", comparison.simulation, points.len()), &curves)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn short_names_tell_paths_apart() {
        let all = BTreeSet::from(["Dose", "Organism|Liver|Volume", "Organism|Kidney|Volume"]);
        assert_eq!(short_name("Dose", &all), "Dose");
        assert_eq!(short_name("Organism|Kidney|Volume", &all), "Kidney|Volume");
        let all = BTreeSet::from(["Organism|Liver|Volume"]);
        assert_eq!(short_name("Organism|Liver|Volume", &all), "Volume");
    }

    #[test]
    fn a_path_in_a_narrow_field_breaks_between_its_parts() {
        let output = "VenousBlood|Plasma|Concentration".to_owned();
        let metric = Metric { output, unit: None, cmax: Some(1.5), tmax: None, auc: None };
        let reply = pk(Reply::default(), &[metric]);
        assert!(reply.words().contains("VenousBlood | Plasma | Concentration"), "{}", reply.words());
    }

    /// The characters of the widest row of a table, with three between the columns.
    fn width(reply: &Reply) -> usize {
        let Some(Part::Table { columns, rows }) = reply.parts.iter().find(|part| matches!(part, Part::Table { .. }))
        else {
            return 0;
        };
        let columns: Vec<Text> = columns.iter().map(|name| Text::from(name.as_str())).collect();
        let longest = |at: usize| {
            std::iter::once(&columns).chain(rows).map(|row| row[at].words().chars().count()).max().unwrap_or_default()
        };
        (0..columns.len()).map(longest).sum::<usize>() + 3 * (columns.len() - 1)
    }

    #[test]
    fn tables_fit_on_a_phone() {
        let metric = |path: Option<&str>, change: f64| json!({ "path": path, "change": change, "value": 1.0, "succeeded": true, "deltas": { "cmax": 101.7, "auc": -10.25 } });
        let paths = ["Organism|Liver|Clearance", "Organism|Kidney|Clearance"];
        let scenarios: Vec<Value> = paths.iter().map(|path| metric(Some(path), -0.1)).collect();
        let reply = sensitivity_report(Reply::text("x"), &json!({ "simulation": "demo", "scenarios": scenarios }));
        assert!((20..=48).contains(&width(&reply)), "{}", width(&reply));
        let aggregates =
            json!({ "meanCmax": 1.351_23, "sdCmax": 0.219_51, "p05Cmax": 1.0, "meanAUC": 11.08, "medianCmax": 1.2 });
        let population = json!({ "size": 50, "aggregates": aggregates, "chunks": 3, "unit": "mg/L" });
        let reply = population_report(Reply::text("x"), &population);
        assert!((20..=46).contains(&width(&reply)), "{}", width(&reply));
    }

    #[test]
    fn a_statistic_that_the_bridge_does_not_report_is_named() {
        let report = |aggregates: Value| {
            let found = json!({ "size": 50, "aggregates": aggregates, "chunks": 1, "unit": "mg/L" });
            population_report(Reply::text("Done."), &found).words()
        };
        let some =
            report(json!({ "meanCmax": 1.5, "sdCmax": 0.05, "p05Cmax": 1.2, "medianCmax": 1.4, "meanAUC": 6.0 }));
        assert!(some.contains("The bridge doesn't report the SD, 5th percentile and median of AUC."), "{some}");
        assert!(!some.contains("of Cmax."), "{some}");
        let all = report(json!({ "meanCmax": 1.5, "sdCmax": 0.05, "meanAUC": 6.0, "sdAUC": 0.1 }));
        assert!(!all.contains("does not report"), "{all}");
    }

    #[test]
    fn a_population_has_units_or_says_why_not() {
        let population = |unit: Option<&str>| {
            let aggregates = json!({ "meanCmax": 1.5, "sdCmax": 0.05, "meanAUC": 6.0, "halfLife": 3.0 });
            let found =
                json!({ "size": 50, "aggregates": aggregates, "chunks": 1, "unit": unit, "simulation": "pop-1" });
            population_report(Reply::text("Done."), &found).words()
        };
        let with_unit = population(Some("mg/L"));
        assert!(with_unit.contains("Cmax (mg/L)") && with_unit.contains("AUC (mg·h/L)"), "{with_unit}");
        assert!(with_unit.contains("halfLife") && !with_unit.contains("no units"), "{with_unit}");
        assert!(population(None).contains("The bridge reports no units for populations."));
    }
}
