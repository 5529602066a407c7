//! `create_experiment`: a new experiment, inactive until somebody starts it.
//!
//! The experiment's id is chosen here and stored with the action. It makes the request repeatable with evidence: before
//! it is sent, and when no answer came, the id is looked up. That look is not a nicety: creating with an id that exists
//! does not fail on the server, it overwrites the experiment and doubles its conditions.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    cannot_read_back,
    design::{self, PlannedCondition, PlannedPoint},
    done, ended_badly, fact, given, in_flight, missing, stored,
    surroundings::Surroundings,
    unread,
};
use crate::{
    capabilities::experiments::{
        access,
        given::{GivenCondition, GivenPoint, GivenWeights, OneOrMany, equal_shares},
        replies::{answers, cautions, outcomes, refusals},
        rules,
    },
    graph::action::{
        ActionKind, ActionRecord, ErrorKind, MissingParameter, Outcome, Performed, PrepareError, Probed, Proposal,
        Recovery, Refusal,
    },
    reply::{Card, Text},
    services::upgrade::{
        client::UpgradeClient, context::ContextMetadata, error::Error, experiment::ExperimentId, version::Version,
    },
};

/// `create_experiment`.
#[derive(Debug)]
pub struct CreateExperiment(pub Arc<UpgradeClient>);

/// What people give.
#[derive(Deserialize, JsonSchema)]
struct Given {
    /// Its name. Required.
    #[serde(default)]
    name: Option<String>,
    /// What it is about.
    #[serde(default)]
    description: Option<String>,
    /// The context (client application) it belongs to. Required.
    #[serde(default)]
    context: Option<OneOrMany<String>>,
    /// Where it takes place: objects with `site` and `target`, or texts `site / target`. One is required.
    #[serde(default)]
    decision_points: Option<OneOrMany<GivenPoint>>,
    /// The site, if there is one decision point.
    #[serde(default)]
    site: Option<String>,
    /// The target, if there is one decision point.
    #[serde(default)]
    target: Option<String>,
    /// What is compared: objects with `code` and `weight`, or codes. Without: the context's first two, half and half.
    #[serde(default)]
    conditions: Option<OneOrMany<GivenCondition>>,
    /// Weights in percent, in the order of the conditions, or `70/30`.
    #[serde(default)]
    weights: Option<GivenWeights>,
    /// Who draws a lot: `individual` (default) or `group`.
    #[serde(default)]
    unit: Option<String>,
    /// The type of group, with unit `group`.
    #[serde(default)]
    group: Option<String>,
    /// Whose past decides: `individual`, `group` or `experiment`.
    #[serde(default)]
    consistency: Option<String>,
    /// `includeAll` (default) or `excludeAll`.
    #[serde(default)]
    filter_mode: Option<String>,
    /// Labels for finding it.
    #[serde(default)]
    tags: Option<Vec<String>>,
}

/// What is stored.
#[derive(Serialize, Deserialize)]
struct Plan {
    id: ExperimentId,
    name: String,
    description: String,
    context: String,
    unit: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    consistency: String,
    filter_mode: String,
    tags: Vec<String>,
    conditions: Vec<PlannedCondition>,
    decision_points: Vec<PlannedPoint>,
}

#[async_trait]
impl ActionKind for CreateExperiment {
    fn name(&self) -> &'static str {
        "create_experiment"
    }

    fn description(&self) -> &'static str {
        "Creates a new experiment (inactive). Needs a name, a context and a decision point (site and target)."
    }

    fn schema(&self) -> Value {
        access::schema::<Given>()
    }

    async fn prepare(&self, parameters: &Value) -> Result<Proposal, PrepareError> {
        let asked: Given = access::parameters(parameters)?;
        let contexts = self.0.context_metadata().await.map_err(access::unavailable)?;
        let mut defaults = Vec::new();
        let wanted = asked.context.as_ref().and_then(|context| context.all().into_iter().next());
        let context = match given(wanted.as_ref()) {
            Some(context) => {
                let name = given(asked.name.as_ref()).unwrap_or("an experiment").to_owned();
                Some(access::context(&contexts, context, |known| format!("create {name} in {known}"))?)
            }
            None if contexts.len() == 1 => contexts.iter().next().map(|(name, known)| {
                defaults.push(format!("context {name} (the only one)"));
                (name.as_str(), known)
            }),
            None => None,
        };
        let options: Vec<String> = contexts.keys().cloned().collect();
        let lacking = lacking(&asked, context, options);
        let (Some(name), Some((context, known)), []) = (given(asked.name.as_ref()), context, lacking.as_slice()) else {
            return Err(Refusal::Missing(lacking).into());
        };
        let plan = plan(&asked, name, context, known, &mut defaults)?;
        let others = Surroundings::of(self.0.all().await.map_err(access::unavailable)?, None);
        let card = card(&plan, known, defaults, &others);
        Ok(Proposal { parameters: json!(plan), preconditions: json!({}), card, undo: None })
    }

    async fn preconditions(&self, _: &ActionRecord) -> Result<Value, Outcome> {
        Ok(json!({}))
    }

    async fn perform(&self, record: &ActionRecord) -> Performed {
        let plan: Plan = match stored(record) {
            Ok(plan) => plan,
            Err(outcome) => return Performed::Ended(outcome),
        };
        match self.0.single(plan.id).await {
            Ok(_) => return Performed::Ended(done(record, result(&plan))), // an earlier attempt arrived after all
            Err(Error::NotFound { .. }) => {}
            Err(error) => return Performed::Ended(unread(&error)),
        }
        let version = match self.0.version().await {
            Ok(version) => version,
            Err(error) => return Performed::Ended(unread(&error)),
        };
        match self.0.create(&body(&plan, &version)).await {
            Ok(_) => Performed::Ended(done(record, result(&plan))),
            Err(error) => ended_badly(self, record, error).await,
        }
    }

    fn recovery(&self) -> Recovery {
        Recovery::Probe { in_flight: in_flight(&self.0) }
    }

    async fn probe(&self, record: &ActionRecord) -> Probed {
        let Ok(plan) = stored::<Plan>(record) else {
            return Probed::CannotTell { evidence: outcomes::unreadable_record() };
        };
        match self.0.single(plan.id).await {
            Ok(_) => Probed::Happened(done(record, result(&plan))),
            Err(Error::NotFound { .. }) => Probed::DidNotHappen,
            Err(error) => cannot_read_back(&error),
        }
    }
}

/// What a person still has to say, in the order in which it is asked for.
fn lacking(asked: &Given, context: Option<(&str, &ContextMetadata)>, contexts: Vec<String>) -> Vec<MissingParameter> {
    let mut lacking = Vec::new();
    if given(asked.name.as_ref()).is_none() {
        lacking.push(missing("name", "What should the experiment be called?", Vec::new()));
    }
    if context.is_none() {
        lacking.push(missing("context", "Which context (application) is it for?", contexts));
    }
    let known = context.map(|(_, known)| known);
    if given_points(asked).is_none() {
        let options = known.map(|known| {
            let pairs = known.sites.iter().flat_map(|site| known.targets.iter().map(move |t| format!("{site} / {t}")));
            pairs.take(8).collect()
        });
        let question = "Where does it take place? I need a decision point: site / target.";
        lacking.push(missing("decision_points", question, options.unwrap_or_default()));
    }
    match (&asked.conditions, context) {
        (Some(conditions), Some((context, known))) => {
            lacking.extend(design::unknown_conditions(conditions, &known.conditions, context));
        }
        (None, Some((_, known))) if known.conditions.len() < 2 => {
            lacking.push(missing("conditions", "Which conditions does it compare?", Vec::new()));
        }
        _ => {}
    }
    if asked.unit.as_deref() == Some("group") && given(asked.group.as_ref()).is_none() {
        let options = known.map(|known| known.group_types.clone()).unwrap_or_default();
        lacking.push(missing("group", "Which type of group draws a lot together?", options));
    }
    lacking
}

fn given_points(asked: &Given) -> Option<OneOrMany<GivenPoint>> {
    let pair = || match (given(asked.site.as_ref()), given(asked.target.as_ref())) {
        (Some(site), Some(target)) => {
            Some(OneOrMany::One(GivenPoint::Parts { site: site.to_owned(), target: target.to_owned() }))
        }
        _ => None,
    };
    asked.decision_points.clone().filter(|points| !points.all().is_empty()).or_else(pair)
}

/// The whole plan, with defaults filled in and named.
fn plan(
    asked: &Given,
    name: &str,
    context: &str,
    known: &ContextMetadata,
    defaults: &mut Vec<String>,
) -> Result<Plan, PrepareError> {
    let points = given_points(asked).expect("asked for if it is missing");
    let decision_points = design::points(&points, context, known)?;
    let conditions = match &asked.conditions {
        Some(conditions) => design::conditions(conditions, asked.weights.as_ref(), &known.conditions)?,
        None => {
            let weights = asked.weights.as_ref().and_then(GivenWeights::list).unwrap_or_else(|| equal_shares(2));
            let codes = known.conditions.iter().take(weights.len());
            let codes: Vec<_> = codes.map(|code| GivenCondition::Words(code.clone())).collect();
            let weights = asked.weights.clone().unwrap_or(GivenWeights::List(weights));
            let conditions = design::conditions(&OneOrMany::Many(codes), Some(&weights), &known.conditions)?;
            let codes: Vec<_> = conditions.iter().map(|(code, _)| code.as_str()).collect();
            defaults.push(format!("conditions {} (the first of {context})", codes.join(" and ")));
            conditions
        }
    };
    let choice = |what: &str, given: Option<&str>, allowed: &[&str]| match given {
        Some(given) if !allowed.contains(&given) => {
            Err(access::refused(ErrorKind::Validation, refusals::not_one_of(what, given, allowed)))
        }
        given => Ok(given.map(str::to_owned)),
    };
    let unit = choice("assignment unit", given(asked.unit.as_ref()), &["individual", "group"])?;
    let by_group = unit.as_deref() == Some("group");
    let allowed: &[_] = if by_group { &["individual", "group", "experiment"] } else { &["individual", "experiment"] };
    let consistency = choice("consistency rule", given(asked.consistency.as_ref()), allowed)?;
    let filter_mode = choice("filter mode", given(asked.filter_mode.as_ref()), &["includeAll", "excludeAll"])?;
    let group = match given(asked.group.as_ref()).filter(|_| by_group) {
        Some(group) => Some(access::group(&known.group_types, group, context)?),
        None => None,
    };
    let mut or_default = |what: &str, value: Option<String>, default: &str| {
        value.unwrap_or_else(|| {
            defaults.push(format!("{what} {default}"));
            default.to_owned()
        })
    };
    Ok(Plan {
        id: ExperimentId(Uuid::new_v4()),
        name: name.to_owned(),
        description: given(asked.description.as_ref()).unwrap_or_default().to_owned(),
        context: context.to_owned(),
        unit: or_default("unit", unit, "individual"),
        group,
        consistency: or_default("consistency", consistency, if by_group { "group" } else { "individual" }),
        filter_mode: or_default("filter mode", filter_mode, "includeAll"),
        tags: asked.tags.clone().unwrap_or_default(),
        conditions: conditions
            .into_iter()
            .map(|(code, weight)| PlannedCondition { code, weight, id: Uuid::new_v4() })
            .collect(),
        decision_points: decision_points
            .into_iter()
            .map(|(site, target)| PlannedPoint { site, target, id: Uuid::new_v4() })
            .collect(),
    })
}

/// The request, in the shape of the server's version.
fn body(plan: &Plan, version: &Version) -> Value {
    let conditions = plan.conditions.iter().enumerate().map(|(i, condition)| {
        json!({
            "id": condition.id, "conditionCode": condition.code, "assignmentWeight": condition.weight, "order": i + 1,
        })
    });
    let points = plan.decision_points.iter().enumerate().map(|(i, point)| {
        json!({
            "id": point.id, "site": point.site, "target": point.target, "description": "", "order": i + 1,
            "excludeIfReached": false,
        })
    });
    let mut body = json!({
        "id": plan.id,
        "name": plan.name,
        "description": plan.description,
        "context": [plan.context],
        "state": "inactive",
        "assignmentUnit": plan.unit,
        "consistencyRule": plan.consistency,
        "postExperimentRule": "continue",
        "filterMode": plan.filter_mode,
        "type": "Simple",
        "tags": plan.tags,
        "conditions": conditions.collect::<Vec<_>>(),
        "partitions": points.collect::<Vec<_>>(),
    });
    if let Some(group) = &plan.group {
        body["group"] = json!(group);
    }
    design::with_lists_for(version, body)
}

fn result(plan: &Plan) -> Value {
    json!({ "id": plan.id, "name": plan.name, "status": "inactive", "context": plan.context })
}

fn card(plan: &Plan, known: &ContextMetadata, mut defaults: Vec<String>, others: &Surroundings) -> Card {
    let name = &plan.name;
    let shares = plan.conditions.iter().map(|c| format!("{} {}%", c.code, rules::number(c.weight)));
    let points = plan.decision_points.iter().map(|point| format!("{} / {}", point.site, point.target));
    let mut facts = vec![
        fact("Name", Text::new().bold(name)),
        fact("Context", Text::new().code(&plan.context)),
        fact("Conditions", shares.collect::<Vec<_>>().join(", ")),
        fact("Decision points", points.collect::<Vec<_>>().join(", ")),
        fact("Assigned", answers::unit_words(&plan.unit, plan.group.as_deref())),
        fact("Consistency", plan.consistency.as_str()),
        fact("People on no list", answers::filter_words(&plan.filter_mode)),
    ];
    if !plan.description.is_empty() {
        facts.insert(1, fact("Description", plan.description.as_str()));
    }
    if !plan.tags.is_empty() {
        facts.push(fact("Tags", plan.tags.join(", ")));
    }
    let at = plan.decision_points.iter().map(|point| (point.site.as_str(), Some(point.target.as_str())));
    let mut warnings: Vec<_> = others.namesakes(name).into_iter().chain(others.at_points(&plan.context, at)).collect();
    if plan.filter_mode == "excludeAll" {
        warnings.push(cautions::nobody_takes_part());
    }
    if known.conditions.is_empty() {
        warnings.push(Text::from(format!("{} lists no conditions, so I could not check these.", plan.context)));
    }
    defaults.push("afterwards everyone keeps their condition".to_owned());
    Card {
        title: format!("Create “{name}”?"),
        facts,
        warnings,
        notes: vec![
            Text::from(format!("By default: {}.", defaults.join(", "))),
            Text::from("It will be inactive until somebody starts it."),
        ],
        approve: "Create experiment".to_owned(),
        reject: "Don't create".to_owned(),
        done: format!("Created “{name}”. It is inactive until somebody starts it."),
        irreversible: false,
    }
}
