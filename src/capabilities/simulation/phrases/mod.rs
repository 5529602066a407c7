//! The phrases about simulations: the lines, and the values in them.
//!
//! A parameter is named by its path or by the usual words for such parameters ([`PARAMETER_WORDS`]). Other words are
//! never taken for a parameter, so that requests to other domains are left to them. A value is anything that [`Amount`]
//! can parse. [`answers`] reads values without a parameter, [`combined`] sentences that set a value and run, and [`run_times`] runs
//! for a length of time.

mod answers;
mod combined;
mod run_times;
#[cfg(test)]
mod several_tests;
#[cfg(test)]
mod tests;

use countersign_core::units;
use countersign_understanding::{
    lines::Candidate,
    phrases::{Division, Phrases, Shows, Stage, Utterance, Vocabulary, Wording},
    user_request::{Interpretation, UserRequest},
    words::{Word, after, text},
};
use serde_json::{Map, Value};

use super::{actions::compare::SAME_VALUES, amount::Amount, runs};

/// The name of the capability that these phrases belong to.
const OWNER: &str = super::NAME;

/// The phrases about simulations.
pub struct OfSimulations;

/// The action that sets a parameter.
const SET: &str = "set_parameter_value";

/// Words that name parameters of such models, in lower case.
const PARAMETER_WORDS: &str = "dose dosage weight bodyweight height age volume clearance flow bloodflow \
    lipophilicity solubility permeability absorption ka cl vd fup logp hematocrit gfr mass fraction bioavailability \
    vol bw wt conc elimination infusion halflife half-life bmi pka molecularweight fractionunbound cardiacoutput output";

/// Words that may accompany [`PARAMETER_WORDS`]: organs, and properties of a compound.
const ACCOMPANYING_WORDS: &str = "the body subject subject's patient patient's organism compound drug liver kidney \
    brain muscle adipose fat heart lung skin bone intestine intestinal small large pancreas spleen blood plasma \
    hepatic renal cardiac molecular unbound of total rate constant distribution oral plasmatic organ gut stomach \
    gastric metabolic";

/// The maximum length of a parameter, in words.
const MAX_PARAMETER: usize = 5;
/// The maximum length of a value, in words.
const MAX_VALUE: usize = 9;
/// The maximum length of the words for an earlier run.
const MAX_EARLIER: usize = 6;
/// The maximum length of a list, in words and commas.
const MAX_LIST: usize = 60;

impl Phrases for OfSimulations {
    fn vocabulary(&self) -> Vocabulary {
        Vocabulary {
            // A word that is read as the id of a job or of results may be the name of a simulation.
            subjects: &["simulation", "job", "results"],
            creates: &["load_simulation"],
            shows: Some(Shows { one: ("list_parameters", "simulation"), all: "list_simulations" }),
            lines: include_str!("lines.txt"),
            unsupported_requests: "unload|delete the simulation|remove the simulation|delete the model|remove the model|delete the snapshot|\
         remove the snapshot",
            help: HELP,
            simplest_requests: "*load the demo model*, *set the dose to 500 mg*, *run it*",
            first_steps: &[
                ("Load the demo model", "load the demo model"),
                ("What is loaded?", "which simulations are loaded?"),
            ],
            ..Vocabulary::new(&["simulation", "simulations", "model", "models"])
        }
    }

    fn slot(&self, kind: &str, utterance: Utterance<'_>) -> Vec<Candidate> {
        match kind {
            "active" => active(utterance),
            "loaded" => loaded(utterance.words),
            "named" => named(utterance),
            "searched" => searched(utterance),
            kind => slot(kind, utterance.words),
        }
    }

    fn read(&self, stage: Stage, utterance: Utterance<'_>) -> Option<Interpretation> {
        match stage {
            Stage::First => run_times::question(utterance).or_else(|| answers::go(utterance)),
            Stage::Correction => answers::correction(utterance),
            Stage::Answer => answers::answer(utterance),
            _ => None,
        }
    }

    fn divided(&self, utterance: Utterance<'_>) -> Option<Division> {
        combined::requests(utterance).map(Division::Combined)
    }

    fn finish_request(&self, user_request: UserRequest) -> UserRequest {
        with_implied_parameter(user_request)
    }

    fn worded(&self, action: &str, params: &Map<String, Value>) -> Option<Wording> {
        let of = |key: &str| params.get(key).and_then(Value::as_str);
        let simulation = of("simulation");
        let load = || Some(format!("load {} as {}", of("file")?, simulation?));
        let set = || Some(format!("set {} to {} in {}", of("parameter")?, of("value")?, simulation?));
        let (participle, request) = match action {
            "load_simulation" => ("loaded", load()),
            "cancel_job" => ("canceled", None),
            "restore_simulation" => ("restored", None),
            "run_simulation" => ("run", simulation.map(|name| format!("run {name}"))),
            "run_population_simulation" | "run_sensitivity_analysis" | "compare_values" => ("run", None),
            SET => ("changed", set()),
            _ => return None,
        };
        Some(Wording { participle, request, so_far: None })
    }
}

/// Returns a candidate for requests that name no simulation.
fn active(utterance: Utterance<'_>) -> Vec<Candidate> {
    vec![Candidate::known(last_simulation(utterance).map_or(Value::Null, Value::from), 0)]
}

/// Returns the simulation that the thread worked with last, or else the thing mentioned before. It is used only if it
/// is a loaded simulation, so it does no harm if it is something else.
fn last_simulation(utterance: Utterance<'_>) -> Option<String> {
    let situation = utterance.situation;
    situation.subjects.get(OWNER).or(situation.last_subject.as_ref()).cloned()
}

/// Returns the name of a loaded simulation, if the words begin with one.
fn loaded(words: &[Word]) -> Vec<Candidate> {
    let name = words.first().filter(|first| first.owner.as_deref() == Some(OWNER));
    name.map(|name| Candidate::known(name.text.clone(), 1)).into_iter().collect()
}

/// Returns the parameter that the thread is about.
fn named(utterance: Utterance<'_>) -> Vec<Candidate> {
    let parameter = utterance.topic_of(OWNER).and_then(|topic| topic.parameters.get("parameter"));
    parameter.map(|parameter| Candidate::known(parameter.clone(), 0)).into_iter().collect()
}

/// Returns the words for the model that was asked about, if nothing else was since.
fn searched(utterance: Utterance<'_>) -> Vec<Candidate> {
    let topic = utterance.topic_of(OWNER).filter(|topic| topic.call == "discover_models");
    let search = topic.and_then(|topic| topic.parameters.get("search"));
    search.map(|search| Candidate::known(search.clone(), 0)).into_iter().collect()
}

/// Adds the parameter to a comparison that names only values.
fn with_implied_parameter(mut user_request: UserRequest) -> UserRequest {
    if let UserRequest::Change { action, params } = &mut user_request
        && action == "compare_values"
        && !params.contains_key("parameter")
        && let Some(parameter) = params.get("values").and_then(Value::as_str).and_then(implied_parameter)
    {
        params.insert("parameter".to_owned(), parameter.into());
    }
    user_request
}

/// Returns the parameter that values without one belong to: masses are doses, and kilograms or pounds body weights.
fn implied_parameter(values: &str) -> Option<&'static str> {
    let unit =
        values.rsplit(|c: char| c.is_ascii_digit() || c.is_whitespace()).next().filter(|unit| !unit.is_empty())?;
    match units::fit(1.0, Some(unit), Some("kg")) {
        units::Fit::Same => Some("body weight"),
        units::Fit::Converted(kilograms) => Some(if kilograms > 0.1 { "body weight" } else { "dose" }),
        units::Fit::Other | units::Fit::Unknown => None,
    }
}

/// Returns the values of a kind at the beginning of these words.
fn slot(kind: &str, words: &[Word]) -> Vec<Candidate> {
    let each = |most: usize, read: &dyn Fn(&[Word]) -> Option<Candidate>| {
        (1..=words.len().min(most)).filter_map(|length| read(&words[..length])).collect::<Vec<_>>()
    };
    match kind {
        "path" => each(MAX_PARAMETER, &path),
        "varied" => each(MAX_PARAMETER, &varied),
        "file" => each(3, &file),
        "amount" => each(MAX_VALUE, &|words| amount(words, "")),
        "more" => each(MAX_VALUE, &|words| amount(words, "+")),
        "less" => each(MAX_VALUE, &|words| amount(words, "-")),
        "factor" => each(3, &factor),
        "same" => {
            let rest = after(words, SAME_VALUES).or_else(|| after(words, "same values"));
            rest.map(|rest| Candidate::known(SAME_VALUES, words.len() - rest.len())).into_iter().collect()
        }
        "values" => each(MAX_LIST, &values),
        "unit-values" => each(MAX_LIST, &|words| values(words).filter(|_| words.iter().any(has_unit))),
        "paths" => each(MAX_LIST, &paths),
        "job" => each(1, &job),
        "seconds" => each(2, &seconds),
        "percent" => each(4, &percent),
        "size" => each(3, &|words| labelled(words, &["n", "size"])),
        "seed" => each(3, &|words| labelled(words, &["seed"])),
        "lone-job" => each(1, &lone_job),
        "figure" => each(2, &figure),
        "part" => each(2, &part),
        "earlier" => each(MAX_EARLIER, &earlier),
        _ => Vec::new(),
    }
}

/// Reads a parameter: a path, or words of which one names a parameter.
fn path(words: &[Word]) -> Option<Candidate> {
    if let [one] = words
        && one.text.contains('|')
    {
        return Some(Candidate::known(one.text.clone(), 1));
    }
    if words.iter().any(|word| word.quoted || word.is(",")) {
        return None;
    }
    // A path may contain spaces: `Organism|Small Intestine|Volume`.
    let joined = text(words);
    if joined.contains('|') {
        let ends = words[0].text.contains('|') || words[words.len() - 1].text.contains('|');
        let small = words.iter().any(|word| word.any(&["in", "of", "for", "to", "at", "by", "and", "from"]));
        return (ends && !small).then(|| Candidate::taken(joined, words.len()));
    }
    let last = words.last()?;
    const SHORT: [(&str, &str); 4] =
        [("vol", "volume"), ("bw", "body weight"), ("wt", "weight"), ("conc", "concentration")];
    let long = |word: &Word| {
        SHORT.iter().find(|(short, _)| word.is(short)).map_or(word.text.clone(), |(_, long)| (*long).to_owned())
    };
    let joined = words.iter().map(long).collect::<Vec<_>>().join(" ");
    let named = words.iter().any(|word| word.among(PARAMETER_WORDS));
    let fits = words.iter().all(|word| word.among(PARAMETER_WORDS) || word.among(ACCOMPANYING_WORDS));
    (named && fits && !last.any(&["the", "of"]) && !words[0].any(&["of"])).then(|| Candidate {
        value: joined.into(),
        taken: words.len(),
        cost: 0,
    })
}

/// Reads a parameter that takes several values, which may be in the plural: “doses”.
fn varied(words: &[Word]) -> Option<Candidate> {
    path(words).or_else(|| {
        let (last, before) = words.split_last()?;
        let singular = last.text.strip_suffix('s').filter(|_| !last.quoted)?;
        let last = Word { text: singular.to_owned(), lower: singular.to_lowercase(), ..last.clone() };
        path(&before.iter().cloned().chain([last]).collect::<Vec<_>>())
    })
}

/// Reads several parameters.
fn paths(words: &[Word]) -> Option<Candidate> {
    let parts = words.split(|word| word.any(&[",", "and"])).filter(|part| !part.is_empty());
    let known = parts.map(path).collect::<Option<Vec<_>>>()?;
    let ends = words.last().is_some_and(|last| !last.any(&[",", "and"]));
    (!known.is_empty() && ends).then(|| Candidate::known(text(words), words.len()))
}

/// Words that name no model file.
const NOT_FILES: &str = "simulation model file models first second third last other another same new next previous right \
    wrong old this that which all any them these those one ones something anything everything thing \
    things stuff me us some running loaded available open current existing present different \
    language ai";

/// Reads a model file: a path, a file name, or the name of a model.
fn file(words: &[Word]) -> Option<Candidate> {
    let is_file = |word: &Word| {
        word.text.contains(['/', '\\']) || [".pkml", ".pksim5", ".R"].iter().any(|ending| word.text.ends_with(ending))
    };
    match words {
        [one] if one.quoted || is_file(one) => Some(Candidate::known(one.text.clone(), 1)),
        words
            if words
                .iter()
                .any(|word| word.quoted || is_file(word) || word.any(&[",", "as", "called", "named", "it"])) =>
        {
            None
        }
        [one] if one.lower.len() > 1 && !one.among(NOT_FILES) => Some(Candidate::taken(one.text.clone(), 1)),
        _ => None,
    }
}

/// Reads a new value. `sign` is `+` after “increase”, `-` after “decrease”, and otherwise empty.
fn amount(words: &[Word], sign: &str) -> Option<Candidate> {
    if words.iter().any(|word| word.quoted) {
        return None;
    }
    let said = text(words);
    let known = |value: String| Some(Candidate::known(value, words.len()));
    if sign.is_empty() {
        // A word that might be a unit is accepted as one if there is no better interpretation.
        return match Amount::read(&said)? {
            Amount::Absolute { unit: Some(unit), .. } | Amount::Plus { unit: Some(unit), .. }
                if !units::is_unit(&unit) =>
            {
                Some(Candidate::taken(said, words.len()))
            }
            _ => known(said),
        };
    }
    let plain = said.strip_prefix("by ").unwrap_or(&said);
    match Amount::read(plain)? {
        Amount::Absolute { value, unit }
            if value >= 0.0 && unit.as_deref().is_none_or(|unit| unit == "%" || units::is_unit(unit)) =>
        {
            known(if sign == "+" { format!("+{plain}") } else { format!("by -{plain}") })
        }
        Amount::Times { of: None, factor } if sign == "-" && factor > 1.0 => None,
        Amount::Times { of: None, .. } => known(plain.to_owned()),
        _ => None,
    }
}

/// Reads a multiple of the present value: “twice”, “half”, “3 times”.
fn factor(words: &[Word]) -> Option<Candidate> {
    let said = text(words);
    let is_multiple = !words[0].quoted && matches!(Amount::read(&said), Some(Amount::Times { of: None, .. }));
    is_multiple.then(|| Candidate::known(said, words.len()))
}

/// Reads a count behind its label: `n=500`, `seed 42`.
fn labelled(words: &[Word], labels: &[&str]) -> Option<Candidate> {
    let said = text(words).to_lowercase();
    let count = labels.iter().find_map(|label| said.strip_prefix(label))?;
    let count = count.strip_prefix([' ', '='])?.trim_start_matches([' ', '=']);
    Some(Candidate::known(count.parse::<u64>().ok()?, words.len()))
}

/// Reads a range with its step as the values in it: `from 1 to 2 L in steps of 0.25`.
fn range(words: &[Word]) -> Option<Candidate> {
    const STEPS: &[&str] =
        &[" in steps of ", " with steps of ", " with a step of ", " by steps of ", " step ", " every ", " by "];
    /// The action tells its own limit, which is lower.
    const MOST: f64 = 1000.0;
    let said = text(words).to_lowercase();
    let (ends, step) = STEPS.iter().find_map(|steps| said.split_once(steps))?;
    let (first, last) = ends.strip_prefix("from ").unwrap_or(ends).split_once(" to ")?;
    let absolute = |said: &str| match Amount::read(said)? {
        Amount::Absolute { value, unit } => Some((value, unit)),
        _ => None,
    };
    let ((first, one), (last, other), (step, third)) = (absolute(first)?, absolute(last)?, absolute(step)?);
    let mut units = [other, one, third].into_iter().flatten();
    let unit = units.next();
    if units.any(|other| Some(&other) != unit.as_ref()) {
        return None;
    }
    let steps = ((last - first) / step + 1e-9).floor();
    if step <= 0.0 || !(1.0..MOST).contains(&steps) {
        return None;
    }
    // Rounded, since 0.1 cannot be added without an error.
    let values = (0..=steps as u32).map(|n| ((first + f64::from(n) * step) * 1e9).round() / 1e9);
    let listed = values.map(|value| value.to_string()).collect::<Vec<_>>().join(", ");
    let unit = unit.map(|unit| format!(" {unit}")).unwrap_or_default();
    Some(Candidate::known(listed + &unit, words.len()))
}

/// Reads several values: at least two numbers.
fn values(words: &[Word]) -> Option<Candidate> {
    if let Some(range) = range(words) {
        return Some(range);
    }
    let (first, last) = (words.first()?, words.last()?);
    let number = |word: &Word| {
        let unsigned = word.text.strip_prefix(['-', '−']).unwrap_or(&word.text);
        unsigned.starts_with(|c: char| c.is_ascii_digit())
    };
    if !number(first) || last.any(&[",", "and", "or", "of"]) {
        return None;
    }
    let mut numbers = 0;
    for word in words {
        match number(word) {
            true => numbers += 1,
            false if word.any(&[",", "and", "or", "vs", "versus"]) || units::is_unit(&word.text) => {}
            false => return None,
        }
    }
    // `1,000` is one number, but `1/2/3` are three.
    let listed =
        words.iter().any(|word| word.text.matches('/').count() > 0 && number(word) && !units::is_unit(&word.text));
    (numbers > 1 || listed).then(|| Candidate::known(text(words), words.len()))
}

/// Returns true if the word is a unit, or a number with one.
fn has_unit(word: &Word) -> bool {
    let unit = word.text.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '−'));
    !unit.is_empty() && unit != "%" && !unit.starts_with('/') && units::is_unit(unit)
}

/// Reads the id of a job or of results.
fn job(words: &[Word]) -> Option<Candidate> {
    let [one] = words else { return None };
    let is_id = one.text.len() >= 3
        && one.text.contains(|c: char| c.is_ascii_digit())
        && one.text.contains(['-', '_'])
        && one.text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    let hex = one.text.len() >= 16 && one.text.chars().all(|c| c.is_ascii_hexdigit());
    let stamp = one.text.len() >= 12 && one.text.ends_with('Z') && one.text.starts_with(|c: char| c.is_ascii_digit());
    (!one.quoted && (is_id || hex || stamp)).then(|| Candidate::known(one.text.clone(), 1))
}

/// Reads an id that is one of a job without the word “job” before it: other things have ids as well.
fn lone_job(words: &[Word]) -> Option<Candidate> {
    const BEGINNINGS: &[&str] = &["job", "run", "sim", "pop", "res"];
    let id = &words.first()?.lower;
    let has_hex = id.split(['-', '_']).any(|part| part.len() >= 8 && part.chars().all(|c| c.is_ascii_hexdigit()));
    let is_stamp = id.starts_with(|c: char| c.is_ascii_digit());
    job(words).filter(|_| has_hex || is_stamp || BEGINNINGS.iter().any(|begin| id.starts_with(begin)))
}

/// Reads a PK figure.
fn figure(words: &[Word]) -> Option<Candidate> {
    const FIGURES: &[(&str, &[&str])] = &[
        ("cmax", &["cmax", "c max", "peak", "concentration", "concentrations", "peak concentration", "plasma level"]),
        ("auc", &["auc", "exposure", "total exposure"]),
        ("tmax", &["tmax", "t max"]),
    ];
    let said = text(words).to_lowercase();
    let (name, _) = FIGURES.iter().find(|(_, words)| words.contains(&said.as_str()))?;
    Some(Candidate::known(*name, words.len()))
}

/// Reads a duration, such as `60 s` or `5 minutes`, in seconds.
fn seconds(words: &[Word]) -> Option<Candidate> {
    let said = text(words);
    let Amount::Absolute { value, unit: Some(unit) } = Amount::read(&said)? else { return None };
    match units::fit(value, Some(&unit), Some("s")) {
        units::Fit::Converted(seconds) => Some(Candidate::known(seconds, words.len())),
        units::Fit::Same => Some(Candidate::known(value, words.len())),
        units::Fit::Other | units::Fit::Unknown => None,
    }
}

/// Reads a variation in percent: `20%`, `±20 %`, `plus or minus 20%`.
fn percent(words: &[Word]) -> Option<Candidate> {
    const SIGNS: [&str; 7] = ["plus or minus ", "+/- ", "+/-", "+- ", "+-", "± ", "±"];
    let said = text(words);
    let plain = SIGNS.iter().find_map(|sign| said.strip_prefix(sign)).unwrap_or(&said);
    match Amount::read(plain)? {
        Amount::Absolute { value, unit: Some(unit) } if unit == "%" && value > 0.0 => {
            Some(Candidate::known(value, words.len()))
        }
        _ => None,
    }
}

/// Reads an earlier run: “yesterday's run”, “the previous one”.
fn earlier(words: &[Word]) -> Option<Candidate> {
    if words.iter().any(|word| word.quoted || word.is(",")) {
        return None;
    }
    // The day on which it is said does not matter for its form.
    let any_day = jiff::civil::date(2000, 1, 31);
    runs::which(&text(words), any_day).map(|_| Candidate::known(text(words), words.len()))
}

/// Reads a part of the paths to list.
fn part(words: &[Word]) -> Option<Candidate> {
    let [one] = words else { return None };
    let fits = one.among(PARAMETER_WORDS) || one.among(ACCOMPANYING_WORDS) || one.text.contains('*');
    (fits && !one.any(&["the", "of", "rate", "total"])).then(|| Candidate::taken(one.text.clone(), 1))
}

/// The reply to “help”: the questions and changes that are possible.
const HELP: &str = "*Simulations*\n\
    • “load the demo model”, “which simulations are loaded?”, “list its parameters”\n\
    • “what is the dose?”, “set the dose to 500 mg”, “increase the body weight by 10 %”\n\
    • “run it”, “how is the run going?”, “show the results”, “cancel the run”\n\
    • “run it at 1.5, 2 and 3 L liver volume and compare cmax”\n\
    • “run it for a population of 100”, “sensitivity analysis for dose and clearance”\n\
    • “compare it with yesterday's run”, “compare it with the previous run”\n\
    • “take a snapshot”, “restore it”";
