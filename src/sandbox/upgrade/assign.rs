//! The assignment of conditions to users, and the effects of a visit.
//!
//! A draw is a number from 0 to 100 computed from a hash of the ids of the experiment and the user
//! (or working group). The platform uses its own seeded generator instead. So the shares of
//! conditions and the consistency of assignments are the same as on the platform, but individual
//! assignments differ.
//!
//! [`condition_for`] is the assignment, [`entries`] the answer to an application that requests
//! assignments, [`enrol`] the effect of a mark. Nothing here depends on HTTP or the version: both
//! lines behave alike.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::world::{
    Condition, Enrollment, Exclusion, Experiment, GroupEnrollment, GroupExclusion, Point, Segment, State, User, World,
};

/// Returns a number from 0 to 100, always the same for the same seed.
#[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
fn draw(seed: &str) -> f64 {
    let hash = Sha256::digest(seed.as_bytes());
    let bits = u64::from_be_bytes(hash[..8].try_into().expect("a hash has 32 bytes")) >> 11;
    bits as f64 / (1_u64 << 53) as f64 * 100.0
}

/// Returns the condition in whose share of the summed weights the draw falls, or the first one if
/// it exceeds the sum.
fn drawn<'a>(experiment: &'a Experiment, by: &str) -> Option<&'a Condition> {
    let number = draw(&format!("{}{by}", experiment.row.id));
    let conditions = experiment.in_order();
    let mut sum = 0.0;
    for condition in &conditions {
        sum += condition.assignment_weight;
        if number < sum {
            return Some(condition);
        }
    }
    conditions.first().copied()
}

/// A user and an experiment, with access to the records about them.
struct Case<'a> {
    world: &'a World,
    experiment: &'a Experiment,
    user: &'a str,
    /// The user's working group, if the assignment unit is a group.
    group: Option<&'a str>,
}

impl<'a> Case<'a> {
    fn new(world: &'a World, experiment: &'a Experiment, user: &'a str) -> Self {
        let kind = experiment.row.group.as_deref().filter(|_| experiment.by_group());
        let group = kind.and_then(|kind| world.users.get(user)?.valid_working_group(kind));
        Self { world, experiment, user, group }
    }

    fn id(&self) -> &str {
        &self.experiment.row.id
    }

    fn enrollment(&self) -> Option<&'a Enrollment> {
        let id = self.id();
        self.world.enrollments.iter().find(|row| row.experiment == id && row.user == self.user)
    }

    fn own_condition(&self) -> Option<&'a Condition> {
        self.experiment.condition(self.enrollment()?.condition.as_deref()?)
    }

    fn group_condition(&self) -> Option<&'a Condition> {
        let (id, group) = (self.id(), self.group?);
        let rows = &self.world.group_enrollments;
        let row = rows.iter().find(|row| row.experiment == id && row.group == group)?;
        self.experiment.condition(&row.condition)
    }

    fn is_excluded(&self) -> bool {
        let id = self.id();
        self.world.exclusions.iter().any(|row| row.experiment == id && row.user == self.user)
    }

    fn group_is_excluded(&self) -> bool {
        let id = self.id();
        let excluded = |group| self.world.group_exclusions.iter().any(|row| row.experiment == id && row.group == group);
        self.experiment.rule_is("group") && self.group.is_some_and(excluded)
    }

    /// Returns true if the unit is a group and the user has no valid working group.
    fn lacks_group(&self) -> bool {
        self.experiment.by_group() && self.group.is_none()
    }

    fn while_enrolling(&self) -> Option<&'a Condition> {
        if self.is_excluded() || self.group_is_excluded() {
            return None;
        }
        match (self.experiment.by_group(), self.experiment.rule_is("individual")) {
            (false, _) => self.own_condition().or_else(|| drawn(self.experiment, self.user)),
            (true, true) => self.own_condition().or_else(|| self.by_group()),
            (true, false) => self.by_group(),
        }
    }

    fn by_group(&self) -> Option<&'a Condition> {
        self.group_condition().or_else(|| drawn(self.experiment, self.group?))
    }

    fn while_paused(&self) -> Option<&'a Condition> {
        if self.experiment.row.post_experiment_rule == "assign" {
            let named = self.experiment.condition(self.experiment.row.revert_to.as_deref()?)?;
            let takes_part =
                if self.experiment.by_group() { self.group_condition().is_some() } else { self.enrollment().is_some() };
            return takes_part.then_some(named);
        }
        if self.is_excluded() || self.group_is_excluded() {
            return None;
        }
        match (self.experiment.by_group(), self.experiment.rule_is("individual")) {
            (false, _) => self.own_condition(),
            (true, true) => self.own_condition().or_else(|| self.group_condition()),
            (true, false) => self.group_condition(),
        }
    }

    fn condition(&self) -> Option<&'a Condition> {
        if self.lacks_group() {
            return None;
        }
        match self.experiment.row.state {
            State::Enrolling => self.while_enrolling(),
            State::EnrollmentComplete => self.while_paused(),
            State::Preview if self.world.preview_users.contains(self.user) => self.while_enrolling(),
            _ => None,
        }
    }
}

/// Returns the current condition of the user in the experiment; `None` if the application shows its
/// default.
pub(crate) fn condition_for<'a>(world: &'a World, experiment: &'a Experiment, user: &'a str) -> Option<&'a Condition> {
    if is_listed_out(world, experiment, user) { None } else { Case::new(world, experiment, user).condition() }
}

/// Returns true if the lists exclude the user.
///
/// The first match decides, in this order: global exclusion, exclusion of the user, inclusion of
/// the user, exclusion of a group, inclusion of a group, filter mode. Groups are matched by
/// membership, not by working group.
fn is_listed_out(world: &World, experiment: &Experiment, user: &str) -> bool {
    let context = experiment.row.context.first().map_or("", String::as_str);
    let global =
        || world.segments.iter().filter(|segment| segment.kind == "global_exclude" && segment.context == context);
    let excluded = || experiment.exclusion.iter().map(|list| &list.segment);
    let included = || experiment.inclusion.iter().map(|list| &list.segment);
    let named = |segment: &Segment| names(world, segment, user, 0);
    let grouped =
        |segment: &Segment| world.users.get(user).is_some_and(|person| holds_group_of(world, segment, person, 0));
    if global().any(|segment| named(segment) || grouped(segment)) || excluded().any(named) {
        true
    } else if included().any(named) {
        false
    } else if excluded().any(grouped) {
        true
    } else {
        !included().any(grouped) && experiment.row.filter_mode == "excludeAll"
    }
}

/// The maximum depth of nested segments that is searched.
const MAX_DEPTH: u8 = 8;

fn parts<'a>(world: &'a World, segment: &'a Segment) -> impl Iterator<Item = &'a Segment> {
    segment.sub_segments.iter().filter_map(|id| world.segments.iter().find(|part| part.id == *id))
}

fn names(world: &World, segment: &Segment, user: &str, depth: u8) -> bool {
    segment.users.iter().any(|name| name == user)
        || (depth < MAX_DEPTH && parts(world, segment).any(|part| names(world, part, user, depth + 1)))
}

fn holds_group_of(world: &World, segment: &Segment, user: &User, depth: u8) -> bool {
    segment.groups.iter().any(|(kind, id)| user.belongs_to(kind, id))
        || (depth < MAX_DEPTH && parts(world, segment).any(|part| holds_group_of(world, part, user, depth + 1)))
}

fn is_live(world: &World, experiment: &Experiment, user: &str) -> bool {
    match experiment.row.state {
        State::Enrolling | State::EnrollmentComplete => true,
        State::Preview => world.preview_users.contains(user),
        _ => false,
    }
}

fn share_a_point(one: &Experiment, other: &Experiment) -> bool {
    one.points.iter().any(|point| other.point_at(&point.site, point.target.as_deref()).is_some())
}

/// Returns the user's experiment among those that share points: the one in which the user is
/// enrolled, or else a random one.
fn chosen<'a>(world: &World, pool: &[&'a Experiment], user: &str) -> Option<&'a Experiment> {
    let enrolled = pool.iter().find(|experiment| {
        let case = Case::new(world, experiment, user);
        case.enrollment().is_some() || case.group_condition().is_some()
    });
    enrolled.or_else(|| by_lot(pool, "pool", user)).copied()
}

fn by_lot<'p, 'a>(pool: &'p [&'a Experiment], salt: &str, user: &str) -> Option<&'p &'a Experiment> {
    let lot = |experiment: &Experiment| draw(&format!("{salt}/{}/{user}", experiment.row.id));
    pool.iter().max_by(|one, other| lot(one).total_cmp(&lot(other)))
}

/// Returns the running experiments of a context in which the user takes part: at most one of each
/// pool of experiments that share points.
fn taking_part<'a>(world: &'a World, context: &str, user: &str) -> Vec<&'a Experiment> {
    let mut open: Vec<&Experiment> = world
        .experiments
        .iter()
        .filter(|experiment| experiment.row.context.iter().any(|own| own == context))
        .filter(|experiment| is_live(world, experiment, user) && !is_listed_out(world, experiment, user))
        .collect();
    let mut found = Vec::new();
    while let Some(first) = open.pop() {
        let mut pool = vec![first];
        let mut at = 0;
        while at < pool.len() {
            let (near, far) = open.into_iter().partition(|other| share_a_point(pool[at], other));
            pool.extend::<Vec<_>>(near);
            open = far;
            at += 1;
        }
        found.extend(chosen(world, &pool, user));
    }
    found
}

/// Returns the answer to an application that requests the assignments in a context: one entry for
/// each point with a condition for the user.
pub(crate) fn entries(world: &World, context: &str, user: &str) -> Vec<Value> {
    let mut found = Vec::new();
    for experiment in taking_part(world, context, user).into_iter().rev() {
        for point in &experiment.points {
            found.extend(entry(world, experiment, point, user));
        }
    }
    found
}

fn entry(world: &World, experiment: &Experiment, point: &Point, user: &str) -> Option<Value> {
    let shown = |condition: &Condition| {
        let payload = experiment
            .payloads
            .iter()
            .find(|payload| payload.parent_condition == condition.id && payload.decision_point == point.id);
        json!({
            "id": condition.id, "conditionCode": condition.condition_code, "experimentId": experiment.row.id,
            "payload": payload.map_or(Value::Null, |payload| payload.payload.clone()),
        })
    };
    let (assigned, factors) = if experiment.row.assignment_unit == "within-subjects" {
        (queue(world, experiment, point, user)?.into_iter().map(shown).collect(), None)
    } else {
        let condition = condition_for(world, experiment, user)?;
        (vec![shown(condition)], (experiment.row.kind == "Factorial").then(|| levels(experiment, condition)))
    };
    let mut entry = json!({
        "site": point.site, "target": point.target, "experimentType": experiment.row.kind, "assignedCondition": assigned,
    });
    if let Some(levels) = factors {
        entry["assignedFactor"] = json!([levels]);
    }
    Some(entry)
}

/// Returns the next conditions of a user in a within-subjects experiment, one for each visit.
fn queue<'a>(world: &'a World, experiment: &'a Experiment, point: &Point, user: &'a str) -> Option<Vec<&'a Condition>> {
    let case = Case::new(world, experiment, user);
    if experiment.row.state != State::Enrolling || case.is_excluded() {
        return None;
    }
    let mut conditions = experiment.in_order();
    let order = experiment.row.condition_order.as_deref();
    if order != Some("ordered round robin") {
        let lot = |condition: &Condition| draw(&format!("{}{user}{}", experiment.row.id, condition.id));
        conditions.sort_by(|one, other| lot(one).total_cmp(&lot(other)));
    }
    let here = |visit: &&super::world::Visit| {
        visit.user == user && visit.site == point.site && Some(&visit.target) == point.target.as_ref()
    };
    let marks = world.visits.iter().find(here).map_or(0, |visit| visit.marks as usize);
    if !conditions.is_empty() && order != Some("random") {
        let turn = marks % conditions.len();
        conditions.rotate_left(turn);
    }
    Some(conditions)
}

fn levels(experiment: &Experiment, condition: &Condition) -> Value {
    let mut by_factor = json!({});
    for element in &condition.level_combination_elements {
        let level = &element["level"];
        let of_level = |factor: &&Value| {
            factor["levels"].as_array().is_some_and(|levels| levels.iter().any(|own| own["id"] == level["id"]))
        };
        if let Some(name) = experiment.factors.iter().find(of_level).and_then(|factor| factor["name"].as_str()) {
            let payload = json!({ "type": level["payloadType"], "value": level["payloadValue"] });
            by_factor[name] = json!({ "level": level["name"], "payload": payload });
        }
    }
    by_factor
}

/// Returns the experiment to which a mark without an experiment id is attributed, at random.
pub(crate) fn owner_of_point<'a>(world: &'a World, site: &str, target: &str, user: &str) -> Option<&'a Experiment> {
    by_lot(&owners(world, site, target, user), "mark", user).copied()
}

/// Returns the running experiments that own a point.
pub(crate) fn owners<'a>(world: &'a World, site: &str, target: &str, user: &str) -> Vec<&'a Experiment> {
    let owns = |experiment: &&Experiment| {
        is_live(world, experiment, user) && experiment.point_at(site, Some(target)).is_some()
    };
    world.experiments.iter().filter(owns).collect()
}

/// Enrols or excludes a user after a visit, or does neither.
pub(crate) fn enrol(world: &mut World, experiment: &str, point: &str, user: &str, applied: bool) {
    let Some(experiment) = world.experiment(experiment) else { return };
    let case = Case::new(world, experiment, user);
    let id = experiment.row.id.clone();
    let group = case.group.map(str::to_owned);
    let paused = experiment.row.state == State::EnrollmentComplete;
    let out = !applied
        || case.lacks_group()
        || is_listed_out(world, experiment, user)
        || case.is_excluded()
        || case.group_is_excluded();
    let within = experiment.row.assignment_unit == "within-subjects";
    let enrolled = case.enrollment().is_some();
    if out {
        exclude(world, &id, user);
    } else if !paused {
        let condition = if within { None } else { case.condition().map(|condition| condition.id.clone()) };
        if within || condition.is_some() {
            join(world, &id, point, user, group, condition);
        }
    } else if experiment.rule_is("experiment") {
        let named = experiment.row.revert_to.clone().filter(|_| experiment.row.post_experiment_rule == "assign");
        let named = named.filter(|named| experiment.condition(named).is_some());
        let condition = match experiment.row.post_experiment_rule.as_str() {
            "assign" => named,
            _ => case.condition().map(|condition| condition.id.clone()),
        };
        if let Some(condition) = condition.filter(|_| !enrolled) {
            join(world, &id, point, user, group, Some(condition));
        }
    } else if !enrolled && case.group_condition().is_none() {
        exclude(world, &id, user);
    }
    world.changed();
}

fn join(world: &mut World, id: &str, point: &str, user: &str, group: Option<String>, condition: Option<String>) {
    if let (Some(group), Some(condition)) = (&group, &condition)
        && !world.group_enrollments.iter().any(|row| row.experiment == id && row.group == *group)
    {
        let (experiment, group, condition) = (id.to_owned(), group.clone(), condition.clone());
        world.group_enrollments.push(GroupEnrollment { experiment, group, condition });
    }
    if !world.enrollments.iter().any(|row| row.experiment == id && row.user == user && row.point == point) {
        world.enrollments.push(Enrollment {
            experiment: id.to_owned(),
            user: user.to_owned(),
            point: point.to_owned(),
            condition,
            group,
            at: world.now,
        });
    }
}

fn exclude(world: &mut World, id: &str, user: &str) {
    if !world.exclusions.iter().any(|row| row.experiment == id && row.user == user) {
        world.exclusions.push(Exclusion { experiment: id.to_owned(), user: user.to_owned() });
    }
}

/// Excludes users who visited a point with `excludeIfReached` before the start. Only a change of
/// status does this.
pub(crate) fn exclude_early_visitors(world: &mut World, id: &str) {
    let Some(experiment) = world.experiment(id) else { return };
    if experiment.rule_is("experiment") {
        return;
    }
    let reached = |visit: &&super::world::Visit| {
        let point = experiment.point_at(&visit.site, Some(&visit.target));
        point.is_some_and(|point| point.exclude_if_reached)
    };
    let early: Vec<(String, Option<String>)> = world
        .visits
        .iter()
        .filter(reached)
        .map(|visit| (visit, Case::new(world, experiment, &visit.user)))
        .filter(|(_, case)| case.enrollment().is_none())
        .map(|(visit, case)| {
            (visit.user.clone(), case.group.filter(|_| experiment.rule_is("group")).map(str::to_owned))
        })
        .collect();
    for (user, group) in early {
        exclude(world, id, &user);
        if let Some(group) = group {
            let known = world.group_exclusions.iter().any(|row| row.experiment == id && row.group == group);
            if !known {
                world.group_exclusions.push(GroupExclusion { experiment: id.to_owned(), group });
            }
        }
    }
}

/// Pauses an experiment that has enough participants. As on the platform, each later visit logs
/// the change again.
pub(crate) fn end_if_enough(world: &mut World, id: &str) {
    let Some(experiment) = world.experiment(id) else { return };
    let wanted = experiment.row.enrollment_complete_condition.clone();
    let counted = super::routes::stats::count(world, experiment);
    let reached =
        |key: &str, count: usize| wanted[key].as_u64().is_some_and(|wanted| wanted > 0 && count as u64 >= wanted);
    if reached("userCount", counted.users) || reached("groupCount", counted.groups) {
        world.change_state(id, State::EnrollmentComplete);
    }
}
