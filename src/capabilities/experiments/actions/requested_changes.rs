//! The changes that an update requests, checked against the experiment and its context.

use countersign_core::clock::Timestamp;
use countersign_graph::action::{PrepareError, Refusal};
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::{
    choices, dates,
    design::{self, PlannedCondition, PlannedPoint, ResolvedPoint},
    end_date,
    expects::Expects,
    fields::{self, Changes},
    lists,
    lists::Members,
    non_blank, stratified,
};
use crate::{
    access,
    inputs::{ConditionInput, MembersInput, OneOrMany, PayloadInput, PayloadsInput, PointInput, WeightsInput},
    lookup,
    replies::{self, refusals},
    upgrade::{client::UpgradeClient, context::ContextMetadata, experiment::View, lists::Side, status::Status},
};

/// The parameters of the action.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct UpdateExperimentParameters {
    /// The experiment, by name or id. Required.
    pub(super) experiment: Option<String>,
    /// Set when the parameters were stored.
    #[serde(rename = "experiment_name")]
    #[schemars(skip)]
    _experiment_name: Option<String>,
    /// Set by an undo.
    #[schemars(skip)]
    pub(super) expects: Option<Expects>,
    /// The new name.
    new_name: Option<String>,
    /// The new description.
    description: Option<String>,
    /// The new tags. `+pilot` adds a tag to the present ones, `-pilot` removes it.
    tags: Option<Vec<String>>,
    /// The new weights in percent: in the order of the conditions, by code, or `70/30`.
    weights: Option<WeightsInput>,
    /// The new conditions, all of them: objects with `code` and `weight`. Only to add or remove conditions.
    conditions: Option<OneOrMany<ConditionInput>>,
    /// The new decision points, all of them: objects with `site` and `target`, or texts `site / target`.
    decision_points: Option<OneOrMany<PointInput>>,
    /// True to exclude people who reached a decision point before the start; applies to every decision point.
    exclude_if_reached: Option<bool>,
    /// The payloads sent to the application with a condition: by condition code, or objects with `condition`, `value` and
    /// optionally `decision_point` and `type` (`string`, `json`, `csv`). Other payloads stay.
    payloads: Option<PayloadsInput>,
    /// The unit of assignment: `individual`, `group`, or `within-subjects`.
    unit: Option<String>,
    /// The group type, with unit `group`.
    group: Option<String>,
    /// The consistency rule: `individual`, `group` or `experiment`.
    consistency: Option<String>,
    /// The order of conditions within subjects: `random`, `random round robin`, `ordered round robin`.
    condition_order: Option<String>,
    /// The assignment algorithm: `random`; others are refused.
    algorithm: Option<String>,
    /// The rule after enrolment is complete: `continue` (keep their condition), `assign <condition code>`, or
    /// `assign default`.
    post_rule: Option<String>,
    /// The rule for people on no list: `includeAll` or `excludeAll`.
    filter_mode: Option<String>,
    /// The number of users after which enrolment ends; 0 for no limit.
    ends_after_users: Option<u64>,
    /// The number of groups after which enrolment ends; 0 for no limit.
    ends_after_groups: Option<u64>,
    /// The end, such as `2027-01-15 09:00`, or a day, which is included.
    end_on: Option<String>,
    /// The new inclusion list: user ids, groups such as `classId:5B`.
    inclusion: Option<MembersInput>,
    /// The entries to add to the inclusion list.
    add_to_inclusion: Option<MembersInput>,
    /// The entries to remove from the inclusion list.
    remove_from_inclusion: Option<MembersInput>,
    /// The new exclusion list.
    exclusion: Option<MembersInput>,
    /// The entries to add to the exclusion list.
    add_to_exclusion: Option<MembersInput>,
    /// The entries to remove from the exclusion list.
    remove_from_exclusion: Option<MembersInput>,
}

/// Returns the new tags. `+pilot` adds a tag to the present ones, `-pilot` removes one; tags without a
/// sign replace the present ones.
fn new_tags(asked: &[String], before: &[String]) -> Vec<String> {
    let is = |tag: &str, other: &String| other.to_lowercase() == tag.to_lowercase();
    let signed = |tag: &String| tag.len() > 1 && tag.starts_with(['+', '-']);
    let mut tags = if asked.iter().all(signed) && !asked.is_empty() { before.to_vec() } else { Vec::new() };
    for tag in asked {
        match (tag.strip_prefix('+'), tag.strip_prefix('-').filter(|_| signed(tag))) {
            (_, Some(removed)) => tags.retain(|other| !is(removed.trim(), other)),
            (added, None) => {
                let added = added.unwrap_or(tag).trim();
                if !tags.iter().any(|other| is(added, other)) {
                    tags.push(added.to_owned());
                }
            }
        }
    }
    tags
}

impl UpdateExperimentParameters {
    /// Returns true if new weights are requested but not given.
    pub(super) fn lacks_weights(&self) -> bool {
        matches!(&self.weights, Some(WeightsInput::Words(words)) if words.trim().is_empty())
    }

    /// Returns true if the context's vocabulary is needed to understand the parameters.
    fn needs_context(&self) -> bool {
        let members = [
            &self.inclusion,
            &self.add_to_inclusion,
            &self.remove_from_inclusion,
            &self.exclusion,
            &self.add_to_exclusion,
            &self.remove_from_exclusion,
        ];
        self.conditions.is_some()
            || self.decision_points.is_some()
            || self.group.is_some()
            || members.iter().any(|members| members.is_some())
    }
}

/// Returns the checked changes, with ids. Some of them may equal the present values.
pub(super) async fn changes(
    client: &UpgradeClient,
    at: (Timestamp, &TimeZone),
    asked: &UpdateExperimentParameters,
    experiment: &View,
) -> Result<Changes, PrepareError> {
    let mut contexts = match asked.needs_context() {
        true => client.context_metadata().await?,
        false => Default::default(),
    };
    let known = contexts.remove(experiment.context()).unwrap_or_default();
    stratified::check_unchanged(non_blank(asked.algorithm.as_ref()), experiment)?;

    let conditions = conditions(asked, experiment, &known)?;
    let decision_points = points(asked, experiment, &known)?;
    let unit = non_blank(asked.unit.as_ref()).or(non_blank(asked.group.as_ref()).map(|_| "group"));
    let unit = choices::choice("assignment unit", unit, &choices::UNITS)?;
    let by = unit.as_deref().unwrap_or(&experiment.assignment_unit);
    let by_group = unit.as_deref() == Some("group");
    let group = match non_blank(asked.group.as_ref()).filter(|_| by_group) {
        Some(group) => Some(access::group(&known.group_types, group, experiment.context())?),
        None if by_group => experiment.group.clone(),
        None => None,
    };
    if by_group && group.is_none() {
        let question = "Which group type is assigned together?";
        return Err(access::ask("group", question, Vec::new()));
    }
    let mut consistency = choices::consistency(non_blank(asked.consistency.as_ref()), by)?;
    let fits = |rule: &String| choices::consistencies(by).contains(&rule.as_str());
    if unit.is_some() && consistency.is_none() && !experiment.consistency_rule.as_ref().is_some_and(fits) {
        consistency = choices::consistencies(by).first().map(|rule| (*rule).to_owned());
    }
    let mut order =
        choices::choice("order of conditions", non_blank(asked.condition_order.as_ref()), &choices::ORDERS)?;
    if by == "within-subjects" && experiment.condition_order.is_none() {
        order.get_or_insert_with(|| choices::ORDERS[0].to_owned());
    }
    if unit.is_some() && by != "within-subjects" {
        order = None; // left over from a unit that was chosen earlier
    }
    let codes: Vec<_> = match &conditions {
        Some(conditions) => conditions.iter().map(|c| c.code.clone()).collect(),
        None => experiment.codes(),
    };
    let places: Vec<_> = match &decision_points {
        Some(points) => points.iter().map(PlannedPoint::words).collect(),
        None => experiment.places(),
    };
    let name = &experiment.name;
    let ending = (asked.ends_after_users.is_some() || asked.ends_after_groups.is_some())
        .then(|| choices::ending(experiment.ending, asked.ends_after_users, asked.ends_after_groups));
    Ok(Changes {
        experiment: experiment.id,
        experiment_name: name.clone(),
        new_name: non_blank(asked.new_name.as_ref()).map(str::to_owned),
        description: asked.description.as_ref().map(|description| description.trim().to_owned()),
        tags: asked.tags.as_ref().map(|tags| new_tags(tags, &experiment.tags)),
        payloads: match &asked.payloads {
            Some(given) => Some(payloads(&given.all(), experiment, &codes, &places)?),
            None => None,
        },
        conditions,
        decision_points,
        unit,
        group,
        consistency,
        condition_order: order,
        post_rule: match non_blank(asked.post_rule.as_ref()) {
            Some(rule) => Some(choices::post_rule(rule, name, &codes)?),
            None => None,
        },
        filter_mode: choices::choice("filter mode", non_blank(asked.filter_mode.as_ref()), &choices::FILTER_MODES)?,
        ends_after_users: ending.map(|ending| ending.user_count.unwrap_or_default()),
        ends_after_groups: ending.map(|ending| ending.group_count.unwrap_or_default()),
        end_on: end_on(asked, experiment, at)?,
        inclusion: members(
            (&asked.inclusion, &asked.add_to_inclusion, &asked.remove_from_inclusion),
            Side::Inclusion,
            experiment,
            &known,
        )?,
        exclusion: members(
            (&asked.exclusion, &asked.add_to_exclusion, &asked.remove_from_exclusion),
            Side::Exclusion,
            experiment,
            &known,
        )?,
    })
}

/// Returns the new end, which must be after a scheduled start.
fn end_on(
    asked: &UpdateExperimentParameters,
    experiment: &View,
    (now, zone): (Timestamp, &TimeZone),
) -> Result<Option<String>, PrepareError> {
    let end = non_blank(asked.end_on.as_ref()).map(|given| dates::end_of(given, now, zone)).transpose()?;
    let start = experiment.start_on.as_deref().filter(|_| experiment.state == Status::Scheduled);
    end_date::check_order(start, end.as_deref())?;
    Ok(end)
}

fn conditions(
    asked: &UpdateExperimentParameters,
    experiment: &View,
    known: &ContextMetadata,
) -> Result<Option<Vec<PlannedCondition>>, PrepareError> {
    if experiment.is_factorial() {
        let codes = experiment.codes();
        let asked = asked.conditions.iter().flat_map(OneOrMany::all).map(|condition| match condition {
            ConditionInput::Words(words) if lookup::pick(&codes, &words).is_some() => words,
            condition => condition.parts().0,
        });
        if let Some(new) = asked.into_iter().find(|code| lookup::pick(&codes, code).is_none()) {
            let refusal = replies::factorial::no_new_combination(&new, &experiment.name, &codes);
            return Err(access::invalid(refusal));
        }
    }
    let renamed: Vec<_> = asked.conditions.iter().flat_map(OneOrMany::all).filter_map(as_renamed).collect();
    if !renamed.is_empty() {
        return with_other_codes(&renamed, asked, experiment, known).map(Some);
    }
    let planned = match (&asked.conditions, &asked.weights) {
        (Some(conditions), weights) => checked(conditions, weights.as_ref(), experiment, known)?,
        (None, Some(weights)) => {
            let codes = experiment.conditions.iter();
            let codes = codes.map(|c| ConditionInput::Parts { code: c.condition_code.clone(), weight: None });
            design::conditions(&OneOrMany::Many(codes.collect()), Some(weights), &[])?
        }
        (None, None) => return Ok(None),
    };
    let identity = |code: &str| {
        let old = experiment.conditions.iter().find(|c| c.condition_code == code);
        old.and_then(|c| c.id.parse().ok()).unwrap_or_else(Uuid::new_v4)
    };
    let planned = planned.into_iter();
    Ok(Some(planned.map(|(code, weight)| PlannedCondition { id: identity(&code), code, weight }).collect()))
}

/// Returns the conditions with their weights. Those that the experiment has are known, beside those of its context.
fn checked(
    given: &OneOrMany<ConditionInput>,
    weights: Option<&WeightsInput>,
    experiment: &View,
    known: &ContextMetadata,
) -> Result<Vec<(String, f64)>, PrepareError> {
    let vocabulary = [experiment.codes(), known.conditions.clone()].concat();
    let unknown = design::unknown_conditions(given, &vocabulary, experiment.context());
    match unknown.filter(|_| !known.conditions.is_empty()) {
        Some(unknown) => Err(Refusal::Missing(vec![unknown]).into()),
        None => design::conditions(given, weights, &vocabulary),
    }
}

/// Returns the present and the new code of a condition that is renamed.
fn as_renamed(condition: ConditionInput) -> Option<(String, String)> {
    match condition {
        ConditionInput::Renamed { was, code } => Some((was, code)),
        ConditionInput::Words(_) | ConditionInput::Parts { .. } => None,
    }
}

/// Returns the conditions with the new codes of those that are renamed. Each keeps its id and its weight.
fn with_other_codes(
    renamed: &[(String, String)],
    asked: &UpdateExperimentParameters,
    experiment: &View,
    known: &ContextMetadata,
) -> Result<Vec<PlannedCondition>, PrepareError> {
    let present = experiment.codes();
    let mut codes = present.clone();
    for (was, code) in renamed {
        let at = lookup::pick(&present, was).and_then(|was| present.iter().position(|code| code == was));
        let Some(at) = at else {
            let refusal = refusals::unknown_condition(was, &experiment.name, &present);
            return Err(access::invalid(refusal));
        };
        codes[at].clone_from(code);
    }
    let given = codes.iter().zip(&experiment.conditions).map(|(code, condition)| ConditionInput::Parts {
        code: code.clone(),
        weight: Some(condition.assignment_weight),
    });
    let given = OneOrMany::Many(given.collect());
    let planned = checked(&given, asked.weights.as_ref(), experiment, known)?.into_iter();
    let id = |at: usize| experiment.conditions.get(at).and_then(|c| c.id.parse().ok()).unwrap_or_else(Uuid::new_v4);
    Ok(planned.enumerate().map(|(at, (code, weight))| PlannedCondition { id: id(at), code, weight }).collect())
}

/// Returns the new points. A point keeps its *exclude if reached* unless a new value is given.
fn points(
    asked: &UpdateExperimentParameters,
    experiment: &View,
    known: &ContextMetadata,
) -> Result<Option<Vec<PlannedPoint>>, PrepareError> {
    let resolved: Vec<_> = match (&asked.decision_points, asked.exclude_if_reached) {
        (Some(points), _) => design::points(points, experiment.context(), known)?,
        (None, Some(_)) => {
            let now = experiment.decision_points.iter().cloned();
            now.map(|p| ResolvedPoint { site: p.site, target: p.target.unwrap_or_default(), excludes: None }).collect()
        }
        (None, None) => return Ok(None),
    };
    let planned = resolved.into_iter().map(|ResolvedPoint { site, target, excludes }| {
        let same = |p: &&crate::upgrade::experiment::DecisionPoint| {
            p.site == site && p.target.as_deref().unwrap_or_default() == target
        };
        let old = experiment.decision_points.iter().find(same);
        PlannedPoint {
            id: old.and_then(|p| p.id.parse().ok()).unwrap_or_else(Uuid::new_v4),
            exclude_if_reached: excludes
                .or(asked.exclude_if_reached)
                .or(old.map(|p| p.exclude_if_reached))
                .unwrap_or_default(),
            site,
            target,
        }
    });
    Ok(Some(planned.collect()))
}

/// Returns the new payload of every condition at every point. One without a type keeps that of the present payload, if its
/// content allows it.
fn payloads(
    given: &[PayloadInput],
    experiment: &View,
    codes: &[String],
    places: &[String],
) -> Result<Vec<PayloadInput>, PrepareError> {
    let old = fields::payloads(experiment);
    let given: Vec<_> = given.iter().flat_map(|payload| with_present_type(payload, &old, places)).collect();
    let new = design::payloads(&given, &experiment.name, codes, places)?;
    let is_at = |p: &&PayloadInput, code: &String, place: &String| {
        p.condition == *code && p.decision_point.as_ref() == Some(place)
    };
    let pairs = codes.iter().flat_map(|code| places.iter().map(move |place| (code, place)));
    let each = pairs.map(|(code, place)| {
        let found = new.iter().find(|p| is_at(p, code, place)).or(old.iter().find(|p| is_at(p, code, place)));
        found.cloned().unwrap_or_else(|| fields::own_code(code, place))
    });
    Ok(each.collect())
}

/// Returns a payload without a type at each of its points, with the type of the present payload there if its content can be
/// of that type.
fn with_present_type(payload: &PayloadInput, present: &[PayloadInput], places: &[String]) -> Vec<PayloadInput> {
    if payload.kind.is_some() {
        return vec![payload.clone()];
    }
    let is_json = serde_json::from_str::<serde_json::Value>(&payload.value).is_ok();
    let of = |place: &String| {
        let is_here = |p: &&PayloadInput| {
            p.condition.eq_ignore_ascii_case(payload.condition.trim()) && p.decision_point.as_ref() == Some(place)
        };
        let kind = present.iter().find(is_here).and_then(|present| present.kind.clone());
        let kind = kind.filter(|kind| kind == "csv" || kind == "json" && is_json);
        PayloadInput { decision_point: Some(place.clone()), kind, ..payload.clone() }
    };
    match &payload.decision_point {
        Some(place) => vec![of(place)],
        None => places.iter().map(of).collect(),
    }
}

/// Returns the new members of a list; `None` if the request does not change it. Segments on the list stay.
fn members(
    (whole, more, fewer): (&Option<MembersInput>, &Option<MembersInput>, &Option<MembersInput>),
    side: Side,
    experiment: &View,
    known: &ContextMetadata,
) -> Result<Option<Members>, PrepareError> {
    let parse = |given: &MembersInput| lists::parse(given, &known.group_types, experiment.context());
    if whole.is_none() && more.is_none() && fewer.is_none() {
        return Ok(None);
    }
    let present = lists::members_of(experiment.lists(side));
    let mut members = match whole {
        Some(whole) => lists::added(lists::segments_of(&present), parse(whole)?),
        None => present,
    };
    if let Some(more) = more {
        members = lists::added(members, parse(more)?);
    }
    if let Some(fewer) = fewer {
        members = lists::removed(members, &parse(fewer)?);
    }
    Ok(Some(members))
}
