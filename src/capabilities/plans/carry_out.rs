//! `carry_out_plan`: shows the steps of a plan on one card, and begins it once the person agrees.

use std::sync::Arc;

use countersign_capabilities::{
    Effect, Registry,
    parameters::{incomplete, non_blank, refused},
    rows::Change,
};
use countersign_core::reply::{Reply, Text};
use countersign_graph::action::{
    ActionInfo, ActionKind, ErrorKind, Field, Form, Input, Outcome, Performed, PrepareError, Proposal, Reader, Refusal,
    Scope,
};
use countersign_planner::plan::{Plan, Step};
use countersign_understanding::{conditions::split, lexicon::fold};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::replies;

/// The name of the action.
pub const NAME: &str = "carry_out_plan";

/// The parameters of the action.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanParameters {
    /// The requests of the plan in order, each complete in itself. Required.
    #[serde(default)]
    pub steps: Vec<String>,
    /// The numbers of the steps to carry out, in order, such as `2, 1`. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
}

/// Returns the indices of the chosen requests, in the chosen order.
///
/// # Errors
///
/// Fails with a sentence about the first number that no step has.
fn chosen(parameters: &PlanParameters) -> Result<Vec<usize>, String> {
    let PlanParameters { steps, order } = parameters;
    let Some(order) = non_blank(order.as_ref()) else { return Ok((0..steps.len()).collect()) };
    let words = order.split(|c: char| c == ',' || c == ';' || c.is_whitespace()).filter(|word| !word.is_empty());
    words
        .map(|word| {
            let number: Option<usize> = word.parse().ok().filter(|number| (1..=steps.len()).contains(number));
            number.map(|number| number - 1).ok_or_else(|| replies::no_such_step(word, steps.len()))
        })
        .collect()
}

/// Returns the plan of the chosen requests, checked and repaired, and the requests in the same order.
///
/// # Errors
///
/// Fails with a sentence about the reason why the order is impossible.
fn checked(others: &Registry, parameters: &PlanParameters) -> Result<(Plan, Vec<String>), String> {
    let order = chosen(parameters)?;
    if order.is_empty() {
        return Err(replies::nothing_left());
    }
    let plan = others.plan_in_order(0, &parameters.steps, &order);
    let known = |capability: &str| others.carries_out(capability);
    let plan = plan.checked(&known, &[]).map_err(|fault| replies::fault(&fault, &order, &parameters.steps))?;
    Ok((plan, order.iter().map(|index| parameters.steps[*index].clone()).collect()))
}

/// Returns the first step that cannot be made now, counted from 1, and the reason. A step with a condition, or about
/// something that an earlier step may change, is only checked when it is due: the earlier one may make it possible.
/// Nothing is possible with what an earlier step deletes.
async fn objection(others: &Registry, plan: &Plan, requests: &[String], reader: &Reader) -> Option<(usize, Reply)> {
    // What each step is about, and whether it is deleted by then.
    let mut named: Vec<Option<(String, bool)>> = Vec::new();
    for (at, request) in requests.iter().enumerate() {
        let words = split(request);
        if others.effect_of(words.request) == Effect::Reads {
            named.push(None);
            continue;
        }
        // A change of “it”, or of several things, may be about what a later step names.
        let change = others.change_in(words.request);
        let own = change.as_ref().and_then(|(action, given)| others.subject(action, given, &Value::Null));
        let (before, rest) = plan.steps.split_at_checked(at)?;
        let is_meant = |step: &Step| rest[0].inputs.iter().any(|input| input.key == step.context_key);
        let back = before.iter().position(is_meant).and_then(|at| named[at].clone());
        let subject = own.map(|name| fold(&name)).or(back.map(|(name, _)| name))?;
        let earlier = |(at, step): (usize, &Option<(String, bool)>)| {
            step.as_ref().filter(|(name, _)| *name == subject).map(|(_, is_deleted)| (at, *is_deleted))
        };
        let earlier = named.iter().enumerate().rev().find_map(earlier);
        let is_new = change.as_ref().is_some_and(|(action, _)| action.starts_with("create"));
        if let Some((deleting, true)) = earlier.filter(|_| !is_new) {
            return Some((at + 1, replies::is_deleted(deleting + 1, &requests[deleting])));
        }
        let (action, parameters) = change?;
        let kind = others.actions.get(action.as_str());
        let is_due = words.condition.is_none() && earlier.is_none();
        if let Some(kind) = kind.filter(|_| is_due)
            && let Err(PrepareError::Refusal(Refusal::Refused { reply, .. })) =
                kind.prepare(&parameters, Some(reader)).await
        {
            return Some((at + 1, reply));
        }
        named.push(Some((subject, action.starts_with("delete"))));
    }
    None
}

/// Returns the action, for plans whose steps use these capabilities.
pub(super) fn action(others: Arc<Registry>) -> Arc<dyn ActionKind> {
    let info = ActionInfo {
        is_personal: true,
        ..ActionInfo::new(
            NAME,
            "Shows the steps of a plan on one card before the first of them is done. Use it when someone asks to see the plan \
             of several requests first.",
        )
    };
    Arc::new(Change {
        now: |_, _, _| Box::pin(async { Ok(Value::Null) }),
        form: Some(|_, parameters| Box::pin(async move { form(parameters) })),
        ..Change::new(
            others,
            info,
            |row, asked, reader| Box::pin(prepare(&row.deps, asked, reader)),
            // Ends at once: the graph carries out the steps, each with its own approval.
            |row, plan, record| {
                let outcome = match checked(&row.deps, &plan) {
                    Ok((plan, requests)) => Outcome::done(record, json!({ "steps": requests, "plan": plan })),
                    Err(why) => Outcome::Failed { error: ErrorKind::Validation, summary: Text::from(why) },
                };
                Box::pin(async move { Performed::Ended(outcome) })
            },
        )
    })
}

fn form(parameters: &Value) -> Option<Form> {
    let plan = PlanParameters::deserialize(parameters).ok()?;
    let all: Vec<String> = (1..=plan.steps.len()).map(|number| number.to_string()).collect();
    let steps = plan.steps.iter().enumerate().map(|(at, step)| format!("{} {step}", at + 1)).collect::<Vec<_>>();
    let order = Input::Line(plan.order.unwrap_or_else(|| all.join(", ")));
    let field = Field::new("/order", "Steps, in order", order).hint(replies::how_to_order(&steps)).required();
    Some(Form { fields: vec![field] })
}

async fn prepare(others: &Registry, asked: PlanParameters, reader: Option<&Reader>) -> Result<Proposal, PrepareError> {
    if asked.steps.is_empty() {
        return Err(incomplete("steps", "Which steps does the plan have?", Vec::new()));
    }
    let (plan, chosen) =
        checked(others, &asked).map_err(|why| refused(ErrorKind::Validation, replies::refused(&why)))?;
    if let Some(reader) = reader
        && let Some((number, reason)) = objection(others, &plan, &chosen, reader).await
    {
        return Err(refused(ErrorKind::Execution, replies::impossible(number, &chosen[number - 1], reason)));
    }
    let left_out: Vec<&String> = asked.steps.iter().filter(|step| !chosen.contains(step)).collect();
    let steps: Vec<(&str, Effect)> =
        chosen.iter().map(|step| (step.as_str(), others.effect_of(split(step).request))).collect();
    let card = replies::card(&steps, &left_out);
    Ok(Proposal { preconditions: Value::Null, scope: Scope::of_plan(), ..Proposal::new(&asked, card) })
}

#[cfg(test)]
mod tests {
    use countersign_capabilities::{Capability, CapabilityInfo, Tool};
    use countersign_core::{ids::ThreadId, reply::Card};
    use countersign_understanding::phrases::Vocabulary;

    use super::*;

    fn plan(order: Option<&str>) -> PlanParameters {
        let steps = ["create Foo", "test its balance", "start it"].map(str::to_owned).to_vec();
        PlanParameters { steps, order: order.map(str::to_owned) }
    }

    fn ordered(order: Option<&str>) -> Result<Vec<String>, String> {
        checked(&Registry::default(), &plan(order)).map(|(_, requests)| requests)
    }

    #[test]
    fn steps_are_dropped_and_reordered() {
        assert_eq!(ordered(None).unwrap().len(), 3);
        assert_eq!(ordered(Some("2, 1")).unwrap(), ["test its balance", "create Foo"]);
        assert_eq!(ordered(Some(" 3 ")).unwrap(), ["start it"]);
    }

    #[test]
    fn a_wrong_number_is_named() {
        assert_eq!(ordered(Some("1, 4")).unwrap_err(), "There is no step “4”: the plan has steps 1 to 3.");
        assert_eq!(ordered(Some("one")).unwrap_err(), "There is no step “one”: the plan has steps 1 to 3.");
        assert_eq!(ordered(Some("1 3 1")).unwrap_err(), "“create Foo” is named twice.");
        assert_eq!(ordered(Some(",")).unwrap_err(), "No step is left.");
    }

    #[test]
    fn a_condition_stays_behind_the_step_that_it_looks_at() {
        let steps = ["show A", "list the contexts", "only if it has 2 users, stop it"].map(str::to_owned).to_vec();
        let with = |order: &str| PlanParameters { steps: steps.clone(), order: Some(order.to_owned()) };
        assert!(checked(&Registry::default(), &with("2 3")).is_ok());
        assert_eq!(
            checked(&Registry::default(), &with("3 2")).unwrap_err(),
            "“only if it has 2 users, stop it” looks at the result of “list the contexts”, which has to come before it."
        );
    }

    #[tokio::test]
    async fn the_card_lists_the_steps() {
        let action = action(Arc::default());
        let proposal = action.prepare(&json!(plan(Some("2, 1"))), None).await.unwrap();
        assert_eq!(proposal.card.title, "Run these 2 steps?");
        let facts: Vec<String> =
            proposal.card.facts.iter().map(|fact| format!("{}: {}", fact.label, fact.after.words())).collect();
        assert_eq!(facts, ["1: test its balance", "2: create Foo", "Left out: start it"]);
        assert!(proposal.scope.is_personal());
        assert!(action.prepare(&json!(plan(Some(","))), None).await.is_err());
    }

    /// The parameters of an action on a document.
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Document {
        document: Option<String>,
    }

    /// The action `delete_document` or `start_document`, which is always possible.
    fn on_document(name: &'static str) -> Arc<dyn ActionKind> {
        let info = ActionInfo {
            irreversible: name.starts_with("delete"),
            ..ActionInfo::new(name, "Does something with a document.")
        };
        Arc::new(Change::new(
            (),
            info,
            |_, given: Document, _| Box::pin(async { Ok(Proposal::new(given, Card::default())) }),
            |_, _: Document, _| unreachable!("nothing is carried out"),
        ))
    }

    /// The capability of documents.
    struct Documents;

    const OF_DOCUMENTS: Vocabulary = Vocabulary {
        lines: "change delete_document\n    delete <document:thing>\nchange start_document\n    start <document:thing>\n\
             change create_document\n    create <document:thing>\n",
        ..Vocabulary::new(&["document", "documents"])
    };

    impl Capability for Documents {
        fn info(&self) -> CapabilityInfo {
            CapabilityInfo { phrases: Some(&OF_DOCUMENTS), ..CapabilityInfo::new("documents", "Documents.") }
        }

        fn tools(&self) -> Vec<Arc<dyn Tool>> {
            Vec::new()
        }

        fn actions(&self) -> Vec<Arc<dyn ActionKind>> {
            ["delete_document", "start_document", "create_document"].map(on_document).into()
        }

        fn subject(&self, parameters: &Value, _: &Value) -> Option<String> {
            parameters["document"].as_str().map(str::to_owned)
        }
    }

    #[tokio::test]
    async fn nothing_is_possible_with_what_an_earlier_step_deletes() {
        let action = action(Arc::new(Registry::build(vec![Arc::new(Documents)]).unwrap()));
        let thread = ThreadId { team: "T1".into(), channel: "C1".into(), root: "1.0".into() };
        let reader = Reader::in_thread(None, &thread);
        for (steps, deleting) in [
            (&["delete “A”", "start it"][..], Some("Step 1 deletes it first: ")),
            (&["delete “A”", "start “B”", "start “A”"], Some("Step 1 deletes it first: ")),
            (&["start “A”", "delete it", "start “A”"], Some("Step 2 deletes it first: ")),
            (&["start “A”", "delete it"], None),
            (&["delete “A”", "create “A”", "start it"], None),
            (&["delete “A”", "start “B”"], None),
        ] {
            let found = action.prepare(&json!({ "steps": steps }), Some(&reader)).await;
            let said = found.err().map(|refused| format!("{refused:?}")).unwrap_or_default();
            assert_eq!(said.is_empty(), deleting.is_none(), "{steps:?}: {said}");
            assert!(said.contains(deleting.unwrap_or_default()), "{steps:?}: {said}");
        }
    }
}
