//! The design that a creation requests, checked against its context, with defaults filled in.

use countersign_core::clock::Timestamp;
use countersign_graph::action::{MissingParameter, PrepareError};
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use super::{
    choices, dates,
    design::{self, PlannedCondition, PlannedPoint, ResolvedPoint},
    end_date, factorial,
    lists::{self, Members},
    missing, non_blank,
    plan::Plan,
};
use crate::{
    access,
    inputs::{
        ConditionInput, FactorInput, MembersInput, OneOrMany, PayloadsInput, PointInput, WeightsInput, equal_shares,
    },
    lookup, replies,
    upgrade::{
        context::ContextMetadata,
        experiment::{Ending, ExperimentId},
    },
};

/// The parameters of the action.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct CreateExperimentParameters {
    /// The name. Required.
    pub(super) name: Option<String>,
    /// The name of an experiment whose design is copied. The other parameters replace parts of it.
    copy_of: Option<String>,
    /// Set when the parameters were stored.
    #[schemars(skip)]
    copied: Option<Value>,
    /// The name of an experiment whose conditions and weights are copied.
    conditions_of: Option<String>,
    /// The name of an experiment whose decision points are copied.
    points_of: Option<String>,
    /// A description.
    description: Option<String>,
    /// The context (client application). Required.
    pub(super) context: Option<OneOrMany<String>>,
    /// The decision points: objects with `site` and `target`, or texts `site / target`. One is required.
    decision_points: Option<OneOrMany<PointInput>>,
    /// The site, if there is one decision point.
    site: Option<String>,
    /// The target, if there is one decision point.
    target: Option<String>,
    /// The conditions: objects with `code` and `weight`, or codes. Default: the first two of the context, 50/50.
    conditions: Option<OneOrMany<ConditionInput>>,
    /// The factors of a factorial experiment, each with `name` and `levels`. Its conditions are all combinations of
    /// levels, or only those in `conditions`, such as `hints=none; feedback=now`.
    factors: Option<Vec<FactorInput>>,
    /// Weights in percent, in the order of the conditions, or `70/30`.
    weights: Option<WeightsInput>,
    /// The payloads sent to the application with a condition: by condition code, or objects with `condition`, `value` and
    /// optionally `decision_point` and `type` (`string`, `json`, `csv`).
    payloads: Option<PayloadsInput>,
    /// True to exclude people who reached a decision point before the start. Default: false.
    exclude_if_reached: Option<bool>,
    /// The unit of assignment: `individual` (default), `group`, or `within-subjects` (each person gets several conditions).
    unit: Option<String>,
    /// The group type, with unit `group`.
    group: Option<String>,
    /// The consistency rule: `individual`, `group` or `experiment`.
    consistency: Option<String>,
    /// The order of conditions within subjects: `random` (default), `random round robin` or
    /// `ordered round robin`.
    condition_order: Option<String>,
    /// The assignment algorithm: `random` (default), or `stratified random sampling` by an uploaded factor;
    /// others, such as adaptive ones, are refused.
    pub(super) algorithm: Option<String>,
    /// The factor of a stratified assignment.
    pub(super) stratification_factor: Option<String>,
    /// The rule after enrolment is complete: `continue` (default: keep their condition),
    /// `assign <condition code>`, or `assign default`.
    post_rule: Option<String>,
    /// The number of users after which enrolment ends.
    ends_after_users: Option<u64>,
    /// The number of groups after which enrolment ends.
    ends_after_groups: Option<u64>,
    /// The rule for people on no list: `includeAll` (default) or `excludeAll`.
    filter_mode: Option<String>,
    /// The inclusion list: user ids, groups such as `classId:5B`.
    inclusion: Option<MembersInput>,
    /// The exclusion list: user ids, groups such as `classId:5B`.
    exclusion: Option<MembersInput>,
    /// The scheduled start, such as `2027-01-15 09:00`. Default: none; it is started by hand.
    start_on: Option<String>,
    /// The end, in the same format, or a day, which is included.
    end_on: Option<String>,
    /// The tags.
    tags: Option<Vec<String>>,
    /// True to use conditions, sites and targets that the context does not list. Default: false; the person is asked.
    beyond_context: Option<bool>,
}

/// Adds the conditions, sites and targets of the request to those of its context, if the person insists on them. Returns
/// the new ones.
pub(super) fn add_own_words(asked: &CreateExperimentParameters, known: &mut ContextMetadata) -> Vec<String> {
    let mut new = Vec::new();
    let mut add = |known: &mut Vec<String>, word: String| {
        if !word.is_empty() && lookup::pick(known, &word).is_none() {
            known.push(word.clone());
            new.push(word);
        }
    };
    if asked.beyond_context != Some(true) {
        return new;
    }
    let points =
        points_input(asked, Some(known)).map(|points| design::unknown_parts(&points, known)).unwrap_or_default();
    for code in asked.conditions.iter().flat_map(design::codes) {
        add(&mut known.conditions, code);
    }
    for (site, target) in points {
        site.into_iter().for_each(|site| add(&mut known.sites, site));
        target.into_iter().for_each(|target| add(&mut known.targets, target));
    }
    new
}

/// Returns the parameters that a person still has to give, in the order in which they are asked for.
pub(super) fn missing_parameters(
    asked: &CreateExperimentParameters,
    context: Option<(&str, &ContextMetadata)>,
    contexts: Vec<String>,
) -> Vec<MissingParameter> {
    let mut parameters = Vec::new();
    if non_blank(asked.name.as_ref()).is_none() {
        parameters.push(missing("name", "What should the experiment be called?", Vec::new()));
    }
    if context.is_none() {
        parameters.push(missing("context", "Which context (application) is it for?", contexts));
    }
    let known = context.map(|(_, known)| known);
    let points = points_input(asked, known);
    let of_context = points.as_ref().zip(context);
    parameters.extend(of_context.and_then(|(points, (name, known))| design::unknown_points(points, name, known)));
    if points.is_none() {
        let is = |given: &Option<String>, word: &str| {
            non_blank(given.as_ref()).is_none_or(|given| given.eq_ignore_ascii_case(word))
        };
        let options = known.map(|known| {
            let sites = known.sites.iter().filter(|site| is(&asked.site, site));
            let pairs = sites.flat_map(|site| {
                let targets = known.targets.iter().filter(|target| is(&asked.target, target));
                targets.map(move |target| format!("{site} / {target}"))
            });
            pairs.take(8).collect()
        });
        let question = "Where does it run? I need a decision point: site / target.";
        parameters.push(missing("decision_points", question, options.unwrap_or_default()));
    }
    match (&asked.conditions, context) {
        _ if asked.factors.as_ref().is_some_and(Vec::is_empty) => {
            parameters.push(missing("factors", replies::factorial::which_factors(), Vec::new()));
        }
        _ if asked.factors.is_some() => {} // the context does not list combinations
        (Some(conditions), Some((context, known))) => {
            // Told at once, whatever else is missing.
            let unknown = design::unknown_conditions(conditions, &known.conditions, context);
            parameters = unknown.into_iter().chain(parameters).collect();
        }
        (None, Some((_, known))) if known.conditions.len() < 2 => {
            parameters.push(missing("conditions", "Which conditions does it compare?", Vec::new()));
        }
        _ => {}
    }
    if asked.unit.as_deref() == Some("group") && non_blank(asked.group.as_ref()).is_none() {
        let options = known.map(|known| known.group_types.clone()).unwrap_or_default();
        parameters.push(missing("group", "Which group type is assigned together?", options));
    }
    parameters
}

/// Returns the decision points that the person gave, either as a list or as one site and target. If the context has only
/// one site or target, it may be left out.
fn points_input(asked: &CreateExperimentParameters, known: Option<&ContextMetadata>) -> Option<OneOrMany<PointInput>> {
    let (site, target) = (non_blank(asked.site.as_ref()), non_blank(asked.target.as_ref()));
    let only = |words: &'_ [String]| if let [one] = words { Some(one.clone()) } else { None };
    let only_site = known.filter(|_| target.is_some()).and_then(|known| only(&known.sites));
    let only_target = known.filter(|_| site.is_some()).and_then(|known| only(&known.targets));
    let pair = || match (site.or(only_site.as_deref()), target.or(only_target.as_deref())) {
        (Some(site), Some(target)) => Some(OneOrMany::One(PointInput::Parts {
            site: site.to_owned(),
            target: target.to_owned(),
            exclude_if_reached: None,
        })),
        _ => None,
    };
    asked.decision_points.clone().filter(|points| !points.all().is_empty()).or_else(pair)
}

/// Returns the complete plan, with defaults filled in. The labels of the card lines that show a default are added to
/// `defaults`.
pub(super) fn resolve_plan(
    asked: &CreateExperimentParameters,
    name: &str,
    (context, known): (&str, &ContextMetadata),
    (now, zone): (Timestamp, &TimeZone),
    defaults: &mut Vec<String>,
) -> Result<Plan, PrepareError> {
    let points = points_input(asked, Some(known)).expect("a request without decision points has been refused");
    let points = design::points(&points, context, known)?;
    let factors = factorial::factors(asked.factors.as_deref().unwrap_or_default())?;
    let conditions = match &asked.conditions {
        named if !factors.is_empty() => factorial::conditions(&factors, name, named.as_ref(), asked.weights.as_ref())?,
        Some(conditions) => design::conditions(conditions, asked.weights.as_ref(), &known.conditions)?,
        None => {
            let weights = asked.weights.as_ref().and_then(WeightsInput::list).unwrap_or_else(|| equal_shares(2));
            let codes = known.conditions.iter().take(weights.len());
            let codes: Vec<_> = codes.map(|code| ConditionInput::Words(code.clone())).collect();
            let weights = asked.weights.clone().unwrap_or(WeightsInput::List(weights));
            let conditions = design::conditions(&OneOrMany::Many(codes), Some(&weights), &known.conditions)?;
            defaults.push(format!("Conditions (the first of {context})"));
            conditions
        }
    };
    let unit = choices::choice("assignment unit", non_blank(asked.unit.as_ref()), &choices::UNITS)?;
    let unit = unit.or_else(|| non_blank(asked.group.as_ref()).map(|_| "group".to_owned()));
    let unit_name = unit.as_deref().unwrap_or("individual").to_owned();
    let consistency = choices::consistency(non_blank(asked.consistency.as_ref()), &unit_name)?;
    let order = choices::choice("order of conditions", non_blank(asked.condition_order.as_ref()), &choices::ORDERS)?;
    let filter_mode = choices::choice("filter mode", non_blank(asked.filter_mode.as_ref()), &choices::FILTER_MODES)?;
    let group = match non_blank(asked.group.as_ref()).filter(|_| unit_name == "group") {
        Some(group) => Some(access::group(&known.group_types, group, context)?),
        None => None,
    };
    let members = |given: &Option<MembersInput>| match given {
        Some(given) => lists::parse(given, &known.group_types, context),
        None => Ok(Members::new()),
    };
    let codes: Vec<_> = conditions.iter().map(|(code, _)| code.clone()).collect();
    let places: Vec<_> = points.iter().map(|point| format!("{} / {}", point.site, point.target)).collect();
    let payloads = asked.payloads.as_ref().map(PayloadsInput::all).unwrap_or_default();
    let ending = choices::ending(Ending::default(), asked.ends_after_users, asked.ends_after_groups);
    let start_on = non_blank(asked.start_on.as_ref()).map(|given| dates::moment(given, now, zone)).transpose()?;
    let end_on = non_blank(asked.end_on.as_ref()).map(|given| dates::end_of(given, now, zone)).transpose()?;
    end_date::check_order(start_on.as_deref(), end_on.as_deref())?;
    let mut or_default = |value: Option<String>, default: &str, line: &str| {
        value.unwrap_or_else(|| {
            defaults.push(line.to_owned());
            default.to_owned()
        })
    };
    let within_subjects = unit_name == "within-subjects";
    let default_rule = if unit_name == "group" { "group" } else { "individual" };
    let plan = Plan {
        id: ExperimentId(Uuid::new_v4()),
        name: name.to_owned(),
        description: non_blank(asked.description.as_ref()).unwrap_or_default().to_owned(),
        context: context.to_owned(),
        unit: or_default(unit, "individual", "Assignment"),
        group,
        consistency: (!within_subjects).then(|| or_default(consistency, default_rule, "Consistency")),
        condition_order: within_subjects.then(|| or_default(order, "random", "Order of conditions")),
        post_rule: match non_blank(asked.post_rule.as_ref()) {
            Some(rule) => choices::post_rule(rule, name, &codes)?,
            None => or_default(None, "continue", "After enrollment ends"),
        },
        filter_mode: or_default(filter_mode, "includeAll", "Users on no list"),
        tags: asked.tags.clone().unwrap_or_default(),
        factors,
        stratification_factor: None,
        payloads: design::payloads(&payloads, name, &codes, &places)?,
        ends_after_users: ending.user_count,
        ends_after_groups: ending.group_count,
        start_on,
        end_on,
        inclusion: members(&asked.inclusion)?,
        exclusion: members(&asked.exclusion)?,
        copied: None,
        conditions: conditions
            .into_iter()
            .map(|(code, weight)| PlannedCondition { code, weight, id: Uuid::new_v4() })
            .collect(),
        decision_points: points
            .into_iter()
            .map(|ResolvedPoint { site, target, excludes }| PlannedPoint {
                exclude_if_reached: excludes.or(asked.exclude_if_reached).unwrap_or_default(),
                site,
                target,
                id: Uuid::new_v4(),
            })
            .collect(),
    };
    Ok(plan)
}
