//! The card of a plan, and the sentences about it.

use countersign_capabilities::Effect;
use countersign_core::reply::{Card, Fact, Reply, Text};

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

/// Says that a step is named twice.
pub(super) fn named_twice(number: usize) -> String {
    format!("Step {number} is named twice.")
}

/// Says that no step is left.
pub(super) fn nothing_left() -> String {
    "No step is left.".to_owned()
}

/// Returns the refusal of an order.
pub(super) fn refused(why: &str) -> Reply {
    Reply::text(why).hint("Give the numbers of the steps in order, such as “1, 3, 2”.")
}
