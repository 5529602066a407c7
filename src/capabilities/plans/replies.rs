//! The card of a plan, and the sentences about it.

use countersign_capabilities::Effect;
use countersign_core::reply::{Card, Fact, Reply, Text};
use countersign_planner::plan::Fault;

/// Returns the card that shows a plan.
pub(super) fn card(steps: &[(&str, Effect)], left_out: &[&String]) -> Card {
    let numbered = steps.iter().enumerate().map(|(at, (request, effect))| {
        let step = Text::from(*request);
        let step = match effect {
            Effect::Changes => step.plain(" · ").italic("needs approval"),
            Effect::Irreversible => step.plain(" · ").italic("can't be undone, needs approval"),
            Effect::Reads | Effect::Unclear => step,
        };
        Fact::new((at + 1).to_string(), step)
    });
    let dropped = left_out.iter().map(|step| Fact::new("Left out", step.as_str()));
    let (title, done) = match steps.len() {
        1 => ("Run this step?".to_owned(), "Started the step.".to_owned()),
        count => (format!("Run these {count} steps?"), format!("Started a plan with {count} steps.")),
    };
    Card {
        facts: numbered.chain(dropped).collect(),
        notes: vec!["This card changes nothing. Each change gets its own card.".into()],
        editable: true,
        ..Card::new(title, "Run plan", done)
    }
}

/// Returns the hint on how to drop and reorder steps.
pub(super) fn how_to_order(steps: &[String]) -> String {
    let steps = steps.join("; ");
    let steps: String =
        if steps.chars().count() > 120 { steps.chars().take(119).chain(['…']).collect() } else { steps };
    format!("To drop a step, leave out its number: {steps}")
}

/// Says that a step of the plan cannot be made, with the reason in the words of its change.
pub(super) fn impossible(number: usize, request: &str, reason: Reply) -> Reply {
    let said = Text::from(format!("Step {number} isn't possible, so I didn't begin the plan: ")).italic(request);
    let parts = reason.parts.into_iter();
    parts.fold(Reply::text(said), Reply::and)
}

/// Says that an earlier step deletes what a step is about.
pub(super) fn is_deleted(number: usize, request: &str) -> Reply {
    Reply::text(Text::from(format!("Step {number} deletes it first: ")).italic(request))
}

/// Says that no step has this number.
pub(super) fn no_such_step(word: &str, count: usize) -> String {
    format!("There is no step “{word}”: the plan has steps 1 to {count}.")
}

/// Says what makes an order of steps impossible. `order` are the indices of the chosen requests among all of them.
pub(super) fn fault(fault: &Fault, order: &[usize], requests: &[String]) -> String {
    let step = |number: usize| {
        let request = order.get(number - 1).and_then(|index| requests.get(*index));
        format!("“{}”", request.map_or("", String::as_str))
    };
    // The key of a step contains its index among all requests.
    let needed = |key: &str| {
        let index = key.split('_').nth(1).and_then(|index| index.parse::<usize>().ok());
        index.and_then(|index| requests.get(index)).map_or_else(String::new, |request| format!("“{request}”"))
    };
    match fault {
        Fault::KeyUsedTwice { first, .. } => format!("{} is named twice.", step(*first)),
        Fault::MissingInput { step: number, key, .. } => {
            format!("{} needs {} before it.", step(*number), needed(key))
        }
        Fault::MissingCondition { step: number, key } if key.is_empty() => {
            format!("{} has a condition, but no step before it shows whether the condition holds.", step(*number))
        }
        Fault::MissingCondition { step: number, key } => {
            format!("{} looks at the result of {}, which has to come before it.", step(*number), needed(key))
        }
        Fault::UnknownCapability { step: number, .. } => format!("{} isn't possible here.", step(*number)),
        Fault::EndsEarly { step: number } => format!("{} ends the plan, so nothing can follow it.", step(*number)),
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
