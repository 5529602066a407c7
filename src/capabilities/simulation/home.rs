//! The section of the Home tab: the loaded simulations and the current runs.

use countersign_capabilities::facts::{Facts, deadline};
use countersign_core::reply::{Part, Reply, Text};
use serde_json::json;

use super::{Deps, SERVICE, bridge::data::Loaded, replies::answers};

/// The maximum number of entries in a list.
const MAX_LISTED: usize = 8;

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
    let running: Vec<Text> = deps
        .memory
        .runs()
        .iter()
        .filter(|run| run.took.is_none())
        .take(MAX_LISTED)
        .map(|run| Text::new().bold(&run.simulation).plain(", job ").code(&run.job))
        .collect();
    Some(match running.is_empty() {
        true => reply,
        false => reply.and(Part::Text(Text::from("Running:"))).and(Part::List(running)),
    })
}
