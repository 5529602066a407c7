//! Sentences that set values and then run: “run demo with a dose of 300 mg”; and runs of several simulations.

use std::sync::LazyLock;

use countersign_core::units;
use countersign_understanding::{
    lines::Lines,
    phrases::Utterance,
    words::{Word, after, skip},
};
use serde_json::{Map, Value};

use super::{OWNER, OfSimulations, implied_parameter};
use crate::amount::Amount;

/// The phrases; see `understanding/requests/lines.rs`.
const LINES: &str = "
$run = (run|execute|rerun|re-run|simulate|do a run of|start a run of) [simulation|model] <simulation:thing?> [again]
$with = (with|at|using|for) [a|an]
$to = [of|at|=|set to]
$who = (subject|patient|person|human|man|woman|volunteer|adult|child)
$second = (and|, and|,) [with|at] [a|an] <parameter_2:path> $to <value_2:amount>
change run_simulation
    $run $with <value:amount> [of] <parameter:path>
    $run $with <parameter:path> $to <value:amount>
    $run $with <parameter:path> $to <value:amount> $second
    $run $with <value:amount>
    (run|simulate) [it|simulation] [with|for|in] [a|an] <weight:amount> $who <_:here>
    (run|simulate) [it|simulation] [with|for|in] [a|an] $who (of|with|weighing|who weighs) <weight:amount> <_:here>
    <parameter:path> $to <value:amount> [$second] [,] [and] then (run|simulate) [it|simulation] <_:here>
    what if <parameter:path> (is|was|were|would be|had been) <value:amount> <_:here>
    what (happens|would happen|will happen) $with [<parameter:path>] $to <value:amount> <_:here>
    what would [a] <parameter:path> of <value:amount> (do|change|mean|give) <_:here>
";

/// Returns the requests to set the values and then to run, or to run one simulation after the other.
pub(super) fn requests(utterance: Utterance<'_>) -> Option<Vec<String>> {
    runs(utterance).or_else(|| run_with_values(utterance)).or_else(|| same_with_value(utterance))
}

/// Parses `the same but with half the dose`: sets the value, and then does again what was done last.
fn same_with_value(utterance: Utterance<'_>) -> Option<Vec<String>> {
    const SAME: &str = "the same|same|the same thing|same thing|the same again|same again|again|it again|that again|do it again|do that again|\
        do the same|do the same again|repeat it|repeat that|repeat this|rerun it|rerun that|run it again|run that again|once more";
    const WITH: &str = "but with|but at|but using|but for|, but with|only with|just with|with|at|using|but";
    let topic = utterance.topic_of(OWNER)?;
    let rest = after(skip(utterance.words, "and|now|then|also|,"), SAME)?;
    let words = skip(after(rest, WITH)?, "a|an");
    let within = topic.parameters.get("simulation").and_then(Value::as_str);
    let within = within.map(str::to_owned).or_else(|| super::last_simulation(utterance))?;
    let within = as_name(&within);
    let of = |key: &str| topic.parameters.get(key);
    let again = match topic.call.as_str() {
        "run_simulation" | "set_parameter_value" => format!("run {within}"),
        "compare_values" => {
            let (parameter, values) = (of("parameter")?.as_str()?, of("values")?);
            let unit = of("unit").and_then(Value::as_str).map(|unit| format!(" {unit}")).unwrap_or_default();
            let values = match values {
                Value::Array(several) => several.iter().map(Value::to_string).collect::<Vec<_>>().join(", ") + &unit,
                values => values.as_str()?.to_owned(),
            };
            format!("compare {parameter} at {values} in {within}")
        }
        "calculate_pk_parameters" if of("best").is_some() => format!("compare the same values in {within}"),
        "run_population_simulation" => match of("size").filter(|size| size.is_number()) {
            Some(size) => format!("run {within} for a population of {size}"),
            None => format!("run {within} for a population"),
        },
        _ => return None,
    };
    let (parameter, value) = value_and_parameter(words, utterance)?;
    Some(vec![format!("set the {parameter} to {value} in {within}"), again])
}

/// Parses `half the dose`, `a dose of 300 mg` or `300 mg`.
fn value_and_parameter(words: &[Word], utterance: Utterance<'_>) -> Option<(String, String)> {
    const VALUES: &str = "
change set_parameter_value
    <value:factor> [of] <parameter:path>
    <value:amount> [of] <parameter:path>
    <parameter:path> [of|at|=|to|set to] <value:amount>
    <value:amount>
";
    static LINES: LazyLock<Lines> = LazyLock::new(|| Lines::read(VALUES).expect("the lines can be read"));
    let given = LINES.values_in(Utterance { words, ..utterance }, &OfSimulations, OWNER)?;
    setting(&given, "parameter", "value", true)
}

/// Parses `run theo and run-2`: the names of loaded simulations, and nothing else.
fn runs(utterance: Utterance<'_>) -> Option<Vec<String>> {
    let rest = after(utterance.words, "run|execute|rerun|re-run|simulate|start|launch")?;
    let named = skip(rest, "both of|both|simulations|the simulations|models|the models");
    let joins = |word: &Word| word.owner.as_deref() == Some(OWNER) || word.any(&[",", "and", "&", "both", "again"]);
    let names: Vec<_> = named.iter().filter(|word| word.owner.as_deref() == Some(OWNER)).collect();
    (names.len() > 1 && named.iter().all(joins))
        .then(|| names.into_iter().map(|name| format!("run {}", as_name(&name.text))).collect())
}

/// Returns the name as it stands in a request.
fn as_name(name: &str) -> String {
    if name.contains(char::is_whitespace) { format!("“{name}”") } else { name.to_owned() }
}

/// Parses `run demo with a dose of 300 mg`.
fn run_with_values(utterance: Utterance<'_>) -> Option<Vec<String>> {
    static RUNS: LazyLock<Lines> = LazyLock::new(|| Lines::read(LINES).expect("the lines can be read"));
    let given = RUNS.values_in(utterance, &OfSimulations, OWNER)?;
    let name = given.get("simulation").and_then(Value::as_str).map(as_name);
    let is_about = utterance.topic_of(OWNER).is_some();
    let first = match given.get("weight").and_then(Value::as_str) {
        Some(weight) => ("body weight".to_owned(), weight.to_owned()),
        None => setting(&given, "parameter", "value", is_about)?,
    };
    let second = match given.contains_key("value_2") {
        true => Some(setting(&given, "parameter_2", "value_2", is_about)?),
        false => None,
    };
    let within = name.as_ref().map(|name| format!(" in {name}")).unwrap_or_default();
    let sets = [first].into_iter().chain(second);
    let sets = sets.map(|(parameter, value)| format!("set the {parameter} to {value}{within}"));
    Some(sets.chain([format!("run {}", name.as_deref().unwrap_or("the simulation"))]).collect())
}

/// Returns a parameter and its value. A value that could be anything, such as a plain number, counts only in a thread
/// about simulations.
fn setting(given: &Map<String, Value>, parameter: &str, value: &str, is_about: bool) -> Option<(String, String)> {
    let of = |key: &str| given.get(key).and_then(Value::as_str);
    let value = of(value)?;
    let value = ["at ", "to "].iter().find_map(|word| value.strip_prefix(word)).unwrap_or(value);
    let amount = Amount::read(value)?;
    let is_clear = match &amount {
        Amount::Absolute { unit, .. } | Amount::Plus { unit, .. } => unit.as_deref().is_some_and(units::is_unit),
        Amount::Times { .. } | Amount::Default => true,
    };
    let parameter = of(parameter).or_else(|| implied_parameter(value))?.trim_start_matches("the ").to_owned();
    let value = match amount {
        Amount::Times { of: None, .. } if !value.contains("its") => format!("{value} its value"),
        _ => value.to_owned(),
    };
    (is_clear || is_about).then_some((parameter, value))
}
