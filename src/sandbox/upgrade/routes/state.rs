//! `POST /experiments/state`: any status may follow any other.

use serde_json::Value;

use super::{Call, checked};
use crate::upgrade::{
    assign,
    failure::{Failure, Outcome},
    validate, wire,
    world::{State, World},
};

/// `POST /experiments/state`
pub(crate) fn change(world: &mut World, call: &Call) -> Outcome {
    checked(&validate::state_change(&call.body, world.version))?;
    let id = call.text("experimentId").unwrap_or_default();
    let to = State::read(call.text("state").unwrap_or_default(), world.version).expect("the validator has accepted it");
    let Some(before) = world.experiment(id).cloned() else {
        return Err(Failure::unhandled_exception("Cannot read properties of null (reading 'context')"));
    };
    if to == State::Enrolling {
        assign::exclude_early_visitors(world, id);
    }
    if let (State::Scheduled, Value::String(date)) = (to, &call.body["scheduleDate"])
        && let Some(experiment) = world.experiment_mut(id)
    {
        experiment.row.start_on = Some(date.clone());
    }
    world.change_state(id, to);
    let after = world.experiment(id).expect("the world is locked");
    Ok(wire::state_changed(&before, after, world.version))
}
