//! `POST /experiments/paginated`.
//!
//! As on the platform, pages are formed in order of id, and only the rows within a page are
//! sorted. A client that wants the first names of all has to request everything.

use serde_json::json;

use super::{Call, checked};
use crate::upgrade::{
    Version,
    failure::Outcome,
    validate, wire,
    world::{Experiment, State, World, is_id},
};

/// `POST /experiments/paginated`
pub(crate) fn paginated(world: &mut World, call: &Call) -> Outcome {
    checked(&validate::search(&call.body))?;
    let search = &call.body["searchParams"];
    let (key, text) = (search["key"].as_str().unwrap_or_default(), search["string"].as_str().unwrap_or_default());
    let mut found: Vec<&Experiment> =
        world.experiments.iter().filter(|experiment| matches(experiment, key, text, world.version)).collect();
    found.sort_by(|one, other| one.row.id.cmp(&other.row.id));
    let count = |name: &str| usize::try_from(call.body[name].as_u64().unwrap_or_default()).unwrap_or(usize::MAX);
    let matching = found.len();
    let mut page: Vec<&Experiment> = found.into_iter().skip(count("skip")).take(count("take")).collect();
    let sort = &call.body["sortParams"];
    if let Some(key) = sort["key"].as_str() {
        page.sort_by_key(|experiment| sort_text(experiment, key));
        if sort["sortAs"] == "DESC" {
            page.reverse();
        }
    }
    let mut answer = call.body.clone();
    answer["nodes"] = page.into_iter().map(|experiment| wire::node(experiment, world)).collect();
    if world.version == Version::V6_2 {
        answer["filtered"] = json!(matching);
        answer["total"] = json!(world.experiments.len());
    } else {
        answer["total"] = json!(matching);
    }
    Ok(answer)
}

fn sort_text(experiment: &Experiment, key: &str) -> String {
    match key {
        "name" => experiment.row.name.clone(),
        "state" => experiment.row.state.stored().to_owned(),
        "postExperimentRule" => experiment.row.post_experiment_rule.clone(),
        _ => experiment.row.stamp.updated_at.clone(),
    }
}

fn matches(experiment: &Experiment, key: &str, text: &str, version: Version) -> bool {
    let row = &experiment.row;
    let wanted = text.to_lowercase();
    let holds = |own: &str| own.to_lowercase().contains(&wanted);
    let in_name = || holds(&row.name);
    let in_context = || row.context.iter().any(|own| holds(own));
    let in_tags = || row.tags.iter().any(|own| holds(own));
    let in_state = || State::read(text, version) == Some(row.state);
    match key {
        "name" => in_name(),
        "context" => in_context(),
        "tag" => in_tags(),
        "status" => in_state(),
        "id" => !is_id(text) || row.id == text,
        "all" => {
            let in_points =
                || experiment.points.iter().any(|p| holds(&p.site) || p.target.as_deref().is_some_and(holds));
            in_name() || in_context() || in_tags() || in_state() || in_points() || (is_id(text) && row.id == text)
        }
        _ => true,
    }
}
