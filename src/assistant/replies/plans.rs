//! The replies about requests of several steps.

use countersign_core::reply::{Fact, Part, Reply, Text};
use countersign_planner::{control::Reached, plan::Fault};

use crate::{
    history::shorten,
    plan::{MAX_STEPS, Plan, StepResult, requests_in_words},
};

/// Puts above the answer which of several requests it is for.
pub fn with_plan_place(mut reply: Reply, plan: Option<&Plan>) -> Reply {
    if let Some(plan) = plan {
        reply.parts.insert(0, Part::Note(plan.place().into()));
    }
    reply
}

/// Returns the place of a card among several requests, and what follows when it is approved.
pub fn plan_note(plan: &Plan) -> Text {
    match plan.ahead.as_slice() {
        [] => format!("{}.", plan.place()).into(),
        ahead => format!("{}. When it is done: {}", plan.place(), requests_in_words(ahead)).into(),
    }
}

/// Adds the requests that follow once the question is answered.
pub fn with_next_steps(reply: Reply, ahead: &[String]) -> Reply {
    match ahead {
        [] => reply,
        ahead => reply.hint(format!("After that: {}", requests_in_words(ahead))),
    }
}

/// Adds the request that follows to the outcome of a change.
pub fn next_is(mut reply: Reply, request: &str) -> Reply {
    if let Some(Part::Text(outcome)) = reply.parts.first_mut() {
        let next = format!(" Next: {}", requests_in_words(&[request.to_owned()]));
        *outcome = std::mem::take(outcome).plain(next);
    }
    reply
}

/// Adds the reason why a step with a condition is done.
pub fn condition_holds(reply: Reply, because: &str, request: &str) -> Reply {
    reply.and(Part::Text(format!("Next, since {because}: {}", requests_in_words(&[request.to_owned()])).into()))
}

/// Adds the reason why a step with a condition is not done.
pub fn condition_fails(reply: Reply, because: &str) -> Reply {
    reply.and(Part::Text(format!("I stopped here: {because}.").into()))
}

/// Asks whether a condition holds that code cannot evaluate. Only the answers are offered, and no other next steps.
pub fn ask_condition(mut reply: Reply, condition: &str, because: &str) -> Reply {
    reply.choices.clear();
    reply
        .and(Part::Text(format!("You said “if {condition}”, and {because}. Should I go on?").into()))
        .choice("Yes, go on", GO_ON)
        .choice("No, stop here", "no, stop here")
}

/// The words of the button that says that a condition holds.
pub const GO_ON: &str = "yes, go on";

/// Says that a plan ends because it reached a limit.
pub fn limit_reached(reply: Reply, reached: &Reached) -> Reply {
    reply.and(Part::Text(format!("I stopped here: {reached}, the limit for one request.").into()))
}

/// Returns the steps of a plan that was stopped, each with its state.
pub fn stopped_plan(lines: &[String]) -> String {
    lines.iter().map(|line| format!("\n• {line}")).collect()
}

/// Says that a plan ended because the person did not confirm its condition.
pub fn condition_denied() -> Reply {
    Reply::text("OK, I stopped here.")
}

/// Adds what a plan has done before the step that the reply is about, and the requests that are not done.
pub fn ended_early(reply: Reply, before: &[StepResult], undone: &[String]) -> Reply {
    let done: Vec<String> = before.iter().map(|step| step.request.clone()).collect();
    let reply = match done.as_slice() {
        [] => reply,
        done => reply.and(Part::Text(format!("Done before that: {}", requests_in_words(done)).into())),
    };
    match undone {
        [] => reply,
        undone => reply.and(Part::Text(format!("Not done: {}", requests_in_words(undone)).into())),
    }
}

/// Says what a plan has done, and what it still has to do.
pub fn plan_in_progress(lines: &[String]) -> Reply {
    Reply::text("The plan here:").and(Part::List(lines.iter().map(|line| Text::from(line.as_str())).collect()))
}

/// Lists the steps of a plan whose card is open.
pub fn plan_on_card(facts: &[Fact]) -> Reply {
    let is_number = |label: &str| label.chars().all(|c| c.is_ascii_digit());
    let steps = facts.iter().map(|fact| {
        let label = if is_number(&fact.label) { format!("{}. ", fact.label) } else { format!("{}: ", fact.label) };
        Text::from(label).join(fact.after.clone())
    });
    Reply::text("The plan hasn't started. Its steps:")
        .and(Part::List(steps.collect()))
        .hint("Use the buttons on its card to start, change or drop it.")
}

/// Lists the requests that a plan which ended early did not do.
pub fn rest_of_plan(rest: &[String]) -> Reply {
    let rest = rest.iter().map(|request| Text::from(shorten(request, 120))).collect();
    Reply::text("Remaining steps:")
        .and(Part::List(rest))
        .hint("None of it runs unless you ask.")
        .choice("Plan the rest", "continue the plan")
}

/// Says that no plan has ended early here.
pub fn no_rest_of_plan() -> Reply {
    Reply::text("There is no plan to continue in this thread. Nothing was changed.")
}

/// Says why requests cannot be done in their order. Nothing is begun.
pub fn plan_fault(fault: &Fault, requests: &[String]) -> Reply {
    let request = |step: usize| requests.get(step - 1).map(|request| shorten(request, 120)).unwrap_or_default();
    let words = match fault {
        Fault::MissingCondition { step, .. } => format!(
            "I can't tell whether the condition in “{}” holds: nothing before it looks that up.",
            request(*step)
        ),
        Fault::UnknownCapability { step, .. } => format!("“{}” is no longer possible here.", request(*step)),
        Fault::KeyUsedTwice { second: step, .. } | Fault::MissingInput { step, .. } | Fault::EndsEarly { step } => {
            format!("I can't do “{}” at that point: {fault}.", request(*step))
        }
    };
    Reply::text(words).hint("Nothing was started. Ask again in another order, or one at a time.")
}

/// Says that a capability which a plan needs is gone.
pub fn no_longer_offered(capability: &str) -> String {
    format!("what the next step needs ({capability}) is no longer offered here")
}

/// Adds the reason why a plan ends.
pub fn stops_here(reply: Reply, why: &str) -> Reply {
    match why {
        "" => reply,
        why => reply.and(Part::Text(format!("I stopped here: {why}.").into())),
    }
}

/// Adds the number of times that a step was tried, if it was more than once.
pub fn tried(reply: Reply, times: u32) -> Reply {
    match times {
        0 | 1 => reply,
        times => reply.hint(format!("I tried {times} times, waiting longer each time.")),
    }
}

/// Adds the requests that were to follow a question that is no longer open.
pub fn left_behind(reply: Reply, undone: &[String]) -> Reply {
    match undone {
        [] => reply,
        undone => reply.and(Part::Text(
            format!("I didn't run these steps of your earlier request: {}", requests_in_words(undone)).into(),
        )),
    }
}

/// Adds the number of requests that are too many for one message.
pub fn left_out(reply: Reply, how_many: usize) -> Reply {
    match how_many {
        0 => reply,
        n => reply.hint(format!("I handle up to {MAX_STEPS} requests per message, so I left out the last {n}.")),
    }
}

/// Says how another plan is asked for.
pub const ANOTHER_PLAN: &str =
    "Tell me which steps to leave out or how to order them, such as “without step 2” or “2 before 1”.";

/// Says that no other plan could be made from the reason why one was refused.
pub fn no_other_plan(reason: &str) -> Reply {
    Reply::text(format!("I couldn't make another plan from “{}”.", shorten(reason, 200))).hint(ANOTHER_PLAN)
}

/// Says that no further plan is made unasked for a request whose plans were refused.
pub fn no_further_plan(plans_made: u32) -> Reply {
    Reply::text(format!("I've made {plans_made} plans for this request, so I won't make another unless you ask."))
        .hint("Tell me here what to do instead.")
}
