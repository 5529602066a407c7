//! The inclusion and exclusion lists of an experiment, since 6.3.
//!
//! The platform does not validate these bodies: a mistake results in status 500 with the message of
//! the exception.

use serde_json::{Value, json};

use super::Call;
use crate::upgrade::{
    failure::{Failure, Outcome},
    wire,
    world::{Experiment, List, Segment, Stamp, World, fresh_id},
};

/// The kind of list that a path names.
#[derive(Clone, Copy)]
enum Kind {
    Inclusion,
    Exclusion,
}

impl Kind {
    fn of(call: &Call) -> Self {
        if call.segments.iter().any(|part| part == "exclusionList") { Self::Exclusion } else { Self::Inclusion }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Inclusion => "inclusion",
            Self::Exclusion => "exclusion",
        }
    }

    fn lists(self, experiment: &Experiment) -> &Vec<List> {
        match self {
            Self::Inclusion => &experiment.inclusion,
            Self::Exclusion => &experiment.exclusion,
        }
    }

    fn lists_mut(self, experiment: &mut Experiment) -> &mut Vec<List> {
        match self {
            Self::Inclusion => &mut experiment.inclusion,
            Self::Exclusion => &mut experiment.exclusion,
        }
    }
}

/// `POST /experiments/inclusionList` and `…/exclusionList`.
pub(crate) fn add(world: &mut World, call: &Call) -> Outcome {
    let kind = Kind::of(call);
    let fault = |what: &str| {
        let message = format!("Error in {what}");
        Failure::error(500, message, Some("Query Failed"))
    };
    let id = call.text("experimentId").unwrap_or_default().to_owned();
    let Some(segment) = read_segment(world, &call.body["list"], fresh_id()) else {
        return Err(fault(&format!(
            "creating private segment for experiment {} list: QueryFailedError: null value in column \"name\" of \
             relation \"segment\" violates not-null constraint",
            kind.word()
        )));
    };
    if world.experiment(&id).is_none() {
        return Err(fault(&format!(
            "adding segment for experiment {} list: QueryFailedError: null value in column \"experimentId\" of \
             relation \"experiment_segment_{}\" violates not-null constraint",
            kind.word(),
            kind.word()
        )));
    }
    let list = List { stamp: Stamp::new(world.now), segment };
    if let Some(experiment) = world.experiment_mut(&id) {
        kind.lists_mut(experiment).push(list.clone());
    }
    log(world, &id, kind.word(), &list, "created");
    answer(world, &id, &list)
}

/// `PUT /experiments/inclusionList/{id}` and `…/exclusionList/{id}`.
pub(crate) fn replace(world: &mut World, call: &Call) -> Outcome {
    let kind = Kind::of(call);
    let (in_path, in_body) = (call.last(), call.body["list"]["id"].as_str().unwrap_or("undefined"));
    if in_path != in_body {
        let message = format!(
            "Parameter not in the correct format: The id in the URL ({in_path}) does not match the list id in the \
             request body ({in_body})."
        );
        return Err(Failure::error(500, message, None));
    }
    let (id, mut list) = find(world, kind, in_path)?;
    let Some(segment) = read_segment(world, &call.body["list"], in_path.to_owned()) else {
        return Err(Failure::error(500, "Error in updating the list", Some("Query Failed")));
    };
    list.segment = Segment { stamp: list.segment.stamp.clone(), ..segment };
    if let Some(experiment) = world.experiment_mut(&id)
        && let Some(kept) = kind.lists_mut(experiment).iter_mut().find(|kept| kept.segment.id == in_path)
    {
        *kept = list.clone();
    }
    log(world, &id, kind.word(), &list, "updated");
    answer(world, &id, &list)
}

/// `DELETE /experiments/inclusionList/{id}` and `…/exclusionList/{id}`.
pub(crate) fn delete(world: &mut World, call: &Call) -> Outcome {
    let kind = Kind::of(call);
    let (id, list) = find(world, kind, call.id()?)?;
    if let Some(experiment) = world.experiment_mut(&id) {
        kind.lists_mut(experiment).retain(|kept| kept.segment.id != list.segment.id);
    }
    log(world, &id, kind.word(), &list, "deleted");
    Ok(wire::bare_segment(&list.segment))
}

fn find(world: &World, kind: Kind, segment: &str) -> Result<(String, List), Failure> {
    let owned = |experiment: &Experiment| {
        let list = kind.lists(experiment).iter().find(|list| list.segment.id == segment)?;
        Some((experiment.row.id.clone(), list.clone()))
    };
    world
        .experiments
        .iter()
        .find_map(owned)
        .ok_or_else(|| Failure::error(500, format!("Segment with ID {segment} not found for {}", kind.word()), None))
}

fn answer(world: &World, id: &str, list: &List) -> Outcome {
    let experiment = world.experiment(id).expect("the caller has just found it");
    Ok(wire::list_answer(list, experiment, world))
}

/// Adds a change of a list to the audit log. `kind` is `inclusion` or `exclusion`.
pub(crate) fn log(world: &mut World, id: &str, kind: &str, list: &List, operation: &str) {
    let name = world.experiment(id).map(|experiment| experiment.row.name.clone());
    let data = json!({
        "experimentId": id, "experimentName": name,
        "list": {
            "listId": list.segment.id, "listName": list.segment.name,
            "filterType": kind, "operation": operation,
        },
    });
    world.log("experimentUpdated", data);
}

/// Reads a segment in the flat format of the list and segment endpoints; `None` if it has no name.
pub(crate) fn read_segment(world: &World, sent: &Value, id: String) -> Option<Segment> {
    let text = |name: &str| sent[name].as_str().map(str::to_owned);
    let texts = |name: &str| -> Vec<String> {
        sent[name].as_array().into_iter().flatten().filter_map(|it| it.as_str().map(str::to_owned)).collect()
    };
    let group = |group: &Value| Some((group["type"].as_str()?.to_owned(), group["groupId"].as_str()?.to_owned()));
    Some(Segment {
        stamp: Stamp::new(world.now),
        id,
        name: text("name")?,
        description: text("description"),
        list_type: text("listType"),
        context: text("context").unwrap_or_default(),
        kind: text("type").unwrap_or_else(|| "private".to_owned()),
        tags: sent["tags"].clone(),
        users: texts("userIds"),
        groups: sent["groups"].as_array().into_iter().flatten().filter_map(group).collect(),
        sub_segments: texts("subSegmentIds"),
    })
}
