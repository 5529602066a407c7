//! The card of a plan, and the sentences about it.

use countersign_capabilities::Effect;
use countersign_core::reply::{Card, Fact, Reply, Text};
use countersign_planner::plan::Fault;

/// Returns the card that shows a plan.
pub(super) fn card(steps: &[(String, Effect)], left_out: &[&String]) -> Card {
    let numbered = steps.iter().enumerate().map(|(at, (request, effect))| {
        let step = Text::from(request.as_str());
        let step = match effect {
            Effect::Changes => step.plain(" · ").italic("asks again"),
            Effect::Irreversible => step.plain(" · ").italic("cannot be undone, asks again"),
            Effect::Reads | Effect::Unclear => step,
        };
        fact((at + 1).to_string(), step)
    });
    let dropped = left_out.iter().map(|step| fact("Left out".to_owned(), Text::from(step.as_str())));
    let (title, approve, done) = match steps.len() {
        1 => ("Do this step?".to_owned(), "Start", "Started the step.".to_owned()),
        count => (format!("Do these {count} steps?"), "Start", format!("Started with {count} steps.")),
    };
    Card {
        title,
        facts: numbered.chain(dropped).collect(),
        warnings: Vec::new(),
        notes: vec!["Nothing is changed by this card. Each change has a card of its own.".into()],
        approve: approve.to_owned(),
        reject: "Don't".to_owned(),
        done,
        irreversible: false,
        editable: true,
    }
}

fn fact(label: String, after: Text) -> Fact {
    Fact { label, before: None, after }
}

/// Says how steps are dropped and put into another order.
pub(super) fn how_to_order(steps: &[String]) -> String {
    let steps = steps.join("; ");
    let steps: String =
        if steps.chars().count() > 120 { steps.chars().take(119).chain(['…']).collect() } else { steps };
    format!("Leave out a number to drop the step: {steps}")
}

/// Says that a number names no step.
pub(super) fn no_such_step(word: &str, count: usize) -> String {
    format!("There is no step “{word}”: the plan has steps 1 to {count}.")
}

/// Says what makes an order of steps impossible. `order` are the indices of the chosen requests among all of them.
pub(super) fn fault(fault: &Fault, order: &[usize], requests: &[String]) -> String {
    let number = |step: usize| order.get(step - 1).map_or(step, |index| index + 1);
    // The key of a step holds its index among all requests.
    let of_key = |key: &str| {
        let index = key.split('_').nth(1)?.parse::<usize>().ok()?;
        Some(format!("step {} (“{}”)", index + 1, requests.get(index)?))
    };
    let before = |key: &str| of_key(key).unwrap_or_else(|| "a step before it".to_owned());
    match fault {
        Fault::KeyUsedTwice { first, .. } => format!("Step {} is named twice.", number(*first)),
        Fault::MissingInput { step, key, .. } => {
            format!("Step {} is about the thing of {}, which is left out or comes later.", number(*step), before(key))
        }
        Fault::MissingCondition { step, key } if key.is_empty() => {
            format!("Step {} has a condition, and there is no step before it whose result could tell.", number(*step))
        }
        Fault::MissingCondition { step, key } => {
            format!("Step {} looks at the result of {}, which is left out or comes later.", number(*step), before(key))
        }
        Fault::UnknownCapability { step, .. } => format!("Step {} is nothing that I can do here.", number(*step)),
        Fault::EndsEarly { step } => format!("Step {} ends the plan, so nothing can follow it.", number(*step)),
    }
}

/// Says that no step is left.
pub(super) fn nothing_left() -> String {
    "No step is left.".to_owned()
}

/// Returns the refusal of an order.
pub(super) fn refused(why: &str) -> Reply {
    Reply::text(why).hint("Give the numbers of the steps in order, such as “1, 3, 2”.")
}
