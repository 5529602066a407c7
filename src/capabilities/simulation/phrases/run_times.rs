//! Runs for a length of time: “run it for 24 hours” may mean the time that is simulated, or the time that the run may take.

use countersign_understanding::{
    phrases::Utterance,
    user_request::Interpretation,
    words::{after, skip, text, without_last},
};

use super::{OWNER, last_simulation, seconds};

/// The parameter that ends the simulated time in models of PK-Sim and MoBi.
const END_TIME: &str = "Simulation|EndTime";

/// Returns the question which of the two times is meant, with a request for each.
pub(super) fn question(utterance: Utterance<'_>) -> Option<Interpretation> {
    let Utterance { words, situation, .. } = utterance;
    let rest = after(words, "run|simulate|execute|rerun|re-run")?;
    let rest = skip(rest, "the|a|this|that");
    let names_kind = after(rest, "simulation|model").is_some();
    let rest = skip(rest, "simulation|model|it");
    let named = rest.first().filter(|first| first.owner.as_deref() == Some(OWNER));
    let rest = if named.is_some() { &rest[1..] } else { rest };
    let rest = skip(skip(rest, "again"), "for|over|within|until|up to|for up to");
    let rest = without_last(skip(rest, "the next"), &["please", "again"]);
    seconds(rest).filter(|found| found.taken == rest.len())?;
    let is_simulation = |name: &String| situation.names.iter().any(|known| known.owner == OWNER && known.name == *name);
    let is_about = named.is_some()
        || situation.last_subject.as_ref().is_some_and(is_simulation)
        || names_kind
        || words[0].is("simulate")
        || situation.subjects.contains_key(OWNER)
        || utterance.topic_of(OWNER).is_some();
    if !is_about {
        return None;
    }
    let time = text(rest);
    let simulation = named.map(|named| named.text.clone()).or_else(|| last_simulation(utterance));
    let (within, run) = match &simulation {
        Some(simulation) if !simulation.contains(char::is_whitespace) => {
            (format!(" in {simulation}"), format!("run {simulation}"))
        }
        Some(simulation) => (format!(" in “{simulation}”"), format!("run “{simulation}”")),
        None => (String::new(), "run the simulation".to_owned()),
    };
    Some(Interpretation::unclear(
        format!("Should the simulated time be {time}, or should the run take no longer than {time}?"),
        vec![format!("set {END_TIME} to {time}{within}"), format!("{run} with a time limit of {time}")],
    ))
}
