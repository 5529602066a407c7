//! Refusals and questions before a card is made, each with a suggestion.

use countersign_core::{
    reply::{Part, Reply, Text},
    units::{self, number, quantity},
};
use countersign_graph::action::ActionRecord;

use crate::{
    Deps,
    bridge::data::{Loaded, Parameter},
    changes::{self, Changed},
    find::file_name,
    ranges::{BODY_WEIGHT, Range},
    replies::{figures::last_part, outcomes},
    wanted::Wanted,
};

/// The factor between two values above which a step is warned of.
const HUGE: f64 = 100.0;

/// The maximum number of changed parameters that are offered to be set back.
const MAX_BACK: usize = 4;

/// The maximum number of model files with a button.
const MAX_FILES: usize = 4;

/// The maximum number of model files that are listed.
const MAX_LISTED: usize = 20;

/// Says that nothing is loaded.
pub fn nothing_loaded(deps: &Deps) -> Reply {
    let reply = Reply::text("No simulation is loaded on the bridge.");
    match &deps.settings.models {
        Some(_) => reply.hint("Load a model first.").choice("Load the demo model", "load the demo model"),
        None => reply.hint("Load a model first, for example “load /data/models/demo.pkml as renal-study”."),
    }
}

/// Returns true if words may be the name of a simulation, rather than what is left of a sentence.
fn is_name(asked: &str) -> bool {
    const OTHERS: &[&str] =
        &["i", "it", "we", "you", "me", "can", "could", "to", "and", "or", "with", "what", "that", "add"];
    let words = asked.split(' ').map(str::to_lowercase);
    !asked.contains(',')
        && asked.split(' ').count() < 4
        && !words.into_iter().any(|word| OTHERS.contains(&word.as_str()))
}

/// Says that the named simulation is not loaded. `files` are the model files of this name.
pub fn not_loaded(deps: &Deps, asked: &str, all: &[Loaded], files: &[String], says: impl Fn(&str) -> String) -> Reply {
    let reply = match is_name(asked) {
        true => Reply::text(Text::from("No simulation called ").bold(asked).plain(" is loaded.")),
        false => Reply::text("I didn't find a loaded simulation in that."),
    };
    if let Some(files) = Some(files).filter(|files| !files.is_empty()) {
        return load_buttons(reply.hint("There is a model file of that name. Load it first."), files, |file| {
            format!("load {file}")
        });
    }
    let reply = match all {
        [] => reply
            .hint("Nothing is loaded right now. If a card to load it is open, approve it first.")
            .choice("Show model files", "show model files"),
        _ => reply.hint(
            "Loaded: ".to_owned()
                + &all.iter().take(10).map(|loaded| loaded.id.as_str()).collect::<Vec<_>>().join(", "),
        ),
    };
    let reply = match deps.memory.file(asked) {
        Some(file) => reply.choice(format!("Load {asked} again"), format!("load {file} as {asked}")),
        None => reply,
    };
    let near = |loaded: &&Loaded| strsim::normalized_damerau_levenshtein(&loaded.id, asked) > 0.6;
    all.iter().filter(near).take(3).fold(reply, |reply, loaded| reply.choice(&loaded.id, says(&loaded.id)))
}

/// Adds a button for each of the first model files.
pub fn load_buttons(reply: Reply, files: &[String], says: impl Fn(&str) -> String) -> Reply {
    files
        .iter()
        .take(MAX_FILES)
        .fold(reply, |reply, file| reply.choice(format!("Load {}", file_name(file)), says(file)))
}

/// Says that no listed model file has this name.
pub fn no_model(named: &str, listed: &[String], says: impl Fn(&str) -> String) -> Reply {
    let mut near: Vec<String> = listed.to_vec();
    let distance =
        |file: &String| (strsim::jaro_winkler(&file_name(file).to_lowercase(), &named.to_lowercase()) * 1e6) as u64;
    near.sort_by_key(|file| std::cmp::Reverse(distance(file)));
    let lines = listed.iter().take(MAX_LISTED).map(|file| Text::new().code(file)).collect();
    let text = Text::from("The bridge has no model file for “").plain(named).plain("”. It can load:");
    load_buttons(Reply::text(text).and(Part::List(lines)), &near, says)
}

/// Asks which of several model files is meant.
pub fn several_models(named: &str, several: &[String], says: impl Fn(&str) -> String) -> Reply {
    let text = Text::from("Several model files match “").plain(named).plain("”. Which one?");
    let reply = match several.len() > MAX_FILES {
        true => Reply::text(text)
            .and(Part::List(several.iter().take(MAX_LISTED).map(|file| Text::new().code(file)).collect())),
        false => Reply::text(text),
    };
    load_buttons(reply, several, says)
}

/// Says that the bridge no longer has a simulation.
pub fn forgotten(deps: &Deps, simulation: &str) -> Reply {
    let reply = Reply::text(
        Text::from("The bridge no longer has ")
            .bold(simulation)
            .plain(": it restarted, which unloads all simulations."),
    );
    match deps.memory.file(simulation) {
        Some(file) => reply
            .hint("Load it again, then ask again. You'll have to set changed values again.")
            .choice(format!("Load {simulation} again"), format!("load {file} as {simulation}")),
        None => reply.hint(format!("Load it again with “load ‹model file› as {simulation}”, then ask again.")),
    }
}

/// Says that the words are not a path.
pub fn no_path() -> Reply {
    Reply::text("A parameter is named by its path on one line, such as `Organism|Weight`.")
}

/// Says that no parameter has this name.
pub fn unknown_parameter(asked: &str, simulation: &str, similar: &[String], says: impl Fn(&str) -> String) -> Reply {
    let text = Text::from("There is no parameter ").code(asked).plain(" in ").bold(simulation).plain(".");
    let reply = Reply::text(text);
    match similar {
        [] => reply.hint(format!("Ask “list the parameters of {simulation}” to see what is there.")),
        _ => {
            similar.iter().fold(reply.hint("Did you mean one of these?"), |reply, path| reply.choice(path, says(path)))
        }
    }
}

/// Asks which of several parameters is meant.
pub fn several_parameters(asked: &str, several: &[String], says: impl Fn(&str) -> String) -> Reply {
    let reply = Reply::text(Text::from("Several parameters match “").plain(asked).plain("”. Which one?"));
    several.iter().fold(reply, |reply, path| reply.choice(path, says(path)))
}

/// Says that the value cannot be read.
pub fn no_value(said: &str, path: &str, before: Option<&Parameter>) -> Reply {
    let present = before.filter(|before| before.value != 0.0);
    let example = present.map_or("2.5 kg".to_owned(), Parameter::words);
    let text = Text::from("I couldn't make sense of “").plain(said).plain("” as a value of ").code(path).plain(".");
    Reply::text(text).hint(format!(
        "Give a number with its unit, such as “{example}”, or a change such as “10% more”, “twice” or “half”."
    ))
}

/// A value in a unit that does not fit its parameter.
pub struct WrongUnit<'a> {
    /// The path of the parameter.
    pub path: &'a str,
    /// The unit that was given.
    pub given: &'a str,
    /// The parameter's own unit.
    pub own: Option<&'a str>,
    /// The range of the parameter, if it is known.
    pub range: Option<Range>,
    /// The same number in the right unit, if that is a possible value.
    pub right: Option<String>,
}

/// Says that the unit does not fit.
pub fn wrong_unit(mistake: &WrongUnit<'_>, says: impl Fn(&str) -> String) -> Reply {
    let WrongUnit { path, given, own: unit, range, right } = mistake;
    let kind = units::kind(given).map(|kind| format!(" is {kind}")).unwrap_or_else(|| " doesn't fit here".to_owned());
    let text = Text::new().code(*path).plain(match unit {
        Some(unit) => format!(
            " is given in {unit}{}. {given}{kind}.",
            units::kind(unit).map(|kind| format!(", {kind}")).unwrap_or_default()
        ),
        None => format!(" is a number without a unit. {given}{kind}."),
    });
    let reply = Reply::text(text);
    match (right, range, unit) {
        (Some(right), ..) => {
            reply.hint(format!("Use, for example, “{right}”.")).choice(format!("Set it to {right}"), says(right))
        }
        (None, _, Some(unit)) if units::is_by_body_weight(given) => {
            reply.hint(format!("Give the dose in {unit}: multiply it by the body weight."))
        }
        (None, Some(range), _) => reply.hint(format!("Give a value within {}.", range.words())),
        (None, None, Some(unit)) => reply.hint(format!("Give a value in {unit}.")),
        (None, None, None) => reply.hint("Give a number without a unit."),
    }
}

/// Says that a quantity cannot be negative.
pub fn negative(path: &str, wanted: &Wanted, before: Option<&Parameter>, range: Option<&Range>) -> Reply {
    let unit = wanted.unit.as_deref();
    let found = match &wanted.how {
        Some(how) => format!("{} ({how})", quantity(wanted.value, unit)),
        None => quantity(wanted.value, unit),
    };
    let kind = unit.and_then(units::kind).unwrap_or("this quantity");
    let rule = if wanted.value == 0.0 { "zero" } else { "negative" };
    let text = Text::new().code(path).plain(format!(" can't be {found}: {kind} is never {rule}."));
    let text = match before {
        Some(now) => text.plain(format!(" It is {} now.", now.words())),
        None => text,
    };
    let zero = quantity(0.0, unit);
    Reply::text(text).hint(match range {
        Some(range) => format!("Allowed: {}.", range.words()),
        None if path == BODY_WEIGHT => format!("Allowed: more than {zero}."),
        None => format!("Allowed: {zero} or more."),
    })
}

/// Warns a run that a value on an open card is not set yet; `None` if the present value is not known.
pub fn not_set_yet(set: &ActionRecord) -> Option<Text> {
    let now = quantity(set.preconditions["value"].as_f64()?, set.preconditions["unit"].as_str());
    let text = Text::new().bold(set.act()).plain(format!(" is not approved yet: this run uses the current {now} of "));
    Some(text.code(set.parameters["parameter"].as_str()?).plain("."))
}

/// Warns that a value does not change in the direction that was asked for.
pub fn wrong_direction(direction: Option<&str>, before: &Parameter, wanted: &Wanted) -> Option<Text> {
    let (asked, is) = match direction? {
        "up" if wanted.value < before.value => ("higher", "below"),
        "down" if wanted.value > before.value => ("lower", "above"),
        _ => return None,
    };
    let [after, now] = [wanted.value, before.value].map(|value| quantity(value, before.unit.as_deref()));
    Some(Text::from(format!("You asked for a {asked} value, but {after} is {is} the current {now}.")))
}

/// Warns of a step of more than [`HUGE`] times the current value, which is often a slip in the unit.
pub fn huge_step(before: f64, after: f64) -> Option<Text> {
    if before == 0.0 || after == 0.0 {
        return None;
    }
    let times = (after / before).abs();
    let factor = |times: f64| match times {
        times if times >= 1e6 => format!("{} million", number((times / 1e6).round())),
        times => number(times.round()),
    };
    let words = match times {
        times if times > HUGE => format!("This is about {} times the current value.", factor(times)),
        times if times < 1.0 / HUGE => format!("The current value is about {} times as large.", factor(1.0 / times)),
        _ => return None,
    };
    Some(Text::from(format!("{words} Check the number and its unit.")))
}

/// Says that a fraction is between nothing and the whole.
pub fn no_fraction(path: &str, said: &str) -> Reply {
    Reply::text(Text::new().code(path).plain(format!(" can't be {said}: a fraction is between 0 and 1 (0–100%).")))
        .hint("Give a value in this range, such as 0.5 or 50%.")
}

/// Says that a comparison is in progress.
pub fn comparison_in_progress(comparison: &ActionRecord) -> Reply {
    Reply::text(outcomes::comparison(comparison).plain("."))
        .hint("Ask again when it ends. To end it now, say “stop” in its thread.")
}

/// Says that the unit is not known.
pub fn unknown_unit(given: &str, path: &str, unit: Option<&str>) -> Reply {
    let text = Text::from("I don't know the unit “").plain(given).plain("”. ").code(path);
    Reply::text(match unit {
        Some(unit) => text.plain(format!(" is given in {unit}.")),
        None => text.plain(" is a number without a unit."),
    })
}

/// Says that the default is not known.
pub fn no_default(path: &str, simulation: &str) -> Reply {
    let text = Text::from("I don't know the default of ")
        .code(path)
        .plain(": the bridge reports only current values, and I haven't changed this one since I last started.");
    Reply::text(text)
        .hint("Give the value as a number, or restore a snapshot.")
        .choice("Show the snapshots", format!("list the snapshots of {simulation}"))
}

/// Says that there is no present value to which the change could be applied.
pub fn no_present_value(path: &str) -> Reply {
    Reply::text(Text::new().code(path).plain(" has no value yet, so there is nothing to change it from."))
        .hint("Give a number with its unit.")
}

/// Says that the bridge would refuse the value.
pub fn out_of_range(path: &str, wanted: &str, range: &Range) -> Reply {
    let text = Text::from(format!("{wanted} is outside the range that the bridge allows for ")).code(path);
    Reply::text(text.plain(format!(": {}.", range.words()))).hint("Give a value in this range.")
}

/// Says that the parameter already has this value.
pub fn already(path: &str, simulation: &str, value: &str) -> Reply {
    Reply::text(
        Text::new()
            .code(path)
            .plain(" in ")
            .bold(simulation)
            .plain(format!(" is already {value}, so there's nothing to change.")),
    )
}

/// Offers to set the changed parameters back to the values in the model file, which takes a card for each.
pub fn back_to_loaded(simulation: &str, changed: &[Changed]) -> Reply {
    if changed.is_empty() {
        return Reply::text(
            Text::from("I have no changes to ").bold(simulation).plain(" on record since it was loaded."),
        )
        .hint("Others may have changed it. A snapshot shows the values at one point in time.")
        .choice("Show the snapshots", format!("list the snapshots of {simulation}"));
    }
    let text = Text::from("Changed in ").bold(simulation).plain(" since it was loaded: ");
    let reply = Reply::text(text.join(changes::listed(changed)).plain(". Which of these should I set back?"));
    let back = |change: &Changed| quantity(change.before, change.unit.as_deref());
    changed.iter().take(MAX_BACK).fold(reply, |reply, change| {
        let label = format!("Set {} back to {}", last_part(&change.path), back(change));
        reply.choice(label, format!("set {} to default in {simulation}", change.path))
    })
}

/// Says that a simulation with this name is already loaded.
pub fn loaded_already(id: &str, says: impl Fn(&str) -> String, free: &str) -> Reply {
    Reply::text(
        Text::from("A simulation called ")
            .bold(id)
            .plain(" is already loaded, and the bridge doesn't replace it. Should I use it as it is?"),
    )
    .hint("Or load the file under another name.")
    .choice("Use it as it is", format!("use {id} as it is"))
    .choice(format!("Load it as {free}"), says(free))
    .choice("Show its parameters", format!("list the parameters of {id}"))
}

/// Says that the bridge does not load such a file.
pub fn not_a_model(file: &str, endings: &str) -> Reply {
    Reply::text(Text::new().code(file).plain(format!(" isn't a model file. The bridge loads {endings}.")))
}

/// Says that the name is not valid.
pub fn bad_name() -> Reply {
    Reply::text("A simulation's name has 1 to 64 characters on one line.")
}

/// Says that this version of the bridge does not list model files.
pub fn no_discovery(deps: &Deps) -> Reply {
    let reply = Reply::text("This version of the bridge doesn't list its model files.");
    match &deps.settings.models {
        Some(folder) => reply.hint(format!("They are in {folder}. Say, for example, “load the demo model”.")),
        None => reply.hint("Name the file, for example “load /data/models/demo.pkml as renal-study”."),
    }
}
