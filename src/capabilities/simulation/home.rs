//! The section of the Home tab: the loaded simulations and the current runs.

use countersign_capabilities::facts::{Facts, deadline};
use countersign_core::reply::{Part, Reply, Text};
use serde_json::json;

use super::{
    Deps, SERVICE,
    actions::{compare, population, sensitivity},
    bridge::data::Loaded,
    memory::run_target,
    replies::answers,
    under_way::{self, UnderWay},
};

/// The maximum number of entries in a list.
const MAX_LISTED: usize = 8;

/// The maximum number of earlier runs that are counted.
const MAX_COUNTED: usize = 200;

/// Returns the section.
pub(super) async fn section(deps: &Deps, facts: &Facts) -> Option<Reply> {
    let reply = Reply::default().and(Part::Heading("Simulations".to_owned()));
    let loaded = match facts.read(SERVICE.name, "list_simulations", json!({}), deadline()).await {
        Ok(fact) => fact.answer,
        Err(error) => return Some(reply.and(Part::Text(Text::from(error.words())))),
    };
    let loaded: Vec<Loaded> = answers::part(&loaded["simulations"]);
    let names = loaded.iter().take(MAX_LISTED).map(|loaded| Text::new().bold(&loaded.id));
    let names: Vec<Text> = names.collect();
    let line = match loaded.len() {
        0 => Text::from("Nothing is loaded."),
        count if count > MAX_LISTED => {
            Text::from(format!("{count} are loaded, such as ")).join(Text::listed(names, "and")).plain(".")
        }
        _ => Text::from("Loaded: ").join(Text::listed(names, "and")).plain("."),
    };
    let reply = reply.and(Part::Text(line));
    let mut running: Vec<Text> = Vec::new();
    // The records are in the store, so work that was begun before a restart is found as well.
    for record in under_way::of_simulations(deps, loaded.iter().map(|loaded| loaded.id.as_str())).await {
        let work = UnderWay::of(&record);
        let number = deps.memory.records(&run_target(&work.simulation), MAX_COUNTED).await.len();
        running.push(described(&work.simulation, &work, number));
    }
    running.truncate(MAX_LISTED);
    Some(match running.is_empty() {
        true => reply,
        false => reply.and(Part::Text(Text::from("Running:"))).and(Part::List(running)),
    })
}

/// Describes the work on a simulation: `demo, run 3`. `number` is the number of its runs so far.
fn described(simulation: &str, work: &UnderWay, number: usize) -> Text {
    let name = Text::new().bold(simulation);
    match work.action.as_str() {
        compare::NAME => name.plain(format!(", comparison of {} values", work.total)),
        sensitivity::NAME => name.plain(", sensitivity analysis"),
        population::NAME => match work.subjects {
            Some(subjects) => name.plain(format!(", {subjects} virtual subjects")),
            None => name.plain(", a population"),
        },
        _ if (1..MAX_COUNTED).contains(&number) => name.plain(format!(", run {number}")),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::{super::actions::run, *};

    #[test]
    fn work_is_named_and_not_numbered_by_job() {
        let work =
            |action: &str| UnderWay { action: action.to_owned(), subjects: Some(50), total: 3, ..UnderWay::default() };
        let said = |action: &str, number| described("demo", &work(action), number).words();
        assert_eq!(said(run::NAME, 3), "demo, run 3");
        assert_eq!(said(run::NAME, 0), "demo");
        assert_eq!(said(compare::NAME, 3), "demo, comparison of 3 values");
        assert_eq!(said(sensitivity::NAME, 3), "demo, sensitivity analysis");
        assert_eq!(said(population::NAME, 3), "demo, 50 virtual subjects");
    }
}
